"""Ops that are decomposed on tensors: the interpreter says what they mean, every phase and the C agree."""

from __future__ import annotations

from dataclasses import dataclass

import ml_dtypes
import numpy as np
import pytest

from irees.frontends.mlir import import_mlir
from irees.testing.oracles import Case, compiled_results, differences, interpret, phases_agree
from irees.testing.tolerances import EXACT, Tolerance, reassociated, ulps

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
    assert differences(compiled_results(module, cases), expected, cases) == []
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
