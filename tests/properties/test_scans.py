"""Scans along any dim, with elementwise ops before and after, give what the interpreter gives."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

import irees

COMBINERS = {"i64": ("arith.addi", "arith.maxsi", "arith.muli"), "f32": ("arith.maximumf",)}


@st.composite
def programs(draw: st.DrawFn) -> tuple[str, list[np.ndarray]]:
    """The text of a program with a scan, and its arguments; floats only take exact ops."""
    shape = draw(st.lists(st.integers(0, 6) | st.sampled_from([19, 40]), min_size=1, max_size=3))
    dim = draw(st.integers(0, len(shape) - 1))
    element = draw(st.sampled_from(sorted(COMBINERS)))
    sizes = [draw(st.sampled_from([str(n), "?"])) for n in shape]
    kind, wide = f"tensor<{'x'.join(sizes)}x{element}>", element
    rest = [n for i, n in enumerate(sizes) if i != dim]
    row = f"tensor<{'x'.join([*rest, element])}>"
    loops = ", ".join(f"d{i}" for i in range(len(shape)))
    others = ", ".join(f"d{i}" for i in range(len(shape)) if i != dim)
    same, reduced = f"affine_map<({loops}) -> ({loops})>", f"affine_map<({loops}) -> ({others})>"
    kinds = ", ".join(['"parallel"'] * len(shape))
    add = "arith.addi" if element == "i64" else "arith.addf"
    lines: list[str] = []

    def mapped(name: str, x: str, other: str, indexing: str, of: str, out: str = "%e") -> str:
        lines.append(
            f"%{name} = linalg.generic {{indexing_maps = [{same}, {indexing}, {same}], "
            f"iterator_types = [{kinds}]}} ins({x}, {other} : {kind}, {of}) outs({out} : {kind}) {{"
            f"^bb0(%p: {wide}, %q: {wide}, %o: {wide}):\n %r = {add} %p, %q : {wide}\n "
            f"linalg.yield %r : {wide} }} -> {kind}"
        )
        return f"%{name}"

    for i in range(len(sizes)):
        lines += [f"%c{i} = arith.constant {i} : index", f"%n{i} = tensor.dim %x, %c{i} : {kind}"]
    dynamic = ", ".join(f"%n{i}" for i, size in enumerate(sizes) if size == "?")
    lines.append(f"%e = tensor.empty({dynamic}) : {kind}")
    source = "%x"
    if draw(st.booleans()):
        source = mapped(
            "w", "%x", *draw(st.sampled_from([("%x", same, kind), ("%b", reduced, row)]))
        )
    inclusive = draw(st.booleans())
    combiner = draw(st.sampled_from(COMBINERS[element]))
    lines.append(
        f"%y, %a = iree_linalg_ext.scan dimension({dim}) inclusive({str(inclusive).lower()}) "
        f"ins({source} : {kind}) outs(%e, %b : {kind}, {row}) {{\n^bb0(%l: {wide}, %m: {wide}):\n"
        f" %s = {combiner} %l, %m : {wide}\n iree_linalg_ext.yield %s : {wide} }} -> {kind}, {row}"
    )
    results = [("%a", row)]
    readers = draw(st.sampled_from([("y",), ("z",), ("y", "z"), ("z", "v"), ("y", "w", "z")]))
    if "z" in readers:
        choice = st.sampled_from([("%x", same, kind), ("%b", reduced, row), ("%a", reduced, row)])
        mapped("z", "%y", *draw(choice), draw(st.sampled_from(["%e", "%x"])))
    if "v" in readers:
        mapped("v", "%z", "%y", same, kind)
    results += [(f"%{r}", kind) for r in readers if r != "w" or source == "%w"]
    names, types = (", ".join(part) for part in zip(*results, strict=True))
    text = f"func.func @main(%x: {kind}, %b: {row}) -> ({types}) {{\n" + "\n".join(lines)
    text += f"\nreturn {names} : {types}\n}}"
    random = np.random.default_rng(draw(st.integers(0, 99)))
    dtype = np.dtype("int64" if element == "i64" else "float32")
    left = [n for i, n in enumerate(shape) if i != dim]
    return text, [random.integers(-9, 9, s).astype(dtype) for s in (shape, left)]


@given(programs())
@settings(max_examples=60, deadline=None)
def test_scans_give_what_the_interpreter_gives(drawn):
    text, arguments = drawn
    want = irees.compile(text, target="reference")(*arguments)
    got = irees.compile(text, target="cpu")(*arguments)
    for found, wanted in zip(got, want, strict=True):
        np.testing.assert_array_equal(found, wanted)


LOG_ADD = """
^bb0(%l: f32, %r: f32):
  %top = arith.maximumf %l, %r : f32
  %equal = arith.cmpf oeq, %l, %r : f32
  %d = arith.subf %l, %r : f32
  %m = math.absf %d : f32
  %n = arith.negf %m : f32
  %p = math.exp %n : f32
  %g = math.log1p %p : f32
  %i = math.isinf %l : f32
  %both = arith.andi %equal, %i : i1
  %s = arith.addf %top, %g : f32
  %t = arith.select %both, %l, %s : f32
  iree_linalg_ext.yield %t : f32
"""


@st.composite
def logarithms(draw: st.DrawFn) -> tuple[bool, np.ndarray]:
    """Rows of logarithms, some with infinities, NaN, or numbers that are far from each other."""
    shape = draw(st.tuples(st.sampled_from([1, 3, 4, 9]), st.sampled_from([1, 2, 127, 128, 300])))
    random = np.random.default_rng(draw(st.integers(0, 99)))
    rows = (random.standard_normal(shape) * draw(st.sampled_from([1, 50, 1e4]))).astype(np.float32)
    for value in draw(st.lists(st.sampled_from([np.inf, -np.inf, np.nan, 200.0]), max_size=3)):
        start = draw(st.integers(0, shape[1] - 1))
        rows[draw(st.integers(0, shape[0] - 1)), start : start + draw(st.integers(1, 300))] = value
    return draw(st.booleans()), rows


@given(logarithms())
@settings(max_examples=40, deadline=None)
def test_scans_of_sums_of_exponentials(drawn):
    """A chunk of a row has one shift; results are as accurate as those of the combiner."""
    dynamic, rows = drawn
    m, n = ("?", "?") if dynamic else rows.shape
    kind, row = f"tensor<{m}x{n}xf32>", f"tensor<{m}xf32>"
    text = f"""
func.func @main(%x: {kind}, %e: {kind}, %b: {row}) -> ({kind}, {row}) {{
  %y, %a = iree_linalg_ext.scan dimension(1) inclusive(true)
      ins(%x : {kind}) outs(%e, %b : {kind}, {row}) {{{LOG_ADD} }} -> {kind}, {row}
  return %y, %a : {kind}, {row}
}}"""
    arguments = [rows, np.zeros_like(rows), rows[:, 0].copy()]
    with np.errstate(all="ignore"):
        want = irees.compile(text, target="reference")(*arguments)
    for fp in ("default", "strict"):
        for found, wanted in zip(irees.compile(text, fp=fp)(*arguments), want, strict=True):
            np.testing.assert_allclose(found, wanted, rtol=2e-6, atol=4e-6)


BEST = """
^bb0(%l: f32, %r: f32):
  %c = arith.cmpf oge, %r, %l : f32
  %n = math.isnan %r : f32
  %p = arith.ori %c, %n : i1
  %s = arith.select %p, %r, %l : f32
  iree_linalg_ext.yield %s : f32
"""


@given(logarithms())
@settings(max_examples=20, deadline=None)
def test_scans_that_select_by_comparisons(drawn):
    """The last of the greatest elements, or the last NaN: the same bits with vectors of a row."""
    dynamic, rows = drawn
    rows = np.where(abs(rows) < 0.5, np.copysign(0.0, rows), rows).astype(np.float32)
    m, n = ("?", "?") if dynamic else rows.shape
    kind, row = f"tensor<{m}x{n}xf32>", f"tensor<{m}xf32>"
    text = f"""
func.func @main(%x: {kind}, %e: {kind}, %b: {row}) -> ({kind}, {row}) {{
  %y, %a = iree_linalg_ext.scan dimension(1) inclusive(true)
      ins(%x : {kind}) outs(%e, %b : {kind}, {row}) {{{BEST} }} -> {kind}, {row}
  return %y, %a : {kind}, {row}
}}"""
    arguments = [rows, np.zeros_like(rows), rows[:, 0].copy()]
    want = irees.compile(text, target="reference")(*arguments)
    for found, wanted in zip(irees.compile(text)(*arguments), want, strict=True):
        np.testing.assert_array_equal(found.view(np.int32), wanted.view(np.int32))
