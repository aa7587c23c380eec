"""
Syntax shared by several IREE dialects: types followed by their sizes, and function types whose
results may be tied to operands.

    (tensor<?x4xf32>{%d}, i32) -> (%x as tensor<4x?xf32>{%e}, !stream.resource<transient>{%n})

A tensor has one index per dynamic dim, a resource has its size in bytes (IREE:
`ShapedFunctionType` and `ShapedTiedResult` in `Dialect/Util/IR/UtilTypes.cpp`).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice

from xdsl.dialects.builtin import (
    DYNAMIC_INDEX,
    ArrayAttr,
    IndexType,
    IntegerAttr,
    MemRefType,
    StringAttr,
    SymbolRefAttr,
    TensorType,
)
from xdsl.ir import Attribute, ParametrizedAttribute, SSAValue
from xdsl.irdl import IRDLOperation
from xdsl.irdl.declarative_assembly_format import (
    AttributeVariable,
    CustomDirective,
    OperandDirective,
    OperandVariable,
    ParsingState,
    PrintingState,
    TypeDirective,
    VariadicOperandVariable,
    irdl_custom_directive,
)
from xdsl.parser import Parser, UnresolvedOperand
from xdsl.printer import Printer
from xdsl.utils.exceptions import VerifyException
from xdsl.utils.hints import isa

UNTIED = -1
"""Entry of `tied_operands` for a result with its own storage."""


def size_count(type: Attribute) -> int:
    """Returns how many sizes follow a type."""
    if isinstance(type, ParametrizedAttribute) and type.name == "stream.resource":
        return 1
    if isinstance(type, TensorType | MemRefType):
        return type.get_shape().count(DYNAMIC_INDEX)
    return 0


def parse_sizes(parser: Parser) -> list[SSAValue]:
    """Parses `{%a, %b}`, or nothing."""
    found = parser.parse_optional_comma_separated_list(
        Parser.Delimiter.BRACES, parser.parse_unresolved_operand
    )
    return [parser.resolve_operand(each, IndexType()) for each in found or ()]


def print_sizes(printer: Printer, sizes: Sequence[SSAValue]) -> None:
    """Prints sizes as `parse_sizes` reads them."""
    if sizes:
        with printer.in_braces():
            printer.print_list(sizes, printer.print_ssa_value)


def take_sizes(type: Attribute, sizes: Iterator[SSAValue]) -> list[SSAValue]:
    """Takes the sizes of one type from the iterator over all sizes; empty if it is exhausted."""
    return list(islice(sizes, size_count(type)))


def print_sized_type(printer: Printer, type: Attribute, sizes: Iterator[SSAValue]) -> None:
    """Prints a type, then its sizes from the iterator, if any are left."""
    printer.print_attribute(type)
    print_sizes(printer, take_sizes(type, sizes))


def tied_attr(tied: Sequence[int]) -> ArrayAttr | None:
    """Returns the `tied_operands` attribute, or None if no result is tied."""
    if all(index == UNTIED for index in tied):
        return None
    return ArrayAttr([IntegerAttr(index, IndexType()) for index in tied])


def tied_indices(tied: Attribute | None, count: int) -> list[int]:
    """Returns the index of the tied operand, or `UNTIED`, for each of `count` results."""
    if not isa(tied, ArrayAttr[IntegerAttr]) or len(tied) != count:
        return [UNTIED] * count
    return [index.value.data for index in tied]


def verify_tied(tied: Attribute | None, results: int, operands: int) -> None:
    """Checks that `tied_operands` has a valid operand index or `UNTIED` for each result."""
    if tied is None or tied == ArrayAttr([]):
        return
    if not isa(tied, ArrayAttr[IntegerAttr]):
        raise VerifyException("expected tied operands to be integers")
    if len(tied) != results:
        raise VerifyException(f"has {results} results, but {len(tied)} tied operands")
    for index in tied:
        if not UNTIED <= index.value.data < operands:
            raise VerifyException(f"has no operand {index.value.data} to tie a result to")


def parse_entry_points(parser: Parser) -> ArrayAttr[SymbolRefAttr]:
    """Parses `@e::@f`, or several in braces."""

    def symbol() -> SymbolRefAttr:
        found = parser.parse_attribute()
        if not isinstance(found, SymbolRefAttr):
            parser.raise_error("expected the symbol of an entry point")
        return found

    several = parser.parse_optional_comma_separated_list(Parser.Delimiter.BRACES, symbol)
    return ArrayAttr([symbol()] if several is None else several)


def print_entry_points(printer: Printer, entries: ArrayAttr[SymbolRefAttr]) -> None:
    """Prints entry points as `parse_entry_points` reads them."""
    printer.print_string(" ")
    if len(entries) == 1:
        printer.print_attribute(entries.data[0])
        return
    with printer.in_braces():
        printer.print_list(entries, printer.print_attribute)


def parse_workload(parser: Parser) -> list[SSAValue]:
    """Parses `[%a, %b]`, or nothing."""
    found = parser.parse_optional_comma_separated_list(
        Parser.Delimiter.SQUARE, parser.parse_unresolved_operand
    )
    return [parser.resolve_operand(each, IndexType()) for each in found or ()]


def print_workload(printer: Printer, workload: Sequence[SSAValue]) -> None:
    """Prints a workload as `parse_workload` reads it."""
    if workload:
        with printer.in_square_brackets():
            printer.print_list(workload, printer.print_ssa_value)


def parse_keyed_values(parser: Parser) -> tuple[str, list[SSAValue], list[SSAValue]]:
    """Parses `"key" = [%x : T{%n}, %y : U]` into the key, the values and their sizes."""
    values: list[SSAValue] = []
    sizes: list[SSAValue] = []

    def one() -> None:
        name = parser.parse_unresolved_operand()
        parser.parse_punctuation(":")
        values.append(parser.resolve_operand(name, parser.parse_type()))
        sizes.extend(parse_sizes(parser))

    key = parser.parse_str_literal()
    parser.parse_punctuation("=")
    parser.parse_comma_separated_list(Parser.Delimiter.SQUARE, one)
    return key, values, sizes


def print_keyed_values(
    printer: Printer, key: StringAttr, values: Sequence[SSAValue], sizes: Sequence[SSAValue] = ()
) -> None:
    """Prints keyed values as `parse_keyed_values` reads them."""
    left = iter(sizes)

    def one(value: SSAValue) -> None:
        printer.print_ssa_value(value)
        printer.print_string(" : ")
        print_sized_type(printer, value.type, left)

    printer.print_string(" ")
    printer.print_attribute(key)
    printer.print_string(" = ")
    with printer.in_square_brackets():
        printer.print_list(values, one)


class SizedResults:
    """Parser of result types with their sizes and tied operands."""

    def __init__(self, names: Sequence[UnresolvedOperand], operands: Sequence[SSAValue]):
        self.types: list[Attribute] = []
        self.sizes: list[SSAValue] = []
        self.tied: list[int] = []
        self._operands = operands
        self._spelled = [(name.operand_name, name.index) for name in names]

    def parse(self, parser: Parser) -> None:
        """Parses one result, or several in parentheses."""
        several = parser.parse_optional_comma_separated_list(
            Parser.Delimiter.PAREN, lambda: self._one(parser)
        )
        if several is None:
            self._one(parser)

    def _one(self, parser: Parser) -> None:
        position = parser.pos
        operand = parser.parse_optional_unresolved_operand()
        if operand is None:
            self.tied.append(UNTIED)
            self.types.append(parser.parse_type())
        else:
            spelled = (operand.operand_name, operand.index)
            if spelled not in self._spelled:
                parser.raise_error("expected a result to be tied to an operand", position)
            self.tied.append(self._spelled.index(spelled))
            own = parser.parse_type() if parser.parse_optional_keyword("as") else None
            self.types.append(own or self._operands[self.tied[-1]].type)
        self.sizes.extend(parse_sizes(parser))


class SizedFunctionType:
    """Parser of a function type: resolved operands, result types, ties and all sizes."""

    def __init__(self, parser: Parser, names: Sequence[UnresolvedOperand]):
        self.operand_sizes: list[SSAValue] = []
        start = parser.pos
        inputs = parser.parse_comma_separated_list(
            Parser.Delimiter.PAREN, lambda: self._input(parser)
        )
        self.operands = parser.resolve_operands(names, inputs, start)
        parser.parse_punctuation("->")
        results = SizedResults(names, self.operands)
        results.parse(parser)
        self.types, self.result_sizes, self.tied = results.types, results.sizes, results.tied

    def _input(self, parser: Parser) -> Attribute:
        type_ = parser.parse_type()
        self.operand_sizes.extend(parse_sizes(parser))
        return type_


def print_sized_function_type(
    printer: Printer,
    operands: Sequence[SSAValue],
    operand_sizes: Sequence[SSAValue],
    types: Sequence[Attribute],
    result_sizes: Sequence[SSAValue],
    tied: Attribute | None,
) -> None:
    """Prints a function type as `SizedFunctionType` reads it."""
    sizes = iter(operand_sizes)
    with printer.in_parens():
        printer.print_list(operands, lambda v: print_sized_type(printer, v.type, sizes))
    printer.print_string(" -> ")
    print_sized_results(printer, operands, types, result_sizes, tied)


def print_sized_results(
    printer: Printer,
    operands: Sequence[SSAValue],
    types: Sequence[Attribute],
    result_sizes: Sequence[SSAValue],
    tied: Attribute | None,
) -> None:
    """Prints result types as `SizedResults` reads them."""
    sizes = iter(result_sizes)

    def result(each: tuple[Attribute, int]) -> None:
        type_, index = each
        if index != UNTIED:
            printer.print_ssa_value(operands[index])
        if index != UNTIED and type_ == operands[index].type:
            print_sizes(printer, take_sizes(type_, sizes))
            return
        if index != UNTIED:
            printer.print_string(" as ")
        print_sized_type(printer, type_, sizes)

    pairs = list(zip(types, tied_indices(tied, len(types)), strict=True))
    if len(pairs) == 1:
        result(pairs[0])
        return
    with printer.in_parens():
        printer.print_list(pairs, result)


@irdl_custom_directive
class TiedResult(CustomDirective):
    """`%target as T{%n}`: a result tied to operand `%target`, which has type `T`."""

    type: TypeDirective
    sizes: OperandDirective

    def parse(self, parser: Parser, state: ParsingState) -> None:
        if parser.parse_optional_unresolved_operand() is not None:
            parser.parse_keyword("as")
        self.type.parse(parser, state)
        _set_sizes(self.sizes, state, _parse_size_names(parser))

    def print(self, printer: Printer, state: PrintingState, op: IRDLOperation) -> None:
        target = self.type.inner
        assert isinstance(target, OperandVariable)
        state.print_whitespace(printer)
        printer.print_ssa_value(target.get(op))
        printer.print_string(" as ")
        printer.print_attribute(target.get(op).type)
        print_sizes(printer, _sizes(self.sizes, op))


@irdl_custom_directive
class SizedTypes(CustomDirective):
    """`T{%n}, U, V{%a, %b}`: types, each followed by its sizes."""

    types: TypeDirective
    sizes: VariadicOperandVariable

    def parse(self, parser: Parser, state: ParsingState) -> None:
        names: list[UnresolvedOperand] = []

        def one() -> Attribute:
            type_ = parser.parse_type()
            names.extend(_parse_size_names(parser))
            return type_

        self.types.set(state, parser.parse_comma_separated_list(Parser.Delimiter.NONE, one))
        self.sizes.set(state, names)

    def print(self, printer: Printer, state: PrintingState, op: IRDLOperation) -> None:
        sizes = iter(self.sizes.get(op))
        state.print_whitespace(printer)
        printer.print_list(self.types.get(op), lambda t: print_sized_type(printer, t, sizes))

    def set_empty(self, state: ParsingState) -> None:
        self.types.set_empty(state)
        self.sizes.set_empty(state)


@irdl_custom_directive
class EncodedType(CustomDirective):
    """`E as T`: a tensor's type outside the program and inside it; only `T` if they are equal."""

    encoding: AttributeVariable
    type: TypeDirective

    def parse(self, parser: Parser, state: ParsingState) -> None:
        encoding = parser.parse_type()
        self.encoding.set(state, encoding)
        type_ = parser.parse_type() if parser.parse_optional_keyword("as") else encoding
        self.type.set(state, (type_,))

    def print(self, printer: Printer, state: PrintingState, op: IRDLOperation) -> None:
        encoding, (type_,) = self.encoding.get(op), self.type.get(op)
        assert encoding is not None
        state.print_whitespace(printer)
        printer.print_attribute(encoding)
        if encoding != type_:
            printer.print_string(" as ")
            printer.print_attribute(type_)


def _parse_size_names(parser: Parser) -> list[UnresolvedOperand]:
    return (
        parser.parse_optional_comma_separated_list(
            Parser.Delimiter.BRACES, parser.parse_unresolved_operand
        )
        or []
    )


def _set_sizes(
    variable: OperandDirective, state: ParsingState, names: list[UnresolvedOperand]
) -> None:
    if isinstance(variable, VariadicOperandVariable):
        variable.set(state, names)
    elif isinstance(variable, OperandVariable):
        variable.set(state, names[0])


def _sizes(variable: OperandDirective, op: IRDLOperation) -> Sequence[SSAValue]:
    assert isinstance(variable, OperandVariable | VariadicOperandVariable)
    found = variable.get(op)
    return [found] if isinstance(found, SSAValue) else found
