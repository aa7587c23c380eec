"""
Checks, on the host, that dims agree which must.

`linalg` says nothing about a `?` that is 3 in one operand and 1 in another: it is
undefined behaviour there, and a read outside the array here. So for every loop of a
structured op whose bounds come from several dynamic dims, equality is asserted before any
kernel runs; likewise that windows and slices lie inside what they index, and that the operands
of a sort, a topk, a scan or a scatter fit together. A check between
two function arguments is also written into the manifest and then reported as an
ArgumentError that names both.

What a body reads by `tensor.extract` at the index of a loop is no window: an index outside is
moved inside, like one that depends on data. Where the loop is not known to fit, that is made
visible here, while sizes are still values that can be compared; a bare index fits.

    %r = linalg.generic ins(%a, %b : tensor<?xf32>, tensor<?xf32>) ...
  =>
    %0 = arith.cmpi eq, dim %a, dim %b
    cf.assert %0, "dim 0 of operand 1 must equal dim 0 of operand 0 of linalg.generic"
    %r = linalg.generic ...

Sizes that are the same SSA value or the same constant are not checked, so that a program
whose shapes follow from one another pays nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects import arith, cf, tensor
from xdsl.dialects.builtin import ModuleOp, StringAttr, TensorType
from xdsl.dialects.linalg import ops as linalg
from xdsl.ir import Operation, OpResult, SSAValue
from xdsl.ir.affine import AffineDimExpr
from xdsl.passes import ModulePass
from xdsl.rewriter import InsertPoint
from xdsl.traits import is_side_effect_free

from irees.dialects import iree_linalg_ext as ext
from irees.errors import VerifyError
from irees.transforms.utils.shapes import IndexBuilder, Size, dim, dims, kept_dims, mixed
from irees.transforms.utils.structured import linear_form, loop_sources, maps

MAX_STRIDE = (1 << 31) - 1
"""Of a slice, so that the stride times a number of elements is a number of 64 bits."""


def require(
    lhs: Size, rhs: Size, predicate: str, message: str, op: Operation, b: IndexBuilder,
    unless: Sequence[Size] = (),
) -> None:  # fmt: skip
    """
    Asserts a relation of two sizes, unless one of the others is 0.

    Raises VerifyError when the relation is known to be false.
    """
    if lhs is rhs or any(isinstance(size, int) and size == 0 for size in unless):
        return
    if isinstance(lhs, int) and isinstance(rhs, int):
        if (lhs == rhs) if predicate == "eq" else (lhs <= rhs):
            return
        raise VerifyError(
            f"{message}, but they are {lhs} and {rhs}", op=op.name, location=op.location
        )
    condition = b.insert(arith.CmpiOp(b.value(lhs), b.value(rhs), predicate)).results[0]
    for size in unless:
        if isinstance(size, SSAValue):
            empty = b.insert(arith.CmpiOp(size, b.value(0), "eq")).results[0]
            condition = b.insert(arith.OrIOp(condition, empty)).results[0]
    check = cf.AssertOp(condition, StringAttr(message))
    check.location = op.location
    b.insert(check)


def check_structured(op: linalg.GenericOp) -> None:
    """All sizes of one loop are equal, and windows stay inside their operand."""
    shaped = [v for v in op.operands if isinstance(v.type, TensorType)]
    if all(min(v.type.get_shape(), default=0) >= 0 for v in shaped):
        return
    b = IndexBuilder(InsertPoint.before(op))
    sizes: dict[int, tuple[Size, str]] = {}
    shapes = [dims(v, b) if isinstance(v.type, TensorType) else [] for v in op.operands]
    for position, indexing in enumerate(maps(op)):
        for axis, expr in enumerate(indexing.results):
            if not isinstance(expr, AffineDimExpr):
                continue
            here = f"dim {axis} of operand {position}"
            known = sizes.setdefault(expr.position, (shapes[position][axis], here))
            require(
                shapes[position][axis],
                known[0],
                "eq",
                f"{here} must equal {known[1]} of {op.name}",
                op,
                b,
            )
    for position, indexing in enumerate(maps(op)):
        for axis, expr in enumerate(indexing.results):
            form = linear_form(expr)
            if isinstance(expr, AffineDimExpr) or form is None or not form[0]:
                continue
            if any(loop not in sizes for loop in form[0]):
                continue
            reach: Size = form[1] + 1
            for loop, factor in form[0].items():
                if factor > 0:
                    reach = b.add(reach, b.mul(b.sub(sizes[loop][0], 1), factor))
            message = f"the window of {op.name} must lie inside dim {axis} of operand {position}"
            extent = shapes[position][axis]
            require(reach, extent, "sle", message, op, b, unless=[s for s, _ in sizes.values()])


def clamp_extracts(op: linalg.GenericOp) -> None:
    """tensor.extract %t[%i] in a loop that may be longer than %t  =>  %t[min(%i, last)]"""
    for inner in [o for o in op.body.block.ops if isinstance(o, tensor.ExtractOp)]:
        here = IndexBuilder(InsertPoint.before(inner))
        for axis, index in enumerate(inner.indices):
            if not isinstance(index.owner, linalg.IndexOp):
                continue
            source = loop_sources(op)[index.owner.dim.value.data]
            made_here = isinstance(inner.tensor.owner, Operation) and op.is_ancestor(
                inner.tensor.owner
            )
            outside = here if made_here else IndexBuilder(InsertPoint.before(op))
            extent = dim(inner.tensor, axis, outside)
            if source is not None and fits(dim(op.operands[source[0]], source[1], outside), extent):
                continue
            last = here.minimum(index, outside.sub(extent, 1))
            inner.operands[1 + axis] = here.value(last)


def fits(size: Size, extent: Size) -> bool:
    """Whether size <= extent is known."""
    if isinstance(size, int) and isinstance(extent, int):
        return size <= extent
    return equal(size, extent)


def equal(a: Size, b: Size) -> bool:
    """Whether two sizes are known to be one: CSE has not run yet."""
    if isinstance(a, int) or isinstance(b, int):
        return isinstance(a, int) and isinstance(b, int) and a == b
    if a is b or not isinstance(a, OpResult) or not isinstance(b, OpResult):
        return a is b
    x, y = a.op, b.op
    if type(x) is not type(y) or x.properties != y.properties or not is_side_effect_free(x):
        return False
    same = len(x.operands) == len(y.operands) and a.index == b.index and not x.regions
    return same and all(map(equal, x.operands, y.operands))


def check_slice(op: tensor.ExtractSliceOp | tensor.InsertSliceOp) -> None:
    """offset + (size - 1) * stride < dim, on every dim, and nothing is negative"""
    whole = op.source if isinstance(op, tensor.ExtractSliceOp) else op.dest
    b = IndexBuilder(InsertPoint.before(op))
    offsets = mixed(op.static_offsets.get_values(), op.offsets)
    sizes = mixed(op.static_sizes.get_values(), op.sizes)
    strides = mixed(op.static_strides.get_values(), op.strides)
    if isinstance(op, tensor.InsertSliceOp):
        check_inserted(op, sizes, b)
    for axis, (offset, size, stride, extent) in enumerate(
        zip(offsets, sizes, strides, dims(whole, b), strict=True)
    ):
        if isinstance(offset, int) and offset == 0 and size is extent:
            continue
        end = b.add(offset, b.add(b.mul(b.sub(size, 1), stride), 1))
        message = f"the slice of {op.name} must lie inside dim {axis}"
        require(end, extent, "sle", message, op, b)
        # Each alone too: a sum of numbers that large would wrap around.
        for value in (offset, size):
            if isinstance(value, SSAValue):
                require(0, value, "sle", f"an offset or size of {op.name} is negative", op, b)
                require(value, extent, "sle", f"an offset or size of {op.name} is too large", op, b)
        if isinstance(stride, SSAValue):
            require(1, stride, "sle", f"a stride of {op.name} is not positive", op, b)
            require(stride, MAX_STRIDE, "sle", f"a stride of {op.name} is too large", op, b)


def check_inserted(op: tensor.InsertSliceOp, sizes: Sequence[Size], b: IndexBuilder) -> None:
    """What is inserted must be as large as the slice it is inserted into."""
    assert isinstance(op.source.type, TensorType)
    kept = kept_dims(sizes, op.source.type.get_shape())
    for axis, (extent, position) in enumerate(zip(dims(op.source, b), kept, strict=True)):
        message = f"dim {axis} of operand 0 must equal the size of the slice of {op.name}"
        require(extent, sizes[position], "eq", message, op, b)


def check_ext(op: Operation) -> None:
    """What rows are read from, and written to, is as large as the op's loops."""
    relations = list(RELATIONS[type(op)](op))
    b = IndexBuilder(InsertPoint.before(op))
    for (lhs, axis), (rhs, other), predicate in relations:
        left, right = dim(lhs, axis, b), dim(rhs, other, b)
        verb = "equal" if predicate == "eq" else "be at most"
        where = [list(op.operands).index(v) for v in (lhs, rhs)]
        message = f"dim {axis} of operand {where[0]} must {verb} dim {other} of operand {where[1]}"
        require(left, right, predicate, f"{message} of {op.name}", op, b)


Place = tuple[SSAValue, int]
"""A dim of an operand."""


def like(values: Sequence[SSAValue], whole: SSAValue) -> Iterator[tuple[Place, Place, str]]:
    """All dims are equal."""
    for value in values:
        for axis in range(rank(whole)):
            yield (value, axis), (whole, axis), "eq"


def rank(value: SSAValue) -> int:
    """The number of dims of a tensor."""
    assert isinstance(value.type, TensorType)
    return value.type.get_num_dims()


def sort_relations(op: ext.SortOp) -> Iterator[tuple[Place, Place, str]]:
    """All operands have one shape."""
    first, *rest = (*op.outputs, *op.inputs)
    yield from like(rest, first)


def topk_relations(op: ext.TopkV2Op) -> Iterator[tuple[Place, Place, str]]:
    """The results are as long as the values but for K, which is no more."""
    yield from like([op.indices] if op.indices is not None else [], op.values)
    for output in op.outputs:
        for axis in range(rank(output)):
            chosen = axis == op.dimension.value.data
            yield (output, axis), (op.values, axis), "sle" if chosen else "eq"
    yield from like(op.outputs[1:], op.outputs[0])


def scan_relations(op: ext.ScanOp) -> Iterator[tuple[Place, Place, str]]:
    """The accumulator lacks one dim."""
    yield from like([op.output], op.input)
    kept = [axis for axis in range(rank(op.input)) if axis != op.dimension.value.data]
    for axis, source in enumerate(kept):
        yield (op.accumulator, axis), (op.input, source), "eq"


def scatter_relations(op: ext.ScatterOp) -> Iterator[tuple[Place, Place, str]]:
    """Updates are a batch like the indices, of slices that the original has room for."""
    indexed = list(op.dimension_map.get_values())
    kept = [d for d in range(rank(op.original)) if d not in indexed]
    batch = rank(op.updates) - len(kept)
    for beside in (op.indices, op.mask):
        if beside is not None:
            for axis in range(batch):
                yield (beside, axis), (op.updates, axis), "eq"
    for axis, target in enumerate(kept):
        yield (op.updates, batch + axis), (op.original, target), "sle"


RELATIONS: dict[type[Operation], Callable[..., Iterator[tuple[Place, Place, str]]]] = {
    ext.SortOp: sort_relations,
    ext.TopkV2Op: topk_relations,
    ext.ScanOp: scan_relations,
    ext.ScatterOp: scatter_relations,
}


@dataclass(frozen=True)
class InsertShapeChecksPass(ModulePass):
    """Dims that must agree are asserted on the host."""

    name = "irees-insert-shape-checks"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for inner in list(op.walk()):
            if isinstance(inner, linalg.GenericOp) and inner.res:
                check_structured(inner)
                clamp_extracts(inner)
            elif isinstance(inner, tensor.ExtractSliceOp | tensor.InsertSliceOp):
                check_slice(inner)
            elif type(inner) in RELATIONS and inner.results:
                check_ext(inner)
