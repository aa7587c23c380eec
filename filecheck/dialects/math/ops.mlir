// RUN: xdsl-opt %s | xdsl-opt | filecheck %s
// RUN: xdsl-opt --print-op-generic %s | xdsl-opt | filecheck %s

#map = affine_map<(d0)[s0] -> (d0, s0 + 4)>
func.func @f(%x: f32, %v: tensor<4xf32>, %i: index, %j: index, %n: i32) {
  %0 = math.isnan %x : f32
  %1 = math.isinf %v : tensor<4xf32>
  %2 = math.isfinite %x fastmath<nnan> : f32
  %3 = math.isnormal %x : f32
  %4 = math.erfc %x : f32
  %5 = math.clampf %x to [%x, %x] : f32
  %6, %7 = math.sincos %x : f32
  %8 = affine.max #map(%i)[%j]
  %9:3 = affine.delinearize_index %i into (2, %j, 8) : index, index, index
  %10:3 = affine.delinearize_index %i into (%j, 8) : index, index, index
  %11 = affine.linearize_index disjoint [%i, %j] by (2, 8) : index
  %12 = affine.linearize_index [%i, %j, %i] by (%j, 8) : index
  %13 = arith.remf %x, %x : f32
  %14 = arith.maximumnumf %x, %x : f32
  %15 = arith.index_castui %i : index to i32
  %16 = arith.truncf %x to_nearest_even : f32 to f16
  %17 = arith.scaling_truncf %x, %x downward fastmath<nnan> : f32, f32 to f4E2M1FN
  %18 = arith.scaling_extf %17, %x : f4E2M1FN, f32 to f32
  %c = arith.cmpf oge, %v, %v : tensor<4xf32>
  %s = arith.select %c, %v, %v : tensor<4xi1>, tensor<4xf32>
  %e = arith.extf %v : tensor<4xf32> to tensor<4xf64>
  return
}

// CHECK:      builtin.module {
// CHECK-NEXT:   func.func @f(%x: f32, %v: tensor<4xf32>, %i: index, %j: index, %n: i32) {
// CHECK-NEXT:     %0 = math.isnan %x : f32
// CHECK-NEXT:     %1 = math.isinf %v : tensor<4xf32>
// CHECK-NEXT:     %2 = math.isfinite %x fastmath<nnan> : f32
// CHECK-NEXT:     %3 = math.isnormal %x : f32
// CHECK-NEXT:     %4 = math.erfc %x : f32
// CHECK-NEXT:     %5 = math.clampf %x to[%x, %x] : f32
// CHECK-NEXT:     %6, %7 = math.sincos %x : f32
// CHECK-NEXT:     %8 = affine.max affine_map<(d0)[s0] -> (d0, (s0 + 4))>(%i)[%j]
// CHECK-NEXT:     %9, %10, %11 = affine.delinearize_index %i into (2, %j, 8) : index, index, index
// CHECK-NEXT:     %12, %13, %14 = affine.delinearize_index %i into (%j, 8) : index, index, index
// CHECK-NEXT:     %15 = affine.linearize_index disjoint [%i, %j] by (2, 8) : index
// CHECK-NEXT:     %16 = affine.linearize_index [%i, %j, %i] by (%j, 8) : index
// CHECK-NEXT:     %17 = arith.remf %x, %x : f32
// CHECK-NEXT:     %18 = arith.maximumnumf %x, %x : f32
// CHECK-NEXT:     %19 = arith.index_castui %i : index to i32
// CHECK-NEXT:     %20 = arith.truncf %x to_nearest_even : f32 to f16
// CHECK-NEXT:     %21 = arith.scaling_truncf %x, %x downward fastmath<nnan> : f32, f32 to f4E2M1FN
// CHECK-NEXT:     %22 = arith.scaling_extf %21, %x : f4E2M1FN, f32 to f32
// CHECK-NEXT:     %c = arith.cmpf oge, %v, %v : tensor<4xf32>
// CHECK-NEXT:     %s = arith.select %c, %v, %v : tensor<4xi1>, tensor<4xf32>
// CHECK-NEXT:     %e = arith.extf %v : tensor<4xf32> to tensor<4xf64>
// CHECK-NEXT:     func.return
// CHECK-NEXT:   }
// CHECK-NEXT: }
