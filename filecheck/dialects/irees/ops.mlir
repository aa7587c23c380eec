// RUN: xdsl-opt %s | xdsl-opt | filecheck %s
// RUN: xdsl-opt --print-op-generic %s | xdsl-opt | filecheck %s

// CHECK-LABEL: func.func @ldexp
// CHECK-NEXT:    %0 = irees.ldexp %x, %n : f32
// CHECK-NEXT:    %1 = irees.ldexp %v, %w : vector<8xf32>
func.func @ldexp(%x: f32, %n: f32, %v: vector<8xf32>, %w: vector<8xf32>) {
  %0 = irees.ldexp %x, %n : f32
  %1 = irees.ldexp %v, %w : vector<8xf32>
  return
}

// CHECK-LABEL: func.func @scalef
// CHECK-NEXT:    %0 = irees.scalef %x, %n : f32
// CHECK-NEXT:    %1 = irees.scalef %v, %w : vector<16xf32>
func.func @scalef(%x: f32, %n: f32, %v: vector<16xf32>, %w: vector<16xf32>) {
  %0 = irees.scalef %x, %n : f32
  %1 = irees.scalef %v, %w : vector<16xf32>
  return
}

// CHECK-LABEL: func.func @lookup
// CHECK-NEXT:    %0 = irees.lookup %t[%i] : i32 -> f32
// CHECK-NEXT:    %1 = irees.lookup %t[%v] : vector<8xi32> -> vector<8xf32>
func.func @lookup(%t: vector<16xf32>, %i: i32, %v: vector<8xi32>) {
  %0 = irees.lookup %t[%i] : i32 -> f32
  %1 = irees.lookup %t[%v] : vector<8xi32> -> vector<8xf32>
  return
}

// CHECK-LABEL: func.func @mma_sync
// CHECK:         irees.mma_sync %a, %a, %a, %a, %b, %b, %c : vector<2xbf16> -> vector<4xf32>
// CHECK:         irees.mma_sync %d, %d, %d, %d, %d, %d, %e : vector<4xi8> -> vector<4xi32>
// CHECK:         irees.mma_sync %f, %f, %f, %f, %f, %f, %c : vector<1xf32> -> vector<4xf32>
func.func @mma_sync(%a: vector<2xbf16>, %b: vector<2xbf16>, %c: vector<4xf32>, %d: vector<4xi8>, %e: vector<4xi32>, %f: vector<1xf32>) -> vector<4xf32> {
  %r = irees.mma_sync %a, %a, %a, %a, %b, %b, %c : vector<2xbf16> -> vector<4xf32>
  %s = irees.mma_sync %d, %d, %d, %d, %d, %d, %e : vector<4xi8> -> vector<4xi32>
  %t = irees.mma_sync %f, %f, %f, %f, %f, %f, %c : vector<1xf32> -> vector<4xf32>
  return %r : vector<4xf32>
}

// Of 64 columns a lane has eight times four sums.
// CHECK-LABEL: func.func @warpgroup_sums
// CHECK-NEXT:    %{{.*}} = irees.warpgroup_sums %a : !nvgpu.warpgroup.accumulator<fragmented = vector<64x64xf32>> -> vector<4xf32>, vector<4xf32>
func.func @warpgroup_sums(%a: !nvgpu.warpgroup.accumulator<fragmented = vector<64x64xf32>>) {
  %0:8 = irees.warpgroup_sums %a : !nvgpu.warpgroup.accumulator<fragmented = vector<64x64xf32>> -> vector<4xf32>, vector<4xf32>, vector<4xf32>, vector<4xf32>, vector<4xf32>, vector<4xf32>, vector<4xf32>, vector<4xf32>
  return
}

// The inverse of it, and a product whose left operand is in registers: four words for each 16 steps.
// CHECK-LABEL: func.func @warpgroup_mma
// CHECK-NEXT:    %[[C:.*]] = irees.warpgroup_accumulator %s, %s, %s, %s, %s, %s, %s, %s : vector<4xf32>, {{.*}} -> !nvgpu.warpgroup.accumulator<fragmented = vector<64x64xf32>>
// CHECK-NEXT:    %{{.*}} = irees.warpgroup_mma[%a, %a, %a, %a], %b, %[[C]] {transposeB} : [vector<2xf16>, vector<2xf16>, vector<2xf16>, vector<2xf16>], !nvgpu.warpgroup.descriptor<{{.*}}>, !nvgpu.warpgroup.accumulator<{{.*}}> -> !nvgpu.warpgroup.accumulator<fragmented = vector<64x64xf32>>
func.func @warpgroup_mma(%s: vector<4xf32>, %a: vector<2xf16>, %b: !nvgpu.warpgroup.descriptor<tensor = memref<1x16x64xf16, #gpu.address_space<workgroup>>>) {
  %c = irees.warpgroup_accumulator %s, %s, %s, %s, %s, %s, %s, %s : vector<4xf32>, vector<4xf32>, vector<4xf32>, vector<4xf32>, vector<4xf32>, vector<4xf32>, vector<4xf32>, vector<4xf32> -> !nvgpu.warpgroup.accumulator<fragmented = vector<64x64xf32>>
  %d = irees.warpgroup_mma[%a, %a, %a, %a], %b, %c {transposeB} : [vector<2xf16>, vector<2xf16>, vector<2xf16>, vector<2xf16>], !nvgpu.warpgroup.descriptor<tensor = memref<1x16x64xf16, #gpu.address_space<workgroup>>>, !nvgpu.warpgroup.accumulator<fragmented = vector<64x64xf32>> -> !nvgpu.warpgroup.accumulator<fragmented = vector<64x64xf32>>
  return
}

// Four unsigned times four signed i8 into each i32.
// CHECK-LABEL: func.func @dot
// CHECK-NEXT:    %{{.*}} = irees.dot %acc, %a, %b : vector<64xi8> -> vector<16xi32>
// CHECK-NEXT:    %{{.*}} = irees.dot %{{.*}}, %d, %e : vector<32xi8> -> vector<8xi32>
func.func @dot(%acc: vector<16xi32>, %a: vector<64xi8>, %b: vector<64xi8>, %half: vector<8xi32>, %d: vector<32xi8>, %e: vector<32xi8>) {
  %0 = irees.dot %acc, %a, %b : vector<64xi8> -> vector<16xi32>
  %1 = irees.dot %half, %d, %e : vector<32xi8> -> vector<8xi32>
  return
}

// A function of a device's module, with tensors and scalars.
// CHECK-LABEL: func.func @invoke
// CHECK-NEXT:    %0, %1 = irees.invoke @dev_0::@main_0(%x, %i) : (tensor<?xf32>, index) -> (tensor<4xf32>, i1)
// CHECK-NEXT:    irees.invoke @dev_0::@main_1() : () -> ()
func.func @invoke(%x: tensor<?xf32>, %i: index) {
  %0, %1 = irees.invoke @dev_0::@main_0(%x, %i) : (tensor<?xf32>, index) -> (tensor<4xf32>, i1)
  irees.invoke @dev_0::@main_1() : () -> ()
  return
}

// CHECK-LABEL: func.func @view_parts
// CHECK-NEXT:    %0 = irees.view_parts %x : tensor<?xcomplex<f64>> -> tensor<?x2xf64>
// CHECK-NEXT:    %1 = irees.view_parts %y : memref<4x2xf32, 3 : i64> -> memref<4xcomplex<f32>, 3 : i64>
func.func @view_parts(%x: tensor<?xcomplex<f64>>, %y: memref<4x2xf32, 3 : i64>) {
  %0 = irees.view_parts %x : tensor<?xcomplex<f64>> -> tensor<?x2xf64>
  %1 = irees.view_parts %y : memref<4x2xf32, 3 : i64> -> memref<4xcomplex<f32>, 3 : i64>
  return
}

// CHECK-LABEL: func.func @view_bytes
// CHECK-NEXT:    %0 = irees.view_bytes %x : memref<4x?xi1, strided<[8, 1]>> -> memref<4x?xi8, strided<[8, 1]>>
func.func @view_bytes(%x: memref<4x?xi1, strided<[8, 1]>>) {
  %0 = irees.view_bytes %x : memref<4x?xi1, strided<[8, 1]>> -> memref<4x?xi8, strided<[8, 1]>>
  return
}
