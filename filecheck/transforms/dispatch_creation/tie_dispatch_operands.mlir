// RUN: xdsl-opt %s -p irees-tie-dispatch-operands | filecheck %s

// One row of an argument that the caller wants updated is written where it is.
// CHECK:       func.func @kernel(%{{.*}}: !iree_tensor_ext.dispatch.tensor<readonly:tensor<1x8xf32>>, %[[X:.*]]: !iree_tensor_ext.dispatch.tensor<readwrite:tensor<64x8xf32>>) {
// CHECK:         iree_tensor_ext.dispatch.tensor.load %[[X]]
// CHECK:         iree_tensor_ext.dispatch.tensor.store %{{.*}}, %[[X]]
// CHECK:       func.func @updated
// CHECK:         flow.dispatch @kernel::@kernel(%{{.*}}, %[[CACHE:.*]]) : (tensor<1x8xf32>, tensor<64x8xf32>) -> %[[CACHE]]
flow.executable @kernel {
  builtin.module {
    func.func @kernel(%u: !iree_tensor_ext.dispatch.tensor<readonly:tensor<1x8xf32>>,
                      %x: !iree_tensor_ext.dispatch.tensor<readonly:tensor<64x8xf32>>,
                      %o: !iree_tensor_ext.dispatch.tensor<writeonly:tensor<64x8xf32>>) {
      %0 = iree_tensor_ext.dispatch.tensor.load %u, offsets = [0, 0], sizes = [1, 8], strides = [1, 1] : !iree_tensor_ext.dispatch.tensor<readonly:tensor<1x8xf32>> -> tensor<1x8xf32>
      %1 = iree_tensor_ext.dispatch.tensor.load %x, offsets = [0, 0], sizes = [64, 8], strides = [1, 1] : !iree_tensor_ext.dispatch.tensor<readonly:tensor<64x8xf32>> -> tensor<64x8xf32>
      %2 = tensor.insert_slice %0 into %1[3, 0] [1, 8] [1, 1] : tensor<1x8xf32> into tensor<64x8xf32>
      iree_tensor_ext.dispatch.tensor.store %2, %o, offsets = [0, 0], sizes = [64, 8], strides = [1, 1] : tensor<64x8xf32> -> !iree_tensor_ext.dispatch.tensor<writeonly:tensor<64x8xf32>>
      return
    }
  }
}
func.func @updated(%u: tensor<1x8xf32>, %cache: tensor<64x8xf32>) -> (tensor<64x8xf32> {irees.updates = 1 : index}) {
  %0 = flow.dispatch @kernel::@kernel(%u, %cache) : (tensor<1x8xf32>, tensor<64x8xf32>) -> tensor<64x8xf32>
  return %0 : tensor<64x8xf32>
}

// An argument that the caller does not want changed, one that is read later by a view, and one whose new value is another result keep their memory.
// CHECK:       func.func @k_callers({{.*}}readonly:tensor<64x8xf32>>, {{.*}}writeonly:tensor<64x8xf32>>)
flow.executable @k_callers {
  builtin.module {
    func.func @k_callers(%u: !iree_tensor_ext.dispatch.tensor<readonly:tensor<1x8xf32>>,
                         %x: !iree_tensor_ext.dispatch.tensor<readonly:tensor<64x8xf32>>,
                         %o: !iree_tensor_ext.dispatch.tensor<writeonly:tensor<64x8xf32>>) {
      %0 = iree_tensor_ext.dispatch.tensor.load %u, offsets = [0, 0], sizes = [1, 8], strides = [1, 1] : !iree_tensor_ext.dispatch.tensor<readonly:tensor<1x8xf32>> -> tensor<1x8xf32>
      %1 = iree_tensor_ext.dispatch.tensor.load %x, offsets = [0, 0], sizes = [64, 8], strides = [1, 1] : !iree_tensor_ext.dispatch.tensor<readonly:tensor<64x8xf32>> -> tensor<64x8xf32>
      %2 = tensor.insert_slice %0 into %1[3, 0] [1, 8] [1, 1] : tensor<1x8xf32> into tensor<64x8xf32>
      iree_tensor_ext.dispatch.tensor.store %2, %o, offsets = [0, 0], sizes = [64, 8], strides = [1, 1] : tensor<64x8xf32> -> !iree_tensor_ext.dispatch.tensor<writeonly:tensor<64x8xf32>>
      return
    }
  }
}
// CHECK:       func.func @no_tie_to_what_is_the_callers
// CHECK:         flow.dispatch @k_callers::@k_callers(%{{.*}}, %{{.*}}) : (tensor<1x8xf32>, tensor<64x8xf32>) -> tensor<64x8xf32>
func.func @no_tie_to_what_is_the_callers(%u: tensor<1x8xf32>, %cache: tensor<64x8xf32>) -> tensor<64x8xf32> {
  %0 = flow.dispatch @k_callers::@k_callers(%u, %cache) : (tensor<1x8xf32>, tensor<64x8xf32>) -> tensor<64x8xf32>
  return %0 : tensor<64x8xf32>
}

// CHECK:       func.func @k_read({{.*}}writeonly:tensor<?x8xf32>>
flow.executable @k_read {
  builtin.module {
    func.func @k_read(%u: !iree_tensor_ext.dispatch.tensor<readonly:tensor<1x8xf32>>,
                      %x: !iree_tensor_ext.dispatch.tensor<readonly:tensor<?x8xf32>>, %n: index,
                      %o: !iree_tensor_ext.dispatch.tensor<writeonly:tensor<?x8xf32>>) {
      %0 = iree_tensor_ext.dispatch.tensor.load %u, offsets = [0, 0], sizes = [1, 8], strides = [1, 1] : !iree_tensor_ext.dispatch.tensor<readonly:tensor<1x8xf32>> -> tensor<1x8xf32>
      %1 = iree_tensor_ext.dispatch.tensor.load %x, offsets = [0, 0], sizes = [%n, 8], strides = [1, 1] : !iree_tensor_ext.dispatch.tensor<readonly:tensor<?x8xf32>>{%n} -> tensor<?x8xf32>
      %2 = tensor.insert_slice %0 into %1[3, 0] [1, 8] [1, 1] : tensor<1x8xf32> into tensor<?x8xf32>
      iree_tensor_ext.dispatch.tensor.store %2, %o, offsets = [0, 0], sizes = [%n, 8], strides = [1, 1] : tensor<?x8xf32> -> !iree_tensor_ext.dispatch.tensor<writeonly:tensor<?x8xf32>>{%n}
      return
    }
  }
}
// CHECK:       func.func @no_tie_where_a_view_is_read_later
// CHECK:         flow.dispatch @k_read::@k_read({{.*}}) : (tensor<1x8xf32>, tensor<?x8xf32>, index) -> tensor<?x8xf32>
func.func @no_tie_where_a_view_is_read_later(%u: tensor<1x8xf32>, %cache: tensor<?x8xf32>, %n: index) -> (tensor<?x8xf32> {irees.updates = 1 : index}, tensor<?xf32>) {
  %v = tensor.collapse_shape %cache [[0, 1]] : tensor<?x8xf32> into tensor<?xf32>
  %0 = flow.dispatch @k_read::@k_read(%u, %cache, %n) : (tensor<1x8xf32>, tensor<?x8xf32>, index) -> tensor<?x8xf32>{%n}
  return %0, %v : tensor<?x8xf32>, tensor<?xf32>
}

// -----

// A kernel of the program's own updates its output.
// CHECK-LABEL: func.func @own
// CHECK: !iree_tensor_ext.dispatch.tensor<readwrite:tensor<4xf32>>
// CHECK-LABEL: func.func @main
// CHECK: flow.dispatch @own::@own(%x, %v) : (tensor<4xf32>, f32) -> %x
flow.executable @own {
  builtin.module {
    func.func @own(%x: !iree_tensor_ext.dispatch.tensor<readonly:tensor<4xf32>>, %v: f32, %o: !iree_tensor_ext.dispatch.tensor<writeonly:tensor<4xf32>>) {
      %t = iree_tensor_ext.dispatch.tensor.load %x, offsets = [0], sizes = [4], strides = [1] : !iree_tensor_ext.dispatch.tensor<readonly:tensor<4xf32>> -> tensor<4xf32>
      %r = irees.kernel ins(%v : f32) outs(%t : tensor<4xf32>) {
      ^bb0(%w: f32, %y: memref<4xf32>):
        %c0 = arith.constant 0 : index
        memref.store %w, %y[%c0] : memref<4xf32>
      } -> tensor<4xf32>
      iree_tensor_ext.dispatch.tensor.store %r, %o, offsets = [0], sizes = [4], strides = [1] : tensor<4xf32> -> !iree_tensor_ext.dispatch.tensor<writeonly:tensor<4xf32>>
      func.return
    }
  }
}
func.func @main(%x: tensor<4xf32>, %v: f32) -> (tensor<4xf32> {irees.updates = 0 : index}) {
  %r = flow.dispatch @own::@own(%x, %v) : (tensor<4xf32>, f32) -> tensor<4xf32>
  func.return %r : tensor<4xf32>
}

// A loop replaces the tensor that it carries by one with another row. What it carries in another
// place, or reads after the dispatch, keeps its memory.
// CHECK:       func.func @carried
// CHECK:         scf.for %{{.*}} iter_args(%[[C:[a-z]+]] = %x, %
// CHECK:           flow.dispatch @k_carried::@k_carried(%{{.*}}, %[[C]]) : (tensor<1x8xf32>, tensor<64x8xf32>) -> %[[C]]
// CHECK:       func.func @no_tie_in_another_place
// CHECK:           flow.dispatch @k_moved::@k_moved(%{{.*}}, %{{.*}}) : (tensor<1x8xf32>, tensor<64x8xf32>) -> tensor<64x8xf32>
flow.executable @k_carried {
  builtin.module {
    func.func @k_carried(%u: !iree_tensor_ext.dispatch.tensor<readonly:tensor<1x8xf32>>,
                      %x: !iree_tensor_ext.dispatch.tensor<readonly:tensor<64x8xf32>>,
                      %o: !iree_tensor_ext.dispatch.tensor<writeonly:tensor<64x8xf32>>) {
      %0 = iree_tensor_ext.dispatch.tensor.load %u, offsets = [0, 0], sizes = [1, 8], strides = [1, 1] : !iree_tensor_ext.dispatch.tensor<readonly:tensor<1x8xf32>> -> tensor<1x8xf32>
      %1 = iree_tensor_ext.dispatch.tensor.load %x, offsets = [0, 0], sizes = [64, 8], strides = [1, 1] : !iree_tensor_ext.dispatch.tensor<readonly:tensor<64x8xf32>> -> tensor<64x8xf32>
      %2 = tensor.insert_slice %0 into %1[3, 0] [1, 8] [1, 1] : tensor<1x8xf32> into tensor<64x8xf32>
      iree_tensor_ext.dispatch.tensor.store %2, %o, offsets = [0, 0], sizes = [64, 8], strides = [1, 1] : tensor<64x8xf32> -> !iree_tensor_ext.dispatch.tensor<writeonly:tensor<64x8xf32>>
      return
    }
  }
}
func.func @carried(%u: tensor<1x8xf32>, %x: tensor<64x8xf32>, %n: index) -> tensor<64x8xf32> {
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %r:2 = scf.for %i = %zero to %n step %one iter_args(%c = %x, %d = %x) -> (tensor<64x8xf32>, tensor<64x8xf32>) {
    %0 = flow.dispatch @k_carried::@k_carried(%u, %c) : (tensor<1x8xf32>, tensor<64x8xf32>) -> tensor<64x8xf32>
    scf.yield %0, %d : tensor<64x8xf32>, tensor<64x8xf32>
  }
  return %r#0 : tensor<64x8xf32>
}

flow.executable @k_moved {
  builtin.module {
    func.func @k_moved(%u: !iree_tensor_ext.dispatch.tensor<readonly:tensor<1x8xf32>>,
                      %x: !iree_tensor_ext.dispatch.tensor<readonly:tensor<64x8xf32>>,
                      %o: !iree_tensor_ext.dispatch.tensor<writeonly:tensor<64x8xf32>>) {
      %0 = iree_tensor_ext.dispatch.tensor.load %u, offsets = [0, 0], sizes = [1, 8], strides = [1, 1] : !iree_tensor_ext.dispatch.tensor<readonly:tensor<1x8xf32>> -> tensor<1x8xf32>
      %1 = iree_tensor_ext.dispatch.tensor.load %x, offsets = [0, 0], sizes = [64, 8], strides = [1, 1] : !iree_tensor_ext.dispatch.tensor<readonly:tensor<64x8xf32>> -> tensor<64x8xf32>
      %2 = tensor.insert_slice %0 into %1[3, 0] [1, 8] [1, 1] : tensor<1x8xf32> into tensor<64x8xf32>
      iree_tensor_ext.dispatch.tensor.store %2, %o, offsets = [0, 0], sizes = [64, 8], strides = [1, 1] : tensor<64x8xf32> -> !iree_tensor_ext.dispatch.tensor<writeonly:tensor<64x8xf32>>
      return
    }
  }
}
func.func @no_tie_in_another_place(%u: tensor<1x8xf32>, %x: tensor<64x8xf32>, %n: index) -> tensor<64x8xf32> {
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %r:2 = scf.for %i = %zero to %n step %one iter_args(%c = %x, %d = %x) -> (tensor<64x8xf32>, tensor<64x8xf32>) {
    %0 = flow.dispatch @k_moved::@k_moved(%u, %c) : (tensor<1x8xf32>, tensor<64x8xf32>) -> tensor<64x8xf32>
    scf.yield %d, %0 : tensor<64x8xf32>, tensor<64x8xf32>
  }
  return %r#0 : tensor<64x8xf32>
}

// What the dispatch also reads as another shape keeps its memory.
// CHECK:       func.func @no_tie_to_what_is_read_twice
// CHECK:           flow.dispatch @k_twice::@k_twice(%{{.*}}, %{{.*}}) : (tensor<64x8x1xf32>, tensor<64x8xf32>) -> tensor<64x8xf32>
flow.executable @k_twice {
  builtin.module {
    func.func @k_twice(%u: !iree_tensor_ext.dispatch.tensor<readonly:tensor<64x8x1xf32>>,
                      %x: !iree_tensor_ext.dispatch.tensor<readonly:tensor<64x8xf32>>,
                      %o: !iree_tensor_ext.dispatch.tensor<writeonly:tensor<64x8xf32>>) {
      %0 = iree_tensor_ext.dispatch.tensor.load %u, offsets = [0, 0, 0], sizes = [1, 8, 1], strides = [1, 1, 1] : !iree_tensor_ext.dispatch.tensor<readonly:tensor<64x8x1xf32>> -> tensor<1x8xf32>
      %1 = iree_tensor_ext.dispatch.tensor.load %x, offsets = [0, 0], sizes = [64, 8], strides = [1, 1] : !iree_tensor_ext.dispatch.tensor<readonly:tensor<64x8xf32>> -> tensor<64x8xf32>
      %2 = tensor.insert_slice %0 into %1[3, 0] [1, 8] [1, 1] : tensor<1x8xf32> into tensor<64x8xf32>
      iree_tensor_ext.dispatch.tensor.store %2, %o, offsets = [0, 0], sizes = [64, 8], strides = [1, 1] : tensor<64x8xf32> -> !iree_tensor_ext.dispatch.tensor<writeonly:tensor<64x8xf32>>
      return
    }
  }
}
func.func @no_tie_to_what_is_read_twice(%x: tensor<64x8xf32>, %n: index) -> tensor<64x8xf32> {
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %r = scf.for %i = %zero to %n step %one iter_args(%c = %x) -> (tensor<64x8xf32>) {
    %u = tensor.expand_shape %c [[0], [1, 2]] output_shape [64, 8, 1] : tensor<64x8xf32> into tensor<64x8x1xf32>
    %0 = flow.dispatch @k_twice::@k_twice(%u, %c) : (tensor<64x8x1xf32>, tensor<64x8xf32>) -> tensor<64x8xf32>
    scf.yield %0 : tensor<64x8xf32>
  }
  return %r : tensor<64x8xf32>
}
