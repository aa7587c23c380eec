// RUN: irees opt %s -p irees-gpu-distribute-to-threads | filecheck %s

#id = affine_map<(i, j) -> (i, j)>
#row = affine_map<(i, j) -> (i)>

// Four neighbours at a time: rows of 128 floats are aligned to 16 bytes.
// CHECK-LABEL: func.func @elementwise
// CHECK:         scf.forall (%[[T:.*]]) in (2048) {
// CHECK:           arith.remui %[[T]]
// CHECK:           vector.load %x[{{.*}}] : memref<64x128xf32>, vector<4xf32>
// CHECK:           arith.negf {{.*}} : vector<4xf32>
// CHECK:           vector.store
// CHECK:         } {mapping = [#gpu.thread<linear_dim_0>]}
// CHECK-NEXT:  } {mapping = [#gpu.block<linear_dim_0>]}
func.func @elementwise(%x: memref<64x128xf32>, %y: memref<64x128xf32>) {
  scf.forall (%b) in (1) {
    linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]}
        ins(%x : memref<64x128xf32>) outs(%y : memref<64x128xf32>) {
    ^bb0(%a: f32, %o: f32):
      %n = arith.negf %a : f32
      linalg.yield %n : f32
    }
  } {mapping = [#gpu.block<linear_dim_0>]}
  return
}

// Half floats are computed one by one, eight of them between two accesses.
// CHECK-LABEL: func.func @halves
// CHECK:         scf.forall (%{{.*}}) in (1024) {
// CHECK:           vector.load %x[{{.*}}] : memref<64x128xf16>, vector<8xf16>
// CHECK-COUNT-8:   arith.negf {{.*}} : f16
// CHECK:           vector.store {{.*}} : memref<64x128xf16>, vector<8xf16>
func.func @halves(%x: memref<64x128xf16>, %y: memref<64x128xf16>) {
  scf.forall (%b) in (1) {
    linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]}
        ins(%x : memref<64x128xf16>) outs(%y : memref<64x128xf16>) {
    ^bb0(%a: f16, %o: f16):
      %n = arith.negf %a : f16
      linalg.yield %n : f16
    }
  } {mapping = [#gpu.block<linear_dim_0>]}
  return
}

// A thread for each row, the reduction in its order; a barrier before what reads the sums. Rows of
// 31 are not aligned.
// CHECK-LABEL: func.func @reduction
// CHECK:         scf.forall (%{{.*}}) in (%{{.*}}) {
// CHECK:           scf.for
// CHECK:             arith.addf
// CHECK:         } {mapping = [#gpu.thread<linear_dim_0>]}
// CHECK-NEXT:    gpu.barrier
// CHECK:         scf.forall (%{{.*}}) in (%{{.*}}) {
// CHECK-NOT:       vector
// CHECK:         } {mapping = [#gpu.thread<linear_dim_0>]}
// CHECK-NEXT:  } {mapping = [#gpu.block<linear_dim_0>]}
func.func @reduction(%x: memref<?x31xf32>, %s: memref<?xf32>) {
  scf.forall (%b) in (1) {
    linalg.generic {indexing_maps = [#id, #row], iterator_types = ["parallel", "reduction"]}
        ins(%x : memref<?x31xf32>) outs(%s : memref<?xf32>) {
    ^bb0(%a: f32, %o: f32):
      %n = arith.addf %o, %a : f32
      linalg.yield %n : f32
    }
    linalg.generic {indexing_maps = [#row, #id], iterator_types = ["parallel", "parallel"]}
        ins(%s : memref<?xf32>) outs(%x : memref<?x31xf32>) {
    ^bb0(%a: f32, %o: f32):
      linalg.yield %a : f32
    }
  } {mapping = [#gpu.block<linear_dim_0>]}
  return
}

// What is no structured op is for one thread, in one piece.
// CHECK-LABEL: func.func @serial
// CHECK:         scf.forall (%{{.*}}) in (1) {
// CHECK:           scf.for
// CHECK:           memref.store %v, %x
// CHECK:         } {mapping = [#gpu.thread<linear_dim_0>]}
// CHECK-NEXT:  } {mapping = [#gpu.block<linear_dim_0>]}
func.func @serial(%x: memref<8xf32>, %v: f32) {
  scf.forall (%b) in (1) {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c8 = arith.constant 8 : index
    scf.for %i = %c0 to %c8 step %c1 {
      memref.store %v, %x[%i] : memref<8xf32>
    }
    memref.store %v, %x[%c0] : memref<8xf32>
  } {mapping = [#gpu.block<linear_dim_0>]}
  return
}

// What every thread reads is not written before all have read it.
// CHECK-LABEL: func.func @read_by_all
// CHECK:         %[[V:.*]] = memref.load %x
// CHECK-NEXT:    gpu.barrier
// CHECK:         scf.forall (%{{.*}}) in (2) {
// CHECK:           vector.broadcast %[[V]]
// CHECK:           vector.store %{{.*}}, %x
func.func @read_by_all(%x: memref<8xf32>) {
  scf.forall (%b) in (1) {
    %c0 = arith.constant 0 : index
    %v = memref.load %x[%c0] : memref<8xf32>
    linalg.generic {indexing_maps = [affine_map<(i) -> (i)>], iterator_types = ["parallel"]}
        outs(%x : memref<8xf32>) {
    ^bb0(%o: f32):
      linalg.yield %v : f32
    }
  } {mapping = [#gpu.block<linear_dim_0>]}
  return
}

// Rows that write to one place are not spread: two threads would meet there.
// CHECK-LABEL: func.func @no_spread
// CHECK:         scf.forall (%b) in (1) {
// CHECK:           scf.forall (%{{.*}}) in (1) {
// CHECK-NEXT:        scf.for %
func.func @no_spread(%x: memref<8x8xf32>, %s: memref<8xf32>) {
  scf.forall (%b) in (1) {
    linalg.generic {indexing_maps = [#id, #row], iterator_types = ["parallel", "parallel"]}
        ins(%x : memref<8x8xf32>) outs(%s : memref<8xf32>) {
    ^bb0(%a: f32, %o: f32):
      linalg.yield %a : f32
    }
  } {mapping = [#gpu.block<linear_dim_0>]}
  return
}
