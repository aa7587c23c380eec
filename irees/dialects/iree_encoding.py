"""
`iree_encoding`: the memory layout of a tensor, as an attribute of its type.

`set_encoding` and `unset_encoding` change only the layout, not the shape. Names, syntax and
verification are IREE's (`compiler/src/iree/compiler/Dialect/Encoding/IR`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from xdsl.dialects.builtin import (
    DYNAMIC_INDEX,
    AffineMapAttr,
    ArrayAttr,
    DictionaryAttr,
    IndexType,
    IntAttr,
    IntegerAttr,
    NoneAttr,
    StringAttr,
    TensorType,
    i64,
)
from xdsl.ir import Attribute, Dialect, ParametrizedAttribute, SSAValue
from xdsl.irdl import (
    AttrSizedOperandSegments,
    IRDLOperation,
    irdl_attr_definition,
    irdl_op_definition,
    operand_def,
    result_def,
    traits_def,
    var_operand_def,
)
from xdsl.parser import AttrParser, Parser
from xdsl.printer import Printer
from xdsl.traits import Pure
from xdsl.utils.exceptions import VerifyException

Read = Callable[[AttrParser], Attribute]
Write = Callable[[Printer, Attribute], None]
Field = tuple[Read, Write]


def _size(parser: AttrParser) -> IntegerAttr:
    dynamic = parser.parse_optional_punctuation("?")
    return IntegerAttr(DYNAMIC_INDEX if dynamic else parser.parse_integer(), i64)


def _read_sizes(parser: AttrParser) -> Attribute:
    square = parser.Delimiter.SQUARE
    return ArrayAttr(parser.parse_comma_separated_list(square, lambda: _size(parser)))


def _write_sizes(printer: Printer, sizes: Attribute) -> None:
    assert isinstance(sizes, ArrayAttr)
    numbers = [number.value.data for number in sizes]
    with printer.in_square_brackets():
        printer.print_string(", ".join("?" if n == DYNAMIC_INDEX else str(n) for n in numbers))


def _write_attribute(printer: Printer, attribute: Attribute) -> None:
    printer.print_attribute(attribute)


def _write_keyword(printer: Printer, keyword: Attribute) -> None:
    assert isinstance(keyword, StringAttr)
    printer.print_string(keyword.data)


ATTRIBUTE: Field = (lambda parser: parser.parse_attribute(), _write_attribute)
KEYWORD: Field = (lambda parser: StringAttr(parser.parse_identifier()), _write_keyword)
SIZES: Field = (_read_sizes, _write_sizes)

OPERAND_FIELDS = {
    "operand_index": ATTRIBUTE,
    "op_type": KEYWORD,
    "element_types": ATTRIBUTE,
    "original_element_type": ATTRIBUTE,
    "user_indexing_maps": ATTRIBUTE,
    "iteration_sizes": SIZES,
}
TESTING_FIELDS = {"layouts": ATTRIBUTE, "original_element_type": ATTRIBUTE}


def _parse_struct(parser: AttrParser, known: Mapping[str, Field]) -> tuple[DictionaryAttr]:
    """Parses `<name = value, ...>`, each value in the syntax of its field."""
    found: dict[str, Attribute] = {}

    def one() -> None:
        start = parser.pos
        name = parser.parse_identifier()
        if name not in known or name in found:
            parser.raise_error(f"unexpected field {name!r}", start, parser.pos)
        parser.parse_punctuation("=")
        found[name] = known[name][0](parser)

    parser.parse_comma_separated_list(parser.Delimiter.ANGLE, one)
    return (DictionaryAttr(found),)


def _print_struct(printer: Printer, fields: DictionaryAttr, known: Mapping[str, Field]) -> None:
    with printer.in_angle_brackets():
        shown = [name for name in known if name in fields.data]
        for number, name in enumerate(shown):
            printer.print_string(", " * bool(number) + f"{name} = ")
            known[name][1](printer, fields.data[name])


def _composed(number: int, attribute: Attribute) -> list[AffineMapAttr]:
    """Returns the maps of an entry: one map, or a list of maps to compose."""
    maps = list(attribute.data) if isinstance(attribute, ArrayAttr) else [attribute]
    if not all(isinstance(each, AffineMapAttr) for each in maps):
        raise VerifyException(
            f"found a non-composable attribute in `user_indexing_maps` at index: {number}"
        )
    return maps  # type: ignore[return-value]


@irdl_attr_definition
class EncodingAttr(ParametrizedAttribute):
    """
    `#iree_encoding.encoding<operand_index = 0 : i64, op_type = matmul, element_types = [..]>`: the
    tensor's role as an operand of a contraction, from which the target chooses tile sizes
    (IREE: EncodingAttr).
    """

    name = "iree_encoding.encoding"
    fields: DictionaryAttr

    @classmethod
    def parse_parameters(cls, parser: AttrParser) -> tuple[DictionaryAttr]:
        return _parse_struct(parser, OPERAND_FIELDS)

    def print_parameters(self, printer: Printer) -> None:
        _print_struct(printer, self.fields, OPERAND_FIELDS)

    def verify(self) -> None:
        for name in ("operand_index", "op_type", "element_types"):
            if name not in self.fields.data:
                raise VerifyException(f"expected the field {name}")
        maps, sizes = (self.fields.data.get(n) for n in ("user_indexing_maps", "iteration_sizes"))
        if not isinstance(maps, ArrayAttr):
            if sizes is not None:
                raise VerifyException(
                    "found `iteration_sizes` without any corresponding `user_indexing_maps`"
                )
            return
        index = self.fields.data["operand_index"]
        if isinstance(index, IntegerAttr) and index.value.data >= len(maps):
            raise VerifyException("`operand_index` exceeds the size of `user_indexing_maps`")
        composed = [_composed(number, each) for number, each in enumerate(maps.data)]
        loops = composed[0][0].data.num_dims if composed and composed[0] else 0
        if isinstance(sizes, ArrayAttr) and len(sizes) != loops:
            raise VerifyException(
                f"found an encoding with {len(sizes)} iteration sizes, but expected {loops} based "
                "on the user indexing maps"
            )

    def dynamic_sizes(self) -> int | None:
        """Returns how many `encoding_dims` `set_encoding` needs, or None if not specified."""
        sizes = self.fields.data.get("iteration_sizes")
        if not isinstance(sizes, ArrayAttr):
            return None
        return sum(size == IntegerAttr(DYNAMIC_INDEX, i64) for size in sizes)


@irdl_attr_definition
class TestingAttr(ParametrizedAttribute):
    """`#iree_encoding.testing<>`: an encoding without meaning, for tests (IREE: TestingAttr)."""

    name = "iree_encoding.testing"
    fields: DictionaryAttr

    @classmethod
    def parse_parameters(cls, parser: AttrParser) -> tuple[DictionaryAttr]:
        return _parse_struct(parser, TESTING_FIELDS)

    def print_parameters(self, printer: Printer) -> None:
        _print_struct(printer, self.fields, TESTING_FIELDS)


@irdl_attr_definition
class PaddingAttr(ParametrizedAttribute):
    """`#iree_encoding.padding<[0, ?, 64]>`: trailing padding per dim (IREE: PaddingAttr)."""

    name = "iree_encoding.padding"
    padding: ArrayAttr[IntegerAttr]

    @classmethod
    def parse_parameters(cls, parser: AttrParser) -> tuple[Attribute]:
        with parser.in_angle_brackets():
            return (_read_sizes(parser),)

    def print_parameters(self, printer: Printer) -> None:
        with printer.in_angle_brackets():
            _write_sizes(printer, self.padding)

    def verify(self) -> None:
        if any(n.value.data < 0 and n.value.data != DYNAMIC_INDEX for n in self.padding):
            raise VerifyException("expected all padding values to be non-negative or dynamic")


@irdl_attr_definition
class LayoutAttr(ParametrizedAttribute):
    """`#iree_encoding.layout<[..]>`: the layouts chosen by the targets (IREE: LayoutAttr)."""

    name = "iree_encoding.layout"
    layouts: ArrayAttr[Attribute]

    def verify(self) -> None:
        if not self.layouts.data:
            raise VerifyException("expected non-empty layouts")
        if any(isinstance(each, UnknownAttr) for each in self.layouts):
            raise VerifyException("expected all layouts to be ones that a target resolves")


@irdl_attr_definition
class IdentityAttr(ParametrizedAttribute):
    """`#iree_encoding.identity`: row-major, like no encoding (IREE: IdentityAttr)."""

    name = "iree_encoding.identity"


@irdl_attr_definition
class PackedStorageAttr(ParametrizedAttribute):
    """`#iree_encoding.packed_storage`: sub-byte elements are packed (IREE: PackedStorageAttr)."""

    name = "iree_encoding.packed_storage"


@irdl_attr_definition
class UnknownAttr(ParametrizedAttribute):
    """`#iree_encoding.unknown`: an encoding that no target resolves, for tests (UnknownAttr)."""

    name = "iree_encoding.unknown"


@irdl_attr_definition
class SpecializedAttr(ParametrizedAttribute):
    """`#iree_encoding.specialized<123, type>`: a resolved layout, for tests (SpecializedAttr)."""

    name = "iree_encoding.specialized"
    seed: IntAttr
    type: Attribute

    @classmethod
    def parse_parameters(cls, parser: AttrParser) -> tuple[IntAttr, Attribute]:
        with parser.in_angle_brackets():
            seed = IntAttr(parser.parse_integer())
            if parser.parse_optional_punctuation(",") is None:
                return seed, NoneAttr()
            return seed, parser.parse_type()

    def print_parameters(self, printer: Printer) -> None:
        with printer.in_angle_brackets():
            printer.print_int(self.seed.data)
            if not isinstance(self.type, NoneAttr):
                printer.print_string(", ")
                printer.print_attribute(self.type)


ENCODINGS = (
    EncodingAttr,
    IdentityAttr,
    LayoutAttr,
    PackedStorageAttr,
    PaddingAttr,
    SpecializedAttr,
    TestingAttr,
    UnknownAttr,
)
"""Attributes that may be the encoding of a tensor type (IREE: SerializableAttr)."""


def _verify_change(plain: SSAValue, encoded: SSAValue, dims: int, what: tuple[str, str]) -> None:
    assert isinstance(plain.type, TensorType)
    assert isinstance(encoded.type, TensorType)
    if not isinstance(plain.type.encoding, NoneAttr):
        raise VerifyException(f"{what[0]} cannot have a tensor encoding")
    encoding = encoded.type.encoding
    if not isinstance(encoding, ENCODINGS):
        raise VerifyException(f"{what[1]} expected to have a valid tensor encoding")
    shapes = plain.type.get_shape(), encoded.type.get_shape()
    if len(shapes[0]) != len(shapes[1]):
        raise VerifyException("cannot change the rank of the tensor")
    if any(a != b and DYNAMIC_INDEX not in (a, b) for a, b in zip(*shapes, strict=True)):
        raise VerifyException("expected to preserve the logical shape of the tensor")
    expected = encoding.dynamic_sizes() if isinstance(encoding, EncodingAttr) else None
    if expected is not None and expected != dims:
        raise VerifyException(
            f"encoding expects {expected} dynamic encoding dimension(s), but {dims} provided"
        )


@irdl_op_definition
class SetEncodingOp(IRDLOperation):
    """Converts a tensor to another layout, e.g. packed (IREE: iree_encoding.set_encoding)."""

    name = "iree_encoding.set_encoding"
    source = operand_def(TensorType)
    encoding_dims = var_operand_def(IndexType)
    result = result_def(TensorType)
    traits = traits_def(Pure())
    assembly_format = (
        "attr-dict $source (`encoding_dims` `{` $encoding_dims^ `}`)? "
        "`:` type($source) `->` type($result)"
    )

    def verify_(self) -> None:
        what = ("source of set_encoding op", "result of set_encoding op")
        _verify_change(self.source, self.result, len(self.encoding_dims), what)


@irdl_op_definition
class UnsetEncodingOp(IRDLOperation):
    """
    Converts a tensor back to row-major order; `result_dims` are its dynamic dims
    (IREE: iree_encoding.unset_encoding).
    """

    name = "iree_encoding.unset_encoding"
    source = operand_def(TensorType)
    result_dims = var_operand_def(IndexType)
    encoding_dims = var_operand_def(IndexType)
    result = result_def(TensorType)
    irdl_options = (AttrSizedOperandSegments(as_property=True),)
    traits = traits_def(Pure())

    @classmethod
    def parse(cls, parser: Parser) -> UnsetEncodingOp:
        def index() -> SSAValue:
            return parser.resolve_operand(parser.parse_unresolved_operand(), IndexType())

        braces = parser.Delimiter.BRACES
        attributes = parser.parse_optional_attr_dict()
        source = parser.parse_unresolved_operand()
        encoding_dims: list[SSAValue] = []
        if parser.parse_optional_keyword("encoding_dims"):
            encoding_dims = parser.parse_comma_separated_list(braces, index)
        parser.parse_punctuation(":")
        kind = parser.parse_type()
        parser.parse_punctuation("->")
        result = parser.parse_type()
        dims = parser.parse_optional_comma_separated_list(braces, index) or []
        return cls.build(
            operands=[parser.resolve_operand(source, kind), dims, encoding_dims],
            result_types=[result],
            attributes=attributes,
        )

    def print(self, printer: Printer) -> None:
        printer.print_op_attributes(self.attributes)
        printer.print_string(" ")
        printer.print_operand(self.source)
        if self.encoding_dims:
            printer.print_string(" encoding_dims")
            with printer.in_braces():
                printer.print_list(self.encoding_dims, printer.print_operand)
        printer.print_string(" : ")
        printer.print_attribute(self.source.type)
        printer.print_string(" -> ")
        printer.print_attribute(self.result.type)
        if self.result_dims:
            with printer.in_braces():
                printer.print_list(self.result_dims, printer.print_operand)

    def verify_(self) -> None:
        what = ("result of unset_encoding op", "source of unset_encoding op")
        _verify_change(self.result, self.source, len(self.encoding_dims), what)
        assert isinstance(self.result.type, TensorType)
        dynamic = self.result.type.get_shape().count(DYNAMIC_INDEX)
        if len(self.result_dims) != dynamic:
            raise VerifyException(
                f"result type set has {dynamic} dynamic dimensions but "
                f"{len(self.result_dims)} dimension values are attached"
            )


IreeEncoding = Dialect("iree_encoding", [SetEncodingOp, UnsetEncodingOp], list(ENCODINGS))
