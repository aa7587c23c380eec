"""
Refuses a program in which an op runs nowhere, or reads what lies elsewhere.

    stream.async.alloca : !stream.resource<transient>{%n}
  =>
    error: stream.async.alloca: does not have an affinity assigned

    %0 = flow.tensor.constant {stream.affinity = #hal.device.promise<@a>} dense<1> : tensor<4xi32>
    %1 = flow.dispatch @k(%0) {stream.affinity = #hal.device.promise<@b>} : ...
  =>
    error: flow.dispatch: runs on @b, but operand 0 is on @a

It holds of a program whose ops have been placed and whose transfers have been inserted. An op has
an affinity when it, an ancestor or a default says one; a set that the analysis infers is not
enough, because what comes after reads only attributes. What is made of nothing may be everywhere:
a constant and a global that never changes need no affinity, and they, with what is made of them
without a place, may be read anywhere. Operands are compared by device, queues are no places. A
transfer may read anything, and so may an op whose operand is unknown or shares one of several
devices with it. An op that pins is held against where its operand comes from.

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
            hint=f"give it or an op around it one, or a default with `{DEFAULT}`",
        )


def _program(op: Operation) -> Iterator[Operation]:
    """Ops in order, without what is inside executables."""
    for region in op.regions:
        for block in region.blocks:
            for child in block.ops:
                yield child
                if not child.has_trait(SymbolTable):
                    yield from _program(child)


@dataclass(frozen=True)
class VerifyAffinitiesPass(ModulePass):
    """Every op runs somewhere, and its operands are there."""

    name = "irees-verify-affinities"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        affinities = analyze_affinities(op)
        for each in _program(op):
            _check_assigned(each)
            check_operands(each, affinities)
