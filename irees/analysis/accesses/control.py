"""
Handlers of loops and branches: the facts that hold in their bodies, and their results.

An induction variable is `lb + step * k`, with a variable k for the iteration number. A loop-carried
value is a fresh variable. Its candidate invariants come from a few templates (at least 0, at least
or at most its initial value, ...). The analysis drops candidates that the body does not preserve,
until the remaining set is inductive (Houdini; Flanagan and Leino, FME 2001).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from xdsl.dialects import arith, scf
from xdsl.dialects.builtin import ArrayAttr, MemRefType
from xdsl.ir import Block, BlockArgument, Operation, SSAValue

from irees.analysis.accesses.carried import Carried
from irees.analysis.accesses.parallel import Parallel, finish, written_by
from irees.analysis.accesses.polynomials import Polynomial
from irees.analysis.accesses.prover import FEW
from irees.analysis.accesses.scalars import bits_of
from irees.analysis.accesses.terms import AtLeast, Every, opposite
from irees.dialects.upstream.gpu import ThreadMappingAttr
from irees.dialects.upstream.scf import ForallOp

if TYPE_CHECKING:
    from irees.analysis.accesses.walk import Walk


GUARDED = "guarded"
"""The attribute of an access that runs only if a run-time check has found it in bounds."""


def trip_counter(walk: Walk, op: scf.ForOp) -> tuple[Polynomial, Polynomial | None]:
    """Returns the induction variable, and the iteration number if that is a variable."""
    low, high, by = (walk.number(v) for v in (op.lb, op.ub, op.step))
    space = walk.space
    if not all(map(walk.prover.fits, (low, high, by))) or not walk.prover.holds(by - 1):
        return walk.arithmetic.opaque("counter"), None
    if by.constant is None:
        counter = space.fresh("counter")
        variable = space.newest_of(counter)
        variable.facts = [high - 1 - counter, counter - low]
        variable.low, variable.high = space.low(low), space.high(high - 1)
        return counter, None
    most = space.high(high - 1 - low)
    trips = space.fresh("trip", 0, None if most is None else max(0, most // by.constant))
    counter = low + trips * by
    space.newest_of(trips).facts = [(high - 1 - counter).tightened()]
    return counter, trips


def for_loop(walk: Walk, op: Operation) -> None:
    """scf.for"""
    assert isinstance(op, scf.ForOp)
    block = op.body.block
    yielded = block.last_op
    assert yielded is not None
    born = len(walk.space.variables)
    counter, trips = trip_counter(walk, op)
    walk.polynomials[block.args[0]] = counter
    low, high = walk.number(op.lb), walk.number(op.ub)
    known = walk.prover.fits(low) and walk.prover.fits(high)
    pairs = list(zip(op.iter_args, block.args[1:], strict=True))
    carried = Carried(walk, pairs, list(yielded.operands), born)

    def turn(end: Callable[[], None]) -> None:
        walk.block(block)
        end()

    with walk.space.assuming(walk.prover.implications(high - low - 1) if known else []):
        carried.enter(turn, _induction(walk, op, trips))
        walk.around.append(AtLeast(high - low - 1) if known else Every())
        walk.block(block)
        walk.around.pop()
        carried.leave(op.results)
        if trips is not None:
            _last_conditions(walk, op, trips)


def _induction(walk: Walk, op: scf.ForOp, trips: Polynomial | None) -> dict[int, Polynomial]:
    """Returns carried values with a constant step, as polynomials in the iteration number."""
    found: dict[int, Polynomial] = {}
    block = op.body.block
    yielded = block.last_op
    assert yielded is not None
    for at, (init, arg) in enumerate(zip(op.iter_args, block.args[1:], strict=True)):
        if bits_of(arg.type) in (None, 1):
            continue
        out = yielded.operands[at]
        if out is arg:
            found[at] = walk.number(init)
            continue
        owner = out.owner
        if not isinstance(owner, arith.AddiOp) or trips is None or bits_of(arg.type) != 64:
            continue
        by = owner.rhs if owner.lhs is arg else owner.lhs if owner.rhs is arg else None
        if by is not None and (amount := _invariant(walk, by, block)) is not None:
            found[at] = walk.number(init) + trips * amount
    return found


def _invariant(walk: Walk, value: SSAValue, block: Block) -> Polynomial | None:
    """Returns a value if it is loop-invariant, else None."""
    owner = value.owner
    if isinstance(owner, arith.ConstantOp):
        walk.op(owner)
        return walk.polynomials.get(value)
    inside = owner if isinstance(owner, Block) else owner.parent
    while inside is not None and inside is not block:
        inside = inside.parent_block()
    return None if inside is block else walk.polynomials.get(value)


def _last_conditions(walk: Walk, op: scf.ForOp, trips: Polynomial) -> None:
    """Binds `andi` reductions: if the result is true, the condition held in the last iteration."""
    block = op.body.block
    yielded = block.last_op
    assert yielded is not None
    lb, ub, by = (walk.number(v).constant for v in (op.lb, op.ub, op.step))
    if lb is None or ub is None or by is None or ub <= lb:
        return
    for at, arg in enumerate(block.args[1:]):
        out = yielded.operands[at].owner
        if not isinstance(out, arith.AndIOp) or arg not in out.operands:
            continue
        other = out.rhs if out.lhs is arg else out.lhs
        facts = walk.prover.facts_within(walk.condition(other))
        last = {trips.newest(): Polynomial.number((ub - 1 - lb) // by)}
        held = walk.space.renamed(facts, walk.loose(trips.newest()), last)
        parts = (*map(AtLeast, held), walk.space.unknown())
        walk.conditions[op.results[at]] = Every(parts)


def _stride(walk: Walk, low: Polynomial, high: Polynomial, step: Polynomial | None) -> int | None:
    """Returns the step of a loop if it is a positive constant and the bounds do not wrap."""
    by = None if step is None else step.constant
    if by is None or by < 1 or not walk.prover.fits(high) or not walk.prover.fits(low):
        return None
    return by


def _iteration(walk: Walk, low: Polynomial, high: Polynomial, by: int) -> Polynomial:
    """Returns the number of an iteration of a loop with these bounds and this step."""
    most = walk.space.high(high - low - 1)
    place = walk.space.fresh("place", 0, None if most is None else max(0, most // by))
    walk.space.newest_of(place).facts = [(high - 1 - low - place * by).tightened()]
    return place


def for_all(walk: Walk, op: Operation) -> None:
    """scf.forall"""
    assert isinstance(op, ForallOp)
    block = op.region.block
    lows = walk.mixed(op.staticLowerBound.get_values(), op.dynamicLowerBound)
    highs = walk.mixed(op.staticUpperBound.get_values(), op.dynamicUpperBound)
    steps = walk.mixed(op.staticStep.get_values(), op.dynamicStep)
    runs: list[Polynomial] = []
    born, places = len(walk.space.variables), {}
    for arg, low, high, step in zip(block.args, lows, highs, steps, strict=False):
        assert low is not None
        assert high is not None
        by = _stride(walk, low, high, step)
        if by is None:
            walk.polynomials[arg] = places[arg] = walk.arithmetic.opaque("place")
            continue
        places[arg] = place = _iteration(walk, low, high, by)
        walk.polynomials[arg] = low + place * by
        runs += walk.space.consequences(high - low - 1)
    with walk.space.assuming(runs):
        for arg, low in zip(block.args, lows, strict=False):
            if low is not None and walk.prover.holds(-places[arg], FEW):
                # The loop has one iteration.
                walk.polynomials[arg] = low
                del places[arg]
        several = () if is_of_threads(op) else tuple(p.newest() for p in places.values())
        loop = Parallel(op, several, born, written_by(walk, op) if several else frozenset())
        walk.parallel.append(loop)
        walk.block(block)
        walk.parallel.pop()
    finish(loop)


def is_of_threads(op: ForallOp) -> bool:
    """Whether the iterations are threads, synchronized by barriers."""
    mapping = op.properties.get("mapping")
    return isinstance(mapping, ArrayAttr) and any(isinstance(m, ThreadMappingAttr) for m in mapping)


def branch(walk: Walk, op: Operation) -> None:
    """scf.if"""
    assert isinstance(op, scf.IfOp)
    if any(GUARDED in each.attributes for each in op.true_region.block.ops):
        walk.as_machine_compares(op.cond)
    condition = walk.condition(op.cond)
    for region, holds in ((op.true_region, condition), (op.false_region, opposite(condition))):
        if region.blocks:
            with walk.prover.thorough():
                facts = walk.prover.facts_of(holds)
            with walk.space.assuming(facts):
                walk.around.append(holds)
                walk.block(region.block)
                walk.around.pop()
    if not op.results:
        return
    then, other = (r.block.last_op for r in (op.true_region, op.false_region))
    assert then is not None
    assert other is not None
    for result, a, b in zip(op.results, then.operands, other.operands, strict=True):
        walk.choose(result, condition, a, b)


def while_loop(walk: Walk, op: Operation) -> None:
    """scf.while"""
    assert isinstance(op, scf.WhileOp)
    before, after = op.before_region.block, op.after_region.block
    ask, yielded = before.last_op, after.last_op
    assert isinstance(ask, scf.ConditionOp)
    assert yielded is not None
    born = len(walk.space.variables)

    def turn(end: Callable[[], None]) -> None:
        walk.block(before)
        for arg, value in zip(after.args, ask.args, strict=True):
            walk.pass_on(arg, value)
        with walk.space.assuming(walk.prover.facts_of(walk.condition(ask.condition))):
            walk.block(after)
            end()

    pairs: list[tuple[SSAValue, BlockArgument]] = list(zip(op.arguments, before.args, strict=True))
    Carried(walk, pairs, list(yielded.operands), born).enter(turn, {})
    turn(lambda: None)
    _leave_while(walk, op, ask, born)


def _leave_while(walk: Walk, op: scf.WhileOp, ask: scf.ConditionOp, born: int) -> None:
    """Binds the results to the forwarded values, and assumes the negated loop condition."""
    ended = walk.prover.facts_of(opposite(walk.condition(ask.condition)))
    numbers = [v for v in ask.args if bits_of(v.type) not in (None, 1)]
    values = [walk.number(v) for v in numbers]
    first = len(walk.space.variables)
    renamed = walk.space.renamed([*values, *ended], walk.loose(born))
    last = dict(zip(numbers, renamed, strict=False))
    for fact in renamed[len(values) :]:
        # Only facts about the fresh variables of the final values are new.
        if (newest := fact.newest()) >= first:
            walk.space.variables[newest].facts.append(fact)
    for result, value in zip(op.results, ask.args, strict=True):
        if value in last:
            walk.polynomials[result] = last[value]
        elif isinstance(result.type, MemRefType):
            walk.pass_on(result, value)


STRUCTURES: dict[str, Callable[[Walk, Operation], None]] = {
    "scf.for": for_loop,
    "scf.forall": for_all,
    "scf.if": branch,
    "scf.while": while_loop,
}
"""Name of a structured control-flow op => its handler."""
