"""Additions to xDSL's memref: two ops, assembly formats, and globals with resource data."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

from xdsl.dialects import memref
from xdsl.dialects.builtin import (
    DYNAMIC_INDEX,
    AffineMapAttr,
    BoolAttr,
    IndexType,
    IntegerAttr,
    MemRefType,
    StringAttr,
    TensorType,
    UnitAttr,
    i32,
    i64,
)
from xdsl.ir import Attribute, SSAValue
from xdsl.irdl import (
    AnyAttr,
    IRDLOperation,
    irdl_op_definition,
    operand_def,
    prop_def,
    result_def,
    traits_def,
    var_operand_def,
)
from xdsl.irdl.operations import OptPropertyDef
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.traits import NoMemoryEffect
from xdsl.utils.exceptions import VerifyException

from ._format import set_format


@irdl_op_definition
class TransposeOp(IRDLOperation):
    """Returns a view of a memref with permuted dims (MLIR: memref.transpose)."""

    name = "memref.transpose"
    source = operand_def(MemRefType)
    permutation = prop_def(AffineMapAttr)
    result = result_def(MemRefType)
    traits = traits_def(NoMemoryEffect())

    def __init__(self, source: SSAValue, permutation: AffineMapAttr, result_type: Attribute):
        super().__init__(
            operands=[source], properties={"permutation": permutation}, result_types=[result_type]
        )

    @classmethod
    def parse(cls, parser: Parser) -> TransposeOp:
        source = parser.parse_unresolved_operand()
        map_ = parser.parse_affine_map()
        attributes = parser.parse_optional_attr_dict()
        parser.parse_punctuation(":")
        source_type = parser.parse_type()
        parser.parse_keyword("to")
        op = cls(
            parser.resolve_operand(source, source_type), AffineMapAttr(map_), parser.parse_type()
        )
        op.attributes |= attributes
        return op

    def print(self, printer: Printer) -> None:
        printer.print_string(" ")
        printer.print_ssa_value(self.source)
        printer.print_string(f" {self.permutation.data}")
        printer.print_op_attributes(self.attributes)
        printer.print_string(" : ")
        printer.print_attribute(self.source.type)
        printer.print_string(" to ")
        printer.print_attribute(self.result.type)


L1, L2 = 3, 2
"""Localities of prefetches into the L1 cache and into the L2 cache."""


@irdl_op_definition
class PrefetchOp(IRDLOperation):
    """Hints that an element will be read or written soon (MLIR: memref.prefetch)."""

    name = "memref.prefetch"
    memref = operand_def(MemRefType)
    indices = var_operand_def(IndexType())
    isWrite = prop_def(BoolAttr)
    localityHint = prop_def(IntegerAttr)
    isDataCache = prop_def(BoolAttr)

    def __init__(
        self,
        source: SSAValue,
        indices: Sequence[SSAValue],
        *,
        is_write: bool = False,
        locality: int = L1,
        is_data: bool = True,
    ):
        super().__init__(
            operands=[source, indices],
            properties={
                "isWrite": BoolAttr.from_bool(is_write),
                "localityHint": IntegerAttr(locality, i32),
                "isDataCache": BoolAttr.from_bool(is_data),
            },
        )

    def verify_(self) -> None:
        if len(self.indices) != self.memref.type.get_num_dims():
            raise VerifyException("expected one index per dimension")
        if not 0 <= self.localityHint.value.data <= 3:
            raise VerifyException("expected a locality from 0 to 3")

    @classmethod
    def parse(cls, parser: Parser) -> PrefetchOp:
        source = parser.parse_unresolved_operand()
        indices = parser.parse_comma_separated_list(
            parser.Delimiter.SQUARE, parser.parse_unresolved_operand
        )
        parser.parse_punctuation(",")
        is_write = parser.parse_keyword_in({"read", "write"}) == "write"
        parser.parse_punctuation(",")
        parser.parse_keyword("locality")
        parser.parse_punctuation("<")
        locality = parser.parse_integer()
        parser.parse_punctuation(">")
        parser.parse_punctuation(",")
        is_data = parser.parse_keyword_in({"data", "instr"}) == "data"
        attributes = parser.parse_optional_attr_dict()
        parser.parse_punctuation(":")
        op = cls(
            parser.resolve_operand(source, parser.parse_type()),
            parser.resolve_operands(indices, [IndexType()] * len(indices), parser.pos),
            is_write=is_write,
            locality=locality,
            is_data=is_data,
        )
        op.attributes |= attributes
        return op

    def print(self, printer: Printer) -> None:
        printer.print_string(" ")
        printer.print_ssa_value(self.memref)
        with printer.in_square_brackets():
            printer.print_list(self.indices, printer.print_ssa_value)
        printer.print_string(", write" if self.isWrite.value.data else ", read")
        printer.print_string(f", locality<{self.localityHint.value.data}>")
        printer.print_string(", data" if self.isDataCache.value.data else ", instr")
        printer.print_op_attributes(self.attributes)
        printer.print_string(" : ")
        printer.print_attribute(self.memref.type)


def _parse_global(cls: type[memref.GlobalOp], parser: Parser) -> memref.GlobalOp:
    visibility = parser.parse_optional_str_literal()
    constant = parser.parse_optional_keyword("constant") is not None
    name = parser.parse_symbol_name()
    parser.parse_punctuation(":")
    start = parser.pos
    type_ = parser.parse_type()
    if not isinstance(type_, MemRefType):
        message = "expected the type of a memref.global to be a memref"
        parser.raise_error(message, start, parser.pos)
    value: Attribute | None = None
    if parser.parse_optional_punctuation("="):
        if parser.parse_optional_keyword("uninitialized"):
            value = UnitAttr()
        else:
            value = _parse_elements(parser, type_)
    alignment: Attribute | None = None
    if parser.parse_optional_keyword("alignment"):
        parser.parse_punctuation("=")
        alignment = IntegerAttr(parser.parse_integer(), i64)
    attributes = dict(parser.parse_optional_attr_dict())
    op = cls.build(
        properties={
            "sym_name": name,
            "type": type_,
            "initial_value": value,
            "sym_visibility": None if visibility is None else StringAttr(visibility),
            "constant": UnitAttr() if constant else None,
            "alignment": attributes.pop("alignment", alignment),
        }
    )
    op.attributes |= attributes
    return op


def _parse_elements(parser: Parser, type_: MemRefType) -> Attribute:
    """Parses the initial value. A `dense<...>` without a type has the global's type."""
    text = parser.lexer.input.content
    if parser.parse_optional_keyword("dense") is None:
        return parser.parse_attribute()
    tensor_type = TensorType(type_.element_type, type_.get_shape())
    end = _end_of_brackets(text, parser.pos)
    own_type = text[end:].lstrip()[:1] == ":"
    return parser.parse_dense_int_or_fp_elements_attr(None if own_type else tensor_type)


def _end_of_brackets(text: str, start: int) -> int:
    """Returns the position after the `>` that closes the `<` at `start`."""
    depth, quoted = 0, False
    for position in range(start, len(text)):
        char = text[position]
        if char == '"':
            quoted = not quoted
        elif not quoted:
            depth += (char == "<") - (char == ">")
            if depth == 0:
                return position + 1
    return len(text)


def _print_global(op: memref.GlobalOp, printer: Printer) -> None:
    visibility = op.properties.get("sym_visibility")
    if isinstance(visibility, StringAttr):
        printer.print_string(" ")
        printer.print_string_literal(visibility.data)
    if op.constant is not None:
        printer.print_string(" constant")
    printer.print_string(" ")
    printer.print_symbol_name(op.sym_name.data)
    printer.print_string(" : ")
    printer.print_attribute(op.type)
    value = op.properties.get("initial_value")
    if isinstance(value, UnitAttr):
        printer.print_string(" = uninitialized")
    elif value is not None:
        printer.print_string(" = ")
        if hasattr(value, "print_without_type") and value.name == "dense":
            value.print_without_type(printer)  # type: ignore[attr-defined]
        else:
            printer.print_attribute(value)
    if op.alignment is not None:
        printer.print_string(f" alignment = {op.alignment.value.data}")
    printer.print_op_attributes(op.attributes)


def _verify_copy(op: memref.CopyOp) -> None:
    op.get_irdl_definition().verify(op)
    source, dest = op.source.type, op.destination.type
    assert isinstance(source, MemRefType)
    assert isinstance(dest, MemRefType)
    pairs = list(zip(source.get_shape(), dest.get_shape()))
    if source.get_num_dims() != dest.get_num_dims() or any(
        DYNAMIC_INDEX not in p and p[0] != p[1] for p in pairs
    ):
        raise VerifyException("Expected source and destination to have the same shape.")
    if source.element_type != dest.element_type:
        raise VerifyException("Expected source and destination to have the same element type.")


ATOMIC_KINDS = """
addf addi andi assign maximumf maxnumf maxs maxu minimumf minnumf mins minu mulf muli ori xori
""".split()
"""Combining kinds of `memref.atomic_rmw`, by enum value (ArithBase.td)."""


def _parse_atomic_rmw(cls: type[memref.AtomicRMWOp], parser: Parser) -> memref.AtomicRMWOp:
    kind = parser.parse_identifier()
    if kind not in ATOMIC_KINDS:
        parser.raise_error(f"expected one of {', '.join(ATOMIC_KINDS)}")
    value = parser.parse_unresolved_operand()
    parser.parse_punctuation(",")
    buffer = parser.parse_unresolved_operand()
    indices = parser.parse_comma_separated_list(
        parser.Delimiter.SQUARE, parser.parse_unresolved_operand
    )
    attributes = parser.parse_optional_attr_dict()
    parser.parse_punctuation(":")
    types = parser.parse_comma_separated_list(parser.Delimiter.PAREN, parser.parse_type)
    parser.parse_punctuation("->")
    result = parser.parse_type()
    if len(types) != 2:
        parser.raise_error("expected the types of the value and of the memref")
    operands = parser.resolve_operands([value, buffer], types, parser.pos)
    places = [parser.resolve_operand(index, IndexType()) for index in indices]
    op = atomic_rmw(kind, operands[0], operands[1], places, result)
    op.attributes |= attributes
    return op


def _print_atomic_rmw(op: memref.AtomicRMWOp, printer: Printer) -> None:
    printer.print_string(f" {ATOMIC_KINDS[op.kind.value.data]} ")
    printer.print_list((op.value, op.memref), printer.print_ssa_value)
    with printer.in_square_brackets():
        printer.print_list(op.indices, printer.print_ssa_value)
    printer.print_op_attributes(op.attributes)
    printer.print_string(" : (")
    printer.print_list((op.value.type, op.memref.type), printer.print_attribute)
    printer.print_string(") -> ")
    printer.print_attribute(op.result.type)


def atomic_rmw(
    kind: str,
    value: SSAValue,
    buffer: SSAValue,
    indices: Sequence[SSAValue],
    result: Attribute | None = None,
) -> memref.AtomicRMWOp:
    """Returns an atomic read-modify-write of kind `kind`, which yields the old value."""
    return memref.AtomicRMWOp.build(
        operands=[value, buffer, indices],
        properties={"kind": IntegerAttr(ATOMIC_KINDS.index(kind), i64)},
        result_types=[result or value.type],
    )


@cache
def patch() -> None:
    """Patches xDSL's memref classes in place, once."""
    properties = memref.GlobalOp.get_irdl_definition().properties
    properties["initial_value"] = OptPropertyDef(AnyAttr())
    properties["sym_visibility"] = OptPropertyDef(properties["sym_visibility"].constr)
    memref.GlobalOp.parse = classmethod(_parse_global)
    memref.GlobalOp.print = _print_global
    memref.CopyOp.verify_ = _verify_copy
    memref.AtomicRMWOp.parse = classmethod(_parse_atomic_rmw)
    memref.AtomicRMWOp.print = _print_atomic_rmw
    set_format(
        memref.CopyOp,
        "$source `,` $destination attr-dict `:` type($source) `to` type($destination)",
    )
    set_format(memref.CastOp, "$source attr-dict `:` type($source) `to` type($dest)")
    set_format(memref.MemorySpaceCastOp, "$source attr-dict `:` type($source) `to` type($dest)")
    set_format(memref.RankOp, "$source attr-dict `:` type($source)")
    set_format(
        memref.ExtractAlignedPointerAsIndexOp,
        "$source `:` type($source) `->` type($aligned_pointer) attr-dict",
    )


OPS: tuple[type, ...] = (PrefetchOp, TransposeOp)

patch()
