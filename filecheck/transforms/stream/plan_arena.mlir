// RUN: xdsl-opt %s -p irees-plan-arena | filecheck %s

// Two temporaries that live at once lie beside each other; the result stays a buffer of its own.
// CHECK-LABEL: func.func @chain
// CHECK-NEXT:    %[[ARENA:.*]] = memref.alloc() : memref<2048xi8>
// CHECK-NEXT:    %[[AT:.*]] = arith.constant 0 : index
// CHECK-NEXT:    memref.view %[[ARENA]][%[[AT]]][] : memref<2048xi8> to memref<256xf32>
// CHECK:         %[[AT:.*]] = arith.constant 1024 : index
// CHECK-NEXT:    memref.view %[[ARENA]][%[[AT]]][] : memref<2048xi8> to memref<256xf32>
// CHECK:         %[[R:.*]] = memref.alloc() : memref<256xf32>
// CHECK:         func.return %[[R]]
func.func @chain(%x: memref<256xf32>) -> memref<256xf32> {
  %a = memref.alloc() : memref<256xf32>
  stream.cmd.dispatch @f::@f(%x, %a) : memref<256xf32>, memref<256xf32>
  %b = memref.alloc() : memref<256xf32>
  stream.cmd.dispatch @f::@f(%a, %b) : memref<256xf32>, memref<256xf32>
  %r = memref.alloc() : memref<256xf32>
  stream.cmd.dispatch @f::@f(%b, %r) : memref<256xf32>, memref<256xf32>
  return %r : memref<256xf32>
}

// The third temporary takes the place of the first, which is dead by then.
// CHECK-LABEL: func.func @reuse
// CHECK:         memref.alloc() : memref<2048xi8>
// CHECK:         arith.constant 0 : index
// CHECK:         arith.constant 1024 : index
// CHECK:         %[[AT:.*]] = arith.constant 0 : index
// CHECK-NEXT:    memref.view %{{.*}}[%[[AT]]][] : memref<2048xi8> to memref<256xf32>
func.func @reuse(%x: memref<256xf32>, %r: memref<256xf32>) {
  %a = memref.alloc() : memref<256xf32>
  stream.cmd.dispatch @f::@f(%x, %a) : memref<256xf32>, memref<256xf32>
  %b = memref.alloc() : memref<256xf32>
  stream.cmd.dispatch @f::@f(%a, %b) : memref<256xf32>, memref<256xf32>
  %c = memref.alloc() : memref<256xf32>
  stream.cmd.dispatch @f::@f(%b, %c) : memref<256xf32>, memref<256xf32>
  stream.cmd.dispatch @f::@f(%c, %r) : memref<256xf32>, memref<256xf32>
  return
}

// A use of a view is a use of the buffer: the first is not dead before the last dispatch.
// CHECK-LABEL: func.func @no_reuse_of_viewed
// CHECK:         memref.alloc() : memref<128xi8>
// CHECK:         arith.constant 0 : index
// CHECK:         arith.constant 64 : index
func.func @no_reuse_of_viewed(%x: memref<16xf32>, %r: memref<16xf32>) {
  %a = memref.alloc() : memref<16xf32>
  stream.cmd.dispatch @f::@f(%x, %a) : memref<16xf32>, memref<16xf32>
  %v = memref.reinterpret_cast %a to offset: [0], sizes: [4, 4], strides: [4, 1] : memref<16xf32> to memref<4x4xf32>
  %b = memref.alloc() : memref<16xf32>
  stream.cmd.dispatch @f::@f(%x, %b) : memref<16xf32>, memref<16xf32>
  stream.cmd.dispatch @f::@f(%v, %b, %r) : memref<4x4xf32>, memref<16xf32>, memref<16xf32>
  return
}

// Dynamic ones follow the static ones, with sizes that are known at the top and fit into memory.
// CHECK-LABEL: func.func @dynamic
// CHECK:         %[[N:.*]] = memref.dim %x
// CHECK:         %[[WIDE:.*]] = arith.mulf %{{.*}} : f64
// CHECK:         %[[FITS:.*]] = arith.cmpf olt, %[[WIDE]], %{{.*}} : f64
// CHECK-NEXT:    cf.assert %[[FITS]], "the temporaries do not fit into memory"
// CHECK:         %[[BYTES:.*]] = arith.muli %[[N]], %{{.*}} : index
// CHECK:         arith.divui
// CHECK:         %[[PADDED:.*]] = arith.muli
// CHECK:         %[[STATIC:.*]] = arith.constant 64 : index
// CHECK-NEXT:    %[[TOTAL:.*]] = arith.addi %[[STATIC]], %[[PADDED]] : index
// CHECK-NEXT:    %[[ARENA:.*]] = memref.alloc(%[[TOTAL]]) : memref<?xi8>
// CHECK:         %[[AT:.*]] = arith.constant 64 : index
// CHECK-NEXT:    memref.view %[[ARENA]][%[[AT]]][%[[N]]] : memref<?xi8> to memref<?xf32>
func.func @dynamic(%x: memref<?xf32>, %r: memref<?xf32>) {
  %c0 = arith.constant 0 : index
  %n = memref.dim %x, %c0 : memref<?xf32>
  %a = memref.alloc() : memref<16xf32>
  stream.cmd.dispatch @f::@f(%x, %a) : memref<?xf32>, memref<16xf32>
  %b = memref.alloc(%n) : memref<?xf32>
  stream.cmd.dispatch @f::@f(%a, %b) : memref<16xf32>, memref<?xf32>
  stream.cmd.dispatch @f::@f(%b, %r) : memref<?xf32>, memref<?xf32>
  return
}

// Nothing is known of a size that is an argument.
// CHECK-LABEL: func.func @given
// CHECK:         %[[NATURAL:.*]] = arith.cmpi sle, %{{.*}}, %n : index
// CHECK-NEXT:    cf.assert %[[NATURAL]], "a size of a temporary is negative"
// CHECK:         cf.assert %{{.*}}, "the temporaries do not fit into memory"
// CHECK:         arith.muli %n, %{{.*}} : index
func.func @given(%x: memref<?xf32>, %n: index, %r: memref<?xf32>) {
  %a = memref.alloc(%n) : memref<?xf32>
  stream.cmd.dispatch @f::@f(%x, %a) : memref<?xf32>, memref<?xf32>
  stream.cmd.dispatch @f::@f(%a, %r) : memref<?xf32>, memref<?xf32>
  return
}

// The size of the second buffer is computed by a dispatch, so it cannot be in the arena.
// CHECK-LABEL: func.func @no_late_size
// CHECK:         memref.alloc() : memref<64xi8>
// CHECK:         %[[N:.*]] = memref.load
// CHECK-NEXT:    memref.alloc(%[[N]]) : memref<?xf32>
func.func @no_late_size(%x: memref<16xf32>, %r: memref<?xf32>) {
  %a = memref.alloc() : memref<1xindex>
  stream.cmd.dispatch @f::@f(%x, %a) : memref<16xf32>, memref<1xindex>
  %c0 = arith.constant 0 : index
  %n = memref.load %a[%c0] : memref<1xindex>
  %b = memref.alloc(%n) : memref<?xf32>
  stream.cmd.dispatch @f::@f(%x, %b) : memref<16xf32>, memref<?xf32>
  stream.cmd.dispatch @f::@f(%b, %r) : memref<?xf32>, memref<?xf32>
  return
}
