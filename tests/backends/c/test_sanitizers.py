"""Small programs compiled with AddressSanitizer and UndefinedBehaviorSanitizer, run in a child."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from functools import cache
from pathlib import Path

import pytest

CHILD = Path(__file__).with_name("sanitized.py")
FLAGS = "-fsanitize=address,undefined -fno-sanitize-recover=all"


@cache
def libraries() -> str:
    """The sanitizer's runtime, to be loaded before Python; skips when there is none."""
    gcc = shutil.which("gcc")
    if gcc is None:
        pytest.skip("there is no gcc")
    found = []
    for name in ("libasan.so", "libubsan.so"):
        answer = subprocess.run(
            [gcc, f"-print-file-name={name}"], capture_output=True, text=True, check=False
        )
        path = answer.stdout.strip()
        if not os.path.isabs(path):
            pytest.skip(f"gcc has no {name}")
        found.append(os.path.realpath(path))
    return " ".join(found)


def run(programs: Sequence[str], folder: Path) -> subprocess.CompletedProcess[str]:
    environment = os.environ | {
        "IREES_CC": f"gcc {FLAGS}",
        "IREES_CACHE_DIR": str(folder),
        "LD_PRELOAD": libraries(),
        # Python never frees what it holds at the end. A failed allocation is tested elsewhere.
        "ASAN_OPTIONS": "detect_leaks=0:allocator_may_return_null=1",
        "UBSAN_OPTIONS": "print_stacktrace=1",
    }
    return subprocess.run(
        [sys.executable, str(CHILD), *programs],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.parametrize(
    "programs",
    [
        ("matmul", "convolution", "panels", "surroundings"),
        ("normalize", "moves", "sorting", "regions"),
    ],
    ids=lambda names: names[0],
)
def test_no_report(programs, tmp_path):
    answer = run(programs, tmp_path)
    assert answer.returncode == 0, answer.stderr[-4000:]
    assert [line[3:] for line in answer.stderr.splitlines() if line[:3] == "== "] == [*programs]


def test_a_fault_is_reported(tmp_path):
    answer = run(["fault"], tmp_path)
    assert answer.returncode != 0
    assert "AddressSanitizer" in answer.stderr
