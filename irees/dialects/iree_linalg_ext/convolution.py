"""iree_linalg_ext ops for convolutions and FFT: im2col, winograd.*, fft."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from xdsl.dialects.builtin import (
    DYNAMIC_INDEX,
    AnyFloat,
    ArrayAttr,
    DenseArrayBase,
    IndexType,
    IntegerAttr,
    IntegerType,
    ShapedType,
    i64,
)
from xdsl.dialects.utils import (
    parse_dynamic_index_list_without_types,
    print_dynamic_index_list,
    verify_dynamic_index_list,
)
from xdsl.ir import Attribute, SSAValue
from xdsl.irdl import (
    AttrSizedOperandSegments,
    irdl_op_definition,
    operand_def,
    opt_operand_def,
    prop_def,
    traits_def,
    var_operand_def,
)
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.utils.exceptions import VerifyException
from xdsl.utils.hints import isa

from irees.dialects.canonicalization import DATA_MOVEMENT

from ..upstream._effects import DestinationStyleEffects
from ..upstream.linalg.syntax import parse_operand_group, print_operand_group
from .base import Clause, LinalgExtOperation, element_of, shape_of

LAST_STAGE = 62
"""Largest stage of an FFT: a block size of 2^62 still fits in an index."""


@irdl_op_definition
class FftOp(LinalgExtOperation):
    """
    One stage of an in-place radix-2 FFT of the innermost dim, whose size is a power of two; the
    input is bit-reversed before the first stage (IREE: iree_linalg_ext.fft).
    """

    name = "iree_linalg_ext.fft"
    NUM_INS: ClassVar = (1, 3)
    NUM_OUTS: ClassVar = (2, 2)
    stage = operand_def()
    real_coeff = opt_operand_def(ShapedType)
    imag_coeff = opt_operand_def(ShapedType)
    real = operand_def(ShapedType)
    imag = operand_def(ShapedType)
    irdl_options = (AttrSizedOperandSegments(as_property=True),)
    traits = traits_def(DestinationStyleEffects())

    @classmethod
    def arrange(cls, ins, outs):
        return [ins[0], ins[1:2], ins[2:3], *outs]

    @classmethod
    def parse_results(cls, parser: Parser) -> Sequence[Attribute]:
        if parser.parse_optional_punctuation(":") is None:
            return ()
        return parser.parse_comma_separated_list(parser.Delimiter.NONE, parser.parse_type)

    def print_results(self, printer: Printer) -> None:
        if self.results:
            printer.print_string(" : ")
            printer.print_list([result.type for result in self.results], printer.print_attribute)

    @property
    def outputs(self):
        return (self.real, self.imag)

    def verify_(self) -> None:
        if not isinstance(self.stage.type, IndexType | IntegerType):
            raise VerifyException("expected to carry `stage` input")
        if (self.real_coeff is None) != (self.imag_coeff is None):
            raise VerifyException("expected both coefficients or none")
        shape = shape_of(self.real)
        if (
            not shape
            or shape != shape_of(self.imag)
            or element_of(self.real) != element_of(self.imag)
        ):
            raise VerifyException(
                "expected real and imag to be of the same type, of rank 1 or more"
            )
        if shape[-1] != DYNAMIC_INDEX and (shape[-1] < 1 or shape[-1] & (shape[-1] - 1)):
            raise VerifyException("only powers of 2 are handled currently")
        if not isa(element_of(self.real), AnyFloat):
            raise VerifyException("expected elements to be floating point numbers")
        for given in (self.real_coeff, self.imag_coeff):
            if given is not None and (
                len(shape_of(given)) != 1 or element_of(given) != element_of(self.real)
            ):
                raise VerifyException("expected coefficients of rank 1 of the operands' elements")
        self.verify_inits()


class _Winograd(LinalgExtOperation):
    """Base of the Winograd transforms."""

    NUM_INS: ClassVar = (1, 1)
    NUM_OUTS: ClassVar = (1, 1)

    @classmethod
    def arrange(cls, ins, outs):
        return [ins[0], outs[0]]

    @property
    def outputs(self):
        return (self.operands[1],)

    def verify_tile(self, tiled: SSAValue, dims: Sequence[int], flat: SSAValue) -> None:
        """
        Checks that two dims of `flat` are transformed, and that the leading two dims of `tiled` are
        tiles of size output_tile_size + kernel_size - 1.
        """
        tile = self.output_tile_size.value.data + self.kernel_size.value.data - 1
        rank = len(shape_of(flat))
        if len(dims) != 2 or any(not 0 <= d < rank for d in dims) or dims[0] == dims[1]:
            raise VerifyException("expected exactly two different dimensions of the operand")
        if element_of(tiled) != element_of(flat):
            raise VerifyException("expected input and output to have the same element type")
        leading = shape_of(tiled)[:2]
        if len(shape_of(tiled)) > 2 and any(size not in (tile, DYNAMIC_INDEX) for size in leading):
            raise VerifyException(f"expected the first two dimensions of the tiles to be {tile}")
        self.verify_inits()


_TILE = (Clause("output_tile_size", "int"), Clause("kernel_size", "int"))


@irdl_op_definition
class WinogradInputTransformOp(_Winograd):
    """B^T . tile . B of the tiles of an image (IREE: iree_linalg_ext.winograd.input_transform)."""

    name = "iree_linalg_ext.winograd.input_transform"
    CLAUSES: ClassVar = (*_TILE, Clause("image_dimensions", "ints"))
    input = operand_def(ShapedType)
    output = operand_def(ShapedType)
    output_tile_size = prop_def(IntegerAttr.constr(i64))
    kernel_size = prop_def(IntegerAttr.constr(i64))
    image_dimensions = prop_def(DenseArrayBase.constr(i64))
    traits = traits_def(DestinationStyleEffects())

    def verify_(self) -> None:
        self.verify_tile(self.output, self.image_dimensions.get_values(), self.input)


@irdl_op_definition
class WinogradFilterTransformOp(_Winograd):
    """G . filter . G^T of a filter (IREE: iree_linalg_ext.winograd.filter_transform)."""

    name = "iree_linalg_ext.winograd.filter_transform"
    CLAUSES: ClassVar = (*_TILE, Clause("kernel_dimensions", "ints"))
    input = operand_def(ShapedType)
    output = operand_def(ShapedType)
    output_tile_size = prop_def(IntegerAttr.constr(i64))
    kernel_size = prop_def(IntegerAttr.constr(i64))
    kernel_dimensions = prop_def(DenseArrayBase.constr(i64))
    traits = traits_def(DestinationStyleEffects())

    def verify_(self) -> None:
        self.verify_tile(self.output, self.kernel_dimensions.get_values(), self.input)


@irdl_op_definition
class WinogradOutputTransformOp(_Winograd):
    """A^T . tile . A back to an image (IREE: iree_linalg_ext.winograd.output_transform)."""

    name = "iree_linalg_ext.winograd.output_transform"
    CLAUSES: ClassVar = (*_TILE, Clause("image_dimensions", "ints"))
    input = operand_def(ShapedType)
    output = operand_def(ShapedType)
    output_tile_size = prop_def(IntegerAttr.constr(i64))
    kernel_size = prop_def(IntegerAttr.constr(i64))
    image_dimensions = prop_def(DenseArrayBase.constr(i64))
    traits = traits_def(DestinationStyleEffects())

    def verify_(self) -> None:
        self.verify_tile(self.input, self.image_dimensions.get_values(), self.output)


_LISTS = ("kernel_size", "offsets")
_PADS = ("input_pad_low", "input_pad_high", "output_pad_low", "output_pad_high")
_POSITIONS = ("batch_pos", "m_pos", "k_pos", "input_k_perm", "output_perm")


@irdl_op_definition
class Im2colOp(LinalgExtOperation):
    """
    Expands the image of a convolution into a matrix for a matmul. Element (batch, M, K) is the
    input element at m * stride + window * dilation and its channel, or `pad_value` out of bounds
    (IREE: iree_linalg_ext.im2col).
    """

    name = "iree_linalg_ext.im2col"
    input = operand_def(ShapedType)
    output = operand_def(ShapedType)
    strides = prop_def(DenseArrayBase.constr(i64))
    dilations = prop_def(DenseArrayBase.constr(i64))
    kernel_size = var_operand_def(IndexType)
    static_kernel_size = prop_def(DenseArrayBase.constr(i64))
    offsets = var_operand_def(IndexType)
    static_offsets = prop_def(DenseArrayBase.constr(i64))
    output_sizes = var_operand_def(IndexType)
    static_output_sizes = prop_def(ArrayAttr[DenseArrayBase])
    batch_pos = prop_def(DenseArrayBase.constr(i64))
    m_pos = prop_def(DenseArrayBase.constr(i64))
    k_pos = prop_def(DenseArrayBase.constr(i64))
    input_k_perm = prop_def(DenseArrayBase.constr(i64))
    output_perm = prop_def(DenseArrayBase.constr(i64))
    input_pad_low = var_operand_def(IndexType)
    static_input_pad_low = prop_def(
        DenseArrayBase.constr(i64), default_value=DenseArrayBase.from_list(i64, [])
    )
    input_pad_high = var_operand_def(IndexType)
    static_input_pad_high = prop_def(
        DenseArrayBase.constr(i64), default_value=DenseArrayBase.from_list(i64, [])
    )
    output_pad_low = var_operand_def(IndexType)
    static_output_pad_low = prop_def(
        DenseArrayBase.constr(i64), default_value=DenseArrayBase.from_list(i64, [])
    )
    output_pad_high = var_operand_def(IndexType)
    static_output_pad_high = prop_def(
        DenseArrayBase.constr(i64), default_value=DenseArrayBase.from_list(i64, [])
    )
    pad_value = opt_operand_def()
    irdl_options = (AttrSizedOperandSegments(as_property=True),)
    traits = traits_def(DestinationStyleEffects(), DATA_MOVEMENT)

    @property
    def inputs(self):
        return (self.input,)

    @property
    def outputs(self):
        return (self.output,)

    @classmethod
    def parse(cls, parser: Parser):
        start = parser.pos
        attributes = parser.parse_optional_attr_dict()
        properties: dict[str, Attribute] = {}
        dynamic: dict[str, list] = {name: [] for name in (*_LISTS, "output_sizes", *_PADS)}

        def ints(name: str) -> None:
            parser.parse_keyword(name)
            parser.parse_punctuation("=")
            numbers = parser.parse_comma_separated_list(
                parser.Delimiter.SQUARE, parser.parse_integer
            )
            properties[name] = DenseArrayBase.from_list(i64, numbers)

        def index_list(name: str) -> list[int]:
            values, static = parse_dynamic_index_list_without_types(
                parser, dynamic_index=DYNAMIC_INDEX
            )
            dynamic[name].extend(values)
            return list(static)

        ints("strides")
        ints("dilations")
        for name in _LISTS:
            parser.parse_keyword(name)
            parser.parse_punctuation("=")
            properties[f"static_{name}"] = DenseArrayBase.from_list(i64, index_list(name))
        parser.parse_keyword("output_sizes")
        parser.parse_punctuation("=")
        nested = parser.parse_comma_separated_list(
            parser.Delimiter.SQUARE, lambda: index_list("output_sizes")
        )
        properties["static_output_sizes"] = ArrayAttr(
            [DenseArrayBase.from_list(i64, group) for group in nested]
        )
        for name in _POSITIONS:
            ints(name)
        for name in _PADS:
            if parser.parse_optional_keyword(name):
                parser.parse_punctuation("=")
                properties[f"static_{name}"] = DenseArrayBase.from_list(i64, index_list(name))
        pad: list[SSAValue] = []
        if parser.parse_optional_keyword("pad_value"):
            with parser.in_parens():
                value = parser.parse_unresolved_operand()
                parser.parse_punctuation(":")
                pad = [parser.resolve_operand(value, parser.parse_type())]
        ins, outs = parse_operand_group(parser, "ins"), parse_operand_group(parser, "outs")
        if len(ins) != 1 or len(outs) != 1:
            parser.raise_error("expected one input and one output", start, parser.pos)
        values = {
            name: parser.resolve_operands(found, [IndexType()] * len(found), start)
            for name, found in dynamic.items()
        }
        return cls.build(
            operands=[ins[0], outs[0], *values.values(), pad],
            result_types=[cls.parse_results(parser)],
            properties=properties,
            attributes=attributes,
        )

    def print(self, printer: Printer) -> None:
        def ints(name: str) -> None:
            numbers = ", ".join(str(v) for v in self.properties[name].get_values())
            printer.print_string(f" {name} = [{numbers}]")

        def index_list(name: str) -> None:
            printer.print_string(f" {name} = ")
            static = self.properties[f"static_{name}"].get_values()  # type: ignore[attr-defined]
            print_dynamic_index_list(printer, DYNAMIC_INDEX, getattr(self, name), static)

        printer.print_op_attributes(self.attributes)
        ints("strides")
        ints("dilations")
        for name in _LISTS:
            index_list(name)
        printer.print_string(" output_sizes = [")
        rest = list(self.output_sizes)
        for position, group in enumerate(self.static_output_sizes):
            printer.print_string(", " if position else "")
            numbers = list(group.get_values())
            count = numbers.count(DYNAMIC_INDEX)
            print_dynamic_index_list(printer, DYNAMIC_INDEX, rest[:count], numbers)
            rest = rest[count:]
        printer.print_string("]")
        for name in _POSITIONS:
            ints(name)
        for name in _PADS:
            if (attr := self.properties.get(f"static_{name}")) is not None and len(attr):
                index_list(name)
        if self.pad_value is not None:
            printer.print_string(" pad_value(")
            printer.print_ssa_value(self.pad_value)
            printer.print_string(" : ")
            printer.print_attribute(self.pad_value.type)
            printer.print_string(")")
        print_operand_group(printer, "ins", self.inputs)
        print_operand_group(printer, "outs", self.outputs)
        self.print_results(printer)

    def verify_(self) -> None:
        rank = len(shape_of(self.input))
        positions = [
            p
            for name in ("batch_pos", "m_pos", "k_pos")
            for p in self.properties[name].get_values()
        ]  # type: ignore[attr-defined]
        if sorted(positions) != list(range(rank)):
            raise VerifyException(
                "batch_pos, m_pos and k_pos must name every dim of the input once"
            )
        windows = len(self.m_pos.get_values())
        for name in ("strides", "dilations", "static_kernel_size"):
            if len(self.properties[name]) != windows:  # type: ignore[arg-type]
                raise VerifyException(
                    f"expected {name.removeprefix('static_')} to have as many elements as m_pos"
                )
        output = len(shape_of(self.output))
        if (
            sorted(self.output_perm.get_values()) != list(range(output))
            or len(self.static_offsets) != output
        ):
            raise VerifyException(
                "expected output_perm to permute, and offsets to have, the dims of the output"
            )
        if len(self.static_output_sizes) != output:
            raise VerifyException("expected one group of output_sizes per dim of the output")
        for name in (*_LISTS, *_PADS):
            static = self.properties[f"static_{name}"].get_values()  # type: ignore[attr-defined]
            verify_dynamic_index_list(static, getattr(self, name), DYNAMIC_INDEX, f" in {name}")
        sizes = [size for group in self.static_output_sizes for size in group.get_values()]
        verify_dynamic_index_list(sizes, self.output_sizes, DYNAMIC_INDEX, " in output_sizes")
        if element_of(self.input) != element_of(self.output):
            raise VerifyException("expected input and output to have the same element type")
        if self.pad_value is not None and self.pad_value.type != element_of(self.input):
            raise VerifyException("expected pad_value to have the element type of the input")
        self.verify_inits()
