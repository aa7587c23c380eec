// RUN: xdsl-opt %s -p irees-pack-panels | filecheck %s

// Columns of B are contiguous: each row of the panel is two vectors.
// CHECK-LABEL: func.func @columns
// CHECK:         scf.for %[[K:.*]] = %{{.*}} to %depth step %{{.*}} {
// CHECK:           %[[X:.*]] = vector.load %b[%{{.*}}] : memref<?xf32>, vector<8xf32>
// CHECK-NEXT:      vector.store %[[X]], %p[%{{.*}}] : memref<64xf32>, vector<8xf32>
// CHECK:           vector.load %b
// CHECK:           vector.store %{{.*}}, %p
// CHECK-NOT:     panel.pack_columns
func.func @columns(%b: memref<?xf32>, %p: memref<64xf32>, %o: memref<16xindex>, %base: index, %depth: index, %k: index, %j: index) {
  %one = arith.constant 1 : index
  %n = arith.constant 48 : index
  panel.pack_columns %b[%base] depth %depth from %k in [%depth] by [%n] columns from %j in [%n] by [%one] using %o into %p {vectors = 2 : i64, lanes = 8 : i64, group = 1 : i64} : memref<?xf32> using memref<16xindex> to memref<64xf32>
  return
}

// Rows of an image are 9 columns apart, of which 7 are packed: a vector that crosses the end of a row
// is copied element by element. bf16 is widened.
// CHECK-LABEL: func.func @image
// CHECK:         scf.for
// CHECK:           memref.store %{{.*}}, %o
// CHECK:         %[[NEAR:.*]] = scf.for
// CHECK:           arith.cmpi eq
// CHECK:         scf.if %[[NEAR]] {
// CHECK:           %[[X:.*]] = vector.load %b[%{{.*}}] : memref<?xbf16>, vector<8xbf16>
// CHECK-NEXT:      %[[Y:.*]] = arith.extf %[[X]] : vector<8xbf16> to vector<8xf32>
// CHECK-NEXT:      vector.store %[[Y]], %p
// CHECK:         } else {
// CHECK:           memref.load %o
// CHECK:           arith.extf %{{.*}} : bf16 to f32
// CHECK:           memref.store %{{.*}}, %p
func.func @image(%b: memref<?xbf16>, %p: memref<64xf32>, %o: memref<8xindex>, %base: index, %depth: index, %k: index, %j: index) {
  %one = arith.constant 1 : index
  %seven = arith.constant 7 : index
  %nine = arith.constant 9 : index
  panel.pack_columns %b[%base] depth %depth from %k in [%depth] by [%nine] columns from %j in [%seven, %seven] by [%nine, %one] using %o into %p {vectors = 1 : i64, lanes = 8 : i64, group = 1 : i64} : memref<?xbf16> using memref<8xindex> to memref<64xf32>
  return
}

// Rows of an image are 20 columns apart, of which 16 are packed: they are runs of two vectors, so no
// vector crosses the end of a row, and no offsets are stored.
// CHECK-LABEL: func.func @runs
// CHECK-NOT:     memref.store
// CHECK:         vector.load %b[%{{.*}}] : memref<?xf32>, vector<8xf32>
// CHECK-NEXT:    vector.store %{{.*}}, %p
// CHECK-NOT:     scf.if
// CHECK:         return
func.func @runs(%b: memref<?xf32>, %p: memref<64xf32>, %o: memref<8xindex>, %base: index, %depth: index, %k: index, %i: index) {
  %one = arith.constant 1 : index
  %eight = arith.constant 8 : index
  %sixteen = arith.constant 16 : index
  %twenty = arith.constant 20 : index
  %j = arith.muli %i, %eight : index
  panel.pack_columns %b[%base] depth %depth from %k in [%depth] by [%twenty] columns from %j in [%sixteen, %sixteen] by [%twenty, %one] using %o into %p {vectors = 1 : i64, lanes = 8 : i64, group = 1 : i64} : memref<?xf32> using memref<8xindex> to memref<64xf32>
  return
}

// The first column is not known to be that of a whole vector.
// CHECK-LABEL: func.func @runs_from_anywhere
// CHECK:         memref.store %{{.*}}, %o
func.func @runs_from_anywhere(%b: memref<?xf32>, %p: memref<64xf32>, %o: memref<8xindex>, %base: index, %depth: index, %k: index, %j: index) {
  %one = arith.constant 1 : index
  %sixteen = arith.constant 16 : index
  %twenty = arith.constant 20 : index
  panel.pack_columns %b[%base] depth %depth from %k in [%depth] by [%twenty] columns from %j in [%sixteen, %sixteen] by [%twenty, %one] using %o into %p {vectors = 1 : i64, lanes = 8 : i64, group = 1 : i64} : memref<?xf32> using memref<8xindex> to memref<64xf32>
  return
}

// The last panel is not full: its columns past the last one repeat that.
// CHECK-LABEL: func.func @last_columns
// CHECK:         %[[LAST:.*]] = arith.subi %n, %{{.*}} : index
// CHECK-NEXT:    arith.minsi %{{.*}}, %[[LAST]] : index
// CHECK:         memref.store %{{.*}}, %o
func.func @last_columns(%b: memref<?xf32>, %p: memref<64xf32>, %o: memref<8xindex>, %base: index, %depth: index, %k: index, %j: index, %left: index, %n: index) {
  %one = arith.constant 1 : index
  panel.pack_columns %b[%base] depth %depth from %k in [%depth] by [%n] columns from %j valid %left of %n in [%n] by [%one] using %o into %p {vectors = 1 : i64, lanes = 8 : i64, group = 1 : i64} : memref<?xf32> using memref<8xindex> to memref<64xf32>
  return
}

// Four rows of i8 are interleaved to groups of K, and a last group of three is padded.
// CHECK-LABEL: func.func @groups
// CHECK:         vector.load %b[%{{.*}}] : memref<?xi8>, vector<16xi8>
// CHECK:         vector.shuffle %{{.*}} [0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23] : vector<16xi8>, vector<16xi8>
// CHECK:         vector.bitcast %{{.*}} : vector<16xi8> to vector<8xi16>
// CHECK:         vector.store %{{.*}}, %p
// CHECK:         arith.constant 0 : i8
// CHECK:         memref.store %{{.*}}, %p
func.func @groups(%b: memref<?xi8>, %p: memref<1024xi8>, %o: memref<16xindex>, %base: index, %j: index) {
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %depth = arith.constant 63 : index
  %n = arith.constant 48 : index
  panel.pack_columns %b[%base] depth %depth from %zero in [%depth] by [%n] columns from %j in [%n] by [%one] using %o into %p {vectors = 1 : i64, lanes = 16 : i64, group = 4 : i64} : memref<?xi8> using memref<16xindex> to memref<1024xi8>
  return
}

// B is contiguous along K: tiles of 32-bit words are transposed in registers.
// CHECK-LABEL: func.func @words
// CHECK:         vector.bitcast %{{.*}} : vector<32xbf16> to vector<16xi32>
// CHECK:         vector.shuffle %{{.*}} : vector<16xi32>, vector<16xi32>
// CHECK:         vector.bitcast %{{.*}} : vector<16xi32> to vector<32xbf16>
// CHECK-NEXT:    vector.store %{{.*}}, %p
func.func @words(%b: memref<?xbf16>, %p: memref<1024xbf16>, %o: memref<16xindex>, %base: index, %j: index) {
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %depth = arith.constant 64 : index
  %n = arith.constant 48 : index
  panel.pack_columns %b[%base] depth %depth from %zero in [%depth] by [%one] columns from %j in [%n] by [%depth] using %o into %p {vectors = 1 : i64, lanes = 16 : i64, group = 2 : i64} : memref<?xbf16> using memref<16xindex> to memref<1024xbf16>
  return
}

// So are tiles of f32; what is left of K is copied element by element.
// CHECK-LABEL: func.func @along_k
// CHECK:         vector.load %b[%{{.*}}] : memref<?xf32>, vector<8xf32>
// CHECK:         vector.shuffle %{{.*}} : vector<8xf32>, vector<8xf32>
// CHECK:         vector.store %{{.*}}, %p
// CHECK:         memref.load %b
// CHECK:         memref.store %{{.*}}, %p
func.func @along_k(%b: memref<?xf32>, %p: memref<160xf32>, %o: memref<8xindex>, %base: index, %j: index) {
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %depth = arith.constant 20 : index
  %n = arith.constant 48 : index
  panel.pack_columns %b[%base] depth %depth from %zero in [%depth] by [%one] columns from %j in [%n] by [%depth] using %o into %p {vectors = 1 : i64, lanes = 8 : i64, group = 1 : i64} : memref<?xf32> using memref<8xindex> to memref<160xf32>
  return
}

// 128 is added to signed i8, and rows are padded to whole groups.
// CHECK-LABEL: func.func @biased_rows
// CHECK:         arith.xori %{{.*}}, %{{.*}} : vector<64xi8>
// CHECK:         arith.constant -128 : i8
// CHECK:         arith.xori %{{.*}} : i8
// CHECK:         arith.constant 0 : i8
// CHECK:         memref.store %{{.*}}, %p
func.func @biased_rows(%a: memref<?xi8>, %p: memref<640xi8>, %base: index, %depth: index) {
  %one = arith.constant 1 : index
  %rows = arith.constant 8 : index
  %across = arith.constant 1024 : index
  panel.pack_rows %a[%base] rows %rows by %across depth %depth by %one into %p {pitch = 80 : i64, lanes = 64 : i64, group = 4 : i64, bias} : memref<?xi8> to memref<640xi8>
  return
}

// A copy that is not into a panel stays.
// CHECK-LABEL: func.func @no_panel
// CHECK-NEXT:    memref.copy
func.func @no_panel(%a: memref<8xf32>, %p: memref<8xf32>) {
  "memref.copy"(%a, %p) : (memref<8xf32>, memref<8xf32>) -> ()
  return
}
