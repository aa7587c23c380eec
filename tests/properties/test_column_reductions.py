"""Reductions of columns, of any number of rows and columns, give what the interpreter gives."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

import irees

BODIES = {
    "f32": (
        "%s = arith.maximumf %a, %o : f32",
        "%z = arith.constant 2.0 : f32\n%m = arith.mulf %a, %z : f32\n%s = arith.addf %m, %o : f32",
        "%z = arith.constant 0.0 : f32\n%g = arith.cmpf ogt, %a, %z : f32\n"
        "%w = arith.select %g, %a, %b : f32\n%s = arith.addf %w, %o : f32",
        "%m = arith.mulf %a, %b : f32\n%s = arith.minimumf %m, %o : f32",
    ),
    "i32": (
        "%s = arith.addi %a, %o : i32",
        "%i = linalg.index 0 : index\n%k = arith.index_cast %i : index to i32\n"
        "%m = arith.muli %a, %k : i32\n%s = arith.maxsi %m, %o : i32",
        "%z = arith.constant 3 : i32\n%m = arith.andi %a, %z : i32\n%s = arith.xori %m, %o : i32",
    ),
}
LENGTHS = (0, 1, 7, 8, 15, 16, 19, 24, 50)
"""Numbers of rows and columns: around vectors, panels and what is left of them."""


@st.composite
def programs(draw: st.DrawFn) -> tuple[str, list[np.ndarray]]:
    """The text of a reduction of columns, and its arguments: whole numbers, whose sums are exact."""
    element = draw(st.sampled_from(sorted(BODIES)))
    rows, columns = draw(st.sampled_from(LENGTHS)), draw(st.sampled_from(LENGTHS))
    pages = draw(st.sampled_from((1, 3)))
    shape = (pages, rows, columns)
    sizes = [draw(st.sampled_from([str(n), "?"])) for n in shape]
    source, row = (f"tensor<{'x'.join([*s, element])}>" for s in (sizes, [sizes[0], sizes[2]]))
    other = draw(st.sampled_from([("(p, r, c)", sizes), ("(p, c)", [sizes[0], sizes[2]])]))
    second = f"tensor<{'x'.join([*other[1], element])}>"
    body = draw(st.sampled_from(BODIES[element]))
    maps = ", ".join(f"affine_map<(p, r, c) -> {m}>" for m in ("(p, r, c)", other[0], "(p, c)"))
    text = f"""
func.func @main(%x: {source}, %y: {second}, %e: {row}) -> {row} {{
  %r = linalg.generic {{indexing_maps = [{maps}],
      iterator_types = ["parallel", "reduction", "parallel"]}}
      ins(%x, %y : {source}, {second}) outs(%e : {row}) {{
  ^bb0(%a: {element}, %b: {element}, %o: {element}):
    {body}
    linalg.yield %s : {element}
  }} -> {row}
  return %r : {row}
}}"""
    random = np.random.default_rng(draw(st.integers(0, 99)))
    shapes = (shape, shape if "r" in other[0] else (pages, columns), (pages, columns))
    dtype = np.dtype("float32" if element == "f32" else "int32")
    return text, [random.integers(-9, 9, s).astype(dtype) for s in shapes]


@given(programs(), st.sampled_from([{}, {"fp": "strict"}, {"target": "cpu:generic"}]))
@settings(max_examples=60, deadline=None)
def test_columns_give_what_the_interpreter_gives(drawn, options):
    text, arguments = drawn
    want = irees.compile(text, target="reference")(*arguments)
    got = irees.compile(text, **options)(*arguments)
    np.testing.assert_array_equal(got, want)
