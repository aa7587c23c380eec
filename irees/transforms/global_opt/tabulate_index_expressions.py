"""
Replaces expensive functions of one loop index by tables.

Resampling computes a source row, a source column and a weight for every element: a division or a
product of floats, a rounding, a conversion to an integer, a clamp. Each value depends on only one
loop, so an H x W image has H + W distinct values but computes 2 * H * W. The pass computes them in
a separate op over that loop. With static sizes, `irees-fold-constants` runs next and evaluates the
op to a constant table.

    %r = linalg.generic outs(%o : tensor<64x128x128xf32>) {
      %i = linalg.index 1 : index
      %x = fptosi (sitofp %i * 0.5)        // and more
      %v = tensor.extract %image[%c, %x, %y]
    }
  =>
    %t = linalg.generic ins(%iota) outs(tensor<128xindex>) { fptosi (sitofp %iota * 0.5) }
    %r = linalg.generic ins(%t) outs(%o) {   // (d0, d1, d2) -> (d1)
    ^bb0(%x: index, %o: f32):
      %v = tensor.extract %image[%c, %x, %y]
    }

The same holds for positional encodings, powers of a decay, and windows of a spectrum.

The pass tabulates a value if it depends only on one loop, constants and sizes, if its computation
contains an op that costs more than a table load (`EXPENSIVE`), and if an op that depends on other
values uses it. A value that is one cheap op away from tabulated values is computed from these.

The pass skips reductions without a `tensor.extract`, whose bodies other passes match; ops with a
single loop, which compute each value once anyway; ops that would exceed the operand limit of a
kernel; and GPUs, which hide index arithmetic behind memory latency. It runs after elementwise
fusion, which would undo it. IREE hoists only uniform values (`iree-util-hoist-into-globals`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects import arith
from xdsl.dialects.builtin import DenseIntOrFPElementsAttr, IndexType, ModuleOp, TensorType
from xdsl.dialects.linalg import ops as linalg
from xdsl.ir import Block, Operation, Region, SSAValue
from xdsl.ir.affine import AffineMap
from xdsl.passes import ModulePass
from xdsl.rewriter import InsertPoint, Rewriter

from irees.dialects.irees_target import target_of
from irees.dialects.storage import is_extract
from irees.remarks import remark
from irees.rewrites import may_rewrite
from irees.targets.common import COMMON
from irees.transforms.utils.lanes import moves_in_lanes
from irees.transforms.utils.shapes import Size, dim
from irees.transforms.utils.structured import (
    generic,
    is_parallel,
    iterators,
    loop_sources,
    maps,
    static_ranges,
)
from irees.transforms.utils.tensors import TensorBuilder, select_dims

EXPENSIVE = frozenset("arith.fptosi arith.fptoui arith.divf arith.remf".split())
"""Ops that cost more than a load from the L1 cache; so does every op of `math`."""

DIVISIONS = frozenset(
    """
    arith.divsi arith.divui arith.remsi arith.remui arith.floordivsi arith.ceildivsi arith.ceildivui
    """.split()
)
"""Integer divisions. Compilers turn `i / 2` into shifts; `i * n / 7` has no form on vectors."""

INDEX_BYTES = 8


@dataclass(frozen=True)
class Origin:
    """The loop that a value of the body depends on, if any, and whether it is expensive."""

    loop: int | None
    expensive: bool


def is_expensive(op: Operation) -> bool:
    """Whether an op costs more than the load of its result."""
    if op.name in DIVISIONS:
        return not isinstance(op.operands[1].owner, arith.ConstantOp) or _scales(op.operands[0])
    return op.name in EXPENSIVE or op.name.startswith("math.")


def _scales(value: SSAValue) -> bool:
    """Whether a sum has a product of no constants among its terms."""
    op = value.owner
    if isinstance(op, arith.AddiOp | arith.SubiOp):
        return any(map(_scales, op.operands))
    constants = [o for o in getattr(op, "operands", ()) if isinstance(o.owner, arith.ConstantOp)]
    return isinstance(op, arith.MuliOp) and not constants


def origins(block: Block) -> dict[SSAValue, Origin]:
    """Returns the values of a body that depend on constants and at most one loop."""
    found: dict[SSAValue, Origin] = {}
    for op in block.ops:
        if isinstance(op, linalg.IndexOp):
            found[op.result] = Origin(op.dim.value.data, False)
            continue
        dialect = op.name.partition(".")[0]
        if dialect not in ("arith", "math") or op.regions or len(op.results) != 1:
            continue
        parts = [_origin(operand, found, block) for operand in op.operands]
        known = [part for part in parts if part is not None]
        loops = {part.loop for part in known if part.loop is not None}
        if len(known) < len(parts) or len(loops) > 1:
            continue
        expensive = is_expensive(op) or any(part.expensive for part in known)
        found[op.results[0]] = Origin(next(iter(loops), None), expensive)
    return found


def _origin(value: SSAValue, found: dict[SSAValue, Origin], block: Block) -> Origin | None:
    """Returns the origin of an operand; values from outside of the body (sizes) are uniform."""
    outside = value.owner is not block and getattr(value.owner, "parent", None) is not block
    if outside or isinstance(value.owner, arith.ConstantOp):
        return Origin(None, False)
    return found.get(value)


def tabulated(block: Block) -> dict[SSAValue, int]:
    """Returns the values that become tables, with their loops, in the order of the body."""
    found = origins(block)
    frontier = {
        value: origin.loop
        for value, origin in found.items()
        if origin.loop is not None
        and origin.expensive
        and any(all(r not in found for r in use.operation.results) for use in value.uses)
    }

    def follows(value: SSAValue) -> bool:
        op = value.owner
        assert isinstance(op, Operation)
        rest = [v for v in op.operands if not isinstance(v.owner, arith.ConstantOp)]
        return not is_expensive(op) and bool(rest) and all(v in frontier for v in rest)

    return {value: loop for value, loop in frontier.items() if not follows(value)}


def _slice(value: SSAValue, inside: Block) -> list[Operation]:
    """Returns the ops of a body that compute a value, in order."""
    needed: set[Operation] = set()
    todo = [value]
    while todo:
        op = todo.pop().owner
        if isinstance(op, Operation) and op.parent is inside and op not in needed:
            needed.add(op)
            todo += op.operands
    return [op for op in inside.ops if op in needed]


def table(op: linalg.GenericOp, value: SSAValue, size: Size) -> SSAValue:
    """f(linalg.index k)  =>  a tensor of f(0), f(1), ..."""
    b, identity = TensorBuilder(op), AffineMap.identity(1)
    inputs: list[SSAValue] = []
    if isinstance(size, int) and 0 < size * INDEX_BYTES <= COMMON.folded_bytes:
        kind = TensorType(IndexType(), [size])
        numbers = DenseIntOrFPElementsAttr.from_list(kind, list(range(size)))
        inputs = [b.insert(arith.ConstantOp(numbers)).results[0]]
    block = Block(arg_types=[*(IndexType() for _ in inputs), value.type])
    mapped: dict[SSAValue, SSAValue] = {}
    for inner in _slice(value, op.body.block):
        if isinstance(inner, linalg.IndexOp) and inputs:
            mapped[inner.result] = block.args[0]
            continue
        copy = linalg.IndexOp(0) if isinstance(inner, linalg.IndexOp) else inner.clone(mapped)
        block.add_op(copy)
        mapped.update(zip(inner.results, copy.results, strict=True))
    block.add_op(linalg.YieldOp(mapped[value]))
    out = b.empty(value.type, [size])
    indexing = [identity] * (len(inputs) + 1)
    made = generic(inputs, [out], indexing, ["parallel"], Region(block))
    return b.insert(made).results[0]


def _size_of_loop(op: linalg.GenericOp, loop: int) -> Size:
    """Returns the trip count of a loop that is a dim of an operand."""
    source = loop_sources(op)[loop]
    assert source is not None
    return dim(op.operands[source[0]], source[1], TensorBuilder(op))


def repeats(op: linalg.GenericOp, loop: int) -> bool:
    """Whether another loop makes the op recompute values that depend only on `loop`."""
    return any(size != 1 for i, size in enumerate(static_ranges(op)) if i != loop)


def rewrite(op: linalg.GenericOp, found: dict[SSAValue, int]) -> None:
    """generic { g(f(linalg.index k)) }  =>  generic ins(table of f) { g(%in) }"""
    block, loops = op.body.block, len(iterators(op))
    # All tables first: an expression may contain another one.
    tables = [table(op, value, _size_of_loop(op, loop)) for value, loop in found.items()]
    for position, value in enumerate(found):
        argument = block.insert_arg(value.type, len(op.inputs) + position)
        value.replace_all_uses_with(argument)
    _erase_unused(block)
    indexing = maps(op)
    added = [select_dims(loops, [loop]) for loop in found.values()]
    inputs: Sequence[SSAValue] = [*op.inputs, *tables]
    every = [*indexing[: len(op.inputs)], *added, *indexing[len(op.inputs) :]]
    body = op.detach_region(op.body)
    made = generic(inputs, list(op.outputs), every, iterators(op), body)
    made.location = op.location
    made.attributes |= op.attributes
    Rewriter.insert_op(made, InsertPoint.before(op))
    Rewriter.replace_op(op, [], list(made.results))


def _extracts(op: linalg.GenericOp) -> bool:
    """Whether the body reads elements at computed indices."""
    return any(map(is_extract, op.body.block.ops))


def _erase_unused(block: Block) -> None:
    """Erases the pure ops of a body without readers."""
    for op in reversed(list(block.ops)):
        if op.results and not any(r.uses for r in op.results):
            Rewriter.erase_op(op)


@dataclass(frozen=True)
class TabulateIndexExpressionsPass(ModulePass):
    """Replaces expensive functions of one loop index by tables."""

    name = "irees-tabulate-index-expressions"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        if target_of(op).gpu is not None:
            return
        for inner in [o for o in op.walk() if isinstance(o, linalg.GenericOp)]:
            if not is_parallel(inner) and not _extracts(inner):
                continue
            found = {
                value: loop
                for value, loop in tabulated(inner.body.block).items()
                if repeats(inner, loop)
                and loop_sources(inner)[loop] is not None
                and (moves_in_lanes(value.type) or isinstance(value.type, IndexType))
            }
            if not found:
                continue
            if len(inner.operands) + len(found) > COMMON.kernel_operands:
                text = f"{len(found)} tables exceed {COMMON.kernel_operands} kernel operands"
                remark("missed", self.name, inner, text)
                continue
            if may_rewrite(self.name, inner, "functions of a loop index"):
                rewrite(inner, found)
