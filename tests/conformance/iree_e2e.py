"""
Runs IREE's own end-to-end files that use the check dialect, and counts the files that pass.

    python tests/conformance/iree_e2e.py IREE [--target TARGET] [--only TEXT] [--out F.json]

IREE is a checkout of iree-org/iree; nothing of it is in this repository. Each file is compiled and
run by `irees check-module` in a process of its own. A file passes when all of its functions do.
docs/lit_conformance.md has the counts.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

FOLDERS = ("linalg", "linalg_ext_ops", "tensor_ops", "regression")
TIME_LIMIT_SECONDS = 300
JOBS = 2
LAST_LINES = 3


def files(checkout: Path) -> Iterator[Path]:
    """The files of these folders that check something."""
    for folder in FOLDERS:
        for path in sorted((checkout / "tests" / "e2e" / folder).glob("*.mlir")):
            if "check.expect" in path.read_text():
                yield path


def verdict(path: Path, target: str) -> tuple[bool, str]:
    """Whether a file passes, and what was said last if it does not."""
    command = [sys.executable, "-m", "irees.tools.main", "check-module", str(path)]
    try:
        answer = subprocess.run(
            [*command, f"--target={target}"],
            capture_output=True,
            text=True,
            timeout=TIME_LIMIT_SECONDS,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return False, f"more than {TIME_LIMIT_SECONDS} s"
    if answer.returncode == 0:
        return True, ""
    failed = [line for line in answer.stdout.splitlines() if "error" in line or "instead" in line]
    said = failed or answer.stderr.strip().splitlines()[-LAST_LINES:]
    return False, f"exit {answer.returncode}: {' | '.join(said)[:600]}"


def main() -> int:
    """Prints a line per file, and the count."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("checkout", type=Path)
    parser.add_argument("--target", default="cpu")
    parser.add_argument("--only", default="")
    parser.add_argument("--out", type=Path)
    arguments = parser.parse_args()
    chosen = [p for p in files(arguments.checkout) if arguments.only in str(p)]
    with ThreadPoolExecutor(JOBS) as pool:
        verdicts = list(pool.map(lambda path: verdict(path, arguments.target), chosen))
    found = {f"{p.parent.name}/{p.name}": v for p, v in zip(chosen, verdicts, strict=True)}
    for name, (passed, said) in found.items():
        print("PASS" if passed else "FAIL", name, said)
    passes = sum(passed for passed, _ in found.values())
    print(f"{passes} of {len(found)} files pass")
    if arguments.out is not None:
        arguments.out.write_text(json.dumps(found, indent=1))
    return 0 if passes == len(found) else 1


if __name__ == "__main__":
    sys.exit(main())
