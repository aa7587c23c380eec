"""Attention and softmax that are made online, interpreted and compiled, are what they were."""

from __future__ import annotations

import numpy as np
from hypothesis import event, given, settings
from hypothesis import strategies as st

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
    region = draw(st.sampled_from(["%y = math.tanh %x : f32", "%y = arith.addf %x, %x : f32"]))
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


@settings(max_examples=80 * FACTOR)
@given(attentions())
def test_online_attention(program):
    text, inputs, _ = program
    tolerances = (reassociated(64),)
    module, wrong = passes_agree(text, [ONLINE], *inputs, tolerances=tolerances)
    assert wrong == []
    assert "online_attention" in str(module)
    apart = [ONLINE, load_pass("irees-decompose-attention")()]
    module, wrong = passes_agree(text, apart, *inputs, tolerances=tolerances)
    assert wrong == []
    assert "iree_linalg_ext" not in str(module)


@settings(max_examples=6 * FACTOR, deadline=None)
@given(attentions())
def test_online_attention_compiled(program):
    text, inputs, static = program
    event("static" if static else "dynamic")
    module = import_mlir(text)
    cases = [Case("main", tuple(inputs), (reassociated(64),))]
    expected = interpret(module, cases)
    ONLINE.apply(get_context(), module)
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
