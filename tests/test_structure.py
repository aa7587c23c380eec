"""The rules of ARCHITECTURE.md and CONTRIBUTING.md that a machine can check."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path

import pytest

from irees.transforms import pass_modules

REPOSITORY = Path(__file__).parents[1]
ROOT = REPOSITORY / "irees"
FILES = sorted(ROOT.rglob("*.py"))
TRANSFORMS = ROOT / "transforms"
PASSES = sorted(
    path / "__init__.py" if path.is_dir() else path.with_suffix(".py")
    for path in (REPOSITORY.joinpath(*module.split(".")) for module in pass_modules().values())
)

LAYERS = (
    {"__main__"},
    {"tools"},
    {"reports"},
    {"testing", "dynamo"},
    {
        "pipeline",
        "layers",
        "phase",
        "hooks",
        "universe",
        "compiler",
        "build",
        "device_programs",
        "program_cache",
        "tuning",
        "places",
        "building",
    },
    {"backends"},
    {"frontends"},
    {"transforms"},
    {"analysis", "interpreters"},
    {"dialects"},
    set(
        "accelerators blobs errors fence insertion integrity interfaces limits options pass_specs plugins target "
        "targets remarks rewrites strategies verification".split()
    ),
)
RANK = {area: rank for rank, layer in enumerate(LAYERS) for area in layer}
# Files of one layer that are one thing; folders of one layer are strangers.
ONE_THING = (LAYERS[4], LAYERS[-1])
RUNTIME_MAY_IMPORT = {"runtime", "errors", "fence", "target"}
# Whose folders are strangers to each other, but for the shared ones.
APART = ("transforms", "transforms/codegen", "backends")
SHARED = {"common", "utils"}

MAX_LIT_LINES = 250


def short(path: Path) -> str:
    return path.relative_to(REPOSITORY).as_posix()


def stem(path: Path) -> str:
    """The name of a pass file, or of the folder whose `__init__.py` it is."""
    return path.parent.name if path.name == "__init__.py" else path.stem


@cache
def tree(path: Path) -> ast.Module:
    return ast.parse(path.read_text())


def imports(path: Path) -> set[str]:
    """The modules of irees that a file imports when it runs, anywhere in it."""
    found: set[str] = set()
    typing_only = {
        child
        for node in ast.walk(tree(path))
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.dump(node.test)
        for child in ast.walk(node)
    }
    package = (path.parent / "x").relative_to(REPOSITORY).parts[:-1]
    for node in ast.walk(tree(path)):
        if node in typing_only:
            continue
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            base = package[: len(package) - node.level + 1] if node.level else ()
            module = ".".join((*base, *([node.module] if node.module else [])))
            found |= {f"{module}.{alias.name}" for alias in node.names}
    return {name for name in found if name.split(".")[0] == "irees" and "." in name}


def area(path: Path) -> str:
    return path.relative_to(ROOT).parts[0].removesuffix(".py")


def test_imports_point_downwards():
    wrong = []
    for path in FILES:
        here = area(path)
        for name in sorted(imports(path)):
            there = name.split(".")[1]
            if here == there or here == "__init__" or there not in {*RANK, "runtime"}:
                continue
            if here == "runtime":
                fine = there in RUNTIME_MAY_IMPORT
            elif there == "runtime":
                fine = RANK[here] <= RANK["frontends"]
            else:
                together = any({here, there} <= layer for layer in ONE_THING)
                fine = RANK[there] > RANK[here] or together
            if not fine:
                wrong.append(f"{short(path)} imports {name}")
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize("folder", APART)
def test_siblings_are_strangers(folder):
    base = ROOT / folder
    prefix = ("irees", *Path(folder).parts)
    wrong = []
    for path in sorted(base.rglob("*.py")):
        here = path.relative_to(base).parts
        if len(here) < 2:
            continue
        for name in sorted(imports(path)):
            parts = tuple(name.split("."))
            if parts[: len(prefix)] != prefix or len(parts) <= len(prefix) + 1:
                continue
            there = parts[len(prefix)]
            if there != here[0] and there not in SHARED and (base / there).is_dir():
                wrong.append(f"{short(path)} imports {name}")
    assert not wrong, "\n".join(wrong)


def classes(path: Path) -> list[ast.ClassDef]:
    return [node for node in tree(path).body if isinstance(node, ast.ClassDef)]


def base_names(node: ast.ClassDef) -> set[str]:
    return {ast.unparse(base).split("[")[0].split(".")[-1] for base in node.bases}


@pytest.mark.parametrize("path", PASSES, ids=short)
def test_file_class_and_pass_have_one_name(path):
    last = classes(path)[-1]
    assert "ModulePass" in base_names(last), f"{last.name} is the last class, but no pass"
    assert last.name.lower() == stem(path).replace("_", "") + "pass"
    names = [
        ast.literal_eval(node.value)
        for node in last.body
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "name"
    ]
    assert names == ["irees-" + stem(path).replace("_", "-")]


def test_every_pass_has_a_lit_file_and_every_lit_file_a_pass():
    lit = REPOSITORY / "filecheck" / "transforms"
    passes = {
        (path.relative_to(TRANSFORMS).parent / stem(path)).as_posix()
        for path in PASSES
        if path.name != "__init__.py"
    }
    passes |= {
        path.relative_to(TRANSFORMS).parent.as_posix()
        for path in PASSES
        if path.name == "__init__.py"
    }
    files = {path.relative_to(lit).with_suffix("").as_posix() for path in lit.rglob("*.mlir")}
    cases = {re.sub(r"(_invalid|_issue_\d+|\.\w+)$", "", name) for name in files}
    assert sorted(passes - files) == []
    assert sorted(cases - passes) == []


def test_every_module_has_a_docstring():
    missing = [
        short(path) for path in FILES if path.read_text() and not ast.get_docstring(tree(path))
    ]
    assert not missing, "\n".join(missing)


def test_every_pattern_has_its_equation():
    missing = [
        f"{short(path)}: {node.name}"
        for path in FILES
        for node in classes(path)
        if "RewritePattern" in base_names(node) and not ast.get_docstring(node)
    ]
    assert not missing, "\n".join(missing)


def test_public_functions_and_classes_have_docstrings():
    # Passes have their module's essay, ops and attributes their definition in MLIR or IREE.
    exempt = {"ModulePass", "RewritePattern"}
    missing = [
        f"{short(path)}: {node.name}"
        for path in FILES
        if area(path) != "dialects"
        for node in tree(path).body
        if isinstance(node, ast.FunctionDef | ast.ClassDef)
        if not node.name.startswith("_") and not ast.get_docstring(node)
        if not (isinstance(node, ast.ClassDef) and base_names(node) & exempt)
    ]
    assert not missing, "\n".join(missing)


def test_lit_files_stay_small():
    wrong = [
        f"{short(path)} has {lines} lines, but {MAX_LIT_LINES} at most"
        for path in (REPOSITORY / "filecheck").rglob("*.mlir")
        if (lines := len(path.read_text().splitlines())) > MAX_LIT_LINES
    ]
    assert not wrong, "\n".join(wrong)


def test_lines_stay_short():
    wrong = [
        f"{short(path)}:{number}"
        for path in FILES
        for number, line in enumerate(path.read_text().splitlines(), 1)
        if len(line) > 100
    ]
    assert not wrong, "\n".join(wrong)


def test_no_path_of_one_machine():
    machine_path = re.compile(r"(?<![\w./$}-])/(?:work|home|root|Users)/\w")
    listed = subprocess.run(
        ["git", "ls-files"], cwd=REPOSITORY, capture_output=True, text=True, check=False
    )
    if listed.returncode:
        pytest.skip("not a git repository")
    wrong = []
    for name in listed.stdout.splitlines():
        path = REPOSITORY / name
        if not path.is_file() or path.is_symlink():
            continue
        text = path.read_bytes().decode(errors="replace")
        if machine_path.search(text):
            wrong.append(name)
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize("folder", ["benchmarks", "docs", "examples", "tests"])
def test_what_others_import_is_there(folder):
    """A test that is skipped here must not be the one that a renamed module breaks."""
    missing = set()
    for path in sorted((REPOSITORY / folder).rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "irees":
                missing |= {
                    f"{path.relative_to(REPOSITORY)}:{node.lineno}: {node.module}.{name.name}"
                    for name in node.names
                    if not is_there(node.module, name.name)
                }
    assert not missing, "\n".join(sorted(missing))


def is_there(module: str, name: str) -> bool:
    """Whether a module has a name or a submodule of that name."""
    try:
        if hasattr(import_module(module), name):
            return True
        return find_spec(f"{module}.{name}") is not None
    except ModuleNotFoundError as error:
        # An extra that is not installed says nothing about irees.
        return not (error.name or "").startswith("irees")


def test_import_is_quick_and_pulls_in_nothing():
    code = (
        "import time; begin = time.process_time(); import irees, sys;"
        "print(time.process_time() - begin);"
        "print(*sorted({'xdsl', 'numpy', 'torch', 'rich', 'cupy'} & sys.modules.keys()))"
    )
    answer = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    seconds, *modules = answer.stdout.split()
    assert float(seconds) < 0.4
    assert modules == []


def test_public_names():
    import irees

    for name in irees.__all__:
        assert name in dir(irees)
    assert irees.Target.parse("cpu").kind == "cpu"
    assert irees.errors.IreesError.exit_code == 1
    with pytest.raises(AttributeError):
        irees.nothing  # noqa: B018
