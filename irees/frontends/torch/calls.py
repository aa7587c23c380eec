"""
The `Call` object that an operator's lowering receives, and the table of lowerings.

    @lowers(aten.addcmul.default)
    def addcmul(call, x, t1, t2, *, value):
        return call.elementwise(lambda x, t1, t2, v: x + v * t1 * t2, x, t1, t2, value)

A lowering receives all positional arguments of the operator's schema in order, with defaults filled
in, and those keyword-only arguments that it names. Tensors are passed as the builder's `Tensor`s,
SymInts as dims, other symbolic numbers as `Symbolic`; dtypes remain PyTorch's. It returns a Tensor,
a tuple of them for an operator with several results, or None for no result.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import torch
from torch._prims_common import ELEMENTWISE_TYPE_PROMOTION_KIND, elementwise_dtypes
from xdsl.ir import SSAValue

from irees.errors import UnsupportedError

from ..builder import Body, Builder, DType, Scalar, Size, Tensor
from ..builder.dtypes import BOOL, INDEX
from .dtypes import dtype_of
from .operators import ABSENT
from .symbols import Symbols

LOWERINGS: dict[Any, Callable[..., Any]] = {}
"""The lowering of each OpOverload."""


BY_NAME: dict[str, Callable[..., Any]] = {}
"""Lowerings of other libraries' operators, by "library::name"; the library may not be loaded."""


def lowers_named(*names: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Registers a function as the lowering of all overloads of other libraries' operators."""

    def register(function: Callable[..., Any]) -> Callable[..., Any]:
        for name in names:
            BY_NAME[name] = function
        return function

    return register


def lowering_of(target: Any) -> Callable[..., Any] | None:
    """The lowering of an operator, or None."""
    return LOWERINGS.get(target) or BY_NAME.get(target._schema.name)


def lowers(*overloads: Any) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Registers a function as the lowering of these operators; skips `ABSENT` ones."""

    def register(function: Callable[..., Any]) -> Callable[..., Any]:
        for overload in overloads:
            if overload is ABSENT:
                continue
            assert overload not in LOWERINGS, f"{overload} has two lowerings"
            LOWERINGS[overload] = function
        return function

    return register


@dataclass(frozen=True, eq=False)
class Symbolic:
    """A scalar value computed by the program: a SymFloat or a SymBool."""

    value: SSAValue
    dtype: DType


class NotLowered(Exception):
    """Raised by a lowering to fall back to the operator's decomposition."""


Number = int | float | complex | bool
Operand = Tensor | Number | SSAValue | Symbolic


@dataclass(eq=False)
class Call:
    """One call of an operator: the builder, and PyTorch's metadata of operands and results."""

    b: Builder
    symbols: Symbols
    target: Any
    raw: Sequence[Any]
    """Positional arguments as fake tensors and numbers."""
    named: dict[str, Any]
    """Keyword arguments as fake tensors and numbers."""
    value: Any
    """The result as a fake tensor, or a sequence of them."""
    unused: frozenset[int]
    """The numbers of results without uses; a lowering may return None for them."""
    bases: dict[SSAValue, tuple[Tensor, torch.Tensor]]
    """The tensor that owns the storage of each view."""
    new_seed: Callable[[], SSAValue]
    """Creates the i64 seed of one random operator; each run gets a new value."""

    def fake(self, index: int = 0) -> Any:
        """Result `index` as PyTorch's fake tensor."""
        return self.value[index] if isinstance(self.value, list | tuple) else self.value

    def dtype(self, index: int = 0) -> DType:
        """The dtype of a result."""
        return dtype_of(self.fake(index).dtype)

    def shape(self, index: int = 0) -> tuple[Size, ...]:
        """The dims of a result."""
        return tuple(self.symbols.size(s) for s in self.fake(index).shape)

    def has_symbols(self, index: int = 0) -> bool:
        """Whether the dims of a result are known before it is computed."""
        return all(self.symbols.is_known(s) for s in self.fake(index).shape)

    def common_dtype(self, *raw: Any, kind: str = "DEFAULT") -> DType:
        """The dtype that PyTorch promotes the operands to."""
        given = raw or tuple(a for a in self.raw if isinstance(a, torch.Tensor | Number))
        promoted = elementwise_dtypes(
            *given, type_promotion_kind=ELEMENTWISE_TYPE_PROMOTION_KIND[kind]
        )
        return dtype_of(promoted[0])

    def unsupported(self, what: str) -> UnsupportedError:
        """The error for arguments that the lowering does not support."""
        return UnsupportedError(what, op=str(self.target))

    def static(self, sizes: Sequence[Size], what: str) -> tuple[int, ...]:
        """Sizes as ints. Raises UnsupportedError if one of them is dynamic."""
        known = tuple(size for size in sizes if isinstance(size, int))
        if len(known) == len(sizes):
            return known
        raise UnsupportedError(
            f"a {what} of dynamic size is not supported by this operator",
            op=str(self.target),
            hint=f"leave the dims of the {what} out of dynamic_shapes",
        )

    # --- operands ---

    def tensor(self, value: Operand, dtype: DType | None = None) -> Tensor:
        """An operand as a tensor, cast to `dtype` if given; numbers become rank-0 tensors."""
        if not isinstance(value, Tensor):
            kind = dtype or _dtype_of_number(value)
            value = self.b.from_function(lambda s: self.number_in(s, value, kind), (), kind)
        return value if dtype is None else self.b.cast(value, dtype)

    def number_in(self, s: Body, value: Operand, dtype: DType) -> Scalar:
        """A number of any kind as a scalar of a body."""
        if isinstance(value, Symbolic):
            return s.scalar(value.value, value.dtype).to(dtype)
        if isinstance(value, SSAValue):
            return s.scalar(value, INDEX).to(dtype)
        assert not isinstance(value, Tensor)
        if dtype.is_integer and isinstance(value, float):
            value = int(value)
        return s.number(value, dtype)

    def numbers_in(self, v: Scalar, values: Sequence[Any]) -> list[Any]:
        """Numbers for arithmetic with `v`: symbolic ones as its dtype, all others unchanged."""
        symbolic = Symbolic | SSAValue
        return [
            self.number_in(v.body, each, v.dtype) if isinstance(each, symbolic) else each
            for each in values
        ]

    def elementwise(
        self,
        fn: Callable[..., Scalar],
        *operands: Operand,
        wide: DType | None = None,
        dtype: DType | None = None,
    ) -> Tensor:
        """
        Maps `fn` over operands that broadcast. Operands are converted to `wide` (default: the
        result's computation dtype) and the result to `dtype` (default: the operator's result
        dtype).
        """
        out = dtype or self.dtype()
        kind = wide or out.computed
        tensors = [o for o in operands if isinstance(o, Tensor)]

        def body(*scalars: Scalar) -> Scalar:
            s, given = scalars[0].body, iter(scalars)
            values = [
                next(given).to(kind) if isinstance(o, Tensor) else self.number_in(s, o, kind)
                for o in operands
            ]
            return fn(*values)

        if not tensors:
            return self.b.from_function(
                lambda s: fn(*(self.number_in(s, o, kind) for o in operands)), (), out
            )
        return self.b.map(body, *tensors, dtype=out)

    def compare(self, fn: Callable[..., Scalar], *operands: Operand) -> Tensor:
        """Maps `fn` over operands in their common dtype; the result is bool."""
        return self.elementwise(fn, *operands, wide=self.common_dtype(), dtype=BOOL)

    def rounded(self, value: Any, kind: torch.dtype | None = None) -> Any:
        """
        Rounds a Python number to the dtype of the result, as PyTorch's addition, comparison, clamp
        and fill do before they compute.
        """
        kind = kind or self.fake().dtype
        if isinstance(value, float) and kind in (torch.float16, torch.bfloat16):
            return torch.tensor(value, dtype=kind).item()
        return value

    def axis(self, dim: int, rank: int) -> int:
        """Normalizes a dim that may be negative to 0, ..., rank - 1. Raises UnsupportedError."""
        most = max(rank, 1)
        if not -most <= dim < most:
            raise self.unsupported(f"a tensor of rank {rank} has no dim {dim}")
        return dim % most

    def check_same_dtype(self, *operands: Tensor | None) -> None:
        """Raises UnsupportedError for operands of several dtypes, as PyTorch's kernels do."""
        kinds = dict.fromkeys(t.dtype.name for t in operands if t is not None)
        if len(kinds) > 1:
            raise self.unsupported(
                f"the operands are {' and '.join(kinds)}, but must be of one dtype"
            )

    def require(self, x: Tensor, holds: Callable[[Scalar], Scalar], message: str) -> Tensor:
        """x; a run in which `holds` is false for an element is aborted with the message."""

        def same(v: Scalar) -> Scalar:
            v.body.check(holds(v), message)
            return v

        return self.b.map(same, x)

    def require_elements(self, sizes: Sequence[Size]) -> None:
        """Aborts a run in which one of these dims is empty; PyTorch refuses static empty dims."""
        for size in sizes:
            if not isinstance(size, int):
                fine = self.b.compute(lambda n: n > 0, (size, INDEX)).value
                self.b.check(fine, f"{self.target} has no result for a dim of size 0")

    def axes(self, dims: Any, rank: int) -> list[int]:
        """Normalizes one or several dims that may be negative; None and [] mean all dims."""
        if dims is None or (isinstance(dims, list | tuple) and not dims):
            return list(range(rank))
        dims = [dims] if isinstance(dims, int) else dims
        return sorted({self.axis(d, rank) for d in dims}) if rank else []

    def spread(self, values: Any, count: int) -> tuple[int, ...]:
        """Expands a number or a one-element list to one number per spatial dim."""
        values = [values] if isinstance(values, int) else list(values)
        return tuple(values * count if len(values) == 1 else values)

    def steps(self, values: Any, count: int) -> tuple[int, ...]:
        """`spread` of strides or dilations. Raises UnsupportedError if one is a dynamic size."""
        steps = self.spread(values, count)
        if not all(isinstance(step, int) for step in steps):
            raise UnsupportedError(
                "a stride or dilation that depends on a dynamic size is not supported",
                op=str(self.target),
                hint="compute it from sizes that are not in dynamic_shapes",
            )
        return steps


def _dtype_of_number(value: Any) -> DType:
    if isinstance(value, Symbolic):
        return value.dtype
    if isinstance(value, bool):
        return BOOL
    if isinstance(value, int | SSAValue):
        return dtype_of(torch.int64)
    if isinstance(value, complex):
        return dtype_of(torch.complex64)
    return dtype_of(torch.get_default_dtype())


@cache
def keyword_names(function: Callable[..., Any]) -> frozenset[str]:
    """The parameters of a lowering that can be passed by name."""
    parameters = inspect.signature(function).parameters.values()
    kinds = (inspect.Parameter.KEYWORD_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    return frozenset(p.name for p in parameters if p.kind in kinds)


@cache
def _most_positional(function: Callable[..., Any]) -> int | None:
    """The number of a lowering's positional arguments after the call; None for any number."""
    parameters = list(inspect.signature(function).parameters.values())[1:]
    if any(p.kind is inspect.Parameter.VAR_POSITIONAL for p in parameters):
        return None
    return sum(p.kind is inspect.Parameter.POSITIONAL_OR_KEYWORD for p in parameters)


@cache
def _schema(target: Any) -> tuple[tuple[tuple[str, Any], ...], tuple[tuple[str, Any], ...]]:
    """Positional and keyword-only arguments of an operator with their defaults."""
    positional = [(a.name, a.default_value) for a in target._schema.arguments if not a.kwarg_only]
    named = [(a.name, a.default_value) for a in target._schema.arguments if a.kwarg_only]
    return tuple(positional), tuple(named)


def arrange(
    target: Any, function: Callable[..., Any], args: Sequence[Any], kwargs: dict[str, Any]
) -> tuple[list[Any], dict[str, Any]]:
    """Arranges a call's arguments for a lowering's signature."""
    positional, named = _schema(target)
    values = list(args)
    for name, default in positional[len(args) :]:
        values.append(kwargs.get(name, default))
    wanted = keyword_names(function)
    values = values[: _most_positional(function)]
    return values, {name: kwargs.get(name, default) for name, default in named if name in wanted}
