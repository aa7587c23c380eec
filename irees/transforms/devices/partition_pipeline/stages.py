"""
Partitions straight-line code into stages of similar load.

The stage with the highest load determines the throughput of the pipeline. So the maximum load is
minimized first. Then, among all partitions whose maximum load is within a factor
`COMMON.stage_load_ratio` of that optimum, the one with the fewest transferred bytes is chosen.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

import numpy as np
from xdsl.dialects import func
from xdsl.dialects.arith import ConstantOp
from xdsl.dialects.builtin import TensorType
from xdsl.dialects.linalg import ops as linalg
from xdsl.ir import Operation, OpResult, SSAValue

from irees.analysis.work import bytes_of
from irees.dialects.hal import TensorExportOp
from irees.dialects.resources import is_splat
from irees.targets.common import COMMON
from irees.transforms.utils.structured import Structured, captured_values, static_ranges


def known_bytes(value: SSAValue) -> int:
    """Returns the bytes of a tensor, with dynamic dims taken as 1."""
    if not isinstance(value.type, TensorType):
        return 0
    shape = [max(1, size) for size in value.type.get_shape()]
    return bytes_of(TensorType(value.type.element_type, shape)) or 0


def flops(op: Operation) -> int:
    """
    Returns the arithmetic operations of an op, nested ops included; dynamic loops count once.

    Only ratios matter, so unstructured ops count one operation per byte of result.
    """
    if isinstance(op, Structured):
        body = op.body.walk() if isinstance(op, linalg.GenericOp) else op.body.block.ops
        each = sum(inner.name.split(".")[0] in ("arith", "math") for inner in body)
        return prod(max(1, size) for size in static_ranges(op)) * max(1, each)
    inner = sum(flops(o) for r in op.regions for b in r.blocks for o in b.ops)
    return inner + sum(known_bytes(result) for result in op.results)


def handed_bytes(op: Operation) -> int:
    """Returns the bytes of an op's results that the function returns or exports."""
    return sum(
        known_bytes(result)
        for result in op.results
        if any(isinstance(use.operation, func.ReturnOp | TensorExportOp) for use in result.uses)
    )


def weights_of(op: Operation) -> set[SSAValue]:
    """Returns the non-splat constants from which the constant operands of an op are computed."""
    found: set[SSAValue] = set()
    todo = [*op.operands, *(captured_values(op) if op.regions else ())]
    seen: set[SSAValue] = set()
    while todo:
        value = todo.pop()
        if value in seen or not isinstance(value, OpResult):
            continue
        seen.add(value)
        if isinstance(value.op, ConstantOp):
            if isinstance(value.type, TensorType) and not is_splat(value.op.value):
                found.add(value)
        elif is_constant(value.op):
            todo.extend(value.op.operands)
    return found


def is_constant(op: Operation) -> bool:
    """Whether an op is computed from constants only."""
    wanted, seen = [op], {op}
    while wanted:
        current = wanted.pop()
        for value in (*current.operands, *(captured_values(current) if current.regions else ())):
            if not isinstance(value, OpResult) or value.op.name.startswith("hal."):
                return False
            if value.op not in seen:
                seen.add(value.op)
                wanted.append(value.op)
    return True


def crossing_bytes(ops: Sequence[Operation]) -> list[int]:
    """Returns for each cut between two ops the bytes defined before it and read after it."""
    at = {op: place for place, op in enumerate(ops)}
    change = [0] * (len(ops) + 2)
    for place, op in enumerate(ops):
        for result in op.results:
            readers = [at[top] for use in result.uses if (top := _top(use.operation, at)) in at]
            if readers and max(readers) > place:
                change[place + 1] += known_bytes(result)
                change[max(readers) + 1] -= known_bytes(result)
    total, found = 0, [0] * (len(ops) + 1)
    for place in range(len(ops) + 1):
        total += change[place]
        found[place] = total
    return found


def _top(op: Operation | None, at: dict[Operation, int]) -> Operation | None:
    while op is not None and op not in at:
        op = op.parent_op()
    return op


def heaviest(loads: np.ndarray, stages: int) -> float:
    """Returns the minimum, over partitions into stages, of the maximum load, by bisection."""
    low, high = max(loads.max(initial=0), loads.sum() / stages), loads.sum()
    for _ in range(60):
        middle, count, load = (low + high) / 2, 1, 0.0
        for each in loads:
            if load + each > middle:
                count, load = count + 1, 0.0
            load += each
        low, high = (low, middle) if count <= stages else (middle, high)
    return float(high)


def cut_stages(loads: Sequence[float], crossing: Sequence[int], stages: int) -> list[int]:
    """
    Returns the indices of the ops at which stages 2, 3, ... start: `stages - 1` of them.

    No stage is empty if at least `stages` ops have a load.
    """
    weights = np.asarray(loads, dtype=float)
    before = np.concatenate([[0.0], np.cumsum(weights)])
    limit = heaviest(weights, stages) * COMMON.stage_load_ratio
    count = len(weights)
    cost = np.full((stages + 1, count + 1), np.inf)
    came = np.zeros((stages + 1, count + 1), dtype=int)
    cost[0, 0] = 0.0
    passed = np.asarray(crossing, dtype=float)
    least = weights[weights > 0].min() if np.count_nonzero(weights) >= stages else 0.0
    for stage in range(1, stages + 1):
        for end in range(count + 1):
            load = before[end] - before[: end + 1]
            total = cost[stage - 1, : end + 1] + (passed[: end + 1] if stage > 1 else 0.0)
            total = np.where((load <= limit) & (load >= least / 2), total, np.inf)
            came[stage, end] = int(total.argmin())
            cost[stage, end] = total[came[stage, end]]
    places: list[int] = []
    end = count
    for stage in range(stages, 1, -1):
        end = int(came[stage, end])
        places.append(end)
    return places[::-1]
