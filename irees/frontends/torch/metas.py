"""
Shape rules and decompositions of operators that PyTorch cannot trace without them.

Each is registered only if PyTorch has none, so a newer PyTorch keeps its own. There is one
exception: PyTorch's decompositions of two margin losses differ from eager mode. They add terms that
are NaN, which eager leaves out. That of `multilabel_margin_loss_forward` also adds terms for the
labels after the first -1, and returns a vector for a vector.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from typing import Any

import torch
from torch._C import DispatchKey
from torch._subclasses.fake_impls import op_implementations_dict, register_op_impl

aten = torch.ops.aten

COMPOSITES: dict[Any, Any] = {}
"""Decomposition of each composite operator."""


def infers(op: Any) -> Callable[[Any], Any]:
    """Registers a function as the shape rule of an operator."""

    def register(function: Any) -> Any:
        if op not in op_implementations_dict:
            register_op_impl(op)(function)
        return function

    return register


def decomposes(op: Any) -> Callable[[Any], Any]:
    """Registers a function as the decomposition of a composite operator."""

    def register(function: Any) -> Any:
        key = DispatchKey.CompositeImplicitAutograd
        if key not in op.py_kernels:
            op.py_impl(key)(function)
        COMPOSITES[op] = function
        return function

    return register


def replaces(op: Any) -> Callable[[Any], Any]:
    """Registers a function in place of PyTorch's own decomposition of an operator."""

    def register(function: Any) -> Any:
        op.py_kernels[DispatchKey.Autograd] = function
        op._dispatch_cache.clear()
        COMPOSITES[op] = function
        return function

    return register


def _ctc_results(log_probs: Any, longest: Any) -> tuple[Any, Any]:
    batch = log_probs.shape[1]
    alpha = log_probs.new_empty((batch, log_probs.shape[0], 2 * longest + 1))
    return log_probs.new_empty((batch,)), alpha


@infers(aten._ctc_loss.default)
def ctc_loss(
    mode: Any, op: Any, log_probs: Any, targets: Any, input_lengths: Any,
    target_lengths: Sequence[int], blank: int = 0, zero_infinity: bool = False,
) -> tuple[Any, Any]:  # fmt: skip
    """The result shapes (batch,) and (batch, time, 2 * longest target + 1)."""
    return _ctc_results(log_probs, max(target_lengths, default=0))


@infers(aten._ctc_loss.Tensor)
def ctc_loss_tensor(
    mode: Any, op: Any, log_probs: Any, targets: Any, input_lengths: Any, target_lengths: Any,
    blank: int = 0, zero_infinity: bool = False,
) -> tuple[Any, Any]:  # fmt: skip
    """`ctc_loss` for target lengths that are tensors: assumes the longest possible target."""
    return _ctc_results(log_probs, targets.shape[-1])


def _order(op: Any, x: Any, *arguments: Any) -> list[int]:
    """The dims of a result by decreasing stride, for the sizes of the example inputs."""
    known = [
        [getattr(getattr(n, "node", None), "hint", n) for n in numbers]
        for numbers in (x.shape, x.stride())
    ]
    if None in [*known[0], *known[1]]:
        return list(range(x.dim()))
    strides = op(torch.empty_strided(*known, dtype=x.dtype, device="meta"), *arguments).stride()
    return sorted(range(x.dim()), key=lambda i: -strides[i])


@infers(aten._fft_r2c.default)
def fft_of_reals(
    mode: Any, op: Any, x: Any, dim: Sequence[int], normalization: int, onesided: bool
) -> Any:
    """
    The shape with n // 2 + 1 elements in the last transformed dim if `onesided`. PyTorch's rule
    resizes its result, which fixes n // 2 if n is symbolic; all else is left to it.
    """
    if all(isinstance(size, int) for size in x.shape) or not dim:
        return NotImplemented
    shape = list(x.shape)
    if onesided:
        shape[dim[-1]] = shape[dim[-1]] // 2 + 1
    order = _order(op, x, dim, normalization, onesided)
    found = x.new_empty([shape[i] for i in order], dtype=x.dtype.to_complex())
    return found.permute([order.index(i) for i in range(len(order))])


@infers(aten.linalg_lstsq.default)
def lstsq(
    mode: Any, op: Any, x: Any, y: Any, rcond: Any = None, *, driver: str | None = None
) -> tuple[Any, Any, Any, Any]:
    """The shapes for matrices of full rank; PyTorch has no residuals of others."""
    rows, columns = x.shape[-2:]
    is_vector = y.dim() == 1 or (x.dim() - 1 == y.dim() and y.shape == x.shape[:-1])
    right = y.unsqueeze(-1) if is_vector else y
    torch._check(
        x.dim() >= 2 and right.shape[:-1] == x.shape[:-1] and x.dtype == y.dtype,
        lambda: (
            f"lstsq: expected matrices of the same dtype, number and rows, but got "
            f"{list(x.shape)} and {list(y.shape)}"
        ),
    )
    torch._check(
        driver in (None, "gels", "gelsy", "gelsd", "gelss"),
        lambda: "lstsq: driver must be one of gels, gelsy, gelsd and gelss",
    )
    batch, count, real = x.shape[:-2], right.shape[-1], x.real.dtype
    shape = (*batch, columns) if is_vector else (*batch, columns, count)
    has_residuals = driver in ("gels", "gelsd", "gelss") and rows > columns
    has_values = driver in ("gelsd", "gelss")
    return (
        x.new_empty(shape),
        x.new_empty((*batch, count) if has_residuals else (0,), dtype=real),
        x.new_empty((0,) if driver == "gels" else batch, dtype=torch.int64),
        x.new_empty((*batch, min(rows, columns)) if has_values else (0,), dtype=real),
    )


@decomposes(aten.ctc_loss.IntList)
def ctc_loss_of_numbers(
    log_probs: Any, targets: Any, input_lengths: Sequence[int], target_lengths: Sequence[int],
    blank: int = 0, reduction: int = 1, zero_infinity: bool = False,
) -> Any:  # fmt: skip
    """The losses, their mean per label (1) or their sum (2), without filling a fake tensor."""
    lengths = input_lengths, target_lengths
    losses = aten._ctc_loss.default(log_probs, targets, *lengths, blank, zero_infinity)[0]
    if zero_infinity:
        losses = torch.where(losses == float("inf"), 0.0, losses)
    if reduction == 1:
        divisors = torch.tensor(target_lengths, dtype=losses.dtype, device=losses.device)
        return (losses / divisors.clamp(min=1)).mean()
    return losses.sum() if reduction == 2 else losses


@decomposes(aten.cov.default)
def cov(x: Any, *, correction: int = 1, fweights: Any = None, aweights: Any = None) -> Any:
    """The weighted covariance of rows; PyTorch's version checks the weights' values."""
    rows = x if x.dim() > 1 else x.reshape(1, -1)
    weights = fweights if aweights is None else aweights
    if fweights is not None and aweights is not None:
        weights = fweights * aweights
    total: Any = rows.shape[1] if weights is None else weights.sum()
    weighted = rows if weights is None else rows * weights
    centred = rows - torch.true_divide(weighted.sum(1), total).unsqueeze(1)
    norm: Any = total - correction
    if weights is not None and aweights is not None and correction != 0:
        norm = total - correction * (weights * aweights).sum() / total
    if isinstance(norm, torch.Tensor):
        norm = norm.clamp(min=0)
    elif isinstance(norm, int):
        norm = max(norm, 0)
    right = centred if weights is None else centred * weights
    return torch.true_divide(centred @ right.mT.conj(), norm).squeeze()


@decomposes(aten.narrow.Tensor)
def narrow(x: Any, dim: int, start: Any, length: Any) -> Any:
    """x[..., start : start + length, ...] with a tensor start."""
    first = start.reshape(()).long()
    first = torch.where(first < 0, first + x.shape[dim], first)
    return x.index_select(dim, torch.arange(length) + first)


def replication_pad_backward(gradient: Any, x: Any, amounts: Sequence[Any]) -> Any:
    """The gradient of replication padding: adds the border's gradient to the edges, dim by dim."""
    for i in range(len(amounts) // 2):
        dim, size, (low, high) = -1 - i, x.shape[-1 - i], amounts[2 * i : 2 * i + 2]
        # Negative amounts crop elements that have no gradient.
        start, kept = max(low, 0), size + min(low, 0) + min(high, 0)
        total = gradient.narrow(dim, start, kept)
        total = aten.constant_pad_nd(total, [0, 0] * i + [max(-low, 0), max(-high, 0)])
        for begin, length, before in ((0, low, 0), (start + kept, high, size - 1)):
            if length > 0:
                edge = gradient.narrow(dim, begin, length).sum(dim, keepdim=True)
                around = [0, 0] * i + [before, size - 1 - before]
                total = total + aten.constant_pad_nd(edge, around)
        gradient = total
    return gradient


def weight_norm_backward(gradient: Any, v: Any, g: Any, norms: Any, dim: int) -> tuple[Any, Any]:
    """The gradients of v and g for the weight v * g / |v|, with a norm per index of `dim`."""
    others = [d for d in range(v.dim()) if d != dim % v.dim()]
    sums = (gradient * v).sum(others, keepdim=True)
    slope = (g / norms) * (gradient - v * (sums / norms.square()))
    return slope.to(v.dtype), (sums / norms).to(g.dtype)


def _positive(x: Any) -> Any:
    """max(x, 0), and 0 for NaN"""
    return torch.where(x > 0, x, 0)


@replaces(aten.multi_margin_loss.default)
def multi_margin_loss(
    x: Any, target: Any, p: int = 1, margin: float = 1, weight: Any = None, reduction: int = 1
) -> Any:
    """
    sum of weight[t] max(0, margin - x[t] + x[i])^p / C over each class i but the label t. Returns
    the sum over rows (2), their mean (1), or one loss per row.
    """
    rows, labels = torch.atleast_2d(x), torch.atleast_1d(target)
    classes = rows.shape[1]
    torch._check(p in (1, 2), lambda: f"p must be 1 or 2, but is {p}")
    torch._check(
        rows.dim() == 2 and classes != 0 and labels.shape == rows.shape[:1],
        lambda: (
            f"expected a vector or a matrix and a label of each row, but got {list(x.shape)} "
            f"and {list(target.shape)}"
        ),
    )
    torch._check(weight is None or weight.numel() == classes, lambda: f"expected {classes} weights")
    labels = labels.unsqueeze(1)
    terms = _positive(margin - rows.gather(1, labels) + rows)
    terms = terms if p == 1 else terms * terms
    if weight is not None:
        terms = terms * torch.atleast_1d(weight)[labels]
    every = torch.arange(classes, device=x.device)
    losses = torch.where(every != labels, terms, 0).sum(1) / classes
    if reduction:
        return losses.mean() if reduction == 1 else losses.sum()
    return losses


@replaces(aten.multilabel_margin_loss_forward.default)
def multilabel_margin_loss_forward(x: Any, target: Any, reduction: int) -> tuple[Any, Any]:
    """
    sum of max(0, 1 - x[j] + x[i]) / C over each label j before the first -1 and each class i that
    is not a label. Returns the sum over rows (2), their mean (1), or one loss per row; a vector
    gives a scalar.
    """
    rows, labels = (torch.atleast_2d(t) for t in (x, target))
    classes = rows.shape[1]
    torch._check(
        x.dim() <= 2 and classes != 0 and x.shape == target.shape,
        lambda: (
            f"expected a vector or a matrix and labels of its shape, but got {list(x.shape)} "
            f"and {list(target.shape)}"
        ),
    )
    counts = (labels != -1).cumprod(1).bool()
    index = torch.where(counts, labels, 0)
    of_labels = rows.gather(1, index).unsqueeze(2)
    every = torch.arange(classes, device=x.device)
    is_label = ((index.unsqueeze(2) == every) & counts.unsqueeze(2)).any(1)
    terms = _positive(1.0 - of_labels + rows.unsqueeze(1)) / classes
    left_out = is_label.unsqueeze(1) | ~counts.unsqueeze(2)
    losses = torch.where(left_out, 0, terms).sum((1, 2))
    if reduction:
        losses = losses.mean() if reduction == 1 else losses.sum()
    else:
        losses = losses.reshape(x.shape[:-1])
    return losses, is_label.to(x.dtype).reshape(x.shape)


def recurrent_shapes(
    directions: int, batch_first: bool, x: Any, params: Sequence[Any], states: Sequence[Any]
) -> tuple[Any, ...]:
    """The outputs [time, batch, directions * size] and the final states of a recurrent layer."""
    batched, sequence = x.dim() == 3, x
    if batched and batch_first:
        sequence = x.transpose(0, 1)
    torch._check(
        x.shape[-1] == params[0].shape[1],
        lambda: f"the layer has {params[0].shape[1]} inputs, but is given {x.shape[-1]}",
    )
    if batched:
        torch._check(
            all(state.shape[1] == sequence.shape[1] for state in states),
            lambda: f"the batch is {sequence.shape[1]}, but that of a state is another",
        )
    out = x.new_empty((*sequence.shape[:-1], directions * states[0].shape[-1]))
    last = [s.new_empty(s.shape) for s in states]
    return (out.transpose(0, 1) if batched and batch_first else out, *last)


_PACKED = (aten.lstm.data, aten.gru.data, aten.rnn_tanh.data, aten.rnn_relu.data)
_RECURRENT = (
    aten.lstm.input, aten.gru.input, aten.rnn_tanh.input, aten.rnn_relu.input, *_PACKED
)  # fmt: skip
_RECURRENT_KEYS = (DispatchKey.Autograd, DispatchKey.CompositeImplicitAutograd)


def _layers_shapes(op: Any, x: Any, *arguments: Any) -> tuple[Any, ...]:
    """`recurrent_shapes` of an operator's arguments."""
    if op in _PACKED:
        _, hx, params, *_, bidirectional = arguments
        batch_first = False
    else:
        hx, params, *_, bidirectional, batch_first = arguments
    states = [hx] if isinstance(hx, torch.Tensor) else hx
    found = recurrent_shapes(1 + bidirectional, batch_first, x, params, states)
    if not torch.is_autocast_enabled("cpu") or x.dtype == torch.float64:
        return found
    # A GRU adds to its state, the others are computed from products, which autocast makes narrow.
    narrow = torch.get_autocast_dtype("cpu")
    dtype = states[0].dtype if op in (aten.gru.input, aten.gru.data) else narrow
    return tuple(t.to(dtype) for t in found)


@contextmanager
def recurrent_layers_kept(table: dict[Any, Any] | None = None) -> Generator[None]:
    """
    Computes only the shapes of recurrent layers on fake tensors. PyTorch runs all their steps, so
    it gives a dynamic length a fixed value, and takes long for a long sequence. `table` has the
    decompositions that PyTorch runs for symbolic sizes while it traces a graph again.
    """
    places = [(op, op.py_kernels, key) for op in _RECURRENT for key in _RECURRENT_KEYS]
    places += [] if table is None else [(op, table, op) for op in _RECURRENT]
    before = [(op, where, key, where[key]) for op, where, key in places if key in where]
    try:
        for op, where, key, _ in before:
            where[key] = functools.partial(_layers_shapes, op)
        for op in _RECURRENT:
            op._dispatch_cache.clear()
        yield
    finally:
        for _, where, key, function in before:
            where[key] = function
        for op in _RECURRENT:
            op._dispatch_cache.clear()


COMPOSITES |= {
    aten._weight_norm_interface_backward.default: weight_norm_backward,
    aten.replication_pad1d_backward.default: replication_pad_backward,
    aten.replication_pad2d_backward.default: replication_pad_backward,
    aten.replication_pad3d_backward.default: replication_pad_backward,
}
