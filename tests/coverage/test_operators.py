"""
PyTorch's operator database, a fixed part of it: every operator once, interpreted; some compiled to C
and some by `torch.compile`. The whole of it is a command in CONTRIBUTING.md.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("torch", reason="needs torch: pip install 'irees[torch]'")
pytest.importorskip("expecttest", reason="the database needs expecttest: make test-models")

HERE = Path(__file__).parent
NOT_LOWERED = {
    "linalg.ldl_factor", "linalg.ldl_factor_ex", "linalg.ldl_solve",
    "chalf",  # complex32
    "tensor_split",  # by a tensor: PyTorch exports sizes that depend on data no further
    "nn.functional.gaussian_nll_loss",  # its Python asks whether a variance is negative
    "native_batch_norm",  # writes statistics that its schema does not name
}  # fmt: skip
"""Operators that irees leaves to PyTorch: it says so, by a typed error."""


def run(tmp_path, *arguments):
    """Sample => verdict."""
    out = tmp_path / "results.json"
    command = [sys.executable, str(HERE / "operators.py"), "--out", str(out), *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    return json.loads(out.read_text())


def failures(results, *fine):
    """The samples whose verdict is none of these."""
    return {n: v for n, v in results.items() if v.split()[0] not in ("PASS", "EAGER", *fine)}


@pytest.mark.parametrize("dtype", ["float32", "int64"])
def test_every_operator_is_right_or_refused(dtype, tmp_path):
    results = run(tmp_path, "--dtype", dtype, "--limit", "1", "--target", "reference")
    assert failures(results, "UNSUPPORTED") == {}
    refused = {name.split("#")[0] for name in failures(results)}
    assert refused <= NOT_LOWERED
    assert len(results) > 300


def every(count, first, tmp_path):
    """A file of every so many operators' names."""
    from torch.testing._internal.common_methods_invocations import op_db

    names = [
        f"{op.name}.{op.variant_test_name}" if op.variant_test_name else op.name for op in op_db
    ]
    path = tmp_path / "names.txt"
    path.write_text("\n".join(names[first::count]))
    return path


@pytest.mark.parametrize(("dtype", "count", "first"), [("float32", 20, 0), ("bfloat16", 60, 7)])
def test_some_operators_compiled_to_c(dtype, count, first, tmp_path):
    names = every(count, first, tmp_path)
    results = run(tmp_path, "--dtype", dtype, "--limit", "1", "--names", str(names))
    assert failures(results, "UNSUPPORTED") == {}
    assert {name.split("#")[0] for name in failures(results)} <= NOT_LOWERED


def test_some_operators_by_torch_compile_with_fallback(tmp_path):
    names = every(40, 3, tmp_path)
    results = run(tmp_path, "--mode", "compile", "--limit", "1", "--names", str(names))
    assert failures(results) == {}
