"""
Placement: attributes that name a device, and the handle types that callers pass.

An *affinity* is one of three attributes. It may name a set of queues; without one, any queue may be
used:

    #hal.device.promise<@dev_a>                 a device that is declared later
    #hal.device.affinity<@dev_a, [0, 2]>        a declared device, queues 0 and 2
    #hal.device.optimal<[#a, #b]>               whichever of several is best
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TypeAlias

from xdsl.dialects.builtin import ArrayAttr, IntAttr, StringAttr, SymbolRefAttr
from xdsl.ir import Attribute, ParametrizedAttribute, TypeAttribute
from xdsl.irdl import irdl_attr_definition
from xdsl.parser import AttrParser
from xdsl.printer import Printer
from xdsl.utils.exceptions import VerifyException

ANY_QUEUE = -1
"""Queue mask of an affinity that names no queues."""
QUEUES = 64
"""Number of bits of a queue mask."""


def _parse_queues(parser: AttrParser) -> IntAttr:
    if not parser.parse_optional_punctuation(","):
        return IntAttr(ANY_QUEUE)
    mask = 0
    queues = parser.parse_comma_separated_list(parser.Delimiter.SQUARE, parser.parse_integer)
    for queue in queues:
        if not 0 <= queue < QUEUES:
            parser.raise_error(f"a queue is a number in [0, {QUEUES}), not {queue}")
        mask |= 1 << queue
    return IntAttr(mask)


def _print_queues(printer: Printer, mask: int) -> None:
    if mask == ANY_QUEUE:
        return
    queues = [queue for queue in range(mask.bit_length()) if mask >> queue & 1]
    printer.print_string(", ")
    with printer.in_square_brackets():
        printer.print_list(queues, lambda queue: printer.print_string(str(queue)))


@irdl_attr_definition
class DevicePromiseAttr(ParametrizedAttribute):
    """The name of a device that is declared later (IREE: `#hal.device.promise`)."""

    name = "hal.device.promise"

    device: StringAttr
    queues: IntAttr

    def __init__(self, device: StringAttr | str, queues: IntAttr | int = ANY_QUEUE):
        super().__init__(
            StringAttr(device) if isinstance(device, str) else device,
            IntAttr(queues) if isinstance(queues, int) else queues,
        )

    @classmethod
    def parse_parameters(cls, parser: AttrParser) -> Sequence[Attribute]:
        with parser.in_angle_brackets():
            return (parser.parse_symbol_name(), _parse_queues(parser))

    def print_parameters(self, printer: Printer) -> None:
        with printer.in_angle_brackets():
            printer.print_symbol_name(self.device.data)
            _print_queues(printer, self.queues.data)


@irdl_attr_definition
class DeviceAffinityAttr(ParametrizedAttribute):
    """A declared device of the program (IREE: `#hal.device.affinity`)."""

    name = "hal.device.affinity"

    device: SymbolRefAttr
    queues: IntAttr

    def __init__(self, device: SymbolRefAttr | str, queues: IntAttr | int = ANY_QUEUE):
        super().__init__(
            SymbolRefAttr(device) if isinstance(device, str) else device,
            IntAttr(queues) if isinstance(queues, int) else queues,
        )

    @classmethod
    def parse_parameters(cls, parser: AttrParser) -> Sequence[Attribute]:
        with parser.in_angle_brackets():
            device = parser.parse_attribute()
            if not isinstance(device, SymbolRefAttr):
                parser.raise_error("expected the symbol of a device")
            return (device, _parse_queues(parser))

    def print_parameters(self, printer: Printer) -> None:
        with printer.in_angle_brackets():
            printer.print_attribute(self.device)
            _print_queues(printer, self.queues.data)


@irdl_attr_definition
class DeviceOptimalAttr(ParametrizedAttribute):
    """The best of several devices (IREE: `#hal.device.optimal`)."""

    name = "hal.device.optimal"

    affinities: ArrayAttr

    def __init__(self, affinities: ArrayAttr | Iterable[Attribute]):
        given = affinities if isinstance(affinities, ArrayAttr) else ArrayAttr(affinities)
        super().__init__(given)

    def verify(self) -> None:
        if not all(
            isinstance(each, DevicePromiseAttr | DeviceAffinityAttr) for each in self.affinities
        ):
            raise VerifyException("expected affinities of one device each")

    @classmethod
    def parse_parameters(cls, parser: AttrParser) -> Sequence[Attribute]:
        with parser.in_angle_brackets():
            return (parser.parse_attribute(),)

    def print_parameters(self, printer: Printer) -> None:
        with printer.in_angle_brackets():
            printer.print_attribute(self.affinities)


Affinity: TypeAlias = DevicePromiseAttr | DeviceAffinityAttr | DeviceOptimalAttr
"""Attributes for where a value is placed or an op runs (IREE: `AffinityAttr`)."""


@irdl_attr_definition
class BufferType(ParametrizedAttribute, TypeAttribute):
    """A buffer in device memory, untyped."""

    name = "hal.buffer"


@irdl_attr_definition
class BufferViewType(ParametrizedAttribute, TypeAttribute):
    """A buffer with a shape and an element type: the ABI type of a tensor."""

    name = "hal.buffer_view"


@irdl_attr_definition
class FenceType(ParametrizedAttribute, TypeAttribute):
    """A synchronization point on the timelines of several devices."""

    name = "hal.fence"


ATTRS: list[type[Attribute]] = [
    DevicePromiseAttr,
    DeviceAffinityAttr,
    DeviceOptimalAttr,
    BufferType,
    BufferViewType,
    FenceType,
]
