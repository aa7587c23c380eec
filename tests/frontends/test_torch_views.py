"""
Random programs of views, permutations, parts, joins and products, against eager.

Each is a graph of a few tensors. What a part, a permutation or a reshape costs is decided across
several passes, which move them past each other; this test finds where they lose an element.
"""

from __future__ import annotations

import random
from collections.abc import Callable

import pytest

torch = pytest.importorskip("torch")

import irees  # noqa: E402

F = torch.nn.functional
Tensors = list["torch.Tensor"]
Step = Callable[[Tensors], Tensors]
"""Appends what one op computes of the tensors so far."""

MOST_ELEMENTS = 4096


def product(r: random.Random, i: int, shape: list[int], _: Tensors) -> Step:
    weight, bias = torch.randn(r.choice([2, 4, 8, 12]), shape[-1]), r.random() < 0.5
    extra = torch.randn(len(weight)) if bias else None
    return lambda ts: [*ts, F.linear(ts[i], weight, extra)]


def permuted(r: random.Random, i: int, shape: list[int], _: Tensors) -> Step:
    order = r.sample(range(len(shape)), len(shape))
    return lambda ts: [*ts, ts[i].permute(order)]


def parts(r: random.Random, i: int, shape: list[int], _: Tensors) -> Step:
    axis = r.randrange(len(shape))
    at = r.randrange(shape[axis] + 1)
    sizes = [at, shape[axis] - at]
    return lambda ts: [*ts, *(p for p in ts[i].split(sizes, axis) if p.numel())]


def part(r: random.Random, i: int, shape: list[int], _: Tensors) -> Step:
    axis = r.randrange(len(shape))
    at, step = r.randrange(shape[axis]), r.choice([1, 1, 2])
    index = (*[slice(None)] * axis, slice(at, None, step))
    return lambda ts: [*ts, ts[i][index]]


def picked(r: random.Random, i: int, shape: list[int], _: Tensors) -> Step:
    axis = r.randrange(len(shape))
    at = r.randrange(shape[axis])
    return lambda ts: [*ts, ts[i].select(axis, at) if len(shape) > 1 else ts[i]]


def split_dim(r: random.Random, i: int, shape: list[int], _: Tensors) -> Step:
    axis = r.randrange(len(shape))
    factor = r.choice([n for n in (1, 2, 3, 4) if shape[axis] % n == 0])
    new = [*shape[:axis], factor, shape[axis] // factor, *shape[axis + 1 :]]
    return lambda ts: [*ts, ts[i].reshape(new)]


def joined_dims(r: random.Random, i: int, shape: list[int], _: Tensors) -> Step:
    axis = r.randrange(len(shape))
    new = [*shape[:axis], -1, *shape[axis + 2 :]]
    return lambda ts: [*ts, ts[i].reshape(new)]


def elementwise(r: random.Random, i: int, shape: list[int], _: Tensors) -> Step:
    function = r.choice([F.gelu, torch.tanh, lambda x: x * 0.5])
    return lambda ts: [*ts, function(ts[i])]


def added(r: random.Random, i: int, shape: list[int], ts: Tensors) -> Step:
    j = r.choice([j for j, t in enumerate(ts) if list(t.shape) == shape])
    return lambda ts: [*ts, ts[i] * 0.5 + ts[j]]


def rolled(r: random.Random, i: int, shape: list[int], _: Tensors) -> Step:
    axes = r.sample(range(len(shape)), r.randrange(1, len(shape) + 1))
    shifts = [r.randrange(-5, 6) for _ in axes]
    return lambda ts: [*ts, torch.roll(ts[i], shifts, axes)]


def concatenated(r: random.Random, i: int, shape: list[int], ts: Tensors) -> Step:
    axis = r.randrange(len(shape))
    rest = [*shape[:axis], *shape[axis + 1 :]]
    fits = [
        j
        for j, t in enumerate(ts)
        if t.dim() == len(shape) and [*t.shape[:axis], *t.shape[axis + 1 :]] == rest
    ]
    j = r.choice(fits)
    return lambda ts: [*ts, torch.cat((ts[i], -ts[j]), axis)]


def rotated(r: random.Random, i: int, shape: list[int], _: Tensors) -> Step:
    axis = r.choice([axis for axis, n in enumerate(shape) if n % 2 == 0] or [None])

    def half_turn(ts: Tensors) -> Tensors:
        if axis is None:
            return ts
        a, b = ts[i].chunk(2, axis)
        return [*ts, torch.cat((-b, a), axis) * 0.5 + ts[i]]

    return half_turn


def normalized(r: random.Random, i: int, shape: list[int], _: Tensors) -> Step:
    axis = r.randrange(len(shape))
    return lambda ts: [*ts, ts[i].softmax(axis), F.layer_norm(ts[i], shape[-1:])]


STEPS = (product, permuted, parts, part, picked, split_dim, joined_dims, elementwise, added, rolled,
         concatenated, rotated, normalized)  # fmt: skip


class Program(torch.nn.Module):
    """Runs steps, and returns some of their tensors."""

    def __init__(self, steps: list[Step], results: list[int]):
        super().__init__()
        self.steps, self.results = steps, results

    def forward(self, x, y):
        tensors = [x, y]
        for step in self.steps:
            tensors = step(tensors)
        return tuple(tensors[i] for i in self.results)


def drawn(seed: int) -> tuple[Program, tuple[torch.Tensor, torch.Tensor]]:
    """A program and its inputs."""
    r = random.Random(seed)
    torch.manual_seed(seed)
    shape = [r.choice([1, 2, 3, 4, 6, 8]) for _ in range(r.randrange(2, 5))]
    inputs = torch.randn(shape), torch.randn(shape)
    tensors, steps = list(inputs), []
    for _ in range(r.randrange(3, 11)):
        i = r.randrange(len(tensors))
        step = r.choice(STEPS)(r, i, list(tensors[i].shape), tensors)
        new = step(tensors)
        if max(t.numel() for t in new) <= MOST_ELEMENTS:
            tensors, steps = new, [*steps, step]
    results = sorted({len(tensors) - 1, r.randrange(len(tensors))})
    return Program(steps, results), inputs


@pytest.mark.parametrize("seed", range(150))
def test_random_programs(seed):
    program, inputs = drawn(seed)
    expected = program(*inputs)
    found = irees.compile(program, inputs, opt_level=0)(*inputs)
    for mine, theirs in zip(found, expected, strict=True):
        # Sums of at most a hundred products, in another order, through at most ten steps.
        scale = max(1.0, float(theirs.abs().max()))
        torch.testing.assert_close(mine, theirs, rtol=1e-4, atol=1e-4 * scale)


COMPLEX, DOUBLE = torch.complex64, torch.complex128
PAIRS = [
    (COMPLEX, torch.float32), (torch.float32, COMPLEX), (COMPLEX, DOUBLE), (DOUBLE, COMPLEX),
    (COMPLEX, torch.int64), (COMPLEX, torch.int16), (torch.float64, COMPLEX),
]  # fmt: skip


@pytest.mark.parametrize(("source", "to"), PAIRS, ids=str)
def test_complex_numbers_as_other_bits(source, to):
    shapes = ({0: torch.export.Dim("n"), 1: 4 * torch.export.Dim("m")},)
    x = torch.randn(2, 8, dtype=source)
    program = irees.compile(lambda x: x.view(to), (x,), dynamic_shapes=shapes, target="reference")
    for rows, columns in ((2, 8), (3, 12)):
        x = torch.randn(rows, columns, dtype=source)
        found = program(x)
        assert found.dtype == to
        assert torch.equal(found.view(torch.uint8), x.view(to).view(torch.uint8))


@pytest.mark.parametrize("places", [(0, -1), ((0,), (-1,))])
def test_a_tensor_without_dims_has_a_dim_to_move(places):
    x = torch.tensor(2.5)
    program = irees.compile(lambda x: x.movedim(*places) + 1, (x,), target="reference")
    assert program(x).item() == 3.5
