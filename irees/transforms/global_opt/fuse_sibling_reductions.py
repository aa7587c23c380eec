"""
Fuses reductions that read the same tensor with the same loops, so the tensor is read once.

    %a = linalg.generic ins(%x) outs(%c) { .. addf .. }         %a, %b = linalg.generic ins(%x)
    %b = linalg.generic ins(%x) outs(%d) { .. maxnumf .. }  =>      outs(%c, %d)
                                                                { .. addf .. maxnumf .. }

Neither reduction may depend on the other. The fused op replaces the later one; ops in between that
need the first one move below it. Two reductions have the same loops if they index the tensor alike
and each loop indexes a dim of its own. Matrix products do not fuse: they already reuse operands in
registers. MLIR fuses siblings of affine loops (`affine-loop-fusion{mode=sibling}`).
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
    """Whether an op on tensors is a reduction, but not a contraction of two tensors."""
    if is_parallel(op) or op.attributes:
        return False
    if not all(isinstance(out.type, TensorType) for out in op.outputs):
        return False
    parts = multiply_add(op)
    product = parts is not None and op.operands[parts.lhs] is not op.operands[parts.rhs]
    return not product and combiners(op) is not None


def reads(op: linalg.GenericOp) -> list[tuple[SSAValue, AffineMap]]:
    """Returns the inputs of an op with their indexing maps."""
    return list(zip(op.inputs, maps(op), strict=False))


def share_loops(first: linalg.GenericOp, second: linalg.GenericOp) -> bool:
    """Whether both ops read a tensor by the same map, in which every loop indexes a dim."""
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
    Returns the ops between `first` and `second` that depend on `first`. None if `second` depends
    on `first`, too, or if one of the ops cannot move below `second`.
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
    """Whether an op has no side effects."""
    on_tensors = isinstance(op, linalg.GenericOp) and len(op.results) == len(op.outputs)
    return on_tensors or is_side_effect_free(op)


def join(
    first: linalg.GenericOp, second: linalg.GenericOp, after: list[Operation]
) -> linalg.GenericOp:
    """Replaces both ops by a fused op in the place of `second`; moves `after` below it."""
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
    """Fuses pairs of reductions of a block until no pair is left."""
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
    """Returns the places of later reductions that share an input with `first`, in order."""
    readers = {use.operation for value in first.inputs for use in value.uses}
    places = (place.get(op, -1) for op in readers if isinstance(op, linalg.GenericOp))
    return sorted(number for number in places if number > place[first])


@dataclass(frozen=True)
class FuseSiblingReductionsPass(ModulePass):
    """Fuses reductions of the same tensor into one op."""

    name = "irees-fuse-sibling-reductions"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        if target_of(op).gpu is not None:
            return
        for inner in [o for o in op.walk() if o.regions and not isinstance(o, linalg.GenericOp)]:
            for region in inner.regions:
                for block in region.blocks:
                    fuse(block)
