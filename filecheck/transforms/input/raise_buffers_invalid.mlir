// RUN: irees opt %s -p irees-raise-buffers --split-input-file --verify-diagnostics

func.func @vectors(%a: memref<8xf32>) -> vector<8xf32> {
  %c0 = arith.constant 0 : index
  // expected-error @+1 {{a value that a kernel computes is used outside of it}}
  %v = vector.load %a[%c0] : memref<8xf32>, vector<8xf32>
  return %v : vector<8xf32>
}

// -----

// expected-error @+1 {{argument 0 is a memref<8xf32, strided<[2]>>, but must be contiguous}}
func.func @strided(%a: memref<8xf32, strided<[2]>>) {
  return
}

// -----

func.func @rank(%a: memref<3xf32>) -> index {
  %v = memref.cast %a : memref<3xf32> to memref<*xf32>
  %c0 = arith.constant 0 : index
  // expected-error @-2 {{memref.cast on a memref is not supported}}
  %n = memref.dim %v, %c0 : memref<*xf32>
  return %n : index
}

// -----

func.func @scalar(%a: memref<8xf32>, %x: f32) -> f32 {
  %c0 = arith.constant 0 : index
  // expected-error @+1 {{a value that a kernel computes is used outside of it}}
  %v = memref.atomic_rmw addf %x, %a[%c0] : (f32, memref<8xf32>) -> f32
  return %v : f32
}

// -----

memref.global "private" @w : memref<4xf32> = dense<2.0>
func.func @global() -> f32 {
  %c0 = arith.constant 0 : index
  // expected-error @+1 {{a global that may be written is not supported}}
  %w = memref.get_global @w : memref<4xf32>
  %x = memref.load %w[%c0] : memref<4xf32>
  return %x : f32
}
