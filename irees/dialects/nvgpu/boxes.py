"""Bulk (TMA) copies of tensor boxes, and the mbarriers that track them."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import ClassVar, cast

from xdsl.dialects.builtin import IndexType, IntAttr, MemRefType, StringAttr, i1
from xdsl.ir import Attribute, ParametrizedAttribute, SSAValue, TypeAttribute
from xdsl.irdl import (
    IRDLOperation,
    irdl_attr_definition,
    irdl_op_definition,
    operand_def,
    result_def,
    var_operand_def,
)
from xdsl.parser import AttrParser
from xdsl.printer import Printer
from xdsl.utils.exceptions import VerifyException

from irees.dialects.upstream.gpu import AddressSpace, AddressSpaceAttr

from .warpgroups import SWIZZLES, swizzled_bytes


@irdl_attr_definition
class MBarrierGroupType(ParametrizedAttribute, TypeAttribute):
    """
    `!nvgpu.mbarrier.group<memorySpace = #gpu.address_space<workgroup>, num_barriers = 4>`: barriers
    in shared memory, 8 bytes each, which count arriving threads and bytes.
    """

    name = "nvgpu.mbarrier.group"
    memory_space: Attribute
    count: IntAttr

    @staticmethod
    def of(count: int) -> MBarrierGroupType:
        """Returns a group of `count` barriers in shared memory."""
        return MBarrierGroupType(AddressSpaceAttr(AddressSpace.WORKGROUP), IntAttr(count))

    @property
    def bytes(self) -> int:
        """The shared memory that the barriers take, in bytes."""
        return 8 * self.count.data

    @classmethod
    def parse_parameters(cls, parser: AttrParser) -> list[Attribute]:
        with parser.in_angle_brackets():
            parser.parse_characters("memorySpace")
            parser.parse_punctuation("=")
            space, count = parser.parse_attribute(), 1
            if parser.parse_optional_punctuation(",") is not None:
                parser.parse_characters("num_barriers")
                parser.parse_punctuation("=")
                count = parser.parse_integer(allow_boolean=False, allow_negative=False)
        return [space, IntAttr(count)]

    def print_parameters(self, printer: Printer) -> None:
        with printer.in_angle_brackets():
            printer.print_string("memorySpace = ")
            printer.print_attribute(self.memory_space)
            if self.count.data != 1:
                printer.print_string(f", num_barriers = {self.count.data}")

    def verify(self) -> None:
        if self.memory_space != AddressSpaceAttr(AddressSpace.WORKGROUP) or self.count.data < 1:
            raise VerifyException("expected at least one barrier, in shared memory")


MOST_DIMS, LONGEST_BOX, BOX_BYTES = 5, 256, 16
"""Limits of tensor maps: rank, box elements per dim, and row granularity in bytes."""


@irdl_attr_definition
class TensorMapDescriptorType(ParametrizedAttribute, TypeAttribute):
    """
    `!nvgpu.tensormap.descriptor<tensor = ..., swizzle = swizzle_128b, l2promo = none, oob = zero,
    interleave = none>`: a tensor that is copied in boxes. `tensor` is a box in shared memory.

    A row of the box, along its last dim, has as many bytes as the swizzle mode.
    """

    name = "nvgpu.tensormap.descriptor"
    tensor: MemRefType[Attribute]
    swizzle: StringAttr
    l2promo: StringAttr
    oob: StringAttr
    interleave: StringAttr

    WORDS: ClassVar = ("swizzle", "l2promo", "oob", "interleave")

    @staticmethod
    def of(box: MemRefType[Attribute]) -> TensorMapDescriptorType:
        """Returns the type for a box: swizzle mode = row bytes; out-of-bounds elements are 0."""
        words = (f"swizzle_{swizzled_bytes(box)}b", "none", "zero", "none")
        return TensorMapDescriptorType(box, *(StringAttr(word) for word in words))

    @classmethod
    def parse_parameters(cls, parser: AttrParser) -> list[Attribute]:
        with parser.in_angle_brackets():
            parser.parse_characters("tensor")
            parser.parse_punctuation("=")
            found: list[Attribute] = [parser.parse_type()]
            for word in cls.WORDS:
                parser.parse_punctuation(",")
                parser.parse_characters(word)
                parser.parse_punctuation("=")
                found.append(StringAttr(parser.parse_identifier()))
        return found

    def print_parameters(self, printer: Printer) -> None:
        with printer.in_angle_brackets():
            printer.print_string("tensor = ")
            printer.print_attribute(self.tensor)
            for word, value in zip(self.WORDS, self.parameters[1:], strict=True):
                printer.print_string(f", {word} = {cast('StringAttr', value).data}")

    def verify(self) -> None:
        row = swizzled_bytes(self.tensor)
        words = [cast("StringAttr", value).data for value in self.parameters[1:]]
        if words != [f"swizzle_{row}b", "none", "zero", "none"] or row not in SWIZZLES:
            raise VerifyException("expected a swizzle of 32, 64 or 128 bytes, the size of a row")
        shape = self.tensor.get_shape()
        if len(shape) > MOST_DIMS or not all(0 < size <= LONGEST_BOX for size in shape):
            raise VerifyException(f"a box has at most {MOST_DIMS} dims, of 1 to {LONGEST_BOX}")

    @property
    def bytes(self) -> int:
        """The size of one copy in bytes."""
        return prod(self.tensor.get_shape()[:-1]) * swizzled_bytes(self.tensor)


@irdl_op_definition
class MBarrierCreateOp(IRDLOperation):
    """Allocates mbarriers in shared memory; they must be initialized before use."""

    name = "nvgpu.mbarrier.create"

    barriers = result_def(MBarrierGroupType)
    assembly_format = "attr-dict `->` type($barriers)"

    def __init__(self, count: int):
        super().__init__(result_types=[MBarrierGroupType.of(count)])


@irdl_op_definition
class MBarrierInitOp(IRDLOperation):
    """Initializes a barrier: each phase completes after `count` arrivals."""

    name = "nvgpu.mbarrier.init"

    barriers = operand_def(MBarrierGroupType)
    count = operand_def(IndexType)
    number = operand_def(IndexType)
    assembly_format = "$barriers `[` $number `]` `,` $count attr-dict `:` type($barriers)"

    def __init__(self, barriers: SSAValue, number: SSAValue, count: SSAValue):
        super().__init__(operands=[barriers, count, number])


@irdl_op_definition
class MBarrierArriveExpectTxOp(IRDLOperation):
    """Arrives at a barrier and makes its phase also wait for `txcount` bytes."""

    name = "nvgpu.mbarrier.arrive.expect_tx"

    barriers = operand_def(MBarrierGroupType)
    txcount = operand_def(IndexType)
    number = operand_def(IndexType)
    assembly_format = "$barriers `[` $number `]` `,` $txcount attr-dict `:` type($barriers)"

    def __init__(self, barriers: SSAValue, number: SSAValue, txcount: SSAValue):
        super().__init__(operands=[barriers, txcount, number])


@irdl_attr_definition
class MBarrierTokenType(ParametrizedAttribute, TypeAttribute):
    """`!nvgpu.mbarrier.token`: the phase of a barrier that a thread arrived in."""

    name = "nvgpu.mbarrier.token"


@irdl_op_definition
class MBarrierArriveOp(IRDLOperation):
    """Arrives at a barrier; returns the phase that this counts for."""

    name = "nvgpu.mbarrier.arrive"

    barriers = operand_def(MBarrierGroupType)
    number = operand_def(IndexType)
    token = result_def(MBarrierTokenType)
    assembly_format = "$barriers `[` $number `]` attr-dict `:` type($barriers) `->` type($token)"

    def __init__(self, barriers: SSAValue, number: SSAValue):
        super().__init__(operands=[barriers, number], result_types=[MBarrierTokenType()])


@irdl_op_definition
class MBarrierTryWaitParityOp(IRDLOperation):
    """
    Waits until the phase with this parity completes; the first phase has parity 0.

    The parity of the phase before the current one returns at once. `ticks` is the time limit of
    one try, in nanoseconds, after which it is repeated.
    """

    name = "nvgpu.mbarrier.try_wait.parity"

    barriers = operand_def(MBarrierGroupType)
    parity = operand_def(i1)
    ticks = operand_def(IndexType)
    number = operand_def(IndexType)
    assembly_format = (
        "$barriers `[` $number `]` `,` $parity `,` $ticks attr-dict `:` type($barriers)"
    )

    def __init__(self, barriers: SSAValue, number: SSAValue, parity: SSAValue, ticks: SSAValue):
        super().__init__(operands=[barriers, parity, ticks, number])


@irdl_op_definition
class TmaCreateDescriptorOp(IRDLOperation):
    """
    Creates a tensor map, which the host encodes, for copies of boxes of a buffer.

    The buffer is 16-byte aligned. Its strides are multiples of 16 bytes, except for the last dim,
    which is contiguous. MLIR's op takes an unranked buffer.
    """

    name = "nvgpu.tma.create.descriptor"

    tensor = operand_def(MemRefType)
    box = var_operand_def(IndexType)
    tensor_map = result_def(TensorMapDescriptorType)
    assembly_format = (
        "$tensor `box` `[` $box `]` attr-dict `:` type($tensor) `->` type($tensor_map)"
    )

    def __init__(self, tensor: SSAValue, box: Sequence[SSAValue], kind: TensorMapDescriptorType):
        super().__init__(operands=[tensor, box], result_types=[kind])

    def verify_(self) -> None:
        box, kind = self.tensor_map.type.tensor, cast("MemRefType[Attribute]", self.tensor.type)
        ranks = {kind.get_num_dims(), box.get_num_dims(), len(self.box)}
        if len(ranks) != 1 or kind.element_type != box.element_type:
            raise VerifyException(f"cannot copy {kind} in boxes {box}")


@irdl_op_definition
class TmaAsyncLoadOp(IRDLOperation):
    """
    Starts to copy the box at these coordinates to shared memory (PTX `cp.async.bulk.tensor`).

    One thread issues the copy; a barrier counts the bytes as they arrive. Elements outside of the
    tensor are 0. The rows of the box are stored contiguously, from an address aligned to the
    swizzle pattern. MLIR's op also has a multicast mask and a predicate.
    """

    name = "nvgpu.tma.async.load"

    dst = operand_def(MemRefType)
    barriers = operand_def(MBarrierGroupType)
    tensor_map = operand_def(TensorMapDescriptorType)
    coordinates = var_operand_def(IndexType)
    number = operand_def(IndexType)
    assembly_format = (
        "$tensor_map `[` $coordinates `]` `,` $barriers `[` $number `]` `to` $dst attr-dict"
        " `:` type($tensor_map) `,` type($barriers) `->` type($dst)"
    )

    def __init__(
        self,
        tensor_map: SSAValue,
        coordinates: Sequence[SSAValue],
        barriers: SSAValue,
        number: SSAValue,
        dst: SSAValue,
    ):
        super().__init__(operands=[dst, barriers, tensor_map, coordinates, number])

    def verify_(self) -> None:
        assert isinstance(self.tensor_map.type, TensorMapDescriptorType)
        box, to = self.tensor_map.type.tensor, cast("MemRefType[Attribute]", self.dst.type)
        rows = [(prod(kind.get_shape()), kind.get_shape()[-1]) for kind in (box, to)]
        if rows[0] != rows[1] or box.element_type != to.element_type:
            raise VerifyException(f"cannot copy a box {box} to {to}")
        if len(self.coordinates) != box.get_num_dims():
            raise VerifyException(f"expected {box.get_num_dims()} coordinates for {box}")


OPS = (
    MBarrierCreateOp,
    MBarrierInitOp,
    MBarrierArriveOp,
    MBarrierArriveExpectTxOp,
    MBarrierTryWaitParityOp,
    TmaCreateDescriptorOp,
    TmaAsyncLoadOp,
)
