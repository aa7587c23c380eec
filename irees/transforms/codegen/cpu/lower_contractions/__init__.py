"""
Tiles contractions to a nest of loops around packed panels and a register-blocked micro-kernel.

    C[m, n] += A[m, k] * B[k, n]

B is the operand that is stored in panels already, else the one whose columns are contiguous in C.
The pass copies KC rows and NR columns of B at a time into a panel, which the micro-kernel streams.
The micro-kernel holds MR x NR of C in registers and does one outer product per k: MR scalars of A,
broadcast, times NR/lanes vectors of the panel.

    for k0 in K by KC:
      for j in N by NR:
        pack B[k0:k0+KC, j:j+NR]
        for i in M by MR:
          acc = C[i:i+MR, j:j+NR]
          for k in KC: acc += A[i:i+MR, k] (x) panel[k]
          C[i:i+MR, j:j+NR] = acc

Each packing is one op, which `irees-pack-panels` lowers. If rows of A map to a few cache sets, A is
packed as well, once per k0. If
`irees-pack-constant-operands` has laid out B in panels, the kernel reads B in place, with all of K
in one slice unless A or a panel exceeds the cache, and prefetches the next panel (`prefetch.py`).
If K is a single slice and C was just filled with zeros, the accumulators start at zero.

The address of each operand is linear in the loop indices, so a convolution is the same nest: its
image is packed as if it had been unfolded (implicit GEMM), with vector copies where adjacent
columns are adjacent in the image. Narrow operands are widened (bf16 to f32, i8 to i32): B while it
is packed, A when it is broadcast. If the target has `dot_products`, they multiply narrow elements
directly instead, in groups of four or two along K (`dots.py`), unless that would reassociate sums
of floats (bf16) that must keep their order.

With at most four rows of A, B is streamed once, in place, four whole rows at a time: several
streams along rows get more memory bandwidth than one stream, or than column accesses.

An elementwise op on the output is fused while a block is in registers (`utils/surroundings.py`).
If B is stored in blocks of one vector's width (`irees-propagate-blocked-layouts`), a panel is
several blocks, read in place.

Batch loops, and loops of M, N or K that do not collapse, run outside the micro-kernel.
`irees-vectorize-structured-ops` lowers the rest: depthwise convolutions (no M), outputs that are
not contiguous, dot products (M and N tiny), element types without vectors. After Goto and van de
Geijn, "Anatomy of High-Performance Matrix Multiplication" (2008).
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
from irees.transforms.codegen.cpu.lower_contractions.plan import Machine


@dataclass(frozen=True)
class LowerContractionsPass(ModulePass):
    """Lowers contractions on buffers to packed, register-blocked loops."""

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
        target = target_of(op)
        machine = Machine(target.vector_bytes, target.vector_registers, not is_strict(op))
        for dot in self.ways(op, parts):
            before = op.prev_op
            try:
                lower_contraction(op, parts, machine, dot)
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
