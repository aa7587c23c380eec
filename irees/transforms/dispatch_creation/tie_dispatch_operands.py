"""
Updates tensors in place: ties a dispatch result to the operand that it partially updates.

A scatter, an insertion or a kernel of the program's own leaves parts of its destination unchanged.
If the old value is not read later, the new value takes over its memory and only the changed
elements are written: updating one row of a cache of 1 GB costs one row.

    func.func @k(%u: readonly<1x8>, %x: readonly<64x8>, %o: writeonly<64x8>) {
      load %x, insert, store %o }
    %1 = flow.dispatch @k(%u, %x) : (tensor<1x8xf32>, tensor<64x8xf32>) -> tensor<64x8xf32>
  =>
    func.func @k(%u: readonly<1x8>, %x: readwrite<64x8>) { load %x, insert, store %x }
    %1 = flow.dispatch @k(%u, %x) : (tensor<1x8xf32>, tensor<64x8xf32>) -> %x

The operand is the result of another dispatch, a tensor that a loop carries and replaces by
that result, or an argument that the function declares updated by it (`irees.updates`).
So a loop that writes a row of its result in each iteration moves one row at a time. Operands that
are read later, also through a reshape, are not tied; neither are those that the kernel also reads
other than as the destination. Runs on CPU targets, before `irees-deduplicate-executables`, while
each dispatch has an executable of its own. IREE: readwrite dispatch tensors and tied operands.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects import func, scf
from xdsl.dialects.builtin import (
    DYNAMIC_INDEX,
    ArrayAttr,
    FunctionType,
    IntegerAttr,
    ModuleOp,
    StringAttr,
    TensorType,
)
from xdsl.ir import BlockArgument, Operation, OpResult, SSAValue
from xdsl.passes import ModulePass
from xdsl.rewriter import Rewriter

from irees.dialects._shaped import UNTIED
from irees.dialects.flow import DispatchOp, ExecutableOp
from irees.dialects.iree_tensor_ext import (
    DispatchTensorLoadOp,
    DispatchTensorStoreOp,
    DispatchTensorType,
)
from irees.dialects.irees_target import target_of
from irees.dialects.signature import updates_of
from irees.dialects.storage import is_reshape, updated
from irees.rewrites import may_rewrite


def updated_argument(store: DispatchTensorStoreOp) -> BlockArgument | None:
    """Returns the kernel argument that a stored value only updates, by a chain, or None."""
    value = store.value
    while isinstance(value, OpResult):
        number = updated(value.op, value.index)
        if number is None:
            break
        value = value.op.operands[number]
        if len(list(value.uses)) != 1:
            return None
    load = value.owner
    if not isinstance(load, DispatchTensorLoadOp) or not load.full() or value is store.value:
        return None
    argument = load.source
    reads = [u.operation for u in argument.uses if u.operation is not load]
    return argument if isinstance(argument, BlockArgument) and not reads else None


def is_read_later(value: SSAValue, dispatch: Operation) -> bool:
    """Whether a value or a view of it is used after a dispatch, or twice by it."""
    block = dispatch.parent_block()
    for use in value.uses:
        op = use.operation
        if op is dispatch:
            continue
        if is_reshape(op):
            if op.parent_block() is not block or is_read_later(op.results[0], dispatch):
                return True
        elif op.parent_block() is not block or not op.is_before_in_block(dispatch):
            return True
    return times_read(value, dispatch) > 1


def times_read(value: SSAValue, dispatch: Operation) -> int:
    """Returns how many operands of a dispatch are a value or a reshape of it."""
    users = [use.operation for use in value.uses]
    views = [op.results[0] for op in dict.fromkeys(users) if is_reshape(op)]
    return users.count(dispatch) + sum(times_read(view, dispatch) for view in views)


def is_ours(
    value: SSAValue,
    dispatch: DispatchOp,
    result: SSAValue,
    function: func.FuncOp,
    later: Mapping[SSAValue, SSAValue],
) -> bool:
    """
    Whether a dispatch may write a result over the memory of a value. `later` maps operands of later
    dispatches to the results tied to them.
    """
    if isinstance(value, OpResult):
        # Values from other blocks may be loop-carried; loops own that memory.
        return isinstance(value.op, DispatchOp) and value.owner.parent_block() is (
            dispatch.parent_block()
        )
    terminator = function.body.block.last_op
    assert terminator is not None
    if not isinstance(value, BlockArgument):
        return False
    while result in later:
        result = later[result]
    if value.block is not function.body.block:
        return value.block is dispatch.parent_block() and next_value(value) is result
    wanted = [i for i, argument in updates_of(function).items() if argument == value.index]
    return any(terminator.operands[i] is result for i in wanted)


def next_value(argument: BlockArgument) -> SSAValue | None:
    """
    Returns the value of a loop-carried tensor in the next iteration; None for any other argument,
    and for one of `scf.while` that may have another buffer in each iteration.
    """
    block = argument.block
    loop, terminator = block.parent_op(), block.last_op
    if not isinstance(argument.type, TensorType) or not isinstance(terminator, scf.YieldOp):
        return None
    if isinstance(loop, scf.ForOp):
        return terminator.operands[argument.index - 1]
    if not isinstance(loop, scf.WhileOp) or DYNAMIC_INDEX in argument.type.get_shape():
        return None
    before = loop.before_region.block
    condition = before.last_op
    assert isinstance(condition, scf.ConditionOp)
    if argument.index >= len(before.args):
        return None
    passed_on = condition.operands[1 + argument.index] is before.args[argument.index]
    return terminator.operands[argument.index] if passed_on else None


@dataclass
class Tie:
    """A result of a dispatch that is tied to an operand."""

    result: int
    operand: int
    store: DispatchTensorStoreOp
    argument: BlockArgument


def ties_of(
    dispatch: DispatchOp,
    kernel: func.FuncOp,
    function: func.FuncOp,
    later: Mapping[SSAValue, SSAValue],
) -> list[Tie]:
    """Returns the results of a dispatch that can be computed in place."""
    found: list[Tie] = []
    first_result = len(kernel.body.block.args) - len(dispatch.res)
    for store in kernel.body.block.ops:
        if not isinstance(store, DispatchTensorStoreOp) or not store.full():
            continue
        target = store.target
        assert isinstance(target, BlockArgument)
        argument = updated_argument(store)
        number = target.index - first_result
        if argument is None or argument.type.bound_type != target.type.bound_type:  # type: ignore
            continue
        operand = argument.index
        value, result = dispatch.arguments[operand], dispatch.res[number]
        if is_read_later(value, dispatch):
            continue
        if not is_ours(value, dispatch, result, function, later):
            continue
        found.append(Tie(number, operand, store, argument))
    return found


def tie(dispatch: DispatchOp, kernel: func.FuncOp, ties: list[Tie]) -> None:
    """%1 = dispatch @k(%x), %o of @k  =>  %1 = dispatch @k(%x) -> %x, %x of @k readwrite"""
    block = kernel.body.block
    written: list[BlockArgument] = []
    for each in ties:
        target = each.store.target
        assert isinstance(target, BlockArgument)
        assert isinstance(each.argument.type, DispatchTensorType)
        kind = DispatchTensorType(StringAttr("readwrite"), each.argument.type.bound_type)
        Rewriter.replace_value_with_new_type(each.argument, kind)
        target.replace_all_uses_with(block.args[each.operand])
        written.append(target)
    for target in written:
        block.erase_arg(target)
    kernel.function_type = FunctionType.from_lists([a.type for a in block.args], [])
    by_result = {each.result: each.operand for each in ties}
    dispatch.tied_operands = ArrayAttr(
        IntegerAttr.from_index_int_value(by_result.get(i, UNTIED)) for i in range(len(dispatch.res))
    )


@dataclass(frozen=True)
class TieDispatchOperandsPass(ModulePass):
    """Makes dispatches update tensors in place."""

    name = "irees-tie-dispatch-operands"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        if target_of(op).gpu is not None:
            return
        kernels = {
            e.sym_name.data: next(f for f in e.walk() if isinstance(f, func.FuncOp))
            for e in op.body.block.ops
            if isinstance(e, ExecutableOp)
        }
        for function in [f for f in op.body.block.ops if isinstance(f, func.FuncOp)]:
            self._tie_in(function, kernels)

    def _tie_in(self, function: func.FuncOp, kernels: Mapping[str, func.FuncOp]) -> None:
        """Ties dispatches, last first, since several may update one argument successively."""
        later: dict[SSAValue, SSAValue] = {}
        for dispatch in reversed([d for d in function.walk() if isinstance(d, DispatchOp)]):
            kernel = kernels.get(dispatch.entry_point.root_reference.data)
            if kernel is None:
                continue
            ties = ties_of(dispatch, kernel, function, later)
            if not ties or not may_rewrite(self.name, dispatch, "a tie"):
                continue
            tie(dispatch, kernel, ties)
            for each in ties:
                later[dispatch.arguments[each.operand]] = dispatch.res[each.result]
