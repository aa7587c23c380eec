"""scf, cf, func and affine: control flow and calls. Parallel loops run in order."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from typing import Any

import numpy as np
from xdsl.dialects.builtin import DYNAMIC_INDEX
from xdsl.ir import Block, Operation

from irees.errors import RuntimeTrap
from irees.interpreters.machine import BRANCHES, Machine
from irees.interpreters.registry import Operands, Prepared, implements
from irees.interpreters.structured import affine_value
from irees.interpreters.tensor import mixed
from irees.interpreters.values import dtype_of


def _check_steps(op: Operation, steps: Sequence[Any]) -> None:
    """Raises RuntimeTrap unless all steps of a loop are at least 1."""
    if any(step <= 0 for step in steps):
        raise RuntimeTrap(f"a step of {op.name} is not positive", op=op)


@implements("scf.for")
def _for(machine: Machine, op: Operation) -> Prepared:
    """A counted loop with loop-carried values."""
    body = op.regions[0].block
    number = dtype_of(op.operands[0].type).type

    def run(lower: Any, upper: Any, step: Any, *carried: Any):
        _check_steps(op, [step])
        values: Sequence[Any] = carried
        for i in range(int(lower), int(upper), int(step)):
            values = machine.run_block(body, [number(i), *values])
        return values

    return run


@implements("scf.if")
def _if(machine: Machine, op: Operation) -> Prepared:
    """Runs one of two blocks."""
    then = op.regions[0].block
    otherwise = op.regions[1].blocks[0] if len(op.regions) > 1 and op.regions[1].blocks else None

    def run(condition: Any):
        if condition:
            return machine.run_block(then)
        return machine.run_block(otherwise) if otherwise is not None else ()

    return run


@implements("scf.while")
def _while(machine: Machine, op: Operation) -> Prepared:
    """A loop that ends when the condition of its first block is false."""
    before, after = op.regions[0].block, op.regions[1].block

    def run(*values: Any):
        while True:
            condition, *values = machine.run_block(before, values)  # pyright: ignore
            if not condition:
                return values
            values = machine.run_block(after, values)  # pyright: ignore

    return run


@implements("scf.execute_region", "memref.alloca_scope", "flow.dispatch.region")
def _execute(machine: Machine, op: Operation) -> Prepared:
    """Runs its region once."""
    return lambda *_: machine.run_region(op.regions[0], ())


@implements("scf.index_switch")
def _switch(machine: Machine, op: Operation) -> Prepared:
    """Runs the block of the matching case."""
    cases = op.properties["cases"].get_values()  # pyright: ignore
    default, *others = (r.block for r in op.regions)
    blocks = dict(zip(cases, others, strict=True))
    return lambda number: machine.run_block(blocks.get(int(number), default))


def _bounds(op: Operation, bound: dict[str, Any]) -> list[range]:
    found: list[list[int]] = []
    for kind in ("LowerBound", "UpperBound", "Step"):
        dynamic = iter(bound[f"dynamic{kind}"])
        static = op.properties[f"static{kind}"].get_values()  # pyright: ignore
        found.append([int(next(dynamic)) if n == DYNAMIC_INDEX else n for n in static])
    _check_steps(op, found[2])
    return [range(*bounds) for bounds in zip(*found, strict=True)]


@implements("scf.forall")
def _forall(machine: Machine, op: Operation) -> Prepared:
    """Runs iterations that insert into shared tensors or write to memory."""
    body, operands = op.regions[0].block, Operands(op)

    def run(*args: Any):
        bound = operands.bind(args)
        outputs = [o.copy() for o in bound["outputs"]]
        for at in product(*_bounds(op, bound)):
            machine.run_block(body, [*(np.int64(i) for i in at), *outputs])
        return outputs

    return run


@implements("scf.forall.in_parallel")
def _in_parallel(machine: Machine, op: Operation) -> Prepared:
    """Runs the insertions at the end of an iteration."""
    body = op.regions[0].block

    def run():
        machine.run_block(body)
        return ()

    return run


@implements("scf.parallel")
def _parallel(machine: Machine, op: Operation) -> Prepared:
    """Runs iterations, and reduces their values in order."""
    body, operands = op.regions[0].block, Operands(op)
    last = body.last_op
    reducers = (
        [r.block for r in last.regions] if last is not None and last.name == "scf.reduce" else []
    )

    def run(*args: Any):
        bound = operands.bind(args)
        _check_steps(op, bound["step"])
        bounds = (bound[name] for name in ("lowerBound", "upperBound", "step"))
        loops = [range(int(a), int(b), int(s)) for a, b, s in zip(*bounds, strict=True)]
        values = list(bound["initVals"])
        for at in product(*loops):
            terms = machine.run_block(body, [np.int64(i) for i in at])
            for k, (reducer, term) in enumerate(zip(reducers, terms, strict=True)):
                values[k] = machine.run_block(reducer, [values[k], term])[0]
        return values

    return run


@implements("func.call", "util.call")
def _call(machine: Machine, op: Operation) -> Prepared:
    """Calls a function."""
    name = op.properties["callee"].string_value()  # pyright: ignore
    return lambda *args: machine.call_op(machine.symbol(name, op), args)


@implements("cf.assert", elementwise=True)
def _assert(machine: Machine, op: Operation) -> Prepared:
    """Traps unless the condition holds."""
    message = op.properties.get("msg") or op.attributes["msg"]

    def run(condition: Any):
        if not np.all(condition):
            raise RuntimeTrap(message.data, op=op)  # pyright: ignore
        return ()

    return run


def _branch(op: Operation, values: list[Any]) -> tuple[Block, list[Any]]:
    return op.successors[0], values


def _cond_branch(op: Operation, values: list[Any]) -> tuple[Block, list[Any]]:
    then = len(op.then_arguments)  # pyright: ignore
    if values[0]:
        return op.successors[0], values[1 : 1 + then]
    return op.successors[1], values[1 + then :]


def _switch_branch(op: Operation, values: list[Any]) -> tuple[Block, list[Any]]:
    flag, *rest = values
    default = len(op.default_operands)  # pyright: ignore
    cases = op.case_values  # pyright: ignore
    start = default
    for k, number in enumerate(cases.get_values() if cases is not None else ()):
        count = len(op.case_operand[k])  # pyright: ignore
        if int(flag) == number:
            return op.successors[1 + k], rest[start : start + count]
        start += count
    return op.successors[0], rest[:default]


BRANCHES["cf.br"] = _branch
BRANCHES["cf.cond_br"] = _cond_branch
BRANCHES["cf.switch"] = _switch_branch


@implements("affine.apply", elementwise=True)
def _apply(machine: Machine, op: Operation) -> Prepared:
    """Evaluates an affine map with one result."""
    data = op.properties["map"].data  # pyright: ignore
    dims = data.num_dims
    return lambda *args: (affine_value(data.results[0], args[:dims], args[dims:]),)


@implements("affine.min", "affine.max", elementwise=True)
def _extreme(machine: Machine, op: Operation) -> Prepared:
    """The minimum or maximum of the results of an affine map."""
    data = op.properties["map"].data  # pyright: ignore
    dims, choose = data.num_dims, np.minimum if op.name == "affine.min" else np.maximum

    def run(*args: Any):
        values = [affine_value(e, args[:dims], args[dims:]) for e in data.results]
        result = values[0]
        for value in values[1:]:
            result = choose(result, value)
        return (result,)

    return run


@implements("affine.linearize_index")
def _linearize(machine: Machine, op: Operation) -> Prepared:
    """Linearizes coordinates to one index."""
    operands, static = Operands(op), op.properties["static_basis"].get_values()  # pyright: ignore

    def run(*args: Any):
        bound = operands.bind(args)
        indices, basis = bound["multi_index"], mixed(static, iter(bound["dynamic_basis"]))
        inner = basis[len(basis) - len(indices) + 1 :]
        total = np.int64(indices[0])
        for index, size in zip(indices[1:], inner, strict=True):
            total = total * np.int64(size) + index
        return (total,)

    return run


@implements("affine.delinearize_index")
def _delinearize(machine: Machine, op: Operation) -> Prepared:
    """Delinearizes an index with floor division, so only the outermost result can be negative."""
    operands, static = Operands(op), op.properties["static_basis"].get_values()  # pyright: ignore
    count = len(op.results)

    def run(*args: Any):
        bound = operands.bind(args)
        index = int(bound["linear_index"][0])
        basis = mixed(static, iter(bound["dynamic_basis"]))
        results: list[Any] = []
        for size in reversed(basis[len(basis) - count + 1 :]):
            if size == 0:
                raise RuntimeTrap("an index divided by 0", op=op)
            index, part = divmod(index, size)
            results.append(np.int64(part))
        return [np.int64(index), *results[::-1]]

    return run
