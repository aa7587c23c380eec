// RUN: xdsl-opt %s | xdsl-opt | filecheck %s
// RUN: xdsl-opt --print-op-generic %s | xdsl-opt | filecheck %s

#m0 = affine_map<(d0, d1, d2) -> (d0, d2)>
#m1 = affine_map<(d0, d1, d2) -> (d2, d1)>
#m2 = affine_map<(d0, d1, d2) -> (d0, d1)>
func.func @f(%a: vector<4x8xf32>, %b: vector<8x4xf32>, %c: vector<4x4xf32>, %v: vector<4xf32>, %s: f32, %m: memref<8x16xf32>, %i: index, %iv: vector<4xi32>, %k: vector<4xi1>, %t: tensor<8xf32>) {
  %0 = vector.shape_cast %a : vector<4x8xf32> to vector<32xf32>
  %1 = vector.transpose %a, [1, 0] : vector<4x8xf32> to vector<8x4xf32>
  %2 = vector.extract_strided_slice %a {offsets = [0, 2], sizes = [2, 4], strides = [1, 1]} : vector<4x8xf32> to vector<2x4xf32>
  %3 = vector.insert_strided_slice %2, %a {offsets = [0, 0], strides = [1, 1]} : vector<2x4xf32> into vector<4x8xf32>
  %4 = vector.from_elements %s, %s, %s, %s : vector<4xf32>
  %5:4 = vector.to_elements %v : vector<4xf32>
  %6 = vector.step : vector<4xindex>
  %7 = vector.constant_mask [2, 4] : vector<4x8xi1>
  %8 = vector.gather %m[%i, %i] [%iv], %k, %v : memref<8x16xf32>, vector<4xi32>, vector<4xi1>, vector<4xf32> into vector<4xf32>
  vector.scatter %m[%i, %i] [%iv], %k, %v : memref<8x16xf32>, vector<4xi32>, vector<4xi1>, vector<4xf32>
  %10 = vector.interleave %v, %v : vector<4xf32> -> vector<8xf32>
  %11, %12 = vector.deinterleave %v : vector<4xf32> -> vector<2xf32>
  %13 = vector.multi_reduction <add>, %a, %v [1] : vector<4x8xf32> to vector<4xf32>
  %14 = vector.multi_reduction <maximumf>, %a, %s [0, 1] : vector<4x8xf32> to f32
  %15 = vector.contract {indexing_maps = [#m0, #m1, #m2], iterator_types = ["parallel", "parallel", "reduction"], kind = #vector.kind<add>} %a, %b, %c : vector<4x8xf32>, vector<8x4xf32> into vector<4x4xf32>
  %16 = vector.outerproduct %v, %v, %c : vector<4xf32>, vector<4xf32>
  %17 = vector.outerproduct %v, %s : vector<4xf32>, f32
  %18:2 = vector.scan <add>, %a, %v {inclusive = true, reduction_dim = 1 : i64} : vector<4x8xf32>, vector<4xf32>
  %19 = vector.mask %k { vector.gather %m[%i, %i] [%iv], %k, %v : memref<8x16xf32>, vector<4xi32>, vector<4xi1>, vector<4xf32> into vector<4xf32> } : vector<4xi1> -> vector<4xf32>
  %20 = vector.mask %k { vector.reduction <add>, %v : vector<4xf32> into f32 } : vector<4xi1> -> f32
  return
}

// CHECK:      builtin.module {
// CHECK-NEXT:   func.func @f(%a: vector<4x8xf32>, %b: vector<8x4xf32>, %c: vector<4x4xf32>, %v: vector<4xf32>, %s: f32, %m: memref<8x16xf32>, %i: index, %iv: vector<4xi32>, %k: vector<4xi1>, %t: tensor<8xf32>) {
// CHECK-NEXT:     %0 = vector.shape_cast %a : vector<4x8xf32> to vector<32xf32>
// CHECK-NEXT:     %1 = vector.transpose %a, [1, 0] : vector<4x8xf32> to vector<8x4xf32>
// CHECK-NEXT:     %2 = vector.extract_strided_slice %a offsets = [0, 2], sizes = [2, 4], strides = [1, 1] : vector<4x8xf32> to vector<2x4xf32>
// CHECK-NEXT:     %3 = vector.insert_strided_slice %2, %a offsets = [0, 0], strides = [1, 1] : vector<2x4xf32> into vector<4x8xf32>
// CHECK-NEXT:     %4 = vector.from_elements %s, %s, %s, %s : vector<4xf32>
// CHECK-NEXT:     %5, %6, %7, %8 = vector.to_elements %v : vector<4xf32>
// CHECK-NEXT:     %9 = vector.step : vector<4xindex>
// CHECK-NEXT:     %10 = vector.constant_mask [2, 4] : vector<4x8xi1>
// CHECK-NEXT:     %11 = vector.gather %m[%i, %i] [%iv], %k, %v : memref<8x16xf32>, vector<4xi32>, vector<4xi1>, vector<4xf32> into vector<4xf32>
// CHECK-NEXT:     vector.scatter %m[%i, %i] [%iv], %k, %v : memref<8x16xf32>, vector<4xi32>, vector<4xi1>, vector<4xf32>
// CHECK-NEXT:     %12 = vector.interleave %v, %v : vector<4xf32> -> vector<8xf32>
// CHECK-NEXT:     %13, %14 = vector.deinterleave %v : vector<4xf32> -> vector<2xf32>
// CHECK-NEXT:     %15 = vector.multi_reduction <add>, %a, %v [1] : vector<4x8xf32> to vector<4xf32>
// CHECK-NEXT:     %16 = vector.multi_reduction <maximumf>, %a, %s [0, 1] : vector<4x8xf32> to f32
// CHECK-NEXT:     %17 = vector.contract {indexing_maps = [affine_map<(d0, d1, d2) -> (d0, d2)>, affine_map<(d0, d1, d2) -> (d2, d1)>, affine_map<(d0, d1, d2) -> (d0, d1)>], iterator_types = ["parallel", "parallel", "reduction"], kind = #vector.kind<add>} %a, %b, %c : vector<4x8xf32>, vector<8x4xf32> into vector<4x4xf32>
// CHECK-NEXT:     %18 = vector.outerproduct %v, %v, %c {kind = #vector.kind<add>} : vector<4xf32>, vector<4xf32>
// CHECK-NEXT:     %19 = vector.outerproduct %v, %s : vector<4xf32>, f32
// CHECK-NEXT:     %20, %21 = vector.scan <add>, %a, %v reduction_dim = 1, inclusive = true : vector<4x8xf32>, vector<4xf32>
// CHECK-NEXT:     %22 = vector.mask %k {
// CHECK-NEXT:       %23 = vector.gather %m[%i, %i] [%iv], %k, %v : memref<8x16xf32>, vector<4xi32>, vector<4xi1>, vector<4xf32> into vector<4xf32>
// CHECK-NEXT:       vector.yield %23 : vector<4xf32>
// CHECK-NEXT:     } : vector<4xi1> -> vector<4xf32>
// CHECK-NEXT:     %24 = vector.mask %k {
// CHECK-NEXT:       %25 = vector.reduction <add>, %v : vector<4xf32> into f32
// CHECK-NEXT:       vector.yield %25 : f32
// CHECK-NEXT:     } : vector<4xi1> -> f32
// CHECK-NEXT:     func.return
// CHECK-NEXT:   }
// CHECK-NEXT: }
