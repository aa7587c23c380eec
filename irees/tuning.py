"""
`tune`: measures alternative tile sizes for the dispatches of a program and keeps the faster ones.

The search space is a lowering config per structured op: the tile size of each loop (0 if it is not
tiled; all 0 for one workgroup, which runs on one thread), and the columns of the register block. In
each round, every expensive dispatch tries its next candidate. The program with the candidates and
the best program so far are called alternately, with each dispatch timed in both. A candidate wins
if its median is smaller and it is faster in most pairs. The winners are measured again against the
untuned program, per dispatch and then as a whole; those that do not win again are dropped.
"""

from __future__ import annotations

import json
import statistics
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from math import prod
from typing import Any

from xdsl.dialects.builtin import ModuleOp

from irees.build import Source, import_source
from irees.compiler import compile
from irees.errors import ArgumentError
from irees.fence import fenced
from irees.frontends.imported import Imported
from irees.options import canonical_tuning
from irees.remarks import collect, remark
from irees.runtime.origin import Origin
from irees.runtime.program import Function, Program, repeatable
from irees.runtime.timing import DispatchTimer

Config = dict[str, list[int]]
Tuning = dict[str, list[Config]]

BUDGET = 60.0
MIN_SHARE = 0.01
"""Minimum fraction of a call's time for a dispatch to be tuned."""

GAIN, MOST_PAIRS = 0.97, 0.7
"""A candidate's maximum fraction of the time, and minimum fraction of pairs where it is faster."""

WHOLE = (0.995, 0.6)
"""The same for a whole call, where untuned dispatches dilute the gain."""

PAIRS, MAX_PAIRS, ROUND_SECONDS, FINAL_SECONDS = 7, 60, 1.0, 2.0
BLOCKS = (1, 2, 3, 4)
"""Candidate widths of a register block, in vectors."""


def candidates(kernel: Mapping[str, Any]) -> Iterator[list[Config]]:
    """
    Yields alternative lowering configs for a kernel's manifest record, most promising first.

    The first op of each group determines the tiling of its loops.
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
    """Number of 32-bit lanes in a vector type such as 8xf64."""
    *sizes, element = vector.split("x")
    bits = int("".join(filter(str.isdigit, element)) or 32)
    return max(1, prod(map(int, sizes)) * bits // 32)


def _tilings(tiles: list[int], sizes: list[int]) -> Iterator[list[int]]:
    """Yields smaller and larger tiles, another tiled loop, two tiled loops, no tiling."""
    cut = [loop for loop, tile in enumerate(tiles) if tile]
    for factor in (0.5, 2.0, 0.25, 4.0):
        for loop in cut:
            scaled = max(1, int(tiles[loop] * factor))
            if scaled != tiles[loop]:
                yield [*tiles[:loop], scaled, *tiles[loop + 1 :]]
    for loop, (tile, size) in enumerate(zip(tiles, sizes, strict=False)):
        if tile or 0 <= size < 2:
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
    """Paired timings in seconds of one dispatch (or call) in both programs."""

    before: list[float] = field(default_factory=list[float])
    after: list[float] = field(default_factory=list[float])

    @property
    def gain(self) -> float:
        """Ratio of median times, after / before; 1 without measurements."""
        if not self.before or not (base := statistics.median(self.before)):
            return 1.0
        return statistics.median(self.after) / base

    def is_faster(self, gain: float = GAIN, pairs: float = MOST_PAIRS) -> bool:
        """Whether `after` is faster, in the median and in enough pairs."""
        wins = sum(b < a for a, b in zip(self.before, self.after, strict=True))
        return self.gain <= gain and wins >= pairs * len(self.before)


def interleave(
    before: Callable[[], Mapping[str, float]],
    after: Callable[[], Mapping[str, float]],
    seconds: float,
) -> dict[str, Samples]:
    """Calls both alternately for some seconds; returns their paired times by name."""
    for call in (before, after):
        call()
    found: dict[str, Samples] = {}
    end = time.perf_counter() + seconds
    pairs = 0
    while pairs < PAIRS or (time.perf_counter() < end and pairs < MAX_PAIRS):
        # The first call warms the caches for the second one, so the order alternates.
        order = (before, after) if pairs % 2 else (after, before)
        times = {call: call() for call in order}
        for name, value in times[before].items():
            if name in times[after]:
                samples = found.setdefault(name, Samples())
                samples.before.append(value)
                samples.after.append(times[after][name])
        pairs += 1
    return found


@dataclass(frozen=True)
class Call:
    """The arguments to time a program with, and the function; None for the entry."""

    inputs: Sequence[Any]
    named: Mapping[str, Any]
    function: str | None

    def on(self, program: Program) -> Callable[[], Any]:
        """
        Returns a function that calls a program. What the program updates is copied first, so that
        neither the caller's arguments nor the program's state change.
        """
        function, flat = _function(program, self.function), self.inputs
        if self.function is None and program.signature is not None:
            flat = program.signature.flat(program.state, self.inputs, self.named)
        elif self.named:
            raise ArgumentError(f"{function.name} takes its arguments by position")
        return partial(function, *repeatable(function, flat))

    def by_key(self, program: Program) -> Callable[[], dict[str, float]]:
        """Returns a function that calls a program, and returns seconds by dispatch key."""
        run, timer = self.on(program), program.tracer
        assert isinstance(timer, DispatchTimer)
        keys = {kernel["name"]: kernel["key"] for kernel in program.manifest["kernels"]}

        def call() -> dict[str, float]:
            timer.calls.clear()
            run()
            return {keys[n]: s for n, s in timer.calls[-1].items()} if timer.calls else {}

        return call

    def whole(self, program: Program) -> Callable[[], dict[str, float]]:
        """Returns a function that calls a program, and returns its seconds."""
        run = self.on(program)

        def call() -> dict[str, float]:
            begin = time.perf_counter()
            run()
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
    """Configs that the compiler used, by dispatch key; it ignores candidates that it rejects."""
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
    Tunes a program for these inputs, this machine and the current number of threads, within about
    `budget` seconds (without the first compilation). Returns the program compiled with the fastest
    configs found. They are in `Program.tuning`, empty if none was faster; `save` stores them.

    `source` is what `compile` takes, or a program that it returned; `kwargs`, `dynamic_shapes` and
    other keywords are those of `compile`. `tuning` is the starting point. Arguments and state that
    the program updates are copied first. Remarks report the configs that are kept. Raises the
    errors of `compile`, and ArgumentError for an invalid budget, inputs that do not fit, or a
    program whose source is unknown or gone.
    """
    given = {name: options.pop(name) for name in ("kwargs", "dynamic_shapes") if name in options}
    origin = _origin(source, options)
    options, examples = dict(origin.options), origin.arguments() | {"inputs": inputs} | given
    if type(budget) not in (int, float) or not budget > 0:
        raise ArgumentError(f"budget is {budget!r}, but must be a number of seconds")
    for name in ("time_dispatches", "trace_dispatch_tensors", "devices", "pipeline_stages"):
        if options.pop(name, False):
            raise ArgumentError(f"{name} cannot be tuned with", hint="compile with it afterwards")
    start = options.pop("tuning", None)
    begin: Tuning = json.loads(canonical_tuning(start if tuning is None else tuning) or "{}")
    imported = import_source(origin.current(), **examples)
    stage = compile(imported, to="stream", time_dispatches=True, **options)
    assert isinstance(stage, ModuleOp)
    lowered = Imported(stage, imported.signature, imported.state)
    call = Call(inputs, examples["kwargs"] or {}, function)
    trials = Trials(lowered, call, options)
    untuned = trials.build(begin)
    tuned, best = _search(trials, untuned, begin, budget)
    kept = _confirmed(trials, untuned, tuned, best, begin)
    made = _final(imported, call, kept, begin, options)
    made.origin = Origin.of(origin.current(), examples, options | {"tuning": made.tuning})
    return made


def _origin(source: Source, options: dict[str, Any]) -> Origin:
    """What a program is compiled from: `source`, or what `source` was compiled from."""
    if not isinstance(source, Program):
        return Origin.of(source, {"kwargs": None, "dynamic_shapes": None}, options)
    if source.origin is None:
        raise ArgumentError(
            "the source of the program is unknown: it was loaded, or compiled by torch.compile",
            hint="irees.tune(model, inputs) tunes a model or a file",
        )
    return replace(source.origin, options=source.origin.options | options)


@dataclass(frozen=True)
class Trials:
    """Builds programs with different configs, and times them."""

    lowered: Imported
    """The program before code generation."""
    call: Call
    options: Mapping[str, Any]

    def build(self, tuning: Tuning) -> Program:
        """Returns the program with these configs."""
        with collect():  # drops the compiler's remarks about candidates
            made = compile(
                self.lowered, start="stream", time_dispatches=True, tuning=tuning, **self.options
            )
        assert isinstance(made, Program)
        return made

    def compared(self, before: Program, after: Program) -> dict[str, Samples]:
        """Returns the paired times of two programs, by dispatch key."""
        return interleave(self.call.by_key(before), self.call.by_key(after), ROUND_SECONDS)

    def faster(self, before: Program, after: Program, keys: set[str]) -> set[str]:
        """Returns the dispatches among `keys` that are faster in the second program."""
        found = self.compared(before, after)
        return {key for key in keys if key in found and found[key].is_faster()}


def _search(
    trials: Trials, untuned: Program, given: Tuning, budget: float
) -> tuple[Program, Tuning]:
    """Tries candidates in rounds within a budget; returns the best program and its configs."""
    current, best = untuned, dict(given)
    begin = time.perf_counter()
    remaining = _worthwhile(trials, untuned)
    rounds = 0
    # Stop when another round and the confirmation, each as long as a past round, exceed the budget.
    while remaining and (time.perf_counter() - begin) * (rounds + 2) <= budget * max(1, rounds):
        rounds += 1
        trial = best | _next_candidates(remaining)
        if trial == best:
            break
        variant = trials.build(trial)
        was, now = _effective(current), _effective(variant)
        changed = {key for key in trial if was.get(key) != now.get(key)}
        won = trials.faster(current, variant, changed) if changed else ()
        if won:
            best |= {key: trial[key] for key in won}
            current = trials.build(best)
    return current, best


def _next_candidates(remaining: dict[str, Iterator[list[Config]]]) -> Tuning:
    """Takes a candidate of each dispatch, and drops the dispatches that have none left."""
    taken: Tuning = {}
    for key, rest in list(remaining.items()):
        if (candidate := next(rest, None)) is None:
            del remaining[key]
        else:
            taken[key] = candidate
    return taken


def _worthwhile(trials: Trials, program: Program) -> dict[str, Iterator[list[Config]]]:
    """Returns the candidates of each dispatch above MIN_SHARE of the time."""
    call = trials.call.by_key(program)
    call()
    times = call()
    total = sum(times.values())
    kernels = {kernel["key"]: kernel for kernel in program.manifest["kernels"]}
    return {
        key: candidates(kernels[key]) for key, spent in times.items() if spent > MIN_SHARE * total
    }


def _confirmed(
    trials: Trials, untuned: Program, tuned: Program, best: Tuning, given: Tuning
) -> Tuning:
    """Keeps the configs that are faster in a second measurement: some candidates win by chance."""
    new = {key for key in best if best[key] != given.get(key)}
    if not new:
        return given
    found = trials.compared(untuned, tuned)
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
    source: Imported, call: Call, kept: Tuning, given: Tuning, options: dict[str, Any]
) -> Program:
    """The tuned program, or the untuned one if a whole call is not faster."""
    with collect():
        plain, tuned = (compile(source, tuning=t, **options) for t in (given, kept))
    assert isinstance(plain, Program)
    assert isinstance(tuned, Program)
    if kept == given:
        return plain
    before, after = call.whole(plain), call.whole(tuned)
    samples = interleave(before, after, FINAL_SECONDS)[""]
    if samples.is_faster(*WHOLE):
        text = f"a call takes {samples.gain:.0%} of its time"
        remark("passed", "irees-tune", None, text)
        return tuned
    text = f"dropped: a call takes {samples.gain:.0%} of its time"
    remark("missed", "irees-tune", None, text)
    return plain
