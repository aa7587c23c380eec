"""
Decides how a contraction runs on a CPU, from its sizes and strides, for `irees-lower-contractions`.

    C[m, n] += A[m, k] * B[k, n]

No IR is read or written here: `decide` maps a `Problem` to a `Decision`; `plan.py` of the pass
connects both with the IR. The names are those of BLIS (Van Zee and van de Geijn, 2015): MR x NR of
C are held in registers, KC steps of K are computed before C is stored, and MC rows of A share the
packed panels of one slice of B.

1. `traverse` sorts the loops by stride. Adjacent loops that step through every operand with a
   single stride are collapsed into one; the others run outside.
2. `choose_rows` compares two variants for rows of several loops: one register-blocked loop inside
   the outer loops, or one loop over all rows, whose index is delinearized to find their addresses.
   Rows that map to one set of the L1 cache limit the block: lines that evict each other are read
   once per step of K.
3. `choose_tiling` blocks K for the L1 cache and rows for the L2 cache, and chooses which operands
   are packed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from math import gcd, prod

from irees.analysis.dot_products import DotProduct
from irees.analysis.register_blocking import (
    Blocking,
    block_cycles,
    choose_blocking,
    embeds_broadcasts,
)
from irees.targets.cpu import CPU

Known = int | None
"""A trip count, or a stride in elements; None where it is not known before the program runs."""

Strides = Sequence[Known]
"""The stride of an operand along each loop, in elements."""


class Unsuitable(Exception):
    """Raised for a contraction that is left to the vectorizer; the text is the reason."""


@dataclass(frozen=True)
class Problem:
    """A contraction as numbers: loops by role, sizes, strides, and the target's limits."""

    batch: tuple[int, ...]
    m: tuple[int, ...]
    n: tuple[int, ...]
    k: tuple[int, ...]
    sizes: tuple[Known, ...]
    """The trip count of each loop."""
    limits: tuple[Known, ...]
    """An upper bound of the trip count of each loop."""
    a: tuple[Known, ...]
    b: tuple[Known, ...]
    c: tuple[Known, ...]
    beside: tuple[tuple[Known, ...], ...]
    """Strides of the other operands of the epilogue."""
    element_bytes: int
    """Bytes of an element of C."""
    panel: int | None
    """Columns per panel if B is stored in panels already, else None."""
    columns: int | None
    """Columns of a register block if fixed by the panels of B or by tuning, else None."""
    dot: DotProduct | None
    """The instruction that multiplies narrow elements; None if elements are widened first."""
    reorder: bool
    """The pass may reassociate the sum over K."""
    vector_bytes: int
    registers: int
    """Vector registers of the target."""

    @property
    def group(self) -> int:
        """Steps of K that one instruction multiplies and adds."""
        return 1 if self.dot is None else self.dot.group

    @property
    def packed_bytes(self) -> int:
        """Bytes of an element in a panel."""
        return self.element_bytes if self.dot is None else self.dot.bytes

    @property
    def embeds(self) -> bool:
        """Whether a multiply-add can broadcast an element from memory. A dot product cannot."""
        return self.dot is None and embeds_broadcasts(self.vector_bytes)

    def size(self, loops: Sequence[int]) -> Known:
        """Returns the product of the trip counts of some loops, or None if one is dynamic."""
        known = [n for loop in loops if (n := self.sizes[loop]) is not None]
        return prod(known) if len(known) == len(loops) else None

    def limit(self, loops: Sequence[int]) -> Known:
        """Returns an upper bound of `size`; None if several loops are dynamic or have no bound."""
        if (size := self.size(loops)) is not None:
            return size
        several = [loop for loop in loops if self.sizes[loop] != 1]
        return self.limits[several[0]] if len(several) == 1 else None


@dataclass(frozen=True)
class Traversal:
    """
    Which loops run inside the micro-kernel's blocks and which run around them.

    `batch`, `outer_n`, `outer_k` and `outer_m` run outside. `n` and each group of `k` step through
    their operands like one loop. So does `m`, unless `choose_rows` merged all loops of M: the
    address of a row is then computed by delinearizing its index.
    """

    batch: tuple[int, ...]
    outer_n: tuple[int, ...]
    n: tuple[int, ...]
    outer_m: tuple[int, ...]
    m: tuple[int, ...]
    outer_k: tuple[int, ...]
    k: tuple[tuple[int, ...], ...]
    lanes: int
    """Elements of C in a vector."""
    vector_loop: int | None
    """The loop over the vectors of a panel in a blocked layout; None if consecutive vectors are
    contiguous."""
    scattered: bool
    """Adjacent columns are not contiguous in C."""
    in_place: bool
    """B is read in place; otherwise each slice of it is packed."""


@dataclass(frozen=True)
class Candidate:
    """One blocking of the rows: its register block and its predicted cycles per step of K."""

    name: str
    block: Blocking
    cycles: float
    rejected: str | None = None
    """Why the pass did not choose it; None for the chosen candidate."""

    def __str__(self) -> str:
        block = f"{self.block.rows} rows x {self.block.vectors} vectors"
        said = f"{self.name} in blocks of {block}, {self.cycles:.0f} cycles per step of K"
        return said if self.rejected is None else f"{said}: {self.rejected}"


@dataclass(frozen=True)
class Tiling:
    """Block sizes, in elements of C and steps of K."""

    mr: int
    vectors: int
    """NR in vectors."""
    kc: int | None
    """Steps of the outermost group of K in a slice; None for all of K at once."""
    mc: int | None
    """Rows of A that run through all panels of a slice before the next rows do; iterations of the
    outermost loop of M if that runs outside. None if all rows run through one panel at a time."""


@dataclass(frozen=True)
class Packing:
    """Operands to pack; the others are read in place."""

    panel: int | None
    """Columns per panel if B is stored in panels already, else None."""
    in_place: bool
    """B is read in place; otherwise it is packed slice by slice."""
    a: bool
    """A is packed: a dot product cannot read it in place."""
    streamed: bool
    """B is read once from memory, several whole rows at a time."""


@dataclass(frozen=True)
class Decision:
    """How a contraction runs, and which candidates were considered."""

    loops: Traversal
    tiling: Tiling
    packing: Packing
    candidates: tuple[Candidate, ...]


def decide(problem: Problem) -> Decision:
    """Returns how a contraction runs. Raises Unsuitable if it has no micro-kernel."""
    loops = traverse(problem)
    block, loops, candidates = choose_rows(problem, loops)
    tiling, packing = choose_tiling(problem, loops, block)
    return Decision(loops, tiling, packing, candidates)


# --- loops --------------------------------------------------------------------------------


def traverse(problem: Problem) -> Traversal:
    """Returns which loops run inside blocks. Raises Unsuitable."""
    p = problem
    lanes, vector_loop = _lanes(p), None
    outer_n, n, scattered = _columns(p, lanes)
    if outer_n and in_blocks(p, outer_n[-1], n, lanes):
        if p.dot is not None:
            raise Unsuitable("blocks of columns are not in groups of K")
        lanes, vector_loop = p.sizes[n[0]] or lanes, outer_n[-1]
        outer_n, n = outer_n[:-1], (vector_loop, *n)
    rows = sorted_by_stride(p.m, p.c)
    m = suffix(rows, (p.a, p.c, *p.beside), p.sizes)
    outer_m = rows[: len(rows) - len(m)]
    if _is_at_most(p.size(n), lanes // 2 - 1):
        raise Unsuitable("too few columns for a vector")
    in_panels = p.panel is not None or vector_loop is not None
    most = CPU.direct_rows if p.dot is None and _slides(p, n, lanes) else CPU.unpacked_rows
    few_rows = not outer_m and _is_at_most(p.size(m), most)
    if few_rows and not in_panels and not _reads_columns(p, n, lanes):
        raise Unsuitable("too few rows to pack for")
    in_place = few_rows or in_panels
    outer_k, k = _steps(p, in_panels, in_place)
    return Traversal(
        p.batch, outer_n, n, outer_m, m, outer_k, k, lanes, vector_loop, scattered, in_place
    )


def _reads_columns(p: Problem, n: Sequence[int], lanes: int) -> bool:
    """Whether vectors of columns are loaded from B as it is, and each element once."""
    if len(n) != 1 or p.b[n[0]] != 1 or p.dot is not None:
        return False
    return not _slides(p, n, lanes)


def _slides(p: Problem, n: Sequence[int], lanes: int) -> bool:
    """Whether a window slides along the columns: its steps of K overlap, even if it is dilated."""
    return p.b[n[-1]] == 1 and any(0 < (p.b[loop] or 0) < lanes for loop in p.k)


def _is_at_most(size: Known, most: int) -> bool:
    return size is not None and size <= most


def _steps(
    p: Problem, in_panels: bool, in_place: bool
) -> tuple[tuple[int, ...], tuple[tuple[int, ...], ...]]:
    """Returns the loops of K outside of blocks, and the groups inside."""
    steps = sorted_by_stride(p.k, p.b if in_panels else p.a) if p.reorder else p.k
    if in_place:
        return (), grouped(steps, (p.a, p.b), p.sizes)
    inner = suffix(steps, (p.a,), p.sizes)
    return steps[: len(steps) - len(inner)], (inner,)


def _lanes(p: Problem) -> int:
    """Returns the elements of C in a vector: half of them if B is packed in panels of as many."""
    lanes = p.vector_bytes // p.element_bytes
    return lanes // 2 if p.panel is not None and 2 * p.panel == lanes else lanes


def _columns(p: Problem, lanes: int) -> tuple[tuple[int, ...], tuple[int, ...], bool]:
    """Returns loops of N outside of blocks and inside, and whether columns are scattered in C."""
    outer: tuple[int, ...] = ()
    n, scattered = p.n, True
    if p.panel is None or p.c[n[-1]] == 1:
        every = sorted_by_stride(n, p.c)
        if p.c[every[-1]] != 1:
            raise Unsuitable("the output is not contiguous")
        n, scattered = suffix(every, (p.c, *p.beside), p.sizes), False
        outer = every[: len(every) - len(n)]
    if p.panel is not None and (len(n) != 1 or outer or p.panel % lanes):
        raise Unsuitable("packed for another vector width")
    return outer, n, scattered


def suffix(loops: Sequence[int], operands: Sequence[Strides], sizes: Strides) -> tuple[int, ...]:
    """Returns the longest suffix of loops that steps through each operand with a single stride."""
    found = list(loops[-1:])
    for outer in reversed(loops[:-1]):
        inner = found[0]
        size = sizes[inner]
        for strides in operands:
            stride, jump = strides[inner], strides[outer]
            if size is None or stride is None or jump != stride * size:
                return tuple(found)
        found.insert(0, outer)
    return tuple(found)


def grouped(
    loops: Sequence[int], operands: Sequence[Strides], sizes: Strides
) -> tuple[tuple[int, ...], ...]:
    """Groups loops, outermost first, into as few as step through every operand like one loop."""
    groups: list[tuple[int, ...]] = []
    rest = list(loops)
    while rest:
        found = suffix(rest, operands, sizes)
        groups.insert(0, found)
        rest = rest[: -len(found)]
    return tuple(groups)


def sorted_by_stride(loops: Sequence[int], strides: Strides) -> tuple[int, ...]:
    """Sorts loops by decreasing stride, so that adjacent ones may collapse; unsorted if unknown."""
    known = {loop: s for loop in loops if (s := strides[loop]) is not None}
    if len(known) < len(loops):
        return tuple(loops)
    return tuple(sorted(loops, key=lambda loop: -known[loop]))


def in_blocks(p: Problem, outer: int, n: Sequence[int], lanes: int) -> bool:
    """
    Whether B is stored in blocks of columns that a kernel can read: [K, one vector].

    Blocks of half a vector are read as narrower vectors; they occur if the number of channels is no
    multiple of a whole vector. The number of blocks, loop `outer`'s trip count, must be static:
    a remainder need not be whole panels.
    """
    if p.panel is not None or p.sizes[outer] is None:
        return False
    if len(n) != 1 or p.sizes[n[0]] not in (lanes, lanes // 2):
        return False
    return p.b[n[0]] == 1 and any(p.b[loop] == p.sizes[n[0]] for loop in p.k)


# --- rows ---------------------------------------------------------------------------------


def choose_rows(p: Problem, loops: Traversal) -> tuple[Blocking, Traversal, tuple[Candidate, ...]]:
    """
    Returns the register block, the loops with or without those of M merged, and the candidates.

    Addresses of merged rows need a division, and each row of a block needs an address register.
    """
    rows, width = p.size(loops.m), p.size(loops.n)
    free = partial(
        choose_blocking, columns=_guess(width), lanes=loops.lanes, registers=p.registers,
        vectors=_vectors(p.columns, loops.lanes), embeds=p.embeds,
    )  # fmt: skip

    def cycles(height: int, block: Blocking) -> float:
        return block_cycles(height, width or 0, loops.lanes, p.registers, block, embeds=p.embeds)

    def choose(height: Known) -> Blocking:
        return in_cache_sets(p, loops, free(_guess(height)), height)

    block, every_loop = choose(rows), (*loops.outer_m, *loops.m)
    turns, every = p.size(loops.outer_m), p.size(every_loop)
    in_panels = p.panel is not None or loops.vector_loop is not None
    if not (loops.outer_m and in_panels and p.dot is None and width and rows and turns and every):
        return block, loops, (Candidate("rows of one loop", block, cycles(rows or 0, block)),)
    joint, apart = choose(every), turns * cycles(rows, block)
    together = cycles(every, joint)
    reason = _no_join(p, every_loop, joint, 0 < together < CPU.joined_rows_ratio * apart)
    separate = Candidate("rows of one loop", block, apart, None if reason else "more cycles")
    joined = Candidate("rows of all loops", joint, together, reason)
    if reason is not None:
        return block, loops, (separate, joined)
    return joint, replace(loops, m=every_loop, outer_m=()), (joined, separate)


def in_cache_sets(p: Problem, loops: Traversal, block: Blocking, rows: Known) -> Blocking:
    """
    Returns the block with no more rows than the L1 cache holds, where they map to one of its sets.

    That is so if the stride of rows is a multiple of a large power of two, or is not known.
    """
    stride = p.a[loops.m[-1]] if loops.m else 0
    if stride == 0:
        return block
    apart = 0 if stride is None else stride * p.packed_bytes
    most = CPU.l1_way_bytes // gcd(CPU.l1_way_bytes, apart) * CPU.l1_ways
    if block.rows <= most:
        return block
    return replace(block, rows=most if rows is None else -(-rows // -(-rows // most)))


def _no_join(p: Problem, loops: tuple[int, ...], block: Blocking, faster: bool) -> str | None:
    """Returns why the loops of M are not merged into one of blocks of many rows, or None."""
    if not faster:
        return "blocks of single loops take as few cycles"
    if block.rows > CPU.row_pointers and suffix(loops, (p.a,), p.sizes) != loops:
        return f"{block.rows} rows need as many address registers, {CPU.row_pointers} at most"
    return None


def _vectors(columns: Known, lanes: int) -> int | None:
    """Returns the vectors of a predetermined register block; None if they are not whole."""
    return None if columns is None or columns % lanes else columns // lanes


def _guess(size: Known) -> int:
    """Returns a size as `choose_blocking` takes it: -1 if dynamic."""
    return -1 if size is None else size


# --- slices -------------------------------------------------------------------------------


def choose_tiling(p: Problem, loops: Traversal, block: Blocking) -> tuple[Tiling, Packing]:
    """Returns KC and MC, and which operands are packed. Raises Unsuitable."""
    if p.dot is not None and len(loops.k) > 1:
        raise Unsuitable("K is no plain run of groups")
    deep, most = p.size(loops.k[-1]) or 0, _deepest(p)
    mc = _strip(p, loops, block)
    row = deep * p.packed_bytes
    whole_rows = mc is not None and not loops.outer_m and 0 < row <= CPU.whole_row_bytes
    copied = _copies_groups(p, loops, deep)
    if whole_rows:
        kc: int | None = deep
    else:
        kc = min(most, -(-deep // p.group) * p.group) if deep else most
    if loops.in_place and not copied:
        kc = _slice_in_place(p, loops, block, mc, whole_rows)
    streamed = _streams(p, loops, deep)
    if streamed:
        kc = CPU.streams
    return (
        Tiling(block.rows, block.vectors, kc, mc),
        Packing(p.panel, loops.in_place, copied and kc is not None, streamed),
    )


def _deepest(p: Problem) -> int:
    """Returns the maximum KC. It is half for f64, to keep a block of rows in the L1 cache."""
    return CPU.kc * 4 // p.packed_bytes if p.dot is None else CPU.kc * p.group


def _strip(p: Problem, loops: Traversal, block: Blocking) -> int | None:
    """Returns MC, in rows or in iterations of the outermost loop of M."""
    in_panels = p.panel is not None or loops.vector_loop is not None
    if p.dot is not None:
        return None
    rows = _guess(p.size(loops.m))
    if loops.outer_m:
        outer = [p.sizes[loop] for loop in loops.outer_m]
        return strip_of_turns(rows, outer) if in_panels else None
    room = in_panels or (not loops.in_place and p.limit(loops.n) is not None)
    return strip_of(rows, block.rows) if room else None


def _copies_groups(p: Problem, loops: Traversal, deep: int) -> bool:
    """Whether A is packed for a dot product: K is not contiguous in it, or its signs change."""
    if p.dot is None:
        return False
    movable = not loops.outer_m and p.limit(loops.m) is not None
    ungrouped = p.a[_innermost(loops)] != 1 or not deep or deep % p.group != 0
    if ungrouped and not movable:
        raise Unsuitable("rows are not in groups of K")
    # Packing flips the signs once; the kernel would flip them for each panel of columns.
    return ungrouped or (p.dot.biased and movable)


def _innermost(loops: Traversal) -> int:
    return loops.k[-1][-1]


def _slice_in_place(
    p: Problem,
    loops: Traversal,
    block: Blocking,
    mc: int | None,
    whole_rows: bool,
) -> int | None:
    """
    Returns KC for a B that is read in place; None for all of K.

    Few rows stay in the L2 cache however large K is: C is then written once.
    """
    rows, deep, most = _guess(p.size(loops.m)), p.size(loops.k[-1]) or 0, _deepest(p)
    several = rows > block.rows or bool(loops.outer_m)
    if len(loops.k) > 1:
        width = block.vectors * loops.lanes * p.packed_bytes
        return slices_of_panel(loops.k, p.sizes, width) if several else None
    if mc is None or loops.outer_m:
        evicts = deep * max(rows, 0) * p.packed_bytes > CPU.large_slice_bytes
        large = evicts or (several and deep > 2 * most)
    else:
        large = deep > most and not whole_rows
    return most if large and deep >= most else None


def _streams(p: Problem, loops: Traversal, deep: int) -> bool:
    """Whether few rows of A stream a large B once, in place."""
    in_panels = p.panel is not None or loops.vector_loop is not None
    if not loops.in_place or in_panels or p.dot is not None or len(loops.k) != 1:
        return False
    return deep * (p.limit(loops.n) or 0) * p.packed_bytes >= CPU.streamed_bytes


def slices_of_panel(
    groups: Sequence[Sequence[int]], sizes: Sequence[Known], width: int
) -> int | None:
    """
    Returns KC for a panel of `width` bytes per step of K, in steps of the outermost group.

    A panel that may stay in the L1 cache for all blocks of rows is cut to that size. A wider panel
    is cut only if it exceeds two slices, which every row block would fetch again. None for all of
    K, or if sizes are dynamic.
    """
    known = [[n for loop in group if (n := sizes[loop]) is not None] for group in groups]
    if list(map(len, known)) != list(map(len, groups)):
        return None
    points, near = prod(map(prod, known)), CPU.near_panel_bytes // width
    most, slices = (near, 1) if near >= CPU.least_kc else (CPU.kc, 2)
    return None if points <= slices * most else -(-prod(known[0]) // -(-points // most))


def strip_of(rows: int, block: int) -> int | None:
    """
    Returns MC in whole blocks, about `CPU.mc` rows; None for few rows, or a dynamic number.

    Strips that divide the rows are preferred: a shorter last strip would need code of its own.
    """
    if rows <= 2 * CPU.mc:
        return None
    strips = -(-rows // CPU.mc)
    near = -(-rows // (strips * block))
    equal = [n for n in range(near, near - near // 4 - 1, -1) if rows % (n * block) == 0]
    return (equal[0] if equal else near) * block


def strip_of_turns(rows: int, outer: Sequence[Known]) -> int | None:
    """Returns MC in iterations of the first loop around `rows` of A, about `CPU.mc` rows."""
    known = [size for size in (rows, *outer) if size is not None and size > 0]
    if len(known) < 1 + len(outer) or prod(known) <= 2 * CPU.mc:
        return None
    turns = max(1, round(CPU.mc * known[1] / prod(known)))
    return turns if turns < known[1] else None
