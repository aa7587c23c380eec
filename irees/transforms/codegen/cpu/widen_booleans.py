"""
Computes booleans as bytes.

A mask in a register has a lane of 32 bits for each boolean, as comparisons of f32 have; in memory a
boolean is a byte. An op that reads and writes booleans only, such as a move or a conjunction of
masks, needs no masks: it is written on bytes, four times as many of which fit in a register.

    linalg.generic ins(%a, %b : memref<8xi1>, memref<8xi1>) { arith.andi }
  =>
    %x = irees.view_bytes %a : memref<8xi1> -> memref<8xi8> ; %y = irees.view_bytes %b
    linalg.generic ins(%x, %y : memref<8xi8>, memref<8xi8>) { andi (minui x, 1), (minui y, 1) }

Memory that comes from a program's caller may hold any byte; one that is not 0 is true. Ops that
compare or select other types keep their masks. LLVM and MLIR have vectors of i1 instead, whose
lanes in memory are bits.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects import arith
from xdsl.dialects.builtin import IntegerAttr, MemRefType, ModuleOp, i1, i8
from xdsl.dialects.linalg import ops as linalg
from xdsl.ir import Block, Operation, Region, SSAValue
from xdsl.passes import ModulePass
from xdsl.rewriter import InsertPoint, Rewriter

from irees.dialects.irees import ViewBytesOp
from irees.rewrites import may_rewrite
from irees.transforms.utils.shapes import IndexBuilder
from irees.transforms.utils.structured import generic, is_parallel, iterators, maps

NAME = "irees-widen-booleans"


def _byte(value: int, at: IndexBuilder) -> SSAValue:
    return at.insert(arith.ConstantOp(IntegerAttr(value, i8))).results[0]


def _constant(op: Operation, values: list[SSAValue], at: IndexBuilder) -> SSAValue:
    assert isinstance(op, arith.ConstantOp)
    assert isinstance(op.value, IntegerAttr)
    return _byte(1 if op.value.value.data else 0, at)


def _select(op: Operation, values: list[SSAValue], at: IndexBuilder) -> SSAValue:
    """c ? a : b  =>  b ^ (c & (a ^ b))"""
    c, a, b = values
    both = at.op(arith.AndIOp, c, at.op(arith.XOrIOp, a, b))
    return at.op(arith.XOrIOp, b, both)


def _same(op: Operation, values: list[SSAValue], at: IndexBuilder) -> SSAValue:
    return at.op(type(op), *values)


BYTES: dict[str, Callable[[Operation, list[SSAValue], IndexBuilder], SSAValue]] = {
    "arith.andi": _same,
    "arith.constant": _constant,
    "arith.ori": _same,
    "arith.select": _select,
    "arith.xori": _same,
}
"""Op name => its form on bytes that are 0 or 1."""


def is_boolean(op: linalg.GenericOp) -> bool:
    """Whether an op on buffers reads, computes and writes booleans only."""
    if not is_parallel(op) or not all(isinstance(v.type, MemRefType) for v in op.operands):
        return False
    block = op.body.block
    inside = list(block.ops)[:-1]
    values = {*block.args, *(r for o in inside for r in o.results)}
    used = {v for o in block.ops for v in o.operands}
    return all(v.type == i1 for v in values) and used <= values and _has_form(inside)


def _has_form(ops: Sequence[Operation]) -> bool:
    return all(op.name in BYTES for op in ops)


def on_bytes(op: linalg.GenericOp) -> None:
    """Replaces an op on booleans by one on bytes."""
    here = IndexBuilder(InsertPoint.before(op))
    shown = [here.insert(ViewBytesOp(v)).results[0] for v in op.operands]
    old, block = op.body.block, Block(arg_types=[i8] * len(op.operands))
    at = IndexBuilder(InsertPoint.at_end(block))
    known: dict[SSAValue, SSAValue] = {}
    for before, after in zip(old.args, block.args, strict=True):
        if before.uses:
            known[before] = at.op(arith.MinUIOp, after, _byte(1, at))
    last = old.last_op
    assert last is not None
    for inner in list(old.ops)[:-1]:
        values = [known[v] for v in inner.operands]
        known[inner.results[0]] = BYTES[inner.name](inner, values, at)
    block.add_op(linalg.YieldOp(*(known[v] for v in last.operands)))
    count = len(op.inputs)
    kinds = iterators(op)
    here.insert(generic(shown[:count], shown[count:], maps(op), kinds, Region(block)))
    Rewriter.erase_op(op)


@dataclass(frozen=True)
class WidenBooleansPass(ModulePass):
    """Computes booleans as bytes where no other type is involved."""

    name = "irees-widen-booleans"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for inner in [o for o in op.walk() if isinstance(o, linalg.GenericOp)]:
            if is_boolean(inner) and may_rewrite(NAME, inner, "booleans as bytes"):
                on_bytes(inner)
