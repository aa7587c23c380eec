"""
Compiles mutated texts and counts what became of them.

    python -m tests.fuzzing.run --texts 10000 --state fuzz.json
    python -m tests.fuzzing.run --show 4711
    python -m tests.fuzzing.run --replay fuzz.faults

With `--state`, a run goes on behind the last text that a run before it finished. Each fault is
stored once, by its signature, as `FOLDER/<class>-<hash>.mlir` with the message as a comment.
`--show` prints a mutated text and its outcome, `--replay` the outcomes of stored faults.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import re
import signal
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.fuzzing import corpus
from tests.fuzzing.mutate import Mutator
from tests.fuzzing.outcomes import CPU, FAULTS, Outcome, outcome, target_of
from tests.fuzzing.worker import Case, Limits, Worker

SLOW = 5.0
"""Seconds from which on a text is noted as slow."""
STORED = re.compile(r"// text \d+ for (\S+): ")
"""The target in the first line of a stored text."""
SAVED = 200
"""Texts between two times that the state is saved."""


@dataclass
class State:
    """What all runs on one state file found."""

    next: int = 0
    seconds: float = 0.0
    counts: Counter[str] = field(default_factory=Counter[str])
    refusals: Counter[str] = field(default_factory=Counter[str])
    found: dict[str, dict[str, Any]] = field(default_factory=dict[str, dict[str, Any]])
    slow: dict[str, float] = field(default_factory=dict[str, float])
    runs: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])

    @staticmethod
    def read(path: Path | None, first: int) -> State:
        """The state in a file, or a new one that begins with text `first`."""
        if path is None or not path.exists():
            return State(next=first)
        data = json.loads(path.read_text())
        data["counts"], data["refusals"] = Counter(data["counts"]), Counter(data["refusals"])
        return State(**data)

    def write(self, path: Path | None) -> None:
        """Writes the state, whole or not at all."""
        if path is None:
            return
        draft = path.with_suffix(".draft")
        draft.write_text(json.dumps(vars(self), indent=1))
        os.replace(draft, path)

    def faults(self) -> dict[str, dict[str, Any]]:
        """What was found of the classes that no text may reach."""
        return {name: each for name, each in self.found.items() if each["class"] in FAULTS}

    def add(self, number: int, made: Outcome) -> bool:
        """Counts an outcome. Returns whether it is the first of its signature."""
        self.counts[made.kind] += 1
        if made.seconds >= SLOW:
            self.slow[str(number)] = made.seconds
        if made.kind == "refused":
            self.refusals[made.signature] += 1
        if made.kind in ("ok", "refused"):
            return False
        known = self.found.setdefault(
            made.signature, {"class": made.kind, "text": number, "count": 0, "run": len(self.runs)}
        )
        known["count"] += 1
        return known["count"] == 1


def store(folder: Path, text: str, number: int, made: Outcome) -> None:
    """Stores a text with what it shows."""
    folder.mkdir(parents=True, exist_ok=True)
    name = hashlib.sha256(made.signature.encode()).hexdigest()[:8]
    said = "".join(f"// {line}\n" for line in (made.signature, *made.message.splitlines()))
    head = f"// text {number} for {target_of(number)}: {made.kind} in {made.seconds} s\n"
    path = folder / f"{made.kind}-{name}.mlir"
    path.write_text(head + said + text, errors="backslashreplace")


def replay(paths: list[Path], limits: Limits) -> int:
    """Compiles stored texts again and prints what becomes of them. Returns the count of faults."""

    def case(number: int) -> tuple[str, str]:
        text = paths[number].read_text()
        found = STORED.match(text)
        return text, CPU if found is None else found[1]

    faults = 0
    for number, made in Worker(case, limits).outcomes(range(len(paths))):
        faults += made.kind in FAULTS
        print(
            f"{paths[number].name}: {made.kind} {made.signature} {made.message[:200]}", flush=True
        )
    return faults


def fuzz(
    mutator: Mutator, state: State, texts: int, limits: Limits, *, workers: int = 1,
    path: Path | None = None, folder: Path | None = None,
) -> None:  # fmt: skip
    """Compiles the next `texts` texts, and adds what became of them to the state."""
    state.runs.append({"first": state.next, "texts": 0, "corpus": mutator.corpus.digest})
    end, before, begin = state.next + texts, state.seconds, time.perf_counter()

    def case(number: int) -> tuple[str, str]:
        return mutator.text(number), target_of(number)

    todo = Worker(case, limits).outcomes(range(state.next, end))
    if workers > 1:
        todo = _parallel(case, limits, range(state.next, end), workers)
    try:
        for number, made in todo:
            if state.add(number, made) and folder is not None:
                store(folder, mutator.text(number), number, made)
            state.next, state.seconds = number + 1, before + time.perf_counter() - begin
            state.runs[-1]["texts"] += 1
            if state.next % SAVED == 0:
                state.write(path)
    finally:
        state.write(path)


def _parallel(case: Case, limits: Limits, numbers: range, workers: int) -> Any:
    """The outcomes of texts in order, whose parts are compiled beside each other."""

    def part(some: range) -> list[tuple[int, Outcome]]:
        return list(Worker(case, limits).outcomes(some))

    parts = [numbers[i : i + SAVED] for i in range(0, len(numbers), SAVED)]
    with ThreadPoolExecutor(workers) as pool:
        for found in pool.map(part, parts):
            yield from found


def summary(state: State) -> str:
    """The counts and what was found, as text."""
    total = sum(state.counts.values())
    rate = total / state.seconds if state.seconds else 0.0
    counts = ", ".join(f"{n} {kind}" for kind, n in state.counts.most_common())
    lines = [f"{total} texts in {state.seconds / 60:.1f} min ({rate:.0f} texts/s): {counts}"]
    lines += [
        f"  {each['class']} x{each['count']} (text {each['text']}): {name}"
        for name, each in sorted(state.found.items(), key=lambda pair: -pair[1]["count"])
    ]
    return "\n".join(lines)


def main() -> int:
    """Runs, and returns 1 if there are faults."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--texts", type=int, default=1000)
    parser.add_argument("--first", type=int, default=0, help="the first text without a state")
    parser.add_argument("--state", type=Path, help="a JSON file: counts, and where to go on")
    parser.add_argument("--faults", type=Path, help="a folder for faults, next to the state")
    parser.add_argument("--corpus", type=Path, nargs="*", default=[], help="further folders")
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=Limits.seconds, help="for one text")
    parser.add_argument("--megabytes", type=int, default=Limits.megabytes)
    parser.add_argument("--show", type=int, help="print one text and its outcome")
    parser.add_argument("--replay", type=Path, help="compile the texts in a folder again")
    options = parser.parse_args()
    limits = Limits(options.seconds, options.megabytes)
    if options.replay is not None:
        return int(bool(replay(sorted(options.replay.glob("*.mlir")), limits)))
    mutator = Mutator(corpus.load(options.corpus))
    if options.show is not None:
        text = mutator.text(options.show)
        made = outcome(text, target_of(options.show))
        print(text, f"{target_of(options.show)}: {made}", sep="\n")
        return int(made.kind in FAULTS)
    state = State.read(options.state, options.first)
    folder = options.faults or (options.state and options.state.with_suffix(".faults"))
    given = {"workers": options.workers, "path": options.state, "folder": folder}
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        fuzz(mutator, state, options.texts, limits, **given)
    except KeyboardInterrupt:
        pass
    print(summary(state))
    return int(bool(state.faults()))


if __name__ == "__main__":
    raise SystemExit(main())
