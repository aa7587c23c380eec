"""
Converts `flow.tensor` ops to tensor, arith and linalg ops.

| op | becomes |
|---|---|
| `constant`, `dynamic_constant` | `arith.constant`; dynamic dims are cast behind a barrier |
| `tie_shape`, `clone` | the operand |
| `splat`, `empty` | `linalg.fill`, `tensor.empty` |
| `reshape` | `tensor.reshape` to the given dims |
| `bitcast` | shifts that split integers or combine them |
| `load`, `store` | `tensor.extract`, `tensor.insert` |
| `slice`, `update` | `tensor.extract_slice`, `tensor.insert_slice` |

    %r = flow.tensor.bitcast %x : tensor<4xi8> -> tensor<8xf4E2M1FN>
  =>
    %p = linalg.generic ins(%x : tensor<4xi8>) outs(tensor<4x2xf4E2M1FN>) {
      bitcast(trunci(%a >> 4 * index 1)) }
    %r = tensor.reshape of the eight elements

IREE's test programs contain these ops, and its importers emit them where torch or JAX views a
tensor as another type. The pass then drops packed-storage encodings, because irees stores every
element in whole bytes. `irees-drop-transfers` removes transfers, barriers and traces. IREE converts
in the opposite direction (`ConvertTensorToFlow`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from xdsl.context import Context
from xdsl.dialects import arith, func, tensor
from xdsl.dialects.builtin import (
    FunctionType,
    ModuleOp,
    NoneAttr,
    TensorType,
)
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.passes import ModulePass
from xdsl.rewriter import Rewriter

from irees.dialects import flow, util
from irees.dialects.iree_encoding import PackedStorageAttr
from irees.dialects.storage import is_reshape
from irees.transforms.input.convert_flow_to_tensor.bits import lower_bitcast, reshaped, sizes_of
from irees.transforms.utils.shapes import Size
from irees.transforms.utils.tensors import TensorBuilder
from irees.verification import verify_made


def lower_constant(op: Operation, b: TensorBuilder) -> SSAValue:
    """constant, dynamic_constant  =>  arith.constant, cast behind a barrier if its type has `?`"""
    value = b.insert(arith.ConstantOp(op.properties["value"])).results[0]
    kind = op.results[0].type
    if value.type == kind:
        return value
    hidden = util.OptimizationBarrierOp([b.cast_tensor(value, kind)])
    return b.insert(hidden).results[0]


def lower_operand(op: Operation, b: TensorBuilder) -> SSAValue:
    """tie_shape, clone  =>  the operand"""
    return op.operands[0]


def lower_splat(op: flow.TensorSplatOp, b: TensorBuilder) -> SSAValue:
    """splat  =>  linalg.fill"""
    return b.fill(op.value, sizes_of(op.result.type, op.result_dims))


def lower_empty(op: flow.TensorEmptyOp, b: TensorBuilder) -> SSAValue:
    """empty  =>  tensor.empty"""
    assert isinstance(op.result.type, TensorType)
    return b.empty(op.result.type.element_type, sizes_of(op.result.type, op.result_dims))


def lower_reshape(op: flow.TensorReshapeOp, b: TensorBuilder) -> SSAValue:
    """reshape  =>  tensor.reshape"""
    assert isinstance(op.result.type, TensorType)
    return reshaped(op.source, sizes_of(op.result.type, op.result_dims), op.result.type, b)


def lower_load(op: flow.TensorLoadOp, b: TensorBuilder) -> SSAValue:
    """load  =>  tensor.extract"""
    return b.insert(tensor.ExtractOp(op.source, op.indices, op.result.type)).results[0]


def lower_store(op: flow.TensorStoreOp, b: TensorBuilder) -> SSAValue:
    """store  =>  tensor.insert"""
    return b.insert(tensor.InsertOp(op.value, op.target, op.indices)).results[0]


def lower_slice(op: flow.TensorSliceOp, b: TensorBuilder) -> SSAValue:
    """slice  =>  tensor.extract_slice"""
    lengths = [_number(n) for n in op.lengths]
    return b.cast_tensor(
        b.extract_slice(op.source, [_number(i) for i in op.start_indices], lengths),
        op.result.type,
    )


def lower_update(op: flow.TensorUpdateOp, b: TensorBuilder) -> SSAValue:
    """update  =>  tensor.insert_slice"""
    sizes = sizes_of(op.update.type, op.update_dims)
    return b.insert_slice(op.update, op.target, [_number(i) for i in op.start_indices], sizes)


def _number(value: SSAValue) -> Size:
    """Returns a constant as an int, any other value unchanged."""
    op = value.owner
    return op.value.value.data if isinstance(op, arith.ConstantOp) else value  # type: ignore


def check(op: Operation, new: SSAValue) -> None:
    """Raises VerifyError for a slice with constant bounds out of range: flow does not check them"""
    if not isinstance(op, flow.TensorSliceOp | flow.TensorUpdateOp):
        return
    made = new.owner
    if is_reshape(made):  # A cast to the declared type.
        verify_made(made, op)
        made = made.operands[0].owner
    if isinstance(made, Operation):
        verify_made(made, op)


LOWERINGS: dict[type[Operation], Callable[[Any, TensorBuilder], SSAValue]] = {
    flow.TensorConstantOp: lower_constant,
    flow.TensorDynamicConstantOp: lower_constant,
    flow.TensorTieShapeOp: lower_operand,
    flow.TensorCloneOp: lower_operand,
    flow.TensorSplatOp: lower_splat,
    flow.TensorEmptyOp: lower_empty,
    flow.TensorReshapeOp: lower_reshape,
    flow.TensorBitCastOp: lower_bitcast,
    flow.TensorLoadOp: lower_load,
    flow.TensorStoreOp: lower_store,
    flow.TensorSliceOp: lower_slice,
    flow.TensorUpdateOp: lower_update,
}


def without_packing(kind: Attribute) -> Attribute | None:
    """Returns the tensor type without its packed-storage encoding, None if it has none."""
    if isinstance(kind, TensorType) and isinstance(kind.encoding, PackedStorageAttr):
        return TensorType(kind.element_type, kind.get_shape(), NoneAttr())
    return None


def drop_packing(op: Operation) -> None:
    """Removes packed-storage encodings from the types of an op's values and of functions."""
    blocks = [block for region in op.regions for block in region.blocks]
    for value in (*op.results, *(argument for block in blocks for argument in block.args)):
        if (kind := without_packing(value.type)) is not None:
            Rewriter.replace_value_with_new_type(value, kind)
    if isinstance(op, func.FuncOp):
        sides = (op.function_type.inputs, op.function_type.outputs)
        op.function_type = FunctionType.from_lists(
            *([without_packing(t) or t for t in side] for side in sides)
        )


@dataclass(frozen=True)
class ConvertFlowToTensorPass(ModulePass):
    """Converts flow.tensor ops to tensor, arith and linalg ops."""

    name = "irees-convert-flow-to-tensor"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for inner in list(op.walk()):
            lower = LOWERINGS.get(type(inner))
            if lower is not None:
                new = lower(inner, TensorBuilder(inner))
                check(inner, new)
                Rewriter.replace_op(inner, [], [new])
        for inner in op.walk():
            drop_packing(inner)
