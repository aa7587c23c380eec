"""
Shares out the tiles of a contraction that would keep only a part of a GPU busy.

Workgroups that do a tile each run in waves. With a tile for each multiprocessor the GPU is busy;
with one tile more it takes twice as long, and half of the time all but one are idle. Stream-K
(Osama et al., "Stream-K: work-centric parallel decomposition for dense matrix-matrix multiplication
on the GPU", 2023) gives every workgroup an equal share of the steps along K of all tiles, and lets
those that share a tile add up what they have, for which they wait for each other. Kernel IR has no
words for workgroups that wait. So this is the paper's hybrid in kernels that wait by being launched
one after another: whole waves as they were, the tiles of the last one in slices of K, and a sum of
the slices, which is followed by what followed the contraction.

    linalg.generic ins(%a, %b : memref<1536x4096xf16>, ...) outs(%c : memref<1536x1536xf32>)
  =>
    linalg.generic ins(%a[0, 0], %b) outs(%c[0, 0] : memref<1408x1536xf32>)       // 132 tiles
    linalg.generic ins(%a' : memref<128x4x1024xf16>, %b' : memref<4x1024x1536xf16>)
                   outs(%p : memref<4x128x1536xf32>)                              // 48 quarters
    linalg.generic ins(%p) outs(%c[1408, 0] : memref<128x1536xf32>) { addf }      // their sum

Split-K in slices (`irees-split-reductions`) stays the way of a product that has hardly any tiles;
this is for one that has too few, or a few too many. Of all ways to keep some tiles whole and to cut
K of the others into slices the one of the fewest steps is taken. A step is one along K of a tile: a
wave has as many as its tiles or slices have, another launch is LAUNCH of them, and so is what a
workgroup moves meanwhile (a fact of the target) when slices are written and the sum reads them. A
way that does not save an eighth, and a launch more, is none. Slices are fixed and added in their
order, so two runs give the same bits.

Left alone: sums whose order is kept (`reassociate=false`), sizes that are not known, operands that
are windows, views, or computed in the tile. Nothing of this was measured.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

from xdsl.context import Context
from xdsl.dialects import func
from xdsl.dialects.builtin import MemRefType, ModuleOp, NoneAttr
from xdsl.dialects.linalg import ops as linalg
from xdsl.ir import Operation
from xdsl.passes import ModulePass

from irees.analysis.contractions import is_contraction
from irees.analysis.distribution import Group, Loops, classes_of, loops_of
from irees.dialects.flow import ExecutableOp
from irees.dialects.iree_codegen import LoweringConfigAttr
from irees.remarks import remark
from irees.rewrites import may_rewrite
from irees.transforms.codegen.gpu._blocking import Blocking, MatrixBlocking, blocking_of
from irees.transforms.codegen.gpu._wave_parts import Parts, why_no_parts
from irees.transforms.utils.combiners import combiners
from irees.transforms.utils.shapes import element_bytes

LAUNCH = 16
"""Steps of a tile while another kernel is launched, of 0.1 us: what matrix instructions take."""

SLICES = 16
"""The most slices: each is written and read again."""


@dataclass(frozen=True)
class Way:
    """Points of a class that stay in whole tiles, and slices of K for the others."""

    steps: int
    whole: int
    position: int
    slices: int


@dataclass(frozen=True)
class Waves:
    """The tiles of a group, and what a multiprocessor does with them."""

    group: Group
    heavy: int
    blocking: Blocking | MatrixBlocking
    workgroups: int
    launch_bytes: int

    @property
    def _op(self) -> linalg.GenericOp:
        op = self.group.members[self.heavy].op
        assert isinstance(op, linalg.GenericOp)
        return op

    def tiles(self) -> list[tuple[int, int]]:
        """The tile of each class, and how many there are."""
        config = LoweringConfigAttr.on(self._op).ints("workgroup")
        assert config is not None
        found: list[tuple[int, int]] = []
        for group_class, extent in zip(self.group.classes, self.group.extents(), strict=True):
            tile = config[group_class[self.heavy]] or extent
            found.append((tile, -(-extent // tile)))
        return found

    def steps(self, tiles: int, slices: int = 1) -> int:
        """Steps along K until so many tiles are done, each in slices."""
        member = self.group.members[self.heavy]
        pairs = zip(member.sizes, member.kinds, strict=True)
        depth = prod(s for s, k in pairs if k != "parallel") // slices
        waves = -(-tiles * slices // self.workgroups)
        return waves * -(-depth // self.blocking.depth)

    def fold(self, tiles: int, slices: int) -> int:
        """Steps while slices are written, read and added up."""
        size = element_bytes(self._op.outputs[0].type)  # type: ignore[arg-type]
        moved = tiles * self.blocking.rows * self.blocking.columns * size * (2 * slices + 1)
        return -(-moved * LAUNCH // (self.workgroups * self.launch_bytes))

    def best(self) -> Way | None:
        """The way of the fewest steps, or None where the tiles are as well as they are."""
        tiles = self.tiles()
        total = prod(count for _, count in tiles)
        now = self.steps(total)
        least = min(now * 7 // 8, now - LAUNCH)
        best: Way | None = None
        for position, (tile, count) in enumerate(tiles):
            others = total // count
            for whole in range(count):
                rest = (count - whole) * others
                if rest > self.workgroups:
                    continue
                before = self.steps(whole * others) + LAUNCH if whole else 0
                for slices in self._slices():
                    steps = before + LAUNCH + self.steps(rest, slices) + self.fold(rest, slices)
                    if steps <= least and (best is None or steps < best.steps):
                        best = Way(steps, whole * tile, position, slices)
        return best

    def _slices(self) -> Sequence[int]:
        """Into how many slices the innermost reduction can be cut."""
        member = self.group.members[self.heavy]
        size = member.sizes[member.kinds.index("reduction")]
        return [n for n in range(2, SLICES + 1) if size % n == 0 and size // n >= 4 * LAUNCH]


def contraction_of(members: Sequence[Loops]) -> int | None:
    """The one contraction of a group, which has blocks; None where there is none, or another."""
    found = [
        i
        for i, m in enumerate(members)
        if isinstance(m.op, linalg.GenericOp)
        and is_contraction(m.op)
        and LoweringConfigAttr.on(m.op).ints("block") is not None
    ]
    return found[0] if len(found) == 1 else None


def why_not(group: Group, heavy: int) -> str | None:
    """Why a contraction stays as it is, or None."""
    member = group.members[heavy]
    op = member.op
    assert isinstance(op, linalg.GenericOp)
    if any(size < 0 for m in group.members for size in m.sizes):
        return "sizes are not known"
    if combiners(op) is None or member.kinds.count("reduction") != 1:
        return "it has no one reduction that can be cut"
    for value in op.inputs:
        if not isinstance(value.type, MemRefType) or not isinstance(value.type.layout, NoneAttr):
            return "an operand is a view"
    return why_no_parts(group, heavy)


@dataclass(frozen=True)
class GpuSplitLastWavePass(ModulePass):
    """The tiles of a contraction's last wave are cut along K."""

    name = "irees-gpu-split-last-wave"

    workgroups: int = 108
    """How many workgroups keep the whole GPU busy."""
    reassociate: bool = True
    small_tile: int = 32 << 10
    """Bytes of a workgroup that it moves while another kernel would be launched."""

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for executable in [e for e in op.walk() if isinstance(e, ExecutableOp)]:
            for function in [f for f in executable.walk() if isinstance(f, func.FuncOp)]:
                for members in self._groups(function):
                    if not self._split(members):
                        return

    def _groups(self, function: func.FuncOp) -> list[list[Loops]]:
        groups: dict[int, list[Loops]] = {}
        for inner in function.body.block.ops:
            loops, config = loops_of(inner), LoweringConfigAttr.on(inner)
            if loops is not None and (number := config.int("group")) is not None:
                groups.setdefault(number, []).append(loops)
        return list(groups.values())

    def _split(self, members: list[Loops]) -> bool:
        """Splits a group where that is the less; False when no rewrite may be applied any more."""
        heavy = contraction_of(members)
        if heavy is None:
            return True
        group, op = Group(members, classes_of(members) or []), members[heavy].op
        assert isinstance(op, linalg.GenericOp)
        reason = why_not(group, heavy)
        if reason is None and not self.reassociate and not _is_exact(op):
            reason = "strict floating point keeps the order of a sum"
        if reason is not None:
            remark("missed", self.name, op, reason)
            return True
        waves = Waves(group, heavy, blocking_of(op), self.workgroups, self.small_tile)
        way = waves.best()
        if way is None:
            return True
        text = f"{way.whole} points whole, the others in {way.slices} slices: {way.steps} steps"
        if not may_rewrite(self.name, op, text):
            return False
        before = waves.steps(prod(count for _, count in waves.tiles()))
        remark("passed", self.name, op, f"{text}, and {before} in whole tiles")
        parts = Parts(
            group, heavy, way.position, self.reassociate, self.workgroups, self.small_tile
        )
        parts.split(way.whole, way.slices)
        return True


def _is_exact(op: Operation) -> bool:
    kind = op.operands[-1].type
    return isinstance(kind, MemRefType) and str(kind.element_type).startswith("i")
