"""
Repairs of xDSL's reading and printing of float constants.

In a `dense<...>` of floats an integer in hexadecimal is the bits of a float (that is how MLIR
prints NaN and infinity); xDSL reads it as a number. And xDSL prints infinities of the small float
types as `inf`, which nothing reads.
"""

from __future__ import annotations

import math
from functools import cache

from xdsl.dialects.builtin import AnyFloat, ComplexType
from xdsl.ir import Attribute
from xdsl.parser import AttrParser
from xdsl.printer import Printer


def _float_of_bits(parser: AttrParser, text: str, type_: AnyFloat, span) -> float:
    number = int(text, 16)
    if number >> (8 * type_.compile_time_size):
        parser.raise_error(f"hexadecimal float constant out of range for {type_}", span)
    return next(iter(type_.iter_unpack(number.to_bytes(type_.compile_time_size, "little"))))


@cache
def patch() -> None:
    """Repair xDSL's parser and printer of float constants in place, once."""
    element = AttrParser._TensorLiteralElement
    original = element.to_type

    def to_type(self, parser: AttrParser, type: Attribute):
        text = self.span.text
        if isinstance(type, AnyFloat) and text[:2].lower() == "0x":
            return _float_of_bits(parser, text, type, self.span)
        if isinstance(type, ComplexType) and not isinstance(self.value, tuple):
            parser.raise_error("expected a complex literal", self.span)
        return original(self, parser, type)

    element.to_type = to_type  # type: ignore[method-assign]

    print_float = Printer.print_float

    def print_float_of_any_type(self: Printer, value: float, type: AnyFloat) -> None:
        if math.isfinite(value):
            print_float(self, value, type)
            return
        raw = type.pack([value])
        self.print_string(f"0x{int.from_bytes(raw, 'little'):0{2 * len(raw)}X}")

    Printer.print_float = print_float_of_any_type  # type: ignore[method-assign]


OPS: list = []
