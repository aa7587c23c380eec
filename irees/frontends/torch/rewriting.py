"""
Replaces PyTorch functions that read tensor data in Python by ones that `torch.export` can trace.

    with Traceable():
        torch.export.export(module, args)

`gaussian_nll_loss` tests for negative variances, which becomes a run-time check. `one_hot` reads
the largest class, which becomes a run-time size, and so do the bounds of `tensor_split`. `equal`,
`allclose` and `is_nonzero` become run-time bools. `combinations` selects by a mask that depends
only on sizes. Quantized tensors become integers (`quantized.py`), packed sequences count their
elements (`packed.py`). Attention, `roll` and `max_pool1d` compare sizes with 0, so they are
computed differently for tensors of counted sizes. One-element integer `ones` and `zeros` become
literals, because `item` may read them for a size or a dim. An assignment to `x[:, i]` reads the
tensor i, so it becomes `index_put_`. `x.data`, which is not traced, becomes `x.detach()`, and an
assignment to it a write. `lengths.py` keeps `len(x)` symbolic, `symbolic_counts.py` the counts that
PyTorch takes as ints.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch.fx.experimental.symbolic_shapes import free_unbacked_symbols
from torch.nn import functional
from torch.overrides import TorchFunctionMode

from irees.errors import UnsupportedError

from . import packed, quantized, symbolic_counts


def gaussian_nll_loss(
    input: Any,
    target: Any,
    var: Any,
    full: bool = False,
    eps: float = 1e-6,
    reduction: str = "mean",
) -> Any:
    """(log(v) + (input - target)^2 / v) / 2 for v = max(var, eps)"""
    if isinstance(var, float | int):
        return functional.gaussian_nll_loss(input, target, float(var), full, eps, reduction)
    if var.size() != input.size() and input.size()[:-1] == var.size():
        var = var.unsqueeze(-1)
    torch._assert_async((var >= 0).all(), "var has negative entry/entries")
    var = var.clone().detach().clamp(min=eps) if not var.requires_grad else var.clamp(min=eps)
    loss = 0.5 * (torch.log(var) + (input - target) ** 2 / var)
    if full:
        loss = loss + 0.9189385332046727  # log(2 pi) / 2
    return {"none": lambda: loss, "mean": loss.mean, "sum": loss.sum}[reduction]()


def one_hot(input: Any, num_classes: int = -1) -> Any:
    """One-hot encoding with `num_classes` classes; by default up to the largest element."""
    count: Any = num_classes
    if type(num_classes) is int and num_classes == -1:
        torch._assert_async((input >= 0).all(), "class values must not be negative")
        count = (input.max() + 1).item()
        torch._check(count >= 0)
    classes = torch.arange(count, device=input.device)
    return (input.unsqueeze(-1) == classes).long()


def unique_consecutive(
    input: Any, return_inverse: bool = False, return_counts: bool = False, dim: Any = None
) -> Any:
    """PyTorch's function with a normalized dim: it traces wrong shapes for a negative one."""
    dim = dim % input.dim() if dim is not None and dim < 0 and input.dim() else dim
    # By keyword: PyTorch takes a second positional argument for `return_counts`.
    return torch.unique_consecutive(
        input, return_inverse=return_inverse, return_counts=return_counts, dim=dim
    )


def combinations(input: Any, r: int = 2, with_replacement: bool = False) -> Any:
    """All combinations of r elements of a vector, one per row."""
    if r == 0 or input.dim() != 1 or not isinstance(input.shape[0], int):
        return torch.combinations(input, r, with_replacement)
    choose = itertools.combinations_with_replacement if with_replacement else itertools.combinations
    rows = list(choose(range(input.shape[0]), r))
    return input[torch.tensor(rows, dtype=torch.int64).reshape(-1, r)]


def tensor_split(input: Any, *options: Any, **named: Any) -> Any:
    """x[:i0], x[i0:i1], ... x[in:] for indices that are a tensor"""
    # PyTorch names the first option by its kind: sections, indices or a tensor.
    given = options[0] if options else named.get("tensor_indices_or_sections")
    if not isinstance(given, torch.Tensor) or given.dim() != 1:
        return torch.tensor_split(input, *options, **named)
    dim = options[1] if len(options) > 1 else named.get("dim", 0)
    length = input.shape[dim]
    bounds = torch.where(given < 0, given + length, given).clamp(0, length)
    ends = torch.nn.functional.pad(bounds, (0, 1), value=length)
    parts = []
    for n in range(given.shape[0] + 1):
        start = bounds[n - 1] if n else bounds.new_zeros(())
        size: Any = (ends[n] - start).clamp(min=0).item()
        torch._check(size >= 0)
        parts.append(input.index_select(dim, start + torch.arange(size, device=input.device)))
    return tuple(parts)


def equal(input: Any, other: Any) -> Any:
    """Whether shapes and all elements are equal: a bool that is data"""
    if input.dim() != other.dim() or any(n != m for n, m in zip(input.shape, other.shape)):
        return False
    return (input == other).all().item()


def allclose(input: Any, other: Any, *tolerances: Any, **named: Any) -> Any:
    """Whether all elements are close: a bool that is data"""
    return torch.isclose(input, other, *tolerances, **named).all().item()


def is_nonzero(input: Any) -> Any:
    """Whether the only element is not 0: a bool that is data"""
    return (input != 0).item()


def convolution_backward(
    grad_output: Any, input: Any, weight: Any, bias_sizes: Any, *rest: Any, **named: Any
) -> Any:
    """PyTorch's operator with explicit bias sizes, which its fake-tensor rule needs."""
    sizes = [grad_output.shape[1]] if bias_sizes is None else bias_sizes
    function = torch.ops.aten.convolution_backward.default
    return function(grad_output, input, weight, sizes, *rest, **named)


def assign_data(input: Any, value: Any) -> None:
    """`input.data = value`, as a write to `input`: an exported program keeps no new memory."""
    if input._is_view():
        raise UnsupportedError(
            "the program assigns the .data of a view",
            hint="assign a new tensor to the variable, or use torch.compile(backend='irees')",
        )
    if input.shape != value.shape or input.dtype != value.dtype:
        raise UnsupportedError(
            f"the program gives a tensor of {input.dtype} and shape {tuple(input.shape)} data of "
            f"{value.dtype} and shape {tuple(value.shape)}",
            hint="keep dtype and shape, or use torch.compile(backend='irees')",
        )
    with torch.no_grad():
        input.copy_(value)


def threshold_backward(grad_output: Any, input: Any, threshold: Any) -> Any:
    """PyTorch's operator on promoted gradients: its fake-tensor rule lacks the promotion."""
    kind = torch.result_type(grad_output, input)
    return torch.ops.aten.threshold_backward.default(grad_output.to(kind), input, threshold)


def cdist(x1: Any, x2: Any, p: float = 2.0, compute_mode: Any = None) -> Any:
    """PyTorch's function in the mode that does not depend on sizes: all modes are lowered alike."""
    return torch.cdist(x1, x2, p, "donot_use_mm_for_euclid_dist")


def _literal(function: Callable[..., Any], value: int, size: Any, named: Any) -> Any:
    """A one-element integer tensor as a literal, which `item` can read during tracing."""
    dims = size[0] if len(size) == 1 and isinstance(size[0], tuple | list) else size
    is_integer = named.get("dtype") in (torch.int32, torch.int64) and set(named) == {"dtype"}
    if not is_integer or not all(type(d) is int and d == 1 for d in dims):
        return function(*size, **named)
    nested: Any = value
    for _ in dims:
        nested = [nested]
    return torch.tensor(nested, **named)


_INTEGERS = (torch.int64, torch.int32, torch.int16, torch.int8)


def _is_place(part: Any) -> bool:
    """Whether a part of an index is an integer that is data."""
    return isinstance(part, torch.Tensor) and part.dim() == 0 and part.dtype in _INTEGERS


def _is_basic(part: Any) -> bool:
    is_number = isinstance(part, int | torch.SymInt) and not isinstance(part, bool)
    return part is None or part is ... or isinstance(part, slice) or is_number


def _places(parts: tuple[Any, ...], rank: int) -> list[Any]:
    """The place of an index in each dim of `x[parts]` with places as slices; None without one."""
    places: list[Any] = []
    for part in parts:
        if part is ...:
            used = sum(p is not None and p is not ... for p in parts)
            places += [None] * (rank - used)
        elif not isinstance(part, int | torch.SymInt):
            places.append(part if _is_place(part) else None)
    return places


def set_item(x: torch.Tensor, key: Any, value: Any) -> None:
    """
    x[key] = value. PyTorch reads the value of an integer tensor of rank 0 in a key, which an export
    cannot.
    """
    parts = key if isinstance(key, tuple) else (key,)
    if not any(map(_is_place, parts)) or not all(_is_place(p) or _is_basic(p) for p in parts):
        x[key] = value
        return
    view = x[tuple(slice(None) if _is_place(p) else p for p in parts)]
    places = _places(parts, x.dim())
    value = torch.as_tensor(value, dtype=x.dtype, device=x.device)
    rank = view.dim() - sum(place is not None for place in places)
    while value.dim() > rank and value.shape[0] == 1:
        value = value.squeeze(0)
    torch.ops.aten.index_put_.default(view, places, value)


_REWRITES: dict[Any, Callable[..., Any]] = {
    torch.Tensor.__setitem__: set_item,
    torch.Tensor.data.__get__: torch.Tensor.detach,  # type: ignore[attr-defined]
    torch.Tensor.data.__set__: assign_data,  # type: ignore[attr-defined]
    functional.gaussian_nll_loss: gaussian_nll_loss,
    torch.unique_consecutive: unique_consecutive,
    torch.Tensor.unique_consecutive: unique_consecutive,
    functional.one_hot: one_hot,
    torch.combinations: combinations,
    torch.cdist: cdist,
    torch.is_nonzero: is_nonzero,
    torch.Tensor.is_nonzero: is_nonzero,
    torch.equal: equal,
    torch.Tensor.equal: equal,
    torch.allclose: allclose,
    torch.Tensor.allclose: allclose,
    torch.tensor_split: tensor_split,
    torch.Tensor.tensor_split: tensor_split,
    torch.ops.aten.convolution_backward: convolution_backward,
    torch.ops.aten.threshold_backward: threshold_backward,
    torch.ones: lambda *size, **named: _literal(torch.ones, 1, size, named),
    torch.zeros: lambda *size, **named: _literal(torch.zeros, 0, size, named),
    torch.Tensor.__getitem__: packed.get_item,
    torch._VF._pack_padded_sequence: packed.pack,  # type: ignore[attr-defined]
    torch._VF._pad_packed_sequence: packed.pad,  # type: ignore[attr-defined]
    torch.quantize_per_tensor: quantized.quantize_per_tensor,
    torch.quantize_per_channel: quantized.quantize_per_channel,
    torch._make_per_tensor_quantized_tensor: quantized.make_per_tensor,
    torch._make_per_channel_quantized_tensor: quantized.make_per_channel,
}
"""Replacement of each PyTorch function during tracing."""


@dataclass(frozen=True)
class AttentionOptions:
    """The options of `scaled_dot_product_attention`, in PyTorch's order."""

    attn_mask: Any = None
    dropout_p: float = 0.0
    is_causal: bool = False
    scale: float | None = None
    enable_gqa: bool = False


def attention(query: Any, key: Any, value: Any, *options: Any, **named: Any) -> Any:
    """softmax(query @ key^T * scale + mask) @ value"""
    given = AttentionOptions(*options, **named)
    mask = given.attn_mask
    if given.enable_gqa:
        times = query.shape[-3] // key.shape[-3]
        key, value = (t.repeat_interleave(times, -3) for t in (key, value))
    scores = query @ key.mT * (query.shape[-1] ** -0.5 if given.scale is None else given.scale)
    if given.is_causal:
        rows, columns = (torch.arange(n) for n in scores.shape[-2:])
        mask = columns <= rows.unsqueeze(1)
    if mask is not None and mask.dtype != torch.bool:
        scores, mask = scores + mask, None
    if mask is not None:
        scores = scores.masked_fill(~mask, -torch.inf)
    weights = scores.softmax(-1)
    if mask is not None:  # a row without keys is 0
        weights = weights.masked_fill(~mask.any(-1, keepdim=True), 0)
    return functional.dropout(weights, given.dropout_p) @ value


def roll(input: Any, shifts: Any, dims: Any = ()) -> Any:
    """out[i] = x[(i - shift) mod n] along each dim; all elements in row-major order without dims"""
    shifts, dims = ((v,) if isinstance(v, int) else tuple(v) for v in (shifts, dims))
    if not dims:
        return roll(input.reshape(-1), shifts, 0).reshape(input.shape)
    for shift, dim in zip(shifts, dims, strict=True):
        size = input.shape[dim]
        places = torch.remainder(torch.arange(size) - shift, torch.sym_max(size, 1))
        input = input.index_select(dim, places)
    return input


_COUNTED: dict[Any, Callable[..., Any]] = {
    functional.scaled_dot_product_attention: attention,
    torch.roll: roll,
    torch.Tensor.roll: roll,
}
"""Replacements for tensors of counted sizes, which these functions compare with 0."""


def _is_counted(tensor: Any) -> bool:
    return isinstance(tensor, torch.Tensor) and bool(free_unbacked_symbols(tensor))


class Traceable(TorchFunctionMode):
    """While active, replaces the functions that read tensor data."""

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        rewrite = _REWRITES.get(func)
        if func in _COUNTED and any(map(_is_counted, (*args, *kwargs.values()))):
            rewrite = _COUNTED[func]
        rewrite = symbolic_counts.replacement(func, args, kwargs) or rewrite
        if rewrite is None or (func is functional.one_hot and _has_classes(*args, **kwargs)):
            return func(*args, **kwargs)
        return rewrite(*args, **kwargs)


def _has_classes(input: Any, num_classes: Any = -1) -> bool:
    """Whether the number of classes is a number that PyTorch takes."""
    return type(num_classes) is int and num_classes >= 0
