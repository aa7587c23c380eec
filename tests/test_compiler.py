"""What a caller sees of a whole compilation: errors, traps, sizes, saved programs."""

from __future__ import annotations

import ctypes
import gc

import ml_dtypes
import numpy as np
import pytest

import irees
from irees.collection import YOUNG_OBJECTS
from irees.errors import ArgumentError, OutOfMemoryError, ParseError, RuntimeTrap, VerifyError

F32 = np.float32

ADD = """
func.func @main(%a: tensor<?xf32>, %b: tensor<?xf32>) -> tensor<?xf32> {
  %c0 = arith.constant 0 : index
  %n = tensor.dim %a, %c0 : tensor<?xf32>
  %e = tensor.empty(%n) : tensor<?xf32>
  %r = linalg.add ins(%a, %b : tensor<?xf32>, tensor<?xf32>) outs(%e : tensor<?xf32>) -> tensor<?xf32>
  return %r : tensor<?xf32>
}
"""


def compiled(text: str, **options):
    return irees.compile(text, **options)


# --- results ------------------------------------------------------------------------------

PASSED_ON = """
func.func @main(%a: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>, tensor<2x3xf32>) {
  %c = arith.constant dense<1.0> : tensor<2x3xf32>
  return %a, %a, %c : tensor<4xf32>, tensor<4xf32>, tensor<2x3xf32>
}
"""


@pytest.mark.parametrize("target", ["reference", "cpu"])
def test_results_may_be_written_to(target):
    program = compiled(PASSED_ON, target=target)
    given = np.arange(4, dtype=F32)
    for _ in range(2):
        results = program(given)
        np.testing.assert_array_equal(results[2], np.ones((2, 3), F32))
        for n, result in enumerate(results):
            result[:] = 7 + n
        np.testing.assert_array_equal(results[0], np.full(4, 7, F32))
        np.testing.assert_array_equal(given, np.arange(4, dtype=F32))


# --- dims that must agree -----------------------------------------------------------------


def test_dims_of_arguments_are_checked_before_anything_runs():
    program = compiled(ADD)
    with pytest.raises(
        ArgumentError, match="argument 1 dim 0 is 4, but must equal dim 0 of argument 0 = 3"
    ):
        program(np.zeros(3, F32), np.zeros(4, F32))
    assert program(np.ones(3, F32), np.ones(3, F32)).tolist() == [2, 2, 2]


def test_dims_that_are_computed_are_checked_by_the_program():
    program = compiled(
        """
func.func @main(%a: tensor<?xf32>, %n: index) -> tensor<?xf32> {
  %e = tensor.empty(%n) : tensor<?xf32>
  %r = linalg.negf ins(%a : tensor<?xf32>) outs(%e : tensor<?xf32>) -> tensor<?xf32>
  return %r : tensor<?xf32>
}
"""
    )
    assert program(np.ones(3, F32), 3).tolist() == [-1, -1, -1]
    for wrong in (2, 4, -3, 1 << 62):
        with pytest.raises(RuntimeTrap, match="dim 0 of operand 1 must equal dim 0 of operand 0"):
            program(np.ones(3, F32), wrong)


def test_static_dims_that_do_not_agree_are_an_error_of_the_program():
    text = """
func.func @main(%a: tensor<4xf32>, %b: tensor<5xf32>, %e: tensor<4xf32>) -> tensor<4xf32> {
  %r = linalg.add ins(%a, %b : tensor<4xf32>, tensor<5xf32>) outs(%e : tensor<4xf32>) -> tensor<4xf32>
  return %r : tensor<4xf32>
}
"""
    with pytest.raises(VerifyError):
        compiled(text)


def test_a_window_must_lie_inside():
    program = compiled(
        """
func.func @main(%x: tensor<?xf32>, %w: tensor<3xf32>, %o: tensor<?xf32>) -> tensor<?xf32> {
  %r = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i * 2 + j)>, affine_map<(i, j) -> (j)>, affine_map<(i, j) -> (i)>], iterator_types = ["parallel", "reduction"]} ins(%x, %w : tensor<?xf32>, tensor<3xf32>) outs(%o : tensor<?xf32>) {
  ^bb0(%a: f32, %b: f32, %c: f32):
    %m = arith.mulf %a, %b : f32
    %s = arith.addf %c, %m : f32
    linalg.yield %s : f32
  } -> tensor<?xf32>
  return %r : tensor<?xf32>
}
"""
    )
    weight = np.ones(3, F32)
    assert program(np.ones(7, F32), weight, np.zeros(3, F32)).tolist() == [3, 3, 3]
    with pytest.raises(RuntimeTrap, match="the window of linalg\\.generic must lie inside dim 0"):
        program(np.ones(6, F32), weight, np.zeros(3, F32))


SLICE = """
func.func @main(%x: tensor<8xf32>, %i: index, %n: index, %s: index) -> tensor<?xf32> {
  %r = tensor.extract_slice %x[%i] [%n] [%s] : tensor<8xf32> to tensor<?xf32>
  return %r : tensor<?xf32>
}
"""


def test_nothing_must_lie_inside_where_there_are_no_windows():
    program = compiled(
        """
func.func @main(%x: tensor<?xf32>, %w: tensor<?xf32>, %o: tensor<?xf32>) -> tensor<?xf32> {
  %r = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i * 2 + j)>, affine_map<(i, j) -> (j)>, affine_map<(i, j) -> (i)>], iterator_types = ["parallel", "reduction"]} ins(%x, %w : tensor<?xf32>, tensor<?xf32>) outs(%o : tensor<?xf32>) {
  ^bb0(%a: f32, %b: f32, %c: f32):
    %m = arith.mulf %a, %b : f32
    %s = arith.addf %c, %m : f32
    linalg.yield %s : f32
  } -> tensor<?xf32>
  return %r : tensor<?xf32>
}
"""
    )
    for x, w, o in ((0, 3, 0), (1, 3, 0), (0, 0, 5), (5, 0, 4), (9, 0, 4)):
        assert program(np.ones(x, F32), np.ones(w, F32), np.ones(o, F32)).tolist() == [1.0] * o
    with pytest.raises(RuntimeTrap, match="window"):
        program(np.ones(2, F32), np.ones(3, F32), np.ones(1, F32))


def test_a_slice_must_lie_inside():
    program = compiled(SLICE)
    x = np.arange(8, dtype=F32)
    for i, n, s in ((1, 3, 2), (0, 8, 1), (7, 1, 100), (3, 0, 1), (8, 0, 1)):
        assert np.array_equal(program(x, i, n, s), x[i : i + n * s : s][:n])
    top = (1 << 63) - 1
    for wrong in (
        *((6, 3, 1), (-1, 3, 1), (0, -1, 1), (9, 0, 1), (6, 3, -2), (0, 2, 0)),
        *((top, 3, 1), (top - 1, 2, 1), (0, (1 << 32) + 1, 1 << 32), (0, 3, 1 << 62), (0, top, 1)),
    ):
        with pytest.raises(RuntimeTrap):
            program(x, *wrong)


@pytest.mark.parametrize("target", ["reference", "cpu"])
def test_an_empty_result_may_have_a_large_dim(target):
    """Bytes of the dims before a 0 may exceed any memory; shapes that numpy lacks are refused."""
    text = """
func.func @main(%x: tensor<?xf32>, %a: index, %b: index) -> tensor<?x?xf32> {
  %s = tensor.from_elements %a, %b : tensor<2xindex>
  %r = tensor.reshape %x(%s) : (tensor<?xf32>, tensor<2xindex>) -> tensor<?x?xf32>
  return %r : tensor<?x?xf32>
}
"""
    program, x = irees.compile(text, target=target), np.zeros(0, F32)
    for shape in ((1 << 60, 0), (0, 1 << 60), (1 << 59, 0), (0, 0)):
        assert program(x, *shape).shape == shape
    for shape in ((1 << 62, 0), (0, 1 << 62), (-1, 0), (0, -1)):
        with pytest.raises((OutOfMemoryError, RuntimeTrap)):
            program(x, *shape)


def test_what_is_inserted_has_the_size_of_its_slice():
    program = compiled(
        """
func.func @main(%x: tensor<?xf32>, %y: tensor<8xf32>, %n: index) -> tensor<8xf32> {
  %r = tensor.insert_slice %x into %y[2] [%n] [1] : tensor<?xf32> into tensor<8xf32>
  return %r : tensor<8xf32>
}
"""
    )
    y = np.zeros(8, F32)
    assert program(np.ones(3, F32), y, 3).tolist() == [0, 0, 1, 1, 1, 0, 0, 0]
    for size, n in ((3, 2), (3, 6), (300, 3), (7, 7)):
        with pytest.raises(RuntimeTrap):
            program(np.ones(size, F32), y, n)


ROWS = """
func.func @topk(%x: tensor<?x?xf32>, %n: tensor<?x?xi64>, %v: tensor<?x?xf32>, %i: tensor<?x?xi64>) -> (tensor<?x?xf32>, tensor<?x?xi64>) {
  %s:2 = iree_linalg_ext.topk_v2 dimension(1) is_sorted ins(%x, %n : tensor<?x?xf32>, tensor<?x?xi64>) outs(%v, %i : tensor<?x?xf32>, tensor<?x?xi64>) {
  ^bb0(%a: f32, %b: f32):
    %more = arith.cmpf ogt, %a, %b : f32
    iree_linalg_ext.yield %more : i1
  } -> tensor<?x?xf32>, tensor<?x?xi64>
  return %s#0, %s#1 : tensor<?x?xf32>, tensor<?x?xi64>
}
func.func @sort(%x: tensor<?xf32>, %y: tensor<?xi32>) -> (tensor<?xf32>, tensor<?xi32>) {
  %s:2 = iree_linalg_ext.sort dimension(0) outs(%x, %y : tensor<?xf32>, tensor<?xi32>) {
  ^bb0(%a: f32, %b: f32, %c: i32, %d: i32):
    %less = arith.cmpf olt, %a, %b : f32
    iree_linalg_ext.yield %less : i1
  } -> tensor<?xf32>, tensor<?xi32>
  return %s#0, %s#1 : tensor<?xf32>, tensor<?xi32>
}
func.func @scatter(%o: tensor<?x?xf32>, %u: tensor<?x?xf32>, %i: tensor<?x1xi64>) -> tensor<?x?xf32> {
  %s = iree_linalg_ext.scatter dimension_map = [0] unique_indices(false) ins(%u, %i : tensor<?x?xf32>, tensor<?x1xi64>) outs(%o : tensor<?x?xf32>) {
  ^bb0(%new: f32, %old: f32):
    iree_linalg_ext.yield %new : f32
  } -> tensor<?x?xf32>
  return %s : tensor<?x?xf32>
}
"""


def test_the_first_none_of_a_row():
    topk = compiled(ROWS).functions["topk"]
    x, n = np.ones((3, 5), F32), np.ones((3, 5), np.int64)
    for k in (0, 1, 5):
        best, places = topk(x, n, np.zeros((3, k), F32), np.zeros((3, k), np.int64))
        assert (best.shape, places.shape) == ((3, k), (3, k))
        assert np.all(best == 1)
        assert np.all(places == 1)


def test_what_a_row_is_read_from_and_written_to_is_as_long():
    functions = compiled(ROWS).functions
    wrong = [
        ("topk", [(3, 5), (3, 5), (3, 6), (3, 6)]),
        ("topk", [(3, 5), (3, 4), (3, 2), (3, 2)]),
        ("topk", [(3, 5), (3, 5), (2, 2), (2, 2)]),
        ("topk", [(3, 5), (3, 5), (3, 2), (3, 1)]),
        ("sort", [(5,), (4,)]),
        ("scatter", [(5, 4), (3, 5), (3, 1)]),
        ("scatter", [(5, 4), (3, 4), (2, 1)]),
    ]
    for name, shapes in wrong:
        kinds = [spec.dtype for spec in functions[name].arguments]
        with pytest.raises((ArgumentError, RuntimeTrap), match="must"):
            functions[name](*(np.zeros(s, k) for s, k in zip(shapes, kinds, strict=True)))
    assert functions["scatter"](
        np.zeros((2, 4), F32), np.ones((1, 3), F32), np.array([[1]])
    ).tolist() == [[0] * 4, [1, 1, 1, 0]]


# --- places that data chooses -------------------------------------------------------------

GATHER = """
func.func @main(%t: tensor<?xf32>, %i: tensor<?xi64>) -> tensor<?xf32> {
  %c0 = arith.constant 0 : index
  %n = tensor.dim %i, %c0 : tensor<?xi64>
  %e = tensor.empty(%n) : tensor<?xf32>
  %r = linalg.generic {indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>], iterator_types = ["parallel"]} ins(%i : tensor<?xi64>) outs(%e : tensor<?xf32>) {
  ^bb0(%a: i64, %o: f32):
    %k = arith.index_cast %a : i64 to index
    %v = tensor.extract %t[%k] : tensor<?xf32>
    linalg.yield %v : f32
  } -> tensor<?xf32>
  return %r : tensor<?xf32>
}
func.func @one(%t: tensor<?xf32>, %i: index) -> f32 {
  %v = tensor.extract %t[%i] : tensor<?xf32>
  return %v : f32
}
"""
FAR = [0, 3, -1, 4, 10**10, -(10**10), (1 << 63) - 1, -(1 << 63)]


def test_a_gather_out_of_range_reads_the_nearest_element():
    functions = compiled(GATHER).functions
    table = np.arange(4, dtype=F32)
    want = np.clip(np.array(FAR), 0, 3).astype(F32)
    assert np.array_equal(functions["main"](table, np.array(FAR)), want)
    assert [functions["one"](table, i) for i in FAR] == want.tolist()


def test_a_table_without_elements_reads_as_zero():
    functions = compiled(GATHER).functions
    nothing = np.zeros(0, F32)
    assert functions["main"](nothing, np.array(FAR)).tolist() == [0] * len(FAR)
    assert [functions["one"](nothing, i) for i in FAR] == [0] * len(FAR)


@pytest.mark.parametrize("kind", ["?x1xf32", "40x1xf32", "?x?xf32"])
def test_a_loop_that_runs_past_what_it_reads_stays_at_the_end(kind):
    text = """
func.func @main(%t: tensor<KIND>, %o: tensor<?xf32>) -> tensor<?xf32> {
  %r = linalg.generic {indexing_maps = [affine_map<(i) -> (i)>], iterator_types = ["parallel"]} outs(%o : tensor<?xf32>) {
  ^bb0(%a: f32):
    %i = linalg.index 0 : index
    %v = tensor.extract %t[%i, %i] : tensor<KIND>
    linalg.yield %v : f32
  } -> tensor<?xf32>
  return %r : tensor<?xf32>
}
"""
    program = compiled(text.replace("KIND", kind))
    table = np.arange(40, dtype=F32)
    for size in (0, 33, 41, 100):
        want = table[np.minimum(np.arange(size), 39)]
        assert np.array_equal(program(table[:, None], np.zeros(size, F32)), want)
    if kind.startswith("?"):
        assert program(np.zeros((0, 1), F32), np.ones(9, F32)).tolist() == [0] * 9


def test_an_insertion_out_of_range_does_nothing():
    program = compiled(
        """
func.func @main(%t: tensor<?x3xf32>, %v: f32, %i: index, %j: index) -> tensor<?x3xf32> {
  %r = tensor.insert %v into %t[%i, %j] : tensor<?x3xf32>
  return %r : tensor<?x3xf32>
}
"""
    )
    for i in (*FAR, 1):
        for j in (0, 2, 3, -1):
            want = np.zeros((2, 3), F32)
            if 0 <= i < 2 and 0 <= j < 3:
                want[i, j] = 7
            assert np.array_equal(program(np.zeros((2, 3), F32), 7.0, i, j), want)


def test_a_failed_assertion_is_a_trap_with_its_words():
    program = compiled(
        """
func.func @main(%n: index) -> index {
  %c3 = arith.constant 3 : index
  %ok = arith.cmpi slt, %n, %c3 : index
  cf.assert %ok, "n must be below three"
  return %n : index
}
"""
    )
    assert program(2) == 2
    with pytest.raises(RuntimeTrap, match="n must be below three"):
        program(3)
    assert program(1) == 1


# --- sizes --------------------------------------------------------------------------------

SIZED = """
func.func @result(%n: index) -> tensor<?xf32> {
  %one = arith.constant 1.0 : f32
  %e = tensor.empty(%n) : tensor<?xf32>
  %r = linalg.fill ins(%one : f32) outs(%e : tensor<?xf32>) -> tensor<?xf32>
  return %r : tensor<?xf32>
}
func.func @temporary(%n: index) -> tensor<f32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty(%n) : tensor<?xf32>
  %i = linalg.generic {indexing_maps = [affine_map<(i) -> (i)>], iterator_types = ["parallel"]} outs(%e : tensor<?xf32>) {
  ^bb0(%o: f32):
    %k = linalg.index 0 : index
    %w = arith.index_cast %k : index to i32
    %v = arith.sitofp %w : i32 to f32
    linalg.yield %v : f32
  } -> tensor<?xf32>
  %s = iree_linalg_ext.sort dimension(0) outs(%i : tensor<?xf32>) {
  ^bb0(%a: f32, %b: f32):
    %more = arith.cmpf ogt, %a, %b : f32
    iree_linalg_ext.yield %more : i1
  } -> tensor<?xf32>
  %t = tensor.empty() : tensor<f32>
  %f = linalg.fill ins(%zero : f32) outs(%t : tensor<f32>) -> tensor<f32>
  %r = linalg.generic {indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> ()>], iterator_types = ["reduction"]} ins(%s : tensor<?xf32>) outs(%f : tensor<f32>) {
  ^bb0(%a: f32, %b: f32):
    %c = arith.addf %a, %b : f32
    linalg.yield %c : f32
  } -> tensor<f32>
  return %r : tensor<f32>
}
"""


@pytest.mark.parametrize("name", ["result", "temporary"])
def test_sizes_that_no_memory_has(name):
    function = compiled(SIZED).functions[name]
    for wrong in (
        -1,
        -(1 << 62),
        1 << 40,
        (1 << 58) + 1,
        1 << 61,
        (1 << 61) + 5,
        1 << 62,
        (1 << 63) - 1,
    ):
        with pytest.raises((RuntimeTrap, OutOfMemoryError)):
            function(wrong)
    assert float(np.sum(function(5))) == (5 if name == "result" else 10)
    assert float(np.sum(function(0))) == 0


def test_dims_of_zero():
    program = compiled(
        """
func.func @main(%a: tensor<?x?xf32>) -> (tensor<?x?xf32>, tensor<?xf32>, tensor<?xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %one = arith.constant 1.0 : f32
  %m = tensor.dim %a, %c0 : tensor<?x?xf32>
  %n = tensor.dim %a, %c1 : tensor<?x?xf32>
  %e = tensor.empty(%m, %n) : tensor<?x?xf32>
  %x = linalg.exp ins(%a : tensor<?x?xf32>) outs(%e : tensor<?x?xf32>) -> tensor<?x?xf32>
  %p = tensor.empty(%m) : tensor<?xf32>
  %q = tensor.empty(%n) : tensor<?xf32>
  %f = linalg.fill ins(%one : f32) outs(%p : tensor<?xf32>) -> tensor<?xf32>
  %g = linalg.fill ins(%one : f32) outs(%q : tensor<?xf32>) -> tensor<?xf32>
  %r = linalg.reduce ins(%x : tensor<?x?xf32>) outs(%f : tensor<?xf32>) dimensions = [1]
    (%in: f32, %init: f32) {
      %s = arith.addf %in, %init : f32
      linalg.yield %s : f32
    }
  %c = linalg.reduce ins(%x : tensor<?x?xf32>) outs(%g : tensor<?xf32>) dimensions = [0]
    (%in: f32, %init: f32) {
      %s = arith.addf %in, %init : f32
      linalg.yield %s : f32
    }
  return %x, %r, %c : tensor<?x?xf32>, tensor<?xf32>, tensor<?xf32>
}
"""
    )
    for m, n in ((0, 0), (0, 5), (5, 0), (1, 1), (3, 70)):
        whole, rows, columns = program(np.zeros((m, n), F32))
        assert whole.shape == (m, n)
        assert np.all(whole == 1)
        assert rows.tolist() == [n + 1] * m
        assert columns.tolist() == [m + 1] * n


def test_one_program_for_every_size():
    program = compiled(ADD)
    random = np.random.default_rng(0)
    for size in (0, 1, 2, 7, 8, 15, 16, 17, 31, 33, 64, 65, 1000, 16384, 16385, 100003):
        a, b = random.standard_normal((2, size)).astype(F32)
        assert np.array_equal(program(a, b), a + b)


def test_a_huge_splat_is_one_number():
    program = compiled(
        """
func.func @main(%i: index) -> f32 {
  %c = arith.constant dense<2.5> : tensor<1000000x100000xf32>
  %s = tensor.extract_slice %c[%i, 0] [1, 3] [1, 1] : tensor<1000000x100000xf32> to tensor<1x3xf32>
  %c0 = arith.constant 0 : index
  %v = tensor.extract %s[%c0, %c0] : tensor<1x3xf32>
  return %v : f32
}
"""
    )
    assert program(999_999) == 2.5


def test_a_huge_splat_that_is_needed_is_written_when_it_is():
    program = compiled(
        """
func.func @main(%c: i1) -> tensor<?xf32> {
  %r = scf.if %c -> (tensor<?xf32>) {
    %all = arith.constant dense<2.5> : tensor<100000000000000xf32>
    %some = tensor.cast %all : tensor<100000000000000xf32> to tensor<?xf32>
    scf.yield %some : tensor<?xf32>
  } else {
    %few = arith.constant dense<1.5> : tensor<3xf32>
    %some = tensor.cast %few : tensor<3xf32> to tensor<?xf32>
    scf.yield %some : tensor<?xf32>
  }
  return %r : tensor<?xf32>
}
"""
    )
    assert program(False).tolist() == [1.5] * 3
    with pytest.raises(OutOfMemoryError):
        program(True)


def test_a_huge_global_is_an_error_of_the_program():
    with pytest.raises(
        irees.errors.LimitExceededError, match=r"<text>:2:3: error: util.global: .* bytes.*;"
    ):
        compiled(
            """
  util.global private mutable @g = dense<2.5> : tensor<100000000000000xf32>
  func.func @main() -> tensor<100000000000000xf32> {
    %v = util.global.load @g : tensor<100000000000000xf32>
    return %v : tensor<100000000000000xf32>
  }
"""
        )


# --- control flow -------------------------------------------------------------------------


def test_a_thousand_nested_regions():
    depth = 1000
    text = "func.func @main(%x: i32, %c: i1) -> i32 {\n"
    text += "".join(f"  %r{i} = scf.if %c -> (i32) {{\n" for i in range(depth))
    text += "  %one = arith.constant 1 : i32\n  %y = arith.addi %x, %one : i32\n"
    inner = "%y"
    for i in reversed(range(depth)):
        text += f"  scf.yield {inner} : i32\n  }} else {{\n  scf.yield %x : i32\n  }}\n"
        inner = f"%r{i}"
    text += "  return %r0 : i32\n}\n"
    try:
        program = compiled(text)
    except irees.errors.LimitExceededError:
        return
    assert program(41, True) == 42
    assert program(41, False) == 41


LOOPS = """
func.func @repeat(%x: tensor<4xf32>, %n: index) -> tensor<4xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %r = scf.for %i = %c0 to %n step %c1 iter_args(%a = %x) -> (tensor<4xf32>) {
    %e = tensor.empty() : tensor<4xf32>
    %b = linalg.add ins(%a, %x : tensor<4xf32>, tensor<4xf32>) outs(%e : tensor<4xf32>) -> tensor<4xf32>
    scf.yield %b : tensor<4xf32>
  }
  return %r : tensor<4xf32>
}
func.func @fibonacci(%x: tensor<4xf32>, %y: tensor<4xf32>, %n: index) -> (index, tensor<4xf32>, tensor<4xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %r:3 = scf.while (%i = %c0, %a = %x, %b = %y) : (index, tensor<4xf32>, tensor<4xf32>) -> (index, tensor<4xf32>, tensor<4xf32>) {
    %go = arith.cmpi slt, %i, %n : index
    scf.condition(%go) %i, %b, %a : index, tensor<4xf32>, tensor<4xf32>
  } do {
  ^bb0(%i: index, %b: tensor<4xf32>, %a: tensor<4xf32>):
    %e = tensor.empty() : tensor<4xf32>
    %s = linalg.add ins(%a, %b : tensor<4xf32>, tensor<4xf32>) outs(%e : tensor<4xf32>) -> tensor<4xf32>
    %j = arith.addi %i, %c1 : index
    scf.yield %j, %b, %s : index, tensor<4xf32>, tensor<4xf32>
  }
  return %r#0, %r#1, %r#2 : index, tensor<4xf32>, tensor<4xf32>
}
func.func @choose(%x: tensor<4xf32>, %c: i1) -> (tensor<4xf32>, i32) {
  %r:2 = scf.if %c -> (tensor<4xf32>, i32) {
    %e = tensor.empty() : tensor<4xf32>
    %s = linalg.negf ins(%x : tensor<4xf32>) outs(%e : tensor<4xf32>) -> tensor<4xf32>
    %1 = arith.constant 1 : i32
    scf.yield %s, %1 : tensor<4xf32>, i32
  } else {
    %2 = arith.constant 2 : i32
    scf.yield %x, %2 : tensor<4xf32>, i32
  }
  return %r#0, %r#1 : tensor<4xf32>, i32
}
"""


def test_loops_and_branches_carry_tensors():
    functions = compiled(LOOPS).functions
    x = np.ones(4, F32)
    for n in (0, 1, 5):
        assert functions["repeat"](x, n).tolist() == [n + 1] * 4
    for n in range(6):
        a, b = 1, 1
        for _ in range(n):
            a, b = b, a + b
        i, second, first = functions["fibonacci"](x, x, n)
        assert (i, first.tolist(), second.tolist()) == (n, [a] * 4, [b] * 4)
    negative, one = functions["choose"](x, True)
    same, two = functions["choose"](x, False)
    assert (negative.tolist(), one, same.tolist(), two) == ([-1] * 4, 1, [1] * 4, 2)
    assert not np.shares_memory(same, x)


RESIZED = """
func.func @choose(%x: tensor<?x2xf32>, %y: tensor<?x2xf32>, %c: i1) -> (tensor<?x2xf32>, index) {
  %c0 = arith.constant 0 : index
  %c7 = arith.constant 7 : index
  %r:2 = scf.if %c -> (tensor<?x2xf32>, index) {
    %n = tensor.dim %x, %c0 : tensor<?x2xf32>
    %e = tensor.empty(%n) : tensor<?x2xf32>
    %s = linalg.negf ins(%x : tensor<?x2xf32>) outs(%e : tensor<?x2xf32>) -> tensor<?x2xf32>
    scf.yield %s, %c7 : tensor<?x2xf32>, index
  } else {
    scf.yield %y, %c0 : tensor<?x2xf32>, index
  }
  %m = tensor.dim %r#0, %c0 : tensor<?x2xf32>
  %k = arith.addi %m, %r#1 : index
  %e2 = tensor.empty(%m) : tensor<?x2xf32>
  %z = linalg.exp ins(%r#0 : tensor<?x2xf32>) outs(%e2 : tensor<?x2xf32>) -> tensor<?x2xf32>
  return %z, %k : tensor<?x2xf32>, index
}
func.func @grow(%x: tensor<?xf32>, %n: index) -> tensor<?xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %r = scf.for %i = %c0 to %n step %c1 iter_args(%a = %x) -> (tensor<?xf32>) {
    %b = tensor.concat dim(0) %a, %a : (tensor<?xf32>, tensor<?xf32>) -> tensor<?xf32>
    scf.yield %b : tensor<?xf32>
  }
  return %r : tensor<?xf32>
}
func.func @swap(%x: tensor<?xf32>, %y: tensor<?xf32>, %n: index) -> (tensor<?xf32>, tensor<?xf32>, tensor<?xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %r:3 = scf.for %i = %c0 to %n step %c1 iter_args(%a = %x, %b = %y, %c = %y) -> (tensor<?xf32>, tensor<?xf32>, tensor<?xf32>) {
    %d = tensor.concat dim(0) %a, %b : (tensor<?xf32>, tensor<?xf32>) -> tensor<?xf32>
    scf.yield %b, %d, %d : tensor<?xf32>, tensor<?xf32>, tensor<?xf32>
  }
  return %r#0, %r#1, %r#2 : tensor<?xf32>, tensor<?xf32>, tensor<?xf32>
}
func.func @until(%x: tensor<?xf32>, %n: index) -> (tensor<?xf32>, tensor<?xf32>, index) {
  %c0 = arith.constant 0 : index
  %r:3 = scf.while (%a = %x) : (tensor<?xf32>) -> (tensor<?xf32>, tensor<?xf32>, index) {
    %m = tensor.dim %a, %c0 : tensor<?xf32>
    %go = arith.cmpi slt, %m, %n : index
    %s = tensor.concat dim(0) %a, %x : (tensor<?xf32>, tensor<?xf32>) -> tensor<?xf32>
    scf.condition(%go) %a, %s, %m : tensor<?xf32>, tensor<?xf32>, index
  } do {
  ^bb0(%p: tensor<?xf32>, %q: tensor<?xf32>, %k: index):
    scf.yield %q : tensor<?xf32>
  }
  return %r#0, %r#1, %r#2 : tensor<?xf32>, tensor<?xf32>, index
}
func.func @nested(%x: tensor<?xf32>, %n: index, %c: i1) -> tensor<?xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %r = scf.for %i = %c0 to %n step %c1 iter_args(%a = %x) -> (tensor<?xf32>) {
    %b = scf.if %c -> (tensor<?xf32>) {
      %d = scf.for %j = %c0 to %i step %c1 iter_args(%e = %a) -> (tensor<?xf32>) {
        %f = tensor.concat dim(0) %e, %x : (tensor<?xf32>, tensor<?xf32>) -> tensor<?xf32>
        scf.yield %f : tensor<?xf32>
      }
      scf.yield %d : tensor<?xf32>
    } else {
      scf.yield %a : tensor<?xf32>
    }
    scf.yield %b : tensor<?xf32>
  }
  return %r : tensor<?xf32>
}
"""


def test_loops_and_branches_carry_tensors_that_change_their_size():
    fast, slow = compiled(RESIZED).functions, compiled(RESIZED, target="reference").functions

    def check(name, *arguments):
        found = fast[name](*arguments)
        want = slow[name](*arguments)
        if not isinstance(want, tuple):
            found, want = (found,), (want,)
        for a, b in zip(found, want, strict=True):
            assert np.shape(a) == np.shape(b)
            assert np.allclose(a, b, rtol=1e-6)

    x, y = np.arange(6, dtype=F32).reshape(3, 2), np.arange(10, dtype=F32).reshape(5, 2) - 9
    for choice in (True, False):
        check("choose", x, y, choice)
        for n in (0, 1, 4):
            check("nested", x[0], n, choice)
    for n in (0, 1, 5):
        check("grow", x.ravel(), n)
        check("swap", x[0], y.ravel(), n)
    for n in (0, 3, 20):
        check("until", x[0], n)


# --- programs that are kept ---------------------------------------------------------------


def weights(key: str, values: list[float]) -> str:
    data = "04000000" + np.array(values, F32).tobytes().hex()
    return f"""
func.func @main(%x: tensor<3xf32>) -> tensor<3xf32> {{
  %w = arith.constant dense_resource<{key}> : tensor<3xf32>
  %e = tensor.empty() : tensor<3xf32>
  %r = linalg.mul ins(%x, %w : tensor<3xf32>, tensor<3xf32>) outs(%e : tensor<3xf32>) -> tensor<3xf32>
  return %r : tensor<3xf32>
}}
{{-#
  dialect_resources: {{
    builtin: {{
      {key}: "0x{data}"
    }}
  }}
#-}}
"""


def test_two_modules_with_one_resource_key_keep_their_own_bytes():
    first, second = compiled(weights("w", [1, 2, 3])), compiled(weights("w", [4, 5, 6]))
    x = np.ones(3, F32)
    assert first(x).tolist() == [1, 2, 3]
    assert second(x).tolist() == [4, 5, 6]
    gc.collect()
    assert compiled(weights("w", [1, 2, 3]))(x).tolist() == [1, 2, 3]


def test_a_result_may_be_marked_as_unsigned():
    text = """
func.func @main(%x: tensor<3xi64>, %n: i16) -> (tensor<3xi8> {irees.unsigned}, tensor<3xi8>, i16 {irees.unsigned}) {
  %e = tensor.empty() : tensor<3xi8>
  %r = linalg.generic {indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>], iterator_types = ["parallel"]} ins(%x : tensor<3xi64>) outs(%e : tensor<3xi8>) {
  ^bb0(%a: i64, %o: i8):
    %b = arith.trunci %a : i64 to i8
    linalg.yield %b : i8
  } -> tensor<3xi8>
  return %r, %r, %n : tensor<3xi8>, tensor<3xi8>, i16
}
"""
    x = np.array([200, 3, -1])
    late = compiled(str(compiled(text, to="stream")), start="stream")
    for program in (compiled(text), late, compiled(text, target="reference")):
        unsigned, plain, number = program(x, np.int16(-2))
        assert (unsigned.tolist(), plain.tolist(), int(number)) == (
            [200, 3, 255],
            [-56, 3, -1],
            65534,
        )


def test_elements_may_be_named_that_are_stored_as_others():
    text = """
func.func @main(%x: tensor<3xi8> {irees.element = "f8E5M2"}) -> (tensor<3xi8> {irees.element = "f8E5M2"}) {
  %c = arith.constant -128 : i8
  %e = tensor.empty() : tensor<3xi8>
  %r = linalg.generic {indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>], iterator_types = ["parallel"]} ins(%x : tensor<3xi8>) outs(%e : tensor<3xi8>) {
  ^bb0(%a: i8, %o: i8):
    %b = arith.xori %a, %c : i8
    linalg.yield %b : i8
  } -> tensor<3xi8>
  return %r : tensor<3xi8>
}
"""
    x = np.array([1.5, -2, 0], ml_dtypes.float8_e5m2)
    late = compiled(str(compiled(text, to="stream")), start="stream")
    for program in (compiled(text), late, compiled(text, target="reference")):
        found = program(x)
        assert found.dtype == x.dtype
        assert found.tolist() == [-1.5, 2, -0.0]
        with pytest.raises(ArgumentError, match="float8_e5m2"):
            program(x.view(np.int8))


def test_a_saved_program_is_the_program(tmp_path):
    path = tmp_path / "program.irees"
    for text, arguments in (
        (weights("w", [1, 2, 3]), [np.ones(3, F32)]),
        (ADD, [np.ones(7, F32), np.ones(7, F32)]),
    ):
        program = compiled(text)
        program.save(path)
        again = irees.load(path)
        assert np.array_equal(again(*arguments), program(*arguments))
        with pytest.raises(ArgumentError):
            again()


def test_a_program_outlives_its_source_and_results_their_program():
    program = compiled(ADD)
    result = program(np.ones(1000, F32), np.ones(1000, F32))
    del program
    gc.collect()
    ctypes.pythonapi.PyGC_Collect()
    assert np.all(result == 2)


def test_a_module_that_is_compiled_stays_as_it_is():
    from irees.frontends.mlir import import_mlir

    module = import_mlir(ADD)
    before = str(module)
    a = np.ones(5, F32)
    assert np.array_equal(compiled(module)(a, a), a + a)
    assert str(module) == before
    assert np.array_equal(compiled(module)(a, a), a + a)


@pytest.mark.parametrize("phase", ["input", "global-opt", "dispatch-creation", "stream", "codegen"])
def test_every_phase_can_be_saved_and_taken_up_again(phase):
    from irees.frontends.mlir import import_mlir

    text = str(compiled(LOOPS, to=phase))
    program = compiled(import_mlir(text), start=phase)
    assert program.functions["repeat"](np.ones(4, F32), 2).tolist() == [3] * 4


def test_a_reshape_to_a_shape_that_is_data():
    text = """
func.func @main(%x: tensor<?xf32>, %s: tensor<2xi32>) -> tensor<?x?xf32> {
  %r = tensor.reshape %x(%s) : (tensor<?xf32>, tensor<2xi32>) -> tensor<?x?xf32>
  return %r : tensor<?x?xf32>
}
"""
    x = np.arange(6, dtype=np.float32)
    result = irees.compile(text)(x, np.array([2, 3], np.int32))
    assert np.array_equal(result, x.reshape(2, 3))


def test_a_destination_that_is_read_again_is_not_written():
    """iree-org/iree#24665, #21014: a sort in place gave its later readers the sorted elements."""
    text = """
    func.func @main(%a: tensor<4x16xf32>, %i: tensor<4x16xi64>)
        -> (tensor<4x16xi64>, tensor<4x16xf32>, tensor<4x16xf32>) {
      %s:2 = iree_linalg_ext.sort dimension(1)
          outs(%a, %i : tensor<4x16xf32>, tensor<4x16xi64>) {
      ^bb0(%l: f32, %r: f32, %x: i64, %y: i64):
        %c = arith.cmpf ole, %l, %r : f32
        iree_linalg_ext.yield %c : i1
      } -> tensor<4x16xf32>, tensor<4x16xi64>
      %e = tensor.empty() : tensor<4x16xf32>
      %n = linalg.negf ins(%a : tensor<4x16xf32>) outs(%e : tensor<4x16xf32>) -> tensor<4x16xf32>
      return %s#1, %n, %a : tensor<4x16xi64>, tensor<4x16xf32>, tensor<4x16xf32>
    }
    """
    a = np.random.default_rng(0).normal(size=(4, 16)).astype(np.float32)
    places = np.tile(np.arange(16), (4, 1))
    # What the caller may not write, the program may not either.
    a.setflags(write=False)
    places.setflags(write=False)
    order, negated, same = irees.compile(text)(a, places)
    np.testing.assert_array_equal(order, np.argsort(a, axis=1, kind="stable"))
    np.testing.assert_array_equal(negated, -a)
    np.testing.assert_array_equal(same, a)


@pytest.mark.parametrize("target", ["cpu", "cuda-emulated"])
@pytest.mark.parametrize(
    "element", ["i8", "i64", "f16", "f32", "f64", "complex<f32>", "complex<f64>"]
)
def test_a_kernel_takes_scalars_of_any_type(element, target):
    """Those of 128 bits lost their upper half on the way from the host to the kernel."""
    dtypes = {
        "i8": np.int8, "i64": np.int64, "f16": np.float16, "f32": np.float32, "f64": np.float64,
        "complex<f32>": np.complex64, "complex<f64>": np.complex128,
    }  # fmt: skip
    add = {"i": "arith.addi", "f": "arith.addf", "c": "complex.add"}[element[0]]
    kind = f"tensor<5x{element}>"
    text = f"""#id = affine_map<(i) -> (i)>
func.func @main(%c: {element}, %x: {kind}) -> {kind} {{
  %e = tensor.empty() : {kind}
  %r = linalg.generic {{indexing_maps = [#id, #id], iterator_types = ["parallel"]}}
      ins(%x : {kind}) outs(%e : {kind}) {{
  ^bb0(%a: {element}, %o: {element}):
    %s = {add} %a, %c : {element}
    linalg.yield %s : {element}
  }} -> {kind}
  return %r : {kind}
}}"""
    dtype = dtypes[element]
    scalar = dtype(3 + 2j) if element[0] == "c" else dtype(3)
    x = (np.arange(5) * (1 + 1j if element[0] == "c" else 1)).astype(dtype)
    assert np.array_equal(irees.compile(text, target=target)(scalar, x), x + scalar)


def test_cycles_are_collected_rarely_while_a_program_is_compiled_and_as_before_after_it():
    before, seen = gc.get_threshold(), []
    irees.compile(ADD, to="input", after=lambda *_: seen.append(gc.get_threshold()[0]))
    assert seen == [YOUNG_OBJECTS]
    assert gc.get_threshold() == before
    with pytest.raises(ParseError):
        irees.compile("what is no program", to="input")
    assert gc.get_threshold() == before


def test_a_caller_that_collects_no_cycles_is_left_alone():
    before, seen = gc.get_threshold(), []
    gc.set_threshold(0)
    try:
        irees.compile(ADD, to="input", after=lambda *_: seen.append(gc.get_threshold()[0]))
        assert [*seen, gc.get_threshold()[0]] == [0, 0]
    finally:
        gc.set_threshold(*before)


STATE = """
util.global private mutable @total : tensor<2xf32>
util.initializer {
  %start = arith.constant dense<[3.0, 5.0]> : tensor<2xf32>
  util.global.store %start, @total : tensor<2xf32>
  util.return
}
func.func @main(%x: tensor<2xf32>) -> tensor<2xf32> {
  %old = util.global.load @total : tensor<2xf32>
  %e = tensor.empty() : tensor<2xf32>
  %new = linalg.add ins(%old, %x : tensor<2xf32>, tensor<2xf32>) outs(%e : tensor<2xf32>) -> tensor<2xf32>
  util.global.store %new, @total : tensor<2xf32>
  return %new : tensor<2xf32>
}
"""


@pytest.mark.parametrize(
    "options",
    [{}, {"target": "cuda-emulated"}, {"devices": {"a": "cpu:0", "b": "cpu:1"}}],
    ids=["cpu", "cuda-emulated", "devices"],
)
def test_initializers_have_run_before_the_first_call(options):
    program = irees.compile(STATE, **options)
    one = np.ones(2, np.float32)
    np.testing.assert_array_equal(program(one), [4, 6])
    np.testing.assert_array_equal(program(one), [5, 7])


def test_an_initializer_that_cannot_be_evaluated_is_refused():
    text = STATE.replace(
        "util.global.store %start,",
        'cf.assert %false, "never"\n  util.global.store %start,',
    ).replace("util.initializer {", "util.initializer {\n  %false = arith.constant false")
    with pytest.raises(
        irees.errors.UnsupportedError, match=r"initializer .* cannot be evaluated.*never"
    ):
        irees.compile(text)


def test_a_dim_that_no_memory_has_is_refused():
    """An empty array may have any other dim; sums of it could wrap around in a kernel."""
    program = irees.compile("""
    func.func @main(%x: tensor<?x?xf32>) -> tensor<?x?xf32> {
      %r = math.tanh %x : tensor<?x?xf32>
      return %r : tensor<?x?xf32>
    }""")
    assert program(np.empty((0, 1 << 40), np.float32)).shape == (0, 1 << 40)
    with pytest.raises(ArgumentError, match=f"dim 1 is {1 << 50}, but must be below {1 << 47}"):
        program(np.empty((0, 1 << 50), np.float32))
