"""
Moves all work on device memory into workgroups; the host keeps only the launches.

`irees-tile-and-distribute` has put ops with loops into `scf.forall`s. This pass maps these to
workgroups. Ops between them that access memory (a scatter, a store of one element) become a
workgroup of their own, since the host cannot access device memory. A single load stays: the
launcher reads the element from the device.

    func.func @kernel(%a: memref<4xf32>, %v: f32) {
      memref.store %v, %a[%c0]
      scf.forall (%i) in (4) { ... }
    }
  =>
    func.func @kernel(%a: memref<4xf32>, %v: f32) {
      scf.forall (%i) in (1) { memref.store %v, %a[%c0] } {mapping = [#gpu.block<linear_dim_0>]}
      scf.forall (%i) in (4) { ... } {mapping = [#gpu.block<linear_dim_0>]}
    }
"""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects import func
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Block, Operation
from xdsl.passes import ModulePass

from irees.dialects.flow import ExecutableOp
from irees.dialects.iree_codegen import LoweringConfigAttr
from irees.dialects.upstream.gpu import BlockMappingAttr
from irees.dialects.upstream.scf import ForallOp
from irees.transforms.codegen.gpu.utils.segments import (
    mapped,
    segments,
    set_threads,
    workgroups,
)
from irees.transforms.utils.constants import take_in_constants
from irees.transforms.utils.shapes import IndexBuilder


def one_workgroup(at: IndexBuilder) -> tuple[Operation, Block]:
    """Creates an empty loop over one workgroup; returns it and its body."""
    block = Block(arg_types=[at.value(0).type])
    loop = workgroups(block, [1])
    at.insert(loop)
    return loop, block


@dataclass(frozen=True)
class GpuFormWorkgroupsPass(ModulePass):
    """Moves the work of kernels into loops over workgroups."""

    name = "irees-gpu-form-workgroups"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for executable in [e for e in op.walk() if isinstance(e, ExecutableOp)]:
            for function in [f for f in executable.walk() if isinstance(f, func.FuncOp)]:
                block = function.body.block
                for loop in [o for o in block.ops if isinstance(o, ForallOp)]:
                    loop.properties["mapping"] = mapped(BlockMappingAttr, loop.num_loops)
                    configs = [LoweringConfigAttr.on(o) for o in loop.walk()]
                    if count := max((c.int("threads") or 0 for c in configs), default=0):
                        set_threads(loop, count)
                for segment in segments(block, lambda o: isinstance(o, ForallOp)):
                    segment.wrap(one_workgroup, None)
                    loop = segment.begin
                    take_in_constants(loop.regions[0].block)
