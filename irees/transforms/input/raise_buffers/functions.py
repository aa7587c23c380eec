"""Functions on buffers: what they write, and the types that their arguments have as tensors."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects import func, memref
from xdsl.dialects.builtin import MemRefType, ModuleOp, NoneAttr, TensorType
from xdsl.ir import Attribute, BlockArgument, Operation, SSAValue

from irees.dialects.irees import KernelOp, walk_outside_kernels
from irees.dialects.storage import root
from irees.errors import UnsupportedError
from irees.interfaces import loops_model_of
from irees.transforms.input.raise_buffers.kernels import memories, needs_memory, only_reads

STRUCTURED = ("linalg", "iree_linalg_ext")
"""Dialects of ops that write their `outputs`."""


def tensor_of(kind: Attribute) -> TensorType:
    """memref<4xf32>  =>  tensor<4xf32>"""
    assert isinstance(kind, MemRefType)
    return TensorType(kind.element_type, kind.get_shape())


def has_buffers(op: Operation) -> bool:
    """Whether an op has a memref, itself or in its regions, apart from those inside of kernels."""
    for inner in walk_outside_kernels(op):
        values = [*inner.operands, *inner.results]
        if not isinstance(inner, KernelOp):
            values += [a for region in inner.regions for block in region.blocks for a in block.args]
        if any(isinstance(value.type, MemRefType) for value in values):
            return True
    return False


def written(op: Operation) -> list[SSAValue]:
    """Returns the buffers that an op writes itself, as views."""
    if isinstance(op, memref.StoreOp):
        return [op.memref]
    if isinstance(op, memref.CopyOp):
        return [op.destination]
    styled = op.dialect_name() in STRUCTURED or loops_model_of(op) is not None
    single = getattr(op, "output", None)  # A softmax has one output, and no list of them.
    alone = () if single is None else (single,)
    found = getattr(op, "outputs", alone) if styled else ()
    return [value for value in found if isinstance(value.type, MemRefType)]


def changed_by(op: Operation) -> list[SSAValue]:
    """Returns the buffers that an op writes itself, also one that has no form on tensors."""
    if needs_memory(op) and not only_reads(op):
        return memories(op)
    return written(op)


def check_layouts(function: func.FuncOp, buffers: Sequence[BlockArgument]) -> None:
    """Raises UnsupportedError for an argument that is not contiguous."""
    for argument in buffers:
        assert isinstance(argument.type, MemRefType)
        if not isinstance(argument.type.layout, NoneAttr):
            raise UnsupportedError(
                f"argument {argument.index} is a {argument.type}, but must be contiguous",
                op=function,
                hint="pass the whole buffer, and take a memref.subview of it",
            )


def functions_on_buffers(module: ModuleOp) -> list[func.FuncOp]:
    """Returns the functions with a memref, in their signature or inside."""
    return [op for op in module.ops if isinstance(op, func.FuncOp) and has_buffers(op)]


def writes_arguments(module: ModuleOp) -> bool:
    """Whether a function writes to a memref argument."""
    functions = functions_on_buffers(module)
    ops = (op for function in functions for op in function.walk())
    roots = (root(value) for op in ops for value in changed_by(op))
    return any(isinstance(buffer, BlockArgument) for buffer in roots)
