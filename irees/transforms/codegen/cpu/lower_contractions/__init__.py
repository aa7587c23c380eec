"""
Tiles contractions to loops around packed panels and micro-kernels.

    linalg.generic { C[m, n] += A[m, k] * B[k, n] }
  =>
    scf.for %k0 in K by KC {
      scf.for %j in N by NR {
        panel.pack_columns %b[..] depth KC from %k0 .. columns from %j .. into %panel
        scf.for %i in M by MR {
          %c = vector.load of C[%i : %i + MR, %j : %j + NR]
          %s = panel.micro_kernel %a[..], %panel[..] .. accs (%c)
          vector.store %s to C[%i : %i + MR, %j : %j + NR]
        }
      }
    }

B is the operand that is stored in panels already, else the one whose columns are contiguous in C.
The micro-kernel holds MR x NR of C in registers while it streams through a panel. Later passes
lower both ops: `irees-pack-panels` and `irees-lower-micro-kernels`.

If rows of A map to one cache set, a block has no more rows than the set holds lines. If
`irees-pack-constant-operands` has laid out B in panels, or `irees-propagate-blocked-layouts` in
blocks of one vector's width, the kernel reads B in place, with all of K in one slice unless A or a
panel exceeds the cache, and prefetches the next panel (`prefetch.py`). If K is a single slice and C
was just filled with zeros, the accumulators start at zero.

The address of each operand is linear in the loop indices, so a convolution is the same nest: its
image is packed as if it had been unfolded (implicit GEMM). Narrow operands are widened (bf16 to
f32, i8 to i32), B while it is packed. If the target has `dot_products`, they multiply narrow
elements directly instead, in groups of four or two along K, unless that would reassociate sums of
floats (bf16) that must keep their order.

With at most four rows of A, B is streamed once, in place, four whole rows at a time: several
streams along rows get more memory bandwidth than one stream, or than column accesses.

Columns of a block that are scattered in C, the channels of an image whose channels are not
blocked, are stored as vectors of rows, transposed in registers. An elementwise op on the output is
fused while a block is in registers (`epilogue.py`). Batch loops,
and loops of M, N or K that do not collapse, run outside the micro-kernel.

`irees-vectorize-structured-ops` lowers the rest: depthwise convolutions (no M), windows of few
channels that slide along B (small M), outputs that are not contiguous, dot products (M and N tiny),
element types without vectors. After Goto and van de Geijn, "Anatomy of High-Performance Matrix
Multiplication" (2008).
"""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import IntegerType, MemRefType, ModuleOp
from xdsl.dialects.linalg import ops as linalg
from xdsl.passes import ModulePass

from irees.analysis.contraction_tiling import Unsuitable
from irees.analysis.contractions import (
    MultiplyAdd,
    is_contraction,
    multiply_add,
    vector_side,
)
from irees.analysis.dot_products import DotProduct, dot_product
from irees.dialects.irees_target import dot_products_of, is_strict, target_of
from irees.remarks import remark
from irees.rewrites import may_rewrite
from irees.transforms.codegen.common.utils.surroundings import erase_unused_between
from irees.transforms.codegen.cpu.lower_contractions.nest import lower_contraction


@dataclass(frozen=True)
class LowerContractionsPass(ModulePass):
    """Tiles contractions on buffers to loops around packed panels and micro-kernels."""

    name = "irees-lower-contractions"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for inner in [o for o in op.walk() if isinstance(o, linalg.GenericOp)]:
            if isinstance(inner.outputs[0].type, MemRefType) and is_contraction(inner):
                self.lower(inner)

    def lower(self, op: linalg.GenericOp) -> None:
        """linalg.generic {multiply-add}  =>  packed loops, or a remark why not"""
        parts = multiply_add(op)
        assert parts is not None
        if not may_rewrite(self.name, op, "lower_contraction of linalg.generic"):
            return
        for dot in self.ways(op, parts):
            before = op.prev_op
            try:
                lower_contraction(op, parts, dot)
                return
            except Unsuitable as reason:
                way = "" if dot is None else "not using dot-product instructions: "
                remark("missed", self.name, op, f"{way}{reason}")
                erase_unused_between(before, op)

    def ways(self, op: linalg.GenericOp, parts: MultiplyAdd) -> list[DotProduct | None]:
        """Returns the variants to try: with a dot-product instruction if one fits, then without."""
        side = vector_side(op, parts)
        if side is None:
            return [None]
        dot = dot_product(op, parts, side, dot_products_of(op), target_of(op).vector_bytes)
        # Dot products of floats sum in an order of their own and flush subnormals.
        if dot is not None and (not is_strict(op) or isinstance(dot.element, IntegerType)):
            return [dot, None]
        if parts.widen_lhs or parts.widen_rhs:
            why = "the target has none for these types" if dot is None else "they reorder sums"
            text = f"not using dot-product instructions: {why}; elements are widened"
            remark("missed", self.name, op, text)
        return [None]
