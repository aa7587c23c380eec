"""TorchScript's operators on numbers that a program reads from its tensors, against eager."""

from __future__ import annotations

import math

import pytest

torch = pytest.importorskip("torch")

import irees  # noqa: E402

aten = torch.ops.aten

INTS = {
    "div": lambda a, b: float(aten.div(int(a), int(b))),
    "ge": lambda a, b: aten.ge(int(a), int(b)),
    "lt": lambda a, b: aten.lt(int(a), int(b)),
    "mul": lambda a, b: aten.mul(int(a), int(b)),
    "sqrt": lambda a, b: float(aten.sqrt(int(b))),
    "implicit": lambda a, b: float(aten.IntImplicit(a)),
    "float": lambda a, b: aten.Float(aten.ScalarImplicit(a)),
    "of_bool": lambda a, b: int(aten.Int(a > b)),
}
FLOATS = {
    "ceil": lambda a, b: int(aten.ceil(float(float(a) - float(b)))),
    "floor": lambda a, b: int(aten.floor(float(a) * 3.0)),
    "implicit": lambda a, b: float(aten.FloatImplicit(a)),
}


def check(program, kind, pairs):
    """Compares with eager, for other numbers than those that the program was exported with."""
    for target in ("reference", "cpu"):
        compiled = None
        for pair in pairs:
            args = tuple(torch.tensor(v, dtype=kind) for v in pair)
            compiled = compiled or irees.compile(program, args, target=target)
            got, want = compiled(*args), program(*args)
            assert math.isclose(float(got), float(want), rel_tol=1e-15), (target, pair)


@pytest.mark.parametrize("name", INTS)
def test_integers(name):
    """Numbers of i64 tensors."""
    check(INTS[name], torch.int64, [(3, 7), (-5, 2), (4, 4), (0, 1), (-7, 49)])


@pytest.mark.parametrize("name", FLOATS)
def test_floats(name):
    """Numbers of f64 tensors."""
    check(FLOATS[name], torch.float64, [(0.3, 0.6), (2.0, 1.0), (-1.5, -1.5), (7.25, -0.5)])


def test_operators_on_tensors_stay():
    """A program that reads a number may compute with tensors by the same operators."""

    def program(x, n):
        return aten.mul(x, 2.0), aten.ge(int(n), 3), aten.sqrt(x)

    x = torch.rand(4)
    for n in (2, 5):
        got = irees.compile(program, (x, torch.tensor(3)), target="reference")(x, torch.tensor(n))
        want = program(x, torch.tensor(n))
        assert bool(got[1]) == want[1]
        for mine, theirs in ((got[0], want[0]), (got[2], want[2])):
            torch.testing.assert_close(torch.as_tensor(mine), theirs)
