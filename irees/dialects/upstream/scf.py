"""
What xDSL's scf lacks: `scf.forall` and its terminator.

MLIR: `mlir/include/mlir/Dialect/SCF/IR/SCFOps.td`.
"""

from __future__ import annotations

from xdsl.dialects.builtin import ArrayAttr, DenseArrayBase, IndexType
from xdsl.ir import Block, Region
from xdsl.irdl import (
    AttrSizedOperandSegments,
    IRDLOperation,
    irdl_op_definition,
    opt_prop_def,
    prop_def,
    region_def,
    traits_def,
    var_operand_def,
    var_result_def,
)
from xdsl.traits import IsTerminator, NoTerminator, RecursiveMemoryEffect


@irdl_op_definition
class InParallelOp(IRDLOperation):
    """Ends an `scf.forall`; holds what each iteration inserts into the shared outputs."""

    name = "scf.forall.in_parallel"

    region = region_def("single_block")
    traits = traits_def(IsTerminator(), NoTerminator())

    def __init__(self, region: Region | None = None):
        super().__init__(regions=[region or Region(Block())])


@irdl_op_definition
class ForallOp(IRDLOperation):
    """Runs its body for every point of an index space, in any order or at once."""

    name = "scf.forall"

    dynamicLowerBound = var_operand_def(IndexType)
    dynamicUpperBound = var_operand_def(IndexType)
    dynamicStep = var_operand_def(IndexType)
    outputs = var_operand_def()
    staticLowerBound = prop_def(DenseArrayBase)
    staticUpperBound = prop_def(DenseArrayBase)
    staticStep = prop_def(DenseArrayBase)
    mapping = opt_prop_def(ArrayAttr)
    region = region_def("single_block")
    res = var_result_def()

    irdl_options = (AttrSizedOperandSegments(as_property=True),)
    traits = traits_def(RecursiveMemoryEffect())


OPS = (ForallOp, InParallelOp)


def patch() -> None:
    """Nothing to repair."""
