"""
Makes functions that write to their memref arguments return the new values, for the interpreter.

    func.func @f(%b: memref<?xf32>) {
      memref.store %x, %b[%i] ...
      return }
  =>
    func.func @f(%b: tensor<?xf32>) -> tensor<?xf32> {
      %m = bufferization.to_buffer %b : tensor<?xf32> to memref<?xf32>
      memref.store %x, %m[%i] ...
      %r = bufferization.to_tensor %m : memref<?xf32> to tensor<?xf32>
      return %r }

The interpreter runs the ops on buffers as they are written, on a copy of the caller's arrays, so it
does not depend on `irees-raise-buffers`. That pass gives a function the same signature.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects import bufferization, func
from xdsl.dialects.builtin import ArrayAttr, DictionaryAttr, FunctionType, MemRefType, ModuleOp
from xdsl.ir import Attribute, BlockArgument, Operation, SSAValue
from xdsl.passes import ModulePass
from xdsl.rewriter import InsertPoint, Rewriter

from irees.dialects.storage import root
from irees.transforms.input.raise_buffers.functions import (
    changed_by,
    check_layouts,
    functions_on_buffers,
    tensor_of,
)


def to_tensor(value: SSAValue, before: Operation) -> SSAValue:
    """Returns the current elements of a memref; any other value unchanged."""
    if not isinstance(value.type, MemRefType):
        return value
    op = bufferization.ToTensorOp(value)
    Rewriter.insert_op(op, InsertPoint.before(before))
    return op.results[0]


def return_updates(function: func.FuncOp) -> None:
    """
    func @f(%b: memref)  =>  func @f(%b: tensor) -> tensor

    Raises UnsupportedError for an argument that is not contiguous.
    """
    block = function.body.blocks[0]
    buffers = [a for a in block.args if isinstance(a.type, MemRefType)]
    check_layouts(function, buffers)
    written = {root(value) for op in function.walk() for value in changed_by(op)}
    is_written = [argument in written for argument in buffers]
    copies = [_copied(argument) for argument in buffers]
    new = [copy for copy, changed in zip(copies, is_written, strict=True) if changed]
    outputs = _return_also(function, new)
    function.function_type = FunctionType.from_lists([a.type for a in block.args], outputs)
    if function.res_attrs is not None:
        added = [DictionaryAttr({})] * len(new)
        function.res_attrs = ArrayAttr([*function.res_attrs.data, *added])


def _return_also(function: func.FuncOp, buffers: Sequence[SSAValue]) -> list[Attribute]:
    """Makes a function return these buffers behind its results; returns the types."""
    types: list[Attribute] = list(function.function_type.outputs)
    for op in [o for o in function.walk() if isinstance(o, func.ReturnOp)]:
        op.operands = [to_tensor(v, op) for v in (*op.operands, *buffers)]
        types = [v.type for v in op.operands]
    return types


def _copied(argument: BlockArgument) -> SSAValue:
    """Makes a memref argument a tensor, and returns the buffer that has its elements."""
    kind, block = argument.type, argument.block
    value = Rewriter.replace_value_with_new_type(argument, tensor_of(kind))
    op = bufferization.ToBufferOp.create(operands=[value], result_types=[kind])
    value.replace_uses_with_if(op.results[0], lambda use: use.operation is not op)
    Rewriter.insert_op(op, InsertPoint.at_start(block))
    return op.results[0]


@dataclass(frozen=True)
class ReturnUpdatesPass(ModulePass):
    """Makes functions on memrefs take tensors and return the buffers that they write."""

    name = "irees-return-updates"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for function in functions_on_buffers(op):
            if function.body.blocks:
                return_updates(function)
