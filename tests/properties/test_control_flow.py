"""
Random graphs of blocks, lifted to loops and choices, give the bits that they gave as blocks.

Any block may go on to any other: loops that are entered at several places, left for several, and
inside each other. Each goes on only while there is fuel, so all of them end. A block may use what
any block that dominates it has made, so values leave loops in other ways than as arguments.
"""

from __future__ import annotations

import numpy as np
from hypothesis import event, given, settings
from hypothesis import strategies as st
from xdsl.dialects import cf

from irees.frontends.mlir import import_mlir
from irees.testing import profiles
from irees.testing.oracles import Case, compiled_agrees, interpret, passes_agree
from irees.transforms.input.lift_cf_to_scf import LiftCfToScfPass

FACTOR = profiles.load()
TENSOR = "tensor<3xi32>"


def dominators(successors: list[list[int]]) -> list[set[int]]:
    """The blocks that every way to a block, from the first one on, comes through."""
    count = len(successors)
    found = [{0}, *({*range(count)} for _ in range(count - 1))]
    changed = True
    while changed:
        changed = False
        for block in range(1, count):
            before = [found[b] for b in range(count) if block in successors[b]]
            new = {block} | (set.intersection(*before) if before else set())
            changed |= new != found[block]
            found[block] = new
    return found


@st.composite
def graphs(draw):
    """The text of @main, and how many blocks there are."""
    count = draw(st.integers(2, 7))
    others = st.integers(1, count - 1)
    successors = [
        draw(st.lists(others, min_size=1, max_size=3 if draw(st.booleans()) else 2))
        for _ in range(count)
    ]
    above = dominators(successors)
    lines = []
    for block, targets in enumerate(successors):
        made = sorted(above[block] - {block}) or [block]
        scalar, whole = (draw(st.sampled_from(made)) for _ in range(2))
        lines.append(
            f"^b{block}(%f{block}: i32, %x{block}: i32, %t{block}: {TENSOR}):"
            if block
            else f"func.func @main(%f0: i32, %x0: i32, %t0: {TENSOR}) -> (i32, {TENSOR}) {{\n"
            f"  %c0 = arith.constant 0 : i32\n  %c1 = arith.constant 1 : i32"
        )
        source = f"%u{whole}" if whole != block else f"%t{block}"
        lines += [
            f"  %m{block} = arith.constant {draw(st.integers(1, 9))} : i32",
            f"  %g{block} = arith.subi %f{block}, %c1 : i32",
            f"  %w{block} = arith.muli %x{block}, %m{block} : i32",
            f"  %v{block} = arith.addi %w{block}, %{'y' if scalar != block else 'x'}{scalar} : i32",
            f"  %y{block} = arith.xori %v{block}, %f{block} : i32",
            f"  %u{block} = arith.addi %t{block}, {source} : {TENSOR}",
            f"  %e{block} = arith.cmpi sle, %g{block}, %c0 : i32",
            f"  cf.cond_br %e{block}, ^end(%y{block}, %u{block} : i32, {TENSOR}), ^n{block}",
            f"^n{block}:",
            f"  %p{block} = arith.andi %y{block}, %m{block} : i32",
        ]
        kinds = f": i32, i32, {TENSOR}"
        passed = [
            f"^b{t}(%g{block}, %{draw(st.sampled_from('yvw'))}{block}, %u{block} {kinds})"
            for t in targets
        ]
        match passed:
            case [only]:
                lines.append(f"  cf.br {only}")
            case [one, other]:
                lines.append(f"  %q{block} = arith.cmpi eq, %p{block}, %c0 : i32")
                lines.append(f"  cf.cond_br %q{block}, {one}, {other}")
            case [default, one, other]:
                cases = f"default: {default}, 0: {one}, {draw(st.integers(1, 9))}: {other}"
                lines.append(f"  cf.switch %p{block} : i32, [ {cases} ]")
    lines += [f"^end(%r: i32, %s: {TENSOR}):", f"  return %r, %s : i32, {TENSOR}", "}"]
    return "\n".join(lines), count


FUEL = st.sampled_from([1, 2, 3, 5, 8, 40])


def case_of(fuel: int) -> Case:
    """A call that ends at once, goes a little way, or goes far."""
    row = np.random.default_rng(0).integers(-9, 9, 3).astype(np.int32)
    return Case("main", (np.int32(fuel), np.int32(5), row))


@settings(max_examples=120 * FACTOR)
@given(graphs(), FUEL)
def test_lifted_blocks_give_the_same_bits(graph, fuel):
    text, count = graph
    module, differences = passes_agree(text, [LiftCfToScfPass()], *case_of(fuel).inputs)
    assert differences == []
    assert not any(isinstance(op, cf.BranchOp | cf.ConditionalBranchOp) for op in module.walk())
    event(f"blocks: {count}, loops: {sum(op.name == 'scf.while' for op in module.walk())}")


@settings(max_examples=6 * FACTOR)
@given(graphs(), FUEL)
def test_lifted_blocks_compile(graph, fuel):
    module, case = import_mlir(graph[0]), case_of(fuel)
    expected = interpret(module, [case])
    assert compiled_agrees(module, [case], expected, isolate=False, fp="strict") == []
