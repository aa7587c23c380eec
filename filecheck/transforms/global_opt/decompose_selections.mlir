// RUN: xdsl-opt %s -p irees-decompose-selections | filecheck %s

// The comparator chooses between the element and the best so far, and between their places.
// CHECK-LABEL: func.func @arg_compare
// CHECK:         linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d0)>, affine_map<(d0, d1) -> (d0)>], iterator_types = ["parallel", "reduction"]} ins(%x : tensor<4x8xf32>) outs(%v, %i : tensor<4xf32>, tensor<4xi32>) {
// CHECK-NEXT:    ^bb0(%[[X:.*]]: f32, %[[V:.*]]: f32, %[[I:.*]]: i32):
// CHECK-NEXT:      %[[J:.*]] = linalg.index 1 : index
// CHECK-NEXT:      %[[AT:.*]] = arith.index_cast %[[J]] : index to i32
// CHECK-NEXT:      %[[C:.*]] = arith.cmpf ogt, %[[X]], %[[V]] : f32
// CHECK-NEXT:      arith.select %[[C]], %[[X]], %[[V]] : f32
// CHECK-NEXT:      arith.select %[[C]], %[[AT]], %[[I]] : i32
func.func @arg_compare(%x: tensor<4x8xf32>, %v: tensor<4xf32>, %i: tensor<4xi32>) -> (tensor<4xf32>, tensor<4xi32>) {
  %r:2 = iree_linalg_ext.arg_compare dimension(1) ins(%x : tensor<4x8xf32>) outs(%v, %i : tensor<4xf32>, tensor<4xi32>) {
  ^bb0(%l: f32, %m: f32):
    %c = arith.cmpf ogt, %l, %m : f32
    iree_linalg_ext.yield %c : i1
  } -> tensor<4xf32>, tensor<4xi32>
  return %r#0, %r#1 : tensor<4xf32>, tensor<4xi32>
}

// Counting may begin elsewhere.
// CHECK-LABEL: func.func @arg_compare_base
// CHECK:         linalg.generic {{.*}} iterator_types = ["reduction", "parallel"]} ins(%x : tensor<?x?xi8>)
// CHECK:           %[[J:.*]] = linalg.index 0 : index
// CHECK-NEXT:      arith.addi %[[J]], %base : index
func.func @arg_compare_base(%x: tensor<?x?xi8>, %v: tensor<?xi8>, %i: tensor<?xindex>, %base: index) -> (tensor<?xi8>, tensor<?xindex>) {
  %r:2 = iree_linalg_ext.arg_compare dimension(0) ins(%x : tensor<?x?xi8>) outs(%v, %i : tensor<?xi8>, tensor<?xindex>) index_base(%base : index) {
  ^bb0(%l: i8, %m: i8):
    %c = arith.cmpi slt, %l, %m : i8
    iree_linalg_ext.yield %c : i1
  } -> tensor<?xi8>, tensor<?xindex>
  return %r#0, %r#1 : tensor<?xi8>, tensor<?xindex>
}

// The outs stand before the input, and so before its equals.
// CHECK-LABEL: func.func @topk
// CHECK:         %[[A:.*]] = tensor.insert_slice %v into %{{.*}}[0, 0] [4, 2] [1, 1] : tensor<4x2xf32> into tensor<4x10xf32>
// CHECK-NEXT:    %[[X:.*]] = tensor.insert_slice %x into %[[A]][0, 2] [4, 8] [1, 1] : tensor<4x8xf32> into tensor<4x10xf32>
// CHECK:         %[[N:.*]] = linalg.generic {{.*}} outs(%{{.*}} : tensor<4x8xi32>)
// CHECK:           linalg.index 1 : index
// CHECK:         %[[B:.*]] = tensor.insert_slice %i into
// CHECK-NEXT:    %[[I:.*]] = tensor.insert_slice %[[N]] into %[[B]][0, 2]
// CHECK:         iree_linalg_ext.topk_v2 dimension(1) is_sorted ins(%[[X]], %[[I]] : tensor<4x10xf32>, tensor<4x10xi32>) outs(%{{.*}}, %{{.*}} : tensor<4x2xf32>, tensor<4x2xi32>)
func.func @topk(%x: tensor<4x8xf32>, %v: tensor<4x2xf32>, %i: tensor<4x2xi32>) -> (tensor<4x2xf32>, tensor<4x2xi32>) {
  %r:2 = iree_linalg_ext.topk dimension(1) ins(%x : tensor<4x8xf32>) outs(%v, %i : tensor<4x2xf32>, tensor<4x2xi32>) {
  ^bb0(%l: f32, %m: f32):
    %c = arith.cmpf ogt, %l, %m : f32
    iree_linalg_ext.yield %c : i1
  } -> tensor<4x2xf32>, tensor<4x2xi32>
  return %r#0, %r#1 : tensor<4x2xf32>, tensor<4x2xi32>
}

// In memory there is nothing to replace it by.
// CHECK-LABEL: func.func @no_memref
// CHECK:         iree_linalg_ext.arg_compare
func.func @no_memref(%x: memref<8xf32>, %v: memref<f32>, %i: memref<i32>) {
  iree_linalg_ext.arg_compare dimension(0) ins(%x : memref<8xf32>) outs(%v, %i : memref<f32>, memref<i32>) {
  ^bb0(%l: f32, %m: f32):
    %c = arith.cmpf ogt, %l, %m : f32
    iree_linalg_ext.yield %c : i1
  }
  return
}

// Outs without elements stay as they are.
// CHECK-LABEL: func.func @no_elements
// CHECK-NEXT:    func.return %v, %i
func.func @no_elements(%x: tensor<4x8xf32>, %v: tensor<4x0xf32>, %i: tensor<4x0xi32>) -> (tensor<4x0xf32>, tensor<4x0xi32>) {
  %r:2 = iree_linalg_ext.topk dimension(1) ins(%x : tensor<4x8xf32>) outs(%v, %i : tensor<4x0xf32>, tensor<4x0xi32>) {
  ^bb0(%l: f32, %m: f32):
    %c = arith.cmpf ogt, %l, %m : f32
    iree_linalg_ext.yield %c : i1
  } -> tensor<4x0xf32>, tensor<4x0xi32>
  return %r#0, %r#1 : tensor<4x0xf32>, tensor<4x0xi32>
}
