"""
Sinks reshapes below the ops that read them.

A reshape is free, but the ops before and after it have different loops and do not fuse. An op that
reads an expanded tensor can iterate over the dims of that tensor before it was expanded, and then
fuses with its producer: the bias, activation and residual of a matrix product whose rows are the
tokens of a batch.

    %e = tensor.expand_shape %p [[0, 1], [2]] : tensor<256x64xf32> into tensor<2x128x64xf32>
    %r = linalg.generic ins(%e, %y : tensor<2x128x64xf32>, tensor<2x128x64xf32>) { addf }
  =>
    %c = tensor.collapse_shape %y [[0, 1], [2]] : tensor<2x128x64xf32> into tensor<256x64xf32>
    %a = linalg.generic ins(%p, %c : tensor<256x64xf32>, tensor<256x64xf32>) { addf }
    %r = tensor.expand_shape %a [[0, 1], [2]] : tensor<256x64xf32> into tensor<2x128x64xf32>

This needs loops of one kind that are adjacent in each operand, or absent from it. If they are not,
as with one scale for each group of weights, the elementwise op before the reshape, whose only
reader the reshape is, iterates over the expanded dims instead. Conversely, an elementwise op can
iterate over the dims of a collapsed tensor, and so can a contraction that reads it once, as that of
a vector and dequantized weights. This makes a group norm a single kernel: its sums and scale are
per group, the scaled tensor is per channel.

    %c = tensor.collapse_shape %s [[0, 1]] : tensor<32x4xf32> into tensor<128xf32>
    %r = linalg.generic ins(%x, %c : tensor<128x9xf32>, tensor<128xf32>) { mulf }
  =>
    %e = tensor.expand_shape %x [[0, 1], [2]] output_shape [32, 4, 9]
    %m = linalg.generic ins(%e, %s : tensor<32x4x9xf32>, tensor<32x4xf32>) { mulf }
    %r = tensor.collapse_shape %m [[0, 1], [2]] : tensor<32x4x9xf32> into tensor<128x9xf32>

The pass skips ops that read another generic directly (they already share its loops), reshapes of
arguments and constants, and, of collapses, reductions, dynamic shapes, and ops whose last loop
would become shorter than `COMMON.vector_loop`, unless another reshape restores the dims. IREE:
`SinkReshapes`, `CollapseDimensions`; MLIR: `fuseByExpansion`, `fuseByCollapsing`.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from contextlib import suppress
from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects import tensor
from xdsl.dialects.builtin import DYNAMIC_INDEX, ModuleOp, TensorType
from xdsl.dialects.linalg import ops as linalg
from xdsl.ir import Block, Operation, SSAValue
from xdsl.ir.affine import AffineDimExpr
from xdsl.passes import ModulePass
from xdsl.rewriter import InsertPoint, Rewriter

from irees.analysis.contractions import is_contraction
from irees.dialects.storage import is_undefined
from irees.remarks import remark
from irees.rewrites import may_rewrite
from irees.targets.common import COMMON
from irees.transforms.utils.joined_loops import join_loops
from irees.transforms.utils.reshapes import (
    Groups,
    Refused,
    collapse,
    expand_loops,
    fold_expand,
    joined_dims,
    permutes,
    split_loops,
)
from irees.transforms.utils.shapes import IndexBuilder, Size, mixed, reassociation
from irees.transforms.utils.structured import is_parallel, is_reused, iterators, maps
from irees.transforms.utils.unused_results import erase_dead_code

NAME = "irees-sink-reshapes"


def root_of(value: SSAValue) -> SSAValue:
    """Returns the source of a chain of collapses and expands."""
    while isinstance(value.owner, tensor.CollapseShapeOp | tensor.ExpandShapeOp):
        value = value.owner.src
    return value


def collapsed(value: SSAValue) -> tuple[TensorType, list[list[int]]] | None:
    """Returns the uncollapsed type and the dim groups of a collapsed generic result, else None."""
    root = root_of(value)
    if root is value or not isinstance(root.owner, linalg.GenericOp):
        return None
    fine, coarse = root.type, value.type
    assert isinstance(fine, TensorType)
    assert isinstance(coarse, TensorType)
    if not fine.has_static_shape() or not coarse.has_static_shape() or 1 in fine.get_shape():
        return None
    groups = joined_dims(fine.get_shape(), coarse.get_shape())
    if groups is None or all(len(group) == 1 for group in groups):
        return None
    return fine, groups


def reads_an_op(op: linalg.GenericOp) -> bool:
    """Whether an op reads the result of another generic without a reshape."""
    return any(isinstance(value.owner, linalg.GenericOp) for value in op.inputs)


def reads_once(op: linalg.GenericOp) -> bool:
    """Whether an op is a contraction that reads every collapsed input once."""
    positions = [i for i, value in enumerate(op.inputs) if collapsed(value) is not None]
    return is_contraction(op) and not any(is_reused(op, each) for each in positions)


def loops_to_split(op: linalg.GenericOp) -> dict[int, Sequence[int]]:
    """Returns loops over a collapsed dim of an input, with the trip counts to split them into."""
    for value, indexing in zip(op.inputs, maps(op)):
        if (found := collapsed(value)) is None:
            continue
        kind, groups = found
        loops = split_loops(indexing, groups, kind.get_shape())
        last = loops.get(len(iterators(op)) - 1)
        long = last is None or last[-1] >= COMMON.vector_loop
        if loops and (long or is_expanded_again(op, kind)):
            return loops
    return {}


def is_expanded_again(op: linalg.GenericOp, kind: TensorType) -> bool:
    """Whether reshapes alone read the results of an op, up to one of the shape of a type."""
    wanted = [size for size in kind.get_shape() if size != 1]
    for value in op.results:
        while (reader := sole_reshape(value)) is not None:
            value = reader.result
            if [size for size in value.type.get_shape() if size != 1] == wanted:
                break
        else:
            return False
    return True


def sole_reshape(value: SSAValue) -> tensor.CollapseShapeOp | tensor.ExpandShapeOp | None:
    """Returns the reshape that is the only reader of a value, if it is one."""
    readers = [use.operation for use in value.uses]
    if len(readers) == 1 and isinstance(readers[0], tensor.CollapseShapeOp | tensor.ExpandShapeOp):
        return readers[0]
    return None


def take_roots(op: linalg.GenericOp, loops: Collection[int]) -> None:
    """collapse(expand(%x))  =>  collapse(%x), for operands that one of `loops` indexes"""
    for position, (value, indexing) in enumerate(zip(op.inputs, maps(op))):
        found, along = collapsed(value), indexing.used_dims()
        if found is None or not along.intersection(loops):
            continue
        assert isinstance(value.type, TensorType)
        at = IndexBuilder(InsertPoint.before(op))
        op.operands[position] = collapse(root_of(value), found[1], value.type, at)


def sink(op: linalg.GenericOp) -> bool:
    """generic ins(collapse(%x))  =>  collapse(generic ins(%x))"""
    loops = loops_to_split(op)
    if not loops or not may_rewrite(NAME, op, "sink of tensor.collapse_shape"):
        return False
    take_roots(op, loops)
    with suppress(Refused):
        expand_loops(op, loops, loops)
    return True


def loops_to_join(op: linalg.GenericOp, position: int) -> tuple[Groups, dict[int, Size]] | None:
    """
    Returns all loops, grouped by the dims that the reshape of an input expands, and the trip counts
    of those in groups of several. None if the input is not an expanded result of a generic, or if
    its loops are not consecutive.
    """
    reshape, indexing = op.operands[position].owner, maps(op)[position]
    if not isinstance(reshape, tensor.ExpandShapeOp) or not permutes(indexing):
        return None
    if not isinstance(reshape.src.owner, linalg.GenericOp):
        return None
    loops = [e.position for e in indexing.results if isinstance(e, AffineDimExpr)]
    joined = grouped(loops, reassociation(reshape), len(iterators(op)))
    if joined is None:
        return None
    sizes = mixed(reshape.static_output_shape.get_values(), reshape.dynamic_output_shape)
    inside = {loop for group in joined if len(group) > 1 for loop in group}
    return joined, {loop: size for loop, size in zip(loops, sizes, strict=True) if loop in inside}


def grouped(loops: Sequence[int], groups: Groups, count: int) -> Groups | None:
    """Returns `count` loops in the groups of the dims that they index; None if not in order."""
    found = [[loops[axis] for axis in group] for group in groups if len(group) > 1]
    if not found or any(g != list(range(g[0], g[0] + len(g))) for g in found):
        return None
    starts, inside = {g[0]: g for g in found}, {loop for g in found for loop in g}
    return [starts.get(d, [d]) for d in range(count) if d in starts or d not in inside]


def is_fused_elsewhere(op: linalg.GenericOp) -> bool:
    """Whether an op reads an elementwise op that nothing else reads: both share their loops."""
    return any(
        isinstance(value.owner, linalg.GenericOp)
        and is_parallel(value.owner)
        and len(list(value.uses)) == 1
        for value in op.inputs
    )


def sink_expanded(op: linalg.GenericOp) -> bool:
    """generic ins(expand(%x), %y)  =>  expand(generic ins(%x, collapse(%y)))"""
    for position in range(len(op.inputs)):
        found = loops_to_join(op, position)
        if found is None or is_fused_elsewhere(op):
            continue
        if not may_rewrite(NAME, op, "sink of tensor.expand_shape"):
            return False
        try:
            join_loops(op, *found)
        except Refused as why:
            if split_producer(op.operands[position].owner):
                return True
            remark("missed", NAME, op, f"loops are not joined: {why}")
            continue
        return True
    return False


def split_producer(reshape: Operation | Block) -> bool:
    """expand(generic ins(%x))  =>  generic ins(expand(%x)), for an elementwise op of one reader"""
    if not isinstance(reshape, tensor.ExpandShapeOp):
        return False
    producer, shape = reshape.src.owner, reshape.result.type.get_shape()
    if not isinstance(producer, linalg.GenericOp) or len(producer.results) != 1:
        return False
    if not is_parallel(producer) or reads_an_op(producer) or not reshape.src.has_one_use():
        return False
    loops = split_loops(maps(producer)[-1], reassociation(reshape), shape)
    if DYNAMIC_INDEX in shape or not may_rewrite(NAME, reshape, "split of linalg.generic"):
        return False
    try:
        expand_loops(producer, loops, loops)
    except Refused:
        return False
    return fold_expand(reshape)


def clean(block: Block) -> None:
    """expand(empty)  =>  empty; erases dead ops, which would count as users."""
    for reshape in [o for o in block.ops if isinstance(o, tensor.ExpandShapeOp)]:
        if is_undefined(reshape.src.owner):
            fold_expand(reshape)
    erase_dead_code(block, Rewriter.erase_op)


@dataclass(frozen=True)
class SinkReshapesPass(ModulePass):
    """Sinks collapses of dims below elementwise ops."""

    name = "irees-sink-reshapes"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for block in {o.parent_block(): None for o in op.walk() if isinstance(o, linalg.GenericOp)}:
            assert block is not None
            changed = False
            for inner in [o for o in block.ops if isinstance(o, linalg.GenericOp)]:
                changed |= sink_expanded(inner)
            for inner in [o for o in block.ops if isinstance(o, linalg.GenericOp)]:
                if (is_parallel(inner) or reads_once(inner)) and not reads_an_op(inner):
                    changed |= sink(inner)
            if changed:
                clean(block)
