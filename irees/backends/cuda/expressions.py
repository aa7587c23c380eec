"""CUDA C++ expressions: those of C, but for what C++ takes as undefined."""

from __future__ import annotations

from xdsl.dialects.builtin import IntegerType, VectorType
from xdsl.ir import Attribute, Operation

from irees.backends.common.emit_ops import Expressions, Names
from irees.backends.common.types import is_bool, scalar
from irees.dialects.nvgpu import WarpgroupAccumulatorType


class CudaExpressions(Expressions):
    """No compiler of CUDA has -fwrapv: integers that may wrap are computed without a sign."""

    def type(self, kind: Attribute) -> str:
        if isinstance(kind, WarpgroupAccumulatorType):
            return f"irees_accumulator<{kind.fragmented.get_shape()[1]}>"
        return super().type(kind)

    def _infix(self, op: Operation, symbol: str, names: Names) -> str:
        kind = op.results[0].type
        if not isinstance(kind, IntegerType) or isinstance(kind, VectorType) or is_bool(kind):
            return super()._infix(op, symbol, names)
        unsigned = f"u{scalar(kind)}"
        a, b = names
        return f"({scalar(kind)})(({unsigned}){a} {symbol} ({unsigned}){b})"
