"""
Bufferizes loops and branches that carry tensors. Part of `irees-convert-to-stream`.

A loop-carried tensor of static shape has one buffer, its home. The value is copied to it before the
loop and after each iteration, unless the iteration updated the home in place. The results of a
branch are buffers that both regions write.

A tensor of dynamic shape may change its size, so its buffer itself is carried or yielded. Each
yielded buffer is allocated in the yielding region, for this purpose only. This makes its ownership
unambiguous: the backend transfers the buffer instead of freeing it. A buffer that a counted loop
carries and has updated in place is yielded as it is.

    %r = scf.if %c -> (tensor<?xf32>) {          %r = scf.if %c -> (memref<?xf32>) {
      scf.yield %x : tensor<?xf32>                 %a = memref.alloc(%n) : memref<?xf32>
    } else ...                              =>     memref.copy %x, %a
                                                   scf.yield %a : memref<?xf32>
                                                 } else ...
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from xdsl.dialects import func, memref, scf
from xdsl.dialects.builtin import DYNAMIC_INDEX, MemRefType, TensorType
from xdsl.ir import Attribute, Block, Operation, SSAValue
from xdsl.rewriter import InsertPoint, Rewriter

from irees.dialects.storage import is_allocation, root
from irees.errors import UnsupportedError
from irees.transforms.utils.shapes import IndexBuilder, Size, constant_value

MOST_TRIPS = 1 << 53
"""Maximum constant trip count of a loop: at 1 ns per iteration, 2^53 take 104 days."""


def buffer_type(kind: Attribute) -> Attribute:
    """tensor<4xf32>  =>  memref<4xf32>; other types are unchanged"""
    if not isinstance(kind, TensorType):
        return kind
    return MemRefType(kind.get_element_type(), kind.get_shape())


def resized(kind: Attribute) -> bool:
    """Whether a type is a tensor of dynamic shape."""
    return isinstance(kind, TensorType) and DYNAMIC_INDEX in kind.get_shape()


def homed(kind: Attribute) -> bool:
    """Whether a type is a tensor of static shape, whose values fit one buffer."""
    return isinstance(kind, TensorType) and not resized(kind)


def is_repeated(op: Operation, value: SSAValue) -> bool:
    """Whether an op may run several times on one value: a loop around it is inside its block."""
    owner, block = value.owner, op.parent_block()
    home = owner if isinstance(owner, Block) else owner.parent_block()
    while block is not None and block is not home:
        around = block.parent_op()
        if around is None or not isinstance(around, scf.IfOp):
            return True
        block = around.parent_block()
    return False


def refuse_call(op: func.CallOp) -> None:
    """Raises UnsupportedError: `irees-inline-calls` could not inline the call."""
    raise UnsupportedError(
        f"@{op.callee.string_value()} is recursive, or has no body",
        op=op,
        hint="write the recursion as a loop, or give the function a body",
    )


def check_that_it_ends(op: scf.ForOp) -> None:
    """Raises UnsupportedError for a loop with more than `MOST_TRIPS` iterations."""
    first, end, step = (constant_value(v) for v in (op.lb, op.ub, op.step))
    if first is None or end is None or not step:
        return
    if (trips := -(-(end - first) // step)) > MOST_TRIPS:
        raise UnsupportedError(
            f"a loop with {trips} iterations would not finish",
            op=op,
            hint="set the actual upper bound, which the importer did not know",
        )


@dataclass
class ControlFlow:
    """Converts scf ops; subclasses implement `_block`, which converts the ops of a block."""

    buffers: dict[SSAValue, SSAValue] = field(default_factory=dict, kw_only=True)
    renamed: dict[SSAValue, SSAValue] = field(default_factory=dict, kw_only=True)
    """Index values of the tensor program => their replacements."""

    def _block(self, block: Block, leave: Callable[[], None] | None = None) -> None:
        raise NotImplementedError

    def _alloc(self, kind: Attribute, sizes: Sequence[Size], builder: IndexBuilder) -> SSAValue:
        result = buffer_type(kind)
        assert isinstance(result, MemRefType)
        shape = result.get_shape()
        dynamic = [
            builder.value(s) for s, n in zip(sizes, shape, strict=True) if n == DYNAMIC_INDEX
        ]
        return builder.insert(memref.AllocOp(dynamic, [], result)).results[0]

    def _own_copy(self, value: SSAValue, builder: IndexBuilder) -> SSAValue:
        """Returns a new buffer with a copy of a tensor."""
        source = self.buffers[value]
        copy = self._like(source, builder)
        builder.insert(memref.CopyOp(source, copy))
        return copy

    def _like(self, buffer: SSAValue, builder: IndexBuilder) -> SSAValue:
        """Returns a new buffer of the same sizes."""
        kind = buffer.type
        assert isinstance(kind, MemRefType)
        sizes = [
            builder.insert(memref.DimOp(buffer, builder.value(i))).results[0]
            for i, s in enumerate(kind.get_shape())
            if s == DYNAMIC_INDEX
        ]
        return builder.insert(
            memref.AllocOp(sizes, [], MemRefType(kind.element_type, kind.get_shape()))
        ).results[0]

    def _update(
        self, values: Sequence[SSAValue], homes: Sequence[SSAValue], builder: IndexBuilder
    ) -> None:
        """Parallel copy homes = values; first saves values that are stored in another home."""
        sources = [self.buffers[v] for v in values]
        roots = {root(h) for h in homes}
        moved = [
            self._own_copy(v, builder) if root(s) in roots and s is not h else s
            for v, s, h in zip(values, sources, homes, strict=True)
        ]
        for source, home in zip(moved, homes, strict=True):
            if source is not home:
                builder.insert(memref.CopyOp(source, home))

    def _fresh(self, values: Sequence[SSAValue], at: IndexBuilder) -> list[SSAValue]:
        """Returns the values in distinct buffers that this block allocates; copies if needed."""
        block = at.point.block
        found: list[SSAValue] = []
        taken: set[SSAValue] = set()
        for value in values:
            buffer = self.buffers[value]
            made = root(buffer).owner
            here = is_allocation(made) and made.parent_block() is block
            if not here or root(buffer) in taken:
                buffer = self._own_copy(value, at)
            taken.add(root(buffer))
            found.append(buffer)
        return found

    def _enter(
        self, block: Block, homes: dict[int, SSAValue], first: int, leave: Callable[[], None]
    ) -> None:
        """Converts a block whose tensor arguments are stored in `homes`; erases those arguments."""
        for argument in list(block.args):
            if argument.index - first in homes:
                self.buffers[argument] = homes[argument.index - first]
            elif isinstance(argument.type, TensorType):
                Rewriter.replace_value_with_new_type(argument, buffer_type(argument.type))
                argument = block.args[argument.index]
                self.buffers[argument] = argument
        self._block(block, leave)
        for position in sorted(homes, reverse=True):
            block.erase_arg(block.args[first + position], safe_erase=False)

    def _inits(
        self, inits: Sequence[SSAValue], kinds: Sequence[Attribute], builder: IndexBuilder
    ) -> tuple[dict[int, SSAValue], list[SSAValue]]:
        """Copies a loop's tensor inits; returns homes by position, and the remaining operands."""
        homes: dict[int, SSAValue] = {}
        operands: list[SSAValue] = []
        # `kinds` has the original types: operands may be bufferized already.
        for i, (value, kind) in enumerate(zip(inits, kinds, strict=True)):
            if homed(kind):
                homes[i] = self._own_copy(value, builder)
            else:
                operands.append(self._own_copy(value, builder) if resized(kind) else value)
        return homes, operands

    def _for(self, op: scf.ForOp, builder: IndexBuilder) -> None:
        check_that_it_ends(op)
        homes, operands = self._inits(op.iter_args, [r.type for r in op.results], builder)
        block = op.body.block
        self._enter(block, homes, 1, lambda: self._leave(block, homes))
        new = scf.ForOp(op.lb, op.ub, op.step, operands, op.detach_region(op.body))
        self._finish(op, new, homes, builder)

    def _leave(self, block: Block, homes: dict[int, SSAValue]) -> None:
        """scf.yield of tensors  =>  copies to homes, and a yield of buffers of this block"""
        terminator = block.last_op
        assert terminator is not None
        at = IndexBuilder(InsertPoint.before(terminator))
        self._yield(terminator, homes, at)
        self._update([terminator.operands[i] for i in homes], list(homes.values()), at)
        terminator.operands = [v for i, v in enumerate(terminator.operands) if i not in homes]

    def _yield(self, terminator: Operation, homes: dict[int, SSAValue], at: IndexBuilder) -> None:
        """Yields buffers for tensors without a home."""
        kept = self._carried(terminator)
        places = [
            i
            for i, v in enumerate(terminator.operands)
            if i not in homes and v in self.buffers and self.buffers[v] is not kept.get(i)
        ]
        for i in kept.keys() - homes.keys() - set(places):
            terminator.operands[i] = kept[i]
        fresh = self._fresh([terminator.operands[i] for i in places], at)
        for i, buffer in zip(places, fresh, strict=True):
            terminator.operands[i] = buffer

    def _carried(self, terminator: Operation) -> dict[int, SSAValue]:
        """Returns the buffers that a counted loop carries, by position."""
        block = terminator.parent_block()
        if block is None or not isinstance(block.parent_op(), scf.ForOp):
            return {}
        return {a.index - 1: self.buffers[a] for a in block.args if a in self.buffers}

    def _finish(
        self, op: Operation, new: Operation, homes: dict[int, SSAValue], builder: IndexBuilder
    ) -> None:
        """Inserts the bufferized op, and maps or replaces the results of the old one."""
        new.location = op.location
        builder.insert(new)
        rest = iter(new.results)
        for i, result in enumerate(op.results):
            if i in homes:
                self.buffers[result] = homes[i]
            elif isinstance(result.type, TensorType):
                self.buffers[result] = next(rest)
            else:
                scalar = next(rest)
                result.replace_all_uses_with(scalar)
                self.renamed[result] = scalar
        if not any(isinstance(r.type, TensorType) for r in op.results):
            Rewriter.erase_op(op, safe_erase=False)

    def _if(self, op: scf.IfOp, builder: IndexBuilder) -> None:
        homes: dict[int, SSAValue] = {}
        for i, result in enumerate(op.results):
            if homed(result.type):
                assert isinstance(result.type, TensorType)
                homes[i] = self._alloc(result.type, list(result.type.get_shape()), builder)
        for region in op.regions:
            if region.blocks:
                block = region.block
                self._block(block, lambda block=block: self._leave(block, homes))
        types = [buffer_type(r.type) for i, r in enumerate(op.results) if i not in homes]
        new = scf.IfOp(op.cond, types, *[op.detach_region(r) for r in list(op.regions)])
        self._finish(op, new, homes, builder)

    def _while(self, op: scf.WhileOp, builder: IndexBuilder) -> None:
        before, after = op.before_region.block, op.after_region.block
        homes, operands = self._inits(op.arguments, [a.type for a in before.args], builder)
        passed: dict[int, SSAValue] = {}
        self._enter(before, homes, 0, lambda: self._pass_on(before, homes, passed, builder))
        self._enter(after, passed, 0, lambda: self._leave(after, homes))
        types = [buffer_type(r.type) for i, r in enumerate(op.results) if i not in passed]
        new = scf.WhileOp(operands, types, *[op.detach_region(r) for r in list(op.regions)])
        self._finish(op, new, passed, builder)

    def _passed(
        self, values: Sequence[SSAValue], homes: dict[int, SSAValue], at: IndexBuilder,
        builder: IndexBuilder,
    ) -> dict[int, SSAValue]:  # fmt: skip
        """
        Returns the buffers of tensors of static shape that a loop passes on, by position.

        A home is passed on unchanged. A tensor that is passed on twice gets two buffers, because
        the loop body may update one of them.
        """
        passed: dict[int, SSAValue] = {}
        for i, value in enumerate(values):
            buffer = self.buffers.get(value)
            if buffer is None or not isinstance(value.type, TensorType) or not homed(value.type):
                continue
            owned = {root(h) for h in homes.values()} - {root(b) for b in passed.values()}
            if root(buffer) not in owned:
                home = self._alloc(value.type, list(value.type.get_shape()), builder)
                at.insert(memref.CopyOp(buffer, home))
                buffer = home
            passed[i] = buffer
        return passed

    def _pass_on(
        self, before: Block, homes: dict[int, SSAValue], passed: dict[int, SSAValue],
        builder: IndexBuilder,
    ) -> None:  # fmt: skip
        """scf.condition of tensors  =>  of buffers; static ones are stored and added to `passed`"""
        condition = before.last_op
        assert isinstance(condition, scf.ConditionOp)
        at = IndexBuilder(InsertPoint.before(condition))
        operands = list(condition.operands[1:])
        passed |= self._passed(operands, homes, at, builder)
        # Block arguments are passed on without a copy: they stay valid until the next iteration.
        moving = [i for i, v in enumerate(operands) if i not in passed and v in self.buffers]
        moving = [i for i in moving if operands[i] not in before.args]
        fresh = self._fresh([operands[i] for i in moving], at)
        for i, buffer in zip(moving, fresh, strict=True):
            operands[i] = buffer
        condition.operands = [
            condition.operands[0],
            *(v for i, v in enumerate(operands) if i not in passed),
        ]
