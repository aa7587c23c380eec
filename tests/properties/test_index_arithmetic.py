"""Index arithmetic in 32 bits gives the numbers that it gave in 64 bits."""

from __future__ import annotations

import numpy as np
from hypothesis import event, given, settings
from hypothesis import strategies as st

from irees.testing import profiles
from irees.testing.oracles import passes_agree
from irees.transforms import load_pass

FACTOR = profiles.load()
BINARY = ("addi", "subi", "muli", "divsi", "remsi", "floordivsi", "minsi", "maxsi", "minui",
          "maxui", "andi", "ori", "xori", "divui", "remui")  # fmt: skip
PREDICATES = ("eq", "ne", "slt", "sle", "sgt", "sge", "ult", "ule", "ugt", "uge")
CONSTANTS = (1, 2, 7, 1 << 16, (1 << 31) - 1, 1 << 31, (1 << 32) + 3, -1, -(1 << 31), -5)
DIVISIONS = ("divsi", "remsi", "floordivsi", "divui", "remui")


@settings(max_examples=200 * FACTOR)
@given(st.data())
def test_narrow_index_arithmetic(data):
    """Chains of integer ops on loop indices and constants at the edges of 32 bits."""
    lines = [f"%i{loop} = linalg.index {loop} : index" for loop in range(2)]
    lines += [f"%n{loop} = arith.index_cast %i{loop} : index to i64" for loop in range(2)]
    values = {"index": ["%i0", "%i1"], "i64": ["%n0", "%n1"]}
    floats = ["%a"]
    for number in range(data.draw(st.integers(1, 8))):
        kind = data.draw(st.sampled_from(("index", "i64")))
        name = data.draw(st.sampled_from(values[kind]))
        step = data.draw(st.sampled_from((*BINARY, "cmpi", "sitofp", "uitofp", "cast")))
        if step in ("sitofp", "uitofp"):
            source = data.draw(st.sampled_from(values["i64"]))
            lines.append(f"%v{number} = arith.{step} {source} : i64 to f32")
            floats.append(f"%v{number}")
            continue
        if step == "cast":
            other = "i64" if kind == "index" else "index"
            lines.append(f"%v{number} = arith.index_cast {name} : {kind} to {other}")
            values[other].append(f"%v{number}")
            continue
        right = data.draw(st.sampled_from((None, *values[kind])))
        if right is None or step in DIVISIONS:
            constant = data.draw(st.sampled_from(CONSTANTS))
            lines.append(f"%c{number} = arith.constant {constant} : {kind}")
            right = f"%c{number}"
        if step == "cmpi":
            predicate = data.draw(st.sampled_from(PREDICATES))
            lines.append(f"%b{number} = arith.cmpi {predicate}, {name}, {right} : {kind}")
            chosen = f"arith.select %b{number}, {floats[-1]}, %half : f32"
            lines.append(f"%v{number} = {chosen}")
            floats.append(f"%v{number}")
            continue
        lines.append(f"%v{number} = arith.{step} {name}, {right} : {kind}")
        values[kind].append(f"%v{number}")
    left, right = (data.draw(st.sampled_from(floats)) for _ in range(2))
    n, m = (data.draw(st.sampled_from((1, 2, 5))) for _ in "nm")
    sizes = data.draw(st.sampled_from((f"{n}x{m}", f"?x{m}")))
    kind, body = f"tensor<{sizes}xf32>", "\n    ".join(lines)
    text = f"""
#id = affine_map<(i, j) -> (i, j)>
func.func @main(%x: {kind}, %e: {kind}) -> {kind} {{
  %half = arith.constant 0.5 : f32
  %r = linalg.generic {{indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]}}
      ins(%x : {kind}) outs(%e : {kind}) {{
  ^bb0(%a: f32, %o: f32):
    {body}
    %q = arith.subf {left}, {right} : f32
    %w = arith.addf %q, {floats[-1]} : f32
    linalg.yield %w : f32
  }} -> {kind}
  return %r : {kind}
}}
"""
    x = np.random.default_rng(0).standard_normal((n, m)).astype(np.float32)
    chosen = [load_pass("irees-narrow-index-arithmetic")()]
    module, wrong = passes_agree(text, chosen, x, np.zeros((n, m), np.float32))
    assert wrong == []
    event("narrowed" if ": i32" in str(module) else "kept")


def test_edges_of_32_bits():
    """Numbers of 2^31 and of -5 are no signed or unsigned numbers of 32 bits."""
    text = """
#line = affine_map<(i) -> (i)>
func.func @main(%e: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>, tensor<4xi1>) {
  %m = tensor.empty() : tensor<4xi1>
  %r:3 = linalg.generic {indexing_maps = [#line, #line, #line], iterator_types = ["parallel"]}
      outs(%e, %e, %m : tensor<4xf32>, tensor<4xf32>, tensor<4xi1>) {
  ^bb0(%o: f32, %p: f32, %q: i1):
    %i = linalg.index 0 : index
    %n = arith.index_cast %i : index to i64
    %most = arith.constant 2147483647 : i64
    %minus = arith.constant -5 : i64
    %zero = arith.constant 0 : i64
    %s = arith.addi %n, %most : i64
    %t = arith.addi %n, %minus : i64
    %f = arith.sitofp %s : i64 to f32
    %g = arith.uitofp %t : i64 to f32
    %b = arith.cmpi sgt, %s, %zero : i64
    linalg.yield %f, %g, %b : f32, f32, i1
  } -> (tensor<4xf32>, tensor<4xf32>, tensor<4xi1>)
  return %r#0, %r#1, %r#2 : tensor<4xf32>, tensor<4xf32>, tensor<4xi1>
}"""
    chosen = [load_pass("irees-narrow-index-arithmetic")()]
    module, wrong = passes_agree(text, chosen, np.zeros(4, np.float32))
    assert wrong == []
    assert ": i32" in str(module)
