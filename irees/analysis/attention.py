"""Classifies the loops of attention by their maps: batch, M, K1, K2 and N."""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.dialects.builtin import MemRefType, TensorType
from xdsl.ir.affine import AffineDimExpr, AffineMap

from irees.dialects import iree_linalg_ext as ext


@dataclass(frozen=True)
class AttentionRoles:
    """Loops by role: Q is `batch x m x k1`, K is `batch x k2 x k1`, V is `batch x k2 x n`."""

    batch: tuple[int, ...]
    m: tuple[int, ...]
    k1: tuple[int, ...]
    k2: tuple[int, ...]
    n: tuple[int, ...]
    sizes: tuple[int, ...]
    """Trip count of each loop, -1 if unknown."""

    @property
    def row(self) -> int:
        """The loop of M that is tiled: the last one. A workgroup runs several of its iterations."""
        return self.m[-1]

    @property
    def outer(self) -> tuple[int, ...]:
        """The loops with one iteration per workgroup: batch, and M except `row`."""
        return (*self.batch, *self.m[:-1])


def loops_in(indexing: AffineMap) -> tuple[int, ...]:
    """Returns the loops that are results of a map, in order."""
    return tuple(e.position for e in indexing.results if isinstance(e, AffineDimExpr))


def roles_of(op: ext.AttentionOp) -> AttentionRoles | None:
    """Returns the loops by role; None if a loop has no role, or if M, K1, K2 or N is empty."""
    maps = [m.data for m in op.indexing_maps]
    query, key, value, output = (set(loops_in(m)) for m in (*maps[:3], maps[-1]))
    sizes = [-1] * maps[0].num_dims
    for operand, indexing in ((op.query, maps[0]), (op.key, maps[1]), (op.value, maps[2])):
        assert isinstance(operand.type, TensorType | MemRefType)
        for loop, size in zip(loops_in(indexing), operand.type.get_shape(), strict=True):
            sizes[loop] = max(sizes[loop], size)
    found: dict[str, list[int]] = {"batch": [], "m": [], "k1": [], "k2": [], "n": []}
    kinds = {
        (True, True, True, True): "batch",
        (True, False, False, True): "m",
        (True, True, False, False): "k1",
        (False, True, True, False): "k2",
        (False, False, True, True): "n",
    }
    for loop in range(len(sizes)):
        kind = kinds.get((loop in query, loop in key, loop in value, loop in output))
        if kind is None:
            return None
        found[kind].append(loop)
    if not all(found[k] for k in ("m", "k1", "k2", "n")):
        return None
    return AttentionRoles(*(tuple(found[k]) for k in found), tuple(sizes))
