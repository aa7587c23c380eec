"""
Lowers reductions of vectors to shuffles and operations on vectors.

A C compiler does not unroll a tree of additions over the lanes of a vector: gcc 12 makes a loop
through memory of it. Here each step combines the lanes of the first half with those of the second
one, so that lane 0 is the result after log2(N) steps. A number of lanes that is no power of two is
combined lane by lane.

    %r = vector.reduction <add>, %v : vector<4xf32> into f32
  =>
    %h = vector.shuffle %v, %v [2, 3, 0, 1] ; %a = arith.addf %v, %h
    %q = vector.shuffle %a, %a [1, 0, 3, 2] ; %b = arith.addf %a, %q
    %r = vector.extract %b[0]

An accumulator is combined last. A thread of a GPU has all lanes in registers of its own: there the
op stays, without its accumulator. So does the `and` or `or` of a mask where one instruction moves
its bits to a scalar register. LLVM: `ExpandReductions`.
"""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects import vector
from xdsl.dialects.builtin import DenseArrayBase, ModuleOp, VectorType, i1, i64
from xdsl.ir import Operation, SSAValue
from xdsl.passes import ModulePass
from xdsl.rewriter import InsertPoint, Rewriter

from irees.dialects.irees_target import target_of
from irees.target import Target
from irees.transforms.utils.combiners import of_kind
from irees.transforms.utils.lanes import Insert, lane_of
from irees.transforms.utils.shapes import insert_located


def halved(v: SSAValue, kind: str, insert: Insert) -> SSAValue:
    """Lane 0 of a vector of 2^n lanes, each step combined with the lane half as far again."""
    assert isinstance(v.type, VectorType)
    (count,) = v.type.get_shape()
    half = count // 2
    while half:
        order = [lane ^ half for lane in range(count)]
        lanes = DenseArrayBase.from_list(i64, order)
        swapped = insert(vector.ShuffleOp(v, v, lanes, result_type=v.type)).results[0]
        v = insert(of_kind(kind, v, swapped)).results[0]
        half //= 2
    return lane_of(v, 0, insert)


def in_turn(v: SSAValue, kind: str, insert: Insert) -> SSAValue:
    """All lanes of a vector, combined from the first to the last."""
    assert isinstance(v.type, VectorType)
    total = lane_of(v, 0, insert)
    for lane in range(1, v.type.get_shape()[0]):
        total = insert(of_kind(kind, total, lane_of(v, lane, insert))).results[0]
    return total


def in_lanes(v: SSAValue, kind: str, insert: Insert) -> SSAValue:
    """The reduction itself, without an accumulator."""
    assert isinstance(v.type, VectorType)
    properties = {"kind": vector.CombiningKindAttr(vector.CombiningKindFlag(kind))}
    op = vector.ReductionOp.create(
        operands=[v], result_types=[v.type.element_type], properties=properties
    )
    return insert(op).results[0]


def is_one_test(v: SSAValue, kind: str, target: Target) -> bool:
    """Whether the C printer has one test for the `and` or `or` of a mask."""
    assert isinstance(v.type, VectorType)
    (count,) = v.type.get_shape()
    return v.type.element_type == i1 and kind in ("and", "or") and count in target.tested_lanes


@dataclass(frozen=True)
class LowerVectorReductionsPass(ModulePass):
    """Lowers `vector.reduction` to shuffles and operations on vectors."""

    name = "irees-lower-vector-reductions"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        target = target_of(op)
        for inner in [o for o in op.walk() if isinstance(o, vector.ReductionOp)]:
            kind = str(inner.kind.data.value)
            stays = target.gpu is not None or is_one_test(inner.vector, kind, target)
            if stays and inner.acc is None:
                continue
            point = InsertPoint.before(inner)

            def insert(made: Operation, point: InsertPoint = point) -> Operation:
                insert_located(made, point)
                return made

            (count,) = inner.vector.type.get_shape()
            fold = in_lanes if stays else in_turn if count & (count - 1) else halved
            result = fold(inner.vector, kind, insert)
            if inner.acc is not None:
                result = insert(of_kind(kind, result, inner.acc)).results[0]
            Rewriter.replace_op(inner, [], [result])
