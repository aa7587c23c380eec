"""
arith on vectors and tensors, and the arith ops that xDSL lacks.

xDSL allows compares, casts and selects on scalars only. This module replaces the constraints of
those classes in place, so that `isinstance` keeps working, and verifies the shapes instead.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import ClassVar

from xdsl.dialects import arith
from xdsl.dialects.builtin import (
    AnyFloat,
    IndexType,
    IntegerAttr,
    IntegerType,
    MemRefType,
    ShapedType,
    Signedness,
    TensorType,
    UnrankedTensorType,
    VectorType,
    i1,
)
from xdsl.dialects.utils import EnumAttribute
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.irdl import (
    AnyAttr,
    IRDLOperation,
    ParsePropInAttrDict,
    VarConstraint,
    irdl_attr_definition,
    irdl_op_definition,
    operand_def,
    opt_prop_def,
    prop_def,
    result_def,
    traits_def,
)
from xdsl.irdl.operations import OperandDef, OptPropertyDef, ResultDef
from xdsl.parser import AttrParser, Parser
from xdsl.printer import Printer
from xdsl.traits import Pure
from xdsl.utils.exceptions import VerifyException
from xdsl.utils.str_enum import StrEnum

from . import builtin


class RoundingMode(StrEnum):
    """IEEE-754 rounding modes of `arith.truncf`."""

    TO_NEAREST_EVEN = "to_nearest_even"
    DOWNWARD = "downward"
    UPWARD = "upward"
    TOWARD_ZERO = "toward_zero"
    TO_NEAREST_AWAY = "to_nearest_away"


@irdl_attr_definition
class RoundingModeAttr(EnumAttribute[RoundingMode]):
    """
    `#arith.rounding_mode<downward>`; MLIR prints it as `5 : i32` in the generic form
    (ArithBase.td).
    """

    name = "arith.rounding_mode"

    @classmethod
    def parse_parameter(cls, parser: AttrParser) -> RoundingMode:
        with parser.in_angle_brackets():
            return super().parse_parameter(parser)

    def print_parameter(self, printer: Printer) -> None:
        with printer.in_angle_brackets():
            super().print_parameter(printer)


def element_type(type_: Attribute) -> Attribute:
    """Returns the element type of a tensor or vector, or the scalar type itself."""
    if isinstance(type_, TensorType | VectorType | UnrankedTensorType):
        return type_.element_type
    return type_


def with_element(type_: Attribute, element: Attribute) -> Attribute:
    """Returns a type with the shape of `type_` and another element type."""
    match type_:
        case TensorType():
            return TensorType(element, type_.get_shape(), type_.encoding)
        case VectorType():
            return VectorType(element, type_.get_shape(), type_.scalable_dims)
        case UnrankedTensorType():
            return UnrankedTensorType(element)
        case _:
            return element


def _kind(type_: Attribute) -> str | None:
    element = element_type(type_)
    if isinstance(element, AnyFloat):
        return "float"
    return {IntegerType: "integer", IndexType: "index"}.get(type(element))


def check_kind(type_: Attribute, *kinds: str) -> None:
    """Raises VerifyException unless the elements are of one of the kinds integer, index, float."""
    if _kind(type_) not in kinds:
        raise VerifyException(
            f"expected {' or '.join(kinds)} or a vector or tensor of it, but got {type_}"
        )


def _same_shape(a: Attribute, b: Attribute) -> None:
    shaped = isinstance(a, ShapedType), isinstance(b, ShapedType)
    if shaped == (False, False):
        return
    same_kind = type(a) is type(b) and not isinstance(a, MemRefType)
    if not same_kind or (isinstance(a, ShapedType) and a.get_shape() != b.get_shape()):
        raise VerifyException(f"operand and result must have the same shape, but are {a} and {b}")


def _verify_compare(*kinds: str) -> Callable[[IRDLOperation], None]:
    def verify(op) -> None:
        op.get_irdl_definition().verify(op)
        check_kind(op.lhs.type, *kinds)
        if op.lhs.type != op.rhs.type:
            raise VerifyException(
                f"operands must have the same type, but are {op.lhs.type} and {op.rhs.type}"
            )
        if op.result.type != with_element(op.lhs.type, i1):
            raise VerifyException(f"expected the result to be {with_element(op.lhs.type, i1)}")

    return verify


def _verify_cast(source: tuple[str, ...], dest: tuple[str, ...], width: str = "") -> Callable:
    def verify(op) -> None:
        op.get_irdl_definition().verify(op)
        a, b = op.input.type, op.result.type
        check_kind(a, *source)
        check_kind(b, *dest)
        _same_shape(a, b)
        if not width:
            return
        from_bits, to_bits = (_bits(t) for t in (a, b))
        if (from_bits <= to_bits) if width == "shrinks" else (from_bits >= to_bits):
            raise VerifyException(
                f"{b} must be {'narrower' if width == 'shrinks' else 'wider'} than {a}"
            )

    return verify


def _bits(type_: Attribute) -> int:
    return element_type(type_).bitwidth  # type: ignore[attr-defined]


def _verify_index_cast(op) -> None:
    op.get_irdl_definition().verify(op)
    kinds = {_kind(op.input.type), _kind(op.result.type)}
    if kinds != {"integer", "index"}:
        raise VerifyException(
            "'arith.index_cast' op operand type and result type are cast incompatible"
        )
    _same_shape(op.input.type, op.result.type)


def _verify_bitcast(op) -> None:
    op.get_irdl_definition().verify(op)
    _same_shape(op.input.type, op.result.type)
    for type_ in (op.input.type, op.result.type):
        if not isinstance(type_, MemRefType):
            check_kind(type_, "integer", "float", "index")
    if "index" not in (_kind(op.input.type), _kind(op.result.type)):
        if _bits(op.input.type) != _bits(op.result.type):
            raise VerifyException("operand and result must have the same bit width")


def _verify_select(op: arith.SelectOp) -> None:
    op.get_irdl_definition().verify(op)
    condition = op.cond.type
    if condition == i1:
        return
    if not isinstance(op.result.type, TensorType | VectorType):
        raise VerifyException(f"expected the condition to be i1, but got {condition}")
    if condition != with_element(op.result.type, i1):
        raise VerifyException(
            f"expected the condition to be i1 or {with_element(op.result.type, i1)}"
        )


def _parse_binary(parser: Parser):
    lhs = parser.parse_unresolved_operand()
    parser.parse_punctuation(",")
    return lhs, parser.parse_unresolved_operand()


def _parse_cmpi(cls: type[arith.CmpiOp], parser: Parser) -> arith.CmpiOp:
    return _parse_compare(cls, parser, arith.CMPI_COMPARISON_OPERATIONS, has_fastmath=False)


def _parse_cmpf(cls: type[arith.CmpfOp], parser: Parser) -> arith.CmpfOp:
    return _parse_compare(cls, parser, arith.CMPF_COMPARISON_OPERATIONS, has_fastmath=True)


def _parse_compare(cls, parser: Parser, predicates: list[str], has_fastmath: bool):
    pos = parser.pos
    predicate = parser.parse_identifier()
    if predicate not in predicates:
        parser.raise_error(f"unknown predicate {predicate}", pos, parser.pos)
    parser.parse_punctuation(",")
    lhs, rhs = _parse_binary(parser)
    properties: dict[str, Attribute] = {"predicate": IntegerAttr(predicates.index(predicate), 64)}
    if has_fastmath:
        properties["fastmath"] = arith.FastMathFlagsAttr("none")
        if parser.parse_optional_keyword("fastmath"):
            properties["fastmath"] = arith.FastMathFlagsAttr(
                arith.FastMathFlagsAttr.parse_parameter(parser)
            )
    attributes = dict(parser.parse_optional_attr_dict())
    parser.parse_punctuation(":")
    type_ = parser.parse_type()
    operands = parser.resolve_operands([lhs, rhs], [type_, type_], pos)
    return cls.create(
        operands=operands,
        result_types=[with_element(type_, i1)],
        properties=properties,
        attributes=attributes,
    )


def _init_compare(predicates: list[str], fastmath: bool) -> Callable:
    def init(
        self, operand1, operand2, arg: int | str, flags: arith.FastMathFlagsAttr | None = None
    ):
        lhs, rhs = SSAValue.get(operand1), SSAValue.get(operand2)
        if lhs.type != rhs.type:
            raise TypeError(
                f"Comparison operands must have same type, but provided {lhs.type} and {rhs.type}"
            )
        if isinstance(arg, str):
            if arg not in predicates:
                raise VerifyException(f"Unknown comparison mnemonic: {arg}")
            arg = predicates.index(arg)
        properties: dict[str, Attribute] = {"predicate": IntegerAttr(arg, 64)}
        if fastmath:
            properties["fastmath"] = flags or arith.FastMathFlagsAttr("none")
        IRDLOperation.__init__(
            self,
            operands=[lhs, rhs],
            result_types=[with_element(lhs.type, i1)],
            properties=properties,
        )

    return init


def _parse_select(cls: type[arith.SelectOp], parser: Parser) -> arith.SelectOp:
    pos = parser.pos
    condition = parser.parse_unresolved_operand()
    parser.parse_punctuation(",")
    lhs, rhs = _parse_binary(parser)
    attributes = dict(parser.parse_optional_attr_dict())
    parser.parse_punctuation(":")
    type_: Attribute = parser.parse_type()
    condition_type: Attribute = i1
    if parser.parse_optional_punctuation(","):
        condition_type, type_ = type_, parser.parse_type()
    operands = parser.resolve_operands([condition, lhs, rhs], [condition_type, type_, type_], pos)
    return cls.create(operands=operands, result_types=[type_], attributes=attributes)


def _print_select(op: arith.SelectOp, printer: Printer) -> None:
    printer.print_string(" ")
    printer.print_list(op.operands, printer.print_ssa_value)
    printer.print_op_attributes(op.attributes)
    printer.print_string(" : ")
    if op.cond.type != i1:
        printer.print_attribute(op.cond.type)
        printer.print_string(", ")
    printer.print_attribute(op.result.type)


def _parse_rounding_cast(cls, parser: Parser):
    pos = parser.pos
    undelimited = parser.Delimiter.NONE
    operands = parser.parse_comma_separated_list(undelimited, parser.parse_unresolved_operand)
    properties: dict[str, Attribute] = {}
    for mode in RoundingMode:
        if parser.parse_optional_keyword(mode.value):
            properties["roundingmode"] = RoundingModeAttr(mode)
    if parser.parse_optional_keyword("fastmath"):
        properties["fastmath"] = arith.FastMathFlagsAttr(
            arith.FastMathFlagsAttr.parse_parameter(parser)
        )
    attributes = dict(parser.parse_optional_attr_dict())
    parser.parse_punctuation(":")
    sources = parser.parse_comma_separated_list(undelimited, parser.parse_type)
    parser.parse_keyword("to")
    dest = parser.parse_type()
    return cls.create(
        operands=parser.resolve_operands(operands, sources, pos),
        result_types=[dest],
        properties=properties,
        attributes=attributes,
    )


def _print_rounding_cast(op, printer: Printer) -> None:
    printer.print_string(" ")
    printer.print_list(op.operands, printer.print_ssa_value)
    mode = op.properties.get("roundingmode")
    if isinstance(mode, RoundingModeAttr):
        printer.print_string(f" {mode.data.value}")
    flags = op.properties.get("fastmath")
    if isinstance(flags, arith.FastMathFlagsAttr) and flags != arith.FastMathFlagsAttr("none"):
        printer.print_string(" fastmath")
        flags.print_parameter(printer)
    printer.print_op_attributes(op.attributes)
    printer.print_string(" : ")
    printer.print_list([value.type for value in op.operands], printer.print_attribute)
    printer.print_string(" to ")
    printer.print_attribute(op.results[0].type)


def _verify_constant(op: arith.ConstantOp) -> None:
    value = op.properties.get("value")
    if value is None:
        raise VerifyException("property 'value' expected in operation 'arith.constant'")
    if len(op.results) != 1 or op.operands or op.regions:
        raise VerifyException("expected no operands and one result")
    type_ = op.results[0].type
    own = value.get_type() if hasattr(value, "get_type") else getattr(value, "type", None)
    if own is not None and own != type_:
        raise VerifyException(f"result type {type_} does not match the type of the value, {own}")
    if isinstance(type_, IntegerType) and type_.signedness.data != Signedness.SIGNLESS:
        raise VerifyException("integer return type must be signless")


@irdl_op_definition
class RemFOp(IRDLOperation):
    """Floating-point remainder with the sign of the dividend (MLIR: arith.remf)."""

    T: ClassVar = VarConstraint("T", AnyAttr())
    name = "arith.remf"
    lhs = operand_def(T)
    rhs = operand_def(T)
    result = result_def(T)
    fastmath = prop_def(arith.FastMathFlagsAttr, default_value=arith.FastMathFlagsAttr("none"))
    traits = traits_def(Pure())
    assembly_format = "$lhs `,` $rhs (`fastmath` `` $fastmath^)? attr-dict `:` type($result)"

    def __init__(self, lhs: SSAValue | Operation, rhs: SSAValue | Operation):
        super().__init__(operands=[lhs, rhs], result_types=[SSAValue.get(lhs).type])

    def verify_(self) -> None:
        check_kind(self.lhs.type, "float")


def _number_op(op_name: str, what: str) -> type[IRDLOperation]:
    t = VarConstraint("T", AnyAttr())

    def init(self, lhs: SSAValue | Operation, rhs: SSAValue | Operation):
        IRDLOperation.__init__(self, operands=[lhs, rhs], result_types=[SSAValue.get(lhs).type])

    namespace = {
        "__doc__": f"{what} of two numbers; the other one if one is NaN (MLIR: {op_name}).",
        "__module__": __name__,
        "__annotations__": {},
        "name": op_name,
        "lhs": operand_def(t),
        "rhs": operand_def(t),
        "result": result_def(t),
        "fastmath": prop_def(
            arith.FastMathFlagsAttr, default_value=arith.FastMathFlagsAttr("none")
        ),
        "traits": traits_def(Pure()),
        "assembly_format": "$lhs `,` $rhs (`fastmath` `` $fastmath^)? attr-dict `:` type($result)",
        "__init__": init,
        "verify_": lambda self: check_kind(self.lhs.type, "float"),
    }
    class_name = "".join(p.capitalize() for p in op_name.split(".")[1].split("_")) + "Op"
    return irdl_op_definition(type(class_name, (IRDLOperation,), namespace))


def _scaling_op(op_name: str, what: str) -> type[IRDLOperation]:
    def init(self, value: SSAValue | Operation, scale: SSAValue | Operation, to: Attribute):
        IRDLOperation.__init__(self, operands=[value, scale], result_types=[to])

    def verify(self) -> None:
        for value in (self.in_, self.scale, self.out):
            check_kind(value.type, "float")

    namespace = {
        "__doc__": f"{what}, in blocks that share a scale (MLIR: {op_name}).",
        "__module__": __name__,
        "__annotations__": {},
        "name": op_name,
        "in_": operand_def(AnyAttr()),
        "scale": operand_def(AnyAttr()),
        "out": result_def(AnyAttr()),
        "roundingmode": opt_prop_def(AnyAttr()),
        "fastmath": opt_prop_def(arith.FastMathFlagsAttr),
        "traits": traits_def(Pure()),
        "parse": classmethod(_parse_rounding_cast),
        "print": _print_rounding_cast,
        "__init__": init,
        "verify_": verify,
    }
    class_name = "".join(p.capitalize() for p in op_name.split(".")[1].split("_")) + "Op"
    return irdl_op_definition(type(class_name, (IRDLOperation,), namespace))


ScalingExtFOp = _scaling_op("arith.scaling_extf", "A wider float times its scale")
ScalingTruncFOp = _scaling_op("arith.scaling_truncf", "A narrower float, divided by its scale")

MaximumNumFOp = _number_op("arith.maximumnumf", "The greater")
MinimumNumFOp = _number_op("arith.minimumnumf", "The smaller")


@irdl_op_definition
class IndexCastUIOp(IRDLOperation):
    """Casts between index and an unsigned integer (MLIR: arith.index_castui)."""

    name = "arith.index_castui"
    input = operand_def()
    result = result_def()
    nonNeg = opt_prop_def()
    irdl_options = (ParsePropInAttrDict(),)
    traits = traits_def(Pure())
    assembly_format = "$input attr-dict `:` type($input) `to` type($result)"

    def __init__(self, input: SSAValue | Operation, target: Attribute):
        super().__init__(operands=[input], result_types=[target])

    def verify_(self) -> None:
        if {_kind(self.input.type), _kind(self.result.type)} != {"integer", "index"}:
            raise VerifyException("expected a cast between index and an integer")
        _same_shape(self.input.type, self.result.type)


def _any(cls: type[IRDLOperation], *names: str) -> None:
    """Allows any type for these operands and results; the op's verifier checks them instead."""
    definition = cls.get_irdl_definition()
    for defs, kind in ((definition.operands, OperandDef), (definition.results, ResultDef)):
        for index, (name, _) in enumerate(defs):
            if name in names:
                defs[index] = (name, kind(AnyAttr()))


def _scalars_only(pattern_class) -> None:
    """Restricts an xDSL pattern to scalars, because it builds scalar constants."""
    original = pattern_class.match_and_rewrite

    def match_and_rewrite(self, op, rewriter, /):
        if any(isinstance(v.type, ShapedType) for v in (*op.operands, *op.results)):
            return
        original(self, op, rewriter)

    pattern_class.match_and_rewrite = match_and_rewrite


@cache
def patch() -> None:
    """Patches xDSL's arith classes and float constants in place, once."""
    builtin.patch()
    for cls, kinds in ((arith.CmpiOp, ("integer", "index")), (arith.CmpfOp, ("float",))):
        _any(cls, "lhs", "rhs", "result")
        cls.verify_ = _verify_compare(*kinds)
    arith.CmpiOp.parse = classmethod(_parse_cmpi)
    arith.CmpfOp.parse = classmethod(_parse_cmpf)
    arith.CmpiOp.__init__ = _init_compare(arith.CMPI_COMPARISON_OPERATIONS, fastmath=False)
    arith.CmpfOp.__init__ = _init_compare(arith.CMPF_COMPARISON_OPERATIONS, fastmath=True)

    _any(arith.SelectOp, "cond")
    arith.SelectOp.parse = classmethod(_parse_select)
    arith.SelectOp.print = _print_select
    arith.SelectOp.verify_ = _verify_select

    integer, floating = ("integer",), ("float",)
    for cls, source, dest, width in (
        (arith.ExtFOp, floating, floating, "grows"),
        (arith.TruncFOp, floating, floating, "shrinks"),
        (arith.ExtSIOp, integer, integer, "grows"),
        (arith.ExtUIOp, integer, integer, "grows"),
        (arith.TruncIOp, integer, integer, "shrinks"),
        (arith.SIToFPOp, integer, floating, ""),
        (arith.UIToFPOp, integer, floating, ""),
        (arith.FPToSIOp, floating, integer, ""),
        (arith.FPToUIOp, floating, integer, ""),
    ):
        _any(cls, "input", "result")
        cls.verify_ = _verify_cast(source, dest, width)
    for cls in (arith.ExtFOp, arith.TruncFOp):
        properties = cls.get_irdl_definition().properties
        properties.setdefault("fastmath", OptPropertyDef(AnyAttr()))
        properties.setdefault("roundingmode", OptPropertyDef(AnyAttr()))
        cls.parse = classmethod(_parse_rounding_cast)
        cls.print = _print_rounding_cast
    _any(arith.IndexCastOp, "input", "result")
    arith.IndexCastOp.verify_ = _verify_index_cast
    _any(arith.BitcastOp, "input", "result")
    arith.BitcastOp.verify_ = _verify_bitcast
    arith.ConstantOp.verify_ = _verify_constant

    from xdsl.transforms.canonicalization_patterns import arith as patterns

    for name in (
        "ApplyCmpiPredicateToEqualOperands",
        "SelectTrueFalsePattern",
        "SelectFoldCmpfPattern",
        "SelectConstPattern",
    ):
        if (pattern := getattr(patterns, name, None)) is not None:
            _scalars_only(pattern)


OPS = [RemFOp, MaximumNumFOp, MinimumNumFOp, ScalingExtFOp, ScalingTruncFOp, IndexCastUIOp]
ATTRS = [RoundingModeAttr]
__all__ = ["ATTRS", "OPS", "check_kind", "element_type", "patch", "with_element"]
