"""
Lowers structured ops on buffers to loops, vectorized along one of them.

Parallel loops are outermost; reduction loops are inside, with their accumulators in registers. One
loop is vectorized with the N lanes of a register: a parallel loop along which the output is
contiguous, else a reduction loop along which the inputs are contiguous, with several accumulators
that are combined at the end. The epilogue of that loop is one vector that ends at the last element:
it computes some elements again, and a reduction ignores these lanes. What may not be computed
again, such as an update in place, has an epilogue of shorter vectors, or a scalar one if the length
is dynamic, as have loops that turn out to be shorter than a vector. A reduction of fewer elements
than a vector has lanes uses shorter ones.

    linalg.generic ins(%x : memref<1005xf32>) outs(%y : memref<1005xf32>) { negf }
  =>
    scf.for %i = 0 to 992 step 16 { %v = vector.load %x[%i] ; vector.store negf(%v), %y[%i] }
    %v = vector.load %x[989] ; vector.store negf(%v), %y[989]

Columns are reduced in panels of a few rows, with the results in memory in between: rows are read
along their length, as prefetchers expect, and additions to different columns overlap. Of few
columns the results stay in registers, and rows are added to several accumulators in turn.

    for j in N step 8 { out[j:j+8] += sum of x[i, j:j+8] over i }
  =>
    for i in M step 8 { for j in N step 8 { out[j:j+8] += x[i, j:j+8] + ... + x[i+7, j:j+8] } }

Windows that slide along rows are computed for several rows, and several features, at a time: each
row of the image that is loaded serves all taps, rows and features that need it (`sliding.py`).

A matrix that is reduced along its rows and exceeds the private caches of a core is read as four
streams, a quarter of its rows apart: four streams get more memory bandwidth than one.

    for n in N { out[n] += sum of x * W[n, :] }
  =>
    for n in N/4 { out[n + i * N/4] += sum of x * W[n + i * N/4, :] for i = 0, 1, 2, 3 }

`irees-vectorize-shuffled-ops` has lowered elementwise ops that need shuffles, such as transposes.

A load with data-dependent indices becomes a `vector.gather` along one dim: the dims that they index
are collapsed. `irees-lower-gather` splits it into scalar loads later, so that a gather alone is no
faster than a scalar loop. It pays if the body computes the indices, checks them or calls `math`
functions. A check of all lanes is one assert.

In a nest without reductions, the loop whose iterations share most of the body becomes the
innermost, inside of the vectorized one: sampling an image computes the places of a vector of points
once for all channels of a tile.

    for c in C { for i in N { out[c, i] = x[c, f(y[i])] } }
  =>
    for i in N step 8 { %q = f(y[i:i+8]) ; for c in C { out[c, i:i+8] = x[c, %q] } }

In a nest without vectors, the iterations may share less: then the innermost loop stays contiguous,
and four of the others are jammed into it:

    for i in M { for j in N { out[i, j] = x[i, p[j]] } }
  =>
    for i in M step 4 { for j in N { %q = p[j] ; out[i:i+4, j] = x[i:i+4, %q] } }

An op that has no vector form (see `utils/lanes.py`) becomes scalar loops, and a remark says why.
linalg allows a vectorized reduction to reassociate; with `reassociate=false` (fp=strict) reductions
keep the order of the loops.
"""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import MemRefType, ModuleOp
from xdsl.dialects.linalg import ops as linalg
from xdsl.passes import ModulePass

from irees.dialects.irees_target import is_strict, target_of
from irees.remarks import remark
from irees.transforms.codegen.common.utils.surroundings import erase_unused_between
from irees.transforms.codegen.cpu.vectorize_structured_ops.nest import Nest
from irees.transforms.utils.lanes import NotVectorizableError
from irees.transforms.utils.structured import is_parallel


def lower(op: linalg.GenericOp, vector_bytes: int, registers: int, reassociate: bool) -> None:
    """linalg.generic on memrefs  =>  loops"""
    nest = Nest(op, vector_bytes, reassociate=reassociate, registers=registers)
    marker = op.prev_op
    try:
        nest.choose()
        nest.build()
    except NotVectorizableError as error:
        remark("missed", "irees-vectorize-structured-ops", op, str(error))
        erase_unused_between(marker, op)
        Nest(op, vector_bytes, reassociate=reassociate).build()


@dataclass(frozen=True)
class VectorizeStructuredOpsPass(ModulePass):
    """
    Lowers structured ops on buffers to loops, vectorized if possible.
    """

    name = "irees-vectorize-structured-ops"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        target = target_of(op)
        found = [o for o in op.walk() if isinstance(o, linalg.GenericOp)]
        # Reductions first: they fuse the fill before them and the elementwise op after them.
        for inner in sorted(found, key=is_parallel):
            if inner.parent is None:
                continue
            if all(isinstance(o.type, MemRefType) for o in inner.outputs):
                lower(inner, target.vector_bytes, target.vector_registers, not is_strict(op))
