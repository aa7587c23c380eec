"""Sums that one op makes are those of several: the same bits, but for variances in one pass."""

from __future__ import annotations

from itertools import permutations

import numpy as np
from hypothesis import event, given, settings
from hypothesis import strategies as st
from xdsl.dialects.linalg import ops as linalg

import irees
from irees.dialects import get_context
from irees.frontends.mlir import import_mlir
from irees.testing import profiles
from irees.testing.oracles import Case, compiled_results, differences, interpret
from irees.transforms import load_pass

FACTOR = profiles.load()
LETTERS = "gcp"


def tensor(shape, element: str) -> str:
    return f"tensor<{''.join(f'{size}x' for size in shape)}{element}>"


def reduction(name: str, ins: list[tuple[str, str, str]], out: tuple[str, str, str], body: str):
    """ins and out: value, its dims as letters, its type; the loops are those of the first input."""
    loops = "".join(sorted(ins[0][1]))
    maps = ", ".join(
        f"affine_map<({', '.join(loops)}) -> ({', '.join(dims)})>" for _, dims, _ in (*ins, out)
    )
    kinds = ", ".join('"parallel"' if x in out[1] else '"reduction"' for x in loops)
    values = f"{', '.join(v for v, *_ in ins)} : {', '.join(t for *_, t in ins)}"
    return (
        f"  {name} = linalg.generic {{indexing_maps = [{maps}], iterator_types = [{kinds}]}}\n"
        f"      ins({values}) outs({out[0]} : {out[2]}) {{\n{body}\n  }} -> {out[2]}"
    )


@st.composite
def variances(draw) -> tuple[str, tuple[int, ...], str, str]:
    """A sum of squares around a mean: its text, the shape of its input, its dims, which are kept."""
    rank = draw(st.integers(1, 3))
    letters = LETTERS[:rank]
    order = "".join(draw(st.sampled_from(list(permutations(letters)))))
    kept = "".join(x for x in letters if draw(st.booleans()))
    kept = kept if len(kept) < rank else kept[1:]
    sizes = {x: draw(st.sampled_from([1, 2, 5, 16, 33])) for x in letters}
    shape, out = tuple(sizes[x] for x in order), [sizes[x] for x in kept]
    points = float(np.prod([sizes[x] for x in letters if x not in kept]))
    x = ("%x", order, tensor(shape, "f32"))
    s, f = (("%s", kept, tensor(out, "f64")), ("%f", kept, tensor(out, "f64")))
    total = reduction(
        "%s",
        [x],
        f,
        """  ^bb0(%a: f32, %o: f64):
    %w = arith.extf %a : f32 to f64
    %t = arith.addf %w, %o : f64
    linalg.yield %t : f64""",
    )
    squares = reduction(
        "%q",
        [x, s],
        f,
        """  ^bb0(%a: f32, %m: f64, %o: f64):
    %mean = arith.divf %m, %n : f64
    %w = arith.extf %a : f32 to f64
    %d = arith.subf %w, %mean : f64
    %d2 = arith.mulf %d, %d : f64
    %t = arith.addf %d2, %o : f64
    linalg.yield %t : f64""",
    )
    narrow = tensor(out, "f32")
    again = reduction(
        "%r",
        [x],
        ("%g", kept, narrow),
        """  ^bb0(%a: f32, %o: f32):
    %t = arith.addf %o, %a : f32
    linalg.yield %t : f32""",
    )
    text = f"""func.func @main(%x: {x[2]}) -> ({s[2]}, {s[2]}, {narrow}) {{
  %n = arith.constant {points} : f64
  %zero = arith.constant 0.0 : f64
  %zero32 = arith.constant 0.0 : f32
  %e = tensor.empty() : {s[2]}
  %f = linalg.fill ins(%zero : f64) outs(%e : {s[2]}) -> {s[2]}
  %e32 = tensor.empty() : {narrow}
  %g = linalg.fill ins(%zero32 : f32) outs(%e32 : {narrow}) -> {narrow}
{total}
{squares}
{again}
  return %s, %q, %r : {s[2]}, {s[2]}, {narrow}
}}
"""
    return text, shape, order, kept


@given(variances(), st.data())
@settings(max_examples=40 * FACTOR)
def test_variances_in_one_pass(program, data):
    """Within a digit of f32, however far the mean or the first point lies."""
    text, shape, order, kept = program
    seed = data.draw(st.integers(0, 1 << 16))
    x = np.random.default_rng(seed).standard_normal(shape).astype(np.float32)
    what = data.draw(st.sampled_from(["near", "far", "outlier", "equal", "infinite", "nan"]))
    event(what)
    if what == "far":
        x += np.float32(1e4)
    elif what == "outlier":
        x.flat[0] = 1e6
    elif what == "equal":
        x[...] = np.float32(0.1)
    elif what == "infinite":
        x.flat[data.draw(st.integers(0, x.size - 1))] = np.inf
    elif what == "nan":
        x.flat[data.draw(st.integers(0, x.size - 1))] = np.nan
    axes = tuple(i for i, letter in enumerate(order) if letter not in kept)
    left = [letter for letter in order if letter in kept]
    turned = [left.index(letter) for letter in kept]
    wide = x.astype(np.float64)
    with np.errstate(invalid="ignore"):
        total = wide.sum(axes).transpose(turned)
        wanted = ((wide - wide.mean(axes, keepdims=True)) ** 2).sum(axes).transpose(turned)
    module = import_mlir(text)
    for name in ("irees-generalize-linalg-named-ops", "irees-merge-variance-passes"):
        load_pass(name)().apply(get_context(), module)
    module.verify()
    sums, squares = reductions(module)
    assert sums.results[0] not in squares.operands
    interpreted = interpret(module, [Case("main", (x,))])["main"]
    for sums, squares, narrow in (interpreted, irees.compile(text)(x)):
        np.testing.assert_allclose(sums, total, rtol=1e-9, atol=1e-9)
        np.testing.assert_allclose(squares, wanted, rtol=1e-9, atol=1e-25)
        np.testing.assert_array_equal(narrow, sums.astype(np.float32))


def reductions(module) -> list[linalg.GenericOp]:
    """Those ops that have a loop to reduce."""
    found = [op for op in module.walk() if isinstance(op, linalg.GenericOp)]
    return [op for op in found if any("reduction" in str(k) for k in op.iterator_types)]


FOLDS = {
    "f32": ("addf", "mulf", "maximumf", "minnumf"),
    "i32": ("addi", "maxsi", "xori"),
}


@st.composite
def siblings(draw) -> tuple[str, bool]:
    """Reductions of one tensor, and whether none of them reads what another one made."""
    element = draw(st.sampled_from(["f32", "i32"]))
    rows, columns = draw(st.sampled_from([(1, 7), (4, 16), (5, 33), (0, 3), (3, 0)]))
    x, r = tensor((rows, columns), element), tensor((rows,), element)
    lines: list[str] = []
    results: list[str] = []
    for number in range(draw(st.integers(2, 4))):
        beside = draw(st.sampled_from(["%y", "%y", *results]))
        start = draw(st.sampled_from(["%y", "%y", *results]))
        body = f"""  ^bb0(%a: {element}, %b: {element}, %o: {element}):
    %p = arith.{"addf" if element == "f32" else "addi"} %a, %b : {element}
    %t = arith.{draw(st.sampled_from(FOLDS[element]))} %p, %o : {element}
    linalg.yield %t : {element}"""
        operands = [("%x", "gp", x), (beside, "g", r)]
        lines.append(reduction(f"%r{number}", operands, (start, "g", r), body))
        results.append(f"%r{number}")
    alone = not any(
        f"{name}, " in line or f"{name} :" in line for line in lines for name in results
    )
    kinds = ", ".join([r] * len(results))
    end = f"  return {', '.join(results)} : {kinds}\n}}\n"
    head = f"func.func @main(%x: {x}, %y: {r}) -> ({kinds}) {{"
    return "\n".join([head, *lines, end]), alone


@given(siblings(), st.integers(0, 1 << 16))
@settings(max_examples=40 * FACTOR)
def test_siblings_have_the_same_bits(program, seed):
    text, alone = program
    event(f"alone: {alone}")
    module = import_mlir(text)
    generator = np.random.default_rng(seed)
    (function,) = [op for op in module.body.block.ops if op.name == "func.func"]
    inputs = tuple(
        (generator.standard_normal(kind.get_shape()) * 9).astype(
            np.float32 if "f32" in str(kind.get_element_type()) else np.int32
        )
        for kind in function.function_type.inputs
    )
    cases = [Case("main", inputs)]
    wanted = interpret(module, cases)
    load_pass("irees-fuse-sibling-reductions")().apply(get_context(), module)
    module.verify()
    assert not alone or len(reductions(module)) == 1
    assert differences(interpret(module, cases), wanted, cases) == []
    assert differences(compiled_results(import_mlir(text), cases, fp="strict"), wanted, cases) == []
