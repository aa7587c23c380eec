"""
Simulates a schedule on hypothetical devices: time, idle fraction, bytes on each link.

A device runs one function at a time, in order of submission. A link sends one tensor at a time,
which arrives after a latency. Requests start in order, with at most `in_flight` unanswered. The
model has no other overheads.

In a pipeline of S equal stages, n requests take n + S - 1 times a stage. So a fraction of
(S - 1) / (n + S - 1) of all device time is idle: the bubble.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass

from irees.errors import ArgumentError
from irees.runtime.schedule import (
    Constant,
    End,
    FunctionSchedule,
    Import,
    Run,
    ScheduleBlock,
    Send,
)


@dataclass(frozen=True)
class Link:
    """A link between two devices: latency in seconds, and bandwidth in bytes per second."""

    latency: float
    bytes_per_second: float


@dataclass(frozen=True)
class Forecast:
    """The simulated cost of a stream of requests."""

    seconds: float
    """From the start of the first request to the answer of the last."""
    requests: int
    busy: Mapping[str, float]
    """Busy seconds of each device."""
    link_bytes: Mapping[tuple[str, str], int]
    """Bytes of one request on each link, without tensors of dynamic size."""

    @property
    def requests_per_second(self) -> float:
        """Throughput of the whole stream, including pipeline fill and drain."""
        return self.requests / self.seconds

    @property
    def bubble(self) -> float:
        """Idle fraction of all device time."""
        return 1 - sum(self.busy.values()) / (self.seconds * max(1, len(self.busy)))


def forecast(
    function: FunctionSchedule,
    seconds: Mapping[str, float],
    link: Link,
    *,
    requests: int,
    in_flight: int,
) -> Forecast:
    """
    Simulates a stream of requests to a function; `seconds` are the run times of device functions.

    Raises ArgumentError for a function with branches, whose work depends on its arguments.
    """
    if not function.is_straight or len(function.blocks) != 1:
        raise ArgumentError(f"{function.name} has branches: its cost depends on its arguments")
    free: dict[str, float] = defaultdict(float)
    line: dict[tuple[str, str], float] = defaultdict(float)
    busy: dict[str, float] = {}
    sent: dict[tuple[str, str], int] = defaultdict(int)
    answered: list[float] = []
    block = function.blocks[0]
    for number in range(requests):
        begin = answered[number - in_flight] if number >= in_flight else 0.0
        there: dict[int, float] = defaultdict(lambda begin=begin: begin)
        end = begin
        for step in block.steps:
            if isinstance(step, Run):
                start = max([free[step.device], begin, *(there[v] for v in step.arguments)])
                end = free[step.device] = start + seconds[step.function]
                busy[step.device] = busy.get(step.device, 0.0) + seconds[step.function]
                there.update(dict.fromkeys(step.results, end))
            elif not isinstance(step, Import | Constant):
                between = (step.source, step.target)
                size = step.bytes or 0
                start = max(line[between], there[step.value])
                line[between] = start + size / link.bytes_per_second
                there[step.result] = line[between] + link.latency
                if number == 0:
                    sent[between] += size
        answered.append(max([end, *(there[v] for v in block.end.returned)]))
    return Forecast(max(answered), requests, busy, dict(sent))


def pipeline(stages: int, size: int) -> FunctionSchedule:
    """The schedule of a pipeline in which each stage sends one tensor of `size` bytes on."""
    steps: list[Run | Send] = []
    for stage in range(stages):
        here = f"dev_{stage}"
        if stage:
            source = f"dev_{stage - 1}"
            steps.append(Send(2 * stage - 1, source, here, 2 * stage, size))
        steps.append(Run(f"main_{stage}", here, (2 * stage,), (2 * stage + 1,)))
    block = ScheduleBlock((0,), tuple(steps), End(returned=(2 * stages - 1,)))
    return FunctionSchedule("main", (), (), (block,))
