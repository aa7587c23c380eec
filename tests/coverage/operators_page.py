"""
Writes docs/operators.md: what becomes of each operator of PyTorch.

    python tests/coverage/operators_page.py --run --write docs/operators.md
    python tests/coverage/operators_page.py --results FOLDER --write docs/operators.md

`--run` runs the databases first, as `RUNS` and `MODULES` say, and keeps the results in a folder.
Runs without results in the folder keep the rows that the page has, with their dates.
"""

from __future__ import annotations

import argparse
import collections
import datetime
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
RUNS = {
    **{
        dtype: ["--dtype", dtype, "--target", "reference"]
        for dtype in ("float32", "float64", "bfloat16", "int64", "bool", "complex64")
    },
    "float32 through C": ["--dtype", "float32"],
    "float32 by torch.compile": ["--dtype", "float32", "--mode", "compile"],
}
"""What is counted => arguments of operators.py."""
MODULES = ["--limit", "2", "--backends", "irees", "inductor"]
"""Arguments of modules.py."""


def file_of(folder: Path, name: str) -> Path:
    """Where the results of a run are."""
    return folder / f"{name.replace(' ', '_')}.json"


def run(folder: Path) -> None:
    """Runs all that is not in the folder yet."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, arguments in RUNS.items():
        if not file_of(folder, name).exists():
            out = ["--out", str(file_of(folder, name))]
            command = [sys.executable, str(HERE / "operators.py"), *arguments, *out]
            subprocess.run(command, check=False)
    if not file_of(folder, "modules").exists():
        out = ["--out", str(file_of(folder, "modules"))]
        command = [sys.executable, str(HERE / "modules.py"), *MODULES, *out]
        subprocess.run(command, check=False)


def processor() -> str:
    """The processor's name."""
    lines = Path("/proc/cpuinfo").read_text().splitlines()
    return next(line.split(":")[1].strip() for line in lines if "model name" in line)


def kept(page: str, name: str) -> list[str]:
    """The rows of a run in a page."""
    return [line for line in page.splitlines() if line.startswith(f"| {name} |")]


def counts(results: dict[str, str]) -> str:
    """A row of numbers: operators, samples, and what did not pass."""
    kinds = collections.Counter(v.split()[0] for v in results.values())
    total = len(results) - kinds["EAGER"]
    operators = {n.split("#")[0] for n in results}
    failing = {n.split("#")[0] for n, v in results.items() if v.split()[0] not in ("PASS", "EAGER")}
    share = kinds["PASS"] / total if total else 0
    rest = [kinds[k] for k in ("UNSUPPORTED", "WRONG", "ERROR", "CRASH", "TIMEOUT")]
    passing = f"{len(operators) - len(failing)} of {len(operators)}"
    return f"{passing} | {kinds['PASS']} of {total} ({share:.2%}) | " + " | ".join(map(str, rest))


def head(folder: Path, page: str) -> list[str]:
    """Counts of each run, and how to repeat them."""
    import torch

    lines = [
        "# Operators of PyTorch",
        "",
        "`python tests/coverage/operators_page.py --run --write docs/operators.md`, "
        f"torch {torch.__version__}. A sample is one input of "
        "PyTorch's operator database. It is compared with eager, by the database's tolerance; what "
        "misses that may be off from an answer in a wider dtype about as far as eager is "
        "(`samples.py`). "
        "Dtypes are interpreted where nothing else is said.",
        "",
        "| run | arguments of operators.py | operators all right | samples right | refused | wrong "
        "| raw errors | crashes | hangs | when and where |",
        "|---|---|---|---|---|---|---|---|---|---|",
    ]
    for name, arguments in RUNS.items():
        if file_of(folder, name).exists():
            found = json.loads(file_of(folder, name).read_text())
            when = f"{datetime.date.today()}, {processor()}"
            lines.append(f"| {name} | `{' '.join(arguments)}` | {counts(found)} | {when} |")
        else:
            lines += kept(page, name)[:1]
    return [*lines, ""]


def failing(folder: Path, page: str) -> list[str]:
    """Operators with a sample that is not right, and why."""
    lines = ["## What is not right", "", "| run | operator | samples | why |", "|---|---|---|---|"]
    for name in RUNS:
        if not file_of(folder, name).exists():
            lines += kept(page, name)[1:]
            continue
        found = json.loads(file_of(folder, name).read_text())
        by_operator: dict[str, list[str]] = collections.defaultdict(list)
        for sample, verdict in sorted(found.items()):
            if verdict.split()[0] not in ("PASS", "EAGER"):
                by_operator[sample.split("#")[0]].append(verdict)
        for operator, verdicts in by_operator.items():
            why = verdicts[0].split("error: ")[-1].replace("|", "/")[:140]
            kind = verdicts[0].split()[0].lower()
            lines.append(f"| {name} | {operator} | {len(verdicts)} | {kind}: {why} |")
    return [*lines, ""]


DATABASES = {
    "modules, eval": lambda name: name.startswith("nn.") and ".eval#" in name,
    "modules, train": lambda name: name.startswith("nn.") and ".train#" in name,
    "higher-order operators": lambda name: name.startswith("hop."),
    "custom operators": lambda name: name.startswith("custom."),
}
"""Row of the table => which cases are in it."""


def modules(folder: Path, page: str) -> list[str]:
    """How irees and Inductor do on modules, higher-order and custom operators."""
    title = "## Modules, higher-order and custom operators"
    if not file_of(folder, "modules").exists():
        _, begin, rest = page.partition(title)
        return [begin + rest.partition("\n## ")[0]] if begin else []
    found = json.loads(file_of(folder, "modules").read_text())
    both = {n: r for n, r in found.items() if {"irees", "inductor"} <= r.keys()}
    lines = [
        title,
        "",
        f"`python tests/coverage/modules.py {' '.join(MODULES)}` ({datetime.date.today()}, "
        f"{processor()}) runs PyTorch's `module_db`, `hop_db` "
        "and `custom_op_db` through `torch.compile` with irees and with Inductor. Results, gradients, "
        "changed arguments and buffers are compared with eager's. A case that eager refuses, or in "
        "which Dynamo finds nothing to compile, is not counted. Of cases that draw random numbers, "
        "shapes are compared. Operators without a lowering run in PyTorch; the last column counts "
        "those cases.",
        "",
        "| database | cases | right by irees | right by Inductor | right by irees, of those | wrong "
        "| random | partly in PyTorch |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for title, belongs in {**DATABASES, "all": lambda _: True}.items():
        lines.append(f"| {title} | {module_counts([r for n, r in both.items() if belongs(n)])} |")
    lines += ["", "| case | irees | Inductor | why |", "|---|---|---|---|"]
    for name, result in sorted(both.items()):
        kinds = [result[b]["verdict"] for b in ("irees", "inductor")]
        if not set(kinds) <= {"PASS", "EAGER", "EMPTY"}:
            whys = [result[b].get("why", "") for b in ("irees", "inductor")]
            why = next(w for w, k in zip(whys, kinds) if k not in ("PASS", "EAGER", "EMPTY"))
            shown = why.replace("|", "/").replace("<", "&lt;")[:200]
            lines.append(f"| {name} | {kinds[0].lower()} | {kinds[1].lower()} | {shown} |")
    return [*lines, ""]


def module_counts(results: list[Any]) -> str:
    """A row of numbers about cases that were run with both backends."""
    counted = [r for r in results if r["irees"]["verdict"] not in ("EAGER", "EMPTY")]
    good = [r for r in counted if r["irees"]["verdict"] == "PASS"]
    theirs = [r for r in counted if r["inductor"]["verdict"] == "PASS"]
    shared = [r for r in theirs if r["irees"]["verdict"] == "PASS"]
    share = f"{len(shared) / len(theirs):.1%}" if theirs else "-"
    wrong = sum(r["irees"]["verdict"] == "WRONG" for r in counted)
    random = sum(r["irees"].get("note") == "random" for r in counted)
    partly = sum("fallbacks" in r["irees"] for r in counted)
    return (
        f"{len(counted)} | {len(good)} | {len(theirs)} | {len(shared)} of {len(theirs)} ({share}) "
        f"| {wrong} | {random} | {partly}"
    )


def core() -> list[str]:
    """The core ATen set and prims: natively lowered, or by decomposition."""
    import torch

    import irees.frontends.torch.importing  # noqa: F401  (fills the table)
    from irees.frontends.torch.calls import LOWERINGS

    def overloads(namespace: Any) -> list[Any]:
        packets = (getattr(namespace, name, None) for name in sorted(dir(namespace)))
        return [getattr(p, o) for p in packets if hasattr(p, "overloads") for o in p.overloads()]

    tagged = [op for op in overloads(torch.ops.aten) if torch.Tag.core in op.tags]
    kinds = {op: kind_of(op, LOWERINGS) for op in [*tagged, *overloads(torch.ops.prims)]}
    native = [op for op in tagged if kinds[op].startswith("native")]
    lines = [
        "## Core ATen and prims",
        "",
        f"{len(native)} of {len(tagged)} overloads of core ATen have a lowering of their own; of "
        f"all of `aten` and `prims` {len(LOWERINGS)} overloads do. The others are decomposed. An "
        "overload that writes to an argument is lowered as the one that returns the new value.",
        "",
        "| overload | |",
        "|---|---|",
    ]
    return [*lines, *(f"| `{op}` | {kind} |" for op, kind in kinds.items()), ""]


def kind_of(op: Any, lowerings: Any) -> str:
    """How an operator is lowered: as itself, as what functionalization makes of it, by parts."""
    if op in lowerings:
        return "native"
    twins = [f"{op._opname}_functional.default"]
    if op._overloadname == "out" or op._overloadname.endswith("_out"):
        twins += [f"{op._opname}.{o}" for o in op._overloadpacket.overloads() if "out" not in o]
    named = {str(each).removeprefix(f"{op.namespace}."): each for each in lowerings}
    for twin in twins:
        if op._schema.is_mutable and twin in named:
            return f"native, as `{named[twin]}`"
    if op.namespace == "prims":
        from irees.frontends.torch.primitives import DECOMPOSITIONS

        return "by decomposition" if op in DECOMPOSITIONS else "no, or not a tensor's operator"
    return "by decomposition"


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--results", type=Path, default=Path("operator_results"))
    parser.add_argument("--run", action="store_true")
    parser.add_argument("--write", type=Path)
    arguments = parser.parse_args()
    if arguments.run:
        run(arguments.results)
    folder = arguments.results
    page = arguments.write.read_text() if arguments.write and arguments.write.exists() else ""
    parts = [*head(folder, page), *failing(folder, page), *modules(folder, page), *core()]
    text = "\n".join(parts)
    if arguments.write:
        arguments.write.write_text(text)
    else:
        print(text)


if __name__ == "__main__":
    main()
