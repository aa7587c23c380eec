"""
linalg ops that are not structured ops: softmax, pack, unpack, Winograd transforms.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from xdsl.dialects.builtin import (
    DYNAMIC_INDEX,
    DenseArrayBase,
    IndexType,
    IntegerAttr,
    ShapedType,
    TensorType,
    i32,
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
    operand_def,
    opt_operand_def,
    prop_def,
    traits_def,
    var_operand_def,
    var_result_def,
)
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.utils.exceptions import VerifyException

from .._effects import DestinationStyleEffects
from .syntax import (
    parse_arrow_types,
    parse_int_list,
    parse_operand_group,
    print_arrow_types,
    print_operand_group,
)


def _shape(value: SSAValue) -> tuple[int, ...]:
    assert isinstance(value.type, ShapedType)
    return value.type.get_shape()


def _element(value: SSAValue) -> Attribute:
    return value.type.get_element_type()  # type: ignore[union-attr]


def _check_result(op, init: SSAValue) -> None:
    wanted = [init.type] if isinstance(init.type, TensorType) else []
    if [result.type for result in op.results] != wanted:
        raise VerifyException("expected the result to have the type of the init")


@irdl_op_definition
class SoftmaxOp(IRDLOperation):
    """exp(x - max) / sum(exp(x - max)) along a dim (MLIR: linalg.softmax)."""

    name = "linalg.softmax"
    input = operand_def(ShapedType)
    output = operand_def(ShapedType)
    dimension = prop_def(IntegerAttr.constr(i64))
    res = var_result_def(TensorType)
    traits = traits_def(DestinationStyleEffects())

    def __init__(self, input: SSAValue, output: SSAValue, dimension: int):
        super().__init__(
            operands=[input, output],
            properties={"dimension": IntegerAttr(dimension, i64)},
            result_types=[[output.type] if isinstance(output.type, TensorType) else []],
        )

    @classmethod
    def parse(cls, parser: Parser) -> SoftmaxOp:
        start = parser.pos
        attributes = parser.parse_optional_attr_dict()
        parser.parse_keyword("dimension")
        with parser.in_parens():
            dimension = parser.parse_integer()
        ins, outs = parse_operand_group(parser, "ins"), parse_operand_group(parser, "outs")
        results = parse_arrow_types(parser)
        if len(ins) != 1 or len(outs) != 1:
            parser.raise_error("expected one input and one output", start, parser.pos)
        return cls.build(
            operands=[ins[0], outs[0]],
            properties={"dimension": IntegerAttr(dimension, i64)},
            attributes=attributes,
            result_types=[results],
        )

    def print(self, printer: Printer) -> None:
        printer.print_op_attributes(self.attributes)
        printer.print_string(f" dimension({self.dimension.value.data})")
        print_operand_group(printer, "ins", [self.input])
        print_operand_group(printer, "outs", [self.output])
        print_arrow_types(printer, [result.type for result in self.results])

    def verify_(self) -> None:
        shape, out = _shape(self.input), _shape(self.output)
        if not 0 <= self.dimension.value.data < len(shape):
            raise VerifyException(f"incorrect dimension specified: {self.dimension.value.data}")
        if len(shape) != len(out) or any(
            DYNAMIC_INDEX not in p and p[0] != p[1] for p in zip(shape, out)
        ):
            raise VerifyException("incompatible output shape")
        _check_result(self, self.output)


class _Relayout(IRDLOperation):
    """Base of pack and unpack."""

    @property
    def inner_tiles_list(self) -> list[SSAValue | int]:
        """The inner tile sizes, each an int or a value."""
        dynamic = iter(self.inner_tiles)  # type: ignore[attr-defined]
        static = self.static_inner_tiles.get_values()  # type: ignore[attr-defined]
        return [next(dynamic) if size == DYNAMIC_INDEX else size for size in static]

    def _print(self, printer: Printer, padding: SSAValue | None) -> None:
        printer.print_string(" ")
        printer.print_ssa_value(self.source)  # type: ignore[attr-defined]
        if padding is not None:
            printer.print_string(" padding_value(")
            printer.print_ssa_value(padding)
            printer.print_string(" : ")
            printer.print_attribute(padding.type)
            printer.print_string(")")
        if outer := self.outer_dims_perm.get_values():  # type: ignore[attr-defined]
            printer.print_string(f" outer_dims_perm = {list(outer)}")
        printer.print_string(
            f" inner_dims_pos = {list(self.inner_dims_pos.get_values())} inner_tiles = "
        )  # type: ignore[attr-defined]
        static = self.static_inner_tiles.get_values()  # type: ignore[attr-defined]
        print_dynamic_index_list(printer, DYNAMIC_INDEX, self.inner_tiles, static)
        printer.print_string(" into ")
        printer.print_ssa_value(self.dest)  # type: ignore[attr-defined]
        printer.print_op_attributes(self.attributes)
        printer.print_string(" : ")
        printer.print_attribute(self.source.type)  # type: ignore[attr-defined]
        printer.print_string(" -> ")
        printer.print_attribute(self.dest.type)  # type: ignore[attr-defined]

    def _verify(self, unpacked: SSAValue, packed: SSAValue) -> None:
        shape = _shape(unpacked)
        self._verify_tiles(len(shape))
        if _element(unpacked) != _element(packed):
            raise VerifyException("expected source and dest to have the same element type")
        expected, got = self._packed_shape(shape), _shape(packed)
        if len(got) != len(expected) or any(
            DYNAMIC_INDEX not in p and p[0] != p[1] for p in zip(got, expected)
        ):
            raise VerifyException(
                f"expected the packed shape to be {_printed(expected)}, but got {_printed(got)}"
            )
        _check_result(self, self.dest)  # type: ignore[attr-defined]

    def _verify_tiles(self, rank: int) -> None:
        """Checks the inner tiles and the permutation for an unpacked value of this rank."""
        positions = self.inner_dims_pos.get_values()  # type: ignore[attr-defined]
        outer = self.outer_dims_perm.get_values() or tuple(range(rank))
        tiles = self.static_inner_tiles.get_values()  # type: ignore[attr-defined]
        verify_dynamic_index_list(tiles, self.inner_tiles, DYNAMIC_INDEX, " in inner_tiles")
        if len(set(positions)) != len(positions) or any(not 0 <= p < rank for p in positions):
            raise VerifyException("invalid inner_dims_pos vector")
        if sorted(outer) != list(range(rank)):
            raise VerifyException("invalid outer_dims_perm vector")
        if len(tiles) != len(positions) or any(
            size < 1 and size != DYNAMIC_INDEX for size in tiles
        ):
            raise VerifyException("expected one positive inner tile per inner_dims_pos")

    def _packed_shape(self, shape: Sequence[int]) -> list[int]:
        """Returns the counts of tiles in the permuted order, then the sizes of the inner tiles."""
        positions = self.inner_dims_pos.get_values()  # type: ignore[attr-defined]
        tiles = self.static_inner_tiles.get_values()  # type: ignore[attr-defined]
        counts = list(shape)
        for position, tile in zip(positions, tiles):
            known = DYNAMIC_INDEX not in (counts[position], tile)
            counts[position] = math.ceil(counts[position] / tile) if known else DYNAMIC_INDEX
        outer = self.outer_dims_perm.get_values() or range(len(shape))
        return [counts[dim] for dim in outer] + list(tiles)


def _printed(shape: Sequence[int]) -> str:
    return f"[{', '.join('?' if n == DYNAMIC_INDEX else str(n) for n in shape)}]"


def _parse_relayout(cls, parser: Parser, has_padding: bool):
    start = parser.pos
    source = parser.parse_unresolved_operand()
    padding: list[SSAValue] = []
    if has_padding and parser.parse_optional_keyword("padding_value"):
        with parser.in_parens():
            value = parser.parse_unresolved_operand()
            parser.parse_punctuation(":")
            padding = [parser.resolve_operand(value, parser.parse_type())]
    outer: Sequence[int] = ()
    if parser.parse_optional_keyword("outer_dims_perm"):
        parser.parse_punctuation("=")
        outer = parser.parse_comma_separated_list(parser.Delimiter.SQUARE, parser.parse_integer)
    positions = parse_int_list(parser, "inner_dims_pos")
    parser.parse_keyword("inner_tiles")
    parser.parse_punctuation("=")
    dynamic, static = parse_dynamic_index_list_without_types(parser, dynamic_index=DYNAMIC_INDEX)
    parser.parse_keyword("into")
    dest = parser.parse_unresolved_operand()
    attributes = parser.parse_optional_attr_dict()
    parser.parse_punctuation(":")
    source_type = parser.parse_type()
    parser.parse_punctuation("->")
    dest_type = parser.parse_type()
    groups = [
        parser.resolve_operand(source, source_type),
        parser.resolve_operand(dest, dest_type),
        *([padding] if has_padding else []),
        parser.resolve_operands(dynamic, [IndexType()] * len(dynamic), start),
    ]
    return cls.build(
        operands=groups,
        properties={
            "outer_dims_perm": DenseArrayBase.from_list(i64, list(outer)),
            "inner_dims_pos": DenseArrayBase.from_list(i64, positions),
            "static_inner_tiles": DenseArrayBase.from_list(i64, list(static)),
        },
        attributes=attributes,
        result_types=[[dest_type] if isinstance(dest_type, TensorType) else []],
    )


def _properties(tiles: Sequence[SSAValue | int], positions: Sequence[int], outer: Sequence[int]):
    static, dynamic = split_dynamic_index_list(tiles, DYNAMIC_INDEX)
    return dynamic, {
        "outer_dims_perm": DenseArrayBase.from_list(i64, list(outer)),
        "inner_dims_pos": DenseArrayBase.from_list(i64, list(positions)),
        "static_inner_tiles": DenseArrayBase.from_list(i64, static),
    }


@irdl_op_definition
class PackOp(_Relayout):
    """Packs a tensor into tiles, padding partial ones (MLIR: linalg.pack)."""

    name = "linalg.pack"
    source = operand_def(ShapedType)
    dest = operand_def(ShapedType)
    padding_value = opt_operand_def()
    inner_tiles = var_operand_def(IndexType)
    outer_dims_perm = prop_def(
        DenseArrayBase.constr(i64), default_value=DenseArrayBase.from_list(i64, [])
    )
    inner_dims_pos = prop_def(DenseArrayBase.constr(i64))
    static_inner_tiles = prop_def(DenseArrayBase.constr(i64))
    res = var_result_def(TensorType)
    irdl_options = (AttrSizedOperandSegments(as_property=True),)
    traits = traits_def(DestinationStyleEffects())

    def __init__(
        self,
        source: SSAValue,
        dest: SSAValue,
        inner_dims_pos: Sequence[int],
        inner_tiles: Sequence[SSAValue | int],
        outer_dims_perm: Sequence[int] = (),
        padding_value: SSAValue | None = None,
    ):
        dynamic, properties = _properties(inner_tiles, inner_dims_pos, outer_dims_perm)
        super().__init__(
            operands=[source, dest, padding_value, dynamic],
            properties=properties,
            result_types=[[dest.type] if isinstance(dest.type, TensorType) else []],
        )

    @classmethod
    def parse(cls, parser: Parser) -> PackOp:
        return _parse_relayout(cls, parser, has_padding=True)

    def print(self, printer: Printer) -> None:
        self._print(printer, self.padding_value)

    def verify_(self) -> None:
        self._verify(self.source, self.dest)
        if self.padding_value is not None and self.padding_value.type != _element(self.source):
            raise VerifyException("expected the padding to have the element type of the source")
        if self.padding_value is None:
            shape = _shape(self.source)
            for position, tile in zip(
                self.inner_dims_pos.get_values(), self.static_inner_tiles.get_values()
            ):
                if DYNAMIC_INDEX not in (shape[position], tile) and shape[position] % tile:
                    raise VerifyException(
                        "invalid tile factor or output size provided: a padding_value is needed"
                    )


@irdl_op_definition
class UnPackOp(_Relayout):
    """Unpacks a tensor of tiles, dropping the padding (MLIR: linalg.unpack)."""

    name = "linalg.unpack"
    source = operand_def(ShapedType)
    dest = operand_def(ShapedType)
    inner_tiles = var_operand_def(IndexType)
    outer_dims_perm = prop_def(
        DenseArrayBase.constr(i64), default_value=DenseArrayBase.from_list(i64, [])
    )
    inner_dims_pos = prop_def(DenseArrayBase.constr(i64))
    static_inner_tiles = prop_def(DenseArrayBase.constr(i64))
    res = var_result_def(TensorType)
    traits = traits_def(DestinationStyleEffects())

    def __init__(
        self,
        source: SSAValue,
        dest: SSAValue,
        inner_dims_pos: Sequence[int],
        inner_tiles: Sequence[SSAValue | int],
        outer_dims_perm: Sequence[int] = (),
    ):
        dynamic, properties = _properties(inner_tiles, inner_dims_pos, outer_dims_perm)
        super().__init__(
            operands=[source, dest, dynamic],
            properties=properties,
            result_types=[[dest.type] if isinstance(dest.type, TensorType) else []],
        )

    @classmethod
    def parse(cls, parser: Parser) -> UnPackOp:
        return _parse_relayout(cls, parser, has_padding=False)

    def print(self, printer: Printer) -> None:
        self._print(printer, None)

    def verify_(self) -> None:
        self._verify(self.dest, self.source)


FMR = ("F_2_3", "F_4_3", "F_2_5")
"""Winograd F(m, r): tiles of m outputs, filters of size r."""


class _Winograd(IRDLOperation):
    @property
    def m_and_r(self) -> tuple[int, int]:
        """The output tile size m and the filter size r."""
        _, m, r = FMR[self.fmr.value.data].split("_")  # type: ignore[attr-defined]
        return int(m), int(r)

    @classmethod
    def parse(cls, parser: Parser):
        start = parser.pos
        attributes = parser.parse_optional_attr_dict()
        parser.parse_keyword("fmr")
        with parser.in_parens():
            name = parser.parse_identifier()
        if name not in FMR:
            parser.raise_error("expected F_2_3, F_4_3 or F_2_5", start, parser.pos)
        ins, outs = parse_operand_group(parser, "ins"), parse_operand_group(parser, "outs")
        results = parse_arrow_types(parser)
        if len(ins) != 1 or len(outs) != 1:
            parser.raise_error("expected one input and one output", start, parser.pos)
        return cls.build(
            operands=[ins[0], outs[0]],
            properties={"fmr": IntegerAttr(FMR.index(name), i32)},
            attributes=attributes,
            result_types=[results],
        )

    def print(self, printer: Printer) -> None:
        printer.print_op_attributes(self.attributes)
        printer.print_string(f" fmr({FMR[self.fmr.value.data]})")  # type: ignore[attr-defined]
        print_operand_group(printer, "ins", self.operands[:1])
        print_operand_group(printer, "outs", self.operands[1:])
        print_arrow_types(printer, [result.type for result in self.results])

    def verify_(self) -> None:
        if not 0 <= self.fmr.value.data < len(FMR):  # type: ignore[attr-defined]
            raise VerifyException("expected F_2_3, F_4_3 or F_2_5")
        if _element(self.operands[0]) != _element(self.operands[1]):
            raise VerifyException("expected input and output to have the same element type")
        _check_result(self, self.operands[1])


def _winograd(op_name: str, what: str) -> type[_Winograd]:
    namespace = {
        "__doc__": f"{what} (MLIR: {op_name}).",
        "__module__": __name__,
        "__annotations__": {},
        "name": op_name,
        "input": operand_def(ShapedType),
        "output": operand_def(ShapedType),
        "fmr": prop_def(IntegerAttr.constr(i32)),
        "res": var_result_def(TensorType),
        "traits": traits_def(DestinationStyleEffects()),
    }
    class_name = "".join(part.capitalize() for part in op_name.split(".")[1].split("_")) + "Op"
    return irdl_op_definition(type(class_name, (_Winograd,), namespace))


OPS = [
    SoftmaxOp,
    PackOp,
    UnPackOp,
    _winograd("linalg.winograd_filter_transform", "G . filter . G^T of a filter, F x H x W x C"),
    _winograd(
        "linalg.winograd_input_transform", "B^T . tile . B of the tiles of an image, N x H x W x C"
    ),
    _winograd("linalg.winograd_output_transform", "A^T . tile . A, back to an image N x H x W x F"),
]
