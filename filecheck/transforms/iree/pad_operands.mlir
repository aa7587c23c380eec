// RUN: xdsl-opt %s -p irees-pad-operands | filecheck %s
// RUN: irees opt %s -p irees-pad-operands --remarks 2>&1 >%t.out | filecheck %s --check-prefix REMARK

#config = #iree_gpu.lowering_config<{padding = [3, 7, 11]}>
#mine = #iree_codegen.lowering_config<{padding = [4, 0]}>
#rows = #iree_codegen.lowering_config<{padding = [4, 8]}>
#window = #iree_codegen.lowering_config<{padding = [1, 4]}>

// The two zeros of a product have the sum of no element: x + -0 = x, for x = -0 too.
// CHECK-LABEL: func.func @matmul
// CHECK:         %[[A:.*]] = tensor.pad %a low[0, 0] high[1, 10] {
// CHECK:           arith.constant 0.000000e+00 : f32
// CHECK:         } : tensor<32x1024xf32> to tensor<33x1034xf32>
// CHECK:         %[[B:.*]] = tensor.pad %b low[0, 0] high[10, 5] {
// CHECK:           arith.constant -0.000000e+00 : f32
// CHECK:         %[[E:.*]] = tensor.empty() : tensor<33x133xf32>
// CHECK:         %[[F:.*]] = linalg.fill ins(%cst : f32) outs(%[[E]]
// CHECK:         %[[P:.*]] = linalg.matmul {{.*}} ins(%[[A]], %[[B]] : tensor<33x1034xf32>, tensor<1034x133xf32>) outs(%[[F]]
// CHECK:         tensor.extract_slice %[[P]][0, 0] [32, 128] [1, 1]
// REMARK:        padded to {0: 33, 1: 133, 2: 1034}
func.func @matmul(%a: tensor<32x1024xf32>, %b: tensor<1024x128xf32>) -> tensor<32x128xf32> {
  %cst = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<32x128xf32>
  %f = linalg.fill ins(%cst : f32) outs(%e : tensor<32x128xf32>) -> tensor<32x128xf32>
  %r = linalg.matmul {lowering_config = #config} ins(%a, %b : tensor<32x1024xf32>, tensor<1024x128xf32>)
      outs(%f : tensor<32x128xf32>) -> tensor<32x128xf32>
  return %r : tensor<32x128xf32>
}

// A multiple of 0 is one of 1; a maximum is padded with -inf; what is bounded becomes static.
// CHECK-LABEL: func.func @bounded_maximum
// CHECK:         %[[H:.*]] = arith.subi %{{.*}}, %{{.*}} : index
// CHECK:         %[[X:.*]] = tensor.pad %{{.*}} low[0, 0] high[%[[H]], 0]
// CHECK:         : tensor<?x20xf32> to tensor<100x20xf32>
// CHECK:         linalg.generic {{.*}} ins(%[[X]] : tensor<100x20xf32>) outs(%{{.*}} : tensor<100xf32>)
// CHECK:         tensor.extract_slice %{{.*}}[0] [%{{.*}}] [1] : tensor<100xf32> to tensor<?xf32>
// REMARK:        padded to {0: 100}
func.func @bounded_maximum(%x: tensor<200x20xf32>, %raw: index) -> tensor<?xf32> {
  %n = util.assume.int %raw<umin = 0, umax = 98> : index
  %s = tensor.extract_slice %x[0, 0] [%n, 20] [1, 1] : tensor<200x20xf32> to tensor<?x20xf32>
  %e = tensor.empty(%n) : tensor<?xf32>
  %r = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i)>],
      iterator_types = ["parallel", "reduction"]} ins(%s : tensor<?x20xf32>) outs(%e : tensor<?xf32>)
      attrs = {lowering_config = #mine} {
  ^bb0(%v: f32, %acc: f32):
    %m = arith.maximumf %v, %acc : f32
    linalg.yield %m : f32
  } -> tensor<?xf32>
  return %r : tensor<?xf32>
}

// CHECK-LABEL: func.func @neutral
// CHECK:         tensor.pad %x low[0, 0] high[0, 4]
// CHECK:           arith.constant 0xFF800000 : f32
func.func @neutral(%x: tensor<16x20xf32>, %o: tensor<16xf32>) -> tensor<16xf32> {
  %r = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i)>],
      iterator_types = ["parallel", "reduction"]} ins(%x : tensor<16x20xf32>) outs(%o : tensor<16xf32>)
      attrs = {lowering_config = #rows} {
  ^bb0(%v: f32, %acc: f32):
    %m = arith.maximumf %v, %acc : f32
    linalg.yield %m : f32
  } -> tensor<16xf32>
  return %r : tensor<16xf32>
}

// Zeros would be exp(0) = 1 in this sum: outside, the accumulator stays.
// CHECK-LABEL: func.func @any_body
// CHECK:         %[[P:.*]] = arith.addf
// CHECK:         %[[J:.*]] = linalg.index 1
// CHECK:         %[[IN:.*]] = arith.cmpi ult, %[[J]], %{{.*}} : index
// CHECK:         arith.select %[[IN]], %[[P]], %acc : f32
func.func @any_body(%x: tensor<16x20xf32>, %o: tensor<16xf32>) -> tensor<16xf32> {
  %r = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i)>],
      iterator_types = ["parallel", "reduction"]} ins(%x : tensor<16x20xf32>) outs(%o : tensor<16xf32>)
      attrs = {lowering_config = #rows} {
  ^bb0(%v: f32, %acc: f32):
    %p = math.exp %v : f32
    %s = arith.addf %p, %acc : f32
    linalg.yield %s : f32
  } -> tensor<16xf32>
  return %r : tensor<16xf32>
}

// An op that cannot be padded stays, and says why.
// CHECK-LABEL: func.func @unbounded
// CHECK-NOT:     tensor.pad
// REMARK:        not padded: loop 0 has no known upper bound
func.func @unbounded(%x: tensor<?x20xf32>, %o: tensor<?xf32>) -> tensor<?xf32> {
  %r = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i)>],
      iterator_types = ["parallel", "reduction"]} ins(%x : tensor<?x20xf32>) outs(%o : tensor<?xf32>)
      attrs = {lowering_config = #rows} {
  ^bb0(%v: f32, %acc: f32):
    %m = arith.maximumf %v, %acc : f32
    linalg.yield %m : f32
  } -> tensor<?xf32>
  return %r : tensor<?xf32>
}

// CHECK-LABEL: func.func @window
// CHECK-NOT:     tensor.pad
// REMARK:        not padded: operand 0 is indexed by (d0 + d1)
func.func @window(%x: tensor<11xf32>, %w: tensor<3xf32>, %o: tensor<9xf32>) -> tensor<9xf32> {
  %r = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i + j)>, affine_map<(i, j) -> (j)>, affine_map<(i, j) -> (i)>],
      iterator_types = ["parallel", "reduction"]} ins(%x, %w : tensor<11xf32>, tensor<3xf32>) outs(%o : tensor<9xf32>)
      attrs = {lowering_config = #window} {
  ^bb0(%v: f32, %k: f32, %acc: f32):
    %m = arith.mulf %v, %k : f32
    %s = arith.addf %m, %acc : f32
    linalg.yield %s : f32
  } -> tensor<9xf32>
  return %r : tensor<9xf32>
}

// CHECK-LABEL: func.func @division
// CHECK-NOT:     tensor.pad
// REMARK:        not padded: arith.divsi may not be computed in the padding
func.func @division(%x: tensor<5x5xi32>, %y: tensor<5x5xi32>, %o: tensor<5x5xi32>) -> tensor<5x5xi32> {
  %r = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i, j)>],
      iterator_types = ["parallel", "parallel"]} ins(%x, %y : tensor<5x5xi32>, tensor<5x5xi32>) outs(%o : tensor<5x5xi32>)
      attrs = {lowering_config = #rows} {
  ^bb0(%a: i32, %b: i32, %c: i32):
    %d = arith.divsi %a, %b : i32
    linalg.yield %d : i32
  } -> tensor<5x5xi32>
  return %r : tensor<5x5xi32>
}
