"""
Drops results that nobody uses from ops with several.

    %m:2 = linalg.generic ... outs(%v, %i) { max, and the index of it }    // only %m#0 is used
  =>
    %m = linalg.generic ... outs(%v) { max }

A result of `linalg.generic` goes when its accumulator feeds nothing but its own yield and
when the other operands still bound every loop. An operand of a sort goes, with its pair
of comparator arguments, when the comparator reads neither: a key that is compared stays
even where only the positions are wanted. Code of a body that no longer leads to a yield
goes first. An op of which nothing is used is dead and left to canonicalization. IREE:
`RemoveUnusedSortOpResults`; MLIR: `EraseUnusedOperandsAndResults`.
"""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.linalg import ops as linalg
from xdsl.ir import Block, Operation, SSAValue
from xdsl.ir.affine import AffineMap
from xdsl.passes import ModulePass
from xdsl.rewriter import InsertPoint, Rewriter
from xdsl.traits import is_side_effect_free

from irees.dialects import iree_linalg_ext as ext
from irees.transforms.utils.structured import generic, iterators, maps


def erase_dead_code(block: Block) -> None:
    """Erases ops of a body whose results nobody reads."""
    for op in list(block.ops)[::-1]:
        if op.results and not any(r.uses for r in op.results) and is_side_effect_free(op):
            Rewriter.erase_op(op)


def only_feeds_itself(
    argument: SSAValue, yielded: SSAValue, position: int, terminator: Operation
) -> bool:
    """Whether an accumulator is read only on the way to its own yield."""
    reached: set[Operation] = set()
    stack = [argument]
    while stack:
        value = stack.pop()
        for use in value.uses:
            if use.operation is terminator:
                if use.index != position:
                    return False
                continue
            if use.operation in reached:
                continue
            reached.add(use.operation)
            if not is_side_effect_free(use.operation):
                return False
            stack += use.operation.results
    return True


def prune_generic(op: linalg.GenericOp) -> bool:
    """generic -> (used, unused)  =>  generic -> used"""
    count = len(op.inputs)
    terminator = op.body.block.last_op
    assert terminator is not None
    drop = [
        i
        for i, result in enumerate(op.res)
        if not result.uses
        and only_feeds_itself(op.body.block.args[count + i], terminator.operands[i], i, terminator)
    ]
    if not drop or len(drop) == len(op.res):
        return False
    keep = [i for i in range(len(op.res)) if i not in drop]
    indexing = maps(op)
    kept_maps = [*indexing[:count], *(indexing[count + i] for i in keep)]
    loops = len(iterators(op))
    results = tuple(e for m in kept_maps for e in m.results)
    if AffineMap(loops, 0, results).inverse_permutation() is None:
        return False
    block = op.body.block
    new_yield = linalg.YieldOp(*[terminator.operands[i] for i in keep])
    Rewriter.replace_op(terminator, new_yield)
    for _ in range(len(list(block.ops))):
        erase_dead_code(block)
    for i in reversed(drop):
        block.erase_arg(block.args[count + i])
    outputs = [op.outputs[i] for i in keep]
    new = generic(op.inputs, outputs, kept_maps, iterators(op), op.detach_region(op.body))
    new.attributes.update(op.attributes)
    new.location = op.location
    Rewriter.insert_op(new, InsertPoint.before(op))
    replacements: list[SSAValue | None] = [None] * len(op.res)
    for position, i in enumerate(keep):
        replacements[i] = new.res[position]
    Rewriter.replace_op(op, [], replacements)
    return True


def prune_sort(op: ext.SortOp) -> bool:
    """sort outs(keys, riders)  =>  sort outs(keys), where no rider is used"""
    erase_dead_code(op.body.block)
    args = op.body.block.args
    drop = [
        i
        for i, result in enumerate(op.results)
        if not result.uses and not args[2 * i].uses and not args[2 * i + 1].uses
    ]
    if not drop or len(drop) == len(op.results):
        return False
    keep = [i for i in range(len(op.results)) if i not in drop]
    body = op.detach_region(op.body)
    for i in reversed(drop):
        body.block.erase_arg(body.block.args[2 * i + 1])
        body.block.erase_arg(body.block.args[2 * i])
    inputs = [op.inputs[i] for i in keep] if op.inputs else []
    new = ext.SortOp.of(inputs, [op.outputs[i] for i in keep], {"dimension": op.dimension}, body)
    new.location = op.location
    Rewriter.insert_op(new, InsertPoint.before(op))
    replacements: list[SSAValue | None] = [None] * len(op.results)
    for position, i in enumerate(keep):
        replacements[i] = new.results[position]
    Rewriter.replace_op(op, [], replacements)
    return True


@dataclass(frozen=True)
class EraseUnusedResultsPass(ModulePass):
    """Unused results of generics and sorts go, with what only they needed."""

    name = "irees-erase-unused-results"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for inner in [o for o in op.walk() if isinstance(o, linalg.GenericOp | ext.SortOp)][::-1]:
            if isinstance(inner, linalg.GenericOp):
                prune_generic(inner)
            else:
                prune_sort(inner)
