"""The error function and its complement."""

from __future__ import annotations

from xdsl.ir import SSAValue

from irees.transforms.codegen.common.expand_math.exponentials import exp_of_minus_square
from irees.transforms.utils.formula import Formula

ERF_64 = (
    5.959335599211925e-11, -1.1374180003536294e-09, 1.4660134051808022e-08, -1.6350368219377183e-07,
    1.6461005929290052e-06, -1.4925595619394248e-05, 1.2055331126863447e-04, -8.548326981266151e-04,
    5.223977624825797e-03, -2.6866170645077618e-02, 1.1283791670954883e-01, -3.761263890318375e-01,
    1.283791670955126e-01,
)  # fmt: skip
"""erf(x) / x - 1 on [-1, 1] as a polynomial of x^2, highest power first (minimax, 2e-19)."""

ERFC = (
    -1.319704867066049e-04, 5.0603717573364e-04, 5.513426352937605e-04, -4.3245867551706995e-03,
    9.058104204587101e-04, 3.274878885609208e-02, -1.0296250348015787e-01, 1.5763100918347547e-01,
    -9.902481287984251e-02, -1.2235679196123642e-01, 1.264838186936945,
)  # fmt: skip
ERFC_64 = (
    2.3007724803319666e-08, -1.989386315062528e-08, -1.3990606132236506e-07, 1.4657601543564675e-08,
    5.503645801483856e-07, 5.356797609186574e-07, -1.5957662321471486e-06, -4.2199306779036785e-06,
    2.612845999137787e-06, 2.269979037234332e-05, 6.265098135250375e-06, -1.1352232546305252e-04,
    -8.847909768620962e-05, 6.321243296568619e-04, 4.918657993400534e-04, -4.3820783390067465e-03,
    9.318928181378035e-04, 3.276089326858692e-02, -1.0296705603859803e-01, 1.5762991902322027e-01,
    -9.902453957360145e-02, -1.2235676308240431e-01, 1.2648381843668615,
)  # fmt: skip
"""
exp(x^2) erfc(x) (1 + 2x) for x >= 0.47 as a polynomial of (x - CENTER) / (x + CENTER), for f32 and
f64 (minimax, 3e-9 and 1e-18).
"""

CENTER = 2.5
"""Where the argument of the polynomial is 0; with it, the polynomial needs the fewest powers."""

MOST, MOST_64 = 11.0, 28.0
"""erfc(x) is 0 from here on."""

SMALL = 0.5
"""Below it, erfc(x) is 1 - erf(x)."""


def erf(f: Formula, x: SSAValue) -> SSAValue:
    """erf(x)  =>  x p(x^2) / q(x^2) on [-4, 4]; in f64 x + x p(x^2) on [-1, 1], else 1 - erfc"""
    if f.double:
        return _erf_64(f, x)
    x = f.clamp(x, -4.0, 4.0)
    z = f.mul(x, x)
    p = f.horner(
        z,
        (-2.72614225801306e-10, 2.77068142495902e-08, -2.10102402082508e-06,
         -5.69250639462346e-05, -7.34990630326855e-04, -2.95459980854025e-03,
         -1.60960333262415e-02),
    )  # fmt: skip
    q = f.horner(
        z,
        (-1.45660718464996e-05, -2.13374055278905e-04, -1.68282697438203e-03,
         -7.37332916720468e-03, -1.42647390514189e-02),
    )  # fmt: skip
    return f.div(f.mul(x, p), q)


def _erf_of_small_64(f: Formula, x: SSAValue) -> SSAValue:
    return f.add(x, f.mul(x, f.horner(f.mul(x, x), ERF_64)))


def _erf_64(f: Formula, x: SSAValue) -> SSAValue:
    size = f.absolute(x)
    large = f.with_sign(f.sub(f.number(1.0), _complement(f, size)), x)
    return f.select(f.less(size, 1.0), _erf_of_small_64(f, x), large)


def _complement(f: Formula, size: SSAValue) -> SSAValue:
    """erfc(x)  =>  exp(-x^2) p((x - c) / (x + c)) / (1 + 2x) for x >= SMALL"""
    x = f.clamp(size, 0.0, MOST_64 if f.double else MOST)
    t = f.div(f.sub(x, CENTER), f.add(x, CENTER))
    p = f.two_chains(t, ERFC_64 if f.double else ERFC)
    return exp_of_minus_square(f, x, f.div(p, f.add(f.add(x, x), 1.0)))


def erfc(f: Formula, x: SSAValue) -> SSAValue:
    """erfc(x)  =>  1 - erf(x) if small, else c(|x|), or 2 - c(|x|) if negative"""
    size, two = f.absolute(x), f.number(2.0)
    near = f.sub(f.number(1.0), _erf_of_small_64(f, x) if f.double else erf(f, x))
    far = _complement(f, size)
    far = f.select(f.less(x, 0.0), f.sub(two, far), far)
    return f.select(f.less(size, SMALL), near, far)
