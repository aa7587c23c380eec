"""
`x86vector`: x86 vector instructions as ops. MLIR: `mlir/Dialect/X86Vector`.

Only the op that codegen emits: the bf16 dot product. The i8 dot product of VNNI multiplies unsigned
by signed; MLIR has no op for it, so it is `irees.dot`.
"""

from __future__ import annotations

from typing import ClassVar

from xdsl.dialects.builtin import BFloat16Type, Float32Type, VectorType
from xdsl.ir import Attribute, Dialect, SSAValue
from xdsl.irdl import (
    IRDLOperation,
    VarConstraint,
    irdl_op_definition,
    operand_def,
    result_def,
    traits_def,
)
from xdsl.traits import Pure
from xdsl.utils.exceptions import VerifyException


def verify_dot(wide: Attribute, narrow: Attribute, terms: int) -> None:
    """Raises VerifyException unless `narrow` has `terms` lanes for each lane of `wide`."""
    assert isinstance(wide, VectorType)
    assert isinstance(narrow, VectorType)
    if wide.get_num_dims() != 1 or narrow.get_shape() != (terms * wide.get_shape()[0],):
        raise VerifyException(
            f"each lane of {wide} takes {terms} lanes of an operand, not {narrow}"
        )


@irdl_op_definition
class Avx512DotOp(IRDLOperation):
    """
    src[i] + a[2i] * b[2i] + a[2i + 1] * b[2i + 1] in f32 (MLIR: `x86vector.avx512.dot`).

    `vdpbf16ps`: two fused multiply-adds, odd lanes first, each rounded to nearest even. Subnormal
    operands and results are flushed to zero, keeping the sign.
    """

    name = "x86vector.avx512.dot"

    WIDE: ClassVar = VarConstraint("WIDE", VectorType.constr(Float32Type()))
    NARROW: ClassVar = VarConstraint("NARROW", VectorType.constr(BFloat16Type()))

    src = operand_def(WIDE)
    a = operand_def(NARROW)
    b = operand_def(NARROW)
    dst = result_def(WIDE)

    traits = traits_def(Pure())
    assembly_format = "$src `,` $a `,` $b attr-dict `:` type($a) `->` type($src)"

    def __init__(self, src: SSAValue, a: SSAValue, b: SSAValue):
        super().__init__(operands=[src, a, b], result_types=[src.type])

    def verify_(self) -> None:
        verify_dot(self.src.type, self.a.type, 2)


X86Vector = Dialect("x86vector", [Avx512DotOp])
