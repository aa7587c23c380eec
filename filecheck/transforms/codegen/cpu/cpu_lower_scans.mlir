// RUN: xdsl-opt %s -p 'irees-assign-target,irees-cpu-lower-scans' | filecheck %s

// Adjacent columns are contiguous: the scan is a loop over structured ops on rows.
// CHECK-LABEL: func.func @columns
// CHECK:         %[[X0:.*]] = memref.subview %x[0, 0] [1, 8] [1, 1] : memref<5x8xf32> to memref<8xf32
// CHECK-NEXT:    %[[Y0:.*]] = memref.subview %y[0, 0]
// CHECK-NEXT:    linalg.generic {{.*}} ins(%[[X0]] : {{.*}}) outs(%a, %[[Y0]]
// CHECK-NEXT:    ^bb0(%[[E:.*]]: f32, %{{.*}}: f32, %{{.*}}: f32):
// CHECK-NEXT:      linalg.yield %[[E]], %[[E]] : f32, f32
// CHECK:         scf.for %[[I:.*]] = %{{.*}} to %{{.*}} step
// CHECK-NEXT:      %[[X:.*]] = memref.subview %x[%[[I]], 0]
// CHECK-NEXT:      %[[Y:.*]] = memref.subview %y[%[[I]], 0]
// CHECK-NEXT:      linalg.generic {{.*}} ins(%[[X]] : {{.*}}) outs(%a, %[[Y]]
// CHECK-NEXT:      ^bb0(%[[E:.*]]: f32, %[[B:.*]]: f32, %{{.*}}: f32):
// CHECK-NEXT:        %[[S:.*]] = arith.addf %[[B]], %[[E]] : f32
// CHECK-NEXT:        linalg.yield %[[S]], %[[S]] : f32, f32
func.func @columns(%x: memref<5x8xf32>, %y: memref<5x8xf32>, %a: memref<8xf32>) {
  iree_linalg_ext.scan dimension(0) inclusive(true) ins(%x : memref<5x8xf32>) outs(%y, %a : memref<5x8xf32>, memref<8xf32>) {
  ^bb0(%l: f32, %r: f32):
    %s = arith.addf %l, %r : f32
    iree_linalg_ext.yield %s : f32
  }
  return
}

// An exclusive scan shows the running value before it takes the element, and leaves the last element.
// Sizes may be dynamic.
// CHECK-LABEL: func.func @exclusive
// CHECK:         scf.for %[[B:.*]] = %{{.*}} to %{{.*}} step
// CHECK:           %[[N:.*]] = memref.dim %x, %{{.*}} : memref<?x?x?xi32>
// CHECK:           scf.if
// CHECK:             %[[LAST:.*]] = arith.subi %[[N]], %{{.*}} : index
// CHECK:           scf.for %[[I:.*]] = %{{.*}} to %[[LAST]] step
// CHECK:             memref.subview %x[%[[B]], %[[I]], 0]
// CHECK:             memref.subview %a[%[[B]], 0]
// CHECK:             ^bb0(%[[E:.*]]: i32, %[[R:.*]]: i32, %{{.*}}: i32):
// CHECK-NEXT:          %[[S:.*]] = arith.muli %[[R]], %[[E]] : i32
// CHECK-NEXT:          linalg.yield %[[S]], %[[R]] : i32, i32
// CHECK:           memref.subview %x[%[[B]], %[[LAST]], 0]
// CHECK:           ^bb0(%{{.*}}: i32, %[[R:.*]]: i32, %{{.*}}: i32):
// CHECK-NEXT:        linalg.yield %[[R]], %[[R]] : i32, i32
func.func @exclusive(%x: memref<?x?x?xi32>, %y: memref<?x?x?xi32>, %a: memref<?x?xi32>) {
  iree_linalg_ext.scan dimension(1) inclusive(false) ins(%x : memref<?x?x?xi32>) outs(%y, %a : memref<?x?x?xi32>, memref<?x?xi32>) {
  ^bb0(%l: i32, %r: i32):
    %s = arith.muli %l, %r : i32
    iree_linalg_ext.yield %s : i32
  }
  return
}

// What makes the input and what reads the output are fused: no buffer of f64 is left.
// CHECK-LABEL: func.func @fused
// CHECK-NOT:     memref.alloc() : memref<5x8xf64>
// CHECK:         scf.for
// CHECK:           ^bb0(%[[E:.*]]: f32, %[[B:.*]]: f64, %{{.*}}: f32):
// CHECK-NEXT:        %[[W:.*]] = arith.extf %[[E]] : f32 to f64
// CHECK-NEXT:        %[[S:.*]] = arith.addf %[[B]], %[[W]] : f64
// CHECK-NEXT:        %[[N:.*]] = arith.truncf %[[S]] : f64 to f32
// CHECK-NEXT:        linalg.yield %[[S]], %[[N]] : f64, f32
func.func @fused(%x: memref<5x8xf32>, %z: memref<5x8xf32>) {
  %w = memref.alloc() : memref<5x8xf64>
  %y = memref.alloc() : memref<5x8xf64>
  %a = memref.alloc() : memref<8xf64>
  linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i, j)>], iterator_types = ["parallel", "parallel"]} ins(%x : memref<5x8xf32>) outs(%w : memref<5x8xf64>) {
  ^bb0(%e: f32, %o: f64):
    %v = arith.extf %e : f32 to f64
    linalg.yield %v : f64
  }
  iree_linalg_ext.scan dimension(0) inclusive(true) ins(%w : memref<5x8xf64>) outs(%y, %a : memref<5x8xf64>, memref<8xf64>) {
  ^bb0(%l: f64, %r: f64):
    %s = arith.addf %l, %r : f64
    iree_linalg_ext.yield %s : f64
  }
  linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i, j)>], iterator_types = ["parallel", "parallel"]} ins(%y : memref<5x8xf64>) outs(%z : memref<5x8xf32>) {
  ^bb0(%e: f64, %o: f32):
    %v = arith.truncf %e : f64 to f32
    linalg.yield %v : f32
  }
  return
}

// The output has another reader: it is stored, beside what the fused one makes of it.
// CHECK-LABEL: func.func @kept
// CHECK:         scf.for
// CHECK:           linalg.generic {{.*}} outs(%a, %{{.*}}, %{{.*}} :
// CHECK:             linalg.yield %[[S:.*]], %[[S]], %{{.*}} : f32, f32, f32
// CHECK:         linalg.generic {{.*}} ins(%y :
func.func @kept(%x: memref<5x8xf32>, %a: memref<8xf32>, %z: memref<5x8xf32>, %t: memref<8x5xf32>) {
  %y = memref.alloc() : memref<5x8xf32>
  iree_linalg_ext.scan dimension(0) inclusive(true) ins(%x : memref<5x8xf32>) outs(%y, %a : memref<5x8xf32>, memref<8xf32>) {
  ^bb0(%l: f32, %r: f32):
    %s = arith.addf %l, %r : f32
    iree_linalg_ext.yield %s : f32
  }
  linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i, j)>], iterator_types = ["parallel", "parallel"]} ins(%y : memref<5x8xf32>) outs(%z : memref<5x8xf32>) {
  ^bb0(%e: f32, %o: f32):
    %v = arith.negf %e : f32
    linalg.yield %v : f32
  }
  linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (j, i)>], iterator_types = ["parallel", "parallel"]} ins(%y : memref<5x8xf32>) outs(%t : memref<8x5xf32>) {
  ^bb0(%e: f32, %o: f32):
    linalg.yield %e : f32
  }
  return
}

// The reader writes what the scan reads: it stays behind the scan.
// CHECK-LABEL: func.func @in_place
// CHECK:         scf.for
// CHECK:           linalg.yield %[[S:.*]], %[[S]] : f32, f32
// CHECK:         linalg.generic {{.*}} ins(%y : {{.*}}) outs(%x :
func.func @in_place(%x: memref<5x8xf32>, %a: memref<8xf32>) {
  %y = memref.alloc() : memref<5x8xf32>
  iree_linalg_ext.scan dimension(0) inclusive(true) ins(%x : memref<5x8xf32>) outs(%y, %a : memref<5x8xf32>, memref<8xf32>) {
  ^bb0(%l: f32, %r: f32):
    %s = arith.addf %l, %r : f32
    iree_linalg_ext.yield %s : f32
  }
  linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i, j)>], iterator_types = ["parallel", "parallel"]} ins(%y : memref<5x8xf32>) outs(%x : memref<5x8xf32>) {
  ^bb0(%e: f32, %o: f32):
    %v = arith.negf %e : f32
    linalg.yield %v : f32
  }
  return
}

// Elements of a row are contiguous: four rows are scanned in one loop, then one by one.
// CHECK-LABEL: func.func @rows
// CHECK:         scf.for %[[R:.*]] = %{{.*}} to %{{.*}} step
// CHECK-COUNT-4:   memref.store
// CHECK:           scf.for %[[I:.*]] = {{.*}} -> (f32, f32, f32, f32) {
// CHECK-COUNT-4:     arith.addf
// CHECK-COUNT-4:     memref.store %{{.*}}, %y
// CHECK:           memref.store %{{.*}}, %a[%[[R]]]
// CHECK:         scf.for %[[R:.*]] =
// CHECK:           scf.for %[[I:.*]] = {{.*}} -> (f32) {
func.func @rows(%x: memref<6x9xf32>, %y: memref<6x9xf32>, %a: memref<6xf32>) {
  iree_linalg_ext.scan dimension(1) inclusive(true) ins(%x : memref<6x9xf32>) outs(%y, %a : memref<6x9xf32>, memref<6xf32>) {
  ^bb0(%l: f32, %r: f32):
    %s = arith.addf %l, %r : f32
    iree_linalg_ext.yield %s : f32
  }
  return
}

// The combiner calls a math function: the running values of four rows are the lanes of a vector.
// CHECK-LABEL: func.func @rows_in_lanes
// CHECK:         %[[START:.*]] = vector.insert %{{.*}}, %{{.*}}[3] : f32 into vector<4xf32>
// CHECK:         scf.for {{.*}} iter_args(%[[A:.*]] = %[[START]]) -> (vector<4xf32>) {
// CHECK-COUNT-4:   memref.load %x
// CHECK:           %[[E:.*]] = math.exp %[[A]] : vector<4xf32>
// CHECK:           vector.extract %{{.*}}[0]
// CHECK-COUNT-4:   memref.store %{{.*}}, %y
// CHECK:           scf.yield %{{.*}} : vector<4xf32>
func.func @rows_in_lanes(%x: memref<4x9xf32>, %y: memref<4x9xf32>, %z: memref<4xf32>) {
  iree_linalg_ext.scan dimension(1) inclusive(true) ins(%x : memref<4x9xf32>) outs(%y, %z : memref<4x9xf32>, memref<4xf32>) {
  ^bb0(%a: f32, %b: f32):
    %p = math.exp %a : f32
    %s = arith.addf %p, %b : f32
    iree_linalg_ext.yield %s : f32
  }
  return
}

// The logarithm of a sum of exponentials: a chunk has one shift, and only the sums are a chain. The
// chunk takes the combiner if its maximum is far from the running value. The rest of a row is a
// shorter chunk.
// CHECK-LABEL: func.func @log_sums
// CHECK:         memref.store %{{.*}}, %a[%[[R:.*]]] : memref<4xf32>
// CHECK:         scf.for %[[I:.*]] = %{{.*}} to %{{.*}} step
// CHECK:           %[[X:.*]] = memref.subview %x[%{{.*}}, %[[I]]] [4, 128] [1, 1]
// CHECK:           linalg.generic {{.*}}"reduction"]} ins(%[[X]] : {{.*}}) outs(%[[TOPS:.*]] : memref<4xf32>)
// CHECK:             arith.maximumf
// CHECK-COUNT-4:   arith.cmpf olt
// CHECK:           scf.if
// CHECK:             linalg.generic {{.*}} ins(%[[X]], %[[TOPS]] : {{.*}}) outs(%[[SUMS:.*]] :
// CHECK:               math.exp
// CHECK:             scf.for {{.*}} -> (f32, f32, f32, f32) {
// CHECK-COUNT-4:       arith.addf
// CHECK:             linalg.generic {{.*}} ins(%[[SUMS]], %[[TOPS]] : {{.*}}) outs(%{{.*}} :
// CHECK:               math.log
// CHECK:           } else {
// CHECK-COUNT-4:     math.log1p
// CHECK:         memref.subview %x[%{{.*}}, 256] [4, 44] [1, 1]
func.func @log_sums(%x: memref<4x300xf32>, %y: memref<4x300xf32>, %a: memref<4xf32>) {
  iree_linalg_ext.scan dimension(1) inclusive(true) ins(%x : memref<4x300xf32>) outs(%y, %a : memref<4x300xf32>, memref<4xf32>) {
  ^bb0(%l: f32, %r: f32):
    %top = arith.maximumf %l, %r : f32
    %d = arith.subf %l, %r : f32
    %m = math.absf %d : f32
    %n = arith.negf %m : f32
    %e = math.exp %n : f32
    %g = math.log1p %e : f32
    %s = arith.addf %top, %g : f32
    iree_linalg_ext.yield %s : f32
  }
  return
}

// A select that does not only keep equal infinities is another combiner.
// CHECK-LABEL: func.func @no_log_sums
// CHECK-NOT:     math.log %
// CHECK:         math.log1p
func.func @no_log_sums(%x: memref<4x300xf32>, %y: memref<4x300xf32>, %a: memref<4xf32>) {
  iree_linalg_ext.scan dimension(1) inclusive(true) ins(%x : memref<4x300xf32>) outs(%y, %a : memref<4x300xf32>, memref<4xf32>) {
  ^bb0(%l: f32, %r: f32):
    %top = arith.maximumf %l, %r : f32
    %d = arith.subf %l, %r : f32
    %m = math.absf %d : f32
    %n = arith.negf %m : f32
    %e = math.exp %n : f32
    %g = math.log1p %e : f32
    %s = arith.addf %top, %g : f32
    %c = arith.cmpf oeq, %l, %r : f32
    %t = arith.select %c, %l, %s : f32
    iree_linalg_ext.yield %t : f32
  }
  return
}

// What makes the input may be a fill, which has no inputs.
// CHECK-LABEL: func.func @filled
// CHECK-NOT:     memref.alloc
// CHECK:         linalg.generic
// CHECK-NEXT:    ^bb0(%[[B:.*]]: f32, %{{.*}}: f32):
// CHECK-NEXT:      %[[ONE:.*]] = arith.constant 1.000000e+00 : f32
// CHECK-NEXT:      linalg.yield %[[ONE]], %[[ONE]] : f32, f32
func.func @filled(%y: memref<5x8xf32>, %a: memref<8xf32>) {
  %x = memref.alloc() : memref<5x8xf32>
  linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>], iterator_types = ["parallel", "parallel"]} outs(%x : memref<5x8xf32>) {
  ^bb0(%o: f32):
    %one = arith.constant 1.0 : f32
    linalg.yield %one : f32
  }
  iree_linalg_ext.scan dimension(0) inclusive(true) ins(%x : memref<5x8xf32>) outs(%y, %a : memref<5x8xf32>, memref<8xf32>) {
  ^bb0(%l: f32, %r: f32):
    %s = arith.addf %l, %r : f32
    iree_linalg_ext.yield %s : f32
  }
  return
}
