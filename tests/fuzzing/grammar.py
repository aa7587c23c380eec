"""
Edits of operations, types, maps and attributes: texts that mostly still parse.

Each edit takes a random generator, the text and a donor, which is another text of the corpus, and
returns the changed text; None where there is nothing to change.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from random import Random

from tests.fuzzing.statements import (
    NAME,
    Statement,
    is_terminator,
    results,
    statements,
    typed_values,
)
from tests.fuzzing.tokens import ELEMENTS, HOSTILE

Edit = Callable[[Random, str, str], str | None]

_TYPE = re.compile(
    r"(?:!?[\w.]+|tensor|memref|vector)<(?:[^<>\n]|<(?:[^<>\n]|<[^<>\n]*>)*>)*>|\b(?:f32|f16|i32|i64|i1|index)\b"
)
_SHAPED = re.compile(r"\b(?:tensor|memref|vector)<(?:[^<>\n]|<[^<>\n]*>)*>")
_MAP = re.compile(r"affine_map<(?:->|>=|[^<>\n])*>")
_MAP_RESULTS = re.compile(r"->\s*\(([^()]*)\)>")
_ATTRIBUTE = re.compile(
    r"\b([A-Za-z_]\w*)\s*=\s*(\[[^\[\]{}\n]*\]|#[\w.]+(?:<[^<>\n]*>)?|[\w.\"-]+(?:\s*:\s*\w+)?)"
)
_LIST = re.compile(r"(?<=[\[(])[^\[\](){}\n]*,[^\[\](){}\n]*(?=[\])])")
_OP = re.compile(r"\b(?:[a-z_]\w*\.)+[a-z_0-9]+\b")
_DIM = re.compile(r"(?<=[<x])(\d+|\?)(?=x)")
_ELEMENT = re.compile(r"(?<=x)(?:[su]?i\d+|b?f\d+)\b|\b(?:i1|i8|i16|i32|i64|f16|bf16|f32|f64)\b")


_CONSTANT = re.compile(r"(?<=constant )-?\d[\w.+\-]*(?= :)|(?<=dense<)-?\d[\w.+\-]*(?=>)")
_DEFINES = re.compile(r"(?::\d+)?\s*[=:]|(?::\d+)?\s*,\s*%[\w$.\-]+\s*=")
_ALIAS = re.compile(r"^([#!][A-Za-z_]\w*) = (.*)$", re.MULTILINE)
_BLOCK = re.compile(r"^\s*\^\w+\(.*\):", re.MULTILINE)
_CARRIED = re.compile(r"(?:for|[(,]) ?(%[\w$.\-]+) = %?")
_IN_LIST = re.compile(r"(?<=[\[, (])-?\d+(?=[\], )])")


@dataclass(frozen=True)
class Alike:
    """Words that may stand in one another's place."""

    words: tuple[str, ...]

    @property
    def pattern(self) -> re.Pattern[str]:
        """What finds one of them."""
        return _pattern(self.words)


@cache
def _pattern(words: tuple[str, ...]) -> re.Pattern[str]:
    return re.compile(rf"(?<![\w.])(?:{'|'.join(map(re.escape, words))})(?![\w.])")


def _family(dialect: str, names: str) -> Alike:
    return Alike(tuple(f"{dialect}.{name}" for name in names.split()))


ALIKE = (
    _family("arith", "addf subf mulf divf remf maximumf minimumf maxnumf minnumf"),
    _family("arith", "addi subi muli divsi divui remsi remui floordivsi ceildivsi ceildivui andi"
            " ori xori shli shrsi shrui maxsi minsi maxui minui"),
    _family("math", "exp exp2 log log2 sqrt rsqrt tanh erf sin cos absf ceil floor round roundeven"),
    _family("linalg", "exp log abs ceil floor negf reciprocal round sqrt rsqrt square tanh erf"),
    _family("linalg", "add sub mul div max min powf"),
    _family("linalg", "matmul matmul_transpose_a matmul_transpose_b"),
    _family("tensor", "collapse_shape expand_shape"),
    Alike(tuple("eq ne slt sle sgt sge ult ule ugt uge".split())),
    Alike(tuple("oeq ogt oge olt ole one ord ueq ugt uge ult ule une uno".split())),
    Alike(('"parallel"', '"reduction"', '"window"')),
    Alike(("true", "false")),
)  # fmt: skip


def ops_of(text: str) -> list[str]:
    """The names of the ops in a text, in order."""
    return list(dict.fromkeys(_OP.findall(text)))


def _replaced(rng: Random, pattern: re.Pattern[str], text: str, new: str) -> str | None:
    """The text with one match of a pattern, or all that are equal to it, replaced."""
    found = list(pattern.finditer(text))
    if not found:
        return None
    match = rng.choice(found)
    if rng.random() < 0.5:
        return text[: match.start()] + new + text[match.end() :]
    return re.sub(rf"(?<![\w.]){re.escape(match[0])}(?![\w.])", lambda _: new, text)


def change_type(rng: Random, text: str, donor: str) -> str | None:
    """Replaces a type, here or everywhere, by another type of the text or of the donor."""
    types = _TYPE.findall(text if rng.random() < 0.6 else donor)
    return _replaced(rng, _TYPE, text, rng.choice(types)) if types else None


def change_dim(rng: Random, text: str, donor: str) -> str | None:
    """Changes one size, or all that are the same: sizes that agreed still do."""
    new = rng.choice(("?", "?", "0", "1", "2", "3", "5", "16", "17", rng.choice(HOSTILE)))
    found = _DIM.findall(text)
    if not found:
        return None
    if rng.random() < 0.5:
        return _replaced(rng, _DIM, text, new)
    old = rng.choice(found)
    return re.sub(rf"(?<=[<x]){re.escape(old)}(?=x)", new, text)


def change_element(rng: Random, text: str, donor: str) -> str | None:
    """Changes an element type, here or everywhere."""
    found = _ELEMENT.findall(text)
    if not found:
        return None
    new = rng.choice(ELEMENTS)
    if rng.random() < 0.4:
        return _replaced(rng, _ELEMENT, text, new)
    return re.sub(rf"(?<![A-Za-z_0-9]){rng.choice(found)}\b|(?<=x){rng.choice(found)}\b", new, text)


def change_rank(rng: Random, text: str, donor: str) -> str | None:
    """Adds a dim to a shaped type, or drops one, here or everywhere."""
    found = _SHAPED.findall(text)
    if not found:
        return None
    old = rng.choice(found)
    head, _, rest = old.partition("<")
    dims = rest[:-1].split("x")
    if rng.random() < 0.5:
        dims.insert(rng.randrange(len(dims)), rng.choice(("1", "?", "4")))
    else:
        dims.pop(rng.randrange(len(dims)))
    return _replaced(rng, re.compile(re.escape(old)), text, f"{head}<{'x'.join(dims)}>")


def change_map(rng: Random, text: str, donor: str) -> str | None:
    """Replaces an affine map by another one, or changes one of its results."""
    found = list(_MAP.finditer(text))
    if not found:
        return None
    match = rng.choice(found)
    new = rng.choice(_MAP.findall(text if rng.random() < 0.7 else donor) or [match[0]])
    if rng.random() < 0.7:
        new = _changed_map(rng, match[0])
    return text[: match.start()] + new + text[match.end() :]


def _changed_map(rng: Random, text: str) -> str:
    found = _MAP_RESULTS.search(text)
    if found is None:
        return text
    dims = re.findall(r"\w+", text[text.find("(") : text.find(")")]) or ["0"]
    exprs = [e.strip() for e in found[1].split(",") if e.strip()]
    where = rng.randrange(len(exprs) + 1)
    one, two, number = rng.choice(dims), rng.choice(dims), rng.choice((*HOSTILE[:13], "8", "5"))
    made = rng.choice(
        (one, number, f"{one} + {two}", f"{one} + {number}", f"{one} * {number}", f"-{one}",
         f"{one} floordiv {number}", f"{one} mod {number}", f"{one} ceildiv {number}",
         f"{one} * {two}", f"{one} - {two}", f"({one} * 2 + {two}) mod {number}")
    )  # fmt: skip
    kind = rng.randrange(4)
    if kind == 0:
        exprs.insert(where, made)
    elif exprs and kind == 1:
        exprs.pop(where % len(exprs))
    elif exprs and kind == 2:
        exprs[where % len(exprs)] = made
    else:
        rng.shuffle(exprs)
    return text[: found.start()] + f"-> ({', '.join(exprs)})>" + text[found.end() :]


def change_attribute(rng: Random, text: str, donor: str) -> str | None:
    """Changes the value of `key = value`, or drops it, or takes it from the donor."""
    found = list(_ATTRIBUTE.finditer(text))
    if not found:
        return None
    match = rng.choice(found)
    kind = rng.randrange(4)
    other = rng.choice(list(_ATTRIBUTE.finditer(donor)) or found)
    if kind == 0:
        new = ""
    elif kind == 1:
        new = f"{match[1]} = {other[2]}"
    elif kind == 2:
        new = f"{match[1]} = {rng.choice((*HOSTILE, 'true', '[]', '{}', 'unit', '[1, 0]', '[-1]'))}"
    else:
        new = f"{match[0]}, {other[0]}"
    return text[: match.start()] + new + text[match.end() :]


def change_constant(rng: Random, text: str, donor: str) -> str | None:
    """Replaces the number of a constant, or one in a list of numbers."""
    pattern = _CONSTANT if rng.random() < 0.6 else _IN_LIST
    found = list(pattern.finditer(text))
    if not found:
        return None
    match = rng.choice(found)
    new = rng.choice(("0", "1", "2", "3", "-1", rng.choice(HOSTILE)))
    if "." in match[0]:
        new = rng.choice(("0.0", "-0.0", "1.0", "1.0e38", "-1.0e300", "0x7F800000", "1.0e-40"))
    return text[: match.start()] + new + text[match.end() :]


def change_alike(rng: Random, text: str, donor: str) -> str | None:
    """Replaces a word by one that may stand in the same place: ops of one signature, kinds."""
    found = [(match, group) for group in ALIKE for match in group.pattern.finditer(text)]
    if not found:
        return None
    match, group = rng.choice(found)
    return text[: match.start()] + rng.choice(group.words) + text[match.end() :]


def change_list(rng: Random, text: str, donor: str) -> str | None:
    """Drops, doubles, swaps or replaces an item of a list: operands, types, permutations."""
    found = list(_LIST.finditer(text))
    if not found:
        return None
    match = rng.choice(found)
    items = [item.strip() for item in match[0].split(",")]
    where = rng.randrange(len(items))
    kind = rng.randrange(4)
    if kind == 0:
        items.pop(where)
    elif kind == 1:
        items.insert(where, rng.choice(items))
    elif kind == 2:
        rng.shuffle(items)
    else:
        items[where] = rng.choice((*items, rng.choice(HOSTILE)))
    return text[: match.start()] + ", ".join(items) + text[match.end() :]


def change_operand(rng: Random, text: str, donor: str) -> str | None:
    """Replaces one use of a value by another value, mostly one above of the same type."""
    found = list(NAME.finditer(text))
    uses = [m for m in found if not _DEFINES.match(text, m.end())]
    if not uses:
        return None
    match = rng.choice(uses)
    return _with_operand(rng, text, match) or text


def _with_operand(rng: Random, text: str, match: re.Match[str]) -> str | None:
    """The text with another value in the place of a use."""
    above = dict.fromkeys(NAME.findall(text[: match.start()]))
    types = typed_values(text)
    same = [v for v in above if v != match[0] and types.get(v) == types.get(match[0])]
    new = rng.choice(same) if same and rng.random() < 0.85 else rng.choice([*above, match[0]])
    return text[: match.start()] + new + text[match.end() :]


def change_op(rng: Random, text: str, donor: str) -> str | None:
    """Replaces the name of an op by that of another one, mostly of its dialect."""
    found = list(_OP.finditer(text))
    if not found:
        return None
    match = rng.choice(found)
    names = _OP.findall(text + donor)
    dialect = match[0].partition(".")[0]
    alike = [n for n in names if n.startswith(dialect + ".") and n != match[0]]
    new = rng.choice(alike) if alike and rng.random() < 0.7 else rng.choice(names)
    if rng.random() < 0.05:
        new = rng.choice(("custom.op", "test.op", "arith.nothing"))
    return text[: match.start()] + new + text[match.end() :]


def _pick(rng: Random, lines: list[str]) -> Statement | None:
    found = statements(lines)
    heads = ("func.func", "util.func", "module", "builtin.module")
    inner = [s for s in found if not lines[s.start].startswith(heads)]
    inner = [s for s in inner if not is_terminator(lines[s.start])] or inner
    return rng.choice(inner) if inner else rng.choice(found) if found else None


def delete_op(rng: Random, text: str, donor: str) -> str | None:
    """Deletes an operation with its regions; mostly, other values stand in for its results."""
    lines = text.splitlines(keepends=True)
    op = _pick(rng, lines)
    if op is None:
        return None
    gone, types = results(lines[op.start]), typed_values(text)
    new = "".join(lines[: op.start] + lines[op.end :])
    for name in gone if rng.random() < 0.8 else ():
        above = dict.fromkeys(NAME.findall("".join(lines[: op.start])))
        same = [v for v in above if types.get(v) == types.get(name)]
        if same:
            other = rng.choice(same)
            new = re.sub(rf"{re.escape(name)}(?:#\d+)?(?![\w.])", other, new)
    return new


def unwrap_op(rng: Random, text: str, donor: str) -> str | None:
    """Empties the regions of an operation, or takes their content in its place."""
    lines = text.splitlines(keepends=True)
    long = [s for s in statements(lines) if s.end - s.start > 2]
    if not long:
        return None
    op = rng.choice(long)
    first, last = lines[op.start], lines[op.end - 1]
    middle = [] if rng.random() < 0.6 else lines[op.start + 1 : op.end - 1]
    outer = [first, *middle, last] if not middle else middle
    return "".join([*lines[: op.start], *outer, *lines[op.end :]])


def move_op(rng: Random, text: str, donor: str) -> str | None:
    """Moves an operation to another line."""
    lines = text.splitlines(keepends=True)
    op = _pick(rng, lines)
    if op is None:
        return None
    moved, rest = lines[op.start : op.end], lines[: op.start] + lines[op.end :]
    where = rng.randrange(len(rest) + 1)
    return "".join([*rest[:where], *moved, *rest[where:]])


def drop_terminator(rng: Random, text: str, donor: str) -> str | None:
    """Deletes, or doubles, the line of an op that ends a block."""
    lines = text.splitlines(keepends=True)
    found = [i for i, line in enumerate(lines) if is_terminator(line)]
    if not found:
        return None
    where = rng.choice(found)
    kept = [] if rng.random() < 0.7 else [lines[where]] * 2
    return "".join([*lines[:where], *kept, *lines[where + 1 :]])


TRIES = 12
"""How many operations of the donor are tried for one whose operands the text has."""


def splice_op(rng: Random, text: str, donor: str) -> str | None:
    """Inserts an operation of the donor, with operands of the text and fresh results."""
    given, lines = donor.splitlines(keepends=True), text.splitlines(keepends=True)
    at = _pick(rng, lines)
    here, there = typed_values(text), typed_values(donor)
    kinds = set(here.values())
    for _ in range(TRIES):
        op = _pick(rng, given)
        if op is None or at is None:
            return None
        body = "".join(given[op.start : op.end])
        for name, meaning in _ALIAS.findall(donor):
            body = re.sub(rf"{name}(?![\w.])", lambda _, m=meaning: m, body)
        inside = {name for line in given[op.start + 1 : op.end] for name in results(line)}
        inside |= {name for block in _BLOCK.findall(body) for name in NAME.findall(block)}
        inside |= set(_CARRIED.findall(body)) - set(results(given[op.start]))
        free = set(NAME.findall(body)) - inside - set(results(given[op.start]))
        if all(there.get(name) in kinds for name in free):
            break
    renamed: dict[str, str] = {}
    for name in dict.fromkeys(NAME.findall(body)):
        if name in inside or name in results(given[op.start]):
            renamed[name] = f"%z{name[1:]}"
        else:
            same = [v for v, kind in here.items() if kind == there.get(name)]
            renamed[name] = rng.choice(same or list(here) or [name])
    body = NAME.sub(lambda m: renamed[m[0]], body)
    new = lines[: at.start] + [body] + lines[at.start :]
    made = [renamed[name] for name in results(given[op.start]) if name in renamed]
    if made and rng.random() < 0.7:
        rest = "".join(new[at.start + 1 :])
        uses = list(NAME.finditer(rest))
        if uses:
            use = rng.choice(uses)
            rest = rest[: use.start()] + made[0] + rest[use.end() :]
            new = [*new[: at.start + 1], rest]
    return "".join(new)


def append_function(rng: Random, text: str, donor: str) -> str | None:
    """Puts the donor behind the text, mostly with symbols and aliases of its own."""
    if len(text) + len(donor) > 3000:
        return None
    if rng.random() < 0.7:
        donor = re.sub(r"([@#!])(?=[A-Za-z_]\w*(?![\w.]))", r"\1z_", donor)
    return text + donor


EDITS: tuple[Edit, ...] = (
    *(change_dim, change_constant, change_alike, change_map) * 4,
    *(change_element, change_list, change_operand, delete_op, splice_op) * 2,
    change_type, change_rank, change_attribute, change_op, unwrap_op, move_op,
    drop_terminator, append_function,
)  # fmt: skip
"""The edits; one that stands twice is twice as likely."""
