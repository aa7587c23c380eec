"""Ops that are decomposed on tensors: the interpreter says what they mean, every phase and the C agree."""

from __future__ import annotations

from dataclasses import dataclass

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import irees
from irees.errors import UnsupportedError, VerifyError
from irees.frontends.mlir import import_mlir
from irees.testing import profiles
from irees.testing.oracles import (
    Case,
    compiled_results,
    differences,
    interpret,
    passes_agree,
    phases_agree,
)
from irees.testing.tolerances import EXACT, Tolerance, reassociated, ulps
from irees.transforms import load_pass

FACTOR = profiles.load()

DTYPES = {
    "f16": np.float16, "bf16": ml_dtypes.bfloat16, "f32": np.float32, "f64": np.float64,
    "i8": np.int8, "i32": np.int32, "i64": np.int64, "i1": np.bool_, "index": np.int64,
}  # fmt: skip


def agree(text: str, *inputs: np.ndarray, tolerance: Tolerance = EXACT) -> tuple[np.ndarray, ...]:
    """The results of @main, which are the same before, after every phase, and compiled."""
    module = import_mlir(text)
    results = len(next(iter(module.body.block.ops)).function_type.outputs)  # pyright: ignore
    cases = [Case("main", inputs, (tolerance,) * results)]
    expected = interpret(module, cases)
    assert phases_agree(module.clone(), cases, expected) == []
    assert differences(compiled_results(module, cases, opt_level=1), expected, cases) == []
    return expected["main"]


def tensor(shape: tuple[int, ...], element: str, dynamic: bool = False) -> str:
    return f"tensor<{''.join('?x' if dynamic else f'{n}x' for n in shape)}{element}>"


def normal(shape: tuple[int, ...], element: str = "f32", seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).normal(0, 2, shape).astype(DTYPES[element])


@pytest.mark.parametrize("dynamic", [False, True])
@pytest.mark.parametrize(
    ("shape", "dim", "element"),
    [
        ((4, 33), 1, "f32"), ((4, 33), 0, "f32"), ((3, 5, 17), 1, "f64"), ((7,), 0, "f32"),
        ((3, 300), 1, "f16"), ((3, 300), 1, "bf16"), ((1, 1), 1, "f32"), ((2, 3, 4, 9), 3, "f32"),
    ],
)  # fmt: skip
def test_softmax(shape, dim, element, dynamic):
    kind = tensor(shape, element, dynamic)
    text = f"""
func.func @main(%x: {kind}, %o: {kind}) -> {kind} {{
  %r = linalg.softmax dimension({dim}) ins(%x : {kind}) outs(%o : {kind}) -> {kind}
  return %r : {kind}
}}
"""
    x = normal(shape, element)
    (result,) = agree(text, x, np.zeros_like(x), tolerance=ulps(16))
    assert np.allclose(result.astype(np.float64).sum(axis=dim), 1, atol=0.02)


@settings(max_examples=40 * FACTOR)
@given(st.data())
def test_softmax_is_the_same_with_and_without_fusion(data):
    sizes = st.sampled_from([1, 2, 3, 17, 64])
    shape = tuple(data.draw(sizes) for _ in range(data.draw(st.integers(1, 3))))
    dim, dynamic = data.draw(st.integers(0, len(shape) - 1)), data.draw(st.booleans())
    kind = tensor(shape, "f32", dynamic)
    text = f"""
func.func @main(%x: {kind}, %o: {kind}) -> {kind} {{
  %r = linalg.softmax dimension({dim}) ins(%x : {kind}) outs(%o : {kind}) -> {kind}
  return %r : {kind}
}}
"""
    # Large numbers overflow exp unless the largest is taken off first.
    x = normal(shape, seed=data.draw(st.integers(0, 99))) * data.draw(st.sampled_from([1, 1000]))
    for number in data.draw(st.lists(st.sampled_from([np.inf, -np.inf, np.nan, 88.0]), max_size=2)):
        x.flat[data.draw(st.integers(0, x.size - 1))] = number
    for use_fusion in (False, True):
        passes = [load_pass("irees-decompose-softmax")(use_fusion=use_fusion)]
        _, wrong = passes_agree(text, passes, x, np.zeros_like(x), tolerances=(ulps(16),))
        assert wrong == []


def test_softmax_of_infinities():
    text = """
func.func @main(%x: tensor<4x5xf32>, %o: tensor<4x5xf32>) -> tensor<4x5xf32> {
  %r = linalg.softmax dimension(1) ins(%x : tensor<4x5xf32>) outs(%o : tensor<4x5xf32>) -> tensor<4x5xf32>
  return %r : tensor<4x5xf32>
}
"""
    x = normal((4, 5))
    x[0, 2], x[1, 3], x[2, 1], x[3] = np.inf, -np.inf, np.nan, -np.inf
    (result,) = agree(text, x, np.zeros_like(x), tolerance=ulps(16))
    assert np.isnan(result[[0, 2, 3]]).all(axis=1).tolist() == [True, True, True]
    assert result[1, 3] == 0


@dataclass(frozen=True)
class Layout:
    """The loops of the operands of an attention."""

    query: str
    key: str
    value: str
    out: str
    mask: str = ""
    rows: str = ""


SIZES = {"b": 2, "h": 3, "m": 5, "n": 6, "k": 8, "s": 9}
PLAIN = Layout("bmk", "bsk", "bsn", "bmn", "bms", "bm")


def attention(
    layout: Layout, element: str, mask: str | None, region: str, dynamic: bool, online: bool = False
) -> tuple[str, list[np.ndarray]]:
    used = layout.query + layout.key + layout.value
    loops = [d for d in "bhmnks" if d in used]
    operands = [layout.query, layout.key, layout.value]
    shapes = [tuple(SIZES[d] for d in dims) for dims in operands]
    names = ["q", "k", "v"]
    elements = [element] * 3
    if mask is not None:
        names.append("mask")
        operands.append(layout.mask)
        shapes.append(tuple(SIZES[d] for d in layout.mask))
        elements.append(mask)
    outs = [layout.out, *([layout.rows, layout.rows] if online else [])]
    out_kinds = [tensor(tuple(SIZES[d] for d in o), element, dynamic) for o in outs]
    kinds = [tensor(s, e, dynamic) for s, e in zip(shapes, elements)]
    maps = [
        f"affine_map<({', '.join(loops)}) -> ({', '.join(dims)})>"
        for dims in (*operands[:3], "", *operands[3:], *outs)
    ]
    ins = [f"%{n}" for n in names[:3]] + ["%scale"] + [f"%{n}" for n in names[3:]]
    types = [*kinds[:3], element, *kinds[3:]]
    out_names = [f"%o{i}" for i in range(len(outs))]
    arguments = [f"%{n}: {k}" for n, k in zip(names, kinds)]
    arguments += [f"{n}: {k}" for n, k in zip(out_names, out_kinds)]
    number = "0.25"
    results = ", ".join(f"%r#{i}" for i in range(len(outs))) if online else "%r"
    name = "online_attention" if online else "attention"
    text = f"""
func.func @main({", ".join(arguments)}) -> ({", ".join(out_kinds)}) {{
  %scale = arith.constant {number} : {element}
  %r{":3" if online else ""} = iree_linalg_ext.{name} {{indexing_maps = [{", ".join(maps)}]}}
      ins({", ".join(ins)} : {", ".join(types)}) outs({", ".join(out_names)} : {", ".join(out_kinds)}) {{
  ^bb0(%x: f32):
    {region}
    iree_linalg_ext.yield %y : f32
  }} -> {", ".join(out_kinds)}
  return {results} : {", ".join(out_kinds)}
}}
"""
    inputs = [normal(s, e, i) for i, (s, e) in enumerate(zip(shapes, elements))]
    inputs += [normal(tuple(SIZES[d] for d in o), element, 7) for o in outs]
    if online:
        inputs[-1] = np.abs(inputs[-1])
    if mask in ("i1", "i8"):
        inputs[3] = np.random.default_rng(5).integers(0, 2, shapes[3]).astype(DTYPES[mask])
        inputs[3][..., 0] = 1
    return text, inputs


SAME = "%y = arith.mulf %x, %x : f32"
CAUSAL = """
    %m = iree_linalg_ext.index 1 : index
    %s = iree_linalg_ext.index 2 : index
    %c = arith.cmpi sle, %s, %m : index
    %low = arith.constant -1.0e4 : f32
    %y = arith.select %c, %x, %low : f32"""
TANH = "%y = math.tanh %x : f32"


@pytest.mark.parametrize("dynamic", [False, True])
@pytest.mark.parametrize(
    ("layout", "element", "mask", "region"),
    [
        (PLAIN, "f32", None, TANH), (PLAIN, "f32", "f32", SAME), (PLAIN, "f32", "i1", TANH),
        (PLAIN, "f32", "i8", TANH), (PLAIN, "f16", "f16", TANH), (PLAIN, "f64", None, SAME),
        (PLAIN, "f32", None, CAUSAL), (PLAIN, "bf16", None, TANH),
        # Transposed operands and results, a mask that every batch shares.
        (Layout("mbk", "bks", "snb", "nbm", "ms"), "f32", "f32", TANH),
        # Heads that share keys and values.
        (Layout("bhmk", "bsk", "bsn", "bhmn", "bhms"), "f32", None, TANH),
        (Layout("mk", "sk", "sn", "mn"), "f32", None, TANH),
    ],
)  # fmt: skip
def test_attention(layout, element, mask, region, dynamic):
    text, inputs = attention(layout, element, mask, region, dynamic)
    agree(text, *inputs, tolerance=reassociated(64))


@pytest.mark.parametrize("dynamic", [False, True])
@pytest.mark.parametrize("element", ["f32", "f16"])
@pytest.mark.parametrize("mask", [None, "f32"])
def test_online_attention(element, mask, dynamic):
    text, inputs = attention(PLAIN, element, mask, TANH, dynamic, online=True)
    agree(text, *inputs, tolerance=reassociated(64))


@pytest.mark.parametrize("dynamic", [False, True])
@pytest.mark.parametrize(
    ("source", "indices", "out", "dimension_map", "index", "mask"),
    [
        ((8, 4), (3, 1), (3, 4), [0], "i32", None), ((8, 4), (3,), (3, 4), [0], "i64", None),
        ((8, 4), (3, 1), (3, 4), [0], "index", "i1"), ((8, 4), (3, 1), (3, 4), [0], "i8", "i8"),
        ((6, 7), (3, 5, 2), (3, 5), [1, 0], "i32", None),
        ((3, 4, 5), (2, 2), (2, 5), [0, 1], "i64", "i1"),
        ((3, 4, 5), (2,), (4, 5), [0, 1], "i64", None), ((9,), (2, 3), (2, 3), [0], "i64", "i1"),
    ],
)  # fmt: skip
def test_gather(source, indices, out, dimension_map, index, mask, dynamic):
    if indices == (2,) and len(dimension_map) == 2:
        out = (5,)  # one index, no batch
    kinds = [tensor(source, "f32", dynamic), tensor(indices, index, dynamic)]
    batch = out[: len(out) - (len(source) - len(dimension_map))]
    if mask is not None:
        kinds.append(tensor(batch, mask, dynamic))
    o = tensor(out, "f32", dynamic)
    ins = ", ".join(f"%x{i}" for i in range(len(kinds)))
    arguments = ", ".join(f"%x{i}: {k}" for i, k in enumerate(kinds))
    text = f"""
func.func @main({arguments}, %o: {o}) -> {o} {{
  %r = iree_linalg_ext.gather dimension_map = {dimension_map}
      ins({ins} : {", ".join(kinds)}) outs(%o : {o}) -> {o}
  return %r : {o}
}}
"""
    random = np.random.default_rng(0)
    # Some of them outside.
    inputs = [normal(source), random.integers(-3, 9, indices).astype(DTYPES[index])]
    if mask is not None:
        inputs.append(random.integers(0, 2, batch).astype(DTYPES[mask]))
    agree(text, *inputs, normal(out))


@pytest.mark.parametrize("dynamic", [False, True])
def test_map_load_and_map_store(dynamic):
    x, y, z = (tensor(s, "f32", dynamic) for s in ((5, 7), (9, 6), (35,)))
    text = f"""
func.func @main(%x: {x}, %y: {y}, %z: {z}) -> ({y}, {y}, {z}) {{
  %one = arith.constant 1 : index
  %two = arith.constant 2 : index
  %pad = arith.constant -7.0 : f32
  %a = iree_linalg_ext.map_load %x into %y {{
  ^bb0(%i: index, %j: index):
    %r = arith.subi %j, %one : index
    %c = arith.muli %i, %two : index
    iree_linalg_ext.yield %r, %c, %pad : index, index, f32
  }} : {x} into {y} -> {y}
  %b = iree_linalg_ext.map_store %x into %y {{
  ^bb0(%i: index, %j: index):
    %r = arith.muli %j, %two : index
    %c = arith.subi %i, %one : index
    %s = arith.addi %i, %j : index
    %odd = arith.remui %s, %two : index
    %w = arith.cmpi eq, %odd, %one : index
    iree_linalg_ext.yield %r, %c, %w : index, index, i1
  }} : {x} into {y} -> {y}
  %c = iree_linalg_ext.map_store %x into %z {{
  ^bb0(%i: index, %j: index):
    %t = arith.constant true
    %r = arith.addi %i, %j : index
    iree_linalg_ext.yield %r, %t : index, i1
  }} : {x} into {z} -> {z}
  return %a, %b, %c : {y}, {y}, {z}
}}
"""
    agree(text, normal((5, 7)), normal((9, 6)), normal((35,)))


@pytest.mark.parametrize("dynamic", ["", "shape", "tiles"])
@pytest.mark.parametrize(
    ("shape", "positions", "tiles", "order", "pad"),
    [
        ((8, 12), [0, 1], [4, 3], None, False), ((8, 12), [1, 0], [3, 4], [1, 0], False),
        ((9, 13), [0, 1], [4, 8], None, True), ((9, 13), [1, 0], [5, 2], [1, 0], True),
        ((5, 7, 9), [1], [4], [2, 0, 1], True), ((16,), [0], [1], None, False),
    ],
)  # fmt: skip
def test_pack_and_unpack(shape, positions, tiles, order, pad, dynamic):
    outer = [-(-n // dict(zip(positions, tiles)).get(d, 1)) for d, n in enumerate(shape)]
    packed = (*(outer[d] for d in order or range(len(shape))), *tiles)
    x = tensor(shape, "f32", bool(dynamic))
    sizes = ["?" if dynamic and i < len(shape) else str(n) for i, n in enumerate(packed)]
    given = [str(t) for t in tiles]
    if dynamic == "tiles":
        sizes = ["?"] * len(packed)
        given = [f"%t{i}" for i in range(len(tiles))]
    p = f"tensor<{'x'.join(sizes)}xf32>"
    constants = "".join(f"  %t{i} = tensor.dim %p, %d{i} : {p}\n" for i in range(len(tiles)))
    constants = "".join(
        f"  %d{i} = arith.constant {len(shape) + i} : index\n" for i in range(len(tiles))
    ) + constants  # fmt: skip
    padding = " padding_value(%pad : f32)" if pad else ""
    how = f"{f'outer_dims_perm = {order} ' if order else ''}inner_dims_pos = {positions} inner_tiles = [{', '.join(given)}]"
    text = f"""
func.func @main(%x: {x}, %p: {p}, %o: {x}) -> ({p}, {x}) {{
  %pad = arith.constant 3.0 : f32
{constants}
  %a = linalg.pack %x{padding} {how} into %p : {x} -> {p}
  %b = linalg.unpack %p {how} into %o : {p} -> {x}
  return %a, %b : {p}, {x}
}}
"""
    agree(text, normal(shape), normal(packed, seed=1), normal(shape, seed=2))


@pytest.mark.parametrize("dynamic", [False, True])
@pytest.mark.parametrize(
    ("shape", "dim", "predicate", "index", "how"),
    [
        ((4, 9), 1, "ogt", "i32", "counted"), ((4, 9), 0, "ole", "i64", "counted"),
        ((3, 4, 5), 1, "ogt", "index", "based"), ((3, 4, 5), 2, "olt", "i32", "given"),
        ((17,), 0, "oge", "i64", "counted"),
    ],
)  # fmt: skip
def test_arg_compare(shape, dim, predicate, index, how, dynamic):
    rest = shape[:dim] + shape[dim + 1 :]
    x, y, i, n = (
        tensor(s, e, dynamic)
        for s, e in ((shape, "f32"), (rest, "f32"), (rest, index), (shape, index))
    )
    ins = f"%x, %n : {x}, {n}" if how == "given" else f"%x : {x}"
    base = " index_base(%b : index)" if how == "based" else ""
    text = f"""
func.func @main(%x: {x}, %n: {n}, %v: {y}, %i: {i}) -> ({y}, {i}) {{
  %b = arith.constant 100 : index
  %r:2 = iree_linalg_ext.arg_compare dimension({dim}) ins({ins}) outs(%v, %i : {y}, {i}){base} {{
  ^bb0(%l: f32, %m: f32):
    %c = arith.cmpf {predicate}, %l, %m : f32
    iree_linalg_ext.yield %c : i1
  }} -> {y}, {i}
  return %r#0, %r#1 : {y}, {i}
}}
"""
    random = np.random.default_rng(1)
    values = random.integers(-3, 4, shape).astype(np.float32)  # with equal ones
    numbers = random.integers(0, 99, shape).astype(DTYPES[index])
    agree(text, values, numbers, np.zeros(rest, np.float32), np.full(rest, -1, DTYPES[index]))


@pytest.mark.parametrize("dynamic", [False, True])
@pytest.mark.parametrize(
    ("shape", "dim", "k", "given", "body"),
    [
        ((4, 30), 1, 3, False, "%c = arith.cmpf ogt, %l, %m : f32"),
        ((30, 4), 0, 5, True, "%c = arith.cmpf ole, %l, %m : f32"),
        # More than there are.
        ((2, 4), 1, 6, False, "%c = arith.cmpf ogt, %l, %m : f32"),
        ((2, 3, 9), 2, 2, False, """
    %a = math.absf %l : f32
    %b = math.absf %m : f32
    %c = arith.cmpf ogt, %a, %b : f32"""),
    ],
)  # fmt: skip
def test_topk(shape, dim, k, given, body, dynamic):
    best = tuple(k if d == dim else n for d, n in enumerate(shape))
    x, n, v, i = (
        tensor(s, e, dynamic)
        for s, e in ((shape, "f32"), (shape, "i32"), (best, "f32"), (best, "i32"))
    )
    ins = f"%x, %n : {x}, {n}" if given else f"%x : {x}"
    text = f"""
func.func @main(%x: {x}, %n: {n}, %v: {v}, %i: {i}) -> ({v}, {i}) {{
  %r:2 = iree_linalg_ext.topk dimension({dim}) ins({ins}) outs(%v, %i : {v}, {i}) {{
  ^bb0(%l: f32, %m: f32):
    {body}
    iree_linalg_ext.yield %c : i1
  }} -> {v}, {i}
  return %r#0, %r#1 : {v}, {i}
}}
"""
    random = np.random.default_rng(1)
    values = random.integers(-9, 9, shape).astype(np.float32)
    held = random.integers(-9, 9, best).astype(np.float32)
    numbers = random.integers(0, 99, shape).astype(np.int32)
    agree(text, values, numbers, held, np.full(best, -1, np.int32))


@pytest.mark.parametrize("dynamic", [False, True])
@pytest.mark.parametrize("padded", ["", "input", "output"])
@pytest.mark.parametrize("order", ["bmk", "kbm"])
def test_im2col(order, padded, dynamic):
    n, h, w, c, kh, kw = 2, 9, 8, 3, 3, 2
    oh, ow = (h - 2 * (kh - 1) - 1) // 2 + 1, w - kw + 1  # stride 2 and dilation 2 along h
    if padded == "input":
        oh, ow = oh + 1, ow + 1
    m, k = oh * ow, kh * kw * c
    extra = 5 if padded == "output" else 0
    shape = {"b": n, "m": m, "k": k + extra}
    perm = ["bmk".index(d) for d in order]
    out = tuple(shape[d] for d in order)
    pads = {
        "": "",
        "input": "input_pad_low = [0, 1, 0, 0] input_pad_high = [0, 1, 1, 0] pad_value(%pad : f32)",
        "output": f"output_pad_low = [0, 0, 0] output_pad_high = {[extra if d == 'k' else 0 for d in order]} pad_value(%pad : f32)",
    }[padded]
    x, o = tensor((n, h, w, c), "f32", dynamic), tensor(out, "f32", dynamic)
    channels = "%c" if dynamic else str(c)
    text = f"""
func.func @main(%x: {x}, %o: {o}) -> {o} {{
  %pad = arith.constant -5.0 : f32
  %three = arith.constant 3 : index
  %c = tensor.dim %x, %three : {x}
  %r = iree_linalg_ext.im2col strides = [2, 1] dilations = [2, 1] kernel_size = [{kh}, {kw}]
      offsets = [0, 0, 0] output_sizes = [[{n}], [{oh}, {ow}], [{channels}, {kh}, {kw}]]
      batch_pos = [0] m_pos = [1, 2] k_pos = [3] input_k_perm = [2, 0, 1] output_perm = {perm}
      {pads} ins(%x : {x}) outs(%o : {o}) -> {o}
  return %r : {o}
}}
"""
    image = normal((n, h, w, c))
    (result,) = agree(text, image, np.zeros(out, np.float32))
    matrix = result.transpose([order.index(d) for d in "bmk"])
    low = (1, 0) if padded == "input" else (0, 0)
    whole = np.pad(image, [(0, 0), (low[0], 1), (0, 1), (0, 0)], constant_values=-5)
    for row, column in ((0, 0), (m - 1, k - 1), (ow + 1, 7)):
        y, z = divmod(row, ow)
        i, p, q = np.unravel_index(column, (c, kh, kw))
        assert matrix[1, row, column] == whole[1, 2 * y + 2 * p, z + q, i]
    assert (matrix[:, :, k:] == -5).all()


@pytest.mark.parametrize("dynamic", [False, True])
@pytest.mark.parametrize("element", ["f32", "f16"])
def test_exp_reduction(element, dynamic):
    x, w, m, s, o = (
        tensor(shape, element, dynamic) for shape in ((4, 9), (9, 5), (4,), (4,), (4, 5))
    )
    text = f"""
func.func @main(%x: {x}, %w: {w}, %m: {m}, %s: {s}, %o: {o}) -> ({m}, {s}, {m}, {o}) {{
  %a:2 = iree_linalg_ext.exp_reduction {{
      indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i)>, affine_map<(i, j) -> (i)>],
      iterator_types = [#iree_linalg_ext.iterator_type<parallel>, #iree_linalg_ext.iterator_type<reduction>],
      exp_reduced_operands = [1]}} ins(%x : {x}) outs(%m, %s : {m}, {s}) {{
  ^bb0(%p: {element}, %max: {element}, %sum: {element}):
    %add = arith.addf %p, %sum : {element}
    iree_linalg_ext.yield %max, %add : {element}, {element}
  }} -> {m}, {s}
  %b:2 = iree_linalg_ext.exp_reduction {{
      indexing_maps = [affine_map<(i, k, j) -> (i, j)>, affine_map<(i, k, j) -> (j, k)>,
                       affine_map<(i, k, j) -> (i)>, affine_map<(i, k, j) -> (i, k)>],
      iterator_types = [#iree_linalg_ext.iterator_type<parallel>, #iree_linalg_ext.iterator_type<parallel>,
                        #iree_linalg_ext.iterator_type<reduction>],
      exp_reduced_operands = [1]}} ins(%x, %w : {x}, {w}) outs(%m, %o : {m}, {o}) {{
  ^bb0(%p: {element}, %v: {element}, %max: {element}, %sum: {element}):
    %q = arith.mulf %p, %v : {element}
    %add = arith.addf %sum, %q : {element}
    iree_linalg_ext.yield %max, %add : {element}, {element}
  }} -> {m}, {o}
  return %a#0, %a#1, %b#0, %b#1 : {m}, {s}, {m}, {o}
}}
"""
    values = [normal(n, element) for n in ((4, 9), (9, 5), (4,), (4,), (4, 5))]
    values[2][1] = -np.inf
    result = agree(text, *values, tolerance=reassociated(32))
    x, w, m, s, o = (v.astype(np.float64) for v in values)
    new = np.maximum(m, x.max(axis=1))
    p, f = np.exp2(x - new[:, None]), np.exp2(m - new)
    close = {"rtol": 1e-2, "atol": 1e-2} if element == "f16" else {"rtol": 1e-5, "atol": 1e-5}
    assert np.allclose(result[1], s * f + p.sum(axis=1), **close)
    assert np.allclose(result[3], o * f[:, None] + p @ w, **close)


@pytest.mark.parametrize("dynamic", [False, True])
@pytest.mark.parametrize("given", [False, True])
def test_fft(given, dynamic):
    n = 16
    x = tensor((3, n), "f32", dynamic)
    lines, ins = [], []
    for stage in (1, 2, 3, 4):
        w = f"tensor<{1 << stage >> 1}xf32>"
        angle = -2 * np.pi * np.arange(1 << stage >> 1) / (1 << stage)
        if given:
            for name, values in (("c", np.cos(angle)), ("s", np.sin(angle))):
                text = ", ".join(repr(float(np.float32(v))) for v in values)
                lines.append(f"%{name}{stage} = arith.constant dense<[{text}]> : {w}")
        lines.append(f"%k{stage} = arith.constant {stage} : index")
        # The last stage is not known to the compiler.
        number = "%last" if stage == 4 else f"%k{stage}"
        ins = f"{number}, %c{stage}, %s{stage} : index, {w}, {w}" if given else f"{number} : index"
        a, b = (f"%{v}{stage - 1}" for v in "ab") if stage > 1 else ("%re", "%im")
        lines.append(
            f"%a{stage}, %b{stage} = iree_linalg_ext.fft ins({ins}) outs({a}, {b} : {x}, {x}) : {x}, {x}"
        )
    body = "\n  ".join(lines)
    text = f"""
func.func @main(%re: {x}, %im: {x}, %last: index) -> ({x}, {x}) {{
  {body}
  return %a4, %b4 : {x}, {x}
}}
"""
    values = normal((3, n)) + 1j * normal((3, n), seed=1)
    order = [int(f"{i:04b}"[::-1], 2) for i in range(n)]
    reversed_ = values[:, order]
    inputs = [np.ascontiguousarray(v, np.float32) for v in (reversed_.real, reversed_.imag)]
    real, imaginary = agree(text, *inputs, np.array(4, np.int64)[()], tolerance=reassociated(16))
    assert np.allclose(real + 1j * imaginary, np.fft.fft(values), atol=1e-3)


@pytest.mark.parametrize(("height", "width"), [(3, 3), (1, 3), (3, 1)])
@pytest.mark.parametrize(("fmr", "m", "r"), [("F_2_3", 2, 3), ("F_4_3", 4, 3), ("F_2_5", 2, 5)])
def test_winograd_of_linalg(fmr, m, r, height, width):
    kh, kw = (r if height > 1 else 1), (r if width > 1 else 1)
    mh, mw = (m if height > 1 else 1), (m if width > 1 else 1)
    th, tw, n, c, f = 2, 3, 2, 3, 4
    ah, aw = mh + kh - 1, mw + kw - 1
    x, g, y = (n, th * mh + kh - 1, tw * mw + kw - 1, c), (f, kh, kw, c), (n, th * mh, tw * mw, f)
    u, v, t = (ah, aw, th, tw, n, c), (ah, aw, c, f), (ah, aw, th, tw, n, f)
    X, G, Y, U, V, T = (tensor(shape, "f32") for shape in (x, g, y, u, v, t))
    maps = ", ".join(
        f"affine_map<(a, b, h, w, n, f, c) -> ({o})>"
        for o in ("a, b, h, w, n, c", "a, b, c, f", "a, b, h, w, n, f")
    )
    text = f"""
func.func @main(%x: {X}, %g: {G}, %y: {Y}, %u: {U}, %v: {V}, %t: {T}) -> ({U}, {V}, {Y}) {{
  %1 = linalg.winograd_input_transform fmr({fmr}) ins(%x : {X}) outs(%u : {U}) -> {U}
  %2 = linalg.winograd_filter_transform fmr({fmr}) ins(%g : {G}) outs(%v : {V}) -> {V}
  %3 = linalg.generic {{indexing_maps = [{maps}], iterator_types = ["parallel", "parallel",
      "parallel", "parallel", "parallel", "parallel", "reduction"]}}
      ins(%1, %2 : {U}, {V}) outs(%t : {T}) {{
  ^bb0(%p: f32, %q: f32, %s: f32):
    %m = arith.mulf %p, %q : f32
    %a = arith.addf %s, %m : f32
    linalg.yield %a : f32
  }} -> {T}
  %4 = linalg.winograd_output_transform fmr({fmr}) ins(%3 : {T}) outs(%y : {Y}) -> {Y}
  return %1, %2, %4 : {U}, {V}, {Y}
}}
"""
    image, kernel, init = normal(x), normal(g, seed=1), normal(y, seed=2)
    zeros = [np.zeros(shape, np.float32) for shape in (u, v, t)]
    (*_, result) = agree(text, image, kernel, init, *zeros, tolerance=reassociated(1000))
    expected = init + convolution(image, kernel)
    assert np.allclose(result, expected, atol=2e-3)


def convolution(image: np.ndarray, kernel: np.ndarray) -> np.ndarray:
    """NHWC by FHWC, in f64."""
    windows = np.lib.stride_tricks.sliding_window_view(image, kernel.shape[1:3], (1, 2))
    return np.einsum("nhwcab,fabc->nhwf", windows.astype(np.float64), kernel.astype(np.float64))


# f16 of dynamic shapes is left out: its sums in f32 are a tile of 480 along each of 5 loops.
@pytest.mark.parametrize(
    ("layout", "element", "dynamic"),
    [
        ("nhwc", "f32", False), ("nchw", "f16", False), ("nchw", "f32", True),
    ],
)  # fmt: skip
def test_winograd_of_iree(layout, element, dynamic):
    n, h, w, c, f, tiles = 2, 10, 9, 3, 4, (2, 2)
    last = layout == "nhwc"
    x, g, y = (
        ((n, h, w, c), (3, 3, c, f), (n, 12, 12, f))
        if last
        else ((n, c, h, w), (f, c, 3, 3), (n, f, 12, 12))
    )
    u, v, t = (8, 8, n, *tiles, c), (8, 8, c, f), (8, 8, n, *tiles, f)
    X, G, Y, U, V, T = (tensor(s, element, dynamic) for s in (x, g, y, u, v, t))
    dims, kernel_dims = ("[1, 2]", "[0, 1]") if last else ("[2, 3]", "[2, 3]")
    size = "output_tile_size(6) kernel_size(3)"
    text = f"""
func.func @main(%x: {X}, %g: {G}, %t: {T}, %u: {U}, %v: {V}, %y: {Y}) -> ({U}, {V}, {Y}) {{
  %1 = iree_linalg_ext.winograd.input_transform {size} image_dimensions({dims}) ins(%x : {X}) outs(%u : {U}) -> {U}
  %2 = iree_linalg_ext.winograd.filter_transform {size} kernel_dimensions({kernel_dims}) ins(%g : {G}) outs(%v : {V}) -> {V}
  %3 = iree_linalg_ext.winograd.output_transform {size} image_dimensions({dims}) ins(%t : {T}) outs(%y : {Y}) -> {Y}
  return %1, %2, %3 : {U}, {V}, {Y}
}}
"""
    image, kernel = normal(x, element), normal(g, element, 1)
    init = [np.zeros(shape, DTYPES[element]) for shape in (u, v, y)]
    tile = normal(t, element, 2)
    first, second, _ = agree(text, image, kernel, tile, *init, tolerance=reassociated(64))
    product = np.einsum("ijnhwc,ijcf->ijnhwf", first.astype(np.float64), second.astype(np.float64))
    *_, result = agree(
        text, image, kernel, product.astype(DTYPES[element]), *init, tolerance=reassociated(1000)
    )
    if element == "f32":
        if not last:
            image, kernel = image.transpose(0, 2, 3, 1), kernel.transpose(0, 2, 3, 1)
            result = result.transpose(0, 2, 3, 1)
        else:
            kernel = kernel.transpose(3, 0, 1, 2)
        assert np.allclose(result[:, : h - 2, : w - 2], convolution(image, kernel), atol=5e-3)


@pytest.mark.parametrize("dynamic", [False, True])
def test_custom_op(dynamic):
    a, b, c, d, e = (
        tensor(shape, "f32", dynamic) for shape in ((6, 4), (4, 5), (5, 3), (6, 5), (6, 3))
    )
    any_ = "tensor<?x?xf32>"
    kinds = f"{a}, {b}, {c}"
    text = f"""
func.func @main(%a: {a}, %b: {b}, %c: {c}, %d: {d}, %e: {e}) -> ({d}, {e}) {{
  %s = arith.constant 2.0 : f32
  %r:2 = iree_linalg_ext.custom_op {{
      indexing_maps = [affine_map<(d0, d1)[s0, s1] -> (d0, s0)>, affine_map<(d0, d1)[s0, s1] -> (s0, s1)>,
                       affine_map<(d0, d1)[s0, s1] -> (s1, d1)>, affine_map<(d0, d1)[s0, s1] -> ()>,
                       affine_map<(d0, d1)[s0, s1] -> (d0, s1)>, affine_map<(d0, d1)[s0, s1] -> (d0, d1)>],
      iterator_types = [#iree_linalg_ext.iterator_type<parallel>, #iree_linalg_ext.iterator_type<parallel>]}}
      ins(%a, %b, %c, %s : {kinds}, f32) outs(%d, %e : {d}, {e}) {{
  ^bb0(%t0: {any_}, %t1: {any_}, %t2: {any_}, %t3: f32, %t4: {any_}, %t5: {any_}):
    %0 = linalg.matmul ins(%t0, %t1 : {any_}, {any_}) outs(%t4 : {any_}) -> {any_}
    %1 = linalg.softmax dimension(1) ins(%0 : {any_}) outs(%t4 : {any_}) -> {any_}
    %2 = linalg.matmul ins(%1, %t2 : {any_}, {any_}) outs(%t5 : {any_}) -> {any_}
    %3 = linalg.map {{ arith.mulf }} ins(%2, %2 : {any_}, {any_}) outs(%2 : {any_})
    iree_linalg_ext.yield %1, %3 : {any_}, {any_}
  }} -> {d}, {e}
  return %r#0, %r#1 : {d}, {e}
}}
"""
    inputs = [normal(s, seed=i) for i, s in enumerate(((6, 4), (4, 5), (5, 3), (6, 5), (6, 3)))]
    agree(text, *inputs, tolerance=reassociated(64))


def test_edges_of_moves():
    text = """
func.func @main(%x: tensor<?x4xf32>, %i: tensor<3xi32>, %m: tensor<3xi8>, %u: tensor<3x4xf32>,
                %o: tensor<f32>, %n: index) -> (tensor<3x4xf32>, tensor<?x4xf32>, tensor<f32>) {
  %a = iree_linalg_ext.gather dimension_map = [0]
      ins(%x, %i : tensor<?x4xf32>, tensor<3xi32>) outs(%u : tensor<3x4xf32>) -> tensor<3x4xf32>
  %b = iree_linalg_ext.scatter dimension_map = [0] unique_indices(true)
      ins(%u, %i, %m : tensor<3x4xf32>, tensor<3xi32>, tensor<3xi8>) outs(%x : tensor<?x4xf32>) {
  ^bb0(%l: f32, %r: f32):
    iree_linalg_ext.yield %l : f32
  } -> tensor<?x4xf32>
  %c = iree_linalg_ext.map_store %u into %o {
  ^bb0(%p: index, %q: index):
    %w = arith.cmpi slt, %q, %n : index
    iree_linalg_ext.yield %w : i1
  } : tensor<3x4xf32> into tensor<f32> -> tensor<f32>
  return %a, %b, %c : tensor<3x4xf32>, tensor<?x4xf32>, tensor<f32>
}
"""
    indices, mask = np.array([0, 1, -1], np.int32), np.array([2, 0, 1], np.int8)
    for rows, wanted in ((0, 0), (2, 2)):
        x, o, n = normal((rows, 4)), normal(()), np.array(wanted, np.int64)[()]
        agree(text, x, indices, mask, normal((3, 4), seed=1), o, n)


def test_an_op_that_has_no_decomposition_is_unsupported():
    kinds = "tensor<3x3x5x4xf32>", "tensor<6x6x5x4xf32>"
    text = f"""
func.func @main(%x: {kinds[0]}, %o: {kinds[1]}) -> {kinds[1]} {{
  %r = iree_linalg_ext.winograd.filter_transform output_tile_size(4) kernel_size(3)
      kernel_dimensions([0, 1]) ins(%x : {kinds[0]}) outs(%o : {kinds[1]}) -> {kinds[1]}
  return %r : {kinds[1]}
}}
"""
    with pytest.raises(UnsupportedError, match=r"winograd\.filter_transform"):
        irees.compile(text)


TILED = """func.func @main(%x: tensor<4x8xf32>) -> tensor<4x8xf32> {
  %r = iree_linalg_ext.custom_op {indexing_maps = [affine_map<(i) -> (i, 0)>],
      iterator_types = [#iree_linalg_ext.iterator_type<parallel>]} outs(%x : tensor<4x8xf32>) {
  ^bb0(%b: tensor<?xf32>):
    %0 = linalg.exp ins(%b : tensor<?xf32>) outs(%b : tensor<?xf32>) -> tensor<?xf32>
    iree_linalg_ext.yield %0 : tensor<?xf32>
  } -> tensor<4x8xf32>
  return %r : tensor<4x8xf32>
}"""
STAGE = """func.func @main(%a: tensor<8xf32>) -> (tensor<8xf32>, tensor<8xf32>) {
  %s = arith.constant NUMBER : index
  %r, %i = iree_linalg_ext.fft ins(%s : index) outs(%a, %a : tensor<8xf32>, tensor<8xf32>)
      : tensor<8xf32>, tensor<8xf32>
  return %r, %i : tensor<8xf32>, tensor<8xf32>
}"""
ATTENTION = """func.func @main(%q: tensor<2x16x64xf32>, %k: tensor<2x32x64xf32>, %v: tensor<2x32x8xf32>,
    %o: tensor<4x3x8xf32>) -> tensor<4x3x8xf32> {
  %0 = tm_tensor.attention ins(%q, %k, %v : tensor<2x16x64xf32>, tensor<2x32x64xf32>,
      tensor<2x32x8xf32>) outs(%o : tensor<4x3x8xf32>) -> tensor<4x3x8xf32>
  return %0 : tensor<4x3x8xf32>
}"""
UNDECOMPOSED = {
    "a tile of another rank": (TILED, "2:.*custom_op: operand type and result type are cast inc"),
    "no stage": (STAGE.replace("NUMBER", "0"), "3:.*fft: the stage must be in .*, but is 0"),
    "a huge stage": (STAGE.replace("NUMBER", "1099511627776"), "3:.*fft: the stage must be in"),
    "an attention of two batches": (ATTENTION, "3:.*tm_tensor.attention: shape mismatch along d0"),
}  # fmt: skip


@pytest.mark.parametrize("kind", UNDECOMPOSED)
def test_what_has_no_decomposition_is_refused(kind):
    text, message = UNDECOMPOSED[kind]
    with pytest.raises(VerifyError, match=message):
        irees.compile(text)


def test_complex_elements_that_are_read_are_zeros():
    text = """func.func @main(%x: tensor<2xcomplex<f32>>) -> tensor<4xcomplex<f32>> {
  %e = tensor.empty() : tensor<4xcomplex<f32>>
  %r = tensor.insert_slice %x into %e[1] [2] [1]
      : tensor<2xcomplex<f32>> into tensor<4xcomplex<f32>>
  return %r : tensor<4xcomplex<f32>>
}"""
    module = irees.compile(text, to="global-opt")
    assert "complex.constant [0.000000e+00 : f32, 0.000000e+00 : f32]" in str(module)


MASKED = """func.func @main(%q: tensor<2x8xf32>, %k: tensor<4x8xf32>, %scale: f32, %o: tensor<2x8xf32>)
    -> tensor<2x8xf32> {
  %r = iree_linalg_ext.attention {indexing_maps = [affine_map<(m, n, k1, k2) -> QUERY>,
      affine_map<(m, n, k1, k2) -> (k2, k1)>, affine_map<(m, n, k1, k2) -> VALUE>,
      affine_map<(m, n, k1, k2) -> ()>, affine_map<(m, n, k1, k2) -> (m, n)>]}
      ins(%q, %k, %k, %scale : tensor<2x8xf32>, tensor<4x8xf32>, tensor<4x8xf32>, f32)
      outs(%o : tensor<2x8xf32>) {
  ^bb0(%x: f32):
    %i = iree_linalg_ext.index INDEX : index
    %c = arith.index_cast %i : index to i32
    %f = arith.sitofp %c : i32 to f32
    %y = arith.addf %x, %f : f32
    iree_linalg_ext.yield %y : f32
  } -> tensor<2x8xf32>
  return %r : tensor<2x8xf32>
}"""


@pytest.mark.parametrize(
    ("query", "value", "index", "message"),
    [
        ("(m, k1)", "(k2, n)", "2", r"expected dim \(2\) to be lower than the number of loops"),
        ("(m, n)", "(k2, n)", "1", "its indexing maps are not those of an attention; K1 is in"),
        ("(m, k1)", "(n, n)", "1", "must be projected permutations|shape mismatch"),
    ],
)
def test_maps_of_no_attention_are_refused(query, value, index, message):
    text = MASKED.replace("QUERY", query).replace("VALUE", value).replace("INDEX", index)
    with pytest.raises((UnsupportedError, VerifyError), match=message):
        irees.compile(text)
    if index == "2":
        irees.compile(text.replace("index 2 :", "index 1 :"), to="codegen")


@pytest.mark.parametrize("rows", ["", "?x", "3x", "?x17x"])
@pytest.mark.parametrize("count", [2, 3, 4, 5])
def test_stacked_tensors(rows, count):
    """Up to four are selected from, more are inserted."""
    part, whole = f"tensor<{rows}1xi32>", f"tensor<{rows}{count}xi32>"
    names = [f"%x{n}" for n in range(count)]
    program = irees.compile(f"""func.func @main({", ".join(f"{n}: {part}" for n in names)}) -> {whole} {{
  %r = tensor.concat dim({rows.count("x")}) {", ".join(names)} : ({", ".join([part] * count)}) -> {whole}
  return %r : {whole}
}}""")
    shape = [2 if n == "?" else int(n) for n in rows.split("x")[:-1]]
    arrays = [
        np.arange(n, n + np.prod([*shape, 1]), dtype=np.int32).reshape(*shape, 1)
        for n in range(count)
    ]
    np.testing.assert_array_equal(program(*arrays), np.concatenate(arrays, -1))
