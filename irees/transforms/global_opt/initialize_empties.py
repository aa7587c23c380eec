"""
Zero-fills tensors that may be read before they are written.

The elements of a `tensor.empty` are undefined: reading them would leak memory contents of other
calls or programs. If some element may be read, the pass replaces the `tensor.empty` by a zero fill,
and a remark reports the number of bytes.

    %e = tensor.empty(%n) : tensor<?xf32>
    %r = tensor.insert_slice %x into %e[1] [%m] [1]
    return %r
  =>
    %f = linalg.fill ins(0.0) outs(tensor.empty(%n))
    %r = tensor.insert_slice %x into %f[1] [%m] [1]
    return %r

Two kinds of use need no fill. An op that writes all of its output does not read its init. A chain
of insertions that covers one dim from 0 to its end overwrites the whole tensor. So results and
concatenations are not filled. Every other use counts as a read.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

from xdsl.context import Context
from xdsl.dialects import arith, tensor
from xdsl.dialects.builtin import ModuleOp, TensorType
from xdsl.dialects.linalg import ops as linalg
from xdsl.dialects.linalg.abstract_ops import LinalgStructuredOperation
from xdsl.ir import Operation, SSAValue, Use
from xdsl.passes import ModulePass
from xdsl.rewriter import InsertPoint, Rewriter

from irees.analysis.element_sizes import item_bytes
from irees.dialects.storage import Slice, inserted, is_dim, is_reshape, is_undefined, slice_of
from irees.interfaces import loops_model_of, outputs_of, reads_output
from irees.remarks import remark
from irees.transforms.utils.shapes import (
    IndexBuilder,
    Size,
    constant_value,
    dims,
    same_size,
)
from irees.transforms.utils.tensors import TensorBuilder, constant

OVERWRITTEN = {
    "iree_linalg_ext.attention": (4, 5),
    "iree_linalg_ext.scan": (1,),
    "iree_linalg_ext.topk_v2": (2, 3),
    "linalg.fill": (1,),
    "linalg.softmax": (1,),
    "linalg.pack": (1,),
    "linalg.unpack": (1,),
    "iree_linalg_ext.map_load": (1,),
}
"""Operand indices whose elements an op never reads."""


def reads(use: Use) -> bool:
    """Whether an op may read elements of an operand directly; `is_read` follows views."""
    op, index = use.operation, use.index
    if isinstance(op, linalg.GenericOp):
        return bool(op.body.block.args[index].uses)
    if isinstance(op, LinalgStructuredOperation) and op.regions:
        arguments = op.regions[0].block.args
        return index < len(arguments) and bool(arguments[index].uses)
    if loops_model_of(op) is not None:
        first = len(op.operands) - len(outputs_of(op))
        if index >= first and index in OVERWRITTEN.get(op.name, ()):
            return False
        return index < first or reads_output(op, index - first)
    return not is_dim(op) and index not in OVERWRITTEN.get(op.name, ())


def is_read(value: SSAValue, seen: set[SSAValue] | None = None) -> bool:
    """Whether some element of an unwritten tensor may be read."""
    seen = seen if seen is not None else set()
    if value in seen:
        return False
    seen.add(value)
    for use in value.uses:
        op = use.operation
        # A view reads no element itself.
        if (is_reshape(op) or slice_of(op)) and use.index == 0:
            if is_read(op.results[0], seen):
                return True
        elif inserted(op) and use.index == 1:
            if not covers(op) and is_read(op.results[0], seen):
                return True
        elif reads(use):
            return True
    return False


# --- insertions that overwrite the whole destination ----------------------------------------


def _continues(part: Slice, axis: int, reached: list[Size], whole: list[Size]) -> bool:
    """Whether an insertion begins at sum(`reached`) along `axis`, and covers all other dims."""
    others = [i for i in range(len(whole)) if i != axis]
    if any(stride != 1 for stride in part.strides):
        return False
    if any(part.offsets[i] != 0 or not same_size(part.sizes[i], whole[i]) for i in others):
        return False
    return same_sum([part.offsets[axis]], reached)


def covers(first: Operation) -> bool:
    """Whether a chain of insertions covers one dim from 0 to its end, and all other dims whole."""
    part = inserted(first)
    assert part is not None
    whole = dims(part.source, IndexBuilder(InsertPoint.before(first)))
    partial = [axis for axis, n in enumerate(part.sizes) if not same_size(n, whole[axis])]
    axis = partial[0] if partial else 0
    reached: list[Size] = []
    op: Operation | None = first
    while op is not None and (part := inserted(op)) is not None and whole:
        if not _continues(part, axis, reached, whole):
            return False
        reached.append(part.sizes[axis])
        if same_sum([whole[axis]], reached):
            return True
        user = op.results[0].get_user_of_unique_use()
        follows = user is not None and inserted(user) and user.operands[1] is op.results[0]
        op = user if follows else None
    return not whole


def summands(sizes: list[Size]) -> tuple[int, list[SSAValue]]:
    """Returns the constant part and the non-constant terms of a sum."""
    number, rest, todo = 0, [], list(sizes)
    while todo:
        size = todo.pop()
        known = size if isinstance(size, int) else constant_value(size)
        if known is not None:
            number += known
        elif isinstance(size, SSAValue) and isinstance(size.owner, arith.AddiOp):
            todo += size.owner.operands
        else:
            assert isinstance(size, SSAValue)
            rest.append(size)
    return number, rest


def same_sum(a: list[Size], b: list[Size]) -> bool:
    """Whether two sums are provably equal."""
    (x, left), (y, right) = summands(a), summands(b)
    for term in left:
        match = next((i for i, other in enumerate(right) if same_size(term, other)), None)
        if match is None:
            return False
        del right[match]
    return x == y and not right


# --- the pass ---------------------------------------------------------------------------------


def fill(op: tensor.EmptyOp) -> None:
    """tensor.empty  =>  linalg.fill with zeros"""
    kind = op.tensor.type
    assert isinstance(kind, TensorType)
    b = TensorBuilder(op)
    zero = b.insert(constant(0, kind.element_type)).results[0]
    # Keep the type: `b.filled` would turn a constant dynamic size into a static one.
    init = b.insert(tensor.EmptyOp(list(op.dynamic_sizes), kind)).results[0]
    filled = b.insert(linalg.FillOp([zero], [init], [kind])).results[0]
    count, size = prod(n for n in kind.get_shape() if n >= 0), item_bytes(kind.element_type)
    per = "" if kind.has_static_shape() else " times its dynamic sizes"
    text = f"{count * size} bytes{per} may be read before they are written: filled with 0"
    remark("passed", InitializeEmptiesPass.name, op, text)
    op.tensor.replace_all_uses_with(filled)
    Rewriter.erase_op(op)


@dataclass(frozen=True)
class InitializeEmptiesPass(ModulePass):
    """Zero-fills tensors that may be read before they are written."""

    name = "irees-initialize-empties"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for inner in list(op.walk()):
            if is_undefined(inner) and is_read(inner.tensor):
                fill(inner)
