"""Every script below `examples/` runs, and checks its own results."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parents[2] / "examples"


@pytest.mark.parametrize("path", sorted(EXAMPLES.glob("*.py")), ids=lambda path: path.name)
def test_example(path):
    answer = subprocess.run(
        [sys.executable, str(path)], capture_output=True, text=True, check=False
    )
    assert answer.returncode == 0, answer.stderr
