"""
iree_linalg_ext ops that move elements by computed indices: scatter, gather, map_load, map_store.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from xdsl.dialects.builtin import (
    DYNAMIC_INDEX,
    BoolAttr,
    DenseArrayBase,
    IndexType,
    IntegerType,
    ShapedType,
    i1,
    i64,
)
from xdsl.ir import SSAValue
from xdsl.irdl import (
    irdl_op_definition,
    operand_def,
    opt_operand_def,
    prop_def,
    region_def,
    traits_def,
)
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.utils.exceptions import VerifyException

from irees.dialects.canonicalization import DATA_MOVEMENT

from ..upstream._effects import DestinationStyleEffects
from ..upstream.linalg.syntax import parse_arrow_types, print_arrow_types
from .base import (
    DIMENSION_MAP,
    Clause,
    LinalgExtOperation,
    check_compatible,
    check_region,
    element_of,
    shape_of,
)


class _Indexed(LinalgExtOperation):
    """
    Base of scatter and gather: `whole` is indexed in the dims of `dimension_map`, `part` holds the
    slices.
    """

    NUM_INS: ClassVar = (2, 3)
    NUM_OUTS: ClassVar = (1, 1)

    @classmethod
    def arrange(cls, ins, outs):
        return [*ins[:2], ins[2:], outs[0]]

    @property
    def index_depth(self) -> int:
        """The number of indexed dims of the whole."""
        return len(self.dimension_map)  # type: ignore[attr-defined]

    @property
    def batch_rank(self) -> int:
        """The number of leading batch dims of the part."""
        whole, part = self._whole_and_part()
        return len(shape_of(part)) - (len(shape_of(whole)) - self.index_depth)

    def _whole_and_part(self) -> tuple[SSAValue, SSAValue]:
        raise NotImplementedError

    def verify_indices(self, whole_name: str, part_name: str) -> None:
        """Verifies `dimension_map`, indices and mask."""
        whole_value, part_value = self._whole_and_part()
        whole, part = shape_of(whole_value), shape_of(part_value)
        indices = shape_of(self.indices)  # type: ignore[attr-defined]
        dims = self.dimension_map.get_values()  # type: ignore[attr-defined]
        depth = len(dims)
        if not depth or sorted(dims) != list(range(depth)):
            raise VerifyException(
                "dimension map is invalid: it must be a permutation of [0, index depth)"
            )
        if not indices or not isinstance(element_of(self.indices), IntegerType | IndexType):
            raise VerifyException(
                "expected indices to be of rank 1 or greater and of integer or index element type"
            )
        slice_rank = len(whole) - depth
        if slice_rank < 0:
            raise VerifyException(
                f"expected {whole_name} rank to be greater or equal to index depth"
            )
        batch = len(part) - slice_rank
        if batch < 0:
            raise VerifyException(
                f"expected {part_name} to be at least the rank of non indexed {whole_name} dims"
            )
        if len(indices) != batch + 1 and not (len(indices) == batch and depth == 1):
            raise VerifyException("expected indices to be equal to batch rank or batch rank + 1")
        check_compatible(indices[:batch], part[:batch], f"indices and {part_name} batch")
        if len(indices) == batch + 1 and indices[-1] not in (depth, DYNAMIC_INDEX):
            raise VerifyException("size of dimension map must match the last dimension of indices")
        check_compatible(part[batch:], whole[depth:], f"{part_name} and {whole_name} slice")
        mask = self.mask  # type: ignore[attr-defined]
        if mask is not None:
            if element_of(mask) not in (i1, IntegerType(8)):
                raise VerifyException(
                    "expected mask to have i1 or storage-legalized i8 element type"
                )
            check_compatible(shape_of(mask), part[:batch], "mask and batch")
        if element_of(whole_value) != element_of(part_value):
            raise VerifyException(
                f"expected {whole_name} and {part_name} to have the same element type"
            )


@irdl_op_definition
class ScatterOp(_Indexed):
    """
    For each batch index b: original[dimension_map <- indices[b]] = region(updates[b],
    original[...]). Batch dims lead. Out-of-range indices and updates with a false mask are skipped.
    If `unique_indices` is false, updates are applied in order (IREE: iree_linalg_ext.scatter).
    """

    name = "iree_linalg_ext.scatter"
    CLAUSES: ClassVar = (DIMENSION_MAP, Clause("unique_indices", "bool"))
    updates = operand_def(ShapedType)
    indices = operand_def(ShapedType)
    mask = opt_operand_def(ShapedType)
    original = operand_def(ShapedType)
    dimension_map = prop_def(DenseArrayBase.constr(i64))
    unique_indices = prop_def(BoolAttr, default_value=BoolAttr.from_bool(True))
    body = region_def("single_block")
    traits = traits_def(DestinationStyleEffects())

    @property
    def outputs(self):
        return (self.original,)

    def _whole_and_part(self):
        return self.original, self.updates

    def verify_(self) -> None:
        self.verify_indices("original", "update")
        element = element_of(self.original)
        check_region(self.body, [element, element], [element], "iree_linalg_ext.yield")
        self.verify_inits()


@irdl_op_definition
class GatherOp(_Indexed):
    """
    For each batch index b: output[b] = source[dimension_map <- indices[b]]. Where the mask is
    false, the output keeps its old value (IREE: iree_linalg_ext.gather).
    """

    name = "iree_linalg_ext.gather"
    CLAUSES: ClassVar = (DIMENSION_MAP,)
    source = operand_def(ShapedType)
    indices = operand_def(ShapedType)
    mask = opt_operand_def(ShapedType)
    output = operand_def(ShapedType)
    dimension_map = prop_def(DenseArrayBase.constr(i64))
    traits = traits_def(DestinationStyleEffects(), DATA_MOVEMENT)

    @property
    def outputs(self):
        return (self.output,)

    def _whole_and_part(self):
        return self.source, self.output

    def verify_(self) -> None:
        self.verify_indices("source", "output")
        self.verify_inits()


class _Mapped(LinalgExtOperation):
    """Base of map_load and map_store: `%a into %b { region } : type into type -> type`."""

    @classmethod
    def parse(cls, parser: Parser):
        start = parser.pos
        attributes = parser.parse_optional_attr_dict()
        operands = [parser.parse_unresolved_operand()]
        parser.parse_keyword("into")
        operands.append(parser.parse_unresolved_operand())
        region = parser.parse_region()
        parser.parse_punctuation(":")
        types = [parser.parse_type()]
        parser.parse_keyword("into")
        types.append(parser.parse_type())
        results = parse_arrow_types(parser)
        return cls.build(
            operands=parser.resolve_operands(operands, types, start),
            result_types=[results],
            attributes=attributes,
            regions=[region],
        )

    def print(self, printer: Printer) -> None:
        if self.attributes:
            printer.print_op_attributes(self.attributes)
        printer.print_string(" ")
        printer.print_ssa_value(self.operands[0])
        printer.print_string(" into ")
        printer.print_ssa_value(self.operands[1])
        printer.print_string(" ")
        printer.print_region(self.regions[0])
        printer.print_string(" : ")
        printer.print_attribute(self.operands[0].type)
        printer.print_string(" into ")
        printer.print_attribute(self.operands[1].type)
        print_arrow_types(printer, [result.type for result in self.results])

    @classmethod
    def arrange(cls, ins: Sequence[SSAValue], outs: Sequence[SSAValue]):
        return [ins[0], outs[0]]

    @property
    def outputs(self):
        return (self.operands[1],)


@irdl_op_definition
class MapLoadOp(_Mapped):
    """
    Loads each output element from the source at the indices that the region computes from the
    output indices. Out of bounds, the element is the padding that the region yields last
    (IREE: iree_linalg_ext.map_load).
    """

    name = "iree_linalg_ext.map_load"
    source = operand_def(ShapedType)
    output = operand_def(ShapedType)
    body = region_def("single_block")
    traits = traits_def(DestinationStyleEffects(), DATA_MOVEMENT)

    def verify_(self) -> None:
        element = element_of(self.source)
        if element != element_of(self.output):
            raise VerifyException("expected source and output element types to match")
        indices = [IndexType()] * len(shape_of(self.output))
        yields = [*[IndexType()] * len(shape_of(self.source)), element]
        check_region(self.body, indices, yields, "iree_linalg_ext.yield")
        self.verify_inits()


@irdl_op_definition
class MapStoreOp(_Mapped):
    """
    Stores each input element to the output at the indices that the region computes from the input
    indices, unless the i1 that it yields last is false (IREE: iree_linalg_ext.map_store).
    """

    name = "iree_linalg_ext.map_store"
    input = operand_def(ShapedType)
    output = operand_def(ShapedType)
    body = region_def("single_block")
    traits = traits_def(DestinationStyleEffects(), DATA_MOVEMENT)

    def verify_(self) -> None:
        if element_of(self.input) != element_of(self.output):
            raise VerifyException("expected input and output element types to match")
        rank = len(shape_of(self.input))
        if not rank:
            raise VerifyException("expected input type to have non-zero rank")
        yields = [*[IndexType()] * len(shape_of(self.output)), i1]
        check_region(self.body, [IndexType()] * rank, yields, "iree_linalg_ext.yield")
        self.verify_inits()
