"""Attention and softmax that are made online, interpreted and compiled, are what they were."""

from __future__ import annotations

import numpy as np
from hypothesis import event, given, settings
from hypothesis import strategies as st
from xdsl.dialects.builtin import TensorType

from irees.dialects import get_context
from irees.frontends.mlir import import_mlir
from irees.testing import profiles
from irees.testing.oracles import Case, compiled_results, differences, interpret, passes_agree
from irees.testing.tolerances import reassociated, ulps
from irees.transforms import load_pass

FACTOR = profiles.load()
ONLINE = load_pass("irees-convert-attention-to-online-attention")()
SIZES = {"b": 2, "m": 5, "n": 6, "k": 8, "s": 9}


@st.composite
def attentions(draw) -> tuple[str, list[np.ndarray], bool]:
    """A program of one attention, its inputs, and whether its sizes are static."""
    batch = draw(st.sampled_from(["", "b"]))
    element = draw(st.sampled_from(["f32", "f32", "f64", "f16"]))
    dynamic = draw(st.booleans())
    mask_kind = draw(st.sampled_from([None, element, "i1"]))
    sizes = SIZES | {"s": draw(st.sampled_from([1, 2, 9])), "m": draw(st.sampled_from([1, 5]))}
    q, k, v, out = ("".join(draw(st.permutations(batch + d))) for d in ("mk", "sk", "sn", "mn"))
    mask = "".join(draw(st.permutations(draw(st.sampled_from(["s", "ms", batch + "ms"])))))
    loops = batch + "mnks"
    kinds = {"f16": np.float16, "f32": np.float32, "f64": np.float64, "i1": np.bool_}

    def kind(dims: str, element: str) -> str:
        shape = "".join("?x" if dynamic else f"{sizes[d]}x" for d in dims)
        return f"tensor<{shape}{element}>"

    operands = [("%q", q, element), ("%k", k, element), ("%v", v, element)]
    if mask_kind is not None:
        operands.append(("%mask", mask, mask_kind))
    names = [n for n, *_ in operands]
    types = [kind(d, e) for _, d, e in operands]
    names.insert(3, "%scale")
    types.insert(3, element)
    maps = [d for _, d, _ in operands]
    maps.insert(3, "")
    maps.append(out)
    indexing = ", ".join(f"affine_map<({', '.join(loops)}) -> ({', '.join(d)})>" for d in maps)
    o = kind(out, element)
    arguments = ", ".join(f"{n}: {t}" for n, t in zip(names, types, strict=True) if n != "%scale")
    causal = f"""%row = iree_linalg_ext.index {len(batch)} : index
    %key = iree_linalg_ext.index {len(batch) + 1} : index
    %c = arith.cmpi ule, %key, %row : index
    %low = arith.constant -1.0e4 : f32
    %y = arith.select %c, %x, %low : f32"""
    region = draw(st.sampled_from(["%y = math.tanh %x : f32", causal]))
    text = f"""
func.func @main({arguments}, %o: {o}) -> {o} {{
  %scale = arith.constant 0.25 : {element}
  %r = iree_linalg_ext.attention {{indexing_maps = [{indexing}]}}
      ins({", ".join(names)} : {", ".join(types)}) outs(%o : {o}) {{
  ^bb0(%x: f32):
    {region}
    iree_linalg_ext.yield %y : f32
  }} -> {o}
  return %r : {o}
}}
"""
    random = np.random.default_rng(draw(st.integers(0, 99)))
    inputs: list[np.ndarray] = []
    factor = draw(st.sampled_from([1, 1, 30]))
    for _, dims, own in [*operands, ("%o", out, element)]:
        array = random.normal(0, 2, [sizes[d] for d in dims])
        inputs.append(array > 0 if own == "i1" else array.astype(kinds[own]))
    inputs[0] *= kinds[element](factor)
    if mask_kind == element and draw(st.booleans()):
        inputs[3][inputs[3] < 0] = -np.inf
    if draw(st.integers(0, 4)) == 0:
        number = draw(st.sampled_from([np.nan, np.inf, -np.inf]))
        inputs[1].flat[draw(st.integers(0, inputs[1].size - 1))] = number
    return text, inputs, not dynamic


TOLERANCES = (reassociated(64),)


@settings(max_examples=80 * FACTOR)
@given(attentions(), st.sampled_from([None, 1, 2, 4]))
def test_online_attention(program, keys):
    text, inputs, _ = program
    passes = [ONLINE]
    if keys is not None:
        passes.append(load_pass("irees-tile-attention-reduction")(keys=keys))
    module, wrong = passes_agree(text, passes, *inputs, tolerances=TOLERANCES)
    assert wrong == []
    assert "online_attention" in str(module)
    event("a loop" if "scf.for" in str(module) else "no loop")
    passes.append(load_pass("irees-decompose-attention")())
    module, wrong = passes_agree(text, passes, *inputs, tolerances=TOLERANCES)
    assert wrong == []
    assert "iree_linalg_ext" not in str(module)


def test_blocks_of_keys_are_all_that_is_made():
    q, k, o = "tensor<32x8xf32>", "tensor<60x8xf32>", "tensor<32x8xf32>"
    loops = "(m, n, k1, k2)"
    maps = ", ".join(
        f"affine_map<{loops} -> ({d})>" for d in ("m, k1", "k2, k1", "k2, n", "", "m, n")
    )
    module = import_mlir(f"""
func.func @main(%q: {q}, %k: {k}, %o: {o}) -> {o} {{
  %scale = arith.constant 0.25 : f32
  %r = iree_linalg_ext.attention {{indexing_maps = [{maps}]}}
      ins(%q, %k, %k, %scale : {q}, {k}, {k}, f32) outs(%o : {o}) {{
  ^bb0(%x: f32):
    iree_linalg_ext.yield %x : f32
  }} -> {o}
  return %r : {o}
}}
""")
    ctx = get_context()
    for each in (ONLINE, load_pass("irees-tile-attention-reduction")(keys=15)):
        each.apply(ctx, module)
    load_pass("irees-decompose-attention")().apply(ctx, module)
    shapes = {
        r.type.get_shape() for o in module.walk() for r in o.results
        if isinstance(r.type, TensorType)
    }  # fmt: skip
    assert shapes == {(32, 8), (32,), (15, 8), (32, 15)}


@settings(max_examples=8 * FACTOR, deadline=None)
@given(attentions(), st.sampled_from([None, 4]))
def test_online_attention_compiled(program, keys):
    text, inputs, static = program
    event("static" if static else "dynamic")
    module, ctx = import_mlir(text), get_context()
    cases = [Case("main", tuple(inputs), TOLERANCES)]
    expected = interpret(module, cases)
    ONLINE.apply(ctx, module)
    if keys is not None:
        load_pass("irees-tile-attention-reduction")(keys=keys).apply(ctx, module)
    assert differences(compiled_results(module, cases), expected, cases) == []


@st.composite
def softmaxes(draw) -> tuple[str, np.ndarray]:
    """A program of one softmax, and a row of anything."""
    shape = draw(st.lists(st.sampled_from([1, 2, 3, 17, 64]), min_size=1, max_size=3))
    dim, dynamic = draw(st.integers(0, len(shape) - 1)), draw(st.booleans())
    element = draw(st.sampled_from(["f32", "f32", "f64", "f16"]))
    kind = f"tensor<{''.join('?x' if dynamic else f'{n}x' for n in shape)}{element}>"
    text = f"""
func.func @main(%x: {kind}, %o: {kind}) -> {kind} {{
  %r = linalg.softmax dimension({dim}) ins(%x : {kind}) outs(%o : {kind}) -> {kind}
  return %r : {kind}
}}
"""
    dtype = {"f16": np.float16, "f32": np.float32, "f64": np.float64}[element]
    most = float(np.finfo(dtype).max)
    x = np.random.default_rng(draw(st.integers(0, 99))).normal(0, 2, shape)
    x = (x * draw(st.sampled_from([1, 100, most / 100]))).astype(dtype)
    if draw(st.booleans()):
        # The maximum grows at every step.
        x.sort(axis=dim)
    special = [np.inf, -np.inf, np.nan, most, -most, 88.0, 0.0]
    for number in draw(st.lists(st.sampled_from(special), max_size=3)):
        x.flat[draw(st.integers(0, x.size - 1))] = number
    if draw(st.integers(0, 3)) == 0:
        at: list[slice | int] = [draw(st.integers(0, n - 1)) for n in shape]
        at[dim] = slice(0, draw(st.integers(1, shape[dim])))
        x[tuple(at)] = -np.inf
    return text, x


ONLINE_SOFTMAX = load_pass("irees-decompose-softmax")(online=True)


@settings(max_examples=100 * FACTOR)
@given(softmaxes())
def test_online_softmax(program):
    text, x = program
    tolerances = (reassociated(64) | ulps(16),)
    module, wrong = passes_agree(text, [ONLINE_SOFTMAX], x, np.zeros_like(x), tolerances=tolerances)
    assert wrong == []
    assert str(module).count("linalg.generic") == 2


@settings(max_examples=8 * FACTOR, deadline=None)
@given(softmaxes())
def test_online_softmax_compiled(program):
    text, x = program
    module = import_mlir(text)
    cases = [Case("main", (x, np.zeros_like(x)), (reassociated(64) | ulps(16),))]
    expected = interpret(module, cases)
    ONLINE_SOFTMAX.apply(get_context(), module)
    assert differences(compiled_results(module, cases), expected, cases) == []
