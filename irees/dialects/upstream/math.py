"""math ops that xDSL lacks: float classification, erfc, clampf, sincos."""

from __future__ import annotations

from functools import cache
from typing import ClassVar

from xdsl.dialects.arith import FastMathFlagsAttr
from xdsl.dialects.builtin import i1
from xdsl.ir import Operation, SSAValue
from xdsl.irdl import (
    AnyAttr,
    IRDLOperation,
    VarConstraint,
    irdl_op_definition,
    operand_def,
    prop_def,
    result_def,
    traits_def,
)
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.traits import Pure
from xdsl.utils.exceptions import VerifyException

from .arith import check_kind, with_element

_NO_FLAGS = FastMathFlagsAttr("none")


class _Classification(IRDLOperation):
    """Base of `op %x fastmath<...> : type` with an i1 result of the operand's shape."""

    operand = operand_def()
    result = result_def()
    fastmath = prop_def(FastMathFlagsAttr, default_value=_NO_FLAGS)
    traits = traits_def(Pure())

    def __init__(self, operand: SSAValue | Operation):
        operand = SSAValue.get(operand)
        super().__init__(
            operands=[operand],
            result_types=[with_element(operand.type, i1)],
            properties={"fastmath": _NO_FLAGS},
        )

    @classmethod
    def parse(cls, parser: Parser):
        operand = parser.parse_unresolved_operand()
        flags = _NO_FLAGS
        if parser.parse_optional_keyword("fastmath"):
            flags = FastMathFlagsAttr(FastMathFlagsAttr.parse_parameter(parser))
        attributes = parser.parse_optional_attr_dict()
        parser.parse_punctuation(":")
        op = cls(parser.resolve_operand(operand, parser.parse_type()))
        op.fastmath = flags
        op.attributes |= attributes
        return op

    def print(self, printer: Printer) -> None:
        printer.print_string(" ")
        printer.print_ssa_value(self.operand)
        if self.properties.get("fastmath", _NO_FLAGS) != _NO_FLAGS:
            printer.print_string(" fastmath")
            self.fastmath.print_parameter(printer)
        printer.print_op_attributes(self.attributes)
        printer.print_string(" : ")
        printer.print_attribute(self.operand.type)

    def verify_(self) -> None:
        check_kind(self.operand.type, "float")
        if self.result.type != with_element(self.operand.type, i1):
            raise VerifyException("expected the result to be i1 of the operand's shape")


@irdl_op_definition
class IsNaNOp(_Classification):
    """Whether a float is NaN (MLIR: math.isnan)."""

    name = "math.isnan"


@irdl_op_definition
class IsInfOp(_Classification):
    """Whether a float is an infinity (MLIR: math.isinf)."""

    name = "math.isinf"


@irdl_op_definition
class IsFiniteOp(_Classification):
    """Whether a float is neither NaN nor an infinity (MLIR: math.isfinite)."""

    name = "math.isfinite"


@irdl_op_definition
class IsNormalOp(_Classification):
    """Whether a float is not NaN, infinite, zero or subnormal (MLIR: math.isnormal)."""

    name = "math.isnormal"


@irdl_op_definition
class ErfcOp(IRDLOperation):
    """1 - erf(x) (MLIR: math.erfc)."""

    T: ClassVar = VarConstraint("T", AnyAttr())
    name = "math.erfc"
    operand = operand_def(T)
    result = result_def(T)
    fastmath = prop_def(FastMathFlagsAttr, default_value=_NO_FLAGS)
    traits = traits_def(Pure())
    assembly_format = "$operand (`fastmath` `` $fastmath^)? attr-dict `:` type($result)"

    def __init__(self, operand: SSAValue | Operation):
        super().__init__(operands=[operand], result_types=[SSAValue.get(operand).type])

    def verify_(self) -> None:
        check_kind(self.operand.type, "float")


@irdl_op_definition
class ClampFOp(IRDLOperation):
    """minimumf(maximumf(x, min), max) (MLIR: math.clampf)."""

    T: ClassVar = VarConstraint("T", AnyAttr())
    name = "math.clampf"
    value = operand_def(T)
    min = operand_def(T)
    max = operand_def(T)
    result = result_def(T)
    fastmath = prop_def(FastMathFlagsAttr, default_value=_NO_FLAGS)
    traits = traits_def(Pure())
    assembly_format = (
        "$value `to` `[` $min `,` $max `]` (`fastmath` `` $fastmath^)? attr-dict `:` type($result)"
    )

    def __init__(self, value: SSAValue, min: SSAValue, max: SSAValue):
        super().__init__(operands=[value, min, max], result_types=[value.type])

    def verify_(self) -> None:
        check_kind(self.value.type, "float")


@irdl_op_definition
class SincosOp(IRDLOperation):
    """sin(x) and cos(x) (MLIR: math.sincos)."""

    T: ClassVar = VarConstraint("T", AnyAttr())
    name = "math.sincos"
    operand = operand_def(T)
    sin = result_def(T)
    cos = result_def(T)
    fastmath = prop_def(FastMathFlagsAttr, default_value=_NO_FLAGS)
    traits = traits_def(Pure())
    assembly_format = "$operand (`fastmath` `` $fastmath^)? attr-dict `:` type($operand)"

    def __init__(self, operand: SSAValue | Operation):
        type_ = SSAValue.get(operand).type
        super().__init__(operands=[operand], result_types=[type_, type_])

    def verify_(self) -> None:
        check_kind(self.operand.type, "float")


@cache
def patch() -> None:
    """Nothing to patch."""


OPS = [IsNaNOp, IsInfOp, IsFiniteOp, IsNormalOp, ErfcOp, ClampFOp, SincosOp]
