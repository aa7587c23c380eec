"""
Groups ops into kernels that are single tile loops.

Each op joins the group of a producer if every value inside the group is written and read in the
same tile (`groups.py`). So reductions fuse with adjacent elementwise ops, a softmax or norm becomes
one kernel over rows, and a contraction fuses its epilogue. Code generation lowers such a group to
one `scf.forall` over tiles.

    %s = generic {rows: sum} ins(%x) outs(%f)         %r = flow.dispatch.region {
    %d = generic {x / s} ins(%x, %s)                    %f = generic {0} outs(%e)
    use %d                                      =>      %s = ..., %d = ...
                                                        flow.return %d
                                                      }
                                                      use %r

A fusion that leaves too few tiles to occupy the target is refused unless the tiles are small. The
padding of a single-use value is fused into its producer (`analysis/paddings.py`), that of any other
value into a copy, so that only the border is filled. A convolution by channels or groups joins the
kernel that pads its image: each tile pads its own channels. Cheap ops (fills, views, empty tensors)
are cloned into each kernel. Splat constants over 256 MiB are written by a kernel of their own.

The rules of IREE (`irees-form-dispatch-regions`) do not fit here: they fuse two contractions into a
kernel, and loops that cannot be tiled together. Their visiting order does not fit either: a norm
would take the residual addition from the contraction before it, so kernels would write more
tensors.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

from xdsl.context import Context
from xdsl.dialects import arith, func, tensor
from xdsl.dialects.builtin import ModuleOp, TensorType
from xdsl.dialects.linalg import ops as linalg
from xdsl.ir import Block, Operation
from xdsl.ir.affine import AffineMap
from xdsl.passes import ModulePass
from xdsl.rewriter import Rewriter

from irees.analysis.distribution import is_read_in_place
from irees.analysis.paddings import is_fill, is_framed, is_padding
from irees.dialects.flow import DispatchRegionOp
from irees.dialects.irees_target import is_strict, target_of
from irees.dialects.storage import is_undefined
from irees.dialects.util import FuncOp
from irees.interfaces import loops_model_of
from irees.targets.common import COMMON
from irees.targets.cpu import CPU
from irees.transforms.dispatch_creation.form_tile_regions.groups import Limits, TileGroups
from irees.transforms.utils.constants import splat_scalar
from irees.transforms.utils.dispatch_regions import (
    Order,
    clone_producers,
    make_region,
    sort_block,
)
from irees.transforms.utils.shapes import dims, element_bytes
from irees.transforms.utils.tensors import TensorBuilder, empty

DISPATCHED = (linalg.GenericOp, tensor.InsertSliceOp, tensor.ExtractSliceOp)


def is_dispatched(op: Operation) -> bool:
    """Whether an op computes tensor data, so that it must run in a kernel."""
    if loops_model_of(op) is not None:
        return any(isinstance(r.type, TensorType) for r in op.results)
    return isinstance(op, DISPATCHED)


def is_cheap(op: Operation) -> bool:
    """Whether an op is so cheap that each kernel recomputes it."""
    return is_undefined(op) or is_fill(op) or is_read_in_place(op)


def is_large_splat(op: Operation) -> bool:
    """Whether an op is a splat constant that is too large to be stored with the program."""
    if not isinstance(op, arith.ConstantOp) or not isinstance(op.result.type, TensorType):
        return False
    kind = op.result.type
    size = prod(kind.get_shape()) * element_bytes(kind)
    return size > COMMON.splat_bytes and splat_scalar(op) is not None


def clone_cheap(region: DispatchRegionOp) -> None:
    """Clones cheap producers into a kernel."""
    clone_producers(region, lambda value: is_cheap(value.op))


def form_tile_regions(function: Operation, limits: Limits) -> None:
    """Groups the ops of every block of a function; clones cheap ops into each kernel."""
    for block in {o.parent_block(): None for o in function.walk() if is_dispatched(o)}:
        assert block is not None
        _form_in_block(block, limits)
    for constant in [o for o in function.walk() if is_large_splat(o)]:
        if not isinstance(constant.parent_op(), DispatchRegionOp):
            make_region([constant])


def copy_padded(op: Operation) -> None:
    """pad x  =>  pad (copy of x), where no kernel of this block computes x for the padding alone"""
    if not is_padding(op) or is_framed(op):
        return
    source, b = op.operands[0], TensorBuilder(op)
    assert isinstance(source.type, TensorType)
    shape = dims(source, b)
    identity = AffineMap.identity(len(shape))
    # The type says what `op` was verified with, even where a dynamic dim is known by now.
    out = empty(source.type, shape, b)
    (copy,) = b.compute([source], [out], [identity] * 2, lambda _, v: [v[0]])
    op.operands[0] = copy


def _form_in_block(block: Block, limits: Limits) -> None:
    for op in list(block.ops):
        copy_padded(op)
    order = Order(block)
    groups = TileGroups(order, limits)
    for op in block.ops:
        if is_dispatched(op) and not is_cheap(op):
            groups.add(op)
        else:
            groups.leave(op)
    regions = [make_region(draft.ops) for draft in groups.drafts if draft.ops]
    sort_block(block, order)
    for region in regions:
        clone_cheap(region)
    for left in [o for o in block.ops if is_cheap(o)][::-1]:
        if not any(r.uses for r in left.results):
            Rewriter.erase_op(left)
        elif not is_undefined(left):
            clone_cheap(make_region([left]))


def limits_of(module: ModuleOp) -> Limits:
    """Returns the tile limits of a group; a GPU needs a tile per multiprocessor, or small tiles."""
    target = target_of(module)
    gpu = target.gpu
    if gpu is None:
        columns = 0 if is_strict(module) else CPU.least_masked_columns
        limits = CPU.enough_tiles, -1, CPU.common_share, columns, target.threads
        return Limits(*limits, CPU.padded_tile_bytes)
    return Limits(gpu.multiprocessors, gpu.launch_bytes)


@dataclass(frozen=True)
class FormTileRegionsPass(ModulePass):
    """Groups tensor ops into dispatch regions, each a single tile loop."""

    name = "irees-form-tile-regions"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for function in [f for f in op.walk() if isinstance(f, func.FuncOp | FuncOp)]:
            if function.body.blocks:
                form_tile_regions(function, limits_of(op))
