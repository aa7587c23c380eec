"""
tensor ops that xDSL lacks, and verifiers of slices, reshapes and pads that match MLIR's.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cache
from itertools import chain

from xdsl.dialects import tensor
from xdsl.dialects.builtin import (
    DYNAMIC_INDEX,
    ArrayAttr,
    DenseArrayBase,
    IndexType,
    IntegerAttr,
    TensorType,
    UnitAttr,
    UnrankedTensorType,
    i64,
)
from xdsl.dialects.utils import (
    DynamicIndexList,
    parse_dynamic_index_list_without_types,
    print_dynamic_index_list,
    split_dynamic_index_list,
    verify_dynamic_index_list,
)
from xdsl.dialects.utils.reshape_ops_utils import verify_reshape_like_types
from xdsl.ir import Attribute, Operation, Region, SSAValue
from xdsl.irdl import (
    AttrSizedOperandSegments,
    IRDLOperation,
    ParsePropInAttrDict,
    base,
    irdl_op_definition,
    operand_def,
    opt_prop_def,
    prop_def,
    region_def,
    result_def,
    traits_def,
    var_operand_def,
)
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.traits import Pure, RecursiveMemoryEffect
from xdsl.utils.exceptions import VerifyException

from ._effects import WritesMemory


@irdl_op_definition
class GenerateOp(IRDLOperation):
    """Builds a tensor; its region computes the element at each index (MLIR: tensor.generate)."""

    name = "tensor.generate"
    dynamic_extents = var_operand_def(IndexType)
    body = region_def("single_block")
    result = result_def(TensorType)
    traits = traits_def(RecursiveMemoryEffect())
    assembly_format = "$dynamic_extents $body attr-dict `:` type($result)"

    def __init__(self, dynamic_extents: Sequence[SSAValue], body: Region, result_type: Attribute):
        super().__init__(operands=[dynamic_extents], regions=[body], result_types=[result_type])

    def verify_(self) -> None:
        shape = self.result.type.get_shape()
        if shape.count(DYNAMIC_INDEX) != len(self.dynamic_extents):
            raise VerifyException(
                "must have as many index operands as dynamic extents in the result type"
            )
        if tuple(arg.type for arg in self.body.block.args) != (IndexType(),) * len(shape):
            raise VerifyException("must have one body argument of type index per result dimension")
        last = self.body.block.last_op
        if last is None or [v.type for v in last.operands] != [self.result.type.element_type]:
            raise VerifyException("body must yield one value of the element type")


@irdl_op_definition
class RankOp(IRDLOperation):
    """The number of dims of a tensor (MLIR: tensor.rank)."""

    name = "tensor.rank"
    tensor = operand_def(base(TensorType) | base(UnrankedTensorType))
    result = result_def(IndexType)
    traits = traits_def(Pure())
    assembly_format = "$tensor attr-dict `:` type($tensor)"

    def __init__(self, tensor: SSAValue | Operation):
        super().__init__(operands=[tensor], result_types=[IndexType()])


@irdl_op_definition
class BitcastOp(IRDLOperation):
    """Reinterprets elements as another type of the same width (MLIR: tensor.bitcast)."""

    name = "tensor.bitcast"
    source = operand_def(TensorType)
    dest = result_def(TensorType)
    traits = traits_def(Pure())
    assembly_format = "$source attr-dict `:` type($source) `to` type($dest)"

    def __init__(self, source: SSAValue | Operation, dest: Attribute):
        super().__init__(operands=[source], result_types=[dest])

    def verify_(self) -> None:
        source, dest = self.source.type, self.dest.type
        assert isinstance(source, TensorType)
        widths = [getattr(t.element_type, "bitwidth", None) for t in (source, dest)]
        if source.get_shape() != dest.get_shape() or widths[0] != widths[1]:
            raise VerifyException("source and result must have the same shape and element width")


@irdl_op_definition
class GatherOp(IRDLOperation):
    """Gathers slices of a tensor at a tensor of coordinates (MLIR: tensor.gather)."""

    name = "tensor.gather"
    source = operand_def(TensorType)
    indices = operand_def(TensorType)
    gather_dims = prop_def(DenseArrayBase.constr(i64))
    unique = opt_prop_def(UnitAttr)
    result = result_def(TensorType)
    traits = traits_def(Pure())
    irdl_options = (ParsePropInAttrDict(),)
    assembly_format = (
        "$source `[` $indices `]` `gather_dims` `(` $gather_dims `)` (`unique` $unique^)? "
        "attr-dict "
        "`:` functional-type(operands, results)"
    )

    def verify_(self) -> None:
        _verify_gather_dims(self.gather_dims, self.source.type, self.indices.type)


@irdl_op_definition
class ScatterOp(IRDLOperation):
    """Inserts slices into a tensor at a tensor of coordinates (MLIR: tensor.scatter)."""

    name = "tensor.scatter"
    source = operand_def(TensorType)
    dest = operand_def(TensorType)
    indices = operand_def(TensorType)
    scatter_dims = prop_def(DenseArrayBase.constr(i64))
    unique = opt_prop_def(UnitAttr)
    result = result_def(TensorType)
    traits = traits_def(Pure())
    irdl_options = (ParsePropInAttrDict(),)
    assembly_format = (
        "$source `into` $dest `[` $indices `]` `scatter_dims` `(` $scatter_dims `)` "
        "(`unique` $unique^)? attr-dict "
        "`:` functional-type(operands, results)"
    )

    def verify_(self) -> None:
        if self.unique is None:
            raise VerifyException("requires 'unique' attribute to be set")
        _verify_gather_dims(self.scatter_dims, self.dest.type, self.indices.type)
        if self.dest.type != self.result.type:
            raise VerifyException("expected result type to be the type of dest")


def _verify_gather_dims(dims: DenseArrayBase, source: Attribute, indices: Attribute) -> None:
    assert isinstance(source, TensorType)
    assert isinstance(indices, TensorType)
    values = list(dims.get_values())
    if (
        not values
        or values != sorted(set(values))
        or not 0 <= values[0] <= values[-1] < source.get_num_dims()
    ):
        raise VerifyException(
            "dims must be non-empty, strictly increasing and within the rank of the source"
        )
    if indices.get_num_dims() == 0 or indices.get_shape()[-1] != len(values):
        raise VerifyException("the last dim of indices must be as long as the dims")


@irdl_op_definition
class ParallelInsertSliceOp(IRDLOperation):
    """
    Inserts one `scf.forall` iteration's slice into a shared output (MLIR:
    tensor.parallel_insert_slice).
    """

    name = "tensor.parallel_insert_slice"
    source = operand_def(TensorType)
    dest = operand_def(TensorType)
    offsets = var_operand_def(IndexType)
    sizes = var_operand_def(IndexType)
    strides = var_operand_def(IndexType)
    static_offsets = prop_def(DenseArrayBase.constr(i64))
    static_sizes = prop_def(DenseArrayBase.constr(i64))
    static_strides = prop_def(DenseArrayBase.constr(i64))
    irdl_options = (AttrSizedOperandSegments(as_property=True),)
    custom_directives = (DynamicIndexList,)
    traits = traits_def(WritesMemory())
    assembly_format = (
        "$source `into` $dest `` custom<DynamicIndexList>($offsets, $static_offsets)"
        "custom<DynamicIndexList>($sizes, $static_sizes)"
        "custom<DynamicIndexList>($strides, $static_strides)"
        "attr-dict `:` type($source) `into` type($dest)"
    )

    def __init__(
        self,
        source: SSAValue | Operation,
        dest: SSAValue | Operation,
        offsets: Sequence[SSAValue | int],
        sizes: Sequence[SSAValue | int],
        strides: Sequence[SSAValue | int],
    ):
        lists = [
            split_dynamic_index_list(values, DYNAMIC_INDEX) for values in (offsets, sizes, strides)
        ]
        super().__init__(
            operands=[source, dest, *(dynamic for _, dynamic in lists)],
            properties={
                f"static_{name}": DenseArrayBase.from_list(i64, static)
                for name, (static, _) in zip(("offsets", "sizes", "strides"), lists)
            },
        )

    def verify_(self) -> None:
        verify_slice(self, self.dest.type, self.source.type)
        parent = self.parent_op()
        if parent is not None and parent.name not in (
            "scf.forall.in_parallel",
            "iree_codegen.workgroup_scope",
        ):
            raise VerifyException("expected to be inside scf.forall.in_parallel")


def _verify_range(dim: int, offset: int, size: int, stride: int, extent: int) -> None:
    """Checks that a slice of a dim is in bounds of the extent of the dim."""
    if size < 0 and size != DYNAMIC_INDEX:
        raise VerifyException(f"expected size {dim} to be non-negative, but got {size}")
    if offset < 0 and offset != DYNAMIC_INDEX:
        raise VerifyException(f"expected offset {dim} to be non-negative, but got {offset}")
    if DYNAMIC_INDEX in (offset, extent):
        return
    if offset > extent or (offset == extent and size not in (0, DYNAMIC_INDEX)):
        raise VerifyException(f"offset {dim} is out-of-bounds: {offset} >= {extent}")
    if DYNAMIC_INDEX in (size, stride) or size == 0:
        return
    last = offset + (size - 1) * stride
    if not 0 <= last < extent:
        raise VerifyException(f"slice along dimension {dim} runs out-of-bounds: {last} >= {extent}")


def verify_slice(op, whole: Attribute, part: Attribute) -> None:
    """
    Checks that the offsets, sizes and strides of `op` slice `whole` in bounds into the type `part`,
    which may be rank-reduced. Only static numbers are checked.
    """
    assert isinstance(whole, TensorType)
    assert isinstance(part, TensorType)
    rank = whole.get_num_dims()
    lists: list[Sequence[int]] = []
    for name in ("offsets", "sizes", "strides"):
        static = op.properties[f"static_{name}"].get_values()
        verify_dynamic_index_list(static, getattr(op, name), DYNAMIC_INDEX, f" in the {name}")
        if len(static) != rank:
            raise VerifyException(f"expected {rank} {name}, got {len(static)}")
        lists.append(static)
    if whole.element_type != part.element_type:
        raise VerifyException("expected element types of source and result to match")
    offsets, sizes, strides = lists
    for dim, numbers in enumerate(zip(offsets, sizes, strides, whole.get_shape())):
        _verify_range(dim, *numbers)
    if rank_reduction(sizes, part.get_shape()) is None:
        raise VerifyException(
            f"expected type to be a tensor of shape {list(sizes)} or a rank-reduced version of it"
        )


def rank_reduction(sizes: Sequence[int], shape: Sequence[int]) -> tuple[int, ...] | None:
    """
    Returns the unit dims of `sizes` that `shape` drops, or None if `shape` is not a rank-reduced
    `sizes`. A unit dim that matches the next dim of `shape` is kept, as in MLIR.
    """
    dropped: list[int] = []
    position = 0
    for dim, size in enumerate(sizes):
        if position < len(shape) and size == shape[position]:
            position += 1
            continue
        if size != 1:
            return None
        dropped.append(dim)
    return tuple(dropped) if position == len(shape) else None


def _verify_extract_slice(op: tensor.ExtractSliceOp) -> None:
    op.get_irdl_definition().verify(op)
    verify_slice(op, op.source.type, op.result.type)


def _verify_insert_slice(op: tensor.InsertSliceOp) -> None:
    op.get_irdl_definition().verify(op)
    verify_slice(op, op.dest.type, op.source.type)


def _verify_reshape_like(
    collapsed: TensorType, expanded: TensorType, reassociation: ArrayAttr
) -> None:
    if collapsed.element_type != expanded.element_type:
        raise VerifyException("expected element types of source and result to match")
    if collapsed.get_num_dims() > 0:
        verify_reshape_like_types(collapsed, expanded, reassociation)
        dims = [index.value.data for index in chain.from_iterable(reassociation)]
        if dims != list(range(len(dims))):
            raise VerifyException("expected reassociation map to be contiguous from 0")
        return
    if len(reassociation) != 0:
        raise VerifyException("expected no reassociation for a tensor of rank 0")
    if any(size != 1 for size in expanded.get_shape()):
        raise VerifyException("invalid to reshape tensor of rank 0 with non-unit extent dimensions")


def _verify_expand_shape(op: tensor.ExpandShapeOp) -> None:
    op.get_irdl_definition().verify(op)
    static = op.static_output_shape.get_values()
    if len(static) != op.result.type.get_num_dims():
        raise VerifyException("expected number of static shape dims to be equal to the output rank")
    if tuple(static) != op.result.type.get_shape():
        raise VerifyException("expected output_shape to be the shape of the result type")
    verify_dynamic_index_list(static, op.dynamic_output_shape, DYNAMIC_INDEX, " in output_shape")
    assert isinstance(op.src.type, TensorType)
    _verify_reshape_like(op.src.type, op.result.type, op.reassociation)


def _verify_collapse_shape(op: tensor.CollapseShapeOp) -> None:
    op.get_irdl_definition().verify(op)
    assert isinstance(op.src.type, TensorType)
    _verify_reshape_like(op.result.type, op.src.type, op.reassociation)


def _parse_expand_shape(cls: type[tensor.ExpandShapeOp], parser: Parser) -> tensor.ExpandShapeOp:
    pos = parser.pos
    source = parser.parse_unresolved_operand()
    reassociation = parser.parse_attribute()
    dynamic, static = [], None
    if parser.parse_optional_keyword("output_shape"):
        dynamic, static = parse_dynamic_index_list_without_types(
            parser, dynamic_index=DYNAMIC_INDEX
        )
    attributes = dict(parser.parse_optional_attr_dict())
    parser.parse_punctuation(":")
    source_type = parser.parse_type()
    parser.parse_keyword("into")
    result_type = parser.parse_type()
    if not isinstance(result_type, TensorType) or not isinstance(reassociation, ArrayAttr):
        parser.raise_error("expected a reassociation and a tensor type", pos, parser.pos)
    if static is None:
        static = result_type.get_shape()
    return cls(
        parser.resolve_operand(source, source_type),
        parser.resolve_operands(dynamic, [IndexType()] * len(dynamic), pos),
        reassociation,
        DenseArrayBase.from_list(i64, list(static)),
        result_type,
        attributes,
    )


def _verify_reshape(op: tensor.ReshapeOp) -> None:
    op.get_irdl_definition().verify(op)
    source, shape, result = op.source.type, op.shape.type, op.result.type
    assert isinstance(source, TensorType)
    assert isinstance(shape, TensorType)
    if source.element_type != result.element_type:
        raise VerifyException(
            "element types of source and destination tensor types should be the same"
        )
    if shape.get_num_dims() != 1:
        raise VerifyException("shape tensor must have a rank one")
    sizes = source.get_shape(), result.get_shape()
    if not any(DYNAMIC_INDEX in size for size in sizes) and math.prod(sizes[0]) != math.prod(
        sizes[1]
    ):
        raise VerifyException(
            "source and destination tensor should have the same number of elements"
        )
    if shape.get_shape()[0] == DYNAMIC_INDEX:
        raise VerifyException(
            "cannot use shape operand with dynamic length to reshape to statically-ranked tensor "
            "type"
        )
    if shape.get_shape()[0] != result.get_num_dims():
        raise VerifyException("length of shape operand differs from the result's tensor rank")


def _verify_pad(op: tensor.PadOp) -> None:
    op.get_irdl_definition().verify(op)
    assert isinstance(op.source.type, TensorType)
    shape, result = op.source.type.get_shape(), op.result.type.get_shape()
    low, high = op.static_low.get_values(), op.static_high.get_values()
    verify_dynamic_index_list(low, op.low, DYNAMIC_INDEX, " in low")
    verify_dynamic_index_list(high, op.high, DYNAMIC_INDEX, " in high")
    if not len(shape) == len(result) == len(low) == len(high):
        raise VerifyException("expected as many low and high paddings as dims of source and result")
    for dim, sizes in enumerate(zip(low, shape, high)):
        if DYNAMIC_INDEX not in sizes and result[dim] not in (sum(sizes), DYNAMIC_INDEX):
            raise VerifyException(
                f"expected dim {dim} of the result to be {sum(sizes)}, but got {result[dim]}"
            )
    if [arg.type for arg in op.region.block.args] != [IndexType()] * len(shape):
        raise VerifyException("expected one region argument of type index per dim of the source")
    last = op.region.block.last_op
    if last is None or [v.type for v in last.operands] != [op.result.type.element_type]:
        raise VerifyException("expected the region to yield one value of the element type")


def _verify_extract(op: tensor.ExtractOp) -> None:
    op.get_irdl_definition().verify(op)
    _verify_access(op.tensor.type, op.indices, op.result.type)


def _verify_insert(op: tensor.InsertOp) -> None:
    op.get_irdl_definition().verify(op)
    _verify_access(op.dest.type, op.indices, op.scalar.type)
    if op.result.type != op.dest.type:
        raise VerifyException("expected result type to be the type of dest")


def _verify_access(type_: Attribute, indices: Sequence[SSAValue], element: Attribute) -> None:
    assert isinstance(type_, TensorType)
    if len(indices) != type_.get_num_dims():
        raise VerifyException("incorrect number of indices")
    if element != type_.element_type:
        raise VerifyException("expected the scalar to have the element type of the tensor")


def _verify_empty(op: tensor.EmptyOp) -> None:
    op.get_irdl_definition().verify(op)
    if op.tensor.type.get_shape().count(DYNAMIC_INDEX) != len(op.dynamic_sizes):
        raise VerifyException("incorrect number of dynamic sizes")


def _verify_cast(op: tensor.CastOp) -> None:
    op.get_irdl_definition().verify(op)
    source, dest = op.source.type, op.dest.type
    if source.element_type != dest.element_type:  # type: ignore[union-attr]
        raise VerifyException("source and destination element types should be the same")
    if isinstance(source, TensorType) and isinstance(dest, TensorType):
        pairs = list(zip(source.get_shape(), dest.get_shape()))
        if source.get_num_dims() != dest.get_num_dims() or any(
            DYNAMIC_INDEX not in pair and pair[0] != pair[1] for pair in pairs
        ):
            raise VerifyException("operand type and result type are cast incompatible")


def _print_expand_shape(op: tensor.ExpandShapeOp, printer: Printer) -> None:
    printer.print_string(" ")
    printer.print_ssa_value(op.src)
    printer.print_string(" ")
    print_reassociation(printer, op.reassociation)
    printer.print_string(" output_shape ")
    print_dynamic_index_list(
        printer, DYNAMIC_INDEX, op.dynamic_output_shape, op.static_output_shape.get_values()
    )
    printer.print_op_attributes(op.attributes)
    printer.print_string(" : ")
    printer.print_attribute(op.src.type)
    printer.print_string(" into ")
    printer.print_attribute(op.result.type)


def _print_collapse_shape(op: tensor.CollapseShapeOp, printer: Printer) -> None:
    printer.print_string(" ")
    printer.print_ssa_value(op.src)
    printer.print_string(" ")
    print_reassociation(printer, op.reassociation)
    printer.print_op_attributes(op.attributes)
    printer.print_string(" : ")
    printer.print_attribute(op.src.type)
    printer.print_string(" into ")
    printer.print_attribute(op.result.type)


def print_reassociation(printer: Printer, reassociation: ArrayAttr[ArrayAttr[IntegerAttr]]) -> None:
    """Prints `[[0, 1], [2]]`, without the types that xDSL prints."""
    groups = (", ".join(str(index.value.data) for index in group) for group in reassociation)
    printer.print_string("[" + ", ".join(f"[{group}]" for group in groups) + "]")


@cache
def patch() -> None:
    """Patches xDSL's tensor classes in place, once."""
    tensor.ExtractSliceOp.verify_ = _verify_extract_slice
    tensor.InsertSliceOp.verify_ = _verify_insert_slice
    tensor.ExpandShapeOp.verify_ = _verify_expand_shape
    tensor.ExpandShapeOp.parse = classmethod(_parse_expand_shape)
    tensor.ExpandShapeOp.print = _print_expand_shape
    tensor.CollapseShapeOp.verify_ = _verify_collapse_shape
    tensor.CollapseShapeOp.print = _print_collapse_shape
    tensor.ReshapeOp.verify_ = _verify_reshape
    tensor.PadOp.verify_ = _verify_pad
    tensor.ExtractOp.verify_ = _verify_extract
    tensor.InsertOp.verify_ = _verify_insert
    tensor.EmptyOp.verify_ = _verify_empty
    tensor.CastOp.verify_ = _verify_cast
    tensor.YieldOp.traits.add_trait(Pure())


OPS = [GenerateOp, RankOp, BitcastOp, GatherOp, ScatterOp, ParallelInsertSliceOp]
__all__ = ["OPS", "patch", "print_reassociation", "rank_reduction", "verify_slice"]
