// RUN: xdsl-opt %s -p irees-gpu-alloc-private-memory-for-dps-ops | filecheck %s

// The keys decide, but only the places are wanted: the keys are sorted in the thread's memory.
// CHECK-LABEL: func.func @unused
// CHECK:         %[[P:.*]] = bufferization.alloc_tensor() copy(%k) {memory_space = #gpu.address_space<private>} : tensor<1x10xf32>
// CHECK-NEXT:    iree_linalg_ext.sort dimension(1) outs(%[[P]], %i : tensor<1x10xf32>, tensor<1x10xi64>)
func.func @unused(%k: tensor<1x10xf32>, %i: tensor<1x10xi64>) -> tensor<1x10xi64> {
  %s:2 = iree_linalg_ext.sort dimension(1) outs(%k, %i : tensor<1x10xf32>, tensor<1x10xi64>) {
  ^bb0(%a: f32, %b: f32, %c: i64, %d: i64):
    %p = arith.cmpf oge, %a, %b : f32
    iree_linalg_ext.yield %p : i1
  } -> tensor<1x10xf32>, tensor<1x10xi64>
  return %s#1 : tensor<1x10xi64>
}

// 32 elements are too many for a thread.
// CHECK-LABEL: func.func @no_large
// CHECK-NOT:     bufferization.alloc_tensor
func.func @no_large(%k: tensor<1x32xf32>, %i: tensor<1x32xi64>) -> tensor<1x32xi64> {
  %s:2 = iree_linalg_ext.sort dimension(1) outs(%k, %i : tensor<1x32xf32>, tensor<1x32xi64>) {
  ^bb0(%a: f32, %b: f32, %c: i64, %d: i64):
    %p = arith.cmpf oge, %a, %b : f32
    iree_linalg_ext.yield %p : i1
  } -> tensor<1x32xf32>, tensor<1x32xi64>
  return %s#1 : tensor<1x32xi64>
}

// A result that is used lies where it is used.
// CHECK-LABEL: func.func @no_used
// CHECK-NOT:     bufferization.alloc_tensor
func.func @no_used(%k: tensor<10xf32>) -> tensor<10xf32> {
  %s = iree_linalg_ext.sort dimension(0) outs(%k : tensor<10xf32>) {
  ^bb0(%a: f32, %b: f32):
    %p = arith.cmpf oge, %a, %b : f32
    iree_linalg_ext.yield %p : i1
  } -> tensor<10xf32>
  return %s : tensor<10xf32>
}

// Buffers are where they are.
// CHECK-LABEL: func.func @no_buffers
// CHECK-NEXT:    linalg.fill
func.func @no_buffers(%c: f32, %m: memref<?xf32>) {
  linalg.fill ins(%c : f32) outs(%m : memref<?xf32>)
  return
}
