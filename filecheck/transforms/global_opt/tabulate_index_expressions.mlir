// RUN: xdsl-opt %s -p irees-tabulate-index-expressions | filecheck %s

#id = affine_map<(i, j) -> (i, j)>
#line = affine_map<(i) -> (i)>

// The source row of each output row is a table; so is the source column.
// CHECK-LABEL: func.func @nearest
// CHECK:         %[[IOTA:.*]] = arith.constant dense<[0, 1, 2, 3, 4, 5]> : tensor<6xindex>
// CHECK:         %[[T:.*]] = linalg.generic {{.*}} ins(%[[IOTA]] : tensor<6xindex>) outs(%{{.*}} : tensor<6xindex>)
// CHECK:           arith.fptosi
// CHECK:         linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d0)>, affine_map<(d0, d1) -> (d0, d1)>]{{.*}} ins(%[[T]] : tensor<6xindex>)
// CHECK-NEXT:    ^bb0(%[[Y:.*]]: index, %{{.*}}: f32):
// CHECK-NOT:       arith.fptosi
// CHECK:           tensor.extract %{{.*}}[%[[Y]], %{{.*}}]
func.func @nearest(%x: tensor<4x8xf32>, %e: tensor<6x8xf32>) -> tensor<6x8xf32> {
  %scale = arith.constant 0.666 : f32
  %r = linalg.generic {indexing_maps = [#id], iterator_types = ["parallel", "parallel"]} outs(%e : tensor<6x8xf32>) {
  ^bb0(%o: f32):
    %i = linalg.index 0 : index
    %j = linalg.index 1 : index
    %n = arith.index_cast %i : index to i64
    %f = arith.sitofp %n : i64 to f32
    %s = arith.mulf %f, %scale : f32
    %k = arith.fptosi %s : f32 to i64
    %y = arith.index_cast %k : i64 to index
    %v = tensor.extract %x[%y, %j] : tensor<4x8xf32>
    linalg.yield %v : f32
  } -> tensor<6x8xf32>
  return %r : tensor<6x8xf32>
}

// With dynamic sizes an op computes the table when the program runs.
// CHECK-LABEL: func.func @dynamic
// CHECK:         %[[N:.*]] = tensor.dim %{{.*}}, %{{.*}} : tensor<?x?xf32>
// CHECK:         %[[E:.*]] = tensor.empty(%[[N]]) : tensor<?xf32>
// CHECK:         %[[T:.*]] = linalg.generic {{.*}} outs(%[[E]] : tensor<?xf32>)
// CHECK:           linalg.index 0 : index
// CHECK:           math.powf
// CHECK:         linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d1)>, affine_map<(d0, d1) -> (d0, d1)>]{{.*}} ins(%{{.*}}, %[[T]] : tensor<?x?xf32>, tensor<?xf32>)
// CHECK-NOT:       math.powf
// CHECK:         return
func.func @dynamic(%x: tensor<?x?xf32>, %e: tensor<?x?xf32>) -> tensor<?x?xf32> {
  %base = arith.constant 0.9 : f32
  %r = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]} ins(%x : tensor<?x?xf32>) outs(%e : tensor<?x?xf32>) {
  ^bb0(%a: f32, %o: f32):
    %j = linalg.index 1 : index
    %n = arith.index_cast %j : index to i64
    %f = arith.sitofp %n : i64 to f32
    %p = math.powf %base, %f : f32
    %v = arith.mulf %a, %p : f32
    linalg.yield %v : f32
  } -> tensor<?x?xf32>
  return %r : tensor<?x?xf32>
}

// One minus a weight is computed from the weight: it is no second table.
// CHECK-LABEL: func.func @weights
// CHECK-COUNT-1: tensor<8xindex>) outs
// CHECK:         ^bb0(%{{.*}}: f32, %[[W:.*]]: f32, %{{.*}}: f32):
// CHECK:           arith.subf %{{.*}}, %[[W]] : f32
// CHECK:         return
func.func @weights(%x: tensor<4x8xf32>, %e: tensor<4x8xf32>) -> tensor<4x8xf32> {
  %one = arith.constant 1.0 : f32
  %three = arith.constant 3.0 : f32
  %r = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]} ins(%x : tensor<4x8xf32>) outs(%e : tensor<4x8xf32>) {
  ^bb0(%a: f32, %o: f32):
    %j = linalg.index 1 : index
    %n = arith.index_cast %j : index to i64
    %f = arith.sitofp %n : i64 to f32
    %w = arith.divf %f, %three : f32
    %u = arith.subf %one, %w : f32
    %p = arith.mulf %a, %w : f32
    %q = arith.mulf %p, %u : f32
    linalg.yield %q : f32
  } -> tensor<4x8xf32>
  return %r : tensor<4x8xf32>
}

// What depends on two loops, or on data, is no table; sums and casts are cheaper than one.
// CHECK-LABEL: func.func @no_table
// CHECK-NOT:     tensor<4xindex>
// CHECK-NOT:     tensor<8xindex>
// CHECK:         return
func.func @no_table(%x: tensor<4x8xf32>, %e: tensor<4x8xf32>) -> tensor<4x8xf32> {
  %r = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]} ins(%x : tensor<4x8xf32>) outs(%e : tensor<4x8xf32>) {
  ^bb0(%a: f32, %o: f32):
    %i = linalg.index 0 : index
    %j = linalg.index 1 : index
    %s = arith.addi %i, %j : index
    %n = arith.index_cast %s : index to i64
    %f = arith.sitofp %n : i64 to f32
    %p = math.sqrt %f : f32
    %m = arith.index_cast %i : index to i64
    %g = arith.sitofp %m : i64 to f32
    %h = arith.addf %g, %a : f32
    %q = arith.divf %p, %h : f32
    linalg.yield %q : f32
  } -> tensor<4x8xf32>
  return %r : tensor<4x8xf32>
}

// An op of one loop computes each value once anyway.
// CHECK-LABEL: func.func @no_repetition
// CHECK-NOT:     tensor<8xindex>
// CHECK:         return
func.func @no_repetition(%x: tensor<8xf32>, %e: tensor<8xf32>) -> tensor<8xf32> {
  %r = linalg.generic {indexing_maps = [#line, #line], iterator_types = ["parallel"]} ins(%x : tensor<8xf32>) outs(%e : tensor<8xf32>) {
  ^bb0(%a: f32, %o: f32):
    %i = linalg.index 0 : index
    %m = arith.index_cast %i : index to i64
    %g = arith.sitofp %m : i64 to f32
    %h = math.sqrt %g : f32
    %q = arith.mulf %a, %h : f32
    linalg.yield %q : f32
  } -> tensor<8xf32>
  return %r : tensor<8xf32>
}

// A size that is not known is the same for all elements: a weight that depends on it is a table.
// CHECK-LABEL: func.func @sizes
// CHECK:         %[[T:.*]] = linalg.generic {{.*}} outs(%{{.*}} : tensor<?xf32>)
// CHECK:           arith.divf
// CHECK:         linalg.generic {{.*}} ins(%x, %[[T]] : tensor<8x?xf32>, tensor<?xf32>)
// CHECK-NOT:       arith.divf
// CHECK:         return
func.func @sizes(%x: tensor<8x?xf32>, %e: tensor<8x?xf32>, %n: i64) -> tensor<8x?xf32> {
  %last = arith.sitofp %n : i64 to f32
  %r = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i, j)>], iterator_types = ["parallel", "parallel"]} ins(%x : tensor<8x?xf32>) outs(%e : tensor<8x?xf32>) {
  ^bb0(%a: f32, %o: f32):
    %j = linalg.index 1 : index
    %k = arith.index_cast %j : index to i64
    %f = arith.sitofp %k : i64 to f32
    %w = arith.divf %f, %last : f32
    %m = arith.mulf %a, %w : f32
    linalg.yield %m : f32
  } -> tensor<8x?xf32>
  return %r : tensor<8x?xf32>
}

// The bounds of adaptive windows are tables, too: a division by a constant has no vector form.
// CHECK-LABEL: func.func @windows
// CHECK:         %[[T:.*]] = linalg.generic {{.*}} ins(%{{.*}} : tensor<7xindex>) outs(%{{.*}} : tensor<7xindex>)
// CHECK:           arith.divsi
// CHECK:         linalg.generic {{.*}} ins(%w, %[[T]] : tensor<?xf32>, tensor<7xindex>)
// CHECK-NOT:       arith.divsi
// CHECK:           tensor.extract
func.func @windows(%x: tensor<?x9xf32>, %w: tensor<?xf32>, %e: tensor<7x9xf32>) -> tensor<7x9xf32> {
  %c0 = arith.constant 0 : index
  %n = tensor.dim %x, %c0 : tensor<?x9xf32>
  %r = linalg.generic {indexing_maps = [affine_map<(i, j, k) -> (k)>, affine_map<(i, j, k) -> (i, j)>], iterator_types = ["parallel", "parallel", "reduction"]} ins(%w : tensor<?xf32>) outs(%e : tensor<7x9xf32>) {
  ^bb0(%a: f32, %o: f32):
    %seven = arith.constant 7 : index
    %i = linalg.index 0 : index
    %j = linalg.index 1 : index
    %k = linalg.index 2 : index
    %p = arith.muli %i, %n : index
    %begin = arith.divsi %p, %seven : index
    %at = arith.addi %begin, %k : index
    %v = tensor.extract %x[%at, %j] : tensor<?x9xf32>
    %s = arith.addf %o, %v : f32
    linalg.yield %s : f32
  } -> tensor<7x9xf32>
  return %r : tensor<7x9xf32>
}

// A shift is as cheap as a load, and a reduction of operands alone is left to other passes.
// CHECK-LABEL: func.func @no_windows
// CHECK-COUNT-2: linalg.generic
// CHECK-NOT:     linalg.generic
// CHECK:         return
func.func @no_windows(%x: tensor<4x9xf32>, %w: tensor<7x9x3xf32>, %e: tensor<7x9xf32>) -> tensor<7x9xf32> {
  %r = linalg.generic {indexing_maps = [#id], iterator_types = ["parallel", "parallel"]} outs(%e : tensor<7x9xf32>) {
  ^bb0(%o: f32):
    %two = arith.constant 2 : index
    %i = linalg.index 0 : index
    %j = linalg.index 1 : index
    %row = arith.divsi %i, %two : index
    %v = tensor.extract %x[%row, %j] : tensor<4x9xf32>
    linalg.yield %v : f32
  } -> tensor<7x9xf32>
  %s = linalg.generic {indexing_maps = [affine_map<(i, j, k) -> (i, j, k)>, affine_map<(i, j, k) -> (i, j)>], iterator_types = ["parallel", "parallel", "reduction"]} ins(%w : tensor<7x9x3xf32>) outs(%r : tensor<7x9xf32>) {
  ^bb0(%a: f32, %o: f32):
    %i = linalg.index 0 : index
    %n = arith.index_cast %i : index to i64
    %f = arith.sitofp %n : i64 to f32
    %p = math.exp %f : f32
    %m = arith.mulf %a, %p : f32
    %t = arith.addf %o, %m : f32
    linalg.yield %t : f32
  } -> tensor<7x9xf32>
  return %s : tensor<7x9xf32>
}
