"""
Inserts host-side asserts on dynamic shapes.

In `linalg`, a `?` that is 3 in one operand and 1 in another is undefined behaviour; in irees it
would be an out-of-bounds read. `irees/dialects/shape_relations.py` states the required relations of
all ops. This pass asserts them before any kernel runs. It runs before named ops are decomposed, so
messages name the user's op and decompositions do not repeat the checks. A check between two
function arguments also goes into the manifest; a violation raises an ArgumentError that names both.

    %r = tensor.cast %x : tensor<?xf32> to tensor<4xf32>
  =>
    %0 = arith.cmpi eq, dim %x, 4
    cf.assert %0, "dim 0 of the result of tensor.cast must be 4"
    %r = tensor.cast %x : tensor<?xf32> to tensor<4xf32>

If each loop occurs once in an index of an affine map, exact bounds of the index follow from the
trip counts: `(i, j) -> (i * 2 - j + 1)` has the bounds `2 - nj` and `2 * ni - 1`. Where such bounds
are not exact, as for `(i mod 3) * 4 - i`, the host checks every iteration in a loop.

The pass also asserts `util.assume.int`, because analyses rely on it, and that loop steps are
positive. A loop with a non-constant step is rewritten to count its iterations.

Equal SSA values and equal constants need no check, so a program whose shapes derive from one
another has no overhead.
"""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects import arith, scf, tensor
from xdsl.dialects.builtin import ModuleOp, TensorType
from xdsl.dialects.linalg import ops as linalg
from xdsl.dialects.linalg.abstract_ops import LinalgStructuredOperation
from xdsl.ir import Block, Operation, Region, SSAValue
from xdsl.passes import ModulePass
from xdsl.rewriter import InsertPoint

from irees.analysis.affine_steps import linear_form
from irees.dialects.shape_relations import Row, row_of
from irees.dialects.sizes import Dim, Scalar, Window, evaluate
from irees.dialects.util import AssumeIntOp
from irees.transforms.global_opt.insert_shape_checks.assumption_checks import check_assumption
from irees.transforms.global_opt.insert_shape_checks.requirements import (
    Requirement,
    count_iterations,
)
from irees.transforms.global_opt.insert_shape_checks.window_checks import WindowCheck
from irees.transforms.utils.shapes import (
    IndexBuilder,
    Size,
    dim,
    shape_element,
)
from irees.transforms.utils.structured import iterators


def guard(op: linalg.GenericOp, loops: set[int], sizes: dict[int, Size]) -> None:
    """
    op  =>  scf.if (no loop of these is empty) { op } else { the inits }

    Code generation hoists reads that are invariant in a reduction loop. If the loop is empty, a
    hoisted read may be out of bounds.
    """
    b = IndexBuilder(InsertPoint.before(op))
    positive: SSAValue | None = None
    for loop in sorted(loops):
        size = sizes[loop]
        if isinstance(size, int):
            size = b.value(size)
        some = b.insert(arith.CmpiOp(b.value(0), size, "slt")).results[0]
        positive = some if positive is None else b.insert(arith.AndIOp(positive, some)).results[0]
    assert positive is not None
    kinds = [result.type for result in op.results]
    taken, left = Block(), Block([scf.YieldOp(*op.outputs)])
    choice = scf.IfOp(positive, kinds, Region(taken), Region(left))
    b.insert(choice)
    for old, new in zip(op.results, choice.results, strict=True):
        old.replace_all_uses_with(new)
    op.detach()
    taken.add_ops([op, scf.YieldOp(*op.results)])


def check(op: Operation, row: Row) -> None:
    """Asserts the relations of an op's table row before the op."""
    b = IndexBuilder(InsertPoint.before(op))
    outside: set[int] = set()
    sizes: dict[int, Size] = {}

    def leaf(what: Dim | Scalar) -> Size:
        if isinstance(what, Dim):
            return dim(what.value, what.axis, b)
        return what.value if what.at is None else shape_element(what.value, what.at, b)

    for relation in row(op):
        if isinstance(relation, Window):
            loops = {loop: evaluate(size, leaf, b) for loop, size in relation.loops.items()}
            WindowCheck(relation, op, b, loops, evaluate(relation.extent, leaf, b)).run()
            outside |= set(loops) - relation.own
            sizes |= loops
            continue
        rhs, lhs = evaluate(relation.rhs, leaf, b), evaluate(relation.lhs, leaf, b)
        unless = [evaluate(size, leaf, b) for size in relation.unless]
        Requirement(lhs, relation.predicate, rhs, relation.message, unless).check(op, b)
    if isinstance(op, linalg.GenericOp) and outside:
        kinds = iterators(op)
        empty = {x for x in outside if kinds[x] != "parallel" and not is_positive(sizes[x])}
        if empty:
            guard(op, empty, sizes)


def read_once(op: tensor.ReshapeOp) -> None:
    """
    tensor.reshape %x(%s)  =>  tensor.reshape %x(tensor.from_elements (%s[0], %s[1], ...))

    Reads the shape once, so that the checked values are the used ones: the caller owns the memory
    of the shape and may write to it concurrently.
    """
    kind = op.shape.type
    if isinstance(op.shape.owner, tensor.FromElementsOp) or not isinstance(kind, TensorType):
        return
    b = IndexBuilder(InsertPoint.before(op))
    elements = [shape_element(op.shape, at, b) for at in range(kind.get_shape()[0])]
    if elements:
        shape = TensorType(elements[0].type, [len(elements)])
        op.operands[1] = b.insert(tensor.FromElementsOp(*elements, result_type=shape)).results[0]


def is_positive(size: Size) -> bool:
    """Whether a size is a positive constant."""
    return isinstance(size, int) and size > 0


def may_disagree(op: Operation) -> bool:
    """Whether an op has sizes or indices that its verifier cannot check."""
    if not isinstance(op, LinalgStructuredOperation):
        return True
    kinds = [v.type for v in (*op.operands, *op.results)]
    if any(isinstance(k, TensorType) and not k.has_static_shape() for k in kinds):
        return True
    # The verifier checks the first and last iteration only; floordiv and mod may peak in between.
    return any(linear_form(e) is None for m in op.get_indexing_maps() for e in m.data.results)


@dataclass(frozen=True)
class InsertShapeChecksPass(ModulePass):
    """Asserts required relations of dynamic dims on the host."""

    name = "irees-insert-shape-checks"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for inner in list(op.walk()):
            if isinstance(inner, AssumeIntOp):
                check_assumption(inner)
                continue
            if isinstance(inner, scf.ForOp):
                count_iterations(inner)
            if isinstance(inner, tensor.ReshapeOp):
                read_once(inner)
            row = row_of(inner) if inner.results else None
            if row is not None and may_disagree(inner):
                check(inner, row)
