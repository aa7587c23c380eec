"""Functions that look at data while they are traced."""

from __future__ import annotations

import inspect

import numpy as np
import pytest

torch = pytest.importorskip("torch")

import irees  # noqa: E402
from irees.errors import IreesError, UnsupportedError  # noqa: E402
from irees.frontends.torch.rewriting import _COUNTED, _REWRITES, Traceable  # noqa: E402
from irees.frontends.torch.symbolic_counts import OF_COUNTS  # noqa: E402

functional = torch.nn.functional


@pytest.mark.parametrize("full", [False, True])
@pytest.mark.parametrize("reduction", ["none", "mean", "sum"])
def test_gaussian_nll_loss(full, reduction):
    """A variance is checked when the program runs."""
    x, y, v = torch.randn(3, 4), torch.randn(3, 4), torch.rand(3, 4)

    def program(x, y, v):
        return functional.gaussian_nll_loss(x, y, v, full=full, reduction=reduction)

    with Traceable():
        compiled = irees.compile(program, (x, y, v), target="reference")
    np.testing.assert_allclose(np.asarray(compiled(x, y, v)), program(x, y, v), rtol=1e-5)
    with pytest.raises(IreesError, match="negative"):
        compiled(x, y, -v - 1)


def test_one_hot_up_to_the_largest_class():
    """How many classes there are is known when the program runs."""
    x = torch.tensor([3, 0, 1])

    def program(x):
        return functional.one_hot(x)

    with Traceable():
        compiled = irees.compile(program, (x,), target="reference")
    for given in (x, torch.tensor([5, 2, 2])):
        np.testing.assert_array_equal(np.asarray(compiled(given)), program(given))


def test_unique_consecutive_from_the_last_dim():
    """A negative dim has the shape that it should."""
    x = torch.tensor([[1, 1, 2], [3, 3, 3]])

    def program(x):
        return torch.unique_consecutive(x, dim=-1)

    with Traceable():
        compiled = irees.compile(program, (x,), target="reference")
    np.testing.assert_array_equal(np.asarray(compiled(x)), program(x))


@pytest.mark.parametrize("inverse", [False, True])
@pytest.mark.parametrize("counts", [False, True])
def test_unique_consecutive_returns_what_is_asked_for(inverse, counts):
    """Places and counts are two results, either of which may be left out."""
    x = torch.tensor([[1, 1, 2], [2, 3, 3]])

    def program(x):
        return torch.unique_consecutive(x, return_inverse=inverse, return_counts=counts)

    want = program(x)
    got = irees.compile(program, (x,), target="reference")(x)
    pairs = zip(want, got, strict=True) if inverse or counts else [(want, got)]
    for w, g in pairs:
        np.testing.assert_array_equal(np.asarray(g), w)


@pytest.mark.parametrize("replaced", [False, True])
@pytest.mark.parametrize("count", [0, 1, 2, 3, 5])
def test_combinations(count, replaced):
    """More elements than there are can only be taken with replacement."""
    x = torch.tensor([3.0, 1.0, 4.0, 1.5])

    def program(x):
        return torch.combinations(x, count, with_replacement=replaced)

    got = irees.compile(program, (x,), target="reference")(x)
    np.testing.assert_array_equal(np.asarray(got), program(x))


@pytest.mark.parametrize("places", [[1, 3], [-2, 9, 1], [4, 2], [3, -7], []])
def test_tensor_split_at_places_that_are_data(places):
    """Places may be negative, behind the end, or out of order."""
    x = torch.arange(20.0).reshape(5, 4)
    places = torch.tensor(places, dtype=torch.int64)

    def program(x, places):
        return x.tensor_split(places), torch.tensor_split(x, places, dim=1)

    compiled = irees.compile(program, (x, places), target="reference")
    for got, want in zip(compiled(x, places), program(x, places), strict=True):
        for g, w in zip(got, want, strict=True):
            np.testing.assert_array_equal(np.asarray(g), w)


def test_tensor_split_by_name():
    """PyTorch names the places by their kind."""
    x, places = torch.arange(12.0).reshape(3, 4), torch.tensor([1, 3])

    def program(x, places):
        return (
            torch.tensor_split(x, sections=2),
            x.tensor_split(indices=(1, 2), dim=1),
            torch.tensor_split(x, tensor_indices_or_sections=places, dim=1),
        )

    compiled = irees.compile(program, (x, places), target="reference")
    for each in (places, torch.tensor([0, 2])):
        torch.testing.assert_close(compiled(x, each), program(x, each))


def test_replacements_take_all_names_of_arguments():
    """A replacement takes each overload's arguments by PyTorch's names."""
    for function, replacement in {**_REWRITES, **_COUNTED, **OF_COUNTS}.items():
        name = getattr(function, "__name__", "")
        is_method = getattr(torch.Tensor, name, None) is function
        for schema in torch._C._jit_get_schemas_for_operator(f"aten::{name}"):
            if not _is_called_by_name(function, schema):
                continue
            names = [argument.name for argument in schema.arguments]
            if is_method:
                own, names = (0,), names[1:]
            else:
                own, names = (), ["input" if n == "self" else n for n in names]
            signature = inspect.signature(replacement, follow_wrapped=False)
            signature.bind(*own, **dict.fromkeys(names, 0))


def _is_called_by_name(function, schema) -> bool:
    """Whether Python's names of an overload's arguments are those of its schema."""
    if any(part in schema.overload_name for part in ("out", "names", "tensors")):
        return False
    try:
        inspect.signature(function)
    except ValueError:  # a builtin
        return function is not torch.as_tensor
    return False


def test_convolution_backward_without_the_sizes_of_a_bias():
    """The gradient of a bias has as many elements as there are channels."""

    def program(g, x, w):
        return torch.ops.aten.convolution_backward(
            g, x, w, None, [1, 1], [2, 2], [1, 1], False, [0], 1, [True, True, True]
        )

    args = torch.randn(2, 3, 8, 8), torch.randn(2, 4, 6, 6), torch.randn(3, 4, 3, 3)
    got = irees.compile(program, args, target="reference")(*args)
    for mine, theirs in zip(got, program(*args), strict=True):
        np.testing.assert_allclose(np.asarray(mine), theirs, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("kinds", [(torch.int64, torch.float32), (torch.float32, torch.int64)])
def test_threshold_backward_promotes(kinds):
    """The result has the dtype that both operands promote to."""
    g, x = (torch.arange(-4, 8).reshape(3, 4).to(kind) for kind in kinds)

    def program(g, x):
        return torch.ops.aten.threshold_backward(g, x, 0.5)

    got = torch.as_tensor(irees.compile(program, (g, x), target="reference")(g, x))
    assert got.dtype == program(g, x).dtype
    assert torch.equal(got, program(g, x))


def test_a_dim_that_is_an_element_of_ones():
    """`item` of one integer is a number while a program is traced."""

    def program(x):
        first, one = torch.zeros((), dtype=torch.int64), torch.ones([1], dtype=torch.int32)
        return torch.ops.aten.cumsum(x, one.item()), x.sum(int(first)), torch.ones(1, 2)

    x = torch.randn(3, 4, 2)
    got = irees.compile(program, (x,), target="reference")(x)
    for mine, theirs in zip(got, program(x), strict=True):
        torch.testing.assert_close(torch.as_tensor(mine), theirs)


COUNTED = {
    "attention": lambda y: functional.scaled_dot_product_attention(y, y, y, scale=0.3),
    "causal": lambda y: functional.scaled_dot_product_attention(y, y, y, is_causal=True),
    "no keys": lambda y: functional.scaled_dot_product_attention(
        y, y, y, attn_mask=(y[:, :1] > 0).expand(-1, y.shape[0])
    ),
    "groups": lambda y: functional.scaled_dot_product_attention(
        y.reshape(-1, 4, 2).transpose(0, 1), *[y[:, :4].reshape(-1, 2, 2).transpose(0, 1)] * 2,
        enable_gqa=True,
    ),
    "roll": lambda y: y.roll((1, -2), (0, 1)),
    "roll all": lambda y: torch.roll(y, 3),
    "pool": lambda y: functional.max_pool1d(y.T, 3, 2, 1),
    "places": lambda y: functional.max_pool1d(y.T[None], 2, return_indices=True),
}  # fmt: skip


@pytest.mark.parametrize("name", COUNTED)
def test_functions_that_compare_a_size_with_0(name):
    x = torch.linspace(-1, 1, 72).reshape(9, 8).sin()
    mask = torch.arange(9) % 3 != 1

    def program(x, mask):
        return COUNTED[name](x[mask])

    compiled = irees.compile(program, (x, mask), target="reference")
    for each in (mask, ~mask, mask | True, *([mask & False] if "p" not in name else [])):
        torch.testing.assert_close(compiled(x, each), program(x, each))


def test_elements_are_written_at_indices_that_are_data():
    def written(x, i):
        y, z = x.clone(), x.clone()
        y[:, i] = 0.5
        y[i, 1:] += 1
        y[..., i + 1] = x[None, :, 0]
        z[i, i] = 3
        z[1, None, i] = x[:1, 0]
        z[i] = x[0]
        return y, z

    x = torch.randn(4, 8)
    program = irees.compile(written, (x, torch.tensor(2)), target="reference")
    for i in (2, 0, -1, -2):
        torch.testing.assert_close(program(x, torch.tensor(i)), written(x, torch.tensor(i)))


@pytest.mark.parametrize(
    "function",
    [
        torch.equal,
        torch.allclose,
        lambda x, y: x.allclose(y, atol=0.5),
        lambda x, y: torch.is_nonzero((x - y).sum()),
        lambda x, y: (x.equal(y), x + y),
    ],
)
def test_answers_that_are_bools_of_data(function):
    x, y = torch.tensor([1.0, 2.0]), torch.tensor([1.0, 2.25])
    program = irees.compile(function, (x, y), target="reference")
    for pair in ((x, y), (x, x)):
        got, want = program(*pair), function(*pair)
        assert type(got) is type(want)
        torch.testing.assert_close(got, want)


def test_tensors_of_other_sizes_are_not_equal():
    program = irees.compile(torch.equal, (torch.ones(2), torch.ones(3)), target="reference")
    assert program(torch.ones(2), torch.ones(3)) is False


@pytest.mark.parametrize("kind", [torch.nn.BatchNorm1d, torch.nn.BatchNorm2d])
def test_batch_norms_average_over_all_batches(kind):
    """Without a momentum: each batch counts as much as any other."""
    norm = kind(3, momentum=None).train()
    shape = (4, 3) if kind is torch.nn.BatchNorm1d else (4, 3, 2, 2)
    batches = [torch.rand(shape) + i for i in range(3)]
    program = irees.compile(norm, (batches[0],), target="reference")
    for x in batches:
        torch.testing.assert_close(program(x), norm(x))
    for name, want in norm.named_buffers():
        torch.testing.assert_close(torch.as_tensor(program.state[name]), want)


@pytest.mark.parametrize(
    "branch", [lambda x: x if x.sum() > 0 else -x, lambda x: [row + 1 for row in x[x > 0]]]
)
def test_python_code_that_depends_on_values_has_a_way_out(branch):
    with pytest.raises(UnsupportedError, match=r"use torch.cond .*torch.compile"):
        irees.compile(branch, (torch.ones(3),), target="reference")
