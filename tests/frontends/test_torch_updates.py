"""What a program mutates is computed in place where nobody reads the old value, and is right always."""

from __future__ import annotations

import copy

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="needs torch: pip install 'irees[torch]'")

import irees  # noqa: E402
from irees.errors import ArgumentError, UnsupportedError  # noqa: E402


def written(program):
    """Pairs of a result and the argument that the program writes it into."""
    return program.manifest["functions"][0]["updates"]


def moved(program, *shape):
    """Whether a kernel computes something of that shape anew."""
    size = int(np.prod(shape)) * 4
    return program.memory_analysis()["arena_bytes"]["main"] >= size


def row(cache, i, x):
    cache[:, i] = x
    return x.sum()


def after(cache, i, x):
    old = cache.sum()
    cache[:, i] = x
    return old, cache.sum()


def read_by_a_view(cache, i, x):
    flat = cache.reshape(-1).clone()
    cache[:, i] = x
    return flat, cache * 2


def twice(cache, i, x):
    cache[:, i] = x
    cache[:, i + 1] = cache[:, i] * 2
    return cache.mean()


def added(cache, i, x):
    cache.index_add_(1, i, x)
    return cache.sum()


def exchanged(cache, i, x):
    old = cache[:, :1].clone()
    cache[:, :1].copy_(x)
    x.copy_(old)
    return cache.sum() + x.sum()


def returned_as_well(cache, i, x):
    cache.mul_(2)
    return cache, cache.t() if cache.dim() == 2 else cache.sum(), x


def slices(cache, i, x):
    cache[:, 2:4] += x
    return cache[0].sum()


PROGRAMS = [row, after, read_by_a_view, twice, added, exchanged, returned_as_well, slices]


def inputs():
    generator = torch.Generator().manual_seed(1)
    return [
        torch.randn(2, 6, 4, generator=generator),
        torch.tensor([3]),
        torch.randn(2, 1, 4, generator=generator),
    ]


@pytest.mark.parametrize("target", ["cpu", "reference", "cuda-emulated"])
@pytest.mark.parametrize("function", PROGRAMS, ids=lambda f: f.__name__)
def test_arguments_and_results_are_those_of_eager(function, target):
    program = irees.compile(function, tuple(inputs()), target=target, fp="strict")
    mine, theirs = inputs(), inputs()
    for _ in range(2):
        found, wanted = program(*mine), function(*theirs)
        torch.testing.assert_close(found, wanted)
        torch.testing.assert_close(mine, theirs)


@pytest.mark.parametrize("function", [row, twice, added])
def test_what_does_not_change_is_not_moved(function):
    big = torch.zeros(2, 4096, 64)
    x = torch.ones(2, 1, 64)
    program = irees.compile(function, (big, torch.tensor([3]), x))
    assert written(program) == [[0, 0]]
    assert not moved(program, 2, 4096, 64)
    assert row(big.clone(), torch.tensor([3]), x) == 128


def test_a_value_that_is_read_later_is_not_overwritten():
    def f(cache, i, x):
        new = torch.index_copy(cache, 0, i, x)
        total = cache.sum()
        cache.copy_(new)
        return total

    cache = torch.ones(8, 4)
    program = irees.compile(f, (cache.clone(), torch.tensor([1]), torch.zeros(1, 4)))
    assert program(cache, torch.tensor([1]), torch.zeros(1, 4)) == 32
    assert cache.sum() == 28


def test_arrays_of_any_layout_are_written():
    program = irees.compile(lambda x: x.add_(1).sum(), (torch.zeros(4, 6),))
    transposed = torch.zeros(6, 4).t()
    assert program(transposed) == 24
    assert transposed.sum() == 24
    array = np.zeros((4, 12), np.float32)[:, ::2]
    program(array)
    assert array.sum() == 24


def test_arguments_that_share_memory_are_refused():
    program = irees.compile(lambda x, y: x.add_(y).sum(), (torch.zeros(4), torch.ones(4)))
    base = torch.ones(6)
    for pair in ((base[:4], base[2:]), (base[:4].numpy(), base[:4].numpy())):
        with pytest.raises(ArgumentError, match="shares memory with argument 1"):
            program(*pair)
    assert program(base[:4], torch.ones(4)) == 8


@pytest.mark.parametrize("target", ["cpu", "reference"])
def test_arguments_that_share_memory_are_refused_when_results_are_copied_to_them(target):
    def f(x, y, z):
        new = z * 2  # one result for two arguments, which is written to neither in place
        x.copy_(new)
        y.copy_(new)
        return x + 1

    zeros = torch.zeros(4)
    program = irees.compile(f, (zeros, zeros.clone(), zeros.clone()), target=target)
    base = torch.ones(6)
    with pytest.raises(ArgumentError, match=r"argument 0 \('x'\) .* shares memory with argument 1"):
        program(base[:4], base[2:], torch.ones(4))
    assert base.tolist() == [1] * 6
    add = irees.compile(lambda x, y: x.add_(y), (zeros, zeros.clone()), target=target)
    with pytest.raises(ArgumentError, match="shares memory"):
        add(base[:4], base[:4])
    assert base.tolist() == [1] * 6


def test_examples_may_share_memory():
    base = torch.ones(6)
    for second in (base[2:], base[:4].t(), torch.nn.Parameter(base)):
        program = irees.compile(lambda x, y: x.add_(1).sum() + y.sum(), (base[:4], second))
        assert program(torch.zeros(4), torch.ones(second.shape)) == 4 + second.numel()


def test_version_counters_tell_what_was_written():
    program = irees.compile(lambda x: x.add_(1).sum(), (torch.zeros(4),))
    x = torch.zeros(4)
    before = x._version
    program(x)
    assert x._version > before
    leaf = torch.zeros(4, requires_grad=True)
    with pytest.raises(ArgumentError, match="no_grad"):
        program(leaf)


def test_an_argument_that_is_resized_is_refused():
    """An array of the caller keeps its shape."""

    class Program(torch.nn.Module):
        def forward(self, x):
            return torch.arange(1, 13, out=x)

    given = (torch.zeros(3, 4, dtype=torch.int64),)
    with pytest.raises(UnsupportedError, match=r"sizes or strides of args\[0\] in place"):
        irees.compile(Program(), given, target="reference")
    exported = torch.export.export(Program(), given)
    with pytest.raises(UnsupportedError, match="resizes argument 'x'"):
        irees.compile(exported, target="reference")


@pytest.mark.parametrize("target", ["reference", "cpu"])
@pytest.mark.parametrize("kind", ["torch", "numpy"])
def test_elements_that_share_memory_are_not_written(kind, target):
    def add(x, y):
        x.add_(y)

    program = irees.compile(add, (torch.zeros(3, 4), torch.ones(3, 4)), target=target)
    row = torch.zeros(1, 4).expand(3, 4)
    window = torch.zeros(6).as_strided((3, 4), (1, 1))
    if kind == "numpy":
        window = np.lib.stride_tricks.as_strided(np.zeros(6, np.float32), (3, 4), (4, 4))
    for x in (row, window) if kind == "torch" else (window,):
        with pytest.raises(ArgumentError, match="elements share memory"):
            program(x, torch.ones(3, 4))
    turned = torch.zeros(4, 3).t()
    program(turned, torch.ones(3, 4))
    assert turned.sum() == 12


def clip(self, x):
    self.linear.weight.data.clamp_(-0.1, 0.1)
    return self.linear(x)


def average(self, x):
    for mine, other in zip(self.linear.parameters(), self.other.parameters()):
        mine.data = mine.data * 0.5 + other.data * 0.5
    self.seen.data = self.seen.data + x.data.sum()
    return self.linear(x) + self.seen


def double(self, x):
    x.data = x.data * 2
    self.linear.bias.data += 1
    return self.linear(x)


@pytest.mark.parametrize("function", [clip, average, double])
def test_data_of_a_tensor_is_read_and_assigned(function):
    class Model(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.linear, self.other = torch.nn.Linear(3, 3), torch.nn.Linear(3, 3)
            self.register_buffer("seen", torch.zeros(()))

        forward = function

    torch.manual_seed(0)
    eager = Model()
    program = irees.compile(copy.deepcopy(eager), (torch.ones(2, 3),), target="reference")
    for n in range(3):
        mine, given = torch.full((2, 3), n + 1.0), torch.full((2, 3), n + 1.0)
        torch.testing.assert_close(program(given), eager(mine).detach())
        torch.testing.assert_close(given, mine)


def test_data_that_a_program_cannot_assign():
    def other_shape(x):
        y = x + 1
        y.data = x[0]
        return y

    def of_a_view(x):
        y = x[0]
        y.data = y.data + 1
        return x

    with pytest.raises(UnsupportedError, match=r"shape \(2, 3\) data of torch.float32 and shape"):
        irees.compile(other_shape, (torch.ones(2, 3),), target="reference")
    with pytest.raises(UnsupportedError, match=r"assigns the .data of a view"):
        irees.compile(of_a_view, (torch.ones(2, 3),), target="reference")
