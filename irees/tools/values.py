"""
Values on a command line, in IREE's syntax: `4x8xf32=@x.npy`, `2x2xi32=1 2 3 4`, `f32=3.5`.

Parses inputs and expected outputs, formats results, and compares them.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from pathlib import Path
from typing import Any

import numpy as np

from irees.errors import ArgumentError, UnsupportedError
from irees.runtime.dtypes import DTYPES, numpy_dtype

MAX_BYTES = 1 << 34
_TYPE = re.compile(r"((?:\d+x)*)([A-Za-z]\w*(?:<\w+>)?)\Z")
_SEPARATORS = re.compile(r"[\s,\[\]]+")

THRESHOLDS = {"float32": 1e-4, "float16": 1e-3, "bfloat16": 1e-2, "float64": 1e-4}


def parse_values(text: str) -> list[Any]:
    """
    Parses the values of one `--input=`: a number, an array, or all arrays of a file.

    Raises ArgumentError for invalid text or files.
    """
    if text.startswith("@"):
        return _read_npy(Path(text[1:]))
    type_text, equals, value = text.partition("=")
    found = _TYPE.match(type_text.strip())
    if found is None or text in ("true", "false", "nan", "inf"):
        if equals or not text.strip():
            raise ArgumentError(f"{text!r} is not a value", hint="write 4x8xf32=1,2,... or @x.npy")
        return [_number(text.strip())]
    shape = tuple(int(size) for size in found[1].split("x")[:-1])
    dtype = _dtype(found[2])
    if prod(shape) * dtype.itemsize > MAX_BYTES:
        raise ArgumentError(f"{type_text} has more than {MAX_BYTES} bytes")
    if value.startswith("@"):
        return [_read_file(Path(value[1:]), shape, dtype)]
    array = _literal(value, shape, dtype, text)
    return [array if found[1] or not equals else array[()].item()]


def format_value(value: Any, limit: int = 1024) -> str:
    """Formats a result like IREE: `2x2xf32=[1 2][3 4]`, `i64=3` for a scalar."""
    if not isinstance(value, np.ndarray):
        return f"{type_name(value)}={_format_number(value)}"
    left = [limit]
    return f"{type_name(value)}={_format_rows(value, left)}"


def exact_value(value: Any) -> str:
    """Formats a value so that `parse_values` reads the same bits: `2x2xf32=1.0 2.0 3.0 4.0`."""
    numbers = [each.item() for each in np.asarray(value).reshape(-1)]
    words = [str(int(each)) if isinstance(each, bool) else repr(each) for each in numbers]
    return f"{type_name(value)}={' '.join(words[:1] if len({*words}) == 1 else words)}"


def type_name(value: Any) -> str:
    """Returns the type of a value, as `parse_values` takes it: `2x2xf32`, or `i64` of an int."""
    if not isinstance(value, np.ndarray | np.generic):
        return {bool: "i1", int: "i64", float: "f64"}.get(type(value), "complex<f64>")
    name = next((name for name, dtype in _mlir_names() if dtype == value.dtype), value.dtype.name)
    return "".join(f"{size}x" for size in value.shape) + name


def compare(index: int, actual: Any, expected: Any, rules: Tolerance) -> list[str]:
    """Messages, in IREE's wording, for the differences between a result and its expectation."""
    have, want = np.asarray(actual), np.asarray(expected)
    if not isinstance(expected, np.ndarray):
        want = want.astype(have.dtype)
    elif isinstance(actual, bool | int | float | complex) and not isinstance(actual, np.generic):
        # A Python number has no width.
        have = have.astype(want.dtype)
    if have.dtype != want.dtype or have.shape != want.shape:
        described = f"{_type_text(have)}, expected {_type_text(want)}"
        return [f"[FAILED] result[{index}]: type mismatch; have {described}"]
    wrong = np.flatnonzero(~rules.agree(have.reshape(-1), want.reshape(-1)))
    if not len(wrong):
        return []
    first = int(wrong[0])
    a, b = (_format_number(array.reshape(-1)[first].item()) for array in (have, want))
    more = f" ({len(wrong)} of {have.size} elements differ)" if have.size > 1 else ""
    return [
        f"[FAILED] result[{index}]: element at index {first} ({a}) does not match the expected "
        f"({b}){more}"
    ]


@dataclass(frozen=True)
class Tolerance:
    """Tolerance for comparing floats. Integers must be equal, and NaN equals NaN."""

    exact: bool = False
    rtol: float = 0.0
    atol: float | None = None

    def agree(self, a: np.ndarray[Any, Any], b: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
        """Whether the elements agree, elementwise."""
        if self.exact or a.dtype.kind in "biu" or a.dtype.name.startswith(("int", "uint")):
            return (a == b) | ((a != a) & (b != b))
        atol = THRESHOLDS.get(a.dtype.name, 1e-4) if self.atol is None else self.atol
        wide = np.complex128 if a.dtype.kind == "c" else np.float64
        with np.errstate(invalid="ignore"):
            return np.isclose(
                a.astype(wide), b.astype(wide), rtol=self.rtol, atol=atol, equal_nan=True
            )


def _dtype(name: str) -> np.dtype[Any]:
    try:
        return numpy_dtype(name)
    except UnsupportedError:
        raise ArgumentError(f"{name!r} is not an element type") from None


def _mlir_names() -> list[tuple[str, np.dtype[Any]]]:
    return [(name, dtype) for name, dtype in DTYPES.items() if name != "index"]


def _type_text(array: np.ndarray[Any, Any]) -> str:
    return "x".join([*map(str, array.shape), array.dtype.name])


def _number(text: str) -> Any:
    if text in ("true", "false"):
        return text == "true"
    for kind in (lambda word: int(word, 0), float, complex):
        try:
            return kind(text)
        except ValueError:
            continue
    raise ArgumentError(f"{text!r} is not a value", hint="write 4x8xf32=1,2,... or @x.npy")


def _literal(
    text: str, shape: Sequence[int], dtype: np.dtype[Any], whole: str
) -> np.ndarray[Any, Any]:
    words = [word for word in _SEPARATORS.split(text) if word]
    count = prod(shape)
    if len(words) not in (0, 1, count):
        raise ArgumentError(f"{whole[:80]!r} has {len(words)} elements, but must have {count}")
    numbers = [_number(word) for word in words] or [0]
    if dtype.kind != "c" and any(isinstance(number, complex) for number in numbers):
        raise ArgumentError(f"{whole[:80]!r} has an imaginary part, but {dtype.name} has none")
    is_integer = dtype.name.startswith(("bool", "int", "uint"))
    if is_integer and any(isinstance(number, float) for number in numbers):
        raise ArgumentError(f"{whole[:80]!r} has a fraction, but {dtype.name} has none")
    try:
        array = np.array(numbers).astype(dtype) if not is_integer else _integers(numbers, dtype)
    except (OverflowError, ValueError):
        raise ArgumentError(f"{whole[:80]!r} does not fit in {dtype.name}") from None
    return (np.repeat(array, count) if len(array) == 1 else array).reshape(shape)


def _integers(numbers: Sequence[int], dtype: np.dtype[Any]) -> np.ndarray[Any, Any]:
    array = np.array(numbers, dtype=object).astype(np.int64 if dtype.kind != "u" else dtype)
    narrow = array.astype(dtype)
    if not (narrow.astype(array.dtype) == array).all():
        raise OverflowError
    return narrow


def _read_npy(path: Path) -> list[Any]:
    arrays: list[Any] = []
    try:
        size = path.stat().st_size
        with path.open("rb") as file:
            while file.tell() < size:
                arrays.append(np.load(file, allow_pickle=False))
    except (OSError, ValueError, EOFError) as error:
        raise ArgumentError(f"cannot read {path}: {_reason(error)}") from None
    return arrays


def _read_file(path: Path, shape: tuple[int, ...], dtype: np.dtype[Any]) -> np.ndarray[Any, Any]:
    if path.suffix == ".npy":
        array = _read_npy(path)[0]
        if array.dtype.kind == "V" and array.dtype.itemsize == dtype.itemsize:
            array = array.view(dtype)
        if array.shape != shape or array.dtype != dtype:
            raise ArgumentError(f"{path} has {_type_text(array)}, which is another type")
        return array
    try:
        data = path.read_bytes()
    except OSError as error:
        raise ArgumentError(f"cannot read {path}: {_reason(error)}") from None
    if len(data) != prod(shape) * dtype.itemsize:
        wanted = prod(shape) * dtype.itemsize
        raise ArgumentError(f"{path} has {len(data)} bytes, but must have {wanted}")
    return np.frombuffer(data, dtype).reshape(shape)


def _reason(error: Exception) -> str:
    return getattr(error, "strerror", None) or str(error).splitlines()[0]


def _format_rows(array: np.ndarray[Any, Any], left: list[int]) -> str:
    if array.ndim == 0:
        return _format_number(array[()].item())
    if array.ndim == 1:
        shown = array[: left[0]]
        left[0] -= len(shown)
        words = [_format_number(number.item()) for number in shown]
        return " ".join([*words, "..."] if len(shown) < len(array) else words)
    rows: list[str] = []
    for row in array:
        if left[0] <= 0:
            return "".join([*rows, "..."])
        rows.append(f"[{_format_rows(row, left)}]")
    return "".join(rows)


def _format_number(number: Any) -> str:
    if isinstance(number, bool):
        return str(int(number))
    return f"{number:g}" if isinstance(number, float) else str(number)
