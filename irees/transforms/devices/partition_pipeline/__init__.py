"""
Partitions a program without affinities into pipeline stages, one per device.

A stage is a consecutive sequence of ops on one device. Values that later stages read are
transferred. Stages are balanced by arithmetic plus the cost of results for the caller
(`balance=flops`: a stream of requests keeps all devices busy), or by the size of weights
(`balance=memory`: weights are distributed evenly). `stages.py` chooses the cuts.

    irees-partition-pipeline{stages=2}

    %0 = linalg.matmul ins(%x, %w0)        %0 = linalg.matmul {stream.affinity = @dev_0} ...
    %1 = linalg.matmul ins(%0, %w1)   =>   %t = flow.tensor.transfer %0 to @dev_1
                                           %1 = linalg.matmul {stream.affinity = @dev_1} ins(%t, ..)

Values computed from constants only are in no stage: each device recomputes those that it needs.
Functions with affinities, transfers or branches are left unchanged, with a remark.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

from xdsl.context import Context
from xdsl.dialects import func
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation, SSAValue
from xdsl.passes import ModulePass
from xdsl.rewriter import InsertPoint

from irees.analysis.affinity import explicit_affinity, is_tracked
from irees.dialects.flow import TensorTransferOp
from irees.dialects.hal import DevicePromiseAttr, TensorExportOp, TensorImportOp
from irees.errors import ArgumentError
from irees.remarks import remark
from irees.targets.common import COMMON
from irees.transforms.devices.partition_pipeline.stages import (
    crossing_bytes,
    cut_stages,
    flops,
    handed_bytes,
    is_constant,
    known_bytes,
    weights_of,
)
from irees.transforms.devices.utils.places import PLACE
from irees.transforms.utils.shapes import IndexBuilder, sizes_of

BORDER = (TensorImportOp, TensorExportOp)


def staged_ops(function: func.FuncOp) -> list[Operation]:
    """Returns the tensor ops of a function that belong to a stage, in order."""
    block = function.body.block
    found: list[Operation] = []
    for op in block.ops:
        if op is block.last_op or isinstance(op, BORDER):
            continue
        values = (*op.operands, *op.results)
        if (op.regions or any(is_tracked(v.type) for v in values)) and not is_constant(op):
            found.append(op)
    return found


def _loads(ops: list[Operation], balance: str) -> list[float]:
    if balance == "flops":
        return [float(flops(op) + COMMON.flops_per_byte * handed_bytes(op)) for op in ops]
    counted: set[SSAValue] = set()
    loads: list[float] = []
    for op in ops:
        new = weights_of(op) - counted
        counted |= new
        loads.append(float(sum(known_bytes(value) for value in new)))
    return loads


def annotate(ops: list[Operation], stage: dict[Operation, str]) -> None:
    """Annotates each op with its device, and transfers operands from other stages."""
    sent: dict[tuple[SSAValue, str], SSAValue] = {}
    for op in ops:
        here = stage[op]
        for each in op.walk():
            for index, value in enumerate(each.operands):
                maker = value.owner
                there = stage.get(maker) if isinstance(maker, Operation) else None
                if there in (None, here) or not is_tracked(value.type):
                    continue
                if (value, here) not in sent:
                    builder = IndexBuilder(InsertPoint.before(op))
                    transfer = TensorTransferOp(
                        value, sizes_of(value, builder), DevicePromiseAttr(here)
                    )
                    sent[value, here] = builder.insert(transfer).results[0]
                each.operands[index] = sent[value, here]
        op.attributes[PLACE] = DevicePromiseAttr(here)


def why_not(function: func.FuncOp) -> str | None:
    """Returns why a function is not divided into stages, or None."""
    if len(function.body.blocks) > 1:
        return "it has branches"
    if any(explicit_affinity(o) or o.name == TensorTransferOp.name for o in function.walk()):
        return "it already has device affinities"
    return None


@dataclass(frozen=True)
class PartitionPipelinePass(ModulePass):
    """Partitions programs into pipeline stages."""

    name = "irees-partition-pipeline"

    stages: int = 2
    balance: str = "flops"
    devices: tuple[str, ...] = ()
    """The devices of the stages in order; if empty, `dev_0`, `dev_1`, ..."""

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        names = self.devices or tuple(f"dev_{i}" for i in range(self.stages))
        if len(names) < self.stages:
            raise ArgumentError(
                f"{self.stages} stages need {self.stages} devices, not {len(names)}"
            )
        for function in [f for f in op.body.block.ops if isinstance(f, func.FuncOp)]:
            if function.is_declaration:
                continue
            if (reason := why_not(function)) is not None:
                remark("missed", self.name, function, reason)
                continue
            ops = staged_ops(function)
            loads = _loads(ops, self.balance)
            places = [0, *cut_stages(loads, crossing_bytes(ops), self.stages), len(ops)]
            stage = {
                each: names[number]
                for number in range(self.stages)
                for each in ops[places[number] : places[number + 1]]
            }
            annotate(ops, stage)
            shares = [sum(loads[a:b]) / (sum(loads) or 1) for a, b in pairwise(places)]
            text = ", ".join(f"{share:.0%}" for share in shares)
            remark("passed", self.name, function, f"stages with {text} of the {self.balance}")
