"""
Builds the ops between a program and its callers: imports of views, exports of tensors.
"""

from __future__ import annotations

from xdsl.dialects.builtin import DYNAMIC_INDEX, IndexType, IntegerAttr, TensorType
from xdsl.ir import SSAValue
from xdsl.rewriter import InsertPoint

from irees.dialects.hal import (
    Affinity,
    BufferViewDimOp,
    BufferViewType,
    TensorExportOp,
    TensorImportOp,
)
from irees.transforms.utils.shapes import IndexBuilder, sizes_of


def _sizes_of_view(view: SSAValue, kind: TensorType, builder: IndexBuilder) -> list[SSAValue]:
    return [
        builder.insert(
            BufferViewDimOp.build(
                operands=[view],
                properties={"index": IntegerAttr.from_index_int_value(index)},
                result_types=[IndexType()],
            )
        ).results[0]
        for index, size in enumerate(kind.get_shape())
        if size == DYNAMIC_INDEX
    ]


def import_of(view: SSAValue, kind: TensorType, on: Affinity | None, at: InsertPoint) -> SSAValue:
    """hal.tensor.import %view : !hal.buffer_view -> kind"""
    builder = IndexBuilder(at)
    made = TensorImportOp.build(
        operands=[view, _sizes_of_view(view, kind, builder), [], []],
        properties={"target_encoding": kind, **({"affinity": on} if on else {})},
        result_types=[kind],
    )
    return builder.insert(made).results[0]


def export_of(value: SSAValue, on: Affinity | None, at: InsertPoint) -> SSAValue:
    """hal.tensor.export %value : kind -> !hal.buffer_view"""
    builder = IndexBuilder(at)
    made = TensorExportOp.build(
        operands=[value, sizes_of(value, builder)],
        properties={"source_encoding": value.type, **({"affinity": on} if on else {})},
        result_types=[BufferViewType()],
    )
    return builder.insert(made).results[0]
