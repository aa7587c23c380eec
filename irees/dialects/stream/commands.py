"""
Commands of the host program on buffers.

After the stream phase the host works on memrefs: it allocates one arena, values are views of it,
and `stream.cmd.dispatch` runs a kernel on them.
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import MemRefType, StringAttr, SymbolRefAttr
from xdsl.ir import Operation, SSAValue
from xdsl.irdl import IRDLOperation, irdl_op_definition, prop_def, traits_def, var_operand_def
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.traits import MemoryReadEffect, MemoryWriteEffect

from .._shaped import parse_keyed_values, print_keyed_values


@irdl_op_definition
class CmdDispatchOp(IRDLOperation):
    """
    Runs all workgroups of an executable's function and waits for them.

    Operands are the function's arguments, in order: `memref<?xi8>` bindings and scalars
    (IREE: `stream.cmd.dispatch`).
    """

    name = "stream.cmd.dispatch"

    entry_point = prop_def(SymbolRefAttr)
    arguments = var_operand_def()

    assembly_format = "$entry_point `(` $arguments `)` attr-dict `:` type($arguments)"
    traits = traits_def(MemoryReadEffect(), MemoryWriteEffect())

    def __init__(self, entry_point: SymbolRefAttr, arguments: Sequence[SSAValue]):
        super().__init__(operands=[arguments], properties={"entry_point": entry_point})


@irdl_op_definition
class CmdTraceOp(IRDLOperation):
    """
    Traces the contents of row-major buffers at run time under a key.

    Corresponds to IREE's `stream.tensor.trace` and `hal.buffer_view.trace`.
    """

    name = "stream.cmd.trace"

    key = prop_def(StringAttr)
    values = var_operand_def(MemRefType)

    # The write effect keeps the op from being removed or reordered; it writes no program memory.
    traits = traits_def(MemoryReadEffect(), MemoryWriteEffect())

    def __init__(self, key: str, values: Sequence[SSAValue]):
        super().__init__(operands=[values], properties={"key": StringAttr(key)})

    @classmethod
    def parse(cls, parser: Parser) -> CmdTraceOp:
        key, values, _ = parse_keyed_values(parser)
        op = cls(key, values)
        attributes = parser.parse_optional_attr_dict_with_keyword()
        op.attributes |= attributes.data if attributes else {}
        return op

    def print(self, printer: Printer) -> None:
        print_keyed_values(printer, self.key, self.values)
        printer.print_op_attributes(self.attributes, print_keyword=True)


OPS: list[type[Operation]] = [CmdDispatchOp, CmdTraceOp]
