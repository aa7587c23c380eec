"""`irees-widen-booleans`: booleans that are computed as bytes are the same."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

import irees
from irees.testing import profiles

FACTOR = profiles.load()
OPS = ["arith.andi", "arith.ori", "arith.xori"]


@st.composite
def bodies(draw) -> list[str]:
    """The ops of a body of %a, %b and the constant %t; the last one is %v<n>."""
    values, lines = ["%a", "%b", "%t"], []
    for number in range(draw(st.integers(1, 6))):
        x, y, z = (draw(st.sampled_from(values)) for _ in range(3))
        name = f"%v{number}"
        if draw(st.booleans()):
            lines.append(f"{name} = arith.select {x}, {y}, {z} : i1")
        else:
            lines.append(f"{name} = {draw(st.sampled_from(OPS))} {x}, {y} : i1")
        values.append(name)
    return lines


@settings(max_examples=12 * FACTOR, deadline=None)
@given(bodies(), st.sampled_from([1, 15, 63, 64, 65, 200]), st.booleans(), st.booleans())
def test_bytes_give_the_same_booleans(lines, size, true, dynamic):
    row = f"tensor<{'?' if dynamic else size}xi1>"
    body = "\n    ".join(lines)
    text = f"""#id = affine_map<(i) -> (i)>
func.func @main(%x: {row}, %y: {row}, %o: {row}) -> {row} {{
  %0 = linalg.generic {{indexing_maps = [#id, #id, #id], iterator_types = ["parallel"]}}
      ins(%x, %y : {row}, {row}) outs(%o : {row}) {{
  ^bb0(%a: i1, %b: i1, %c: i1):
    %t = arith.constant {"true" if true else "false"}
    {body}
    linalg.yield %v{len(lines) - 1} : i1
  }} -> {row}
  return %0 : {row}
}}"""
    random = np.random.default_rng(size)
    x, y, o = (random.integers(0, 2, size).astype(bool) for _ in range(3))
    mine = irees.compile(text, target="cpu")(x, y, o)
    assert np.array_equal(mine, irees.compile(text, target="reference")(x, y, o))


def test_any_byte_but_0_is_true():
    """A caller may give booleans that view other bytes: they are true, and returned as 1."""
    text = """func.func @main(%x: tensor<100xi1>, %y: tensor<100xi1>) -> tensor<100xi1> {
  %0 = arith.andi %x, %y : tensor<100xi1>
  return %0 : tensor<100xi1>
}"""
    x = np.full(100, 2, np.uint8).view(bool)
    y = np.arange(100, dtype=np.uint8).view(bool)
    found = irees.compile(text, target="cpu")(x, y).view(np.uint8)
    assert found.tolist() == [0, *[1] * 99]
