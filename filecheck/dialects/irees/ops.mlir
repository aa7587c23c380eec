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

// CHECK-LABEL: func.func @mma_sync
// CHECK:         irees.mma_sync %a, %a, %a, %a, %b, %b, %c : vector<2xbf16>
func.func @mma_sync(%a: vector<2xbf16>, %b: vector<2xbf16>, %c: vector<4xf32>) -> vector<4xf32> {
  %r = irees.mma_sync %a, %a, %a, %a, %b, %b, %c : vector<2xbf16>
  return %r : vector<4xf32>
}
