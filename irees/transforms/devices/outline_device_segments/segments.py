"""
Partitions the ops of a block into segments, which one device runs independently of the others.

An *item* is an op on a device, or a set of values to compute on a device. It reads *leaves*:
results of other items, transferred values, and block arguments. Ops without an affinity between
leaves and items are cloned into each segment that needs them. Scheduling is greedy, in block order:
a segment takes all items of a device that are ready, then the next device follows. The starting
device is the one that gives the fewest segments.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from xdsl.dialects import func
from xdsl.dialects.arith import ConstantOp
from xdsl.dialects.builtin import FunctionType, TensorType
from xdsl.ir import Block, Operation, Region, SSAValue
from xdsl.traits import is_side_effect_free

from irees.dialects.flow import TensorCloneOp, TensorTransferOp
from irees.dialects.hal import BufferViewDimOp, TensorExportOp, TensorImportOp
from irees.dialects.storage import is_dim
from irees.transforms.devices.utils.places import PLACE, own_place, values_read

BORDER = (TensorImportOp, TensorExportOp, TensorTransferOp, TensorCloneOp, BufferViewDimOp)


@dataclass
class Item:
    """An op on a device, or a set of values to compute there."""

    device: str
    op: Operation | None = None
    made: list[SSAValue] = field(default_factory=list[SSAValue])
    """The values of the original program that the item defines."""
    wanted: list[SSAValue] = field(default_factory=list[SSAValue])
    """For an item without op: the value to compute for each of `made`."""
    leaves: list[SSAValue] = field(default_factory=list[SSAValue])

    @property
    def has_effects(self) -> bool:
        """Whether the op has side effects, so that its order on the device matters."""
        return self.op is not None and not is_side_effect_free(self.op)


def is_size(op: Operation) -> bool:
    """Whether an op is a tensor.dim used only by transfers, exports and the like."""
    return is_dim(op) and all(isinstance(u.operation, BORDER) for u in op.result.uses)


def is_leaf(value: SSAValue) -> bool:
    """Whether a value is available when a segment starts, or defined by an item."""
    op = value.owner
    return isinstance(op, Block) or isinstance(op, BORDER) or own_place(op) is not None


def leaves_of(values: Iterable[SSAValue]) -> list[SSAValue]:
    """Returns the leaves that the computation of these values depends on."""
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
    """Whether a value is a scalar constant, which the schedule can clone."""
    return isinstance(value.owner, ConstantOp) and not isinstance(value.type, TensorType)


def items_of(block: Block, default: str) -> list[Item]:
    """Returns the items of a block, in order; scalars for the terminator come last."""
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
    """Returns for each item the numbers of the items that it depends on."""
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
    """Partitions items into segments of one device each, in an executable order."""
    order = list(dict.fromkeys(item.device for item in items))
    found = [_cut_from(items, first, order) for first in order]
    best = min(found, key=len, default=[])
    return [[items[number] for number in segment] for segment in best]


@dataclass
class Segment:
    """A function under construction that runs some items on a device."""

    items: Sequence[Item]
    arguments: list[SSAValue] = field(default_factory=list[SSAValue])
    block: Block = field(default_factory=Block)
    known: dict[SSAValue, SSAValue] = field(default_factory=dict[SSAValue, SSAValue])

    def value(self, value: SSAValue) -> SSAValue:
        """Returns a value of the program inside the function: computed there, or an argument."""
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
        """Clones an op into the function, with its operands."""
        for operand in values_read(op):
            self.value(operand)
        copied = op.clone(value_mapper=self.known)
        for each in copied.walk():
            each.attributes.pop(PLACE, None)
        self.block.add_op(copied)
        self.known.update(zip(op.results, copied.results, strict=True))

    def write(self, name: str, wanted: Sequence[SSAValue]) -> func.FuncOp:
        """Builds the function; it returns the `wanted` values of its items."""
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
