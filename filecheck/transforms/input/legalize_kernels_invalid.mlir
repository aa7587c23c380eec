// RUN: irees opt %s -p irees-raise-buffers,irees-legalize-kernels --split-input-file --verify-diagnostics

func.func @transfer(%a: memref<8x8xf32>) {
  %c0 = arith.constant 0 : index
  %z = arith.constant 0.0 : f32
  // expected-error @+1 {{this transfer is not supported in a kernel}}
  %v = vector.transfer_read %a[%c0, %c0], %z : memref<8x8xf32>, vector<8x8xf32>
  vector.transfer_write %v, %a[%c0, %c0] : vector<8x8xf32>, memref<8x8xf32>
  return
}
