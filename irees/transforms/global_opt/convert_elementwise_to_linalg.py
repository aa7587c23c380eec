"""
Converts arithmetic on tensors to `linalg.generic`.

    %0 = arith.addf %x, %y : tensor<4x?xf32>
  =>
    %e = tensor.empty(%n) : tensor<4x?xf32>
    %0 = linalg.generic ins(%x, %y) outs(%e) {
    ^bb0(%a: f32, %b: f32, %out: f32):
      %1 = arith.addf %a, %b : f32
      linalg.yield %1 : f32
    }

The pass converts each op of `arith` and `math` with tensor results, except constants. These ops are
elementwise. A scalar operand, such as the condition of an `arith.select`, applies to all elements.
MLIR: `convert-elementwise-to-linalg`.
"""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp, TensorType
from xdsl.dialects.linalg import ops as linalg
from xdsl.ir import Block, Operation, Region, SSAValue
from xdsl.ir.affine import AffineMap
from xdsl.passes import ModulePass
from xdsl.rewriter import InsertPoint, Rewriter
from xdsl.traits import ConstantLike

from irees.transforms.utils.copies import same_op
from irees.transforms.utils.shapes import IndexBuilder, dims
from irees.transforms.utils.structured import generic
from irees.transforms.utils.tensors import empty

DIALECTS = ("arith", "math")


def is_elementwise(op: Operation) -> bool:
    """Whether an op applies elementwise to tensors."""
    kinds = [result.type for result in op.results]
    if op.name.split(".")[0] not in DIALECTS or op.has_trait(ConstantLike):
        return False
    return bool(kinds) and all(isinstance(kind, TensorType) for kind in kinds)


def convert(op: Operation) -> None:
    """arith.op %x, %y : tensor<..>  =>  linalg.generic { arith.op %a, %b }"""
    tensors = [value for value in op.operands if isinstance(value.type, TensorType)]
    kinds = [r.type for r in op.results if isinstance(r.type, TensorType)]
    elements = [value.type.get_element_type() for value in tensors]  # pyright: ignore
    results = [kind.get_element_type() for kind in kinds]
    block = Block(arg_types=[*elements, *results])
    values: dict[SSAValue, SSAValue] = dict(zip(tensors, block.args))
    inner = same_op(op, [values.get(value, value) for value in op.operands], results)
    block.add_ops([inner, linalg.YieldOp(*inner.results)])
    at = IndexBuilder(InsertPoint.before(op))
    sizes = dims(tensors[0], at)
    outputs = [empty(kind, sizes, at) for kind in kinds]
    identity = AffineMap.identity(len(sizes))
    maps = [identity] * (len(tensors) + len(outputs))
    new = generic(tensors, outputs, maps, ["parallel"] * len(sizes), Region(block))
    new.location = op.location
    Rewriter.replace_op(op, new)


@dataclass(frozen=True)
class ConvertElementwiseToLinalgPass(ModulePass):
    """Converts arithmetic on tensors to linalg.generic."""

    name = "irees-convert-elementwise-to-linalg"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for inner in list(op.walk()):
            if is_elementwise(inner):
                convert(inner)
