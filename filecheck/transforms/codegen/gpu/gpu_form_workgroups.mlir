// RUN: irees opt %s -p irees-gpu-form-workgroups | filecheck %s

// What touches memory between the loops is a workgroup of its own; what only computes stays.
// CHECK-LABEL: func.func @between
// CHECK:         %[[N:.*]] = arith.addi %n, %n : index
// CHECK:         scf.forall (%{{.*}}) in (1) {
// CHECK:           memref.store %v, %a[%{{.*}}] : memref<?xf32>
// CHECK:         } {mapping = [#gpu.block<linear_dim_0>]}
// CHECK:         scf.forall (%{{.*}}, %{{.*}}) in (%[[N]], 4) {
// CHECK:         } {mapping = [#gpu.block<linear_dim_0>, #gpu.block<linear_dim_1>]}
flow.executable @e {
  builtin.module {
    func.func @between(%a: memref<?xf32>, %v: f32, %n: index) {
      %c0 = arith.constant 0 : index
      memref.store %v, %a[%c0] : memref<?xf32>
      %m = arith.addi %n, %n : index
      scf.forall (%i, %j) in (%m, 4) {
        memref.store %v, %a[%i] : memref<?xf32>
      }
      return
    }
  }
}

// A value that is needed afterwards is handed over in memory, and read by the host.
// CHECK-LABEL: func.func @handed_over
// CHECK:         %[[P:.*]] = memref.alloc() : memref<f32>
// CHECK-NEXT:    scf.forall (%{{.*}}) in (1) {
// CHECK:           %[[S:.*]] = scf.for
// CHECK:           memref.store %[[S]], %[[P]][] : memref<f32>
// CHECK:         } {mapping = [#gpu.block<linear_dim_0>]}
// CHECK-NEXT:    %[[V:.*]] = memref.load %[[P]][] : memref<f32>
// CHECK-NEXT:    scf.forall
// CHECK:           memref.store %[[V]]
flow.executable @f {
  builtin.module {
    func.func @handed_over(%a: memref<8xf32>) {
      %c0 = arith.constant 0 : index
      %c1 = arith.constant 1 : index
      %c8 = arith.constant 8 : index
      %zero = arith.constant 0.0 : f32
      %s = scf.for %k = %c0 to %c8 step %c1 iter_args(%acc = %zero) -> (f32) {
        %x = memref.load %a[%k] : memref<8xf32>
        memref.store %zero, %a[%k] : memref<8xf32>
        %y = arith.addf %acc, %x : f32
        scf.yield %y : f32
      }
      scf.forall (%i) in (8) {
        memref.store %s, %a[%i] : memref<8xf32>
      }
      return
    }
  }
}

// A load by itself is the host's: it may be a size.
// CHECK-LABEL: func.func @no_load
// CHECK-NOT:     scf.forall
flow.executable @g {
  builtin.module {
    func.func @no_load(%a: memref<8xindex>) {
      %c0 = arith.constant 0 : index
      %x = memref.load %a[%c0] : memref<8xindex>
      return
    }
  }
}

// As many threads as the ops in it ask for.
// CHECK-LABEL: func.func @threads
// CHECK:         scf.forall
// CHECK:         threads = 512
flow.executable @t {
  builtin.module {
    func.func @threads(%a: memref<8xf32>) {
      scf.forall (%i) in (8) {
        %v = memref.subview %a[%i] [1] [1] : memref<8xf32> to memref<1xf32, strided<[1], offset: ?>>
        linalg.generic {indexing_maps = [affine_map<(i) -> (i)>], iterator_types = ["parallel"],
                        lowering_config = #iree_codegen.lowering_config<{threads = 512}>}
            outs(%v : memref<1xf32, strided<[1], offset: ?>>) {
        ^bb0(%o: f32):
          linalg.yield %o : f32
        }
      }
      return
    }
  }
}
