// RUN: xdsl-opt %s | xdsl-opt | filecheck %s
// RUN: xdsl-opt --print-op-generic %s | xdsl-opt | filecheck %s

// CHECK:      memref.prefetch %m[%i, %j], read, locality<3>, data : memref<8x16xf32>
// CHECK-NEXT: memref.prefetch %m[%i, %j], write, locality<0>, instr : memref<8x16xf32>
func.func @f(%m: memref<8x16xf32>, %i: index, %j: index) {
  memref.prefetch %m[%i, %j], read, locality<3>, data : memref<8x16xf32>
  memref.prefetch %m[%i, %j], write, locality<0>, instr : memref<8x16xf32>
  return
}
