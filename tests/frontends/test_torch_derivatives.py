"""Programs that differentiate: transforms of torch.func, and gradients of determinants."""

from __future__ import annotations

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


def test_a_backward_pass_inside_of_a_program_is_refused_with_the_way_out():
    def force(x):
        with torch.enable_grad():
            x = x.detach().requires_grad_()
            return torch.autograd.grad((x @ X.T).tanh().sum(), x)[0]

    with pytest.raises(UnsupportedError, match=r"torch\.func\.grad"):
        irees.compile(force, (X,), target="reference")


@pytest.mark.parametrize("transposed", [False, True])
@pytest.mark.parametrize("name", ["_linalg_det", "_linalg_slogdet"])
def test_a_determinant_has_the_factors_that_its_gradient_needs(name, transposed):
    """PyTorch factorizes the transpose of a contiguous matrix."""
    function = getattr(torch.ops.aten, name)
    x = torch.tensor([[0.5, -2.0, 1.0], [3.0, 0.25, -1.0], [1.0, 4.0, 0.75]])
    x = x.t() if transposed else x
    program = irees.compile(lambda y: tuple(function(y)), (x,), target="reference")
    torch.testing.assert_close(program(x), tuple(function(x)))
