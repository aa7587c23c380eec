"""
Refuses what no later pass takes: buffers, integers with a sign, and ops where no pass looks.

What follows is for values, and would drop an op on memrefs unseen.

    linalg.matmul ins(%a, %b : memref<4x4xf32>, ...) outs(%c : memref<4x4xf32>)
  =>
    error: programs on buffers are not compiled: this op has a memref<4x4xf32>

A linalg op on memrefs has no results. Nobody asks for it after the phases that make functional
programs of tensors, so it would be erased. Writing into arguments is possible with tensors: a
result with `irees.updates` is written into an argument's memory. A global of dynamic size is
refused too: a store could not make its memory larger. IREE's input dialects are on
tensors, too (`iree-verify-input-legality`).

Integers of linalg have no sign: ops say how they read them, and no `arith.constant` has a type like
`si32`. Passes look for functions at the top level, so a module inside of another op would be left
as it is. They look for ops that make tensors in functions, loops and branches; the body of an op
such as `linalg.generic` computes one element, and may only read tensors.
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
from irees.errors import UnsupportedError

BUFFERS = (
    "write the op on tensors; mark a result with irees.updates to have it written into an argument"
)
SIGNED = "use a type without a sign, such as i32; mark a result with irees.unsigned if it is"

COMPUTE_ELEMENTS = frozenset({"linalg", "tensor", "iree_linalg_ext"})
"""Dialects whose ops have bodies that compute one element."""
READ_TENSORS = frozenset({"tensor.extract", "tensor.dim", "tensor.rank", "arith.constant"})
"""Ops that may read, or be, a tensor in such a body."""


def types_of(op: Operation) -> Iterator[Attribute]:
    """The types of operands, results and block arguments, and those that a function declares."""
    yield from (value.type for value in (*op.operands, *op.results))
    yield from (a.type for region in op.regions for block in region.blocks for a in block.args)
    if isinstance(op, func.FuncOp):
        yield from (*op.function_type.inputs, *op.function_type.outputs)


@dataclass(frozen=True)
class VerifyInputLegalityPass(ModulePass):
    """No op has a type, or is in a place, that no later pass takes."""

    name = "irees-verify-input-legality"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        faults = [(o, *found) for o in op.walk() for t in types_of(o) if (found := fault(t))]
        # A function says less than an op in it.
        faults.sort(key=lambda each: isinstance(each[0], func.FuncOp))
        for inner, text, hint in faults[:1]:
            raise UnsupportedError(text, op=inner, hint=hint)
        for inner in op.walk():
            if inner is not op:
                verify_place(inner)


def fault(kind: Attribute) -> tuple[str, str] | None:
    """Why a type is not compiled, and the way out; None for one that is."""
    number = kind.element_type if isinstance(kind, TensorType | UnrankedTensorType) else kind
    if isinstance(number, MemRefType | UnrankedMemRefType):
        return f"programs on buffers are not compiled: this op has a {kind}", BUFFERS
    if isinstance(number, IntegerType) and number.signedness.data != Signedness.SIGNLESS:
        return f"integers with a sign are not compiled: this op has a {kind}", SIGNED
    return None


def verify_place(op: Operation) -> None:
    """Raises UnsupportedError for an op that no pass takes, or that is where no pass looks."""
    if isinstance(op, ModuleOp):
        hint = "move its functions to the top level"
        raise UnsupportedError("a module inside of another op is not compiled", op=op, hint=hint)
    if isinstance(op, util.GlobalOp) and is_dynamic(op.type):
        raise UnsupportedError(
            f"a global is memory of one size, but this is a {op.type}",
            op=op,
            hint="give it a static type, or pass the tensor as an argument and a result",
        )
    if op.dialect_name() not in COMPUTE_ELEMENTS:
        return
    for inner in (each for region in op.regions for each in region.walk()):
        if isinstance(op, ext.CustomOp):
            if isinstance(inner, ext.IndexOp):
                text = f"the index of the tile of {op.name} is not compiled"
                raise UnsupportedError(text, op=inner)
        elif inner.name not in READ_TENSORS and has_tensor(inner):
            text = f"the body of {op.name} computes one element, and this op has a tensor"
            hint = "compute it before, and read elements of it"
            raise UnsupportedError(text, op=inner, hint=hint)


def is_dynamic(kind: Attribute) -> bool:
    """Whether a type is a tensor with a size that is not known."""
    return isinstance(kind, TensorType) and not kind.has_static_shape()


def has_tensor(op: Operation) -> bool:
    """Whether an operand or a result is a tensor."""
    values = (*op.operands, *op.results)
    return any(isinstance(value.type, TensorType | UnrankedTensorType) for value in values)
