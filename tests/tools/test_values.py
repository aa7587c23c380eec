"""Values on the command line: read, printed and compared as IREE does."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

from irees.errors import ArgumentError
from irees.runtime.arguments import ScalarSpec, TensorSpec, zeros_or_random
from irees.tools.values import Tolerance, compare, format_value, parse_values


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("3.5", 3.5),
        ("-7", -7),
        ("0x10", 16),
        ("true", True),
        ("i32=5", 5),
        ("f32=nan", np.nan),
        ("4xf32=1,2,3,4", np.array([1, 2, 3, 4], np.float32)),
        ("2x2xi32=1 2 3 4", np.array([[1, 2], [3, 4]], np.int32)),
        ("2x2xi32=[[1 2][3 4]]", np.array([[1, 2], [3, 4]], np.int32)),
        ("4xbf16=1", np.ones(4, ml_dtypes.bfloat16)),
        ("2x3xf64", np.zeros((2, 3))),
        ("0x4xf32", np.zeros((0, 4), np.float32)),
        ("2xi1=1 0", np.array([True, False])),
        ("1xi64=-9223372036854775808", np.array([-(2**63)])),
        ("2xf32=inf,-inf", np.array([np.inf, -np.inf], np.float32)),
    ],
)
def test_parsing(text, value):
    (parsed,) = parse_values(text)
    np.testing.assert_array_equal(parsed, value)
    assert type(parsed) is type(value)
    assert getattr(parsed, "dtype", None) == getattr(value, "dtype", None)


def test_files(tmp_path):
    array = np.arange(6, dtype=np.float32).reshape(2, 3)
    with open(tmp_path / "x.npy", "wb") as file:
        np.save(file, array)
        np.save(file, array.astype(ml_dtypes.bfloat16))
    (tmp_path / "x.bin").write_bytes(array.tobytes())
    first, second = parse_values(f"@{tmp_path}/x.npy")
    assert first.dtype == np.float32
    assert second.shape == (2, 3)
    for name in ("x.npy", "x.bin"):
        (parsed,) = parse_values(f"2x3xf32=@{tmp_path}/{name}")
        np.testing.assert_array_equal(parsed, array)
    for wrong in (
        "3x2xf32=@{}/x.npy",
        "2xf32=@{}/x.bin",
        "@{}/none.npy",
        "2xf32=@{}/none",
        "@{}/x.bin",
    ):
        with pytest.raises(ArgumentError):
            parse_values(wrong.format(tmp_path))


def test_pickles_are_refused(tmp_path):
    np.save(tmp_path / "x.npy", np.array([{}], dtype=object), allow_pickle=True)
    with pytest.raises(ArgumentError):
        parse_values(f"@{tmp_path}/x.npy")


@pytest.mark.parametrize(
    "text",
    [
        "",
        "hello",
        "4xf32=1,2",
        "4xf32=a",
        "2xi8=300,1",
        "2xi8=1.5,1",
        "2xf31=1",
        "-1xf32",
        "999999999999999xf64",
        "4x=1",
        "2xui8=-1",
    ],
)
def test_what_is_no_value(text):
    with pytest.raises(ArgumentError):
        parse_values(text)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (np.array([2, 3.5], np.float32), "2xf32=2 3.5"),
        (np.arange(8, dtype=np.int32).reshape(2, 2, 2), "2x2x2xi32=[[0 1][2 3]][[4 5][6 7]]"),
        (np.array(1.5, np.float64), "f64=1.5"),
        (np.array([True]), "1xi1=1"),
        (np.ones(2, ml_dtypes.bfloat16), "2xbf16=1 1"),
        (7, "i64=7"),
        (np.zeros((0, 3), np.float32), "0x3xf32="),
    ],
)
def test_printing(value, text):
    assert format_value(value) == text


def test_printing_stops():
    assert format_value(np.zeros(10, np.int8), 3) == "10xi8=0 0 0 ..."
    assert format_value(np.zeros((4, 2), np.int8), 4) == "4x2xi8=[0 0][0 0]..."


def test_comparing():
    one = np.array([1, np.nan], np.float32)
    assert compare(0, one, one + 5e-5, Tolerance()) == []
    assert compare(0, one, one + 5e-4, Tolerance()) != []
    assert compare(0, one, one + 5e-5, Tolerance(exact=True)) != []
    assert compare(0, one, one, Tolerance(exact=True)) == []
    assert compare(0, one, one + 5e-4, Tolerance(atol=1e-3)) == []
    assert "type mismatch" in compare(0, one, one.astype("f8"), Tolerance())[0]
    assert compare(0, np.array([1, 2]), np.array([1, 3]), Tolerance(atol=5)) != []
    assert compare(0, 3, 3, Tolerance()) == []


def test_random_inputs():
    random = np.random.default_rng(0)
    assert zeros_or_random(TensorSpec(0, "f32", (2, 3)), random).any()
    assert not zeros_or_random(TensorSpec(0, "i64", (2, 3)), random).any()
    assert zeros_or_random(ScalarSpec(0, "f32"), random) == 0
    with pytest.raises(ArgumentError, match="its size is dynamic"):
        zeros_or_random(TensorSpec(0, "f32", (None, 3)), random)
