// RUN: xdsl-opt %s -p irees-trace-dispatch-tensors --split-input-file | filecheck %s

// The first two cases are IREE's (inject_dispatch_tracing.mlir): a trace before and one after.
// CHECK-LABEL: util.func public @singleDispatch
// CHECK-SAME:  (%[[ARG0:.*]]: tensor<4xf32>)
util.func public @singleDispatch(%arg0: tensor<4xf32>) -> tensor<4xf32> {
  %c4 = arith.constant 4 : index
  // CHECK:      flow.tensor.trace "ex::entry0 inputs" = [%[[ARG0]] : tensor<4xf32>]
  // CHECK-NEXT: %[[RET0:.*]] = flow.dispatch @ex::@entry0[%c4](%[[ARG0]]) : (tensor<4xf32>) -> tensor<4xf32>
  %0 = flow.dispatch @ex::@entry0[%c4](%arg0) : (tensor<4xf32>) -> tensor<4xf32>
  // CHECK-NEXT: flow.tensor.trace "ex::entry0 outputs" = [%[[RET0]] : tensor<4xf32>]
  // CHECK-NEXT: util.return %[[RET0]]
  util.return %0 : tensor<4xf32>
}

// -----

// CHECK-LABEL: util.func public @multiDispatch
// CHECK-SAME:  (%[[ARG0:.*]]: tensor<4xf32>)
util.func public @multiDispatch(%arg0: tensor<4xf32>) -> tensor<4xf32> {
  %c4 = arith.constant 4 : index
  // CHECK:      flow.tensor.trace "ex::entry0 inputs" = [%[[ARG0]] : tensor<4xf32>]
  // CHECK-NEXT: %[[RET0:.*]] = flow.dispatch @ex::@entry0
  %0 = flow.dispatch @ex::@entry0[%c4](%arg0) : (tensor<4xf32>) -> tensor<4xf32>
  // CHECK-NEXT: flow.tensor.trace "ex::entry0 outputs" = [%[[RET0]] : tensor<4xf32>]
  // CHECK-NEXT: flow.tensor.trace "ex::entry1 inputs" = [%[[RET0]] : tensor<4xf32>]
  // CHECK-NEXT: %[[RET1:.*]] = flow.dispatch @ex::@entry1
  %1 = flow.dispatch @ex::@entry1[%c4](%0) : (tensor<4xf32>) -> tensor<4xf32>
  // CHECK-NEXT: flow.tensor.trace "ex::entry1 outputs" = [%[[RET1]] : tensor<4xf32>]
  // CHECK-NEXT: util.return %[[RET1]]
  util.return %1 : tensor<4xf32>
}

// -----

// Dynamic dims are written where they are known, asked for where not; scalars are not shown.
// CHECK-LABEL: func.func @dynamic
// CHECK:       %[[D:.*]] = tensor.dim %x, %{{.*}} : tensor<?x4xf32>
// CHECK-NEXT:  flow.tensor.trace "e::f inputs" = [%x : tensor<?x4xf32>{%[[D]]}]
// CHECK-NEXT:  %[[R:.*]], %[[S:.*]] = flow.dispatch @e::@f(%x, %n)
// CHECK-NEXT:  flow.tensor.trace "e::f outputs" = [%[[R]] : tensor<?xf32>{%n}, %[[S]] : tensor<2xi32>]
func.func @dynamic(%x: tensor<?x4xf32>, %n: index) -> tensor<?xf32> {
  %r, %s = flow.dispatch @e::@f(%x, %n) : (tensor<?x4xf32>, index) -> (tensor<?xf32>{%n}, tensor<2xi32>)
  return %r : tensor<?xf32>
}

// -----

// IREE leaves out what is in a loop. A dispatch of no tensors is traced for the count.
// CHECK-LABEL: func.func @in_a_loop
// CHECK:       scf.for
// CHECK:         flow.tensor.trace "e inputs" = []
// CHECK-NEXT:    %[[R:.*]] = flow.dispatch @e(%i) : (index) -> tensor<4xf32>
// CHECK-NEXT:    flow.tensor.trace "e outputs" = [%[[R]] : tensor<4xf32>]
func.func @in_a_loop(%x: tensor<4xf32>, %n: index) -> tensor<4xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %r = scf.for %i = %c0 to %n step %c1 iter_args(%t = %x) -> (tensor<4xf32>) {
    %y = flow.dispatch @e(%i) : (index) -> tensor<4xf32>
    scf.yield %y : tensor<4xf32>
  }
  return %r : tensor<4xf32>
}

// -----

// CHECK-LABEL: func.func @no_dispatch
// CHECK-NOT:   flow.tensor.trace
func.func @no_dispatch(%x: tensor<4xf32>) -> tensor<4xf32> {
  return %x : tensor<4xf32>
}
