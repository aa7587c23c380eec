"""
Lowers the contractions of a workgroup, one after the other. Part of `irees-gpu-lower-contractions`
and `irees-gpu-lower-warpgroup-contractions`.

They share the threads of the workgroup, whose number is that of the first, and its shared memory.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from xdsl.dialects.linalg import ops as linalg

from irees.dialects.nvgpu import WarpgroupMmaOp
from irees.dialects.upstream.scf import ForallOp
from irees.transforms.codegen.gpu.utils.blocking import AnyBlocking, fits
from irees.transforms.codegen.gpu.utils.contraction import Contraction
from irees.transforms.codegen.gpu.utils.segments import (
    set_threads,
    structured_ops,
    threads_per_workgroup,
)
from irees.transforms.codegen.gpu.utils.shares import (
    FLAG_BYTES,
    Share,
    depth_of,
    share_tiles,
    shares_of,
)
from irees.transforms.utils.footprint import shared_memory


@dataclass
class Workgroup:
    """A loop over workgroups, and what the contractions that have been lowered in it take."""

    loop: ForallOp
    threads: int | None = None
    """The number of threads, None if no contraction has been lowered."""
    taken: int = 0
    """Bytes of shared memory."""

    @staticmethod
    def of(loop: ForallOp) -> Workgroup:
        """Returns a workgroup; `wgmma` that it has already keeps its threads and its memory."""
        if not any(isinstance(op, WarpgroupMmaOp) for op in loop.walk()):
            return Workgroup(loop)
        taken = shared_memory(loop).known
        return Workgroup(loop, threads_per_workgroup(loop), taken)

    def structured_ops(self) -> Iterator[linalg.GenericOp]:
        """Yields the structured ops; an op that another one was fused with is gone by then."""
        yield from (op for op in structured_ops(self.loop) if op.parent is not None)

    def why_not(self, op: linalg.GenericOp, blocking: AnyBlocking, room: int) -> str | None:
        """Returns why a contraction cannot be lowered in `room` bytes of shared memory, or None."""
        reason = fits(blocking, op, room - self.taken)
        if reason is None and self.threads not in (None, blocking.threads):
            return f"{blocking.threads} threads, and the workgroup has {self.threads}"
        return reason

    def lower(self, op: linalg.GenericOp, blocking: AnyBlocking, kind: type[Contraction]) -> None:
        """contraction  =>  its loops, by the class `kind`; shares its tiles if configured"""
        self.threads = blocking.threads
        set_threads(self.loop, self.threads)
        share = self._share(op, blocking)
        self.taken += kind(op, blocking, share).lower()  # type: ignore[arg-type]
        if share is not None:
            share.guard_rest()
            self.taken += FLAG_BYTES

    def _share(self, op: linalg.GenericOp, blocking: AnyBlocking) -> Share | None:
        """Distributes tiles by stream-K if configured; returns a workgroup's share, or None."""
        shares = shares_of(op)
        if shares is None:
            return None
        share = share_tiles(self.loop, *shares, -(-depth_of(op) // blocking.depth))
        share.guard_start(op)
        return share
