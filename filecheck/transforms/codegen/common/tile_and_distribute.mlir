// RUN: xdsl-opt %s -p irees-tile-and-distribute | filecheck %s

// Two ops of one group run in one loop; the buffer between them shrinks to a tile on the stack.
// CHECK-LABEL: flow.executable @fused
// CHECK:         scf.forall (%[[I:.*]]) in (16) {
// CHECK:         %[[O:.*]] = arith.muli %[[I]], %{{.*}} : index
// CHECK-NEXT:          %[[T:.*]] = memref.alloca() : memref<32x64xf32>
// CHECK-NEXT:          %[[X:.*]] = memref.subview %x[%[[O]], 0] [32, 64] [1, 1]
// CHECK-NEXT:          linalg.generic {{.*}} ins(%[[X]] : {{.*}}) outs(%[[T]] : memref<32x64xf32>)
// CHECK:         %[[Y:.*]] = memref.subview %y[%[[O]], 0] [32, 64] [1, 1]
// CHECK-NEXT:          linalg.generic {{.*}} ins(%[[T]] : memref<32x64xf32>) outs(%[[Y]] : {{.*}}) {
flow.executable @fused {
  builtin.module {
    func.func @fused(%x: memref<512x64xf32>, %y: memref<512x64xf32>) {
      %t = memref.alloc() : memref<512x64xf32>
      linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d0, d1)>], iterator_types = ["parallel", "parallel"]} ins(%x : memref<512x64xf32>) outs(%t : memref<512x64xf32>) attrs = {lowering_config = #iree_codegen.lowering_config<{group = 0, workgroup = [32, 0]}>} {
      ^bb0(%a: f32, %b: f32):
        %c = arith.negf %a : f32
        linalg.yield %c : f32
      }
      linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d0, d1)>], iterator_types = ["parallel", "parallel"]} ins(%t : memref<512x64xf32>) outs(%y : memref<512x64xf32>) attrs = {lowering_config = #iree_codegen.lowering_config<{group = 0, workgroup = [32, 0]}>} {
      ^bb0(%a: f32, %b: f32):
        %c = math.exp %a : f32
        linalg.yield %c : f32
      }
      return
    }
  }
}

// The last tile of a dynamic loop is shorter.
// CHECK-LABEL: flow.executable @dynamic
// CHECK:         %[[N:.*]] = memref.dim %x
// CHECK:         %[[COUNT:.*]] = arith.divui
// CHECK:         scf.forall (%[[I:.*]]) in (%[[COUNT]]) {
// CHECK:         %[[O:.*]] = arith.muli %[[I]], %{{.*}} : index
// CHECK-NEXT:          %[[REST:.*]] = arith.subi %[[N]], %[[O]] : index
// CHECK:         %[[SIZE:.*]] = arith.minsi %{{.*}}, %[[REST]] : index
// CHECK:         memref.subview %x[%[[O]]] [%[[SIZE]]] [1]
flow.executable @dynamic {
  builtin.module {
    func.func @dynamic(%x: memref<?xf32>, %y: memref<?xf32>) {
      linalg.generic {indexing_maps = [affine_map<(d0) -> (d0)>, affine_map<(d0) -> (d0)>], iterator_types = ["parallel"]} ins(%x : memref<?xf32>) outs(%y : memref<?xf32>) attrs = {lowering_config = #iree_codegen.lowering_config<{group = 0, workgroup = [64]}>} {
      ^bb0(%a: f32, %b: f32):
        %c = arith.negf %a : f32
        linalg.yield %c : f32
      }
      return
    }
  }
}

// A tile knows the place of its first element.
// CHECK-LABEL: flow.executable @index
// CHECK:         scf.forall (%[[T:.*]]) in (8) {
// CHECK:         %[[O:.*]] = arith.muli %[[T]], %{{.*}} : index
// CHECK:         %[[I:.*]] = linalg.index 0 : index
// CHECK-NEXT:            %[[J:.*]] = arith.addi %[[I]], %[[O]] : index
// CHECK-NEXT:            linalg.yield %[[J]] : index
flow.executable @index {
  builtin.module {
    func.func @index(%y: memref<512xindex>) {
      linalg.generic {indexing_maps = [affine_map<(d0) -> (d0)>], iterator_types = ["parallel"]} outs(%y : memref<512xindex>) attrs = {lowering_config = #iree_codegen.lowering_config<{group = 0, workgroup = [64]}>} {
      ^bb0(%b: index):
        %i = linalg.index 0 : index
        linalg.yield %i : index
      }
      return
    }
  }
}

// A group without tiled loops is one workgroup on whole buffers.
// CHECK-LABEL: flow.executable @no_tiles
// CHECK:         scf.forall (%{{.*}}) in (1) {
// CHECK-NEXT:          linalg.generic {{.*}} ins(%x : memref<8xf32>) outs(%y : memref<f32>)
flow.executable @no_tiles {
  builtin.module {
    func.func @no_tiles(%x: memref<8xf32>, %y: memref<f32>) {
      linalg.generic {indexing_maps = [affine_map<(d0) -> (d0)>, affine_map<(d0) -> ()>], iterator_types = ["reduction"]} ins(%x : memref<8xf32>) outs(%y : memref<f32>) attrs = {lowering_config = #iree_codegen.lowering_config<{group = 0, workgroup = [0]}>} {
      ^bb0(%a: f32, %b: f32):
        %c = arith.addf %a, %b : f32
        linalg.yield %c : f32
      }
      return
    }
  }
}

// An op without a config belongs to no group.
// CHECK-LABEL: flow.executable @no_config
// CHECK-NOT:     scf.forall
// CHECK:         linalg.generic
flow.executable @no_config {
  builtin.module {
    func.func @no_config(%x: memref<8xf32>, %y: memref<8xf32>) {
      linalg.generic {indexing_maps = [affine_map<(d0) -> (d0)>, affine_map<(d0) -> (d0)>], iterator_types = ["parallel"]} ins(%x : memref<8xf32>) outs(%y : memref<8xf32>) {
      ^bb0(%a: f32, %b: f32):
        linalg.yield %a : f32
      }
      return
    }
  }
}

// A row of 1 MiB between two ops is no error, and not on the stack: it is scratch memory.
// CHECK-LABEL: flow.executable @large_row
// CHECK:         scf.forall
// CHECK-NOT:     memref.alloca
// CHECK:         memref.alloc() : memref<1x262144xf32>
flow.executable @large_row {
  builtin.module {
    func.func @large_row(%x: memref<32x262144xf32>, %y: memref<32x262144xf32>) {
      %t = memref.alloc() : memref<32x262144xf32>
      linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d0, d1)>], iterator_types = ["parallel", "parallel"]} ins(%x : memref<32x262144xf32>) outs(%t : memref<32x262144xf32>) attrs = {lowering_config = #iree_codegen.lowering_config<{group = 0, workgroup = [1, 0]}>} {
      ^bb0(%a: f32, %b: f32):
        %c = arith.negf %a : f32
        linalg.yield %c : f32
      }
      linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d0, d1)>], iterator_types = ["parallel", "parallel"]} ins(%t : memref<32x262144xf32>) outs(%y : memref<32x262144xf32>) attrs = {lowering_config = #iree_codegen.lowering_config<{group = 0, workgroup = [1, 0]}>} {
      ^bb0(%a: f32, %b: f32):
        %c = math.exp %a : f32
        linalg.yield %c : f32
      }
      return
    }
  }
}

// A padded buffer of one group shrinks to a tile, and so do its border and its inside.
// CHECK-LABEL: flow.executable @padded
// CHECK:         scf.forall (%{{.*}}) in (16) {
// CHECK:           %[[T:.*]] = memref.alloca() : memref<2x10xf32>
// CHECK:           %[[IN:.*]] = memref.subview %[[T]][0, 1] [2, 8] [1, 1]
// CHECK:           linalg.generic {{.*}} outs(%[[IN]] :
// CHECK:           %[[LEFT:.*]] = memref.subview %[[T]][0, 0] [2, 1] [1, 1]
// CHECK:           linalg.generic {{.*}} outs(%[[LEFT]] :
// CHECK:           linalg.generic {{.*}} ins(%[[T]], %f : memref<2x10xf32>, memref<2xf32>)
// CHECK-NOT:     memref.alloc() : memref<32x10xf32>
flow.executable @padded {
  builtin.module {
    func.func @padded(%x: memref<32x8xf32>, %f: memref<2xf32>, %y: memref<32x9xf32>) {
      %zero = arith.constant 0.0 : f32
      %t = memref.alloc() : memref<32x10xf32>
      %in = memref.subview %t[0, 1] [32, 8] [1, 1] : memref<32x10xf32> to memref<32x8xf32, strided<[10, 1], offset: 1>>
      linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d0, d1)>], iterator_types = ["parallel", "parallel"]} ins(%x : memref<32x8xf32>) outs(%in : memref<32x8xf32, strided<[10, 1], offset: 1>>) attrs = {lowering_config = #iree_codegen.lowering_config<{group = 0, workgroup = [2, 0]}>} {
      ^bb0(%a: f32, %b: f32):
        linalg.yield %a : f32
      }
      %left = memref.subview %t[0, 0] [32, 1] [1, 1] : memref<32x10xf32> to memref<32x1xf32, strided<[10, 1]>>
      linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>], iterator_types = ["parallel", "parallel"]} outs(%left : memref<32x1xf32, strided<[10, 1]>>) attrs = {lowering_config = #iree_codegen.lowering_config<{group = 0, workgroup = [2, 0]}>} {
      ^bb0(%b: f32):
        linalg.yield %zero : f32
      }
      linalg.generic {indexing_maps = [affine_map<(d0, d1, d2) -> (d0, d1 + d2)>, affine_map<(d0, d1, d2) -> (d2)>, affine_map<(d0, d1, d2) -> (d0, d1)>], iterator_types = ["parallel", "parallel", "reduction"]} ins(%t, %f : memref<32x10xf32>, memref<2xf32>) outs(%y : memref<32x9xf32>) attrs = {lowering_config = #iree_codegen.lowering_config<{group = 0, workgroup = [2, 0, 0]}>} {
      ^bb0(%a: f32, %w: f32, %b: f32):
        %m = arith.mulf %a, %w : f32
        %c = arith.addf %b, %m : f32
        linalg.yield %c : f32
      }
      return
    }
  }
}
