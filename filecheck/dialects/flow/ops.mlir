// RUN: xdsl-opt %s | xdsl-opt | filecheck %s
// RUN: xdsl-opt --print-op-generic %s | xdsl-opt | filecheck %s

flow.executable @k {
  builtin.module {
    func.func @k(%x: index) {
      return
    }
  }
}
func.func @regions(%x: tensor<?xf32>, %n: index) -> (tensor<?xf32>, tensor<4xf32>) {
  %0:2 = flow.dispatch.region[%n] -> (tensor<?xf32>{%n}, tensor<4xf32>) {
    %e = tensor.empty() : tensor<4xf32>
    flow.return %x, %e : tensor<?xf32>, tensor<4xf32>
  } count(%w: index) -> (index, index, index) {
    flow.return %w, %w, %w : index, index, index
  }
  return %0#0, %0#1 : tensor<?xf32>, tensor<4xf32>
}
func.func @dispatches(%x: tensor<?xf32>, %n: index) -> tensor<?xf32> {
  flow.dispatch @k::@k(%n) : (index) -> ()
  %0 = flow.dispatch @k::@k(%x, %n) : (tensor<?xf32>, index) -> tensor<?xf32>{%n}
  %1:2 = flow.dispatch @k::@k() : () -> (tensor<4xf32>, tensor<4xi32>)
  return %0 : tensor<?xf32>
}

// CHECK:      flow.executable @k {
// CHECK-NEXT:   builtin.module {
// CHECK-NEXT:     func.func @k(%x: index) {
// CHECK:      func.func @regions(%x: tensor<?xf32>, %n: index)
// CHECK-NEXT:   %0, %1 = flow.dispatch.region[%n] -> (tensor<?xf32>{%n}, tensor<4xf32>) {
// CHECK-NEXT:     %e = tensor.empty() : tensor<4xf32>
// CHECK-NEXT:     flow.return %x, %e : tensor<?xf32>, tensor<4xf32>
// CHECK-NEXT:   } count(%w: index) -> (index, index, index) {
// CHECK-NEXT:     flow.return %w, %w, %w : index, index, index
// CHECK-NEXT:   }
// CHECK:      func.func @dispatches
// CHECK-NEXT:   flow.dispatch @k::@k(%n) : (index) -> ()
// CHECK-NEXT:   %0 = flow.dispatch @k::@k(%x, %n) : (tensor<?xf32>, index) -> tensor<?xf32>{%n}
// CHECK-NEXT:   %1, %2 = flow.dispatch @k::@k() : () -> (tensor<4xf32>, tensor<4xi32>)
