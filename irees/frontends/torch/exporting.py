"""`torch.export` for any callable, with repeated arguments, caches, and error reasons."""

from __future__ import annotations

import contextlib
import inspect
import io
import logging
import sysconfig
import threading
import warnings
from collections.abc import Generator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch.utils._pytree import tree_leaves, tree_map

import irees
from irees.errors import ArgumentError, IreesError, UnsupportedError
from irees.remarks import remark
from irees.runtime.program import to_torch

from .adaptive_softmax import adaptive_softmax_traced
from .autocasting import in_a_region
from .batch_averages import averages_traced
from .buffers import assigned_buffers
from .constants import refuse_odd_tensor
from .decisions import (
    Decisions,
    NotEmpty,
    Replay,
    Specializations,
    decided,
    decides_by_values,
)
from .derivatives import Differentiates, export_derivatives, levels_kept, undifferentiated
from .effects import Effects, objects_kept, refuse, refuse_kept
from .fixed import fixed_arguments
from .lengths import symbolic_lengths
from .lines import lines_of_helpers
from .metas import recurrent_layers_kept
from .packed import total_lengths_checked
from .quantized import unpacked
from .random_state import random_state_refused
from .rewriting import Traceable
from .scalar_calls import ScalarCalls
from .size_decisions import decisions_noted
from .sizes import as_exported
from .symbolic_counts import symbolic_functions
from .symbolic_text import text_of_numbers

_LOGGERS = (
    "torch._subclasses.fake_tensor",
    "torch.fx.experimental.symbolic_shapes",
    "torch._dynamo",
    "torch.export",
    "torch._export",
)


_EXPORTING = threading.RLock()
"""Held during an export, which temporarily patches logging, `len`, and methods of PyTorch."""


@contextlib.contextmanager
def quiet() -> Generator[None]:
    """Suppresses PyTorch's log messages and warnings during an export; one thread at a time."""
    loggers = [logging.getLogger(name) for name in _LOGGERS]
    with _EXPORTING:
        levels = [logger.level for logger in loggers]
        for logger in loggers:
            logger.setLevel(logging.CRITICAL + 1)
        try:
            with warnings.catch_warnings(), levels_kept():
                warnings.simplefilter("ignore")
                # PyTorch prints the partial graph when an export fails.
                with contextlib.redirect_stderr(io.StringIO()):
                    yield
        finally:
            for logger, level in zip(loggers, levels, strict=True):
                logger.setLevel(level)


def export(
    program: Any,
    args: Sequence[Any] | None,
    kwargs: dict[str, Any] | None = None,
    dynamic_shapes: Any = None,
) -> torch.export.ExportedProgram:
    """
    Exports an nn.Module or a function; returns an ExportedProgram unchanged.

    Raises ArgumentError for other objects or missing example inputs. Raises UnsupportedError, with
    PyTorch's reason and the user's line, if PyTorch cannot export the program.
    """
    if isinstance(program, torch.export.ExportedProgram):
        return program
    module = as_module(program)
    if args is None and not kwargs and _required(module.forward):
        raise ArgumentError(
            "compiling a PyTorch program needs example inputs",
            hint="as in irees.compile(model, (x,)); they define shapes and dtypes",
        )
    args, kwargs = _as_tensors(args, kwargs)
    args, kwargs = distinct(args, kwargs, tensors_of(program))
    if dynamic_shapes is not None:
        dynamic_shapes = as_exported(module, args, kwargs, dynamic_shapes)
    with quiet(), torch.no_grad(), in_a_region(module):
        try:
            return _exported(module, args, kwargs, dynamic_shapes)
        except IreesError:
            raise
        except Exception as error:
            found = error
            if dynamic_shapes is None and decides_by_values(error):
                try:
                    return _decided(module, args, kwargs)
                except _ReadsValues:
                    pass
                except Exception as later:
                    # This attempt got past the first obstacle: its error names the next one.
                    found = later
            raise _refused(found, user_line(found)) from error


def _refused(error: BaseException, location: str | None) -> UnsupportedError:
    """The error for a program that PyTorch does not export."""
    return UnsupportedError(
        f"torch.export cannot export the program: {reason(error)}",
        location=location,
        hint=_way_out(error),
    )


def _as_tensors(args: Any, kwargs: Any) -> tuple[tuple, dict[str, Any]]:
    """The example inputs with arrays as tensors: a program is called with either."""
    if isinstance(args, torch.Tensor | np.ndarray):
        args = (args,)
    return tree_map(_as_tensor, (tuple(args or ()), dict(kwargs or {})))


def _as_tensor(value: Any) -> Any:
    """A copy of an array as a tensor; a tensor unchanged. Raises UnsupportedError."""
    if isinstance(value, torch.Tensor) and value.is_nested:
        refuse_odd_tensor(value, "an argument")
    if not isinstance(value, np.ndarray):
        return value
    if value.dtype.kind not in "biufc" and value.dtype.name != "bfloat16":
        raise ArgumentError(f"an array of {value.dtype} cannot be an example input")
    return to_torch(np.array(value, value.dtype.newbyteorder("="), order="C"))


_SPECIALIZED = "specialized it to be a constant"
"""Part of PyTorch's message for a dynamic dim for which it compiled one size."""


_UNKNOWN_RESULT = "in output, which is not a known type"
"""Part of PyTorch's message for a result that is neither a tensor nor a number or a string."""


_CHANGES_OBJECTS = "certain side effects happened"
"""Part of PyTorch's warning about changes of Python objects, which it does not export."""


class _ReadsValues(Exception):
    """The user's own code reads values of tensors."""


def _decided(module: Any, args: tuple, kwargs: dict) -> Any:
    """
    Exports with the data-dependent decisions of the example inputs; each call checks them. Allowed
    only if installed libraries make the decisions, because the user cannot change their code.

    Raises _ReadsValues if the user's code reads values; PyTorch's own error is more helpful then.
    """
    found = decided(module, args, kwargs)
    places = [line for line in found if not is_installed(line.rpartition(":")[0])]
    if places:
        raise _ReadsValues(f"the control flow depends on values at {places[0]}")
    with NotEmpty(is_installed) as sizes:
        exported = _exported(module, args, kwargs, None, found)
    if sizes.places:
        lines = ", ".join(dict.fromkeys(sizes.places))
        remark("analysis", "torch.export", None, f"assuming sizes of at least 1 at {lines}")
    if found:
        text = "the program is specialized to values of its example inputs at"
        remark(
            "analysis", "torch.export", None, f"{text} {', '.join(found)}, which each call checks"
        )
    return exported


def is_installed(file: str) -> bool:
    """Whether a file belongs to an installed package."""
    return any(file.startswith(sysconfig.get_path(name)) for name in ("purelib", "platlib"))


@dataclass(eq=False)
class _Attempt:
    """An export, and what to do in another way after it failed."""

    module: Any
    found: Decisions | None
    dynamic_shapes: Any
    export: Any
    specialized: Exception | None = None
    """The error of an attempt that gave a dynamic dim one size."""
    sizes: Specializations = field(default_factory=Specializations)
    fixed_results: bool = False
    """Whether PyTorch has refused a result that is no tensor."""

    def run(self, args: tuple, kwargs: dict) -> Any:
        """Exports, a second time if the program converts a symbolic number."""
        again = self.specialized is not None
        exported = self._run(args, kwargs, again)
        if self.dynamic_shapes is None or again or not self.sizes.converted:
            return exported
        try:
            return self._run(args, kwargs, True)
        except Exception:
            return exported

    def _run(self, args: tuple, kwargs: dict, again: bool) -> Any:
        """Exports; with `int` and `float` of a size that stay symbolic if it is done again."""
        with (
            unpacked(self.module) as plain,
            _replay(self.found),
            Traceable(),
            symbolic_lengths(self.module, numbers=again),
            symbolic_functions(every=again),
            self.sizes.noted(),
            text_of_numbers(),
            decisions_noted(),
            total_lengths_checked(),
            averages_traced(),
            adaptive_softmax_traced(),
            assigned_buffers(plain),
            random_state_refused(),
            fixed_arguments(plain, args, kwargs, self.fixed_results) as (given, named),
        ):

            def once() -> Any:
                with objects_kept(plain):
                    return self.export(plain, given, named, self.dynamic_shapes)

            with Effects(plain) as effects:
                exported = once()
            if self.found is None:
                refuse(effects, exported, once)
            return exported

    def adapts(self, error: Exception) -> bool:
        """Whether an export in another way, which this chooses, may succeed after an error."""
        text = str(error)
        if self.export is _undifferentiated and any(part in text for part in _BACKWARD):
            self.export = export_derivatives
            return True
        if self.dynamic_shapes is not None and _SPECIALIZED in text and self.specialized is None:
            self.specialized = error
            return True
        if _UNKNOWN_RESULT in text and not self.fixed_results:
            self.fixed_results = True
            return True
        return False


def _exported(
    module: Any, args: tuple, kwargs: dict, dynamic_shapes: Any, found: Decisions | None = None
) -> Any:
    """Exports, with the decisions in `found` if given."""
    from . import trees

    trees.register_known_types((args, kwargs))
    attempt = _Attempt(module, found, dynamic_shapes, _undifferentiated)
    for _ in range(8):
        try:
            return attempt.run(args, kwargs)
        except Differentiates:
            attempt.export = export_derivatives
        except Exception as error:
            # The result has a class that PyTorch's pytrees do not know: registers each class once.
            if trees.register_named_in(error) or attempt.adapts(error):
                continue
            if attempt.specialized is not None:
                location = attempt.sizes.fixed[-1] if attempt.sizes.fixed else None
                raise _refused(attempt.specialized, location) from error
            if "data-dependent" not in str(error):
                raise
            with _replay(found):
                with fixed_arguments(module, args, kwargs) as (given, named):
                    return _exported_by_bytecode(module, given, named, dynamic_shapes, error)
    raise UnsupportedError("the program returns objects of too many classes")


def _undifferentiated(module: Any, args: tuple, kwargs: dict, dynamic_shapes: Any) -> Any:
    """Exports above autograd. Raises Differentiates for a program that computes derivatives."""
    with undifferentiated(), recurrent_layers_kept(), lines_of_helpers():
        return torch.export.export(
            module, args, kwargs, dynamic_shapes=dynamic_shapes, strict=False
        )


def _replay(found: Decisions | None) -> Any:
    """Creates a new replay: each attempt to export starts from the first decision."""
    return contextlib.nullcontext() if found is None else Replay(found)


def _exported_by_bytecode(
    module: Any, args: tuple, kwargs: dict, dynamic_shapes: Any, first: Exception
) -> Any:
    """
    Exports by interpreting Python bytecode, which records `int(tensor)` and the like as operators.

    Raises the error of the first attempt if this one fails, too.
    """
    try:
        with ScalarCalls(), warnings.catch_warnings(record=True) as found:
            warnings.simplefilter("always")
            exported = torch.export.export(
                module, args, kwargs, dynamic_shapes=dynamic_shapes, strict=True
            )
    except Exception:
        raise first from None
    if any(_CHANGES_OBJECTS in str(warning.message) for warning in found):
        refuse_kept(module, args, kwargs)
    return exported


def as_module(program: Any) -> torch.nn.Module:
    """
    Wraps a function as a module with the same parameters, a module's method as a module with the
    same weights; returns a module unchanged.
    """
    if isinstance(program, torch.jit.ScriptModule | torch.jit.ScriptFunction):
        raise UnsupportedError(
            "TorchScript programs are not supported", hint="compile the module that was scripted"
        )
    if isinstance(program, torch.nn.Module):
        for name, module in program.named_modules():
            if isinstance(module, torch.jit.ScriptModule):
                raise UnsupportedError(
                    f"TorchScript programs are not supported: {name!r} is one",
                    hint="put the module that was scripted or traced in its place, or use "
                    "torch.compile(backend='irees')",
                )
        return program
    if not callable(program) or isinstance(program, type):
        raise ArgumentError(
            f"expected an nn.Module, a function or an ExportedProgram, but got "
            f"{type(program).__name__}"
        )

    class Function(torch.nn.Module):
        pass

    try:
        parameters = inspect.signature(program)
    except ValueError:  # a builtin, such as torch.sinh
        parameters = inspect.signature(lambda *args, **kwargs: None)
    names = list(parameters.parameters)
    first = "self_" if "self" in names else "self"

    def forward(*given: Any, **named: Any) -> Any:
        return program(*given[1:], **named)

    own = inspect.Parameter(first, inspect.Parameter.POSITIONAL_ONLY)
    kept = [
        p.replace(kind=inspect.Parameter.POSITIONAL_OR_KEYWORD)
        if p.kind is inspect.Parameter.POSITIONAL_ONLY
        else p
        for p in parameters.parameters.values()
    ]
    forward.__signature__ = parameters.replace(  # type: ignore[attr-defined]
        parameters=[own.replace(kind=inspect.Parameter.POSITIONAL_OR_KEYWORD), *kept]
    )
    Function.forward = forward  # type: ignore[assignment]
    module = Function()
    owner = getattr(program, "__self__", None)
    if isinstance(owner, torch.nn.Module):
        _share_state(owner, module)
    return module


def _share_state(owner: torch.nn.Module, module: torch.nn.Module) -> None:
    """Shares the weights of `owner`, by name, with `module`, which calls a method of it."""
    for name in ("_parameters", "_buffers", "_modules", "_non_persistent_buffers_set", "training"):
        module.__dict__[name] = owner.__dict__[name]


def parameters_of(program: Any) -> dict[str, inspect.Parameter]:
    """The parameters of a module's `forward` or of a function. Raises ArgumentError otherwise."""
    return dict(inspect.signature(as_module(program).forward).parameters)


def _required(forward: Any) -> list[str]:
    """The parameters without a default."""
    return [
        p.name
        for p in inspect.signature(forward).parameters.values()
        if p.default is p.empty and p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD)
    ]


def tensors_of(program: Any) -> list[torch.Tensor]:
    """The tensors that a program holds: weights, and those that a function refers to."""
    if isinstance(program, torch.nn.Module):
        attributes = [x for m in program.modules() for x in vars(m).values()]
        held = [*program.parameters(), *program.buffers(), *attributes]
    else:
        code, names = getattr(program, "__code__", None), getattr(program, "__globals__", {})
        held = [names.get(name) for name in (() if code is None else code.co_names)]
        for cell in getattr(program, "__closure__", None) or ():
            with contextlib.suppress(ValueError):  # it is empty
                held.append(cell.cell_contents)
    return [x for x in held if isinstance(x, torch.Tensor)]


def distinct(args: tuple, kwargs: dict, held: Sequence[torch.Tensor] = ()) -> tuple[tuple, dict]:
    """
    Clones tensors in the arguments that are, or share memory with, an earlier one or a tensor that
    the program holds: PyTorch treats repeated tensors as one argument, takes an argument that is a
    weight for that weight, and cannot functionalize a write to memory of two.
    """
    seen = {memory_of(x) for x in held}

    def once(value: Any) -> Any:
        if not isinstance(value, torch.Tensor):
            return value
        if (place := memory_of(value)) in seen:
            return value.detach().clone().requires_grad_(value.requires_grad)
        seen.add(place)
        return value

    leaves = [x for x in tree_leaves((args, kwargs)) if isinstance(x, torch.Tensor)]
    places = {memory_of(x) for x in leaves}
    if len(places) == len(leaves) and not places & seen:
        return args, kwargs
    return tree_map(once, (args, kwargs))


def memory_of(tensor: torch.Tensor) -> Any:
    """A key that is equal for tensors that share memory: the storage, or else the object."""
    if type(tensor) not in (torch.Tensor, torch.nn.Parameter) or tensor.layout != torch.strided:
        return id(tensor)
    storage = tensor.untyped_storage()
    empty = storage.nbytes() == 0 or tensor.device.type == "meta"
    return ("object", id(tensor)) if empty else ("storage", storage._cdata)


_VIOLATED = "Constraints violated"

_NO_DATA = "its data is not allocated yet"
"""PyTorch's words for code that reads a tensor that is traced."""

_PACKED = "__obj_flatten__"
"""The method that PyTorch misses in the packed weights of its quantized modules."""

_CALLS_BACKWARD = "Cannot backprop through mirrored meta"
"""PyTorch's words for a call of `backward` in a trace."""

_BACKWARD = (
    "found a fake tensor in the exported program constant's list",
    "does not require grad and does not have a grad_fn",
    "One of the differentiated Tensors does not require grad",
)
"""
PyTorch's words for a trace above autograd of `torch.autograd.grad`, or of `vmap` over a dim that is
not the first.
"""


def reason(error: BaseException) -> str:
    """The first non-empty line of an error message; the violated constraint if it names one."""
    if _PACKED in str(error):
        return "the program has packed weights of a quantized module"
    if _CALLS_BACKWARD in str(error):
        return "the program calls backward()"
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    if lines and lines[0].startswith(_VIOLATED):
        lines = [line.removeprefix("- ") for line in lines if line.startswith("- ")] or lines
    return (lines or [type(error).__name__])[0][:400]


_CHECKED = "with Dim.AUTO in dynamic_shapes, each call checks its sizes instead"
"""The way out of a condition on sizes for which PyTorch suggests none."""


_HINTS = {
    _CALLS_BACKWARD: "use torch.func.grad or torch.autograd.grad, which return the gradients, or "
    "torch.compile(backend='irees')",
    _PACKED: "leave the module unquantized, or use torch.compile(backend='irees')",
    ".numpy() is not supported": "use PyTorch's functions instead of NumPy's, or "
    "torch.compile(backend='irees')",
    "uninitialized parameter": "call the module once before, which initializes lazy parameters",
}
"""What to do, by a part of PyTorch's message."""


def _way_out(error: BaseException) -> str | None:
    """What to do about an export that failed, if PyTorch says so or the cause is known."""
    text = str(error)
    for part, hint in _HINTS.items():
        if part in text:
            return hint
    if text.startswith("Unsupported input type"):
        return "capture the object in the program instead of passing it as an argument"
    if decides_by_values(error) or _NO_DATA in text:
        return (
            "Python code cannot depend on values of tensors: use torch.cond or torch.while_loop, "
            "or torch.compile(backend='irees'), which leaves such code to Python"
        )
    if any(each in text for each in _BACKWARD):
        return "use torch.func.grad or torch.func.vjp instead of torch.autograd.grad"
    if not text.startswith(_VIOLATED):
        return None
    fixes = [line.strip() for line in text.partition("Suggested fixes:")[2].splitlines()]
    fixes = [line for line in fixes if " = " in line]
    return f"in dynamic_shapes: {', '.join(fixes)}" if fixes else _CHECKED


def user_line(error: BaseException) -> str | None:
    """The innermost traceback line outside of PyTorch, sympy, irees and contextlib."""
    import traceback

    ours = ("/torch/", "/sympy/", str(Path(irees.__file__).parent), "/contextlib.py")
    frames = [
        f
        for f in traceback.extract_tb(error.__traceback__)
        if not any(part in f.filename for part in ours) and not f.filename.startswith("<")
    ]
    return f"{frames[-1].filename}:{frames[-1].lineno}" if frames else None
