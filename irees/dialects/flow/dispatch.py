"""
Dispatches on tensors, as the host sees them.

`flow.dispatch.region` groups the ops that become one kernel. Outlining replaces it with a
`flow.executable` and a `flow.dispatch` that calls it.
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import (
    ArrayAttr,
    IndexType,
    StringAttr,
    SymbolNameConstraint,
    SymbolRefAttr,
    TensorType,
)
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue
from xdsl.irdl import (
    AttrSizedOperandSegments,
    IRDLOperation,
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
from xdsl.traits import IsTerminator, NoTerminator, Pure, SymbolOpInterface, SymbolTable
from xdsl.utils.exceptions import VerifyException

from .._shaped import (
    SizedFunctionType,
    parse_entry_points,
    parse_workload,
    print_entry_points,
    print_sized_function_type,
    print_workload,
    tied_attr,
    verify_tied,
)


@irdl_op_definition
class DispatchRegionOp(IRDLOperation):
    """
    Groups the ops that become one dispatch; results are the values used outside.

    `result_dims` are the dynamic dims of all results, in order; they follow each type:
    `-> (tensor<?x4xf32>{%n})`. The region `workgroup_count` computes the grid from `workload`, and
    may be empty (IREE: `flow.dispatch.region`).
    """

    name = "flow.dispatch.region"

    result_dims = var_operand_def(IndexType)
    workload = var_operand_def(IndexType)
    body = region_def("single_block")
    workgroup_count = region_def()
    res = var_result_def()

    irdl_options = (AttrSizedOperandSegments(as_property=True),)

    def __init__(self, result_dims: Sequence[SSAValue], types: Sequence[Attribute], body: Region):
        super().__init__(operands=[result_dims, []], result_types=[types], regions=[body, Region()])

    @classmethod
    def parse(cls, parser: Parser) -> DispatchRegionOp:
        bracket, brace = Parser.Delimiter.SQUARE, Parser.Delimiter.BRACES
        dims: list[SSAValue] = []

        def index() -> SSAValue:
            return parser.resolve_operand(parser.parse_unresolved_operand(), IndexType())

        def result() -> Attribute:
            kind = parser.parse_type()
            found = parser.parse_optional_comma_separated_list(brace, index)
            dims.extend(found or [])
            return kind

        workload = parser.parse_optional_comma_separated_list(bracket, index) or []
        parser.parse_punctuation("->")
        types = parser.parse_comma_separated_list(Parser.Delimiter.PAREN, result)
        attributes = parser.parse_optional_attr_dict_with_keyword()
        regions = [parser.parse_region(), Region()]
        if parser.parse_optional_keyword("count"):
            arguments = parser.parse_comma_separated_list(
                Parser.Delimiter.PAREN, parser.parse_argument
            )
            parser.parse_punctuation("->")
            parser.parse_comma_separated_list(Parser.Delimiter.PAREN, parser.parse_type)
            regions[1] = parser.parse_region(arguments)
        return cls.build(
            operands=[dims, workload],
            result_types=[types],
            regions=regions,
            attributes=attributes.data if attributes else {},
        )

    def print(self, printer: Printer) -> None:
        if self.workload:
            with printer.in_square_brackets():
                printer.print_list(self.workload, printer.print_operand)
        printer.print_string(" -> ")
        dims = iter(self.result_dims)

        def result(kind: Attribute) -> None:
            printer.print_attribute(kind)
            count = sum(s < 0 for s in kind.get_shape()) if isinstance(kind, TensorType) else 0
            if count:
                with printer.in_braces():
                    printer.print_list([next(dims) for _ in range(count)], printer.print_operand)

        with printer.in_parens():
            printer.print_list([r.type for r in self.res], result)
        printer.print_op_attributes(self.attributes, print_keyword=True)
        printer.print_string(" ")
        printer.print_region(self.body)
        if self.workgroup_count.blocks:
            block = self.workgroup_count.block
            printer.print_string(" count")
            with printer.in_parens():
                printer.print_list(block.args, printer.print_block_argument)
            printer.print_string(" -> (index, index, index) ")
            printer.print_region(self.workgroup_count, print_entry_block_args=False)


@irdl_op_definition
class ReturnOp(IRDLOperation):
    """Ends a dispatch region with its results (IREE: `flow.return`)."""

    name = "flow.return"

    values = var_operand_def()

    assembly_format = "($values^ `:` type($values))? attr-dict"
    traits = traits_def(IsTerminator())

    def __init__(self, values: Sequence[SSAValue]):
        super().__init__(operands=[values])


@irdl_op_definition
class ExecutableOp(IRDLOperation):
    """A symbol that holds a module with the code of one dispatch (IREE: `flow.executable`)."""

    name = "flow.executable"

    sym_name = prop_def(SymbolNameConstraint())
    body = region_def("single_block")

    assembly_format = "$sym_name attr-dict-with-keyword $body"
    traits = traits_def(SymbolOpInterface(), SymbolTable(), NoTerminator())

    def __init__(self, name: str, ops: Sequence[Operation]):
        super().__init__(properties={"sym_name": StringAttr(name)}, regions=[Region(Block(ops))])


@irdl_op_definition
class DispatchOp(IRDLOperation):
    """
    Calls an executable's function on tensors and scalars (IREE: `flow.dispatch`).

    `argument_dims` and `result_dims` are the dynamic dims of all arguments and results, in order;
    they follow each type. A result that is tied to an argument reuses its storage. The function
    takes the arguments, then one writable dispatch tensor per result. irees' own dispatches have no
    `argument_dims`: the function takes the dims that it needs as arguments.

        flow.dispatch @e::@f(%x, %n) : (tensor<?xf32>{%n}, index) -> tensor<4x?xf32>{%m}
        flow.dispatch @e::@g(%x) : (tensor<4xf32>) -> %x
    """

    name = "flow.dispatch"

    workload = var_operand_def()
    arguments = var_operand_def()
    argument_dims = var_operand_def(IndexType)
    result_dims = var_operand_def(IndexType)
    entry_points = prop_def(ArrayAttr[SymbolRefAttr])
    tied_operands = opt_prop_def(ArrayAttr)
    res = var_result_def()

    irdl_options = (AttrSizedOperandSegments(as_property=True),)
    traits = traits_def(Pure())

    def __init__(
        self,
        entry_point: SymbolRefAttr,
        arguments: Sequence[SSAValue],
        result_dims: Sequence[SSAValue],
        types: Sequence[Attribute],
    ):
        super().__init__(
            operands=[[], arguments, [], result_dims],
            properties={"entry_points": ArrayAttr([entry_point])},
            result_types=[types],
        )

    @property
    def entry_point(self) -> SymbolRefAttr:
        """The called function; the first one if there are several variants."""
        return self.entry_points.data[0]

    @entry_point.setter
    def entry_point(self, symbol: SymbolRefAttr) -> None:
        self.entry_points = ArrayAttr([symbol])

    def verify_(self) -> None:
        if not self.entry_points.data:
            raise VerifyException("expected an entry point")
        verify_tied(self.tied_operands, len(self.res), len(self.arguments))

    @classmethod
    def parse(cls, parser: Parser) -> DispatchOp:
        entries = parse_entry_points(parser)
        workload = parse_workload(parser)
        names = parser.parse_comma_separated_list(
            Parser.Delimiter.PAREN, parser.parse_unresolved_operand
        )
        attributes = parser.parse_optional_attr_dict()
        parser.parse_punctuation(":")
        found = SizedFunctionType(parser, names)
        return cls.build(
            operands=[workload, found.operands, found.operand_sizes, found.result_sizes],
            properties={"entry_points": entries, "tied_operands": tied_attr(found.tied)},
            attributes=attributes,
            result_types=[found.types],
        )

    def print(self, printer: Printer) -> None:
        print_entry_points(printer, self.entry_points)
        print_workload(printer, self.workload)
        with printer.in_parens():
            printer.print_list(self.arguments, printer.print_ssa_value)
        printer.print_op_attributes(self.attributes)
        printer.print_string(" : ")
        print_sized_function_type(
            printer,
            self.arguments,
            self.argument_dims,
            self.res.types,
            self.result_dims,
            self.tied_operands,
        )


OPS: list[type[Operation]] = [DispatchRegionOp, ReturnOp, ExecutableOp, DispatchOp]
