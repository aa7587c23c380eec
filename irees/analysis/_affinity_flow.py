"""
Data flow between values of a module, through control flow, calls and globals.

An edge leads from an operand to a value that equals the operand at run time: an argument of a
block, loop or callee, a result of a region op or call, or a load of a stored value. Arguments and
results of public functions and of calls to external functions are open: their other end is unknown.

    util.return %x   in @f, private    %x -> the results of every call of @f
    scf.yield %x     in scf.for        %x -> the iteration argument and the result of the loop

IREE: `Explorer::walkDefiningOps` and `walkTransitiveUses`.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import count

from xdsl.dialects import cf, scf
from xdsl.dialects.builtin import ModuleOp, StringAttr, SymbolRefAttr
from xdsl.ir import Block, BlockArgument, Operation, OpResult, SSAValue

FUNCTIONS = ("func.func", "util.func", "util.initializer")
CALLS = ("func.call", "util.call")
RETURNS = ("func.return", "util.return")
LOAD, STORE, GLOBAL = "util.global.load", "util.global.store", "util.global"

Edges = Iterable[tuple[int, SSAValue]]


def _branch(op: Operation) -> Edges:
    assert isinstance(op, cf.BranchOp)
    return zip(count(), op.successor.args, strict=False)


def _cond_branch(op: Operation) -> Edges:
    assert isinstance(op, cf.ConditionalBranchOp)
    taken = len(op.then_arguments)
    yield from zip(range(1, 1 + taken), op.then_block.args, strict=True)
    yield from zip(count(1 + taken), op.else_block.args, strict=False)


def _switch(op: Operation) -> Edges:
    assert isinstance(op, cf.SwitchOp)
    start = 1
    for block, arguments in [
        (op.default_block, op.default_operands),
        *zip(op.case_blocks, op.case_operand, strict=True),
    ]:
        yield from zip(range(start, start + len(arguments)), block.args, strict=True)
        start += len(arguments)


def _for(op: Operation) -> Edges:
    assert isinstance(op, scf.ForOp)
    return zip(count(3), op.body.block.args[1:], strict=False)


def _entry(op: Operation) -> Edges:
    return zip(count(), op.regions[0].blocks[0].args, strict=False)


def _condition(op: Operation) -> Edges:
    parent = op.parent_op()
    assert isinstance(parent, scf.WhileOp)
    yield from zip(count(1), parent.after_region.block.args, strict=False)
    yield from zip(count(1), parent.results, strict=False)


def _yield(op: Operation) -> Edges:
    parent = op.parent_op()
    assert parent is not None
    if isinstance(parent, scf.WhileOp):
        return zip(count(), parent.before_region.block.args, strict=False)
    results = zip(count(), parent.results, strict=False)
    if isinstance(parent, scf.ForOp):
        return [*zip(count(), parent.body.block.args[1:], strict=False), *results]
    return results


EDGES: dict[str, Callable[[Operation], Edges]] = {
    "cf.br": _branch,
    "cf.cond_br": _cond_branch,
    "cf.switch": _switch,
    "scf.condition": _condition,
    "scf.for": _for,
    "scf.while": _entry,
    "scf.yield": _yield,
    "stream.async.execute": _entry,
    "stream.yield": _yield,
}
"""Op name => pairs of operand index and target value, within one function."""

ENTERED = ("scf.for", "scf.while", "stream.async.execute")
"""Ops with `EDGES` to their region arguments; region arguments of all other ops are open."""


@dataclass
class Flow:
    """The edges of a module in both directions. A use is a pair of op and operand index."""

    functions: list[Operation] = field(default_factory=list[Operation])
    globals: list[Operation] = field(default_factory=list[Operation])
    loads: dict[str, list[SSAValue]] = field(default_factory=lambda: defaultdict(list))
    stores: dict[str, list[SSAValue]] = field(default_factory=lambda: defaultdict(list))
    targets: dict[tuple[Operation, int], list[SSAValue]] = field(
        default_factory=lambda: defaultdict(list)
    )
    sources: dict[SSAValue, list[SSAValue]] = field(default_factory=lambda: defaultdict(list))
    open_values: set[SSAValue] = field(default_factory=set[SSAValue])
    open_uses: set[tuple[Operation, int]] = field(default_factory=set[tuple[Operation, int]])

    def edge(self, op: Operation, index: int, target: SSAValue) -> None:
        """Adds an edge from an operand to a value."""
        self.targets[op, index].append(target)
        self.sources[target].append(op.operands[index])

    def walk(self) -> Iterator[Operation]:
        """Yields the ops of all functions, without the functions."""
        for function in self.functions:
            yield from (op for op in function.walk() if op is not function)

    def goes_to(self, op: Operation, index: int) -> Sequence[SSAValue]:
        """Returns the targets of an operand, including the loads of a stored global."""
        if op.name == STORE:
            return self.loads.get(symbol(op, "global"), ())
        return self.targets.get((op, index), ())

    def comes_from(self, value: SSAValue) -> Sequence[SSAValue]:
        """Returns the sources of a value, including the stores of a loaded global."""
        if isinstance(value, OpResult) and value.op.name == LOAD:
            return self.stores.get(symbol(value.op, "global"), ())
        return self.sources.get(value, ())


def symbol(op: Operation, name: str) -> str:
    """Returns the symbol that a property of an op defines or refers to."""
    found = op.properties[name]
    if isinstance(found, SymbolRefAttr):
        return found.string_value()
    assert isinstance(found, StringAttr)
    return found.data


def _is_public(function: Operation) -> bool:
    visibility = function.properties.get("sym_visibility")
    if function.name == "util.initializer":
        return False
    return not isinstance(visibility, StringAttr) or visibility.data == "public"


def _entry_block(function: Operation) -> Block | None:
    return function.regions[0].first_block


def collect_flow(module: ModuleOp) -> Flow:
    """Collects the edges of all functions of a module; ignores executables."""
    flow = Flow()
    for op in module.body.block.ops:
        if op.name in FUNCTIONS:
            flow.functions.append(op)
        elif op.name == GLOBAL:
            flow.globals.append(op)
    named = {symbol(f, "sym_name"): f for f in flow.functions if "sym_name" in f.properties}
    calls: dict[Operation, list[Operation]] = defaultdict(list)
    for op in flow.walk():
        if op.name in CALLS and (callee := named.get(symbol(op, "callee"))) is not None:
            calls[callee].append(op)
        elif op.name == LOAD:
            flow.loads[symbol(op, "global")].append(op.results[0])
        elif op.name == STORE:
            flow.stores[symbol(op, "global")].append(op.operands[0])
    for function in flow.functions:
        _add_function(flow, function, calls[function])
    for op in flow.walk():
        _add_op(flow, op, named)
    return flow


def _add_function(flow: Flow, function: Operation, calls: Sequence[Operation]) -> None:
    entry, public = _entry_block(function), _is_public(function)
    if entry is None:
        flow.open_values.update(result for call in calls for result in call.results)
        flow.open_uses.update((call, i) for call in calls for i in range(len(call.operands)))
        return
    if public:
        flow.open_values.update(entry.args)
    for call in calls:
        for index, argument in enumerate(entry.args):
            flow.edge(call, index, argument)
    for block in function.regions[0].blocks:
        last = block.last_op
        if last is None or last.name not in RETURNS:
            continue
        for index in range(len(last.operands)):
            if public:
                flow.open_uses.add((last, index))
            for call in calls:
                flow.edge(last, index, call.results[index])


def _add_op(flow: Flow, op: Operation, named: dict[str, Operation]) -> None:
    if op.name in EDGES:
        for index, target in EDGES[op.name](op):
            if index < len(op.operands):
                flow.edge(op, index, target)
    if op.name in CALLS and symbol(op, "callee") not in named:
        flow.open_values.update(op.results)
        flow.open_uses.update((op, i) for i in range(len(op.operands)))
    if op.name not in ENTERED:
        entries = [region.first_block for region in op.regions]
        arguments: list[BlockArgument] = [a for block in entries if block for a in block.args]
        flow.open_values.update(arguments)
