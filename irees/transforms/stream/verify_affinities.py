"""
Verifies that every op has an affinity, and that its operands are on its device.

    stream.async.alloca : !stream.resource<transient>{%n}
  =>
    error: stream.async.alloca: does not have an affinity assigned

    %0 = flow.tensor.constant {stream.affinity = #hal.device.promise<@a>} dense<1> : tensor<4xi32>
    %1 = flow.dispatch @k(%0) {stream.affinity = #hal.device.promise<@b>} : ...
  =>
    error: flow.dispatch: runs on @b, but operand 0 is on @a

Runs after ops are placed and transfers inserted. An affinity is an attribute of the op, an ancestor
or a default; inferred affinities do not count, because later passes read only attributes. Constants
and immutable globals need no affinity. They, and values computed only from them by ops without an
affinity, may be read on any device. Operands are compared by device; queues are ignored. Transfers
may read any operand. An operand is also valid if its device is unknown, or if it has a device in
common with the op. For ops that pin a value, the source of the operand is checked.

IREE's `iree-stream-verify-affinities` is the first half.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.arith import ConstantOp
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation
from xdsl.passes import ModulePass
from xdsl.traits import SymbolTable

from irees.analysis.affinity import (
    DEFAULT,
    analyze_affinities,
    default_affinity,
    explicit_affinity,
    requires_affinity,
)
from irees.analysis.affinity_checks import check_operands
from irees.dialects.util import GlobalOp
from irees.errors import VerifyError


def _may_be_everywhere(op: Operation) -> bool:
    return isinstance(op, ConstantOp) or (isinstance(op, GlobalOp) and op.is_mutable is None)


def _check_assigned(op: Operation) -> None:
    if not requires_affinity(op) or _may_be_everywhere(op):
        return
    if explicit_affinity(op) is None and default_affinity(op) is None:
        raise VerifyError(
            "does not have an affinity assigned",
            op=op,
            hint=f"set one on the op or an ancestor, or a default with `{DEFAULT}`",
        )


def _program(op: Operation) -> Iterator[Operation]:
    """Yields the ops in order, without those inside executables."""
    for region in op.regions:
        for block in region.blocks:
            for child in block.ops:
                yield child
                if not child.has_trait(SymbolTable):
                    yield from _program(child)


@dataclass(frozen=True)
class VerifyAffinitiesPass(ModulePass):
    """Verifies affinities of ops and operands."""

    name = "irees-verify-affinities"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        affinities = analyze_affinities(op)
        for each in _program(op):
            _check_assigned(each)
            check_operands(each, affinities)
