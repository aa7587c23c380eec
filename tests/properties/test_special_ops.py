"""What is raised to one op computes what it was written as; near misses stay as they are."""

from __future__ import annotations

import numpy as np
from hypothesis import event, given, settings
from hypothesis import strategies as st

from irees.testing import profiles
from irees.testing.oracles import passes_agree
from irees.testing.tolerances import reassociated, ulps
from irees.transforms import load_pass

FACTOR = profiles.load()
COMPARES = {
    "i32": {"maxsi": ("sgt", "sge"), "minsi": ("slt", "sle"), "maxui": ("ugt", "uge"),
            "minui": ("ult", "ule")},
    "f32": {"maximumf": ("ogt",), "minimumf": ("olt",)},
}  # fmt: skip


@settings(max_examples=100 * FACTOR)
@given(st.data())
def test_arg_compare(data):
    element = data.draw(st.sampled_from(["i32", "f32"]))
    table = COMPARES[element]
    extreme = data.draw(st.sampled_from(list(table)))
    predicate = data.draw(st.sampled_from([p for each in table.values() for p in each]))
    selects, swapped, other = (data.draw(st.integers(0, 3)) for _ in range(3))
    loop, wrong_loop = data.draw(st.integers(0, 1)), data.draw(st.integers(0, 4)) == 0
    n = [data.draw(st.sampled_from([1, 2, 5, 0])) for _ in range(2)]
    kept = n[1 - loop]
    compare = "cmpf" if element == "f32" else "cmpi"
    order = "%best, %a" if swapped == 0 else "%a, %best"
    value = (
        f"arith.select %c, %a, %best : {element}"
        if selects
        else f"arith.{extreme} %a, %best : {element}"
    )
    kinds = ["reduction" if d == loop else "parallel" for d in range(2)]
    x, v, i = f"tensor<{n[0]}x{n[1]}x{element}>", f"tensor<{kept}x{element}>", f"tensor<{kept}xi64>"
    text = f"""
func.func @main(%x: {x}, %v: {v}, %i: {i}) -> ({v}, {i}) {{
  %r:2 = linalg.generic {{indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>,
      affine_map<(d0, d1) -> (d{1 - loop})>, affine_map<(d0, d1) -> (d{1 - loop})>],
      iterator_types = ["{kinds[0]}", "{kinds[1]}"]}} ins(%x : {x}) outs(%v, %i : {v}, {i}) {{
  ^bb0(%a: {element}, %best: {element}, %at: i64):
    %j = linalg.index {1 - loop if wrong_loop else loop} : index
    %k = arith.index_cast %j : index to i64
    %c = arith.{compare} {predicate}, {order} : {element}
    %new = {value}
    %where = arith.select %c, {"%at, %k" if other == 0 else "%k, %at"} : i64
    linalg.yield %new, %where : {element}, i64
  }} -> ({v}, {i})
  return %r#0, %r#1 : {v}, {i}
}}
"""
    random = np.random.default_rng(data.draw(st.integers(0, 99)))
    arrays = [random.integers(-3, 4, size).astype(np.int32) for size in (n, kept)]
    if element == "f32":
        arrays = [a.astype(np.float32) for a in arrays]
        for number in data.draw(st.lists(st.sampled_from([np.nan, np.inf, -0.0]), max_size=2)):
            if arrays[0].size:
                arrays[0].flat[data.draw(st.integers(0, arrays[0].size - 1))] = number
    module, wrong = passes_agree(
        text, [load_pass("irees-raise-special-ops")()], *arrays, np.full(kept, -7, np.int64)
    )
    assert wrong == []
    raised = "arg_compare" in str(module)
    event("raised" if raised else "kept")
    straight = swapped and other and not wrong_loop
    assert raised == bool(straight and (selects or predicate in EXACT.get(extreme, ())))


EXACT = COMPARES["i32"]


@settings(max_examples=100 * FACTOR)
@given(st.data())
def test_softmax(data):
    loop, size = data.draw(st.integers(0, 1)), [data.draw(st.sampled_from([1, 3, 8])) for _ in "ab"]
    start, first = data.draw(st.sampled_from([("0xFF800000", True), ("0.0", False)]))
    zero, second = data.draw(st.sampled_from([("0.0", True), ("0.0", True), ("1.0", False)]))
    shift = data.draw(st.integers(0, 5)) == 0
    keep = data.draw(st.booleans())
    kinds = ["reduction" if d == loop else "parallel" for d in range(2)]
    rest = 1 - loop
    x, row = f"tensor<{size[0]}x{size[1]}xf32>", f"tensor<{size[rest]}xf32>"
    wide = f"tensor<{size[0] if rest == 0 else 1}x{size[1] if rest == 1 else 1}xf32>"
    kept = f"d{rest}" if not keep else ("d0, 0" if rest == 0 else "0, d1")
    place = row if not keep else wide
    whole, less = "affine_map<(d0, d1) -> (d0, d1)>", f"affine_map<(d0, d1) -> ({kept})>"
    iterators = f'iterator_types = ["{kinds[0]}", "{kinds[1]}"]'
    flat = 'iterator_types = ["parallel", "parallel"]'

    def reduce(name, source, init, op):
        return f"""
  {name}e = tensor.empty() : {place}
  {name}i = linalg.fill ins({init} : f32) outs({name}e : {place}) -> {place}
  {name} = linalg.generic {{indexing_maps = [{whole}, {less}], {iterators}}}
      ins({source} : {x}) outs({name}i : {place}) {{
  ^bb0(%a: f32, %b: f32):
    %c = arith.{op} %a, %b : f32
    linalg.yield %c : f32
  }} -> {place}"""

    def with_row(name, source, other, op, indexing):
        return f"""
  {name} = linalg.generic {{indexing_maps = [{whole}, {indexing}, {whole}], {flat}}}
      ins({source}, {other} : {x}, {place}) outs(%o : {x}) {{
  ^bb0(%a: f32, %b: f32, %c: f32):
    %z = arith.{op} %a, %b : f32
    linalg.yield %z : f32
  }} -> {x}"""

    # Where both dims are as long, the largest of columns could be taken off rows.
    crossed = shift and not keep and size[0] == size[1] and size[0] > 1
    other = f"affine_map<(d0, d1) -> (d{loop})>" if crossed else less
    text = f"""
func.func @main(%x: {x}, %o: {x}) -> {x} {{
  %lowest = arith.constant {start} : f32
  %zero = arith.constant {zero} : f32
  {reduce("%m", "%x", "%lowest", data.draw(st.sampled_from(["maximumf", "maxnumf"])))}
  {with_row("%d", "%x", "%m", "subf", other)}
  %e = linalg.generic {{indexing_maps = [{whole}, {whole}], {flat}}} ins(%d : {x}) outs(%o : {x}) {{
  ^bb0(%a: f32, %b: f32):
    %c = math.exp %a : f32
    linalg.yield %c : f32
  }} -> {x}
  {reduce("%s", "%e", "%zero", "addf")}
  {with_row("%r", "%e", "%s", "divf", less)}
  return %r : {x}
}}
"""
    values = np.random.default_rng(data.draw(st.integers(0, 99))).normal(0, 3, size)
    values = (values - data.draw(st.sampled_from([0, 50]))).astype(np.float32)
    module, wrong = passes_agree(
        text, [load_pass("irees-raise-special-ops")()], values, values, tolerances=(ulps(8),)
    )
    assert wrong == []
    raised = "linalg.softmax" in str(module)
    assert raised == (first and second and not crossed)
    event("raised" if raised else "kept")


def generic(ins: dict[str, tuple[str, str]], out: tuple[str, str, str], body: str) -> str:
    """A generic of %a, %b into %c; inputs are name: (loops, type), loops are letters."""
    result, loops, kind = out
    letters = sorted({*loops, *(d for own, _ in ins.values() for d in own if d != "0")})
    maps = ", ".join(
        f"affine_map<({', '.join(letters)}) -> ({', '.join(own)})>"
        for own in (*(own for own, _ in ins.values()), loops)
    )
    iterators = ", ".join('"parallel"' if d in loops else '"reduction"' for d in letters)
    arguments = ", ".join(f"%{d}: f32" for d in "abc"[: len(ins)])
    return f"""linalg.generic {{indexing_maps = [{maps}], iterator_types = [{iterators}]}}
      ins({", ".join(ins)} : {", ".join(k for _, k in ins.values())}) outs({result} : {kind}) {{
  ^bb0({arguments}, %out: f32):
    {body}
    linalg.yield %y : f32
  }} -> {kind}"""


MULTIPLY_ADD = "%z = arith.mulf %a, %b : f32\n    %y = arith.addf %out, %z : f32"


@settings(max_examples=150 * FACTOR)
@given(st.data())
def test_attention(data):
    """q . k [* scale] [+ mask], softmax, . v, with any order of dims; one thing may be wrong."""
    draw = data.draw
    batch = draw(st.sampled_from(["", "b", "bh"]))
    sizes = {d: draw(st.sampled_from([1, 2, 3])) for d in "bhm"} | {"s": 4, "k": 5, "n": 3}
    dynamic = draw(st.booleans())
    wrong = draw(st.sampled_from([None, None, None, "order", "divisor", "used", "start", "over"]))
    scaled = wrong in ("order", "divisor") or draw(st.booleans())
    masked = wrong == "order" or draw(st.booleans())

    def shuffled(dims: str) -> str:
        return "".join(draw(st.permutations(dims)))

    def kind(dims: str) -> str:
        shape = "".join("?x" if dynamic else f"{sizes[d]}x" for d in dims)
        return f"tensor<{shape}f32>"

    q, k, v = (shuffled(batch + own) for own in ("mk", "sk", "sn"))
    s, out = batch + "ms", shuffled(batch + "mn")
    mask = shuffled("".join(d for d in batch + "m" if draw(st.booleans())) + "s")
    steps, scores = [], "%x0"

    def step(body: str, **more: tuple[str, str]) -> None:
        nonlocal scores
        made = f"%x{len(steps) + 1}"
        ins = {scores: (s, kind(s))} | {f"%{n}": m for n, m in more.items()}
        steps.append(f"  {made} = {generic(ins, ('%s', s, kind(s)), body)}")
        scores = made

    divisor = {"divisor": "%three"}.get(wrong or "", "%four")
    scale = draw(st.sampled_from([f"%y = arith.divf %a, {divisor} : f32"] + [
        "%y = arith.mulf %three, %a : f32"] * (wrong != "divisor")))  # fmt: skip
    if scaled and wrong != "order":
        step(scale)
    if masked:
        swap = draw(st.booleans())
        add = "%y = arith.addf %b, %a : f32" if swap else "%y = arith.addf %a, %b : f32"
        step(add, mask=(mask, kind(mask)))
    if wrong == "order":
        step(scale)
    over = s.index("m" if wrong == "over" else "s")
    results = [("%r", kind(out))] + [("%p", kind(s))] * (wrong == "used")
    names, types = (", ".join(parts) for parts in zip(*results, strict=True))
    start = "%three" if wrong == "start" else "%zero"
    text = f"""
func.func @main(%q: {kind(q)}, %k: {kind(k)}, %v: {kind(v)}, %mask: {kind(mask)}, %s: {kind(s)},
    %o: {kind(out)}) -> ({types}) {{
  %zero = arith.constant 0.0 : f32
  %three = arith.constant 3.0 : f32
  %four = arith.constant 4.0 : f32
  %s0 = linalg.fill ins({start} : f32) outs(%s : {kind(s)}) -> {kind(s)}
  %o0 = linalg.fill ins(%zero : f32) outs(%o : {kind(out)}) -> {kind(out)}
  %x0 = {generic({"%q": (q, kind(q)), "%k": (k, kind(k))}, ("%s0", s, kind(s)), MULTIPLY_ADD)}
{chr(10).join(steps)}
  %p = linalg.softmax dimension({over}) ins({scores} : {kind(s)}) outs(%s : {kind(s)}) -> {kind(s)}
  %r = {generic({"%v": (v, kind(v)), "%p": (s, kind(s))}, ("%o0", out, kind(out)), MULTIPLY_ADD)}
  return {names} : {types}
}}
"""
    random = np.random.default_rng(draw(st.integers(0, 99)))
    arrays = [
        random.normal(0, 1, [sizes[d] for d in own]).astype(np.float32)
        for own in (q, k, v, mask, s, out)
    ]
    if draw(st.booleans()):
        arrays[3][arrays[3] < 0] = -np.inf
    passes = [load_pass("irees-raise-special-ops")()]
    module, found = passes_agree(text, passes, *arrays, tolerances=(reassociated(64),) * 2)
    assert found == []
    raised = "iree_linalg_ext.attention" in str(module)
    event("raised" if raised else "kept")
    assert raised == (wrong is None)
    passes.append(load_pass("irees-decompose-attention")())
    _, found = passes_agree(text, passes, *arrays, tolerances=(reassociated(64),) * 2)
    assert found == []
