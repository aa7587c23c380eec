"""
Programs with data-dependent control flow: `if mask.any():`, `range(int(lengths.max()))`.

`torch.export` rejects them. irees exports such a program with the decisions of its example inputs.
Each run checks these decisions and fails if one differs.
"""

from __future__ import annotations

import collections
import contextlib
import sys
from collections.abc import Callable, Generator
from dataclasses import dataclass, field
from typing import Any

import sympy
import torch
from torch.fx.experimental.symbolic_shapes import GuardOnDataDependentSymNode, ShapeEnv
from torch.overrides import TorchFunctionMode

_READS = {
    torch.Tensor.__bool__: bool,
    torch.Tensor.__int__: int,
    torch.Tensor.__index__: int,
    torch.Tensor.item: None,
}
"""Methods that read a tensor's only element, with the result type; None: the tensor's dtype."""

_SIZED = frozenset({
    torch.zeros, torch.ones, torch.empty, torch.full, torch.arange, torch.reshape,
    torch.nn.functional.interpolate, torch.nn.functional.pad, torch.Tensor.view,
    torch.Tensor.reshape, torch.Tensor.expand, torch.Tensor.repeat, torch.Tensor.new_zeros,
    torch.Tensor.new_ones, torch.Tensor.new_full, torch.Tensor.new_empty,
})  # fmt: skip
"""Functions that read sizes from tensors of one integer."""

_NOT_THE_PROGRAMS = ("/torch/", "/irees/frontends/", "/contextlib.py")

_LIBRARIES = ("/torch/distributions/", "/torch/nn/", "/torch/functional.py")

Decisions = dict[str, list[Any]]
"""Values read at each line of the program, in order."""


def decides_by_values(error: BaseException | None) -> bool:
    """Whether an export failed because the program reads a tensor's values."""
    while error is not None:
        text = f"{type(error).__name__} {error}"
        if "GuardOnDataDependent" in text or "data-dependent" in text.lower():
            return True
        error = error.__cause__ or error.__context__
    return False


def is_machinery(file: str) -> bool:
    """Whether a file is part of the tracing machinery; distributions and layers are not."""
    if any(part in file for part in _LIBRARIES):
        return False
    return any(part in file for part in _NOT_THE_PROGRAMS)


def _line(others: tuple[str, ...] = ()) -> str:
    """The line that runs now, outside of the tracing machinery and of `others`."""
    frame = sys._getframe(1)
    while frame.f_back is not None:
        file = frame.f_code.co_filename
        if not is_machinery(file) and not any(part in file for part in others):
            break
        frame = frame.f_back
    return f"{frame.f_code.co_filename}:{frame.f_lineno}"


def with_sizes(
    func: Callable[..., Any], args: Any, kwargs: Any, read: Callable[[torch.Tensor], Any]
) -> tuple[Any, Any]:
    """The arguments of a call, with `read` applied to the tensors that are sizes."""
    if func not in _SIZED:
        return args, kwargs or {}

    def size(value: Any) -> Any:
        if isinstance(value, tuple | list):
            return type(value)(map(size, value)) if type(value) in (tuple, list) else value
        is_size = isinstance(value, torch.Tensor) and value.dim() == 0
        return read(value) if is_size and value.dtype in (torch.int64, torch.int32) else value

    return size(tuple(args)), {name: size(value) for name, value in (kwargs or {}).items()}


class Record(TorchFunctionMode):
    """Records the values that a run of the program reads."""

    def __init__(self) -> None:
        super().__init__()
        self.found: Decisions = collections.defaultdict(list)

    def __torch_function__(
        self, func: Callable[..., Any], types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:
        args, kwargs = with_sizes(func, args, kwargs, self._size)
        result = func(*args, **kwargs)
        if func in _READS:
            self.found[_line()].append(result)
        return result

    def _size(self, tensor: torch.Tensor) -> int:
        with torch._C.DisableTorchFunction():
            value = int(tensor)
        self.found[_line()].append(value)
        return value


class Replay(TorchFunctionMode):
    """Returns the recorded values for reads, and adds a check of each to the graph."""

    def __init__(self, found: Decisions):
        super().__init__()
        self.left = {line: collections.deque(values) for line, values in found.items()}

    def __torch_function__(
        self, func: Callable[..., Any], types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:
        args, kwargs = with_sizes(func, args, kwargs, self._read)
        return self._read(args[0], func, kwargs) if func in _READS else func(*args, **kwargs)

    def _read(
        self, tensor: torch.Tensor, func: Callable[..., Any] | None = None, kwargs: Any = None
    ) -> Any:
        """Returns the value recorded at this line and adds a check; else calls `func`."""
        line = _line()
        if not self.left.get(line):
            return tensor if func is None else func(tensor, **(kwargs or {}))
        value = self.left[line].popleft()
        where = line.rpartition("/")[2]
        message = f"{where} reads {value} from the example inputs, and the trace relies on it"
        with torch._C.DisableTorchFunction():
            same = tensor.reshape(()) == value
            torch._assert_async(same, f"{message}: compile with inputs like these")
        return value


_CONVERSIONS = (
    (torch.SymInt, "__int__"), (torch.SymInt, "__float__"),
    (torch.SymFloat, "__int__"), (torch.SymFloat, "__float__"),
)  # fmt: skip
"""Methods of symbolic numbers that Python requires to return a number."""


@dataclass
class Specializations:
    """
    While active, notes the user's lines at which PyTorch gives a symbolic size a fixed value, and
    those at which the user's code converts a symbolic number to an `int` or a `float`.
    """

    fixed: list[str] = field(default_factory=list)
    converted: list[str] = field(default_factory=list)

    @contextlib.contextmanager
    def noted(self) -> Generator[None]:
        """Notes them while active."""
        replace = ShapeEnv._set_replacement

        def noted(env: ShapeEnv, symbol: Any, value: Any, *rest: Any, **named: Any) -> Any:
            if isinstance(value, sympy.Integer):
                self.fixed.append(_line(_NOT_THE_PROGRAMS))
            return replace(env, symbol, value, *rest, **named)

        originals = [(kind, name, vars(kind).get(name)) for kind, name in _CONVERSIONS]
        try:
            ShapeEnv._set_replacement = noted  # type: ignore[method-assign]
            for kind, name, original in originals:
                if original is not None:
                    setattr(kind, name, self._noting(original))
            yield
        finally:
            ShapeEnv._set_replacement = replace  # type: ignore[method-assign]
            for kind, name, original in originals:
                if original is not None:
                    setattr(kind, name, original)

    def _noting(self, original: Callable[[Any], Any]) -> Callable[[Any], Any]:
        def convert(number: Any) -> Any:
            file = sys._getframe(1).f_code.co_filename
            if not any(part in file for part in _NOT_THE_PROGRAMS):
                self.converted.append(_line(_NOT_THE_PROGRAMS))
            return original(number)

        return convert


class NotEmpty:
    """
    While active, a comparison of a data-dependent size with 0 is false if a library makes it, and
    the graph gets a check of that. `allowed` tells which files count as libraries.
    """

    def __init__(self, allowed: Callable[[str], bool]):
        self.allowed = allowed
        self.places: list[str] = []

    def __enter__(self) -> NotEmpty:
        self.original = ShapeEnv.evaluate_expr
        asked = self

        def evaluate(env: ShapeEnv, expression: Any, *args: Any, **kwargs: Any) -> Any:
            try:
                return asked.original(env, expression, *args, **kwargs)
            except GuardOnDataDependentSymNode:
                if not asked.answers(env, expression):
                    raise
            holds = expression if isinstance(expression, sympy.Ne) else sympy.Not(expression)
            env.guard_or_defer_runtime_assert(holds, "a data-dependent size is 0")
            return sympy.sympify(isinstance(expression, sympy.Ne))

        ShapeEnv.evaluate_expr = evaluate  # type: ignore[method-assign]
        return self

    def __exit__(self, *_: Any) -> None:
        ShapeEnv.evaluate_expr = self.original  # type: ignore[method-assign]

    def answers(self, env: ShapeEnv, expression: Any) -> bool:
        """Whether an expression compares a size with 0, in an allowed file."""
        if not isinstance(expression, sympy.Eq | sympy.Ne) or expression.rhs != 0:
            return False
        line = _line()
        if env.bound_sympy(expression.lhs).lower < 0 or not self.allowed(line.rpartition(":")[0]):
            return False
        self.places.append(line)
        return True


def decided(module: torch.nn.Module, args: Any, kwargs: Any) -> Decisions:
    """Returns the values that a run reads. Copies inputs and restores buffers."""
    from torch.utils._pytree import tree_map

    def copied(value: Any) -> Any:
        return value.clone() if isinstance(value, torch.Tensor) else value

    state = {name: buffer.clone() for name, buffer in module.named_buffers()}
    with Record() as record:
        module(*tree_map(copied, args), **tree_map(copied, kwargs))
    for name, buffer in module.named_buffers():
        if name in state and not torch.equal(buffer, state[name]):
            buffer.copy_(state[name])
    return record.found
