"""
A normal form of blocks in which each branch can be redirected on its own.

Blocks are *plain* if each block has one of three terminators: a `cf.br`; a `cf.cond_br` to two
*jumps*, which are blocks without arguments, with one predecessor, that contain only a `cf.br`; or,
in the single exit block, the terminator of the region. Every edge that a rewrite needs to redirect
is then a `cf.br`.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence

from xdsl.dialects import arith, cf
from xdsl.dialects.builtin import (
    AnyFloat,
    ComplexType,
    IndexType,
    IntegerAttr,
    IntegerType,
    TensorType,
    i32,
)
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue
from xdsl.rewriter import InsertPoint, Rewriter
from xdsl.utils.hints import isa

from irees.analysis.dominance import reachable
from irees.errors import UnsupportedError
from irees.transforms.utils.shapes import IndexBuilder
from irees.transforms.utils.tensors import constant, empty


def last(block: Block) -> Operation:
    """Returns the terminator of a block."""
    assert block.last_op is not None
    return block.last_op


def cycles(blocks: Iterable[Block]) -> list[list[Block]]:
    """
    Returns the strongly connected components that contain a cycle: components of several blocks,
    and blocks that branch to themselves. Tarjan's algorithm, iterative.
    """
    order: dict[Block, int] = {}
    low: dict[Block, int] = {}
    stack: dict[Block, None] = {}
    found: list[list[Block]] = []
    for root in blocks:
        path = [] if root in order else [(root, iter(last(root).successors))]
        while path:
            block, successors = path[-1]
            if block not in order:
                order[block] = low[block] = len(order)
                stack[block] = None
            for successor in successors:
                if successor not in order:
                    path.append((successor, iter(last(successor).successors)))
                    break
                if successor in stack:
                    low[block] = min(low[block], order[successor])
            else:
                path.pop()
                if path:
                    low[path[-1][0]] = min(low[path[-1][0]], low[block])
                if low[block] == order[block]:
                    component = [b for b in stack if order[b] >= order[block]]
                    for b in component:
                        del stack[b]
                    if len(component) > 1 or block in last(block).successors:
                        found.append(component)
    return found


def branches(blocks: Iterable[Block], to: Collection[Block]) -> list[cf.BranchOp]:
    """Returns the `cf.br` terminators of `blocks` with a successor in `to`."""
    ends = [last(block) for block in blocks]
    return [end for end in ends if isinstance(end, cf.BranchOp) and end.successor in to]


def poison(kind: Attribute, at: IndexBuilder, user: Operation) -> SSAValue:
    """
    Returns an arbitrary value of a type, to pass where it is never read.

    Raises UnsupportedError for types other than numbers and tensors.
    """
    if isinstance(kind, TensorType):
        nothing = at.value(0) if any(n < 0 for n in kind.get_shape()) else 0
        return empty(kind, [nothing if n < 0 else n for n in kind.get_shape()], at)
    if isa(kind, AnyFloat) or isinstance(kind, IntegerType | IndexType | ComplexType):
        return at.insert(constant(0, kind)).results[0]
    raise UnsupportedError(
        f"a value of type {kind} that is not defined on all paths to a block",
        op=user.name,
        location=str(user.location),
        hint="write these branches with scf",
    )


def jump(target: Block, values: Sequence[SSAValue] = ()) -> Block:
    """Appends and returns a block that only branches to `target` with `values`."""
    assert target.parent is not None
    block = Block([cf.BranchOp(target, *values)])
    target.parent.add_block(block)
    return block


def choose(condition: SSAValue, then: Block, otherwise: Block) -> cf.ConditionalBranchOp:
    """Returns a cond_br to two jumps."""
    return cf.ConditionalBranchOp(condition, then, (), otherwise, ())


Case = tuple[int, Block, Sequence[SSAValue]]
"""Flag value, target block and its operands."""


def first_of(flag: SSAValue, cases: Sequence[Case], default: Block) -> Block:
    """^t: flag == 1 ? ^a : ^u ; ^u: flag == 2 ? ^b : ^default"""
    assert isinstance(flag.type, IntegerType | IndexType)
    region, rest = default.parent, default
    assert region is not None
    for value, target, operands in reversed(cases):
        number = arith.ConstantOp(IntegerAttr(value, flag.type))
        same = arith.CmpiOp(flag, number, "eq")
        rest = Block([number, same, choose(same.result, jump(target, operands), jump(rest))])
        region.add_block(rest)
    return rest


def _plain_switch(op: cf.SwitchOp) -> None:
    """switch %i, [1: ^a, 2: ^b, default: ^c]  =>  i == 1 ? ^a : (i == 2 ? ^b : ^c)"""
    numbers = op.case_values.get_values() if op.case_values is not None else ()
    cases = zip(map(int, numbers), op.case_blocks, op.case_operand, strict=True)
    default = jump(op.default_block, op.default_operands)
    Rewriter.replace_op(op, cf.BranchOp(first_of(op.flag, list(cases), default)))


def make_plain(region: Region, end: type[Operation]) -> Block:
    """
    Makes the blocks of a region plain and erases unreachable blocks.

    Blocks that end in `end` branch to a new exit block instead. Returns the exit block. Raises
    UnsupportedError if no block ends in `end`, and for unknown terminators.
    """
    entry = region.blocks[0]
    seen = reachable(entry)
    for block in [b for b in region.blocks if b not in seen]:
        region.erase_block(block, safe_erase=False)
    ends = [last(b) for b in seen if isinstance(last(b), end)]
    if not ends:
        raise UnsupportedError("no block returns", op="cf.br", location=str(last(entry).location))
    exit_ = Block(arg_types=[v.type for v in ends[0].operands])
    region.add_block(exit_)
    exit_.add_op(end(*exit_.args))
    for op in [last(b) for b in seen]:
        match op:
            case cf.BranchOp():
                pass
            case cf.ConditionalBranchOp():
                then = jump(op.then_block, op.then_arguments)
                otherwise = jump(op.else_block, op.else_arguments)
                Rewriter.replace_op(op, choose(op.cond, then, otherwise))
            case cf.SwitchOp():
                _plain_switch(op)
            case _ if isinstance(op, end):
                Rewriter.replace_op(op, cf.BranchOp(exit_, *op.operands))
            case _:
                raise UnsupportedError(
                    "an unknown kind of branch", op=op.name, location=str(op.location)
                )
    return exit_


def redirect(branch: cf.BranchOp, to: Block, values: Sequence[SSAValue]) -> None:
    """br ^a(..)  =>  br ^b(values)"""
    new = cf.BranchOp(to, *values)
    new.location = branch.location
    Rewriter.replace_op(branch, new)


def meet(incoming: Sequence[cf.BranchOp]) -> Block:
    """
    Routes branches to several blocks through one new block, which dispatches on a number.

    br ^a(%x) ; br ^b(%y)  =>  br ^m(0, %x, poison) ; br ^m(1, poison, %y)
                               ^m(%k, %p, %q): k == 0 ? br ^a(%p) : br ^b(%q)
    """
    targets = list(dict.fromkeys(branch.successor for branch in incoming))
    region = targets[0].parent
    assert region is not None
    first = Block(arg_types=[i32, *(kind for target in targets for kind in target.arg_types)])
    region.add_block(first)
    for branch in incoming:
        at = IndexBuilder(InsertPoint.before(branch))
        values = [at.insert(constant(targets.index(branch.successor), i32)).results[0]]
        for target in targets:
            if target is branch.successor:
                values += branch.arguments
            else:
                values += [poison(kind, at, branch) for kind in target.arg_types]
        redirect(branch, first, values)
    cases: list[Case] = []
    start = 1
    for number, target in enumerate(targets):
        cases.append((number, target, first.args[start : start + len(target.args)]))
        start += len(target.args)
    *others, (_, target, values) = cases
    first.add_op(cf.BranchOp(first_of(first.args[0], others, jump(target, values))))
    return first
