"""
Feeds MLIR's and IREE's own invalid files to irees, and counts the snippets that it refuses where
they say that the error is.

    python tests/conformance/invalid_files.py --mlir LLVM/mlir --iree IREE [--only TEXT] [--show]
    python tests/conformance/invalid_files.py --valid LLVM/mlir/test/Dialect IREE/tests

LLVM and IREE are checkouts; nothing of them is in this repository. Each file is split at `// -----`.
A snippet with `expected-error` is refused `in place` if the error names one of the expected lines.
A snippet is `not taken` if irees refuses it because it does not have an op, an attribute or a type
of it: its error says nothing about the rule that the snippet breaks. docs/lit_conformance.md has
the counts. `--valid` counts what the rules of `irees.dialects.rules` refuse of other files.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from dataclasses import asdict, dataclass
from itertools import chain
from pathlib import Path

MLIR_FILES = (
    "Affine/invalid", "Affine/load-store-invalid", "Arith/invalid", "Builtin/invalid",
    "Complex/invalid", "ControlFlow/invalid", "Func/invalid", "Linalg/invalid",
    "Linalg/elementwise/invalid", "Linalg/conv-interface-invalid",
    "Linalg/fill-interface-invalid", "MLProgram/invalid", "MemRef/invalid", "SCF/invalid",
    "Tensor/invalid", "Vector/invalid",
)  # fmt: skip
"""Below mlir/test/Dialect, of the dialects that programs for irees are in."""

IREE_FILES = (
    "Encoding/IR/test/invalid", "Flow/IR/test/dispatch_ops", "HAL/IR/test/interface_ops",
    "HAL/IR/test/invalid", "LinalgExt/IR/test/invalid", "Stream/IR/test/async_ops",
    "Stream/IR/test/executable_ops", "Stream/IR/test/tensor_ops", "TensorExt/IR/test/invalid",
    "Util/IR/test/list_ops", "Util/IR/test/op_verification",
)  # fmt: skip
"""Below compiler/src/iree/compiler/Dialect."""

EXPECTED = re.compile(r"expected-error(?:-re)?\s*(?:@(above|below|[+-]\d+))?")
UNKNOWN = re.compile(r"is not registered|unregistered|no operation|unknown (type|attribute)")
TIME_LIMIT_SECONDS = 600
LENGTH = 160


@dataclass(frozen=True)
class Snippet:
    """One section of a file, and the lines of the errors that it expects, from 1."""

    file: str
    first_line: int
    text: str
    lines: tuple[int, ...]
    unregistered: bool


@dataclass(frozen=True)
class Outcome:
    """What irees says of a snippet: `in place`, `elsewhere`, `not taken`, `accepted`, `escaped`."""

    file: str
    line: int
    kind: str
    said: str


def _place(lines: list[str], number: int, where: str | None) -> int:
    """The line of an error; `above` and `below` skip lines that expect something, as in MLIR."""
    step = {"above": -1, "below": 1}.get(where or "")
    if step is None:
        return number + int(where or 0)
    number += step
    while "// expected-" in lines[number - 1].replace("//  ", "// "):
        number += step
    return number


def snippets(root: Path, name: str) -> Iterator[Snippet]:
    """The sections of a file that expect an error."""
    whole = (root / f"{name}.mlir").read_text()
    unregistered = "allow-unregistered-dialect" in whole.partition("\n")[0]
    first = 1
    for text in re.split(r"^// -----.*$", whole, flags=re.MULTILINE):
        expected: set[int] = set()
        number = 0
        lines = text.split("\n")
        for number, line in enumerate(lines, 1):
            for found in EXPECTED.finditer(line):
                expected.add(_place(lines, number, found[1]))
        if expected:
            yield Snippet(name, first, text, tuple(sorted(expected)), unregistered)
        first += number - 1


def judge(snippet: Snippet) -> Outcome:
    """Parses and verifies one snippet."""
    from irees.dialects import get_context
    from irees.errors import IreesError, describe_location
    from irees.frontends.mlir import import_mlir

    context = get_context(allow_unregistered=snippet.unregistered)
    line = snippet.first_line + snippet.lines[0] - 1
    try:
        import_mlir(snippet.text.encode(), context, name="snippet")
    except IreesError as error:
        said, place = str(error), str(describe_location(error.location))
    except Exception as error:
        return Outcome(snippet.file, line, "escaped", repr(error)[:LENGTH])
    else:
        return Outcome(snippet.file, line, "accepted", "")
    found = re.search(r":(\d+):\d+", place)
    if found is not None and int(found[1]) in snippet.lines:
        kind = "not taken" if UNKNOWN.search(said) else "in place"
    else:
        kind = "not taken" if UNKNOWN.search(said) else "elsewhere"
    return Outcome(snippet.file, line, kind, said[:LENGTH])


def outcomes(chosen: list[Snippet]) -> list[Outcome]:
    """What irees says of each, in processes that may crash."""
    with ProcessPoolExecutor(2) as pool:
        futures = [pool.submit(judge, snippet) for snippet in chosen]
        found: list[Outcome] = []
        for snippet, future in zip(chosen, futures, strict=True):
            try:
                found.append(future.result(TIME_LIMIT_SECONDS))
            except (BrokenProcessPool, TimeoutError) as error:
                line = snippet.first_line + snippet.lines[0] - 1
                found.append(Outcome(snippet.file, line, "escaped", repr(error)[:LENGTH]))
    return found


def refused_by_rules(path: Path) -> list[str]:
    """The snippets of a file that nothing but `irees.dialects.rules` refuses, of valid ones."""
    from irees.dialects import get_context
    from irees.errors import IreesError
    from irees.frontends.mlir import import_mlir, verify

    text, rules = path.read_text(errors="replace"), verify.check_rules
    unregistered = "allow-unregistered-dialect" in text.partition("\n")[0]
    found: list[str] = []
    for number, each in enumerate(re.split(r"^// -----.*$", text, flags=re.MULTILINE)):
        for check in (lambda op: None, rules):
            verify.check_rules = check
            try:
                import_mlir(each.encode(), get_context(allow_unregistered=unregistered))
            except IreesError as error:
                if check is rules and "expected-error" not in each:
                    found.append(f"{path}, section {number}: {error}")
                break
            finally:
                verify.check_rules = rules
    return found


def check_valid(folders: list[Path]) -> int:
    """Prints what rules refuse of all files below some folders; 1 if there is anything."""
    paths = sorted(path for folder in folders for path in folder.rglob("*.mlir"))
    with ProcessPoolExecutor(2) as pool:
        found = list(chain(*pool.map(refused_by_rules, paths, chunksize=4)))
    print("\n".join(found))
    print(f"{len(found)} valid snippets of {len(paths)} files are refused by rules")
    return int(bool(found))


KINDS = ("in place", "elsewhere", "accepted", "escaped", "not taken")


def table(found: list[Outcome]) -> Iterator[str]:
    """A row per file, and their sum."""
    yield f"| file | {' | '.join(KINDS)} |"
    yield "|---" * (len(KINDS) + 1) + "|"
    for name in [*dict.fromkeys(o.file for o in found), "all"]:
        counts = Counter(o.kind for o in found if name in ("all", o.file))
        yield f"| {name} | {' | '.join(str(counts[k]) for k in KINDS)} |"


def main() -> int:
    """Prints the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--mlir", type=Path)
    parser.add_argument("--iree", type=Path)
    parser.add_argument("--only", default="")
    parser.add_argument("--show", action="store_true", help="what is not refused in place")
    parser.add_argument("--out", type=Path)
    parser.add_argument("--valid", type=Path, nargs="+", help="folders whose files are valid")
    arguments = parser.parse_args()
    if arguments.valid:
        return check_valid(arguments.valid)
    sources: list[tuple[Path, str]] = []
    if arguments.mlir:
        sources += [(arguments.mlir / "test" / "Dialect", name) for name in MLIR_FILES]
    if arguments.iree:
        root = arguments.iree / "compiler" / "src" / "iree" / "compiler" / "Dialect"
        sources += [(root, name) for name in IREE_FILES]
    chosen = [s for root, name in sources if arguments.only in name for s in snippets(root, name)]
    found = outcomes(chosen)
    if arguments.show:
        for each in found:
            if each.kind != "in place":
                print(f"{each.file}:{each.line}: {each.kind}: {each.said}")
    print("\n".join(table(found)))
    taken = [o for o in found if o.kind != "not taken"]
    refused = sum(o.kind == "in place" for o in taken)
    print(f"{refused} of {len(taken)} refused in place ({100 * refused / len(taken):.1f} %)")
    if arguments.out is not None:
        arguments.out.write_text(json.dumps([asdict(o) for o in found], indent=1))
    return 0


if __name__ == "__main__":
    sys.exit(main())
