"""Programs on buffers are compiled; what they write is in the arguments, or returned on a GPU."""

from __future__ import annotations

import numpy as np
import pytest

import irees
from irees.errors import ArgumentError

RANDOM = np.random.default_rng(0)


def floats(*shape: int) -> np.ndarray:
    return RANDOM.integers(-4, 5, shape).astype(np.float32)


MATMUL = """
func.func @main(%a: memref<?x?xf32>, %b: memref<?x?xf32>, %c: memref<?x?xf32>) {
  linalg.matmul ins(%a, %b : memref<?x?xf32>, memref<?x?xf32>) outs(%c : memref<?x?xf32>)
  return
}"""
SORT = """
func.func @main(%a: memref<9xi32>) {
  iree_linalg_ext.sort dimension(0) outs(%a : memref<9xi32>) {
  ^bb0(%x: i32, %y: i32):
    %c = arith.cmpi slt, %x, %y : i32
    iree_linalg_ext.yield %c : i1
  }
  return
}"""
ROWS = """
func.func @main(%a: memref<5x8xf32>, %s: memref<5xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c5 = arith.constant 5 : index
  %zero = arith.constant 0.0 : f32
  scf.for %i = %c0 to %c5 step %c1 {
    %row = memref.subview %a[%i, 0] [1, 8] [1, 1]
        : memref<5x8xf32> to memref<8xf32, strided<[1], offset: ?>>
    %sum = memref.alloc() : memref<f32>
    linalg.fill ins(%zero : f32) outs(%sum : memref<f32>)
    linalg.generic {indexing_maps = [affine_map<(d) -> (d)>, affine_map<(d) -> ()>],
        iterator_types = ["reduction"]}
        ins(%row : memref<8xf32, strided<[1], offset: ?>>) outs(%sum : memref<f32>) {
    ^bb0(%x: f32, %y: f32):
      %z = arith.addf %x, %y : f32
      linalg.yield %z : f32
    }
    %v = memref.load %sum[] : memref<f32>
    memref.store %v, %s[%i] : memref<5xf32>
    linalg.fill ins(%v : f32) outs(%row : memref<8xf32, strided<[1], offset: ?>>)
    memref.dealloc %sum : memref<f32>
  }
  return
}"""
RETURNED = """
func.func @main(%a: memref<4xf32>) -> (f32, memref<2x2xf32>) {
  %c1 = arith.constant 1 : index
  %x = memref.load %a[%c1] : memref<4xf32>
  %v = memref.expand_shape %a [[0, 1]] output_shape [2, 2] : memref<4xf32> into memref<2x2xf32>
  return %x, %v : f32, memref<2x2xf32>
}"""


PARALLEL = """
func.func @main(%a: memref<6xf32>) {
  %c1 = arith.constant 1 : index
  scf.forall (%j) in (5) {
    %i = arith.addi %j, %c1 : index
    %x = memref.load %a[%i] : memref<6xf32>
    %y = arith.addf %x, %x : f32
    memref.store %y, %a[%i] : memref<6xf32>
  }
  return
}"""


def double(a: np.ndarray) -> None:
    a[1:] *= 2


def sums(a: np.ndarray, s: np.ndarray) -> None:
    s[:] = a.sum(1)
    a[:] = s[:, None]


CASES = {
    "matmul": (
        MATMUL,
        (floats(7, 5), floats(5, 9), floats(7, 9)),
        lambda a, b, c: c.__iadd__(a @ b),
    ),
    "sort": (SORT, (RANDOM.permutation(9).astype(np.int32),), lambda a: a.sort()),
    "parallel": (PARALLEL, (floats(6) + 5,), double),
    "rows": (ROWS, (floats(5, 8), floats(5)), sums),
}


@pytest.mark.parametrize("target", ["cpu", "cuda-emulated", "reference"])
@pytest.mark.parametrize("name", CASES)
def test_arguments_are_written(name, target):
    text, given, right = CASES[name]
    arguments, expected = ([np.array(x) for x in given] for _ in range(2))
    results = irees.compile(text, target=target)(*arguments)
    right(*expected)
    if target == "cpu":
        found = arguments
    else:
        # Its arguments are copies: the new values are results, in the order of the arguments.
        changed = [i for i, (a, b) in enumerate(zip(given, expected)) if not np.array_equal(a, b)]
        new = results if isinstance(results, tuple) else (results,)
        found = list(arguments)
        for i, value in zip(changed, new, strict=True):
            found[i] = value
    for got, wanted in zip(found, expected, strict=True):
        np.testing.assert_array_equal(got, wanted)


LOCAL = """
func.func @main(%x: tensor<3xf32>, %p: i1) -> f32 {
  %c0 = arith.constant 0 : index
  %v = tensor.extract %x[%c0] : tensor<3xf32>
  %t = memref.alloc() : memref<2xf32>
  memref.store %v, %t[%c0] : memref<2xf32>
  scf.if %p {
    %w = arith.addf %v, %v : f32
    memref.store %w, %t[%c0] : memref<2xf32>
  }
  %y = memref.load %t[%c0] : memref<2xf32>
  return %y : f32
}"""


@pytest.mark.parametrize("target", ["cpu", "cuda-emulated", "reference"])
def test_buffers_inside_of_a_function_on_tensors(target):
    program = irees.compile(LOCAL, target=target)
    x = np.array([3, 4, 5], np.float32)
    assert [float(program(x, p)) for p in (False, True)] == [3.0, 6.0]


def test_what_is_returned_is_a_copy():
    a = np.arange(4, dtype=np.float32)
    x, v = irees.compile(RETURNED)(a)
    assert x == 1
    np.testing.assert_array_equal(v, a.reshape(2, 2))
    assert not np.shares_memory(a, v)


def test_sizes_and_memory_are_checked():
    program = irees.compile(MATMUL)
    with pytest.raises(ArgumentError, match="argument 2 dim 0 is 6, but must equal dim 0 of arg"):
        program(floats(7, 5), floats(5, 9), floats(6, 9))
    shared = floats(5, 5)
    with pytest.raises(ArgumentError, match="argument 2 is written to by the program, but shares"):
        program(shared, floats(5, 5), shared)
    frozen = floats(7, 9)
    frozen.flags.writeable = False
    with pytest.raises(ArgumentError, match="read-only"):
        program(floats(7, 5), floats(5, 9), frozen)


GROWN = """
func.func @main(%x: tensor<?xf32>, %n: index)
    -> (tensor<?xf32> {irees.updates = 0 : index}) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %r = scf.for %i = %c0 to %n step %c1 iter_args(%a = %x) -> (tensor<?xf32>) {
    %c = tensor.concat dim(0) %a, %a : (tensor<?xf32>, tensor<?xf32>) -> tensor<?xf32>
    scf.yield %c : tensor<?xf32>
  }
  return %r : tensor<?xf32>
}"""


def test_an_argument_cannot_grow():
    """What a loop carries has another size at the end; no memory of the caller's is left."""
    program = irees.compile(GROWN)
    x = np.ones(3, np.float32)
    assert program(x, 0) is None
    np.testing.assert_array_equal(x, 1)
    with pytest.raises(irees.errors.RuntimeTrap, match="an argument is updated by another size"):
        program(x, 2)
