"""
Asynchronous ops on resources in program order, before scheduling and allocation.

`T{%n}` is a resource of `%n` bytes, `%x[%a to %b for %l]` its bytes from `%a` up to `%b`. An op
that writes into a resource has a result that is tied to it: `-> %x as T{%n}`.
"""

from __future__ import annotations

from typing import ClassVar

from xdsl.dialects.builtin import IndexType
from xdsl.ir import Attribute, Operation
from xdsl.irdl import (
    BaseAttr,
    IRDLOperation,
    VarConstraint,
    irdl_op_definition,
    operand_def,
    opt_operand_def,
    opt_prop_def,
    prop_def,
    result_def,
    traits_def,
)
from xdsl.traits import MemoryAllocEffect, Pure

from .._shaped import TiedResult
from ..hal.devices import Affinity
from .types import ResourceType, TimepointType

_ON = "(`on` `(` $affinity^ `)`)? "
_AWAIT = "(`await` `(` $await_timepoint^ `)`)? "


@irdl_op_definition
class AsyncAllocaOp(IRDLOperation):
    """Allocates a resource with undefined contents (IREE: `stream.async.alloca`)."""

    name = "stream.async.alloca"

    storage_size = operand_def(IndexType)
    affinity = opt_prop_def(Affinity)
    result = result_def(ResourceType)

    assembly_format = _ON + "attr-dict `:` type($result) `` `{` $storage_size `}`"
    traits = traits_def(MemoryAllocEffect())


@irdl_op_definition
class AsyncConstantOp(IRDLOperation):
    """A resource with constant contents (IREE: `stream.async.constant`)."""

    name = "stream.async.constant"

    await_timepoint = opt_operand_def(TimepointType)
    result_size = operand_def(IndexType)
    value = prop_def(Attribute)
    affinity = opt_prop_def(Affinity)
    result = result_def(ResourceType)

    assembly_format = (
        _ON + _AWAIT + "`:` type($result) `` `{` $result_size `}` `=` $value attr-dict-with-keyword"
    )
    traits = traits_def(Pure())


@irdl_op_definition
class AsyncSplatOp(IRDLOperation):
    """A resource filled with one pattern (IREE: `stream.async.splat`)."""

    name = "stream.async.splat"

    await_timepoint = opt_operand_def(TimepointType)
    value = operand_def()
    result_size = operand_def(IndexType)
    affinity = opt_prop_def(Affinity)
    result = result_def(ResourceType)

    assembly_format = (
        _ON + _AWAIT + "$value `:` type($value) `->` type($result) `` `{` $result_size `}` "
        "attr-dict-with-keyword"
    )
    traits = traits_def(Pure())


@irdl_op_definition
class AsyncCloneOp(IRDLOperation):
    """Copies a resource (IREE: `stream.async.clone`)."""

    name = "stream.async.clone"

    source = operand_def(ResourceType)
    source_size = operand_def(IndexType)
    result_size = operand_def(IndexType)
    affinity = opt_prop_def(Affinity)
    result = result_def(ResourceType)

    assembly_format = (
        _ON + "$source `:` type($source) `` `{` $source_size `}` `->` "
        "type($result) `` `{` $result_size `}` attr-dict-with-keyword"
    )
    traits = traits_def(Pure())


@irdl_op_definition
class AsyncSliceOp(IRDLOperation):
    """Copies a range of a resource (IREE: `stream.async.slice`)."""

    name = "stream.async.slice"
    T: ClassVar = VarConstraint("T", BaseAttr(ResourceType))

    source = operand_def(T)
    source_size = operand_def(IndexType)
    source_offset = operand_def(IndexType)
    source_end = operand_def(IndexType)
    result_size = operand_def(IndexType)
    affinity = opt_prop_def(Affinity)
    result = result_def(T)

    assembly_format = (
        _ON + "$source `[` $source_offset `to` $source_end `]` `:` "
        "type($source) `` `{` $source_size `}` `->` type($result) `` `{` $result_size `}` "
        "attr-dict-with-keyword"
    )
    traits = traits_def(Pure())


@irdl_op_definition
class AsyncFillOp(IRDLOperation):
    """Fills a range of a resource with one pattern (IREE: `stream.async.fill`)."""

    name = "stream.async.fill"
    T: ClassVar = VarConstraint("T", BaseAttr(ResourceType))

    target = operand_def(T)
    target_size = operand_def(IndexType)
    target_offset = operand_def(IndexType)
    target_end = operand_def(IndexType)
    target_length = operand_def(IndexType)
    value = operand_def()
    affinity = opt_prop_def(Affinity)
    result = result_def(T)

    custom_directives = (TiedResult,)
    assembly_format = (
        _ON + "$value `,` $target `[` $target_offset `to` $target_end `for` $target_length `]` `:` "
        "type($value) `->` custom<TiedResult>(type($target), $target_size) attr-dict-with-keyword"
    )
    traits = traits_def(Pure())


@irdl_op_definition
class AsyncUpdateOp(IRDLOperation):
    """Overwrites a range of a resource with another resource (IREE: `stream.async.update`)."""

    name = "stream.async.update"
    T: ClassVar = VarConstraint("T", BaseAttr(ResourceType))

    target = operand_def(T)
    target_size = operand_def(IndexType)
    target_offset = operand_def(IndexType)
    target_end = operand_def(IndexType)
    update = operand_def(ResourceType)
    update_size = operand_def(IndexType)
    affinity = opt_prop_def(Affinity)
    result = result_def(T)

    custom_directives = (TiedResult,)
    assembly_format = (
        _ON + "$update `,` $target `[` $target_offset `to` $target_end `]` `:` "
        "type($update) `` `{` $update_size `}` `->` "
        "custom<TiedResult>(type($target), $target_size) attr-dict-with-keyword"
    )
    traits = traits_def(Pure())


@irdl_op_definition
class AsyncCopyOp(IRDLOperation):
    """Copies a range of a resource into a range of another (IREE: `stream.async.copy`)."""

    name = "stream.async.copy"
    T: ClassVar = VarConstraint("T", BaseAttr(ResourceType))

    target = operand_def(T)
    target_size = operand_def(IndexType)
    target_offset = operand_def(IndexType)
    target_end = operand_def(IndexType)
    source = operand_def(ResourceType)
    source_size = operand_def(IndexType)
    source_offset = operand_def(IndexType)
    source_end = operand_def(IndexType)
    length = operand_def(IndexType)
    affinity = opt_prop_def(Affinity)
    result = result_def(T)

    custom_directives = (TiedResult,)
    assembly_format = (
        _ON + "$source `[` $source_offset `to` $source_end `]` `,` "
        "$target `[` $target_offset `to` $target_end `]` `,` $length `:` "
        "type($source) `` `{` $source_size `}` `->` "
        "custom<TiedResult>(type($target), $target_size) attr-dict-with-keyword"
    )
    traits = traits_def(Pure())


@irdl_op_definition
class AsyncBarrierOp(IRDLOperation):
    """Requires a resource to be on a device, without a copy (IREE: `stream.async.barrier`)."""

    name = "stream.async.barrier"
    T: ClassVar = VarConstraint("T", BaseAttr(ResourceType))

    source = operand_def(T)
    size = operand_def(IndexType)
    affinity = opt_prop_def(Affinity)
    result = result_def(T)

    assembly_format = _ON + "$source `:` type($source) `` `{` $size `}` attr-dict-with-keyword"
    traits = traits_def(Pure())


@irdl_op_definition
class AsyncTransferOp(IRDLOperation):
    """
    Transfers a resource to another lifetime or device. It runs on `execution_affinity`; by default
    on the source's device, or on the target's if the source is external, or staging and the result
    is not (IREE: `stream.async.transfer`).
    """

    name = "stream.async.transfer"

    source = operand_def(ResourceType)
    source_size = operand_def(IndexType)
    result_size = operand_def(IndexType)
    source_affinity = opt_prop_def(Affinity)
    target_affinity = opt_prop_def(Affinity)
    execution_affinity = opt_prop_def(Affinity)
    result = result_def(ResourceType)

    assembly_format = (
        "(`on` `(` $execution_affinity^ `)`)? $source `:` type($source) `` `{` $source_size `}` "
        "(`from` `(` $source_affinity^ `)`)? `->` (`to` `(` $target_affinity^ `)`)? "
        "type($result) `` `{` $result_size `}` attr-dict-with-keyword"
    )
    traits = traits_def(Pure())


OPS: list[type[Operation]] = [
    AsyncAllocaOp,
    AsyncConstantOp,
    AsyncSplatOp,
    AsyncCloneOp,
    AsyncSliceOp,
    AsyncFillOp,
    AsyncUpdateOp,
    AsyncCopyOp,
    AsyncBarrierOp,
    AsyncTransferOp,
]
