"""
Patches of xDSL's float constants, string lexing and affine expressions.

In a `dense<...>` of floats, MLIR prints NaN and infinity as a hexadecimal integer: the float's
bits. xDSL parses it as a number. xDSL also prints infinities of small float types as `inf`, which
no parser accepts.

xDSL's regular expression for strings backtracks exponentially on an unterminated string. `STRING`
matches the same strings with possessive quantifiers.

MLIR's affine expressions may multiply and divide by a symbol (`s0 + s1 * s2`: an index with a
dynamic stride). xDSL can represent this, but its operators raise NotImplementedError.
"""

from __future__ import annotations

import math
import re
from functools import cache

from xdsl.dialects.builtin import AnyFloat, ComplexType
from xdsl.ir import Attribute
from xdsl.ir.affine import AffineBinaryOpExpr, AffineBinaryOpKind, AffineExpr
from xdsl.parser import AttrParser
from xdsl.printer import Printer
from xdsl.utils.mlir_lexer import MLIRLexer

from . import _core

STRING = r'"(?:[^"\\\n\v\f]++|\\(?:["nt\\]|[0-9A-Fa-f]{2}))*+"'
"""String literal of xDSL's lexer, with possessive quantifiers (no backtracking)."""


def _float_of_bits(parser: AttrParser, text: str, type_: AnyFloat, span) -> float:
    number = int(text, 16)
    if number >> (8 * type_.compile_time_size):
        parser.raise_error(f"hexadecimal float constant out of range for {type_}", span)
    return next(iter(type_.iter_unpack(number.to_bytes(type_.compile_time_size, "little"))))


def _allow_symbols(method: str, kind: AffineBinaryOpKind) -> None:
    original = getattr(AffineExpr, method)

    def operator(self: AffineExpr, other: AffineExpr | int) -> AffineExpr:
        try:
            return original(self, other)
        except NotImplementedError:
            assert isinstance(other, AffineExpr)
            return AffineBinaryOpExpr(kind, self, other)

    setattr(AffineExpr, method, operator)


@cache
def patch() -> None:
    """Patches xDSL's IR classes, float constants, string lexing and affine operators, once."""
    _core.patch()
    _allow_symbols("__mul__", AffineBinaryOpKind.Mul)
    _allow_symbols("__floordiv__", AffineBinaryOpKind.FloorDiv)
    _allow_symbols("__mod__", AffineBinaryOpKind.Mod)
    _allow_symbols("ceil_div", AffineBinaryOpKind.CeilDiv)
    MLIRLexer._unescaped_characters_regex = re.compile(STRING)
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
