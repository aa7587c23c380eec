"""
Lowers memory accesses that code generation does not have, in kernels of the program's own.

    %v = vector.transfer_read %b[%i], %pad : memref<?xf32>, vector<8xf32>
  =>
    %v = scf.if %i + 8 <= %n { vector.load %b[%i] } else { the elements inside, one by one }

A kernel runs the iterations of its loops in order, so an atomic update is a load, an operation and
a store. MLIR: `convert-vector-to-scf`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects import arith, memref, scf, vector
from xdsl.dialects.builtin import BoolAttr, ModuleOp, VectorType
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue
from xdsl.ir.affine import AffineMap
from xdsl.passes import ModulePass
from xdsl.rewriter import InsertPoint, Rewriter

from irees.dialects.irees import KernelOp
from irees.errors import UnsupportedError
from irees.transforms.utils.shapes import IndexBuilder, buffer_dim

ATOMIC: dict[int, Callable[[SSAValue, SSAValue], Operation]] = {
    0: arith.AddfOp,
    1: arith.AddiOp,
    3: arith.MaximumfOp,
    4: arith.MaxSIOp,
    5: arith.MaxUIOp,
    6: arith.MinimumfOp,
    7: arith.MinSIOp,
    8: arith.MinUIOp,
    9: arith.MulfOp,
    10: arith.MuliOp,
    11: arith.OrIOp,
    12: arith.AndIOp,
}
"""The operation of each kind of `memref.atomic_rmw`; the missing kind 2 assigns."""


def lower_atomic(op: memref.AtomicRMWOp) -> None:
    """atomic_rmw addf %v, %b[%i]  =>  store %b[%i] + %v, %b[%i]"""
    b = IndexBuilder(InsertPoint.before(op))
    made = ATOMIC.get(op.kind.value.data)
    old = b.insert(memref.LoadOp.get(op.memref, op.indices)).results[0]
    new = op.value if made is None else b.insert(made(old, op.value)).results[0]
    b.insert(memref.StoreOp.get(new, op.memref, op.indices))
    Rewriter.replace_op(op, [], [new])


def lower_transfer(op: vector.TransferReadOp | vector.TransferWriteOp) -> None:
    """transfer  =>  vector load or store, if it is inside; else the elements that are"""
    b = IndexBuilder(InsertPoint.before(op))
    lanes, inside = _lanes_of(op), all(flag == BoolAttr.from_bool(True) for flag in op.in_bounds)
    if inside:
        new = _whole(op)
        new.location = op.location
        Rewriter.replace_op(op, new)
        return
    size = b.value(buffer_dim(op.source, len(op.indices) - 1, b))
    end = b.value(b.add(op.indices[-1], lanes))
    fits = b.insert(arith.CmpiOp(end, size, "sle")).results[0]
    whole, parts = Block(), Block()
    new = _whole(op)
    whole.add_ops([new, scf.YieldOp(*new.results)])
    at = IndexBuilder(InsertPoint.at_end(parts))
    value = None if isinstance(op, vector.TransferWriteOp) else _filled(op, at)
    for lane in range(lanes):
        value = _lane(op, lane, size, value, at)
    at.insert(scf.YieldOp(*(() if value is None else (value,))))
    kinds = [result.type for result in op.results]
    branch = b.insert(scf.IfOp(fits, kinds, Region(whole), Region(parts)))
    branch.location = op.location
    Rewriter.replace_op(op, [], branch.results)


def _lanes_of(op: vector.TransferReadOp | vector.TransferWriteOp) -> int:
    """Returns the lanes of a transfer along the last dim. Raises UnsupportedError for others."""
    kind = op.results[0].type if op.results else op.operands[0].type
    rank = len(op.indices)
    if (
        not isinstance(kind, VectorType)
        or len(kind.get_shape()) != 1
        or not rank
        or op.permutation_map.data != AffineMap.minor_identity(rank, 1)
        or op.mask is not None
    ):
        hint = "transfer a vector of one dim, along the last dim, without a mask"
        raise UnsupportedError("this transfer is not supported in a kernel", op=op, hint=hint)
    return kind.get_shape()[0]


def _whole(op: vector.TransferReadOp | vector.TransferWriteOp) -> Operation:
    if isinstance(op, vector.TransferReadOp):
        kind = op.result.type
        assert isinstance(kind, VectorType)
        return vector.LoadOp(op.source, op.indices, kind)
    return vector.StoreOp(op.vector, op.source, op.indices)


def _filled(op: vector.TransferReadOp, b: IndexBuilder) -> SSAValue:
    kind = op.result.type
    assert isinstance(kind, VectorType)
    return b.insert(vector.BroadcastOp(op.padding, kind)).results[0]


def _lane(
    op: vector.TransferReadOp | vector.TransferWriteOp,
    lane: int,
    size: SSAValue,
    value: SSAValue | None,
    b: IndexBuilder,
) -> SSAValue | None:
    """Transfers one lane if its element is inside; returns the vector read so far."""
    place = b.value(b.add(op.indices[-1], lane))
    inside = b.insert(arith.CmpiOp(place, size, "slt")).results[0]
    places, then = [*op.indices[:-1], place], Block()
    at = IndexBuilder(InsertPoint.at_end(then))
    if isinstance(op, vector.TransferWriteOp):
        element = at.insert(vector.ExtractOp(op.vector, [lane], _element(op))).results[0]
        at.insert(memref.StoreOp.get(element, op.source, places))
        at.insert(scf.YieldOp())
        b.insert(scf.IfOp(inside, [], Region(then)))
        return None
    assert value is not None
    element = at.insert(memref.LoadOp.get(op.source, places)).results[0]
    new = at.insert(vector.InsertOp(element, value, [lane])).results[0]
    at.insert(scf.YieldOp(new))
    other = Region(Block([scf.YieldOp(value)]))
    return b.insert(scf.IfOp(inside, [value.type], Region(then), other)).results[0]


def _element(op: vector.TransferWriteOp) -> Attribute:
    kind = op.vector.type
    assert isinstance(kind, VectorType)
    return kind.element_type


@dataclass(frozen=True)
class LowerKernelAccessesPass(ModulePass):
    """Lowers transfers and atomic updates in kernels of the program's own."""

    name = "irees-lower-kernel-accesses"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for kernel in [o for o in op.walk() if isinstance(o, KernelOp)]:
            for inner in list(kernel.walk()):
                match inner:
                    case vector.TransferReadOp() | vector.TransferWriteOp():
                        lower_transfer(inner)
                    case memref.AtomicRMWOp():
                        lower_atomic(inner)
                    case _:
                        pass
