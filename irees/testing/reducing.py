"""
Reduces a program to a small one with the same fault.

A case is a module and arguments of one function. Basic blocks become structured control flow if the
fault stays; if not, only ops, sizes, arguments and attributes are reduced. Each transformation
proposes smaller cases; one is kept if it verifies and the caller still finds it interesting. From
coarse to fine:

    fewer results; an earlier end; values before a point become arguments, with the values that the
    interpreter computes; single values become arguments; loops and branches run once; ops are
    replaced by one of their operands; sizes shrink, equal ones together; arguments become simple
    numbers; attributes are dropped

until no transformation makes progress, or the time is up. Zeller and Hildebrandt, "Simplifying and
isolating failure-inducing input" (2002); MLIR: `mlir-reduce`.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from math import inf
from typing import Any

import numpy as np
from xdsl.dialects import func, scf, tensor
from xdsl.dialects.builtin import (
    AnyFloat,
    FunctionType,
    IndexType,
    IntegerType,
    ModuleOp,
    TensorType,
)
from xdsl.ir import Attribute, Block, BlockArgument, Operation, OpResult, SSAValue
from xdsl.rewriter import InsertPoint, Rewriter
from xdsl.traits import is_side_effect_free

from irees.dialects import get_context
from irees.errors import IreesError
from irees.frontends.mlir import import_mlir, print_module
from irees.testing.bisecting import interpreted
from irees.transforms import load_pass
from irees.transforms.utils.shapes import dims
from irees.transforms.utils.tensors import TensorBuilder
from irees.verification import verify

SMALL_SIZES = (1, 2, 3, 4, 5, 8, 16)
"""Sizes that a dim may shrink to, besides half of its size."""


@dataclass(frozen=True)
class Case:
    """A module, and arguments of a function of it."""

    module: ModuleOp
    function: str
    inputs: tuple[Any, ...]

    @property
    def ops(self) -> int:
        """The number of ops, without the module, the function, terminators and constants."""
        skipped = ("builtin.module", "func.func", "func.return", "linalg.yield", "arith.constant")
        return sum(op.name not in skipped for op in self.module.walk())


Interesting = Callable[[Case], bool]
"""Whether a case still has the fault. Must not change it."""


@dataclass
class Reduction:
    """Makes a case smaller as long as it is interesting."""

    case: Case
    interesting: Interesting
    seconds: float = 180.0
    log: list[str] = field(default_factory=list)
    _end: float = 0.0

    def run(self) -> Case:
        """Returns the smallest interesting case found."""
        self._end = time.monotonic() + self.seconds
        self._try(_lifted(self.case))
        in_one_block = (self._results, self._end_earlier, self._begin_later, self._single_values)
        if len(_function(self.case).body.blocks) > 1:
            in_one_block = ()
        anywhere = (
            self._control_flow, self._operands, self._sizes, self._numbers, self._attributes,
        )  # fmt: skip
        steps = (self._other_functions, *in_one_block, *anywhere)
        while True:
            before = _size(self.case)
            for step in steps:
                step()
                self.log.append(f"{step.__name__[1:]}: {self.case.ops} ops")
            if _size(self.case) >= before or self._is_late():
                return self.case

    def _is_late(self) -> bool:
        return time.monotonic() > self._end

    def _try(self, case: Case | None) -> bool:
        """Keeps a case if it verifies and is interesting."""
        if case is None or self._is_late():
            return False
        try:
            verify(case.module)
            kept = self.interesting(case)
        except Exception:
            # A proposal may not even be a valid program.
            return False
        if kept:
            self.case = case
        return kept

    def _other_functions(self) -> None:
        for name in _functions(self.case.module):
            if name != self.case.function:
                module = self.case.module.clone()
                Rewriter.erase_op(_functions(module)[name], safe_erase=False)
                self._try(Case(module, self.case.function, self.case.inputs))

    def _results(self) -> None:
        """Returns half of the results, then all but one."""
        size = max(len(_returned(self.case)) // 2, 1)
        while size:
            place = 0
            while place < (count := len(_returned(self.case))) and count > size:
                keep = [i for i in range(count) if not place <= i < place + size]
                if not self._try(_returning(self.case, lambda old, _, k=keep: [old[i] for i in k])):
                    place += size
            size //= 2

    def _end_earlier(self) -> None:
        """Returns the results of an earlier op: the earliest that bisection finds."""
        good, bad = -1, len(_body(self.case)) - 1
        while bad - good > 1:
            middle = (good + bad) // 2
            if self._try(_returning(self.case, lambda _, ops, m=middle: _usable(ops[m]))):
                bad = min(middle, len(_body(self.case)) - 1)
            else:
                good = middle

    def _begin_later(self) -> None:
        """Turns all values that are computed before a point into arguments."""
        low, high = 0, len(_body(self.case)) - 1
        while low < high:
            middle = (low + high + 1) // 2
            before = len(_body(self.case))
            if self._try(_with_arguments(self.case, range(middle))):
                low = max(0, middle - (before - len(_body(self.case))))
                high = len(_body(self.case)) - 1
                if before == len(_body(self.case)):
                    return
            else:
                high = middle - 1

    def _single_values(self) -> None:
        place = len(_body(self.case)) - 2
        while place >= 0:
            self._try(_with_arguments(self.case, (place,)))
            place = min(place, len(_body(self.case)) - 1) - 1

    def _operands(self) -> None:
        """Replaces ops, including those in bodies, by an operand of the same type."""
        place = 0
        while place < len(list(_all_ops(self.case))) and not self._is_late():
            count = len(list(_all_ops(self.case)))
            for number in range(len(list(_all_ops(self.case))[place].operands)):
                if self._try(_by_operand(self.case, place, number)):
                    break
            place += len(list(_all_ops(self.case))) >= count

    def _control_flow(self) -> None:
        """Replaces loops and branches by one run of a region of theirs."""
        place = 0
        while place < (count := len(_structured(self.case))) and not self._is_late():
            if not any(self._try(_run_once(self.case, place, region)) for region in (0, 1)):
                place += 1
            elif len(_structured(self.case)) > count:
                return

    def _sizes(self) -> None:
        for size in sorted(_all_sizes(self.case), reverse=True):
            smaller = sorted({*SMALL_SIZES, size // 2})
            for less in (n for n in smaller if 0 < n < size):
                if any(self._try(each) for each in _shrunk(self.case, size, less)):
                    break

    def _numbers(self) -> None:
        """Replaces the elements of arguments by ones, or by small distinct numbers."""
        for place, value in enumerate(self.case.inputs):
            array = np.asarray(value)
            counted = (np.arange(array.size) % 5 + 1).reshape(array.shape)
            for simple in (np.ones(array.shape), counted):
                new = simple.astype(array.dtype)
                inputs = list(self.case.inputs)
                inputs[place] = new if isinstance(value, np.ndarray) else new[()].item()
                if self._try(Case(self.case.module, self.case.function, tuple(inputs))):
                    break

    def _attributes(self) -> None:
        for place, op in enumerate(self.case.module.walk()):
            for name in op.attributes:
                module = self.case.module.clone()
                del list(module.walk())[place].attributes[name]
                self._try(Case(module, self.case.function, self.case.inputs))


def is_defined(case: Case, seconds: float = inf) -> bool:
    """
    Whether the results depend on no uninitialized memory: they stay the same if every tensor.empty
    is filled with a number. Otherwise, a reduced program could differ for another reason.
    """
    filled = case.module.clone()
    for op in list(filled.walk()):
        if isinstance(op, tensor.EmptyOp):
            builder = TensorBuilder(op)
            kind = op.tensor.type
            assert isinstance(kind, TensorType)
            sizes = dims(op.tensor, builder)
            op.tensor.replace_all_uses_with(builder.filled(3, kind.element_type, sizes))
    call = (case.function, case.inputs)
    results, others = (interpreted(each, *call, seconds) for each in (case.module, filled))
    pairs = zip(results, others, strict=True)
    return all(np.asarray(a).tobytes() == np.asarray(b).tobytes() for a, b in pairs)


def _size(case: Case) -> tuple[int, int]:
    return case.ops, sum(np.asarray(value).size for value in case.inputs)


def _functions(module: ModuleOp) -> dict[str, func.FuncOp]:
    return {op.sym_name.data: op for op in module.ops if isinstance(op, func.FuncOp)}


def _function(case: Case) -> func.FuncOp:
    return _functions(case.module)[case.function]


def _block(case: Case) -> Block:
    """Returns the block of a function, the first of several."""
    return _function(case).body.blocks[0]


def _body(case: Case) -> list[Operation]:
    return list(_block(case).ops)


def _returned(case: Case) -> Sequence[SSAValue]:
    return _body(case)[-1].operands


def _all_ops(case: Case) -> Iterator[Operation]:
    return (op for op in _function(case).body.walk() if op.results)


def _usable(op: Operation) -> list[SSAValue]:
    """Returns the results of an op that a function can return."""
    return [result for result in op.results if _is_plain(result.type)]


def _is_plain(kind: Attribute) -> bool:
    element = kind.element_type if isinstance(kind, TensorType) else kind
    return isinstance(element, IntegerType | IndexType | AnyFloat)


def _returning(
    case: Case, chosen: Callable[[Sequence[SSAValue], list[Operation]], list[SSAValue]]
) -> Case | None:
    """Returns a case that returns other values; None without any."""
    copy = Case(case.module.clone(), case.function, case.inputs)
    values = chosen(_returned(copy), _body(copy))
    if not values:
        return None
    _body(copy)[-1].operands = values
    return _cleaned(copy)


def _cleaned(case: Case) -> Case:
    """Erases dead ops and arguments, in place; returns the case with the remaining arguments."""
    function = _function(case)
    for op in reversed([op for block in function.body.blocks for op in block.ops]):
        dead = not any(result.uses for result in op.results)
        if op.results and dead and is_side_effect_free(op):
            Rewriter.erase_op(op)
    return _without_unused_arguments(case)


def _without_unused_arguments(case: Case) -> Case:
    function, block = _function(case), _block(case)
    unused = [a.index for a in block.args if not a.uses]
    for index in reversed(unused):
        block.erase_arg(block.args[index])
    results = list(function.function_type.outputs)
    if len(function.body.blocks) == 1:
        results = [v.type for v in _returned(case)]
    function.function_type = FunctionType.from_lists([a.type for a in block.args], results)
    function.arg_attrs = function.res_attrs = None
    inputs = tuple(v for i, v in enumerate(case.inputs) if i not in unused)
    return Case(case.module, case.function, inputs)


def _with_arguments(case: Case, places: Sequence[int]) -> Case | None:
    """Turns the results of ops into arguments, with the values that the interpreter computes."""
    copy = Case(case.module.clone(), case.function, case.inputs)
    ops, chosen = _body(copy), set(places)
    inside = [ops[place] for place in chosen]
    values = [
        result
        for op in inside
        for result in op.results
        if any(_top(use.operation, _block(copy)) not in inside for use in result.uses)
    ]
    if not values or not all(_is_plain(value.type) for value in values):
        return None
    numbers = [(ops.index(v.owner), v.index) for v in values if isinstance(v, OpResult)]
    computed = _computed(case, numbers)
    for value in values:
        argument = _block(copy).insert_arg(value.type, len(_block(copy).args))
        value.replace_all_uses_with(argument)
    return _cleaned(Case(copy.module, copy.function, (*copy.inputs, *computed)))


def _top(op: Operation, block: Block) -> Operation:
    """Returns the op of a block that contains an op."""
    while op.parent_block() is not block:
        parent = op.parent_op()
        assert parent is not None
        op = parent
    return op


def _computed(case: Case, numbers: Sequence[tuple[int, int]]) -> tuple[Any, ...]:
    """Interprets the given results of ops; returns their values."""
    found = _returning(case, lambda _, ops: [ops[place].results[i] for place, i in numbers])
    assert found is not None
    return tuple(interpreted(found.module, found.function, found.inputs))


def _by_operand(case: Case, place: int, number: int) -> Case | None:
    copy = Case(case.module.clone(), case.function, case.inputs)
    op = list(_all_ops(copy))[place]
    value = op.operands[number]
    if len(op.results) != 1 or value.type != op.results[0].type:
        return None
    if isinstance(value, BlockArgument) and value.block.parent_op() is op:
        return None
    op.results[0].replace_all_uses_with(value)
    if is_side_effect_free(op) and not op.results[0].uses:
        Rewriter.erase_op(op)
    return _cleaned(copy)


def _lifted(case: Case) -> Case | None:
    """Returns a case with structured control flow instead of basic blocks; None if it has one."""
    if len(_function(case).body.blocks) == 1:
        return None
    copy = Case(case.module.clone(), case.function, case.inputs)
    load_pass("irees-lift-cf-to-scf")().apply(get_context(), copy.module)
    return copy


def _structured(case: Case) -> list[Operation]:
    """Returns the loops and branches of a function."""
    kinds = scf.ForOp | scf.IfOp | scf.WhileOp
    return [op for op in _function(case).body.walk() if isinstance(op, kinds)]


def _run_once(case: Case, place: int, number: int) -> Case | None:
    """Returns a case with the body of a loop, or a side of a branch, in place of it."""
    copy = Case(case.module.clone(), case.function, case.inputs)
    op = _structured(copy)[place]
    if number >= (2 if isinstance(op, scf.IfOp) else 1) or not op.regions[number].blocks:
        return None
    given = {scf.ForOp: [op.operands[0], *op.operands[3:]], scf.WhileOp: list(op.operands)}
    block = op.regions[number].block
    end = block.last_op
    assert end is not None
    yielded = end.operands[1:] if isinstance(op, scf.WhileOp) else end.operands
    end.detach()
    Rewriter.inline_block(block, InsertPoint.before(op), given.get(type(op), []))
    for old, new in zip(op.results, yielded, strict=True):
        old.replace_all_uses_with(new)
    end.erase()
    Rewriter.erase_op(op)
    return _cleaned(copy)


def _all_sizes(case: Case) -> set[int]:
    """Returns the sizes of tensors and of arguments."""
    kinds = [value.type for op in _all_ops(case) for value in (*op.operands, *op.results)]
    static = {n for k in kinds if isinstance(k, TensorType) for n in k.get_shape()}
    return {n for n in static if n > 1} | {n for v in case.inputs for n in np.shape(v) if n > 1}


def _shrunk(case: Case, size: int, less: int) -> Iterator[Case]:
    """Yields cases with a smaller size: in types, then everywhere in the text."""
    text = print_module(case.module, elide_resources=False)
    inputs = tuple(_sliced(value, size, less) for value in case.inputs)
    in_types = rf"(?<=[<x]){size}(?=x)"
    for pattern in (in_types, rf"(?<![\w.%#]){size}(?![\w.])|{in_types}"):
        try:
            module = import_mlir(re.sub(pattern, str(less), text))
        except IreesError:
            continue
        yield Case(module, case.function, inputs)


def _sliced(value: Any, size: int, less: int) -> Any:
    if not isinstance(value, np.ndarray):
        return value
    return value[tuple(slice(less if n == size else None) for n in value.shape)].copy()
