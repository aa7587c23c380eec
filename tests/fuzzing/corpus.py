"""
The texts that the fuzzer mutates.

They come from the lit files, the examples, the string constants of the tests, and `torch_modules/`,
which holds small modules that `torch.export` made. A file is split at `// -----`, and each function
of a part is a text of its own together with the aliases and the symbols that it names: small texts
compile fast, and a mutation of one hits what matters more often.
"""

from __future__ import annotations

import ast
import hashlib
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

REPOSITORY = Path(__file__).parents[2]
TORCH_MODULES = Path(__file__).parent / "torch_modules"

MAX_LENGTH = 6000
"""Maximum length of a text in characters: longer texts take too long to compile."""

LATE = (
    "codegen",
    "stream",
    "devices",
    "gpu",
    "nvgpu",
    "nvvm",
    "vector",
    "memref",
    "panel",
    "x86vector",
)
"""Folders of `filecheck/` whose IR the input phase refuses: it is mutated less often."""

_COMMENT = re.compile(r"^\s*//.*\n?", re.MULTILINE)
_OPENER = re.compile(r"[(\[{]")
_CLOSER = re.compile(r"[)\]}]")
_STRING = re.compile(r'"(?:[^"\\\n]|\\.)*"')
_NAME = re.compile(r"[#!@][A-Za-z_][\w$.]*")
_DEFINED = re.compile(r"@[A-Za-z_][\w$.]*")


@dataclass
class Corpus:
    """Texts that the input phase takes, and texts of later phases."""

    early: list[str]
    late: list[str]

    @property
    def digest(self) -> str:
        """A short hash: the Nth mutated text is the same where it is the same."""
        data = "\0".join([*self.early, "", *self.late]).encode()
        return hashlib.sha256(data).hexdigest()[:12]


def load(extra: Iterable[Path] = ()) -> Corpus:
    """The corpus of the repository, and of the `*.mlir` files in further folders."""
    early: dict[str, str] = {}
    late: dict[str, str] = {}
    for path in sorted((REPOSITORY / "filecheck").rglob("*.mlir")):
        into = late if set(path.parts) & set(LATE) else early
        _add(into, path.read_text())
    folders = (REPOSITORY / "examples", TORCH_MODULES, *extra)
    for folder in folders:
        for path in sorted(folder.rglob("*.mlir")):
            _add(early, path.read_text(errors="replace"))
    for path in sorted((REPOSITORY / "tests").rglob("*.py")):
        for text in _strings(path):
            _add(early, text)
    return Corpus(list(early.values()), [late[key] for key in late if key not in early])


def _strings(path: Path) -> Iterator[str]:
    """The string constants of a Python file that hold functions, no templates."""
    source = path.read_text()
    if "func.func" not in source:
        return
    tree = ast.parse(source)
    inside = {
        id(part)
        for node in ast.walk(tree)
        if isinstance(node, ast.JoinedStr)
        for part in node.values
    }
    for node in ast.walk(tree):
        if not isinstance(node, ast.Constant) or id(node) in inside:
            continue
        text = node.value
        # `{}` and `{{` are of str.format, `%s` is of the operator `%`.
        if isinstance(text, str) and "func.func" in text and "}" in text:
            if not re.search(r"\{\{|\{\w*\}|%\(\w+\)s", text):
                yield text


def _add(into: dict[str, str], source: str) -> None:
    for part in source.split("// -----"):
        text = _COMMENT.sub("", part).strip() + "\n"
        for each in (*_functions(text), text):
            if 10 < len(each) <= MAX_LENGTH:
                into.setdefault(" ".join(each.split()), each)


def _functions(text: str) -> Iterator[str]:
    """Each top-level function of a text, with the aliases and the symbols that it names."""
    pieces = top_level(text)
    functions = [p for p in pieces if p.startswith("func.func")]
    if len(pieces) < 2:
        return
    names = {_defines(piece): piece for piece in pieces}
    for function in functions:
        needed, todo = {function}, [function]
        while todo:
            for name in _NAME.findall(todo.pop()):
                piece = names.get(name)
                if piece is not None and piece not in needed:
                    needed.add(piece)
                    todo.append(piece)
        yield "".join(piece for piece in pieces if piece in needed)


def _defines(piece: str) -> str:
    """The alias or the symbol that a top-level piece defines."""
    if piece[:1] in "#!":
        return re.split(r"[\s=]", piece, maxsplit=1)[0]
    found = _DEFINED.search(piece)
    return "" if found is None else found[0]


def top_level(text: str) -> list[str]:
    """The top-level pieces of a text: lines up to where brackets are balanced."""
    pieces: list[str] = []
    depth, lines = 0, list[str]()
    for line in text.splitlines(keepends=True):
        lines.append(line)
        plain = _STRING.sub("", line)
        depth += len(_OPENER.findall(plain)) - len(_CLOSER.findall(plain))
        if depth <= 0 and line.strip():
            pieces.append("".join(lines))
            depth, lines = 0, []
    if lines:
        pieces.append("".join(lines))
    return pieces
