"""What lit cannot say of loops: that no access of theirs is outside, for any size."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

import irees
from irees.frontends.mlir import import_mlir
from irees.target import default_threads
from irees.testing.oracles import Case, compiled_agrees, interpret, phases_agree

TOPK = """
func.func @main(%x: tensor<?x?xf32>, %v: tensor<?x?xf32>, %i: tensor<?x?xi64>) -> (tensor<?x?xf32>, tensor<?x?xi64>) {
  %s:2 = iree_linalg_ext.topk_v2 dimension(1) is_sorted ins(%x : tensor<?x?xf32>) outs(%v, %i : tensor<?x?xf32>, tensor<?x?xi64>) {
  ^bb0(%a: f32, %b: f32):
    %more = arith.cmpf ogt, %a, %b : f32
    iree_linalg_ext.yield %more : i1
  } -> tensor<?x?xf32>, tensor<?x?xi64>
  return %s#0, %s#1 : tensor<?x?xf32>, tensor<?x?xi64>
}
"""


@pytest.mark.parametrize(("n", "k"), [(5, 0), (5, 1), (5, 5), (0, 0)])
def test_the_first_k_of_a_row(n, k):
    module = import_mlir(TOPK)
    x = np.random.default_rng(0).integers(-3, 4, (3, n)).astype(np.float32)
    cases = [Case("main", (x, np.zeros((3, k), np.float32), np.zeros((3, k), np.int64)))]
    assert phases_agree(module, cases, interpret(module, cases)) == []


def topk_text(kind: str, predicate: str, shape: tuple[int, int], k: int, dim: int) -> str:
    """The first k along a dim, with their places."""
    compare = "cmpf" if kind[0] in "fb" else "cmpi"
    best = list(shape)
    best[dim] = k
    x, v, i = (
        f"tensor<{'x'.join(map(str, s))}x{e}>"
        for s, e in ((shape, kind), (best, kind), (best, "i64"))
    )
    return f"""
func.func @main(%x: {x}, %v: {v}, %i: {i}) -> ({v}, {i}) {{
  %s:2 = iree_linalg_ext.topk_v2 dimension({dim}) is_sorted ins(%x : {x}) outs(%v, %i : {v}, {i}) {{
  ^bb0(%a: {kind}, %b: {kind}):
    %more = arith.{compare} {predicate}, %a, %b : {kind}
    iree_linalg_ext.yield %more : i1
  }} -> {v}, {i}
  return %s#0, %s#1 : {v}, {i}
}}
"""


# 64, then 16 elements are compared at once: rows that end before, at and behind groups of them.
@pytest.mark.parametrize("n", [3, 18, 19, 20, 67, 84, 130])
@pytest.mark.parametrize("dim", [0, 1])
@pytest.mark.parametrize(
    ("kind", "predicate"), [("f32", "ogt"), ("f32", "ole"), ("f64", "oge"), ("i8", "slt")]
)
def test_what_is_compared_together_is_what_is_compared_one_by_one(n, dim, kind, predicate):
    random = np.random.default_rng(n)
    dtype = {"f32": np.float32, "f64": np.float64, "i8": np.int8}[kind]
    shape = (2, n) if dim else (n, 2)
    x = random.integers(-20, 20, shape).astype(dtype)
    if dtype != np.int8:
        x[random.random(shape) < 0.1] = np.nan
        x[random.random(shape) < 0.1] = -np.inf
    best = (2, 3) if dim else (3, 2)
    module = import_mlir(topk_text(kind, predicate, shape, 3, dim))
    cases = [Case("main", (x, np.zeros(best, dtype), np.zeros(best, np.int64)))]
    assert phases_agree(module, cases, interpret(module, cases)) == []


def sort_text(kind: str, predicate: str, sizes: str) -> str:
    """A sort of rows that carries a second operand along."""
    compare = "cmpf" if kind[0] in "fb" else "cmpi"
    keys, numbers = f"tensor<{sizes}x{kind}>", f"tensor<{sizes}xi32>"
    return f"""
func.func @main(%x: {keys}, %i: {numbers}) -> ({keys}, {numbers}) {{
  %s:2 = iree_linalg_ext.sort dimension(1) outs(%x, %i : {keys}, {numbers}) {{
  ^bb0(%a: {kind}, %b: {kind}, %ia: i32, %ib: i32):
    %p = arith.{compare} {predicate}, %a, %b : {kind}
    iree_linalg_ext.yield %p : i1
  }} -> {keys}, {numbers}
  return %s#0, %s#1 : {keys}, {numbers}
}}
"""


def numbers_of(kind: str, n: int, rng: np.random.Generator) -> np.ndarray:
    """Rows with equal elements, and with what is special about the kind."""
    dtype = {"bf16": ml_dtypes.bfloat16, "f16": np.float16, "f32": np.float32, "f64": np.float64}
    if kind in dtype:
        x = rng.integers(-3, 4, (2, n)).astype(dtype[kind])
        special = [np.nan, -np.nan, np.inf, -np.inf, 0.0, -0.0, 6e-8, -6e-8]
        for row in x:
            places = rng.permutation(n)[: min(n, 16)]
            row[places] = np.array(special * 2)[: len(places)].astype(dtype[kind])
        return x
    info = np.iinfo(f"i{int(kind[1:]) // 8}")
    x = rng.integers(info.min, info.max, (2, n), dtype=info.dtype, endpoint=True)
    x[:, ::3] = rng.integers(-2, 2, x[:, ::3].shape)
    return x


@pytest.mark.parametrize("kind", ["f64", "f32", "f16", "bf16", "i8", "i16", "i32", "i64"])
@pytest.mark.parametrize(("sizes", "n"), [("?x?", 0), ("?x?", 40), ("2x40", 40)])
def test_rows_are_sorted_by_radix(kind, sizes, n):
    """All four orders of a kind, in one module; at every phase, and compiled."""
    rng = np.random.default_rng(n)
    signs = ["o"] if kind[0] in "fb" else ["s", "u"]
    names = [sign + way for sign in signs for way in ("le", "ge")]
    text = "".join(sort_text(kind, p, sizes).replace("@main", f"@{p}") for p in names)
    order = np.tile(np.arange(n, dtype=np.int32), (2, 1))
    module, cases = import_mlir(text), [Case(p, (numbers_of(kind, n, rng), order)) for p in names]
    expected = interpret(module, cases)
    assert phases_agree(module.clone(), cases, expected) == []
    assert compiled_agrees(module, cases, expected) == []


@pytest.mark.parametrize("kind", ["f32", "i64"])
def test_long_rows_have_longer_digits(kind):
    x = numbers_of(kind, 1500, np.random.default_rng(1))
    order = np.tile(np.arange(1500, dtype=np.int32), (2, 1))
    module = import_mlir(sort_text(kind, "ole" if kind[0] == "f" else "sle", "2x1500"))
    cases = [Case("main", (x, order))]
    assert compiled_agrees(module, cases, interpret(module, cases)) == []


@pytest.mark.parametrize("predicate", ["ole", "one"])
def test_rows_are_sorted_at_the_same_time(predicate):
    """By radix and by merging: no two threads share what they sort in."""
    x = np.random.default_rng(2).standard_normal((256, 700)).astype(np.float32)
    text = sort_text("f32", "ole", "256x700")
    if predicate != "ole":
        text = text.replace(
            "%p = arith.cmpf ole, %a, %b",
            "%d = arith.subf %b, %a : f32\n    %z = arith.constant 0.0 : f32\n    %p = arith.cmpf oge, %d, %z",
        )
    program = irees.compile(text)
    irees.set_num_threads(4)
    try:
        for _ in range(5):
            values, order = program(x, np.tile(np.arange(700, dtype=np.int32), (256, 1)))
            np.testing.assert_array_equal(order, np.argsort(x, axis=1, kind="stable"))
            np.testing.assert_array_equal(values, np.sort(x, axis=1))
    finally:
        irees.set_num_threads(default_threads())


@pytest.mark.parametrize("kind", ["f32", "f64", "bf16", "i8", "i64"])
@pytest.mark.parametrize("rows", ["random", "equal", "dynamic"])
@pytest.mark.parametrize(("n", "k", "dim"), [(41, 40, 1), (200, 40, 0), (33, 33, 1)])
def test_the_first_k_by_a_bound(kind, rows, n, k, dim):
    """Ties keep their order, NaN is the greatest; some rows have fewer different keys than k."""
    random = np.random.default_rng(n)
    x = numbers_of(kind, n, random)
    if rows == "equal":
        x[0, : n * 3 // 4] = 1
    shape, best = ((2, n), (2, k)) if dim else ((n, 2), (k, 2))
    x = x if dim else np.ascontiguousarray(x.T)
    predicates = ("ogt", "olt") if kind[0] in "fb" else ("sgt", "ult")
    texts = [topk_text(kind, p, shape, k, dim).replace("@main", f"@{p}") for p in predicates]
    if rows == "dynamic":
        static = f"tensor<{shape[0]}x{shape[1]}x{kind}>"
        texts = [t.replace(static, f"tensor<?x?x{kind}>") if n != k else t for t in texts]
    module = import_mlir("".join(texts))
    empty = (np.zeros(best, x.dtype), np.zeros(best, np.int64))
    cases = [Case(p, (x, *empty)) for p in predicates]
    assert compiled_agrees(module, cases, interpret(module, cases)) == []


def test_a_selection_by_a_bound_agrees_after_every_phase():
    x = numbers_of("f32", 90, np.random.default_rng(5))
    module = import_mlir(topk_text("f32", "ogt", (2, 90), 30, 1))
    cases = [Case("main", (x, np.zeros((2, 30), np.float32), np.zeros((2, 30), np.int64)))]
    assert phases_agree(module, cases, interpret(module, cases)) == []
