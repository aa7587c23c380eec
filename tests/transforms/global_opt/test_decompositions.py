"""Ops that are decomposed on tensors: the interpreter says what they mean, every phase and the C agree."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

from irees.frontends.mlir import import_mlir
from irees.testing.oracles import Case, compiled_results, differences, interpret, phases_agree
from irees.testing.tolerances import EXACT, Tolerance, ulps

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
