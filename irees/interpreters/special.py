"""erf and erfc for numpy arrays of f64: the rational approximations of FreeBSD's msun (s_erf.c)."""

from __future__ import annotations

from typing import Any

import numpy as np

_ERX = 8.45062911510467529297e-01
_EFX = 1.28379167095512586316e-01
_PP = (1.28379167095512558561e-01, -3.25042107247001499370e-01, -2.84817495755985104766e-02,
       -5.77027029648944159157e-03, -2.37630166566501626084e-05)  # fmt: skip
_QQ = (1.0, 3.97917223959155352819e-01, 6.50222499887672944485e-02, 5.08130628187576562776e-03,
       1.32494738004321644526e-04, -3.96022827877536812320e-06)  # fmt: skip
_PA = (-2.36211856075265944077e-03, 4.14856118683748331666e-01, -3.72207876035701323847e-01,
       3.18346619901161753674e-01, -1.10894694282396677476e-01, 3.54783043256182359371e-02,
       -2.16637559486879084300e-03)  # fmt: skip
_QA = (1.0, 1.06420880400844228286e-01, 5.40397917702171048937e-01, 7.18286544141962662868e-02,
       1.26171219808761642112e-01, 1.36370839120290507362e-02,
       1.19844998467991074170e-02)  # fmt: skip
_RA = (-9.86494403484714822705e-03, -6.93858572707181764372e-01, -1.05586262253232909814e+01,
       -6.23753324503260060396e+01, -1.62396669462573470355e+02, -1.84605092906711035994e+02,
       -8.12874355063065934246e+01, -9.81432934416914548592e+00)  # fmt: skip
_SA = (1.0, 1.96512716674392571292e+01, 1.37657754143519042600e+02, 4.34565877475229228821e+02,
       6.45387271733267880336e+02, 4.29008140027567833386e+02, 1.08635005541779435134e+02,
       6.57024977031928170135e+00, -6.04244152148580987438e-02)  # fmt: skip
_RB = (-9.86494292470009928597e-03, -7.99283237680523006574e-01, -1.77579549177547519889e+01,
       -1.60636384855821916062e+02, -6.37566443368389627722e+02, -1.02509513161107724954e+03,
       -4.83519191608651397019e+02)  # fmt: skip
_SB = (1.0, 3.03380607434824582924e+01, 3.25792512996573918826e+02, 1.53672958608443695994e+03,
       3.19985821950859553908e+03, 2.55305040643316442583e+03, 4.74528541206955367215e+02,
       -2.24409524465858183362e+01)  # fmt: skip


def _polynomial(x: Any, coefficients: tuple[float, ...]) -> Any:
    result = np.full_like(x, coefficients[-1])
    for c in coefficients[-2::-1]:
        result = result * x + c
    return result


def _tail(x: Any) -> Any:
    """erfc(x) for x >= 1.25."""
    x = np.clip(x, 1.25, 28.0)
    s = 1.0 / (x * x)
    near = x < 1.0 / 0.35
    ratio = np.where(
        near,
        _polynomial(s, _RA) / _polynomial(s, _SA),
        _polynomial(s, _RB) / _polynomial(s, _SB),
    )
    z = (x.view(np.int64) & ~np.int64(0xFFFFFFFF)).view(np.float64)
    return np.exp(-z * z - 0.5625) * np.exp((z - x) * (z + x) + ratio) / x


def _middle(x: Any) -> Any:
    """P/Q in erf(x) = erx + P/Q for 0.84375 <= x < 1.25."""
    s = x - 1.0
    return _polynomial(s, _PA) / _polynomial(s, _QA)


def _small(x: Any) -> Any:
    """erf(x) - x for |x| < 0.84375."""
    z = np.minimum(x * x, 1.0)
    return x * (_polynomial(z, _PP) / _polynomial(z, _QQ))


def erf(x: Any) -> Any:
    """The error function."""
    scalar = not isinstance(x, np.ndarray)
    x = np.asarray(x, np.float64)
    a = np.minimum(np.abs(x), 28.0)
    big = np.where(a < 1.25, _ERX + _middle(np.minimum(a, 1.25)), 1.0 - _tail(a))
    result = np.where(a < 0.84375, x + _small(np.where(a < 0.84375, x, 0.0)), np.copysign(big, x))
    result = np.where(x != x, x, result)
    return result[()] if scalar else result


def erfc(x: Any) -> Any:
    """1 - erf(x), without cancellation."""
    scalar = not isinstance(x, np.ndarray)
    x = np.asarray(x, np.float64)
    a = np.minimum(np.abs(x), 28.0)
    positive = np.where(a < 1.25, 1.0 - _ERX - _middle(np.minimum(a, 1.25)), _tail(a))
    large = np.where(x < 0, 2.0 - positive, positive)
    small = 1.0 - (x + _small(np.where(a < 0.84375, x, 0.0)))
    result = np.where(a < 0.84375, small, large)
    result = np.where(x != x, x, result)
    return result[()] if scalar else result
