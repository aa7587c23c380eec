"""
`nvvm`: what a thread of an NVIDIA GPU says to its memory.

MLIR: `mlir/include/mlir/Dialect/LLVMIR/NVVMOps.td`.
"""

from __future__ import annotations

from xdsl.dialects.builtin import IntegerAttr, StringAttr, i64
from xdsl.ir import Dialect, ParametrizedAttribute
from xdsl.irdl import (
    IRDLOperation,
    irdl_attr_definition,
    irdl_op_definition,
    opt_prop_def,
    prop_def,
)
from xdsl.parser import AttrParser, Parser
from xdsl.printer import Printer
from xdsl.utils.exceptions import VerifyException


class _WordAttr(ParametrizedAttribute):
    """One word in angle brackets."""

    @classmethod
    def parse_parameters(cls, parser: AttrParser) -> tuple[StringAttr]:
        with parser.in_angle_brackets():
            return (StringAttr(parser.parse_identifier()),)

    def print_parameters(self, printer: Printer) -> None:
        printer.print_string(f"<{self.word.data}>")  # type: ignore[attr-defined]


@irdl_attr_definition
class ProxyKindAttr(_WordAttr):
    """`#nvvm.proxy_kind<async.shared>`: a way to memory."""

    name = "nvvm.proxy_kind"
    word: StringAttr


@irdl_attr_definition
class SharedSpaceAttr(_WordAttr):
    """`#nvvm.shared_space<cta>`: whose shared memory."""

    name = "nvvm.shared_space"
    word: StringAttr


@irdl_op_definition
class FenceProxyOp(IRDLOperation):
    """
    What the thread wrote to shared memory is there for those who read it by another way: by the
    async proxy, as `wgmma` and bulk copies do. `fence.proxy.async.shared::cta` of PTX.
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
            raise VerifyException("only what a workgroup shares has a fence: async.shared, cta")


@irdl_op_definition
class WgmmaWaitGroupOp(IRDLOperation):
    """Waits until all but the last `group` groups of the warpgroup's products are done."""

    name = "nvvm.wgmma.wait.group.sync.aligned"

    group = prop_def(IntegerAttr)

    def __init__(self, group: int):
        super().__init__(properties={"group": IntegerAttr(group, i64)})

    @classmethod
    def parse(cls, parser: Parser) -> WgmmaWaitGroupOp:
        return cls(parser.parse_integer(allow_boolean=False, allow_negative=False))

    def print(self, printer: Printer) -> None:
        printer.print_string(f" {self.group.value.data}")


Nvvm = Dialect("nvvm", [FenceProxyOp, WgmmaWaitGroupOp], [ProxyKindAttr, SharedSpaceAttr])
