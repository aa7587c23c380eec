// RUN: irees opt %s -p 'irees-assign-target{target="cuda:sm_80"},irees-gpu-select-strategy' | filecheck %s

// No elements of this convolution's operands are loaded together. With 32 steps at a time a thread
// would hold 32 halves and their addresses while it multiplies; with 16 it holds half as many.
// CHECK-LABEL: func.func @single_loads
// CHECK:         block = [64 : i64, 64 : i64, 32 : i64, 32 : i64, 16 : i64, 4 : i64]
flow.executable @convolution {
  builtin.module {
    func.func @single_loads(%x: memref<2x256x30x30xf16>, %w: memref<256x256x3x3xf16>, %y: memref<2x256x28x28xf32>) {
      linalg.generic {indexing_maps = [affine_map<(b, f, i, j, c, k, l) -> (b, c, i + k, j + l)>, affine_map<(b, f, i, j, c, k, l) -> (f, c, k, l)>, affine_map<(b, f, i, j, c, k, l) -> (b, f, i, j)>],
                      iterator_types = ["parallel", "parallel", "parallel", "parallel", "reduction", "reduction", "reduction"]}
          ins(%x, %w : memref<2x256x30x30xf16>, memref<256x256x3x3xf16>) outs(%y : memref<2x256x28x28xf32>) {
      ^bb0(%a: f16, %b: f16, %o: f32):
        %v = arith.extf %a : f16 to f32
        %u = arith.extf %b : f16 to f32
        %p = arith.mulf %v, %u : f32
        %s = arith.addf %o, %p : f32
        linalg.yield %s : f32
      }
      return
    }
  }
}

// The least depth of bytes is 32 steps, which are still too many loads for a thread: there are
// twice as many warps. Dynamic rows are loaded one at a time, too.
// CHECK-LABEL: func.func @single_bytes
// CHECK:         block = [64 : i64, 64 : i64, 32 : i64, 16 : i64, 32 : i64, 4 : i64]
// CHECK-LABEL: func.func @dynamic_rows
// CHECK:         block = [64 : i64, 64 : i64, 32 : i64, 16 : i64, 32 : i64, 4 : i64]
flow.executable @products_of_bytes {
  builtin.module {
    func.func @single_bytes(%x: memref<511x511xi8>, %w: memref<511x511xi8>, %y: memref<511x511xi32>) {
      linalg.generic {indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (k, n)>, affine_map<(m, n, k) -> (m, n)>],
                      iterator_types = ["parallel", "parallel", "reduction"]}
          ins(%x, %w : memref<511x511xi8>, memref<511x511xi8>) outs(%y : memref<511x511xi32>) {
      ^bb0(%a: i8, %b: i8, %o: i32):
        %v = arith.extsi %a : i8 to i32
        %u = arith.extsi %b : i8 to i32
        %p = arith.muli %v, %u : i32
        %s = arith.addi %o, %p : i32
        linalg.yield %s : i32
      }
      return
    }
    func.func @dynamic_rows(%x: memref<?x?xi8>, %w: memref<?x4095xi8>, %y: memref<?x4095xi32>) {
      linalg.generic {indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (k, n)>, affine_map<(m, n, k) -> (m, n)>],
                      iterator_types = ["parallel", "parallel", "reduction"]}
          ins(%x, %w : memref<?x?xi8>, memref<?x4095xi8>) outs(%y : memref<?x4095xi32>) {
      ^bb0(%a: i8, %b: i8, %o: i32):
        %v = arith.extsi %a : i8 to i32
        %u = arith.extsi %b : i8 to i32
        %p = arith.muli %v, %u : i32
        %s = arith.addi %o, %p : i32
        linalg.yield %s : i32
      }
      return
    }
  }
}

// Both operands are read 16 bytes at a time: the depth stays.
// CHECK-LABEL: func.func @no_single_loads
// CHECK:         block = [64 : i64, 64 : i64, 32 : i64, 32 : i64, 32 : i64, 4 : i64]
flow.executable @product {
  builtin.module {
    func.func @no_single_loads(%x: memref<768x256xf16>, %w: memref<256x768xf16>, %y: memref<768x768xf32>) {
      linalg.generic {indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (k, n)>, affine_map<(m, n, k) -> (m, n)>],
                      iterator_types = ["parallel", "parallel", "reduction"]}
          ins(%x, %w : memref<768x256xf16>, memref<256x768xf16>) outs(%y : memref<768x768xf32>) {
      ^bb0(%a: f16, %b: f16, %o: f32):
        %v = arith.extf %a : f16 to f32
        %u = arith.extf %b : f16 to f32
        %p = arith.mulf %v, %u : f32
        %s = arith.addf %o, %p : f32
        linalg.yield %s : f32
      }
      return
    }
  }
}

// A product with asynchronous copies has wide blocks if all of them are whole, and if the elements
// of one operand at least are copied four at a time.
// CHECK-LABEL: func.func @wide
// CHECK:         block = [128 : i64, 256 : i64, 8 : i64, 16 : i64, 16 : i64], stages = 3 : i64
// CHECK-LABEL: func.func @cut
// CHECK:         block = [128 : i64, 128 : i64, 8 : i64, 8 : i64, 8 : i64]}
// CHECK-LABEL: func.func @along_depth
// CHECK:         block = [128 : i64, 128 : i64, 8 : i64, 8 : i64, 8 : i64]}
#m = affine_map<(m, n, k) -> (m, k)>
#n = affine_map<(m, n, k) -> (k, n)>
#t = affine_map<(m, n, k) -> (n, k)>
#o = affine_map<(m, n, k) -> (m, n)>
flow.executable @p_wide {
  builtin.module {
    func.func @wide(%a: memref<4096x1024xf32>, %b: memref<1024x4096xf32>, %c: memref<4096x4096xf32>) {
      linalg.generic {indexing_maps = [#m, #n, #o], iterator_types = ["parallel", "parallel", "reduction"]}
          ins(%a, %b : memref<4096x1024xf32>, memref<1024x4096xf32>) outs(%c : memref<4096x4096xf32>) {
      ^bb0(%x: f32, %y: f32, %o: f32):
        %p = arith.mulf %x, %y : f32
        %s = arith.addf %o, %p : f32
        linalg.yield %s : f32
      }
      return
    }
  }
}
flow.executable @p_cut {
  builtin.module {
    func.func @cut(%a: memref<4096x1020xf32>, %b: memref<1020x4096xf32>, %c: memref<4096x4096xf32>) {
      linalg.generic {indexing_maps = [#m, #n, #o], iterator_types = ["parallel", "parallel", "reduction"]}
          ins(%a, %b : memref<4096x1020xf32>, memref<1020x4096xf32>) outs(%c : memref<4096x4096xf32>) {
      ^bb0(%x: f32, %y: f32, %o: f32):
        %p = arith.mulf %x, %y : f32
        %s = arith.addf %o, %p : f32
        linalg.yield %s : f32
      }
      return
    }
  }
}
flow.executable @p_along_depth {
  builtin.module {
    func.func @along_depth(%a: memref<4096x1024xf32>, %b: memref<4096x1024xf32>, %c: memref<4096x4096xf32>) {
      linalg.generic {indexing_maps = [#m, #t, #o], iterator_types = ["parallel", "parallel", "reduction"]}
          ins(%a, %b : memref<4096x1024xf32>, memref<4096x1024xf32>) outs(%c : memref<4096x4096xf32>) {
      ^bb0(%x: f32, %y: f32, %o: f32):
        %p = arith.mulf %x, %y : f32
        %s = arith.addf %o, %p : f32
        linalg.yield %s : f32
      }
      return
    }
  }
}
