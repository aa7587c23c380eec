"""
Rematerializes elementwise producers in each of their consumers.

A value that both a reduction and a later elementwise op read must be stored in between, at the size
of the row: 1 MiB for a group norm over 262144 elements (iree-org/iree#20875). Recomputing it from
its operands needs no memory.

    %e = linalg.generic {exp(x - m)} ins(%x, %m)
    %s = linalg.generic {addf over d1} ins(%e)
    %r = linalg.generic {e / s} ins(%e, %s)
  =>
    %s = linalg.generic {addf(exp(x - m)) over d1} ins(%x, %m)
    %r = linalg.generic {exp(x - m) / s} ins(%x, %m, %s)

There are three conditions, two with a remark: the consumer has more than one iteration; the
producer's body captures only constants (a gather is not repeated); and all consumers are structured
ops, since any other consumer would keep the producer alive and the work would only double. The
irees pipeline tiles producers inside their consumers instead; this pass is for footprints that do
not fit even then. IREE:
`iree-codegen-rematerialize-parallel-ops`.
"""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects import arith
from xdsl.dialects.builtin import ModuleOp, TensorType
from xdsl.dialects.linalg import ops as linalg
from xdsl.ir import Operation
from xdsl.passes import ModulePass
from xdsl.rewriter import InsertPoint, Rewriter

from irees.remarks import remark
from irees.transforms.utils.elementwise_fusion import fuse
from irees.transforms.utils.structured import Structured, is_parallel, maps, static_ranges

NAME = "irees-rematerialize-parallel-ops"


def captures(op: linalg.GenericOp) -> bool:
    """Whether a body captures values other than scalar constants."""
    inside = set(op.body.walk())
    for inner in inside:
        for operand in inner.operands:
            owner = operand.owner
            if not isinstance(owner, Operation):
                if owner is not op.body.block and owner.parent_op() not in inside:
                    return True
                continue
            constant = isinstance(owner, arith.ConstantOp)
            if owner not in inside and (not constant or isinstance(operand.type, TensorType)):
                return True
    return False


def missed(producer: linalg.GenericOp) -> str | None:
    """Returns why a producer is not rematerialized, or None."""
    result_map = maps(producer)[-1]
    if not is_parallel(producer) or len(producer.res) != 1:
        return "it is not elementwise with one result"
    if not result_map.is_projected_permutation() or len(result_map.results) != result_map.num_dims:
        return "its result is not indexed by all of its loops"
    if captures(producer):
        return "its body reads a value from outside"
    if not all(isinstance(u.operation, Structured) for u in producer.res[0].uses):
        return "a consumer that is not a structured op would keep it alive"
    return None


def rematerialize(op: linalg.GenericOp) -> linalg.GenericOp | None:
    """consumer(producer(x))  =>  consumer'(x), for the first input that permits it"""
    if all(size == 1 for size in static_ranges(op)):
        return None
    for position, value in enumerate(op.inputs):
        producer = value.owner
        if not isinstance(producer, linalg.GenericOp):
            continue
        if producer.parent_block() is not op.parent_block():
            continue
        if (reason := missed(producer)) is not None:
            remark("missed", NAME, op, f"input {position} is not rematerialized: {reason}")
            continue
        new = fuse(producer, op, position)
        if new is None:
            remark("missed", NAME, op, f"input {position} is not rematerialized: it bounds a loop")
            continue
        Rewriter.insert_op(new, InsertPoint.before(op))
        Rewriter.replace_op(op, [], new.results)
        if not producer.res[0].uses:
            Rewriter.erase_op(producer)
        remark("passed", NAME, new, f"input {position} is rematerialized")
        return new
    return None


@dataclass(frozen=True)
class RematerializeParallelOpsPass(ModulePass):
    """Rematerializes elementwise producers in all their consumers."""

    name = "irees-rematerialize-parallel-ops"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for inner in [o for o in op.walk() if isinstance(o, linalg.GenericOp) and o.res]:
            current: linalg.GenericOp | None = inner
            while current is not None:
                current = rematerialize(current)
