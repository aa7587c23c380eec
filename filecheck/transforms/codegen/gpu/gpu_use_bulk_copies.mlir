// RUN: irees opt %s -p irees-gpu-use-bulk-copies | filecheck %s
// RUN: irees opt %s -p irees-gpu-use-bulk-copies --remarks 2>&1 >%t.out | filecheck %s --check-prefix WHY

#a = affine_map<(m, n, k) -> (m, k)>
#b = affine_map<(m, n, k) -> (k, n)>
#bt = affine_map<(m, n, k) -> (n, k)>
#c = affine_map<(m, n, k) -> (m, n)>
#config = #iree_codegen.lowering_config<{block = [128, 128, 64, 3]}>

// Both operands are boxes, of 128 rows of 64 steps and of 64 steps of 64 columns. That the last tile
// has fewer rows, and that nobody knows how many there are, does not matter: outside all is 0.
// CHECK-LABEL: func.func @boxes
// CHECK:         lowering_config = #iree_codegen.lowering_config<{block = [128 : i64, 128 : i64, 64 : i64, 3 : i64], bulk_copies = 1 : i64}>
func.func @boxes(%a: memref<?x520xf16>, %b: memref<520x256xf16>, %c: memref<?x256xf32>, %w: index, %rows: index) {
  scf.forall (%i) in (%w) {
    %x = memref.subview %a[%i, 0] [%rows, 520] [1, 1] : memref<?x520xf16> to memref<?x520xf16, strided<[520, 1], offset: ?>>
    %y = memref.subview %b[0, 128] [520, 128] [1, 1] : memref<520x256xf16> to memref<520x128xf16, strided<[256, 1], offset: 128>>
    %z = memref.subview %c[%i, 128] [%rows, 128] [1, 1] : memref<?x256xf32> to memref<?x128xf32, strided<[256, 1], offset: ?>>
    linalg.generic {indexing_maps = [#a, #b, #c], iterator_types = ["parallel", "parallel", "reduction"], lowering_config = #config}
        ins(%x, %y : memref<?x520xf16, strided<[520, 1], offset: ?>>, memref<520x128xf16, strided<[256, 1], offset: 128>>)
        outs(%z : memref<?x128xf32, strided<[256, 1], offset: ?>>) {
    ^bb0(%p: f16, %q: f16, %o: f32):
      %v = arith.extf %p : f16 to f32
      %u = arith.extf %q : f16 to f32
      %r = arith.mulf %v, %u : f32
      %s = arith.addf %o, %r : f32
      linalg.yield %s : f32
    }
  } {mapping = [#gpu.block<linear_dim_0>]}
  return
}

// Rows of 1000 bytes do not begin at multiples of 16.
// WHY:         not using TMA: the operand of the rows has rows that are not multiples of 16 bytes
// CHECK-LABEL: func.func @no_rows
// CHECK-NOT:     bulk_copies
func.func @no_rows(%a: memref<128x500xf16>, %b: memref<128x500xf16>, %c: memref<128x128xf32>) {
  scf.forall (%i) in (1) {
    linalg.generic {indexing_maps = [#a, #bt, #c], iterator_types = ["parallel", "parallel", "reduction"], lowering_config = #config}
        ins(%a, %b : memref<128x500xf16>, memref<128x500xf16>) outs(%c : memref<128x128xf32>) {
    ^bb0(%p: f16, %q: f16, %o: f32):
      %v = arith.extf %p : f16 to f32
      %u = arith.extf %q : f16 to f32
      %r = arith.mulf %v, %u : f32
      %s = arith.addf %o, %r : f32
      linalg.yield %s : f32
    }
  } {mapping = [#gpu.block<linear_dim_0>]}
  return
}

// A slice of the reduction that does not end with a part: what follows it is not 0.
// WHY-NEXT:    not using TMA: the operand of the rows extends past the end of the reduction
// CHECK-LABEL: func.func @no_slice
// CHECK-NOT:     bulk_copies
func.func @no_slice(%a: memref<128x512xf16>, %b: memref<128x512xf16>, %c: memref<128x128xf32>) {
  scf.forall (%i) in (1) {
    %x = memref.subview %a[0, 0] [128, 200] [1, 1] : memref<128x512xf16> to memref<128x200xf16, strided<[512, 1]>>
    %y = memref.subview %b[0, 0] [128, 200] [1, 1] : memref<128x512xf16> to memref<128x200xf16, strided<[512, 1]>>
    linalg.generic {indexing_maps = [#a, #bt, #c], iterator_types = ["parallel", "parallel", "reduction"], lowering_config = #config}
        ins(%x, %y : memref<128x200xf16, strided<[512, 1]>>, memref<128x200xf16, strided<[512, 1]>>) outs(%c : memref<128x128xf32>) {
    ^bb0(%p: f16, %q: f16, %o: f32):
      %v = arith.extf %p : f16 to f32
      %u = arith.extf %q : f16 to f32
      %r = arith.mulf %v, %u : f32
      %s = arith.addf %o, %r : f32
      linalg.yield %s : f32
    }
  } {mapping = [#gpu.block<linear_dim_0>]}
  return
}

// What the workgroup has written by its threads is not ordered with what is read by another way.
// WHY-NEXT:    not using TMA: the operand of the columns is written by the workgroup
// CHECK-LABEL: func.func @no_output
// CHECK-NOT:     bulk_copies
func.func @no_output(%a: memref<128x512xf16>, %b: memref<128x512xf16>, %c: memref<128x128xf32>) {
  scf.forall (%i) in (1) {
    linalg.generic {indexing_maps = [affine_map<(m, n) -> (m, n)>], iterator_types = ["parallel", "parallel"]} outs(%b : memref<128x512xf16>) {
    ^bb0(%o: f16):
      %one = arith.constant 1.0 : f16
      linalg.yield %one : f16
    }
    linalg.generic {indexing_maps = [#a, #bt, #c], iterator_types = ["parallel", "parallel", "reduction"], lowering_config = #config}
        ins(%a, %b : memref<128x512xf16>, memref<128x512xf16>) outs(%c : memref<128x128xf32>) {
    ^bb0(%p: f16, %q: f16, %o: f32):
      %v = arith.extf %p : f16 to f32
      %u = arith.extf %q : f16 to f32
      %r = arith.mulf %v, %u : f32
      %s = arith.addf %o, %r : f32
      linalg.yield %s : f32
    }
  } {mapping = [#gpu.block<linear_dim_0>]}
  return
}

// A row of the output is read from two rows, one step apart: a window.
// WHY-NEXT:    not using TMA: the operand of the rows is a window
// WHY-NOT:     remark
// CHECK-LABEL: func.func @no_window
// CHECK-NOT:     bulk_copies
func.func @no_window(%a: memref<1024xf16>, %b: memref<128x512xf16>, %c: memref<128x128xf32>) {
  scf.forall (%i) in (1) {
    linalg.generic {indexing_maps = [affine_map<(m, n, k) -> (m + k)>, #bt, #c], iterator_types = ["parallel", "parallel", "reduction"], lowering_config = #config}
        ins(%a, %b : memref<1024xf16>, memref<128x512xf16>) outs(%c : memref<128x128xf32>) {
    ^bb0(%p: f16, %q: f16, %o: f32):
      %v = arith.extf %p : f16 to f32
      %u = arith.extf %q : f16 to f32
      %r = arith.mulf %v, %u : f32
      %s = arith.addf %o, %r : f32
      linalg.yield %s : f32
    }
  } {mapping = [#gpu.block<linear_dim_0>]}
  return
}

// By single warps nothing changes.
// CHECK-LABEL: func.func @no_warpgroups
// CHECK-NOT:     bulk_copies
func.func @no_warpgroups(%a: memref<128x512xf16>, %b: memref<128x512xf16>, %c: memref<128x128xf32>) {
  scf.forall (%i) in (1) {
    linalg.generic {indexing_maps = [#a, #bt, #c], iterator_types = ["parallel", "parallel", "reduction"],
                    lowering_config = #iree_codegen.lowering_config<{block = [128, 128, 64, 32, 32, 4]}>}
        ins(%a, %b : memref<128x512xf16>, memref<128x512xf16>) outs(%c : memref<128x128xf32>) {
    ^bb0(%p: f16, %q: f16, %o: f32):
      %v = arith.extf %p : f16 to f32
      %u = arith.extf %q : f16 to f32
      %r = arith.mulf %v, %u : f32
      %s = arith.addf %o, %r : f32
      linalg.yield %s : f32
    }
  } {mapping = [#gpu.block<linear_dim_0>]}
  return
}
