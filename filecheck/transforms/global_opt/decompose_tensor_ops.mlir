// RUN: xdsl-opt %s -p irees-decompose-tensor-ops | filecheck %s

// A constant pad is a fill with the source inserted behind the low padding.
// CHECK-LABEL: func.func @pad
// CHECK:         %[[FILL:.*]] = linalg.generic {{.*}} ins(%zero : f32) outs(%{{.*}} : tensor<4x10xf32>)
// CHECK:         %[[P:.*]] = tensor.insert_slice %x into %[[FILL]][0, 1] [4, 8] [1, 1] : tensor<4x8xf32> into tensor<4x10xf32>
// CHECK-NEXT:    func.return %[[P]]
func.func @pad(%x: tensor<4x8xf32>) -> tensor<4x10xf32> {
  %zero = arith.constant 0.0 : f32
  %p = tensor.pad %x low[0, 1] high[0, 1] {
  ^bb0(%i: index, %j: index):
    tensor.yield %zero : f32
  } : tensor<4x8xf32> to tensor<4x10xf32>
  return %p : tensor<4x10xf32>
}

// The size of a dynamic pad is source + low + high; its offset is the value of low.
// CHECK-LABEL: func.func @pad_dynamic
// CHECK:         %[[DIM:.*]] = tensor.dim %x
// CHECK:         %[[SUM:.*]] = arith.addi %[[DIM]], %low : index
// CHECK:         %[[SIZE:.*]] = arith.addi %[[SUM]], %{{.*}} : index
// CHECK:         %[[EMPTY:.*]] = tensor.empty(%[[SIZE]]) : tensor<?xf32>
// CHECK:         %[[FILL:.*]] = linalg.generic {{.*}} ins(%zero : f32) outs(%[[EMPTY]] : tensor<?xf32>)
// CHECK:         tensor.insert_slice %x into %[[FILL]][%low] [%{{.*}}] [1] : tensor<?xf32> into tensor<?xf32>
func.func @pad_dynamic(%x: tensor<?xf32>, %low: index) -> tensor<?xf32> {
  %zero = arith.constant 0.0 : f32
  %p = tensor.pad %x low[%low] high[3] {
  ^bb0(%i: index):
    tensor.yield %zero : f32
  } : tensor<?xf32> to tensor<?xf32>
  return %p : tensor<?xf32>
}

// A pad value that depends on the position is generated under the source.
// CHECK-LABEL: func.func @pad_by_position
// CHECK:         %[[G:.*]] = linalg.generic {{.*}} outs(%{{.*}} : tensor<6xindex>) {
// CHECK:         %[[I:.*]] = linalg.index 0 : index
// CHECK-NEXT:      %[[D:.*]] = arith.addi %[[I]], %[[I]] : index
// CHECK-NEXT:      linalg.yield %[[D]] : index
// CHECK:         tensor.insert_slice %x into %[[G]][1] [4] [1] : tensor<4xindex> into tensor<6xindex>
func.func @pad_by_position(%x: tensor<4xindex>) -> tensor<6xindex> {
  %p = tensor.pad %x low[1] high[1] {
  ^bb0(%i: index):
    %d = arith.addi %i, %i : index
    tensor.yield %d : index
  } : tensor<4xindex> to tensor<6xindex>
  return %p : tensor<6xindex>
}

// One insertion for each operand, at the sum of the sizes before it.
// CHECK-LABEL: func.func @concat
// CHECK-NEXT:    %[[E:.*]] = tensor.empty() : tensor<4x5xf32>
// CHECK-NEXT:    %[[A:.*]] = tensor.insert_slice %a into %[[E]][0, 0] [4, 2] [1, 1] : tensor<4x2xf32> into tensor<4x5xf32>
// CHECK-NEXT:    %[[B:.*]] = tensor.insert_slice %b into %[[A]][0, 2] [4, 3] [1, 1] : tensor<4x3xf32> into tensor<4x5xf32>
// CHECK-NEXT:    func.return %[[B]]
func.func @concat(%a: tensor<4x2xf32>, %b: tensor<4x3xf32>) -> tensor<4x5xf32> {
  %c = tensor.concat dim(1) %a, %b : (tensor<4x2xf32>, tensor<4x3xf32>) -> tensor<4x5xf32>
  return %c : tensor<4x5xf32>
}

// Dynamic sizes are added up as values.
// CHECK-LABEL: func.func @concat_dynamic
// CHECK:         %[[M:.*]] = tensor.dim %a
// CHECK:         %[[N:.*]] = tensor.dim %b
// CHECK:         %[[SUM:.*]] = arith.addi %[[M]], %[[N]] : index
// CHECK:         %[[E:.*]] = tensor.empty(%[[SUM]]) : tensor<?xf32>
// CHECK:         %[[A:.*]] = tensor.insert_slice %a into %[[E]][0] [%{{.*}}] [1] : tensor<?xf32> into tensor<?xf32>
// CHECK:         %[[AT:.*]] = tensor.dim %a
// CHECK:         tensor.insert_slice %b into %[[A]][%[[AT]]] [%{{.*}}] [1] : tensor<?xf32> into tensor<?xf32>
func.func @concat_dynamic(%a: tensor<?xf32>, %b: tensor<?xf32>) -> tensor<?xf32> {
  %c = tensor.concat dim(0) %a, %b : (tensor<?xf32>, tensor<?xf32>) -> tensor<?xf32>
  return %c : tensor<?xf32>
}

// A splat is a fill of its dynamic size.
// CHECK-LABEL: func.func @splat
// CHECK-NEXT:    %[[E:.*]] = tensor.empty(%n) : tensor<?x4xf32>
// CHECK-NEXT:    linalg.generic {{.*}} ins(%v : f32) outs(%[[E]] : tensor<?x4xf32>)
func.func @splat(%v: f32, %n: index) -> tensor<?x4xf32> {
  %s = tensor.splat %v[%n] : tensor<?x4xf32>
  return %s : tensor<?x4xf32>
}

// The block arguments of a generate are loop indices.
// CHECK-LABEL: func.func @generate
// CHECK-NEXT:    %[[E:.*]] = tensor.empty(%n) : tensor<?x3xindex>
// CHECK-NEXT:    linalg.generic {{.*}} outs(%[[E]] : tensor<?x3xindex>) {
// CHECK:         %[[I:.*]] = linalg.index 0 : index
// CHECK-NEXT:      %[[J:.*]] = linalg.index 1 : index
// CHECK-NEXT:      %[[S:.*]] = arith.addi %[[I]], %[[J]] : index
// CHECK-NEXT:      linalg.yield %[[S]] : index
func.func @generate(%n: index) -> tensor<?x3xindex> {
  %g = tensor.generate %n {
  ^bb0(%i: index, %j: index):
    %s = arith.addi %i, %j : index
    tensor.yield %s : index
  } : tensor<?x3xindex>
  return %g : tensor<?x3xindex>
}

// Slices and reshapes move data as they are.
// CHECK-LABEL: func.func @no_slice
// CHECK-NEXT:    tensor.extract_slice %x[1, 2] [2, 4] [1, 1] : tensor<4x8xf32> to tensor<2x4xf32>
func.func @no_slice(%x: tensor<4x8xf32>) -> tensor<2x4xf32> {
  %s = tensor.extract_slice %x[1, 2] [2, 4] [1, 1] : tensor<4x8xf32> to tensor<2x4xf32>
  return %s : tensor<2x4xf32>
}

// Halves of a short row that an elementwise op reads are selected from.
// CHECK-LABEL: func.func @halves
// CHECK:         %[[S:.*]] = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2) -> (d0, d2)>, affine_map<(d0, d1, d2) -> (d0, d2)>, affine_map<(d0, d1, d2) -> (d0, d1, d2)>], {{.*}} ins(%a, %b : tensor<?x4xf32>, tensor<?x4xf32>) outs(%{{.*}} : tensor<?x2x4xf32>)
// CHECK:           linalg.index 1
// CHECK:           arith.select
// CHECK:         tensor.collapse_shape %[[S]] {{\[\[}}0], [1, 2]] : tensor<?x2x4xf32> into tensor<?x8xf32>
func.func @halves(%a: tensor<?x4xf32>, %b: tensor<?x4xf32>, %e: tensor<?x8xf32>) -> tensor<?x8xf32> {
  %c = tensor.concat dim(1) %a, %b : (tensor<?x4xf32>, tensor<?x4xf32>) -> tensor<?x8xf32>
  %r = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i, j)>], iterator_types = ["parallel", "parallel"]} ins(%c : tensor<?x8xf32>) outs(%e : tensor<?x8xf32>) {
  ^bb0(%x: f32, %o: f32):
    %v = math.exp %x : f32
    linalg.yield %v : f32
  } -> tensor<?x8xf32>
  return %r : tensor<?x8xf32>
}

// The type of the result may know less of its dims.
// CHECK-LABEL: func.func @halves_of_a_dynamic_type
// CHECK:         %[[C:.*]] = tensor.collapse_shape %{{.*}} {{\[\[}}0], [1, 2]] : tensor<3x2x4xf32> into tensor<3x8xf32>
// CHECK-NEXT:    tensor.cast %[[C]] : tensor<3x8xf32> to tensor<3x?xf32>
func.func @halves_of_a_dynamic_type(%a: tensor<3x4xf32>, %e: tensor<3x?xf32>) -> tensor<3x?xf32> {
  %c = tensor.concat dim(1) %a, %a : (tensor<3x4xf32>, tensor<3x4xf32>) -> tensor<3x?xf32>
  %r = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i, j)>], iterator_types = ["parallel", "parallel"]} ins(%c : tensor<3x?xf32>) outs(%e : tensor<3x?xf32>) {
  ^bb0(%x: f32, %o: f32):
    %v = math.exp %x : f32
    linalg.yield %v : f32
  } -> tensor<3x?xf32>
  return %r : tensor<3x?xf32>
}

// Halves that are returned, and parts of other sizes, are inserted.
// CHECK-LABEL: func.func @no_halves
// CHECK-COUNT-2: tensor.insert_slice
func.func @no_halves(%a: tensor<4x4xf32>, %b: tensor<4x4xf32>) -> tensor<4x8xf32> {
  %c = tensor.concat dim(1) %a, %b : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x8xf32>
  return %c : tensor<4x8xf32>
}

// Tensors that are stacked along a new last dim are selected from.
// CHECK-LABEL: func.func @stack
// CHECK:         linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d0, 0)>, affine_map<(d0, d1) -> (d0, 0)>, affine_map<(d0, d1) -> (d0, d1)>]{{.*}} ins(%a, %b : tensor<?x1xf32>, tensor<?x1xf32>) outs(%{{.*}} : tensor<?x2xf32>)
// CHECK:           %[[I:.*]] = linalg.index 1
// CHECK:           %[[Z:.*]] = arith.cmpi eq, %[[I]], %{{.*}} : index
// CHECK:           arith.select %[[Z]], %{{.*}}, %{{.*}} : f32
// CHECK-NOT:     tensor.insert_slice
// CHECK:         return
func.func @stack(%a: tensor<?x1xf32>, %b: tensor<?x1xf32>) -> tensor<?x2xf32> {
  %c = tensor.concat dim(1) %a, %b : (tensor<?x1xf32>, tensor<?x1xf32>) -> tensor<?x2xf32>
  return %c : tensor<?x2xf32>
}
