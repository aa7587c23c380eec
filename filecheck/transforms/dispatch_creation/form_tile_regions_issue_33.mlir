// RUN: irees opt %s -p irees-form-tile-regions | filecheck %s

// The product of masked scores joins their kernel, which can then skip what the mask hides.
// CHECK-LABEL: func.func @masked
// CHECK:         flow.dispatch.region -> (tensor<8x32x16xf32>) {
// CHECK:           arith.select
// CHECK:           flow.return
// CHECK-NOT:     flow.dispatch.region
// CHECK:         return
func.func @masked(%q: tensor<8x32x16xf32>, %k: tensor<8x256x16xf32>, %v: tensor<8x256x16xf32>, %mask: tensor<256xi1>) -> tensor<8x32x16xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<8x32x256xf32>
  %z = linalg.fill ins(%zero : f32) outs(%e : tensor<8x32x256xf32>) -> tensor<8x32x256xf32>
  %s = linalg.generic {indexing_maps = [affine_map<(b, m, n, k) -> (b, m, k)>, affine_map<(b, m, n, k) -> (b, n, k)>, affine_map<(b, m, n, k) -> (b, m, n)>], iterator_types = ["parallel", "parallel", "parallel", "reduction"]} ins(%q, %k : tensor<8x32x16xf32>, tensor<8x256x16xf32>) outs(%z : tensor<8x32x256xf32>) {
  ^bb0(%a: f32, %b: f32, %c: f32):
    %m = arith.mulf %a, %b : f32
    %n = arith.addf %c, %m : f32
    linalg.yield %n : f32
  } -> tensor<8x32x256xf32>
  %t = linalg.generic {indexing_maps = [affine_map<(b, m, n) -> (b, m, n)>, affine_map<(b, m, n) -> (n)>, affine_map<(b, m, n) -> (b, m, n)>], iterator_types = ["parallel", "parallel", "parallel"]} ins(%s, %mask : tensor<8x32x256xf32>, tensor<256xi1>) outs(%e : tensor<8x32x256xf32>) {
  ^bb0(%a: f32, %b: i1, %c: f32):
    %m = arith.select %b, %a, %zero : f32
    linalg.yield %m : f32
  } -> tensor<8x32x256xf32>
  %f = tensor.empty() : tensor<8x32x16xf32>
  %g = linalg.fill ins(%zero : f32) outs(%f : tensor<8x32x16xf32>) -> tensor<8x32x16xf32>
  %r = linalg.generic {indexing_maps = [affine_map<(b, m, n, k) -> (b, m, k)>, affine_map<(b, m, n, k) -> (b, k, n)>, affine_map<(b, m, n, k) -> (b, m, n)>], iterator_types = ["parallel", "parallel", "parallel", "reduction"]} ins(%t, %v : tensor<8x32x256xf32>, tensor<8x256x16xf32>) outs(%g : tensor<8x32x16xf32>) {
  ^bb0(%a: f32, %b: f32, %c: f32):
    %m = arith.mulf %a, %b : f32
    %n = arith.addf %c, %m : f32
    linalg.yield %n : f32
  } -> tensor<8x32x16xf32>
  return %r : tensor<8x32x16xf32>
}

// A convolution by channels joins the kernel that pads its image: each tile pads its own channels.
// CHECK-LABEL: func.func @padded_channels
// CHECK:         flow.dispatch.region -> (tensor<32x8x8xf32>) {
// CHECK:           tensor.insert_slice
// CHECK:           arith.mulf
// CHECK:           flow.return
// CHECK-NOT:     flow.dispatch.region
// CHECK:         return
func.func @padded_channels(%x: tensor<32x8x8xf32>, %w: tensor<32x3x3xf32>) -> tensor<32x8x8xf32> {
  %zero = arith.constant 0.0 : f32
  %pe = tensor.empty() : tensor<32x10x10xf32>
  %pf = linalg.generic {indexing_maps = [affine_map<(c, h, w) -> (c, h, w)>], iterator_types = ["parallel", "parallel", "parallel"]} outs(%pe : tensor<32x10x10xf32>) {
  ^bb0(%a: f32):
    linalg.yield %zero : f32
  } -> tensor<32x10x10xf32>
  %p = tensor.insert_slice %x into %pf[0, 1, 1] [32, 8, 8] [1, 1, 1] : tensor<32x8x8xf32> into tensor<32x10x10xf32>
  %e = tensor.empty() : tensor<32x8x8xf32>
  %f = linalg.generic {indexing_maps = [affine_map<(c, h, w) -> (c, h, w)>], iterator_types = ["parallel", "parallel", "parallel"]} outs(%e : tensor<32x8x8xf32>) {
  ^bb0(%a: f32):
    linalg.yield %zero : f32
  } -> tensor<32x8x8xf32>
  %r = linalg.generic {indexing_maps = [affine_map<(c, h, w, y, x) -> (c, h + y, w + x)>, affine_map<(c, h, w, y, x) -> (c, y, x)>, affine_map<(c, h, w, y, x) -> (c, h, w)>], iterator_types = ["parallel", "parallel", "parallel", "reduction", "reduction"]} ins(%p, %w : tensor<32x10x10xf32>, tensor<32x3x3xf32>) outs(%f : tensor<32x8x8xf32>) {
  ^bb0(%a: f32, %b: f32, %c: f32):
    %m = arith.mulf %a, %b : f32
    %s = arith.addf %c, %m : f32
    linalg.yield %s : f32
  } -> tensor<32x8x8xf32>
  return %r : tensor<32x8x8xf32>
}

// All channels of an image are read for each channel of the result: padding has its own kernel.
// CHECK-LABEL: func.func @no_dense_filter
// CHECK:         flow.dispatch.region -> (tensor<32x10x10xf32>) {
// CHECK:         flow.dispatch.region -> (tensor<32x8x8xf32>) {
func.func @no_dense_filter(%x: tensor<32x8x8xf32>, %w: tensor<32x32x3x3xf32>) -> tensor<32x8x8xf32> {
  %zero = arith.constant 0.0 : f32
  %pe = tensor.empty() : tensor<32x10x10xf32>
  %pf = linalg.generic {indexing_maps = [affine_map<(c, h, w) -> (c, h, w)>], iterator_types = ["parallel", "parallel", "parallel"]} outs(%pe : tensor<32x10x10xf32>) {
  ^bb0(%a: f32):
    linalg.yield %zero : f32
  } -> tensor<32x10x10xf32>
  %p = tensor.insert_slice %x into %pf[0, 1, 1] [32, 8, 8] [1, 1, 1] : tensor<32x8x8xf32> into tensor<32x10x10xf32>
  %e = tensor.empty() : tensor<32x8x8xf32>
  %f = linalg.generic {indexing_maps = [affine_map<(c, h, w) -> (c, h, w)>], iterator_types = ["parallel", "parallel", "parallel"]} outs(%e : tensor<32x8x8xf32>) {
  ^bb0(%a: f32):
    linalg.yield %zero : f32
  } -> tensor<32x8x8xf32>
  %r = linalg.generic {indexing_maps = [affine_map<(f, h, w, c, y, x) -> (c, h + y, w + x)>, affine_map<(f, h, w, c, y, x) -> (f, c, y, x)>, affine_map<(f, h, w, c, y, x) -> (f, h, w)>], iterator_types = ["parallel", "parallel", "parallel", "reduction", "reduction", "reduction"]} ins(%p, %w : tensor<32x10x10xf32>, tensor<32x32x3x3xf32>) outs(%f : tensor<32x8x8xf32>) {
  ^bb0(%a: f32, %b: f32, %c: f32):
    %m = arith.mulf %a, %b : f32
    %s = arith.addf %c, %m : f32
    linalg.yield %s : f32
  } -> tensor<32x8x8xf32>
  return %r : tensor<32x8x8xf32>
}

// All images read one filter, which a kernel of all images keeps in the cache.
// CHECK-LABEL: func.func @no_shared_filter
// CHECK:         flow.dispatch.region -> (tensor<32x4x10x10xf32>) {
// CHECK:         flow.dispatch.region -> (tensor<32x4x8x8xf32>) {
func.func @no_shared_filter(%x: tensor<32x4x8x8xf32>, %w: tensor<4x4x3x3xf32>) -> tensor<32x4x8x8xf32> {
  %zero = arith.constant 0.0 : f32
  %pe = tensor.empty() : tensor<32x4x10x10xf32>
  %pf = linalg.generic {indexing_maps = [affine_map<(n, c, h, w) -> (n, c, h, w)>], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} outs(%pe : tensor<32x4x10x10xf32>) {
  ^bb0(%a: f32):
    linalg.yield %zero : f32
  } -> tensor<32x4x10x10xf32>
  %p = tensor.insert_slice %x into %pf[0, 0, 1, 1] [32, 4, 8, 8] [1, 1, 1, 1] : tensor<32x4x8x8xf32> into tensor<32x4x10x10xf32>
  %e = tensor.empty() : tensor<32x4x8x8xf32>
  %f = linalg.generic {indexing_maps = [affine_map<(n, c, h, w) -> (n, c, h, w)>], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} outs(%e : tensor<32x4x8x8xf32>) {
  ^bb0(%a: f32):
    linalg.yield %zero : f32
  } -> tensor<32x4x8x8xf32>
  %r = linalg.generic {indexing_maps = [affine_map<(n, f, h, w, c, y, x) -> (n, c, h + y, w + x)>, affine_map<(n, f, h, w, c, y, x) -> (f, c, y, x)>, affine_map<(n, f, h, w, c, y, x) -> (n, f, h, w)>], iterator_types = ["parallel", "parallel", "parallel", "parallel", "reduction", "reduction", "reduction"]} ins(%p, %w : tensor<32x4x10x10xf32>, tensor<4x4x3x3xf32>) outs(%f : tensor<32x4x8x8xf32>) {
  ^bb0(%a: f32, %b: f32, %c: f32):
    %m = arith.mulf %a, %b : f32
    %s = arith.addf %c, %m : f32
    linalg.yield %s : f32
  } -> tensor<32x4x8x8xf32>
  return %r : tensor<32x4x8x8xf32>
}

// Two channels are too few tiles, and 2000 x 2000 pixels do not stay in the cache.
// CHECK-LABEL: func.func @no_few_tiles
// CHECK:         flow.dispatch.region -> (tensor<2x10x10xf32>) {
// CHECK-LABEL: func.func @no_large_tiles
// CHECK:         flow.dispatch.region -> (tensor<32x2002x2002xf32>) {
func.func @no_few_tiles(%x: tensor<2x8x8xf32>, %w: tensor<2x3x3xf32>) -> tensor<2x8x8xf32> {
  %zero = arith.constant 0.0 : f32
  %pe = tensor.empty() : tensor<2x10x10xf32>
  %pf = linalg.generic {indexing_maps = [affine_map<(c, h, w) -> (c, h, w)>], iterator_types = ["parallel", "parallel", "parallel"]} outs(%pe : tensor<2x10x10xf32>) {
  ^bb0(%a: f32):
    linalg.yield %zero : f32
  } -> tensor<2x10x10xf32>
  %p = tensor.insert_slice %x into %pf[0, 1, 1] [2, 8, 8] [1, 1, 1] : tensor<2x8x8xf32> into tensor<2x10x10xf32>
  %e = tensor.empty() : tensor<2x8x8xf32>
  %f = linalg.generic {indexing_maps = [affine_map<(c, h, w) -> (c, h, w)>], iterator_types = ["parallel", "parallel", "parallel"]} outs(%e : tensor<2x8x8xf32>) {
  ^bb0(%a: f32):
    linalg.yield %zero : f32
  } -> tensor<2x8x8xf32>
  %r = linalg.generic {indexing_maps = [affine_map<(c, h, w, y, x) -> (c, h + y, w + x)>, affine_map<(c, h, w, y, x) -> (c, y, x)>, affine_map<(c, h, w, y, x) -> (c, h, w)>], iterator_types = ["parallel", "parallel", "parallel", "reduction", "reduction"]} ins(%p, %w : tensor<2x10x10xf32>, tensor<2x3x3xf32>) outs(%f : tensor<2x8x8xf32>) {
  ^bb0(%a: f32, %b: f32, %c: f32):
    %m = arith.mulf %a, %b : f32
    %s = arith.addf %c, %m : f32
    linalg.yield %s : f32
  } -> tensor<2x8x8xf32>
  return %r : tensor<2x8x8xf32>
}
func.func @no_large_tiles(%x: tensor<32x2000x2000xf32>, %w: tensor<32x3x3xf32>) -> tensor<32x2000x2000xf32> {
  %zero = arith.constant 0.0 : f32
  %pe = tensor.empty() : tensor<32x2002x2002xf32>
  %pf = linalg.generic {indexing_maps = [affine_map<(c, h, w) -> (c, h, w)>], iterator_types = ["parallel", "parallel", "parallel"]} outs(%pe : tensor<32x2002x2002xf32>) {
  ^bb0(%a: f32):
    linalg.yield %zero : f32
  } -> tensor<32x2002x2002xf32>
  %p = tensor.insert_slice %x into %pf[0, 1, 1] [32, 2000, 2000] [1, 1, 1] : tensor<32x2000x2000xf32> into tensor<32x2002x2002xf32>
  %e = tensor.empty() : tensor<32x2000x2000xf32>
  %f = linalg.generic {indexing_maps = [affine_map<(c, h, w) -> (c, h, w)>], iterator_types = ["parallel", "parallel", "parallel"]} outs(%e : tensor<32x2000x2000xf32>) {
  ^bb0(%a: f32):
    linalg.yield %zero : f32
  } -> tensor<32x2000x2000xf32>
  %r = linalg.generic {indexing_maps = [affine_map<(c, h, w, y, x) -> (c, h + y, w + x)>, affine_map<(c, h, w, y, x) -> (c, y, x)>, affine_map<(c, h, w, y, x) -> (c, h, w)>], iterator_types = ["parallel", "parallel", "parallel", "reduction", "reduction"]} ins(%p, %w : tensor<32x2002x2002xf32>, tensor<32x3x3xf32>) outs(%f : tensor<32x2000x2000xf32>) {
  ^bb0(%a: f32, %b: f32, %c: f32):
    %m = arith.mulf %a, %b : f32
    %s = arith.addf %c, %m : f32
    linalg.yield %s : f32
  } -> tensor<32x2000x2000xf32>
  return %r : tensor<32x2000x2000xf32>
}
