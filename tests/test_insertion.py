"""Passes at places of the pipeline: which there are, what they see, what happens when they fail."""

from __future__ import annotations

import re
from dataclasses import dataclass

import numpy as np
import pytest
from xdsl.context import Context
from xdsl.dialects import arith, func
from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.linalg import ops as linalg
from xdsl.irdl import IRDLOperation, irdl_op_definition
from xdsl.passes import ModulePass
from xdsl.rewriter import Rewriter

import irees
from irees.errors import ArgumentError, PluginError, UnsupportedError
from irees.insertion import canonical_insertions
from irees.options import Options
from irees.pipeline import own_phases, phases
from irees.places import ANCHORS, are_known

TEXT = """
func.func @main(%x: tensor<8x8xf32>, %y: tensor<8x8xf32>) -> tensor<8x8xf32> {
  %m = linalg.add ins(%x, %y : tensor<8x8xf32>, tensor<8x8xf32>)
      outs(%x : tensor<8x8xf32>) -> tensor<8x8xf32>
  return %m : tensor<8x8xf32>
}"""
X, Y = (np.arange(64, dtype=np.float32).reshape(8, 8) + i for i in range(2))
TARGETS = ("cpu", "cuda-emulated")
PLACES = [f"after:{name}" for name in ANCHORS if name != "emit"] + ["before:emit"]
SEEN: list[str] = []


@dataclass(frozen=True)
class LookPass(ModulePass):
    """Notes what it sees."""

    name = "test-look"

    n: int = 0

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        SEEN.append(str(op))


@dataclass(frozen=True)
class SubtractPass(ModulePass):
    """x + y  =>  x - y"""

    name = "test-subtract"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for inner in list(op.walk()):
            if isinstance(inner, arith.AddfOp):
                Rewriter.replace_op(inner, arith.SubfOp(inner.lhs, inner.rhs))


@dataclass(frozen=True)
class FailPass(ModulePass):
    """Fails, or leaves what does not verify."""

    name = "test-fail"

    how: str = "raise"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for inner in op.walk():
            if isinstance(inner, arith.AddfOp | linalg.AddOp):
                inner.operands = inner.operands[:1]
        if self.how == "raise":
            raise KeyError("no such key")


@dataclass(frozen=True)
class OptionalFailPass(FailPass):
    """The same, of a pass that programs are right without."""

    name = "test-optional-fail"
    optional = True


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("place", PLACES)
def test_every_anchor_is_there_on_every_target(target, place):
    SEEN.clear()
    program = irees.compile(TEXT, target=target, passes={place: LookPass()})
    assert len(SEEN) == 1
    assert ("memref<" in SEEN[0]) == (PLACES.index(place) >= PLACES.index("after:host"))
    assert ("linalg." in SEEN[0]) == (place != "before:emit")
    assert ("flow.executable" in SEEN[0]) == (
        PLACES.index(place) >= PLACES.index("after:dispatched")
    )
    np.testing.assert_array_equal(program(X, Y), X + Y)


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize(
    "place", ["after:structured", "after:buffers", "before:codegen", "after:global-opt"]
)
def test_what_an_inserted_pass_writes_is_compiled(target, place):
    program = irees.compile(TEXT, target=target, passes={place: SubtractPass()})
    np.testing.assert_array_equal(program(X, Y), X - Y)
    np.testing.assert_array_equal(irees.compile(TEXT, target=target)(X, Y), X + Y)


def test_kernels_are_changed_before_they_are_printed():
    """The last place is in front of the printers, of the resource check and of the proofs."""

    class ZeroPass(ModulePass):
        name = "test-zero"

        def apply(self, ctx: Context, op: ModuleOp) -> None:
            for inner in list(op.walk()):
                if isinstance(inner, arith.AddfOp):
                    Rewriter.replace_op(inner, arith.MulfOp(inner.lhs, inner.rhs))

    program = irees.compile(TEXT, passes={"before:emit": ZeroPass()})
    np.testing.assert_array_equal(program(X, Y), X * Y)


def test_passes_of_a_place_run_in_the_order_given():
    given = {"after:input": ["cse", LookPass(1)], "before:global-opt": LookPass(2)}
    names = [str(p.pipeline_pass_spec()) for f in phases(Options(passes=given)) for p in f.passes]
    at = names.index("test-look{n=1}")
    assert names[at - 1 : at + 2] == ["cse", "test-look{n=1}", "test-look{n=2}"]
    twice = Options(passes={"after:canonicalize#2": LookPass()})
    own = [p.name for f in own_phases(Options()) for p in f.passes]
    second = [i for i, name in enumerate(own) if name == "canonicalize"][1]
    assert [p.name for f in phases(twice) for p in f.passes][second + 1] == "test-look"


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (
            {"after:global-op": "cse"},
            "there is no 'global-op' in this pipeline; use after:global-o",
        ),
        ({"after:nowhere": "cse"}, "after:dispatch-creation, after:stream, after:codegen"),
        ({"after:canonicalize#9": "cse"}, "there is no 'canonicalize#9'"),
        ({"after:canonicalize#x": "cse"}, "there is no 'canonicalize#x'"),
        ({"after:emit": "cse"}, "kernels are already printed; use before:emit"),
        ({"after:verification": "cse"}, "kernels are already printed; use before:emit"),
        ({"global-opt": "cse"}, "use before:X or after:X"),
        ({3: "cse"}, "cannot be inserted at 3"),
        ({"after:input": "csee"}, "pass 'csee' is unknown; try cse"),
        ({"after:input": "cse{x=1}"}, "bad option of cse"),
        ({"after:input": "cse{"}, "brackets of the pipeline"),
        ({"after:input": LookPass}, "but got LookPass; give a text, or an object"),
        ({"after:input": 3}, "but got a int"),
        ("after:input=cse", "passes is a str, but must be a mapping"),
    ],
)
def test_what_cannot_be_inserted(given, message):
    with pytest.raises(ArgumentError) as caught:
        irees.compile(TEXT, passes=given)
    assert message in str(caught.value)


@pytest.mark.passes_fail
@pytest.mark.parametrize("place", ["after:input", "after:structured", "after:buffers"])
@pytest.mark.parametrize(
    ("how", "message"), [("raise", "failed: KeyError: 'no such key'"), ("break", "left invalid IR")]
)
def test_a_pass_that_fails_is_named_with_its_place(place, how, message):
    with pytest.raises(PluginError) as caught:
        irees.compile(TEXT, passes={place: FailPass(how)})
    assert f"test-fail, inserted at {place}, {message}" in str(caught.value)
    if how == "raise":
        assert "test_insertion.py:" in str(caught.value)
    else:
        assert re.match(r".*:\d+:\d+: error: (arith.addf|linalg.\w+): test-fail", str(caught.value))
    program = irees.compile(TEXT, passes={place: OptionalFailPass(how)})
    np.testing.assert_array_equal(program(X, Y), X + Y)
    disabled = irees.compile(TEXT, passes={place: FailPass(how)}, disable_pass=("test-fail",))
    np.testing.assert_array_equal(disabled(X, Y), X + Y)


@irdl_op_definition
class StrangerOp(IRDLOperation):
    """An op that nothing lowers."""

    name = "test.stranger"


class StrangerPass(ModulePass):
    """Adds such an op to each function."""

    name = "test-stranger"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for function in op.ops:
            if isinstance(function, func.FuncOp) and function.body.block.first_op is not None:
                function.body.block.insert_op_before(StrangerOp(), function.body.block.first_op)


def test_an_op_that_nothing_lowers_is_not_a_bug_of_irees():
    with pytest.raises(UnsupportedError, match="nothing lowers this op up to the end of phase gl"):
        irees.compile(TEXT, passes={"after:structured": StrangerPass()})


def test_the_reference_runs_them_up_to_the_kernels():
    for place in ("after:structured", "after:dispatched"):
        program = irees.compile(TEXT, target="reference", passes={place: SubtractPass()})
        np.testing.assert_array_equal(program(X, Y), X - Y)
    with pytest.raises(ArgumentError, match="target=reference has no place after:buffers"):
        irees.compile(TEXT, target="reference", passes={"after:buffers": SubtractPass()})


def test_a_program_for_devices_runs_each_once():
    SEEN.clear()
    devices = {"a": "cpu:0"}
    passes = {"after:imported": LookPass(), "after:placement": LookPass(1)}
    program = irees.compile(TEXT, devices=devices, passes=passes)
    assert len(SEEN) == 2
    np.testing.assert_array_equal(program(X, Y), X + Y)
    program = irees.compile(TEXT, devices=devices, passes={"after:buffers": SubtractPass()})
    np.testing.assert_array_equal(program(X, Y), X - Y)


def test_the_cache_knows_what_runs():
    assert are_known(Options(passes={"after:input": "cse"}))
    assert are_known(Options(passes={"after:input": LookPass(2)}))

    class LocalPass(LookPass):
        name = "test-local"

    assert not are_known(Options(passes={"after:input": LocalPass()}))
    one, two = (canonical_insertions({"after:input": LookPass(n)})[0] for n in (1, 2))
    assert repr(one) != repr(two)
    assert one.home is not None
    assert one.home.startswith(f"{__name__}:LookPass ")


class StatefulPass(ModulePass):
    """x + y  =>  x - y, if its state, which is no field of a dataclass, says so."""

    name = "test-stateful"

    def __init__(self, subtract: bool = False):
        object.__setattr__(self, "subtract", subtract)

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        if self.subtract:
            SubtractPass().apply(ctx, op)


def test_state_that_no_option_shows_keeps_a_program_out_of_the_cache():
    for subtract, expected in ((False, X + Y), (True, X - Y)):
        passes = {"after:structured": StatefulPass(subtract)}
        assert are_known(Options(passes=passes)) == (not subtract)
        np.testing.assert_array_equal(irees.compile(TEXT, passes=passes)(X, Y), expected)


def test_a_program_of_an_unknown_pass_is_not_stored(monkeypatch, tmp_path):
    monkeypatch.setenv("IREES_CACHE_DIR", str(tmp_path))

    def stored() -> int:
        return sum(path.is_file() for path in tmp_path.rglob("*"))

    SEEN.clear()
    for _ in range(2):
        irees.compile(TEXT, passes={"after:input": LookPass(1)})
    assert len(SEEN) == 1

    class LocalPass(LookPass):
        name = "test-local"

    before = stored()
    for _ in range(2):
        irees.compile(TEXT, passes={"after:input": LocalPass()})
    assert len(SEEN) == 3
    assert stored() == before
