"""
A linear scan that rejects text that would exhaust the parser.

xDSL's parser is recursive, so bracket nesting consumes stack. Python refuses to parse numbers with
thousands of digits. An unterminated string makes xDSL's lexer backtrack.
"""

from __future__ import annotations

import re

from irees import limits
from irees.dialects.upstream.builtin import STRING
from irees.errors import ParseError

_TOKENS = re.compile(
    STRING + r'|"|//[^\n]*|->|>=|<=|[(\[{<]|[)\]}>]|(?<![\w"])-?(?:0x[0-9a-fA-F]{64,}|[0-9]{64,})'
)
"""Strings, unmatched quotes, comments, arrows, brackets, and long numbers."""

_OPENING = frozenset("([{<")
_CLOSING = frozenset(")]}>")


def scan(text: str, name: str) -> None:
    """
    Raises LimitExceededError for text with deeper nesting or longer numbers than `irees.limits`
    allows, and ParseError for a string that is not terminated in its line.
    """

    def place(offset: int) -> str:
        line = text.count("\n", 0, offset) + 1
        return f"{name}:{line}:{offset - text.rfind(chr(10), 0, offset)}"

    depth, deepest, digits = 0, limits.limit("nesting"), limits.limit("digits")
    for match in _TOKENS.finditer(text):
        token = match.group()
        if token in _OPENING:
            depth += 1
            if depth > deepest:
                raise limits.exceeded(
                    "nesting", f"brackets nest deeper than {deepest}", location=place(match.start())
                )
        elif token in _CLOSING:
            depth = max(0, depth - 1)
        elif token == '"':
            raise ParseError(
                "the string does not end, or has an unknown escape", location=place(match.start())
            )
        elif len(token) > digits and token[0] not in '"/':
            raise limits.exceeded(
                "digits",
                f"a number has more than {digits} digits",
                location=place(match.start()),
            )
