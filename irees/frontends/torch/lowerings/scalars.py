"""Sizes, elements as numbers, and run-time assertions."""

from __future__ import annotations

from typing import Any

import sympy
from xdsl.ir import SSAValue

from ...builder import Size, Tensor
from ...builder.dtypes import BOOL, F64, INDEX
from ..calls import Call, Symbolic, lowers
from ..operators import aten


@lowers(aten.sym_size.int)
def sym_size(call: Call, x: Tensor, dim: int) -> Size:
    """The size of a dim"""
    return x.shape[dim % x.rank]


@lowers(aten.sym_numel.default)
def sym_numel(call: Call, x: Tensor) -> Size:
    """The product of all dims"""
    return call.b.product(x.shape)


@lowers(aten.sym_stride.int)
def sym_stride(call: Call, x: Tensor, dim: int) -> Size:
    """The stride of a dim in PyTorch's layout"""
    return call.symbols.size(call.raw[0].stride(dim))


@lowers(aten.sym_storage_offset.default)
def sym_storage_offset(call: Call, x: Tensor) -> Size:
    """The storage offset in PyTorch's layout; 0 if it is data-dependent"""
    offset = call.raw[0].storage_offset()
    return call.symbols.size(offset) if call.symbols.is_known(offset) else 0


@lowers(aten.sym_is_contiguous.default)
def sym_is_contiguous(call: Call, x: Tensor) -> bool:
    """Whether PyTorch's layout is row-major"""
    return bool(call.raw[0].is_contiguous())


@lowers(aten._local_scalar_dense.default, aten.item.default)
def item(call: Call, x: Tensor) -> Any:
    """The only element of x: an index, an f64 or a bool"""
    value = call.b.item(x, [0] * x.rank)
    if x.dtype.is_complex:
        raise call.unsupported("a complex element as a number")
    if x.dtype is BOOL:
        return Symbolic(value, BOOL)
    kind = INDEX if x.dtype.is_integer else F64
    number = call.b.compute(lambda v: v.to(kind), (value, x.dtype)).value
    return number if kind is INDEX else Symbolic(number, F64)


def _is_true(call: Call, value: Any) -> SSAValue | None:
    """A condition as an i1; None if it is a constant that is true."""
    b = call.b
    if isinstance(value, Tensor):
        return b.item(b.is_true(value), [0] * value.rank)
    if isinstance(value, Symbolic):
        return b.compute(lambda v: v.to(BOOL), (value.value, value.dtype)).value
    if isinstance(value, SSAValue):
        return b.compute(lambda v: v.to(BOOL), (value, INDEX)).value
    return None if value else b.number(False, BOOL)


@lowers(
    aten._assert_scalar.default, aten._assert_async.default, aten._assert_async.msg,
    aten._functional_assert_scalar.default, aten._functional_assert_async.msg,
)  # fmt: skip
def assert_(call: Call, condition: Any, message: str = "an assertion failed", *_: Any) -> Any:
    """Aborts the program if the condition is false"""
    free = getattr(getattr(call.raw[0], "node", None), "expr", None)
    if isinstance(free, sympy.Le) and free.free_symbols <= call.symbols.unlimited:
        return None
    found = _is_true(call, condition)
    if found is not None:
        call.b.check(found, message)
    return call.b.empty(call.dtype(), call.shape()) if call.value is not None else None
