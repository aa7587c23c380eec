// RUN: irees opt %s | irees opt | filecheck %s
// RUN: irees opt --mlir-print-op-generic %s | irees opt | filecheck %s

// CHECK-LABEL: func.func @warp
// CHECK:         %[[ALL:.*]] = arith.constant -1 : i32
// CHECK-NEXT:    %[[MINE:.*]] = nvvm.match.sync any %[[ALL]], %x : i32 -> i32
// CHECK-NEXT:    nvvm.match.sync any %[[ALL]], %y : i64 -> i32
// CHECK-NEXT:    nvvm.bar.warp.sync %[[ALL]] : i32
// CHECK-NEXT:    return %[[MINE]]
func.func @warp(%x: i32, %y: i64) -> i32 {
  %all = arith.constant -1 : i32
  %a = nvvm.match.sync any %all, %x : i32 -> i32
  %b = nvvm.match.sync any %all, %y : i64 -> i32
  nvvm.bar.warp.sync %all : i32
  return %a : i32
}

// CHECK-LABEL: func.func @fence
// CHECK-NEXT:    nvvm.fence.proxy {kind = #nvvm.proxy_kind<async.shared>, space = #nvvm.shared_space<cta>}
// CHECK-NEXT:    nvvm.fence.mbarrier.init
// CHECK-NEXT:    nvvm.memory.barrier <gpu>
// CHECK-NEXT:    nvvm.wgmma.wait.group.sync.aligned 1
func.func @fence() {
  nvvm.fence.proxy {kind = #nvvm.proxy_kind<async.shared>, space = #nvvm.shared_space<cta>}
  nvvm.fence.mbarrier.init
  nvvm.memory.barrier <gpu>
  nvvm.wgmma.wait.group.sync.aligned 1
  return
}
