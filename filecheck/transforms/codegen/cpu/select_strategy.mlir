// RUN: xdsl-opt %s -p irees-select-strategy | filecheck %s
// RUN: xdsl-opt %s -p 'irees-assign-target{facts="threads=1"},irees-select-strategy' | filecheck %s --check-prefix ONE

// Ops over the same rows are one group; its 2048 points are 64 rows of 32, of 4096.
// CHECK-LABEL: flow.executable @rows
// CHECK:         lowering_config = #iree_codegen.lowering_config<{group = 0 : i64, workgroup = [64 : i64, 0 : i64]}>
// CHECK:         lowering_config = #iree_codegen.lowering_config<{group = 0 : i64, workgroup = [64 : i64, 0 : i64]}>
flow.executable @rows {
  builtin.module {
    func.func @rows(%x: memref<4096x32xf32>, %m: memref<4096xf32>, %y: memref<4096x32xf32>) {
      linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d0)>], iterator_types = ["parallel", "reduction"]} ins(%x : memref<4096x32xf32>) outs(%m : memref<4096xf32>) {
      ^bb0(%a: f32, %b: f32):
        %c = arith.addf %a, %b : f32
        linalg.yield %c : f32
      }
      linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d0)>, affine_map<(d0, d1) -> (d0, d1)>], iterator_types = ["parallel", "parallel"]} ins(%x, %m : memref<4096x32xf32>, memref<4096xf32>) outs(%y : memref<4096x32xf32>) {
      ^bb0(%a: f32, %b: f32, %o: f32):
        %c = arith.divf %a, %b : f32
        linalg.yield %c : f32
      }
      return
    }
  }
}

// A dynamic number of rows gets a tile as well; one op alone takes 16384 points.
// CHECK-LABEL: flow.executable @dynamic
// CHECK:         workgroup = [512 : i64, 0 : i64]
flow.executable @dynamic {
  builtin.module {
    func.func @dynamic(%x: memref<?x32xf32>, %y: memref<?x32xf32>) {
      linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d0, d1)>], iterator_types = ["parallel", "parallel"]} ins(%x : memref<?x32xf32>) outs(%y : memref<?x32xf32>) {
      ^bb0(%a: f32, %o: f32):
        %c = arith.negf %a : f32
        linalg.yield %c : f32
      }
      return
    }
  }
}

// A contraction is cut into rows, then columns, until each thread has a tile; and gets a
// register block.
// One thread has all rows, which go through its columns in strips.
// ONE-LABEL:   flow.executable @matmul
// ONE:           workgroup = [0 : i64, 0 : i64, 0 : i64], block = [9 : i64, 48 : i64]
// CHECK-LABEL: flow.executable @matmul
// CHECK:         workgroup = [256 : i64, 0 : i64, 0 : i64], block = [9 : i64, 48 : i64]
flow.executable @matmul {
  builtin.module {
    func.func @matmul(%a: memref<512x64xf32>, %b: memref<64x480xf32>, %c: memref<512x480xf32>) {
      linalg.generic {indexing_maps = [affine_map<(d0, d1, d2) -> (d0, d2)>, affine_map<(d0, d1, d2) -> (d2, d1)>, affine_map<(d0, d1, d2) -> (d0, d1)>], iterator_types = ["parallel", "parallel", "reduction"]} ins(%a, %b : memref<512x64xf32>, memref<64x480xf32>) outs(%c : memref<512x480xf32>) {
      ^bb0(%x: f32, %y: f32, %z: f32):
        %p = arith.mulf %x, %y : f32
        %q = arith.addf %z, %p : f32
        linalg.yield %q : f32
      }
      return
    }
  }
}

// Of as many columns as rows, or more, each thread packs its own and no other.
// CHECK-LABEL: flow.executable @wide
// CHECK:         workgroup = [0 : i64, 480 : i64, 0 : i64], block = [9 : i64, 48 : i64]
flow.executable @wide {
  builtin.module {
    func.func @wide(%a: memref<512x64xf32>, %b: memref<64x960xf32>, %c: memref<512x960xf32>) {
      linalg.generic {indexing_maps = [affine_map<(d0, d1, d2) -> (d0, d2)>, affine_map<(d0, d1, d2) -> (d2, d1)>, affine_map<(d0, d1, d2) -> (d0, d1)>], iterator_types = ["parallel", "parallel", "reduction"]} ins(%a, %b : memref<512x64xf32>, memref<64x960xf32>) outs(%c : memref<512x960xf32>) {
      ^bb0(%x: f32, %y: f32, %z: f32):
        %p = arith.mulf %x, %y : f32
        %q = arith.addf %z, %p : f32
        linalg.yield %q : f32
      }
      return
    }
  }
}

// Columns are cut into whole panels of the block.
// CHECK-LABEL: flow.executable @columns
// CHECK:         workgroup = [0 : i64, 480 : i64, 0 : i64], block = [8 : i64, 48 : i64]
flow.executable @columns {
  builtin.module {
    func.func @columns(%a: memref<64x64xf32>, %b: memref<64x1920xf32>, %c: memref<64x1920xf32>) {
      linalg.generic {indexing_maps = [affine_map<(d0, d1, d2) -> (d0, d2)>, affine_map<(d0, d1, d2) -> (d2, d1)>, affine_map<(d0, d1, d2) -> (d0, d1)>], iterator_types = ["parallel", "parallel", "reduction"]} ins(%a, %b : memref<64x64xf32>, memref<64x1920xf32>) outs(%c : memref<64x1920xf32>) {
      ^bb0(%x: f32, %y: f32, %z: f32):
        %p = arith.mulf %x, %y : f32
        %q = arith.addf %z, %p : f32
        linalg.yield %q : f32
      }
      return
    }
  }
}

// Column sums after row sums have no tile loop in common: two groups.
// CHECK-LABEL: flow.executable @no_common_loop
// CHECK:         group = 0 : i64
// CHECK:         group = 1 : i64
flow.executable @no_common_loop {
  builtin.module {
    func.func @no_common_loop(%x: memref<64x64xf32>, %y: memref<64x64xf32>, %m: memref<64xf32>) {
      linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d0, d1)>], iterator_types = ["parallel", "parallel"]} ins(%x : memref<64x64xf32>) outs(%y : memref<64x64xf32>) {
      ^bb0(%a: f32, %o: f32):
        %c = arith.negf %a : f32
        linalg.yield %c : f32
      }
      linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d0, d0)>, affine_map<(d0, d1) -> (d1)>], iterator_types = ["reduction", "parallel"]} ins(%y : memref<64x64xf32>) outs(%m : memref<64xf32>) {
      ^bb0(%a: f32, %b: f32):
        %c = arith.addf %a, %b : f32
        linalg.yield %c : f32
      }
      return
    }
  }
}

// A full reduction has no loop to cut: it keeps zeros and runs as it is.
// CHECK-LABEL: flow.executable @no_parallel_loop
// CHECK:         group = 0 : i64, workgroup = [0 : i64]
flow.executable @no_parallel_loop {
  builtin.module {
    func.func @no_parallel_loop(%x: memref<100000xf32>, %y: memref<f32>) {
      linalg.generic {indexing_maps = [affine_map<(d0) -> (d0)>, affine_map<(d0) -> ()>], iterator_types = ["reduction"]} ins(%x : memref<100000xf32>) outs(%y : memref<f32>) {
      ^bb0(%a: f32, %b: f32):
        %c = arith.addf %a, %b : f32
        linalg.yield %c : f32
      }
      return
    }
  }
}

// Tiles that any op of a group was given stay, where the loop can be tiled.
// CHECK-LABEL: func.func @tuned
// CHECK-COUNT-2: lowering_config = #iree_codegen.lowering_config<{group = 0 : i64, workgroup = [24 : i64, 8 : i64]}>
flow.executable @tuned {
  builtin.module {
    func.func @tuned(%c: f32, %x: memref<512x512xf32>, %y: memref<512x512xf32>) {
      linalg.generic {indexing_maps = [affine_map<(i, j) -> ()>, affine_map<(i, j) -> (i, j)>], iterator_types = ["parallel", "parallel"]} ins(%c : f32) outs(%y : memref<512x512xf32>) { ^bb0(%p: f32, %o: f32): linalg.yield %p : f32 }
      linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i, j)>], iterator_types = ["parallel", "parallel"]} ins(%x : memref<512x512xf32>) outs(%y : memref<512x512xf32>) attrs = {lowering_config = #iree_codegen.lowering_config<{workgroup = [24, 8]}>} {
      ^bb0(%p: f32, %o: f32):
        %s = arith.addf %p, %o : f32
        linalg.yield %s : f32
      }
      return
    }
  }
}

// A reduction has no such loop: the tile of it is not taken.
// CHECK-LABEL: func.func @tuned_reduction
// CHECK:         lowering_config = #iree_codegen.lowering_config<{group = 0 : i64, workgroup = [16 : i64, 0 : i64]}>
flow.executable @tuned_reduction {
  builtin.module {
    func.func @tuned_reduction(%x: memref<512x512xf32>, %y: memref<512xf32>) {
      linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i)>], iterator_types = ["parallel", "reduction"]} ins(%x : memref<512x512xf32>) outs(%y : memref<512xf32>) attrs = {lowering_config = #iree_codegen.lowering_config<{workgroup = [16, 8]}>} {
      ^bb0(%p: f32, %o: f32):
        %s = arith.addf %p, %o : f32
        linalg.yield %s : f32
      }
      return
    }
  }
}

// Threads take as many columns each: not six and five panels of 48, but whole vectors.
// CHECK-LABEL: flow.executable @even_columns
// CHECK:         workgroup = [0 : i64, 256 : i64, 0 : i64], block = [7 : i64, 64 : i64]
flow.executable @even_columns {
  builtin.module {
    func.func @even_columns(%a: memref<512x512xf32>, %b: memref<512x512xf32>, %c: memref<512x512xf32>) {
      linalg.generic {indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (k, n)>, affine_map<(m, n, k) -> (m, n)>], iterator_types = ["parallel", "parallel", "reduction"]} ins(%a, %b : memref<512x512xf32>, memref<512x512xf32>) outs(%c : memref<512x512xf32>) {
      ^bb0(%x: f32, %y: f32, %o: f32):
        %p = arith.mulf %x, %y : f32
        %s = arith.addf %o, %p : f32
        linalg.yield %s : f32
      }
      return
    }
  }
}

// 64 panels are eight tiles of eight, four for each thread, and not five of eleven and one of nine.
// CHECK-LABEL: flow.executable @even_panels
// CHECK:         workgroup = [0 : i64, 384 : i64, 0 : i64]
flow.executable @even_panels {
  builtin.module {
    func.func @even_panels(%a: memref<128x768xf32>, %b: memref<64x768x48xf32>, %c: memref<128x3072xf32>) {
      linalg.generic {indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (n floordiv 48, k, n mod 48)>, affine_map<(m, n, k) -> (m, n)>], iterator_types = ["parallel", "parallel", "reduction"]} ins(%a, %b : memref<128x768xf32>, memref<64x768x48xf32>) outs(%c : memref<128x3072xf32>) {
      ^bb0(%x: f32, %y: f32, %o: f32):
        %p = arith.mulf %x, %y : f32
        %s = arith.addf %o, %p : f32
        linalg.yield %s : f32
      }
      return
    }
  }
}

// One row goes through weights once and packs nothing: four tiles a thread, for who is through first.
// CHECK-LABEL: flow.executable @one_row
// CHECK:         workgroup = [0 : i64, 128 : i64, 0 : i64]
flow.executable @one_row {
  builtin.module {
    func.func @one_row(%a: memref<1x1024xf32>, %b: memref<16x1024x64xf32>, %c: memref<1x1024xf32>) {
      linalg.generic {indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (n floordiv 64, k, n mod 64)>, affine_map<(m, n, k) -> (m, n)>], iterator_types = ["parallel", "parallel", "reduction"]} ins(%a, %b : memref<1x1024xf32>, memref<16x1024x64xf32>) outs(%c : memref<1x1024xf32>) {
      ^bb0(%x: f32, %y: f32, %o: f32):
        %p = arith.mulf %x, %y : f32
        %s = arith.addf %o, %p : f32
        linalg.yield %s : f32
      }
      return
    }
  }
}

// A tile that reduces columns reads at least 64 of each row: 200 divide the 1000, five times.
// CHECK-LABEL: flow.executable @reduced_columns
// CHECK:         workgroup = [200 : i64, 0 : i64]
flow.executable @reduced_columns {
  builtin.module {
    func.func @reduced_columns(%x: memref<1000x1000xf32>, %m: memref<1000xf32>) {
      linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d1, d0)>, affine_map<(d0, d1) -> (d0)>], iterator_types = ["parallel", "reduction"]} ins(%x : memref<1000x1000xf32>) outs(%m : memref<1000xf32>) {
      ^bb0(%a: f32, %b: f32):
        %c = arith.addf %a, %b : f32
        linalg.yield %c : f32
      }
      return
    }
  }
}

// A few columns are one tile, and rows of other images are others.
// CHECK-LABEL: flow.executable @few_reduced_columns
// CHECK:         workgroup = [1 : i64, 0 : i64, 0 : i64]
flow.executable @few_reduced_columns {
  builtin.module {
    func.func @few_reduced_columns(%x: memref<32x1000x256xf32>, %m: memref<32x256xf32>) {
      linalg.generic {indexing_maps = [affine_map<(d0, d1, d2) -> (d0, d2, d1)>, affine_map<(d0, d1, d2) -> (d0, d1)>], iterator_types = ["parallel", "parallel", "reduction"]} ins(%x : memref<32x1000x256xf32>) outs(%m : memref<32x256xf32>) {
      ^bb0(%a: f32, %b: f32):
        %c = arith.addf %a, %b : f32
        linalg.yield %c : f32
      }
      return
    }
  }
}
