"""
Set equations of affinities, and their least fixed point.

An *element* is one unknown set. Its rule is a union of other elements. An element is unknown if one
of its strict inputs is. Whether an element is unknown depends on no set, so unknown elements are
found first. The others then grow monotonically; the result does not depend on visiting order.

IREE: `ValueProducerAffinityPVS`, `ValueConsumerAffinityPVS`, `GlobalAffinityPVS`, `OpAffinityPVS`
in `Dialect/Stream/Analysis/Affinity.cpp`.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field
from enum import Enum

from xdsl.dialects import arith
from xdsl.ir import Operation, OpResult, SSAValue

from irees.analysis._affinity_flow import CALLS, LOAD, STORE, Flow, symbol
from irees.analysis._affinity_ops import (
    anchors_tied_results,
    explicit_affinity,
    is_tracked,
    pins,
    placed,
    requires_affinity,
    tied_operand,
    tied_results,
)
from irees.dialects.hal import Affinity
from irees.dialects.stream import AsyncTransferOp
from irees.dialects.util import OptimizationBarrierOp


class Side(Enum):
    """The kinds of affinity sets."""

    PRODUCER = "producer"
    CONSUMER = "consumer"
    OP = "op"
    GLOBAL = "global"


Element = tuple[Side, SSAValue | Operation]
"""An affinity set: its kind, and its value or op."""


def producer(value: SSAValue) -> Element:
    """Returns the producer set of a value."""
    return (Side.PRODUCER, value)


def consumer(value: SSAValue) -> Element:
    """Returns the consumer set of a value."""
    return (Side.CONSUMER, value)


@dataclass
class Rule:
    """`set = affinities | union of inputs`; unknown if `unknown` is set or a strict input is."""

    affinities: set[Affinity] = field(default_factory=set[Affinity])
    strict: list[Element] = field(default_factory=list[Element])
    lenient: list[Element] = field(default_factory=list[Element])
    unknown: bool = False


class Rules:
    """Builds the rules of all elements of a module."""

    def __init__(self, flow: Flow, globals_: dict[str, Operation]):
        self.flow = flow
        self.globals = globals_

    def collect(self) -> dict[Element, Rule]:
        """Collects the rules needed; block arguments are not consumer roots, as in IREE."""
        rules: dict[Element, Rule] = {}
        wanted = list(self._roots())
        while wanted:
            element = wanted.pop()
            if element in rules:
                continue
            rule = rules[element] = self._rule(element)
            wanted.extend(rule.strict)
            wanted.extend(rule.lenient)
        return rules

    def _roots(self) -> Iterable[Element]:
        for op in self.flow.globals:
            if is_tracked(op.properties["type"]):
                yield (Side.GLOBAL, op)
        for function in self.flow.functions:
            for op in function.walk():
                for region in op.regions:
                    for block in region.blocks:
                        yield from (producer(a) for a in block.args if is_tracked(a.type))
                if requires_affinity(op):
                    yield (Side.OP, op)
                for result in op.results:
                    if is_tracked(result.type):
                        yield producer(result)
                        yield consumer(result)

    def _rule(self, element: Element) -> Rule:
        side, thing = element
        if isinstance(thing, Operation):
            return self._of_global(thing) if side is Side.GLOBAL else self._of_op(thing)
        return self._of_producer(thing) if side is Side.PRODUCER else self._of_consumer(thing)

    def _of_op(self, op: Operation) -> Rule:
        if (explicit := explicit_affinity(op)) is not None:
            return Rule({explicit})
        operands = [producer(v) for v in op.operands if is_tracked(v.type)]
        return Rule(strict=operands or [consumer(r) for r in op.results if is_tracked(r.type)])

    def _of_global(self, op: Operation) -> Rule:
        if (explicit := explicit_affinity(op)) is not None:
            return Rule({explicit})
        name = symbol(op, "sym_name")
        # Weights are read more often than written, so the consumers of loads take precedence.
        loads = [consumer(value) for value in self.flow.loads.get(name, ())]
        return Rule(lenient=loads or [producer(value) for value in self.flow.stores.get(name, ())])

    def _global(self, op: Operation) -> Rule:
        found = self.globals.get(symbol(op, "global"))
        return Rule(unknown=True) if found is None else Rule(strict=[(Side.GLOBAL, found)])

    def _of_producer(self, value: SSAValue) -> Rule:
        rule = Rule(
            strict=[producer(source) for source in self.flow.sources.get(value, ())],
            unknown=value in self.flow.open_values,
        )
        if not isinstance(value, OpResult) or value.op.name in CALLS:
            return rule
        op = value.op
        if op.name == LOAD:
            return self._global(op)
        if isinstance(op, OptimizationBarrierOp):
            return Rule(strict=[producer(op.operands[value.index])])
        if isinstance(op, arith.SelectOp):
            return Rule(strict=[producer(op.lhs), producer(op.rhs)])
        storage = tied_operand(value)
        if pins(op):
            rule.strict.append((Side.OP, op))
            rule.lenient.extend([] if storage is None else [producer(storage)])
            return rule
        if storage is not None:
            rule.strict.append(producer(storage))
        if placed(op) is not None and (storage is None or anchors_tied_results(op)):
            rule.strict.append((Side.OP, op))
        return rule

    def _of_consumer(self, value: SSAValue) -> Rule:
        rule = Rule()
        for use in value.uses:
            op, index = use.operation, use.index
            if placed(op) is not None:
                rule.strict.append((Side.OP, op))
            if isinstance(op, AsyncTransferOp) and op.target_affinity is not None:
                rule.affinities.add(op.target_affinity)
            if op.name == STORE:
                stored = self._global(op)
                rule.strict.extend(stored.strict)
                rule.unknown |= stored.unknown
            same = [*tied_results(op, index), *self.flow.goes_to(op, index)]
            if isinstance(op, arith.SelectOp):
                same.append(op.result)
            if isinstance(op, OptimizationBarrierOp):
                same.append(op.results[index])
            rule.strict.extend(consumer(each) for each in same)
            rule.unknown |= (op, index) in self.flow.open_uses
        return rule


def _reached(start: set[Element], edges: dict[Element, list[Element]]) -> set[Element]:
    """Returns the elements that edges reach from others, with those."""
    found, wanted = set(start), list(start)
    while wanted:
        new = set(edges[wanted.pop()]) - found
        found |= new
        wanted.extend(new)
    return found


def _propagate(sets: dict[Element, set[Affinity]], readers: dict[Element, list[Element]]) -> None:
    """Adds to each set those of the elements that it reads, up to a fixed point."""
    wanted = [element for element, found in sets.items() if found]
    while wanted:
        element = wanted.pop()
        for reader in readers[element]:
            if reader in sets and not sets[element] <= sets[reader]:
                sets[reader] |= sets[element]
                wanted.append(reader)


def solve(rules: dict[Element, Rule]) -> dict[Element, frozenset[Affinity] | None]:
    """Returns the least fixed point; None for unknown elements."""
    readers: dict[Element, list[Element]] = defaultdict(list)
    strict: dict[Element, list[Element]] = defaultdict(list)
    for element, rule in rules.items():
        for each in rule.strict:
            strict[each].append(element)
            readers[each].append(element)
        for each in rule.lenient:
            readers[each].append(element)
    unknown = _reached({element for element, rule in rules.items() if rule.unknown}, strict)
    sets = {e: set(rule.affinities) for e, rule in rules.items() if e not in unknown}
    _propagate(sets, readers)
    return {e: None if e in unknown else frozenset(sets[e]) for e in rules}
