"""util ops that give facts to the compiler or hide them: assume.int, optimization_barrier, ..."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects import func, scf
from xdsl.dialects.builtin import (
    ArrayAttr,
    DictionaryAttr,
    IndexType,
    IntegerAttr,
    IntegerType,
    i64,
)
from xdsl.ir import Attribute, Operation, ParametrizedAttribute, SSAValue
from xdsl.irdl import (
    IRDLOperation,
    irdl_attr_definition,
    irdl_op_definition,
    operand_def,
    prop_def,
    result_def,
    traits_def,
    var_operand_def,
    var_result_def,
)
from xdsl.parser import AttrParser, Parser
from xdsl.printer import Printer
from xdsl.traits import (
    Pure,
)
from xdsl.utils.exceptions import VerifyException

_BOUNDS = ("umin", "umax", "udiv")
VIOLATED = "an operand of util.assume.int is not what is assumed"
"""Message of the trap that a wrong assumption causes."""


@irdl_attr_definition
class IntAssumptionAttr(ParametrizedAttribute):
    """
    `#util.int.assumption<umin = 0, umax = 10, udiv = 8>`: bounds and a divisor of an integer;
    unknown ones are omitted (IREE: UtilAttrs.td).
    """

    name = "util.int.assumption"
    bounds: DictionaryAttr

    @classmethod
    def of(
        cls, umin: int | None = None, umax: int | None = None, udiv: int | None = None
    ) -> IntAssumptionAttr:
        """Returns the assumption with these bounds."""
        given = {"umin": umin, "umax": umax, "udiv": udiv}
        return cls(
            DictionaryAttr({k: IntegerAttr(v, i64) for k, v in given.items() if v is not None})
        )

    def get(self, bound: str) -> int | None:
        """Returns `umin`, `umax` or `udiv`, None if it is unknown."""
        attr = self.bounds.data.get(bound)
        # All three are unsigned, but an i64 attribute stores a signed value.
        return None if attr is None else attr.value.data % (1 << 64)  # type: ignore[attr-defined]

    def holds(self, number: int) -> bool:
        """Whether an unsigned number has the bounds and the divisor."""
        low, high, divisor = (self.get(bound) for bound in _BOUNDS)
        inside = (low is None or low <= number) and (high is None or number <= high)
        return inside and (not divisor or number % divisor == 0)

    @classmethod
    def parse_parameters(cls, parser: AttrParser) -> tuple[DictionaryAttr]:
        def entry() -> tuple[str, Attribute]:
            key = parser.parse_identifier()
            if key not in _BOUNDS:
                parser.raise_error("expected umin, umax or udiv")
            parser.parse_punctuation("=")
            return key, IntegerAttr(parser.parse_integer(), i64)

        entries = parser.parse_comma_separated_list(parser.Delimiter.ANGLE, entry)
        return (DictionaryAttr(dict(entries)),)

    def print_parameters(self, printer: Printer) -> None:
        known = [f"{key} = {self.get(key)}" for key in _BOUNDS if self.get(key) is not None]
        printer.print_string("<" + ", ".join(known) + ">")


def is_on_host(op: Operation) -> bool:
    """Whether an op is nested only in a function and in scf for, if and while ops."""
    around = op.parent_op()
    while around is not None and not isinstance(around, func.FuncOp):
        if not isinstance(around, scf.ForOp | scf.IfOp | scf.WhileOp):
            return False
        around = around.parent_op()
    return around is not None


@irdl_attr_definition
class InlineNeverAttr(ParametrizedAttribute):
    """`#util.inline.never`: calls of the function are never inlined (IREE: UtilAttrs.td)."""

    name = "util.inline.never"


@irdl_attr_definition
class InlineAlwaysAttr(ParametrizedAttribute):
    """`#util.inline.always`: calls of the function are inlined if possible."""

    name = "util.inline.always"


@irdl_op_definition
class AssumeIntOp(IRDLOperation):
    """
    Returns its operands with added facts: for each, at least one of its assumptions holds
    (IREE: util.assume.int).
    """

    name = "util.assume.int"
    values = var_operand_def()
    assumptions = prop_def(ArrayAttr[ArrayAttr[IntAssumptionAttr]])
    res = var_result_def()
    traits = traits_def(Pure())

    def __init__(
        self, values: Sequence[SSAValue], assumptions: Sequence[Sequence[IntAssumptionAttr]]
    ):
        super().__init__(
            operands=[values],
            result_types=[[value.type for value in values]],
            properties={"assumptions": ArrayAttr([ArrayAttr(each) for each in assumptions])},
        )

    @classmethod
    def parse(cls, parser: Parser) -> AssumeIntOp:
        start = parser.pos

        def assumption() -> IntAssumptionAttr:
            return IntAssumptionAttr(*IntAssumptionAttr.parse_parameters(parser))

        def operand():
            value = parser.parse_unresolved_operand()
            several = parser.parse_optional_comma_separated_list(
                parser.Delimiter.SQUARE, assumption
            )
            return value, [assumption()] if several is None else several

        pairs = parser.parse_comma_separated_list(parser.Delimiter.NONE, operand)
        attributes = parser.parse_optional_attr_dict()
        parser.parse_punctuation(":")
        types = parser.parse_comma_separated_list(parser.Delimiter.NONE, parser.parse_type)
        values = parser.resolve_operands([value for value, _ in pairs], types, start)
        op = cls(list(values), [each for _, each in pairs])
        op.attributes |= attributes
        return op

    def print(self, printer: Printer) -> None:
        for position, (value, each) in enumerate(zip(self.values, self.assumptions)):
            printer.print_string(", " if position else " ")
            printer.print_ssa_value(value)
            if len(each) == 1:
                each.data[0].print_parameters(printer)
            else:
                with printer.in_square_brackets():
                    printer.print_list(
                        each, lambda assumption: assumption.print_parameters(printer)
                    )
        printer.print_op_attributes(self.attributes)
        printer.print_string(" : ")
        printer.print_list([value.type for value in self.values], printer.print_attribute)

    def verify_(self) -> None:
        if len(self.assumptions) != len(self.values):
            raise VerifyException("expected assumptions for every operand")
        if [result.type for result in self.res] != [value.type for value in self.values]:
            raise VerifyException("expected results to have the types of the operands")
        if any(not isinstance(value.type, IntegerType | IndexType) for value in self.values):
            raise VerifyException("expected operands of integer or index type")


@irdl_op_definition
class OptimizationBarrierOp(IRDLOperation):
    """Returns its operands, opaque to optimizations (IREE: util.optimization_barrier)."""

    name = "util.optimization_barrier"
    values = var_operand_def()
    res = var_result_def()

    def __init__(self, values: Sequence[SSAValue]):
        super().__init__(operands=[values], result_types=[[value.type for value in values]])

    @classmethod
    def parse(cls, parser: Parser) -> OptimizationBarrierOp:
        start = parser.pos
        attributes = parser.parse_optional_attr_dict()
        values: Sequence[SSAValue] = ()
        if (first := parser.parse_optional_unresolved_operand()) is not None:
            unresolved = [first]
            while parser.parse_optional_punctuation(","):
                unresolved.append(parser.parse_unresolved_operand())
            parser.parse_punctuation(":")
            types = parser.parse_comma_separated_list(parser.Delimiter.NONE, parser.parse_type)
            values = parser.resolve_operands(unresolved, types, start)
        op = cls(values)
        op.attributes |= attributes
        return op

    def print(self, printer: Printer) -> None:
        printer.print_op_attributes(self.attributes)
        if self.values:
            printer.print_string(" ")
            printer.print_list(self.values, printer.print_ssa_value)
            printer.print_string(" : ")
            printer.print_list([value.type for value in self.values], printer.print_attribute)

    def verify_(self) -> None:
        if [result.type for result in self.res] != [value.type for value in self.values]:
            raise VerifyException("expected results to have the types of the operands")


@irdl_op_definition
class UnfoldableConstantOp(IRDLOperation):
    """A constant that no pass may fold, for tests (IREE: util.unfoldable_constant)."""

    name = "util.unfoldable_constant"
    value = prop_def(Attribute)
    result = result_def()

    def __init__(self, value: Attribute):
        super().__init__(
            properties={"value": value},
            result_types=[value.get_type() if hasattr(value, "get_type") else value.type],
        )

    @classmethod
    def parse(cls, parser: Parser) -> UnfoldableConstantOp:
        attributes = parser.parse_optional_attr_dict()
        value = parser.parse_attribute()
        if not hasattr(value, "get_type") and not hasattr(value, "type"):
            parser.raise_error("expected a typed constant")
        op = cls(value)
        op.attributes |= attributes
        return op

    def print(self, printer: Printer) -> None:
        printer.print_op_attributes(self.attributes)
        printer.print_string(" ")
        printer.print_attribute(self.value)


@irdl_op_definition
class AlignOp(IRDLOperation):
    """Rounds a value up to a multiple of a power of two (IREE: util.align)."""

    name = "util.align"
    value = operand_def(IntegerType | IndexType)
    alignment = operand_def(IntegerType | IndexType)
    result = result_def(IntegerType | IndexType)
    traits = traits_def(Pure())

    def __init__(self, value: SSAValue | Operation, alignment: SSAValue | Operation):
        super().__init__(operands=[value, alignment], result_types=[SSAValue.get(value).type])

    @classmethod
    def parse(cls, parser: Parser) -> AlignOp:
        start = parser.pos
        value = parser.parse_unresolved_operand()
        parser.parse_punctuation(",")
        alignment = parser.parse_unresolved_operand()
        attributes = parser.parse_optional_attr_dict()
        parser.parse_punctuation(":")
        type_ = parser.parse_type()
        op = cls(*parser.resolve_operands([value, alignment], [type_, type_], start))
        op.attributes |= attributes
        return op

    def print(self, printer: Printer) -> None:
        printer.print_string(" ")
        printer.print_list(self.operands, printer.print_ssa_value)
        printer.print_op_attributes(self.attributes)
        printer.print_string(" : ")
        printer.print_attribute(self.result.type)
