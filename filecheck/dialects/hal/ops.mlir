// RUN: xdsl-opt %s | xdsl-opt | filecheck %s
// RUN: xdsl-opt --print-op-generic %s | xdsl-opt | filecheck %s

#layout = #hal.pipeline.layout<constants = 1, bindings = [
    #hal.pipeline.binding<storage_buffer, "ReadOnly|Indirect">,
    #hal.pipeline.binding<uniform_buffer>], flags = Indirect>

// CHECK-LABEL: func.func @interface
// CHECK:         hal.interface.constant.load layout(<constants = 1, bindings = [#hal.pipeline.binding<storage_buffer, "ReadOnly|Indirect">, #hal.pipeline.binding<uniform_buffer>], flags = Indirect>) ordinal(0) : index
// CHECK:         hal.interface.constant.load layout(<{{.*}}>) ordinal(0) alignment(4) values([1 : index]) : index
// CHECK:         hal.interface.binding.subspan layout(<{{.*}}>) binding(0) alignment(64) offset(%{{.*}}) flags("ReadOnly|Indirect") : !iree_tensor_ext.dispatch.tensor<readonly:tensor<?x32xf32>>{%{{.*}}}
// CHECK:         hal.interface.binding.subspan layout(<bindings = [#hal.pipeline.binding<storage_buffer>]>) binding(1) flags(Indirect) : memref<2x32xf32>
func.func @interface() {
  %c0 = arith.constant 0 : index
  %n = hal.interface.constant.load layout(#layout) ordinal(0) : index
  %m = hal.interface.constant.load layout(#layout) ordinal(0) alignment(4) values([1 : index]) : index
  %a = hal.interface.binding.subspan layout(#layout) binding(0) alignment(64) offset(%c0) flags("ReadOnly|Indirect") : !iree_tensor_ext.dispatch.tensor<readonly:tensor<?x32xf32>>{%n}
  %b = hal.interface.binding.subspan layout(<bindings = [#hal.pipeline.binding<storage_buffer>]>) binding(1) flags(Indirect) : memref<2x32xf32>
  return
}
