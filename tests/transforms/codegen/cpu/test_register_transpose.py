"""Which rows the parts of transposed columns have."""

from __future__ import annotations

import pytest
from xdsl.dialects.builtin import VectorType, f32
from xdsl.ir import Block
from xdsl.rewriter import InsertPoint

from irees.transforms.codegen.cpu.utils.register_transpose import parts_of_columns
from irees.transforms.utils.shapes import IndexBuilder


@pytest.mark.parametrize("rows", range(1, 14))
@pytest.mark.parametrize("vectors", [1, 2, 3])
def test_parts_cover_each_column(rows: int, vectors: int) -> None:
    block = Block(arg_types=[VectorType(f32, [8])] * (rows * vectors))
    at = IndexBuilder(InsertPoint.at_end(block))
    matrix = [block.args[i * vectors : (i + 1) * vectors] for i in range(rows)]
    covered: dict[int, set[int]] = {}
    for column, first, part in parts_of_columns(matrix, 8, at):
        assert isinstance(part.type, VectorType)
        (count,) = part.type.get_shape()
        covered.setdefault(column, set()).update(range(first, first + count))
    assert covered == {column: set(range(rows)) for column in range(8 * vectors)}
