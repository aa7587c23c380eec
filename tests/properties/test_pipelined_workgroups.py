"""Tiles that are summed up while the points of the one before are computed: the same bits."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import event, given, settings
from hypothesis import strategies as st

import irees
from irees.runtime.services import num_threads
from irees.testing import profiles

FACTOR = profiles.load()
PASS = "irees-pipeline-workgroups"
ROW = 16384
"""Points of a tile that no first level of a cache holds."""


def norm(outer: tuple[int, ...], inner: tuple[int, ...], how: str, squared: bool) -> str:
    """Points of each tile of sizes `inner` computed from the sum, or the greatest, of all of it."""
    shape = (*outer, *inner)
    dims = [f"d{i}" for i in range(len(shape))]
    kept = len(outer)
    point = f"affine_map<({', '.join(dims)}) -> ({', '.join(dims)})>"
    tile = f"affine_map<({', '.join(dims)}) -> ({', '.join(dims[:kept])})>"
    whole = f"tensor<{'x'.join(map(str, shape))}xf32>"
    sums = f"tensor<{'x'.join(map(str, shape[:kept]))}xf32>"
    kinds = ", ".join(['"parallel"'] * kept + ['"reduction"'] * len(inner))
    return f"""
func.func @main(%x: {whole}) -> {whole} {{
  %zero = arith.constant 0.0 : f32
  %one = arith.constant 1.0 : f32
  %small = arith.constant 6.103515625e-05 : f32
  %e = tensor.empty() : {sums}
  %f = linalg.fill ins(%zero : f32) outs(%e : {sums}) -> {sums}
  %s = linalg.generic {{indexing_maps = [{point}, {tile}], iterator_types = [{kinds}]}}
      ins(%x : {whole}) outs(%f : {sums}) {{
  ^bb0(%a: f32, %o: f32):
    %b = arith.mulf %a, {"%a" if squared else "%one"} : f32
    %v = {how} %b, %o : f32
    linalg.yield %v : f32
  }} -> {sums}
  %h = tensor.empty() : {whole}
  %r = linalg.generic {{indexing_maps = [{point}, {tile}, {point}],
      iterator_types = [{", ".join(['"parallel"'] * len(shape))}]}}
      ins(%x, %s : {whole}, {sums}) outs(%h : {whole}) {{
  ^bb0(%a: f32, %b: f32, %o: f32):
    %c = arith.mulf %b, %small : f32
    %d = arith.subf %a, %c : f32
    %n = arith.negf %d : f32
    %v = math.exp %n : f32
    %w = arith.addf %v, %one : f32
    %q = arith.divf %d, %w : f32
    linalg.yield %q : f32
  }} -> {whole}
  return %r : {whole}
}}"""


@st.composite
def norms(draw) -> tuple[str, tuple[int, ...]]:
    """The text of a norm and the shape of its input; one loop or several go through a tile."""
    groups = draw(st.sampled_from([8, 9, 16, 24, 40]))
    outer = draw(st.sampled_from([(groups,), (2, groups)]))
    inner = draw(st.sampled_from([(ROW,), (4, ROW // 4), (2, 128, ROW // 256), (3, ROW // 2)]))
    how = draw(st.sampled_from(["arith.addf", "arith.maximumf"]))
    return norm(outer, inner, how, draw(st.booleans())), (*outer, *inner)


def eighths(shape: tuple[int, ...], seed: int) -> np.ndarray:
    """Their products, and sums of those, are exact: a C compiler may contract what it likes."""
    return np.random.default_rng(seed).integers(-24, 24, shape).astype(np.float32) / 8


def both(text: str) -> tuple[irees.Program, irees.Program]:
    """The program with the pass and without it."""
    return irees.compile(text), irees.compile(text, disable_pass=(PASS,))


@settings(max_examples=8 * FACTOR, deadline=None)
@given(norms(), st.integers(0, 99))
def test_pipelined_tiles_have_the_bits_of_single_ones(case, seed):
    text, shape = case
    made, plain = both(text)
    event(f"pipelined: {made.sources != plain.sources}")
    x = eighths(shape, seed)
    assert np.array_equal(made(x), plain(x))


@pytest.mark.parametrize("threads", [1, 2, 3])
def test_a_norm_of_many_tiles_is_pipelined(threads):
    """Rows of 64 KiB, enough of them for machines of 64 threads."""
    text = norm((256,), (ROW,), "arith.addf", squared=True)
    made, plain = both(text)
    assert made.sources != plain.sources
    x = eighths((256, ROW), 0)
    before = num_threads()
    irees.set_num_threads(threads)
    try:
        assert np.array_equal(made(x), plain(x))
    finally:
        irees.set_num_threads(before)
