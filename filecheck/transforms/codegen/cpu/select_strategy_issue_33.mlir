// RUN: xdsl-opt %s -p 'irees-assign-target{facts="threads=1"},irees-select-strategy' | filecheck %s --check-prefix ONE
// RUN: xdsl-opt %s -p 'irees-assign-target{facts="threads=2"},irees-select-strategy' | filecheck %s --check-prefix TWO

// A kernel needs a static number of blocks of columns: 125 blocks are not cut into 63 and 62.
// ONE-LABEL: flow.executable @odd_blocks
// ONE:         workgroup = [0 : i64, 0 : i64, 0 : i64, 0 : i64, 0 : i64]
// TWO-LABEL: flow.executable @odd_blocks
// TWO:         workgroup = [5 : i64, 0 : i64, 0 : i64, 0 : i64, 0 : i64]
flow.executable @odd_blocks {
  builtin.module {
    func.func @odd_blocks(%x: memref<169x8x16xf32>, %w: memref<125x8x16x8xf32>, %y: memref<125x169x8xf32>) {
      linalg.generic {indexing_maps = [affine_map<(n, m, d, k, j) -> (m, k, j)>, affine_map<(n, m, d, k, j) -> (n, k, j, d)>, affine_map<(n, m, d, k, j) -> (n, m, d)>], iterator_types = ["parallel", "parallel", "parallel", "reduction", "reduction"]} ins(%x, %w : memref<169x8x16xf32>, memref<125x8x16x8xf32>) outs(%y : memref<125x169x8xf32>) {
      ^bb0(%a: f32, %b: f32, %c: f32):
        %p = arith.mulf %a, %b : f32
        %s = arith.addf %c, %p : f32
        linalg.yield %s : f32
      }
      return
    }
  }
}

// A prime number of blocks is one tile; two threads share the rows.
// ONE-LABEL: flow.executable @prime_blocks
// ONE:         workgroup = [0 : i64, 0 : i64, 0 : i64, 0 : i64, 0 : i64]
// TWO-LABEL: flow.executable @prime_blocks
// TWO:         workgroup = [0 : i64, 85 : i64, 0 : i64, 0 : i64, 0 : i64]
flow.executable @prime_blocks {
  builtin.module {
    func.func @prime_blocks(%x: memref<169x8x16xf32>, %w: memref<47x8x16x16xf32>, %y: memref<47x169x16xf32>) {
      linalg.generic {indexing_maps = [affine_map<(n, m, d, k, j) -> (m, k, j)>, affine_map<(n, m, d, k, j) -> (n, k, j, d)>, affine_map<(n, m, d, k, j) -> (n, m, d)>], iterator_types = ["parallel", "parallel", "parallel", "reduction", "reduction"]} ins(%x, %w : memref<169x8x16xf32>, memref<47x8x16x16xf32>) outs(%y : memref<47x169x16xf32>) {
      ^bb0(%a: f32, %b: f32, %c: f32):
        %p = arith.mulf %a, %b : f32
        %s = arith.addf %c, %p : f32
        linalg.yield %s : f32
      }
      return
    }
  }
}
