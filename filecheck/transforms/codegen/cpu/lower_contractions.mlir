// RUN: xdsl-opt %s -p 'irees-assign-target{facts="vector_bytes=32 vector_registers=16"},irees-lower-contractions' | filecheck %s
// RUN: xdsl-opt %s -p 'irees-assign-target{facts="features=avx512_vnni,avx512_bf16"},irees-lower-contractions' | filecheck %s --check-prefix DOTS

// B is packed into panels, and a block of C is held in registers over all of K.
// CHECK-LABEL: func.func @matmul
// CHECK:         %[[PANEL:.*]] = memref.alloc() : memref<1024xf32>
// CHECK:         panel.pack_columns %{{.*}} into %[[PANEL]] {vectors = 2 : i64, lanes = 8 : i64, group = 1 : i64} : memref<?xf32, strided<[1], offset: ?>> using memref<16xindex> to memref<1024xf32>
// CHECK:         scf.for
// CHECK:         %[[C:.*]] = vector.load %{{.*}}, vector<8xf32>
// CHECK:         %[[SUMS:[0-9]+]], %{{.*}} = panel.micro_kernel %{{.*}}, %[[PANEL]][%{{.*}}] by[%{{.*}}] apart %{{.*}} trips[%{{.*}}] accs(%[[C]], {{.*}}layout = "packed"
// CHECK:         vector.store %[[SUMS]]
func.func @matmul(%a: memref<16x64xf32>, %b: memref<64x16xf32>, %c: memref<16x16xf32>) {
  linalg.generic {indexing_maps = [affine_map<(d0, d1, d2) -> (d0, d2)>, affine_map<(d0, d1, d2) -> (d2, d1)>, affine_map<(d0, d1, d2) -> (d0, d1)>], iterator_types = ["parallel", "parallel", "reduction"]} ins(%a, %b : memref<16x64xf32>, memref<64x16xf32>) outs(%c : memref<16x16xf32>) {
  ^bb0(%x: f32, %y: f32, %z: f32):
    %p = arith.mulf %x, %y : f32
    %q = arith.addf %z, %p : f32
    linalg.yield %q : f32
  }
  return
}

// Two rows read B where it is.
// CHECK-LABEL: func.func @few_rows
// CHECK-NOT:     memref.alloc()
// CHECK:         panel.micro_kernel %{{.*}} layout = "plain"
// CHECK:         func.return
func.func @few_rows(%a: memref<2x64xf32>, %b: memref<64x16xf32>, %c: memref<2x16xf32>) {
  linalg.generic {indexing_maps = [affine_map<(d0, d1, d2) -> (d0, d2)>, affine_map<(d0, d1, d2) -> (d2, d1)>, affine_map<(d0, d1, d2) -> (d0, d1)>], iterator_types = ["parallel", "parallel", "reduction"]} ins(%a, %b : memref<2x64xf32>, memref<64x16xf32>) outs(%c : memref<2x16xf32>) {
  ^bb0(%x: f32, %y: f32, %z: f32):
    %p = arith.mulf %x, %y : f32
    %q = arith.addf %z, %p : f32
    linalg.yield %q : f32
  }
  return
}

// The filter of a convolution lies in panels: registers start at zero instead of reading what
// was only just filled, run through all of K, and go to C column by column, transposed.
// CHECK-LABEL: func.func @filter
// CHECK-NOT:     linalg.generic
// CHECK:         %[[ZERO:.*]] = vector.broadcast %{{.*}} : f32 to vector<8xf32>
// CHECK:         panel.micro_kernel %{{.*}} accs(%[[ZERO]], {{.*}}layout = "panels"
// CHECK:         %[[COLUMN:.*]] = vector.shuffle
// CHECK-NOT:     memref.store
// CHECK:         vector.store %{{.*}}, %{{.*}} : memref<?xf32, strided<[1], offset: ?>>, vector<8xf32>
// CHECK:         func.return
func.func @filter(%x: memref<4x6x6xf32>, %w: memref<1x3x3x4x8xf32>, %c: memref<8x4x4xf32>) {
  %zero = arith.constant 0.0 : f32
  linalg.generic {indexing_maps = [affine_map<(f, h, w) -> (f, h, w)>], iterator_types = ["parallel", "parallel", "parallel"]} outs(%c : memref<8x4x4xf32>) {
  ^bb0(%z: f32):
    linalg.yield %zero : f32
  }
  linalg.generic {indexing_maps = [affine_map<(f, h, w, i, j, c) -> (c, h + i, w + j)>, affine_map<(f, h, w, i, j, c) -> (f floordiv 8, i, j, c, f mod 8)>, affine_map<(f, h, w, i, j, c) -> (f, h, w)>], iterator_types = ["parallel", "parallel", "parallel", "reduction", "reduction", "reduction"]} ins(%x, %w : memref<4x6x6xf32>, memref<1x3x3x4x8xf32>) outs(%c : memref<8x4x4xf32>) {
  ^bb0(%a: f32, %b: f32, %z: f32):
    %p = arith.mulf %a, %b : f32
    %q = arith.addf %z, %p : f32
    linalg.yield %q : f32
  }
  return
}

// Rows 4 KiB apart share one set of the cache, which holds eight lines: blocks have eight rows, though
// there are registers for twelve.
// CHECK-LABEL: func.func @crowded
// CHECK-NOT:     panel.pack_rows
// CHECK:         panel.micro_kernel {{.*}} {tile = array<i64: 8, 8>
func.func @crowded(%a: memref<24x1024xf32>, %b: memref<1024x8xf32>, %c: memref<24x8xf32>) {
  linalg.generic {indexing_maps = [affine_map<(d0, d1, d2) -> (d0, d2)>, affine_map<(d0, d1, d2) -> (d2, d1)>, affine_map<(d0, d1, d2) -> (d0, d1)>], iterator_types = ["parallel", "parallel", "reduction"]} ins(%a, %b : memref<24x1024xf32>, memref<1024x8xf32>) outs(%c : memref<24x8xf32>) {
  ^bb0(%x: f32, %y: f32, %z: f32):
    %p = arith.mulf %x, %y : f32
    %q = arith.addf %z, %p : f32
    linalg.yield %q : f32
  }
  return
}

// Dynamic sizes: bf16 is widened, B while it is packed and A in the micro-kernel.
// CHECK-LABEL: func.func @dynamic_bf16
// CHECK:         panel.pack_columns %{{.*}} : memref<?xbf16, strided<[1], offset: ?>> using memref<{{.*}}xindex> to memref<{{.*}}xf32>
// CHECK:         panel.micro_kernel %{{.*}} : memref<?xbf16, strided<[1], offset: ?>>, memref<{{.*}}xf32> -> vector<8xf32>
func.func @dynamic_bf16(%a: memref<?x?xbf16>, %b: memref<?x?xbf16>, %c: memref<?x?xf32>) {
  linalg.generic {indexing_maps = [affine_map<(d0, d1, d2) -> (d0, d2)>, affine_map<(d0, d1, d2) -> (d2, d1)>, affine_map<(d0, d1, d2) -> (d0, d1)>], iterator_types = ["parallel", "parallel", "reduction"]} ins(%a, %b : memref<?x?xbf16>, memref<?x?xbf16>) outs(%c : memref<?x?xf32>) {
  ^bb0(%x: bf16, %y: bf16, %z: f32):
    %xx = arith.extf %x : bf16 to f32
    %yy = arith.extf %y : bf16 to f32
    %p = arith.mulf %xx, %yy : f32
    %q = arith.addf %z, %p : f32
    linalg.yield %q : f32
  }
  return
}

// A depthwise convolution reads its image once per channel: it has no M.
// CHECK-LABEL: func.func @no_depthwise
// CHECK-NEXT:    linalg.generic
func.func @no_depthwise(%x: memref<1x9x9x16xf32>, %w: memref<3x3x16xf32>, %o: memref<1x7x7x16xf32>) {
  linalg.generic {indexing_maps = [affine_map<(n, h, w, c, i, j) -> (n, h + i, w + j, c)>, affine_map<(n, h, w, c, i, j) -> (i, j, c)>, affine_map<(n, h, w, c, i, j) -> (n, h, w, c)>], iterator_types = ["parallel", "parallel", "parallel", "parallel", "reduction", "reduction"]} ins(%x, %w : memref<1x9x9x16xf32>, memref<3x3x16xf32>) outs(%o : memref<1x7x7x16xf32>) {
  ^bb0(%a: f32, %b: f32, %z: f32):
    %p = arith.mulf %a, %b : f32
    %q = arith.addf %z, %p : f32
    linalg.yield %q : f32
  }
  return
}

// The columns of the output are not neighbours in memory.
// CHECK-LABEL: func.func @no_strided_output
// CHECK-NEXT:    linalg.generic
func.func @no_strided_output(%a: memref<16x64xf32>, %b: memref<64x16xf32>, %c: memref<16x16xf32, strided<[64, 2]>>) {
  linalg.generic {indexing_maps = [affine_map<(d0, d1, d2) -> (d0, d2)>, affine_map<(d0, d1, d2) -> (d2, d1)>, affine_map<(d0, d1, d2) -> (d0, d1)>], iterator_types = ["parallel", "parallel", "reduction"]} ins(%a, %b : memref<16x64xf32>, memref<64x16xf32>) outs(%c : memref<16x16xf32, strided<[64, 2]>>) {
  ^bb0(%x: f32, %y: f32, %z: f32):
    %p = arith.mulf %x, %y : f32
    %q = arith.addf %z, %p : f32
    linalg.yield %q : f32
  }
  return
}

// A dot product has neither M nor N.
// CHECK-LABEL: func.func @no_dot
// CHECK-NEXT:    linalg.generic
func.func @no_dot(%a: memref<64xf32>, %b: memref<64xf32>, %c: memref<f32>) {
  linalg.generic {indexing_maps = [affine_map<(d0) -> (d0)>, affine_map<(d0) -> (d0)>, affine_map<(d0) -> ()>], iterator_types = ["reduction"]} ins(%a, %b : memref<64xf32>, memref<64xf32>) outs(%c : memref<f32>) {
  ^bb0(%x: f32, %y: f32, %z: f32):
    %p = arith.mulf %x, %y : f32
    %q = arith.addf %z, %p : f32
    linalg.yield %q : f32
  }
  return
}

// There are no vectors of f16 here.
// CHECK-LABEL: func.func @no_f16
// CHECK-NEXT:    linalg.generic
func.func @no_f16(%a: memref<16x64xf16>, %b: memref<64x16xf16>, %c: memref<16x16xf16>) {
  linalg.generic {indexing_maps = [affine_map<(d0, d1, d2) -> (d0, d2)>, affine_map<(d0, d1, d2) -> (d2, d1)>, affine_map<(d0, d1, d2) -> (d0, d1)>], iterator_types = ["parallel", "parallel", "reduction"]} ins(%a, %b : memref<16x64xf16>, memref<64x16xf16>) outs(%c : memref<16x16xf16>) {
  ^bb0(%x: f16, %y: f16, %z: f16):
    %p = arith.mulf %x, %y : f16
    %q = arith.addf %z, %p : f16
    linalg.yield %q : f16
  }
  return
}

// Channels in blocks of a vector: each block of B is read where it lies, two of them side by side
// in registers, which start at zero and end in the op that follows; C is never written.
// CHECK-LABEL: func.func @blocked
// CHECK-NOT:     memref.alloc()
// CHECK-NOT:     linalg.generic
// CHECK:         %[[ZERO:.*]] = vector.broadcast %{{.*}} : f32 to vector<8xf32>
// CHECK:         panel.micro_kernel %{{.*}} accs(%[[ZERO]], {{.*}}layout = "blocks"
// CHECK:         %[[BIAS:.*]] = vector.load %{{.*}} vector<8xf32>
// CHECK:         vector.store %{{.*}}, %{{.*}} : memref<?xf32
// CHECK:         func.return
func.func @blocked(%x: memref<2x6x6x8xf32>, %w: memref<2x2x8x8xf32>, %b: memref<2x8xf32>, %d: memref<2x6x6x8xf32>) {
  %zero = arith.constant 0.0 : f32
  %c = memref.alloc() : memref<2x6x6x8xf32>
  linalg.generic {indexing_maps = [affine_map<(o, h, w, i) -> (o, h, w, i)>], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} outs(%c : memref<2x6x6x8xf32>) {
  ^bb0(%z: f32):
    linalg.yield %zero : f32
  }
  linalg.generic {indexing_maps = [affine_map<(o, h, w, i, c, k) -> (c, h, w, k)>, affine_map<(o, h, w, i, c, k) -> (o, c, k, i)>, affine_map<(o, h, w, i, c, k) -> (o, h, w, i)>], iterator_types = ["parallel", "parallel", "parallel", "parallel", "reduction", "reduction"]} ins(%x, %w : memref<2x6x6x8xf32>, memref<2x2x8x8xf32>) outs(%c : memref<2x6x6x8xf32>) {
  ^bb0(%a: f32, %f: f32, %z: f32):
    %p = arith.mulf %a, %f : f32
    %q = arith.addf %z, %p : f32
    linalg.yield %q : f32
  }
  linalg.generic {indexing_maps = [affine_map<(o, h, w, i) -> (o, h, w, i)>, affine_map<(o, h, w, i) -> (o, i)>, affine_map<(o, h, w, i) -> (o, h, w, i)>], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%c, %b : memref<2x6x6x8xf32>, memref<2x8xf32>) outs(%d : memref<2x6x6x8xf32>) {
  ^bb0(%s: f32, %bias: f32, %z: f32):
    %r = arith.addf %s, %bias : f32
    linalg.yield %r : f32
  }
  return
}

// What others read of C is stored as well, and an op that asks where it is stays a loop of its own.
// CHECK-LABEL: func.func @no_epilogue

// CHECK:         linalg.generic
// CHECK:         linalg.index
func.func @no_epilogue(%a: memref<16x64xf32>, %b: memref<64x16xf32>, %c: memref<16x16xf32>, %d: memref<16x16xf32>) {
  linalg.generic {indexing_maps = [affine_map<(d0, d1, d2) -> (d0, d2)>, affine_map<(d0, d1, d2) -> (d2, d1)>, affine_map<(d0, d1, d2) -> (d0, d1)>], iterator_types = ["parallel", "parallel", "reduction"]} ins(%a, %b : memref<16x64xf32>, memref<64x16xf32>) outs(%c : memref<16x16xf32>) {
  ^bb0(%x: f32, %y: f32, %z: f32):
    %p = arith.mulf %x, %y : f32
    %q = arith.addf %z, %p : f32
    linalg.yield %q : f32
  }
  linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i, j)>], iterator_types = ["parallel", "parallel"]} ins(%c : memref<16x16xf32>) outs(%d : memref<16x16xf32>) {
  ^bb0(%s: f32, %z: f32):
    %i = linalg.index 0 : index
    %k = arith.index_cast %i : index to i32
    %f = arith.sitofp %k : i32 to f32
    %r = arith.addf %s, %f : f32
    linalg.yield %r : f32
  }
  return
}

// Dot products of four signed i8: A is copied with a bias of 128, and what the bias adds to a column
// is known from a panel before its rows are multiplied.
// DOTS-LABEL:  func.func @signed
// DOTS:          %[[A:.*]] = memref.alloc() : memref<2048xi8>
// DOTS:          panel.pack_rows %{{.*}} into %[[A]] {pitch = 128 : i64, lanes = 64 : i64, group = 4 : i64, bias}
// DOTS:          panel.pack_columns %{{.*}} {vectors = 1 : i64, lanes = 16 : i64, group = 4 : i64}
// DOTS:          irees.dot %{{.*}}, %{{.*}}, %{{.*}} : vector<64xi8> -> vector<16xi32>
// DOTS:          %[[START:.*]] = arith.subi %{{.*}} : vector<16xi32>
// DOTS:          arith.addi %{{.*}}, %[[START]] : vector<16xi32>
// DOTS:          panel.micro_kernel %[[A]]{{.*}} group = 4 : i64, unsigned_a} : memref<2048xi8>, memref<{{.*}}xi8> -> vector<16xi32>
func.func @signed(%a: memref<16x64xi8>, %b: memref<64x16xi8>, %c: memref<16x16xi32>) {
  linalg.generic {indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (k, n)>, affine_map<(m, n, k) -> (m, n)>], iterator_types = ["parallel", "parallel", "reduction"]} ins(%a, %b : memref<16x64xi8>, memref<64x16xi8>) outs(%c : memref<16x16xi32>) {
  ^bb0(%x: i8, %y: i8, %z: i32):
    %u = arith.extsi %x : i8 to i32 %v = arith.extsi %y : i8 to i32 %p = arith.muli %u, %v : i32 %q = arith.addi %z, %p : i32
    linalg.yield %q : i32 } return
}

// No instruction has two unsigned operands: they are widened.
// DOTS-LABEL:  func.func @no_signs
// DOTS:          panel.pack_columns %{{.*}} group = 1 : i64, unsigned} : memref<?xi8, strided<[1], offset: ?>> using memref<16xindex> to memref<{{.*}}xi32>
// DOTS:          panel.micro_kernel %{{.*}} group = 1 : i64, unsigned_a, unsigned_b}
func.func @no_signs(%a: memref<16x64xi8>, %b: memref<64x16xi8>, %c: memref<16x16xi32>) {
  linalg.generic {indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (k, n)>, affine_map<(m, n, k) -> (m, n)>], iterator_types = ["parallel", "parallel", "reduction"]} ins(%a, %b : memref<16x64xi8>, memref<64x16xi8>) outs(%c : memref<16x16xi32>) {
  ^bb0(%x: i8, %y: i8, %z: i32):
    %u = arith.extui %x : i8 to i32 %v = arith.extui %y : i8 to i32 %p = arith.muli %u, %v : i32 %q = arith.addi %z, %p : i32
    linalg.yield %q : i32 } return
}

// Two bf16 are a group. K is odd, so A is packed, too, to fill the last group.
// DOTS-LABEL:  func.func @pairs
// DOTS:          panel.pack_rows %{{.*}} group = 2 : i64}
// DOTS:          panel.pack_columns %{{.*}} group = 2 : i64}
// DOTS:          panel.micro_kernel %{{.*}} group = 2 : i64} : memref<{{.*}}xbf16>, memref<{{.*}}xbf16> -> vector<16xf32>
func.func @pairs(%a: memref<16x33xbf16>, %b: memref<33x16xbf16>, %c: memref<16x16xf32>) {
  linalg.generic {indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (k, n)>, affine_map<(m, n, k) -> (m, n)>], iterator_types = ["parallel", "parallel", "reduction"]} ins(%a, %b : memref<16x33xbf16>, memref<33x16xbf16>) outs(%c : memref<16x16xf32>) {
  ^bb0(%x: bf16, %y: bf16, %z: f32):
    %u = arith.extf %x : bf16 to f32 %v = arith.extf %y : bf16 to f32 %p = arith.mulf %u, %v : f32 %q = arith.addf %z, %p : f32
    linalg.yield %q : f32 } return
}
