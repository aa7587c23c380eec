"""
Makes the buffers that a program assigns state: `self.b = x` writes x to b when the call ends.

`torch.export` does so for the buffers of the outermost module, and drops the assignments in all
others. It also returns the new value where the program returns the old one, because it does not
copy what has the memory of the buffer.

    with assigned_buffers(module):
        exported = torch.export.export(module, args)

| the program | |
|---|---|
| assigns a buffer a tensor of its sizes and dtype, by attribute or by `_buffers` | a write |
| assigns one of other sizes or another dtype, None, or a tensor in the place of None | rejected |
| assigns a buffer whose memory another buffer or parameter has, and keeps that one | rejected |
"""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from typing import Any
from unittest.mock import MagicMock, patch

import torch
from torch import nn
from torch.export import _trace
from torch.fx.experimental.symbolic_shapes import statically_known_true
from torch.utils._pytree import tree_map

from irees.errors import UnsupportedError

from .sharing import storage_of

Place = tuple[nn.Module, str]


@contextmanager
def assigned_buffers(root: nn.Module) -> Generator[None]:
    """Turns assignments of buffers in calls of a module into writes. Raises UnsupportedError."""
    before: list[dict[str, tuple[Place, Any]]] = []

    def begin(*_: Any) -> None:
        before.append(_buffers(root))

    def end(_module: nn.Module, _args: Any, result: Any) -> Any:
        return _written(root, before.pop(), result)

    hooks = [root.register_forward_pre_hook(begin), root.register_forward_hook(end)]
    try:
        with patch.object(_trace, "register_buffer_assignment_hook", MagicMock()):
            yield
    finally:
        for hook in hooks:
            hook.remove()


def _buffers(root: nn.Module) -> dict[str, tuple[Place, Any]]:
    """The buffers of all modules, None included, by their names."""
    return {
        ".".join(filter(None, (name, key))): ((module, key), tensor)
        for name, module in root.named_modules()
        for key, tensor in module._buffers.items()
    }


def _written(root: nn.Module, before: dict[str, tuple[Place, Any]], result: Any) -> Any:
    """Writes the new values of buffers to the old tensors; returns the result of the call."""
    now = _buffers(root)
    assigned = {
        name: (old, now[name][1])
        for name, (_, old) in before.items()
        if name in now and now[name][1] is not old
    }
    if not assigned:
        return result
    for name, (old, new) in assigned.items():
        _check(name, old, new)
    kept = [(name, tensor) for name, (_, tensor) in before.items() if name not in assigned]
    _check_memory(assigned, [*kept, *root.named_parameters(remove_duplicate=False)])
    memory = {storage_of(old) for old, _ in assigned.values()}

    def apart(value: Any) -> Any:
        """A copy of what has the memory of a buffer that is written to."""
        is_old = isinstance(value, torch.Tensor) and storage_of(value) in memory
        return value.clone() if is_old else value

    result = tree_map(apart, result)
    values = {name: apart(new) for name, (_, new) in assigned.items()}
    for name, (old, _) in assigned.items():
        old.copy_(values[name])
        module, key = before[name][0]
        module._buffers[key] = old
    return result


def _check_memory(assigned: dict[str, tuple[Any, Any]], kept: list[tuple[str, Any]]) -> None:
    """Refuses a buffer whose memory is that of another tensor which does not change with it."""
    first: dict[int, str] = {}
    for name, (old, new) in assigned.items():
        other = first.setdefault(storage_of(old), name)
        if assigned[other][0] is not old or assigned[other][1] is not new:
            raise _shared(name, other)
    for name, tensor in kept:
        if isinstance(tensor, torch.Tensor) and (other := first.get(storage_of(tensor))):
            raise _shared(other, name)


def _check(name: str, old: Any, new: Any) -> None:
    if old is None or new is None:
        what = "a tensor in the place of None" if old is None else "None"
    elif new.dtype != old.dtype:
        what = f"a tensor of {new.dtype}, not of {old.dtype}"
    elif new.dim() != old.dim() or not all(
        statically_known_true(n == m) for n, m in zip(new.shape, old.shape, strict=True)
    ):
        what = f"a tensor of sizes {list(new.shape)}, not of {list(old.shape)}"
    else:
        return
    raise UnsupportedError(
        f"the program assigns the buffer {name} {what}, which a compiled program does not",
        hint="give the buffer its sizes and dtype in __init__, call the module once before if it "
        "sets itself up on first use, or use torch.compile(backend='irees')",
    )


def _shared(name: str, other: str) -> UnsupportedError:
    return UnsupportedError(
        f"the program assigns the buffer {name}, which shares memory with {other}",
        hint="write to it (copy_), give each its own memory, or use torch.compile(backend='irees')",
    )
