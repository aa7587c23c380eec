"""
Rewrites what code generation does not have, in kernels of the program's own.

    %v = vector.transfer_read %b[%i], %pad : memref<?xf32>, vector<8xf32>
  =>
    %v = scf.if %i + 8 <= %n { vector.load %b[%i] } else { the elements inside, one by one }

A mask of one dim is a comparison with `vector.step`, and a transfer with a mask moves lane by lane.
A slice of a vector is a shuffle. A kernel runs loops with atomic updates in order, so an update is
a load, an operation and a store. A reshape of a contiguous buffer is a `memref.reinterpret_cast`.
Arithmetic on vectors of f16 and bf16 is done in f32, and rounded after each op; on a GPU, lane by
lane. MLIR:
`convert-vector-to-scf`, `expand-strided-metadata`, `arith-emulate-unsupported-floats`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects import arith, memref, scf, vector
from xdsl.dialects.builtin import (
    BoolAttr,
    DenseArrayBase,
    DenseIntOrFPElementsAttr,
    IndexType,
    MemRefType,
    ModuleOp,
    NoneAttr,
    VectorType,
    i1,
    i64,
)
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue
from xdsl.ir.affine import AffineMap
from xdsl.passes import ModulePass
from xdsl.rewriter import InsertPoint, Rewriter

from irees.dialects.irees import KernelOp
from irees.dialects.irees_target import target_of
from irees.dialects.result_sizes import result_size
from irees.dialects.sizes import Dim, Scalar, evaluate
from irees.dialects.upstream.memref import ATOMIC_KINDS
from irees.dialects.upstream.vector.shapes import (
    ConstantMaskOp,
    ExtractStridedSliceOp,
    InsertStridedSliceOp,
    StepOp,
)
from irees.errors import UnsupportedError
from irees.transforms.utils.copies import same_op
from irees.transforms.utils.halves import computes_halves, widen
from irees.transforms.utils.shapes import IndexBuilder, Size, buffer_dim
from irees.transforms.utils.views import row_major_view

ATOMIC: dict[str, Callable[[SSAValue, SSAValue], Operation] | None] = {
    "addf": arith.AddfOp,
    "addi": arith.AddiOp,
    "andi": arith.AndIOp,
    "assign": None,
    "maximumf": arith.MaximumfOp,
    "maxnumf": arith.MaxnumfOp,
    "maxs": arith.MaxSIOp,
    "maxu": arith.MaxUIOp,
    "minimumf": arith.MinimumfOp,
    "minnumf": arith.MinnumfOp,
    "mins": arith.MinSIOp,
    "minu": arith.MinUIOp,
    "mulf": arith.MulfOp,
    "muli": arith.MuliOp,
    "ori": arith.OrIOp,
    "xori": arith.XOrIOp,
}
"""The operation of each kind of `memref.atomic_rmw`; None stores the new value."""


def lower_atomic(op: memref.AtomicRMWOp) -> None:
    """atomic_rmw addf %v, %b[%i]  =>  store %b[%i] + %v, %b[%i]; its result is the old element"""
    b = IndexBuilder(InsertPoint.before(op))
    made = ATOMIC[ATOMIC_KINDS[op.kind.value.data]]
    old = b.insert(memref.LoadOp.get(op.memref, op.indices)).results[0]
    new = op.value if made is None else b.insert(made(old, op.value)).results[0]
    b.insert(memref.StoreOp.get(new, op.memref, op.indices))
    Rewriter.replace_op(op, [], [old])


def lower_transfer(op: vector.TransferReadOp | vector.TransferWriteOp) -> None:
    """transfer  =>  vector load or store, if it is inside; else the elements that are"""
    b = IndexBuilder(InsertPoint.before(op))
    lanes, inside = _lanes_of(op), all(flag == BoolAttr.from_bool(True) for flag in op.in_bounds)
    if inside and op.mask is None:
        new = _whole(op)
        new.location = op.location
        Rewriter.replace_op(op, new)
        return
    size = b.value(buffer_dim(op.source, len(op.indices) - 1, b))
    if op.mask is not None:
        value = None if isinstance(op, vector.TransferWriteOp) else _filled(op, b)
        for lane in range(lanes):
            value = _lane(op, lane, size, value, b)
        Rewriter.replace_op(op, [], [] if value is None else [value])
        return
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
    ):
        hint = "transfer a vector of one dim, along the last dim"
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
    if op.mask is not None:
        on = b.insert(vector.ExtractOp(op.mask, [lane], i1)).results[0]
        inside = b.insert(arith.AndIOp(inside, on)).results[0]
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


def lower_reshape(op: memref.ExpandShapeOp | memref.CollapseShapeOp) -> None:
    """collapse_shape, expand_shape of a contiguous buffer  =>  reinterpret_cast"""
    kind = op.result.type
    assert isinstance(op.src.type, MemRefType)
    assert isinstance(kind, MemRefType)
    if not isinstance(op.src.type.layout, NoneAttr):
        hint = "reshape the whole buffer, and take a memref.subview of the result"
        raise UnsupportedError("a reshape of a strided buffer is not supported", op=op, hint=hint)
    if isinstance(op, memref.ExpandShapeOp) and not kind.has_static_shape():
        hint = "give it static sizes, or use memref.reinterpret_cast"
        raise UnsupportedError(
            "an expand_shape to unknown sizes is not supported", op=op, hint=hint
        )
    b = IndexBuilder(InsertPoint.before(op))

    def leaf(part: Dim | Scalar) -> Size:
        assert isinstance(part, Dim)
        return buffer_dim(part.value, part.axis, b)

    exprs = [result_size(op.result, axis) for axis in range(kind.get_num_dims())]
    sizes = [evaluate(expr, leaf, b) for expr in exprs if expr is not None]
    Rewriter.replace_op(op, [], [row_major_view(op.src, sizes, kind, b)])


def by_lane(op: Operation) -> None:
    """op(%a, %b : vector<2xf16>)  =>  op on the elements of each lane: GPUs compute with halves"""
    b = IndexBuilder(InsertPoint.before(op))
    kind = op.results[0].type
    assert isinstance(kind, VectorType)
    value = b.insert(arith.ConstantOp(DenseIntOrFPElementsAttr.from_list(kind, [0]))).results[0]
    for lane in range(kind.get_shape()[0]):
        operands = [
            b.insert(vector.ExtractOp(v, [lane], v.type.element_type)).results[0]
            if isinstance(v.type, VectorType)
            else v
            for v in op.operands
        ]
        element = b.insert(same_op(op, operands, [kind.element_type])).results[0]
        value = b.insert(vector.InsertOp(element, value, [lane])).results[0]
    Rewriter.replace_op(op, [], [value])


def lower_mask(op: vector.CreateMaskOp | ConstantMaskOp) -> None:
    """create_mask %n  =>  step < %n;  constant_mask [n]  =>  a constant"""
    kind, b = op.results[0].type, IndexBuilder(InsertPoint.before(op))
    assert isinstance(kind, VectorType)
    if len(kind.get_shape()) != 1:
        hint = "use a mask of one dim"
        raise UnsupportedError("this mask is not supported in a kernel", op=op, hint=hint)
    lanes = kind.get_shape()[0]
    if isinstance(op, ConstantMaskOp):
        (count,) = op.mask_dim_sizes.get_values()
        numbers = [lane < count for lane in range(lanes)]
        constant = arith.ConstantOp(DenseIntOrFPElementsAttr.from_list(kind, numbers))
        Rewriter.replace_op(op, constant)
        return
    steps = b.insert(StepOp(VectorType(IndexType(), [lanes]))).results[0]
    bound = b.insert(vector.BroadcastOp(op.mask_dim_sizes[0], steps.type)).results[0]
    Rewriter.replace_op(op, arith.CmpiOp(steps, bound, "slt"))


def lower_part(op: ExtractStridedSliceOp | InsertStridedSliceOp) -> None:
    """extract_strided_slice, insert_strided_slice of one dim  =>  shuffle"""
    kind = op.result.type
    assert isinstance(kind, VectorType)
    if len(kind.get_shape()) != 1:
        hint = "use vectors of one dim"
        raise UnsupportedError("this slice is not supported in a kernel", op=op, hint=hint)
    first, count = op.offsets.data[0].value.data, op.source.type.get_shape()[0]
    if isinstance(op, ExtractStridedSliceOp):
        picked, other = range(first, first + kind.get_shape()[0]), op.source
    else:
        # The lanes of `dest` follow those of the source.
        picked, other = [count + lane for lane in range(kind.get_shape()[0])], op.dest
        picked[first : first + count] = range(count)
    lanes = DenseArrayBase.from_list(i64, list(picked))
    Rewriter.replace_op(op, vector.ShuffleOp(op.source, other, lanes, result_type=kind))


def legalize(op: Operation, *, on_gpu: bool) -> None:
    """Rewrites an op of a kernel. Raises UnsupportedError for one that has no other form."""
    match op:
        case vector.TransferReadOp() | vector.TransferWriteOp():
            lower_transfer(op)
        case vector.CreateMaskOp() | ConstantMaskOp():
            lower_mask(op)
        case ExtractStridedSliceOp() | InsertStridedSliceOp():
            lower_part(op)
        case memref.AtomicRMWOp():
            lower_atomic(op)
        case memref.ExpandShapeOp() | memref.CollapseShapeOp():
            lower_reshape(op)
        case arith.SelectOp() if isinstance(op.result.type, MemRefType):
            hint = "load from both buffers, and select the value"
            raise UnsupportedError("a choice of buffers is not supported", op=op, hint=hint)
        case _ if computes_halves(op) and any(isinstance(r.type, VectorType) for r in op.results):
            if on_gpu:
                by_lane(op)
            else:
                widen(op)
        case _:
            pass


@dataclass(frozen=True)
class LegalizeKernelsPass(ModulePass):
    """Rewrites what code generation does not have, in kernels of the program's own."""

    name = "irees-legalize-kernels"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        on_gpu = target_of(op).gpu is not None
        for kernel in [o for o in op.walk() if isinstance(o, KernelOp)]:
            for inner in list(kernel.walk()):
                legalize(inner, on_gpu=on_gpu)
