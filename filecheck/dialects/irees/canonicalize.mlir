// RUN: xdsl-opt %s -p canonicalize | filecheck %s

// CHECK-LABEL: func.func @views
// CHECK-NEXT:    return %x
func.func @views(%x: tensor<4x2xf32>) -> tensor<4x2xf32> {
  %0 = irees.view_parts %x : tensor<4x2xf32> -> tensor<4xcomplex<f32>>
  %1 = irees.view_parts %0 : tensor<4xcomplex<f32>> -> tensor<4x2xf32>
  return %1 : tensor<4x2xf32>
}
