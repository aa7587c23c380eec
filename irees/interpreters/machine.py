"""The machine that runs regions: the environment of SSA values, prepared ops, symbol tables."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np
from xdsl.dialects.builtin import ModuleOp, StringAttr
from xdsl.ir import Block, Operation, Region, SSAValue

from irees.errors import InternalError, RuntimeTrap, UnsupportedError
from irees.interpreters.registry import PREPARE, Prepared, find
from irees.interpreters.shape_checks import checked

Step = tuple[Prepared, tuple[int, ...], tuple[int, ...], Operation]
"""A prepared function, the keys of its operands and results, and the op."""
Plan = tuple[tuple[int, ...], list[Step], tuple[int, ...], Operation | None]
"""Keys of the block's arguments, its steps, keys of the yielded values, and its terminator."""
Spend = Callable[[Block, int], None]
"""Called before a block runs, with its number of ops; may raise."""
MAX_DEPTH = 200


class Environment(dict[int, Any]):
    """
    Values of the current function, by `id` of the SSA value, which hashes faster than the SSA value
    itself. Constants of enclosing scopes are evaluated on demand.
    """

    def __init__(self, machine: Machine):
        super().__init__()
        self.machine = machine

    def __missing__(self, key: int) -> Any:
        value = self.machine.known[key]
        owner = value.owner
        if isinstance(owner, Operation) and owner.name == "arith.constant":
            self[key] = result = self.machine.prepared(owner)()[0]
            return result
        name = owner.name if isinstance(owner, Operation) else "block argument"
        raise InternalError(
            f"the value of a {name} of type {value.type} is used before its op runs"
        )


class Machine:
    """State of a running program. `Interpreter` is the public interface."""

    def __init__(self, module: ModuleOp | None = None, spend: Spend | None = None):
        self.module = module
        self.spend = spend
        self.environment = Environment(self)
        self.known: dict[int, SSAValue] = {}
        """`id` => SSA value, for all values used in plans."""
        self.loop_indices: list[Sequence[Any]] = []
        """Values of `linalg.index`, per enclosing structured op."""
        self.globals: dict[Operation, Any] = {}
        self.state: dict[Any, Any] = {}
        """State that handlers keep between ops, by handler-specific keys."""
        self._prepared: dict[Operation, Prepared] = {}
        self._plans: dict[Block, Plan] = {}
        self._tables: dict[Operation, dict[str, Operation]] = {}
        self._depth = 0

    # --- ops and blocks ------------------------------------------------------------------

    def prepared(self, op: Operation) -> Prepared:
        """The prepared function of an op. Raises UnsupportedError when there is none."""
        found = self._prepared.get(op)
        if found is None:
            found = find(self, op)
            if found is None:
                raise UnsupportedError(
                    "the interpreter does not support this op",
                    op=op.name,
                    location=getattr(op, "location", None),
                )
            found = self._prepared[op] = checked(op, found)
        return found

    def plan(self, block: Block) -> Plan:
        """The execution plan of a block, computed once."""
        found = self._plans.get(block)
        if found is None:
            ops = list(block.ops)
            last = ops[-1] if ops and is_terminator(ops[-1]) else None
            steps = [
                (self.prepared(op), self._keys(op.operands), self._keys(op.results), op)
                for op in ops
                if op is not last or op.name in PREPARE
            ]
            out = () if last is None else self._keys(last.operands)
            found = self._plans[block] = (self._keys(block.args), steps, out, last)
        return found

    def _keys(self, values: Iterable[SSAValue]) -> tuple[int, ...]:
        found = tuple(values)
        for value in found:
            self.known[id(value)] = value
        return tuple(id(value) for value in found)

    def value(self, value: SSAValue) -> Any:
        """The current value of an SSA value."""
        self.known[id(value)] = value
        return self.environment[id(value)]

    def run_block(self, block: Block, arguments: Iterable[Any] = ()) -> list[Any]:
        """Runs a block; returns the values of its terminator's operands."""
        parameters, steps, out, _ = self.plan(block)
        if self.spend is not None:
            self.spend(block, len(steps))
        env = self.environment
        for parameter, value in zip(parameters, arguments, strict=True):
            env[parameter] = value
        step: Step | None = None
        try:
            for step in steps:
                function, operands, results, _ = step
                values = function(*[env[operand] for operand in operands])
                for result, value in zip(results, values):
                    env[result] = value
        except (RuntimeTrap, UnsupportedError) as error:
            assert step is not None
            raise located(error, step[3]) from None
        return [env[operand] for operand in out]

    def run_region(self, region: Region, arguments: Iterable[Any]) -> list[Any]:
        """Runs a region that may branch between its blocks."""
        block = region.blocks[0]
        values = list(arguments)
        while True:
            out = self.run_block(block, values)
            last = self.plan(block)[3]
            step = BRANCHES.get(last.name) if last is not None else None
            if step is None:
                return out
            assert last is not None
            block, values = step(last, out)

    # --- functions ------------------------------------------------------------------------

    def symbol(self, name: str, user: Operation | None = None) -> Operation:
        """
        The op of a symbol: from the innermost symbol table around `user`, else of the module, else
        the first op of that name anywhere. Raises UnsupportedError when there is none.
        """
        scope = user.parent_op() if user is not None else self.module
        while scope is not None:
            if (found := self._table(scope).get(name)) is not None:
                return found
            scope = scope.parent_op()
        for op in self.module.walk() if self.module is not None else ():
            if symbol_name(op) == name:
                return op
        raise UnsupportedError(f"no symbol @{name}")

    def _table(self, scope: Operation) -> dict[str, Operation]:
        found = self._tables.get(scope)
        if found is None:
            found = self._tables[scope] = {}
            if scope.name in ("builtin.module", "flow.executable"):
                for block in (b for region in scope.regions for b in region.blocks):
                    for op in block.ops:
                        if (name := symbol_name(op)) is not None:
                            found.setdefault(name, op)
        return found

    def call_op(self, function: Operation, arguments: Iterable[Any]) -> list[Any]:
        """Runs the body of a function in a new environment."""
        region = function.regions[0]
        if not region.blocks:
            raise UnsupportedError("a declaration cannot be called", op=function)
        if self._depth >= MAX_DEPTH:
            raise RuntimeTrap(f"calls nest deeper than {MAX_DEPTH}", op=function)
        saved, indices = self.environment, self.loop_indices
        self.environment, self.loop_indices = Environment(self), []
        self._depth += 1
        try:
            return self.run_region(region, arguments)
        finally:
            self.environment, self.loop_indices = saved, indices
            self._depth -= 1


def symbol_name(op: Operation) -> str | None:
    """The symbol that an op defines."""
    name = op.properties.get("sym_name") or op.attributes.get("sym_name")
    return name.data if isinstance(name, StringAttr) else None


Branch = Callable[[Operation, list[Any]], tuple[Block, list[Any]]]
BRANCHES: dict[str, Branch] = {}
"""Terminators that branch to another block of the same region."""

_TERMINATORS = {
    "func.return", "util.return", "linalg.yield", "iree_linalg_ext.yield", "tensor.yield",
    "scf.yield", "scf.condition", "scf.reduce.return", "affine.yield", "cf.br", "cf.cond_br",
    "cf.switch", "flow.return", "ml_program.output", "ml_program.return", "tm_tensor.yield",
    "memref.alloca_scope.return", "vector.yield", "scf.forall.in_parallel", "scf.reduce",
    "iree_codegen.yield", "iree_tensor_ext.yield", "gpu.terminator", "gpu.return",
    "stream.return", "hal.return", "iree_linalg_ext.return",
}  # fmt: skip


def is_terminator(op: Operation) -> bool:
    """Whether an op ends its block."""
    return op.name in _TERMINATORS


def located(error: RuntimeTrap | UnsupportedError, op: Operation) -> RuntimeTrap | UnsupportedError:
    """The error with the op and its location, if it has none yet."""
    if error.op is not None:
        return error
    location = getattr(op, "location", None)
    return type(error)(error.message, hint=error.hint, op=op.name, location=location)


def quietly() -> Any:
    """Disables numpy's warnings: overflow and NaN are regular results."""
    return np.errstate(all="ignore")
