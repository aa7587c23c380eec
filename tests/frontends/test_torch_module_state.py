"""Hooks, and what is attached to tensors: later calls that need it are refused, others are right."""

from __future__ import annotations

import functools

import pytest

torch = pytest.importorskip("torch", reason="needs torch: pip install 'irees[torch]'")

import irees  # noqa: E402
from irees.errors import UnsupportedError  # noqa: E402
from irees.frontends.torch.derivatives import export_derivatives  # noqa: E402
from irees.frontends.torch.effects import Effects, objects_kept  # noqa: E402
from irees.frontends.torch.module_state import HeldTensors  # noqa: E402
from irees.frontends.torch.python_state import PythonState  # noqa: E402

ONE = torch.ones(3)


class Layer(torch.nn.Module):
    """A module with a parameter, a buffer and a tensor, which `step` reads and changes."""

    def __init__(self, step):
        super().__init__()
        self.linear, self.plain, self.step = torch.nn.Linear(3, 3), torch.ones(3), step
        self.register_buffer("buffer", torch.ones(3))
        self.handle = self.linear.register_forward_hook(lambda module, args, result: result * 3)

    def forward(self, x):
        return self.step(self, x)


def doubled(module, args, result):
    return result * 2


def hooked(self, x):
    self.linear.register_forward_hook(doubled)
    return self.linear(x)


def prepared(self, x):
    result = self.linear(x)
    self.linear.register_forward_pre_hook(lambda module, args: (args[0] + 1,))
    return result


def unhooked(self, x):
    result = self.linear(x)
    self.handle.remove()
    return result


def frozen(self, x):
    weight = self.linear.weight
    result = x * (2 if weight.requires_grad else 1)
    weight.requires_grad_(False)
    return result


def graded(self, x):
    weight = self.linear.weight
    result = x if weight.grad is None else x + weight.grad.sum()
    weight.grad = torch.ones(3, 3)
    return result


def counted(self, x):
    count = getattr(self.linear.weight, "count", 0)
    self.linear.weight.count = count + 1
    return x + count


def summed(self, x):
    result = x + getattr(self.buffer, "total", 0)
    self.buffer.total = x * 2
    return result


def attached(self, x):
    result = x + getattr(self.plain, "total", 0)
    self.plain.total = x * 2
    return result


def other_forward(self, x):
    result = self.linear(x)
    self.linear.forward = lambda y: y * 2
    return result


@pytest.mark.parametrize(
    ("step", "place"),
    [
        (hooked, "linear._forward_hooks"),
        (prepared, "linear._forward_pre_hooks"),
        (unhooked, "linear._forward_hooks"),
        (frozen, "linear.weight.requires_grad"),
        (graded, "linear.weight.grad"),
        (counted, "linear.weight.count"),
        (summed, "buffer.total"),
        (attached, "plain.total"),
        (other_forward, "linear.forward"),
    ],
)
def test_what_is_attached_and_read_later_is_refused(step, place):
    layer = Layer(step)
    with pytest.raises(UnsupportedError, match=f"self.{place} and assigns it"):
        irees.compile(layer, (ONE,), target="reference")
    assert list(layer.linear._forward_hooks) == [layer.handle.id]
    assert not layer.linear._forward_pre_hooks
    assert layer.linear.weight.requires_grad
    assert layer.linear.weight.grad is None
    assert not vars(layer.linear.weight)
    assert not vars(layer.buffer)
    assert not vars(layer.plain)
    assert "forward" not in vars(layer.linear)


def hooked_for_a_call(self, x):
    handle = self.linear.register_forward_hook(doubled)
    result = self.linear(x)
    handle.remove()
    return result


def frozen_first(self, x):
    self.requires_grad_(False)
    return self.linear(x)


def noted(self, x):
    self.linear.weight.last = x.detach()
    self.buffer.seen = True
    return self.linear(x)


def hooked_to_look(self, x):
    result = self.linear(x)
    self.linear.register_forward_hook(lambda module, args, result: None)
    return result


def hooked_once(self, x):
    if not hasattr(self.linear.weight, "is_hooked"):
        self.linear.register_forward_hook(doubled)
        self.linear.weight.is_hooked = True
    return self.linear(x)


@pytest.mark.parametrize(
    "step", [hooked_for_a_call, frozen_first, noted, hooked_to_look, hooked_once]
)
def test_what_changes_no_later_call_is_compiled(step):
    layer = Layer(step)
    program = irees.compile(layer, (ONE,), target="reference")
    for x in (ONE, ONE * 2):
        torch.testing.assert_close(program(x), layer(x))


def scaled(self, x):
    weight, buffer = self.linear.weight, self.buffer
    return self.linear(x) * weight.scale * getattr(buffer, "scale", -1) * self.plain.scale[0]


def scaled_gradient(self, x):
    return torch.func.grad(lambda y: scaled(self, y).sum())(x)


@pytest.mark.parametrize("step", [scaled, scaled_gradient])
def test_attributes_of_parameters_and_buffers_are_read(step):
    """A trace has other tensors in their place."""
    layer = Layer(step)
    layer.linear.weight.scale, layer.buffer.scale, layer.plain.scale = 2.0, 3.0, [5.0]
    program = irees.compile(layer, (ONE,), target="reference")
    torch.testing.assert_close(program(ONE), layer(ONE))


@functools.cache
def ramp(size):
    return torch.arange(float(size))


class Cached(torch.nn.Module):
    @functools.lru_cache(maxsize=2)  # noqa: B019
    def ramp(self, size):
        return torch.arange(float(size))

    def __init__(self):
        super().__init__()
        self.own = functools.lru_cache(lambda size: torch.arange(float(size)))

    def forward(self, x):
        return x + ramp(x.shape[0]) + self.ramp(x.shape[0]) + self.own(x.shape[0])


def test_cached_functions_keep_no_tensors_of_a_trace():
    ramp.cache_clear()
    model = Cached()
    programs = [irees.compile(model, (ONE,), target="reference") for _ in range(2)]
    result = model(ONE)
    assert type(result) is torch.Tensor
    assert result.tolist() == [1.0, 4.0, 7.0]
    for program in programs:
        assert program(ONE).tolist() == result.tolist()


CALLS = [0]


@functools.lru_cache(maxsize=1)
def latest(key):
    CALLS[0] += 1
    return CALLS[0]


def test_a_cached_function_with_state_is_refused():
    model = Layer(lambda self, x: x + latest(1) + latest(2))
    with pytest.raises(UnsupportedError, match=r"the global CALLS\[0\]"):
        irees.compile(model, (ONE,), target="reference")
    assert CALLS == [0]


def test_a_derivative_leaves_requires_grad_alone():
    """Below autograd, tensors of a trace are no leaves."""

    def step(self, x):
        self.buffer.add_(self.linear(x))
        return torch.func.grad(lambda y: self.linear(y).sum())(x)

    layer = Layer(step)
    before = PythonState(layer, HeldTensors(layer))
    with Effects(layer) as effects, objects_kept(layer):
        export_derivatives(layer, (ONE,), {}, None)
    assert before.differences(effects.after) == []


@pytest.mark.parametrize("program", [Layer(lambda self, x: self.linear(x)), lambda x: x + 1])
def test_a_hook_of_all_modules_runs_for_those_of_the_program(program):
    """A trace wraps the program in modules whose results are tuples."""
    hooks = torch.nn.modules.module
    handles = [
        hooks.register_module_forward_pre_hook(lambda module, args: (args[0] * 3,)),
        hooks.register_module_forward_hook(lambda module, args, result: result * 2),
    ]
    try:
        compiled = irees.compile(program, (ONE,), target="reference")
        torch.testing.assert_close(compiled(ONE), program(ONE))
        torch.testing.assert_close(compiled(ONE), program(ONE))
    finally:
        for handle in handles:
            handle.remove()
