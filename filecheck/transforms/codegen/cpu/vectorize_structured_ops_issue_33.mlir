// RUN: xdsl-opt %s -p 'irees-assign-target{facts="vector_bytes=32"},irees-vectorize-structured-ops' | filecheck %s

// Columns are summed in panels of eight rows; the results are in memory between panels. The rows that
// are left are a panel of their own.
// CHECK-LABEL: func.func @panels
// CHECK:         scf.for %[[I:.*]] =
// CHECK-COUNT-7:   arith.addi %[[I]], %{{.*}} : index
// CHECK:           scf.for %[[J:.*]] =
// CHECK-NEXT:        %[[Y:.*]] = vector.load %y[%[[J]]] : memref<40xf32>, vector<8xf32>
// CHECK-NEXT:        %[[X:.*]] = vector.load %x[%[[I]], %[[J]]] : memref<19x40xf32>, vector<8xf32>
// CHECK-NEXT:        %{{.*}} = arith.addf %[[X]], %[[Y]] : vector<8xf32>
// CHECK-COUNT-7:     vector.load %x
// CHECK:             vector.store %{{.*}}, %y[%[[J]]]
// CHECK:         scf.for %[[K:.*]] =
// CHECK-NEXT:      vector.load %y[%[[K]]]
// CHECK-COUNT-3:   vector.load %x
// CHECK-NOT:       vector.load %x
// CHECK:           vector.store
func.func @panels(%x: memref<19x40xf32>, %y: memref<40xf32>) {
  linalg.generic {indexing_maps = [affine_map<(j, i) -> (i, j)>, affine_map<(j, i) -> (j)>], iterator_types = ["parallel", "reduction"]} ins(%x : memref<19x40xf32>) outs(%y : memref<40xf32>) {
  ^bb0(%a: f32, %o: f32):
    %r = arith.addf %a, %o : f32
    linalg.yield %r : f32
  }
  return
}

// Few rows: their sums stay in registers.
// CHECK-LABEL: func.func @few_rows
// CHECK:         scf.for %[[J:.*]] =
// CHECK-NEXT:      vector.load %y[%[[J]]]
// CHECK:           scf.for {{.*}} -> (vector<8xf32>) {
// CHECK-NEXT:        vector.load %x
func.func @few_rows(%x: memref<7x40xf32>, %y: memref<40xf32>) {
  linalg.generic {indexing_maps = [affine_map<(j, i) -> (i, j)>, affine_map<(j, i) -> (j)>], iterator_types = ["parallel", "reduction"]} ins(%x : memref<7x40xf32>) outs(%y : memref<40xf32>) {
  ^bb0(%a: f32, %o: f32):
    %r = arith.addf %a, %o : f32
    linalg.yield %r : f32
  }
  return
}

// One vector of columns: rows are added to four accumulators in turn.
// CHECK-LABEL: func.func @few_columns
// CHECK:         %[[Y:.*]] = vector.load %y
// CHECK:         %[[A:.*]], %[[B:.*]], %[[C:.*]], %[[D:.*]] = scf.for
// CHECK-COUNT-4:   vector.load %x
// CHECK:         %[[AB:.*]] = arith.addf %[[A]], %[[B]] : vector<8xf32>
// CHECK-NEXT:    %[[ABC:.*]] = arith.addf %[[AB]], %[[C]] : vector<8xf32>
// CHECK-NEXT:    %[[ALL:.*]] = arith.addf %[[ABC]], %[[D]] : vector<8xf32>
// CHECK:         scf.for {{.*}} iter_args(%{{.*}} = %[[ALL]])
// CHECK:           vector.load %x
func.func @few_columns(%x: memref<?x8xf32>, %y: memref<8xf32>) {
  linalg.generic {indexing_maps = [affine_map<(j, i) -> (i, j)>, affine_map<(j, i) -> (j)>], iterator_types = ["parallel", "reduction"]} ins(%x : memref<?x8xf32>) outs(%y : memref<8xf32>) {
  ^bb0(%a: f32, %o: f32):
    %r = arith.addf %o, %a : f32
    linalg.yield %r : f32
  }
  return
}

// Of a sum of rows of a table each row is looked up once for all columns.
// CHECK-LABEL: func.func @table
// CHECK:         scf.for
// CHECK-COUNT-8:   memref.load %p
// CHECK:           scf.for
// CHECK-NOT:         memref.load
// CHECK-COUNT-8:     vector.load %t[%{{.*}}, %{{.*}}] : memref<99x40xf32>, vector<8xf32>
// CHECK-NOT:         memref.load
// CHECK:             vector.store
func.func @table(%p: memref<16xindex>, %t: memref<99x40xf32>, %y: memref<40xf32>) {
  linalg.generic {indexing_maps = [affine_map<(j, i) -> (i)>, affine_map<(j, i) -> (j)>], iterator_types = ["parallel", "reduction"]} ins(%p : memref<16xindex>) outs(%y : memref<40xf32>) {
  ^bb0(%r: index, %o: f32):
    %j = linalg.index 0 : index
    %a = memref.load %t[%r, %j] : memref<99x40xf32>
    %s = arith.addf %a, %o : f32
    linalg.yield %s : f32
  }
  return
}

// A loop without vectors reads the table of an outer loop before it.
// CHECK-LABEL: func.func @row_table
// CHECK:         scf.for %[[I:.*]] =
// CHECK:           %[[P:.*]] = memref.load %{{.*}}[%[[I]]] : memref<4xindex>
// CHECK:           scf.for
// CHECK:             memref.load %{{.*}}[%[[P]], %{{.*}}] : memref<3x3xf32>
func.func @row_table(%r: memref<4xindex>, %c: memref<5xindex>, %x: memref<3x3xf32>, %y: memref<4x5xf32>) {
  linalg.generic {indexing_maps = [affine_map<(i, j) -> (i)>, affine_map<(i, j) -> (j)>, affine_map<(i, j) -> (i, j)>], iterator_types = ["parallel", "parallel"]} ins(%r, %c : memref<4xindex>, memref<5xindex>) outs(%y : memref<4x5xf32>) {
  ^bb0(%p: index, %q: index, %o: f32):
    %v = memref.load %x[%p, %q] : memref<3x3xf32>
    linalg.yield %v : f32
  }
  return
}

// All rows read the same places: four of them run in one loop, and the place is read and checked once.
// CHECK-LABEL: func.func @rows_share_places
// CHECK:         scf.for %[[I:.*]] =
// CHECK:           scf.for %[[J:.*]] =
// CHECK-NEXT:        %[[K:.*]] = memref.load %p[%[[J]]]
// CHECK-NEXT:        %[[P:.*]] = arith.index_cast %[[K]]
// CHECK-NEXT:        %[[C:.*]] = arith.cmpi ult, %[[P]]
// CHECK-NEXT:        %[[Q:.*]] = arith.select %[[C]], %[[P]]
// CHECK-NEXT:        cf.assert %[[C]], "out of bounds"
// CHECK-COUNT-4:     memref.load %x[%{{.*}}, %[[Q]]]
// CHECK-COUNT-4:     memref.store
// CHECK-NOT:         memref.store
func.func @rows_share_places(%x: memref<8x7xf32>, %p: memref<9xi64>, %y: memref<8x9xf32>) {
  %c0 = arith.constant 0 : index
  %c7 = arith.constant 7 : index
  linalg.generic {indexing_maps = [affine_map<(i, j) -> (j)>, affine_map<(i, j) -> (i, j)>], iterator_types = ["parallel", "parallel"]} ins(%p : memref<9xi64>) outs(%y : memref<8x9xf32>) {
  ^bb0(%k: i64, %o: f32):
    %at = arith.index_cast %k : i64 to index
    %inside = arith.cmpi ult, %at, %c7 : index
    %q = arith.select %inside, %at, %c0 : index
    cf.assert %inside, "out of bounds"
    %i = linalg.index 0 : index
    %v = memref.load %x[%i, %q] : memref<8x7xf32>
    linalg.yield %v : f32
  }
  return
}

// A window that slides along the jammed rows is unrolled inside the other reduction: 2 rows of
// results and 3 taps read 4 rows of the image (the same loads are one to a C compiler).
// CHECK-LABEL: func.func @sliding
// CHECK:         scf.for
// CHECK:           scf.for %[[X:.*]] = %{{.*}} to %{{.*}} step %{{.*}} iter_args(
// CHECK-NOT:         scf.for
// CHECK-COUNT-6:     arith.addf {{.*}} : vector<8xf32>
// CHECK-NOT:         arith.addf
// CHECK:             scf.yield
func.func @sliding(%x: memref<4x10xf32>, %f: memref<3x3xf32>, %o: memref<2x8xf32>) {
  linalg.generic {indexing_maps = [affine_map<(h, w, y, x) -> (h + y, w + x)>, affine_map<(h, w, y, x) -> (y, x)>, affine_map<(h, w, y, x) -> (h, w)>], iterator_types = ["parallel", "parallel", "reduction", "reduction"]} ins(%x, %f : memref<4x10xf32>, memref<3x3xf32>) outs(%o : memref<2x8xf32>) {
  ^bb0(%a: f32, %b: f32, %c: f32):
    %p = arith.mulf %a, %b : f32
    %s = arith.addf %c, %p : f32
    linalg.yield %s : f32
  }
  func.return
}

// A row is compared with the lanes of its columns in 32 bits: only its distance to them matters.
// CHECK-LABEL: func.func @causal
// CHECK:           %[[BEHIND:.*]] = arith.addi %[[J:.*]], %{{.*}} : index
// CHECK:           %[[LEAST:.*]] = arith.minsi %[[I:.*]], %[[BEHIND]] : index
// CHECK:           %[[MOST:.*]] = arith.maxsi %[[LEAST]], %{{.*}} : index
// CHECK:           %[[AWAY:.*]] = arith.subi %[[MOST]], %[[J]] : index
// CHECK:           arith.index_cast %[[AWAY]] : index to i32
// CHECK:           arith.cmpi sge, %{{.*}}, %{{.*}} : vector<8xi32>
// CHECK-NOT:     vector<8xindex>
func.func @causal(%x: memref<64x?xf32>, %y: memref<64x?xf32>) {
  linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i, j)>], iterator_types = ["parallel", "parallel"]} ins(%x : memref<64x?xf32>) outs(%y : memref<64x?xf32>) {
  ^bb0(%a: f32, %o: f32):
    %i = linalg.index 0 : index
    %j = linalg.index 1 : index
    %c = arith.cmpi sge, %i, %j : index
    %z = arith.constant 0.0 : f32
    %r = arith.select %c, %a, %z : f32
    linalg.yield %r : f32
  }
  return
}

// A power is computed in f64, so as many lanes as a vector of f64 has; a square is not.
// CHECK-LABEL: func.func @powers
// CHECK:         math.powf %{{.*}}, %{{.*}} : vector<4xf32>
// CHECK:         math.powf %{{.*}}, %{{.*}} : vector<8xf32>
func.func @powers(%x: memref<64xf32>, %y: memref<64xf32>) {
  linalg.generic {indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>], iterator_types = ["parallel"]} ins(%x : memref<64xf32>) outs(%y : memref<64xf32>) {
  ^bb0(%a: f32, %o: f32):
    %p = math.powf %a, %a : f32
    linalg.yield %p : f32
  }
  linalg.generic {indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>], iterator_types = ["parallel"]} ins(%x : memref<64xf32>) outs(%y : memref<64xf32>) {
  ^bb0(%a: f32, %o: f32):
    %two = arith.constant 2.0 : f32
    %p = math.powf %a, %two : f32
    linalg.yield %p : f32
  }
  return
}

// What is updated in place is not updated twice: four points, then one.
// CHECK-LABEL: func.func @in_place
// CHECK:         vector.load %y[%{{.*}}] : memref<13xf32>, vector<8xf32>
// CHECK:         vector.load %y[%{{.*}}] : memref<13xf32>, vector<4xf32>
// CHECK:         memref.load %y[%{{.*}}] : memref<13xf32>
func.func @in_place(%y: memref<13xf32>) {
  linalg.generic {indexing_maps = [affine_map<(d0) -> (d0)>, affine_map<(d0) -> (d0)>], iterator_types = ["parallel"]} ins(%y : memref<13xf32>) outs(%y : memref<13xf32>) {
  ^bb0(%a: f32, %o: f32):
    %c = arith.addf %a, %a : f32
    linalg.yield %c : f32
  }
  return
}

// The last vector of a sum adds its last five lanes only.
// CHECK-LABEL: func.func @sum
// CHECK:         scf.for
// CHECK:         scf.yield
// CHECK:         %[[X:.*]] = vector.load %x[%{{.*}}] : memref<13xf32>, vector<8xf32>
// CHECK-NEXT:    %[[S:.*]] = arith.addf %[[ACC:.*]], %[[X]] : vector<8xf32>
// CHECK-NEXT:    %[[M:.*]] = arith.constant dense<[false, false, false, true, true, true, true, true]> : vector<8xi1>
// CHECK-NEXT:    %[[R:.*]] = arith.select %[[M]], %[[S]], %[[ACC]] : vector<8xi1>, vector<8xf32>
// CHECK-NEXT:    vector.reduction <add>, %[[R]] : vector<8xf32> into f32
func.func @sum(%x: memref<13xf32>, %y: memref<f32>) {
  linalg.generic {indexing_maps = [affine_map<(d0) -> (d0)>, affine_map<(d0) -> ()>], iterator_types = ["reduction"]} ins(%x : memref<13xf32>) outs(%y : memref<f32>) {
  ^bb0(%a: f32, %o: f32):
    %c = arith.addf %o, %a : f32
    linalg.yield %c : f32
  }
  return
}

// Channels are taken apart: vectors along the pixels, whose lanes are three elements apart. All channels
// of a few pixels are read from the same lines.
// CHECK-LABEL: func.func @channels
// CHECK:         scf.for %[[I:.*]] =
// CHECK:           scf.for %[[C:.*]] =
// CHECK:             %[[F:.*]] = memref.collapse_shape %x {{.*}} : memref<32x3xf32> into memref<96xf32>
// CHECK:             %[[R:.*]] = arith.muli %[[I]], %{{.*}} : index
// CHECK-NEXT:        %[[P:.*]] = arith.addi %[[R]], %[[C]] : index
// CHECK-NEXT:        vector.load %[[F]][%[[P]]] : memref<96xf32>, vector<8xf32>
// CHECK-COUNT-2:     vector.shuffle
// CHECK:             vector.store %{{.*}}, %y[%[[C]], %[[I]]]
func.func @channels(%x: memref<32x3xf32>, %y: memref<3x32xf32>) {
  linalg.generic {indexing_maps = [affine_map<(c, i) -> (i, c)>, affine_map<(c, i) -> (c, i)>], iterator_types = ["parallel", "parallel"]} ins(%x : memref<32x3xf32>) outs(%y : memref<3x32xf32>) {
  ^bb0(%a: f32, %o: f32):
    %c = arith.negf %a : f32
    linalg.yield %c : f32
  }
  return
}
