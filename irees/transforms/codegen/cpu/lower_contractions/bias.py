"""
Corrects the sums of biased rows of A. Part of `irees-lower-contractions`.

    sum over k of A[r, k] * B[k, v] = sum over k of (A[r, k] + 128) * B[k, v] - 128 * sum of B[k, v]

A dot product of i8 takes unsigned elements of A, so signed ones are biased by 128.
"""

from __future__ import annotations

from xdsl.dialects import arith, vector
from xdsl.dialects.builtin import DenseIntOrFPElementsAttr
from xdsl.ir import SSAValue

from irees.dialects.irees import DotOp
from irees.transforms.codegen.cpu.lower_contractions.epilogue import Slice
from irees.transforms.codegen.cpu.lower_contractions.panels import Columns, Panels
from irees.transforms.utils.lanes import vector_of
from irees.transforms.utils.loops import for_loop
from irees.transforms.utils.shapes import IndexBuilder, Size

SIGN = -128
"""-128 as i8, 128 as unsigned i8."""


def column_sums(
    panels: Panels, columns: Columns, base: Size, part: Slice, zero: SSAValue, at: IndexBuilder
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
    ones = at.insert(arith.ConstantOp(DenseIntOrFPElementsAttr.from_list(kind, [SIGN]))).results[0]
    begin = [zero] * columns.vectors
    close, k, b = for_loop(at, 0, at.ceildiv(size, plan.group), 1, begin)
    row, sums = b.add(start, b.mul(k, step)), list[SSAValue]()
    for v, total in enumerate(close.arguments):
        place = b.value(b.add(row, v * plan.lanes * plan.group))
        read = b.insert(vector.LoadOp(source, [place], kind)).results[0]
        sums.append(b.insert(DotOp(total, ones, read)).results[0])
    return [at.insert(arith.SubiOp(zero, total)).results[0] for total in close(sums)]
