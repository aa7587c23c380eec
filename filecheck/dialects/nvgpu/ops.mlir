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
