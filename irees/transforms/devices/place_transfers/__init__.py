"""
Decides on which device each op runs, and sends each value where it is needed: once.

An op runs where it says, else where its operands are; where that leaves several devices open, it
runs where the fewest transfers follow (`placement.py`). A transfer
that the program has says where a value goes, not how: to where it is already it is nothing, of two
to one device one is left, and one that nobody reads goes. The border needs transfers of its own:
a result that is wanted on another device than it is made on is sent there.

    %0 = linalg.matmul {stream.affinity = @a} ...
    %1 = flow.tensor.transfer %0 to @b                 %0 = linalg.matmul {stream.affinity = @a}
    %2 = flow.tensor.transfer %1 to @b            =>   %1 = flow.tensor.transfer %0 to @b
    %3 = linalg.matmul ins(%2, %c)                     %3 = linalg.matmul {stream.affinity = @b}
    %4 = hal.tensor.export %3                          %4 = hal.tensor.export on(@b) %3

(`@a` is `#hal.device.promise<@a>`.) What can be made everywhere from constants alone has no place
and is never sent; where one place is wanted, of a result or of what a branch passes, it is cloned
there. What a caller passes without saying where is imported on each device that reads it.

An op that names a device and reads what is known to be on another is an error that names both:
nobody asked for that transfer. IREE sends it.
"""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects import func
from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.tensor import DimOp
from xdsl.ir import Block, Operation, SSAValue
from xdsl.passes import ModulePass
from xdsl.rewriter import InsertPoint, Rewriter

from irees.analysis.control_flow import branch_edges
from irees.dialects.flow import TensorBarrierOp, TensorCloneOp, TensorTransferOp
from irees.dialects.hal import DevicePromiseAttr, TensorExportOp, TensorImportOp
from irees.errors import ArgumentError
from irees.transforms.devices.place_transfers.dead import drop_dead
from irees.transforms.devices.place_transfers.placement import Placement
from irees.transforms.devices.utils.border import import_of
from irees.transforms.devices.utils.places import (
    PLACE,
    named_devices,
    own_place,
    source_of,
    tensors_read,
)
from irees.transforms.utils.shapes import IndexBuilder, sizes_of


class Sender:
    """The transfers of one function, one for each value and device."""

    def __init__(self, placement: Placement):
        self.placement = placement
        self.sent: dict[tuple[SSAValue, str], SSAValue] = {}

    def at(self, value: SSAValue, device: str) -> SSAValue:
        """A value where it is needed; sent at once when it is made, if it has to be."""
        value = source_of(value)
        if value in self.placement.free:
            return self._imported(value, device)
        if self.placement.home(value) == device:
            return value
        if (value, device) not in self.sent:
            owner = value.owner
            if isinstance(owner, Block):
                first = owner.first_op
                point = InsertPoint.before(first) if first else InsertPoint.at_end(owner)
            else:
                point = InsertPoint.after(owner)
            builder = IndexBuilder(point)
            transfer = TensorTransferOp(value, sizes_of(value, builder), DevicePromiseAttr(device))
            if isinstance(owner, Operation):
                transfer.location = owner.location
            self.sent[value, device] = builder.insert(transfer).results[0]
        return self.sent[value, device]

    def _imported(self, value: SSAValue, device: str) -> SSAValue:
        """What a caller passes, on a device; what is made of constants stays as it is."""
        if not isinstance(op := value.owner, TensorImportOp):
            return value
        if (value, device) not in self.sent:
            point, on = InsertPoint.after(op), DevicePromiseAttr(device)
            made = self.sent[value, device] = import_of(op.source, op.target.type, on, point)
            made.name_hint = value.name_hint
        return self.sent[value, device]

    def only_at(self, value: SSAValue, device: str, before: Operation) -> SSAValue:
        """A value that is on one device and nowhere else."""
        found = self.at(value, device)
        if found not in self.placement.free:
            return found
        builder = IndexBuilder(InsertPoint.before(before))
        made = TensorCloneOp.build(
            operands=[found, sizes_of(found, builder)],
            attributes={PLACE: DevicePromiseAttr(device)},
            result_types=[found.type],
        )
        return builder.insert(made).results[0]


def _here(op: Operation, device: str, sender: Sender) -> None:
    """Gives an op, and what is in it, its operands where it runs."""
    read = set(tensors_read(op))
    for each in op.walk():
        for index, operand in enumerate(each.operands):
            if (source := source_of(operand)) in read:
                each.operands[index] = sender.at(source, device)
    affinity = DevicePromiseAttr(device)
    if isinstance(op, TensorImportOp):
        op.affinity = affinity
    else:
        op.attributes[PLACE] = affinity


def _export(op: TensorExportOp, placement: Placement, sender: Sender) -> None:
    here = own_place(op)
    if here is None:
        source = source_of(op.source)
        free = source in placement.free
        here = placement.devices[0] if free else placement.home(source)
    op.operands[0] = sender.only_at(op.source, here, op)
    op.affinity = DevicePromiseAttr(here)


def _branch(op: Operation, placement: Placement, sender: Sender) -> None:
    edges = list(branch_edges(op))
    for index, (operand, argument) in enumerate(edges, len(op.operands) - len(edges)):
        if (there := placement.chosen.get(argument)) is not None:
            op.operands[index] = sender.only_at(operand, there, op)


def materialize(placement: Placement) -> None:
    """Writes affinities on ops, and transfers where values change devices."""
    sender = Sender(placement)
    ops = list(placement.ops())
    old = [op for op in ops if isinstance(op, TensorTransferOp | TensorBarrierOp)]
    for op in ops:
        if op in placement.choices:
            _here(op, placement.chosen[op], sender)
        elif isinstance(op, TensorExportOp):
            _export(op, placement, sender)
        elif op is op.parent.last_op:  # pyright: ignore
            _branch(op, placement, sender)
        elif op not in old:
            for each in op.walk():
                for index, operand in enumerate(each.operands):
                    each.operands[index] = source_of(operand)
            if isinstance(op, DimOp) and (source := op.operands[0]) not in placement.free:
                op.attributes[PLACE] = DevicePromiseAttr(placement.home(source))
    for op in reversed(old):
        Rewriter.erase_op(op)
    # One that nobody reads stays: it alone says which type the argument has.
    for value in dict.fromkeys(value for value, _ in sender.sent):
        if isinstance(value.owner, TensorImportOp) and value.first_use is None:
            Rewriter.erase_op(value.owner)


@dataclass(frozen=True)
class PlaceTransfersPass(ModulePass):
    """Every op gets a device, every value that is needed elsewhere a transfer."""

    name = "irees-place-transfers"

    devices: tuple[str, ...] = ()
    """The devices of the program, the default first; all that it names if there are none."""

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        named = named_devices(op)
        devices = self.devices or tuple(named)
        if unknown := [name for name in named if name not in devices]:
            raise ArgumentError(
                f"the program names the device @{unknown[0]}, but the devices are "
                f"{', '.join(f'@{name}' for name in devices)}",
                hint=f'say what it is: devices={{"{unknown[0]}": "cpu:0", ...}}',
            )
        if not devices:
            return
        for function in [f for f in op.body.block.ops if isinstance(f, func.FuncOp)]:
            if not function.is_declaration:
                drop_dead(function)
                materialize(Placement.of(function, devices))
