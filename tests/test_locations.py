"""Generated code is traced back to the source: ops that passes build have a location."""

from __future__ import annotations

from pathlib import Path

import pytest
from xdsl.dialects.builtin import ModuleOp, UnknownLoc
from xdsl.traits import IsTerminator

import irees
from irees.build import import_source
from irees.dialects import get_context
from irees.errors import InternalError, UnsupportedError
from irees.hooks import Hooks
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
    run_phases(get_context(), module, Options(target=target), hooks=Hooks(after=after))
    shares = {phase: sum(located) / len(located) for phase, located in found.items()}
    assert shares["codegen"] >= least, shares
    assert shares["global-opt"] >= 0.9, shares


def test_a_pass_that_fails_names_the_op_and_its_place(monkeypatch):
    """The op of the pattern that was running, whatever was raised."""
    from irees.transforms.global_opt.generalize_linalg_named_ops import (
        GeneralizeLinalgNamedOpsPass as Broken,
    )

    text = """func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
  %e = tensor.empty() : tensor<4xf32>
  %r = linalg.exp ins(%x : tensor<4xf32>) outs(%e : tensor<4xf32>) -> tensor<4xf32>
  return %r : tensor<4xf32>
}"""
    raised: list[Exception] = [KeyError("oh"), UnsupportedError("not this")]

    def rewrite(op):
        raise raised[-1]

    def apply(self, ctx, op):
        for each in op.walk():
            if each.name == "linalg.exp":
                rewrite(each)

    monkeypatch.setattr(Broken, "apply", apply)
    with pytest.raises(UnsupportedError, match=r"^<text>:3:3: error: not this$"):
        irees.compile(text)
    raised.pop()
    match = (
        r"<text>:3:3: error: linalg.exp: irees-generalize-linalg-named-ops failed: KeyError: 'oh'"
    )
    with pytest.raises(InternalError, match=match):
        irees.compile(text)
