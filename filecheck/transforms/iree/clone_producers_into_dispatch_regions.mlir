// RUN: irees opt %s -p irees-clone-producers-into-dispatch-regions | filecheck %s
// RUN: irees opt %s -p "irees-clone-producers-into-dispatch-regions{aggressive=true}" | filecheck %s --check-prefix=AGGRESSIVE

#id = affine_map<(d0, d1) -> (d0, d1)>

// The fill and what it fills become the kernel's own; the size of the result stays with the host.
// CHECK-LABEL: func.func @fill
// CHECK-NEXT:    %[[N:.*]] = arith.addi %n, %n
// CHECK-NEXT:    flow.dispatch.region -> (tensor<?x4xf32>{%[[N]]}) {
// CHECK:           %[[E:.*]] = tensor.empty(%[[N]])
// CHECK-NEXT:      %[[F:.*]] = linalg.fill {{.*}} outs(%[[E]]
// CHECK-NEXT:      linalg.matmul {{.*}} outs(%[[F]]
func.func @fill(%a: tensor<?x4xf32>, %b: tensor<4x4xf32>, %n: index) -> tensor<?x4xf32> {
  %zero = arith.constant 0.0 : f32
  %s = arith.addi %n, %n : index
  %e = tensor.empty(%s) : tensor<?x4xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<?x4xf32>) -> tensor<?x4xf32>
  %r = flow.dispatch.region -> (tensor<?x4xf32>{%s}) {
    %m = linalg.matmul ins(%a, %b : tensor<?x4xf32>, tensor<4x4xf32>) outs(%f : tensor<?x4xf32>) -> tensor<?x4xf32>
    flow.return %m : tensor<?x4xf32>
  }
  return %r : tensor<?x4xf32>
}

// Widening is repeated in each kernel that reads it, and the last one outside is gone.
// CHECK-LABEL: func.func @widen
// CHECK-NEXT:    flow.dispatch.region
// CHECK:           arith.extf
// CHECK:           linalg.exp
// CHECK:         flow.dispatch.region
// CHECK:           arith.extf
// CHECK:           linalg.abs
func.func @widen(%h: tensor<4x4xf16>, %c: tensor<4x4xf32>) -> (tensor<4x4xf32>, tensor<4x4xf32>) {
  %w = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]} ins(%h : tensor<4x4xf16>) outs(%c : tensor<4x4xf32>) {
  ^bb0(%i: f16, %o: f32):
    %x = arith.extf %i : f16 to f32
    linalg.yield %x : f32
  } -> tensor<4x4xf32>
  %r = flow.dispatch.region -> (tensor<4x4xf32>) {
    %m = linalg.exp ins(%w : tensor<4x4xf32>) outs(%c : tensor<4x4xf32>) -> tensor<4x4xf32>
    flow.return %m : tensor<4x4xf32>
  }
  %s = flow.dispatch.region -> (tensor<4x4xf32>) {
    %m = linalg.abs ins(%w : tensor<4x4xf32>) outs(%c : tensor<4x4xf32>) -> tensor<4x4xf32>
    flow.return %m : tensor<4x4xf32>
  }
  return %r, %s : tensor<4x4xf32>, tensor<4x4xf32>
}

// A kernel that filled the original of its scatter would write all of it to change a part. The
// indices are a kernel of their own, unless fusion is aggressive.
// CHECK-LABEL: func.func @scatter
// CHECK:         %[[F:.*]] = linalg.fill
// CHECK-NEXT:    %[[I:.*]] = flow.dispatch.region
// CHECK:         flow.dispatch.region
// CHECK-NEXT:      iree_linalg_ext.scatter {{.*}} ins(%u, %[[I]] : {{.*}}) outs(%[[F]] :
// AGGRESSIVE-LABEL: func.func @scatter
// AGGRESSIVE:    %[[F:.*]] = linalg.fill
// AGGRESSIVE-NEXT: flow.dispatch.region
// AGGRESSIVE-NEXT: %[[I:.*]] = linalg.generic
// AGGRESSIVE:      iree_linalg_ext.scatter {{.*}} ins(%u, %[[I]] : {{.*}}) outs(%[[F]] :
func.func @scatter(%u: tensor<4x8xf32>, %k: tensor<4x1xi32>, %e: tensor<16x8xf32>) -> tensor<16x8xf32> {
  %zero = arith.constant 0.0 : f32
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<16x8xf32>) -> tensor<16x8xf32>
  %i = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]} ins(%k : tensor<4x1xi32>) outs(%k : tensor<4x1xi32>) {
  ^bb0(%p: i32, %o: i32):
    %x = arith.addi %p, %p : i32
    linalg.yield %x : i32
  } -> tensor<4x1xi32>
  %r = flow.dispatch.region -> (tensor<16x8xf32>) {
    %s = iree_linalg_ext.scatter dimension_map = [0] unique_indices(true) ins(%u, %i : tensor<4x8xf32>, tensor<4x1xi32>) outs(%f : tensor<16x8xf32>) {
    ^bb0(%p: f32, %o: f32):
      iree_linalg_ext.yield %p : f32
    } -> tensor<16x8xf32>
    flow.return %s : tensor<16x8xf32>
  }
  return %r : tensor<16x8xf32>
}
