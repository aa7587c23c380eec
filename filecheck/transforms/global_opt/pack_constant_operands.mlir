// RUN: xdsl-opt %s -p 'irees-assign-target{facts="vector_bytes=16 vector_registers=4"},irees-pack-constant-operands' | filecheck %s
// RUN: xdsl-opt %s -p 'irees-assign-target{facts="features=avx512_vnni"},irees-pack-constant-operands' | filecheck %s --check-prefix DOTS

// The columns of the weight are cut into panels of 4, and the map says where they are.
// CHECK-LABEL: func.func @matmul
// CHECK:         %[[W:.*]] = arith.constant dense_resource<w_packed4_0> : tensor<2x2x4xf32>
// CHECK:         linalg.generic {indexing_maps = [affine_map<(d0, d1, d2) -> (d0, d2)>, affine_map<(d0, d1, d2) -> ((d1 floordiv 4), d2, (d1 mod 4))>, affine_map<(d0, d1, d2) -> (d0, d1)>]
// CHECK-SAME:    ins(%x, %[[W]] : tensor<8x2xf32>, tensor<2x2x4xf32>)
func.func @matmul(%x: tensor<8x2xf32>, %o: tensor<8x8xf32>) -> tensor<8x8xf32> {
  %w = arith.constant dense_resource<w> : tensor<2x8xf32>
  %r = linalg.generic {indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (k, n)>, affine_map<(m, n, k) -> (m, n)>], iterator_types = ["parallel", "parallel", "reduction"]} ins(%x, %w : tensor<8x2xf32>, tensor<2x8xf32>) outs(%o : tensor<8x8xf32>) {
  ^bb0(%a: f32, %b: f32, %c: f32):
    %p = arith.mulf %a, %b : f32
    %s = arith.addf %c, %p : f32
    linalg.yield %s : f32
  } -> tensor<8x8xf32>
  return %r : tensor<8x8xf32>
}

// The rows may be any number.
// CHECK-LABEL: func.func @dynamic_rows
// CHECK:         dense_resource<w_packed4_0> : tensor<2x2x4xf32>
// CHECK:         ins(%x, %{{.*}} : tensor<?x2xf32>, tensor<2x2x4xf32>)
func.func @dynamic_rows(%x: tensor<?x2xf32>, %o: tensor<?x8xf32>) -> tensor<?x8xf32> {
  %w = arith.constant dense_resource<w> : tensor<2x8xf32>
  %r = linalg.generic {indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (k, n)>, affine_map<(m, n, k) -> (m, n)>], iterator_types = ["parallel", "parallel", "reduction"]} ins(%x, %w : tensor<?x2xf32>, tensor<2x8xf32>) outs(%o : tensor<?x8xf32>) {
  ^bb0(%a: f32, %b: f32, %c: f32):
    %p = arith.mulf %a, %b : f32
    %s = arith.addf %c, %p : f32
    linalg.yield %s : f32
  } -> tensor<?x8xf32>
  return %r : tensor<?x8xf32>
}

// The last panel is filled up: 8 columns of 5 are two panels.
// CHECK-LABEL: func.func @last_panel
// CHECK:         dense_resource<v_packed4_0> : tensor<2x3x4xf32>
func.func @last_panel(%x: tensor<8x3xf32>, %o: tensor<8x5xf32>) -> tensor<8x5xf32> {
  %w = arith.constant dense_resource<v> : tensor<3x5xf32>
  %r = linalg.generic {indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (k, n)>, affine_map<(m, n, k) -> (m, n)>], iterator_types = ["parallel", "parallel", "reduction"]} ins(%x, %w : tensor<8x3xf32>, tensor<3x5xf32>) outs(%o : tensor<8x5xf32>) {
  ^bb0(%a: f32, %b: f32, %c: f32):
    %p = arith.mulf %a, %b : f32
    %s = arith.addf %c, %p : f32
    linalg.yield %s : f32
  } -> tensor<8x5xf32>
  return %r : tensor<8x5xf32>
}

// One row, of a loop or of none, reads panels from end to end.
// CHECK-LABEL: func.func @one_row
// CHECK:         ins(%x, %{{.*}} : tensor<1x2xf32>, tensor<2x2x4xf32>)
func.func @one_row(%x: tensor<1x2xf32>, %o: tensor<1x8xf32>) -> tensor<1x8xf32> {
  %w = arith.constant dense_resource<w> : tensor<2x8xf32>
  %r = linalg.generic {indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (k, n)>, affine_map<(m, n, k) -> (m, n)>], iterator_types = ["parallel", "parallel", "reduction"]} ins(%x, %w : tensor<1x2xf32>, tensor<2x8xf32>) outs(%o : tensor<1x8xf32>) {
  ^bb0(%a: f32, %b: f32, %c: f32):
    %p = arith.mulf %a, %b : f32
    %s = arith.addf %c, %p : f32
    linalg.yield %s : f32
  } -> tensor<1x8xf32>
  return %r : tensor<1x8xf32>
}
// CHECK-LABEL: func.func @vector
// CHECK:         linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d1)>, affine_map<(d0, d1) -> ((d0 floordiv 4), d1, (d0 mod 4))>, affine_map<(d0, d1) -> (d0)>]
func.func @vector(%x: tensor<2xf32>, %o: tensor<8xf32>) -> tensor<8xf32> {
  %w = arith.constant dense_resource<w> : tensor<2x8xf32>
  %r = linalg.generic {indexing_maps = [affine_map<(n, k) -> (k)>, affine_map<(n, k) -> (k, n)>, affine_map<(n, k) -> (n)>], iterator_types = ["parallel", "reduction"]} ins(%x, %w : tensor<2xf32>, tensor<2x8xf32>) outs(%o : tensor<8xf32>) {
  ^bb0(%a: f32, %b: f32, %c: f32):
    %p = arith.mulf %a, %b : f32
    %s = arith.addf %c, %p : f32
    linalg.yield %s : f32
  } -> tensor<8xf32>
  return %r : tensor<8xf32>
}

// Fewer columns than a panel has.
// CHECK-LABEL: func.func @no_narrow
// CHECK:         ins(%x, %w : tensor<8x8xf32>, tensor<8x2xf32>)
func.func @no_narrow(%x: tensor<8x8xf32>, %o: tensor<8x2xf32>) -> tensor<8x2xf32> {
  %w = arith.constant dense_resource<w> : tensor<8x2xf32>
  %r = linalg.generic {indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (k, n)>, affine_map<(m, n, k) -> (m, n)>], iterator_types = ["parallel", "parallel", "reduction"]} ins(%x, %w : tensor<8x8xf32>, tensor<8x2xf32>) outs(%o : tensor<8x2xf32>) {
  ^bb0(%a: f32, %b: f32, %c: f32):
    %p = arith.mulf %a, %b : f32
    %s = arith.addf %c, %p : f32
    linalg.yield %s : f32
  } -> tensor<8x2xf32>
  return %r : tensor<8x2xf32>
}

// Only f32 is packed.
// CHECK-LABEL: func.func @no_integer
// CHECK:         ins(%x, %w : tensor<8x2xi32>, tensor<2x8xi32>)
func.func @no_integer(%x: tensor<8x2xi32>, %o: tensor<8x8xi32>) -> tensor<8x8xi32> {
  %w = arith.constant dense_resource<w> : tensor<2x8xi32>
  %r = linalg.generic {indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (k, n)>, affine_map<(m, n, k) -> (m, n)>], iterator_types = ["parallel", "parallel", "reduction"]} ins(%x, %w : tensor<8x2xi32>, tensor<2x8xi32>) outs(%o : tensor<8x8xi32>) {
  ^bb0(%a: i32, %b: i32, %c: i32):
    %p = arith.muli %a, %b : i32
    %s = arith.addi %c, %p : i32
    linalg.yield %s : i32
  } -> tensor<8x8xi32>
  return %r : tensor<8x8xi32>
}

// A splat is not a matrix in memory.
// CHECK-LABEL: func.func @no_splat
// CHECK:         ins(%x, %w : tensor<8x2xf32>, tensor<2x8xf32>)
func.func @no_splat(%x: tensor<8x2xf32>, %o: tensor<8x8xf32>) -> tensor<8x8xf32> {
  %w = arith.constant dense<1.0> : tensor<2x8xf32>
  %r = linalg.generic {indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (k, n)>, affine_map<(m, n, k) -> (m, n)>], iterator_types = ["parallel", "parallel", "reduction"]} ins(%x, %w : tensor<8x2xf32>, tensor<2x8xf32>) outs(%o : tensor<8x8xf32>) {
  ^bb0(%a: f32, %b: f32, %c: f32):
    %p = arith.mulf %a, %b : f32
    %s = arith.addf %c, %p : f32
    linalg.yield %s : f32
  } -> tensor<8x8xf32>
  return %r : tensor<8x8xf32>
}

// The filter of a convolution: panels of output channels, the window outside the input channels.
// CHECK-LABEL: func.func @filter
// CHECK:         %[[W:.*]] = arith.constant dense_resource<f_packed4_231> : tensor<1x1x2x4x4xf32>
// CHECK:         affine_map<(d0, d1, d2, d3, d4, d5) -> ((d0 floordiv 4), d4, d5, d3, (d0 mod 4))>
// CHECK-SAME:    ins(%x, %[[W]] :
func.func @filter(%x: tensor<4x5x10xf32>, %o: tensor<4x5x5xf32>) -> tensor<4x5x5xf32> {
  %w = arith.constant dense_resource<f> : tensor<4x4x1x2xf32>
  %r = linalg.generic {indexing_maps = [affine_map<(f, h, w, c, i, j) -> (c, h + i, w * 2 + j)>, affine_map<(f, h, w, c, i, j) -> (f, c, i, j)>, affine_map<(f, h, w, c, i, j) -> (f, h, w)>], iterator_types = ["parallel", "parallel", "parallel", "reduction", "reduction", "reduction"]} ins(%x, %w : tensor<4x5x10xf32>, tensor<4x4x1x2xf32>) outs(%o : tensor<4x5x5xf32>) {
  ^bb0(%a: f32, %b: f32, %c: f32):
    %p = arith.mulf %a, %b : f32
    %s = arith.addf %c, %p : f32
    linalg.yield %s : f32
  } -> tensor<4x5x5xf32>
  return %r : tensor<4x5x5xf32>
}

// The filters of a group have half as many channels as a vector has lanes: half vectors hold them.
// CHECK-LABEL: func.func @narrow_groups
// CHECK:         %[[W:.*]] = arith.constant dense_resource<h_packed2_0342> : tensor<1x2x1x3x4x2xf32>
// CHECK:         affine_map<(d0, d1, d2, d3, d4, d5, d6) -> ((d1 floordiv 2), d0, d5, d6, d4, (d1 mod 2))>
// CHECK-SAME:    ins(%x, %[[W]] :
func.func @narrow_groups(%x: tensor<2x4x5x11xf32>, %o: tensor<2x2x5x5xf32>) -> tensor<2x2x5x5xf32> {
  %w = arith.constant dense_resource<h> : tensor<2x2x4x1x3xf32>
  %r = linalg.generic {indexing_maps = [affine_map<(g, f, h, w, c, i, j) -> (g, c, h + i, w * 2 + j)>, affine_map<(g, f, h, w, c, i, j) -> (g, f, c, i, j)>, affine_map<(g, f, h, w, c, i, j) -> (g, f, h, w)>], iterator_types = ["parallel", "parallel", "parallel", "parallel", "reduction", "reduction", "reduction"]} ins(%x, %w : tensor<2x4x5x11xf32>, tensor<2x2x4x1x3xf32>) outs(%o : tensor<2x2x5x5xf32>) {
  ^bb0(%a: f32, %b: f32, %c: f32):
    %p = arith.mulf %a, %b : f32
    %s = arith.addf %c, %p : f32
    linalg.yield %s : f32
  } -> tensor<2x2x5x5xf32>
  return %r : tensor<2x2x5x5xf32>
}

// Of few channels the image is read in vectors of adjacent pixels, and the filter stays as it is.
// CHECK-LABEL: func.func @no_few_channels
// CHECK:         ins(%x, %w : tensor<4x5x10xf32>, tensor<4x4x1x3xf32>)
func.func @no_few_channels(%x: tensor<4x5x10xf32>, %o: tensor<4x5x8xf32>) -> tensor<4x5x8xf32> {
  %w = arith.constant dense_resource<k> : tensor<4x4x1x3xf32>
  %r = linalg.generic {indexing_maps = [affine_map<(f, h, w, c, i, j) -> (c, h + i, w + j)>, affine_map<(f, h, w, c, i, j) -> (f, c, i, j)>, affine_map<(f, h, w, c, i, j) -> (f, h, w)>], iterator_types = ["parallel", "parallel", "parallel", "reduction", "reduction", "reduction"]} ins(%x, %w : tensor<4x5x10xf32>, tensor<4x4x1x3xf32>) outs(%o : tensor<4x5x8xf32>) {
  ^bb0(%a: f32, %b: f32, %c: f32):
    %p = arith.mulf %a, %b : f32
    %s = arith.addf %c, %p : f32
    linalg.yield %s : f32
  } -> tensor<4x5x8xf32>
  return %r : tensor<4x5x8xf32>
}

// With so few terms in each sum, writing the output apart would cost more than it saves.
// CHECK-LABEL: func.func @no_small_filter
// CHECK:         ins(%x, %w : tensor<1x5x5xf32>, tensor<8x1x1x1xf32>)
func.func @no_small_filter(%x: tensor<1x5x5xf32>, %o: tensor<8x5x5xf32>) -> tensor<8x5x5xf32> {
  %w = arith.constant dense_resource<g> : tensor<8x1x1x1xf32>
  %r = linalg.generic {indexing_maps = [affine_map<(f, h, w, c, i, j) -> (c, h + i, w + j)>, affine_map<(f, h, w, c, i, j) -> (f, c, i, j)>, affine_map<(f, h, w, c, i, j) -> (f, h, w)>], iterator_types = ["parallel", "parallel", "parallel", "reduction", "reduction", "reduction"]} ins(%x, %w : tensor<1x5x5xf32>, tensor<8x1x1x1xf32>) outs(%o : tensor<8x5x5xf32>) {
  ^bb0(%a: f32, %b: f32, %c: f32):
    %p = arith.mulf %a, %b : f32
    %s = arith.addf %c, %p : f32
    linalg.yield %s : f32
  } -> tensor<8x5x5xf32>
  return %r : tensor<8x5x5xf32>
}

// A filter in blocks of channels lies in panels.
// CHECK-LABEL: func.func @no_blocks
// CHECK:         ins(%x, %w : tensor<2x8x8x4xf32>, tensor<2x2x4x4xf32>)
func.func @no_blocks(%x: tensor<2x8x8x4xf32>, %o: tensor<2x8x8x4xf32>) -> tensor<2x8x8x4xf32> {
  %w = arith.constant dense_resource<u> : tensor<2x2x4x4xf32>
  %r = linalg.generic {indexing_maps = [affine_map<(c, i, j, d, k, l) -> (k, i, j, l)>, affine_map<(c, i, j, d, k, l) -> (c, k, l, d)>, affine_map<(c, i, j, d, k, l) -> (c, i, j, d)>], iterator_types = ["parallel", "parallel", "parallel", "parallel", "reduction", "reduction"]} ins(%x, %w : tensor<2x8x8x4xf32>, tensor<2x2x4x4xf32>) outs(%o : tensor<2x8x8x4xf32>) {
  ^bb0(%a: f32, %b: f32, %c: f32):
    %p = arith.mulf %a, %b : f32
    %s = arith.addf %c, %p : f32
    linalg.yield %s : f32
  } -> tensor<2x8x8x4xf32>
  return %r : tensor<2x8x8x4xf32>
}

// What is multiplied by dot products comes in groups of four along K; other i8 stay as they are.
// CHECK-LABEL: func.func @groups
// CHECK:         dense_resource<t> : tensor<6x16xi8>
// DOTS-LABEL:  func.func @groups
// DOTS:          dense_resource<t_packed16x4_0> : tensor<1x2x16x4xi8>
// DOTS:          affine_map<(d0, d1, d2) -> ((d1 floordiv 16), (d2 floordiv 4), (d1 mod 16), (d2 mod 4))>
func.func @groups(%x: tensor<8x6xi8>, %o: tensor<8x16xi32>) -> tensor<8x16xi32> {
  %w = arith.constant dense_resource<t> : tensor<6x16xi8>
  %r = linalg.generic {indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (k, n)>, affine_map<(m, n, k) -> (m, n)>], iterator_types = ["parallel", "parallel", "reduction"]} ins(%x, %w : tensor<8x6xi8>, tensor<6x16xi8>) outs(%o : tensor<8x16xi32>) {
  ^bb0(%a: i8, %b: i8, %c: i32):
    %u = arith.extsi %a : i8 to i32
    %v = arith.extsi %b : i8 to i32
    %p = arith.muli %u, %v : i32
    %s = arith.addi %c, %p : i32
    linalg.yield %s : i32
  } -> tensor<8x16xi32>
  return %r : tensor<8x16xi32>
}

{-#
  dialect_resources: {
    builtin: {
      t: "0x040000000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f202122232425262728292a2b2c2d2e2f303132333435363738393a3b3c3d3e3f404142434445464748494a4b4c4d4e4f505152535455565758595a5b5c5d5e5f60",
      w: "0x04000000000000000000803f0000004000004040000080400000a0400000c0400000e0400000004100001041000020410000304100004041000050410000604100007041",
      f: "0x04000000000000000000803f0000004000004040000080400000a0400000c0400000e0400000004100001041000020410000304100004041000050410000604100007041000080410000884100009041000098410000a0410000a8410000b0410000b8410000c0410000c8410000d0410000d8410000e0410000e8410000f0410000f841",
      h: "0x04000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000",
      k: "0x04000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000",
      g: "0x04000000000000000000803f0000004000004040000080400000a0400000c0400000e040",
      v: "0x04000000000000000000803f0000004000004040000080400000a0400000c0400000e04000000041000010410000204100003041000040410000504100006041",
      u: "0x04000000000000000000803f0000004000004040000080400000a0400000c040000000000000803f0000004000004040000080400000a0400000c040000000000000803f0000004000004040000080400000a0400000c040000000000000803f0000004000004040000080400000a0400000c040000000000000803f0000004000004040000080400000a0400000c040000000000000803f0000004000004040000080400000a0400000c040000000000000803f0000004000004040000080400000a0400000c040000000000000803f0000004000004040000080400000a0400000c040000000000000803f0000004000004040000080400000a0400000c04000000000"
    }
  }
#-}
