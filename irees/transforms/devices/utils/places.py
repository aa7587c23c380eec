"""
What ops say of the devices that they run on, and what they read and pass on.
"""

from __future__ import annotations

from collections.abc import Iterable

from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation, SSAValue

from irees.analysis.affinity import devices_of, explicit_affinity, is_tracked
from irees.dialects.flow import TensorBarrierOp, TensorTransferOp
from irees.transforms.utils.structured import captured_values

PLACE = "stream.affinity"
"""The attribute that says on which device an op runs."""


def own_place(op: Operation) -> str | None:
    """The device that an op names itself."""
    found = op.attributes.get(PLACE) or op.properties.get("affinity")
    return None if found is None else first_of(devices_of(found))  # pyright: ignore


def first_of(devices: Iterable[str]) -> str | None:
    """The first by name."""
    return min(devices, default=None)


def named_devices(module: ModuleOp) -> list[str]:
    """The devices that a program names, in the order of their names."""
    names: set[str] = set()
    for op in module.walk():
        if (found := explicit_affinity(op)) is not None:
            names |= devices_of(found)
    return sorted(names)


def source_of(value: SSAValue) -> SSAValue:
    """What a value is, wherever it has been sent."""
    while isinstance(value.owner, TensorTransferOp | TensorBarrierOp):
        value = value.owner.operand
    return value


def values_read(op: Operation) -> list[SSAValue]:
    """What an op and what is in it read from around it."""
    return [*op.operands, *(captured_values(op) if op.regions else ())]


def tensors_read(op: Operation, *, sent: bool = False) -> list[SSAValue]:
    """The tensors that an op and what is in it read from around it, or what they were sent as."""
    tensors = [v for v in dict.fromkeys(values_read(op)) if is_tracked(v.type)]
    return tensors if sent else list(dict.fromkeys(source_of(v) for v in tensors))
