"""The tokens of MLIR text, as the mutator sees them: by kind, and with blanks kept between them."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass

TOKEN = re.compile(
    r"""
    (?P<blank>\s+|//[^\n]*)
  | (?P<string>"(?:[^"\\\n]|\\.)*")
  | (?P<times>(?<=[\d?\]])x(?=[\w?\[!]))
  | (?P<number>0x[0-9a-fA-F]+|\d+\.\d*(?:[eE][+-]?\d+)?|\d+)
  | (?P<value>%[\w$.\-]+(?:\#\d+)?)
  | (?P<block>\^\w+)
  | (?P<symbol>@[\w$.]+)
  | (?P<alias>[\#!][A-Za-z_][\w$.]*)
  | (?P<element>(?:[su]?i\d+|f\d\w*|bf16|index)\b)
  | (?P<word>[A-Za-z_$][\w$.]*)
  | (?P<mark>->|::|==|>=|<=|.)
    """,
    re.VERBOSE | re.DOTALL,
)

HOSTILE = (
    "0", "1", "-1", "2", "3", "7", "-2", "64", "65", "127", "255", "1024", "65536",
    "2147483647", "2147483648", "-2147483648", "4294967296", "1099511627776",
    "4611686018427387904", "9223372036854775807", "9223372036854775808", "-9223372036854775808",
    "18446744073709551616", "0x7FC00000", "0xFFFFFFFFFFFFFFFF", "1.0", "-0.0", "1.0e400", "?",
)  # fmt: skip
"""Numbers at the limits of their types."""

ELEMENTS = (
    "i1", "i4", "i8", "i16", "i32", "i64", "i128", "ui8", "si32", "f16", "bf16", "f32", "f64",
    "f80", "f128", "f8E4M3FN", "f8E5M2", "index", "none", "complex<f32>", "tuple<>", "!a.b", "tf32",
    "vector<4xf32>", "tensor<4xf32>", "memref<4xf32>",
)  # fmt: skip
"""Element types, those that may stand nowhere among them."""

MARKS = ("(", ")", "[", "]", "{", "}", "<", ">", ",", ":", "=", "->", "::", "-", "?", "x", "^", "#")
"""Punctuation."""


@dataclass(frozen=True)
class Token:
    """A token and its kind, one of the groups of `TOKEN`."""

    kind: str
    text: str


def tokenize(text: str) -> list[Token]:
    """The tokens of a text. Joined, they are the text."""
    return [Token(m.lastgroup or "mark", m[0]) for m in TOKEN.finditer(text)]


def vocabulary(texts: Iterable[str]) -> dict[str, list[str]]:
    """The distinct tokens of all texts, by kind."""
    found: defaultdict[str, dict[str, None]] = defaultdict(dict)
    for text in texts:
        for token in tokenize(text):
            found[token.kind][token.text] = None
    return {kind: list(words) for kind, words in found.items() if kind != "blank"}
