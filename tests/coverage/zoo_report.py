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

MODES = {"program": "`irees.compile`", "compile": "`torch.compile`"}


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
    for package in ("torch", "transformers", "diffusers", "timm"):
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
        "distinct messages about them. Models that draw random numbers are compared by shape. "
        "Results are those of the last run of each model (`--reuse` keeps what passed), at several "
        "commits. Weights and inputs are chosen in places: router weights of zero get random "
        "values, since ties in a top-k are free; aimv2 has a padded mask and paligemma token types, "
        "without which eager and traced results of transformers differ; timm runs beside empty "
        "modules in place of torchvision.",
        "",
        "| family | models | " + " | ".join(f"right by {m}" for m in MODES.values()) + " |",
        "|---|---|---|---|",
    ]
    groups = list(dict.fromkeys([n.partition("/")[0] for n in runnable] + ["all"]))
    found = {mode: counts(runnable, mode) for mode in MODES}
    for group in groups:
        size = sum(group in (n.partition("/")[0], "all") for n in runnable)
        rights = [f"{found[m][group]['PASS']} of {sum(found[m][group].values())}" for m in MODES]
        lines.append(f"| {group} | {size} | {' | '.join(rights)} |")
    lines += ["", *_failures(runnable), *_table(runnable)]
    path.write_text("\n".join(lines) + "\n")


def _failures(results: Results) -> list[str]:
    rows = [
        f"| {name} | {MODES[mode]} | {_cell(found)} | {_escaped(found.get('why', ''))} |"
        for name, modes in results.items()
        for mode, found in modes.items()
        if found["verdict"] != "PASS"
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
        "| model | `irees.compile` | s | `torch.compile` | s |",
        "|---|---|---|---|---|",
    ]
    for name, modes in results.items():
        cells = [(_cell(modes.get(m)), _seconds(modes.get(m))) for m in MODES]
        lines.append(f"| {name} | " + " | ".join(f"{c} | {s}" for c, s in cells) + " |")
    return lines
