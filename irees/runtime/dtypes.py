"""
The numpy and torch dtypes of a program's arguments and results.

Types of fewer than 8 bits take one byte each, as `ml_dtypes` stores them.
"""

from __future__ import annotations

import sys
from functools import cache
from typing import Any

import ml_dtypes
import numpy as np

from irees.errors import UnsupportedError

_ML_DTYPES = {
    "bf16": "bfloat16",
    "f8E4M3FN": "float8_e4m3fn",
    "f8E5M2": "float8_e5m2",
    "f8E4M3FNUZ": "float8_e4m3fnuz",
    "f8E5M2FNUZ": "float8_e5m2fnuz",
    "f8E4M3B11FNUZ": "float8_e4m3b11fnuz",
    "f8E4M3": "float8_e4m3",
    "f8E3M4": "float8_e3m4",
    "f8E8M0FNU": "float8_e8m0fnu",
    "f6E2M3FN": "float6_e2m3fn",
    "f6E3M2FN": "float6_e3m2fn",
    "f4E2M1FN": "float4_e2m1fn",
    **{f"i{bits}": f"int{bits}" for bits in (2, 4)},
    **{f"si{bits}": f"int{bits}" for bits in (2, 4)},
    **{f"ui{bits}": f"uint{bits}" for bits in (2, 4)},
}

DTYPES: dict[str, np.dtype[Any]] = {
    "i1": np.dtype(np.bool_),
    "index": np.dtype(np.int64),
    **{f"i{bits}": np.dtype(f"int{bits}") for bits in (8, 16, 32, 64)},
    **{f"si{bits}": np.dtype(f"int{bits}") for bits in (8, 16, 32, 64)},
    **{f"ui{bits}": np.dtype(f"uint{bits}") for bits in (8, 16, 32, 64)},
    **{f"f{bits}": np.dtype(f"float{bits}") for bits in (16, 32, 64)},
    "complex<f32>": np.dtype(np.complex64),
    "complex<f64>": np.dtype(np.complex128),
    **{
        name: np.dtype(getattr(ml_dtypes, spelling))
        for name, spelling in _ML_DTYPES.items()
        if hasattr(ml_dtypes, spelling)
    },
}
"""MLIR name => numpy dtype."""


def numpy_dtype(name: str) -> np.dtype[Any]:
    """The dtype of an MLIR element type. Raises UnsupportedError for one that has none."""
    if (dtype := DTYPES.get(name)) is None:
        raise UnsupportedError(f"arrays of {name} cannot be passed")
    return dtype


@cache
def accepted_dtypes(name: str) -> frozenset[np.dtype[Any]]:
    """Accepted dtypes for an element type: `i32` is signless, so int32 and uint32 fit."""
    dtype = numpy_dtype(name)
    if not name.startswith("i") or name in ("i1", "index") or dtype.kind not in "iu":
        return frozenset((dtype,))
    return frozenset((dtype, np.dtype(f"uint{8 * dtype.itemsize}")))


@cache
def torch_dtypes() -> dict[Any, np.dtype[Any]]:
    """torch dtype => numpy dtype; torch must already be imported."""
    torch = sys.modules["torch"]
    names = {dtype.name: dtype for dtype in DTYPES.values()}
    return {
        found: dtype
        for name, dtype in names.items()
        if (found := getattr(torch, name, None)) is not None and hasattr(found, "itemsize")
    }


@cache
def torch_dtype(dtype: np.dtype[Any]) -> Any:
    """The torch dtype of a numpy dtype. Raises UnsupportedError when torch has none."""
    found = next((ours for ours, theirs in torch_dtypes().items() if theirs == dtype), None)
    if found is None:
        raise UnsupportedError(f"torch has no dtype {dtype.name}", hint="pass numpy arrays")
    return found
