// RUN: xdsl-opt %s -p irees-erase-unread-buffers | filecheck %s

// The buffer, what is stored to it, and the loop that fills it, go; the sum that is read elsewhere
// stays.
// CHECK-LABEL: func.func @accumulator
// CHECK-NOT:     memref.alloc
// CHECK:         scf.for
// CHECK-NEXT:      memref.load %x
// CHECK-NEXT:      arith.addf
// CHECK-NEXT:      memref.store %{{.*}}, %y
// CHECK-NEXT:      scf.yield
// CHECK-NEXT:    }
// CHECK-NEXT:    return
func.func @accumulator(%x: memref<8xf32>, %y: memref<8xf32>) {
  %0 = arith.constant 0 : index
  %1 = arith.constant 1 : index
  %8 = arith.constant 8 : index
  %z = arith.constant 0.0 : f32
  %m = memref.alloc() : memref<2xf32>
  scf.for %i = %0 to %8 step %1 {
    %v = memref.subview %m[1] [1] [1] : memref<2xf32> to memref<1xf32, strided<[1], offset: 1>>
    memref.store %z, %v[%0] : memref<1xf32, strided<[1], offset: 1>>
  }
  %r = scf.for %i = %0 to %8 step %1 iter_args(%a = %z) -> (f32) {
    %e = memref.load %x[%i] : memref<8xf32>
    %s = arith.addf %a, %e : f32
    memref.store %s, %y[%i] : memref<8xf32>
    scf.yield %s : f32
  }
  memref.store %r, %m[%0] : memref<2xf32>
  return
}

// What is read through a view stays.
// CHECK-LABEL: func.func @read
// CHECK:         memref.alloc
// CHECK:         memref.store
func.func @read(%x: f32) -> f32 {
  %0 = arith.constant 0 : index
  %m = memref.alloc() : memref<2xf32>
  memref.store %x, %m[%0] : memref<2xf32>
  %v = memref.subview %m[0] [1] [1] : memref<2xf32> to memref<1xf32, strided<[1]>>
  %r = memref.load %v[%0] : memref<1xf32, strided<[1]>>
  return %r : f32
}

// A buffer that is copied or chosen is read by someone.
// CHECK-LABEL: func.func @escapes
// CHECK-COUNT-2: memref.store
func.func @escapes(%x: f32, %c: i1, %y: memref<2xf32>) -> memref<2xf32> {
  %0 = arith.constant 0 : index
  %m = memref.alloc() : memref<2xf32>
  memref.store %x, %m[%0] : memref<2xf32>
  memref.copy %m, %y : memref<2xf32> to memref<2xf32>
  %n = memref.alloc() : memref<2xf32>
  memref.store %x, %n[%0] : memref<2xf32>
  %r = arith.select %c, %n, %y : memref<2xf32>
  return %r : memref<2xf32>
}
