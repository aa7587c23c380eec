// RUN: xdsl-opt %s -p 'irees-assign-target{facts="l1_bytes=128 threads=1"},irees-pipeline-workgroups' | filecheck %s
// RUN: irees opt %s -p 'irees-assign-target{facts="l1_bytes=128 threads=1"},irees-pipeline-workgroups' --remarks 2>&1 >/dev/null | filecheck %s --check-prefix SAID
// RUN: xdsl-opt %s -p 'irees-assign-target{facts="l1_bytes=512 threads=1"},irees-pipeline-workgroups' | filecheck %s --check-prefix SMALL
// RUN: irees opt %s -p 'irees-assign-target{facts="l1_bytes=128 threads=3"},irees-pipeline-workgroups' --remarks 2>&1 >/dev/null | filecheck %s --check-prefix FEW
// RUN: irees opt %s -p 'irees-assign-target{facts="l1_bytes=128 vector_registers=7 threads=4"},irees-pipeline-workgroups' --remarks 2>&1 >/dev/null | filecheck %s --check-prefix HELD

// Two workgroups take four tiles each: the first is summed up, then each other one while the points
// of the one before are computed, and the points of the last one end it.
// CHECK-LABEL: func.func @sums_and_points
// CHECK:       scf.forall (%[[t:.*]]) in (2) {
// CHECK-NEXT:    %[[mine:.*]] = memref.alloca() : memref<1xf32>
// CHECK:         %[[begin:.*]] = arith.muli %[[t]]
// CHECK:         %[[end:.*]] = arith.addi %[[begin]]
// CHECK:         scf.for {{.*}} iter_args({{.*}}) -> (vector<8xf32>, vector<8xf32>)
// CHECK-NEXT:      vector.load %x[%[[begin]], %{{.*}}]
// CHECK:         %[[first:.*]] = memref.load %[[mine]]
// CHECK:         %[[last:.*]] = scf.for %[[w:[^ ]*]] = %[[begin]] to %[[end]] step %{{.*}} iter_args(%[[m:[^ ]*]] = %[[first]]) -> (f32) {
// CHECK-NEXT:      %[[view:.*]] = memref.subview %in[%[[w]], 0, 0]
// CHECK:           %[[next:.*]] = arith.addi %[[w]]
// CHECK:           %[[sums:[^ ]*]], %{{.*}} = scf.for %[[i:[^ ]*]] = {{.*}} -> (vector<8xf32>, vector<8xf32>) {
// CHECK:             %[[row:.*]] = arith.muli %[[i]]
// CHECK:             scf.for %[[k:[^ ]*]] = {{.*}} -> (vector<8xf32>, vector<8xf32>) {
// CHECK:               vector.load %[[view]][%{{.*}}, %[[i]], %[[k]]]
// CHECK-NEXT:          vector.broadcast %[[m]]
// CHECK:               vector.store %{{.*}}, %out[%[[w]], %[[i]], %[[k]]]
// CHECK:               %[[k8:.*]] = arith.addi %[[k]]
// CHECK-NEXT:          vector.load %[[view]][%{{.*}}, %[[i]], %[[k8]]]
// CHECK:               vector.store %{{.*}}, %out[%[[w]], %[[i]], %[[k8]]]
// CHECK:               %[[j:.*]] = arith.addi %[[row]], %[[k]]
// CHECK-NEXT:          vector.load %x[%[[next]], %[[j]]]
// CHECK:           arith.addf %[[sums]]
// CHECK:           %[[mean:.*]] = memref.load %[[mine]]
// CHECK:           scf.yield %[[mean]] : f32
// CHECK:         memref.subview %in[%[[end]], 0, 0]
// CHECK:           vector.broadcast %[[last]]
// CHECK:             vector.store %{{.*}}, %out[%[[end]]
// SMALL-LABEL: func.func @sums_and_points
// SMALL:       scf.forall (%{{.*}}) in (8) {
// FEW:         not pipelined: too few tiles per thread
// HELD:        the sums hold more than a quarter of the registers
func.func @sums_and_points(%x: memref<8x64xf32>, %in: memref<8x4x16xf32>, %out: memref<8x4x16xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %c8 = arith.constant 8 : index
  %c16 = arith.constant 16 : index
  %c64 = arith.constant 64 : index
  %zero = arith.constant dense<0.0> : vector<8xf32>
  scf.forall (%w) in (8) {
    %mine = memref.alloca() : memref<1xf32>
    %sums:2 = scf.for %j = %c0 to %c64 step %c16 iter_args(%s = %zero, %t = %zero) -> (vector<8xf32>, vector<8xf32>) {
      %a = vector.load %x[%w, %j] : memref<8x64xf32>, vector<8xf32>
      %b = arith.addf %s, %a : vector<8xf32>
      %j8 = arith.addi %j, %c8 : index
      %c = vector.load %x[%w, %j8] : memref<8x64xf32>, vector<8xf32>
      %d = arith.addf %t, %c : vector<8xf32>
      scf.yield %b, %d : vector<8xf32>, vector<8xf32>
    }
    %sum = arith.addf %sums#0, %sums#1 : vector<8xf32>
    %n = vector.reduction <add>, %sum : vector<8xf32> into f32
    memref.store %n, %mine[%c0] : memref<1xf32>
    %m = memref.load %mine[%c0] : memref<1xf32>
    %view = memref.subview %in[%w, 0, 0] [1, 4, 16] [1, 1, 1] : memref<8x4x16xf32> to memref<1x4x16xf32, strided<[64, 16, 1], offset: ?>>
    scf.for %i = %c0 to %c4 step %c1 {
      scf.for %k = %c0 to %c16 step %c8 {
        %q = vector.load %view[%c0, %i, %k] : memref<1x4x16xf32, strided<[64, 16, 1], offset: ?>>, vector<8xf32>
        %v = vector.broadcast %m : f32 to vector<8xf32>
        %p0 = arith.mulf %q, %v : vector<8xf32>
        %p1 = math.fma %p0, %p0, %v : vector<8xf32>
        %p2 = math.fma %p1, %p1, %v : vector<8xf32>
        %p3 = math.fma %p2, %p2, %v : vector<8xf32>
        %p4 = math.fma %p3, %p3, %v : vector<8xf32>
        %p5 = math.fma %p4, %p4, %v : vector<8xf32>
        %p6 = math.fma %p5, %p5, %v : vector<8xf32>
        %p7 = math.fma %p6, %p6, %v : vector<8xf32>
        %p8 = math.fma %p7, %p7, %v : vector<8xf32>
        vector.store %p8, %out[%w, %i, %k] : memref<8x4x16xf32>, vector<8xf32>
      }
    }
  }
  return
}

// CHECK-LABEL: func.func @points_read_a_buffer
// CHECK:       scf.forall (%{{.*}}) in (8) {
// SAID:        the points use a buffer of the workgroup
func.func @points_read_a_buffer(%x: memref<8x64xf32>, %in: memref<8x4x16xf32>, %out: memref<8x4x16xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %c8 = arith.constant 8 : index
  %c16 = arith.constant 16 : index
  %c64 = arith.constant 64 : index
  %zero = arith.constant dense<0.0> : vector<8xf32>
  scf.forall (%w) in (8) {
    %mine = memref.alloca() : memref<1xf32>
    %sum = scf.for %j = %c0 to %c64 step %c8 iter_args(%s = %zero) -> (vector<8xf32>) {
      %a = vector.load %x[%w, %j] : memref<8x64xf32>, vector<8xf32>
      %b = arith.addf %s, %a : vector<8xf32>
      scf.yield %b : vector<8xf32>
    }
    %n = vector.reduction <add>, %sum : vector<8xf32> into f32
    memref.store %n, %mine[%c0] : memref<1xf32>
    %view = memref.subview %in[%w, 0, 0] [1, 4, 16] [1, 1, 1] : memref<8x4x16xf32> to memref<1x4x16xf32, strided<[64, 16, 1], offset: ?>>
    scf.for %i = %c0 to %c4 step %c1 {
      scf.for %k = %c0 to %c16 step %c8 {
        %q = vector.load %view[%c0, %i, %k] : memref<1x4x16xf32, strided<[64, 16, 1], offset: ?>>, vector<8xf32>
        %m = memref.load %mine[%c0] : memref<1xf32>
        %v = vector.broadcast %m : f32 to vector<8xf32>
        %p0 = arith.mulf %q, %v : vector<8xf32>
        %p1 = math.fma %p0, %p0, %v : vector<8xf32>
        %p2 = math.fma %p1, %p1, %v : vector<8xf32>
        %p3 = math.fma %p2, %p2, %v : vector<8xf32>
        %p4 = math.fma %p3, %p3, %v : vector<8xf32>
        %p5 = math.fma %p4, %p4, %v : vector<8xf32>
        %p6 = math.fma %p5, %p5, %v : vector<8xf32>
        %p7 = math.fma %p6, %p6, %v : vector<8xf32>
        %p8 = math.fma %p7, %p7, %v : vector<8xf32>
        vector.store %p8, %out[%w, %i, %k] : memref<8x4x16xf32>, vector<8xf32>
      }
    }
  }
  return
}

// CHECK-LABEL: func.func @something_is_written
// CHECK:       scf.forall (%{{.*}}) in (8) {
// SAID:        more than buffers of the workgroup is changed before the points
func.func @something_is_written(%x: memref<8x64xf32>, %in: memref<8x4x16xf32>, %out: memref<8x4x16xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %c8 = arith.constant 8 : index
  %c16 = arith.constant 16 : index
  %c64 = arith.constant 64 : index
  %zero = arith.constant dense<0.0> : vector<8xf32>
  scf.forall (%w) in (8) {
    %sum = scf.for %j = %c0 to %c64 step %c8 iter_args(%s = %zero) -> (vector<8xf32>) {
      %a = vector.load %x[%w, %j] : memref<8x64xf32>, vector<8xf32>
      %b = arith.addf %s, %a : vector<8xf32>
      scf.yield %b : vector<8xf32>
    }
    %n = vector.reduction <add>, %sum : vector<8xf32> into f32
    %m = arith.mulf %n, %n : f32
    memref.store %n, %out[%w, %c0, %c0] : memref<8x4x16xf32>
    %view = memref.subview %in[%w, 0, 0] [1, 4, 16] [1, 1, 1] : memref<8x4x16xf32> to memref<1x4x16xf32, strided<[64, 16, 1], offset: ?>>
    scf.for %i = %c0 to %c4 step %c1 {
      scf.for %k = %c0 to %c16 step %c8 {
        %q = vector.load %view[%c0, %i, %k] : memref<1x4x16xf32, strided<[64, 16, 1], offset: ?>>, vector<8xf32>
        %v = vector.broadcast %m : f32 to vector<8xf32>
        %p0 = arith.mulf %q, %v : vector<8xf32>
        %p1 = math.fma %p0, %p0, %v : vector<8xf32>
        %p2 = math.fma %p1, %p1, %v : vector<8xf32>
        %p3 = math.fma %p2, %p2, %v : vector<8xf32>
        %p4 = math.fma %p3, %p3, %v : vector<8xf32>
        %p5 = math.fma %p4, %p4, %v : vector<8xf32>
        %p6 = math.fma %p5, %p5, %v : vector<8xf32>
        %p7 = math.fma %p6, %p6, %v : vector<8xf32>
        %p8 = math.fma %p7, %p7, %v : vector<8xf32>
        vector.store %p8, %out[%w, %i, %k] : memref<8x4x16xf32>, vector<8xf32>
      }
    }
  }
  return
}

// The sums go by 64, the rows of the points have 16.
// CHECK-LABEL: func.func @not_alike
// CHECK:       scf.forall (%{{.*}}) in (8) {
// SAID:        the reduction and the elementwise loops step through the tile differently
func.func @not_alike(%x: memref<8x64xf32>, %in: memref<8x4x16xf32>, %out: memref<8x4x16xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %c8 = arith.constant 8 : index
  %c16 = arith.constant 16 : index
  %c64 = arith.constant 64 : index
  %zero = arith.constant dense<0.0> : vector<8xf32>
  scf.forall (%w) in (8) {
    %sum = scf.for %j = %c0 to %c64 step %c64 iter_args(%s = %zero) -> (vector<8xf32>) {
      %a = vector.load %x[%w, %j] : memref<8x64xf32>, vector<8xf32>
      %b = arith.addf %s, %a : vector<8xf32>
      scf.yield %b : vector<8xf32>
    }
    %n = vector.reduction <add>, %sum : vector<8xf32> into f32
    %m = arith.mulf %n, %n : f32
    %view = memref.subview %in[%w, 0, 0] [1, 4, 16] [1, 1, 1] : memref<8x4x16xf32> to memref<1x4x16xf32, strided<[64, 16, 1], offset: ?>>
    scf.for %i = %c0 to %c4 step %c1 {
      scf.for %k = %c0 to %c16 step %c8 {
        %q = vector.load %view[%c0, %i, %k] : memref<1x4x16xf32, strided<[64, 16, 1], offset: ?>>, vector<8xf32>
        %v = vector.broadcast %m : f32 to vector<8xf32>
        %p0 = arith.mulf %q, %v : vector<8xf32>
        %p1 = math.fma %p0, %p0, %v : vector<8xf32>
        %p2 = math.fma %p1, %p1, %v : vector<8xf32>
        %p3 = math.fma %p2, %p2, %v : vector<8xf32>
        %p4 = math.fma %p3, %p3, %v : vector<8xf32>
        %p5 = math.fma %p4, %p4, %v : vector<8xf32>
        %p6 = math.fma %p5, %p5, %v : vector<8xf32>
        %p7 = math.fma %p6, %p6, %v : vector<8xf32>
        %p8 = math.fma %p7, %p7, %v : vector<8xf32>
        vector.store %p8, %out[%w, %i, %k] : memref<8x4x16xf32>, vector<8xf32>
      }
    }
  }
  return
}

// A sum that begins anew in each row is none of the tile.
// CHECK-LABEL: func.func @rows
// CHECK:       scf.forall (%{{.*}}) in (8) {
// SAID:        the loops of the sums do more than sum up
func.func @rows(%x: memref<8x64xf32>, %in: memref<8x4x16xf32>, %out: memref<8x4x16xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %c8 = arith.constant 8 : index
  %c16 = arith.constant 16 : index
  %c64 = arith.constant 64 : index
  %zero = arith.constant dense<0.0> : vector<8xf32>
  scf.forall (%w) in (8) {
    %sum = scf.for %g = %c0 to %c4 step %c1 iter_args(%r = %zero) -> (vector<8xf32>) {
      %u = scf.for %j = %c0 to %c16 step %c8 iter_args(%s = %zero) -> (vector<8xf32>) {
        %a = vector.load %in[%w, %g, %j] : memref<8x4x16xf32>, vector<8xf32>
        %b = arith.addf %s, %a : vector<8xf32>
        scf.yield %b : vector<8xf32>
      }
      scf.yield %u : vector<8xf32>
    }
    %n = vector.reduction <add>, %sum : vector<8xf32> into f32
    %m = arith.mulf %n, %n : f32
    %view = memref.subview %in[%w, 0, 0] [1, 4, 16] [1, 1, 1] : memref<8x4x16xf32> to memref<1x4x16xf32, strided<[64, 16, 1], offset: ?>>
    scf.for %i = %c0 to %c4 step %c1 {
      scf.for %k = %c0 to %c16 step %c8 {
        %q = vector.load %view[%c0, %i, %k] : memref<1x4x16xf32, strided<[64, 16, 1], offset: ?>>, vector<8xf32>
        %v = vector.broadcast %m : f32 to vector<8xf32>
        %p0 = arith.mulf %q, %v : vector<8xf32>
        %p1 = math.fma %p0, %p0, %v : vector<8xf32>
        %p2 = math.fma %p1, %p1, %v : vector<8xf32>
        %p3 = math.fma %p2, %p2, %v : vector<8xf32>
        %p4 = math.fma %p3, %p3, %v : vector<8xf32>
        %p5 = math.fma %p4, %p4, %v : vector<8xf32>
        %p6 = math.fma %p5, %p5, %v : vector<8xf32>
        %p7 = math.fma %p6, %p6, %v : vector<8xf32>
        %p8 = math.fma %p7, %p7, %v : vector<8xf32>
        vector.store %p8, %out[%w, %i, %k] : memref<8x4x16xf32>, vector<8xf32>
      }
    }
  }
  return
}
