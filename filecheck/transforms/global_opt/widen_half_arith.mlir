// RUN: xdsl-opt %s -p irees-widen-half-arith --split-input-file | filecheck %s
// RUN: xdsl-opt %s -p 'irees-assign-target{fp=strict},irees-widen-half-arith' --split-input-file | filecheck %s --check-prefix STRICT

// What is yielded is rounded, and with fp=strict each result; the comparison gives no half.
// CHECK-LABEL:  func.func @chain
// CHECK:        ^bb0(%[[A:.*]]: bf16, %[[B:.*]]: bf16, %{{.*}}: bf16):
// CHECK-NEXT:     %[[WA:.*]] = arith.extf %[[A]] : bf16 to f32
// CHECK-NEXT:     %[[WB:.*]] = arith.extf %[[B]] : bf16 to f32
// CHECK-NEXT:     %[[S:.*]] = arith.addf %[[WA]], %[[WB]] fastmath<nnan> : f32
// CHECK-NEXT:     %[[E:.*]] = math.exp %[[S]] : f32
// CHECK-NEXT:     %[[WC:.*]] = arith.extf %[[A]] : bf16 to f32
// CHECK-NEXT:     %[[P:.*]] = arith.cmpf olt, %[[E]], %[[WC]] : f32
// CHECK-NEXT:     %[[WD:.*]] = arith.extf %[[B]] : bf16 to f32
// CHECK-NEXT:     %[[C:.*]] = arith.select %[[P]], %[[E]], %[[WD]] : f32
// CHECK-NEXT:     %[[R:.*]] = arith.truncf %[[C]] : f32 to bf16
// CHECK-NEXT:     linalg.yield %[[R]] : bf16
// STRICT-LABEL: func.func @chain
// STRICT:         arith.addf {{.*}} : f32
// STRICT-NEXT:    %[[S:.*]] = arith.truncf %{{.*}} : f32 to bf16
// STRICT-NEXT:    %[[W:.*]] = arith.extf %[[S]] : bf16 to f32
// STRICT-NEXT:    math.exp %[[W]] : f32
func.func @chain(%x: tensor<8xbf16>, %y: tensor<8xbf16>) -> tensor<8xbf16> {
  %e = tensor.empty() : tensor<8xbf16>
  %r = linalg.generic {indexing_maps = [affine_map<(d0) -> (d0)>, affine_map<(d0) -> (d0)>, affine_map<(d0) -> (d0)>], iterator_types = ["parallel"]} ins(%x, %y : tensor<8xbf16>, tensor<8xbf16>) outs(%e : tensor<8xbf16>) {
  ^bb0(%a: bf16, %b: bf16, %o: bf16):
    %s = arith.addf %a, %b fastmath<nnan> : bf16
    %x1 = math.exp %s : bf16
    %p = arith.cmpf olt, %x1, %a : bf16
    %c = arith.select %p, %x1, %b : bf16
    linalg.yield %c : bf16
  } -> tensor<8xbf16>
  return %r : tensor<8xbf16>
}

// -----

// Numbers that come from integers, and go to them.
// CHECK-LABEL:  func.func @casts
// CHECK:          %[[F:.*]] = arith.sitofp %{{.*}} : i32 to f32
// CHECK-NEXT:     %[[Q:.*]] = math.sqrt %[[F]] : f32
// CHECK-NEXT:     arith.fptosi %[[Q]] : f32 to i32
func.func @casts(%x: tensor<8xi32>) -> tensor<8xi32> {
  %e = tensor.empty() : tensor<8xi32>
  %r = linalg.generic {indexing_maps = [affine_map<(d0) -> (d0)>, affine_map<(d0) -> (d0)>], iterator_types = ["parallel"]} ins(%x : tensor<8xi32>) outs(%e : tensor<8xi32>) {
  ^bb0(%a: i32, %o: i32):
    %f = arith.sitofp %a : i32 to f16
    %q = math.sqrt %f : f16
    %c = arith.fptosi %q : f16 to i32
    linalg.yield %c : i32
  } -> tensor<8xi32>
  return %r : tensor<8xi32>
}

// -----

// Reductions into halves keep their roundings; what only moves halves stays.
// CHECK-LABEL:  func.func @stay
// CHECK:          arith.addf {{.*}} : f16
// CHECK:          arith.bitcast {{.*}} : f16 to i16
// CHECK-NOT:      arith.extf
func.func @stay(%x: tensor<8xf16>, %z: tensor<f16>) -> (tensor<f16>, tensor<8xi16>) {
  %s = linalg.generic {indexing_maps = [affine_map<(d0) -> (d0)>, affine_map<(d0) -> ()>], iterator_types = ["reduction"]} ins(%x : tensor<8xf16>) outs(%z : tensor<f16>) {
  ^bb0(%a: f16, %o: f16):
    %t = arith.addf %a, %o : f16
    linalg.yield %t : f16
  } -> tensor<f16>
  %e = tensor.empty() : tensor<8xi16>
  %r = linalg.generic {indexing_maps = [affine_map<(d0) -> (d0)>, affine_map<(d0) -> (d0)>], iterator_types = ["parallel"]} ins(%x : tensor<8xf16>) outs(%e : tensor<8xi16>) {
  ^bb0(%a: f16, %o: i16):
    %b = arith.bitcast %a : f16 to i16
    linalg.yield %b : i16
  } -> tensor<8xi16>
  return %s, %r : tensor<f16>, tensor<8xi16>
}
