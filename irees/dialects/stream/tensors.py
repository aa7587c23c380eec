"""
Tensors as resources: sizes in bytes, imports from callers and exports to them.

`E{%d} in T{%n}` is a tensor of type `E`, with its dynamic dims, in a resource of `%n` bytes.
"""

from __future__ import annotations

from xdsl.dialects.builtin import IndexType, UnitAttr
from xdsl.ir import Attribute, Operation
from xdsl.irdl import (
    AttrSizedOperandSegments,
    IRDLOperation,
    irdl_op_definition,
    operand_def,
    opt_prop_def,
    prop_def,
    result_def,
    traits_def,
    var_operand_def,
)
from xdsl.traits import Pure
from xdsl.utils.exceptions import VerifyException

from .._shaped import size_count
from ..hal.devices import Affinity
from .types import ResourceType

_ON = "(`on` `(` $affinity^ `)`)? "
_RESULT = (
    "$result_encoding (`` `{` $result_encoding_dims^ `}`)? "
    "`in` type($result) `` `{` $result_size `}` "
)
_SOURCE = (
    "$source_encoding (`` `{` $source_encoding_dims^ `}`)? "
    "`in` type($source) `` `{` $source_size `}` "
)


def _check_dims(encoding: Attribute, given: int) -> None:
    if size_count(encoding) != given:
        raise VerifyException(
            f"{encoding} has {size_count(encoding)} dynamic dims, but {given} are given"
        )


@irdl_op_definition
class TensorImportOp(IRDLOperation):
    """Imports a caller's buffer as a resource (IREE: `stream.tensor.import`)."""

    name = "stream.tensor.import"

    source = operand_def()
    result_encoding_dims = var_operand_def(IndexType)
    result_size = operand_def(IndexType)
    result_encoding = prop_def(Attribute)
    consume = opt_prop_def(UnitAttr)
    affinity = opt_prop_def(Affinity)
    result = result_def(ResourceType)

    assembly_format = (
        _ON
        + "(`consume` $consume^)? $source `:` type($source) `->` "
        + _RESULT
        + "attr-dict-with-keyword"
    )
    traits = traits_def(Pure())

    def verify_(self) -> None:
        _check_dims(self.result_encoding, len(self.result_encoding_dims))


@irdl_op_definition
class TensorExportOp(IRDLOperation):
    """Exports a resource as a buffer to the caller (IREE: `stream.tensor.export`)."""

    name = "stream.tensor.export"

    source = operand_def(ResourceType)
    source_encoding_dims = var_operand_def(IndexType)
    source_size = operand_def(IndexType)
    source_encoding = prop_def(Attribute)
    affinity = opt_prop_def(Affinity)
    result = result_def()

    assembly_format = _ON + "$source `:` " + _SOURCE + "`->` type($result) attr-dict-with-keyword"
    traits = traits_def(Pure())

    def verify_(self) -> None:
        _check_dims(self.source_encoding, len(self.source_encoding_dims))


@irdl_op_definition
class TensorSizeOfOp(IRDLOperation):
    """Returns the size of a tensor on a device, in bytes (IREE: `stream.tensor.sizeof`)."""

    name = "stream.tensor.sizeof"

    encoding_dims = var_operand_def(IndexType)
    encoding = prop_def(Attribute)
    affinity = opt_prop_def(Affinity)
    storage_size = result_def(IndexType)

    assembly_format = _ON + "$encoding (`{` $encoding_dims^ `}`)? attr-dict `:` type($storage_size)"
    traits = traits_def(Pure())

    def verify_(self) -> None:
        _check_dims(self.encoding, len(self.encoding_dims))


@irdl_op_definition
class TensorConstantOp(IRDLOperation):
    """A constant tensor (IREE: `stream.tensor.constant`)."""

    name = "stream.tensor.constant"

    result_encoding_dims = var_operand_def(IndexType)
    value = prop_def(Attribute)
    result_encoding = prop_def(Attribute)
    affinity = opt_prop_def(Affinity)
    result = result_def(ResourceType)

    assembly_format = (
        _ON + "`:` $result_encoding (`` `{` $result_encoding_dims^ `}`)? `in` type($result) "
        "`=` $value attr-dict-with-keyword"
    )
    traits = traits_def(Pure())

    def verify_(self) -> None:
        _check_dims(self.result_encoding, len(self.result_encoding_dims))


@irdl_op_definition
class TensorSplatOp(IRDLOperation):
    """Fills a tensor with a scalar (IREE: `stream.tensor.splat`)."""

    name = "stream.tensor.splat"

    value = operand_def()
    result_encoding_dims = var_operand_def(IndexType)
    result_size = operand_def(IndexType)
    result_encoding = prop_def(Attribute)
    affinity = opt_prop_def(Affinity)
    result = result_def(ResourceType)

    assembly_format = _ON + "$value `:` type($value) `->` " + _RESULT + "attr-dict-with-keyword"
    traits = traits_def(Pure())

    def verify_(self) -> None:
        _check_dims(self.result_encoding, len(self.result_encoding_dims))


@irdl_op_definition
class TensorCloneOp(IRDLOperation):
    """Copies a tensor (IREE: `stream.tensor.clone`)."""

    name = "stream.tensor.clone"

    source = operand_def(ResourceType)
    source_encoding_dims = var_operand_def(IndexType)
    source_size = operand_def(IndexType)
    result_encoding_dims = var_operand_def(IndexType)
    result_size = operand_def(IndexType)
    source_encoding = prop_def(Attribute)
    result_encoding = prop_def(Attribute)
    affinity = opt_prop_def(Affinity)
    result = result_def(ResourceType)

    irdl_options = (AttrSizedOperandSegments(as_property=True),)
    assembly_format = _ON + "$source `:` " + _SOURCE + "`->` " + _RESULT + "attr-dict-with-keyword"
    traits = traits_def(Pure())

    def verify_(self) -> None:
        _check_dims(self.source_encoding, len(self.source_encoding_dims))
        _check_dims(self.result_encoding, len(self.result_encoding_dims))


OPS: list[type[Operation]] = [
    TensorImportOp,
    TensorExportOp,
    TensorSizeOfOp,
    TensorConstantOp,
    TensorSplatOp,
    TensorCloneOp,
]
