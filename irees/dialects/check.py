"""
The `check` dialect: assertions on values in test programs
(IREE: `compiler/src/iree/compiler/Modules/Check/IR/CheckOps.td`).

`irees check-module` runs the functions of a module that contain them. A failed assertion ends the
run with an error that shows both sides.
"""

from __future__ import annotations

from xdsl.dialects.builtin import FloatAttr, TensorType, f32
from xdsl.ir import Attribute, Dialect, Operation, SSAValue
from xdsl.irdl import IRDLOperation, irdl_op_definition, operand_def, prop_def
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.utils.exceptions import VerifyException


class _Expectation(IRDLOperation):
    """Common assembly of the ops: `check.x(%a, %b | const, atol 0.1, rtol 0.1) : type`."""

    @classmethod
    def parse(cls, parser: Parser):
        start = parser.pos
        definition = cls.get_irdl_definition()
        properties: dict[str, Attribute] = {}
        operands = []
        with parser.in_parens():
            operands.append(parser.parse_unresolved_operand())
            if len(definition.operands) > 1:
                parser.parse_punctuation(",")
                operands.append(parser.parse_unresolved_operand())
            if "value" in definition.properties:
                parser.parse_punctuation(",")
                properties["value"] = parser.parse_attribute()
            while parser.parse_optional_punctuation(","):
                key = parser.parse_identifier()
                if key not in ("atol", "rtol") or key not in definition.properties:
                    parser.raise_error("expected atol or rtol")
                value = parser.parse_number()
                properties[key] = FloatAttr(float(value), f32)
                if parser.parse_optional_punctuation(":"):
                    parser.parse_type()
        attributes = parser.parse_optional_attr_dict()
        parser.parse_punctuation(":")
        type_ = parser.parse_type()
        return cls.create(
            operands=parser.resolve_operands(operands, [type_] * len(operands), start),
            properties=properties,
            attributes=attributes,
        )

    def print(self, printer: Printer) -> None:
        with printer.in_parens():
            printer.print_list(self.operands, printer.print_ssa_value)
            if "value" in self.properties:
                printer.print_string(", ")
                printer.print_attribute(self.properties["value"])
            definition = self.get_irdl_definition().properties
            for key in ("atol", "rtol"):
                attr = self.properties.get(key)
                if isinstance(attr, FloatAttr) and attr != definition[key].default_value:
                    printer.print_string(f", {key} ")
                    printer.print_float(attr.value.data, f32)
        printer.print_op_attributes(self.attributes)
        printer.print_string(" : ")
        printer.print_attribute(self.operands[0].type)

    def verify_(self) -> None:
        types = [operand.type for operand in self.operands]
        if "value" in self.properties:
            value = self.properties["value"]
            types.append(
                value.get_type() if hasattr(value, "get_type") else getattr(value, "type", None)
            )  # type: ignore[arg-type]
        if any(type_ != types[0] for type_ in types):
            raise VerifyException("expected both sides to have the same type")


@irdl_op_definition
class ExpectTrueOp(_Expectation):
    """Asserts that the scalar is not zero (IREE: check.expect_true)."""

    name = "check.expect_true"
    operand = operand_def()

    def __init__(self, operand: SSAValue | Operation):
        super().__init__(operands=[operand])


@irdl_op_definition
class ExpectFalseOp(_Expectation):
    """Asserts that the scalar is zero (IREE: check.expect_false)."""

    name = "check.expect_false"
    operand = operand_def()

    def __init__(self, operand: SSAValue | Operation):
        super().__init__(operands=[operand])


@irdl_op_definition
class ExpectAllTrueOp(_Expectation):
    """Asserts that no element is zero (IREE: check.expect_all_true)."""

    name = "check.expect_all_true"
    operand = operand_def(TensorType)

    def __init__(self, operand: SSAValue | Operation):
        super().__init__(operands=[operand])


@irdl_op_definition
class ExpectEqOp(_Expectation):
    """Asserts that both tensors are elementwise equal (IREE: check.expect_eq)."""

    name = "check.expect_eq"
    lhs = operand_def(TensorType)
    rhs = operand_def(TensorType)

    def __init__(self, lhs: SSAValue | Operation, rhs: SSAValue | Operation):
        super().__init__(operands=[lhs, rhs])


@irdl_op_definition
class ExpectEqConstOp(_Expectation):
    """Asserts that the tensor equals a constant (IREE: check.expect_eq_const)."""

    name = "check.expect_eq_const"
    lhs = operand_def(TensorType)
    value = prop_def(Attribute)

    def __init__(self, lhs: SSAValue | Operation, value: Attribute):
        super().__init__(operands=[lhs], properties={"value": value})


@irdl_op_definition
class ExpectAlmostEqOp(_Expectation):
    """Asserts |lhs - rhs| <= atol + rtol * |rhs| elementwise (IREE: check.expect_almost_eq)."""

    name = "check.expect_almost_eq"
    lhs = operand_def(TensorType)
    rhs = operand_def(TensorType)
    atol = prop_def(FloatAttr, default_value=FloatAttr(1e-4, f32))
    rtol = prop_def(FloatAttr, default_value=FloatAttr(0.0, f32))

    def __init__(self, lhs: SSAValue | Operation, rhs: SSAValue | Operation):
        super().__init__(operands=[lhs, rhs])


@irdl_op_definition
class ExpectAlmostEqConstOp(_Expectation):
    """
    Asserts |lhs - value| <= atol + rtol * |value| elementwise
    (IREE: check.expect_almost_eq_const).
    """

    name = "check.expect_almost_eq_const"
    lhs = operand_def(TensorType)
    value = prop_def(Attribute)
    atol = prop_def(FloatAttr, default_value=FloatAttr(1e-4, f32))
    rtol = prop_def(FloatAttr, default_value=FloatAttr(0.0, f32))

    def __init__(self, lhs: SSAValue | Operation, value: Attribute):
        super().__init__(operands=[lhs], properties={"value": value})


Check = Dialect(
    "check",
    [
        ExpectTrueOp,
        ExpectFalseOp,
        ExpectAllTrueOp,
        ExpectEqOp,
        ExpectEqConstOp,
        ExpectAlmostEqOp,
        ExpectAlmostEqConstOp,
    ],
)
