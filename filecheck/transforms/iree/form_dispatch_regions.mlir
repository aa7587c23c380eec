// RUN: irees opt %s -p irees-form-dispatch-regions | filecheck %s
// RUN: irees opt %s -p "irees-form-dispatch-regions{aggressive-fusion=true}" | filecheck %s --check-prefix=AGGRESSIVE
// RUN: irees opt %s -p "irees-form-dispatch-regions{aggressive-fusion fuse-multi-use-producers=false}" | filecheck %s --check-prefix=ONE-USE

// No kernel moves a load of a global across a store of it.
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
