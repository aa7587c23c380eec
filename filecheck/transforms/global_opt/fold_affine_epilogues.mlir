// RUN: irees opt %s -p irees-fold-affine-epilogues | filecheck %s
// RUN: irees opt %s -p 'irees-assign-target{fp=strict},irees-fold-affine-epilogues' | filecheck %s --check-prefix=EXACT

// (x - [1, 2]) * [2, 10] + [5, 6] = x * [2, 10] + [3, -14]
// CHECK-LABEL: func.func @batch_norm
// CHECK:         %[[W:.*]] = arith.constant dense_resource<[[WKEY:.*]]> : tensor<2x2xf32>
// CHECK:         linalg.generic {{.*}} ins(%x, %[[W]] :
// CHECK:         %[[T:.*]] = arith.constant dense_resource<[[TKEY:.*]]> : tensor<2xf32>
// CHECK:         linalg.generic {{.*}} ins(%m, %[[T]] : tensor<2x3xf32>, tensor<2xf32>)
// CHECK-NEXT:    ^bb0(%[[A:.*]]: f32, %[[B:.*]]: f32, %{{.*}}: f32):
// CHECK-NEXT:      %[[S:.*]] = arith.addf %[[A]], %[[B]] : f32
// CHECK-NEXT:      arith.maximumf %[[S]], %zero
// EXACT-LABEL: func.func @batch_norm
// EXACT:         ins(%m, %mean, %scale, %beta :
func.func @batch_norm(%x: tensor<2x3xf32>, %o: tensor<2x3xf32>) -> tensor<2x3xf32> {
  %zero = arith.constant 0.0 : f32
  %w = arith.constant dense<[[1.0, 2.0], [3.0, 4.0]]> : tensor<2x2xf32>
  %mean = arith.constant dense<[1.0, 2.0]> : tensor<2xf32>
  %scale = arith.constant dense<[2.0, 10.0]> : tensor<2xf32>
  %beta = arith.constant dense<[5.0, 6.0]> : tensor<2xf32>
  %fe = tensor.empty() : tensor<2x3xf32>
  %f = linalg.generic {indexing_maps = [affine_map<(c, h) -> (c, h)>], iterator_types = ["parallel", "parallel"]} outs(%fe : tensor<2x3xf32>) {
  ^bb0(%a: f32): linalg.yield %zero : f32
  } -> tensor<2x3xf32>
  %m = linalg.generic {indexing_maps = [affine_map<(c, h, k) -> (k, h)>, affine_map<(c, h, k) -> (c, k)>, affine_map<(c, h, k) -> (c, h)>], iterator_types = ["parallel", "parallel", "reduction"]} ins(%x, %w : tensor<2x3xf32>, tensor<2x2xf32>) outs(%f : tensor<2x3xf32>) {
  ^bb0(%a: f32, %b: f32, %c: f32): %p = arith.mulf %a, %b : f32 %s = arith.addf %c, %p : f32 linalg.yield %s : f32
  } -> tensor<2x3xf32>
  %n = tensor.empty() : tensor<2x3xf32>
  %r = linalg.generic {indexing_maps = [affine_map<(c, h) -> (c, h)>, affine_map<(c, h) -> (c)>, affine_map<(c, h) -> (c)>, affine_map<(c, h) -> (c)>, affine_map<(c, h) -> (c, h)>], iterator_types = ["parallel", "parallel"]} ins(%m, %mean, %scale, %beta : tensor<2x3xf32>, tensor<2xf32>, tensor<2xf32>, tensor<2xf32>) outs(%n : tensor<2x3xf32>) {
  ^bb0(%a: f32, %b: f32, %c: f32, %d: f32, %e: f32): %1 = arith.subf %a, %b : f32 %2 = arith.mulf %1, %c : f32 %3 = arith.addf %2, %d : f32 %4 = arith.maximumf %3, %zero : f32 linalg.yield %4 : f32
  } -> tensor<2x3xf32>
  return %r : tensor<2x3xf32>
}

// What is known is exact, and needs no contraction.
// CHECK-LABEL: func.func @known
// CHECK:         linalg.generic {{.*}} ins(%m, %{{.*}} : tensor<2x3xf32>, tensor<2xf32>)
// CHECK-NOT:     math.rsqrt
// EXACT-LABEL: func.func @known
// EXACT:         linalg.generic {{.*}} ins(%m, %{{.*}} : tensor<2x3xf32>, tensor<2xf32>)
// EXACT-NOT:     math.rsqrt
// EXACT:         return
func.func @known(%x: tensor<2x3xf32>, %o: tensor<2x3xf32>) -> tensor<2x3xf32> {
  %zero = arith.constant 0.0 : f32
  %w = arith.constant dense<[[1.0, 2.0], [3.0, 4.0]]> : tensor<2x2xf32>
  %mean = arith.constant dense<[1.0, 2.0]> : tensor<2xf32>
  %scale = arith.constant dense<[2.0, 10.0]> : tensor<2xf32>
  %beta = arith.constant dense<[5.0, 6.0]> : tensor<2xf32>
  %fe = tensor.empty() : tensor<2x3xf32>
  %f = linalg.generic {indexing_maps = [affine_map<(c, h) -> (c, h)>], iterator_types = ["parallel", "parallel"]} outs(%fe : tensor<2x3xf32>) {
  ^bb0(%a: f32): linalg.yield %zero : f32
  } -> tensor<2x3xf32>
  %m = linalg.generic {indexing_maps = [affine_map<(c, h, k) -> (k, h)>, affine_map<(c, h, k) -> (c, k)>, affine_map<(c, h, k) -> (c, h)>], iterator_types = ["parallel", "parallel", "reduction"]} ins(%x, %w : tensor<2x3xf32>, tensor<2x2xf32>) outs(%f : tensor<2x3xf32>) {
  ^bb0(%a: f32, %b: f32, %c: f32): %p = arith.mulf %a, %b : f32 %s = arith.addf %c, %p : f32 linalg.yield %s : f32
  } -> tensor<2x3xf32>
  %n = tensor.empty() : tensor<2x3xf32>
  %r = linalg.generic {indexing_maps = [affine_map<(c, h) -> (c, h)>, affine_map<(c, h) -> (c)>, affine_map<(c, h) -> (c)>, affine_map<(c, h) -> (c)>, affine_map<(c, h) -> (c, h)>], iterator_types = ["parallel", "parallel"]} ins(%m, %mean, %scale, %beta : tensor<2x3xf32>, tensor<2xf32>, tensor<2xf32>, tensor<2xf32>) outs(%n : tensor<2x3xf32>) {
  ^bb0(%a: f32, %b: f32, %c: f32, %d: f32, %e: f32): %1 = math.rsqrt %b : f32 %2 = arith.mulf %1, %c : f32 %3 = arith.maximumf %a, %2 : f32 linalg.yield %3 : f32
  } -> tensor<2x3xf32>
  return %r : tensor<2x3xf32>
}

// Near misses. Somebody else reads the product.
// CHECK-LABEL: func.func @no_other_reader
// CHECK:         ins(%m, %mean, %scale, %beta :
func.func @no_other_reader(%x: tensor<2x3xf32>, %o: tensor<2x3xf32>) -> (tensor<2x3xf32>, tensor<2x3xf32>) {
  %zero = arith.constant 0.0 : f32
  %w = arith.constant dense<[[1.0, 2.0], [3.0, 4.0]]> : tensor<2x2xf32>
  %mean = arith.constant dense<[1.0, 2.0]> : tensor<2xf32>
  %scale = arith.constant dense<[2.0, 10.0]> : tensor<2xf32>
  %beta = arith.constant dense<[5.0, 6.0]> : tensor<2xf32>
  %fe = tensor.empty() : tensor<2x3xf32>
  %f = linalg.generic {indexing_maps = [affine_map<(c, h) -> (c, h)>], iterator_types = ["parallel", "parallel"]} outs(%fe : tensor<2x3xf32>) {
  ^bb0(%a: f32): linalg.yield %zero : f32
  } -> tensor<2x3xf32>
  %m = linalg.generic {indexing_maps = [affine_map<(c, h, k) -> (k, h)>, affine_map<(c, h, k) -> (c, k)>, affine_map<(c, h, k) -> (c, h)>], iterator_types = ["parallel", "parallel", "reduction"]} ins(%x, %w : tensor<2x3xf32>, tensor<2x2xf32>) outs(%f : tensor<2x3xf32>) {
  ^bb0(%a: f32, %b: f32, %c: f32): %p = arith.mulf %a, %b : f32 %s = arith.addf %c, %p : f32 linalg.yield %s : f32
  } -> tensor<2x3xf32>
  %n = tensor.empty() : tensor<2x3xf32>
  %r = linalg.generic {indexing_maps = [affine_map<(c, h) -> (c, h)>, affine_map<(c, h) -> (c)>, affine_map<(c, h) -> (c)>, affine_map<(c, h) -> (c)>, affine_map<(c, h) -> (c, h)>], iterator_types = ["parallel", "parallel"]} ins(%m, %mean, %scale, %beta : tensor<2x3xf32>, tensor<2xf32>, tensor<2xf32>, tensor<2xf32>) outs(%n : tensor<2x3xf32>) {
  ^bb0(%a: f32, %b: f32, %c: f32, %d: f32, %e: f32): %1 = arith.subf %a, %b : f32 %2 = arith.mulf %1, %c : f32 %3 = arith.addf %2, %d : f32 %4 = arith.maximumf %3, %zero : f32 linalg.yield %4 : f32
  } -> tensor<2x3xf32>
  return %r, %m : tensor<2x3xf32>, tensor<2x3xf32>
}

// What the sum starts from would have to be scaled as well.
// CHECK-LABEL: func.func @no_other_start
// CHECK:         ins(%m, %mean, %scale, %beta :
func.func @no_other_start(%x: tensor<2x3xf32>, %o: tensor<2x3xf32>) -> tensor<2x3xf32> {
  %zero = arith.constant 0.0 : f32
  %w = arith.constant dense<[[1.0, 2.0], [3.0, 4.0]]> : tensor<2x2xf32>
  %mean = arith.constant dense<[1.0, 2.0]> : tensor<2xf32>
  %scale = arith.constant dense<[2.0, 10.0]> : tensor<2xf32>
  %beta = arith.constant dense<[5.0, 6.0]> : tensor<2xf32>
  %m = linalg.generic {indexing_maps = [affine_map<(c, h, k) -> (k, h)>, affine_map<(c, h, k) -> (c, k)>, affine_map<(c, h, k) -> (c, h)>], iterator_types = ["parallel", "parallel", "reduction"]} ins(%x, %w : tensor<2x3xf32>, tensor<2x2xf32>) outs(%o : tensor<2x3xf32>) {
  ^bb0(%a: f32, %b: f32, %c: f32): %p = arith.mulf %a, %b : f32 %s = arith.addf %c, %p : f32 linalg.yield %s : f32
  } -> tensor<2x3xf32>
  %n = tensor.empty() : tensor<2x3xf32>
  %r = linalg.generic {indexing_maps = [affine_map<(c, h) -> (c, h)>, affine_map<(c, h) -> (c)>, affine_map<(c, h) -> (c)>, affine_map<(c, h) -> (c)>, affine_map<(c, h) -> (c, h)>], iterator_types = ["parallel", "parallel"]} ins(%m, %mean, %scale, %beta : tensor<2x3xf32>, tensor<2xf32>, tensor<2xf32>, tensor<2xf32>) outs(%n : tensor<2x3xf32>) {
  ^bb0(%a: f32, %b: f32, %c: f32, %d: f32, %e: f32): %1 = arith.subf %a, %b : f32 %2 = arith.mulf %1, %c : f32 %3 = arith.addf %2, %d : f32 %4 = arith.maximumf %3, %zero : f32 linalg.yield %4 : f32
  } -> tensor<2x3xf32>
  return %r : tensor<2x3xf32>
}

// Weights that are not known.
// CHECK-LABEL: func.func @no_argument
// CHECK:         ins(%m, %mean, %scale, %beta :
func.func @no_argument(%x: tensor<2x3xf32>, %o: tensor<2x3xf32>, %w: tensor<2x2xf32>) -> tensor<2x3xf32> {
  %zero = arith.constant 0.0 : f32
  %mean = arith.constant dense<[1.0, 2.0]> : tensor<2xf32>
  %scale = arith.constant dense<[2.0, 10.0]> : tensor<2xf32>
  %beta = arith.constant dense<[5.0, 6.0]> : tensor<2xf32>
  %fe = tensor.empty() : tensor<2x3xf32>
  %f = linalg.generic {indexing_maps = [affine_map<(c, h) -> (c, h)>], iterator_types = ["parallel", "parallel"]} outs(%fe : tensor<2x3xf32>) {
  ^bb0(%a: f32): linalg.yield %zero : f32
  } -> tensor<2x3xf32>
  %m = linalg.generic {indexing_maps = [affine_map<(c, h, k) -> (k, h)>, affine_map<(c, h, k) -> (c, k)>, affine_map<(c, h, k) -> (c, h)>], iterator_types = ["parallel", "parallel", "reduction"]} ins(%x, %w : tensor<2x3xf32>, tensor<2x2xf32>) outs(%f : tensor<2x3xf32>) {
  ^bb0(%a: f32, %b: f32, %c: f32): %p = arith.mulf %a, %b : f32 %s = arith.addf %c, %p : f32 linalg.yield %s : f32
  } -> tensor<2x3xf32>
  %n = tensor.empty() : tensor<2x3xf32>
  %r = linalg.generic {indexing_maps = [affine_map<(c, h) -> (c, h)>, affine_map<(c, h) -> (c)>, affine_map<(c, h) -> (c)>, affine_map<(c, h) -> (c)>, affine_map<(c, h) -> (c, h)>], iterator_types = ["parallel", "parallel"]} ins(%m, %mean, %scale, %beta : tensor<2x3xf32>, tensor<2xf32>, tensor<2xf32>, tensor<2xf32>) outs(%n : tensor<2x3xf32>) {
  ^bb0(%a: f32, %b: f32, %c: f32, %d: f32, %e: f32): %1 = arith.subf %a, %b : f32 %2 = arith.mulf %1, %c : f32 %3 = arith.addf %2, %d : f32 %4 = arith.maximumf %3, %zero : f32 linalg.yield %4 : f32
  } -> tensor<2x3xf32>
  return %r : tensor<2x3xf32>
}

// The weights would be infinite.
// CHECK-LABEL: func.func @no_infinity
// CHECK:         ins(%m, %mean, %scale, %beta :
func.func @no_infinity(%x: tensor<2x3xf32>, %o: tensor<2x3xf32>) -> tensor<2x3xf32> {
  %zero = arith.constant 0.0 : f32
  %w = arith.constant dense<[[1.0, 2.0], [3.0e38, 4.0]]> : tensor<2x2xf32>
  %mean = arith.constant dense<[1.0, 2.0]> : tensor<2xf32>
  %scale = arith.constant dense<[2.0, 10.0]> : tensor<2xf32>
  %beta = arith.constant dense<[5.0, 6.0]> : tensor<2xf32>
  %fe = tensor.empty() : tensor<2x3xf32>
  %f = linalg.generic {indexing_maps = [affine_map<(c, h) -> (c, h)>], iterator_types = ["parallel", "parallel"]} outs(%fe : tensor<2x3xf32>) {
  ^bb0(%a: f32): linalg.yield %zero : f32
  } -> tensor<2x3xf32>
  %m = linalg.generic {indexing_maps = [affine_map<(c, h, k) -> (k, h)>, affine_map<(c, h, k) -> (c, k)>, affine_map<(c, h, k) -> (c, h)>], iterator_types = ["parallel", "parallel", "reduction"]} ins(%x, %w : tensor<2x3xf32>, tensor<2x2xf32>) outs(%f : tensor<2x3xf32>) {
  ^bb0(%a: f32, %b: f32, %c: f32): %p = arith.mulf %a, %b : f32 %s = arith.addf %c, %p : f32 linalg.yield %s : f32
  } -> tensor<2x3xf32>
  %n = tensor.empty() : tensor<2x3xf32>
  %r = linalg.generic {indexing_maps = [affine_map<(c, h) -> (c, h)>, affine_map<(c, h) -> (c)>, affine_map<(c, h) -> (c)>, affine_map<(c, h) -> (c)>, affine_map<(c, h) -> (c, h)>], iterator_types = ["parallel", "parallel"]} ins(%m, %mean, %scale, %beta : tensor<2x3xf32>, tensor<2xf32>, tensor<2xf32>, tensor<2xf32>) outs(%n : tensor<2x3xf32>) {
  ^bb0(%a: f32, %b: f32, %c: f32, %d: f32, %e: f32): %1 = arith.subf %a, %b : f32 %2 = arith.mulf %1, %c : f32 %3 = arith.addf %2, %d : f32 %4 = arith.maximumf %3, %zero : f32 linalg.yield %4 : f32
  } -> tensor<2x3xf32>
  return %r : tensor<2x3xf32>
}

// Nothing is multiplied.
// CHECK-LABEL: func.func @no_scale
// CHECK:         ins(%m, %mean, %scale, %beta :
func.func @no_scale(%x: tensor<2x3xf32>, %o: tensor<2x3xf32>) -> tensor<2x3xf32> {
  %zero = arith.constant 0.0 : f32
  %w = arith.constant dense<[[1.0, 2.0], [3.0, 4.0]]> : tensor<2x2xf32>
  %mean = arith.constant dense<[1.0, 2.0]> : tensor<2xf32>
  %scale = arith.constant dense<[2.0, 10.0]> : tensor<2xf32>
  %beta = arith.constant dense<[5.0, 6.0]> : tensor<2xf32>
  %fe = tensor.empty() : tensor<2x3xf32>
  %f = linalg.generic {indexing_maps = [affine_map<(c, h) -> (c, h)>], iterator_types = ["parallel", "parallel"]} outs(%fe : tensor<2x3xf32>) {
  ^bb0(%a: f32): linalg.yield %zero : f32
  } -> tensor<2x3xf32>
  %m = linalg.generic {indexing_maps = [affine_map<(c, h, k) -> (k, h)>, affine_map<(c, h, k) -> (c, k)>, affine_map<(c, h, k) -> (c, h)>], iterator_types = ["parallel", "parallel", "reduction"]} ins(%x, %w : tensor<2x3xf32>, tensor<2x2xf32>) outs(%f : tensor<2x3xf32>) {
  ^bb0(%a: f32, %b: f32, %c: f32): %p = arith.mulf %a, %b : f32 %s = arith.addf %c, %p : f32 linalg.yield %s : f32
  } -> tensor<2x3xf32>
  %n = tensor.empty() : tensor<2x3xf32>
  %r = linalg.generic {indexing_maps = [affine_map<(c, h) -> (c, h)>, affine_map<(c, h) -> (c)>, affine_map<(c, h) -> (c)>, affine_map<(c, h) -> (c)>, affine_map<(c, h) -> (c, h)>], iterator_types = ["parallel", "parallel"]} ins(%m, %mean, %scale, %beta : tensor<2x3xf32>, tensor<2xf32>, tensor<2xf32>, tensor<2xf32>) outs(%n : tensor<2x3xf32>) {
  ^bb0(%a: f32, %b: f32, %c: f32, %d: f32, %e: f32): %1 = arith.subf %a, %b : f32 %2 = arith.maximumf %1, %c : f32 %3 = arith.addf %2, %d : f32 linalg.yield %3 : f32
  } -> tensor<2x3xf32>
  return %r : tensor<2x3xf32>
}

// The product is read twice in the body.
// CHECK-LABEL: func.func @no_chain
// CHECK:         ins(%m, %mean, %scale, %beta :
func.func @no_chain(%x: tensor<2x3xf32>, %o: tensor<2x3xf32>) -> tensor<2x3xf32> {
  %zero = arith.constant 0.0 : f32
  %w = arith.constant dense<[[1.0, 2.0], [3.0, 4.0]]> : tensor<2x2xf32>
  %mean = arith.constant dense<[1.0, 2.0]> : tensor<2xf32>
  %scale = arith.constant dense<[2.0, 10.0]> : tensor<2xf32>
  %beta = arith.constant dense<[5.0, 6.0]> : tensor<2xf32>
  %fe = tensor.empty() : tensor<2x3xf32>
  %f = linalg.generic {indexing_maps = [affine_map<(c, h) -> (c, h)>], iterator_types = ["parallel", "parallel"]} outs(%fe : tensor<2x3xf32>) {
  ^bb0(%a: f32): linalg.yield %zero : f32
  } -> tensor<2x3xf32>
  %m = linalg.generic {indexing_maps = [affine_map<(c, h, k) -> (k, h)>, affine_map<(c, h, k) -> (c, k)>, affine_map<(c, h, k) -> (c, h)>], iterator_types = ["parallel", "parallel", "reduction"]} ins(%x, %w : tensor<2x3xf32>, tensor<2x2xf32>) outs(%f : tensor<2x3xf32>) {
  ^bb0(%a: f32, %b: f32, %c: f32): %p = arith.mulf %a, %b : f32 %s = arith.addf %c, %p : f32 linalg.yield %s : f32
  } -> tensor<2x3xf32>
  %n = tensor.empty() : tensor<2x3xf32>
  %r = linalg.generic {indexing_maps = [affine_map<(c, h) -> (c, h)>, affine_map<(c, h) -> (c)>, affine_map<(c, h) -> (c)>, affine_map<(c, h) -> (c)>, affine_map<(c, h) -> (c, h)>], iterator_types = ["parallel", "parallel"]} ins(%m, %mean, %scale, %beta : tensor<2x3xf32>, tensor<2xf32>, tensor<2xf32>, tensor<2xf32>) outs(%n : tensor<2x3xf32>) {
  ^bb0(%a: f32, %b: f32, %c: f32, %d: f32, %e: f32): %1 = arith.mulf %a, %c : f32 %2 = arith.subf %1, %b : f32 %3 = arith.addf %a, %d : f32 %4 = arith.mulf %2, %3 : f32 linalg.yield %4 : f32
  } -> tensor<2x3xf32>
  return %r : tensor<2x3xf32>
}

// A constant is divided by it.
// CHECK-LABEL: func.func @no_quotient
// CHECK:         ins(%m, %mean, %scale, %beta :
func.func @no_quotient(%x: tensor<2x3xf32>, %o: tensor<2x3xf32>) -> tensor<2x3xf32> {
  %zero = arith.constant 0.0 : f32
  %w = arith.constant dense<[[1.0, 2.0], [3.0, 4.0]]> : tensor<2x2xf32>
  %mean = arith.constant dense<[1.0, 2.0]> : tensor<2xf32>
  %scale = arith.constant dense<[2.0, 10.0]> : tensor<2xf32>
  %beta = arith.constant dense<[5.0, 6.0]> : tensor<2xf32>
  %fe = tensor.empty() : tensor<2x3xf32>
  %f = linalg.generic {indexing_maps = [affine_map<(c, h) -> (c, h)>], iterator_types = ["parallel", "parallel"]} outs(%fe : tensor<2x3xf32>) {
  ^bb0(%a: f32): linalg.yield %zero : f32
  } -> tensor<2x3xf32>
  %m = linalg.generic {indexing_maps = [affine_map<(c, h, k) -> (k, h)>, affine_map<(c, h, k) -> (c, k)>, affine_map<(c, h, k) -> (c, h)>], iterator_types = ["parallel", "parallel", "reduction"]} ins(%x, %w : tensor<2x3xf32>, tensor<2x2xf32>) outs(%f : tensor<2x3xf32>) {
  ^bb0(%a: f32, %b: f32, %c: f32): %p = arith.mulf %a, %b : f32 %s = arith.addf %c, %p : f32 linalg.yield %s : f32
  } -> tensor<2x3xf32>
  %n = tensor.empty() : tensor<2x3xf32>
  %r = linalg.generic {indexing_maps = [affine_map<(c, h) -> (c, h)>, affine_map<(c, h) -> (c)>, affine_map<(c, h) -> (c)>, affine_map<(c, h) -> (c)>, affine_map<(c, h) -> (c, h)>], iterator_types = ["parallel", "parallel"]} ins(%m, %mean, %scale, %beta : tensor<2x3xf32>, tensor<2xf32>, tensor<2xf32>, tensor<2xf32>) outs(%n : tensor<2x3xf32>) {
  ^bb0(%a: f32, %b: f32, %c: f32, %d: f32, %e: f32): %1 = arith.divf %b, %a : f32 %2 = arith.mulf %1, %c : f32 %3 = arith.addf %2, %d : f32 linalg.yield %3 : f32
  } -> tensor<2x3xf32>
  return %r : tensor<2x3xf32>
}
