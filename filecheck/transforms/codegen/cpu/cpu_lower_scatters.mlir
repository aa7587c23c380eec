// RUN: xdsl-opt %s -p 'irees-assign-target,irees-cpu-lower-scatters' | filecheck %s

// The index of an update is read once; its slice is a structured op.
// CHECK-LABEL: func.func @slices
// CHECK:         scf.for %[[N:.*]] =
// CHECK:           %[[R:.*]] = memref.load %i[%[[N]], %{{.*}}] : memref<9x1xi64>
// CHECK:           %[[I:.*]] = arith.index_cast %[[R]] : i64 to index
// CHECK:           %[[V:.*]] = arith.cmpi ult, %[[I]], %{{.*}} : index
// CHECK-NEXT:      scf.if %[[V]] {
// CHECK-NEXT:        %[[U:.*]] = memref.subview %u[%[[N]], 0] [1, 8] [1, 1]
// CHECK-NEXT:        %[[T:.*]] = memref.subview %t[%[[I]], 0] [1, 8] [1, 1]
// CHECK-NEXT:        linalg.generic {{.*}} ins(%[[U]] : {{.*}}) outs(%[[T]]
// CHECK-NEXT:        ^bb0(%[[NEW:.*]]: f32, %[[OLD:.*]]: f32):
// CHECK-NEXT:          arith.addf %[[NEW]], %[[OLD]] : f32
func.func @slices(%u: memref<9x8xf32>, %i: memref<9x1xi64>, %t: memref<5x8xf32>) {
  iree_linalg_ext.scatter dimension_map = [0] unique_indices(false) ins(%u, %i : memref<9x8xf32>, memref<9x1xi64>) outs(%t : memref<5x8xf32>) {
  ^bb0(%a: f32, %b: f32):
    %s = arith.addf %a, %b : f32
    iree_linalg_ext.yield %s : f32
  }
  return
}

// Updates may be masked; sizes may be dynamic.
// CHECK-LABEL: func.func @masked
// CHECK:         %[[M:.*]] = memref.load %m[%[[N:.*]]] : memref<?xi1>
// CHECK:         arith.andi %{{.*}}, %[[M]] : i1
// CHECK:         scf.if
// CHECK:           memref.subview %u[%{{.*}}, 0, 0] [1, 3, %{{.*}}] [1, 1, 1]
// CHECK:           memref.subview %t[%{{.*}}, 0, 0] [1, 3, %{{.*}}] [1, 1, 1]
// CHECK-NEXT:      linalg.generic {{.*}} iterator_types = ["parallel", "parallel"]
func.func @masked(%u: memref<?x3x?xf32>, %i: memref<?xi32>, %m: memref<?xi1>, %t: memref<5x3x?xf32>) {
  iree_linalg_ext.scatter dimension_map = [0] unique_indices(true) ins(%u, %i, %m : memref<?x3x?xf32>, memref<?xi32>, memref<?xi1>) outs(%t : memref<5x3x?xf32>) {
  ^bb0(%a: f32, %b: f32):
    iree_linalg_ext.yield %a : f32
  }
  return
}

// Single elements are not slices.
// CHECK-LABEL: func.func @elements
// CHECK:         iree_linalg_ext.scatter
func.func @elements(%u: memref<9xf32>, %i: memref<9x1xi64>, %t: memref<5xf32>) {
  iree_linalg_ext.scatter dimension_map = [0] unique_indices(false) ins(%u, %i : memref<9xf32>, memref<9x1xi64>) outs(%t : memref<5xf32>) {
  ^bb0(%a: f32, %b: f32):
    iree_linalg_ext.yield %a : f32
  }
  return
}
