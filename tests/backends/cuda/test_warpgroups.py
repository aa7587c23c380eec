"""
Products of four warps on the emulated device, which decodes the descriptors that a kernel made and
reads shared memory by them; none of it was seen on hardware.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from xdsl.ir import Operation

import irees
from irees.backends.common.printer import Printer
from irees.backends.cuda import print_boxes, print_matrices, print_warpgroups
from irees.dialects.nvgpu import WarpgroupMmaOp
from irees.errors import DeviceError
from irees.frontends.mlir import import_mlir
from irees.testing.profiles import load
from irees.transforms.codegen.gpu import gpu_select_strategy
from irees.transforms.codegen.gpu.gpu_lower_warpgroup_contractions import (
    bulk_contraction,
    warpgroup_contraction,
)
from irees.transforms.codegen.gpu.gpu_use_bulk_copies import GpuUseBulkCopiesPass
from irees.transforms.codegen.gpu.utils.blocking import WarpgroupBlocking

sys.path.insert(0, str(Path(__file__).parent))
import kernels

FACTOR = load()
TARGET = "cuda-emulated:sm_90"
DTYPES = {"f16": np.dtype(np.float16), "bf16": np.dtype(ml_dtypes.bfloat16)}
COPIES = {"boxes": {}, "threads": {"disable_pass": ("irees-gpu-use-bulk-copies",)}}
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


def has_boxes(program) -> bool:
    text = "".join(program.sources.values())
    assert not ("  irees_copy_box(" in text and "  irees_copy_async<" in text)
    return "  irees_copy_box(" in text


def check(
    m: int, n: int, k: int, element: str, order: str, *, warpgroups: bool = True, **options
) -> irees.Program:
    """A product, which is exact with whole numbers, and its program."""
    program = compiled(kernels.widening_matmul(m, n, k, element, order), **options)
    assert has_warpgroups(program) is warpgroups
    left, right = order.split("; ")
    a, b = whole(m, k), whole(k, n)
    found = program(
        (a if left == "m, k" else a.T).astype(DTYPES[element], order="C"),
        (b if right == "k, n" else b.T).astype(DTYPES[element], order="C"),
    )
    np.testing.assert_array_equal(found, a @ b)
    return program


BLOCKS = [
    *([128, 256, 64, 4], [128, 128, 64, 3], [64, 128, 64, 4], [64, 64, 64, 4]),
    *([64, 64, 32, 4], [128, 64, 16, 3], [128, 128, 32, 5]),
]


@pytest.mark.parametrize("copies", COPIES)
@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("block", BLOCKS, ids=str)
def test_every_block_is_right(block, order, copies, forced):
    """Both operands in either order, with steps past the end of the last part."""
    blocking = forced(*block)
    element = "bf16" if block[0] == block[1] else "f16"
    m, n = 2 * blocking.rows, blocking.columns
    program = check(m, n, 136, element, order, **COPIES[copies])
    assert has_boxes(program) is (copies == "boxes")


@pytest.mark.parametrize("copies", COPIES)
@pytest.mark.parametrize(("m", "n", "k"), [(70, 130, 72), (2, 64, 40), (200, 3, 2), (64, 64, 8)])
def test_rows_and_columns_past_the_end(m, n, k, copies, forced):
    forced(64, 64, 64, 4)
    check(m, n, k, "f16", "m, k; n, k", **COPIES[copies])


ASIDE = [
    ((64, 64, 65), "m, k; n, k", "operand of the rows cannot be copied 4 bytes at a time"),
    ((64, 70, 64), "m, k; k, n", "operand of the columns cannot be copied 4 bytes at a time"),
    (("?", "?", "?"), "m, k; n, k", "operand of the rows cannot be copied 4 bytes at a time"),
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
    threads = COPIES["threads"]
    check(130, 258, 64, "f16", "m, k; n, k", warpgroups=False, **threads)
    program = compiled(kernels.widening_matmul(130, 258, 64, "f16", "m, k; n, k"), **threads)
    assert "registers for a partial last tile; the limit is 255" in program.explain()
    check(130, 258, 64, "f16", "m, k; n, k")


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
    without = compiled(text, disable_pass=("irees-gpu-lower-warpgroup-contractions",))
    assert not has_warpgroups(without)
    a, b = whole(64, 64), whole(64, 64)
    np.testing.assert_array_equal(without(a.astype("f2"), b.T.astype("f2", order="C")), a @ b)


@pytest.mark.passes_fail
def test_bulk_copies_that_fail_are_as_good_as_none(monkeypatch):
    """Blocks that only boxes fit are not chosen then; sizes are such that tiles are cut."""
    text = kernels.widening_matmul(4000, 4008, 256, "f16", "m, k; n, k")

    def lowered(**options) -> str:
        return str(irees.compile(import_mlir(text), to="codegen", target=TARGET, **options))

    boxes, threads = lowered(), lowered(**COPIES["threads"])
    assert "block = [128 : i64, 256 " in boxes
    assert "block = [128 : i64, 256 " not in threads

    def fail(self, ctx, op):
        raise ValueError("a fault")

    monkeypatch.setattr(GpuUseBulkCopiesPass, "apply", fail)
    assert lowered() == threads


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


def product_of_parts(copies: str) -> tuple[np.ndarray, np.ndarray]:
    """A product of eight parts, and what it should be."""
    text = kernels.widening_matmul(64, 64, 512, "f16", "m, k; n, k")
    program = compiled(text, **COPIES[copies])
    assert has_warpgroups(program)
    assert has_boxes(program) is (copies == "boxes")
    a, b = whole(64, 512), whole(512, 64)
    return program(a.astype("f2"), b.T.astype("f2", order="C")), a @ b


def nothing(p, op) -> None:
    """Instead of what prints an op."""


MISUSES = ["nvvm.wgmma.wait.group.sync.aligned", "nvvm.fence.proxy", "nvgpu.device_async_wait"]


@pytest.mark.parametrize("name", MISUSES)
def test_misuse_is_told(name, forced, monkeypatch):
    """What a device leaves undefined is NaN: sums, and copies that are not fenced or waited for."""
    forced(64, 64, 64, 4)
    np.testing.assert_array_equal(*product_of_parts("threads"))
    for table in (print_warpgroups.WARPGROUPS, print_matrices.MATRICES):
        if name in table:
            monkeypatch.setitem(table, name, nothing)
    assert np.isnan(product_of_parts("threads")[0]).all()


@pytest.mark.parametrize("copies", COPIES)
def test_a_part_that_is_overwritten_too_early(copies, forced, monkeypatch):
    """The product before the last may be at work when its operands change."""
    forced(64, 64, 64, 4)
    made = WarpgroupMmaOp.__init__

    def later(self, *operands, wait, turned):
        made(self, *operands, wait=wait + 1, turned=turned)

    monkeypatch.setattr(WarpgroupMmaOp, "__init__", later)
    assert np.isnan(product_of_parts(copies)[0]).any()


FAULTS = {
    "swizzle": (print_warpgroups, "MODES", {128: 2}),
    "stride": (print_warpgroups, "ROWS", 16),
    "layout": (warpgroup_contraction, "PIECE", 32),
}


@pytest.mark.parametrize("order", ["m, k; n, k", "k, m; k, n"])
@pytest.mark.parametrize("fault", FAULTS)
def test_a_wrong_layout_gives_a_wrong_answer(fault, order, forced, monkeypatch):
    forced(64, 128, 64, 4)
    monkeypatch.setattr(*FAULTS[fault])
    with pytest.raises(AssertionError, match="Arrays are not equal"):
        check(64, 128, 64, "f16", order, **COPIES["threads"])


def is_last(op: Operation) -> bool:
    """Whether no other of its kind follows in its block."""
    return [o for o in op.parent.ops if o.name == op.name][-1] is op


def frees_first(self, part, at) -> None:
    """Instead of `BoxRing.release`: the slot of the running product is freed."""
    self._arrive(part, self.contraction.is_leader, at)
    self.begin(at.add(part, self.ahead), at)


def test_a_slot_that_is_freed_too_early(forced, monkeypatch):
    """Its copy overwrites what the running product reads."""
    forced(64, 64, 64, 4)
    monkeypatch.setattr(bulk_contraction.BoxRing, "release", frees_first)
    monkeypatch.setattr(bulk_contraction.BoxRing, "ahead", 4)
    monkeypatch.setattr(bulk_contraction.BoxRing, "end", lambda self, at: None)
    assert np.isnan(product_of_parts("boxes")[0]).any()


def test_slots_are_freed_by_every_warp(forced, monkeypatch):
    """A slot that one warp alone frees may be read by others: its barrier counts all of them."""
    forced(64, 64, 64, 4)
    (source,) = [
        text
        for name, text in compiled(
            kernels.widening_matmul(64, 64, 512, "f16", "m, k; n, k")
        ).sources.items()
        if name != "host"
    ]
    (free,) = set(re.findall(r"irees_mbarrier_arrive\((b\d+)", source))
    inits = re.findall(rf"irees_mbarrier_init\({free}(?: \+ \d)?, (\d+)\)", source)
    assert inits == ["4"] * 4


BOX_FAULTS = {
    "begins twice": ("nvgpu.mbarrier.init", lambda p, op, do: (do(p, op), do(p, op))),
    "never begins": ("nvgpu.mbarrier.init", nothing),
    "not fenced": ("nvvm.fence.mbarrier.init", nothing),
    "expects nothing": ("nvgpu.mbarrier.arrive.expect_tx", nothing),
    "never freed": ("nvgpu.mbarrier.arrive", nothing),
    "not waited for": ("nvgpu.mbarrier.try_wait.parity", nothing),
    "copied by half": ("nvgpu.tma.async.load", lambda p, op, do: is_last(op) or do(p, op)),
    "copied twice": ("nvgpu.tma.async.load", lambda p, op, do: (do(p, op), do(p, op))),
}
TEXT_FAULTS = {
    "too many bytes": ("irees_mbarrier_expect(", ", 16384);", ", 16400);"),
    "too few bytes": ("irees_mbarrier_expect(", ", 16384);", ", 8192);"),
    "not at a swizzle": ("irees_copy_box(", "irees_copy_box(p", "irees_copy_box(64 + p"),
    "outside": ("irees_copy_box(", "irees_copy_box(p", "irees_copy_box(65536 + p"),
    "another map": ("irees_copy_box(", ", &m", ", 1 + &m"),
    "another phase": ("irees_mbarrier_wait(", ", v", ", !v"),
    "long rows": ("const irees_tensor tensor_", "{64, 64}};", "{128, 64}};"),
    "long box": ("const irees_tensor tensor_", "{64, 64}};", "{64, 257}};"),
    "narrow swizzle": ("const irees_tensor tensor_", ", 2, 128, ", ", 2, 64, "),
    "odd address": ("const irees_tensor tensor_", "{a", "{4 + a"),
    "odd stride": ("const irees_tensor tensor_", "{2, 1024}", "{2, 1020}"),
}


def refused(match: str = "makes an invalid bulk copy, or an invalid wait for one") -> None:
    with pytest.raises(DeviceError, match=match):
        product_of_parts("boxes")


@pytest.mark.parametrize("fault", BOX_FAULTS)
def test_what_a_device_leaves_undefined_is_told(fault, forced, monkeypatch):
    """Barriers that are not initialised or fenced, and copies that nobody counts or waits for."""
    forced(64, 64, 64, 4)
    np.testing.assert_array_equal(*product_of_parts("boxes"))
    name, wrong = BOX_FAULTS[fault]
    do = print_boxes.BOXES[name]
    spoilt = wrong if wrong is nothing else lambda p, op: wrong(p, op, do)
    monkeypatch.setitem(print_boxes.BOXES, name, spoilt)
    refused()


@pytest.mark.parametrize("fault", TEXT_FAULTS)
def test_what_a_device_refuses_is_told(fault, forced, monkeypatch):
    """Wrong counts of bytes would wait for ever; boxes have limits, and places that are aligned."""
    forced(64, 64, 64, 4)
    begin, old, new = TEXT_FAULTS[fault]
    line = Printer.line

    def spoil(self, text: str) -> None:
        if text.strip().startswith(begin):
            assert old in text
            text = text.replace(old, new)
        line(self, text)

    monkeypatch.setattr(Printer, "line", spoil)
    refused()


def test_without_boxes_blocks_are_those_of_threads():
    """Where the last columns are cut, registers hold no addresses of 256: another block is taken."""
    text = kernels.widening_matmul(8000, 8200, 4096, "f16", "m, k; n, k")
    for copies, wanted in (("boxes", 256), ("threads", 128)):
        module = irees.import_mlir(text)
        program = irees.compile(module, target="cuda:sm_90", to="codegen", **COPIES[copies])
        sums = [op.shape for op in program.walk() if isinstance(op, WarpgroupMmaOp)]
        assert sums == [(64, wanted, 64)]


REASONS = [
    (
        (64, 64, 500),
        "m, k; n, k",
        "operand of the rows has rows that are not multiples of 16 bytes",
    ),
    ((64, 60, 64), "m, k; k, n", "operand of the columns has rows that are not multiples of 16"),
]


@pytest.mark.parametrize(("sizes", "order", "words"), REASONS, ids=str)
def test_what_is_no_box_is_copied_by_threads(sizes, order, words, forced):
    forced(64, 64, 64, 4)
    program = compiled(kernels.widening_matmul(*sizes, "f16", order))
    assert not has_boxes(program)
    assert words in program.explain()
    check(*sizes, "f16", order)


@pytest.mark.parametrize("copies", COPIES)
@pytest.mark.parametrize(("batch", "rows"), [(4, 48), (2, 64), (3, 100), (3, 48)])
def test_rows_of_several_loops(batch, rows, copies, forced):
    """A tile of 128 rows has two matrices of 48 or 64, or is a part of one; a cut one is no box."""
    forced(128, 64, 64, 3)
    program = compiled(kernels.linear(batch, rows, 72, 136), **COPIES[copies])
    assert has_warpgroups(program)
    assert has_boxes(program) is (copies == "boxes" and (batch, rows) != (3, 48))
    a, b = whole(batch, rows, 136), whole(72, 136)
    found = program(a.astype("f2"), b.astype("f2"))
    np.testing.assert_array_equal(found, a @ b.T)


@pytest.mark.parametrize("copies", COPIES)
@pytest.mark.parametrize(("m", "n"), [(128, 128), (200, 136)])
def test_a_workgroup_that_does_several_blocks(m, n, copies, forced, monkeypatch):
    """Of three parts each, in four slots: a block begins at another slot than the one before."""
    forced(64, 64, 64, 4)
    tiles_of = gpu_select_strategy.tiles_of
    twice = lambda loops, sizes, most: tiles_of(loops, sizes, 2 * most)  # noqa: E731
    monkeypatch.setattr(gpu_select_strategy, "tiles_of", twice)
    program = compiled(kernels.widening_matmul(m, n, 136, "f16", "m, k; k, n"), **COPIES[copies])
    assert has_boxes(program) is (copies == "boxes")
    a, b = whole(m, 136), whole(136, n)
    np.testing.assert_array_equal(program(a.astype("f2"), b.astype("f2")), a @ b)


def test_any_order_of_threads_gives_the_same_boxes(forced):
    forced(128, 128, 64, 3)
    program = compiled(kernels.widening_matmul(256, 128, 136, "f16", "k, m; n, k"))
    assert has_boxes(program)
    a, b = whole(256, 136), whole(136, 128)
    order = program.library.cdll.irees_emulation_order
    try:
        for seed in (1, 2, 3):
            order(seed)
            found = program(a.T.astype("f2", order="C"), b.T.astype("f2", order="C"))
            np.testing.assert_array_equal(found, a @ b)
    finally:
        order(0)


def way_of(program) -> str:
    """By what a product was done."""
    if not has_warpgroups(program):
        return "single warps"
    return "boxes" if has_boxes(program) else "threads"


def test_random_products(forced):
    """Any sizes, orders and blocks: exact, by warpgroups or by whatever steps in for them."""
    seen: set[str] = set()

    @settings(max_examples=16 * FACTOR)
    @given(data=st.data())
    def run(data) -> None:
        forced(*data.draw(st.sampled_from(BLOCKS)))
        m, n = data.draw(st.integers(1, 150)), data.draw(st.integers(1, 150))
        k = data.draw(st.integers(1, 12)) * data.draw(st.sampled_from([1, 2, 8, 16]))
        if data.draw(st.booleans()):
            m, n = -(-m // 8) * 8, -(-n // 8) * 8
        order = data.draw(st.sampled_from(ORDERS))
        element = data.draw(st.sampled_from(sorted(DTYPES)))
        text = kernels.widening_matmul(m, n, k, element, order)
        program = compiled(text, **COPIES[data.draw(st.sampled_from(sorted(COPIES)))])
        seen.add(way_of(program))
        left, right = order.split("; ")
        a, b = whole(m, k), whole(k, n)
        found = program(
            (a if left == "m, k" else a.T).astype(DTYPES[element], order="C"),
            (b if right == "k, n" else b.T).astype(DTYPES[element], order="C"),
        )
        np.testing.assert_array_equal(found, a @ b)

    run()
    assert seen == {"boxes", "threads", "single warps"}


def test_random_batches(forced):
    """Tensors of three dims, of which a tile has one matrix, several or a part of one."""
    seen: set[str] = set()

    @settings(max_examples=12 * FACTOR)
    @given(data=st.data())
    def run(data) -> None:
        batch, rows, columns = (data.draw(st.integers(1, most)) for most in (5, 140, 70))
        depth = 8 * data.draw(st.integers(1, 20))
        forced(*data.draw(st.sampled_from(BLOCKS)))
        if data.draw(st.booleans()):
            program = compiled(kernels.linear(batch, rows, columns, depth))
            a, b = whole(batch, rows, depth), whole(columns, depth)
            arguments, expected = [a.astype("f2"), b.astype("f2")], a @ b.T
        else:
            program = compiled(kernels.activated_matmul(rows, columns, depth))
            a, b, bias = whole(2, rows, depth), whole(2, columns, depth), whole(columns)
            arguments = [a.astype("f2"), b.astype("f2"), bias]
            expected = (np.maximum(a @ b.swapaxes(1, 2) + bias, 0) / 2).astype("f2")
        seen.add(way_of(program))
        np.testing.assert_array_equal(program(*arguments), expected)

    run()
    assert "boxes" in seen
