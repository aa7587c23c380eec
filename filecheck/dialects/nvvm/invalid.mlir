// RUN: xdsl-opt %s --verify-diagnostics --split-input-file | filecheck %s

func.func @all(%m: i32, %x: i32) {
  %0 = nvvm.match.sync all %m, %x : i32 -> i32
  return
}
// CHECK: only `any` is known here

// -----

func.func @narrow(%m: i32, %x: i8) {
  %0 = nvvm.match.sync any %m, %x : i8 -> i32
  return
}
// CHECK: operand 'val' at position 1 does not verify

// -----

func.func @fence() {
  nvvm.fence.proxy {kind = #nvvm.proxy_kind<async.global>}
  return
}
// CHECK: only what a workgroup shares has a fence: async.shared, cta

// -----

func.func @scope() {
  nvvm.memory.barrier <sys>
  return
}
// CHECK: only what a whole device sees is known here
