"""
`irees`: what neither MLIR nor IREE has an op for: in kernels, and between devices.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar, cast

from xdsl.dialects.builtin import (
    BFloat16Type,
    Float16Type,
    Float32Type,
    MemRefType,
    SymbolRefAttr,
    VectorType,
    f32,
    i8,
    i32,
)
from xdsl.ir import Attribute, Dialect, SSAValue
from xdsl.irdl import (
    AnyAttr,
    AnyOf,
    EqAttrConstraint,
    IRDLOperation,
    VarConstraint,
    base,
    irdl_op_definition,
    operand_def,
    prop_def,
    result_def,
    traits_def,
    var_operand_def,
    var_result_def,
)
from xdsl.traits import Pure
from xdsl.utils.exceptions import VerifyException

from irees.dialects.nvgpu import WarpgroupAccumulatorType
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
class ScalefOp(IRDLOperation):
    """
    x * 2^floor(n), rounded once, one instruction of AVX-512 (`vscalefps`).

    `x` is between 2^-20 and 2^20 in size; `n` is any float: NaN gives NaN, and what is out of range
    zero or infinity; f32 or a vector of it.
    """

    name = "irees.scalef"

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
class KeepOp(IRDLOperation):
    """
    The first operand, in a body that depends on the second as well.

    The body of a structured op that does not write all of its output depends on what the output
    holds, though no value says so: `irees.keep %new, %old` does, and costs nothing.
    """

    name = "irees.keep"

    T: ClassVar = VarConstraint("T", AnyAttr())

    new = operand_def(T)
    old = operand_def(T)
    result = result_def(T)

    traits = traits_def(Pure())
    assembly_format = "$new `,` $old attr-dict `:` type($result)"

    def __init__(self, new: SSAValue, old: SSAValue):
        super().__init__(operands=[new, old], result_types=[new.type])


@irdl_op_definition
class LookupOp(IRDLOperation):
    """
    The lanes of a table with some numbers, taken modulo its 16 lanes: `vpermps` of AVX-512.

    The table is a `vector<16xf32>`, the number an i32 or a vector of it, and there are as many
    results as numbers.
    """

    name = "irees.lookup"

    table = operand_def(EqAttrConstraint(VectorType(f32, [16])))
    number = operand_def(AnyOf([EqAttrConstraint(i32), VectorType.constr(EqAttrConstraint(i32))]))
    result = result_def(AnyOf([base(Float32Type), VectorType.constr(base(Float32Type))]))

    traits = traits_def(Pure())
    assembly_format = "$table `[` $number `]` attr-dict `:` type($number) `->` type($result)"

    def __init__(self, table: SSAValue, number: SSAValue):
        kind = number.type
        result = VectorType(f32, kind.get_shape()) if isinstance(kind, VectorType) else f32
        super().__init__(operands=[table, number], result_types=[result])

    def verify_(self) -> None:
        number, result = self.number.type, self.result.type
        shapes = [k.get_shape() if isinstance(k, VectorType) else () for k in (number, result)]
        if shapes[0] != shapes[1]:
            raise VerifyException("expected as many results as numbers")


_WORD = VectorType.constr(
    base(Float16Type) | base(BFloat16Type) | base(Float32Type) | EqAttrConstraint(i8)
)
_SUMS = VectorType.constr(base(Float32Type) | EqAttrConstraint(i32))


@irdl_op_definition
class MmaSyncOp(IRDLOperation):
    """
    The sums of a warp plus a 16 x 16 times a 16 x 8 matrix: `mma.sync.m16n8k16` of PTX, by one
    lane; of i8, which are signed, a 16 x 32 times a 32 x 8 matrix into i32, which wraps; of f32,
    rounded to tf32 (10 bits of fraction, ties away from zero), a 16 x 8 times an 8 x 8 matrix.

    Each of `a0` to `a3`, `b0` and `b1` is the word that the lane holds of A and of B: two
    neighbours along the reduction, or four, or one. `sums` are two neighbours of a row, and two of
    the row that is 8 further. MLIR's `nvgpu.mma.sync` has vectors of vectors for these.
    """

    name = "irees.mma_sync"

    T: ClassVar = VarConstraint("T", _WORD)
    S: ClassVar = VarConstraint("S", _SUMS)

    a0 = operand_def(T)
    a1 = operand_def(T)
    a2 = operand_def(T)
    a3 = operand_def(T)
    b0 = operand_def(T)
    b1 = operand_def(T)
    sums = operand_def(S)
    result = result_def(S)

    assembly_format = (
        "$a0 `,` $a1 `,` $a2 `,` $a3 `,` $b0 `,` $b1 `,` $sums attr-dict `:` type($a0)"
        " `->` type($sums)"
    )

    def __init__(self, lhs: Sequence[SSAValue], rhs: Sequence[SSAValue], sums: SSAValue):
        super().__init__(operands=[*lhs, *rhs, sums], result_types=[sums.type])

    def verify_(self) -> None:
        assert isinstance(self.a0.type, VectorType)
        assert isinstance(self.sums.type, VectorType)
        element = cast("VectorType[Attribute]", self.a0.type).element_type
        sums = VectorType(i32 if element == i8 else f32, [4])
        words = VectorType(element, [1 if element == f32 else 4 if element == i8 else 2])
        if self.a0.type != words or self.sums.type != sums:
            raise VerifyException(f"no product of {self.a0.type} into {self.sums.type}")


@irdl_op_definition
class WarpgroupSumsOp(IRDLOperation):
    """
    What one lane has of the sums of a warpgroup, which have been waited for: for each 8 columns the
    four that `irees.mma_sync` would give it, warps having 16 rows each. MLIR only stores them all
    (`nvgpu.warpgroup.mma.store`); an epilogue wants them in registers.
    """

    name = "irees.warpgroup_sums"

    accumulator = operand_def(WarpgroupAccumulatorType)
    sums = var_result_def(VectorType.constr(base(Float32Type)))

    assembly_format = "$accumulator attr-dict `:` type($accumulator) `->` type($sums)"

    def __init__(self, accumulator: SSAValue):
        assert isinstance(accumulator.type, WarpgroupAccumulatorType)
        _, columns = accumulator.type.fragmented.get_shape()
        types = [VectorType(f32, [4])] * (columns // 8)
        super().__init__(operands=[accumulator], result_types=[types])

    def verify_(self) -> None:
        assert isinstance(self.accumulator.type, WarpgroupAccumulatorType)
        rows, columns = self.accumulator.type.fragmented.get_shape()
        if rows != 64 or [r.type for r in self.sums] != [VectorType(f32, [4])] * (columns // 8):
            raise VerifyException(f"a lane has {columns // 8} vectors of 4 sums")


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


@irdl_op_definition
class InvokeOp(IRDLOperation):
    """
    Runs a function of the module of a device, `@device::@function`, with tensors that are there.

    In IREE `stream.cmd.execute` is what one device does without the host; here it is a function.
    """

    name = "irees.invoke"

    callee = prop_def(SymbolRefAttr)
    arguments = var_operand_def()
    res = var_result_def()

    assembly_format = "$callee `(` $arguments `)` attr-dict `:` functional-type($arguments, $res)"

    def __init__(
        self, device: str, function: str, arguments: Sequence[SSAValue], types: Sequence[Attribute]
    ):
        super().__init__(
            operands=[arguments],
            properties={"callee": SymbolRefAttr(device, [function])},
            result_types=[types],
        )

    @property
    def device(self) -> str:
        """The name of the device."""
        return self.callee.root_reference.data

    @property
    def function(self) -> str:
        """The name of the function."""
        return self.callee.nested_references.data[0].data

    def verify_(self) -> None:
        if len(self.callee.nested_references.data) != 1:
            raise VerifyException("expected a device and a function of it")


@irdl_op_definition
class CountersOp(IRDLOperation):
    """
    Memory of a device that is 0, and for the kernels of this call alone. They leave it at 0, so it
    is used again by others, and nobody has to fill it.
    """

    name = "irees.counters"

    counters = result_def(MemRefType.constr(i32))
    assembly_format = "attr-dict `:` type($counters)"

    def __init__(self, count: int):
        super().__init__(result_types=[MemRefType(i32, [count])])

    def verify_(self) -> None:
        kind = self.counters.type
        assert isinstance(kind, MemRefType)
        if kind.get_num_dims() != 1 or kind.get_shape()[0] < 1:
            raise VerifyException("expected a row of counters, of a size that is known")


Irees = Dialect(
    "irees",
    [
        *(KeepOp, LdexpOp, ScalefOp, LookupOp, DotOp),
        *(MmaSyncOp, WarpgroupSumsOp, CountersOp),
        InvokeOp,
    ],
)
