// RUN: xdsl-opt %s -p irees-split-arg-compares | filecheck %s

// The best element first, then its first index; the element is read again for the sign of a zero.
// CHECK-LABEL: func.func @innermost
// CHECK:         arith.constant 0x7FC00000 : f32
// CHECK:         %[[M:.*]] = linalg.generic {{.*}} iterator_types = ["parallel", "reduction"]} ins(%x : tensor<4x64xf32>)
// CHECK:           arith.maxnumf
// CHECK:         arith.constant 2147483647 : i32
// CHECK:         %[[J:.*]] = linalg.generic {{.*}} iterator_types = ["parallel", "reduction"]} ins(%x, %[[M]] : tensor<4x64xf32>, tensor<4xf32>) outs(%{{.*}} : tensor<4xi32>)
// CHECK:           arith.cmpf oeq
// CHECK-NOT:       uno
// CHECK:           arith.minsi
// CHECK:         linalg.generic {{.*}} iterator_types = ["parallel"]} ins(%[[M]], %[[J]] : tensor<4xf32>, tensor<4xi32>) outs(%v, %i
// CHECK:           arith.cmpf ogt
// CHECK:           tensor.extract %x
// CHECK-NOT:     arg_compare
func.func @innermost(%x: tensor<4x64xf32>, %v: tensor<4xf32>, %i: tensor<4xi64>) -> (tensor<4xf32>, tensor<4xi64>) {
  %r:2 = iree_linalg_ext.arg_compare dimension(1) ins(%x : tensor<4x64xf32>) outs(%v, %i : tensor<4xf32>, tensor<4xi64>) {
  ^bb0(%l: f32, %m: f32):
    %c = arith.cmpf ogt, %l, %m : f32
    iree_linalg_ext.yield %c : i1
  } -> tensor<4xf32>, tensor<4xi64>
  return %r#0, %r#1 : tensor<4xf32>, tensor<4xi64>
}

// Where NaN wins, the first NaN is found. Nothing reads the value, so no element is read again.
// CHECK-LABEL: func.func @nan_wins
// CHECK:           arith.minimumf
// CHECK:           arith.cmpf oeq
// CHECK-NEXT:      arith.cmpf uno
// CHECK-NOT:       tensor.extract
// CHECK:         func.return
func.func @nan_wins(%x: tensor<?x?xf64>, %v: tensor<?xf64>, %i: tensor<?xi64>) -> tensor<?xi64> {
  %r:2 = iree_linalg_ext.arg_compare dimension(1) ins(%x : tensor<?x?xf64>) outs(%v, %i : tensor<?xf64>, tensor<?xi64>) {
  ^bb0(%l: f64, %m: f64):
    %g = arith.cmpf olt, %l, %m : f64
    %a = math.isnan %l : f64
    %b = math.isnan %m : f64
    %true = arith.constant true
    %n = arith.xori %b, %true : i1
    %o = arith.andi %a, %n : i1
    %c = arith.ori %g, %o : i1
    iree_linalg_ext.yield %c : i1
  } -> tensor<?xf64>, tensor<?xi64>
  return %r#1 : tensor<?xi64>
}

// Integers have one zero. Counting may begin elsewhere.
// CHECK-LABEL: func.func @unsigned
// CHECK:         arith.constant -1 : i8
// CHECK:           arith.minui
// CHECK:           arith.cmpi eq
// CHECK:           arith.cmpi ult
// CHECK-NOT:       tensor.extract
// CHECK:           arith.addi %{{.*}}, %base : index
func.func @unsigned(%x: tensor<64xi8>, %v: tensor<i8>, %i: tensor<index>, %base: index) -> (tensor<i8>, tensor<index>) {
  %r:2 = iree_linalg_ext.arg_compare dimension(0) ins(%x : tensor<64xi8>) outs(%v, %i : tensor<i8>, tensor<index>) index_base(%base : index) {
  ^bb0(%l: i8, %m: i8):
    %c = arith.cmpi ult, %l, %m : i8
    iree_linalg_ext.yield %c : i1
  } -> tensor<i8>, tensor<index>
  return %r#0, %r#1 : tensor<i8>, tensor<index>
}

// Along an outer dim the lanes of a vector are rows; where equal elements win, the last one is meant; a short row has no vectors.
// CHECK-LABEL: func.func @no_split
// CHECK:         iree_linalg_ext.arg_compare dimension(0)
// CHECK:         iree_linalg_ext.arg_compare dimension(1)
// CHECK:         iree_linalg_ext.arg_compare dimension(1)
func.func @no_split(%x: tensor<64x64xf32>, %y: tensor<64x8xf32>, %v: tensor<64xf32>, %i: tensor<64xi64>) -> (tensor<64xi64>, tensor<64xi64>, tensor<64xi64>) {
  %p:2 = iree_linalg_ext.arg_compare dimension(0) ins(%x : tensor<64x64xf32>) outs(%v, %i : tensor<64xf32>, tensor<64xi64>) {
  ^bb0(%l: f32, %m: f32):
    %c = arith.cmpf ogt, %l, %m : f32
    iree_linalg_ext.yield %c : i1
  } -> tensor<64xf32>, tensor<64xi64>
  %q:2 = iree_linalg_ext.arg_compare dimension(1) ins(%x : tensor<64x64xf32>) outs(%v, %i : tensor<64xf32>, tensor<64xi64>) {
  ^bb0(%l: f32, %m: f32):
    %c = arith.cmpf oge, %l, %m : f32
    iree_linalg_ext.yield %c : i1
  } -> tensor<64xf32>, tensor<64xi64>
  %r:2 = iree_linalg_ext.arg_compare dimension(1) ins(%y : tensor<64x8xf32>) outs(%v, %i : tensor<64xf32>, tensor<64xi64>) {
  ^bb0(%l: f32, %m: f32):
    %c = arith.cmpf ogt, %l, %m : f32
    iree_linalg_ext.yield %c : i1
  } -> tensor<64xf32>, tensor<64xi64>
  return %p#1, %q#1, %r#1 : tensor<64xi64>, tensor<64xi64>, tensor<64xi64>
}

// A NaN is above every number and below it, too: the winner depends on the order of the comparisons.
// CHECK-LABEL: func.func @no_split_unordered
// CHECK:         iree_linalg_ext.arg_compare dimension(0)
func.func @no_split_unordered(%x: tensor<64xf32>, %v: tensor<f32>, %i: tensor<i64>) -> (tensor<f32>, tensor<i64>) {
  %r:2 = iree_linalg_ext.arg_compare dimension(0) ins(%x : tensor<64xf32>) outs(%v, %i : tensor<f32>, tensor<i64>) {
  ^bb0(%l: f32, %m: f32):
    %c = arith.cmpf ugt, %l, %m : f32
    iree_linalg_ext.yield %c : i1
  } -> tensor<f32>, tensor<i64>
  return %r#0, %r#1 : tensor<f32>, tensor<i64>
}
