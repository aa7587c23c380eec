"""
Finds the values pinned by border ops with an affinity.

    %y = flow.dispatch @k(%x) : ... -> %x            %x and %y are on @b, and so are the values
    %e = hal.tensor.export on(@b) %y            =>   tied to them, through loops, calls and globals

Propagation ends at the next pin, or at a value of untracked type. IREE: `PrecomputedQueries`.
"""

from __future__ import annotations

from collections import defaultdict

from xdsl.ir import Operation, OpResult, SSAValue

from irees.analysis._affinity_flow import Flow
from irees.analysis._affinity_ops import is_tracked, own_affinity, pins, tied_operand, tied_results
from irees.dialects.hal import Affinity


def find_pins(flow: Flow) -> dict[SSAValue, frozenset[Affinity]]:
    """Returns the affinities of each pinned value."""
    found: dict[SSAValue, set[Affinity]] = defaultdict(set)
    for op in flow.walk():
        affinity = own_affinity(op) if pins(op) else None
        if affinity is None:
            continue
        for value in (*_pinned_uses(op, flow), *_pinned_definitions(op, flow)):
            found[value].add(affinity)
    return {value: frozenset(affinities) for value, affinities in found.items()}


def _pinned_uses(op: Operation, flow: Flow) -> set[SSAValue]:
    """Returns the tied and forwarded values of a pin's results, up to the next pin."""
    found: set[SSAValue] = set()
    wanted: list[SSAValue] = list(op.results)
    while wanted:
        value = wanted.pop()
        if value in found or not is_tracked(value.type):
            continue
        for use in value.uses:
            if pins(use.operation):
                continue
            found.add(value)
            wanted.extend(tied_results(use.operation, use.index))
            wanted.extend(flow.goes_to(use.operation, use.index))
    return found


def _pinned_definitions(op: Operation, flow: Flow) -> set[SSAValue]:
    """Returns the tied and forwarded sources of a pin's operands, up to the previous pin."""
    found: set[SSAValue] = set()
    seen: set[SSAValue] = set()
    wanted = list(op.operands)
    while wanted:
        value = wanted.pop()
        if value in seen or not is_tracked(value.type):
            continue
        seen.add(value)
        if isinstance(value, OpResult):
            if pins(value.op):
                continue
            found.add(value)
            storage = tied_operand(value)
            wanted.extend([] if storage is None else [storage])
        wanted.extend(flow.comes_from(value))
    return found
