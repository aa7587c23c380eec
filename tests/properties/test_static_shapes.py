"""What one operand of an attention knows of a loop, all of its operands know afterwards."""

from __future__ import annotations

import numpy as np
from hypothesis import event, given, settings
from hypothesis import strategies as st
from xdsl.transforms.canonicalize import CanonicalizePass

from irees.testing import profiles
from irees.testing.oracles import passes_agree

FACTOR = profiles.load()
SIZES = {"b": 2, "m": 3, "n": 4, "k": 5, "l": 6}
OPERANDS = {"q": "bmk", "k": "blk", "v": "bln", "o": "bmn"}


@settings(max_examples=80 * FACTOR)
@given(st.data())
def test_attention(data):
    hidden = {name: [data.draw(st.booleans()) for _ in dims] for name, dims in OPERANDS.items()}
    # A cast may have hidden a dim that its source shows.
    shown = {name: [h and data.draw(st.booleans()) for h in hidden[name]] for name in "qkv"}

    def kind(name, visible=None):
        dims = zip(OPERANDS[name], hidden[name], visible or [False] * 3)
        return f"tensor<{''.join('?x' if h and not s else f'{SIZES[d]}x' for d, h, s in dims)}f32>"

    casts, uses = [], {}
    for name in "qkv":
        before, after = kind(name, shown[name]), kind(name)
        uses[name] = f"%{name}"
        if before != after:
            casts.append(f"  %{name}c = tensor.cast %{name} : {before} to {after}\n")
            uses[name] += "c"
    maps = ", ".join(
        f"affine_map<(b, m, n, k, l) -> ({', '.join(dims)})>"
        for dims in ("bmk", "blk", "bln", "", "bmn")
    )
    arguments = ", ".join(f"%{n}: {kind(n, shown[n])}" for n in "qkv")
    text = f"""
func.func @main({arguments}, %o: {kind("o")}) -> {kind("o")} {{
  %s = arith.constant 0.5 : f32
{"".join(casts)}  %r = iree_linalg_ext.attention {{indexing_maps = [{maps}]}}
      ins({uses["q"]}, {uses["k"]}, {uses["v"]}, %s : {kind("q")}, {kind("k")}, {kind("v")}, f32)
      outs(%o : {kind("o")}) {{
  ^bb0(%score: f32):
    iree_linalg_ext.yield %score : f32
  }} -> {kind("o")}
  return %r : {kind("o")}
}}
"""
    random = np.random.default_rng(data.draw(st.integers(0, 99)))
    inputs = [
        random.normal(size=[SIZES[d] for d in OPERANDS[n]]).astype(np.float32) for n in "qkvo"
    ]
    module, wrong = passes_agree(text, [CanonicalizePass()], *inputs)
    assert wrong == []
    known = {
        d
        for name, dims in OPERANDS.items()
        for d, h, s in zip(dims, hidden[name], shown.get(name, [False] * 3))
        if not h or s
    }
    (op,) = [o for o in module.walk() if o.name == "iree_linalg_ext.attention"]
    for value, dims in zip((*op.operands[:3], op.operands[-1]), OPERANDS.values(), strict=True):
        assert value.type.get_shape() == tuple(SIZES[d] if d in known else -1 << 63 for d in dims)
    event(f"{len(casts)} casts")
