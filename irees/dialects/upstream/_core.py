"""
Faster versions of xDSL's hottest IR functions, with the same results.

* xDSL's `Operation.walk` chains three generators per level of nesting and passes every op through
  all of them. This one uses a single generator with a stack.
* xDSL's IR classes are abstract base classes, whose `isinstance` also searches for virtual
  subclasses. IR classes have none, so the patched `isinstance` is that of plain classes.
* xDSL's `IsolatedFromAbove` walks up from every operand to the enclosing op. This one first
  collects the blocks of the op.
"""

from __future__ import annotations

from abc import ABCMeta
from collections.abc import Iterator

from xdsl.ir import Attribute, Block, Operation, SSAValue
from xdsl.ir.core import _IRNode
from xdsl.traits import IsolatedFromAbove
from xdsl.utils.exceptions import VerifyException

_walk = Operation.walk


def walk(
    self: Operation, *, reverse: bool = False, region_first: bool = False
) -> Iterator[Operation]:
    """Yields an op and all nested ops; as in xDSL, the caller may erase an op once yielded."""
    if reverse or region_first:
        return _walk(self, reverse=reverse, region_first=region_first)
    return _forward(self)


def _forward(op: Operation) -> Iterator[Operation]:
    yield op
    if not op.regions:
        return
    # One iterator per open level. Like xDSL's walk, each gets the next op before it yields one.
    stack = [_inside(op)]
    while stack:
        for inner in stack[-1]:
            yield inner
            if inner.regions:
                stack.append(_inside(inner))
                break
        else:
            stack.pop()


def _inside(op: Operation) -> Iterator[Operation]:
    for region in op.regions:
        for block in region.blocks:
            after = block.first_op
            while after is not None:
                inner, after = after, after.next_op
                yield inner


class _PlainMeta(ABCMeta):
    """The metaclass of IR classes: none has virtual subclasses."""

    __instancecheck__ = type.__instancecheck__


def _make_plain(cls: type) -> None:
    if type(cls) is ABCMeta:
        cls.__class__ = _PlainMeta
    for each in cls.__subclasses__():
        _make_plain(each)


def verify_isolated(self: IsolatedFromAbove, op: Operation) -> None:
    """Raises VerifyException for an op inside that uses a value from outside."""
    inside: set[Block] = set()
    users: list[Operation] = []
    regions = list(op.regions)
    while regions:
        for block in regions.pop().blocks:
            inside.add(block)
            for inner in block.ops:
                users.append(inner)
                if inner.regions and not inner.has_trait(IsolatedFromAbove):
                    regions += inner.regions
    for user in users:
        for operand in user.operands:
            owner = operand.owner
            if (owner.parent if isinstance(owner, Operation) else owner) not in inside:
                raise VerifyException(
                    f"Operation using value defined out of its IsolatedFromAbove parent: {user}"
                )


def patch() -> None:
    """Patches xDSL's IR classes."""
    IsolatedFromAbove.verify = verify_isolated  # type: ignore[method-assign]
    Operation.walk = walk  # type: ignore[method-assign]
    for root in (_IRNode, Attribute, SSAValue):
        _make_plain(root)
