"""A kernel that skips what a mask hides computes what the program says."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import event, given, settings
from hypothesis import strategies as st

from irees.dialects import get_context
from irees.frontends.mlir import import_mlir
from irees.options import Options
from irees.pipeline import run_phases
from irees.testing import profiles
from irees.testing.faults import watch_rewrites
from irees.testing.oracles import Case, compiled_agrees, interpret
from irees.testing.tolerances import EXACT, reassociated

FACTOR = profiles.load()

PRODUCT = """
  %{result} = linalg.generic {{indexing_maps = [{lhs}, {rhs}, #score],
      iterator_types = ["parallel", "parallel", "parallel", "reduction"]}}
      ins({operands}) outs({out}) {{
  ^bb0(%a: f32, %b: f32, %c: f32):
    %m = arith.mulf %a, %b : f32
    %n = arith.addf %c, %m : f32
    linalg.yield %n : f32
  }} -> {kind}
"""

MASKS = {
    "rows": ("", "", "%i = linalg.index 1 : index\n    %p = arith.addi %i, %shift : index\n"
             "    %j = linalg.index 2 : index\n    %seen = arith.cmpi PREDICATE, %p, %j : index"),
    "band": ("", "", "%i = linalg.index 1 : index\n    %p = arith.addi %i, %shift : index\n"
             "    %j = linalg.index 2 : index\n    %u = arith.cmpi PREDICATE, %p, %j : index\n"
             "    %w = arith.subi %i, %shift : index\n    %l = arith.cmpi sle, %w, %j : index\n"
             "    %seen = arith.andi %u, %l : i1"),
    "bits": ("affine_map<(b, m, n) -> (b, n)>", "bits", ""),
    "table": ("affine_map<(b, m, n) -> (m, n)>", "table", ""),
    "added": ("affine_map<(b, m, n) -> (m, n)>", "added", ""),
}  # fmt: skip
"""Kind of mask => the map and the name of its operand, and its bit %seen; %g is the operand."""


def program(b: str, m: str, n: str, mask: str, predicate: str, softmax: bool) -> str:
    """A masked product; b, m and n are sizes, or `?`."""
    indexing, operand, bit = MASKS[mask]
    kinds = {"bits": f"tensor<{b}x{n}xi1>", "table": f"tensor<{m}x{n}xi1>"}
    kinds["added"] = f"tensor<{m}x{n}xf32>"
    s, row, r = f"tensor<{b}x{m}x{n}xf32>", f"tensor<{b}x{m}xf32>", f"tensor<{b}x{m}x3xf32>"
    q, k = f"tensor<{b}x{m}x2xf32>", f"tensor<{b}x{n}x2xf32>"
    v = k.replace("2xf32", "3xf32")
    seen = "%seen" if bit else "%g"
    if mask == "added":
        body = "%y = arith.addf %a, %g : f32"
    elif softmax:
        body = f"{bit}\n    %z = arith.select {seen}, %zero, %low : f32\n    %y = arith.addf %a, %z : f32"
    else:
        body = f"{bit}\n    %y = arith.select {seen}, %a, %zero : f32"
    also = f", %{operand}" if operand else ""
    typed = f", {kinds[operand]}" if operand else ""
    argument = f"%g: {kinds[operand].removesuffix('>').split('x')[-1]}, " if operand else ""
    dims = "".join(f"  %d{i} = tensor.dim %{t}, %c{d} : {kind}\n"
                   for i, (t, d, kind) in enumerate((("q", 0, q), ("q", 1, q), ("k", 1, k))))  # fmt: skip

    def empty(name: str, kind: str, sizes: list[tuple[str, str]]) -> str:
        given = ", ".join(value for size, value in sizes if size == "?")
        return f"  %{name} = tensor.empty({given}) : {kind}\n"

    rows = [(b, "%d0"), (m, "%d1")]
    text = f"""
#row = affine_map<(b, m, n) -> (b, m)>
#all = affine_map<(b, m, n) -> (b, m, n)>
#score = affine_map<(b, m, n, k) -> (b, m, n)>
func.func @main(%q: {q}, %k: {k}, %v: {v}, %bits: {kinds["bits"]}, %table: {kinds["table"]}, %added: {kinds["added"]}, %shift: index) -> {r} {{
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %zero = arith.constant 0.0 : f32
  %low = arith.constant 0xFF800000 : f32
{dims}{empty("e", s, [*rows, (n, "%d2")])}{empty("f", row, rows)}{empty("h", r, rows)}
  %es = linalg.fill ins(%zero : f32) outs(%e : {s}) -> {s}
  %hs = linalg.fill ins(%zero : f32) outs(%h : {r}) -> {r}
"""
    text += PRODUCT.format(
        result="s", lhs="affine_map<(b, m, n, k) -> (b, m, k)>",
        rhs="affine_map<(b, m, n, k) -> (b, n, k)>", operands=f"%q, %k : {q}, {k}",
        out=f"%es : {s}", kind=s,
    )  # fmt: skip
    text += f"""
  %t = linalg.generic {{indexing_maps = [#all, {indexing + ", " if indexing else ""}#all], iterator_types = ["parallel", "parallel", "parallel"]}}
      ins(%s{also} : {s}{typed}) outs(%e : {s}) {{
  ^bb0(%a: f32, {argument}%o: f32):
    {body.replace("PREDICATE", predicate)}
    linalg.yield %y : f32
  }} -> {s}
"""
    last = "t"
    if softmax:
        last = "p"
        text += f"""
  %p = linalg.softmax dimension(2) ins(%t : {s}) outs(%e : {s}) -> {s}
"""
    text += PRODUCT.format(
        result="r", lhs="affine_map<(b, m, n, k) -> (b, m, k)>",
        rhs="affine_map<(b, m, n, k) -> (b, k, n)>", operands=f"%{last}, %v : {s}, {v}",
        out=f"%hs : {r}", kind=r,
    )  # fmt: skip
    return f"{text}  return %r : {r}\n}}"


@st.composite
def masked_products(draw) -> tuple[str, Case]:
    """A masked product of small whole numbers, with its inputs."""
    mask = draw(st.sampled_from(sorted(MASKS)))
    softmax = mask == "added" or draw(st.booleans())
    dynamic = draw(st.booleans())
    b = draw(st.sampled_from([1, 2]))
    m = draw(st.sampled_from([1, 4, 70, 150]))
    n = draw(st.sampled_from([1, 17, 130] if dynamic else [256, 261]))
    predicate = draw(st.sampled_from(["sge", "sgt", "sle", "slt", "ule", "eq"]))
    sizes = ["?"] * 3 if dynamic else [str(x) for x in (b, m, n)]
    text = program(*sizes, mask, predicate, softmax)
    random = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    q, k, v = (
        random.integers(-2, 3, shape).astype(np.float32)
        for shape in ((b, m, 2), (b, n, 2), (b, n, 3))
    )
    low, high = sorted(draw(st.integers(0, n)) for _ in range(2))
    seen = (np.arange(n) >= low) & (np.arange(n) < high)
    bits = np.broadcast_to(seen, (b, n)).copy()
    table = np.broadcast_to(seen, (m, n)) & (
        random.random((m, n)) < draw(st.sampled_from([1, 0.5]))
    )
    added = np.where(table, random.integers(-2, 3, (m, n)), -np.inf).astype(np.float32)
    shift = np.int64(draw(st.sampled_from([0, 3, 40, n])))
    tolerance = reassociated(6 * n) if softmax else EXACT
    return text, Case("main", (q, k, v, bits, table, added, shift), (tolerance,))


@settings(max_examples=12 * FACTOR, deadline=None)
@given(masked_products())
def test_skipped_columns_change_nothing(drawn):
    text, case = drawn
    module = import_mlir(text)
    want = interpret(module, [case])
    with watch_rewrites() as rewrites:
        run_phases(get_context(), module.clone(), Options())
    narrowed = any(r.pass_name == "irees-skip-masked-columns" for r in rewrites)
    event("narrowed" if narrowed else "plain")
    assert compiled_agrees(module, [case], want) == []


@pytest.mark.parametrize("softmax", [True, False])
def test_rows_that_see_no_column(softmax):
    """They are 0 / 0 by a softmax, else 0."""
    text = program("1", "4", "256", "bits", "sge", softmax)
    ones = np.ones((1, 256, 3), np.float32)
    inputs = (ones[:, :4, :2], ones[..., :2], ones, np.zeros((1, 256), bool),
              np.zeros((4, 256), bool), np.zeros((4, 256), np.float32), np.int64(0))  # fmt: skip
    module, case = import_mlir(text), Case("main", inputs)
    want = interpret(module, [case])
    assert np.isnan(want["main"][0]).all() if softmax else not want["main"][0].any()
    assert compiled_agrees(module, [case], want) == []


SQUARE = """
func.func @main(%x: tensor<256x256xf32>) -> tensor<256x256xf64> {
  %zero = arith.constant 0.0 : f32
  %wide = arith.constant 0.0 : f64
  %e = tensor.empty() : tensor<256x256xf32>
  %z = linalg.fill ins(%zero : f32) outs(%e : tensor<256x256xf32>) -> tensor<256x256xf32>
  %s = linalg.generic {indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (n, k)>, affine_map<(m, n, k) -> (m, n)>], iterator_types = ["parallel", "parallel", "reduction"]} ins(%x, %x : tensor<256x256xf32>, tensor<256x256xf32>) outs(%z : tensor<256x256xf32>) {
  ^bb0(%a: f32, %b: f32, %c: f32):
    %p = arith.mulf %a, %b : f32
    %q = arith.addf %c, %p : f32
    linalg.yield %q : f32
  } -> tensor<256x256xf32>
  %t = linalg.generic {indexing_maps = [affine_map<(m, n) -> (m, n)>, affine_map<(m, n) -> (m, n)>], iterator_types = ["parallel", "parallel"]} ins(%s : tensor<256x256xf32>) outs(%e : tensor<256x256xf32>) {
  ^bb0(%a: f32, %c: f32):
    %i = linalg.index 0 : index
    %j = linalg.index 1 : index
    %seen = arith.cmpi sle, %i, %j : index
    %y = arith.select %seen, %a, %zero : f32
    linalg.yield %y : f32
  } -> tensor<256x256xf32>
  %f = tensor.empty() : tensor<256x256xf64>
  %g = linalg.fill ins(%wide : f64) outs(%f : tensor<256x256xf64>) -> tensor<256x256xf64>
  %r = linalg.generic {indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (n, k)>, affine_map<(m, n, k) -> (m, n)>], iterator_types = ["parallel", "parallel", "reduction"]} ins(%t, %x : tensor<256x256xf32>, tensor<256x256xf32>) outs(%g : tensor<256x256xf64>) {
  ^bb0(%a: f32, %b: f32, %c: f64):
    %u = arith.extf %a : f32 to f64
    %v = arith.extf %b : f32 to f64
    %p = arith.mulf %u, %v : f64
    %q = arith.addf %c, %p : f64
    linalg.yield %q : f64
  } -> tensor<256x256xf64>
  return %r : tensor<256x256xf64>
}
"""


def test_one_operand_whose_columns_are_both_of_its_dims():
    """Keys along its rows, values along its columns."""
    x = np.random.default_rng(0).integers(-2, 3, (256, 256)).astype(np.float32)
    want = np.triu(x @ x.T).astype(np.float64) @ x.T.astype(np.float64)
    module, case = import_mlir(SQUARE), Case("main", (x,))
    with watch_rewrites() as rewrites:
        run_phases(get_context(), module.clone(), Options())
    assert "irees-skip-masked-columns" in {r.pass_name for r in rewrites}
    assert compiled_agrees(module, [case], {"main": (want,)}) == []
