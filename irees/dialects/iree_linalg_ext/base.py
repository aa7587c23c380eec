"""
Base of the iree_linalg_ext ops: assembly, verifier helpers, and destination-passing style.

Each op keeps IREE's operand names (`updates`, `indices`, `original`, ...), so that its generic form
is IREE's. `inputs` and `outputs` are the same operands in destination-passing style, for tiling and
bufferization. All ops share one assembly, for which an op only declares its clauses:

    name attr-dict clause* ins(...) outs(...) late-clause? region? (-> types)?
"""

from __future__ import annotations

from abc import ABC
from collections.abc import Mapping, Sequence
from typing import ClassVar

from xdsl.dialects.builtin import (
    DYNAMIC_INDEX,
    ArrayAttr,
    BoolAttr,
    DenseArrayBase,
    IntegerAttr,
    ShapedType,
    TensorType,
    UnitAttr,
    i1,
    i64,
)
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue
from xdsl.irdl import IRDLOperation, var_result_def
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.utils.exceptions import VerifyException

from ..upstream.linalg.syntax import (
    parse_arrow_types,
    parse_operand_group,
    print_arrow_types,
    print_operand_group,
)


class Clause:
    """Assembly of a property: `keyword(value)`, `keyword = value` or a bare `keyword`."""

    def __init__(self, keyword: str, kind: str, equals: bool = False, optional: bool = False):
        self.keyword, self.kind, self.equals, self.optional = keyword, kind, equals, optional

    def parse(self, parser: Parser) -> Attribute | None:
        """Parses the clause; returns None if it is optional and absent."""
        if self.kind == "unit":
            return UnitAttr() if parser.parse_optional_keyword(self.keyword) else None
        if self.optional:
            if parser.parse_optional_keyword(self.keyword) is None:
                return None
        else:
            parser.parse_keyword(self.keyword)
        if self.equals:
            parser.parse_punctuation("=")
            return self._value(parser)
        with parser.in_parens():
            return self._value(parser)

    def _value(self, parser: Parser) -> Attribute:
        if self.kind == "int":
            return IntegerAttr(parser.parse_integer(), i64)
        if self.kind == "bool":
            return BoolAttr.from_bool(parser.parse_boolean())
        numbers = parser.parse_comma_separated_list(parser.Delimiter.SQUARE, parser.parse_integer)
        return DenseArrayBase.from_list(i64, numbers)

    def print(self, attr: Attribute | None, printer: Printer) -> None:
        """Prints the clause as `parse` reads it."""
        if attr is None:
            return
        printer.print_string(f" {self.keyword}")
        if self.kind == "unit":
            return
        if self.kind == "int":
            text = str(attr.value.data)  # type: ignore[attr-defined]
        elif self.kind == "bool":
            text = "true" if attr.value.data else "false"  # type: ignore[attr-defined]
        else:
            text = "[" + ", ".join(str(v) for v in attr.get_values()) + "]"
        printer.print_string(f" = {text}" if self.equals else f"({text})")


DIMENSION = Clause("dimension", "int")
DIMENSION_MAP = Clause("dimension_map", "ints", equals=True)


class LinalgExtOperation(IRDLOperation, ABC):
    """An op of iree_linalg_ext in destination-passing style."""

    CLAUSES: ClassVar[tuple[Clause, ...]] = ()
    INT_LISTS: ClassVar[tuple[str, ...]] = ()
    NUM_INS: ClassVar[tuple[int, int]] = (0, 1 << 30)
    NUM_OUTS: ClassVar[tuple[int, int]] = (1, 1 << 30)

    res = var_result_def(TensorType)

    @classmethod
    def arrange(cls, ins: Sequence[SSAValue], outs: Sequence[SSAValue]) -> Sequence:
        """Returns the operand groups of the op, in the order of its definition."""
        return [ins, outs]

    @property
    def inputs(self) -> Sequence[SSAValue]:
        """The operands that are only read."""
        return self.operands[: len(self.operands) - len(self.outputs)]

    @property
    def outputs(self) -> Sequence[SSAValue]:
        """The operands that are written: memrefs in place, tensors as results."""
        raise NotImplementedError

    @classmethod
    def of(
        cls,
        ins: Sequence[SSAValue],
        outs: Sequence[SSAValue],
        properties: Mapping[str, Attribute | None],
        body: Region | Block | None = None,
        result_types: Sequence[Attribute] | None = None,
    ):
        """
        Returns an op with these operands. By default there is one result per tensor in `outs`.
        """
        if result_types is None:
            result_types = [value.type for value in outs if isinstance(value.type, TensorType)]
        regions = [] if body is None else [Region(body) if isinstance(body, Block) else body]
        return cls.build(
            operands=cls.arrange(list(ins), list(outs)),
            result_types=[list(result_types)],
            properties=dict(properties),
            regions=regions,
        )

    @classmethod
    def parse_late(cls, parser: Parser, operands: list) -> None:
        """Parses the late clause, between `outs` and the region."""

    def print_late(self, printer: Printer) -> None:
        """Prints the late clause as `parse_late` reads it."""

    @classmethod
    def parse(cls, parser: Parser):
        start = parser.pos
        attributes = dict(parser.parse_optional_attr_dict())
        properties: dict[str, Attribute | None] = {}
        for clause in cls.CLAUSES:
            properties[clause.keyword] = clause.parse(parser)
        ins = parse_operand_group(parser, "ins")
        outs = parse_operand_group(parser, "outs")
        for what, values, (low, high) in (("ins", ins, cls.NUM_INS), ("outs", outs, cls.NUM_OUTS)):
            if not low <= len(values) <= high:
                wanted = str(low) if low == high else f"{low} to {high}"
                parser.raise_error(
                    f"expected {wanted} {what} operands, but got {len(values)}", start, parser.pos
                )
        operands = list(cls.arrange(ins, outs))
        cls.parse_late(parser, operands)
        definition = cls.get_irdl_definition()
        regions = [parser.parse_region()] if definition.regions else []
        result_types = cls.parse_results(parser)
        attributes.pop("operandSegmentSizes", None)
        for key in list(attributes):
            if key in definition.properties:
                properties[key] = attributes.pop(key)
        for key in cls.INT_LISTS:
            properties[key] = _to_dense(parser, properties.get(key))
        return cls.build(
            operands=operands,
            result_types=[result_types],
            properties=properties,
            attributes=attributes,
            regions=regions,
        )

    @classmethod
    def parse_results(cls, parser: Parser) -> Sequence[Attribute]:
        """Parses `-> types`, or nothing."""
        return parse_arrow_types(parser)

    def print_results(self, printer: Printer) -> None:
        """Prints result types as `parse_results` reads them."""
        print_arrow_types(printer, [result.type for result in self.results], parens=False)

    def print(self, printer: Printer) -> None:
        shown = {clause.keyword for clause in self.CLAUSES} | {"operandSegmentSizes"}
        rest = {k: v for k, v in {**self.properties, **self.attributes}.items() if k not in shown}
        if rest:
            printer.print_op_attributes(rest)
        for clause in self.CLAUSES:
            default = self.get_irdl_definition().properties[clause.keyword].default_value
            clause.print(self.properties.get(clause.keyword, default), printer)
        print_operand_group(printer, "ins", self.inputs)
        print_operand_group(printer, "outs", self.outputs)
        self.print_late(printer)
        for region in self.regions:
            printer.print_string(" ")
            printer.print_region(region)
        self.print_results(printer)

    def verify_inits(self) -> None:
        """
        Checks that outs are all tensors or all memrefs, with one result of its type per tensor.
        """
        inits = [value.type for value in self.outputs if isinstance(value.type, TensorType)]
        if inits and len(inits) != len(self.outputs):
            raise VerifyException("expected either all tensor or all memref outs")
        if [result.type for result in self.results] != inits:
            raise VerifyException("expected the results to have the types of the tensor outs")


def _to_dense(parser: Parser, attr: Attribute | None) -> Attribute | None:
    """Converts `[1, 2]` to `array<i64: 1, 2>`."""
    if not isinstance(attr, ArrayAttr):
        return attr
    if not all(isinstance(item, IntegerAttr) for item in attr):
        parser.raise_error("expected a list of integers")
    return DenseArrayBase.from_list(i64, [item.value.data for item in attr])


def shape_of(value: SSAValue) -> tuple[int, ...]:
    """Returns the shape of a tensor or memref. Raises VerifyException for other types."""
    if not isinstance(value.type, ShapedType):
        raise VerifyException(f"expected a shaped operand, but got {value.type}")
    return value.type.get_shape()


def element_of(value: SSAValue) -> Attribute:
    """Returns the element type of a tensor or memref."""
    return value.type.get_element_type()  # type: ignore[union-attr]


def check_compatible(a: Sequence[int], b: Sequence[int], what: str) -> None:
    """Raises VerifyException unless two shapes can be equal at run time."""
    if len(a) != len(b) or any(
        DYNAMIC_INDEX not in pair and pair[0] != pair[1] for pair in zip(a, b)
    ):
        raise VerifyException(f"incompatible {what} shapes: {list(a)} and {list(b)}")


def check_dimension(dimension: int, rank: int) -> None:
    """Checks that a dim is within a rank."""
    if not 0 <= dimension < rank:
        raise VerifyException(f"dimension must be within [0, {rank}), but is {dimension}")


def check_region(
    region: Region, arguments: Sequence[Attribute], results: Sequence[Attribute], terminator: str
) -> None:
    """Checks that a region's block takes these types and that its terminator yields these types."""
    if [arg.type for arg in region.block.args] != list(arguments):
        wanted = ", ".join(str(t) for t in arguments)
        raise VerifyException(
            f"expected the region to take {len(arguments)} arguments of types {wanted}"
        )
    last: Operation | None = region.block.last_op
    if last is None or last.name != terminator:
        raise VerifyException(f"expected the region to end in {terminator}")
    if [value.type for value in last.operands] != list(results):
        wanted = ", ".join(str(t) for t in results)
        raise VerifyException(
            f"expected the region to yield {len(results)} values of types {wanted}"
        )


def check_comparator(region: Region, elements: Sequence[Attribute]) -> None:
    """Checks that a region takes two values of each element type and yields an i1."""
    check_region(region, [e for e in elements for _ in range(2)], [i1], "iree_linalg_ext.yield")
