"""
Decomposes one stage of a fast Fourier transform into a generic over its results.

A stage with block size m = 2^stage pairs each element of the first half of a block with the element
at distance m / 2, multiplied by the k-th root of unity (a butterfly):

    t = w[k] * x[base + k + m / 2];  y[base + k] = x[base + k] + t;  y[... + m / 2] = x[...] - t

Each iteration computes one result and derives its place in the butterfly from its index:

    %re, %im = iree_linalg_ext.fft ins(%stage, %wr, %wi) outs(%a, %b : tensor<8xf32>, ...)
  =>
    %re, %im = linalg.generic outs(tensor.empty, tensor.empty) {
      %k = (%i mod %m) mod %half ; %u = %i - %i mod %m + %k
      %tr = %wr[%k] * %a[%u + %half] - %wi[%k] * %b[%u + %half] ...
      linalg.yield select(%i mod %m < %half, %a[%u] + %tr, %a[%u] - %tr), ... }

The stage and the dim are checked at run time where they are dynamic. If the op has no coefficients,
another generic computes them in f64. An fft of memrefs stays. IREE lowers the op to a loop over
blocks (`FftOp::generateScalarImplementation`).
"""

from __future__ import annotations

import math as python_math
from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects import arith, cf, math
from xdsl.dialects.builtin import IndexType, ModuleOp, TensorType, f64, i64
from xdsl.ir import SSAValue
from xdsl.ir.affine import AffineMap
from xdsl.passes import ModulePass
from xdsl.pattern_rewriter import (
    PatternRewriter,
    PatternRewriteWalker,
    RewritePattern,
    op_type_rewrite_pattern,
)

from irees.dialects import iree_linalg_ext as ext
from irees.dialects.iree_linalg_ext.convolution import LAST_STAGE
from irees.errors import VerifyError
from irees.transforms.utils.shapes import Size, constant_value, dims
from irees.transforms.utils.structured import element_type
from irees.transforms.utils.tensors import ScalarBuilder, TensorBuilder, rank_of


def check(lhs: Size, predicate: str, rhs: Size, message: str, b: TensorBuilder) -> None:
    """Emits a check of two sizes that stops the program with this message."""
    holds = b.insert(arith.CmpiOp(b.value(lhs), b.value(rhs), predicate))
    b.insert(cf.AssertOp(holds.results[0], message))


def block_size(stage: SSAValue, b: TensorBuilder, op: ext.FftOp) -> Size:
    """Returns 2^stage, checked at run time. Raises VerifyError for a constant out of range."""
    known = constant_value(stage)
    if known is not None:
        if not 1 <= known <= LAST_STAGE:
            raise VerifyError(f"the stage must be in [1, {LAST_STAGE}], but is {known}", op=op)
        return 1 << known
    if not isinstance(stage.type, IndexType):
        stage = b.insert(arith.IndexCastOp(stage, IndexType())).results[0]
    for low, high in ((1, stage), (stage, LAST_STAGE)):
        check(low, "sle", high, f"the stage of {op.name} must be in [1, {LAST_STAGE}]", b)
    return b.insert(arith.ShLIOp(b.value(1), stage)).results[0]


def coefficients(op: ext.FftOp, size: Size, b: TensorBuilder) -> tuple[SSAValue, SSAValue]:
    """Returns the real and imaginary parts of exp(-2 pi i k / size) for k < size / 2."""
    if op.real_coeff is not None and op.imag_coeff is not None:
        return op.real_coeff, op.imag_coeff
    kind = element_type(op.real)
    inits = [b.empty(kind, [b.floordiv(size, 2)]) for _ in range(2)]

    def body(s: ScalarBuilder, v: list[SSAValue]) -> list[SSAValue]:
        k, m = (s.cast(s.cast(s.value(n), i64), f64) for n in (s.index(0), size))
        turn = s.op(arith.MulfOp, k, s.number(-2 * python_math.pi, f64))
        angle = s.op(arith.DivfOp, turn, m)
        return [s.cast(s.op(math.CosOp, angle), kind), s.cast(s.op(math.SinOp, angle), kind)]

    real, imaginary = b.compute([], inits, [AffineMap.identity(1)] * 2, body)
    return real, imaginary


class DecomposeFft(RewritePattern):
    """fft(x)  =>  generic {x[u] + w * x[u + half] in the first half, else x[u] - w * x[..]}"""

    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: ext.FftOp, rewriter: PatternRewriter) -> None:
        if not isinstance(op.real.type, TensorType):
            return
        b, rank = TensorBuilder(op), rank_of(op.real)
        size = block_size(op.stage, b, op)
        (*_, count) = dims(op.real, b)
        rest = b.rem(count, size)
        if rest != 0:
            message = f"the blocks of {op.name} must divide dim {rank - 1} of operand 1"
            check(rest, "eq", 0, message, b)
        half = b.floordiv(size, 2)
        weights = coefficients(op, size, b)

        def body(s: ScalarBuilder, v: list[SSAValue]) -> list[SSAValue]:
            *row, at = (s.index(d) for d in range(rank))
            within = s.rem(at, size)
            k = s.rem(within, half)
            first = s.add(s.sub(at, within), k)
            real, imaginary = (s.extract(w, [k]) for w in weights)
            parts = (op.real, op.imag)
            x, y = (s.extract(part, [*row, s.add(first, half)]) for part in parts)
            u, v_ = (s.extract(part, [*row, first]) for part in parts)

            def product(f: SSAValue, g: SSAValue) -> SSAValue:
                return s.op(arith.MulfOp, f, g)

            turned = (
                s.op(arith.SubfOp, product(real, x), product(imaginary, y)),
                s.op(arith.AddfOp, product(real, y), product(imaginary, x)),
            )
            is_first = s.compare(within, half, "ult")
            return [
                s.select(is_first, s.op(arith.AddfOp, p, q), s.op(arith.SubfOp, p, q))
                for p, q in zip((u, v_), turned, strict=True)
            ]

        sizes, kind = dims(op.real, b), element_type(op.real)
        inits = [b.cast_tensor(b.empty(kind, sizes), op.real.type) for _ in range(2)]
        results = b.compute([], inits, [AffineMap.identity(rank)] * 2, body)
        rewriter.replace(op, [], results)


@dataclass(frozen=True)
class DecomposeFftPass(ModulePass):
    """Decomposes a stage of an FFT into a generic."""

    name = "irees-decompose-fft"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        PatternRewriteWalker(DecomposeFft(), apply_recursively=False).rewrite_module(op)
