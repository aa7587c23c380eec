"""sort and topk by digits on the emulated device: bit for bit what the interpreter says."""

from __future__ import annotations

import sys
from functools import cache
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import irees
from irees.backends.cuda import print_forall
from irees.dialects import get_context
from irees.remarks import collect
from irees.testing.profiles import load
from irees.transforms.codegen.gpu.gpu_lower_linalg_ext import GpuLowerLinalgExtPass
from irees.transforms.codegen.gpu.utils.block_costs import Row
from irees.transforms.input.assign_target import AssignTargetPass

sys.path.insert(0, str(Path(__file__).parent))
import kernels

FACTOR = load()
TARGET = "cuda-emulated"
DTYPES = {
    "f16": np.dtype(np.float16),
    "bf16": np.dtype(ml_dtypes.bfloat16),
    "f32": np.dtype(np.float32),
    "f64": np.dtype(np.float64),
    "i8": np.dtype(np.int8),
    "i16": np.dtype(np.int16),
    "i32": np.dtype(np.int32),
    "i64": np.dtype(np.int64),
}
SPECIAL = (np.nan, -np.nan, 0.0, -0.0, np.inf, -np.inf, 1.0, -1.0, 5e-8, -5e-8)
PREDICATES = {"f": ("ole", "oge", "ugt"), "i": ("sle", "sgt", "ult", "uge")}
DIGITS = "= irees_match_bits<"


@cache
def program(text: str, target: str = TARGET):
    """Compiled once."""
    return irees.compile(text, target=target, opt_level=1)


def bits(x: np.ndarray) -> np.ndarray:
    return x.view(f"u{x.dtype.itemsize}")


def agree(text: str, *inputs: np.ndarray) -> None:
    """Also which zero it is, and which NaN."""
    expected = program(text, "reference")(*(x.copy() for x in inputs))
    for a, e in zip(program(text)(*(x.copy() for x in inputs)), expected, strict=True):
        np.testing.assert_array_equal(bits(a), bits(e))


def numbers(shape: tuple[int, int], element: str, seed: int = 0) -> np.ndarray:
    """Few values that occur often and many that do not, of both signs."""
    random = np.random.default_rng(seed)
    if element[0] == "i":
        wide = random.integers(-(1 << 62), 1 << 62, shape).astype(DTYPES[element])
        few = random.integers(-3, 3, shape).astype(DTYPES[element])
    else:
        wide = random.standard_normal(shape).astype(DTYPES[element])
        few = random.choice(SPECIAL, shape).astype(DTYPES[element])
    return np.where(random.random(shape) < 0.5, wide, few)


def places(x: np.ndarray) -> np.ndarray:
    return np.broadcast_to(np.arange(x.shape[1]), x.shape).astype(np.int64).copy()


@pytest.mark.parametrize("element", DTYPES)
def test_elements_in_every_order(element):
    for predicate in PREDICATES["i" if element[0] == "i" else "f"]:
        x = numbers((2, 700), element)
        text = kernels.sort("?", "?", element, predicate)
        assert DIGITS in "".join(program(text).sources.values())
        agree(text, x, places(x))
        like = np.zeros((2, 123), x.dtype)
        agree(kernels.topk("?", "?", "?", element, predicate), x, like)


@pytest.mark.parametrize("columns", [1, 31, 33, 255, 257, 1000, 2048])
def test_static_rows(columns):
    x = numbers((2, columns), "f32", columns)
    agree(kernels.sort(2, columns), x, places(x))
    for k in {1, max(1, columns // 3), columns}:
        agree(kernels.topk(2, columns, k), x)


def test_rows_longer_than_shared_memory():
    """A prime number has no runs to be cut in, and there is a row for each workgroup."""
    x = numbers((1, 40_009), "f32")
    agree(kernels.sort(1, 40_009), x, places(x))
    text = kernels.topk(108, 5000, 50, "f16")
    assert len(program(text).manifest["launches"]) == 1
    agree(text, numbers((108, 5000), "f16"))


# Two digits have no passes between the first and the last one.
WIDE = [
    (1, "f16", 20_001, "oge", 6),
    (1, "i8", 20_001, "sle", 6),
    (1, "f32", 32_768, "ole", 9),
    (3, "f32", 9_000, "uge", 9),
    (1, "f64", 10_240, "ole", 9),
    (2, "i64", 9_001, "ult", 9),
]


@pytest.mark.parametrize(("rows", "element", "columns", "predicate", "kernels_"), WIDE)
def test_rows_of_many_workgroups(rows, element, columns, predicate, kernels_):
    """Each digit has three kernels; tiles may be full or not."""
    text = kernels.sort(rows, columns, element, predicate)
    x = numbers((rows, columns), element)
    assert len(program(text).manifest["launches"]) == kernels_
    agree(text, x, places(x))


PAYLOADS = """
func.func @main(%x: tensor<{n}xf32>, %p: tensor<{n}xi16>, %q: tensor<{n}xf64>)
    -> (tensor<{n}xi16>, tensor<{n}xf32>, tensor<{n}xf64>) {{
  %r:3 = iree_linalg_ext.sort dimension(0)
      outs(%p, %x, %q : tensor<{n}xi16>, tensor<{n}xf32>, tensor<{n}xf64>) {{
  ^bb0(%c: i16, %d: i16, %a: f32, %b: f32, %e: f64, %f: f64):
    %l = arith.cmpf ole, %a, %b : f32
    iree_linalg_ext.yield %l : i1
  }} -> tensor<{n}xi16>, tensor<{n}xf32>, tensor<{n}xf64>
  return %r#0, %r#1, %r#2 : tensor<{n}xi16>, tensor<{n}xf32>, tensor<{n}xf64>
}}"""


@pytest.mark.parametrize("columns", [900, 9_001])
@pytest.mark.parametrize("in_place", [False, True])
def test_operands_that_follow_the_keys(columns, in_place):
    """By their origins, whether the sort has inputs or works in place."""
    x = numbers((1, columns), "f32")[0]
    p, q = np.arange(columns).astype(np.int16), np.arange(columns) / 7
    text = PAYLOADS.format(n=columns)
    left_out = ("irees-sort-out-of-place",) if in_place else ()
    compiled = irees.compile(text, target=TARGET, opt_level=1, disable_pass=left_out)
    for found, e in zip(compiled(x, p, q), program(text, "reference")(x, p, q), strict=True):
        np.testing.assert_array_equal(bits(found), bits(e))


POSITIONS = """
func.func @main(%x: tensor<{rows}x{columns}xf32>)
    -> (tensor<{rows}x{columns}xf32>, tensor<{rows}x{columns}xi32>) {{
  %e = tensor.empty() : tensor<{rows}x{columns}xi32>
  %i = linalg.generic {{indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>],
      iterator_types = ["parallel", "parallel"]}} outs(%e : tensor<{rows}x{columns}xi32>) {{
  ^bb0(%o: i32):
    %d = linalg.index 1 : index
    %c = arith.index_cast %d : index to i32
    linalg.yield %c : i32
  }} -> tensor<{rows}x{columns}xi32>
  %s:2 = iree_linalg_ext.sort dimension(1)
      outs(%x, %i : tensor<{rows}x{columns}xf32>, tensor<{rows}x{columns}xi32>) {{
  ^bb0(%a: f32, %b: f32, %p: i32, %q: i32):
    %l = arith.cmpf ole, %a, %b : f32
    iree_linalg_ext.yield %l : i1
  }} -> tensor<{rows}x{columns}xf32>, tensor<{rows}x{columns}xi32>
  return %s#0, %s#1 : tensor<{rows}x{columns}xf32>, tensor<{rows}x{columns}xi32>
}}"""


@pytest.mark.parametrize(
    ("rows", "columns", "launches"), [(3, 40, 1), (3, 4096, 1), (1, 8192, 1), (2, 8500, 9)]
)
def test_positions_are_not_read(rows, columns, launches):
    """The sort knows where each element was: no kernel fills a tensor of positions."""
    text = POSITIONS.format(rows=rows, columns=columns)
    assert len(program(text).manifest["launches"]) == launches
    agree(text, numbers((rows, columns), "f32"))


@pytest.mark.parametrize("like", ["all equal", "in order", "turned round", "one digit"])
def test_rows_that_are_alike(like):
    """A digit that all share moves nothing; where all are equal the first k are taken."""
    x = np.arange(1500, dtype=np.int32).reshape(1, -1)
    x = {"all equal": x * 0 + 7, "in order": x, "turned round": x[:, ::-1].copy()}.get(like, x % 9)
    agree(kernels.sort(1, 1500, "i32", "sle"), x, places(x))
    # The last digit is that of the elements past the end, too.
    agree(kernels.sort(1, 1500, "i32", "uge"), x, places(x))
    long = np.tile(x, (1, 6))
    agree(kernels.sort(1, 9000, "i32", "sle"), long, places(long))
    agree(kernels.topk(1, 1500, 400, "i32", "sge"), x)


def test_rows_of_nothing():
    for rows, columns in ((0, 5), (3, 0), (0, 0)):
        x = numbers((rows, columns), "f32")
        agree(kernels.sort("?", "?"), x, places(x))
        agree(kernels.topk("?", "?", "?"), x, x[:, :0].copy())
    agree(kernels.topk("?", "?", "?"), numbers((2, 9), "f32"), np.zeros((2, 0), np.float32))


values = st.one_of(st.sampled_from(SPECIAL), st.floats(width=32), st.integers(-4, 4).map(float))


# Nothing is compiled for an example: sizes are not known to the kernel.
@settings(max_examples=40 * FACTOR)
@given(
    rows=st.integers(1, 3).flatmap(
        lambda n: st.integers(0, 80).flatmap(
            lambda m: st.lists(st.lists(values, min_size=m, max_size=m), min_size=n, max_size=n)
        )
    ),
    repeats=st.sampled_from([1, 1, 2, 9]),
    part=st.floats(0, 1),
)
def test_any_row(rows, repeats, part):
    x = np.tile(np.array(rows, np.float32).reshape(len(rows), -1), (1, repeats))
    agree(kernels.sort("?", "?"), x, places(x))
    k = int(part * x.shape[1])
    agree(kernels.topk("?", "?", "?"), x, np.zeros((len(x), k), np.float32))


def test_any_order_of_threads_gives_the_same():
    x = numbers((2, 700), "f32")
    for text, inputs in (
        (kernels.sort(2, 700), [x, places(x)]),
        (kernels.topk(2, 700, 200), [x]),
    ):
        order = program(text).library.cdll.irees_emulation_order
        try:
            for seed in (1, 2, 3):
                order(seed)
                agree(text, *inputs)
        finally:
            order(0)


SCATTERS = [
    ("f32", "addf %b, %a"), ("f32", ""), ("bf16", "subf %b, %a"), ("i64", "muli %b, %a"),
    ("i8", "subi %a, %b"),
]  # fmt: skip


@pytest.mark.parametrize(("element", "body"), SCATTERS)
@pytest.mark.parametrize("dynamic", [False, True])
def test_scatters_of_elements_that_meet(element, body, dynamic):
    """In their order, so that sums are rounded as they are by a loop; of those outside, nothing."""
    random = np.random.default_rng(1)
    for count, shape in ((700, (40,)), (900, (12, 9)), (300, (300,)), (0, (5,)), (1, (1,))):
        where = random.integers(-1, max(shape) + 1, (count, len(shape))).astype(np.int32)
        where[: count // 4] = where[:1]
        target, updates = numbers((1, int(np.prod(shape))), element), numbers((1, count), element)
        sizes = ("?", *("?" for _ in shape)) if dynamic else (count, *shape)
        text = kernels.scatter_elements(*sizes, element=element, body=body)
        expected = program(text, "reference")(
            target.reshape(shape).copy(), updates[0].copy(), where.copy()
        )
        found = program(text)(target.reshape(shape).copy(), updates[0].copy(), where.copy())
        # An addition of two NaN may give either.
        np.testing.assert_array_equal(
            *(np.where(np.isnan(x.astype(np.float64)), 0, bits(x)) for x in (found, expected))
        )
        np.testing.assert_array_equal(*(np.isnan(x.astype(np.float64)) for x in (found, expected)))
        if count > 1:
            assert DIGITS in "".join(program(text).sources.values())


def test_a_scatter_of_few_elements_is_for_one_thread():
    text = kernels.scatter_elements(4, 1000, element="i32", body="subi %a, %b")
    assert DIGITS not in "".join(program(text).sources.values())
    where = np.array([[5], [-1], [1000], [5]], np.int32)
    target, updates = numbers((1, 1000), "i32")[0], numbers((1, 4), "i32")[0]
    np.testing.assert_array_equal(
        program(text)(target.copy(), updates, where),
        program(text, "reference")(target.copy(), updates, where),
    )


def test_a_network_says_why():
    with collect() as remarks:
        irees.compile(irees.import_mlir(kernels.sort(2, 40)), target=TARGET, opt_level=1)
    reasons = [r.text for r in remarks if r.pass_name == "irees-gpu-lower-linalg-ext"]
    assert reasons == ["using a sorting network: predicted cost 252 by radix, 252 by a network"]


def test_rows_that_are_scanned_first():
    """A scan has 128 threads, which meet at its barriers: the sort takes as many."""
    text = """
func.func @main(%x: tensor<4x1000xi32>) -> (tensor<4x1000xi32>, tensor<4xi32>) {
  %zero = arith.constant 0 : i32
  %e = tensor.empty() : tensor<4x1000xi32>
  %a = tensor.empty() : tensor<4xi32>
  %f = linalg.fill ins(%zero : i32) outs(%a : tensor<4xi32>) -> tensor<4xi32>
  %y:2 = iree_linalg_ext.scan dimension(1) inclusive(true)
      ins(%x : tensor<4x1000xi32>) outs(%e, %f : tensor<4x1000xi32>, tensor<4xi32>) {
  ^bb0(%p: i32, %q: i32):
    %r = arith.addi %p, %q : i32
    iree_linalg_ext.yield %r : i32
  } -> tensor<4x1000xi32>, tensor<4xi32>
  %s = iree_linalg_ext.sort dimension(1) outs(%y#0 : tensor<4x1000xi32>) {
  ^bb0(%p: i32, %q: i32):
    %r = arith.cmpi sle, %p, %q : i32
    iree_linalg_ext.yield %r : i1
  } -> tensor<4x1000xi32>
  return %s, %y#1 : tensor<4x1000xi32>, tensor<4xi32>
}"""
    agree(text, numbers((4, 1000), "i32"))


def test_counts_that_do_not_fit():
    """A workgroup whose shared memory is taken sorts by a network."""
    module = irees.import_mlir("""
func.func @f(%x: memref<1000xf32>) {
  scf.forall (%b) in (1) {
    iree_linalg_ext.sort dimension(0) outs(%x : memref<1000xf32>) {
    ^bb0(%a: f32, %c: f32):
      %p = arith.cmpf ole, %a, %c : f32
      iree_linalg_ext.yield %p : i1
    }
  } {mapping = [#gpu.block<linear_dim_0>]}
  return
}""")
    with collect() as remarks:
        AssignTargetPass(facts="gpu.shared_bytes=4096 gpu.shared_opt_in_bytes=4096").apply(
            get_context(), module
        )
        GpuLowerLinalgExtPass().apply(get_context(), module)
    assert [r.text for r in remarks] == [
        "using a sorting network: needs 9256 bytes of shared memory; 4096 are free"
    ]
    assert not [op for op in module.walk() if op.name == "nvvm.match.sync"]


def test_costs_grow_with_a_row():
    """A network's more than digits': what is short is for it, what is long is not."""
    for width in (8, 16, 32, 64):
        rows = [Row(1 << n, width, 1 << 30) for n in range(4, 17)]
        prefers = [row.network_sort() <= row.radix_sort() for row in rows]
        assert prefers == sorted(prefers, reverse=True)
        assert not prefers[-1]
        for size in (1 << 14, 1 << 17):
            row = Row(size, width, 48 << 10)
            assert row.radix_select(8) < row.network_select(8)


def test_a_lane_that_does_not_wait(monkeypatch):
    """A count that changes before all of a warp have read it: the emulation shows it."""
    x = numbers((1, 701), "f32")
    text = kernels.sort(1, 701)
    expected = program(text)(x.copy(), places(x))
    monkeypatch.setitem(
        print_forall.KERNEL, "nvvm.bar.warp.sync", lambda p, op: setattr(p, "waits", True)
    )
    # Compiled from a module, so that the cache of programs does not keep it.
    spoilt = irees.compile(irees.import_mlir(text), target=TARGET, opt_level=1)
    found = spoilt(x.copy(), places(x))
    assert any((bits(a) != bits(b)).any() for a, b in zip(found, expected, strict=True))
