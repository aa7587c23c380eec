"""
Makes structured ops say that they keep a part of what their output holds.

A generic whose output map reaches only some elements of the output, or reaches none because a
reduction has no points, leaves the others as they were. Passes see that an init matters by the use
of its block argument; without one they give the op a buffer that nobody has written. So the body
gets such a use where the map does not show that every element is written, and the loops that lead
several points to one element run in order, since the last one wins.

    %r = linalg.generic {(i) -> (i), (i) -> (i floordiv 2), parallel} ins(%x) outs(%o) {
    ^bb0(%a: f32, %b: f32):
      linalg.yield %a }
  =>
    %r = linalg.generic {(i) -> (i), (i) -> (i floordiv 2), reduction} ins(%x) outs(%o) {
    ^bb0(%a: f32, %b: f32):
      %k = irees.keep %a, %b : f32
      linalg.yield %k }

Named ops write all of their outputs, or add to them. In MLIR `outs` of a generic are operands of
destination-passing style, whose elements that no point writes are those of the init.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ArrayAttr, ModuleOp, TensorType
from xdsl.dialects.linalg import ops as linalg
from xdsl.dialects.linalg.attrs import IteratorType, IteratorTypeAttr
from xdsl.ir import SSAValue
from xdsl.ir.affine import AffineConstantExpr, AffineDimExpr, AffineMap
from xdsl.passes import ModulePass
from xdsl.rewriter import InsertPoint, Rewriter

from irees.dialects.irees import KeepOp
from irees.transforms.utils.structured import iterators, linear_form, maps, static_ranges


def plain_loops(indexing: AffineMap, shape: Sequence[int]) -> set[int] | None:
    """
    The loops that a map goes along one by one, beside the only element of dims of size 1; None
    where an index is anything else.
    """
    first = AffineConstantExpr(0)
    exprs = [e for e, n in zip(indexing.results, shape, strict=True) if (e, n) != (first, 1)]
    loops = {e.position for e in exprs if isinstance(e, AffineDimExpr)}
    return loops if len(loops) == len(exprs) else None


def loops_apart(indexing: AffineMap) -> set[int]:
    """The loops of which no two points write to one element: an index is a multiple of each."""
    found: set[int] = set()
    for expr in indexing.results:
        form = linear_form(expr)
        moving = [loop for loop, factor in form[0].items() if factor] if form is not None else []
        if len(moving) == 1:
            found.add(moving[0])
    return found


def writes_all(op: linalg.GenericOp, output: SSAValue, indexing: AffineMap) -> bool:
    """Whether each element of an output with this map is written."""
    assert isinstance(output.type, TensorType)
    loops = plain_loops(indexing, output.type.get_shape())
    others = set(range(len(iterators(op)))) - (loops or set())
    ranges = static_ranges(op) if others else []
    return loops is not None and all(ranges[loop] > 0 for loop in others)


def keep_inits(op: linalg.GenericOp) -> None:
    """Uses each init of which a part is kept."""
    count, block = len(op.inputs), op.body.block
    kinds = iterators(op)
    terminator = block.last_op
    assert terminator is not None
    for number, indexing in enumerate(maps(op)[count:]):
        argument = block.args[count + number]
        apart = loops_apart(indexing)
        kinds = [k if loop in apart else "reduction" for loop, k in enumerate(kinds)]
        if argument.uses or writes_all(op, op.outputs[number], indexing):
            continue
        keep = KeepOp(terminator.operands[number], argument)
        Rewriter.insert_op(keep, InsertPoint.before(terminator))
        terminator.operands[number] = keep.result
    if kinds != iterators(op):
        op.iterator_types = ArrayAttr(IteratorTypeAttr(IteratorType(kind)) for kind in kinds)


@dataclass(frozen=True)
class KeepInitsPass(ModulePass):
    """Generics that do not write all of an output depend on what it holds."""

    name = "irees-keep-inits"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for inner in list(op.walk()):
            if isinstance(inner, linalg.GenericOp) and inner.res:
                keep_inits(inner)
