"""
The state of `irees-bufferize-dispatch` for one kernel: which buffer holds each tensor value.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from xdsl.dialects import arith, func, memref, tensor
from xdsl.dialects.builtin import (
    FunctionType,
    MemRefType,
    TensorType,
)
from xdsl.dialects.linalg import ops as linalg
from xdsl.ir import Attribute, Operation, OpResult, SSAValue, Use
from xdsl.ir.affine import AffineMap
from xdsl.rewriter import InsertPoint, Rewriter

from irees.analysis.paddings import is_framed
from irees.dialects.iree_tensor_ext import (
    DispatchTensorLoadOp,
    DispatchTensorStoreOp,
    DispatchTensorType,
)
from irees.dialects.sizes import kept_dims
from irees.dialects.storage import is_dim, is_extract, slice_of, updated
from irees.errors import UnsupportedError
from irees.interfaces import loops_model_of, reads_output
from irees.transforms.codegen.common.bufferize_dispatch.frames import fill_around, inside
from irees.transforms.utils.accesses import load_inside, store_inside
from irees.transforms.utils.constants import splat_scalar
from irees.transforms.utils.copies import same_op
from irees.transforms.utils.shapes import IndexBuilder, dynamic_dims, mixed
from irees.transforms.utils.structured import copy_region, generic, is_parallel, maps
from irees.transforms.utils.views import subview


def buffer_type(tensor_type: Attribute) -> MemRefType:
    """Returns the row-major memref type of a tensor type."""
    assert isinstance(tensor_type, TensorType)
    return MemRefType(tensor_type.get_element_type(), tensor_type.get_shape())


def copy_op(source: SSAValue, target: SSAValue) -> linalg.GenericOp:
    """Returns an elementwise copy between buffers of the same shape."""
    assert isinstance(source.type, MemRefType)
    rank = source.type.get_num_dims()
    element = source.type.get_element_type()
    identity = AffineMap.identity(rank)
    return generic(
        [source],
        [target],
        [identity, identity],
        ["parallel"] * rank,
        copy_region([element, element], 0, element),
    )


def _reads_init(op: Operation, index: int) -> bool:
    """Whether an op in destination-passing style reads an init."""
    if isinstance(op, linalg.GenericOp):
        return bool(op.body.block.args[index].uses)
    return reads_output(op, index - len(op.operands) + len(op.outputs))  # type: ignore


def _is_overwritten_in_place(use: Use, result: SSAValue) -> bool:
    """Whether an op may write its result over an operand: it never reads overwritten elements."""
    op = use.operation
    if (number := updated(op)) is not None:
        return use.index == number
    assert isinstance(result, OpResult)
    written = len(op.operands) - len(op.results) + result.index
    if use.index == written or not isinstance(op, linalg.GenericOp):
        return use.index == written
    return is_parallel(op) and maps(op)[use.index] == maps(op)[written]


def _view(
    op: tensor.ExtractSliceOp | tensor.InsertSliceOp,
    buffer: SSAValue,
    slice: SSAValue,
    builder: IndexBuilder,
) -> SSAValue:
    """Returns the view of a buffer that holds the slice of an op."""
    sizes = mixed(op.static_sizes.get_values(), op.sizes)
    assert isinstance(slice.type, TensorType)
    view = subview(
        buffer,
        mixed(op.static_offsets.get_values(), op.offsets),
        sizes,
        mixed(op.static_strides.get_values(), op.strides),
        kept_dims(sizes, slice.type.get_shape()),
    )
    return builder.insert(view).results[0]


@dataclass
class Bufferization:
    """The state of one function: which buffer holds each tensor value."""

    function: func.FuncOp
    buffers: dict[SSAValue, SSAValue] = field(default_factory=dict)
    owned: set[SSAValue] = field(default_factory=set)
    """Buffers that this kernel may write: its own allocations and its outputs."""
    whole: set[Operation] = field(default_factory=set)
    """Loads and stores of whole dispatch tensors."""
    framed: dict[Operation, SSAValue | None] = field(default_factory=dict)
    """Insertions whose source is computed in place, with the view that holds the source."""

    def run(self) -> None:
        """Bufferizes the function in place."""
        block = self.function.body.block
        self.whole = {
            op
            for op in block.ops
            if isinstance(op, DispatchTensorLoadOp | DispatchTensorStoreOp) and op.full()
        }
        self.framed = {op: None for op in block.ops if is_framed(op)}
        for argument in block.args:
            if isinstance(argument.type, DispatchTensorType):
                writable = argument.type.access.data != "readonly"
                Rewriter.replace_value_with_new_type(
                    argument, buffer_type(argument.type.bound_type)
                )
                argument = block.args[argument.index]
                if writable:
                    self.owned.add(argument)
        self.function.function_type = FunctionType.from_lists([a.type for a in block.args], [])
        old = list(block.ops)
        for op in old:
            self.convert(op)
        for op in reversed(old):
            if any(isinstance(r.type, TensorType) for r in op.results) or isinstance(
                op, DispatchTensorStoreOp
            ):
                Rewriter.erase_op(op, safe_erase=False)

    def convert(self, op: Operation) -> None:
        """Emits the buffer form of one op before it."""
        builder = IndexBuilder(InsertPoint.before(op))
        match op:
            case DispatchTensorLoadOp():
                self.buffers[op.result] = self._slice(op, op.source, builder)
            case DispatchTensorStoreOp():
                self._store(op, builder)
            case tensor.EmptyOp():
                pass
            case arith.ConstantOp() if isinstance(op.result.type, TensorType):
                self._splat(op, builder)
            case tensor.ExtractSliceOp():
                source = self._read(op.source, builder)
                self.buffers[op.result] = _view(op, source, op.result, builder)
            case tensor.InsertSliceOp() if op in self.framed:
                self._insert_in_frame(op, builder)
            case tensor.InsertSliceOp():
                target = self._destination(op.result, op.dest, builder, reads_init=True)
                source = self._read(op.source, builder)
                self._copy(source, _view(op, target, op.source, builder), builder)
                self.buffers[op.result] = target
            case tensor.InsertOp():
                target = self._destination(op.result, op.dest, builder, reads_init=True)
                store_inside(op.scalar, target, op.indices, builder)
                self.buffers[op.result] = target
            case tensor.ExtractOp():
                load = load_inside(self.buffers[op.tensor], op.indices, builder, builder)
                op.result.replace_all_uses_with(load)
            case _ if isinstance(op, linalg.GenericOp) or loops_model_of(op) is not None:
                self._destination_style(op, builder)
            case _:
                if any(isinstance(o.type, TensorType) for o in op.operands):
                    raise UnsupportedError("this op on tensors is not supported in a kernel", op=op)

    def _slice(
        self,
        op: DispatchTensorLoadOp | DispatchTensorStoreOp,
        bound: SSAValue,
        builder: IndexBuilder,
    ) -> SSAValue:
        if op in self.whole:
            return bound
        view = subview(
            bound,
            mixed(op.static_offsets.get_values(), op.offsets),
            mixed(op.static_sizes.get_values(), op.sizes),
            mixed(op.static_strides.get_values(), op.strides),
        )
        return builder.insert(view).results[0]

    def _store(self, op: DispatchTensorStoreOp, builder: IndexBuilder) -> None:
        source = self.buffers[op.value]
        if op not in self.whole or source is not op.target:
            self._copy(source, self._slice(op, op.target, builder), builder)

    def _insert_in_frame(self, op: tensor.InsertSliceOp, builder: IndexBuilder) -> None:
        view = self._frame(op, builder)
        self._copy(self._read(op.source, builder), view, builder)
        # Fill last: a fill between a contraction and its consumer would block their fusion.
        fill_around(op, self.buffers[op.result], builder)

    def _splat(self, op: arith.ConstantOp, builder: IndexBuilder) -> None:
        target = self._allocate(op.result, builder)
        scalar = splat_scalar(op)
        assert scalar is not None
        value = builder.insert(scalar).results[0]
        assert isinstance(target.type, MemRefType)
        rank = target.type.get_num_dims()
        body = copy_region([value.type, value.type], 0, value.type)
        builder.insert(
            generic(
                [value],
                [target],
                [AffineMap(rank, 0, ()), AffineMap.identity(rank)],
                ["parallel"] * rank,
                body,
            )
        )
        self.buffers[op.result] = target

    def _copy(self, source: SSAValue, target: SSAValue, builder: IndexBuilder) -> None:
        if source is not target:
            builder.insert(copy_op(source, target))

    def _allocate(self, value: SSAValue, builder: IndexBuilder) -> SSAValue:
        """Returns the buffer for a value: its final output if that is known, else a new one."""
        home = self._home(value, builder)
        if home is not None:
            return home
        sizes = dynamic_dims(value, builder)
        alloc = memref.AllocOp(sizes, [], buffer_type(value.type))
        buffer = builder.insert(alloc).results[0]
        self.owned.add(buffer)
        return buffer

    def _is_frame(self, fill: Operation) -> bool:
        uses = [use for result in fill.results for use in result.uses]
        return bool(uses) and all(u.operation in self.framed and u.index == 1 for u in uses)

    def _frame(self, op: tensor.InsertSliceOp, builder: IndexBuilder) -> SSAValue:
        """Returns the view in which the source of a framed insertion is computed."""
        view = self.framed[op]
        if view is None:
            target = self._allocate(op.result, builder)
            view = self.framed[op] = inside(op, target, builder)
            self.buffers[op.result] = target
        return view

    def _home(self, value: SSAValue, builder: IndexBuilder) -> SSAValue | None:
        """Returns the output in which a value can be computed in place, or None."""
        user = value.get_user_of_unique_use()
        if user in self.framed and user.operands[0] is value:
            assert isinstance(user, tensor.InsertSliceOp)
            return self._frame(user, builder)
        stores = [u.operation for u in value.uses if isinstance(u.operation, DispatchTensorStoreOp)]
        if len(stores) == 1 and stores[0] in self.whole:
            return stores[0].target
        writers = [u for u in value.uses if self._overwrites(u.operation, u.index)]
        if stores or len(writers) != 1 or len(list(value.uses)) != 1:
            return None
        op = writers[0].operation
        if updated(op) is not None:
            return self._home(op.results[0], builder)
        outputs = list(op.outputs)
        return self._home(op.results[outputs.index(value)], builder)

    @staticmethod
    def _overwrites(op: Operation, index: int) -> bool:
        if (number := updated(op)) is not None:
            return index == number
        outputs = getattr(op, "outputs", None)
        if outputs is None:
            return False
        return index >= len(op.operands) - len(outputs)

    def _destination(
        self, result: SSAValue, init: SSAValue, builder: IndexBuilder, *, reads_init: bool
    ) -> SSAValue:
        """Returns the buffer for `result`, initialized with `init` if that is read."""
        held = self.buffers.get(init)
        if held is None or not reads_init:
            return self._allocate(result, builder)
        op = result.owner
        last_use = all(
            (u.operation is op and _is_overwritten_in_place(u, result))
            or (self._before(u.operation, op) and slice_of(u.operation) is None)
            for u in init.uses
        )
        if held in self.owned and last_use:
            return held
        target = self._allocate(result, builder)
        self._copy(held, target, builder)
        return target

    @staticmethod
    def _before(first: Operation, second: Operation) -> bool:
        while first.parent_block() is not second.parent_block():
            parent = first.parent_op()
            if parent is None:
                return False
            first = parent
        return first.is_before_in_block(second)

    def _destination_style(self, op: Operation, builder: IndexBuilder) -> None:
        if self._is_frame(op):  # `fill_around` computes it.
            return
        inits = list(op.outputs)
        count = len(op.operands) - len(inits)
        taken: list[SSAValue] = []
        for position, init in enumerate(inits):
            reads = _reads_init(op, count + position)
            if inits.count(init) > 1 and init in self.buffers and reads:
                target = self._allocate(op.results[position], builder)
                self._copy(self.buffers[init], target, builder)
            else:
                target = self._destination(op.results[position], init, builder, reads_init=reads)
            if target in taken:
                fresh = memref.AllocOp(
                    list(getattr(target.owner, "dynamic_sizes", [])), [], target.type
                )
                target = builder.insert(fresh).results[0]
            taken.append(target)
        operands = [self._read(o, builder) for o in list(op.operands)[:count]] + taken
        copy = builder.insert(same_op(op, operands, ()))
        self._convert_body(copy)
        for result, buffer in zip(op.results, taken, strict=True):
            self.buffers[result] = buffer

    def _read(self, value: SSAValue, builder: IndexBuilder) -> SSAValue:
        """Returns the buffer of an input; a `tensor.empty` (pooling window) is only a shape."""
        if isinstance(value.type, TensorType) and value not in self.buffers:
            self.buffers[value] = self._allocate(value, builder)
        return self.buffers.get(value, value)

    def _convert_body(self, op: Operation) -> None:
        """tensor.extract %t[...] in a body  =>  memref.load of its buffer"""
        outside = IndexBuilder(InsertPoint.before(op))
        for inner in list(op.walk()):
            if is_extract(inner):
                here = IndexBuilder(InsertPoint.before(inner))
                source = self._read(inner.tensor, outside)
                load = load_inside(source, inner.indices, here, outside, extract=inner)
                Rewriter.replace_op(inner, [], [load])
            elif is_dim(inner) and inner.source in self.buffers:
                dim = memref.DimOp(self.buffers[inner.source], inner.index)
                Rewriter.replace_op(inner, dim)
