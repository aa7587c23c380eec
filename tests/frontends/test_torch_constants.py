"""Arguments that are neither tensors nor numbers are constants: a call with another is refused."""

from __future__ import annotations

import dataclasses
import enum
import pathlib
import pickle
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="needs PyTorch: pip install 'irees[torch]'")

from torch.nn import functional  # noqa: E402

import irees  # noqa: E402
from irees.errors import ArgumentError, UnsupportedError  # noqa: E402


class Color(enum.Enum):
    RED = 1
    BLUE = 2


class Level(enum.IntEnum):
    LOW = 1
    HIGH = 2


class Parts(enum.Flag):
    HEAD = 1
    TAIL = 2


class Name(str):
    pass


class Count(int):
    pass


@dataclasses.dataclass
class Settings:
    x: Any
    color: Color
    dtype: torch.dtype = torch.float32


X = torch.linspace(-1, 1, 8)

# A value, and one that differs from it.
CONSTANTS = [
    (Color.RED, Color.BLUE), (Level.LOW, Level.HIGH), (Level.LOW, 1), (1, True), (1, 1.0),
    (0.0, -0.0), (float("nan"), 1.0), (2 + 1j, 2 - 1j), (np.float32(2), 2.0),
    (np.dtype("f4"), np.dtype("f8")), (torch.float16, torch.float32),
    (torch.device("cpu"), torch.device("cuda", 0)),
    (torch.channels_last, torch.contiguous_format), (slice(1, None), slice(2, None)),
    (torch.tanh, torch.cos),
    (range(3), range(4)), ({"a", "b"}, {"a", "c"}), (frozenset("ab"), {"a", "b"}),
    (pathlib.Path("a"), "a"), (b"ab", b"ac"), (functional.relu, functional.gelu),
    (torch.nn.ReLU, torch.nn.GELU), (Parts.HEAD | Parts.TAIL, Parts.HEAD), (Name("a"), Name("b")),
    (Count(3), Count(4)), (np.str_("a"), np.str_("b")),
]  # fmt: skip


@pytest.mark.parametrize(("value", "other"), CONSTANTS)
def test_a_constant_is_compared_at_each_call(value, other):
    program = irees.compile(lambda x, c: x + 1, (X, value), target="reference")
    for each in (program, pickle.loads(pickle.dumps(program))):
        torch.testing.assert_close(each(X, value), X + 1)
        with pytest.raises(ArgumentError, match="the program was compiled for"):
            each(X, other)


def test_the_program_computes_with_the_constant():
    def settle(settings, *, where, names):
        factor = 2 if settings.color is Color.RED else 3
        return (settings.x * factor)[where].to(settings.dtype) + len(names)

    given = Settings(X, Color.BLUE, torch.float64), slice(1, -2), frozenset("abc")
    named = {"where": given[1], "names": given[2]}
    program = irees.compile(settle, (given[0],), kwargs=named, target="reference")
    torch.testing.assert_close(program(given[0], **named), settle(given[0], **named))
    with pytest.raises(ArgumentError, match=r"settings\.color is <Color\.RED: 1>"):
        program(Settings(X, Color.RED, torch.float64), **named)


def test_a_module_keeps_its_forward():
    class Cast(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.linear = torch.nn.Linear(8, 2)

        def forward(self, x, dtype=torch.float32):
            return self.linear(x).to(dtype)

    model = Cast().eval()
    program = irees.compile(model, (X, torch.bfloat16), target="reference")
    assert program(X, torch.bfloat16).dtype == torch.bfloat16
    assert "forward" not in vars(model)


def test_defaults_that_are_constants_may_be_given_or_left_out():
    def view(x, dtype=torch.float64, size=(2, 4), mode=Parts.HEAD | Parts.TAIL, mask=None):
        return x.to(dtype).view(size)

    program = irees.compile(view, (X,), target="reference")
    named = {"dtype": torch.float64, "size": (2, 4), "mode": Parts.HEAD | Parts.TAIL, "mask": None}
    torch.testing.assert_close(program(X, **named), view(X))
    with pytest.raises(ArgumentError, match="argument 'mode'"):
        program(X, mode=Parts.HEAD)
    constants = {"mode": Parts.HEAD | Parts.TAIL, "mask": None}
    program = irees.compile(view, (X, torch.float64), kwargs=constants, target="reference")
    torch.testing.assert_close(program(X), view(X))


def test_arrays_are_example_inputs():
    array = np.linspace(-1, 1, 8, dtype=np.float32)[::-1]
    found = irees.compile(lambda x: x * 2, (array,), target="reference")(array)
    assert isinstance(found, np.ndarray)
    np.testing.assert_array_equal(found, array * 2)


@pytest.mark.parametrize("value", [lambda x: x, object()], ids=["lambda", "object"])
def test_other_objects_are_refused(value):
    with pytest.raises(UnsupportedError, match="capture the object in the program"):
        irees.compile(lambda x, f: x, (X, value), target="reference")
