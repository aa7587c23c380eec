// RUN: xdsl-opt %s -p 'irees-assign-target{facts="gpu.warp=32"},irees-lower-linalg-ext-to-loops' | filecheck %s
// RUN: xdsl-opt %s -p irees-lower-linalg-ext-to-loops | filecheck %s --check-prefix TOGETHER

// A running sum per row. It starts with the first element and ends in the accumulator.
// CHECK-LABEL: func.func @scan
// CHECK:         scf.for %[[ROW:.*]] = %{{.*}}
// CHECK:           %[[START:.*]] = memref.load %x[%[[ROW]], %{{.*}}] : memref<4x8xf32>
// CHECK:           memref.store %[[START]], %y[%[[ROW]], %{{.*}}] : memref<4x8xf32>
// CHECK:         %[[LAST:.*]] = scf.for %[[I:.*]] = %{{.*}} iter_args(%[[A:.*]] = %[[START]]) -> (f32) {
// CHECK-NEXT:        %[[X:.*]] = memref.load %x[%[[ROW]], %[[I]]] : memref<4x8xf32>
// CHECK-NEXT:        %[[S:.*]] = arith.addf %[[A]], %[[X]] : f32
// CHECK-NEXT:        memref.store %[[S]], %y[%[[ROW]], %[[I]]] : memref<4x8xf32>
// CHECK-NEXT:        scf.yield %[[S]] : f32
// CHECK:         memref.store %[[LAST]], %acc[%[[ROW]]] : memref<4xf32>
func.func @scan(%x: memref<4x8xf32>, %y: memref<4x8xf32>, %acc: memref<4xf32>) {
  iree_linalg_ext.scan dimension(1) inclusive(true) ins(%x : memref<4x8xf32>) outs(%y, %acc : memref<4x8xf32>, memref<4xf32>) {
  ^bb0(%a: f32, %b: f32):
    %s = arith.addf %a, %b : f32
    iree_linalg_ext.yield %s : f32
  }
  return
}

// An exclusive scan stores the value before each element, and the last of them in the accumulator.
// A row of dynamic length may be empty.
// CHECK-LABEL: func.func @exclusive
// CHECK:         scf.if
// CHECK:         %[[START:.*]] = memref.load %acc[] : memref<i64>
// CHECK:         %[[LAST:.*]] = scf.for %[[I:.*]] = %{{.*}} iter_args(%[[A:.*]] = %[[START]]) -> (i64) {
// CHECK:           memref.store %[[A]], %y[%[[I]]] : memref<?xi64>
// CHECK-NEXT:      %[[S:.*]] = arith.addi %[[A]], %{{.*}} : i64
// CHECK-NEXT:      scf.yield %[[S]] : i64
// CHECK:         memref.store %[[LAST]], %y[%{{.*}}] : memref<?xi64>
// CHECK-NEXT:    memref.store %[[LAST]], %acc[] : memref<i64>
func.func @exclusive(%x: memref<?xi64>, %y: memref<?xi64>, %acc: memref<i64>) {
  iree_linalg_ext.scan dimension(0) inclusive(false) ins(%x : memref<?xi64>) outs(%y, %acc : memref<?xi64>, memref<i64>) {
  ^bb0(%a: i64, %b: i64):
    %s = arith.addi %a, %b : i64
    iree_linalg_ext.yield %s : i64
  }
  return
}

// Numbers are sorted by their digits: counted, added up, moved from one half of the scratch
// memory into the other; at the end every element is fetched from where it was.
// CHECK-LABEL: func.func @sort
// CHECK:         %[[KEYS:.*]] = memref.alloc(%{{.*}}) : memref<?xi32>
// CHECK:         %[[ORIGINS:.*]] = memref.alloc(%{{.*}}) : memref<?xindex>
// CHECK:         %[[COUNTS:.*]] = memref.alloc() : memref<1024xindex>
// CHECK:         %[[COPY:.*]] = memref.alloc(%{{.*}}) : memref<?xf32>
// CHECK:         %[[BITS:.*]] = arith.bitcast %{{.*}} : f32 to i32
// CHECK:         arith.shrui %{{.*}}, %{{.*}} : i32
// CHECK:         %[[START:.*]] = scf.for %{{.*}} iter_args(%{{.*}} = %{{.*}}) -> (index) {
// CHECK:           scf.if %{{.*}} -> (index) {
// CHECK:             %[[INSIDE:.*]] = arith.cmpi ult, %[[PLACE:.*]], %{{.*}} : index
// CHECK-NEXT:        scf.if %[[INSIDE]] {
// CHECK-NEXT:          memref.store %{{.*}}, %[[KEYS]][%[[PLACE]]] : memref<?xi32>
// CHECK-NEXT:          memref.store %{{.*}}, %[[ORIGINS]][%[[PLACE]]] : memref<?xindex>
// CHECK:         %[[AT:.*]] = arith.addi %[[START]], %{{.*}} : index
// CHECK-NEXT:      %[[FROM:.*]] = memref.load %[[ORIGINS]][%[[AT]]] : memref<?xindex>
// CHECK:           %[[ORIGIN:.*]] = arith.minui %[[FROM]], %{{.*}} : index
// CHECK-NEXT:      %[[VALUE:.*]] = memref.load %[[COPY]][%[[ORIGIN]]] : memref<?xf32>
// CHECK-NEXT:      memref.store %[[VALUE]], %v
func.func @sort(%v: memref<?xf32>) {
  iree_linalg_ext.sort dimension(0) outs(%v : memref<?xf32>) {
  ^bb0(%a: f32, %b: f32):
    %less = arith.cmpf olt, %a, %b : f32
    iree_linalg_ext.yield %less : i1
  }
  return
}

// Another order: runs of doubling width are merged from one half into the other.
// CHECK-LABEL: func.func @merge
// CHECK:         %[[N:.*]] = memref.dim %v
// CHECK:         %[[TWICE:.*]] = arith.muli %[[N]], %{{.*}} : index
// CHECK-NEXT:    %[[HALVES:.*]] = memref.alloc(%[[TWICE]]) : memref<?xf32>
// CHECK:         %{{.*}}, %[[START:.*]] = scf.while (%[[WIDTH:.*]] = %{{.*}}, %{{.*}} = %{{.*}}) : (index, index) -> (index, index) {
// CHECK-NEXT:      %[[MORE:.*]] = arith.cmpi slt, %[[WIDTH]], %[[N]] : index
// CHECK-NEXT:      scf.condition(%[[MORE]])
// CHECK:         arith.select
// CHECK:         %[[AT:.*]] = arith.addi %[[START]], %{{.*}} : index
// CHECK-NEXT:      %[[BEST:.*]] = memref.load %[[HALVES]][%[[AT]]] : memref<?xf32>
// CHECK-NEXT:      memref.store %[[BEST]], %v
func.func @merge(%v: memref<?xf32>) {
  iree_linalg_ext.sort dimension(0) outs(%v : memref<?xf32>) {
  ^bb0(%a: f32, %b: f32):
    %x = math.absf %a : f32
    %y = math.absf %b : f32
    %less = arith.cmpf olt, %x, %y : f32
    iree_linalg_ext.yield %less : i1
  }
  return
}

// One pass keeps the best three; of the rest, what does not beat the worst is skipped.
// CHECK-LABEL: func.func @topk
// CHECK:         %[[KEPT:.*]] = memref.alloc() : memref<3xf32>
// CHECK:         scf.for
// CHECK-NEXT:      %[[X:.*]] = memref.load %x
// CHECK:         %[[HOLE:.*]] = scf.while
// CHECK:         memref.store %[[X]], %[[KEPT]][%[[HOLE]]] : memref<3xf32>
// CHECK:         scf.for
// CHECK-NEXT:      %[[Y:.*]] = memref.load %x
// CHECK:         memref.load %[[KEPT]]
// CHECK:         scf.if
// CHECK:         memref.store %[[Y]], %[[KEPT]]
// CHECK:         memref.store %{{.*}}, %i
// TOGETHER-LABEL: func.func @topk
// TOGETHER:      %[[KEPT:.*]] = memref.alloc() : memref<3xf32>
// TOGETHER:      scf.while
// 64 of the 97 that are left at once, by sixteens where one of them is kept, then twice 16.
// TOGETHER:        %[[V:.*]] = memref.subview %x[%{{.*}}] [64] [1]
// TOGETHER:        %[[WORST:.*]] = memref.load %[[KEPT]]
// TOGETHER:        linalg.generic {{.*}} iterator_types = ["reduction"]} ins(%[[V]] : {{.*}}) outs(%[[F:.*]] : memref<i32>)
// TOGETHER:          arith.cmpf oge, %[[WORST]]
// TOGETHER:        %[[N:.*]] = memref.load %[[F]][] : memref<i32>
// TOGETHER:        %[[ANY:.*]] = arith.cmpi ne, %[[N]]
// TOGETHER-NEXT:   scf.if %[[ANY]] {
// TOGETHER:          %[[FOUR:.*]] = arith.constant 4 : index
// TOGETHER:          scf.for %{{.*}} = %{{.*}} to %[[FOUR]] step
// TOGETHER:            memref.subview %x[%{{.*}}] [16] [1]
// TOGETHER:            scf.if
// TOGETHER:              scf.for
// TOGETHER:                scf.while
// TOGETHER:      arith.constant 67 : index
// TOGETHER:      memref.subview %x[%{{.*}}] [16] [1]
func.func @topk(%x: memref<100xf32>, %v: memref<3xf32>, %i: memref<3xi64>) {
  iree_linalg_ext.topk_v2 dimension(0) is_sorted ins(%x : memref<100xf32>) outs(%v, %i : memref<3xf32>, memref<3xi64>) {
  ^bb0(%a: f32, %b: f32):
    %more = arith.cmpf ogt, %a, %b : f32
    iree_linalg_ext.yield %more : i1
  }
  return
}

// A large k: a bound is halved until few more than 40 keys meet it. Survivors are collected by
// groups, and written at their ranks. Other targets insert.
// CHECK-LABEL: func.func @topk_by_bound
// CHECK-NOT:     arith.minui
// TOGETHER-LABEL: func.func @topk_by_bound
// TOGETHER:      %[[KEYS:.*]] = memref.alloc() : memref<100xi32>
// TOGETHER:      memref.alloc() : memref<80xi32>
// TOGETHER:      linalg.generic {{.*}} outs(%[[KEYS]] : memref<100xi32>)
// TOGETHER:      arith.minui
// TOGETHER:      arith.maxui
// TOGETHER:      scf.while (%[[LOW:.*]] = %{{.*}}, %[[HIGH:.*]] = %{{.*}}, %[[TOTAL:.*]] = %{{.*}}) :
// TOGETHER:        arith.cmpi sgt, %[[TOTAL]]
// TOGETHER:        arith.cmpi ult, %[[LOW]], %[[HIGH]] : i32
// TOGETHER:        linalg.generic {{.*}} ins(%[[KEYS]] :
// TOGETHER:          arith.cmpi ule
// TOGETHER:      memref.subview %[[KEYS]][%{{.*}}] [64] [1]
// TOGETHER:      linalg.generic {{.*}} iterator_types = ["parallel", "reduction"]}
// TOGETHER:      memref.store %{{.*}}, %v
// TOGETHER:      memref.store %{{.*}}, %i
func.func @topk_by_bound(%x: memref<100xf32>, %v: memref<40xf32>, %i: memref<40xi64>) {
  iree_linalg_ext.topk_v2 dimension(0) is_sorted ins(%x : memref<100xf32>) outs(%v, %i : memref<40xf32>, memref<40xi64>) {
  ^bb0(%a: f32, %b: f32):
    %more = arith.cmpf ogt, %a, %b : f32
    iree_linalg_ext.yield %more : i1
  }
  return
}

// An index out of range writes nothing.
// CHECK-LABEL: func.func @scatter
// CHECK:         %[[AT:.*]] = arith.index_cast %{{.*}} : i64 to index
// CHECK:         %[[SIZE:.*]] = memref.dim %o
// CHECK-NEXT:      %[[INSIDE:.*]] = arith.cmpi ult, %[[AT]], %[[SIZE]] : index
// CHECK-NEXT:      scf.if %[[INSIDE]] {
// CHECK:         memref.store %{{.*}}, %o[%[[AT]]] : memref<?xf32>
func.func @scatter(%u: memref<5xf32>, %i: memref<5x1xi64>, %o: memref<?xf32>) {
  iree_linalg_ext.scatter dimension_map = [0] unique_indices(false) ins(%u, %i : memref<5xf32>, memref<5x1xi64>) outs(%o : memref<?xf32>) {
  ^bb0(%new: f32, %old: f32):
    %s = arith.addf %new, %old : f32
    iree_linalg_ext.yield %s : f32
  }
  return
}

// On tensors there is nothing to loop over yet.
// CHECK-LABEL: func.func @no_tensor
// CHECK-NEXT:    iree_linalg_ext.sort
func.func @no_tensor(%v: tensor<8xf32>) -> tensor<8xf32> {
  %s = iree_linalg_ext.sort dimension(0) outs(%v : tensor<8xf32>) {
  ^bb0(%a: f32, %b: f32):
    %less = arith.cmpf olt, %a, %b : f32
    iree_linalg_ext.yield %less : i1
  } -> tensor<8xf32>
  return %s : tensor<8xf32>
}

// Rows are sorted at the same time: each workgroup has scratch memory of its own.
// CHECK-LABEL: func.func @workgroups
// CHECK-NOT:     memref.alloc
// CHECK:         scf.forall (%{{.*}}) in (4) {
// CHECK:           memref.alloc() : memref<128xi32>
// CHECK:           memref.alloc() : memref<128xi32>
// CHECK:           memref.alloc() : memref<1024xindex>
// CHECK:           memref.alloc() : memref<64xf32>
func.func @workgroups(%v: memref<4x64xf32>) {
  scf.forall (%i) in (4) {
    %r = memref.subview %v[%i, 0] [1, 64] [1, 1] : memref<4x64xf32> to memref<1x64xf32, strided<[64, 1], offset: ?>>
    iree_linalg_ext.sort dimension(1) outs(%r : memref<1x64xf32, strided<[64, 1], offset: ?>>) {
    ^bb0(%a: f32, %b: f32):
      %less = arith.cmpf ole, %a, %b : f32
      iree_linalg_ext.yield %less : i1
    }
  }
  return
}
