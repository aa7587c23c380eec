"""
Lowers the copies of operands into panels.

    panel.pack_columns %b[%base] depth %d from %k0 in [%sizes] by [%steps] columns from %j ...
      into %panel {vectors = 2, lanes = 8}
  =>
    scf.for %k = 0 to %d {
      scf.for each of 2 vectors {
        %x = vector.load %b[%base + (%k0 + %k) * %step + %j + 8 * v]
        vector.store %x, %panel[16 * %k + 8 * v]
      }
    }

A panel holds a slice of B as [KC, NR], so that the micro-kernel streams through it. Elements are
widened on the way. A is packed for dot products alone (`groups.py`, `rows.py`): its rows are padded
to slightly more than a slice of K, so that no two rows of a block map to the same cache set.

Adjacent columns of B need not be adjacent in memory: those of a convolution's image jump at the end
of a row. The offset of each column is written to a table once per panel. Vectors of columns that
turn out to be contiguous are copied by vector, the others element by element. Where each column is
contiguous along K, as the keys of an attention, square tiles are transposed in registers.

For dot products, panels hold groups of K.

After Goto and van de Geijn, "Anatomy of High-Performance Matrix Multiplication" (2008).
"""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass
from xdsl.rewriter import InsertPoint, Rewriter

from irees.dialects.panel import PackColumnsOp, PackRowsOp
from irees.transforms.codegen.cpu.pack_panels.columns import Columns, pack_columns
from irees.transforms.codegen.cpu.pack_panels.groups import pack_column_groups
from irees.transforms.codegen.cpu.pack_panels.rows import Rows, pack_rows
from irees.transforms.utils.shapes import IndexBuilder


@dataclass(frozen=True)
class PackPanelsPass(ModulePass):
    """Lowers the copies of operands into panels to loops over vectors."""

    name = "irees-pack-panels"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for inner in list(op.walk()):
            if not isinstance(inner, PackRowsOp | PackColumnsOp):
                continue
            at = IndexBuilder(InsertPoint.before(inner), {})
            if isinstance(inner, PackRowsOp):
                pack_rows(Rows.of(inner), at)
            else:
                grouped = inner.group.value.data > 1
                (pack_column_groups if grouped else pack_columns)(Columns.of(inner), at)
            Rewriter.erase_op(inner)
