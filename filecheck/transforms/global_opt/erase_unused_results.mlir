// RUN: xdsl-opt %s -p irees-erase-unused-results | filecheck %s
// RUN: xdsl-opt %s -p canonicalize | filecheck %s

// The index of the maximum is not used: its output, accumulator and body code go.
// CHECK-LABEL: func.func @argmax
// CHECK-NEXT:    linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d0)>]
// CHECK-SAME:    ins(%x : tensor<4x8xf32>) outs(%v : tensor<4xf32>) {
// CHECK-NEXT:    ^bb0(%{{.*}}: f32, %{{.*}}: f32):
// CHECK-NEXT:      arith.cmpf
// CHECK-NEXT:      arith.select
// CHECK-NEXT:      linalg.yield %{{.*}} : f32
func.func @argmax(%x: tensor<4x8xf32>, %v: tensor<4xf32>, %i: tensor<4xi64>) -> tensor<4xf32> {
  %m:2 = linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d0)>, affine_map<(d0, d1) -> (d0)>], iterator_types = ["parallel", "reduction"]} ins(%x : tensor<4x8xf32>) outs(%v, %i : tensor<4xf32>, tensor<4xi64>) {
  ^bb0(%a: f32, %best: f32, %at: i64):
    %j = linalg.index 1 : index
    %k = arith.index_cast %j : index to i64
    %more = arith.cmpf ogt, %a, %best : f32
    %new = arith.select %more, %a, %best : f32
    %pos = arith.select %more, %k, %at : i64
    linalg.yield %new, %pos : f32, i64
  } -> (tensor<4xf32>, tensor<4xi64>)
  return %m#0 : tensor<4xf32>
}

// With dynamic shapes too.
// CHECK-LABEL: func.func @dynamic
// CHECK:         %[[M:.*]] = linalg.generic {{.*}} ins(%x : tensor<?xf32>) outs(%o : tensor<?xf32>) {
// CHECK-NEXT:    ^bb0(%[[A:.*]]: f32, %{{.*}}: f32):
// CHECK-NEXT:      linalg.yield %[[A]] : f32
// CHECK:         func.return %[[M]]
func.func @dynamic(%x: tensor<?xf32>, %o: tensor<?xf32>) -> tensor<?xf32> {
  %m:2 = linalg.generic {indexing_maps = [affine_map<(d0) -> (d0)>, affine_map<(d0) -> (d0)>, affine_map<(d0) -> (d0)>], iterator_types = ["parallel"]} ins(%x : tensor<?xf32>) outs(%o, %o : tensor<?xf32>, tensor<?xf32>) {
  ^bb0(%a: f32, %p: f32, %q: f32):
    %n = arith.negf %a : f32
    linalg.yield %n, %a : f32, f32
  } -> (tensor<?xf32>, tensor<?xf32>)
  return %m#1 : tensor<?xf32>
}

// A rider that the comparator does not read goes.
// CHECK-LABEL: func.func @sort
// CHECK-NEXT:    iree_linalg_ext.sort dimension(0) outs(%x : tensor<8xf32>) {
// CHECK-NEXT:    ^bb0(%{{.*}}: f32, %{{.*}}: f32):
func.func @sort(%x: tensor<8xf32>, %i: tensor<8xi64>) -> tensor<8xf32> {
  %s:2 = iree_linalg_ext.sort dimension(0) outs(%x, %i : tensor<8xf32>, tensor<8xi64>) {
  ^bb0(%a: f32, %b: f32, %c: i64, %d: i64):
    %less = arith.cmpf olt, %a, %b : f32
    iree_linalg_ext.yield %less : i1
  } -> tensor<8xf32>, tensor<8xi64>
  return %s#0 : tensor<8xf32>
}

// A key that is compared stays where only the positions are wanted.
// CHECK-LABEL: func.func @no_sort_key
// CHECK-NEXT:    %{{.*}}, %[[I:.*]] = iree_linalg_ext.sort dimension(0) outs(%x, %i : tensor<8xf32>, tensor<8xi64>)
// CHECK:         func.return %[[I]]
func.func @no_sort_key(%x: tensor<8xf32>, %i: tensor<8xi64>) -> tensor<8xi64> {
  %s:2 = iree_linalg_ext.sort dimension(0) outs(%x, %i : tensor<8xf32>, tensor<8xi64>) {
  ^bb0(%a: f32, %b: f32, %c: i64, %d: i64):
    %less = arith.cmpf olt, %a, %b : f32
    iree_linalg_ext.yield %less : i1
  } -> tensor<8xf32>, tensor<8xi64>
  return %s#1 : tensor<8xi64>
}

// The maximum feeds the position, so it stays although only the position is used.
// CHECK-LABEL: func.func @no_feeds_other
// CHECK:         outs(%v, %i : tensor<f32>, tensor<i64>)
func.func @no_feeds_other(%x: tensor<8xf32>, %v: tensor<f32>, %i: tensor<i64>) -> tensor<i64> {
  %m:2 = linalg.generic {indexing_maps = [affine_map<(d0) -> (d0)>, affine_map<(d0) -> ()>, affine_map<(d0) -> ()>], iterator_types = ["reduction"]} ins(%x : tensor<8xf32>) outs(%v, %i : tensor<f32>, tensor<i64>) {
  ^bb0(%a: f32, %best: f32, %at: i64):
    %j = linalg.index 0 : index
    %k = arith.index_cast %j : index to i64
    %more = arith.cmpf ogt, %a, %best : f32
    %new = arith.select %more, %a, %best : f32
    %pos = arith.select %more, %k, %at : i64
    linalg.yield %new, %pos : f32, i64
  } -> (tensor<f32>, tensor<i64>)
  return %m#1 : tensor<i64>
}

// Only the unused output has the loop d1: without it nothing would bound the loop.
// CHECK-LABEL: func.func @no_bound
// CHECK:         outs(%o, %w : tensor<4xf32>, tensor<4x8xf32>)
func.func @no_bound(%x: tensor<4xf32>, %o: tensor<4xf32>, %w: tensor<4x8xf32>) -> tensor<4xf32> {
  %m:2 = linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d0)>, affine_map<(d0, d1) -> (d0)>, affine_map<(d0, d1) -> (d0, d1)>], iterator_types = ["parallel", "reduction"]} ins(%x : tensor<4xf32>) outs(%o, %w : tensor<4xf32>, tensor<4x8xf32>) {
  ^bb0(%a: f32, %p: f32, %q: f32):
    %s = arith.addf %p, %a : f32
    linalg.yield %s, %a : f32, f32
  } -> (tensor<4xf32>, tensor<4x8xf32>)
  return %m#0 : tensor<4xf32>
}

// An operand given twice is read once; one that the body does not read goes when the loops stay bounded.
// CHECK-LABEL: func.func @inputs
// CHECK:         linalg.generic {indexing_maps = [affine_map<(d0) -> (d0)>, affine_map<(d0) -> (d0)>], iterator_types = ["parallel"]} ins(%x : tensor<4xf32>)
// CHECK-NEXT:    ^bb0(%[[A:.*]]: f32, %{{.*}}: f32):
// CHECK-NEXT:      arith.addf %[[A]], %[[A]] : f32
func.func @inputs(%x: tensor<4xf32>, %y: tensor<4xf32>, %o: tensor<4xf32>) -> tensor<4xf32> {
  %r = linalg.generic {indexing_maps = [affine_map<(d0) -> (d0)>, affine_map<(d0) -> (d0)>, affine_map<(d0) -> (d0)>, affine_map<(d0) -> (d0)>], iterator_types = ["parallel"]} ins(%x, %y, %x : tensor<4xf32>, tensor<4xf32>, tensor<4xf32>) outs(%o : tensor<4xf32>) {
  ^bb0(%a: f32, %b: f32, %c: f32, %d: f32):
    %s = arith.addf %a, %c : f32
    linalg.yield %s : f32
  } -> tensor<4xf32>
  return %r : tensor<4xf32>
}

// The window of a pooling is not read, but says how far its loop runs.
// CHECK-LABEL: func.func @no_window
// CHECK:         ins(%x, %w : tensor<6xf32>, tensor<3xf32>)
func.func @no_window(%x: tensor<6xf32>, %w: tensor<3xf32>, %o: tensor<4xf32>) -> tensor<4xf32> {
  %r = linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d0 + d1)>, affine_map<(d0, d1) -> (d1)>, affine_map<(d0, d1) -> (d0)>], iterator_types = ["parallel", "reduction"]} ins(%x, %w : tensor<6xf32>, tensor<3xf32>) outs(%o : tensor<4xf32>) {
  ^bb0(%a: f32, %b: f32, %c: f32):
    %m = arith.maximumf %a, %c : f32
    linalg.yield %m : f32
  } -> tensor<4xf32>
  return %r : tensor<4xf32>
}

// Two results that are the same value over the same output are one.
// CHECK-LABEL: func.func @equal_results
// CHECK:         %[[R:.*]] = linalg.generic {{.*}} outs(%o : tensor<4xf32>)
// CHECK:         func.return %[[R]], %[[R]]
func.func @equal_results(%x: tensor<4xf32>, %o: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
  %r:2 = linalg.generic {indexing_maps = [affine_map<(d0) -> (d0)>, affine_map<(d0) -> (d0)>, affine_map<(d0) -> (d0)>], iterator_types = ["parallel"]} ins(%x : tensor<4xf32>) outs(%o, %o : tensor<4xf32>, tensor<4xf32>) {
  ^bb0(%a: f32, %b: f32, %c: f32):
    %m = arith.negf %a : f32
    linalg.yield %m, %m : f32, f32
  } -> (tensor<4xf32>, tensor<4xf32>)
  return %r#0, %r#1 : tensor<4xf32>, tensor<4xf32>
}

// Positions that nobody wants are not collected.
// CHECK-LABEL: func.func @topk
// CHECK:         %[[V:.*]] = iree_linalg_ext.topk_v2 dimension(0) ins(%x : tensor<9xf32>) outs(%v : tensor<3xf32>) {
// CHECK:         func.return %[[V]]
func.func @topk(%x: tensor<9xf32>, %v: tensor<3xf32>, %i: tensor<3xi64>) -> tensor<3xf32> {
  %r:2 = iree_linalg_ext.topk_v2 dimension(0) ins(%x : tensor<9xf32>) outs(%v, %i : tensor<3xf32>, tensor<3xi64>) {
  ^bb0(%a: f32, %b: f32):
    %p = arith.cmpf ogt, %a, %b : f32
    iree_linalg_ext.yield %p : i1
  } -> tensor<3xf32>, tensor<3xi64>
  return %r#0 : tensor<3xf32>
}

// What a body stores is seen elsewhere, so the accumulator that it stores stays.
// CHECK-LABEL: func.func @stored
// CHECK:         linalg.generic {{.*}} outs(%o, %p : tensor<4xi32>, tensor<4xi32>) {
// CHECK:           memref.store
func.func @stored(%x: tensor<4xi32>, %o: tensor<4xi32>, %p: tensor<4xi32>, %m: memref<4xi32>) -> tensor<4xi32> {
  %r:2 = linalg.generic {indexing_maps = [affine_map<(d0) -> (d0)>, affine_map<(d0) -> (d0)>, affine_map<(d0) -> (d0)>], iterator_types = ["parallel"]} ins(%x : tensor<4xi32>) outs(%o, %p : tensor<4xi32>, tensor<4xi32>) {
  ^bb0(%a: i32, %b: i32, %c: i32):
    %i = linalg.index 0 : index
    %s = arith.addi %a, %c : i32
    memref.store %s, %m[%i] : memref<4xi32>
    linalg.yield %a, %s : i32, i32
  } -> (tensor<4xi32>, tensor<4xi32>)
  return %r#0 : tensor<4xi32>
}

// A generic with a loop of no iterations writes nothing: its init is the result.
// CHECK-LABEL: func.func @empty_rows
// CHECK-NEXT:    func.return %o
func.func @empty_rows(%x: tensor<0x4xf32>, %o: tensor<0xf32>) -> tensor<0xf32> {
  %r = linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d0)>], iterator_types = ["parallel", "reduction"]} ins(%x : tensor<0x4xf32>) outs(%o : tensor<0xf32>) {
  ^bb0(%a: f32, %s: f32):
    %n = arith.addf %s, %a : f32
    linalg.yield %n : f32
  } -> tensor<0xf32>
  return %r : tensor<0xf32>
}

// A loop of dynamic size may have iterations.
// CHECK-LABEL: func.func @no_dynamic_rows
// CHECK-NEXT:    linalg.generic
func.func @no_dynamic_rows(%x: tensor<?x4xf32>, %o: tensor<?xf32>) -> tensor<?xf32> {
  %r = linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d0)>], iterator_types = ["parallel", "reduction"]} ins(%x : tensor<?x4xf32>) outs(%o : tensor<?xf32>) {
  ^bb0(%a: f32, %s: f32):
    %n = arith.addf %s, %a : f32
    linalg.yield %n : f32
  } -> tensor<?xf32>
  return %r : tensor<?xf32>
}
