"""
The size of what one has to read: functions, parameters, and the closure of a pass.

Each rule has a list of what breaks it today. An entry is the number that the function or pass may
not exceed; it may only become smaller. `python tests/test_rules.py` prints the lists.
"""

from __future__ import annotations

import ast
import json
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from irees.transforms import pass_modules

REPOSITORY = Path(__file__).parents[1]
ALLOWED = Path(__file__).with_suffix(".json")
MOST = {"lines": 60, "complexity": 15, "parameters": 6, "closure": 1500, "tensor closure": 800}
"""
Lines of a function, its cyclomatic complexity (McCabe 1976, operators of conditions counted), its
parameters without `self`, and the lines of `irees/transforms` that a pass is made of: its own files
and what they import from there, but for what three or more passes share.
"""

SHARED_BY = 3
"""Passes that import a file, from which on one need not read it to change one of them."""

SCHEMA = ("lowers", "infers", "decomposes", "decomposes_named")
"""Decorators whose functions have parameters that somebody else has chosen."""

TENSOR_PHASES = ("input", "global_opt", "dispatch_creation", "devices", "iree")
BRANCHES = (ast.If, ast.For, ast.While, ast.ExceptHandler, ast.IfExp, ast.match_case)
Function = ast.FunctionDef | ast.AsyncFunctionDef


def functions(tree: ast.AST, prefix: str = "") -> Iterator[tuple[str, Function]]:
    """Yields functions and methods with their qualified names; nested ones count as their own."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, Function):
            yield prefix + node.name, node
            yield from functions(node, f"{prefix}{node.name}.")
        elif isinstance(node, ast.ClassDef):
            yield from functions(node, f"{prefix}{node.name}.")
        else:
            yield from functions(node, prefix)


def own_nodes(function: Function) -> Iterator[ast.AST]:
    """Yields the nodes of a function without those of the functions inside it."""
    rest: list[ast.AST] = list(ast.iter_child_nodes(function))
    while rest:
        node = rest.pop()
        yield node
        if not isinstance(node, Function):
            rest += ast.iter_child_nodes(node)


def complexity(function: Function) -> int:
    """Returns the cyclomatic complexity of a function."""
    total = 1
    for node in own_nodes(function):
        if isinstance(node, BRANCHES):
            total += 1
        elif isinstance(node, ast.BoolOp):
            total += len(node.values) - 1
        elif isinstance(node, ast.comprehension):
            total += 1 + len(node.ifs)
    return total


def parameters(function: Function) -> int:
    """
    Returns the number of parameters without `self` and `cls`.

    Those of a lowering, shape rule or decomposition are the arguments of PyTorch's schema.
    """
    if any(
        isinstance(x, ast.Call) and ast.unparse(x.func) in SCHEMA for x in function.decorator_list
    ):
        return 0
    given = function.args
    every = [*given.posonlyargs, *given.args, *given.kwonlyargs]
    return len([x for x in every if x.arg not in ("self", "cls")])


@cache
def imported(path: Path) -> frozenset[Path]:
    """Returns the files of `irees/transforms` that a file imports, from anywhere in it."""
    found: set[Path] = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("irees.transforms."):
            base = REPOSITORY.joinpath(*str(node.module).split("."))
            names = [base / alias.name for alias in node.names]
            found |= {file for x in (base, *names) if (file := file_of(x)) is not None}
    return frozenset(found)


def file_of(path: Path) -> Path | None:
    """Returns the file of a module, None where the path is no module."""
    candidates = (path.with_suffix(".py"), path / "__init__.py")
    return next((file for file in candidates if file.is_file()), None)


def reached(start: Path) -> set[Path]:
    """Returns the files that a file imports, and those that they import."""
    found, rest = {start}, [start]
    while rest:
        new = imported(rest.pop()) - found
        found |= new
        rest += new
    return found


def closures() -> dict[str, int]:
    """Returns the lines that one reads to change a pass, by the name of the pass."""
    files = {
        name: file_of(REPOSITORY.joinpath(*module.split(".")))
        for name, module in pass_modules().items()
    }
    each = {name: reached(file) for name, file in files.items() if file is not None}
    every = [file for found in each.values() for file in found]
    shared = {file for file in set(every) if every.count(file) >= SHARED_BY}
    lines = {file: len(file.read_text().splitlines()) for file in set(every)}
    return {
        name: sum(lines[file] for file in found if file == files[name] or file not in shared)
        for name, found in each.items()
    }


def measured() -> dict[str, dict[str, int]]:
    """Returns what exceeds a rule: its number by its name, for each rule."""
    found: dict[str, dict[str, int]] = {rule: {} for rule in MOST}
    for path in sorted((REPOSITORY / "irees").rglob("*.py")):
        for name, node in functions(ast.parse(path.read_text())):
            place = f"{path.relative_to(REPOSITORY).as_posix()}:{name}"
            lines = (node.end_lineno or node.lineno) - node.lineno + 1
            numbers = {
                "lines": lines,
                "complexity": complexity(node),
                "parameters": parameters(node),
            }
            for rule, number in numbers.items():
                if number > MOST[rule]:
                    found[rule][place] = number
    modules = pass_modules()
    for name, number in closures().items():
        tensors = modules[name].split(".")[2] in TENSOR_PHASES
        rule = "tensor closure" if tensors else "closure"
        if number > MOST[rule]:
            found[rule][name] = number
    return found


def test_nothing_grows():
    """What breaks a rule is on its list, and is no larger than it was."""
    allowed = json.loads(ALLOWED.read_text())
    wrong = [
        f"{rule} of {name}: {number}, at most {allowed[rule].get(name, MOST[rule])}"
        for rule, names in measured().items()
        for name, number in names.items()
        if number > allowed[rule].get(name, MOST[rule])
    ]
    assert not wrong, "\n".join(wrong)


def test_the_lists_only_shrink():
    """What became smaller has a smaller entry, and what keeps the rule has none."""
    found = measured()
    stale = [
        f"{rule} of {name}: {found[rule].get(name, 'no entry needed')}, not {number}"
        for rule, names in json.loads(ALLOWED.read_text()).items()
        for name, number in names.items()
        if found[rule].get(name) != number
    ]
    assert not stale, "run python tests/test_rules.py > tests/test_rules.json\n" + "\n".join(stale)


def test_complexity_counts_paths():
    (function,) = ast.parse(
        "def f(x):\n  for a in x:\n    if a and x or not a:\n      return [b for b in x if b]\n"
    ).body
    assert isinstance(function, ast.FunctionDef)
    assert complexity(function) == 1 + 1 + 1 + 2 + 2


if __name__ == "__main__":
    print(json.dumps(measured(), indent=1, sort_keys=True))
