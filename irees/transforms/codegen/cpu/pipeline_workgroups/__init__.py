"""
Software-pipelines workgroups: computes the reduction of tile i + 1 inside the elementwise loop of
tile i.

Some kernels read a tile twice, and the tile exceeds the L1 cache: a group norm reduces a group, and
then computes each element from the result. The reduction (`sums`) is bandwidth-bound and uses the
adders. The elementwise nest (`points`; a SiLU: an exponential and a division) is compute-bound and
leaves memory idle. Run one after the other, each wastes the resource that the other needs. So a
workgroup computes several consecutive tiles, and the reduction of the next tile becomes part of the
elementwise loop of the current one.

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

Both loops iterate over a tile in the same order, so each sum is bit-identical. Workgroups are
independent, so the next one may start early. The results of the reduction that `points` uses are
loop-carried; addresses are recomputed.

Left unchanged:
- tiles that the L1 cache holds (`irees-prefetch-next-tiles` prefetches the next one),
- elementwise nests that are bandwidth-bound,
- kernels with too few workgroups to give each thread several tiles,
- reductions whose accumulators take more than a quarter of the vector registers (spills),
- loops that do not cover the tile in the same order,
- elementwise nests that use a buffer of the workgroup.

After Lam, "Software Pipelining: An Effective Scheduling Technique for VLIW Machines" (1988), over
workgroups instead of loop iterations.
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
"""Maps each value of the original IR to its value in a copy."""


def copy(ops: Sequence[Operation], at: IndexBuilder, values: Values) -> None:
    """Clones ops, remapping operands with `values`, and adds their results to `values`."""
    for op in ops:
        at.insert(op.clone(value_mapper=values))


def sums_beside_points(
    stages: Stages, at: IndexBuilder, points: Values, sums: Values
) -> list[SSAValue]:
    """
    for %i, %k { p(%i, %k) }; for %j { s(%j) }  =>  for %i, %k { p(%i, %k); s(%i * |k| + %k) }

    Returns the results that the innermost loop of the sums would have.
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
    """
    Returns the induction variables of the loops of the sums. The last one lacks the contribution of
    the innermost loop of the points.
    """
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
    """Emits one iteration of the sums; the last two of `counters` add up to one index."""
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
    """Emits the ops between sums and points, given the results of the innermost sums."""
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
    """Returns the most tiles per workgroup that leave at least `shares` workgroups."""
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
    """Software-pipelines workgroups that read a large tile twice: reduces the next tile early."""

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
                    remark("missed", NAME, forall, "not pipelined: too few tiles per thread")
                elif may_rewrite(NAME, forall, f"{together} tiles in a row"):
                    pipeline(forall, stages, together)
