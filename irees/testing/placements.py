"""
Brute-force reference for device placement: allowed devices per op, and the fewest transfers.

It implements the rules of `transforms/devices/_placement.py` independently and slowly. The input is
a function before transfers are placed, with one or several blocks and calls inlined.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product
from math import prod

from xdsl.dialects.builtin import TensorType
from xdsl.dialects.func import FuncOp
from xdsl.ir import Block, BlockArgument, Operation, SSAValue

Place = Operation | BlockArgument

SENDS = ("flow.tensor.transfer", "flow.tensor.barrier")
STORE = "util.global.store"
LARGEST = 3**9
"""Largest number of placements that are enumerated."""


@dataclass(frozen=True)
class Account:
    """The placements that the rules allow."""

    choices: dict[Place, list[str]]
    """Allowed devices per op and per block argument, the preferred one first."""
    transfers: int | None
    """Fewest transfers over all placements; None if there are more than LARGEST placements."""


def account(function: FuncOp, devices: tuple[str, ...]) -> Account:
    """Enumerates all placements that the rules allow; the first device is the default."""
    return _Account(function, devices).result()


def names_in(op: Operation) -> set[str]:
    """Returns the devices that an op names, else those named by the ops in its regions."""
    own = {**op.attributes, **op.properties}
    for key in ("stream.affinity", "affinity", "target"):
        if key in own:
            return set(re.findall(r"@(\w+)", str(own[key])))
    return {
        name for r in op.regions for b in r.blocks for inner in b.ops for name in names_in(inner)
    }


def reads(op: Operation) -> list[SSAValue]:
    """Returns the values that an op and its regions read from outside the op."""
    inside = set(op.walk())
    found = [v for each in inside for v in each.operands]
    owners = ((v, v.owner.parent_op() if isinstance(v.owner, Block) else v.owner) for v in found)
    return [v for v, owner in owners if owner not in inside]


def source(value: SSAValue) -> SSAValue:
    """Returns the value before any transfers and barriers."""
    while isinstance(value.owner, Operation) and value.owner.name in SENDS:
        value = value.owner.operands[0]
    return value


def tensors(values: list[SSAValue]) -> list[SSAValue]:
    """Returns the values that are tensors, which are stored on a device."""
    return [value for value in values if isinstance(value.type, TensorType)]


def maker(value: SSAValue) -> Place:
    """Returns the op or block argument whose placement determines that of a value."""
    return value if isinstance(value, BlockArgument) else value.owner  # pyright: ignore


Use = tuple[SSAValue, Place | str]
"""A tensor as it is read, and the op or argument that reads it, or the device that exports it."""


def take_from_operands(said: dict[Place, set[str]], uses: list[Use]) -> None:
    """Adds the devices of operands to the places that name none, as far as they reach."""
    named = {place for place, names in said.items() if names}

    def where(value: SSAValue) -> set[str]:
        owner = maker(value)
        sent = isinstance(owner, Operation) and owner.name in SENDS
        return names_in(owner) if sent else said.get(owner, set())  # pyright: ignore

    for _ in said:
        for value, user in uses:
            if user not in named and not isinstance(user, str):
                said[user] |= where(value)


def take_from_users(said: dict[Place, set[str]], uses: list[Use]) -> None:
    """Adds the devices of users to the places that have none, as far as they reach."""
    silent = {place for place, names in said.items() if not names}
    for _ in said:
        for value, user in uses:
            if maker(value) in silent:
                said[maker(value)] |= {user} if isinstance(user, str) else said[user]


class _Account:
    def __init__(self, function: FuncOp, devices: tuple[str, ...]):
        self.devices = devices
        self.blocks = list(function.body.blocks)
        self.ops = [op for block in self.blocks for op in block.ops]
        self.passed = [
            (value, argument)
            for block in self.blocks
            for value, argument in self.edges(block.last_op)
            if isinstance(value.type, TensorType)
        ]
        self.live = self.find_live()
        self.constant: set[SSAValue] = set()
        self.free: set[SSAValue] = set(self.blocks[0].args)
        for op in self.ops:
            self.find_free(op)

    def edges(self, end: Operation | None) -> Iterator[tuple[SSAValue, BlockArgument]]:
        """Yields the values that a branch passes, its last operands, with the block arguments."""
        assert end is not None
        arguments = [argument for block in end.successors for argument in block.args]
        yield from zip(reversed(end.operands), reversed(arguments))

    def find_live(self) -> set[Place]:
        """Returns the ops and arguments that a result, a branch or a global store depends on."""
        sources: dict[SSAValue, list[SSAValue]] = {}
        for block in self.blocks:
            for value, argument in self.edges(block.last_op):
                sources.setdefault(argument, []).append(value)
        live: set[Place] = set()
        todo: list[SSAValue] = []
        for op in self.ops:
            if any(each.name == STORE for each in op.walk()):
                live.add(op)
                todo += reads(op)
            if op is op.parent.last_op:  # pyright: ignore
                todo += op.operands[: len(op.operands) - len(list(self.edges(op)))]
        while todo:
            if (place := maker(todo.pop())) not in live:
                live.add(place)
                todo += reads(place) if isinstance(place, Operation) else sources.get(place, [])
        return live

    def find_free(self, op: Operation) -> None:
        """Records results that depend on constants only, and imports without a device."""
        if op.name in SENDS or names_in(op) or any(each.name == STORE for each in op.walk()):
            return
        if op.name == "hal.tensor.import":
            self.free.update(op.results)
        elif set(map(source, tensors(reads(op)))) <= self.constant:
            self.constant.update(op.results)
            self.free.update(op.results)

    def uses(self) -> Iterator[Use]:
        """Yields each use of a tensor."""
        yield from ((v, a) for v, a in self.passed if a in self.live)
        for op in self.ops:
            if op.name == "hal.tensor.export" and op in self.live:
                yield from ((op.operands[0], name) for name in names_in(op))
            elif self.is_placed(op):
                yield from ((v, op) for v in tensors(reads(op)))

    def is_placed(self, op: Operation) -> bool:
        """Whether an op needs a placement."""
        if op not in self.live or op.name in (*SENDS, "hal.tensor.export"):
            return False
        tracked = tensors([*reads(op), *op.results])
        return bool(tracked or names_in(op)) and not (op.results and {*op.results} <= self.free)

    def result(self) -> Account:
        """Computes the account."""
        uses = list(self.uses())
        places: list[Place] = [op for op in self.ops if self.is_placed(op)]
        arguments = [a for b in self.blocks[1:] for a in b.args if a in self.live]
        places += tensors(arguments)  # pyright: ignore
        said = {p: names_in(p) if isinstance(p, Operation) else set[str]() for p in places}
        take_from_operands(said, uses)
        take_from_users(said, uses)
        choices = {
            p: [d for d in self.devices if d in said[p]] or [self.devices[0]] for p in places
        }
        needs = [(source(value), user) for value, user in uses if source(value) not in self.free]
        return Account(choices, self.fewest(choices, needs))

    def fewest(
        self, choices: dict[Place, list[str]], needs: list[tuple[SSAValue, Place | str]]
    ) -> int | None:
        """Returns the fewest transfers over all placements, or None if there are too many."""
        open_ = {place for place, names in choices.items() if len(names) > 1}
        if prod(len(choices[place]) for place in open_) > LARGEST:
            return None
        at: dict[Place | str, str] = {place: names[0] for place, names in choices.items()}
        at.update((device, device) for device in self.devices)
        best = len(needs)
        for chosen in product(*(choices[place] for place in open_)):
            at.update(zip(open_, chosen))
            sent = {(v, at[user]) for v, user in needs if at[maker(v)] != at[user]}
            best = min(best, len(sent))
        return best
