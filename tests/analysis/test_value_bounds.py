"""Queries of value bounds: equal, overlapping, and what overflow takes away."""

from __future__ import annotations

import pytest
from xdsl.ir import SSAValue

from irees.analysis._linear import Linear, contradictory, definitions, follows
from irees.analysis.value_bounds import BoundType, Slice, ValueBounds, Variable
from irees.frontends.mlir import import_mlir


def values(text: str) -> list[SSAValue]:
    """What the function of a module returns."""
    module = import_mlir(text)
    return list(next(op for op in module.walk() if op.name == "func.return").operands)


SUMS = """
func.func @f(%a: index, %b: index) -> (index, index, index, index) {
  %c1 = arith.constant 1 : index
  %x = arith.addi %a, %b : index
  %y = arith.addi %b, %a : index
  %z = arith.addi %x, %c1 : index
  func.return %x, %y, %z, %a : index, index, index, index
}
"""


def test_equal_whatever_wraps():
    x, y, z, a = values(SUMS)
    bounds = ValueBounds()
    assert bounds.are_equal(x, y) is True
    assert bounds.are_equal(x, z) is False
    assert bounds.are_equal(x, a) is None


def test_a_sum_is_no_bound_when_it_may_wrap():
    x, _, z, _ = values(SUMS)
    forms = [[b.expression(v) for v in (x, z)] for b in (ValueBounds(), ValueBounds(wraps=False))]
    assert ValueBounds().compare(forms[0][0], "LT", forms[0][1]) is None
    assert ValueBounds(wraps=False).compare(forms[1][0], "LT", forms[1][1]) is True


TILES = """
func.func @f(%n: index) -> (index, index, index, index) {
  %c0 = arith.constant 0 : index
  %c8 = arith.constant 8 : index
  %m = util.assume.int %n<umin = 0, umax = 1000> : index
  %next = arith.addi %m, %c8 : index
  %near = arith.addi %m, %c4 : index
  %d = arith.divsi %m, %c8 : index
  func.return %m, %next, %near, %d : index, index, index, index
}
""".replace("  %m =", "  %c4 = arith.constant 4 : index\n  %m =")


def test_overlapping():
    m, after, near, _ = values(TILES)
    bounds = ValueBounds()
    here = Slice([m], [8], [1])
    assert bounds.are_overlapping(here, Slice([after], [8], [1])) is False
    assert bounds.are_overlapping(here, Slice([near], [8], [1])) is True
    assert bounds.are_overlapping(here, Slice([0], [8], [1])) is None
    assert bounds.are_overlapping(here, here) is True
    # Two combs may pass through each other, and what is empty meets nothing for sure.
    assert bounds.are_overlapping(Slice([m], [4], [2]), Slice([near], [4], [2])) is None
    assert bounds.are_overlapping(Slice([m], [0], [1]), here) is not True


def test_constant_bounds_of_a_quotient():
    *_, d = values(TILES)
    assert ValueBounds().constant_bounds(d) == (0, 125)


def test_a_bound_in_terms_of_others():
    m, _, near, _ = values(TILES)
    found = ValueBounds().bound(BoundType.UB, near, stop=lambda v: v == Variable(m))
    assert found is not None
    assert found.same(Linear.of(Variable(m)) + 5)


def test_promises_of_one_branch_are_not_kept_to_the_other():
    text = """
    func.func @f(%x: index, %c: i1) -> index {
      %c2 = arith.constant 2 : index
      %r = scf.if %c -> (index) {
        %d:2 = affine.delinearize_index %x into (1, 3) : index, index
        scf.yield %d#1 : index
      } else {
        scf.yield %x : index
      }
      func.return %r : index
    }
    """
    (r,) = values(text)
    low, high = ValueBounds().constant_bounds(r)
    assert low is None or low <= -5
    assert high is None or high > 5


@pytest.mark.parametrize(("divisor", "least", "most"), [(1, 3, 7), (2, 1, 3), (5, 0, 1), (8, 0, 0)])
def test_quotients_of_intervals(divisor, least, most):
    x = Linear.of("x")
    q = x.floordiv(divisor)
    facts = [x - 3, -x + 7, *definitions([q])]
    assert follows(facts, q - least)
    assert follows(facts, -q + most)
    assert not follows(facts, q - least - 1)
    assert not follows(facts, -q + most - 1)


@pytest.mark.parametrize(
    ("least", "floor", "ceil"), [(None, None, None), (0, True, None), (-9, None, None)]
)
def test_a_quotient_is_rounded_towards_zero(least, floor, ceil):
    """It is the one rounded down where x >= 0, and neither where the sign of x is not known."""
    assumed = "" if least is None else f"<umin = {least}, umax = 1000>"
    start = "arith.addi %n, %c0" if least is None else f"util.assume.int %n{assumed}"
    if least is not None and least < 0:
        start = "arith.subi %m, %c9"
    text = f"""
    func.func @f(%n: index) -> (index, index, index) {{
      %c0 = arith.constant 0 : index
      %c3 = arith.constant 3 : index
      %c9 = arith.constant 9 : index
      %m = util.assume.int %n<umin = 0, umax = 1000> : index
      %x = {start} : index
      %q = arith.divsi %x, %c3 : index
      %down = arith.floordivsi %x, %c3 : index
      %up = arith.ceildivsi %x, %c3 : index
      func.return %q, %down, %up : index, index, index
    }}
    """
    q, down, up = values(text)
    bounds = ValueBounds()
    assert bounds.are_equal(q, down) is floor
    assert bounds.are_equal(q, up) is ceil
    assert bounds.compare(bounds.expression(down), "LE", bounds.expression(q)) is True
    assert bounds.compare(bounds.expression(q), "LE", bounds.expression(up)) is True


def test_integers_between_two_halves():
    x = Linear.of("x")
    assert contradictory([x * 2 - 1, x * -2 + 1])
    assert not contradictory([x * 2 - 1, x * -2 + 2])
