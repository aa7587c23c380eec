// RUN: xdsl-opt %s -p "irees-form-dispatch-regions{one-tile-loop=true}" | filecheck %s --check-prefix=TILE
// RUN: irees opt %s -p irees-form-dispatch-regions | filecheck %s
// RUN: irees opt %s -p "irees-form-dispatch-regions{aggressive-fusion=true}" | filecheck %s --check-prefix=AGGRESSIVE
// RUN: irees opt %s -p "irees-form-dispatch-regions{aggressive-fusion fuse-multi-use-producers=false}" | filecheck %s --check-prefix=ONE-USE

// A row reduction takes its elementwise consumer along: both run over the same rows.
// TILE-LABEL: func.func @rows
// TILE:         %[[D:.*]] = flow.dispatch.region -> (tensor<512x64xf32>) {
// TILE-NEXT:      tensor.empty() : tensor<512xf32>
// TILE-NEXT:      %[[FILL:.*]] = linalg.generic {{.*}} ins(%zero : f32)
// TILE:         %[[S:.*]] = linalg.generic {{.*}} outs(%[[FILL]] : tensor<512xf32>)
// TILE:         linalg.generic {{.*}} ins(%x, %[[S]] : tensor<512x64xf32>, tensor<512xf32>)
// TILE:         func.return %[[D]]
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
// TILE-LABEL: func.func @epilogue
// TILE:         %[[N:.*]] = tensor.dim %e
// TILE-NEXT:    flow.dispatch.region -> (tensor<?x16xf32>{%[[N]]}) {
// TILE:         %[[M:.*]] = linalg.generic {{.*}} ins(%a, %b : tensor<?x8xf32>, tensor<8x16xf32>)
// TILE:         linalg.generic {{.*}} ins(%[[M]] : tensor<?x16xf32>)
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
// TILE-LABEL: func.func @two_results
// TILE-NEXT:    %[[A:.*]], %[[B:.*]] = flow.dispatch.region -> (tensor<64xf32>, tensor<64xf32>) {
// TILE:         flow.return %{{.*}}, %{{.*}} : tensor<64xf32>, tensor<64xf32>
// TILE:         func.return %[[A]], %[[B]]
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
// TILE-LABEL: func.func @no_shared_loop
// TILE-NEXT:    %[[A:.*]] = flow.dispatch.region -> (tensor<64xf32>) {
// TILE:         flow.dispatch.region -> (tensor<64x64xf32>) {
// TILE-NEXT:      linalg.generic {{.*}} ins(%[[A]], %[[A]] : tensor<64xf32>, tensor<64xf32>)
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
// TILE-LABEL: func.func @no_second_contraction
// TILE-NEXT:    %[[A:.*]] = flow.dispatch.region -> (tensor<64x64xf32>) {
// TILE:         flow.dispatch.region -> (tensor<64x64xf32>) {
// TILE-NEXT:      linalg.generic {{.*}} ins(%[[A]], %b : tensor<64x64xf32>, tensor<64x64xf32>)
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
// TILE-LABEL: func.func @no_cycle_of_groups
// TILE-NEXT:      %c0 = arith.constant
// TILE-NEXT:      %[[A:.*]] = flow.dispatch.region
// TILE:           %[[C:.*]], %[[B:.*]] = flow.dispatch.region
// TILE:             tensor.extract %[[A]]
// TILE:           %[[D:.*]] = flow.dispatch.region
// TILE:             tensor.extract %[[C]]
// TILE:           func.return %[[B]], %[[D]]
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

// Nor is a load of a global moved across a store of it.
// TILE-LABEL: func.func @effects
// TILE:           %[[A:.*]] = flow.dispatch.region
// TILE:           util.global.store %[[A]]
// TILE-NEXT:      %[[V:.*]] = util.global.load
// TILE-NEXT:      flow.dispatch.region
// TILE-NEXT:        linalg.generic {{.*}} ins(%[[A]], %[[V]]
// AGGRESSIVE-LABEL: func.func @effects
// AGGRESSIVE:     %[[A:.*]] = flow.dispatch.region
// AGGRESSIVE:     util.global.store %[[A]]
// AGGRESSIVE-NEXT: %[[V:.*]] = util.global.load
// AGGRESSIVE:     flow.dispatch.region
// AGGRESSIVE:       linalg.generic {{.*}} ins(%[[A]], %[[V]]
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

#id = affine_map<(d0, d1) -> (d0, d1)>
#tr = affine_map<(d0, d1) -> (d1, d0)>
#row = affine_map<(d0, d1) -> (d0)>

// A dynamic contraction takes a consumer that reads it transposed; sizes are those of its
// destination, also for who asks its result.
// CHECK-LABEL: func.func @consumer
// CHECK:         %[[R:.*]] = flow.dispatch.region -> (tensor<?x?xf32>{
// CHECK-NEXT:      %[[M:.*]] = linalg.matmul ins(%x, %y
// CHECK-NEXT:      %[[E:.*]] = linalg.generic {{.*}} ins(%[[M]] :
// CHECK:           flow.return %[[E]]
// CHECK:         %[[N:.*]] = tensor.dim %z
// CHECK:         func.return %[[R]], %[[N]]
func.func @consumer(%x: tensor<?x?xf32>, %y: tensor<?x?xf32>, %z: tensor<?x?xf32>, %e: tensor<?x?xf32>) -> (tensor<?x?xf32>, index) {
  %c1 = arith.constant 1 : index
  %m = linalg.matmul ins(%x, %y : tensor<?x?xf32>, tensor<?x?xf32>) outs(%z : tensor<?x?xf32>) -> tensor<?x?xf32>
  %n = tensor.dim %m, %c1 : tensor<?x?xf32>
  %t = linalg.generic {indexing_maps = [#tr, #id], iterator_types = ["parallel", "parallel"]} ins(%m : tensor<?x?xf32>) outs(%e : tensor<?x?xf32>) {
  ^bb0(%i: f32, %o: f32):
    linalg.yield %i : f32
  } -> tensor<?x?xf32>
  return %t, %n : tensor<?x?xf32>, index
}

// Read once as it is and once transposed, the contraction is in no tile that is both.
// CHECK-LABEL: func.func @two_orders
// CHECK:         %[[M:.*]] = flow.dispatch.region
// CHECK:         flow.dispatch.region
// CHECK-NEXT:      linalg.generic {{.*}} ins(%[[M]], %[[M]] :
// AGGRESSIVE-LABEL: func.func @two_orders
// AGGRESSIVE:    flow.dispatch.region
// AGGRESSIVE:    flow.dispatch.region
func.func @two_orders(%x: tensor<?x?xf32>, %y: tensor<?x?xf32>, %z: tensor<?x?xf32>) -> tensor<?x?xf32> {
  %m = linalg.matmul ins(%x, %y : tensor<?x?xf32>, tensor<?x?xf32>) outs(%z : tensor<?x?xf32>) -> tensor<?x?xf32>
  %t = linalg.generic {indexing_maps = [#id, #tr, #id], iterator_types = ["parallel", "parallel"]} ins(%m, %m : tensor<?x?xf32>, tensor<?x?xf32>) outs(%z : tensor<?x?xf32>) {
  ^bb0(%i: f32, %j: f32, %o: f32):
    %s = arith.addf %i, %j : f32
    linalg.yield %s : f32
  } -> tensor<?x?xf32>
  return %t : tensor<?x?xf32>
}

// Aggressive fusion: the producer comes through an input although it has another use, and
// is returned behind the root.
// CHECK-LABEL: func.func @producer
// CHECK:         %[[P:.*]] = flow.dispatch.region
// CHECK:         flow.dispatch.region
// CHECK-NEXT:      linalg.generic {{.*}} ins(%[[P]] :
// AGGRESSIVE-LABEL: func.func @producer
// AGGRESSIVE:    %[[R:.*]], %[[P:.*]] = flow.dispatch.region -> (tensor<?xf32>{{.*}}, tensor<?x?xf32>
// AGGRESSIVE-NEXT: %[[G:.*]] = linalg.generic
// AGGRESSIVE:      %[[S:.*]] = linalg.generic {{.*}} ins(%[[G]] :
// AGGRESSIVE:      flow.return %[[S]], %[[G]]
// AGGRESSIVE:    func.return %[[P]], %[[R]]
// ONE-USE-LABEL: func.func @producer
// ONE-USE:       flow.dispatch.region
// ONE-USE:       flow.dispatch.region
func.func @producer(%x: tensor<?x?xf32>, %y: tensor<?x?xf32>, %z: tensor<?xf32>) -> (tensor<?x?xf32>, tensor<?xf32>) {
  %p = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]} ins(%x : tensor<?x?xf32>) outs(%y : tensor<?x?xf32>) {
  ^bb0(%i: f32, %o: f32):
    %n = arith.negf %i : f32
    linalg.yield %n : f32
  } -> tensor<?x?xf32>
  %r = linalg.generic {indexing_maps = [#id, #row], iterator_types = ["parallel", "reduction"]} ins(%p : tensor<?x?xf32>) outs(%z : tensor<?xf32>) {
  ^bb0(%i: f32, %o: f32):
    %n = arith.addf %i, %o : f32
    linalg.yield %n : f32
  } -> tensor<?xf32>
  return %p, %r : tensor<?x?xf32>, tensor<?xf32>
}
