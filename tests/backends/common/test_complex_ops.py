"""Each op on complex numbers gives what the interpreter gives, for zeros, infinities and NaN too."""

from __future__ import annotations

import numpy as np
import pytest

import irees
from irees.backends.common.complex_ops import COMPLEX

OPS = sorted(COMPLEX.keys() - {"complex.create"})
DTYPES = {"f32": np.complex64, "f64": np.complex128}
ODD = [0.0, -0.0, np.inf, -np.inf, np.nan]
PLAIN = [1.0, -2.5, 40.0]
EXTREME = [1e-30, 3e15, -100.0]
RESULTS = {"complex.eq": "i1", "complex.neq": "i1"}
MEASURES = ("complex.re", "complex.im", "complex.abs", "complex.angle")


def program(op: str, element: str, count: int) -> str:
    """The op of two rows, the second one unused by an op of one operand."""
    kind = f"complex<{element}>"
    result = RESULTS.get(op, element if op in MEASURES else kind)
    operands = "%a, %b" if "{1}" in COMPLEX[op] else "%a"
    row, out = f"tensor<{count}x{kind}>", f"tensor<{count}x{result}>"
    return f"""func.func @main(%x: {row}, %y: {row}) -> {out} {{
  %e = tensor.empty() : {out}
  %0 = linalg.generic {{indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>, affine_map<(i) -> (i)>], iterator_types = ["parallel"]}} ins(%x, %y : {row}, {row}) outs(%e : {out}) {{
  ^bb0(%a: {kind}, %b: {kind}, %o: {result}):
    %1 = {op} {operands} : {kind}
    linalg.yield %1 : {result}
  }} -> {out}
  return %0 : {out}
}}"""


def pairs(op: str, parts: list[float], dtype: type) -> tuple[np.ndarray, np.ndarray]:
    """All numbers with these parts; all pairs of them for an op of two operands."""
    numbers = np.empty((len(parts), len(parts)), dtype)
    numbers.real, numbers.imag = np.meshgrid(parts, parts)
    row = numbers.reshape(-1)
    if "{1}" not in COMPLEX[op]:
        return row, row
    return np.repeat(row, row.size), np.tile(row, row.size)


def parts_of(x: np.ndarray) -> list[np.ndarray]:
    return [x.real, x.imag] if x.dtype.kind == "c" else [x]


def wrong(mine: np.ndarray, want: np.ndarray, tolerance: float) -> np.ndarray:
    """Where results differ by more than rounding; a difference is relative to the whole number."""
    if want.dtype.kind == "b":
        return mine != want
    size = sum(np.where(np.isfinite(part), np.abs(part), 0) for part in parts_of(want))
    size = np.maximum(size, np.finfo(want.dtype).tiny / tolerance if tolerance else 0)
    found = np.zeros(want.shape, bool)
    for x, y in zip(parts_of(mine), parts_of(want), strict=True):
        same = (x == y) | (np.isnan(x) & np.isnan(y))
        near = np.isfinite(x) & np.isfinite(y) & (np.abs(x - y) <= tolerance * size)
        found |= ~(same | near)
    return found


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("op", OPS)
@pytest.mark.parametrize("element", sorted(DTYPES))
@pytest.mark.parametrize("target", ["cpu", "strict", "cuda-emulated"])
def test_all_kinds_of_numbers(op, element, target):
    # Kernels for GPUs compute quotients of f32 in f32, where extremes underflow. Powers of extremes
    # have angles of many turns.
    few = target == "cuda-emulated" or op == "complex.pow"
    parts = [*ODD, *PLAIN] if few else [*ODD, *PLAIN, *EXTREME]
    x, y = pairs(op, parts, DTYPES[element])
    text = program(op, element, x.size)
    want = irees.compile(text, target="reference")(x, y)
    if target == "strict":
        mine = irees.compile(text, target="cpu", fp="strict")(x, y)
        assert mine.dtype == want.dtype
        # Functions of libm and numpy's differ in the last bit; products and sums do not.
        exact = op in ("complex.mul", "complex.div", "complex.add", "complex.sub", "complex.conj")
        tolerance = 0.0 if exact else 1e-6 if element == "f32" else 1e-14
    else:
        mine = irees.compile(text, target=target)(x, y)
        tolerance = 1e-6 if element == "f32" else 1e-13
    places = np.flatnonzero(wrong(mine, want, tolerance))
    found = [(x[i], y[i], mine[i], want[i]) for i in places[:5]]
    assert not places.size, f"{places.size} of {x.size} differ (x, y, got, wanted): {found}"
