"""
Annotates every op with its affinities and those of its operands and results.

    %0 = flow.tensor.transfer %x : tensor<4xf32> to #hal.device.promise<@a>
    %1 = flow.dispatch @k(%0) : (tensor<4xf32>) -> tensor<4xf32>
  =>
    %1 = flow.dispatch @k(%0) {
      stream.affinities                = [#hal.device.promise<@a>],
      stream.affinities.operands       = [[#hal.device.promise<@a>]],
      stream.affinities.operands.usage = [[#hal.device.promise<@a>]],
      stream.affinities.results        = [[#hal.device.promise<@a>]],
      stream.affinities.results.usage  = [[#hal.device.promise<@a>]]
    } : (tensor<4xf32>) -> tensor<4xf32>

The outer list has an entry per operand or result that is stored on a device. The inner list is the
set of affinities, sorted by their printed form; it is empty if unknown. `.usage` is the set of
affinities that define or use the value. `stream.affinities` is set on ops and globals that require
an affinity, unless it is unknown.

The program is not changed otherwise. The attributes show the result of `irees.analysis.affinity`,
for tests and to debug transfers. IREE: `iree-stream-annotate-affinities`.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ArrayAttr, ModuleOp
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.passes import ModulePass

from irees.analysis.affinity import (
    FUNCTIONS,
    GLOBAL,
    Affinities,
    analyze_affinities,
    is_tracked,
    requires_affinity,
)

NAME = "stream.affinities"


def _annotate(op: Operation, name: str, sets: Iterable[Iterable[Attribute]]) -> None:
    if found := [ArrayAttr(each) for each in sets]:
        op.attributes[name] = ArrayAttr(found)


def _annotate_values(
    op: Operation, name: str, values: Iterable[SSAValue], affinities: Affinities
) -> None:
    tracked = [value for value in values if is_tracked(value.type)]
    _annotate(op, name, [affinities.resource(value) or () for value in tracked])
    _annotate(op, f"{name}.usage", [affinities.usage(value) for value in tracked])


def _annotate_op(op: Operation, affinities: Affinities) -> None:
    if requires_affinity(op) and (where := affinities.execution(op)):
        op.attributes[NAME] = ArrayAttr(where)
    _annotate_values(op, f"{NAME}.operands", op.operands, affinities)
    _annotate_values(op, f"{NAME}.results", op.results, affinities)


@dataclass(frozen=True)
class AnnotateAffinitiesPass(ModulePass):
    """Annotates ops with affinities."""

    name = "irees-annotate-affinities"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        affinities = analyze_affinities(op)
        for top in op.body.block.ops:
            if top.name == GLOBAL:
                if requires_affinity(top) and (where := affinities.of_global(top)):
                    top.attributes[NAME] = ArrayAttr(where)
            elif top.name in FUNCTIONS:
                for each in top.walk():
                    _annotate_op(each, affinities)
