"""Operators that write, in programs where somebody else sees the memory and where nobody does."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch")

import irees  # noqa: E402
from irees.frontends.torch.functionalizing import with_views_shown, without_private_writes  # noqa: E402

functional = torch.nn.functional


def chained(x):
    y = (x * 2).relu_()
    y.add_(x).mul_(3)
    return y, y - 1


def read_before(x):
    y = x * 2
    before = y + 1
    y.sub_(x)
    return before, y


def masked(x):
    y = x.sin()
    y.masked_fill_(x > 0, 7.0)
    return y.clamp_(min=-0.5)


def view_after(x):
    y = (x + 1).exp_()
    return y[0], y.t()


PRIVATE = {f.__name__: f for f in (chained, read_before, masked, view_after)}


def view_before(x):
    y = x * 2
    row = y[0]
    y.add_(1)
    return row, y


def through_a_view(x):
    y = x * 2
    y[1:].mul_(5)
    return y


def an_argument(x):
    x.add_(1)
    return x * 2


def a_dropout_that_does_nothing(x):
    y = x * 2
    same = functional.dropout(y, 0.5, training=False)
    y.add_(1)
    return same


def a_view_of_an_argument(x):
    y = x.reshape(-1)
    y.relu_()
    return y.sum()


def a_view_of_einsum(x):
    y = x * 2
    turned = torch.einsum("ij->ji", y)
    y.mul_(3)
    return turned


def views_of_meshgrid(x):
    y = x[0] * 2
    first, second = torch.meshgrid(y, y + 1, indexing="ij")
    y.add_(1)
    return first, second


def the_same_by_type_as(x):
    y = x * 2
    same = y.type_as(x)
    y.add_(1)
    return same * 2


def a_wider_operand(x):
    y = (x * 4).half()
    y.add_(x)
    return y.float()


SHARED = {
    f.__name__: f
    for f in (
        view_before, through_a_view, an_argument, a_view_of_an_argument, a_view_of_einsum,
        views_of_meshgrid, a_wider_operand,
    )
}  # fmt: skip
THE_SAME = {f.__name__: f for f in (a_dropout_that_does_nothing, the_same_by_type_as)}
"""Here a second name is no other tensor, once the operator that returns its argument is gone."""


def exported(program):
    torch.manual_seed(0)
    return torch.export.export(irees.frontends.torch.exporting.as_module(program), (made(),))


def made():
    return torch.linspace(-2, 2, 12).reshape(3, 4)


@pytest.mark.parametrize("name", [*PRIVATE, *SHARED, *THE_SAME])
def test_values_are_those_of_eager(name):
    program = {**PRIVATE, **SHARED, **THE_SAME}[name]
    mine, theirs = made(), made()
    got, want = irees.compile(program, (made(),))(mine), program(theirs)
    torch.testing.assert_close(got, want)
    torch.testing.assert_close(mine, theirs)


@pytest.mark.parametrize("name", PRIVATE)
def test_writes_that_nobody_sees_are_replaced(name):
    found = without_private_writes(exported(PRIVATE[name]))
    assert found is not None
    assert not [
        n for n in found.graph.nodes if str(n.target).split(".")[1:2] and "_." in str(n.target)
    ]


@pytest.mark.parametrize("name", SHARED)
def test_other_writes_are_left_to_pytorch(name):
    assert without_private_writes(with_views_shown(exported(SHARED[name]))) is None


def test_the_exported_program_is_left_as_it_was():
    program = exported(chained)
    text = str(program.graph)
    assert without_private_writes(program) is not None
    assert str(program.graph) == text


def test_a_program_that_writes_and_has_sizes_by_values():
    def program(x, y):
        x.add_(1)
        return torch.argwhere(y), torch.where(y > 0)[0], torch.einsum("ij->ji", x), x[y > 0]

    x, y = torch.randn(3, 4), torch.randn(3, 4).round()
    found = irees.compile(program, (x.clone(), y))(x.clone(), y)
    for mine, theirs in zip(found, program(x.clone(), y), strict=True):
        torch.testing.assert_close(mine, theirs)


def test_a_buffer_of_two_names_is_one_state():
    class Shared(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.first, self.second = torch.nn.Module(), torch.nn.Module()
            self.first.register_buffer("count", torch.zeros(3))
            self.second.register_buffer("count", self.first.count)

        def forward(self, x):
            self.first.count.add_(1)
            return x * self.second.count

    module, x = Shared(), torch.randn(3)
    program = irees.compile(module, (x,), target="reference")
    for _ in range(2):
        torch.testing.assert_close(program(x), module(x))
    assert list(program.state) == ["first.count"]


def test_a_region_with_gradients_and_a_write():
    """PyTorch cannot functionalize a program whose results need gradients."""

    class Trained(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.weight = torch.nn.Parameter(torch.ones(3))

        def forward(self, x):
            with torch.enable_grad():
                loss = (self.weight * x).pow(2).sum()
                (slope,) = torch.autograd.grad(loss, self.weight)
            with torch.no_grad():
                self.weight.sub_(0.1 * slope)
            return loss

    model, other, x = Trained(), Trained(), torch.randn(3)
    program = irees.compile(model, (x,), target="reference")
    for _ in range(3):
        torch.testing.assert_close(program(x), other(x).detach())
