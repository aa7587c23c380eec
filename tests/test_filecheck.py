"""Every file below `filecheck/`, run by lit; one test per folder, so that a failure says where."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).parents[1]
ROOT = REPOSITORY / "filecheck"
FOLDERS = sorted({path.parent for path in ROOT.rglob("*.mlir")})


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_lit(folder):
    pytest.importorskip("lit")
    files = sorted(str(path) for path in folder.glob("*.mlir"))
    answer = subprocess.run(
        [
            sys.executable,
            "-c",
            "from lit.main import main; main()",
            "-v",
            "--order=lexical",
            *files,
        ],
        capture_output=True,
        text=True,
        cwd=REPOSITORY,
        check=False,
    )
    assert answer.returncode == 0, answer.stdout[-8000:] + answer.stderr[-2000:]
