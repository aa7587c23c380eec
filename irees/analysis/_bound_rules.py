"""
Rules of `value_bounds` for ops: the exact form of a result, or its lower and upper bounds.

Rules are over unbounded integers and ignore overflow: `exact` drops a form that may overflow the
type of the result. Division rules check the signs that they need; their proofs are in
`tests/proofs`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import cast

from xdsl.dialects import affine, arith, memref, scf, tensor
from xdsl.dialects.builtin import IntegerAttr, MemRefType, TensorType
from xdsl.dialects.linalg import ops as linalg
from xdsl.ir import Block, Operation, OpResult, SSAValue
from xdsl.ir.affine import AffineExpr

from irees.analysis import _dim_bounds as dims
from irees.analysis._linear import Linear
from irees.analysis._range_rules import RULES, Sem
from irees.analysis.integer_ranges import width_of
from irees.analysis.value_bounds import Limits, ValueBounds, Variable, product
from irees.dialects.upstream.affine import DelinearizeIndexOp, LinearizeIndexOp
from irees.dialects.upstream.affine import MaxOp as AffineMaxOp
from irees.dialects.upstream.scf import ForallOp
from irees.dialects.util import AssumeIntOp

ZERO = Linear.number(0)
NOTHING = Limits()


def exact(bounds: ValueBounds, variable: Variable) -> Linear | None:
    """Returns the exact form of a variable; None if only bounds are known."""
    value = variable.value
    if variable.dim is not None:
        found = dims.exact(bounds, value, variable.dim)
        return found if found is not None else _merged(bounds, variable)
    if isinstance(value, OpResult):
        rule = EXACT.get(value.op.name)
        if rule is not None:
            form = rule(bounds, value)
            if form is None or (bounds.may_leave(form, value) and not _fits(bounds, value)):
                return None
            return form
    return _merged(bounds, variable)


def _fits(bounds: ValueBounds, value: OpResult) -> bool:
    """Whether the integer ranges of the operands exclude overflow; can be tighter than forms."""
    reading = RULES.get(value.op.name)
    width = width_of(value.type)
    if reading is None or reading.signed is None or width is None:
        return False
    a, b = (bounds.ranges.interval(each) for each in value.op.operands)
    low, high, known = reading.signed(Sem(), a, b, width)
    return known and -(1 << (width - 1)) <= low and high < 1 << (width - 1)


def limits(bounds: ValueBounds, variable: Variable) -> Limits:
    """Returns the lower and upper bounds of a variable."""
    value = variable.value
    if variable.dim is not None:
        said = _branches(bounds, variable)
        return Limits((ZERO, *said.lower), said.upper)
    if isinstance(value, OpResult):
        rule = LIMITS.get(value.op.name)
        if rule is not None:
            return rule(bounds, value)
        return _branches(bounds, variable)
    block = value.owner
    assert isinstance(block, Block)
    return _counter(bounds, value, block)


def congruent(bounds: ValueBounds, value: SSAValue | int) -> Linear:
    """Returns a form congruent to a value modulo 2^width."""
    if isinstance(value, OpResult) and value.op.name in _RING:
        a, b = (congruent(bounds, each) for each in value.op.operands)
        if value.op.name == "arith.addi":
            return a + b
        if value.op.name == "arith.subi":
            return a - b
        found = product(a, b)
        return Linear.of(Variable(value)) if found is None else found
    return bounds.expression(value)


_RING = ("arith.addi", "arith.subi", "arith.muli")

# Exact forms

Exact = Callable[[ValueBounds, OpResult], Linear | None]


def _pair(bounds: ValueBounds, op: Operation) -> tuple[Linear, Linear]:
    first = bounds.expression(op.operands[0])
    return first, bounds.expression(op.operands[1])


def _constant(bounds: ValueBounds, value: OpResult) -> Linear | None:
    attribute = cast(arith.ConstantOp, value.op).value
    return Linear.number(attribute.value.data) if isinstance(attribute, IntegerAttr) else None


def _addi(bounds: ValueBounds, value: OpResult) -> Linear | None:
    a, b = _pair(bounds, value.op)
    return a + b


def _subi(bounds: ValueBounds, value: OpResult) -> Linear | None:
    a, b = _pair(bounds, value.op)
    return a - b


def _muli(bounds: ValueBounds, value: OpResult) -> Linear | None:
    return product(*_pair(bounds, value.op))


def _shli(bounds: ValueBounds, value: OpResult) -> Linear | None:
    a, b = _pair(bounds, value.op)
    return a * (1 << b.constant) if b.is_number and 0 <= b.constant < 64 else None


def _shrsi(bounds: ValueBounds, value: OpResult) -> Linear | None:
    a, b = _pair(bounds, value.op)
    return a.floordiv(1 << b.constant) if b.is_number and 0 <= b.constant < 64 else None


def _floordivsi(bounds: ValueBounds, value: OpResult) -> Linear | None:
    a, b = _pair(bounds, value.op)
    return a.floordiv(b.constant) if b.is_number and b.constant > 0 else None


def _ceildivsi(bounds: ValueBounds, value: OpResult) -> Linear | None:
    a, b = _pair(bounds, value.op)
    return a.ceildiv(b.constant) if b.is_number and b.constant > 0 else None


def _divsi(bounds: ValueBounds, value: OpResult) -> Linear | None:
    """Rounds toward zero: down if the quotient is nonnegative, up if nonpositive."""
    a, b = _pair(bounds, value.op)
    if not b.is_number or not b.constant:
        return None
    if b.constant < 0:
        a, b = -a, -b
    if bounds.at_least(a, ZERO):
        return a.floordiv(b.constant)
    return a.ceildiv(b.constant) if bounds.at_least(ZERO, a) else None


def _unsigned(rule: Exact) -> Exact:
    """Applies a signed rule to an unsigned op if both operands are nonnegative."""

    def checked(bounds: ValueBounds, value: OpResult) -> Linear | None:
        a, b = _pair(bounds, value.op)
        if not bounds.at_least(a, ZERO) or not bounds.at_least(b, ZERO):
            return None
        return rule(bounds, value)

    return checked


def _remsi(bounds: ValueBounds, value: OpResult) -> Linear | None:
    a, b = _pair(bounds, value.op)
    if not b.is_number or b.constant <= 0 or not bounds.at_least(a, ZERO):
        return None
    return a.mod(b.constant)


def _same(bounds: ValueBounds, value: OpResult) -> Linear | None:
    return bounds.expression(value.op.operands[0])


def _cut(bounds: ValueBounds, value: OpResult) -> Linear | None:
    a = bounds.expression(value.op.operands[0])
    width = width_of(value.type)
    low, high = bounds.form_interval(a)
    if low is None or high is None or width is None:
        return None
    return a if -(1 << (width - 1)) <= low and high < 1 << (width - 1) else None


def _zero_extended(bounds: ValueBounds, value: OpResult) -> Linear | None:
    a = bounds.expression(value.op.operands[0])
    return a if bounds.at_least(a, ZERO) else None


def _apply(bounds: ValueBounds, value: OpResult) -> Linear | None:
    op = cast(affine.ApplyOp, value.op)
    return bounds.map_form(op.map.data, op.operands)


def _delinearize(bounds: ValueBounds, value: OpResult) -> Linear | None:
    op = cast(DelinearizeIndexOp, value.op)
    basis = [bounds.expression(each) for each in op.basis]
    inner = basis[1:] if op.has_outer_bound else basis
    if any(not each.is_number or each.constant <= 0 for each in inner):
        return None
    strides = [1]
    for size in reversed(inner):
        strides.append(strides[-1] * size.constant)
    strides.reverse()
    index = bounds.expression(op.linear_index[0])
    if op.has_outer_bound and basis[0].is_number:
        bounds.promise(index)
        bounds.promise(-index + (basis[0].constant * strides[0] - 1))
    if value.index:
        index = index.mod(strides[value.index - 1])
    return index.floordiv(strides[value.index])


def _linearize(bounds: ValueBounds, value: OpResult) -> Linear | None:
    op = cast(LinearizeIndexOp, value.op)
    basis = [bounds.expression(each) for each in op.basis]
    inner = basis[1:] if len(basis) == len(op.multi_index) else basis
    total, stride = Linear(), 1
    sizes = [*inner[::-1], Linear.number(1)]
    if op.disjoint is not None:
        for coordinate, size in zip(reversed(op.multi_index), reversed(basis)):
            bounds.promise(bounds.expression(coordinate))
            bounds.promise(size - bounds.expression(coordinate) - 1)
    for coordinate, size in zip(reversed(op.multi_index), sizes):
        total = total + bounds.expression(coordinate) * stride
        if not size.is_number:
            return None
        stride *= size.constant
    return total


def _dim(bounds: ValueBounds, value: OpResult) -> Linear | None:
    op = cast(tensor.DimOp | memref.DimOp, value.op)
    at = bounds.expression(op.index)
    type_ = op.source.type
    if not at.is_number or not isinstance(type_, TensorType | MemRefType):
        return None
    if not 0 <= at.constant < type_.get_num_dims():
        return None
    return bounds.expression(op.source, at.constant)


def _rank(bounds: ValueBounds, value: OpResult) -> Linear | None:
    type_ = value.op.operands[0].type
    if not isinstance(type_, TensorType | MemRefType):
        return None
    return Linear.number(type_.get_num_dims())


EXACT: dict[str, Exact] = {
    "arith.constant": _constant,
    "arith.addi": _addi,
    "arith.subi": _subi,
    "arith.muli": _muli,
    "arith.shli": _shli,
    "arith.shrsi": _shrsi,
    "arith.shrui": _unsigned(_shrsi),
    "arith.divsi": _divsi,
    "arith.divui": _unsigned(_floordivsi),
    "arith.floordivsi": _floordivsi,
    "arith.ceildivsi": _ceildivsi,
    "arith.ceildivui": _unsigned(_ceildivsi),
    "arith.remsi": _remsi,
    "arith.remui": _unsigned(_remsi),
    "arith.extsi": _same,
    "arith.trunci": _cut,
    "arith.index_cast": _same,
    "arith.extui": _zero_extended,
    "arith.index_castui": _zero_extended,
    "affine.apply": _apply,
    "affine.delinearize_index": _delinearize,
    "affine.linearize_index": _linearize,
    "tensor.dim": _dim,
    "memref.dim": _dim,
    "tensor.rank": _rank,
    "memref.rank": _rank,
}


def _merged(bounds: ValueBounds, variable: Variable) -> Linear | None:
    """Returns the form of equal branch results, or of a value that a loop carries unchanged."""
    pair = dims.alternatives(variable)
    if pair is not None:
        promises = list(bounds.promises)
        a, b = (bounds.expression(each.value, each.dim) for each in pair)
        bounds.promises = promises
        return a if a.same(b) else None
    carried = dims.carried(variable)
    if carried is None:
        return None
    argument, start, following = carried
    unchanged = bounds.stays(argument, following)
    return bounds.expression(start.value, start.dim) if unchanged else None


# Limits

Limit = Callable[[ValueBounds, OpResult], Limits]


def _branches(bounds: ValueBounds, variable: Variable) -> Limits:
    """Bounds a select by the smaller and the larger of its values, if their order is known."""
    pair = dims.alternatives(variable)
    if pair is None:
        return NOTHING
    # Only one branch runs, so facts from one must not be used in the other.
    promises, bounds.promises = bounds.promises, []
    a, b = (bounds.deep(each) for each in pair)
    here = [bounds.expression(each.value, each.dim) for each in pair]
    bounds.promises = []
    lower: list[Linear] = []
    upper: list[Linear] = []
    if bounds.at_least(b, a):
        lower, upper = [here[0]], [here[1]]
    if bounds.at_least(a, b):
        lower, upper = [*lower, here[1]], [*upper, here[0]]
    bounds.promises = promises
    return Limits(tuple(lower), tuple(upper))


def _select(bounds: ValueBounds, value: OpResult) -> Limits:
    return _branches(bounds, Variable(value))


def _minsi(bounds: ValueBounds, value: OpResult) -> Limits:
    return Limits((), _pair(bounds, value.op))


def _maxsi(bounds: ValueBounds, value: OpResult) -> Limits:
    return Limits(_pair(bounds, value.op), ())


def _minui(bounds: ValueBounds, value: OpResult) -> Limits:
    a, b = _pair(bounds, value.op)
    plain = bounds.at_least(a, ZERO) and bounds.at_least(b, ZERO)
    return Limits((ZERO,), (a, b)) if plain else NOTHING


def _maxui(bounds: ValueBounds, value: OpResult) -> Limits:
    a, b = _pair(bounds, value.op)
    plain = bounds.at_least(a, ZERO) and bounds.at_least(b, ZERO)
    return Limits((a, b), ()) if plain else NOTHING


def _divsi_limits(bounds: ValueBounds, value: OpResult) -> Limits:
    """Bounds the quotient by its floor and ceiling."""
    a, b = _pair(bounds, value.op)
    if not b.is_number or b.constant <= 0:
        return NOTHING
    return Limits((a.floordiv(b.constant),), (a.ceildiv(b.constant),))


def _remsi_limits(bounds: ValueBounds, value: OpResult) -> Limits:
    """Bounds the remainder by the sign of the dividend and the magnitude of the divisor."""
    a, b = _pair(bounds, value.op)
    positive, negative = bounds.at_least(b, ZERO + 1), bounds.at_least(ZERO - 1, b)
    lower: list[Linear] = []
    upper: list[Linear] = []
    if positive:
        lower, upper = [-b + 1], [b - 1]
    if negative:
        lower, upper = [b + 1], [-b - 1]
    if bounds.at_least(a, ZERO):
        lower = [ZERO]
        upper.append(a)
    elif bounds.at_least(ZERO, a):
        upper = [ZERO]
        lower.append(a)
    return Limits(tuple(lower), tuple(upper))


def _remui_limits(bounds: ValueBounds, value: OpResult) -> Limits:
    _, b = _pair(bounds, value.op)
    return Limits((ZERO,), (b - 1,)) if bounds.at_least(b, ZERO + 1) else NOTHING


def _andi(bounds: ValueBounds, value: OpResult) -> Limits:
    """Bounds the result by 0 and by each nonnegative operand."""
    plain = [each for each in _pair(bounds, value.op) if bounds.at_least(each, ZERO)]
    return Limits((ZERO,), tuple(plain)) if plain else NOTHING


def _ori(bounds: ValueBounds, value: OpResult) -> Limits:
    """Bounds the result by both operands and their sum, if both are nonnegative."""
    a, b = _pair(bounds, value.op)
    plain = bounds.at_least(a, ZERO) and bounds.at_least(b, ZERO)
    return Limits((a, b), (a + b,)) if plain else NOTHING


def _castui(bounds: ValueBounds, value: OpResult) -> Limits:
    """Bounds the result by 0 if the cast widens, or if integers do not wrap."""
    source, target = width_of(value.op.operands[0].type), width_of(value.type)
    longer = source is not None and target is not None and source < target
    return Limits((ZERO,), ()) if longer or not bounds.wraps else NOTHING


def _results(bounds: ValueBounds, op: affine.MinOp | AffineMaxOp) -> list[Linear]:
    forms = [bounds.expression(each) for each in op.operands]
    found = [bounds.affine(e, forms, op.map.data.num_dims) for e in op.map.data.results]
    return [each for each in found if each is not None and not bounds.may_leave(each, op.result)]


def _affine_min(bounds: ValueBounds, value: OpResult) -> Limits:
    op = cast(affine.MinOp, value.op)
    return Limits((), tuple(_results(bounds, op)))


def _affine_max(bounds: ValueBounds, value: OpResult) -> Limits:
    op = cast(AffineMaxOp, value.op)
    return Limits(tuple(_results(bounds, op)), ())


def _assume_limits(bounds: ValueBounds, value: OpResult) -> Limits:
    """Bounds the result by the operand. No exact form, since the result has tighter ranges."""
    op = cast(AssumeIntOp, value.op)
    source = bounds.expression(op.operands[value.index])
    return Limits((source,), (source,))


def _linalg_index(bounds: ValueBounds, value: OpResult) -> Limits:
    """Bounds the index by 0 and by every operand dim that it indexes."""
    op = cast(linalg.IndexOp, value.op)
    generic = op.parent_op()
    if not isinstance(generic, linalg.GenericOp):
        return Limits((ZERO,), ())
    wanted = AffineExpr.dimension(op.dim.value.data)
    upper = [
        bounds.expression(operand, position) - 1
        for operand, map_ in zip(generic.operands, generic.indexing_maps)
        for position, expr in enumerate(map_.data.results)
        if expr == wanted and isinstance(operand.type, TensorType | MemRefType)
    ]
    return Limits((ZERO,), tuple(upper))


LIMITS: dict[str, Limit] = {
    "arith.select": _select,
    "arith.minsi": _minsi,
    "arith.maxsi": _maxsi,
    "arith.minui": _minui,
    "arith.maxui": _maxui,
    "arith.divsi": _divsi_limits,
    "arith.remsi": _remsi_limits,
    "arith.remui": _remui_limits,
    "arith.andi": _andi,
    "arith.ori": _ori,
    "arith.extui": _castui,
    "arith.index_castui": _castui,
    "affine.min": _affine_min,
    "affine.max": _affine_max,
    "util.assume.int": _assume_limits,
    "linalg.index": _linalg_index,
}


def _counter(bounds: ValueBounds, value: SSAValue, block: Block) -> Limits:
    """Bounds an induction variable by its loop bounds."""
    parent = block.parent_op()
    position = block.args.index(value)  # type: ignore[arg-type]
    lower: list[SSAValue | int] = []
    upper: list[SSAValue | int] = []
    if isinstance(parent, scf.ForOp):
        lower, upper = [parent.lb], [parent.ub]
    elif isinstance(parent, ForallOp):
        lower, upper, _ = parent.bounds()
    elif isinstance(parent, scf.ParallelOp):
        lower, upper = list(parent.lowerBound), list(parent.upperBound)
    elif isinstance(parent, affine.ForOp) and position == 0:
        return _affine_counter(bounds, parent)
    if position >= len(lower):
        return NOTHING
    first, bound = bounds.expression(lower[position]), bounds.expression(upper[position])
    return Limits((first,), (bound - 1,))


def _affine_counter(bounds: ValueBounds, op: affine.ForOp) -> Limits:
    sides: list[list[Linear]] = []
    for map_, operands in (
        (op.lowerBoundMap.data, op.lowerBoundOperands),
        (op.upperBoundMap.data, op.upperBoundOperands),
    ):
        forms = [bounds.expression(each) for each in operands]
        found = [bounds.affine(expr, forms, map_.num_dims) for expr in map_.results]
        counter = op.body.block.args[0]
        sides.append(
            [each for each in found if each is not None and not bounds.may_leave(each, counter)]
        )
    lower, upper = sides[0], [each - 1 for each in sides[1]]
    if len(lower) == len(upper) == 1:
        gap = upper[0] - lower[0]
        step = cast(IntegerAttr, op.step).value.data
        if gap.is_number and gap.constant >= 0 and step > 0:
            upper = [lower[0] + gap.constant // step * step]
    return Limits(tuple(lower), tuple(upper))
