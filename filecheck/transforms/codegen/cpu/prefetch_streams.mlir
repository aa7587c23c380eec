// RUN: xdsl-opt %s -p 'irees-assign-target{facts="l2_bytes=4096"},irees-prefetch-streams' | filecheck %s

// Seventeen operations for one store: what lies 4 KiB further is asked for on both sides.
// CHECK-LABEL: func.func @heavy
// CHECK:         scf.for %[[j:.*]] =
// CHECK-NEXT:      %{{.*}} = vector.load %[[t:[a-z0-9]+]][%[[i:.*]], %[[j]]]
// CHECK-NEXT:      %[[c:.*]] = arith.constant 1024 : index
// CHECK-NEXT:      %[[n:.*]] = arith.addi %[[j]], %[[c]]
// CHECK-NEXT:      memref.prefetch %[[t]][%[[i]], %[[n]]], read, locality<3>, data : memref<1x64xf32
// CHECK:           vector.store %{{.*}}, %[[o:[a-z0-9]+]][%[[i]], %[[j]]]
// CHECK:           memref.prefetch %[[o]][%[[i]], %{{.*}}], write, locality<3>, data : memref<1x64xf32
// CHECK:         func.return
func.func @heavy(%x: memref<64x64xf32>, %y: memref<64x64xf32>, %small: memref<64xf32>) {
  %c0 = arith.constant 0 : index
  %c16 = arith.constant 16 : index
  %c64 = arith.constant 64 : index
  scf.forall (%w) in (64) {
    %t = memref.subview %x[%w, 0] [1, 64] [1, 1] : memref<64x64xf32> to memref<1x64xf32, strided<[64, 1], offset: ?>>
    %o = memref.subview %y[%w, 0] [1, 64] [1, 1] : memref<64x64xf32> to memref<1x64xf32, strided<[64, 1], offset: ?>>
    scf.for %j = %c0 to %c64 step %c16 {
      %v = vector.load %t[%c0, %j] : memref<1x64xf32, strided<[64, 1], offset: ?>>, vector<16xf32>
      // A cache holds this one.
      // CHECK-NOT: memref.prefetch %small
      %a = vector.load %small[%j] : memref<64xf32>, vector<16xf32>
      %1 = arith.mulf %v, %a : vector<16xf32>
      %2 = arith.mulf %1, %a : vector<16xf32>
      %3 = arith.mulf %2, %a : vector<16xf32>
      %4 = arith.mulf %3, %a : vector<16xf32>
      %5 = arith.mulf %4, %a : vector<16xf32>
      %6 = arith.mulf %5, %a : vector<16xf32>
      %7 = arith.mulf %6, %a : vector<16xf32>
      %8 = arith.mulf %7, %a : vector<16xf32>
      %9 = arith.mulf %8, %a : vector<16xf32>
      %10 = arith.mulf %9, %a : vector<16xf32>
      %11 = arith.mulf %10, %a : vector<16xf32>
      %12 = arith.mulf %11, %a : vector<16xf32>
      %13 = arith.mulf %12, %a : vector<16xf32>
      %14 = arith.mulf %13, %a : vector<16xf32>
      %15 = arith.mulf %14, %a : vector<16xf32>
      %16 = arith.mulf %15, %a : vector<16xf32>
      %17 = arith.mulf %16, %a : vector<16xf32>
      vector.store %17, %o[%c0, %j] : memref<1x64xf32, strided<[64, 1], offset: ?>>, vector<16xf32>
    }
  }
  return
}

// A loop that does little waits for memory alone.
// CHECK-LABEL: func.func @light
// CHECK-NOT:     memref.prefetch
// CHECK:         func.return
func.func @light(%x: memref<64x64xf32>, %y: memref<64x64xf32>) {
  %c0 = arith.constant 0 : index
  %c16 = arith.constant 16 : index
  %c64 = arith.constant 64 : index
  scf.forall (%w) in (64) {
    %t = memref.subview %x[%w, 0] [1, 64] [1, 1] : memref<64x64xf32> to memref<1x64xf32, strided<[64, 1], offset: ?>>
    %o = memref.subview %y[%w, 0] [1, 64] [1, 1] : memref<64x64xf32> to memref<1x64xf32, strided<[64, 1], offset: ?>>
    scf.for %j = %c0 to %c64 step %c16 {
      %v = vector.load %t[%c0, %j] : memref<1x64xf32, strided<[64, 1], offset: ?>>, vector<16xf32>
      %1 = arith.mulf %v, %v : vector<16xf32>
      vector.store %1, %o[%c0, %j] : memref<1x64xf32, strided<[64, 1], offset: ?>>, vector<16xf32>
    }
  }
  return
}

// A sum stores nothing: it asks for what follows however little it does with it.
// CHECK-LABEL: func.func @sum
// CHECK:         scf.for %[[j:.*]] = {{.*}} iter_args
// CHECK:           vector.load %[[t:[a-z0-9]+]][%[[i:.*]], %[[k:.*]]] :
// CHECK:           memref.prefetch %[[t]][%[[i]], %{{.*}}], read, locality<3>, data : memref<1x64xf32
// CHECK:         func.return
func.func @sum(%x: memref<64x64xf32>, %y: memref<64xf32>) {
  %c0 = arith.constant 0 : index
  %c16 = arith.constant 16 : index
  %c64 = arith.constant 64 : index
  %zero = arith.constant dense<0.0> : vector<16xf32>
  scf.forall (%w) in (64) {
    %t = memref.subview %x[%w, 0] [1, 64] [1, 1] : memref<64x64xf32> to memref<1x64xf32, strided<[64, 1], offset: ?>>
    %s = scf.for %j = %c0 to %c64 step %c16 iter_args(%acc = %zero) -> (vector<16xf32>) {
      %k = arith.addi %j, %c16 : index
      %v = vector.load %t[%c0, %k] : memref<1x64xf32, strided<[64, 1], offset: ?>>, vector<16xf32>
      %1 = arith.addf %acc, %v : vector<16xf32>
      scf.yield %1 : vector<16xf32>
    }
    %r = vector.reduction <add>, %s : vector<16xf32> into f32
    memref.store %r, %y[%w] : memref<64xf32>
  }
  return
}

// Two loops read a row, the second from the cache.
// CHECK-LABEL: func.func @no_second_sum
// CHECK-NOT:     memref.prefetch
// CHECK:         func.return
func.func @no_second_sum(%x: memref<64x64xf32>, %y: memref<64xf32>) {
  %c0 = arith.constant 0 : index
  %c16 = arith.constant 16 : index
  %c64 = arith.constant 64 : index
  %zero = arith.constant dense<0.0> : vector<16xf32>
  scf.forall (%w) in (64) {
    %t = memref.subview %x[%w, 0] [1, 64] [1, 1] : memref<64x64xf32> to memref<1x64xf32, strided<[64, 1], offset: ?>>
    scf.for %i = %c0 to %c16 step %c16 {
      %s = scf.for %j = %c0 to %c64 step %c16 iter_args(%acc = %zero) -> (vector<16xf32>) {
        %v = vector.load %t[%c0, %j] : memref<1x64xf32, strided<[64, 1], offset: ?>>, vector<16xf32>
        %1 = arith.addf %acc, %v : vector<16xf32>
        scf.yield %1 : vector<16xf32>
      }
      %u = scf.for %j = %c0 to %c64 step %c16 iter_args(%acc = %s) -> (vector<16xf32>) {
        %v = vector.load %t[%c0, %j] : memref<1x64xf32, strided<[64, 1], offset: ?>>, vector<16xf32>
        %1 = arith.mulf %acc, %v : vector<16xf32>
        scf.yield %1 : vector<16xf32>
      }
      %r = vector.reduction <add>, %u : vector<16xf32> into f32
      memref.store %r, %y[%w] : memref<64xf32>
    }
  }
  return
}

// Sums of different tiles are streams of their own; the same tile again is in the cache.
// CHECK-LABEL: func.func @tiles
// CHECK-COUNT-2: memref.prefetch %{{.*}}, read
// CHECK-NOT:     memref.prefetch
// CHECK:         func.return
func.func @tiles(%x: memref<64x64xf32>, %again: memref<64x64xf32>, %s0: vector<16xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c16 = arith.constant 16 : index
  %c64 = arith.constant 64 : index
  scf.forall (%w) in (63) {
    %w1 = arith.addi %w, %c1 : index
    %t = memref.subview %x[%w, 0] [1, 64] [1, 1] : memref<64x64xf32> to memref<1x64xf32, strided<[64, 1], offset: ?>>
    %u = memref.subview %x[%w1, 0] [1, 64] [1, 1] : memref<64x64xf32> to memref<1x64xf32, strided<[64, 1], offset: ?>>
    %r = memref.subview %again[%w, 0] [1, 64] [1, 1] : memref<64x64xf32> to memref<1x64xf32, strided<[64, 1], offset: ?>>
    %a = scf.for %j = %c0 to %c64 step %c16 iter_args(%s = %s0) -> (vector<16xf32>) {
      %v = vector.load %t[%c0, %j] : memref<1x64xf32, strided<[64, 1], offset: ?>>, vector<16xf32>
      %n = arith.addf %s, %v : vector<16xf32>
      scf.yield %n : vector<16xf32>
    }
    %b = scf.for %j = %c0 to %c64 step %c16 iter_args(%s = %a) -> (vector<16xf32>) {
      %v = vector.load %u[%c0, %j] : memref<1x64xf32, strided<[64, 1], offset: ?>>, vector<16xf32>
      %n = arith.addf %s, %v : vector<16xf32>
      scf.yield %n : vector<16xf32>
    }
    %c = scf.for %j = %c0 to %c64 step %c16 iter_args(%s = %b) -> (vector<16xf32>) {
      %v = vector.load %r[%c0, %j] : memref<1x64xf32, strided<[64, 1], offset: ?>>, vector<16xf32>
      %n = arith.addf %s, %v : vector<16xf32>
      scf.yield %n : vector<16xf32>
    }
    %d = scf.for %j = %c0 to %c64 step %c16 iter_args(%s = %c) -> (vector<16xf32>) {
      %v = vector.load %r[%c0, %j] : memref<1x64xf32, strided<[64, 1], offset: ?>>, vector<16xf32>
      %n = arith.addf %s, %v : vector<16xf32>
      scf.yield %n : vector<16xf32>
    }
  }
  return
}
