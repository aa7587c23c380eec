"""
Comparisons of sizes that PyTorch decides without a guard.

PyTorch assumes that a dynamic size is at least 2. So `x.shape[0] > 1` is true in a trace, for all
sizes, and no guard says that a call with one row takes another branch:

    with decisions_noted():
        exported = torch.export.export(module, args, dynamic_shapes=shapes)
    decided_sizes(shape_env)        # [x.shape[0] > 1], which each call checks

Comparisons in PyTorch's own code are left out: there, the general case is right for all sizes. Its
layers and distributions count as the program's code.
"""

from __future__ import annotations

import sys
import weakref
from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import Any

import sympy
import torch
from torch.fx.experimental.symbolic_shapes import ShapeEnv

from .decisions import is_machinery

_KINDS: dict[str, Any] = {
    "__eq__": sympy.Eq, "__ne__": sympy.Ne, "__lt__": sympy.Lt, "__le__": sympy.Le,
    "__gt__": sympy.Gt, "__ge__": sympy.Ge,
}  # fmt: skip
_NEGATED = {
    sympy.Eq: sympy.Ne, sympy.Ne: sympy.Eq, sympy.Lt: sympy.Ge, sympy.Le: sympy.Gt,
    sympy.Gt: sympy.Le, sympy.Ge: sympy.Lt,
}  # fmt: skip
_EXTREMES: dict[str, Any] = {"__sym_max__": sympy.Ge, "__sym_min__": sympy.Le}
"""Methods that return an operand => its relation to the other one."""
_WRAPPERS = (
    "/torch/__init__.py", "/torch/overrides.py", "/torch/export/", "/torch/_export/",
    "/torch/fx/experimental/proxy_tensor.py", "/irees/frontends/torch/rewriting.py",
    "/irees/frontends/torch/packed.py",
)  # fmt: skip
"""Files that call methods of numbers for the program: `torch.sym_max`, `bool`, `max`."""

_DECIDED: weakref.WeakKeyDictionary[ShapeEnv, dict[Any, None]] = weakref.WeakKeyDictionary()


def decided_sizes(env: ShapeEnv | None) -> list[Any]:
    """The relations that a program's trace relies on, and for which there is no guard."""
    return [] if env is None else list(_DECIDED.get(env, ()))


def _expression(value: Any) -> Any:
    """The expression of a symbolic number, or the number; None for another value."""
    if isinstance(value, torch.SymInt | torch.SymBool):
        return value.node.expr
    return sympy.sympify(value) if isinstance(value, int | bool) else None


def _note(env: ShapeEnv, relation: Any) -> None:
    if relation.free_symbols:
        _DECIDED.setdefault(env, {})[relation] = None


def _note_comparison(number: Any, other: Any, kind: Any, result: Any) -> None:
    """Notes a comparison if PyTorch has decided it already."""
    sides = _expression(number), _expression(other)
    found, env = _expression(result), number.node.shape_env
    if None in sides or found is None or env is None:
        return
    if found not in (sympy.true, sympy.false):
        found = env._maybe_evaluate_static(found)
    if found is not None and found in (sympy.true, sympy.false):
        _note(env, (kind if found else _NEGATED[kind])(*sides, evaluate=False))


def _is_programs() -> bool:
    """Whether the program called the caller's caller, or a wrapper that did."""
    frame = sys._getframe(2)
    while frame.f_back is not None and any(w in frame.f_code.co_filename for w in _WRAPPERS):
        frame = frame.f_back
    return not is_machinery(frame.f_code.co_filename)


def _comparing(original: Callable[[Any, Any], Any], kind: Any) -> Callable[[Any, Any], Any]:
    def compare(number: Any, other: Any) -> Any:
        result = original(number, other)
        if _is_programs():
            _note_comparison(number, other, kind, result)
        return result

    return compare


def _choosing(original: Callable[[Any, Any], Any], kind: Any) -> Callable[[Any, Any], Any]:
    def choose(number: Any, other: Any) -> Any:
        result = original(number, other)
        sides, found = [_expression(x) for x in (number, other)], _expression(result)
        if found in sides and None not in sides and _is_programs():
            rest = sides[0] if found == sides[1] else sides[1]
            _note(number.node.shape_env, kind(found, rest, evaluate=False))
        return result

    return choose


def absolute(number: Any) -> Any:
    """`abs(number)`"""
    result = _ABS(number)
    if _expression(result) == number.node.expr and _is_programs():
        _note(number.node.shape_env, sympy.Ge(number.node.expr, 0, evaluate=False))
    return result


_ABS: Any = torch.SymInt.__abs__


@contextmanager
def decisions_noted() -> Generator[None]:
    """Notes decided comparisons while active."""
    replaced = {name: (_comparing, kind) for name, kind in _KINDS.items()}
    replaced |= {name: (_choosing, kind) for name, kind in _EXTREMES.items()}
    originals = {name: getattr(torch.SymInt, name) for name in (*replaced, "__abs__")}
    try:
        for name, (replacing, kind) in replaced.items():
            setattr(torch.SymInt, name, replacing(originals[name], kind))
        torch.SymInt.__abs__ = absolute  # type: ignore[method-assign]
        yield
    finally:
        for name, original in originals.items():
            setattr(torch.SymInt, name, original)
