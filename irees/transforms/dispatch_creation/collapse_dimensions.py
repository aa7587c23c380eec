"""
Joins loops of reductions in a dispatch region that step through memory like one loop.

A sum over the pixels of an image has two loops. If a row is shorter than a vector, the code
generator finds no loop to vectorize, although the pixels are contiguous:

    %r = flow.dispatch.region -> (tensor<8x64xf32>) {
      %s = linalg.generic ["parallel", "parallel", "reduction", "reduction"]
             ins(%x : tensor<8x64x14x14xf32>) outs(%f : tensor<8x64xf32>) { addf }
      flow.return %s }
  =>
    %c = tensor.collapse_shape %x [[0], [1], [2, 3]]
           : tensor<8x64x14x14xf32> into tensor<8x64x196xf32>
    %r = flow.dispatch.region -> (tensor<8x64xf32>) {
      %s = linalg.generic ["parallel", "parallel", "reduction"]
             ins(%c : tensor<8x64x196xf32>) outs(%f : tensor<8x64xf32>) { addf }
      flow.return %s }

Two adjacent loops are joined if each operand has both at adjacent dims, in this order, or neither.
The dims of a value are joined in all ops that use or define it in the region, or in none: the pass
starts from all pairs that are legal by themselves, and removes pairs until the rest is consistent.
It then joins the reduction loops over the last dims of an operand, and what has to be joined with
them: the elementwise ops of a norm over two dims. Reshapes stay outside the region, where they are
free.

On a CPU it also joins parallel loops over the last dims of an operand if the last dim is shorter
than a vector, such as the parts of complex numbers:

    sum over i of x[i, j, q], q < 2  =>  sum over i of x[i, jq]

Left alone: reductions whose innermost loop is parallel and fills a vector, which is the one to
vectorize; regions with a contraction, whose strategies know several loops; dynamic loops; ops that
read a loop index; values that an op other than a generic uses. IREE: `CollapseDimensions`.
"""

from __future__ import annotations

from collections.abc import Container, Iterator, Sequence
from dataclasses import dataclass, field

from xdsl.context import Context
from xdsl.dialects import tensor
from xdsl.dialects.builtin import DYNAMIC_INDEX, ModuleOp, TensorType
from xdsl.dialects.linalg import ops as linalg
from xdsl.ir import Block, Region, SSAValue
from xdsl.ir.affine import AffineDimExpr, AffineMap
from xdsl.passes import ModulePass
from xdsl.rewriter import InsertPoint, Rewriter

from irees.analysis.contractions import is_contraction
from irees.analysis.element_sizes import item_bytes
from irees.dialects.flow import DispatchRegionOp, ReturnOp
from irees.dialects.irees_target import target_of
from irees.dialects.storage import is_undefined
from irees.rewrites import may_rewrite
from irees.transforms.utils.joined_loops import join_loops
from irees.transforms.utils.reshapes import Refused, check_loops, expand
from irees.transforms.utils.shapes import IndexBuilder, reassociation
from irees.transforms.utils.structured import is_parallel, iterators, maps, static_ranges
from irees.transforms.utils.unused_results import erase_dead_code

NAME = "irees-collapse-dimensions"

Loop = tuple[linalg.GenericOp, int]
"""A loop of an op, and the next one."""
Dim = tuple[SSAValue, int]
"""A dim of a tensor, and the next one."""
Touch = tuple[SSAValue, AffineMap]
"""An operand or result of an op, and how its loops index it."""


@dataclass
class Joins:
    """The loops that may be joined with the next one, and the dims of tensors that this joins."""

    loops: set[Loop] = field(default_factory=set)
    dims: dict[Loop, list[Dim]] = field(default_factory=dict)
    users: dict[Dim, list[Loop]] = field(default_factory=dict)

    def add(self, loop: Loop, dims: Sequence[Dim]) -> None:
        """Adds loops that step through these dims."""
        self.loops.add(loop)
        self.dims[loop] = list(dims)
        for dim in dims:
            self.users.setdefault(dim, []).append(loop)

    def forbid(self, dim: Dim) -> None:
        """Removes the loops that step through these dims, and those that depend on them."""
        rest = [dim]
        while rest:
            for loop in self.users.get(rest.pop(), ()):
                if loop in self.loops:
                    self.loops.remove(loop)
                    rest += self.dims[loop]

    def worthwhile(self, vector_bytes: int) -> set[Loop]:
        """
        Returns the loops of reductions that are contiguous or fill no vector, and those that have
        to be joined with them.
        """
        found = {
            loop
            for loop in self.loops
            if is_contiguous_reduction(loop, self.dims[loop])
            or is_short_row(loop, self.dims[loop], vector_bytes)
        }
        rest = list(found)
        while rest:
            for dim in self.dims[rest.pop()]:
                new = set(self.users[dim]) - found
                found |= new
                rest += new
        return found


def is_contiguous_reduction(loop: Loop, dims: Sequence[Dim]) -> bool:
    """Whether reduction loops step through the last dims of an operand."""
    op, number = loop
    return iterators(op)[number] == "reduction" and any(ends_with(*dim) for dim in dims)


def is_short_row(loop: Loop, dims: Sequence[Dim], vector_bytes: int) -> bool:
    """Whether parallel loops of a reduction step through last dims that fill no vector."""
    op, number = loop
    rows = [value.type for value, dim in dims if ends_with(value, dim)]
    return (
        iterators(op)[number] == "parallel"
        and not is_parallel(op)
        and any(
            kind.get_shape()[-1] * item_bytes(kind.get_element_type()) < vector_bytes
            for kind in rows
            if isinstance(kind, TensorType)
        )
    )


def ends_with(value: SSAValue, dim: int) -> bool:
    """Whether a dim and the next one are the last two of a tensor."""
    assert isinstance(value.type, TensorType)
    return dim + 2 == value.type.get_num_dims()


def touches_of(op: linalg.GenericOp) -> list[Touch]:
    """Returns the operands and results of an op with their maps."""
    indexing = maps(op)
    results = zip(op.res, indexing[len(op.inputs) :], strict=True)
    return [*zip(op.operands, indexing, strict=True), *results]


def legal_loops(op: linalg.GenericOp, touches: Sequence[Touch]) -> Iterator[int]:
    """Yields the loops that can be joined with the next one in an op by itself."""
    kinds, ranges = iterators(op), static_ranges(op)
    for loop in range(len(kinds) - 1):
        if kinds[loop] != kinds[loop + 1] or -1 in ranges[loop : loop + 2]:
            continue
        try:
            check_loops(op, {loop, loop + 1})
        except Refused:
            continue
        if all(place_of(loop, map_) != APART for _, map_ in touches):
            yield loop


APART = -2
"""The place of two loops that an operand does not have at adjacent dims."""


def place_of(loop: int, map_: AffineMap) -> int:
    """Returns the dim of a loop if the next loop has the next dim; -1 if both have none."""
    loops = [e.position for e in map_.results if isinstance(e, AffineDimExpr)]
    if loop not in loops:
        return APART if loop + 1 in loops else -1
    place = loops.index(loop)
    return place if loops[place + 1 : place + 2] == [loop + 1] else APART


def is_rigid(value: SSAValue, block: Block) -> bool:
    """Whether a tensor keeps its shape because of an op that is no generic, or dynamic sizes."""
    users = [use.operation for use in value.uses if use.operation.parent is block]
    if not all(isinstance(user, linalg.GenericOp | ReturnOp) for user in users):
        return True
    if is_captured(value, block):
        return False
    assert isinstance(value.type, TensorType)
    # The expansion of a result needs sizes from outside of the region.
    returned = any(isinstance(user, ReturnOp) for user in users)
    dynamic = DYNAMIC_INDEX in value.type.get_shape()
    return not isinstance(value.owner, linalg.GenericOp) or (returned and dynamic)


def is_captured(value: SSAValue, block: Block) -> bool:
    """Whether a value is defined outside of a block."""
    owner = value.owner
    return owner is not block and (isinstance(owner, Block) or owner.parent is not block)


def joins_of(block: Block) -> Joins:
    """Returns the largest consistent set of joined loops."""
    joins = Joins()
    apart: list[Dim] = []
    for op in [o for o in block.ops if isinstance(o, linalg.GenericOp)]:
        touches = touches_of(op)
        loops = list(legal_loops(op, touches))
        # An empty tensor has no elements that its other users could see.
        tied = [(v, m) for v, m in touches if not is_undefined(v.owner)]
        for loop in loops:
            joins.add((op, loop), [(v, p) for v, m in tied if (p := place_of(loop, m)) >= 0])
        for value, map_ in tied:
            joined = set() if is_rigid(value, block) else {place_of(n, map_) for n in loops}
            apart += [(value, d) for d in range(len(map_.results) - 1) if d not in joined]
    for dim in apart:
        joins.forbid(dim)
    return joins


def groups_of(op: linalg.GenericOp, joined: Container[Loop]) -> list[list[int]]:
    """Returns the loops of an op, those together that become one."""
    groups: list[list[int]] = []
    for loop in range(len(iterators(op))):
        if (op, loop - 1) in joined:
            groups[-1].append(loop)
        else:
            groups.append([loop])
    return groups


def collapse(region: DispatchRegionOp, vector_bytes: int) -> None:
    """Joins the loops of a region; the reshapes of captured and returned tensors stay outside."""
    block = region.body.block
    generics = [o for o in block.ops if isinstance(o, linalg.GenericOp)]
    if region.workload or any(is_contraction(o) for o in generics):
        return
    wanted = joins_of(block).worthwhile(vector_bytes)
    if not wanted or not may_rewrite(NAME, region, "collapse of flow.dispatch.region"):
        return
    for op in generics:
        groups = groups_of(op, wanted)
        if len(groups) < len(iterators(op)):
            join_loops(op, groups, {})
    for op in [o for o in block.ops if isinstance(o, tensor.CollapseShapeOp)]:
        if is_captured(op.src, block):
            op.detach()
            Rewriter.insert_op(op, InsertPoint.before(region))
    expand_outside(region)


def expand_outside(region: DispatchRegionOp) -> None:
    """region { return expand(%v) }  =>  expand(region { return %v })"""
    block = region.body.block
    end = block.last_op
    assert isinstance(end, ReturnOp)
    returned = [v.owner if isinstance(v.owner, tensor.ExpandShapeOp) else None for v in end.values]
    moved = {
        n: op for n, op in enumerate(returned)
        if op is not None and not is_captured(op.result, block) and not op.dynamic_output_shape
    }  # fmt: skip
    for number, op in moved.items():
        end.operands[number] = op.src
    erase_dead_code(block, Rewriter.erase_op)
    types = [value.type for value in end.values]
    body = Region()
    region.body.move_blocks(body)
    new = DispatchRegionOp(region.result_dims, types, body)
    new.attributes.update(region.attributes)
    new.location = region.location
    at = IndexBuilder(InsertPoint.before(region))
    at.insert(new)
    results: list[SSAValue] = list(new.res)
    for number, op in moved.items():
        assert isinstance(op.result.type, TensorType)
        sizes = op.result.type.get_shape()
        results[number] = expand(new.res[number], reassociation(op), sizes, op.result.type, at)
    Rewriter.replace_op(region, [], results)


@dataclass(frozen=True)
class CollapseDimensionsPass(ModulePass):
    """Joins loops of reductions that step through memory like one loop."""

    name = "irees-collapse-dimensions"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        target = target_of(op)
        for region in [o for o in op.walk() if isinstance(o, DispatchRegionOp)]:
            collapse(region, 0 if target.gpu is not None else target.vector_bytes)
