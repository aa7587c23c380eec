"""
`irees`: what kernel IR needs and neither MLIR nor IREE has an op for.
"""

from __future__ import annotations

from typing import ClassVar

from xdsl.dialects.builtin import Float32Type, VectorType, i8, i32
from xdsl.ir import Dialect, SSAValue
from xdsl.irdl import (
    AnyOf,
    IRDLOperation,
    VarConstraint,
    base,
    irdl_op_definition,
    operand_def,
    result_def,
    traits_def,
)
from xdsl.traits import Pure

from irees.dialects.x86vector import verify_dot


@irdl_op_definition
class LdexpOp(IRDLOperation):
    """
    x * 2^n, rounded once: C's `ldexpf` with the exponent as a float, one instruction of AVX-512.

    `n` holds a whole number from -252 to 254, or NaN where `x` is NaN; f32 or a vector of it.
    """

    name = "irees.ldexp"

    T: ClassVar = VarConstraint(
        "T", AnyOf([base(Float32Type), VectorType.constr(base(Float32Type))])
    )

    x = operand_def(T)
    exponent = operand_def(T)
    result = result_def(T)

    traits = traits_def(Pure())
    assembly_format = "$x `,` $exponent attr-dict `:` type($result)"

    def __init__(self, x: SSAValue, exponent: SSAValue):
        super().__init__(operands=[x, exponent], result_types=[x.type])


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


Irees = Dialect("irees", [LdexpOp, DotOp])
