// RUN: xdsl-opt %s -p irees-decompose-softmax{use_fusion=false} | filecheck %s
// RUN: xdsl-opt %s -p irees-decompose-softmax | filecheck %s --check-prefix FUSED
// RUN: xdsl-opt %s -p irees-decompose-softmax{from_infinity=true} | filecheck %s --check-prefix INFINITY
// RUN: xdsl-opt %s -p irees-decompose-softmax{online=true} | filecheck %s --check-prefix ONLINE
// RUN: xdsl-opt %s -p "irees-decompose-softmax{use_fusion=false reciprocal=true}" | filecheck %s --check-prefix RECIPROCAL
// RUN: xdsl-opt %s -p irees-decompose-softmax{reciprocal=true} | filecheck %s --check-prefix RECIPROCAL

// The largest of each row, the powers, their sum, the quotient.
// CHECK-LABEL: func.func @rows
// CHECK-NOT:     linalg.softmax
// CHECK:         %[[M:.*]] = linalg.generic {{.*}} iterator_types = ["parallel", "reduction"]} ins(%x : tensor<4x8xf32>) outs(%{{.*}} : tensor<4xf32>)
// CHECK:           arith.maxnumf
// CHECK:         %[[E:.*]] = linalg.generic {{.*}} ins(%x, %[[M]] : tensor<4x8xf32>, tensor<4xf32>) outs(%{{.*}} : tensor<4x8xf32>)
// CHECK:           arith.subf
// CHECK-NEXT:      math.exp
// CHECK:         %[[S:.*]] = linalg.generic {{.*}} iterator_types = ["parallel", "reduction"]} ins(%[[E]] : tensor<4x8xf32>) outs(%{{.*}} : tensor<4xf32>)
// CHECK:           arith.addf
// CHECK:         %[[R:.*]] = linalg.generic {{.*}} ins(%[[E]], %[[S]] : tensor<4x8xf32>, tensor<4xf32>) outs(%o : tensor<4x8xf32>)
// CHECK:           arith.divf
// CHECK:         func.return %[[R]]

// Nothing as large as the row lies between the ops: the powers are computed twice.
// FUSED-LABEL: func.func @rows
// FUSED:         %[[M:.*]] = linalg.generic
// FUSED:         %[[S:.*]] = linalg.generic {{.*}} ins(%x, %[[M]] : tensor<4x8xf32>, tensor<4xf32>) outs(%{{.*}} : tensor<4xf32>)
// FUSED:           math.exp
// FUSED:           arith.addf
// FUSED:         %[[R:.*]] = linalg.generic {{.*}} ins(%x, %[[M]], %[[S]] : tensor<4x8xf32>, tensor<4xf32>, tensor<4xf32>) outs(%o : tensor<4x8xf32>)
// FUSED:           math.exp
// FUSED:           arith.divf
// FUSED-NOT:     linalg.generic
// FUSED:         func.return %[[R]]

// The maximum starts from -infinity, where it would start from NaN.
// INFINITY-LABEL: func.func @rows
// INFINITY:         %[[LOW:.*]] = arith.constant 0xFF800000 : f32
// INFINITY:         linalg.fill ins(%[[LOW]] : f32)
// FUSED-NOT:        0xFF800000

// The maximum and the rescaled sum in one pass over the row.
// ONLINE-LABEL: func.func @rows
// ONLINE:         %[[LOW:.*]] = arith.constant -3.40282347e+38 : f32
// ONLINE:         %[[M0:.*]] = linalg.fill ins(%[[LOW]] : f32)
// ONLINE:         %[[S0:.*]] = linalg.fill
// ONLINE:         %[[M:.*]], %[[S:.*]] = linalg.generic {{.*}} iterator_types = ["parallel", "reduction"]} ins(%x : tensor<4x8xf32>) outs(%[[M0]], %[[S0]] : tensor<4xf32>, tensor<4xf32>) {
// ONLINE-NEXT:    ^bb{{.*}}(%[[X:.*]]: f32, %[[A:.*]]: f32, %[[B:.*]]: f32):
// ONLINE-NEXT:      %[[N:.*]] = arith.maxnumf %[[X]], %[[A]]
// ONLINE-NEXT:      %[[D:.*]] = arith.subf %[[A]], %[[N]]
// ONLINE-NEXT:      %[[F:.*]] = math.exp %[[D]]
// ONLINE-NEXT:      %[[O:.*]] = arith.mulf %[[B]], %[[F]]
// ONLINE:           %[[T:.*]] = arith.addf %[[O]], %{{.*}}
// ONLINE-NEXT:      linalg.yield %[[N]], %[[T]]
// ONLINE:         linalg.generic {{.*}} ins(%x, %[[M]], %[[S]] : tensor<4x8xf32>, tensor<4xf32>, tensor<4xf32>) outs(%o : tensor<4x8xf32>)
// ONLINE:           arith.divf
// ONLINE-NOT:     linalg.generic
// ONLINE:         func.return
// RECIPROCAL-LABEL: func.func @rows
// RECIPROCAL-NOT:  arith.divf
// RECIPROCAL:      %[[ONE:.*]] = arith.constant 1.000000e+00 : f32
// RECIPROCAL-NEXT: %[[I:.*]] = arith.divf %[[ONE]], %{{.*}} : f32
// RECIPROCAL-NEXT: arith.mulf %{{.*}}, %[[I]] : f32
func.func @rows(%x: tensor<4x8xf32>, %o: tensor<4x8xf32>) -> tensor<4x8xf32> {
  %r = linalg.softmax dimension(1) ins(%x : tensor<4x8xf32>) outs(%o : tensor<4x8xf32>) -> tensor<4x8xf32>
  return %r : tensor<4x8xf32>
}

// Half floats are computed in f32; dynamic sizes are those of the input.
// CHECK-LABEL: func.func @columns_of_f16
// CHECK:         %[[N:.*]] = tensor.dim %x, %{{.*}} : tensor<?x?xf16>
// CHECK:         tensor.empty(%{{.*}}) : tensor<?xf32>
// CHECK:         linalg.generic {{.*}} iterator_types = ["reduction", "parallel"]} ins(%x : tensor<?x?xf16>) outs(%{{.*}} : tensor<?xf32>)
// CHECK:           arith.extf
// CHECK:           arith.divf
// CHECK-NEXT:      arith.truncf
func.func @columns_of_f16(%x: tensor<?x?xf16>, %o: tensor<?x?xf16>) -> tensor<?x?xf16> {
  %r = linalg.softmax dimension(0) ins(%x : tensor<?x?xf16>) outs(%o : tensor<?x?xf16>) -> tensor<?x?xf16>
  return %r : tensor<?x?xf16>
}

// In memory there is nothing to replace it by.
// CHECK-LABEL: func.func @no_memref
// CHECK:         linalg.softmax
func.func @no_memref(%x: memref<4x8xf32>, %o: memref<4x8xf32>) {
  linalg.softmax dimension(1) ins(%x : memref<4x8xf32>) outs(%o : memref<4x8xf32>)
  return
}
