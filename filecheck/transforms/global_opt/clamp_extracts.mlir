// RUN: xdsl-opt %s -p irees-clamp-extracts | filecheck %s

// What a body reads at the index of a loop may be shorter than the loop: then the index is moved.
// CHECK-LABEL: func.func @extract
// CHECK-NOT:     cf.assert
// CHECK:         %[[T:.*]] = tensor.dim %t
// CHECK:         %[[LAST:.*]] = arith.subi %[[T]], %{{.*}} : index
// CHECK:         linalg.generic
// CHECK:         %[[I:.*]] = linalg.index 0 : index
// CHECK-NEXT:    %[[ROW:.*]] = arith.minsi %[[I]], %[[LAST]] : index
// CHECK-NEXT:    %[[ZERO:.*]] = arith.constant 0 : index
// CHECK-NEXT:    %[[COLUMN:.*]] = arith.minsi %[[I]], %[[ZERO]] : index
// CHECK-NEXT:    tensor.extract %t[%[[ROW]], %[[COLUMN]]]
func.func @extract(%t: tensor<?x1xf32>, %o: tensor<?xf32>) -> tensor<?xf32> {
  %r = linalg.generic {indexing_maps = [affine_map<(d0) -> (d0)>], iterator_types = ["parallel"]} outs(%o : tensor<?xf32>) {
  ^bb0(%p: f32):
    %i = linalg.index 0 : index
    %v = tensor.extract %t[%i, %i] : tensor<?x1xf32>
    linalg.yield %v : f32
  } -> tensor<?xf32>
  return %r : tensor<?xf32>
}

// A loop that is as long as what it reads needs nothing.
// CHECK-LABEL: func.func @no_extract
// CHECK-NOT:     arith.minsi
// CHECK:         func.return
func.func @no_extract(%t: tensor<?x4xf32>, %u: tensor<5xf32>) -> tensor<?x4xf32> {
  %c0 = arith.constant 0 : index
  %n = tensor.dim %t, %c0 : tensor<?x4xf32>
  %e = tensor.empty(%n) : tensor<?x4xf32>
  %r = linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>], iterator_types = ["parallel", "parallel"]} outs(%e : tensor<?x4xf32>) {
  ^bb0(%p: f32):
    %i = linalg.index 0 : index
    %j = linalg.index 1 : index
    %v = tensor.extract %t[%i, %j] : tensor<?x4xf32>
    %w = tensor.extract %u[%j] : tensor<5xf32>
    %x = arith.addf %v, %w : f32
    linalg.yield %x : f32
  } -> tensor<?x4xf32>
  return %r : tensor<?x4xf32>
}

// An assert requires that %t has rows, so that its loads need no branch for an empty tensor.
// CHECK-LABEL: func.func @rows
// CHECK:         tensor.extract %t[%{{.*}}, %{{.*}}] {irees.not_empty}
func.func @rows(%t: tensor<?x4xf32>, %x: tensor<?xindex>, %o: tensor<?x4xf32>) -> tensor<?x4xf32> {
  %c0 = arith.constant 0 : index
  %n = tensor.dim %t, %c0 : tensor<?x4xf32>
  %some = arith.cmpi sgt, %n, %c0 : index
  cf.assert %some, "no rows"
  %r = linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d0)>, affine_map<(d0, d1) -> (d0, d1)>], iterator_types = ["parallel", "parallel"]} ins(%x : tensor<?xindex>) outs(%o : tensor<?x4xf32>) {
  ^bb0(%i: index, %p: f32):
    %j = linalg.index 1 : index
    %v = tensor.extract %t[%i, %j] : tensor<?x4xf32>
    linalg.yield %v : f32
  } -> tensor<?x4xf32>
  return %r : tensor<?x4xf32>
}

// The body aborts at an index out of bounds: if %t is empty, any iteration does. One assert serves
// both loads.
// CHECK-LABEL: func.func @asserted
// CHECK:         %[[SOME:.*]] = arith.cmpi sgt, %{{.*}}, %{{.*}} : index
// CHECK-NEXT:    %[[NONE:.*]] = arith.cmpi eq, %{{.*}}, %{{.*}} : index
// CHECK-NEXT:    %[[FINE:.*]] = arith.ori %[[SOME]], %[[NONE]] : i1
// CHECK-NEXT:    cf.assert %[[FINE]], "an index is out of bounds for a dim of size 0"
// CHECK-NOT:     of size 0
// CHECK:         tensor.extract %t[%{{.*}}] {irees.not_empty}
// CHECK-NEXT:    tensor.extract %t[%{{.*}}] {irees.not_empty}
func.func @asserted(%t: tensor<?xf32>, %x: tensor<?xindex>, %o: tensor<?xf32>) -> tensor<?xf32> {
  %c0 = arith.constant 0 : index
  %n = tensor.dim %t, %c0 : tensor<?xf32>
  %r = linalg.generic {indexing_maps = [affine_map<(d0) -> (d0)>, affine_map<(d0) -> (d0)>], iterator_types = ["parallel"]} ins(%x : tensor<?xindex>) outs(%o : tensor<?xf32>) {
  ^bb0(%i: index, %p: f32):
    %zero = arith.constant 0 : index
    %low = arith.cmpi sge, %i, %zero : index
    %high = arith.cmpi slt, %i, %n : index
    %both = arith.andi %low, %high : i1
    cf.assert %both, "out of bounds"
    %v = tensor.extract %t[%i] : tensor<?xf32>
    %w = tensor.extract %t[%i] : tensor<?xf32>
    %y = arith.addf %v, %w : f32
    linalg.yield %y : f32
  } -> tensor<?xf32>
  return %r : tensor<?xf32>
}

// Nothing says that %t has elements. An assert about another size, or one that allows 0, does not.
// CHECK-LABEL: func.func @no_rows
// CHECK-NOT:     irees.not_empty
// CHECK:         func.return
func.func @no_rows(%t: tensor<?xf32>, %x: tensor<?xindex>, %o: tensor<?xf32>) -> tensor<?xf32> {
  %c0 = arith.constant 0 : index
  %n = tensor.dim %t, %c0 : tensor<?xf32>
  %m = tensor.dim %x, %c0 : tensor<?xindex>
  %other = arith.cmpi sgt, %m, %c0 : index
  cf.assert %other, "no indices"
  %any = arith.cmpi sge, %n, %c0 : index
  cf.assert %any, "negative"
  %none = arith.cmpi eq, %n, %c0 : index
  %either = arith.ori %none, %other : i1
  cf.assert %either, "neither"
  %some = arith.cmpi sgt, %n, %c0 : index
  %one = arith.ori %some, %other : i1
  cf.assert %one, "neither, nor"
  %r = linalg.generic {indexing_maps = [affine_map<(d0) -> (d0)>, affine_map<(d0) -> (d0)>], iterator_types = ["parallel"]} ins(%x : tensor<?xindex>) outs(%o : tensor<?xf32>) {
  ^bb0(%i: index, %p: f32):
    %v = tensor.extract %t[%i] : tensor<?xf32>
    linalg.yield %v : f32
  } -> tensor<?xf32>
  return %r : tensor<?xf32>
}

// A reversed row has an index for each of its elements: nothing is clamped, and an empty row has no
// iteration. Shifted by one more, the index is out of bounds once.
// CHECK-LABEL: func.func @reversed
// CHECK:         tensor.extract %t[%{{.*}}] {irees.in_bounds = array<i64: 0>}
// CHECK-NEXT:    arith.addi
// CHECK-NEXT:    tensor.extract %t[%{{.*}}] : tensor<?xf32>
func.func @reversed(%t: tensor<?xf32>) -> tensor<?xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %n = tensor.dim %t, %c0 : tensor<?xf32>
  %last = arith.subi %n, %c1 : index
  %e = tensor.empty(%n) : tensor<?xf32>
  %r = linalg.generic {indexing_maps = [affine_map<(d0) -> (d0)>], iterator_types = ["parallel"]} outs(%e : tensor<?xf32>) {
  ^bb0(%p: f32):
    %i = linalg.index 0 : index
    %at = arith.subi %last, %i : index
    %v = tensor.extract %t[%at] : tensor<?xf32>
    %behind = arith.addi %at, %c1 : index
    %w = tensor.extract %t[%behind] : tensor<?xf32>
    %y = arith.addf %v, %w : f32
    linalg.yield %y : f32
  } -> tensor<?xf32>
  return %r : tensor<?xf32>
}

// An assert says that the loop is not longer than %t; %u may be shorter.
// CHECK-LABEL: func.func @shorter
// CHECK:         %[[I:.*]] = linalg.index 0 : index
// CHECK-NEXT:    tensor.extract %t[%[[I]]] : tensor<?xf32>
// CHECK-NEXT:    %[[LAST:.*]] = arith.minsi %[[I]], %{{.*}} : index
// CHECK-NEXT:    tensor.extract %u[%[[LAST]]]
func.func @shorter(%t: tensor<?xf32>, %u: tensor<?xf32>, %o: tensor<?xf32>) -> tensor<?xf32> {
  %c0 = arith.constant 0 : index
  %n = tensor.dim %t, %c0 : tensor<?xf32>
  %m = tensor.dim %u, %c0 : tensor<?xf32>
  %k = tensor.dim %o, %c0 : tensor<?xf32>
  %longer = arith.cmpi sge, %n, %k : index
  cf.assert %longer, "too short"
  %other = arith.cmpi sge, %k, %m : index
  cf.assert %other, "too long"
  %r = linalg.generic {indexing_maps = [affine_map<(d0) -> (d0)>], iterator_types = ["parallel"]} outs(%o : tensor<?xf32>) {
  ^bb0(%p: f32):
    %i = linalg.index 0 : index
    %v = tensor.extract %t[%i] : tensor<?xf32>
    %w = tensor.extract %u[%i] : tensor<?xf32>
    %y = arith.addf %v, %w : f32
    linalg.yield %y : f32
  } -> tensor<?xf32>
  return %r : tensor<?xf32>
}
