"""Moves ops into a `flow.dispatch.region`, and restores dominance in the block around it."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from xdsl.dialects.builtin import TensorType
from xdsl.ir import Block, Operation, OpResult, Region, SSAValue
from xdsl.rewriter import InsertPoint, Rewriter
from xdsl.traits import is_side_effect_free

from irees.dialects.flow import DispatchRegionOp, ReturnOp
from irees.dialects.storage import is_dim
from irees.errors import InternalError
from irees.interfaces import loops_model_of
from irees.transforms.utils.shapes import IndexBuilder, constant_value, dim, dynamic_dims
from irees.transforms.utils.structured import asserts, captured_values

OF_VALUES = frozenset("arith flow iree_linalg_ext linalg tensor".split())
"""Dialects whose ops on tensors have no side effects, although not all ops declare it."""


def _escaping(ops: Sequence[Operation], members: set[Operation]) -> list[SSAValue]:
    """Returns the results of `ops` that are used outside `members`."""
    return [
        r
        for op in ops
        for r in op.results
        if any(not any(m.is_ancestor(u.operation) for m in members) for u in r.uses)
    ]


def _asserted(ops: Sequence[Operation]) -> list[SSAValue]:
    """Returns a result of an op that asserts something, if there is one."""
    kept = (r for op in filter(asserts, ops) for r in op.results)
    return [r for r in kept if isinstance(r.type, TensorType)][:1]


def _ask_operands(op: Operation) -> None:
    """dim(result of op)  =>  dim(operand that determines the size)"""
    for result in op.results:
        for use in list(result.uses):
            asked = use.operation
            if not is_dim(asked) or not isinstance(result.type, TensorType):
                continue
            index = constant_value(asked.index)
            if index is None:
                continue
            builder = IndexBuilder(InsertPoint.before(asked))
            size = builder.value(dim(result, index, builder))
            asked.result.replace_all_uses_with(size)
            Rewriter.erase_op(asked)


def make_region(group: Sequence[Operation], root: Operation | None = None) -> DispatchRegionOp:
    """
    ops  =>  flow.dispatch.region { ops ; flow.return results used outside }

    `group` is in block order. The region replaces the root, or the last op if there is no root.
    Results of the root are returned first, then those of the ops before it, nearest first. A region
    whose results are not used outside returns one if its ops assert something: it must run. The
    block may need `sort_block` afterwards.
    """
    for op in group:
        _ask_operands(op)
    place = group[-1] if root is None else root
    returned = list(group)
    if root is not None:
        at = returned.index(root)
        returned = [root, *reversed(returned[:at]), *returned[at + 1 :]]
    escaping = _escaping(returned, set(group)) or _asserted(returned)
    builder = IndexBuilder(InsertPoint.before(place))
    tensors = [v for v in escaping if isinstance(v.type, TensorType)]
    sizes = [d for v in tensors for d in dynamic_dims(v, builder)]
    block = Block()
    region = DispatchRegionOp(sizes, [v.type for v in escaping], Region(block))
    region.location = place.location
    Rewriter.insert_op(region, InsertPoint.before(place))
    for op in group:
        op.detach()
        block.add_op(op)
    block.add_op(ReturnOp(escaping))
    for value, result in zip(escaping, region.res, strict=True):
        value.replace_uses_with_if(result, lambda use: not region.is_ancestor(use.operation))
    return region


def clone_producers(region: DispatchRegionOp, is_wanted: Callable[[OpResult], bool]) -> None:
    """region that uses wanted(x)  =>  region that contains a clone of wanted(x)"""
    block = region.body.block
    while True:
        # Only the body: the workgroup count region runs on the host.
        read = dict.fromkeys(v for o in block.ops for v in _values_read(o))
        outside = [v for v in read if isinstance(v, OpResult) and v.op.parent is not block]
        wanted = [value for value in outside if is_wanted(value)]
        if not wanted:
            return
        for value in wanted:
            _clone_producer(value, block)


def _clone_producer(value: OpResult, block: Block) -> None:
    """Clones the op of a value before the first op of a block that reads it."""
    copy = value.op.clone()
    first = next(o for o in block.ops if value in _values_read(o))
    Rewriter.insert_op(copy, InsertPoint.before(first))
    # Walk the region, not the uses: a constant may be used throughout the program.
    for user in block.walk():
        if value in user.operands:
            new = copy.results[value.index]
            user.operands = [new if o is value else o for o in user.operands]


def _values_read(op: Operation) -> list[SSAValue]:
    """Returns the operands of an op and the values that its regions capture."""
    return [*op.operands, *captured_values(op)]


def has_effects(op: Operation) -> bool:
    """Whether an op may have side effects."""
    of_values = op.name.split(".")[0] in OF_VALUES or loops_model_of(op)
    return not of_values and not is_side_effect_free(op)


class Order:
    """
    The ordering constraints of a block. An op comes after the definitions of its operands and of
    the values its regions capture. An op with effects also comes after the previous such op.
    """

    def __init__(self, block: Block):
        self.block = block
        self.before: dict[Operation, Operation] = {}
        last: Operation | None = None
        for op in block.ops:
            if not has_effects(op):
                continue
            if last is not None:
                self.before[op] = last
            last = op

    def sources(self, op: Operation) -> list[Operation]:
        """Returns the ops of the block that must come before an op."""
        values = [v for v in _values_read(op) if isinstance(v, OpResult)]
        found = [v.op for v in values if v.op.parent is self.block]
        return [*found, self.before[op]] if op in self.before else found


def sort_block(block: Block, order: Order) -> None:
    """
    Sorts a block topologically; independent ops keep their order. `order` was computed before the
    regions were created. Raises InternalError if an op depends on itself.
    """
    ops = list(block.ops)
    placed: dict[Operation, None] = {}
    open_: set[Operation] = set()
    for op in ops:
        stack = [op]
        while stack:
            current = stack[-1]
            waiting = (
                [] if current in placed else [s for s in order.sources(current) if s not in placed]
            )
            if not waiting:
                placed[stack.pop()] = None
                continue
            if current in open_:
                raise InternalError(f"{current.name} depends on its own results")
            open_.add(current)
            stack.extend(waiting)
    for op in ops:
        op.detach()
    for op in placed:
        block.add_op(op)
