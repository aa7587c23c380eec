"""
Lowers contractions to packed panels and a register-blocked micro-kernel.

    C[m, n] += A[m, k] * B[k, n]

B is the operand that lies in panels, else the one along which the output is contiguous; it
is copied, NR columns and KC rows at a time, into a panel that the micro-kernel streams
through. The
micro-kernel holds MR x NR of C in registers and does one outer product per k: MR scalars
of A, broadcast, times NR/lanes vectors of the panel.

    for k0 in K by KC:
      for j in N by NR:
        pack B[k0:k0+KC, j:j+NR]
        for i in M by MR:
          acc = C[i:i+MR, j:j+NR]
          for k in KC: acc += A[i:i+MR, k] (x) panel[k]
          C[i:i+MR, j:j+NR] = acc

Rows of A that would crowd into a few sets of the cache are packed as well, once per k0. A B
that `irees-pack-constant-operands` laid out in panels is read where it is, all of K at once
unless A or a panel is too large for the cache, and the next panel is asked for meanwhile
(`prefetch.py`). Where K is one slice, registers start at zero when C was only just
filled with zeros.

Every operand is addressed linearly (a sum of loop index times step), so a convolution is
the same nest: its image is packed as if it had been unfolded (implicit GEMM), where
neighbouring columns that are neighbours in the image are moved as vectors. Operands may
be widened (bf16 to f32, i8 to i32): B while it is packed, A when it is broadcast. Where the
target has `dot_products` they are multiplied as they are instead, K in groups of four or two
(`dots.py`), unless the order of sums is not ours to choose (bf16).

Four rows of A or fewer go through B once, as it lies, four whole rows of it at a time: memory gives
more from several places than from one, and more along a row than down a column.

An elementwise op on the output is done while a block is in registers (`utils/surroundings.py`).
Where B comes in blocks of a vector's width (`irees-propagate-blocked-layouts`) a panel is several
blocks, read where they lie.

Batch loops, and loops of a side that do not flatten, run outside. Left to
`irees-vectorize-structured-ops`: depthwise convolutions (no M), outputs that are not
contiguous, dot products (M and N tiny), element types without vectors. After Goto and van
de Geijn, "Anatomy of High-Performance Matrix Multiplication" (2008).
"""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import IntegerType, MemRefType, ModuleOp
from xdsl.dialects.linalg import ops as linalg
from xdsl.passes import ModulePass

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
from irees.transforms.codegen.cpu.lower_contractions.decide import Unsuitable
from irees.transforms.codegen.cpu.lower_contractions.nest import lower_contraction
from irees.transforms.codegen.cpu.lower_contractions.plan import Machine


@dataclass(frozen=True)
class LowerContractionsPass(ModulePass):
    """Contractions on buffers become packed, register-blocked loops."""

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
                way = "" if dot is None else "no dot products: "
                remark("missed", self.name, op, f"{way}{reason}")
                erase_unused_between(before, op)

    def ways(self, op: linalg.GenericOp, parts: MultiplyAdd) -> list[DotProduct | None]:
        """By dot products first where the target has them, then by widened elements."""
        side = vector_side(op, parts)
        if side is None:
            return [None]
        dot = dot_product(op, parts, side, dot_products_of(op), target_of(op).vector_bytes)
        # Their sums of floats have an order of their own, and no subnormals.
        if dot is not None and (not is_strict(op) or isinstance(dot.element, IntegerType)):
            return [dot, None]
        if parts.widen_lhs or parts.widen_rhs:
            why = "no dot product of the target's takes them" if dot is None else "sums keep order"
            remark("missed", self.name, op, f"elements are widened: {why}")
        return [None]
