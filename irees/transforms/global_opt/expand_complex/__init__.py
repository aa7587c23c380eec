"""
Computes complex numbers as pairs of reals.

Processors have no vectors of complex numbers, and no product of complex matrices. So tensors of
complex numbers are shown as tensors of reals with a last dim of 2 (`irees.view_parts`), and the ops
on them are written with a loop over the two parts:

    %z = linalg.generic {(i) -> (i), (i) -> (i)} ins(%x : tensor<8xcomplex<f32>>) { complex.conj }
  =>
    %p = irees.view_parts %x : tensor<8xcomplex<f32>> -> tensor<8x2xf32>
    %r = linalg.generic {(i, q) -> (i, q), (i, q) -> (i, q)} ins(%p : tensor<8x2xf32>)
           { q == 0 ? x : -x }
    %z = irees.view_parts %r : tensor<8x2xf32> -> tensor<8xcomplex<f32>>

A view takes no time, and two of them in a row vanish. Sums, slices, reshapes and selections have
the same form on parts. A product needs both parts of its operands: it reads elements (i, 0) and
(i, 1), and chooses by q. Code generation computes vectors of both results and interleaves them.

Functions without such a form (exp, log, powers) are computed on complex numbers. A move that only
such ops read is left to them. The length of a number may differ in its last bit, so the pass does
not run with `fp=strict`; GPU kernels load complex numbers as vectors of two, so it runs for CPUs
only. `irees-expand-complex-contractions` runs before. MLIR: `convert-complex-to-standard` rewrites
the scalar ops, but not the types of tensors.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.linalg import ops as linalg
from xdsl.ir import Operation, Region, SSAValue
from xdsl.ir.affine import AffineExpr, AffineMap
from xdsl.passes import ModulePass
from xdsl.rewriter import Rewriter

from irees.dialects.irees import ViewPartsOp
from irees.dialects.irees_target import is_strict, target_of
from irees.remarks import remark
from irees.rewrites import may_rewrite
from irees.transforms.global_opt.expand_complex.bodies import EACH, IM, RE, Body, in_order
from irees.transforms.global_opt.expand_complex.moves import move_of
from irees.transforms.global_opt.utils.complex_parts import holds_complex, is_complex, pairs
from irees.transforms.utils.reshapes import Refused
from irees.transforms.utils.structured import element_type, generic, iterators, maps
from irees.transforms.utils.tensors import TensorBuilder
from irees.transforms.utils.unused_results import erase_dead_code

NAME = "irees-expand-complex"


def body_of(op: linalg.GenericOp, b: TensorBuilder) -> Body:
    """Returns the body of an op on pairs, to be written. Raises Refused."""
    arguments = op.body.block.args
    outputs = arguments[len(op.inputs) :]
    kinds = {is_complex(v) for v in outputs}
    if len(kinds) > 1:
        raise Refused("its results are complex numbers and others")
    if any(is_complex(v) for v in op.inputs):
        raise Refused("it reads a complex number that is not in a tensor")
    loop = len(iterators(op)) if True in kinds else None
    body = Body(op.body.block, loop, lambda value: pairs(value, b))
    if any(body.needed.get(v, set()) - {EACH} for v in outputs):
        raise Refused("a result depends on the other part of its output")
    return body


def on_pairs(op: linalg.GenericOp, b: TensorBuilder) -> list[SSAValue]:
    """Returns the results of an op, as pairs if they are complex numbers. Raises Refused."""
    body = body_of(op, b)
    loops = len(iterators(op))
    last = {RE: AffineExpr.constant(0), IM: AffineExpr.constant(1)}
    if body.loop is not None:
        last[EACH] = AffineExpr.dimension(body.loop)
    count = loops + (body.loop is not None)
    operands: tuple[list[SSAValue], list[SSAValue]] = ([], [])
    indexing: list[AffineMap] = []
    triples = zip(op.operands, maps(op), op.body.block.args, strict=True)
    for number, (value, map_, old) in enumerate(triples):
        is_output = number >= len(op.inputs)
        unused = [EACH if is_output else RE]
        parts = (in_order(body.needed.get(old, ())) or unused) if is_complex(old) else [None]
        shown = pairs(value, b) if is_complex(old) else value
        for part in parts:
            results = map_.results if part is None else (*map_.results, last[part])
            body.argument(old, part, element_type(shown))
            operands[is_output].append(shown)
            indexing.append(AffineMap(count, 0, results))
    body.write()
    kinds = [*iterators(op), *["parallel"] * (count - loops)]
    new = generic(*operands, indexing, kinds, Region(body.block))
    return list(b.insert(new).results)


def expand(op: Operation) -> None:
    """Writes an op on pairs."""
    b = TensorBuilder(op)
    move = move_of(op)
    if move is not None:
        new = [move(op, b)]
    else:
        assert isinstance(op, linalg.GenericOp)
        new = on_pairs(op, b)
    for old, value in zip(op.results, new, strict=True):
        shown = b.insert(ViewPartsOp(value)).results[0] if holds_complex(old) else value
        old.replace_all_uses_with(shown)
    Rewriter.erase_op(op)


def holds_any(op: Operation) -> bool:
    """Whether an operand or a result of an op is a tensor of complex numbers."""
    return any(holds_complex(v) for v in (*op.operands, *op.results))


class Uses:
    """Finds moves that only ops read which stay on complex numbers."""

    def __init__(self) -> None:
        self.left: set[Operation] = set()
        """Ops that compute, and stay as they are."""
        self.known: dict[Operation, bool] = {}

    def only_left(self, op: Operation) -> bool:
        """Whether a value is read, and only by ops that stay, directly or through moves."""
        if op in self.known:
            return self.known[op]
        self.known[op] = False
        users = [use.operation for result in op.results for use in result.uses]
        answer = bool(users) and all(
            user in self.left or (move_of(user) is not None and self.only_left(user))
            for user in users
        )
        self.known[op] = answer
        return answer


def refused(op: linalg.GenericOp) -> str | None:
    """Returns why an op has no form on pairs, or None if it has one."""
    try:
        body_of(op, TensorBuilder(op))
    except Refused as error:
        return str(error)
    return None


def rewrite(found: Sequence[Operation]) -> None:
    """Writes ops of a program on pairs, in their order."""
    uses = Uses()
    for op in found:
        if isinstance(op, linalg.GenericOp) and (reason := refused(op)) is not None:
            remark("missed", NAME, op, reason)
            uses.left.add(op)
    for op in found:
        movable = move_of(op) is not None and not uses.only_left(op)
        computed = isinstance(op, linalg.GenericOp) and op not in uses.left
        if not (movable or computed) or not may_rewrite(NAME, op, "an op on complex numbers"):
            continue
        expand(op)


@dataclass(frozen=True)
class ExpandComplexPass(ModulePass):
    """Computes complex numbers as pairs of reals on CPUs."""

    name = "irees-expand-complex"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        if target_of(op).gpu is not None or is_strict(op):
            return
        rewrite([inner for inner in op.walk() if holds_any(inner)])
        for view in [o for o in op.walk() if isinstance(o, ViewPartsOp)]:
            if isinstance(view.source.owner, ViewPartsOp):
                view.result.replace_all_uses_with(view.source.owner.source)
        blocks = dict.fromkeys(o.parent for o in op.walk() if holds_any(o))
        for block in reversed([b for b in blocks if b is not None]):
            erase_dead_code(block, Rewriter.erase_op)
