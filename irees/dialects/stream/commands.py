"""
What the host program does with buffers.

After the stream phase the host works on memrefs: one arena is allocated, values are
views of it, and `stream.cmd.dispatch` runs a kernel on them.
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import SymbolRefAttr
from xdsl.ir import Operation, SSAValue
from xdsl.irdl import IRDLOperation, irdl_op_definition, prop_def, traits_def, var_operand_def
from xdsl.traits import MemoryReadEffect, MemoryWriteEffect


@irdl_op_definition
class CmdDispatchOp(IRDLOperation):
    """
    Runs all workgroups of an executable's function and waits for them.

    Operands are the function's, in order: `memref<?xi8>` bindings and scalars
    (IREE: `stream.cmd.dispatch`).
    """

    name = "stream.cmd.dispatch"

    entry_point = prop_def(SymbolRefAttr)
    arguments = var_operand_def()

    assembly_format = "$entry_point `(` $arguments `)` attr-dict `:` type($arguments)"
    traits = traits_def(MemoryReadEffect(), MemoryWriteEffect())

    def __init__(self, entry_point: SymbolRefAttr, arguments: Sequence[SSAValue]):
        super().__init__(operands=[arguments], properties={"entry_point": entry_point})


OPS: list[type[Operation]] = [CmdDispatchOp]
