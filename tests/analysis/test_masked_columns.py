"""Along which loop a mask hides elements, so that the hidden iterations can be skipped."""

from __future__ import annotations

import pytest
from xdsl.dialects.linalg import ops as linalg

from irees.analysis.distribution import loops_of
from irees.analysis.masked_columns import masked_columns
from irees.frontends.mlir import import_mlir

ADDED = "%n = arith.addf %c, %m : f32"

MAP = """
  %{result} = linalg.generic {{indexing_maps = [#mn, {also} #mn],
      iterator_types = ["parallel", "parallel"]}}
      ins(%{source} {extra}) outs(%e : tensor<4x8xf32>) {{
  ^bb0(%a: f32, {argument} %o: f32):
    %i = linalg.index 0 : index
    %j = linalg.index 1 : index
    %seen = arith.cmpi sge, %i, %j : index
    %positive = arith.cmpf ogt, %a, %zero : f32
    %fact = arith.constant 0.25 : f32
    %late = arith.select %seen, %zero, %low : f32
    {body}
    linalg.yield %y : f32
  }} -> tensor<4x8xf32>
"""

PROGRAM = """
#mn = affine_map<(m, n) -> (m, n)>
func.func @main(%q: tensor<4x3xf32>, %k: tensor<8x3xf32>, %v: tensor<8x5xf32>, %bias: tensor<4x8xf32>,
    %bits: tensor<8xi1>, %rows: tensor<4xi1>) -> ({returned}) {{
  %zero = arith.constant 0.0 : f32
  %low = arith.constant 0xFF800000 : f32
  %one = arith.constant 1.0 : f32
  %e = tensor.empty() : tensor<4x8xf32>
  %f = tensor.empty() : tensor<4x5xf32>
  %s = linalg.generic {{indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (n, k)>, affine_map<(m, n, k) -> (m, n)>],
      iterator_types = ["parallel", "parallel", "reduction"]}}
      ins(%q, %k : tensor<4x3xf32>, tensor<8x3xf32>) outs(%e : tensor<4x8xf32>) {{
  ^bb0(%a: f32, %b: f32, %c: f32):
    %m = arith.mulf %a, %b : f32
    %n = arith.addf %c, %m : f32
    linalg.yield %n : f32
  }} -> tensor<4x8xf32>
{maps}
  %r = linalg.generic {{indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (k, n)>, affine_map<(m, n, k) -> (m, n)>],
      iterator_types = ["parallel", "parallel", "reduction"]}}
      ins(%{last}, %v : tensor<4x8xf32>, tensor<8x5xf32>) outs(%f : tensor<4x5xf32>) {{
  ^bb0(%a: f32, %b: f32, %c: f32):
    %m = arith.mulf %a, %b : f32
    {combine}
    linalg.yield %n : f32
  }} -> tensor<4x5xf32>
  return {results}
}}
"""


def step(body: str, number: int, extra: tuple[str, str, str] = ("", "", "")) -> str:
    """An elementwise op: t{number} of t{number - 1}, the first one of the scores."""
    indexing, operand, kind = extra
    source = f"t{number - 1}" if number else "s"
    types = "tensor<4x8xf32>" + (f", {kind}" if kind else "")
    inner = kind.removesuffix(">").split("x")[-1] if kind else ""
    return MAP.format(
        result=f"t{number}",
        source=source,
        also=indexing,
        extra=f"{', %' + operand if operand else ''} : {types}",
        argument=f"%b: {inner}," if inner else "",
        body=body,
    )


def found(*bodies: str, extra=("", "", ""), combine=ADDED, returns_weights=False):
    """The loops that may skip, of the scores, these elementwise ops and a product."""
    steps = [step(body, i, extra if i == 0 else ("", "", "")) for i, body in enumerate(bodies)]
    last = f"t{len(bodies) - 1}"
    returned, results = "tensor<4x5xf32>", "%r : tensor<4x5xf32>"
    if returns_weights:
        returned += ", tensor<4x8xf32>"
        results = f"%r, %{last} : tensor<4x5xf32>, tensor<4x8xf32>"
    text = PROGRAM.format(
        maps="".join(steps), last=last, combine=combine, returned=returned, results=results
    )
    ops = [o for o in import_mlir(text).walk() if isinstance(o, linalg.GenericOp)]
    members = [m for op in ops if (m := loops_of(op)) is not None]
    masked = masked_columns(members)
    return None if masked is None else (masked.mask, masked.loops)


BITS = ("affine_map<(m, n) -> (n)>,", "bits", "tensor<8xi1>")
ROWS = ("affine_map<(m, n) -> (m)>,", "rows", "tensor<4xi1>")
BIAS = ("#mn,", "bias", "tensor<4x8xf32>")


@pytest.mark.parametrize(
    ("bodies", "extra"),
    [
        (["%y = arith.select %seen, %a, %zero : f32"], ("", "", "")),
        (["%y = arith.select %b, %a, %zero : f32"], BITS),
        (["%y = arith.select %b, %zero, %a : f32"], BITS),
        (["%y = arith.addf %a, %late : f32", "%y = math.exp %a : f32"], ("", "", "")),
        (["%y = arith.addf %b, %a : f32", "%y = math.exp %a : f32"], BIAS),
        (
            [
                "%x = arith.mulf %a, %fact : f32\n    %y = arith.addf %x, %late : f32",
                "%x = arith.subf %a, %one : f32\n    %y = math.exp2 %x : f32",
                "%y = arith.divf %a, %fact : f32",
            ],
            ("", "", ""),
        ),
    ],
)
def test_hidden_columns_are_skipped(bodies, extra):
    steps = len(bodies)
    loops = {0: 1, **{i + 1: 1 for i in range(steps)}, steps + 1: 2}
    assert found(*bodies, extra=extra) == (1, loops)


@pytest.mark.parametrize(
    ("bodies", "extra", "why"),
    [
        (["%y = arith.select %positive, %a, %zero : f32"], ("", "", ""), "the scores decide"),
        (["%y = arith.select %b, %a, %zero : f32"], ROWS, "whole rows are hidden"),
        (["%y = arith.select %seen, %a, %one : f32"], ("", "", ""), "1 counts"),
        (["%y = arith.addf %a, %late : f32"], ("", "", ""), "-infinity is summed"),
        (
            ["%y = arith.select %seen, %a, %zero : f32", "%y = arith.addf %a, %one : f32"],
            ("", "", ""),
            "0 + 1 is summed",
        ),
        (
            ["%y = arith.select %seen, %a, %zero : f32", "%y = math.exp %a : f32"],
            ("", "", ""),
            "exp(0) is summed",
        ),
        (
            ["%y = arith.addf %a, %late : f32", "%y = arith.subf %one, %a : f32"],
            ("", "", ""),
            "+infinity is summed",
        ),
    ],
)
def test_other_masks_are_not(bodies, extra, why):
    assert found(*bodies, extra=extra) is None, why


def test_a_bias_before_the_mask_is_no_mask():
    """-infinity in it is not hidden: it would be summed."""
    bodies = ["%y = arith.addf %b, %a : f32", "%y = arith.select %seen, %a, %zero : f32"]
    assert found(*bodies, extra=BIAS) == (2, {0: 1, 1: 1, 2: 1, 3: 2})


def test_a_choice_between_hidden_elements_is_hidden():
    body = "%y = arith.select %seen, %a, %zero : f32"
    assert found(body, "%y = arith.select %positive, %a, %zero : f32") == (
        1,
        {0: 1, 1: 1, 2: 1, 3: 2},
    )


def test_what_the_program_returns_is_computed_whole():
    body = "%y = arith.select %seen, %a, %zero : f32"
    assert found(body) is not None
    assert found(body, returns_weights=True) is None


def test_the_product_must_be_summed():
    body = "%y = arith.select %seen, %a, %zero : f32"
    assert found(body, combine="%n = arith.maximumf %c, %m : f32") is None
    assert found(body, combine="%n = arith.mulf %c, %m : f32") is None
