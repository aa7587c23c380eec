"""util ops for functions: func, return, call."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from xdsl.dialects.builtin import (
    ArrayAttr,
    DictionaryAttr,
    FlatSymbolRefAttrConstr,
    FunctionType,
    StringAttr,
    SymbolNameConstraint,
    SymbolRefAttr,
)
from xdsl.ir import Attribute, Operation, Region, SSAValue
from xdsl.irdl import (
    IRDLOperation,
    ParsePropInAttrDict,
    irdl_op_definition,
    opt_prop_def,
    prop_def,
    region_def,
    traits_def,
    var_operand_def,
    var_result_def,
)
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.traits import (
    IsolatedFromAbove,
    IsTerminator,
    Pure,
    SymbolOpInterface,
)
from xdsl.utils.exceptions import VerifyException

from .._shaped import (
    UNTIED,
    SizedFunctionType,
    print_sized_function_type,
    tied_attr,
    verify_tied,
)


@irdl_op_definition
class ReturnOp(IRDLOperation):
    """Ends a `util.func` or a `util.initializer` (IREE: util.return)."""

    name = "util.return"
    values = var_operand_def()
    traits = traits_def(IsTerminator(), Pure())
    assembly_format = "attr-dict ($values^ `:` type($values))?"

    def __init__(self, *values: SSAValue | Operation):
        super().__init__(operands=[values])


@dataclass
class _Signature:
    """The arguments and results of a function, as far as they have been parsed."""

    parser: Parser
    named: list[Parser.Argument] = field(default_factory=list[Parser.Argument])
    inputs: list[Attribute] = field(default_factory=list[Attribute])
    input_attributes: list[dict[str, Attribute]] = field(default_factory=list)
    outputs: list[Attribute] = field(default_factory=list[Attribute])
    output_attributes: list[dict[str, Attribute]] = field(default_factory=list)
    tied: list[int] = field(default_factory=list[int])

    def parse(self) -> None:
        """Parses `(%a: i32, ..) -> (%a as i32, ..)`; a declaration has types only."""
        parser = self.parser
        parser.parse_comma_separated_list(parser.Delimiter.PAREN, self._argument)
        if self.named and len(self.named) != len(self.inputs):
            parser.raise_error("expected all arguments to be named, or none")
        if not parser.parse_optional_punctuation("->"):
            return
        in_parens = parser.parse_optional_comma_separated_list(
            parser.Delimiter.PAREN, self._result_with_attributes
        )
        if in_parens is None:
            parser.parse_comma_separated_list(parser.Delimiter.NONE, self._result)

    def _argument(self) -> None:
        found = self.parser.parse_optional_argument()
        self.inputs.append(self.parser.parse_type() if found is None else found.type)
        self.input_attributes.append(self.parser.parse_optional_dictionary_attr_dict())
        if found is not None:
            self.named.append(found)
            self.parser.parse_optional_location()

    def _result(self) -> None:
        operand = self.parser.parse_optional_unresolved_operand()
        if operand is None:
            self.tied.append(UNTIED)
            self.outputs.append(self.parser.parse_type())
            return
        names = [argument.name.text for argument in self.named]
        if operand.span.text not in names:
            self.parser.raise_error("expected a result to be tied to an argument", operand.span)
        index = names.index(operand.span.text)
        self.tied.append(index)
        typed = self.parser.parse_optional_keyword("as")
        self.outputs.append(self.parser.parse_type() if typed else self.inputs[index])

    def _result_with_attributes(self) -> None:
        self._result()
        self.output_attributes.append(self.parser.parse_optional_dictionary_attr_dict())


def _attrs(attributes: Sequence[dict[str, Attribute]]) -> ArrayAttr | None:
    return ArrayAttr([DictionaryAttr(a) for a in attributes]) if any(attributes) else None


@irdl_op_definition
class FuncOp(IRDLOperation):
    """A function; a result may be tied to an argument and reuse its storage (IREE: util.func)."""

    name = "util.func"
    sym_name = prop_def(SymbolNameConstraint())
    function_type = prop_def(FunctionType)
    tied_operands = opt_prop_def(ArrayAttr)
    sym_visibility = opt_prop_def(StringAttr)
    arg_attrs = opt_prop_def(ArrayAttr[DictionaryAttr])
    res_attrs = opt_prop_def(ArrayAttr[DictionaryAttr])
    inlining_policy = opt_prop_def(Attribute)
    body = region_def()
    irdl_options = (ParsePropInAttrDict(),)
    traits = traits_def(IsolatedFromAbove(), SymbolOpInterface())

    def __init__(
        self,
        name: str,
        function_type: FunctionType,
        body: Region,
        *,
        visibility: str | None = None,
        properties: Mapping[str, Attribute | None] = {},
    ):
        super().__init__(
            properties={
                "sym_name": StringAttr(name),
                "function_type": function_type,
                "sym_visibility": StringAttr(visibility) if visibility else None,
                **properties,
            },
            regions=[body],
        )

    @classmethod
    def parse(cls, parser: Parser) -> FuncOp:
        visibility = parser.parse_optional_visibility_keyword()
        name = parser.parse_symbol_name()
        signature = _Signature(parser)
        signature.parse()
        named = signature.named
        attributes = parser.parse_optional_attr_dict_with_keyword()
        body = parser.parse_optional_region(named) if named or not signature.inputs else None
        op = cls(
            name.data,
            FunctionType.from_lists(signature.inputs, signature.outputs),
            Region() if body is None else body,
            visibility=visibility.data if visibility else None,
            properties={
                "arg_attrs": _attrs(signature.input_attributes),
                "res_attrs": _attrs(signature.output_attributes),
                "tied_operands": tied_attr(signature.tied),
            },
        )
        for key, value in (attributes.data if attributes is not None else {}).items():
            target = op.properties if key == "inlining_policy" else op.attributes
            target[key] = value
        return op

    def print(self, printer: Printer) -> None:
        if self.sym_visibility is not None:
            printer.print_string(f" {self.sym_visibility.data}")
        printer.print_string(" ")
        printer.print_symbol_name(self.sym_name.data)
        entry = self.body.first_block
        attrs = (
            self.arg_attrs.data
            if self.arg_attrs is not None
            else [DictionaryAttr({})] * len(self.function_type.inputs)
        )
        with printer.in_parens():
            for position, (type_, extra) in enumerate(zip(self.function_type.inputs, attrs)):
                printer.print_string(", " if position else "")
                if entry is not None:
                    printer.print_ssa_value(entry.args[position])
                    printer.print_string(": ")
                printer.print_attribute(type_)
                if extra.data:
                    printer.print_string(" ")
                    printer.print_attribute(extra)
        self._print_results(printer)
        extra = dict(self.attributes)
        if self.inlining_policy is not None:
            extra["inlining_policy"] = self.inlining_policy
        printer.print_op_attributes(extra, print_keyword=True)
        if entry is not None:
            printer.print_string(" ")
            printer.print_region(self.body, False, False)

    def _print_results(self, printer: Printer) -> None:
        outputs = self.function_type.outputs.data
        if not outputs:
            return
        attrs = (
            self.res_attrs.data
            if self.res_attrs is not None
            else [DictionaryAttr({})] * len(outputs)
        )
        tied = (
            [index.value.data for index in self.tied_operands]
            if self.tied_operands is not None
            else [-1] * len(outputs)
        )
        entry = self.body.first_block
        parens = len(outputs) > 1 or any(extra.data for extra in attrs)
        printer.print_string(" -> (" if parens else " -> ")
        for position, (type_, extra, index) in enumerate(zip(outputs, attrs, tied)):
            printer.print_string(", " if position else "")
            if index >= 0 and entry is not None:
                printer.print_ssa_value(entry.args[index])
                printer.print_string(" as ")
            printer.print_attribute(type_)
            if extra.data:
                printer.print_string(" ")
                printer.print_attribute(extra)
        printer.print_string(")" if parens else "")

    def verify_(self) -> None:
        entry = self.body.first_block
        if entry is None:
            return
        if tuple(entry.arg_types) != tuple(self.function_type.inputs):
            raise VerifyException(
                "expected entry block arguments to have the types of the function's inputs"
            )
        for block in self.body.blocks:
            last = block.last_op
            if isinstance(last, ReturnOp) and tuple(v.type for v in last.values) != tuple(
                self.function_type.outputs
            ):
                raise VerifyException(
                    "expected util.return to have the types of the function's results"
                )


@irdl_op_definition
class CallOp(IRDLOperation):
    """Calls a `util.func`; a result may be tied to an argument (IREE: util.call)."""

    name = "util.call"
    callee = prop_def(FlatSymbolRefAttrConstr)
    arguments = var_operand_def()
    tied_operands = opt_prop_def(ArrayAttr)
    res = var_result_def()

    def __init__(
        self, callee: str, arguments: Sequence[SSAValue], result_types: Sequence[Attribute]
    ):
        super().__init__(
            operands=[arguments],
            result_types=[result_types],
            properties={"callee": SymbolRefAttr(callee)},
        )

    def verify_(self) -> None:
        verify_tied(self.tied_operands, len(self.res), len(self.arguments))

    @classmethod
    def parse(cls, parser: Parser) -> CallOp:
        callee = parser.parse_symbol_name()
        names = parser.parse_comma_separated_list(
            Parser.Delimiter.PAREN, parser.parse_unresolved_operand
        )
        attributes = parser.parse_optional_attr_dict()
        parser.parse_punctuation(":")
        found = SizedFunctionType(parser, names)
        op = cls(callee.data, found.operands, found.types)
        op.tied_operands = tied_attr(found.tied)
        op.attributes |= attributes
        return op

    def print(self, printer: Printer) -> None:
        printer.print_string(" ")
        printer.print_attribute(self.callee)
        with printer.in_parens():
            printer.print_list(self.arguments, printer.print_ssa_value)
        printer.print_op_attributes(self.attributes)
        printer.print_string(" : ")
        print_sized_function_type(
            printer, self.arguments, [], self.res.types, [], self.tied_operands
        )
