"""
Splits a workgroup that reads its tile twice into two stages: a reduction (`sums`), and an
elementwise nest (`points`) that uses the result. Part of `irees-pipeline-workgroups`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

from xdsl.dialects import arith, scf, vector
from xdsl.dialects.builtin import IndexType, MemRefType
from xdsl.ir import Block, Operation, OpResult, SSAValue
from xdsl.traits import is_side_effect_free

from irees.dialects.storage import is_on_stack, is_view, loaded, root, stored
from irees.dialects.upstream.scf import ForallOp
from irees.remarks import remark
from irees.targets.cpu import CPU
from irees.transforms.codegen.cpu.utils.loop_work import vector_work
from irees.transforms.utils.shapes import constant_value, element_bytes

NAME = "irees-pipeline-workgroups"


@dataclass(frozen=True)
class Nest:
    """A perfect loop nest from 0 with static extents; all steps are 1 but the innermost, `step`."""

    loops: tuple[scf.ForOp, ...]
    extents: tuple[int, ...]
    step: int

    @property
    def inner(self) -> Block:
        """The body of the innermost loop."""
        return self.loops[-1].body.block


def nest_of(loop: scf.ForOp) -> Nest | None:
    """Returns the nest that starts at a loop, or None if it branches or an extent is dynamic."""
    loops = [loop]
    while inner := [op for op in loops[-1].body.block.ops if op.regions]:
        if len(inner) > 1 or not isinstance(inner[0], scf.ForOp):
            return None
        loops.append(inner[0])
    extents = [constant_value(each.ub) or 0 for each in loops]
    *outer_steps, step = [constant_value(each.step) for each in loops]
    if any(constant_value(each.lb) != 0 for each in loops) or 0 in extents:
        return None
    if not step or any(each != 1 for each in outer_steps):
        return None
    return Nest(tuple(loops), tuple(extents), step)


def carried(nest: Nest) -> list[int | None] | None:
    """
    Returns, for each result of a nest, its index among the results of the innermost loop, or None
    for its initial value. Returns None if a loop does more than pass on its carried values.
    """
    places: list[int | None] = list(range(len(nest.loops[-1].results)))
    for outer, inner in zip(nest.loops[-2::-1], nest.loops[:0:-1]):
        passed = passed_on(outer, inner)
        if passed is None:
            return None
        found = [None if place is None else places[place] for place in passed]
        # The initial value of every innermost result must come from outside.
        kept = [place for place in found if place is not None]
        if sorted(kept) != sorted(place for place in places if place is not None):
            return None
        places = found
    return places


def passed_on(outer: scf.ForOp, inner: scf.ForOp) -> list[int | None] | None:
    """
    Returns, for each result of a loop, its index among the results of the loop inside it, or None
    for its initial value. Returns None if the loop does more than pass on its carried values.
    """
    *others, terminator = [op for op in outer.body.block.ops if op is not inner]
    if not all(is_side_effect_free(op) for op in others):
        return None
    if any(use.operation is not terminator for result in inner.results for use in result.uses):
        return None
    found: list[int | None] = []
    for mine, value in zip(outer.body.block.args[1:], terminator.operands, strict=True):
        if any(use.operation not in (inner, terminator) for use in mine.uses):
            return None
        if value is mine:
            found.append(None)
        elif (
            isinstance(value, OpResult)
            and value.op is inner
            and inner.iter_args[value.index] is mine
        ):
            found.append(value.index)
        else:
            return None
    return found


def grouped(wide: Sequence[int], narrow: Sequence[int]) -> list[list[int]] | None:
    """Groups the `narrow` extents so that their products are the `wide` ones, or None."""
    groups, at = [], 0
    for extent in wide:
        group: list[int] = []
        while prod(narrow[i] for i in group) < extent and at < len(narrow):
            group.append(at)
            at += 1
        if prod(narrow[i] for i in group) != extent:
            return None
        groups.append(group)
    return groups if all(extent == 1 for extent in narrow[at:]) else None


def is_address(op: Operation, known: set[SSAValue]) -> bool:
    """Whether an op computes an address, a view or an index, from addresses in `known`."""
    if (
        not is_view(op)
        and not isinstance(op, arith.ConstantOp)
        and not (is_side_effect_free(op) and all(isinstance(r.type, IndexType) for r in op.results))
    ):
        return False
    return all(
        o in known or not isinstance(o.owner, Operation) or o.owner.parent is not op.parent
        for o in op.operands
    )


def outer_values(loop: scf.ForOp) -> list[SSAValue]:
    """Returns the op results of the enclosing block that a loop uses, each once."""
    block = loop.parent
    used = (o for op in loop.walk() for o in op.operands)
    return list(
        dict.fromkeys(o for o in used if isinstance(o.owner, Operation) and o.owner.parent is block)
    )


_HARMLESS = (scf.ForOp, scf.YieldOp, vector.ReductionOp)


def is_private(op: Operation, body: Block) -> bool:
    """
    Whether an op and its regions write only buffers of the workgroup, and allocate only static
    ones.
    """
    for each in op.walk():
        if (buffer := stored(each)) is not None:
            place = root(buffer)
            if not isinstance(place.owner, Operation) or place.owner.parent is not body:
                return False
        elif is_on_stack(each):
            if each.operands:
                return False
        elif not (loaded(each) or isinstance(each, _HARMLESS) or is_side_effect_free(each)):
            return False
    return True


@dataclass(frozen=True)
class Stages:
    """The body of a workgroup in order; `points` is the elementwise nest."""

    before: list[Operation]
    sums: Nest
    between: list[Operation]
    points: Nest
    groups: list[list[int]]
    """For each loop of `sums`, the loops of `points` that cover the same extent."""

    @property
    def handed(self) -> list[SSAValue]:
        """Values that `points` uses, without addresses."""
        addresses = {r for op in self.addresses for r in op.results}
        return [v for v in outer_values(self.points.loops[0]) if v not in addresses]

    @property
    def addresses(self) -> list[Operation]:
        """The ops before `points` that compute addresses."""
        known: set[SSAValue] = set()
        found = []
        for op in [*self.before, *self.between]:
            if is_address(op, known):
                known.update(op.results)
                found.append(op)
        return found

    @property
    def buffers(self) -> list[Operation]:
        """The allocations of the workgroup."""
        return [op for op in [*self.before, *self.between] if is_on_stack(op)]


def tile_bytes(sums: Nest) -> int:
    """Returns the bytes of the tile that a reduction reads."""
    loads = [op for op in sums.inner.ops if isinstance(op, vector.LoadOp)]
    return max((element_bytes(op.base.type) for op in loads), default=0) * prod(sums.extents)


def why_not(stages: Stages, registers: int) -> str | None:
    """Returns why the stages of a workgroup cannot run side by side, or None."""
    sums, points = stages.sums, stages.points
    if not stages.groups or sums.step % points.step or points.extents[-1] % sums.step:
        return "the reduction and the elementwise loops step through the tile differently"
    if 4 * len(sums.loops[-1].results) > registers:
        return "the sums hold more than a quarter of the registers"
    if carried(sums) is None:
        return "the loops of the sums do more than sum up"
    body = points.loops[0].parent
    assert body is not None
    if not all(is_private(op, body) for op in (*stages.before, sums.loops[0], *stages.between)):
        return "more than buffers of the workgroup is changed before the points"
    if any(isinstance(value.type, MemRefType) for value in stages.handed):
        return "the points use a buffer of the workgroup"
    return None


def points_of(op: Operation) -> Nest | None:
    """Returns the elementwise nest that an op is, or None if it is short or computes results."""
    nest = nest_of(op) if isinstance(op, scf.ForOp) else None
    if nest is None or any(loop.results for loop in nest.loops):
        return None
    return nest if vector_work(nest.inner.ops) > CPU.bandwidth_bound_ops else None


def stages_of(forall: ForallOp, least: int, registers: int) -> Stages | None:
    """Returns the stages of a workgroup with a tile of at least `least` bytes, or None."""
    ops = list(forall.region.block.ops)[:-1]
    points = points_of(ops[-1]) if ops else None
    if points is None:
        return None
    for place, op in enumerate(ops[:-1]):
        sums = nest_of(op) if isinstance(op, scf.ForOp) and op.results else None
        if sums is None or tile_bytes(sums) < least:
            continue
        groups = grouped(sums.extents, points.extents) or []
        stages = Stages(ops[:place], sums, ops[place + 1 : -1], points, groups)
        reason = why_not(stages, registers)
        if reason is None:
            return stages
        remark("missed", NAME, op, reason)
    return None
