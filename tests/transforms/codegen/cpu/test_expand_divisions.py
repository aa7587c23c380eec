"""`irees-expand-divisions` gives the integers of Python, with those of scalars for special cases."""

from __future__ import annotations

import numpy as np
import pytest

import irees
from irees.remarks import collect
from irees.target import Target

OPS = ("divsi", "remsi", "floordivsi", "ceildivsi")
NEAR = (0, 1, 2, 3, 1 << 10, 1 << 26, 1 << 50)

wide_casts = pytest.mark.skipif(
    not Target.parse("cpu").casts_wide_integers,
    reason="this machine has no AVX-512 DQ: vectors of integers are divided as scalars; run the "
    "file on one that has it",
)


def numbers(bits: int, signed: bool = True) -> list[int]:
    """Integers near powers of two and near the ends, and random ones of all sizes."""
    low, high = (-(1 << bits - 1), (1 << bits - 1) - 1) if signed else (0, (1 << bits) - 1)
    found = {low, high, low + 1, high - 1, 1000, 7, 0x7FFFFFFFFFFFFBFF, 0x4000000000000001}
    found |= {(1 << p) + s * d for p in range(bits) for s in (1, -1) for d in NEAR}
    chosen = np.random.default_rng(bits)
    found |= {
        int(v) >> int(chosen.integers(0, 63)) for v in chosen.integers(-(1 << 63), 1 << 62, 90)
    }
    found |= {-v for v in found}
    return sorted(v for v in found if low <= v <= high)


def divided(op: str, a: int, b: int, bits: int) -> int:
    """The result of an op on integers of that many bits."""
    if b == 0:
        return a if op.startswith("rem") else -1
    quotient = abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)
    found = {
        "divsi": quotient, "divui": quotient, "floordivsi": a // b, "ceildivsi": -(-a // b),
    }.get(op, a - quotient * b)  # fmt: skip
    return (found + (1 << bits - 1)) % (1 << bits) - (1 << bits - 1)


def program(op: str, bits: int, count: int, divisor: int | None = None) -> str:
    """`op` of all elements by those of a second tensor, or by a constant."""
    by = "%b" if divisor is None else "%d"
    return f"""#id = affine_map<(i) -> (i)>
func.func @main(%x: tensor<{count}xi{bits}>, %y: tensor<{count}xi{bits}>) -> tensor<{count}xi{bits}> {{
  %d = arith.constant {divisor or 0} : i{bits}
  %e = tensor.empty() : tensor<{count}xi{bits}>
  %r = linalg.generic {{indexing_maps = [#id, #id, #id], iterator_types = ["parallel"]}}
      ins(%x, %y : tensor<{count}xi{bits}>, tensor<{count}xi{bits}>) outs(%e : tensor<{count}xi{bits}>) {{
  ^bb0(%a: i{bits}, %b: i{bits}, %o: i{bits}):
    %s = arith.{op} %a, {by} : i{bits}
    linalg.yield %s : i{bits}
  }} -> tensor<{count}xi{bits}>
  return %r : tensor<{count}xi{bits}>
}}"""


def run(text: str, *arrays: np.ndarray) -> np.ndarray:
    with collect() as remarks:
        compiled = irees.compile(text)
    assert not [r.text for r in remarks if "no vector form" in r.text]
    return compiled(*arrays)


@wide_casts
@pytest.mark.parametrize(
    ("op", "bits"),
    [
        *((op, bits) for op in OPS for bits in (8, 16, 32, 64)),
        # Unsigned integers of 64 bits are scalars.
        *((op, bits) for op in ("divui", "remui") for bits in (8, 16, 32)),
    ],
)
def test_every_pair_of_edges_is_divided_exactly(op, bits):
    signed = not op.endswith("ui")
    edges = numbers(bits, signed)
    pairs = [(a, b) for a in edges for b in edges]
    x, y = (np.array(v, np.int64 if signed else np.uint64) for v in zip(*pairs, strict=True))
    dtype = np.dtype(f"i{bits // 8}")
    x, y = (v.astype(np.uint64).astype(f"u{bits // 8}").view(dtype) for v in (x, y))
    wanted = np.array([divided(op, a, b, bits) for a, b in pairs]).astype(dtype)
    np.testing.assert_array_equal(run(program(op, bits, x.size), x, y), wanted)


@wide_casts
@pytest.mark.parametrize("op", OPS)
@pytest.mark.parametrize("divisor", [1, -1, 3, -7, 1000, 1 << 20, -(1 << 20), (1 << 48) - 5, 1 << 48 | 1, (1 << 48) - 1, (1 << 61) + 1,
                                     (1 << 62) + 3, 1 << 62, (1 << 63) - 1, -(1 << 63),
                                     -(1 << 63) + 1])  # fmt: skip
def test_constant_divisors_of_64_bits(op, divisor):
    x = np.array(numbers(64), np.int64)
    wanted = np.array([divided(op, int(a), divisor, 64) for a in x])
    np.testing.assert_array_equal(run(program(op, 64, x.size, divisor), x, x), wanted)
