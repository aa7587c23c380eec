"""
Makes one op of reductions that read the same tensor in the same loops, so that it is read once.

    %a = linalg.generic ins(%x) outs(%c) { .. addf .. }         %a, %b = linalg.generic ins(%x)
    %b = linalg.generic ins(%x) outs(%d) { .. maxnumf .. }  =>      outs(%c, %d)
                                                                { .. addf .. maxnumf .. }

Neither reads what the other makes. They are joined where the later one stands; what needs the
first one before that is moved behind it. Loops are the same where both index the tensor alike, with
each loop in a dim of its own. A product of matrices stays by itself: what it reads twice it keeps
in registers. MLIR fuses siblings of affine loops (`affine-loop-fusion{mode=sibling}`).
"""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp, TensorType
from xdsl.dialects.linalg import ops as linalg
from xdsl.ir import Block, Operation, Region, SSAValue
from xdsl.ir.affine import AffineDimExpr, AffineMap
from xdsl.passes import ModulePass
from xdsl.rewriter import InsertPoint, Rewriter
from xdsl.traits import is_side_effect_free

from irees.analysis.contractions import multiply_add
from irees.dialects.irees_target import target_of
from irees.rewrites import may_rewrite
from irees.targets.common import COMMON
from irees.transforms.utils.combiners import combiners
from irees.transforms.utils.inlining import splice
from irees.transforms.utils.structured import element_type, generic, is_parallel, iterators, maps

NAME = "irees-fuse-sibling-reductions"


def is_reduction(op: linalg.GenericOp) -> bool:
    """Whether an op on tensors folds points, and is no product of two tensors."""
    if is_parallel(op) or op.attributes:
        return False
    if not all(isinstance(out.type, TensorType) for out in op.outputs):
        return False
    parts = multiply_add(op)
    product = parts is not None and op.operands[parts.lhs] is not op.operands[parts.rhs]
    return not product and combiners(op) is not None


def reads(op: linalg.GenericOp) -> list[tuple[SSAValue, AffineMap]]:
    """The inputs of an op, and how it indexes them."""
    return list(zip(op.inputs, maps(op), strict=False))


def share_loops(first: linalg.GenericOp, second: linalg.GenericOp) -> bool:
    """Whether both read one tensor, each of whose dims is a loop, and all loops are."""
    if iterators(first) != iterators(second):
        return False
    loops = set(range(len(iterators(first))))
    others = reads(second)
    return any(
        {e.position for e in indexing.results if isinstance(e, AffineDimExpr)} == loops
        and (value, indexing) in others
        for value, indexing in reads(first)
    )


def followers(first: Operation, second: Operation) -> list[Operation] | None:
    """
    The ops between two of a block that need what the first one makes, or None where the second
    does too, or one of them cannot be moved after it.
    """
    needed: list[Operation] = [first]
    between = first.next_op
    while between is not None:
        values = [value for inner in between.walk() for value in inner.operands]
        if any(value.owner in needed for value in values):
            if between is second or not is_movable(between):
                return None
            needed.append(between)
        if between is second:
            return needed[1:]
        between = between.next_op
    return None


def is_movable(op: Operation) -> bool:
    """Whether an op has no effect but its results."""
    on_tensors = isinstance(op, linalg.GenericOp) and len(op.results) == len(op.outputs)
    return on_tensors or is_side_effect_free(op)


def join(
    first: linalg.GenericOp, second: linalg.GenericOp, after: list[Operation]
) -> linalg.GenericOp:
    """An op that does what both do where the second is; what needs the first comes after it."""
    inputs = list(dict.fromkeys([*reads(first), *reads(second)]))
    outputs = [*first.outputs, *second.outputs]
    kinds = [element_type(value) for value, _ in inputs] + [element_type(out) for out in outputs]
    block = Block(arg_types=kinds)
    yielded: list[SSAValue] = []
    made = len(inputs)
    for op in (first, second):
        sources = [block.args[inputs.index(each)] for each in reads(op)]
        values = [*sources, *block.args[made : made + len(op.outputs)]]
        made += len(op.outputs)
        yielded += splice(op.body.block, InsertPoint.at_end(block), values)
    block.add_op(linalg.YieldOp(*yielded))
    indexing = [m for _, m in inputs]
    indexing += [m for op in (first, second) for m in maps(op)[len(op.inputs) :]]
    new = generic(
        [value for value, _ in inputs], outputs, indexing, iterators(first), Region(block)
    )
    new.location = second.location
    Rewriter.insert_op(new, InsertPoint.before(second))
    for op in after:
        op.detach()
        Rewriter.insert_op(op, InsertPoint.before(second))
    count = len(first.results)
    Rewriter.replace_op(first, [], new.results[:count])
    Rewriter.replace_op(second, [], new.results[count:])
    return new


def fuse(block: Block) -> None:
    """Joins the reductions of a block, as long as there are two that can be."""
    generics = [op for op in block.ops if isinstance(op, linalg.GenericOp)]
    found = [op for op in generics if is_reduction(op)]
    place = {op: number for number, op in enumerate(found)}
    for number in range(len(found)):
        first = found[number]
        for later in _readers_of_the_same(first, place):
            second = found[later]
            results = len(first.results) + len(second.results)
            if results > COMMON.sibling_results or not share_loops(first, second):
                continue
            after = followers(first, second)
            if after is None or not may_rewrite(NAME, second, "a reduction beside another"):
                continue
            found[later] = join(first, second, after)
            place[found[later]] = later
            del place[second]
            break


def _readers_of_the_same(first: linalg.GenericOp, place: dict[linalg.GenericOp, int]) -> list[int]:
    """The places of later reductions that read a tensor that the first one reads."""
    readers = {use.operation for value in first.inputs for use in value.uses}
    places = (place.get(op, -1) for op in readers if isinstance(op, linalg.GenericOp))
    return sorted(number for number in places if number > place[first])


@dataclass(frozen=True)
class FuseSiblingReductionsPass(ModulePass):
    """Reductions of one tensor become one op."""

    name = "irees-fuse-sibling-reductions"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        if target_of(op).gpu is not None:
            return
        for inner in [o for o in op.walk() if o.regions and not isinstance(o, linalg.GenericOp)]:
            for region in inner.regions:
                for block in region.blocks:
                    fuse(block)
