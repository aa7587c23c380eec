"""
Computes what a body derives from the indices of its loops in 32 bits, where all values fit.

    linalg.generic outs(%o : tensor<64x64xf32>) {
      %d = arith.subi %j, %i : index             // linalg.index 1 and 0
      %b = arith.cmpi sle, %d, %c0 : index
      %k = arith.index_cast %j : index to i64
      %f = arith.sitofp %k : i64 to f32 ... }
  =>
    linalg.generic outs(%o : tensor<64x64xf32>) {
      %m = arith.index_castui %j : index to i32
      %n = arith.index_castui %i : index to i32
      %d = arith.subi %m, %n : i32
      %b = arith.cmpi sle, %d, %c0 : i32
      %f = arith.sitofp %m : i32 to f32 ... }

Masks, positions and ramps (`tril`, `arange`, ALiBi) are computed from indices beside elements of 32
bits. A vector has as many lanes as its widest element has, so that 64-bit indices halve the lanes
of the whole body; a GPU takes several instructions for a 64-bit one. The pass leaves bodies that
read or write elements of 64 bits, and bodies that access memory by an index, whose address has 64
bits. MLIR: `arith-int-range-narrowing`; IREE: `iree-util-optimize-int-arithmetic{narrow-to-i32}`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import FixedBitwidthType, ModuleOp, i32
from xdsl.dialects.linalg import ops as linalg
from xdsl.ir import Block, Operation
from xdsl.passes import ModulePass
from xdsl.pattern_rewriter import RewritePattern

from irees.analysis.integer_ranges import IntegerRanges
from irees.dialects.storage import is_extract
from irees.transforms.utils import int_narrowing as narrowing
from irees.transforms.utils.greedy import rewrite_greedily
from irees.transforms.utils.int_casts import CastOfCast

NAME = "irees-narrow-index-arithmetic"

WIDEST = i32.bitwidth
"""Bits of the widest element of a body that 64-bit indices would slow down."""


def narrowable(block: Block) -> bool:
    """Whether a body uses loop indices, accesses no memory, and has no wide elements."""
    if not isinstance(block.parent_op(), linalg.GenericOp):
        return False
    widths = [a.type.bitwidth for a in block.args if isinstance(a.type, FixedBitwidthType)]
    return (
        len(widths) == len(block.args)
        and max(widths, default=0) <= WIDEST
        and any(isinstance(o, linalg.IndexOp) for o in block.ops)
        and not any(is_extract(o) or o.regions for o in block.ops)
    )


@dataclass(frozen=True)
class NarrowIndexArithmeticPass(ModulePass):
    """Computes with loop indices in 32 bits."""

    name = "irees-narrow-index-arithmetic"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        ranges = IntegerRanges()
        patterns = [
            narrowing.FoldCastChain(ranges),
            narrowing.NarrowElementwise(ranges),
            narrowing.NarrowCmpi(ranges),
            narrowing.NarrowToFloat(ranges),
            CastOfCast(),
        ]
        bodies: dict[Block, bool] = {}

        def patterns_of(inner: Operation) -> Sequence[RewritePattern]:
            block = inner.parent
            if block is None or not inner.name.startswith("arith."):
                return ()
            if block not in bodies:
                bodies[block] = narrowable(block)
            return patterns if bodies[block] else ()

        rewrite_greedily(NAME, op, patterns_of)
