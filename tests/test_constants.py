"""
Numbers that were fitted, measured or guessed are fields of a cost model, with a unit and an origin.

The second half looks for numbers without a name in the passes. `ALLOWED` has those that are left:
masks, bounds of number formats and steps of an algorithm. It only shrinks;
`python tests/test_constants.py` prints it.
"""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import fields
from pathlib import Path

import pytest

from irees.targets.common import COMMON
from irees.targets.cpu import CPU
from irees.targets.nvidia import NVIDIA

REPOSITORY = Path(__file__).parents[1]
ROOT = REPOSITORY / "irees"
TRANSFORMS = ROOT / "transforms"
TARGETS = sorted((ROOT / "targets").glob("*.py"))
MODELS = {"COMMON": COMMON, "CPU": CPU, "NVIDIA": NVIDIA}

LARGEST = 8
"""Magnitude up to which a number needs no name."""

WIDTHS = (16, 31, 32, 63, 64)
"""Widths of types, and the shifts that make their extreme values."""

ALLOWED = (
    "codegen/gpu/utils/block_radix.py: 15 x 1",
    "devices/partition_pipeline/stages.py: 60 x 1",
    "utils/narrow_floats.py: 255 x 3",
    "utils/narrow_floats.py: 4294967295 x 3",
    "utils/shapes.py: 12 x 1",
)
"""Numbers without a name, with the file below `irees/transforms` and how often they occur."""


@pytest.mark.parametrize("name", MODELS)
def test_every_cost_has_a_unit_and_an_origin(name):
    for field in fields(MODELS[name]):
        for key in ("unit", "origin"):
            assert field.metadata.get(key), f"{name}.{field.name} has no {key}"


@pytest.mark.parametrize("path", TARGETS, ids=lambda path: path.stem)
def test_every_cost_has_a_docstring(path):
    for owner in ast.parse(path.read_text()).body:
        if not isinstance(owner, ast.ClassDef):
            continue
        for node, after in zip(owner.body, [*owner.body[1:], None], strict=True):
            if isinstance(node, ast.AnnAssign):
                text = getattr(getattr(after, "value", None), "value", None)
                assert isinstance(text, str), f"{ast.unparse(node.target)} has no docstring"


def test_every_cost_is_read():
    texts = "\n".join(path.read_text() for path in ROOT.rglob("*.py") if path not in TARGETS)
    read = set(re.findall(r"\b(?:COMMON|CPU|NVIDIA)\.\w+", texts))
    costs = {f"{name}.{field.name}" for name, model in MODELS.items() for field in fields(model)}
    assert costs - read == set()


@pytest.mark.parametrize("path", TARGETS, ids=lambda path: path.stem)
def test_cost_models_import_nothing(path):
    for node in ast.walk(ast.parse(path.read_text())):
        assert not isinstance(node, ast.Import)
        if isinstance(node, ast.ImportFrom):
            assert node.module in ("__future__", "dataclasses", "irees.targets", "typing")


def numbers(node: ast.AST) -> Iterator[int | float]:
    """Yields the numbers of an AST that need a name and have none."""
    if isinstance(node, ast.Constant) and type(node.value) in (int, float):
        if abs(node.value) > LARGEST and node.value not in WIDTHS:
            yield node.value
    for child in ast.iter_child_nodes(node):
        if not is_named(child, node):
            yield from numbers(child)


def is_named(node: ast.AST, owner: ast.AST) -> bool:
    """Whether a statement gives its value a name: in capitals in a module, any in a class."""
    if isinstance(node, ast.Assign):
        targets = node.targets
    elif isinstance(node, ast.AnnAssign):
        targets = [node.target]
    else:
        return False
    names = [each for target in targets for each in getattr(target, "elts", [target])]
    if isinstance(owner, ast.ClassDef):
        return True
    capitals = all(isinstance(each, ast.Name) and each.id.isupper() for each in names)
    return isinstance(owner, ast.Module) and capitals


def unnamed() -> list[str]:
    """Returns what `ALLOWED` has to list today."""
    found: Counter[tuple[str, int | float]] = Counter()
    for path in TRANSFORMS.rglob("*.py"):
        name = path.relative_to(TRANSFORMS).as_posix()
        found.update((name, number) for number in numbers(ast.parse(path.read_text())))
    return [f"{name}: {number} x {count}" for (name, number), count in sorted(found.items())]


def test_numbers_have_names():
    """A new number gets a name, or becomes a cost; a number that is gone leaves the list."""
    assert list(ALLOWED) == unnamed()


def test_numbers_in_capitals_and_in_classes_are_named():
    text = """
MANY = 100
few: dict = {"x": 200}
class A:
    size: int = 300
def f(x=400):
    \'\'\'500\'\'\'
    MANY = 600
    return x << 32
"""
    assert list(numbers(ast.parse(text))) == [200, 400, 600]


if __name__ == "__main__":
    print("\n".join(f'    "{line}",' for line in unnamed()))
