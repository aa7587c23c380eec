"""Random programs mean the same after kernels are formed, whatever the options."""

from __future__ import annotations

from collections import Counter

import hypothesis.strategies as st
import pytest
from hypothesis import given, settings
from xdsl.ir import Block, Operation

from irees.analysis.dispatch_roles import is_root
from irees.dialects import get_context
from irees.dialects.flow import DispatchRegionOp, ReturnOp
from irees.frontends.mlir import import_mlir
from irees.options import Options
from irees.pipeline import run_phases
from irees.testing.oracles import Case, differences, interpret, report
from irees.testing.profiles import load
from irees.testing.strategies import module_text, modules
from irees.transforms.dispatch_creation._tile_groups import is_cheap, is_dispatched
from irees.transforms.dispatch_creation.form_dispatch_regions import FormDispatchRegionsPass

FACTOR = load()
IREE_OPTIONS = (
    "aggressive_fusion",
    "fuse_multi_use_producers",
    "fuse_pad_with_consumers",
    "fuse_pad_with_producers",
)


def computing(module: Operation) -> Counter[str]:
    """The ops that run loops, by name."""
    dialects = ("linalg.", "tensor.pad", "iree_linalg_ext.")
    bodies = ("linalg.yield", "linalg.index", "iree_linalg_ext.yield", "iree_linalg_ext.index")
    return Counter(
        op.name for op in module.walk() if op.name.startswith(dialects) and op.name not in bodies
    )


def used_before_made(block: Block) -> list[str]:
    """Ops that read, inside their regions too, what a later op of the block makes."""
    place = {op: i for i, op in enumerate(block.ops)}
    return [
        user.name
        for user in block.ops
        for inner in user.walk()
        for value in inner.operands
        if value.owner in place and place[value.owner] > place[user]
    ]


def check(programs, options: Options | None, **of_pass: bool) -> None:
    module = import_mlir(module_text(programs))
    cases = [Case.of(p) for p in programs]
    expected = interpret(module, cases)
    if options is not None:
        run_phases(get_context(), module, options, to="global-opt")
    before = computing(module)
    FormDispatchRegionsPass(**of_pass).apply(get_context(), module)
    module.verify()
    regions = [op for op in module.walk() if isinstance(op, DispatchRegionOp)]
    for region in regions:
        assert not isinstance(region.parent_op(), DispatchRegionOp)
        assert [type(op) for op in region.body.block.ops][-1] is ReturnOp
        assert used_before_made(region.body.block) == []
    for block in {region.parent_block() for region in regions}:
        assert block is not None
        assert used_before_made(block) == []
    if of_pass.get("one_tile_loop"):
        outside = [op for op in module.walk() if is_dispatched(op) and not is_cheap(op)]
    else:
        # Each op is in one kernel or none; those without a use may be gone.
        assert not computing(module) - before
        outside = [op for op in module.walk() if is_root(op)]
    assert all(isinstance(op.parent_op(), DispatchRegionOp) for op in outside)
    found = differences(interpret(module, cases), expected, cases)
    assert not found, report(programs, found)


@settings(max_examples=60 * FACTOR)
@given(
    modules(min_size=1, max_size=1, max_ops=8), st.lists(st.sampled_from(IREE_OPTIONS), unique=True)
)
def test_the_rules_of_iree_keep_the_meaning(programs, chosen):
    check(programs, None, **{name: name in chosen for name in IREE_OPTIONS})


@pytest.mark.parametrize("one_tile_loop", [False, True])
@settings(max_examples=40 * FACTOR)
@given(programs=modules(min_size=1, max_size=1, max_ops=8))
def test_kernels_of_generics_keep_the_meaning(programs, one_tile_loop):
    check(programs, Options(), aggressive_fusion=True, one_tile_loop=one_tile_loop)
