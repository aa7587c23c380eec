// RUN: xdsl-opt %s | xdsl-opt | filecheck %s
// RUN: xdsl-opt --print-op-generic %s | xdsl-opt | filecheck %s

func.func @sorting(%v: tensor<4x8xf32>, %i: tensor<4x8xi64>, %k: tensor<4x2xf32>, %ki: tensor<4x2xi32>, %a: tensor<8xf32>, %r: tensor<4xf32>, %ri: tensor<4xindex>, %base: index) {
  %0:2 = iree_linalg_ext.sort dimension(1) outs(%v, %i : tensor<4x8xf32>, tensor<4x8xi64>) {
  ^bb0(%l: f32, %m: f32, %li: i64, %mi: i64):
    %c = arith.cmpf olt, %l, %m : f32
    iree_linalg_ext.yield %c : i1
  } -> tensor<4x8xf32>, tensor<4x8xi64>
  %s:2 = iree_linalg_ext.sort dimension(1) positions([1]) ins(%v : tensor<4x8xf32>) outs(%v, %i : tensor<4x8xf32>, tensor<4x8xi64>) {
  ^bb0(%l: f32, %m: f32, %li: i64, %mi: i64):
    %c = arith.cmpf olt, %l, %m : f32
    iree_linalg_ext.yield %c : i1
  } -> tensor<4x8xf32>, tensor<4x8xi64>
  %1:2 = iree_linalg_ext.topk_v2 dimension(1) is_sorted ins(%v : tensor<4x8xf32>) outs(%k, %ki : tensor<4x2xf32>, tensor<4x2xi32>) {
  ^bb0(%l: f32, %m: f32):
    %c = arith.cmpf ogt, %l, %m : f32
    iree_linalg_ext.yield %c : i1
  } -> tensor<4x2xf32>, tensor<4x2xi32>
  %2:2 = iree_linalg_ext.topk dimension(1) ins(%v : tensor<4x8xf32>) outs(%k, %ki : tensor<4x2xf32>, tensor<4x2xi32>) {
  ^bb0(%l: f32, %m: f32):
    %c = arith.cmpf ogt, %l, %m : f32
    iree_linalg_ext.yield %c : i1
  } -> tensor<4x2xf32>, tensor<4x2xi32>
  %3:2 = iree_linalg_ext.arg_compare dimension(1) ins(%v : tensor<4x8xf32>) outs(%r, %ri : tensor<4xf32>, tensor<4xindex>) index_base(%base : index) {
  ^bb0(%l: f32, %m: f32):
    %c = arith.cmpf ogt, %l, %m : f32
    iree_linalg_ext.yield %c : i1
  } -> tensor<4xf32>, tensor<4xindex>
  %4:2 = iree_linalg_ext.scan dimension(0) inclusive(false) ins(%v : tensor<4x8xf32>) outs(%v, %a : tensor<4x8xf32>, tensor<8xf32>) {
  ^bb0(%l: f32, %m: f32):
    %c = arith.addf %l, %m : f32
    iree_linalg_ext.yield %c : f32
  } -> tensor<4x8xf32>, tensor<8xf32>
  return
}
func.func @indexing(%o: tensor<8x4xf32>, %u: tensor<3x4xf32>, %x: tensor<3x1xi32>, %mask: tensor<3xi1>, %p: tensor<4x8xf32>) {
  %0 = iree_linalg_ext.scatter dimension_map = [0] unique_indices(true) ins(%u, %x, %mask : tensor<3x4xf32>, tensor<3x1xi32>, tensor<3xi1>) outs(%o : tensor<8x4xf32>) {
  ^bb0(%l: f32, %m: f32):
    iree_linalg_ext.yield %l : f32
  } -> tensor<8x4xf32>
  %1 = iree_linalg_ext.gather dimension_map = [0] ins(%o, %x : tensor<8x4xf32>, tensor<3x1xi32>) outs(%u : tensor<3x4xf32>) -> tensor<3x4xf32>
  %2 = iree_linalg_ext.map_load %o into %p {
  ^bb0(%i: index, %j: index):
    %z = arith.constant 0.0 : f32
    iree_linalg_ext.yield %j, %i, %z : index, index, f32
  } : tensor<8x4xf32> into tensor<4x8xf32> -> tensor<4x8xf32>
  %3 = iree_linalg_ext.map_store %o into %p {
  ^bb0(%i: index, %j: index):
    %t = arith.constant true
    iree_linalg_ext.yield %j, %i, %t : index, index, i1
  } : tensor<8x4xf32> into tensor<4x8xf32> -> tensor<4x8xf32>
  return
}
func.func @attention(%q: tensor<2x16x64xf32>, %s: f32, %o: tensor<2x16x64xf32>, %m: tensor<2x16xf32>) {
  %0 = iree_linalg_ext.attention {indexing_maps = [affine_map<(b, m, n, k1, k2) -> (b, m, k1)>, affine_map<(b, m, n, k1, k2) -> (b, k2, k1)>, affine_map<(b, m, n, k1, k2) -> (b, k2, n)>, affine_map<(b, m, n, k1, k2) -> ()>, affine_map<(b, m, n, k1, k2) -> (b, m, n)>], zero_masked_rows} ins(%q, %q, %q, %s : tensor<2x16x64xf32>, tensor<2x16x64xf32>, tensor<2x16x64xf32>, f32) outs(%o : tensor<2x16x64xf32>) {
  ^bb0(%x: f32):
    iree_linalg_ext.yield %x : f32
  } -> tensor<2x16x64xf32>
  return
}
func.func @im2col(%a: tensor<2x34x34x640xf32>, %o: tensor<2x1024x5760xf32>, %r: tensor<1024xf32>, %s: index) {
  %0 = iree_linalg_ext.im2col strides = [1, 1] dilations = [1, 1] kernel_size = [3, 3] offsets = [0, 0, 0] output_sizes = [[2], [32, 32], [3, 3, 640]] batch_pos = [0] m_pos = [1, 2] k_pos = [3] input_k_perm = [0, 1, 2] output_perm = [0, 1, 2] ins(%a : tensor<2x34x34x640xf32>) outs(%o : tensor<2x1024x5760xf32>) -> tensor<2x1024x5760xf32>
  %1:2 = iree_linalg_ext.fft ins(%s : index) outs(%r, %r : tensor<1024xf32>, tensor<1024xf32>) : tensor<1024xf32>, tensor<1024xf32>
  return
}

// CHECK:      builtin.module {
// CHECK-NEXT:   func.func @sorting(%v: tensor<4x8xf32>, %i: tensor<4x8xi64>, %k: tensor<4x2xf32>, %ki: tensor<4x2xi32>, %a: tensor<8xf32>, %r: tensor<4xf32>, %ri: tensor<4xindex>, %base: index) {
// CHECK-NEXT:     %0, %1 = iree_linalg_ext.sort dimension(1) outs(%v, %i : tensor<4x8xf32>, tensor<4x8xi64>) {
// CHECK-NEXT:     ^bb0(%l: f32, %m: f32, %li: i64, %mi: i64):
// CHECK-NEXT:       %c = arith.cmpf olt, %l, %m : f32
// CHECK-NEXT:       iree_linalg_ext.yield %c : i1
// CHECK-NEXT:     } -> tensor<4x8xf32>, tensor<4x8xi64>
// CHECK-NEXT:     %s, %s_1 = iree_linalg_ext.sort dimension(1) positions([1]) ins(%v : tensor<4x8xf32>) outs(%v, %i : tensor<4x8xf32>, tensor<4x8xi64>) {
// CHECK-NEXT:     ^bb0(%l_1: f32, %m_1: f32, %li_1: i64, %mi_1: i64):
// CHECK-NEXT:       %c_1 = arith.cmpf olt, %l_1, %m_1 : f32
// CHECK-NEXT:       iree_linalg_ext.yield %c_1 : i1
// CHECK-NEXT:     } -> tensor<4x8xf32>, tensor<4x8xi64>
// CHECK-NEXT:     %2, %3 = iree_linalg_ext.topk_v2 dimension(1) is_sorted ins(%v : tensor<4x8xf32>) outs(%k, %ki : tensor<4x2xf32>, tensor<4x2xi32>) {
// CHECK-NEXT:     ^bb0(%l_2: f32, %m_2: f32):
// CHECK-NEXT:       %c_2 = arith.cmpf ogt, %l_2, %m_2 : f32
// CHECK-NEXT:       iree_linalg_ext.yield %c_2 : i1
// CHECK-NEXT:     } -> tensor<4x2xf32>, tensor<4x2xi32>
// CHECK-NEXT:     %4, %5 = iree_linalg_ext.topk dimension(1) ins(%v : tensor<4x8xf32>) outs(%k, %ki : tensor<4x2xf32>, tensor<4x2xi32>) {
// CHECK-NEXT:     ^bb0(%l_3: f32, %m_3: f32):
// CHECK-NEXT:       %c_3 = arith.cmpf ogt, %l_3, %m_3 : f32
// CHECK-NEXT:       iree_linalg_ext.yield %c_3 : i1
// CHECK-NEXT:     } -> tensor<4x2xf32>, tensor<4x2xi32>
// CHECK-NEXT:     %6, %7 = iree_linalg_ext.arg_compare dimension(1) ins(%v : tensor<4x8xf32>) outs(%r, %ri : tensor<4xf32>, tensor<4xindex>) index_base(%base : index) {
// CHECK-NEXT:     ^bb0(%l_4: f32, %m_4: f32):
// CHECK-NEXT:       %c_4 = arith.cmpf ogt, %l_4, %m_4 : f32
// CHECK-NEXT:       iree_linalg_ext.yield %c_4 : i1
// CHECK-NEXT:     } -> tensor<4xf32>, tensor<4xindex>
// CHECK-NEXT:     %8, %9 = iree_linalg_ext.scan dimension(0) inclusive(false) ins(%v : tensor<4x8xf32>) outs(%v, %a : tensor<4x8xf32>, tensor<8xf32>) {
// CHECK-NEXT:     ^bb0(%l_5: f32, %m_5: f32):
// CHECK-NEXT:       %c_5 = arith.addf %l_5, %m_5 : f32
// CHECK-NEXT:       iree_linalg_ext.yield %c_5 : f32
// CHECK-NEXT:     } -> tensor<4x8xf32>, tensor<8xf32>
// CHECK-NEXT:     func.return
// CHECK-NEXT:   }
// CHECK-NEXT:   func.func @indexing(%o: tensor<8x4xf32>, %u: tensor<3x4xf32>, %x: tensor<3x1xi32>, %mask: tensor<3xi1>, %p: tensor<4x8xf32>) {
// CHECK-NEXT:     %0 = iree_linalg_ext.scatter dimension_map = [0] unique_indices(true) ins(%u, %x, %mask : tensor<3x4xf32>, tensor<3x1xi32>, tensor<3xi1>) outs(%o : tensor<8x4xf32>) {
// CHECK-NEXT:     ^bb0(%l: f32, %m: f32):
// CHECK-NEXT:       iree_linalg_ext.yield %l : f32
// CHECK-NEXT:     } -> tensor<8x4xf32>
// CHECK-NEXT:     %1 = iree_linalg_ext.gather dimension_map = [0] ins(%o, %x : tensor<8x4xf32>, tensor<3x1xi32>) outs(%u : tensor<3x4xf32>) -> tensor<3x4xf32>
// CHECK-NEXT:     %2 = iree_linalg_ext.map_load %o into %p {
// CHECK-NEXT:     ^bb0(%i: index, %j: index):
// CHECK-NEXT:       %z = arith.constant 0.000000e+00 : f32
// CHECK-NEXT:       iree_linalg_ext.yield %j, %i, %z : index, index, f32
// CHECK-NEXT:     } : tensor<8x4xf32> into tensor<4x8xf32> -> tensor<4x8xf32>
// CHECK-NEXT:     %3 = iree_linalg_ext.map_store %o into %p {
// CHECK-NEXT:     ^bb0(%i_1: index, %j_1: index):
// CHECK-NEXT:       %t = arith.constant true
// CHECK-NEXT:       iree_linalg_ext.yield %j_1, %i_1, %t : index, index, i1
// CHECK-NEXT:     } : tensor<8x4xf32> into tensor<4x8xf32> -> tensor<4x8xf32>
// CHECK-NEXT:     func.return
// CHECK-NEXT:   }
// CHECK-NEXT:   func.func @attention(%q: tensor<2x16x64xf32>, %s: f32, %o: tensor<2x16x64xf32>, %m: tensor<2x16xf32>) {
// CHECK-NEXT:     %0 = iree_linalg_ext.attention {indexing_maps = [affine_map<(d0, d1, d2, d3, d4) -> (d0, d1, d3)>, affine_map<(d0, d1, d2, d3, d4) -> (d0, d4, d3)>, affine_map<(d0, d1, d2, d3, d4) -> (d0, d4, d2)>, affine_map<(d0, d1, d2, d3, d4) -> ()>, affine_map<(d0, d1, d2, d3, d4) -> (d0, d1, d2)>], zero_masked_rows} ins(%q, %q, %q, %s : tensor<2x16x64xf32>, tensor<2x16x64xf32>, tensor<2x16x64xf32>, f32) outs(%o : tensor<2x16x64xf32>) {
// CHECK-NEXT:     ^bb0(%x: f32):
// CHECK-NEXT:       iree_linalg_ext.yield %x : f32
// CHECK-NEXT:     } -> tensor<2x16x64xf32>
// CHECK-NEXT:     func.return
// CHECK-NEXT:   }
// CHECK-NEXT:   func.func @im2col(%a: tensor<2x34x34x640xf32>, %o: tensor<2x1024x5760xf32>, %r: tensor<1024xf32>, %s: index) {
// CHECK-NEXT:     %0 = iree_linalg_ext.im2col strides = [1, 1] dilations = [1, 1] kernel_size = [3, 3] offsets = [0, 0, 0] output_sizes = [[2], [32, 32], [3, 3, 640]] batch_pos = [0] m_pos = [1, 2] k_pos = [3] input_k_perm = [0, 1, 2] output_perm = [0, 1, 2] ins(%a : tensor<2x34x34x640xf32>) outs(%o : tensor<2x1024x5760xf32>) -> tensor<2x1024x5760xf32>
// CHECK-NEXT:     %1, %2 = iree_linalg_ext.fft ins(%s : index) outs(%r, %r : tensor<1024xf32>, tensor<1024xf32>) : tensor<1024xf32>, tensor<1024xf32>
// CHECK-NEXT:     func.return
// CHECK-NEXT:   }
// CHECK-NEXT: }
