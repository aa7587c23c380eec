"""
Assigns each op to a device, and transfers each value at most once to each device that reads it.

An op runs on the device of its affinity, else on that of its operands. If several devices remain,
the one with the fewest transfers is chosen (`placement.py`). Existing transfers state only the
target device: a transfer to the current device, a second transfer to the same device, and a
transfer without uses are erased. A result that is exported from another device is transferred
there.

    %0 = linalg.matmul {stream.affinity = @a} ...
    %1 = flow.tensor.transfer %0 to @b                 %0 = linalg.matmul {stream.affinity = @a}
    %2 = flow.tensor.transfer %1 to @b            =>   %1 = flow.tensor.transfer %0 to @b
    %3 = linalg.matmul ins(%2, %c)                     %3 = linalg.matmul {stream.affinity = @b}
    %4 = hal.tensor.export %3                          %4 = hal.tensor.export on(@b) %3

(`@a` is `#hal.device.promise<@a>`.) Values computed from constants only have no device and are
never transferred. A result or branch operand needs a single device, so they are cloned there.
Function arguments without an affinity are imported on each device that reads them.

If an op with an affinity reads a value that is known to be on another device, the pass raises an
error that names both, since the program requests no transfer. IREE inserts one.
"""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects import func
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Block, Operation, SSAValue
from xdsl.passes import ModulePass
from xdsl.rewriter import InsertPoint, Rewriter

from irees.analysis.control_flow import branch_edges
from irees.dialects.flow import TensorBarrierOp, TensorCloneOp, TensorTransferOp
from irees.dialects.hal import DevicePromiseAttr, TensorExportOp, TensorImportOp
from irees.dialects.storage import is_dim
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
    """The transfers of one function, at most one per value and device."""

    def __init__(self, placement: Placement):
        self.placement = placement
        self.sent: dict[tuple[SSAValue, str], SSAValue] = {}

    def at(self, value: SSAValue, device: str) -> SSAValue:
        """Returns a value on a device; inserts the transfer right after its definition."""
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
        """Returns the import of a free argument on a device; other free values are unchanged."""
        if not isinstance(op := value.owner, TensorImportOp):
            return value
        if (value, device) not in self.sent:
            point, on = InsertPoint.after(op), DevicePromiseAttr(device)
            made = self.sent[value, device] = import_of(op.source, op.target.type, on, point)
            made.name_hint = value.name_hint
        return self.sent[value, device]

    def only_at(self, value: SSAValue, device: str, before: Operation) -> SSAValue:
        """Returns a value on exactly one device; clones free values."""
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
    """Replaces the operands of an op and of nested ops by values on its device."""
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


def _anywhere(op: Operation, placement: Placement) -> None:
    """Makes an op without a device read values where they are; a dim is read at its tensor."""
    for each in op.walk():
        for index, operand in enumerate(each.operands):
            each.operands[index] = source_of(operand)
    if is_dim(op) and (source := op.operands[0]) not in placement.free:
        op.attributes[PLACE] = DevicePromiseAttr(placement.home(source))


def materialize(placement: Placement) -> None:
    """Writes affinities, and inserts transfers between devices."""
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
            _anywhere(op, placement)
    for op in reversed(old):
        Rewriter.erase_op(op)
    # Unused imports that were not replaced stay: only they have the type of the argument.
    for value in dict.fromkeys(value for value, _ in sender.sent):
        if isinstance(value.owner, TensorImportOp) and value.first_use is None:
            Rewriter.erase_op(value.owner)


@dataclass(frozen=True)
class PlaceTransfersPass(ModulePass):
    """Assigns ops to devices and inserts transfers."""

    name = "irees-place-transfers"

    devices: tuple[str, ...] = ()
    """The devices of the program, the default first; if empty, all that the program names."""

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        named = named_devices(op)
        devices = self.devices or tuple(named)
        if unknown := [name for name in named if name not in devices]:
            raise ArgumentError(
                f"the program names the device @{unknown[0]}, but the devices are "
                f"{', '.join(f'@{name}' for name in devices)}",
                hint=f'define it: devices={{"{unknown[0]}": "cpu:0", ...}}',
            )
        if not devices:
            return
        for function in [f for f in op.body.block.ops if isinstance(f, func.FuncOp)]:
            if not function.is_declaration:
                drop_dead(function)
                materialize(Placement.of(function, devices))
