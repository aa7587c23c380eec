// RUN: irees opt %s -p irees-gpu-lower-reductions | filecheck %s
// RUN: irees opt %s -p 'irees-assign-target{fp=strict},irees-gpu-lower-reductions' | filecheck %s --check-prefix STRICT

#id = affine_map<(i, j) -> (i, j)>
#row = affine_map<(i, j) -> (i)>

// A row for each warp: 16 bytes a lane, five shuffles, and the first lane stores.
// CHECK-LABEL: func.func @warps
// CHECK:         scf.forall (%[[T:.*]]) in (128) {
// CHECK:           scf.for %[[P:.*]] = %{{.*}} to %{{.*}} step
// CHECK:             scf.for {{.*}} -> (vector<4xf32>) {
// CHECK:               vector.load %x[%[[P]], %{{.*}}]
// CHECK:             vector.reduction <add>
// CHECK-COUNT-5:     gpu.shuffle xor
// CHECK:             scf.if
// CHECK:               memref.store
// CHECK:         } {mapping = [#gpu.thread<linear_dim_0>]}
// CHECK-NEXT:    gpu.barrier
// STRICT-LABEL: func.func @warps
// STRICT-NOT:     gpu.shuffle
// STRICT:         linalg.generic
func.func @warps(%x: memref<4x1024xf32>, %s: memref<4xf32>) {
  scf.forall (%b) in (1) {
    linalg.generic {indexing_maps = [#id, #row], iterator_types = ["parallel", "reduction"]}
        ins(%x : memref<4x1024xf32>) outs(%s : memref<4xf32>) {
    ^bb0(%a: f32, %o: f32):
      %n = arith.addf %o, %a : f32
      linalg.yield %n : f32
    }
  } {mapping = [#gpu.block<linear_dim_0>]}
  return
}

// One result for all: what each warp has meets in shared memory. Integers may be folded in any order,
// and a row of unknown length is read one by one.
// CHECK-LABEL: func.func @all
// CHECK:         memref.alloc() : memref<1x4xi32, #gpu.address_space<workgroup>>
// CHECK:         scf.forall
// CHECK-COUNT-5:   gpu.shuffle xor
// CHECK:         gpu.barrier
// CHECK:         scf.forall
// CHECK-COUNT-4:   arith.addi {{.*}} : i32
// CHECK:         gpu.barrier
// STRICT-LABEL: func.func @all
// STRICT:         gpu.shuffle
func.func @all(%x: memref<1x?xi32>, %s: memref<1xi32>) {
  scf.forall (%b) in (1) {
    linalg.generic {indexing_maps = [#id, #row], iterator_types = ["parallel", "reduction"]}
        ins(%x : memref<1x?xi32>) outs(%s : memref<1xi32>) {
    ^bb0(%a: i32, %o: i32):
      %n = arith.addi %o, %a : i32
      linalg.yield %n : i32
    }
  } {mapping = [#gpu.block<linear_dim_0>]}
  return
}

// There is a result for each thread.
// CHECK-LABEL: func.func @no_many_results
// CHECK-NOT:     gpu.shuffle
func.func @no_many_results(%x: memref<128x1024xf32>, %s: memref<128xf32>) {
  scf.forall (%b) in (1) {
    linalg.generic {indexing_maps = [#id, #row], iterator_types = ["parallel", "reduction"]}
        ins(%x : memref<128x1024xf32>) outs(%s : memref<128xf32>) {
    ^bb0(%a: f32, %o: f32):
      %n = arith.addf %o, %a : f32
      linalg.yield %n : f32
    }
  } {mapping = [#gpu.block<linear_dim_0>]}
  return
}

// Nobody knows how to fold two partial results of this.
// CHECK-LABEL: func.func @no_combiner
// CHECK-NOT:     gpu.shuffle
func.func @no_combiner(%x: memref<4x1024xf32>, %s: memref<4xf32>) {
  scf.forall (%b) in (1) {
    linalg.generic {indexing_maps = [#id, #row], iterator_types = ["parallel", "reduction"]}
        ins(%x : memref<4x1024xf32>) outs(%s : memref<4xf32>) {
    ^bb0(%a: f32, %o: f32):
      %n = arith.divf %o, %a : f32
      linalg.yield %n : f32
    }
  } {mapping = [#gpu.block<linear_dim_0>]}
  return
}

// 100 windows of 27 numbers: warps would take turns for longer than one thread needs for a window.
// CHECK-LABEL: func.func @no_windows
// CHECK-NOT:     gpu.shuffle
#window = affine_map<(i, j) -> (i * 2 + j)>
func.func @no_windows(%x: memref<225xf32>, %w: memref<27xf32>, %s: memref<100xf32>) {
  scf.forall (%b) in (1) {
    linalg.generic {indexing_maps = [#window, affine_map<(i, j) -> (j)>, #row], iterator_types = ["parallel", "reduction"]}
        ins(%x, %w : memref<225xf32>, memref<27xf32>) outs(%s : memref<100xf32>) {
    ^bb0(%a: f32, %b0: f32, %o: f32):
      %n = arith.maximumf %o, %a : f32
      linalg.yield %n : f32
    }
  } {mapping = [#gpu.block<linear_dim_0>]}
  return
}

// An argmax: the number of the point decides between equal ones, and a row with a NaN is done in order.
// CHECK-LABEL: func.func @selection
// CHECK:         scf.for {{.*}} -> (f32, i32, index) {
// CHECK:           arith.select
// CHECK:         gpu.shuffle xor {{.*}} : f32
// CHECK:         gpu.shuffle xor {{.*}} : i32
// CHECK:         gpu.shuffle xor {{.*}} : index
// CHECK:         arith.cmpf ogt
// CHECK:         arith.cmpf oeq
// CHECK:         arith.cmpf uno
// CHECK:         scf.if
// STRICT-LABEL: func.func @selection
// STRICT:         gpu.shuffle
func.func @selection(%x: memref<4x1024xf32>, %best: memref<4xf32>, %where: memref<4xi32>) {
  scf.forall (%b) in (1) {
    linalg.generic {indexing_maps = [#id, #row, #row], iterator_types = ["parallel", "reduction"]}
        ins(%x : memref<4x1024xf32>) outs(%best, %where : memref<4xf32>, memref<4xi32>) {
    ^bb0(%a: f32, %o: f32, %w: i32):
      %j = linalg.index 1 : index
      %k = arith.index_cast %j : index to i32
      %m = arith.maximumf %a, %o : f32
      %p = arith.cmpf ogt, %a, %o : f32
      %s = arith.select %p, %k, %w : i32
      linalg.yield %m, %s : f32, i32
    }
  } {mapping = [#gpu.block<linear_dim_0>]}
  return
}

// Of equal points the last one stays: that is another order.
// CHECK-LABEL: func.func @no_last
// CHECK-NOT:     gpu.shuffle
func.func @no_last(%x: memref<4x1024xf32>, %best: memref<4xf32>, %where: memref<4xi32>) {
  scf.forall (%b) in (1) {
    linalg.generic {indexing_maps = [#id, #row, #row], iterator_types = ["parallel", "reduction"]}
        ins(%x : memref<4x1024xf32>) outs(%best, %where : memref<4xf32>, memref<4xi32>) {
    ^bb0(%a: f32, %o: f32, %w: i32):
      %j = linalg.index 1 : index
      %k = arith.index_cast %j : index to i32
      %m = arith.maximumf %a, %o : f32
      %p = arith.cmpf oge, %a, %o : f32
      %s = arith.select %p, %k, %w : i32
      linalg.yield %m, %s : f32, i32
    }
  } {mapping = [#gpu.block<linear_dim_0>]}
  return
}

// Neighbours in memory are neighbouring results: eight threads read 16 bytes each of a row of 32, the
// other fifteen eights the rows after it.
// CHECK-LABEL: func.func @columns
// CHECK:         memref.alloc() : memref<16x32xf32, #gpu.address_space<workgroup>>
// CHECK:         scf.forall
// CHECK:           scf.for {{.*}} -> (f32, f32, f32, f32) {
// CHECK:             vector.load {{.*}} : memref<4096x32xf32>, vector<4xf32>
// CHECK:         gpu.barrier
// CHECK:         scf.forall
// CHECK-COUNT-15:  arith.addf
// STRICT-LABEL: func.func @columns
// STRICT-NOT:     memref.alloc
func.func @columns(%x: memref<4096x32xf32>, %s: memref<32xf32>) {
  scf.forall (%b) in (1) {
    linalg.generic {indexing_maps = [affine_map<(i, j) -> (j, i)>, #row], iterator_types = ["parallel", "reduction"]}
        ins(%x : memref<4096x32xf32>) outs(%s : memref<32xf32>) {
    ^bb0(%a: f32, %o: f32):
      %n = arith.addf %o, %a : f32
      linalg.yield %n : f32
    }
  } {mapping = [#gpu.block<linear_dim_0>]}
  return
}
