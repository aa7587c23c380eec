"""Guards for accesses that are not proved in bounds."""

from __future__ import annotations

from xdsl.dialects import arith, memref, scf, vector
from xdsl.dialects.builtin import (
    DYNAMIC_INDEX,
    IntegerAttr,
    MemRefType,
    NoneAttr,
    VectorType,
)
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue
from xdsl.rewriter import InsertPoint, Rewriter

from irees.analysis.accesses.views import beneath
from irees.analysis.accesses.walk import GUARDED
from irees.dialects.nvgpu import DeviceAsyncCopyOp, LdMatrixOp
from irees.dialects.storage import IN_A_ROW, accessed, slice_of
from irees.transforms.utils.accesses import zero
from irees.transforms.utils.shapes import IndexBuilder, Size, buffer_dim, mixed

Place = tuple[SSAValue, list[SSAValue], list[int]]


def place_of(op: Operation) -> Place | None:
    """Returns buffer, indices and lanes per dim of an access; None if it cannot be guarded."""
    buffer = accessed(op)
    if buffer is None or op.name not in IN_A_ROW:
        return None
    indices = list(op.indices)  # type: ignore[attr-defined]
    kind = (op.results[0] if op.results else op.operands[0]).type
    shape = list(kind.get_shape()) if isinstance(kind, VectorType) else []
    return buffer, indices, [1] * (len(indices) - len(shape)) + shape


def fits(index: SSAValue, count: int, size: Size, at: IndexBuilder, *, natural: bool) -> SSAValue:
    """
    Emits `0 <= index` and `index + count <= size`, as one i1.

    `natural` says that the size is at least 0. The sum could wrap; the difference cannot.
    """
    if count == 1 and natural:
        return at.insert(arith.CmpiOp(index, at.value(size), "ult")).results[0]
    last = at.value(at.sub(size, count))
    low = at.insert(arith.CmpiOp(at.value(0), index, "sle"))
    high = at.insert(arith.CmpiOp(index, last, "sle"))
    return at.insert(arith.AndIOp(low, high)).results[0]


def inside_of(
    buffer: SSAValue, indices: list[SSAValue], lanes: list[int], at: IndexBuilder
) -> SSAValue | None:
    """Emits `0 <= i` and `i + lanes <= size` for all dims, as one i1."""
    # A view of an empty buffer may have a negative size.
    natural = slice_of(buffer.owner) is None
    found: SSAValue | None = None
    for dim, (index, count) in enumerate(zip(indices, lanes, strict=True)):
        one = fits(index, count, buffer_dim(buffer, dim, at), at, natural=natural)
        found = one if found is None else at.insert(arith.AndIOp(found, one)).results[0]
    return found


def zeros_of(kind: Attribute) -> list[Operation]:
    """Returns ops that make a zero of a scalar or vector type; the last one has the result."""
    if not isinstance(kind, VectorType):
        return [zero(kind)]
    first = zero(kind.element_type)
    return [first, vector.BroadcastOp(first.results[0], kind)]


def rooted(place: Place, at: IndexBuilder) -> Place:
    """
    Rewrites an access to a slice as one to the sliced buffer.

    The slice itself may be out of bounds if the buffer is smaller than declared.
    """
    buffer, indices, lanes = place
    while (view := slice_of(buffer.owner)) is not None:
        offsets = list(view.offsets)
        counts = [1] * len(offsets)
        for dim, index, count in zip(view.kept, indices, lanes, strict=True):
            offsets[dim] = at.add(offsets[dim], at.mul(index, view.strides[dim]))
            counts[dim] = count
        buffer, lanes = view.source, counts
        indices = [at.value(offset) for offset in offsets]
    return buffer, indices, lanes


def moved(op: Operation, place: Place, root: Place) -> Operation:
    """Moves an access to the root, so that it uses the same indices as its guard."""
    buffer, indices, lanes = root
    if buffer is place[0] or (max(lanes) > 1 and lanes[-1] == 1):
        return op
    before = list(op.operands)[: list(op.operands).index(place[0])]
    new = type(op).create(
        operands=[*before, buffer, *indices],
        result_types=[result.type for result in op.results],
        properties=op.properties,
        attributes=op.attributes,
    )
    new.location = op.location
    Rewriter.replace_op(op, new)
    return new


def flat(place: Place, at: IndexBuilder) -> tuple[Place, SSAValue] | None:
    """
    Rewrites an access to a reinterpreted buffer as one to all elements of it; returns it and its
    guard. The sizes of such a view may be wrong, so they cannot guard an access.

    %f = reinterpret_cast (base of %b) to offset: [%o], sizes: [any], strides: [%s, 1]
    access %f[%i, %j]  =>  access %b[%o + %i * %s + %j], as one dim
    """
    buffer, indices, lanes = place
    cast = buffer.owner
    if not isinstance(cast, memref.ReinterpretCastOp):
        return None
    root = beneath(cast.source)
    kind = cast.result.type
    assert isinstance(kind, MemRefType)
    steps = mixed(cast.static_strides.get_values(), cast.strides)
    if not isinstance(root.type, MemRefType) or not isinstance(root.type.layout, NoneAttr):
        return None
    if max(lanes[:-1], default=1) > 1 or (lanes[-1] > 1 and steps[-1] != 1):
        return None
    (offset,) = mixed(cast.static_offsets.get_values(), cast.offsets)
    count = at.product([buffer_dim(root, d, at) for d in range(root.type.get_num_dims())])
    place_in = offset
    for index, step in reversed(list(zip(indices, steps, strict=True))):
        place_in = at.add(at.mul(index, step), place_in)
    address = at.value(place_in)
    inside = fits(address, lanes[-1], count, at, natural=True)
    if len(indices) > 1:
        space = kind.memory_space
        kind = MemRefType(kind.element_type, [DYNAMIC_INDEX], memory_space=space)
    every = memref.ReinterpretCastOp(
        cast.source,
        [at.value(0)],
        [at.value(count)],
        [],
        [DYNAMIC_INDEX],
        [DYNAMIC_INDEX],
        [1],
        kind,
    )
    return (at.insert(every).results[0], [address], [lanes[-1]]), inside


def guard(op: Operation) -> bool:
    """Puts an access under a guard; returns False if it cannot."""
    place = place_of(op)
    if place is None or not place[1] or GUARDED in op.attributes:
        return False
    at = IndexBuilder(InsertPoint.before(op))
    found = flat(place, at)
    if found is None:
        root = rooted(place, at)
        inside = inside_of(*root, at)
    else:
        root, inside = found
    assert inside is not None
    op = moved(op, place, root)
    at = IndexBuilder(InsertPoint.before(op))
    used = [result for result in op.results if result.uses]
    types = [result.type for result in used]
    then, other = Block(), Block()
    branch = scf.IfOp(inside, types, Region(then), Region(other) if types else Region())
    at.insert(branch)
    for old, new in zip(used, branch.results, strict=True):
        old.replace_all_uses_with(new)
    op.detach()
    then.add_op(op)
    then.add_op(scf.YieldOp(*used))
    if types:
        zeros = [zero for kind in types for zero in zeros_of(kind)]
        other.add_ops([*zeros, scf.YieldOp(zeros[-1].results[0])])
    op.attributes[GUARDED] = IntegerAttr.from_bool(True)
    return True


def guard_copy(copy: DeviceAsyncCopyOp) -> bool:
    """
    Guards an asynchronous copy by its element count: a copy of 0 elements reads nothing.

    copy %s[%i], n, %k  =>  %j = select %inside, %i, 0; copy %s[%j], n, select %inside, %k, 0
    """
    if GUARDED in copy.attributes:
        return False
    at = IndexBuilder(InsertPoint.before(copy))
    count, places = copy.dst_elements.value.data, list(copy.src_indices)
    inside = inside_of(*rooted((copy.src, places, [*[1] * (len(places) - 1), count]), at), at)
    assert inside is not None
    nothing = at.value(0)
    moved = [at.insert(arith.SelectOp(inside, i, nothing)).results[0] for i in places]
    read = copy.src_elements or at.value(count)
    read = at.insert(arith.SelectOp(inside, read, nothing)).results[0]
    new = DeviceAsyncCopyOp(copy.src, moved, copy.dst, list(copy.dst_indices), count, read)
    new.attributes |= copy.attributes | {GUARDED: IntegerAttr.from_bool(True)}
    new.properties |= {k: v for k, v in copy.properties.items() if k == "bypassL1"}
    new.location = copy.location
    Rewriter.replace_op(copy, new)
    return True


def guard_matrix(op: LdMatrixOp) -> bool:
    """
    Clamps the row of an `ldmatrix`. All lanes must execute it, so it cannot be skipped.

    ldmatrix %s[%i]  =>  ldmatrix %s[select %inside, %i, 0]
    """
    if GUARDED in op.attributes:
        return False
    at = IndexBuilder(InsertPoint.before(op))
    kind, places = op.result.type, list(op.indices)
    assert isinstance(kind, VectorType)
    # The elements of a matrix row are spread over four lanes.
    lanes = [*[1] * (len(places) - 1), 4 * kind.get_shape()[-1]]
    inside = inside_of(op.src, places, lanes, at)
    assert inside is not None
    moved = [at.insert(arith.SelectOp(inside, i, at.value(0))).results[0] for i in places]
    op.operands = [op.src, *moved]
    op.attributes[GUARDED] = IntegerAttr.from_bool(True)
    return True


def keep_inside(op: Operation) -> bool:
    """Guards an access; returns False if it cannot."""
    if isinstance(op, DeviceAsyncCopyOp):
        return guard_copy(op)
    if isinstance(op, LdMatrixOp):
        return guard_matrix(op)
    return guard(op)
