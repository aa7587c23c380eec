"""
The state of modules besides their attributes: hooks, and what is attached to their tensors.

A trace has other tensors in the place of the parameters and buffers. They have neither the
attributes that the user has set (`weight.scale = 3`) nor keep those that the program sets.

    with attributes_traced(module):                    # the tensors of the trace have them, too
        torch.export.export(module, args)
    held = HeldTensors(module)                         # what these tensors are, before a trace
    ...
    held.attributes("self.weight", traced), user_hooks(submodule)
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import nn
from torch.nn.modules import module as torch_modules

_PLAIN = (torch.Tensor, nn.Parameter, nn.Buffer)

_HOOKS = {
    "_forward_pre_hooks": ("_forward_pre_hooks_with_kwargs",),
    "_forward_hooks": ("_forward_hooks_with_kwargs", "_forward_hooks_always_called"),
}
"""The tables of hooks that a call of a module runs, and those that say how."""

_TRACERS = ("irees.", "torch._", "torch.export", "torch.fx")
"""Prefixes of the modules whose hooks belong to a trace."""


def user_hooks(module: nn.Module) -> dict[str, dict[int, Any]]:
    """The hooks of a module, by table, without those of a trace."""
    found = {}
    for name, flags in _HOOKS.items():
        found[name] = hooks = {k: h for k, h in vars(module)[name].items() if _is_user(h)}
        for flag in flags:
            found[flag] = {k: value for k, value in vars(module)[flag].items() if k in hooks}
    return found


def put_hooks(module: nn.Module, hooks: dict[str, dict[int, Any]]) -> None:
    """Puts hooks of the user back; those of a trace stay."""
    now = user_hooks(module)
    for name, old in hooks.items():
        if list(now[name]) != list(old):
            table = vars(module)[name]
            others = {key: value for key, value in table.items() if key not in now[name]}
            table.clear()
            table.update({**old, **others})


def _is_user(hook: Any) -> bool:
    owner = getattr(hook, "__module__", None) or type(hook).__module__
    return not owner.startswith(_TRACERS)


@contextmanager
def global_hooks_of(root: nn.Module) -> Iterator[None]:
    """Runs hooks of all modules for those of the program only, not for those of a trace."""
    own = {id(module) for module in root.modules()}
    tables = [
        torch_modules._global_forward_pre_hooks,
        torch_modules._global_forward_hooks,
    ]
    before = [dict(table) for table in tables]

    def limited(hook: Any) -> Any:
        def run(module: nn.Module, *given: Any) -> Any:
            kind = type(module).__module__
            is_tracer = kind.startswith(_TRACERS) and id(module) not in own
            return None if is_tracer or kind.startswith("irees.") else hook(module, *given)

        return run

    for table in tables:
        table.update({key: limited(hook) for key, hook in table.items()})
    try:
        yield
    finally:
        for table, old in zip(tables, before, strict=True):
            table.update({key: old[key] for key in table.keys() & old.keys()})


def tensors_of(root: nn.Module) -> dict[str, torch.Tensor]:
    """The parameters and buffers of a module, under all their names."""
    stored = [
        *root.named_parameters(remove_duplicate=False),
        *root.named_buffers(remove_duplicate=False),
    ]
    return {f"self.{name}": tensor for name, tensor in stored}


def attributes_of(tensor: torch.Tensor) -> dict[str, Any]:
    """The attributes that the user has set; empty for a subclass, whose attributes are its data."""
    return vars(tensor) if type(tensor) in _PLAIN else {}


class HeldTensors:
    """The tensors of a module, and which attributes those of a trace have of their own."""

    def __init__(self, root: nn.Module) -> None:
        self.real = {p: t for p, t in tensors_of(root).items() if type(t) in _PLAIN}
        self._own: dict[str, frozenset[str]] = {}
        self._gradients: dict[str, Any] = {}

    def begin(self, root: nn.Module) -> None:
        """Notes the tensors of a trace, before the program has set an attribute."""
        self._own = {path: frozenset(vars(t)) for path, t in tensors_of(root).items()}
        self._gradients = {path: t.grad for path, t in tensors_of(root).items() if t.is_leaf}

    def attributes(self, path: str, tensor: torch.Tensor) -> dict[str, Any]:
        """The attributes that the user has set on a tensor, or on the one of a trace for it."""
        if tensor is self.real[path]:
            return vars(tensor)
        own = self._own.get(path, frozenset()) - vars(self.real[path]).keys()
        return {name: value for name, value in vars(tensor).items() if name not in own}

    def gradient(self, path: str, tensor: torch.Tensor) -> Any:
        """The `grad` of a leaf, or that of the real one if the trace has not assigned another."""
        real = self.real[path]
        if tensor is real or tensor.grad is self._gradients.get(path):
            return real.grad
        return tensor.grad


@contextmanager
def attributes_traced(root: nn.Module) -> Iterator[None]:
    """Gives the tensors of a trace the attributes of those in whose place they are."""
    real = {path: t for path, t in tensors_of(root).items() if attributes_of(t)}

    def begin(*_: Any) -> None:
        for path, tensor in tensors_of(root).items() if real else ():
            if tensor is not (held := real.get(path, tensor)):
                new = {n: v for n, v in vars(held).items() if not hasattr(type(tensor), n)}
                vars(tensor).update({**new, **vars(tensor)})

    hook = root.register_forward_pre_hook(begin, prepend=True)
    try:
        yield
    finally:
        hook.remove()
