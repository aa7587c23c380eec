"""The tests of the tests: an oracle must notice what is wrong, and nothing else."""

from __future__ import annotations

import os
import re
import signal
import time
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from hypothesis import Phase, given, settings
from xdsl.dialects import arith
from xdsl.passes import ModulePass
from xdsl.rewriter import Rewriter
from xdsl.transforms.canonicalize import CanonicalizePass

from irees.frontends.mlir import import_mlir
from irees.interpreters import Interpreter
from irees.testing import builders
from irees.testing.isolation import Died, isolated
from irees.testing.oracles import Case, differences, interpret
from irees.testing.profiles import load
from irees.testing.strategies import MAX_ELEMENTS, module_text, modules
from irees.testing.tolerances import EXACT, mismatch, reassociated, ulps

FACTOR = load()


@settings(max_examples=100 * FACTOR)
@given(modules(min_size=1, max_size=1))
def test_programs_are_valid_and_shapes_are_as_drawn(programs):
    module = import_mlir(module_text(programs))
    for program in programs:
        results = Interpreter(module).call(program.name, *program.inputs())
        assert [r.shape for r in results] == [r.shape for r in program.results]
        assert all(np.prod(a.shape) <= MAX_ELEMENTS for a in program.inputs())


@settings(max_examples=50 * FACTOR)
@given(modules(min_size=1, max_size=1))
def test_float_results_stay_below_their_bound(programs):
    (program,) = programs
    if program.special:
        return
    results = Interpreter(import_mlir(module_text(programs))).call("p0", *program.inputs())
    for result, value in zip(results, program.results, strict=True):
        if value.is_float and value.exact and result.size:
            assert np.abs(result.astype(np.float64)).max() <= value.bound or np.isinf(result).any()


def test_a_planted_wrong_op_is_found():
    text = """
    func.func @main(%a: tensor<4xf32>) -> tensor<4xf32> {
      %0 = arith.addf %a, %a : tensor<4xf32>
      return %0 : tensor<4xf32>
    }"""
    module = import_mlir(text)
    cases = [Case("main", (np.arange(4, dtype=np.float32),))]
    expected = interpret(module, cases)
    add = next(op for op in module.walk() if isinstance(op, arith.AddfOp))
    wrong = arith.MulfOp(add.lhs, add.rhs)
    add.parent_block().insert_op_before(wrong, add)
    add.result.replace_all_uses_with(wrong.result)
    found = differences(interpret(module, cases), expected, cases)
    assert len(found) == 1
    assert "at [1]" in found[0]


@pytest.mark.parametrize("dtype", [np.float32, np.float16, ml_dtypes.bfloat16])
def test_exact_means_bits(dtype):
    one = np.array([1.0, 0.0, np.nan], dtype)
    assert mismatch(one, one.copy()) is None
    assert mismatch(np.array([1.0, -0.0, np.nan], dtype), one) is not None
    assert mismatch(np.array([1.0, 0.0, 0.0], dtype), one) is not None
    assert mismatch(-np.array([-1.0, 0.0, np.nan], dtype) * 1, one) is not None
    assert mismatch(one[:2], one) == "shape (2,) instead of (3,)"


def test_tolerances_admit_what_they_say():
    x = np.array([1.0, 2.0], np.float32)
    near = np.nextafter(x, np.float32(3))
    assert mismatch(near, x, EXACT) is not None
    assert mismatch(near, x, ulps(1)) is None
    assert mismatch(x * np.float32(1.001), x, ulps(4)) is not None
    assert mismatch(x + np.float32(1e-6), x, reassociated(16)) is None


def test_a_crash_and_a_hang_are_findings():
    with pytest.raises(Died, match="SIGKILL"):
        isolated(lambda: os.kill(os.getpid(), signal.SIGKILL), 10)
    with pytest.raises(Died, match="no answer"):
        isolated(lambda: time.sleep(60), 0.2)
    with pytest.raises(RuntimeError, match="ValueError: no"):
        isolated(_fails, 10)
    assert isolated(lambda: np.arange(3), 10).tolist() == [0, 1, 2]


def _fails():
    raise ValueError("no")


def test_the_page_on_fuzzing_runs(monkeypatch):
    """docs/fuzzing.md: a pass of one's own in four lines and in ten, and a builder that takes part."""
    page = (Path(__file__).parents[2] / "docs" / "fuzzing.md").read_text()
    short, test, negate = re.findall(r"```python\n(.*?)```", page, re.S)
    short = short.replace("from my_passes import MyPass", "")
    short = short.replace("fuzz(MyPass())", 'fuzz(MyPass(), examples=20, ops=["elementwise"])')
    names: dict[str, Any] = {"MyPass": CanonicalizePass}
    exec(compile(short, "fuzzing.md", "exec"), names)
    names["test_my_pass_keeps_the_meaning"]()
    monkeypatch.setattr(builders, "BUILDERS", dict(builders.BUILDERS))
    exec(compile(negate, "fuzzing.md", "exec"), {})
    assert "negate" in builders.BUILDERS
    runs: list[int] = []

    class Breaks(ModulePass):
        name = "breaks"

        def apply(self, ctx, op):
            runs.append(1)
            for negation in [o for o in op.walk() if o.name == "linalg.negf"]:
                Rewriter.replace_op(negation, [], [negation.operands[0]])

    for pass_ in (CanonicalizePass, Breaks):
        text = test.replace("from my_passes import MyPass", "")
        # What fails need not be shrunk here.
        text = text.replace("max_examples=500", "max_examples=60, phases=[Phase.generate]")
        names = {"MyPass": pass_, "Phase": Phase}
        exec(compile(text, "fuzzing.md", "exec"), names)
        if pass_ is Breaks:
            with pytest.raises(AssertionError, match="instead of"):
                names["test_my_pass_keeps_the_meaning"]()
        else:
            names["test_my_pass_keeps_the_meaning"]()
    assert runs
