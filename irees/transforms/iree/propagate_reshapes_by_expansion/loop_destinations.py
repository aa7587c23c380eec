"""Reshapes destinations and carried values of loops to the shape that the loop body uses."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from xdsl.dialects import scf, tensor
from xdsl.dialects.builtin import (
    DYNAMIC_INDEX,
    DenseArrayBase,
    MemRefType,
    NoneAttr,
    TensorType,
    i64,
)
from xdsl.ir import Block, BlockArgument, Region, SSAValue
from xdsl.rewriter import InsertPoint, Rewriter

from irees.dialects.iree_codegen import StoreToBufferOp, WorkgroupMappingAttr
from irees.dialects.iree_tensor_ext import DispatchTensorStoreOp
from irees.dialects.upstream.scf import ForallOp
from irees.dialects.upstream.tensor import ParallelInsertSliceOp
from irees.transforms.iree.utils.interface_slices import Slice
from irees.transforms.utils.affine_sums import Sum
from irees.transforms.utils.reshapes import Refused, collapse, expand
from irees.transforms.utils.shapes import IndexBuilder, Size, dim, mixed, reassociation


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
    whole, part = op.dest.type.get_shape(), source.src.type.get_shape()
    if len(groups) != len(whole) or not _is_stored(forall.res[number]):
        return False
    inner = [[part[i] for i in group[1:]] for group in groups]
    if any(DYNAMIC_INDEX in sizes for sizes in inner):
        raise Refused("the inner dims of a group are dynamic")
    products = [prod(sizes) for sizes in inner]
    for size, product, group in zip(whole, products, groups, strict=True):
        if len(group) > 1 and (size == DYNAMIC_INDEX or not product or size % product):
            raise Refused(f"a dim of the destination is not a multiple of {product}")
    if any(s != 1 for s in op.static_strides.get_values()):
        raise Refused("the slice has strides")
    offsets = mixed(op.static_offsets.get_values(), op.offsets)
    for offset, product in zip(offsets, products, strict=True):
        if not _multiple(Sum.of(offset), product):
            raise Refused(f"an offset is not known to be a multiple of {product}")
    slices = _slices(op, groups)
    at = IndexBuilder(InsertPoint.before(op.parent_op() or op))
    first = IndexBuilder(InsertPoint.before(slices[0])) if slices else at
    new_offsets: list[Size] = []
    for offset, product, group in list(zip(offsets, products, groups, strict=True))[::-1]:
        outer = Sum.of(offset).floordiv(product).build(first)
        new_offsets = [outer, *[0] * (len(group) - 1), *new_offsets]
    sizes = mixed(op.static_sizes.get_values(), op.sizes)
    new_sizes: list[Size] = []
    for size, product, group in zip(sizes, products, groups, strict=True):
        new_sizes += [part[group[0]], *(part[i] for i in group[1:])]
        if part[group[0]] == DYNAMIC_INDEX:
            new_sizes[-len(group)] = Sum.of(size).floordiv(product).build(first)
    ones: list[Size] = [1] * len(new_sizes)
    for piece in slices:
        new = tensor.ExtractSliceOp.build(
            operands=[op.dest, *_dynamic(new_offsets, new_sizes)],
            properties=_static(new_offsets, new_sizes),
            result_types=[source.src.type],
        )
        for use in list(piece.result.uses):
            Rewriter.replace_op(use.operation, [], [new.result], safe_erase=False)
        Rewriter.insert_op(new, InsertPoint.before(piece))
        Rewriter.erase_op(piece)
    insert = ParallelInsertSliceOp(source.src, op.dest, new_offsets, new_sizes, ones)
    Rewriter.replace_op(op, insert, [])
    shape: list[int] = []
    for size, sizes_, product in zip(whole, inner, products, strict=True):
        shape += [size if size == DYNAMIC_INDEX else size // product, *sizes_]
    _rebuild_forall(forall, number, groups, TensorType(source.src.type.element_type, shape))
    return True


def _by_workgroups(forall: ForallOp) -> bool:
    mapping = forall.mapping
    return mapping is not None and all(isinstance(m, WorkgroupMappingAttr) for m in mapping)


def _is_stored(value: SSAValue) -> bool:
    found = False
    for use in value.uses:
        op = use.operation
        if isinstance(op, DispatchTensorStoreOp):
            place = Slice.of(op)
            if place is None or not all(place.full(d) for d in range(len(place.shape))):
                return False
            found = True
        elif isinstance(op, StoreToBufferOp):
            assert isinstance(op.buffer.type, MemRefType)
            if not isinstance(op.buffer.type.layout, NoneAttr):
                return False
            found = True
    return found


def _multiple(sum_: Sum, divisor: int) -> bool:
    return all(
        c % divisor == 0 or (len(f) == 1 and _steps_by(f[0], divisor)) for f, c in sum_.terms
    )


def _steps_by(value: object, divisor: int) -> bool:
    """Whether a value is the induction variable of a loop over multiples of `divisor`."""
    if not isinstance(value, BlockArgument):
        return False
    loop = value.block.parent_op()
    if isinstance(loop, ForallOp) and value.index < loop.num_loops:
        lower, _, step = (b[value.index] for b in loop.bounds())
    elif isinstance(loop, scf.ForOp) and value.index == 0:
        lower, step = loop.lb, loop.step
    else:
        return False
    return Sum.of(lower).divisible(divisor) and Sum.of(step).divisible(divisor)


def _slices(op: ParallelInsertSliceOp, groups: Sequence[Sequence[int]]):
    """Returns the reads of the slice that `op` writes, all expanded alike. Raises Refused."""
    found: list[tensor.ExtractSliceOp] = []
    for use in op.dest.uses:
        user = use.operation
        if user is op:
            continue
        if not isinstance(user, tensor.ExtractSliceOp):
            raise Refused("the destination has another use")
        for name in ("static_offsets", "static_sizes", "static_strides"):
            if user.properties[name] != op.properties[name]:
                raise Refused("another slice of the destination is read")
        if list(user.operands[1:]) != list(op.operands[2:]):
            raise Refused("another slice of the destination is read")
        for inner in user.result.uses:
            expanded = inner.operation
            if not isinstance(expanded, tensor.ExpandShapeOp) or reassociation(expanded) != list(
                map(list, groups)
            ):
                raise Refused("a read slice of the destination is not expanded alike")
            if expanded.result.type != op.source.owner.src.type:  # type: ignore[union-attr]
                raise Refused("a read slice of the destination is not expanded alike")
        found.append(user)
    return found


def _dynamic(offsets: Sequence[Size], sizes: Sequence[Size]):
    return [[v for v in values if isinstance(v, SSAValue)] for values in (offsets, sizes, ())]


def _static(offsets: Sequence[Size], sizes: Sequence[Size]):
    lists = {"offsets": offsets, "sizes": sizes, "strides": [1] * len(sizes)}
    return {
        f"static_{name}": DenseArrayBase.from_list(
            i64, [v if isinstance(v, int) else DYNAMIC_INDEX for v in values]
        )
        for name, values in lists.items()
    }


def _rebuild_forall(
    forall: ForallOp, number: int, groups: Sequence[Sequence[int]], type: TensorType
) -> None:
    at = IndexBuilder(InsertPoint.before(forall))
    outputs = list(forall.outputs)
    old = outputs[number].type
    assert isinstance(old, TensorType)
    sizes = _sizes(outputs[number], groups, type, at)
    outputs[number] = expand(outputs[number], groups, sizes, type, at)
    region = forall.detach_region(forall.region)
    argument = region.block.args[forall.num_loops + number]
    Rewriter.replace_value_with_new_type(argument, type)
    lower, upper, step = forall.bounds()
    new = ForallOp.over(lower, upper, step, outputs, region, forall.mapping)
    new.attributes.update(forall.attributes)
    new.location = forall.location
    at.insert(new)
    results: list[SSAValue] = list(new.res)
    results[number] = collapse(results[number], groups, old, at)
    Rewriter.replace_op(forall, [], results)


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
        groups, kind, old = reassociation(user), user.result.type, argument.type
        assert isinstance(old, TensorType)
        if reassociation(source) != groups or any(
            kind.get_shape()[i] == DYNAMIC_INDEX for g in groups if len(g) > 1 for i in g
        ):
            continue
        at = IndexBuilder(InsertPoint.before(loop))
        carried = list(loop.iter_args)
        sizes = _sizes(carried[number], groups, kind, at)
        carried[number] = expand(carried[number], groups, sizes, kind, at)
        last.operands[number] = source.src
        region: Region = loop.detach_region(loop.body)
        block: Block = region.block
        Rewriter.replace_op(user, [], [argument], safe_erase=False)
        Rewriter.replace_value_with_new_type(block.args[number + 1], kind)
        new = scf.ForOp(loop.lb, loop.ub, loop.step, carried, region)
        new.attributes.update(loop.attributes)
        new.location = loop.location
        at.insert(new)
        results: list[SSAValue] = list(new.res)
        results[number] = collapse(results[number], groups, old, at)
        Rewriter.replace_op(loop, [], results)
        return True
    return False
