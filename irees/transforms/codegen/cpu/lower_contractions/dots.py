"""
Lowers contractions to dot products of narrow elements. Part of `irees-lower-contractions`.

    acc[r, v] += broadcast(A[r, 4k : 4k + 4]) . B[4k : 4k + 4, v]

K is split into groups of four i8 or two bf16 that are contiguous. In A they are if K is
contiguous, else A is packed; B is packed as [K/4, NR, 4] (`irees-pack-panels`).
"""

from __future__ import annotations

from xdsl.dialects import arith, vector
from xdsl.dialects.builtin import (
    DenseIntOrFPElementsAttr,
    IntegerAttr,
    IntegerType,
    i32,
)
from xdsl.ir import SSAValue

from irees.analysis.dot_products import DotProduct
from irees.dialects.irees import DotOp
from irees.dialects.x86vector import Avx512DotOp
from irees.transforms.codegen.cpu.lower_contractions.epilogue import Slice
from irees.transforms.codegen.cpu.lower_contractions.panels import Columns, Panels
from irees.transforms.codegen.cpu.lower_contractions.plan import Plan
from irees.transforms.utils.lanes import vector_of
from irees.transforms.utils.loops import for_loop
from irees.transforms.utils.shapes import IndexBuilder, Size

SIGNS = 0x80808080 - (1 << 32)
"""The sign bits of four i8: xor with it adds 128 to each, giving an unsigned value."""

SIGN = -128
"""-128 as i8, 128 as unsigned i8."""


# --- the kernel ---------------------------------------------------------------------------


def flipping(panels: Panels, at: IndexBuilder) -> SSAValue | None:
    """Returns the mask that flips the signs of a broadcast group; None if packing flipped them."""
    dot = panels.plan.dot
    if dot is None or not dot.biased or panels.a is not None:
        return None
    return at.insert(arith.ConstantOp(IntegerAttr(SIGNS, i32))).results[0]


def wide_broadcast(
    plan: Plan, source: SSAValue, row: Size, flip: SSAValue | None, at: IndexBuilder
) -> SSAValue:
    """Returns the group of A at `row`, broadcast to every 32-bit lane."""
    assert plan.dot is not None
    element, group, lanes = plan.dot.element, plan.dot.group, plan.lanes
    part = at.insert(vector.LoadOp(source, [at.value(row)], vector_of(element, group))).results[0]
    word = at.insert(vector.ExtractOp(bits(part, vector_of(i32, 1), at), [0], i32)).results[0]
    if flip is not None:
        word = at.insert(arith.XOrIOp(word, flip)).results[0]
    words = at.insert(vector.BroadcastOp(word, vector_of(i32, lanes))).results[0]
    return bits(words, vector_of(element, lanes * group), at)


def multiply_group(
    dot: DotProduct, acc: SSAValue, a: SSAValue, b: SSAValue, at: IndexBuilder
) -> SSAValue:
    """acc + a . b in each 32-bit lane"""
    if not isinstance(dot.element, IntegerType):
        return at.insert(Avx512DotOp(acc, a, b)).results[0]
    return at.insert(DotOp(acc, *((b, a) if dot.swapped else (a, b)))).results[0]


def column_sums(
    panels: Panels,
    columns: Columns,
    base: Size,
    part: Slice,
    zero: SSAValue,
    at: IndexBuilder,
) -> list[SSAValue]:
    """-128 * sum over k of B[k, columns], one vector at a time"""
    plan = panels.plan
    assert plan.dot is not None
    kind = vector_of(plan.packed_element, plan.lanes * plan.group)
    last = plan.loops.k[-1][-1]
    size: Size = (
        at.product([plan.sizes[x] for x in plan.loops.k[-1]]) if part.depth is None else part.depth
    )
    if panels.b is not None:
        source, start, step = panels.b, 0, columns.vectors * plan.lanes * plan.group
    else:
        source, start = plan.b.flat, at.add(base, at.mul(part.start, plan.b.steps[last]))
        step = at.mul(plan.b.steps[last], plan.group)
    ones = splat_of(SIGN, plan.packed_element, plan.lanes * plan.group, at)
    begin = [zero] * columns.vectors
    close, k, b = for_loop(at, 0, at.ceildiv(size, plan.group), 1, begin)
    row, sums = b.add(start, b.mul(k, step)), list[SSAValue]()
    for v, total in enumerate(close.arguments):
        place = b.value(b.add(row, v * plan.lanes * plan.group))
        read = b.insert(vector.LoadOp(source, [place], kind)).results[0]
        sums.append(b.insert(DotOp(total, ones, read)).results[0])
    return [at.insert(arith.SubiOp(zero, total)).results[0] for total in close(sums)]


# --- values -------------------------------------------------------------------------------


def bits(value: SSAValue, kind: object, at: IndexBuilder) -> SSAValue:
    """Returns the value bitcast to another vector type."""
    return at.insert(vector.BitcastOp(value, kind)).results[0]


def splat_of(number: int, element: IntegerType, lanes: int, at: IndexBuilder) -> SSAValue:
    """Returns a constant vector."""
    value = DenseIntOrFPElementsAttr.from_list(vector_of(element, lanes), [number])
    return at.insert(arith.ConstantOp(value)).results[0]
