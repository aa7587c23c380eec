"""Decompositions of gradients that PyTorch has only as kernels."""

from __future__ import annotations

from collections.abc import Callable
from math import inf, prod
from typing import Any

import torch

from irees.errors import UnsupportedError

aten = torch.ops.aten

GRADIENTS: dict[Any, Any] = {}
"""The decomposition of each operator."""


def decomposes(op: Any) -> Callable[[Any], Any]:
    """Registers a function as the decomposition of an operator."""

    def register(function: Any) -> Any:
        GRADIENTS[op] = function
        return function

    return register


@decomposes(aten.masked_scatter_backward.default)
def masked_scatter_backward(gradient: Any, mask: Any, sizes: Any) -> Any:
    """The gradients of the elements that `masked_scatter` took from its source, 0 for the rest."""
    count = prod(sizes)
    chosen = mask.expand_as(gradient).reshape(-1)
    places = torch.where(chosen, chosen.cumsum(0) - 1, count)
    taken = gradient.new_zeros(count + 1).index_put((places,), gradient.reshape(-1))
    return taken[:count].view(sizes)


@decomposes(aten._cdist_backward.default)
def cdist_backward(gradient: Any, x: Any, y: Any, p: float, distances: Any) -> Any:
    """The gradient of the rows of x in `cdist(x, y, p)`; 0 for rows at distance 0."""
    apart = x.unsqueeze(-2) - y.unsqueeze(-3)
    distance, slope = distances.unsqueeze(-1), gradient.unsqueeze(-1)
    sign, size = apart.sign(), apart.abs()
    if p == 0:
        terms = torch.zeros_like(apart)
    elif p == 1:
        terms = slope * sign
    elif p == inf:
        terms = slope * sign * (size == distance)
    elif p == 2:
        terms = torch.where(distance == 0, 0, slope * apart / distance)
    else:
        powers = sign * size.pow(p - 1) * slope / distance.pow(p - 1)
        terms = torch.where((distance == 0) | (size == 0), 0, powers)
    return terms.sum(-2)


def _bags(indices: Any, offsets: Any) -> Any:
    """The bag of each index; PyTorch leaves them out where its kernel does not need them."""
    places = torch.arange(indices.shape[0], device=indices.device, dtype=offsets.dtype)
    return torch.searchsorted(offsets, places, right=True) - 1


@decomposes(aten._embedding_bag_per_sample_weights_backward.default)
def embedding_bag_weights_backward(
    gradient: Any, table: Any, indices: Any, offsets: Any, bags: Any, mode: int, padding: int = -1
) -> Any:
    """The gradients of the factors of the rows in `embedding_bag`; 0 for rows of padding."""
    products = (gradient[_bags(indices, offsets)] * table[indices]).sum(1)
    return torch.where(indices == padding, 0, products)


@decomposes(aten._embedding_bag_backward.default)
def embedding_bag_backward(
    gradient: Any, indices: Any, offsets: Any, bags: Any, sizes: Any, largest: Any, rows: Any,
    by_frequency: bool, mode: int, sparse: bool, weights: Any, padding: int = -1,
) -> Any:  # fmt: skip
    """The gradient of the table of `embedding_bag` for sums (0), means (1) or maxima (2)."""
    if by_frequency:
        raise UnsupportedError("gradients of bags that are scaled by frequency are not supported")
    table = gradient.new_zeros((rows, gradient.shape[-1]))
    if mode == 2:
        terms = torch.where((sizes == 0).unsqueeze(1), 0, gradient)
        return table.scatter_add(0, largest.long(), terms)
    bags = _bags(indices, offsets)
    terms = gradient[bags]
    if weights is not None:
        terms = terms * weights.unsqueeze(1)
    if mode == 1:
        terms = terms / sizes[bags].unsqueeze(1).to(terms.dtype)
    terms = torch.where((indices == padding).unsqueeze(1), 0, terms)
    return table.index_add(0, indices, terms)
