"""
ml_program loads and stores of globals, which torch-mlir uses for random-number state.
"""

from __future__ import annotations

from functools import cache

from xdsl.dialects import ml_program
from xdsl.dialects.builtin import StringAttr, SymbolRefAttr, UnitAttr
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.irdl import (
    IRDLOperation,
    irdl_op_definition,
    operand_def,
    prop_def,
    result_def,
    traits_def,
)
from xdsl.irdl.operations import OptPropertyDef
from xdsl.parser import Parser
from xdsl.printer import Printer

from ._effects import ReadsMemory, WritesMemory


@irdl_op_definition
class GlobalLoadOp(IRDLOperation):
    """Loads the value of a mutable global (MLIR: ml_program.global_load)."""

    name = "ml_program.global_load"
    global_ = prop_def(SymbolRefAttr, prop_name="global")
    result = result_def()
    traits = traits_def(ReadsMemory())
    assembly_format = "$global attr-dict `:` type($result)"

    def __init__(self, symbol: str | SymbolRefAttr, result_type: Attribute):
        symbol = SymbolRefAttr(symbol) if isinstance(symbol, str) else symbol
        super().__init__(properties={"global": symbol}, result_types=[result_type])


@irdl_op_definition
class GlobalStoreOp(IRDLOperation):
    """Stores a value to a mutable global (MLIR: ml_program.global_store)."""

    name = "ml_program.global_store"
    global_ = prop_def(SymbolRefAttr, prop_name="global")
    value = operand_def()
    traits = traits_def(WritesMemory())
    assembly_format = "$global `=` $value attr-dict `:` type($value)"

    def __init__(self, symbol: str | SymbolRefAttr, value: SSAValue | Operation):
        symbol = SymbolRefAttr(symbol) if isinstance(symbol, str) else symbol
        super().__init__(properties={"global": symbol}, operands=[value])


def _parse_global(cls: type[ml_program.GlobalOp], parser: Parser) -> ml_program.GlobalOp:
    visibility = parser.parse_optional_visibility_keyword()
    mutable = parser.parse_optional_keyword("mutable") is not None
    name = parser.parse_symbol_name()
    value = None
    if parser.parse_optional_punctuation("("):
        value = parser.parse_attribute()
        parser.parse_punctuation(")")
    parser.parse_punctuation(":")
    type_ = parser.parse_type()
    op = cls(name, type_, UnitAttr() if mutable else None, value, visibility)
    op.attributes |= parser.parse_optional_attr_dict()
    return op


def _print_global(op: ml_program.GlobalOp, printer: Printer) -> None:
    visibility = op.properties.get("sym_visibility")
    if isinstance(visibility, StringAttr):
        printer.print_string(f" {visibility.data}")
    if op.is_mutable is not None:
        printer.print_string(" mutable")
    printer.print_string(" ")
    printer.print_symbol_name(op.sym_name.data)
    if op.value is not None:
        with printer.in_parens():
            printer.print_attribute(op.value)
    printer.print_string(" : ")
    printer.print_attribute(op.type)
    printer.print_op_attributes(op.attributes)


@cache
def patch() -> None:
    """Makes the visibility of `ml_program.global` optional and parses MLIR's syntax."""
    definition = ml_program.GlobalOp.get_irdl_definition()
    old = definition.properties["sym_visibility"]
    definition.properties["sym_visibility"] = OptPropertyDef(old.constr)
    ml_program.GlobalOp.parse = classmethod(_parse_global)
    ml_program.GlobalOp.print = _print_global


OPS = [GlobalLoadOp, GlobalStoreOp]
