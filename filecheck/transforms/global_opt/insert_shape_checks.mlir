// RUN: xdsl-opt %s -p irees-insert-shape-checks | filecheck %s

// Two dynamic dims of one loop are asserted to be equal.
// CHECK-LABEL: func.func @equal
// CHECK:         %[[A:.*]] = tensor.dim %a
// CHECK:         %[[B:.*]] = tensor.dim %b
// CHECK:         %[[OK:.*]] = arith.cmpi eq, %[[B]], %[[A]] : index
// CHECK-NEXT:    cf.assert %[[OK]], "dim 0 of operand 1 must equal dim 0 of operand 0 of linalg.generic"
// CHECK-NEXT:    linalg.generic
func.func @equal(%a: tensor<?xf32>, %b: tensor<?xf32>) -> tensor<?xf32> {
  %r = linalg.generic {indexing_maps = [affine_map<(d0) -> (d0)>, affine_map<(d0) -> (d0)>], iterator_types = ["parallel"]} ins(%a : tensor<?xf32>) outs(%b : tensor<?xf32>) {
  ^bb0(%x: f32, %o: f32):
    linalg.yield %x : f32
  } -> tensor<?xf32>
  return %r : tensor<?xf32>
}

// A dynamic dim must have the size of a static one.
// CHECK-LABEL: func.func @static_and_dynamic
// CHECK:         %[[B:.*]] = tensor.dim %b
// CHECK:         %[[FOUR:.*]] = arith.constant 4 : index
// CHECK-NEXT:    %[[OK:.*]] = arith.cmpi eq, %[[B]], %[[FOUR]] : index
// CHECK-NEXT:    cf.assert %[[OK]]
func.func @static_and_dynamic(%a: tensor<4xf32>, %b: tensor<?xf32>) -> tensor<?xf32> {
  %r = linalg.generic {indexing_maps = [affine_map<(d0) -> (d0)>, affine_map<(d0) -> (d0)>], iterator_types = ["parallel"]} ins(%a : tensor<4xf32>) outs(%b : tensor<?xf32>) {
  ^bb0(%x: f32, %o: f32):
    linalg.yield %x : f32
  } -> tensor<?xf32>
  return %r : tensor<?xf32>
}

// The last window must lie inside: (out - 1) * 2 + (w - 1) + 1 <= in. Without windows there is none.
// CHECK-LABEL: func.func @window
// CHECK:         %[[OUT:.*]] = tensor.dim %o
// CHECK:         %[[X:.*]] = tensor.dim %x
// CHECK:         %[[LAST:.*]] = arith.subi %[[OUT]], %{{.*}} : index
// CHECK:         %[[AT:.*]] = arith.muli %[[LAST]], %{{.*}} : index
// CHECK:         %[[END:.*]] = arith.addi %[[AT]], %{{.*}} : index
// CHECK:         %[[REACH:.*]] = arith.addi %[[END]], %{{.*}} : index
// CHECK:         %[[INSIDE:.*]] = arith.cmpi sle, %[[REACH]], %[[X]] : index
// CHECK:         %[[NONE:.*]] = arith.cmpi eq, %[[OUT]], %{{.*}} : index
// CHECK-NEXT:    %[[OK:.*]] = arith.ori %[[INSIDE]], %[[NONE]] : i1
// CHECK-NEXT:    cf.assert %[[OK]], "the window of linalg.generic must lie inside dim 0 of operand 0"
func.func @window(%x: tensor<?xf32>, %w: tensor<3xf32>, %o: tensor<?xf32>) -> tensor<?xf32> {
  %r = linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d0 * 2 + d1)>, affine_map<(d0, d1) -> (d1)>, affine_map<(d0, d1) -> (d0)>], iterator_types = ["parallel", "reduction"]} ins(%x, %w : tensor<?xf32>, tensor<3xf32>) outs(%o : tensor<?xf32>) {
  ^bb0(%a: f32, %b: f32, %c: f32):
    %m = arith.mulf %a, %b : f32
    %s = arith.addf %c, %m : f32
    linalg.yield %s : f32
  } -> tensor<?xf32>
  return %r : tensor<?xf32>
}

// A slice ends inside its operand and starts at no negative place.
// CHECK-LABEL: func.func @slice
// CHECK:         %[[END:.*]] = arith.addi %at, %{{.*}} : index
// CHECK:         %[[INSIDE:.*]] = arith.cmpi sle, %[[END]], %{{.*}} : index
// CHECK-NEXT:    cf.assert %[[INSIDE]], "the slice of tensor.extract_slice must lie inside dim 0"
// CHECK:         %[[POSITIVE:.*]] = arith.cmpi sle, %{{.*}}, %at : index
// CHECK-NEXT:    cf.assert %[[POSITIVE]], "an offset or size of tensor.extract_slice is negative"
// CHECK:         %[[SMALL:.*]] = arith.cmpi sle, %at, %{{.*}} : index
// CHECK-NEXT:    cf.assert %[[SMALL]], "an offset or size of tensor.extract_slice is too large"
func.func @slice(%x: tensor<8xf32>, %at: index) -> tensor<4xf32> {
  %r = tensor.extract_slice %x[%at] [4] [1] : tensor<8xf32> to tensor<4xf32>
  return %r : tensor<4xf32>
}

// So does an insertion.
// CHECK-LABEL: func.func @insertion
// CHECK:         %[[X:.*]] = tensor.dim %x
// CHECK:         %[[SAME:.*]] = arith.cmpi eq, %[[X]], %n : index
// CHECK-NEXT:    cf.assert %[[SAME]], "dim 0 of operand 0 must equal the size of the slice of tensor.insert_slice"
// CHECK:         cf.assert %{{.*}}, "the slice of tensor.insert_slice must lie inside dim 0"
// CHECK:         %[[POSITIVE:.*]] = arith.cmpi sle, %{{.*}}, %n : index
// CHECK-NEXT:    cf.assert %[[POSITIVE]], "an offset or size of tensor.insert_slice is negative"
func.func @insertion(%x: tensor<?xf32>, %y: tensor<8xf32>, %n: index) -> tensor<8xf32> {
  %r = tensor.insert_slice %x into %y[2] [%n] [1] : tensor<?xf32> into tensor<8xf32>
  return %r : tensor<8xf32>
}

// The first K of a row are no more than there are; the other dims agree.
// CHECK-LABEL: func.func @topk
// CHECK:         %[[FITS:.*]] = arith.cmpi sle, %{{.*}}, %{{.*}} : index
// CHECK-NEXT:    cf.assert %[[FITS]], "dim 0 of operand 1 must be at most dim 0 of operand 0 of iree_linalg_ext.topk_v2"
// CHECK-NEXT:    iree_linalg_ext.topk_v2
func.func @topk(%x: tensor<?xf32>, %v: tensor<?xf32>) -> tensor<?xf32> {
  %s = iree_linalg_ext.topk_v2 dimension(0) ins(%x : tensor<?xf32>) outs(%v : tensor<?xf32>) {
  ^bb0(%a: f32, %b: f32):
    %more = arith.cmpf ogt, %a, %b : f32
    iree_linalg_ext.yield %more : i1
  } -> tensor<?xf32>
  return %s : tensor<?xf32>
}

// All operands of a sort have one shape.
// CHECK-LABEL: func.func @sort
// CHECK:         cf.assert %{{.*}}, "dim 0 of operand 1 must equal dim 0 of operand 0 of iree_linalg_ext.sort"
func.func @sort(%x: tensor<?xf32>, %y: tensor<?xi32>) -> (tensor<?xf32>, tensor<?xi32>) {
  %s:2 = iree_linalg_ext.sort dimension(0) outs(%x, %y : tensor<?xf32>, tensor<?xi32>) {
  ^bb0(%a: f32, %b: f32, %c: i32, %d: i32):
    %less = arith.cmpf olt, %a, %b : f32
    iree_linalg_ext.yield %less : i1
  } -> tensor<?xf32>, tensor<?xi32>
  return %s#0, %s#1 : tensor<?xf32>, tensor<?xi32>
}

// Static shapes were checked when the program was verified.
// CHECK-LABEL: func.func @no_static
// CHECK-NOT:     cf.assert
// CHECK:         func.return
func.func @no_static(%a: tensor<4xf32>, %b: tensor<4xf32>) -> tensor<4xf32> {
  %r = linalg.generic {indexing_maps = [affine_map<(d0) -> (d0)>, affine_map<(d0) -> (d0)>], iterator_types = ["parallel"]} ins(%a : tensor<4xf32>) outs(%b : tensor<4xf32>) {
  ^bb0(%x: f32, %o: f32):
    linalg.yield %x : f32
  } -> tensor<4xf32>
  return %r : tensor<4xf32>
}

// The init has the size of the operand because it is made from it.
// CHECK-LABEL: func.func @no_same_value
// CHECK-NOT:     cf.assert
// CHECK:         func.return
func.func @no_same_value(%a: tensor<?xf32>) -> tensor<?xf32> {
  %c0 = arith.constant 0 : index
  %d = tensor.dim %a, %c0 : tensor<?xf32>
  %e = tensor.empty(%d) : tensor<?xf32>
  %1 = linalg.generic {indexing_maps = [affine_map<(d0) -> (d0)>, affine_map<(d0) -> (d0)>], iterator_types = ["parallel"]} ins(%e : tensor<?xf32>) outs(%e : tensor<?xf32>) {
  ^bb0(%x: f32, %o: f32):
    linalg.yield %x : f32
  } -> tensor<?xf32>
  return %1 : tensor<?xf32>
}

// The ends of an index: 2 - (n - 1) is the least, 2 the largest.
// CHECK-LABEL: func.func @downwards
// CHECK:         %[[N:.*]] = tensor.dim %o
// CHECK:         %[[LAST:.*]] = arith.subi %[[N]], %{{.*}} : index
// CHECK:         %[[BACK:.*]] = arith.muli %[[LAST]], %{{.*}} : index
// CHECK:         %[[LOW:.*]] = arith.addi %{{.*}}, %[[BACK]] : index
// CHECK:         %[[INSIDE:.*]] = arith.cmpi sle, %{{.*}}, %[[LOW]] : index
// CHECK:         cf.assert %{{.*}}, "the window of linalg.generic must lie inside dim 0 of operand 0"
// CHECK:         cf.assert %{{.*}}, "the window of linalg.generic must lie inside dim 0 of operand 0"
// CHECK-NEXT:    linalg.generic
func.func @downwards(%x: tensor<?xf32>, %o: tensor<?xf32>) -> tensor<?xf32> {
  %r = linalg.generic {indexing_maps = [affine_map<(i) -> (2 - i)>, affine_map<(i) -> (i)>], iterator_types = ["parallel"]} ins(%x : tensor<?xf32>) outs(%o : tensor<?xf32>) {
  ^bb0(%a: f32, %b: f32):
    linalg.yield %a : f32
  } -> tensor<?xf32>
  return %r : tensor<?xf32>
}

// i mod 3 + 5 reaches min(n - 1, 2) + 5.
// CHECK-LABEL: func.func @modulo
// CHECK:         %[[REST:.*]] = arith.minsi %{{.*}}, %{{.*}} : index
// CHECK:         %[[HIGH:.*]] = arith.addi %[[REST]], %{{.*}} : index
// CHECK:         cf.assert
func.func @modulo(%x: tensor<?xf32>, %o: tensor<?xf32>) -> tensor<?xf32> {
  %r = linalg.generic {indexing_maps = [affine_map<(i) -> (i mod 3 + 5)>, affine_map<(i) -> (i)>], iterator_types = ["parallel"]} ins(%x : tensor<?xf32>) outs(%o : tensor<?xf32>) {
  ^bb0(%a: f32, %b: f32):
    linalg.yield %a : f32
  } -> tensor<?xf32>
  return %r : tensor<?xf32>
}

// Ends that are not known: each point is looked at.
// CHECK-LABEL: func.func @each_point
// CHECK:         scf.for %[[I:.*]] = %{{.*}} to %{{.*}} step
// CHECK:           %[[AT:.*]] = arith.remui
// CHECK:           %[[INSIDE:.*]] = arith.cmpi sle, %{{.*}}, %[[AT]] : index
// CHECK-NEXT:      cf.assert %{{.*}}, "the window of linalg.generic must lie inside dim 0 of operand 0"
// CHECK:         }
// CHECK:         linalg.generic
func.func @each_point(%x: tensor<?xf32>, %o: tensor<?xf32>) -> tensor<?xf32> {
  %r = linalg.generic {indexing_maps = [affine_map<(i) -> ((i * 3) mod 6)>, affine_map<(i) -> (i)>], iterator_types = ["parallel"]} ins(%x : tensor<?xf32>) outs(%o : tensor<?xf32>) {
  ^bb0(%a: f32, %b: f32):
    linalg.yield %a : f32
  } -> tensor<?xf32>
  return %r : tensor<?xf32>
}

// A row of no columns has no column 0.
// CHECK-LABEL: func.func @column_of_none
// CHECK:         %[[D:.*]] = tensor.dim %x
// CHECK:         %[[OK:.*]] = arith.cmpi sle, %{{.*}}, %[[D]] : index
// CHECK-NEXT:    cf.assert %[[OK]], "the window of linalg.generic must lie inside dim 1 of operand 0"
func.func @column_of_none(%x: tensor<3x?xf32>, %o: tensor<3xf32>) -> tensor<3xf32> {
  %r = linalg.generic {indexing_maps = [affine_map<(i) -> (i, 0)>, affine_map<(i) -> (i)>], iterator_types = ["parallel"]} ins(%x : tensor<3x?xf32>) outs(%o : tensor<3xf32>) {
  ^bb0(%a: f32, %b: f32):
    linalg.yield %a : f32
  } -> tensor<3xf32>
  return %r : tensor<3xf32>
}

// CHECK-LABEL: func.func @cast
// CHECK:         cf.assert %{{.*}}, "dim 0 of the result of tensor.cast must be 4"
func.func @cast(%x: tensor<?xf32>) -> tensor<4xf32> {
  %r = tensor.cast %x : tensor<?xf32> to tensor<4xf32>
  return %r : tensor<4xf32>
}

// CHECK-LABEL: func.func @expand
// CHECK:         arith.cmpi sle, %{{.*}}, %n : index
// CHECK:         cf.assert %{{.*}}, "a size of tensor.expand_shape is negative"
// CHECK:         %[[LEFT:.*]] = arith.divui %{{.*}}, %{{.*}} : index
// CHECK:         arith.cmpi sle, %n, %[[LEFT]] : index
// CHECK:         cf.assert %{{.*}}, "dim 0 of operand 0 must be the product of dims [0, 1] of tensor.expand_shape"
// CHECK:         %[[COUNT:.*]] = arith.muli %{{.*}}, %n : index
// CHECK:         %[[SAME:.*]] = arith.cmpi eq, %[[COUNT]], %{{.*}} : index
// CHECK:         cf.assert %[[SAME]], "dim 0 of operand 0 must be the product of dims [0, 1] of tensor.expand_shape"
func.func @expand(%x: tensor<?xf32>, %n: index) -> tensor<?x4xf32> {
  %r = tensor.expand_shape %x [[0, 1]] output_shape [%n, 4] : tensor<?xf32> into tensor<?x4xf32>
  return %r : tensor<?x4xf32>
}

// CHECK-LABEL: func.func @concat
// CHECK:         cf.assert %{{.*}}, "dim 1 of operand 1 must equal dim 1 of operand 0 of tensor.concat"
// CHECK:         cf.assert %{{.*}}, "dim 0 of the result of tensor.concat must be 7"
func.func @concat(%x: tensor<?x?xf32>, %y: tensor<?x?xf32>) -> tensor<7x?xf32> {
  %r = tensor.concat dim(0) %x, %y : (tensor<?x?xf32>, tensor<?x?xf32>) -> tensor<7x?xf32>
  return %r : tensor<7x?xf32>
}

// Of no points of the reduction, the output, which all of them share, is not read.
// CHECK-LABEL: func.func @shared_by_a_reduction
// CHECK:         cf.assert %{{.*}}, "the window of linalg.generic must lie inside dim 0 of operand 1"
// CHECK:         %[[SOME:.*]] = arith.cmpi slt, %{{.*}}, %{{.*}} : index
// CHECK-NEXT:    scf.if %[[SOME]] -> (tensor<?xf32>) {
// CHECK:           %[[R:.*]] = linalg.generic
// CHECK:           scf.yield %[[R]]
// CHECK-NEXT:    } else {
// CHECK-NEXT:      scf.yield %o
func.func @shared_by_a_reduction(%x: tensor<?xf32>, %o: tensor<?xf32>) -> tensor<?xf32> {
  %r = linalg.generic {indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (9)>], iterator_types = ["reduction"]} ins(%x : tensor<?xf32>) outs(%o : tensor<?xf32>) {
  ^bb0(%a: f32, %b: f32):
    %s = arith.addf %a, %b : f32
    linalg.yield %s : f32
  } -> tensor<?xf32>
  return %r : tensor<?xf32>
}

// The index of a dim that is no constant must be the number of one.
// CHECK-LABEL: func.func @dim
// CHECK:         arith.cmpi sle, %{{.*}}, %i : index
// CHECK:         arith.cmpi sle, %i, %{{.*}} : index
// CHECK-NEXT:    cf.assert %{{.*}}, "the index of tensor.dim must be in [0, 1]"
// CHECK-NOT:     cf.assert
func.func @dim(%x: tensor<?x4xf32>, %i: index) -> index {
  %a = tensor.dim %x, %i : tensor<?x4xf32>
  return %a : index
}
