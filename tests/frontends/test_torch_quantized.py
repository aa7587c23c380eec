"""Quantized tensors of PyTorch as integers, against eager."""

from __future__ import annotations

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from torch.utils._pytree import tree_leaves  # noqa: E402

import irees  # noqa: E402
from irees.errors import UnsupportedError  # noqa: E402

KINDS = [torch.qint8, torch.quint8, torch.qint32]
EDGES = [0.5, 1.5, 2.5, -0.5, -1.5, 126.5, 127.5, -128.5, 252.5, 1e10, -1e10, 2147483520.0, 3e9]
EDGES += [float("inf"), float("-inf"), -0.0]


def check(program, *args):
    """Compares a program with eager, bit by bit, interpreted and through C."""
    want = program(*args)
    for target in ("reference", "cpu"):
        got = irees.compile(program, args, target=target)(*args)
        for mine, theirs in zip(tree_leaves(got), tree_leaves(want), strict=True):
            np.testing.assert_array_equal(np.asarray(mine), np.asarray(theirs), err_msg=target)
            assert np.asarray(mine).dtype == np.asarray(theirs).dtype


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("scale", "zero"), [(1.0, 3), (0.25, 0), (0.0215, 100)])
def test_quantize_rounds_and_saturates_as_pytorch_does(kind, scale, zero):
    """Ties round to even, what is too large becomes the largest integer."""
    x = torch.cat([torch.tensor(EDGES), torch.randn(55) * 200, torch.randn(55) * 2])
    if scale == 0.25:
        x = torch.cat([x, torch.tensor(EDGES) * scale])

    def program(x):
        q = torch.quantize_per_tensor(x, scale, zero, kind)
        return q.int_repr(), q.dequantize(), torch.dequantize(q)

    check(program, x)


@pytest.mark.parametrize("kind", [torch.qint8, torch.quint8])
@pytest.mark.parametrize("axis", [0, 1, -1])
def test_quantize_with_numbers_of_each_channel(kind, axis):
    """Each slice has its scale and zero point."""
    x = torch.randn(3, 4, 5) * 30
    scales, zeros = torch.rand(x.shape[axis]) + 0.1, torch.randint(0, 9, (x.shape[axis],))

    def program(x, scales, zeros):
        q = torch.quantize_per_channel(x, scales, zeros, axis % 3, kind)
        return q.int_repr(), q.dequantize()

    check(program, x, scales, zeros)


@pytest.mark.parametrize("kind", [torch.int8, torch.uint8, torch.int32])
def test_integers_become_quantized_tensors(kind):
    """The zero point is subtracted in i32."""
    limits = torch.iinfo(kind)
    x = torch.randint(limits.min + 200 * (kind == torch.int32), limits.max, (7, 4)).to(kind)

    def program(x):
        q = torch._make_per_tensor_quantized_tensor(x, 0.0215, 100)
        return q.dequantize(), torch.relu(q).dequantize(), q.reshape(4, 7).int_repr()

    check(program, x)


def test_functions_of_a_known_range_have_scales_of_their_own():
    """tanh and sigmoid of quantized tensors."""

    def program(x):
        found = []
        for kind, zero in ((torch.qint8, 5), (torch.quint8, 128)):
            q = torch.quantize_per_tensor(x, 0.02, zero, kind)
            found += [torch.tanh(q).int_repr(), torch.sigmoid(q).dequantize()]
        return found

    check(program, torch.randn(200) * 3)


def quantized_model(*layers, per_channel=False):
    """A model that PyTorch has quantized after a look at random inputs."""
    torch.manual_seed(0)
    stubs = (torch.ao.quantization.QuantStub(), torch.ao.quantization.DeQuantStub())
    model = torch.nn.Sequential(stubs[0], *layers, stubs[1]).eval()
    kinds = torch.ao.quantization.observer
    weight = kinds.PerChannelMinMaxObserver if per_channel else kinds.MinMaxObserver
    scheme = torch.per_channel_symmetric if per_channel else torch.per_tensor_symmetric
    # Without VNNI, FBGEMM adds two products of bytes in 16 bits and saturates. Weights
    # of 7 bits keep eager exact on every processor: 2 * 255 * 63 < 2**15.
    model.qconfig = torch.ao.quantization.QConfig(
        activation=kinds.HistogramObserver.with_args(reduce_range=False),
        weight=weight.with_args(dtype=torch.qint8, qscheme=scheme, quant_min=-63, quant_max=63),
    )
    torch.ao.quantization.prepare(model, inplace=True)
    for _ in range(8):
        model(torch.randn(5, 16))
    return torch.ao.quantization.convert(model, inplace=True)


@pytest.mark.parametrize("per_channel", [False, True])
@pytest.mark.parametrize("bias", [False, True])
def test_quantized_modules(per_channel, bias):
    """Linear layers multiply integers; the model keeps its modules."""
    layers = (
        torch.nn.Linear(16, 8, bias=bias),
        torch.nn.Tanh(),
        torch.nn.Linear(8, 4),
        torch.nn.ReLU(),
    )
    model = quantized_model(*layers, per_channel=per_channel)
    before = [type(m) for m in model.modules()]

    for shape in ((6, 16), (2, 3, 16)):
        check(model, torch.randn(shape))
        compiled = irees.compile(model, (torch.randn(shape),), target="reference")
        x = torch.randn(shape) * 2
        np.testing.assert_array_equal(np.asarray(compiled(x)), model(x))
    assert [type(m) for m in model.modules()] == before


def test_a_linear_layer_with_a_fused_relu():
    """The smallest result is the zero point."""
    fused = torch.ao.nn.intrinsic.LinearReLU(torch.nn.Linear(16, 8), torch.nn.ReLU())
    model = quantized_model(fused)
    assert type(model[1]) is torch.ao.nn.intrinsic.quantized.LinearReLU
    check(model, torch.randn(6, 16) * 2)


def test_other_functions_are_refused_by_name():
    """A function that is not in the table is an error that says what to do."""
    with pytest.raises(UnsupportedError, match="exp of a quantized tensor is not supported"):
        irees.compile(
            lambda x: torch.exp(torch.quantize_per_tensor(x, 0.1, 0, torch.qint8)),
            (torch.randn(3),),
            target="reference",
        )


class Embedded(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = torch.nn.LSTM(4, 3)

    def forward(self, x):
        return self.layer(x)[0]


def dynamic(model, *kinds, **options):
    """A model with the layers of these kinds quantized, whose inputs are quantized at run time."""
    return torch.ao.quantization.quantize_dynamic(model.eval(), set(kinds), **options)


@pytest.mark.parametrize("kind", [torch.qint8, torch.float16])
@pytest.mark.parametrize("bias", [False, True])
def test_layers_that_quantize_their_input(kind, bias):
    nn = torch.nn
    layers = nn.Linear(24, 8, bias=bias), nn.Tanh(), nn.Linear(8, 5, bias=bias)
    model = dynamic(nn.Sequential(*layers), nn.Linear, dtype=kind)
    program = irees.compile(model, (torch.randn(3, 24),), target="reference")
    for x in (
        torch.randn(3, 24) * 4 + 1,
        torch.rand(3, 24),
        -torch.rand(3, 24),
        torch.zeros(3, 24),
    ):
        torch.testing.assert_close(program(x), model(x).detach(), rtol=1e-4, atol=1e-5)


def test_weights_with_scales_of_each_channel_and_inputs_of_any_rank():
    per_channel = {torch.nn.Linear: torch.ao.quantization.per_channel_dynamic_qconfig}
    linear = torch.nn.Sequential(torch.nn.Linear(24, 8)).eval()
    model = torch.ao.quantization.quantize_dynamic(linear, per_channel)
    x = torch.randn(2, 3, 24)
    got = irees.compile(model, (x,), target="reference")(x)
    torch.testing.assert_close(got, model(x).detach(), rtol=1e-4, atol=1e-5)


def test_packed_weights_of_other_modules_are_refused():
    model = dynamic(Embedded(), torch.nn.LSTM)
    with pytest.raises(UnsupportedError, match=r"packed weights of a quantized module; leave"):
        irees.compile(model, (torch.randn(5, 2, 4),))


def rows(x, w, s):
    return x @ (w.float() * s[:, :1]).T


def groups(x, w, s):
    count = s.shape[1]
    return x @ ((w.float().view(len(w), count, -1) - 3) * s[..., None]).view(w.shape).T


def columns(x, w, s):
    return x @ (w.T.float() * s[:, 0])


def nibbles(x, w, s):
    bits = w.view(torch.uint8)[:, : w.shape[1] // 2]
    both = torch.stack([bits & 15, bits >> 4], -1).flatten(-2).float() - 8
    return x @ (both.view(len(w), s.shape[1], -1) * s[..., None]).view(w.shape).T


@pytest.mark.parametrize("target", ["cpu", "cuda-emulated"])
@pytest.mark.parametrize("batch", [1, 3, None])
@pytest.mark.parametrize(
    "product", [rows, groups, columns, nibbles], ids=lambda each: each.__name__
)
def test_products_with_quantized_weights(product, batch, target):
    """A scale for each row, group or column of the weights; a vector, a batch, and a dynamic one."""
    g = torch.Generator().manual_seed(0)
    w = torch.randint(-128, 128, (48, 96), dtype=torch.int8, generator=g)
    s, x = torch.rand(48, 6, generator=g), torch.randn(batch or 5, 96, generator=g)
    sizes = ({0: torch.export.Dim("batch", max=64)}, None, None) if batch is None else None
    program = irees.compile(product, (x, w, s), dynamic_shapes=sizes, target=target)
    torch.testing.assert_close(program(x, w, s), product(x, w, s), rtol=1e-4, atol=1e-3)
