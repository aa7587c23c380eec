// RUN: xdsl-opt %s -p irees-resolve-shaped-type-result-dims | filecheck %s

// The dim of a result is that of its init.
// CHECK-LABEL: func.func @init
// CHECK:         %[[D:.*]] = tensor.dim %o, %{{.*}} : tensor<?xf32>
// CHECK-NEXT:    func.return %[[D]]
func.func @init(%a: tensor<?xf32>, %o: tensor<?xf32>) -> (index, tensor<?xf32>) {
  %r = linalg.generic {indexing_maps = [affine_map<(d0) -> (d0)>, affine_map<(d0) -> (d0)>], iterator_types = ["parallel"]} ins(%a : tensor<?xf32>) outs(%o : tensor<?xf32>) {
  ^bb0(%x: f32, %y: f32):
    linalg.yield %x : f32
  } -> tensor<?xf32>
  %c0 = arith.constant 0 : index
  %d = tensor.dim %r, %c0 : tensor<?xf32>
  return %d, %r : index, tensor<?xf32>
}

// A static dim is a constant.
// CHECK-LABEL: func.func @static
// CHECK-NOT:     tensor.dim
// CHECK:         %[[D:.*]] = arith.constant 4 : index
// CHECK-NEXT:    func.return %[[D]]
func.func @static(%a: tensor<?x4xf32>) -> index {
  %c1 = arith.constant 1 : index
  %d = tensor.dim %a, %c1 : tensor<?x4xf32>
  return %d : index
}

// Concatenation adds up.
// CHECK-LABEL: func.func @concat
// CHECK:         %[[A:.*]] = tensor.dim %a
// CHECK:         %[[B:.*]] = tensor.dim %b
// CHECK-NEXT:    %[[D:.*]] = arith.addi %[[A]], %[[B]] : index
// CHECK-NEXT:    func.return %[[D]]
func.func @concat(%a: tensor<?xf32>, %b: tensor<?xf32>) -> index {
  %c = tensor.concat dim(0) %a, %b : (tensor<?xf32>, tensor<?xf32>) -> tensor<?xf32>
  %c0 = arith.constant 0 : index
  %d = tensor.dim %c, %c0 : tensor<?xf32>
  return %d : index
}

// A slice has the size that it was asked for, an empty tensor the one it was given.
// CHECK-LABEL: func.func @sizes
// CHECK:         func.return %n, %m
func.func @sizes(%n: index, %m: index) -> (index, index) {
  %e = tensor.empty(%n) : tensor<?xf32>
  %s = tensor.extract_slice %e[0] [%m] [1] : tensor<?xf32> to tensor<?xf32>
  %c0 = arith.constant 0 : index
  %d = tensor.dim %e, %c0 : tensor<?xf32>
  %f = tensor.dim %s, %c0 : tensor<?xf32>
  return %d, %f : index, index
}

// Collapsing multiplies.
// CHECK-LABEL: func.func @collapse
// CHECK:         %[[A:.*]] = tensor.dim %a
// CHECK:         %[[D:.*]] = arith.muli %{{.*}}, %[[A]] : index
// CHECK-NEXT:    func.return %[[D]]
func.func @collapse(%a: tensor<?x4xf32>) -> index {
  %c = tensor.collapse_shape %a [[0, 1]] : tensor<?x4xf32> into tensor<?xf32>
  %c0 = arith.constant 0 : index
  %d = tensor.dim %c, %c0 : tensor<?xf32>
  return %d : index
}

// The dim of an argument is where every size comes from.
// CHECK-LABEL: func.func @no_argument
// CHECK:         tensor.dim %a
func.func @no_argument(%a: tensor<?xf32>) -> index {
  %c0 = arith.constant 0 : index
  %d = tensor.dim %a, %c0 : tensor<?xf32>
  return %d : index
}

// An index that is no constant chooses among all dims.
// CHECK-LABEL: func.func @any_index
// CHECK:         %[[D:.*]] = tensor.dim %a
// CHECK:         %[[HERE:.*]] = arith.cmpi eq, %i, %{{.*}} : index
// CHECK-NEXT:    %[[R:.*]] = arith.select %[[HERE]], %[[D]], %{{.*}} : index
// CHECK-NEXT:    func.return %[[R]]
func.func @any_index(%a: tensor<?x4xf32>, %i: index) -> index {
  %d = tensor.dim %a, %i : tensor<?x4xf32>
  return %d : index
}

// Padding adds both widths.
// CHECK-LABEL: func.func @pad
// CHECK:         %[[D:.*]] = tensor.dim %a
// CHECK-NEXT:    %[[LOW:.*]] = arith.addi %[[D]], %l : index
// CHECK-NEXT:    %[[TWO:.*]] = arith.constant 2 : index
// CHECK-NEXT:    %[[R:.*]] = arith.addi %[[LOW]], %[[TWO]] : index
// CHECK-NEXT:    func.return %[[R]]
func.func @pad(%a: tensor<?xf32>, %l: index, %z: f32) -> index {
  %p = tensor.pad %a low[%l] high[2] {
  ^bb0(%i: index):
    tensor.yield %z : f32
  } : tensor<?xf32> to tensor<?xf32>
  %c0 = arith.constant 0 : index
  %d = tensor.dim %p, %c0 : tensor<?xf32>
  return %d : index
}
