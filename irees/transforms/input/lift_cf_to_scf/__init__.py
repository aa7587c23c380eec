"""
Lifts control flow graphs to structured loops and conditionals.

Later passes handle only `scf.for`, `scf.if` and `scf.while`. Frontends for languages with `goto`,
`break` or early returns emit blocks with branches, which this pass lifts to scf.

      cf.cond_br %c, ^a, ^b                     %r = scf.if %c -> (tensor<4xf32>) {
    ^a:                                           %0 = math.exp %x : tensor<4xf32>
      %0 = math.exp %x : tensor<4xf32>     =>     scf.yield %0 : tensor<4xf32>
      cf.br ^b(%0)                              } else {
    ^b(%r: tensor<4xf32>):                        scf.yield %x : tensor<4xf32>
      return %r                                 }
                                                return %r

The pass merges all returns of a region into one exit block. Then, starting at the entry block:

* A cycle (strongly connected component) is a loop. Several entries are first routed through one new
  block (a dispatch block), which selects the target by a number; several exits likewise. The blocks
  of the loop become the `before` region of an `scf.while` and are lifted in turn. The latch
  passes on the condition, the next header arguments and the exit values. Values of the loop with
  uses after the loop become results too.
* The blocks dominated by one successor of a `cf.cond_br` become one branch of an `scf.if` and are
  lifted in turn. The block where both sides continue is appended to the current block; if there
  are several such blocks, a dispatch block merges them first.

A value that is undefined on some path is passed there as zero or `tensor.empty` (dynamic dims of
size 0), and never read; other types raise UnsupportedError. So does a loop without exit; any other
control flow graph is liftable. Bahmann, Reissmann, Jahre and Meyer: Perfect Reconstructability of
Control Flow from Demand Dependence Graphs, 2015. MLIR: `lift-cf-to-scf`.

Before that, the pass lowers affine loops to scf and affine maps to arith (`affine.py`).
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects import cf, func, scf
from xdsl.dialects.builtin import ModuleOp, i1
from xdsl.ir import Block, Operation, Region, SSAValue
from xdsl.passes import ModulePass
from xdsl.rewriter import InsertPoint, Rewriter

from irees.analysis.dominance import dominated, reachable
from irees.errors import UnsupportedError
from irees.transforms.input.lift_cf_to_scf.affine import lower as lower_affine
from irees.transforms.input.lift_cf_to_scf.blocks import (
    branches,
    cycles,
    last,
    make_plain,
    meet,
    poison,
    redirect,
)
from irees.transforms.utils.shapes import IndexBuilder
from irees.transforms.utils.tensors import constant

ENDS = {func.FuncOp: func.ReturnOp, scf.ExecuteRegionOp: scf.YieldOp}
"""Ops whose regions may have several blocks => the terminator that returns from them."""


def move(blocks: Iterable[Block], region: Region) -> None:
    """Moves blocks, which may have no parent yet, to the end of a region."""
    for block in list(blocks):
        if block.parent is not None:
            block.parent.detach_block(block)
        region.add_block(block)


def _is_within(op: Operation, blocks: Collection[Block]) -> bool:
    block = op.parent
    while block is not None and block not in blocks:
        block = block.parent_block()
    return block is not None


def used_after(blocks: Collection[Block]) -> dict[SSAValue, Block]:
    """Returns the values that `blocks` define and other blocks use, with the defining block."""
    values = {v: b for b in blocks for v in (*b.args, *(r for op in b.ops for r in op.results))}
    return {
        v: block
        for v, block in values.items()
        if any(not _is_within(use.operation, blocks) for use in v.uses)
    }


def make_while(
    blocks: dict[Block, None], entries: list[cf.BranchOp], exits: list[cf.BranchOp]
) -> Block:
    """
    ^h(%x): .. br ^h(%y) .. br ^after(%z)
    =>
    scf.while { .. condition(..) %y, %z } do { yield %y } ; br ^after(%z)

    Returns the loop header, now the first block of the `before` region.
    """
    header, after = entries[0].successor, exits[0].successor
    again, escaping = branches(blocks, [header]), used_after(blocks)
    exists = {value: dominated(header, block) for value, block in escaping.items()}
    count, left = len(header.args), after.arg_types
    kinds = [*header.arg_types, *left, *(value.type for value in escaping)]
    latch = Block(arg_types=[i1, *kinds])
    latch.add_op(scf.ConditionOp(latch.args[0], *latch.args[1:]))
    for branch in (*again, *exits):
        at, goes_on, here = IndexBuilder(InsertPoint.before(branch)), branch in again, branch.parent
        values = [at.insert(constant(goes_on, i1)).results[0]]
        values += branch.arguments if goes_on else header.args
        values += [poison(k, at, branch) for k in left] if goes_on else branch.arguments
        values += [v if here in exists[v] else poison(v.type, at, branch) for v in escaping]
        redirect(branch, latch, values)
    body = Block(arg_types=kinds)
    body.add_op(scf.YieldOp(*body.args[:count]))
    place, before = Block(arg_types=header.arg_types), Region()
    loop = scf.WhileOp(place.args, kinds, before, Region(body))
    loop.location = last(header).location
    place.add_ops([loop, cf.BranchOp(after, *loop.results[count : count + len(left)])])
    assert header.parent is not None
    header.parent.add_block(place)
    for branch in entries:
        redirect(branch, place, branch.arguments)
    inside = {**blocks, latch: None}
    for value, result in zip(escaping, loop.results[count + len(left) :], strict=True):
        value.replace_uses_with_if(result, lambda use: not _is_within(use.operation, inside))
    move([header, *(block for block in inside if block is not header)], before)
    return header


def lift_loop(component: list[Block], entry: Block) -> Block | None:
    """
    Turns a cycle into a loop, or merges its entries or its exits so that the next call can.

    Returns the loop header, whose region is not lifted yet, or None after a merge. Raises
    UnsupportedError for a loop without exit.
    """
    blocks = dict.fromkeys(component)
    for block in component:
        if isinstance(end := last(block), cf.ConditionalBranchOp):
            blocks.update(dict.fromkeys(end.successors))
    others = [block for block in reachable(entry) if block not in blocks]
    entries, exits = branches(others, blocks), branches(blocks, others)
    if not exits:
        op = last(component[0])
        raise UnsupportedError("a loop that never ends", op=op)
    headers = {branch.successor for branch in entries}
    if len(headers) > 1:
        meet([*entries, *branches(blocks, headers)])
    elif len({branch.successor for branch in exits}) > 1:
        meet(exits)
    else:
        return make_while(blocks, entries, exits)
    return None


def lift_choice(op: cf.ConditionalBranchOp, entry: Block) -> list[Block]:
    """
    ^entry: cond_br %c, ^a, ^b ; ^a: .. br ^rest(%x) ; ^b: .. br ^rest(%y)
    =>
    ^entry: %z = scf.if %c { .. yield %x } else { .. yield %y } ; br ^rest(%z)

    Returns the first blocks of both branches, whose regions are not lifted yet. If the sides
    continue in several blocks, only merges these and returns an empty list.
    """
    sides = [dominated(entry, successor) for successor in op.successors]
    rest = [b for b in reachable(entry) if not any(b in side for side in sides)]
    leaving = [branches(side, rest) for side in sides]
    if len({branch.successor for side in leaving for branch in side}) > 1:
        meet([branch for side in leaving for branch in side])
        return []
    after = leaving[0][0].successor
    regions: list[Region] = []
    for side, out in zip(sides, leaving, strict=True):
        end = Block(arg_types=after.arg_types)
        end.add_op(scf.YieldOp(*end.args))
        for branch in out:
            redirect(branch, end, branch.arguments)
        regions.append(Region())
        move([*side, end], regions[-1])
    choice = scf.IfOp(op.cond, after.arg_types, *regions)
    choice.location = op.location
    Rewriter.replace_op(op, [choice, cf.BranchOp(after, *choice.results)], [])
    return [region.blocks[0] for region in regions]


def absorb(op: cf.BranchOp, entry: Block) -> None:
    """^entry: br ^rest(%x) ; ^rest(%y): ..  =>  ^entry: .."""
    rest, values = op.successor, op.arguments
    for argument, value in zip(rest.args, values, strict=True):
        argument.replace_all_uses_with(value)
    Rewriter.erase_op(op)
    for inner in list(rest.ops):
        inner.detach()
        entry.add_op(inner)
    assert rest.parent is not None
    rest.parent.erase_block(rest)


def lift(region: Region, end: type[Operation]) -> None:
    """Lifts a region, whose blocks return with an `end` op, to a single block."""
    make_plain(region, end)
    todo = [region.blocks[0]]
    while todo:
        entry = todo.pop()
        while found := cycles(reachable(entry)):
            if (inner := lift_loop(found[0], entry)) is not None:
                todo.append(inner)
        while not isinstance(op := last(entry), end | scf.YieldOp | scf.ConditionOp):
            if isinstance(op, cf.BranchOp):
                absorb(op, entry)
            else:
                assert isinstance(op, cf.ConditionalBranchOp)
                todo += lift_choice(op, entry)


@dataclass(frozen=True)
class LiftCfToScfPass(ModulePass):
    """Lifts branches between blocks to structured loops and conditionals."""

    name = "irees-lift-cf-to-scf"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for inner in list(op.walk()):
            lower_affine(inner)
        for inner in list(op.walk()):
            end = ENDS.get(type(inner))
            if end is not None and len(inner.regions[0].blocks) > 1:
                lift(inner.regions[0], end)
