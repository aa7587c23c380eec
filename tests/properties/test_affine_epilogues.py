"""A scale after a contraction is the same scale in its weights."""

from __future__ import annotations

import numpy as np
from hypothesis import event, given, settings
from hypothesis import strategies as st

from irees.testing import profiles
from irees.testing.oracles import passes_agree
from irees.testing.tolerances import EXACT, ulps
from irees.transforms import load_pass

FACTOR = profiles.load()
OUT, ROW = "affine_map<(c, h) -> (c, h)>", "affine_map<(c, h) -> (c)>"


@settings(max_examples=100 * FACTOR)
@given(st.data())
def test_scales_change_nothing(data):
    """Numbers are small integers, divisors powers of two: every result is exact."""

    def numbers(shape, choices):
        size = int(np.prod(shape))
        drawn = data.draw(st.lists(st.sampled_from(choices), min_size=size, max_size=size))
        return np.array(drawn, np.float32).reshape(shape)

    weights = numbers((4, 2), [-2, -1, 0, 1, 3])
    mine = [numbers((4,), [-4, -2, 1, 2]) for _ in range(3)]
    body, value, known = [], "%a0", ["%a1", "%a2", "%a3", "%two"]
    for step in range(data.draw(st.integers(1, 6))):
        op = data.draw(st.sampled_from(["addf", "subf", "mulf", "divf", "both"]))
        other = data.draw(st.sampled_from(known))
        name = f"%t{step}"
        if op == "both":
            body.append(f"{name} = arith.addf {other}, {data.draw(st.sampled_from(known))} : f32")
            known.append(name)
            continue
        sides = [value, other]
        if op == "divf":
            sides[1] = data.draw(st.sampled_from(known[:4]))
        elif data.draw(st.booleans()):
            sides.reverse()
        body.append(f"{name} = arith.{op} {sides[0]}, {sides[1]} : f32")
        value = name
        if data.draw(st.integers(0, 5)) == 0:
            body.append(f"%u{step} = arith.maximumf {value}, {known[0]} : f32")
            value = f"%u{step}"
    if data.draw(st.integers(0, 5)) == 0:
        body.append("%again = arith.addf " + value + ", %a0 : f32")
        value = "%again"
    constants = "\n".join(
        f"%c{k} = arith.constant dense<{m.tolist()}> : tensor<4xf32>" for k, m in enumerate(mine)
    )
    lines = "\n".join(body)
    text = f"""
func.func @main(%x: tensor<2x3xf32>) -> tensor<4x3xf32> {{
%zero = arith.constant 0.0 : f32
%two = arith.constant 2.0 : f32
%w = arith.constant dense<{weights.tolist()}> : tensor<4x2xf32>
{constants}
%e = tensor.empty() : tensor<4x3xf32>
%f = linalg.generic {{indexing_maps = [{OUT}], iterator_types = ["parallel", "parallel"]}} outs(%e : tensor<4x3xf32>) {{
^bb0(%o: f32):
linalg.yield %zero : f32
}} -> tensor<4x3xf32>
%m = linalg.generic {{indexing_maps = [affine_map<(c, h, k) -> (k, h)>, affine_map<(c, h, k) -> (c, k)>, affine_map<(c, h, k) -> (c, h)>], iterator_types = ["parallel", "parallel", "reduction"]}} ins(%x, %w : tensor<2x3xf32>, tensor<4x2xf32>) outs(%f : tensor<4x3xf32>) {{
^bb0(%a: f32, %b: f32, %c: f32):
%p = arith.mulf %a, %b : f32
%s = arith.addf %c, %p : f32
linalg.yield %s : f32
}} -> tensor<4x3xf32>
%r = linalg.generic {{indexing_maps = [{OUT}, {ROW}, {ROW}, {ROW}, {OUT}], iterator_types = ["parallel", "parallel"]}} ins(%m, %c0, %c1, %c2 : tensor<4x3xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>) outs(%e : tensor<4x3xf32>) {{
^bb0(%a0: f32, %a1: f32, %a2: f32, %a3: f32, %o: f32):
{lines}
linalg.yield {value} : f32
}} -> tensor<4x3xf32>
return %r : tensor<4x3xf32>
}}
"""
    scale = data.draw(st.booleans())
    fp = "default" if scale else "strict"
    module, wrong = passes_agree(
        text,
        [
            load_pass("irees-assign-target")(fp=fp),
            load_pass("irees-fold-affine-epilogues")(),
        ],
        numbers((2, 3), [-3, -1, 0, 1, 2]),
        # A zero may have another sign.
        tolerances=(ulps(0) if scale else EXACT,),
    )
    assert wrong == []
    left = sum(o.name in ("arith.mulf", "arith.divf") for o in module.walk()) - 1
    event(f"{min(left, 2)} multiplications left, scale={scale}")
