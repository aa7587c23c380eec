"""Emulated kernels under ThreadSanitizer (missing barriers) and AddressSanitizer (bounds)."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Sequence
from functools import cache
from pathlib import Path

import pytest

CHILD = Path(__file__).with_name("sanitized.py")
PROGRAMS = {
    "sums": ("rows", "matmul", "matrices", "accumulation"),
    "shares": ("shared_tiles",),
    "order": ("sorting", "digits", "many_workgroups", "scatters"),
    "copies": ("warpgroups", "bulk_copies", "attention", "attention_in_registers"),
}
SANITIZERS = {"thread": "libtsan.so", "address": "libasan.so"}


@cache
def library(name: str) -> str:
    """A sanitizer's runtime, to be loaded before Python; skips when there is none."""
    gcc = shutil.which("gcc")
    if gcc is None or shutil.which("g++") is None:
        pytest.skip("there is no gcc with g++, whose sanitizers this loads: install them to run it")
    answer = subprocess.run(
        [gcc, f"-print-file-name={SANITIZERS[name]}"], capture_output=True, text=True, check=False
    )
    path = answer.stdout.strip()
    if not os.path.isabs(path):
        pytest.skip(f"gcc has no {SANITIZERS[name]}: install it to run this")
    return os.path.realpath(path)


def run(sanitizer: str, programs: Sequence[str], folder: Path) -> dict[str, tuple[int, str]]:
    """What each program ended with, and what it said."""
    flags = f"-fsanitize={sanitizer} -g"
    environment = os.environ | {
        "IREES_CC": f"gcc {flags}",
        "IREES_CXX": f"g++ {flags}",
        "IREES_CACHE_DIR": str(folder),
        "IREES_NUM_THREADS": "1",
        "LD_PRELOAD": library(sanitizer),
        "ASAN_OPTIONS": "detect_leaks=0",
        "TSAN_OPTIONS": "exitcode=66 report_signal_unsafe=0",
        # A thread of numpy's would outlive no fork.
        "OPENBLAS_NUM_THREADS": "1",
    }
    command = [sys.executable, str(CHILD), *programs]
    if shutil.which("setarch"):
        # ThreadSanitizer knows where things lie only without much randomness.
        command = ["setarch", "-R", *command]
    answer = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    said = re.split(r"^== (\w+): (-?\d+)\n", answer.stderr, flags=re.MULTILINE)
    assert said[1::3] == list(programs), answer.stderr[-4000:]
    texts, names, statuses = said[::3], said[1::3], said[2::3]
    return {
        name: (int(status), text)
        for name, status, text in zip(names, statuses, texts, strict=False)
    }


@pytest.mark.parametrize("sanitizer", SANITIZERS)
@pytest.mark.parametrize("programs", PROGRAMS)
def test_no_report(sanitizer, programs, tmp_path):
    for name, (status, text) in run(sanitizer, PROGRAMS[programs], tmp_path).items():
        assert "Sanitizer" not in text, f"{name}: {text[-4000:]}"
        assert status == 0, f"{name}: {text[-4000:]}"


@pytest.mark.parametrize(
    ("sanitizer", "words", "programs"),
    [
        ("thread", "data race", ["race", "lane_race", "no_fence", "early_part", "early_box"]),
        ("address", "heap-buffer-overflow", ["overflow"]),
    ],
)
def test_a_fault_is_reported(sanitizer, words, programs, tmp_path):
    for name, (status, text) in run(sanitizer, programs, tmp_path).items():
        assert status != 0, name
        # A race may also end in a wrong value, before the sanitizer has seen both accesses.
        reported = words in text or (sanitizer == "thread" and "Arrays are not equal" in text)
        assert reported, f"{name}: {text[-4000:]}"
