// RUN: xdsl-opt %s --split-input-file --verify-diagnostics | filecheck %s

// CHECK: expected one of *, external, staging, transient, variable, constant
util.func private @lifetime(%x: !stream.resource<forever>) {
  util.return
}

// -----

// CHECK: tensor<?x4xf32> has 1 dynamic dims, but 0 are given
util.func private @encoding_dims() {
  %z = stream.tensor.sizeof tensor<?x4xf32> : index
  util.return
}

// -----

// CHECK: expected a size and a range for each resource operand
util.func private @range(%x: !stream.resource<*>, %n: index) {
  %r = stream.async.dispatch @e::@f(%x) : (!stream.resource<*>{%n}) -> !stream.resource<*>{%n}
  util.return
}

// -----

// CHECK: expected a size for each result
util.func private @size(%n: index) {
  %r = stream.async.dispatch @e::@f() : () -> !stream.resource<*>
  util.return
}

// -----

// CHECK: expected the region to have the operands as arguments
util.func private @captures(%x: !stream.resource<*>, %n: index) {
  %t = "stream.async.execute"(%x, %n) <{operandSegmentSizes = array<i32: 1, 1, 0, 0>}> ({
    "stream.yield"() : () -> ()
  }) : (!stream.resource<*>, index) -> !stream.timepoint
  util.return
}
