// RUN: xdsl-opt %s -p 'irees-assign-target{facts="threads=1"},irees-select-strategy' | filecheck %s

// Channels in blocks get their bias, then become the outer loop: a tile has all channels of a block,
// which one of its ops writes along and the other reads along.
// CHECK-LABEL: flow.executable @unblocked
// CHECK:         workgroup = [1 : i64, 2 : i64, 0 : i64, 0 : i64]
// CHECK:         workgroup = [1 : i64, 0 : i64, 2 : i64, 0 : i64]
flow.executable @unblocked {
  builtin.module {
    func.func @unblocked(%x: memref<2x6x56x16xf32>, %b: memref<2x16xf32>, %t: memref<2x6x56x16xf32>, %y: memref<2x16x6x56xf32>) {
      linalg.generic {indexing_maps = [affine_map<(o, h, w, i) -> (o, h, w, i)>, affine_map<(o, h, w, i) -> (o, i)>, affine_map<(o, h, w, i) -> (o, h, w, i)>], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%x, %b : memref<2x6x56x16xf32>, memref<2x16xf32>) outs(%t : memref<2x6x56x16xf32>) {
      ^bb0(%a: f32, %c: f32, %d: f32):
        %s = arith.addf %a, %c : f32
        linalg.yield %s : f32
      }
      linalg.generic {indexing_maps = [affine_map<(o, i, h, w) -> (o, h, w, i)>, affine_map<(o, i, h, w) -> (o, i, h, w)>], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%t : memref<2x6x56x16xf32>) outs(%y : memref<2x16x6x56xf32>) {
      ^bb0(%a: f32, %d: f32):
        linalg.yield %a : f32
      }
      return
    }
  }
}
