"""An arg_compare that is split into a reduction and a search finds the same element and index."""

from __future__ import annotations

import numpy as np
from hypothesis import event, given, settings
from hypothesis import strategies as st

from irees.dialects import get_context
from irees.frontends.mlir import import_mlir
from irees.testing import profiles
from irees.testing.oracles import Case, compiled_agrees, interpret
from irees.transforms import load_pass

FACTOR = profiles.load()

TYPES = {"f32": np.float32, "f64": np.float64, "i8": np.int8, "i32": np.int32, "i64": np.int64}
FLOATS = ["ogt", "olt", "ogt, NaN wins", "olt, NaN wins", "oge", "ugt", "ult"]
INTEGERS = ["sgt", "slt", "ugt", "ult", "sge"]
"""An order that is not strict, where the last of equal elements wins, is not split, nor one in which
a NaN beats every number and is beaten by it."""


def comparator(predicate: str, element: str) -> str:
    """The body of an arg_compare."""
    compare = "cmpf" if element.startswith("f") else "cmpi"
    first = f"arith.{compare} {predicate.split(',')[0]}, %l, %r : {element}"
    if "NaN" not in predicate:
        return f"    %c = {first}\n"
    return f"""    %g = {first}
    %a = math.isnan %l : {element}
    %b = math.isnan %r : {element}
    %true = arith.constant true
    %n = arith.xori %b, %true : i1
    %o = arith.andi %a, %n : i1
    %c = arith.ori %g, %o : i1
"""


@st.composite
def searches(draw) -> tuple[str, list[np.ndarray]]:
    """An arg_compare along any dim, with its inputs."""
    element = draw(st.sampled_from(sorted(TYPES)))
    is_float = element.startswith("f")
    body = comparator(draw(st.sampled_from(FLOATS if is_float else INTEGERS)), element)
    rank = draw(st.integers(1, 3))
    axis = draw(st.sampled_from([rank - 1] * 4 + list(range(rank))))
    length = draw(st.sampled_from([0, 1, 7, 32, 45, 130]))
    sizes = [length if d == axis else draw(st.sampled_from([1, 3])) for d in range(rank)]
    number = draw(st.sampled_from(["i32", "i64", "index"]))
    dynamic, based = draw(st.booleans()), draw(st.booleans())
    rest = [n for d, n in enumerate(sizes) if d != axis]

    def tensor(dims: list[int], kind: str) -> str:
        return f"tensor<{''.join(f'{chr(63) if dynamic else n}x' for n in dims)}{kind}>"

    x, v, i = tensor(sizes, element), tensor(rest, element), tensor(rest, number)
    text = f"""func.func @main(%x: {x}, %v: {v}, %i: {i}) -> ({v}, {i}) {{
  %base = arith.constant 5 : index
  %r:2 = iree_linalg_ext.arg_compare dimension({axis}) ins(%x : {x}) outs(%v, %i : {v}, {i})
      {"index_base(%base : index) " if based else ""}{{
  ^bb0(%l: {element}, %r: {element}):
{body}    iree_linalg_ext.yield %c : i1
  }} -> {v}, {i}
  return {"%r#0" if draw(st.booleans()) else "%v"}, %r#1 : {v}, {i}
}}"""
    random = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    data, best = (random.integers(-3, 4, dims).astype(TYPES[element]) for dims in (sizes, rest))
    if is_float:
        odd = [draw(st.sampled_from([np.nan, np.inf, -np.inf, -0.0])) for _ in range(2)]
        data.flat[:: draw(st.integers(2, 7))] = odd[0]
        best.flat[::2] = odd[1]
    where = random.integers(0, 99, rest).astype(np.int32 if number == "i32" else np.int64)
    return text, [data, best, where]


@settings(max_examples=60 * FACTOR, deadline=None)
@given(searches())
def test_a_search_finds_what_the_op_finds(search):
    text, arrays = search
    module, case = import_mlir(text), Case("main", tuple(arrays))
    want = interpret(module, [case])["main"]
    load_pass("irees-split-arg-compares")().apply(get_context(), module)
    module.verify()
    event("split" if "linalg.generic" in str(module) else "kept")
    load_pass("irees-clamp-extracts")().apply(get_context(), module)
    for mine, wanted in zip(interpret(module, [case])["main"], want, strict=True):
        is_float = mine.dtype.kind == "f"
        assert np.array_equal(mine, wanted, equal_nan=is_float)
        if is_float:
            numbers = ~np.isnan(wanted)
            assert np.array_equal(np.signbit(mine[numbers]), np.signbit(wanted[numbers]))


@settings(max_examples=8 * FACTOR, deadline=None)
@given(searches())
def test_compiled_searches_find_what_the_interpreter_finds(search):
    text, arrays = search
    module, cases = import_mlir(text), [Case("main", tuple(arrays))]
    assert compiled_agrees(module, cases, interpret(module, cases)) == []
