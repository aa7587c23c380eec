"""
Puts every fault of the table back, one at a time, and runs the tests that must notice it.

    python tests/mutants/run.py [--tests-pass] [--every N] [NAME ...]

A mutant lives when all of its tests pass. Exit status: 0 when all were killed. The tests are run
without a mutant first, unless `--tests-pass` says that they just were. `--every N` takes every Nth
fault of the table, always the same ones. Each run is a process of its
own, forked from one that has loaded the libraries, but nothing of irees.
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import shutil
import signal
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
from table import MUTANTS, Mutant

ROOT = Path(__file__).parents[2]
PARTS = ("irees", "tests", "filecheck", "docs", "examples", "pyproject.toml", "README.md")
TIMEOUT = 300
FORKS = multiprocessing.get_context("forkserver")
FORKS.set_forkserver_preload(
    ["hypothesis", "lit.main", "numpy", "pytest", "xdsl.dialects.builtin", "xdsl.parser"]
)


def copy(to: Path) -> None:
    """What the tests need of the project."""
    for part in PARTS:
        source = ROOT / part
        if source.is_dir():
            shutil.copytree(source, to / part, ignore=shutil.ignore_patterns("Output"))
        else:
            shutil.copy(source, to / part)


def run_test(root: str, test: str, environment: dict[str, str], report: str) -> None:
    """Runs a test of the project below `root`, in this process, and ends it with its status."""
    os.setsid()
    os.environ.update(environment)
    os.chdir(root)
    sys.path.insert(0, root)
    with open(report, "wb") as out:
        os.dup2(out.fileno(), 1)
        os.dup2(out.fileno(), 2)
    if test.endswith(".mlir"):
        from lit.main import main as lit

        sys.argv = ["lit", "-v", str(Path(root, test))]
        sys.exit(lit())
    import pytest

    sys.exit(int(pytest.main(["-q", "-x", "-p", "no:cacheprovider", test])))


def fails(root: Path, test: str, cache: str) -> str | None:
    """
    Which test fails and what it says first, or None. A hang is a failure.

    All mutants share a cache: its keys are contents, and a program's is made of irees' sources too.
    Who sets IREES_TEST_CACHE_DIR shares it with the tests: what a mutant does not touch is there.
    """
    environment = {
        "PYTHONPATH": str(root),
        "IREES_HYPOTHESIS_PROFILE": "mutants",
        "IREES_CACHE_DIR": cache,
        "IREES_TEST_CACHE_DIR": cache,
    }
    with tempfile.NamedTemporaryFile("r", errors="replace") as report:
        child = FORKS.Process(target=run_test, args=(str(root), test, environment, report.name))
        child.start()
        child.join(TIMEOUT)
        if child.exitcode is None:
            os.killpg(child.pid, signal.SIGKILL)
            return f"no end after {TIMEOUT} s"
        said = report.read()
    if child.exitcode == 0:
        return None
    lines = [x.strip() for x in said.splitlines() if x.startswith(("E  ", "FAIL", "# |"))]
    failed = [x.partition(" - ")[0] for x in lines if x.startswith("FAIL")]
    if child.exitcode != 1 or not failed:
        raise SystemExit(f"{test} could not be run (status {child.exitcode}):\n{said[-2000:]}")
    return ": ".join((failed[0], lines[0]))


def kill(mutant: Mutant, cache: str) -> tuple[str | None, float]:
    """What noticed a mutant, or None, and after how many seconds."""
    start = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        copy(root)
        file = root / mutant.file
        text = file.read_text()
        if text.count(mutant.old) != 1:
            raise SystemExit(f"{mutant.name}: {mutant.file} has not exactly one\n{mutant.old}")
        file.write_text(text.replace(mutant.old, mutant.new))
        found = next((f for t in mutant.tests if (f := fails(root, t, cache))), None)
    return found, time.monotonic() - start


def main(names: list[str], *, tests_pass: bool, every: int) -> int:
    """Kills the mutants of these names, or every Nth of all."""
    chosen = [m for m in MUTANTS if m.name in names] if names else list(MUTANTS[::every])
    alive: list[str] = []
    with (
        tempfile.TemporaryDirectory() as own,
        tempfile.TemporaryDirectory() as folder,
        ThreadPoolExecutor(os.cpu_count()) as pool,
    ):
        cache = os.environ.get("IREES_TEST_CACHE_DIR", own)
        copy(Path(folder))
        tests = [] if tests_pass else list(dict.fromkeys(t for m in chosen for t in m.tests))
        for test, found in zip(tests, pool.map(lambda t: fails(Path(folder), t, cache), tests)):
            if found is not None:
                print(f"{test} fails without a mutant: {found}")
                return 2
        for mutant, (found, seconds) in zip(chosen, pool.map(lambda m: kill(m, cache), chosen)):
            alive += [] if found else [f"LIVES: {mutant.name}, {mutant.fault}"]
            verdict = f"killed: {found[:150]}" if found else "LIVES"
            print(f"{mutant.name}  {seconds:4.0f} s  {mutant.fault}\n      {verdict}", flush=True)
    print(f"{len(chosen) - len(alive)} of {len(chosen)} killed", *alive, sep="\n")
    return 1 if alive else 0


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tests-pass", action="store_true", help="they were just run")
    parser.add_argument("--every", type=int, default=1, metavar="N", help="only every Nth fault")
    parser.add_argument("names", nargs="*", metavar="NAME")
    arguments = parser.parse_args()
    sys.exit(main(arguments.names, tests_pass=arguments.tests_pass, every=arguments.every))
