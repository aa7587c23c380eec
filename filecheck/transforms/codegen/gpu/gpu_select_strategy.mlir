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
