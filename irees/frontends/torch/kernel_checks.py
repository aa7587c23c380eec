"""
Refuses the calls whose dtypes PyTorch's kernels refuse.

PyTorch traces a program by its operators' shape rules. Many of them accept dtypes that the kernel
on a CPU does not:

    torch.mv(x, y.double())                # "expected scalar type Float but found Double"
    F.cross_entropy(x, labels.int())       # "expected target dtype to be Long or Byte, but got Int"

No table of dtypes is needed: a call is run once in PyTorch, on tensors of its dtypes. If it
fails, and the same call of other dtypes does not, then the dtypes are the reason. Dtypes that a
kernel merely lacks on a CPU, such as f16, are not refused.
"""

from __future__ import annotations

import functools
import operator
import re
from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch.fx import GraphModule, Node
from torch.fx.node import map_arg
from torch.utils._python_dispatch import _disable_current_modes
from torch.utils._pytree import tree_flatten, tree_unflatten

from irees.errors import UnsupportedError

from .lines import users_line

MOST_ELEMENTS = 1 << 22
"""Number of elements of operands and results above which a call is not tried."""

MOST_USUAL = 1 << 14
"""The same for operands of one float dtype, i64 and bool, which few operators refuse."""

_ANYWHERE = {torch.int64, torch.bool}
"""Dtypes of indices and masks, beside one of floats."""

SMALL = 2
"""
Largest dim of the operands of a pointwise call. The dims of others stay: kernels trust shape rules,
and may read out of bounds where dims do not fit.
"""

FILLS = (0, 1)
"""Values of the tensors: 0 is an index of any tensor, 1 is no division by zero."""

_LACKING = re.compile(r"not implemented for '(Half|BFloat16|Float8\w*|UInt\d+)'")
"""PyTorch's words for a dtype that a kernel could take, but does not on a CPU."""

_LIBRARIES: tuple[Any, ...] = (
    torch, torch.nn.functional, torch._C._nn, torch._C._linalg, torch._C._special, torch._C._fft,
    operator,
)  # fmt: skip

_tried: dict[Any, str | None] = {}
"""The reason why a call is refused, or None, by operator and dtypes."""


def refuse_dtypes(module: GraphModule, key: str = "val") -> None:
    """
    Raises UnsupportedError, with PyTorch's reason and the user's line, for the first call that
    PyTorch refuses because of its dtypes. `key` is the metadata that has a node's fake value.
    """
    if torch.is_autocast_enabled("cpu"):
        return
    for node in _nodes(module):
        if (reason := _refused(node, key)) is not None:
            raise UnsupportedError(
                f"PyTorch refuses {_name(node.target)} of {_dtypes(node, key)}: {reason}",
                location=users_line(node.meta.get("stack_trace")),
                hint="convert the operands, as in x.to(torch.float32)",
            )


def _nodes(module: GraphModule) -> Iterator[Node]:
    """The nodes of a graph and of its regions; none below autocast, which casts operands."""
    nodes = list(module.graph.nodes)
    if any("autocast" in str(node.target) for node in nodes):
        return
    for node in nodes:
        yield node
        if node.op == "get_attr":
            inner = getattr(module, str(node.target), None)
            if isinstance(inner, GraphModule):
                yield from _nodes(inner)


def _refused(node: Node, key: str) -> str | None:
    """Why PyTorch refuses the dtypes of a node, or None."""
    function = _function(node)
    if function is None:
        return None
    fakes = map_arg((node.args, node.kwargs), lambda read: read.meta.get(key))
    leaves, spec = tree_flatten(fakes)
    leaves = [_number(x) for x in leaves]
    tensors = [x for x in leaves if isinstance(x, torch.Tensor)]
    results = [x for x in tree_flatten(node.meta.get(key))[0] if isinstance(x, torch.Tensor)]
    if not tensors or not all(map(_is_plain, tensors)) or _elements(results) > MOST_ELEMENTS:
        return None
    known = (node.target, str(spec), *(_described(x) for x in leaves))
    if known not in _tried:
        small = torch.Tag.pointwise in getattr(node.target, "tags", ())
        if not small and _elements(tensors) > _most(tensors):
            return None
        run = functools.partial(_call, function, spec)
        with _disable_current_modes(), torch.no_grad(), torch.random.fork_rng(devices=[]):
            _tried[known] = _reason(run, leaves, small)
    return _tried[known]


def _most(tensors: list[Any]) -> int:
    """The number of elements up to which a call is tried."""
    others = {t.dtype for t in tensors} - _ANYWHERE
    is_usual = len(others) == 1 and others.pop().is_floating_point
    return MOST_USUAL if is_usual else MOST_ELEMENTS


def _function(node: Node) -> Callable[..., Any] | None:
    """The function of PyTorch that a node calls, if it depends on its arguments alone."""
    target = node.target
    if node.op == "call_method":
        return getattr(torch.Tensor, str(target), None)
    if node.op != "call_function" or isinstance(target, str):
        return None
    if isinstance(target, torch._ops.OpOverload):
        first = target._schema.arguments[0].alias_info if target._schema.arguments else None
        is_view = first is not None and not first.is_write
        return target if target.namespace == "aten" and not is_view else None
    name = getattr(target, "__name__", "")
    return target if any(getattr(each, name, None) is target for each in _LIBRARIES) else None


def _reason(run: Callable[[list[Any]], None], leaves: list[Any], small: bool) -> str | None:
    """Why a call of these dtypes fails that runs with others, or None."""
    error = _tries(run, leaves, small, lambda dtype: dtype)
    if error is None or _LACKING.search(error):
        return None
    return error if any(_tries(run, leaves, small, of) is None for of in _OTHERS) else None


def _tries(
    run: Callable[[list[Any]], None], leaves: list[Any], small: bool, of: Callable[[Any], Any]
) -> str | None:
    """The first line of the error of a call, or None if it runs on tensors of one of `FILLS`."""
    error = None
    for fill in FILLS:
        try:
            run([_real(x, fill, small, of) for x in leaves])
        except Exception as found:  # whatever PyTorch raises is its reason
            error = error or (str(found).splitlines() or [type(found).__name__])[0]
        else:
            return None
    return error


def _ordinary(dtype: torch.dtype) -> torch.dtype:
    """f32 for floats, i64 for integers."""
    if dtype.is_floating_point:
        return torch.float32
    return dtype if dtype.is_complex or dtype == torch.bool else torch.int64


_OTHERS: tuple[Callable[[torch.dtype], torch.dtype], ...] = (
    _ordinary,
    lambda dtype: torch.float32,
    lambda dtype: torch.int64,
    lambda dtype: torch.bool,
)
"""Dtypes in place of those of a call."""


def _call(function: Callable[..., Any], spec: Any, leaves: list[Any]) -> None:
    args, kwargs = tree_unflatten(leaves, spec)
    function(*args, **kwargs)


def _real(value: Any, fill: int, small: bool, of: Callable[[Any], Any]) -> Any:
    """A tensor in place of a fake one, or a number."""
    if not isinstance(value, torch.Tensor):
        return value
    sizes = [_number(size) for size in value.shape]
    sizes = [min(size, SMALL) for size in sizes] if small else sizes
    make = torch.ones if fill else torch.zeros
    return make(sizes, dtype=of(value.dtype))


def _number(value: Any) -> Any:
    """A symbolic number as that of the example inputs; one that depends on data as `SMALL`."""
    if not isinstance(value, torch.SymInt | torch.SymFloat | torch.SymBool):
        return value
    hint = value.node._hint if value.node.has_hint() else None
    return SMALL if hint is None else hint


def _elements(tensors: list[Any]) -> int:
    counts = [1] * len(tensors)
    for i, tensor in enumerate(tensors):
        for size in tensor.shape:
            counts[i] *= _number(size)
    return sum(counts)


def _is_plain(value: Any) -> bool:
    return (
        value.layout == torch.strided
        and value.dtype not in (torch.complex32,)
        and not value.is_quantized
    )


def _described(value: Any) -> Any:
    if isinstance(value, torch.Tensor):
        return value.dtype, value.dim()
    return type(value).__name__, str(value)


def _name(target: Any) -> str:
    name = target._schema.name if isinstance(target, torch._ops.OpOverload) else None
    return name.removeprefix("aten::") if name else getattr(target, "__name__", str(target))


def _dtypes(node: Node, key: str) -> str:
    values = tree_flatten(map_arg((node.args, node.kwargs), lambda read: read.meta.get(key)))[0]
    kinds = [str(x.dtype).removeprefix("torch.") for x in values if isinstance(x, torch.Tensor)]
    return ", ".join(kinds)
