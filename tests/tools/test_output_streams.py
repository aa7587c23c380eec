"""The command line where its output cannot be written."""

import subprocess
import sys
from pathlib import Path

import pytest

from irees.tools.main import main

PROGRAM = "func.func @f(%x: tensor<1xf32>) -> tensor<1xf32> {\n  return %x : tensor<1xf32>\n}\n"


def _run(path: Path, redirection: str) -> subprocess.CompletedProcess[str]:
    path.write_text(PROGRAM)
    line = f'"$0" -m irees run "$1" --input=1xf32=1 {redirection}'
    words = ["sh", "-c", line, sys.executable, str(path)]
    return subprocess.run(words, stderr=subprocess.PIPE, text=True, check=False)


def test_a_closed_output_is_no_error(tmp_path):
    done = _run(tmp_path / "x.mlir", ">&-")
    assert (done.returncode, done.stderr) == (0, "")


def test_a_full_device_is_an_error_of_one_line(tmp_path):
    done = _run(tmp_path / "x.mlir", ">/dev/full")
    wanted = "irees: error: cannot write: no space is left on the device; free space"
    assert done.returncode == 1
    assert done.stderr.startswith(wanted)
    assert done.stderr.count("\n") == 1


@pytest.mark.parametrize("words", [["--help"], ["--version"], ["run", "--help"], []])
def test_help_needs_an_output(words):
    line = '"$0" -m irees "$@" >/dev/full'
    done = subprocess.run(
        ["sh", "-c", line, sys.executable, *words], stderr=subprocess.PIPE, text=True, check=False
    )
    assert done.returncode == 1
    assert done.stderr.startswith("irees: error: cannot write:")
    assert done.stderr.count("\n") == 1


@pytest.mark.parametrize(("name", "reason"), [("", "is a folder"), ("x", "does not exist")])
def test_a_diff_says_why_it_cannot_read(tmp_path, capsys, name, reason):
    path = str(tmp_path / name)
    assert main(["diff", path, path]) == 1
    assert capsys.readouterr().err == f"irees: error: {path} {reason}\n"
