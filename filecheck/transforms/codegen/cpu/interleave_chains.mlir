// RUN: xdsl-opt %s -p "irees-interleave-chains" | filecheck %s
// RUN: irees opt %s -p "irees-interleave-chains" --remarks 2>&1 >/dev/null | filecheck %s --check-prefix SAID

// Constants and indices come first, then the ops of both chains in turns.
// CHECK-LABEL: func.func @long
// CHECK:       scf.for %[[i:.*]] =
// CHECK-NEXT:    arith.constant dense<2.0
// CHECK-NEXT:    %[[j:.*]] = arith.addi %[[i]]
// CHECK-NEXT:    arith.constant dense<2.0
// CHECK-NEXT:    %[[x:.*]] = vector.load %x[%[[i]]]
// CHECK-NEXT:    %[[y:.*]] = vector.load %x[%[[j]]]
// CHECK-NEXT:    %[[a:.*]] = arith.mulf %[[x]]
// CHECK-NEXT:    %[[b:.*]] = arith.mulf %[[y]]
// CHECK-NEXT:    arith.mulf %[[a]]
// CHECK-NEXT:    arith.mulf %[[b]]
// CHECK:         vector.store %{{.*}}, %y[%[[i]]]
// CHECK-NEXT:    vector.store %{{.*}}, %y[%[[j]]]
func.func @long(%x: memref<64xf32>, %y: memref<64xf32>) {
  %c0 = arith.constant 0 : index
  %c8 = arith.constant 8 : index
  %c16 = arith.constant 16 : index
  %c64 = arith.constant 64 : index
  scf.for %i = %c0 to %c64 step %c16 {
    %two0 = arith.constant dense<2.0> : vector<8xf32>
    %x0 = vector.load %x[%i] : memref<64xf32>, vector<8xf32>
    %m0_0 = arith.mulf %x0, %two0 : vector<8xf32>
    %m0_1 = arith.mulf %m0_0, %two0 : vector<8xf32>
    %m0_2 = arith.mulf %m0_1, %two0 : vector<8xf32>
    %m0_3 = arith.mulf %m0_2, %two0 : vector<8xf32>
    %m0_4 = arith.mulf %m0_3, %two0 : vector<8xf32>
    %m0_5 = arith.mulf %m0_4, %two0 : vector<8xf32>
    %m0_6 = arith.mulf %m0_5, %two0 : vector<8xf32>
    %m0_7 = arith.mulf %m0_6, %two0 : vector<8xf32>
    %m0_8 = arith.mulf %m0_7, %two0 : vector<8xf32>
    %m0_9 = arith.mulf %m0_8, %two0 : vector<8xf32>
    %m0_10 = arith.mulf %m0_9, %two0 : vector<8xf32>
    %m0_11 = arith.mulf %m0_10, %two0 : vector<8xf32>
    %m0_12 = arith.mulf %m0_11, %two0 : vector<8xf32>
    %m0_13 = arith.mulf %m0_12, %two0 : vector<8xf32>
    %m0_14 = arith.mulf %m0_13, %two0 : vector<8xf32>
    %m0_15 = arith.mulf %m0_14, %two0 : vector<8xf32>
    %m0_16 = arith.mulf %m0_15, %two0 : vector<8xf32>
    vector.store %m0_16, %y[%i] : memref<64xf32>, vector<8xf32>
    %j = arith.addi %i, %c8 : index
    %two1 = arith.constant dense<2.0> : vector<8xf32>
    %x1 = vector.load %x[%j] : memref<64xf32>, vector<8xf32>
    %m1_0 = arith.mulf %x1, %two1 : vector<8xf32>
    %m1_1 = arith.mulf %m1_0, %two1 : vector<8xf32>
    %m1_2 = arith.mulf %m1_1, %two1 : vector<8xf32>
    %m1_3 = arith.mulf %m1_2, %two1 : vector<8xf32>
    %m1_4 = arith.mulf %m1_3, %two1 : vector<8xf32>
    %m1_5 = arith.mulf %m1_4, %two1 : vector<8xf32>
    %m1_6 = arith.mulf %m1_5, %two1 : vector<8xf32>
    %m1_7 = arith.mulf %m1_6, %two1 : vector<8xf32>
    %m1_8 = arith.mulf %m1_7, %two1 : vector<8xf32>
    %m1_9 = arith.mulf %m1_8, %two1 : vector<8xf32>
    %m1_10 = arith.mulf %m1_9, %two1 : vector<8xf32>
    %m1_11 = arith.mulf %m1_10, %two1 : vector<8xf32>
    %m1_12 = arith.mulf %m1_11, %two1 : vector<8xf32>
    %m1_13 = arith.mulf %m1_12, %two1 : vector<8xf32>
    %m1_14 = arith.mulf %m1_13, %two1 : vector<8xf32>
    %m1_15 = arith.mulf %m1_14, %two1 : vector<8xf32>
    %m1_16 = arith.mulf %m1_15, %two1 : vector<8xf32>
    vector.store %m1_16, %y[%j] : memref<64xf32>, vector<8xf32>
  }
  return
}

// Of sixteen operations a processor sees enough.
// CHECK-LABEL: func.func @short
// CHECK:       vector.load %x
// CHECK-NOT:   vector.load
// CHECK:       return
func.func @short(%x: memref<64xf32>, %y: memref<64xf32>) {
  %c0 = arith.constant 0 : index
  %c8 = arith.constant 8 : index
  %c64 = arith.constant 64 : index
  scf.for %i = %c0 to %c64 step %c8 {
    %two = arith.constant dense<2.0> : vector<8xf32>
    %x0 = vector.load %x[%i] : memref<64xf32>, vector<8xf32>
    %m0 = arith.mulf %x0, %two : vector<8xf32>
    %m1 = arith.mulf %m0, %two : vector<8xf32>
    %m2 = arith.mulf %m1, %two : vector<8xf32>
    %m3 = arith.mulf %m2, %two : vector<8xf32>
    %m4 = arith.mulf %m3, %two : vector<8xf32>
    %m5 = arith.mulf %m4, %two : vector<8xf32>
    %m6 = arith.mulf %m5, %two : vector<8xf32>
    %m7 = arith.mulf %m6, %two : vector<8xf32>
    %m8 = arith.mulf %m7, %two : vector<8xf32>
    %m9 = arith.mulf %m8, %two : vector<8xf32>
    %m10 = arith.mulf %m9, %two : vector<8xf32>
    %m11 = arith.mulf %m10, %two : vector<8xf32>
    %m12 = arith.mulf %m11, %two : vector<8xf32>
    %m13 = arith.mulf %m12, %two : vector<8xf32>
    %m14 = arith.mulf %m13, %two : vector<8xf32>
    %m15 = arith.mulf %m14, %two : vector<8xf32>
    vector.store %m15, %y[%i] : memref<64xf32>, vector<8xf32>
  }
  return
}

// What is read may be what the turn before has written.
// SAID:        {{\[}}missed] irees-interleave-chains: chains not interleaved: the loop reads a buffer it writes
// CHECK-LABEL: func.func @in_place
// CHECK:       vector.load %x
// CHECK-NOT:   vector.load
// CHECK:       return
func.func @in_place(%x: memref<64xf32>, %y: memref<64xf32>) {
  %c0 = arith.constant 0 : index
  %c8 = arith.constant 8 : index
  %c64 = arith.constant 64 : index
  scf.for %i = %c0 to %c64 step %c8 {
    %two = arith.constant dense<2.0> : vector<8xf32>
    %x0 = vector.load %x[%i] : memref<64xf32>, vector<8xf32>
    %m0 = arith.mulf %x0, %two : vector<8xf32>
    %m1 = math.fma %m0, %m0, %two : vector<8xf32>
    %m2 = math.fma %m1, %m1, %two : vector<8xf32>
    %m3 = math.fma %m2, %m2, %two : vector<8xf32>
    %m4 = math.fma %m3, %m3, %two : vector<8xf32>
    %m5 = math.fma %m4, %m4, %two : vector<8xf32>
    %m6 = math.fma %m5, %m5, %two : vector<8xf32>
    %m7 = math.fma %m6, %m6, %two : vector<8xf32>
    %m8 = math.fma %m7, %m7, %two : vector<8xf32>
    vector.store %m8, %x[%i] : memref<64xf32>, vector<8xf32>
  }
  return
}

// Chains that are not alike do not take turns.
// SAID:        {{\[}}missed] irees-interleave-chains: chains not interleaved: their op sequences differ
// CHECK-LABEL: func.func @different
// CHECK:       vector.store %{{.*}}, %y
// CHECK:       vector.load %x
func.func @different(%x: memref<64xf32>, %y: memref<64xf32>) {
  %c0 = arith.constant 0 : index
  %c8 = arith.constant 8 : index
  %c16 = arith.constant 16 : index
  %c64 = arith.constant 64 : index
  scf.for %i = %c0 to %c64 step %c16 {
    %two0 = arith.constant dense<2.0> : vector<8xf32>
    %x0 = vector.load %x[%i] : memref<64xf32>, vector<8xf32>
    %m0_0 = arith.mulf %x0, %two0 : vector<8xf32>
    %m0_1 = arith.mulf %m0_0, %two0 : vector<8xf32>
    %m0_2 = arith.mulf %m0_1, %two0 : vector<8xf32>
    %m0_3 = arith.mulf %m0_2, %two0 : vector<8xf32>
    %m0_4 = arith.mulf %m0_3, %two0 : vector<8xf32>
    %m0_5 = arith.mulf %m0_4, %two0 : vector<8xf32>
    %m0_6 = arith.mulf %m0_5, %two0 : vector<8xf32>
    %m0_7 = arith.mulf %m0_6, %two0 : vector<8xf32>
    %m0_8 = arith.mulf %m0_7, %two0 : vector<8xf32>
    %m0_9 = arith.mulf %m0_8, %two0 : vector<8xf32>
    %m0_10 = arith.mulf %m0_9, %two0 : vector<8xf32>
    %m0_11 = arith.mulf %m0_10, %two0 : vector<8xf32>
    %m0_12 = arith.mulf %m0_11, %two0 : vector<8xf32>
    %m0_13 = arith.mulf %m0_12, %two0 : vector<8xf32>
    %m0_14 = arith.mulf %m0_13, %two0 : vector<8xf32>
    %m0_15 = arith.mulf %m0_14, %two0 : vector<8xf32>
    %m0_16 = arith.mulf %m0_15, %two0 : vector<8xf32>
    vector.store %m0_16, %y[%i] : memref<64xf32>, vector<8xf32>
    %j = arith.addi %i, %c8 : index
    %two1 = arith.constant dense<2.0> : vector<8xf32>
    %x1 = vector.load %x[%j] : memref<64xf32>, vector<8xf32>
    %m1_0 = arith.mulf %x1, %two1 : vector<8xf32>
    %m1_1 = arith.mulf %m1_0, %two1 : vector<8xf32>
    %m1_2 = arith.mulf %m1_1, %two1 : vector<8xf32>
    %m1_3 = arith.subf %m1_2, %two1 : vector<8xf32>
    %m1_4 = arith.mulf %m1_3, %two1 : vector<8xf32>
    %m1_5 = arith.mulf %m1_4, %two1 : vector<8xf32>
    %m1_6 = arith.mulf %m1_5, %two1 : vector<8xf32>
    %m1_7 = arith.mulf %m1_6, %two1 : vector<8xf32>
    %m1_8 = arith.mulf %m1_7, %two1 : vector<8xf32>
    %m1_9 = arith.mulf %m1_8, %two1 : vector<8xf32>
    %m1_10 = arith.mulf %m1_9, %two1 : vector<8xf32>
    %m1_11 = arith.mulf %m1_10, %two1 : vector<8xf32>
    %m1_12 = arith.mulf %m1_11, %two1 : vector<8xf32>
    %m1_13 = arith.mulf %m1_12, %two1 : vector<8xf32>
    %m1_14 = arith.mulf %m1_13, %two1 : vector<8xf32>
    %m1_15 = arith.mulf %m1_14, %two1 : vector<8xf32>
    %m1_16 = arith.mulf %m1_15, %two1 : vector<8xf32>
    vector.store %m1_16, %y[%j] : memref<64xf32>, vector<8xf32>
  }
  return
}

// One chain: four of eight turns are one, and take turns.
// CHECK-LABEL: func.func @turns
// CHECK:         %[[step:.*]] = arith.constant 32 : index
// CHECK:         scf.for %[[i:.*]] = %{{.*}} to %{{.*}} step %[[step]]
// CHECK:           %[[j:.*]] = arith.addi %[[i]]
// CHECK:           %[[k:.*]] = arith.addi %[[i]]
// CHECK:           %[[l:.*]] = arith.addi %[[i]]
// CHECK:           vector.load %x[%[[i]]]
// CHECK-NEXT:      vector.load %x[%[[j]]]
// CHECK-NEXT:      vector.load %x[%[[k]]]
// CHECK-NEXT:      vector.load %x[%[[l]]]
// CHECK:           vector.store %{{.*}}, %y[%[[i]]]
// CHECK-NEXT:      vector.store %{{.*}}, %y[%[[j]]]
// CHECK-NEXT:      vector.store %{{.*}}, %y[%[[k]]]
// CHECK-NEXT:      vector.store %{{.*}}, %y[%[[l]]]
// CHECK-NEXT:    }
func.func @turns(%x: memref<64xf32>, %y: memref<64xf32>) {
  %c0 = arith.constant 0 : index
  %c8 = arith.constant 8 : index
  %end = arith.constant 64 : index
  scf.for %i = %c0 to %end step %c8 {
    %two = arith.constant dense<2.0> : vector<8xf32>
    %x0 = vector.load %x[%i] : memref<64xf32>, vector<8xf32>
    %m0 = arith.mulf %x0, %two : vector<8xf32>
    %m1 = math.fma %m0, %m0, %two : vector<8xf32>
    %m2 = math.fma %m1, %m1, %two : vector<8xf32>
    %m3 = math.fma %m2, %m2, %two : vector<8xf32>
    %m4 = math.fma %m3, %m3, %two : vector<8xf32>
    %m5 = math.fma %m4, %m4, %two : vector<8xf32>
    %m6 = math.fma %m5, %m5, %two : vector<8xf32>
    %m7 = math.fma %m6, %m6, %two : vector<8xf32>
    %m8 = math.fma %m7, %m7, %two : vector<8xf32>
    vector.store %m8, %y[%i] : memref<64xf32>, vector<8xf32>
  }
  return
}

// Beside a long chain the operations of a sum are spread, all before its store.
// CHECK-LABEL: func.func @beside
// CHECK-COUNT-3:   math.fma
// CHECK:           vector.load %z
// CHECK:           arith.addf
// CHECK-NEXT:      vector.store
func.func @beside(%x: memref<64xf32>, %y: memref<64xf32>, %z: memref<64xf32>, %zero: vector<8xf32>) -> vector<8xf32> {
  %c0 = arith.constant 0 : index
  %c8 = arith.constant 8 : index
  %end = arith.constant 64 : index
  %sum = scf.for %i = %c0 to %end step %c8 iter_args(%s = %zero) -> (vector<8xf32>) {
    %two = arith.constant dense<2.0> : vector<8xf32>
    %x0 = vector.load %x[%i] : memref<64xf32>, vector<8xf32>
    %m0 = arith.mulf %x0, %two : vector<8xf32>
    %m1 = math.fma %m0, %m0, %two : vector<8xf32>
    %m2 = math.fma %m1, %m1, %two : vector<8xf32>
    %m3 = math.fma %m2, %m2, %two : vector<8xf32>
    %m4 = math.fma %m3, %m3, %two : vector<8xf32>
    %m5 = math.fma %m4, %m4, %two : vector<8xf32>
    %m6 = math.fma %m5, %m5, %two : vector<8xf32>
    %m7 = math.fma %m6, %m6, %two : vector<8xf32>
    %m8 = math.fma %m7, %m7, %two : vector<8xf32>
    vector.store %m8, %y[%i] : memref<64xf32>, vector<8xf32>
    %z0 = vector.load %z[%i] : memref<64xf32>, vector<8xf32>
    %t = arith.addf %s, %z0 : vector<8xf32>
    scf.yield %t : vector<8xf32>
  }
  return %sum : vector<8xf32>
}
