"""Prints warpgroup matrix multiplication (wgmma) as CUDA C++."""

from __future__ import annotations

from xdsl.ir import Operation, SSAValue

from irees.backends.common.printer import Handler, Printer, handles
from irees.backends.common.types import scalar
from irees.dialects import irees
from irees.dialects.irees import WarpgroupAccumulatorOp, WarpgroupSumsOp
from irees.dialects.nvgpu import (
    WarpgroupAccumulatorType,
    WarpgroupGenerateDescriptorOp,
    WarpgroupMmaInitAccumulatorOp,
    WarpgroupMmaOp,
    swizzled_bytes,
)
from irees.dialects.nvvm import WgmmaWaitGroupOp

WARPGROUPS: dict[str, Handler] = {}

MODES = {128: 1, 64: 2, 32: 3}
"""Row bytes => swizzle mode of a wgmma descriptor."""

PIECE = 16
"""Unit of descriptor offsets, in bytes."""

ROWS = 8
"""Period of the swizzle pattern, in rows."""


def columns_of(kind: WarpgroupAccumulatorType) -> int:
    """Columns of an accumulator."""
    return kind.fragmented.get_shape()[1]


@handles("nvgpu.warpgroup.generate.descriptor", table=WARPGROUPS)
def _descriptor(p: Printer, op: Operation) -> None:
    assert isinstance(op, WarpgroupGenerateDescriptorOp)
    p.warpgroups = True  # type: ignore[attr-defined]
    kind = op.descriptor.type.tensor  # type: ignore[attr-defined]
    row = swizzled_bytes(kind)
    # Distance between blocks of 64 elements if rows are reduction steps; ignored otherwise.
    leading = row * kind.get_shape()[1] if kind.get_num_dims() == 3 else PIECE
    buffer = p.buffer(op.tensor)
    text = f"irees_descriptor({buffer.pointer}, {leading}, {ROWS * row}, {MODES[row]})"
    name = p.fresh("d")
    p.line(f"const uint64_t {name} = {text};")
    p.names[op.descriptor] = name


@handles("nvgpu.warpgroup.mma.init.accumulator", table=WARPGROUPS)
def _init(p: Printer, op: Operation) -> None:
    """Declares a C variable: wgmma accumulates in place."""
    assert isinstance(op, WarpgroupMmaInitAccumulatorOp)
    start = " IREES_FRESH" if is_fresh(op.matrix_c) else " = {}"
    name = p.fresh()
    p.line(f"{p.expressions.type(op.matrix_c.type)} {name}{start};")
    p.names[op.matrix_c] = name


def is_fresh(accumulator: SSAValue) -> bool:
    """Whether a product starts an accumulator, so that nothing has to zero it."""
    if not isinstance(accumulator.owner, WarpgroupMmaInitAccumulatorOp):
        return False
    users = [use.operation for use in accumulator.uses]
    return all(
        isinstance(u, WarpgroupMmaOp) and u.parent is accumulator.owner.parent for u in users
    )


def move_of(turned: bool) -> int:
    """16 reduction steps: 32 bytes within a row, or 16 rows of 128 bytes, in units of `PIECE`."""
    return 16 * 128 // PIECE if turned else 32 // PIECE


@handles("irees.warpgroup_accumulator", table=WARPGROUPS)
def _accumulator(p: Printer, op: Operation) -> None:
    assert isinstance(op, WarpgroupAccumulatorOp)
    name = p.fresh()
    p.line(f"{p.expressions.type(op.accumulator.type)} {name} IREES_FRESH;")
    for number, value in enumerate(op.sums):
        p.line(f"irees_set_warpgroup_sums<{number}>({name}, {p.name(value)});")
    p.names[op.accumulator] = name


@handles("irees.warpgroup_mma", table=WARPGROUPS)
def _mma_of_registers(p: Printer, op: Operation) -> None:
    assert isinstance(op, irees.WarpgroupMmaOp)
    p.waits = True  # type: ignore[attr-defined]
    _, columns, steps = op.shape
    turned = op.transpose_b is not None
    element = scalar(op.descriptor_b.type.tensor.element_type)  # type: ignore[attr-defined]
    arguments = f"{element}, {columns}, {steps // 16}, {move_of(turned)}, {str(turned).lower()}"
    sums, words = p.name(op.matrix_c), p.fresh("w")
    list_ = ", ".join(f"irees_word({p.name(word)})" for word in op.words)
    p.line(f"const uint32_t {words}[] = {{{list_}}};")
    p.line(
        f"irees_warpgroup_mma_registers<{arguments}>({sums}, {words}, {p.name(op.descriptor_b)});"
    )
    p.names[op.matrix_d] = sums


@handles("nvgpu.warpgroup.mma", table=WARPGROUPS)
def _mma(p: Printer, op: Operation) -> None:
    assert isinstance(op, WarpgroupMmaOp)
    p.waits = True  # type: ignore[attr-defined]
    _, columns, steps = op.shape
    turned = op.transpose_a is not None, op.transpose_b is not None
    moves = [move_of(each) for each in turned]
    element = scalar(op.descriptor_a.type.tensor.element_type)  # type: ignore[attr-defined]
    left = 0 if op.wait_group is None else op.wait_group.value.data
    flags = ", ".join(str(each).lower() for each in turned)
    arguments = f"{element}, {columns}, {steps // 16}, {moves[0]}, {moves[1]}, {flags}, {left}"
    if is_fresh(op.matrix_c):
        arguments += ", true"
    sums = p.name(op.matrix_c)
    operands = f"{sums}, {p.name(op.descriptor_a)}, {p.name(op.descriptor_b)}"
    p.line(f"irees_warpgroup_mma<{arguments}>({operands});")
    p.names[op.matrix_d] = sums


@handles("nvvm.wgmma.wait.group.sync.aligned", table=WARPGROUPS)
def _wait(p: Printer, op: Operation) -> None:
    assert isinstance(op, WgmmaWaitGroupOp)
    p.line(f"irees_warpgroup_wait<{op.group.value.data}>();")


@handles("nvvm.fence.proxy", table=WARPGROUPS)
def _fence(p: Printer, op: Operation) -> None:
    p.line("irees_fence_async();")


@handles("irees.warpgroup_sums", table=WARPGROUPS)
def _sums(p: Printer, op: Operation) -> None:
    assert isinstance(op, WarpgroupSumsOp)
    sums = p.name(op.accumulator)
    p.line(f"irees_settle({sums});")
    for number, result in enumerate(op.sums):
        p.define(result, f"irees_warpgroup_sums<{number}>({sums})")
