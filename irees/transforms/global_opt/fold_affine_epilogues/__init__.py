"""
Folds the per-channel scale after a convolution into its constant filter.

A batch norm at inference is `(x - mean) * inverse * gamma + beta` with constants per channel, which
is `x * s + t`. A contraction is linear, so its weights can absorb s. The epilogue then adds one
vector instead of reading four.

    %x = conv(%image, %w)
    %r = linalg.generic ins(%x, %mean, %inverse, %gamma, %beta) {
      maximumf((x - mean) * inverse * gamma + beta, 0) }
  =>
    %x = conv(%image, %w * s)
    %r = linalg.generic ins(%x, %t) { maximumf(x + t, 0) }

The pass folds the longest chain of additions of, and multiplications by, per-channel constants, if
the chain contains a multiplication. The reference interpreter evaluates s and t. The pass also
precomputes any other expression that depends only on per-channel constants.

The pass skips contractions that have other readers, that lack a constant operand with the channel
dim, or that do not start from +0; elements other than f32 and f64; and filters that would not be
finite. Folding a scale changes the rounding and possibly the sign of a zero. So with `fp=strict`
the pipeline sets `scale=false`, which keeps only the exact part. ONNX Runtime: `ConvBNFusion`,
`ConvMulFusion`; PyTorch: `fuse_conv_bn_eval`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from xdsl.context import Context
from xdsl.dialects import arith
from xdsl.dialects.builtin import Float32Type, Float64Type, ModuleOp, TensorType
from xdsl.dialects.linalg import ops as linalg
from xdsl.ir import OpResult
from xdsl.ir.affine import AffineDimExpr
from xdsl.passes import ModulePass
from xdsl.rewriter import InsertPoint, Rewriter

from irees.analysis.contractions import is_contraction, multiply_add
from irees.dialects.irees_target import is_strict
from irees.errors import RuntimeTrap, UnsupportedError
from irees.rewrites import may_rewrite
from irees.transforms.global_opt.fold_affine_epilogues.channel_constants import (
    Channel,
    Step,
    chain_of,
)
from irees.transforms.utils.constants import (
    array_of,
    constant_of,
    derived_constant,
    is_large_splat,
)
from irees.transforms.utils.structured import element_type, generic, is_zero_fill, iterators, maps
from irees.transforms.utils.tensors import select_dims
from irees.transforms.utils.unused_results import erase_dead_code, without_unused_inputs

NAME = "irees-fold-affine-epilogues"


@dataclass(frozen=True)
class Weights:
    """The constant operand of a contraction, and its channel dim."""

    position: int
    dim: int


def weights_of(op: linalg.GenericOp, result_dim: int) -> Weights | None:
    """Returns the constant operand that can absorb a per-channel scale of the result, or None."""
    parts, loop = multiply_add(op), maps(op)[-1].results[result_dim]
    if parts is None or not isinstance(loop, AffineDimExpr):
        return None
    init = op.outputs[0].owner
    if not isinstance(init, linalg.GenericOp) or not is_zero_fill(init):
        return None
    if parts.widen_lhs or parts.widen_rhs:
        return None
    for position in (parts.rhs, parts.lhs):
        exprs = maps(op)[position].results
        owner = op.operands[position].owner
        if not isinstance(owner, arith.ConstantOp) or is_large_splat(owner):
            continue
        if exprs.count(loop) == 1 and all(isinstance(e, AffineDimExpr) for e in exprs):
            return Weights(position, exprs.index(loop))
    return None


def scaled(constant: arith.ConstantOp, dim: int, scale: np.ndarray) -> arith.ConstantOp | None:
    """w * s along a dim, or None if an element is not finite"""
    kind, array = constant.result.type, array_of(constant)
    assert isinstance(kind, TensorType)
    assert isinstance(array, np.ndarray)
    factors = scale.astype(array.dtype)
    others = tuple(d for d in range(array.ndim) if d != dim)
    with np.errstate(all="ignore"):
        # Rounding is monotonic: the product of the largest element is the largest product.
        largest = np.abs(array).max(axis=others, initial=0) * np.abs(factors)
    if not np.isfinite(largest).all():
        return None
    factors = factors.reshape([-1 if d == dim else 1 for d in range(array.ndim)])
    by = constant_of(factors, TensorType(kind.element_type, factors.shape))

    def make(sources: Sequence[np.ndarray], out: np.ndarray) -> None:
        np.multiply(*sources, out=out)

    return derived_constant([constant, by], make, kind, "scaled")


@dataclass(frozen=True)
class Epilogue:
    """x * scale + shift along a loop of an epilogue, and the weights that absorb the scale."""

    loop: int
    steps: Sequence[Step]
    shift: np.ndarray
    operand: int
    """The position of the weights in the contraction."""
    weights: arith.ConstantOp
    """The weights times the scale."""


def scaled_epilogue(
    op: linalg.GenericOp, position: int, contraction: linalg.GenericOp
) -> Epilogue | None:
    """Returns the first scale of an input whose product with the weights is finite, or None."""
    for dim, loop in enumerate(maps(op)[position].results):
        weights = weights_of(contraction, dim)
        if weights is None or not isinstance(loop, AffineDimExpr):
            continue
        channel = Channel.of(op, loop.position)
        steps = chain_of(channel, op.body.block.args[position])
        if not steps or not channel.constants:
            continue
        try:
            scale, shift = channel.evaluate(steps, [])
        except (UnsupportedError, RuntimeTrap):
            continue
        old = contraction.operands[weights.position].owner
        assert isinstance(old, arith.ConstantOp)
        new = scaled(old, weights.dim, scale)
        if new is None or not np.isfinite(shift).all():
            continue
        new.location = old.location
        return Epilogue(loop.position, steps, shift, weights.position, new)
    return None


def fold_scale(op: linalg.GenericOp, position: int) -> linalg.GenericOp | None:
    """f(contraction(x, w) * s + t)  =>  f(contraction(x, w * s) + t)"""
    x = op.inputs[position]
    if not isinstance(x, OpResult) or not x.has_one_use():
        return None
    contraction = x.op
    if not isinstance(contraction, linalg.GenericOp) or not is_contraction(contraction):
        return None
    if not isinstance(element_type(x), Float32Type | Float64Type):
        return None
    found = scaled_epilogue(op, position, contraction)
    if found is None or not may_rewrite(NAME, op, "fold_scale of linalg.generic"):
        return None
    Rewriter.insert_op(found.weights, InsertPoint.before(contraction))
    contraction.operands[found.operand] = found.weights.result
    shift = constant_of(found.shift, _type_of(found.shift))
    added = with_constants(op, found.loop, [shift])
    argument = added.body.block.args[len(added.inputs) - 1]
    last = next(o for o in added.body.block.ops if o is found.steps[-1].op)
    plus = arith.AddfOp(found.steps[0].value, argument)
    Rewriter.insert_op(plus, InsertPoint.before(last))
    last.results[0].replace_all_uses_with(plus.result)
    return tidied(added)


def fold_known(op: linalg.GenericOp, loop: int) -> linalg.GenericOp | None:
    """f(x, g(c))  =>  f(x, c')  for per-channel constants c"""
    channel = Channel.of(op, loop)
    if not channel.constants:
        return None
    known = [
        o.results[0]
        for o in op.body.block.ops
        if o.results and o.results[0] in channel.known and not isinstance(o, arith.ConstantOp)
    ]
    ends = [
        v
        for v in known
        if isinstance(v.type, Float32Type | Float64Type)
        and any(not u.operation.results or u.operation.results[0] not in known for u in v.uses)
    ]
    if not ends:
        return None
    try:
        constants = channel.derived(ends)
    except (UnsupportedError, RuntimeTrap):
        return None
    if not may_rewrite(NAME, op, "fold_known of linalg.generic"):
        return None
    added = with_constants(op, loop, constants)
    first = len(added.inputs) - len(ends)
    for number, value in enumerate(ends):
        value.replace_all_uses_with(added.body.block.args[first + number])
    return tidied(added)


def with_constants(
    op: linalg.GenericOp, loop: int, constants: Sequence[arith.ConstantOp]
) -> linalg.GenericOp:
    """Returns the op with constants along `loop` as extra inputs, which its body does not read."""
    count, indexing = len(op.inputs), maps(op)
    along = select_dims(indexing[0].num_dims, [loop])
    inputs = list(op.inputs)
    body = op.detach_region(op.body)
    for constant in constants:
        constant.location = op.location
        Rewriter.insert_op(constant, InsertPoint.before(op))
        body.block.insert_arg(element_type(constant.result), len(inputs))
        inputs.append(constant.result)
    new_maps = [*indexing[:count], *([along] * len(constants)), *indexing[count:]]
    new = generic(inputs, op.outputs, new_maps, iterators(op), body)
    new.attributes.update(op.attributes)
    new.location = op.location
    Rewriter.replace_op(op, new)
    return new


def _type_of(array: np.ndarray) -> TensorType:
    element = Float32Type() if array.dtype == np.float32 else Float64Type()
    return TensorType(element, array.shape)


def tidied(op: linalg.GenericOp) -> linalg.GenericOp:
    """Returns the op without dead code in its body and without unused inputs."""
    erase_dead_code(op.body.block, Rewriter.erase_op)
    smaller = without_unused_inputs(op)
    if smaller is None:
        return op
    Rewriter.replace_op(op, smaller)
    return smaller


@dataclass(frozen=True)
class FoldAffineEpiloguesPass(ModulePass):
    """Precomputes per-channel constants; with `scale`, folds scales into contraction weights."""

    name = "irees-fold-affine-epilogues"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        # Resources are printed by the builtin dialect, which text without a module does not load.
        ctx.get_optional_op(ModuleOp.name)
        for inner in [o for o in op.walk() if isinstance(o, linalg.GenericOp) and o.res]:
            self.fold(inner, scale=not is_strict(op))

    def fold(self, op: linalg.GenericOp, *, scale: bool) -> None:
        """Applies the folds to one op."""
        if is_contraction(op):
            return
        position = 0
        while scale and position < len(op.inputs):
            new = fold_scale(op, position)
            # Inputs may have moved.
            op, position = (new, 0) if new is not None else (op, position + 1)
        for loop in range(len(iterators(op))):
            op = fold_known(op, loop) or op
