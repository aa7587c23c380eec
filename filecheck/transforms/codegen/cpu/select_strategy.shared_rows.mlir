// RUN: xdsl-opt %s -p 'irees-assign-target{facts="threads=1"},irees-select-strategy' | filecheck %s

// Eight rows of results share the vectors of %y: 16 rows are two tiles.
// CHECK-LABEL: flow.executable @shared_rows
// CHECK:         workgroup = [8 : i64, 150 : i64, 0 : i64]
flow.executable @shared_rows {
  builtin.module {
    func.func @shared_rows(%x: memref<16x64xf32>, %y: memref<64x300xf32>, %z: memref<16x300xf32>) {
      linalg.generic {indexing_maps = [affine_map<(i, j, k) -> (i, k)>, affine_map<(i, j, k) -> (k, j)>, affine_map<(i, j, k) -> (i, j)>], iterator_types = ["parallel", "parallel", "reduction"]} ins(%x, %y : memref<16x64xf32>, memref<64x300xf32>) outs(%z : memref<16x300xf32>) {
      ^bb0(%a: f32, %b: f32, %c: f32):
        %d = arith.subf %a, %b : f32
        %m = arith.maximumf %c, %d : f32
        linalg.yield %m : f32
      }
      return
    }
  }
}

// Rows of results that share nothing keep one row.
// CHECK-LABEL: flow.executable @no_shared_rows
// CHECK:         workgroup = [1 : i64, 150 : i64, 0 : i64]
flow.executable @no_shared_rows {
  builtin.module {
    func.func @no_shared_rows(%x: memref<16x64x300xf32>, %z: memref<16x300xf32>) {
      linalg.generic {indexing_maps = [affine_map<(i, j, k) -> (i, k, j)>, affine_map<(i, j, k) -> (i, j)>], iterator_types = ["parallel", "parallel", "reduction"]} ins(%x : memref<16x64x300xf32>) outs(%z : memref<16x300xf32>) {
      ^bb0(%a: f32, %c: f32):
        %m = arith.maximumf %c, %a : f32
        linalg.yield %m : f32
      }
      return
    }
  }
}

// Results that are reduced along rows share no vectors.
// CHECK-LABEL: flow.executable @no_columns
// CHECK:         workgroup = [1 : i64, 1 : i64, 0 : i64]
flow.executable @no_columns {
  builtin.module {
    func.func @no_columns(%u: memref<16x9000xf32>, %v: memref<3x9000xf32>, %z: memref<16x3xf32>) {
      linalg.generic {indexing_maps = [affine_map<(i, j, k) -> (i, k)>, affine_map<(i, j, k) -> (j, k)>, affine_map<(i, j, k) -> (i, j)>], iterator_types = ["parallel", "parallel", "reduction"]} ins(%u, %v : memref<16x9000xf32>, memref<3x9000xf32>) outs(%z : memref<16x3xf32>) {
      ^bb0(%a: f32, %b: f32, %c: f32):
        %d = arith.subf %a, %b : f32
        %m = arith.maximumf %c, %d : f32
        linalg.yield %m : f32
      }
      return
    }
  }
}

// An operand that is transposed for the reduction is copied in tiles of 64 columns.
// CHECK-LABEL: flow.executable @transposed_rows
// CHECK:         workgroup = [0 : i64, 64 : i64]
// CHECK:         workgroup = [0 : i64, 64 : i64, 0 : i64]
flow.executable @transposed_rows {
  builtin.module {
    func.func @transposed_rows(%x: memref<16x8xf32>, %y: memref<300x8xf32>, %t: memref<8x300xf32>, %z: memref<16x300xf32>) {
      linalg.generic {indexing_maps = [affine_map<(k, j) -> (j, k)>, affine_map<(k, j) -> (k, j)>], iterator_types = ["parallel", "parallel"]} ins(%y : memref<300x8xf32>) outs(%t : memref<8x300xf32>) {
      ^bb0(%a: f32, %c: f32):
        linalg.yield %a : f32
      }
      linalg.generic {indexing_maps = [affine_map<(i, j, k) -> (i, k)>, affine_map<(i, j, k) -> (k, j)>, affine_map<(i, j, k) -> (i, j)>], iterator_types = ["parallel", "parallel", "reduction"]} ins(%x, %t : memref<16x8xf32>, memref<8x300xf32>) outs(%z : memref<16x300xf32>) {
      ^bb0(%a: f32, %b: f32, %c: f32):
        %d = arith.subf %a, %b : f32
        %m = arith.maximumf %c, %d : f32
        linalg.yield %m : f32
      }
      return
    }
  }
}

// A fill takes no part of the cache: the tile is as large as without it.
// CHECK-LABEL: flow.executable @filled
// CHECK:         workgroup = [16 : i64, 0 : i64]
// CHECK:         workgroup = [16 : i64, 0 : i64, 0 : i64]
flow.executable @filled {
  builtin.module {
    func.func @filled(%x: memref<64x5x200xf32>, %z: memref<64x200xf32>) {
      linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>], iterator_types = ["parallel", "parallel"]} outs(%z : memref<64x200xf32>) {
      ^bb0(%o: f32):
        %zero = arith.constant 0.0 : f32
        linalg.yield %zero : f32
      }
      linalg.generic {indexing_maps = [affine_map<(i, j, k) -> (i, k, j)>, affine_map<(i, j, k) -> (i, j)>], iterator_types = ["parallel", "parallel", "reduction"]} ins(%x : memref<64x5x200xf32>) outs(%z : memref<64x200xf32>) {
      ^bb0(%a: f32, %c: f32):
        %m = arith.addf %c, %a : f32
        linalg.yield %m : f32
      }
      return
    }
  }
}
