"""The passes that docs/tutorial.md writes work on the cases that it gives."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest
from xdsl.passes import ModulePass

from irees import import_mlir
from irees.dialects import get_context

TUTORIAL = (Path(__file__).parents[1] / "docs" / "tutorial.md").read_text()
CASES = re.findall(r"```mlir\n(.*?)```", TUTORIAL, re.DOTALL)
PASSES = [
    block
    for block in re.findall(r"```python\n(.*?)```", TUTORIAL, re.DOTALL)
    if "(ModulePass)" in block
]


def pass_of(block: str) -> ModulePass:
    """The pass that a block of the tutorial defines last."""
    names: dict[str, object] = {"__name__": "tutorial"}
    exec(compile(block, "tutorial.md", "exec"), names)
    found = [v for v in names.values() if isinstance(v, type) and issubclass(v, ModulePass)]
    return found[-1]()


def matches(case: Path, printed: str) -> bool:
    """Whether a text is what the CHECK lines of a case say."""
    command = [sys.executable, "-m", "filecheck", str(case)]
    return subprocess.run(command, input=printed, text=True, capture_output=True).returncode == 0


@pytest.mark.parametrize("number", range(len(PASSES)))
def test_pass_does_what_its_case_says(number, tmp_path):
    transform, case = pass_of(PASSES[number]), tmp_path / "case.mlir"
    case.write_text(CASES[number])
    assert f"-p {transform.name} |" in CASES[number]
    module = import_mlir(case)
    assert not matches(case, str(module))
    transform.apply(get_context(), module)
    module.verify()
    assert matches(case, str(module))


def test_there_are_two():
    assert len(PASSES) == len(CASES) == 2
