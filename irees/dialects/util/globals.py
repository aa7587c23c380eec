"""util ops for global variables: global, global.load, global.store, initializer."""

from __future__ import annotations

from xdsl.dialects.builtin import (
    FlatSymbolRefAttrConstr,
    StringAttr,
    SymbolNameConstraint,
    SymbolRefAttr,
    UnitAttr,
)
from xdsl.ir import Attribute, Operation, Region, SSAValue
from xdsl.irdl import (
    IRDLOperation,
    irdl_op_definition,
    operand_def,
    opt_prop_def,
    prop_def,
    region_def,
    result_def,
    traits_def,
)
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.traits import (
    IsolatedFromAbove,
    SymbolOpInterface,
)

from ..upstream._effects import ReadsMemory, WritesMemory


@irdl_op_definition
class GlobalOp(IRDLOperation):
    """A global variable with an optional initial value (IREE: util.global)."""

    name = "util.global"
    sym_visibility = opt_prop_def(StringAttr)
    sym_name = prop_def(SymbolNameConstraint())
    type = prop_def(Attribute)
    is_mutable = opt_prop_def(UnitAttr)
    initial_value = opt_prop_def(Attribute)
    traits = traits_def(SymbolOpInterface())

    def __init__(
        self,
        name: str,
        type: Attribute,
        initial_value: Attribute | None = None,
        *,
        mutable: bool = False,
        visibility: str | None = "private",
    ):
        super().__init__(
            properties={
                "sym_name": StringAttr(name),
                "type": type,
                "initial_value": initial_value,
                "is_mutable": UnitAttr() if mutable else None,
                "sym_visibility": StringAttr(visibility) if visibility else None,
            }
        )

    @classmethod
    def parse(cls, parser: Parser) -> GlobalOp:
        visibility = parser.parse_optional_visibility_keyword()
        mutable = parser.parse_optional_keyword("mutable") is not None
        name = parser.parse_symbol_name()
        attributes = parser.parse_optional_attr_dict()
        type_, value = None, None
        if parser.parse_optional_punctuation(":"):
            type_ = parser.parse_type()
        if parser.parse_optional_punctuation("="):
            value = parser.parse_attribute()
            if type_ is None:
                type_ = (
                    value.get_type() if hasattr(value, "get_type") else getattr(value, "type", None)
                )
        if type_ is None:
            parser.raise_error("expected the type of the global, or a typed value")
        op = cls(
            name.data, type_, value, mutable=mutable, visibility=visibility and visibility.data
        )
        op.attributes |= attributes
        return op

    def print(self, printer: Printer) -> None:
        if self.sym_visibility is not None:
            printer.print_string(f" {self.sym_visibility.data}")
        if self.is_mutable is not None:
            printer.print_string(" mutable")
        printer.print_string(" ")
        printer.print_symbol_name(self.sym_name.data)
        printer.print_op_attributes(self.attributes)
        value = self.initial_value
        own = value.get_type() if hasattr(value, "get_type") else getattr(value, "type", None)
        if value is None or own != self.type:
            printer.print_string(" : ")
            printer.print_attribute(self.type)
        if value is not None:
            printer.print_string(" = ")
            printer.print_attribute(value)


@irdl_op_definition
class GlobalLoadOp(IRDLOperation):
    """Loads the value of a global (IREE: util.global.load)."""

    name = "util.global.load"
    global_ = prop_def(FlatSymbolRefAttrConstr, prop_name="global")
    is_immutable = opt_prop_def(UnitAttr)
    result = result_def()
    traits = traits_def(ReadsMemory())
    assembly_format = "(`immutable` $is_immutable^)? $global attr-dict `:` type($result)"

    def __init__(self, symbol: str | SymbolRefAttr, result_type: Attribute):
        symbol = SymbolRefAttr(symbol) if isinstance(symbol, str) else symbol
        super().__init__(properties={"global": symbol}, result_types=[result_type])


@irdl_op_definition
class GlobalStoreOp(IRDLOperation):
    """Stores to a mutable global, or initializes an immutable one (IREE: util.global.store)."""

    name = "util.global.store"
    value = operand_def()
    global_ = prop_def(FlatSymbolRefAttrConstr, prop_name="global")
    traits = traits_def(WritesMemory())
    assembly_format = "$value `,` $global attr-dict `:` type($value)"

    def __init__(self, value: SSAValue | Operation, symbol: str | SymbolRefAttr):
        symbol = SymbolRefAttr(symbol) if isinstance(symbol, str) else symbol
        super().__init__(operands=[value], properties={"global": symbol})


@irdl_op_definition
class InitializerOp(IRDLOperation):
    """Runs once, in module order, before any function is called (IREE: util.initializer)."""

    name = "util.initializer"
    body = region_def()
    traits = traits_def(IsolatedFromAbove())
    assembly_format = "attr-dict-with-keyword $body"

    def __init__(self, body: Region):
        super().__init__(regions=[body])
