// RUN: xdsl-opt %s -p irees-expand-complex-contractions | filecheck %s
// RUN: xdsl-opt %s -p 'irees-assign-target{fp=strict},irees-expand-complex-contractions' | filecheck %s --check-prefix=LEFT
// RUN: xdsl-opt %s -p 'irees-assign-target{target="cuda:sm_80"},irees-expand-complex-contractions' | filecheck %s --check-prefix=LEFT

// With fp=strict, and for GPUs, all complex numbers stay.
// LEFT-NOT: irees.view_parts

// The columns (re, im) and (-im, re) of each number of y make a real matrix; x is read as it is.
// CHECK-LABEL: func.func @matrices
// CHECK:         %[[X:.*]] = irees.view_parts %x
// CHECK:         %[[C:.*]] = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2, d3) -> (d0, d1, 0)>, affine_map<(d0, d1, d2, d3) -> (d0, d1, 1)>, affine_map<(d0, d1, d2, d3) -> (d0, d2, d1, d3)>]
// CHECK-DAG:     %[[A:.*]] = tensor.collapse_shape %[[X]] [[0], [1, 2]] : tensor<3x5x2xf32> into tensor<3x10xf32>
// CHECK-DAG:     %[[S:.*]] = tensor.collapse_shape %[[C]] [[0, 1], [2], [3]] : tensor<5x2x?x2xf32> into tensor<10x?x2xf32>
// CHECK-DAG:     %[[B:.*]] = tensor.collapse_shape %[[S]] [[0], [1, 2]] : tensor<10x?x2xf32> into tensor<10x?xf32>
// CHECK:         %[[R:.*]] = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2) -> (d0, d2)>, affine_map<(d0, d1, d2) -> (d2, d1)>, affine_map<(d0, d1, d2) -> (d0, d1)>], iterator_types = ["parallel", "parallel", "reduction"]} ins(%[[A]], %[[B]]
// CHECK:         tensor.expand_shape %[[R]] [[0], [1, 2]]
func.func @matrices(%x: tensor<3x5xcomplex<f32>>, %y: tensor<5x?xcomplex<f32>>, %z: tensor<3x?xcomplex<f32>>) -> tensor<3x?xcomplex<f32>> {
  %0 = linalg.generic {indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (k, n)>, affine_map<(m, n, k) -> (m, n)>], iterator_types = ["parallel", "parallel", "reduction"]} ins(%x, %y : tensor<3x5xcomplex<f32>>, tensor<5x?xcomplex<f32>>) outs(%z : tensor<3x?xcomplex<f32>>) {
  ^bb0(%a: complex<f32>, %b: complex<f32>, %o: complex<f32>):
    %1 = complex.mul %a, %b : complex<f32>
    %2 = complex.add %o, %1 : complex<f32>
    linalg.yield %2 : complex<f32>
  } -> tensor<3x?xcomplex<f32>>
  return %0 : tensor<3x?xcomplex<f32>>
}

// Both parts of a vector times a matrix that is read as it is: a product of 2 rows, combined after.
// CHECK-LABEL: func.func @vector
// CHECK:         linalg.generic {indexing_maps = [affine_map<(d0, d1, d2) -> (d2, d0)>, affine_map<(d0, d1, d2) -> (d2, d1)>, affine_map<(d0, d1, d2) -> (d0, d1)>], iterator_types = ["parallel", "parallel", "reduction"]} ins(%{{.*}}, %{{.*}} : tensor<5x2xf32>, tensor<5x14xf32>) outs(%{{.*}} : tensor<2x14xf32>)
// CHECK:         %[[S:.*]] = tensor.expand_shape %{{.*}} : tensor<2x14xf32> into tensor<2x7x2xf32>
// CHECK-NEXT:    linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (0, d0, 0)>, affine_map<(d0, d1) -> (1, d0, 1)>, affine_map<(d0, d1) -> (0, d0, 1)>, affine_map<(d0, d1) -> (1, d0, 0)>, affine_map<(d0, d1) -> (d0, d1)>]
// CHECK-SAME:      ins(%[[S]], %[[S]], %[[S]], %[[S]] :
func.func @vector(%x: tensor<5xcomplex<f32>>, %y: tensor<5x7xcomplex<f32>>, %z: tensor<7xcomplex<f32>>) -> tensor<7xcomplex<f32>> {
  %0 = linalg.generic {indexing_maps = [affine_map<(n, k) -> (k)>, affine_map<(n, k) -> (k, n)>, affine_map<(n, k) -> (n)>], iterator_types = ["parallel", "reduction"]} ins(%x, %y : tensor<5xcomplex<f32>>, tensor<5x7xcomplex<f32>>) outs(%z : tensor<7xcomplex<f32>>) {
  ^bb0(%a: complex<f32>, %b: complex<f32>, %o: complex<f32>):
    %1 = complex.mul %a, %b : complex<f32>
    %2 = complex.add %o, %1 : complex<f32>
    linalg.yield %2 : complex<f32>
  } -> tensor<7xcomplex<f32>>
  return %0 : tensor<7xcomplex<f32>>
}

// The last loop indexes all operands, so vectors run along it: the parts are moved to the front.
// CHECK-LABEL: func.func @batch
// CHECK:         linalg.generic {{.*}} -> (d3, d0, d1, d2)>{{.*}} ins(%{{.*}} : tensor<2x3x9x2xf32>) outs(%{{.*}} : tensor<2x2x3x9xf32>)
// CHECK:         linalg.generic {indexing_maps = [affine_map<(d0, d1, d2, d3, d4, d5) -> (d4, d1, d5, d3)>, affine_map<(d0, d1, d2, d3, d4, d5) -> (d4, d0, d5, d2, d3)>, affine_map<(d0, d1, d2, d3, d4, d5) -> (d0, d1, d2, d3)>], iterator_types = ["parallel", "parallel", "parallel", "parallel", "reduction", "reduction"]}
// CHECK:         linalg.generic {{.*}} -> (d1, d2, d3, d0)>{{.*}} ins(%{{.*}} : tensor<2x2x4x9xf32>) outs(%{{.*}} : tensor<2x4x9x2xf32>)
func.func @batch(%x: tensor<2x3x9xcomplex<f32>>, %y: tensor<3x4x9xcomplex<f32>>, %z: tensor<2x4x9xcomplex<f32>>) -> tensor<2x4x9xcomplex<f32>> {
  %0 = linalg.generic {indexing_maps = [affine_map<(b, o, x, i) -> (b, i, x)>, affine_map<(b, o, x, i) -> (i, o, x)>, affine_map<(b, o, x, i) -> (b, o, x)>], iterator_types = ["parallel", "parallel", "parallel", "reduction"]} ins(%x, %y : tensor<2x3x9xcomplex<f32>>, tensor<3x4x9xcomplex<f32>>) outs(%z : tensor<2x4x9xcomplex<f32>>) {
  ^bb0(%a: complex<f32>, %b: complex<f32>, %o: complex<f32>):
    %1 = complex.mul %a, %b : complex<f32>
    %2 = complex.add %o, %1 : complex<f32>
    linalg.yield %2 : complex<f32>
  } -> tensor<2x4x9xcomplex<f32>>
  return %0 : tensor<2x4x9xcomplex<f32>>
}
