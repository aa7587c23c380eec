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

The same holds for the region of a `linalg.reduce`. Other named ops write all elements of their
outputs, or accumulate into them. MLIR: the `outs` of a generic are in destination-passing style, so
elements that no iteration writes keep their value.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ArrayAttr, ModuleOp, TensorType
from xdsl.dialects.linalg import ops as linalg
from xdsl.dialects.linalg.attrs import IteratorType, IteratorTypeAttr
from xdsl.ir import SSAValue
from xdsl.ir.affine import AffineConstantExpr, AffineDimExpr, AffineMap
from xdsl.passes import ModulePass
from xdsl.rewriter import InsertPoint, Rewriter

from irees.analysis.affine_steps import linear_form
from irees.dialects.irees import KeepOp
from irees.transforms.utils.structured import Structured, iterators, maps, static_ranges


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


def writes_all(output: SSAValue, indexing: AffineMap, ranges: Callable[[], list[int]]) -> bool:
    """Whether loops with these trip counts provably write every element of an output."""
    assert isinstance(output.type, TensorType)
    loops = plain_loops(indexing, output.type.get_shape())
    others = set(range(indexing.num_dims)) - (loops or set())
    counts = ranges() if others else []
    return loops is not None and all(counts[loop] > 0 for loop in others)


def keep_inits(op: Structured) -> None:
    """Adds a use of each init that the op may keep in part."""
    count, block = len(op.inputs), op.regions[0].block
    terminator = block.last_op
    assert terminator is not None
    for number, (output, own) in enumerate(zip(op.outputs, maps(op)[count:], strict=True)):
        argument = block.args[count + number]
        if argument.uses or writes_all(output, own, lambda: static_ranges(op)):
            continue
        keep = KeepOp(terminator.operands[number], argument)
        Rewriter.insert_op(keep, InsertPoint.before(terminator))
        terminator.operands[number] = keep.result


def order_writes(op: linalg.GenericOp) -> None:
    """Makes each loop a reduction of which several iterations may write one element."""
    kinds = iterators(op)
    for indexing in maps(op)[len(op.inputs) :]:
        apart = loops_apart(indexing)
        kinds = [k if loop in apart else "reduction" for loop, k in enumerate(kinds)]
    if kinds != iterators(op):
        op.iterator_types = ArrayAttr(IteratorTypeAttr(IteratorType(kind)) for kind in kinds)


@dataclass(frozen=True)
class KeepInitsPass(ModulePass):
    """Makes generics that write only part of an output depend on its init."""

    name = "irees-keep-inits"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for inner in list(op.walk()):
            if isinstance(inner, Structured) and inner.results and inner.regions:
                keep_inits(inner)
            if isinstance(inner, linalg.GenericOp) and inner.res:
                order_writes(inner)
