"""
Decides by which matrix instructions an attention is computed. Part of
`irees-gpu-select-strategy` and `irees-gpu-lower-attention`.

Both kinds keep the scores in registers. `mma.sync` takes 64 rows of queries and whole 16-byte
copies; `wgmma` takes operands that are boxes of buffers outside the workgroup, whose features are
multiples of 64.
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.ir import BlockArgument

from irees.analysis.attention import AttentionRoles, loops_in, roles_of
from irees.dialects import iree_linalg_ext as ext
from irees.dialects.irees_target import gpu_of
from irees.dialects.storage import root
from irees.targets.nvidia import NVIDIA
from irees.transforms.codegen.gpu.utils.blocking import (
    PADDING_BYTES,
    WARPGROUP_ROWS,
    AttentionBlocking,
    WarpgroupBlocking,
)
from irees.transforms.codegen.gpu.utils.boxes import POINTS, Box, BoxFinder
from irees.transforms.codegen.gpu.utils.points import ACCESS_BYTES, alignment
from irees.transforms.utils.lanes import unit_stride

ACCESS = ACCESS_BYTES // 2
"""Elements (f16/bf16) per copy."""

STAGES = 2
"""Stages of key and value tiles: one in use, one in flight."""

WIDTHS = (64, 128, 256)
"""Columns of a `wgmma` accumulator that are supported."""


def why_no_registers(op: ext.AttentionOp, kinds: Sequence[str]) -> str | None:
    """Returns why the scores of an op cannot stay in registers, or None."""
    roles = roles_of(op)
    assert roles is not None
    operands = op.query, op.key, op.value
    elements = {str(v.type.element_type) for v in operands}  # type: ignore[attr-defined]
    if len(elements) != 1 or not elements <= {"f16", "bf16"} & set(kinds):
        return "the target has no matrix instructions for the operand types"
    if any(len(r) != 1 for r in (roles.k1, roles.k2, roles.n)):
        return "a role has several loops"
    if roles.sizes[roles.k2[0]] <= 0:
        return "the number of keys is dynamic"
    block = op.body.block
    if len(block.ops) != 1 or block.last_op.operands[0] is not block.args[0]:  # type: ignore
        return "the region modifies the scores"
    wide = (roles.sizes[roles.k1[0]], roles.sizes[roles.n[0]])
    most = NVIDIA.register_features
    if any(size % 16 or not 0 < size <= most for size in wide):
        return f"rows have {wide[0]} and {wide[1]} features, not a multiple of 16 up to {most}"
    return _why_no_loads(op, roles)


def _why_no_loads(op: ext.AttentionOp, roles: AttentionRoles) -> str | None:
    """Returns why the operands cannot be loaded and copied several features at a time, or None."""
    maps = [loops_in(m.data) for m in op.indexing_maps]
    ends = (roles.k1[0], roles.k1[0], roles.n[0], roles.n[0])
    if any(own[-1] != last for own, last in zip((*maps[:3], maps[-1]), ends, strict=True)):
        return "features are not contiguous"
    for operand, lanes in ((op.query, 2), (op.key, ACCESS), (op.value, ACCESS), (op.output, 2)):
        if not unit_stride(operand.type) or alignment(operand) % lanes:
            return "an operand is not aligned"
    if not all(isinstance(root(v), BlockArgument) for v in (op.key, op.value)):
        return "keys or values are computed by the workgroup"
    return None


def shared_bytes(roles: AttentionRoles, columns: int) -> int:
    """Returns the bytes of the key and value tiles."""
    features = roles.sizes[roles.k1[0]] + roles.sizes[roles.n[0]]
    return STAGES * columns * (2 * features + 2 * PADDING_BYTES)


def columns_of(op: ext.AttentionOp, room: int) -> int | None:
    """Returns the keys per tile that fit into `room` bytes of shared memory, or None."""
    roles = roles_of(op)
    assert roles is not None
    wide = (roles.sizes[roles.k1[0]], roles.sizes[roles.n[0]])
    for columns in NVIDIA.register_keys:
        whole = all(columns * n // ACCESS % NVIDIA.threads == 0 for n in wide)
        if whole and shared_bytes(roles, columns) <= room:
            return columns
    return None


def why_not_one_tile(op: ext.AttentionOp, rows: int) -> str | None:
    """Returns why an op is not a tile of at most `rows` rows of one batch, or None."""
    roles = roles_of(op)
    assert roles is not None
    if any(roles.sizes[loop] != 1 for loop in roles.outer):
        return "several batches"
    return f"more than {rows} rows" if roles.sizes[roles.row] > rows else None


def why_no_warps(op: ext.AttentionOp, kinds: Sequence[str], room: int) -> str | None:
    """Returns why the scores of an op cannot stay in registers of `mma.sync`, or None."""
    if (reason := why_no_registers(op, kinds)) is not None:
        return reason
    roles = roles_of(op)
    assert roles is not None
    if (reason := why_not_one_tile(op, NVIDIA.attention_rows)) is not None:
        return reason
    if columns_of(op, room) is None:
        least = shared_bytes(roles, NVIDIA.register_keys[-1])
        return f"needs {least} bytes of shared memory; the limit is {room}"
    return None


def shared_bytes_of(op: ext.AttentionOp, rows: int) -> int:
    """Returns the bytes of the tiles of queries, keys and values, and of the mbarriers."""
    roles = roles_of(op)
    assert roles is not None
    depth, width = roles.sizes[roles.k1[0]], roles.sizes[roles.n[0]]
    tiles = rows * depth + STAGES * NVIDIA.attention_columns * (depth + width)
    return 2 * tiles + 8 * (STAGES + 1) + WarpgroupBlocking.alignment


def boxes_of_attention(op: ext.AttentionOp) -> tuple[Box, Box, Box] | str:
    """Returns the boxes of queries, keys and values, or why one has none."""
    roles = roles_of(op)
    assert roles is not None
    keys = NVIDIA.attention_columns
    found: list[Box] = []
    sides = (
        ("queries", (roles.row,), WARPGROUP_ROWS, roles.k1, POINTS),
        ("keys", roles.k2, keys, roles.k1, POINTS),
        ("values", roles.n, POINTS, roles.k2, keys),
    )
    for operand, (name, loops, extent, depth, steps) in enumerate(sides):
        finder = BoxFinder(op, operand, roles.sizes, roles.outer)
        box = finder.find(loops, extent, depth, steps)
        if isinstance(box, str):
            return f"the operand of the {name} {box}"
        if box.turned != (name == "values"):
            return f"the operand of the {name} is contiguous along another loop"
        found.append(box)
    return found[0], found[1], found[2]


def why_no_warpgroups(
    op: ext.AttentionOp, kinds: Sequence[str], rows: int, room: int
) -> str | None:
    """
    Returns why warpgroups cannot compute an op of at most `rows` rows, or None. `kinds` are the
    element types of the `wgmma` of the target, and `room` is its shared memory in bytes.
    """
    if (reason := why_no_registers(op, kinds)) is not None:
        return reason
    roles = roles_of(op)
    assert roles is not None
    depth, width = roles.sizes[roles.k1[0]], roles.sizes[roles.n[0]]
    if depth % POINTS or width not in WIDTHS:
        return f"rows of {depth}, {width} features: not a multiple of {POINTS}, one of {WIDTHS}"
    if roles.sizes[roles.row] == 1:
        return "one row"
    if (needed := shared_bytes_of(op, rows)) > room:
        return f"needs {needed} bytes of shared memory; the limit is {room}"
    boxes = boxes_of_attention(op)
    return boxes if isinstance(boxes, str) else None


def fewest_workgroups(op: ext.AttentionOp, blocking: AttentionBlocking) -> int:
    """Returns the workgroups per multiprocessor that leave each thread enough registers."""
    roles = roles_of(op)
    assert roles is not None
    scores = NVIDIA.attention_columns // 2
    registers = roles.sizes[roles.n[0]] // 2 + scores + scores // 2 + NVIDIA.attention_registers
    return max(1, gpu_of(op).registers // (registers * blocking.threads))
