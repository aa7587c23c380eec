"""Losses that need their own lowering."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...builder import (
    Body,
    Builder,
    Scalar,
    Size,
    Tensor,
    contractions,
    indexing,
    loops,
    reductions,
    shapes,
)
from ...builder.dtypes import I64, INDEX
from ..calls import Call, lowers
from ..operators import aten

NEVER = float("-inf")


def _lengths(call: Call, lengths: Any) -> Tensor:
    """Converts lengths, as ints or a tensor, to a vector."""
    b = call.b
    if isinstance(lengths, Tensor):
        return b.cast(lengths, I64)
    return b.constant(np.array(lengths, np.int64), I64)


def _at_most(call: Call, lengths: Tensor, limit: Size, message: str) -> Tensor:
    """The lengths; aborts a run in which one is negative or exceeds the limit."""

    def inside(n: Scalar) -> Scalar:
        return (n >= 0) & (n <= n.body.as_index(limit).to(I64))

    return call.require(lengths, inside, message)


def _labels(call: Call, targets: Tensor, lengths: Tensor, classes: Size) -> Tensor:
    """The targets; aborts a run in which a label that a length includes is no class."""
    b = call.b
    if targets.rank == 1:
        total = reductions.sum_(b, lengths, [0])

    def checked(s: Body, label: Scalar, _: Scalar) -> Scalar:
        rows = targets.rank == 2
        count = s.extract(lengths, [s.index(0)]) if rows else s.extract(total, [])
        is_class = (label >= 0) & (label.to(INDEX) < s.as_index(classes))
        s.check(is_class | (s.index(targets.rank - 1) >= count.to(INDEX)), "a label is no class")
        return label

    maps = [b.broadcast_map(targets.shape, targets.shape)] * 2
    init = b.empty(targets.dtype, targets.shape)
    return b.structured([targets], [init], maps, [False] * targets.rank, checked)[0]


class _Alignments:
    """
    The target labels interleaved with blanks. An alignment follows them in order and may skip a
    blank between two different labels.
    """

    def __init__(self, b: Builder, targets: Tensor, lengths: Tensor, blank: int):
        if not targets.shape[-1]:
            # Without labels: one that no length reaches.
            targets = b.full(0, I64, [*targets.shape[:-1], 1])
        self.b, self.targets, self.lengths, self.blank = b, targets, lengths, blank
        self.first = indexing.scan(b, lengths, 0, lambda acc, v: acc + v)

    def label(self, s: Body, n: Scalar, place: Scalar, classes: Size) -> Scalar:
        """The label at position `place`, from 0 to 2 * length, clamped to the valid classes."""
        number = place.truncdiv(2)
        if self.targets.rank == 1:
            begin = s.extract(self.first, [n]) - s.extract(self.lengths, [n])
            number = number + begin.to(INDEX)
        width = s.as_index(self.targets.shape[-1])
        at = number.clamp(0, (width - 1).maximum(0))
        found = s.extract(self.targets, [at] if self.targets.rank == 1 else [n, at]).to(INDEX)
        label = (place.rem(2) == 0).where(self.blank, found)
        return label.clamp(0, s.as_index(classes) - 1)


def _log_add(values: list[Scalar]) -> Scalar:
    """log(sum(exp(v))); -inf if all values are -inf."""
    top = values[0]
    for v in values[1:]:
        top = top.maximum(v)
    shift = (top == NEVER).where(0.0, top)
    total = (values[0] - shift).exp()
    for v in values[1:]:
        total = total + (v - shift).exp()
    return total.log() + shift


@lowers(aten._ctc_loss.default, aten._ctc_loss.Tensor)
def ctc_loss(
    call: Call, log_probs: Tensor, targets: Tensor, input_lengths: Any, target_lengths: Any,
    blank: int, zero_infinity: bool,
) -> tuple[Tensor, Tensor]:  # fmt: skip
    """
    The negative log-probability of all alignments of targets with the time steps, and the table of
    forward log-probabilities: alpha[t, s] = log_probs[t, label(s)] + logaddexp of alpha[t - 1] at
    s, s - 1 and (if the labels differ) s - 2.
    """
    b = call.b
    lengths, times = (_lengths(call, v) for v in (target_lengths, input_lengths))
    time, batch, classes = log_probs.shape
    times = _at_most(call, times, time, "an input is longer than the log-probabilities")
    if targets.rank == 2:
        lengths = _at_most(call, lengths, targets.shape[1], "a target is longer than its row")
    lines = _Alignments(b, _labels(call, targets, lengths, classes), lengths, blank)
    wide, width = log_probs.dtype.computed, call.shape(1)[2]

    def probability(s: Body, t: Scalar, n: Scalar, place: Scalar) -> Scalar:
        return s.extract(log_probs, [t, n, lines.label(s, n, place, classes)]).to(wide)

    def start(s: Body, n: Scalar, place: Scalar) -> Scalar:
        inside = (place < 2) & (place.truncdiv(2) * 2 <= s.extract(lengths, [n]).to(INDEX) * 2 - 1)
        inside = (place == 0) | (inside & (s.extract(lengths, [n]) > 0))
        return inside.where(probability(s, s.number(0, INDEX), n, place), NEVER)

    first = b.from_function(start, [batch, width], wide)
    table = shapes.update_slice(
        b, b.full(NEVER, wide, [batch, time, width]), shapes.unsqueeze(b, first, 1), [0, 0, 0]
    )

    def step(t: Any, before: Tensor, table: Tensor) -> tuple[Tensor, Tensor]:
        def element(s: Body, n: Scalar, place: Scalar) -> Scalar:
            at = s.scalar(t)
            old = [
                (place >= k).where(s.extract(before, [n, (place - k).maximum(0)]), NEVER)
                for k in range(3)
            ]
            jumps = (place >= 2) & (place.rem(2) != 0)
            differ = lines.label(s, n, place, classes) != lines.label(
                s, n, (place - 2).maximum(0), classes
            )
            old[2] = (jumps & differ).where(old[2], NEVER)
            new = _log_add(old) + probability(s, at, n, place)
            inside = place <= s.extract(lengths, [n]).to(INDEX) * 2
            new = inside.where(new, NEVER)
            running = at < s.extract(times, [n]).to(INDEX)
            return running.where(new, old[0])

        now = b.from_function(element, [batch, width], wide)
        row = shapes.unsqueeze(b, now, 1)
        return now, shapes.update_slice(b, table, row, [0, t, 0])

    last, table = loops.for_(b, 1, time, [first, table], step)
    losses = _ends(b, last, lengths, times)
    return b.cast(losses, call.dtype()), b.cast(table, call.dtype(1))


@lowers(aten._ctc_loss_backward.default, aten._ctc_loss_backward.Tensor)
def ctc_loss_backward(
    call: Call, gradient: Tensor, log_probs: Tensor, targets: Tensor, input_lengths: Any,
    target_lengths: Any, losses: Tensor, alpha: Tensor, blank: int, zero_infinity: bool,
) -> Tensor:  # fmt: skip
    """
    exp(log_probs) less the probability that an alignment has a class at a time step, times the
    gradient; 0 after the last time step. An infinite loss gives 0 if `zero_infinity`, else NaN. The
    probability is that of all s with the class: exp(alpha[t, s] + beta[t, s] - log_probs + loss).
    """
    b = call.b
    lengths, times = (_lengths(call, v) for v in (target_lengths, input_lengths))
    lines = _Alignments(b, targets, lengths, blank)
    time, batch, classes = log_probs.shape
    wide, width = log_probs.dtype.computed, alpha.shape[2]
    beta = _backward_table(lines, log_probs, times, width)

    def share(s: Body, n: Scalar, t: Scalar, place: Scalar) -> Scalar:
        label = lines.label(s, n, place, classes)
        both = s.extract(alpha, [n, t, place]).to(wide) + s.extract(beta, [n, t, place])
        rest = s.extract(losses, [n]).to(wide) - s.extract(log_probs, [t, n, label]).to(wide)
        return (both == NEVER).where(0.0, (both + rest).exp())

    shares = b.from_function(share, [batch, time, width], wide)
    classes_of = b.from_function(
        lambda s, n, place, c: (lines.label(s, n, place, classes) == c).to(wide),
        [batch, width, classes], wide,
    )  # fmt: skip
    taken = contractions.matmul(b, shares, classes_of, wide)

    def element(s: Body, t: Scalar, n: Scalar, c: Scalar) -> Scalar:
        found = s.extract(log_probs, [t, n, c]).to(wide).exp() - s.extract(taken, [n, t, c])
        found = found * s.extract(gradient, [n]).to(wide)
        kept = t < s.extract(times, [n]).to(INDEX)
        is_possible = s.extract(losses, [n]) != float("inf")
        if zero_infinity:
            return (kept & is_possible).where(found, 0.0)
        return kept.where(is_possible.where(found, float("nan")), 0.0)

    return b.cast(b.from_function(element, [time, batch, classes], wide), call.dtype())


def _backward_table(lines: _Alignments, log_probs: Tensor, times: Tensor, width: Size) -> Tensor:
    """
    The table of backward log-probabilities: beta[t, s] = log_probs[t, label(s)] + logaddexp of
    beta[t + 1] at s, s + 1 and (if the labels differ) s + 2; -inf after the last time step.
    """
    b = lines.b
    time, batch, classes = log_probs.shape
    wide = log_probs.dtype.computed

    def step(i: Any, after: Tensor, table: Tensor) -> tuple[Tensor, Tensor]:
        t = b.sub(b.sub(time, 1), i)

        def element(s: Body, n: Scalar, place: Scalar) -> Scalar:
            at, end = s.scalar(t), s.extract(lines.lengths, [n]).to(INDEX) * 2
            last = s.extract(times, [n]).to(INDEX) - 1
            old = [
                (place + k <= end).where(
                    s.extract(after, [n, (place + k).minimum(s.as_index(width) - 1)]), NEVER
                )
                for k in range(3)
            ]
            differ = lines.label(s, n, place, classes) != lines.label(s, n, place + 2, classes)
            old[2] = ((place.rem(2) != 0) & differ).where(old[2], NEVER)
            ends = ((place == end) | (place + 1 == end)).where(old[0]._other(0.0), NEVER)
            found = (at == last).where(ends, _log_add(old))
            found = found + s.extract(log_probs, [at, n, lines.label(s, n, place, classes)]).to(
                wide
            )
            return ((place <= end) & (at <= last)).where(found, NEVER)

        now = b.from_function(element, [batch, width], wide)
        return now, shapes.update_slice(b, table, shapes.unsqueeze(b, now, 1), [0, t, 0])

    never = [b.full(NEVER, wide, [batch, width]), b.full(NEVER, wide, [batch, time, width])]
    return loops.for_(b, 0, time, never, step)[1]


def _ends(b: Builder, last: Tensor, lengths: Tensor, times: Tensor) -> Tensor:
    """-logaddexp of alpha at the last label and the blank after it, at the final time step."""

    def loss(s: Body, n: Scalar) -> Scalar:
        end = s.extract(lengths, [n]).to(INDEX) * 2
        end = end.clamp(0, s.as_index(last.shape[1]) - 1)
        values = [s.extract(last, [n, at]) for at in (end, (end - 1).maximum(0))]
        values[1] = (end == 0).where(NEVER, values[1])
        found = -_log_add(values)
        none = (end == 0).where(0.0, found._other(float("inf")))
        return (s.extract(times, [n]) == 0).where(none, found)

    return b.from_function(loss, [last.shape[0]], last.dtype)


# --- binary cross entropy ---


@lowers(aten.binary_cross_entropy.default)
def binary_cross_entropy(
    call: Call, x: Tensor, target: Tensor, weight: Tensor | None, reduction: int
) -> Tensor:
    """(y - 1) max(log1p(-x), -100) - y max(log(x), -100), times a weight; mean (1) or sum (2)"""

    def fraction(v: Scalar, name: str) -> None:
        v.body.check((v >= 0) & (v <= 1), f"all elements of {name} must be between 0 and 1")

    def loss(v: Scalar, y: Scalar, *weights: Scalar) -> Scalar:
        fraction(v, "the input")
        fraction(y, "the target")
        found = (y - 1) * (-v).log1p().maximum(-100.0) - y * v.log().maximum(-100.0)
        return found * weights[0] if weights else found

    given = [t for t in (x, target, weight) if t is not None]
    wide = call.dtype().computed
    losses = call.elementwise(loss, *given, dtype=wide)
    if reduction:
        average = reductions.mean if reduction == 1 else reductions.sum_
        losses = average(call.b, losses, list(range(losses.rank)), wide)
    return call.b.cast(losses, call.dtype())
