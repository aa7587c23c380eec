"""Programs that break what their shapes declare: refused, or right, and never outside of an array."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from xdsl.dialects.linalg.abstract_ops import LinalgStructuredOperation

from irees.dialects import all_factories
from irees.dialects.shape_relations import ELEMENTWISE, TABLE, UNRELATED
from tests.violations.programs import LISTED

ROOT = Path(__file__).parents[2]
SAMPLE = 60
"""Random programs of a run; CONTRIBUTING.md has the command for more."""
DECOMPOSED_EARLY = {
    "iree_linalg_ext.custom_op": "inlined before shapes are checked",
    "iree_linalg_ext.index": "it reads no tensor",
    "iree_linalg_ext.yield": "a terminator",
    "linalg.index": "it reads no tensor",
    "linalg.yield": "a terminator",
    "tensor.yield": "a terminator",
}
"""Ops of the dialects that need no row, and why."""


def test_the_table_is_total():
    """Each registered op of tensors has a row, or a reason to have none."""
    missing = []
    for dialect in ("tensor", "linalg", "iree_linalg_ext", "flow"):
        for op in all_factories()[dialect]().operations:
            if dialect == "flow" and not op.name.startswith("flow.tensor."):
                continue
            if op.name in TABLE or op.name in UNRELATED or op.name in DECOMPOSED_EARLY:
                continue
            if not issubclass(op, LinalgStructuredOperation):
                missing.append(op.name)
    assert not missing
    assert all(not name.startswith(ELEMENTWISE) for name in TABLE)


def records(*options: str) -> list[dict]:
    """What a process of its own found. It fails with the program that ended it."""
    command = [sys.executable, "-m", "tests.violations.compare", *options]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=900)
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    last = lines[-1] if lines else {}
    assert done.returncode == 0, f"exit {done.returncode} in {last}\n{done.stderr[-2000:]}"
    return [line for line in lines if "end" in line]


def check(found: list[dict]) -> None:
    """No call differs, nothing is an internal error, and some calls ran and some were refused."""
    assert not [r for r in found if "different" in r or "internal" in r]
    assert sum(r.get("ran", 0) for r in found) >= len(found)
    assert sum(r.get("trapped", 0) for r in found) >= len(found)


@pytest.mark.parametrize("target", ["cpu", "cuda-emulated"])
def test_listed(target):
    """Programs that once left an array."""
    only = () if target == "cpu" else ("--only", "write")
    found = records("--listed", "--target", target, *only)
    check(found)
    assert len(found) == len(LISTED) or target != "cpu"


ERASED = {
    "collapse of what may be empty": "a tensor that is never made has no negative size",
    "splat of the host": "a tensor that is never made needs no memory",
    "stage of a transform": "the blocks of a stage are computed where it is decomposed",
    "splat": "a tensor that is never made needs no memory",
}
"""What is refused where its results are read alone."""


def test_dead():
    """Sizes are checked of ops, too, of which nothing reads the results."""
    found = records("--listed", "--dead")
    check([r for r in found if r["end"] not in ERASED])
    assert all("different" in r for r in found if r["end"] in ERASED)


def test_random():
    """A fixed sample of random ones."""
    check(records("--seed", "0", "--programs", str(SAMPLE)))
