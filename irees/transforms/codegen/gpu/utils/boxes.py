"""
Maps operands of a contraction to TMA boxes (bulk tensor copies). Part of
`irees-gpu-use-bulk-copies` and `irees-gpu-lower-warpgroup-contractions`.

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

from irees.analysis.affine_steps import linear_form
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
from irees.dialects.storage import Slice, is_allocation, is_dim, is_view, loaded, slice_of
from irees.dialects.upstream.gpu import (
    AddressSpace,
    AddressSpaceAttr,
    BarrierOp,
    BlockMappingAttr,
)
from irees.transforms.codegen.gpu.utils.blocking import WarpgroupBlocking, sides
from irees.transforms.codegen.gpu.utils.points import alignment, strides_of
from irees.transforms.codegen.gpu.utils.segments import is_mapped, threads
from irees.transforms.utils.shapes import IndexBuilder, Size
from irees.transforms.utils.structured import maps

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
class Access:
    """The access of an operand to a buffer outside the workgroup."""

    tensor: SSAValue
    dims: tuple[Dim, ...]

    @property
    def loops(self) -> list[int]:
        """The loops that index the dims, in the order of the dims."""
        return [dim.loop for dim in self.dims if dim.loop is not None]


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
    while is_view(view.owner) and not view.uses:
        source = view.owner.operands[0]
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
        access = self._access()
        if isinstance(access, str):
            return access
        live = [loop for loop in loops if self.sizes[loop] != 1]
        reduced = [loop for loop in depth if self.sizes[loop] != 1]
        reason = _why_no_tensor(access.tensor) or self._why_no_box(access, live, reduced)
        if reason is not None:
            return reason
        if not self._ends(access, reduced[0], steps):
            return "extends past the end of the reduction"
        spans = self._spans(access, live, extent, reduced[0])
        if isinstance(spans, str):
            return spans
        spans[reduced[0]] = steps
        shape = tuple(1 if dim.loop is None else spans.get(dim.loop, 1) for dim in access.dims)
        if max(shape) > LONGEST_BOX:
            return f"needs boxes of more than {LONGEST_BOX} elements along a dim"
        turned = access.dims[-1].loop in live
        points = live[0] if len(live) == 1 else None
        copies = extent // POINTS if turned else 1
        return Box(access.tensor, access.dims, shape, points, copies, turned)

    def _why_no_box(
        self, access: Access, live: Sequence[int], reduced: Sequence[int]
    ) -> str | None:
        """Returns why the loops of rows (columns) and of the reduction form no box, or None."""
        counted, wanted = set(access.loops), {*live, *reduced}
        alone = len(counted) == len(access.loops)
        if not alone or not wanted <= counted <= wanted | set(self.batch):
            return "is not a box: a loop indexes several dims"
        return "is reduced along several dims" if len(reduced) != 1 else None

    def _spans(
        self, access: Access, live: Sequence[int], extent: int, reduced: int
    ) -> dict[int, int] | str:
        """Returns the elements of a box along each loop of rows (columns), or why it is none."""
        last = access.dims[-1].loop
        if last not in live and last != reduced:
            return "is not contiguous along a row, column or reduction loop"
        if len(live) == 1:
            return {live[0]: POINTS if last in live else extent}
        if last in live or (live and not self._is_whole(live, extent, access.loops)):
            return "has several loops in a tile"
        return {loop: self.sizes[loop] for loop in live}

    def _access(self) -> Access | str:
        """Returns the access to the buffer outside the workgroup, or why there is none."""
        dims = self._indexed_dims()
        if isinstance(dims, str):
            return dims
        value, workgroup = self.op.operands[self.operand], workgroup_of(self.op)
        while _is_inside(value, workgroup):
            view = slice_of(value.owner)
            if view is None:
                return "is computed by the workgroup"
            if any(step != 1 for step in view.strides):
                return "is a strided slice"
            dims, value = _dims_of_source(view, dims), view.source
        if workgroup is not None and not _is_only_read(value, workgroup):
            return "is written by the workgroup"
        return Access(value, tuple(dims))

    def _indexed_dims(self) -> list[Dim] | str:
        """Returns the access to each dim of the operand, or why one is no plain loop."""
        dims: list[Dim] = []
        for expr in _maps(self.op)[self.operand].results:
            form = linear_form(expr)
            if form is None:
                return "is not indexed linearly"
            terms = {x: f for x, f in form[0].items() if f and self.sizes[x] != 1}
            if len(terms) > 1 or any(factor != 1 for factor in terms.values()):
                return "is a window"
            dims.append(Dim((form[1],), next(iter(terms), None)))
        return dims

    def _ends(self, access: Access, loop: int, steps: int) -> bool:
        """Whether elements past the end of the reduction read as 0 or are never copied."""
        if self.sizes[loop] % steps == 0:
            return True
        assert isinstance(access.tensor.type, MemRefType)
        (axis,) = [number for number, dim in enumerate(access.dims) if dim.loop == loop]
        from_zero = all(isinstance(n, int) and n == 0 for n in access.dims[axis].offsets)
        return from_zero and access.tensor.type.get_shape()[axis] == self.sizes[loop]

    def _is_whole(self, live: Sequence[int], extent: int, counted: Sequence[int]) -> bool:
        """Whether a tile over several loops is one box, with dims in loop order."""
        sizes = [self.sizes[loop] for loop in live]
        order = [counted.index(loop) for loop in live]
        return min(sizes) > 0 and prod(sizes) <= extent and order == sorted(order)


def _dims_of_source(view: Slice, dims: Sequence[Dim]) -> list[Dim]:
    """Returns the access to each dim of the source of a view, given that to the view."""
    outer = [Dim((offset,), None) for offset in view.offsets]
    for dim, axis in zip(dims, view.kept, strict=True):
        outer[axis] = Dim((*dim.offsets, view.offsets[axis]), dim.loop)
    return outer


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
        if is_view(user):
            if not _is_only_read(user.results[0], workgroup):
                return False
        elif (outputs := getattr(user, "outputs", None)) is not None:
            if use.index >= len(user.operands) - len(outputs):
                return False
        elif not is_dim(user) and loaded(user) is not value:
            return False
    return True


def _why_no_tensor(value: SSAValue) -> str | None:
    """Returns why a tensor map cannot describe a buffer, or None."""
    kind = value.type
    assert isinstance(kind, MemRefType)
    size, shape = getattr(kind.element_type, "bitwidth", 0) // 8, kind.get_shape()
    if size != 2:
        return f"has elements of type {kind.element_type}"
    if not 1 <= len(shape) <= MOST_DIMS:
        return f"has {len(shape)} dims; the limit is {MOST_DIMS}"
    if (reason := _why_no_strides(kind, size)) is not None:
        return reason
    if max(shape) >= 1 << 31:
        return "has a dim of 2^31 elements or more"
    if not _is_aligned(value, BOX_BYTES // size):
        return f"does not start at a multiple of {BOX_BYTES} bytes"
    return None


def _why_no_strides(kind: MemRefType, size: int) -> str | None:
    """Returns why a tensor map cannot have the strides of a buffer of `size`-byte elements."""
    shape, unit, strides = kind.get_shape(), BOX_BYTES // size, strides_of(kind)
    if isinstance(kind.layout, NoneAttr):
        if len(shape) > 1 and (shape[-1] < 0 or shape[-1] % unit):
            return f"has rows that are not multiples of {BOX_BYTES} bytes"
    elif strides is None:
        return "has dynamic strides"
    *outer, inner = strides or [1]
    if inner != 1 or any(s % unit or s * size >= MOST_BYTES for s in outer):
        return f"has strides that are not multiples of {BOX_BYTES} bytes"
    return None


def _is_aligned(value: SSAValue, unit: int) -> bool:
    """Whether the start of a buffer is known to be aligned to `unit` elements."""
    op = value.owner
    if (view := slice_of(op)) is not None:
        return alignment(value) % unit == 0 and _is_aligned(view.source, unit)
    if isinstance(op, memref.ReinterpretCastOp):
        return list(op.static_offsets.get_values()) == [0] and _is_aligned(op.source, unit)
    return isinstance(value, BlockArgument) or is_allocation(op)
