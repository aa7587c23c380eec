"""
The places where a pass or an analysis asks what an op is by naming its class.

An op that irees does not know is stopped by each of them, so they ask an interface instead: a row of
`irees.interfaces` (what plug-ins implement), a table of `irees.dialects.storage`, or a trait.
`op_classes.toml` has the places that are left, each with the ops and the reason; the test fails when
a place is not in the list, when the list has a place that is gone, and when the list grows.
`python tests/test_op_classes.py` prints the places.

A place is a function, or a constant of a module or class, that refers to an op: its class outside of
a construction or an annotation, its name as a string, alone or in a list, or the prefix of a dialect.
An `assert` decides nothing. A function that uses a constant is not counted again. Not counted are

* the program around the ops: SKELETON, functions, control flow, globals, kernels and what they take
  and return, transfers;
* the scalars in bodies: SCALARS, and index arithmetic, which are closed worlds;
* the canonical form, `linalg.generic`, and the base class of structured ops, which is an interface;
* what code generation alone makes: MACHINE, vectors and instructions of GPUs. The instructions of a
  plug-in state their accesses (`irees.interfaces`, `places`);
* a rewrite about that op: the pass has a pattern that is typed by its class, or the file or the pass
  is named after the op (`is_about`). `[rewrites]` of the list has the rewrites whose names do not say
  it, by pass, with the ops and the reason: those passes must have a docstring that shows the op.
"""

from __future__ import annotations

import ast
import inspect
import re
import tomllib
import types
from collections import defaultdict
from collections.abc import Iterator
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
from xdsl.ir import Operation

from irees.dialects import all_factories, get_context

REPOSITORY = Path(__file__).parents[1]
ROOT = REPOSITORY / "irees"
AREAS = ("transforms", "analysis")
LIST = REPOSITORY / "tests/op_classes.toml"

SKELETON = frozenset(
    """
    builtin func cf scf util ml_program flow stream hal irees
    iree_tensor_ext.dispatch.tensor.load iree_tensor_ext.dispatch.tensor.store
    iree_codegen.load_from_buffer iree_codegen.store_to_buffer
    """.split()
)
SCALARS = frozenset(
    """
    arith math complex linalg.index linalg.yield iree_linalg_ext.index tensor.yield
    affine.apply affine.min affine.max affine.linearize_index affine.delinearize_index
    affine.for affine.if affine.parallel affine.yield
    """.split()
)
CANONICAL = frozenset(("linalg.generic", "LinalgStructuredOperation"))
MACHINE = frozenset("vector gpu nvgpu nvvm x86vector".split())
CLOSED = SKELETON | SCALARS | CANONICAL | MACHINE

NOUNS = {
    "tensor.collapse_shape": "reshape",
    "tensor.expand_shape": "reshape",
    "tensor.reshape": "reshape",
    "iree_linalg_ext.online_attention": "attention",
}
"""Ops of which passes say another word than their name."""

VERBS = frozenset("insert load pack store".split())
"""First words of names of passes that are also names of ops: they do not name an op."""


def is_closed(name: str) -> bool:
    """Whether an op, or a dialect prefix such as `arith.*`, belongs to no list."""
    return name in CLOSED or name.split(".")[0] in CLOSED


@cache
def op_names() -> frozenset[str]:
    context = get_context()
    for dialect in all_factories():
        context.get_optional_dialect(dialect)
    return frozenset(context._loaded_ops)


class Places(ast.NodeVisitor):
    """Finds the ops that the functions and constants of a module name."""

    def __init__(self, module: types.ModuleType):
        self.module = vars(module)
        self.inside: list[str] = []
        self.in_function = False
        self.found: defaultdict[str, set[str]] = defaultdict(set)
        self.typed: set[str] = set()

    def value(self, node: ast.expr) -> object:
        try:
            return eval(compile(ast.Expression(node), "", "eval"), self.module)
        except Exception:
            return None

    def op(self, node: ast.expr) -> str | None:
        """The name of the op whose class an expression is; that of the class if it is a base."""
        kind = self.value(node) if isinstance(node, ast.Name | ast.Attribute) else None
        if not inspect.isclass(kind) or not issubclass(kind, Operation) or kind is Operation:
            return None
        name = getattr(kind, "name", None)
        return name if isinstance(name, str) else kind.__name__

    def names(self, found: str) -> None:
        if not is_closed(found):
            self.found[".".join(self.inside) or "<module>"].add(found)

    def visit_Assert(self, node: ast.Assert) -> None:
        pass

    def visit_JoinedStr(self, node: ast.JoinedStr) -> None:
        pass

    def visit_Expr(self, node: ast.Expr) -> None:
        if not isinstance(node.value, ast.Constant):
            self.visit(node.value)

    def visit_AnnAssign(self, node: ast.AnnAssign) -> None:
        if node.value is not None:
            self._assign(node.target, node.value)
            if "RewritePattern" in ast.dump(node.annotation) and isinstance(node.target, ast.Name):
                # Patterns by the name of the op that they rewrite.
                self.typed |= self.found.pop(node.target.id, set())

    def visit_Assign(self, node: ast.Assign) -> None:
        self._assign(node.targets[0], node.value)

    def _assign(self, target: ast.expr, value: ast.expr) -> None:
        if self.in_function or not isinstance(target, ast.Name):
            self.visit(value)
        elif not self.op(value):  # Another name of a class is counted where it is used.
            self.inside.append(target.id)
            self.visit(value)
            self.inside.pop()

    def visit_FunctionDef(self, node: ast.FunctionDef) -> None:
        if node.name == "match_and_rewrite" and len(node.args.args) > 1:
            self._pattern(node.args.args[1].annotation)
        outer, self.in_function = self.in_function, True
        if not outer:
            self.inside.append(node.name)
        defaults = [*node.args.defaults, *filter(None, node.args.kw_defaults)]
        for child in [*node.decorator_list, *defaults, *node.body]:
            self.visit(child)
        if not outer:
            self.inside.pop()
        self.in_function = outer

    def _pattern(self, annotation: ast.expr | None) -> None:
        """Takes the classes that a pattern is typed by."""
        for node in ast.walk(annotation) if annotation is not None else ():
            if isinstance(node, ast.Name | ast.Attribute):
                kinds = getattr(self.value(node), "__args__", (self.value(node),))
                self.typed |= {kind.name for kind in kinds if hasattr(kind, "name")}

    def visit_ClassDef(self, node: ast.ClassDef) -> None:
        self.inside.append(node.name)
        for child in node.body:
            self.visit(child)
        self.inside.pop()

    def visit_Call(self, node: ast.Call) -> None:
        function = node.func
        made = function.value if isinstance(function, ast.Attribute) else function
        if not self.op(function) and not self.op(made):
            self.visit(function)
        # `get_op` and `cast` take what they return by name.
        first = isinstance(function, ast.Name) and function.id in ("get_op", "cast")
        for child in [*node.args[first:], *(keyword.value for keyword in node.keywords)]:
            self.visit(child)

    def visit_Name(self, node: ast.Name) -> None:
        if (name := self.op(node)) is not None and isinstance(node.ctx, ast.Load):
            self.names(name)

    def visit_Attribute(self, node: ast.Attribute) -> None:
        if (name := self.op(node)) is not None:
            self.names(name)
        else:
            self.visit(node.value)

    def visit_Constant(self, node: ast.Constant) -> None:
        words = node.value.split() if isinstance(node.value, str) else []
        dialects = all_factories()
        if words and all(word in op_names() for word in words):
            for word in words:
                self.names(word)
        elif words and all(w[-1] == "." and w[:-1] in dialects for w in words):
            for word in words:
                self.names(f"{word}*")
        elif len(words) > 1 and all(word in dialects for word in words):
            for word in words:
                self.names(f"{word}.*")

    def visit_Tuple(self, node: ast.Tuple | ast.List | ast.Set) -> None:
        words = [part.value for part in node.elts if isinstance(part, ast.Constant)]
        if len(words) == len(node.elts) > 1 and all(word in all_factories() for word in words):
            for word in words:
                self.names(f"{word}.*")
        self.generic_visit(node)

    visit_List = visit_Set = visit_Tuple

    def visit_Compare(self, node: ast.Compare) -> None:
        self.generic_visit(node)
        if "dialect_name" in ast.dump(node) or "partition" in ast.dump(node):
            for part in ast.walk(node):
                if isinstance(part, ast.Constant) and part.value in all_factories():
                    self.names(f"{part.value}.*")


def singular(words: str) -> list[str]:
    return [word.removesuffix("s") for word in re.split(r"[_.]", words)]


def is_about(path: str, op: str) -> bool:
    """Whether a file, or the pass in whose folder it is, has the name of an op in its own."""
    wanted = [word for word in singular(op.partition(".")[2]) if word != "v2"]
    for part in Path(path).with_suffix("").parts:
        words = singular(part.removeprefix("gpu_").removeprefix("cpu_"))
        if len(words) > 1 and words[0] in VERBS:
            del words[0]
        if any(words[at : at + len(wanted)] == wanted for at in range(len(words))):
            return True
        if NOUNS.get(op) in words:
            return True
    return False


@cache
def scanned(path: Path) -> Places:
    name = ".".join(path.relative_to(REPOSITORY).with_suffix("").parts).removesuffix(".__init__")
    places = Places(import_module(name))
    places.visit(ast.parse(path.read_text()))
    return places


def unit(path: Path) -> Path:
    """The file, or the folder of the pass that it belongs to."""
    folder = path.parent
    is_pass = "transforms" in path.parts and (folder / "__init__.py").exists()
    is_pass = is_pass and "Pass(" in (folder / "__init__.py").read_text()
    return folder if is_pass else path


def files(of: Path) -> list[Path]:
    return sorted(of.rglob("*.py")) if of.is_dir() else [of]


@cache
def listed() -> dict[str, Any]:
    return tomllib.loads(LIST.read_text())


def main_file(of: Path) -> Path:
    return of / "__init__.py" if of.is_dir() else of


def short(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


@cache
def all_places() -> dict[tuple[str, str, str], set[str]]:
    """Each pass or file, file and function or constant => the ops that it names, rewrites apart."""
    found: dict[tuple[str, str, str], set[str]] = {}
    for path in (path for area in AREAS for path in sorted((ROOT / area).rglob("*.py"))):
        typed = set().union(*(scanned(each).typed for each in files(unit(path))))
        for where, ops in scanned(path).found.items():
            left = {op for op in ops if op not in typed and not is_about(short(path), op)}
            if left:
                found[short(unit(path)), short(path), where] = left
    return found


def places() -> dict[str, set[str]]:
    """`file: function` => the ops that it names, without those that the list says are rewritten."""
    found: dict[str, set[str]] = {}
    for (owner, path, where), ops in all_places().items():
        if left := ops - rewritten(owner):
            found[f"{path}: {where}"] = left
    return found


def rewritten(owner: str) -> set[str]:
    ops, _ = listed()["rewrites"].get(owner, ("", ""))
    return set(ops.split())


def test_the_places_are_those_of_the_list():
    found, known = places(), {at: set(ops.split()) for at, (ops, _) in listed()["places"].items()}
    new = [f"{at} names {' '.join(sorted(found[at]))}" for at in found if at not in known]
    more = {at: found[at] - known[at] for at in found if at in known and found[at] - known[at]}
    new += [f"{at} names {' '.join(sorted(ops))}, too" for at, ops in more.items()]
    assert not new, "ask an interface or a table of irees.dialects.storage instead:\n" + "\n".join(
        new
    )
    gone = [at for at in known if not known[at] <= found.get(at, set())]
    assert not gone, "remove from tests/op_classes.toml what is gone:\n" + "\n".join(gone)


@pytest.mark.parametrize("kind", ["places", "rewrites"])
def test_the_list_only_shrinks(kind):
    assert len(listed()[kind]) <= listed()["most"][kind]


@pytest.mark.parametrize("kind", ["places", "rewrites"])
def test_each_entry_has_a_reason(kind):
    for at, (ops, why) in listed()[kind].items():
        assert len(why.split()) > 3, at
        assert ops == " ".join(sorted(ops.split())), at


@pytest.mark.parametrize("owner", listed()["rewrites"])
def test_a_rewrite_that_is_listed_is_one(owner):
    """Its docstrings show the op, and it is a pass of its own or has patterns."""
    path = ROOT / owner
    named = set().union(*(ops for (of, *_), ops in all_places().items() if of == owner))
    assert rewritten(owner) <= named, "remove what is gone"
    text = main_file(path).read_text()
    assert "transforms" in path.parts
    assert "Pass(" in text or "RewritePattern" in text
    shown = "\n".join(docstrings(path)).replace("_", " ")
    for op in rewritten(owner):
        words = singular(op.partition(".")[2].removesuffix("_v2"))
        assert re.search(rf"\b{' '.join(words)}|\b{NOUNS.get(op, '-')}", shown), op


def docstrings(of: Path) -> Iterator[str]:
    for path in files(of):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef):
                yield ast.get_docstring(node) or ""


SAMPLE = """
from xdsl.dialects import arith, memref, tensor
LOOKS = (memref.CastOp, memref.SubviewOp)
NAMES = frozenset("tensor.pad tensor.empty".split())
Other = tensor.EmptyOp
def table(op):
    assert isinstance(op, tensor.CastOp)
    return isinstance(op, LOOKS)
def builds(x: tensor.DimOp) -> tensor.DimOp:
    "A tensor.dim"
    return memref.AllocOp.get(x, tensor.ExtractOp(x, [], y))
def asks(op):
    match op:
        case tensor.ConcatOp():
            return arith.AddiOp
    return op.name.startswith(("tensor.", "arith.")) or op.name == "tensor.splat"
def deep(op):
    def inner(each):
        return type(each) is Other or each.dialect_name() == "linalg"
    return inner
class Pattern:
    def match_and_rewrite(self, op: tensor.PadOp, rewriter): ...
"""


def test_what_counts_as_naming_an_op():
    module = types.ModuleType("sample")
    exec("from __future__ import annotations\n" + SAMPLE, vars(module))
    sample = Places(module)
    sample.visit(ast.parse(SAMPLE))
    assert dict(sample.found) == {
        "LOOKS": {"memref.cast", "memref.subview"},
        "NAMES": {"tensor.pad", "tensor.empty"},
        "asks": {"tensor.concat", "tensor.*", "tensor.splat"},
        "deep": {"tensor.empty", "linalg.*"},
    }
    assert sample.typed == {"tensor.pad"}


def test_a_pass_is_about_the_ops_of_its_name():
    assert is_about("transforms/global_opt/bubble_up_extract_slices.py", "tensor.extract_slice")
    assert is_about("transforms/codegen/gpu/gpu_lower_scans/parts.py", "iree_linalg_ext.scan")
    assert is_about("transforms/global_opt/sink_reshapes.py", "tensor.expand_shape")
    assert not is_about("transforms/global_opt/insert_shape_checks/x.py", "tensor.insert")
    assert not is_about("transforms/global_opt/split_sorts.py", "iree_linalg_ext.topk_v2")
    assert not is_about("analysis/dispatch_roles.py", "iree_linalg_ext.scan")


if __name__ == "__main__":
    for at, ops in places().items():
        print(f"{at}: {' '.join(sorted(ops))}")
