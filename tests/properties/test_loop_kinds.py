"""
Loops of an output that are called "reduction" or "window": MLIR runs them in order, and so the
results are those of parallel loops.
"""

from __future__ import annotations

import itertools

import numpy as np
import pytest

import irees

KINDS = ("parallel", "reduction", "window")
BODIES = {
    "sum": "%r = arith.addf %a, %o : f32",
    "maximum": "%r = arith.maximumf %a, %o : f32",
    "map": "%r = arith.addf %a, %a : f32",
    "product": "%p = arith.mulf %a, %b : f32\n%r = arith.addf %p, %o : f32",
}
CASES = {
    # maps, shapes of inputs and output, bodies, and the loops that are no loop of the output
    "same": (["(i, j)", "(i, j)"], [(6, 20), (6, 20)], ("sum", "maximum", "map"), ()),
    "transposed": (["(j, i)", "(i, j)"], [(20, 6), (6, 20)], ("sum", "maximum", "map"), ()),
    "rows": (["(i, j)", "(i)"], [(6, 20), (6,)], ("sum", "maximum", "map"), (1,)),
    "columns": (["(i, j)", "(j)"], [(6, 20), (20,)], ("sum", "maximum", "map"), (0,)),
    "diagonals": (["(i)", "(j)", "(i + j)"], [(6,), (4,), (9,)], ("product",), (0, 1)),
    "matrices": (
        ["(i, k)", "(k, j)", "(i, j)"], [(5, 7), (7, 48), (5, 48)], ("product",), (2,),
    ),
}  # fmt: skip


def program(maps: list[str], shapes: list[tuple[int, ...]], kinds: tuple[str, ...], body: str):
    types = [f"tensor<{'x'.join(['?'] * len(shape))}xf32>" for shape in shapes]
    loops = "(i, j, k)" if len(kinds) == 3 else "(i, j)"
    names = ["%x", "%y"][: len(types) - 1]
    arguments = ", ".join(f"{n}: {t}" for n, t in zip([*names, "%c"], types, strict=True))
    scalars = ", ".join(f"{n}: f32" for n in [*["%a", "%b"][: len(names)], "%o"])
    return f"""
func.func @main({arguments}) -> {types[-1]} {{
  %g = linalg.generic {{indexing_maps = [{", ".join(f"affine_map<{loops} -> {m}>" for m in maps)}],
      iterator_types = [{", ".join(f'"{kind}"' for kind in kinds)}]}}
      ins({", ".join(names)} : {", ".join(types[:-1])}) outs(%c : {types[-1]}) {{
  ^bb0({scalars}):
    {BODIES[body]}
    linalg.yield %r : f32
  }} -> {types[-1]}
  return %g : {types[-1]}
}}"""


@pytest.mark.parametrize("target", ["cpu", "cuda-emulated"])
@pytest.mark.parametrize("name", CASES)
def test_loops_of_an_output_may_have_any_kind(name, target):
    maps, shapes, bodies, reduced = CASES[name]
    random = np.random.default_rng(0)
    inputs = [random.standard_normal(shape).astype(np.float32) for shape in shapes]
    loops = 3 if name == "matrices" else 2
    for body, kinds in itertools.product(bodies, itertools.product(KINDS, repeat=loops)):
        if any(kinds[loop] == "parallel" for loop in reduced):
            continue
        text = program(maps, shapes, kinds, body)
        wanted, found = (
            irees.compile(text, target=each)(*inputs[:-1], inputs[-1].copy())
            for each in ("reference", target)
        )
        np.testing.assert_allclose(found, wanted, rtol=1e-5, atol=1e-5, err_msg=str((body, kinds)))
