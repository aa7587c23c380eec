"""
A report of a compilation: what each pass changed, and what became of each source line.

    irees.report(model, (x,)).save("report.html")

In a notebook a report is shown in the cell.
"""

from __future__ import annotations

import html
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from irees.errors import ArgumentError
from irees.fence import fenced
from irees.options import Options
from irees.reports.page import page
from irees.runtime.events import Event, write_trace
from irees.runtime.files import write_whole

RESOURCES = "{-#"
"""Start of the section of MLIR text that has the weights."""
MOST_CHARACTERS = 2000
"""Maximum characters of a source line that the page shows."""
MOST_CONSTANTS = 500
"""Maximum number of constants that the page lists."""
SEED = 0


@dataclass(frozen=True)
class Report:
    """The data of a report, as JSON-compatible values."""

    data: dict[str, Any]

    @fenced
    def save(self, path: str | Path) -> None:
        """Writes one HTML file, which needs no server. Raises ArgumentError if it cannot."""
        write_whole(Path(path), lambda file: file.write(page(self.data).encode()))

    @fenced
    def save_trace(self, path: str | Path) -> None:
        """
        Writes the timeline of the timed call as a Chrome trace, which Perfetto reads.

        Raises ArgumentError if there is none, or if it cannot be written.
        """
        if not self.data["timeline"]:
            raise ArgumentError(
                "the report has no timeline, because its kernels were not timed",
                hint="give inputs if sizes are dynamic, and do not set measure=False",
            )
        write_trace((Event(**event) for event in self.data["timeline"]), path)

    @property
    def texts(self) -> dict[str, str]:
        """The printed text of each kernel, and of the host program, by name."""
        return {name: code["text"] for name, code in self.data["code"].items()}

    def _repr_html_(self) -> str:
        """The page in a frame of a notebook."""
        text = html.escape(page(self.data))
        return f'<iframe srcdoc="{text}" style="width: 100%; height: 48em; border: 0"></iframe>'


@fenced
def report(
    source: Any,
    inputs: Sequence[Any] | None = None,
    *,
    kwargs: dict[str, Any] | None = None,
    dynamic_shapes: Any = None,
    measure: bool = True,
    **options: Any,
) -> Report:
    """
    Compiles a program as `irees.compile` does, records every pass, and times its kernels, on
    `inputs` or else on random numbers of its static shapes.

    Raises ArgumentError for a program of several devices, which has no report, and the errors of
    a compilation.
    """
    chosen = one_device(Options.make(**options))
    from irees.build import import_source

    imported = import_source(source, inputs, kwargs=kwargs, dynamic_shapes=dynamic_shapes)
    timed = measure and not chosen.trace_dispatch_tensors
    program = compiled(imported, chosen, timed)
    flat = _flat(program, inputs, kwargs or {}) if timed else None
    return described(imported.module, program, chosen, source, flat)


def one_device(options: Options) -> Options:
    """The options. Raises ArgumentError for several devices, or for the interpreter."""
    if options.devices or options.target == "reference":
        raise ArgumentError(
            "a report covers one device only", hint="omit devices, and name a target"
        )
    return options


def compiled(source: Any, options: Options, timed: bool) -> Any:
    """The program of a source, whose dispatches are timed or not."""
    from irees.compiler import compile

    return compile(source, **options.keywords() | {"time_dispatches": bool(timed)})


def described(
    module: Any, program: Any, options: Options, source: Any, inputs: Sequence[Any] | None,
    function: str | None = None,
) -> Report:  # fmt: skip
    """The report of a compiled program; `inputs` are flat arguments of a function to time."""
    from importlib.metadata import version

    from irees.reports.record import recorded
    from irees.runtime.program import main_function

    peaks = None
    if inputs is not None:
        peaks = _peaks(program)
        function = function or main_function(program.functions).name
    explained = program.explain(inputs, function=function, peaks=peaks, as_data=True)
    data = recorded(module, replace(options, time_dispatches=False))
    rows = {row["name"]: row for row in explained["dispatches"]}
    for kernel in data["kernels"]:
        kernel |= _kernel(rows.get(kernel["name"], {}))
    name, text = _source(source, data)
    return Report(
        data
        | {
            "schema": 1,
            "irees": version("irees"),
            "target": str(options.target),
            "source": {"name": name, "text": text},
            "memory": explained["memory"],
            "constants": _largest(program.constants),
            "peaks": explained["peaks"],
            "timeline": explained["timeline"],
            "call_ms": 1000 * explained["seconds"] if explained["seconds"] else None,
        }
    )


def _peaks(program: Any) -> tuple[float, float] | None:
    """GFLOP/s and GB/s of this CPU; None for a program of a GPU."""
    if program.target_kind != "cpu":
        return None
    from irees.backends.c.peaks import measure_peaks
    from irees.runtime.services import num_threads

    found = measure_peaks(num_threads())
    return found.gflops, found.gigabytes


def _largest(constants: Mapping[str, Any]) -> list[tuple[str, int]]:
    """Names and bytes of the largest constants."""
    sizes = sorted(((a.nbytes, name) for name, a in constants.items()), reverse=True)
    return [(name, size) for size, name in sizes[:MOST_CONSTANTS]]


def _flat(program: Any, inputs: Any, kwargs: dict[str, Any]) -> list[Any] | None:
    """
    The flat arguments of `main`: of the given call, or random; None if sizes are dynamic.

    Raises ArgumentError for a call of another structure.
    """
    from irees.runtime.arguments import zeros_or_random
    from irees.runtime.program import main_function

    if inputs is not None or kwargs:
        given = () if inputs is None else inputs
        given = tuple(given) if isinstance(given, list | tuple) else (given,)
        if program.signature is None:
            return list(given)
        return program.signature.flat(program.state, given, kwargs)
    random = np.random.default_rng(SEED)
    try:
        return [
            zeros_or_random(spec, random) for spec in main_function(program.functions).arguments
        ]
    except ArgumentError:  # dynamic sizes, or several functions
        return None


def _source(source: Any, data: dict[str, Any]) -> tuple[str, str]:
    """The name and the text of the source: a file, a text, or where most lines of C come from."""
    if isinstance(source, Path) or (isinstance(source, str) and "\n" not in source):
        return str(source), shown(str(source))
    if isinstance(source, str):
        return "<text>", "\n".join(line[:MOST_CHARACTERS] for line in source.splitlines())
    places = (place for code in data["code"].values() for place in code["places"] if place)
    files = Counter(re.sub(r":\d+(:\d+)?$", "", place) for place in places)
    name = next((name for name, _ in files.most_common() if Path(name).is_file()), "")
    return name, shown(name) if name else ""


def shown(path: str) -> str:
    """The text of a file, without weights."""
    lines: list[str] = []
    if path != "-":
        with Path(path).open(errors="replace") as file:
            while line := file.readline(MOST_CHARACTERS):
                if line.startswith(RESOURCES):
                    break
                lines.append(line.rstrip("\n"))
                while not line.endswith("\n") and (line := file.readline(MOST_CHARACTERS)):
                    pass
    return "\n".join(lines)


def _kernel(row: dict[str, Any]) -> dict[str, Any]:
    """Returns the data that the page shows for a kernel, from a row of `Program.explain`."""
    facts = [
        f"{group['strategy']} {'x'.join(map(str, group['tiles']))}"
        for group in row.get("groups", ())
    ]
    rates = ("flops", "bytes", "gflops", "gigabytes", "of_peak", "calls")
    facts += [f"vector {row['vector']}"] if row.get("vector") else []
    facts += [f"{row['gflops']:.1f} GFLOP/s"] if row.get("gflops") else []
    facts += [f"{row['gigabytes']:.1f} GB/s"] if row.get("gigabytes") else []
    seconds = row.get("seconds")
    return {
        "summary": row.get("summary"),
        "facts": facts,
        "rejected": [str(each) for each in row.get("rejected", ())],
        "ms": None if seconds is None else 1000 * seconds,
        "groups": row.get("groups", []),
        **{name: row.get(name) for name in rates},
    }
