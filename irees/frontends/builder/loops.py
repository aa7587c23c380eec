"""
Loops with loop-carried values.

`for_` and `while_` carry tensors; `scalar_for` and `scalar_while` are for the body of a structured
op and carry scalars.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from xdsl.dialects import scf
from xdsl.ir import Block, Region, SSAValue

from .core import Builder, Size, Tensor
from .dtypes import INDEX, DType
from .scalars import Body, Scalar

Many = tuple[Any, ...] | list[Any]


def _carried(values: Sequence[SSAValue], like: Sequence[Tensor]) -> list[Tensor]:
    return [Tensor(v, t.dtype, t.shape) for v, t in zip(values, like, strict=True)]


def for_(
    b: Builder,
    start: Size,
    stop: Size,
    carried: Sequence[Tensor],
    body: Callable[..., Many | Tensor],
) -> list[Tensor]:
    """
    values = body(i, *values) for i = start, ..., stop - 1. `i` is an index value; the tensors that
    `body` returns have the dtypes and dims of its arguments.
    """
    bounds = [b.value(start), b.value(stop), b.value(1)]
    kinds = [t.value.type for t in carried]
    block = Block(arg_types=[INDEX.element, *kinds])
    with b.inside(block):
        results = body(block.args[0], *_carried(block.args[1:], carried))
        results = (results,) if isinstance(results, Tensor) else results
        b.insert(scf.YieldOp(*(r.value for r in results)))
    op = scf.ForOp(*bounds, [t.value for t in carried], Region(block))
    b.insert(op)
    return _carried(op.results, carried)


def while_(
    b: Builder,
    carried: Sequence[Tensor],
    condition: Callable[..., SSAValue],
    body: Callable[..., Many | Tensor],
) -> list[Tensor]:
    """values = body(*values) while the bool value condition(*values) holds."""
    kinds = [t.value.type for t in carried]
    before, after = Block(arg_types=kinds), Block(arg_types=kinds)
    with b.inside(before):
        holds = condition(*_carried(before.args, carried))
        b.insert(scf.ConditionOp(holds, *before.args))
    with b.inside(after):
        results = body(*_carried(after.args, carried))
        results = (results,) if isinstance(results, Tensor) else results
        b.insert(scf.YieldOp(*(r.value for r in results)))
    op = scf.WhileOp([t.value for t in carried], kinds, Region(before), Region(after))
    b.insert(op)
    return _carried(op.results, carried)


# --- inside of structured-op bodies ---


def _scalars(s: Body, values: Sequence[SSAValue], dtypes: Sequence[DType]) -> list[Scalar]:
    return [Scalar(s, v, d) for v, d in zip(values, dtypes, strict=True)]


def _tuple(results: Scalar | Many) -> Many:
    return (results,) if isinstance(results, Scalar) else results


def scalar_for(
    s: Body, start: Any, stop: Any, carried: Sequence[Scalar], body: Callable[..., Any]
) -> list[Scalar]:
    """
    values = body(i, *values) for i = start, ..., stop - 1, inside a structured op. `i` is a Scalar
    of type index. `i`, the carried values and any constants that `body` creates belong to the
    loop's own `Body`.
    """
    bounds = [s.as_index(v).value for v in (start, stop, 1)]
    dtypes = [v.dtype for v in carried]
    block = Block(arg_types=[INDEX.element, *(d.element for d in dtypes)])
    inner = Body(block, s.location)
    results = _tuple(body(*_scalars(inner, block.args, [INDEX, *dtypes])))
    block.add_op(scf.YieldOp(*(r.value for r in results)))
    op = scf.ForOp(*bounds, [v.value for v in carried], Region(block))
    s.block.add_op(op)
    return _scalars(s, op.results, dtypes)


def scalar_while(
    s: Body,
    carried: Sequence[Scalar],
    condition: Callable[..., Scalar],
    body: Callable[..., Any],
) -> list[Scalar]:
    """values = body(*values) while condition(*values) holds, inside a structured op."""
    dtypes = [v.dtype for v in carried]
    kinds = [d.element for d in dtypes]
    before, after = Block(arg_types=kinds), Block(arg_types=kinds)
    holds = condition(*_scalars(Body(before, s.location), before.args, dtypes))
    before.add_op(scf.ConditionOp(holds.value, *before.args))
    results = _tuple(body(*_scalars(Body(after, s.location), after.args, dtypes)))
    after.add_op(scf.YieldOp(*(r.value for r in results)))
    op = scf.WhileOp([v.value for v in carried], kinds, Region(before), Region(after))
    s.block.add_op(op)
    return _scalars(s, op.results, dtypes)
