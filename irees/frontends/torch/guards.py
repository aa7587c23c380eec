"""
Checks of the sizes for which PyTorch traced a program.

For `if x.shape[0] > 5`, PyTorch traces the branch that the example inputs take and records a guard.
For a range such as `Dim("n", max=100)`, it decides conditions without a guard. Both become run-time
checks, as in PyTorch's own ExportedProgram. So do decisions of the program for which PyTorch
assumes sizes of at least 2 (`size_decisions.py`). Shape rules of operators also record guards, such
as `s % 2 == 0` for a reshape, as do decompositions during the import.

PyTorch itself compares sizes with 0, 1 and each other to describe strides and to take shortcuts. If
a comparison is false, it traces the general case, which is correct for all sizes. Comparisons about
strides do not matter, because irees has none. These guards are not checked. Broadcasting has
guards of its own (`s0 == s1`).
"""

from __future__ import annotations

import ast
import operator
import re
from collections.abc import Iterator
from typing import Any

import sympy
from torch.utils._sympy import functions as sf

from irees.errors import UnsupportedError

from .decisions import is_machinery
from .importing import GraphImporter
from .size_decisions import decided_sizes
from .sizes import ANY_SIZE

LARGEST_SIZE = 2**31
"""Upper bounds from this one on are not checked: no array has such a dim."""


_STRIDES = "/torch/_prims_common/__init__.py"
"""The file that computes strides and tells which tensors are contiguous."""


def shape_env_of(graph: Any) -> Any:
    """The ShapeEnv of a graph; None if all sizes are static."""
    for node in graph.nodes:
        for size in getattr(node.meta.get("val"), "shape", ()):
            if not isinstance(size, int):
                return size.node.shape_env
    return None


class SizeChecks:
    """
    The checks of one program, emitted by two calls: before its operators, and after them. Lower
    bounds of dims up to `unchecked` are not checked.
    """

    def __init__(self, importer: GraphImporter, exported: Any, unchecked: int = ANY_SIZE):
        self.importer, self.exported, self.unchecked = importer, exported, unchecked
        self.env = shape_env_of(exported.graph)
        self.done = 0

    def emit_ranges(self) -> None:
        """Checks that each dim of an argument is in the range that PyTorch assumed."""
        for symbol, bounds in self.exported.range_constraints.items():
            if symbol not in self.importer.symbols.bound:
                continue
            lower, upper = bounds.lower, bounds.upper
            if lower.is_Integer and lower > self.unchecked:
                self._emit(sympy.Ge(symbol, lower))
            if upper.is_Integer and upper < LARGEST_SIZE:
                self._emit(sympy.Le(symbol, upper))

    def emit_decisions(self) -> None:
        """Checks what the program decides by sizes, and what may differ for a size of 0 or 1."""
        for relation in decided_sizes(self.env):
            # A dim that is declared as `2 * Dim("n")` replaces the symbol.
            sides = [self.env.replace(side) for side in relation.args]
            relation = relation.func(*sides, evaluate=False)
            if not self._holds(relation):
                self._emit(relation)

    def _holds(self, relation: Any) -> bool:
        """Whether a relation holds for all sizes that the other checks allow."""
        sizes = {}
        for symbol in relation.free_symbols:
            bounds = self.exported.range_constraints.get(symbol)
            lower = 0 if bounds is None or bounds.lower <= self.unchecked else bounds.lower
            sizes[symbol] = lower + sympy.Dummy(integer=True, nonnegative=True)
        left, right = (side.xreplace(sizes) for side in relation.args)
        return relation.func(left - right, 0) == sympy.true

    def emit_guards(self) -> None:
        """Checks the guards that were recorded since the last call."""
        guards = [] if self.env is None else self.env.guards
        for guard in guards[self.done :]:
            expr = self.env.simplify(guard.expr)
            if expr != sympy.true and not is_free(guard):
                # A dim that is declared as `2 * Dim("n")` replaces the symbol of the guard.
                self._emit(self.env.replace(guard.expr))
        self.done = len(guards)

    def emit_saved_guards(self) -> None:
        """Checks the guards of a program read from a file, which stores only their text."""
        if self.env is not None and not self.env.guards:
            for expr in saved_guards(self.exported):
                self._emit(expr)

    def _emit(self, condition: Any) -> None:
        emit_check(self.importer, condition)


def emit_check(importer: GraphImporter, condition: Any) -> None:
    """Emits a run-time check of a condition on sizes."""
    symbols = importer.symbols
    if not condition.free_symbols <= symbols.bound.keys():
        return  # The graph has its own checks for element counts.
    message = f"the program is compiled for inputs with {symbols.text(condition)}"
    importer.b.check(symbols.condition_of(condition), message)


def emit_lower_bounds(importer: GraphImporter, env: Any) -> None:
    """
    Checks the least value that PyTorch assumed for each bound symbol. Dynamo has checked it; the
    proofs of accesses need it, such as `s >= 2` for a temporary of `s - 1` elements.
    """
    for symbol in list(importer.symbols.bound):
        bounds = env.var_to_range.get(symbol)
        if bounds is not None and bounds.lower.is_Integer and bounds.lower > 0:
            emit_check(importer, sympy.Ge(symbol, bounds.lower))


def is_free(guard: Any) -> bool:
    """Whether the traced program is correct for all sizes in spite of a guard."""
    expr, place = guard.expr, guard.sloc.framework_loc
    if place is None or not is_machinery(place.filename):
        return False
    if place.filename.endswith(_STRIDES):
        return isinstance(expr, sympy.Ne | sympy.Ge) or expr.has(sf.Max, sympy.Max)
    return isinstance(expr, sympy.Ne)


_SIZE = re.compile(r"L((?:\[[^\[\]]+\])+)\.size\(\)\[(\d+)\]")
"""A dim in the text of a guard: `L['x'][0].size()[1]` is dim 1 of the placeholder `x_0`."""

_OPERATORS: dict[type[ast.AST], Any] = {
    ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul, ast.Pow: operator.pow,
    ast.FloorDiv: sf.FloorDiv, ast.Mod: sf.PythonMod, ast.USub: operator.neg, ast.Not: sympy.Not,
    ast.Eq: sympy.Eq, ast.NotEq: sympy.Ne, ast.Lt: sympy.Lt, ast.LtE: sympy.Le, ast.Gt: sympy.Gt,
    ast.GtE: sympy.Ge, ast.And: sympy.And, ast.Or: sympy.Or,
}  # fmt: skip


def saved_guards(exported: Any) -> Iterator[Any]:
    """
    The guards of an ExportedProgram as expressions, parsed from their Python text. The origin of a
    guard is not saved, so all guards are checked, as in PyTorch.

    Raises UnsupportedError for a guard that is not about sizes of tensors.
    """
    dims: dict[str, Any] = {}
    for node in exported.graph.nodes:
        for i, size in enumerate(getattr(node.meta.get("val"), "shape", ())):
            if node.op == "placeholder":
                dims[f"{node.name}_{i}_"] = size if isinstance(size, int) else size.node.expr
    for text in getattr(exported, "_guards_code", None) or ():
        parts = _SIZE.sub(lambda m: "_".join(re.findall(r"\w+", m[1])) + f"_{m[2]}_", text)
        try:
            expr = _value(ast.parse(parts, mode="eval").body, dims)
        except (SyntaxError, KeyError) as error:
            raise UnsupportedError(
                f"the guard {text} of an exported program is not supported",
                hint="compile the module instead of the saved program",
            ) from error
        if expr != sympy.true:
            yield expr


def _value(node: ast.AST, dims: dict[str, Any]) -> Any:
    """An expression of integers and dims. Raises KeyError for anything else."""
    if isinstance(node, ast.Constant) and type(node.value) is int:
        return sympy.Integer(node.value)
    if isinstance(node, ast.Name):
        return sympy.sympify(dims[node.id])
    if isinstance(node, ast.UnaryOp):
        return _OPERATORS[type(node.op)](_value(node.operand, dims))
    if isinstance(node, ast.BinOp):
        return _OPERATORS[type(node.op)](_value(node.left, dims), _value(node.right, dims))
    if isinstance(node, ast.BoolOp):
        return _OPERATORS[type(node.op)](*(_value(each, dims) for each in node.values))
    if isinstance(node, ast.Compare) and len(node.ops) == 1:
        sides = (_value(node.left, dims), _value(node.comparators[0], dims))
        return _OPERATORS[type(node.ops[0])](*sides)
    raise KeyError(type(node).__name__)
