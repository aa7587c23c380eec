// RUN: xdsl-opt %s -p irees-sink-reshapes | filecheck %s

#id = affine_map<(d0) -> (d0)>
#id2 = affine_map<(d0, d1) -> (d0, d1)>
#row = affine_map<(d0, d1) -> (d0)>
#col = affine_map<(d0, d1) -> (d1)>

// What reads a collapsed tensor runs over its dims; what reads that in turn, too.
// CHECK-LABEL: func.func @chain
// CHECK-DAG:     %[[S:.*]] = linalg.generic {{.*}} outs(%{{.*}} : tensor<2x4xf32>)
// CHECK-DAG:     %[[X:.*]] = tensor.expand_shape %x {{\[\[}}0, 1], [2]] output_shape [2, 4, 9]
// CHECK:         %[[M:.*]] = linalg.generic {{.*}}"parallel", "parallel", "parallel"]} ins(%[[X]], %[[S]] : tensor<2x4x9xf32>, tensor<2x4xf32>)
// CHECK:         %[[N:.*]] = linalg.generic {{.*}} ins(%[[M]] : tensor<2x4x9xf32>)
// CHECK:         %[[R:.*]] = tensor.collapse_shape %[[N]] {{\[\[}}0, 1], [2]] : tensor<2x4x9xf32> into tensor<8x9xf32>
// CHECK-NEXT:    func.return %[[R]]
func.func @chain(%x: tensor<8x9xf32>, %y: tensor<2x4xf32>) -> tensor<8x9xf32> {
  %f = tensor.empty() : tensor<2x4xf32>
  %e = tensor.empty() : tensor<8x9xf32>
  %s = linalg.generic {indexing_maps = [#id2, #id2], iterator_types = ["parallel", "parallel"]} ins(%y : tensor<2x4xf32>) outs(%f : tensor<2x4xf32>) {
  ^bb0(%a: f32, %o: f32):
    %v = math.rsqrt %a : f32
    linalg.yield %v : f32
  } -> tensor<2x4xf32>
  %u = tensor.expand_shape %s [[0, 1], [2, 3]] output_shape [1, 2, 4, 1] : tensor<2x4xf32> into tensor<1x2x4x1xf32>
  %c = tensor.collapse_shape %u [[0, 1, 2, 3]] : tensor<1x2x4x1xf32> into tensor<8xf32>
  %m = linalg.generic {indexing_maps = [#id2, #row, #id2], iterator_types = ["parallel", "parallel"]} ins(%x, %c : tensor<8x9xf32>, tensor<8xf32>) outs(%e : tensor<8x9xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %v = arith.mulf %a, %b : f32
    linalg.yield %v : f32
  } -> tensor<8x9xf32>
  %d = tensor.expand_shape %m [[0], [1, 2]] output_shape [8, 9, 1] : tensor<8x9xf32> into tensor<8x9x1xf32>
  %g = tensor.collapse_shape %d [[0], [1, 2]] : tensor<8x9x1xf32> into tensor<8x9xf32>
  %n = linalg.generic {indexing_maps = [#id2, #id2], iterator_types = ["parallel", "parallel"]} ins(%g : tensor<8x9xf32>) outs(%e : tensor<8x9xf32>) {
  ^bb0(%a: f32, %o: f32):
    %v = math.exp %a : f32
    linalg.yield %v : f32
  } -> tensor<8x9xf32>
  return %n : tensor<8x9xf32>
}

// A last loop may be split where the rest of it is long.
// CHECK-LABEL: func.func @long_rows
// CHECK:         linalg.generic {{.*}} ins(%{{.*}} : tensor<3x64xf32>)
// CHECK:         linalg.generic {{.*}} ins(%{{.*}} : tensor<3x64xf32>)
func.func @long_rows(%x: tensor<3x64xf32>) -> tensor<192xf32> {
  %e = tensor.empty() : tensor<3x64xf32>
  %f = tensor.empty() : tensor<192xf32>
  %s = linalg.generic {indexing_maps = [#id2, #id2], iterator_types = ["parallel", "parallel"]} ins(%x : tensor<3x64xf32>) outs(%e : tensor<3x64xf32>) {
  ^bb0(%a: f32, %o: f32):
    %v = math.exp %a : f32
    linalg.yield %v : f32
  } -> tensor<3x64xf32>
  %c = tensor.collapse_shape %s [[0, 1]] : tensor<3x64xf32> into tensor<192xf32>
  %r = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel"]} ins(%c : tensor<192xf32>) outs(%f : tensor<192xf32>) {
  ^bb0(%a: f32, %o: f32):
    %v = math.exp %a : f32
    linalg.yield %v : f32
  } -> tensor<192xf32>
  return %r : tensor<192xf32>
}

// Short rows, arguments, reductions, and a body that asks for the index of the loop stay.
// CHECK-LABEL: func.func @no_gain
// CHECK:         linalg.generic {{.*}} outs(%{{.*}} : tensor<6xf32>)
// CHECK:         linalg.generic {{.*}} outs(%{{.*}} : tensor<6xf32>)
// CHECK:         linalg.generic {{.*}} iterator_types = ["reduction"]
// CHECK:         linalg.generic {{.*}} outs(%{{.*}} : tensor<6x5xf32>)
func.func @no_gain(%x: tensor<2x3xf32>, %z: tensor<f32>) -> (tensor<6xf32>, tensor<6xf32>, tensor<f32>, tensor<6x5xf32>) {
  %e = tensor.empty() : tensor<2x3xf32>
  %f = tensor.empty() : tensor<6xf32>
  %h = tensor.empty() : tensor<6x5xf32>
  %s = linalg.generic {indexing_maps = [#id2, #id2], iterator_types = ["parallel", "parallel"]} ins(%x : tensor<2x3xf32>) outs(%e : tensor<2x3xf32>) {
  ^bb0(%a: f32, %o: f32):
    %v = math.exp %a : f32
    linalg.yield %v : f32
  } -> tensor<2x3xf32>
  %c = tensor.collapse_shape %s [[0, 1]] : tensor<2x3xf32> into tensor<6xf32>
  %d = tensor.collapse_shape %x [[0, 1]] : tensor<2x3xf32> into tensor<6xf32>
  %p = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel"]} ins(%c : tensor<6xf32>) outs(%f : tensor<6xf32>) {
  ^bb0(%a: f32, %o: f32):
    %v = math.exp %a : f32
    linalg.yield %v : f32
  } -> tensor<6xf32>
  %q = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel"]} ins(%d : tensor<6xf32>) outs(%f : tensor<6xf32>) {
  ^bb0(%a: f32, %o: f32):
    %v = math.exp %a : f32
    linalg.yield %v : f32
  } -> tensor<6xf32>
  %r = linalg.generic {indexing_maps = [#id, affine_map<(d0) -> ()>], iterator_types = ["reduction"]} ins(%c : tensor<6xf32>) outs(%z : tensor<f32>) {
  ^bb0(%a: f32, %o: f32):
    %v = arith.addf %a, %o : f32
    linalg.yield %v : f32
  } -> tensor<f32>
  %t = linalg.generic {indexing_maps = [#row, #id2], iterator_types = ["parallel", "parallel"]} ins(%c : tensor<6xf32>) outs(%h : tensor<6x5xf32>) {
  ^bb0(%a: f32, %o: f32):
    %i = linalg.index 0 : index
    %j = arith.index_cast %i : index to i64
    %k = arith.sitofp %j : i64 to f32
    %v = arith.mulf %a, %k : f32
    linalg.yield %v : f32
  } -> tensor<6x5xf32>
  return %p, %q, %r, %t : tensor<6xf32>, tensor<6xf32>, tensor<f32>, tensor<6x5xf32>
}

// What reads another op as it is stays where it shares the loops of that one.
// CHECK-LABEL: func.func @no_second_shape
// CHECK:         linalg.generic {{.*}} outs(%{{.*}} : tensor<6x5xf32>)
// CHECK:         linalg.generic {{.*}} outs(%{{.*}} : tensor<6x5xf32>)
func.func @no_second_shape(%x: tensor<2x3xf32>, %y: tensor<6x5xf32>) -> tensor<6x5xf32> {
  %e = tensor.empty() : tensor<2x3xf32>
  %h = tensor.empty() : tensor<6x5xf32>
  %s = linalg.generic {indexing_maps = [#id2, #id2], iterator_types = ["parallel", "parallel"]} ins(%x : tensor<2x3xf32>) outs(%e : tensor<2x3xf32>) {
  ^bb0(%a: f32, %o: f32):
    %v = math.exp %a : f32
    linalg.yield %v : f32
  } -> tensor<2x3xf32>
  %n = linalg.generic {indexing_maps = [#id2, #id2], iterator_types = ["parallel", "parallel"]} ins(%y : tensor<6x5xf32>) outs(%h : tensor<6x5xf32>) {
  ^bb0(%a: f32, %o: f32):
    %v = math.exp %a : f32
    linalg.yield %v : f32
  } -> tensor<6x5xf32>
  %c = tensor.collapse_shape %s [[0, 1]] : tensor<2x3xf32> into tensor<6xf32>
  %r = linalg.generic {indexing_maps = [#id2, #row, #id2], iterator_types = ["parallel", "parallel"]} ins(%n, %c : tensor<6x5xf32>, tensor<6xf32>) outs(%h : tensor<6x5xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %v = arith.mulf %a, %b : f32
    linalg.yield %v : f32
  } -> tensor<6x5xf32>
  return %r : tensor<6x5xf32>
}


#id3 = affine_map<(d0, d1, d2) -> (d0, d1, d2)>
#last = affine_map<(d0, d1, d2) -> (d2)>

// What reads an expanded result runs over the dims from before, and so does what reads that: rows of a batch are one loop.
// A fill that starts a sum is made in the other shape.
// CHECK-LABEL: func.func @rows_of_a_batch
// CHECK:         %[[P:.*]] = linalg.generic {{.*}}"reduction"]} {{.*}} outs(%{{.*}} : tensor<6x4xf32>)
// CHECK:         %[[Z:.*]] = tensor.collapse_shape %z {{\[\[}}0, 1], [2]] : tensor<2x3x4xf32> into tensor<6x4xf32>
// CHECK:         %[[A:.*]] = linalg.generic {{.*}} iterator_types = ["parallel", "parallel"]} ins(%[[P]], %[[Z]], %bias : tensor<6x4xf32>, tensor<6x4xf32>, tensor<4xf32>)
// CHECK:         %[[F:.*]] = linalg.generic {{.*}} outs(%{{.*}} : tensor<6xf32>)
// CHECK:         %[[S:.*]] = linalg.generic {{.*}} iterator_types = ["parallel", "reduction"]} ins(%[[A]] : tensor<6x4xf32>) outs(%[[F]] : tensor<6xf32>)
// CHECK:         %[[R:.*]] = tensor.expand_shape %[[S]] {{\[\[}}0, 1]] output_shape [2, 3] : tensor<6xf32> into tensor<2x3xf32>
// CHECK:         func.return %[[R]]
func.func @rows_of_a_batch(%x: tensor<6x5xf32>, %w: tensor<5x4xf32>, %o: tensor<6x4xf32>, %z: tensor<2x3x4xf32>, %bias: tensor<4xf32>) -> tensor<2x3xf32> {
  %e = tensor.empty() : tensor<2x3x4xf32>
  %f = tensor.empty() : tensor<2x3xf32>
  %p = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2) -> (d0, d2)>, affine_map<(d0, d1, d2) -> (d2, d1)>, affine_map<(d0, d1, d2) -> (d0, d1)>], iterator_types = ["parallel", "parallel", "reduction"]} ins(%x, %w : tensor<6x5xf32>, tensor<5x4xf32>) outs(%o : tensor<6x4xf32>) {
  ^bb0(%a: f32, %b: f32, %c: f32):
    %m = arith.mulf %a, %b : f32
    %v = arith.addf %m, %c : f32
    linalg.yield %v : f32
  } -> tensor<6x4xf32>
  %q = tensor.expand_shape %p [[0, 1], [2]] output_shape [2, 3, 4] : tensor<6x4xf32> into tensor<2x3x4xf32>
  %s = linalg.generic {indexing_maps = [#id3, #id3, #last, #id3], iterator_types = ["parallel", "parallel", "parallel"]} ins(%q, %z, %bias : tensor<2x3x4xf32>, tensor<2x3x4xf32>, tensor<4xf32>) outs(%e : tensor<2x3x4xf32>) {
  ^bb0(%a: f32, %b: f32, %c: f32, %d: f32):
    %m = arith.addf %a, %b : f32
    %v = arith.addf %m, %c : f32
    linalg.yield %v : f32
  } -> tensor<2x3x4xf32>
  %n = linalg.generic {indexing_maps = [#id2], iterator_types = ["parallel", "parallel"]} outs(%f : tensor<2x3xf32>) {
  ^bb0(%d: f32):
    %zero = arith.constant 0.0 : f32
    linalg.yield %zero : f32
  } -> tensor<2x3xf32>
  %r = linalg.generic {indexing_maps = [#id3, affine_map<(d0, d1, d2) -> (d0, d1)>], iterator_types = ["parallel", "parallel", "reduction"]} ins(%s : tensor<2x3x4xf32>) outs(%n : tensor<2x3xf32>) {
  ^bb0(%a: f32, %d: f32):
    %v = arith.addf %a, %d : f32
    linalg.yield %v : f32
  } -> tensor<2x3xf32>
  return %r : tensor<2x3xf32>
}

// Sizes that are known at run time are those of the reshape.
// CHECK-LABEL: func.func @dynamic_rows
// CHECK:         %[[P:.*]] = linalg.generic {{.*}} outs(%{{.*}} : tensor<?x4xf32>)
// CHECK:         %[[A:.*]] = linalg.generic {{.*}} iterator_types = ["parallel", "parallel"]} ins(%[[P]] : tensor<?x4xf32>)
// CHECK:         tensor.expand_shape %[[A]] {{\[\[}}0, 1], [2]] output_shape [%b, %t, 4] : tensor<?x4xf32> into tensor<?x?x4xf32>
func.func @dynamic_rows(%x: tensor<?x4xf32>, %b: index, %t: index) -> tensor<?x?x4xf32> {
  %p = linalg.generic {indexing_maps = [#id2, #id2], iterator_types = ["parallel", "parallel"]} ins(%x : tensor<?x4xf32>) outs(%x : tensor<?x4xf32>) {
  ^bb0(%a: f32, %o: f32):
    %v = math.exp %a : f32
    linalg.yield %v : f32
  } -> tensor<?x4xf32>
  %q = tensor.expand_shape %p [[0, 1], [2]] output_shape [%b, %t, 4] : tensor<?x4xf32> into tensor<?x?x4xf32>
  %e = tensor.empty(%b, %t) : tensor<?x?x4xf32>
  %s = linalg.generic {indexing_maps = [#id3, #id3], iterator_types = ["parallel", "parallel", "parallel"]} ins(%q : tensor<?x?x4xf32>) outs(%e : tensor<?x?x4xf32>) {
  ^bb0(%a: f32, %o: f32):
    %v = math.rsqrt %a : f32
    linalg.yield %v : f32
  } -> tensor<?x?x4xf32>
  return %s : tensor<?x?x4xf32>
}

// Heads that change places, a scale of heads alone, and a sum over one of the dims keep their loops.
// CHECK-LABEL: func.func @no_loops_to_join
// CHECK-COUNT-3: linalg.generic {{.*}} ins(%{{.*}} : tensor<2x3x4xf32>
func.func @no_loops_to_join(%x: tensor<6x4xf32>, %h: tensor<3xf32>, %f: tensor<2x4xf32>) -> (tensor<3x2x4xf32>, tensor<2x3x4xf32>, tensor<2x4xf32>) {
  %e = tensor.empty() : tensor<2x3x4xf32>
  %t = tensor.empty() : tensor<3x2x4xf32>
  %p = linalg.generic {indexing_maps = [#id2, #id2], iterator_types = ["parallel", "parallel"]} ins(%x : tensor<6x4xf32>) outs(%x : tensor<6x4xf32>) {
  ^bb0(%a: f32, %o: f32):
    %v = math.exp %a : f32
    linalg.yield %v : f32
  } -> tensor<6x4xf32>
  %q = tensor.expand_shape %p [[0, 1], [2]] output_shape [2, 3, 4] : tensor<6x4xf32> into tensor<2x3x4xf32>
  %r = linalg.generic {indexing_maps = [#id3, affine_map<(d0, d1, d2) -> (d1, d0, d2)>], iterator_types = ["parallel", "parallel", "parallel"]} ins(%q : tensor<2x3x4xf32>) outs(%t : tensor<3x2x4xf32>) {
  ^bb0(%a: f32, %o: f32):
    linalg.yield %a : f32
  } -> tensor<3x2x4xf32>
  %s = linalg.generic {indexing_maps = [#id3, affine_map<(d0, d1, d2) -> (d1)>, #id3], iterator_types = ["parallel", "parallel", "parallel"]} ins(%q, %h : tensor<2x3x4xf32>, tensor<3xf32>) outs(%e : tensor<2x3x4xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %v = arith.mulf %a, %b : f32
    linalg.yield %v : f32
  } -> tensor<2x3x4xf32>
  %u = linalg.generic {indexing_maps = [#id3, affine_map<(d0, d1, d2) -> (d0, d2)>], iterator_types = ["parallel", "reduction", "parallel"]} ins(%q : tensor<2x3x4xf32>) outs(%f : tensor<2x4xf32>) {
  ^bb0(%a: f32, %o: f32):
    %v = arith.addf %a, %o : f32
    linalg.yield %v : f32
  } -> tensor<2x4xf32>
  return %r, %s, %u : tensor<3x2x4xf32>, tensor<2x3x4xf32>, tensor<2x4xf32>
}
