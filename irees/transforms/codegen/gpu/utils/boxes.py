"""
Maps operands of a contraction to TMA boxes (bulk tensor copies). Part of
`irees-gpu-use-bulk-copies` and `irees-gpu-lower-contractions`.

A bulk copy needs a tensor map that the host creates: base address, sizes, and strides, of which the
last is 1 and the others are multiples of 16 bytes. It copies a box at given coordinates; elements
outside the tensor are 0. The tile of an operand must therefore be a box of a buffer that the host
can see, with each loop indexing its own dim.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

from xdsl.dialects import arith, memref
from xdsl.dialects.builtin import MemRefType, NoneAttr
from xdsl.dialects.linalg import ops as linalg
from xdsl.ir import BlockArgument, Operation, SSAValue
from xdsl.ir.affine import AffineMap
from xdsl.rewriter import Rewriter

from irees.analysis.contractions import multiply_add, roles
from irees.dialects import iree_linalg_ext as ext
from irees.dialects.nvgpu import (
    BOX_BYTES,
    LONGEST_BOX,
    MOST_DIMS,
    MBarrierCreateOp,
    MBarrierInitOp,
    MBarrierTryWaitParityOp,
    TensorMapDescriptorType,
    TmaCreateDescriptorOp,
)
from irees.dialects.nvvm import FenceMbarrierInitOp
from irees.dialects.upstream.gpu import (
    AddressSpace,
    AddressSpaceAttr,
    BarrierOp,
    BlockMappingAttr,
)
from irees.transforms.codegen.gpu.utils.blocking import WarpgroupBlocking, sides
from irees.transforms.codegen.gpu.utils.points import alignment, strides_of
from irees.transforms.codegen.gpu.utils.segments import is_mapped, threads
from irees.transforms.utils.shapes import IndexBuilder, Size, kept_dims, mixed
from irees.transforms.utils.structured import linear_form, maps

BULK_COPIES = "bulk_copies"
"""Lowering config entry that enables bulk copies."""

POINTS = 64
"""Elements per tile row of a transposed operand: 128 bytes of 16-bit elements."""

TICKS = 10_000_000
"""Timeout of `mbarrier.try_wait` in nanoseconds, after which a waiting thread retries."""

MOST_BYTES = 1 << 40
"""Exclusive limit of a tensor-map stride, in bytes."""


@dataclass(frozen=True)
class Dim:
    """The access along one dim of a tensor: the sum of the offsets plus the loop index."""

    offsets: tuple[Size, ...]
    loop: int | None


@dataclass(frozen=True)
class Box:
    """The box of one bulk copy; `turned` if its rows are steps of the reduction."""

    tensor: SSAValue
    dims: tuple[Dim, ...]
    shape: tuple[int, ...]
    points: int | None
    """The loop that the copies of a slice advance along, if there is exactly one."""
    copies: int
    turned: bool

    def coordinates(self, where: dict[int, Size], at: IndexBuilder) -> list[SSAValue]:
        """Returns the start coordinates of a box for the given loop indices."""
        found: list[SSAValue] = []
        for dim in self.dims:
            place: Size = 0 if dim.loop is None else where.get(dim.loop, 0)
            for offset in dim.offsets:
                place = at.add(place, offset)
            found.append(at.value(place))
        return found


def workgroup_of(op: Operation) -> Operation | None:
    """Returns the workgroup loop around an op, or None before distribution."""
    found = op.parent_op()
    while found is not None and not is_mapped(found, BlockMappingAttr):
        found = found.parent_op()
    return found


def tensor_map_of(box: Box, at: IndexBuilder) -> SSAValue:
    """Creates the tensor map of an operand, on the host."""
    kind = box.tensor.type
    assert isinstance(kind, MemRefType)
    space = AddressSpaceAttr(AddressSpace.WORKGROUP)
    tile = MemRefType(kind.element_type, box.shape, memory_space=space)
    sizes = [at.value(size) for size in box.shape]
    op = TmaCreateDescriptorOp(box.tensor, sizes, TensorMapDescriptorType.of(tile))
    return at.insert(op).results[0]


def make_barriers(number: int, counts: Sequence[int], at: IndexBuilder) -> list[SSAValue]:
    """
    Makes groups of `number` mbarriers, by one thread before the others: `counts` are the arrivals
    that complete a phase in each group.
    """
    groups = [at.insert(MBarrierCreateOp(number)).results[0] for _ in counts]
    close, _, b = threads(at, 1)
    for slot in range(number):
        for group, count in zip(groups, counts, strict=True):
            b.insert(MBarrierInitOp(group, b.value(slot), b.value(count)))
    b.insert(FenceMbarrierInitOp())
    close()
    at.insert(BarrierOp())
    return groups


def wait_for(barriers: SSAValue, number: Size, phase: Size, at: IndexBuilder) -> None:
    """Waits until a phase of a barrier is complete."""
    parity, zero = at.value(at.rem(phase, 2)), at.value(0)
    odd = at.insert(arith.CmpiOp(parity, zero, "ne")).results[0]
    at.insert(MBarrierTryWaitParityOp(barriers, at.value(number), odd, at.value(TICKS)))


def forget_view(view: SSAValue) -> None:
    """Erases unused views: a tensor map refers to the buffer itself."""
    while isinstance(view.owner, memref.SubviewOp) and not view.uses:
        source = view.owner.source
        Rewriter.erase_op(view.owner)
        view = source


def boxes_of(
    op: linalg.GenericOp, blocking: WarpgroupBlocking, sizes: Sequence[int]
) -> tuple[Box, Box] | str:
    """
    Returns the boxes of the row and column operands, or why an operand has none. `sizes` are the
    trip counts (-1: dynamic).
    """
    parts = multiply_add(op)
    assert parts is not None
    found = roles(op, parts)
    if min(sizes[loop] for loop in found.k) < 0:
        return "the length of the reduction is dynamic"
    boxes: list[Box] = []
    extents = (("rows", blocking.rows), ("columns", blocking.columns))
    for (operand, loops), (name, extent) in zip(sides(op), extents, strict=True):
        finder = BoxFinder(op, operand, sizes, tuple(found.batch))
        box = finder.find(loops, extent, found.k, blocking.depth)
        if isinstance(box, str):
            return f"the operand of the {name} {box}"
        boxes.append(box)
    return boxes[0], boxes[1]


@dataclass(frozen=True)
class BoxFinder:
    """Finds the box of one operand; `sizes` are the trip counts (-1: dynamic)."""

    op: linalg.GenericOp | ext.AttentionOp
    operand: int
    sizes: Sequence[int]
    batch: tuple[int, ...]

    def find(
        self, loops: Sequence[int], extent: int, depth: Sequence[int], steps: int
    ) -> Box | str:
        """Returns the box of `extent` rows (columns) by `steps` of the reduction, or why not."""
        place = self._place()
        if isinstance(place, str):
            return place
        tensor, dims = place
        if (reason := _why_no_tensor(tensor)) is not None:
            return reason
        live = [loop for loop in loops if self.sizes[loop] != 1]
        steps_of = [loop for loop in depth if self.sizes[loop] != 1]
        counted = [dim.loop for dim in dims if dim.loop is not None]
        known = {*live, *steps_of, *self.batch}
        if len(set(counted)) < len(counted) or not {*live, *steps_of} <= set(counted) <= known:
            return "is not a box: a loop indexes several dims"
        if len(steps_of) != 1:
            return "is reduced along several dims"
        if not self._ends(tensor, dims, steps_of[0], steps):
            return "extends past the end of the reduction"
        last = dims[-1].loop
        turned = last in live
        if not turned and last != steps_of[0]:
            return "is not contiguous along a row, column or reduction loop"
        if len(live) > 1 and (turned or not self._is_whole(live, extent, counted)):
            return "has several loops in a tile"
        spans = {live[0]: extent} if len(live) == 1 else {loop: self.sizes[loop] for loop in live}
        if turned:
            spans = {live[0]: POINTS}
        spans[steps_of[0]] = steps
        shape = tuple(1 if dim.loop is None else spans.get(dim.loop, 1) for dim in dims)
        if max(shape) > LONGEST_BOX:
            return f"needs boxes of more than {LONGEST_BOX} elements along a dim"
        points = live[0] if len(live) == 1 else None
        return Box(tensor, dims, shape, points, extent // POINTS if turned else 1, turned)

    def _place(self) -> tuple[SSAValue, tuple[Dim, ...]] | str:
        """Returns the buffer outside the workgroup and the access to its dims, or why not."""
        dims: list[Dim] = []
        for expr in _maps(self.op)[self.operand].results:
            form = linear_form(expr)
            if form is None:
                return "is not indexed linearly"
            terms = {x: f for x, f in form[0].items() if f and self.sizes[x] != 1}
            if len(terms) > 1 or any(factor != 1 for factor in terms.values()):
                return "is a window"
            dims.append(Dim((form[1],), next(iter(terms), None)))
        value, workgroup = self.op.operands[self.operand], workgroup_of(self.op)
        while _is_inside(value, workgroup):
            view = value.owner
            if not isinstance(view, memref.SubviewOp):
                return "is computed by the workgroup"
            if any(step != 1 for step in view.static_strides.get_values()):
                return "is a strided slice"
            assert isinstance(value.type, MemRefType)
            offsets = mixed(view.static_offsets.get_values(), view.offsets)
            sizes = mixed(view.static_sizes.get_values(), view.sizes)
            outer = [Dim((offset,), None) for offset in offsets]
            for dim, axis in zip(dims, kept_dims(sizes, value.type.get_shape()), strict=True):
                outer[axis] = Dim((*dim.offsets, offsets[axis]), dim.loop)
            dims, value = outer, view.source
        if workgroup is not None and not _is_only_read(value, workgroup):
            return "is written by the workgroup"
        return value, tuple(dims)

    def _ends(self, tensor: SSAValue, dims: Sequence[Dim], loop: int, steps: int) -> bool:
        """Whether elements past the end of the reduction read as 0 or are never copied."""
        if self.sizes[loop] % steps == 0:
            return True
        assert isinstance(tensor.type, MemRefType)
        (axis,) = [number for number, dim in enumerate(dims) if dim.loop == loop]
        from_zero = all(offset == 0 for offset in dims[axis].offsets if isinstance(offset, int))
        static = all(isinstance(offset, int) for offset in dims[axis].offsets)
        return static and from_zero and tensor.type.get_shape()[axis] == self.sizes[loop]

    def _is_whole(self, live: Sequence[int], extent: int, counted: Sequence[int | None]) -> bool:
        """Whether a tile over several loops is one box, with dims in loop order."""
        sizes = [self.sizes[loop] for loop in live]
        order = [counted.index(loop) for loop in live]
        return min(sizes) > 0 and prod(sizes) <= extent and order == sorted(order)


def _maps(op: linalg.GenericOp | ext.AttentionOp) -> list[AffineMap]:
    if isinstance(op, linalg.GenericOp):
        return maps(op)
    return [attr.data for attr in op.indexing_maps]


def _is_inside(value: SSAValue, workgroup: Operation | None) -> bool:
    owner = value.owner
    return workgroup is not None and isinstance(owner, Operation) and workgroup.is_ancestor(owner)


def _is_only_read(value: SSAValue, workgroup: Operation) -> bool:
    """Whether a workgroup never writes a buffer: bulk copies are not ordered after its writes."""
    for use in value.uses:
        user = use.operation
        if not workgroup.is_ancestor(user):
            continue
        if isinstance(user, memref.SubviewOp):
            if not _is_only_read(user.result, workgroup):
                return False
        elif isinstance(user, linalg.GenericOp | ext.AttentionOp):
            outputs = 1 if isinstance(user, ext.AttentionOp) else len(user.outputs)
            if use.index >= len(user.operands) - outputs:
                return False
        elif user.name not in ("memref.dim", "memref.load", "vector.load"):
            return False
    return True


def _why_no_tensor(value: SSAValue) -> str | None:
    """Returns why a tensor map cannot describe a buffer, or None."""
    kind = value.type
    assert isinstance(kind, MemRefType)
    size = getattr(kind.element_type, "bitwidth", 0) // 8
    shape, unit = kind.get_shape(), BOX_BYTES // max(1, size)
    if size != 2:
        return f"has elements of type {kind.element_type}"
    if not 1 <= len(shape) <= MOST_DIMS:
        return f"has {len(shape)} dims; the limit is {MOST_DIMS}"
    dense = isinstance(kind.layout, NoneAttr)
    if dense and len(shape) > 1 and (shape[-1] < 0 or shape[-1] % unit):
        return f"has rows that are not multiples of {BOX_BYTES} bytes"
    strides = strides_of(kind)
    if strides is None and not dense:
        return "has dynamic strides"
    *outer, inner = strides or [1]
    if inner != 1 or any(s % unit or s * size >= MOST_BYTES for s in outer):
        return f"has strides that are not multiples of {BOX_BYTES} bytes"
    if max(shape) >= 1 << 31:
        return "has a dim of 2^31 elements or more"
    return (
        None if _is_aligned(value, unit) else f"does not start at a multiple of {BOX_BYTES} bytes"
    )


def _is_aligned(value: SSAValue, unit: int) -> bool:
    """Whether the start of a buffer is known to be aligned to `unit` elements."""
    op = value.owner
    if isinstance(op, memref.SubviewOp):
        return alignment(value) % unit == 0 and _is_aligned(op.source, unit)
    if isinstance(op, memref.ReinterpretCastOp):
        return list(op.static_offsets.get_values()) == [0] and _is_aligned(op.source, unit)
    return isinstance(value, BlockArgument) or isinstance(op, memref.AllocOp)
