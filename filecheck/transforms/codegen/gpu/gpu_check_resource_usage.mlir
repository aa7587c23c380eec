// RUN: irees opt %s -p irees-gpu-check-resource-usage | filecheck %s
// RUN: irees opt %s -p 'irees-assign-target{facts="gpu.shared_opt_in_bytes=512"},irees-gpu-check-resource-usage' | filecheck %s
// RUN: not irees opt %s -p 'irees-assign-target{facts="gpu.shared_opt_in_bytes=511"},irees-gpu-check-resource-usage' 2>&1 | filecheck %s --check-prefix TOO-MUCH

// TOO-MUCH: gpu_check_resource_usage.mlir:9:3: error: func.func: uses 512 bytes of shared memory; exceeded the limit of 511 bytes

// An index takes eight bytes; private memory is not shared.
// CHECK-LABEL: func.func @fits
  func.func @fits() {
    %a = memref.alloc() : memref<8x8xindex, #gpu.address_space<workgroup>>
    %b = memref.alloc() : memref<65536xf32, #gpu.address_space<private>>
    return
  }

  // Two launches, one after the other, of 512 and 256 bytes.
  // CHECK-LABEL: func.func @launches
  func.func @launches() {
    scf.forall (%i) in (4) {
      %a = memref.alloc() : memref<512xi8, #gpu.address_space<workgroup>>
    } {mapping = [#gpu.block<x>]}
    scf.forall (%i) in (4) {
      %a = memref.alloc() : memref<256xi8, #gpu.address_space<workgroup>>
    } {mapping = [#gpu.block<x>]}
    return
  }

  // So do barriers of eight bytes.
  // CHECK-LABEL: func.func @barriers
  func.func @barriers() {
    %a = memref.alloc() : memref<480xi8, #gpu.address_space<workgroup>>
    %b = nvgpu.mbarrier.create -> !nvgpu.mbarrier.group<memorySpace = #gpu.address_space<workgroup>, num_barriers = 4>
    return
  }
