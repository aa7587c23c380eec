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
    shape = draw(st.lists(st.integers(0, 6) | st.just(19), min_size=1, max_size=3))
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
