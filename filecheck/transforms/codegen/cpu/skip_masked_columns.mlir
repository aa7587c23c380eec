// RUN: xdsl-opt %s -p irees-skip-masked-columns | filecheck %s

// A causal mask: the columns of a tile end with its last row. The mask, the product before it and
// the one after it read and write these only; a buffer of the tile has them at its start.
// CHECK-LABEL: func.func @causal
// CHECK:         scf.forall (%[[I:.*]]) in (4) {
// CHECK:           %[[S:.*]] = memref.alloc() : memref<8x32xf32>
// CHECK:           linalg.generic {{.*}} iterator_types = ["reduction", "reduction"]} ins(%{{.*}} : memref<8x32xf32>) outs(%[[LOW:.*]], %[[HIGH:.*]] : memref<i32>, memref<i32>) {
// CHECK:             arith.cmpi sge
// CHECK-NOT:         arith.mulf
// CHECK:             arith.minsi
// CHECK:             arith.maxsi
// CHECK:           memref.load %[[LOW]][]
// CHECK:           memref.load %[[HIGH]][]
// CHECK:           %[[FIRST:.*]] = arith.muli
// CHECK:           %[[N:.*]] = arith.subi %{{.*}}, %[[FIRST]] : index
// CHECK-NEXT:      %[[K:.*]] = memref.subview %k[%[[FIRST]], 0] [%[[N]], 16] [1, 1]
// CHECK-NEXT:      %[[P:.*]] = memref.subview %[[S]][0, 0] [8, %[[N]]] [1, 1]
// CHECK-NEXT:      linalg.generic {{.*}} ins(%{{.*}}, %[[K]] : {{.*}}) outs(%[[P]] : {{.*}}) attrs = {lowering_config = #iree_codegen.lowering_config<{block = [8 : i64, 16 : i64]}>} {
// CHECK:           %[[T:.*]] = memref.subview %{{.*}}[0, 0] [8, %[[N]]] [1, 1]
// CHECK-NEXT:      linalg.generic {{.*}} ins(%[[P]] : {{.*}}) outs(%[[T]] : {{.*}}) {
// CHECK:             %[[J:.*]] = linalg.index 1 : index
// CHECK-NEXT:        arith.addi %[[J]], %[[FIRST]] : index
// CHECK:           %[[V:.*]] = memref.subview %v[%[[FIRST]], 0] [%[[N]], 16] [1, 1]
// CHECK-NEXT:      linalg.generic {{.*}} ins(%[[T]], %[[V]] : {{.*}}) outs(%{{.*}} : {{.*}}) {
func.func @causal(%q: memref<32x16xf32>, %k: memref<32x16xf32>, %v: memref<32x16xf32>, %r: memref<32x16xf32>) {
  scf.forall (%i) in (4) {
    %zero = arith.constant 0.0 : f32
    %eight = arith.constant 8 : index
    %row = arith.muli %i, %eight : index
    %s = memref.alloc() : memref<8x32xf32>
    %t = memref.alloc() : memref<8x32xf32>
    %a = memref.subview %q[%row, 0] [8, 16] [1, 1] : memref<32x16xf32> to memref<8x16xf32, strided<[16, 1], offset: ?>>
    %b = memref.subview %r[%row, 0] [8, 16] [1, 1] : memref<32x16xf32> to memref<8x16xf32, strided<[16, 1], offset: ?>>
    linalg.generic {indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (n, k)>, affine_map<(m, n, k) -> (m, n)>], iterator_types = ["parallel", "parallel", "reduction"]} ins(%a, %k : memref<8x16xf32, strided<[16, 1], offset: ?>>, memref<32x16xf32>) outs(%s : memref<8x32xf32>) attrs = {lowering_config = #iree_codegen.lowering_config<{block = [8, 16], columns = 1}>} {
    ^bb0(%x: f32, %y: f32, %z: f32):
      %m = arith.mulf %x, %y : f32
      %n = arith.addf %z, %m : f32
      linalg.yield %n : f32
    }
    linalg.generic {indexing_maps = [affine_map<(m, n) -> (m, n)>, affine_map<(m, n) -> (m, n)>], iterator_types = ["parallel", "parallel"]} ins(%s : memref<8x32xf32>) outs(%t : memref<8x32xf32>) attrs = {lowering_config = #iree_codegen.lowering_config<{columns = 1, mask = 1}>} {
    ^bb0(%x: f32, %z: f32):
      %m = linalg.index 0 : index
      %o = arith.addi %m, %row : index
      %n = linalg.index 1 : index
      %seen = arith.cmpi sge, %o, %n : index
      %half = arith.constant 0.5 : f32
      %h = arith.mulf %x, %half : f32
      %y = arith.select %seen, %h, %zero : f32
      linalg.yield %y : f32
    }
    linalg.generic {indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (k, n)>, affine_map<(m, n, k) -> (m, n)>], iterator_types = ["parallel", "parallel", "reduction"]} ins(%t, %v : memref<8x32xf32>, memref<32x16xf32>) outs(%b : memref<8x16xf32, strided<[16, 1], offset: ?>>) attrs = {lowering_config = #iree_codegen.lowering_config<{columns = 2}>} {
    ^bb0(%x: f32, %y: f32, %z: f32):
      %m = arith.mulf %x, %y : f32
      %n = arith.addf %z, %m : f32
      linalg.yield %n : f32
    }
  }
  return
}

// A mask that is added, of any argument: -infinity hides. It is read for the range and again.
// CHECK-LABEL: func.func @added
// CHECK:           linalg.generic {{.*}} ins(%mask, %{{.*}} : memref<8x?xf32>, memref<8x?xf32>) outs(%{{.*}}, %{{.*}} : memref<i32>, memref<i32>) {
// CHECK:             arith.cmpf une
// CHECK:           memref.subview %mask[0, %{{.*}}] [8, %{{.*}}] [1, 1]
func.func @added(%mask: memref<8x?xf32>, %n: index, %r: memref<8xf32>) {
  scf.forall (%i) in (1) {
    %x = memref.alloc(%n) : memref<8x?xf32>
    %t = memref.alloc(%n) : memref<8x?xf32>
    linalg.generic {indexing_maps = [affine_map<(m, n) -> (m, n)>, affine_map<(m, n) -> (m, n)>, affine_map<(m, n) -> (m, n)>], iterator_types = ["parallel", "parallel"]} ins(%x, %mask : memref<8x?xf32>, memref<8x?xf32>) outs(%t : memref<8x?xf32>) attrs = {lowering_config = #iree_codegen.lowering_config<{columns = 1, mask = 1}>} {
    ^bb0(%a: f32, %b: f32, %c: f32):
      %s = arith.addf %a, %b : f32
      linalg.yield %s : f32
    }
    linalg.generic {indexing_maps = [affine_map<(m, n) -> (m, n)>, affine_map<(m, n) -> (m)>], iterator_types = ["parallel", "reduction"]} ins(%t : memref<8x?xf32>) outs(%r : memref<8xf32>) attrs = {lowering_config = #iree_codegen.lowering_config<{columns = 1}>} {
    ^bb0(%a: f32, %b: f32):
      %s = arith.maximumf %a, %b : f32
      linalg.yield %s : f32
    }
  }
  return
}

// Without a column loop in the configs, nothing changes.
// CHECK-LABEL: func.func @plain
// CHECK-NOT:     memref.subview
// CHECK:         return
func.func @plain(%x: memref<8x4xf32>, %r: memref<8x4xf32>) {
  scf.forall (%i) in (1) {
    linalg.generic {indexing_maps = [affine_map<(m, n) -> (m, n)>, affine_map<(m, n) -> (m, n)>], iterator_types = ["parallel", "parallel"]} ins(%x : memref<8x4xf32>) outs(%r : memref<8x4xf32>) {
    ^bb0(%a: f32, %b: f32):
      linalg.yield %a : f32
    }
  }
  return
}
