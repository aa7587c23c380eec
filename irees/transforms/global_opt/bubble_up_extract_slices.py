"""
Moves slices above the ops that produce their sources.

A slice of a transposed tensor equals a transposed slice. With the slice first, the transposition
folds into its consumer and the slice is a view of memory. Otherwise the program transposes the
whole tensor and copies each slice. Queries, keys and values from a single projection are such
slices. An elementwise op that only one slice reads computes only that slice.

    %t = linalg.generic {(b, s, i, h, d) -> (i, b, h, s, d)} ins(%x : tensor<2x9x3x4x8xf32>)
    %q = tensor.extract_slice %t[0, 0, 0, 0, 0] [1, 2, 4, 9, 8] [1, 1, 1, 1, 1]
  =>
    %s = tensor.extract_slice %x[0, 0, 0, 0, 0] [2, 9, 1, 4, 8] [1, 1, 1, 1, 1]
    %q = linalg.generic {(b, s, h, d) -> (b, h, s, d)} ins(%s : tensor<2x9x4x8xf32>)

The pass skips slices with steps, ops with several results, ops that read a loop index or index an
operand by more than a plain loop, and ops with arithmetic that more than one slice reads. IREE:
`iree-dispatch-creation-bubble-up-extract-slices`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from typing import TypeGuard

from xdsl.context import Context
from xdsl.dialects import tensor
from xdsl.dialects.builtin import ModuleOp, TensorType
from xdsl.dialects.linalg import ops as linalg
from xdsl.ir import Operation, SSAValue
from xdsl.ir.affine import AffineDimExpr
from xdsl.passes import ModulePass
from xdsl.rewriter import Rewriter

from irees.analysis.distribution import is_read_in_place
from irees.dialects.sizes import kept_dims
from irees.rewrites import may_rewrite
from irees.transforms.utils.reshapes import expand as reshaped
from irees.transforms.utils.reshapes import permutes
from irees.transforms.utils.shapes import Size, dim, mixed, reassociation, static_shape
from irees.transforms.utils.structured import (
    asserts,
    copied_input,
    element_type,
    generic,
    is_parallel,
    maps,
)
from irees.transforms.utils.tensors import TensorBuilder, select_dims
from irees.transforms.utils.unit_dims import collapse, expand

NAME = "irees-bubble-up-extract-slices"


def is_long(size: Size) -> bool:
    """Whether a loop may have more than one iteration."""
    return not isinstance(size, int) or size != 1


def is_movable(op: Operation) -> TypeGuard[linalg.GenericOp]:
    """Whether parts of the result of an op can be computed from parts of its operands."""
    if not isinstance(op, linalg.GenericOp) or len(op.results) != 1 or not is_parallel(op):
        return False
    if asserts(op):
        return False
    indexing = maps(op)
    if not isinstance(op.results[0].type, TensorType) or not all(permutes(m) for m in indexing):
        return False
    if len(indexing[-1].results) < indexing[-1].num_dims:
        return False
    if any(arg.uses for arg in op.body.block.args[len(op.inputs) :]):
        return False
    return not any(isinstance(inner, linalg.IndexOp) for inner in op.body.walk())


def slices_of(op: linalg.GenericOp) -> list[tensor.ExtractSliceOp]:
    """Returns the slices to move above an op."""
    users = [use.operation for use in op.results[0].uses]
    found = [user for user in users if isinstance(user, tensor.ExtractSliceOp)]
    found = [user for user in found if is_read_in_place(user) and user.parent is op.parent]
    return found if len(users) == 1 or copied_input(op) is not None else []


class Part:
    """A slice of the result of an op, and the loops that compute it."""

    def __init__(self, op: linalg.GenericOp, taken: tensor.ExtractSliceOp):
        self.op, self.taken, self.b = op, taken, TensorBuilder(taken)
        self.indexing = [
            [e.position for e in m.results if isinstance(e, AffineDimExpr)] for m in maps(op)
        ]
        self.written = self.indexing[-1]
        offsets = mixed(taken.static_offsets.get_values(), taken.offsets)
        self.sizes = mixed(taken.static_sizes.get_values(), taken.sizes)
        self.offset_of = dict(zip(self.written, offsets, strict=True))
        self.size_of = dict(zip(self.written, self.sizes, strict=True))
        self.kept = [d for d in range(len(self.written)) if is_long(self.size_of[d])]

    def move(self) -> None:
        """slice(generic(x))  =>  generic(slice(x)), without loops of one iteration"""
        inputs = [
            self._input(v, loops)
            for v, loops in zip(self.op.inputs, self.indexing[:-1], strict=True)
        ]
        result = self._compute(inputs)
        kept = [axis for axis, loop in enumerate(self.written) if loop in self.kept]
        replace_part(self.taken, result, kept, self.b)

    def _input(self, value: SSAValue, loops: Sequence[int]) -> SSAValue:
        """The slice of an operand that the loops read, without dims of size 1."""
        if not isinstance(value.type, TensorType):
            return value
        sizes = [self.size_of[d] for d in loops]
        if tuple(sizes) == value.type.get_shape():
            return collapse(value, [i for i, n in enumerate(sizes) if is_long(n)], self.b)
        return long_slice(value, [self.offset_of[d] for d in loops], sizes, self.b)

    def _compute(self, inputs: Sequence[SSAValue]) -> SSAValue:
        """The op on parts; an input, if the op only copies it."""
        kept, op = self.kept, self.op
        new_maps = [
            select_dims(len(kept), [kept.index(d) for d in loops if d in kept])
            for loops in self.indexing
        ]
        copied = copied_input(op)
        is_tensor = copied is not None and isinstance(inputs[copied].type, TensorType)
        if is_tensor and new_maps[copied] == new_maps[-1]:
            return inputs[copied]
        sizes = [self.size_of[d] for d in self.written if d in kept]
        init = self.b.empty(element_type(op.results[0]), sizes)
        new = generic(inputs, [init], new_maps, ["parallel"] * len(kept), op.body.clone())
        new.attributes.update(op.attributes)
        return self.b.insert(new).results[0]


def long_slice(
    source: SSAValue, offsets: Sequence[Size], sizes: Sequence[Size], b: TensorBuilder
) -> SSAValue:
    """tensor.extract_slice without dims of size 1"""
    shape = static_shape([size for size in sizes if is_long(size)])
    kind = TensorType(element_type(source), shape)
    part = tensor.ExtractSliceOp(source, offsets, sizes, [1] * len(sizes), kind)
    return b.insert(part).results[0]


def replace_part(
    taken: tensor.ExtractSliceOp, result: SSAValue, kept: Sequence[int], b: TensorBuilder
) -> None:
    """Replaces a slice by a tensor that has its dims `kept`; the others are of size 1."""
    for user in [use.operation for use in taken.result.uses]:
        # A reshape that drops the dims of size 1 would separate the op from its reader.
        if isinstance(user, tensor.CollapseShapeOp) and user.result.type == result.type:
            Rewriter.replace_op(user, [], [result])
    if taken.result.uses:
        sizes = mixed(taken.static_sizes.get_values(), taken.sizes)
        reduced = taken.result.type
        assert isinstance(reduced, TensorType)
        axes = kept_dims(sizes, reduced.get_shape())
        long = [place for place, axis in enumerate(axes) if axis in kept]
        kind = TensorType(reduced.element_type, static_shape([sizes[axis] for axis in axes]))
        taken.result.replace_all_uses_with(b.cast_tensor(expand(result, kind, long, b), reduced))
    Rewriter.erase_op(taken)


def wide_dims(reshape: tensor.ExpandShapeOp) -> list[int] | None:
    """Returns the dims that are not of size 1; None if a reshape does more than add unit dims."""
    shape, source = reshape.result.type.get_shape(), reshape.src.type
    assert isinstance(source, TensorType)
    wide = [axis for axis, size in enumerate(shape) if size != 1]
    return wide if [shape[axis] for axis in wide] == list(source.get_shape()) else None


def skip_short_dims(part: tensor.ExtractSliceOp) -> None:
    """slice(expand(x))  =>  slice(x), where the reshape only adds dims of size 1"""
    reshape = part.source.owner
    if not isinstance(reshape, tensor.ExpandShapeOp) or not is_read_in_place(part):
        return
    wide, sizes = wide_dims(reshape), mixed(part.static_sizes.get_values(), part.sizes)
    # A part of a dim of size 1 may be empty, or of a size that is not known.
    if wide is None or any(is_long(n) for axis, n in enumerate(sizes) if axis not in wide):
        return
    if not may_rewrite(NAME, part, "slice of a tensor without dims of size 1"):
        return
    b = TensorBuilder(part)
    offsets = mixed(part.static_offsets.get_values(), part.offsets)
    kept = [axis for axis in wide if is_long(sizes[axis])]
    own_offsets, own_sizes = ([values[axis] for axis in wide] for values in (offsets, sizes))
    replace_part(part, long_slice(reshape.src, own_offsets, own_sizes, b), kept, b)
    if not reshape.result.uses:
        Rewriter.erase_op(reshape)


def rows_of(offset: Size, size: int, inner: Sequence[Size]) -> tuple[int, list[int]] | None:
    """
    Returns the first row of a part of a dim of `size` elements, and the shape of the dim in rows of
    shape `inner`; None if the part does not begin with a row, or if a number is not known.
    """
    known = [n for n in inner if isinstance(n, int)]
    row = prod(known)
    if len(known) < len(inner) or not row or not isinstance(offset, int) or size < 0:
        return None
    return None if size % row or offset % row else (offset // row, [size // row, *known])


def swap_expand(op: tensor.ExpandShapeOp) -> bool:
    """expand(slice(x))  =>  slice(expand(x)), where the slice begins and ends between rows"""
    part = op.src.owner
    if not isinstance(part, tensor.ExtractSliceOp) or not is_read_in_place(part):
        return False
    source, groups = part.source.type, reassociation(op)
    assert isinstance(source, TensorType)
    if not part.result.has_one_use() or len(groups) != source.get_num_dims():
        return False
    b = TensorBuilder(op)
    offsets = mixed(part.static_offsets.get_values(), part.offsets)
    known = mixed(op.static_output_shape.get_values(), op.dynamic_output_shape)
    whole: list[Size] = []
    starts: list[Size] = []
    for axis, group in enumerate(groups):
        if len(group) == 1:
            whole.append(dim(part.source, axis, b))
            starts.append(offsets[axis])
            continue
        found = rows_of(offsets[axis], source.get_shape()[axis], [known[i] for i in group[1:]])
        if found is None:
            return False
        whole += found[1]
        starts += [found[0], *[0] * (len(group) - 1)]
    if not may_rewrite(NAME, op, "swap of tensor.expand_shape and a slice"):
        return False
    kind = TensorType(source.element_type, static_shape(whole))
    result = b.extract_slice(reshaped(part.source, groups, whole, kind, b), starts, known)
    Rewriter.replace_op(op, [], [b.cast_tensor(result, op.result.type)])
    Rewriter.erase_op(part)
    return True


@dataclass(frozen=True)
class BubbleUpExtractSlicesPass(ModulePass):
    """Moves slices above the ops that produce their sources."""

    name = "irees-bubble-up-extract-slices"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for inner in [o for o in op.walk() if isinstance(o, tensor.ExpandShapeOp)]:
            swap_expand(inner)
        for inner in [o for o in op.walk() if isinstance(o, tensor.ExtractSliceOp)]:
            skip_short_dims(inner)
        for inner in reversed([o for o in op.walk() if is_movable(o)]):
            found = slices_of(inner)
            if not found or not may_rewrite(NAME, inner, "slices above an op"):
                continue
            for part in found:
                Part(inner, part).move()
            if not inner.results[0].uses:
                Rewriter.erase_op(inner)
