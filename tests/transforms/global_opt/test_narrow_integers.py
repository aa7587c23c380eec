"""Integers of odd widths, in every target and when constants are folded, against Python's."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from functools import cache

import numpy as np
import pytest

import irees

TARGETS = ["reference", "cpu", "cuda-emulated", "folded"]
WIDTHS = [2, 3, 4, 5, 7, 9, 12, 24, 31, 33, 48, 63]
EXHAUSTIVE = 5
"""Widest integers of which all pairs are tried."""

random = np.random.default_rng(3)


class Model:
    """Arithmetic modulo 2^width, total as irees defines it."""

    def __init__(self, width: int):
        self.width, self.mask = width, (1 << width) - 1

    def signed(self, x: int) -> int:
        """The number that the bits of x are."""
        x &= self.mask
        return x - (1 << self.width) if x >> (self.width - 1) else x

    def unsigned(self, x: int) -> int:
        """The number that the bits of x are, without a sign."""
        return x & self.mask

    def clamp(self, x: float, low: int, high: int) -> int:
        """Towards zero, into a range."""
        return min(max(int(x), low), high)


Function = Callable[[Model, int, int], int]
"""Of two signed numbers; what it returns is wrapped."""


def truncated(a: int, b: int) -> int:
    """a / b towards zero."""
    return abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)


def of_unsigned(f: Callable[[int, int], int]) -> Function:
    """A function of numbers without a sign."""
    return lambda m, a, b: f(m.unsigned(a), m.unsigned(b))


def shifted(f: Callable[[Model, int, int], int], beyond: Callable[[int], int]) -> Function:
    """A shift, and what is left when the amount is the width or more."""
    return lambda m, a, b: f(m, a, m.unsigned(b)) if m.unsigned(b) < m.width else beyond(a)


BINARY: dict[str, Function] = {
    "addi": lambda m, a, b: a + b,
    "subi": lambda m, a, b: a - b,
    "muli": lambda m, a, b: a * b,
    "andi": lambda m, a, b: a & b,
    "ori": lambda m, a, b: a | b,
    "xori": lambda m, a, b: a ^ b,
    "divsi": lambda m, a, b: truncated(a, b) if b else -1,
    "remsi": lambda m, a, b: a - b * truncated(a, b) if b else a,
    "floordivsi": lambda m, a, b: a // b if b else -1,
    "ceildivsi": lambda m, a, b: -(-a // b) if b else -1,
    "divui": of_unsigned(lambda a, b: a // b if b else -1),
    "remui": of_unsigned(lambda a, b: a % b if b else a),
    "ceildivui": of_unsigned(lambda a, b: -(-a // b) if b else -1),
    "maxsi": lambda m, a, b: max(a, b),
    "minsi": lambda m, a, b: min(a, b),
    "maxui": of_unsigned(max),
    "minui": of_unsigned(min),
    "shli": shifted(lambda m, a, b: a << b, lambda a: 0),
    "shrsi": shifted(lambda m, a, b: a >> b, lambda a: -1 if a < 0 else 0),
    "shrui": shifted(lambda m, a, b: m.unsigned(a) >> b, lambda a: 0),
}

COMPARISONS: dict[str, Function] = {
    "eq": lambda m, a, b: a == b,
    "ne": lambda m, a, b: a != b,
    "slt": lambda m, a, b: a < b,
    "sle": lambda m, a, b: a <= b,
    "sgt": lambda m, a, b: a > b,
    "sge": lambda m, a, b: a >= b,
    "ult": of_unsigned(lambda a, b: a < b),
    "ule": of_unsigned(lambda a, b: a <= b),
    "ugt": of_unsigned(lambda a, b: a > b),
    "uge": of_unsigned(lambda a, b: a >= b),
}

UNARY: dict[str, Callable[[Model, int], int]] = {
    "math.absi": lambda m, a: abs(a),
    "math.ctpop": lambda m, a: m.unsigned(a).bit_count(),
    "math.ctlz": lambda m, a: m.width - m.unsigned(a).bit_length(),
    "math.cttz": lambda m, a: (a & -a).bit_length() - 1 if a else m.width,
}


def narrower(width: int) -> int:
    """A width to truncate to."""
    return width // 2


CASTS: dict[str, tuple[Callable[[int], str], Callable[[Model, int], int]]] = {
    "extui": (lambda w: "arith.extui %a : iW to i64", lambda m, a: m.unsigned(a)),
    "index_castui": (
        lambda w: "arith.index_castui %a : iW to index", lambda m, a: m.unsigned(a),
    ),
    "index_cast": (lambda w: "arith.index_cast %a : iW to index", lambda m, a: a),
    "uitofp": (lambda w: "arith.uitofp %a : iW to f64", lambda m, a: min(int(float(m.unsigned(a))), (1 << 63) - 1)),
    "sitofp": (lambda w: "arith.sitofp %a : iW to f64", lambda m, a: a),
}  # fmt: skip
"""Casts whose results are compared as they are."""


def lines(width: int) -> tuple[list[str], list[str]]:
    """The ops on %a and %b, and the i64 value of each."""
    body: list[str] = []
    for name in BINARY:
        body.append(f"%{name} = arith.{name} %a, %b : iW")
    for name in UNARY:
        body.append(f"%{name.removeprefix('math.')} = {name} %a : iW")
    values = [*BINARY, *(n.removeprefix("math.") for n in UNARY)]
    less = narrower(width)
    body += [
        f"%less = arith.trunci %a : iW to i{less}",
        f"%more = arith.extui %less : i{less} to iW",
        "%f = arith.sitofp %y : i64 to f64",
        "%low = arith.fptosi %f : f64 to iW",
        "%high = arith.fptoui %f : f64 to iW",
        "%at = arith.index_cast %y : i64 to index",
        "%from = arith.index_cast %at : index to iW",
    ]
    values += ["more", "low", "high", "from"]
    results: list[str] = []
    for value in values:
        body.append(f"%{value}_ = arith.extsi %{value} : iW to i64")
        results.append(f"{value}_")
    for name in COMPARISONS:
        body.append(f"%{name} = arith.cmpi {name}, %a, %b : iW")
        body.append(f"%{name}_ = arith.extui %{name} : i1 to i64")
        results.append(f"{name}_")
    for name, (text, _) in CASTS.items():
        body.append(f"%{name}_c = {text(width)}")
        if "to" in name:
            body.append(f"%{name}_ = arith.fptosi %{name}_c : f64 to i64")
        elif "index" in name:
            body.append(f"%{name}_ = arith.index_cast %{name}_c : index to i64")
        results.append(f"{name}_" if name != "extui" else "extui_c")
    return [line.replace("iW", f"i{width}") for line in body], results


def expected(width: int, x: int, y: int) -> list[int]:
    """What the program gives for two i64."""
    m, small = Model(width), Model(narrower(width))
    a, b = m.signed(x), m.signed(y)
    numbers = [f(m, a, b) for f in BINARY.values()] + [f(m, a) for f in UNARY.values()]
    low, high = -(1 << (width - 1)), (1 << (width - 1)) - 1
    numbers += [small.unsigned(a), m.clamp(y, low, high), m.clamp(y, 0, m.mask), y]
    found = [m.signed(n) for n in numbers]
    found += [int(f(m, a, b)) for f in COMPARISONS.values()]
    return found + [f(m, a) for _, f in CASTS.values()]


@cache
def program(width: int, constants: tuple[tuple[int, ...], ...] | None = None) -> str:
    """Every op on every pair; of constants where these are given."""
    body, results = lines(width)
    count = "?" if constants is None else len(constants[0])
    kind = f"tensor<{count}xi64>"
    kinds = ", ".join([kind] * len(results))
    maps = ", ".join(["affine_map<(i) -> (i)>"] * (2 + len(results)))
    outs = ", ".join(f"%o{i}: i64" for i in range(len(results)))
    yields = ", ".join(f"%{r}" for r in results)
    if constants is None:
        head = f"""func.func @main(%xs: {kind}, %ys: {kind}) -> ({kinds}) {{
  %c0 = arith.constant 0 : index
  %n = tensor.dim %xs, %c0 : {kind}
  %e = tensor.empty(%n) : {kind}"""
    else:
        x, y = (f"arith.constant dense<{list(values)}> : {kind}" for values in constants)
        head = f"""func.func @main() -> ({kinds}) {{
  %xs = {x}
  %ys = {y}
  %e = tensor.empty() : {kind}"""
    return f"""{head}
  %r:{len(results)} = linalg.generic {{indexing_maps = [{maps}], iterator_types = ["parallel"]}}
      ins(%xs, %ys : {kind}, {kind}) outs({", ".join(["%e"] * len(results))} : {kinds}) {{
  ^bb0(%x: i64, %y: i64, {outs}):
    %a = arith.trunci %x : i64 to i{width}
    %b = arith.trunci %y : i64 to i{width}
    {chr(10).join(body)}
    linalg.yield {yields} : {", ".join(["i64"] * len(results))}
  }} -> ({kinds})
  return {", ".join(f"%r#{i}" for i in range(len(results)))} : {kinds}
}}"""


def pairs(width: int) -> list[tuple[int, int]]:
    """All pairs of narrow integers, with numbers beyond the width; the ends of wider ones."""
    if width <= EXHAUSTIVE:
        numbers = range(-(1 << width), 1 << width)
        return list(itertools.product(numbers, numbers))
    ends = [0, 1, 2, -1, width - 1, width, 3, 7]
    ends += [s * ((1 << (width - 1)) + d) for s in (1, -1) for d in (-2, -1, 0, 1)]
    ends += [int(n) for n in random.integers(-(1 << 40), 1 << 40, 6)]
    # Those that f64 holds.
    ends = [n for n in ends if abs(n) < 1 << 52] + [1 << 50, -(1 << 50)]
    return list(itertools.product(ends, ends))


def names() -> Sequence[str]:
    """What each result is of."""
    casts = ["trunci", "fptosi", "fptoui", "index_cast to"]
    return [*BINARY, *UNARY, *casts, *COMPARISONS, *CASTS]


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("width", WIDTHS)
def test_every_op_is_that_of_the_width(width, target):
    x, y = (tuple(side) for side in zip(*pairs(width), strict=True))
    if target == "folded":
        x, y = x[::7], y[::7]
        found = irees.compile(program(width, (x, y)))()
    else:
        given = (np.array(side, np.int64) for side in (x, y))
        found = irees.compile(program(width), target=target, opt_level=0)(*given)
    wanted = np.array([expected(width, a, b) for a, b in zip(x, y, strict=True)], np.int64).T
    for name, got, want in zip(names(), found, wanted, strict=True):
        wrong = np.nonzero(got != want)[0]
        assert not len(wrong), (
            f"{name} of i{width}: {[(x[i], y[i], got[i], want[i]) for i in wrong[:3]]}"
        )
