// RUN: xdsl-opt %s -p 'irees-assign-target{facts="vector_bytes=32"},irees-vectorize-structured-ops' | filecheck %s

// A load at places that depend on data is a gather, where something else needs the vectors.
// CHECK-LABEL: func.func @gather
// CHECK:         %[[I:.*]] = arith.index_cast %{{.*}} : vector<8xi32> to vector<8xindex>
// CHECK:         %[[G:.*]] = vector.gather %t[%{{.*}}] [%[[I]]], %{{.*}}, %{{.*}} : memref<64xf32>, vector<8xindex>, vector<8xi1>, vector<8xf32> into vector<8xf32>
// CHECK-NEXT:    math.exp %[[G]] : vector<8xf32>
func.func @gather(%k: memref<32xi32>, %t: memref<64xf32>, %y: memref<32xf32>) {
  linalg.generic {indexing_maps = [affine_map<(d0) -> (d0)>, affine_map<(d0) -> (d0)>], iterator_types = ["parallel"]} ins(%k : memref<32xi32>) outs(%y : memref<32xf32>) {
  ^bb0(%n: i32, %o: f32):
    %i = arith.index_cast %n : i32 to index
    %s = memref.load %t[%i] : memref<64xf32>
    %e = math.exp %s : f32
    linalg.yield %e : f32
  }
  return
}

// By itself it is no quicker than a scalar loop.
// CHECK-LABEL: func.func @no_gather
// CHECK-NOT:     vector
// CHECK:         memref.load %t
// CHECK-NOT:     vector
// CHECK:         func.return
func.func @no_gather(%k: memref<32xi32>, %t: memref<64xf32>, %y: memref<32xf32>) {
  linalg.generic {indexing_maps = [affine_map<(d0) -> (d0)>, affine_map<(d0) -> (d0)>], iterator_types = ["parallel"]} ins(%k : memref<32xi32>) outs(%y : memref<32xf32>) {
  ^bb0(%n: i32, %o: f32):
    %i = arith.index_cast %n : i32 to index
    %s = memref.load %t[%i] : memref<64xf32>
    linalg.yield %s : f32
  }
  return
}

// Arithmetic on the places pays for the gather. Both dims of the table are one, and the check is one of
// all lanes.
// CHECK-LABEL: func.func @checked_table
// CHECK:         %[[I:.*]] = vector.load %k[%{{.*}}] : memref<32xi64>, vector<4xi64>
// CHECK:         %[[OK:.*]] = arith.andi %{{.*}}, %{{.*}} : vector<4xi1>
// CHECK-NEXT:    %[[ALL:.*]] = vector.reduction <and>, %[[OK]] : vector<4xi1> into i1
// CHECK-NEXT:    cf.assert %[[ALL]], "out of bounds"
// CHECK:         %[[S:.*]] = arith.select %[[OK]], %{{.*}}, %{{.*}} : vector<4xi1>, vector<4xindex>
// CHECK:         %[[M:.*]] = arith.muli %{{.*}}, %{{.*}} : vector<4xindex>
// CHECK:         %[[A:.*]] = arith.addi %[[M]], %{{.*}} : vector<4xindex>
// CHECK-NEXT:    %[[T:.*]] = memref.collapse_shape %t {{.*}} : memref<64x3xf32> into memref<192xf32>
// CHECK:         vector.gather %[[T]][%{{.*}}] [%[[A]]]
func.func @checked_table(%k: memref<32xi64>, %t: memref<64x3xf32>, %y: memref<32xf32>) {
  linalg.generic {indexing_maps = [affine_map<(d0) -> (d0)>, affine_map<(d0) -> (d0)>], iterator_types = ["parallel"]} ins(%k : memref<32xi64>) outs(%y : memref<32xf32>) {
  ^bb0(%n: i64, %o: f32):
    %zero = arith.constant 0 : index
    %one = arith.constant 1 : index
    %size = arith.constant 64 : index
    %m = arith.muli %n, %n : i64
    %d = arith.subi %m, %n : i64
    %g = arith.shrsi %d, %n : i64
    %h = arith.xori %g, %n : i64
    %i = arith.index_cast %h : i64 to index
    %negative = arith.cmpi slt, %i, %zero : index
    %wrapped = arith.addi %i, %size : index
    %p = arith.select %negative, %wrapped, %i : index
    %low = arith.cmpi sge, %p, %zero : index
    %high = arith.cmpi slt, %p, %size : index
    %ok = arith.andi %low, %high : i1
    cf.assert %ok, "out of bounds"
    %q = arith.select %ok, %p, %zero : index
    %s = memref.load %t[%q, %one] : memref<64x3xf32>
    linalg.yield %s : f32
  }
  return
}

// All channels read at the same place, which takes some arithmetic: their loop is the innermost, and
// the place is computed once for a vector of points.
// CHECK-LABEL: func.func @same_place
// CHECK:         scf.for %[[I:.*]] =
// CHECK:           %[[P:.*]] = vector.load %p[%[[I]]] : memref<16xindex>, vector<4xindex>
// CHECK:           %[[R:.*]] = arith.minsi {{.*}} : vector<4xindex>
// CHECK:           scf.for %[[C:.*]] =
// CHECK:             %[[V:.*]] = vector.gather %t[%[[C]], %{{.*}}] [%[[R]]]
// CHECK-NEXT:        vector.store %[[V]], %y[%[[C]], %[[I]]]
func.func @same_place(%p: memref<16xindex>, %k: index, %t: memref<4x99xf32>, %y: memref<4x16xf32>) {
  linalg.generic {indexing_maps = [affine_map<(c, i) -> (i)>, affine_map<(c, i) -> (c, i)>], iterator_types = ["parallel", "parallel"]} ins(%p : memref<16xindex>) outs(%y : memref<4x16xf32>) {
  ^bb0(%r: index, %o: f32):
    %c = linalg.index 0 : index
    %r1 = arith.muli %r, %k : index
    %r2 = arith.addi %r1, %r : index
    %r3 = arith.muli %r2, %k : index
    %r4 = arith.addi %r3, %r2 : index
    %r5 = arith.muli %r4, %k : index
    %r6 = arith.addi %r5, %r4 : index
    %r0 = arith.muli %r6, %k : index
    %s1 = arith.addi %r0, %r : index
    %s2 = arith.muli %s1, %k : index
    %s3 = arith.addi %s2, %s1 : index
    %s4 = arith.xori %s3, %r : index
    %r7 = arith.maxsi %s4, %r : index
    %r8 = arith.minsi %r7, %k : index
    %a = memref.load %t[%c, %r8] : memref<4x99xf32>
    linalg.yield %a : f32
  }
  return
}

// Integers of 4 bits have no vectors.
// CHECK-LABEL: func.func @scalars
// CHECK:         scf.for %[[I:.*]] =
// CHECK:           %[[P:.*]] = memref.load %p[%[[I]]]
// CHECK:           %[[R:.*]] = arith.minsi
// CHECK:           scf.for %[[C:.*]] =
// CHECK-NEXT:        %[[V:.*]] = memref.load %t[%[[C]], %[[R]]] : memref<4x99xi4>
// CHECK-NEXT:        memref.store %[[V]], %y[%[[C]], %[[I]]]
func.func @scalars(%p: memref<16xindex>, %k: index, %t: memref<4x99xi4>, %y: memref<4x16xi4>) {
  linalg.generic {indexing_maps = [affine_map<(c, i) -> (i)>, affine_map<(c, i) -> (c, i)>], iterator_types = ["parallel", "parallel"]} ins(%p : memref<16xindex>) outs(%y : memref<4x16xi4>) {
  ^bb0(%r: index, %o: i4):
    %c = linalg.index 0 : index
    %r1 = arith.muli %r, %k : index
    %r2 = arith.addi %r1, %r : index
    %r3 = arith.muli %r2, %k : index
    %r4 = arith.addi %r3, %r2 : index
    %r5 = arith.muli %r4, %k : index
    %r6 = arith.addi %r5, %r4 : index
    %r0 = arith.muli %r6, %k : index
    %r7 = arith.maxsi %r0, %r : index
    %r8 = arith.minsi %r7, %k : index
    %a = memref.load %t[%c, %r8] : memref<4x99xi4>
    linalg.yield %a : i4
  }
  return
}

// A last dim of one element is no dim: the load is of a row.
// CHECK-LABEL: func.func @unit_dim
// CHECK:         %[[T:.*]] = memref.collapse_shape %t {{.*}} : memref<2x32x1xf32> into memref<2x32xf32>
// CHECK-NEXT:    vector.load %[[T]][%{{.*}}, %{{.*}}] : memref<2x32xf32>, vector<8xf32>
func.func @unit_dim(%x: memref<32xf32>, %k: index, %t: memref<2x32x1xf32>, %y: memref<32xf32>) {
  linalg.generic {indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>], iterator_types = ["parallel"]} ins(%x : memref<32xf32>) outs(%y : memref<32xf32>) {
  ^bb0(%a: f32, %o: f32):
    %zero = arith.constant 0 : index
    %i = linalg.index 0 : index
    %b = memref.load %t[%k, %i, %zero] : memref<2x32x1xf32>
    %c = arith.addf %a, %b : f32
    linalg.yield %c : f32
  }
  return
}

// Only an index of a dim of one element varies, so all lanes load the same element.
// CHECK-LABEL: func.func @one_element
// CHECK:         %[[E:.*]] = memref.load %{{.*}}[%{{.*}}] : memref<3xf32>
// CHECK-NEXT:    %[[S:.*]] = vector.broadcast %[[E]] : f32 to vector<4xf32>
// CHECK:         math.exp %[[S]] : vector<4xf32>
func.func @one_element(%t: memref<3x1xf32>, %y: memref<3x32xf32>) {
  linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>], iterator_types = ["parallel", "parallel"]} outs(%y : memref<3x32xf32>) {
  ^bb0(%o: f32):
    %row = linalg.index 0 : index
    %column = linalg.index 1 : index
    %zero = arith.constant 0 : index
    %place = arith.muli %column, %zero : index
    %s = memref.load %t[%row, %place] : memref<3x1xf32>
    %e = math.exp %s : f32
    linalg.yield %e : f32
  }
  return
}

// The column of a load is a scalar: the vectors have as many lanes as f32 has.
// CHECK-LABEL: func.func @addresses
// CHECK:         vector.load %x[%{{.*}}, %{{.*}}] : memref<?x?xf32>, vector<8xf32>
func.func @addresses(%x: memref<?x?xf32>, %rows: memref<7xindex>, %y: memref<7x32xf32>) {
  linalg.generic {indexing_maps = [affine_map<(i, j) -> (i)>, affine_map<(i, j) -> (i, j)>], iterator_types = ["parallel", "parallel"]} ins(%rows : memref<7xindex>) outs(%y : memref<7x32xf32>) {
  ^bb0(%row: index, %o: f32):
    %two = arith.constant 2 : index
    %j = linalg.index 1 : index
    %column = arith.addi %j, %two : index
    %v = memref.load %x[%row, %column] : memref<?x?xf32>
    linalg.yield %v : f32
  }
  return
}

// A column that becomes a number has lanes of 64 bits.
// CHECK-LABEL: func.func @no_addresses
// CHECK:         vector.load %x[%{{.*}}, %{{.*}}] : memref<?x?xf32>, vector<4xf32>
func.func @no_addresses(%x: memref<?x?xf32>, %rows: memref<7xindex>, %y: memref<7x32xf32>) {
  linalg.generic {indexing_maps = [affine_map<(i, j) -> (i)>, affine_map<(i, j) -> (i, j)>], iterator_types = ["parallel", "parallel"]} ins(%rows : memref<7xindex>) outs(%y : memref<7x32xf32>) {
  ^bb0(%row: index, %o: f32):
    %two = arith.constant 2 : index
    %j = linalg.index 1 : index
    %column = arith.addi %j, %two : index
    %v = memref.load %x[%row, %column] : memref<?x?xf32>
    %n = arith.index_cast %column : index to i64
    %f = arith.sitofp %n : i64 to f32
    %s = arith.addf %v, %f : f32
    linalg.yield %s : f32
  }
  return
}

// Coordinates that lie beside each other are loaded one by one, at places that need no vector.
// CHECK-LABEL: func.func @strided
// CHECK:         scf.for %[[I:.*]] = %{{.*}} to %{{.*}} step %{{.*}} {
// CHECK:         %[[A:.*]] = memref.load %g[%[[I]], %one] : memref<32x2xf32>
// CHECK-NEXT:    %[[V:.*]] = vector.broadcast %[[A]] : f32 to vector<8xf32>
// CHECK-NEXT:    %[[C:.*]] = arith.constant 1 : index
// CHECK-NEXT:    %[[J:.*]] = arith.addi %[[I]], %[[C]] : index
// CHECK-NEXT:    %[[B:.*]] = memref.load %g[%[[J]], %one] : memref<32x2xf32>
// CHECK-NEXT:    vector.insert %[[B]], %[[V]] [1] : f32 into vector<8xf32>
// CHECK-NOT:     vector.gather
// CHECK:         math.exp %{{.*}} : vector<8xf32>
func.func @strided(%g: memref<32x2xf32>, %y: memref<32xf32>) {
  linalg.generic {indexing_maps = [affine_map<(d0) -> (d0)>], iterator_types = ["parallel"]} outs(%y : memref<32xf32>) {
  ^bb0(%o: f32):
    %one = arith.constant 1 : index
    %i = linalg.index 0 : index
    %s = memref.load %g[%i, %one] : memref<32x2xf32>
    %e = math.exp %s : f32
    linalg.yield %e : f32
  }
  return
}

// So are those at multiples of an index; the places are scalars.
// CHECK-LABEL: func.func @multiples
// CHECK:         %[[M:.*]] = arith.muli %{{.*}}, %three : index
// CHECK-NEXT:    %[[P:.*]] = arith.addi %[[M]], %two : index
// CHECK-NEXT:    memref.load %g[%[[P]]]
// CHECK:         %[[C:.*]] = arith.constant 21 : index
// CHECK-NEXT:    %[[L:.*]] = arith.addi %[[P]], %[[C]] : index
// CHECK-NEXT:    memref.load %g[%[[L]]]
// CHECK-NOT:     vector.gather
// CHECK:         math.exp %{{.*}} : vector<8xf32>
func.func @multiples(%g: memref<98xf32>, %y: memref<32xf32>) {
  linalg.generic {indexing_maps = [affine_map<(d0) -> (d0)>], iterator_types = ["parallel"]} outs(%y : memref<32xf32>) {
  ^bb0(%o: f32):
    %three = arith.constant 3 : index
    %two = arith.constant 2 : index
    %i = linalg.index 0 : index
    %m = arith.muli %i, %three : index
    %p = arith.addi %m, %two : index
    %s = memref.load %g[%p] : memref<98xf32>
    %e = math.exp %s : f32
    linalg.yield %e : f32
  }
  return
}
