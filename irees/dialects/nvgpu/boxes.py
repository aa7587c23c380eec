"""Bulk copies: boxes of tensors, and the barriers that count what arrives of them."""

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
    of 8 bytes each in shared memory, which count threads that arrive, and bytes.
    """

    name = "nvgpu.mbarrier.group"
    memory_space: Attribute
    count: IntAttr

    @staticmethod
    def of(count: int) -> MBarrierGroupType:
        """So many barriers of a workgroup."""
        return MBarrierGroupType(AddressSpaceAttr(AddressSpace.WORKGROUP), IntAttr(count))

    @property
    def bytes(self) -> int:
        """What they take of shared memory."""
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
            raise VerifyException("barriers are in shared memory, one or more")


MOST_DIMS, LONGEST_BOX, BOX_BYTES = 5, 256, 16
"""Dims of a tensor map, points of a box along one of them, and bytes that its rows are made of."""


@irdl_attr_definition
class TensorMapDescriptorType(ParametrizedAttribute, TypeAttribute):
    """
    `!nvgpu.tensormap.descriptor<tensor = ..., swizzle = swizzle_128b, l2promo = none, oob = zero,
    interleave = none>`: a tensor that is copied in boxes. `tensor` is a box in shared memory.

    Of a box, rows along the last dim have no more bytes than the swizzle that moves their pieces.
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
        """Boxes whose rows are swizzled by as many bytes as they have; outside of it all is 0."""
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
            raise VerifyException("boxes are swizzled by the 32, 64 or 128 bytes of their rows")
        shape = self.tensor.get_shape()
        if len(shape) > MOST_DIMS or not all(0 < size <= LONGEST_BOX for size in shape):
            raise VerifyException(f"a box has {MOST_DIMS} dims at most, of 1 to {LONGEST_BOX}")

    @property
    def bytes(self) -> int:
        """What one copy brings."""
        return prod(self.tensor.get_shape()[:-1]) * swizzled_bytes(self.tensor)


@irdl_op_definition
class MBarrierCreateOp(IRDLOperation):
    """Barriers in shared memory, which nobody may use before they are initialised."""

    name = "nvgpu.mbarrier.create"

    barriers = result_def(MBarrierGroupType)
    assembly_format = "attr-dict `->` type($barriers)"

    def __init__(self, count: int):
        super().__init__(result_types=[MBarrierGroupType.of(count)])


@irdl_op_definition
class MBarrierInitOp(IRDLOperation):
    """A barrier's first phase begins, which ends when `count` threads have arrived."""

    name = "nvgpu.mbarrier.init"

    barriers = operand_def(MBarrierGroupType)
    count = operand_def(IndexType)
    number = operand_def(IndexType)
    assembly_format = "$barriers `[` $number `]` `,` $count attr-dict `:` type($barriers)"

    def __init__(self, barriers: SSAValue, number: SSAValue, count: SSAValue):
        super().__init__(operands=[barriers, count, number])


@irdl_op_definition
class MBarrierArriveExpectTxOp(IRDLOperation):
    """The thread arrives, and the phase does not end before `txcount` more bytes have."""

    name = "nvgpu.mbarrier.arrive.expect_tx"

    barriers = operand_def(MBarrierGroupType)
    txcount = operand_def(IndexType)
    number = operand_def(IndexType)
    assembly_format = "$barriers `[` $number `]` `,` $txcount attr-dict `:` type($barriers)"

    def __init__(self, barriers: SSAValue, number: SSAValue, txcount: SSAValue):
        super().__init__(operands=[barriers, txcount, number])


@irdl_op_definition
class MBarrierTryWaitParityOp(IRDLOperation):
    """
    Waits for the end of the phase of that parity: the first is even, its parity 0. For that of the
    phase before the present one nobody waits. After `ticks` nanoseconds it is asked again.
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
    A tensor map: what copies of boxes of a buffer need to know, as the host encodes it.

    The buffer begins at a multiple of 16 bytes, and so are its strides along all dims but the last,
    which is dense. MLIR's has no rank.
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
            raise VerifyException(f"no boxes {box} of {kind}")


@irdl_op_definition
class TmaAsyncLoadOp(IRDLOperation):
    """
    Begins to copy the box at some coordinates to shared memory; a barrier counts its bytes as they
    arrive: `cp.async.bulk.tensor` of PTX. One thread does it for all. What is outside of the tensor
    is 0. The rows of the box lie there one after the other, from a place on where its swizzle
    begins. MLIR's has a mask of workgroups and a predicate more.
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
            raise VerifyException(f"no copies of {box} to {to}")
        if len(self.coordinates) != box.get_num_dims():
            raise VerifyException(f"a place of {box} has {box.get_num_dims()} coordinates")


OPS = (
    MBarrierCreateOp,
    MBarrierInitOp,
    MBarrierArriveExpectTxOp,
    MBarrierTryWaitParityOp,
    TmaCreateDescriptorOp,
    TmaAsyncLoadOp,
)
