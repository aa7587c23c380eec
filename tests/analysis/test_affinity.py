"""
Where values are and ops run: each rule of the analysis on a small program.

An expectation is a string of device letters for a value, in order; `-` is nowhere in particular and
`?` unknown. `x` is where %x is, `x.usage` where it is made or used, `x.op` where its op runs.
"""

from __future__ import annotations

import pytest
from xdsl.ir import BlockArgument, OpResult, SSAValue

from irees.analysis.affinity import analyze_affinities, devices_of, in_order, lead
from irees.dialects.hal import DeviceAffinityAttr, DeviceOptimalAttr, DevicePromiseAttr
from irees.frontends.mlir import import_mlir

ALIASES = "".join(f"#{d} = #hal.device.promise<@{d}>\n" for d in "abcd")
T = "tensor<4xf32>"
R = "!stream.resource<*>"


def letters(found) -> str:
    if found is None:
        return "?"
    return "".join("|".join(sorted(devices_of(each))) for each in found) or "-"


def analyze(text: str) -> tuple[dict[str, SSAValue], object]:
    module = import_mlir(ALIASES + text.replace("$T", T).replace("$R", R))
    values: dict[str, SSAValue] = {}
    for op in module.walk():
        arguments = [a for region in op.regions for block in region.blocks for a in block.args]
        for value in (*op.results, *arguments):
            if value.name_hint:
                values[value.name_hint] = value
    return values, analyze_affinities(module)


def check(text: str, **expected: str):
    values, affinities = analyze(text)
    found = {}
    for key in expected:
        name, _, query = key.partition("__")
        value = values[name]
        if query == "usage":
            found[key] = letters(affinities.usage(value))
        elif query == "op":
            assert isinstance(value, OpResult)
            found[key] = letters(affinities.execution(value.op))
        else:
            found[key] = letters(affinities.resource(value))
    assert found == expected


def body(text: str, *, arguments: str = "%p: $T, %c: i1, %i: index, %s: f32", attributes="") -> str:
    """A private function that nobody calls: its arguments are nowhere in particular."""
    return f"util.func private @f({arguments}) {attributes} {{\n{text}\n  util.return\n}}"


ON_A = "%x = flow.tensor.constant {stream.affinity = #a} dense<1.0> : $T\n"
ON_B = "%y = flow.tensor.constant {stream.affinity = #b} dense<2.0> : $T\n"
NOWHERE = "%n = flow.tensor.constant dense<3.0> : $T\n"
USE = "%u{0} = flow.tensor.transfer %{1} : $T to #{2}\n"


def test_an_op_runs_where_its_operands_are():
    check(body(ON_A + "%r = flow.dispatch @k(%x, %s) : ($T, f32) -> $T"), r="a", r__op="a")
    check(body(ON_A + ON_B + "%r = flow.dispatch @k(%y, %x) : ($T, $T) -> $T"), r="ab", r__op="ab")


def test_an_op_without_operands_runs_where_its_results_are_used():
    check(body(NOWHERE + USE.format(0, "n", "a")), n="a", n__op="a")
    check(body(NOWHERE + USE.format(0, "n", "b") + USE.format(1, "n", "a")), n="ab", n__op="ab")
    splat = "%n = flow.tensor.splat %s : $T\n"
    check(body(splat + USE.format(0, "n", "b") + USE.format(1, "n", "a")), n="ab", n__op="ab")
    check(body("%n = arith.constant dense<1.0> : $T\n" + USE.format(0, "n", "a")), n="a", n__op="a")


def test_nothing_written_is_nowhere():
    check(body(NOWHERE + "%r = flow.dispatch @k(%n, %p) : ($T, $T) -> $T"), n="-", r="-", p="-")


@pytest.mark.parametrize(
    "op",
    [
        "%r = flow.dispatch @k(%x) {stream.affinity = #b} : ($T) -> $T",
        "%r = flow.tensor.clone %x : $T attributes {stream.affinity = #b}",
        "%r = flow.tensor.transfer %x : $T to #b",
    ],
)
def test_what_an_op_says_wins(op: str):
    """Mutant S4c: inference overrides it."""
    check(body(ON_A + op + "\n" + USE.format(0, "r", "c")), r="b", r__op="b", r__usage="bc")
    surroundings = "attributes {stream.affinity = #d}"
    check(body(ON_A + op, attributes=surroundings), r="b", r__op="b")


def test_an_ancestor_places_what_says_nothing():
    text = ON_A + "%r = flow.dispatch @k(%x) : ($T) -> $T"
    check(body(text, attributes="attributes {stream.affinity = #d}"), x="a", r="d", r__op="d")


def test_a_default_answers_only_for_an_empty_set():
    text = (
        ON_A
        + NOWHERE
        + "%r = flow.dispatch @k(%x) : ($T) -> $T\n%q = flow.dispatch @k(%n) : ($T) -> $T"
    )
    default = "attributes {stream.affinity.default = #d}"
    check(body(text, attributes=default), x="a", r="a", r__op="a", n="d", q="d", p="d")
    # It is never part of a set: what is nowhere adds nothing to what is on a.
    text = ON_A + "%r = flow.dispatch @k(%x, %p) : ($T, $T) -> $T"
    check(body(text, attributes=default), r="a")


TIES = [
    "%r = flow.dispatch @k(%s, %x) {plain} : (f32, $T) -> %x",
    "%r = flow.tensor.reshape %x : $T -> $T {keyword}",
    "%r = flow.tensor.update %n, %x[%i] : $T -> %x as $T {keyword}",
    "%r = hal.tensor.barrier join(%x : $T) => %f : !hal.fence {keyword}",
    "%r = tensor.cast %x {plain} : $T to $T",
]


@pytest.mark.parametrize("tie", TIES)
@pytest.mark.parametrize("where", ["", "{stream.affinity = #b}"])
def test_storage_stays_through_a_tie(tie: str, where: str):
    """Mutant S4b: an affinity is lost through a chain of views."""
    arguments = "%p: $T, %i: index, %s: f32, %f: !hal.fence"
    op = tie.format(plain=where, keyword=where and f"attributes {where}")
    text = ON_A + NOWHERE + op + "\n%z = tensor.cast %r : $T to $T"
    check(body(text, arguments=arguments), r="a", z="a")


def test_a_chain_of_slices_and_views():
    text = (
        ON_A
        + """
      %r = flow.tensor.reshape %x : $T -> tensor<2x2xf32>
      %e = flow.tensor.slice %r[%i, %i for %i, %i] : tensor<2x2xf32> -> tensor<1x2xf32>
      %k = tensor.collapse_shape %e [[0, 1]] : tensor<1x2xf32> into tensor<2xf32>
      %q = flow.dispatch @k(%k) : (tensor<2xf32>) -> tensor<2xf32>"""
    )
    check(body(text), r="a", e="a", e__op="a", k="a", q="a", q__op="a")


def test_consumers_are_seen_through_a_tie():
    text = NOWHERE + "%r = flow.dispatch @k(%n) : ($T) -> %n\n" + USE.format(0, "r", "a")
    check(body(text), n="a", r="a", r__op="a")


def test_a_tied_dispatch_of_resources_is_also_where_it_runs():
    text = """
      %x = stream.async.constant on(#a) : $R{%i} = dense<1> : tensor<4xi32>
      %y = stream.async.constant on(#b) : $R{%i} = dense<1> : tensor<4xi32>
      %r = stream.async.dispatch on(#b) @k(%x[%i to %i for %i]) : ($R{%i}) -> %x{%i}
      %q = stream.async.dispatch @k(%x[%i to %i for %i]) : ($R{%i}) -> %x{%i}
      %u = stream.async.update on(#b) %y, %x[%i to %i] : $R{%i} -> %x as $R{%i}"""
    check(body(text), r="ab", r__op="b", q="a", u="a", u__op="b")


def test_a_region_of_work():
    text = """
      %x = stream.async.constant on(#a) : $R{%i} = dense<1> : tensor<4xi32>
      %r, %t = stream.async.execute on(#b) with(%x as %y: $R{%i}) -> $R{%i} {
        %z = stream.async.clone %y : $R{%i} -> $R{%i}
        stream.yield %z : $R{%i}
      } => !stream.timepoint"""
    check(body(text), y="a", z="b", z__op="b", r="b")


@pytest.mark.parametrize(
    ("source", "target", "result", "runs"),
    [
        ("*", "*", "a", "a"),
        ("external", "*", "b", "b"),
        ("staging", "*", "b", "b"),
        ("staging", "staging", "a", "a"),
        ("*", "external", "a", "a"),
    ],
)
def test_who_runs_a_transfer(source: str, target: str, result: str, runs: str):
    text = f"%r = stream.async.transfer %x : !stream.resource<{source}>{{%i}} from(#a) -> to(#b) !stream.resource<{target}>{{%i}}"
    arguments = f"%x: !stream.resource<{source}>, %i: index"
    check(body(text, arguments=arguments), r=result, r__op=runs)
    explicit = text.replace("transfer %x", "transfer on(#c) %x")
    check(body(explicit, arguments=arguments), r="c", r__op="c")


def test_a_transfer_uses_its_source_on_both_sides():
    text = """%n = stream.async.splat %v : i32 -> $R{%i}
      %r = stream.async.transfer %n : $R{%i} from(#a) -> to(#b) $R{%i}"""
    check(body(text, arguments="%i: index, %v: i32"), n="ab")


def test_select_is_either():
    check(body(ON_A + ON_B + "%r = arith.select %c, %x, %y : $T"), r="ab")
    text = NOWHERE + "%r = arith.select %c, %n, %p : $T\n" + USE.format(0, "r", "a")
    check(body(text), n="a", r="a")


def test_an_optimization_barrier_hides_nothing():
    check(body(ON_A + ON_B + "%r, %q = util.optimization_barrier %x, %y : $T, $T"), r="a", q="b")
    text = NOWHERE + "%r = util.optimization_barrier %n : $T\n" + USE.format(0, "r", "a")
    check(body(text), n="a")


def test_if():
    text = (
        ON_A
        + ON_B
        + """
      %r = scf.if %c -> ($T) {
        scf.yield %x : $T
      } else {
        scf.yield %y : $T
      }"""
    )
    check(body(text), r="ab", x="a", y="b")
    text = (
        NOWHERE
        + """
      %r = scf.if %c -> ($T) {
        scf.yield %n : $T
      } else {
        %m = flow.tensor.splat %s : $T
        scf.yield %m : $T
      }
      """
        + USE.format(0, "r", "a")
    )
    check(body(text), r="a", n="a", m="a", m__op="a")


def test_for():
    text = (
        ON_A
        + """
      %r = scf.for %k = %i to %i step %i iter_args(%l = %x) -> ($T) {
        %m = flow.tensor.transfer %l : $T to #b
        scf.yield %m : $T
      }
      """
        + USE.format(0, "r", "c")
    )
    check(body(text), l="ab", m="b", r="b", r__usage="bc", m__usage="bc")
    text = (
        NOWHERE
        + """
      %r:2 = scf.for %k = %i to %i step %i iter_args(%l = %n, %m = %p) -> ($T, $T) {
        scf.yield %m, %l : $T, $T
      }
      """
        + USE.format(0, "r#1", "c")
    )
    check(body(text), n="c", l="c", m="c")


def test_while():
    text = (
        ON_A
        + ON_B
        + """
      %r = scf.while (%l = %x, %m = %y) : ($T, $T) -> $T {
        scf.condition(%c) %m : $T
      } do {
      ^block0(%o: $T):
        %q = flow.tensor.transfer %o : $T to #d
        scf.yield %q, %o : $T, $T
      }"""
    )
    check(body(text), l="ad", m="b", o="b", r="b", q="d")
    text = (
        NOWHERE
        + """
      %r = scf.while (%l = %p, %m = %n) : ($T, $T) -> $T {
        scf.condition(%c) %m : $T
      } do {
      ^block0(%o: $T):
        scf.yield %p, %o : $T, $T
      }
      """
        + USE.format(0, "r", "c")
    )
    check(body(text), n="c", r="c", l="-")


def test_branches():
    text = (
        ON_A
        + ON_B
        + """
      cf.cond_br %c, ^block1(%x : $T), ^block2(%y, %x : $T, $T)
    ^block1(%l: $T):
      cf.br ^block2(%l, %y : $T, $T)
    ^block2(%m: $T, %o: $T):"""
    )
    check(body(text), l="a", m="ab", o="ab")


def test_a_loop_of_blocks():
    text = (
        ON_A
        + """
      cf.br ^block1(%x : $T)
    ^block1(%l: $T):
      %m = flow.tensor.transfer %l : $T to #b
      cf.cond_br %c, ^block1(%m : $T), ^block2(%m : $T)
    ^block2(%o: $T):"""
    )
    check(body(text), l="ab", m="b", o="b")


def test_switch():
    text = (
        ON_A
        + ON_B
        + """
      cf.switch %k : i32, [
        default: ^block1(%x : $T),
        7: ^block2(%y : $T),
        9: ^block2(%x : $T)
      ]
    ^block1(%l: $T):
      util.return
    ^block2(%m: $T):"""
    )
    check(body(text, arguments="%k: i32"), l="a", m="ab")


@pytest.mark.parametrize("dialect", ["util", "func"])
def test_calls(dialect: str):
    text = f"""
      {dialect}.func private @main() {{
        {NOWHERE} {ON_B}
        %r = {dialect}.call @f(%n, %y) : ($T, $T) -> $T
        {dialect}.return
      }}
      {dialect}.func private @f(%l: $T, %m: $T) -> $T {{
        %o = flow.tensor.transfer %l : $T to #a
        %q = flow.dispatch @k(%o, %m) : ($T, $T) -> $T
        {dialect}.return %q : $T
      }}"""
    check(text, n="a", l="a", m="b", q="ab", r="ab")


def test_a_result_is_used_where_every_caller_uses_it():
    text = f"""
      util.func private @one() {{
        %r = util.call @f() : () -> $T
        {USE.format(0, "r", "a")}
        util.return
      }}
      util.func private @two() {{
        %q = util.call @f() : () -> $T
        {USE.format(1, "q", "b")}
        util.return
      }}
      util.func private @f() -> $T {{
        {NOWHERE}
        util.return %n : $T
      }}"""
    check(text, n="ab", r="ab", q="ab")


def test_the_world_outside_is_unknown():
    text = f"""
      util.func private @external($T) -> $T
      util.func public @main(%p: $T) -> $T attributes {{stream.affinity.default = #d}} {{
        {NOWHERE}
        %r = util.call @external(%p) : ($T) -> $T
        %q = flow.dispatch @k(%r) : ($T) -> $T
        util.return %n : $T
      }}"""
    # It may be anywhere, so it is not where the default is; an op runs there nevertheless.
    check(text, p="?", r="?", q="?", q__op="d", n="?", n__op="d", q__usage="d")
    pinned = text.replace("(%r)", "(%b)").replace(
        "%q =", "%b = flow.tensor.barrier %r : $T on #b\n%q ="
    )
    check(pinned, b="b", q="b", q__op="b", r="b", p="?")


def test_globals():
    def program(attribute: str, store: str, load: str) -> str:
        return f"util.global private mutable @g {attribute} : $T\n" + body(ON_A + store + load)

    store = "util.global.store %x, @g : $T\n"
    load = "%l = util.global.load @g : $T\n" + USE.format(0, "l", "b") + USE.format(1, "l", "c")
    for attribute, with_store, with_load, expected in [
        ("", store, load, "bc"),
        ("", "", load, "bc"),
        ("", store, "", "a"),
        ("{stream.affinity = #d}", store, load, "d"),
    ]:
        _, affinities = analyze(program(attribute, with_store, with_load))
        (variable,) = {thing for side, thing in affinities.sets if side.value == "global"}
        assert letters(affinities.of_global(variable)) == expected
    check(program("", store, load), l="bc", x="a", x__usage="abc")


EXPORTS = {
    "hal.tensor": "%e = hal.tensor.export {on} %r : $T -> !hal.buffer_view",
    "stream.tensor": "%e = stream.tensor.export {on} %r : tensor<4xi32> in $R{{%i}} -> !hal.buffer_view",
}
MAKE = {
    "hal.tensor": ON_A + "%r = flow.dispatch @k(%x) : ($T) -> $T\n",
    "stream.tensor": """%x = stream.async.constant on(#a) : $R{%i} = dense<1> : tensor<4xi32>
        %r = stream.async.clone %x : $R{%i} -> $R{%i}\n""",
}


@pytest.mark.parametrize("dialect", EXPORTS)
@pytest.mark.parametrize("default", ["", "attributes {stream.affinity.default = #d}"])
def test_an_export_without_an_affinity_never_pins(dialect: str, default: str):
    """Mutant S4a: it pins what it exports to device 0, or to the default."""
    text = MAKE[dialect] + EXPORTS[dialect].format(on="")
    check(body(text, attributes=default), r="a", r__usage="a", r__op="a")
    _, affinities = analyze(body(text, attributes=default))
    assert not affinities.pinned


@pytest.mark.parametrize("dialect", EXPORTS)
def test_an_export_with_an_affinity_pins(dialect: str):
    text = MAKE[dialect] + EXPORTS[dialect].format(on="on(#b)")
    check(body(text), r="b", r__usage="ab", r__op="a")


@pytest.mark.parametrize(
    ("op", "pinned"),
    [
        ("%r = hal.tensor.import {on} %v : !hal.buffer_view -> $T", "r"),
        ("%z = hal.tensor.alias {on} %r : $T to %v : !hal.buffer_view", "rz"),
        ("%z = hal.tensor.transients {on} %r : $T from %v : !hal.buffer_view", "rz"),
    ],
)
def test_other_border_ops_pin_only_with_an_affinity(op: str, pinned: str):
    make = "" if "import" in op else "%r = flow.tensor.empty : $T\n"
    arguments = "%v: !hal.buffer_view, %f: !hal.fence"
    after = "\n%y = hal.tensor.barrier join(%r : $T) => %f : !hal.fence"
    default = "attributes {stream.affinity.default = #d}"
    text = body(make + op.format(on="") + after, arguments=arguments, attributes=default)
    check(text, **{name: "d" for name in [*pinned, "y"]})
    assert not analyze(text)[1].pinned
    text = body(make + op.format(on="on(#b)") + after, arguments=arguments, attributes=default)
    check(text, **{name: "b" for name in [*pinned, "y"]})


def test_a_pin_goes_through_all_uses_and_definitions():
    text = (
        ON_A
        + """
      %r = flow.dispatch @k(%x) : ($T) -> %x
      %l = flow.dispatch @k(%r) : ($T) -> %r
      %b = flow.tensor.barrier %l : $T on #b
      %m = flow.dispatch @k(%b) : ($T) -> %b
      %o = flow.dispatch @k(%b) : ($T) -> %b
      %q = flow.dispatch @k(%m) : ($T) -> $T"""
    )
    check(body(text), x="b", r="b", l="b", b="b", m="b", o="ab", q="ab")


def test_a_pin_ends_at_the_next():
    text = """
      %x = hal.tensor.import on(#a) %v : !hal.buffer_view -> $T
      %y = flow.tensor.barrier %x : $T on #b
      %e = hal.tensor.export on(#c) %y : $T -> !hal.buffer_view"""
    check(body(text, arguments="%v: !hal.buffer_view"), x="a", y="ab")


def test_two_pins_are_both():
    text = "%r = flow.tensor.empty : $T\n" + "".join(
        f"%e{d} = hal.tensor.export on(#{d}) %r : $T -> !hal.buffer_view\n" for d in "cab"
    )
    check(body(text), r="abc", r__usage="abc")


def test_many_candidates_are_all_kept_in_order_and_nobody_chooses():
    """Mutant S4d: of several producers the first that a dictionary has is taken."""
    uses = "".join(USE.format(i, "n", d) for i, d in enumerate("dbac"))
    check(body(NOWHERE + uses), n="abcd", n__op="abcd", n__usage="abcd")
    many = [DevicePromiseAttr(f"d{i}") for i in range(9)]
    assert in_order(reversed(many)) == tuple(many)
    assert in_order(set(many)) == tuple(many)
    assert lead(many[:1]) == many[0]
    assert lead(many[:2]) is lead([]) is lead(None) is None


def test_what_a_device_is():
    queue = DevicePromiseAttr("a", 0b101)
    declared = DeviceAffinityAttr("b")
    assert devices_of(queue) == {"a"}
    assert devices_of(DeviceOptimalAttr([queue, declared])) == {"a", "b"}
    assert str(queue) == "#hal.device.promise<@a, [0, 2]>"
    assert str(DeviceOptimalAttr([queue, declared])) == (
        "#hal.device.optimal<[#hal.device.promise<@a, [0, 2]>, #hal.device.affinity<@b>]>"
    )


def test_arguments_of_regions_nobody_knows_are_unknown():
    text = """
      scf.forall (%k) in (4) shared_outs(%o = %p) -> ($T) {
        scf.forall.in_parallel {
        }
      }"""
    values, affinities = analyze(body(text))
    assert isinstance(values["o"], BlockArgument)
    assert affinities.resource(values["o"]) is None
