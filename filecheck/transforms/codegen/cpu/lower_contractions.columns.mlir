// RUN: xdsl-opt %s -p 'irees-assign-target{facts="vector_bytes=32 vector_registers=16"},irees-lower-contractions' | filecheck %s

// Seven pixels of a channel are two vectors of four that overlap: the tile that is transposed has
// the fourth pixel twice. The bias of each channel is added before.
// CHECK-LABEL: func.func @seven_rows
// CHECK:         %[[M0:.*]], %{{.*}}, %[[M2:.*]], %[[M3:.*]], %{{.*}}, %{{.*}}, %{{.*}} = panel.micro_kernel {{.*}}layout = "panels"
// CHECK:         %[[BIAS:.*]] = vector.load
// CHECK:         %[[R0:.*]] = arith.addf %[[M0]], %[[BIAS]] : vector<8xf32>
// CHECK:         arith.addf %{{.*}}, %[[BIAS]] : vector<8xf32>
// CHECK:         %[[R2:.*]] = arith.addf %[[M2]], %[[BIAS]] : vector<8xf32>
// CHECK:         %[[R3:.*]] = arith.addf %[[M3]], %[[BIAS]] : vector<8xf32>
// CHECK:         vector.shuffle
// CHECK-COUNT-16: vector.store %{{.*}}, %{{.*}} : memref<?xf32, strided<[1], offset: ?>>, vector<4xf32>
// CHECK-NOT:     vector.store
// CHECK-NOT:     memref.store
// CHECK:         func.return
func.func @seven_rows(%x: memref<64x7xf32>, %w: memref<1x64x8xf32>, %b: memref<8xf32>, %o: memref<8x7xf32>) {
  %zero = arith.constant 0.0 : f32
  %c = memref.alloc() : memref<8x7xf32>
  linalg.generic {indexing_maps = [affine_map<(f, w) -> (f, w)>], iterator_types = ["parallel", "parallel"]} outs(%c : memref<8x7xf32>) {
  ^bb0(%z: f32):
    linalg.yield %zero : f32
  }
  linalg.generic {indexing_maps = [affine_map<(f, w, k) -> (k, w)>, affine_map<(f, w, k) -> (f floordiv 8, k, f mod 8)>, affine_map<(f, w, k) -> (f, w)>], iterator_types = ["parallel", "parallel", "reduction"]} ins(%x, %w : memref<64x7xf32>, memref<1x64x8xf32>) outs(%c : memref<8x7xf32>) {
  ^bb0(%p: f32, %q: f32, %z: f32):
    %m = arith.mulf %p, %q : f32
    %s = arith.addf %z, %m : f32
    linalg.yield %s : f32
  }
  linalg.generic {indexing_maps = [affine_map<(f, w) -> (f, w)>, affine_map<(f, w) -> (f)>, affine_map<(f, w) -> (f, w)>], iterator_types = ["parallel", "parallel"]} ins(%c, %b : memref<8x7xf32>, memref<8xf32>) outs(%o : memref<8x7xf32>) {
  ^bb0(%p: f32, %q: f32, %z: f32):
    %s = arith.addf %p, %q : f32
    linalg.yield %s : f32
  }
  return
}

// What is added to each pixel is not the same for all rows: it is added after C is stored.
// CHECK-LABEL: func.func @no_residual
// CHECK:         panel.micro_kernel
// CHECK:         linalg.generic
// CHECK-SAME:      ins(%{{.*}}, %r :
func.func @no_residual(%x: memref<64x7xf32>, %w: memref<1x64x8xf32>, %r: memref<7x8xf32>, %o: memref<8x7xf32>) {
  %c = memref.alloc() : memref<8x7xf32>
  linalg.generic {indexing_maps = [affine_map<(f, w, k) -> (k, w)>, affine_map<(f, w, k) -> (f floordiv 8, k, f mod 8)>, affine_map<(f, w, k) -> (f, w)>], iterator_types = ["parallel", "parallel", "reduction"]} ins(%x, %w : memref<64x7xf32>, memref<1x64x8xf32>) outs(%c : memref<8x7xf32>) {
  ^bb0(%p: f32, %q: f32, %z: f32):
    %m = arith.mulf %p, %q : f32
    %s = arith.addf %z, %m : f32
    linalg.yield %s : f32
  }
  linalg.generic {indexing_maps = [affine_map<(f, w) -> (f, w)>, affine_map<(f, w) -> (w, f)>, affine_map<(f, w) -> (f, w)>], iterator_types = ["parallel", "parallel"]} ins(%c, %r : memref<8x7xf32>, memref<7x8xf32>) outs(%o : memref<8x7xf32>) {
  ^bb0(%p: f32, %q: f32, %z: f32):
    %s = arith.addf %p, %q : f32
    linalg.yield %s : f32
  }
  return
}

// Twelve channels are one vector and a part of another: what does not exist is not stored. Rows of a
// dynamic number are blocks of several rows and single ones.
// CHECK-LABEL: func.func @dynamic_rows
// CHECK:         panel.micro_kernel
// CHECK:         vector.store %{{.*}} vector<4xf32>
// CHECK:         func.return
func.func @dynamic_rows(%x: memref<64x?xf32>, %w: memref<1x64x16xf32>, %o: memref<12x?xf32>) {
  linalg.generic {indexing_maps = [affine_map<(f, w, k) -> (k, w)>, affine_map<(f, w, k) -> (f floordiv 16, k, f mod 16)>, affine_map<(f, w, k) -> (f, w)>], iterator_types = ["parallel", "parallel", "reduction"]} ins(%x, %w : memref<64x?xf32>, memref<1x64x16xf32>) outs(%o : memref<12x?xf32>) {
  ^bb0(%p: f32, %q: f32, %z: f32):
    %m = arith.mulf %p, %q : f32
    %s = arith.addf %z, %m : f32
    linalg.yield %s : f32
  }
  return
}
