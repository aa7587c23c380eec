"""Rules of `value_bounds` for dims of shaped values, selects and loop-carried values."""

from __future__ import annotations

from typing import TYPE_CHECKING

from xdsl.dialects import arith, scf
from xdsl.dialects.builtin import TensorType
from xdsl.ir import Block, Operation, OpResult, SSAValue

from irees.analysis._linear import Linear
from irees.dialects.result_sizes import result_size
from irees.dialects.sizes import Dim, Scalar, evaluate
from irees.dialects.upstream.scf import ForallOp

if TYPE_CHECKING:
    from irees.analysis.value_bounds import ValueBounds, Variable


class Forms:
    """Arithmetic on linear forms; None is a form that is not linear."""

    def add(self, a: Form, b: Form) -> Form:
        """a + b"""
        return None if a is None or b is None else _linear(a) + _linear(b)

    def mul(self, a: Form, b: Form) -> Form:
        """a * b"""
        from irees.analysis.value_bounds import product

        return None if a is None or b is None else product(_linear(a), _linear(b))

    def sub(self, a: Form, b: Form) -> Form:
        """a - b"""
        return None if a is None or b is None else _linear(a) - _linear(b)

    def floordiv(self, a: Form, b: Form) -> Form:
        """Not linear."""
        return None

    ceildiv = maximum = floordiv


Form = Linear | int | None


def _linear(form: Linear | int) -> Linear:
    return Linear.number(form) if isinstance(form, int) else form


def exact(bounds: ValueBounds, value: SSAValue, dim: int) -> Linear | None:
    """Returns the exact form of a dim; None if its op has no rule."""
    if not isinstance(value, OpResult):
        return _argument(bounds, value, dim)
    if (like := _same_shaped(value.op, value)) is not None:
        return bounds.expression(like, dim)
    expr = result_size(value, dim)

    def leaf(part: Dim | Scalar) -> Linear | None:
        if isinstance(part, Dim):
            return bounds.expression(part.value, part.axis)
        return bounds.expression(part.value) if part.at is None else None

    found: Form = None if expr is None else evaluate(expr, leaf, Forms())
    return None if found is None else _linear(found)


def _same_shaped(op: Operation, value: OpResult) -> SSAValue | None:
    """Returns an operand of an elementwise op that has the dims of its result, or None."""
    if isinstance(op, arith.SelectOp) and isinstance(op.cond.type, TensorType):
        return op.lhs
    if not op.name.startswith(("arith.", "math.")) or not op.operands:
        return None
    first, result = op.operands[0], value.type
    if not isinstance(first.type, TensorType) or not isinstance(result, TensorType):
        return None
    return first if first.type.get_num_dims() == result.get_num_dims() else None


def _argument(bounds: ValueBounds, value: SSAValue, dim: int) -> Linear | None:
    block = value.owner
    assert isinstance(block, Block)
    parent = block.parent_op()
    if isinstance(parent, ForallOp):
        position = block.args.index(value) - parent.num_loops  # type: ignore[arg-type]
        return bounds.expression(parent.outputs[position], dim)
    return None


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
