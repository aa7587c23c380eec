// RUN: xdsl-opt %s -p irees-lower-spanning-scf --split-input-file | filecheck %s

// A transfer inside of a loop: the loop is control flow of the whole program.
// CHECK-LABEL: func.func @loop
func.func @loop(%x: tensor<?xf32>, %n: index) -> tensor<?xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  // CHECK: cf.br ^[[T:bb[0-9]+]](%c0, %x : index, tensor<?xf32>)
  // CHECK: cf.cond_br
  // CHECK: flow.tensor.transfer
  // CHECK: cf.br
  %r = scf.for %i = %c0 to %n step %c1 iter_args(%a = %x) -> (tensor<?xf32>) {
    %d = tensor.dim %a, %c0 : tensor<?xf32>
    %t = flow.tensor.transfer %a : tensor<?xf32>{%d} to #hal.device.promise<@b>
    scf.yield %t : tensor<?xf32>
  }
  return %r : tensor<?xf32>
}

// -----

// Branches whose ops say different devices.
// CHECK-LABEL: func.func @branch
func.func @branch(%c: i1, %x: tensor<4xf32>) -> tensor<4xf32> {
  // CHECK: cf.cond_br %c
  %r = scf.if %c -> (tensor<4xf32>) {
    %0 = math.exp %x {stream.affinity = #hal.device.promise<@a>} : tensor<4xf32>
    scf.yield %0 : tensor<4xf32>
  } else {
    %0 = math.absf %x {stream.affinity = #hal.device.promise<@b>} : tensor<4xf32>
    scf.yield %0 : tensor<4xf32>
  }
  return %r : tensor<4xf32>
}

// -----

// The values of a condition are those of the loop and of what comes after it.
// CHECK-LABEL: func.func @while
func.func @while(%x: tensor<4xf32>) -> tensor<4xf32> {
  %c0 = arith.constant 0 : index
  %l = arith.constant 1.0 : f32
  // CHECK: cf.br ^[[B:bb[0-9]+]](%x : tensor<4xf32>)
  // CHECK: ^{{bb[0-9]+}}(%[[A:.*]]: tensor<4xf32>):
  // CHECK: cf.cond_br
  // CHECK: flow.tensor.transfer %[[A]]
  // CHECK: cf.br
  // CHECK: return %[[A]]
  %r = scf.while (%a = %x) : (tensor<4xf32>) -> tensor<4xf32> {
    %e = tensor.extract %a[%c0] : tensor<4xf32>
    %c = arith.cmpf olt, %e, %l : f32
    scf.condition(%c) %a : tensor<4xf32>
  } do {
  ^bb0(%b: tensor<4xf32>):
    %t = flow.tensor.transfer %b : tensor<4xf32> to #hal.device.promise<@b>
    // Powers exceed 1 after a few rounds.
    %p = math.exp %t : tensor<4xf32>
    scf.yield %p : tensor<4xf32>
  }
  return %r : tensor<4xf32>
}

// -----

// One device runs this loop whole.
// CHECK-LABEL: func.func @no_span
func.func @no_span(%x: tensor<4xf32>, %n: index) -> tensor<4xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  // CHECK: scf.for
  %r = scf.for %i = %c0 to %n step %c1 iter_args(%a = %x) -> (tensor<4xf32>) {
    %0 = math.exp %a {stream.affinity = #hal.device.promise<@a>} : tensor<4xf32>
    scf.yield %0 : tensor<4xf32>
  }
  return %r : tensor<4xf32>
}
