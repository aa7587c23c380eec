"""
`tm_tensor`: the ops that torch-mlir keeps outside linalg (TMTensorOps.td).

They match IREE's `iree_linalg_ext` of 2022, with a different syntax. Only the input pass
`irees-convert-tm-tensor-to-linalg-ext` handles them.
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import (
    DYNAMIC_INDEX,
    BoolAttr,
    DenseArrayBase,
    FloatAttr,
    IntegerAttr,
    IntegerType,
    ShapedType,
    TensorType,
    i1,
    i64,
)
from xdsl.ir import Attribute, Dialect, Operation, Region, SSAValue
from xdsl.irdl import (
    AttrSizedOperandSegments,
    IRDLOperation,
    ParsePropInAttrDict,
    irdl_op_definition,
    opt_prop_def,
    prop_def,
    region_def,
    traits_def,
    var_operand_def,
    var_result_def,
)
from xdsl.traits import IsTerminator, Pure
from xdsl.utils.exceptions import VerifyException

from .upstream._effects import DestinationStyleEffects


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
        raise VerifyException(f"incompatible {what} shapes: {tuple(a)} and {tuple(b)}")


def check_results(op: IRDLOperation) -> None:
    """Checks that there is one result per tensor init, of its type, and none for memrefs."""
    inits = [v.type for v in op.outputs if isinstance(v.type, TensorType)]
    if len(op.results) != len(inits):
        raise VerifyException(f"expected {len(inits)} results, but got {len(op.results)}")
    for result, init in zip(op.results, inits):
        if result.type != init:
            raise VerifyException(f"expected result type {init}, but got {result.type}")


def check_comparator(region: Region, element_types: Sequence[Attribute]) -> None:
    """Checks that a region takes these scalars and yields one i1."""
    block = region.block
    if len(block.args) != len(element_types):
        raise VerifyException(f"region block should have {len(element_types)} arguments")
    for index, (arg, expected) in enumerate(zip(block.args, element_types)):
        if arg.type != expected:
            raise VerifyException(
                f"region block argument #{index} should be of type {expected} but got {arg.type}"
            )
    yielded = block.last_op.operands if block.last_op is not None else ()
    if len(yielded) != 1 or yielded[0].type != i1:
        raise VerifyException("should yield exactly one operand of type i1")


@irdl_op_definition
class YieldOp(IRDLOperation):
    """Ends the region of a tm_tensor op (torch-mlir: tm_tensor.yield)."""

    name = "tm_tensor.yield"
    arguments = var_operand_def()
    traits = traits_def(IsTerminator(), Pure())
    assembly_format = "attr-dict ($arguments^ `:` type($arguments))?"

    def __init__(self, *values: SSAValue | Operation):
        super().__init__(operands=[values])


@irdl_op_definition
class SortOp(IRDLOperation):
    """Sorts `outs` jointly along a dim by a comparator region (torch-mlir: tm_tensor.sort)."""

    name = "tm_tensor.sort"
    inputs = var_operand_def()
    outputs = var_operand_def()
    dimension = prop_def(IntegerAttr.constr(i64))
    res = var_result_def(TensorType)
    body = region_def("single_block")
    irdl_options = (AttrSizedOperandSegments(as_property=True), ParsePropInAttrDict())
    traits = traits_def(DestinationStyleEffects())
    assembly_format = (
        "attr-dict `dimension` `(` $dimension `)` (`ins` `(` $inputs^ `:` type($inputs) `)`)? "
        "`outs` `(` $outputs `:` type($outputs) `)` $body (`->` type($res)^)?"
    )

    def verify_(self) -> None:
        if self.inputs:
            raise VerifyException("does not expect to take any inputs")
        if not self.outputs:
            raise VerifyException("expected at least one `outs` operand")
        shape = shape_of(self.outputs[0])
        if not 0 <= self.dimension.value.data < len(shape):
            raise VerifyException(f"dimension must be within (0, {len(shape)}]")
        for value in self.outputs:
            if shape_of(value) != shape:
                raise VerifyException("expected all operands to have the same shape")
        check_comparator(self.body, [element_of(v) for v in self.outputs for _ in range(2)])
        check_results(self)


@irdl_op_definition
class ScatterOp(IRDLOperation):
    """
    Updates the slices of `original` at `indices`, combining with a region (torch-mlir:
    tm_tensor.scatter).
    """

    name = "tm_tensor.scatter"
    inputs = var_operand_def()
    outputs = var_operand_def()
    dimension_map = prop_def(DenseArrayBase.constr(i64))
    unique_indices = prop_def(BoolAttr)
    res = var_result_def(TensorType)
    body = region_def("single_block")
    irdl_options = (AttrSizedOperandSegments(as_property=True), ParsePropInAttrDict())
    traits = traits_def(DestinationStyleEffects())
    assembly_format = (
        "attr-dict `unique_indices` `(` $unique_indices `)` "
        "(`ins` `(` $inputs^ `:` type($inputs) `)`)? "
        "`outs` `(` $outputs `:` type($outputs) `)` $body (`->` type($res)^)?"
    )

    def verify_(self) -> None:
        if len(self.inputs) != 2 or len(self.outputs) != 1:
            raise VerifyException("expected two input operands and one output operand")
        updates, indices = (shape_of(v) for v in self.inputs)
        original = shape_of(self.outputs[0])
        if len(indices) != 2 or not isinstance(element_of(self.inputs[1]), IntegerType):
            raise VerifyException("expected indices to be of rank 2 of integer element type")
        depth = indices[1]
        if depth == DYNAMIC_INDEX:
            raise VerifyException("expected index depth is static")
        dims = self.dimension_map.get_values()
        different = len(dims) == len(set(dims)) == depth
        if not different or not set(dims) <= set(range(len(original))):
            raise VerifyException("dimension map is invalid")
        if not updates:
            raise VerifyException("expected update value to be at least rank 1")
        check_compatible(updates[:1], indices[:1], "update and index")
        if len(updates) - 1 > len(original) or len(original) > depth + len(updates) - 1:
            raise VerifyException(
                "index depth and update value do not cover the rank of the original value"
            )
        elements = [element_of(self.inputs[0]), element_of(self.outputs[0])]
        if [arg.type for arg in self.body.block.args] != elements:
            raise VerifyException(
                "expected region to have two arguments, of the types of update and original"
            )
        check_results(self)


@irdl_op_definition
class ScanOp(IRDLOperation):
    """
    Prefix scan along a dim; outs are the result and the accumulator (torch-mlir:
    tm_tensor.scan).
    """

    name = "tm_tensor.scan"
    inputs = var_operand_def()
    outputs = var_operand_def()
    dimension = prop_def(IntegerAttr.constr(i64))
    inclusive = prop_def(BoolAttr)
    res = var_result_def(TensorType)
    body = region_def("single_block")
    irdl_options = (AttrSizedOperandSegments(as_property=True), ParsePropInAttrDict())
    traits = traits_def(DestinationStyleEffects())
    assembly_format = (
        "`dimension` `(` $dimension `)` `inclusive` `(` $inclusive `)` attr-dict "
        "`ins` `(` $inputs `:` type($inputs) `)` `outs` `(` $outputs `:` type($outputs) `)` "
        "$body (`->` type($res)^)?"
    )

    def verify_(self) -> None:
        if len(self.inputs) != 1 or len(self.outputs) != 2:
            raise VerifyException("expected one input operand and two output operands")
        source, output, accumulator = (shape_of(v) for v in self.operands)
        dim = self.dimension.value.data
        if not 0 <= dim < len(source):
            raise VerifyException("dimension is out of range")
        check_compatible(source, output, "input/output")
        check_compatible(source[:dim] + source[dim + 1 :], accumulator, "input/accumulator")
        if len({element_of(v) for v in self.operands}) != 1:
            raise VerifyException(
                "expected input, output and accumulator element types to be identical"
            )
        check_results(self)


@irdl_op_definition
class TopkOp(IRDLOperation):
    """Top K along a dim by a comparator, with their indices (torch-mlir: tm_tensor.topk)."""

    name = "tm_tensor.topk"
    inputs = var_operand_def()
    outputs = var_operand_def()
    dimension = prop_def(IntegerAttr.constr(i64))
    res = var_result_def(TensorType)
    body = region_def("single_block")
    irdl_options = (AttrSizedOperandSegments(as_property=True), ParsePropInAttrDict())
    traits = traits_def(DestinationStyleEffects())
    assembly_format = (
        "attr-dict `dimension` `(` $dimension `)` `ins` `(` $inputs `:` type($inputs) `)` "
        "`outs` `(` $outputs `:` type($outputs) `)` $body (`->` type($res)^)?"
    )

    def verify_(self) -> None:
        if len(self.inputs) not in (1, 2) or len(self.outputs) != 2:
            raise VerifyException("expected one or two input operands and two output operands")
        source, values, indices = shape_of(self.inputs[0]), *(shape_of(v) for v in self.outputs)
        dim = self.dimension.value.data
        if not 0 <= dim < len(source):
            raise VerifyException("dimension exceeds rank")
        if len(source) != len(values):
            raise VerifyException("expected input/output to have the same rank")
        check_compatible(values, indices, "output indices/values")
        check_compatible(
            source[:dim] + source[dim + 1 :], values[:dim] + values[dim + 1 :], "input/output"
        )
        if len(self.inputs) == 2:
            check_compatible(source, shape_of(self.inputs[1]), "input indices/values")
        if element_of(self.inputs[0]) != element_of(self.outputs[0]):
            raise VerifyException("expected input/output value types to be identical")
        check_comparator(self.body, [element_of(self.inputs[0])] * 2)
        check_results(self)


@irdl_op_definition
class AttentionOp(IRDLOperation):
    """softmax(Q K^T * scale + mask) V per batch (torch-mlir: tm_tensor.attention)."""

    name = "tm_tensor.attention"
    inputs = var_operand_def()
    outputs = var_operand_def()
    scale = opt_prop_def(FloatAttr)
    res = var_result_def(TensorType)
    irdl_options = (AttrSizedOperandSegments(as_property=True), ParsePropInAttrDict())
    traits = traits_def(DestinationStyleEffects())
    assembly_format = (
        "attr-dict `ins` `(` $inputs `:` type($inputs) `)` "
        "`outs` `(` $outputs `:` type($outputs) `)` (`->` type($res)^)?"
    )

    def verify_(self) -> None:
        if len(self.inputs) not in (3, 4) or len(self.outputs) != 1:
            raise VerifyException("expected query, key, value, an optional mask, and one output")
        query, key, value, *mask = (shape_of(v) for v in self.inputs)
        if min(len(query), len(key), len(value)) < 2:
            raise VerifyException("expected query, key and value to be at least rank 2")
        check_compatible(query[:-2] + query[-1:], key[:-2] + key[-1:], "query and key")
        check_compatible(key[:-1], value[:-1], "key and value")
        if mask:
            check_compatible(mask[0][-2:], (query[-2], key[-2]), "mask and score")
        check_results(self)


TMTensor = Dialect("tm_tensor", [YieldOp, SortOp, ScatterOp, ScanOp, TopkOp, AttentionOp])
