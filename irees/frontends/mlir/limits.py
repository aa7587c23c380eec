"""
The front door: text that would exhaust the parser's stack, time or memory is refused here.

One pass over the tokens counts how deeply brackets nest and how long number literals are. xDSL's
parser is recursive, so depth is stack; Python refuses to read numbers of thousands of digits.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from irees.errors import LimitExceededError

MAX_DEPTH = 64
"""How deeply brackets of all kinds may nest."""

MAX_DIGITS = 400
"""How long one number may be; 2^1024 has 309 digits."""

MAX_SPLAT_BYTES = 1 << 20
"""A splat that takes more than this stays one element in memory."""

_TOKENS = re.compile(
    r'"(?:[^"\\\n]|\\.)*"|//[^\n]*|->|>=|<=|[(\[{<]|[)\]}>]|(?<![\w"])-?[0-9]'
    rf"{{{MAX_DIGITS + 1},}}"
)
_OPENING = frozenset("([{<")
_CLOSING = frozenset(")]}>")


def check_limits(text: str, place: Callable[[int], str]) -> None:
    """
    Raise a LimitExceededError for text that nests deeper, or has longer numbers, than is
    allowed.
    """
    depth = 0
    for match in _TOKENS.finditer(text):
        token = match.group()
        if token in _OPENING:
            depth += 1
            if depth > MAX_DEPTH:
                raise LimitExceededError(
                    f"brackets nest deeper than {MAX_DEPTH}", location=place(match.start())
                )
        elif token in _CLOSING:
            depth = max(0, depth - 1)
        elif len(token) > MAX_DIGITS and token[-1].isdigit() and token[0] not in '"/':
            raise LimitExceededError(
                f"a number has more than {MAX_DIGITS} digits", location=place(match.start())
            )
