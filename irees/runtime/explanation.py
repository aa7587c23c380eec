"""
The output of `Program.explain`, as data and as text.

The compiler's decisions come from the manifest, timings from a measurement. A compute-bound
dispatch is compared to the peak of FMAs, a bandwidth-bound one to the bandwidth of a copy.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from irees.errors import ParseError
from irees.runtime.timing import Times

if TYPE_CHECKING:
    from irees.runtime.program import Program

RIDGE = 8.0
"""Arithmetic intensity in flops per byte from which a dispatch counts as compute-bound."""

_HEADER = (
    *("dispatch", "calls", "strategy", "tiles", "block", "vector", "Mflop", "MB"),
    *("ms", "%", "GFLOP/s", "GB/s", "of peak"),
)


def explanation(
    program: Program, times: Times | None, peaks: tuple[float, float] | None
) -> dict[str, Any]:
    """
    Functions, memory, dispatches, remarks and the timeline of a call as data. Flops, bytes,
    seconds, and predicted cycles of a GPU are totals over all calls of a dispatch, None where
    unknown; rates are derived from them.
    """
    kernels = checked_kernels(program.manifest)
    return {
        "functions": [repr(function) for function in program.functions.values()],
        "memory": program.memory_analysis(),
        "seconds": None if times is None else times.call,
        "timeline": [] if times is None else [asdict(event) for event in times.timeline],
        "peaks": None if peaks is None else {"gflops": peaks[0], "gigabytes": peaks[1]},
        "dispatches": [_dispatch(kernel, times, peaks) for kernel in kernels],
        "remarks": [str(line) for line in checked_list(program.manifest, "remarks")],
    }


_FIELDS: dict[str, tuple[type, ...]] = {
    "name": (str,),
    "summary": (str,),
    "key": (str,),
    "calls": (int, type(None)),
    "vector": (str, type(None)),
    "flops": (int, type(None)),
    "bytes": (int, type(None)),
    "cycles": (int, type(None)),
    "configs": (list, type(None)),
    "remarks": (list, type(None)),
    "accesses": (dict, type(None)),
}
"""Fields of a kernel in a manifest, with their types; only the name is mandatory."""


def checked_list(manifest: Mapping[str, Any], name: str) -> list[Any]:
    """A list of the manifest, which is untrusted input. Raises ParseError if it is not a list."""
    found = manifest.get(name) or []
    if not isinstance(found, list | tuple):
        raise ParseError(f"the manifest's {name!r} must be a list")
    return list(found)


def checked_kernels(manifest: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """The kernels of a manifest. Raises ParseError for a field of the wrong type."""
    kernels = checked_list(manifest, "kernels")
    for kernel in kernels:
        if not isinstance(kernel, Mapping) or "name" not in kernel:
            raise ParseError("the manifest's 'kernels' must be objects with a name")
        for name, kinds in _FIELDS.items():
            if name in kernel and not isinstance(kernel[name], kinds):
                raise ParseError(f"the manifest's {name!r} of a kernel must be {kinds[0].__name__}")
        for name, (fits, what) in _ELEMENTS.items():
            found = kernel.get(name) or ()
            if not all(map(fits, found.values() if isinstance(found, dict) else found)):
                raise ParseError(f"the manifest's {name!r} of a kernel must be {what}")
    return kernels


def _is_config(config: Any) -> bool:
    return isinstance(config, Mapping) and all(map(_is_sizes, config.items()))


def _is_sizes(field: tuple[str, Any]) -> bool:
    name, value = field
    if name in ("workgroup", "block", "sizes"):
        whole = isinstance(value, list | tuple) and all(isinstance(size, int) for size in value)
        return whole or value is None
    return name != "group" or isinstance(value, int)


_ELEMENTS: dict[str, tuple[Callable[[Any], bool], str]] = {
    "configs": (_is_config, "objects with sizes"),
    "accesses": (lambda count: isinstance(count, int), "numbers"),
    "remarks": (lambda line: isinstance(line, str), "texts"),
}
"""What the elements of a field of a kernel must be, as a predicate and in words."""


def _dispatch(
    kernel: Mapping[str, Any], times: Times | None, peaks: tuple[float, float] | None
) -> dict[str, Any]:
    calls = kernel.get("calls") or 0
    groups = _groups(kernel.get("configs") or ())
    flops, moved, cycles = (
        None if kernel.get(name) is None else kernel[name] * calls
        for name in ("flops", "bytes", "cycles")
    )
    seconds = None if times is None else times.dispatches.get(kernel["name"])
    found: dict[str, Any] = {
        "name": kernel["name"],
        "summary": kernel.get("summary", ""),
        "key": kernel.get("key", ""),
        "calls": calls,
        "groups": groups,
        "vector": kernel.get("vector"),
        "flops": flops,
        "bytes": moved,
        "cycles": cycles,
        "seconds": seconds,
        "share": None if not seconds or times is None else seconds / times.call,
        "gflops": flops / seconds / 1e9 if flops and seconds else None,
        "gigabytes": moved / seconds / 1e9 if moved and seconds else None,
        "tuned": bool(kernel.get("tuned")),
        "accesses": dict(kernel.get("accesses") or {}),
        "rejected": _rejected(groups, kernel.get("remarks") or ()),
    }
    found["of_peak"] = _of_peak(found, peaks)
    return found


def _groups(configs: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Per group of ops in one tile loop: strategy, tile sizes of its main op, register block."""
    found: dict[int, dict[str, Any]] = {}
    for config in configs:
        sizes = list(config.get("sizes") or ())
        tiles, block = list(config.get("workgroup") or ()), config.get("block")
        group = found.setdefault(config.get("group", 0), {"strategy": "", "tiles": []})
        if block is not None:
            group |= {"strategy": "contraction", "tiles": tiles, "sizes": sizes}
            group["block"] = list(block)
        elif "block" not in group and len(tiles) >= len(group["tiles"]):
            group |= {"tiles": tiles, "sizes": sizes}
    for group in found.values():
        if not group["strategy"]:
            group["strategy"] = "tiles" if any(group["tiles"]) else "whole"
    return list(found.values())


def _rejected(groups: Sequence[Mapping[str, Any]], remarks: Sequence[str]) -> list[str]:
    reasons = list(remarks)
    if any(group["strategy"] == "whole" for group in groups):
        reasons.append("not tiled: no loop that all ops write along, or not enough work for two")
    return reasons


def _of_peak(found: Mapping[str, Any], peaks: tuple[float, float] | None) -> float | None:
    if peaks is None:
        return None
    if found["gflops"] and (not found["bytes"] or found["flops"] >= RIDGE * found["bytes"]):
        return found["gflops"] / peaks[0]
    return found["gigabytes"] / peaks[1] if found["gigabytes"] else None


def text_of(data: Mapping[str, Any]) -> str:
    """Formats an explanation as a table of dispatches, with rejected alternatives below each."""
    lines = ["functions:", *(f"  {function}" for function in data["functions"])]
    lines += ["memory:", *(f"  {name}: {value}" for name, value in data["memory"].items())]
    lines += [f"kernels: {len(data['dispatches'])}", _accesses(data["dispatches"])]
    if (seconds := data["seconds"]) is not None:
        inside = sum(each["seconds"] or 0.0 for each in data["dispatches"])
        lines.append(f"one call: {seconds * 1e3:.3f} ms, {inside * 1e3:.3f} ms in dispatches")
    if (peaks := data["peaks"]) is not None:
        lines.append(f"peaks: {peaks['gflops']:.0f} GFLOP/s, copies {peaks['gigabytes']:.1f} GB/s")
    if data["dispatches"]:
        lines += _table(data["dispatches"])
    elsewhere = _elsewhere(data)
    return "\n".join([*lines, "remarks:" if elsewhere else "remarks: none", *elsewhere])


def _accesses(dispatches: Sequence[Mapping[str, Any]]) -> str:
    """Counts of memory accesses, by how they are kept in bounds."""
    total = Counter[str]()
    for each in dispatches:
        total.update(each["accesses"])
    said = ", ".join(f"{number} {kind}" for kind, number in total.items() if number)
    return f"accesses: {said or 'none'}"


def _elsewhere(data: Mapping[str, Any]) -> list[str]:
    """Remarks that are not printed below a dispatch."""
    shown = {text for each in data["dispatches"] for text in each["rejected"]}
    return [f"  {line}" for line in data["remarks"] if line.partition("] ")[2] not in shown]


def _table(dispatches: Sequence[Mapping[str, Any]]) -> list[str]:
    rows = [_cells(each) for each in dispatches]
    widths = [max(map(len, column)) for column in zip(_HEADER, *rows, strict=True)]
    lines = [_aligned(_HEADER, widths)]
    for each, row in zip(dispatches, rows, strict=True):
        lines.append(_aligned(row, widths))
        lines.append(f"    {each['summary']}")
        lines += [f"    - {reason}" for reason in each["rejected"]]
    return lines


def _aligned(cells: Sequence[str], widths: Sequence[int]) -> str:
    last_left = _HEADER.index("vector")
    texts = [
        cell.rjust(width) if i == 1 or i > last_left else cell.ljust(width)
        for i, (cell, width) in enumerate(zip(cells, widths, strict=True))
    ]
    return "  ".join(texts).rstrip()


def _cells(each: Mapping[str, Any]) -> list[str]:
    groups = each["groups"]
    return [
        each["name"],
        str(each["calls"]),
        "+".join(group["strategy"] for group in groups) + (" (tuned)" if each["tuned"] else ""),
        " ".join("x".join(map(str, group["tiles"])) or "-" for group in groups),
        " ".join("x".join(map(str, group["block"])) for group in groups if "block" in group) or "-",
        each["vector"] or "scalar",
        _number(each["flops"], 1e-6),
        _number(each["bytes"], 1e-6),
        _number(each["seconds"], 1e3),
        _number(each["share"], 100, 0),
        _number(each["gflops"], 1),
        _number(each["gigabytes"], 1),
        _number(each["of_peak"], 100, 0) + ("%" if each["of_peak"] is not None else ""),
    ]


def _number(value: float | None, factor: float, digits: int = 3) -> str:
    if value is None:
        return "-"
    scaled = value * factor
    return f"{scaled:.{digits if scaled < 10 else min(digits, 1)}f}"
