"""
Products of four warps on the emulated device, which decodes the descriptors that a kernel made and
reads shared memory by them; none of it was seen on hardware.
"""

from __future__ import annotations

import sys
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import irees
from irees.backends.cuda import print_matrices, print_warpgroups
from irees.dialects.nvgpu import WarpgroupMmaOp
from irees.testing.profiles import load
from irees.transforms.codegen.gpu import _warpgroup_contraction, gpu_select_strategy
from irees.transforms.codegen.gpu._blocking import WarpgroupBlocking

sys.path.insert(0, str(Path(__file__).parent))
import kernels

FACTOR = load()
TARGET = "cuda-emulated:sm_90"
DTYPES = {"f16": np.dtype(np.float16), "bf16": np.dtype(ml_dtypes.bfloat16)}
ORDERS = [f"{left}; {right}" for left in ("m, k", "k, m") for right in ("n, k", "k, n")]
random = np.random.default_rng(0)


def whole(*shape: int) -> np.ndarray:
    """Small whole numbers, whose sums are exact in any order."""
    return random.integers(-3, 4, shape).astype(np.float32)


@pytest.fixture
def forced(monkeypatch):
    """Every product of halves takes a block, however few workgroups there are."""

    def force(*block: int) -> WarpgroupBlocking:
        blocking = WarpgroupBlocking(*block)
        monkeypatch.setattr(gpu_select_strategy, "WARPGROUP_CANDIDATES", (blocking,))
        monkeypatch.setattr(gpu_select_strategy, "matrix_candidates", lambda *_, **__: ())
        return blocking

    return force


def compiled(text: str, **options):
    # From a module, so that the cache of programs does not give that of another block.
    return irees.compile(irees.import_mlir(text), opt_level=1, **{"target": TARGET} | options)


def has_warpgroups(program) -> bool:
    return "irees_warpgroup_mma<" in "".join(program.sources.values())


def check(m: int, n: int, k: int, element: str, order: str, *, warpgroups: bool = True) -> None:
    """A product is exact, with whole numbers."""
    program = compiled(kernels.widening_matmul(m, n, k, element, order))
    assert has_warpgroups(program) is warpgroups
    left, right = order.split("; ")
    a, b = whole(m, k), whole(k, n)
    found = program(
        (a if left == "m, k" else a.T).astype(DTYPES[element], order="C"),
        (b if right == "k, n" else b.T).astype(DTYPES[element], order="C"),
    )
    np.testing.assert_array_equal(found, a @ b)


BLOCKS = [
    *([128, 256, 64, 4], [128, 128, 64, 3], [64, 128, 64, 4], [64, 64, 64, 4]),
    *([64, 64, 32, 4], [128, 64, 16, 3], [128, 128, 32, 5]),
]


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("block", BLOCKS, ids=str)
def test_every_block_is_right(block, order, forced):
    """Both operands in either order, with steps past the end of the last part."""
    blocking = forced(*block)
    element = "bf16" if block[0] == block[1] else "f16"
    check(2 * blocking.rows, blocking.columns, 136, element, order)


@pytest.mark.parametrize(("m", "n", "k"), [(70, 130, 72), (2, 64, 40), (200, 3, 2), (64, 64, 8)])
def test_rows_and_columns_past_the_end(m, n, k, forced):
    forced(64, 64, 64, 4)
    check(m, n, k, "f16", "m, k; n, k")


ASIDE = [
    ((64, 64, 65), "m, k; n, k", "operand of the rows is not copied by 4 bytes or more"),
    ((64, 70, 64), "m, k; k, n", "operand of the columns is not copied by 4 bytes or more"),
    (("?", "?", "?"), "m, k; n, k", "operand of the rows is not copied by 4 bytes or more"),
]


@pytest.mark.parametrize(("sizes", "order", "words"), ASIDE, ids=str)
def test_what_cannot_be_copied_goes_by_single_warps(sizes, order, words, forced):
    forced(64, 64, 64, 4)
    program = compiled(kernels.widening_matmul(*sizes, "f16", order))
    assert not has_warpgroups(program)
    assert "= irees_mma_f16(" in "".join(program.sources.values())
    assert words in program.explain()
    m, n, k = (size if isinstance(size, int) else 67 for size in sizes)
    a, b = whole(m, k), whole(k, n)
    right = b if order.endswith("k, n") else b.T.copy()
    np.testing.assert_array_equal(program(a.astype("f2"), right.astype("f2")), a @ b)


def test_too_few_registers_are_a_reason(forced):
    """With the last rows and columns cut, 256 columns need more addresses than there is room for."""
    forced(128, 256, 64, 4)
    check(130, 258, 64, "f16", "m, k; n, k", warpgroups=False)
    program = compiled(kernels.widening_matmul(130, 258, 64, "f16", "m, k; n, k"))
    assert "registers where the last tile is cut, and 255 at most" in program.explain()


def test_only_where_the_gpu_and_the_mode_allow_it(forced):
    text = kernels.widening_matmul(64, 64, 64, "f16", "m, k; n, k")
    for options in ({"fp": "strict"}, {"target": "cuda-emulated:sm_80"}):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(
                gpu_select_strategy, "WARPGROUP_CANDIDATES", (WarpgroupBlocking(64, 64, 64, 4),)
            )
            assert not has_warpgroups(compiled(text, **options))
    forced(64, 64, 64, 4)
    assert has_warpgroups(compiled(text))
    without = compiled(text, disable_pass=("irees-gpu-lower-contractions",))
    assert not has_warpgroups(without)
    a, b = whole(64, 64), whole(64, 64)
    np.testing.assert_array_equal(without(a.astype("f2"), b.T.astype("f2", order="C")), a @ b)


@pytest.mark.parametrize("init", [0.0, 2.0, -0.0, None])
@pytest.mark.parametrize("element", ["f16", "bf16"])
def test_what_stands_around_a_product(element, init, forced):
    """What sums begin with is added, and the op after them is done in registers, in batches."""
    forced(64, 64, 64, 4)
    text = kernels.activated_matmul(70, 72, 80, element, init)
    program = compiled(text)
    assert has_warpgroups(program)
    # What an argument begins with is copied to a tile first, of which some is left over.
    assert ("all_scratch" in "".join(program.sources.values())) is (init is None)
    a, b, bias, start = whole(2, 70, 80), whole(2, 72, 80), whole(72), whole(2, 70, 72)
    arguments = [a.astype(DTYPES[element]), b.astype(DTYPES[element]), bias]
    arguments += [start] if init is None else []
    begin = start if init is None else init
    expected = np.maximum(begin + a @ b.swapaxes(1, 2) + bias, 0) / 2
    found = program(*arguments)
    np.testing.assert_array_equal(found, expected.astype(DTYPES[element]))
    reference = irees.compile(text, target="reference")(*arguments)
    np.testing.assert_array_equal(found, reference)


def test_the_error_is_that_of_a_sum_in_another_order(forced):
    forced(64, 64, 64, 4)
    m, n, k = 96, 80, 512
    text = kernels.widening_matmul(m, n, k, "f16", "m, k; n, k")
    a = random.standard_normal((m, k)).astype("f2")
    b = random.standard_normal((n, k)).astype("f2")
    expected = irees.compile(text, target="reference")(a, b)
    terms = np.abs(a).astype("f8") @ np.abs(b).T.astype("f8")
    bound = 4 * np.sqrt(k) * 2.0**-24 * terms
    assert (np.abs(compiled(text)(a, b).astype("f8") - expected) <= bound).all()


def product_of_parts() -> tuple[np.ndarray, np.ndarray]:
    """A product of eight parts, and what it should be."""
    program = compiled(kernels.widening_matmul(64, 64, 512, "f16", "m, k; n, k"))
    assert has_warpgroups(program)
    a, b = whole(64, 512), whole(512, 64)
    return program(a.astype("f2"), b.T.astype("f2", order="C")), a @ b


def nothing(p, op) -> None:
    """Instead of what prints an op."""


MISUSES = ["nvvm.wgmma.wait.group.sync.aligned", "nvvm.fence.proxy", "nvgpu.device_async_wait"]


@pytest.mark.parametrize("name", MISUSES)
def test_misuse_is_told(name, forced, monkeypatch):
    """What a device leaves undefined is NaN: sums, and copies that are not fenced or waited for."""
    forced(64, 64, 64, 4)
    np.testing.assert_array_equal(*product_of_parts())
    for table in (print_warpgroups.WARPGROUPS, print_matrices.MATRICES):
        if name in table:
            monkeypatch.setitem(table, name, nothing)
    assert np.isnan(product_of_parts()[0]).all()


def test_a_part_that_is_overwritten_too_early(forced, monkeypatch):
    """The product before the last may be at work when its operands change."""
    forced(64, 64, 64, 4)
    made = WarpgroupMmaOp.__init__

    def later(self, *operands, wait, turned):
        made(self, *operands, wait=wait + 1, turned=turned)

    monkeypatch.setattr(WarpgroupMmaOp, "__init__", later)
    assert np.isnan(product_of_parts()[0]).any()


FAULTS = {
    "swizzle": (print_warpgroups, "MODES", {128: 2}),
    "stride": (print_warpgroups, "ROWS", 16),
    "layout": (_warpgroup_contraction, "PIECE", 32),
}


@pytest.mark.parametrize("order", ["m, k; n, k", "k, m; k, n"])
@pytest.mark.parametrize("fault", FAULTS)
def test_a_wrong_layout_gives_a_wrong_answer(fault, order, forced, monkeypatch):
    forced(64, 128, 64, 4)
    monkeypatch.setattr(*FAULTS[fault])
    with pytest.raises(AssertionError, match="Arrays are not equal"):
        check(64, 128, 64, "f16", order)


@settings(max_examples=12 * FACTOR)
@given(data=st.data())
def test_random_products(data):
    """Any sizes, orders and blocks: exact, by warpgroups or by whatever steps in for them."""
    m, n = data.draw(st.integers(1, 150)), data.draw(st.integers(1, 150))
    k = data.draw(st.integers(1, 12)) * data.draw(st.sampled_from([1, 2, 8, 16]))
    order = data.draw(st.sampled_from(ORDERS))
    block = data.draw(st.sampled_from(BLOCKS))
    element = data.draw(st.sampled_from(sorted(DTYPES)))
    with pytest.MonkeyPatch.context() as patch:
        only = (WarpgroupBlocking(*block),)
        patch.setattr(gpu_select_strategy, "WARPGROUP_CANDIDATES", only)
        program = compiled(kernels.widening_matmul(m, n, k, element, order))
        left, right = order.split("; ")
        a, b = whole(m, k), whole(k, n)
        found = program(
            (a if left == "m, k" else a.T).astype(DTYPES[element], order="C"),
            (b if right == "k, n" else b.T).astype(DTYPES[element], order="C"),
        )
        np.testing.assert_array_equal(found, a @ b)
