"""
Finds the loop of a kernel along which a mask hides elements, as the keys of an attention.

    %t = generic {j <= i ? %s : -inf}               where j > i, %t is -inf
    %m = generic {max of %t over j}                 -inf changes no maximum
    %p = generic {exp(%t - %m)}                     0
    %r = generic {%r + %p * %v over j}              0 changes no sum

The mask is a `select` with -infinity or 0 on one side, or a float that is added. The value that it
has at hidden iterations is followed through the later ops. If each of them that reduces the loop
adds 0 or takes the maximum with -infinity, the hidden iterations of all ops may be skipped. The
other operands are assumed to be finite: 0 * inf is NaN.

Works on tensors and on buffers, as `analysis/distribution.py` does.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass

from xdsl.dialects import arith, math
from xdsl.dialects.builtin import AnyFloat, FloatAttr
from xdsl.dialects.linalg import ops as linalg
from xdsl.ir import Block, BlockArgument, Operation, SSAValue
from xdsl.ir.affine import AffineDimExpr
from xdsl.utils.hints import isa

from irees.analysis.distribution import Loops, Partition, leads

LOWEST = -float("inf")

Values = dict[SSAValue, float]
"""What values are at hidden iterations: 0 or -infinity; others are unknown, and finite."""


@dataclass(frozen=True)
class Condition:
    """Where a mask hides an element."""

    value: SSAValue
    """An i1, or a float; a float hides an element by -infinity."""
    hides: bool
    """The value of the i1 at hidden elements."""


@dataclass(frozen=True)
class Masked:
    """A loop along which hidden iterations may be skipped."""

    mask: int
    """The member that applies the mask."""
    loops: dict[int, int]
    """Member number => its loop; members without one are not changed."""


def masked_columns(members: Sequence[Loops]) -> Masked | None:
    """Returns the loop along which a group with a contraction may skip iterations, or None."""
    if not any(leads(m.op) and "reduction" in m.kinds for m in members):
        return None
    computed = {a.buffer for m in members for a in m.accesses if a.writes}
    for number, member in enumerate(members):
        if not isinstance(member.op, linalg.GenericOp) or "reduction" in member.kinds:
            continue
        for loop in range(len(member.kinds)):
            conditions = conditions_of(member.op, loop, computed)
            loops = _joined(members, number, loop) if conditions else None
            if loops is not None and _may_skip(members, number, loops, conditions[0]):
                return Masked(number, loops)
    return None


def conditions_of(
    op: linalg.GenericOp, loop: int, computed: Collection[SSAValue]
) -> list[Condition]:
    """
    Returns the conditions that hide elements of the only result. They depend on a loop, and not on
    the operands `computed`.
    """
    block = op.body.block
    yielded = block.last_op.operands if block.last_op is not None else ()
    if len(yielded) != 1:
        return []
    found: list[Condition] = []
    wanted: float | None = None
    for condition, values in _assumptions(block):
        hidden = _followed(block, values).get(yielded[0])
        if hidden is None or wanted not in (None, hidden):
            continue
        reads = _reads(op, condition.value)
        if reads is None or loop not in reads.loops or reads.operands & {*computed}:
            continue
        wanted = hidden
        found.append(condition)
    return found


def _assumptions(block: Block) -> Iterator[tuple[Condition, Values]]:
    """Yields what may hide an element, with a value that is known where it does."""
    for arg in block.args[:-1]:
        if isa(arg.type, AnyFloat):
            yield Condition(arg, hides=True), {arg: LOWEST}
    for op in block.ops:
        if not isinstance(op, arith.SelectOp):
            continue
        for side, hides in ((op.rhs, False), (op.lhs, True)):
            if (number := _constant(side)) is not None:
                yield Condition(op.cond, hides), {op.result: number}


def _constant(value: SSAValue) -> float | None:
    """Returns 0 or -infinity if the value is this constant, else None."""
    owner = value.owner
    if not isinstance(owner, arith.ConstantOp) or not isinstance(owner.value, FloatAttr):
        return None
    number = owner.value.value.data
    return number if number in (0.0, LOWEST) else None


@dataclass(frozen=True)
class _Reads:
    """What a value in the body of an op is computed from."""

    loops: set[int]
    operands: set[SSAValue]


def _reads(op: linalg.GenericOp, value: SSAValue) -> _Reads | None:
    """Returns what a value is computed from, or None if it depends on an output of the op."""
    found = _Reads(set(), set())
    for current in sources([value]):
        if isinstance(current.owner, linalg.IndexOp):
            found.loops.add(current.owner.dim.value.data)
        elif isinstance(current, BlockArgument) and current.owner is op.body.block:
            if current.index >= len(op.inputs):
                return None
            found.operands.add(op.inputs[current.index])
            found.loops.update(op.indexing_maps.data[current.index].data.used_dims())
    return found


def sources(values: Sequence[SSAValue]) -> set[SSAValue]:
    """Returns the values and all that they are computed from."""
    found: set[SSAValue] = set()
    stack = list(values)
    while stack:
        value = stack.pop()
        if value not in found:
            found.add(value)
            if isinstance(value.owner, Operation):
                stack += value.owner.operands
    return found


def _joined(members: Sequence[Loops], number: int, loop: int) -> dict[int, int] | None:
    """Returns the loops that iterate with a loop of a member; None if an index is not plain."""
    partition = Partition(members)
    for later in range(len(members)):
        for earlier in range(later):
            if not partition.connect(earlier, later):
                return None
    wanted = partition.find((number, loop))
    nodes = [node for node in partition.parent if partition.find(node) == wanted]
    found = dict(nodes)
    if len(found) < len(nodes) or any(partition.find(n) == wanted for n in partition.spoiled):
        return None
    return found


def _may_skip(
    members: Sequence[Loops], mask: int, loops: dict[int, int], condition: Condition
) -> bool:
    """Whether hidden iterations change nothing outside of the hidden elements."""
    ops = {m.op for m in members}
    known: Values = {}
    reduced = False
    for number, loop in sorted(loops.items()):
        member = members[number]
        if not isinstance(member.op, linalg.GenericOp) or member.anywhere:
            return False
        if not _is_plain(member, loop):
            return False
        if member.kinds[loop] == "reduction":
            reduced |= leads(member.op)
            if not _is_neutral(member, known):
                return False
        elif not _are_used_by(ops, member):
            return False
        else:
            _follow(member, known, condition if number == mask else None)
    return reduced


def _is_plain(member: Loops, loop: int) -> bool:
    """Whether each index that depends on a loop is the loop itself."""
    results = (expr for access in member.accesses for expr in access.map.results)
    return all(expr == AffineDimExpr(loop) for expr in results if loop in expr.used_dims())


def _are_used_by(ops: Collection[Operation], member: Loops) -> bool:
    """Whether only these ops use what a member writes."""
    written = [access.buffer for access in member.accesses if access.writes]
    return all(use.operation in ops for buffer in written for use in buffer.uses)


def _is_neutral(member: Loops, known: Values) -> bool:
    """Whether each result of a reduction stays what it is at hidden iterations."""
    op = member.op
    assert isinstance(op, linalg.GenericOp)
    block = op.body.block
    values = _followed(block, _inside(op, known))
    accumulators = block.args[len(op.inputs) :]
    assert block.last_op is not None
    for accumulator, result in zip(accumulators, block.last_op.operands, strict=True):
        owner = result.owner
        neutral = _neutral(owner) if isinstance(owner, Operation) else None
        if neutral is None or accumulator not in owner.operands:
            return False
        (other,) = [o for o in owner.operands if o is not accumulator] or [accumulator]
        if values.get(other) != neutral:
            return False
    return True


def _neutral(op: Operation) -> float | None:
    """Returns the neutral element of a combiner, if it is a value that is followed."""
    if isinstance(op, arith.AddfOp):
        return 0.0
    return LOWEST if isinstance(op, arith.MaximumfOp | arith.MaxnumfOp) else None


def _inside(op: linalg.GenericOp, known: Values) -> Values:
    """Returns what the arguments of a body are at hidden iterations."""
    inputs = zip(op.body.block.args, op.inputs, strict=False)
    return {arg: known[value] for arg, value in inputs if value in known}


def _follow(member: Loops, known: Values, mask: Condition | None) -> None:
    """Adds what the results of an elementwise op are at hidden iterations."""
    op = member.op
    assert isinstance(op, linalg.GenericOp)
    block = op.body.block
    start = _inside(op, known)
    for condition, values in _assumptions(block):
        if condition == mask:
            start |= values
    values = _followed(block, start)
    assert block.last_op is not None
    outputs = [access.buffer for access in member.accesses if access.writes]
    for buffer, result in zip(outputs, block.last_op.operands, strict=True):
        known.pop(buffer, None)
        if result in values:
            known[buffer] = values[result]


def _followed(block: Block, start: Values) -> Values:
    """Returns what the values of a body are at hidden iterations."""
    values = dict(start)
    for op in block.ops:
        if len(op.results) != 1 or op.results[0] in values:
            continue
        if (found := _result(op, values)) is not None:
            values[op.results[0]] = found
    return values


def _result(op: Operation, values: Values) -> float | None:
    """Returns the result of an op if it is 0 or -infinity for all finite unknown operands."""
    rule = RULES.get(type(op))
    if rule is None:
        return None
    return rule([values.get(operand, _constant(operand)) for operand in op.operands])


def _product(operands: Sequence[float | None]) -> float | None:
    return 0.0 if 0.0 in operands and LOWEST not in operands else None


def _power(operands: Sequence[float | None]) -> float | None:
    return 0.0 if operands[0] == LOWEST else None


RULES: dict[type[Operation], Callable[[Sequence[float | None]], float | None]] = {
    arith.AddfOp: lambda x: LOWEST if LOWEST in x else None,
    arith.SubfOp: lambda x: LOWEST if x[0] == LOWEST and x[1] != LOWEST else None,
    arith.MulfOp: _product,
    arith.DivfOp: lambda x: 0.0 if x[0] == 0.0 and x[1] is None else None,
    arith.SelectOp: lambda x: x[1] if x[1] == x[2] else None,
    arith.ExtFOp: lambda x: x[0],
    arith.TruncFOp: lambda x: x[0],
    math.ExpOp: _power,
    math.Exp2Op: _power,
}
"""Op => its result from what is known of its operands."""
