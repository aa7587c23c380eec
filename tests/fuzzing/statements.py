"""The statements of MLIR text: operations with their regions, found by lines and brackets alone."""

from __future__ import annotations

import re
from dataclasses import dataclass

_STRING = re.compile(r'"(?:[^"\\\n]|\\.)*"')
_START = re.compile(
    r'\s*(?:%[\w$.\-]+(?::\d+)?(?:,\s*%[\w$.\-]+(?::\d+)?)*\s*=\s*)?"?[a-z_]\w*[\w.]*'
)
_RESULT = re.compile(r"\s*(%[\w$.\-]+(?::\d+)?(?:,\s*%[\w$.\-]+(?::\d+)?)*)\s*=")
_TYPED = re.compile(r"(%[\w$.\-]+)\s*:\s*([^,(){}]+?(?:\)|(?=[,(){}])))")
_TERMINATOR = re.compile(
    r"\s*(?:func\.)?(?:return|\w+\.yield|\w+\.return|cf\.\w+|scf\.condition)\b"
)

NAME = re.compile(r"%[\w$.\-]+")


@dataclass(frozen=True)
class Statement:
    """Lines `start` to `end` (exclusive) of a text, which are one operation."""

    start: int
    end: int


def statements(lines: list[str]) -> list[Statement]:
    """Each operation of a text, an outer one before those that are in it."""
    depths: list[int] = []
    for line in lines:
        plain = _STRING.sub("", line)
        opened = sum(plain.count(c) for c in "([{")
        depths.append(opened - sum(plain.count(c) for c in ")]}"))
    found: list[Statement] = []
    for start, line in enumerate(lines):
        if not _START.match(line) or line.lstrip().startswith(("else", "do ", "do{")):
            continue
        depth = 0
        for end in range(start, len(lines)):
            depth += depths[end]
            if depth <= 0:
                found.append(Statement(start, end + 1))
                break
    return found


def is_terminator(line: str) -> bool:
    """Whether a line begins an op that ends a block."""
    return _TERMINATOR.match(line) is not None


def results(line: str) -> list[str]:
    """The names of the results that a line defines."""
    found = _RESULT.match(line)
    return [] if found is None else NAME.findall(found[1])


def typed_values(text: str) -> dict[str, str]:
    """The values whose type the text states beside them: arguments, and results of one type."""
    found = {m[1]: m[2].strip() for m in _TYPED.finditer(text)}
    for line in text.splitlines():
        names = results(line)
        if len(names) == 1 and line.rstrip()[-1:] not in "{(,":
            kind = re.split(r"->|\bto\b|\binto\b|:", line)[-1].strip()
            found.setdefault(names[0], kind)
    return found
