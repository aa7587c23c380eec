"""Tables of functions of a loop index hold what the op computed itself."""

from __future__ import annotations

import numpy as np
from hypothesis import event, given, settings
from hypothesis import strategies as st

from irees.testing import profiles
from irees.testing.oracles import passes_agree
from irees.transforms import load_pass

FACTOR = profiles.load()
STEPS = {
    "f32": ("arith.addf {a}, %half", "arith.mulf {a}, %half", "arith.divf {a}, %three",
            "math.floor {a}", "math.sqrt {a}", "arith.maximumf {a}, %half",
            "arith.addf {a}, {b}", "arith.subf {a}, {b}"),
    "i64": ("arith.addi {a}, %two", "arith.divsi {a}, %two", "arith.remsi {a}, %two",
            "arith.muli {a}, {b}", "arith.minsi {a}, {b}"),
}  # fmt: skip
CASTS = {"f32": "arith.fptosi {a} : f32 to i64", "i64": "arith.sitofp {a} : i64 to f32"}


@settings(max_examples=100 * FACTOR)
@given(st.data())
def test_tables(data):
    """A chain of scalar ops on indices of two loops and an input, read by an extract or yielded."""
    values: list[tuple[str, str]] = [("%a", "f32")]
    lines: list[str] = []
    for loop in range(2):
        lines += [f"%i{loop} = linalg.index {loop} : index"]
        lines += [f"%n{loop} = arith.index_cast %i{loop} : index to i64"]
        values.append((f"%n{loop}", "i64"))
    for number in range(data.draw(st.integers(1, 9))):
        name, kind = data.draw(st.sampled_from(values))
        if data.draw(st.integers(0, 2)) == 0:
            lines.append(f"%v{number} = {CASTS[kind].format(a=name)}")
            values.append((f"%v{number}", "i64" if kind == "f32" else "f32"))
            continue
        other = data.draw(st.sampled_from([n for n, k in values if k == kind]))
        step = data.draw(st.sampled_from(STEPS[kind])).format(a=name, b=other)
        lines.append(f"%v{number} = {step} : {kind}")
        values.append((f"%v{number}", kind))
    floats = [n for n, k in values if k == "f32"]
    places = [n for n, k in values if k == "i64"]
    place, left, right = (data.draw(st.sampled_from(x)) for x in (places, floats, floats))
    n, m = (data.draw(st.sampled_from([1, 2, 5])) for _ in "nm")
    kind = "tensor<?x?xf32>" if data.draw(st.booleans()) else f"tensor<{n}x{m}xf32>"
    body = "\n    ".join(lines)
    text = f"""
#id = affine_map<(i, j) -> (i, j)>
func.func @main(%x: {kind}, %t: tensor<7xf32>, %e: {kind}) -> {kind} {{
  %half = arith.constant 0.5 : f32
  %three = arith.constant 3.0 : f32
  %two = arith.constant 2 : i64
  %r = linalg.generic {{indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]}}
      ins(%x : {kind}) outs(%e : {kind}) {{
  ^bb0(%a: f32, %o: f32):
    {body}
    %low = arith.constant 0 : i64
    %high = arith.constant 6 : i64
    %c = arith.maxsi {place}, %low : i64
    %d = arith.minsi %c, %high : i64
    %k = arith.index_cast %d : i64 to index
    %g = tensor.extract %t[%k] : tensor<7xf32>
    %p = arith.addf {left}, %g : f32
    %q = arith.addf %p, {right} : f32
    linalg.yield %q : f32
  }} -> {kind}
  return %r : {kind}
}}
"""
    x = np.random.default_rng(0).standard_normal((n, m)).astype(np.float32)
    table = np.arange(7, dtype=np.float32)
    chosen = [load_pass("irees-tabulate-index-expressions")()]
    module, wrong = passes_agree(text, chosen, x, table, np.zeros((n, m), np.float32))
    assert wrong == []
    event("tabulated" if str(module).count("linalg.generic") > 1 else "kept")


def test_one_source_of_each_loop():
    """The rows and the columns of a nearest-neighbour resampling are two tables."""
    text = """
#id = affine_map<(i, j) -> (i, j)>
func.func @main(%x: tensor<4x5xf32>, %e: tensor<8x9xf32>) -> tensor<8x9xf32> {
  %half = arith.constant 0.5 : f32
  %r = linalg.generic {indexing_maps = [#id], iterator_types = ["parallel", "parallel"]}
      outs(%e : tensor<8x9xf32>) {
  ^bb0(%o: f32):
    %i = linalg.index 0 : index
    %j = linalg.index 1 : index
    %m = arith.index_cast %i : index to i64
    %n = arith.index_cast %j : index to i64
    %f = arith.sitofp %m : i64 to f32
    %g = arith.sitofp %n : i64 to f32
    %p = arith.mulf %f, %half : f32
    %q = arith.mulf %g, %half : f32
    %s = arith.fptosi %p : f32 to i64
    %t = arith.fptosi %q : f32 to i64
    %k = arith.index_cast %s : i64 to index
    %l = arith.index_cast %t : i64 to index
    %v = tensor.extract %x[%k, %l] : tensor<4x5xf32>
    linalg.yield %v : f32
  } -> tensor<8x9xf32>
  return %r : tensor<8x9xf32>
}"""
    x = np.arange(20, dtype=np.float32).reshape(4, 5)
    chosen = [load_pass("irees-tabulate-index-expressions")(), load_pass("irees-fold-constants")()]
    module, wrong = passes_agree(text, chosen, x, np.zeros((8, 9), np.float32))
    assert wrong == []
    printed = str(module)
    assert "arith.fptosi" not in printed
    assert printed.count("linalg.generic") == 1


def test_a_function_of_two_loops_is_no_table():
    text = """
#id = affine_map<(i, j) -> (i, j)>
func.func @main(%e: tensor<3x4xf32>) -> tensor<3x4xf32> {
  %r = linalg.generic {indexing_maps = [#id], iterator_types = ["parallel", "parallel"]}
      outs(%e : tensor<3x4xf32>) {
  ^bb0(%o: f32):
    %i = linalg.index 0 : index
    %j = linalg.index 1 : index
    %s = arith.addi %i, %j : index
    %k = arith.index_cast %s : index to i64
    %f = arith.sitofp %k : i64 to f32
    %v = math.sqrt %f : f32
    %w = arith.addf %v, %o : f32
    linalg.yield %w : f32
  } -> tensor<3x4xf32>
  return %r : tensor<3x4xf32>
}"""
    chosen = [load_pass("irees-tabulate-index-expressions")()]
    module, wrong = passes_agree(text, chosen, np.zeros((3, 4), np.float32))
    assert wrong == []
    assert str(module).count("linalg.generic") == 1
