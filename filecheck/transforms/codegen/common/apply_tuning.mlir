// RUN: xdsl-opt %s -p 'irees-apply-tuning{tuning="{\"aa\": [{\"workgroup\": [2, 0]}], \"bb\": [{}, {}], \"dd\": [{\"workgroup\": [7], \"block\": [1, 16]}]}"}' | filecheck %s

// The kernel of that key gets the config on its op.
// CHECK:       flow.executable @known attributes {key = "aa", tuned}
// CHECK:         lowering_config = #iree_codegen.lowering_config<{workgroup = [2 : i64, 0 : i64]}>
flow.executable @known attributes {key = "aa"} {
  builtin.module {
    func.func @known(%x: memref<8x4xf32>, %y: memref<8x4xf32>) {
      linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i, j)>], iterator_types = ["parallel", "parallel"]} ins(%x : memref<8x4xf32>) outs(%y : memref<8x4xf32>) {
      ^bb0(%a: f32, %b: f32):
        linalg.yield %a : f32
      }
      return
    }
  }
}

// Another number of ops: made for something else.
// CHECK:       flow.executable @no_other_number attributes {key = "bb"} {
// CHECK-NOT:     lowering_config
flow.executable @no_other_number attributes {key = "bb"} {
  builtin.module {
    func.func @no_other_number(%x: memref<?xf32>, %y: memref<?xf32>) {
      linalg.generic {indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>], iterator_types = ["parallel"]} ins(%x : memref<?xf32>) outs(%y : memref<?xf32>) {
      ^bb0(%a: f32, %b: f32):
        linalg.yield %a : f32
      }
      return
    }
  }
}

// CHECK:       flow.executable @no_entry attributes {key = "cc"} {
// CHECK-NOT:     lowering_config
flow.executable @no_entry attributes {key = "cc"} {
  builtin.module {
    func.func @no_entry(%x: memref<?xf32>, %y: memref<?xf32>) {
      linalg.generic {indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>], iterator_types = ["parallel"]} ins(%x : memref<?xf32>) outs(%y : memref<?xf32>) {
      ^bb0(%a: f32, %b: f32):
        linalg.yield %a : f32
      }
      return
    }
  }
}

// Sizes may be dynamic.
// CHECK:       flow.executable @dynamic attributes {key = "dd", tuned}
// CHECK:         lowering_config = #iree_codegen.lowering_config<{block = [1 : i64, 16 : i64], workgroup = [7 : i64]}>
flow.executable @dynamic attributes {key = "dd"} {
  builtin.module {
    func.func @dynamic(%x: memref<?xf32>, %y: memref<?xf32>) {
      linalg.generic {indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>], iterator_types = ["parallel"]} ins(%x : memref<?xf32>) outs(%y : memref<?xf32>) {
      ^bb0(%a: f32, %b: f32):
        linalg.yield %a : f32
      }
      return
    }
  }
}
