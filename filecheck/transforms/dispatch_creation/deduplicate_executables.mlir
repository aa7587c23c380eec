// RUN: xdsl-opt %s -p irees-deduplicate-executables | filecheck %s

// CHECK:       flow.executable @first
// CHECK-NOT:    flow.executable @same
// CHECK:       flow.executable @other_type
// CHECK:       flow.executable @other_constant
// CHECK:       flow.executable @other_operands
flow.executable @first {
  builtin.module {
    func.func @first(%x: !iree_tensor_ext.dispatch.tensor<readonly:tensor<4xf32>>, %n: index) {
      %c = arith.constant 1 : index
      %s = arith.addi %n, %c : index
      return
    }
  }
}
flow.executable @same {
  builtin.module {
    func.func @same(%y: !iree_tensor_ext.dispatch.tensor<readonly:tensor<4xf32>>, %m: index) {
      %d = arith.constant 1 : index
      %t = arith.addi %m, %d : index
      return
    }
  }
}
flow.executable @other_type {
  builtin.module {
    func.func @other_type(%x: !iree_tensor_ext.dispatch.tensor<readonly:tensor<5xf32>>, %n: index) {
      %c = arith.constant 1 : index
      %s = arith.addi %n, %c : index
      return
    }
  }
}
flow.executable @other_constant {
  builtin.module {
    func.func @other_constant(%x: !iree_tensor_ext.dispatch.tensor<readonly:tensor<4xf32>>, %n: index) {
      %c = arith.constant 2 : index
      %s = arith.addi %n, %c : index
      return
    }
  }
}
flow.executable @other_operands {
  builtin.module {
    func.func @other_operands(%x: !iree_tensor_ext.dispatch.tensor<readonly:tensor<4xf32>>, %n: index) {
      %c = arith.constant 1 : index
      %s = arith.addi %c, %c : index
      return
    }
  }
}

// Of two equal executables one is kept, and called for both, with dynamic shapes too.
// CHECK-LABEL: func.func @calls
// CHECK-NEXT:    flow.dispatch @first::@first(%x, %n)
// CHECK-NEXT:    flow.dispatch @first::@first(%x, %n)
// CHECK-NEXT:    flow.dispatch @other_type::@other_type(%y, %n)
// CHECK-NEXT:    flow.dispatch @other_constant::@other_constant(%x, %n)
// CHECK-NEXT:    flow.dispatch @other_operands::@other_operands(%x, %n)
func.func @calls(%x: tensor<4xf32>, %y: tensor<5xf32>, %n: index) {
  flow.dispatch @first::@first(%x, %n) : (tensor<4xf32>, index) -> ()
  flow.dispatch @same::@same(%x, %n) : (tensor<4xf32>, index) -> ()
  flow.dispatch @other_type::@other_type(%y, %n) : (tensor<5xf32>, index) -> ()
  flow.dispatch @other_constant::@other_constant(%x, %n) : (tensor<4xf32>, index) -> ()
  flow.dispatch @other_operands::@other_operands(%x, %n) : (tensor<4xf32>, index) -> ()
  return
}
