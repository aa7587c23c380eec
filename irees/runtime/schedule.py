"""
The schedule of a multi-device program, read from JSON into plain records.

Values are numbers. A function has blocks; the first one gets the arguments. A block has steps in
order and an end. A step may start when its inputs are available:

    {"import": 0, "on": "dev_0", "as": 3}                        argument 0 is used on a device
    {"run": "main_0", "on": "dev_0", "args": [3], "as": [4]}     a function of its program
    {"send": 4, "from": "dev_0", "to": "dev_1", "as": 5, "bytes": 1048576}
    {"const": 7, "as": 6}                                        a scalar
    {"return": [5]}  {"br": [1, [5]]}  {"cond_br": [6, [1, []], [2, [5]]]}

It may come from a damaged file, so every field is checked when it is read.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from irees.errors import ParseError
from irees.runtime.arguments import ScalarSpec, TensorSpec
from irees.runtime.manifest import read_spec


@dataclass(frozen=True)
class Import:
    """Imports an argument to a device."""

    argument: int
    device: str
    result: int


@dataclass(frozen=True)
class Run:
    """Runs a function of a device's program."""

    function: str
    device: str
    arguments: tuple[int, ...]
    results: tuple[int, ...]


@dataclass(frozen=True)
class Send:
    """Sends a value from one device to another; `bytes` is its size if statically known."""

    value: int
    source: str
    target: str
    result: int
    bytes: int | None


@dataclass(frozen=True)
class Constant:
    """A constant number on the host."""

    value: int | float | bool
    result: int


Step = Import | Run | Send | Constant


@dataclass(frozen=True)
class Edge:
    """The successor block of a branch, and the values for its arguments."""

    block: int
    values: tuple[int, ...]


@dataclass(frozen=True)
class End:
    """The end of a block: a return, a branch, or a conditional branch (true edge first)."""

    returned: tuple[int, ...] = ()
    edges: tuple[Edge, ...] = ()
    condition: int | None = None


@dataclass(frozen=True)
class ScheduleBlock:
    """A basic block: steps in order, then an end."""

    arguments: tuple[int, ...]
    steps: tuple[Step, ...]
    end: End


@dataclass(frozen=True)
class FunctionSchedule:
    """One public function."""

    name: str
    arguments: tuple[TensorSpec | ScalarSpec, ...]
    results: tuple[TensorSpec | ScalarSpec, ...]
    blocks: tuple[ScheduleBlock, ...]

    @property
    def is_straight(self) -> bool:
        """Whether there are no conditional branches: all steps are known in advance."""
        return all(block.end.condition is None for block in self.blocks)

    @cached_property
    def loose(self) -> frozenset[int]:
        """
        Step numbers of runs that no result depends on, so the caller has to wait for them. With
        several blocks, all runs of the first one.
        """
        block = self.blocks[0]
        runs = {i for i, step in enumerate(block.steps) if isinstance(step, Run)}
        if len(self.blocks) > 1:
            return frozenset(runs)
        wanted = set(block.end.returned)
        for number, step in reversed(list(enumerate(block.steps))):
            if isinstance(step, Run) and wanted & set(step.results):
                wanted |= set(step.arguments)
                runs.discard(number)
            elif isinstance(step, Send) and step.result in wanted:
                wanted.add(step.value)
        return frozenset(runs)

    def sends(self) -> Iterator[Send]:
        """All transfers of the function."""
        for block in self.blocks:
            yield from (step for step in block.steps if isinstance(step, Send))


@dataclass(frozen=True)
class Schedule:
    """All functions, and the devices in order: name in the program => device spec."""

    functions: tuple[FunctionSchedule, ...]
    devices: Mapping[str, str]
    stateful: frozenset[str] = frozenset()
    """Devices whose programs keep state between calls."""

    @staticmethod
    def read(data: Any) -> Schedule:
        """Reads a schedule. Raises ParseError when a field is missing or invalid."""
        try:
            devices = {str(name): str(kind) for name, kind in data["devices"].items()}
            functions = tuple(_function(item) for item in data["functions"])
            stateful = frozenset(str(name) for name in data.get("stateful", ()))
        except (KeyError, TypeError, ValueError, AttributeError, IndexError) as error:
            raise ParseError(f"the schedule is damaged: {type(error).__name__}: {error}") from None
        for function in functions:
            _check(function, devices)
        return Schedule(functions, devices, stateful)


def _numbers(items: Sequence[Any]) -> tuple[int, ...]:
    return tuple(int(item) for item in items)


def _step(item: Mapping[str, Any]) -> Step:
    if "import" in item:
        return Import(int(item["import"]), str(item["on"]), int(item["as"]))
    if "run" in item:
        args, results = _numbers(item["args"]), _numbers(item["as"])
        return Run(str(item["run"]), str(item["on"]), args, results)
    if "send" in item:
        size = item["bytes"]
        return Send(
            int(item["send"]),
            str(item["from"]),
            str(item["to"]),
            int(item["as"]),
            None if size is None else int(size),
        )
    if type(item["const"]) not in (int, float, bool):
        raise ValueError("a constant is no number")
    return Constant(item["const"], int(item["as"]))


def _edge(item: Sequence[Any]) -> Edge:
    return Edge(int(item[0]), _numbers(item[1]))


def _end(item: Mapping[str, Any]) -> End:
    if "return" in item:
        return End(returned=_numbers(item["return"]))
    if "br" in item:
        return End(edges=(_edge(item["br"]),))
    condition, first, second = item["cond_br"]
    return End(edges=(_edge(first), _edge(second)), condition=int(condition))


def _function(item: Mapping[str, Any]) -> FunctionSchedule:
    blocks = tuple(
        ScheduleBlock(
            _numbers(block["args"]), tuple(_step(s) for s in block["steps"]), _end(block["end"])
        )
        for block in item["blocks"]
    )
    return FunctionSchedule(
        str(item["name"]),
        tuple(read_spec(i, spec) for i, spec in enumerate(item["args"])),
        tuple(read_spec(i, spec) for i, spec in enumerate(item["results"])),
        blocks,
    )


def _check(function: FunctionSchedule, devices: Mapping[str, str]) -> None:
    """Raises ParseError for a step on an unknown device, or a branch to an unknown block."""
    for block in function.blocks:
        for step in block.steps:
            named = {
                Import: lambda s: (s.device,),
                Run: lambda s: (s.device,),
                Send: lambda s: (s.source, s.target),
                Constant: lambda s: (),
            }[type(step)](step)
            if unknown := [name for name in named if name not in devices]:
                raise ParseError(f"the schedule has a step on the unknown device @{unknown[0]}")
            if isinstance(step, Import) and not 0 <= step.argument < len(function.arguments):
                raise ParseError(
                    f"the schedule imports argument {step.argument}, which does not exist"
                )
        for edge in block.end.edges:
            if not 0 <= edge.block < len(function.blocks):
                raise ParseError(
                    f"the schedule branches to block {edge.block}, which does not exist"
                )
            if len(edge.values) != len(function.blocks[edge.block].arguments):
                raise ParseError(
                    f"the schedule passes a wrong number of values to a block: {len(edge.values)}"
                )
