"""
Lowers PyTorch's symbolic sizes (`s17`, `2*s17 + 1`, `u0`) to index values.

A symbol is bound once: to a dim of an argument, or to an operator's data-dependent size
(`nonzero`). An expression becomes arithmetic on index values, emitted at its first use and reused.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import sympy
import torch
from sympy.printing.precedence import precedence
from torch.utils._sympy import functions as sf
from torch.utils._sympy.printers import PythonPrinter
from torch.utils._sympy.symbol import SymT, symbol_is_type
from xdsl.dialects import arith
from xdsl.ir import SSAValue

from irees.errors import UnsupportedError

from ..builder import Builder, DType, Scalar, Size
from ..builder.dtypes import BOOL, F64, I64, INDEX

_ROUNDINGS = (
    (sf.TruncToInt, "trunc"), (sf.FloorToInt, "floor"), (sf.CeilToInt, "ceil"),
    (sf.RoundToInt, "round"),
)  # fmt: skip


_OF_DATA = (SymT.UNBACKED_INT, SymT.UNBACKED_FLOAT)
"""The kinds of symbols that stand for elements of tensors."""


class _Printer(PythonPrinter):
    """Prints expressions as one writes them: `6 - x.shape[1]`, not `6 + ((-1)*x.shape[1])`."""

    def _print_Add(self, expr: sympy.Add) -> str:
        terms = sorted(expr.args, key=lambda term: (is_negative(term), term.is_number))
        text = self.parenthesize(terms[0], precedence(expr))
        for term in terms[1:]:
            sign, rest = (" - ", -term) if is_negative(term) else (" + ", term)
            text += sign + self.parenthesize(rest, precedence(expr), strict=sign == " + ")
        return text

    def _print_Mul(self, expr: sympy.Mul) -> str:
        if is_negative(expr):
            return "-" + self.parenthesize(-expr, precedence(expr))
        return self.stringify(expr.args, "*", precedence(expr))

    def _print_Float(self, expr: sympy.Float) -> str:
        return repr(float(expr))

    def _print_ToFloat(self, expr: Any) -> str:
        return self._print(expr.args[0])


def is_negative(term: sympy.Basic) -> bool:
    """Whether a term has a negative number as its first factor."""
    return bool(term.as_coeff_Mul()[0] < 0)


class Symbols:
    """Bindings of symbols, and the values of expressions over them."""

    def __init__(self, builder: Builder):
        self.b = builder
        self.bound: dict[sympy.Symbol, Size] = {}
        self.values: dict[sympy.Basic, Size] = {}
        self.unlimited: set[sympy.Symbol] = set()
        """Data-dependent sizes of which PyTorch asserts an upper bound that is wrong."""
        self.origins: dict[sympy.Symbol, str] = {}
        """Symbol => the dim that it stands for, for messages: `x.shape[0]`."""

    def text(self, expr: Any) -> str:
        """An expression in Python, with dims in place of symbols: `x.shape[0] % 2 == 0`."""
        named = {s: sympy.Symbol(self.origins.get(s, str(s))) for s in expr.free_symbols}
        return _Printer().doprint(expr.xreplace(named))

    def bind(self, symbol: sympy.Symbol, size: Size) -> None:
        """Binds a symbol, unless it is bound already."""
        self.bound.setdefault(symbol, size)

    def is_known(self, expr: Any) -> bool:
        """Whether a size is an int, or all of its symbols are bound."""
        node = getattr(expr, "node", None)
        if node is None or node.expr in self.values:
            return True
        return all(s in self.bound for s in node.expr.free_symbols)

    def size(self, value: Any) -> Size:
        """An int or a SymInt as a dim. Raises UnsupportedError for an unbound symbol."""
        if isinstance(value, int):
            return value
        expr = value.node.expr
        if expr.is_Integer:
            return int(expr)
        if expr not in self.values:
            self.values[expr] = self._int(expr)
        return self.values[expr]

    def _int(self, expr: sympy.Basic) -> Size:
        """Lowers an integer expression to index arithmetic."""
        if expr.is_Integer or expr.is_Float:  # sympy calls a float such as 2.0 an integer, too
            return int(expr)  # type: ignore[arg-type]
        if expr in self.values:
            return self.values[expr]
        if isinstance(expr, sympy.Symbol):
            if (found := self.bound.get(expr)) is None:
                raise UnsupportedError(f"the size {expr} is used before it is known")
            return found
        if isinstance(expr, sympy.Piecewise):
            return self._piecewise(expr)
        rounding = next((name for kind, name in _ROUNDINGS if isinstance(expr, kind)), None)
        if rounding is not None:
            number = (self._float_of(expr.args[0]), F64)
            self._check_data(
                expr, lambda v: v.abs() < 2.0**63, *number, "NaN or a large number as an integer"
            )
            size = self.b.compute(lambda v: v.call(rounding).to(INDEX), number).value
            self.values[expr] = size
            return size
        rule = self._rule(expr)
        if rule is None:
            raise UnsupportedError(f"the size expression {expr} is not supported")
        sizes = [self._int(a) for a in expr.args]
        if isinstance(expr, sf.FloorDiv | sf.CleanDiv | sf.Mod | sf.PythonMod | sympy.Mod):
            self._check_divisor(expr.args[1], self.b.value(sizes[1]), INDEX)
        result = rule(sizes)
        self.values[expr] = result
        return result

    def _check_divisor(self, divisor: sympy.Basic, value: SSAValue, dtype: DType) -> None:
        self._check_data(divisor, lambda v: v != 0, value, dtype, "a number is divided by zero")

    def _check_data(
        self, expr: sympy.Basic, holds: Callable[[Scalar], Scalar], value: SSAValue, dtype: DType,
        message: str,
    ) -> None:  # fmt: skip
        """Aborts a run in which `holds` is false, if the value depends on elements of tensors."""
        if any(symbol_is_type(s, _OF_DATA) for s in expr.free_symbols):
            self.b.check(self.b.compute(holds, (value, dtype)).value, message)

    def _rule(self, expr: sympy.Basic) -> Callable[[list[Size]], Size] | None:
        b = self.b

        def fold(fn: Callable[[Size, Size], Size]) -> Callable[[list[Size]], Size]:
            def run(sizes: list[Size]) -> Size:
                result = sizes[0]
                for size in sizes[1:]:
                    result = fn(result, size)
                return result

            return run

        rules: list[tuple[Any, Callable[[list[Size]], Size]]] = [
            (sympy.Add, fold(b.add)),
            (sympy.Mul, fold(b.mul)),
            (sympy.Pow | sf.PowByNatural, self._power),
            (sf.FloorDiv, fold(self._floordiv)),
            (sf.CleanDiv, fold(self._floordiv)),
            (sf.Mod, fold(self._mod)),
            (sf.PythonMod, fold(self._mod)),
            (sympy.Mod, fold(self._mod)),
            (sympy.Max, fold(b.maximum)),
            (sympy.Min, fold(b.minimum)),
            (sf.Max, fold(b.maximum)),
            (sf.Min, fold(b.minimum)),
            (sf.Identity | sf.ToFloat, lambda sizes: sizes[0]),
            (sympy.Abs, lambda sizes: b.maximum(sizes[0], b.sub(0, sizes[0]))),
            (sf.BitwiseFn_bitwise_and, fold(lambda a, c: self._signed(operator.and_, a, c))),
            (sf.BitwiseFn_bitwise_or, fold(lambda a, c: self._signed(operator.or_, a, c))),
        ]
        return next((rule for kind, rule in rules if isinstance(expr, kind)), None)

    def _piecewise(self, expr: sympy.Piecewise) -> Size:
        """The value of the first condition that is true; the last condition always is."""
        result = self._int(expr.args[-1].args[0])
        for value, condition in reversed([piece.args for piece in expr.args[:-1]]):
            holds = self.condition_of(condition)
            pair = [(self.b.value(self._int(value)), INDEX), (self.b.value(result), INDEX)]
            result = self.b.compute(lambda c, x, y: c.where(x, y), (holds, BOOL), *pair).value
        return result

    def _power(self, sizes: list[Size]) -> Size:
        base, exponent = sizes
        if not isinstance(exponent, int):
            return self._power_of_two(base, exponent)
        result: Size = 1
        for _ in range(exponent):
            result = self.b.mul(result, base)
        return result

    def _power_of_two(self, base: Size, exponent: Size) -> Size:
        """(2^k)^n as a shift."""
        if not isinstance(base, int) or base < 2 or base & (base - 1):
            raise UnsupportedError(
                f"{base} to the power of a size is not supported", hint="use a power of 2 as base"
            )
        bits = self.b.value(self.b.mul(exponent, base.bit_length() - 1))
        return self.b.compute(
            lambda n: n.body.number(1, I64).shift_left(n.to(I64)).to(INDEX), (bits, INDEX)
        ).value

    def _floordiv(self, a: Size, c: Size) -> Size:
        if isinstance(a, int) and isinstance(c, int):
            return a // c
        return self._signed(lambda x, y: x.floordiv(y), a, c)

    def _mod(self, a: Size, c: Size) -> Size:
        if isinstance(a, int) and isinstance(c, int):
            return a % c
        return self._signed(lambda x, y: x.mod(y), a, c)

    def _signed(self, fn: Callable[[Scalar, Scalar], Scalar], a: Size, c: Size) -> SSAValue:
        return self.b.compute(fn, (self.b.value(a), INDEX), (self.b.value(c), INDEX)).value

    def scalar(self, value: Any) -> tuple[SSAValue, Any]:
        """A constant or symbolic number as a scalar value, and its dtype (i64, f64 or bool)."""
        if isinstance(value, bool | torch.SymBool):
            return self.condition(value), BOOL
        if isinstance(value, float | torch.SymFloat):
            return self._float(value), F64
        size = self.b.value(self.size(value))
        return self.b.emit(arith.IndexCastOp, (size,), (I64.element,)).results[0], I64

    def _float(self, value: Any) -> SSAValue:
        if isinstance(value, float):
            return self.b.number(value, F64)
        return self._float_of(value.node.expr)

    def _float_of(self, expr: Any) -> SSAValue:
        if expr.is_number:
            return self.b.number(float(expr), F64)
        found = self.bound.get(expr)
        if isinstance(found, SSAValue) and found.type == F64.element:
            return found
        if isinstance(expr, sf.ToFloat):
            return self._index_to_float(self._int(expr.args[0]))
        if isinstance(expr, sf.IntTrueDiv | sf.FloatTrueDiv):
            a, c = (self._number(e) for e in expr.args)
            self._check_divisor(expr.args[1], c, F64)
            return self.b.compute(lambda x, y: x / y, (a, F64), (c, F64)).value
        if isinstance(expr, sf.FloatPow | sympy.Pow):
            return self._float_power(expr)
        if isinstance(expr, sympy.Mul | sympy.Add):
            values = [self._number(e) for e in expr.args]
            result = values[0]
            for each in values[1:]:
                fn = (lambda x, y: x * y) if isinstance(expr, sympy.Mul) else (lambda x, y: x + y)
                result = self.b.compute(fn, (result, F64), (each, F64)).value
            return result
        raise UnsupportedError(f"the number expression {expr} is not supported")

    def _float_power(self, expr: Any) -> SSAValue:
        base, exponent = ((self._number(e), F64) for e in expr.args)
        constant = float(expr.args[1]) if expr.args[1].is_number else None
        if constant is not None and not constant.is_integer():
            self._check_data(expr, lambda v: ~(v < 0), *base, "the root of a negative number")
        if constant == 0.5:
            return self.b.compute(lambda x: x.call("sqrt"), base).value
        return self.b.compute(lambda x, y: x.pow(y), base, exponent).value

    def _number(self, expr: Any) -> SSAValue:
        """An integer or float expression as an f64."""
        return self._index_to_float(self._int(expr)) if expr.is_integer else self._float_of(expr)

    def _index_to_float(self, size: Size) -> SSAValue:
        return self.b.compute(lambda x: x.to(F64), (self.b.value(size), INDEX)).value

    def condition(self, value: Any) -> SSAValue:
        """A bool or a SymBool as an i1."""
        if isinstance(value, bool):
            return self.b.number(value, BOOL)
        return self.condition_of(value.node.expr)

    def condition_of(self, expr: Any) -> SSAValue:
        """A boolean expression of sympy as an i1. Raises UnsupportedError for unknown ones."""
        if expr in (sympy.true, sympy.false):
            return self.b.number(bool(expr), BOOL)
        found = self.bound.get(expr)
        if isinstance(found, SSAValue) and found.type == BOOL.element:
            return found
        logic = {sympy.And: lambda x, y: x & y, sympy.Or: lambda x, y: x | y}
        for kind, fn in logic.items():
            if isinstance(expr, kind):
                values = [self.condition_of(a) for a in expr.args]
                result = values[0]
                for each in values[1:]:
                    result = self.b.compute(fn, (result, BOOL), (each, BOOL)).value
                return result
        if isinstance(expr, sympy.Not):
            return self.b.compute(lambda x: ~x, (self.condition_of(expr.args[0]), BOOL)).value
        signs = {
            sympy.Eq: lambda x, y: x == y, sympy.Ne: lambda x, y: x != y,
            sympy.Lt: lambda x, y: x < y, sympy.Le: lambda x, y: x <= y,
            sympy.Gt: lambda x, y: x > y, sympy.Ge: lambda x, y: x >= y,
        }  # fmt: skip
        for kind, fn in signs.items():
            if isinstance(expr, kind):
                return self._compare(fn, *expr.args)
        raise UnsupportedError(f"the condition {expr} is not supported")

    def _compare(self, fn: Callable[..., Scalar], a: Any, c: Any) -> SSAValue:
        if a.is_integer and c.is_integer:
            pair = [(self.b.value(self._int(e)), INDEX) for e in (a, c)]
        else:
            pair = [(self._number(e), F64) for e in (a, c)]
        return self.b.compute(fn, *pair).value
