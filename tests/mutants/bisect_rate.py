"""
How often `irees bisect` names the pass that a mutant is in.

    python tests/mutants/bisect_rate.py --state FILE [--every N] [NAMES]
    python tests/mutants/bisect_rate.py --sample [--every N] [NAMES]

With `--sample`, takes the mutants of `bisect_sample.PROGRAMS`, each with a program whose answer it
changes; fails unless bisecting names the right pass, or the text, for each of them, and reducing
makes a case of at most `MOST_OPS` ops. Each is a process, forked from one that has loaded xDSL.

For each mutant, the programs of `tests/golden` are compiled with the fault in place, those of the
lit file of its pass first, until one gives another result than the interpreter without the fault.
That program is bisected. The pass is right if its module imports the mutated file,
directly or not; a mutant of a backend is found if the text is blamed. Mutants that change no answer
of these programs within TIMEOUT are counted apart. The state has a line of JSON per mutant, and
mutants that it has are not run again.
"""

from __future__ import annotations

import argparse
import ast
import json
import os
import pickle
import subprocess
import sys
import tempfile
import time
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any

TIMEOUT = 240
"""Seconds per mutant to find a program that it changes."""
ROOT = Path(__file__).parents[2]
COMPILED = ("irees/transforms/", "irees/analysis/", "irees/backends/")
MOST_ELEMENTS = 1 << 20
MOST_OPS = 10
"""Ops of a reduced case, at most."""
REDUCING = 180.0
"""Seconds to reduce a case."""


def inputs_and_results(into: Path, texts: dict[str, str] | None = None) -> None:
    """Writes the corpus: for each program its text, function, inputs, and the right results."""
    from irees.build import import_source, make_interpretable
    from irees.compiler import compile
    from irees.errors import IreesError
    from irees.options import Options
    from irees.tools.expectations import differences, example_inputs
    from irees.tools.values import Tolerance

    corpus: list[tuple[str, str, dict[str, Any]]] = []
    if texts is None:
        from tests.golden.programs import programs

        texts = {each.name: each.text for each in programs() if each.text is not None}
    for title, text in texts.items():
        calls: dict[str, Any] = {}
        try:
            module = import_source(text).module
            make_interpretable(module, Options())
            reference: Any = compile(module, target="reference")
            compiled: Any = compile(module)
        except IreesError:
            continue
        for name, function in reference.functions.items():
            with suppress(IreesError, ValueError, TypeError):
                inputs = example_inputs(name, function.arguments)
                if sum(getattr(each, "size", 1) for each in inputs) > MOST_ELEMENTS:
                    continue
                results, found = (
                    listed(each.functions[name](*map(_copy, inputs)))
                    for each in (reference, compiled)
                )
                if wrong := differences(found, results, Tolerance()):
                    print(f"{title} @{name}, without a fault: {wrong[0]}")
                else:
                    calls[name] = (inputs, results)
        if calls:
            corpus.append((title, text, calls))
    into.write_bytes(pickle.dumps(corpus))


def listed(results: Any) -> list[Any]:
    """Returns one or several results as a list."""
    return list(results) if isinstance(results, tuple) else [results]


def _copy(value: Any) -> Any:
    return value.copy() if hasattr(value, "copy") else value


def drive(corpus: Path, near: list[str], target: str) -> None:
    """Runs in a copy with a fault: prints what bisecting and reducing the first wrong program says."""
    from irees.build import import_source, make_interpretable
    from irees.errors import InternalError, IreesError
    from irees.options import Options
    from irees.testing.bisecting import Bisection
    from irees.tools.expectations import differences
    from irees.tools.values import Tolerance

    start, rules = time.monotonic(), Tolerance()
    options = Options(target=target)
    rows = pickle.loads(corpus.read_bytes())
    rows.sort(key=lambda row: not any(word in row[0] for word in near))
    for program, text, calls in rows:
        if time.monotonic() - start > TIMEOUT:
            break
        try:
            module = import_source(text).module
            make_interpretable(module, options)
            name = first_wrong(module, options, calls)
            if name is None:
                continue
            inputs, results = calls[name]
            began = time.monotonic()
            bisection = Bisection(
                module, options, name, inputs, lambda found, r=results: differences(found, r, rules)
            )
            finding = bisection.find()
        except InternalError as error:
            print(json.dumps({"program": program, "what": "error", "detail": str(error)}))
            return
        except IreesError:
            continue
        said = {"program": f"{program} @{name}", "what": finding.what, "rewrite": finding.rewrite}
        said |= {"pass": finding.step.pass_name if finding.step else None}
        said |= {"detail": finding.detail[:200], "bisect_s": round(time.monotonic() - began, 1)}
        print(json.dumps(said), flush=True)
        return


def first_wrong(module: Any, options: Any, calls: dict[str, Any]) -> str | None:
    """Returns the first function of a program that gives another result, or fails."""
    from irees.compiler import compile
    from irees.testing.isolation import Died, isolated
    from irees.tools.expectations import differences
    from irees.tools.values import Tolerance

    def run() -> str | None:
        program: Any = compile(module, **{"target": options.target})
        for name, (inputs, results) in calls.items():
            try:
                found = listed(program.functions[name](*map(_copy, inputs)))
            except Exception:
                return name
            if differences(found, results, Tolerance()):
                return name
        return None

    try:
        return isolated(run, 60.0)
    except (Died, RuntimeError):
        return next(iter(calls))


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


@cache
def right_passes(file: str) -> set[str]:
    """Returns the names of the passes that a file is a part of."""
    from irees.transforms import get_all_passes

    return {name for name in get_all_passes() if is_part(file, name)}


def rate(mutant: Any, corpus: Path) -> dict[str, Any]:
    """Returns what bisecting says of one mutant."""
    from run import copy

    passes = right_passes(mutant.file)
    near = [name.removeprefix("irees-").replace("-", "_") for name in sorted(passes)][:3]
    stem = Path(mutant.file).parent.name if "__init__" in mutant.file else Path(mutant.file).stem
    target = target_of(mutant)
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        copy(root)
        file = root / mutant.file
        file.write_text(file.read_text().replace(mutant.old, mutant.new))
        words = ["--drive", str(corpus), "--near", stem, *near, "--target", target]
        command = [sys.executable, str(root / "tests/mutants/bisect_rate.py"), *words]
        environment = {
            **os.environ,
            "PYTHONPATH": str(root),
            "IREES_CACHE_DIR": str(root / "cache"),
        }
        flags: dict[str, Any] = {"cwd": root, "env": environment, "check": False}
        answer = subprocess.run(command, capture_output=True, text=True, timeout=1200, **flags)
    line = answer.stdout.strip().splitlines()[-1:]
    said = (
        json.loads(line[0])
        if line
        else {"what": "no answer changes", "error": answer.stderr[-300:]}
    )
    blamed = said.get("pass")
    in_text = "/backends/" in mutant.file
    said["right"] = said["what"] == "text" if in_text else blamed in passes
    return {"mutant": mutant.name, "file": mutant.file, **said}


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
    finding = expectation.search(case).find()
    blamed = finding.step.pass_name if finding.step else None
    said = {"what": finding.what, "pass": blamed, "detail": finding.detail[:200]}
    in_text = "/backends/" in mutant.file
    named = finding.what == "text" if in_text else blamed and is_part(mutant.file, blamed)
    said |= {"right": bool(named), "ops_before": case.ops}
    if not named:
        return said
    interesting = expectation.same_fault(case)
    began = time.monotonic()
    reduction = Reduction(case, interesting, REDUCING)
    found = reduction.run()
    said |= {"ops": found.ops, "reduce_s": round(time.monotonic() - began, 1)}
    return said


def is_part(file: str, name: str) -> bool:
    """Whether a file of irees is a part of a pass: its module imports the file, directly or not."""
    from irees.transforms import load_pass

    todo = [Path(sys.modules[load_pass(name).__module__].__file__ or "")]
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
                mutant, lambda m=mutant, t=text: bisected(m, t, target_of(m)), Path(folder, name)
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
    parser.add_argument("--drive", type=Path)
    parser.add_argument("--near", nargs="*", default=[])
    parser.add_argument("--target", default="cpu")
    arguments = parser.parse_args()
    if arguments.drive is not None:
        drive(arguments.drive, arguments.near, arguments.target)
        return 0
    if arguments.sample:
        return sample(arguments.every, arguments.names)
    from table import MUTANTS

    state: Path = arguments.state
    done = [json.loads(line) for line in state.read_text().splitlines()] if state.exists() else []
    known = {row["mutant"] for row in done}
    corpus = state.with_suffix(".corpus")
    if not corpus.exists():
        inputs_and_results(corpus)
    chosen = [m for m in MUTANTS if m.file.startswith(COMPILED)][:: arguments.every]
    if arguments.names:
        chosen = [m for m in MUTANTS if m.name in arguments.names]
    for mutant in chosen:
        if mutant.name not in known:
            row = rate(mutant, corpus)
            print(json.dumps(row), flush=True)
            with state.open("a") as out:
                out.write(json.dumps(row) + "\n")
            done.append(row)
    changed = [row for row in done if row["what"] != "no answer changes"]
    right = sum(row["right"] for row in changed)
    print(f"{len(done)} mutants, {len(changed)} change an answer, {right} of them are named")
    return 0


if __name__ == "__main__":
    sys.exit(main())
