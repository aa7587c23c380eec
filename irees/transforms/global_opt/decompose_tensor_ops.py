"""
Decomposes pad, concat, splat and generate into insertions and structured ops.

After this pass, tensors are computed by structured ops and `iree_linalg_ext` ops, and moved by
`tensor.extract_slice` and `tensor.insert_slice`. Code generation handles nothing else.

    %p = tensor.pad %x low[0, 1] high[0, 1] { yield %zero } : tensor<4x8xf32> to tensor<4x10xf32>
  =>
    %f = linalg.fill ins(%zero) outs(tensor.empty)
    %p = tensor.insert_slice %x into %f[0, 1] [4, 8] [1, 1]

`tensor.concat` becomes one insertion per operand, `tensor.splat` a fill, and
`tensor.generate` a generic that reads its loop indices. Two halves of a short row that elementwise
ops read, as in a rotary embedding, are selected from instead, so that both ends fuse:

    %c = tensor.concat dim(1) %a, %b : (tensor<4x32xf32>, tensor<4x32xf32>) -> tensor<4x64xf32>
  =>
    %s = linalg.generic {(i, h, j) -> (i, j), (i, h, j) -> (i, j)} ins(%a, %b) { h == 0 ? a : b }
    %c = tensor.collapse_shape %s [[0], [1, 2]] : tensor<4x2x32xf32> into tensor<4x64xf32>

If a pad computes its value in its body,
that body becomes a generate. IREE: `DecomposeConcat`, `linalg`'s pad decomposition.
"""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects import tensor
from xdsl.dialects.builtin import ModuleOp, TensorType
from xdsl.dialects.linalg import ops as linalg
from xdsl.ir import Block, Operation, Region, SSAValue
from xdsl.ir.affine import AffineConstantExpr, AffineDimExpr, AffineMap
from xdsl.passes import ModulePass
from xdsl.rewriter import InsertPoint, Rewriter

from irees.targets.common import COMMON
from irees.transforms.utils.reshapes import collapse
from irees.transforms.utils.shapes import IndexBuilder, Size, dim, dims, mixed, static_shape
from irees.transforms.utils.structured import copy_region, generic, is_parallel
from irees.transforms.utils.tensors import (
    ScalarBuilder,
    TensorBuilder,
    empty,
    insert_slice,
    select_dims,
)
from irees.verification import verify_made


def fill(value: SSAValue, kind: TensorType, sizes: list[Size], builder: IndexBuilder) -> SSAValue:
    """Returns a tensor filled with `value`."""
    rank = len(kind.get_shape())
    target = empty(kind, sizes, builder)
    op = generic(
        [value],
        [target],
        [AffineMap(rank, 0, ()), AffineMap.identity(rank)],
        ["parallel"] * rank,
        copy_region([value.type, value.type], 0, value.type),
    )
    return builder.insert(op).results[0]


def generate(kind: TensorType, sizes: list[Size], body: Region, builder: IndexBuilder) -> SSAValue:
    """Returns a tensor whose elements the body computes from their indices."""
    rank = len(kind.get_shape())
    target = empty(kind, sizes, builder)
    block = Block(arg_types=[kind.get_element_type()])
    mapping: dict[SSAValue, SSAValue] = {}
    for position, argument in enumerate(body.block.args):
        index = linalg.IndexOp(position)
        block.add_op(index)
        mapping[argument] = index.result
    for op in body.block.ops:
        if isinstance(op, tensor.YieldOp):
            block.add_op(linalg.YieldOp(*[mapping.get(v, v) for v in op.operands]))
            break
        copy = op.clone(value_mapper=mapping)
        block.add_op(copy)
    op = generic([], [target], [AffineMap.identity(rank)], ["parallel"] * rank, Region(block))
    return builder.insert(op).results[0]


def _placed(
    op: Operation, source: SSAValue, into: SSAValue, offsets: list[Size], sizes: list[Size],
    builder: IndexBuilder,
) -> SSAValue:  # fmt: skip
    """Inserts a source at offsets. Raises VerifyError if it is provably out of bounds."""
    result = insert_slice(source, into, offsets, sizes, builder)
    assert isinstance(result.owner, Operation)
    verify_made(result.owner, op)
    return result


def decompose_pad(op: tensor.PadOp, builder: IndexBuilder) -> SSAValue:
    """pad(x, v)  =>  insert_slice(x, fill(v))"""
    kind = op.result.type
    assert isinstance(kind, TensorType)
    sizes = dims(op.result, builder)
    body = op.region
    terminator = body.block.last_op
    assert terminator is not None
    value = terminator.operands[0]
    if len(list(body.block.ops)) == 1 and value not in body.block.args:
        background = fill(value, kind, sizes, builder)
    else:
        background = generate(kind, sizes, body, builder)
    low = mixed(op.static_low.get_values(), op.low)
    return _placed(op, op.source, background, low, dims(op.source, builder), builder)


def decompose_concat(op: tensor.ConcatOp, builder: IndexBuilder) -> SSAValue:
    """concat(a, b)  =>  insert_slice(b, insert_slice(a, empty))"""
    kind = op.result.type
    assert isinstance(kind, TensorType)
    axis = op.dim.value.data
    result = empty(kind, dims(op.result, builder), builder)
    at: Size = 0
    for operand in op.inputs:
        sizes = dims(operand, builder)
        offsets: list[Size] = [0] * len(sizes)
        offsets[axis] = at
        result = _placed(op, operand, result, offsets, sizes, builder)
        at = builder.add(at, dim(operand, axis, builder))
    return result


def has_short_halves(op: tensor.ConcatOp) -> bool:
    """Whether an op joins two halves of a short row, and elementwise ops read the result."""
    kinds = [value.type for value in op.inputs]
    rank = op.result.type.get_num_dims()  # type: ignore
    if len(kinds) != 2 or op.dim.value.data != rank - 1:
        return False
    halves = [kind.get_shape()[-1] for kind in kinds]  # type: ignore
    if halves[0] != halves[1] or not 0 < halves[0] <= COMMON.selected_elements:
        return False
    users = [use.operation for use in op.result.uses]
    return bool(users) and all(isinstance(u, linalg.GenericOp) and is_parallel(u) for u in users)


def select_halves(op: tensor.ConcatOp) -> SSAValue:
    """concat(a, b)[..., i]  =>  collapse(select(j == 0, a[..., i], b[..., i]))[..., (j, i)]"""
    b = TensorBuilder(op)
    kind = op.result.type
    assert isinstance(kind, TensorType)
    rank, (*rows, width) = kind.get_num_dims(), dims(op.result, b)
    assert isinstance(width, int)
    half = select_dims(rank + 1, [*range(rank - 1), rank])
    init = b.empty(kind.element_type, [*rows, 2, width // 2])

    def body(s: ScalarBuilder, v: list[SSAValue]) -> list[SSAValue]:
        first = s.compare(s.index(rank - 1), 0, "eq")
        return [s.select(first, v[0], v[1])]

    maps = [half, half, AffineMap.identity(rank + 1)]
    (result,) = b.compute(list(op.inputs), [init], maps, body)
    groups = [*([d] for d in range(rank - 1)), [rank - 1, rank]]
    joined = TensorType(kind.element_type, static_shape([*rows, width]))
    return b.cast_tensor(collapse(result, groups, joined, b), kind)


def is_stack(op: tensor.ConcatOp) -> bool:
    """Whether an op stacks a few tensors along its last dim, as pairs or pixels of colors."""
    kinds = [value.type for value in op.inputs]
    rank = op.result.type.get_num_dims()  # type: ignore
    if not 1 < len(kinds) <= COMMON.stacked_tensors or op.dim.value.data != rank - 1:
        return False
    return all(kind.get_shape()[-1] == 1 for kind in kinds)  # type: ignore


def select_stacked(op: tensor.ConcatOp) -> SSAValue:
    """concat(a, b)[.., i]  =>  select(i == 0, a[.., 0], b[.., 0])"""
    b = TensorBuilder(op)
    kind = op.result.type
    assert isinstance(kind, TensorType)
    last = kind.get_num_dims() - 1
    init = b.empty(kind.element_type, [*dims(op.result, b)[:-1], len(op.inputs)])
    rows = [AffineDimExpr(d) for d in range(last)]
    source = AffineMap(last + 1, 0, (*rows, AffineConstantExpr(0)))

    def body(s: ScalarBuilder, v: list[SSAValue]) -> list[SSAValue]:
        found = v[len(op.inputs) - 1]
        for number in reversed(range(len(op.inputs) - 1)):
            found = s.select(s.compare(s.index(last), number, "eq"), v[number], found)
        return [found]

    maps = [*[source] * len(op.inputs), AffineMap.identity(last + 1)]
    (result,) = b.compute(list(op.inputs), [init], maps, body)
    return b.cast_tensor(result, kind)


def decompose(op: Operation) -> SSAValue | None:
    """Returns the replacement of an op, None if the op stays."""
    if op.parent is None:
        return None
    builder = IndexBuilder(InsertPoint.before(op))
    if isinstance(op, tensor.PadOp):
        return decompose_pad(op, builder)
    if isinstance(op, tensor.ConcatOp) and has_short_halves(op):
        return select_halves(op)
    if isinstance(op, tensor.ConcatOp) and is_stack(op):
        return select_stacked(op)
    if isinstance(op, tensor.ConcatOp):
        return decompose_concat(op, builder)
    if isinstance(op, tensor.SplatOp):
        kind = op.results[0].type
        assert isinstance(kind, TensorType)
        return fill(op.operands[0], kind, mixed(kind.get_shape(), op.operands[1:]), builder)
    if op.name == "tensor.generate":
        kind = op.results[0].type
        assert isinstance(kind, TensorType)
        sizes = mixed(kind.get_shape(), op.operands)
        return generate(kind, sizes, op.regions[0], builder)
    return None


@dataclass(frozen=True)
class DecomposeTensorOpsPass(ModulePass):
    """Decomposes pad, concat, splat and generate into insertions and structured ops."""

    name = "irees-decompose-tensor-ops"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for inner in list(op.walk()):
            result = decompose(inner)
            if result is not None:
                Rewriter.replace_op(inner, [], [result])
