// RUN: xdsl-opt %s -p irees-drop-lowering-configs | filecheck %s

// Configs for kernels of IREE are dropped, other attributes stay.
// CHECK-LABEL: func.func @configs
// CHECK-NOT:     iree_
// CHECK:         math.exp
// CHECK-SAME:      note = 1
func.func @configs(%x: tensor<?xf32>) -> tensor<?xf32> attributes {translation_info = #iree_codegen.translation_info<pipeline = #iree_gpu.pipeline<VectorDistribute> workgroup_size = [64, 1, 1] subgroup_size = 64, {unroll}>} {
  %0 = math.exp %x {
    note = 1 : i64,
    lowering_config = #iree_cpu.lowering_config<distribution = [32, 32], vector_common_parallel = [1, [8], 0]>,
    compilation_info = #iree_codegen.compilation_info<
      lowering_config = #iree_codegen.lowering_config<{tile_sizes = [[64]]}>,
      translation_info = #iree_codegen.translation_info<pipeline = CPUDefault>>
  } : tensor<?xf32>
  return %0 : tensor<?xf32>
}

// CHECK-LABEL: func.func @no_configs
// CHECK-SAME:    attributes {note = 2 : i64}
func.func @no_configs() attributes {note = 2 : i64} {
  return
}
