// RUN: irees opt %s -p irees-raise-buffers,irees-legalize-kernels --split-input-file --verify-diagnostics

func.func @transfer(%a: memref<8x8xf32>) {
  %c0 = arith.constant 0 : index
  %z = arith.constant 0.0 : f32
  // expected-error @+1 {{this transfer is not supported in a kernel}}
  %v = vector.transfer_read %a[%c0, %c0], %z : memref<8x8xf32>, vector<8x8xf32>
  vector.transfer_write %v, %a[%c0, %c0] : vector<8x8xf32>, memref<8x8xf32>
  return
}

// -----

func.func @choice(%a: memref<8xf32>, %b: memref<8xf32>, %p: i1) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  scf.for %i = %c0 to %c1 step %c1 {
    // expected-error @+1 {{a choice of buffers is not supported}}
    %s = arith.select %p, %a, %b : memref<8xf32>
    %x = memref.load %s[%i] : memref<8xf32>
    memref.store %x, %b[%i] : memref<8xf32>
  }
  return
}

// -----

func.func @sizes(%a: memref<?xf32>, %n: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  scf.for %i = %c0 to %n step %c1 {
    // expected-error @+1 {{an expand_shape to unknown sizes is not supported}}
    %v = memref.expand_shape %a [[0, 1]] output_shape [%n, 2] : memref<?xf32> into memref<?x2xf32>
    %x = memref.load %v[%i, %c0] : memref<?x2xf32>
    memref.store %x, %a[%i] : memref<?xf32>
  }
  return
}
