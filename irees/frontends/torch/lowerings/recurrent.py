"""LSTM, GRU and plain recurrent layers, kept whole: PyTorch would unroll them over time."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from ...builder import Scalar, Tensor, indexing, ordering, recurrent, shapes
from ...builder.dtypes import BOOL, I64
from ...builder.recurrent import Weights
from ..calls import Call, lowers
from ..operators import aten
from .random import dropped


def _weights(params: list[Tensor], biases: bool, projected: bool) -> list[Weights]:
    """Groups the parameters by layer and direction, in PyTorch's order."""
    count = 2 + 2 * biases + projected
    found: list[Weights] = []
    for i in range(0, len(params), count):
        group = params[i : i + count]
        first, second = (group[2], group[3]) if biases else (None, None)
        found.append(Weights(group[0], group[1], first, second, group[-1] if projected else None))
    return found


Make = Callable[[Weights], recurrent.Step]


@dataclass(frozen=True)
class _Layers:
    """The weights of layers and directions, and their step."""

    weights: list[Weights]
    make: Make
    directions: int
    dropout: float

    @staticmethod
    def of(
        params: list[Tensor], states: list[Tensor], settings: tuple[Any, ...], make: Make
    ) -> _Layers:
        """`settings` are has_biases, layers, dropout, train and bidirectional."""
        biases, _, dropout, train, bidirectional = settings
        projected = len(states) == 2 and states[0].shape[-1] != states[1].shape[-1]
        weights = _weights(params, biases, projected)
        return _Layers(weights, make, 1 + bidirectional, dropout if train else 0.0)

    def run(
        self, call: Call, x: Tensor, states: list[Tensor], active: Tensor | None = None
    ) -> tuple[Tensor, list[Tensor]]:
        """
        The outputs of the last layer, [time, batch, directions * size], and the final states of
        all, [layers * directions, batch, size]. Steps of which `active` is false do not count.
        """
        b, last = call.b, []
        for first in range(0, len(self.weights), self.directions):
            if first and self.dropout:
                x = dropped(call, x, self.dropout, x.shape)[0]
            outputs: list[Tensor] = []
            for direction in range(self.directions):
                weights = self.weights[first + direction]
                start = [shapes.select(b, s, 0, first + direction) for s in states]
                order = recurrent.Order(direction == 1, active)
                out, end = recurrent.layer(b, x, start, weights, self.make(weights), order)
                outputs.append(out)
                last.append(end)
            x = shapes.concatenate(b, outputs, 2) if len(outputs) > 1 else outputs[0]
        return x, [shapes.stack(b, [end[i] for end in last], 0) for i in range(len(states))]


def _run(
    call: Call,
    x: Tensor,
    states: list[Tensor],
    params: list[Tensor],
    settings: tuple[Any, ...],
    make: Make,
) -> tuple[Tensor, ...]:
    """
    Runs all layers; settings are those of `_Layers`, and batch_first. Each state is [layers *
    directions, batch, size]. Returns the outputs, then the final states.
    """
    *others, batch_first = settings
    b = call.b
    lone = x.rank == 2
    if lone:
        axis = 0 if batch_first else 1
        x = shapes.unsqueeze(b, x, axis)
        states = [shapes.unsqueeze(b, s, 1) for s in states]
    if batch_first:
        x = shapes.transpose(b, x, [1, 0, 2])
    x, last = _Layers.of(params, states, tuple(others), make).run(call, x, states)
    if batch_first:
        x = shapes.transpose(b, x, [1, 0, 2])
    shaped = [shapes.reshape(b, r, call.shape(i)) for i, r in enumerate([x, *last])]
    return tuple(b.cast(r, call.dtype(i)) for i, r in enumerate(shaped))


def _run_packed(
    call: Call, data: Tensor, batch_sizes: Tensor, states: list[Tensor], layers: _Layers
) -> tuple[Tensor, ...]:
    """
    Runs all layers on a packed sequence: `data` has the elements step by step, `batch_sizes[t]` of
    step t, those of the longest sequences first.
    """
    b = call.b
    time, batch = batch_sizes.shape[0], states[0].shape[1]
    sizes = b.cast(batch_sizes, I64)
    begins = b.map(lambda end, n: end - n, indexing.scan(b, sizes, 0, Scalar.__add__), sizes)
    columns = shapes.unsqueeze(b, shapes.iota(b, batch), 0)
    of_steps = [shapes.unsqueeze(b, t, 1) for t in (sizes, begins)]
    active = b.map(lambda i, n: i < n, columns, of_steps[0], dtype=BOOL)
    places = b.map(lambda i, begin: i + begin, columns, of_steps[1])
    x, last = layers.run(call, indexing.take(b, data, places, 0), states, active)
    rows = shapes.iota(b, data.shape[0])
    steps = b.map(lambda n: n - 1, ordering.search(b, begins, rows, right=True))
    first = indexing.take(b, begins, steps, 0)
    flat = b.map(
        lambda row, t, begin: t * t.body.as_index(batch).to(I64) + row - begin, rows, steps, first
    )
    x = indexing.take(b, shapes.reshape(b, x, [b.mul(time, batch), x.shape[2]]), flat, 0)
    return tuple(b.cast(r, call.dtype(i)) for i, r in enumerate([x, *last]))


@lowers(aten.lstm.data)
def lstm_of_packed(
    call: Call, data: Tensor, sizes: Tensor, states: list[Tensor], params: list[Tensor],
    *settings: Any,
) -> tuple[Tensor, ...]:  # fmt: skip
    """A stack of LSTM layers on a packed sequence"""
    layers = _Layers.of(params, states, settings, recurrent.lstm_step)
    return _run_packed(call, data, sizes, states, layers)


@lowers(aten.gru.data, aten.rnn_tanh.data, aten.rnn_relu.data)
def rnn_of_packed(
    call: Call, data: Tensor, sizes: Tensor, state: Tensor, params: list[Tensor], *settings: Any
) -> tuple[Tensor, ...]:
    """A stack of GRU or plain recurrent layers on a packed sequence"""
    make = recurrent.gru_step if call.target is aten.gru.data else _plain_step(call)
    return _run_packed(call, data, sizes, [state], _Layers.of(params, [state], settings, make))


def _plain_step(call: Call) -> Make:
    name = "tanh" if "tanh" in str(call.target) else "relu"
    return lambda w: recurrent.rnn_step(w, name)


@lowers(aten.lstm.input)
def lstm(
    call: Call, x: Tensor, states: list[Tensor], params: list[Tensor], *settings: Any
) -> tuple[Tensor, ...]:
    """A stack of LSTM layers"""
    return _run(call, x, list(states), params, settings, recurrent.lstm_step)


@lowers(aten.gru.input)
def gru(
    call: Call, x: Tensor, state: Tensor, params: list[Tensor], *settings: Any
) -> tuple[Tensor, ...]:
    """A stack of GRU layers"""
    return _run(call, x, [state], params, settings, recurrent.gru_step)


@lowers(aten.rnn_tanh.input, aten.rnn_relu.input)
def rnn(
    call: Call, x: Tensor, state: Tensor, params: list[Tensor], *settings: Any
) -> tuple[Tensor, ...]:
    """A stack of plain recurrent layers"""
    return _run(call, x, [state], params, settings, _plain_step(call))


def _cell(call: Call, make: Any, x: Tensor, states: list[Tensor], params: Any) -> list[Tensor]:
    from ...builder.contractions import linear

    b = call.b
    weights = Weights(params[0], params[1], params[2], params[3])
    wide = x.dtype.computed
    projected = b.cast(linear(b, x, weights.input, weights.input_bias), wide)
    new = make(weights)(b, projected, [b.cast(s, wide) for s in states])
    return [b.cast(t, call.dtype(i)) for i, t in enumerate(new)]


@lowers(aten.lstm_cell.default)
def lstm_cell(call: Call, x: Tensor, states: list[Tensor], *params: Any) -> tuple[Tensor, ...]:
    """One step of an LSTM"""
    return tuple(_cell(call, recurrent.lstm_step, x, list(states), params))


@lowers(aten.gru_cell.default)
def gru_cell(call: Call, x: Tensor, state: Tensor, *params: Any) -> Tensor:
    """One step of a GRU"""
    return _cell(call, recurrent.gru_step, x, [state], params)[0]


@lowers(aten.rnn_tanh_cell.default, aten.rnn_relu_cell.default)
def rnn_cell(call: Call, x: Tensor, state: Tensor, *params: Any) -> Tensor:
    """One step of a plain recurrent layer"""
    return _cell(call, _plain_step(call), x, [state], params)[0]
