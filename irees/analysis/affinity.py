"""
On which devices values are, and where ops run.

A program says it in places: an op runs on a device, a value is transferred to one, a caller's
buffer lies on one. Everything else follows: *an op runs where its operands are*, and one without
operands where its results are used. So every value has a set of affinities from its producers and
one from its consumers, and so has every op and every global:

    producer(%r = op %x)     where op runs; of a tied result, where %x is
    consumer(%x)             where the ops that use %x run
    op                       its own attribute; else producers of its operands, else
                             consumers of its results
    global                   its own attribute; else consumers of its loads, else producers of
                             what is stored

each through branches, loops, calls and globals. A set is a fact or it is unknown: what a public
function is given or an external one returns may be anywhere. That only depends on the shape of
the program, never on a set, so it is found first; then sets only grow, and the least solution
does not depend on the order of anything.

A border op with an affinity (`hal.tensor.export on(...)`) *pins*: what it touches is there, back
through ties and on through uses, whatever produced it. One without says nothing: it must not
pin what it exports to a default device. The default of an ancestor (`stream.affinity.default`)
answers a question whose set is empty, and is never part of a set; it also says where an op runs
whose operands may be anywhere, but never where an unknown value is.

IREE: `Dialect/Stream/Analysis/Affinity.cpp`, with three differences, all where IREE's answer
depends on the order in which it looks. It follows a pin through one of several uses, here it is
all. A value that is unknown but was not yet when a pin or a global looked leaves its first guess
there, here never. A loaded value that comes through a block argument or a call is where the
global is; in IREE it is also where its stores were made.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from xdsl.dialects import scf
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Block, BlockArgument, Operation, SSAValue
from xdsl.utils.hints import isa

from irees.analysis._affinity_flow import FUNCTIONS, GLOBAL, collect_flow, symbol
from irees.analysis._affinity_ops import (
    DEFAULT,
    default_affinity,
    explicit_affinity,
    is_tracked,
    pins,
    placed,
    requires_affinity,
)
from irees.analysis._affinity_pins import find_pins
from irees.analysis._affinity_rules import Element, Rules, Side, consumer, producer, solve
from irees.dialects.hal import Affinity, DeviceAffinityAttr, DeviceOptimalAttr


@dataclass(frozen=True)
class Affinities:
    """
    What was found, as sorted tuples; None is unknown, and an empty tuple is nowhere in particular.
    """

    sets: dict[Element, frozenset[Affinity] | None]
    pinned: dict[SSAValue, frozenset[Affinity]]

    def resource(self, value: SSAValue) -> tuple[Affinity, ...] | None:
        """Where a value is (IREE: `tryLookupResourceAffinity`)."""
        if value in self.pinned:
            return in_order(self.pinned[value])
        return _or_default(self.sets.get(producer(value)), _owner(value))

    def made(self, value: SSAValue) -> tuple[Affinity, ...] | None:
        """Where a value comes from, wherever it is pinned to; no default."""
        found = self.sets.get(producer(value))
        return None if found is None else in_order(found)

    def usage(self, value: SSAValue) -> tuple[Affinity, ...]:
        """Where a value is made or used (IREE: `tryLookupResourceUsageAffinity`)."""
        found = self.pinned.get(value, frozenset())
        found |= self.sets.get(producer(value)) or frozenset()
        if _is_given(value):
            return _or_default(found, _owner(value)) or ()
        found |= self.sets.get(consumer(value)) or frozenset()
        return _or_default(found, _owner(value)) or ()

    def execution(self, op: Operation) -> tuple[Affinity, ...]:
        """Where an op runs; it must run somewhere (IREE: `tryLookupExecutionAffinity`)."""
        return _or_default(self.sets.get((Side.OP, op)) or frozenset(), op) or ()

    def of_global(self, op: Operation) -> tuple[Affinity, ...]:
        """Where a global is (IREE: `tryLookupGlobalAffinity`)."""
        return _or_default(self.sets.get((Side.GLOBAL, op)) or frozenset(), op) or ()


def in_order(affinities: Iterable[Affinity]) -> tuple[Affinity, ...]:
    """Affinities in the order of how they are printed."""
    return tuple(sorted(affinities, key=str))


def lead(affinities: Iterable[Affinity] | None) -> Affinity | None:
    """The one affinity, None where there are several or none: nobody may choose by order."""
    found = set(affinities or ())
    return found.pop() if len(found) == 1 else None


def devices_of(affinity: Affinity) -> frozenset[str]:
    """The names of the devices of an affinity; queues are no places."""
    if isinstance(affinity, DeviceOptimalAttr):
        several = [each for each in affinity.affinities if isa(each, Affinity)]
        return frozenset[str]().union(*(devices_of(each) for each in several))
    if isinstance(affinity, DeviceAffinityAttr):
        return frozenset({affinity.device.string_value()})
    return frozenset({affinity.device.data})


def _or_default(
    found: frozenset[Affinity] | None, op: Operation | None
) -> tuple[Affinity, ...] | None:
    if found is None or found:
        return None if found is None else in_order(found)
    default = default_affinity(op)
    return () if default is None else (default,)


def _owner(value: SSAValue) -> Operation | None:
    block = value.owner if isinstance(value.owner, Block) else value.owner.parent_block()
    return None if block is None else block.parent_op()


def _is_given(value: SSAValue) -> bool:
    """
    Whether callers, or what is around a region, give this value. What becomes of it is theirs to
    ask: IREE keeps no consumers of it, unless an `scf.if` yields it.
    """
    if not isinstance(value, BlockArgument):
        return False
    region, parent = value.block.parent_region(), value.block.parent_op()
    if region is None or parent is None or region.first_block is not value.block:
        return False
    if isinstance(parent, scf.ForOp | scf.WhileOp):
        return False
    users = (use.operation for use in value.uses)
    return not any(
        isinstance(user, scf.YieldOp) and isinstance(user.parent_op(), scf.IfOp) for user in users
    )


def analyze_affinities(module: ModuleOp) -> Affinities:
    """Where everything in a module's functions is."""
    flow = collect_flow(module)
    globals_ = {symbol(op, "sym_name"): op for op in flow.globals}
    return Affinities(solve(Rules(flow, globals_).collect()), find_pins(flow))


__all__ = [
    "DEFAULT",
    "FUNCTIONS",
    "GLOBAL",
    "Affinities",
    "analyze_affinities",
    "default_affinity",
    "devices_of",
    "explicit_affinity",
    "in_order",
    "is_tracked",
    "lead",
    "pins",
    "placed",
    "requires_affinity",
]
