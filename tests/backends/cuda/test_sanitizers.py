"""Emulated kernels under ThreadSanitizer (missing barriers) and AddressSanitizer (bounds)."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest

CHILD = Path(__file__).with_name("sanitized.py")
PROGRAMS = (
    *("rows", "matmul", "matrices", "warpgroups", "accumulation", "sorting", "digits"),
    *("bulk_copies", "many_workgroups", "scatters", "shared_tiles", "attention"),
    "attention_in_registers",
)
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


def run(sanitizer: str, program: str, folder: Path) -> subprocess.CompletedProcess[str]:
    flags = f"-fsanitize={sanitizer} -g"
    environment = os.environ | {
        "IREES_CC": f"gcc {flags}",
        "IREES_CXX": f"g++ {flags}",
        "IREES_CACHE_DIR": str(folder),
        "IREES_NUM_THREADS": "1",
        "LD_PRELOAD": library(sanitizer),
        "ASAN_OPTIONS": "detect_leaks=0",
        "TSAN_OPTIONS": "exitcode=66 report_signal_unsafe=0",
        "PYTHONMALLOC": "malloc",
    }
    command = [sys.executable, str(CHILD), program]
    if shutil.which("setarch"):
        # ThreadSanitizer knows where things lie only without much randomness.
        command = ["setarch", "-R", *command]
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=False)


@pytest.mark.parametrize("sanitizer", SANITIZERS)
@pytest.mark.parametrize("program", PROGRAMS)
def test_no_report(sanitizer, program, tmp_path):
    answer = run(sanitizer, program, tmp_path)
    assert "Sanitizer" not in answer.stderr, answer.stderr[-4000:]
    assert answer.returncode == 0, answer.stderr[-4000:]


@pytest.mark.parametrize(
    ("sanitizer", "program", "words"),
    [
        ("thread", "race", "data race"),
        ("thread", "lane_race", "data race"),
        ("thread", "no_fence", "data race"),
        ("thread", "early_part", "data race"),
        ("thread", "early_box", "data race"),
        ("address", "overflow", "heap-buffer-overflow"),
    ],
)
def test_a_fault_is_reported(sanitizer, program, words, tmp_path):
    answer = run(sanitizer, program, tmp_path)
    assert answer.returncode != 0
    assert words in answer.stderr
