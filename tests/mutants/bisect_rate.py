"""
How often `irees bisect` names the pass that a mutant is in.

    python tests/mutants/bisect_rate.py --state FILE [--every N] [NAMES]
    python tests/mutants/bisect_rate.py --sample [--every N] [NAMES]

With `--sample`, takes the mutants of `bisect_sample.PROGRAMS`, each with a program whose answer it
changes; fails unless bisecting names the right pass, or the text, for each of them, and reducing
makes a case of at most `MOST_OPS` ops. Each is a process, forked from one that has loaded xDSL.

With `--state`, takes all mutants of the compiler, and for each the programs whose compilation runs
its lines (`reaching`), until one gives another result than the interpreter without the fault. That
program is bisected. The pass is right if its module imports the mutated file, directly or not, or
is in one folder with it; a mutant of a backend is found if the text is blamed, one of what the
interpreter itself uses if the program is called wrong before the first pass. Mutants that change no
answer of these programs, or none within TIMEOUT, are counted apart. The state has a line of JSON
per mutant, and mutants that it has are not run again.
"""

from __future__ import annotations

import argparse
import ast
import json
import pickle
import sys
import tempfile
import time
from functools import cache
from pathlib import Path
from typing import Any

from mutant import Mutant

TIMEOUT = 60
"""Seconds per mutant to find a program that it changes."""
CALL = 20.0
"""Seconds to compile and run a program; a fault may make it hang."""
UNCHANGED = "no answer changes"
ROOT = Path(__file__).parents[2]
REFEREE = ("irees/dialects/", "irees/interfaces.py", "irees/build.py")
"""Files that the interpreter uses, too."""
COMPILED = (
    "irees/transforms/", "irees/analysis/", "irees/backends/", "irees/dialects/",
    "irees/interfaces.py", "irees/layers.py", "irees/pipeline.py", "irees/phase.py",
)  # fmt: skip
NO_FAULT = Mutant("no fault", "", "", "", "", ())
MOST_OPS = 10
"""Ops of a reduced case, at most."""
REDUCING = 180.0
"""Seconds to reduce a case."""


def write_corpus(into: Path) -> dict[str, Any]:
    """Writes the programs with arguments, right results, and the mutants whose lines they run."""
    from bisect_sample import PROGRAMS
    from reaching import MOST_TEXT, corpus
    from table import MUTANTS

    from tests.golden.programs import programs

    texts = {f"sample/{name}": text for name, text in PROGRAMS.items()}
    texts |= {p.name: p.text for p in programs() if p.text and len(p.text) < MOST_TEXT}
    calls = list(corpus([m for m in MUTANTS if m.file.startswith(COMPILED)], texts))
    into.write_bytes(pickle.dumps(calls))
    print(f"{len(calls)} programs", flush=True)
    return {}


def candidates(mutant: Any, calls: list[Any]) -> list[Any]:
    """Returns the programs that may show a fault: the sample's, those of its pass, quick ones."""
    path = Path(mutant.file)
    near = {path.stem, path.parent.name, mutant.name}
    found = [c for c in calls if mutant.name in c.mutants or path.suffix != ".py"]
    of_target = [c for c in found if c.target == target_of(mutant)]
    return sorted(
        of_target or found, key=lambda c: (not any(word in c.name for word in near), c.seconds)
    )


def rate(mutant: Any, calls: list[Any]) -> dict[str, Any]:
    """Runs where the fault is in place: what bisecting the first program says that it changes."""
    from irees.build import import_source, make_interpretable
    from irees.errors import IreesError
    from irees.options import Options
    from irees.phase import PassError
    from irees.testing import bisecting
    from irees.testing.reducing import Case
    from irees.tools.expectations import Expectation

    bisecting.TIMEOUT = CALL
    start = time.monotonic()
    for tried, call in enumerate(calls, 1):
        if time.monotonic() - start > TIMEOUT:
            return {"what": UNCHANGED, "tried": tried}
        options = Options(target=call.target)
        try:
            module = import_source(call.text).module
            make_interpretable(module, options)
        except PassError as error:
            said = {"what": "pass", "pass": error.pass_name, "program": call.name, "tried": tried}
            return said | {"right": is_part(mutant.file, error.pass_name)}
        except IreesError:
            continue
        if not is_wrong(module, call):
            continue
        case = Case(module, call.function, call.inputs)
        began = time.monotonic()
        finding = Expectation(options, stored=tuple(call.results)).search(case).find()
        said = said_of(mutant, finding) | {"program": f"{call.name} @{call.function}"}
        return said | {"tried": tried, "bisect_s": round(time.monotonic() - began, 1)}
    return {"what": UNCHANGED, "tried": len(calls)}


def is_wrong(module: Any, call: Any) -> bool:
    """Whether a compiled program gives other results than the interpreter did, or fails."""
    from irees.options import Options
    from irees.testing.bisecting import compiled
    from irees.testing.isolation import Died, Raised
    from irees.tools.expectations import differences
    from irees.tools.values import Tolerance

    try:
        found = compiled(module, Options(target=call.target), call.function, call.inputs)
    except (Died, Raised):
        return True
    return bool(differences(found, call.results, Tolerance()))


def is_right(call: Any) -> dict[str, Any]:
    """Runs without a fault: whether the program is right, so that a difference is the fault's."""
    from irees.build import import_source, make_interpretable
    from irees.options import Options

    module = import_source(call.text).module
    make_interpretable(module, Options())
    return {"right": not is_wrong(module, call)}


def said_of(mutant: Any, finding: Any) -> dict[str, Any]:
    """Returns what a finding says, and whether it is right about a mutant."""
    blamed = finding.step.pass_name if finding.step else None
    said = {"what": finding.what, "pass": blamed, "rewrite": finding.rewrite}
    if mutant.file.startswith("irees/backends/"):
        named = finding.what == "text"
    elif mutant.file.startswith(REFEREE) and finding.what == "source":
        named = True
    else:
        named = bool(blamed) and is_part(mutant.file, str(blamed))
    return said | {"detail": finding.detail[:200], "right": named}


@cache
def imports(path: Path) -> frozenset[Path]:
    """Returns the files of irees that a file imports, anywhere in it."""
    found: set[Path] = set()
    for node in ast.walk(ast.parse(path.read_text())):
        names: list[str] = []
        if isinstance(node, ast.ImportFrom) and node.level == 0 and node.module:
            names = [node.module, *(f"{node.module}.{alias.name}" for alias in node.names)]
        elif isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        for name in names:
            if name.startswith("irees"):
                base = ROOT.joinpath(*name.split("."))
                found |= {p for p in (base.with_suffix(".py"), base / "__init__.py") if p.exists()}
    return frozenset(found)


def bisected(mutant: Any, text: str, target: str) -> dict[str, Any]:
    """Runs where the fault is in place: what bisecting and reducing a program says."""
    from irees.backends.reference.backend import ReferenceProgram
    from irees.build import make_interpretable
    from irees.frontends.mlir import import_mlir
    from irees.options import Options
    from irees.testing.reducing import Case, Reduction
    from irees.tools.expectations import Expectation, example_inputs

    options = Options(target=target)
    module = import_mlir(text, name="sample.mlir")
    make_interpretable(module, options)
    (function,) = ReferenceProgram(module.clone()).functions.values()
    case = Case(module, function.name, tuple(example_inputs(function.name, function.arguments)))
    expectation = Expectation(options)
    began = time.monotonic()
    said = said_of(mutant, expectation.search(case).find())
    said |= {"bisect_s": round(time.monotonic() - began, 1), "ops_before": case.ops}
    if not said["right"]:
        return said
    interesting = expectation.same_fault(case)
    began = time.monotonic()
    reduction = Reduction(case, interesting, REDUCING)
    found = reduction.run()
    said |= {"ops": found.ops, "reduce_s": round(time.monotonic() - began, 1)}
    return said


def is_part(file: str, name: str) -> bool:
    """
    Whether a file of irees is a part of a pass: it is in the pass's folder, or the pass's module
    imports it, directly or not.
    """
    from irees.transforms import load_pass

    module = Path(sys.modules[load_pass(name).__module__].__file__ or "")
    if module.name == "__init__.py" and ROOT.joinpath(file).is_relative_to(module.parent):
        return True
    todo = [module]
    seen: set[Path] = set()
    while todo:
        path = todo.pop()
        if path not in seen:
            seen.add(path)
            todo += imports(path)
    return ROOT / file in seen


def sample(every: int, names: list[str]) -> int:
    """
    Bisects and reduces every Nth program of the sample. Returns 1 if a mutant is not named, or its
    case has more than `MOST_OPS` ops.
    """
    import xdsl.parser  # noqa: F401  what each child needs, but nothing of irees
    from bisect_sample import PROGRAMS
    from in_place import with_fault
    from table import MUTANTS

    mutants = {mutant.name: mutant for mutant in MUTANTS}
    chosen = names or list(PROGRAMS)[::every]
    rows: list[dict[str, Any]] = []
    with tempfile.TemporaryDirectory() as folder:
        for name in chosen:
            mutant, text = mutants[name], PROGRAMS[name]
            row = with_fault(
                mutant, lambda m=mutant, t=text: bisected(m, t, target_of(m)), Path(folder)
            )
            rows.append(row)
            print(json.dumps({"mutant": name, **row}), flush=True)
    right = sum(row.get("right", False) for row in rows)
    small = sum(row.get("ops", MOST_OPS + 1) <= MOST_OPS for row in rows)
    seconds = sum(row["cpu_s"] for row in rows)
    print(f"{right} of {len(rows)} are named, {small} have at most {MOST_OPS} ops, {seconds:.0f} s")
    return 0 if right == small == len(rows) else 1


def target_of(mutant: Any) -> str:
    """The target whose programs a mutant may change."""
    return "cuda-emulated" if "/gpu/" in mutant.file or "/cuda/" in mutant.file else "cpu"


def main() -> int:
    """Runs the command."""
    parser = argparse.ArgumentParser()
    parser.add_argument("names", nargs="*")
    parser.add_argument("--state", type=Path)
    parser.add_argument("--sample", action="store_true")
    parser.add_argument("--every", type=int, default=1)
    arguments = parser.parse_args()
    if arguments.sample:
        return sample(arguments.every, arguments.names)
    return whole_table(arguments.state, arguments.every, arguments.names)


def whole_table(state: Path, every: int, names: list[str]) -> int:
    """Bisects for every Nth mutant of the compiler that the state does not have."""
    import xdsl.parser  # noqa: F401  what each child needs, but nothing of irees
    from in_place import with_fault
    from table import MUTANTS

    done = [json.loads(line) for line in state.read_text().splitlines()] if state.exists() else []
    known = {row["mutant"] for row in done}
    corpus, cache = state.with_suffix(".corpus"), state.with_suffix(".cache")
    if not corpus.exists():
        with_fault(NO_FAULT, lambda: write_corpus(corpus), cache)
    calls = pickle.loads(corpus.read_bytes())
    chosen = [m for m in MUTANTS if m.file.startswith(COMPILED)][::every]
    for mutant in [m for m in MUTANTS if m.name in names] if names else chosen:
        if mutant.name in known:
            continue
        some = candidates(mutant, calls)
        said: dict[str, Any] = {"what": UNCHANGED, "tried": 0}
        while some:
            said = with_fault(mutant, lambda m=mutant, c=some: rate(m, c), cache)
            if said["what"] == UNCHANGED or "tried" not in said:
                break
            call, some = some[said["tried"] - 1], some[said["tried"] :]
            if with_fault(NO_FAULT, lambda c=call: is_right(c), cache).get("right"):
                break
        row = {"mutant": mutant.name, "file": mutant.file, **said}
        print(json.dumps(row), flush=True)
        with state.open("a") as out:
            out.write(json.dumps(row) + "\n")
        done.append(row)
    changed = [row for row in done if row["what"] != UNCHANGED]
    right = sum(row.get("right", False) for row in changed)
    print(f"{len(done)} mutants, {len(changed)} change an answer, {right} of them are named")
    return 0


if __name__ == "__main__":
    sys.exit(main())
