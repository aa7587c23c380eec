"""
Elementwise ops that are fused with a scan: one that makes its input, one that reads its output.
Part of `irees-cpu-lower-scans`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from xdsl.dialects.builtin import MemRefType
from xdsl.dialects.linalg import ops as linalg
from xdsl.ir import Operation, SSAValue
from xdsl.ir.affine import AffineDimExpr, AffineMap
from xdsl.rewriter import InsertPoint, Rewriter
from xdsl.traits import is_side_effect_free

from irees.dialects import iree_linalg_ext as ext
from irees.dialects.storage import is_allocation, is_view, root
from irees.transforms.codegen.common.utils.surroundings import (
    erase_unused_buffer,
    is_kept,
    is_pointwise,
)
from irees.transforms.utils.structured import maps
from irees.transforms.utils.tensors import rank_of


@dataclass
class Scan:
    """A scan with the elementwise ops that are fused with it."""

    op: ext.ScanOp
    producer: linalg.GenericOp | None = None
    """Makes the input, which has no other reader."""
    consumer: linalg.GenericOp | None = None
    """Reads the output."""
    keeps_output: bool = True
    """Whether the output has other readers than the consumer."""
    reasons: list[str] = field(default_factory=list)
    """Why a neighbour is not fused."""

    @classmethod
    def of(cls, op: ext.ScanOp) -> Scan:
        """Finds the neighbours of a scan."""
        scan = cls(op)
        if scan.fits_producer(found := writer_of(op.input, op)):
            scan.producer = found
        if scan.fits_consumer(found := reader_of(op.output, op)):
            assert found is not None
            scan.consumer = found
            scan.keeps_output = is_kept(op.output, (op, found))
            for inner in needed(found, op):
                inner.detach()
                Rewriter.insert_op(inner, InsertPoint.before(op))
        return scan

    @property
    def dim(self) -> int:
        """The dim along which the op scans."""
        return self.op.dimension.value.data

    @property
    def rank(self) -> int:
        """The number of dims of the input."""
        return rank_of(self.op.input)

    @property
    def is_innermost(self) -> bool:
        """Whether elements of a row are adjacent in memory."""
        return self.dim == self.rank - 1

    @property
    def is_inclusive(self) -> bool:
        """Whether an output element includes the input at its place."""
        return bool(self.op.inclusive.value.data)

    @property
    def inputs(self) -> list[tuple[SSAValue, AffineMap]]:
        """The operands that are read for each element of the input, with their maps."""
        if self.producer is None:
            return [(self.op.input, AffineMap.identity(self.rank))]
        return inputs_of(self.producer)

    @property
    def others(self) -> list[tuple[SSAValue, AffineMap]]:
        """The operands of the consumer other than the output of the scan, with their maps."""
        if self.consumer is None:
            return []
        return [x for x in inputs_of(self.consumer) if x[0] is not self.op.output]

    def fits_producer(self, op: linalg.GenericOp | None) -> bool:
        """Whether an op can be evaluated where the scan reads its input."""
        if op is None or not is_plain(op) or not is_scratch(self.op.input):
            return False
        if is_kept(self.op.input, (op, self.op)):
            return self.no("the input has other readers")
        read = {root(o) for o in op.inputs if isinstance(o.type, MemRefType)}
        if read & {root(self.op.output), root(self.op.accumulator)}:
            return self.no("what makes the input reads the output")
        if any(written(o) & read for o in between(op, self.op)):
            return self.no("what makes the input reads what is written before the scan")
        return True

    def fits_consumer(self, op: linalg.GenericOp | None) -> bool:
        """Whether an op can be evaluated where the scan writes its output."""
        if op is None or not is_plain(op) or not is_scratch(self.op.output):
            return False
        target = root(op.outputs[0])
        read = {root(o) for o, _ in (*inputs_of(op), *self.inputs) if is_buffer(o)}
        known = {root(self.op.output), root(self.op.accumulator)}
        if target in read | known or any(root(o) in known - {root(self.op.output)} for o in read):
            return self.no("the reader of the output writes what is read")
        if any((written(o) & read) or target in touched(o) for o in between(self.op, op)):
            return self.no("the reader of the output depends on what is between")
        if not all(is_free(o) for o in needed(op, self.op)):
            return self.no("the reader of the output needs values that are computed later")
        return True

    def no(self, reason: str) -> bool:
        """Keeps the reason why a neighbour is not fused."""
        self.reasons.append(reason)
        return False

    def erase(self) -> None:
        """Erases the op, the fused ones, and the buffers between them."""
        buffers = [root(self.op.input)] if self.producer is not None else []
        if not self.keeps_output:
            buffers.append(root(self.op.output))
        for op in (self.op, self.producer, self.consumer):
            if op is not None:
                Rewriter.erase_op(op)
        for buffer in buffers:
            erase_unused_buffer(buffer)


def inputs_of(op: linalg.GenericOp) -> list[tuple[SSAValue, AffineMap]]:
    """Returns the inputs of a structured op with their maps."""
    return list(zip(op.inputs, maps(op), strict=False))


def is_buffer(value: SSAValue) -> bool:
    """Whether a value is a buffer, not a scalar."""
    return isinstance(value.type, MemRefType)


def is_plain(op: linalg.GenericOp) -> bool:
    """Whether an op is elementwise, in the order of its output, and reads by plain loops."""
    if len(op.outputs) != 1 or not is_pointwise(op) or op.body.block.args[-1].uses:
        return False
    if maps(op)[-1] != AffineMap.identity(rank_of(op.outputs[0])):
        return False
    return all(isinstance(e, AffineDimExpr) for m in maps(op) for e in m.results) and all(
        len(set(m.results)) == len(m.results) for m in maps(op)
    )


def is_scratch(value: SSAValue) -> bool:
    """Whether a value is a whole buffer of the kernel."""
    return is_allocation(value.owner)


def writer_of(buffer: SSAValue, op: Operation) -> linalg.GenericOp | None:
    """Returns the structured op before `op` that writes a buffer last, in the same block."""
    found = next((o for o in before(op) if root(buffer) in written(o)), None)
    return found if isinstance(found, linalg.GenericOp) and buffer in found.outputs else None


def reader_of(buffer: SSAValue, op: Operation) -> linalg.GenericOp | None:
    """Returns the structured op after `op` that reads a buffer first, in the same block."""
    found = next((o for o in between(op) if root(buffer) in touched(o)), None)
    return found if isinstance(found, linalg.GenericOp) and buffer in found.inputs else None


def needed(op: Operation, after: Operation) -> list[Operation]:
    """Returns the ops after `after` whose results an op needs, in order; both are in one block."""
    values = set(op.operands)
    found: list[Operation] = []
    for inner in reversed(list(between(after, op))):
        if any(r in values for r in inner.results):
            found.append(inner)
            values |= set(inner.operands)
    return found[::-1]


def is_free(op: Operation) -> bool:
    """Whether an op can move: it reads no memory."""
    return is_view(op) or (not op.regions and is_side_effect_free(op))


def before(op: Operation) -> Iterator[Operation]:
    """Yields the ops before an op of a block, the nearest first."""
    current = op.prev_op
    while current is not None:
        yield current
        current = current.prev_op


def between(first: Operation, last: Operation | None = None) -> Iterator[Operation]:
    """Yields the ops between two ops of a block; without `last`, all after the first."""
    current = first.next_op
    while current is not None and current is not last:
        yield current
        current = current.next_op


def touched(op: Operation) -> set[SSAValue]:
    """Returns the buffers that an op, or one inside of it, may read or write."""
    if is_free(op):
        return set()
    return {root(o) for inner in op.walk() for o in inner.operands if is_buffer(o)}


def written(op: Operation) -> set[SSAValue]:
    """Returns the buffers that an op may write."""
    if isinstance(op, linalg.GenericOp):
        return {root(o) for o in op.outputs}
    return touched(op)
