"""Masks of comparisons of any width choose among elements of any width, alone and combined."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

import irees

DTYPES = {"i8": np.int8, "i32": np.int32, "i64": np.int64, "f64": np.float64}


def compare(dtype: str, name: str, predicate: str) -> str:
    if dtype.startswith("f"):
        return f"arith.cmpf o{predicate}, {name}, %zero{dtype} : {dtype}"
    return f"arith.cmpi s{predicate}, {name}, %zero{dtype} : {dtype}"


@pytest.mark.parametrize("chosen", DTYPES)
@pytest.mark.parametrize("join", ["andi", "ori"])
def test_masks_of_two_comparisons(chosen, join):
    """select((a > 0) op (b < 0), c, 0) for all types of a and b."""
    numbers = np.random.default_rng(0).integers(-3, 4, (3, 203))
    for first, second in product(DTYPES, DTYPES):
        kinds = first, second, chosen
        zeros = "\n".join(
            f"  %zero{kind} = arith.constant {'0.0' if kind[0] == 'f' else 0} : {kind}"
            for kind in dict.fromkeys(kinds)
        )
        text = f"""#id = affine_map<(i) -> (i)>
func.func @main(%x: tensor<203x{first}>, %y: tensor<203x{second}>, %z: tensor<203x{chosen}>)
    -> tensor<203x{chosen}> {{
{zeros}
  %e = tensor.empty() : tensor<203x{chosen}>
  %r = linalg.generic {{indexing_maps = [#id, #id, #id, #id], iterator_types = ["parallel"]}}
      ins(%x, %y, %z : tensor<203x{first}>, tensor<203x{second}>, tensor<203x{chosen}>)
      outs(%e : tensor<203x{chosen}>) {{
  ^bb0(%a: {first}, %b: {second}, %c: {chosen}, %o: {chosen}):
    %p = {compare(first, "%a", "gt")}
    %q = {compare(second, "%b", "lt")}
    %m = arith.{join} %p, %q : i1
    %s = arith.select %m, %c, %zero{chosen} : {chosen}
    linalg.yield %s : {chosen}
  }} -> tensor<203x{chosen}>
  return %r : tensor<203x{chosen}>
}}"""
        a, b, c = (n.astype(DTYPES[kind]) for n, kind in zip(numbers, kinds, strict=True))
        both = {"andi": np.logical_and, "ori": np.logical_or}[join]
        wanted = np.where(both(a > 0, b < 0), c, 0)
        np.testing.assert_array_equal(irees.compile(text)(a, b, c), wanted)
