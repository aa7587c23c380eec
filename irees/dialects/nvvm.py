"""
`nvvm`: memory fences and warp-level ops of NVIDIA GPUs.

Only ops without a counterpart in `gpu` or `nvgpu`. MLIR:
`mlir/include/mlir/Dialect/LLVMIR/NVVMOps.td`.
"""

from __future__ import annotations

from xdsl.dialects.builtin import IntegerAttr, StringAttr, i32, i64
from xdsl.dialects.utils import EnumAttribute
from xdsl.ir import Dialect, ParametrizedAttribute, SSAValue
from xdsl.irdl import (
    EqAttrConstraint,
    IRDLOperation,
    irdl_attr_definition,
    irdl_op_definition,
    operand_def,
    opt_prop_def,
    prop_def,
    result_def,
)
from xdsl.parser import AttrParser, Parser
from xdsl.printer import Printer
from xdsl.utils.exceptions import VerifyException
from xdsl.utils.str_enum import StrEnum

FEWEST_WORKGROUPS = "nvvm.minctasm"
"""Function attribute: minimum number of resident workgroups (CTAs) per multiprocessor."""

MATCHED_BITS = "irees.bits"
"""
Attribute of `nvvm.match.sync`: the number of low bits in which lanes may differ. One ballot per bit
is faster than the instruction, which takes one step per distinct value.
"""


class MatchSyncKind(StrEnum):
    """Result of a match: the lanes with this lane's value, or whether all lanes agree."""

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
    Returns the mask of lanes in `thread_mask` that have this lane's value (PTX `match.any.sync`).

    All lanes of the mask must execute the op. It does not order memory: other lanes see a lane's
    writes only after `nvvm.bar.warp.sync`.
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
        attributes = parser.parse_optional_attr_dict()
        parser.parse_punctuation(":")
        value = parser.resolve_operand(name, parser.parse_type())
        parser.parse_punctuation("->")
        result = parser.parse_type()
        operands = [mask, value]
        properties = {"kind": kind}
        return cls.build(
            operands=operands, result_types=[result], properties=properties, attributes=attributes
        )

    def print(self, printer: Printer) -> None:
        printer.print_string(f" {self.kind.data.value} ")
        printer.print_list(self.operands, printer.print_ssa_value)
        if self.attributes:
            printer.print_op_attributes(self.attributes)
        printer.print_string(" : ")
        printer.print_attribute(self.val.type)
        printer.print_string(" -> ")
        printer.print_attribute(self.res.type)

    def verify_(self) -> None:
        if self.kind.data is not MatchSyncKind.ANY:
            raise VerifyException("only the kind `any` is supported")


@irdl_op_definition
class SyncWarpOp(IRDLOperation):
    """Barrier for the lanes of the mask; makes their prior writes visible to each other."""

    name = "nvvm.bar.warp.sync"

    mask = operand_def(i32)
    assembly_format = "$mask attr-dict `:` type($mask)"

    def __init__(self, mask: SSAValue):
        super().__init__(operands=[mask])


class _WordAttr(ParametrizedAttribute):
    """An attribute that is one identifier in angle brackets."""

    @classmethod
    def parse_parameters(cls, parser: AttrParser) -> tuple[StringAttr]:
        with parser.in_angle_brackets():
            return (StringAttr(parser.parse_identifier()),)

    def print_parameters(self, printer: Printer) -> None:
        printer.print_string(f"<{self.word.data}>")  # type: ignore[attr-defined]


@irdl_attr_definition
class ProxyKindAttr(_WordAttr):
    """`#nvvm.proxy_kind<async.shared>`: a memory proxy of PTX."""

    name = "nvvm.proxy_kind"
    word: StringAttr


@irdl_attr_definition
class SharedSpaceAttr(_WordAttr):
    """`#nvvm.shared_space<cta>`: the scope of the shared memory."""

    name = "nvvm.shared_space"
    word: StringAttr


@irdl_op_definition
class FenceProxyOp(IRDLOperation):
    """
    Makes the thread's writes to shared memory visible to the async proxy, which `wgmma` and bulk
    copies use (PTX `fence.proxy.async.shared::cta`).
    """

    name = "nvvm.fence.proxy"

    kind = prop_def(ProxyKindAttr)
    space = opt_prop_def(SharedSpaceAttr)

    def __init__(self):
        super().__init__(
            properties={
                "kind": ProxyKindAttr(StringAttr("async.shared")),
                "space": SharedSpaceAttr(StringAttr("cta")),
            }
        )

    @classmethod
    def parse(cls, parser: Parser) -> FenceProxyOp:
        op = cls.create(properties=parser.parse_optional_attr_dict())
        assert isinstance(op, FenceProxyOp)
        return op

    def print(self, printer: Printer) -> None:
        printer.print_op_attributes(self.properties)

    def verify_(self) -> None:
        space = self.space.word.data if self.space is not None else None
        if (self.kind.word.data, space) != ("async.shared", "cta"):
            raise VerifyException("only a fence of async.shared in space cta is supported")


@irdl_op_definition
class FenceMbarrierInitOp(IRDLOperation):
    """
    Makes mbarriers that the thread initialized visible to the async proxy
    (PTX `fence.mbarrier_init.release.cluster`).
    """

    name = "nvvm.fence.mbarrier.init"
    assembly_format = "attr-dict"


@irdl_attr_definition
class MemScopeAttr(_WordAttr):
    """`#nvvm.mem_scope<gpu>`: the scope in which writes become visible."""

    name = "nvvm.mem_scope"
    word: StringAttr


@irdl_op_definition
class MemoryBarrierOp(IRDLOperation):
    """
    Device-wide memory fence (PTX `membar.gl`, CUDA `__threadfence`).

    Writes before the fence, by this thread or by threads it met at a barrier, are visible to every
    thread that sees its writes after the fence, and vice versa.
    """

    name = "nvvm.memory.barrier"

    scope = prop_def(MemScopeAttr)
    assembly_format = "$scope attr-dict"

    def __init__(self):
        super().__init__(properties={"scope": MemScopeAttr(StringAttr("gpu"))})

    def verify_(self) -> None:
        if self.scope.word.data != "gpu":
            raise VerifyException("only the scope gpu is supported")


@irdl_op_definition
class WgmmaWaitGroupOp(IRDLOperation):
    """Waits until at most `group` of the warpgroup's most recent wgmma groups are pending."""

    name = "nvvm.wgmma.wait.group.sync.aligned"

    group = prop_def(IntegerAttr)

    def __init__(self, group: int):
        super().__init__(properties={"group": IntegerAttr(group, i64)})

    @classmethod
    def parse(cls, parser: Parser) -> WgmmaWaitGroupOp:
        return cls(parser.parse_integer(allow_boolean=False, allow_negative=False))

    def print(self, printer: Printer) -> None:
        printer.print_string(f" {self.group.value.data}")


Nvvm = Dialect(
    "nvvm",
    [
        MatchSyncOp,
        SyncWarpOp,
        FenceProxyOp,
        FenceMbarrierInitOp,
        MemoryBarrierOp,
        WgmmaWaitGroupOp,
    ],
    [MatchSyncKindAttr, ProxyKindAttr, SharedSpaceAttr, MemScopeAttr],
)
