"""
Scans along an outer dim, as structured ops on its rows. Part of `irees-cpu-lower-scans`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from xdsl.dialects.builtin import MemRefType
from xdsl.dialects.linalg import ops as linalg
from xdsl.ir import Attribute, Block, Region, SSAValue
from xdsl.ir.affine import AffineDimExpr, AffineMap
from xdsl.rewriter import InsertPoint

from irees.transforms.codegen.common.utils.rows import compare
from irees.transforms.codegen.cpu.cpu_lower_scans.neighbours import Scan
from irees.transforms.utils.loops import for_loop, if_else
from irees.transforms.utils.orders import inline_region
from irees.transforms.utils.shapes import IndexBuilder, Size, buffer_dim
from irees.transforms.utils.structured import element_type, generic
from irees.transforms.utils.tensors import select_dims
from irees.transforms.utils.views import subview

Place = dict[int, Size]
"""The indices of the dims that are fixed: those before the scanned one, and it."""


@dataclass
class Columns:
    """The lowering of one scan along an outer dim."""

    scan: Scan

    def build(self, at: IndexBuilder) -> None:
        """Emits the loops over the outer dims, and the scanned one inside."""
        self._outer(0, {}, at)

    def _outer(self, dim: int, place: Place, at: IndexBuilder) -> None:
        source = self.scan.op.input
        size = buffer_dim(source, dim, at)
        if dim < self.scan.dim:
            close, iv, inner = for_loop(at, 0, size, 1)
            self._outer(dim + 1, {**place, dim: iv}, inner)
            close()
            return
        if isinstance(size, int):
            if size:
                self._scanned(place, size, at)
            return
        end, inner = if_else(at, compare(size, 1, "sge", at))
        self._scanned(place, size, inner)
        end()

    def _scanned(self, place: Place, size: Size, at: IndexBuilder) -> None:
        """
        Emits the rows of a scan that is not empty. The first of an inclusive scan has no running
        values before it; behind the last of an exclusive one nothing is added.
        """
        dim, inclusive = self.scan.dim, self.scan.is_inclusive
        last = at.sub(size, 1)
        start, stop = (1, size) if inclusive else (0, last)
        if inclusive:
            self._row({**place, dim: 0}, at, peeled=True)
        if size != 1:
            close, iv, inner = for_loop(at, start, stop, 1)
            self._row({**place, dim: iv}, inner, peeled=False)
            close()
        if not inclusive:
            self._row({**place, dim: last}, at, peeled=True)

    def _row(self, place: Place, at: IndexBuilder, *, peeled: bool) -> None:
        """Emits the op on one row: the running values, and what is written for them."""
        scan, op = self.scan, self.scan.op
        identity = AffineMap.identity(scan.rank)
        inputs = [*scan.inputs, *scan.others]
        kept = [(op.output, identity)] if scan.keeps_output else []
        if scan.consumer is not None:
            kept.append((scan.consumer.outputs[0], identity))
        dims = [d for d in range(scan.rank) if d != scan.dim]
        running = (op.accumulator, select_dims(scan.rank, dims))
        views = [self._view(*x, place, at) for x in (*inputs, running, *kept)]
        values, indexing = [v for v, _ in views], [m for _, m in views]
        body = self._body([element_type(v) for v in values], len(inputs), peeled=peeled)
        kinds = ["parallel"] * (scan.rank - scan.dim - 1)
        made: linalg.GenericOp = generic(
            values[: len(inputs)], values[len(inputs) :], indexing, kinds, body
        )
        at.insert(made)

    def _view(
        self, value: SSAValue, indexing: AffineMap, place: Place, at: IndexBuilder
    ) -> tuple[SSAValue, AffineMap]:
        """Returns an operand at a place, and its map from the loops that are left."""
        inner = len(place)
        loops = [e.position for e in indexing.results if isinstance(e, AffineDimExpr)]
        kept = [i for i, loop in enumerate(loops) if loop >= inner]
        left = select_dims(indexing.num_dims - inner, [loops[i] - inner for i in kept])
        if not isinstance(value.type, MemRefType) or len(kept) == len(loops):
            return value, left
        offsets = [place.get(loop, 0) for loop in loops]
        sizes = [1 if loop < inner else buffer_dim(value, i, at) for i, loop in enumerate(loops)]
        made = subview(value, offsets, sizes, [1] * len(loops), kept)
        return at.insert(made).results[0], left

    def _body(self, types: Sequence[Attribute], inputs: int, *, peeled: bool) -> Region:
        """Returns the body: the running value, and what is written for it."""
        scan = self.scan
        block = Block(arg_types=types)
        b = IndexBuilder(InsertPoint.at_end(block))
        given = list(block.args[:inputs])
        own, rest = given[: len(scan.inputs)], given[len(scan.inputs) :]
        before = block.args[inputs]
        if scan.producer is None:
            (element,) = own
        else:
            # The block argument of the output is unused. A fill has no inputs.
            element = inline_region(scan.producer.body.block, [*own, before], b)[0]
        if peeled:
            after = element if scan.is_inclusive else before
        else:
            after = inline_region(scan.op.body.block, [before, element], b)[0]
        shown = after if scan.is_inclusive else before
        written = [shown] if scan.keeps_output else []
        if scan.consumer is not None:
            written.append(consumed(scan, shown, rest, b))
        block.add_op(linalg.YieldOp(after, *written))
        return Region(block)


def consumed(scan: Scan, shown: SSAValue, rest: Sequence[SSAValue], b: IndexBuilder) -> SSAValue:
    """Returns what the consumer makes of an element of the output; `rest` are its other inputs."""
    consumer = scan.consumer
    assert consumer is not None
    others = iter(rest)
    arguments = [shown if o is scan.op.output else next(others) for o in consumer.inputs]
    return inline_region(consumer.body.block, [*arguments, shown], b)[0]


def scan_columns(scan: Scan, at: IndexBuilder) -> None:
    """scan along an outer dim  =>  a loop over rows"""
    Columns(scan).build(at)
