"""Rules of `value_bounds` for dims of shaped values, selects and loop-carried values."""

from __future__ import annotations

from typing import TYPE_CHECKING

from xdsl.dialects import arith, memref, scf, tensor
from xdsl.dialects.builtin import DYNAMIC_INDEX, MemRefType, TensorType
from xdsl.ir import Block, Operation, OpResult, SSAValue

from irees.analysis._linear import Linear
from irees.dialects.upstream.scf import ForallOp
from irees.dialects.upstream.tensor import rank_reduction
from irees.interfaces import loops_model_of

if TYPE_CHECKING:
    from irees.analysis.value_bounds import ValueBounds, Variable


def _mixed(static, dynamic) -> list[SSAValue | int]:
    rest = iter(dynamic)
    return [next(rest) if size == DYNAMIC_INDEX else size for size in static]


def _shape(value: SSAValue) -> tuple[int, ...]:
    assert isinstance(value.type, TensorType | MemRefType)
    return value.type.get_shape()


def tied_init(value: OpResult) -> SSAValue | None:
    """Returns the init operand that a destination-style op's result has the shape of."""
    outputs = getattr(value.op, "outputs", None)
    tied = value.op.name.startswith(("linalg.", "iree_linalg_ext.", "scf.forall"))
    if outputs is None or not (tied or loops_model_of(value.op)):
        return None
    tensors = [each for each in outputs if isinstance(each.type, TensorType)]
    if len(tensors) != len(value.op.results):
        return None
    return tensors[value.index]


def exact(bounds: ValueBounds, value: SSAValue, dim: int) -> Linear | None:
    """Returns the exact form of a dim; None if its op has no rule."""
    if not isinstance(value, OpResult):
        return _argument(bounds, value, dim)
    op = value.op
    init = tied_init(value)
    if init is not None:
        return bounds.expression(init, dim)
    if isinstance(op, tensor.EmptyOp | memref.AllocOp | memref.AllocaOp):
        return bounds.expression(_mixed(_shape(value), op.dynamic_sizes)[dim])
    if isinstance(op, tensor.ExpandShapeOp | memref.ExpandShapeOp):
        shape = op.static_output_shape.get_values()
        dynamic = op.operands[1:]
        return bounds.expression(_mixed(shape, dynamic)[dim])
    if isinstance(op, tensor.CollapseShapeOp | memref.CollapseShapeOp):
        return _collapsed(bounds, op, dim)
    if isinstance(op, tensor.ExtractSliceOp | memref.SubviewOp):
        return _sliced(bounds, op, value, dim)
    if (like := _same_shaped(op, value)) is not None:
        return bounds.expression(like, dim)
    if isinstance(op, tensor.CastOp | memref.CastOp):
        return _of_cast(bounds, op, dim)
    if isinstance(op, tensor.PadOp):
        return _padded(bounds, op, dim)
    if isinstance(op, tensor.ConcatOp):
        return _concatenated(bounds, op, dim)
    if op.name == "tensor.generate":
        return bounds.expression(_mixed(_shape(value), list(op.operands))[dim])
    if op.name == "iree_tensor_ext.dispatch.tensor.load":
        static, dynamic = op.static_sizes, op.sizes  # type: ignore[attr-defined]
        return bounds.expression(_mixed(static.get_values(), dynamic)[dim])
    return None


def _padded(bounds: ValueBounds, op: tensor.PadOp, dim: int) -> Linear:
    low = _mixed(op.static_low.get_values(), op.low)[dim]
    high = _mixed(op.static_high.get_values(), op.high)[dim]
    total = bounds.expression(op.source, dim) + bounds.expression(low)
    return total + bounds.expression(high)


def _of_cast(bounds: ValueBounds, op: tensor.CastOp | memref.CastOp, dim: int) -> Linear | None:
    ranked = isinstance(op.source.type, TensorType | MemRefType)
    return bounds.expression(op.source, dim) if ranked else None


def _same_shaped(op: Operation, value: OpResult) -> SSAValue | None:
    """Returns an operand with the dims of the result, or None."""
    if isinstance(op, tensor.InsertSliceOp | tensor.InsertOp):
        return op.dest
    if isinstance(op, arith.SelectOp) and isinstance(op.cond.type, TensorType):
        return op.lhs
    if not op.name.startswith(("arith.", "math.")) or not op.operands:
        return None
    first = op.operands[0]
    same = isinstance(first.type, TensorType) and first.type.get_num_dims() == len(_shape(value))
    return first if same else None


def _argument(bounds: ValueBounds, value: SSAValue, dim: int) -> Linear | None:
    block = value.owner
    assert isinstance(block, Block)
    parent = block.parent_op()
    if isinstance(parent, ForallOp):
        position = block.args.index(value) - parent.num_loops  # type: ignore[arg-type]
        return bounds.expression(parent.outputs[position], dim)
    return None


def _collapsed(
    bounds: ValueBounds, op: tensor.CollapseShapeOp | memref.CollapseShapeOp, dim: int
) -> Linear | None:
    from irees.analysis.value_bounds import product

    total: Linear | None = Linear.number(1)
    for each in op.reassociation.data[dim].data:
        size = bounds.expression(op.src, each.value.data)
        total = None if total is None else product(total, size)
    return total


def _sliced(
    bounds: ValueBounds, op: tensor.ExtractSliceOp | memref.SubviewOp, value: SSAValue, dim: int
) -> Linear | None:
    sizes = op.static_sizes.get_values()
    dropped = rank_reduction(sizes, _shape(value))
    if dropped is None:
        return None
    kept = [size for i, size in enumerate(_mixed(sizes, op.sizes)) if i not in dropped]
    return bounds.expression(kept[dim])


def _concatenated(bounds: ValueBounds, op: tensor.ConcatOp, dim: int) -> Linear | None:
    forms = [bounds.expression(each, dim) for each in op.inputs]
    if dim == op.dim.value.data:
        total = Linear()
        for form in forms:
            total = total + form
        return total
    return next((form for form in forms if form.is_number), forms[0])


def alternatives(variable: Variable) -> tuple[Variable, Variable] | None:
    """Returns the two possible values of the result of a select or scf.if."""
    from irees.analysis.value_bounds import Variable

    value = variable.value
    if not isinstance(value, OpResult):
        return None
    op = value.op
    if isinstance(op, arith.SelectOp) and not isinstance(op.cond.type, TensorType):
        return Variable(op.lhs, variable.dim), Variable(op.rhs, variable.dim)
    if isinstance(op, scf.IfOp):
        yes, no = op.true_region.block.last_op, op.false_region.block.last_op
        assert yes is not None
        assert no is not None
        return (
            Variable(yes.operands[value.index], variable.dim),
            Variable(no.operands[value.index], variable.dim),
        )
    return None


def carried(variable: Variable) -> tuple[Variable, Variable, Variable] | None:
    """Returns the argument, initial value and yielded value of a loop-carried variable."""
    from irees.analysis.value_bounds import Variable

    value = variable.value
    if isinstance(value, OpResult):
        op, position = value.op, value.index
    else:
        block = value.owner
        assert isinstance(block, Block)
        op, position = block.parent_op(), block.args.index(value) - 1  # type: ignore[arg-type]
    if not isinstance(op, scf.ForOp) or not 0 <= position < len(op.iter_args):
        return None
    last = op.body.block.last_op
    assert last is not None
    dim = variable.dim
    return (
        Variable(op.body.block.args[position + 1], dim),
        Variable(op.iter_args[position], dim),
        Variable(last.operands[position], dim),
    )
