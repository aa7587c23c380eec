// RUN: xdsl-opt %s --verify-diagnostics --split-input-file | filecheck %s

func.func @lanes(%src: vector<16xf32>, %a: vector<16xbf16>) {
  %0 = x86vector.avx512.dot %src, %a, %a : vector<16xbf16> -> vector<16xf32>
  return
}
// CHECK: each lane of vector<16xf32> takes 2 lanes of an operand, not vector<16xbf16>
