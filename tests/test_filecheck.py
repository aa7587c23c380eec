"""Every file below `filecheck/`, run by lit; one test per folder, so that a failure says where."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))
from forked_tools import forked_tools

REPOSITORY = Path(__file__).parents[1]
ROOT = REPOSITORY / "filecheck"
DIALECTS = ROOT / "dialects"
FOLDERS = sorted(
    {
        # Of dialects one test for all, because most have one file.
        DIALECTS if path.is_relative_to(DIALECTS) else path.parent
        for path in ROOT.rglob("*.mlir")
    }
)
AS_INSTALLED = ROOT / "phases"
"""Where the commands run as users have them, each in a process of its own."""


@pytest.fixture(scope="module")
def tools() -> Iterator[dict[str, str]]:
    """The environment in which the commands are forked."""
    with forked_tools() as folder:
        yield os.environ | {"IREES_LIT_TOOLS": folder}


@pytest.mark.whole
@pytest.mark.parametrize("folder", FOLDERS, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_lit(folder, tools):
    pytest.importorskip("lit")
    files = sorted(str(path) for path in folder.rglob("*.mlir"))
    lit = (sys.executable, "-c", "from lit.main import main; main()", "-v", "--order=lexical")
    answer = subprocess.run(
        [*lit, *files],
        capture_output=True,
        text=True,
        cwd=REPOSITORY,
        env=dict(os.environ) if folder == AS_INSTALLED else tools,
        check=False,
    )
    assert answer.returncode == 0, answer.stdout[-8000:] + answer.stderr[-2000:]
