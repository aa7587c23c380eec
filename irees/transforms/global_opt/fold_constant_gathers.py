"""
Replaces a gather by a reshape if its constant indices read the tensor in order.

Frontends sometimes gather instead of reshaping: torch-mlir flattens the scale of a group norm with
one index tensor per dim. A gather blocks fusion with its source, a reshape does not.

    %r = linalg.generic ins(%i, %j : tensor<128xi64>, ..) {    // i = 0 0 0 0 1 .., j = 0 1 2 3 0 ..
      tensor.extract %x[%i, %j] : tensor<32x4xf32> }
  =>
    %r = tensor.collapse_shape %x [[0, 1]] : tensor<32x4xf32> into tensor<128xf32>

The reference interpreter computes the indices. A gather stays if it reads elements in another
order, twice, out of bounds, or not all of them, or if the result exceeds
`COMMON.gathered_elements`. PyTorch: `torch.flatten` as torch-mlir imports it.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

import numpy as np
from xdsl.context import Context
from xdsl.dialects import arith, tensor
from xdsl.dialects.builtin import ModuleOp, TensorType, i64
from xdsl.dialects.linalg import ops as linalg
from xdsl.ir import SSAValue
from xdsl.ir.affine import AffineMap
from xdsl.passes import ModulePass
from xdsl.rewriter import InsertPoint, Rewriter

from irees.dialects.storage import is_extract
from irees.errors import RuntimeTrap, UnsupportedError
from irees.interpreters import evaluate
from irees.rewrites import may_rewrite
from irees.targets.common import COMMON
from irees.transforms.utils.constants import array_of, constant_of
from irees.transforms.utils.reshapes import reshape
from irees.transforms.utils.shapes import IndexBuilder
from irees.transforms.utils.structured import (
    asserts,
    captured_values,
    generic,
    is_parallel,
    iterators,
    maps,
)
from irees.transforms.utils.unused_results import erase_dead_code

NAME = "irees-fold-constant-gathers"


def gathered(op: linalg.GenericOp) -> tensor.ExtractOp | None:
    """Returns the extract of a generic that only gathers at constant indices, None otherwise."""
    extract = op.body.block.last_op.operands[0].owner  # pyright: ignore
    if len(op.results) != 1 or not is_parallel(op) or not is_extract(extract) or asserts(op):
        return None
    indexing = maps(op)[-1]
    if indexing != AffineMap.identity(indexing.num_dims) or extract.parent is not op.body.block:
        return None
    source, kind = extract.tensor.type, op.results[0].type
    if not isinstance(source, TensorType) or not isinstance(kind, TensorType):
        return None
    if not source.has_static_shape() or not kind.has_static_shape():
        return None
    # All captured values except the source must be constants.
    outside = [v for v in captured_values(op) if v is not extract.tensor]
    constant = all(isinstance(v.owner, arith.ConstantOp) for v in (*op.inputs, *outside))
    return extract if constant else None


def places(op: linalg.GenericOp, extract: tensor.ExtractOp) -> np.ndarray:
    """
    Returns, for each element of the result, its linear index in the source.

    Raises UnsupportedError or RuntimeTrap if the op cannot be evaluated.
    """
    source, kind = extract.tensor.type, op.results[0].type
    assert isinstance(source, TensorType)
    assert isinstance(kind, TensorType)
    shape = source.get_shape()
    counted = constant_of(np.arange(prod(shape)).reshape(shape), TensorType(i64, shape))
    body = op.body.clone()
    block = body.block
    end = block.last_op
    assert end is not None
    read = end.operands[0].owner
    assert isinstance(read, tensor.ExtractOp)
    counting = tensor.ExtractOp(counted.result, list(read.indices), i64)
    Rewriter.replace_op(read, counting)
    block.erase_arg(block.args[-1])
    block.insert_arg(i64, len(block.args))
    places_type = TensorType(i64, kind.get_shape())
    init = tensor.EmptyOp((), places_type).results[0]
    numbered = generic(op.inputs, [init], maps(op), iterators(op), body)
    known = [array_of(v.owner) for v in op.inputs if isinstance(v.owner, arith.ConstantOp)]
    try:
        return np.asarray(evaluate(numbered, [*known, np.zeros(kind.get_shape(), np.int64)])[0])
    finally:
        # Erase the temporary op: it is a use of the index operands.
        numbered.erase()


def fold(op: linalg.GenericOp) -> SSAValue | None:
    """generic { tensor.extract %x[constants] }  =>  reshape %x; None if the op stays"""
    extract = gathered(op)
    if extract is None:
        return None
    source, kind = extract.tensor.type, op.results[0].type
    assert isinstance(source, TensorType)
    assert isinstance(kind, TensorType)
    elements = prod(kind.get_shape())
    if elements != prod(source.get_shape()) or not 0 < elements <= COMMON.gathered_elements:
        return None
    try:
        found = places(op, extract)
    except (UnsupportedError, RuntimeTrap):
        return None
    if not np.array_equal(found.reshape(-1), np.arange(elements)):
        return None
    if not may_rewrite(NAME, op, "fold of linalg.generic"):
        return None
    return reshape(extract.tensor, kind.get_shape(), IndexBuilder(InsertPoint.before(op)))


@dataclass(frozen=True)
class FoldConstantGathersPass(ModulePass):
    """Replaces gathers that read a tensor in order by reshapes."""

    name = "irees-fold-constant-gathers"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for inner in [o for o in op.walk() if isinstance(o, linalg.GenericOp)]:
            block = inner.parent
            if block is not None and (value := fold(inner)) is not None:
                Rewriter.replace_op(inner, [], [value])
                # The index constants would otherwise stay in the program.
                erase_dead_code(block, Rewriter.erase_op)
