// RUN: xdsl-opt %s | xdsl-opt | filecheck %s
// RUN: xdsl-opt --print-op-generic %s | xdsl-opt | filecheck %s

// CHECK-LABEL: func.func @pack_rows
// CHECK-NEXT:    panel.pack_rows %a[%i] rows %i by %j depth %i by %j into %p {pitch = 80 : i64, lanes = 64 : i64, group = 4 : i64, bias} : memref<?xi8> to memref<160xi8>
func.func @pack_rows(%a: memref<?xi8>, %p: memref<160xi8>, %i: index, %j: index) {
  panel.pack_rows %a[%i] rows %i by %j depth %i by %j into %p {pitch = 80 : i64, lanes = 64 : i64, group = 4 : i64, bias} : memref<?xi8> to memref<160xi8>
  return
}

// CHECK-LABEL: func.func @pack_columns
// CHECK-NEXT:    panel.pack_columns %b[%i] depth %i from %j in[%i, %j] by[%j, %i] columns from %j in[%i] by[%j] using %o into %p {vectors = 2 : i64, lanes = 8 : i64, group = 1 : i64} : memref<?xbf16> using memref<16xindex> to memref<64xf32>
// CHECK-NEXT:    panel.pack_columns %b[%i] depth %i from %j in[%i] by[%j] columns from %j valid %i of %j in[%i] by[%j] using %o into %p {vectors = 2 : i64, lanes = 8 : i64, group = 1 : i64} : memref<?xbf16> using memref<16xindex> to memref<64xf32>
func.func @pack_columns(%b: memref<?xbf16>, %p: memref<64xf32>, %o: memref<16xindex>, %i: index, %j: index) {
  panel.pack_columns %b[%i] depth %i from %j in [%i, %j] by [%j, %i] columns from %j in [%i] by [%j] using %o into %p {vectors = 2 : i64, lanes = 8 : i64, group = 1 : i64} : memref<?xbf16> using memref<16xindex> to memref<64xf32>
  panel.pack_columns %b[%i] depth %i from %j in [%i] by [%j] columns from %j valid %i of %j in [%i] by [%j] using %o into %p {vectors = 2 : i64, lanes = 8 : i64, group = 1 : i64} : memref<?xbf16> using memref<16xindex> to memref<64xf32>
  return
}

// CHECK-LABEL: func.func @micro_kernel
// CHECK-NEXT:    %{{.*}}, %{{.*}} = panel.micro_kernel %a[%i] by[%i, %j], %b[%i] by[%j, %i] apart %j trips[%i, %i] accs(%c, %c) {tile = array<i64: 8, 16>, layout = "plain", group = 1 : i64} : memref<?xi8>, memref<?xi8> -> vector<8xi32>, vector<8xi32>
// CHECK-NEXT:    %{{.*}} = panel.micro_kernel %a[%i] by[%i], %b[%i] by[%j] apart %j trips[%i] valid %j fill %c : vector<8xi32> following %b[%j] block %i : memref<?xi8> accs(%c) {tile = array<i64: 8, 16>, layout = "panels", group = 4 : i64, blocks = 4 : i64, unsigned_b} : memref<?xi8>, memref<?xi8> -> vector<8xi32>
func.func @micro_kernel(%a: memref<?xi8>, %b: memref<?xi8>, %c: vector<8xi32>, %i: index, %j: index) {
  %0, %1 = panel.micro_kernel %a[%i] by [%i, %j], %b[%i] by [%j, %i] apart %j trips [%i, %i] accs (%c, %c) {tile = array<i64: 8, 16>, layout = "plain", group = 1 : i64} : memref<?xi8>, memref<?xi8> -> vector<8xi32>, vector<8xi32>
  %2 = panel.micro_kernel %a[%i] by [%i], %b[%i] by [%j] apart %j trips [%i] valid %j fill %c : vector<8xi32> following %b[%j] block %i : memref<?xi8> accs (%c) {tile = array<i64: 8, 16>, layout = "panels", group = 4 : i64, blocks = 4 : i64, unsigned_b} : memref<?xi8>, memref<?xi8> -> vector<8xi32>
  return
}
