"""LSTM, GRU and plain recurrent layers, kept whole: PyTorch would unroll them over time."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from ...builder import Builder, Tensor, recurrent, shapes
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


@dataclass(frozen=True)
class _Layers:
    """The weights of layers and directions, and their step."""

    weights: list[Weights]
    make: Callable[[Weights], recurrent.Step]
    directions: int

    def run(
        self, b: Builder, x: Tensor, states: list[Tensor], number: int
    ) -> tuple[Tensor, list[list[Tensor]]]:
        """The outputs of layer `number`, [time, batch, directions * size], and its final states."""
        outputs: list[Tensor] = []
        ends: list[list[Tensor]] = []
        for direction in range(self.directions):
            at = number * self.directions + direction
            start = [shapes.select(b, s, 0, at) for s in states]
            step = self.make(self.weights[at])
            out, end = recurrent.layer(b, x, start, self.weights[at], step, reverse=direction == 1)
            outputs.append(out)
            ends.append(end)
        return shapes.concatenate(b, outputs, 2) if len(outputs) > 1 else outputs[0], ends


def _run(
    call: Call,
    x: Tensor,
    states: list[Tensor],
    params: list[Tensor],
    settings: tuple[Any, ...],
    make: Callable[[Weights], recurrent.Step],
) -> tuple[Tensor, ...]:
    """
    Runs all layers; settings are has_biases, layers, dropout, train, bidirectional and batch_first.
    Each state is [layers * directions, batch, size]. Returns the outputs, then the final states.
    """
    biases, layers, dropout, train, bidirectional, batch_first = settings
    b = call.b
    lone = x.rank == 2
    if lone:
        axis = 0 if batch_first else 1
        x = shapes.unsqueeze(b, x, axis)
        states = [shapes.unsqueeze(b, s, 1) for s in states]
    if batch_first:
        x = shapes.transpose(b, x, [1, 0, 2])
    projected = len(states) == 2 and states[0].shape[-1] != states[1].shape[-1]
    layer = _Layers(_weights(params, biases, projected), make, 1 + bidirectional)
    last: list[list[Tensor]] = []
    for number in range(layers):
        x, ends = layer.run(b, x, states, number)
        last += ends
        if dropout and train and number < layers - 1:
            x = dropped(call, x, dropout, x.shape)[0]
    if batch_first:
        x = shapes.transpose(b, x, [1, 0, 2])
    results = [x, *(shapes.stack(b, [end[i] for end in last], 0) for i in range(len(states)))]
    shaped = [shapes.reshape(b, r, call.shape(i)) for i, r in enumerate(results)]
    return tuple(b.cast(r, call.dtype(i)) for i, r in enumerate(shaped))


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
    name = "tanh" if call.target is aten.rnn_tanh.input else "relu"
    return _run(call, x, [state], params, settings, lambda w: recurrent.rnn_step(w, name))


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
    name = "tanh" if call.target is aten.rnn_tanh_cell.default else "relu"
    return _cell(call, lambda w: recurrent.rnn_step(w, name), x, [state], params)[0]
