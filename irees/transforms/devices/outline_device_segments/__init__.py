"""
Outlines the ops of each device into a module; the original function becomes a schedule.

Between two transfers, a device runs independently of the others. The ops that it runs there become
a function in its module, which the rest of the compiler treats as an ordinary program. The schedule
invokes functions, transfers tensors, and branches on scalars.

    %0 = linalg.matmul {stream.affinity = @a} ...         %0 = irees.invoke @a::@main_0(%x, %y)
    %1 = flow.tensor.transfer %0 to @b              =>    %1 = flow.tensor.transfer %0 to @b
    %2 = linalg.matmul {stream.affinity = @b} ...         %2 = irees.invoke @b::@main_1(%1, %z)
                                                    builtin.module @a { func.func @main_0 {@a} }
                                                    builtin.module @b { func.func @main_1 {@b} }

Ops without an affinity (constants, sizes, ops on these) are cloned into each function that uses
them, and globals into each module. `segments.py` partitions the blocks. IREE keeps the schedule and
all devices in one module (`ScheduleExecution`), and compiles its dispatches for each device.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain

from xdsl.context import Context
from xdsl.dialects import func
from xdsl.dialects.builtin import ModuleOp, StringAttr, SymbolRefAttr
from xdsl.ir import Block, Operation, SSAValue
from xdsl.passes import ModulePass
from xdsl.rewriter import InsertPoint, Rewriter
from xdsl.traits import SymbolOpInterface

from irees.analysis.affinity import devices_of
from irees.dialects.flow import TensorTransferOp
from irees.dialects.hal import BufferViewDimOp, DevicePromiseAttr, TensorExportOp, TensorImportOp
from irees.dialects.irees import InvokeOp
from irees.dialects.signature import is_entry
from irees.transforms.devices.outline_device_segments.segments import (
    Item,
    Segment,
    cut,
    is_leaf,
    is_scalar_constant,
    items_of,
)
from irees.transforms.devices.utils.border import export_of, import_of
from irees.transforms.devices.utils.places import PLACE
from irees.transforms.utils.shapes import IndexBuilder, sizes_of


class Outliner:
    """The outlining of one function."""

    def __init__(self, function: func.FuncOp, modules: dict[str, ModuleOp]):
        self.function = function
        self.modules = modules
        self.count = 0
        self.imported: dict[tuple[SSAValue, str], SSAValue] = {}
        self.scheduled: dict[SSAValue, SSAValue] = {}

    def run(self) -> None:
        """Replaces the ops of the function by the schedule."""
        default = next(iter(self.modules))
        blocks = list(self.function.body.blocks)
        items = {block: items_of(block, default) for block in blocks}
        self.readers: dict[SSAValue, list[Item]] = {}
        for item in chain.from_iterable(items.values()):
            for leaf in item.leaves:
                self.readers.setdefault(leaf, []).append(item)
        # Old ops are erased at the end: other blocks may clone them.
        old = {block: list(block.ops)[:-1] for block in blocks}
        for block in blocks:
            self._block(block, old[block], items[block])
        # Keep an import of each unused argument: only the import has its type.
        imports = [op for op in old[blocks[0]] if isinstance(op, TensorImportOp)]
        used = {source for source, _ in self.imported}
        for op in imports:
            if op.source not in used:
                self._import(op, default)
        self._erase([op for block in blocks for op in old[block]])

    def _erase(self, ops: list[Operation]) -> None:
        """Erases ops, after those of the schedule have taken the place of their results."""
        for result in [result for op in reversed(ops) for result in op.results]:
            if result in self.scheduled:
                result.replace_all_uses_with(self.scheduled[result])
        for op in ops:
            op.detach()
            op.drop_all_references()

    def _at_end(self, value: SSAValue, end: Operation) -> SSAValue:
        """Returns the operand of a terminator that replaces `value`."""
        if value in self.asked:
            return self.asked[value]
        if is_scalar_constant(value):
            assert isinstance(value.owner, Operation)
            constant = value.owner.clone()
            Rewriter.insert_op(constant, InsertPoint.before(end))
            return constant.results[0]
        return self._placed(value)

    def _placed(self, value: SSAValue) -> SSAValue:
        """Returns the schedule's value for a value on a single device."""
        if isinstance(op := value.owner, TensorImportOp):
            assert op.affinity is not None
            return self._import(op, min(devices_of(op.affinity)))
        return self.scheduled.get(value, value)

    def _block(self, block: Block, old: list[Operation], items: list[Item]) -> None:
        end = block.last_op
        assert end is not None
        point = InsertPoint.before(end)
        self.asked: dict[SSAValue, SSAValue] = {}
        transfers = [op for op in old if isinstance(op, TensorTransferOp)]
        for op in old:
            if isinstance(op, TensorImportOp) and op.affinity is not None:
                self._import(op, min(devices_of(op.affinity)))
        made = _made_by(items)
        self._send([t for t in transfers if t.operand not in made], point)
        for segment in cut(items):
            here = _made_by(segment)
            self._invoke(segment, end, point)
            self._send([t for t in transfers if t.operand in here], point)
        for op in old:
            if isinstance(op, TensorExportOp):
                place = op.affinity
                assert place is not None
                source = self._now(op.source, min(devices_of(place)), point)  # pyright: ignore
                self.scheduled[op.target] = export_of(source, place, point)  # pyright: ignore
        end.operands = [self._at_end(value, end) for value in end.operands]

    def _import(self, op: TensorImportOp, device: str) -> SSAValue:
        """Returns the import of an argument on a device; each reading device has its own."""
        if (op.source, device) not in self.imported:
            entry = self.function.body.blocks[0]
            end = entry.last_op
            assert end is not None
            first = next((o for o in entry.ops if isinstance(o, InvokeOp | TensorTransferOp)), end)
            made = import_of(
                op.source, op.target.type, DevicePromiseAttr(device), self._start(first)
            )
            self.imported[op.source, device] = made
        return self.imported[op.source, device]

    def _start(self, first: Operation) -> InsertPoint:
        entry = self.function.body.blocks[0]
        last = None
        for op in entry.ops:
            if isinstance(op, TensorImportOp) and op.target in self.imported.values():
                last = op
        if last is not None:
            return InsertPoint.after(last)
        begin = entry.first_op
        return InsertPoint.before(begin if begin is not None else first)

    def _now(self, value: SSAValue, device: str, point: InsertPoint) -> SSAValue:
        """Returns the schedule's value for a leaf."""
        if isinstance(op := value.owner, TensorImportOp):
            return self._import(op, device)
        if isinstance(op, BufferViewDimOp):
            return value
        return self.scheduled.get(value, value)

    def _send(self, transfers: Sequence[TensorTransferOp], point: InsertPoint) -> None:
        for op in transfers:
            builder = IndexBuilder(point)
            place = op.target
            value = self._placed(op.operand)
            new = TensorTransferOp(value, sizes_of(value, builder), place)
            new.location = op.location
            self.scheduled[op.result] = builder.insert(new).results[0]

    def _invoke(self, items: list[Item], end: Operation, point: InsertPoint) -> None:
        wanted = [v for item in items for v in item.made if self._is_read(v, items)]
        effects = any(item.has_effects for item in items)
        if not wanted and not effects:
            return
        device = items[0].device
        segment = Segment(items)
        name = f"{self.function.sym_name.data}_{self.count}"
        self.count += 1
        function = segment.write(name, wanted)
        function.location = self.function.location
        # The affinity of the function applies to all its dispatches, also after its ops change.
        function.attributes[PLACE] = DevicePromiseAttr(device)
        self.modules[device].body.block.add_op(function)
        arguments = [self._now(value, device, point) for value in segment.arguments]
        invoke = InvokeOp(device, name, arguments, [value.type for value in wanted])
        Rewriter.insert_op(invoke, point)
        for value, result in zip(wanted, invoke.res, strict=True):
            # Values without an affinity are computed for the terminator of this block only.
            (self.scheduled if is_leaf(value) else self.asked)[value] = result

    def _is_read(self, value: SSAValue, items: list[Item]) -> bool:
        """Whether a value is read outside these items."""
        if any(reader not in items for reader in self.readers.get(value, ())):
            return True
        for use in value.uses:
            op = use.operation
            if isinstance(op, TensorTransferOp | TensorExportOp):
                return True
            block = op.parent_block()
            if block is not None and op is block.last_op and block.parent_op() is self.function:
                return True
        return False


def _made_by(items: Sequence[Item]) -> set[SSAValue]:
    """Returns the values that items make."""
    return {value for item in items for value in item.made}


def _symbols_used(op: Operation) -> set[str]:
    return {
        attribute.root_reference.data
        for each in op.walk()
        for attribute in (*each.properties.values(), *each.attributes.values())
        if isinstance(attribute, SymbolRefAttr)
    }


def give_symbols(module: ModuleOp, top: dict[str, Operation]) -> None:
    """Clones the globals and functions that a module refers to into it, transitively."""
    have = {op.properties["sym_name"].data for op in module.body.block.ops}  # pyright: ignore
    todo = sorted(_symbols_used(module))
    while todo:
        name = todo.pop()
        if name in have or name not in top:
            continue
        have.add(name)
        copied = top[name].clone()
        first = module.body.block.first_op
        assert first is not None
        Rewriter.insert_op(copied, InsertPoint.before(first))
        todo.extend(sorted(_symbols_used(copied)))


def _devices_in(module: ModuleOp) -> set[str]:
    """Returns the devices that the affinities of a module name."""
    places = [op.attributes[PLACE] for op in module.walk() if PLACE in op.attributes]
    return {name for place in places for name in devices_of(place)}


def _erase_outlined(module: ModuleOp) -> None:
    """Erases what only the modules of devices need: all but public functions."""
    for op in list(module.body.block.ops):
        if not isinstance(op, func.FuncOp) or op.sym_visibility == StringAttr("private"):
            Rewriter.erase_op(op, safe_erase=False)


@dataclass(frozen=True)
class OutlineDeviceSegmentsPass(ModulePass):
    """Outlines a function per device and segment, and the schedule that invokes them."""

    name = "irees-outline-device-segments"

    devices: tuple[str, ...] = ()
    """The devices of the program; if empty, all devices in affinities of ops."""

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        devices = self.devices or tuple(sorted(_devices_in(op)))
        if not devices:
            return
        modules = {name: ModuleOp([], sym_name=StringAttr(name)) for name in devices}
        symbols = [o for o in op.body.block.ops if o.has_trait(SymbolOpInterface)]
        top = {o.properties["sym_name"].data: o for o in symbols}  # pyright: ignore
        functions = [f for f in op.body.block.ops if isinstance(f, func.FuncOp)]
        for function in filter(is_entry, functions):
            Outliner(function, modules).run()
        for module in modules.values():
            give_symbols(module, top)
        _erase_outlined(op)
        for module in modules.values():
            if module.body.block.first_op is not None:
                op.body.block.add_op(module)
