"""util ops for functions: func, return, call."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from xdsl.dialects.builtin import (
    ArrayAttr,
    DictionaryAttr,
    FlatSymbolRefAttrConstr,
    FunctionType,
    IndexType,
    IntegerAttr,
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

from .._shaped import SizedFunctionType, print_sized_function_type, tied_attr, verify_tied


@irdl_op_definition
class ReturnOp(IRDLOperation):
    """Ends a `util.func` or a `util.initializer` (IREE: util.return)."""

    name = "util.return"
    values = var_operand_def()
    traits = traits_def(IsTerminator(), Pure())
    assembly_format = "attr-dict ($values^ `:` type($values))?"

    def __init__(self, *values: SSAValue | Operation):
        super().__init__(operands=[values])


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
        names: list[str] = []

        def argument():
            found = parser.parse_optional_argument()
            if found is None:
                return parser.parse_type(), parser.parse_optional_dictionary_attr_dict()
            names.append(found.name.text)
            attributes = parser.parse_optional_dictionary_attr_dict()
            parser.parse_optional_location()
            return found, attributes

        arguments = parser.parse_comma_separated_list(parser.Delimiter.PAREN, argument)
        named = [a for a, _ in arguments if isinstance(a, Parser.Argument)]
        if named and len(named) != len(arguments):
            parser.raise_error("expected all arguments to be named, or none")
        inputs = [a.type if isinstance(a, Parser.Argument) else a for a, _ in arguments]
        tied: list[int] = []

        def result(bare: bool = False):
            operand = parser.parse_optional_unresolved_operand()
            if operand is None:
                tied.append(-1)
                type_ = parser.parse_type()
                return type_, {} if bare else parser.parse_optional_dictionary_attr_dict()
            if operand.span.text not in names:
                parser.raise_error("expected a result to be tied to an argument", operand.span)
            tied.append(names.index(operand.span.text))
            type_ = parser.parse_type() if parser.parse_optional_keyword("as") else inputs[tied[-1]]
            return type_, {} if bare else parser.parse_optional_dictionary_attr_dict()

        results: Sequence = ()
        if parser.parse_optional_punctuation("->"):
            results = parser.parse_optional_comma_separated_list(parser.Delimiter.PAREN, result)
            if results is None:
                results = parser.parse_comma_separated_list(
                    parser.Delimiter.NONE, lambda: result(bare=True)
                )
        attributes = parser.parse_optional_attr_dict_with_keyword()
        body = parser.parse_optional_region(named) if named or not arguments else None
        attrs = lambda pairs: (  # noqa: E731
            ArrayAttr([DictionaryAttr(a) for _, a in pairs]) if any(a for _, a in pairs) else None
        )
        op = cls(
            name.data,
            FunctionType.from_lists(inputs, [t for t, _ in results]),
            Region() if body is None else body,
            visibility=visibility.data if visibility else None,
            properties={
                "arg_attrs": attrs(arguments),
                "res_attrs": attrs(results),
                "tied_operands": (
                    ArrayAttr([IntegerAttr(i, IndexType()) for i in tied])
                    if any(i >= 0 for i in tied)
                    else None
                ),
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
