"""
Counts how the accesses of programs are kept in bounds: proved, or guarded.

    python tests/coverage/certificates.py [--count 300] FOLDER ...
    PYTHONPATH=TORCH_MLIR/projects/pt1/python python tests/coverage/certificates.py \\
        --count 300 torch-mlir

Compiles the `*.mlir` files below each folder, evenly spaced `--count` of them, for an AVX2 CPU and
for sm_80, up to the phase `verification`. Files that do not compile are counted as refused. Prints a
row of a table for each folder and target. Kernels with contractions, convolutions, poolings or other
reductions of dynamic sizes are also counted by themselves.

`torch-mlir` stands for torch-mlir's end-to-end programs (`torch_mlir_programs.py`), as irees imports
them from PyTorch: evenly spaced `--count` of them, in the order of their names.
"""

from __future__ import annotations

import argparse
import re
import sys
from collections import Counter
from collections.abc import Iterator
from functools import cache
from multiprocessing import Pool
from pathlib import Path
from typing import Any

from xdsl.dialects.builtin import ModuleOp

import irees
from irees.dialects.flow import ExecutableOp
from irees.errors import InternalError, IreesError, UnsupportedError

TARGETS = ("cpu:x86-64-v3", "cuda:sm_80")
DYNAMIC = re.compile(r"\b(contract|reduce) [^,]*\?")
"""What the summary of a kernel says that has a contraction, a convolution, a pooling or another
reduction over a size that is not known."""


SUITE = Path("torch-mlir")
"""Stands for torch-mlir's programs, whose names have no suffix."""


@cache
def suite() -> dict[str, Any]:
    """Returns torch-mlir's programs by name."""
    from torch_mlir_programs import programs

    return programs()


def files(folder: Path, count: int | None) -> list[Path]:
    """Returns the programs below a folder, evenly spaced `count` of them."""
    found = [Path(n) for n in suite()] if folder == SUITE else folder.rglob("*.mlir")
    found = sorted(found)
    if count is None or len(found) <= count:
        return found
    return [found[i * len(found) // count] for i in range(count)]


def compiled(path: Path, target: str) -> ModuleOp:
    """Returns a program with certificates."""
    if path.suffix:
        return irees.compile(path.read_text(), target=target, to="verification")
    from torch_mlir_e2e_test.framework import generate_golden_trace

    test = suite()[path.name]
    try:
        (call,) = generate_golden_trace(test)
    except Exception as error:
        raise UnsupportedError(f"eager PyTorch does not run it: {error}") from error
    return irees.compile(
        test.program_factory(), tuple(call.inputs), target=target, to="verification"
    )


def counted(job: tuple[Path, str]) -> Counter[str]:
    """Returns counts of one program: accesses by kind, and of its dynamic kernels."""
    path, target = job
    try:
        module = compiled(path, target)
    except InternalError as error:
        print(f"{path} for {target}: {error}", file=sys.stderr)
        return Counter(internal=1)
    except IreesError:
        return Counter(refused=1)
    found = Counter(programs=1)
    for op in module.ops:
        if not isinstance(op, ExecutableOp):
            continue
        accesses = op.attributes["accesses"].data  # type: ignore[attr-defined]
        summary = str(op.attributes.get("summary", ""))
        is_dynamic = DYNAMIC.search(summary) is not None
        for kind, number in accesses.items():
            found[kind] += number.value.data
            if is_dynamic:
                found[f"dynamic {kind}"] += number.value.data
    return found


def rows(folder: Path, count: int | None) -> Iterator[str]:
    """Yields a row for each target."""
    paths = files(folder, count)
    for target in TARGETS:
        with Pool() as pool:
            jobs = [(path, target) for path in paths]
            found = sum(pool.imap_unordered(counted, jobs), Counter[str]())
        row = [folder.name, target, found["programs"], found["refused"], found["internal"]]
        for prefix in ("", "dynamic "):
            proved, guarded = found[prefix + "proved"], found[prefix + "guarded"]
            share = 100 * proved / (proved + guarded) if proved + guarded else 100
            row += [f"{proved:,}", f"{guarded:,}", f"{share:.2f} %"]
        yield "| " + " | ".join(map(str, [*row, found["together"]])) + " |"


HEADER = """\
| programs | target | compiled | refused | internal | proved | guarded | share | \
dynamic proved | guarded | share | not apart |
|---|---|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|"""


def main() -> None:
    """Prints the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folders", nargs="+", type=Path)
    parser.add_argument("--count", type=int)
    options = parser.parse_args()
    print(HEADER)
    for folder in options.folders:
        for row in rows(folder, options.count):
            print(row, flush=True)


if __name__ == "__main__":
    main()
