"""Programs that change Python objects: what later calls need is refused, the rest is right."""

from __future__ import annotations

import collections
import contextvars
import copy
import dataclasses
import enum
import itertools
import threading
import types

import numpy as np
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


class Box:
    """An object of the user."""


def in_an_object(self, x):
    self.box.h = self.box.h + x
    return self.box.h * 2


def in_a_deque(self, x):
    self.queue.append(x)
    return sum(self.queue)


def counted_by_the_class(self, x):
    type(self).calls += 1
    return x + type(self).calls


COUNT = 0


def counted_by_a_global(self, x):
    global COUNT
    COUNT += 1
    return x + COUNT


def counted_by_a_closure():
    count = 0

    def forward(self, x):
        nonlocal count
        count += 1
        return x + count

    return forward


def in_objects():
    """Programs that keep state outside of attributes, with what names it."""
    box = Box()
    box.h = torch.zeros(3)
    by_class = module(counted_by_the_class)
    type(by_class).calls = 0
    yield module(in_an_object, box=box), r"self.box.h"
    yield module(in_a_deque, queue=collections.deque([torch.zeros(3)], 2)), r"self.queue\[1\]"
    yield by_class, r"Program.calls"
    yield module(counted_by_a_global), "the global COUNT"
    yield module(counted_by_a_closure()), "count"


@pytest.mark.parametrize(("program", "name"), list(in_objects()), ids=lambda x: str(x)[:12])
def test_state_outside_of_attributes_is_refused_and_left_alone(program, name):
    with pytest.raises(UnsupportedError, match=f"the program reads {name} and assigns it"):
        irees.compile(program, (ONE,))
    # The first call after the attempt is that of a fresh program.
    first = program(ONE)
    assert type(first) is torch.Tensor
    assert first.tolist() == [2.0 if name != r"self.queue\[1\]" else 1.0] * 3


def looked_at_in_an_object(self, x):
    self.box.seen = x * 2
    return x + 1


def test_an_object_for_inspection_is_left_alone():
    program = module(looked_at_in_an_object, box=Box())
    torch.testing.assert_close(irees.compile(program, (ONE,))(ONE), ONE + 1)
    assert not vars(program.box)


def failing(self, x):
    self.box.seen = x * 2
    raise ValueError("no such program")


def test_an_export_that_fails_leaves_objects_alone():
    program = module(failing, box=Box())
    with pytest.raises(UnsupportedError, match="no such program"):
        irees.compile(program, (ONE,))
    assert not vars(program.box)


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


def late_buffer(self, x):
    if not hasattr(self, "late"):
        self.register_buffer("late", torch.ones(3), persistent=False)
    return x + self.late


def test_a_buffer_that_is_registered_while_the_program_runs_is_refused():
    """torch.export returns a program that writes to its input, and leaves a fake tensor behind."""
    made = module(late_buffer)
    with pytest.raises(UnsupportedError, match=r"registers or deletes self\.late"):
        irees.compile(made, (ONE,))
    assert not hasattr(made, "late")
    expected = made(ONE)
    torch.testing.assert_close(irees.compile(made, (ONE,), target="reference")(ONE), expected)


class Held(torch.nn.Module):
    """A module with state in an attribute `held`, which `step` reads and changes."""

    def __init__(self, held, step):
        super().__init__()
        self.linear, self.held, self.step = torch.nn.Linear(3, 3), held, step
        self.fresh, self.count = True, 0

    def forward(self, x):
        return self.step(self, x)


def appended(self, x):
    self.held.append(x)
    return torch.stack(self.held).sum(0)


def counted(self, x):
    self.held.append(1)
    return x * len(self.held)


def added_to_a_dict(self, x):
    y = x + self.held.get("old", 0)
    self.held["old"] = x
    return y


def advanced(self, x):
    return x * next(self.held)


def written_array(self, x):
    self.held += 1
    return x + torch.from_numpy(self.held.copy())


def replaced(self, x):
    self.linear.weight = torch.nn.Parameter(self.linear.weight * 0.5)
    return self.linear(x)


class Slots:
    __slots__ = ("count", "me", "value")

    def __init__(self):
        self.count, self.value, self.me = 0, torch.zeros(3), self


def in_a_slot(self, x):
    self.held.value = self.held.value + x
    return self.held.value * 1


def counted_in_a_slot(self, x):
    self.held.count += 1
    return x * self.held.count


def in_a_mode(self, x):
    y = x * 2 if self.training else x
    self.train(not self.training)
    return y


def in_a_default(self, x, calls=[]):  # noqa: B006
    calls.append(1)
    return x * len(calls)


class Counter:
    made = 0

    def __init__(self):
        self.calls = 0

    def __call__(self, x):
        self.calls += 1
        return x * self.calls

    def at_class(self, x):
        Counter.made += 1
        return x * Counter.made

    def at_module(self, x):
        state_of_a_module.calls += 1
        return x * state_of_a_module.calls


def called(self, x):
    return self.held(x)


def counted_by_a_class(self, x):
    return self.held.at_class(x)


def counted_by_a_module(self, x):
    return self.held.at_module(x)


state_of_a_module = types.ModuleType("state_of_a_module")
state_of_a_module.calls = 0


LOCAL = threading.local()
LOCAL.calls = 0
VARIABLE = contextvars.ContextVar("calls", default=0)


def in_a_thread(self, x):
    LOCAL.calls += 1
    return x * LOCAL.calls


def in_a_context(self, x):
    VARIABLE.set(VARIABLE.get() + 1)
    return x * VARIABLE.get()


WORDS = {
    "first use": "self.first", "late parameter": "registers or deletes self.late",
    "deleted": "self.fresh", "warm-up": "self.calls", "fourth": "self.count",
    "global module": "the global SUMS", "global iterator": "the global CYCLE",
    "parameter": "replaces the parameter linear.weight", "mode": "self.training",
    "default": "default calls", "thread": "the global LOCAL.calls", "context": "global VARIABLE",
    "class": "Counter.made", "module": "the global state_of_a_module.calls",
}  # fmt: skip


def first_use(self, x):
    if not hasattr(self, "first"):
        self.first = x
    return x + self.first


def late_parameter(self, x):
    if not hasattr(self, "late"):
        self.late = torch.nn.Parameter(torch.zeros(3))
    return x + self.late


def only_once(self, x):
    if hasattr(self, "fresh"):
        del self.fresh
        return x * 2
    return x * 1


def after_some(self, x):
    self.calls = getattr(self, "calls", 0) + 1
    return x * 2 if self.calls > 3 else x * 1


def at_fourth(self, x):
    self.count += 1
    return x * 2 if self.count % 4 == 3 else x * 1


def unregistered(self, x):
    return self.held[0](x)


def unregistered_dropout(self, x):
    y = self.held[0](x)
    self.held[0].p = 1.0
    return y * 1


class Sums(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.calls = 0
        self.register_buffer("sum", torch.zeros(3))

    def forward(self, x):
        self.sum = self.sum + x
        return self.sum * 1


class Calls(Sums):
    def forward(self, x):
        self.calls += 1
        return x * self.calls


SUMS, CYCLE = Sums(), itertools.cycle([1.0, 2.0])


def global_module(self, x):
    return SUMS(x)


def global_iterator(self, x):
    return x * next(CYCLE)


STALE = {
    "first use": (list, first_use), "late parameter": (list, late_parameter),
    "deleted": (list, only_once), "warm-up": (list, after_some), "fourth": (list, at_fourth),
    "module in a list": (lambda: [Sums()], unregistered),
    "layer in a list": (lambda: [torch.nn.Dropout(0.0)], unregistered_dropout),
    "number of a module": (lambda: (Calls(),), unregistered),
    "global module": (list, global_module), "global iterator": (list, global_iterator),
    "slot": (Slots, in_a_slot), "number in a slot": (Slots, counted_in_a_slot),
    "mode": (list, in_a_mode), "default": (list, in_a_default), "thread": (list, in_a_thread),
    "context": (list, in_a_context), "called": (Counter, called),
    "class": (Counter, counted_by_a_class), "module": (Counter, counted_by_a_module),
    "list": (list, appended), "numbers": (list, counted), "dict": (dict, added_to_a_dict),
    "iterator": (lambda: itertools.cycle([1.0, 2.0]), advanced),
    "generator": (lambda: (float(n) for n in range(3)), advanced),
    "count": (lambda: itertools.count(1), advanced),
    "array": (lambda: np.zeros(3, np.float32), written_array), "parameter": (list, replaced),
}  # fmt: skip


@pytest.mark.parametrize("name", STALE)
def test_state_that_a_call_leaves_to_the_next_is_refused(name):
    make, step = STALE[name]
    model = Held(make(), step)
    names = set(vars(model))
    with pytest.raises(UnsupportedError, match=WORDS.get(name, r"self\.held")):
        irees.compile(model, (torch.ones(3),), target="reference")
    assert set(vars(model)) == names
    assert (model.count, SUMS.sum.tolist()) == (0, [0.0] * 3)
    if name in ("list", "numbers", "dict"):
        assert len(model.held) == 0
    if name == "array":
        assert (model.held == 0).all()


def seen(self, x):
    self.held["last"] = y = self.linear(x)
    return y + self.held["last"]


def table(self, x):
    if len(x) not in self.held:
        self.held[len(x)] = torch.arange(len(x)).sin()
    return x + self.held[len(x)]


@pytest.mark.parametrize("step", [seen, table])
def test_values_that_no_later_call_needs_are_left_in_a_dict(step):
    model = Held({}, step)
    program = irees.compile(model, (torch.ones(3),), target="reference")
    for n in (1.0, 2.0):
        x = torch.full((3,), n)
        torch.testing.assert_close(program(x), model(x).detach())


def test_an_array_with_nan_that_is_only_read_is_no_state():
    held = np.array([1.0, np.nan, 3.0], np.float32)
    model = Held(held, lambda self, x: x + torch.from_numpy(self.held).nan_to_num(7.0))
    program = irees.compile(model, (torch.ones(3),), target="reference")
    assert program(torch.ones(3)).tolist() == [2.0, 8.0, 4.0]


class Buffered(torch.nn.Module):
    """A module with two buffers, inside of another one, which `step` reads and assigns."""

    def __init__(self, step):
        super().__init__()
        self.inner, self.step = torch.nn.Module(), step
        self.inner.register_buffer("a", torch.arange(3.0))
        self.inner.register_buffer("b", torch.ones(3))
        self.inner.register_buffer("none", None)

    def forward(self, x):
        return self.step(self.inner, x)


def averaged(self, x):
    self.a = self.a * 0.5 + x
    return self.a * 2


def by_table(self, x):
    self._buffers["a"] = self._buffers["a"] + x
    return self.a[1:], x


def old_value(self, x):
    old = self.a
    self.a = x + old
    return {"old": old, "part": old[1:], "new": self.a}


def swapped(self, x):
    self.a, self.b = self.b, self.a
    return self.a * 2 + self.b + x


def assigned_twice(self, x):
    self.a = self.a + x
    self.register_buffer("a", self.a * 2)
    self.a[1:] += 1
    return self.a + 1


def one_value(self, x):
    y = self.a + x
    self.a, self.b[:] = y, y
    return self.a * 2 + self.b


def given(self, x):
    y = self.a * 2
    self.a = x
    return y


@pytest.mark.parametrize(
    "step", [averaged, by_table, old_value, swapped, assigned_twice, one_value, given]
)
def test_an_assigned_buffer_is_state(step):
    model, eager = Buffered(step), Buffered(step)
    program = irees.compile(model, (torch.ones(3),), target="reference")
    for n in (1.0, 2.0, 3.0):
        x = torch.full((3,), n)
        torch.testing.assert_close(program(x), eager(x))
    for name, value in program.state.items():
        torch.testing.assert_close(torch.as_tensor(value), eager.get_buffer(name))
    torch.testing.assert_close(model.state_dict(), Buffered(step).state_dict())


def longer(self, x):
    self.a = torch.cat([self.a, x])
    return self.a.sum()


def wider(self, x):
    self.a = self.a.double()
    return self.a


def first_use(self, x):
    self.none = x if self.none is None else self.none + x
    return self.none * 1


def removed(self, x):
    self.a = None
    return x * 1


def tied(self, x):
    self.a = self.a + x
    return self.a + self.tied


@pytest.mark.parametrize("step", [longer, wider, first_use, removed, tied])
def test_a_buffer_that_cannot_keep_its_value_is_refused(step):
    model = Buffered(step)
    model.inner.register_buffer("tied", model.inner.a if step is tied else None)
    with pytest.raises(UnsupportedError, match="assigns the buffer inner"):
        irees.compile(model, (torch.ones(3),), target="reference")


class Layers(torch.nn.Module):
    def __init__(self, step):
        super().__init__()
        self.layers = torch.nn.ModuleList([torch.nn.Identity(), torch.nn.Tanh()])
        self.step = step

    def forward(self, x):
        for layer in self.layers:
            x = layer(x)
        self.step(self)
        return x


def reversed_layers(self):
    self.layers = torch.nn.ModuleList([self.layers[1]])


def more_layers(self):
    self.layers.append(torch.nn.Tanh())


def other_layer(self):
    self.layers[0] = torch.nn.Sigmoid()


@pytest.mark.parametrize("step", [reversed_layers, more_layers, other_layer])
def test_modules_that_a_call_replaces_are_refused(step):
    model = Layers(step)
    before = list(model.layers)
    with pytest.raises(
        UnsupportedError, match=r"replaces, adds or deletes the module self\.layers"
    ):
        irees.compile(model, (torch.ones(3),), target="reference")
    assert list(model.layers) == before


def test_a_module_without_weights_may_be_made_at_first_use():
    def step(self):
        self.extra = torch.nn.Tanh()

    model = Layers(step)
    program = irees.compile(model, (torch.ones(3),), target="reference")
    torch.testing.assert_close(program(torch.ones(3)), model(torch.ones(3)))


class ReadsANumber(torch.nn.Module):
    """`int(tensor)`, for which PyTorch exports by bytecode and leaves Python objects alone."""

    def __init__(self, step):
        super().__init__()
        self.register_buffer("b", torch.zeros(3))
        self.held, self.all, self.step = torch.zeros(3), [], step

    def forward(self, x):
        return self.step(self, x, int(x.sum()))


def number_to_a_buffer(self, x, n):
    self.b = self.b + n
    return self.b * 1


def number_to_an_attribute(self, x, n):
    self.held = self.held + n
    return self.held * x


def number_to_a_list(self, x, n):
    self.all.append(x)
    return sum(self.all) * n


@pytest.mark.parametrize(
    ("step", "words"),
    [
        (number_to_a_buffer, "assigns the buffer b"),
        (number_to_an_attribute, r"self\.held"),
        (number_to_a_list, r"self\.all"),
    ],
)
def test_state_beside_numbers_that_are_read_is_refused(step, words):
    model = ReadsANumber(step)
    with pytest.raises(UnsupportedError, match=words):
        irees.compile(model, (torch.ones(3),), target="reference")
    assert not model.all
    assert (model.held == 0).all()
    assert (model.b == 0).all()


def number_in_place(self, x, n):
    self.b += n
    return self.b * 1


def number_seen(self, x, n):
    self.held = x * n
    return self.held + 1


@pytest.mark.parametrize("step", [number_in_place, number_seen])
def test_what_is_written_in_place_beside_a_number_is_state(step):
    model, eager = ReadsANumber(step), ReadsANumber(step)
    program = irees.compile(model, (torch.ones(3),), target="reference")
    for n in (1.0, 2.0):
        x = torch.full((3,), n)
        torch.testing.assert_close(program(x), eager(x))
    assert (model.b == 0).all()


@pytest.mark.parametrize("write", ["t_", "unsqueeze_", "transpose_"])
@pytest.mark.parametrize("name", ["args[0]", "self.b"])
def test_an_argument_whose_sizes_change_in_place_is_refused(write, name):
    model = Buffered(lambda self, x: x * 1)
    model.register_buffer("b", torch.ones(3, 3))

    def forward(x):
        tensor = x if name == "args[0]" else model.b
        getattr(tensor, write)(*{"t_": (), "unsqueeze_": (0,), "transpose_": (0, 1)}[write])
        return tensor * 1

    model.forward = forward
    with pytest.raises(UnsupportedError) as found:
        irees.compile(model, (torch.ones(3, 3),), target="reference")
    assert f"changes the sizes or strides of {name} in place" in str(found.value)


def test_buffers_that_are_views_of_each_other_are_named():
    model = Buffered(lambda self, x: self.a.add_(x) + self.b)
    whole = torch.zeros(5)
    model.inner.a, model.inner.b = whole[:3], whole[2:]
    with pytest.raises(UnsupportedError, match=r"inner\.a and inner\.b share memory"):
        irees.compile(model, (torch.ones(3),), target="reference")


def test_sizes_that_turn_out_equal_have_not_changed():
    """`x + y` shows that the rows of both are one symbolic size."""
    n = torch.export.Dim.AUTO
    program = irees.compile(
        lambda x, y: x[y] + x, (torch.ones(4, 2), torch.arange(4)),
        dynamic_shapes={"x": {0: n}, "y": {0: n}}, target="reference",
    )  # fmt: skip
    assert program(torch.ones(3, 2), torch.arange(3)).tolist() == [[2.0, 2.0]] * 3


def test_a_number_that_is_a_place_in_a_buffer_is_refused():
    """Only the write depends on the number, and it is to a view of the buffer."""

    def step(self, x):
        self.b[self.count % 3] = x[0]
        self.count += 1
        return x * 1

    model = Buffered(step)
    model.inner.count = 0
    with pytest.raises(UnsupportedError, match=r"self\.inner\.count"):
        irees.compile(model, (torch.ones(3),), target="reference")


def test_a_frozen_object_with_slots_is_left_alone():
    @dataclasses.dataclass(frozen=True, slots=True)
    class Config:
        scale: float = 2.0

    model = Held(Config(), lambda self, x: x * self.held.scale)
    assert irees.compile(model, (ONE,), target="reference")(ONE).tolist() == [2.0] * 3


class Kind(enum.IntEnum):
    DOUBLE = 2


def test_members_of_an_enum_are_left_alone():
    model = Held(Kind.DOUBLE, lambda self, x: x * Kind.DOUBLE * self.held)
    assert irees.compile(model, (ONE,), target="reference")(ONE).tolist() == [4.0] * 3


def test_a_counter_that_changes_nothing_is_left_alone():
    def step(self, x):
        self.count += 1
        self.last = x * 1
        return x * 2

    model = Held(None, step)
    assert irees.compile(model, (ONE,), target="reference")(ONE).tolist() == [2.0] * 3
    assert (model.count, hasattr(model, "last")) == (0, False)
