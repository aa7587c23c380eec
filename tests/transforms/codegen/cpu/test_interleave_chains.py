"""Chains that take turns: where they stand in a program, and that they change no bit of it."""

from __future__ import annotations

import re
from itertools import pairwise

import numpy as np
import pytest

import irees
from irees.backends.c.backend import emit_program
from irees.target import host_features

PLAIN = {"disable_pass": ("irees-interleave-chains",)}
SHAPE = "tensor<64x1024xf32>"

SOFTMAX = f"""
func.func @main(%a: {SHAPE}) -> {SHAPE} {{
  %e = tensor.empty() : {SHAPE}
  %r = linalg.softmax dimension(1) ins(%a : {SHAPE}) outs(%e : {SHAPE}) -> {SHAPE}
  return %r : {SHAPE}
}}
"""


def kernels(text: str, **options) -> str:
    """The C text of all kernels, for a processor that need not be this one."""
    texts = emit_program(irees.compile(text, to="codegen", **options)).texts
    return "".join(t for name, t in texts.items() if name.startswith("irees_k"))


def scalings(text: str) -> list[int]:
    """How many lines of C are between one scaling by a power of two and the next."""
    lines = text.splitlines()
    places = [
        number for number, line in enumerate(lines) if re.search(r"_(?:ldexp|scalef)\(v\d", line)
    ]
    return [after - before for before, after in pairwise(places)]


@pytest.mark.parametrize("target", ["cpu:x86-64-v3", "cpu:x86-64-v2"])
def test_the_powers_of_a_softmax_take_turns_and_are_the_same(target):
    assert scalings(kernels(SOFTMAX, target=target))[:3] == [1, 1, 1]
    assert min(scalings(kernels(SOFTMAX, target=target, **PLAIN))[:3]) > 20
    made, plain = (
        irees.compile(SOFTMAX, target=target),
        irees.compile(SOFTMAX, target=target, **PLAIN),
    )
    x = np.random.default_rng(1).standard_normal((64, 1024), dtype=np.float32)
    assert np.array_equal(made(x), plain(x))


def elementwise(op: str, columns: int | str) -> str:
    shape = f"tensor<64x{columns}xf32>"
    return f"""
func.func @main(%a: {shape}) -> {shape} {{
  %r = math.{op} %a : {shape}
  return %r : {shape}
}}
"""


@pytest.mark.parametrize(
    ("op", "columns", "together"),
    [
        *(("exp", columns, n) for columns, n in ((64, 4), (48, 3), (96, 3), (160, 2))),
        pytest.param("exp", 20, 4, id="rows that are joined"),
        *(("exp", columns, 1) for columns in (80, "?")),
        pytest.param("tanh", 64, 2, id="two of a longer chain"),
    ],
)
def test_turns_of_one_chain_are_chains(op: str, columns: int | str, together: int):
    text, target = elementwise(op, columns), "cpu:x86-64-v4"
    made, plain = kernels(text, target=target), kernels(text, target=target, **PLAIN)
    assert scalings(made)[: together - 1] == [1] * (together - 1)
    assert (made == plain) == (together == 1)
    target = "cpu:x86-64-v4" if "avx512f" in host_features() else "cpu:x86-64-v3"
    count = 77 if columns == "?" else columns
    x = np.random.default_rng(1).standard_normal((64, count), dtype=np.float32) * 10
    got = irees.compile(text, target=target)(x)
    assert np.array_equal(got, irees.compile(text, target=target, **PLAIN)(x))
    np.testing.assert_allclose(got, getattr(np, op)(x), rtol=3e-7)
