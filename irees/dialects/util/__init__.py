"""
The `util` dialect: globals, functions and optimization hints.

Names and syntax are IREE's (`compiler/src/iree/compiler/Dialect/Util/IR/UtilOps.td`). Only the ops
that appear in input programs or that our passes produce are defined.
"""

from __future__ import annotations

from xdsl.ir import Dialect

from .functions import CallOp, FuncOp, ReturnOp
from .globals import GlobalLoadOp, GlobalOp, GlobalStoreOp, InitializerOp
from .hints import (
    AlignOp,
    AssumeIntOp,
    InlineAlwaysAttr,
    InlineNeverAttr,
    IntAssumptionAttr,
    OptimizationBarrierOp,
    UnfoldableConstantOp,
)

Util = Dialect(
    "util",
    [
        GlobalOp,
        GlobalLoadOp,
        GlobalStoreOp,
        AssumeIntOp,
        OptimizationBarrierOp,
        UnfoldableConstantOp,
        AlignOp,
        ReturnOp,
        FuncOp,
        InitializerOp,
        CallOp,
    ],
    [IntAssumptionAttr, InlineNeverAttr, InlineAlwaysAttr],
)
