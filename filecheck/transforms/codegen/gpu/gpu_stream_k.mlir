// RUN: irees opt %s -p 'irees-assign-target{facts="gpu.multiprocessors=4 gpu.registers=8192"},irees-gpu-stream-k' | filecheck %s

#a = affine_map<(m, n, k) -> (m, k)>
#b = affine_map<(m, n, k) -> (k, n)>
#c = affine_map<(m, n, k) -> (m, n)>
#id = affine_map<(m, n) -> (m, n)>

// Five tiles for four multiprocessors, each of which has registers for one workgroup: four workgroups
// share the steps of all five, so that none has two tiles. What is filled before, and what follows, is no matter.
// CHECK-LABEL: func.func @five
// CHECK:         lowering_config = #iree_codegen.lowering_config<{block = [8 : i64, 64 : i64, 1 : i64, 4 : i64, 32 : i64], stream_k = [5 : i64, 4 : i64]}>
func.func @five(%a: memref<40x4096xf32>, %b: memref<4096x64xf32>, %y: memref<40x64xf16>) {
  scf.forall (%w) in (5) {
    %c8 = arith.constant 8 : index
    %i = arith.muli %w, %c8 : index
    %t = memref.alloca() : memref<8x64xf32>
    %p = memref.subview %a[%i, 0] [8, 4096] [1, 1] : memref<40x4096xf32> to memref<8x4096xf32, strided<[4096, 1], offset: ?>>
    %q = memref.subview %y[%i, 0] [8, 64] [1, 1] : memref<40x64xf16> to memref<8x64xf16, strided<[64, 1], offset: ?>>
    linalg.generic {indexing_maps = [#id], iterator_types = ["parallel", "parallel"]} outs(%t : memref<8x64xf32>) {
    ^bb0(%o: f32):
      %z = arith.constant 0.0 : f32
      linalg.yield %z : f32
    }
    linalg.generic {indexing_maps = [#a, #b, #c], iterator_types = ["parallel", "parallel", "reduction"],
                    lowering_config = #iree_codegen.lowering_config<{block = [8, 64, 1, 4, 32]}>}
        ins(%p, %b : memref<8x4096xf32, strided<[4096, 1], offset: ?>>, memref<4096x64xf32>) outs(%t : memref<8x64xf32>) {
    ^bb0(%x: f32, %v: f32, %o: f32):
      %m = arith.mulf %x, %v : f32
      %s = arith.addf %o, %m : f32
      linalg.yield %s : f32
    }
    linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]}
        ins(%t : memref<8x64xf32>) outs(%q : memref<8x64xf16, strided<[64, 1], offset: ?>>) {
    ^bb0(%x: f32, %o: f16):
      %h = arith.truncf %x : f32 to f16
      linalg.yield %h : f16
    }
  } {mapping = [#gpu.block<linear_dim_0>]}
  return
}

// Three tiles leave one idle: all of them are shared. What is copied before, to where the sums are added,
// is no matter either.
// CHECK-LABEL: func.func @three
// CHECK:         stream_k = [3 : i64, 4 : i64]
func.func @three(%a: memref<24x4096xf32>, %b: memref<4096x64xf32>, %c: memref<24x64xf32>, %y: memref<24x64xf32>) {
  scf.forall (%w) in (3) {
    %c8 = arith.constant 8 : index
    %i = arith.muli %w, %c8 : index
    %p = memref.subview %a[%i, 0] [8, 4096] [1, 1] : memref<24x4096xf32> to memref<8x4096xf32, strided<[4096, 1], offset: ?>>
    %t = memref.subview %c[%i, 0] [8, 64] [1, 1] : memref<24x64xf32> to memref<8x64xf32, strided<[64, 1], offset: ?>>
    %q = memref.subview %y[%i, 0] [8, 64] [1, 1] : memref<24x64xf32> to memref<8x64xf32, strided<[64, 1], offset: ?>>
    linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]}
        ins(%t : memref<8x64xf32, strided<[64, 1], offset: ?>>) outs(%q : memref<8x64xf32, strided<[64, 1], offset: ?>>) {
    ^bb0(%x: f32, %o: f32):
      linalg.yield %x : f32
    }
    linalg.generic {indexing_maps = [#a, #b, #c], iterator_types = ["parallel", "parallel", "reduction"],
                    lowering_config = #iree_codegen.lowering_config<{block = [8, 64, 1, 4, 32]}>}
        ins(%p, %b : memref<8x4096xf32, strided<[4096, 1], offset: ?>>, memref<4096x64xf32>) outs(%q : memref<8x64xf32, strided<[64, 1], offset: ?>>) {
    ^bb0(%x: f32, %v: f32, %o: f32):
      %m = arith.mulf %x, %v : f32
      %s = arith.addf %o, %m : f32
      linalg.yield %s : f32
    }
  } {mapping = [#gpu.block<linear_dim_0>]}
  return
}

// Of the last tile there is only a part.
// CHECK-LABEL: func.func @cut
// CHECK:         stream_k = [5 : i64, 4 : i64]
func.func @cut(%a: memref<37x4096xf32>, %b: memref<4096x64xf32>, %c: memref<37x64xf32>) {
  scf.forall (%w) in (5) {
    %c8 = arith.constant 8 : index
    %c37 = arith.constant 37 : index
    %i = arith.muli %w, %c8 : index
    %left = arith.subi %c37, %i : index
    %n = arith.minsi %c8, %left : index
    %p = memref.subview %a[%i, 0] [%n, 4096] [1, 1] : memref<37x4096xf32> to memref<?x4096xf32, strided<[4096, 1], offset: ?>>
    %q = memref.subview %c[%i, 0] [%n, 64] [1, 1] : memref<37x64xf32> to memref<?x64xf32, strided<[64, 1], offset: ?>>
    linalg.generic {indexing_maps = [#a, #b, #c], iterator_types = ["parallel", "parallel", "reduction"],
                    lowering_config = #iree_codegen.lowering_config<{block = [8, 64, 1, 4, 32]}>}
        ins(%p, %b : memref<?x4096xf32, strided<[4096, 1], offset: ?>>, memref<4096x64xf32>) outs(%q : memref<?x64xf32, strided<[64, 1], offset: ?>>) {
    ^bb0(%x: f32, %v: f32, %o: f32):
      %m = arith.mulf %x, %v : f32
      %s = arith.addf %o, %m : f32
      linalg.yield %s : f32
    }
  } {mapping = [#gpu.block<linear_dim_0>]}
  return
}

// Whole waves, a product that is too short, tiles of which nobody knows how many there are, and an operand
// that is computed in the tile.
// CHECK-LABEL: func.func @no_shares
// CHECK-NOT:     stream_k
func.func @no_shares(%a: memref<32x4096xf32>, %b: memref<4096x64xf32>, %c: memref<32x64xf32>, %d: memref<40x96xf32>, %e: memref<96x64xf32>, %f: memref<40x64xf32>, %g: memref<?x4096xf32>, %h: memref<?x64xf32>, %k: memref<40x4096xf32>, %l: memref<40x64xf32>, %r: index) {
  scf.forall (%w) in (4) {
    %c8 = arith.constant 8 : index
    %i = arith.muli %w, %c8 : index
    %p = memref.subview %a[%i, 0] [8, 4096] [1, 1] : memref<32x4096xf32> to memref<8x4096xf32, strided<[4096, 1], offset: ?>>
    %q = memref.subview %c[%i, 0] [8, 64] [1, 1] : memref<32x64xf32> to memref<8x64xf32, strided<[64, 1], offset: ?>>
    linalg.generic {indexing_maps = [#a, #b, #c], iterator_types = ["parallel", "parallel", "reduction"],
                    lowering_config = #iree_codegen.lowering_config<{block = [8, 64, 1, 4, 32]}>}
        ins(%p, %b : memref<8x4096xf32, strided<[4096, 1], offset: ?>>, memref<4096x64xf32>) outs(%q : memref<8x64xf32, strided<[64, 1], offset: ?>>) {
    ^bb0(%x: f32, %v: f32, %o: f32):
      %m = arith.mulf %x, %v : f32
      %s = arith.addf %o, %m : f32
      linalg.yield %s : f32
    }
  } {mapping = [#gpu.block<linear_dim_0>]}
  scf.forall (%w) in (5) {
    %c8 = arith.constant 8 : index
    %i = arith.muli %w, %c8 : index
    %p = memref.subview %d[%i, 0] [8, 96] [1, 1] : memref<40x96xf32> to memref<8x96xf32, strided<[96, 1], offset: ?>>
    %q = memref.subview %f[%i, 0] [8, 64] [1, 1] : memref<40x64xf32> to memref<8x64xf32, strided<[64, 1], offset: ?>>
    linalg.generic {indexing_maps = [#a, #b, #c], iterator_types = ["parallel", "parallel", "reduction"],
                    lowering_config = #iree_codegen.lowering_config<{block = [8, 64, 1, 4, 32]}>}
        ins(%p, %e : memref<8x96xf32, strided<[96, 1], offset: ?>>, memref<96x64xf32>) outs(%q : memref<8x64xf32, strided<[64, 1], offset: ?>>) {
    ^bb0(%x: f32, %v: f32, %o: f32):
      %m = arith.mulf %x, %v : f32
      %s = arith.addf %o, %m : f32
      linalg.yield %s : f32
    }
  } {mapping = [#gpu.block<linear_dim_0>]}
  scf.forall (%w) in (%r) {
    %c8 = arith.constant 8 : index
    %i = arith.muli %w, %c8 : index
    %p = memref.subview %g[%i, 0] [8, 4096] [1, 1] : memref<?x4096xf32> to memref<8x4096xf32, strided<[4096, 1], offset: ?>>
    %q = memref.subview %h[%i, 0] [8, 64] [1, 1] : memref<?x64xf32> to memref<8x64xf32, strided<[64, 1], offset: ?>>
    linalg.generic {indexing_maps = [#a, #b, #c], iterator_types = ["parallel", "parallel", "reduction"],
                    lowering_config = #iree_codegen.lowering_config<{block = [8, 64, 1, 4, 32]}>}
        ins(%p, %b : memref<8x4096xf32, strided<[4096, 1], offset: ?>>, memref<4096x64xf32>) outs(%q : memref<8x64xf32, strided<[64, 1], offset: ?>>) {
    ^bb0(%x: f32, %v: f32, %o: f32):
      %m = arith.mulf %x, %v : f32
      %s = arith.addf %o, %m : f32
      linalg.yield %s : f32
    }
  } {mapping = [#gpu.block<linear_dim_0>]}
  scf.forall (%w) in (5) {
    %c8 = arith.constant 8 : index
    %i = arith.muli %w, %c8 : index
    %t = memref.alloc() : memref<8x4096xf32>
    %p = memref.subview %k[%i, 0] [8, 4096] [1, 1] : memref<40x4096xf32> to memref<8x4096xf32, strided<[4096, 1], offset: ?>>
    %q = memref.subview %l[%i, 0] [8, 64] [1, 1] : memref<40x64xf32> to memref<8x64xf32, strided<[64, 1], offset: ?>>
    linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]}
        ins(%p : memref<8x4096xf32, strided<[4096, 1], offset: ?>>) outs(%t : memref<8x4096xf32>) {
    ^bb0(%x: f32, %o: f32):
      %u = arith.negf %x : f32
      linalg.yield %u : f32
    }
    linalg.generic {indexing_maps = [#a, #b, #c], iterator_types = ["parallel", "parallel", "reduction"],
                    lowering_config = #iree_codegen.lowering_config<{block = [8, 64, 1, 4, 32]}>}
        ins(%t, %b : memref<8x4096xf32>, memref<4096x64xf32>) outs(%q : memref<8x64xf32, strided<[64, 1], offset: ?>>) {
    ^bb0(%x: f32, %v: f32, %o: f32):
      %m = arith.mulf %x, %v : f32
      %s = arith.addf %o, %m : f32
      linalg.yield %s : f32
    }
  } {mapping = [#gpu.block<linear_dim_0>]}
  return
}
