"""
`nvvm`: lanes of a warp that compare their values, and that wait for each other.

Only what `gpu` has no form of. MLIR: `mlir/include/mlir/Dialect/LLVMIR/NVVMOps.td`.
"""

from __future__ import annotations

from xdsl.dialects.builtin import i32, i64
from xdsl.dialects.utils import EnumAttribute
from xdsl.ir import Dialect, SSAValue
from xdsl.irdl import (
    EqAttrConstraint,
    IRDLOperation,
    irdl_attr_definition,
    irdl_op_definition,
    operand_def,
    prop_def,
    result_def,
)
from xdsl.parser import AttrParser, Parser
from xdsl.printer import Printer
from xdsl.utils.exceptions import VerifyException
from xdsl.utils.str_enum import StrEnum

FEWEST_WORKGROUPS = "nvvm.minctasm"
"""An attribute: how many workgroups a multiprocessor should have at a time."""


class MatchSyncKind(StrEnum):
    """Whether a lane hears who has its value, or whether all have one."""

    ANY = "any"
    ALL = "all"


@irdl_attr_definition
class MatchSyncKindAttr(EnumAttribute[MatchSyncKind]):
    """`#nvvm.match_sync_kind<any>`"""

    name = "nvvm.match_sync_kind"

    @classmethod
    def parse_parameter(cls, parser: AttrParser) -> MatchSyncKind:
        with parser.in_angle_brackets():
            return super().parse_parameter(parser)

    def print_parameter(self, printer: Printer) -> None:
        with printer.in_angle_brackets():
            super().print_parameter(printer)


@irdl_op_definition
class MatchSyncOp(IRDLOperation):
    """
    The lanes of `thread_mask` whose value is that of this one, a bit each: `match.any.sync` of PTX.

    Every lane that the mask names comes here. Nothing is said of memory: what one lane wrote before
    another may read only after `nvvm.bar.warp.sync`.
    """

    name = "nvvm.match.sync"

    thread_mask = operand_def(i32)
    val = operand_def(EqAttrConstraint(i32) | EqAttrConstraint(i64))
    kind = prop_def(MatchSyncKindAttr)
    res = result_def(i32)

    def __init__(self, thread_mask: SSAValue, val: SSAValue):
        super().__init__(
            operands=[thread_mask, val],
            result_types=[i32],
            properties={"kind": MatchSyncKindAttr(MatchSyncKind.ANY)},
        )

    @classmethod
    def parse(cls, parser: Parser) -> MatchSyncOp:
        kind = MatchSyncKindAttr(parser.parse_str_enum(MatchSyncKind))
        mask = parser.resolve_operand(parser.parse_unresolved_operand(), i32)
        parser.parse_punctuation(",")
        name = parser.parse_unresolved_operand()
        parser.parse_punctuation(":")
        value = parser.resolve_operand(name, parser.parse_type())
        parser.parse_punctuation("->")
        result = parser.parse_type()
        operands = [mask, value]
        return cls.build(operands=operands, result_types=[result], properties={"kind": kind})

    def print(self, printer: Printer) -> None:
        printer.print_string(f" {self.kind.data.value} ")
        printer.print_list(self.operands, printer.print_ssa_value)
        printer.print_string(" : ")
        printer.print_attribute(self.val.type)
        printer.print_string(" -> ")
        printer.print_attribute(self.res.type)

    def verify_(self) -> None:
        if self.kind.data is not MatchSyncKind.ANY:
            raise VerifyException("only `any` is known here")


@irdl_op_definition
class SyncWarpOp(IRDLOperation):
    """Waits until every lane of the mask is here, and sees what the others wrote."""

    name = "nvvm.bar.warp.sync"

    mask = operand_def(i32)
    assembly_format = "$mask attr-dict `:` type($mask)"

    def __init__(self, mask: SSAValue):
        super().__init__(operands=[mask])


Nvvm = Dialect("nvvm", [MatchSyncOp, SyncWarpOp], [MatchSyncKindAttr])
