"""Writes the body of a structured op on pairs of parts. Part of `irees-expand-complex`."""

from __future__ import annotations

from collections.abc import Callable, Container, Sequence
from functools import partial

from xdsl.dialects import arith, complex, math
from xdsl.dialects.builtin import ComplexType, Float32Type, FloatAttr, f64
from xdsl.dialects.linalg import ops as linalg
from xdsl.ir import Attribute, Block, Operation, OpResult, SSAValue

from irees.dialects.storage import is_extract
from irees.transforms.global_opt.utils.complex_parts import is_complex
from irees.transforms.utils.reshapes import Refused
from irees.transforms.utils.tensors import ScalarBuilder

RE, IM, EACH = "re", "im", "each"
"""The real part of a number, its imaginary part, or the part that the loop over parts is at."""

PARTS = (EACH, RE, IM)
"""The order in which the parts of an operand are read."""

PARTWISE = frozenset(
    "arith.select complex.add complex.conj complex.constant complex.neg complex.sub".split()
)
"""Ops on scalars that compute a part of their result from the same part of their operands."""


def is_partwise(op: Operation) -> bool:
    """Whether an op computes or reads a part of its result from the same part of what it uses."""
    return op.name in PARTWISE or is_extract(op)


def touches_complex(op: Operation) -> bool:
    """Whether some value of an op, or inside of it, is a complex number."""
    return any(is_complex(v) for o in op.walk() for v in (*o.operands, *o.results))


def needed_parts(block: Block) -> dict[SSAValue, set[str]]:
    """
    Returns which parts of each complex value of a body are used, if its results are computed part
    by part. Raises Refused for a body that has no form on parts.
    """
    needed: dict[SSAValue, set[str]] = {}
    last = block.last_op
    pairs = last is not None and any(map(is_complex, last.operands))
    for op in reversed(list(block.ops)):
        if op.regions and touches_complex(op):
            raise Refused(f"{op.name} has complex numbers inside")
        made = [r for r in op.results if is_complex(r)]
        if pairs and made and not is_partwise(op) and op.name not in FORMULAS:
            raise Refused(f"{op.name} has no form on parts")
        wanted = {part for r in made for part in needed.get(r, ())}
        read = {EACH} if op is last else _read_parts(op, wanted)
        for value in filter(is_complex, op.operands):
            needed.setdefault(value, set()).update(read)
    return needed


def _read_parts(op: Operation, wanted: set[str]) -> set[str]:
    """Returns the parts of its operands that an op reads for these parts of its result."""
    if op.name in READS:
        return READS[op.name]
    if is_partwise(op):
        return wanted
    return {RE, IM} if wanted or not any(map(is_complex, op.results)) else set()


READS = {"complex.im": {IM}, "complex.re": {RE}}
"""Ops that read one part of their operand."""


def in_order(parts: Container[str]) -> list[str]:
    """Returns parts in the order of `PARTS`."""
    return [part for part in PARTS if part in parts]


class Body:
    """
    The body of an op on pairs. `loop` is the number of the loop over parts, if its results are
    pairs; `parts` returns the pairs of a tensor of complex numbers.
    """

    def __init__(
        self, block: Block, loop: int | None, parts: Callable[[SSAValue], SSAValue]
    ) -> None:
        self.old, self.loop, self.parts = block, loop, parts
        self.needed = needed_parts(block)
        self.block = Block()
        self.at = ScalarBuilder(self.block)
        self.known: dict[tuple[SSAValue, str], SSAValue] = {}
        self.scalars: dict[SSAValue, SSAValue] = {}

    def argument(self, old: SSAValue, part: str | None, kind: Attribute) -> None:
        """Adds the block argument of a part of an operand, of an operand of reals for None."""
        new = self.block.insert_arg(kind, len(self.block.args))
        if part is None:
            self.scalars[old] = new
        else:
            self.known[old, part] = new

    def write(self) -> None:
        """Emits all ops of the body, once it has its arguments."""
        for op in self.old.ops:
            if op is self.old.last_op:
                each = [self._get(v, EACH) if is_complex(v) else self._real(v) for v in op.operands]
                self.block.add_op(linalg.YieldOp(*each))
            elif not touches_complex(op):
                copy = self.at.insert(op.clone(value_mapper=self.scalars))
                self.scalars.update(zip(op.results, copy.results, strict=True))
            elif any(is_complex(r) for r in op.results):
                for part in in_order(self.needed.get(op.results[0], ())):
                    self._get(op.results[0], part)
            else:
                self.scalars[op.results[0]] = self._measured(op)

    def _real(self, value: SSAValue) -> SSAValue:
        return self.scalars.get(value, value)

    def _get(self, value: SSAValue, part: str) -> SSAValue:
        """Returns a part of a complex value."""
        if (value, part) not in self.known:
            inside = isinstance(value, OpResult) and value.op.parent is self.old
            self.known[value, part] = (
                self._made(value.op, part) if inside else self._given(value, part)
            )
        return self.known[value, part]

    def _given(self, value: SSAValue, part: str) -> SSAValue:
        """Emits a part of a number from outside of the body."""
        if part == EACH:
            return self.choose(*(self._get(value, each) for each in (RE, IM)))
        return self.at.op(complex.ReOp if part == RE else complex.ImOp, value)

    def _made(self, op: Operation, part: str) -> SSAValue:
        """Emits a part of the result of an op."""
        if is_partwise(op):
            return self._partwise(op, part)
        if part == EACH:
            return self.choose(*(self._get(op.results[0], each) for each in (RE, IM)))
        if isinstance(op, complex.CreateOp):
            return self._real(op.real if part == RE else op.imaginary)
        if (formula := FORMULAS.get(op.name)) is not None:
            pairs = [[self._get(v, each) for each in (RE, IM)] for v in op.operands]
            found = formula(self.at, *(x for pair in pairs for x in pair))
            both = dict(zip((RE, IM), found, strict=True))
        else:
            whole = self._called(op)
            both = {RE: self.at.op(complex.ReOp, whole), IM: self.at.op(complex.ImOp, whole)}
        self.known.update({(op.results[0], each): value for each, value in both.items()})
        return both[part]

    def _called(self, op: Operation) -> SSAValue:
        """Emits an op that has no form on parts."""
        joined = [
            self.at.op(complex.CreateOp, *(self._get(v, p) for p in (RE, IM)), v.type)
            if is_complex(v)
            else self._real(v)
            for v in op.operands
        ]
        return self.at.insert(
            op.clone(value_mapper=dict(zip(op.operands, joined, strict=True)))
        ).results[0]

    def _measured(self, op: Operation) -> SSAValue:
        """Emits an op on complex numbers whose result is none."""
        if op.name in READS:
            (part,) = READS[op.name]
            return self._get(op.operands[0], part)
        kind = op.operands[0].type
        assert isinstance(kind, ComplexType)
        parts = [[self._get(v, each) for v in op.operands] for each in (RE, IM)]
        if isinstance(op, complex.EqualOp | complex.NotEqualOp):
            equal = isinstance(op, complex.EqualOp)
            re, im = (self.at.op(arith.CmpfOp, *p, "oeq" if equal else "une") for p in parts)
            return self.at.op(arith.AndIOp if equal else arith.OrIOp, re, im)
        if isinstance(op, complex.AbsOp) and isinstance(kind.element_type, Float32Type):
            return length(self.at, parts[0][0], parts[1][0])
        return self._called(op)

    def choose(self, re: SSAValue, im: SSAValue) -> SSAValue:
        """Returns the part that the loop over parts is at."""
        if re is im:
            return re
        assert self.loop is not None
        first = self.at.compare(self.at.index(self.loop), 0, "eq")
        return self.at.select(first, re, im)

    def _partwise(self, op: Operation, part: str) -> SSAValue:
        """Emits the part of the result of an op that is computed part by part."""
        at, kind = self.at, op.results[0].type
        assert isinstance(kind, ComplexType)
        if isinstance(op, complex.ConstantOp):
            numbers = [_number(each) for each in op.value]
            return self._chosen(part, [partial(at.number, n, kind.element_type) for n in numbers])
        if is_extract(op):
            last = {RE: 0, IM: 1}.get(part)
            place = at.value(last) if last is not None else at.index(self._over_parts())
            indices = [*map(self._real, op.indices), place]
            return at.op(type(op), self.parts(op.tensor), indices, kind.element_type)
        values = [self._get(v, part) if is_complex(v) else self._real(v) for v in op.operands]
        if op.name == "complex.conj":
            (value,) = values
            return self._chosen(part, [lambda: value, lambda: at.op(arith.NegfOp, value)])
        return at.op(SAME[op.name], *values)

    def _over_parts(self) -> int:
        assert self.loop is not None
        return self.loop

    def _chosen(self, part: str, makers: Sequence[Callable[[], SSAValue]]) -> SSAValue:
        """Emits the real or the imaginary part, or both and a choice."""
        if part == EACH:
            re, im = (make() for make in makers)
            return self.choose(re, im)
        return makers[0 if part == RE else 1]()


def _number(attr: Attribute) -> float:
    assert isinstance(attr, FloatAttr)
    return attr.value.data


SAME: dict[str, type[Operation]] = {
    "arith.select": arith.SelectOp,
    "complex.add": arith.AddfOp,
    "complex.neg": arith.NegfOp,
    "complex.sub": arith.SubfOp,
}
"""Ops of `PARTWISE` => the op on a part."""


def length(at: ScalarBuilder, re: SSAValue, im: SSAValue) -> SSAValue:
    """
    |re + i im| = sqrt(re^2 + im^2) in f64, where squares of f32 do not overflow. Infinite if a part
    is, even if the other one is NaN (C: `hypot`).
    """
    squares = [at.op(arith.MulfOp, x, x) for x in (at.cast(re, f64), at.cast(im, f64))]
    root = at.op(math.SqrtOp, at.op(arith.AddfOp, *squares))
    infinity = at.number(float("inf"), f64)
    larger = at.op(arith.MaxnumfOp, *squares)
    is_infinite = at.op(arith.CmpfOp, larger, infinity, "oeq")
    return at.cast(at.select(is_infinite, infinity, root), re.type)


def product(
    at: ScalarBuilder, a: SSAValue, b: SSAValue, c: SSAValue, d: SSAValue
) -> tuple[SSAValue, SSAValue]:
    """(a + ib)(c + id) = ac - bd + i(ad + bc)"""
    ac, bd, ad, bc = (at.op(arith.MulfOp, *pair) for pair in ((a, c), (b, d), (a, d), (b, c)))
    return at.op(arith.SubfOp, ac, bd), at.op(arith.AddfOp, ad, bc)


def quotient(
    at: ScalarBuilder, a: SSAValue, b: SSAValue, c: SSAValue, d: SSAValue
) -> tuple[SSAValue, SSAValue]:
    """
    (a + ib) / (c + id) by Smith's algorithm, in f64: the larger of |c| and |d| divides the other.

    Swapping c and d multiplies the divisor by -i or i, and so it does the dividend. A divisor of 0
    divides both parts by |0|. R. L. Smith, Algorithm 116, CACM 1962; numpy does the same.
    """
    narrow = a.type
    a, b, c, d = (at.cast(x, f64) for x in (a, b, c, d))
    sizes = [at.op(math.AbsFOp, x) for x in (c, d)]
    wide = at.op(arith.CmpfOp, *sizes, "oge")
    minus = at.op(arith.NegfOp, a)
    large, small = at.select(wide, c, d), at.select(wide, d, c)
    ratio = at.op(arith.DivfOp, small, large)
    whole = at.op(arith.AddfOp, large, at.op(arith.MulfOp, small, ratio))
    scale = at.op(arith.DivfOp, at.number(1, f64), whole)

    def part(first: SSAValue, second: SSAValue) -> SSAValue:
        total = at.op(arith.AddfOp, first, at.op(arith.MulfOp, second, ratio))
        return at.op(arith.MulfOp, total, scale)

    re = part(at.select(wide, a, b), at.select(wide, b, a))
    im = part(at.select(wide, b, minus), at.select(wide, minus, b))
    size = at.op(math.AbsFOp, large)
    # The larger one of 0 and NaN is not known; the result is NaN.
    nothing = at.op(arith.AndIOp, wide, at.op(arith.CmpfOp, size, at.number(0, f64), "oeq"))
    found = [at.select(nothing, at.op(arith.DivfOp, x, size), y) for x, y in ((a, re), (b, im))]
    return at.cast(found[0], narrow), at.cast(found[1], narrow)


FORMULAS: dict[str, Callable[..., tuple[SSAValue, SSAValue]]] = {
    "complex.create": lambda at, re, im: (re, im),
    "complex.div": quotient,
    "complex.mul": product,
}
"""Op name => both parts of its result, from the parts of its operands."""
