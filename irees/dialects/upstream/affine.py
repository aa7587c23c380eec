"""affine ops that xDSL lacks: max, linearize_index, delinearize_index."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

from xdsl.dialects.builtin import (
    DYNAMIC_INDEX,
    AffineMapAttr,
    DenseArrayBase,
    IndexType,
    UnitAttr,
    i64,
)
from xdsl.dialects.utils import (
    parse_dynamic_index_list_without_types,
    print_dynamic_index_list,
    split_dynamic_index_list,
    verify_dynamic_index_list,
)
from xdsl.ir import Attribute, SSAValue
from xdsl.irdl import (
    AttrSizedOperandSegments,
    IRDLOperation,
    irdl_op_definition,
    opt_prop_def,
    prop_def,
    result_def,
    traits_def,
    var_operand_def,
    var_result_def,
)
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.traits import Pure
from xdsl.utils.exceptions import VerifyException


@irdl_op_definition
class MaxOp(IRDLOperation):
    """Maximum of the results of an affine map (MLIR: affine.max)."""

    name = "affine.max"
    arguments = var_operand_def(IndexType)
    map = prop_def(AffineMapAttr)
    result = result_def(IndexType)
    traits = traits_def(Pure())

    def __init__(self, arguments: Sequence[SSAValue], map: AffineMapAttr):
        super().__init__(operands=[arguments], properties={"map": map}, result_types=[IndexType()])

    @classmethod
    def parse(cls, parser: Parser) -> MaxOp:
        start = parser.pos
        map_ = parser.parse_attribute()
        if not isinstance(map_, AffineMapAttr):
            parser.raise_error("expected an affine map", start, parser.pos)
        dims = parser.parse_comma_separated_list(
            parser.Delimiter.PAREN, parser.parse_unresolved_operand
        )
        symbols = parser.parse_optional_comma_separated_list(
            parser.Delimiter.SQUARE, parser.parse_unresolved_operand
        )
        found = [*dims, *(symbols or ())]
        op = cls(parser.resolve_operands(found, [IndexType()] * len(found), start), map_)
        op.attributes |= parser.parse_optional_attr_dict()
        return op

    def print(self, printer: Printer) -> None:
        printer.print_string(" ")
        printer.print_attribute(self.map)
        dims = self.map.data.num_dims
        with printer.in_parens():
            printer.print_list(self.arguments[:dims], printer.print_ssa_value)
        if self.map.data.num_symbols:
            with printer.in_square_brackets():
                printer.print_list(self.arguments[dims:], printer.print_ssa_value)
        printer.print_op_attributes(self.attributes)

    def verify_(self) -> None:
        map_ = self.map.data
        if len(self.arguments) != map_.num_dims + map_.num_symbols:
            raise VerifyException("expected as many operands as dims and symbols of the map")
        if not map_.results:
            raise VerifyException("expected the map to have results")


def _basis(op) -> list[SSAValue | int]:
    dynamic = iter(op.dynamic_basis)
    return [next(dynamic) if b == DYNAMIC_INDEX else b for b in op.static_basis.get_values()]


def _parse_basis(parser: Parser, start: int, keyword: str):
    parser.parse_keyword(keyword)
    dynamic, static = parse_dynamic_index_list_without_types(
        parser, dynamic_index=DYNAMIC_INDEX, delimiter=Parser.Delimiter.PAREN
    )
    values = parser.resolve_operands(dynamic, [IndexType()] * len(dynamic), start)
    return values, DenseArrayBase.from_list(i64, list(static))


def _print_basis(op, printer: Printer) -> None:
    print_dynamic_index_list(
        printer,
        DYNAMIC_INDEX,
        op.dynamic_basis,
        op.static_basis.get_values(),
        delimiter=Parser.Delimiter.PAREN,
    )


@irdl_op_definition
class DelinearizeIndexOp(IRDLOperation):
    """
    Splits a linear index into coordinates of a basis. The outermost basis element may be omitted;
    the outermost result is then unbounded (MLIR: affine.delinearize_index).
    """

    name = "affine.delinearize_index"
    linear_index = var_operand_def(IndexType)
    dynamic_basis = var_operand_def(IndexType)
    static_basis = prop_def(DenseArrayBase.constr(i64))
    res = var_result_def(IndexType)
    irdl_options = (AttrSizedOperandSegments(as_property=True),)
    traits = traits_def(Pure())

    def __init__(
        self, index: SSAValue, basis: Sequence[SSAValue | int], num_results: int | None = None
    ):
        static, dynamic = split_dynamic_index_list(basis, DYNAMIC_INDEX)
        super().__init__(
            operands=[[index], dynamic],
            properties={"static_basis": DenseArrayBase.from_list(i64, static)},
            result_types=[[IndexType()] * (len(basis) if num_results is None else num_results)],
        )

    @property
    def basis(self) -> list[SSAValue | int]:
        """The basis sizes, outermost first."""
        return _basis(self)

    @property
    def has_outer_bound(self) -> bool:
        """Whether the basis includes the outermost result."""
        return len(self.res) == len(self.static_basis)

    @classmethod
    def parse(cls, parser: Parser) -> DelinearizeIndexOp:
        start = parser.pos
        index = parser.resolve_operand(parser.parse_unresolved_operand(), IndexType())
        values, static = _parse_basis(parser, start, "into")
        attributes = parser.parse_optional_attr_dict()
        parser.parse_punctuation(":")
        types = parser.parse_comma_separated_list(parser.Delimiter.NONE, parser.parse_type)
        return cls.build(
            operands=[[index], values],
            properties={"static_basis": static},
            attributes=attributes,
            result_types=[types],
        )

    def print(self, printer: Printer) -> None:
        printer.print_string(" ")
        printer.print_ssa_value(self.linear_index[0])
        printer.print_string(" into ")
        _print_basis(self, printer)
        printer.print_op_attributes(self.attributes)
        printer.print_string(" : ")
        printer.print_list([result.type for result in self.res], printer.print_attribute)

    def verify_(self) -> None:
        static = self.static_basis.get_values()
        verify_dynamic_index_list(static, self.dynamic_basis, DYNAMIC_INDEX, " in the basis")
        if len(self.linear_index) != 1 or len(self.res) not in (len(static), len(static) + 1):
            raise VerifyException(
                "should return an index for each basis element and up to one extra"
            )
        if any(size <= 0 and size != DYNAMIC_INDEX for size in static):
            raise VerifyException("no basis element may be statically non-positive")


@irdl_op_definition
class LinearizeIndexOp(IRDLOperation):
    """
    Computes the linear index of coordinates in a basis, whose outermost element may be omitted.
    `disjoint` asserts that coordinates are within the basis (MLIR: affine.linearize_index).
    """

    name = "affine.linearize_index"
    multi_index = var_operand_def(IndexType)
    dynamic_basis = var_operand_def(IndexType)
    static_basis = prop_def(DenseArrayBase.constr(i64))
    disjoint = opt_prop_def(UnitAttr)
    res = var_result_def(IndexType)
    irdl_options = (AttrSizedOperandSegments(as_property=True),)
    traits = traits_def(Pure())

    def __init__(
        self,
        indices: Sequence[SSAValue],
        basis: Sequence[SSAValue | int],
        *,
        disjoint: bool = False,
    ):
        static, dynamic = split_dynamic_index_list(basis, DYNAMIC_INDEX)
        super().__init__(
            operands=[indices, dynamic],
            properties={
                "static_basis": DenseArrayBase.from_list(i64, static),
                "disjoint": UnitAttr() if disjoint else None,
            },
            result_types=[[IndexType()]],
        )

    @property
    def basis(self) -> list[SSAValue | int]:
        """The basis sizes, outermost first."""
        return _basis(self)

    @classmethod
    def parse(cls, parser: Parser) -> LinearizeIndexOp:
        start = parser.pos
        disjoint = parser.parse_optional_keyword("disjoint") is not None
        found = parser.parse_comma_separated_list(
            parser.Delimiter.SQUARE, parser.parse_unresolved_operand
        )
        indices = parser.resolve_operands(found, [IndexType()] * len(found), start)
        values, static = _parse_basis(parser, start, "by")
        attributes = parser.parse_optional_attr_dict()
        parser.parse_punctuation(":")
        properties: dict[str, Attribute | None] = {
            "static_basis": static,
            "disjoint": UnitAttr() if disjoint else None,
        }
        return cls.build(
            operands=[indices, values],
            properties=properties,
            attributes=attributes,
            result_types=[[parser.parse_type()]],
        )

    def print(self, printer: Printer) -> None:
        printer.print_string(" disjoint [" if self.disjoint is not None else " [")
        printer.print_list(self.multi_index, printer.print_ssa_value)
        printer.print_string("] by ")
        _print_basis(self, printer)
        printer.print_op_attributes(self.attributes)
        printer.print_string(" : ")
        printer.print_attribute(self.res[0].type)

    def verify_(self) -> None:
        static = self.static_basis.get_values()
        verify_dynamic_index_list(static, self.dynamic_basis, DYNAMIC_INDEX, " in the basis")
        if len(self.multi_index) not in (len(static), len(static) + 1) or len(self.res) != 1:
            raise VerifyException(
                "should be passed an index for each basis element and up to one extra"
            )


@cache
def patch() -> None:
    """Nothing to patch."""


OPS = [MaxOp, DelinearizeIndexOp, LinearizeIndexOp]
