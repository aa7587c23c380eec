"""
Finds the layers of a network: a periodic run of ops in a block.

Ops i and i + p are equal if they differ only in operands, and each operand of op i + p is

* the operand of op i, p ops later: a value of the layer itself or of the one before,
* the same value, which the run does not define: a mask, a table,
* an equal constant, or another weight of the same type.

A run is a maximal sequence of such ops. The search is linear in the number of ops for each period;
it tries the most frequent distances between ops that differ only in operands.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable
from dataclasses import dataclass

from xdsl.dialects import arith
from xdsl.dialects.builtin import DenseResourceAttr
from xdsl.ir import Attribute, Block, Operation, OpResult, Region, SSAValue

from irees.blobs import Blob
from irees.dialects.resources import blob_of

MOST_PERIODS = 8
"""Maximum number of periods to try. Two alternating kinds of layers form one period."""

Related = Callable[[Blob, Blob], bool]
"""Whether two weights correspond: the second has the same role in the next layer."""


def weight_of(value: SSAValue) -> Blob | None:
    """Returns the blob of a constant that has one."""
    op = value.owner
    if not isinstance(op, arith.ConstantOp) or not isinstance(op.value, DenseResourceAttr):
        return None
    return blob_of(op.value)


@dataclass(frozen=True)
class Run:
    """Ops `start` to `stop` of a sequence, which repeat every `period` ops."""

    start: int
    stop: int
    period: int

    @property
    def repeats(self) -> int:
        """The number of whole periods in the run."""
        return (self.stop - self.start) // self.period


class Sequence:
    """The numbered ops of a block except constants, with a key of each op without its operands."""

    def __init__(self, block: Block):
        self.ops = [op for op in block.ops if not isinstance(op, arith.ConstantOp)]
        self.number = {op: number for number, op in enumerate(self.ops)}
        self._kinds: dict[Hashable, int] = {}
        self._operands: list[list[SSAValue]] = []
        self._alike = [self._kind_of(op) for op in self.ops]

    def operands(self, number: int) -> list[SSAValue]:
        """The operands of an op, and the values that its regions capture."""
        return self._operands[number]

    def place(self, value: SSAValue) -> int | None:
        """The number of the op that defines a value; None for a constant or an argument."""
        return self.number.get(value.op) if isinstance(value, OpResult) else None

    def is_shifted(self, former: SSAValue, latter: SSAValue, period: int) -> bool:
        """Whether `latter` is the same result as `former`, of the op `period` ops later."""
        first, second = self.place(former), self.place(latter)
        if first is None or second is None or first + period != second:
            return False
        assert isinstance(former, OpResult)
        assert isinstance(latter, OpResult)
        return former.index == latter.index

    def equal(self, number: int, period: int, related: Related) -> bool:
        """Whether an op and the one `period` ops later are equal, as defined above."""
        later = number + period
        if self._alike[number] != self._alike[later]:
            return False
        pairs = zip(self._operands[number], self._operands[later], strict=True)
        return all(
            former is latter
            or self.is_shifted(former, latter, period)
            or equal_constants(former, latter, related)
            for former, latter in pairs
        )

    def longest_run(self, related: Related) -> Run | None:
        """Returns the run with the most ops after its first period; ties go to short periods."""
        best: Run | None = None
        for period in self._periods():
            start = None
            for number in range(len(self.ops) - period + 1):
                last = number + period == len(self.ops)
                if not last and self.equal(number, period, related):
                    start = number if start is None else start
                    continue
                if start is not None:
                    run = Run(start, number + period, period)
                    if best is None or self._gain(run) > self._gain(best):
                        best = run
                start = None
        return best

    def _gain(self, run: Run) -> tuple[int, int]:
        return (run.repeats - 1) * run.period, -run.period

    def _periods(self) -> list[int]:
        last: dict[int, int] = {}
        distances: Counter[int] = Counter()
        for number, kind in enumerate(self._alike):
            if kind in last:
                distances[number - last[kind]] += 1
            last[kind] = number
        return [distance for distance, _ in distances.most_common(MOST_PERIODS)]

    def _kind_of(self, op: Operation) -> int:
        captured: list[SSAValue] = []
        numbers: dict[SSAValue, int] = {}
        key = (self._own(op), tuple(self._region(r, numbers, captured) for r in op.regions))
        self._operands.append([*op.operands, *captured])
        return self._kinds.setdefault(key, len(self._kinds))

    def _own(self, op: Operation) -> Hashable:
        return (
            op.name,
            tuple([result.type for result in op.results]),
            tuple(sorted(op.properties.items(), key=_name)) if op.properties else (),
            tuple(sorted(op.attributes.items(), key=_name)) if op.attributes else (),
            len(op.operands),
        )

    def _region(
        self, region: Region, numbers: dict[SSAValue, int], captured: list[SSAValue]
    ) -> Hashable:
        """Returns a key of a region: values are numbered at their definition or first use."""
        parts: list[Hashable] = []
        for block in region.blocks:
            for argument in block.args:
                numbers[argument] = len(numbers)
            parts.append(tuple([argument.type for argument in block.args]))
            for op in block.ops:
                for operand in op.operands:
                    if operand not in numbers:
                        numbers[operand] = len(numbers)
                        captured.append(operand)
                for result in op.results:
                    numbers[result] = len(numbers)
                inner = tuple(self._region(r, numbers, captured) for r in op.regions)
                parts.append((self._own(op), tuple([numbers[v] for v in op.operands]), inner))
        return tuple(parts)


def equal_constants(former: SSAValue, latter: SSAValue, related: Related) -> bool:
    """Whether two values are equal constants, or related weights of one type."""
    first, second = former.owner, latter.owner
    if not isinstance(first, arith.ConstantOp) or not isinstance(second, arith.ConstantOp):
        return False
    if former.type != latter.type:
        return False
    own, other = weight_of(former), weight_of(latter)
    if own is None or other is None:
        return own is other and first.value == second.value
    return own.size == other.size and related(own, other)


def _name(item: tuple[str, Attribute]) -> str:
    return item[0]
