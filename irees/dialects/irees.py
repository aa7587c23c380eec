"""
`irees`: ops that neither MLIR nor IREE has, for kernels and for calls to devices.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import ClassVar, cast

from xdsl.dialects.builtin import (
    BFloat16Type,
    ComplexType,
    Float16Type,
    Float32Type,
    Float64Type,
    MemRefType,
    NoneAttr,
    SymbolRefAttr,
    TensorType,
    UnitAttr,
    VectorType,
    f32,
    i1,
    i8,
    i32,
)
from xdsl.ir import Attribute, Dialect, Operation, Region, SSAValue
from xdsl.irdl import (
    AnyAttr,
    AnyOf,
    AttrSizedOperandSegments,
    EqAttrConstraint,
    IRDLOperation,
    ParsePropInAttrDict,
    VarConstraint,
    base,
    irdl_op_definition,
    operand_def,
    opt_prop_def,
    prop_def,
    region_def,
    result_def,
    traits_def,
    var_operand_def,
    var_result_def,
)
from xdsl.traits import NoTerminator, Pure
from xdsl.utils.exceptions import VerifyException
from xdsl.utils.type import have_compatible_shape

from irees.dialects.canonicalization import DATA_MOVEMENT
from irees.dialects.irees_target import TargetAttr
from irees.dialects.nvgpu import (
    WarpgroupAccumulatorType,
    WarpgroupMatrixDescriptorType,
    product_shape,
)
from irees.dialects.upstream._effects import DestinationStyleEffects
from irees.dialects.x86vector import verify_dot


@irdl_op_definition
class LdexpOp(IRDLOperation):
    """
    x * 2^n, rounded once: C's `ldexp` with a float exponent, one AVX-512 instruction.

    `n` is an integer in [-252, 254], or [-2044, 2046] for f64, or NaN where `x` is NaN. Both are
    f32 or f64, or vectors of those.
    """

    name = "irees.ldexp"

    T: ClassVar = VarConstraint(
        "T",
        AnyOf(
            [
                base(Float32Type),
                base(Float64Type),
                VectorType.constr(AnyOf([base(Float32Type), base(Float64Type)])),
            ]
        ),
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
    x * 2^floor(n), rounded once: one AVX-512 instruction (`vscalefps`).

    |x| is in [2^-20, 2^20]; `n` is any float. A NaN exponent gives NaN; underflow gives zero and
    overflow infinity. Both are f32 or vectors of f32.
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
    Returns the first operand and adds a data dependence on the second.

    The body of a structured op that writes only part of its output depends on the old contents, but
    no SSA use expresses it. `irees.keep %new, %old` does, and generates no code.
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
class ViewPartsOp(IRDLOperation):
    """
    Shows complex numbers as pairs of their parts, or pairs as complex numbers, without a copy:

        tensor<?x4xcomplex<f32>>  <=>  tensor<?x4x2xf32>

    The result has the sizes and the elements of the source, in the same order. Both are tensors, or
    buffers without a layout. PyTorch: `view_as_real`, `view_as_complex`.
    """

    name = "irees.view_parts"

    source = operand_def(TensorType | MemRefType)
    result = result_def(TensorType | MemRefType)

    traits = traits_def(Pure(), DATA_MOVEMENT)
    assembly_format = "$source attr-dict `:` type($source) `->` type($result)"

    def __init__(self, source: SSAValue):
        super().__init__(operands=[source], result_types=[shown_parts(source.type)])

    def verify_(self) -> None:
        if shown_parts(self.source.type) != self.result.type:
            raise VerifyException(f"expected a result of type {shown_parts(self.source.type)}")


def shown_parts(kind: Attribute) -> TensorType | MemRefType:
    """
    Returns the type of `irees.view_parts` of a tensor or a buffer. Raises VerifyException for a
    type that has neither complex elements nor a last dim of two f32 or f64.
    """
    assert isinstance(kind, TensorType | MemRefType)
    element, shape = kind.get_element_type(), kind.get_shape()
    if isinstance(kind, MemRefType) and not isinstance(kind.layout, NoneAttr):
        raise VerifyException("expected a buffer without a layout")
    if isinstance(element, ComplexType):
        part, shown = element.element_type, (*shape, 2)
    elif shape[-1:] == (2,) and isinstance(element, Float32Type | Float64Type):
        part, shown = ComplexType(element), shape[:-1]
    else:
        raise VerifyException("expected complex numbers, or a last dim of 2 numbers of f32 or f64")
    if isinstance(kind, MemRefType):
        return MemRefType(part, shown, memory_space=kind.memory_space)
    return TensorType(part, shown)


@irdl_op_definition
class ViewBytesOp(IRDLOperation):
    """Shows a buffer of booleans as the bytes that hold them; a byte that is not 0 is true."""

    name = "irees.view_bytes"

    source = operand_def(MemRefType.constr(i1))
    result = result_def(MemRefType.constr(i8))

    traits = traits_def(Pure())
    assembly_format = "$source attr-dict `:` type($source) `->` type($result)"

    def __init__(self, source: SSAValue):
        super().__init__(operands=[source], result_types=[bytes_of_booleans(source.type)])

    def verify_(self) -> None:
        if bytes_of_booleans(self.source.type) != self.result.type:
            raise VerifyException(
                f"expected a result of type {bytes_of_booleans(self.source.type)}"
            )


def bytes_of_booleans(kind: Attribute) -> MemRefType:
    """Returns the type of `irees.view_bytes` of a buffer."""
    assert isinstance(kind, MemRefType)
    return MemRefType(i8, kind.get_shape(), kind.layout, kind.memory_space)


@irdl_op_definition
class LookupOp(IRDLOperation):
    """
    Table lookup, `table[number mod 16]` per lane: `vpermps` of AVX-512.

    The table is a `vector<16xf32>`; the number is an i32 or a vector of i32. The result has the
    shape of the number.
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
    Warp-level matrix multiply-accumulate, D = A * B + C, from one lane's view (PTX `mma.sync`).

    f16 and bf16 are m16n8k16 into f32. i8 is signed, m16n8k32 into i32, which wraps. f32 is m16n8k8
    with operands rounded to tf32 (10 bits of fraction, ties away from zero).

    Each of `a0` to `a3`, `b0` and `b1` is one 32-bit register of the lane: two, four or one
    elements, contiguous along K. `sums` holds two adjacent columns of row r, then of row r + 8.
    MLIR's `nvgpu.mma.sync` has 2-D vectors for these.
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
            raise VerifyException(f"unsupported product of {self.a0.type} into {self.sums.type}")


@irdl_op_definition
class WarpgroupSumsOp(IRDLOperation):
    """
    Returns one lane's part of a warpgroup accumulator, after the wait for its products.

    The lane gets one vector of 4 per 8 columns, laid out like the result of `irees.mma_sync`; each
    warp holds 16 rows. MLIR can only store the accumulator (`nvgpu.warpgroup.mma.store`), but a
    fused epilogue needs it in registers.
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
            raise VerifyException(f"expected {columns // 8} vectors of 4 sums per lane")


@irdl_op_definition
class WarpgroupAccumulatorOp(IRDLOperation):
    """
    Makes a warpgroup accumulator of each lane's sums: the inverse of `irees.warpgroup_sums`.

    An online softmax rescales the sums of a product before it adds the next one.
    """

    name = "irees.warpgroup_accumulator"

    sums = var_operand_def(VectorType.constr(base(Float32Type)))
    accumulator = result_def(WarpgroupAccumulatorType)

    assembly_format = "$sums attr-dict `:` type($sums) `->` type($accumulator)"

    def __init__(self, sums: Sequence[SSAValue]):
        kind = WarpgroupAccumulatorType(VectorType(f32, [64, 8 * len(sums)]))
        super().__init__(operands=[sums], result_types=[kind])

    def verify_(self) -> None:
        assert isinstance(self.accumulator.type, WarpgroupAccumulatorType)
        rows, columns = self.accumulator.type.fragmented.get_shape()
        if rows != 64 or [v.type for v in self.sums] != [VectorType(f32, [4])] * (columns // 8):
            raise VerifyException(f"expected {columns // 8} vectors of 4 sums per lane")


@irdl_op_definition
class WarpgroupMmaOp(IRDLOperation):
    """
    D = C + A * B of a warpgroup, whose A, 64 x K, is in registers (PTX `wgmma`); waits for D.

    For each 16 steps of K a lane has four words of A, as the left operand of `irees.mma_sync`. B is
    N x K in shared memory, or N / 64 x K x 64 with `transposeB`. The accumulator has no other use.
    MLIR's `nvgpu.warpgroup.mma` reads both operands from shared memory.
    """

    name = "irees.warpgroup_mma"

    words = var_operand_def(_WORD)
    descriptor_b = operand_def(WarpgroupMatrixDescriptorType)
    matrix_c = operand_def(WarpgroupAccumulatorType)
    transpose_b = opt_prop_def(UnitAttr, prop_name="transposeB")
    matrix_d = result_def(WarpgroupAccumulatorType)

    assembly_format = (
        "`[` $words `]` `,` $descriptor_b `,` $matrix_c attr-dict `:` `[` type($words) `]` `,`"
        " type($descriptor_b) `,` type($matrix_c) `->` type($matrix_d)"
    )

    irdl_options = (ParsePropInAttrDict(),)

    def __init__(self, words: Sequence[SSAValue], b: SSAValue, c: SSAValue, *, turned: bool):
        super().__init__(
            operands=[words, b, c],
            result_types=[c.type],
            properties={"transposeB": UnitAttr() if turned else None},
        )

    @property
    def shape(self) -> tuple[int, int, int]:
        """M, N and K of the product."""
        return product_shape(self.descriptor_b.type, turned=self.transpose_b is not None)

    def verify_(self) -> None:
        assert isinstance(self.descriptor_b.type, WarpgroupMatrixDescriptorType)
        assert isinstance(self.matrix_c.type, WarpgroupAccumulatorType)
        b = self.descriptor_b.type.tensor
        dims = 2 if self.transpose_b is None else 3
        word = VectorType(b.element_type, [2])
        rows, columns, steps = self.shape if b.get_num_dims() == dims else (0, 0, 0)
        if not steps or steps % 16 or [v.type for v in self.words] != [word] * (steps // 4):
            raise VerifyException(f"unsupported product of {len(self.words)} words and {b}")
        sums = VectorType(f32, [rows, columns])
        if columns not in (64, 128, 256) or self.matrix_c.type.fragmented != sums:
            raise VerifyException(
                f"no accumulator of 64 x {columns}: {self.matrix_c.type.fragmented}"
            )
        if len(list(self.matrix_c.uses)) != 1:
            raise VerifyException("expected the accumulator to have no other use")


@irdl_op_definition
class DotOp(IRDLOperation):
    """
    acc[i] + sum over j < 4 of extui(a[4i + j]) * extsi(b[4i + j]) in i32, which wraps.

    `a` is unsigned and `b` is signed, as in `vpdpbusd` (AVX-512 VNNI, AVX-VNNI) and `usdot`
    (AArch64).
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
    Calls a function of a device's module, `@device::@function`, with tensors in device memory.

    The function is the work that the device runs without the host. IREE: `stream.cmd.execute`,
    which holds that work in a region.
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
        """The device's name."""
        return self.callee.root_reference.data

    @property
    def function(self) -> str:
        """The function's name."""
        return self.callee.nested_references.data[0].data

    def verify_(self) -> None:
        if len(self.callee.nested_references.data) != 1:
            raise VerifyException("expected @device::@function")


@irdl_op_definition
class CountersOp(IRDLOperation):
    """
    Zeroed i32 counters in device memory, exclusive to the kernels of this call.

    The kernels leave the counters at 0 again, so that later calls reuse them without a memset.
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
            raise VerifyException("expected a 1-D memref of static size")


@irdl_op_definition
class KernelOp(IRDLOperation):
    """
    A part of a program on buffers, kept as it is written: loops, loads, stores, vector ops.

    The block has one argument per operand, a memref for a tensor. Its ops read `inputs`, and read
    and write `outputs`, whose new values are the results. Operands that are tensors may be memrefs
    of the same shape; the op then has no results. The block has no terminator.

    ```mlir
    %r = irees.kernel ins(%a, %n : tensor<?xf32>, index) outs(%b : tensor<?xf32>) {
    ^bb0(%x: memref<?xf32>, %m: index, %y: memref<?xf32>):
      scf.for %i = %c0 to %m step %c8 {
        %v = vector.load %x[%i] : memref<?xf32>, vector<8xf32>
        vector.store %v, %y[%i] : memref<?xf32>, vector<8xf32>
      }
    } -> tensor<?xf32>
    ```
    """

    name = "irees.kernel"

    inputs = var_operand_def()
    outputs = var_operand_def(base(TensorType) | base(MemRefType))
    res = var_result_def(TensorType)
    body = region_def("single_block")

    irdl_options = (AttrSizedOperandSegments(as_property=True),)
    traits = traits_def(NoTerminator(), DestinationStyleEffects())
    assembly_format = (
        "`ins` `(` ($inputs^ `:` type($inputs))? `)` "
        "`outs` `(` $outputs `:` type($outputs) `)` $body attr-dict (`->` type($res)^)?"
    )

    def __init__(self, inputs: Sequence[SSAValue], outputs: Sequence[SSAValue], body: Region):
        kinds = [value.type for value in outputs if isinstance(value.type, TensorType)]
        super().__init__(operands=[inputs, outputs], result_types=[kinds], regions=[body])

    def verify_(self) -> None:
        if not self.outputs:
            raise VerifyException("must write an output")
        kinds = [value.type for value in self.outputs if isinstance(value.type, TensorType)]
        if [result.type for result in self.res] != kinds:
            raise VerifyException("must have one result per output, of the same type")
        args = self.body.block.args
        if len(args) != len(self.operands):
            raise VerifyException(f"has {len(self.operands)} operands, but {len(args)} arguments")
        for number, (arg, value) in enumerate(zip(args, self.operands, strict=True)):
            shaped = isinstance(value.type, TensorType | MemRefType)
            if not shaped and arg.type != value.type:
                raise VerifyException(f"argument {number} must be a {value.type}")
            if shaped and not _shows(arg.type, value.type):
                raise VerifyException(
                    f"argument {number} must be a memref of the shape of its operand"
                )


def walk_outside_kernels(op: Operation) -> Iterator[Operation]:
    """Yields an op and all ops inside of it, but nothing inside of an `irees.kernel`."""
    yield op
    if isinstance(op, KernelOp):
        return
    for region in op.regions:
        for block in region.blocks:
            for inner in block.ops:
                yield from walk_outside_kernels(inner)


def _shows(kind: Attribute, shown: Attribute) -> bool:
    """Whether a memref may show a tensor or memref: elements, rank and static sizes agree."""
    assert isinstance(shown, TensorType | MemRefType)
    same = isinstance(kind, MemRefType) and kind.element_type == shown.element_type
    return same and have_compatible_shape(kind, shown)


Irees = Dialect(
    "irees",
    [
        KernelOp,
        *(KeepOp, LdexpOp, ScalefOp, LookupOp, DotOp, ViewPartsOp, ViewBytesOp),
        *(MmaSyncOp, WarpgroupSumsOp, WarpgroupAccumulatorOp, WarpgroupMmaOp, CountersOp),
        InvokeOp,
    ],
    [TargetAttr],
)
