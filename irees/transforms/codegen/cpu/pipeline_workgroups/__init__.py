"""
Sums up the next tile while the points of this one are computed.

Some tiles are worked on twice, and are too large for the first level of the cache: a group of a
norm is summed up, and then each of its points is computed from the sums and from itself. The sums
wait for memory and use the adders of a processor; the points (a SiLU: an exponential and a
quotient) use its multipliers, and memory is idle. One after the other, each leaves to the other
what it does not use. So a workgroup takes several tiles in a row, and while it computes the points
of one, it sums up the next: the loop of the sums becomes a part of the loop of the points.

    scf.forall (%w) in (32) {
      %sum = scf.for %j to 65536 iter_args(%s) { %x = vector.load %in[%w, %j] ... }
      %mean = arith.divf %sum, %n
      scf.for %i to 256 { scf.for %k to 256 { ... vector.store %y, %out[%w, %i, %k] } }
    }
  =>
    scf.forall (%t) in (8) {
      %sum = scf.for ...                                // of tile 4 * %t
      %mean = arith.divf %sum, %n
      %last = scf.for %w = 4 * %t to 4 * %t + 3 iter_args(%m = %mean) {
        %next = scf.for %i to 256 iter_args(%s) { scf.for %k to 256 iter_args(%s) {
          ... vector.store %y, %out[%w, %i, %k]
          %x = vector.load %in[%w + 1, %i * 256 + %k] ... } }
        scf.yield %next / %n
      }
      scf.for %i ... { ... %out[4 * %t + 3, %i, %k] ... }
    }

Points and sums go through a tile in the same order, so each sum is what it was bit for bit, and
workgroups do not depend on each other, so the next one may begin early. What sums hand to points
(values that are no addresses) is carried from turn to turn.

Left alone are tiles smaller than `tile_bytes`, which the cache holds (`irees-prefetch-next-tiles`
asks for the next); points that memory holds up as it is; kernels with fewer than two workgroups for
each of `shares`; sums that hold more than a quarter of the vector `registers`, which points need
(1.12 of the time for eight of the sixteen of AVX2, 0.87 for four); loops that do not go through the
tile alike, and points that use a buffer of the workgroup. After Lam, "Software Pipelining: An
Effective Scheduling Technique for VLIW Machines" (1988), over workgroups instead of the turns of a
loop; `group_norm_silu` takes 0.89 of the time on one thread of a Zen 4.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

from xdsl.context import Context
from xdsl.dialects import func, scf
from xdsl.dialects.builtin import IndexType, ModuleOp
from xdsl.ir import Block, Operation, Region, SSAValue
from xdsl.passes import ModulePass
from xdsl.rewriter import InsertPoint, Rewriter

from irees.dialects.irees_target import target_of
from irees.dialects.upstream.scf import ForallOp
from irees.remarks import remark
from irees.rewrites import may_rewrite
from irees.targets.cpu import CPU
from irees.transforms.codegen.cpu.pipeline_workgroups.stages import (
    NAME,
    Nest,
    Stages,
    carried,
    stages_of,
)
from irees.transforms.utils.shapes import IndexBuilder

Values = dict[SSAValue, SSAValue]
"""What stands for a value in a copy."""


def copy(ops: Sequence[Operation], at: IndexBuilder, values: Values) -> None:
    """Copies of ops, with values for those of `values`, which learns what stands for their own."""
    for op in ops:
        at.insert(op.clone(value_mapper=values))


def sums_beside_points(
    stages: Stages, at: IndexBuilder, points: Values, sums: Values
) -> list[SSAValue]:
    """
    for %i, %k { p(%i, %k) }; for %j { s(%j) }  =>  for %i, %k { p(%i, %k); s(%i * |k| + %k) }

    Returns what the innermost loop of the sums would.
    """
    first = [sums.get(v, v) for v in stages.sums.loops[0].iter_args]
    places = carried(stages.sums) or []
    inits = {place: first[number] for number, place in enumerate(places) if place is not None}
    carry = [inits[place] for place in range(len(inits))]
    return _beside(stages, at, points, sums, carry, [])


def _beside(
    stages: Stages,
    at: IndexBuilder,
    points: Values,
    sums: Values,
    carry: list[SSAValue],
    counters: list[SSAValue],
) -> list[SSAValue]:
    depth, nest = len(counters), stages.points
    loop = nest.loops[depth]
    innermost = depth == len(nest.loops) - 1
    rows = _rows(stages, at, counters) if innermost else []
    step = stages.sums.step if innermost else 1
    block = Block(arg_types=[IndexType(), *(value.type for value in carry)])
    bounds = (at.value(0), at.value(nest.extents[depth]), at.value(step))
    new = scf.ForOp(*bounds, carry, Region(block))
    inside = IndexBuilder(InsertPoint.at_end(block))
    counter, carry = block.args[0], list(block.args[1:])
    ops = list(loop.body.block.ops)[:-1]
    if innermost:
        for turn in range(0, step, nest.step):
            points[loop.body.block.args[0]] = inside.value(inside.add(counter, turn))
            copy(ops, inside, points)
        carry = _summed(stages.sums, inside, sums, carry, [*rows, counter])
    else:
        points[loop.body.block.args[0]] = counter
        for op in ops:
            if op is nest.loops[depth + 1]:
                carry = _beside(stages, inside, points, sums, carry, [*counters, counter])
            else:
                copy([op], inside, points)
    inside.insert(scf.YieldOp(*carry))
    return list(at.insert(new).results)


def _rows(stages: Stages, at: IndexBuilder, counters: list[SSAValue]) -> list[SSAValue]:
    """The counters of the loops of the sums, of the last one without that of the last loop."""
    rows: list[SSAValue] = []
    for group in stages.groups:
        row: int | SSAValue = 0
        for place in group:
            row = at.mul(row, stages.points.extents[place])
            row = at.add(row, counters[place]) if place < len(counters) else row
        rows.append(at.value(row))
    return rows


def _summed(
    sums: Nest, at: IndexBuilder, values: Values, carry: list[SSAValue], counters: list[SSAValue]
) -> list[SSAValue]:
    """One turn of the sums; the last two counters are parts of one."""
    *outer, row, column = counters
    for loop, counter in zip(sums.loops, [*outer, at.value(at.add(row, column))], strict=True):
        block = loop.body.block
        values[block.args[0]] = counter
        if block is not sums.inner:
            copy([op for op in list(block.ops)[:-1] if not op.regions], at, values)
    values.update(zip(sums.inner.args[1:], carry, strict=True))
    *ops, terminator = sums.inner.ops
    copy(ops, at, values)
    return [values.get(value, value) for value in terminator.operands]


def finish(stages: Stages, at: IndexBuilder, values: Values, inner: list[SSAValue]) -> None:
    """What comes between sums and points, given the sums of the innermost loop."""
    first = stages.sums.loops[0]
    for number, place in enumerate(carried(stages.sums) or []):
        initial = first.iter_args[number]
        values[first.results[number]] = (
            values.get(initial, initial) if place is None else inner[place]
        )
    copy([op for op in stages.between if op not in stages.buffers], at, values)


def pipeline(forall: ForallOp, stages: Stages, together: int) -> None:
    """forall %w { s(%w); p(%w) }  =>  forall %t { s(%w0); for %w { p(%w); s(%w + 1) }; p(%w1) }"""
    body = forall.region.block
    tile = body.args[-1]
    before = [op for op in stages.before if op not in stages.buffers]
    handed, first = stages.handed, stages.points.loops[0]
    lower, upper, step = forall.bounds()
    assert isinstance(upper[-1], int)
    upper[-1] //= together
    block = Block(arg_types=[IndexType()] * len(body.args))
    at = IndexBuilder(InsertPoint.at_end(block))
    shared: Values = dict(zip(body.args, block.args, strict=True))
    copy(stages.buffers, at, shared)
    begin = at.value(at.mul(block.args[-1], together))
    end = at.value(at.add(begin, together - 1))

    values = {**shared, tile: begin}
    copy([*before, stages.sums.loops[0]], at, values)
    copy([op for op in stages.between if op not in stages.buffers], at, values)
    start = [values[value] for value in handed]
    turn = Block(arg_types=[IndexType(), *(value.type for value in start)])
    loop = scf.ForOp(begin, end, at.value(1), start, Region(turn))
    inside = IndexBuilder(InsertPoint.at_end(turn))
    points = {**shared, tile: turn.args[0], **dict(zip(handed, turn.args[1:], strict=True))}
    copy(stages.addresses, inside, points)
    sums = {**shared, tile: inside.value(inside.add(turn.args[0], 1))}
    copy(before, inside, sums)
    finish(stages, inside, sums, sums_beside_points(stages, inside, points, sums))
    inside.insert(scf.YieldOp(*(sums[value] for value in handed)))
    at.insert(loop)

    values = {**shared, tile: end, **dict(zip(handed, loop.results, strict=True))}
    copy(stages.addresses, at, values)
    copy([first], at, values)
    at.insert(body.last_op.clone())  # type: ignore[union-attr]
    new = ForallOp.over(lower, upper, step, [], Region(block), forall.mapping)
    Rewriter.replace_op(forall, new)


def together_of(forall: ForallOp, shares: int) -> int:
    """How many tiles one workgroup takes so that there are as many workgroups as shares."""
    lower, upper, step = forall.bounds()
    counts = [n for n in upper if isinstance(n, int)]
    plain = len(counts) == len(upper) and not any(lower) and all(each == 1 for each in step)
    if not plain or forall.outputs or not counts:
        return 1
    last, others = counts[-1], prod(counts[:-1])
    fitting = [n for n in range(1, last + 1) if last % n == 0 and others * (last // n) >= shares]
    return max(fitting, default=1)


@dataclass(frozen=True)
class PipelineWorkgroupsPass(ModulePass):
    """Workgroups that go through a large tile twice begin with the next one in the second turn."""

    name = "irees-pipeline-workgroups"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        target = target_of(op)
        for function in [f for f in op.walk() if isinstance(f, func.FuncOp)]:
            if function.is_declaration:
                continue
            for forall in [o for o in function.body.block.ops if isinstance(o, ForallOp)]:
                stages = stages_of(forall, target.l1_bytes, target.vector_registers)
                if stages is None:
                    continue
                together = together_of(forall, CPU.runs_per_thread * target.threads)
                if together == 1:
                    remark("missed", NAME, forall, "there are too few tiles to take several")
                elif may_rewrite(NAME, forall, f"{together} tiles in a row"):
                    pipeline(forall, stages, together)
