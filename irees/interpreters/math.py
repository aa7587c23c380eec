"""
math: transcendental functions, computed in f64 and rounded once.

So results for f16, bf16 and f32 are correctly rounded except for a few arguments in a billion,
and they are the center of any tolerance. Results for f64 are numpy's. `fma` is exact: its product
is exact, and the sum is rounded to odd before it is rounded to nearest.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from xdsl.ir import Operation

from irees.interpreters.arith import Width, maximum, minimum
from irees.interpreters.machine import Machine
from irees.interpreters.registry import Prepared, implements, pure
from irees.interpreters.special import erf, erfc
from irees.interpreters.values import dtype_of, is_array


def _rounded(f: Callable[..., Any]) -> Callable[..., Any]:
    """Wraps f to compute in f64 and round to the type of the arguments."""

    def run(*args: Any) -> Any:
        dtype = args[0].dtype
        return f(*(a.astype(np.float64) for a in args)).astype(dtype)

    return run


# `np.power` takes one exponent of 1/2 for a square root, which is NaN of minus infinity.
_FUNCTIONS: dict[str, Callable[..., Any]] = {
    "acos": np.arccos, "acosh": np.arccosh, "asin": np.arcsin, "asinh": np.arcsinh,
    "atan": np.arctan, "atan2": np.arctan2, "atanh": np.arctanh, "cbrt": np.cbrt,
    "cos": np.cos, "cosh": np.cosh, "erf": erf, "erfc": erfc, "exp": np.exp, "exp2": np.exp2,
    "expm1": np.expm1, "log": np.log, "log10": np.log10, "log1p": np.log1p, "log2": np.log2,
    "powf": np.float_power, "sin": np.sin, "sinh": np.sinh, "sqrt": np.sqrt, "tan": np.tan,
    "tanh": np.tanh, "rsqrt": lambda x: 1.0 / np.sqrt(x),
}  # fmt: skip

for _name, _function in _FUNCTIONS.items():
    pure(f"math.{_name}", _rounded(_function))


def _round_half_away(x: Any) -> Any:
    whole = np.trunc(x)
    return np.where(np.abs(x - whole) >= 0.5, whole + np.copysign(1.0, x), whole)


def _keep_sign(f: Callable[[Any], Any]) -> Callable[[Any], Any]:
    return _rounded(lambda x: np.copysign(f(x), x))


pure("math.ceil", _keep_sign(np.ceil))
pure("math.floor", _keep_sign(np.floor))
pure("math.trunc", _keep_sign(np.trunc))
pure("math.roundeven", _keep_sign(np.rint))
pure("math.round", _keep_sign(_round_half_away))
pure("math.absf", abs)
pure("math.copysign", np.copysign)
pure("math.isnan", lambda a: a != a)
pure("math.isinf", lambda a: abs(a) == a.dtype.type(np.inf))
pure("math.isfinite", lambda a: (a == a) & (abs(a) != a.dtype.type(np.inf)))
pure("math.isnormal", lambda a: np.isfinite(a) & (abs(a) >= _smallest_normal(a.dtype)))
pure("math.clampf", lambda a, low, high: minimum(maximum(a, low), high))


def ldexp(x: Any, exponent: Any) -> Any:
    """x * 2^exponent, rounded once; the exponent is an integer, or x is NaN."""
    whole = np.nan_to_num(exponent).astype(np.int32)
    return np.ldexp(x, whole)


pure("irees.ldexp", ldexp)


def scalef(x: Any, exponent: Any) -> Any:
    """x * 2^floor(exponent), rounded once; NaN gives NaN, out of range zero or infinity."""
    exponent = np.asarray(exponent)
    whole = np.clip(np.nan_to_num(np.floor(exponent)), -1000, 1000).astype(np.int32)
    return np.where(np.isnan(exponent), exponent, np.ldexp(x, whole))


pure("irees.scalef", scalef)
pure("irees.keep", lambda new, old: new)
pure("irees.lookup", lambda table, number: table[number & 15])


def _smallest_normal(dtype: np.dtype[Any]) -> Any:
    import ml_dtypes

    return ml_dtypes.finfo(dtype).smallest_normal


def _two_sum(a: Any, b: Any) -> tuple[Any, Any]:
    s = a + b
    t = s - a
    return s, (a - (s - t)) + (b - t)


def _to_odd(s: Any, rest: Any) -> Any:
    """s + rest, truncated, with the last bit set when it is inexact."""
    s = np.asarray(s)
    even = (s.view(np.int64) & 1) == 0
    move = (rest != 0) & even & np.isfinite(s) & np.isfinite(rest)
    return np.where(move, np.nextafter(s, np.where(rest > 0, np.inf, -np.inf)), s)


def fma(a: Any, b: Any, c: Any) -> Any:
    """a * b + c, rounded once."""
    dtype = a.dtype
    wide = [np.asarray(x).astype(np.float64) for x in (a, b, c)]
    if dtype.itemsize < 8:
        product = wide[0] * wide[1]
        s, rest = _two_sum(product, wide[2])
        result = _to_odd(s, rest) if np.any(rest) else s
        if dtype.itemsize < 4:
            # like the compiled program: fma in f32, then rounded
            result = result.astype(np.float32)
        result = result.astype(dtype)
    else:
        result = _fma64(*wide)
    return result if any(is_array(x) for x in (a, b, c)) else result[()]


def _split(a: Any) -> tuple[Any, Any]:
    t = 134217729.0 * a
    high = t - (t - a)
    return high, a - high


def _fma64(a: Any, b: Any, c: Any) -> Any:
    product = a * b
    (ah, al), (bh, bl) = _split(a), _split(b)
    error = ((ah * bh - product) + ah * bl + al * bh) + al * bl
    high, low = _two_sum(c, error)
    top, rest = _two_sum(product, high)
    tail, tiny = _two_sum(rest, low)
    exact = top + _to_odd(tail, tiny)
    return np.where(np.isfinite(exact) & np.isfinite(error), exact, a * b + c)


pure("math.fma", fma)


@implements("math.absi", elementwise=True)
def _absi(machine: Machine, op: Operation) -> Prepared:
    """|a|; the smallest integer stays unchanged"""
    w = Width.of(op.results[0].type)
    return lambda a: (w.wrap(np.abs(w.signed(a))),)


_BITS = {
    "math.ctpop": lambda x, bits: x.bit_count(),
    "math.ctlz": lambda x, bits: bits - x.bit_length(),
    "math.cttz": lambda x, bits: (x & -x).bit_length() - 1 if x else bits,
}


@implements(*_BITS, elementwise=True)
def _bits(machine: Machine, op: Operation) -> Prepared:
    """The number of set bits, leading zeros or trailing zeros."""
    w = Width.of(op.results[0].type)
    f = _BITS[op.name]
    count = np.frompyfunc(lambda x: f(int(x), w.bits), 1, 1)

    def run(a: Any):
        result = w.wrap(np.asarray(count(w.unsigned(a))).astype(w.signed_type))
        return (result if is_array(a) else result[()],)

    return run


def _float_power(x: Any, n: Any) -> Any:
    base = np.asarray(x).astype(np.float64)
    exponent = np.abs(np.asarray(n).astype(np.int64)).view(np.uint64)
    base, exponent = np.broadcast_arrays(base, exponent)
    result, base, exponent = np.ones_like(base), base.copy(), exponent.copy()
    while exponent.any():
        result = np.where(exponent & np.uint64(1), result * base, result)
        base, exponent = base * base, exponent >> np.uint64(1)
    return np.where(np.asarray(n) < 0, 1.0 / result, result)


@implements("math.fpowi", elementwise=True)
def _fpowi(machine: Machine, op: Operation) -> Prepared:
    """A float to the power of an integer."""
    w = Width.of(op.operands[1].type)

    def run(x: Any, n: Any):
        result = _float_power(x, w.signed(n)).astype(x.dtype)
        return (result if is_array(x) or is_array(n) else result[()],)

    return run


def _int_power(x: int, n: int, bits: int) -> int:
    if n < 0:
        return 1 if x == 1 else (-1 if n & 1 else 1) if x == -1 else 0
    return pow(x, n, 1 << bits)


@implements("math.ipowi", elementwise=True)
def _ipowi(machine: Machine, op: Operation) -> Prepared:
    """An integer to the power of an integer, with wrapping."""
    w = Width.of(op.results[0].type)
    power = np.frompyfunc(lambda x, n: w.python(_int_power(int(x), int(n), w.bits)), 2, 1)
    dtype = dtype_of(op.results[0].type)

    def run(x: Any, n: Any):
        result = np.asarray(power(w.signed(x), w.signed(n))).astype(dtype)
        return (result if is_array(x) or is_array(n) else result[()],)

    return run


@implements("math.sincos", elementwise=True)
def _sincos(machine: Machine, op: Operation) -> Prepared:
    """Sine and cosine."""
    sine, cosine = _rounded(np.sin), _rounded(np.cos)
    return lambda a: (sine(a), cosine(a))
