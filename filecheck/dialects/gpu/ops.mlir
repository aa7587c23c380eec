// RUN: irees opt %s | irees opt | filecheck %s

// CHECK-LABEL: func.func @warp
// CHECK:         gpu.barrier
// CHECK-NEXT:    gpu.shuffle xor %x, %{{.*}}, %{{.*}} : f32
func.func @warp(%x: f32) -> f32 {
  %one = arith.constant 1 : i32
  %width = arith.constant 32 : i32
  gpu.barrier
  %y, %valid = gpu.shuffle xor %x, %one, %width : f32
  return %y : f32
}
