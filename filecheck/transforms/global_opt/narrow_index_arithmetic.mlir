// RUN: xdsl-opt %s -p irees-narrow-index-arithmetic | filecheck %s

#id = affine_map<(d0, d1) -> (d0, d1)>

// A mask and a ramp are computed from the indices of static loops in 32 bits.
// CHECK-LABEL: func.func @mask
// CHECK:           %[[I:.*]] = linalg.index 0 : index
// CHECK-NEXT:      %[[J:.*]] = linalg.index 1 : index
// CHECK-NEXT:      %[[N:.*]] = arith.index_castui %[[J]] : index to i32
// CHECK-NEXT:      %[[M:.*]] = arith.index_castui %[[I]] : index to i32
// CHECK-NEXT:      %[[D:.*]] = arith.subi %[[N]], %[[M]] : i32
// CHECK-NEXT:      %[[Z:.*]] = arith.constant 0 : i32
// CHECK-NEXT:      arith.cmpi sle, %[[D]], %[[Z]] : i32
// CHECK-NEXT:      arith.sitofp %[[D]] : i32 to f32
func.func @mask(%x: tensor<64x64xf32>, %e: tensor<64x64xf32>) -> tensor<64x64xf32> {
  %r = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]} ins(%x : tensor<64x64xf32>) outs(%e : tensor<64x64xf32>) {
  ^bb0(%a: f32, %o: f32):
    %i = linalg.index 0 : index
    %j = linalg.index 1 : index
    %zero = arith.constant 0 : index
    %d = arith.subi %j, %i : index
    %b = arith.cmpi sle, %d, %zero : index
    %k = arith.index_cast %d : index to i64
    %f = arith.sitofp %k : i64 to f32
    %s = arith.select %b, %a, %f : f32
    linalg.yield %s : f32
  } -> tensor<64x64xf32>
  return %r : tensor<64x64xf32>
}

// A product that exceeds 32 bits keeps its type, and so does the index of a loop of unknown length.
// CHECK-LABEL: func.func @wide
// CHECK:           arith.muli %{{.*}}, %{{.*}} : index
// CHECK-NEXT:      arith.cmpi slt, %{{.*}}, %{{.*}} : index
func.func @wide(%x: tensor<64x?xf32>, %e: tensor<64x?xf32>) -> tensor<64x?xf32> {
  %r = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]} ins(%x : tensor<64x?xf32>) outs(%e : tensor<64x?xf32>) {
  ^bb0(%a: f32, %o: f32):
    %i = linalg.index 0 : index
    %j = linalg.index 1 : index
    %large = arith.constant 1000000000 : index
    %m = arith.muli %i, %large : index
    %b = arith.cmpi slt, %j, %m : index
    %s = arith.select %b, %a, %o : f32
    linalg.yield %s : f32
  } -> tensor<64x?xf32>
  return %r : tensor<64x?xf32>
}

// Elements of 64 bits take wide lanes anyway.
// CHECK-LABEL: func.func @elements
// CHECK:           arith.cmpi slt, %{{.*}}, %{{.*}} : index
func.func @elements(%x: tensor<8x8xf64>, %e: tensor<8x8xf64>) -> tensor<8x8xf64> {
  %r = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]} ins(%x : tensor<8x8xf64>) outs(%e : tensor<8x8xf64>) {
  ^bb0(%a: f64, %o: f64):
    %i = linalg.index 0 : index
    %j = linalg.index 1 : index
    %b = arith.cmpi slt, %j, %i : index
    %s = arith.select %b, %a, %o : f64
    linalg.yield %s : f64
  } -> tensor<8x8xf64>
  return %r : tensor<8x8xf64>
}

// The index of a memory access keeps its 64 bits.
// CHECK-LABEL: func.func @access
// CHECK:           arith.remui %{{.*}}, %{{.*}} : index
func.func @access(%x: tensor<4x8xf32>, %e: tensor<8x8xf32>) -> tensor<8x8xf32> {
  %r = linalg.generic {indexing_maps = [#id], iterator_types = ["parallel", "parallel"]} outs(%e : tensor<8x8xf32>) {
  ^bb0(%o: f32):
    %i = linalg.index 0 : index
    %j = linalg.index 1 : index
    %four = arith.constant 4 : index
    %k = arith.remui %i, %four : index
    %v = tensor.extract %x[%k, %j] : tensor<4x8xf32>
    linalg.yield %v : f32
  } -> tensor<8x8xf32>
  return %r : tensor<8x8xf32>
}
