"""Each guard of the attention pattern: what it refuses, and what it says."""

from __future__ import annotations

import numpy as np
import pytest

from irees.compiler import compile
from irees.dialects import get_context
from irees.frontends.mlir import import_mlir
from irees.remarks import collect
from irees.testing.oracles import passes_agree
from irees.testing.tolerances import reassociated
from irees.transforms import load_pass

TEXT = """
func.func @main(%q: tensor<2x4x8xf32>, %k: tensor<2x6x8xf32>, %v: tensor<2x6x5xf32>,
    %mask: tensor<4x6xf32>, %s: tensor<2x4x6xf32>, %o: tensor<2x4x5xf32>, %number: f32)
    -> (tensor<2x4x5xf32>) {
  %zero = arith.constant 0.0 : f32
  %one = arith.constant 1.0 : f32
  %low = arith.constant -0.0 : f32
  %eight = arith.constant 8.0 : f32
  %three = arith.constant 3.0 : f32
  %s0 = linalg.fill ins(%zero : f32) outs(%s : tensor<2x4x6xf32>) -> tensor<2x4x6xf32>
  %o0 = linalg.fill ins(%zero : f32) outs(%o : tensor<2x4x5xf32>) -> tensor<2x4x5xf32>
  %x = linalg.generic {indexing_maps = [affine_map<(b, m, s, k) -> (b, m, k)>,
      affine_map<(b, m, s, k) -> (b, s, k)>, affine_map<(b, m, s, k) -> (b, m, s)>],
      iterator_types = ["parallel", "parallel", "parallel", "reduction"]}
      ins(%q, %k : tensor<2x4x8xf32>, tensor<2x6x8xf32>) outs(%s0 : tensor<2x4x6xf32>) {
  ^bb0(%a: f32, %b: f32, %c: f32):
    %d = arith.mulf %a, %b : f32
    %e = arith.addf %c, %d : f32
    linalg.yield %e : f32
  } -> tensor<2x4x6xf32>
  %y = linalg.generic {indexing_maps = [affine_map<(b, m, s) -> (b, m, s)>,
      affine_map<(b, m, s) -> (m, s)>, affine_map<(b, m, s) -> ()>,
      affine_map<(b, m, s) -> (b, m, s)>], iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%x, %mask, %number : tensor<2x4x6xf32>, tensor<4x6xf32>, f32)
      outs(%s : tensor<2x4x6xf32>) {
  ^bb0(%a: f32, %b: f32, %c: f32, %d: f32):
    %e = arith.mulf %c, %a : f32
    %f = arith.addf %b, %e : f32
    linalg.yield %f : f32
  } -> tensor<2x4x6xf32>
  %p = linalg.softmax dimension(2) ins(%y : tensor<2x4x6xf32>) outs(%s : tensor<2x4x6xf32>)
      -> tensor<2x4x6xf32>
  %r = linalg.batch_matmul ins(%p, %v : tensor<2x4x6xf32>, tensor<2x6x5xf32>)
      outs(%o0 : tensor<2x4x5xf32>) -> tensor<2x4x5xf32>
  return %r : tensor<2x4x5xf32>
}
"""
SUM, BODY = "%e = arith.addf %c, %d : f32", "%e = arith.mulf %c, %a : f32"
MASKED = "%f = arith.addf %b, %e : f32"
RETURN = "return %r : tensor<2x4x5xf32>"
TYPES = "    -> (tensor<2x4x5xf32>)"
TWO = (TYPES, "    -> (tensor<2x4x5xf32>, tensor<2x4x6xf32>)")


SHAPES = ((2, 4, 8), (2, 6, 8), (2, 6, 5), (4, 6), (2, 4, 6), (2, 4, 5))


def run(*changes: tuple[str, str], text=TEXT, shapes=SHAPES) -> tuple[str, list[str]]:
    for old, new in changes:
        assert text.count(old) == 1, old
        text = text.replace(old, new)
    random = np.random.default_rng(1)
    inputs = [random.normal(0, 1, shape).astype(np.float32) for shape in shapes]
    with collect() as remarks:
        module, wrong = passes_agree(
            text,
            [load_pass("irees-raise-special-ops")()],
            *inputs,
            np.float32(0.5),
            tolerances=(reassociated(64),) * 2,
        )
    assert wrong == []
    return str(module), [r.text for r in remarks]


@pytest.mark.parametrize(
    "changes",
    [
        (),
        ((BODY, "%e = arith.divf %a, %eight : f32"),),
        ((BODY, "%e = arith.mulf %a, %three : f32"),),
        ((BODY, "%g = arith.constant 3.0 : f32\n %e = arith.mulf %a, %g : f32"),),
    ],
)
def test_raised(changes):
    text, remarks = run(*changes)
    assert "iree_linalg_ext.attention" in text
    assert "linalg.softmax" not in text
    assert remarks == ["raised two contractions and a softmax to attention"]


NOT_PRODUCTS = "the scores are not a scaled or masked product"


@pytest.mark.parametrize(
    ("why", "changes"),
    [
        ("the scores have other uses", (
            TWO, (RETURN, "return %r, %p : tensor<2x4x5xf32>, tensor<2x4x6xf32>"))),
        ("the scores have other uses", (
            TWO, (RETURN, "return %r, %x : tensor<2x4x5xf32>, tensor<2x4x6xf32>"))),
        (NOT_PRODUCTS, ((SUM, "%g = arith.mulf %d, %d : f32\n %e = arith.addf %c, %g : f32"),)),
        (NOT_PRODUCTS, ((MASKED, "%f = arith.subf %e, %b : f32"),)),
        # The scale comes after the mask.
        (NOT_PRODUCTS, (
            (BODY, "%e = arith.addf %a, %b : f32"), (MASKED, "%f = arith.mulf %c, %e : f32"))),
        ("a contraction does not start from 0", (
            ("linalg.fill ins(%zero : f32) outs(%s :", "linalg.fill ins(%one : f32) outs(%s :"),)),
        ("a contraction does not start from 0", (
            ("linalg.fill ins(%zero : f32) outs(%o :", "linalg.fill ins(%low : f32) outs(%o :"),)),
        ("a contraction does not start from 0", (("outs(%o0 :", "outs(%o :"),)),
        ("the scores are the init of an op", (
            (BODY, "%e = arith.mulf %c, %d : f32"),)),
        ("the scores are added to themselves", ((MASKED, "%f = arith.addf %e, %e : f32"),)),
        ("the tensor added to the scores is not a mask", (
            (MASKED, "%f = arith.addf %e, %three : f32"),
        )),
        ("the scores are scaled by a tensor", (
            (BODY, "%e = arith.mulf %a, %b : f32"), (MASKED, "%f = arith.addf %e, %b : f32"))),
        ("the divisor of the scores is not a power of two: a product rounds differently", (
            (BODY, "%e = arith.divf %a, %three : f32"),)),
        ("the contraction with the values does not sum over the keys", (
            ("dimension(2)", "dimension(1)"),)),
    ],
)  # fmt: skip
def test_refused(why, changes):
    text, remarks = run(*changes)
    assert "linalg.softmax" in text
    assert remarks == [f"no attention: {why}"]


def test_one_key():
    shapes = [tuple(1 if n == 6 else n for n in shape) for shape in SHAPES]
    text, remarks = run(text=TEXT.replace("6x", "1x"), shapes=shapes)
    assert "linalg.softmax" in text
    assert remarks == ["no attention: there is only one key"]


def test_values_of_the_query():
    values = """linalg.generic {indexing_maps = [affine_map<(b, m, n, s) -> (b, m, s)>,
      affine_map<(b, m, n, s) -> (m, s, n)>, affine_map<(b, m, n, s) -> (b, m, n)>],
      iterator_types = ["parallel", "parallel", "parallel", "reduction"]}
      ins(%p, %v : tensor<2x4x6xf32>, tensor<4x6x5xf32>) outs(%o0 : tensor<2x4x5xf32>) {
  ^bb0(%a: f32, %b: f32, %c: f32):
    %d = arith.mulf %a, %b : f32
    %e = arith.addf %c, %d : f32
    linalg.yield %e : f32
  } -> tensor<2x4x5xf32>"""
    begin, end = TEXT.index("linalg.batch_matmul"), TEXT.index("\n  return")
    changed = (TEXT[:begin] + values + TEXT[end:]).replace("2x6x5", "4x6x5")
    text, remarks = run(text=changed, shapes=(*SHAPES[:2], (4, 6, 5), *SHAPES[3:]))
    assert "linalg.softmax" in text
    assert remarks == ["no attention: the values depend on the query"]


def test_keys_in_both_factors():
    shapes = ((2, 4, 6, 8), *SHAPES[1:])
    changed = TEXT.replace("2x4x8", "2x4x6x8").replace("(b, m, k)>", "(b, m, s, k)>")
    text, remarks = run(text=changed, shapes=shapes)
    assert "linalg.softmax" in text
    assert remarks == ["no attention: both operands of the score product have a key dim"]


def test_scores_in_another_order():
    # As many queries as keys, so that the scores can be transposed on the way.
    rest = ",\n      affine_map<(b, m, s) -> (m, s)>"
    before, after = (f"affine_map<(b, m, s) -> ({d})>{rest}" for d in ("b, m, s", "b, s, m"))
    shapes = [tuple(4 if n == 6 else n for n in shape) for shape in SHAPES]
    text, remarks = run((before, after), text=TEXT.replace("6x", "4x"), shapes=shapes)
    assert "linalg.softmax" in text
    assert remarks == ["no attention: the dims of the scores are permuted"]


def test_scores_of_another_block():
    begin, end = TEXT.index("%r = linalg.batch_matmul"), TEXT.index("\n  return")
    loop = f"""%c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %r = scf.for %i = %c0 to %c1 step %c1 iter_args(%t = %o) -> (tensor<2x4x5xf32>) {{
    {TEXT[begin:end].replace("%r", "%u")}
    scf.yield %u : tensor<2x4x5xf32>
  }}"""
    text, remarks = run(text=TEXT[:begin] + loop + TEXT[end:])
    assert "linalg.softmax" in text
    assert remarks == ["no attention: the scores are computed in another block"]


def test_half_floats_stay():
    text = TEXT.replace("f32", "f16")
    module = import_mlir(text)
    load_pass("irees-raise-special-ops")().apply(get_context(), module)
    assert "linalg.softmax" in str(module)


def test_the_compiled_program_gives_the_same_bits():
    random = np.random.default_rng(2)
    inputs = [random.normal(0, 1, shape).astype(np.float32) for shape in SHAPES]
    programs = [compile(TEXT), compile(TEXT, disable_pass=("irees-raise-special-ops",))]
    one, other = (program(*inputs, np.float32(0.3)) for program in programs)
    assert np.array_equal(one, other)
