"""
The loops of the ops of iree_linalg_ext that kernels contain (see `irees.interfaces`).

Sort, topk and scan work on rows along one dim: its loop is a reduction, all other loops are
parallel. An operand with another size along the dim (the top K, an accumulator without the dim) is
still accessed whole along it, so its map is exact enough to tile the other dims.

The lowerings are named, not imported: they are passes, which import analyses.
"""

from __future__ import annotations

from collections.abc import Callable
from math import prod
from typing import Any

from xdsl.dialects.builtin import ShapedType
from xdsl.ir import Operation, SSAValue
from xdsl.ir.affine import AffineMap

from irees.analysis.attention import roles_of
from irees.dialects import iree_linalg_ext as ext
from irees.interfaces import Domain
from irees.plugins import resolve

LOOPS = "irees.transforms.codegen.common.lower_linalg_ext_to_loops"
THREADS = "irees.transforms.codegen.gpu.gpu_lower_linalg_ext"


def named(home: str) -> Any:
    """Returns a static method that imports and calls `module:function`."""

    def call(*arguments: Any) -> Any:
        function: Callable[..., Any] = resolve(home)
        return function(*arguments)

    return staticmethod(call)


def _rank(value: SSAValue) -> int | None:
    return value.type.get_num_dims() if isinstance(value.type, ShapedType) else None


class Rows:
    """An op on rows along its `dimension`; its first operand has all of the loops."""

    @staticmethod
    def domain(op: Any) -> Domain:
        """Returns a reduction along the dimension, and parallel loops along all other dims."""
        rank, along = _rank(op.operands[0]), op.dimension.value.data
        assert rank is not None
        whole = AffineMap.identity(rank)
        without = AffineMap(rank, 0, tuple(e for d, e in enumerate(whole.results) if d != along))
        ranks = [_rank(value) for value in op.operands]
        maps = tuple(None if r is None else whole if r == rank else without for r in ranks)
        kinds = tuple("reduction" if d == along else "parallel" for d in range(rank))
        return Domain(kinds, maps)

    @staticmethod
    def flops(op: Operation, points: int) -> int:
        """Returns 0: it compares and moves elements."""
        return 0


class Sort(Rows):
    """iree_linalg_ext.sort"""

    to_loops = named(f"{LOOPS}.sorting:lower_sort")
    to_threads = named(f"{THREADS}:lower_sort")

    @staticmethod
    def reads(op: ext.SortOp, number: int) -> bool:
        """Whether the op sorts its outputs in place, and not its inputs."""
        return not op.inputs


class Topk(Rows):
    """iree_linalg_ext.topk_v2: the outputs have K elements along the dim."""

    to_loops = named(f"{LOOPS}.selection:lower_topk")
    to_threads = named(f"{THREADS}:lower_topk")

    @staticmethod
    def domain(op: ext.TopkV2Op) -> Domain:
        """Returns the loops of the rows; K may be smaller than a row."""
        rows, along = Rows.domain(op), op.dimension.value.data
        first = len(op.operands) - len(op.outputs)
        shorter = frozenset((number, along) for number in range(first, len(op.operands)))
        return Domain(rows.kinds, rows.maps, shorter)


class Scan(Rows):
    """iree_linalg_ext.scan: one operation per element."""

    to_loops = named(f"{LOOPS}:lower_scan")

    @staticmethod
    def flops(op: Operation, points: int) -> int:
        """Returns one per element."""
        return points


class Scatter:
    """iree_linalg_ext.scatter: not tiled, since its updates are applied in order."""

    to_loops = named(f"{LOOPS}:lower_scatter")
    updates = True


class Attention:
    """iree_linalg_ext.attention: batch and rows are parallel. A separate GPU pass lowers it."""

    @staticmethod
    def domain(op: ext.AttentionOp) -> Domain | None:
        """Returns the loops by role; None if a loop has no role."""
        roles = roles_of(op)
        if roles is None:
            return None
        parallel = {*roles.batch, *roles.m}
        kinds = ("parallel" if d in parallel else "reduction" for d in range(len(roles.sizes)))
        maps = (m.data for m in op.indexing_maps)
        shaped = zip(op.operands, maps, strict=True)
        return Domain(tuple(kinds), tuple(None if _rank(v) is None else m for v, m in shaped))

    leads = True

    @staticmethod
    def flops(op: ext.AttentionOp, points: int) -> int:
        """Two per multiply-add of both products."""
        roles = roles_of(op)
        assert roles is not None
        k1, n = (prod(roles.sizes[d] for d in loops) for loops in (roles.k1, roles.n))
        return 2 * points // k1 + 2 * points // n if points else 0
