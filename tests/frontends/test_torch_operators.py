"""Operators of PyTorch against eager where the operator database does not look: dynamic sizes."""

from __future__ import annotations

import numpy as np
import pytest

torch = pytest.importorskip("torch")

import irees  # noqa: E402
from irees.errors import RuntimeTrap  # noqa: E402

TARGETS = pytest.mark.parametrize("target", ["reference", "cpu"])
N = torch.export.Dim("n", min=2, max=64)


def searched(x, v):
    """Places of values in a row that is sorted first."""
    return torch.searchsorted(torch.sort(x)[0], v, right=True)


ROWS = {
    "search": searched,
    "cummax": lambda x, v: torch.cummax(x, 0)[0],
    "median": lambda x, v: torch.median(x),
    "mode": lambda x, v: torch.mode(torch.round(x * 2), 0)[0],
    "unique": lambda x, v: torch.unique(torch.round(x * 2), return_counts=True),
    "topk": lambda x, v: torch.topk(x, 2)[0],
    "histc": lambda x, v: torch.histc(x, 4, -2, 2),
    "cdist": lambda x, v: torch.cdist(x[:, None], v[:, None], p=1.0),
}  # fmt: skip


@TARGETS
@pytest.mark.parametrize("name", ROWS)
def test_rows_of_any_size(name, target):
    """Of rows whose size is not known when they are compiled."""
    program = ROWS[name]
    torch.manual_seed(0)
    v = torch.tensor([-1.0, 0.25, 3.0, float("nan")] if name == "search" else [-1.0, 0.25, 3.0])
    compiled = irees.compile(
        lambda x, v: program(x, v), (torch.randn(7), v), target=target,
        dynamic_shapes={"x": {0: N}, "v": None},
    )  # fmt: skip
    for size in (2, 7, 33):
        x = torch.randn(size)
        want, got = program(x, v), compiled(x, v)
        pairs = zip(*((t if isinstance(t, tuple | list) else [t]) for t in (want, got)))
        for w, g in pairs:
            np.testing.assert_allclose(np.asarray(g), w.numpy(), rtol=1e-5)


@pytest.mark.parametrize("size", [0, 1, 2, 5, 8, 9])
@pytest.mark.parametrize("right", [False, True])
def test_a_search_of_rows_that_are_not_sorted(size, right):
    """The halves that are looked at are those of eager, so the places are, too."""
    torch.manual_seed(size)
    row = torch.randn(size)
    values = torch.cat([torch.randn(20), row, torch.tensor([float("nan"), float("-inf")])])

    def program(row, values):
        return torch.searchsorted(row, values, right=right)

    want = program(row, values)
    np.testing.assert_array_equal(
        np.asarray(irees.compile(program, (row, values), target="reference")(row, values)), want
    )
    if size > 1:
        shapes = {"row": {0: torch.export.Dim.AUTO}, "values": None}
        dynamic = irees.compile(program, (row, values), target="reference", dynamic_shapes=shapes)
        np.testing.assert_array_equal(np.asarray(dynamic(row, values)), want)


@pytest.mark.parametrize("training", [False, True])
def test_native_batch_norm_moves_its_statistics(training):
    """Its schema does not say that it writes to them."""
    x, weight = torch.randn(3, 4, 5), torch.randn(4)

    def program(x, weight, mean, var):
        return torch.native_batch_norm(x, weight, weight, mean, var, training, 0.1, 1e-5)[0]

    given = [(torch.linspace(-1, 1, 4), torch.linspace(1, 2, 4)) for _ in range(3)]
    compiled = irees.compile(program, (x, weight, *given[0]), target="reference")
    torch.testing.assert_close(
        torch.as_tensor(compiled(x, weight, *given[1])), program(x, weight, *given[2])
    )
    torch.testing.assert_close(given[1], given[2])


@TARGETS
def test_resizing_to_sizes_that_are_not_known(target):
    """Steps are computed from dims."""

    def program(x):
        return torch.nn.functional.interpolate(x, scale_factor=1.5, mode="bilinear")

    x = torch.randn(1, 2, 6, 4)
    compiled = irees.compile(program, (x,), target=target, dynamic_shapes={"x": {2: N}})
    for rows in (6, 9):
        x = torch.randn(1, 2, rows, 4)
        np.testing.assert_allclose(np.asarray(compiled(x)), program(x), rtol=1e-5, atol=1e-6)


@TARGETS
def test_grouped_products(target):
    """A product for each group of rows; empty groups and rows behind the last among them."""
    x, w = torch.randn(10, 16).bfloat16(), torch.randn(4, 16, 8).bfloat16()
    ends = torch.tensor([3, 3, 8, 10], dtype=torch.int32)

    def program(x, w, ends):
        return torch._grouped_mm(x, w, offs=ends).float()

    compiled = irees.compile(program, (x, w, ends), target=target)
    got = np.asarray(compiled(x, w, ends))
    np.testing.assert_allclose(got, program(x, w, ends), rtol=2e-2, atol=1e-3)


@TARGETS
def test_gradients_of_grouped_products(target):
    """The operator of transformers that PyTorch runs where it has no grouped product."""
    pytest.importorskip("transformers.integrations.moe", reason="needs transformers")
    x, w, dy = torch.randn(10, 16), torch.randn(4, 16, 8), torch.randn(10, 8)
    ends = torch.tensor([3, 3, 8, 10], dtype=torch.int32)

    def program(x, w, ends, dy):
        return torch.ops.transformers.grouped_mm_fallback_backward(x, w, ends, dy)

    compiled = irees.compile(program, (x, w, ends, dy), target=target)
    for got, want in zip(compiled(x, w, ends, dy), program(x, w, ends, dy), strict=True):
        np.testing.assert_allclose(np.asarray(got), want, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("summed", [[0], [2], [0, 2], [0, 1, 2, 3]])
@pytest.mark.parametrize("unrolled", [0, 1])
def test_trilinear_of_a_dim_that_no_operand_has(summed, unrolled):
    """PyTorch gives it size 0 in the result, and a sum along it is 0 if it unrolls that dim."""

    def program(x, y, z):
        return torch.ops.aten._trilinear(x, y, z, [0], [0], [0], summed, unrolled)

    args = [torch.randn(2, 3, 6) for _ in range(3)]
    want = program(*args)
    got = irees.compile(program, tuple(args), target="reference")(*args)
    assert got.shape == want.shape
    np.testing.assert_allclose(np.asarray(got), want, rtol=1e-5, atol=1e-6)


def contiguous(x):
    """A transposed matrix in memory of its own."""
    return x.transpose(0, 1).contiguous()


COPIES = {
    "contiguous": contiguous,
    "reshape": lambda x: x.transpose(0, 1).reshape(2, 6),
    "unsafe_view": lambda x: torch.ops.aten._unsafe_view(x[1:], [4, 2]),
    "view": lambda x: x[1:].view(4, 2),
}


@pytest.mark.parametrize("name", COPIES)
def test_as_strided_of_a_view_of_a_copy(name):
    """Strides are those of the storage that the view has, be it the argument's or a copy's."""
    x = torch.arange(12.0).reshape(3, 4)

    def program(x):
        return torch.as_strided(COPIES[name](x), (2, 2), (3, 1), 0)

    got = irees.compile(program, (x,), target="reference")(x)
    np.testing.assert_array_equal(np.asarray(got), program(x))


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.int64])
def test_heaviside_of_nan_is_zero(dtype):
    """As eager has it, unlike PyTorch's reference implementation."""
    x = torch.tensor([1.0, -2.0, 0.0, -0.0, 7.0])
    if dtype.is_floating_point:
        x = torch.cat([x, torch.tensor([torch.inf, torch.nan, -torch.inf])])
    args = x.to(dtype), torch.tensor([5]).to(dtype)
    got = irees.compile(lambda x, y: torch.heaviside(x, y), args, target="reference")(*args)
    np.testing.assert_array_equal(np.asarray(got), torch.heaviside(*args))


@pytest.mark.parametrize("mode", [0, 1])
@pytest.mark.parametrize("padding", [None, 2])
def test_embedding_bag_counts_its_bags_for_means_alone(mode, padding):
    """Sizes of bags are 0 where the gradient does not read them."""
    args = torch.rand(4, 2), torch.tensor([3, 0, 1, 2, 2]), torch.tensor([0, 2, 2])

    def program(w, i, o):
        found = torch.ops.aten.embedding_bag(w, i, o, False, mode, False, None, False, padding)
        return found[0], found[2]

    got = irees.compile(program, args, target="reference")(*args)
    for mine, theirs in zip(got, program(*args), strict=True):
        np.testing.assert_allclose(np.asarray(mine), theirs, rtol=1e-6)


@TARGETS
def test_multiply_add_of_inductor(target):
    """Dynamo makes it of `add_` with a tensor for alpha, as in steps of Adam."""
    from torch._inductor import inductor_prims

    x, y, z = torch.randn(4, 5), torch.tensor(0.5), torch.randn(4, 5)
    got = np.asarray(irees.compile(inductor_prims.fma, (x, y, z), target=target)(x, y, z))
    np.testing.assert_allclose(got, inductor_prims.fma(x, y, z), rtol=1e-6, atol=1e-6)


@TARGETS
def test_indices_without_elements_may_have_any_rank(target):
    """Eager gathers nothing from a row by an index of two dims."""
    x, at = torch.randn(5), torch.zeros(2, 0, dtype=torch.long)
    got = irees.compile(lambda x, at: torch.gather(x, 0, at), (x, at), target=target)(x, at)
    assert tuple(got.shape) == (2, 0)


@pytest.mark.parametrize("function", [torch.kron, torch.nn.functional.pairwise_distance])
def test_an_operator_of_one_tensor_twice_is_another_operator(function):
    """The decomposition of f(x, x) is cached, but is not that of f(x, y)."""
    x, y = torch.randn(2, 3, 7), torch.randn(2, 3, 7)
    twice = irees.compile(lambda a: function(a, a), (x,), target="reference")
    torch.testing.assert_close(twice(x), function(x, x))
    program = irees.compile(lambda a, b: function(a, b), (x, y), target="reference")
    torch.testing.assert_close(program(x, y), function(x, y))


@pytest.mark.parametrize("settings", [{}, {"periodic": False}, {"periodic": True, "beta": 3.0}])
@pytest.mark.parametrize("length", [0, 1, 2, 9])
def test_kaiser_windows(length, settings):
    def program(x):
        return x * torch.kaiser_window(length, dtype=torch.float64, **settings)

    x = torch.ones(length, dtype=torch.float64)
    torch.testing.assert_close(irees.compile(program, (x,), target="reference")(x), program(x))


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "float64"])
@pytest.mark.parametrize(
    "sizes", [((30,), (7,)), ((11, 4), (5, 9)), ((6, 7, 5), (4, 7, 2))], ids=str
)
def test_adaptive_means(sizes, dtype):
    """Windows that overlap, that are longer than the input, and whole dims."""
    shape, out = sizes
    x = torch.randn(2, 3, *shape, dtype=getattr(torch, dtype))
    pool = getattr(torch.nn.functional, f"adaptive_avg_pool{len(out)}d")
    # Eager adds in bfloat16 in some dims.
    want = pool(x.double(), out).to(x.dtype)
    torch.testing.assert_close(irees.compile(lambda x: pool(x, out), (x,))(x), want)


@pytest.mark.parametrize("name", ["avg", "max", "max with its index"])
@pytest.mark.parametrize("dynamic", [False, True])
def test_adaptive_windows_of_several_lengths(dynamic, name):
    kind, *index = name.split(" with ")
    pool = getattr(torch.nn.functional, f"adaptive_{kind}_pool2d")

    def program(x):
        return pool(x, (3, 5), return_indices=True) if index else pool(x, (3, 5))

    x = torch.randn(2, 3, 11, 13)
    sizes = ({2: torch.export.Dim.AUTO, 3: torch.export.Dim.AUTO},) if dynamic else None
    compiled = irees.compile(program, (x,), dynamic_shapes=sizes, target="reference")
    others = [torch.randn(2, 3, 2, 4), torch.randn(2, 3, 6, 10)] if dynamic else []
    for each in (x, torch.where(x > 2, float("nan"), x), *others):
        torch.testing.assert_close(compiled(each), program(each), equal_nan=True)


@pytest.mark.parametrize("name", ["avg", "max", "max with its index"])
@pytest.mark.parametrize("rank", [1, 2, 3])
@pytest.mark.parametrize("dynamic", [False, True])
def test_one_window_is_the_whole_image(dynamic, rank, name):
    kind, *index = name.split(" with ")
    pool = getattr(torch.nn.functional, f"adaptive_{kind}_pool{rank}d")

    def program(x):
        return pool(x, 1, return_indices=True) if index else pool(x, 1)

    x = torch.randn(2, 3, *(5, 4, 3)[:rank])
    sizes = ({2 + i: torch.export.Dim(f"n{i}", min=2) for i in range(rank)},) if dynamic else None
    compiled = irees.compile(program, (x,), dynamic_shapes=sizes)
    one_nan = torch.where(x == x[0].max(), float("nan"), x)
    for each in (x, one_nan, torch.full_like(x, float("-inf"))):
        torch.testing.assert_close(compiled(each), program(each), equal_nan=True)
    if dynamic:
        other = torch.randn(2, 3, *(2, 9, 6)[:rank])
        torch.testing.assert_close(compiled(other), program(other))


@pytest.mark.parametrize("mode", ["bilinear", "bicubic"])
@pytest.mark.parametrize("size", [(5, 4), (40, 4), (5, 70), (33, 65)], ids=str)
def test_images_are_resized_by_any_ratio(size, mode):
    """Dims one after the other, or together with one that becomes much smaller."""

    def program(x):
        return torch.nn.functional.interpolate(x, size, mode=mode)

    x = torch.randn(2, 3, 37, 59)
    # Weights are differences of places below 64, which f32 rounds to 2^-18.
    torch.testing.assert_close(irees.compile(program, (x,))(x), program(x), rtol=1e-5, atol=2e-5)


@pytest.mark.parametrize("longest", [2, 4, 5])
def test_jagged_tensors_are_padded_and_packed(longest):
    values, offsets = torch.arange(1.0, 19).reshape(6, 3), torch.tensor([0, 2, 2, 6])

    def f(values, offsets):
        padded = torch.ops.aten._jagged_to_padded_dense_forward(values, [offsets], [longest], 9.0)
        return padded, torch.ops.aten._padded_dense_to_jagged_forward(padded, [offsets], 6)

    program = irees.compile(f, (values, offsets), target="reference")
    if longest == 2:  # shorter than the last row: eager raises, too
        with pytest.raises(RuntimeTrap):
            program(values, offsets)
    else:
        torch.testing.assert_close(program(values, offsets), f(values, offsets))


@pytest.mark.filterwarnings("error")
def test_weights_that_are_not_finite_give_no_warning():
    """Weights are packed, scaled and transformed in threads with numpy's own mode."""
    model = torch.nn.Sequential(torch.nn.Conv2d(64, 64, 3, padding=1), torch.nn.BatchNorm2d(64))
    model.eval().requires_grad_(False)
    model[0].weight[0, 0, 0, 0] = torch.inf
    model[0].weight[1, 0, 0, 0] = torch.nan
    x = torch.randn(1, 64, 32, 32)
    got, want = torch.as_tensor(irees.compile(model, (x,))(x)), model(x)
    assert not got[:, :2].isfinite().any()
    torch.testing.assert_close(got[:, 2:], want[:, 2:], rtol=1e-3, atol=1e-3)
