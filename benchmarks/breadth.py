"""
Times irees on many small programs and whole models beside its peers; the worst ratio comes first.

    python benchmarks/breadth.py [--only NAME ...] [--threads 1 2] [--repeat N] [--write FILE]
    python benchmarks/breadth.py --only $(python benchmarks/breadth.py --list | grep conv)

Options and method are those of `bench.py`. A peer that is not installed, or does not take a
program, is a dash with the reason below the table. `NAME_dynamic` is a program with dynamic sizes.
"""

from __future__ import annotations

import inspect
from pathlib import Path
from typing import Any

import bench
import breadth_programs
from contenders import CONTENDERS
from programs import Program
from report import Heading

DYNAMIC = "_dynamic"
HEADING = Heading(
    title="Breadth",
    introduction="Programs of the kinds that people run (`benchmarks/breadth_programs.py`), the "
    "worst ratio to the best peer first. No pass knows one of them by name.",
    worst_first=True,
)


def names() -> list[str]:
    """All programs, by kind."""
    return [*breadth_programs.STATIC, *(name + DYNAMIC for name in breadth_programs.DYNAMIC)]


def made(name: str) -> breadth_programs.Made:
    """A module in evaluation mode, with random weights that are the same each time, and inputs."""
    import torch

    torch.manual_seed(0)
    module, inputs = breadth_programs.STATIC[name.removesuffix(DYNAMIC)]()
    return module.eval().requires_grad_(False), inputs


def dynamic_dims(name: str, module: Any, count: int) -> tuple[Any, ...] | None:
    """The dynamic dims of so many inputs, as torch.export takes them; None of static sizes."""
    if not name.endswith(DYNAMIC):
        return None
    import torch

    found: tuple[dict[int, Any], ...] = tuple({} for _ in range(count))
    for place, dim in breadth_programs.DYNAMIC[name.removesuffix(DYNAMIC)]:
        found[place][dim] = torch.export.Dim.AUTO
    # Arguments of `*inputs` are one tuple.
    kinds = [p.kind for p in inspect.signature(module.forward).parameters.values()]
    return (found,) if inspect.Parameter.VAR_POSITIONAL in kinds else found


def program(name: str, folder: Path) -> Program:
    """The program of that name."""
    module, inputs = made(name)
    dynamic = dynamic_dims(name, module, len(inputs))
    return Program(name, None, [x.numpy() for x in inputs], module, dynamic=dynamic)


SUITE = bench.Suite(
    names,
    program,
    list(CONTENDERS),
    HEADING,
    script="breadth.py",
    defaults={"threads": [1], "visits": 2, "seconds": 2.0, "repeat": 12, "minutes": 90.0},
)

if __name__ == "__main__":
    bench.main(SUITE, __doc__.split("\n")[1])
