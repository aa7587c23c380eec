// RUN: xdsl-opt %s -p irees-propagate-reshapes-by-expansion | filecheck %s

#layout = #hal.pipeline.layout<constants = 3, bindings = [#hal.pipeline.binding<storage_buffer>]>

// The copy works on the dims in front of the collapse, and so does what it is stored to.
// CHECK-LABEL: func.func @down_to_buffer
// CHECK-NEXT:    %[[E:.*]] = tensor.expand_shape %d {{.*}} output_shape [3, 4]
// CHECK-NEXT:    %[[Y:.*]] = linalg.copy ins(%x : tensor<3x4xf16>) outs(%[[E]] : tensor<3x4xf16>)
// CHECK-NEXT:    %[[M:.*]] = memref.expand_shape %m {{.*}} : memref<12xf16> into memref<3x4xf16>
// CHECK-NEXT:    iree_codegen.store_to_buffer %[[Y]], %[[M]] : tensor<3x4xf16> into memref<3x4xf16>
func.func @down_to_buffer(%x: tensor<3x4xf16>, %d: tensor<12xf16>, %m: memref<12xf16>) {
  %c = tensor.collapse_shape %x [[0, 1]] : tensor<3x4xf16> into tensor<12xf16>
  %y = linalg.copy ins(%c : tensor<12xf16>) outs(%d : tensor<12xf16>) -> tensor<12xf16>
  iree_codegen.store_to_buffer %y, %m : tensor<12xf16> into memref<12xf16>
  return
}

// A config is one for the loops that there are.
// CHECK-LABEL: func.func @no_config
// CHECK-NEXT:    tensor.collapse_shape
// CHECK-NEXT:    linalg.copy
func.func @no_config(%x: tensor<3x4xf16>, %d: tensor<12xf16>) -> tensor<12xf16> {
  %c = tensor.collapse_shape %x [[0, 1]] : tensor<3x4xf16> into tensor<12xf16>
  %y = linalg.copy {lowering_config = #iree_gpu.derived_thread_config} ins(%c : tensor<12xf16>) outs(%d : tensor<12xf16>) -> tensor<12xf16>
  return %y : tensor<12xf16>
}

// Dynamic dims: the sizes of the collapse's source are those of all operands.
// CHECK-LABEL: func.func @dynamic
// CHECK:         %[[N:.*]] = tensor.dim %x
// CHECK:         %[[B:.*]] = tensor.expand_shape %b {{.*}} output_shape [%[[N]], 4]
// CHECK:         %[[Y:.*]] = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2) -> (d0, d1, d2)>, affine_map<(d0, d1, d2) -> (d0, d1)>], iterator_types = ["parallel", "parallel", "reduction"]} ins(%x : tensor<?x4x8xf32>) outs(%[[B]] : tensor<?x4xf32>)
// CHECK:         tensor.collapse_shape %[[Y]] {{.*}} : tensor<?x4xf32> into tensor<?xf32>
func.func @dynamic(%x: tensor<?x4x8xf32>, %b: tensor<?xf32>) -> tensor<?xf32> {
  %c = tensor.collapse_shape %x [[0, 1], [2]] : tensor<?x4x8xf32> into tensor<?x8xf32>
  %y = linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d0)>], iterator_types = ["parallel", "reduction"]} ins(%c : tensor<?x8xf32>) outs(%b : tensor<?xf32>) {
  ^bb0(%p: f32, %q: f32):
    %s = arith.addf %p, %q : f32
    linalg.yield %s : f32
  } -> tensor<?xf32>
  return %y : tensor<?xf32>
}

// A body that asks for the index of a loop keeps the loop.
// CHECK-LABEL: func.func @no_index
// CHECK:         tensor.collapse_shape %x
// CHECK:         linalg.index 0
func.func @no_index(%x: tensor<3x4xindex>, %o: tensor<12xindex>) -> tensor<12xindex> {
  %c = tensor.collapse_shape %x [[0, 1]] : tensor<3x4xindex> into tensor<12xindex>
  %y = linalg.generic {indexing_maps = [affine_map<(d0) -> (d0)>, affine_map<(d0) -> (d0)>], iterator_types = ["parallel"]} ins(%c : tensor<12xindex>) outs(%o : tensor<12xindex>) {
  ^bb0(%p: index, %q: index):
    %i = linalg.index 0 : index
    %s = arith.addi %p, %i : index
    linalg.yield %s : index
  } -> tensor<12xindex>
  return %y : tensor<12xindex>
}

// An expand goes up to the load, through the op.
// CHECK-LABEL: func.func @up_to_load
// CHECK:         iree_codegen.load_from_buffer %{{.*}} : memref<3x4xf32> -> tensor<3x4xf32>
// CHECK-NOT:     tensor.expand_shape
// CHECK:         linalg.generic
// CHECK-SAME:      outs(%{{.*}} : tensor<3x4xf32>)
// CHECK-NOT:     tensor.expand_shape
func.func @up_to_load(%m: memref<12xf32>) -> tensor<3x4xf32> {
  %x = iree_codegen.load_from_buffer %m : memref<12xf32> -> tensor<12xf32>
  %o = tensor.empty() : tensor<12xf32>
  %y = linalg.generic {indexing_maps = [affine_map<(d0) -> (d0)>, affine_map<(d0) -> (d0)>], iterator_types = ["parallel"]} ins(%x : tensor<12xf32>) outs(%o : tensor<12xf32>) {
  ^bb0(%p: f32, %q: f32):
    %s = arith.negf %p : f32
    linalg.yield %s : f32
  } -> tensor<12xf32>
  %e = tensor.expand_shape %y [[0, 1]] output_shape [3, 4] : tensor<12xf32> into tensor<3x4xf32>
  return %e : tensor<3x4xf32>
}

// Workgroups that write collapsed tiles write tiles of an expanded destination.
// CHECK-LABEL: func.func @forall
// CHECK:         %[[T:.*]] = hal.interface.binding.subspan {{.*}} : !iree_tensor_ext.dispatch.tensor<writeonly:tensor<4x8xf32>>
// CHECK:         %[[D:.*]] = tensor.empty() : tensor<4x8xf32>
// CHECK:         %[[F:.*]] = scf.forall (%[[I:.*]]) = (0) to (32) step (16) shared_outs(%[[O:.*]] = %[[D]]) -> (tensor<4x8xf32>) {
// CHECK:           %[[A:.*]] = affine.apply affine_map<()[s0] -> ((s0 floordiv 8))> ()[%[[I]]]
// CHECK:           tensor.extract_slice %[[O]][%[[A]], 0] [2, 8] [1, 1] : tensor<4x8xf32> to tensor<2x8xf32>
// CHECK:           tensor.parallel_insert_slice %{{.*}} into %[[O]][%[[A]], 0] [2, 8] [1, 1] : tensor<2x8xf32> into tensor<4x8xf32>
// CHECK:         iree_tensor_ext.dispatch.tensor.store %[[F]], %[[T]], offsets = [0, 0], sizes = [4, 8]
func.func @forall() {
  %t = hal.interface.binding.subspan layout(#layout) binding(0) : !iree_tensor_ext.dispatch.tensor<writeonly:tensor<32xf32>>
  %d = tensor.empty() : tensor<32xf32>
  %r = scf.forall (%i) = (0) to (32) step (16) shared_outs(%o = %d) -> (tensor<32xf32>) {
    %s = tensor.extract_slice %o[%i] [16] [1] : tensor<32xf32> to tensor<16xf32>
    %e = tensor.expand_shape %s [[0, 1]] output_shape [2, 8] : tensor<16xf32> into tensor<2x8xf32>
    %b = util.optimization_barrier %e : tensor<2x8xf32>
    %c = tensor.collapse_shape %b [[0, 1]] : tensor<2x8xf32> into tensor<16xf32>
    scf.forall.in_parallel {
      tensor.parallel_insert_slice %c into %o[%i] [16] [1] : tensor<16xf32> into tensor<32xf32>
    }
  } {mapping = [#iree_codegen.workgroup_mapping<x>]}
  iree_tensor_ext.dispatch.tensor.store %r, %t, offsets = [0], sizes = [32], strides = [1] : tensor<32xf32> -> !iree_tensor_ext.dispatch.tensor<writeonly:tensor<32xf32>>
  return
}

// A tile that starts inside of a row of 8 is no tile of rows: IREE would start at 4 floordiv 8 = 0.
// CHECK-LABEL: func.func @no_odd_step
// CHECK:         scf.forall
// CHECK-SAME:      -> (tensor<40xf32>) {
func.func @no_odd_step() {
  %t = hal.interface.binding.subspan layout(#layout) binding(0) : !iree_tensor_ext.dispatch.tensor<writeonly:tensor<40xf32>>
  %d = tensor.empty() : tensor<40xf32>
  %r = scf.forall (%i) = (4) to (36) step (16) shared_outs(%o = %d) -> (tensor<40xf32>) {
    %s = tensor.extract_slice %o[%i] [16] [1] : tensor<40xf32> to tensor<16xf32>
    %e = tensor.expand_shape %s [[0, 1]] output_shape [2, 8] : tensor<16xf32> into tensor<2x8xf32>
    %b = util.optimization_barrier %e : tensor<2x8xf32>
    %c = tensor.collapse_shape %b [[0, 1]] : tensor<2x8xf32> into tensor<16xf32>
    scf.forall.in_parallel {
      tensor.parallel_insert_slice %c into %o[%i] [16] [1] : tensor<16xf32> into tensor<40xf32>
    }
  } {mapping = [#iree_codegen.workgroup_mapping<x>]}
  iree_tensor_ext.dispatch.tensor.store %r, %t, offsets = [0], sizes = [40], strides = [1] : tensor<40xf32> -> !iree_tensor_ext.dispatch.tensor<writeonly:tensor<40xf32>>
  return
}

// What a loop carries has the shape that its body works on.
// CHECK-LABEL: func.func @for
// CHECK:         %[[E:.*]] = tensor.expand_shape %x
// CHECK:         %[[R:.*]] = scf.for {{.*}} iter_args(%[[A:.*]] = %[[E]]) -> (tensor<4x4xf32>)
// CHECK-NEXT:      %[[B:.*]] = util.optimization_barrier %[[A]]
// CHECK-NEXT:      scf.yield %[[B]]
// CHECK:         tensor.collapse_shape %[[R]]
func.func @for(%x: tensor<16xf32>, %n: index, %k: index) -> tensor<16xf32> {
  %r = scf.for %i = %n to %k step %k iter_args(%a = %x) -> tensor<16xf32> {
    %e = tensor.expand_shape %a [[0, 1]] output_shape [4, 4] : tensor<16xf32> into tensor<4x4xf32>
    %b = util.optimization_barrier %e : tensor<4x4xf32>
    %c = tensor.collapse_shape %b [[0, 1]] : tensor<4x4xf32> into tensor<16xf32>
    scf.yield %c : tensor<16xf32>
  }
  return %r : tensor<16xf32>
}

// A bitcast of the last dim goes up through a slice of others.
// CHECK-LABEL: func.func @bitcast
// CHECK-NEXT:    %[[B:.*]] = iree_tensor_ext.bitcast %x : tensor<3x6xi8> -> tensor<3x3xi16>
// CHECK-NEXT:    tensor.extract_slice %[[B]][0, 0] [2, 3] [1, 1] : tensor<3x3xi16> to tensor<2x3xi16>
func.func @bitcast(%x: tensor<3x6xi8>) -> tensor<2x3xi16> {
  %s = tensor.extract_slice %x[0, 0] [2, 6] [1, 1] : tensor<3x6xi8> to tensor<2x6xi8>
  %b = iree_tensor_ext.bitcast %s : tensor<2x6xi8> -> tensor<2x3xi16>
  return %b : tensor<2x3xi16>
}
