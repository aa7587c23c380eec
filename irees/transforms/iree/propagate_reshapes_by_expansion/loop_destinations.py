"""Reshapes destinations and carried values of loops to the shape that the loop body uses."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

from xdsl.dialects import scf, tensor
from xdsl.dialects.builtin import (
    DYNAMIC_INDEX,
    DenseArrayBase,
    TensorType,
    i64,
)
from xdsl.ir import BlockArgument, Operation, Region, SSAValue
from xdsl.rewriter import InsertPoint, Rewriter

from irees.analysis.affine_sums import Sum, is_multiple
from irees.analysis.interface_slices import is_stored_whole
from irees.dialects.iree_codegen import WorkgroupMappingAttr
from irees.dialects.upstream.scf import ForallOp
from irees.dialects.upstream.tensor import ParallelInsertSliceOp
from irees.transforms.utils.affine_sums import build_sum
from irees.transforms.utils.reshapes import Refused, collapse, expand
from irees.transforms.utils.shapes import (
    IndexBuilder,
    Size,
    dim,
    mixed,
    reassociation,
    static_shape,
)


@dataclass(frozen=True)
class _SplitDim:
    """A dim of a destination with the slice of it, and the dims that it is split into."""

    whole: int
    offset: Size
    size: Size
    group: list[int]
    """Sizes of the new dims in the slice; only the first may be dynamic."""

    @property
    def inner(self) -> list[int]:
        """All new dims but the first, which have the same sizes in the destination."""
        return self.group[1:]

    @property
    def stride(self) -> int:
        """Elements of the destination dim per element of the first new dim."""
        return prod(self.inner)

    def check(self) -> None:
        """Raises Refused unless the slice is one in the split dims, too."""
        if DYNAMIC_INDEX in self.inner:
            raise Refused("the inner dims of a group are dynamic")
        known = self.whole != DYNAMIC_INDEX and self.stride != 0
        if self.inner and (not known or self.whole % self.stride):
            raise Refused(f"a dim of the destination is not a multiple of {self.stride}")
        if not is_multiple(Sum.of(self.offset), self.stride):
            raise Refused(f"an offset is not known to be a multiple of {self.stride}")

    def shape(self) -> list[int]:
        """Returns the new dims of the destination."""
        first = self.whole if self.whole == DYNAMIC_INDEX else self.whole // self.stride
        return [first, *self.inner]

    def offsets(self, at: IndexBuilder) -> list[Size]:
        """Returns the offsets of the slice in the new dims."""
        first = build_sum(Sum.of(self.offset).floordiv(self.stride), at)
        return [first, *[0] * len(self.inner)]

    def sizes(self, at: IndexBuilder) -> list[Size]:
        """Returns the sizes of the slice in the new dims."""
        first: Size = self.group[0]
        if first == DYNAMIC_INDEX:
            first = build_sum(Sum.of(self.size).floordiv(self.stride), at)
        return [first, *self.inner]


def expand_forall(op: ParallelInsertSliceOp) -> bool:
    """
    forall { insert collapse(x) into %d[o] }  =>  collapse(forall { insert x into %d'[o / n, 0] })

    Applies if workgroups write the destination in slices, a store writes all of it, and every
    offset is a multiple of the inner dims of its group (IREE rounds other offsets down). Raises
    Refused.
    """
    source = op.source.owner
    if not isinstance(source, tensor.CollapseShapeOp) or not isinstance(op.dest, BlockArgument):
        return False
    forall = op.dest.block.parent_op()
    if not isinstance(forall, ForallOp) or not _by_workgroups(forall):
        return False
    number = op.dest.index - forall.num_loops
    groups = reassociation(source)
    assert isinstance(op.dest.type, TensorType)
    assert isinstance(source.src.type, TensorType)
    if len(groups) != len(op.dest.type.get_shape()) or not is_stored_whole(forall.res[number]):
        return False
    split = _split_dims(op, groups, source.src.type)
    slices = _slices(op, source)
    at = IndexBuilder(InsertPoint.before(slices[0] if slices else op.parent_op() or op))
    offsets: list[Size] = []
    for one in reversed(split):
        offsets = [*one.offsets(at), *offsets]
    sizes = [size for one in split for size in one.sizes(at)]
    for piece in slices:
        _expand_slice(piece, offsets, sizes, source.src.type)
    insert = ParallelInsertSliceOp(source.src, op.dest, offsets, sizes, [1] * len(sizes))
    Rewriter.replace_op(op, insert, [])
    shape = [size for one in split for size in one.shape()]
    _rebuild_forall(forall, number, groups, TensorType(source.src.type.element_type, shape))
    return True


def _split_dims(
    op: ParallelInsertSliceOp, groups: Sequence[Sequence[int]], source: TensorType
) -> list[_SplitDim]:
    """Returns how each dim of the destination is split. Raises Refused if one cannot be."""
    if any(s != 1 for s in op.static_strides.get_values()):
        raise Refused("the slice has strides")
    assert isinstance(op.dest.type, TensorType)
    shape, part = op.dest.type.get_shape(), [[source.get_shape()[i] for i in g] for g in groups]
    offsets = mixed(op.static_offsets.get_values(), op.offsets)
    sizes = mixed(op.static_sizes.get_values(), op.sizes)
    found = [_SplitDim(*each) for each in zip(shape, offsets, sizes, part, strict=True)]
    for one in found:
        one.check()
    return found


def _by_workgroups(forall: ForallOp) -> bool:
    mapping = forall.mapping
    return mapping is not None and all(isinstance(m, WorkgroupMappingAttr) for m in mapping)


def _slices(
    op: ParallelInsertSliceOp, source: tensor.CollapseShapeOp
) -> list[tensor.ExtractSliceOp]:
    """Returns the reads of the slice that `op` writes, all expanded alike. Raises Refused."""
    groups, found = reassociation(source), list[tensor.ExtractSliceOp]()
    for use in op.dest.uses:
        user = use.operation
        if user is op:
            continue
        if not isinstance(user, tensor.ExtractSliceOp):
            raise Refused("the destination has another use")
        same = all(user.properties[name] == op.properties[name] for name in _STATIC)
        if not same or list(user.operands[1:]) != list(op.operands[2:]):
            raise Refused("another slice of the destination is read")
        for inner in user.result.uses:
            expanded = inner.operation
            if (
                not isinstance(expanded, tensor.ExpandShapeOp)
                or reassociation(expanded) != groups
                or expanded.result.type != source.src.type
            ):
                raise Refused("a read slice of the destination is not expanded alike")
        found.append(user)
    return found


_STATIC = ("static_offsets", "static_sizes", "static_strides")


def _expand_slice(
    slice: tensor.ExtractSliceOp, offsets: Sequence[Size], sizes: Sequence[Size], type: TensorType
) -> None:
    """expand(extract_slice(d))  =>  extract_slice(d') at offsets and sizes in the split dims"""
    dynamic = [[v for v in values if isinstance(v, SSAValue)] for values in (offsets, sizes, ())]
    static = [static_shape(values) for values in (offsets, sizes, [1] * len(sizes))]
    new = tensor.ExtractSliceOp.build(
        operands=[slice.source, *dynamic],
        properties={n: DenseArrayBase.from_list(i64, v) for n, v in zip(_STATIC, static)},
        result_types=[type],
    )
    for use in list(slice.result.uses):
        Rewriter.replace_op(use.operation, [], [new.result], safe_erase=False)
    Rewriter.insert_op(new, InsertPoint.before(slice))
    Rewriter.erase_op(slice)


def _rebuild_forall(
    forall: ForallOp, number: int, groups: Sequence[Sequence[int]], type: TensorType
) -> None:
    """forall(d) { f(d) }  =>  collapse(forall(expand(d)) { f(d) })"""
    outputs = _with_expanded(forall, forall.outputs, number, groups, type)
    region = forall.detach_region(forall.region)
    argument = region.block.args[forall.num_loops + number]
    Rewriter.replace_value_with_new_type(argument, type)
    new = ForallOp.over(*forall.bounds(), outputs, region, forall.mapping)
    _replace_loop(forall, new, number, groups)


def _with_expanded(
    loop: Operation,
    values: Sequence[SSAValue],
    number: int,
    groups: Sequence[Sequence[int]],
    type: TensorType,
) -> list[SSAValue]:
    """Returns the values that a loop carries with one of them expanded, before the loop."""
    at, found = IndexBuilder(InsertPoint.before(loop)), list(values)
    sizes = _sizes(found[number], groups, type, at)
    found[number] = expand(found[number], groups, sizes, type, at)
    return found


def _replace_loop(
    loop: Operation, new: Operation, number: int, groups: Sequence[Sequence[int]]
) -> None:
    """Replaces a loop by one with an expanded result, which is collapsed again."""
    at, old = IndexBuilder(InsertPoint.before(loop)), loop.results[number].type
    assert isinstance(old, TensorType)
    new.attributes.update(loop.attributes)
    new.location = loop.location
    at.insert(new)
    results: list[SSAValue] = list(new.results)
    results[number] = collapse(results[number], groups, old, at)
    Rewriter.replace_op(loop, [], results)


def _sizes(
    value: SSAValue, groups: Sequence[Sequence[int]], type: TensorType, at: IndexBuilder
) -> list[Size]:
    sizes: list[Size] = []
    for axis, group in enumerate(groups):
        for i in group:
            size = type.get_shape()[i]
            sizes.append(dim(value, axis, at) if size == DYNAMIC_INDEX else size)
    return sizes


def expand_for(loop: scf.ForOp) -> bool:
    """for(x) { f(expand(x)) -> collapse(y) }  =>  collapse(for(expand(x)) { f(x) -> y })"""
    last = loop.body.block.last_op
    assert last is not None
    for number, value in enumerate(last.operands):
        source = value.owner
        argument = loop.body.block.args[number + 1]
        if not isinstance(source, tensor.CollapseShapeOp):
            continue
        user = argument.get_user_of_unique_use()
        if not isinstance(user, tensor.ExpandShapeOp) or user.result.type != source.src.type:
            continue
        groups, kind = reassociation(user), user.result.type
        if reassociation(source) != groups or any(
            kind.get_shape()[i] == DYNAMIC_INDEX for g in groups if len(g) > 1 for i in g
        ):
            continue
        carried = _with_expanded(loop, loop.iter_args, number, groups, kind)
        last.operands[number] = source.src
        region: Region = loop.detach_region(loop.body)
        Rewriter.replace_op(user, [], [argument], safe_erase=False)
        Rewriter.replace_value_with_new_type(region.block.args[number + 1], kind)
        new = scf.ForOp(loop.lb, loop.ub, loop.step, carried, region)
        _replace_loop(loop, new, number, groups)
        return True
    return False
