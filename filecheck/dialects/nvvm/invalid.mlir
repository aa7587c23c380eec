// RUN: xdsl-opt %s --verify-diagnostics --split-input-file | filecheck %s

func.func @fence() {
  nvvm.fence.proxy {kind = #nvvm.proxy_kind<async.global>}
  return
}
// CHECK: only what a workgroup shares has a fence: async.shared, cta
