"""Conversion between PyTorch's and the builder's dtypes."""

from __future__ import annotations

import torch

from irees.errors import UnsupportedError

from ..builder import dtypes as d

TABLE: dict[torch.dtype, d.DType] = {
    torch.bool: d.BOOL, torch.int8: d.I8, torch.int16: d.I16, torch.int32: d.I32,
    torch.int64: d.I64, torch.uint8: d.U8, torch.uint16: d.U16, torch.uint32: d.U32,
    torch.uint64: d.U64, torch.float16: d.F16, torch.bfloat16: d.BF16, torch.float32: d.F32,
    torch.float64: d.F64, torch.complex64: d.C64, torch.complex128: d.C128,
    torch.float8_e4m3fn: d.F8E4M3FN, torch.float8_e5m2: d.F8E5M2,
    torch.float8_e4m3fnuz: d.F8E4M3FNUZ, torch.float8_e5m2fnuz: d.F8E5M2FNUZ,
}  # fmt: skip


def dtype_of(kind: torch.dtype) -> d.DType:
    """The builder's dtype. Raises UnsupportedError for a dtype that irees does not support."""
    if (found := TABLE.get(kind)) is None:
        raise UnsupportedError(f"tensors of {kind} are not supported")
    return found


def torch_dtype_of(dtype: d.DType) -> torch.dtype:
    """The inverse of `dtype_of`."""
    return next(kind for kind, mine in TABLE.items() if mine is dtype)
