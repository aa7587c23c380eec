"""Recurrent layers: one loop over time steps, with the input projection hoisted out of it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from .contractions import linear
from .core import Builder, Size, Tensor
from .loops import for_
from .scalars import Scalar
from .shapes import select, slice_axis, unsqueeze, update_slice

Step = Callable[[Builder, Tensor, list[Tensor]], list[Tensor]]
"""(projected input, state) -> new state; its first tensor is the output of the step."""


@dataclass(frozen=True)
class Weights:
    """
    Weights of one direction of a layer: `input` is [gates * hidden, features], `hidden` [gates *
    hidden, outputs]; biases are [gates * hidden] or None; `projection` is [outputs, hidden] or
    None.
    """

    input: Tensor
    hidden: Tensor
    input_bias: Tensor | None
    hidden_bias: Tensor | None
    projection: Tensor | None = None


def _gates(b: Builder, x: Tensor, count: int) -> list[Tensor]:
    """Splits the last dim into `count` equal parts."""
    width = x.shape[-1]
    assert isinstance(width, int)
    size = width // count
    return [slice_axis(b, x, x.rank - 1, i * size, size) for i in range(count)]


def lstm_step(w: Weights) -> Step:
    """
    i, f, g, o = split(x + W h + b); c' = sigmoid(f) c + sigmoid(i) tanh(g); h' = sigmoid(o)
    tanh(c'), multiplied by the projection if there is one.
    """

    def step(b: Builder, x: Tensor, state: list[Tensor]) -> list[Tensor]:
        h, c = state
        gates = b.map(lambda u, v: u + v, x, linear(b, h, w.hidden, w.hidden_bias))
        i, f, g, o = _gates(b, gates, 4)
        cell = b.map(lambda i, f, g, c: f.sigmoid() * c + i.sigmoid() * g.tanh(), i, f, g, c)
        out = b.map(lambda o, c: o.sigmoid() * c.tanh(), o, cell)
        if w.projection is not None:
            out = linear(b, out, w.projection)
        return [out, cell]

    return step


def gru_step(w: Weights) -> Step:
    """
    r, z = sigmoid(x + W h + b); n = tanh(x_n + r (W_n h + b_n)); h' = (1 - z) n + z h
    """

    def step(b: Builder, x: Tensor, state: list[Tensor]) -> list[Tensor]:
        (h,) = state
        gates = [*_gates(b, x, 3), *_gates(b, linear(b, h, w.hidden, w.hidden_bias), 3)]
        return [b.map(lambda *v: _gru_cell(v[:3], v[3:6], v[6]), *gates, h)]

    return step


def _gru_cell(x: Sequence[Scalar], y: Sequence[Scalar], h: Scalar) -> Scalar:
    """The next state, from r, z and n of the projected input and of the projected state."""
    (xr, xz, xn), (hr, hz, hn) = x, y
    reset, update = (xr + hr).sigmoid(), (xz + hz).sigmoid()
    new = (xn + reset * hn).tanh()
    return (h - new) * update + new


def rnn_step(w: Weights, activation: str) -> Step:
    """h' = tanh or relu of x + W h + b"""

    def step(b: Builder, x: Tensor, state: list[Tensor]) -> list[Tensor]:
        product = linear(b, state[0], w.hidden, w.hidden_bias)
        if activation == "tanh":
            return [b.map(lambda u, v: (u + v).tanh(), x, product)]
        return [b.map(lambda u, v: (u + v).maximum(0), x, product)]

    return step


@dataclass(frozen=True)
class Order:
    """
    The direction of the time steps. Where `active`, [time, batch], is false, a step leaves the
    states alone, and its outputs are undefined.
    """

    reverse: bool = False
    active: Tensor | None = None


FORWARD = Order()


def layer(
    b: Builder, x: Tensor, state: Sequence[Tensor], w: Weights, step: Step, order: Order = FORWARD
) -> tuple[Tensor, list[Tensor]]:
    """
    Runs all time steps of one direction: x is [time, batch, features], each state [batch, size].
    Returns the outputs of all steps and the last state. f16 and bf16 compute in f32.
    """
    wide = x.dtype.computed
    projected = b.cast(linear(b, x, w.input, w.input_bias), wide)
    time: Size = x.shape[0]
    width = state[0].shape[-1]
    outputs = b.empty(wide, [time, x.shape[1], width])

    def body(i, outputs, *values):  # type: ignore[no-untyped-def]
        at = b.sub(b.sub(time, 1), i) if order.reverse else i
        new = [b.cast(t, wide) for t in step(b, select(b, projected, 0, at), list(values))]
        if order.active is not None:
            runs = unsqueeze(b, select(b, order.active, 0, at), 1)
            new = [
                b.map(lambda a, v, u: a.where(v, u), runs, after, before, dtype=wide)
                for after, before in zip(new, values)
            ]
        whole = update_slice(b, outputs, unsqueeze(b, new[0], 0), [at, 0, 0])
        return [whole, *new]

    outputs, *last = for_(b, 0, time, [outputs, *(b.cast(s, wide) for s in state)], body)
    return outputs, last
