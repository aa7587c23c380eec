// RUN: xdsl-opt %s -p 'irees-assign-target{facts="vector_bytes=32"},irees-vectorize-structured-ops' | filecheck %s

// Eight points at a time; the last eight overlap with those before.
// CHECK-LABEL: func.func @elementwise
// CHECK:         %[[MAIN:.*]] = arith.constant 1000 : index
// CHECK:         scf.for %[[I:.*]] = %{{.*}} to %[[MAIN]] step
// CHECK-NEXT:      %[[X:.*]] = vector.load %x[%[[I]]] : memref<1005xf32>, vector<8xf32>
// CHECK-NEXT:      %[[Y:.*]] = arith.negf %[[X]] : vector<8xf32>
// CHECK-NEXT:      vector.store %[[Y]], %y[%[[I]]] : memref<1005xf32>, vector<8xf32>
// CHECK:         %[[LAST:.*]] = arith.constant 997 : index
// CHECK-NEXT:    vector.load %x[%[[LAST]]] : memref<1005xf32>, vector<8xf32>
// CHECK-NOT:     memref.load
func.func @elementwise(%x: memref<1005xf32>, %y: memref<1005xf32>) {
  linalg.generic {indexing_maps = [affine_map<(d0) -> (d0)>, affine_map<(d0) -> (d0)>], iterator_types = ["parallel"]} ins(%x : memref<1005xf32>) outs(%y : memref<1005xf32>) {
  ^bb0(%a: f32, %o: f32):
    %c = arith.negf %a : f32
    linalg.yield %c : f32
  }
  return
}

// A broadcast operand is loaded once for all loops that leave it the same; rows may be any number.
// CHECK-LABEL: func.func @broadcast
// CHECK:         scf.for %[[I:.*]] =
// CHECK:         %[[M:.*]] = memref.load %m[%[[I]]] : memref<?xf32>
// CHECK:         scf.for %[[K:.*]] =
// CHECK:         scf.for %[[J:.*]] =
// CHECK-NEXT:        vector.load %x[%[[I]], %[[K]], %[[J]]] : memref<?x6x16xf32>, vector<8xf32>
// CHECK-NEXT:        vector.broadcast %[[M]] : f32 to vector<8xf32>
func.func @broadcast(%x: memref<?x6x16xf32>, %m: memref<?xf32>, %y: memref<?x6x16xf32>) {
  linalg.generic {indexing_maps = [affine_map<(i, k, j) -> (i, k, j)>, affine_map<(i, k, j) -> (i)>, affine_map<(i, k, j) -> (i, k, j)>], iterator_types = ["parallel", "parallel", "parallel"]} ins(%x, %m : memref<?x6x16xf32>, memref<?xf32>) outs(%y : memref<?x6x16xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %c = arith.subf %a, %b : f32
    linalg.yield %c : f32
  }
  return
}

// A reduction has four vector accumulators, folded at the end. A maximum may start from the old one.
// CHECK-LABEL: func.func @reduction
// CHECK:         %[[OLD:.*]] = memref.load %y
// CHECK-NEXT:      vector.broadcast %[[OLD]] : f32 to vector<8xf32>
// CHECK:         %[[A:.*]], %[[B:.*]], %[[C:.*]], %[[D:.*]] = scf.for
// CHECK:         %[[AB:.*]] = arith.maximumf %[[A]], %[[B]] : vector<8xf32>
// CHECK-NEXT:      %[[ABC:.*]] = arith.maximumf %[[AB]], %[[C]] : vector<8xf32>
// CHECK-NEXT:      %[[ALL:.*]] = arith.maximumf %[[ABC]], %[[D]] : vector<8xf32>
// CHECK-NEXT:      %[[ONE:.*]] = vector.reduction <maximumf>, %[[ALL]] : vector<8xf32> into f32
// CHECK-NEXT:      %[[NEW:.*]] = arith.maximumf %[[ONE]], %[[OLD]] : f32
// CHECK-NEXT:      memref.store %[[NEW]], %y
func.func @reduction(%x: memref<4x64xf32>, %y: memref<4xf32>) {
  linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d0)>], iterator_types = ["parallel", "reduction"]} ins(%x : memref<4x64xf32>) outs(%y : memref<4xf32>) {
  ^bb0(%a: f32, %o: f32):
    %c = arith.maximumf %o, %a : f32
    linalg.yield %c : f32
  }
  return
}

// A branch that all lanes take together yields vectors.
// CHECK-LABEL: func.func @branch
// CHECK:         %[[V:.*]] = scf.if %c -> (vector<8xf32>) {
// CHECK-NEXT:      %[[A:.*]] = arith.negf %{{.*}} : vector<8xf32>
// CHECK-NEXT:      scf.yield %[[A]] : vector<8xf32>
// CHECK-NEXT:    } else {
// CHECK-NEXT:      %[[W:.*]] = vector.load %t
// CHECK-NEXT:      scf.yield %[[W]] : vector<8xf32>
// CHECK:         vector.store %[[V]], %y
func.func @branch(%x: memref<16xf32>, %t: memref<16xf32>, %c: i1, %y: memref<16xf32>) {
  linalg.generic {indexing_maps = [affine_map<(d0) -> (d0)>, affine_map<(d0) -> (d0)>], iterator_types = ["parallel"]} ins(%x : memref<16xf32>) outs(%y : memref<16xf32>) {
  ^bb0(%a: f32, %o: f32):
    %i = linalg.index 0 : index
    %r = scf.if %c -> (f32) {
      %n = arith.negf %a : f32
      scf.yield %n : f32
    } else {
      %v = memref.load %t[%i] : memref<16xf32>
      scf.yield %v : f32
    }
    linalg.yield %r : f32
  }
  return
}

// The lanes part ways.
// CHECK-LABEL: func.func @no_branch
// CHECK-NOT:     vector
// CHECK:         func.return
func.func @no_branch(%x: memref<16xi1>, %y: memref<16xf32>) {
  linalg.generic {indexing_maps = [affine_map<(d0) -> (d0)>, affine_map<(d0) -> (d0)>], iterator_types = ["parallel"]} ins(%x : memref<16xi1>) outs(%y : memref<16xf32>) {
  ^bb0(%a: i1, %o: f32):
    %r = scf.if %a -> (f32) {
      %n = arith.constant 1.0 : f32
      scf.yield %n : f32
    } else {
      %v = arith.constant 2.0 : f32
      scf.yield %v : f32
    }
    linalg.yield %r : f32
  }
  return
}

// Neighbouring points are two elements apart.
// CHECK-LABEL: func.func @no_stride
// CHECK-NOT:     vector
// CHECK:         memref.load %x
// CHECK-NOT:     vector
// CHECK:         func.return
func.func @no_stride(%x: memref<16xf32, strided<[2]>>, %y: memref<16xf32>) {
  linalg.generic {indexing_maps = [affine_map<(d0) -> (d0)>, affine_map<(d0) -> (d0)>], iterator_types = ["parallel"]} ins(%x : memref<16xf32, strided<[2]>>) outs(%y : memref<16xf32>) {
  ^bb0(%a: f32, %o: f32):
    %c = arith.negf %a : f32
    linalg.yield %c : f32
  }
  return
}

// The order of subtractions matters.
// CHECK-LABEL: func.func @no_combiner
// CHECK-NOT:     vector
// CHECK:         arith.subf %{{.*}} : f32
// CHECK-NOT:     vector
// CHECK:         func.return
func.func @no_combiner(%x: memref<64xf32>, %y: memref<f32>) {
  linalg.generic {indexing_maps = [affine_map<(d0) -> (d0)>, affine_map<(d0) -> ()>], iterator_types = ["reduction"]} ins(%x : memref<64xf32>) outs(%y : memref<f32>) {
  ^bb0(%a: f32, %o: f32):
    %c = arith.subf %o, %a : f32
    linalg.yield %c : f32
  }
  return
}

// Tensors are not in memory yet.
// CHECK-LABEL: func.func @no_tensor
// CHECK-NEXT:    linalg.generic
func.func @no_tensor(%x: tensor<16xf32>, %y: tensor<16xf32>) -> tensor<16xf32> {
  %r = linalg.generic {indexing_maps = [affine_map<(d0) -> (d0)>, affine_map<(d0) -> (d0)>], iterator_types = ["parallel"]} ins(%x : tensor<16xf32>) outs(%y : tensor<16xf32>) {
  ^bb0(%a: f32, %o: f32):
    %c = arith.negf %a : f32
    linalg.yield %c : f32
  } -> tensor<16xf32>
  return %r : tensor<16xf32>
}

// Every second element: two vectors that lie side by side, the second ending with the last lane.
// CHECK-LABEL: func.func @short_steps
// CHECK:         %[[A:.*]] = vector.load %x[%[[I:.*]]] : memref<15xf32>, vector<8xf32>
// CHECK:         %[[J:.*]] = arith.addi %[[I]], %{{.*}} : index
// CHECK-NEXT:    %[[B:.*]] = vector.load %x[%[[J]]] : memref<15xf32>, vector<8xf32>
// CHECK-NEXT:    vector.shuffle %[[A]], %[[B]] [0, 2, 4, 6, 9, 11, 13, 15] : vector<8xf32>, vector<8xf32>
func.func @short_steps(%x: memref<15xf32>, %y: memref<8xf32>) {
  linalg.generic {indexing_maps = [affine_map<(i) -> (2 * i)>, affine_map<(i) -> (i)>], iterator_types = ["parallel"]} ins(%x : memref<15xf32>) outs(%y : memref<8xf32>) {
  ^bb0(%a: f32, %o: f32):
    %c = arith.negf %a : f32
    linalg.yield %c : f32
  }
  return
}

// Integers that only find the scale do not make the vectors of floats shorter, nor run at every point.
// CHECK-LABEL: func.func @table
// CHECK:         scf.for %[[I:.*]] =
// CHECK:         %[[K:.*]] = memref.load %k[%[[I]]] : memref<4xi64>
// CHECK:         %[[T:.*]] = memref.load %t[%{{.*}}] : memref<3xf32>
// CHECK:         scf.for
// CHECK-NOT:     memref.load %t
// CHECK:         vector.load %x[%[[I]], %{{.*}}] : memref<4x16xf32>, vector<8xf32>
// CHECK-NEXT:        vector.broadcast %[[T]] : f32 to vector<8xf32>
func.func @table(%k: memref<4xi64>, %t: memref<3xf32>, %x: memref<4x16xf32>, %y: memref<4x16xf32>) {
  %two = arith.constant 2 : i64
  linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d0)>, affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d0, d1)>], iterator_types = ["parallel", "parallel"]} ins(%k, %x : memref<4xi64>, memref<4x16xf32>) outs(%y : memref<4x16xf32>) {
  ^bb0(%n: i64, %a: f32, %o: f32):
    %low = arith.minui %n, %two : i64
    %i = arith.index_cast %low : i64 to index
    %s = memref.load %t[%i] : memref<3xf32>
    %c = arith.mulf %a, %s : f32
    linalg.yield %c : f32
  }
  return
}

// Three elements fill no vector of eight lanes, but one of two.
// CHECK-LABEL: func.func @short
// CHECK:         vector.load %x[%{{.*}}] : memref<3xf32>, vector<2xf32>
// CHECK-NOT:     vector<8xf32>
// CHECK:         memref.load %x[%{{.*}}] : memref<3xf32>
func.func @short(%x: memref<3xf32>, %y: memref<f32>) {
  linalg.generic {indexing_maps = [affine_map<(d0) -> (d0)>, affine_map<(d0) -> ()>], iterator_types = ["reduction"]} ins(%x : memref<3xf32>) outs(%y : memref<f32>) {
  ^bb0(%a: f32, %o: f32):
    %c = arith.maximumf %o, %a : f32
    linalg.yield %c : f32
  }
  return
}

// At run time, the last eight points are computed if there are as many, and no multiple of eight.
// CHECK-LABEL: func.func @dynamic
// CHECK:         scf.for %{{.*}} = %{{.*}} to %[[MAIN:.*]] step
// CHECK:         %[[SEVERAL:.*]] = arith.cmpi sge, %[[N:.*]], %{{.*}} : index
// CHECK-NEXT:    scf.if %[[SEVERAL]] {
// CHECK:           scf.for %{{.*}} = %[[MAIN]] to %[[N]] step
// CHECK:             %[[LAST:.*]] = arith.subi %[[N]], %{{.*}} : index
// CHECK-NEXT:        vector.load %x[%[[LAST]]] : memref<?xf32>, vector<8xf32>
// CHECK:         } else {
// CHECK:             memref.load %x
func.func @dynamic(%x: memref<?xf32>, %y: memref<?xf32>) {
  linalg.generic {indexing_maps = [affine_map<(d0) -> (d0)>, affine_map<(d0) -> (d0)>], iterator_types = ["parallel"]} ins(%x : memref<?xf32>) outs(%y : memref<?xf32>) {
  ^bb0(%a: f32, %o: f32):
    %c = arith.negf %a : f32
    linalg.yield %c : f32
  }
  return
}
