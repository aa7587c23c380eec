"""
On which device each op runs, so that as few tensors as possible are sent.

An op runs where it says, else where its operands are, as far as those have a place. One whose
operands say nothing runs where its results are used, unless they are sent: a transfer says that
they were elsewhere before. One of which still nothing is known is on the default device. Where
several devices are left, an op runs where the fewest transfers follow:

    transfers = the sum over values of the devices that need it and are not its own

The choices that share a value form a group, and groups are independent. A group with few choices
(COMBINATIONS in all) is searched whole, so its number is the minimum; a larger one starts where its
operands are and is improved op by op, until no single change helps. Ties go to the device that
comes first.

A value is *free* where it costs nothing to have it everywhere: what is made of no tensor but
constants and globals that never change (it is made where it is used), and what a caller passes
without saying where.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import product
from math import prod

from xdsl.dialects import func
from xdsl.dialects.tensor import DimOp
from xdsl.ir import Block, Operation, SSAValue
from xdsl.transforms.dead_code_elimination import would_be_trivially_dead

from irees.analysis.affinity import (
    default_affinity,
    devices_of,
    explicit_affinity,
    is_tracked,
)
from irees.analysis.affinity_checks import refuse
from irees.analysis.control_flow import branch_edges
from irees.dialects.flow import TensorBarrierOp, TensorTransferOp
from irees.dialects.hal import TensorExportOp, TensorImportOp
from irees.dialects.util import GlobalLoadOp, GlobalStoreOp
from irees.transforms.devices.utils.places import own_place, source_of, tensors_read

_ASK_NOTHING = (
    TensorTransferOp,
    TensorBarrierOp,
    TensorExportOp,
    GlobalLoadOp,
    GlobalStoreOp,
)

COMBINATIONS = 4096
"""How many ways to place a group are tried one by one."""

Place = Operation | SSAValue
"""What is placed: an op, or the argument of a block."""


def maker_of(value: SSAValue) -> Place:
    """What is placed so that a value is."""
    return value if isinstance(value.owner, Block) else value.owner


def is_pure(op: Operation) -> bool:
    """Whether an op, with what is in it, does nothing but make its results, always the same."""
    loads = [each for each in op.walk() if isinstance(each, GlobalLoadOp)]
    return would_be_trivially_dead(op) and all(load.is_immutable is not None for load in loads)


@dataclass
class Placement:
    """The ops of one function, with what is free in it and what has a place."""

    function: func.FuncOp
    devices: Sequence[str]
    free: set[SSAValue] = field(default_factory=set[SSAValue])
    choices: dict[Place, list[str]] = field(default_factory=dict[Place, list[str]])
    chosen: dict[Place, str] = field(default_factory=dict[Place, str])

    @staticmethod
    def of(function: func.FuncOp, devices: Sequence[str]) -> Placement:
        """Everything placed; the first device is the default."""
        placement = Placement(function, devices)
        placement.find_free()
        placement.find_choices()
        placement.choose()
        return placement

    def ops(self) -> Iterator[Operation]:
        """The ops of the function, not those inside of others."""
        for block in self.function.body.blocks:
            yield from block.ops

    def find_free(self) -> None:
        """Values that can be had everywhere."""
        entry = self.function.body.blocks[0]
        constant: set[SSAValue] = set()
        for op in self.ops():
            if op is op.parent.last_op or own_place(op) is not None:  # pyright: ignore
                continue
            if explicit_affinity(op) is not None and any(is_tracked(r.type) for r in op.results):
                continue
            if isinstance(op, TensorExportOp | TensorTransferOp | TensorBarrierOp):
                continue
            read = tensors_read(op)
            passed = all(v in self.free for v in read) and isinstance(op, DimOp)
            if is_pure(op) and (passed or all(v in constant for v in read)):
                self.free.update(op.results)
                constant.update(op.results if not isinstance(op, TensorImportOp) else ())
        self.free.update(entry.args)

    def is_placed(self, op: Operation) -> bool:
        """Whether an op runs in one place."""
        if isinstance(op, TensorTransferOp | TensorBarrierOp | TensorExportOp):
            return False
        if op is op.parent.last_op:  # pyright: ignore
            return False
        if op.results and all(r in self.free for r in op.results):
            return False
        return (
            not is_pure(op)
            or bool(tensors_read(op))
            or own_place(op) is not None
            or (any(is_tracked(r.type) for r in op.results))
        )

    def find_choices(self) -> None:
        """Where each op and each argument of a block may be."""
        said: dict[Place, set[str]] = {}
        for op in self.ops():
            if isinstance(op, TensorTransferOp | TensorBarrierOp):
                said[op] = set(devices_of(op.target))  # pyright: ignore
            elif self.is_placed(op) and not isinstance(op, DimOp):
                said[op] = self.explicit(op)
        for block in list(self.function.body.blocks)[1:]:
            said.update((a, set[str]()) for a in block.args if is_tracked(a.type))
        self._follow(said)
        self._check(said)
        self._precede(said)
        for place, names in said.items():
            if not isinstance(place, TensorTransferOp | TensorBarrierOp):
                self.choices[place] = [d for d in self.devices if d in names] or [
                    self._default(place)
                ]

    def _check(self, said: dict[Place, set[str]]) -> None:
        """Raises VerifyError for an op that names a device and reads what is on another."""
        for op in self.function.walk():
            # A global is where others use it; an access of it asks for nothing.
            runs = None if isinstance(op, _ASK_NOTHING) else explicit_affinity(op)
            here = frozenset() if runs is None or op is self.function else devices_of(runs)
            for index, value in enumerate(op.operands if here else ()):
                there = said.get(maker_of(value), set()) if is_tracked(value.type) else set[str]()
                if there and not here & there:
                    raise refuse(op, here, index, there)

    def _default(self, place: Place) -> str:
        """Where a place is that nothing says anything of."""
        op = place if isinstance(place, Operation) else self.function
        found = default_affinity(op)
        return self.devices[0] if found is None else min(devices_of(found))

    def explicit(self, op: Operation) -> set[str]:
        """The devices that an op, or what is in it, names."""
        if (own := explicit_affinity(op)) is not None:
            return set(devices_of(own))
        found = (explicit_affinity(inner) for inner in op.walk())
        return {device for each in found if each is not None for device in devices_of(each)}

    def _follow(self, said: dict[Place, set[str]]) -> None:
        """What says nothing of devices is where its operands are, as far as those have a place."""
        reads: dict[Place, list[SSAValue]] = defaultdict(list)
        for place, names in said.items():
            if isinstance(place, Operation) and not names:
                reads[place] = tensors_read(place, sent=True)
        for op in self.ops():
            if op is op.parent.last_op:  # pyright: ignore
                for operand, argument in branch_edges(op):
                    if argument in said:
                        reads[argument].append(operand)
        changed = True
        while changed:
            changed = False
            for place, values in reads.items():
                names = set[str]().union(*(said.get(maker_of(v), set()) for v in values))
                if not names <= said[place]:
                    said[place] |= names
                    changed = True

    def _precede(self, said: dict[Place, set[str]]) -> None:
        """What still says nothing is where it is used; a transfer is no use, it says otherwise."""
        makers: dict[Place, list[Place]] = defaultdict(list)
        open_ = {place for place, names in said.items() if not names}
        for op in self.ops():
            values: list[tuple[SSAValue, Place | str]] = []
            if isinstance(op, TensorExportOp):
                values = [(op.source, place)] if (place := own_place(op)) else []
            elif op is op.parent.last_op:  # pyright: ignore
                values = [(v, a) for v, a in branch_edges(op) if a in said]
            elif op in said and not isinstance(op, TensorTransferOp | TensorBarrierOp):
                values = [(v, op) for v in tensors_read(op, sent=True)]
            for value, user in values:
                if (maker := maker_of(value)) not in open_:
                    continue
                if isinstance(user, str):
                    said[maker].add(user)
                else:
                    makers[user].append(maker)
        todo = [place for place, names in said.items() if names]
        while todo:
            place = todo.pop()
            for maker in makers[place]:
                if not said[place] <= said[maker]:
                    said[maker] |= said[place]
                    todo.append(maker)

    # --- what follows from a choice ---

    def home(self, value: SSAValue) -> str:
        """Where a value is that is not free."""
        return self.chosen[maker_of(value)]

    def needs(self) -> Iterator[tuple[SSAValue, Place | str]]:
        """Each value that has a place, and who needs it: an op, an argument, or a device."""
        for op in self.ops():
            if isinstance(op, TensorExportOp):
                source = source_of(op.source)
                if (place := own_place(op)) is not None and source not in self.free:
                    yield source, place
            elif op is op.parent.last_op:  # pyright: ignore
                yield from self._branched(op)
            elif op in self.choices:
                yield from ((v, op) for v in tensors_read(op) if v not in self.free)

    def _branched(self, op: Operation) -> Iterator[tuple[SSAValue, Place]]:
        for operand, argument in branch_edges(op):
            if argument in self.choices and (source := source_of(operand)) not in self.free:
                yield source, argument

    def choose(self) -> None:
        """Fixes every choice."""
        needs = list(self.needs())
        of_value: dict[SSAValue, list[Place | str]] = defaultdict(list)
        for value, user in needs:
            of_value[value].append(user)
        self.chosen = {place: choices[0] for place, choices in self.choices.items()}
        groups = _Groups(place for place, c in self.choices.items() if len(c) > 1)
        touched: dict[SSAValue, list[Place]] = {}
        for value, users in of_value.items():
            maker = maker_of(value)
            involved = [p for p in (maker, *users) if not isinstance(p, str) and p in groups.parent]
            touched[value] = involved
            for one in involved[1:]:
                groups.join(involved[0], one)
        values: dict[Place, list[SSAValue]] = defaultdict(list)
        for value, involved in touched.items():
            if involved:
                values[groups.root(involved[0])].append(value)
        for root, members in groups.members().items():
            self._search(members, values[root], of_value)

    def cost(self, values: Iterable[SSAValue], users: dict[SSAValue, list[Place | str]]) -> int:
        """How often these values are sent, as things stand."""
        total = 0
        for value in values:
            where = {u if isinstance(u, str) else self.chosen[u] for u in users[value]}
            total += len(where - {self.home(value)})
        return total

    def _search(
        self,
        members: list[Place],
        values: list[SSAValue],
        users: dict[SSAValue, list[Place | str]],
    ) -> None:
        if prod(len(self.choices[m]) for m in members) <= COMBINATIONS:
            best, least = None, None
            for choice in product(*(self.choices[m] for m in members)):
                self.chosen.update(zip(members, choice, strict=True))
                cost = self.cost(values, users)
                if least is None or cost < least:
                    best, least = choice, cost
            assert best is not None
            self.chosen.update(zip(members, best, strict=True))
            return
        touching: dict[Place, list[SSAValue]] = defaultdict(list)
        for value in values:
            for place in {maker_of(value), *(u for u in users[value] if not isinstance(u, str))}:
                touching[place].append(value)
        improved = True
        while improved:
            improved = False
            for member in members:
                before = self.chosen[member]
                costs: dict[str, int] = {}
                for device in self.choices[member]:
                    self.chosen[member] = device
                    costs[device] = self.cost(touching[member], users)
                best_device = min(costs, key=lambda d: (costs[d], d != before))
                self.chosen[member] = best_device
                improved |= costs[best_device] < costs[before]


class _Groups:
    """Sets of places that grow together."""

    def __init__(self, places: Iterable[Place]):
        self.parent: dict[Place, Place] = {place: place for place in places}

    def root(self, place: Place) -> Place:
        while self.parent[place] is not place:
            self.parent[place] = self.parent[self.parent[place]]
            place = self.parent[place]
        return place

    def join(self, a: Place, b: Place) -> None:
        self.parent[self.root(b)] = self.root(a)

    def members(self) -> dict[Place, list[Place]]:
        found: dict[Place, list[Place]] = defaultdict(list)
        for place in self.parent:
            found[self.root(place)].append(place)
        return found
