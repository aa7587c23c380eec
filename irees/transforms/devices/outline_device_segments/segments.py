"""
Cuts the ops of a block into segments: runs of ops that one device does without the others.

An *item* is an op that runs somewhere, or values that have to be made somewhere. It reads *leaves*:
what other items make, what a transfer brings, what is passed. Everything between, ops without a
place, is made again in each segment that needs it. Items are taken in the order of the block, all
that can be of one device before those of the next; of the devices to start with, the one that gives
the fewest segments.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from xdsl.dialects import func
from xdsl.dialects.arith import ConstantOp
from xdsl.dialects.builtin import FunctionType, TensorType
from xdsl.dialects.tensor import DimOp
from xdsl.ir import Block, Operation, Region, SSAValue
from xdsl.traits import is_side_effect_free

from irees.dialects.flow import TensorCloneOp, TensorTransferOp
from irees.dialects.hal import BufferViewDimOp, TensorExportOp, TensorImportOp
from irees.transforms.devices.utils.places import PLACE, own_place, values_read

BORDER = (TensorImportOp, TensorExportOp, TensorTransferOp, TensorCloneOp, BufferViewDimOp)


@dataclass
class Item:
    """An op that runs on a device, or values that are to be made there."""

    device: str
    op: Operation | None = None
    made: list[SSAValue] = field(default_factory=list[SSAValue])
    """The values that it makes for others, by the names that they have."""
    wanted: list[SSAValue] = field(default_factory=list[SSAValue])
    """Without an op: what to make, one for each of `made`."""
    leaves: list[SSAValue] = field(default_factory=list[SSAValue])

    @property
    def has_effects(self) -> bool:
        """Whether its place in the order of the device matters."""
        return self.op is not None and not is_side_effect_free(self.op)


def is_size(op: Operation) -> bool:
    """Whether an op only says how large a transferred or exported tensor is."""
    return isinstance(op, DimOp) and all(isinstance(u.operation, BORDER) for u in op.result.uses)


def is_leaf(value: SSAValue) -> bool:
    """Whether a value is there when a segment begins, or is made by an item."""
    op = value.owner
    return isinstance(op, Block) or isinstance(op, BORDER) or own_place(op) is not None


def leaves_of(values: Iterable[SSAValue]) -> list[SSAValue]:
    """What has to be there so that these values can be made."""
    found: dict[SSAValue, None] = {}
    seen: set[SSAValue] = set()
    todo = list(values)
    while todo:
        value = todo.pop()
        if value in seen:
            continue
        seen.add(value)
        if is_leaf(value):
            found[value] = None
        else:
            assert isinstance(value.owner, Operation)
            todo.extend(values_read(value.owner))
    return list(found)


def is_scalar_constant(value: SSAValue) -> bool:
    """Whether the host knows a value by itself."""
    return isinstance(value.owner, ConstantOp) and not isinstance(value.type, TensorType)


def items_of(block: Block, default: str) -> list[Item]:
    """The items of a block, in order; scalars that only the host asks for come last."""
    items: list[Item] = []
    for op in block.ops:
        device = own_place(op)
        if isinstance(op, TensorCloneOp) and device is not None:
            items.append(Item(device, None, [op.result], [op.operand], leaves_of([op.operand])))
        elif not isinstance(op, BORDER) and device is not None:
            if not is_size(op):
                items.append(Item(device, op, list(op.results), leaves=leaves_of(values_read(op))))
    last = block.last_op
    assert last is not None
    asked = [
        value
        for value in dict.fromkeys(last.operands)
        if not is_leaf(value) and not is_scalar_constant(value)
    ]
    if asked:
        place = items[-1].device if items else default
        items.append(Item(place, None, list(asked), list(asked), leaves_of(asked)))
    return items


def _maker(value: SSAValue) -> SSAValue:
    while isinstance(value.owner, TensorTransferOp):
        value = value.owner.operand
    return value


def dependencies(items: Sequence[Item]) -> list[set[int]]:
    """For each item, the numbers of those that come before it."""
    maker = {value: number for number, item in enumerate(items) for value in item.made}
    needed: list[set[int]] = []
    last_effect: dict[str, int] = {}
    for number, item in enumerate(items):
        own = {maker[_maker(leaf)] for leaf in item.leaves if _maker(leaf) in maker}
        if item.has_effects:
            if item.device in last_effect:
                own.add(last_effect[item.device])
            last_effect[item.device] = number
        needed.append(own - {number})
    return needed


def _cut_from(items: Sequence[Item], first: str, order: Sequence[str]) -> list[list[int]]:
    needed = dependencies(items)
    done: set[int] = set()
    left = list(range(len(items)))
    segments: list[list[int]] = []
    here = order.index(first)
    while left:
        taken: list[int] = []
        for number in left:
            if items[number].device == order[here] and needed[number] <= done:
                taken.append(number)
                done.add(number)
        left = [number for number in left if number not in done]
        if taken:
            segments.append(taken)
        here = (here + 1) % len(order)
    return segments


def cut(items: Sequence[Item]) -> list[list[Item]]:
    """The items as segments, each of one device, in an order in which they can run."""
    order = list(dict.fromkeys(item.device for item in items))
    found = [_cut_from(items, first, order) for first in order]
    best = min(found, key=len, default=[])
    return [[items[number] for number in segment] for segment in best]


@dataclass
class Segment:
    """The function that a device runs for some items, as it is written."""

    items: Sequence[Item]
    arguments: list[SSAValue] = field(default_factory=list[SSAValue])
    block: Block = field(default_factory=Block)
    known: dict[SSAValue, SSAValue] = field(default_factory=dict[SSAValue, SSAValue])

    def value(self, value: SSAValue) -> SSAValue:
        """A value of the program inside the function: made there, or an argument."""
        if value in self.known:
            return self.known[value]
        if is_leaf(value):
            self.arguments.append(value)
            self.known[value] = self.block.insert_arg(value.type, len(self.block.args))
            return self.known[value]
        assert isinstance(value.owner, Operation)
        self.copy(value.owner)
        return self.known[value]

    def copy(self, op: Operation) -> None:
        """Copies an op into the function, with what it reads."""
        for operand in values_read(op):
            self.value(operand)
        copied = op.clone(value_mapper=self.known)
        for each in copied.walk():
            each.attributes.pop(PLACE, None)
        self.block.add_op(copied)
        self.known.update(zip(op.results, copied.results, strict=True))

    def write(self, name: str, wanted: Sequence[SSAValue]) -> func.FuncOp:
        """The function, which returns what is wanted of what the items make."""
        for item in self.items:
            if item.op is not None:
                self.copy(item.op)
            else:
                for made, source in zip(item.made, item.wanted, strict=True):
                    self.known[made] = self.value(source)
        self.block.add_op(func.ReturnOp(*(self.known[value] for value in wanted)))
        kind = FunctionType.from_lists(
            [a.type for a in self.block.args], [value.type for value in wanted]
        )
        return func.FuncOp(name, kind, Region(self.block), visibility="public")
