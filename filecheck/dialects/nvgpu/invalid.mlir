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
// CHECK: unsupported element type f32

// -----

func.func @few(%s: memref<8x8xf16, #gpu.address_space<workgroup>>, %i: index) {
  %0 = nvgpu.ldmatrix %s[%i, %i] {transpose = false, numTiles = 4 : i32} : memref<8x8xf16, #gpu.address_space<workgroup>> -> vector<2x2xf16>
  return
}
// CHECK: expected a result of four 32-bit words, one per matrix

// -----

func.func @long_rows(%a: memref<64x128xf16>) {
  %0 = nvgpu.warpgroup.generate.descriptor %a : memref<64x128xf16> -> !nvgpu.warpgroup.descriptor<tensor = memref<64x128xf16>>
  return
}
// CHECK: expected rows of 32, 64 or 128 bytes

// -----

func.func @short_steps(%a: memref<1x64x32xf16>) {
  %0 = nvgpu.warpgroup.generate.descriptor %a : memref<1x64x32xf16> -> !nvgpu.warpgroup.descriptor<tensor = memref<1x64x32xf16>>
  return
}
// CHECK: expected rows of 128 bytes in a 3-D memref

// -----

func.func @floats(%a: memref<64x32xf32>) {
  %0 = nvgpu.warpgroup.generate.descriptor %a : memref<64x32xf32> -> !nvgpu.warpgroup.descriptor<tensor = memref<64x32xf32>>
  return
}
// CHECK: unsupported element type f32

// -----

func.func @turned(%a: !nvgpu.warpgroup.descriptor<tensor = memref<64x64xf16>>, %c: !nvgpu.warpgroup.accumulator<fragmented = vector<64x64xf32>>) {
  %0 = nvgpu.warpgroup.mma %a, %a, %c {transposeB} : !nvgpu.warpgroup.descriptor<tensor = memref<64x64xf16>>, !nvgpu.warpgroup.descriptor<tensor = memref<64x64xf16>>, !nvgpu.warpgroup.accumulator<fragmented = vector<64x64xf32>> -> !nvgpu.warpgroup.accumulator<fragmented = vector<64x64xf32>>
  return
}
// CHECK: unsupported product of memref<64x64xf16> and memref<64x64xf16>

// -----

func.func @rows(%a: !nvgpu.warpgroup.descriptor<tensor = memref<128x64xf16>>, %c: !nvgpu.warpgroup.accumulator<fragmented = vector<64x128xf32>>) {
  %0 = nvgpu.warpgroup.mma %a, %a, %c : !nvgpu.warpgroup.descriptor<tensor = memref<128x64xf16>>, !nvgpu.warpgroup.descriptor<tensor = memref<128x64xf16>>, !nvgpu.warpgroup.accumulator<fragmented = vector<64x128xf32>> -> !nvgpu.warpgroup.accumulator<fragmented = vector<64x128xf32>>
  return
}
// CHECK: unsupported product of memref<128x64xf16> and memref<128x64xf16>

// -----

func.func @sums(%a: !nvgpu.warpgroup.descriptor<tensor = memref<64x64xf16>>, %c: !nvgpu.warpgroup.accumulator<fragmented = vector<64x128xf32>>) {
  %0 = nvgpu.warpgroup.mma %a, %a, %c : !nvgpu.warpgroup.descriptor<tensor = memref<64x64xf16>>, !nvgpu.warpgroup.descriptor<tensor = memref<64x64xf16>>, !nvgpu.warpgroup.accumulator<fragmented = vector<64x128xf32>> -> !nvgpu.warpgroup.accumulator<fragmented = vector<64x128xf32>>
  return
}
// CHECK: no accumulator of 64 x 64: vector<64x128xf32>

// -----

func.func @twice(%a: !nvgpu.warpgroup.descriptor<tensor = memref<64x64xf16>>, %c: !nvgpu.warpgroup.accumulator<fragmented = vector<64x64xf32>>) {
  %0 = nvgpu.warpgroup.mma %a, %a, %c : !nvgpu.warpgroup.descriptor<tensor = memref<64x64xf16>>, !nvgpu.warpgroup.descriptor<tensor = memref<64x64xf16>>, !nvgpu.warpgroup.accumulator<fragmented = vector<64x64xf32>> -> !nvgpu.warpgroup.accumulator<fragmented = vector<64x64xf32>>
  %1 = nvgpu.warpgroup.mma %a, %a, %c : !nvgpu.warpgroup.descriptor<tensor = memref<64x64xf16>>, !nvgpu.warpgroup.descriptor<tensor = memref<64x64xf16>>, !nvgpu.warpgroup.accumulator<fragmented = vector<64x64xf32>> -> !nvgpu.warpgroup.accumulator<fragmented = vector<64x64xf32>>
  return
}
// CHECK: expected the accumulator to have no other use

// -----

func.func @barriers() {
  %0 = nvgpu.mbarrier.create -> !nvgpu.mbarrier.group<memorySpace = #gpu.address_space<global>>
  return
}
// CHECK: expected at least one barrier, in shared memory

// -----

func.func @swizzle(%m: !nvgpu.tensormap.descriptor<tensor = memref<64x64xf16>, swizzle = swizzle_64b, l2promo = none, oob = zero, interleave = none>) {
  return
}
// CHECK: expected a swizzle of 32, 64 or 128 bytes, the size of a row

// -----

func.func @long_box(%m: !nvgpu.tensormap.descriptor<tensor = memref<257x64xf16>, swizzle = swizzle_128b, l2promo = none, oob = zero, interleave = none>) {
  return
}
// CHECK: a box has at most 5 dims, of 1 to 256

// -----

func.func @ranks(%x: memref<4x64x64xf16>, %n: index) {
  %0 = nvgpu.tma.create.descriptor %x box[%n, %n] : memref<4x64x64xf16> -> !nvgpu.tensormap.descriptor<tensor = memref<64x64xf16>, swizzle = swizzle_128b, l2promo = none, oob = zero, interleave = none>
  return
}
// CHECK: cannot copy memref<4x64x64xf16> in boxes memref<64x64xf16>

// -----

func.func @short_tile(%m: !nvgpu.tensormap.descriptor<tensor = memref<64x64xf16>, swizzle = swizzle_128b, l2promo = none, oob = zero, interleave = none>, %b: !nvgpu.mbarrier.group<memorySpace = #gpu.address_space<workgroup>>, %s: memref<32x64xf16>, %i: index) {
  nvgpu.tma.async.load %m[%i, %i], %b[%i] to %s : !nvgpu.tensormap.descriptor<tensor = memref<64x64xf16>, swizzle = swizzle_128b, l2promo = none, oob = zero, interleave = none>, !nvgpu.mbarrier.group<memorySpace = #gpu.address_space<workgroup>> -> memref<32x64xf16>
  return
}
// CHECK: cannot copy a box memref<64x64xf16> to memref<32x64xf16>

// -----

func.func @coordinates(%m: !nvgpu.tensormap.descriptor<tensor = memref<64x64xf16>, swizzle = swizzle_128b, l2promo = none, oob = zero, interleave = none>, %b: !nvgpu.mbarrier.group<memorySpace = #gpu.address_space<workgroup>>, %s: memref<64x64xf16>, %i: index) {
  nvgpu.tma.async.load %m[%i], %b[%i] to %s : !nvgpu.tensormap.descriptor<tensor = memref<64x64xf16>, swizzle = swizzle_128b, l2promo = none, oob = zero, interleave = none>, !nvgpu.mbarrier.group<memorySpace = #gpu.address_space<workgroup>> -> memref<64x64xf16>
  return
}
// CHECK: expected 2 coordinates for memref<64x64xf16>
