"""Canonicalized data movement reads and writes the same elements."""

from __future__ import annotations

import numpy as np
from hypothesis import event, given, settings
from hypothesis import strategies as st
from xdsl.transforms.canonicalize import CanonicalizePass

from irees.testing import profiles
from irees.testing.oracles import passes_agree

FACTOR = profiles.load()
SMALL = st.sampled_from([1, 2, 3, 5])


def tensor(shape, element="f32", dynamic=()):
    dims = "".join("?x" if d in dynamic else f"{n}x" for d, n in enumerate(shape))
    return f"tensor<{dims}{element}>"


def image(shape):
    return np.arange(1, 1 + int(np.prod(shape)), dtype=np.float32).reshape(shape)


@settings(max_examples=60 * FACTOR)
@given(st.data())
def test_a_gather_of_one_slice_is_a_slice(data):
    depth, batch = data.draw(st.integers(1, 3)), data.draw(st.integers(0, 3))
    sizes = [data.draw(SMALL) for _ in range(depth + data.draw(st.integers(0, 2)))]
    places = data.draw(st.permutations(range(depth)))
    single = not data.draw(st.booleans()) or depth > 1
    if not single and not batch:
        single = True
    many = batch and data.draw(st.integers(0, 3)) == 0
    lead = [1] * batch
    if many:
        lead[data.draw(st.integers(0, batch - 1))] = 2
    dynamic = {d for d in range(depth, len(sizes)) if data.draw(st.booleans())}
    where = [*lead, depth] if single else lead
    out = [*lead, *sizes[depth:]]
    kind = tensor(out, dynamic={d - depth + batch for d in dynamic})
    element = data.draw(st.sampled_from(["i32", "i64", "index"]))
    text = f"""
func.func @main(%x: {tensor(sizes, dynamic=dynamic)}, %i: {tensor(where, element)}, %o: {kind}) -> {kind} {{
  %r = iree_linalg_ext.gather dimension_map = {list(places)}
      ins(%x, %i : {tensor(sizes, dynamic=dynamic)}, {tensor(where, element)}) outs(%o : {kind}) -> {kind}
  return %r : {kind}
}}
"""
    limits = [sizes[p] for p in places]
    at = [[data.draw(st.integers(0, n - 1)) for n in limits] for _ in range(2 if many else 1)]
    indices = np.array(at).reshape(where).astype(np.int32 if element == "i32" else np.int64)
    module, wrong = passes_agree(
        text, [CanonicalizePass()], image(sizes), indices, np.zeros(out, np.float32)
    )
    assert wrong == []
    assert ("iree_linalg_ext.gather" in str(module)) == bool(many)
    event("several slices" if many else f"depth {depth}, batch {min(batch, 2)}")


@settings(max_examples=60 * FACTOR)
@given(st.data())
def test_an_identity_map_is_a_copy_or_an_insertion(data):
    kind = data.draw(st.sampled_from(["map_load", "map_store"]))
    rank = data.draw(st.integers(1, 3))
    order = list(range(rank))
    inner = [data.draw(SMALL) for _ in order]
    if data.draw(st.integers(0, 3)) == 0:
        order, inner = data.draw(st.permutations(order)), [inner[0]] * rank
    outer = [n + data.draw(st.sampled_from([0, 0, 1])) for n in inner]
    if kind == "map_load":
        inner, outer = outer, inner
    dynamic = set(order) if data.draw(st.booleans()) else set()
    x, o = tensor(inner, dynamic=dynamic), tensor(outer, dynamic=dynamic)
    last = {"map_store": ["true", "true", "false"], "map_load": ["7.0 : f32"]}[kind]
    last = data.draw(st.sampled_from(last))
    text = f"""
func.func @main(%x: {x}, %o: {o}) -> {o} {{
  %last = arith.constant {last}
  %r = iree_linalg_ext.{kind} %x into %o {{
  ^bb0({", ".join(f"%i{d}: index" for d in range(rank))}):
    iree_linalg_ext.yield {"".join(f"%i{d}, " for d in order)}%last :
        {"index, " * rank}{"i1" if kind == "map_store" else "f32"}
  }} : {x} into {o} -> {o}
  return %r : {o}
}}
"""
    module, wrong = passes_agree(text, [CanonicalizePass()], image(inner), -image(outer))
    assert wrong == []
    gone = f"iree_linalg_ext.{kind}" not in str(module)
    assert gone == (
        order == sorted(order)
        and last != "false"
        and (kind == "map_store" or (not dynamic and inner == outer))
    )
    event(f"{kind} {'gone' if gone else 'kept'}")


@settings(max_examples=60 * FACTOR)
@given(st.data())
def test_pads_go_into_im2col(data):
    n, h, w, c = 2, *(data.draw(st.sampled_from([3, 4, 5])) for _ in range(2)), 3
    pad = st.sampled_from([0, 1, 2])
    low, high = [[0, data.draw(pad), data.draw(pad), 0] for _ in range(2)]
    before, after = ([data.draw(pad) for _ in range(3)] for _ in range(2))
    has_input, has_output = data.draw(st.booleans()), data.draw(st.booleans())
    own, inner, outer = (data.draw(st.sampled_from(["0.0", "-5.0"])) for _ in range(3))
    own_pad = data.draw(st.sampled_from(["", "value", "input", "output"]))
    stride = data.draw(st.sampled_from([1, 2]))
    sizes = [h, w]
    if has_input:
        sizes = [h + low[1] + high[1], w + low[2] + high[2]]
    padded = [n, *sizes, c]
    if own_pad == "input":
        sizes = [sizes[0] + 1, sizes[1] + 2]
    m = [(sizes[0] - 2) // stride + 1, sizes[1] - 1]
    extra = 3 if own_pad == "output" else 0
    order = data.draw(st.permutations(range(3)))
    matrix = [n, m[0] * m[1] + extra, 4 * c]
    out = [matrix[d] for d in order]
    whole = [b + size + a for b, size, a in zip(before, out, after, strict=True)]
    final = tensor(whole if has_output else out)
    m_high = [extra if d == 1 else 0 for d in order]
    clauses = {
        "": "",
        "value": "pad_value(%own : f32)",
        "input": "input_pad_low = [0, 1, 1, 0] input_pad_high = [0, 0, 1, 0] pad_value(%own : f32)",
        "output": f"output_pad_low = [0, 0, 0] output_pad_high = {m_high} pad_value(%own : f32)",
    }
    x = tensor([n, h, w, c])
    text = f"""
func.func @main(%x: {x}) -> {final} {{
  %own = arith.constant {own} : f32
  %inner = arith.constant {inner} : f32
  %p = tensor.pad %x low{low} high{high} {{
  ^bb0(%i: index, %j: index, %k: index, %l: index):
    tensor.yield %inner : f32
  }} : {x} to {tensor([n, h + low[1] + high[1], w + low[2] + high[2], c])}
  %e = tensor.empty() : {tensor(out)}
  %r = iree_linalg_ext.im2col strides = [{stride}, 1] dilations = [1, 1] kernel_size = [2, 2]
      offsets = [0, 0, 0] output_sizes = [[{n}], {m}, [2, 2, {c}]]
      batch_pos = [0] m_pos = [1, 2] k_pos = [3] input_k_perm = [0, 1, 2] output_perm = {list(order)}
      {clauses[own_pad]} ins({"%p" if has_input else "%x"} : {tensor(padded)})
      outs(%e : {tensor(out)}) -> {tensor(out)}
  %s = tensor.pad %r low{before} high{after} {{
  ^bb0(%i: index, %j: index, %k: index):
    %outer = arith.constant {outer} : f32
    tensor.yield %outer : f32
  }} : {tensor(out)} to {tensor(whole)}
  return {"%s" if has_output else "%r"} : {final}
}}
"""
    module, wrong = passes_agree(text, [CanonicalizePass()], image([n, h, w, c]))
    assert wrong == []
    equal = {v for v, here in ((own, own_pad), (inner, has_input), (outer, has_output)) if here}
    if len(equal) <= 1:
        assert "tensor.pad" not in str(module)
    event(f"{'same' if len(equal) <= 1 else 'different'} values, own {own_pad or 'none'}")
