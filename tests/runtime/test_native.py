"""The native runtime under sanitizers, with several callers and forks at once."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from irees.backends.common.toolchain import NATIVE, find_compiler

STRESS = Path(__file__).with_name("stress.c")
WARNINGS = ("-Wall", "-Wextra", "-Wconversion", "-Werror")


@pytest.mark.parametrize(
    ("sanitizer", "words"),
    [("none", []), ("address,undefined", []), ("thread", ["without-fork"])],
    ids=("plain", "address", "thread"),
)
def test_stress(tmp_path, sanitizer, words):
    flags = [] if sanitizer == "none" else [f"-fsanitize={sanitizer}"]
    command = [
        *find_compiler().command,
        *("-std=gnu11", "-O2", "-g", *WARNINGS, *flags, "-I", str(NATIVE)),
        *(str(NATIVE / "runtime.c"), str(STRESS), "-o", str(tmp_path / "stress"), "-lpthread"),
    ]
    built = subprocess.run(command, capture_output=True, text=True, check=False)
    if built.returncode and flags and "cannot find" in built.stderr:
        pytest.skip(f"no sanitizer libraries: {built.stderr[-200:]}")
    assert built.returncode == 0, built.stderr
    ran = subprocess.run(
        [str(tmp_path / "stress"), *words],
        capture_output=True,
        text=True,
        timeout=120,
        env={"ASAN_OPTIONS": "detect_leaks=0"},
        check=False,
    )
    assert (ran.returncode, ran.stderr) == (0, "")
