"""
Infers the device affinities of values, ops and globals.

Some ops state an affinity: a placed op, a transfer, an import of a caller's buffer. The analysis
infers all other affinities: an op runs where its operands are, or if it has none, where its results
are used. It computes these sets, through branches, loops, calls and globals:

    producer(%r = op %x)     where op runs; for a tied result, producer(%x)
    consumer(%x)             where the users of %x run
    op                       its own attribute; else producers of its operands, else
                             consumers of its results
    global                   its own attribute; else consumers of its loads, else producers of
                             the stored values

A set is known or unknown: arguments of public functions and results of external calls are unknown.
Unknown sets depend only on the control flow, so the analysis finds them first. The known sets then
grow monotonically to a least fixed point, independent of visiting order.

A border op with an affinity (`hal.tensor.export on(...)`) *pins* its operands and results there,
back through ties and forward through uses, whatever their producer. A border op without an affinity
does not pin: an export must not pin its operand to a default device. The default of an ancestor
(`stream.affinity.default`) replaces an empty set in queries, and is never an element of a set. An
op with unknown operands runs on the default, but an unknown value stays unknown.

IREE: `Dialect/Stream/Analysis/Affinity.cpp`. irees differs in three cases, in all of which IREE's
result depends on its visiting order. IREE follows a pin through one of several uses, irees through
all. If a value becomes unknown only after a pin or a global has queried it, IREE keeps the first
guess; irees never does. A loaded value passed through a block argument or a call is where the
global is; in IREE also where the stored values were produced.
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
    """The result of the analysis. Queries return sorted tuples: None if unknown, () if none."""

    sets: dict[Element, frozenset[Affinity] | None]
    pinned: dict[SSAValue, frozenset[Affinity]]

    def resource(self, value: SSAValue) -> tuple[Affinity, ...] | None:
        """Returns the affinities of a value (IREE: `tryLookupResourceAffinity`)."""
        if value in self.pinned:
            return in_order(self.pinned[value])
        return _or_default(self.sets.get(producer(value)), _owner(value))

    def made(self, value: SSAValue) -> tuple[Affinity, ...] | None:
        """Returns the affinities of the producers of a value, without pins or a default."""
        found = self.sets.get(producer(value))
        return None if found is None else in_order(found)

    def usage(self, value: SSAValue) -> tuple[Affinity, ...]:
        """Returns producer and consumer affinities (IREE: `tryLookupResourceUsageAffinity`)."""
        found = self.pinned.get(value, frozenset())
        found |= self.sets.get(producer(value)) or frozenset()
        if _is_given(value):
            return _or_default(found, _owner(value)) or ()
        found |= self.sets.get(consumer(value)) or frozenset()
        return _or_default(found, _owner(value)) or ()

    def execution(self, op: Operation) -> tuple[Affinity, ...]:
        """Returns the affinities that an op runs on (IREE: `tryLookupExecutionAffinity`)."""
        return _or_default(self.sets.get((Side.OP, op)) or frozenset(), op) or ()

    def of_global(self, op: Operation) -> tuple[Affinity, ...]:
        """Returns the affinities of a global (IREE: `tryLookupGlobalAffinity`)."""
        return _or_default(self.sets.get((Side.GLOBAL, op)) or frozenset(), op) or ()


def in_order(affinities: Iterable[Affinity]) -> tuple[Affinity, ...]:
    """Sorts affinities by their printed form."""
    return tuple(sorted(affinities, key=str))


def lead(affinities: Iterable[Affinity] | None) -> Affinity | None:
    """Returns the affinity if there is exactly one, else None: a set has no order to pick by."""
    found = set(affinities or ())
    return found.pop() if len(found) == 1 else None


def devices_of(affinity: Affinity) -> frozenset[str]:
    """Returns the device names of an affinity; queues are ignored."""
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
    Whether a value is an argument of an entry block, except of loops. IREE tracks no consumers of
    such values, unless an `scf.if` yields them.
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
    """Infers the affinities in all functions of a module."""
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
