"""Opens `scf` loops and branches, and closes them once their bodies are built."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from xdsl.dialects import scf
from xdsl.ir import Attribute, Block, Region, SSAValue

from irees.transforms.utils.shapes import IndexBuilder, Size


@dataclass
class LoopBody:
    """An `scf.for` under construction; calling it ends the body and returns the results."""

    loop: scf.ForOp

    @property
    def arguments(self) -> list[SSAValue]:
        """The carried values inside the loop."""
        return list(self.loop.body.block.args[1:])

    def __call__(self, values: Sequence[SSAValue] = ()) -> list[SSAValue]:
        self.loop.body.block.add_op(scf.YieldOp(*values))
        return list(self.loop.results)


def for_loop(
    at: IndexBuilder, lower: Size, upper: Size, step: Size, carried: Sequence[SSAValue] = ()
) -> tuple[LoopBody, SSAValue, IndexBuilder]:
    """Opens an `scf.for`; returns its body, its induction variable and a builder inside."""
    block = Block(arg_types=[at.value(lower).type, *(c.type for c in carried)])
    loop = scf.ForOp(at.value(lower), at.value(upper), at.value(step), carried, Region(block))
    at.insert(loop)
    return LoopBody(loop), block.args[0], at.within(block)


def if_else(at: IndexBuilder, condition: SSAValue) -> tuple[Callable[[], None], IndexBuilder]:
    """Opens an `scf.if` without an else branch; returns a closer and a builder inside."""
    block = Block()
    at.insert(scf.IfOp(condition, [], Region(block)))
    return lambda: block.add_op(scf.YieldOp()), at.within(block)


def if_both(
    at: IndexBuilder, condition: SSAValue
) -> tuple[Callable[[], None], IndexBuilder, IndexBuilder]:
    """Opens an `scf.if` with both branches; returns a closer and a builder for each."""
    yes, no = Block(), Block()
    at.insert(scf.IfOp(condition, [], Region(yes), Region(no)))

    def close() -> None:
        yes.add_op(scf.YieldOp())
        no.add_op(scf.YieldOp())

    return close, at.within(yes), at.within(no)


def if_values(
    at: IndexBuilder, condition: SSAValue, types: Sequence[Attribute]
) -> tuple[Callable[..., list[SSAValue]], IndexBuilder, IndexBuilder]:
    """Opens an `scf.if` with results; returns a closer (takes both yields) and two builders."""
    yes, no = Block(), Block()
    branch = scf.IfOp(condition, types, Region(yes), Region(no))
    at.insert(branch)

    def close(first: Sequence[SSAValue], second: Sequence[SSAValue]) -> list[SSAValue]:
        yes.add_op(scf.YieldOp(*first))
        no.add_op(scf.YieldOp(*second))
        return list(branch.results)

    return close, at.within(yes), at.within(no)


@dataclass
class WhileBody:
    """An `scf.while` under construction; calling it ends the body and returns the results."""

    loop: scf.WhileOp

    def __call__(self, values: Sequence[SSAValue]) -> list[SSAValue]:
        self.loop.after_region.block.add_op(scf.YieldOp(*values))
        return list(self.loop.results)


def while_loop(
    at: IndexBuilder,
    start: Sequence[SSAValue],
    condition: Callable[[Sequence[SSAValue], IndexBuilder], SSAValue],
) -> tuple[WhileBody, list[SSAValue], IndexBuilder]:
    """Opens an `scf.while`; returns its body, the carried values inside and a builder."""
    types = [v.type for v in start]
    before, after = Block(arg_types=types), Block(arg_types=types)
    test = condition(before.args, at.within(before))
    before.add_op(scf.ConditionOp(test, *before.args))
    loop = scf.WhileOp(start, types, Region(before), Region(after))
    at.insert(loop)
    return WhileBody(loop), list(after.args), at.within(after)
