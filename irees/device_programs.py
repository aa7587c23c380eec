"""
Creates a multi-device program from a module that was cut into parts for devices.

The schedule is data (`runtime/schedule.py`), extracted from the output of
`irees-outline-device-segments`. Each device's module is compiled normally, for that device's
target.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from xdsl.dialects import arith, cf, func
from xdsl.dialects.builtin import (
    FloatAttr,
    IntegerAttr,
    IntegerType,
    ModuleOp,
    TensorType,
    UnitAttr,
)
from xdsl.ir import Attribute, Block, Operation, SSAValue

from irees.analysis.affinity import devices_of
from irees.analysis.control_flow import branch_edges, passed
from irees.analysis.work import bytes_of
from irees.backends.common.program_text import argument_records, result_records
from irees.backends.common.toolchain import runtime_library
from irees.dialects.flow import TensorTransferOp
from irees.dialects.hal import TensorExportOp, TensorImportOp
from irees.dialects.irees import InvokeOp
from irees.dialects.util import GlobalOp
from irees.errors import UnsupportedError
from irees.options import Options
from irees.places import PART
from irees.runtime.device_program import DeviceProgram, Maker
from irees.runtime.devices import DeviceSpec, parse_specs


def options_for(spec: str, options: Options) -> Options:
    """The compiler options for the part of a device. Raises ArgumentError."""
    kind = DeviceSpec.parse(spec).kind
    target: Any = "cpu" if kind == "ray" else kind
    given = options.target
    if isinstance(given, str) and given.partition(":")[0] == target:
        target = given
    elif not isinstance(given, str) and given.kind == target:
        target = given
    return replace(
        options, target=target, devices=None, pipeline_stages=None, annotate_input_affinities=False
    )


def schedule_of(module: ModuleOp, options: Options) -> dict[str, Any]:
    """The schedule of a module lowered through `pipeline.device_phases`, as data."""
    stateful = sorted(name for name, part in parts_of(module).items() if _keeps_state(part))
    return {
        "devices": options.device_specs(),
        "functions": functions_of(module),
        "stateful": stateful,
    }


def device_program(schedule: Mapping[str, Any], makers: Mapping[str, Maker]) -> DeviceProgram:
    """Creates a program from the makers of its parts. Raises DeviceError for a missing device."""
    kinds = {spec.kind for spec in parse_specs(schedule["devices"]).values()}
    compiled = kinds != {"reference"}
    return DeviceProgram(schedule, makers, runtime=runtime_library() if compiled else None)


def parts_of(module: ModuleOp) -> dict[str, ModuleOp]:
    """The modules of the devices, by name."""
    return {
        part.sym_name.data: part
        for part in module.body.block.ops
        if isinstance(part, ModuleOp) and part.sym_name is not None
    }


def _keeps_state(part: ModuleOp) -> bool:
    return any(isinstance(op, GlobalOp) and op.is_mutable for op in part.body.block.ops)


def alone(part: ModuleOp) -> ModuleOp:
    """Detaches the module of a device from the program."""
    part.detach()
    part.sym_name = None
    part.attributes[PART] = UnitAttr()
    return part


def functions_of(module: ModuleOp) -> list[dict[str, Any]]:
    """The schedules of the public functions of a module, as data."""
    return [
        _Writer(op).record()
        for op in module.body.block.ops
        if isinstance(op, func.FuncOp) and not op.is_declaration
    ]


class _Writer:
    """Converts one function to a schedule: numbers its values, and finds their devices."""

    def __init__(self, function: func.FuncOp):
        self.function = function
        self.numbers: dict[SSAValue, int] = {}
        self.places: dict[SSAValue, str] = {}
        self.kinds: dict[int, Attribute] = {}

    def record(self) -> dict[str, Any]:
        """The schedule of the function."""
        entry = self.function.body.blocks[0]
        self.blocks = list(self.function.body.blocks)
        for block in self.blocks:
            for argument in block.args:
                self.number(argument)
        self._find_places()
        blocks = [self._block(block) for block in self.blocks]
        kinds = [self.kinds.get(i, a.type) for i, a in enumerate(entry.args)]
        return {
            "name": self.function.sym_name.data,
            "args": argument_records(self.function, kinds),
            "results": result_records(self.function, self._returned()),
            "blocks": blocks,
        }

    def _returned(self) -> list[Attribute]:
        """The result types, with tensor types for exported views."""
        for block in self.blocks:
            if isinstance(end := block.last_op, func.ReturnOp):
                owners = [value.owner for value in end.operands]
                return [
                    owner.source.type if isinstance(owner, TensorExportOp) else value.type
                    for value, owner in zip(end.operands, owners, strict=True)
                ]
        return []

    def _find_places(self) -> None:
        """Finds the device of each tensor; block arguments get it from their incoming values."""
        for op in self.function.walk():
            for result in op.results:
                if isinstance(op, InvokeOp):
                    self.places[result] = op.device
                elif isinstance(op, TensorTransferOp):
                    self.places[result] = min(devices_of(op.target))  # pyright: ignore
                elif isinstance(op, TensorImportOp) and op.affinity is not None:
                    self.places[result] = min(devices_of(op.affinity))
        changed = True
        while changed:
            changed = False
            for block in self.blocks:
                end = block.last_op
                assert end is not None
                for value, argument in branch_edges(end):
                    if value in self.places and argument not in self.places:
                        self.places[argument] = self.places[value]
                        changed = True

    def number(self, value: SSAValue) -> int:
        """The number of a value; an exported value has the number of its source."""
        if isinstance(value.owner, TensorExportOp):
            value = value.owner.source
        return self.numbers.setdefault(value, len(self.numbers))

    def _block(self, block: Block) -> dict[str, Any]:
        steps: list[dict[str, Any]] = []
        for op in block.ops:
            steps.extend(self._steps(op))
        end = block.last_op
        assert end is not None
        arguments = [self.number(argument) for argument in block.args]
        return {"args": arguments, "steps": steps, "end": self._end(end)}

    def _steps(self, op: Operation) -> list[dict[str, Any]]:
        match op:
            case TensorImportOp():
                index = self.function.body.blocks[0].args.index(op.source)  # pyright: ignore
                self.kinds[index] = op.target.type
                place = self.places[op.target]
                return [{"import": index, "on": place, "as": self.number(op.target)}]
            case InvokeOp():
                return [
                    {
                        "run": op.function,
                        "on": op.device,
                        "args": [self.number(value) for value in op.arguments],
                        "as": [self.number(value) for value in op.res],
                    }
                ]
            case TensorTransferOp():
                kind = op.result.type
                assert isinstance(kind, TensorType)
                return [
                    {
                        "send": self.number(op.operand),
                        "from": self.places[op.operand],
                        "to": self.places[op.result],
                        "as": self.number(op.result),
                        "bytes": bytes_of(kind),
                    }
                ]
            case arith.ConstantOp():
                return [{"const": _number(op.value), "as": self.number(op.result)}]
            case _:
                # Size computations of transferred tensors: arrays carry their sizes.
                return []

    def _end(self, op: Operation) -> dict[str, Any]:
        edges = [
            [self.blocks.index(block), [self.number(value) for value in values]]
            for block, values in passed(op)
        ]
        match op:
            case func.ReturnOp():
                return {"return": [self.number(value) for value in op.operands]}
            case cf.BranchOp():
                return {"br": edges[0]}
            case cf.ConditionalBranchOp():
                return {"cond_br": [self.number(op.cond), *edges]}
            case _:
                raise UnsupportedError("a schedule cannot end a block with this op", op=op)


def _number(value: Attribute) -> int | float | bool:
    if isinstance(value, IntegerAttr):
        is_flag = isinstance(value.type, IntegerType) and value.type.width.data == 1
        return bool(value.value.data) if is_flag else value.value.data
    if isinstance(value, FloatAttr):
        return value.value.data
    raise UnsupportedError(f"a schedule cannot hold the constant {value}")
