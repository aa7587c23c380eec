// RUN: xdsl-opt %s -p irees-verify-input-legality | filecheck %s

// A program on tensors stays.
// CHECK-LABEL: func.func @no_buffers
// CHECK-NEXT:    func.return %x : tensor<?xf32>
func.func @no_buffers(%x: tensor<?xf32>) -> tensor<?xf32> {
  return %x : tensor<?xf32>
}
