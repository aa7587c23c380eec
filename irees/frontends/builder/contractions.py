"""Contractions: matmul, linear, and einsum."""

from __future__ import annotations

from collections.abc import Sequence

from .core import Builder, Size, Tensor, projection
from .dtypes import DType
from .shapes import reshape, unsqueeze


def contract(b: Builder, spec: str, x: Tensor, y: Tensor, wide: DType | None = None) -> Tensor:
    """
    Sums x[...] * y[...] over the letters that the result lacks, as in "mk,nk->mn".

    Each letter occurs at most once in an operand. f16 and bf16 accumulate in f32 and the result has
    that dtype, unless `wide` gives another.
    """
    ins, out = spec.split("->")
    left, right = ins.split(",")
    order = out + "".join(c for c in dict.fromkeys(left + right) if c not in out)
    sizes: dict[str, Size] = {}
    for letters, t in ((left, x), (right, y)):
        for letter, size in zip(letters, t.shape, strict=True):
            if isinstance(size, int) or letter not in sizes:
                sizes[letter] = size
    wide = wide or x.dtype.computed
    init = b.full(0, wide, [sizes[c] for c in out])
    maps = [
        projection(len(order), tuple(order.index(c) for c in letters))
        for letters in (left, right, out)
    ]
    reduced = [c not in out for c in order]
    return b.structured(
        [x, y], [init], maps, reduced, lambda s, u, v, acc: acc + u.to(wide) * v.to(wide)
    )[0]


def matmul(b: Builder, x: Tensor, y: Tensor, wide: DType | None = None) -> Tensor:
    """numpy.matmul: vectors on either side, broadcast batch dims; f16, bf16 give f32 (`wide`)."""
    if x.rank == 1 and y.rank == 1:
        return contract(b, "k,k->", x, y, wide)
    if y.rank == 1:
        rows = _flat(b, x)
        return reshape(b, contract(b, "mk,k->m", rows, y, wide), x.shape[:-1])
    if x.rank == 1:
        batch = "abcdefgh"[: y.rank - 2]
        return contract(b, f"k,{batch}kn->{batch}n", x, y, wide)
    if y.rank == 2:
        rows = contract(b, "mk,kn->mn", _flat(b, x), y, wide)
        return reshape(b, rows, (*x.shape[:-1], y.shape[-1]))
    return _batched(b, x, y, wide)


def _flat(b: Builder, x: Tensor) -> Tensor:
    """Collapses all dims but the last."""
    return reshape(b, x, [b.product(x.shape[:-1]), x.shape[-1]])


def _batched(b: Builder, x: Tensor, y: Tensor, wide: DType | None) -> Tensor:
    """Matmul with batch dims; drops a batch dim of size 1 that broadcasts."""
    rank = max(x.rank, y.rank)
    while x.rank < rank:
        x = unsqueeze(b, x, 0)
    while y.rank < rank:
        y = unsqueeze(b, y, 0)
    batch = b.broadcast_shape(x.shape[:-2], y.shape[:-2])
    letters = "abcdefgh"[: rank - 2]
    sides: list[str] = []
    views: list[Tensor] = []
    for t, tail in ((x, "mk"), (y, "kn")):
        kept = [
            i for i, c in enumerate(t.shape[:-2])
            if not (isinstance(c, int) and c == 1) or (isinstance(batch[i], int) and batch[i] == 1)
        ]  # fmt: skip
        sides.append("".join(letters[i] for i in kept) + tail)
        views.append(reshape(b, t, [*(t.shape[i] for i in kept), *t.shape[-2:]]))
    spec = f"{sides[0]},{sides[1]}->{letters}mn"
    if set(letters) <= set(sides[0] + sides[1]):
        return contract(b, spec, views[0], views[1], wide)
    raise AssertionError(spec)


def linear(
    b: Builder, x: Tensor, weight: Tensor, bias: Tensor | None = None, wide: DType | None = None
) -> Tensor:
    """x @ weight^T + bias over the last dim of x; f16 and bf16 give f32 (`wide`)."""
    if weight.rank == 1:
        result = matmul(b, x, weight, wide)
    else:
        rows = contract(b, "mk,nk->mn", _flat(b, x), weight, wide)
        if bias is not None:
            rows = b.map(lambda v, c: v + c.to(v.dtype), rows, bias)
        return reshape(b, rows, (*x.shape[:-1], weight.shape[0]))
    return result if bias is None else b.map(lambda v, c: v + c.to(v.dtype), result, bias)


def outer(b: Builder, x: Tensor, y: Tensor) -> Tensor:
    """x[i] * y[j]"""
    return b.map(lambda u, v: u * v, unsqueeze(b, x, 1), y)


def einsum(b: Builder, operands: Sequence[str], out: str, tensors: Sequence[Tensor]) -> Tensor:
    """
    numpy.einsum where each letter occurs at most once per operand; contracts pairs from left to
    right.
    """
    letters, result = operands[0], tensors[0]
    for i in range(1, len(tensors)):
        later = set("".join(operands[i + 1 :])) | set(out)
        kept = "".join(c for c in dict.fromkeys(letters + operands[i]) if c in later)
        if i == len(tensors) - 1:
            kept = out
        result = contract(b, f"{letters},{operands[i]}->{kept}", result, tensors[i])
        letters = kept
    return result
