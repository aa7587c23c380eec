// RUN: irees opt %s -p 'irees-assign-target{facts="gpu.multiprocessors=4 gpu.matrix_kinds=f16 gpu.warpgroup_kinds=f16 gpu.asynchronous_copies=true gpu.shared_opt_in_bytes=232448"},irees-gpu-select-strategy' | filecheck %s
// RUN: irees opt %s -p 'irees-assign-target{facts="gpu.multiprocessors=4 gpu.matrix_kinds=f16 gpu.warpgroup_kinds=f16 gpu.asynchronous_copies=true gpu.shared_opt_in_bytes=232448"},irees-gpu-select-strategy' --remarks 2>&1 >%t.out | filecheck %s --check-prefix WHY

#a = affine_map<(m, n, k) -> (m, k)>
#b = affine_map<(m, n, k) -> (k, n)>
#bt = affine_map<(m, n, k) -> (n, k)>
#c = affine_map<(m, n, k) -> (m, n)>

// Halves go by products of warpgroups, in the block that reads the least: 128 x 256, 64 steps, four stages.
// CHECK-LABEL: func.func @large
// CHECK:         workgroup = [128 : i64, 256 : i64, 0 : i64], block = [128 : i64, 256 : i64, 64 : i64, 4 : i64]
flow.executable @large {
  builtin.module {
    func.func @large(%a: memref<512x512xf16>, %b: memref<512x1024xf16>, %c: memref<512x1024xf32>) {
      linalg.generic {indexing_maps = [#a, #b, #c], iterator_types = ["parallel", "parallel", "reduction"]}
          ins(%a, %b : memref<512x512xf16>, memref<512x1024xf16>) outs(%c : memref<512x1024xf32>) {
      ^bb0(%x: f16, %y: f16, %o: f32):
        %v = arith.extf %x : f16 to f32
        %u = arith.extf %y : f16 to f32
        %p = arith.mulf %v, %u : f32
        %s = arith.addf %o, %p : f32
        linalg.yield %s : f32
      }
      return
    }
  }
}

// Smaller ones where there would be too few workgroups.
// WHY:         :37:7: {{.*}} blocks of 128 x 256 x 64: predicted 10703 cycles, the best takes 4096
// WHY-NEXT:    blocks of 128 x 128 x 64: predicted 6152 cycles, the best takes 4096
// CHECK-LABEL: func.func @few_workgroups
// CHECK:         block = [64 : i64, 128 : i64, 64 : i64, 4 : i64]
flow.executable @few_workgroups {
  builtin.module {
    func.func @few_workgroups(%a: memref<128x512xf16>, %b: memref<512x256xf16>, %c: memref<128x256xf32>) {
      linalg.generic {indexing_maps = [#a, #b, #c], iterator_types = ["parallel", "parallel", "reduction"]}
          ins(%a, %b : memref<128x512xf16>, memref<512x256xf16>) outs(%c : memref<128x256xf32>) {
      ^bb0(%x: f16, %y: f16, %o: f32):
        %v = arith.extf %x : f16 to f32
        %u = arith.extf %y : f16 to f32
        %p = arith.mulf %v, %u : f32
        %s = arith.addf %o, %p : f32
        linalg.yield %s : f32
      }
      return
    }
  }
}

// Where the last rows and columns are cut, each copy of a thread has an address of its own; boxes have none,
// but rows of 508 halves do not begin at multiples of 16 bytes.
// WHY:         blocks of 128 x 256 x 64: needs 304 registers for a partial last tile; the limit is 255
// CHECK-LABEL: func.func @cut
// CHECK:         block = [128 : i64, 128 : i64, 64 : i64, 3 : i64]
flow.executable @cut {
  builtin.module {
    func.func @cut(%a: memref<520x508xf16>, %b: memref<1032x508xf16>, %c: memref<520x1032xf32>) {
      linalg.generic {indexing_maps = [#a, #bt, #c], iterator_types = ["parallel", "parallel", "reduction"]}
          ins(%a, %b : memref<520x508xf16>, memref<1032x508xf16>) outs(%c : memref<520x1032xf32>) {
      ^bb0(%x: f16, %y: f16, %o: f32):
        %v = arith.extf %x : f16 to f32
        %u = arith.extf %y : f16 to f32
        %p = arith.mulf %v, %u : f32
        %s = arith.addf %o, %p : f32
        linalg.yield %s : f32
      }
      return
    }
  }
}

// Where rows do, the block may be larger.
// CHECK-LABEL: func.func @boxes
// CHECK:         block = [128 : i64, 256 : i64, 64 : i64, 4 : i64]
flow.executable @boxes {
  builtin.module {
    func.func @boxes(%a: memref<512x512xf16>, %b: memref<1024x512xf16>, %c: memref<512x1024xf32>) {
      linalg.generic {indexing_maps = [#a, #bt, #c], iterator_types = ["parallel", "parallel", "reduction"]}
          ins(%a, %b : memref<512x512xf16>, memref<1024x512xf16>) outs(%c : memref<512x1024xf32>) {
      ^bb0(%x: f16, %y: f16, %o: f32):
        %v = arith.extf %x : f16 to f32
        %u = arith.extf %y : f16 to f32
        %p = arith.mulf %v, %u : f32
        %s = arith.addf %o, %p : f32
        linalg.yield %s : f32
      }
      return
    }
  }
}

// What is not copied by 4 bytes or more goes by single warps.
// WHY-COUNT-4: the operand of the rows cannot be copied 4 bytes at a time
// CHECK-LABEL: func.func @odd
// CHECK:         block = [256 : i64, 128 : i64, 64 : i64, 64 : i64, 32 : i64, 3 : i64]
flow.executable @odd {
  builtin.module {
    func.func @odd(%a: memref<512x511xf16>, %b: memref<511x512xf16>, %c: memref<512x512xf32>) {
      linalg.generic {indexing_maps = [#a, #b, #c], iterator_types = ["parallel", "parallel", "reduction"]}
          ins(%a, %b : memref<512x511xf16>, memref<511x512xf16>) outs(%c : memref<512x512xf32>) {
      ^bb0(%x: f16, %y: f16, %o: f32):
        %v = arith.extf %x : f16 to f32
        %u = arith.extf %y : f16 to f32
        %p = arith.mulf %v, %u : f32
        %s = arith.addf %o, %p : f32
        linalg.yield %s : f32
      }
      return
    }
  }
}
