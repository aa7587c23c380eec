"""
Assembly syntax shared by all linalg ops: `ins(...)`, `outs(...)`, `-> types`.

These functions report parse errors where xDSL raises AssertionError or ValueError on user input.
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import ArrayAttr, StringAttr
from xdsl.dialects.linalg.attrs import IteratorType, IteratorTypeAttr
from xdsl.ir import Attribute, SSAValue
from xdsl.parser import Parser
from xdsl.printer import Printer


def parse_operand_group(parser: Parser, keyword: str) -> Sequence[SSAValue]:
    """Parses `ins(%a, %b : type, type)`, or nothing."""
    pos = parser.pos
    if parser.parse_optional_keyword(keyword) is None:
        return ()
    parser.parse_punctuation("(")
    if parser.parse_optional_punctuation(")"):
        return ()
    unresolved = parser.parse_comma_separated_list(
        parser.Delimiter.NONE, parser.parse_unresolved_operand
    )
    parser.parse_punctuation(":")
    types = parser.parse_comma_separated_list(parser.Delimiter.NONE, parser.parse_type)
    parser.parse_punctuation(")")
    return parser.resolve_operands(unresolved, types, pos)


def print_operand_group(printer: Printer, keyword: str, operands: Sequence[SSAValue]) -> None:
    """Prints operands as `parse_operand_group` reads them."""
    if not operands:
        return
    printer.print_string(f" {keyword}(")
    printer.print_list(operands, printer.print_ssa_value)
    printer.print_string(" : ")
    printer.print_list([operand.type for operand in operands], printer.print_attribute)
    printer.print_string(")")


def parse_arrow_types(parser: Parser) -> Sequence[Attribute]:
    """Parses `-> type`, `-> (type, type)`, `-> type, type`, or nothing."""
    if parser.parse_optional_punctuation("->") is None:
        return ()
    types = parser.parse_optional_comma_separated_list(parser.Delimiter.PAREN, parser.parse_type)
    if types is not None:
        return types
    return parser.parse_comma_separated_list(parser.Delimiter.NONE, parser.parse_type)


def print_arrow_types(printer: Printer, types: Sequence[Attribute], parens: bool = True) -> None:
    """
    Prints ` -> type` or ` -> (type, type)`; dialects like iree_linalg_ext omit the parentheses.
    """
    if not types:
        return
    printer.print_string(" -> ")
    if len(types) == 1 or not parens:
        printer.print_list(types, printer.print_attribute)
        return
    with printer.in_parens():
        printer.print_list(types, printer.print_attribute)


def to_iterator_types(parser: Parser, attr: Attribute) -> ArrayAttr[IteratorTypeAttr]:
    """Converts `["parallel", "reduction"]`, strings or attributes; else raises a parse error."""
    if not isinstance(attr, ArrayAttr):
        parser.raise_error("expected iterator_types to be an array")
    result: list[IteratorTypeAttr] = []
    for item in attr:
        if isinstance(item, IteratorTypeAttr):
            result.append(item)
        elif isinstance(item, StringAttr) and item.data in tuple(IteratorType):
            result.append(IteratorTypeAttr(IteratorType(item.data)))
        else:
            parser.raise_error(f"unexpected iterator_type ({item})")
    return ArrayAttr(result)


def parse_int_list(parser: Parser, keyword: str) -> list[int]:
    """Parses `keyword = [1, 2]`."""
    parser.parse_keyword(keyword)
    parser.parse_punctuation("=")
    return list(parser.parse_comma_separated_list(parser.Delimiter.SQUARE, parser.parse_integer))
