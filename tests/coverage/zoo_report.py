"""Results of the zoo as a summary and as a page."""

from __future__ import annotations

import collections
import datetime
import os
import platform
import re
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

Results = dict[str, dict[str, dict[str, Any]]]
"""Model => mode => verdict, stage, why, seconds."""

MODES = {
    "program": "`irees.compile`",
    "compile": "`torch.compile`",
    "inductor": "Inductor",
    "iree": "IREE",
}
OURS = ("program", "compile")
PEERS = ("inductor", "iree")


def counts(results: Results, mode: str) -> dict[str, collections.Counter[str]]:
    """Verdicts by family, and of all."""
    found: dict[str, collections.Counter[str]] = collections.defaultdict(collections.Counter)
    for name, modes in results.items():
        if mode in modes:
            for group in (name.partition("/")[0], "all"):
                found[group][modes[mode]["verdict"]] += 1
    return found


def summary(results: Results) -> str:
    """A line for each mode and family."""
    return "\n".join(
        f"{mode:8} {group:13} {sum(found.values()):4} models: "
        + ", ".join(f"{n} {v}" for v, n in found.most_common())
        for mode in MODES
        for group, found in counts(results, mode).items()
    )


def processor() -> str:
    """The processor's name, and how many the machine has."""
    path = Path("/proc/cpuinfo")
    names = re.findall(r"model name\s*:\s*(.*)", path.read_text()) if path.exists() else []
    return f"{names[0] if names else platform.machine()}, {os.cpu_count()} logical CPUs"


def _versions() -> str:
    found = []
    for package in ("torch", "transformers", "diffusers", "timm", "torchvision"):
        try:
            found.append(f"{package} {version(package)}")
        except PackageNotFoundError:
            found.append(f"no {package}")
    return ", ".join(found)


def _cell(found: dict[str, Any] | None) -> str:
    if found is None:
        return "not run"
    if found["verdict"] != "PASS":
        return f"{found['verdict']} {found.get('stage', '')}".strip()
    if found.get("note"):
        return "right (shapes)"
    count = len(found.get("fallbacks", ()))
    return f"right ({count} in PyTorch)" if count else "right"


def _seconds(found: dict[str, Any] | None) -> str:
    return f"{found['seconds']:.1f}" if found and "seconds" in found else ""


def read_page(path: Path) -> Results:
    """The results in a page: verdicts, seconds and reasons."""
    results: Results = {}
    reasons: dict[tuple[str, str], str] = {}
    modes: list[str] = []
    for line in path.read_text().splitlines():
        cells = [cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]]
        if len(cells) == 4 and cells[1] in MODES.values():
            reasons[cells[0], cells[1]] = cells[3].replace("\\|", "|").replace("&lt;", "<")
        elif cells[0:1] == ["model"] and set(cells[2::2]) == {"s"}:
            modes = [mode for title in cells[1::2] for mode in MODES if MODES[mode] == title]
        elif modes and "/" in cells[0]:
            results[cells[0]] = {
                mode: _read(cell, seconds, reasons.get((cells[0], MODES[mode]), ""))
                for mode, cell, seconds in zip(modes, cells[1::2], cells[2::2], strict=True)
                if cell != "not run"
            }
    return results


def _read(cell: str, seconds: str, why: str) -> dict[str, Any]:
    """A result as it was before `_cell` and `_seconds`."""
    verdict, _, stage = cell.partition(" ")
    found: dict[str, Any] = {"verdict": "PASS"}
    if verdict != "right":
        found = {"verdict": verdict, "stage": stage, "why": why}
    elif cell == "right (shapes)":
        found["note"] = "random"
    elif (count := re.search(r"\d+", cell)) is not None:
        found["fallbacks"] = [""] * int(count[0])
    return {**found, "seconds": float(seconds)} if seconds else found


def write_page(path: Path, results: Results) -> None:
    """Writes the page of all results."""
    runnable = {
        n: m for n, m in results.items() if not any(f["verdict"] == "EAGER" for f in m.values())
    }
    lines = [
        "# Models",
        "",
        "Architectures with small random weights, their code unchanged, compared with "
        "PyTorch: all tensors of the result, caches included.",
        "",
        "* Command: `python tests/coverage/zoo.py --mode both --out zoo.json --write "
        "docs/models.md` (`make zoo`)",
        f"* Machine: {processor()}; shared, so seconds are upper bounds",
        f"* Date: {datetime.date.today().isoformat()}; {_versions()}, Python "
        f"{platform.python_version()}",
        "",
        '`torch.compile` runs operators without a lowering in PyTorch; "n in PyTorch" counts '
        "distinct messages about them. DYNAMO is a model for which `torch.compile` fails with PyTorch's "
        'own backend "eager", too; it is not counted. '
        "Models that draw random numbers are compared by shape. "
        "Results are those of the last run of each model (`--reuse` keeps what passed), at several "
        "commits. Weights and inputs are chosen in places: router weights of zero get random "
        "values, since ties in a top-k are free; aimv2 has a padded mask and paligemma token types, "
        "without which eager and traced results of transformers differ; without torchvision, timm "
        "runs beside empty modules in its place. torchvision's single-stage detectors have heads of "
        "other weights, since all scores of its own are equal. torchvision 0.28.0's wheel of PyPI is "
        "linked with CUDA's libraries and does not load beside a PyTorch without them; these models "
        "ran with empty libraries of their names, and torchvision's own kernels for a CPU.",
        "",
        *_peers(runnable),
        "| family | models | " + " | ".join(f"right by {m}" for m in MODES.values()) + " |",
        "|---" * (2 + len(MODES)) + "|",
    ]
    groups = list(dict.fromkeys([n.partition("/")[0] for n in runnable] + ["all"]))
    found = {mode: counts(runnable, mode) for mode in MODES}
    for group in groups:
        size = sum(group in (n.partition("/")[0], "all") for n in runnable)
        rights = [_share(found[m][group]) for m in MODES]
        lines.append(f"| {group} | {size} | {' | '.join(rights)} |")
    lines += ["", *_failures(runnable), *_table(runnable)]
    path.write_text("\n".join(lines) + "\n")


def _peers(results: Results) -> list[str]:
    """What the columns of other compilers are, where some models have them."""
    ran = [sum(mode in modes for modes in results.values()) for mode in PEERS]
    if not any(ran):
        return []
    whys = (m["iree"].get("why", "") for m in results.values() if "iree" in m)
    text = (
        f"Inductor ran {ran[0]} of the models and IREE {ran[1]}, in the order of a hash of their "
        "names (`zoo.py --mode peers`); a model that takes a peer more than 90 to 150 s on this "
        "machine is left out. Inductor's second call is compared, as that of irees is. IREE gets the program "
        "that irees exports, through torch-mlir's importer for `torch.export`; of its errors "
        f"{sum('state mapping' in why for why in whys)} are the importer's on a buffer that is not "
        "saved with the model."
    )
    return [text, ""]


def _share(verdicts: collections.Counter[str]) -> str:
    """How many models are right, of those that PyTorch takes."""
    return f"{verdicts['PASS']} of {verdicts.total() - verdicts['DYNAMO']}"


def _failures(results: Results) -> list[str]:
    rows = [
        f"| {name} | {MODES[mode]} | {_cell(found)} | {_escaped(found.get('why', ''))} |"
        for name, modes in results.items()
        for mode, found in modes.items()
        if mode in OURS and found["verdict"] != "PASS"
    ]
    if not rows:
        return []
    return ["## Failures", "", "| model | by | verdict | reason |", "|---|---|---|---|", *rows, ""]


def _escaped(text: str) -> str:
    text = re.sub(r"(/[\w.+-]+)+/(site-packages/)?", "", text)
    return text.replace("|", "\\|").replace("<", "&lt;")[:200]


def _table(results: Results) -> list[str]:
    lines = [
        "## All models",
        "",
        "| model | " + " | ".join(f"{title} | s" for title in MODES.values()) + " |",
        "|---" * (1 + 2 * len(MODES)) + "|",
    ]
    for name, modes in results.items():
        cells = [(_cell(modes.get(m)), _seconds(modes.get(m))) for m in MODES]
        lines.append(f"| {name} | " + " | ".join(f"{c} | {s}" for c, s in cells) + " |")
    return lines
