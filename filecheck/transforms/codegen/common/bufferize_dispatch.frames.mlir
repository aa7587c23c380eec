// RUN: xdsl-opt %s -p irees-bufferize-dispatch | filecheck %s

// The border of a slice of a dynamic size ends where the result does.
// CHECK-LABEL: flow.executable @dynamic_frame
// CHECK:             func.func @dynamic_frame(%a: memref<?x6xf32>, %[[M:.*]]: index, %[[N:.*]]: index, %o: memref<?x8xf32>)
// CHECK:               %[[IN:.*]] = memref.subview %o[1, 2] [%[[M]], 6] [1, 1]
// CHECK-NEXT:          linalg.generic {{.*}} ins(%a : memref<?x6xf32>) outs(%[[IN]] :
// CHECK:               %[[END:.*]] = arith.addi %{{.*}}, %[[M]] : index
// CHECK-NEXT:          %[[REST:.*]] = arith.subi %{{.*}}, %[[END]] : index
// CHECK:               %[[TOP:.*]] = memref.subview %o[0, 0] [1, 8] [1, 1]
// CHECK-NEXT:          linalg.generic {{.*}} outs(%[[TOP]] :
// CHECK:               %[[LOW:.*]] = memref.subview %o[%[[END]], 0] [%[[REST]], 8] [1, 1]
// CHECK-NEXT:          linalg.generic {{.*}} outs(%[[LOW]] :
// CHECK:               %[[LEFT:.*]] = memref.subview %o[1, 0] [%[[M]], 2] [1, 1]
// CHECK-NEXT:          linalg.generic {{.*}} outs(%[[LEFT]] :
// CHECK-NOT:           linalg.generic
// CHECK:               func.return
flow.executable @dynamic_frame {
  builtin.module {
    func.func @dynamic_frame(%a: !iree_tensor_ext.dispatch.tensor<readonly:tensor<?x6xf32>>, %m: index, %n: index, %o: !iree_tensor_ext.dispatch.tensor<writeonly:tensor<?x8xf32>>) {
      %x = iree_tensor_ext.dispatch.tensor.load %a, offsets = [0, 0], sizes = [%m, 6], strides = [1, 1] : !iree_tensor_ext.dispatch.tensor<readonly:tensor<?x6xf32>>{%m} -> tensor<?x6xf32>
      %e = tensor.empty(%m) : tensor<?x6xf32>
      %y = linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d0, d1)>], iterator_types = ["parallel", "parallel"]} ins(%x : tensor<?x6xf32>) outs(%e : tensor<?x6xf32>) {
      ^bb0(%p: f32, %q: f32):
        %v = math.exp %p : f32
        linalg.yield %v : f32
      } -> tensor<?x6xf32>
      %z = arith.constant 0.0 : f32
      %g = tensor.empty(%n) : tensor<?x8xf32>
      %f = linalg.generic {indexing_maps = [affine_map<(d0, d1) -> ()>, affine_map<(d0, d1) -> (d0, d1)>], iterator_types = ["parallel", "parallel"]} ins(%z : f32) outs(%g : tensor<?x8xf32>) {
      ^bb0(%p: f32, %q: f32):
        linalg.yield %p : f32
      } -> tensor<?x8xf32>
      %r = tensor.insert_slice %y into %f[1, 2] [%m, 6] [1, 1] : tensor<?x6xf32> into tensor<?x8xf32>
      iree_tensor_ext.dispatch.tensor.store %r, %o, offsets = [0, 0], sizes = [%n, 8], strides = [1, 1] : tensor<?x8xf32> -> !iree_tensor_ext.dispatch.tensor<writeonly:tensor<?x8xf32>>{%n}
      return
    }
  }
}
