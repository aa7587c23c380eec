"""Random programs mean the same after kernels are formed, whatever the options."""

from __future__ import annotations

from collections import Counter

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given, settings
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Block, Operation
from xdsl.passes import ModulePass

from irees.analysis.dispatch_roles import is_root
from irees.dialects import get_context
from irees.dialects.flow import DispatchRegionOp, ReturnOp
from irees.frontends.mlir import import_mlir
from irees.options import Options
from irees.pipeline import run_phases
from irees.testing.oracles import Case, differences, interpret, report
from irees.testing.profiles import load
from irees.testing.strategies import module_text, modules
from irees.transforms.dispatch_creation.form_tile_regions import (
    FormTileRegionsPass,
    is_cheap,
    is_dispatched,
)
from irees.transforms.iree.clone_producers_into_dispatch_regions import (
    CloneProducersIntoDispatchRegionsPass,
)
from irees.transforms.iree.form_dispatch_regions import FormDispatchRegionsPass

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


def check(programs, options: Options | None, forms: ModulePass) -> None:
    module = import_mlir(module_text(programs))
    cases = [Case.of(p) for p in programs]
    expected = interpret(module, cases)
    if options is not None:
        run_phases(get_context(), module, options, to="global-opt")
    form(module, forms)
    found = differences(interpret(module, cases), expected, cases)
    assert not found, report(programs, found)
    aggressive = getattr(forms, "aggressive_fusion", True)
    CloneProducersIntoDispatchRegionsPass(aggressive).apply(get_context(), module)
    module.verify()
    found = differences(interpret(module, cases), expected, cases)
    assert not found, report(programs, found)


def form(module: ModuleOp, forms: ModulePass) -> None:
    """Runs a pass that forms kernels, and says what is wrong with them."""
    before = computing(module)
    forms.apply(get_context(), module)
    module.verify()
    regions = [op for op in module.walk() if isinstance(op, DispatchRegionOp)]
    for region in regions:
        assert not isinstance(region.parent_op(), DispatchRegionOp)
        assert [type(op) for op in region.body.block.ops][-1] is ReturnOp
        assert used_before_made(region.body.block) == []
    for block in {region.parent_block() for region in regions}:
        assert block is not None
        assert used_before_made(block) == []
    if isinstance(forms, FormTileRegionsPass):
        outside = [op for op in module.walk() if is_dispatched(op) and not is_cheap(op)]
    else:
        # Each op is in one kernel or none; those without a use may be gone.
        assert not computing(module) - before
        outside = [op for op in module.walk() if is_root(op)]
    assert all(isinstance(op.parent_op(), DispatchRegionOp) for op in outside)


@settings(max_examples=60 * FACTOR)
@given(
    modules(min_size=1, max_size=1, max_ops=8), st.lists(st.sampled_from(IREE_OPTIONS), unique=True)
)
def test_the_rules_of_iree_keep_the_meaning(programs, chosen):
    check(
        programs, None, FormDispatchRegionsPass(**{name: name in chosen for name in IREE_OPTIONS})
    )


AGGRESSIVE = FormDispatchRegionsPass(aggressive_fusion=True)


@pytest.mark.parametrize("forms", [AGGRESSIVE, FormTileRegionsPass()], ids=["iree", "tile"])
@settings(max_examples=40 * FACTOR)
@given(programs=modules(min_size=1, max_size=1, max_ops=8))
def test_kernels_of_generics_keep_the_meaning(programs, forms):
    check(programs, Options(), forms)


SIZE = 16
MAPS = {
    "id": "affine_map<(d0, d1) -> (d0, d1)>",
    "tr": "affine_map<(d0, d1) -> (d1, d0)>",
    "row": "affine_map<(d0, d1) -> (d0)>",
    "col": "affine_map<(d0, d1) -> (d1)>",
    "one": "affine_map<(d0) -> (d0)>",
}


@st.composite
def graphs(draw: st.DrawFn) -> str:
    """
    A function of many small ops that read each other's results: in order, transposed, by rows, as a
    whole (one element, which any tile may need), or through an op that no kernel takes.
    """
    vector, matrix = f"tensor<{SIZE}xf32>", f"tensor<{SIZE}x{SIZE}xf32>"
    types = {"%x": matrix, "%u": vector}
    lines = ["%c0 = arith.constant 0 : index", f"%ev = tensor.empty() : {vector}"]
    lines.append(f"%em = tensor.empty() : {matrix}")

    def any_of(*wanted: str) -> str:
        names = [name for name, kind in types.items() if kind in wanted]
        return draw(st.sampled_from(names[-5:]))

    def read(name: str, dest: str) -> str:
        if dest == vector:
            return MAPS["one"]
        return MAPS[
            draw(st.sampled_from(("id", "tr") if types[name] == matrix else ("row", "col")))
        ]

    for number in range(draw(st.integers(3, 14))):
        name = f"%n{number}"
        kind = draw(st.sampled_from(("map", "map", "reduce", "whole", "outside")))
        source = any_of(vector, matrix)
        if kind == "outside":
            lines.append(f"{name} = util.optimization_barrier {source} : {types[source]}")
            types[name] = types[source]
            continue
        if kind == "reduce":
            source = any_of(matrix)
            used, maps = [source], [read(source, matrix), MAPS["row"]]
            dest, kinds = vector, '"parallel", "reduction"'
            body = "%r = arith.maximumf %a0, %o : f32"
        else:
            dest = draw(st.sampled_from((matrix, types[source])))
            used = [source, any_of(vector)] if kind == "map" else [source]
            maps = [*(read(each, dest) for each in used), MAPS["id" if dest == matrix else "one"]]
            kinds = '"parallel", "parallel"' if dest == matrix else '"parallel"'
            other = any_of(vector, matrix)
            at = "%c0, %c0" if types[other] == matrix else "%c0"
            body = (
                "%r = arith.addf %a0, %a1 : f32"
                if kind == "map"
                else f"%e = tensor.extract {other}[{at}] : {types[other]}\n"
                "%r = arith.maximumf %a0, %e : f32"
            )
        args = ", ".join(f"%a{i}: f32" for i in range(len(used)))
        ins = f"{', '.join(used)} : {', '.join(types[each] for each in used)}"
        out = "%em" if dest == matrix else "%ev" if kind != "reduce" else "%u"
        lines.append(
            f"{name} = linalg.generic {{indexing_maps = [{', '.join(maps)}], "
            f"iterator_types = [{kinds}]}} ins({ins}) outs({out} : {dest}) {{\n"
            f"^bb0({args}, %o: f32):\n{body}\nlinalg.yield %r : f32\n}} -> {dest}"
        )
        types[name] = dest
    names = [name for name in types if name.startswith("%n")]
    results = draw(st.lists(st.sampled_from(names), min_size=1, max_size=4, unique=True))
    if names[-1] not in results:
        results.append(names[-1])
    kinds = ", ".join(types[each] for each in results)
    lines.append(f"return {', '.join(results)} : {kinds}")
    body = "\n".join(lines)
    return f"func.func @f(%x: {matrix}, %u: {vector}) -> ({kinds}) {{\n{body}\n}}\n"


@settings(max_examples=150 * FACTOR)
@given(graphs(), st.sampled_from((AGGRESSIVE, FormDispatchRegionsPass(), FormTileRegionsPass())))
def test_no_kernel_waits_for_itself(text, forms):
    module = import_mlir(text)
    random = np.random.default_rng(0)
    shapes = (SIZE, SIZE), (SIZE,)
    cases = [Case("f", tuple(random.normal(size=s).astype(np.float32) for s in shapes))]
    expected = interpret(module, cases)
    form(module, forms)
    assert differences(interpret(module, cases), expected, cases) == [], text
