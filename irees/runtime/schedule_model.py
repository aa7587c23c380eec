"""
What a schedule will do on devices that there are not: time, idle shares, bytes on each link.

A device takes its work in the order in which it is asked for, one function at a time; a link sends
one tensor at a time, and it arrives a latency later. Requests begin in order, at most `in_flight`
of them before the oldest is answered. That is the whole model: what is measured beside it is
overhead that it does not know.

Of a pipeline of S equal stages that is full, n requests take n + S - 1 times a stage, so a share of
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
    """What is between two devices: seconds until the first byte is there, and bytes a second."""

    latency: float
    bytes_per_second: float


@dataclass(frozen=True)
class Forecast:
    """What a stream of requests takes."""

    seconds: float
    """From the begin of the first request to the answer of the last."""
    requests: int
    busy: Mapping[str, float]
    """Seconds in which each device computes."""
    link_bytes: Mapping[tuple[str, str], int]
    """Bytes of one request from device to device; those of dynamic tensors are not known."""

    @property
    def requests_per_second(self) -> float:
        """The throughput of the whole stream, filling and draining included."""
        return self.requests / self.seconds

    @property
    def bubble(self) -> float:
        """The share of all device time in which nothing is computed."""
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
    What a stream of requests to a function takes, from the seconds of each that devices run.

    Raises ArgumentError for a function with branches: what it does depends on its arguments.
    """
    if not function.is_straight or len(function.blocks) != 1:
        raise ArgumentError(f"{function.name} has branches, and cannot be foretold")
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
    """The schedule of a pipeline: each stage sends one tensor of so many bytes to the next."""
    steps: list[Run | Send] = []
    for stage in range(stages):
        here = f"dev_{stage}"
        if stage:
            source = f"dev_{stage - 1}"
            steps.append(Send(2 * stage - 1, source, here, 2 * stage, size))
        steps.append(Run(f"main_{stage}", here, (2 * stage,), (2 * stage + 1,)))
    block = ScheduleBlock((0,), tuple(steps), End(returned=(2 * stages - 1,)))
    return FunctionSchedule("main", (), (), (block,))
