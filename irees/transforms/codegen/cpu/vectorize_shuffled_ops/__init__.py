"""
Vectorizes elementwise ops on buffers whose operands are contiguous along different loops.

No loop of such an op gives vectors that are contiguous in all operands. Vectors along one loop are
computed, and shuffles in registers put them together along the other:

    out[i, j] = x[j, i]            square tiles, transposed (`transposing.py`)
    out[i, b] = f(x[i], b)         a short last loop, interleaved (`interleaving.py`)

    for i in N { for b in 2 { out[i, b] = x[i] } }
  =>
    for i in N step 8 { %v = x[i : i + 8] ; out[2 * i : 2 * i + 16] = shuffles of %v, %v }

Ops that can be vectorized along one loop, reductions, and those without either form are left to
`irees-vectorize-structured-ops`. MLIR: the `shuffle_1d` lowering of `vector.transpose`, and
`vector.interleave`.
"""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import MemRefType, ModuleOp
from xdsl.dialects.linalg import ops as linalg
from xdsl.passes import ModulePass

from irees.dialects.irees_target import target_of
from irees.remarks import remark
from irees.rewrites import may_rewrite
from irees.target import Target
from irees.transforms.codegen.common.utils.surroundings import erase_unused_between
from irees.transforms.codegen.cpu.utils.element_accesses import ElementAccesses
from irees.transforms.codegen.cpu.vectorize_shuffled_ops.interleaving import (
    Interleaving,
    interleaving,
)
from irees.transforms.codegen.cpu.vectorize_shuffled_ops.transposing import Tiles, transposing
from irees.transforms.utils.lanes import NotVectorizableError
from irees.transforms.utils.structured import is_parallel


def form_of(op: linalg.GenericOp, target: Target) -> Interleaving | Tiles | None:
    """Returns the lowering of an op with shuffles, or None."""
    try:
        return interleaving(ElementAccesses(op, target.vector_bytes))
    except NotVectorizableError:
        pass
    try:
        return transposing(ElementAccesses(op, target.vector_bytes), target.uncached_bytes)
    except NotVectorizableError:
        return None


@dataclass(frozen=True)
class VectorizeShuffledOpsPass(ModulePass):
    """Vectorizes elementwise ops with shuffles."""

    name = "irees-vectorize-shuffled-ops"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for inner in [o for o in op.walk() if isinstance(o, linalg.GenericOp) and is_parallel(o)]:
            if not all(isinstance(o.type, MemRefType) for o in inner.outputs):
                continue
            form, marker = form_of(inner, target_of(op)), inner.prev_op
            if form is None or not may_rewrite(self.name, inner, "vectors by shuffles"):
                continue
            try:
                form.build()
            except NotVectorizableError as error:
                remark("missed", self.name, inner, str(error))
                erase_unused_between(marker, inner)
