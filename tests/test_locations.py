"""Generated code is traced back to the source: ops that passes build have a location."""

from __future__ import annotations

from pathlib import Path

import pytest
from xdsl.dialects.builtin import ModuleOp, UnknownLoc
from xdsl.traits import IsTerminator

from irees.build import import_source
from irees.dialects import get_context
from irees.options import Options
from irees.pipeline import run_phases

EXAMPLES = Path(__file__).parents[1] / "examples"
STRUCTURE = {"builtin.module", "func.func", "memref.view", "memref.subview"}
"""Ops that stand for a kernel or a part of memory as a whole."""


@pytest.mark.parametrize("name", ["resnet_tiny", "softmax"])
@pytest.mark.parametrize(("target", "least"), [("cpu", 0.93), ("cuda-emulated", 0.9)])
def test_ops_of_kernels_have_a_place_in_the_source(name, target, least):
    found: dict[str, list[bool]] = {}

    def after(phase: str, module: ModuleOp, seconds: float) -> None:
        found[phase] = [
            not isinstance(op.location, UnknownLoc)
            for op in module.walk()
            if op.name not in STRUCTURE and not op.has_trait(IsTerminator)
        ]

    module = import_source(EXAMPLES / f"{name}.mlir").module
    run_phases(get_context(), module, Options(target=target), after=after)
    shares = {phase: sum(located) / len(located) for phase, located in found.items()}
    assert shares["codegen"] >= least, shares
    assert shares["global-opt"] >= 0.9, shares
