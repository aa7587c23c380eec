// RUN: irees opt %s -p irees-gpu-select-strategy | filecheck %s

#id = affine_map<(i, j) -> (i, j)>
#row = affine_map<(i, j) -> (i)>

// 128 threads with four points each: eight rows of 64.
// CHECK-LABEL: func.func @elementwise
// CHECK:         workgroup = [8 : i64, 0 : i64]
flow.executable @e {
  builtin.module {
    func.func @elementwise(%x: memref<?x64xf32>, %y: memref<?x64xf32>) {
      linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]}
          ins(%x : memref<?x64xf32>) outs(%y : memref<?x64xf32>) {
      ^bb0(%a: f32, %o: f32):
        %n = arith.negf %a : f32
        linalg.yield %n : f32
      }
      return
    }
  }
}

// Of halves 16 bytes are eight points for each.
// CHECK-LABEL: func.func @halves
// CHECK:         workgroup = [16 : i64, 0 : i64]
flow.executable @halves_of_rows {
  builtin.module {
    func.func @halves(%x: memref<?x64xf16>, %y: memref<?x64xf16>) {
      linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]}
          ins(%x : memref<?x64xf16>) outs(%y : memref<?x64xf16>) {
      ^bb0(%a: f16, %o: f16):
        %n = arith.negf %a : f16
        linalg.yield %n : f16
      }
      return
    }
  }
}

// The sum of a row and what is done with it share a workgroup.
// CHECK-LABEL: func.func @rows
// CHECK:         group = 0 : i64, workgroup = [1 : i64, 0 : i64]
// CHECK:         group = 0 : i64, workgroup = [1 : i64, 0 : i64]
flow.executable @f {
  builtin.module {
    func.func @rows(%x: memref<512x4096xf32>, %s: memref<512xf32>) {
      linalg.generic {indexing_maps = [#id, #row], iterator_types = ["parallel", "reduction"]}
          ins(%x : memref<512x4096xf32>) outs(%s : memref<512xf32>) {
      ^bb0(%a: f32, %o: f32):
        %n = arith.addf %o, %a : f32
        linalg.yield %n : f32
      }
      linalg.generic {indexing_maps = [#row, #id], iterator_types = ["parallel", "parallel"]}
          ins(%s : memref<512xf32>) outs(%x : memref<512x4096xf32>) {
      ^bb0(%a: f32, %o: f32):
        linalg.yield %a : f32
      }
      return
    }
  }
}

// Blocks of 128 x 128 load each operand least often; a smaller product would be a single one of them.
// CHECK-LABEL: func.func @contractions
// CHECK:         group = 0 : i64, workgroup = [128 : i64, 128 : i64, 0 : i64], block = [128 : i64, 128 : i64, 8 : i64, 8 : i64, 8 : i64]
// CHECK:         group = 1 : i64, workgroup = [8 : i64, 64 : i64, 0 : i64], block = [8 : i64, 64 : i64, 1 : i64, 4 : i64, 32 : i64]
#a = affine_map<(m, n, k) -> (m, k)>
#b = affine_map<(m, n, k) -> (k, n)>
#c = affine_map<(m, n, k) -> (m, n)>
flow.executable @g {
  builtin.module {
    func.func @contractions(%a: memref<2048x64xf32>, %b: memref<64x2048xf32>, %c: memref<2048x2048xf32>, %d: memref<128x64xf32>, %e: memref<64x128xf32>, %f: memref<128x128xf32>) {
      linalg.generic {indexing_maps = [#a, #b, #c], iterator_types = ["parallel", "parallel", "reduction"]}
          ins(%a, %b : memref<2048x64xf32>, memref<64x2048xf32>) outs(%c : memref<2048x2048xf32>) {
      ^bb0(%x: f32, %y: f32, %o: f32):
        %p = arith.mulf %x, %y : f32
        %s = arith.addf %o, %p : f32
        linalg.yield %s : f32
      }
      linalg.generic {indexing_maps = [#a, #b, #c], iterator_types = ["parallel", "parallel", "reduction"]}
          ins(%d, %e : memref<128x64xf32>, memref<64x128xf32>) outs(%f : memref<128x128xf32>) {
      ^bb0(%x: f32, %y: f32, %o: f32):
        %p = arith.mulf %x, %y : f32
        %s = arith.addf %o, %p : f32
        linalg.yield %s : f32
      }
      return
    }
  }
}

// A window is no row: its points are for threads, whatever gives it its shape.
// CHECK-LABEL: func.func @window
// CHECK:         workgroup = [8 : i64, 0 : i64, 0 : i64]
flow.executable @h {
  builtin.module {
    func.func @window(%x: memref<256x640xf32>, %w: memref<49xf32>, %y: memref<256x16xf32>) {
      linalg.generic {indexing_maps = [affine_map<(i, j, k) -> (i, j * 4 + k)>, affine_map<(i, j, k) -> (k)>, affine_map<(i, j, k) -> (i, j)>], iterator_types = ["parallel", "parallel", "reduction"]}
          ins(%x, %w : memref<256x640xf32>, memref<49xf32>) outs(%y : memref<256x16xf32>) {
      ^bb0(%a: f32, %b: f32, %o: f32):
        %m = arith.maximumf %o, %a : f32
        linalg.yield %m : f32
      }
      return
    }
  }
}

// Windows are not rows: neighbours read the same numbers, so each thread takes a window of its own.
// The place of the largest number of a row has no combiner that warps could fold.
// CHECK-LABEL: func.func @windows
// CHECK:         group = 0 : i64, workgroup = [128 : i64, 0 : i64]
// CHECK:         group = 1 : i64, workgroup = [128 : i64, 0 : i64]
#window = affine_map<(i, j) -> (i * 2 + j)>
#shape = affine_map<(i, j) -> (j)>
flow.executable @h1 {
  builtin.module {
    func.func @windows(%x: memref<?xf32>, %w: memref<27xf32>, %s: memref<?xf32>, %y: memref<?x?xf32>, %m: memref<?xf32>) {
      linalg.generic {indexing_maps = [#window, #shape, #row], iterator_types = ["parallel", "reduction"]}
          ins(%x, %w : memref<?xf32>, memref<27xf32>) outs(%s : memref<?xf32>) {
      ^bb0(%a: f32, %b: f32, %o: f32):
        %n = arith.maximumf %o, %a : f32
        linalg.yield %n : f32
      }
      linalg.generic {indexing_maps = [#id, #row], iterator_types = ["parallel", "reduction"]}
          ins(%y : memref<?x?xf32>) outs(%m : memref<?xf32>) {
      ^bb0(%a: f32, %o: f32):
        %n = arith.divf %o, %a : f32
        linalg.yield %n : f32
      }
      return
    }
  }
}

// 32 rows of 16 KiB are as well in one kernel; of 512 KiB, the elementwise op has its own,
// and more threads share a row.
// CHECK-LABEL: func.func @small_rows
// CHECK:         group = 0 : i64
// CHECK:         group = 0 : i64
// CHECK-LABEL: func.func @large_rows
// CHECK:         group = 0 : i64{{.*}} threads = 512
// CHECK:         group = 1 : i64
flow.executable @few_rows {
  builtin.module {
    func.func @small_rows(%x: memref<32x4096xf32>, %s: memref<32xf32>) {
      linalg.generic {indexing_maps = [#id, #row], iterator_types = ["parallel", "reduction"]}
          ins(%x : memref<32x4096xf32>) outs(%s : memref<32xf32>) {
      ^bb0(%a: f32, %o: f32):
        %n = arith.addf %o, %a : f32
        linalg.yield %n : f32
      }
      linalg.generic {indexing_maps = [#row, #id], iterator_types = ["parallel", "parallel"]}
          ins(%s : memref<32xf32>) outs(%x : memref<32x4096xf32>) {
      ^bb0(%a: f32, %o: f32):
        linalg.yield %a : f32
      }
      return
    }
    func.func @large_rows(%x: memref<32x131072xf32>, %s: memref<32xf32>) {
      linalg.generic {indexing_maps = [#id, #row], iterator_types = ["parallel", "reduction"]}
          ins(%x : memref<32x131072xf32>) outs(%s : memref<32xf32>) {
      ^bb0(%a: f32, %o: f32):
        %n = arith.addf %o, %a : f32
        linalg.yield %n : f32
      }
      linalg.generic {indexing_maps = [#row, #id], iterator_types = ["parallel", "parallel"]}
          ins(%s : memref<32xf32>) outs(%x : memref<32x131072xf32>) {
      ^bb0(%a: f32, %o: f32):
        linalg.yield %a : f32
      }
      return
    }
  }
}
