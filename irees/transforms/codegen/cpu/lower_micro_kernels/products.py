"""
The loops over K of a micro-kernel, and its outer products. Part of `irees-lower-micro-kernels`.
"""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.dialects import arith, memref, vector
from xdsl.dialects.builtin import AnyFloat, IntegerAttr, IntegerType, VectorType, i32
from xdsl.ir import SSAValue

from irees.dialects.irees import DotOp
from irees.dialects.panel import element_of
from irees.dialects.sizes import Size, folded
from irees.dialects.x86vector import Avx512DotOp
from irees.transforms.codegen.cpu.lower_micro_kernels.block import Block
from irees.transforms.codegen.cpu.lower_micro_kernels.prefetch import (
    NextPanel,
    next_panel,
    prefetch_ahead,
    steps_ahead,
)
from irees.transforms.codegen.cpu.utils.widening import widened
from irees.transforms.utils.lanes import vector_of
from irees.transforms.utils.loops import for_loop
from irees.transforms.utils.shapes import IndexBuilder

SIGNS = 0x80808080 - (1 << 32)
"""The sign bits of four i8: xor with it adds 128 to each, giving an unsigned value."""


@dataclass(frozen=True)
class Step:
    """Where a step of K is, in the loops of K that are open."""

    rows: list[Size]
    """The element of A in each row of the block."""
    column: Size
    """The first element of B."""
    number: Size
    """Steps of K before this one, if there are prefetches."""


def sum_products(block: Block, at: IndexBuilder) -> list[SSAValue]:
    """Returns the sums of a micro-kernel: its accumulators plus all products."""
    op = block.op
    step = Step(list(map(folded, op.rows)), folded(op.column), 0)
    return _reduce(block, 0, step, list(op.accs), next_panel(block, at), at)


def _reduce(
    block: Block, level: int, step: Step, accs: list[SSAValue], after: NextPanel | None,
    at: IndexBuilder,
) -> list[SSAValue]:  # fmt: skip
    """Emits the loops of K from `level` on, with C in loop-carried registers."""
    if level == len(block.trips):
        if after is not None:
            after.prefetch(step.number, at)
        return _step(block, step, accs, at)
    size, step_b = block.trips[level], block.b_steps[level]
    close, k, b = for_loop(at, 0, size, 1, accs)
    ahead = b.mul(k, block.a_steps[level])
    rows = [b.add(row, ahead) for row in step.rows]
    number = step.number if after is None else b.add(b.mul(step.number, size), k)
    column = b.add(step.column, b.mul(k, step_b))
    steps = steps_ahead(block)
    if level + 1 == len(block.trips) and steps is not None:
        prefetch_ahead(block, column, steps, b)
    inner = Step(rows, column, number)
    return close(_reduce(block, level + 1, inner, list(close.arguments), after, b))


def _step(block: Block, step: Step, accs: list[SSAValue], b: IndexBuilder) -> list[SSAValue]:
    """Emits one outer product: acc[r, v] + broadcast(A[r]) * B[v]."""
    vectors, out = block.op.vectors, list[SSAValue]()
    columns = [
        _column(block, b.add(step.column, b.mul(block.apart, v)), v, b) for v in range(vectors)
    ]
    multiply = _multiply_add if block.group == 1 else _multiply_group
    broadcast = _broadcast if block.group == 1 else _broadcast_group
    for r, row in enumerate(step.rows):
        splat = broadcast(block, row, b)
        for acc, column in zip(accs[r * vectors : (r + 1) * vectors], columns, strict=True):
            out.append(multiply(block, acc, splat, column, b))
    return out


def _column(block: Block, start: Size, v: int, b: IndexBuilder) -> SSAValue:
    """Returns vector `v` of B, widened."""
    op, element = block.op, element_of(block.op.b)
    if op.valid is None or _is_whole(block, v):
        kind = vector_of(element, block.lanes * block.group)
        value = b.insert(vector.LoadOp(op.b, [b.value(start)], kind)).results[0]
        return _widened_b(block, value, b)
    # Columns past the end of an unpacked B may be out of bounds.
    assert op.fill is not None
    valid = b.minimum(b.sub(folded(op.valid), v * block.lanes), block.lanes)
    close, lane, c = for_loop(b, 0, b.maximum(valid, 0), 1, [op.fill])
    value = c.insert(memref.LoadOp.get(op.b, [c.value(c.add(start, lane))])).results[0]
    value = _widened_b(block, value, c)
    return close([c.insert(vector.InsertOp(value, close.arguments[0], [lane])).results[0]])[0]


def _is_whole(block: Block, v: int) -> bool:
    """Whether all lanes of vector `v` are valid columns."""
    assert block.op.valid is not None
    valid = folded(block.op.valid)
    return isinstance(valid, int) and (v + 1) * block.lanes <= valid


def _widened_b(block: Block, value: SSAValue, b: IndexBuilder) -> SSAValue:
    if block.group > 1:
        return value
    unsigned = block.op.unsigned_b is not None
    return widened(value, block.kind.element_type, b, unsigned=unsigned)


def _broadcast(block: Block, row: Size, b: IndexBuilder) -> SSAValue:
    """Returns an element of A in all lanes."""
    op = block.op
    scalar = b.insert(memref.LoadOp.get(op.a, [b.value(row)])).results[0]
    unsigned = op.unsigned_a is not None
    scalar = widened(scalar, block.kind.element_type, b, unsigned=unsigned)
    return b.insert(vector.BroadcastOp(scalar, block.kind)).results[0]


def _multiply_add(
    block: Block, acc: SSAValue, a: SSAValue, b: SSAValue, at: IndexBuilder
) -> SSAValue:
    """acc + a * b"""
    is_float = isinstance(block.kind.element_type, AnyFloat)
    multiply, add = (arith.MulfOp, arith.AddfOp) if is_float else (arith.MuliOp, arith.AddiOp)
    return at.insert(add(acc, at.insert(multiply(a, b)).results[0])).results[0]


def _broadcast_group(block: Block, row: Size, b: IndexBuilder) -> SSAValue:
    """Returns a group of A in every 32-bit lane."""
    op, element, group = block.op, element_of(block.op.a), block.group
    part = b.insert(vector.LoadOp(op.a, [b.value(row)], vector_of(element, group))).results[0]
    word = b.insert(vector.ExtractOp(_bits(part, vector_of(i32, 1), b), [0], i32)).results[0]
    if op.bias is not None:
        flip = b.insert(arith.ConstantOp(IntegerAttr(SIGNS, i32))).results[0]
        word = b.insert(arith.XOrIOp(word, flip)).results[0]
    words = b.insert(vector.BroadcastOp(word, vector_of(i32, block.lanes))).results[0]
    return _bits(words, vector_of(element, block.lanes * group), b)


def _multiply_group(
    block: Block, acc: SSAValue, a: SSAValue, b: SSAValue, at: IndexBuilder
) -> SSAValue:
    """acc + a . b in each 32-bit lane"""
    if not isinstance(element_of(block.op.b), IntegerType):
        return at.insert(Avx512DotOp(acc, a, b)).results[0]
    return at.insert(DotOp(acc, *((b, a) if block.op.unsigned_b else (a, b)))).results[0]


def _bits(value: SSAValue, kind: VectorType, at: IndexBuilder) -> SSAValue:
    """Returns the value bitcast to another vector type."""
    return at.insert(vector.BitcastOp(value, kind)).results[0]
