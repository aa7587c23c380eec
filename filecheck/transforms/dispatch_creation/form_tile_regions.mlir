// RUN: irees opt %s -p irees-form-tile-regions | filecheck %s

// A row reduction takes its elementwise consumer along: both run over the same rows.
// CHECK-LABEL: func.func @rows
// CHECK:         %[[D:.*]] = flow.dispatch.region -> (tensor<512x64xf32>) {
// CHECK-NEXT:      tensor.empty() : tensor<512xf32>
// CHECK-NEXT:      %[[FILL:.*]] = linalg.generic {{.*}} ins(%zero : f32)
// CHECK:         %[[S:.*]] = linalg.generic {{.*}} outs(%[[FILL]] : tensor<512xf32>)
// CHECK:         linalg.generic {{.*}} ins(%x, %[[S]] : tensor<512x64xf32>, tensor<512xf32>)
// CHECK:         func.return %[[D]]
func.func @rows(%x: tensor<512x64xf32>) -> tensor<512x64xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<512xf32>
  %f = linalg.generic {indexing_maps = [affine_map<(d0) -> ()>, affine_map<(d0) -> (d0)>], iterator_types = ["parallel"]} ins(%zero : f32) outs(%e : tensor<512xf32>) {
  ^bb0(%a: f32, %o: f32):
    linalg.yield %a : f32
  } -> tensor<512xf32>
  %s = linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d0)>], iterator_types = ["parallel", "reduction"]} ins(%x : tensor<512x64xf32>) outs(%f : tensor<512xf32>) {
  ^bb0(%a: f32, %o: f32):
    %b = arith.addf %o, %a : f32
    linalg.yield %b : f32
  } -> tensor<512xf32>
  %g = tensor.empty() : tensor<512x64xf32>
  %d = linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d0)>, affine_map<(d0, d1) -> (d0, d1)>], iterator_types = ["parallel", "parallel"]} ins(%x, %s : tensor<512x64xf32>, tensor<512xf32>) outs(%g : tensor<512x64xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %q = arith.divf %a, %b : f32
    linalg.yield %q : f32
  } -> tensor<512x64xf32>
  return %d : tensor<512x64xf32>
}

// A contraction takes its epilogue; the dynamic dims of the result are operands of the region.
// CHECK-LABEL: func.func @epilogue
// CHECK:         %[[N:.*]] = tensor.dim %e
// CHECK-NEXT:    flow.dispatch.region -> (tensor<?x16xf32>{%[[N]]}) {
// CHECK:         %[[M:.*]] = linalg.generic {{.*}} ins(%a, %b : tensor<?x8xf32>, tensor<8x16xf32>)
// CHECK:         linalg.generic {{.*}} ins(%[[M]] : tensor<?x16xf32>)
func.func @epilogue(%a: tensor<?x8xf32>, %b: tensor<8x16xf32>, %c: tensor<?x16xf32>, %e: tensor<?x16xf32>) -> tensor<?x16xf32> {
  %m = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2) -> (d0, d2)>, affine_map<(d0, d1, d2) -> (d2, d1)>, affine_map<(d0, d1, d2) -> (d0, d1)>], iterator_types = ["parallel", "parallel", "reduction"]} ins(%a, %b : tensor<?x8xf32>, tensor<8x16xf32>) outs(%c : tensor<?x16xf32>) {
  ^bb0(%x: f32, %y: f32, %z: f32):
    %p = arith.mulf %x, %y : f32
    %q = arith.addf %z, %p : f32
    linalg.yield %q : f32
  } -> tensor<?x16xf32>
  %r = linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d0, d1)>], iterator_types = ["parallel", "parallel"]} ins(%m : tensor<?x16xf32>) outs(%e : tensor<?x16xf32>) {
  ^bb0(%x: f32, %o: f32):
    %n = arith.negf %x : f32
    linalg.yield %n : f32
  } -> tensor<?x16xf32>
  return %r : tensor<?x16xf32>
}

// A value that is used outside is returned beside the last one.
// CHECK-LABEL: func.func @two_results
// CHECK-NEXT:    %[[A:.*]], %[[B:.*]] = flow.dispatch.region -> (tensor<64xf32>, tensor<64xf32>) {
// CHECK:         flow.return %{{.*}}, %{{.*}} : tensor<64xf32>, tensor<64xf32>
// CHECK:         func.return %[[A]], %[[B]]
func.func @two_results(%x: tensor<64xf32>, %e: tensor<64xf32>, %g: tensor<64xf32>) -> (tensor<64xf32>, tensor<64xf32>) {
  %a = linalg.generic {indexing_maps = [affine_map<(d0) -> (d0)>, affine_map<(d0) -> (d0)>], iterator_types = ["parallel"]} ins(%x : tensor<64xf32>) outs(%e : tensor<64xf32>) {
  ^bb0(%i: f32, %o: f32):
    %n = math.exp %i : f32
    linalg.yield %n : f32
  } -> tensor<64xf32>
  %b = linalg.generic {indexing_maps = [affine_map<(d0) -> (d0)>, affine_map<(d0) -> (d0)>], iterator_types = ["parallel"]} ins(%a : tensor<64xf32>) outs(%g : tensor<64xf32>) {
  ^bb0(%i: f32, %o: f32):
    %n = arith.negf %i : f32
    linalg.yield %n : f32
  } -> tensor<64xf32>
  return %a, %b : tensor<64xf32>, tensor<64xf32>
}

// Each column of the sum needs every row: the two ops have no tile loop in common.
// CHECK-LABEL: func.func @no_shared_loop
// CHECK-NEXT:    %[[A:.*]] = flow.dispatch.region -> (tensor<64xf32>) {
// CHECK:         flow.dispatch.region -> (tensor<64x64xf32>) {
// CHECK-NEXT:      linalg.generic {{.*}} ins(%[[A]], %[[A]] : tensor<64xf32>, tensor<64xf32>)
func.func @no_shared_loop(%x: tensor<64x64xf32>, %e: tensor<64x64xf32>, %s: tensor<64xf32>, %g: tensor<64xf32>) -> tensor<64x64xf32> {
  %a = linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d0)>], iterator_types = ["parallel", "reduction"]} ins(%x : tensor<64x64xf32>) outs(%s : tensor<64xf32>) {
  ^bb0(%i: f32, %o: f32):
    %b = arith.addf %o, %i : f32
    linalg.yield %b : f32
  } -> tensor<64xf32>
  %d = linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d0)>, affine_map<(d0, d1) -> (d1)>, affine_map<(d0, d1) -> (d0, d1)>], iterator_types = ["parallel", "parallel"]} ins(%a, %a : tensor<64xf32>, tensor<64xf32>) outs(%e : tensor<64x64xf32>) {
  ^bb0(%i: f32, %j: f32, %o: f32):
    %q = arith.divf %i, %j : f32
    linalg.yield %q : f32
  } -> tensor<64x64xf32>
  return %d : tensor<64x64xf32>
}

// A second contraction gets a kernel of its own.
// CHECK-LABEL: func.func @no_second_contraction
// CHECK-NEXT:    %[[A:.*]] = flow.dispatch.region -> (tensor<64x64xf32>) {
// CHECK:         flow.dispatch.region -> (tensor<64x64xf32>) {
// CHECK-NEXT:      linalg.generic {{.*}} ins(%[[A]], %b : tensor<64x64xf32>, tensor<64x64xf32>)
func.func @no_second_contraction(%a: tensor<64x64xf32>, %b: tensor<64x64xf32>, %c: tensor<64x64xf32>) -> tensor<64x64xf32> {
  %m = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2) -> (d0, d2)>, affine_map<(d0, d1, d2) -> (d2, d1)>, affine_map<(d0, d1, d2) -> (d0, d1)>], iterator_types = ["parallel", "parallel", "reduction"]} ins(%a, %b : tensor<64x64xf32>, tensor<64x64xf32>) outs(%c : tensor<64x64xf32>) {
  ^bb0(%x: f32, %y: f32, %z: f32):
    %p = arith.mulf %x, %y : f32
    %q = arith.addf %z, %p : f32
    linalg.yield %q : f32
  } -> tensor<64x64xf32>
  %n = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2) -> (d0, d2)>, affine_map<(d0, d1, d2) -> (d2, d1)>, affine_map<(d0, d1, d2) -> (d0, d1)>], iterator_types = ["parallel", "parallel", "reduction"]} ins(%m, %b : tensor<64x64xf32>, tensor<64x64xf32>) outs(%c : tensor<64x64xf32>) {
  ^bb0(%x: f32, %y: f32, %z: f32):
    %p = arith.mulf %x, %y : f32
    %q = arith.addf %z, %p : f32
    linalg.yield %q : f32
  } -> tensor<64x64xf32>
  return %n : tensor<64x64xf32>
}

// No kernel waits for itself: %a and %d would, for %c and %b, which wait for %a.
// CHECK-LABEL: func.func @no_cycle_of_groups
// CHECK-NEXT:      %c0 = arith.constant
// CHECK-NEXT:      %[[A:.*]] = flow.dispatch.region
// CHECK:           %[[C:.*]], %[[B:.*]] = flow.dispatch.region
// CHECK:             tensor.extract %[[A]]
// CHECK:           %[[D:.*]] = flow.dispatch.region
// CHECK:             tensor.extract %[[C]]
// CHECK:           func.return %[[B]], %[[D]]
func.func @no_cycle_of_groups(%x: tensor<64xf32>, %y: tensor<64x64xf32>, %e: tensor<64xf32>) -> (tensor<64xf32>, tensor<64xf32>) {
  %c0 = arith.constant 0 : index
  %c = linalg.generic {indexing_maps = [affine_map<(d0) -> (d0)>, affine_map<(d0) -> (d0)>], iterator_types = ["parallel"]} ins(%x : tensor<64xf32>) outs(%e : tensor<64xf32>) {
  ^bb0(%i: f32, %o: f32):
    %n = math.exp %i : f32
    linalg.yield %n : f32
  } -> tensor<64xf32>
  %a = linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d0)>], iterator_types = ["parallel", "reduction"]} ins(%y : tensor<64x64xf32>) outs(%e : tensor<64xf32>) {
  ^bb0(%i: f32, %o: f32):
    %n = arith.addf %o, %i : f32
    linalg.yield %n : f32
  } -> tensor<64xf32>
  %b = linalg.generic {indexing_maps = [affine_map<(d0) -> (d0)>, affine_map<(d0) -> (d0)>], iterator_types = ["parallel"]} ins(%c : tensor<64xf32>) outs(%e : tensor<64xf32>) {
  ^bb0(%i: f32, %o: f32):
    %s = tensor.extract %a[%c0] : tensor<64xf32>
    %n = arith.addf %i, %s : f32
    linalg.yield %n : f32
  } -> tensor<64xf32>
  %d = linalg.generic {indexing_maps = [affine_map<(d0) -> (d0)>, affine_map<(d0) -> (d0)>], iterator_types = ["parallel"]} ins(%a : tensor<64xf32>) outs(%e : tensor<64xf32>) {
  ^bb0(%i: f32, %o: f32):
    %s = tensor.extract %c[%c0] : tensor<64xf32>
    %n = arith.addf %i, %s : f32
    linalg.yield %n : f32
  } -> tensor<64xf32>
  return %b, %d : tensor<64xf32>, tensor<64xf32>
}

// No kernel moves a load of a global across a store of it.
// CHECK-LABEL: func.func @effects
// CHECK:           %[[A:.*]] = flow.dispatch.region
// CHECK:           util.global.store %[[A]]
// CHECK-NEXT:      %[[V:.*]] = util.global.load
// CHECK-NEXT:      flow.dispatch.region
// CHECK-NEXT:        linalg.generic {{.*}} ins(%[[A]], %[[V]]
util.global private mutable @g : tensor<64xf32>
func.func @effects(%x: tensor<64xf32>, %e: tensor<64xf32>) -> tensor<64xf32> {
  %a = linalg.generic {indexing_maps = [affine_map<(d0) -> (d0)>, affine_map<(d0) -> (d0)>], iterator_types = ["parallel"]} ins(%x : tensor<64xf32>) outs(%e : tensor<64xf32>) {
  ^bb0(%i: f32, %o: f32):
    %n = math.exp %i : f32
    linalg.yield %n : f32
  } -> tensor<64xf32>
  util.global.store %a, @g : tensor<64xf32>
  %v = util.global.load @g : tensor<64xf32>
  %b = linalg.generic {indexing_maps = [affine_map<(d0) -> (d0)>, affine_map<(d0) -> (d0)>, affine_map<(d0) -> (d0)>], iterator_types = ["parallel"]} ins(%a, %v : tensor<64xf32>, tensor<64xf32>) outs(%e : tensor<64xf32>) {
  ^bb0(%i: f32, %j: f32, %o: f32):
    %n = arith.addf %i, %j : f32
    linalg.yield %n : f32
  } -> tensor<64xf32>
  return %b : tensor<64xf32>
}

// A value per column does not make its reader a loop over columns: little is read twice.
// CHECK-LABEL: func.func @no_table
// CHECK:         flow.dispatch.region -> (tensor<4096xf32>)
// CHECK:         flow.dispatch.region -> (tensor<64x4096xf32>)
func.func @no_table(%x: tensor<64x4096xf32>, %t: tensor<4096xf32>) -> tensor<64x4096xf32> {
  %e = tensor.empty() : tensor<4096xf32>
  %g = linalg.generic {indexing_maps = [affine_map<(j) -> (j)>, affine_map<(j) -> (j)>], iterator_types = ["parallel"]} ins(%t : tensor<4096xf32>) outs(%e : tensor<4096xf32>) {
  ^bb0(%a: f32, %o: f32):
    %b = math.exp %a : f32
    linalg.yield %b : f32
  } -> tensor<4096xf32>
  %f = tensor.empty() : tensor<64x4096xf32>
  %r = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (j)>, affine_map<(i, j) -> (i, j)>], iterator_types = ["parallel", "parallel"]} ins(%x, %g : tensor<64x4096xf32>, tensor<4096xf32>) outs(%f : tensor<64x4096xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %m = arith.mulf %a, %b : f32
    linalg.yield %m : f32
  } -> tensor<64x4096xf32>
  return %r : tensor<64x4096xf32>
}

// A padded argument becomes a copy inside its border.
// CHECK-LABEL: func.func @padded_argument
// CHECK:         flow.dispatch.region -> (tensor<6x6xf32>) {
// CHECK:           %[[C:.*]] = linalg.generic {{.*}} ins(%x : tensor<4x4xf32>)
// CHECK:           tensor.insert_slice %[[C]] into %{{.*}}[1, 1] [4, 4] [1, 1]
func.func @padded_argument(%x: tensor<4x4xf32>) -> tensor<6x6xf32> {
  %e = tensor.empty() : tensor<6x6xf32>
  %f = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>], iterator_types = ["parallel", "parallel"]} outs(%e : tensor<6x6xf32>) {
  ^bb0(%o: f32):
    %zero = arith.constant 0.0 : f32
    linalg.yield %zero : f32
  } -> tensor<6x6xf32>
  %r = tensor.insert_slice %x into %f[1, 1] [4, 4] [1, 1] : tensor<4x4xf32> into tensor<6x6xf32>
  return %r : tensor<6x6xf32>
}

// Nothing reads the result, but the assertion must run.
// CHECK-LABEL: func.func @asserted
// CHECK:         flow.dispatch.region -> (tensor<8xf32>)
// CHECK:           cf.assert
// CHECK:           flow.return
func.func @asserted(%x: tensor<8xf32>) -> tensor<8xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<8xf32>
  %r = linalg.generic {indexing_maps = [affine_map<(d0) -> (d0)>, affine_map<(d0) -> (d0)>], iterator_types = ["parallel"]} ins(%x : tensor<8xf32>) outs(%e : tensor<8xf32>) {
  ^bb0(%a: f32, %o: f32):
    %c = arith.cmpf oge, %a, %zero : f32
    cf.assert %c, "negative"
    linalg.yield %a : f32
  } -> tensor<8xf32>
  return %x : tensor<8xf32>
}

// The copy has the type of what is padded, even if its dynamic size is known.
// CHECK-LABEL: func.func @padded_known_size
// CHECK:           %[[C:.*]] = linalg.generic {{.*}} ins(%v_1 : tensor<?x4xf32>) outs(%{{.*}} : tensor<?x4xf32>)
// CHECK:           tensor.insert_slice %[[C]] into %{{.*}}[1, 1] [%four, 4] [1, 1]
func.func @padded_known_size(%x: tensor<4x4xf32>, %four: index) -> (tensor<?x4xf32>, tensor<6x6xf32>) {
  %n = arith.constant 4 : index
  %u = tensor.empty(%n) : tensor<?x4xf32>
  %v = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i, j)>], iterator_types = ["parallel", "parallel"]} ins(%x : tensor<4x4xf32>) outs(%u : tensor<?x4xf32>) {
  ^bb0(%a: f32, %o: f32):
    linalg.yield %a : f32
  } -> tensor<?x4xf32>
  %e = tensor.empty() : tensor<6x6xf32>
  %f = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>], iterator_types = ["parallel", "parallel"]} outs(%e : tensor<6x6xf32>) {
  ^bb0(%o: f32):
    %zero = arith.constant 0.0 : f32
    linalg.yield %zero : f32
  } -> tensor<6x6xf32>
  %r = tensor.insert_slice %v into %f[1, 1] [%four, 4] [1, 1] : tensor<?x4xf32> into tensor<6x6xf32>
  return %v, %r : tensor<?x4xf32>, tensor<6x6xf32>
}
