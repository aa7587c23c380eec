"""CUDA C++ expressions: those of C, except where CUDA needs another form."""

from __future__ import annotations

from xdsl.dialects import arith
from xdsl.dialects.builtin import BFloat16Type, Float16Type, Float32Type, IntegerType, VectorType
from xdsl.ir import Attribute, Operation

from irees.backends.common.emit_ops import INFIX, Expressions, Names, element, lanes
from irees.backends.common.types import is_bool, scalar, short
from irees.dialects.nvgpu import WarpgroupAccumulatorType


def has_flag(op: Operation, flag: arith.FastMathFlag) -> bool:
    """Whether an op has a fast-math flag."""
    flags = op.properties.get("fastmath")
    return isinstance(flags, arith.FastMathFlagsAttr) and flag in flags.data


def native_function(op: Operation) -> str | None:
    """The `irees_cuda.h` function that an f32 op's fast-math flags allow, None if there is none."""
    if not isinstance(element(op.results[0].type), Float32Type):
        return None
    if op.name == "math.exp2" and has_flag(op, arith.FastMathFlag.APPROX_FUNC):
        return "irees_exp2_approx"
    if isinstance(op, arith.MaxnumfOp | arith.MinnumfOp):
        if has_flag(op, arith.FastMathFlag.NO_SIGNED_ZEROS):
            return f"irees_{op.name[6:9]}_any_zero"
    return None


class CudaExpressions(Expressions):
    """CUDA compilers have no -fwrapv, so integer arithmetic is done on unsigned types."""

    streams = False
    widens = False

    def type(self, kind: Attribute) -> str:
        if isinstance(kind, WarpgroupAccumulatorType):
            return f"irees_accumulator<{kind.fragmented.get_shape()[1]}>"
        return super().type(kind)

    def print(self, op: Operation, names: Names) -> str | None:
        kind = op.results[0].type
        lane = element(kind)
        if (function := native_function(op)) is not None:
            return self._mapped(function, kind, names)
        if isinstance(op, arith.TruncFOp) and isinstance(lane, BFloat16Type | Float16Type):
            source = op.operands[0].type
            if lanes(kind) == 2 and isinstance(element(source), Float32Type):
                return f"irees_pair_{short(lane)}<{self.type(kind)}>({names[0]})"
        return super().print(op, names)

    def math(self, op: Operation, names: Names) -> str:
        kind = op.results[0].type
        # `expand-math` has already replaced it with 1 / sqrt(x) where it has to be exact.
        if op.name == "math.rsqrt" and isinstance(element(kind), Float32Type):
            return self._mapped("irees_rsqrt_approx", kind, names)
        return super().math(op, names)

    def infix(self, op: Operation, names: Names) -> str:
        kind = op.results[0].type
        if not isinstance(kind, IntegerType) or isinstance(kind, VectorType) or is_bool(kind):
            return super().infix(op, names)
        unsigned = f"u{scalar(kind)}"
        a, b = names
        return f"({scalar(kind)})(({unsigned}){a} {INFIX[op.name]} ({unsigned}){b})"
