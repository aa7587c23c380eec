// RUN: xdsl-opt %s --verify-diagnostics --split-input-file | filecheck %s

func.func @all(%m: i32, %x: i32) {
  %0 = nvvm.match.sync all %m, %x : i32 -> i32
  return
}
// CHECK: only the kind `any` is supported

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
// CHECK: only a fence of async.shared in space cta is supported

// -----

func.func @scope() {
  nvvm.memory.barrier <sys>
  return
}
// CHECK: only the scope gpu is supported
