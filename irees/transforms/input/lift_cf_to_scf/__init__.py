"""
Writes branches between blocks as loops and choices.

The passes after this one know `scf.for`, `scf.if` and `scf.while`, whose bodies are in them;
blocks that go on to each other, as a front end for a language with `goto`, `break` or early returns
leaves them, become those.

      cf.cond_br %c, ^a, ^b                     %r = scf.if %c -> (tensor<4xf32>) {
    ^a:                                           %0 = math.exp %x : tensor<4xf32>
      %0 = math.exp %x : tensor<4xf32>     =>     scf.yield %0 : tensor<4xf32>
      cf.br ^b(%0)                              } else {
    ^b(%r: tensor<4xf32>):                        scf.yield %x : tensor<4xf32>
      return %r                                 }
                                                return %r

All returns of a function become one. Then, from its first block on:

* Blocks that come back to each other are a loop. If it is entered at several places, what goes
  there meets in one new block first, with a number that says where to go on; so does what leaves
  it for several places. Its blocks become the first part of an `scf.while` and are lifted by
  themselves; their last one says whether to go on, with what, and what leaves the loop. A value of
  the loop that is used after it leaves with the rest.
* What only one side of a `cf.cond_br` comes to is that side of an `scf.if`, and is lifted by
  itself. Where both sides go on after it becomes the rest of the block; if that is several places,
  they meet as before.

A value that is passed on a way where it does not exist is zero, or a `tensor.empty` of no elements;
nothing reads it there. Every graph of blocks can be written so; what has no end, no way to return,
is refused. Bahmann, Reissmann, Jahre and Meyer: Perfect Reconstructability of Control Flow from
Demand Dependence Graphs, 2015. MLIR: `lift-cf-to-scf`.

Affine loops become loops of scf first, and affine maps arithmetic (`affine.py`).
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
"""Ops whose regions may have several blocks, and what returns from those."""


def move(blocks: Iterable[Block], region: Region) -> None:
    """Moves blocks, new ones too, to the end of a region."""
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
    """The values of these blocks that others use, and where each is made."""
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

    The first block of the loop, whose others follow it.
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
    Makes a loop of blocks that come back to each other, or brings it nearer to one.

    Its first block, whose region is still to be lifted, or None.
    """
    blocks = dict.fromkeys(component)
    for block in component:
        if isinstance(end := last(block), cf.ConditionalBranchOp):
            blocks.update(dict.fromkeys(end.successors))
    others = [block for block in reachable(entry) if block not in blocks]
    entries, exits = branches(others, blocks), branches(blocks, others)
    if not exits:
        op = last(component[0])
        raise UnsupportedError("a loop that never ends", op=op.name, location=str(op.location))
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

    The first blocks of both sides, whose regions are still to be lifted.
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
    """Makes one block of those of a region, which `end` returns from."""
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
    """Blocks that branch to each other become loops and choices."""

    name = "irees-lift-cf-to-scf"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for inner in list(op.walk()):
            lower_affine(inner)
        for inner in list(op.walk()):
            end = ENDS.get(type(inner))
            if end is not None and len(inner.regions[0].blocks) > 1:
                lift(inner.regions[0], end)
