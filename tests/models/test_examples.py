"""Every script below `examples/` runs, and checks its own results."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

EXAMPLES = Path(__file__).parents[2] / "examples"
# A script that writes into the folder that the others read has its own test.
WRITERS = ("export_resnet_tiny.py",)


def run(name: str, *arguments: str) -> None:
    """Runs a script; an exit status other than 0 fails the test."""
    answer = subprocess.run(
        [sys.executable, str(EXAMPLES / name), *arguments],
        capture_output=True,
        text=True,
        check=False,
    )
    assert answer.returncode == 0, answer.stderr


@pytest.mark.parametrize(
    "name", sorted(path.name for path in EXAMPLES.glob("*.py") if path.name not in WRITERS)
)
def test_example(name):
    run(name)


def test_the_stored_model_is_what_the_exporter_makes(tmp_path):
    """The same text and the same input; PyTorch's answer up to the order of its sums."""
    run("export_resnet_tiny.py", str(tmp_path))
    text = "resnet_tiny.mlir"
    assert (tmp_path / text).read_text() == (EXAMPLES / text).read_text()
    made, stored = np.load(tmp_path / "resnet_tiny.npz"), np.load(EXAMPLES / "resnet_tiny.npz")
    np.testing.assert_array_equal(made["in0"], stored["in0"])
    np.testing.assert_allclose(made["out0"], stored["out0"], rtol=1e-5, atol=1e-6)
