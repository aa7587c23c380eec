"""
Machine code of kernels, read: what NVIDIA's disassembler prints, and numbers from it.

    python tests/backends/cuda/sass.py            prints how the numbers differ from the budget
    python tests/backends/cuda/sass.py --write    and makes them the budget

`nvdisasm` is that of the wheel `nvidia-cuda-nvdisasm`, or of the system.
"""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cache
from importlib.util import find_spec
from pathlib import Path

BUDGET = Path(__file__).parent / "sass_budget.json"

TENSOR = ("HMMA", "HGMMA", "IMMA", "IGMMA", "QGMMA")
"""Instructions that multiply matrices."""

_INSTRUCTION = re.compile(r"\s*/\*[0-9a-f]{4,}\*/\s+(?:@!?U?P\w+\s+)?([A-Z][\w.]*)(.*);")
_LABEL = re.compile(r"(\.L\w+):")
_KERNEL = re.compile(r"\.section\s+\.text\.(\w+)")
_WIDTH = re.compile(r"\.(?:U|S)?(8|16|64|128)(?:\.|$)")


@cache
def find_nvdisasm() -> str | None:
    """The path of the disassembler, if there is one."""
    for package in ("nvidia.cu13", "nvidia.cuda_nvdisasm"):
        try:
            spec = find_spec(package)
        except ModuleNotFoundError:
            continue
        for folder in (spec.submodule_search_locations or ()) if spec else ():
            if (path := Path(folder, "bin", "nvdisasm")).is_file():
                return str(path)
    return shutil.which("nvdisasm")


@dataclass
class Code:
    """The instructions of a kernel in the order of their addresses."""

    name: str
    ops: list[str] = field(default_factory=list[str])
    """Each with its modifiers: `LDG.E.64.CONSTANT`."""
    operands: list[str] = field(default_factory=list[str])
    labels: dict[str, int] = field(default_factory=dict[str, int])
    """Where in the list each begins."""

    def count(self, *names: str) -> int:
        """How many instructions have one of those names, whatever their modifiers are."""
        return sum(op.partition(".")[0] in names for op in self.ops)

    def loops(self) -> Iterator[list[str]]:
        """The instructions of each loop: what is between a branch backwards and its target."""
        for place, (op, operands) in enumerate(zip(self.ops, self.operands, strict=True)):
            target = re.search(r"\.L\w+", operands) if op.startswith("BRA") else None
            if target and (first := self.labels.get(target[0], place + 1)) <= place:
                yield self.ops[first : place + 1]

    def alternations(self) -> int:
        """How often a load from global memory follows a store, in the longest run of code without
        a branch backwards, a barrier or a fence."""
        most = found = 0
        stored = False
        starts = set(self.labels.values())
        for place, op in enumerate(self.ops):
            name = op.partition(".")[0]
            if name in ("BAR", "MEMBAR", "BRA", "WARPSYNC") or place in starts:
                found, stored = (found, stored) if name == "BRA" else (0, False)
            if name == "STG":
                stored = True
            elif name == "LDG" and stored:
                found, stored = found + 1, False
                most = max(most, found)
        return most

    def numbers(self) -> dict[str, float]:
        """What the budget holds of a kernel, rounded to what matters."""
        found = {
            "instructions": float(len(self.ops)),
            "global load bytes": _mean_bytes(self.ops, "LDG", "LDGSTS"),
            "global store bytes": _mean_bytes(self.ops, "STG"),
            "shared store bytes": _mean_bytes(self.ops, "STS"),
        }
        # Of loops around loops the innermost that multiplies most.
        loops = [Counter(op.partition(".")[0] for op in loop) for loop in self.loops()]
        most = max((sum(loop[t] for t in TENSOR) for loop in loops), default=0)
        if most:
            least = min(loop.total() for loop in loops if sum(loop[t] for t in TENSOR) == most)
            found["instructions per tensor instruction"] = least / most
        return {name: round(value, 2) for name, value in found.items() if value}


def _mean_bytes(ops: list[str], *names: str) -> float:
    sizes = [bytes_of(op) for op in ops if op.partition(".")[0] in names]
    return sum(sizes) / len(sizes) if sizes else 0.0


def bytes_of(op: str) -> int:
    """The bytes that a load or store moves for a thread."""
    width = _WIDTH.search(op)
    return int(width[1]) // 8 if width else 4


def disassemble(image: bytes) -> list[Code]:
    """The kernels of a cubin."""
    nvdisasm = find_nvdisasm()
    assert nvdisasm is not None
    with tempfile.NamedTemporaryFile(suffix=".cubin") as file:
        file.write(image)
        file.flush()
        command = [nvdisasm, "-c", file.name]
        text = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    return parse(text)


def parse(text: str) -> list[Code]:
    """The kernels of what the disassembler prints."""
    found: list[Code] = []
    for line in text.splitlines():
        if (kernel := _KERNEL.search(line)) is not None:
            found.append(Code(kernel[1]))
        elif found and (instruction := _INSTRUCTION.match(line)) is not None:
            if instruction[1] != "NOP":
                found[-1].ops.append(instruction[1])
                found[-1].operands.append(instruction[2])
        elif found and (label := _LABEL.match(line)) is not None:
            found[-1].labels[label[1]] = len(found[-1].ops)
    return found


def serial_loops(text: str) -> list[str]:
    """The loops of a CUDA C++ text that one thread alone runs, but those of few iterations."""
    found: list[str] = []
    depth: int | None = None
    for line in text.splitlines():
        indent = len(line) - len(line.lstrip())
        if depth is not None and indent <= depth and line.strip():
            depth = None
        if depth is None and re.match(r"\s*if \(threadIdx\.x (< 1|== 0)\) \{", line):
            depth = indent
        elif depth is not None and (loop := re.match(r"\s*for \(.*?; \w+ < (\w+);", line)):
            if not (loop[1].isdigit() and int(loop[1]) <= FEW):
                found.append(line.strip())
    return found


FEW = 16
"""Iterations of a loop that one thread may run alone."""

Numbers = dict[str, dict[str, float]]
"""Of each kernel of a program."""


def read_budget() -> dict[str, Numbers]:
    """What was last written, by program and architecture."""
    return json.loads(BUDGET.read_text()) if BUDGET.exists() else {}


def differences(budget: dict[str, Numbers], found: dict[str, Numbers]) -> list[str]:
    """A line for each number that is another."""
    lines: list[str] = []
    for program in sorted({*budget, *found}):
        old, new = budget.get(program, {}), found.get(program, {})
        for kernel in sorted({*old, *new}):
            before, after = old.get(kernel, {}), new.get(kernel, {})
            lines += [
                f"{program}, {kernel}: {name} {before.get(name)} -> {after.get(name)}"
                for name in sorted({*before, *after})
                if before.get(name) != after.get(name)
            ]
    return lines


def worse(budget: Numbers, found: Numbers, tolerance: float) -> list[str]:
    """What is over the budget: more instructions, or fewer bytes of an access."""
    lines: list[str] = []
    for kernel, numbers in found.items():
        for name, number in numbers.items():
            allowed = budget.get(kernel, {}).get(name)
            if allowed is None:
                lines.append(f"{kernel}: {name} {number} is not in the budget")
            elif (
                number < allowed * (1 - tolerance)
                if name.endswith(" bytes")
                else number > allowed * (1 + tolerance)
            ):
                lines.append(f"{kernel}: {name} {number}, and the budget is {allowed}")
    return lines


def main(write: bool) -> None:
    """Prints the differences, and makes them the budget if that is wanted."""
    import test_sass

    found = {name: test_sass.inspected(name).numbers for name in test_sass.PROGRAMS}
    for line in differences(read_budget(), found):
        print(line)
    if write:
        BUDGET.write_text(json.dumps(found, indent=1, sort_keys=True) + "\n")


if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parent))
    main("--write" in sys.argv[1:])
