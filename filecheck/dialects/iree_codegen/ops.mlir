// RUN: xdsl-opt %s | xdsl-opt | filecheck %s
// RUN: xdsl-opt --print-op-generic %s | xdsl-opt | filecheck %s

// CHECK:       func.func @config() attributes {translation_info = #iree_codegen.translation_info<pack>} {
// CHECK:         lowering_config = #iree_codegen.lowering_config<{group = 1 : i64, workgroup = [32 : i64, 0 : i64]}>
func.func @config() attributes {translation_info = #iree_codegen.translation_info<pack>} {
  %0 = arith.constant {lowering_config = #iree_codegen.lowering_config<{group = 1, workgroup = [32, 0]}>} 0 : index
  return
}

// CHECK-LABEL: func.func @buffers
// CHECK-NEXT:    %0 = iree_codegen.load_from_buffer %m : memref<4x?xf32> -> tensor<4x?xf32>
// CHECK-NEXT:    iree_codegen.store_to_buffer %0, %m : tensor<4x?xf32> into memref<4x?xf32>
func.func @buffers(%m: memref<4x?xf32>) {
  %0 = iree_codegen.load_from_buffer %m : memref<4x?xf32> -> tensor<4x?xf32>
  iree_codegen.store_to_buffer %0, %m : tensor<4x?xf32> into memref<4x?xf32>
  return
}

// CHECK-LABEL: func.func @mapping
// CHECK:         {mapping = [#iree_codegen.workgroup_mapping<y>, #iree_codegen.workgroup_mapping<z:2>]}
func.func @mapping() {
  scf.forall (%i, %j) = (0, 0) to (32, 8) step (16, 4) {
  } {mapping = [#iree_codegen.workgroup_mapping<y>, #iree_codegen.workgroup_mapping<z:2>]}
  return
}
