"""Types of the stream dialect: resources and timepoints."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import StringAttr
from xdsl.ir import Attribute, ParametrizedAttribute, TypeAttribute
from xdsl.irdl import irdl_attr_definition
from xdsl.parser import AttrParser
from xdsl.printer import Printer
from xdsl.utils.exceptions import VerifyException

LIFETIMES = ("*", "external", "staging", "transient", "variable", "constant")
"""Resource lifetimes; `*` means not decided yet."""


@irdl_attr_definition
class ResourceType(ParametrizedAttribute, TypeAttribute):
    """Bytes on a device, with a lifetime (IREE: `!stream.resource`)."""

    name = "stream.resource"

    lifetime: StringAttr

    def __init__(self, lifetime: StringAttr | str = "*"):
        super().__init__(StringAttr(lifetime) if isinstance(lifetime, str) else lifetime)

    def verify(self) -> None:
        if self.lifetime.data not in LIFETIMES:
            raise VerifyException(f"expected one of {', '.join(LIFETIMES)}")

    @classmethod
    def parse_parameters(cls, parser: AttrParser) -> Sequence[Attribute]:
        with parser.in_angle_brackets():
            if parser.parse_optional_punctuation("*"):
                return (StringAttr("*"),)
            return (StringAttr(parser.parse_identifier()),)

    def print_parameters(self, printer: Printer) -> None:
        with printer.in_angle_brackets():
            printer.print_string(self.lifetime.data)


@irdl_attr_definition
class TimepointType(ParametrizedAttribute, TypeAttribute):
    """A point on the execution timeline that can be awaited (IREE: `!stream.timepoint`)."""

    name = "stream.timepoint"


ATTRS: list[type[Attribute]] = [ResourceType, TimepointType]
