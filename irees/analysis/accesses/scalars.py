"""Handlers of integer ops: bind their results to polynomials and conditions."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from xdsl.dialects import affine, arith, vector
from xdsl.dialects.builtin import (
    DenseIntOrFPElementsAttr,
    Float64Type,
    FloatAttr,
    IndexType,
    IntegerAttr,
    IntegerType,
    VectorType,
)
from xdsl.ir import Attribute, Block, Operation, SSAValue
from xdsl.ir.affine import (
    AffineBinaryOpExpr,
    AffineBinaryOpKind,
    AffineConstantExpr,
    AffineDimExpr,
    AffineExpr,
    AffineMap,
    AffineSymExpr,
)

from irees.analysis.accesses.polynomials import ONE, ZERO, Polynomial, total
from irees.analysis.accesses.terms import AtLeast, Condition, Every, Some, opposite

if TYPE_CHECKING:
    from irees.analysis.accesses.walk import Walk

Meaning = Callable[["Walk", Operation], None]

PREDICATES = ("eq", "ne", "slt", "sle", "sgt", "sge", "ult", "ule", "ugt", "uge")


OLT = 4
"""The predicate `olt` of `arith.cmpf`."""

MOST_FACTORS = 128
"""Maximum factors of a monomial of a product: repeated squaring doubles them. Sizes have few."""

MOST_PAIRS = 4096
"""Maximum pairs of terms that a product multiplies."""


def bits_of(kind: Attribute) -> int | None:
    """Returns the width of an integer type, 64 for index, None for other types."""
    if isinstance(kind, IndexType):
        return 64
    return kind.width.data if isinstance(kind, IntegerType) else None


def constant(walk: Walk, op: Operation) -> None:
    """arith.constant"""
    assert isinstance(op, arith.ConstantOp)
    if isinstance(op.value, IntegerAttr):
        value = op.value.value.data
        if bits_of(op.result.type) == 1:
            walk.conditions[op.result] = Every() if value else Some()
        else:
            walk.polynomials[op.result] = Polynomial.number(value)
    elif isinstance(op.value, FloatAttr) and isinstance(op.result.type, Float64Type):
        number = op.value.value.data
        if number.is_integer() and number >= 0:
            walk.reals[op.result] = (Polynomial.number(int(number)),)


def binary(walk: Walk, op: Operation) -> None:
    """Binary integer ops of `arith`."""
    result = op.results[0]
    bits = bits_of(result.type)
    if bits is None:
        return
    if bits == 1:
        logical(walk, op)
        return
    a, b = walk.polynomial(op.operands[0]), walk.polynomial(op.operands[1])
    if a is None or b is None:
        return
    walk.polynomials[result] = BINARY[op.name.partition(".")[2]](walk, a, b, bits)


Binary = Callable[["Walk", Polynomial, Polynomial, int], Polynomial]
"""Maps the operands and the width of a binary op to its result."""


def _minui(walk: Walk, a: Polynomial, b: Polynomial, bits: int) -> Polynomial:
    do = walk.arithmetic
    naturals = [x for x in (a, b) if do.is_natural(x)]
    if len(naturals) == 2:
        return do.minimum(a, b)
    return do.below(naturals[0]) if naturals else do.opaque("minui", bits)


def _maxui(walk: Walk, a: Polynomial, b: Polynomial, bits: int) -> Polynomial:
    do = walk.arithmetic
    both = do.is_natural(a) and do.is_natural(b)
    return do.maximum(a, b) if both else do.opaque("maxui", bits)


def _by_power(b: Polynomial, bits: int) -> Polynomial | None:
    """Returns 2^b for a constant shift amount below the width, else None."""
    by = b.constant
    return Polynomial.number(1 << by) if by is not None and 0 <= by < bits else None


def _shli(walk: Walk, a: Polynomial, b: Polynomial, bits: int) -> Polynomial:
    do, power = walk.arithmetic, _by_power(b, bits)
    if power is not None:
        return do.narrowed(a * power, bits)
    x = a.constant
    return do.shifted(x, b, bits) if x is not None and x > 0 else do.opaque("shli", bits)


def _muli(walk: Walk, a: Polynomial, b: Polynomial, bits: int) -> Polynomial:
    natural = walk.arithmetic.is_natural
    too_many = len(a.terms) * len(b.terms) > MOST_PAIRS
    if too_many or a.degree() + b.degree() > MOST_FACTORS:
        return walk.arithmetic.opaque("product", bits)
    if not walk.space.is_nonnegative(a * b) and natural(a) and natural(b):
        # A product of natural differences, such as (h - 2)^2, is not natural by its terms.
        walk.space.assume([a * b])
    return walk.arithmetic.narrowed(a * b, bits)


def _shrui(walk: Walk, a: Polynomial, b: Polynomial, bits: int) -> Polynomial:
    do, power = walk.arithmetic, _by_power(b, bits)
    if power is not None:
        return do.divided(a, power, bits)
    if not do.is_natural(a):
        return do.opaque("shrui", bits)
    power = do.shifted(1, b, bits)
    return do.floor(a, power) if do.is_power(power) else do.below(a)


def _shrsi(walk: Walk, a: Polynomial, b: Polynomial, bits: int) -> Polynomial:
    do, power = walk.arithmetic, _by_power(b, bits)
    if power is None or not walk.prover.fits(a, bits):
        return do.opaque("shrsi", bits)
    return do.floor(a, power)


def _andi(walk: Walk, a: Polynomial, b: Polynomial, bits: int) -> Polynomial:
    do, sides = walk.arithmetic, ((a, b), (b, a))
    for one, other in sides:
        if do.is_power(other + 1) and walk.prover.fits(one, bits):
            # x & (2^n - 1) is the remainder by 2^n.
            return one - do.floor(one, other + 1) * (other + 1)
    for one, other in reversed(sides):
        if (mask := one.constant) is not None:
            return do.masked(other, mask, bits)
    for one, _ in sides:
        if do.is_natural(one):
            return do.below(one)
    return do.opaque("andi", bits)


BINARY: dict[str, Binary] = {
    "addi": lambda walk, a, b, bits: walk.arithmetic.narrowed(a + b, bits),
    "subi": lambda walk, a, b, bits: walk.arithmetic.narrowed(a - b, bits),
    "muli": _muli,
    "divui": lambda walk, a, b, bits: walk.arithmetic.divided(a, b, bits),
    "divsi": lambda walk, a, b, bits: walk.arithmetic.divided(a, b, bits, signed=True),
    "remui": lambda walk, a, b, bits: walk.arithmetic.remainder(a, b, bits),
    "remsi": lambda walk, a, b, bits: walk.arithmetic.remainder(a, b, bits, signed=True),
    "floordivsi": lambda walk, a, b, bits: walk.arithmetic.floordivsi(a, b, bits),
    "ceildivsi": lambda walk, a, b, bits: walk.arithmetic.ceildiv(a, b, bits),
    "ceildivui": lambda walk, a, b, bits: walk.arithmetic.ceildiv(a, b, bits),
    "minsi": lambda walk, a, b, bits: walk.arithmetic.minimum(a, b),
    "maxsi": lambda walk, a, b, bits: walk.arithmetic.maximum(a, b),
    "minui": _minui,
    "maxui": _maxui,
    "shli": _shli,
    "shrui": _shrui,
    "shrsi": _shrsi,
    "andi": _andi,
    "ori": lambda walk, a, b, bits: walk.arithmetic.joined(a, b, bits),
    "xori": lambda walk, a, b, bits: walk.arithmetic.joined(a, b, bits),
}
"""Binary integer ops of `arith`. Unknown results are fresh variables."""


def logical(walk: Walk, op: Operation) -> None:
    """Binary ops on i1."""
    a, b = (walk.condition(o) for o in op.operands)
    name = op.name.partition(".")[2]
    if name in ("andi", "muli", "minui"):
        walk.conditions[op.results[0]] = Every((a, b))
    elif name in ("ori", "maxui"):
        walk.conditions[op.results[0]] = Some((a, b))
    elif name == "xori" and Every() in (a, b):
        walk.conditions[op.results[0]] = opposite(b if a == Every() else a)
    elif name in ("xori", "addi", "subi"):
        differ = Some((Every((a, opposite(b))), Every((opposite(a), b))))
        walk.conditions[op.results[0]] = differ


def compare(walk: Walk, op: Operation) -> None:
    """arith.cmpi"""
    assert isinstance(op, arith.CmpiOp)
    kind = bits_of(op.lhs.type)
    predicate = PREDICATES[op.predicate.value.data]
    if kind == 1:
        a, b = walk.condition(op.lhs), walk.condition(op.rhs)
        same = Some((Every((a, b)), Every((opposite(a), opposite(b)))))
        if predicate in ("eq", "ne"):
            walk.conditions[op.result] = same if predicate == "eq" else opposite(same)
        return
    if predicate[0] == "u":
        for operand in op.operands:
            walk.as_the_machine_has_it(operand)
    a, b = walk.polynomial(op.lhs), walk.polynomial(op.rhs)
    if a is not None and b is not None:
        walk.conditions[op.result] = walk.arithmetic.compare(predicate, a, b)


def select(walk: Walk, op: Operation) -> None:
    """arith.select"""
    assert isinstance(op, arith.SelectOp)
    if bits_of(op.cond.type) != 1:
        return
    condition = walk.condition(op.cond)
    walk.choose(op.result, condition, op.lhs, op.rhs)


def convert(walk: Walk, op: Operation) -> None:
    """Casts between integers and index."""
    source, result = op.operands[0], op.results[0]
    before, after = bits_of(source.type), bits_of(result.type)
    if before is None or after is None:
        return
    name = op.name.partition(".")[2]
    extends_sign = name in ("index_cast", "extsi")
    if before == 1:
        one = -1 if extends_sign else 1
        walk.polynomials[result] = walk.arithmetic.number(walk.condition(source), one)
        return
    x = walk.polynomial(source)
    if x is None:
        return
    if after == 1:
        odd = x - walk.arithmetic.floor(x, Polynomial.number(2)) * 2
        walk.conditions[result] = walk.arithmetic.compare("eq", odd, ONE)
    elif after > before and not extends_sign:
        walk.polynomials[result] = walk.arithmetic.unsigned(x, before)
    else:
        walk.polynomials[result] = walk.arithmetic.narrowed(x, after)


def sum_of_sizes(walk: Walk, op: Operation) -> None:
    """arith.mulf and arith.addf on sizes, as in asserts on the memory of temporaries"""
    a, b = (walk.reals.get(o) for o in op.operands)
    if a is None or b is None:
        return
    if op.name == "arith.addf":
        walk.reals[op.results[0]] = a + b
        return
    product = total(a) * total(b)
    if not walk.space.is_nonnegative(product):
        # A product of natural differences, such as (h - 2)^2, is not natural by its terms.
        walk.space.assume([product])
    walk.reals[op.results[0]] = (product,)


def size(walk: Walk, op: Operation) -> None:
    """arith.uitofp of a size"""
    if bits_of(op.operands[0].type) == 64:
        x = walk.polynomial(op.operands[0])
        if x is not None and walk.arithmetic.is_natural(x):
            walk.reals[op.results[0]] = (x,)


def bound_of_sizes(walk: Walk, op: Operation) -> None:
    """
    arith.cmpf of a sum of sizes and a constant. The sum is rounded, so the comparison gives a bound
    up to a factor of 2. It bounds each summand, too, for none is negative.
    """
    assert isinstance(op, arith.CmpfOp)
    a, b = walk.reals.get(op.lhs), walk.reals.get(op.rhs)
    if op.predicate.value.data != OLT or a is None or b is None:
        return
    if (most := total(b).constant) is not None:
        facts = (AtLeast(-bound + 2 * most) for bound in dict.fromkeys((total(a), *a)))
        walk.conditions[op.result] = Every((*facts, walk.space.unknown()))


def apply_map(walk: Walk, op: Operation) -> None:
    """affine.apply, affine.min, affine.max"""
    map_ = op.properties["map"].data  # type: ignore[attr-defined]
    operands = [walk.polynomial(o) for o in op.operands]
    found = [_affine(walk, e, operands, map_) for e in map_.results]
    if any(f is None for f in found):
        return
    result = found[0]
    for other in found[1:]:
        assert result is not None
        assert other is not None
        pick = walk.arithmetic.minimum if isinstance(op, affine.MinOp) else walk.arithmetic.maximum
        result = pick(result, other)
    assert result is not None
    walk.polynomials[op.results[0]] = result


def _affine(
    walk: Walk, expr: AffineExpr, operands: list[Polynomial | None], map_: AffineMap
) -> Polynomial | None:
    if isinstance(expr, AffineConstantExpr):
        return Polynomial.number(expr.value)
    if isinstance(expr, AffineDimExpr):
        return operands[expr.position]
    if isinstance(expr, AffineSymExpr):
        return operands[map_.num_dims + expr.position]
    assert isinstance(expr, AffineBinaryOpExpr)
    a, b = (_affine(walk, e, operands, map_) for e in (expr.lhs, expr.rhs))
    if a is None or b is None:
        return None
    do = walk.arithmetic
    if expr.kind is AffineBinaryOpKind.Add:
        return a + b
    if expr.kind is AffineBinaryOpKind.Mul:
        return a * b
    if not walk.prover.holds(b - 1) or not walk.prover.fits(a):
        return do.opaque("affine")
    if expr.kind is AffineBinaryOpKind.FloorDiv:
        return do.floor(a, b)
    if expr.kind is AffineBinaryOpKind.CeilDiv:
        return do.floor(a + b - 1, b)
    return a - do.floor(a, b) * b


def count(walk: Walk, op: Operation) -> None:
    """math.ctpop, math.ctlz, math.cttz"""
    bits = bits_of(op.results[0].type)
    if bits is not None and bits > 1:
        walk.polynomials[op.results[0]] = walk.space.fresh("bits", 0, bits)


def delinearize(walk: Walk, op: Operation) -> None:
    """affine.delinearize_index"""
    basis = _mixed(walk, op, op.operands[1:])
    rest = walk.polynomial(op.operands[0])
    sizes = list(reversed(basis[-(len(op.results) - 1) :])) if len(op.results) > 1 else []
    for result, size in zip(reversed(op.results[1:]), sizes, strict=True):
        if rest is None or size is None:
            return
        walk.polynomials[result] = walk.arithmetic.remainder(rest, size)
        rest = walk.arithmetic.divided(rest, size)
    if rest is not None:
        walk.polynomials[op.results[0]] = rest


def linearize(walk: Walk, op: Operation) -> None:
    """affine.linearize_index"""
    count = len(op.multi_index)  # type: ignore[attr-defined]
    places = [walk.polynomial(v) for v in op.operands[:count]]
    basis = _mixed(walk, op, op.operands[count:])[-(count - 1) :] if count > 1 else []
    total, inner = ZERO, ONE
    for place, size in zip(reversed(places), [*reversed(basis), ONE], strict=True):
        if place is None or size is None:
            return
        total, inner = total + place * inner, inner * size
    walk.polynomials[op.results[0]] = total


def _mixed(walk: Walk, op: Operation, dynamic: object) -> list[Polynomial | None]:
    static = op.properties["static_basis"].get_values()  # type: ignore[attr-defined]
    return walk.mixed(static, dynamic)  # type: ignore[arg-type]


LANEWISE = frozenset(f"arith.{name}" for name in BINARY)
"""Ops that are also followed for a lane of a vector."""
SIGNED_CASTS = ("arith.index_cast", "arith.extsi", "arith.trunci")
MOST_STEPS = 12
"""How many such ops are followed, one behind the other."""


def lane(walk: Walk, op: Operation) -> None:
    """vector.extract of an integer: an index that was computed for all lanes at once"""
    assert isinstance(op, vector.ExtractOp)
    place, bits = op.static_position.get_values(), bits_of(op.result.type)
    if bits in (None, 1) or op.dynamic_position or len(place) != 1:
        return
    walk.polynomials[op.result] = LaneValues(walk, place[0]).number(op.vector, MOST_STEPS)


@dataclass
class LaneValues:
    """What one lane of some vectors has. Numbers that are not followed are fresh variables."""

    walk: Walk
    place: int
    numbers: dict[SSAValue, Polynomial] = field(default_factory=dict)
    conditions: dict[SSAValue, Condition] = field(default_factory=dict)

    def number(self, value: SSAValue, steps: int) -> Polynomial:
        """Returns the number of the lane, from at most `steps` ops, one behind the other."""
        if value not in self.numbers:
            kind = value.type
            assert isinstance(kind, VectorType)
            bits = bits_of(kind.element_type)
            assert bits is not None
            found = self._number(value.owner, bits, steps) if steps and bits > 1 else None
            self.numbers[value] = (
                self.walk.arithmetic.opaque("lane", bits) if found is None else found
            )
        return self.numbers[value]

    def _number(self, owner: Operation | Block, bits: int, steps: int) -> Polynomial | None:
        if isinstance(owner, vector.BroadcastOp):
            return self.walk.polynomial(owner.source)
        if isinstance(owner, arith.ConstantOp):
            return _entry(owner.value, self.place)
        if isinstance(owner, arith.SelectOp):
            if not isinstance(owner.cond.type, VectorType):
                return None
            condition = self.condition(owner.cond, steps - 1)
            a, b = (self.number(v, steps - 1) for v in (owner.lhs, owner.rhs))
            return self.walk.arithmetic.select(condition, a, b)
        if not isinstance(owner, Operation) or owner.name not in (*LANEWISE, *SIGNED_CASTS):
            return None
        if any(_is_mask(v.type) for v in owner.operands):
            return None
        operands = [self.number(v, steps - 1) for v in owner.operands]
        if owner.name in SIGNED_CASTS:
            return self.walk.arithmetic.narrowed(operands[0], bits)
        return BINARY[owner.name.partition(".")[2]](self.walk, *operands, bits)

    def condition(self, value: SSAValue, steps: int) -> Condition:
        """Returns the condition of the lane of a mask."""
        if value not in self.conditions:
            found = self._condition(value.owner, steps) if steps else None
            self.conditions[value] = self.walk.space.unknown() if found is None else found
        return self.conditions[value]

    def _condition(self, owner: Operation | Block, steps: int) -> Condition | None:
        if isinstance(owner, vector.BroadcastOp):
            return self.walk.condition(owner.source)
        if isinstance(owner, arith.AndIOp | arith.OrIOp):
            parts = tuple(self.condition(v, steps - 1) for v in owner.operands)
            return Every(parts) if isinstance(owner, arith.AndIOp) else Some(parts)
        if isinstance(owner, arith.CmpiOp) and not _is_mask(owner.lhs.type):
            predicate = PREDICATES[owner.predicate.value.data]
            if predicate[0] != "u":
                a, b = (self.number(v, steps - 1) for v in owner.operands)
                return self.walk.arithmetic.compare(predicate, a, b)
        return None


def _is_mask(kind: Attribute) -> bool:
    return isinstance(kind, VectorType) and bits_of(kind.element_type) == 1


def _entry(data: Attribute, place: int) -> Polynomial | None:
    """Returns an element of a constant vector of integers."""
    if not isinstance(data, DenseIntOrFPElementsAttr):
        return None
    numbers = data.get_values()
    return Polynomial.number(int(numbers[place if len(numbers) > 1 else 0]))


MEANINGS: dict[str, Meaning] = {
    "arith.constant": constant,
    "arith.cmpi": compare,
    "arith.select": select,
    **{f"arith.{name}": binary for name in BINARY},
    **{f"arith.{n}": convert for n in "index_cast index_castui extsi extui trunci".split()},
    **{f"affine.{n}": apply_map for n in ("apply", "min", "max")},
    **{f"math.{n}": count for n in ("ctpop", "ctlz", "cttz")},
    "arith.mulf": sum_of_sizes,
    "arith.addf": sum_of_sizes,
    "arith.uitofp": size,
    "arith.cmpf": bound_of_sizes,
    "affine.delinearize_index": delinearize,
    "affine.linearize_index": linearize,
    "vector.extract": lane,
}
"""Op name => handler that binds its results."""
