// RUN: xdsl-opt %s -p 'irees-assign-target{target="cuda:sm_80"},irees-split-sorts{longest=64}' | filecheck %s

// Keys without digits: three runs of 64, of which the first two are merged, and then all.
// CHECK-LABEL: func.func @sort
// CHECK:         tensor.expand_shape %x {{.*}} into tensor<2x3x64xi4>
// CHECK:         iree_linalg_ext.sort dimension(2) outs({{.*}} : tensor<2x3x64xi4>)
// CHECK:         tensor.collapse_shape
// CHECK-COUNT-2: linalg.generic {{.*}} outs({{.*}} : tensor<2x192xi4>)
// CHECK-NOT:     linalg.generic
func.func @sort(%x: tensor<2x192xi4>) -> tensor<2x192xi4> {
  %r = iree_linalg_ext.sort dimension(1) outs(%x : tensor<2x192xi4>) {
  ^bb0(%a: i4, %b: i4):
    %p = arith.cmpi sle, %a, %b : i4
    iree_linalg_ext.yield %p : i1
  } -> tensor<2x192xi4>
  return %r : tensor<2x192xi4>
}

// 1024 numbers are 16 runs, then 8 of each are two runs more; the last one says where they were.
// CHECK-LABEL: func.func @topk
// CHECK:         iree_linalg_ext.topk_v2 dimension(1) is_sorted ins({{.*}} : tensor<16x64xf32>)
// CHECK:         linalg.generic {{.*}} outs({{.*}} : tensor<16x8xi32>)
// CHECK:         iree_linalg_ext.topk_v2 dimension(1) is_sorted ins({{.*}} : tensor<2x64xf32>, tensor<2x64xi32>)
// CHECK:         iree_linalg_ext.topk_v2 dimension(0) is_sorted ins({{.*}} : tensor<16xf32>, tensor<16xi32>)
func.func @topk(%x: tensor<1024xf32>, %v: tensor<8xf32>, %i: tensor<8xi32>) -> (tensor<8xf32>, tensor<8xi32>) {
  %r:2 = iree_linalg_ext.topk_v2 dimension(0) is_sorted ins(%x : tensor<1024xf32>) outs(%v, %i : tensor<8xf32>, tensor<8xi32>) {
  ^bb0(%a: f32, %b: f32):
    %p = arith.cmpf oge, %a, %b : f32
    iree_linalg_ext.yield %p : i1
  } -> tensor<8xf32>, tensor<8xi32>
  return %r#0, %r#1 : tensor<8xf32>, tensor<8xi32>
}

// More than a quarter of a run: all is sorted.
// CHECK-LABEL: func.func @much
// CHECK:         iree_linalg_ext.sort dimension(1) outs({{.*}} : tensor<2x64xf32>, tensor<2x64xi64>)
// CHECK:         tensor.extract_slice {{.*}} : tensor<128xf32> to tensor<20xf32>
func.func @much(%x: tensor<128xf32>, %v: tensor<20xf32>) -> tensor<20xf32> {
  %r = iree_linalg_ext.topk_v2 dimension(0) is_sorted ins(%x : tensor<128xf32>) outs(%v : tensor<20xf32>) {
  ^bb0(%a: f32, %b: f32):
    %p = arith.cmpf oge, %a, %b : f32
    iree_linalg_ext.yield %p : i1
  } -> tensor<20xf32>
  return %r : tensor<20xf32>
}

// Short, of unknown length, and of a prime one.
// CHECK-LABEL: func.func @no_runs
// CHECK-COUNT-3: iree_linalg_ext.sort dimension(0)
// CHECK-NOT:     linalg.generic
func.func @no_runs(%x: tensor<64xf32>, %y: tensor<?xf32>, %z: tensor<127xf32>) -> (tensor<64xf32>, tensor<?xf32>, tensor<127xf32>) {
  %r = iree_linalg_ext.sort dimension(0) outs(%x : tensor<64xf32>) {
  ^bb0(%a: f32, %b: f32):
    %p = arith.cmpf ole, %a, %b : f32
    iree_linalg_ext.yield %p : i1
  } -> tensor<64xf32>
  %s = iree_linalg_ext.sort dimension(0) outs(%y : tensor<?xf32>) {
  ^bb0(%a: f32, %b: f32):
    %p = arith.cmpf ole, %a, %b : f32
    iree_linalg_ext.yield %p : i1
  } -> tensor<?xf32>
  %t = iree_linalg_ext.sort dimension(0) outs(%z : tensor<127xf32>) {
  ^bb0(%a: f32, %b: f32):
    %p = arith.cmpf ole, %a, %b : f32
    iree_linalg_ext.yield %p : i1
  } -> tensor<127xf32>
  return %r, %s, %t : tensor<64xf32>, tensor<?xf32>, tensor<127xf32>
}

// As many rows as there are workgroups: each finds the first of one.
// CHECK-LABEL: func.func @enough
// CHECK-NOT:     tensor.expand_shape
// CHECK:         iree_linalg_ext.topk_v2 dimension(1) is_sorted ins({{.*}} : tensor<108x1024xf32>)
func.func @enough(%x: tensor<108x1024xf32>, %v: tensor<108x8xf32>) -> tensor<108x8xf32> {
  %r = iree_linalg_ext.topk_v2 dimension(1) is_sorted ins(%x : tensor<108x1024xf32>) outs(%v : tensor<108x8xf32>) {
  ^bb0(%a: f32, %b: f32):
    %p = arith.cmpf oge, %a, %b : f32
    iree_linalg_ext.yield %p : i1
  } -> tensor<108x8xf32>
  return %r : tensor<108x8xf32>
}

// Of numbers that have no digits a row is for its network's memory.
// CHECK-LABEL: func.func @no_digits
// CHECK:         tensor.expand_shape {{.*}} into tensor<108x16x64xi4>
func.func @no_digits(%x: tensor<108x1024xi4>, %v: tensor<108x8xi4>) -> tensor<108x8xi4> {
  %r = iree_linalg_ext.topk_v2 dimension(1) is_sorted ins(%x : tensor<108x1024xi4>) outs(%v : tensor<108x8xi4>) {
  ^bb0(%a: i4, %b: i4):
    %p = arith.cmpi sge, %a, %b : i4
    iree_linalg_ext.yield %p : i1
  } -> tensor<108x8xi4>
  return %r : tensor<108x8xi4>
}

// Keys with digits are sorted by many workgroups together.
// CHECK-LABEL: func.func @wide
// CHECK-NEXT:    iree_linalg_ext.sort dimension(0) outs(%x : tensor<1000xf32>)
func.func @wide(%x: tensor<1000xf32>) -> tensor<1000xf32> {
  %r = iree_linalg_ext.sort dimension(0) outs(%x : tensor<1000xf32>) {
  ^bb0(%a: f32, %b: f32):
    %p = arith.cmpf ole, %a, %b : f32
    iree_linalg_ext.yield %p : i1
  } -> tensor<1000xf32>
  return %r : tensor<1000xf32>
}
