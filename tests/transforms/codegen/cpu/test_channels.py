"""Ops that take the elements of short rows apart, as the channels of pixels, against numpy."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

import irees
from irees.remarks import collect

TYPES = {
    "f32": np.float32, "f64": np.float64, "i32": np.int32, "i64": np.int64, "i8": np.int8,
    "bf16": ml_dtypes.bfloat16,
}  # fmt: skip
FORMS = {
    "planes": ("c, i", "(c, i) -> (i, c)", "parallel"),
    "batched planes": ("n, c, i", "(n, c, i) -> (n, i, c)", "parallel"),
    "turned planes": ("c, n, i", "(c, n, i) -> (n, i, c)", "parallel"),
    "sums": ("i", "(i, c) -> (i, c)", "reduction"),
    "every other row": ("c, i", "(c, i) -> (2 * i, c)", "parallel"),
    "reversed": ("c, i", "(c, i) -> (i, COUNT - 1 - c)", "parallel"),
    "one of them": ("i", "(i) -> (i, 1)", "parallel"),
}
"""The loops of the result, the map of the input, and the kind of the channel loop."""


def program_of(form: str, count: int, pixels: int, element: str, dynamic: bool) -> str:
    """out[loops] = x[map], or the sum over the channels."""
    loops, read, kind = FORMS[form]
    sizes = {"n": 3, "c": count, "i": pixels}
    out = "".join(
        f"{'?' if dynamic and loop == 'i' else sizes[loop]}x" for loop in loops.split(", ")
    )
    rows = pixels * (2 if form == "every other row" else 1)
    shape = "".join(
        f"{n}x" for n in (*([3] if "n" in loops else []), "?" if dynamic else rows, count)
    )
    x, o = f"tensor<{shape}{element}>", f"tensor<{out}{element}>"
    every = read.split(" -> ")[0]
    kinds = [f'"{kind if loop == "c" else "parallel"}"' for loop in every.strip("()").split(", ")]
    add = f"arith.add{'f' if 'f' in element else 'i'} %a, %old : {element}"
    body = f"%s = {add}\n    linalg.yield %s" if kind == "reduction" else "linalg.yield %a"
    return f"""func.func @main(%x: {x}, %e: {o}) -> {o} {{
  %r = linalg.generic {{indexing_maps = [affine_map<{read.replace("COUNT", str(count))}>,
      affine_map<{every} -> ({loops})>], iterator_types = [{", ".join(kinds)}]}}
      ins(%x : {x}) outs(%e : {o}) {{
  ^bb0(%a: {element}, %old: {element}):
    {body} : {element}
  }} -> {o}
  return %r : {o}
}}"""


def expected(form: str, x: np.ndarray) -> np.ndarray:
    return {
        "planes": lambda: x.T,
        "batched planes": lambda: x.transpose(0, 2, 1),
        "turned planes": lambda: x.transpose(2, 0, 1),
        "sums": lambda: x.astype(np.float64).sum(1).astype(x.dtype),
        "every other row": lambda: x[::2].T,
        "reversed": lambda: x[:, ::-1].T,
        "one of them": lambda: x[:, 1],
    }[form]()


def check(form: str, element: str, dynamic: bool, target: str) -> None:
    for count, pixels in ((2, 37), (3, 1), (3, 16), (3, 45), (4, 33), (5, 20)):
        text = program_of(form, count, pixels, element, dynamic)
        rows = pixels * (2 if form == "every other row" else 1)
        shape = (3, rows, count) if "n" in FORMS[form][0] else (rows, count)
        x = np.random.default_rng(count).integers(-9, 9, shape).astype(TYPES[element])
        wanted = expected(form, x)
        got = irees.compile(text, target=target)(x, np.zeros(wanted.shape, x.dtype))
        np.testing.assert_array_equal(got, wanted)


@pytest.mark.parametrize("target", ["cpu", "cpu:generic"])
@pytest.mark.parametrize("dynamic", [False, True])
@pytest.mark.parametrize("form", FORMS)
def test_channels(form, dynamic, target):
    check(form, "f32", dynamic, target)


@pytest.mark.parametrize("element", TYPES)
def test_channels_of_any_type(element):
    check("planes", element, False, "cpu")


@pytest.mark.parametrize("form", ["planes", "batched planes", "turned planes", "one of them"])
def test_they_are_vectors(form):
    with collect() as remarks:
        irees.compile(program_of(form, 3, 160, "f32", False))
    assert not [r.text for r in remarks if "vector" in r.text or "strided" in r.text]
