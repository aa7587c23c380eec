"""
Dispatches on resources, and regions of work that are scheduled together:

    %r, %t = stream.async.execute on(#a) await(%s) => with(%x as %y: T{%n}) -> %x{%n} {
      %d = stream.async.dispatch @e::@f(%y[%c0 to %n for %n]) : (T{%n}) -> %y{%n}
      stream.yield %d : T{%n}
    } => !stream.timepoint
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from xdsl.dialects.builtin import ArrayAttr, IndexType, SymbolRefAttr
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.irdl import (
    AttrSizedOperandSegments,
    IRDLOperation,
    SameVariadicOperandSize,
    irdl_op_definition,
    opt_operand_def,
    opt_prop_def,
    prop_def,
    region_def,
    result_def,
    traits_def,
    var_operand_def,
    var_result_def,
)
from xdsl.parser import Parser, UnresolvedOperand
from xdsl.printer import Printer
from xdsl.traits import IsTerminator, Pure
from xdsl.utils.exceptions import VerifyException

from .._shaped import (
    SizedFunctionType,
    SizedResults,
    SizedTypes,
    parse_entry_points,
    parse_sizes,
    parse_workload,
    print_entry_points,
    print_sized_function_type,
    print_sized_results,
    print_sizes,
    print_workload,
    tied_attr,
    verify_tied,
)
from ..hal.devices import Affinity
from .types import ResourceType, TimepointType


def _parse_in_parens(parser: Parser, keyword: str) -> Attribute | None:
    if parser.parse_optional_keyword(keyword) is None:
        return None
    with parser.in_parens():
        return parser.parse_attribute()


def _print_affinity(printer: Printer, affinity: Attribute | None) -> None:
    if affinity is not None:
        printer.print_string(" on(")
        printer.print_attribute(affinity)
        printer.print_string(")")


@irdl_op_definition
class AsyncDispatchOp(IRDLOperation):
    """
    Runs a kernel on ranges of resources and on scalars (IREE: `stream.async.dispatch`).

    There is one offset, end and length per operand that is a resource, in order.
    """

    name = "stream.async.dispatch"

    workload = var_operand_def(IndexType)
    resource_operands = var_operand_def()
    resource_operand_sizes = var_operand_def(IndexType)
    resource_operand_offsets = var_operand_def(IndexType)
    resource_operand_ends = var_operand_def(IndexType)
    resource_operand_lengths = var_operand_def(IndexType)
    result_sizes = var_operand_def(IndexType)
    entry_points = prop_def(ArrayAttr[SymbolRefAttr])
    tied_operands = opt_prop_def(ArrayAttr)
    affinity = opt_prop_def(Affinity)
    res = var_result_def(ResourceType)

    irdl_options = (AttrSizedOperandSegments(as_property=True),)
    traits = traits_def(Pure())

    def verify_(self) -> None:
        resources = sum(isinstance(v.type, ResourceType) for v in self.resource_operands)
        ranges = (
            self.resource_operand_sizes,
            self.resource_operand_offsets,
            self.resource_operand_ends,
            self.resource_operand_lengths,
        )
        if any(len(each) != resources for each in ranges):
            raise VerifyException("expected a size and a range for each resource operand")
        if len(self.result_sizes) != len(self.res):
            raise VerifyException("expected a size for each result")
        verify_tied(self.tied_operands, len(self.res), len(self.resource_operands))

    @classmethod
    def parse(cls, parser: Parser) -> AsyncDispatchOp:
        affinity = _parse_in_parens(parser, "on")
        entries = parse_entry_points(parser)
        workload = parse_workload(parser)
        ranges: list[list[SSAValue]] = [[], [], []]

        def index() -> SSAValue:
            return parser.resolve_operand(parser.parse_unresolved_operand(), IndexType())

        def operand() -> UnresolvedOperand:
            name = parser.parse_unresolved_operand()
            if parser.parse_optional_punctuation("["):
                ranges[0].append(index())
                parser.parse_keyword("to")
                ranges[1].append(index())
                parser.parse_keyword("for")
                ranges[2].append(index())
                parser.parse_punctuation("]")
            return name

        names = parser.parse_comma_separated_list(Parser.Delimiter.PAREN, operand)
        attributes = parser.parse_optional_attr_dict()
        parser.parse_punctuation(":")
        found = SizedFunctionType(parser, names)
        return cls.build(
            operands=[workload, found.operands, found.operand_sizes, *ranges, found.result_sizes],
            properties={
                "entry_points": entries,
                "tied_operands": tied_attr(found.tied),
                "affinity": affinity,
            },
            attributes=attributes,
            result_types=[found.types],
        )

    def print(self, printer: Printer) -> None:
        _print_affinity(printer, self.affinity)
        print_entry_points(printer, self.entry_points)
        print_workload(printer, self.workload)
        ranges = zip(
            self.resource_operand_offsets,
            self.resource_operand_ends,
            self.resource_operand_lengths,
            strict=True,
        )
        with printer.in_parens():
            printer.print_list(self.resource_operands, lambda v: _print_range(printer, v, ranges))
        printer.print_op_attributes(self.attributes)
        printer.print_string(" : ")
        print_sized_function_type(
            printer,
            self.resource_operands,
            self.resource_operand_sizes,
            self.res.types,
            self.result_sizes,
            self.tied_operands,
        )


def _print_range(
    printer: Printer, value: SSAValue, ranges: Iterator[tuple[SSAValue, SSAValue, SSAValue]]
) -> None:
    printer.print_ssa_value(value)
    if not isinstance(value.type, ResourceType):
        return
    offset, end, length = next(ranges)
    with printer.in_square_brackets():
        printer.print_ssa_value(offset)
        printer.print_string(" to ")
        printer.print_ssa_value(end)
        printer.print_string(" for ")
        printer.print_ssa_value(length)


@irdl_op_definition
class AsyncExecuteOp(IRDLOperation):
    """
    Executes its region after a timepoint and returns the timepoint of its completion
    (IREE: `stream.async.execute`).
    """

    name = "stream.async.execute"

    resource_operands = var_operand_def(ResourceType)
    resource_operand_sizes = var_operand_def(IndexType)
    result_sizes = var_operand_def(IndexType)
    await_timepoint = opt_operand_def(TimepointType)
    tied_operands = opt_prop_def(ArrayAttr)
    affinity = opt_prop_def(Affinity)
    res = var_result_def(ResourceType)
    result_timepoint = result_def(TimepointType)
    body = region_def()

    irdl_options = (AttrSizedOperandSegments(as_property=True),)

    def verify_(self) -> None:
        if len(self.resource_operand_sizes) != len(self.resource_operands):
            raise VerifyException("expected a size for each operand")
        if len(self.result_sizes) != len(self.res):
            raise VerifyException("expected a size for each result")
        verify_tied(self.tied_operands, len(self.res), len(self.resource_operands))
        if self.body.block.arg_types != self.resource_operands.types:
            raise VerifyException("expected the region to have the operands as arguments")

    @classmethod
    def parse(cls, parser: Parser) -> AsyncExecuteOp:
        affinity = _parse_in_parens(parser, "on")
        awaited: list[SSAValue] = []
        if parser.parse_optional_keyword("await"):
            with parser.in_parens():
                name = parser.parse_unresolved_operand()
            awaited = [parser.resolve_operand(name, TimepointType())]
            parser.parse_punctuation("=")
            parser.parse_punctuation(">")
        parser.parse_keyword("with")
        names: list[UnresolvedOperand] = []
        sizes: list[SSAValue] = []

        def capture() -> Parser.Argument:
            names.append(parser.parse_unresolved_operand())
            parser.parse_keyword("as")
            argument = parser.parse_argument()
            sizes.extend(parse_sizes(parser))
            return argument

        arguments = parser.parse_comma_separated_list(Parser.Delimiter.PAREN, capture)
        operands = parser.resolve_operands(names, [a.type for a in arguments], parser.pos)
        results = SizedResults(names, operands)
        if parser.parse_optional_punctuation("->"):
            results.parse(parser)
        body = parser.parse_region(arguments)
        parser.parse_punctuation("=")
        parser.parse_punctuation(">")
        timepoint = parser.parse_type()
        attributes = parser.parse_optional_attr_dict_with_keyword()
        return cls.build(
            operands=[operands, sizes, results.sizes, awaited],
            properties={"tied_operands": tied_attr(results.tied), "affinity": affinity},
            attributes=attributes.data if attributes else {},
            result_types=[results.types, timepoint],
            regions=[body],
        )

    def print(self, printer: Printer) -> None:
        _print_affinity(printer, self.affinity)
        if self.await_timepoint is not None:
            printer.print_string(" await(")
            printer.print_ssa_value(self.await_timepoint)
            printer.print_string(") =>")
        printer.print_string(" with")
        captures = zip(
            self.resource_operands, self.body.block.args, self.resource_operand_sizes, strict=True
        )

        def capture(each: tuple[SSAValue, SSAValue, SSAValue]) -> None:
            operand, argument, size = each
            printer.print_ssa_value(operand)
            printer.print_string(" as ")
            printer.print_ssa_value(argument)
            printer.print_string(": ")
            printer.print_attribute(argument.type)
            print_sizes(printer, [size])

        with printer.in_parens():
            printer.print_list(list(captures), capture)
        if self.res:
            printer.print_string(" -> ")
            print_sized_results(
                printer,
                self.resource_operands,
                self.res.types,
                self.result_sizes,
                self.tied_operands,
            )
        printer.print_string(" ")
        printer.print_region(self.body, print_entry_block_args=False)
        printer.print_string(" => ")
        printer.print_attribute(self.result_timepoint.type)
        printer.print_op_attributes(self.attributes, print_keyword=True)


@irdl_op_definition
class YieldOp(IRDLOperation):
    """Ends a region with its results and their sizes (IREE: `stream.yield`)."""

    name = "stream.yield"

    resource_operands = var_operand_def(ResourceType)
    resource_operand_sizes = var_operand_def(IndexType)

    irdl_options = (SameVariadicOperandSize(),)
    custom_directives = (SizedTypes,)
    assembly_format = (
        "attr-dict ($resource_operands^ `:` "
        "custom<SizedTypes>(type($resource_operands), $resource_operand_sizes))?"
    )
    traits = traits_def(IsTerminator(), Pure())

    def __init__(self, values: Sequence[SSAValue], sizes: Sequence[SSAValue]):
        super().__init__(operands=[values, sizes])


OPS: list[type[Operation]] = [AsyncDispatchOp, AsyncExecuteOp, YieldOp]
