"""Scaled dot-product attention."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from ...builder import Scalar, Size, Tensor, contractions, reductions, same, shapes
from ...builder.attention import attention
from ...builder.dtypes import BOOL, I64, INDEX
from ..calls import Call, NotLowered, lowers
from ..operators import aten

BATCH = "abcdefgh"
"""Letters of the batch dims, heads last; g numbers the queries that share a key head."""


def scaled(call: Call, query: Tensor, given: float | None) -> tuple[Tensor, float]:
    """
    The query and the factor of the scores: 1 / sqrt(features) unless given. If the number of
    features is dynamic, the query is multiplied instead.
    """
    width = query.shape[-1]
    if given is not None:
        return query, given
    if isinstance(width, int):
        return query, 1 / math.sqrt(width) if width else 1.0
    wide = query.dtype.computed

    def body(v: Scalar) -> Scalar:
        return v.to(wide) / v.body.scalar(width, INDEX).to(I64).to(wide).sqrt()

    return call.b.map(body, query, dtype=query.dtype), 1.0


@dataclass
class Operands:
    """Query, key, value and mask with a letter per dim; a dim of size 1 that stretches has none."""

    call: Call
    query: Tensor
    key: Tensor
    value: Tensor
    mask: Tensor | None = None
    group: int = 1
    """Query heads per key head: the size of the last batch dim, or 1 without such a dim."""

    def grouped(self) -> Operands:
        """Splits the heads of the query by those of key and value, if these are fewer."""
        b, heads = self.call.b, [t.shape[-3] for t in (self.query, self.key, self.value)]
        if all(same(heads[0], n) for n in heads):
            return self
        known = [n for n in heads if isinstance(n, int)]
        if len(known) < 3 or known[1] != known[2] or known[1] == 0 or known[0] % known[1]:
            parts = (repeat_heads(self.call, t, heads[0]) for t in (self.key, self.value))
            return Operands(self.call, self.query, *parts, self.mask)
        group = known[0] // known[1]

        def split(t: Tensor) -> Tensor:
            if t.rank < 3 or t.shape[-3] != heads[0]:
                return shapes.unsqueeze(b, t, t.rank - 2) if t.rank > 2 else t
            return shapes.reshape(b, t, [*t.shape[:-3], heads[1], group, *t.shape[-2:]])

        query = shapes.reshape(
            b, self.query, [*self.query.shape[:-3], heads[1], group, *self.query.shape[-2:]]
        )
        key, value = (shapes.unsqueeze(b, t, t.rank - 2) for t in (self.key, self.value))
        mask = None if self.mask is None else split(self.mask)
        return Operands(self.call, query, key, value, mask, group)

    def attend(self, scale: float) -> Tensor:
        """The attention, with a group dim if there is one."""
        b = self.call.b
        batch = b.broadcast_shape(*(t.shape[:-2] for t in (self.query, self.key, self.value)))
        rows, keys = self.query.shape[-2], self.key.shape[-2]
        full: dict[str, Size] = dict(zip(BATCH, batch, strict=False))
        # Key and value lack the letters of dims that stretch; the query has all.
        query = shapes.broadcast_to(b, self.query, [*batch, *self.query.shape[-2:]])
        full |= {"m": rows, "n": keys, "k": query.shape[-1], "v": self.value.shape[-1]}
        names = BATCH[: len(batch)]
        short = "".join(c for c in names if _is_one(full[c]))
        one_row = self.group > 1 and isinstance(rows, int) and rows == 1
        if one_row:
            short += "m"
        out = "".join(c for c in names + "mv" if c not in short)
        sides = [
            _without(b, query, names + "mk", short),
            _without_stretched(b, self.key, names + "nk", full, short),
            _without_stretched(b, self.value, names + "nv", full, short),
        ]
        if self.mask is not None:
            sides.append(_without_stretched(b, self.mask, names + "mn", full, short))
        spec = ",".join(letters for letters, _ in sides) + "->" + out
        tensors = [t for _, t in sides]
        mask = tensors[3] if len(tensors) > 3 else None
        result = attention(
            b, spec, (tensors[0], tensors[1], tensors[2]), scale, mask, self.call.dtype()
        )
        return shapes.reshape(b, result, [*batch, rows, full["v"]])


def _without(b, t: Tensor, letters: str, dropped: str) -> tuple[str, Tensor]:
    kept = [i for i, c in enumerate(letters) if c not in dropped]
    if len(kept) == t.rank:
        return letters, t
    return "".join(letters[i] for i in kept), shapes.reshape(b, t, [t.shape[i] for i in kept])


def _without_stretched(
    b, t: Tensor, letters: str, full: dict[str, Size], short: str
) -> tuple[str, Tensor]:
    """Drops the letters in `short`, and the dims of size 1 of letters that are larger elsewhere."""
    letters = letters[len(letters) - t.rank :]
    stretched = "".join(
        c
        for c, size in zip(letters, t.shape, strict=True)
        if _is_one(size) and not _is_one(full[c])
    )
    return _without(b, t, letters, short + stretched)


def _is_one(size: Size) -> bool:
    return isinstance(size, int) and size == 1


def repeat_heads(call: Call, x: Tensor, heads: Size) -> Tensor:
    """Repeats each head of x for its group of query heads."""
    b, mine = call.b, x.shape[-3]
    if same(mine, heads):
        return x
    lead, tail = list(x.shape[:-2]), list(x.shape[-2:])
    wide = shapes.broadcast_to(b, shapes.reshape(b, x, [*lead, 1, *tail]),
                               [*lead, b.floordiv(heads, mine), *tail])  # fmt: skip
    return shapes.reshape(b, wide, [*lead[:-1], heads, *tail])


def _causal_mask(call: Call, rows: Size, keys: Size) -> Tensor:
    """i >= j for query i and key j"""
    return call.b.from_function(lambda s, i, j: i >= j, (rows, keys), BOOL)


@lowers(aten.scaled_dot_product_attention.default)
def scaled_dot_product_attention(
    call: Call, query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None,
    dropout: float, causal: bool, *, scale: float | None, enable_gqa: bool,
) -> Tensor:  # fmt: skip
    """softmax(query @ key^T * scale + mask) @ value"""
    if dropout:
        raise NotLowered
    if causal:
        mask = _causal_mask(call, query.shape[-2], key.shape[-2])
    rank = max(query.rank, key.rank, value.rank)
    query, factor = scaled(call, query, scale)
    sides = [_of_rank(call, t, rank) for t in (query, key, value)]
    operands = Operands(call, *sides, mask)
    if enable_gqa and rank > 2:
        operands = operands.grouped()
    result = operands.attend(factor)
    return shapes.reshape(call.b, result, call.shape())


def _of_rank(call: Call, x: Tensor, rank: int) -> Tensor:
    return shapes.reshape(call.b, x, [*[1] * (rank - x.rank), *x.shape])


@lowers(aten._scaled_dot_product_flash_attention_for_cpu.default)
def flash_attention(
    call: Call, query: Tensor, key: Tensor, value: Tensor, dropout: float, causal: bool,
    *, attn_mask: Tensor | None, scale: float | None,
) -> tuple[Tensor, Tensor | None]:  # fmt: skip
    """Attention, and the logsumexp of the scores for the backward pass"""
    if dropout:
        raise NotLowered
    if 1 in call.unused:
        result = scaled_dot_product_attention(
            call, query, key, value, attn_mask, dropout, causal, scale=scale, enable_gqa=True
        )
        return result, None
    key, value = (repeat_heads(call, t, query.shape[-3]) for t in (key, value))
    query, factor = scaled(call, query, scale)
    result, scores = _with_scores(call, (query, key, value), attn_mask, causal, factor)
    sums = reductions.logsumexp(call.b, scores, [scores.rank - 1])
    # PyTorch's shape of the logsumexp is (batch, heads, queries).
    return result, call.b.cast(sums, call.dtype(1))


def _with_scores(
    call: Call, operands: Sequence[Tensor], mask: Tensor | None, causal: bool, factor: float
) -> tuple[Tensor, Tensor]:
    """
    Attention and its scores, for the backward pass in training. It is not emitted as one op, so
    that logsumexp and softmax share the maximum and the sum of a row.
    """
    b, (query, key, value) = call.b, operands
    order = [*range(key.rank - 2), key.rank - 1, key.rank - 2]
    scores = contractions.matmul(b, query, shapes.transpose(b, key, order))
    wide = scores.dtype
    scores = b.map(lambda v: v * factor, scores)
    if causal:
        mask = _causal_mask(call, query.shape[-2], key.shape[-2])
    if mask is not None:
        scores = b.map(
            lambda v, m: m.where(v, float("-inf")) if m.dtype is BOOL else v + m.to(wide),
            scores, mask,
        )  # fmt: skip
    last = [scores.rank - 1]
    weights = reductions.softmax(b, scores, last[0])
    if mask is not None:
        top = reductions.keep_dims(b, scores, reductions.max_(b, scores, last), last)
        weights = b.map(lambda w, m: (m == float("-inf")).where(0.0, w), weights, top)
    if wide is not value.dtype:
        weights = b.cast(weights, value.dtype)
    return b.cast(contractions.matmul(b, weights, value), call.dtype()), scores
