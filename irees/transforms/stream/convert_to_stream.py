"""
Puts the host program on buffers.

Every tensor value becomes a row-major memref: a dispatch result is a new buffer, a
reshape is another view of the same bytes, a constant is a global. A result that a
caller receives is always a buffer of its own: what is an argument, a constant or
another result underneath is copied first.

    %r = flow.dispatch @k::@k(%x) : (tensor<4xf32>) -> tensor<4xf32>
    return %r
  =>
    %r = memref.alloc() : memref<4xf32>
    stream.cmd.dispatch @k::@k(%x, %r) : memref<4xf32>, memref<4xf32>
    return %r

Where the buffers lie is decided by `irees-plan-arena`. IREE's `ConvertToStream`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from xdsl.context import Context
from xdsl.dialects import arith, func, memref, scf, tensor
from xdsl.dialects.builtin import (
    DYNAMIC_INDEX,
    FunctionType,
    MemRefType,
    ModuleOp,
    StringAttr,
    TensorType,
    UnitAttr,
)
from xdsl.ir import Attribute, Block, Operation, OpResult, SSAValue
from xdsl.passes import ModulePass
from xdsl.rewriter import InsertPoint, Rewriter

from irees.dialects.flow import DispatchOp
from irees.dialects.stream import CmdDispatchOp
from irees.dialects.upstream import memref as _extended_memref  # noqa: F401
from irees.errors import UnsupportedError
from irees.transforms.utils.shapes import IndexBuilder, Size, dims, split

RESHAPES = (tensor.ExpandShapeOp, tensor.CollapseShapeOp, tensor.CastOp)


def buffer_type(kind: Attribute) -> Attribute:
    """tensor<4xf32>  =>  memref<4xf32>; other types are left alone"""
    if not isinstance(kind, TensorType):
        return kind
    return MemRefType(kind.get_element_type(), kind.get_shape())


@dataclass
class HostConversion:
    """The state of one function: which buffer holds each tensor value."""

    module: ModuleOp
    function: func.FuncOp
    globals: dict[Attribute, str] = field(default_factory=dict)
    buffers: dict[SSAValue, SSAValue] = field(default_factory=dict)
    renamed: dict[SSAValue, SSAValue] = field(default_factory=dict)
    """Index values of the tensor program => their replacements."""

    def run(self) -> None:
        """Converts the function in place."""
        block = self.function.body.block
        results = [buffer_type(t) for t in self.function.function_type.outputs]
        self._shapes_first()
        self._arguments(block)
        self._block(block)
        self.function.function_type = FunctionType.from_lists([a.type for a in block.args], results)

    def _shapes_first(self) -> None:
        """Makes every dynamic dim an SSA value while tensors still say where it comes from."""
        self.sizes: dict[SSAValue, list[Size]] = {}
        for op in list(self.function.walk()):
            for value in op.results:
                if isinstance(value.type, TensorType) and isinstance(
                    op, (*RESHAPES, DispatchOp, tensor.FromElementsOp, tensor.EmptyOp, tensor.SplatOp)
                ):
                    self.sizes[value] = dims(value, IndexBuilder(InsertPoint.before(op)))

    def _arguments(self, block: Block) -> None:
        for argument in list(block.args):
            if isinstance(argument.type, TensorType):
                index = argument.index
                Rewriter.replace_value_with_new_type(argument, buffer_type(argument.type))
                self.buffers[block.args[index]] = block.args[index]

    def _block(self, block: Block) -> None:
        old = list(block.ops)
        for op in old:
            self._convert(op)
        for op in reversed(old):
            if isinstance(op, func.ReturnOp | scf.YieldOp | scf.ConditionOp):
                continue
            if any(isinstance(r.type, TensorType) for r in op.results) or isinstance(op, tensor.ExtractOp | tensor.DimOp):
                Rewriter.erase_op(op, safe_erase=False)

    def _sizes(self, value: SSAValue) -> list[Size]:
        return [s if isinstance(s, int) else self.renamed.get(s, s) for s in self.sizes[value]]

    def _alloc(self, kind: Attribute, sizes: Sequence[Size], builder: IndexBuilder) -> SSAValue:
        result = buffer_type(kind)
        assert isinstance(result, MemRefType)
        shape = result.get_shape()
        dynamic = [builder.value(s) for s, n in zip(sizes, shape, strict=True) if n == DYNAMIC_INDEX]
        return builder.insert(memref.AllocOp(dynamic, [], result)).results[0]

    def _convert(self, op: Operation) -> None:
        builder = IndexBuilder(InsertPoint.before(op))
        match op:
            case arith.ConstantOp() if isinstance(op.result.type, TensorType):
                self.buffers[op.result] = self._global(op, builder)
            case tensor.ExpandShapeOp() | tensor.CollapseShapeOp() | tensor.CastOp():
                source = op.operands[0]
                self.buffers[op.results[0]] = self._reshape(
                    self.buffers[source], op.results[0].type, self._sizes(op.results[0]), builder
                )
            case DispatchOp():
                self._dispatch(op, builder)
            case tensor.DimOp():
                dim = memref.DimOp(self.buffers[op.source], op.index)
                builder.insert(dim)
                op.result.replace_all_uses_with(dim.result)
                self.renamed[op.result] = dim.result
            case tensor.ExtractOp():
                load = memref.LoadOp.get(self.buffers[op.tensor], op.indices)
                builder.insert(load)
                op.result.replace_all_uses_with(load.res)
                self.renamed[op.result] = load.res
            case tensor.EmptyOp():
                self.buffers[op.tensor] = self._alloc(op.tensor.type, self._sizes(op.tensor), builder)
            case tensor.FromElementsOp():
                self._from_elements(op, builder)
            case func.ReturnOp():
                self._return(op, builder)
            case _ if any(isinstance(v.type, TensorType) for v in (*op.operands, *op.results)):
                raise UnsupportedError(
                    "the host program cannot hold this op on tensors",
                    op=op.name,
                    location=str(op.location),
                )
            case _:
                pass

    def _global(self, op: arith.ConstantOp, builder: IndexBuilder) -> SSAValue:
        name = self.globals.get(op.value)
        kind = buffer_type(op.result.type)
        assert isinstance(kind, MemRefType)
        if name is None:
            name = f"__constant_{len(self.globals)}"
            self.globals[op.value] = name
            glob = memref.GlobalOp.get(
                StringAttr(name), kind, op.value, sym_visibility=StringAttr("private"),
                constant=UnitAttr(),
            )
            first = self.module.body.block.first_op
            assert first is not None
            Rewriter.insert_op(glob, InsertPoint.before(first))
        return builder.insert(memref.GetGlobalOp(name, kind)).results[0]

    def _reshape(
        self, source: SSAValue, kind: Attribute, sizes: Sequence[Size], builder: IndexBuilder
    ) -> SSAValue:
        result = buffer_type(kind)
        assert isinstance(result, MemRefType)
        if source.type == result:
            return source
        strides: list[Size] = []
        step: Size = 1
        for size in reversed(sizes):
            strides.append(step)
            step = builder.mul(step, size)
        shape = result.get_shape()
        static_sizes = [s if s != DYNAMIC_INDEX else builder.value(d) for s, d in zip(shape, sizes, strict=True)]
        return builder.insert(
            memref.ReinterpretCastOp.from_dynamic(source, [0], static_sizes, strides[::-1], result)
        ).results[0]

    def _dispatch(self, op: DispatchOp, builder: IndexBuilder) -> None:
        outputs = [self._alloc(r.type, self._sizes(r), builder) for r in op.res]
        arguments = [self.buffers.get(a, a) for a in op.arguments]
        dispatch = CmdDispatchOp(op.entry_point, [*arguments, *outputs])
        dispatch.location = op.location
        builder.insert(dispatch)
        for result, buffer in zip(op.res, outputs, strict=True):
            self.buffers[result] = buffer

    def _from_elements(self, op: tensor.FromElementsOp, builder: IndexBuilder) -> None:
        assert isinstance(op.result.type, TensorType)
        shape = op.result.type.get_shape()
        buffer = self._alloc(op.result.type, list(shape), builder)
        for number, element in enumerate(op.elements):
            indices: list[SSAValue] = []
            rest = number
            for size in reversed(shape):
                indices.append(builder.value(rest % size))
                rest //= size
            builder.insert(memref.StoreOp.get(element, buffer, indices[::-1]))
        self.buffers[op.result] = buffer

    def _return(self, op: func.ReturnOp, builder: IndexBuilder) -> None:
        returned: list[SSAValue] = []
        roots: set[SSAValue] = set()
        for value in op.operands:
            if not isinstance(value.type, TensorType) and value not in self.buffers:
                returned.append(value)
                continue
            buffer = self.buffers[value]
            source = root(buffer)
            if source in roots or not isinstance(source.owner, memref.AllocOp):
                assert isinstance(buffer.type, MemRefType)
                sizes = [
                    builder.insert(
                        memref.DimOp(buffer, builder.value(i))
                    ).results[0]
                    if s == DYNAMIC_INDEX
                    else s
                    for i, s in enumerate(buffer.type.get_shape())
                ]
                dynamic = split(sizes)[1]
                copy = builder.insert(memref.AllocOp(dynamic, [], buffer.type)).results[0]
                builder.insert(memref.CopyOp(buffer, copy))
                buffer = source = copy
            roots.add(source)
            returned.append(buffer)
        op.operands = returned


def root(buffer: SSAValue) -> SSAValue:
    """The buffer that a chain of reshapes views."""
    while isinstance(buffer, OpResult) and isinstance(buffer.op, memref.ReinterpretCastOp):
        buffer = buffer.op.source
    return buffer


@dataclass(frozen=True)
class ConvertToStreamPass(ModulePass):
    """The host program works on memrefs and runs dispatches on them."""

    name = "irees-convert-to-stream"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        constants: dict[Attribute, str] = {}
        for function in [f for f in op.body.block.ops if isinstance(f, func.FuncOp)]:
            if not function.is_declaration:
                HostConversion(op, function, constants).run()


