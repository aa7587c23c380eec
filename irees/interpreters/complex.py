"""complex: pairs of floats. Non-arithmetic functions are computed in f64 and rounded."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from xdsl.ir import Operation

from irees.interpreters.machine import Machine
from irees.interpreters.registry import Prepared, implements, pure
from irees.interpreters.values import constant, dtype_of, is_array


def _create(re: Any, im: Any) -> Any:
    dtype = np.complex64 if re.dtype.itemsize == 4 else np.complex128
    result = np.empty(np.broadcast_shapes(np.shape(re), np.shape(im)), dtype)
    result.real, result.imag = re, im
    return result if is_array(re) or is_array(im) else result[()]


def _part(value: Any, name: str) -> Any:
    return getattr(value, name)


def _product(a: Any, b: Any) -> Any:
    """The product from rounded products of parts: numpy contracts them in some loops."""
    with np.errstate(all="ignore"):
        return _create(a.real * b.real - a.imag * b.imag, a.real * b.imag + a.imag * b.real)


def _rounded(f: Callable[..., Any]) -> Callable[..., Any]:
    def run(*args: Any) -> Any:
        result = f(*(a.astype(np.complex128) for a in args))
        small = args[0].dtype.itemsize == 8
        if result.dtype.kind == "c":
            return result.astype(np.complex64 if small else np.complex128)
        return result.astype(np.float32 if small else np.float64)

    return run


pure("complex.create", _create)
pure("complex.re", lambda a: _part(a, "real"))
pure("complex.im", lambda a: _part(a, "imag"))
pure("complex.add", lambda a, b: a + b)
pure("complex.sub", lambda a, b: a - b)
pure("complex.mul", _product)
pure("complex.div", _rounded(lambda a, b: a / b))
pure("complex.neg", lambda a: -a)
pure("complex.conj", np.conj)
pure("complex.eq", lambda a, b: a == b)
pure("complex.neq", lambda a, b: a != b)
for _name, _function in {
    "abs": np.abs, "angle": np.angle, "cos": np.cos, "exp": np.exp, "expm1": np.expm1,
    "log": np.log, "log1p": np.log1p, "pow": lambda a, b: np.exp(_product(b, np.log(a))),
    "rsqrt": lambda z: 1.0 / np.sqrt(z),
    "sin": np.sin, "sqrt": np.sqrt, "tan": np.tan, "tanh": np.tanh,
    "sign": lambda z: np.where(z == 0, z, z / np.abs(z)),
    "atan2": lambda a, b: -1j * np.log((b + 1j * a) / np.sqrt(b * b + a * a)),
}.items():  # fmt: skip
    pure(f"complex.{_name}", _rounded(_function))


@implements("complex.bitcast")
def _bitcast(machine: Machine, op: Operation) -> Prepared:
    """The bits of a value as another type; the real part of a number comes first."""
    kind = dtype_of(op.results[0].type)
    return lambda value: (np.asarray(value).view(kind)[()],)


@implements("complex.constant")
def _constant(machine: Machine, op: Operation) -> Prepared:
    """A constant."""
    re, im = (constant(part) for part in op.properties["value"])  # pyright: ignore
    result = (dtype_of(op.results[0].type).type(complex(re, im)),)
    return lambda: result
