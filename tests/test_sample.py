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


def test_every_function_has_a_case():
    items = [Item(f"a.py::f[{n}]") for n in range(7)] + [Item(f"a.py::g[{n}]") for n in range(3)]
    kept, others = sampled([*items, Item("a.py::h")], 3)
    assert [x.nodeid[6:] for x in kept] == ["f[0]", "f[3]", "f[6]", "g[0]", "g[1]", "g[2]", "h"]
    assert len(kept) + len(others) == 11
