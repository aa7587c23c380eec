// RUN: xdsl-opt %s | xdsl-opt | filecheck %s
// RUN: xdsl-opt --print-op-generic %s | xdsl-opt | filecheck %s

// CHECK:      memref.prefetch %m[%i, %j], read, locality<3>, data : memref<8x16xf32>
// CHECK-NEXT: memref.prefetch %m[%i, %j], write, locality<0>, instr : memref<8x16xf32>
func.func @f(%m: memref<8x16xf32>, %i: index, %j: index) {
  memref.prefetch %m[%i, %j], read, locality<3>, data : memref<8x16xf32>
  memref.prefetch %m[%i, %j], write, locality<0>, instr : memref<8x16xf32>
  return
}

// CHECK:      %[[OLD:.*]] = memref.atomic_rmw addi %v, %m[%i, %j] : (i32, memref<8x16xi32>) -> i32
// CHECK-NEXT: memref.atomic_rmw assign %[[OLD]], %m[%i, %j] {mark} : (i32, memref<8x16xi32>) -> i32
func.func @atomic(%m: memref<8x16xi32>, %i: index, %j: index, %v: i32) {
  %old = memref.atomic_rmw addi %v, %m[%i, %j] : (i32, memref<8x16xi32>) -> i32
  %gone = memref.atomic_rmw assign %old, %m[%i, %j] {mark} : (i32, memref<8x16xi32>) -> i32
  return
}
