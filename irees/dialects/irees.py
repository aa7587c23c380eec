"""`irees`: what neither MLIR nor IREE has an op for."""

from __future__ import annotations

from typing import ClassVar

from xdsl.dialects.builtin import VectorType, i8, i32
from xdsl.ir import Dialect, SSAValue
from xdsl.irdl import (
    IRDLOperation,
    VarConstraint,
    irdl_op_definition,
    operand_def,
    result_def,
    traits_def,
)
from xdsl.traits import Pure

from irees.dialects.x86vector import verify_dot


@irdl_op_definition
class DotOp(IRDLOperation):
    """
    acc[i] + sum over j < 4 of extui(a[4i + j]) * extsi(b[4i + j]) in i32, which wraps.

    `a` is unsigned and `b` is signed, as in `vpdpbusd` of AVX-512 VNNI and AVX-VNNI and in
    `usdot` of AArch64.
    """

    name = "irees.dot"

    WIDE: ClassVar = VarConstraint("WIDE", VectorType.constr(i32))
    NARROW: ClassVar = VarConstraint("NARROW", VectorType.constr(i8))

    acc = operand_def(WIDE)
    a = operand_def(NARROW)
    b = operand_def(NARROW)
    result = result_def(WIDE)

    traits = traits_def(Pure())
    assembly_format = "$acc `,` $a `,` $b attr-dict `:` type($a) `->` type($acc)"

    def __init__(self, acc: SSAValue, a: SSAValue, b: SSAValue):
        super().__init__(operands=[acc, a, b], result_types=[acc.type])

    def verify_(self) -> None:
        verify_dot(self.acc.type, self.a.type, 4)


Irees = Dialect("irees", [DotOp])
