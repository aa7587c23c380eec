"""Indices out of bounds end a PyTorch program with an error, as in eager; good ones are exact."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="needs PyTorch: pip install 'irees[torch]'")

from torch.export import Dim  # noqa: E402
from torch.nn import functional  # noqa: E402

import irees  # noqa: E402
from irees.errors import RuntimeTrap  # noqa: E402

ROWS = 6


def rows_of(x: Any, i: Any) -> Any:
    return torch.arange(i.shape[0] * 4.0).reshape(-1, 4)


PROGRAMS: dict[str, Callable[[Any, Any], Any]] = {
    "index": (lambda x, i: x[i]),
    "index of columns": (lambda x, i: x.T[:, i]),
    "two indices": (lambda x, i: x[i, i % 4]),
    "fused": (lambda x, i: (x[i] * 2 + 1).relu().sum(-1)),
    "take": (lambda x, i: x[:, 0].contiguous().take(i)),
    "index_select": (lambda x, i: x.index_select(0, i)),
    "gather": (lambda x, i: x.gather(0, i[:, None].expand(-1, 4))),
    "embedding": (lambda x, i: functional.embedding(i, x)),
    "embedding_bag": (lambda x, i: functional.embedding_bag(i[None], x, mode="sum")),
    "cross_entropy": (lambda x, i: functional.cross_entropy(x.T[:3].contiguous(), i[:3])),
    "index_put": (lambda x, i: x.index_put((i,), rows_of(x, i))),
    "scatter rows": (lambda x, i: x.scatter(0, i[:, None].expand(-1, 4), rows_of(x, i))),
    "reduce rows": (
        lambda x, i: x.scatter_reduce(0, i.unsqueeze(-1).expand(-1, 4), rows_of(x, i), "amax")
    ),
    "accumulate": (lambda x, i: x.index_put((i,), rows_of(x, i), accumulate=True)),
    "put": (lambda x, i: x[:, 0].contiguous().put(i, i.float())),
    "index_add": (lambda x, i: x.index_add(0, i, rows_of(x, i))),
    "index_copy": (lambda x, i: x.index_copy(0, i, rows_of(x, i))),
    "index_fill": (lambda x, i: x.index_fill(0, i, 2.0)),
    "scatter": (lambda x, i: x.scatter(0, i[:, None].expand(-1, 4), rows_of(x, i))),
    "scatter_add": (lambda x, i: x.scatter_add(0, i[:, None].expand(-1, 4), rows_of(x, i))),
    "scatter_reduce": (
        lambda x, i: x.scatter_reduce(0, i[:, None].expand(-1, 4), rows_of(x, i), "amax")
    ),
}
"""Programs of a table and indices of its rows."""


@pytest.mark.parametrize("target", ["reference", "cpu", "cuda-emulated:sm_80"])
@pytest.mark.parametrize("name", PROGRAMS)
def test_a_bad_index_is_an_error(name: str, target: str) -> None:
    function = PROGRAMS[name]
    table = torch.rand(ROWS, 4)
    good = torch.tensor([3, 0, 5, 2])
    program = irees.compile(function, (table, good), target=target)
    torch.testing.assert_close(program(table, good), function(table, good))
    for place, bad in ((0, ROWS), (1, 2**40), (2, -ROWS - 1), (0, -1)):
        indices = good.clone()
        indices[place] = bad
        try:
            expected = function(table, indices)
        except (IndexError, RuntimeError):
            with pytest.raises(RuntimeTrap, match="an index is out of bounds for a dim of size"):
                program(table, indices)
        else:
            assert bad < 0
            torch.testing.assert_close(program(table, indices), expected)


def test_a_dynamic_table_is_checked_by_its_size() -> None:
    table, indices = torch.rand(8, 4), torch.tensor([0, 5])
    program = irees.compile(
        lambda x, i: x[i] + 1, (table, indices), dynamic_shapes=({0: Dim.AUTO}, None)
    )
    torch.testing.assert_close(program(table, indices), table[indices] + 1)
    with pytest.raises(RuntimeTrap, match="an index is out of bounds"):
        program(table[:5], indices)


def test_the_error_says_where() -> None:
    class Model(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.tokens = torch.nn.Embedding(10, 4)

        def forward(self, ids: Any) -> Any:
            return self.tokens(ids) * 2  # here

    program = irees.compile(Model(), (torch.tensor([1, 2]),))
    line = next(n for n, t in enumerate(open(__file__), 1) if t.endswith("# here\n"))
    with pytest.raises(RuntimeTrap, match=rf"test_torch_indices.py:{line}.*of size 10"):
        program(torch.tensor([1, 10]))


def dispatches(fn: Any, *inputs: Any) -> str:
    return str(irees.compile(fn, inputs, to="dispatch-creation"))


def test_an_index_that_is_repeated_along_rows_scatters_rows() -> None:
    """`index[:, None].expand(-1, n)` is how graph networks write a sum over neighbours."""
    x, i = torch.arange(20.0).reshape(5, 4), torch.tensor([2, 0, 2, 1, 2])
    sums = lambda x, i: torch.zeros(3, 4).scatter_add(0, i[:, None].expand_as(x), x)  # noqa: E731
    assert "tensor<5x1xi64>" in dispatches(sums, x, i)
    assert torch.equal(irees.compile(sums, (x, i))(x, i), sums(x, i))
    # Rows of the source may be shorter than those of the target.
    short = lambda x, i: torch.zeros(3, 6).scatter_add(0, i[:, None].expand_as(x), x)  # noqa: E731
    assert torch.equal(irees.compile(short, (x, i))(x, i), short(x, i))


@pytest.mark.parametrize("mode", ["sum", "mean", "max"])
def test_bags_of_the_same_length_are_reductions(mode: str) -> None:
    """Offsets 0, n, 2 n, ... need no search for the bag of an index, and no scatter."""
    table, i = torch.randn(9, 5), torch.randint(0, 9, (4, 6))
    bag = lambda t, i: functional.embedding_bag(i, t, mode=mode)  # noqa: E731
    assert "scatter" not in dispatches(bag, table, i)
    torch.testing.assert_close(irees.compile(bag, (table, i))(table, i), bag(table, i))


@pytest.mark.parametrize("offsets", [[0, 3, 3, 7], [0, 0, 0, 0], [0, 1, 10, 10], [0]])
def test_bags_of_any_length(offsets: list[int]) -> None:
    """Bags may be empty, also the last."""
    table, i, o = torch.randn(9, 5), torch.randint(0, 9, (10,)), torch.tensor(offsets)
    bag = lambda t, i, o: functional.embedding_bag(i, t, o, mode="sum")  # noqa: E731
    torch.testing.assert_close(irees.compile(bag, (table, i, o))(table, i, o), bag(table, i, o))


def test_each_count_has_a_size_of_its_own():
    def rows(x, kinds):
        total = torch.zeros_like(x)
        for kind in range(2):
            total.index_add_(0, torch.where(kinds == kind)[0], x[torch.where(kinds == kind)[0]])
        return total

    x = torch.arange(6.0).reshape(3, 2)
    program = irees.compile(rows, (x, torch.tensor([0, 1, 2])), target="reference")
    for kinds in ([0, 0, 1], [1, 1, 1], [2, 0, 2]):
        given = torch.tensor(kinds)
        torch.testing.assert_close(program(x, given), rows(x, given))


@pytest.mark.parametrize("dynamic", [False, True])
@pytest.mark.parametrize("axis", [0, 1, 2])
def test_updates_of_a_part_of_each_dim(axis, dynamic):
    """An update's place is a number in the target, which is larger than what is updated."""
    torch.manual_seed(axis)
    x, new = torch.randn(5, 7, 6), torch.randn(3, 4, 2)
    places = torch.randint(0, x.shape[axis], new.shape)
    auto = tuple({d: torch.export.Dim.AUTO for d in range(3)} for _ in range(3))
    compiled = irees.compile(
        lambda x, i, v: x.scatter_add(axis, i, v), (x, places, new),
        dynamic_shapes=auto if dynamic else None,
    )  # fmt: skip
    want = x.scatter_add(axis, places, new)
    torch.testing.assert_close(torch.as_tensor(compiled(x, places, new)), want)
    with pytest.raises(RuntimeTrap, match="out of bounds"):
        compiled(x, places + 7, new)
