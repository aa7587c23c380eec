"""
Programs with a dynamic dim, called with sizes that they were not traced for: each call gives what
eager gives, or is refused. None is silently computed for another size.
"""

from __future__ import annotations

import io
import logging
from collections.abc import Callable
from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="needs PyTorch: pip install 'irees[torch]'")

from torch.export import Dim  # noqa: E402
from torch.nn import functional  # noqa: E402

import irees  # noqa: E402
from irees.errors import ArgumentError, RuntimeTrap, UnsupportedError  # noqa: E402

logger = logging.getLogger(__name__)

TRACED = 8
"""Rows of the example inputs; each has 4 columns."""

SIZES = (0, 1, 2, 3, 4, 7, 12, 30)


def branch(x: Any) -> Any:
    return x * 2 if x.shape[0] > 5 else x * 3


def even(x: Any) -> Any:
    return x * 2 if x.shape[0] % 2 == 0 else x * 3


def chunks(x: Any) -> Any:
    return sum(part.sum(0) for part in x.split(3))


def diagonal(x: Any) -> Any:
    return x.clone().fill_diagonal_(7.0)


def report(x: Any) -> Any:
    logger.debug(f"rows: {x.shape[0]}")
    assert x.dim() == 2, f"expected a matrix, not {x.shape}"
    return x * 2


PROGRAMS: dict[str, tuple[Callable[[Any], Any], set[int]]] = {
    "branch": (branch, {7, 12, 30}),
    "some": (lambda x: x.sum(0) if x.shape[0] > 0 else x.sum(0) + 1, set(SIZES) - {0}),
    "several": (lambda x: x * 2 if len(x) > 1 else x * 3, set(SIZES) - {0, 1}),
    "one": (lambda x: x * 3 if x.shape[0] == 1 else x * 2, set(SIZES) - {1}),
    "none": (lambda x: x.sum(0) if x.numel() != 0 else x.sum(0) + 1, set(SIZES) - {0}),
    "truth": (lambda x: x.sum(0) if x.shape[0] else x.sum(0) + 1, set(SIZES) - {0}),
    "any size": (lambda x: x * 2 if x.shape[0] >= 0 else x, set(SIZES)),
    "at least one": (lambda x: x.sum(0) / max(x.shape[0], 1), set(SIZES) - {0}),
    "at most one": (lambda x: x.sum(0) + min(x.shape[0], 1), set(SIZES) - {0}),
    "distance": (lambda x: x.sum(0) + abs(x.shape[0] - 1), set(SIZES) - {0}),
    "layer": (lambda x: functional.batch_norm(x, None, None, training=True), set(SIZES) - {1}),
    "even": (even, {0, 2, 4, 12, 30}),
    "chunks": (chunks, {7}),
    "rows": (lambda x: x.new_zeros(len(x), 3) + len(x), set(SIZES)),
    "slice": (lambda x: x[:3] * 2, {3, 4, 7, 12, 30}),
    "end": (lambda x: x[2:] + x[2:, :1], {4, 7, 12, 30}),
    "reshape": (lambda x: x.reshape(2, -1), {0, 2, 4, 12, 30}),
    "flatten": (lambda x: x[2:].flatten(), {2, 3, 4, 7, 12, 30}),
    "squeeze": (lambda x: x.squeeze(), {0, 2, 3, 4, 7, 12, 30}),
    "squeeze dim": (lambda x: x.squeeze(0).sum(-1), {0, 2, 3, 4, 7, 12, 30}),
    "pool": (lambda x: functional.adaptive_avg_pool1d(x.T[None], 3), set(SIZES) - {0}),
    "convolution": (
        lambda x: functional.conv1d(x.T[None], x.new_ones(2, 4, 3), padding=1, stride=2),
        set(SIZES) - {0},
    ),
    "glu": (lambda x: functional.glu(x, 0), {0, 2, 4, 12, 30}),
    "unfold": (lambda x: x.unfold(0, 3, 2) + 1, {3, 4, 7, 12, 30}),
    "distances": (lambda x: torch.cdist(x, x + 1), set(SIZES)),
    "top": (lambda x: x.topk(3, 0)[0], {3, 4, 7, 12, 30}),
    "strided": (lambda x: x.as_strided((len(x) - 1, 2), (4, 1), 1), {3, 4, 7, 12, 30}),
    "diagonal": (diagonal, {7, 12, 30}),
    "singular values": (lambda x: torch.linalg.svdvals(x), {4, 7, 12, 30}),
    "fourier": (lambda x: torch.fft.fft(x, dim=0).abs(), set(SIZES) - {0}),
    # Half of the 6 rows that are traced, and one more, are as many as there are columns.
    "real fourier": (lambda x: torch.fft.rfft(x[2:], dim=0).abs(), {4, 7, 12, 30}),
    "inverse": (
        lambda x: torch.fft.irfft(torch.fft.rfft(x, dim=0), x.shape[0], dim=0),
        set(SIZES) - {0},
    ),
    "softmax": (lambda x: x.softmax(0), set(SIZES)),
    "instance": (lambda x: x * (2 if isinstance(x.shape[0], int) else 3), set(SIZES)),
    "float": (lambda x: x * (2 if isinstance(x.shape[0] / 2, int | float) else 3), set(SIZES)),
    "type": (lambda x: x * (2 if type(x.shape[0]) is int else 3), set(SIZES)),
    "class": (lambda x: x * (2 if isinstance(type(x.shape[0]), type) else 3), set(SIZES)),
    "text": (lambda x: x * len(str(x.shape[0])), set()),
    "message": (report, set(SIZES)),
    "product": (lambda x: x @ x.T, set(SIZES)),
    "attention": (
        lambda x: functional.scaled_dot_product_attention(x[None], x[None], x[None]),
        set(SIZES) - {0},
    ),
}
"""A program of x, and the numbers of rows for which it must not be refused."""


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_call_is_right_or_refused(name: str) -> None:
    function, accepted = PROGRAMS[name]
    example = torch.rand(TRACED, 4)
    program = irees.compile(
        function, (example,), dynamic_shapes=({0: Dim.AUTO},), target="reference"
    )
    torch.testing.assert_close(program(example), function(example))
    for rows in SIZES:
        x = torch.rand(rows, 4)
        try:
            expected = function(x)
        except (RuntimeError, IndexError, ValueError):
            continue
        try:
            result = program(x)
        except (ArgumentError, RuntimeTrap):
            assert rows not in accepted, f"{rows} rows are refused"
            continue
        torch.testing.assert_close(result, expected, rtol=1e-4, atol=1e-4, equal_nan=True)


def test_declared_ranges_are_checked() -> None:
    rows = Dim("rows", min=4, max=10)
    program = irees.compile(lambda x: x + 1, (torch.rand(8, 4),), dynamic_shapes=({0: rows},))
    assert program(torch.zeros(10, 4)).sum() == 40
    with pytest.raises(RuntimeTrap, match=r"compiled for inputs with x.shape\[0\] <= 10"):
        program(torch.zeros(11, 4))
    with pytest.raises(RuntimeTrap, match=r"compiled for inputs with x.shape\[0\] >= 4"):
        program(torch.zeros(3, 4))


def test_a_guard_names_the_argument() -> None:
    program = irees.compile(even, (torch.rand(8, 4),), dynamic_shapes=({0: Dim.AUTO},))
    with pytest.raises(RuntimeTrap, match=r"with \(x.shape\[0\] % 2\) == 0"):
        program(torch.zeros(3, 4))


def test_a_check_of_a_derived_dim_names_the_argument() -> None:
    n = Dim("n")

    def f(x: Any, y: Any) -> Any:
        return x[1:].reshape(-1, 4).sum() + y.sum()

    example = (torch.ones(9), torch.ones(10))
    dims = ({0: 4 * n + 1}, {0: 5 * n})
    program = irees.compile(f, example, dynamic_shapes=dims, target="reference")
    with pytest.raises(
        RuntimeTrap, match="dim 0 of argument 'x' must be 1 more than a multiple of 4"
    ):
        program(torch.ones(10), torch.ones(10))
    with pytest.raises(RuntimeTrap, match=r"'y' must be 5\*\(\(x.shape\[0\] - 1\) // 4\)"):
        program(torch.ones(9), torch.ones(15))
    assert program(torch.ones(13), torch.ones(15)) == 27


def test_decompositions_are_not_shared_between_programs() -> None:
    """The counted size of the first program has the name of the second one's other size."""

    def first(x: Any, keep: Any) -> Any:
        return x[torch.where(keep)[0]]

    def second(x: Any, keep: Any) -> Any:
        kept = x[torch.where(keep)[0]]
        small = (kept[:, 0] > 0.5).long()
        return kept[torch.where(small == 0)[0]]

    x, keep = torch.rand(7, 4), torch.tensor([1, 1, 0, 1, 1, 0, 1]) > 0
    x[0, 0], x[3, 0] = 0.1, 0.9
    for function in (first, second):
        program = irees.compile(function, (x, keep), target="reference")
        assert torch.equal(program(x, keep), function(x, keep))


class Branches(torch.nn.Module):
    """Decides by the sizes of nested arguments."""

    def forward(self, x: Any, *, d: Any) -> Any:
        first, second = x[0]["a"], d["q"]
        return first * (2 if first.shape[0] % 2 == 0 else 3) + (5 if second.shape[0] > 5 else 7)


def test_a_program_from_a_file_keeps_its_guards() -> None:
    rows = {0: Dim.AUTO}
    exported = torch.export.export(
        Branches(), ([{"a": torch.rand(8, 4)}],), {"d": {"q": torch.rand(9)}},
        dynamic_shapes={"x": [{"a": rows}], "d": {"q": rows}},
    )  # fmt: skip
    file = io.BytesIO()
    torch.export.save(exported, file)
    file.seek(0)
    program = irees.compile(torch.export.load(file), target="reference")
    assert torch.equal(
        program([{"a": torch.ones(2, 4)}], d={"q": torch.ones(6)}), torch.ones(2, 4) * 7
    )
    for first, second in ((3, 6), (2, 5)):
        with pytest.raises(RuntimeTrap, match="compiled for inputs with"):
            program([{"a": torch.ones(first, 4)}], d={"q": torch.ones(second)})


@pytest.mark.parametrize("mode", ["bilinear", "bicubic"])
@pytest.mark.parametrize("how", [{"size": (7, 13)}, {"scale_factor": (2.5, 0.6)}], ids=str)
def test_images_of_any_size_are_resized_with_antialiasing(mode, how):
    def resized(x):
        return torch.nn.functional.interpolate(x, mode=mode, antialias=True, **how)

    dims = {axis: torch.export.Dim(name, min=16, max=400) for axis, name in ((2, "h"), (3, "w"))}
    program = irees.compile(resized, (torch.rand(2, 3, 20, 31),), dynamic_shapes=(dims,))
    for size in ((20, 31), (16, 17), (64, 100), (33, 17)):
        x = torch.rand(2, 3, *size)
        torch.testing.assert_close(program(x), resized(x), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("target", ["cpu", "reference"])
@pytest.mark.parametrize("mode", ["nearest", "nearest-exact", "bilinear", "bicubic"])
@pytest.mark.parametrize(
    "how",
    [
        {"size": (7, 13)},
        {"scale_factor": (2.0, 3.0)},
        {"scale_factor": (1.5, 0.6)},
        {"scale_factor": (1.5, 2.0)},
    ],
    ids=str,
)
def test_images_of_any_size_are_resized(mode, how, target):
    def resized(x):
        return functional.interpolate(x, mode=mode, **how)

    dims = {axis: Dim(name, min=4, max=400) for axis, name in ((2, "h"), (3, "w"))}
    program = irees.compile(
        resized, (torch.rand(2, 3, 20, 31),), dynamic_shapes=(dims,), target=target
    )
    for size in ((20, 31), (4, 17), (33, 17)):
        x = torch.rand(2, 3, *size)
        # Places are rounded in f32: the weights of 33 pixels have five bits less.
        torch.testing.assert_close(program(x), resized(x), rtol=1e-5, atol=1e-5)


def _depthwise(x, w):
    return functional.conv1d(x, w, groups=x.shape[1])


def _grouped_heads(q, k):
    return functional.scaled_dot_product_attention(q, k, k, enable_gqa=True)


CHANNELS = {
    "convolution": (lambda x, w: functional.conv1d(x, w), [(2, 6, 10), (4, 6, 3)], [(1, 3, 9), (8, 3, 4)]),
    "depthwise": (_depthwise, [(2, 6, 10), (6, 1, 3)], [(1, 5, 9), (5, 1, 4)]),
    "groups": (
        lambda x, w: functional.conv1d(x, w, groups=2, stride=2, padding=1),
        [(2, 6, 10), (6, 3, 3)],
        [(1, 8, 9), (8, 4, 4)],
    ),
    "group norm": (
        lambda x, _: functional.group_norm(x, 2), [(2, 8, 5), (1, 2)], [(3, 4, 7), (1, 2)]
    ),
    "heads": (_grouped_heads, [(2, 8, 5, 4), (2, 2, 6, 4)], [(1, 6, 3, 4), (1, 3, 7, 4)]),
    "inverse transform": (
        lambda x, _: torch.fft.irfft(torch.fft.rfft(x), n=x.shape[-1]), [(3, 8), (1, 2)],
        [(4, 5), (1, 2)],
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", CHANNELS)
def test_channels_heads_and_kernels_may_be_dynamic(case):
    function, shapes, others = CHANNELS[case]
    last = 3 if case == "heads" else 9
    dims = tuple({i: Dim.AUTO for i in range(min(len(s), last))} for s in shapes)
    example = tuple(map(torch.randn, shapes))
    program = irees.compile(function, example, dynamic_shapes=dims, target="reference")
    for args in (example, tuple(map(torch.randn, others))):
        torch.testing.assert_close(program(*args), function(*args))


def test_kernels_that_must_be_known_are_refused_by_name():
    def up(x, w):
        return functional.conv_transpose1d(x, w, stride=2)

    args = torch.randn(2, 3, 10), torch.randn(3, 2, 4)
    with pytest.raises(irees.errors.UnsupportedError, match="kernel of dynamic size"):
        irees.compile(up, args, dynamic_shapes=({}, {2: Dim.DYNAMIC}))


def test_matrices_of_any_shape_have_singular_values():
    def product(x):
        u, s, vh = torch.linalg.svd(x, full_matrices=False)
        return (u * s) @ vh, s

    dims = ({0: Dim.DYNAMIC, 1: Dim.DYNAMIC},)
    program = irees.compile(product, (torch.randn(3, 5),), dynamic_shapes=dims)
    for shape in ((3, 5), (5, 2), (4, 4)):
        x = torch.randn(shape)
        torch.testing.assert_close(program(x), product(x))


def test_a_shorter_temporary_of_rank_4_has_room():
    def padded(x):
        return functional.pad(x, (-1, 2, 1, -2), mode="replicate")

    x = torch.randn(2, 3, 6, 7)
    compiled = torch.compile(padded, backend="irees", dynamic=True, options={"fallback": False})
    torch.testing.assert_close(compiled(x), padded(x))


def test_powers_of_two_of_a_size():
    def scaled(x):
        return x * 2 ** x.shape[0], torch.arange(4 ** (x.shape[0] - 1))

    program = irees.compile(
        scaled, (torch.ones(3),), dynamic_shapes=({0: Dim.DYNAMIC},), target="reference"
    )
    for n in (3, 1, 5):
        torch.testing.assert_close(program(torch.ones(n)), scaled(torch.ones(n)))
    with pytest.raises(irees.errors.UnsupportedError, match="3 to the power of a size"):
        irees.compile(
            lambda x: x * 3 ** x.shape[0], (torch.ones(3),), dynamic_shapes=({0: Dim.DYNAMIC},)
        )


def test_a_declared_minimum_of_2_is_checked():
    dims = ({0: Dim("n", min=2)},)
    program = irees.compile(
        lambda x: x.softmax(0), (torch.ones(3, 2),), dynamic_shapes=dims, target="reference"
    )
    assert program(torch.ones(2, 2)).shape == (2, 2)
    with pytest.raises(RuntimeTrap, match=r"x.shape\[0\] >= 2"):
        program(torch.ones(1, 2))


@pytest.mark.parametrize("holds", [lambda n: n < 7, lambda n: n % 4 == 2])
def test_a_guard_of_a_derived_dim_is_checked(holds):
    """The guard is about the symbol of the dim, and the dim is twice another symbol."""
    dims = ({0: 2 * Dim("n", min=2)},)
    program = irees.compile(
        lambda x: x + (3 if holds(x.shape[0]) else 4),
        (torch.zeros(6),),
        dynamic_shapes=dims,
        target="reference",
    )
    assert torch.equal(program(torch.zeros(6)), torch.full((6,), 3.0))
    with pytest.raises(RuntimeTrap, match="the program is compiled for inputs with"):
        program(torch.zeros(8))


def test_a_check_of_a_counted_size_is_checked():
    def few(mask):
        places = mask.nonzero()
        torch._check(places.shape[0] >= 1)
        torch._check(places.shape[0] <= 2)
        return places * 2

    program = irees.compile(few, (torch.tensor([1, 0, 1]),), target="reference")
    assert program(torch.tensor([0, 1, 0])).tolist() == [[2]]
    for wrong in ([0, 0, 0], [1, 1, 1]):
        with pytest.raises(RuntimeTrap, match="u0"):
            program(torch.tensor(wrong))


def test_shapes_of_arguments_that_star_gathers_need_no_nesting():
    n = Dim("n")

    def joined(first, *rest):
        return torch.cat([first, *rest])

    three, five = torch.ones(3, 2), torch.ones(5, 2)
    for shapes in (({0: n}, {0: n}, {0: n}), ({0: n}, ({0: n}, {0: n}))):
        program = irees.compile(
            joined, (three, three, three), dynamic_shapes=shapes, target="reference"
        )
        assert program(five, five, five).shape == (15, 2)


def test_a_violated_constraint_is_named_with_its_remedy():
    def long(x):
        assert x.shape[0] >= 5
        return x * 2

    dims = ({0: Dim("n", min=4)},)
    with pytest.raises(irees.errors.UnsupportedError, match=r"Dim\('n', min=5\)"):
        irees.compile(long, (torch.ones(8),), dynamic_shapes=dims)


RECURRENT = {
    "lstm": lambda: torch.nn.LSTM(4, 5),
    "deep": lambda: torch.nn.LSTM(4, 5, num_layers=2, bidirectional=True, dropout=0.3),
    "projected": lambda: torch.nn.LSTM(4, 5, proj_size=3),
    "gru": lambda: torch.nn.GRU(4, 5, bias=False),
    "rnn": lambda: torch.nn.RNN(4, 5, nonlinearity="relu", bidirectional=True),
}


@pytest.mark.parametrize("kind", RECURRENT)
def test_recurrent_layers_of_any_length(kind):
    model = RECURRENT[kind]().eval()
    shapes = ({0: Dim("time", min=1), 1: Dim("batch", min=1)},)
    program = irees.compile(
        model, (torch.randn(7, 2, 4),), dynamic_shapes=shapes, target="reference"
    )
    for time, batch in ((1, 1), (2, 5), (9, 2)):
        x = torch.randn(time, batch, 4)
        with torch.no_grad():
            torch.testing.assert_close(program(x), model(x))


def test_the_output_of_a_recurrent_layer_may_be_written():
    class Written(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = torch.nn.LSTM(4, 6, batch_first=True)

        def forward(self, x):
            out, _ = self.layer(x)
            view = out[:, 1:]
            view.relu_()
            return out.sum(1)

    model = Written().eval()
    shapes = ({1: Dim("time", min=3)},)
    program = irees.compile(
        model, (torch.randn(2, 7, 4),), dynamic_shapes=shapes, target="reference"
    )
    x = torch.randn(2, 5, 4)
    with torch.no_grad():
        torch.testing.assert_close(program(x), model(x))


def test_an_export_of_ones_own_unrolls_recurrent_layers_as_before():
    layer, x = torch.nn.LSTM(4, 5).eval(), torch.randn(6, 2, 4)
    before = dict(torch.ops.aten.lstm.input.py_kernels)
    irees.compile(layer, (x,), target="reference")
    assert torch.ops.aten.lstm.input.py_kernels == before


def test_states_of_another_batch_are_refused():
    weights = [torch.randn(15, 4), torch.randn(15, 5)]
    settings = (False, 1, 0.0, False, False, False)
    with pytest.raises(UnsupportedError, match="the batch is 2"):
        irees.compile(
            lambda x, h: torch.gru(x, h, weights, *settings),
            (torch.randn(5, 2, 4), torch.randn(1, 3, 5)),
        )


def _step(x: Any) -> Any:
    return 1 / x.shape[0]


NUMBERS: dict[str, Callable[[Any], Any]] = {
    "slope": lambda x: functional.leaky_relu(x, x.shape[0]) + functional.leaky_relu(x, _step(x)),
    "elu": lambda x: functional.elu(x, x.shape[0] * 1.5) + functional.celu(x, _step(x)),
    "bounds": lambda x: functional.hardtanh(x, -_step(x), x.shape[0]),
    "threshold": lambda x: functional.threshold(x, _step(x), x.shape[0]),
    "softplus": lambda x: functional.softplus(x, x.shape[0], 2),
    "shrink": lambda x: functional.hardshrink(x, _step(x)) + functional.softshrink(x, _step(x)),
    "order": lambda x: x.norm(p=_step(x)) + torch.linalg.vector_norm(x, 4 * _step(x)),
    "bins": lambda x: torch.histc(x, 4, -x.shape[0], x.shape[0]),
    "steps": lambda x: torch.arange(0, 1, _step(x)),
}
"""Programs whose operators take a number that is computed from a size."""

SPECIALIZED: dict[str, Callable[[Any], Any]] = {
    "random slopes": lambda x: functional.rrelu(x, _step(x), x.shape[0], training=False),
    "correction": lambda x: x.std(1, correction=x.shape[0] - 2.0),
    "loss": lambda x: functional.smooth_l1_loss(x, x * 0, beta=_step(x)),
}
"""The same, but PyTorch reads the number, so that it compiles for the size of the example."""


@pytest.mark.parametrize("name", NUMBERS | SPECIALIZED)
def test_numbers_that_are_computed_from_sizes(name):
    function, x = (NUMBERS | SPECIALIZED)[name], torch.randn(4, 4)
    shapes = ({0: Dim.AUTO},)
    program = irees.compile(function, (x,), dynamic_shapes=shapes, target="reference")
    for rows in (4, 3) if name in NUMBERS else (4,):
        torch.testing.assert_close(program(x[:rows]), function(x[:rows]))


@pytest.mark.parametrize("target", ["cpu", "reference"])
def test_distances_of_all_pairs_of_any_number_of_rows(target):
    def distances(x):
        return torch.nn.functional.pdist(x)

    dims = ({0: torch.export.Dim.DYNAMIC},)
    program = irees.compile(distances, (torch.rand(5, 3),), dynamic_shapes=dims, target=target)
    for rows in (2, 3, 4, 17, 90):
        x = torch.rand(rows, 3)
        torch.testing.assert_close(program(x), distances(x))


def test_products_of_any_size():
    """Each number of rows and columns has its own blocks at the end."""
    dims = ({0: Dim.AUTO, 1: Dim.AUTO}, {0: Dim.AUTO, 1: Dim.AUTO})
    program = irees.compile(torch.matmul, (torch.rand(9, 7), torch.rand(7, 8)), dynamic_shapes=dims)
    for rows in (*range(1, 31), 64, 100):
        for columns, depth in ((1, 3), (8, 1), (15, 7), (17, 2), (31, 70), (49, 5), (100, 600)):
            a, b = torch.rand(rows, depth) - 0.5, torch.rand(depth, columns) - 0.5
            torch.testing.assert_close(program(a, b), a @ b, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("target", ["cpu", "reference"])
def test_rows_of_an_empty_table(target):
    """An index into no rows is out of bounds; no index is none."""

    def rows(table, places):
        return table[places] * 2

    shapes = ({0: Dim.DYNAMIC}, {0: Dim.DYNAMIC})
    inputs = torch.rand(5, 3), torch.tensor([1, 4, 0])
    program = irees.compile(rows, inputs, dynamic_shapes=shapes, target=target)
    torch.testing.assert_close(program(*inputs), rows(*inputs))
    assert program(torch.rand(0, 3), torch.zeros(0, dtype=torch.int64)).shape == (0, 3)
    with pytest.raises(RuntimeTrap, match="out of bounds"):
        program(torch.rand(0, 3), inputs[1])
    with pytest.raises(RuntimeTrap, match="out of bounds"):
        program(torch.rand(4, 3), inputs[1])


TEXTS: dict[str, Callable[[Any], Any]] = {
    "str": lambda x: x * len(str(x.shape[0])),
    "format": lambda x: x * len(f"rows: {x.shape[0]}"),
    "shape": lambda x: x * len(str(x.shape)),
    "float": lambda x: x * len(repr(x.shape[0] / 2)),
}
"""Programs that compute from the text of a dynamic size."""


@pytest.mark.parametrize("name", TEXTS)
def test_a_size_whose_text_is_used_is_not_dynamic(name):
    x = torch.rand(5, 2)
    with pytest.raises(UnsupportedError, match=r"specialized|generated guard"):
        irees.compile(TEXTS[name], (x,), dynamic_shapes=({0: Dim("n")},), target="reference")
    shapes = ({0: Dim.AUTO},)
    program = irees.compile(TEXTS[name], (x,), dynamic_shapes=shapes, target="reference")
    torch.testing.assert_close(program(x), TEXTS[name](x))
    with pytest.raises((ArgumentError, RuntimeTrap)):
        program(torch.rand(100, 2))
