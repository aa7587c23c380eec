"""vector ops that compute: multi_reduction, contract, outerproduct, scan; mask and yield."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.arith import FastMathFlagsAttr
from xdsl.dialects.builtin import (
    AffineMapAttr,
    ArrayAttr,
    BoolAttr,
    DenseArrayBase,
    IntegerAttr,
    StringAttr,
    VectorType,
    i1,
    i64,
)
from xdsl.dialects.linalg.attrs import IteratorType
from xdsl.dialects.utils import EnumAttribute
from xdsl.dialects.vector import CombiningKindAttr, CombiningKindFlag
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue
from xdsl.ir.affine import AffineDimExpr
from xdsl.irdl import (
    IRDLOperation,
    ParsePropInAttrDict,
    irdl_attr_definition,
    irdl_op_definition,
    operand_def,
    opt_operand_def,
    prop_def,
    region_def,
    result_def,
    traits_def,
    var_operand_def,
    var_result_def,
)
from xdsl.parser import AttrParser, Parser
from xdsl.printer import Printer
from xdsl.traits import IsTerminator, Pure, RecursiveMemoryEffect
from xdsl.utils.exceptions import VerifyException

from .shapes import parse_clauses, shape

_ADD = CombiningKindAttr(CombiningKindFlag.ADD)
_NO_FLAGS = FastMathFlagsAttr("none")


@irdl_attr_definition
class IteratorTypeAttr(EnumAttribute[IteratorType]):
    """`#vector.iterator_type<parallel>` (MLIR: VectorAttributes.td)."""

    name = "vector.iterator_type"

    @classmethod
    def parse_parameter(cls, parser: AttrParser) -> IteratorType:
        with parser.in_angle_brackets():
            return super().parse_parameter(parser)

    def print_parameter(self, printer: Printer) -> None:
        with printer.in_angle_brackets():
            super().print_parameter(printer)


def _parse_kind(parser: Parser) -> CombiningKindAttr:
    with parser.in_angle_brackets():
        return CombiningKindAttr(parser.parse_str_enum(CombiningKindFlag))


@irdl_op_definition
class MultiReductionOp(IRDLOperation):
    """
    Reduces a vector along `reduction_dims` into an accumulator (MLIR: vector.multi_reduction).
    """

    name = "vector.multi_reduction"
    source = operand_def(VectorType)
    acc = operand_def()
    kind = prop_def(CombiningKindAttr)
    reduction_dims = prop_def(DenseArrayBase.constr(i64))
    dest = result_def()
    traits = traits_def(Pure())

    def __init__(
        self,
        source: SSAValue,
        acc: SSAValue,
        kind: CombiningKindFlag,
        reduction_dims: Sequence[int],
    ):
        super().__init__(
            operands=[source, acc],
            properties={
                "kind": CombiningKindAttr(kind),
                "reduction_dims": DenseArrayBase.from_list(i64, reduction_dims),
            },
            result_types=[acc.type],
        )

    @classmethod
    def parse(cls, parser: Parser) -> MultiReductionOp:
        start = parser.pos
        kind = _parse_kind(parser)
        parser.parse_punctuation(",")
        operands = [parser.parse_unresolved_operand()]
        parser.parse_punctuation(",")
        operands.append(parser.parse_unresolved_operand())
        attributes = parser.parse_optional_attr_dict()
        dims = parser.parse_comma_separated_list(parser.Delimiter.SQUARE, parser.parse_integer)
        parser.parse_punctuation(":")
        types = [parser.parse_type()]
        parser.parse_keyword("to")
        types.append(parser.parse_type())
        op = cls(*parser.resolve_operands(operands, types, start), kind.data, dims)
        op.attributes |= attributes
        return op

    def print(self, printer: Printer) -> None:
        printer.print_string(f" <{self.kind.data.value}>, ")
        printer.print_list(self.operands, printer.print_ssa_value)
        printer.print_op_attributes(self.attributes)
        printer.print_string(f" {list(self.reduction_dims.get_values())} : ")
        printer.print_attribute(self.source.type)
        printer.print_string(" to ")
        printer.print_attribute(self.dest.type)

    def verify_(self) -> None:
        dims, reduced = shape(self.source.type), self.reduction_dims.get_values()
        if len(set(reduced)) != len(reduced) or any(not 0 <= d < len(dims) for d in reduced):
            raise VerifyException("reduction dims must be different dims of the source")
        kept = tuple(size for dim, size in enumerate(dims) if dim not in reduced)
        if shape(self.dest.type) != kept or self.acc.type != self.dest.type:
            raise VerifyException(
                "destination and accumulator must have the shape of the dims that are not reduced"
            )


@irdl_op_definition
class ContractionOp(IRDLOperation):
    """Contracts two vectors into an accumulator, as the maps describe (MLIR: vector.contract)."""

    name = "vector.contract"
    lhs = operand_def(VectorType)
    rhs = operand_def(VectorType)
    acc = operand_def()
    indexing_maps = prop_def(ArrayAttr[AffineMapAttr])
    iterator_types = prop_def(ArrayAttr[IteratorTypeAttr])
    kind = prop_def(CombiningKindAttr, default_value=_ADD)
    fastmath = prop_def(FastMathFlagsAttr, default_value=_NO_FLAGS)
    result = result_def()
    traits = traits_def(Pure())

    def __init__(
        self,
        lhs: SSAValue,
        rhs: SSAValue,
        acc: SSAValue,
        indexing_maps: ArrayAttr[AffineMapAttr],
        iterator_types: ArrayAttr[IteratorTypeAttr],
        kind: CombiningKindAttr = _ADD,
    ):
        super().__init__(
            operands=[lhs, rhs, acc],
            properties={
                "indexing_maps": indexing_maps,
                "iterator_types": iterator_types,
                "kind": kind,
            },
            result_types=[acc.type],
        )

    @classmethod
    def parse(cls, parser: Parser) -> ContractionOp:
        start = parser.pos
        given = dict(parser.parse_optional_attr_dict())
        operands = parser.parse_comma_separated_list(
            parser.Delimiter.NONE, parser.parse_unresolved_operand
        )
        attributes = parser.parse_optional_attr_dict()
        parser.parse_punctuation(":")
        types = [parser.parse_type()]
        parser.parse_punctuation(",")
        types.append(parser.parse_type())
        parser.parse_keyword("into")
        types.append(parser.parse_type())
        maps, iterators = given.pop("indexing_maps", None), given.pop("iterator_types", None)
        if len(operands) != 3 or maps is None or not isinstance(iterators, ArrayAttr):
            parser.raise_error(
                "expected three operands, indexing_maps and iterator_types", start, parser.pos
            )
        kind = given.pop("kind", _ADD)
        values = parser.resolve_operands(operands, types, start)
        op = cls(*values, maps, ArrayAttr([_iterator(parser, it) for it in iterators]), kind)
        op.attributes |= {**given, **attributes}
        return op

    def print(self, printer: Printer) -> None:
        printer.print_string(" {indexing_maps = ")
        printer.print_attribute(self.indexing_maps)
        names = ", ".join(f'"{it.data.value}"' for it in self.iterator_types)
        kind = self.properties.get("kind", _ADD)
        printer.print_string(f", iterator_types = [{names}], kind = ")
        printer.print_attribute(kind)
        printer.print_string("} ")
        printer.print_list(self.operands, printer.print_ssa_value)
        printer.print_op_attributes(self.attributes)
        printer.print_string(" : ")
        printer.print_list([self.lhs.type, self.rhs.type], printer.print_attribute)
        printer.print_string(" into ")
        printer.print_attribute(self.result.type)

    def verify_(self) -> None:
        if len(self.indexing_maps) != 3:
            raise VerifyException("expected an indexing map for each vector operand")
        sizes: dict[int, int] = {}
        for operand, attr in zip(self.operands, self.indexing_maps):
            map_, dims = attr.data, shape(operand.type)
            if map_.num_dims != len(self.iterator_types) or len(map_.results) != len(dims):
                raise VerifyException(
                    "expected maps over the iterators, of the rank of their operand"
                )
            for expr, size in zip(map_.results, dims):
                if (
                    not isinstance(expr, AffineDimExpr)
                    or sizes.setdefault(expr.position, size) != size
                ):
                    raise VerifyException("invalid indexing map, or dims of different size")
        if self.acc.type != self.result.type:
            raise VerifyException("expected the accumulator to have the type of the result")


def _iterator(parser: Parser, attr: Attribute) -> IteratorTypeAttr:
    if isinstance(attr, IteratorTypeAttr):
        return attr
    if isinstance(attr, StringAttr) and attr.data in tuple(IteratorType):
        return IteratorTypeAttr(IteratorType(attr.data))
    parser.raise_error(f"unexpected iterator_type ({attr})")


@irdl_op_definition
class OuterProductOp(IRDLOperation):
    """
    lhs[i] * rhs[j], or lhs[i] * rhs, combined with an accumulator (MLIR: vector.outerproduct).
    """

    name = "vector.outerproduct"
    lhs = operand_def(VectorType)
    rhs = operand_def()
    acc = opt_operand_def()
    kind = prop_def(CombiningKindAttr, default_value=_ADD)
    result = result_def(VectorType)
    traits = traits_def(Pure())

    def __init__(
        self,
        lhs: SSAValue,
        rhs: SSAValue,
        acc: SSAValue | None = None,
        kind: CombiningKindAttr = _ADD,
    ):
        assert isinstance(lhs.type, VectorType)
        sizes = [*lhs.type.get_shape(), *shape(rhs.type)]
        super().__init__(
            operands=[lhs, rhs, acc],
            properties={"kind": kind},
            result_types=[VectorType(lhs.type.element_type, sizes)],
        )

    @classmethod
    def parse(cls, parser: Parser) -> OuterProductOp:
        start = parser.pos
        operands = parser.parse_comma_separated_list(
            parser.Delimiter.NONE, parser.parse_unresolved_operand
        )
        attributes = dict(parser.parse_optional_attr_dict())
        parser.parse_punctuation(":")
        types = parser.parse_comma_separated_list(parser.Delimiter.NONE, parser.parse_type)
        if len(operands) not in (2, 3) or len(types) != 2 or not isinstance(types[0], VectorType):
            parser.raise_error("expected two or three operands and two types", start, parser.pos)
        sizes = [*types[0].get_shape(), *shape(types[1])]
        all_types = [*types, VectorType(types[0].element_type, sizes)]
        values = parser.resolve_operands(operands, all_types[: len(operands)], start)
        kind = attributes.pop("kind", _ADD)
        op = cls(*values, **({} if len(values) == 3 else {"acc": None}), kind=kind)
        op.attributes |= attributes
        return op

    def print(self, printer: Printer) -> None:
        printer.print_string(" ")
        printer.print_list(self.operands, printer.print_ssa_value)
        kind = self.properties.get("kind", _ADD)
        shown = {"kind": kind} if self.acc is not None else {}
        printer.print_op_attributes({**shown, **self.attributes})
        printer.print_string(" : ")
        printer.print_list([self.lhs.type, self.rhs.type], printer.print_attribute)

    def verify_(self) -> None:
        if shape(self.result.type) != (*shape(self.lhs.type), *shape(self.rhs.type)):
            raise VerifyException("expected the result to have the dims of both operands")
        if self.acc is not None and self.acc.type != self.result.type:
            raise VerifyException("expected the accumulator to have the type of the result")


@irdl_op_definition
class ScanOp(IRDLOperation):
    """Prefix scan along a dim, and its final value (MLIR: vector.scan)."""

    name = "vector.scan"
    kind = prop_def(CombiningKindAttr)
    source = operand_def(VectorType)
    initial_value = operand_def(VectorType)
    reduction_dim = prop_def(IntegerAttr.constr(i64))
    inclusive = prop_def(BoolAttr)
    dest = result_def(VectorType)
    accumulated_value = result_def(VectorType)
    traits = traits_def(Pure())
    irdl_options = (ParsePropInAttrDict(),)

    @classmethod
    def parse(cls, parser: Parser) -> ScanOp:
        start = parser.pos
        kind = _parse_kind(parser)
        parser.parse_punctuation(",")
        operands = parser.parse_comma_separated_list(
            parser.Delimiter.NONE, parser.parse_unresolved_operand
        )
        clauses = parse_clauses(parser, ("reduction_dim", "inclusive"))
        attributes = {**parser.parse_optional_attr_dict(), **clauses}
        parser.parse_punctuation(":")
        types = parser.parse_comma_separated_list(parser.Delimiter.NONE, parser.parse_type)
        if len(operands) != 2 or len(types) != 2:
            parser.raise_error("expected two operands and two types", start, parser.pos)
        return cls.build(
            operands=parser.resolve_operands(operands, types, start),
            properties={
                "kind": kind,
                "reduction_dim": attributes.pop("reduction_dim", None),
                "inclusive": attributes.pop("inclusive", None),
            },
            attributes=attributes,
            result_types=types,
        )

    def print(self, printer: Printer) -> None:
        printer.print_string(f" <{self.kind.data.value}>, ")
        printer.print_list(self.operands, printer.print_ssa_value)
        inclusive = "true" if self.inclusive.value.data else "false"
        printer.print_string(
            f" reduction_dim = {self.reduction_dim.value.data}, inclusive = {inclusive}"
        )
        printer.print_op_attributes(self.attributes)
        printer.print_string(" : ")
        printer.print_list([value.type for value in self.operands], printer.print_attribute)

    def verify_(self) -> None:
        dims, dim = shape(self.source.type), self.reduction_dim.value.data
        if not 0 <= dim < len(dims):
            raise VerifyException("reduction dimension has to be less than the rank")
        if shape(self.initial_value.type) != (*dims[:dim], *dims[dim + 1 :]):
            raise VerifyException("incompatible input/initial value shapes")


@irdl_op_definition
class YieldOp(IRDLOperation):
    """Ends the region of a vector.mask (MLIR: vector.yield)."""

    name = "vector.yield"
    arguments = var_operand_def()
    traits = traits_def(IsTerminator(), Pure())
    assembly_format = "attr-dict ($arguments^ `:` type($arguments))?"

    def __init__(self, *values: SSAValue | Operation):
        super().__init__(operands=[values])


@irdl_op_definition
class MaskOp(IRDLOperation):
    """Runs the one op of its region on the lanes where the mask is true (MLIR: vector.mask)."""

    name = "vector.mask"
    mask = operand_def(VectorType)
    passthru = opt_operand_def()
    body = region_def("single_block")
    res = var_result_def()
    traits = traits_def(RecursiveMemoryEffect())

    def __init__(
        self,
        mask: SSAValue,
        body: Region,
        result_types: Sequence[Attribute],
        passthru: SSAValue | None = None,
    ):
        super().__init__(operands=[mask, passthru], regions=[body], result_types=[result_types])

    @classmethod
    def parse(cls, parser: Parser) -> MaskOp:
        start = parser.pos
        operands = parser.parse_comma_separated_list(
            parser.Delimiter.NONE, parser.parse_unresolved_operand
        )
        region = parser.parse_region()
        attributes = parser.parse_optional_attr_dict()
        parser.parse_punctuation(":")
        mask_type = parser.parse_type()
        types: Sequence[Attribute] = ()
        if parser.parse_optional_punctuation("->"):
            found = parser.parse_optional_comma_separated_list(
                parser.Delimiter.PAREN, parser.parse_type
            )
            types = [parser.parse_type()] if found is None else found
        if len(operands) > 1 + len(types[:1]):
            parser.raise_error("expected a mask and at most one passthru", start, parser.pos)
        if not region.blocks:
            region.add_block(Block())
        last = region.block.last_op
        if last is None or not isinstance(last, YieldOp):
            region.block.add_op(YieldOp(*(last.results if last is not None else ())))
        values = parser.resolve_operands(operands, [mask_type, *types[:1]][: len(operands)], start)
        op = cls(values[0], region, types, values[1] if len(values) > 1 else None)
        op.attributes |= attributes
        return op

    def print(self, printer: Printer) -> None:
        printer.print_string(" ")
        printer.print_list(self.operands, printer.print_ssa_value)
        printer.print_string(" ")
        printer.print_region(self.body)
        printer.print_op_attributes(self.attributes)
        printer.print_string(" : ")
        printer.print_attribute(self.mask.type)
        if self.res:
            printer.print_string(" -> ")
            if len(self.res) == 1:
                printer.print_attribute(self.res[0].type)
            else:
                with printer.in_parens():
                    printer.print_list([r.type for r in self.res], printer.print_attribute)

    def verify_(self) -> None:
        if self.mask.type.element_type != i1:  # type: ignore[union-attr]
            raise VerifyException("expected a mask of i1")
        ops = list(self.body.block.ops)
        if len(ops) > 2 or not isinstance(ops[-1], YieldOp):
            raise VerifyException("expects at most one operation to mask, and a vector.yield")
        if [v.type for v in ops[-1].operands] != [r.type for r in self.res]:
            raise VerifyException("expects the results to have the types of the yielded values")


OPS = [MultiReductionOp, ContractionOp, OuterProductOp, ScanOp, MaskOp, YieldOp]
ATTRS = [IteratorTypeAttr]
