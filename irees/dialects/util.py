"""
The `util` dialect: globals, functions and hints that are not about tensors in particular.

Names and syntax are IREE's (`compiler/src/iree/compiler/Dialect/Util/IR/UtilOps.td`); of its many ops
here are those that reach a compiler's input or that its passes leave.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from xdsl.dialects.builtin import (
    ArrayAttr,
    DictionaryAttr,
    FlatSymbolRefAttrConstr,
    FunctionType,
    IndexType,
    IntegerAttr,
    IntegerType,
    StringAttr,
    SymbolNameConstraint,
    SymbolRefAttr,
    UnitAttr,
    i64,
)
from xdsl.ir import Attribute, Dialect, Operation, ParametrizedAttribute, Region, SSAValue
from xdsl.irdl import (
    IRDLOperation,
    ParsePropInAttrDict,
    irdl_attr_definition,
    irdl_op_definition,
    operand_def,
    opt_prop_def,
    prop_def,
    region_def,
    result_def,
    traits_def,
    var_operand_def,
    var_result_def,
)
from xdsl.parser import AttrParser, Parser
from xdsl.printer import Printer
from xdsl.traits import (
    IsolatedFromAbove,
    IsTerminator,
    Pure,
    SymbolOpInterface,
)
from xdsl.utils.exceptions import VerifyException

from .upstream._effects import ReadsMemory, WritesMemory

_BOUNDS = ("umin", "umax", "udiv")


@irdl_attr_definition
class IntAssumptionAttr(ParametrizedAttribute):
    """
    `#util.int.assumption<umin = 0, umax = 10, udiv = 8>`: what is known of an integer; a bound that is
    not known is left out (IREE: UtilAttrs.td).
    """

    name = "util.int.assumption"
    bounds: DictionaryAttr

    @classmethod
    def of(cls, umin: int | None = None, umax: int | None = None, udiv: int | None = None) -> IntAssumptionAttr:
        """The assumption with these bounds."""
        given = {"umin": umin, "umax": umax, "udiv": udiv}
        return cls(DictionaryAttr({k: IntegerAttr(v, i64) for k, v in given.items() if v is not None}))

    def get(self, bound: str) -> int | None:
        """`umin`, `umax` or `udiv`, None when nothing is said of it."""
        attr = self.bounds.data.get(bound)
        return None if attr is None else attr.value.data  # type: ignore[attr-defined]

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


@irdl_op_definition
class GlobalOp(IRDLOperation):
    """A variable of the program, with its first value where it has one (IREE: util.global)."""

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
                type_ = value.get_type() if hasattr(value, "get_type") else getattr(value, "type", None)
        if type_ is None:
            parser.raise_error("expected the type of the global, or a typed value")
        op = cls(name.data, type_, value, mutable=mutable, visibility=visibility and visibility.data)
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
    """The value of a global (IREE: util.global.load)."""

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
    """Gives a mutable global a new value, or an immutable one its first (IREE: util.global.store)."""

    name = "util.global.store"
    value = operand_def()
    global_ = prop_def(FlatSymbolRefAttrConstr, prop_name="global")
    traits = traits_def(WritesMemory())
    assembly_format = "$value `,` $global attr-dict `:` type($value)"

    def __init__(self, value: SSAValue | Operation, symbol: str | SymbolRefAttr):
        symbol = SymbolRefAttr(symbol) if isinstance(symbol, str) else symbol
        super().__init__(operands=[value], properties={"global": symbol})


@irdl_op_definition
class AssumeIntOp(IRDLOperation):
    """
    Its operands, of which more is now known: each has one or several assumptions, of which one holds
    (IREE: util.assume.int).
    """

    name = "util.assume.int"
    values = var_operand_def()
    assumptions = prop_def(ArrayAttr[ArrayAttr[IntAssumptionAttr]])
    res = var_result_def()
    traits = traits_def(Pure())

    def __init__(self, values: Sequence[SSAValue], assumptions: Sequence[Sequence[IntAssumptionAttr]]):
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
            several = parser.parse_optional_comma_separated_list(parser.Delimiter.SQUARE, assumption)
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
                    printer.print_list(each, lambda assumption: assumption.print_parameters(printer))
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
    """Its operands, of which the compiler may conclude nothing (IREE: util.optimization_barrier)."""

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
            result_types=[value.get_type() if hasattr(value, "get_type") else value.type],  # type: ignore[attr-defined]
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
    """A value rounded up to a multiple of a power of two (IREE: util.align)."""

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
    """A function; a result may be tied to the argument whose storage it takes (IREE: util.func)."""

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
                results = parser.parse_comma_separated_list(parser.Delimiter.NONE, lambda: result(bare=True))
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
                    ArrayAttr([IntegerAttr(i, IndexType()) for i in tied]) if any(i >= 0 for i in tied) else None
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
        attrs = self.arg_attrs.data if self.arg_attrs is not None else [DictionaryAttr({})] * len(self.function_type.inputs)
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
        attrs = self.res_attrs.data if self.res_attrs is not None else [DictionaryAttr({})] * len(outputs)
        tied = [index.value.data for index in self.tied_operands] if self.tied_operands is not None else [-1] * len(outputs)
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
            raise VerifyException("expected entry block arguments to have the types of the function's inputs")
        for block in self.body.blocks:
            last = block.last_op
            if isinstance(last, ReturnOp) and tuple(v.type for v in last.values) != tuple(self.function_type.outputs):
                raise VerifyException("expected util.return to have the types of the function's results")


@irdl_op_definition
class InitializerOp(IRDLOperation):
    """Runs once, in the order of the module, before any function of it (IREE: util.initializer)."""

    name = "util.initializer"
    body = region_def()
    traits = traits_def(IsolatedFromAbove())
    assembly_format = "attr-dict-with-keyword $body"

    def __init__(self, body: Region):
        super().__init__(regions=[body])


@irdl_op_definition
class CallOp(IRDLOperation):
    """Calls a `util.func` (IREE: util.call, without tied results)."""

    name = "util.call"
    callee = prop_def(FlatSymbolRefAttrConstr)
    arguments = var_operand_def()
    res = var_result_def()
    assembly_format = "$callee `(` $arguments `)` attr-dict `:` functional-type($arguments, $res)"

    def __init__(self, callee: str, arguments: Sequence[SSAValue], result_types: Sequence[Attribute]):
        super().__init__(
            operands=[arguments], result_types=[result_types], properties={"callee": SymbolRefAttr(callee)}
        )


Util = Dialect(
    "util",
    [
        GlobalOp,
        GlobalLoadOp,
        GlobalStoreOp,
        AssumeIntOp,
        OptimizationBarrierOp,
        UnfoldableConstantOp,
        AlignOp,
        ReturnOp,
        FuncOp,
        InitializerOp,
        CallOp,
    ],
    [IntAssumptionAttr],
)
