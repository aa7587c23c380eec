"""
The `util` dialect: globals, functions and hints that are not about tensors in particular.

Names and syntax are IREE's (`compiler/src/iree/compiler/Dialect/Util/IR/UtilOps.td`); of its many
ops here are those that reach a compiler's input or that its passes leave.
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
