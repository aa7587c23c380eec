// RUN: xdsl-opt %s --verify-diagnostics --split-input-file | filecheck %s

func.func @narrow(%a: memref<?xf32>, %p: memref<160xbf16>, %i: index) {
  panel.pack_rows %a[%i] rows %i by %i depth %i by %i into %p {pitch = 80 : i64, lanes = 8 : i64, group = 1 : i64} : memref<?xf32> to memref<160xbf16>
  return
}
// CHECK: f32 cannot be widened to bf16

// -----

func.func @kinds(%a: memref<?xi8>, %p: memref<160xf32>, %i: index) {
  panel.pack_rows %a[%i] rows %i by %i depth %i by %i into %p {pitch = 80 : i64, lanes = 8 : i64, group = 1 : i64} : memref<?xi8> to memref<160xf32>
  return
}
// CHECK: i8 cannot be widened to f32

// -----

func.func @loops(%b: memref<?xf32>, %p: memref<64xf32>, %o: memref<16xindex>, %i: index) {
  panel.pack_columns %b[%i] depth %i from %i in [%i, %i] by [%i] columns from %i in [%i] by [%i] using %o into %p {vectors = 2 : i64, lanes = 8 : i64, group = 1 : i64} : memref<?xf32> using memref<16xindex> to memref<64xf32>
  return
}
// CHECK: expected a size and a step for each loop

// -----

func.func @rows(%a: memref<?xf32>, %c: vector<8xf32>, %i: index) {
  %0 = panel.micro_kernel %a[%i, %i] by [%i], %a[%i] by [%i] apart %i trips [%i] accs (%c) {tile = array<i64: 8, 16>, layout = "plain", group = 1 : i64} : memref<?xf32>, memref<?xf32> -> vector<8xf32>
  return
}
// CHECK: expected as many equal vectors for each row

// -----

func.func @steps(%a: memref<?xf32>, %c: vector<8xf32>, %i: index) {
  %0 = panel.micro_kernel %a[%i] by [%i, %i], %a[%i] by [%i] apart %i trips [%i] accs (%c) {tile = array<i64: 8, 16>, layout = "plain", group = 1 : i64} : memref<?xf32>, memref<?xf32> -> vector<8xf32>
  return
}
// CHECK: expected a step in A and in B for each loop

// -----

func.func @layout(%a: memref<?xf32>, %c: vector<8xf32>, %i: index) {
  %0 = panel.micro_kernel %a[%i] by [%i], %a[%i] by [%i] apart %i trips [%i] accs (%c) {tile = array<i64: 8, 16>, layout = "odd", group = 1 : i64} : memref<?xf32>, memref<?xf32> -> vector<8xf32>
  return
}
// CHECK: layout is one of plain, streamed, packed, panels, blocks
