"""
Compares the printed kernels of programs with stored digests, or with those of an earlier commit.

    python -m tests.golden                         # all programs for all targets
    python -m tests.golden --only modules/ --target avx2
    python -m tests.golden --write                 # make the digests what they are now
    python -m tests.golden --diff main --only texts/two_matmul

`--only` takes parts of names. `--diff COMMIT` prints the texts of that commit and of this checkout
side by side as a unified diff; it takes the programs of this checkout.
"""

from __future__ import annotations

import argparse
import difflib
import io
import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Iterable, Mapping
from concurrent.futures import ProcessPoolExecutor
from hashlib import sha256
from pathlib import Path

from irees.errors import InternalError, IreesError
from tests.golden.programs import MODELS, REPOSITORY, TARGETS, Program, programs, texts

DIGESTS = Path(__file__).parent / "digests.json"
REFUSED = "refused"
_COMMENT_OR_STRING = re.compile(r'"(?:\\.|[^"\\])*"|/\*.*?\*/|//[^\n]*', re.DOTALL)

Digests = dict[str, dict[str, str]]
"""The digest of a program by its name and the name of the target."""


def stored() -> Digests:
    """Returns the digests of the repository."""
    return json.loads(DIGESTS.read_text())


def digest(program: Program, target: str) -> str:
    """
    Returns the digest of all texts of a program, comments apart, or `refused` for one that irees
    refuses.
    """
    try:
        found = texts(program, target)
    except InternalError:
        raise
    except IreesError:
        return REFUSED
    joined = "\0".join(part for name in sorted(found) for part in (name, code(found[name])))
    return sha256(joined.encode()).hexdigest()[:12]


def code(text: str) -> str:
    """Returns a text of C without its comments and empty lines."""
    bare = _COMMENT_OR_STRING.sub(lambda m: m[0] if m[0][0] == '"' else " ", text)
    return "\n".join(line.rstrip() for line in bare.splitlines() if line.strip())


def digests_of(program: Program, targets: Iterable[str]) -> dict[str, str]:
    """Returns the digests of a program by target."""
    return {target: digest(program, target) for target in targets}


def chosen(only: Iterable[str]) -> list[Program]:
    """Returns the programs whose names have one of the parts, or all."""
    parts = tuple(only)
    return [p for p in programs() if not parts or any(part in p.name for part in parts)]


def write(found: Digests) -> None:
    """Stores digests, one program a line. What was not computed stays as it is."""
    known = stored() if DIGESTS.exists() else {}
    for name, row in found.items():
        known[name] = known.get(name, {}) | row
    rows = (f"{json.dumps(name)}: {json.dumps(known[name])}" for name in sorted(known))
    DIGESTS.write_text("{\n" + ",\n".join(rows) + "\n}\n")


def differences(found: Digests, before: Digests) -> list[str]:
    """Returns a line for each digest that is not what is stored."""
    return [
        f"{name} for {target}: {before.get(name, {}).get(target, 'new')} → {value}"
        for name, row in found.items()
        for target, value in row.items()
        if before.get(name, {}).get(target) != value
    ]


def print_texts(names: Iterable[str], targets: Iterable[str], into: Path) -> None:
    """Writes the texts of programs below a folder, in one folder for each program and target."""
    for program in chosen(names):
        for target in targets:
            try:
                found = texts(program, target)
            except IreesError as error:
                found = {"refused.txt": str(error)}
            folder = into / program.name.replace("/", "_") / target
            folder.mkdir(parents=True, exist_ok=True)
            for name, text in found.items():
                (folder / name).write_text(text)


def diff(commit: str, names: list[str], targets: list[str]) -> bool:
    """Prints how the texts differ from those of a commit. Returns whether they do."""
    with tempfile.TemporaryDirectory() as root:
        tree, old, new = (Path(root) / name for name in ("repository", "old", "new"))
        archive = subprocess.run(
            ["git", "archive", commit], cwd=REPOSITORY, capture_output=True, check=True
        )
        with tarfile.open(fileobj=io.BytesIO(archive.stdout)) as tar:
            tar.extractall(tree, filter="data")
        # The compiler of the commit; the programs and this command of this checkout.
        for name in ("tests/golden", "filecheck", "examples"):
            shutil.rmtree(tree / name, ignore_errors=True)
            shutil.copytree(REPOSITORY / name, tree / name)
        if MODELS.exists():
            (Path(root) / "shared").symlink_to(MODELS.parent)
        flags = [*_flags(names, targets), "--texts", str(old)]
        command = [sys.executable, "-m", "tests.golden", *flags]
        environment = os.environ | {"PYTHONPATH": str(tree)}
        subprocess.run(command, cwd=tree, env=environment, check=True)
        print_texts(names, targets, new)
        return _print_differences(_contents(old), _contents(new))


def _flags(names: Iterable[str], targets: Iterable[str]) -> list[str]:
    flags = [flag for name in names for flag in ("--only", name)]
    return flags + [flag for target in targets for flag in ("--target", target)]


def _contents(folder: Path) -> dict[str, str]:
    files = (path for path in folder.rglob("*") if path.is_file())
    return {str(path.relative_to(folder)): path.read_text() for path in sorted(files)}


def _print_differences(old: Mapping[str, str], new: Mapping[str, str]) -> bool:
    differ = False
    for name in sorted({*old, *new}):
        before, after = (each.get(name, "").splitlines() for each in (old, new))
        for line in difflib.unified_diff(before, after, f"old/{name}", f"new/{name}", lineterm=""):
            print(line)
            differ = True
    return differ


def main() -> int:
    """Returns 1 when a text differs."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", action="append", default=[])
    parser.add_argument("--target", action="append", choices=TARGETS, default=[])
    parser.add_argument("--write", action="store_true")
    parser.add_argument("--diff", metavar="COMMIT")
    parser.add_argument("--texts", type=Path, help="write the texts below this folder")
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    options = parser.parse_args()
    targets = options.target or list(TARGETS)
    if options.texts:
        print_texts(options.only, targets, options.texts)
        return 0
    if options.diff:
        return int(diff(options.diff, options.only, targets))
    todo = chosen(options.only)
    found: Digests = {}
    with ProcessPoolExecutor(options.jobs) as pool:
        rows = pool.map(digests_of, todo, [targets] * len(todo))
        for program, row in zip(todo, rows, strict=True):
            found[program.name] = row
            if options.write:
                write({program.name: row})
    if options.write:
        return 0
    lines = differences(found, stored())
    print("\n".join([*lines, f"{len(found)} programs, {len(lines)} texts differ"]))
    return int(bool(lines))


if __name__ == "__main__":
    sys.exit(main())
