// RUN: xdsl-opt %s -p irees-outline-dispatch-regions | filecheck %s

// Tensors are read through dispatch tensors, results written through them.
// CHECK:       flow.executable @static_dispatch_0
// CHECK:         func.func @static_dispatch_0(%[[IN:.*]]: !iree_tensor_ext.dispatch.tensor<readonly:tensor<4xf32>>, %[[OUT:.*]]: !iree_tensor_ext.dispatch.tensor<writeonly:tensor<4xf32>>) {
// CHECK-NEXT:      %[[X:.*]] = iree_tensor_ext.dispatch.tensor.load %[[IN]], offsets = [0], sizes = [4], strides = [1]
// CHECK:         %[[Y:.*]] = linalg.generic {{.*}} ins(%[[X]] : tensor<4xf32>)
// CHECK:         iree_tensor_ext.dispatch.tensor.store %[[Y]], %[[OUT]], offsets = [0], sizes = [4], strides = [1]
// CHECK:       func.func @static(%x: tensor<4xf32>)
// CHECK-NEXT:    %[[R:.*]] = flow.dispatch @static_dispatch_0::@static_dispatch_0(%x) : (tensor<4xf32>) -> tensor<4xf32>
// CHECK-NEXT:    func.return %[[R]]
func.func @static(%x: tensor<4xf32>) -> tensor<4xf32> {
  %r = flow.dispatch.region -> (tensor<4xf32>) {
    %e = tensor.empty() : tensor<4xf32>
    %1 = linalg.generic {indexing_maps = [affine_map<(d0) -> (d0)>, affine_map<(d0) -> (d0)>], iterator_types = ["parallel"]} ins(%x : tensor<4xf32>) outs(%e : tensor<4xf32>) {
    ^bb0(%a: f32, %o: f32):
      %n = arith.negf %a : f32
      linalg.yield %n : f32
    } -> tensor<4xf32>
    flow.return %1 : tensor<4xf32>
  }
  return %r : tensor<4xf32>
}

// Dynamic dims travel as index arguments.
// CHECK:       flow.executable @dynamic_dispatch_0
// CHECK:         func.func @dynamic_dispatch_0(%[[IN:.*]]: !iree_tensor_ext.dispatch.tensor<readonly:tensor<?xf32>>, %[[RD:.*]]: index, %[[XD:.*]]: index, %[[OUT:.*]]: !iree_tensor_ext.dispatch.tensor<writeonly:tensor<?xf32>>) {
// CHECK-NEXT:      iree_tensor_ext.dispatch.tensor.load %[[IN]], offsets = [0], sizes = [%[[XD]]]
// CHECK-NEXT:      tensor.empty(%[[RD]])
// CHECK:       func.func @dynamic(%x: tensor<?xf32>)
// CHECK:         %[[A:.*]] = tensor.dim %x
// CHECK:         %[[B:.*]] = tensor.dim %x
// CHECK:         flow.dispatch @dynamic_dispatch_0::@dynamic_dispatch_0(%x, %[[A]], %[[B]]) : (tensor<?xf32>, index, index) -> tensor<?xf32>{%[[A]]}
func.func @dynamic(%x: tensor<?xf32>) -> tensor<?xf32> {
  %c0 = arith.constant 0 : index
  %d = tensor.dim %x, %c0 : tensor<?xf32>
  %r = flow.dispatch.region -> (tensor<?xf32>{%d}) {
    %e = tensor.empty(%d) : tensor<?xf32>
    %1 = linalg.generic {indexing_maps = [affine_map<(d0) -> (d0)>, affine_map<(d0) -> (d0)>], iterator_types = ["parallel"]} ins(%x : tensor<?xf32>) outs(%e : tensor<?xf32>) {
    ^bb0(%a: f32, %o: f32):
      %n = arith.negf %a : f32
      linalg.yield %n : f32
    } -> tensor<?xf32>
    flow.return %1 : tensor<?xf32>
  }
  return %r : tensor<?xf32>
}

// A scalar is passed as it is; a constant is copied in.
// CHECK:       func.func @scalars_dispatch_0(%[[V:.*]]: f32, %{{.*}}: !iree_tensor_ext.dispatch.tensor<writeonly:tensor<4xf32>>) {
// CHECK-NEXT:      arith.constant 2.000000e+00 : f32
// CHECK:         linalg.generic {{.*}} ins(%[[V]] : f32)
// CHECK:       func.func @scalars(%v: f32)
// CHECK:         flow.dispatch @scalars_dispatch_0::@scalars_dispatch_0(%v) : (f32) -> tensor<4xf32>
func.func @scalars(%v: f32) -> tensor<4xf32> {
  %two = arith.constant 2.0 : f32
  %r = flow.dispatch.region -> (tensor<4xf32>) {
    %e = tensor.empty() : tensor<4xf32>
    %1 = linalg.generic {indexing_maps = [affine_map<(d0) -> ()>, affine_map<(d0) -> (d0)>], iterator_types = ["parallel"]} ins(%v : f32) outs(%e : tensor<4xf32>) {
    ^bb0(%a: f32, %o: f32):
      %n = arith.mulf %a, %two : f32
      linalg.yield %n : f32
    } -> tensor<4xf32>
    flow.return %1 : tensor<4xf32>
  }
  return %r : tensor<4xf32>
}

// A constant that is not a splat stays on the host, where it is one buffer for all.
// CHECK:       func.func @no_large_constant_dispatch_0(%{{.*}}: !iree_tensor_ext.dispatch.tensor<readonly:tensor<2xf32>>
// CHECK:       func.func @no_large_constant()
// CHECK:         %[[W:.*]] = arith.constant dense<[1.000000e+00, 2.000000e+00]> : tensor<2xf32>
// CHECK-NEXT:    flow.dispatch @no_large_constant_dispatch_0::@no_large_constant_dispatch_0(%[[W]])
func.func @no_large_constant() -> tensor<2xf32> {
  %w = arith.constant dense<[1.0, 2.0]> : tensor<2xf32>
  %r = flow.dispatch.region -> (tensor<2xf32>) {
    %e = tensor.empty() : tensor<2xf32>
    %1 = linalg.generic {indexing_maps = [affine_map<(d0) -> (d0)>, affine_map<(d0) -> (d0)>], iterator_types = ["parallel"]} ins(%w : tensor<2xf32>) outs(%e : tensor<2xf32>) {
    ^bb0(%a: f32, %o: f32):
      linalg.yield %a : f32
    } -> tensor<2xf32>
    flow.return %1 : tensor<2xf32>
  }
  return %r : tensor<2xf32>
}

// A region that gives nothing is not run.
// CHECK-NOT:   flow.executable
// CHECK-LABEL: func.func @nothing
// CHECK-NEXT:    func.return
func.func @nothing(%t: tensor<4xf32>) {
  flow.dispatch.region -> () {
    %e = tensor.empty() : tensor<4xf32>
    %1 = linalg.generic {indexing_maps = [affine_map<(d0) -> (d0)>, affine_map<(d0) -> (d0)>], iterator_types = ["parallel"]} ins(%t : tensor<4xf32>) outs(%e : tensor<4xf32>) {
    ^bb0(%a: f32, %o: f32):
      %n = arith.negf %a : f32
      linalg.yield %n : f32
    } -> tensor<4xf32>
    flow.return
  }
  return
}
