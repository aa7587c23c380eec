"""Data movement without arithmetic: reshape, transpose, slice, pad, concatenate."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from xdsl.dialects import arith, tensor
from xdsl.dialects.builtin import DYNAMIC_INDEX, DenseArrayBase, IntegerAttr, TensorType, i64
from xdsl.dialects.linalg import ops as linalg
from xdsl.ir import Block, Operation, Region, SSAValue
from xdsl.ir.affine import AffineConstantExpr, AffineDimExpr, AffineMap

from irees.dialects.irees import ViewPartsOp
from irees.transforms.utils.shapes import constant_value, reassociation_attr, split

from .core import Builder, Size, Tensor, projection, same, tensor_type
from .dtypes import BOOL, I64, INDEX
from .scalars import Body, Scalar

Group = tuple[list[int], list[int]]


def reshape(b: Builder, x: Tensor, shape: Sequence[Size]) -> Tensor:
    """Reshapes x in row-major order to a shape with the same number of elements."""
    shape = tuple(shape)
    if len(shape) == x.rank and all(map(same, shape, x.shape)):
        return x
    sizes = [s for s in (*shape, *x.shape) if isinstance(s, int)]
    if 0 in sizes:
        return b.empty(x.dtype, shape)
    for source, target in _groups(x.shape, shape):
        if len(source) > 1 and len(target) > 1:
            # Neither a pure collapse nor a pure expansion: collapses to one dim first.
            x = _through_flat(b, x, shape)
            break
    return _regroup(b, x, shape)


def parts(b: Builder, x: Tensor) -> Tensor:
    """Shows a tensor of complex numbers as reals, with the two parts as a new last dim."""
    value = b.insert(ViewPartsOp(x.value)).results[0]
    return Tensor(value, x.dtype.part, (*x.shape, 2))


def joined_parts(b: Builder, x: Tensor) -> Tensor:
    """Shows a tensor of f32 or f64 with a last dim of 2 as complex numbers."""
    value = b.insert(ViewPartsOp(x.value)).results[0]
    return Tensor(value, x.dtype.complex, x.shape[:-1])


def _groups(source: Sequence[Size], target: Sequence[Size]) -> list[Group]:
    """
    Splits both shapes into the smallest runs of consecutive dims known to hold the same elements.

    All dims from the first to the last that cannot be matched end up in one group.
    """
    groups: list[Group] = []
    i, j = 0, 0
    while i < len(source) and j < len(target):
        found = _next_group(source, target, i, j)
        if found is None:
            break
        (end_i, end_j) = found
        groups.append((list(range(i, end_i)), list(range(j, end_j))))
        i, j = end_i, end_j
    tail: list[Group] = []
    end_i, end_j = len(source), len(target)
    while end_i > i and end_j > j and same(source[end_i - 1], target[end_j - 1]):
        end_i, end_j = end_i - 1, end_j - 1
        tail.insert(0, ([end_i], [end_j]))
    if i < end_i or j < end_j:
        rest = (list(range(i, end_i)), list(range(j, end_j)))
        if rest[0] and rest[1]:
            groups.append(rest)
        elif groups or tail:
            # Only unit dims are left: adds them to the adjacent group.
            near = groups[-1] if groups else tail[0]
            for mine, more in zip(near, rest):
                mine[:] = sorted(mine + more)
        else:
            groups.append(rest)
    return groups + tail


def _next_group(
    source: Sequence[Size], target: Sequence[Size], i: int, j: int
) -> tuple[int, int] | None:
    """The ends of the group that starts at dims i and j; None if it cannot be determined."""
    if same(source[i], target[j]):
        return i + 1, j + 1
    left, right = source[i], target[j]
    i, j = i + 1, j + 1
    while isinstance(left, int) and isinstance(right, int):
        if left == right:
            return i, j
        if left < right:
            if i == len(source) or not isinstance(source[i], int):
                return None
            left, i = left * int(source[i]), i + 1
        else:
            if j == len(target) or not isinstance(target[j], int):
                return None
            right, j = right * int(target[j]), j + 1
    return None


def _through_flat(b: Builder, x: Tensor, shape: Sequence[Size]) -> Tensor:
    """Collapses the dims of each many-to-many group of x into one dim."""
    flat: list[Size] = []
    for source, target in _groups(x.shape, shape):
        if len(source) > 1 and len(target) > 1:
            flat.append(b.product([x.shape[i] for i in source]))
        else:
            flat += [x.shape[i] for i in source]
    return _collapse(b, x, flat, [g for g, _ in _collapsed(x.shape, shape)])


def _collapsed(source: Sequence[Size], target: Sequence[Size]) -> list[Group]:
    found: list[Group] = []
    for group, others in _groups(source, target):
        if len(group) > 1 and len(others) > 1:
            found.append((group, others))
        else:
            found += [([i], others) for i in group]
    return found


def _regroup(b: Builder, x: Tensor, shape: Sequence[Size]) -> Tensor:
    """A reshape where each group has a single dim on one of its sides."""
    groups = _groups(x.shape, shape)
    if not x.rank or not shape:
        return _to_or_from_scalar(b, x, shape)
    middle: list[Size] = []
    for source, target in groups:
        middle += [x.shape[i] for i in source] if len(source) == 1 else [shape[j] for j in target]
    collapse = [source for source, _ in groups if source]
    if len(middle) != x.rank or any(len(g) > 1 for g in collapse):
        x = _collapse(b, x, middle, collapse)
    x = b.with_shape(x, middle)
    if len(middle) == len(shape):
        return b.with_shape(x, shape)
    return _expand(b, x, shape, [target for _, target in groups])


def _to_or_from_scalar(b: Builder, x: Tensor, shape: Sequence[Size]) -> Tensor:
    if x.rank == len(shape) == 0:
        return x
    if x.rank:
        return _collapse(b, b.with_shape(x, [1] * x.rank), (), [])
    return _expand(b, x, shape, [])


def _collapse(
    b: Builder, x: Tensor, shape: Sequence[Size], groups: Sequence[Sequence[int]]
) -> Tensor:
    if len(shape) == x.rank:
        return x
    # A collapsed dim has a static type only if all of its parts are static.
    inferred = [
        size if all(isinstance(x.shape[i], int) for i in group) else b.value(size)
        for size, group in zip(shape, groups)
    ]
    op = b.emit(
        tensor.CollapseShapeOp,
        (x.value,),
        (tensor_type(x.dtype, inferred),),
        {"reassociation": reassociation_attr(groups)},
    )
    return b.with_shape(Tensor(op.results[0], x.dtype, tuple(inferred)), shape)


def _expand(
    b: Builder, x: Tensor, shape: Sequence[Size], groups: Sequence[Sequence[int]]
) -> Tensor:
    for group, size in zip(groups, x.shape):
        if isinstance(size, int) and not all(isinstance(shape[j], int) for j in group):
            # A static dim that expands to dynamic dims must be dynamic itself.
            x = b.with_shape(x, [b.value(s) if s is size else s for s in x.shape])
            break
        if not isinstance(size, int) and all(isinstance(shape[j], int) for j in group):
            known = [
                b.product([shape[j] for j in g]) if g is group else s
                for g, s in zip(groups, x.shape)
            ]
            return _expand(b, b.with_shape(x, known), shape, groups)
    static, dynamic = split(shape)
    kind = tensor_type(x.dtype, [s if s != DYNAMIC_INDEX else b.value(1) for s in static])
    op = tensor.ExpandShapeOp(x.value, dynamic, reassociation_attr(groups), static, kind)
    b.insert(op)
    return b.with_shape(Tensor(op.result, x.dtype, tuple(shape)), shape)


def flatten(b: Builder, x: Tensor) -> Tensor:
    """Collapses all dims into one."""
    return reshape(b, x, [b.product(x.shape)])


def unsqueeze(b: Builder, x: Tensor, axis: int) -> Tensor:
    """x with a dim of size 1 inserted at `axis`."""
    return reshape(b, x, [*x.shape[:axis], 1, *x.shape[axis:]])


def squeeze(b: Builder, x: Tensor, axes: Sequence[int]) -> Tensor:
    """Removes these dims, each of size 1."""
    x = b.with_shape(x, [1 if i in axes else s for i, s in enumerate(x.shape)])
    return reshape(b, x, [s for i, s in enumerate(x.shape) if i not in axes])


def transpose(b: Builder, x: Tensor, order: Sequence[int]) -> Tensor:
    """out[i_order[0], i_order[1], ...] = x[i_0, i_1, ...]: dim n of the result is order[n] of x."""
    if list(order) == list(range(x.rank)):
        return x
    rank = x.rank
    at = projection(rank, tuple(list(order).index(i) for i in range(rank)))
    init = b.empty(x.dtype, [x.shape[i] for i in order])
    maps = [at, projection(rank, tuple(range(rank)))]
    return b.structured([x], [init], maps, [False] * rank, lambda s, v, _: v)[0]


def broadcast_to(b: Builder, x: Tensor, shape: Sequence[Size]) -> Tensor:
    """Broadcasts x to a shape as in numpy."""
    if len(shape) == x.rank and all(map(same, shape, x.shape)):
        return x
    return b.map(lambda v: v, x, shape=shape)


def repeated(b: Builder, x: Tensor, axis: int) -> Tensor | None:
    """
    The vector v with x[i, j, k] = v[j] for axis 1, if `broadcast_to` made x from one, else None.
    """
    owner = x.value.owner
    if not isinstance(owner, linalg.GenericOp) or len(owner.inputs) != 1:
        return None
    copied = owner.body.block.last_op
    source, of, to = owner.inputs[0], *(m.data for m in owner.indexing_maps.data)
    if copied is None or copied.operands[0] is not owner.body.block.args[0]:
        return None
    used = {d for e in of.results for d in e.used_dims()}
    if used != {axis} or not isinstance(source.type, TensorType):
        return None
    if to != AffineMap.identity(x.rank) or not all(
        isinstance(e, AffineDimExpr | AffineConstantExpr) for e in of.results
    ):
        return None
    sizes = [x.shape[axis] if e.used_dims() else 1 for e in of.results]
    return reshape(b, Tensor(source, x.dtype, tuple(sizes)), [x.shape[axis]])


def step_of(x: Tensor) -> int | None:
    """The number s with x[i] = s * i, for a vector that `from_function` made so, else None."""
    owner = x.value.owner
    if not isinstance(owner, linalg.GenericOp) or owner.inputs or x.rank != 1:
        return None
    known: dict[SSAValue, tuple[int, int]] = {}
    last = owner.body.block.last_op
    for op in owner.body.block.ops:
        if op is last:
            break
        found = _linear(op, known)
        if found is None:
            return None
        known[op.results[0]] = found
    step, start = known.get(last.operands[0], (0, 1)) if last is not None else (0, 1)
    return None if start else step


def _linear(op: Operation, known: dict[SSAValue, tuple[int, int]]) -> tuple[int, int] | None:
    """The factor and the constant of a result that is linear in the index of the only loop."""
    if isinstance(op, linalg.IndexOp):
        return 1, 0
    if isinstance(op, arith.ConstantOp):
        return (0, op.value.value.data) if isinstance(op.value, IntegerAttr) else None
    parts = [known.get(o) for o in op.operands]
    given = [p for p in parts if p is not None]
    if len(given) < len(parts):
        return None
    if isinstance(op, arith.IndexCastOp | arith.ExtSIOp):
        return given[0]
    (a, b), (c, d) = given if len(given) == 2 else ((0, 0), (0, 0))
    if isinstance(op, arith.AddiOp):
        return a + c, b + d
    if isinstance(op, arith.MuliOp) and (a == 0 or c == 0):
        return a * d + b * c, b * d
    return None


def slice_(
    b: Builder,
    x: Tensor,
    offsets: Sequence[Size],
    sizes: Sequence[Size],
    strides: Sequence[Size] | None = None,
) -> Tensor:
    """out[i, ...] = x[offset + i * stride, ...]; the slice must be in bounds."""
    strides = strides or [1] * x.rank
    if all(map(same, sizes, x.shape)) and all(isinstance(o, int) and o == 0 for o in offsets):
        return x
    kind = tensor_type(x.dtype, [s if isinstance(s, int) else b.value(s) for s in sizes])
    op = tensor.ExtractSliceOp(x.value, list(offsets), list(sizes), list(strides), kind)
    b.insert(op)
    return Tensor(op.result, x.dtype, tuple(sizes))


def slice_axis(b: Builder, x: Tensor, axis: int, start: Size, size: Size, step: Size = 1) -> Tensor:
    """x[..., start : start + size * step : step, ...] along one axis."""
    offsets: list[Size] = [0] * x.rank
    sizes, strides = list(x.shape), [1] * x.rank
    offsets[axis], sizes[axis], strides[axis] = start, size, step  # type: ignore[call-overload]
    return slice_(b, x, offsets, sizes, strides)


def select(b: Builder, x: Tensor, axis: int, index: Size) -> Tensor:
    """x[..., index, ...] with the dim removed."""
    return squeeze(b, slice_axis(b, x, axis, index, 1), [axis])


def update_slice(
    b: Builder,
    x: Tensor,
    part: Tensor,
    offsets: Sequence[Size],
    strides: Sequence[Size] | None = None,
) -> Tensor:
    """x with x[offset + i * stride, ...] = part[i, ...]."""
    known = [s if isinstance(s, int) else (constant_value(s) or s) for s in part.shape]
    part = b.with_shape(part, known)
    strides = strides or [1] * x.rank
    (at, moving), (sizes, dynamic), (steps, varying) = map(split, (offsets, part.shape, strides))
    op = tensor.InsertSliceOp.build(
        operands=[part.value, x.value, moving, dynamic, varying],
        result_types=[x.value.type],
        properties={
            "static_offsets": DenseArrayBase.from_list(i64, at),
            "static_sizes": DenseArrayBase.from_list(i64, sizes),
            "static_strides": DenseArrayBase.from_list(i64, steps),
        },
    )
    b.insert(op)
    return Tensor(op.result, x.dtype, x.shape)


def pad(
    b: Builder, x: Tensor, low: Sequence[Size], high: Sequence[Size], value: SSAValue | float = 0
) -> Tensor:
    """x with `low` elements of `value` before and `high` after it along each dim, none negative."""
    amounts = [*low, *high]
    if all(isinstance(n, int) and n == 0 for n in amounts):
        return x
    if x.dtype.is_complex:
        return _pad_by_update(b, x, low, high, value)
    shape = [
        b.add(b.add(s, before), after) for s, before, after in zip(x.shape, low, high, strict=True)
    ]
    fill = value if isinstance(value, SSAValue) else b.number(value, x.dtype)
    static = [split(each) for each in (low, high)]
    block = Block(arg_types=[b.value(0).type] * x.rank)
    block.add_op(tensor.YieldOp(fill))
    (static_low, dynamic_low), (static_high, dynamic_high) = static
    inferred = [
        s if all(isinstance(v, int) for v in parts) else b.value(s)
        for s, *parts in zip(shape, x.shape, low, high)
    ]
    op = tensor.PadOp.build(
        operands=[x.value, dynamic_low, dynamic_high],
        result_types=[tensor_type(x.dtype, inferred)],
        properties={
            "static_low": DenseArrayBase.from_list(i64, static_low),
            "static_high": DenseArrayBase.from_list(i64, static_high),
        },
        regions=[Region(block)],
    )
    b.insert(op)
    return b.with_shape(Tensor(op.results[0], x.dtype, tuple(inferred)), shape)


def _pad_by_update(
    b: Builder, x: Tensor, low: Sequence[Size], high: Sequence[Size], value: Any
) -> Tensor:
    shape = [b.add(b.add(s, m), n) for s, m, n in zip(x.shape, low, high, strict=True)]
    return update_slice(b, b.full(value, x.dtype, shape), x, low)


def concatenate(b: Builder, parts: Sequence[Tensor], axis: int) -> Tensor:
    """Concatenates the parts along an axis; all other dims must agree."""
    parts = [p for p in parts if not (isinstance(p.shape[axis], int) and p.shape[axis] == 0)] or [
        parts[0]
    ]
    if len(parts) == 1:
        return parts[0]
    shape = list(parts[0].shape)
    for i in range(len(shape)):
        shape[i] = next((p.shape[i] for p in parts if isinstance(p.shape[i], int)), shape[i])
    total: Size = 0
    for part in parts:
        total = b.add(total, part.shape[axis])
    shape[axis] = total
    values = [
        b.with_shape(p, [*shape[:axis], p.shape[axis], *shape[axis + 1 :]]).value for p in parts
    ]
    kind = tensor_type(parts[0].dtype, shape)
    op = b.emit(tensor.ConcatOp, values, (kind,), {"dim": IntegerAttr(axis, i64)})
    return Tensor(op.results[0], parts[0].dtype, tuple(shape))


def stack(b: Builder, parts: Sequence[Tensor], axis: int) -> Tensor:
    """Joins the parts along a new axis."""
    return concatenate(b, [unsqueeze(b, p, axis) for p in parts], axis)


def flip(b: Builder, x: Tensor, axes: Sequence[int]) -> Tensor:
    """out[..., i, ...] = x[..., n - 1 - i, ...] along each of the axes."""

    def element(s: Any, *at: Any) -> Any:
        last = {a: s.as_index(b.value(b.sub(x.shape[a], 1))) for a in axes}
        return s.extract(x, [last[i] - v if i in axes else v for i, v in enumerate(at)])

    return b.from_function(element, x.shape, x.dtype)


def roll(b: Builder, x: Tensor, shifts: Sequence[Size], axes: Sequence[int]) -> Tensor:
    """
    out[..., (i + shift) mod n, ...] = x[..., i, ...] along each axis

    The last axis is rolled separately: one op rolls all other axes and copies whole rows.
    """
    if any(isinstance(size, int) and size == 0 for size in x.shape):
        return x
    firsts: dict[int, Size] = {}
    for shift, axis in zip(shifts, axes, strict=True):
        moved = b.sub(firsts.get(axis, 0), shift)
        firsts[axis] = _floored_remainder(b, moved, x.shape[axis])
    last = x.rank - 1
    if last in firsts:
        first = firsts.pop(last)
        rest = slice_axis(b, x, last, first, b.sub(x.shape[last], first))
        x = concatenate(b, [rest, slice_axis(b, x, last, 0, first)], last)
    if not firsts:
        return x
    source = x
    ends = {axis: b.sub(x.shape[axis], first) for axis, first in firsts.items()}

    def body(s: Body, *places: Scalar) -> Scalar:
        at = list(places)
        for axis, first in firsts.items():
            start, end = (s.scalar(b.value(v), INDEX) for v in (first, ends[axis]))
            at[axis] = (at[axis] < end).where(at[axis] + start, at[axis] - end)
        return s.extract(source, at)

    return b.from_function(body, x.shape, x.dtype)


def _floored_remainder(b: Builder, value: Size, size: Size) -> Size:
    """value mod size, in 0, ..., size - 1 also for negative values"""
    if isinstance(value, int) and isinstance(size, int):
        return value % size
    pair = [(b.value(v), INDEX) for v in (value, size)]
    return b.compute(lambda m, n: m.mod(n), *pair).value


def diagonal(b: Builder, x: Tensor, offset: int, first: int, second: int, size: Size) -> Tensor:
    """out[..., k] = x[..., k + max(-offset, 0), ..., k + max(offset, 0), ...], for k < size."""
    rest = [i for i in range(x.rank) if i not in (first, second)]

    def element(s: Any, *at: Any) -> Any:
        places = dict(zip(rest, at))
        places[first] = at[-1] + max(-offset, 0)
        places[second] = at[-1] + max(offset, 0)
        return s.extract(x, [places[i] for i in range(x.rank)])

    return b.from_function(element, [*(x.shape[i] for i in rest), size], x.dtype)


def triangle(b: Builder, x: Tensor, offset: Size, upper: bool) -> Tensor:
    """x[..., i, j] where j - i >= offset (upper) or <= offset (lower), else 0."""
    rank = x.rank

    def keep(s: Any, v: Any, *_: Any) -> Any:
        along = s.index(rank - 1) - s.index(rank - 2)
        bound = s.as_index(b.value(offset))
        inside = along >= bound if upper else along <= bound
        return inside.where(v, s.number(0, x.dtype))

    identity = projection(rank, tuple(range(rank)))
    init = b.empty(x.dtype, x.shape)
    return b.structured([x], [init], [identity] * 2, [False] * rank, keep)[0]


def iota(b: Builder, size: Size, dtype: Any = I64) -> Tensor:
    """0, 1, ..., size - 1"""
    return b.from_function(lambda s, i: i.to(dtype), [size], dtype)


def ones_like(b: Builder, x: Tensor) -> Tensor:
    """A bool tensor of true in the shape of x."""
    return b.full(1, BOOL, x.shape)
