// RUN: xdsl-opt %s -p irees-decompose-packs | filecheck %s

// Whole tiles are an indexing map.
// CHECK-LABEL: func.func @pack
// CHECK-NEXT:    linalg.generic {indexing_maps = [affine_map<(d0, d1, d2, d3) -> (((d1 * 4) + d2), ((d0 * 3) + d3))>, affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%x : tensor<8x12xf32>) outs(%o : tensor<4x2x4x3xf32>)
func.func @pack(%x: tensor<8x12xf32>, %o: tensor<4x2x4x3xf32>) -> tensor<4x2x4x3xf32> {
  %r = linalg.pack %x outer_dims_perm = [1, 0] inner_dims_pos = [0, 1] inner_tiles = [4, 3] into %o : tensor<8x12xf32> -> tensor<4x2x4x3xf32>
  return %r : tensor<4x2x4x3xf32>
}

// What is no whole tile is padded first.
// CHECK-LABEL: func.func @pack_padded
// CHECK:         %[[F:.*]] = linalg.generic {{.*}} ins(%v : f32) outs(%{{.*}} : tensor<8xf32>)
// CHECK:         %[[P:.*]] = tensor.insert_slice %x into %[[F]][0] [7] [1] : tensor<7xf32> into tensor<8xf32>
// CHECK:         linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (((d0 * 4) + d1))>, affine_map<(d0, d1) -> (d0, d1)>], {{.*}} ins(%[[P]] : tensor<8xf32>) outs(%o : tensor<2x4xf32>)
func.func @pack_padded(%x: tensor<7xf32>, %v: f32, %o: tensor<2x4xf32>) -> tensor<2x4xf32> {
  %r = linalg.pack %x padding_value(%v : f32) inner_dims_pos = [0] inner_tiles = [4] into %o : tensor<7xf32> -> tensor<2x4xf32>
  return %r : tensor<2x4xf32>
}

// A dynamic tile is no indexing map: the place is computed.
// CHECK-LABEL: func.func @pack_dynamic
// CHECK:         %[[N:.*]] = tensor.dim %x
// CHECK:         linalg.generic {{.*}} outs(%o : tensor<?x?xf32>) {
// CHECK:           %[[I:.*]] = linalg.index 0 : index
// CHECK-NEXT:      %[[M:.*]] = arith.muli %[[I]], %t : index
// CHECK-NEXT:      %[[J:.*]] = linalg.index 1 : index
// CHECK-NEXT:      %[[P:.*]] = arith.addi %[[M]], %[[J]] : index
// CHECK-NEXT:      %[[V:.*]] = tensor.extract %x[%[[P]]] : tensor<?xf32>
// CHECK-NEXT:      %[[C:.*]] = arith.cmpi ult, %[[P]], %[[N]] : index
// CHECK-NEXT:      arith.select %[[C]], %[[V]], %v : f32
func.func @pack_dynamic(%x: tensor<?xf32>, %v: f32, %t: index, %o: tensor<?x?xf32>) -> tensor<?x?xf32> {
  %r = linalg.pack %x padding_value(%v : f32) inner_dims_pos = [0] inner_tiles = [%t] into %o : tensor<?xf32> -> tensor<?x?xf32>
  return %r : tensor<?x?xf32>
}

// The inverse map.
// CHECK-LABEL: func.func @unpack
// CHECK-NEXT:    linalg.generic {indexing_maps = [affine_map<(d0) -> ((d0 floordiv 4), (d0 mod 4))>, affine_map<(d0) -> (d0)>], iterator_types = ["parallel"]} ins(%x : tensor<2x4xf32>) outs(%o : tensor<7xf32>)
func.func @unpack(%x: tensor<2x4xf32>, %o: tensor<7xf32>) -> tensor<7xf32> {
  %r = linalg.unpack %x inner_dims_pos = [0] inner_tiles = [4] into %o : tensor<2x4xf32> -> tensor<7xf32>
  return %r : tensor<7xf32>
}

// Nothing says that the source is large enough: an extraction cannot read outside.
// CHECK-LABEL: func.func @unpack_dynamic
// CHECK:         linalg.generic {{.*}} outs(%o : tensor<?xf32>) {
// CHECK:           %[[I:.*]] = linalg.index 0 : index
// CHECK:           %[[A:.*]] = arith.divui %[[I]], %{{.*}} : index
// CHECK:           %[[B:.*]] = arith.remui %[[I]], %{{.*}} : index
// CHECK:           tensor.extract %x[%[[A]], %[[B]]] : tensor<?x4xf32>
func.func @unpack_dynamic(%x: tensor<?x4xf32>, %o: tensor<?xf32>) -> tensor<?xf32> {
  %r = linalg.unpack %x inner_dims_pos = [0] inner_tiles = [4] into %o : tensor<?x4xf32> -> tensor<?xf32>
  return %r : tensor<?xf32>
}

// In memory there is nothing to replace it by.
// CHECK-LABEL: func.func @no_memref
// CHECK:         linalg.pack
func.func @no_memref(%x: memref<8xf32>, %o: memref<2x4xf32>) {
  linalg.pack %x inner_dims_pos = [0] inner_tiles = [4] into %o : memref<8xf32> -> memref<2x4xf32>
  return
}
