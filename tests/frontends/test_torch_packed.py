"""Packed sequences: recurrent layers over sequences of several lengths, in one batch."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch")

import irees  # noqa: E402
from irees.errors import RuntimeTrap  # noqa: E402

nn = torch.nn
LENGTHS = torch.tensor([5, 2, 4])


class Packed(nn.Module):
    """Packs its argument, runs a layer, and pads the outputs."""

    def __init__(self, layer, is_sorted=False, first=True):
        super().__init__()
        self.layer, self.is_sorted, self.first = layer, is_sorted, first

    def forward(self, x, lengths, *states):
        packed = nn.utils.rnn.pack_padded_sequence(
            x, lengths, batch_first=self.first, enforce_sorted=self.is_sorted
        )
        out, last = self.layer(packed, *states)
        padded, counts = nn.utils.rnn.pad_packed_sequence(out, self.first, padding_value=-1.0)
        return padded, counts, last, out.data.sum()


LAYERS = {
    "lstm": lambda: nn.LSTM(3, 4),
    "lstm_both_ways": lambda: nn.LSTM(3, 4, 2, bidirectional=True),
    "lstm_projected": lambda: nn.LSTM(3, 4, proj_size=2),
    "gru": lambda: nn.GRU(3, 4, 2),
    "gru_both_ways": lambda: nn.GRU(3, 4, bidirectional=True, bias=False),
    "tanh": lambda: nn.RNN(3, 4),
    "relu": lambda: nn.RNN(3, 4, 2, nonlinearity="relu", bidirectional=True),
}


def inputs(seed, *shape):
    return torch.rand(shape, generator=torch.Generator().manual_seed(seed)) - 0.5


@pytest.mark.parametrize("name", LAYERS)
def test_a_layer_runs_each_sequence_to_its_end(name):
    torch.manual_seed(0)
    model = Packed(LAYERS[name]()).eval()
    program = irees.compile(model, (inputs(1, 3, 5, 3), LENGTHS), target="reference")
    for lengths in (LENGTHS, torch.tensor([1, 3, 3]), torch.tensor([5, 5, 5])):
        x = inputs(2, 3, 5, 3)
        with torch.no_grad():
            torch.testing.assert_close(program(x, lengths), model(x, lengths))


@pytest.mark.parametrize("target", ["cpu", "reference"])
def test_sorted_sequences_with_states(target):
    torch.manual_seed(0)
    model = Packed(nn.LSTM(3, 4), is_sorted=True, first=False).eval()
    states = (inputs(3, 1, 3, 4), inputs(4, 1, 3, 4))
    args = (inputs(5, 6, 3, 3), torch.tensor([6, 4, 1]), states)
    with torch.no_grad():
        want = model(*args)
    torch.testing.assert_close(irees.compile(model, args, target=target)(*args), want)


@pytest.mark.parametrize(
    ("is_sorted", "lengths"), [(False, [5, 0, 2]), (False, [7, 1, 2]), (True, [2, 4, 1])]
)
def test_lengths_that_pytorch_refuses_are_refused(is_sorted, lengths):
    model = Packed(nn.GRU(3, 4), is_sorted).eval()
    x = inputs(1, 3, 5, 3)
    program = irees.compile(model, (x, torch.tensor([5, 4, 2])), target="reference")
    with pytest.raises(RuntimeError):
        model(x, torch.tensor(lengths))
    with pytest.raises(RuntimeTrap):
        program(x, torch.tensor(lengths))


@pytest.mark.parametrize("total", [4, 9])
@pytest.mark.parametrize("batch_first", [False, True])
def test_a_total_length(total, batch_first):
    def padded(x, lengths):
        rnn = torch.nn.utils.rnn
        packed = rnn.pack_padded_sequence(x, lengths, batch_first, enforce_sorted=False)
        return rnn.pad_packed_sequence(packed, batch_first, -1.0, total_length=total)

    x = torch.arange(24.0).reshape((3, 4, 2) if batch_first else (4, 3, 2))
    program = irees.compile(padded, (x, torch.tensor([2, 4, 1])), target="reference")
    for lengths in ([2, 4, 1], [3, 3, 2]):
        given = torch.tensor(lengths)
        for found, expected in zip(program(x, given), padded(x, given), strict=True):
            assert torch.equal(found, expected)


def test_a_total_length_below_the_padded_one():
    def padded(x, lengths):
        rnn = torch.nn.utils.rnn
        packed = rnn.pack_padded_sequence(x, lengths, enforce_sorted=False)
        return rnn.pad_packed_sequence(packed, total_length=4)

    x = torch.arange(36.0).reshape(6, 3, 2)
    program = irees.compile(padded, (x, torch.tensor([2, 4, 1])), target="reference")
    for lengths in ([2, 4, 1], [3, 3, 2]):
        given = torch.tensor(lengths)
        for found, expected in zip(program(x, given), padded(x, given), strict=True):
            assert torch.equal(found, expected)
    with pytest.raises(ValueError, match="total_length"):
        padded(x, torch.tensor([5, 1, 1]))
    with pytest.raises(RuntimeTrap):
        program(x, torch.tensor([5, 1, 1]))


@pytest.mark.parametrize("layer", [nn.GRU, nn.LSTM])
def test_any_number_of_sequences(layer):
    batch, time = torch.export.Dim("batch"), torch.export.Dim("time")
    model = Packed(layer(3, 4)).eval()
    program = irees.compile(
        model, (inputs(1, 3, 5, 3), LENGTHS), target="reference",
        dynamic_shapes=({0: batch, 1: time}, {0: batch}),
    )  # fmt: skip
    for lengths in ([3, 1, 2, 7], [4], [2, 2]):
        x, given = inputs(2, len(lengths), 7, 3), torch.tensor(lengths)
        with torch.no_grad():
            torch.testing.assert_close(program(x, given), model(x, given))
