"""
`tune`: measures other tiles for the dispatches of a program and keeps what is faster.

What can be chosen is data, a lowering config per structured op: the tile of each loop (0 for a
loop that is not tiled, all 0 for one workgroup and so one thread), and the columns of a register
block. In each round every dispatch that is worth it takes its next candidate, and the program
with them and the best one so far are called in turn, each dispatch timed in both. A candidate wins
when its median is smaller and it was faster in most pairs. What won is measured once more against
the untuned program, dispatch by dispatch and then as a whole: what does not win again is dropped.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from math import prod
from typing import Any

from xdsl.dialects.builtin import ModuleOp

from irees.build import Source, import_source
from irees.compiler import compile
from irees.errors import ArgumentError
from irees.fence import fenced
from irees.frontends.imported import Imported
from irees.remarks import collect, remark
from irees.runtime.program import Function, Program
from irees.runtime.timing import DispatchTimer

Config = dict[str, list[int]]
Tuning = dict[str, list[Config]]

BUDGET = 60.0
MIN_SHARE = 0.01
"""Of the time of a call that a dispatch must take to be tuned."""

GAIN, MOST_PAIRS = 0.97, 0.7
"""A candidate takes at most so much of the time, and is faster in at least so many pairs."""

WHOLE = (0.995, 0.6)
"""The same of a whole call, where all that was not tuned dilutes the gain."""

PAIRS, MAX_PAIRS, ROUND_SECONDS, FINAL_SECONDS = 7, 60, 1.0, 2.0
BLOCKS = (1, 2, 3, 4)
"""Vectors in a row of a register block."""


def candidates(kernel: Mapping[str, Any]) -> Iterator[list[Config]]:
    """
    Other lowering configs for a kernel, from its record in the manifest, likeliest first.

    Only the first op of each group says how its loops are tiled.
    """
    configs: list[Config] = [
        {k: list(c[k]) for k in ("workgroup", "block") if k in c} for c in kernel["configs"]
    ]
    groups: dict[int, int] = {}
    for place, config in enumerate(kernel["configs"]):
        groups.setdefault(config.get("group", 0), place)
    seen = [configs]
    for place in groups.values():
        sizes: list[int] = list(kernel["configs"][place].get("sizes") or ())
        for tiles in _tilings(configs[place].get("workgroup") or list[int](), sizes):
            made = [*configs[:place], configs[place] | {"workgroup": tiles}, *configs[place + 1 :]]
            if made not in seen:
                seen.append(made)
                yield made
    for place, config in enumerate(configs):
        if "block" not in config or not kernel.get("vector"):
            continue
        lanes = _lanes(kernel["vector"])
        rows, columns = config["block"]
        for vectors in BLOCKS:
            if vectors * lanes != columns:
                block = {"block": [rows, vectors * lanes]}
                yield [*configs[:place], config | block, *configs[place + 1 :]]


def _lanes(vector: str) -> int:
    """Lanes of 32 bits in a vector type such as 8xf64."""
    *sizes, element = vector.split("x")
    bits = int("".join(filter(str.isdigit, element)) or 32)
    return max(1, prod(map(int, sizes)) * bits // 32)


def _tilings(tiles: list[int], sizes: list[int]) -> Iterator[list[int]]:
    """Smaller and larger tiles, another loop cut, two loops cut, none."""
    cut = [loop for loop, tile in enumerate(tiles) if tile]
    for factor in (0.5, 2.0, 0.25, 4.0):
        for loop in cut:
            scaled = max(1, int(tiles[loop] * factor))
            if scaled != tiles[loop]:
                yield [*tiles[:loop], scaled, *tiles[loop + 1 :]]
    for loop, size in enumerate(sizes):
        if loop in cut or not 0 <= loop < len(tiles) or 0 <= size < 2:
            continue
        half = 64 if size < 0 else max(1, -(-size // 2))
        for part in dict.fromkeys((-(-half // 64) * 64, -(-half // 2 // 64) * 64)):
            yield [part if x == loop else 0 for x in range(len(tiles))]
            if cut:
                yield [*tiles[:loop], part, *tiles[loop + 1 :]]
    if cut:
        yield [0] * len(tiles)


@dataclass
class Samples:
    """Seconds of one thing in both programs, called in turn."""

    before: list[float] = field(default_factory=list[float])
    after: list[float] = field(default_factory=list[float])

    @property
    def gain(self) -> float:
        """Of the time before, what is left after; 1 where nothing was measured."""
        if not self.before or not (base := statistics.median(self.before)):
            return 1.0
        return statistics.median(self.after) / base

    def is_faster(self, gain: float = GAIN, pairs: float = MOST_PAIRS) -> bool:
        """Whether what is after is faster, in the median and in most pairs."""
        wins = sum(b < a for a, b in zip(self.before, self.after, strict=True))
        return self.gain <= gain and wins >= pairs * len(self.before)


def interleave(
    before: Callable[[], Mapping[str, float]],
    after: Callable[[], Mapping[str, float]],
    seconds: float,
) -> dict[str, Samples]:
    """Calls both in turn for a while; each returns seconds by name."""
    for call in (before, after):
        call()
    found: dict[str, Samples] = {}
    end = time.perf_counter() + seconds
    pairs = 0
    while pairs < PAIRS or (time.perf_counter() < end and pairs < MAX_PAIRS):
        # Whoever is second finds the caches as the first left them, so they take turns.
        order = (before, after) if pairs % 2 else (after, before)
        times = {call: call() for call in order}
        for name, value in times[before].items():
            if name in times[after]:
                samples = found.setdefault(name, Samples())
                samples.before.append(value)
                samples.after.append(times[after][name])
        pairs += 1
    return found


def _by_key(program: Program, name: str | None, inputs: Sequence[Any]) -> Callable[[], Any]:
    """A call that returns the seconds of each dispatch, by the key of its content."""
    function, timer = _function(program, name), program.tracer
    assert isinstance(timer, DispatchTimer)
    keys = {kernel["name"]: kernel["key"] for kernel in program.manifest["kernels"]}

    def call() -> dict[str, float]:
        timer.calls.clear()
        function(*inputs)
        return {keys[n]: s for n, s in timer.calls[-1].items()} if timer.calls else {}

    return call


def _whole(program: Program, name: str | None, inputs: Sequence[Any]) -> Callable[[], Any]:
    function = _function(program, name)

    def call() -> dict[str, float]:
        begin = time.perf_counter()
        function(*inputs)
        return {"": time.perf_counter() - begin}

    return call


def _function(program: Program, name: str | None) -> Function:
    functions = program.functions
    if name is None:
        name = "main" if "main" in functions or len(functions) != 1 else next(iter(functions))
    if name not in functions:
        raise ArgumentError(f"no function {name!r} to tune", hint="name one with function=")
    return functions[name]


def _effective(program: Program) -> dict[str, Any]:
    """By key, the configs that were used in the end; what was refused is as it was."""
    return {kernel["key"]: kernel["configs"] for kernel in program.manifest["kernels"]}


@fenced
def tune(
    source: Source,
    inputs: Sequence[Any],
    *,
    budget: float = BUDGET,
    function: str | None = None,
    tuning: Mapping[str, Any] | None = None,
    **options: Any,
) -> Program:
    """
    The program, compiled with what was found to be faster for these inputs on this machine with
    the threads that are set, within about `budget` seconds (compilation of the program itself
    not counted). `Program.tuning` is what was found, empty when nothing was; `save` keeps it.

    A `tuning` given is where it begins. Remarks say what was kept. Raises an IreesError as
    `compile` does, and ArgumentError for a budget that is no time or inputs that do not fit.
    """
    if type(budget) not in (int, float) or not budget > 0:
        raise ArgumentError(f"budget is {budget!r}, but must be a number of seconds")
    for name in ("time_dispatches", "trace_dispatch_tensors", "devices", "pipeline_stages"):
        if options.pop(name, False):
            raise ArgumentError(f"{name} cannot be tuned with", hint="compile with it afterwards")
    best: Tuning = dict(tuning or {})
    imported = import_source(source, inputs)
    stage = compile(imported, to="stream", time_dispatches=True, **options)
    assert isinstance(stage, ModuleOp)
    lowered = Imported(stage, imported.signature, imported.state)

    def build(chosen: Tuning) -> Program:
        with collect():  # what the compiler says of each candidate is of no interest
            made = compile(lowered, start="stream", time_dispatches=True, tuning=chosen, **options)
        assert isinstance(made, Program)
        return made

    def compared(a: Program, b: Program) -> dict[str, Samples]:
        left, right = _by_key(a, function, inputs), _by_key(b, function, inputs)
        return interleave(left, right, ROUND_SECONDS)

    untuned = current = build(best)
    begin = time.perf_counter()
    open_ = _worthwhile(untuned, function, inputs)
    rounds = 0
    # One more round takes about as long as those before, and so does what is left to confirm.
    while open_ and (time.perf_counter() - begin) * (rounds + 2) <= budget * max(1, rounds):
        rounds += 1
        trial = dict(best)
        for key, rest in list(open_.items()):
            if (candidate := next(rest, None)) is None:
                del open_[key]
            else:
                trial[key] = candidate
        if trial == best:
            break
        variant = build(trial)
        was, now = _effective(current), _effective(variant)
        changed = {key for key in trial if was.get(key) != now.get(key)}
        if not changed:
            continue
        found = compared(current, variant)
        won = {key for key in changed if key in found and found[key].is_faster()}
        if won:
            best |= {key: trial[key] for key in won}
            current = build(best)
    kept = _confirmed(untuned, current, best, dict(tuning or {}), compared)
    return _final(imported, inputs, function, kept, dict(tuning or {}), options)


def _worthwhile(
    program: Program, name: str | None, inputs: Sequence[Any]
) -> dict[str, Iterator[list[Config]]]:
    """The candidates of each dispatch that takes a share of the time."""
    call = _by_key(program, name, inputs)
    call()
    times = call()
    total = sum(times.values())
    kernels = {kernel["key"]: kernel for kernel in program.manifest["kernels"]}
    return {
        key: candidates(kernels[key]) for key, spent in times.items() if spent > MIN_SHARE * total
    }


def _confirmed(
    untuned: Program,
    tuned: Program,
    best: Tuning,
    given: Tuning,
    compared: Callable[[Program, Program], dict[str, Samples]],
) -> Tuning:
    """What is faster once more, measured anew: of many candidates some look fast by chance."""
    new = {key for key in best if best[key] != given.get(key)}
    if not new:
        return given
    found = compared(untuned, tuned)
    kept = dict(given)
    names = {kernel["key"]: kernel["name"] for kernel in tuned.manifest["kernels"]}
    for key in sorted(new):
        samples = found.get(key, Samples())
        if samples.is_faster():
            kept[key] = best[key]
            text = f"{names[key]} takes {samples.gain:.0%} of its time with {best[key]}"
            remark("passed", "irees-tune", None, text)
    return kept


def _final(
    source: Imported,
    inputs: Sequence[Any],
    name: str | None,
    kept: Tuning,
    given: Tuning,
    options: dict[str, Any],
) -> Program:
    """The program with the tuning, or without when it is not faster as a whole."""
    with collect():
        plain, tuned = (compile(source, tuning=t, **options) for t in (given, kept))
    assert isinstance(plain, Program)
    assert isinstance(tuned, Program)
    if kept == given:
        return plain
    before, after = _whole(plain, name, inputs), _whole(tuned, name, inputs)
    samples = interleave(before, after, FINAL_SECONDS)[""]
    if samples.is_faster(*WHOLE):
        text = f"a call takes {samples.gain:.0%} of its time"
        remark("passed", "irees-tune", None, text)
        return tuned
    text = f"dropped: a call takes {samples.gain:.0%} of its time"
    remark("missed", "irees-tune", None, text)
    return plain
