"""What PyTorch's kernels refuse, though its shape rules do not: dtypes and values."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch")

import irees  # noqa: E402
from irees.errors import IreesError, RuntimeTrap, UnsupportedError  # noqa: E402

F = torch.nn.functional
X, V = torch.ones(3, 3), torch.ones(3)
LABELS = torch.tensor([0, 1, 2])

DTYPES = {
    "mv": (torch.mv, X, V.double()),
    "layer_norm": (lambda x, w: F.layer_norm(x, (3,), w, w), X, V.double()),
    "group_norm": (lambda x, w: F.group_norm(x, 3, w, w), X, V.double()),
    "batch_norm": (lambda x, w: F.batch_norm(x, w, w, w, w), X, V.double()),
    "instance_norm": (lambda x, w: F.instance_norm(x, None, None, w, w), X[None], V.double()),
    "cross_entropy": (F.cross_entropy, X, LABELS.int()),
    "class_weights": (F.cross_entropy, X, LABELS, V.double()),
    "nll_loss": (F.nll_loss, X, LABELS.int()),
    "margin_loss": (F.multi_margin_loss, X, LABELS.int()),
    "index_add": (lambda x, i, s: x.index_add(0, i, s), X, LABELS, X.double()),
    "index_put": (lambda x, i, s: x.index_put((i,), s), X, LABELS, X.double()),
    "index_select": (lambda x, i: x.index_select(0, i), X, LABELS.short()),
    "masked_select": (torch.masked_select, X, X),
    "cdist": (torch.cdist, X, X.double()),
    "grid_sample": (F.grid_sample, X[None, None], torch.zeros(1, 2, 2, 2).double()),
    "cross": (torch.linalg.cross, X, X.double()),
    "complex": (torch.complex, X, X.double()),
    "gelu": (F.gelu, LABELS),
    "silu": (F.silu, LABELS),
    "softmax": (lambda x: x.softmax(0), LABELS),
    "bitwise_not": (torch.bitwise_not, X),
    "gcd": (torch.gcd, X, X),
    "bincount": (torch.bincount, V),
    "power": (lambda n: n**-1, LABELS + 1),
    "order_of_complex": (torch.lt, X.cfloat(), X.cfloat()),
    "product_of_bools": (torch.mm, X.bool(), X.bool()),
}  # fmt: skip


@pytest.mark.parametrize("name", DTYPES)
def test_dtypes_that_pytorch_refuses_are_refused(name):
    function, *arguments = DTYPES[name]
    with pytest.raises(Exception):  # noqa: B017, PT011
        function(*arguments)
    with pytest.raises(UnsupportedError, match=r"PyTorch refuses|cannot export"):
        irees.compile(function, tuple(arguments), target="reference")


@pytest.mark.parametrize("name", ["mv", "layer_norm", "cross_entropy", "gelu", "cross"])
def test_a_compiled_function_raises_what_eager_raises(name):
    function, *arguments = DTYPES[name]
    with pytest.raises(Exception) as eager:  # noqa: PT011
        function(*arguments)
    torch._dynamo.reset()
    with pytest.raises(type(eager.value)) as mine:
        torch.compile(function, backend="irees")(*arguments)
    assert str(mine.value) == str(eager.value)
    torch._dynamo.reset()
    with pytest.raises(Exception, match="PyTorch refuses"):
        torch.compile(function, backend="irees", options={"fallback": False})(*arguments)


MIXED = {
    "bfloat16_norm": (lambda x, w: F.layer_norm(x, (3,), w, w), X.bfloat16(), V),
    "int_indices": (F.embedding, LABELS.int(), X),
    "promotion": (torch.add, X, X.double()),
    "division": (lambda n, m: torch.div(n, m, rounding_mode="floor"), LABELS, LABELS + 1),
    "factor": (lambda n: n**2, LABELS),
    "mask": (lambda x, m: x.masked_fill(m, 0.0), X, X > 0),
}  # fmt: skip


@pytest.mark.parametrize("name", MIXED)
def test_dtypes_that_pytorch_takes_are_taken(name):
    function, *arguments = MIXED[name]
    got = irees.compile(function, tuple(arguments), target="reference")(*arguments)
    torch.testing.assert_close(got, function(*arguments))


def test_an_error_names_the_operator_its_dtypes_and_the_line():
    with pytest.raises(UnsupportedError) as found:
        irees.compile(lambda x, w: F.layer_norm(x, (3,), w), (X, V.double()))
    assert "PyTorch refuses layer_norm of float32, float64: mixed dtype" in str(found.value)
    assert "test_torch_kernel_checks.py" in str(found.value)


def test_a_refusal_leaves_the_generator_alone():
    before = torch.random.get_rng_state()
    with pytest.raises(UnsupportedError):
        irees.compile(lambda n: F.gelu(n) + torch.rand(3), (LABELS,))
    assert torch.equal(torch.random.get_rng_state(), before)


VALUES = {
    "multinomial": (lambda x: torch.multinomial(x, 1), [0.5, -0.5]),
    "multinomial_nan": (lambda x: torch.multinomial(x, 1), [0.5, float("nan")]),
    "multinomial_zero": (lambda x: torch.multinomial(x, 1), [0.0, 0.0]),
    "multinomial_replaced": (lambda x: torch.multinomial(x, 2, True), [0.0, -1.0]),
    "bernoulli": (torch.bernoulli, [0.5, 1.5]),
    "poisson": (torch.poisson, [1.0, -1.0]),
    "normal": (lambda x: torch.normal(torch.zeros(2), x), [1.0, -1.0]),
    "bincount": (lambda x: torch.bincount(x.long()), [1.0, -1.0]),
    "repeats": (lambda x: torch.repeat_interleave(x.long()), [1.0, -2.0]),
    "histogram": (torch.histc, [1.0, float("nan")]),
    "masked_scatter": (lambda x: x.masked_scatter(x > 0, torch.ones(1)), [1.0, 1.0]),
    "segments": (lambda x: torch.segment_reduce(x, "sum", lengths=x.long()), [1.0, 3.0]),
}  # fmt: skip


@pytest.mark.parametrize("name", VALUES)
def test_values_that_pytorch_refuses_are_refused(name):
    function, values = VALUES[name]
    bad = torch.tensor(values)
    with pytest.raises(RuntimeError):
        function(bad)
    program = irees.compile(function, (torch.ones(2) if name != "masked_scatter" else bad,))
    with pytest.raises(RuntimeTrap):
        program(bad)


def test_numbers_that_pytorch_refuses_are_refused():
    with pytest.raises(IreesError):
        irees.compile(lambda x: x.bernoulli(1.5), (X,))
