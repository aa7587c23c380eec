"""`irees-join-contiguous-loops`: ops on short rows compute the same, in tiles and views, too."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

import irees
from irees.testing import profiles

FACTOR = profiles.load()


def tensor(sizes: list[int], dynamic: list[bool]) -> str:
    return f"tensor<{''.join(f'{chr(63) if d else n}x' for n, d in zip(sizes, dynamic))}f32>"


@settings(max_examples=15 * FACTOR, deadline=None)
@given(
    st.lists(st.sampled_from([1, 2, 3, 5, 8, 16, 33]), min_size=2, max_size=4),
    st.integers(0, 3),
    st.booleans(),
    st.booleans(),
)
def test_rows_and_their_sums(sizes, offset, dynamic, summed):
    """exp(x) - y, x being all but the first rows of an array; its sum over the first dim."""
    rank, shown = len(sizes), [dynamic, *[False] * (len(sizes) - 1)]
    whole = [sizes[0] + offset, *sizes[1:]]
    dims = ", ".join(f"d{i}" for i in range(rank))
    plain = f"affine_map<({dims}) -> ({dims})>"
    rest = f"affine_map<({dims}) -> ({', '.join(f'd{i}' for i in range(1, rank))})>"
    out = tensor(sizes[1:], shown[1:]) if summed else tensor(sizes, shown)
    kinds = ", ".join(['"reduction"' if summed else '"parallel"', *['"parallel"'] * (rank - 1)])
    part, all_of = tensor(sizes, shown), tensor(whole, shown)
    length = "%n" if dynamic else sizes[0]
    add = "%r = arith.addf %s, %o : f32" if summed else "%r = arith.negf %s : f32"
    text = f"""func.func @main(%x: {all_of}, %y: {part}, %e: {out}) -> {out} {{
  %c0 = arith.constant 0 : index
  %n = tensor.dim %y, %c0 : {part}
  %v = tensor.extract_slice %x[{", ".join([str(offset), *["0"] * (rank - 1)])}] [{", ".join(map(str, [length, *sizes[1:]]))}] [{", ".join(["1"] * rank)}] : {all_of} to {part}
  %0 = linalg.generic {{indexing_maps = [{plain}, {plain}, {rest if summed else plain}], iterator_types = [{kinds}]}}
      ins(%v, %y : {part}, {part}) outs(%e : {out}) {{
  ^bb0(%a: f32, %b: f32, %o: f32):
    %p = math.exp %a : f32
    %s = arith.subf %p, %b : f32
    {add}
    linalg.yield %r : f32
  }} -> {out}
  return %0 : {out}
}}"""
    random = np.random.default_rng(sum(sizes))
    x, y = (random.normal(size=s).astype(np.float32) for s in (whole, sizes))
    e = np.zeros(sizes[1:] if summed else sizes, np.float32)
    want = np.exp(x[offset:]) - y
    want = want.sum(0) if summed else -want
    mine = irees.compile(text, target="cpu")(x, y, e)
    np.testing.assert_allclose(mine, want, rtol=1e-4, atol=1e-5)
