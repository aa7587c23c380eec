// RUN: xdsl-opt %s -p irees-bufferize-dispatch | filecheck %s

// A result is written where it will be stored.
// CHECK-LABEL: flow.executable @stored
// CHECK:         func.func @stored(%[[A:.*]]: memref<4xf32>, %[[O:.*]]: memref<4xf32>) {
// CHECK-NEXT:        linalg.generic {{.*}} ins(%[[A]] : memref<4xf32>) outs(%[[O]] : memref<4xf32>)
flow.executable @stored {
  builtin.module {
    func.func @stored(%a: !iree_tensor_ext.dispatch.tensor<readonly:tensor<4xf32>>, %o: !iree_tensor_ext.dispatch.tensor<writeonly:tensor<4xf32>>) {
      %x = iree_tensor_ext.dispatch.tensor.load %a, offsets = [0], sizes = [4], strides = [1] : !iree_tensor_ext.dispatch.tensor<readonly:tensor<4xf32>> -> tensor<4xf32>
      %e = tensor.empty() : tensor<4xf32>
      %y = linalg.generic {indexing_maps = [affine_map<(d0) -> (d0)>, affine_map<(d0) -> (d0)>], iterator_types = ["parallel"]} ins(%x : tensor<4xf32>) outs(%e : tensor<4xf32>) {
      ^bb0(%p: f32, %q: f32):
        %r = arith.negf %p : f32
        linalg.yield %r : f32
      } -> tensor<4xf32>
      iree_tensor_ext.dispatch.tensor.store %y, %o, offsets = [0], sizes = [4], strides = [1] : tensor<4xf32> -> !iree_tensor_ext.dispatch.tensor<writeonly:tensor<4xf32>>
      return
    }
  }
}

// Dynamic sizes need no copy either.
// CHECK-LABEL: flow.executable @dynamic
// CHECK:         func.func @dynamic(%[[A:.*]]: memref<?xf32>, %{{.*}}: index, %[[O:.*]]: memref<?xf32>) {
// CHECK-NEXT:        linalg.generic {{.*}} ins(%[[A]] : memref<?xf32>) outs(%[[O]] : memref<?xf32>)
flow.executable @dynamic {
  builtin.module {
    func.func @dynamic(%a: !iree_tensor_ext.dispatch.tensor<readonly:tensor<?xf32>>, %n: index, %o: !iree_tensor_ext.dispatch.tensor<writeonly:tensor<?xf32>>) {
      %x = iree_tensor_ext.dispatch.tensor.load %a, offsets = [0], sizes = [%n], strides = [1] : !iree_tensor_ext.dispatch.tensor<readonly:tensor<?xf32>>{%n} -> tensor<?xf32>
      %e = tensor.empty(%n) : tensor<?xf32>
      %y = linalg.generic {indexing_maps = [affine_map<(d0) -> (d0)>, affine_map<(d0) -> (d0)>], iterator_types = ["parallel"]} ins(%x : tensor<?xf32>) outs(%e : tensor<?xf32>) {
      ^bb0(%p: f32, %q: f32):
        %r = arith.negf %p : f32
        linalg.yield %r : f32
      } -> tensor<?xf32>
      iree_tensor_ext.dispatch.tensor.store %y, %o, offsets = [0], sizes = [%n], strides = [1] : tensor<?xf32> -> !iree_tensor_ext.dispatch.tensor<writeonly:tensor<?xf32>>{%n}
      return
    }
  }
}

// An intermediate result gets a buffer of its own.
// CHECK-LABEL: flow.executable @intermediate
// CHECK:         %[[T:.*]] = memref.alloc() : memref<4xf32>
// CHECK-NEXT:        linalg.generic {{.*}} outs(%[[T]] : memref<4xf32>)
// CHECK:         linalg.generic {{.*}} ins(%[[T]] : memref<4xf32>) outs(%o : memref<4xf32>)
flow.executable @intermediate {
  builtin.module {
    func.func @intermediate(%a: !iree_tensor_ext.dispatch.tensor<readonly:tensor<4xf32>>, %o: !iree_tensor_ext.dispatch.tensor<writeonly:tensor<4xf32>>) {
      %x = iree_tensor_ext.dispatch.tensor.load %a, offsets = [0], sizes = [4], strides = [1] : !iree_tensor_ext.dispatch.tensor<readonly:tensor<4xf32>> -> tensor<4xf32>
      %e = tensor.empty() : tensor<4xf32>
      %y = linalg.generic {indexing_maps = [affine_map<(d0) -> (d0)>, affine_map<(d0) -> (d0)>], iterator_types = ["parallel"]} ins(%x : tensor<4xf32>) outs(%e : tensor<4xf32>) {
      ^bb0(%p: f32, %q: f32):
        %r = arith.negf %p : f32
        linalg.yield %r : f32
      } -> tensor<4xf32>
      %z = linalg.generic {indexing_maps = [affine_map<(d0) -> (d0)>, affine_map<(d0) -> (d0)>], iterator_types = ["parallel"]} ins(%y : tensor<4xf32>) outs(%e : tensor<4xf32>) {
      ^bb0(%p: f32, %q: f32):
        %r = arith.negf %p : f32
        linalg.yield %r : f32
      } -> tensor<4xf32>
      iree_tensor_ext.dispatch.tensor.store %z, %o, offsets = [0], sizes = [4], strides = [1] : tensor<4xf32> -> !iree_tensor_ext.dispatch.tensor<writeonly:tensor<4xf32>>
      return
    }
  }
}

// What is only read is never written: its contents are copied to where the sum is stored.
// CHECK-LABEL: flow.executable @no_write_to_input
// CHECK:         func.func @no_write_to_input
// CHECK-NEXT:        linalg.generic {{.*}} ins(%b : memref<4xf32>) outs(%o : memref<4xf32>) {
// CHECK:         linalg.generic {{.*}} ins(%a : memref<4xf32>) outs(%o : memref<4xf32>) {
// CHECK:         arith.addf
flow.executable @no_write_to_input {
  builtin.module {
    func.func @no_write_to_input(%a: !iree_tensor_ext.dispatch.tensor<readonly:tensor<4xf32>>, %b: !iree_tensor_ext.dispatch.tensor<readonly:tensor<4xf32>>, %o: !iree_tensor_ext.dispatch.tensor<writeonly:tensor<4xf32>>) {
      %x = iree_tensor_ext.dispatch.tensor.load %a, offsets = [0], sizes = [4], strides = [1] : !iree_tensor_ext.dispatch.tensor<readonly:tensor<4xf32>> -> tensor<4xf32>
      %y = iree_tensor_ext.dispatch.tensor.load %b, offsets = [0], sizes = [4], strides = [1] : !iree_tensor_ext.dispatch.tensor<readonly:tensor<4xf32>> -> tensor<4xf32>
      %z = linalg.generic {indexing_maps = [affine_map<(d0) -> (d0)>, affine_map<(d0) -> (d0)>], iterator_types = ["parallel"]} ins(%x : tensor<4xf32>) outs(%y : tensor<4xf32>) {
      ^bb0(%p: f32, %q: f32):
        %r = arith.addf %p, %q : f32
        linalg.yield %r : f32
      } -> tensor<4xf32>
      iree_tensor_ext.dispatch.tensor.store %z, %o, offsets = [0], sizes = [4], strides = [1] : tensor<4xf32> -> !iree_tensor_ext.dispatch.tensor<writeonly:tensor<4xf32>>
      return
    }
  }
}

// A slice is a view, an insertion a copy into one.
// CHECK-LABEL: flow.executable @slices
// CHECK:         %[[S:.*]] = memref.subview %a[2] [4] [1] : memref<8xf32> to memref<4xf32, strided<[1], offset: 2>>
// CHECK-NEXT:        %[[T:.*]] = memref.subview %o[4] [4] [1] : memref<8xf32> to memref<4xf32, strided<[1], offset: 4>>
// CHECK-NEXT:        linalg.generic {{.*}} ins(%[[S]] : memref<4xf32, strided<[1], offset: 2>>) outs(%[[T]] : memref<4xf32, strided<[1], offset: 4>>)
flow.executable @slices {
  builtin.module {
    func.func @slices(%a: !iree_tensor_ext.dispatch.tensor<readonly:tensor<8xf32>>, %o: !iree_tensor_ext.dispatch.tensor<writeonly:tensor<8xf32>>) {
      %x = iree_tensor_ext.dispatch.tensor.load %a, offsets = [0], sizes = [8], strides = [1] : !iree_tensor_ext.dispatch.tensor<readonly:tensor<8xf32>> -> tensor<8xf32>
      %s = tensor.extract_slice %x[2] [4] [1] : tensor<8xf32> to tensor<4xf32>
      %e = tensor.empty() : tensor<8xf32>
      %y = tensor.insert_slice %s into %e[4] [4] [1] : tensor<4xf32> into tensor<8xf32>
      iree_tensor_ext.dispatch.tensor.store %y, %o, offsets = [0], sizes = [8], strides = [1] : tensor<8xf32> -> !iree_tensor_ext.dispatch.tensor<writeonly:tensor<8xf32>>
      return
    }
  }
}

// A tensor that a body reads anywhere becomes a memref there; the place is moved inside.
// CHECK-LABEL: flow.executable @gather
// CHECK:             %[[K:.*]] = arith.index_cast %{{.*}} : i64 to index
// CHECK:             %[[LAST:.*]] = arith.constant 7 : index
// CHECK-NEXT:        %[[LOW:.*]] = arith.minsi %[[K]], %[[LAST]] : index
// CHECK:             %[[AT:.*]] = arith.maxsi %[[LOW]], %{{.*}} : index
// CHECK-NEXT:        memref.load %a[%[[AT]]] : memref<8xf32>
flow.executable @gather {
  builtin.module {
    func.func @gather(%a: !iree_tensor_ext.dispatch.tensor<readonly:tensor<8xf32>>, %b: !iree_tensor_ext.dispatch.tensor<readonly:tensor<4xi64>>, %o: !iree_tensor_ext.dispatch.tensor<writeonly:tensor<4xf32>>) {
      %x = iree_tensor_ext.dispatch.tensor.load %a, offsets = [0], sizes = [8], strides = [1] : !iree_tensor_ext.dispatch.tensor<readonly:tensor<8xf32>> -> tensor<8xf32>
      %i = iree_tensor_ext.dispatch.tensor.load %b, offsets = [0], sizes = [4], strides = [1] : !iree_tensor_ext.dispatch.tensor<readonly:tensor<4xi64>> -> tensor<4xi64>
      %e = tensor.empty() : tensor<4xf32>
      %y = linalg.generic {indexing_maps = [affine_map<(d0) -> (d0)>, affine_map<(d0) -> (d0)>], iterator_types = ["parallel"]} ins(%i : tensor<4xi64>) outs(%e : tensor<4xf32>) {
      ^bb0(%p: i64, %q: f32):
        %k = arith.index_cast %p : i64 to index
        %v = tensor.extract %x[%k] : tensor<8xf32>
        linalg.yield %v : f32
      } -> tensor<4xf32>
      iree_tensor_ext.dispatch.tensor.store %y, %o, offsets = [0], sizes = [4], strides = [1] : tensor<4xf32> -> !iree_tensor_ext.dispatch.tensor<writeonly:tensor<4xf32>>
      return
    }
  }
}

// A table that may be empty has no nearest element: then it is 0.
// CHECK-LABEL: flow.executable @maybe_empty
// CHECK:             %[[SOME:.*]] = arith.cmpi sgt, %n, %{{.*}} : index
// CHECK:             scf.if %[[SOME]] -> (f32) {
// CHECK-NEXT:          memref.load %{{.*}}[%{{.*}}, %j] : memref<?x8xf32, strided<[8, 1]>>
// CHECK:             } else {
// CHECK-NEXT:          arith.constant 0.000000e+00 : f32
flow.executable @maybe_empty {
  builtin.module {
    func.func @maybe_empty(%a: !iree_tensor_ext.dispatch.tensor<readonly:tensor<?x8xf32>>, %n: index, %b: !iree_tensor_ext.dispatch.tensor<readonly:tensor<4xi64>>, %o: !iree_tensor_ext.dispatch.tensor<writeonly:tensor<4xf32>>) {
      %x = iree_tensor_ext.dispatch.tensor.load %a, offsets = [0, 0], sizes = [%n, 8], strides = [1, 1] : !iree_tensor_ext.dispatch.tensor<readonly:tensor<?x8xf32>> -> tensor<?x8xf32>
      %i = iree_tensor_ext.dispatch.tensor.load %b, offsets = [0], sizes = [4], strides = [1] : !iree_tensor_ext.dispatch.tensor<readonly:tensor<4xi64>> -> tensor<4xi64>
      %e = tensor.empty() : tensor<4xf32>
      %y = linalg.generic {indexing_maps = [affine_map<(d0) -> (d0)>, affine_map<(d0) -> (d0)>], iterator_types = ["parallel"]} ins(%i : tensor<4xi64>) outs(%e : tensor<4xf32>) {
      ^bb0(%p: i64, %q: f32):
        %j = linalg.index 0 : index
        %k = arith.index_cast %p : i64 to index
        %v = tensor.extract %x[%k, %j] : tensor<?x8xf32>
        linalg.yield %v : f32
      } -> tensor<4xf32>
      iree_tensor_ext.dispatch.tensor.store %y, %o, offsets = [0], sizes = [4], strides = [1] : tensor<4xf32> -> !iree_tensor_ext.dispatch.tensor<writeonly:tensor<4xf32>>
      return
    }
  }
}

// The index of a loop is inside already: where it may not be, the host program has it moved.
// CHECK-LABEL: flow.executable @no_clamp
// CHECK:             %[[I:.*]] = linalg.index 0 : index
// CHECK-NEXT:        memref.load %a[%[[I]]] : memref<8xf32>
flow.executable @no_clamp {
  builtin.module {
    func.func @no_clamp(%a: !iree_tensor_ext.dispatch.tensor<readonly:tensor<8xf32>>, %o: !iree_tensor_ext.dispatch.tensor<writeonly:tensor<4xf32>>) {
      %x = iree_tensor_ext.dispatch.tensor.load %a, offsets = [0], sizes = [8], strides = [1] : !iree_tensor_ext.dispatch.tensor<readonly:tensor<8xf32>> -> tensor<8xf32>
      %e = tensor.empty() : tensor<4xf32>
      %y = linalg.generic {indexing_maps = [affine_map<(d0) -> (d0)>], iterator_types = ["parallel"]} outs(%e : tensor<4xf32>) {
      ^bb0(%q: f32):
        %i = linalg.index 0 : index
        %v = tensor.extract %x[%i] : tensor<8xf32>
        linalg.yield %v : f32
      } -> tensor<4xf32>
      iree_tensor_ext.dispatch.tensor.store %y, %o, offsets = [0], sizes = [4], strides = [1] : tensor<4xf32> -> !iree_tensor_ext.dispatch.tensor<writeonly:tensor<4xf32>>
      return
    }
  }
}

// What is inserted into a fill is computed in its place, and only what is around it is filled, after
// it: what computes it may be one nest with the op before.
// CHECK-LABEL: flow.executable @frame
// CHECK:             func.func @frame(%a: memref<4x6xf32>, %o: memref<5x8xf32>)
// CHECK-NEXT:          %[[IN:.*]] = memref.subview %o[1, 2] [4, 6] [1, 1]
// CHECK-NEXT:          linalg.generic {{.*}} ins(%a : memref<4x6xf32>) outs(%[[IN]] :
// CHECK:               %[[Z:.*]] = arith.constant 0.000000e+00 : f32
// CHECK-NEXT:          %[[TOP:.*]] = memref.subview %o[0, 0] [1, 8] [1, 1]
// CHECK-NEXT:          linalg.generic {{.*}} ins(%[[Z]] : f32) outs(%[[TOP]] :
// CHECK:               %[[LEFT:.*]] = memref.subview %o[1, 0] [4, 2] [1, 1]
// CHECK-NEXT:          linalg.generic {{.*}} ins(%[[Z]] : f32) outs(%[[LEFT]] :
// CHECK-NOT:           linalg.generic
// CHECK:               func.return
flow.executable @frame {
  builtin.module {
    func.func @frame(%a: !iree_tensor_ext.dispatch.tensor<readonly:tensor<4x6xf32>>, %o: !iree_tensor_ext.dispatch.tensor<writeonly:tensor<5x8xf32>>) {
      %x = iree_tensor_ext.dispatch.tensor.load %a, offsets = [0, 0], sizes = [4, 6], strides = [1, 1] : !iree_tensor_ext.dispatch.tensor<readonly:tensor<4x6xf32>> -> tensor<4x6xf32>
      %e = tensor.empty() : tensor<4x6xf32>
      %y = linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d0, d1)>], iterator_types = ["parallel", "parallel"]} ins(%x : tensor<4x6xf32>) outs(%e : tensor<4x6xf32>) {
      ^bb0(%p: f32, %q: f32):
        %v = math.exp %p : f32
        linalg.yield %v : f32
      } -> tensor<4x6xf32>
      %z = arith.constant 0.0 : f32
      %g = tensor.empty() : tensor<5x8xf32>
      %f = linalg.generic {indexing_maps = [affine_map<(d0, d1) -> ()>, affine_map<(d0, d1) -> (d0, d1)>], iterator_types = ["parallel", "parallel"]} ins(%z : f32) outs(%g : tensor<5x8xf32>) {
      ^bb0(%p: f32, %q: f32):
        linalg.yield %p : f32
      } -> tensor<5x8xf32>
      %r = tensor.insert_slice %y into %f[1, 2] [4, 6] [1, 1] : tensor<4x6xf32> into tensor<5x8xf32>
      iree_tensor_ext.dispatch.tensor.store %r, %o, offsets = [0, 0], sizes = [5, 8], strides = [1, 1] : tensor<5x8xf32> -> !iree_tensor_ext.dispatch.tensor<writeonly:tensor<5x8xf32>>
      return
    }
  }
}

// An init that is read in every step of a sum is not what the sum is written over.
// CHECK-LABEL: flow.executable @read_init
// CHECK:         %[[F:.*]] = memref.alloc() : memref<4xf32>
// CHECK:         linalg.generic {{.*}} ins(%[[F]] : memref<4xf32>) outs(%o : memref<4xf32>)
// CHECK:         linalg.generic {{.*}} ins(%a, %[[F]] : memref<4x3xf32>, memref<4xf32>) outs(%o : memref<4xf32>)
flow.executable @read_init {
  builtin.module {
    func.func @read_init(%a: !iree_tensor_ext.dispatch.tensor<readonly:tensor<4x3xf32>>, %o: !iree_tensor_ext.dispatch.tensor<writeonly:tensor<4xf32>>) {
      %x = iree_tensor_ext.dispatch.tensor.load %a, offsets = [0, 0], sizes = [4, 3], strides = [1, 1] : !iree_tensor_ext.dispatch.tensor<readonly:tensor<4x3xf32>> -> tensor<4x3xf32>
      %c = arith.constant dense<2.0> : tensor<4xf32>
      %y = linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d0)>, affine_map<(d0, d1) -> (d0)>], iterator_types = ["parallel", "reduction"]} ins(%x, %c : tensor<4x3xf32>, tensor<4xf32>) outs(%c : tensor<4xf32>) {
      ^bb0(%p: f32, %q: f32, %r: f32):
        %s = arith.subf %p, %q : f32
        %t = arith.addf %s, %r : f32
        linalg.yield %t : f32
      } -> tensor<4xf32>
      iree_tensor_ext.dispatch.tensor.store %y, %o, offsets = [0], sizes = [4], strides = [1] : tensor<4xf32> -> !iree_tensor_ext.dispatch.tensor<writeonly:tensor<4xf32>>
      return
    }
  }
}
