// RUN: xdsl-opt %s | xdsl-opt | filecheck %s
// RUN: xdsl-opt --print-op-generic %s | xdsl-opt | filecheck %s

// CHECK-LABEL: func.func @dispatch
// CHECK-NEXT:    stream.cmd.dispatch @k::@k(%x, %n, %y) : memref<?xf32>, index, memref<4xi8>
// CHECK-NEXT:    stream.cmd.dispatch @k::@k()
func.func @dispatch(%x: memref<?xf32>, %n: index, %y: memref<4xi8>) {
  stream.cmd.dispatch @k::@k(%x, %n, %y) : memref<?xf32>, index, memref<4xi8>
  stream.cmd.dispatch @k::@k() :
  return
}

// CHECK-LABEL: func.func @trace
// CHECK-NEXT:    stream.cmd.trace "k::k inputs" = [%x : memref<?xf32>, %y : memref<4xi8>]
// CHECK-NEXT:    stream.cmd.trace "k::k outputs" = [] attributes {note}
func.func @trace(%x: memref<?xf32>, %y: memref<4xi8>) {
  stream.cmd.trace "k::k inputs" = [%x : memref<?xf32>, %y : memref<4xi8>]
  stream.cmd.trace "k::k outputs" = [] attributes {note}
  return
}
