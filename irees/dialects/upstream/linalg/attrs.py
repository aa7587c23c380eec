"""The enum attributes of linalg that xDSL lacks."""

from __future__ import annotations

from enum import auto

from xdsl.dialects.utils import EnumAttribute
from xdsl.irdl import irdl_attr_definition
from xdsl.parser import AttrParser
from xdsl.printer import Printer
from xdsl.utils.str_enum import StrEnum


class TypeFn(StrEnum):
    """Casts that a named op applies to its inputs."""

    CAST_SIGNED = auto()
    CAST_UNSIGNED = auto()


class _AngleBrackets:
    """Syntax `#linalg.name<case>`, as MLIR prints it."""

    @classmethod
    def parse_parameter(cls, parser: AttrParser):
        with parser.in_angle_brackets():
            return super().parse_parameter(parser)  # type: ignore[misc]

    def print_parameter(self, printer: Printer) -> None:
        with printer.in_angle_brackets():
            super().print_parameter(printer)  # type: ignore[misc]


@irdl_attr_definition
class TypeFnAttr(_AngleBrackets, EnumAttribute[TypeFn]):
    """`#linalg.type_fn<cast_signed>`: the kind of cast of a named op (MLIR: LinalgEnums.td)."""

    name = "linalg.type_fn"


class UnaryFn(StrEnum):
    """The functions of `linalg.elemwise_unary`."""

    EXP = auto()
    LOG = auto()
    ABS = auto()
    CEIL = auto()
    FLOOR = auto()
    NEGF = auto()
    RECIPROCAL = auto()
    ROUND = auto()
    SQRT = auto()
    RSQRT = auto()
    SQUARE = auto()
    TANH = auto()
    ERF = auto()


class BinaryFn(StrEnum):
    """The functions of `linalg.elemwise_binary`."""

    ADD = auto()
    SUB = auto()
    MUL = auto()
    DIV = auto()
    DIV_UNSIGNED = auto()
    MAX_SIGNED = auto()
    MIN_SIGNED = auto()
    MAX_UNSIGNED = auto()
    MIN_UNSIGNED = auto()
    POWF = auto()


class ElementwiseKind(StrEnum):
    """The functions of `linalg.elementwise`."""

    EXP = auto()
    LOG = auto()
    ABS = auto()
    CEIL = auto()
    FLOOR = auto()
    NEGF = auto()
    RECIPROCAL = auto()
    ROUND = auto()
    SQRT = auto()
    RSQRT = auto()
    SQUARE = auto()
    TANH = auto()
    ERF = auto()
    ADD = auto()
    SUB = auto()
    MUL = auto()
    DIV = auto()
    DIV_UNSIGNED = auto()
    MAX_SIGNED = auto()
    MIN_SIGNED = auto()
    MAX_UNSIGNED = auto()
    MIN_UNSIGNED = auto()
    POWF = auto()
    SELECT = auto()


@irdl_attr_definition
class UnaryFnAttr(_AngleBrackets, EnumAttribute[UnaryFn]):
    """`#linalg.unary_fn<exp>` (MLIR: LinalgEnums.td)."""

    name = "linalg.unary_fn"


@irdl_attr_definition
class BinaryFnAttr(_AngleBrackets, EnumAttribute[BinaryFn]):
    """`#linalg.binary_fn<add>` (MLIR: LinalgEnums.td)."""

    name = "linalg.binary_fn"


@irdl_attr_definition
class ElementwiseKindAttr(_AngleBrackets, EnumAttribute[ElementwiseKind]):
    """`#linalg.elementwise_kind<exp>` (MLIR: LinalgEnums.td)."""

    name = "linalg.elementwise_kind"


ATTRS = [TypeFnAttr, UnaryFnAttr, BinaryFnAttr, ElementwiseKindAttr]
