// RUN: irees opt %s -p irees-decompose-plugin-ops --allow-unregistered-dialect | filecheck %s

// Ops that no installed plug-in lowers stay. tests/test_plugins.py has plug-ins.

// CHECK:      func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
// CHECK-NEXT:   %y = "acme.squash"(%x) : (tensor<4xf32>) -> tensor<4xf32>
// CHECK-NEXT:   %z = arith.addf %y, %x : tensor<4xf32>
func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
  %y = "acme.squash"(%x) : (tensor<4xf32>) -> tensor<4xf32>
  %z = arith.addf %y, %x : tensor<4xf32>
  return %z : tensor<4xf32>
}
