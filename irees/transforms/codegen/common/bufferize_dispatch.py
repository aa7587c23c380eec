"""
Turns the tensors of a kernel into buffers.

A kernel is a straight line of destination-style ops, so this needs none of MLIR's
one-shot analysis: each result goes where it will be stored if that place is known,
else over its init if nobody reads the init afterwards and the kernel owns it, else into
a new buffer. What is only read is never written.

    %0 = iree_tensor_ext.dispatch.tensor.load %a ... -> tensor<4xf32>
    %1 = tensor.empty() : tensor<4xf32>
    %2 = linalg.generic ins(%0) outs(%1) { exp } -> tensor<4xf32>
    iree_tensor_ext.dispatch.tensor.store %2, %out ...
  =>
    linalg.generic ins(%a : memref<4xf32>) outs(%out : memref<4xf32>) { exp }

Slices become `memref.subview`, an insertion becomes a copy into one. Tiling comes after
this pass, on buffers, where fusing two ops into one loop is a question about the tiles
they touch and not about values.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from xdsl.context import Context
from xdsl.dialects import arith, func, memref, tensor
from xdsl.dialects.builtin import (
    DYNAMIC_INDEX,
    DenseArrayBase,
    FunctionType,
    MemRefType,
    ModuleOp,
    NoneAttr,
    StridedLayoutAttr,
    TensorType,
    i64,
)
from xdsl.dialects.linalg import ops as linalg
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.ir.affine import AffineMap
from xdsl.passes import ModulePass
from xdsl.rewriter import InsertPoint, Rewriter

from irees.dialects.flow import ExecutableOp
from irees.dialects.iree_tensor_ext import (
    DispatchTensorLoadOp,
    DispatchTensorStoreOp,
    DispatchTensorType,
)
from irees.errors import UnsupportedError
from irees.transforms.utils.constants import splat_scalar
from irees.transforms.utils.shapes import (
    IndexBuilder,
    Size,
    dynamic_dims,
    kept_dims,
    mixed,
    split,
)
from irees.transforms.utils.structured import copy_region, generic


def buffer_type(tensor_type: Attribute) -> MemRefType:
    """The row-major memref type of a tensor type."""
    assert isinstance(tensor_type, TensorType)
    return MemRefType(tensor_type.get_element_type(), tensor_type.get_shape())


def strides_of(buffer: MemRefType) -> list[int]:
    """Static strides of a memref type, DYNAMIC_INDEX where unknown."""
    if isinstance(buffer.layout, StridedLayoutAttr):
        return [
            DYNAMIC_INDEX if isinstance(s, NoneAttr) else s.data for s in buffer.layout.strides
        ]
    strides: list[int] = []
    step = 1
    for size in reversed(buffer.get_shape()):
        strides.append(step)
        step = DYNAMIC_INDEX if size == DYNAMIC_INDEX or step == DYNAMIC_INDEX else step * size
    return strides[::-1]


def subview(
    source: SSAValue,
    offsets: Sequence[Size],
    sizes: Sequence[Size],
    strides: Sequence[Size],
    kept: Sequence[int] | None = None,
) -> memref.SubviewOp:
    """A strided view of part of a buffer; `kept` lists the dims that survive rank reduction."""
    source_type = source.type
    assert isinstance(source_type, MemRefType)
    kept = range(len(sizes)) if kept is None else kept
    static_offsets, dynamic_offsets = split(offsets)
    static_sizes, dynamic_sizes = split(sizes)
    static_strides, dynamic_strides = split(strides)
    base = strides_of(source_type)

    def times(a: int, b: int) -> int:
        return DYNAMIC_INDEX if DYNAMIC_INDEX in (a, b) else a * b

    result_strides = [times(base[d], static_strides[d]) for d in kept]
    start = 0 if not isinstance(source_type.layout, StridedLayoutAttr) else (
        DYNAMIC_INDEX
        if source_type.layout.offset is None or isinstance(source_type.layout.offset, NoneAttr)
        else source_type.layout.offset.data
    )
    for offset, stride in zip(static_offsets, base, strict=True):
        if offset == 0:
            continue
        step = times(offset, stride)
        start = DYNAMIC_INDEX if DYNAMIC_INDEX in (start, step) else start + step
    result = MemRefType(
        source_type.get_element_type(),
        [static_sizes[d] for d in kept],
        StridedLayoutAttr(
            [None if s == DYNAMIC_INDEX else s for s in result_strides],
            None if start == DYNAMIC_INDEX else start,
        ),
        source_type.memory_space,
    )
    return memref.SubviewOp(
        source,
        dynamic_offsets,
        dynamic_sizes,
        dynamic_strides,
        DenseArrayBase.from_list(i64, static_offsets),
        DenseArrayBase.from_list(i64, static_sizes),
        DenseArrayBase.from_list(i64, static_strides),
        result,
    )


def copy_op(source: SSAValue, target: SSAValue) -> linalg.GenericOp:
    """An elementwise copy between buffers of one shape."""
    assert isinstance(source.type, MemRefType)
    rank = source.type.get_num_dims()
    element = source.type.get_element_type()
    identity = AffineMap.identity(rank)
    return generic(
        [source], [target], [identity, identity], ["parallel"] * rank,
        copy_region([element, element], 0, element),
    )


@dataclass
class Bufferization:
    """The state of one function: which buffer holds each tensor value."""

    function: func.FuncOp
    buffers: dict[SSAValue, SSAValue] = field(default_factory=dict)
    owned: set[SSAValue] = field(default_factory=set)
    """Buffers that this kernel may write: its own allocations and its outputs."""
    whole: set[Operation] = field(default_factory=set)
    """Loads and stores of all of a dispatch tensor."""

    def run(self) -> None:
        """Bufferizes the function in place."""
        block = self.function.body.block
        self.whole = {
            op
            for op in block.ops
            if isinstance(op, DispatchTensorLoadOp | DispatchTensorStoreOp) and op.full()
        }
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
                source = self.buffers[op.value]
                if op in self.whole and source is op.target:
                    return
                target = self._slice(op, op.target, builder)
                self._copy(source, target, builder)
            case tensor.EmptyOp():
                pass
            case arith.ConstantOp() if isinstance(op.result.type, TensorType):
                self._splat(op, builder)
            case tensor.ExtractSliceOp():
                sizes = mixed(op.static_sizes.get_values(), op.sizes)
                assert isinstance(op.result.type, TensorType)
                view = subview(
                    self._read(op.source, builder),
                    mixed(op.static_offsets.get_values(), op.offsets),
                    sizes,
                    mixed(op.static_strides.get_values(), op.strides),
                    kept_dims(sizes, op.result.type.get_shape()),
                )
                self.buffers[op.result] = builder.insert(view).results[0]
            case tensor.InsertSliceOp():
                target = self._destination(op.result, op.dest, builder, reads_init=True)
                sizes = mixed(op.static_sizes.get_values(), op.sizes)
                assert isinstance(op.source.type, TensorType)
                view = subview(
                    target,
                    mixed(op.static_offsets.get_values(), op.offsets),
                    sizes,
                    mixed(op.static_strides.get_values(), op.strides),
                    kept_dims(sizes, op.source.type.get_shape()),
                )
                self._copy(self._read(op.source, builder), builder.insert(view).results[0], builder)
                self.buffers[op.result] = target
            case tensor.InsertOp():
                target = self._destination(op.result, op.dest, builder, reads_init=True)
                builder.insert(memref.StoreOp.get(op.scalar, target, op.indices))
                self.buffers[op.result] = target
            case tensor.ExtractOp():
                load = memref.LoadOp.get(self.buffers[op.tensor], op.indices)
                builder.insert(load)
                op.result.replace_all_uses_with(load.res)
            case linalg.GenericOp():
                self._destination_style(op, builder)
            case _ if op.name.startswith("iree_linalg_ext."):
                self._destination_style(op, builder)
            case _ if any(isinstance(o.type, TensorType) for o in op.operands):
                raise UnsupportedError(
                    "a kernel cannot hold this op on tensors", op=op.name, location=str(op.location)
                )
            case _:
                pass

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

    def _splat(self, op: arith.ConstantOp, builder: IndexBuilder) -> None:
        target = self._allocate(op.result, builder)
        scalar = splat_scalar(op)
        assert scalar is not None
        value = builder.insert(scalar).results[0]
        assert isinstance(target.type, MemRefType)
        rank = target.type.get_num_dims()
        body = copy_region([value.type, value.type], 0, value.type)
        builder.insert(
            generic([value], [target], [AffineMap(rank, 0, ()), AffineMap.identity(rank)],
                    ["parallel"] * rank, body)
        )
        self.buffers[op.result] = target

    def _copy(self, source: SSAValue, target: SSAValue, builder: IndexBuilder) -> None:
        if source is not target:
            builder.insert(copy_op(source, target))

    def _allocate(self, value: SSAValue, builder: IndexBuilder) -> SSAValue:
        """A new buffer for a value: where it will be stored if that is known."""
        home = self._home(value)
        if home is not None:
            return home
        sizes = dynamic_dims(value, builder)
        alloc = memref.AllocOp(sizes, [], buffer_type(value.type))
        buffer = builder.insert(alloc).results[0]
        self.owned.add(buffer)
        return buffer

    def _home(self, value: SSAValue) -> SSAValue | None:
        """The output that a value ends up in, when it can be computed right there."""
        stores = [u.operation for u in value.uses if isinstance(u.operation, DispatchTensorStoreOp)]
        if len(stores) == 1 and stores[0] in self.whole:
            return stores[0].target
        writers = [u for u in value.uses if self._overwrites(u.operation, u.index)]
        if stores or len(writers) != 1 or len(list(value.uses)) != 1:
            return None
        op = writers[0].operation
        if isinstance(op, tensor.InsertSliceOp | tensor.InsertOp):
            return self._home(op.result)
        outputs = list(op.outputs)  # pyright: ignore
        return self._home(op.results[outputs.index(value)])

    @staticmethod
    def _overwrites(op: Operation, index: int) -> bool:
        if isinstance(op, tensor.InsertSliceOp | tensor.InsertOp):
            return index == 1
        outputs = getattr(op, "outputs", None)
        if outputs is None:
            return False
        return index >= len(op.operands) - len(outputs)

    def _destination(
        self, result: SSAValue, init: SSAValue, builder: IndexBuilder, *, reads_init: bool
    ) -> SSAValue:
        """The buffer that will hold `result`, filled with `init` where that is read."""
        held = self.buffers.get(init)
        if held is None or not reads_init:
            return self._allocate(result, builder)
        op = result.owner
        last_use = all(
            u.operation is op
            or (
                self._before(u.operation, op)
                and not isinstance(u.operation, tensor.ExtractSliceOp)
            )
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
        inits = list(op.outputs)  # pyright: ignore
        count = len(op.operands) - len(inits)
        taken: list[SSAValue] = []
        for position, init in enumerate(inits):
            reads = not isinstance(op, linalg.GenericOp) or bool(
                op.body.block.args[count + position].uses
            )
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
        copy = type(op).create(
            operands=operands,
            result_types=[],
            properties=dict(op.properties),
            attributes=dict(op.attributes),
            regions=[r.clone() for r in op.regions],
        )
        copy.location = op.location
        builder.insert(copy)
        self._convert_body(copy)
        for result, buffer in zip(op.results, taken, strict=True):
            self.buffers[result] = buffer

    def _read(self, value: SSAValue, builder: IndexBuilder) -> SSAValue:
        """The buffer of an input. `tensor.empty` as an input (a pooling window) has only a shape."""
        if isinstance(value.type, TensorType) and value not in self.buffers:
            self.buffers[value] = self._allocate(value, builder)
        return self.buffers.get(value, value)

    def _convert_body(self, op: Operation) -> None:
        """tensor.extract %t[...] in a body  =>  memref.load of its buffer"""
        for inner in list(op.walk()):
            if isinstance(inner, tensor.ExtractOp):
                load = memref.LoadOp.get(self.buffers[inner.tensor], inner.indices)
                Rewriter.replace_op(inner, load)
            elif isinstance(inner, tensor.DimOp):
                dim = memref.DimOp(self.buffers[inner.source], inner.index)
                Rewriter.replace_op(inner, dim)


@dataclass(frozen=True)
class BufferizeDispatchPass(ModulePass):
    """The functions of executables work on memrefs."""

    name = "irees-bufferize-dispatch"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for executable in [e for e in op.walk() if isinstance(e, ExecutableOp)]:
            for function in [f for f in executable.walk() if isinstance(f, func.FuncOp)]:
                Bufferization(function).run()
