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

// -----

func.func @mask(%a: memref<8xf32>, %n: index) {
  %c0 = arith.constant 0 : index
  %v = vector.load %a[%c0] : memref<8xf32>, vector<4xf32>
  // expected-error @+1 {{this mask is not supported in a kernel}}
  %m = vector.create_mask %n, %n : vector<2x4xi1>
  %r = vector.extract %m[0] : vector<4xi1> from vector<2x4xi1>
  vector.maskedstore %a[%c0], %r, %v : memref<8xf32>, vector<4xi1>, vector<4xf32>
  return
}

// -----

func.func @part(%a: memref<8xf32>) {
  %c0 = arith.constant 0 : index
  %v = vector.load %a[%c0] : memref<8xf32>, vector<8xf32>
  %w = vector.broadcast %v : vector<8xf32> to vector<4x8xf32>
  // expected-error @+1 {{this slice is not supported in a kernel}}
  %x = vector.extract_strided_slice %w {offsets = [1], sizes = [1], strides = [1]}
      : vector<4x8xf32> to vector<1x8xf32>
  %y = vector.extract %x[0] : vector<8xf32> from vector<1x8xf32>
  vector.store %y, %a[%c0] : memref<8xf32>, vector<8xf32>
  return
}
