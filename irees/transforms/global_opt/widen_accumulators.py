"""
Widens f16 and bf16 accumulators of reductions to f32, and rounds once at the end.

JAX and StableHLO write products with f16 or bf16 accumulators, which round at every addition. No
processor computes like this: dot-product instructions for halves accumulate in f32.

    %r = linalg.generic ins(%a, %b : bf16) outs(%c : bf16) {
      %p = arith.mulf %x, %y : bf16
      %s = arith.addf %acc, %p : bf16
    }
  =>
    %w = "extf"(%c)
    %t = linalg.generic ins(%a, %b : bf16) outs(%w : f32) {
      %p = arith.mulf (extf %x), (extf %y) : f32
      %s = arith.addf %acc, %p : f32
    }
    %r = "truncf"(%t)

A product of two halves is exact in f32. A term that is not a product is still rounded to half, as
written in the program, and then widened. A maximum is exact in either type; it is widened too,
because f32 has vector instructions. The pass does not run with `fp=strict`. IREE computes halves in
f32 on CPUs and rounds values when they are stored (`ConvertBf16ArithToF32`).
"""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects import arith
from xdsl.dialects.builtin import AnyFloat, FixedBitwidthType, ModuleOp, TensorType, f32
from xdsl.dialects.linalg import ops as linalg
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue
from xdsl.ir.affine import AffineMap
from xdsl.passes import ModulePass
from xdsl.rewriter import InsertPoint, Rewriter
from xdsl.utils.hints import isa

from irees.dialects.irees_target import is_strict
from irees.rewrites import may_rewrite
from irees.transforms.utils.combiners import combiners
from irees.transforms.utils.copies import same_op
from irees.transforms.utils.shapes import IndexBuilder, dims
from irees.transforms.utils.structured import (
    element_type,
    filled_value,
    generic,
    is_parallel,
    iterators,
    maps,
)
from irees.transforms.utils.tensors import ScalarBuilder, empty

NAME = "irees-widen-accumulators"


def is_narrow(kind: Attribute) -> bool:
    """Whether a type is a float of fewer bits than f32."""
    return isa(kind, AnyFloat) and isinstance(kind, FixedBitwidthType) and kind.bitwidth < 32


def fold_of_halves(op: linalg.GenericOp) -> Operation | None:
    """Returns the combiner of a reduction with a single output of a narrow float, or None."""
    if is_parallel(op) or len(op.outputs) != 1 or not is_narrow(element_type(op.outputs[0])):
        return None
    folds = combiners(op)
    return folds[0] if folds else None


def cast(value: SSAValue, element: Attribute, at: IndexBuilder) -> SSAValue:
    """%x : tensor<..xbf16>  =>  tensor<..xf32>, or back; a fill becomes a fill"""
    kind = value.type
    assert isinstance(kind, TensorType)
    rank = len(kind.get_shape())
    sizes = dims(value, at)
    target = empty(TensorType(element, kind.get_shape()), sizes, at)
    filled = filled_value(value.owner) if isinstance(value.owner, linalg.GenericOp) else None
    inputs = [value] if filled is None else []
    block = Block(arg_types=[*(element_type(each) for each in inputs), element])
    body = ScalarBuilder(block)
    if filled is None:
        result = body.cast(block.args[0], element)
    else:
        result = body.number(filled.value.value.data, element)  # pyright: ignore
    body.insert(linalg.YieldOp(result))
    identity = [AffineMap.identity(rank)] * (len(inputs) + 1)
    new = generic(inputs, [target], identity, ["parallel"] * rank, Region(block))
    return at.insert(new).results[0]


def widen_fold(fold: Operation, narrow: SSAValue, wide: SSAValue) -> None:
    """acc + x * y : bf16  =>  acc + ext(x) * ext(y) : f32"""
    at = ScalarBuilder.before(fold)
    (term,) = (value for value in fold.operands if value is not narrow)
    product = term.owner
    if isinstance(product, arith.MulfOp) and isinstance(fold, arith.AddfOp) and term.has_one_use():
        widened = at.op(arith.MulfOp, *(at.cast(v, f32) for v in product.operands))
    else:
        product, widened = None, at.cast(term, f32)
    operands = [wide if value is narrow else widened for value in fold.operands]
    Rewriter.replace_op(fold, same_op(fold, operands, [f32]))
    if product is not None:
        Rewriter.erase_op(product)


def widen(op: linalg.GenericOp) -> bool:
    """reduce(%c : bf16)  =>  truncf(reduce(extf %c))"""
    fold = fold_of_halves(op)
    if fold is None or not may_rewrite(NAME, op, "an accumulator of halves"):
        return False
    at = IndexBuilder(InsertPoint.before(op))
    wide = cast(op.outputs[0], f32, at)
    block = op.body.block
    old = block.args[-1]
    widen_fold(fold, old, block.insert_arg(f32, len(block.args)))
    block.erase_arg(old)
    new = generic(op.inputs, [wide], maps(op), iterators(op), op.detach_region(op.body))
    new.attributes |= op.attributes
    new.location = op.location
    at.insert(new)
    Rewriter.replace_op(op, [], [cast(new.results[0], element_type(op.outputs[0]), at)])
    return True


@dataclass(frozen=True)
class WidenAccumulatorsPass(ModulePass):
    """Widens narrow float accumulators to f32."""

    name = "irees-widen-accumulators"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        if is_strict(op):
            return
        for inner in [o for o in op.walk() if isinstance(o, linalg.GenericOp)]:
            widen(inner)
