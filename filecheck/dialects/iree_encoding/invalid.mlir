// RUN: xdsl-opt %s --split-input-file --verify-diagnostics | filecheck %s

// CHECK: source of set_encoding op cannot have a tensor encoding
func.func @encoded_twice(%x: tensor<4xf32, #iree_encoding.testing<>>) {
  %0 = iree_encoding.set_encoding %x : tensor<4xf32, #iree_encoding.testing<>> -> tensor<4xf32, #iree_encoding.testing<>>
  return
}

// -----

// CHECK: result of set_encoding op expected to have a valid tensor encoding
func.func @no_encoding(%x: tensor<4xf32>) {
  %0 = iree_encoding.set_encoding %x : tensor<4xf32> -> tensor<4xf32>
  return
}

// -----

// CHECK: cannot change the rank of the tensor
func.func @rank(%x: tensor<4xf32>) {
  %0 = iree_encoding.set_encoding %x : tensor<4xf32> -> tensor<4x1xf32, #iree_encoding.testing<>>
  return
}

// -----

// CHECK: expected to preserve the logical shape of the tensor
func.func @shape(%x: tensor<4xf32, #iree_encoding.testing<>>) {
  %0 = iree_encoding.unset_encoding %x : tensor<4xf32, #iree_encoding.testing<>> -> tensor<5xf32>
  return
}

// -----

// CHECK: result type set has 1 dynamic dimensions but 0 dimension values are attached
func.func @dims(%x: tensor<?xf32, #iree_encoding.testing<>>) {
  %0 = iree_encoding.unset_encoding %x : tensor<?xf32, #iree_encoding.testing<>> -> tensor<?xf32>
  return
}

// -----

// CHECK: encoding expects 1 dynamic encoding dimension(s), but 0 provided
func.func @encoding_dims(%x: tensor<4xf32>) {
  %0 = iree_encoding.set_encoding %x : tensor<4xf32> -> tensor<4xf32, #iree_encoding.encoding<operand_index = 0 : i64, op_type = matmul, element_types = [f32, f32, f32], user_indexing_maps = [affine_map<(m, n, k) -> (m, k)>], iteration_sizes = [?, 4, 4]>>
  return
}

// -----

// CHECK: expected the field op_type
func.func @fields(%x: tensor<4xf32, #iree_encoding.encoding<operand_index = 0 : i64>>) {
  return
}
