"""Special functions: gamma, error, Bessel and Airy functions, orthogonal polynomials, bits."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import torch

from ...builder import Scalar, Tensor, bessel, polynomials, special
from ...builder.dtypes import F64, I32, I64
from ..calls import Call, NotLowered, lowers

aten, prims = torch.ops.aten, torch.ops.prims

_UNARY: dict[Callable[[Scalar], Scalar], tuple[Any, ...]] = {
    special.lgamma: (aten.lgamma, aten.special_gammaln, prims.lgamma),
    special.digamma: (aten.digamma, aten.special_psi, prims.digamma),
    special.erfinv: (aten.erfinv, aten.special_erfinv, prims.erf_inv),
    special.erfcx: (aten.special_erfcx, prims.erfcx),
    special.ndtri: (aten.special_ndtri, prims.ndtri),
    special.log_ndtr: (aten.special_log_ndtr,),
    bessel.i0: (aten.i0, aten.special_i0, aten.special_modified_bessel_i0, prims.bessel_i0),
    bessel.i0e: (aten.special_i0e, prims.bessel_i0e),
    bessel.i1: (aten.special_i1, aten.special_modified_bessel_i1, prims.bessel_i1),
    bessel.i1e: (aten.special_i1e, prims.bessel_i1e),
    bessel.j0: (aten.special_bessel_j0, prims.bessel_j0),
    bessel.j1: (aten.special_bessel_j1, prims.bessel_j1),
    bessel.y0: (aten.special_bessel_y0,),
    bessel.y1: (aten.special_bessel_y1,),
    bessel.spherical_j0: (aten.special_spherical_bessel_j0, prims.spherical_bessel_j0),
    bessel.k0: (aten.special_modified_bessel_k0,),
    bessel.k1: (aten.special_modified_bessel_k1,),
    bessel.airy_ai: (aten.special_airy_ai,),
}


def _unary(fn: Callable[[Scalar], Scalar]) -> Callable[..., Tensor]:
    def lower(call: Call, x: Tensor) -> Tensor:
        return call.elementwise(fn, x, wide=F64)

    return lower


for _fn, _packets in _UNARY.items():
    lowers(*(packet.default for packet in _packets))(_unary(_fn))
for _fn, _packet in (
    (bessel.k0, aten.special_scaled_modified_bessel_k0),
    (bessel.k1, aten.special_scaled_modified_bessel_k1),
):
    lowers(_packet.default)(_unary(lambda v, fn=_fn: fn(v, scaled=True)))


@lowers(aten.polygamma.default, aten.special_polygamma.default)
def polygamma(call: Call, n: int, x: Tensor) -> Tensor:
    """The n-th derivative of digamma"""
    return call.elementwise(lambda v: special.polygamma(n, v), x, wide=F64)


@lowers(
    aten.special_zeta.default, aten.special_zeta.other_scalar, aten.special_zeta.self_scalar,
    prims.zeta.default,
)  # fmt: skip
def zeta(call: Call, s: Any, q: Any) -> Tensor:
    """sum over k >= 0 of (q + k)^-s"""
    return call.elementwise(special.zeta, s, q, wide=F64)


@lowers(aten.igamma.default, aten.special_gammainc.default, prims.igamma.default)
def igamma(call: Call, a: Tensor, x: Tensor) -> Tensor:
    """The regularized lower incomplete gamma function"""
    return call.elementwise(special.igamma, a, x, wide=F64)


@lowers(aten.igammac.default, aten.special_gammaincc.default, prims.igammac.default)
def igammac(call: Call, a: Tensor, x: Tensor) -> Tensor:
    """The regularized upper incomplete gamma function"""
    return call.elementwise(lambda u, v: special.igamma(u, v, complement=True), a, x, wide=F64)


@lowers(aten.mvlgamma.default, aten.special_multigammaln.default)
def mvlgamma(call: Call, x: Tensor, p: int) -> Tensor:
    """sum over j < p of lgamma(x - j / 2), plus a constant"""
    constant = p * (p - 1) / 4 * math.log(math.pi)

    def body(v: Scalar) -> Scalar:
        total = special.lgamma(v) + constant
        for j in range(1, p):
            total = total + special.lgamma(v - j / 2)
        return total

    return call.elementwise(body, x, wide=F64)


# --- bits of floats ---


@lowers(aten.nextafter.default, prims.nextafter.default)
def nextafter(call: Call, x: Tensor, y: Tensor) -> Tensor:
    """The next representable number after x in the direction of y"""
    return call.elementwise(special.nextafter, x, y, wide=call.dtype())


@lowers(aten.frexp.Tensor, prims.frexp.default)
def frexp(call: Call, x: Tensor) -> tuple[Tensor, Tensor]:
    """m and e with x = m 2^e and 1/2 <= |m| < 1"""
    if not x.dtype.is_float:
        raise NotLowered
    wide = x.dtype.computed
    parts = [
        call.b.map(lambda v, i=i: special.frexp(v.to(wide))[i], x, dtype=dtype)
        for i, dtype in enumerate((x.dtype, I32))
    ]
    return parts[0], parts[1]


# --- orthogonal polynomials ---

_POLYNOMIALS: dict[str, Callable[[Scalar, Scalar], Scalar]] = {
    "chebyshev_polynomial_t": polynomials.chebyshev_t,
    "chebyshev_polynomial_u": polynomials.chebyshev_u,
    "chebyshev_polynomial_v": polynomials.chebyshev_v,
    "chebyshev_polynomial_w": polynomials.chebyshev_w,
    "shifted_chebyshev_polynomial_t": polynomials.shifted(polynomials.chebyshev_t),
    "shifted_chebyshev_polynomial_u": polynomials.shifted(polynomials.chebyshev_u),
    "shifted_chebyshev_polynomial_v": polynomials.shifted(polynomials.chebyshev_v),
    "shifted_chebyshev_polynomial_w": polynomials.shifted(polynomials.chebyshev_w),
    "hermite_polynomial_h": polynomials.hermite_h,
    "hermite_polynomial_he": polynomials.hermite_he,
    "laguerre_polynomial_l": polynomials.laguerre_l,
    "legendre_polynomial_p": polynomials.legendre_p,
}


def _of_degree(fn: Callable[[Scalar, Scalar], Scalar]) -> Callable[..., Tensor]:
    def lower(call: Call, x: Any, n: Any) -> Tensor:
        return call.elementwise(lambda v, d: fn(v, d.to(I64)), x, n, wide=F64)

    return lower


for _name, _fn in _POLYNOMIALS.items():
    _packet = getattr(aten, f"special_{_name}")
    lowers(_packet.default, _packet.x_scalar, _packet.n_scalar)(_of_degree(_fn))
