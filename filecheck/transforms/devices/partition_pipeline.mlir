// RUN: xdsl-opt %s -p 'irees-partition-pipeline{stages=2}' --split-input-file | filecheck %s
// RUN: xdsl-opt %s -p 'irees-partition-pipeline{stages=2 balance=memory}' --split-input-file | filecheck %s --check-prefix=MEMORY

// The first product does as much as the two after it; what is made of constants is in no stage.
// CHECK-LABEL: func.func @flops
// MEMORY-LABEL: func.func @flops
func.func @flops(%x: tensor<4x64xf32>, %y: tensor<4x64xf32>) -> tensor<4x64xf32> {
  // CHECK: tensor.empty() : tensor<4x64xf32>
  // CHECK-NEXT: linalg.fill ins
  %zero = arith.constant 0.0 : f32
  %w = arith.constant dense<[[1.0, 2.0], [3.0, 4.0]]> : tensor<2x2xf32>
  %e = tensor.empty() : tensor<4x64xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<4x64xf32>) -> tensor<4x64xf32>
  // CHECK: %[[A:.*]] = linalg.add {stream.affinity = #hal.device.promise<@dev_0>}
  %a = linalg.add ins(%x, %y : tensor<4x64xf32>, tensor<4x64xf32>) outs(%f : tensor<4x64xf32>) -> tensor<4x64xf32>
  // CHECK: %[[T:.*]] = flow.tensor.transfer %[[A]] : tensor<4x64xf32> to #hal.device.promise<@dev_1>
  // CHECK: linalg.mul {stream.affinity = #hal.device.promise<@dev_1>} ins(%[[T]], %[[T]]
  %b = linalg.mul ins(%a, %a : tensor<4x64xf32>, tensor<4x64xf32>) outs(%f : tensor<4x64xf32>) -> tensor<4x64xf32>
  return %b : tensor<4x64xf32>
}

// -----

// Dynamic dims: the size of what is sent is asked for.
// CHECK-LABEL: func.func @dynamic
func.func @dynamic(%x: tensor<?x4xf32>, %e: tensor<?x4xf32>) -> tensor<?x4xf32> {
  // CHECK: linalg.add {stream.affinity = #hal.device.promise<@dev_0>}
  // CHECK: flow.tensor.transfer %{{.*}} : tensor<?x4xf32>{%{{.*}}} to #hal.device.promise<@dev_1>
  %a = linalg.add ins(%x, %x : tensor<?x4xf32>, tensor<?x4xf32>) outs(%e : tensor<?x4xf32>) -> tensor<?x4xf32>
  %b = linalg.mul ins(%a, %a : tensor<?x4xf32>, tensor<?x4xf32>) outs(%e : tensor<?x4xf32>) -> tensor<?x4xf32>
  return %b : tensor<?x4xf32>
}

// -----

// What is handed to the caller goes into memory of its own, which is as much work as a product.
// CHECK-LABEL: func.func @handed
func.func @handed(%x: tensor<4x64xf32>, %w: tensor<64x64xf32>, %e: tensor<4x64xf32>) -> tensor<4x64xf32> {
  // CHECK: linalg.matmul {stream.affinity = #hal.device.promise<@dev_0>}
  // CHECK: linalg.matmul {stream.affinity = #hal.device.promise<@dev_0>}
  // CHECK: linalg.sub {stream.affinity = #hal.device.promise<@dev_1>}
  %a = linalg.matmul ins(%x, %w : tensor<4x64xf32>, tensor<64x64xf32>) outs(%e : tensor<4x64xf32>) -> tensor<4x64xf32>
  %b = linalg.matmul ins(%a, %w : tensor<4x64xf32>, tensor<64x64xf32>) outs(%e : tensor<4x64xf32>) -> tensor<4x64xf32>
  %c = linalg.sub ins(%b, %b : tensor<4x64xf32>, tensor<4x64xf32>) outs(%e : tensor<4x64xf32>) -> tensor<4x64xf32>
  return %c : tensor<4x64xf32>
}

// -----

// By memory the large weight is a stage of its own, whatever it computes.
// MEMORY-LABEL: func.func @weights
func.func @weights(%x: tensor<4x4xf32>, %e: tensor<4x4xf32>) -> tensor<4x4xf32> {
  %w = arith.constant dense<[[1.0, 2.0, 3.0, 4.0], [1.0, 2.0, 3.0, 4.0], [1.0, 2.0, 3.0, 4.0], [1.0, 2.0, 3.0, 4.0]]> : tensor<4x4xf32>
  %v = arith.constant dense<[[2.0, 2.0, 3.0, 4.0], [1.0, 2.0, 3.0, 4.0], [1.0, 2.0, 3.0, 4.0], [1.0, 2.0, 3.0, 4.0]]> : tensor<4x4xf32>
  // MEMORY: linalg.matmul {stream.affinity = #hal.device.promise<@dev_0>}
  // MEMORY: flow.tensor.transfer
  // MEMORY: linalg.matmul {stream.affinity = #hal.device.promise<@dev_1>}
  %a = linalg.matmul ins(%x, %w : tensor<4x4xf32>, tensor<4x4xf32>) outs(%e : tensor<4x4xf32>) -> tensor<4x4xf32>
  %b = linalg.matmul ins(%a, %v : tensor<4x4xf32>, tensor<4x4xf32>) outs(%e : tensor<4x4xf32>) -> tensor<4x4xf32>
  return %b : tensor<4x4xf32>
}

// -----

// Somebody has said where things are.
// CHECK-LABEL: func.func @no_stages
func.func @no_stages(%x: tensor<4xf32>) -> tensor<4xf32> {
  // CHECK-NEXT: math.exp %x {stream.affinity = #hal.device.promise<@a>}
  // CHECK-NEXT: math.exp %0 : tensor<4xf32>
  %0 = math.exp %x {stream.affinity = #hal.device.promise<@a>} : tensor<4xf32>
  %1 = math.exp %0 : tensor<4xf32>
  return %1 : tensor<4xf32>
}
