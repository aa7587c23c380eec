// RUN: xdsl-opt %s -p irees-fold-memref-alias-ops | filecheck %s

// Offset plus index times stride, by dim.
// CHECK-LABEL: func.func @subview_load
// CHECK-NEXT:    %[[P:.*]] = affine.apply affine_map<()[s0, s1] -> ((s0 + (s1 * 2)))> ()[%a, %i]
// CHECK-NEXT:    %[[Q:.*]] = affine.apply affine_map<()[s0, s1] -> ((s0 + (s1 * 3)))> ()[%b, %j]
// CHECK-NEXT:    %{{.*}} = memref.load %m[%[[P]], %[[Q]]] {nontemporal = true} : memref<12x32xf32>
func.func @subview_load(%m: memref<12x32xf32>, %a: index, %b: index, %i: index, %j: index) -> f32 {
  %v = memref.subview %m[%a, %b] [4, 4] [2, 3] : memref<12x32xf32> to memref<4x4xf32, strided<[64, 3], offset: ?>>
  %x = memref.load %v[%i, %j] {nontemporal = true} : memref<4x4xf32, strided<[64, 3], offset: ?>>
  return %x : f32
}

// Dynamic strides, and dims that are dropped.
// CHECK-LABEL: func.func @rank_reducing
// CHECK-NEXT:    %[[P:.*]] = affine.apply affine_map<()[s0, s1, s2] -> ((s0 + (s1 * s2)))> ()[%a, %i, %s]
// CHECK-NEXT:    memref.store %x, %m[%b, %[[P]], %c] : memref<?x?x?xf32>
func.func @rank_reducing(%m: memref<?x?x?xf32>, %x: f32, %a: index, %b: index, %c: index, %s: index, %i: index) {
  %v = memref.subview %m[%b, %a, %c] [1, 4, 1] [1, %s, 1] : memref<?x?x?xf32> to memref<4xf32, strided<[?], offset: ?>>
  memref.store %x, %v[%i] : memref<4xf32, strided<[?], offset: ?>>
  return
}

// Of two dims of size 1 the strides say which one is dropped: the first.
// CHECK-LABEL: func.func @which_is_dropped
// CHECK:         memref.load %m[%a, %[[P:.*]]] : memref<8x16xf32>
func.func @which_is_dropped(%m: memref<8x16xf32>, %a: index, %b: index, %i: index) -> f32 {
  %v = memref.subview %m[%a, %b] [1, 1] [1, 1] : memref<8x16xf32> to memref<1xf32, strided<[1], offset: ?>>
  %x = memref.load %v[%i] : memref<1xf32, strided<[1], offset: ?>>
  return %x : f32
}

// A group is one index of the source; dims of size 1 do not count.
// CHECK-LABEL: func.func @expand_load
// CHECK-NEXT:    %[[L:.*]] = affine.linearize_index disjoint [%i, %j] by (2, 6) : index
// CHECK-NEXT:    %{{.*}} = memref.load %m[%[[L]], %k] : memref<12x32xf32>
func.func @expand_load(%m: memref<12x32xf32>, %i: index, %j: index, %k: index, %z: index) -> f32 {
  %v = memref.expand_shape %m [[0, 1], [2, 3]] output_shape [2, 6, 1, 32] : memref<12x32xf32> into memref<2x6x1x32xf32>
  %x = memref.load %v[%i, %j, %z, %k] : memref<2x6x1x32xf32>
  return %x : f32
}

// With dynamic sizes, and through several views.
// CHECK-LABEL: func.func @collapse_of_subview
// CHECK:         %[[A:.*]] = memref.dim %{{.*}}, %{{.*}} : memref<?x?xf32
// CHECK:         %[[D:.*]], %[[E:.*]] = affine.delinearize_index %i into (%{{.*}}, %{{.*}}) : index, index
// CHECK:         memref.load %m[%{{.*}}, %{{.*}}] : memref<?x?xf32>
func.func @collapse_of_subview(%m: memref<?x?xf32>, %a: index, %n: index, %i: index) -> f32 {
  %c = memref.cast %m : memref<?x?xf32> to memref<?x?xf32, strided<[?, 1], offset: ?>>
  %v = memref.subview %c[%a, 0] [%n, %n] [1, 1] : memref<?x?xf32, strided<[?, 1], offset: ?>> to memref<?x?xf32, strided<[?, 1], offset: ?>>
  %d = memref.cast %v : memref<?x?xf32, strided<[?, 1], offset: ?>> to memref<?x?xf32>
  %w = memref.collapse_shape %d [[0, 1]] : memref<?x?xf32> into memref<?xf32>
  %x = memref.load %w[%i] : memref<?xf32>
  return %x : f32
}

// The dims that a transfer moves along are renamed; the stride of another does not matter.
// CHECK-LABEL: func.func @transfer
// CHECK:         vector.transfer_read %m[%{{.*}}, %{{.*}}, %{{.*}}], %p, %k {in_bounds = [true], permutation_map = affine_map<(d0, d1, d2) -> (d1)>} : memref<?x?x?xf32>, vector<4xf32>
func.func @transfer(%m: memref<?x?x?xf32>, %p: f32, %k: vector<4xi1>, %a: index, %i: index) -> vector<4xf32> {
  %v = memref.subview %m[%a, %a, 0] [8, 8, 1] [3, 1, 1] : memref<?x?x?xf32> to memref<8x8xf32, strided<[?, ?], offset: ?>>
  %x = vector.transfer_read %v[%i, %i], %p, %k {in_bounds = [true]} : memref<8x8xf32, strided<[?, ?], offset: ?>>, vector<4xf32>
  return %x : vector<4xf32>
}

// Bounds are those of the view: what is outside of it is padding.
// CHECK-LABEL: func.func @no_out_of_bounds
// CHECK:         memref.subview
func.func @no_out_of_bounds(%m: memref<8x8xf32>, %p: f32, %i: index) -> vector<4xf32> {
  %v = memref.subview %m[0, 0] [8, 6] [1, 1] : memref<8x8xf32> to memref<8x6xf32, strided<[8, 1]>>
  %x = vector.transfer_read %v[%i, %i], %p : memref<8x6xf32, strided<[8, 1]>>, vector<4xf32>
  return %x : vector<4xf32>
}

// Lanes along a stride are no vector of the source.
// CHECK-LABEL: func.func @no_strided_lanes
// CHECK:         vector.load %{{.*}}[%i] : memref<8xf32, strided<[2]>>
func.func @no_strided_lanes(%m: memref<16xf32>, %i: index) -> vector<4xf32> {
  %v = memref.subview %m[0] [8] [2] : memref<16xf32> to memref<8xf32, strided<[2]>>
  %x = vector.load %v[%i] : memref<8xf32, strided<[2]>>, vector<4xf32>
  return %x : vector<4xf32>
}

// Nor are lanes along a dim behind which another one is dropped.
// CHECK-LABEL: func.func @no_dropped_dim_within
// CHECK:         vector.load %{{.*}}[%i] : memref<16xf32, strided<[8]>>
func.func @no_dropped_dim_within(%m: memref<16x8xf32>, %i: index) -> vector<4xf32> {
  %v = memref.subview %m[0, 0] [16, 1] [1, 1] : memref<16x8xf32> to memref<16xf32, strided<[8]>>
  %x = vector.load %v[%i] : memref<16xf32, strided<[8]>>, vector<4xf32>
  return %x : vector<4xf32>
}

// A row of an expanded dim is a part of the dim.
// CHECK-LABEL: func.func @expand_vector
// CHECK:         %[[L:.*]] = affine.linearize_index disjoint [%i, %j] by (4, 8) : index
// CHECK-NEXT:    vector.maskedstore %m[%[[L]]], %k, %x : memref<32xf32>, vector<8xi1>, vector<8xf32>
func.func @expand_vector(%m: memref<32xf32>, %k: vector<8xi1>, %x: vector<8xf32>, %i: index, %j: index) {
  %v = memref.expand_shape %m [[0, 1]] output_shape [4, 8] : memref<32xf32> into memref<4x8xf32>
  vector.maskedstore %v[%i, %j], %k, %x : memref<4x8xf32>, vector<8xi1>, vector<8xf32>
  return
}

// Four lanes from a multiple of 4 stay in a row of 8.
// CHECK-LABEL: func.func @collapse_vector
// CHECK:         %[[D:.*]], %[[E:.*]] = affine.delinearize_index %{{.*}} into (4, 8) : index, index
// CHECK-NEXT:    vector.load %m[%[[D]], %[[E]]] : memref<4x8xf32>, vector<4xf32>
func.func @collapse_vector(%m: memref<4x8xf32>, %i: index) -> vector<4xf32> {
  %v = memref.collapse_shape %m [[0, 1]] : memref<4x8xf32> into memref<32xf32>
  %j = affine.apply affine_map<(d0) -> (d0 * 4 + 8)>(%i)
  %x = vector.load %v[%j] : memref<32xf32>, vector<4xf32>
  return %x : vector<4xf32>
}

// From anywhere they may not. MLIR makes of it a vector.load %m[%i floordiv 8, %i mod 8], which is
// out of bounds of the row (`fold_vector_load_collapse_shape`).
// CHECK-LABEL: func.func @no_lanes_past_the_row
// CHECK:         vector.load %{{.*}}[%i] : memref<32xf32>, vector<8xf32>
func.func @no_lanes_past_the_row(%m: memref<4x8xf32>, %i: index) -> vector<8xf32> {
  %v = memref.collapse_shape %m [[0, 1]] : memref<4x8xf32> into memref<32xf32>
  %x = vector.load %v[%i] : memref<32xf32>, vector<8xf32>
  return %x : vector<8xf32>
}

// The index of a gather is one of the view: with a stride it is multiplied.
// CHECK-LABEL: func.func @gather
// CHECK:         %[[C:.*]] = arith.constant dense<3> : vector<4xindex>
// CHECK-NEXT:    %[[X:.*]] = arith.muli %x, %[[C]] : vector<4xindex>
// CHECK-NEXT:    vector.gather %m[%i, %{{.*}}] [%[[X]]], %k, %p : memref<8x32xf32>
func.func @gather(%m: memref<8x32xf32>, %x: vector<4xindex>, %k: vector<4xi1>, %p: vector<4xf32>, %i: index) -> vector<4xf32> {
  %v = memref.subview %m[0, 5] [8, 8] [1, 3] : memref<8x32xf32> to memref<8x8xf32, strided<[32, 3], offset: 5>>
  %y = vector.gather %v[%i, %i] [%x], %k, %p : memref<8x8xf32, strided<[32, 3], offset: 5>>, vector<4xindex>, vector<4xi1>, vector<4xf32> into vector<4xf32>
  return %y : vector<4xf32>
}

// It may go from row to row of the view, but rows of the source are longer.
// CHECK-LABEL: func.func @no_gather_across_rows
// CHECK:         vector.gather %{{.*}}[%i] [%x], %k, %p : memref<32xf32>
func.func @no_gather_across_rows(%m: memref<4x8xf32>, %x: vector<4xindex>, %k: vector<4xi1>, %p: vector<4xf32>, %i: index) -> vector<4xf32> {
  %v = memref.collapse_shape %m [[0, 1]] : memref<4x8xf32> into memref<32xf32>
  %y = vector.gather %v[%i] [%x], %k, %p : memref<32xf32>, vector<4xindex>, vector<4xi1>, vector<4xf32> into vector<4xf32>
  return %y : vector<4xf32>
}

// Static row, static view inside of it.
// CHECK-LABEL: func.func @reinterpret
// CHECK-NEXT:    %[[P:.*]] = affine.apply affine_map<()[s0, s1] -> ((((s0 * 4) + s1) + 2))> ()[%i, %j]
// CHECK-NEXT:    memref.load %m[%[[P]]] : memref<16xf32>
// CHECK-NEXT:    memref.reinterpret_cast
func.func @reinterpret(%m: memref<16xf32>, %i: index, %j: index) -> (f32, f32) {
  %v = memref.reinterpret_cast %m to offset: [2], sizes: [3, 4], strides: [4, 1] : memref<16xf32> to memref<3x4xf32, strided<[4, 1], offset: 2>>
  %x = memref.load %v[%i, %j] : memref<3x4xf32, strided<[4, 1], offset: 2>>
  %w = memref.reinterpret_cast %m to offset: [2], sizes: [4, 4], strides: [4, 1] : memref<16xf32> to memref<4x4xf32, strided<[4, 1], offset: 2>>
  %y = memref.load %w[%i, %j] : memref<4x4xf32, strided<[4, 1], offset: 2>>
  return %x, %y : f32, f32
}

// A view of a view is one view; a copy does not need the cast.
// CHECK-LABEL: func.func @views
// CHECK-NEXT:    %[[P:.*]] = affine.apply affine_map<()[s0] -> ((s0 + 2))> ()[%i]
// CHECK-NEXT:    %{{.*}} = memref.subview %m[4, %[[P]]] [1, 1] [1, 1] : memref<8x1024xf32> to memref<f32, strided<[], offset: ?>>
// CHECK-NEXT:    memref.copy %m, %o : memref<8x1024xf32> to memref<?x?xf32>
func.func @views(%m: memref<8x1024xf32>, %o: memref<?x?xf32>, %i: index) -> memref<f32, strided<[], offset: ?>> {
  %v = memref.subview %m[3, %i] [2, 4] [1, 1] : memref<8x1024xf32> to memref<2x4xf32, strided<[1024, 1], offset: ?>>
  %w = memref.subview %v[1, 2] [1, 1] [1, 1] : memref<2x4xf32, strided<[1024, 1], offset: ?>> to memref<f32, strided<[], offset: ?>>
  %c = memref.cast %m : memref<8x1024xf32> to memref<?x?xf32>
  memref.copy %c, %o : memref<?x?xf32> to memref<?x?xf32>
  return %w : memref<f32, strided<[], offset: ?>>
}
