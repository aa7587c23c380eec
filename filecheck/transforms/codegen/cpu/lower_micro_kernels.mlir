// RUN: xdsl-opt %s -p irees-lower-micro-kernels | filecheck %s

// Two rows times two vectors: each step of K multiplies a broadcast element of A with a vector of B.
// CHECK-LABEL: func.func @block
// CHECK:         %[[SUMS:[0-9]+]], %{{.*}} = scf.for %[[K:.*]] = %{{.*}} to %k step %{{.*}} iter_args(%[[ACC:.*]] = %c, %{{.*}} = %c, %{{.*}} = %c, %{{.*}} = %c)
// CHECK:           %[[COLUMN:[0-9]+]] = vector.load %b[%{{.*}}] : memref<1024xf32>, vector<8xf32>
// CHECK:           vector.load %b
// CHECK:           %[[A:[0-9]+]] = memref.load %a
// CHECK-NEXT:      %[[SPLAT:[0-9]+]] = vector.broadcast %[[A]] : f32 to vector<8xf32>
// CHECK-NEXT:      %[[PRODUCT:[0-9]+]] = arith.mulf %[[SPLAT]], %[[COLUMN]] : vector<8xf32>
// CHECK-NEXT:      arith.addf %[[ACC]], %[[PRODUCT]] : vector<8xf32>
// CHECK-NOT:     memref.prefetch
// CHECK:         func.return %[[SUMS]]
func.func @block(%a: memref<?xf32>, %b: memref<1024xf32>, %c: vector<8xf32>, %k: index, %r0: index, %r1: index) -> vector<8xf32> {
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %lanes = arith.constant 8 : index
  %nr = arith.constant 16 : index
  %0, %1, %2, %3 = panel.micro_kernel %a[%r0, %r1] by [%one], %b[%zero] by [%nr] apart %lanes trips [%k] accs (%c, %c, %c, %c) {tile = array<i64: 2, 16>, layout = "packed", group = 1 : i64} : memref<?xf32>, memref<1024xf32> -> vector<8xf32>, vector<8xf32>, vector<8xf32>, vector<8xf32>
  return %0 : vector<8xf32>
}

// K is two loops. bf16 is widened, A before it is broadcast.
// CHECK-LABEL: func.func @two_loops
// CHECK:         scf.for
// CHECK:           scf.for
// CHECK:             arith.extf %{{.*}} : vector<8xbf16> to vector<8xf32>
// CHECK:             %[[A:[0-9]+]] = arith.extf %{{.*}} : bf16 to f32
// CHECK-NEXT:        vector.broadcast %[[A]] : f32 to vector<8xf32>
func.func @two_loops(%a: memref<?xbf16>, %b: memref<?xbf16>, %c: vector<8xf32>, %k: index, %r: index) -> vector<8xf32> {
  %one = arith.constant 1 : index
  %lanes = arith.constant 8 : index
  %0 = panel.micro_kernel %a[%r] by [%k, %one], %b[%r] by [%k, %lanes] apart %lanes trips [%k, %lanes] accs (%c) {tile = array<i64: 1, 8>, layout = "panels", group = 1 : i64} : memref<?xbf16>, memref<?xbf16> -> vector<8xf32>
  return %0 : vector<8xf32>
}

// Columns past the last valid one are not read.
// CHECK-LABEL: func.func @last_columns
// CHECK:         %[[SOME:[0-9]+]] = arith.minsi %valid
// CHECK:         %[[COUNT:[0-9]+]] = arith.maxsi %[[SOME]]
// CHECK:         scf.for %{{.*}} to %[[COUNT]] step %{{.*}} iter_args(%[[ROW:.*]] = %fill)
// CHECK:           memref.load %b
// CHECK:           vector.insert %{{.*}}, %[[ROW]]
func.func @last_columns(%a: memref<?xf32>, %b: memref<?xf32>, %c: vector<8xf32>, %k: index, %r: index, %valid: index, %fill: vector<8xf32>) -> vector<8xf32> {
  %one = arith.constant 1 : index
  %lanes = arith.constant 8 : index
  %0 = panel.micro_kernel %a[%r] by [%one], %b[%r] by [%lanes] apart %lanes trips [%k] valid %valid fill %fill : vector<8xf32> accs (%c) {tile = array<i64: 1, 8>, layout = "plain", group = 1 : i64} : memref<?xf32>, memref<?xf32> -> vector<8xf32>
  return %0 : vector<8xf32>
}

// Dot products of four i8 whose A is signed: the signs of a group are flipped before it is broadcast.
// CHECK-LABEL: func.func @dot
// CHECK:         %[[GROUP:[0-9]+]] = vector.load %a[%{{.*}}] : memref<?xi8>, vector<4xi8>
// CHECK-NEXT:    %[[WORD:[0-9]+]] = vector.bitcast %[[GROUP]] : vector<4xi8> to vector<1xi32>
// CHECK-NEXT:    vector.extract %[[WORD]][0]
// CHECK:         arith.xori %{{.*}} : i32
// CHECK:         vector.broadcast %{{.*}} : i32 to vector<16xi32>
// CHECK:         irees.dot %{{.*}}, %{{.*}}, %{{.*}} : vector<64xi8> -> vector<16xi32>
func.func @dot(%a: memref<?xi8>, %b: memref<1024xi8>, %c: vector<16xi32>, %k: index, %r: index) -> vector<16xi32> {
  %zero = arith.constant 0 : index
  %four = arith.constant 4 : index
  %chunk = arith.constant 64 : index
  %0 = panel.micro_kernel %a[%r] by [%four], %b[%zero] by [%chunk] apart %chunk trips [%k] accs (%c) {tile = array<i64: 1, 16>, layout = "packed", group = 4 : i64, bias} : memref<?xi8>, memref<1024xi8> -> vector<16xi32>
  return %0 : vector<16xi32>
}

// Dot products of two bf16.
// CHECK-LABEL: func.func @pairs
// CHECK:         x86vector.avx512.dot %{{.*}} : vector<32xbf16> -> vector<16xf32>
func.func @pairs(%a: memref<?xbf16>, %b: memref<1024xbf16>, %c: vector<16xf32>, %k: index, %r: index) -> vector<16xf32> {
  %zero = arith.constant 0 : index
  %two = arith.constant 2 : index
  %chunk = arith.constant 32 : index
  %0 = panel.micro_kernel %a[%r] by [%two], %b[%zero] by [%chunk] apart %chunk trips [%k] accs (%c) {tile = array<i64: 1, 16>, layout = "packed", group = 2 : i64} : memref<?xbf16>, memref<1024xbf16> -> vector<16xf32>
  return %0 : vector<16xf32>
}

// Each of four blocks of rows prefetches a quarter of the next panel into the L2 cache.
// CHECK-LABEL: func.func @next_panel
// CHECK:         %[[SHARE:[0-9]+]] = arith.muli %block, %{{.*}} : index
// CHECK-NEXT:    %[[START:[0-9]+]] = arith.addi %next, %[[SHARE]] : index
// CHECK:         scf.for
// CHECK:           arith.addi %[[START]], %{{.*}} : index
// CHECK-NEXT:      memref.prefetch %b[%{{.*}}], read, locality<2>, data
// CHECK-NOT:       memref.prefetch
func.func @next_panel(%a: memref<?xf32>, %b: memref<?xf32>, %c: vector<16xf32>, %r: index, %next: index, %block: index) -> vector<16xf32> {
  %one = arith.constant 1 : index
  %k = arith.constant 64 : index
  %lanes = arith.constant 16 : index
  %0 = panel.micro_kernel %a[%r] by [%one], %b[%r] by [%lanes] apart %lanes trips [%k] following %b[%next] block %block : memref<?xf32> accs (%c) {tile = array<i64: 8, 16>, layout = "panels", group = 1 : i64, blocks = 4 : i64} : memref<?xf32>, memref<?xf32> -> vector<16xf32>
  return %0 : vector<16xf32>
}

// A long panel exceeds the L1 cache: its lines are prefetched some steps ahead.
// CHECK-LABEL: func.func @long_panel
// CHECK:         scf.for
// CHECK:           memref.prefetch %b[%{{.*}}], read, locality<3>, data
// CHECK:           vector.load %b
func.func @long_panel(%a: memref<?xf32>, %b: memref<?xf32>, %c: vector<16xf32>, %r: index) -> vector<16xf32> {
  %one = arith.constant 1 : index
  %k = arith.constant 4096 : index
  %lanes = arith.constant 16 : index
  %0 = panel.micro_kernel %a[%r] by [%one], %b[%r] by [%lanes] apart %lanes trips [%k] accs (%c) {tile = array<i64: 8, 16>, layout = "panels", group = 1 : i64} : memref<?xf32>, memref<?xf32> -> vector<16xf32>
  return %0 : vector<16xf32>
}

// Other arithmetic on vectors stays.
// CHECK-LABEL: func.func @no_micro_kernel
// CHECK-NEXT:    arith.mulf
func.func @no_micro_kernel(%a: vector<8xf32>) -> vector<8xf32> {
  %0 = arith.mulf %a, %a : vector<8xf32>
  return %0 : vector<8xf32>
}
