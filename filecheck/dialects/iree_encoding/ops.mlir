// RUN: xdsl-opt %s | xdsl-opt | filecheck %s
// RUN: xdsl-opt --print-op-generic %s | xdsl-opt | filecheck %s

// CHECK-LABEL: func.func @testing
// CHECK-NEXT:    %0 = iree_encoding.set_encoding %x : tensor<?x4xf32> -> tensor<?x4xf32, #iree_encoding.testing<>>
// CHECK-NEXT:    %1 = iree_encoding.unset_encoding %0 : tensor<?x4xf32, #iree_encoding.testing<>> -> tensor<?x4xf32>{%n}
func.func @testing(%x: tensor<?x4xf32>, %n: index) -> tensor<?x4xf32> {
  %0 = iree_encoding.set_encoding %x : tensor<?x4xf32> -> tensor<?x4xf32, #iree_encoding.testing<>>
  %1 = iree_encoding.unset_encoding %0 : tensor<?x4xf32, #iree_encoding.testing<>> -> tensor<?x4xf32>{%n}
  return %1 : tensor<?x4xf32>
}

// CHECK-LABEL: func.func @contraction
// CHECK-NEXT:    iree_encoding.set_encoding %x encoding_dims{%m, %n} : tensor<8x4xf32> -> tensor<8x4xf32, #iree_encoding.encoding<operand_index = 0 : i64, op_type = matmul, element_types = [f32, f32, f32], user_indexing_maps = [affine_map<(d0, d1, d2) -> (d0, d2)>, affine_map<(d0, d1, d2) -> (d2, d1)>, affine_map<(d0, d1, d2) -> (d0, d1)>], iteration_sizes = [?, ?, 4]>>
// CHECK-NEXT:    iree_encoding.unset_encoding %{{.*}} encoding_dims{%m, %n}
func.func @contraction(%x: tensor<8x4xf32>, %m: index, %n: index) -> tensor<8x4xf32> {
  %0 = iree_encoding.set_encoding %x encoding_dims {%m, %n} : tensor<8x4xf32> -> tensor<8x4xf32, #iree_encoding.encoding<operand_index = 0 : i64, op_type = matmul, element_types = [f32, f32, f32], user_indexing_maps = [affine_map<(d0, d1, d2) -> (d0, d2)>, affine_map<(d0, d1, d2) -> (d2, d1)>, affine_map<(d0, d1, d2) -> (d0, d1)>], iteration_sizes = [?, ?, 4]>>
  %1 = iree_encoding.unset_encoding %0 encoding_dims {%m, %n} : tensor<8x4xf32, #iree_encoding.encoding<operand_index = 0 : i64, op_type = matmul, element_types = [f32, f32, f32], user_indexing_maps = [affine_map<(d0, d1, d2) -> (d0, d2)>, affine_map<(d0, d1, d2) -> (d2, d1)>, affine_map<(d0, d1, d2) -> (d0, d1)>], iteration_sizes = [?, ?, 4]>> -> tensor<8x4xf32>
  return %1 : tensor<8x4xf32>
}

// CHECK-LABEL: func.func @others(
// CHECK-SAME:      %a: tensor<4xf32, #iree_encoding.testing<layouts = [#iree_encoding.specialized<123>]>>
// CHECK-SAME:      %b: tensor<4xf32, #iree_encoding.layout<[#iree_encoding.padding<[0, ?, 64]>]>>
// CHECK-SAME:      %c: tensor<4xi1, #iree_encoding.packed_storage>
// CHECK-SAME:      %d: tensor<4xf32, #iree_encoding.identity>
// CHECK-SAME:      %e: tensor<4xf32, #iree_encoding.specialized<7, tensor<?xf32>>>
// CHECK-SAME:      %f: tensor<4xf32, #iree_encoding.unknown>
func.func @others(
    %a: tensor<4xf32, #iree_encoding.testing<layouts = [#iree_encoding.specialized<123>]>>,
    %b: tensor<4xf32, #iree_encoding.layout<[#iree_encoding.padding<[0, ?, 64]>]>>,
    %c: tensor<4xi1, #iree_encoding.packed_storage>,
    %d: tensor<4xf32, #iree_encoding.identity>,
    %e: tensor<4xf32, #iree_encoding.specialized<7, tensor<?xf32>>>,
    %f: tensor<4xf32, #iree_encoding.unknown>) {
  return
}
