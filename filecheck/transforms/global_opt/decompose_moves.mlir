// RUN: xdsl-opt %s -p irees-decompose-moves | filecheck %s

// Each part of an index is an operand, read at a constant; the rest are loops.
// CHECK-LABEL: func.func @gather
// CHECK:         %[[R:.*]] = linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d0, 0)>, affine_map<(d0, d1) -> (d0, 1)>, affine_map<(d0, d1) -> (d0, d1)>], iterator_types = ["parallel", "parallel"]} ins(%i, %i : tensor<3x2xi32>, tensor<3x2xi32>) outs(%o : tensor<3x4xf32>) {
// CHECK-NEXT:    ^bb0(%[[A:.*]]: i32, %[[B:.*]]: i32, %{{.*}}: f32):
// CHECK-NEXT:      %[[P:.*]] = arith.index_cast %[[A]] : i32 to index
// CHECK-NEXT:      %[[Q:.*]] = arith.index_cast %[[B]] : i32 to index
// CHECK-NEXT:      %[[J:.*]] = linalg.index 1 : index
// CHECK-NEXT:      %[[V:.*]] = tensor.extract %x[%[[Q]], %[[P]], %[[J]]] : tensor<8x5x4xf32>
// CHECK-NEXT:      linalg.yield %[[V]] : f32
// CHECK:         func.return %[[R]]
func.func @gather(%x: tensor<8x5x4xf32>, %i: tensor<3x2xi32>, %o: tensor<3x4xf32>) -> tensor<3x4xf32> {
  %r = iree_linalg_ext.gather dimension_map = [1, 0] ins(%x, %i : tensor<8x5x4xf32>, tensor<3x2xi32>) outs(%o : tensor<3x4xf32>) -> tensor<3x4xf32>
  return %r : tensor<3x4xf32>
}

// Where the mask is 0 the output stays.
// CHECK-LABEL: func.func @gather_masked
// CHECK:         linalg.generic {{.*}} ins(%i, %m : tensor<?xi64>, tensor<?xi8>) outs(%o : tensor<?x?xf32>) {
// CHECK-NEXT:    ^bb0(%{{.*}}: i64, %[[M:.*]]: i8, %[[OLD:.*]]: f32):
// CHECK:           %[[V:.*]] = tensor.extract
// CHECK:           %[[C:.*]] = arith.cmpi ne, %[[M]], %{{.*}} : i8
// CHECK-NEXT:      arith.select %[[C]], %[[V]], %[[OLD]] : f32
func.func @gather_masked(%x: tensor<?x?xf32>, %i: tensor<?xi64>, %m: tensor<?xi8>, %o: tensor<?x?xf32>) -> tensor<?x?xf32> {
  %r = iree_linalg_ext.gather dimension_map = [0] ins(%x, %i, %m : tensor<?x?xf32>, tensor<?xi64>, tensor<?xi8>) outs(%o : tensor<?x?xf32>) -> tensor<?x?xf32>
  return %r : tensor<?x?xf32>
}

// The region's place is read where it is inside, else the padding is the value.
// CHECK-LABEL: func.func @map_load
// CHECK:         %[[N:.*]] = tensor.dim %x
// CHECK:         linalg.generic {{.*}} outs(%o : tensor<4x8xf32>) {
// CHECK:           %[[I:.*]] = linalg.index 0 : index
// CHECK-NEXT:      %[[J:.*]] = linalg.index 1 : index
// CHECK:           %[[A:.*]] = arith.cmpi ult, %[[J]], %[[N]] : index
// CHECK:           %[[B:.*]] = arith.cmpi ult, %[[I]], %{{.*}} : index
// CHECK-NEXT:      %[[C:.*]] = arith.andi %[[A]], %[[B]] : i1
// CHECK-NEXT:      %[[V:.*]] = tensor.extract %x[%[[J]], %[[I]]] : tensor<?x4xf32>
// CHECK-NEXT:      arith.select %[[C]], %[[V]], %pad : f32
func.func @map_load(%x: tensor<?x4xf32>, %pad: f32, %o: tensor<4x8xf32>) -> tensor<4x8xf32> {
  %r = iree_linalg_ext.map_load %x into %o {
  ^bb0(%i: index, %j: index):
    iree_linalg_ext.yield %j, %i, %pad : index, index, f32
  } : tensor<?x4xf32> into tensor<4x8xf32> -> tensor<4x8xf32>
  return %r : tensor<4x8xf32>
}

// Indices are computed first; what is not wanted goes to -1, which a scatter skips.
// CHECK-LABEL: func.func @map_store
// CHECK:         %[[I:.*]] = linalg.generic {{.*}} outs(%{{.*}} : tensor<8x4x2xi64>) {
// CHECK:           %[[W:.*]] = arith.cmpi
// CHECK:           arith.select %{{.*}}, %{{.*}}, %{{.*}} : index
// CHECK:           arith.select %[[W]], %{{.*}}, %{{.*}} : index
// CHECK-NEXT:      arith.index_cast
// CHECK:         iree_linalg_ext.scatter dimension_map = [0, 1] unique_indices(false) ins(%x, %[[I]] : tensor<8x4xf32>, tensor<8x4x2xi64>) outs(%o : tensor<4x8xf32>)
func.func @map_store(%x: tensor<8x4xf32>, %o: tensor<4x8xf32>) -> tensor<4x8xf32> {
  %r = iree_linalg_ext.map_store %x into %o {
  ^bb0(%i: index, %j: index):
    %w = arith.cmpi slt, %i, %j : index
    iree_linalg_ext.yield %j, %i, %w : index, index, i1
  } : tensor<8x4xf32> into tensor<4x8xf32> -> tensor<4x8xf32>
  return %r : tensor<4x8xf32>
}

// There is no scatter into a tensor without dims; the last element that is wanted stays.
// CHECK-LABEL: func.func @map_store_rank_0
// CHECK:         linalg.generic {{.*}} iterator_types = ["reduction"]} ins(%x : tensor<8xf32>) outs(%o : tensor<f32>) {
// CHECK-NEXT:    ^bb0(%[[X:.*]]: f32, %[[OLD:.*]]: f32):
// CHECK:           arith.select %{{.*}}, %[[X]], %[[OLD]] : f32
func.func @map_store_rank_0(%x: tensor<8xf32>, %n: index, %o: tensor<f32>) -> tensor<f32> {
  %r = iree_linalg_ext.map_store %x into %o {
  ^bb0(%i: index):
    %w = arith.cmpi slt, %i, %n : index
    iree_linalg_ext.yield %w : i1
  } : tensor<8xf32> into tensor<f32> -> tensor<f32>
  return %r : tensor<f32>
}

// A mask of bytes becomes one of bits.
// CHECK-LABEL: func.func @scatter_mask
// CHECK:         %[[M:.*]] = linalg.generic {{.*}} ins(%m : tensor<3xi8>) outs(%{{.*}} : tensor<3xi1>) {
// CHECK:           arith.cmpi ne
// CHECK:         iree_linalg_ext.scatter {{.*}} ins(%u, %i, %[[M]] : tensor<3xf32>, tensor<3xi32>, tensor<3xi1>)
func.func @scatter_mask(%u: tensor<3xf32>, %i: tensor<3xi32>, %m: tensor<3xi8>, %o: tensor<8xf32>) -> tensor<8xf32> {
  %r = iree_linalg_ext.scatter dimension_map = [0] unique_indices(true) ins(%u, %i, %m : tensor<3xf32>, tensor<3xi32>, tensor<3xi8>) outs(%o : tensor<8xf32>) {
  ^bb0(%a: f32, %b: f32):
    iree_linalg_ext.yield %a : f32
  } -> tensor<8xf32>
  return %r : tensor<8xf32>
}

// In memory there is nothing to replace it by.
// CHECK-LABEL: func.func @no_memref
// CHECK:         iree_linalg_ext.gather
func.func @no_memref(%x: memref<8x4xf32>, %i: memref<3xi32>, %o: memref<3x4xf32>) {
  iree_linalg_ext.gather dimension_map = [0] ins(%x, %i : memref<8x4xf32>, memref<3xi32>) outs(%o : memref<3x4xf32>)
  return
}
