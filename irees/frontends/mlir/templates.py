"""
Clones ops instead of parsing them: op texts that differ only in value names give equal ops.

A network repeats its layers, and xDSL's parser takes a millisecond per `linalg.generic`. The text
of each parsed op becomes a template: the text pieces between value names, and the role of each
name. If the text of a later op matches a template, the op is a clone with other operands.

    %5 = linalg.generic {..} ins(%3 : T) outs(%4 : T) { ^bb0(%in: f32, %out: f32): .. } -> T
      =>  "", r0, " = linalg.generic {..} ins(", o0, " : T) outs(", o1, " : T) { ^bb0(", i0, ..

The text is parsed as usual if the names do not fit: if an operand is unknown or has another type,
if the name of a result or an inner value is taken, or if an inner value has another name hint.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice

from xdsl.dialects.builtin import FileLineColLoc
from xdsl.ir import BlockArgument, Operation, OpResult, SSAValue

NAME = re.compile(r"%[\w$.-]+(?:#[0-9]+)?")
_AFTER = re.compile(r"[ \t]*\n\s*(?:%|return\b)")
"""Text after a complete op: the next line starts another op."""
_STRING = re.compile(r'"[^"\\\n]*"')
_UNUSUAL = re.compile(r'["]|//|\bloc\(')
"""Text, after plain strings are removed, that templates exclude: strings, comments, locations."""

DIALECTS = ("linalg.", "tensor.")
LONGEST = 1 << 14
"""Maximum length, in characters, of the text of a template."""

Values = Mapping[str, Sequence[SSAValue]]
"""The values in scope by name, without `%`."""


def value_of(name: str, values: Values) -> SSAValue | None:
    """Returns the value of `%name` or `%name#1`, or None if there is none."""
    base, _, index = name[1:].partition("#")
    found = values.get(base, ())
    if not index:
        return found[0] if len(found) == 1 else None
    return found[int(index)] if int(index) < len(found) else None


def hint_of(name: str) -> str | None:
    """Returns the name hint of a value that is defined as `%name`."""
    return SSAValue.extract_valid_name(name[1:]) if SSAValue.is_valid_name(name[1:]) else None


@dataclass
class Template:
    """An op and the pieces of its text between value names, numbered by first occurrence."""

    op: Operation
    pieces: list[str]
    numbers: list[int]
    results: list[int]
    """The name numbers of the op's results."""
    hints: list[str | None]
    """Name hint by name number."""
    outer: dict[int, SSAValue]
    """Name number => value, for values defined outside of the op."""
    lines: list[tuple[int, int]]
    """Line, relative to the first, and column of each nested op."""

    def fit(self, text: str, start: int) -> tuple[list[str], int] | None:
        """Matches the text at `start`; returns its names by number, and the end offset."""
        place, names = start, list[str]()
        known: dict[int, str] = {}
        for piece, number in zip(self.pieces, self.numbers, strict=False):
            if not text.startswith(piece, place):
                return None
            found = NAME.match(text, place + len(piece))
            if found is None or known.setdefault(number, found[0]) != found[0]:
                return None
            if number == len(names):
                names.append(found[0])
            place = found.end()
        if not text.startswith(self.pieces[-1], place):
            return None
        end = place + len(self.pieces[-1])
        return (names, end) if _AFTER.match(text, end) else None

    def clone(self, names: Sequence[str], values: Values) -> Operation | None:
        """Returns a clone of the op with operands of these names, or None if they do not fit."""
        mapper: dict[SSAValue, SSAValue] = {}
        inner: set[str] = set()
        for number, name in enumerate(names):
            known = self.outer.get(number)
            if known is None:
                other = number not in self.results and hint_of(name) != self.hints[number]
                if other or name[1:] in values or name in inner:
                    return None
                inner.add(name)
                continue
            value = value_of(name, values)
            if value is None or value.type != known.type or name in inner:
                return None
            mapper[known] = value
        return self.op.clone(mapper)


@dataclass
class Templates:
    """The templates of a text, by their first line without names."""

    text: str
    known: dict[str, list[Template]] = field(default_factory=dict[str, list[Template]])

    def find(self, start: int, values: Values) -> tuple[Template, list[str], int, Operation] | None:
        """Returns a matching template, the names, the end of the text, and the cloned op."""
        for template in self.known.get(self._key(start), ()):
            fit = template.fit(self.text, start)
            if fit is not None and (op := template.clone(fit[0], values)) is not None:
                return template, *fit, op
        return None

    def add(self, op: Operation, start: int, end: int, values: Values) -> None:
        """Adds a template for an op that was parsed with these values in scope, if possible."""
        text = self.text[start : min(end, start + LONGEST)].rstrip()
        if not op.name.startswith(DIALECTS) or not text.startswith("%"):
            return
        if _UNUSUAL.search(_STRING.sub("", text)) or any("%" in s for s in _STRING.findall(text)):
            return
        if end - start > LONGEST or not _AFTER.match(self.text, start + len(text)):
            return
        template = self._template(op, text, values)
        if template is not None:
            self.known.setdefault(self._key(start), []).append(template)

    def _key(self, start: int) -> str:
        return NAME.sub("%", self.text[start : self.text.find("\n", start)])

    def _template(self, op: Operation, text: str, values: Values) -> Template | None:
        places = list(NAME.finditer(text))
        numbers: dict[str, int] = {}
        order = [numbers.setdefault(place[0], len(numbers)) for place in places]
        starts, ends = [p.start() for p in places], [p.end() for p in places]
        bounds = zip([0, *ends], [*starts, len(text)], strict=True)
        head = text[: text.index("=")]
        results = [m[0] for m in NAME.finditer(head)]
        outer: dict[int, SSAValue] = {}
        for name, number in numbers.items():
            if name not in results and (value := value_of(name, values)) is not None:
                outer[number] = value
        lines = places_of(op, text)
        if ":" in head or lines is None or not uses_only(op, outer):
            return None
        pieces = [text[a:b] for a, b in bounds]
        hints = [hint_of(name) for name in numbers]
        return Template(op, pieces, order, [numbers[r] for r in results], hints, outer, lines)


def uses_only(op: Operation, outer: Mapping[int, SSAValue]) -> bool:
    """Whether an op uses exactly these values from outside, and all are defined."""
    inside = set(op.walk())
    used = {value for each in inside for value in each.operands}
    if not all(isinstance(value, OpResult | BlockArgument) for value in used):
        return False
    owners = {value: value.owner for value in used}
    around = {
        value
        for value, owner in owners.items()
        if (owner if isinstance(owner, Operation) else owner.parent_op()) not in inside
    }
    return around == set(outer.values())


def places_of(op: Operation, text: str) -> list[tuple[int, int]] | None:
    """Returns line and column of each nested op, or None if one does not begin its line."""
    lines, own = text.split("\n"), op.location
    found: list[tuple[int, int]] = []
    for inner in islice(op.walk(), 1, None):
        place = inner.location
        if not isinstance(own, FileLineColLoc) or not isinstance(place, FileLineColLoc):
            return None
        line, column = place.line.data - own.line.data, place.column.data
        if not 0 < line < len(lines) or lines[line][: column - 1].strip():
            return None
        found.append((line, column))
    return found
