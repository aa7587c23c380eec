// RUN: xdsl-opt %s -p irees-decompose-winograd | filecheck %s

// Along the width, then along the height; tiles overlap.
// CHECK-LABEL: func.func @input
// CHECK:         %[[M:.*]] = arith.constant dense<{{.*}}> : tensor<4x4xf32>
// CHECK:         %[[U:.*]] = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2, d3, d4, d5) -> (d0, d5)>, affine_map<(d0, d1, d2, d3, d4, d5) -> (d3, d2, ((d1 * 2) + d5), d4)>, {{.*}}], {{.*}}} ins(%[[M]], %x : tensor<4x4xf32>, tensor<1x6x8x5xf32>) outs(%{{.*}} : tensor<4x3x6x1x5xf32>)
// CHECK:         linalg.generic {indexing_maps = [affine_map<(d0, d1, d2, d3, d4, d5, d6) -> (d0, d6)>, affine_map<(d0, d1, d2, d3, d4, d5, d6) -> (d1, d3, ((d2 * 2) + d6), d4, d5)>, {{.*}}], {{.*}}} ins(%{{.*}}, %[[U]] : tensor<4x4xf32>, tensor<4x3x6x1x5xf32>) outs(%{{.*}} : tensor<4x4x2x3x1x5xf32>)
func.func @input(%x: tensor<1x6x8x5xf32>, %o: tensor<4x4x2x3x1x5xf32>) -> tensor<4x4x2x3x1x5xf32> {
  %r = linalg.winograd_input_transform fmr(F_2_3) ins(%x : tensor<1x6x8x5xf32>) outs(%o : tensor<4x4x2x3x1x5xf32>) -> tensor<4x4x2x3x1x5xf32>
  return %r : tensor<4x4x2x3x1x5xf32>
}

// A filter is one tile.
// CHECK-LABEL: func.func @filter
// CHECK:         linalg.generic {{.*}} ins(%{{.*}}, %x : tensor<8x3xf32>, tensor<4x5x3x3xf32>)
// CHECK:         linalg.generic {{.*}} ins(%{{.*}}, %{{.*}} : tensor<8x3xf32>, tensor<8x1x3x5x4xf32>) outs(%{{.*}} : tensor<8x8x5x4xf32>)
func.func @filter(%x: tensor<4x5x3x3xf32>, %o: tensor<8x8x5x4xf32>) -> tensor<8x8x5x4xf32> {
  %r = iree_linalg_ext.winograd.filter_transform output_tile_size(6) kernel_size(3) kernel_dimensions([2, 3]) ins(%x : tensor<4x5x3x3xf32>) outs(%o : tensor<8x8x5x4xf32>) -> tensor<8x8x5x4xf32>
  return %r : tensor<8x8x5x4xf32>
}

// An image is padded to whole tiles; dynamic sizes are those of the tiles.
// CHECK-LABEL: func.func @dynamic_input
// CHECK:         %[[W:.*]] = arith.muli %{{.*}}, %{{.*}} : index
// CHECK:         arith.addi %[[W]], %{{.*}} : index
// CHECK:         tensor.insert_slice %x into %{{.*}}[0, 0, 0, 0]
// CHECK:         linalg.generic {{.*}} outs(%{{.*}} : tensor<8x8x?x?x?x4xf32>)
func.func @dynamic_input(%x: tensor<?x?x?x4xf32>, %o: tensor<8x8x?x?x?x4xf32>) -> tensor<8x8x?x?x?x4xf32> {
  %r = iree_linalg_ext.winograd.input_transform output_tile_size(6) kernel_size(3) image_dimensions([1, 2]) ins(%x : tensor<?x?x?x4xf32>) outs(%o : tensor<8x8x?x?x?x4xf32>) -> tensor<8x8x?x?x?x4xf32>
  return %r : tensor<8x8x?x?x?x4xf32>
}

// Each element of the image finds its tile and its row in it; linalg adds to what is there.
// CHECK-LABEL: func.func @output
// CHECK:         linalg.generic {indexing_maps = [affine_map<(d0, d1, d2, d3, d4, d5) -> ((d2 mod 2), d5)>, affine_map<(d0, d1, d2, d3, d4, d5) -> (d0, d5, d1, (d2 floordiv 2), d3, d4)>, {{.*}}]
// CHECK:         %[[Y:.*]] = linalg.generic {{.*}} ins(%{{.*}}, %{{.*}} : tensor<2x4xf32>, tensor<4x2x6x1x5xf32>) outs(%{{.*}} : tensor<1x4x6x5xf32>)
// CHECK:         linalg.generic {{.*}} ins(%[[Y]] : tensor<1x4x6x5xf32>) outs(%o : tensor<1x4x6x5xf32>)
// CHECK:           arith.addf
func.func @output(%x: tensor<4x4x2x3x1x5xf32>, %o: tensor<1x4x6x5xf32>) -> tensor<1x4x6x5xf32> {
  %r = linalg.winograd_output_transform fmr(F_2_3) ins(%x : tensor<4x4x2x3x1x5xf32>) outs(%o : tensor<1x4x6x5xf32>) -> tensor<1x4x6x5xf32>
  return %r : tensor<1x4x6x5xf32>
}

// There are no matrices for F(4, 3) in IREE.
// CHECK-LABEL: func.func @no_matrices
// CHECK:         iree_linalg_ext.winograd.filter_transform
func.func @no_matrices(%x: tensor<3x3x5x4xf32>, %o: tensor<6x6x5x4xf32>) -> tensor<6x6x5x4xf32> {
  %r = iree_linalg_ext.winograd.filter_transform output_tile_size(4) kernel_size(3) kernel_dimensions([0, 1]) ins(%x : tensor<3x3x5x4xf32>) outs(%o : tensor<6x6x5x4xf32>) -> tensor<6x6x5x4xf32>
  return %r : tensor<6x6x5x4xf32>
}
