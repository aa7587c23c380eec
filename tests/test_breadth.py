"""The programs of the breadth benchmark give what PyTorch gives."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

torch = pytest.importorskip("torch")

import irees  # noqa: E402

BENCHMARKS = Path(__file__).parents[1] / "benchmarks"
sys.path.insert(0, str(BENCHMARKS))
try:
    import breadth
finally:
    sys.path.remove(str(BENCHMARKS))

UNORDERED = ("sort_rows",)
"""Programs whose second result is any of several orders of equal elements."""


@pytest.mark.parametrize("name", breadth.names())
def test_breadth(name, tmp_path):
    program = breadth.program(name, tmp_path)
    inputs = tuple(torch.from_numpy(x) for x in program.inputs)
    with torch.inference_mode():
        wanted = torch.utils._pytree.tree_leaves(program.module(*inputs))
    made = irees.compile(program.module, inputs, dynamic_shapes=program.dynamic)
    found = torch.utils._pytree.tree_leaves(made(*program.inputs))
    assert len(found) == len(wanted)
    for one, other in zip(found, wanted):
        torch.testing.assert_close(torch.as_tensor(one), other, rtol=1e-3, atol=1e-3)
        if name.removesuffix(breadth.DYNAMIC) in UNORDERED:
            return
