"""
Random programs with devices: where everything is does not depend on any order, comes from what is
written, and no unannotated border op changes it.
"""

from __future__ import annotations

import re

from hypothesis import given, settings
from hypothesis import strategies as st
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Block, Operation, SSAValue

from irees.analysis._affinity_flow import collect_flow, symbol
from irees.analysis._affinity_rules import Rule, Rules, solve
from irees.analysis.affinity import Affinities, analyze_affinities, requires_affinity
from irees.dialects.hal import BufferViewType, TensorExportOp
from irees.frontends.mlir import import_mlir
from irees.testing import profiles

FACTOR = profiles.load()
T = "tensor<4xi32>"
SIGNATURE = f"%arg{{0}}: {T}, %c{{0}}: i1, %i{{0}}: i32, %z{{0}}: index, %b{{0}}: !hal.buffer_view"
PLAIN = {
    "constant": f"flow.tensor.constant {{a}} dense<1> : {T}",
    "splat": f"flow.tensor.splat %i{{f}} : {T} {{ka}}",
    "transfer": f"flow.tensor.transfer {{x}} : {T} to {{d}}",
    "barrier": f"flow.tensor.barrier {{x}} : {T} on {{d}}",
    "clone": f"flow.tensor.clone {{x}} : {T} {{ka}}",
    "reshape": f"flow.tensor.reshape {{x}} : {T} -> {T}",
    "dispatch": f"flow.dispatch @k({{x}}, {{y}}) {{a}} : ({T}, {T}) -> {T}",
    "tied": f"flow.dispatch @k({{x}}, {{y}}) {{a}} : ({T}, {T}) -> {{x}}",
    "select": f"arith.select %c{{f}}, {{x}}, {{y}} : {T}",
    "hidden": f"util.optimization_barrier {{x}} : {T}",
    "load": f"util.global.load @{{g}} : {T}",
    "import": f"hal.tensor.import {{on}} %b{{f}} : !hal.buffer_view -> {T}",
    "export": f"hal.tensor.export {{on}} {{x}} : {T} -> !hal.buffer_view",
    "store": f"util.global.store {{x}}, @{{g}} : {T}",
    "call": f"util.call @f{{n}}({{x}}, %c{{f}}, %i{{f}}, %z{{f}}, %b{{f}})"
    f" : ({T}, i1, i32, index, !hal.buffer_view) -> {T}",
}
NESTED = ("if", "for", "while")
NO_TENSOR = ("export", "store")

devices = st.sampled_from("abcd").map(lambda d: f"#hal.device.promise<@{d}>")
maybe = st.integers(0, 3).map(lambda n: n == 0)


class Writer:
    """Writes functions of random ops; every value has a name of its own."""

    def __init__(self, draw, functions: int):
        self.draw = draw
        self.functions = functions
        self.count = 0

    def name(self) -> str:
        self.count += 1
        return f"%v{self.count}"

    def annotation(self) -> str:
        return f"{{stream.affinity = {self.draw(devices)}}}" if self.draw(maybe) else ""

    def plain(self, kind: str, values: list[str], function: int) -> str:
        own = self.annotation()
        pick = st.sampled_from(values)
        return PLAIN[kind].format(
            x=self.draw(pick),
            y=self.draw(pick),
            d=self.draw(devices),
            a=own,
            ka=own and f"attributes {own}",
            on=f"on({self.draw(devices)})" if self.draw(st.booleans()) else "",
            g=self.draw(st.sampled_from(("g0", "g1"))),
            n=self.draw(st.integers(0, self.functions - 1)),
            f=function,
        )

    def ops(self, values: list[str], function: int, depth: int) -> str:
        """A few ops, whose results are added to the values."""
        lines: list[str] = []
        for _ in range(self.draw(st.integers(1, 4))):
            kind = self.draw(st.sampled_from((*PLAIN, *(NESTED if depth else ()))))
            if kind in NESTED:
                lines.append(self.nested(kind, values, function, depth))
            elif kind == "store":
                lines.append(self.plain(kind, values, function))
            else:
                name = self.name()
                lines.append(f"{name} = {self.plain(kind, values, function)}")
                values += [] if kind in NO_TENSOR else [name]
        return "\n".join(lines)

    def nested(self, kind: str, values: list[str], function: int, depth: int) -> str:
        def region(arguments: list[str], ends: str, count: int) -> str:
            inner = [*values, *arguments]
            text = self.ops(inner, function, depth - 1)
            out = [self.draw(st.sampled_from(inner)) for _ in range(count)]
            return f"{text}\n{ends} {', '.join(out)} : {', '.join([T] * count)}"

        result, (k, m, o), f = self.name(), [self.name() for _ in range(3)], function
        x, y = (self.draw(st.sampled_from(values)) for _ in range(2))
        if kind == "if":
            text = (
                f"{result} = scf.if %c{f} -> ({T}) {{\n{region([], 'scf.yield', 1)}\n}} "
                f"else {{\n{region([], 'scf.yield', 1)}\n}}"
            )
        elif kind == "for":
            text = (
                f"{result} = scf.for %k{result[1:]} = %z{f} to %z{f} step %z{f} "
                f"iter_args({k} = {x}) -> ({T}) {{\n{region([k], 'scf.yield', 1)}\n}}"
            )
        else:
            text = (
                f"{result} = scf.while ({k} = {x}, {m} = {y}) : ({T}, {T}) -> {T} {{\n"
                f"{region([k, m], f'scf.condition(%c{f})', 1)}\n}} do {{\n^body({o}: {T}):\n"
                f"{region([o], 'scf.yield', 2)}\n}}"
            )
        values.append(result)
        return text


@st.composite
def programs(draw) -> list[str]:
    """The globals and functions of a module, as text."""
    functions = draw(st.integers(1, 3))
    writer = Writer(draw, functions)
    parts = [f"util.global private mutable @g{i} {writer.annotation()} : {T}" for i in range(2)]
    for f in range(functions):
        values = [f"%arg{f}"]
        text = writer.ops(values, f, 2)
        if draw(maybe):
            target = writer.name()
            text += f"\ncf.br ^next({draw(st.sampled_from(values))} : {T})\n^next({target}: {T}):\n"
            values.append(target)
            text += writer.ops(values, f, 1)
            text += (
                f"\ncf.cond_br %c{f}, ^next({draw(st.sampled_from(values))} : {T}), ^last\n^last:"
            )
        visibility = draw(st.sampled_from(("public", "private")))
        attributes = {"stream.affinity": draw(maybe), "stream.affinity.default": draw(maybe)}
        given_ = [f"{key} = {draw(devices)}" for key, wanted in attributes.items() if wanted]
        parts.append(
            f"util.func {visibility} @f{f}({SIGNATURE.format(f)}) -> {T} "
            f"attributes {{{', '.join(given_)}}} {{\n{text}\n"
            f"util.return {draw(st.sampled_from(values))} : {T}\n}}"
        )
    return parts


def values_of(module: ModuleOp) -> dict[str, SSAValue]:
    blocks = [b for op in module.walk() for region in op.regions for b in region.blocks]
    arguments = [argument for block in blocks for argument in block.args]
    every = [*arguments, *(result for op in module.walk() for result in op.results)]
    return {value.name_hint: value for value in every if value.name_hint}


def answers(module: ModuleOp) -> dict[str, object]:
    """Every answer of the analysis, by names that do not depend on any order."""
    affinities = analyze_affinities(module)
    found: dict[str, object] = {}
    for name, value in values_of(module).items():
        found[name] = (affinities.resource(value), affinities.usage(value), affinities.made(value))
        if isinstance(value.owner, Operation) and requires_affinity(value.owner):
            found[f"op {name}"] = affinities.execution(value.owner)
    for op in module.body.block.ops:
        if op.name == "util.global":
            found[f"global {op.properties['sym_name']}"] = affinities.of_global(op)
    return found


@settings(max_examples=40 * FACTOR, deadline=None)
@given(st.data(), programs())
def test_the_order_of_functions_and_globals_makes_no_difference(data, parts: list[str]):
    expected = answers(import_mlir("\n".join(parts)))
    shuffled = data.draw(st.permutations(parts))
    assert answers(import_mlir("\n".join(shuffled))) == expected


ORDERED = ("util.global.load", "util.global.store", "util.call", "util.optimization_barrier")


def reorder(data, block: Block) -> None:
    """Another order of a block's ops in which every value is still defined before it is used."""
    remaining = [op for op in block.ops if op is not block.last_op]
    placed: list[Operation] = []
    while remaining:
        ready = [
            op for op in remaining if not needs(op) & {id(o) for o in remaining if o is not op}
        ]
        first = next((op for op in remaining if op.name in ORDERED), None)
        ready = [op for op in ready if op.name not in ORDERED or op is first]
        op = data.draw(st.sampled_from(ready))
        remaining.remove(op)
        placed.append(op)
    for op in placed:
        op.detach()
    if (last := block.last_op) is None:
        block.add_ops(placed)
    else:
        block.insert_ops_before(placed, last)


def needs(op: Operation) -> set[int]:
    """Who defines what an op or something inside it uses."""
    return {id(v.owner) for each in op.walk() for v in each.operands}


@settings(max_examples=40 * FACTOR, deadline=None)
@given(st.data(), programs())
def test_the_order_of_ops_makes_no_difference(data, parts: list[str]):
    module = import_mlir("\n".join(parts))
    expected = answers(module)
    for op in list(module.walk()):
        if op.name in ("util.func", "scf.if", "scf.for", "scf.while"):
            for block in [b for region in op.regions for b in region.blocks]:
                reorder(data, block)
    module.verify()
    assert answers(module) == expected


@settings(max_examples=40 * FACTOR, deadline=None)
@given(programs())
def test_every_affinity_is_written_in_the_program(parts: list[str]):
    text = "\n".join(parts)
    module = import_mlir(text)
    affinities = analyze_affinities(module)
    written = set(re.findall(r"(?<!default = )#hal\.device\.promise<@\w>", text))
    assert {str(each) for found in affinities.sets.values() for each in found or ()} <= written
    assert {str(each) for found in affinities.pinned.values() for each in found} <= written


def reached(rules: dict, start: object, *, strictly: bool) -> set:
    """The elements at the ends of all paths from one, by trying them all."""
    found, wanted = set(), [start]
    while wanted:
        element = wanted.pop()
        if element in found:
            continue
        found.add(element)
        rule = rules[element]
        wanted += [*rule.strict, *([] if strictly else rule.lenient)]
    return found


@settings(max_examples=20 * FACTOR, deadline=None)
@given(programs())
def test_a_set_is_what_can_be_reached(parts: list[str]):
    """The solution is brute force's: unknown if something unknown is, else all that is."""
    flow = collect_flow(import_mlir("\n".join(parts)))
    names = {symbol(op, "sym_name"): op for op in flow.globals}
    rules = Rules(flow, names).collect()
    unknown = {e for e in rules if any(rules[r].unknown for r in reached(rules, e, strictly=True))}
    known = {
        element: Rule(
            rule.affinities,
            [r for r in rule.strict if r not in unknown],
            [r for r in rule.lenient if r not in unknown],
        )
        for element, rule in rules.items()
        if element not in unknown
    }
    for element, found in solve(rules).items():
        if element in unknown:
            assert found is None
            continue
        ends = reached(known, element, strictly=False)
        assert found == frozenset().union(*(known[end].affinities for end in ends))


def exported(module: ModuleOp, value: SSAValue) -> Affinities:
    """The answer after a value has been exported, without a word about devices."""
    export = TensorExportOp.build(
        operands=[value, []],
        properties={"source_encoding": value.type},
        result_types=[BufferViewType()],
    )
    block = value.owner if isinstance(value.owner, Block) else value.owner.parent_block()
    assert block is not None
    if block.last_op is None:
        block.add_op(export)
    else:
        block.insert_op_before(export, block.last_op)
    return analyze_affinities(module)


@settings(max_examples=40 * FACTOR, deadline=None)
@given(st.data(), programs())
def test_an_export_that_says_nothing_adds_nothing(data, parts: list[str]):
    module = import_mlir("\n".join(parts))
    before = analyze_affinities(module)
    values = {name: v for name, v in values_of(module).items() if str(v.type) == T}
    name = data.draw(st.sampled_from(sorted(values)))
    places = {n: (before.resource(v), before.made(v)) for n, v in values.items()}
    after = exported(module, values[name])
    assert after.resource(values[name]) == places[name][0]
    here = set(places[name][1] or ())
    for n, (resource, made) in places.items():
        if values[n] in after.pinned:
            assert after.resource(values[n]) == resource
        now = after.made(values[n])
        # What flows into the export may now be made where that is, and nowhere new.
        if made is not None and now is not None:
            assert set(made) <= set(now) <= set(made) | here
