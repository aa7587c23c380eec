"""
Finds divergent barriers: barriers that only some threads of a workgroup may reach.

A barrier is uniform if the bounds and conditions of all enclosing loops and branches are uniform. A
value may diverge if it depends on a thread id, on private memory, or on a shuffle. Terms are those
of GPUVerify (Betts et al., OOPSLA 2012).
"""

from __future__ import annotations

from collections.abc import Iterator

from xdsl.dialects import scf
from xdsl.dialects.builtin import MemRefType
from xdsl.ir import Block, BlockArgument, Operation, OpResult, SSAValue

from irees.analysis.accesses.control import is_of_threads
from irees.dialects.storage import is_allocation
from irees.dialects.upstream.scf import ForallOp

BARRIERS = frozenset(("gpu.barrier",))
EXCHANGES = frozenset(("gpu.shuffle", "nvvm.match.sync", "gpu.lane_id", "gpu.thread_id"))
"""Ops whose results differ from lane to lane."""


class Uniformity:
    """Decides which values are uniform: equal in all threads of a workgroup."""

    def __init__(self) -> None:
        self._known: dict[SSAValue, bool] = {}

    def differs(self, value: SSAValue) -> bool:
        """Whether a value may differ from thread to thread."""
        found = self._known.get(value)
        if found is None:
            # Optimistic for cycles: a loop-carried value is uniform unless another input diverges.
            self._known[value] = False
            found = self._known[value] = self._look(value)
        return found

    def _look(self, value: SSAValue) -> bool:
        if isinstance(value, BlockArgument):
            return self._argument(value)
        assert isinstance(value, OpResult)
        op = value.op
        if op.name in EXCHANGES:
            return True
        if is_allocation(op) and is_private(value):
            return around(op, threads=True) is not None
        if any(map(self.differs, op.operands)):
            return True
        yields = [r.block.last_op for r in op.regions if r.blocks and r.block.last_op is not None]
        return any(self.differs(o) for last in yields for o in last.operands)

    def _argument(self, value: BlockArgument) -> bool:
        op = value.owner.parent_op()
        if isinstance(op, ForallOp):
            return is_of_threads(op)
        if op is None or not op.regions:
            return False
        yielded = value.owner.last_op
        around = [*op.operands, *(yielded.operands if yielded is not None else ())]
        return any(map(self.differs, around))


def is_private(value: SSAValue) -> bool:
    """Whether a buffer is private to a thread."""
    return isinstance(value.type, MemRefType) and "workgroup" not in str(value.type.memory_space)


def around(op: Operation, *, threads: bool) -> ForallOp | None:
    """Returns the innermost forall around an op (over threads if `threads`), or None."""
    at = op.parent_op()
    while at is not None:
        if isinstance(at, ForallOp) and (is_of_threads(at) or not threads):
            return at
        at = at.parent_op()
    return None


def conditions(op: Operation) -> Iterator[SSAValue]:
    """Yields the conditions and loop bounds that control an op inside its loop over threads."""
    at: Operation | None = op
    while at is not None and not (isinstance(at, ForallOp) and is_of_threads(at)):
        parent = at.parent_op()
        if isinstance(parent, scf.ForOp):
            yield from (parent.lb, parent.ub, parent.step)
        elif isinstance(parent, scf.IfOp):
            yield parent.cond
        elif isinstance(parent, scf.WhileOp):
            ask = parent.before_region.block.last_op
            assert isinstance(ask, scf.ConditionOp)
            yield ask.condition
        at = parent


def divergent_barriers(block: Block) -> list[Operation]:
    """Returns the barriers of a kernel that some threads may not reach."""
    uniformity = Uniformity()
    barriers = [op for op in block.walk() if op.name in BARRIERS]
    return [op for op in barriers if any(map(uniformity.differs, conditions(op)))]
