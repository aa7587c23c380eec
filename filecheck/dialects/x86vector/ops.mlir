// RUN: xdsl-opt %s | xdsl-opt | filecheck %s
// RUN: xdsl-opt --print-op-generic %s | xdsl-opt | filecheck %s

// CHECK-LABEL: func.func @dot
// CHECK-NEXT:    %{{.*}} = x86vector.avx512.dot %src, %a, %b : vector<32xbf16> -> vector<16xf32>
func.func @dot(%src: vector<16xf32>, %a: vector<32xbf16>, %b: vector<32xbf16>) {
  %0 = x86vector.avx512.dot %src, %a, %b : vector<32xbf16> -> vector<16xf32>
  return
}
