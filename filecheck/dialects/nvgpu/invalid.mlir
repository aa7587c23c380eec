// RUN: xdsl-opt %s --verify-diagnostics --split-input-file | filecheck %s

func.func @odd(%x: memref<8xf16>, %s: memref<8xf16, #gpu.address_space<workgroup>>, %i: index) {
  %0 = nvgpu.device_async_copy %x[%i], %s[%i], 3 : memref<8xf16> to memref<8xf16, #gpu.address_space<workgroup>>
  return
}
// CHECK: a copy takes 4, 8 or 16 bytes, not 6

// -----

func.func @wide(%s: memref<8x8xf32, #gpu.address_space<workgroup>>, %i: index) {
  %0 = nvgpu.ldmatrix %s[%i, %i] {transpose = true, numTiles = 4 : i32} : memref<8x8xf32, #gpu.address_space<workgroup>> -> vector<4x1xf32>
  return
}
// CHECK: no matrices of f32

// -----

func.func @few(%s: memref<8x8xf16, #gpu.address_space<workgroup>>, %i: index) {
  %0 = nvgpu.ldmatrix %s[%i, %i] {transpose = false, numTiles = 4 : i32} : memref<8x8xf16, #gpu.address_space<workgroup>> -> vector<2x2xf16>
  return
}
// CHECK: four matrices give four words of 32 bits
