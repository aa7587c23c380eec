"""
Loops and branches that carry tensors, on buffers.

A tensor that a loop carries lives in one buffer: it is copied in before the loop and after
each iteration, unless the iteration worked on that buffer already. Part of
`irees-convert-to-stream`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from xdsl.dialects import memref, scf
from xdsl.dialects.builtin import DYNAMIC_INDEX, MemRefType, TensorType
from xdsl.ir import Attribute, Block, Operation, OpResult, SSAValue
from xdsl.rewriter import InsertPoint, Rewriter

from irees.errors import UnsupportedError
from irees.transforms.utils.shapes import IndexBuilder, Size


def buffer_type(kind: Attribute) -> Attribute:
    """tensor<4xf32>  =>  memref<4xf32>; other types are left alone"""
    if not isinstance(kind, TensorType):
        return kind
    return MemRefType(kind.get_element_type(), kind.get_shape())


def root(buffer: SSAValue) -> SSAValue:
    """The buffer that a chain of reshapes views."""
    while isinstance(buffer, OpResult) and isinstance(buffer.op, memref.ReinterpretCastOp):
        buffer = buffer.op.source
    return buffer


@dataclass
class ControlFlow:
    """The part of a host conversion that knows scf; `_block` converts the ops of a block."""

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
        """A fresh buffer with the contents of a tensor."""
        source = self.buffers[value]
        copy = self._like(source, builder)
        builder.insert(memref.CopyOp(source, copy))
        return copy

    def _like(self, buffer: SSAValue, builder: IndexBuilder) -> SSAValue:
        """A fresh buffer of the same sizes."""
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
        """homes = values, all at once: what another home still holds is saved first."""
        sources = [self.buffers[v] for v in values]
        roots = {root(h) for h in homes}
        moved = [
            self._own_copy(v, builder) if root(s) in roots and s is not h else s
            for v, s, h in zip(values, sources, homes, strict=True)
        ]
        for source, home in zip(moved, homes, strict=True):
            if source is not home:
                builder.insert(memref.CopyOp(source, home))

    def _enter(
        self, block: Block, homes: dict[int, SSAValue], first: int, leave: Callable[[], None]
    ) -> None:
        """Converts a block whose tensor arguments are in these buffers, and drops the arguments."""
        for position in sorted(homes, reverse=True):
            argument = block.args[first + position]
            self.buffers[argument] = homes[position]
        self._block(block, leave)
        for position in sorted(homes, reverse=True):
            block.erase_arg(block.args[first + position], safe_erase=False)

    def _for(self, op: scf.ForOp, builder: IndexBuilder) -> None:
        homes = {
            i: self._own_copy(v, builder)
            for i, (v, r) in enumerate(zip(op.iter_args, op.results, strict=True))
            if isinstance(r.type, TensorType)  # an operand may be on buffers by now
        }
        block = op.body.block
        self._enter(block, homes, 1, lambda: self._leave(block, homes))
        scalars = [v for i, v in enumerate(op.iter_args) if i not in homes]
        new = scf.ForOp(op.lb, op.ub, op.step, scalars, op.detach_region(op.body))
        self._finish(op, new, homes, builder)

    def _leave(self, block: Block, homes: dict[int, SSAValue]) -> None:
        """scf.yield of tensors  =>  copies into their buffers"""
        terminator = block.last_op
        assert terminator is not None
        at = IndexBuilder(InsertPoint.before(terminator))
        self._update([terminator.operands[i] for i in homes], list(homes.values()), at)
        terminator.operands = [v for i, v in enumerate(terminator.operands) if i not in homes]

    def _finish(
        self, op: Operation, new: Operation, homes: dict[int, SSAValue], builder: IndexBuilder
    ) -> None:
        """Puts the op without tensors in the place of the old one."""
        new.location = op.location
        builder.insert(new)
        scalars = iter(new.results)
        for i, result in enumerate(op.results):
            if i in homes:
                self.buffers[result] = homes[i]
            else:
                scalar = next(scalars)
                result.replace_all_uses_with(scalar)
                self.renamed[result] = scalar
        if not homes:
            Rewriter.erase_op(op, safe_erase=False)

    def _if(self, op: scf.IfOp, builder: IndexBuilder) -> None:
        homes: dict[int, SSAValue] = {}
        for i, result in enumerate(op.results):
            if isinstance(result.type, TensorType):
                if DYNAMIC_INDEX in result.type.get_shape():
                    raise UnsupportedError(
                        "a tensor of dynamic shape that leaves a branch",
                        op=op,
                        hint="compute its shape before the branch and cast it to a static one",
                    )
                homes[i] = self._alloc(result.type, list(result.type.get_shape()), builder)
        for region in op.regions:
            if region.blocks:
                block = region.block
                self._block(block, lambda block=block: self._leave(block, homes))
        types = [r.type for i, r in enumerate(op.results) if i not in homes]
        new = scf.IfOp(op.cond, types, *[op.detach_region(r) for r in list(op.regions)])
        self._finish(op, new, homes, builder)

    def _while(self, op: scf.WhileOp, builder: IndexBuilder) -> None:
        before, after = op.before_region.block, op.after_region.block
        homes = {
            i: self._own_copy(v, builder)
            for i, (v, a) in enumerate(zip(op.arguments, before.args, strict=True))
            if isinstance(a.type, TensorType)
        }
        passed: dict[int, SSAValue] = {}
        self._enter(before, homes, 0, lambda: self._pass_on(before, homes, passed, builder))
        self._enter(after, passed, 0, lambda: self._leave(after, homes))
        scalars = [v for i, v in enumerate(op.arguments) if i not in homes]
        types = [r.type for i, r in enumerate(op.results) if i not in passed]
        new = scf.WhileOp(scalars, types, *[op.detach_region(r) for r in list(op.regions)])
        self._finish(op, new, passed, builder)

    def _pass_on(
        self, before: Block, homes: dict[int, SSAValue], passed: dict[int, SSAValue],
        builder: IndexBuilder,
    ) -> None:  # fmt: skip
        """scf.condition of tensors  =>  their buffers, remembered in `passed`"""
        condition = before.last_op
        assert isinstance(condition, scf.ConditionOp)
        at = IndexBuilder(InsertPoint.before(condition))
        for i, value in enumerate(condition.operands[1:]):
            buffer = self.buffers.get(value)
            if buffer is None:
                continue
            if root(buffer) not in {root(h) for h in homes.values()}:
                home = self._alloc(value.type, self._outer_sizes(value), builder)
                at.insert(memref.CopyOp(buffer, home))
                buffer = home
            passed[i] = buffer
        condition.operands = [
            condition.operands[0],
            *(v for i, v in enumerate(condition.operands[1:]) if i not in passed),
        ]

    def _outer_sizes(self, value: SSAValue) -> list[Size]:
        assert isinstance(value.type, TensorType | MemRefType)
        shape = value.type.get_shape()
        if DYNAMIC_INDEX in shape:
            raise UnsupportedError(
                "a tensor of dynamic shape that a while loop makes", op="scf.while"
            )
        return list(shape)
