"""
Devices that ops name, and values that ops read.
"""

from __future__ import annotations

from collections.abc import Iterable

from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation, SSAValue

from irees.analysis.affinity import devices_of, explicit_affinity, is_tracked
from irees.dialects.flow import TensorBarrierOp, TensorTransferOp
from irees.transforms.utils.structured import captured_values

PLACE = "stream.affinity"
"""The attribute with the device of an op."""


def own_place(op: Operation) -> str | None:
    """Returns the device that an op itself names, or None."""
    found = op.attributes.get(PLACE) or op.properties.get("affinity")
    return None if found is None else first_of(devices_of(found))  # pyright: ignore


def first_of(devices: Iterable[str]) -> str | None:
    """Returns the first device by name, or None."""
    return min(devices, default=None)


def named_devices(module: ModuleOp) -> list[str]:
    """Returns the devices that a program names, sorted."""
    names: set[str] = set()
    for op in module.walk():
        if (found := explicit_affinity(op)) is not None:
            names |= devices_of(found)
    return sorted(names)


def source_of(value: SSAValue) -> SSAValue:
    """Returns the source of a value, looking through transfers and barriers."""
    while isinstance(value.owner, TensorTransferOp | TensorBarrierOp):
        value = value.owner.operand
    return value


def values_read(op: Operation) -> list[SSAValue]:
    """Returns the operands of an op and the values that its regions capture."""
    return [*op.operands, *(captured_values(op) if op.regions else ())]


def tensors_read(op: Operation, *, sent: bool = False) -> list[SSAValue]:
    """Returns the sources of the tensors that an op reads; with `sent`, the tensors themselves."""
    tensors = [v for v in dict.fromkeys(values_read(op)) if is_tracked(v.type)]
    return tensors if sent else list(dict.fromkeys(source_of(v) for v in tensors))
