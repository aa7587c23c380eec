"""
Computes products of complex matrices as products of real ones.

The operand whose dim is the last one of the result becomes a matrix of 2 by 2 reals for each
number. The other one is read as it is in memory, (re, im) in turn along the summed dim, and the
result is written as it is in memory:

    acc[m, n] += a[m, k] * b[k, n]
  =>
    acc[m, n, q] += a[m, k, p] * c[k, p, n, q]      c[k, :, n, :] = [[re, im], [-im, re]]

Loops over parts are joined with the loop before them, so this is a product of matrices twice as
wide. If the last loop is a batch, that of all columns of an image for instance, vectors run along
it: the parts are moved in front of the other dims, and back.

A vector is made such a matrix, too. If the rows of the other operand are not summed, both parts of
the vector are multiplied with the matrix as it is, which is read once:

    acc[n] += x[k] * b[k, n]
  =>
    s[r, n, p] += x[k, r] * b[k, n, p]
    acc[n, 0] += s[0, n, 0] - s[1, n, 1]      acc[n, 1] += s[0, n, 1] + s[1, n, 0]

The order of additions changes, so the pass does not run with `fp=strict`; it runs for CPUs only.
Other ops on complex numbers are `irees-expand-complex`'s. BLAS libraries pack complex operands into
the same real matrices ("1m" method, Van Zee, 2020).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum

from xdsl.context import Context
from xdsl.dialects import arith, complex
from xdsl.dialects.builtin import DYNAMIC_INDEX, ModuleOp, TensorType
from xdsl.dialects.linalg import ops as linalg
from xdsl.ir import Attribute, SSAValue
from xdsl.ir.affine import AffineDimExpr, AffineExpr, AffineMap
from xdsl.passes import ModulePass
from xdsl.rewriter import Rewriter

from irees.dialects.irees import ViewPartsOp
from irees.dialects.irees_target import is_strict, target_of
from irees.rewrites import may_rewrite
from irees.transforms.global_opt.utils.complex_parts import is_complex, pairs
from irees.transforms.utils.reshapes import collapse, consecutive, expand
from irees.transforms.utils.shapes import Size, dims
from irees.transforms.utils.structured import element_type, is_zero_fill, iterators, maps
from irees.transforms.utils.tensors import ScalarBuilder, TensorBuilder


class Form(Enum):
    """How a product of complex numbers is written on reals."""

    INTERLEAVED = "interleaved"
    """The matrix of 2 by 2 reals of each number of an operand; the other one as it is in memory."""
    PLANAR = "planar"
    """The same with the parts in front of the other dims, since the last loop is a batch."""
    SUMS = "sums"
    """The parts of a vector times a matrix as it is in memory, whose rows are not summed."""


@dataclass
class Product:
    """
    A multiply-add of two operands of complex numbers. `spread` is the operand, 0 or 1, that is
    written as other reals; the other one is read as pairs.
    """

    op: linalg.GenericOp
    spread: int
    form: Form


MULTIPLY_ADD_OPS = 3
"""Ops of a body that multiplies, adds and yields."""


def _loops(map_: AffineMap) -> list[int]:
    return [e.position for e in map_.results if isinstance(e, AffineDimExpr)]


def product_of(op: linalg.GenericOp) -> Product | None:
    """Returns how a contraction of complex numbers is computed, or None for other ops."""
    if len(op.inputs) != 2 or len(op.outputs) != 1 or not _multiplies(op):
        return None
    indexing = maps(op)
    if not all(m.is_projected_permutation() for m in indexing):
        return None
    lhs, rhs, out = (_loops(m) for m in indexing)
    summed = {i for i, kind in enumerate(iterators(op)) if kind != "parallel"}
    if not summed or not out or not summed <= {*lhs} & {*rhs} or summed & {*out}:
        return None
    own = ({*lhs} - {*rhs}, {*rhs} - {*lhs})
    return _form(op, own, out[-1], (lhs[-1], rhs[-1])) if any(own) else None


def _form(
    op: linalg.GenericOp, own: tuple[set[int], set[int]], last: int, rows: tuple[int, int]
) -> Product:
    """
    Chooses how a product is written. `own` are the loops of one operand only, `last` is the last
    loop of the result and `rows` are those of the operands.
    """
    if not all(own):
        spread = 1 if own[0] else 0
        return Product(op, spread, Form.SUMS if rows[1 - spread] == last else Form.INTERLEAVED)
    for number, loops in enumerate(own):
        if last in loops:
            return Product(op, number, Form.INTERLEAVED)
    return Product(op, 1, Form.PLANAR)


def _multiplies(op: linalg.GenericOp) -> bool:
    """Whether the body is acc + a * b."""
    a, b, acc = op.body.block.args
    last = op.body.block.last_op
    total = last.operands[0].owner if last is not None else None
    if not isinstance(total, complex.AddOp) or not is_complex(a) or not is_complex(b):
        return False
    terms = [v.owner for v in total.operands if v is not acc]
    if len(terms) != 1 or not isinstance(terms[0], complex.MulOp):
        return False
    return {*terms[0].operands} == {a, b} and len(op.body.block.ops) == MULTIPLY_ADD_OPS


def as_real(product: Product, b: TensorBuilder) -> SSAValue:
    """Emits a product on reals; returns its result as pairs."""
    if product.form is Form.SUMS:
        return _sums(product, b)
    op, spread, planar = product.op, product.spread, product.form is Form.PLANAR
    indexing, loops = maps(op), len(iterators(op))
    p, q = AffineExpr.dimension(loops), AffineExpr.dimension(loops + 1)
    values = (op.inputs[1 - spread], op.inputs[spread], op.outputs[0])
    plain, matrix, init = (pairs(v, b) for v in values)
    places = _places(op, spread, planar=planar)
    matrix = _spread(matrix, places, b)
    exprs = [list(m.results) for m in (indexing[1 - spread], indexing[spread], indexing[2])]
    exprs[1] = _inserted(exprs[1], places, (p, q))
    if planar:
        plain, init = _parts_first(plain, b), _parts_first(init, b)
        exprs[0], exprs[2] = [p, *exprs[0]], [q, *exprs[2]]
    else:
        exprs[0], exprs[2] = [*exprs[0], p], [*exprs[2], q]
    result = _multiplied(Operands([plain, matrix, init], exprs), (p, q), b)
    return _parts_last(result, b) if planar else result


@dataclass
class Operands:
    """The operands of a product of reals, the last one its init, and the loops of their dims."""

    values: list[SSAValue]
    loops: list[list[AffineExpr]]

    def join(self, loop: AffineExpr, b: TensorBuilder) -> None:
        """Joins a loop with the one before it, if they lie alike in all operands that have it."""
        before = {self._before(loops, loop) for loops in self.loops if loop in loops}
        if len(before) != 1 or None in before:
            return
        (outer,) = before
        if any(outer in loops and loop not in loops for loops in self.loops):
            return
        for number, loops in enumerate(self.loops):
            if loop in loops:
                place = loops.index(loop)
                self.values[number] = _last_joined(self.values[number], place, b)
                del loops[place]

    @staticmethod
    def _before(loops: Sequence[AffineExpr], loop: AffineExpr) -> AffineExpr | None:
        place = loops.index(loop)
        return loops[place - 1] if place else None

    def maps(self) -> list[AffineMap]:
        """Returns the indexing maps, with the loops of the output in front."""
        order = list(dict.fromkeys(e for loops in self.loops[::-1] for e in loops))
        dim = {e: AffineExpr.dimension(i) for i, e in enumerate(order)}
        return [AffineMap(len(order), 0, tuple(dim[e] for e in loops)) for loops in self.loops]


def _last_joined(value: SSAValue, place: int, b: TensorBuilder) -> SSAValue:
    """Joins a dim of a tensor with the one before it."""
    kind = value.type
    assert isinstance(kind, TensorType)
    shape = list(kind.get_shape())
    size = shape.pop(place)
    if shape[place - 1] != DYNAMIC_INDEX:
        shape[place - 1] *= size
    groups = consecutive([1 + (i == place - 1) for i in range(len(shape))])
    return collapse(value, groups, TensorType(kind.element_type, shape), b)


def _multiplied(operands: Operands, joined: Sequence[AffineExpr], b: TensorBuilder) -> SSAValue:
    """Emits a multiply-add; returns a result of the type of the init before loops are joined."""
    kind, sizes = operands.values[-1].type, dims(operands.values[-1], b)
    owner = operands.values[-1].owner
    for loop in joined:
        operands.join(loop, b)
    if isinstance(owner, linalg.GenericOp) and is_zero_fill(owner):
        init = operands.values[-1]
        operands.values[-1] = _zeros(element_type(init), dims(init, b), b)
    (result,) = b.compute(
        operands.values[:-1],
        operands.values[-1:],
        operands.maps(),
        lambda s, v: [s.op(arith.AddfOp, v[2], s.op(arith.MulfOp, v[0], v[1]))],
    )
    if result.type == kind:
        return result
    assert isinstance(kind, TensorType)
    groups = consecutive([*[1] * (len(sizes) - 2), 2])
    return expand(result, groups, sizes, kind, b)


def _sums(product: Product, b: TensorBuilder) -> SSAValue:
    """
    acc[n] += x[k] * b[k, n]  =>  s[r, n, p] = sum over k of x[k, r] * b[k, n, p], and
    acc[n, 0] += s[0, n, 0] - s[1, n, 1], acc[n, 1] += s[0, n, 1] + s[1, n, 0]
    """
    op, spread = product.op, product.spread
    indexing, loops = maps(op), len(iterators(op))
    r, p = AffineExpr.dimension(loops), AffineExpr.dimension(loops + 1)
    vector, matrix = (pairs(op.inputs[n], b) for n in (spread, 1 - spread))
    init = pairs(op.outputs[0], b)
    sizes = dims(init, b)
    exprs = [
        [*indexing[spread].results, r],
        [*indexing[1 - spread].results, p],
        [r, *indexing[2].results, p],
    ]
    zeros = _zeros(element_type(init), [2, *sizes], b)
    sums = _multiplied(Operands([vector, matrix, zeros], exprs), [p], b)
    rank = len(sizes)
    dim = [AffineExpr.dimension(i) for i in range(rank)]

    def at(first: int, last: int) -> AffineMap:
        ends = [AffineExpr.constant(part) for part in (first, last)]
        return AffineMap(rank, 0, (ends[0], *dim[:-1], ends[1]))

    def body(s: ScalarBuilder, v: list[SSAValue]) -> list[SSAValue]:
        re, im = s.op(arith.SubfOp, v[0], v[1]), s.op(arith.AddfOp, v[2], v[3])
        each = s.select(s.compare(s.index(rank - 1), 0, "eq"), re, im)
        return [s.op(arith.AddfOp, v[4], each)]

    read = [at(0, 0), at(1, 1), at(0, 1), at(1, 0)]
    return b.compute([sums] * len(read), [init], [*read, AffineMap.identity(rank)], body)[0]


def _zeros(kind: Attribute, sizes: Sequence[Size], b: TensorBuilder) -> SSAValue:
    """Returns a tensor of zeros, as a generic: named ops have become generics already."""
    identity = AffineMap.identity(len(sizes))
    return b.compute([], [b.empty(kind, sizes)], [identity], lambda s, _: [s.number(0.0, kind)])[0]


def _places(op: linalg.GenericOp, spread: int, *, planar: bool) -> tuple[int, int]:
    """
    Returns in front of which dims of the operand the dims of p and q come: p after the last dim
    that is summed, q after the last one that is not, so that each can be joined with it.
    """
    loops = _loops(maps(op)[spread])
    if planar:
        return 0, 0
    summed = [i for i, loop in enumerate(loops) if iterators(op)[loop] != "parallel"]
    other = _loops(maps(op)[1 - spread])
    own = [i for i, loop in enumerate(loops) if i not in summed and loop not in other]
    return summed[-1] + 1, own[-1] + 1 if own else summed[0]


def _inserted(
    items: Sequence[AffineExpr], places: tuple[int, int], new: Sequence[AffineExpr]
) -> list[AffineExpr]:
    """Returns the items with two new ones in front of those at `places`."""
    found: list[AffineExpr] = []
    for at in range(len(items) + 1):
        found += [each for each, place in zip(new, places, strict=True) if place == at]
        found += items[at : at + 1]
    return found


def _spread(value: SSAValue, places: tuple[int, int], b: TensorBuilder) -> SSAValue:
    """b[k, n]  =>  c[k, p, n, q] = p == q ? re : p == 0 ? im : -im"""
    sizes = dims(value, b)[:-1]
    rank = len(sizes)
    dim = [AffineExpr.dimension(i) for i in range(rank + 2)]
    order = _inserted(dim[:rank], places, dim[rank:])
    shape: list[Size] = [[*sizes, 2, 2][e.position] for e in order if isinstance(e, AffineDimExpr)]
    read = [AffineMap(rank + 2, 0, (*dim[:rank], AffineExpr.constant(part))) for part in (0, 1)]

    def body(s: ScalarBuilder, v: list[SSAValue]) -> list[SSAValue]:
        re, im, _ = v
        p, q = s.index(rank), s.index(rank + 1)
        cross = s.select(s.compare(p, 0, "eq"), im, s.op(arith.NegfOp, im))
        return [s.select(s.compare(p, q, "eq"), re, cross)]

    kind = element_type(value)
    init = b.empty(kind, shape)
    written = AffineMap(rank + 2, 0, tuple(order))
    return b.compute([value, value], [init], [*read, written], body)[0]


def _moved(value: SSAValue, order: Sequence[int], b: TensorBuilder) -> SSAValue:
    """Returns a tensor whose dim i is dim order[i] of the value."""
    sizes = dims(value, b)
    init = b.empty(element_type(value), [sizes[i] for i in order])
    target = AffineMap(len(order), 0, tuple(AffineExpr.dimension(i) for i in order))
    plain = AffineMap.identity(len(order))
    return b.compute([value], [init], [plain, target], lambda s, v: [v[0]])[0]


def _parts_first(value: SSAValue, b: TensorBuilder) -> SSAValue:
    rank = value.type.get_num_dims()
    return _moved(value, [rank - 1, *range(rank - 1)], b)


def _parts_last(value: SSAValue, b: TensorBuilder) -> SSAValue:
    rank = value.type.get_num_dims()
    return _moved(value, [*range(1, rank), 0], b)


@dataclass(frozen=True)
class ExpandComplexContractionsPass(ModulePass):
    """Computes products of complex matrices as products of real ones on CPUs."""

    name = "irees-expand-complex-contractions"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        if target_of(op).gpu is not None or is_strict(op):
            return
        for inner in [o for o in op.walk() if isinstance(o, linalg.GenericOp)]:
            product = product_of(inner)
            if product is None or not may_rewrite(self.name, inner, "a product on reals"):
                continue
            b = TensorBuilder(inner)
            result = b.insert(ViewPartsOp(as_real(product, b))).results[0]
            Rewriter.replace_op(inner, [], [result])
