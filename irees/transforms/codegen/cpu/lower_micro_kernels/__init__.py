"""
Lowers micro-kernels to loops over K with a block of C in vector registers.

    %s:2 = panel.micro_kernel %a[%r0, %r1] by [%one], %b[%column] by [%nr] apart %lanes trips [%k]
             accs (%c0, %c1) ...
  =>
    %s:2 = scf.for %i = 0 to %k iter_args(%x0 = %c0, %x1 = %c1) {
      %y = vector.load %b[%column + %nr * %i]
      %x0' = %x0 + broadcast(%a[%r0 + %i]) * %y
      %x1' = %x1 + broadcast(%a[%r1 + %i]) * %y
    }

Each step is one outer product: MR scalars of A, broadcast, times NR/lanes vectors of B. Narrow
elements are widened, A before it is broadcast. A micro-kernel with groups of K uses dot-product
instructions instead: the group of A is broadcast as a 32-bit word.

    acc[r, v] += broadcast(A[r, 4k : 4k + 4]) . B[4k : 4k + 4, v]

Steps also prefetch B, and the panel that is read next (`prefetch.py`).

After Van Zee and van de Geijn, "BLIS: A Framework for Rapidly Instantiating BLAS Functionality"
(2015).
"""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass
from xdsl.rewriter import InsertPoint, Rewriter

from irees.dialects.panel import MicroKernelOp
from irees.transforms.codegen.cpu.lower_micro_kernels.block import Block
from irees.transforms.codegen.cpu.lower_micro_kernels.products import sum_products
from irees.transforms.utils.shapes import IndexBuilder


@dataclass(frozen=True)
class LowerMicroKernelsPass(ModulePass):
    """Lowers micro-kernels to loops over K with a block of C in vector registers."""

    name = "irees-lower-micro-kernels"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for inner in [o for o in op.walk() if isinstance(o, MicroKernelOp)]:
            at = IndexBuilder(InsertPoint.before(inner), {})
            Rewriter.replace_op(inner, [], sum_products(Block.of(inner), at))
