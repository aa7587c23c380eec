"""Programs that differentiate: transforms of torch.func, and gradients of determinants."""

from __future__ import annotations

import copy

import pytest

torch = pytest.importorskip("torch", reason="needs PyTorch: pip install 'irees[torch]'")

from torch.func import grad, hessian, jacfwd, jacrev, jvp, vjp, vmap  # noqa: E402

import irees  # noqa: E402
from irees.errors import UnsupportedError  # noqa: E402

X = torch.linspace(-1, 2, 12).reshape(4, 3)


def energy(x):
    return (x.sin() * x.prod()).sum()


TRANSFORMS = {
    "grad": grad(energy),
    "grad of rows": vmap(grad(energy)),
    "hessian": lambda x: hessian(energy)(x[0]),
    "jvp": lambda x: jvp(lambda y: (y @ y.T).softmax(-1), (x,), (x + 1,)),
    "jacobian of a dual": lambda x: jacfwd(lambda v: v.exp() * x.sum())(x[0]),
    "vjp": lambda x: vjp(torch.tanh, x)[1](x)[0],
    "jacobians": lambda x: (jacrev(torch.sin)(x[0]), jacfwd(lambda y: y.cumprod(0))(x[0])),
}


@pytest.mark.parametrize("name", TRANSFORMS)
def test_a_transform_is_compiled(name):
    function = TRANSFORMS[name]
    program = irees.compile(function, (X,), target="reference")
    for x in (X, X * 0.5 + 0.1):
        torch.testing.assert_close(program(x), function(x))


def test_an_export_that_fails_leaves_no_transform_behind():
    class Derivative(torch.nn.Module):
        def forward(self, x):
            return jvp(lambda y: (y @ y.T).softmax(-1), (x,), (x,))

    exported = torch.export.export(Derivative(), (X,))
    with pytest.raises(UnsupportedError, match="cannot functionalize"):
        irees.compile(exported, target="reference")
    assert torch._C._functorch.get_dynamic_layer_stack_depth() == 0
    torch.testing.assert_close(jvp(torch.sin, (X,), (X,))[1], X.cos() * X)


class Forces(torch.nn.Module):
    """An energy and its gradient, as in models of molecules."""

    def __init__(self):
        super().__init__()
        self.norm = torch.nn.BatchNorm1d(3)
        self.layers = torch.nn.Sequential(
            torch.nn.Linear(3, 8), torch.nn.Tanh(), torch.nn.Linear(8, 1)
        )

    def forward(self, x):
        x = x.clone().requires_grad_()
        energy = self.layers(self.norm(x)).sum()
        (force,) = torch.autograd.grad(energy, x, create_graph=self.training)
        return energy, -force


@pytest.mark.parametrize("train", [True, False])
def test_a_backward_pass_inside_of_a_program_is_compiled(train):
    torch.manual_seed(0)
    model = Forces().train(train)
    rows = torch.export.Dim("rows", min=2)
    program = irees.compile(model, (X,), dynamic_shapes=({0: rows},), target="reference")
    twin = copy.deepcopy(model)
    for x in (X, torch.randn(5, 3)):
        torch.testing.assert_close(program(x), tuple(t.detach() for t in twin(x)))
    if train:
        mean = torch.as_tensor(program.state["norm.running_mean"])
        torch.testing.assert_close(mean, twin.norm.running_mean)
    assert all(p.grad is None for p in model.parameters())
    assert not {**model._forward_hooks, **model._forward_pre_hooks}


def turned_on(x):
    with torch.enable_grad():
        x = x.detach().requires_grad_()
        return torch.autograd.grad((x @ X.T).tanh().sum(), x)[0]


def accumulated(x):
    x = x.detach().requires_grad_()
    (x @ X.T).tanh().sum().backward()
    return x.grad


def second(x):
    x = x.detach().requires_grad_()
    (first,) = torch.autograd.grad((x**3).sum(), x, create_graph=True)
    return torch.autograd.grad(first.sum(), x)[0]


@pytest.mark.parametrize("function", [turned_on, accumulated, second])
def test_a_backward_pass_inside_of_a_function_is_compiled(function):
    program = irees.compile(function, (X,), target="reference")
    torch.testing.assert_close(program(X), function(X))


def test_vmap_over_another_dim():
    def f(x):
        return torch.func.vmap(lambda column: column.softmax(0), in_dims=1, out_dims=1)(x)

    torch.testing.assert_close(irees.compile(f, (X,), target="reference")(X), f(X))


@pytest.mark.parametrize("transposed", [False, True])
@pytest.mark.parametrize("name", ["_linalg_det", "_linalg_slogdet"])
def test_a_determinant_has_the_factors_that_its_gradient_needs(name, transposed):
    """PyTorch factorizes the transpose of a contiguous matrix."""
    function = getattr(torch.ops.aten, name)
    x = torch.tensor([[0.5, -2.0, 1.0], [3.0, 0.25, -1.0], [1.0, 4.0, 0.75]])
    x = x.t() if transposed else x
    program = irees.compile(lambda y: tuple(function(y)), (x,), target="reference")
    torch.testing.assert_close(program(x), tuple(function(x)))


def test_a_backward_pass_to_a_parameter_is_named():
    layer = torch.nn.Linear(3, 3)

    class Stepped(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = layer

        def forward(self, x):
            self.layer(x).sum().backward()
            return self.layer.weight.grad

    with pytest.raises(UnsupportedError, match=r"calls backward\(\).*torch.autograd.grad"):
        irees.compile(Stepped(), (torch.ones(2, 3),), target="reference")


def added(self, x):
    self.buffer.add_(self.layer(x).sum(0))


def assigned(self, x):
    self.buffer = self.layer(x).sum(0)


def scaled(self, x):
    x.mul_(self.layer.weight[0])


@pytest.mark.parametrize("write", [added, assigned, scaled])
def test_what_is_written_may_depend_on_parameters(write):
    """PyTorch counts a written tensor that needs gradients twice."""

    class Written(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = torch.nn.Linear(3, 3)
            self.register_buffer("buffer", torch.zeros(3))

        def forward(self, x):
            write(self, x)
            return grad(lambda y: self.layer(y).pow(2).sum())(x), self.buffer * 1

    model = Written()
    program, twin = irees.compile(model, (torch.ones(2, 3),), target="reference"), model
    for _ in range(2):
        x = torch.randn(2, 3)
        given = x.clone()
        with torch.no_grad():
            torch.testing.assert_close(program(x), twin(given))
        torch.testing.assert_close(x, given)
