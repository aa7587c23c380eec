"""
Puts every fault of the table back, one at a time, and runs the tests that must notice it.

    python tests/mutants/run.py [NAME ...]

A mutant lives when all of its tests pass. Exit status: 0 when all were killed.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
from table import MUTANTS, Mutant

ROOT = Path(__file__).parents[2]
PARTS = ("irees", "tests", "filecheck", "docs", "pyproject.toml", "README.md")
TIMEOUT = 300
LIT = "from lit.main import main; main()"


def copy(to: Path) -> None:
    """What the tests need of the project."""
    for part in PARTS:
        source = ROOT / part
        if source.is_dir():
            ignore = shutil.ignore_patterns("__pycache__", "Output")
            shutil.copytree(source, to / part, ignore=ignore)
        else:
            shutil.copy(source, to / part)


def fails(root: Path, test: str, cache: str) -> str | None:
    """
    The last line that a test says when it fails, or None. A hang is a failure.

    All mutants share a cache: its keys are contents, and a program's is made of irees' sources too.
    """
    lit = [sys.executable, "-c", LIT, "-v", str(root / test)]
    pytest = [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", test]
    environment = {
        **os.environ,
        "PYTHONPATH": str(root),
        "IREES_HYPOTHESIS_PROFILE": "mutants",
        "IREES_CACHE_DIR": cache,
    }
    try:
        done = subprocess.run(
            lit if test.endswith(".mlir") else pytest,
            cwd=root,
            env=environment,
            capture_output=True,
            text=True,
            timeout=TIMEOUT,
        )
    except subprocess.TimeoutExpired:
        return f"no end after {TIMEOUT} s"
    if done.returncode == 0:
        return None
    if done.returncode != 1:
        raise SystemExit(f"{test} could not be run:\n{done.stdout[-2000:]}{done.stderr[-2000:]}")
    lines = [x for x in done.stdout.splitlines() if x.startswith(("E  ", "FAIL", "# |"))]
    return lines[0].strip()[:90] if lines else "failed"


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
        found = next((f"{t}: {f}" for t in mutant.tests if (f := fails(root, t, cache))), None)
    return found, time.monotonic() - start


def main(names: list[str]) -> int:
    """Kills the mutants of these names, or all."""
    chosen = [m for m in MUTANTS if not names or m.name in names]
    alive = 0
    with (
        tempfile.TemporaryDirectory() as cache,
        tempfile.TemporaryDirectory() as folder,
        ThreadPoolExecutor(os.cpu_count()) as pool,
    ):
        copy(Path(folder))
        tests = list(dict.fromkeys(t for m in chosen for t in m.tests))
        for test, found in zip(tests, pool.map(lambda t: fails(Path(folder), t, cache), tests)):
            if found is not None:
                print(f"{test} fails without a mutant: {found}")
                return 2
        for mutant, (found, seconds) in zip(chosen, pool.map(lambda m: kill(m, cache), chosen)):
            alive += found is None
            verdict = f"killed by {found}" if found else "LIVES"
            print(f"{mutant.name}  {seconds:4.0f} s  {mutant.fault}\n      {verdict}", flush=True)
    print(f"{len(chosen) - alive} of {len(chosen)} killed")
    return 1 if alive else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
