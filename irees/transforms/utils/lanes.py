"""
Vectorizes a scalar body: evaluates it for consecutive iterations at once.

Each value of the body is of one of three kinds along the vectorized loop: uniform (stays a scalar),
increasing by one per lane (represented by the scalar of lane 0), or varying (becomes a vector). An
op whose operands are all uniform is cloned as a scalar op; only varying ops need a vector form.
MLIR's linalg vectorizer distinguishes the same three kinds for `tensor.extract`.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from functools import cache
from math import prod

from xdsl.dialects import arith, cf, math, memref, scf, vector
from xdsl.dialects.builtin import (
    DYNAMIC_INDEX,
    BFloat16Type,
    DenseArrayBase,
    DenseIntOrFPElementsAttr,
    Float16Type,
    Float32Type,
    Float64Type,
    IndexType,
    IntegerAttr,
    IntegerType,
    MemRefType,
    NoneAttr,
    StridedLayoutAttr,
    VectorType,
    f64,
    i1,
    i32,
    i64,
)
from xdsl.dialects.linalg import ops as linalg
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue

from irees.dialects.irees_target import target_of
from irees.dialects.storage import loaded
from irees.dialects.upstream.vector.shapes import GatherOp
from irees.target import Target
from irees.transforms.utils.constants import constant_number
from irees.transforms.utils.copies import same_op
from irees.transforms.utils.shapes import (
    IndexBuilder,
    Size,
    constant_value,
    reassociation_attr,
)

BYTE = 8
"""Minimum width, in bits, of an integer type that can number the lanes of a vector."""

Insert = Callable[[Operation], Operation]

SMALL_POWERS = (2, 3)
"""Exponents of powers that are products."""

FIRST_SIGNED, LAST_SIGNED = 2, 5
"""Numbers of the signed predicates of `arith.cmpi`; the unsigned ones follow in the same order."""

LONGEST_STEP = 1 << 48
"""Maximum difference of one lane to the next of a vector that is known by its first lane."""

LINE = 64
"""Size of a CPU cache line, in bytes."""

ELEMENTWISE = frozenset(
    """
    arith.addf arith.subf arith.mulf arith.divf arith.negf arith.maximumf arith.minimumf
    arith.maxnumf arith.minnumf arith.cmpf arith.cmpi arith.select arith.addi arith.subi
    arith.muli arith.andi arith.ori arith.xori arith.maxsi arith.minsi arith.maxui
    arith.minui arith.extf arith.truncf arith.extsi arith.extui arith.trunci arith.sitofp
    arith.uitofp arith.index_cast arith.shli arith.shrsi arith.shrui arith.remf
    math.exp math.exp2 math.expm1 math.log math.log2 math.log10 math.log1p math.sqrt math.rsqrt
    math.tanh
    math.erf math.sin math.cos math.tan math.atan math.absf math.floor math.ceil math.round
    math.roundeven math.trunc math.powf math.fma math.absi math.copysign math.sinh math.cosh
    math.asin math.acos math.atan2 math.cbrt math.erfc math.asinh math.acosh math.atanh
    math.isnan math.isinf math.isfinite arith.bitcast arith.index_castui arith.fptosi arith.fptoui
    """.split()
)
"""Elementwise ops: on `vector<NxT>`, they apply the op on T to each lane."""

Division = (
    arith.DivSIOp
    | arith.DivUIOp
    | arith.RemSIOp
    | arith.RemUIOp
    | arith.FloorDivSIOp
    | arith.CeilDivSIOp
)
"""Elementwise ops that `irees-expand-divisions` expands on some targets."""


def has_vector_division(op: Division, target: Target) -> bool:
    """
    Whether a division has a form on vectors: the target casts integers of 64 bits, and the form is
    faster than scalars. Unsigned ones of 64 bits have none, and the C compiler vectorizes short
    ones by constants.
    """
    kind = op.result.type
    kind = kind.element_type if isinstance(kind, VectorType) else kind
    if not isinstance(kind, IntegerType) or not target.casts_wide_integers:
        return False
    if kind.width.data == 64:
        return not isinstance(op, arith.DivUIOp | arith.RemUIOp)
    return kind.width.data >= BYTE and constant_number(op.rhs) is None


ONE_INSTRUCTION = frozenset(
    """
    math.absf math.absi math.ceil math.copysign math.floor math.fma math.isfinite math.isinf
    math.isnan math.round math.roundeven math.sqrt math.trunc
    """.split()
)
"""Ops of the math dialect that processors have, or that are one or two other instructions."""

HALVES = BFloat16Type | Float16Type


class NotVectorizableError(Exception):
    """The reason why a body has no vector form; for a remark, not a user error."""


class Kind(Enum):
    """How a value varies along the vectorized loop."""

    UNIFORM = "uniform"
    IOTA = "iota"
    STRIDED = "strided"
    VECTOR = "vector"


@dataclass(frozen=True)
class Lane:
    """
    A value of the body and its kind; for IOTA and STRIDED, the value in lane 0. `step` is the
    difference of one lane to the next.
    """

    value: SSAValue
    kind: Kind
    step: int = 1


@cache
def vector_of(element: Attribute, lanes: int) -> VectorType:
    """vector<lanes x element>"""
    return VectorType(element, [lanes])


def lane_of(value: SSAValue, lane: int, insert: Insert) -> SSAValue:
    """Extracts an element of a one-dimensional vector."""
    assert isinstance(value.type, VectorType)
    op = vector.ExtractOp(value, [lane], value.type.element_type)
    return insert(op).results[0]


def last_lanes(lanes: int, count: Size, at: IndexBuilder) -> SSAValue:
    """Returns a mask of the last `count` lanes."""
    if isinstance(count, int):
        chosen = [lane >= lanes - count for lane in range(lanes)]
        data = DenseIntOrFPElementsAttr.from_list(vector_of(i1, lanes), chosen)
        return at.insert(arith.ConstantOp(data)).results[0]
    kind = vector_of(i32, lanes)
    numbers = DenseIntOrFPElementsAttr.from_list(kind, list(range(lanes)))
    first = at.insert(arith.IndexCastOp(at.value(at.sub(lanes, count)), i32)).results[0]
    splat = at.insert(vector.BroadcastOp(first, kind)).results[0]
    lane = at.insert(arith.ConstantOp(numbers)).results[0]
    return at.insert(arith.CmpiOp(lane, splat, "sge")).results[0]


def unit_stride(kind: Attribute) -> bool:
    """Whether the last dim of a memref is contiguous."""
    assert isinstance(kind, MemRefType)
    if isinstance(kind.layout, NoneAttr):
        return True
    if not isinstance(kind.layout, StridedLayoutAttr):
        return False
    last = kind.layout.strides.data[-1] if kind.layout.strides.data else None
    return last is not None and not isinstance(last, NoneAttr) and last.data == 1


def load_steps(
    buffer: SSAValue, indices: Sequence[SSAValue], step: int, lanes: int, at: IndexBuilder
) -> SSAValue:
    """
    Returns buffer[..., last + step * lane] for every lane.

    For step > 1, loads adjacent vectors and shuffles out the strided elements. The last vector ends
    at the last lane, so nothing beyond it is read.
    """
    kind = vector_of(buffer.type.element_type, lanes)
    first = at.insert(vector.LoadOp(buffer, indices, kind)).results[0]
    if step == 1:
        return first
    result, end = first, step * (lanes - 1) + 1
    for number in range(1, step):
        start = min(number * lanes, end - lanes)
        place = [*indices[:-1], at.value(at.add(indices[-1], start))]
        part = at.insert(vector.LoadOp(buffer, place, kind)).results[0]
        known = -(-number * lanes // step)
        mask = [
            # Keep the lanes found so far; round 1 extracts them from the first vector.
            (step * i if number == 1 else i) if i < known else lanes + step * i - start
            for i in range(lanes)
        ]
        mask = [m if m < 2 * lanes else 0 for m in mask]
        result = at.insert(
            vector.ShuffleOp(result, part, DenseArrayBase.from_list(i64, mask), result_type=kind)
        ).results[0]
    return result


def materialize(lane: Lane, lanes: int, insert: Insert) -> SSAValue:
    """Returns the value as a vector."""
    if lane.kind is Kind.VECTOR:
        return lane.value
    kind = vector_of(lane.value.type, lanes)
    splat = insert(vector.BroadcastOp(lane.value, kind)).results[0]
    if lane.kind is Kind.UNIFORM:
        return splat
    counts = [lane.step * number for number in range(lanes)]
    counting = DenseIntOrFPElementsAttr.from_list(kind, counts)
    steps = insert(arith.ConstantOp(counting)).results[0]
    return insert(
        arith.AddiOp.create(
            operands=[splat, steps],
            result_types=[kind],
            properties=dict(arith.AddiOp(lane.value, lane.value).properties),
        )
    ).results[0]


def evaluate(
    block: Block,
    arguments: Sequence[Lane],
    lanes: int,
    insert: Insert,
    index_of: Callable[[int], Lane],
    computed: Mapping[SSAValue, Lane],
) -> list[Lane]:
    """
    Emits the body for `lanes` consecutive iterations and returns the yielded values.

    Values in `computed` are reused. Raises NotVectorizableError if a varying op has no vector form.
    """
    known: dict[SSAValue, Lane] = dict(zip(block.args, arguments, strict=True))
    known.update(computed)
    return _block(block, known, lanes, insert, index_of)


def hoist(
    ops: Sequence[Operation],
    known: dict[SSAValue, Lane],
    lanes: int,
    insert: Insert,
    index_of: Callable[[int], Lane],
) -> None:
    """Emits ops of a body ahead of the rest, and adds their results to `known`."""
    for op in ops:
        _op(op, known, lanes, insert, index_of)


def _block(
    block: Block,
    known: dict[SSAValue, Lane],
    lanes: int,
    insert: Insert,
    index_of: Callable[[int], Lane],
) -> list[Lane]:
    """Emits the ops of a block and returns the yielded values."""
    for op in block.ops:
        if op is block.last_op:
            return _operands(op, known)
        if not op.results or any(r not in known for r in op.results):
            _op(op, known, lanes, insert, index_of)
    raise AssertionError("a body ends in a yield")


def _operands(op: Operation, known: Mapping[SSAValue, Lane]) -> list[Lane]:
    return [known.get(o, Lane(o, Kind.UNIFORM)) for o in op.operands]


def _op(
    op: Operation,
    known: dict[SSAValue, Lane],
    lanes: int,
    insert: Insert,
    index_of: Callable[[int], Lane],
) -> None:
    """Emits an op of a body, and adds its results to `known`."""
    operands = _operands(op, known)
    inside = (o for inner in op.walk() for o in _operands(inner, known))
    if isinstance(op, linalg.IndexOp):
        results = [index_of(op.dim.value.data)]
    elif all(o.kind is Kind.UNIFORM for o in inside):
        copy = insert(op.clone(value_mapper={k: v.value for k, v in known.items()}))
        results = [Lane(r, Kind.UNIFORM) for r in copy.results]
    elif isinstance(op, cf.AssertOp):
        _assert(op, operands[0], insert)
        results = []
    elif isinstance(op, scf.IfOp) and operands[0].kind is Kind.UNIFORM:
        results = _branch(op, operands[0].value, known, lanes, insert, index_of)
    else:
        results = [_vary(op, operands, lanes, insert)]
    known.update(zip(op.results, results, strict=True))


def _branch(
    op: scf.IfOp,
    condition: SSAValue,
    known: dict[SSAValue, Lane],
    lanes: int,
    insert: Insert,
    index_of: Callable[[int], Lane],
) -> list[Lane]:
    """scf.if of a uniform condition  =>  scf.if with vector results"""
    if any(not moves_in_lanes(r.type) for r in op.results) or not op.results:
        raise NotVectorizableError("a branch result has no vector type")
    regions: list[Region] = []
    for region in op.regions:
        block = Block()

        def here(inner: Operation, block: Block = block) -> Operation:
            block.add_op(inner)
            return inner

        results = _block(region.block, dict(known), lanes, here, index_of)
        here(scf.YieldOp(*[materialize(r, lanes, here) for r in results]))
        regions.append(Region(block))
    kinds = [vector_of(r.type, lanes) for r in op.results]
    branch = insert(scf.IfOp(condition, kinds, *regions))
    return [Lane(r, Kind.VECTOR) for r in branch.results]


def _assert(op: cf.AssertOp, condition: Lane, insert: Insert) -> None:
    """assert <%c>  =>  assert (vector.reduction <and> %c)"""
    # The constructor of ReductionOp would make the result a vector.
    every = vector.ReductionOp.create(
        operands=[condition.value],
        result_types=[i1],
        properties={
            "kind": vector.CombiningKindAttr(vector.CombiningKindFlag.AND),
            "fastmath": arith.FastMathFlagsAttr("none"),
        },
    )
    insert(cf.AssertOp(insert(every).results[0], op.msg))


def _vary(op: Operation, operands: list[Lane], lanes: int, insert: Insert) -> Lane:
    """Emits the form of an op for all lanes, whose operands are not all uniform."""
    if op.regions or len(op.results) != 1:
        raise NotVectorizableError(f"{op.name} differs per lane and has no vector form")
    if (growing := _growing(op, operands, insert)) is not None:
        return growing
    if loaded(op):
        return _load(op, operands, lanes, insert)
    if isinstance(op, arith.CmpiOp) and (number := _lane_number(op, operands)) is not None:
        return _compare_lanes(op, operands, number, lanes, insert)
    if op.name == "math.fpowi" and isinstance(op.results[0].type, Float32Type):
        power = constant_value(op.operands[1])
        if power in SMALL_POWERS:
            return _power(materialize(operands[0], lanes, insert), power, insert)
    _check_elementwise(op)
    values = [materialize(o, lanes, insert) for o in operands]
    copy = same_op(op, values, [vector_of(op.results[0].type, lanes)])
    return Lane(insert(copy).results[0], Kind.VECTOR)


def _growing(op: Operation, operands: list[Lane], insert: Insert) -> Lane | None:
    """Emits an op whose result grows evenly from lane to lane, for lane 0; None for others."""
    kinds, values = [o.kind for o in operands], [o.value for o in operands]
    if kinds in COUNTING.get(op.name, ()):
        return Lane(insert(_counted(op, values)).results[0], Kind.IOTA)
    step = _step(op, kinds, [o.step for o in operands])
    if step is None:
        return None
    copy = same_op(op, values, [op.results[0].type])
    return Lane(insert(copy).results[0], Kind.STRIDED, step)


def _check_elementwise(op: Operation) -> None:
    """Raises NotVectorizableError for an op that has no form on vectors of its types."""
    is_division = isinstance(op, Division) and has_vector_division(op, target_of(op))
    if op.name not in ELEMENTWISE and not is_division:
        raise NotVectorizableError(f"{op.name} differs per lane and has no vector form")
    kinds = [value.type for value in (*op.operands, *op.results)]
    for kind in kinds:
        if not has_lanes(kind) and not (moves_in_lanes(kind) and _moves(op, kinds)):
            raise NotVectorizableError(f"no vectors of {kind}")


COUNTING = {
    "arith.addi": ([Kind.IOTA, Kind.UNIFORM], [Kind.UNIFORM, Kind.IOTA]),
    "arith.index_cast": ([Kind.IOTA],),
    "arith.index_castui": ([Kind.IOTA],),
    "arith.subi": ([Kind.IOTA, Kind.UNIFORM],),
}
"""Ops whose result increases by one per lane => the kinds of operands for which it does."""


def _step(op: Operation, kinds: Sequence[Kind], steps: Sequence[int]) -> int | None:
    """
    Returns the constant step of a number of 64 bits that grows evenly from lane to lane, as the
    product of a loop's index and a constant does; None for another op.
    """
    if not isinstance(op, arith.AddiOp | arith.SubiOp | arith.MuliOp | arith.IndexCastOp):
        return None
    if not all(is_wide(v.type) for v in (*op.operands, *op.results)):
        return None
    growing = [i for i, kind in enumerate(kinds) if kind is not Kind.UNIFORM]
    if len(growing) != 1 or kinds[growing[0]] not in (Kind.IOTA, Kind.STRIDED):
        return None
    number = growing[0]
    if isinstance(op, arith.MuliOp):
        factor = constant_value(op.operands[1 - number])
        step = steps[number] * factor if factor else 0
        return step if 0 < abs(step) <= LONGEST_STEP else None
    falls = isinstance(op, arith.SubiOp) and number == 1
    return steps[number] if kinds[number] is Kind.STRIDED and not falls else None


def is_wide(kind: Attribute) -> bool:
    """Whether a type is `index` or i64."""
    return isinstance(kind, IndexType) or kind == i64


def _counted(op: Operation, values: list[SSAValue]) -> Operation:
    """Returns an op of `COUNTING` on the values of lane 0."""
    if isinstance(op, arith.AddiOp | arith.SubiOp):
        return type(op)(*values)
    kind = op.results[0].type
    if isinstance(kind, IntegerType) and kind.width.data < BYTE:
        # A vector may have more lanes than the type has values.
        raise NotVectorizableError(f"{kind} is too narrow for lane numbers")
    return same_op(op, values, [kind])


def _lane_number(op: arith.CmpiOp, operands: list[Lane]) -> int | None:
    """
    Returns which operand of a comparison of 64-bit numbers is a loop's index that counts the lanes,
    if the other one is uniform; else None. An index has no overflow, unlike a sum with one.
    """
    kinds = [o.kind for o in operands]
    if not is_wide(op.lhs.type) or Kind.UNIFORM not in kinds:
        return None
    number = kinds.index(Kind.IOTA) if Kind.IOTA in kinds else None
    if number is None:
        return None
    source = op.operands[number].owner
    if isinstance(source, arith.IndexCastOp):
        source = source.input.owner
    return number if isinstance(source, linalg.IndexOp) else None


def _compare_lanes(
    op: arith.CmpiOp, operands: list[Lane], number: int, lanes: int, insert: Insert
) -> Lane:
    """
    cmpi p, x, first + (0, 1, ..)  =>  cmpi p, max(min(x, first + lanes), first - 1) - first,
    (0, 1, ..) : vector<i32>. Vectors of 64-bit numbers would take several registers.
    """
    first, other = operands[number].value, operands[1 - number].value
    kind = first.type

    def constant(value: int) -> SSAValue:
        return insert(arith.ConstantOp(IntegerAttr(value, kind))).results[0]

    below = insert(arith.SubiOp(first, constant(1))).results[0]
    behind = insert(arith.AddiOp(first, constant(lanes))).results[0]
    predicate = op.predicate.value.data
    unsigned = predicate > LAST_SIGNED
    # An index is not negative, so that as an unsigned number it is the same.
    least = arith.MinUIOp if unsigned else arith.MinSIOp
    clamped = insert(least(other, behind)).results[0]
    clamped = insert(arith.MaxSIOp(clamped, below)).results[0]
    away = insert(arith.SubiOp(clamped, first)).results[0]
    cast = arith.IndexCastOp if isinstance(kind, IndexType) else arith.TruncIOp
    narrow = insert(cast(away, i32)).results[0]
    numbers = DenseIntOrFPElementsAttr.from_list(vector_of(i32, lanes), list(range(lanes)))
    sides = [materialize(Lane(narrow, Kind.UNIFORM), lanes, insert)]
    sides.insert(number, insert(arith.ConstantOp(numbers)).results[0])
    signed = predicate - (LAST_SIGNED - FIRST_SIGNED + 1) if unsigned else predicate
    return Lane(insert(arith.CmpiOp(*sides, signed)).results[0], Kind.VECTOR)


def _power(x: SSAValue, power: int, insert: Insert) -> Lane:
    """fpowi(x, 2)  =>  x * x; fpowi(x, 3)  =>  x * x * x"""
    result = x
    for _ in range(power - 1):
        result = insert(arith.MulfOp(result, x)).results[0]
    return Lane(result, Kind.VECTOR)


def _moves(op: Operation, kinds: Sequence[Attribute]) -> bool:
    """Whether an op is a cast between halves and wider floats, which has a vector form."""
    casts = isinstance(op, arith.ExtFOp | arith.TruncFOp)
    return casts and any(isinstance(kind, Float32Type | Float64Type) for kind in kinds)


def _units(kind: Attribute) -> int:
    """Returns how many of the last dims of a memref have one element, if it is not all of them."""
    shape = kind.get_shape() if isinstance(kind, MemRefType) else ()
    kept = next((i for i in range(len(shape), 0, -1) if shape[i - 1] != 1), 1)
    plain = isinstance(kind, MemRefType) and isinstance(kind.layout, NoneAttr)
    return len(shape) - kept if plain and shape else 0


def _load(op: memref.LoadOp, operands: list[Lane], lanes: int, insert: Insert) -> Lane:
    units = _units(op.memref.type)
    memory, indices = op.memref, operands[1 : len(operands) - units]
    if units:
        memory = insert(joined(memory, len(indices) - 1)).results[0]
    kinds = {o.kind for o in indices}
    if not moves_in_lanes(op.res.type):
        raise NotVectorizableError("a strided load has no vector form")
    if kinds <= {Kind.UNIFORM}:
        # Only indices of dims of one element vary, and these are 0.
        element = insert(memref.LoadOp.get(memory, [o.value for o in indices])).results[0]
        splat = vector.BroadcastOp(element, vector_of(op.res.type, lanes))
        return Lane(insert(splat).results[0], Kind.VECTOR)
    if Kind.VECTOR in kinds:
        return _gather(memory, indices, lanes, insert)
    *outer, last = indices
    in_a_row = last.kind is Kind.IOTA and all(o.kind is Kind.UNIFORM for o in outer)
    if not in_a_row or not unit_stride(memory.type):
        return _strided_load(memory, indices, lanes, insert)
    load = vector.LoadOp(memory, [o.value for o in indices], vector_of(op.res.type, lanes))
    return Lane(insert(load).results[0], Kind.VECTOR)


def _strided_load(memory: SSAValue, indices: list[Lane], lanes: int, insert: Insert) -> Lane:
    """Emits a load per lane, whose places are known without the lanes of a vector."""
    result: SSAValue | None = None
    for number in range(lanes):
        places = [_in_lane(index, number, insert) for index in indices]
        element = insert(memref.LoadOp.get(memory, places)).results[0]
        if result is None:
            splat = vector.BroadcastOp(element, vector_of(element.type, lanes))
            result = insert(splat).results[0]
        else:
            result = insert(vector.InsertOp(element, result, [number])).results[0]
    assert result is not None
    return Lane(result, Kind.VECTOR)


def _in_lane(lane: Lane, number: int, insert: Insert) -> SSAValue:
    """The value of a lane of what is uniform or grows evenly."""
    if lane.kind is Kind.UNIFORM or number == 0:
        return lane.value
    offset = insert(arith.ConstantOp(IntegerAttr(number * lane.step, lane.value.type)))
    return insert(arith.AddiOp(lane.value, offset)).results[0]


def _gather(memory: SSAValue, indices: list[Lane], lanes: int, insert: Insert) -> Lane:
    """
    Emits a gather: a load whose indices vary. Its dims are collapsed from the first one whose index
    does, since a gather has indices of one dim.

    load %m[%i, <%y>, <%x>] : memref<..xHxW>  =>  gather (collapse %m)[%i, 0] [<%y * W + %x>]
    """
    assert isinstance(memory.type, MemRefType)
    element = memory.type.element_type
    kind = vector_of(element, lanes)
    zero = 0 if isinstance(element, IntegerType | IndexType) else 0.0
    constants = [
        DenseIntOrFPElementsAttr.from_list(kind, [zero]),
        DenseIntOrFPElementsAttr.from_list(vector_of(i1, lanes), [True]),
        IntegerAttr.from_index_int_value(0),
    ]
    first = next(i for i, o in enumerate(indices) if o.kind is not Kind.UNIFORM)
    memory, place = _in_one_dim(memory, indices[first:], lanes, insert)
    unused, mask, start = (insert(arith.ConstantOp(c)).results[0] for c in constants)
    offsets = [*(o.value for o in indices[:first]), start]
    gather = GatherOp(memory, offsets, place, mask, unused)
    return Lane(insert(gather).results[0], Kind.VECTOR)


def _in_one_dim(
    memory: SSAValue, indices: list[Lane], lanes: int, insert: Insert
) -> tuple[SSAValue, SSAValue]:
    """Collapses the last dims of a memref; returns it with the indices of all lanes in that dim."""
    kind, place = memory.type, materialize(indices[0], lanes, insert)
    assert isinstance(kind, MemRefType)
    if len(indices) == 1:
        return memory, place
    if not isinstance(kind.layout, NoneAttr):
        raise NotVectorizableError("a gather along several dims of a view has no vector form")
    shape, outer = kind.get_shape(), kind.get_num_dims() - len(indices)
    for dim, index in enumerate(indices[1:], outer + 1):
        known = shape[dim] != DYNAMIC_INDEX
        number = IntegerAttr.from_index_int_value(shape[dim] if known else dim)
        size = insert(arith.ConstantOp(number))
        if not known:
            size = insert(memref.DimOp(memory, size.results[0]))
        splat = insert(vector.BroadcastOp(size.results[0], place.type)).results[0]
        place = insert(arith.MuliOp(place, splat)).results[0]
        place = insert(arith.AddiOp(place, materialize(index, lanes, insert))).results[0]
    return insert(joined(memory, outer)).results[0], place


def joined(memory: SSAValue, outer: int) -> memref.CollapseShapeOp:
    """Collapses all dims of a memref after the first `outer` ones to one; not inserted."""
    kind = memory.type
    assert isinstance(kind, MemRefType)
    shape = kind.get_shape()
    size = DYNAMIC_INDEX if DYNAMIC_INDEX in shape[outer:] else prod(shape[outer:])
    flat = MemRefType(kind.element_type, [*shape[:outer], size], memory_space=kind.memory_space)
    groups = [*([dim] for dim in range(outer)), list(range(outer, len(shape)))]
    return memref.CollapseShapeOp(
        operands=[memory],
        result_types=[flat],
        properties={"reassociation": reassociation_attr(groups)},
    )


def kinds_of(block: Block, uniform: Collection[SSAValue], axis: int | None) -> dict[SSAValue, Kind]:
    """
    Returns how the values of a body vary along loop `axis`. `uniform` are the block arguments that
    do not; values from outside of the block do not, either, and are not listed.
    """
    kinds = {a: Kind.UNIFORM if a in uniform else Kind.VECTOR for a in block.args}
    steps: dict[SSAValue, int] = {}
    for op in block.ops:
        inside = [kinds.get(o, Kind.UNIFORM) for inner in op.walk() for o in inner.operands]
        kind = Kind.UNIFORM
        if isinstance(op, linalg.IndexOp):
            kind = Kind.IOTA if op.dim.value.data == axis else Kind.UNIFORM
        elif inside in COUNTING.get(op.name, ()):
            kind = Kind.IOTA
        elif (step := _step(op, inside, [steps.get(o, 1) for o in op.operands])) is not None:
            kind = Kind.STRIDED
            steps |= dict.fromkeys(op.results, step)
        elif any(k is not Kind.UNIFORM for k in inside):
            kind = Kind.VECTOR
        kinds |= dict.fromkeys(op.results, kind)
    return kinds


def gathers(block: Block, kinds: Mapping[SSAValue, Kind]) -> list[Operation]:
    """Returns the loads of a body whose lanes are not elements in a row."""
    return [op for op in block.ops if loaded(op) is not None and not in_a_row(op, kinds)]


def in_a_row(op: Operation, kinds: Mapping[SSAValue, Kind]) -> bool:
    """Whether an op is a load whose lanes are the same element, or adjacent ones."""
    if loaded(op) is None:
        return False
    count = len(op.operands) - _units(op.operands[0].type)
    indices = [kinds.get(o, Kind.UNIFORM) for o in op.operands[1:count]]
    last = indices[-1] if indices else Kind.UNIFORM
    return all(k is Kind.UNIFORM for k in indices[:-1]) and last in (Kind.UNIFORM, Kind.IOTA)


def is_strided(op: Operation, kinds: Mapping[SSAValue, Kind]) -> bool:
    """Whether an op is a load whose lanes are elements with a constant stride, not in a row."""
    if loaded(op) is None or in_a_row(op, kinds):
        return False
    count = len(op.operands) - _units(op.operands[0].type)
    return all(kinds.get(o) is not Kind.VECTOR for o in op.operands[1:count])


def calls_math(block: Block) -> bool:
    """Whether some ops of a body are math functions that take many instructions."""
    return any(o.name.startswith("math.") and o.name not in ONE_INSTRUCTION for o in block.ops)


def has_lanes(kind: Attribute) -> bool:
    """Whether vector arithmetic on a type is supported."""
    if isinstance(kind, IntegerType):
        return kind.width.data in (1, 8, 16, 32, 64)
    return isinstance(kind, Float32Type | Float64Type | IndexType)


def moves_in_lanes(kind: Attribute) -> bool:
    """Whether vectors of a type are supported; vectors of halves only for moves and casts."""
    return has_lanes(kind) or isinstance(kind, HALVES)


def lane_bytes(kind: Attribute) -> int:
    """Returns the bytes of one lane in a register; a lane of a mask counts as 32 bits."""
    if isinstance(kind, IndexType | Float64Type):
        return 8
    if isinstance(kind, IntegerType):
        return 4 if kind.width.data == 1 else max(1, kind.width.data // 8)
    return 2 if isinstance(kind, HALVES) else 4


def inner_bytes(op: Operation | Block) -> int:
    """
    Returns the bytes of the widest lane that an op is computed with: powers of f32 and divisions
    of integers use f64.
    """
    if isinstance(op, Division):
        return lane_bytes(f64)
    is_power = isinstance(op, math.PowFOp) and constant_number(op.rhs) not in SMALL_POWERS
    return lane_bytes(f64) if is_power else 0
