"""What the prover of accesses must not show, and what it has to."""

from __future__ import annotations

import pytest
from xdsl.dialects.builtin import ModuleOp

from irees.analysis.accesses.arithmetic import Arithmetic
from irees.analysis.accesses.host import Program, read_program
from irees.analysis.accesses.polynomials import Polynomial
from irees.analysis.accesses.prover import Prover
from irees.analysis.accesses.samples import Sampler
from irees.analysis.accesses.scalars import BINARY
from irees.analysis.accesses.terms import AtLeast, Every, Some, Space
from irees.analysis.accesses.walk import Walk
from irees.frontends.mlir.importer import import_mlir


def number(value: int) -> Polynomial:
    return Polynomial.number(value)


class Setting:
    """A space with a prover and arithmetic."""

    def __init__(self) -> None:
        self.space = Space()
        self.prover = Prover(self.space)
        self.do = Arithmetic(self.space, self.prover)

    def size(self) -> Polynomial:
        return self.space.fresh("n", 0, 1 << 47)


@pytest.fixture
def at() -> Setting:
    return Setting()


def test_integers_are_rounded_down(at):
    """8 q <= n and n <= 15 give q <= 1; 2 n - 1 >= 0 gives n >= 1, and 2 n - 3 >= 0 not n >= 3."""
    n = at.size()
    with at.space.assuming([-n + 15]):
        q = at.do.floor(n, number(8))
        assert at.prover.holds(-q + 1)
        assert not at.prover.holds(-q)
    assert (n * 2 - 1).tightened() == n - 1
    assert (n * 2 + 1).tightened() == n
    assert (-n * 3 + 10).tightened() == -n + 3


def test_bounds_that_are_repeated_do_not_hide_a_fact(at):
    """Loops and allocations assume bounds again and again; few facts are tried for a goal."""
    n, m = at.size(), at.size()
    bounds = [-m + (1 << 48) + i for i in range(20)]
    repeated = [-m * n + 1000] * 20
    with at.space.assuming([n - m * 2, *bounds, *repeated]):
        assert at.prover.holds(n - m * 2)
        assert not at.prover.holds(n - m * 3)


def test_what_holds_in_a_branch_does_not_hold_behind_it(at):
    n = at.size()
    with at.space.assuming([n - 7]):
        assert at.prover.holds(n - 7)
        assert at.prover.holds(n - 5)
    assert not at.prover.holds(n - 7)
    assert not at.prover.holds(n - 5)
    assert at.prover.holds(n)


def test_an_unsigned_division_of_what_may_be_negative_is_not_a_floor(at):
    """(n - 1) / 2 of n = 0 is a large number."""
    n = at.size()
    q = at.do.divided(n - 1, number(2))
    assert not at.prover.holds(n - q)
    with at.space.assuming([n - 1]):
        assert at.prover.holds(n - at.prover.settled(q))


def test_a_division_by_what_may_be_0_is_decided_where_it_is_not(at):
    """x / 0 is -1 and x % 0 is x."""
    n, x = at.size(), at.size()
    q, r = at.do.divided(x, n), at.do.remainder(x, n)
    assert not at.prover.holds(at.prover.settled(q))
    assert at.prover.holds(r)
    assert at.prover.holds(x - q)
    with at.space.assuming([n - 1]):
        assert at.prover.holds(at.prover.settled(q))
        assert at.prover.holds(n - 1 - at.prover.settled(r))


def test_a_division_by_what_is_not_known(at):
    """x / n may be -1; the half of any number, read as unsigned, is natural."""
    n, x = at.do.opaque("n"), at.size()
    assert not at.prover.holds(at.do.divided(x, n))
    assert not at.prover.holds(at.do.divided(x, n, signed=True))
    assert at.prover.holds(at.do.remainder(x, n))
    assert at.prover.holds(at.do.remainder(x, n, signed=True))
    assert at.prover.holds(x - at.do.remainder(x, n, signed=True))
    assert not at.prover.holds(at.do.remainder(n, x))
    assert at.prover.holds(at.do.divided(n, number(2)))
    assert not at.prover.holds(at.do.divided(n, number(2), signed=True))
    assert not at.prover.holds(at.do.divided(n, number(1)))


def test_signed_divisions_round_to_0(at):
    """-3 / 2 is -1, so not below -1."""
    x = at.space.fresh("x", -3, 3)
    q = at.do.divided(x, number(2), signed=True)
    assert at.prover.holds(q + 1)
    assert at.prover.holds(-q + 1)
    assert not at.prover.holds(q)
    assert not at.prover.holds(x - q)


def test_a_sum_that_may_wrap_is_not_compared(at):
    """Of any index i, i + 8 < n says nothing about i."""
    n, i = at.size(), at.do.opaque("i")
    wraps = at.do.compare("slt", i + 8, n)
    assert at.prover.facts_of(wraps) == []
    assert at.prover.facts_of(at.do.compare("slt", i, n)) == [n - i - 1]
    # Where more is known of i it does.
    with at.space.assuming([i, -i + 100]):
        assert at.prover.facts_of(wraps) == [n - i - 9]


def test_an_arithmetic_shift_of_a_sum_that_wraps_may_be_negative():
    walk = Walk(Space())
    for low in (0, -(1 << 63)):
        x, y = (walk.space.fresh(name, low, (1 << 63) - 1) for name in "xy")
        assert not walk.prover.holds(BINARY["shrsi"](walk, x + y, number(1), 64))
    assert walk.prover.holds(BINARY["shrui"](walk, x + y, number(1), 64))


def test_repeated_squares_are_given_up_in_time():
    """An integer power of 64 steps: the product of the last one has 2^64 factors."""
    walk = Walk(Space())
    size, x = (walk.space.fresh(name, 0, 1 << 47) for name in "nx")
    short = BINARY["muli"](walk, size, size - 1, 64)
    assert short == size * size - size
    sum_of_both = size + x
    for _ in range(64):
        x = BINARY["muli"](walk, x, x, 64)
        sum_of_both = BINARY["muli"](walk, sum_of_both, sum_of_both, 64)
        assert x.degree() <= 128
        assert len(sum_of_both.terms) <= 128
    assert not walk.prover.holds(x)


def test_bits_of_a_product_that_wraps_may_be_negative(at):
    """n * n of n = 3 << 31 has the sign bit."""
    n = at.space.fresh("n", 0, 1 << 40)
    assert not at.prover.holds(at.do.joined(n * n, number(1), 64))
    assert at.prover.holds(at.do.joined(n, number(1), 64))


def test_narrow_sums_wrap(at):
    x = at.space.fresh("x", 0, 127)
    assert at.do.narrowed(x + 1, 8) != x + 1
    assert at.do.narrowed(x + 1, 16) == x + 1


def test_digits_of_a_number(at):
    """Rows of 33: the address of (t / 8, t mod 8) of 64 threads ends at 7 * 33 + 7."""
    t = at.space.fresh("t", 0, 63)
    row = at.do.floor(t, number(8))
    address = row * 33 + t - row * 8
    assert at.prover.holds(-address + (7 * 33 + 7))
    assert not at.prover.holds(-address + (7 * 33 + 6))


def test_minima_are_one_of_two(at):
    n, i = at.size(), at.space.fresh("i", 0, 1 << 40)
    with at.space.assuming([n - i * 64 - 1]):
        tile = at.do.minimum(number(64), n - i * 64)
        assert at.prover.holds(tile - 1)
        assert at.prover.holds(n - i * 64 - tile)
        assert not at.prover.holds(tile - 2)


def test_a_case_that_nothing_is_known_of_may_happen(at, monkeypatch):
    """`select(n >= 0 and ?, 1, 0)` may be 0: the second part of its condition may not hold."""
    # Without samples, which find this too.
    monkeypatch.setattr(Sampler, "refutes", lambda *_: False)
    n = at.size()
    x = at.do.select(Every((AtLeast(n - 3), at.space.unknown())), number(1), number(0))
    with at.space.assuming([n - 3]):
        assert not at.prover.holds(x - 1)
    y = at.do.select(Every((AtLeast(n - 3), AtLeast(-n + 9))), number(1), number(0))
    with at.space.assuming([n - 3, -n + 9]):
        assert at.prover.holds(y - 1)


def test_samples_satisfy_what_holds(at):
    """A sample that breaks a fact of a scope is chosen again there, and kept outside."""
    n, m = at.size(), at.size()
    last = at.space.fresh("i", 0)
    at.space.newest_of(last).facts = [n - 1 - last]
    assert at.prover.sampler.refutes(n - last - 2)
    assert not at.prover.sampler.refutes(n - last - 1)
    with at.space.assuming([-n + 7, m - n * 100]):
        at.prover.sampler.choose()
        assert at.prover.sampler.refutes(n - 8)
        assert not at.prover.sampler.refutes(m - n * 100)
        with at.space.assuming([n - 9]):
            at.prover.sampler.choose()
            assert not at.prover.sampler.refutes(number(-1))
    at.space.narrow(n.newest(), -1, 20)
    at.prover.sampler.choose()
    assert not at.prover.sampler.refutes(-n + 20)


def test_one_of_several_is_decided_by_what_excludes_the_others(at):
    n, m = at.size(), at.size()
    empty = Every((AtLeast(n), AtLeast(-n)))
    at.space.pending.append(Some((AtLeast(m - n - 2), empty)))
    assert not at.prover.holds(m - 2)
    with at.space.assuming([n - 1]):
        assert at.prover.holds(m - 3)
        assert not at.prover.holds(m - 4)


def test_what_is_decided_is_remembered_until_more_is_known(at, monkeypatch):
    """Each condition takes proofs of its own, and most proofs that fail ask for what is decided."""
    n, m = at.size(), at.size()
    at.space.pending.append(Some((AtLeast(m - n - 2), Every((AtLeast(n), AtLeast(-n))))))
    decided, decide = [], Prover._decide
    monkeypatch.setattr(Prover, "_decide", lambda prover: decided.append(1) or decide(prover))
    for constant in (2, 3, 4):
        assert not at.prover.holds(m - constant)
    assert len(decided) == 1
    with at.space.assuming([n - 1]):
        assert at.prover.holds(m - 3)
        assert not at.prover.holds(m - 4)
    assert len(decided) == 2


def test_what_holds_here_of_a_factor(at):
    """m n >= 0 and m n <= 7 n, for 1 <= m <= 7, where n is natural and not where it may be negative."""
    n = at.do.opaque("n")
    m, k = at.size(), at.size()
    product = n * m
    with at.space.assuming([m - 1, -product + k]):
        assert not at.prover.holds(product)
    with at.space.assuming([m - 1, n, -product + k]):
        assert at.prover.holds(product)
    with at.space.assuming([-m + 7, n + 5]):
        assert not at.prover.holds(n * 7 - product)
    with at.space.assuming([-m + 7, n]):
        assert at.prover.holds(n * 7 - product)


def test_a_size_that_is_a_number_bounds_the_product_of_the_others(at):
    """a b c <= 120 and a = 4 give b c <= 30."""
    a, b, c = at.size(), at.size(), at.size()
    at.space.limit(a * b * c, 120)
    at.space.replace(a.newest(), number(4))
    assert at.space.is_nonnegative(-b * c + 30)
    assert not at.space.is_nonnegative(-b * c + 29)


def test_a_sum_with_a_negative_part_bounds_no_size(at):
    """n + 7 q <= 0 for q = floor(-n / 7), and n may be anything: the padding is not negative."""
    n = at.size()
    at.space.limit(n + at.do.floor(-n, number(7)) * 7, 0)
    assert not at.prover.holds(-n + 1000)
    m = at.size()
    at.space.limit(n + m * 7, 70)
    assert at.prover.holds(-m + 10)


def test_what_an_enclosing_scope_decided_holds(at, monkeypatch):
    n, m = at.size(), at.size()
    empty = Every((AtLeast(n), AtLeast(-n)))
    at.space.pending.append(Some((AtLeast(m - n - 2), empty)))
    with at.space.assuming([n - 1]):
        assert at.prover.holds(m - 3)
        monkeypatch.setattr(Prover, "facts_of", lambda *_: pytest.fail("decided again"))
        with at.space.assuming([-n + 7]):
            assert at.prover.holds(m - 3)
            assert not at.prover.holds(m - 4)


@pytest.mark.parametrize("count", [3, 200])
def test_a_long_sum_is_proved_by_the_terms_that_matter(at, count):
    """64 ceil(n / 16) - 4 n + ... + 64 ceil(m / 16) >= 0, for any number of other sizes."""
    sizes = [at.size() for _ in range(count)]
    slots = [at.do.floor(n + 15, number(16)) * 64 for n in sizes]
    total = sum(slots, number(0))
    assert at.prover.holds(total - sizes[1] * 4)
    assert at.prover.holds(total - sizes[-1] * 4)
    assert not at.prover.holds(total - sizes[1] * 4 - 1)
    assert not at.prover.holds(total - sizes[1] * 65)


KERNEL = """
flow.executable @k {{
  builtin.module {{
    func.func @k(%x: memref<?xf32>, %y: memref<64xf32>) {{
      %c0 = arith.constant 0 : index
      %c1 = arith.constant 1 : index
      %c4 = arith.constant 4 : index
      %c8 = arith.constant 8 : index
      %c64 = arith.constant 64 : index
      %n = memref.dim %x, %c0 : memref<?xf32>
      %z = arith.constant 0.0 : f32
      {body}
      func.return
    }}
  }}
}}
func.func @main(%x: memref<?xf32>, %y: memref<64xf32>) {{
  stream.cmd.dispatch @k::@k(%x, %y) : memref<?xf32>, memref<64xf32>
  func.return
}}
"""


def read(body: str) -> Program:
    module = import_mlir(KERNEL.format(body=body))
    assert isinstance(module, ModuleOp)
    return read_program(module)


def shown(body: str) -> list[bool]:
    """Whether each access of a kernel is shown to be inside."""
    return [a.shown is not None for site in read(body).sites for a in site.accesses]


def apart(body: str) -> list[bool]:
    """Whether each access of a kernel is apart from those of other iterations."""
    return [a.apart for site in read(body).sites for a in site.accesses]


@pytest.mark.parametrize(
    ("step", "inside"), [("%c1", True), ("%c8", True)], ids=["by one", "by eight"]
)
def test_counters(step: str, inside: bool):
    body = f"scf.for %i = %c0 to %c64 step {step} {{ memref.store %z, %y[%i] : memref<64xf32> }}"
    assert shown(body) == [inside]
    assert shown(body.replace("to %c64", "to %n")) == [False]


@pytest.mark.parametrize(
    ("otherwise", "inside"), [("%c0", True), ("%c1", False)], ids=["no turn", "a turn"]
)
def test_a_loop_that_turns_tells_how_often_it_may(otherwise: str, inside: bool):
    """Where it turns 8 times for n > 0, and else not at all, x has an element in it."""
    body = f"""
    %some = arith.cmpi sgt, %n, %c0 : index
    %turns = arith.select %some, %c8, {otherwise} : index
    scf.for %i = %c0 to %turns step %c1 {{
      memref.store %z, %x[%c0] : memref<?xf32>
    }}"""
    assert shown(body) == [inside]


def test_a_value_that_is_passed_on():
    """Doubled in each turn it leaves the buffer, and 8 - x stays between 0 and 8."""
    loop = """
    %r = scf.for %i = %c0 to %n step %c1 iter_args(%p = START) -> (index) {
      memref.store %z, %y[%p] : memref<64xf32>
      %q = NEXT : index
      scf.yield %q : index
    }"""

    def ends(start: str, following: str) -> list[bool]:
        return shown(loop.replace("START", start).replace("NEXT", following))

    assert ends("%c8", "arith.subi %c8, %p") == [True]
    assert ends("%c8", "arith.muli %p, %c8") == [False]
    assert ends("%c0", "arith.addi %p, %c1") == [False]
    assert ends("%c8", "arith.minsi %p, %c4") == [True]


@pytest.mark.parametrize(
    ("index", "expected"),
    [
        ("arith.muli %i, %c8", True),
        ("arith.addi %i, %c4", False),
        ("arith.muli %i, %c4", False),
        ("arith.divui %i, %c4", False),
    ],
)
def test_vectors_of_iterations_are_apart(index: str, expected: bool):
    """Vectors of 8 at every eighth element."""
    body = f"""
    %v = arith.constant dense<0.0> : vector<8xf32>
    scf.forall (%i) in (7) {{
      %p = {index} : index
      vector.store %v, %y[%p] : memref<64xf32>, vector<8xf32>
    }}"""
    assert shown(body) == [True]
    assert apart(body) == [expected]


def test_a_read_of_what_another_iteration_writes_is_not_apart():
    body = """
    scf.forall (%i) in (63) {
      %p = arith.addi %i, %c1 : index
      %v = memref.load %y[%p] : memref<64xf32>
      memref.store %v, %y[%i] : memref<64xf32>
    }"""
    assert shown(body) == [True, True]
    assert apart(body) == [False, False]
    assert apart(body.replace("%y[%p]", "%y[%i]")) == [True, True]


@pytest.mark.parametrize(
    ("first", "lane", "inside"),
    [("%c8", 0, False), ("%c8", 3, True), ("%c4", 0, True), ("%c64", 3, False)],
)
def test_a_lane_of_indices_is_an_index(first: str, lane: int, inside: bool):
    """`first` + 56 - (i + lane), of a buffer of 64 elements."""
    body = f"""
    %first = vector.broadcast {first} : index to vector<4xindex>
    %last = arith.constant dense<56> : vector<4xindex>
    %lanes = arith.constant dense<[0, 1, 2, 3]> : vector<4xindex>
    %top = arith.addi %first, %last : vector<4xindex>
    scf.for %i = %c0 to %c8 step %c4 {{
      %all = vector.broadcast %i : index to vector<4xindex>
      %at = arith.addi %all, %lanes : vector<4xindex>
      %down = arith.subi %top, %at : vector<4xindex>
      %p = vector.extract %down[{lane}] : index from vector<4xindex>
      memref.store %z, %y[%p] : memref<64xf32>
    }}"""
    assert shown(body) == [inside]


def test_lanes_of_doubled_sums_are_given_up_in_time():
    sums = "".join(f"%v{i + 1} = arith.addi %v{i}, %v{i} : vector<4xindex>\n" for i in range(200))
    body = f"""
    %v0 = vector.broadcast %c1 : index to vector<4xindex>
    {sums}
    %p = vector.extract %v200[0] : index from vector<4xindex>
    memref.store %z, %y[%p] : memref<64xf32>"""
    assert shown(body) == [False]
    assert shown(body.replace("%v200[0]", "%v5[3]")) == [True]


CHOICES = {
    "clamped": ("%a = arith.maxsi %i, %none : {v}", "%p = arith.minsi %a, %most : {v}", True),
    "clamped without a sign": (
        "%a = arith.maxsi %i, %none : {v}",
        "%p = arith.minui %a, %most : {v}",
        True,
    ),
    "shifted": ("", "%p = arith.shrui %i, %most : {v}", True),
    "a remainder": ("", "%p = arith.remui %i, %size : {v}", True),
    "a signed remainder": ("", "%p = arith.remsi %i, %size : {v}", False),
    "clamped on one side": ("", "%p = arith.minsi %i, %most : {v}", False),
    "selected where inside": (
        "%l = arith.cmpi sge, %i, %none : {v}\n%h = arith.cmpi sle, %i, %most : {v}\n"
        "%b = arith.andi %l, %h : vector<4xi1>",
        "%p = arith.select %b, %i, %none : vector<4xi1>, {v}",
        True,
    ),
    "selected where inside or not": (
        "%l = arith.cmpi sge, %i, %none : {v}\n%h = arith.cmpi sle, %i, %most : {v}\n"
        "%b = arith.ori %l, %h : vector<4xi1>",
        "%p = arith.select %b, %i, %none : vector<4xi1>, {v}",
        False,
    ),
    "selected where outside": (
        "%l = arith.cmpi sge, %i, %none : {v}\n%h = arith.cmpi sle, %i, %most : {v}\n"
        "%b = arith.andi %l, %h : vector<4xi1>",
        "%p = arith.select %b, %none, %i : vector<4xi1>, {v}",
        False,
    ),
    "unsigned": (
        "%b = arith.cmpi ule, %i, %most : {v}",
        "%p = arith.select %b, %i, %none : vector<4xi1>, {v}",
        False,
    ),
    "one flag for all": (
        "%b = arith.cmpi sle, %c8, %c4 : index",
        "%p = arith.select %b, %i, %none : {v}",
        False,
    ),
}


@pytest.mark.parametrize("name", CHOICES)
def test_lanes_that_are_chosen(name):
    """What a lane of a loaded vector is known to be, where it is chosen by a comparison."""
    before, choice, inside = CHOICES[name]
    body = f"""
    %places = memref.alloc() : memref<4xindex>
    %none = arith.constant dense<0> : vector<4xindex>
    %most = arith.constant dense<63> : vector<4xindex>
    %size = arith.constant dense<64> : vector<4xindex>
    %i = vector.load %places[%c0] : memref<4xindex>, vector<4xindex>
    {before}
    {choice}
    %q = vector.extract %p[2] : index from vector<4xindex>
    memref.store %z, %y[%q] : memref<64xf32>""".replace("{v}", "vector<4xindex>")
    assert shown(body)[-1] is inside


HOST = """
flow.executable @k {{
  builtin.module {{
    func.func @at(%x: memref<?xf32>, %i: index) {{
      %v = memref.load %x[%i] : memref<?xf32>
      memref.store %v, %x[%i] : memref<?xf32>
      func.return
    }}
    func.func @all(%x: memref<?xf32>, %y: memref<?xf32>) {{
      %c0 = arith.constant 0 : index
      %c1 = arith.constant 1 : index
      %n = memref.dim %x, %c0 : memref<?xf32>
      scf.for %i = %c0 to %n step %c1 {{
        %v = memref.load %x[%i] : memref<?xf32>
        memref.store %v, %y[%i] : memref<?xf32>
      }}
      func.return
    }}
  }}
}}
func.func @main(%x: memref<?xf32>, %y: memref<?xf32>, %i: index, %j: index, %c: i1) {{
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c7 = arith.constant 7 : index
  %n = memref.dim %x, %c0 : memref<?xf32>
  %m = memref.dim %y, %c0 : memref<?xf32>
  {body}
  func.return
}}
"""
AT = "stream.cmd.dispatch @k::@at({}, {}) : memref<?xf32>, index"
ALL = "stream.cmd.dispatch @k::@all(%x, %y) : memref<?xf32>, memref<?xf32>"


def sites(body: str) -> list[bool]:
    """Whether all accesses of each dispatch are shown to be inside."""
    module = import_mlir(HOST.format(body=body))
    assert isinstance(module, ModuleOp)
    found = read_program(module).sites
    return [all(a.shown is not None for a in site.accesses) for site in found]


@pytest.mark.parametrize(
    ("check", "dispatch"),
    [
        ("arith.cmpi ult, %i, %n : index", AT.format("%x", "%i")),
        ("arith.cmpi eq, %n, %m : index", ALL),
    ],
    ids=["a limit", "an equation"],
)
def test_what_a_branch_asserts_holds_in_it_alone(check: str, dispatch: str):
    check = f'%b = {check}\ncf.assert %b, ""'
    assert sites(f"{check}\n{dispatch}") == [True]
    assert sites(f"scf.if %c {{ {check}\n{dispatch} }}\n{dispatch}") == [True, False]
    assert sites(f"{dispatch}\n{check}") == [False]


NATURAL = """
  %natural = arith.cmpi sge, {0}, %c0 : index
  cf.assert %natural, ""
  %small = arith.cmpi sle, {0}, %most : index
  cf.assert %small, ""
"""


@pytest.mark.parametrize(("most", "expected"), [(1 << 40, True), ((1 << 63) - 1, False)])
@pytest.mark.parametrize(
    "chosen",
    [
        "%t = arith.select %c, %s, %i : index",
        "%t = scf.if %c -> (index) { scf.yield %s : index } else { scf.yield %i : index }",
        "%t = arith.maxsi %s, %i : index",
    ],
    ids=["select", "if", "maximum"],
)
def test_a_sum_that_may_wrap_is_not_known_when_it_is_chosen(chosen, most, expected):
    """i + j of two natural numbers may be negative, and then so is its minimum with 7."""
    body = f"""
    %most = arith.constant {most} : index
    {NATURAL.format("%i")}
    {NATURAL.format("%j").replace("%natural", "%natural2").replace("%small", "%small2")}
    %long = arith.cmpi sge, %n, %c8 : index
    cf.assert %long, ""
    %s = arith.addi %i, %j : index
    {chosen}
    %p = arith.minsi %t, %c7 : index
    {AT.format("%x", "%p")}"""
    body = body.replace("%long =", "%c8 = arith.constant 8 : index\n%long =")
    assert sites(body) == [expected]


@pytest.mark.parametrize(("most", "expected"), [(1 << 10, True), ((1 << 63) - 1, False)])
def test_a_size_that_may_have_wrapped_is_not_the_product(most, expected):
    """2^40 i elements are none where i is 2^24."""
    body = f"""
    %most = arith.constant {most} : index
    {NATURAL.format("%i")}
    %some = arith.cmpi sge, %i, %c1 : index
    cf.assert %some, ""
    %f = arith.constant {1 << 40} : index
    %s = arith.muli %i, %f : index
    %b = memref.alloc(%s) : memref<?xf32>
    {AT.format("%b", "%i")}"""
    assert sites(body) == [expected]


@pytest.mark.parametrize(("step", "expected"), [(1, True), (1 << 62, False)])
def test_a_counter_that_may_wrap_is_not_natural(step, expected):
    body = f"""
    %far = arith.constant {step} : index
    %r = scf.for %k = %c0 to %c64 step %c1 iter_args(%p = %c0) -> (index) {{
      %e = arith.minsi %p, %c8 : index
      memref.store %z, %y[%e] : memref<64xf32>
      %q = arith.addi %p, %far : index
      scf.yield %q : index
    }}"""
    assert shown(body) == [expected]


def test_what_was_known_of_a_size_is_known_of_the_one_that_it_equals():
    """Rounded bytes are computed from one size; the view has the other, after they were compared."""
    body = """
    %c4 = arith.constant 4 : index
    %c63 = arith.constant 63 : index
    %c64 = arith.constant 64 : index
    %o = memref.dim %x, %c0 : memref<?xf32>
    %bytes = arith.muli %m, %c4 : index
    %up = arith.addi %bytes, %c63 : index
    %lines = arith.divui %up, %c64 : index
    %room = arith.muli %lines, %c64 : index
    %both = arith.addi %room, %room : index
    %arena = memref.alloc(%both) : memref<?xi8>
    %e = arith.cmpi eq, %m, %n : index
    cf.assert %e, ""
    %v = memref.view %arena[%room][%n] : memref<?xi8> to memref<?xf32>
    %n1 = arith.subi %n, %c1 : index
    """
    module = import_mlir(HOST.format(body=body))
    assert isinstance(module, ModuleOp)
    assert [a.shown is not None for a in read_program(module).accesses] == [True]
    longer = body.replace("[%room][%n]", "[%both][%n]")
    module = import_mlir(HOST.format(body=longer))
    assert [a.shown is not None for a in read_program(module).accesses] == [False]  # type: ignore


def test_two_arguments_that_are_one_buffer_are_not_apart():
    """A kernel that reads the next element of x and writes y is a race where y is x."""
    kernel = """
flow.executable @k {
  builtin.module {
    func.func @k(%x: memref<64xf32>, %y: memref<64xf32>) {
      %c1 = arith.constant 1 : index
      scf.forall (%i) in (63) {
        %p = arith.addi %i, %c1 : index
        %v = memref.load %x[%p] : memref<64xf32>
        memref.store %v, %y[%i] : memref<64xf32>
      }
      func.return
    }
  }
}
func.func @main(%x: memref<64xf32>, %y: memref<64xf32>) {
  stream.cmd.dispatch @k::@k(%x, %y) : memref<64xf32>, memref<64xf32>
  stream.cmd.dispatch @k::@k(%x, %x) : memref<64xf32>, memref<64xf32>
  func.return
}
"""
    module = import_mlir(kernel)
    assert isinstance(module, ModuleOp)
    found = [[a.apart for a in site.accesses] for site in read_program(module).sites]
    assert found == [[True, True], [False, False]]


def test_what_an_inner_loop_passes_on_is_written():
    body = """
    %none = memref.alloc() : memref<64xf32>
    scf.forall (%i) in (63) {
      %p = arith.addi %i, %c1 : index
      %v = memref.load %y[%p] : memref<64xf32>
      %r = scf.for %j = %c0 to %c1 step %c1 iter_args(%b = %y) -> (memref<64xf32>) {
        memref.store %v, %b[%i] : memref<64xf32>
        scf.yield %b : memref<64xf32>
      }
    }"""
    assert apart(body) == [False, False]
    assert apart(body.replace("%y[%p]", "%y[%i]")) == [True, True]


def test_sizes_that_cannot_be_let_nothing_come_behind_them():
    """2 n <= m, m <= n and n >= 4 contradict each other together, no two of them do."""
    body = f"""
    %double = arith.addi %n, %n : index
    %a = arith.cmpi sle, %double, %m : index
    cf.assert %a, ""
    %b = arith.cmpi sle, %m, %n : index
    cf.assert %b, ""
    MORE
    {AT.format("%x", "%i")}"""
    four = '%c4 = arith.constant 4 : index\n%d = arith.cmpi sle, %c4, %n : index\ncf.assert %d, ""'
    assert sites(body.replace("MORE", "")) == [False]
    assert sites(body.replace("MORE", four)) == [True]


@pytest.mark.parametrize(
    "more",
    [
        "%e = arith.cmpi eq, %c1, %m : index",
        "%t = arith.muli %m, %m : index\n%e = arith.cmpi eq, %t, %m : index",
        "%e = arith.constant false",
    ],
    ids=["a constant", "a product", "false"],
)
def test_asserts_that_contradict_each_other_let_nothing_come_behind_them(more):
    """The program always traps. Of what comes behind nothing can be shown otherwise."""
    body = f"""
    %two = arith.cmpi eq, %m, %c7 : index
    cf.assert %two, ""
    MORE
    {AT.format("%x", "%i")}"""
    contradiction = f'{more}\ncf.assert %e, ""'
    assert sites(body.replace("MORE", "")) == [False]
    assert sites(body.replace("MORE", contradiction)) == [True]


SIZED = """
flow.executable @k {{
  builtin.module {{
    func.func @k(%x: memref<2x4xf32>, %y: memref<f32>) {{
      %c1 = arith.constant 1 : index
      %c3 = arith.constant 3 : index
      %v = memref.load %x[%c1, %c3] : memref<2x4xf32>
      memref.store %v, %y[] : memref<f32>
      func.return
    }}
  }}
}}
func.func @main(%x: memref<{x}xf32>, %y: memref<f32>) {{
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %n = memref.dim %x, %c1 : memref<{x}xf32>
  {check}
  stream.cmd.dispatch @k::@k(%x, %y) : memref<{x}xf32>, memref<f32>
  func.return
}}
"""


@pytest.mark.parametrize(
    ("x", "predicate", "expected"),
    [
        ("2x4", None, True),
        ("2x?", "eq", True),
        ("2x?", "sge", False),
        ("2x?", None, False),
        ("?x4", None, False),
        ("2x3", None, False),
    ],
)
def test_a_kernel_gets_the_sizes_that_its_types_have(x, predicate, expected):
    check = f'%b = arith.cmpi {predicate}, %n, %c4 : index\n  cf.assert %b, ""' if predicate else ""
    module = import_mlir(SIZED.format(x=x, check=check))
    assert isinstance(module, ModuleOp)
    assert (not read_program(module).believed) == expected
