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

// Products around a mask share their rows; `columns` is the loop of each op that the mask shortens.
// ONE-LABEL: flow.executable @masked
// ONE:         workgroup = [1 : i64, 64 : i64, 0 : i64, 0 : i64], columns = 2 : i64, block = [{{[0-9]+}} : i64, {{[0-9]+}} : i64]}
// ONE:         workgroup = [1 : i64, 64 : i64, 0 : i64], columns = 2 : i64, mask = 1 : i64}
// ONE:         workgroup = [1 : i64, 64 : i64, 0 : i64, 0 : i64], columns = 3 : i64, block = [{{[0-9]+}} : i64, {{[0-9]+}} : i64]}
flow.executable @masked {
  builtin.module {
    func.func @masked(%q: memref<8x1024x16xf32>, %k: memref<8x1024x16xf32>, %v: memref<8x1024x16xf32>, %r: memref<8x1024x16xf32>) {
      %zero = arith.constant 0.0 : f32
      %s = memref.alloc() : memref<8x1024x1024xf32>
      %t = memref.alloc() : memref<8x1024x1024xf32>
      linalg.generic {indexing_maps = [affine_map<(b, m, n, k) -> (b, m, k)>, affine_map<(b, m, n, k) -> (b, n, k)>, affine_map<(b, m, n, k) -> (b, m, n)>], iterator_types = ["parallel", "parallel", "parallel", "reduction"]} ins(%q, %k : memref<8x1024x16xf32>, memref<8x1024x16xf32>) outs(%s : memref<8x1024x1024xf32>) {
      ^bb0(%a: f32, %b: f32, %c: f32):
        %m = arith.mulf %a, %b : f32
        %n = arith.addf %c, %m : f32
        linalg.yield %n : f32
      }
      linalg.generic {indexing_maps = [affine_map<(b, m, n) -> (b, m, n)>, affine_map<(b, m, n) -> (b, m, n)>], iterator_types = ["parallel", "parallel", "parallel"]} ins(%s : memref<8x1024x1024xf32>) outs(%t : memref<8x1024x1024xf32>) {
      ^bb0(%a: f32, %c: f32):
        %i = linalg.index 1 : index
        %j = linalg.index 2 : index
        %seen = arith.cmpi sge, %i, %j : index
        %m = arith.select %seen, %a, %zero : f32
        linalg.yield %m : f32
      }
      linalg.generic {indexing_maps = [affine_map<(b, m, n, k) -> (b, m, k)>, affine_map<(b, m, n, k) -> (b, k, n)>, affine_map<(b, m, n, k) -> (b, m, n)>], iterator_types = ["parallel", "parallel", "parallel", "reduction"]} ins(%t, %v : memref<8x1024x1024xf32>, memref<8x1024x16xf32>) outs(%r : memref<8x1024x16xf32>) {
      ^bb0(%a: f32, %b: f32, %c: f32):
        %m = arith.mulf %a, %b : f32
        %n = arith.addf %c, %m : f32
        linalg.yield %n : f32
      }
      return
    }
  }
}

// A reduction that reads rows at computed places keeps whole vectors of the rows that it writes.
// ONE-LABEL: flow.executable @computed_rows
// ONE:         workgroup = [1 : i64, 256 : i64]
// ONE:         workgroup = [1 : i64, 256 : i64, 0 : i64]
flow.executable @computed_rows {
  builtin.module {
    func.func @computed_rows(%x: memref<?x?xf32>, %w: memref<?xf32>, %p: memref<7xindex>, %y: memref<7x?xf32>) {
      linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>], iterator_types = ["parallel", "parallel"]} outs(%y : memref<7x?xf32>) {
      ^bb0(%o: f32):
        %zero = arith.constant 0.0 : f32
        linalg.yield %zero : f32
      }
      linalg.generic {indexing_maps = [affine_map<(i, j, k) -> (k)>, affine_map<(i, j, k) -> (i)>, affine_map<(i, j, k) -> (i, j)>], iterator_types = ["parallel", "parallel", "reduction"]} ins(%w, %p : memref<?xf32>, memref<7xindex>) outs(%y : memref<7x?xf32>) {
      ^bb0(%a: f32, %begin: index, %o: f32):
        %j = linalg.index 1 : index
        %k = linalg.index 2 : index
        %at = arith.addi %begin, %k : index
        %v = memref.load %x[%at, %j] : memref<?x?xf32>
        %s = arith.addf %o, %v : f32
        linalg.yield %s : f32
      }
      return
    }
  }
}
