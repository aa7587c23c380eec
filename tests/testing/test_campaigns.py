"""Faults in peepholes of one's own are found, and a pass that does nothing is not called tested."""

from __future__ import annotations

import pytest
from clock import at_most
from xdsl.context import Context
from xdsl.dialects import arith
from xdsl.dialects.builtin import FloatAttr, IntegerAttr, ModuleOp
from xdsl.ir import Operation, SSAValue
from xdsl.passes import ModulePass
from xdsl.pattern_rewriter import PatternRewriter, PatternRewriteWalker, RewritePattern

from irees.testing.campaigns import NeverRewroteError, WrongRewriteError, fuzz
from irees.transforms import load_pass

pytest.importorskip("hypothesis")


def number(value: SSAValue) -> float | int | None:
    """The number of a constant."""
    if not isinstance(value.owner, arith.ConstantOp):
        return None
    found = value.owner.value
    return found.value.data if isinstance(found, FloatAttr | IntegerAttr) else None


class Peephole(RewritePattern):
    """A rewrite that a function gives: of an op, the value that replaces it, or None."""

    def __init__(self, rewrite):
        self.rewrite = rewrite

    def match_and_rewrite(self, op: Operation, rewriter: PatternRewriter) -> None:
        new = self.rewrite(op)
        if isinstance(new, Operation | tuple):
            rewriter.replace(op, new)
        elif new is not None:
            rewriter.replace(op, [], [new])


class PeepholePass(ModulePass):
    name = "test-peephole"

    def __init__(self, rewrite):
        object.__setattr__(self, "rewrite", rewrite)

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        PatternRewriteWalker(Peephole(self.rewrite), apply_recursively=False).rewrite_module(op)


def double(op):
    """x * 2  =>  x + x"""
    if isinstance(op, arith.MulfOp) and number(op.rhs) == 2:
        return arith.AddfOp(op.lhs, op.lhs, op.fastmath)


def double_of_any(op):
    """x * c  =>  x + x: the guard is missing"""
    if isinstance(op, arith.MulfOp) and number(op.rhs) is not None:
        return arith.AddfOp(op.lhs, op.lhs, op.fastmath)


def double_of_the_other(op):
    """x * 2  =>  2 + 2: the operand is wrong"""
    if isinstance(op, arith.MulfOp) and number(op.rhs) == 2:
        return arith.AddfOp(op.rhs, op.rhs, op.fastmath)


def no_difference(op):
    """x - x  =>  0: not of NaN and infinity"""
    if isinstance(op, arith.SubfOp) and op.lhs is op.rhs:
        return arith.ConstantOp(FloatAttr(0.0, op.result.type))


def sum_with_zero(op):
    """x + 0  =>  x: not of -0"""
    if isinstance(op, arith.AddfOp) and str(number(op.rhs)) == "0.0":
        return op.lhs


def equal_to_itself(op):
    """x == x  =>  true: not of NaN"""
    if isinstance(op, arith.CmpfOp) and op.lhs is op.rhs and op.predicate.value.data == 1:
        return arith.ConstantOp.from_int_and_width(-1, 1)


def halved(op):
    """x / 2 (signed)  =>  x >> 1: not of negative numbers"""
    if isinstance(op, arith.DivSIOp) and number(op.rhs) == 2:
        one = arith.ConstantOp(IntegerAttr(1, op.result.type))
        return one, arith.ShRSIOp(op.lhs, one)


def fails(op):
    """raises"""
    if isinstance(op, arith.MulfOp):
        raise KeyError("mulf")


def test_a_right_peephole_passes_and_its_rewrites_are_counted():
    done = fuzz(PeepholePass(double), examples=300, ops=["arith.mulf", "arith.addf"])
    assert done.programs >= 300
    assert done.changed > 10
    assert f"{done.changed} changed" in str(done)


FAULTS = [
    double_of_any,
    double_of_the_other,
    no_difference,
    sum_with_zero,
    equal_to_itself,
    halved,
    fails,
]


@pytest.mark.parametrize("rewrite", FAULTS, ids=lambda rewrite: rewrite.__name__)
def test_a_wrong_peephole_is_found(rewrite):
    with at_most(120), pytest.raises(WrongRewriteError) as caught:
        fuzz(PeepholePass(rewrite), examples=1000)
    assert "func.func @" in str(caught.value)


def test_what_never_rewrites_is_not_tested():
    with pytest.raises(NeverRewroteError, match="test-peephole changed none of"):
        fuzz(PeepholePass(lambda op: None), examples=20, ops=["arith.negf", "matmul"])


@pytest.mark.parametrize("name", ["canonicalize", "irees-optimize-int-arithmetic"])
def test_passes_of_irees(name):
    each = load_pass(name)() if name.startswith("irees-") else canonicalize()
    ops = ["arith.addi", "arith.muli", "arith.subf", "elementwise", "reduction"]
    assert fuzz(each, examples=100, ops=ops).changed


def canonicalize():
    from irees.transforms.utils.upstream_passes import OWN

    return OWN["canonicalize"]()
