// RUN: xdsl-opt %s -p irees-gpu-spread-kernels | filecheck %s

// Each workgroup has 128 threads, with an iteration each; the last one has fewer iterations.
// CHECK-LABEL: func.func @grid
// CHECK-SAME: (%{{.+}}: memref<?x3xf32>, %[[N:.+]]: index)
// CHECK: %[[ALL:.+]] = arith.muli %{{.+}}, %[[N]] : index
// CHECK: scf.forall (%[[W:.+]]) in (%{{.+}}) {
// CHECK: %[[FIRST:.+]] = arith.muli %[[W]], %{{.+}} : index
// CHECK: %[[REST:.+]] = arith.subi %[[ALL]], %[[FIRST]] : index
// CHECK: %[[SHARE:.+]] = arith.minsi %{{.+}}, %[[REST]] : index
// CHECK: scf.forall (%[[T:.+]]) in (%[[SHARE]]) {
// CHECK-NEXT: %[[PLACE:.+]] = arith.addi %[[FIRST]], %[[T]] : index
// CHECK: arith.remui %[[PLACE]], %{{.+}} : index
// CHECK: arith.divui %[[PLACE]], %{{.+}} : index
// CHECK: memref.store
// CHECK: } {mapping = [#gpu.thread<linear_dim_0>]}
// CHECK: } {threads = 128 : i64, nvvm.minctasm = 1 : i64, mapping = [#gpu.block<linear_dim_0>]}
func.func @grid(%y: memref<?x3xf32>, %m: index) {
  %v = arith.constant 1.0 : f32
  scf.forall (%i, %j) in (%m, 3) {
    memref.store %v, %y[%i, %j] : memref<?x3xf32>
  }
  func.return
}

// A loop inside of another one is not spread.
// CHECK-LABEL: func.func @no_inner
// CHECK: scf.for
// CHECK-NEXT: scf.forall (%{{.+}}) in (3) {
// CHECK-NEXT: memref.store
func.func @no_inner(%y: memref<3xf32>, %m: index) {
  %v = arith.constant 1.0 : f32
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  scf.for %k = %c0 to %m step %c1 {
    scf.forall (%i) in (3) {
      memref.store %v, %y[%i] : memref<3xf32>
    }
  }
  func.return
}
