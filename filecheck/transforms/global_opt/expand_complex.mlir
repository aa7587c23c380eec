// RUN: xdsl-opt %s -p irees-expand-complex | filecheck %s
// RUN: xdsl-opt %s -p 'irees-assign-target{fp=strict},irees-expand-complex' | filecheck %s --check-prefix=LEFT
// RUN: xdsl-opt %s -p 'irees-assign-target{target="cuda:sm_80"},irees-expand-complex' | filecheck %s --check-prefix=LEFT

// With fp=strict, and for GPUs, all complex numbers stay.
// LEFT-NOT: irees.view_parts
// LEFT-LABEL: func.func @views

#i = affine_map<(i) -> (i)>
#ij = affine_map<(i, j) -> (i, j)>

// The parts of a sum, a conjugate or a selection are computed by a loop of their own.
// CHECK-LABEL: func.func @conjugate
// CHECK-NEXT:    %[[X:.*]] = irees.view_parts %x : tensor<4x?xcomplex<f32>> -> tensor<4x?x2xf32>
// CHECK-NEXT:    %[[E:.*]] = irees.view_parts %e
// CHECK-NEXT:    %[[R:.*]] = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2) -> (d0, d1, d2)>, affine_map<(d0, d1, d2) -> (d0, d1, d2)>], iterator_types = ["parallel", "parallel", "parallel"]} ins(%[[X]] : tensor<4x?x2xf32>) outs(%[[E]] : tensor<4x?x2xf32>) {
// CHECK-NEXT:    ^bb0(%[[A:.*]]: f32, %{{.*}}: f32):
// CHECK-NEXT:      %[[N:.*]] = arith.negf %[[A]]
// CHECK-NEXT:      %[[Q:.*]] = linalg.index 2
// CHECK:           %[[C:.*]] = arith.cmpi eq, %[[Q]]
// CHECK-NEXT:      arith.select %[[C]], %[[A]], %[[N]]
// CHECK:         %[[Z:.*]] = irees.view_parts %[[R]] : tensor<4x?x2xf32> -> tensor<4x?xcomplex<f32>>
// CHECK-NEXT:    return %[[Z]]
func.func @conjugate(%x: tensor<4x?xcomplex<f32>>, %e: tensor<4x?xcomplex<f32>>) -> tensor<4x?xcomplex<f32>> {
  %0 = linalg.generic {indexing_maps = [#ij, #ij], iterator_types = ["parallel", "parallel"]} ins(%x : tensor<4x?xcomplex<f32>>) outs(%e : tensor<4x?xcomplex<f32>>) {
  ^bb0(%a: complex<f32>, %o: complex<f32>):
    %1 = complex.conj %a : complex<f32>
    linalg.yield %1 : complex<f32>
  } -> tensor<4x?xcomplex<f32>>
  return %0 : tensor<4x?xcomplex<f32>>
}

// A product reads both parts of its operands. Its sum with x reads the part that the loop is at.
// CHECK-LABEL: func.func @product
// CHECK:         linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d0, 0)>, affine_map<(d0, d1) -> (d0, 1)>, affine_map<(d0, d1) -> (d0, 0)>, affine_map<(d0, d1) -> (d0, 1)>, affine_map<(d0, d1) -> (d0, d1)>]
// CHECK-NEXT:    ^bb0(%[[X:.*]]: f32, %[[A:.*]]: f32, %[[B:.*]]: f32, %[[C:.*]]: f32, %[[D:.*]]: f32, %{{.*}}: f32):
// CHECK-NEXT:      %[[AC:.*]] = arith.mulf %[[A]], %[[C]]
// CHECK-NEXT:      %[[BD:.*]] = arith.mulf %[[B]], %[[D]]
// CHECK-NEXT:      %[[AD:.*]] = arith.mulf %[[A]], %[[D]]
// CHECK-NEXT:      %[[BC:.*]] = arith.mulf %[[B]], %[[C]]
// CHECK-NEXT:      %[[RE:.*]] = arith.subf %[[AC]], %[[BD]]
// CHECK-NEXT:      %[[IM:.*]] = arith.addf %[[AD]], %[[BC]]
// CHECK:           %[[P:.*]] = arith.select %{{.*}}, %[[RE]], %[[IM]]
// CHECK-NEXT:      arith.addf %[[P]], %[[X]]
func.func @product(%x: tensor<8xcomplex<f32>>, %y: tensor<8xcomplex<f32>>) -> tensor<8xcomplex<f32>> {
  %e = tensor.empty() : tensor<8xcomplex<f32>>
  %0 = linalg.generic {indexing_maps = [#i, #i, #i], iterator_types = ["parallel"]} ins(%x, %y : tensor<8xcomplex<f32>>, tensor<8xcomplex<f32>>) outs(%e : tensor<8xcomplex<f32>>) {
  ^bb0(%a: complex<f32>, %b: complex<f32>, %o: complex<f32>):
    %1 = complex.mul %a, %b : complex<f32>
    %2 = complex.add %1, %a : complex<f32>
    linalg.yield %2 : complex<f32>
  } -> tensor<8xcomplex<f32>>
  return %0 : tensor<8xcomplex<f32>>
}

// A result of reals needs no loop over parts.
// CHECK-LABEL: func.func @length
// CHECK:         linalg.generic {indexing_maps = [affine_map<(d0) -> (d0, 0)>, affine_map<(d0) -> (d0, 1)>, affine_map<(d0) -> (d0)>], iterator_types = ["parallel"]}
// CHECK:           math.sqrt %{{.*}} : f64
// CHECK:         return %{{.*}} : tensor<8xf32>
func.func @length(%x: tensor<8xcomplex<f32>>, %e: tensor<8xf32>) -> tensor<8xf32> {
  %0 = linalg.generic {indexing_maps = [#i, #i], iterator_types = ["parallel"]} ins(%x : tensor<8xcomplex<f32>>) outs(%e : tensor<8xf32>) {
  ^bb0(%a: complex<f32>, %o: f32):
    %1 = complex.abs %a : complex<f32>
    linalg.yield %1 : f32
  } -> tensor<8xf32>
  return %0 : tensor<8xf32>
}

// Slices and reshapes move pairs.
// CHECK-LABEL: func.func @moves
// CHECK:         %[[S:.*]] = tensor.extract_slice %{{.*}}[1, 0, 0] [%n, 6, 2] [2, 1, 1] : tensor<8x6x2xf32> to tensor<?x6x2xf32>
// CHECK-NEXT:    tensor.expand_shape %[[S]] [[0], [1, 2], [3]] output_shape [%n, 3, 2, 2]
func.func @moves(%x: tensor<8x6xcomplex<f32>>, %n: index) -> tensor<?x3x2xcomplex<f32>> {
  %0 = tensor.extract_slice %x[1, 0] [%n, 6] [2, 1] : tensor<8x6xcomplex<f32>> to tensor<?x6xcomplex<f32>>
  %1 = tensor.expand_shape %0 [[0], [1, 2]] output_shape [%n, 3, 2] : tensor<?x6xcomplex<f32>> into tensor<?x3x2xcomplex<f32>>
  return %1 : tensor<?x3x2xcomplex<f32>>
}

// A function without a form on parts stays as it is, and so does the slice that only it reads.
// CHECK-LABEL: func.func @function
// CHECK-NOT:     irees.view_parts
// CHECK:         complex.exp
// CHECK-NOT:     irees.view_parts
// CHECK:         return
func.func @function(%x: tensor<8x6xcomplex<f32>>, %e: tensor<2x6xcomplex<f32>>) -> tensor<2x6xcomplex<f32>> {
  %s = tensor.extract_slice %x[1, 0] [2, 6] [2, 1] : tensor<8x6xcomplex<f32>> to tensor<2x6xcomplex<f32>>
  %0 = linalg.generic {indexing_maps = [#ij, #ij], iterator_types = ["parallel", "parallel"]} ins(%s : tensor<2x6xcomplex<f32>>) outs(%e : tensor<2x6xcomplex<f32>>) {
  ^bb0(%a: complex<f32>, %o: complex<f32>):
    %1 = complex.exp %a : complex<f32>
    linalg.yield %1 : complex<f32>
  } -> tensor<2x6xcomplex<f32>>
  return %0 : tensor<2x6xcomplex<f32>>
}

// Each part of a product of all elements depends on both parts of the output.
// CHECK-LABEL: func.func @running_product
// CHECK-NOT:     irees.view_parts
// CHECK:         complex.mul
// CHECK-NOT:     irees.view_parts
// CHECK:         return
func.func @running_product(%x: tensor<8xcomplex<f32>>, %z: tensor<complex<f32>>) -> tensor<complex<f32>> {
  %0 = linalg.generic {indexing_maps = [#i, affine_map<(i) -> ()>], iterator_types = ["reduction"]} ins(%x : tensor<8xcomplex<f32>>) outs(%z : tensor<complex<f32>>) {
  ^bb0(%a: complex<f32>, %o: complex<f32>):
    %1 = complex.mul %a, %o : complex<f32>
    linalg.yield %1 : complex<f32>
  } -> tensor<complex<f32>>
  return %0 : tensor<complex<f32>>
}

// A gather reads the part that the loop is at.
// CHECK-LABEL: func.func @gather
// CHECK:         %[[X:.*]] = irees.view_parts %x
// CHECK:           %[[Q:.*]] = linalg.index 1
// CHECK-NEXT:      tensor.extract %[[X]][%{{.*}}, %{{.*}}, %[[Q]]] : tensor<8x2x2xf32>
func.func @gather(%x: tensor<8x2xcomplex<f32>>, %i: tensor<3xindex>, %e: tensor<3xcomplex<f32>>) -> tensor<3xcomplex<f32>> {
  %0 = linalg.generic {indexing_maps = [#i, #i], iterator_types = ["parallel"]} ins(%i : tensor<3xindex>) outs(%e : tensor<3xcomplex<f32>>) {
  ^bb0(%a: index, %o: complex<f32>):
    %c0 = arith.constant 0 : index
    %1 = tensor.extract %x[%a, %c0] : tensor<8x2xcomplex<f32>>
    linalg.yield %1 : complex<f32>
  } -> tensor<3xcomplex<f32>>
  return %0 : tensor<3xcomplex<f32>>
}

// A loop that carries complex numbers keeps them; its yield stays, too.
// CHECK-LABEL: func.func @carried
// CHECK:         %[[R:.*]] = scf.for {{.*}} -> (tensor<8xcomplex<f32>>)
// CHECK:           linalg.generic {{.*}} outs(%{{.*}} : tensor<8x2xf32>)
// CHECK:           %[[Z:.*]] = irees.view_parts %{{.*}} : tensor<8x2xf32> -> tensor<8xcomplex<f32>>
// CHECK-NEXT:      scf.yield %[[Z]]
// CHECK:         return %[[R]]
func.func @carried(%x: tensor<8xcomplex<f32>>, %a: index, %b: index) -> tensor<8xcomplex<f32>> {
  %e = tensor.empty() : tensor<8xcomplex<f32>>
  %r = scf.for %i = %a to %b step %a iter_args(%y = %x) -> (tensor<8xcomplex<f32>>) {
    %0 = linalg.generic {indexing_maps = [#i, #i], iterator_types = ["parallel"]} ins(%y : tensor<8xcomplex<f32>>) outs(%e : tensor<8xcomplex<f32>>) {
    ^bb0(%v: complex<f32>, %o: complex<f32>):
      %1 = complex.conj %v : complex<f32>
      linalg.yield %1 : complex<f32>
    } -> tensor<8xcomplex<f32>>
    scf.yield %0 : tensor<8xcomplex<f32>>
  }
  return %r : tensor<8xcomplex<f32>>
}

// The parts of a number from outside of the body are taken inside.
// CHECK-LABEL: func.func @scaled
// CHECK:         linalg.generic
// CHECK:           complex.re %s : complex<f32>
// CHECK:           complex.im %s : complex<f32>
func.func @scaled(%x: tensor<8xcomplex<f32>>, %e: tensor<8xcomplex<f32>>, %s: complex<f32>) -> tensor<8xcomplex<f32>> {
  %0 = linalg.generic {indexing_maps = [#i, #i], iterator_types = ["parallel"]} ins(%x : tensor<8xcomplex<f32>>) outs(%e : tensor<8xcomplex<f32>>) {
  ^bb0(%v: complex<f32>, %o: complex<f32>):
    %1 = complex.mul %v, %s : complex<f32>
    linalg.yield %1 : complex<f32>
  } -> tensor<8xcomplex<f32>>
  return %0 : tensor<8xcomplex<f32>>
}

// Two views in a row are none.
// CHECK-LABEL: func.func @views
// CHECK-NEXT:    return %x
func.func @views(%x: tensor<4x2xf32>) -> tensor<4x2xf32> {
  %0 = irees.view_parts %x : tensor<4x2xf32> -> tensor<4xcomplex<f32>>
  %1 = irees.view_parts %0 : tensor<4xcomplex<f32>> -> tensor<4x2xf32>
  return %1 : tensor<4x2xf32>
}
