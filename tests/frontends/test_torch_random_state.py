"""Seeds and Python's random numbers: `torch.export` runs them once, so a program is refused."""

from __future__ import annotations

import functools
import queue
import random
import threading

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="needs torch: pip install 'irees[torch]'")

import irees  # noqa: E402
from irees.errors import UnsupportedError  # noqa: E402

ZEROS = torch.zeros(3)


def seeded(x):
    torch.manual_seed(0)
    return x + torch.rand(3)


def restored(x):
    state = torch.get_rng_state()
    first = torch.rand(3)
    torch.set_rng_state(state)
    return first + x, torch.rand(3)


def forked(x):
    with torch.random.fork_rng():
        return x + torch.rand(3)


@pytest.mark.parametrize("function", [seeded, restored, forked])
def test_a_program_that_seeds_is_refused_with_its_line(function):
    file = r"test_torch_random_state\.py:\d+"
    with pytest.raises(UnsupportedError, match=f"{file}.*seeds PyTorch's generator"):
        irees.compile(function, (ZEROS,), target="reference")


@pytest.mark.parametrize(
    ("draw", "whose"),
    [
        (lambda: random.random(), "Python's"),
        (lambda: random.choice([1.0, 2.0]), "Python's"),
        (lambda: np.random.rand(), "numpy's"),
    ],
)
def test_a_number_of_python_is_no_constant(draw, whose):
    with pytest.raises(UnsupportedError, match=f"draws from {whose} generator"):
        irees.compile(lambda x: x * draw(), (ZEROS,), target="reference")


@pytest.mark.parametrize(
    "use",
    [
        lambda x, p: x if p < 0.5 else -x,
        lambda x, p: x * p,
        lambda x, p: p + x,
        lambda x, p: x.pow(p),
        lambda x, p: x + torch.full((3,), p),
        lambda x, p: x + torch.tensor(p),
        lambda x, p: x[: int(p)],
        lambda x, p: x + p.item(),
        lambda x, p: x.clone().fill_(p),
        lambda x, p: torch.where(x > p, x, p),
        lambda x, p: x if p else -x,
        lambda x, p: x + [1.0, 2.0][p],
        lambda x, p: x + max(p, 0.5),
        lambda x, p: x + round(p),
        lambda x, p: {"a": x, "p": p},
    ],
)
@pytest.mark.parametrize("draw", [random.random, np.random.random])
def test_no_use_of_such_a_number_gets_through(draw, use):
    module = random if draw is random.random else np.random
    with pytest.raises(UnsupportedError):
        irees.compile(lambda x: use(x, module.random()), (ZEROS,), target="reference")


def test_a_number_that_is_not_used_is_drawn():
    """Layers are dropped in training only; Wav2Vec2 and MusicGen draw in evaluation mode, too."""

    class Layers(torch.nn.Module):
        def forward(self, x):
            for k in range(3):
                chance = random.uniform(0, 1)
                if self.training and chance < 0.5:
                    continue
                if not self.training or np.random.random() > 0.5:
                    x = x + k
            return x

    layers = Layers().eval()
    found = irees.compile(layers, (ZEROS,), target="reference")(ZEROS)
    torch.testing.assert_close(found, layers(ZEROS))
    with pytest.raises(UnsupportedError, match="draws from Python's generator"):
        irees.compile(layers.train(), (ZEROS,), target="reference")


def test_a_shuffle_is_refused():
    def f(x):
        order = [0, 1, 2]
        random.shuffle(order)
        return x[order]

    with pytest.raises(UnsupportedError, match="draws from Python's generator"):
        irees.compile(f, (ZEROS,), target="reference")


def test_generators_with_a_seed_of_their_own_are_constants():
    def f(x):
        return x + random.Random(3).random() + np.random.default_rng(3).random()

    found = irees.compile(f, (ZEROS,), target="reference")(ZEROS)
    torch.testing.assert_close(found, f(ZEROS))


def test_the_functions_are_put_back():
    before = random.random, np.random.rand, torch.random.default_generator
    with pytest.raises(UnsupportedError):
        irees.compile(seeded, (ZEROS,), target="reference")
    assert before == (random.random, np.random.rand, torch.random.default_generator)


def test_other_threads_draw_during_an_export():
    found = queue.SimpleQueue()  # irees puts lists back

    def f(x):
        thread = threading.Thread(target=lambda: found.put((random.random(), torch.seed())))
        thread.start()
        thread.join()
        return x + 1

    irees.compile(f, (ZEROS,), target="reference")
    assert found.qsize() == 1


def test_checkpoints_keep_states():
    from torch.utils.checkpoint import checkpoint

    def f(x):
        return checkpoint(lambda y: torch.dropout(y.sin(), 0.5, True), x, use_reentrant=False)

    found = irees.compile(f, (torch.ones(8),), target="reference")(torch.ones(8))
    assert set(found.tolist()) <= {0.0, float(2 * torch.ones(()).sin())}


def test_distributions_are_sampled():
    from torch import distributions as d

    def f(m):
        return (
            d.Beta(m, m + 1).rsample((400,)), d.Gamma(m, 1.0).sample((400,)),
            d.Binomial(10, m / 4).sample((400,)), d.Dirichlet(m).rsample((400,)),
            d.StudentT(m + 5).rsample((400,)),
        )  # fmt: skip

    m = torch.tensor([0.5, 1.0, 2.0, 3.5])
    beta, gamma, binomial, dirichlet, student = irees.compile(f, (m,))(m)
    close = functools.partial(torch.testing.assert_close, rtol=0.2, atol=0.25)
    close(beta.mean(0), m / (2 * m + 1))
    close(gamma.mean(0), m)
    close(binomial.mean(0), 2.5 * m)
    close(dirichlet.mean(0), m / m.sum())
    torch.testing.assert_close(dirichlet.sum(1), torch.ones(400))
    close(student.mean(0), torch.zeros(4))
