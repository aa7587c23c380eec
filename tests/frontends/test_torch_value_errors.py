"""Values that PyTorch refuses end a program with an error, as in eager; good ones are exact."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="needs PyTorch: pip install 'irees[torch]'")

from torch.export import Dim  # noqa: E402
from torch.nn import functional as F  # noqa: E402

import irees  # noqa: E402
from irees.errors import RuntimeTrap, UnsupportedError  # noqa: E402

ROW, NAN = torch.tensor([0.25, 0.5, 0.75, 1.0]), float("nan")
SQUARE = torch.tensor([[4.0, 1.0, 0.0], [1.0, 3.0, 1.0], [0.0, 1.0, 2.0]])
DIVISIONS: dict[str, Callable[[Any, Any], Any]] = {
    "floor_divide": lambda x, y: x // y,
    "remainder": lambda x, y: x % y,
    "fmod": torch.fmod,
    "trunc": lambda x, y: torch.div(x, y, rounding_mode="trunc"),
    "of a number": lambda x, y: 7 // y + 7 % y,
    "in a reduction": lambda x, y: (x // y).sum(),
    "in place": lambda x, y: x.clone().floor_divide_(y),
}


def ints(*values: int) -> Any:
    return torch.tensor(values)


def refuses(function: Any, good: Any, bad: Any, message: str, target: str = "reference") -> None:
    program = irees.compile(function, good, target=target)
    torch.testing.assert_close(program(*good), function(*good))
    with pytest.raises((RuntimeError, ValueError, ZeroDivisionError)):
        function(*bad)
    with pytest.raises(RuntimeTrap, match=message):
        program(*bad)


@pytest.mark.parametrize("target", ["reference", "cpu", "cuda-emulated:sm_80"])
@pytest.mark.parametrize("name", DIVISIONS)
def test_an_integer_is_not_divided_by_zero(name: str, target: str) -> None:
    x, message = torch.arange(-9, 10), "an integer is divided by zero"
    bad = torch.arange(1, 20)
    bad[17] = 0
    refuses(DIVISIONS[name], (x, torch.arange(1, 20)), (x, bad), message, target)


def test_divisors_that_are_not_elements() -> None:
    x, message = ints(5, -6, 7), "an integer is divided by zero"
    refuses(lambda x, y: x % y, (x, torch.tensor(2)), (x, torch.tensor(0)), message)
    refuses(lambda x, y: x // y.item(), (x, torch.tensor(2)), (x, torch.tensor(0)), message)
    for of in (lambda x, y: x * (7 // y.item()), lambda x, y: x * (7 / y.item())):
        refuses(of, (x, torch.tensor(2)), (x, torch.tensor(0)), "a number is divided by zero")
    with pytest.raises(UnsupportedError, match="PyTorch refuses floor_divide"):  # 256 wraps to 0
        irees.compile(lambda x: x // 256, (x.to(torch.int8),))
    # No elements are divided, and floats may be.
    none = torch.empty(0, dtype=torch.int64)
    assert irees.compile(lambda x: x % 0, (none,), target="reference")(none).shape == (0,)
    program = irees.compile(lambda x, y: x // y, (ROW, ROW), target="reference")
    assert torch.equal(program(ROW, ROW * 0), ROW // (ROW * 0))


def test_a_size_that_divides() -> None:
    def windows(x: Any, y: Any) -> Any:
        return torch.arange(6) // y.shape[0]

    shapes = {"x": None, "y": {0: Dim.DYNAMIC}}
    program = irees.compile(windows, (ROW, ROW), dynamic_shapes=shapes, target="reference")
    assert torch.equal(program(ROW, ROW[:2]), torch.arange(6) // 2)
    with pytest.raises(RuntimeTrap, match="an integer is divided by zero"):
        program(ROW, ROW[:0])


PLANE = torch.arange(2.0).reshape(1, 1, 1, 2)


def unpooled(*places: int) -> tuple[Any, Any]:
    return PLANE, ints(*places).reshape(1, 1, 1, 2)


def ctc(x: Any, labels: Any, times: Any, lengths: Any) -> Any:
    return F.ctc_loss(x.log_softmax(-1), labels, times, lengths)


SCORES = torch.linspace(-1, 1, 12).sin().reshape(4, 1, 3)
REFUSED: dict[str, tuple[Any, Any, Any, str]] = {
    "probability": (F.binary_cross_entropy, (ROW, ROW), (ROW + 0.5, ROW), "of the input must"),
    "NaN": (F.binary_cross_entropy, (ROW, ROW), (ROW * NAN, ROW), "of the input must"),
    "target": (F.binary_cross_entropy, (ROW, ROW), (ROW, -ROW), "of the target must"),
    "unpool": (lambda x, i: F.max_unpool2d(x, i, 2), unpooled(0, 2), unpooled(0, 8), "an index"),
    "unpool -1": (lambda x, i: F.max_unpool2d(x, i, 2), unpooled(0, 2), unpooled(-1, 2), "an ind"),
    "bags": (
        lambda x, o: F.embedding_bag(ints(0, 1), x, o), (SQUARE, ints(0, 1)), (SQUARE, ints(0, 5)),
        "a bag begins after the last index",
    ),
    "first bag": (
        lambda x, o: F.embedding_bag(ints(0, 1), x, o), (SQUARE, ints(0, 1)), (SQUARE, ints(1, 2)),
        "the first bag must begin at index 0",
    ),
    "one_hot": (F.one_hot, (ints(1, 2),), (ints(1, -1),), "class values must not be negative"),
    "inverse": (torch.cholesky_inverse, (SQUARE,), (SQUARE * 0,), "singular"),
    "pivots": (
        lambda a, p: torch.lu_unpack(a, p)[0], (SQUARE, ints(1, 2, 3).int()),
        (SQUARE, ints(1, 2, 9).int()), "a pivot must be between",
    ),
    "svd": (torch.linalg.svdvals, (SQUARE,), (SQUARE * NAN,), "a matrix with NaN"),
    "pinv": (torch.linalg.pinv, (SQUARE,), (SQUARE * NAN,), "a matrix with NaN"),
    "eigh": (torch.linalg.eigvalsh, (SQUARE,), (SQUARE * NAN,), "a matrix with NaN"),
    "histogram": (
        lambda x: torch.histogram(x, 4)[0], (ROW,), (ROW * NAN,), "range of a histogram must be"
    ),
    "times": (
        ctc, (SCORES, ints(1, 2)[None], ints(4), ints(2)),
        (SCORES, ints(1, 2)[None], ints(9), ints(2)), "an input is longer",
    ),
    "labels": (
        ctc, (SCORES, ints(1, 2)[None], ints(4), ints(2)),
        (SCORES, ints(1, 2)[None], ints(4), ints(3)), "a target is longer",
    ),
    "sorter": (
        lambda x, s: torch.searchsorted(x, ROW, sorter=s), (ROW, ints(0, 1, 2, 3)),
        (ROW, ints(0, 1, 2, 4)), "an index is out of bounds",
    ),
    "zero point": (
        lambda x, z: torch.fake_quantize_per_channel_affine(x, torch.ones(3), z, 0, 0, 255),
        (SQUARE, ints(1, 2, 3).int()), (SQUARE, ints(1, 2, 300).int()), "a zero point must be",
    ),
    "int": (lambda x: ROW * int(x.item()), (torch.tensor(2.5),), (torch.tensor(NAN),), "as an int"),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_a_value_is_refused(name: str) -> None:
    refuses(*REFUSED[name])


def test_a_label_after_the_end_of_a_target_is_not_read() -> None:
    given = (SCORES, ints(1, -1)[None], ints(4), ints(1))
    program = irees.compile(ctc, given, target="reference")
    torch.testing.assert_close(program(*given), ctc(*given))
    with pytest.raises(RuntimeTrap, match="a label is no class"):  # eager reads other memory
        program(SCORES, ints(1, 5)[None], ints(4), ints(2))


def test_torch_compile_refuses_values() -> None:
    model = torch.compile(F.binary_cross_entropy, backend="irees", options={"fallback": False})
    torch.testing.assert_close(model(ROW, ROW), F.binary_cross_entropy(ROW, ROW))
    with pytest.raises(RuntimeTrap, match="of the input must be between 0 and 1"):
        model(ROW + 1, ROW)


EMPTY: dict[str, Callable[[Any], Any]] = {
    "amax": lambda x: x.amax(0), "max": lambda x: x.max(), "aminmax": lambda x: x.aminmax(),
    "median of a dim": lambda x: x.median(0)[0], "mode": lambda x: x.mode(0)[0],
    "infinity norm": lambda x: torch.linalg.vector_norm(x, float("inf")),
    "mean pool": lambda x: F.adaptive_avg_pool1d(x[None], 2),
    "max pool": lambda x: F.adaptive_max_pool1d(x[None], 2),
    "resized": lambda x: F.interpolate(x[None, None], size=3),
    "mirrored": lambda x: F.pad(x[None], (1, 1), mode="reflect"),
    "repeated": lambda x: F.pad(x[None], (1, 1), mode="replicate"),
    "median": lambda x: x.median(), "nanmedian": lambda x: x.nanmedian(),
    "median of integers": lambda x: x.long().median(), "histogram": lambda x: torch.histc(x, 3),
}  # fmt: skip
"""Functions of a vector; the last four have results for an empty one."""


@pytest.mark.parametrize("target", ["reference", "cpu"])
@pytest.mark.parametrize("name", EMPTY)
def test_a_dynamic_dim_that_is_empty(name: str, target: str) -> None:
    function = EMPTY[name]
    program = irees.compile(function, (ROW,), dynamic_shapes=({0: Dim.DYNAMIC},), target=target)
    torch.testing.assert_close(program(ROW[1:]), function(ROW[1:]))
    if name in list(EMPTY)[-4:]:
        torch.testing.assert_close(program(ROW[:0]), function(ROW[:0]), equal_nan=True)
        return
    with pytest.raises((RuntimeError, IndexError)):
        function(ROW[:0])
    with pytest.raises(RuntimeTrap, match=r"size 0|too small"):
        program(ROW[:0])
