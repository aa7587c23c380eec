"""
Structured linalg ops outside the table: reduce, map, broadcast, elementwise, contract.

`reduce` and `broadcast` replace xDSL's, which take one operand and are not structured ops. The
short form `{ arith.addf }` of reduce and map is parsed, and printed in full.
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import (
    AffineMapAttr,
    ArrayAttr,
    DenseArrayBase,
    MemRefType,
    ShapedType,
    TensorType,
    i64,
)
from xdsl.dialects.linalg.abstract_ops import LinalgStructuredOperation
from xdsl.dialects.linalg.attrs import IteratorTypeAttr
from xdsl.dialects.linalg.ops import YieldOp
from xdsl.ir import Attribute, Block, Region, SSAValue
from xdsl.ir.affine import AffineDimExpr, AffineMap
from xdsl.irdl import (
    AttrSizedOperandSegments,
    ParsePropInAttrDict,
    irdl_op_definition,
    opt_prop_def,
    prop_def,
    region_def,
)
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.utils.exceptions import VerifyException

from .attrs import ElementwiseKind, ElementwiseKindAttr, TypeFnAttr
from .bodies import UNARY, contraction, copy, element_types, elementwise, hidden_region
from .structured import PARALLEL, REDUCTION, is_unsigned
from .syntax import (
    parse_arrow_types,
    parse_int_list,
    parse_operand_group,
    print_arrow_types,
    print_operand_group,
)


def _projection(rank: int, dims: Sequence[int]) -> AffineMapAttr:
    return AffineMapAttr(AffineMap(rank, 0, tuple(AffineDimExpr(dim) for dim in dims)))


def _rank(value: SSAValue) -> int:
    if not isinstance(value.type, TensorType | MemRefType):
        raise VerifyException(f"expected a tensor or memref, but got {value.type}")
    return value.type.get_num_dims()


def _tensor_types(outs: Sequence[SSAValue]) -> list[Attribute]:
    return [value.type for value in outs if isinstance(value.type, TensorType)]


def _parse_payload(parser: Parser):
    """Parses `{ arith.addf {attributes} }`; returns None if the long form follows."""
    if parser.parse_optional_punctuation("{") is None:
        return None
    pos = parser.pos
    name = parser.parse_identifier()
    attributes = dict(parser.parse_optional_attr_dict())
    parser.parse_punctuation("}")
    op = parser.ctx.get_optional_op(name)
    if op is None:
        parser.raise_error(f"unknown payload operation {name}", pos, parser.pos)

    def build(operands: Sequence[SSAValue], result: Attribute):
        definition = op.get_irdl_definition()  # type: ignore[attr-defined]
        properties = {
            k: v.default_value
            for k, v in definition.properties.items()
            if v.default_value is not None
        }
        for key in list(attributes):
            if key in definition.properties:
                properties[key] = attributes.pop(key)
        return op.create(
            operands=operands, result_types=[result], properties=properties, attributes=attributes
        )

    return build


def _body_of_payload(
    build, args: Sequence[Attribute], order: Sequence[int], result: Attribute
) -> Region:
    block = Block(arg_types=args)
    op = build([block.args[i] for i in order], result)
    block.add_op(op)
    block.add_op(YieldOp(op.results[0]))
    return Region(block)


def _parse_long_body(parser: Parser) -> Region:
    arguments = parser.parse_comma_separated_list(parser.Delimiter.PAREN, parser.parse_argument)
    return parser.parse_region(arguments)


def _print_long_body(op: LinalgStructuredOperation, printer: Printer) -> None:
    printer.print_string(" ")
    with printer.in_parens():
        printer.print_list(op.body.block.args, printer.print_block_argument)
    printer.print_string(" ")
    printer.print_region(op.body, print_entry_block_args=False)


@irdl_op_definition
class ReduceOp(LinalgStructuredOperation):
    """
    Reduces the inputs along `dimensions` into the inits with its region (MLIR: linalg.reduce).
    """

    name = "linalg.reduce"
    dimensions = prop_def(DenseArrayBase.constr(i64))
    body = region_def("single_block")
    irdl_options = (AttrSizedOperandSegments(as_property=True), ParsePropInAttrDict())

    def __init__(
        self,
        inputs: Sequence[SSAValue] | SSAValue,
        inits: Sequence[SSAValue] | SSAValue,
        dimensions: DenseArrayBase | Sequence[int],
        body: Region,
    ):
        inputs = [inputs] if isinstance(inputs, SSAValue) else inputs
        inits = [inits] if isinstance(inits, SSAValue) else inits
        if not isinstance(dimensions, DenseArrayBase):
            dimensions = DenseArrayBase.from_list(i64, dimensions)
        super().__init__(
            operands=[inputs, inits],
            result_types=[_tensor_types(inits)],
            properties={"dimensions": dimensions},
            regions=[body],
        )

    def get_indexing_maps(self) -> ArrayAttr[AffineMapAttr]:
        rank, reduced = _rank(self.inputs[0]), self.dimensions.get_values()
        kept = [dim for dim in range(rank) if dim not in reduced]
        return ArrayAttr(
            [
                *[_projection(rank, range(rank))] * len(self.inputs),
                *[_projection(rank, kept)] * len(self.outputs),
            ]
        )

    def get_iterator_types(self) -> ArrayAttr[IteratorTypeAttr]:
        reduced = self.dimensions.get_values()
        return ArrayAttr(
            [REDUCTION if dim in reduced else PARALLEL for dim in range(_rank(self.inputs[0]))]
        )

    @classmethod
    def parse(cls, parser: Parser) -> ReduceOp:
        start = parser.pos
        build = _parse_payload(parser)
        ins, outs = parse_operand_group(parser, "ins"), parse_operand_group(parser, "outs")
        dimensions = parse_int_list(parser, "dimensions")
        attributes = parser.parse_optional_attr_dict()
        if build is None:
            body = _parse_long_body(parser)
        else:
            if len(ins) != 1 or len(outs) != 1:
                parser.raise_error(
                    "expected one input and one init with a short payload", start, parser.pos
                )
            args = element_types((*ins, *outs))
            body = _body_of_payload(build, args, (1, 0), args[1])
        op = cls(ins, outs, dimensions, body)
        op.attributes |= attributes
        return op

    def print(self, printer: Printer) -> None:
        print_operand_group(printer, "ins", self.inputs)
        print_operand_group(printer, "outs", self.outputs)
        numbers = ", ".join(str(dim) for dim in self.dimensions.get_values())
        printer.print_string(f" dimensions = [{numbers}]")
        printer.print_op_attributes(self.attributes)
        _print_long_body(self, printer)

    def verify_(self) -> None:
        if not self.inputs or len(self.inputs) != len(self.outputs):
            raise VerifyException("expected equal numbers of inputs and inits, and at least one")
        dims, rank = list(self.dimensions.get_values()), _rank(self.inputs[0])
        if dims != sorted(set(dims)) or any(not 0 <= dim < rank for dim in dims):
            raise VerifyException(f"dimensions must be strictly increasing and within [0, {rank})")
        super().verify_()


@irdl_op_definition
class MapOp(LinalgStructuredOperation):
    """Applies its region elementwise to the inputs (MLIR: linalg.map)."""

    name = "linalg.map"
    body = region_def("single_block")
    irdl_options = (AttrSizedOperandSegments(as_property=True), ParsePropInAttrDict())

    def __init__(self, inputs: Sequence[SSAValue], init: SSAValue, body: Region):
        super().__init__(
            operands=[inputs, [init]], result_types=[_tensor_types([init])], regions=[body]
        )

    def get_indexing_maps(self) -> ArrayAttr[AffineMapAttr]:
        rank = _rank(self.outputs[0])
        return ArrayAttr([_projection(rank, range(rank))] * len(self.operands))

    def get_iterator_types(self) -> ArrayAttr[IteratorTypeAttr]:
        return ArrayAttr([PARALLEL] * _rank(self.outputs[0]))

    @classmethod
    def parse(cls, parser: Parser) -> MapOp:
        start = parser.pos
        build = _parse_payload(parser)
        ins, outs = parse_operand_group(parser, "ins"), parse_operand_group(parser, "outs")
        attributes = parser.parse_optional_attr_dict()
        if len(outs) != 1:
            parser.raise_error("expected one init", start, parser.pos)
        types = element_types((*ins, *outs))
        if build is None:
            body = _parse_long_body(parser)
            if len(body.block.args) == len(ins):
                body.block.insert_arg(types[-1], len(ins))
        else:
            body = _body_of_payload(build, types, range(len(ins)), types[-1])
        op = cls(ins, outs[0], body)
        op.attributes |= attributes
        return op

    def print(self, printer: Printer) -> None:
        print_operand_group(printer, "ins", self.inputs)
        print_operand_group(printer, "outs", self.outputs)
        printer.print_op_attributes(self.attributes)
        _print_long_body(self, printer)

    def verify_(self) -> None:
        if len(self.outputs) != 1:
            raise VerifyException("expected one init")
        super().verify_()


@irdl_op_definition
class BroadcastOp(LinalgStructuredOperation):
    """Broadcasts the input along new `dimensions` of the init (MLIR: linalg.broadcast)."""

    name = "linalg.broadcast"
    dimensions = prop_def(DenseArrayBase.constr(i64))
    body = region_def("single_block")
    irdl_options = (AttrSizedOperandSegments(as_property=True), ParsePropInAttrDict())

    def __init__(
        self,
        input: SSAValue,
        init: SSAValue,
        dimensions: Attribute,
        result: Attribute | None = None,
    ):
        super().__init__(
            operands=[[input], [init]],
            result_types=[_tensor_types([init]) if result is None else [result]],
            properties={"dimensions": dimensions},
            regions=[hidden_region(copy, [input], [init])],
        )

    def get_indexing_maps(self) -> ArrayAttr[AffineMapAttr]:
        rank, added = _rank(self.outputs[0]), self.dimensions.get_values()
        return ArrayAttr(
            [
                _projection(rank, [d for d in range(rank) if d not in added]),
                _projection(rank, range(rank)),
            ]
        )

    def get_iterator_types(self) -> ArrayAttr[IteratorTypeAttr]:
        return ArrayAttr([PARALLEL] * _rank(self.outputs[0]))

    @classmethod
    def parse(cls, parser: Parser) -> BroadcastOp:
        start = parser.pos
        ins, outs = parse_operand_group(parser, "ins"), parse_operand_group(parser, "outs")
        if len(ins) != 1 or len(outs) != 1:
            parser.raise_error("expected one input and one init", start, parser.pos)
        dimensions = DenseArrayBase.from_list(i64, parse_int_list(parser, "dimensions"))
        op = cls(ins[0], outs[0], dimensions)
        op.attributes |= parser.parse_optional_attr_dict()
        return op

    def print(self, printer: Printer) -> None:
        print_operand_group(printer, "ins", self.inputs)
        print_operand_group(printer, "outs", self.outputs)
        numbers = ", ".join(str(dim) for dim in self.dimensions.get_values())
        printer.print_string(f" dimensions = [{numbers}]")
        printer.print_op_attributes(self.attributes)

    def verify_(self) -> None:
        if len(self.inputs) != 1 or len(self.outputs) != 1:
            raise VerifyException("expected one input and one init")
        dims, rank = list(self.dimensions.get_values()), _rank(self.outputs[0])
        if len(set(dims)) != len(dims) or any(not 0 <= dim < rank for dim in dims):
            raise VerifyException(f"dimensions must be different and within [0, {rank})")
        if _rank(self.inputs[0]) + len(dims) != rank:
            raise VerifyException("input rank plus added dimensions does not match init rank")
        super().verify_()


def _parse_maps(parser: Parser) -> Attribute | None:
    if parser.parse_optional_keyword("indexing_maps") is None:
        return None
    parser.parse_punctuation("=")
    return parser.parse_attribute()


@irdl_op_definition
class ElementwiseOp(LinalgStructuredOperation):
    """
    Applies a scalar function elementwise; maps may broadcast or transpose the inputs (MLIR:
    linalg.elementwise).
    """

    name = "linalg.elementwise"
    kind = prop_def(ElementwiseKindAttr)
    indexing_maps = opt_prop_def(ArrayAttr[AffineMapAttr])
    body = region_def("single_block")
    irdl_options = (AttrSizedOperandSegments(as_property=True), ParsePropInAttrDict())

    def __init__(
        self,
        kind: ElementwiseKind,
        inputs: Sequence[SSAValue],
        outputs: Sequence[SSAValue],
        indexing_maps: Attribute | None = None,
        result_types: Sequence[Attribute] | None = None,
    ):
        super().__init__(
            operands=[inputs, outputs],
            result_types=[_tensor_types(outputs) if result_types is None else result_types],
            properties={"kind": ElementwiseKindAttr(kind), "indexing_maps": indexing_maps},
            regions=[hidden_region(elementwise(kind.value), inputs, outputs)],
        )

    def get_indexing_maps(self) -> ArrayAttr[AffineMapAttr]:
        if self.indexing_maps is not None:
            return self.indexing_maps
        rank = _rank(self.outputs[0])
        return ArrayAttr(
            [
                _projection(rank, range(rank) if isinstance(v.type, ShapedType) else ())
                for v in self.operands
            ]
        )

    def get_iterator_types(self) -> ArrayAttr[IteratorTypeAttr]:
        return ArrayAttr([PARALLEL] * _rank(self.outputs[0]))

    @classmethod
    def parse(cls, parser: Parser) -> ElementwiseOp:
        start = parser.pos
        if parser.parse_optional_keyword("kind"):
            parser.parse_punctuation("=")
            attr = parser.parse_attribute()
            if not isinstance(attr, ElementwiseKindAttr):
                parser.raise_error("expected #linalg.elementwise_kind<...>", start, parser.pos)
            kind = attr.data
        else:
            kind = ElementwiseKindAttr.parse_parameter(parser)
        maps = _parse_maps(parser)
        attributes = dict(parser.parse_optional_attr_dict())
        ins, outs = parse_operand_group(parser, "ins"), parse_operand_group(parser, "outs")
        results = parse_arrow_types(parser)
        if len(outs) != 1:
            parser.raise_error("expected one output", start, parser.pos)
        if len(ins) != (1 if kind.value in UNARY else 3 if kind == ElementwiseKind.SELECT else 2):
            parser.raise_error(f"wrong number of inputs for {kind.value}", start, parser.pos)
        try:
            op = cls(kind, ins, outs, maps, results)
        except ValueError as error:
            parser.raise_error(str(error), start, parser.pos)
        op.attributes |= attributes
        return op

    def print(self, printer: Printer) -> None:
        printer.print_string(f" <{self.kind.data.value}>")
        if self.indexing_maps is not None:
            printer.print_string(" indexing_maps = ")
            printer.print_attribute(self.indexing_maps)
        printer.print_op_attributes(self.attributes)
        print_operand_group(printer, "ins", self.inputs)
        print_operand_group(printer, "outs", self.outputs)
        print_arrow_types(printer, [result.type for result in self.res])

    def verify_(self) -> None:
        if len(self.outputs) != 1:
            raise VerifyException("expected one output")
        super().verify_()


@irdl_op_definition
class ContractOp(LinalgStructuredOperation):
    """
    Contraction: multiplies, and sums over the dims that the output's map lacks (MLIR:
    linalg.contract).
    """

    name = "linalg.contract"
    indexing_maps = prop_def(ArrayAttr[AffineMapAttr])
    cast = opt_prop_def(TypeFnAttr)
    body = region_def("single_block")
    irdl_options = (AttrSizedOperandSegments(as_property=True), ParsePropInAttrDict())

    def __init__(
        self,
        inputs: Sequence[SSAValue],
        outputs: Sequence[SSAValue],
        indexing_maps: Attribute,
        cast: Attribute | None = None,
        result_types: Sequence[Attribute] | None = None,
    ):
        super().__init__(
            operands=[inputs, outputs],
            result_types=[_tensor_types(outputs) if result_types is None else result_types],
            properties={"indexing_maps": indexing_maps, "cast": cast},
            regions=[hidden_region(contraction, inputs, outputs, is_unsigned(cast))],
        )

    def get_indexing_maps(self) -> ArrayAttr[AffineMapAttr]:
        return self.indexing_maps

    def get_iterator_types(self) -> ArrayAttr[IteratorTypeAttr]:
        output = {
            e.position
            for e in self.indexing_maps.data[-1].data.results
            if isinstance(e, AffineDimExpr)
        }
        loops = self.indexing_maps.data[0].data.num_dims
        return ArrayAttr([PARALLEL if dim in output else REDUCTION for dim in range(loops)])

    @classmethod
    def parse(cls, parser: Parser) -> ContractOp:
        start = parser.pos
        maps = _parse_maps(parser)
        attributes = dict(parser.parse_optional_attr_dict())
        ins, outs = parse_operand_group(parser, "ins"), parse_operand_group(parser, "outs")
        results = parse_arrow_types(parser)
        maps = attributes.pop("indexing_maps", maps) if maps is None else maps
        if maps is None or len(ins) != 2 or len(outs) != 1:
            parser.raise_error(
                "expected indexing_maps, two inputs and one output", start, parser.pos
            )
        try:
            op = cls(ins, outs, maps, attributes.pop("cast", None), results)
        except ValueError as error:
            parser.raise_error(str(error), start, parser.pos)
        op.attributes |= attributes
        return op

    def print(self, printer: Printer) -> None:
        printer.print_string(" indexing_maps = ")
        printer.print_attribute(self.indexing_maps)
        attributes = {**({"cast": self.cast} if self.cast is not None else {}), **self.attributes}
        printer.print_op_attributes(attributes)
        print_operand_group(printer, "ins", self.inputs)
        print_operand_group(printer, "outs", self.outputs)
        print_arrow_types(printer, [result.type for result in self.res])

    def verify_(self) -> None:
        if len(self.indexing_maps) != 3 or len(self.operands) != 3:
            raise VerifyException("expected three operands, and an indexing map for each")
        super().verify_()


OPS = [ReduceOp, MapOp, BroadcastOp, ElementwiseOp, ContractOp]
REPLACES = frozenset({"linalg.reduce", "linalg.broadcast"})
__all__ = ["OPS", "REPLACES", "BroadcastOp", "ContractOp", "ElementwiseOp", "MapOp", "ReduceOp"]
