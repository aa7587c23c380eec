"""
iree_linalg_ext ops that sort or accumulate along one dim: sort, topk, topk_v2, arg_compare, scan.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from xdsl.dialects.builtin import (
    DYNAMIC_INDEX,
    BoolAttr,
    DenseArrayBase,
    IndexType,
    IntegerAttr,
    IntegerType,
    ShapedType,
    UnitAttr,
    i64,
)
from xdsl.ir import SSAValue
from xdsl.irdl import (
    AttrSizedOperandSegments,
    ParsePropInAttrDict,
    irdl_op_definition,
    operand_def,
    opt_operand_def,
    opt_prop_def,
    prop_def,
    region_def,
    traits_def,
    var_operand_def,
)
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.utils.exceptions import VerifyException

from irees.dialects.canonicalization import UNUSED_RESULTS

from ..upstream._effects import DestinationStyleEffects
from .base import (
    DIMENSION,
    Clause,
    LinalgExtOperation,
    check_comparator,
    check_compatible,
    check_dimension,
    check_region,
    element_of,
    shape_of,
)


def without(shape: Sequence[int], dim: int) -> tuple[int, ...]:
    """Returns a shape without one dim."""
    return (*shape[:dim], *shape[dim + 1 :])


@irdl_op_definition
class SortOp(LinalgExtOperation):
    """
    Sorts all operands jointly along a dim. The comparator takes a pair of elements of each operand
    and returns true if the left ones come first. `ins`, if present, are the unsorted values of
    `outs` (IREE: iree_linalg_ext.sort). `positions` (irees) lists the `outs` without `ins`: each of
    their unsorted elements is its position along the dim.
    """

    name = "iree_linalg_ext.sort"
    CLAUSES: ClassVar = (DIMENSION, Clause("positions", "ints", optional=True))
    ins_ = var_operand_def()
    outs_ = var_operand_def(ShapedType)
    dimension = prop_def(IntegerAttr.constr(i64))
    positions = opt_prop_def(DenseArrayBase)
    body = region_def("single_block")
    irdl_options = (AttrSizedOperandSegments(as_property=True),)
    traits = traits_def(DestinationStyleEffects(), UNUSED_RESULTS)

    @property
    def inputs(self):
        return self.ins_

    @property
    def outputs(self):
        return self.outs_

    @property
    def generated(self) -> tuple[int, ...]:
        """The numbers of the operands whose unsorted elements are their positions."""
        return () if self.positions is None else tuple(self.positions.get_values())

    @property
    def sources(self) -> list[SSAValue | None]:
        """The unsorted values of each operand; None stands for the positions."""
        if not self.inputs:
            return list(self.outputs)
        inputs, generated = iter(self.inputs), self.generated
        return [None if i in generated else next(inputs) for i in range(len(self.outputs))]

    def _verify_positions(self) -> None:
        generated = self.generated
        if not generated:
            return
        if list(generated) != sorted({i for i in generated if 0 <= i < len(self.outputs)}):
            raise VerifyException("expected `positions` to be increasing numbers of `outs`")
        if not self.inputs:
            raise VerifyException("expected `positions` only with `ins`")
        if not all(isinstance(element_of(self.outputs[i]), IntegerType) for i in generated):
            raise VerifyException("expected the `outs` in `positions` to have integer elements")

    def verify_(self) -> None:
        if not self.outputs:
            raise VerifyException("expected at least one `outs` operand")
        self._verify_positions()
        if self.inputs and len(self.inputs) + len(self.generated) != len(self.outputs):
            raise VerifyException("expected no `ins` operands, or one per `outs` operand")
        shape = shape_of(self.outputs[0])
        check_dimension(self.dimension.value.data, len(shape))
        for value in (*self.inputs, *self.outputs):
            check_compatible(shape_of(value), shape, "operand")
        for source, init in zip(self.sources, self.outputs):
            if source is not None and element_of(source) != element_of(init):
                raise VerifyException("expected `ins` and `outs` to have the same element types")
        check_comparator(self.body, [element_of(value) for value in self.outputs])
        self.verify_inits()


@irdl_op_definition
class TopkOp(LinalgExtOperation):
    """
    Top K elements along a dim by a comparator, with their indices. The outs start as the best
    entries so far: an element is inserted before the first entry that it beats, so ties keep the
    earlier one (IREE: iree_linalg_ext.topk).
    """

    name = "iree_linalg_ext.topk"
    CLAUSES: ClassVar = (DIMENSION,)
    NUM_INS: ClassVar = (1, 2)
    NUM_OUTS: ClassVar = (2, 2)
    values = operand_def(ShapedType)
    indices = opt_operand_def(ShapedType)
    output_values = operand_def(ShapedType)
    output_indices = operand_def(ShapedType)
    dimension = prop_def(IntegerAttr.constr(i64))
    body = region_def("single_block")
    traits = traits_def(DestinationStyleEffects())

    @classmethod
    def arrange(cls, ins, outs):
        return [ins[0], ins[1:], *outs]

    @property
    def outputs(self):
        return (self.output_values, self.output_indices)

    def verify_(self) -> None:
        _verify_topk(self, [IntegerType(32)] if self.indices is not None else None)


@irdl_op_definition
class TopkV2Op(LinalgExtOperation):
    """
    Top K elements along a dim by a comparator, where K is the size of the outs in that dim. Indices
    are optional, of any integer type, and are positions along the dim unless input indices are
    given. With `is_sorted` the result is sorted (IREE: iree_linalg_ext.topk_v2).
    """

    name = "iree_linalg_ext.topk_v2"
    CLAUSES: ClassVar = (DIMENSION, Clause("is_sorted", "unit"))
    NUM_INS: ClassVar = (1, 2)
    NUM_OUTS: ClassVar = (1, 2)
    dimension = prop_def(IntegerAttr.constr(i64))
    is_sorted = opt_prop_def(UnitAttr)
    values = operand_def(ShapedType)
    indices = opt_operand_def(ShapedType)
    output_values = operand_def(ShapedType)
    output_indices = opt_operand_def(ShapedType)
    body = region_def("single_block")
    irdl_options = (AttrSizedOperandSegments(as_property=True), ParsePropInAttrDict())
    traits = traits_def(DestinationStyleEffects(), UNUSED_RESULTS)

    @classmethod
    def arrange(cls, ins, outs):
        return [ins[0], ins[1:], outs[0], outs[1:]]

    @property
    def outputs(self):
        indices = self.output_indices
        return (self.output_values,) if indices is None else (self.output_values, indices)

    def verify_(self) -> None:
        if self.indices is not None and self.output_indices is None:
            raise VerifyException("input indices require output indices to carry provenance")
        _verify_topk(self, None)


def _verify_topk(op: TopkOp | TopkV2Op, index_types: list | None) -> None:
    source, values = shape_of(op.values), shape_of(op.output_values)
    dim = op.dimension.value.data
    check_dimension(dim, len(source))
    if len(source) != len(values):
        raise VerifyException("expected input/output to have the same rank")
    check_compatible(without(source, dim), without(values, dim), "input/output")
    if element_of(op.values) != element_of(op.output_values):
        raise VerifyException("expected input/output value types to be identical")
    sizes = source[dim], values[dim]
    if isinstance(op, TopkV2Op) and DYNAMIC_INDEX not in sizes and not 0 < sizes[1] <= sizes[0]:
        raise VerifyException(
            f"output dimension must be positive and not exceed input, got {sizes[1]} > {sizes[0]}"
        )
    for indices, shape in ((op.indices, source), (op.output_indices, values)):
        if indices is None:
            continue
        check_compatible(shape_of(indices), shape, "values/indices")
        if not isinstance(element_of(indices), IntegerType | IndexType):
            raise VerifyException("expected indices to be of integer type")
        if index_types is not None and element_of(indices) not in index_types:
            raise VerifyException("expected input/output indices types to be i32")
    if op.indices is not None and op.output_indices is not None:
        if element_of(op.indices) != element_of(op.output_indices):
            raise VerifyException("expected input/output indices element types to be identical")
    check_comparator(op.body, [element_of(op.values)])
    op.verify_inits()


@irdl_op_definition
class ArgCompareOp(LinalgExtOperation):
    """
    Reduces a dim to its best element by a comparator, with its index: the position along the dim
    plus `index_base`, or an element of an index input. The outs are the initial best
    (IREE: iree_linalg_ext.arg_compare).
    """

    name = "iree_linalg_ext.arg_compare"
    CLAUSES: ClassVar = (DIMENSION,)
    NUM_INS: ClassVar = (1, 2)
    NUM_OUTS: ClassVar = (2, 2)
    input_value = operand_def(ShapedType)
    input_index = opt_operand_def(ShapedType)
    output_value = operand_def(ShapedType)
    output_index = operand_def(ShapedType)
    index_base = opt_operand_def(IndexType)
    dimension = prop_def(IntegerAttr.constr(i64))
    body = region_def("single_block")
    irdl_options = (AttrSizedOperandSegments(as_property=True),)
    traits = traits_def(DestinationStyleEffects())

    @classmethod
    def arrange(cls, ins, outs):
        return [ins[0], ins[1:], *outs, []]

    @classmethod
    def parse_late(cls, parser: Parser, operands: list) -> None:
        if parser.parse_optional_keyword("index_base"):
            with parser.in_parens():
                base = parser.parse_unresolved_operand()
                parser.parse_punctuation(":")
                operands[-1] = [parser.resolve_operand(base, parser.parse_type())]

    def print_late(self, printer: Printer) -> None:
        if self.index_base is not None:
            printer.print_string(" index_base(")
            printer.print_ssa_value(self.index_base)
            printer.print_string(" : index)")

    @property
    def inputs(self) -> Sequence[SSAValue]:
        index = self.input_index
        return (self.input_value,) if index is None else (self.input_value, index)

    @property
    def outputs(self):
        return (self.output_value, self.output_index)

    def verify_(self) -> None:
        shape = shape_of(self.input_value)
        dim = self.dimension.value.data
        check_dimension(dim, len(shape))
        if self.input_index is not None:
            check_compatible(shape, shape_of(self.input_index), "value and index input")
            if element_of(self.input_index) != element_of(self.output_index):
                raise VerifyException("input and output index element types must match")
            if self.index_base is not None:
                raise VerifyException("index_base must not be used with explicit indices")
        if element_of(self.input_value) != element_of(self.output_value):
            raise VerifyException("input and output value element types must match")
        if not isinstance(element_of(self.output_index), IntegerType | IndexType):
            raise VerifyException("output index must have integer or index element type")
        for value in self.outputs:
            check_compatible(shape_of(value), without(shape, dim), "output and reduced input")
        check_comparator(self.body, [element_of(self.input_value)])
        self.verify_inits()


@irdl_op_definition
class ScanOp(LinalgExtOperation):
    """
    Prefix scan along a dim. The accumulator result is the last element of the output.

    An exclusive scan starts with the accumulator operand. An inclusive scan starts with the first
    element and does not read the accumulator, unless the dim is empty (IREE: iree_linalg_ext.scan,
    which does not write the accumulator of an inclusive scan of one element).
    """

    name = "iree_linalg_ext.scan"
    CLAUSES: ClassVar = (DIMENSION, Clause("inclusive", "bool"))
    NUM_INS: ClassVar = (1, 1)
    NUM_OUTS: ClassVar = (2, 2)
    input = operand_def(ShapedType)
    output = operand_def(ShapedType)
    accumulator = operand_def(ShapedType)
    dimension = prop_def(IntegerAttr.constr(i64))
    inclusive = prop_def(BoolAttr)
    body = region_def("single_block")
    traits = traits_def(DestinationStyleEffects())

    @classmethod
    def arrange(cls, ins, outs):
        return [ins[0], *outs]

    @property
    def outputs(self):
        return (self.output, self.accumulator)

    def verify_(self) -> None:
        shape, dim = shape_of(self.input), self.dimension.value.data
        check_dimension(dim, len(shape))
        check_compatible(shape, shape_of(self.output), "input/output")
        check_compatible(without(shape, dim), shape_of(self.accumulator), "input/accumulator")
        element = element_of(self.input)
        if any(element_of(value) != element for value in self.outputs):
            raise VerifyException(
                "expected input, output and accumulator element types to be identical"
            )
        check_region(self.body, [element, element], [element], "iree_linalg_ext.yield")
        self.verify_inits()
