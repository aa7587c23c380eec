// RUN: xdsl-opt %s -p irees-convert-elementwise-to-linalg --split-input-file | filecheck %s

// CHECK-LABEL: func.func @dynamic
// CHECK:         %[[N:.*]] = tensor.dim %x
// CHECK-NEXT:    %[[E:.*]] = tensor.empty(%[[N]]) : tensor<4x?xf32>
// CHECK-NEXT:    linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d0, d1)>], iterator_types = ["parallel", "parallel"]} ins(%x, %y : tensor<4x?xf32>, tensor<4x?xf32>) outs(%[[E]] : tensor<4x?xf32>)
// CHECK-NEXT:    ^bb0(%[[A:.*]]: f32, %[[B:.*]]: f32, %{{.*}}: f32):
// CHECK-NEXT:      %[[R:.*]] = arith.addf %[[A]], %[[B]] fastmath<nnan> : f32
// CHECK-NEXT:      linalg.yield %[[R]] : f32
func.func @dynamic(%x: tensor<4x?xf32>, %y: tensor<4x?xf32>) -> tensor<4x?xf32> {
  %0 = arith.addf %x, %y fastmath<nnan> : tensor<4x?xf32>
  return %0 : tensor<4x?xf32>
}

// -----

// The type of a result may be another one; the condition of a select may be one for all.
// CHECK-LABEL: func.func @select
// CHECK:         arith.cmpf olt, %{{.*}}, %{{.*}} : f32
// CHECK:         -> tensor<3xi1>
// CHECK:         arith.select %c, %{{.*}}, %{{.*}} : f32
// CHECK:         math.sincos %{{.*}} : f32
// CHECK-NEXT:    linalg.yield %{{.*}}, %{{.*}} : f32, f32
// CHECK:         -> (tensor<f32>, tensor<f32>)
func.func @select(%c: i1, %x: tensor<3xf32>, %y: tensor<3xf32>, %z: tensor<f32>) -> (tensor<3xi1>, tensor<3xf32>, tensor<f32>, tensor<f32>) {
  %0 = arith.cmpf olt, %x, %y : tensor<3xf32>
  %1 = arith.select %c, %x, %y : tensor<3xf32>
  %2, %3 = math.sincos %z : tensor<f32>
  return %0, %1, %2, %3 : tensor<3xi1>, tensor<3xf32>, tensor<f32>, tensor<f32>
}

// -----

// Constants and scalars stay.
// CHECK-LABEL: func.func @stay
// CHECK-NEXT:    arith.constant dense<1.0
// CHECK-NEXT:    arith.addf %x, %x : f32
// CHECK-NEXT:    func.return
func.func @stay(%x: f32) -> (tensor<2xf32>, f32) {
  %0 = arith.constant dense<1.0> : tensor<2xf32>
  %1 = arith.addf %x, %x : f32
  return %0, %1 : tensor<2xf32>, f32
}
