"""
Lowers structured control flow to `scf.for`, `scf.if` and `scf.while`.

    %r = scf.index_switch %i -> f32           %c = arith.cmpi eq, %i, 3
    case 3 { scf.yield %x }             =>    %r = scf.if %c { scf.yield %x } else { scf.yield %y }
    default { scf.yield %y }

    %r = scf.forall (%i) in (%n) shared_outs(%o = %e) {
      %t = "f"(%i)
      scf.forall.in_parallel { tensor.parallel_insert_slice %t into %o[%i] [1] [1] }
    }
  =>
    %r = scf.for %i = 0 to %n step 1 iter_args(%o = %e) {
      %t = "f"(%i)
      %p = tensor.insert_slice %t into %o[%i] [1] [1]
      scf.yield %p
    }

An `scf.parallel` becomes sequential loops that reduce in order. An outermost parallel loop on
memory alone stays parallel, as an `scf.forall` from 0 by 1: it may become a kernel. An
`scf.execute_region` is inlined. Parallel loops on tensors are few and contain large ops; later
passes parallelize the dispatches instead. Iterations of an `scf.forall` insert into disjoint
slices, so sequential execution gives the same result. MLIR: `scf-forall-to-for`,
`scf-parallel-for-to-nested-fors`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects import arith, func, memref, scf, tensor
from xdsl.dialects.builtin import IndexType, IntegerAttr, MemRefType, ModuleOp, TensorType
from xdsl.ir import Block, Operation, Region, SSAValue
from xdsl.passes import ModulePass
from xdsl.rewriter import InsertPoint, Rewriter

from irees.dialects.upstream.scf import ForallOp, InParallelOp
from irees.dialects.upstream.tensor import ParallelInsertSliceOp
from irees.transforms.utils.inlining import splice
from irees.transforms.utils.shapes import IndexBuilder, Size

ON_MEMORY = frozenset(("affine", "arith", "complex", "math", "memref", "scf", "vector"))
"""Dialects of the ops of a parallel loop that may become a kernel."""
STATIC = ("static_offsets", "static_sizes", "static_strides")


def inline_region(op: scf.ExecuteRegionOp) -> None:
    """execute_region { .. yield %x }  =>  .."""
    Rewriter.replace_op(op, [], splice(op.region.block, InsertPoint.before(op)))


def switch_to_ifs(op: scf.IndexSwitchOp) -> None:
    """switch %i case 1 {a} case 2 {b} default {c}  =>  if %i == 1 {a} else { if %i == 2 {b} .. }"""
    cases = list(zip(op.cases.get_values(), list(op.case_regions), strict=True))
    otherwise = op.detach_region(op.default_region)
    for value, region in reversed(cases):
        number = arith.ConstantOp(IntegerAttr.from_index_int_value(int(value)))
        same = arith.CmpiOp(op.arg, number, "eq")
        choice = scf.IfOp(same, op.result_types, op.detach_region(region), otherwise)
        choice.location = op.location
        otherwise = Region(Block([number, same, choice, scf.YieldOp(*choice.results)]))
    Rewriter.replace_op(op, [], splice(otherwise.block, InsertPoint.before(op)))


def one_by_one(op: Operation, bounds: Sequence[Sequence[Size]], inits: Sequence[SSAValue]) -> None:
    """op over %i, %j of { .. yield %x }  =>  for %i { for %j { .. yield %x } }"""
    at = IndexBuilder(InsertPoint.before(op))
    each = [[at.value(size) for size in loop] for loop in zip(*bounds, strict=True)]
    variables: list[SSAValue] = []
    loops: list[scf.ForOp] = []
    values = inits
    for lower, upper, step in each:
        block = Block(arg_types=[lower.type, *(value.type for value in inits)])
        loops.append(scf.ForOp(lower, upper, step, values, Region(block)))
        loops[-1].location = op.location
        at.insert(loops[-1])
        variables.append(block.args[0])
        values = block.args[1:]
        at = IndexBuilder(InsertPoint.at_end(block))
    results = splice(op.regions[0].block, at.point, [*variables, *values])
    for loop in reversed(loops):
        loop.body.block.add_op(scf.YieldOp(*results))
        results = list(loop.results)
    Rewriter.replace_op(op, [], results)


def forall_to_for(op: ForallOp) -> None:
    """forall { .. parallel_insert_slice %t into %o }  =>  for { .. yield insert_slice %t, %o }"""
    body = op.region.block
    end = body.last_op
    assert isinstance(end, InParallelOp)
    outputs = body.args[op.num_loops :]
    now: dict[SSAValue, SSAValue] = {output: output for output in outputs}
    for each in list(end.region.ops):
        assert isinstance(each, ParallelInsertSliceOp)
        new = tensor.InsertSliceOp.build(
            operands=[each.source, now[each.dest], each.offsets, each.sizes, each.strides],
            properties={name: each.properties[name] for name in STATIC},
            result_types=[each.dest.type],
        )
        new.location = each.location
        Rewriter.insert_op(new, InsertPoint.before(end))
        now[each.dest] = new.result
        Rewriter.erase_op(each)
    Rewriter.replace_op(end, scf.YieldOp(*(now[output] for output in outputs)))
    one_by_one(op, op.bounds(), op.outputs)


def parallel_to_for(op: scf.ParallelOp) -> None:
    """parallel { .. reduce(%t) {f} }  =>  for { .. yield f(%acc, %t) }"""
    body = op.body.block
    end = body.last_op
    assert isinstance(end, scf.ReduceOp)
    totals = [body.insert_arg(value.type, len(body.args)) for value in op.initVals]
    new: list[SSAValue] = []
    for total, term, region in zip(totals, end.args, end.reductions, strict=True):
        new += splice(region.block, InsertPoint.before(end), [total, term])
    Rewriter.replace_op(end, scf.YieldOp(*new))
    one_by_one(op, [op.lowerBound, op.upperBound, op.step], op.initVals)


def is_on_memory(op: ForallOp | scf.ParallelOp) -> bool:
    """
    Whether the iterations of an outermost parallel loop only access memory, and not atomically: it
    may become a kernel (`irees-raise-buffers`), which runs them in parallel.
    """
    if op.results or not isinstance(op.parent_op(), func.FuncOp):
        return False
    inner = [each for each in op.walk() if each is not op]
    values = [value for each in inner for value in (*each.operands, *each.results)]
    if any(isinstance(value.type, TensorType) for value in values):
        return False
    others = (memref.CopyOp, memref.AtomicRMWOp, scf.ExecuteRegionOp)
    return any(isinstance(value.type, MemRefType) for value in values) and all(
        each.dialect_name() in ON_MEMORY and not isinstance(each, others) for each in inner
    )


def to_grid(op: ForallOp | scf.ParallelOp, bounds: Sequence[Sequence[Size]]) -> None:
    """parallel %i = %l to %u step %s  =>  forall %j in (ceil((%u - %l) / %s)), %i = %l + %j * %s"""
    b = IndexBuilder(InsertPoint.before(op))
    # A division of sizes is unsigned.
    counts = [b.ceildiv(b.maximum(b.sub(u, low), 0), step) for low, u, step in zip(*bounds)]
    block = Block(arg_types=[IndexType()] * len(counts))
    loop = ForallOp.over([0] * len(counts), counts, [1] * len(counts), [], Region(block))
    loop.location = op.location
    b.insert(loop)
    at = IndexBuilder(InsertPoint.at_end(block))
    loops = zip(block.args, bounds[0], bounds[2], strict=True)
    places = [at.value(at.add(low, at.mul(index, step))) for index, low, step in loops]
    body = op.regions[0].block
    end = body.last_op
    assert end is not None
    Rewriter.replace_op(end, scf.YieldOp())
    splice(body, at.point, places)
    block.add_op(InParallelOp())
    Rewriter.erase_op(op)


@dataclass(frozen=True)
class SimplifyScfPass(ModulePass):
    """Lowers switches, parallel loops and execute_region ops to for and if."""

    name = "irees-simplify-scf"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for inner in list(op.walk()):
            match inner:
                case scf.ExecuteRegionOp() if len(inner.region.blocks) == 1:
                    inline_region(inner)
                case scf.IndexSwitchOp():
                    switch_to_ifs(inner)
                case ForallOp() if is_on_memory(inner):
                    to_grid(inner, inner.bounds())
                case ForallOp():
                    forall_to_for(inner)
                case scf.ParallelOp() if is_on_memory(inner):
                    to_grid(inner, [inner.lowerBound, inner.upperBound, inner.step])
                case scf.ParallelOp():
                    parallel_to_for(inner)
                case _:
                    pass
