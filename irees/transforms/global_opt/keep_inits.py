"""
Makes the dependence on an init explicit where a generic writes only part of its output.

A generic keeps the old value of each output element that its output map does not write, and of all
elements if a reduction has no iterations. Passes detect a live init by a use of its block argument;
without a use they pass an uninitialized buffer. So this pass adds a use (`irees.keep`) unless the
map proves that every element is written. If several iterations of a loop may write the same
element, the loop becomes a reduction, which runs in order: the last write wins.

    %r = linalg.generic {(i) -> (i), (i) -> (i floordiv 2), parallel} ins(%x) outs(%o) {
    ^bb0(%a: f32, %b: f32):
      linalg.yield %a }
  =>
    %r = linalg.generic {(i) -> (i), (i) -> (i floordiv 2), reduction} ins(%x) outs(%o) {
    ^bb0(%a: f32, %b: f32):
      %k = irees.keep %a, %b : f32
      linalg.yield %k }

Named ops write all elements of their outputs, or accumulate into them. MLIR: the `outs` of a
generic are in destination-passing style, so elements that no iteration writes keep their value.
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
    Returns the loops that are plain indices of a map; None if another index is not a plain loop.
    Ignores index 0 of a dim of size 1.
    """
    first = AffineConstantExpr(0)
    exprs = [e for e, n in zip(indexing.results, shape, strict=True) if (e, n) != (first, 1)]
    loops = {e.position for e in exprs if isinstance(e, AffineDimExpr)}
    return loops if len(loops) == len(exprs) else None


def loops_apart(indexing: AffineMap) -> set[int]:
    """Returns the loops whose iterations write distinct elements: an index depends on it alone."""
    found: set[int] = set()
    for expr in indexing.results:
        form = linear_form(expr)
        moving = [loop for loop, factor in form[0].items() if factor] if form is not None else []
        if len(moving) == 1:
            found.add(moving[0])
    return found


def writes_all(op: linalg.GenericOp, output: SSAValue, indexing: AffineMap) -> bool:
    """Whether the op provably writes every element of an output with this map."""
    assert isinstance(output.type, TensorType)
    loops = plain_loops(indexing, output.type.get_shape())
    others = set(range(len(iterators(op)))) - (loops or set())
    ranges = static_ranges(op) if others else []
    return loops is not None and all(ranges[loop] > 0 for loop in others)


def keep_inits(op: linalg.GenericOp) -> None:
    """Adds a use of each init that the op may keep in part, and orders conflicting writes."""
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
    """Makes generics that write only part of an output depend on its init."""

    name = "irees-keep-inits"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for inner in list(op.walk()):
            if isinstance(inner, linalg.GenericOp) and inner.res:
                keep_inits(inner)
