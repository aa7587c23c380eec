// RUN: xdsl-opt %s | xdsl-opt | filecheck %s
// RUN: xdsl-opt --print-op-generic %s | xdsl-opt | filecheck %s

%0 = arith.constant 0x7FC0 : bf16
%1 = arith.constant dense<0xFF80> : tensor<4xbf16>
%2 = arith.constant dense<[0x7FC00000, 1.5]> : tensor<2xf32>
%3 = arith.constant 0xFC00 : f16
%4 = arith.constant 0xFF800000 : f32
%5 = arith.constant 0x7FF0000000000000 : f64
%6 = arith.constant dense<0xFF800000> : tensor<f32>
%7 = arith.constant dense<(1.0, 2.0)> : tensor<2xcomplex<f32>>
%8 = arith.constant 3.402823466e+38 : f32
%9 = arith.constant 1.0e-45 : f32
%10 = arith.constant 0.1 : f16
%11 = arith.constant dense<0.333333343> : tensor<3xf32>
%12 = arith.constant -0.0 : f32

// CHECK:      builtin.module {
// CHECK-NEXT:   %0 = arith.constant 0x7FC0 : bf16
// CHECK-NEXT:   %1 = arith.constant dense<0xFF80> : tensor<4xbf16>
// CHECK-NEXT:   %2 = arith.constant dense<[0x7FC00000, 1.500000e+00]> : tensor<2xf32>
// CHECK-NEXT:   %3 = arith.constant 0xFC00 : f16
// CHECK-NEXT:   %4 = arith.constant 0xFF800000 : f32
// CHECK-NEXT:   %5 = arith.constant 0x7FF0000000000000 : f64
// CHECK-NEXT:   %6 = arith.constant dense<0xFF800000> : tensor<f32>
// CHECK-NEXT:   %7 = arith.constant dense<(1.000000e+00,2.000000e+00)> : tensor<2xcomplex<f32>>
// CHECK-NEXT:   %8 = arith.constant 3.40282347e+38 : f32
// CHECK-NEXT:   %9 = arith.constant 1.401300e-45 : f32
// CHECK-NEXT:   %10 = arith.constant 9.997560e-02 : f16
// CHECK-NEXT:   %11 = arith.constant dense<0.333333343> : tensor<3xf32>
// CHECK-NEXT:   %12 = arith.constant -0.000000e+00 : f32
// CHECK-NEXT: }
