"""A sample of the tests is always the same, and has a case of every test function."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
from sampling import sampled


class Item:
    """A test by its id."""

    def __init__(self, nodeid: str):
        self.nodeid = nodeid


def names(count: int) -> list[Item]:
    return [Item(f"a.py::f[{n}-{target}]") for n in range(count) for target in ("cpu", "cuda")]


def test_every_function_has_a_case():
    items = [*names(7), *(Item(f"a.py::g[{n}]") for n in range(3)), Item("a.py::h")]
    kept, others = sampled(items, 3)
    assert [sum(x.nodeid[6] == name for x in kept) for name in "fgh"] == [5, 1, 1]
    assert kept == [x for x in items if x in kept]
    assert len(kept) + len(others) == len(items)


def test_a_sample_is_always_the_same():
    first, second = (sampled(names(20), 6)[0] for _ in range(2))
    assert [x.nodeid for x in first] == [x.nodeid for x in second]


def test_a_sample_has_cases_of_every_target():
    """With an even step, every Nth case would be for one of two targets."""
    kept = {x.nodeid.split("-")[1] for x in sampled(names(20), 6)[0]}
    assert kept == {"cpu]", "cuda]"}


def test_ids_are_the_same_in_every_process():
    """The repr of a set depends on the seed of hashes, that of an object on its address."""
    files = Path(__file__).parent.rglob("test_*.py")
    assert [x.name for x in files if "ids=" + "repr" in x.read_text()] == []
