// RUN: xdsl-opt %s | xdsl-opt | filecheck %s
// RUN: xdsl-opt --print-op-generic %s | xdsl-opt | filecheck %s

#shared = #gpu.address_space<workgroup>

// Two copies on their way, of which the second reads what there is.
// CHECK-LABEL: func.func @copies
// CHECK-NEXT:    %0 = nvgpu.device_async_copy %x[%i, %i], %s[%i, %i], 8 : memref<64x64xf16> to memref<64x40xf16, #gpu.address_space<workgroup>>
// CHECK-NEXT:    %1 = nvgpu.device_async_copy %x[%i, %i], %s[%i, %i], 8, %n {bypassL1} : memref<64x64xf16> to memref<64x40xf16, #gpu.address_space<workgroup>>
// CHECK-NEXT:    %2 = nvgpu.device_async_create_group %0, %1
// CHECK-NEXT:    nvgpu.device_async_wait %2 {numGroups = 1 : i32}
func.func @copies(%x: memref<64x64xf16>, %s: memref<64x40xf16, #shared>, %i: index, %n: index) {
  %0 = nvgpu.device_async_copy %x[%i, %i], %s[%i, %i], 8 : memref<64x64xf16> to memref<64x40xf16, #shared>
  %1 = nvgpu.device_async_copy %x[%i, %i], %s[%i, %i], 8, %n {bypassL1} : memref<64x64xf16> to memref<64x40xf16, #shared>
  %2 = nvgpu.device_async_create_group %0, %1
  nvgpu.device_async_wait %2 {numGroups = 1 : i32}
  return
}

// CHECK-LABEL: func.func @ldmatrix
// CHECK-NEXT:    %{{.*}} = nvgpu.ldmatrix %s[%i, %i] {transpose = true, numTiles = 4 : i32} : memref<64x40xf16, #gpu.address_space<workgroup>> -> vector<4x2xf16>
func.func @ldmatrix(%s: memref<64x40xf16, #shared>, %i: index) -> vector<4x2xf16> {
  %0 = nvgpu.ldmatrix %s[%i, %i] {transpose = true, numTiles = 4 : i32} : memref<64x40xf16, #shared> -> vector<4x2xf16>
  return %0 : vector<4x2xf16>
}

// Half floats in rows of 128 bytes; of the second matrix rows are steps of the reduction.
// CHECK-LABEL: func.func @warpgroup
// CHECK-NEXT:    %0 = nvgpu.warpgroup.generate.descriptor %a : memref<64x64xf16, #gpu.address_space<workgroup>> -> !nvgpu.warpgroup.descriptor<tensor = memref<64x64xf16, #gpu.address_space<workgroup>>>
// CHECK-NEXT:    %1 = nvgpu.warpgroup.generate.descriptor %b
// CHECK-NEXT:    %2 = nvgpu.warpgroup.mma.init.accumulator -> !nvgpu.warpgroup.accumulator<fragmented = vector<64x128xf32>>
// CHECK-NEXT:    %3 = nvgpu.warpgroup.mma %0, %1, %2 {waitGroup = 1 : i32, transposeB} : !nvgpu.warpgroup.descriptor<tensor = memref<64x64xf16, #gpu.address_space<workgroup>>>, !nvgpu.warpgroup.descriptor<tensor = memref<2x64x64xf16, #gpu.address_space<workgroup>>>, !nvgpu.warpgroup.accumulator<fragmented = vector<64x128xf32>> -> !nvgpu.warpgroup.accumulator<fragmented = vector<64x128xf32>>
func.func @warpgroup(%a: memref<64x64xf16, #shared>, %b: memref<2x64x64xf16, #shared>) {
  %0 = nvgpu.warpgroup.generate.descriptor %a : memref<64x64xf16, #shared> -> !nvgpu.warpgroup.descriptor<tensor = memref<64x64xf16, #shared>>
  %1 = nvgpu.warpgroup.generate.descriptor %b : memref<2x64x64xf16, #shared> -> !nvgpu.warpgroup.descriptor<tensor = memref<2x64x64xf16, #shared>>
  %2 = nvgpu.warpgroup.mma.init.accumulator -> !nvgpu.warpgroup.accumulator<fragmented = vector<64x128xf32>>
  %3 = nvgpu.warpgroup.mma %0, %1, %2 {waitGroup = 1 : i32, transposeB} : !nvgpu.warpgroup.descriptor<tensor = memref<64x64xf16, #shared>>, !nvgpu.warpgroup.descriptor<tensor = memref<2x64x64xf16, #shared>>, !nvgpu.warpgroup.accumulator<fragmented = vector<64x128xf32>> -> !nvgpu.warpgroup.accumulator<fragmented = vector<64x128xf32>>
  return
}

// A thread says how many bytes of a box a barrier is to count, all wait for the first phase of it.
// CHECK-LABEL: func.func @boxes
// CHECK-NEXT:    %0 = nvgpu.tma.create.descriptor %x box[%n, %n] : memref<?x64xf16> -> !nvgpu.tensormap.descriptor<tensor = memref<64x64xf16, #gpu.address_space<workgroup>>, swizzle = swizzle_128b, l2promo = none, oob = zero, interleave = none>
// CHECK-NEXT:    %1 = nvgpu.mbarrier.create -> !nvgpu.mbarrier.group<memorySpace = #gpu.address_space<workgroup>>
// CHECK-NEXT:    %2 = nvgpu.mbarrier.create -> !nvgpu.mbarrier.group<memorySpace = #gpu.address_space<workgroup>, num_barriers = 4>
// CHECK-NEXT:    nvgpu.mbarrier.init %2[%i], %n : !nvgpu.mbarrier.group<memorySpace = #gpu.address_space<workgroup>, num_barriers = 4>
// CHECK-NEXT:    nvgpu.mbarrier.arrive.expect_tx %2[%i], %n : !nvgpu.mbarrier.group<
// CHECK-NEXT:    %3 = nvgpu.mbarrier.arrive %2[%i] : !nvgpu.mbarrier.group<{{.*}}> -> !nvgpu.mbarrier.token
// CHECK-NEXT:    nvgpu.tma.async.load %0[%i, %n], %2[%i] to %s : !nvgpu.tensormap.descriptor<{{.*}}>, !nvgpu.mbarrier.group<{{.*}}> -> memref<64x64xf16, #gpu.address_space<workgroup>>
// CHECK-NEXT:    nvgpu.mbarrier.try_wait.parity %2[%i], %odd, %n : !nvgpu.mbarrier.group<
func.func @boxes(%x: memref<?x64xf16>, %s: memref<64x64xf16, #shared>, %i: index, %n: index, %odd: i1) {
  %0 = nvgpu.tma.create.descriptor %x box[%n, %n] : memref<?x64xf16> -> !nvgpu.tensormap.descriptor<tensor = memref<64x64xf16, #shared>, swizzle = swizzle_128b, l2promo = none, oob = zero, interleave = none>
  %1 = nvgpu.mbarrier.create -> !nvgpu.mbarrier.group<memorySpace = #shared>
  %2 = nvgpu.mbarrier.create -> !nvgpu.mbarrier.group<memorySpace = #shared, num_barriers = 4>
  nvgpu.mbarrier.init %2[%i], %n : !nvgpu.mbarrier.group<memorySpace = #shared, num_barriers = 4>
  nvgpu.mbarrier.arrive.expect_tx %2[%i], %n : !nvgpu.mbarrier.group<memorySpace = #shared, num_barriers = 4>
  %3 = nvgpu.mbarrier.arrive %2[%i] : !nvgpu.mbarrier.group<memorySpace = #shared, num_barriers = 4> -> !nvgpu.mbarrier.token
  nvgpu.tma.async.load %0[%i, %n], %2[%i] to %s : !nvgpu.tensormap.descriptor<tensor = memref<64x64xf16, #shared>, swizzle = swizzle_128b, l2promo = none, oob = zero, interleave = none>, !nvgpu.mbarrier.group<memorySpace = #shared, num_barriers = 4> -> memref<64x64xf16, #shared>
  nvgpu.mbarrier.try_wait.parity %2[%i], %odd, %n : !nvgpu.mbarrier.group<memorySpace = #shared, num_barriers = 4>
  return
}
