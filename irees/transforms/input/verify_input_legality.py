"""
Rejects input that no later pass handles: memrefs, signed integers, and misplaced ops.

Later passes work on tensor values and would silently drop an op on memrefs.

    %t = memref.alloc() : memref<4xf32>
  =>
    error: memrefs are not supported in the input: this op has a memref<4xf32>

`irees-raise-buffers` raised functions on memrefs to tensors; this pass rejects what is left, but
for memrefs inside of an `irees.kernel`. A
linalg op on memrefs has no results, so dead code elimination would erase it. The pass also rejects
globals of dynamic size: a store cannot grow their memory. IREE's input dialects work on tensors,
too (`iree-verify-input-legality`).

Integers in linalg are signless: each op defines the signedness of its operands, and an
`arith.constant` cannot have a type like `si32`. Passes look for functions at the top level, so they
would skip a module nested in another op. They look for tensor ops in functions, loops and branches.
The body of an op such as `linalg.generic` computes one element and may only read tensors.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects import func
from xdsl.dialects.builtin import (
    IntegerType,
    MemRefType,
    ModuleOp,
    Signedness,
    TensorType,
    UnrankedMemRefType,
    UnrankedTensorType,
)
from xdsl.ir import Attribute, Operation
from xdsl.passes import ModulePass

from irees.dialects import iree_linalg_ext as ext
from irees.dialects import util
from irees.dialects.irees import KernelOp, walk_outside_kernels
from irees.errors import UnsupportedError

BUFFERS = (
    "write the op on tensors; mark a result with irees.updates to have it written into an argument"
)
SIGNED = "use a type without a sign, such as i32; mark a result with irees.unsigned if it is"

COMPUTE_ELEMENTS = frozenset({"linalg", "tensor", "iree_linalg_ext"})
"""Dialects of ops whose bodies compute one element."""
READ_TENSORS = frozenset({"tensor.extract", "tensor.dim", "tensor.rank", "arith.constant"})
"""Ops with tensor operands or results that such a body may contain."""


def types_of(op: Operation) -> Iterator[Attribute]:
    """Yields the types of operands, results and block arguments, and a function's signature."""
    yield from (value.type for value in (*op.operands, *op.results))
    if isinstance(op, KernelOp):
        return
    yield from (a.type for region in op.regions for block in region.blocks for a in block.args)
    if isinstance(op, func.FuncOp):
        yield from (*op.function_type.inputs, *op.function_type.outputs)


@dataclass(frozen=True)
class VerifyInputLegalityPass(ModulePass):
    """Rejects types and op placements that no later pass handles."""

    name = "irees-verify-input-legality"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        outside = list(walk_outside_kernels(op))
        faults = [(o, *f) for o in outside for t in types_of(o) if (f := fault(t))]
        # Report an op rather than the function that contains it: it locates the fault better.
        faults.sort(key=lambda each: isinstance(each[0], func.FuncOp))
        for inner, text, hint in faults[:1]:
            raise UnsupportedError(text, op=inner, hint=hint)
        for inner in op.walk():
            if inner is not op:
                verify_place(inner)


def fault(kind: Attribute) -> tuple[str, str] | None:
    """Returns an error text and a hint for an unsupported type, None for a supported type."""
    number = kind.element_type if isinstance(kind, TensorType | UnrankedTensorType) else kind
    if isinstance(number, MemRefType | UnrankedMemRefType):
        return f"memrefs are not supported in the input: this op has a {kind}", BUFFERS
    if isinstance(number, IntegerType) and number.signedness.data != Signedness.SIGNLESS:
        return f"integer types with signedness are not supported: this op has a {kind}", SIGNED
    return None


def verify_place(op: Operation) -> None:
    """Raises UnsupportedError for an op that no later pass handles in this place."""
    if isinstance(op, ModuleOp):
        hint = "move its functions to the top level"
        raise UnsupportedError("a module nested in another op is not supported", op=op, hint=hint)
    if isinstance(op, util.GlobalOp) and is_dynamic(op.type):
        raise UnsupportedError(
            f"a global must have a static size, but this is a {op.type}",
            op=op,
            hint="give it a static type, or pass the tensor as an argument and a result",
        )
    if op.dialect_name() not in COMPUTE_ELEMENTS:
        return
    for inner in (each for region in op.regions for each in region.walk()):
        if isinstance(op, ext.CustomOp):
            if isinstance(inner, ext.IndexOp):
                text = f"the tile index of {op.name} is not supported"
                raise UnsupportedError(text, op=inner)
        elif inner.name not in READ_TENSORS and has_tensor(inner):
            text = f"the body of {op.name} computes one element, but this op has a tensor"
            hint = "compute the tensor before the op, and extract its elements in the body"
            raise UnsupportedError(text, op=inner, hint=hint)


def is_dynamic(kind: Attribute) -> bool:
    """Whether a type is a tensor with dynamic dims."""
    return isinstance(kind, TensorType) and not kind.has_static_shape()


def has_tensor(op: Operation) -> bool:
    """Whether an operand or a result is a tensor."""
    values = (*op.operands, *op.results)
    return any(isinstance(value.type, TensorType | UnrankedTensorType) for value in values)
