"""Scans by a thread, a workgroup and many workgroups per row, compared with NumPy."""

from __future__ import annotations

import sys
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest

import irees
from irees.targets.nvidia import NVIDIA
from irees.transforms.codegen.gpu.utils.scan_costs import Scanned

sys.path.insert(0, str(Path(__file__).parent))
import kernels

random = np.random.default_rng(7)
TARGET = "cuda-emulated:sm_80"
DTYPES = {
    "f32": np.float32,
    "f64": np.float64,
    "f16": np.float16,
    "bf16": ml_dtypes.bfloat16,
    "i8": np.int8,
    "i32": np.int32,
    "i64": np.int64,
}
BUSY, THREADS = 108, NVIDIA.threads


def numbers(shape: tuple[int, ...], element: str) -> np.ndarray:
    """Small whole numbers, of which floats give exact sums in any order."""
    return random.integers(-3, 4, shape).astype(DTYPES[element])


def expected(x: np.ndarray, start: np.ndarray, axis: int, *, inclusive: bool, add=np.add):
    """Returns the prefixes along an axis, and the last of them."""
    whole = add.accumulate(x, axis=axis, dtype=x.dtype)
    if not inclusive:
        first = np.expand_dims(start, axis)
        moved = np.take(x, range(x.shape[axis] - 1), axis=axis)
        whole = add.accumulate(np.concatenate([first, moved], axis), axis=axis, dtype=x.dtype)
    return whole, np.take(whole, -1, axis=axis)


def check(
    text: str, x: np.ndarray, *, axis: int = 1, inclusive: bool = True, add=np.add, **options
) -> str:
    """Compares a program with NumPy; returns its text."""
    start = numbers(tuple(np.delete(x.shape, axis)), "i8").astype(x.dtype)
    program = irees.compile(text, target=TARGET, opt_level=1, **options)
    values, last = program(x, start)
    prefixes, end = expected(x, start, axis, inclusive=inclusive, add=add)
    np.testing.assert_array_equal(values, prefixes)
    np.testing.assert_array_equal(last, end)
    return "".join(program.sources.values())


@pytest.mark.parametrize("inclusive", [True, False])
@pytest.mark.parametrize(
    ("rows", "size"),
    [(1, 1), (1, 2), (3, 33), (5, 512), (2, 1000), (1, 1025), (1, 4099), (1, 40_000), (4, 8192)],
)
def test_rows(rows, size, inclusive):
    check(kernels.scan(rows, size, inclusive=inclusive), numbers((rows, size), "f32"), inclusive=inclusive)  # fmt: skip


@pytest.mark.parametrize("size", [1000, 5001])
@pytest.mark.parametrize("element", ["f64", "f16", "bf16", "i8", "i32", "i64"])
def test_elements(element, size):
    """Vectors of another width, or none where rows are odd; sums of bytes wrap."""
    x = numbers((2, size), element) if element != "f16" else np.zeros((2, size), np.float16)
    x[:, ::7] = 1
    if element == "bf16":
        x = np.zeros_like(x)
        x[:, ::97] = 1
    check(kernels.scan(2, size, element, inclusive=False), x, inclusive=False)


@pytest.mark.parametrize(
    ("combiner", "element", "add"),
    [("maximumf", "f32", np.maximum), ("minsi", "i32", np.minimum), ("muli", "i32", np.multiply),
     ("xori", "i64", np.bitwise_xor), ("maxui", "i8", None)],
)  # fmt: skip
@pytest.mark.parametrize("size", [300, 6000])
def test_combiners(combiner, element, add, size):
    x = numbers((1, size), element)
    text = kernels.scan(1, size, element, combiner=combiner)
    if add is None:
        kept = irees.compile(text, target="reference")(x, numbers((1,), element))
        found = irees.compile(text, target=TARGET, opt_level=1)(x, numbers((1,), element))
        np.testing.assert_array_equal(found[0], kept[0])
    else:
        check(text, x, add=add)


@pytest.mark.parametrize("shape", [(1, 0), (1, 1), (1, 700), (3, 5000), (7, 64), (0, 9)])
@pytest.mark.parametrize("static", [False, True])
def test_dynamic_sizes(shape, static):
    """Rows of unknown length, whose number is known or not."""
    rows, size = shape
    if static and not rows:
        pytest.skip("no rows at all are another test's")
    for inclusive in (True, False):
        text = kernels.scan(rows if static else "?", "?", inclusive=inclusive)
        x = numbers(shape, "f32")
        if size:
            check(text, x, inclusive=inclusive)
            continue
        start = numbers((rows,), "f32")
        _, last = irees.compile(text, target=TARGET, opt_level=1)(x, start)
        np.testing.assert_array_equal(last, start)


def test_columns():
    """Columns stay with a thread each; few of them, far apart only in name, do not."""
    x = numbers((600, 40), "f32")
    assert "irees_shuffle_xor(" not in _kernels(check(kernels.scan(600, 40, dim=0), x, axis=0))
    x = numbers((3000, 2), "f32")
    assert "irees_shuffle_xor(" in _kernels(check(kernels.scan(3000, 2, dim=0), x, axis=0))


def test_strict_floats_are_added_in_order():
    x = random.standard_normal((2, 3000)).astype(np.float32)
    assert "irees_shuffle_xor(" not in _kernels(check(kernels.scan(2, 3000), x, fp="strict"))
    whole = numbers((2, 3000), "i32")
    text = check(kernels.scan(2, 3000, "i32"), whole, fp="strict")
    assert "irees_shuffle_xor(" in _kernels(text)


def _kernels(text: str) -> str:
    """Returns the text without what is defined for all kernels."""
    return text[text.index("irees_k0") :].replace("T irees_shuffle_xor(T", "")


def test_what_is_estimated():
    """Which threads scan, from the counts: a row of 131,072 takes 5 us, not 8 ms."""
    long = Scanned(1, 131_072, 32, BUSY, THREADS)
    assert (long.in_order(), long.by_workgroup()) == (7_864_320, 256 * NVIDIA.scan_tile)
    assert long.by_parts() == 2 * NVIDIA.scan_tile + NVIDIA.scan_launch
    assert long.prefers_parts()
    assert not long.prefers_order()
    rows = Scanned(1024, 128, 32, BUSY, THREADS)
    assert not rows.prefers_parts()
    assert not rows.prefers_order()
    assert Scanned(1 << 20, 128, 32, BUSY, THREADS).prefers_order()
    assert Scanned(1, 8, 32, BUSY, THREADS).prefers_order()
    assert not Scanned(-1, -1, 32, BUSY, THREADS).prefers_parts()
