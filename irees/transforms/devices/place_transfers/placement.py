"""
Places ops on devices with as few transfers as possible.

The candidates of an op are the devices of its affinity, else those of its operands. If those are
unknown, the candidates are the devices that use its results, except through transfers: a transfer
implies another source device. Otherwise, the default device is used. Among several candidates, the
number of transfers decides:

    transfers = sum over values of the number of devices that read it, except its own

Choices that involve a common value form a group; groups are independent. A group of at most
COMBINATIONS combinations is searched exhaustively, which gives the optimum. Larger groups use local
search: start with the first candidates, then change one op at a time until no change helps. Ties
go to the first device.

A value is *free* if it is available on every device without a transfer: values computed only from
constants and immutable globals (recomputed where used), and function arguments without an affinity.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import product
from math import prod

from xdsl.dialects import func
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
from irees.dialects.storage import is_dim
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
"""Maximum number of combinations for exhaustive search of a group."""

Place = Operation | SSAValue
"""An op or a block argument, which is assigned to a device."""


def maker_of(value: SSAValue) -> Place:
    """Returns the op or block argument whose device is that of a value."""
    return value if isinstance(value.owner, Block) else value.owner


def is_pure(op: Operation) -> bool:
    """Whether an op has no side effects and reads no mutable state, nested ops included."""
    loads = [each for each in op.walk() if isinstance(each, GlobalLoadOp)]
    return would_be_trivially_dead(op) and all(load.is_immutable is not None for load in loads)


@dataclass
class Placement:
    """The placement of one function: free values, candidates, and chosen devices."""

    function: func.FuncOp
    devices: Sequence[str]
    free: set[SSAValue] = field(default_factory=set[SSAValue])
    choices: dict[Place, list[str]] = field(default_factory=dict[Place, list[str]])
    chosen: dict[Place, str] = field(default_factory=dict[Place, str])

    @staticmethod
    def of(function: func.FuncOp, devices: Sequence[str]) -> Placement:
        """Computes the placement of a function; the first device is the default."""
        placement = Placement(function, devices)
        placement.find_free()
        placement.find_choices()
        placement.choose()
        return placement

    def ops(self) -> Iterator[Operation]:
        """Yields the top-level ops of the function."""
        for block in self.function.body.blocks:
            yield from block.ops

    def find_free(self) -> None:
        """Finds the free values."""
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
            passed = all(v in self.free for v in read) and is_dim(op)
            if is_pure(op) and (passed or all(v in constant for v in read)):
                self.free.update(op.results)
                constant.update(op.results if not isinstance(op, TensorImportOp) else ())
        self.free.update(entry.args)

    def is_placed(self, op: Operation) -> bool:
        """Whether an op runs on a single device."""
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
        """Finds the candidate devices of each op and block argument."""
        said: dict[Place, set[str]] = {}
        for op in self.ops():
            if isinstance(op, TensorTransferOp | TensorBarrierOp):
                said[op] = set(devices_of(op.target))  # pyright: ignore
            elif self.is_placed(op) and not is_dim(op):
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
        """Raises VerifyError if an op with an affinity reads a value on another device."""
        for op in self.function.walk():
            # Accesses of globals require no device: the global is placed by its other uses.
            runs = None if isinstance(op, _ASK_NOTHING) else explicit_affinity(op)
            here = frozenset() if runs is None or op is self.function else devices_of(runs)
            for index, value in enumerate(op.operands if here else ()):
                there = said.get(maker_of(value), set()) if is_tracked(value.type) else set[str]()
                if there and not here & there:
                    raise refuse(op, here, index, there)

    def _default(self, place: Place) -> str:
        """Returns the device of an op or argument without candidates."""
        op = place if isinstance(place, Operation) else self.function
        found = default_affinity(op)
        return self.devices[0] if found is None else min(devices_of(found))

    def explicit(self, op: Operation) -> set[str]:
        """Returns the devices that an op or, failing that, its nested ops name."""
        if (own := explicit_affinity(op)) is not None:
            return set(devices_of(own))
        found = (explicit_affinity(inner) for inner in op.walk())
        return {device for each in found if each is not None for device in devices_of(each)}

    def _follow(self, said: dict[Place, set[str]]) -> None:
        """Propagates devices forward, from operands to ops and arguments without an affinity."""
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

    def _uses_with_places(self, said: Collection[Place]) -> Iterator[tuple[SSAValue, Place | str]]:
        """Yields the values that ops use, with what determines the device that reads each."""
        for op in self.ops():
            if isinstance(op, TensorExportOp):
                if place := own_place(op):
                    yield op.source, place
            elif op is op.parent.last_op:  # pyright: ignore
                yield from ((v, a) for v, a in branch_edges(op) if a in said)
            elif op in said and not isinstance(op, TensorTransferOp | TensorBarrierOp):
                yield from ((v, op) for v in tensors_read(op, sent=True))

    def _precede(self, said: dict[Place, set[str]]) -> None:
        """Propagates devices backward, from uses to unknown values, but not through transfers."""
        makers: dict[Place, list[Place]] = defaultdict(list)
        open_ = {place for place, names in said.items() if not names}
        for value, user in self._uses_with_places(said):
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

    # --- choice among candidates ---

    def home(self, value: SSAValue) -> str:
        """Returns the device of a value that is not free."""
        return self.chosen[maker_of(value)]

    def needs(self) -> Iterator[tuple[SSAValue, Place | str]]:
        """Yields each use of a non-free value: the value, and an op, argument or device."""
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
        """Chooses a device for every op and argument."""
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
        """Returns the number of transfers of these values under the current choices."""
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
    """Disjoint sets of ops and arguments (union-find)."""

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
