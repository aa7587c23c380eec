"""
`irees`: what kernel IR needs and neither MLIR nor IREE has an op for.
"""

from __future__ import annotations

from typing import ClassVar

from xdsl.dialects.builtin import Float32Type, VectorType
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


Irees = Dialect("irees", [LdexpOp])
