"""
What the loops of one contraction will be: roles, steps, sizes. Part of `irees-lower-contractions`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import gcd, prod

from xdsl.dialects import arith, memref, vector
from xdsl.dialects.builtin import (
    DYNAMIC_INDEX,
    FloatAttr,
    IndexType,
    IntegerAttr,
    IntegerType,
    MemRefType,
    StridedLayoutAttr,
)
from xdsl.dialects.linalg import ops as linalg
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.ir.affine import AffineBinaryOpExpr, AffineBinaryOpKind

from irees.analysis.contractions import (
    MultiplyAdd,
    packed_columns,
    packed_depth,
    roles,
    vector_side,
)
from irees.analysis.dot_products import DotProduct
from irees.analysis.register_blocking import (
    SLICE,
    STREAMED,
    STREAMS,
    STRIP,
    UNPACKED_ROWS,
    Blocking,
    block_cycles,
    choose_blocking,
    embeds_broadcasts,
)
from irees.dialects.iree_codegen import LoweringConfigAttr
from irees.transforms.utils.lanes import has_lanes, lane_bytes, vector_of
from irees.transforms.utils.shapes import (
    IndexBuilder,
    Size,
    buffer_dim,
    delinearize,
    upper_bound,
)
from irees.transforms.utils.structured import linear_form, loop_sources, maps

WAY = 4096
"""Bytes of one way of the L1 cache: addresses that far apart share a set."""

SHARE = 4
"""Rows of A that one set, of eight ways, is trusted to hold beside B and C."""

DEEP_ROW = 3 << 10
"""Bytes of a row of A, of which a block still stays in the L1 cache: C is then written once."""

NEAR_PANEL = 16 << 10
"""Bytes of a panel that leave room for rows of A in the L1 cache."""

LEAST_SLICE = 256
"""Points of K, for which C is worth to be read and written again."""

JOINED = 0.99
"""Of the time of blocks of rows that run through one loop, for others to find their places by
division."""

POINTERS = 8
"""Rows of A whose addresses stay in registers beside those of B and C."""

LARGE_SLICE = 512 << 10
"""Bytes of A that drive the panels of B out of the L2 cache."""


class Unsuitable(Exception):
    """Why a contraction is left to the vectorizer; a reason for a remark."""


@dataclass
class Operand:
    """A buffer as a flat array: the step of each loop, in elements."""

    flat: SSAValue
    steps: list[Size]

    def at(self, ivs: dict[int, Size], builder: IndexBuilder) -> Size:
        """The address of a point; loops without a value count as 0."""
        total: Size = 0
        for loop, value in ivs.items():
            total = builder.add(total, builder.mul(value, self.steps[loop]))
        return total


@dataclass(frozen=True)
class Rows:
    """
    Rows of C: `count` of them from `first` on, in each of `turns` of the outermost loop of M, the
    first of which is `turn`. One turn where all rows run through their operands as one loop does.
    """

    first: Size
    count: Size
    turn: Size
    turns: Size


@dataclass
class Plan:
    """
    One contraction, ready to be written as loops: C[m, n] += A[m, k] * B[k, n].

    `batch`, `outer_n` and `outer_m` are loops around the blocks; `n`, `m` and the groups of
    `k` each run through their operands as one loop does. So does `m` unless it is all loops of M of
    which there are few in each: a row then finds its place by division.
    """

    op: linalg.GenericOp
    parts: MultiplyAdd
    element: Attribute
    lanes: int
    sizes: list[Size]
    a: Operand
    b: Operand
    c: Operand
    widen_a: tuple[Operation, ...]
    widen_b: tuple[Operation, ...]
    batch: list[int]
    outer_n: list[int]
    n: list[int]
    outer_m: list[int]
    m: list[int]
    outer_k: list[int]
    k: list[list[int]]
    size_m: Size
    size_n: Size
    block: Blocking
    packed: int | None
    """Columns of the panels in which B lies already, or None."""
    panel_step: Size
    vector_loop: int | None
    """The loop from one vector of a panel to the next where a vector is one block of columns of
    a blocked layout; None where they are neighbours."""
    direct: bool
    """B is read where it lies, else it is packed, a slice of K at a time."""
    depth: int | None
    """How deep slices of K are, in points of its outermost group; None for all of K at once."""
    scattered: bool
    """Neighbouring columns are not neighbours in C."""
    strip: int | None
    """Rows of A that go through all panels of a slice of B, which the first such strip packs; turns
    of the outermost loop of M where rows do not run through their operands as one. None where all
    rows go through one panel after the other."""
    crowded: bool
    """Rows of A collide in the cache, or are not what a dot product reads, and are packed too."""
    streamed: bool
    """B is read once, as it lies, a few whole rows at a time."""
    reassociate: bool
    """Products may be added in another order than that of the loops."""
    dot: DotProduct | None
    """The instruction that multiplies narrow elements as they are; None where they are widened."""

    @property
    def group(self) -> int:
        """Points of K in one step of the kernel."""
        return 1 if self.dot is None else self.dot.group

    @property
    def packed_element(self) -> Attribute:
        """The type of elements in panels."""
        return self.element if self.dot is None else self.dot.element

    @property
    def size_k(self) -> int | None:
        """Points of the outermost group of K where they are known, else None."""
        sizes = [self.sizes[x] for x in self.k[0]]
        return prod(sizes) if all(isinstance(s, int) for s in sizes) else None

    @property
    def one_slice(self) -> bool:
        """Whether a block of C is computed at once, all of K in it."""
        if self.outer_k:
            return False
        return self.depth is None or (self.size_k is not None and self.size_k <= self.depth)

    @property
    def adds_later(self) -> bool:
        """Whether a slice of K is summed by itself and C added then, not waited for before."""
        return self.reassociate and not self.one_slice

    @property
    def columns(self) -> int:
        """NR"""
        return self.block.vectors * self.lanes

    @property
    def step_n(self) -> Size:
        """From one column of C to the next of the same vector."""
        return self.c.steps[self.n[-1]]

    def row_step(self, operand: Operand) -> Size:
        """From one row of C to the next, in another operand."""
        return operand.steps[self.m[-1]] if self.m else 0

    def shared_by_rows(self, operand: Operand) -> bool:
        """Whether all rows of C meet the same elements of another operand."""
        return all(isinstance(s := operand.steps[x], int) and s == 0 for x in self.m)

    def row_starts(
        self, operand: Operand, ivs: dict[int, Size], first: Size, rows: int, offset: Size,
        at: IndexBuilder,
    ) -> list[Size]:  # fmt: skip
        """Where each of some rows starts in an operand, `offset` elements further on."""
        if suffix(self.m, [operand], self.sizes) == self.m:
            point = {**ivs, self.m[-1]: first} if self.m else ivs
            start, step = at.add(operand.at(point, at), offset), self.row_step(operand)
            return [at.add(start, at.mul(step, r)) for r in range(rows)]
        points = [delinearize(at.add(first, r), self.m, self.sizes, at) for r in range(rows)]
        return [at.add(operand.at({**ivs, **point}, at), offset) for point in points]

    def place(self, operand: Operand, start: Size, v: int, at: IndexBuilder) -> Size:
        """Where vector `v` lies of a row that starts at `start`."""
        if self.vector_loop is None:
            apart = at.mul(operand.steps[self.n[-1]], self.lanes)
        else:
            apart = operand.steps[self.vector_loop]
        return at.add(start, at.mul(apart, v))

    def column_offset(self, operand: Operand, start: Size, at: IndexBuilder) -> Size:
        """Where column `start`, the first of a vector, lies in an operand that is not packed."""
        if self.vector_loop is None:
            return at.mul(start, operand.steps[self.n[-1]])
        return at.mul(at.floordiv(start, self.lanes), operand.steps[self.vector_loop])

    def first_column(self, base: Size, column: Size, k0: Size, at: IndexBuilder) -> Size:
        """Where B starts at `column` and `k0`, in its panel that starts at `base` if it has any."""
        start = at.add(base, at.mul(k0, self.b.steps[self.k[0][-1]]))
        if self.packed is not None:
            return start
        return at.add(start, self.column_offset(self.b, column, at))


def strides(buffer: SSAValue, builder: IndexBuilder) -> list[Size]:
    """The strides of a buffer in elements."""
    kind = buffer.type
    assert isinstance(kind, MemRefType)
    if isinstance(kind.layout, StridedLayoutAttr):
        known = [getattr(s, "data", None) for s in kind.layout.strides]
    else:
        known = []
        step: int | None = 1
        for size in reversed(kind.get_shape()):
            known.append(step)
            step = None if step is None or size < 0 else step * size
        known.reverse()
    if all(isinstance(s, int) for s in known):
        return list(known)
    metadata = builder.insert(memref.ExtractStridedMetaDataOp(buffer))
    rank = len(known)
    return [
        s if isinstance(s, int) else metadata.results[2 + rank + i] for i, s in enumerate(known)
    ]


def flatten(buffer: SSAValue, builder: IndexBuilder) -> SSAValue:
    """The buffer as memref<?xT>, from its first element on."""
    kind = buffer.type
    assert isinstance(kind, MemRefType)
    metadata = builder.insert(memref.ExtractStridedMetaDataOp(buffer))
    flat = MemRefType(
        kind.element_type, [DYNAMIC_INDEX], StridedLayoutAttr([1], None), kind.memory_space
    )
    size = builder.value((1 << 62) - 1)
    return builder.insert(
        memref.ReinterpretCastOp.from_dynamic(
            metadata.results[0], [metadata.results[1]], [size], [1], flat
        )
    ).results[0]


def suffix(loops: Sequence[int], operands: Sequence[Operand], sizes: Sequence[Size]) -> list[int]:
    """The longest suffix of loops that runs through each operand as one loop would."""
    found = list(loops[-1:])
    for outer in reversed(loops[:-1]):
        inner = found[0]
        size = sizes[inner]
        for operand in operands:
            step, jump = operand.steps[inner], operand.steps[outer]
            if not (isinstance(size, int) and isinstance(step, int) and jump == step * size):
                return found
        found.insert(0, outer)
    return found


def grouped(loops: list[int], operands: list[Operand], sizes: list[Size]) -> list[list[int]]:
    """Loops, outermost first, joined to as few as run through every operand as one."""
    groups: list[list[int]] = []
    rest = list(loops)
    while rest:
        found = suffix(rest, operands, sizes)
        groups.insert(0, found)
        rest = rest[: -len(found)]
    return groups


def sort_by_steps(loops: list[int], operand: Operand) -> None:
    """Sorts loops by falling step, so that neighbours may flatten."""
    steps = {x: operand.steps[x] for x in loops}
    if all(isinstance(s, int) for s in steps.values()):
        loops.sort(key=lambda x: -steps[x])


def make_plan(
    op: linalg.GenericOp,
    parts: MultiplyAdd,
    vector_bytes: int,
    registers: int,
    reassociate: bool,
    at: IndexBuilder,
    beside: Sequence[Operand] = (),
    dot: DotProduct | None = None,
) -> Plan:
    """
    The plan of a contraction; sizes and steps are computed at `at`. Raises Unsuitable.

    Loops that run through C as one do so through the operands `beside` it, too. Products of floats
    are added in the order of the loops unless `reassociate`. With `dot` nothing is widened.
    """
    output = op.outputs[0].type
    assert isinstance(output, MemRefType)
    element = output.element_type
    if not has_lanes(element) or lane_bytes(element) < 4:
        raise Unsuitable(f"no vectors of {element}")
    lanes = vector_bytes // lane_bytes(element)
    indexing = maps(op)
    found = roles(op, parts)
    side = vector_side(op, parts)
    if side is None:
        raise Unsuitable("the output is not contiguous along M or N")
    swapped = side == parts.lhs
    m, n = (found.n, found.m) if swapped else (found.m, found.n)
    first, second = (parts.rhs, parts.lhs) if swapped else (parts.lhs, parts.rhs)
    m, n, k = list(m), list(n), list(found.k)
    if not k:
        raise Unsuitable("no reduction")
    packed = packed_columns(indexing[second])
    group = 1 if dot is None else dot.group
    if packed_depth(indexing[second]) not in (None, group):
        raise Unsuitable("packed for dot products")
    for position in (first, second, len(op.operands) - 1):
        if not isinstance(op.operands[position].type, MemRefType):
            raise Unsuitable("an operand is a scalar")
        if position == second and packed is not None:
            continue
        if any(linear_form(e) is None for e in indexing[position].results):
            raise Unsuitable("an operand is not indexed linearly")
    sizes = _sizes(op, at)
    a, _ = _operand(op, first, sizes, at)
    b, panel_step = _operand(op, second, sizes, at)
    c, _ = _operand(op, len(op.operands) - 1, sizes, at)
    sort_by_steps(m, c)
    flat_n, outer_n, scattered = n, [], True
    if packed is None or c.steps[n[-1]] == 1:
        sort_by_steps(n, c)
        if c.steps[n[-1]] != 1:
            raise Unsuitable("the output is not contiguous")
        flat_n, scattered = suffix(n, [c, *beside], sizes), False
        outer_n = n[: -len(flat_n)]
    if packed is not None and (len(flat_n) != 1 or outer_n or packed % lanes):
        raise Unsuitable("packed for another vector width")
    vector_loop = None
    narrow = lane_bytes(element) if dot is None else dot.bytes
    # Whole blocks only: how many are left of a number that is not known need not be whole panels.
    blocks = sizes[outer_n[-1]] if outer_n else None
    if packed is None and isinstance(blocks, int) and streams(b, flat_n, k, sizes, lanes):
        lanes = sizes[flat_n[0]]
        vector_loop = outer_n.pop()
        flat_n = [vector_loop, *flat_n]
        if dot is not None:
            raise Unsuitable("blocks of columns are not in groups of K")
    flat_m = suffix(m, [a, c, *beside], sizes)
    outer_m = m[: -len(flat_m)] if m else []
    size_n = at.product([sizes[x] for x in flat_n])
    size_m = at.product([sizes[x] for x in flat_m])
    if isinstance(size_n, int) and size_n < lanes // 2:
        raise Unsuitable("too few columns for a vector")
    widen_a, widen_b = (
        (parts.widen_rhs, parts.widen_lhs) if swapped else (parts.widen_lhs, parts.widen_rhs)
    )
    few_rows = isinstance(size_m, int) and size_m <= UNPACKED_ROWS and not outer_m
    in_panels = packed is not None or vector_loop is not None
    contiguous = len(flat_n) == 1 and b.steps[flat_n[0]] == 1 and dot is None
    if few_rows and not in_panels and not contiguous:
        raise Unsuitable("too few rows to pack for")
    direct = few_rows or in_panels
    if reassociate or isinstance(element, IntegerType):
        sort_by_steps(k, b if in_panels else a)
    outer_k: list[int] = []
    if direct:
        groups = grouped(k, [a, b], sizes)
    else:
        groups = [suffix(k, [a], sizes)]
        outer_k = k[: -len(groups[0])]
    step_m = a.steps[flat_m[-1]] if flat_m else 0
    apart = step_m * narrow if isinstance(step_m, int) else 0
    rows, width = (s if isinstance(s, int) else -1 for s in (size_m, size_n))
    chosen = LoweringConfigAttr.on(op).ints("block")
    given = chosen[1] if chosen else packed
    # A dot product reads no unsigned operand from memory.
    embeds = dot is None and embeds_broadcasts(vector_bytes)
    vectors = None if given is None or given % lanes else given // lanes
    block = choose_blocking(rows, width, lanes, registers, vectors, embeds=embeds)
    along_a = suffix(m, [a], sizes) == m
    if outer_m and in_panels and dot is None and min(rows, width) > 0:

        def cycles(height: int, chosen: Blocking) -> float:
            return block_cycles(height, width, lanes, registers, chosen, embeds=embeds)

        turns = [size for x in outer_m if isinstance(size := sizes[x], int)]
        every = rows * prod(turns) if len(turns) == len(outer_m) else 0
        joint = choose_blocking(every, width, lanes, registers, vectors, embeds=embeds)
        fewer = 0 < cycles(every, joint) < JOINED * prod(turns) * cycles(rows, block)
        # Else each row of A needs a register for its address, of which there are some 16.
        if fewer and (along_a or joint.rows <= POINTERS):
            flat_m, outer_m, size_m, rows, block = m, [], every, every, joint
    crowded = (
        len(groups) == 1
        and not outer_m
        and (along_a or flat_m != m)
        and upper_bound(size_m) is not None
        and a.steps[k[-1]] == 1
        and crowds(apart, block.rows)
    )
    known = [sizes[x] for x in groups[-1]] if groups else []
    deep = prod(known) if all(isinstance(s, int) for s in known) else 0
    # Of f64 half as deep: a block of rows has to stay in the L1 cache.
    most = SLICE * 4 // narrow if dot is None else SLICE * group
    room = in_panels or (not direct and upper_bound(size_n) is not None)
    strip = strip_of(rows, block.rows) if room and not outer_m and dot is None else None
    if in_panels and outer_m and dot is None:
        strip = strip_of_turns(rows, [sizes[loop] for loop in outer_m])
    depth: int | None = min(most, -(-deep // group) * group) if deep else most
    whole = strip is not None and not outer_m and 0 < deep * narrow <= DEEP_ROW
    if whole:
        depth = deep
    ungrouped = dot is not None and (a.steps[k[-1]] != 1 or not deep or deep % group != 0)
    if dot is not None and len(groups) > 1:
        raise Unsuitable("K is no plain run of groups")
    movable = not outer_m and upper_bound(size_m) is not None
    if ungrouped and not movable:
        raise Unsuitable("rows are not in groups of K")
    # Turning signs once is cheaper than turning them for each panel of columns.
    copied = ungrouped or (dot is not None and dot.biased and movable)
    if direct and not copied:
        depth = None
        several = rows > block.rows or bool(outer_m)
        # Few rows stay in the L2 cache however deep they are: C is then written once.
        large = deep * max(rows, 0) * narrow > LARGE_SLICE or (several and deep > 2 * most)
        large = large if strip is None or outer_m else deep > most and not whole
        if len(groups) == 1 and deep >= most and (crowded or large):
            depth = most if large or rows < 0 else deep
        elif len(groups) > 1 and several:
            depth = slices_of_panel(groups, sizes, block.vectors * lanes * narrow)
    streamed = direct and not in_panels and dot is None and len(groups) == 1
    streamed = streamed and deep * (upper_bound(size_n) or 0) * narrow >= STREAMED
    if streamed:
        depth, crowded = STREAMS, False
    return Plan(
        op, parts, element, lanes, sizes, a, b, c, widen_a, widen_b,
        list(found.batch), outer_n, flat_n, outer_m, flat_m, outer_k, groups, size_m, size_n,
        block, packed, panel_step, vector_loop, direct, depth, scattered, strip,
        (crowded or copied) and depth is not None, streamed,
        reassociate or isinstance(element, IntegerType), dot,
    )  # fmt: skip


def streams(b: Operand, n: list[int], k: list[int], sizes: list[Size], lanes: int) -> bool:
    """
    Whether B lies block by block of columns, each block as a kernel reads it: [K, one vector].

    Blocks of half a vector are read by narrower vectors; they come from channels of which there
    is no multiple of a whole one.
    """
    if len(n) != 1 or sizes[n[0]] not in (lanes, lanes // 2):
        return False
    return b.steps[n[0]] == 1 and any(b.steps[loop] == sizes[n[0]] for loop in k)


def slices_of_panel(groups: list[list[int]], sizes: list[Size], width: int) -> int | None:
    """
    How deep slices of the outermost group are, of a panel of so many bytes in a step of K. One that
    may stay in the L1 cache for all blocks of rows is cut to that; one that is too wide only where
    it is more than a slice or two, which each block of rows would fetch from afar again. None for
    all of K, or where sizes are not known.
    """
    known = [[n for loop in group if isinstance(n := sizes[loop], int)] for group in groups]
    if list(map(len, known)) != list(map(len, groups)):
        return None
    points, near = prod(map(prod, known)), NEAR_PANEL // width
    most, slices = (near, 1) if near >= LEAST_SLICE else (SLICE, 2)
    return None if points <= slices * most else -(-prod(known[0]) // -(-points // most))


def strip_of(rows: int, block: int) -> int | None:
    """Whole blocks of rows, about STRIP in each strip; None for few, or an unknown number."""
    if rows <= 2 * STRIP:
        return None
    strips = -(-rows // STRIP)
    return -(-rows // (strips * block)) * block


def strip_of_turns(rows: int, outer: list[Size]) -> int | None:
    """Turns of the first of the loops around `rows` of A, with about STRIP rows in each strip."""
    known = [size for size in (rows, *outer) if isinstance(size, int) and size > 0]
    if len(known) < 1 + len(outer) or prod(known) <= 2 * STRIP:
        return None
    turns = max(1, round(STRIP * known[1] / prod(known)))
    return turns if turns < known[1] else None


def crowds(apart: int, rows: int) -> bool:
    """Whether rows this many bytes apart (0 where unknown) meet in few sets of the L1 cache."""
    places = WAY // gcd(WAY, apart)
    return rows / places > SHARE


def _sizes(op: linalg.GenericOp, at: IndexBuilder) -> list[Size]:
    sizes: list[Size] = []
    for source in loop_sources(op):
        if source is None:
            raise Unsuitable("a loop has no bound")
        operand = op.operands[source[0]]
        sizes.append(buffer_dim(operand, source[1], at))
    return sizes


def _operand(
    op: linalg.GenericOp, position: int, sizes: list[Size], at: IndexBuilder
) -> tuple[Operand, Size]:
    """An operand with the steps of its loops, and the step of its panels if it has any."""
    buffer = op.operands[position]
    steps: list[Size] = [0] * len(sizes)
    panel_step: Size = 0
    for expr, stride in zip(maps(op)[position].results, strides(buffer, at), strict=True):
        form = linear_form(expr)
        if form is None:
            # A packed operand: `n floordiv NR` selects the panel, `n mod NR` the column in it.
            if isinstance(expr, AffineBinaryOpExpr) and expr.kind is AffineBinaryOpKind.FloorDiv:
                # In a group of K the elements of all columns lie between two neighbours.
                if panel_step == 0:
                    panel_step = stride
                else:
                    loop, points = expr.lhs.used_dims().pop(), expr.rhs.value
                    assert isinstance(stride, int)
                    steps[loop] = stride // points
            continue
        if form[1]:
            raise Unsuitable("an operand starts at an offset")
        for loop, factor in form[0].items():
            steps[loop] = at.add(steps[loop], at.mul(stride, factor))
    return Operand(flatten(buffer, at), steps), panel_step


def widened(value: SSAValue, casts: tuple[Operation, ...], lanes: int, b: IndexBuilder) -> SSAValue:
    """A scalar or vector of an operand, in the type of the product."""
    for cast in reversed(casts):
        target = cast.results[0].type
        if hasattr(value.type, "get_shape"):
            target = vector_of(target, lanes)
        value = b.insert(
            type(cast).create(
                operands=[value], result_types=[target], properties=dict(cast.properties)
            )
        ).results[0]
    return value


def zero_vector(plan: Plan, at: IndexBuilder) -> SSAValue:
    """Zeros in every lane."""
    kind = plan.element
    attr = (
        IntegerAttr(0, kind) if isinstance(kind, IntegerType | IndexType) else FloatAttr(0.0, kind)
    )
    scalar = at.insert(arith.ConstantOp(attr)).results[0]
    return at.insert(vector.BroadcastOp(scalar, vector_of(kind, plan.lanes))).results[0]
