"""
Times GPT-2 in stages on a local Ray cluster, beside what the model of its schedule foretells.

    python benchmarks/scale.py MODEL.mlir MODEL.npz [--rounds N] [--in-flight 16] [--write FILE]

Nodes are processes of this machine with one core each. The same program runs whole on one node and
in two stages on two, in turn, a stream of 128 requests each; medians of the rounds are reported.
Rounds in which other processes used more than a tenth of a core are not counted. Then the model,
with the seconds of each stage that were measured on one core and the throughput of one link, is
asked for both, and for hosts that there are not.
"""

from __future__ import annotations

import argparse
import contextlib
import datetime
import os
import platform
import statistics
import sys
import time
from pathlib import Path

import numpy as np

import irees
from irees.runtime.device_program import DeviceProgram
from irees.runtime.schedule_model import Forecast, Link, forecast, pipeline

sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "runtime"))
from ray_cluster import cluster

REQUESTS = 128
OTHERS = 0.1
"""Cores that others may use in a round that counts."""
HOSTS = (2, 8, 16, 64)
LAYERS, WIDTH, TOKENS, BYTES = 64, 4096, 2048, 2
"""The model of the plan: decoder layers of 12 WIDTH^2 weights, a sequence of TOKENS, in bf16."""
HOST_FLOPS, NETWORK = 50e12, Link(20e-6, 12.5e9)
"""What a host of the plan does, and 100 Gbit/s between two of them."""


def round_of(program: DeviceProgram, tokens: np.ndarray, in_flight: int) -> float:
    """Seconds for a request of a stream."""
    begin = time.perf_counter()
    for _ in program.stream([tokens] * REQUESTS, in_flight=in_flight):
        pass
    return (time.perf_counter() - begin) / REQUESTS


def busy_ticks() -> tuple[int, int]:
    """Clock ticks in which this machine computed, and in which this process and its children did."""
    words = Path("/proc/stat").read_text().split("\n", 1)[0].split()
    machine = sum(map(int, words[1:4])) + sum(map(int, words[6:8]))
    parents: dict[int, int] = {}
    ticks: dict[int, int] = {}
    for path in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            number, rest = int(path.parent.name), path.read_text().rpartition(")")[2].split()
            parents[number], ticks[number] = int(rest[1]), int(rest[11]) + int(rest[12])
    own = 0
    for number in ticks:
        above = number
        while above not in (0, os.getpid()):
            above = parents.get(above, 0)
        own += ticks[number] if above else 0
    return machine, own


def wait_for_calm() -> None:
    """Returns when others leave the cores alone for a second, or after ten minutes."""
    for _ in range(600):
        before = busy_ticks()
        time.sleep(1)
        machine, own = (b - a for a, b in zip(before, busy_ticks(), strict=True))
        if machine - own < OTHERS * os.sysconf("SC_CLK_TCK"):
            return


def stage_seconds(program: DeviceProgram, tokens: np.ndarray, repeat: int) -> dict[str, float]:
    """The median seconds of each function, one after the other in this process on one core."""
    schedule = program.schedule.functions[0]
    found: dict[str, list[float]] = {}
    for _ in range(repeat):
        values: dict[int, object] = {schedule.blocks[0].arguments[0]: tokens}
        for step in schedule.blocks[0].steps:
            if hasattr(step, "function"):
                called = program.programs[step.device].functions[step.function]
                arguments = [values[number] for number in step.arguments]
                begin = time.perf_counter()
                made = called(*arguments)
                found.setdefault(step.function, []).append(time.perf_counter() - begin)
                made = made if isinstance(made, tuple) else (made,)
                values.update(zip(step.results, made, strict=True))
            elif hasattr(step, "argument"):
                values[step.result] = tokens
            else:
                values[step.result] = values[step.value]
    return {name: statistics.median(times) for name, times in found.items()}


def one_core() -> None:
    """This process computes on one core too, as a node does."""
    irees.set_num_threads(1)


def measure(model: str, data: str, rounds: int, in_flight: int) -> dict[str, object]:
    """Everything that is measured."""
    tokens, want = np.load(data)["in0"], np.load(data)["out0"]
    one_core()
    with cluster(2, store_bytes=3 << 30, warm=True) as address:
        # The last stage is on the head, where the results are wanted.
        where = {f"dev_{i}": f"ray://{address}/{1 - i}" for i in range(2)}
        module = irees.import_mlir(Path(model))
        two = irees.compile(module, pipeline_stages=2, devices=where)
        one = irees.compile(module, pipeline_stages=1, devices={"dev_0": where["dev_1"]})
        assert np.abs(two(tokens) - want).max() < 2e-5 * np.abs(want).max()
        assert np.array_equal(two(tokens), one(tokens))
        seconds = {"one": [], "two": []}
        for number in range(6 * rounds + 1):
            wait_for_calm()
            before = busy_ticks()
            begin = time.perf_counter()
            took = [round_of(program, tokens, in_flight) for program in (one, two)]
            machine, own = (b - a for a, b in zip(before, busy_ticks(), strict=True))
            ticks = os.sysconf("SC_CLK_TCK") * (time.perf_counter() - begin)
            others = (machine - own) / ticks
            print(f"{took[0]:.4f} {took[1]:.4f} s, others {others:.2f} cores", flush=True)
            # The first round is not counted, nor one that shared the cores with somebody else.
            if number and others < OTHERS:
                for name, each in zip(seconds, took, strict=True):
                    seconds[name].append(each)
            if len(seconds["one"]) == rounds:
                break
        parts = {
            name: stage_seconds(program, tokens, 7)
            for name, program in (("one", one), ("two", two))
        }
        schedules = {"one": one.schedule.functions[0], "two": two.schedule.functions[0]}
        memory = {name: part.memory_analysis() for name, part in two.programs.items()}
    return {"seconds": seconds, "parts": parts, "schedules": schedules, "memory": memory}


def foretold(found: dict, name: str, in_flight: int) -> Forecast:
    """The model's word for what was measured; two processes share memory at about 5 GB/s."""
    return forecast(
        found["schedules"][name],
        found["parts"][name],
        Link(1e-3, 5e9),
        requests=REQUESTS,
        in_flight=in_flight,
    )


def plan() -> list[str]:
    """A table of hosts: seconds a stage, bubble, bytes a link, memory a host."""
    lines = [
        "| hosts | layers a host | ms a stage | weights a host | activations a host, 16 in flight "
        "| MB a link and request | link busy | bubble, 16 in flight | bubble, 256 | requests/s, 256 |",
        "|---|---|---|---|---|---|---|---|---|---|",
    ]
    flops = LAYERS * (2 * 12 * WIDTH**2 * TOKENS + 4 * TOKENS**2 * WIDTH)
    for hosts in HOSTS:
        size = TOKENS * WIDTH * BYTES
        stage = flops / hosts / HOST_FLOPS
        schedule = pipeline(hosts, size)
        seconds = {f"main_{i}": stage for i in range(hosts)}
        few, many = (
            forecast(schedule, seconds, NETWORK, requests=4096, in_flight=n) for n in (16, 256)
        )
        weights = LAYERS / hosts * 12 * WIDTH**2 * BYTES
        waiting = size * max(1.0, 16 / hosts)
        lines.append(
            f"| {hosts} | {LAYERS // hosts} | {stage * 1e3:.2f} | {weights / 1e9:.2f} GB "
            f"| {waiting / 1e6:.0f} MB | {size / 1e6:.1f} "
            f"| {size / NETWORK.bytes_per_second / stage:.0%} | {few.bubble:.0%} "
            f"| {many.bubble:.0%} | {many.requests_per_second:.1f} |"
        )
    return lines


def page(found: dict, in_flight: int, command: str) -> str:
    """The measured part of docs/scale.md."""
    one, two = (statistics.median(found["seconds"][name]) for name in ("one", "two"))
    ratios = sorted(
        a / b for a, b in zip(found["seconds"]["one"], found["seconds"]["two"], strict=True)
    )
    rows = [
        "| | seconds a request, measured | by the model | bubble by the model |",
        "|---|---|---|---|",
    ]
    for name, text, median in (("one", "one node", one), ("two", "two nodes", two)):
        told = foretold(found, name, in_flight)
        rows.append(
            f"| {text} | {median:.4f} | {1 / told.requests_per_second:.4f} | {told.bubble:.0%} |"
        )
    parts = ", ".join(f"{s * 1e3:.0f} ms" for s in found["parts"]["two"].values())
    sends = ", ".join(f"{s.bytes:,} bytes" for s in found["schedules"]["two"].sends())
    held = ", ".join(
        f"{m['constant_bytes'] / 1e6:.0f} MB on @{name}" for name, m in found["memory"].items()
    )
    model = platform.processor() or platform.machine()
    return "\n".join(
        [
            f"`{command}`, {datetime.date.today()}, {os.cpu_count()} cores ({model}), "
            f"{len(found['seconds']['one'])} rounds of {REQUESTS} requests, {in_flight} in flight:",
            "",
            *rows,
            "",
            f"Two nodes do **{one / two:.2f} times** the requests of one (rounds: {ratios[0]:.2f} to "
            f"{ratios[-1]:.2f}). Stages take {parts} alone on one core; a request sends {sends}; "
            f"weights: {held}.",
        ]
    )


def main() -> None:
    """Measures, and writes the page between its marks."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("model")
    parser.add_argument("data")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--in-flight", type=int, default=16)
    parser.add_argument("--write")
    arguments = parser.parse_args()
    found = measure(arguments.model, arguments.data, arguments.rounds, arguments.in_flight)
    name = Path(arguments.model).name
    command = f"python benchmarks/scale.py {name} {Path(arguments.data).name}"
    measured = page(found, arguments.in_flight, command)
    hosts = "\n".join(plan())
    print(measured, hosts, sep="\n\n")
    if arguments.write:
        path = Path(arguments.write)
        text = path.read_text()
        for mark, new in (("measured", measured), ("plan", hosts)):
            begin, end = f"<!-- {mark} -->", f"<!-- /{mark} -->"
            head, rest = text.split(begin)
            text = f"{head}{begin}\n{new}\n{end}{rest.split(end)[1]}"
        path.write_text(text)


if __name__ == "__main__":
    main()
