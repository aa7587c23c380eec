// RUN: xdsl-opt %s -p irees-widen-booleans | filecheck %s

#i = affine_map<(i) -> (i)>

// Masks are combined as bytes, of which any but 0 is true.
// CHECK-LABEL: func.func @combined
// CHECK-NEXT:    %[[X:.*]] = irees.view_bytes %x : memref<?xi1> -> memref<?xi8>
// CHECK-NEXT:    %[[Y:.*]] = irees.view_bytes %y
// CHECK-NEXT:    %[[O:.*]] = irees.view_bytes %o
// CHECK-NEXT:    linalg.generic {{.*}} ins(%[[X]], %[[Y]] : memref<?xi8>, memref<?xi8>) outs(%[[O]] : memref<?xi8>) {
// CHECK-NEXT:    ^bb0(%[[A:.*]]: i8, %[[B:.*]]: i8, %{{.*}}: i8):
// CHECK:           %[[P:.*]] = arith.minui %[[A]], %{{.*}} : i8
// CHECK:           %[[Q:.*]] = arith.minui %[[B]], %{{.*}} : i8
// CHECK-NEXT:      %[[ONE:.*]] = arith.constant 1 : i8
// CHECK-NEXT:      %[[N:.*]] = arith.xori %[[Q]], %[[ONE]] : i8
// CHECK-NEXT:      %[[R:.*]] = arith.andi %[[P]], %[[N]] : i8
// CHECK-NEXT:      linalg.yield %[[R]] : i8
func.func @combined(%x: memref<?xi1>, %y: memref<?xi1>, %o: memref<?xi1>) {
  linalg.generic {indexing_maps = [#i, #i, #i], iterator_types = ["parallel"]} ins(%x, %y : memref<?xi1>, memref<?xi1>) outs(%o : memref<?xi1>) {
  ^bb0(%a: i1, %b: i1, %c: i1):
    %true = arith.constant true
    %n = arith.xori %b, %true : i1
    %r = arith.andi %a, %n : i1
    linalg.yield %r : i1
  }
  return
}

// c ? a : b is b ^ (c & (a ^ b)); the layout of a view stays.
// CHECK-LABEL: func.func @selected
// CHECK-NEXT:    irees.view_bytes %x : memref<8x8xi1, strided<[16, 1], offset: 4>> -> memref<8x8xi8, strided<[16, 1], offset: 4>>
// CHECK:           %[[D:.*]] = arith.xori %[[A:.*]], %[[B:.*]] : i8
// CHECK-NEXT:      %[[E:.*]] = arith.andi %{{.*}}, %[[D]] : i8
// CHECK-NEXT:      arith.xori %[[B]], %[[E]] : i8
func.func @selected(%x: memref<8x8xi1, strided<[16, 1], offset: 4>>, %y: memref<8x8xi1>) {
  linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (j, i)>, affine_map<(i, j) -> (i, j)>], iterator_types = ["parallel", "parallel"]} ins(%x, %x : memref<8x8xi1, strided<[16, 1], offset: 4>>, memref<8x8xi1, strided<[16, 1], offset: 4>>) outs(%y : memref<8x8xi1>) {
  ^bb0(%a: i1, %b: i1, %c: i1):
    %r = arith.select %a, %b, %c : i1
    linalg.yield %r : i1
  }
  return
}

// A mask of a comparison stays a mask, and so does one that is selected by a value from outside.
// CHECK-LABEL: func.func @others
// CHECK-NOT:     irees.view_bytes
// CHECK:         return
func.func @others(%x: memref<8xf32>, %y: memref<8xi1>, %c: i1) {
  linalg.generic {indexing_maps = [#i, #i], iterator_types = ["parallel"]} ins(%x : memref<8xf32>) outs(%y : memref<8xi1>) {
  ^bb0(%a: f32, %b: i1):
    %r = arith.cmpf olt, %a, %a : f32
    linalg.yield %r : i1
  }
  linalg.generic {indexing_maps = [#i], iterator_types = ["parallel"]} outs(%y : memref<8xi1>) {
  ^bb0(%b: i1):
    %r = arith.andi %b, %c : i1
    linalg.yield %r : i1
  }
  return
}
