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
