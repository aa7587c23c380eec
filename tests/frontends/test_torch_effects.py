"""Programs that change Python objects: what later calls need is refused, the rest is right."""

from __future__ import annotations

import copy

import pytest

torch = pytest.importorskip("torch", reason="needs torch: pip install 'irees[torch]'")

import irees  # noqa: E402
from irees.errors import UnsupportedError  # noqa: E402


def module(forward, **attributes):
    made = type("Program", (torch.nn.Module,), {"forward": forward})()
    for name, value in attributes.items():
        setattr(made, name, value)
    return made


def appended(self, x, cache):
    cache.append(x)
    return x * len(cache)


def kept_by_key(self, x, cache):
    cache["k"] = torch.cat([cache["k"], x]) if "k" in cache else x
    return cache["k"].sum()


def popped(self, x, cache):
    return x + cache.pop()


ONE = torch.ones(3)


@pytest.mark.parametrize(
    ("forward", "cache", "place"),
    [
        (appended, [ONE], r"args\[1\]\[1\]"),
        (kept_by_key, {}, r"args\[1\]\['k'\]"),
        (kept_by_key, {"k": ONE}, r"args\[1\]\['k'\]"),
        (popped, [ONE, ONE], r"args\[1\]\[1\]"),
    ],
)
def test_arguments_that_change_are_refused(forward, cache, place):
    with pytest.raises(UnsupportedError, match=f"changes the list or dict at {place}"):
        irees.compile(module(forward), (ONE, cache))


def counted(self, x):
    self.calls += 1
    return x + self.calls


def other_layer(self, x):
    self.calls += 1
    return x * getattr(self, "ab"[self.calls % 2])


def summed(self, x):
    self.total = self.total + x
    return self.total * 2


def since_first(self, x):
    self.total = x if self.total is None else self.total + x
    return self.total * 2


def in_a_dict(self, x):
    self.kept["k"] = self.kept["k"] * 0.5 + x
    return self.kept["k"].exp()


WEIGHTS = {n: torch.nn.Parameter(ONE * i) for i, n in enumerate("ab")}


@pytest.mark.parametrize(
    ("forward", "attributes", "name"),
    [
        (counted, {"calls": 0}, "calls"), (other_layer, {"calls": 0, **WEIGHTS}, "calls"),
        (summed, {"total": torch.zeros(3)}, "total"), (since_first, {"total": None}, "total"),
        (in_a_dict, {"kept": {"k": ONE}}, r"kept\['k'\]"),
    ],
)  # fmt: skip
def test_attributes_that_later_calls_need_are_refused(forward, attributes, name):
    program = module(forward, **copy.deepcopy(attributes))

    def state():
        values = [getattr(program, name) for name in attributes]
        return [id(v["k"]) if isinstance(v, dict) else id(v) for v in values]

    before = state()
    with pytest.raises(UnsupportedError, match=f"reads self.{name} and assigns it"):
        irees.compile(program, (ONE,))
    assert state() == before


def looked_at(self, x):
    self.seen = x.exp()
    self.all_seen.append(x)
    return self.seen + 1


def made_once(self, x):
    if self.table is None or len(self.table) < x.shape[0]:
        self.table = torch.arange(x.shape[0]) * 2.0
        self.length = x.shape[0]
    return x + self.table[: x.shape[0]]


def longest(self, x):
    self.length = max(self.length, x.shape[0])
    return x * 2


def moved(self, x):
    self.scale = self.scale.to(x.dtype).clone()
    return x * self.scale


def settled(self, x):
    if self.kind == "blocks" and x.shape[0] < 8:
        self.kind = "full"
        self.extra = torch.nn.Linear(3, 3)
    return x.exp() if self.kind == "full" else x


@pytest.mark.parametrize(
    ("forward", "attributes"),
    [
        (looked_at, {"seen": None, "all_seen": []}), (made_once, {"table": None, "length": 0}),
        (longest, {"length": 0}), (moved, {"scale": ONE * 3}), (settled, {"kind": "blocks"}),
    ],
)  # fmt: skip
def test_changes_that_later_calls_do_not_need(forward, attributes):
    program = module(forward, **attributes)
    compiled = irees.compile(copy.deepcopy(program), (ONE,))
    for x in (ONE, ONE * 2, ONE * 3):
        torch.testing.assert_close(compiled(x), program(x))


def test_odd_attributes_are_no_changes():
    """A NaN, and a vocabulary."""
    program = module(looked_at, seen=None, all_seen=[], limit=float("nan"))
    program.words = {str(i): i for i in range(100_000)}
    torch.testing.assert_close(irees.compile(program, (ONE,))(ONE), program(ONE))


def test_a_builtin_is_compiled():
    x = torch.linspace(-2, 2, 9)
    torch.testing.assert_close(irees.compile(torch.sinh, (x,))(x), torch.sinh(x))
    torch.testing.assert_close(
        irees.compile(torch.atan2, (x, ONE[:1]))(x, ONE[:1]), x.atan2(ONE[:1])
    )
