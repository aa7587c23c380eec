// RUN: xdsl-opt %s --verify-diagnostics --split-input-file | filecheck %s

func.func @lanes(%acc: vector<16xi32>, %a: vector<32xi8>) {
  %0 = irees.dot %acc, %a, %a : vector<32xi8> -> vector<16xi32>
  return
}
// CHECK: each lane of vector<16xi32> takes 4 lanes of an operand, not vector<32xi8>

// -----

func.func @sums(%a: vector<4xi8>, %c: vector<4xf32>) {
  %0 = irees.mma_sync %a, %a, %a, %a, %a, %a, %c : vector<4xi8> -> vector<4xf32>
  return
}
// CHECK: unsupported product of vector<4xi8> into vector<4xf32>

// -----

func.func @wide(%a: vector<2xf32>, %c: vector<4xf32>) {
  %0 = irees.mma_sync %a, %a, %a, %a, %a, %a, %c : vector<2xf32> -> vector<4xf32>
  return
}
// CHECK: unsupported product of vector<2xf32> into vector<4xf32>

// -----

func.func @few(%a: !nvgpu.warpgroup.accumulator<fragmented = vector<64x64xf32>>) {
  %0 = irees.warpgroup_sums %a : !nvgpu.warpgroup.accumulator<fragmented = vector<64x64xf32>> -> vector<4xf32>
  return
}
// CHECK: expected 8 vectors of 4 sums per lane

// -----

func.func @invoke() {
  irees.invoke @main_0() : () -> ()
  return
}
// CHECK: expected @device::@function

// -----

func.func @reads_only(%x: tensor<8xf32>) {
  "irees.kernel"(%x) <{operandSegmentSizes = array<i32: 1, 0>}> ({
  ^bb0(%a: memref<8xf32>):
  }) : (tensor<8xf32>) -> ()
  return
}
// CHECK: must write an output

// -----

func.func @parts(%x: tensor<4x3xf32>) {
  %0 = irees.view_parts %x : tensor<4x3xf32> -> tensor<4xcomplex<f32>>
  return
}
// CHECK: expected complex numbers, or a last dim of 2 numbers of f32 or f64

// -----

func.func @half_parts(%x: tensor<4x2xf16>) {
  %0 = irees.view_parts %x : tensor<4x2xf16> -> tensor<4xcomplex<f16>>
  return
}
// CHECK: expected complex numbers, or a last dim of 2 numbers of f32 or f64

// -----

func.func @other_sizes(%x: tensor<4xcomplex<f32>>) {
  %0 = irees.view_parts %x : tensor<4xcomplex<f32>> -> tensor<?x2xf32>
  return
}
// CHECK: expected a result of type tensor<4x2xf32>

// -----

func.func @layout(%x: memref<4x2xf32, strided<[4, 1]>>) {
  %0 = irees.view_parts %x : memref<4x2xf32, strided<[4, 1]>> -> memref<4xcomplex<f32>>
  return
}
// CHECK: expected a buffer without a layout

// -----

func.func @bytes(%x: memref<4xi1>) {
  %0 = irees.view_bytes %x : memref<4xi1> -> memref<5xi8>
  return
}
// CHECK: expected a result of type memref<4xi8>
