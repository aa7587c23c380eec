// RUN: xdsl-opt %s | xdsl-opt | filecheck %s
// RUN: xdsl-opt --print-op-generic %s | xdsl-opt | filecheck %s

// CHECK:       func.func @config() attributes {translation_info = #iree_codegen.translation_info<pack>} {
// CHECK:         lowering_config = #iree_codegen.lowering_config<{group = 1 : i64, workgroup = [32 : i64, 0 : i64]}>
func.func @config() attributes {translation_info = #iree_codegen.translation_info<pack>} {
  %0 = arith.constant {lowering_config = #iree_codegen.lowering_config<{group = 1, workgroup = [32, 0]}>} 0 : index
  return
}
