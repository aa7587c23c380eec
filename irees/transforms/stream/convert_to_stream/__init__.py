"""
Bufferizes the host program.

Every tensor value becomes a row-major memref. A dispatch result is a new buffer unless it is tied,
a reshape is a view, a constant is a global. Each result that is returned to the caller has a buffer
of its own: values that alias an argument, a constant or another result are copied.

    %r = flow.dispatch @k::@k(%x) : (tensor<4xf32>) -> tensor<4xf32>
    return %r
  =>
    %r = memref.alloc() : memref<4xf32>
    stream.cmd.dispatch @k::@k(%x, %r) : memref<4xf32>, memref<4xf32>
    return %r

`irees-plan-arena` assigns the memory. IREE: `ConvertToStream`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import ClassVar

from xdsl.context import Context
from xdsl.dialects import arith, func, memref, scf, tensor
from xdsl.dialects.builtin import (
    FunctionType,
    MemRefType,
    ModuleOp,
    StringAttr,
    TensorType,
    UnitAttr,
)
from xdsl.ir import Attribute, Block, Operation, SSAValue
from xdsl.passes import ModulePass
from xdsl.rewriter import InsertPoint, Rewriter

from irees.dialects import util
from irees.dialects._shaped import UNTIED, tied_indices
from irees.dialects.flow import DispatchOp, TensorTraceOp
from irees.dialects.irees import ViewPartsOp
from irees.dialects.signature import drop_results, updates_of
from irees.dialects.storage import RESHAPES, is_allocation, is_dim, is_extract, is_reshape, root
from irees.dialects.stream import CmdDispatchOp, CmdTraceOp
from irees.dialects.upstream import memref as _extended_memref  # noqa: F401
from irees.errors import UnsupportedError
from irees.transforms.stream.convert_to_stream.control_flow import (
    ControlFlow,
    buffer_type,
    is_repeated,
    refuse_call,
)
from irees.transforms.stream.convert_to_stream.globals import convert_global
from irees.transforms.stream.convert_to_stream.results import copied, write_back
from irees.transforms.utils.accesses import load_inside, store_inside
from irees.transforms.utils.shapes import IndexBuilder, Size, dims
from irees.transforms.utils.views import row_major_view

GONE = TensorTraceOp | util.GlobalLoadOp | util.GlobalStoreOp

MADE = RESHAPES | {"flow.dispatch", "tensor.empty", "tensor.from_elements"}
"""Ops whose results get a buffer or a view, with sizes that are computed before the conversion."""


@dataclass
class HostConversion(ControlFlow):
    """The conversion of one function: the buffer of each tensor value."""

    module: ModuleOp
    function: func.FuncOp
    globals: dict[Attribute, str] = field(default_factory=dict)

    def run(self) -> None:
        """Converts the function in place."""
        block = self.function.body.block
        results = [buffer_type(t) for t in self.function.function_type.outputs]
        self._shapes_first()
        self._arguments(block)
        self._block(block)
        drop_results(self.function, updates := updates_of(self.function))
        results = [r for i, r in enumerate(results) if i not in updates]
        self.function.function_type = FunctionType.from_lists([a.type for a in block.args], results)

    def _shapes_first(self) -> None:
        """Materializes all dynamic dims as SSA values while the tensor ops still exist."""
        self.sizes: dict[SSAValue, list[Size]] = {}
        for op in list(self.function.walk()):
            for value in op.results:
                if isinstance(value.type, TensorType) and op.name in MADE:
                    self.sizes[value] = dims(value, IndexBuilder(InsertPoint.before(op)))

    def _arguments(self, block: Block) -> None:
        for argument in list(block.args):
            if isinstance(argument.type, TensorType):
                index = argument.index
                Rewriter.replace_value_with_new_type(argument, buffer_type(argument.type))
                self.buffers[block.args[index]] = block.args[index]

    def _block(self, block: Block, leave: Callable[[], None] | None = None) -> None:
        """Converts a block; `leave` rewrites its terminator before tensor ops are erased."""
        for op in (old := list(block.ops)):
            self._convert(op)
        if leave is not None:
            leave()
        for op in reversed(old):
            if isinstance(op, func.ReturnOp | scf.YieldOp | scf.ConditionOp):
                continue
            if op.parent is None:
                continue
            converted = is_dim(op) or is_extract(op) or isinstance(op, GONE)
            if converted or any(isinstance(r.type, TensorType) for r in op.results):
                Rewriter.erase_op(op, safe_erase=False)

    def _sizes(self, value: SSAValue) -> list[Size]:
        return [s if isinstance(s, int) else self.renamed.get(s, s) for s in self.sizes[value]]

    def _convert(self, op: Operation) -> None:
        if isinstance(op, scf.YieldOp | scf.ConditionOp):  # The loop or branch rewrites it.
            return
        convert = self.CONVERSIONS.get(op.name)
        if convert is not None:
            convert(self, op, IndexBuilder(InsertPoint.before(op)))
        elif any(isinstance(v.type, TensorType) for v in (*op.operands, *op.results)):
            raise UnsupportedError("this op on tensors is not supported in the host program", op=op)

    def _constant(self, op: arith.ConstantOp, builder: IndexBuilder) -> None:
        if isinstance(op.result.type, TensorType):
            self.buffers[op.result] = self._global(op, builder)

    def _global(self, op: arith.ConstantOp, builder: IndexBuilder) -> SSAValue:
        name = self.globals.get(op.value)
        kind = buffer_type(op.result.type)
        assert isinstance(kind, MemRefType)
        if name is None:
            name = f"__constant_{len(self.globals)}"
            self.globals[op.value] = name
            glob = memref.GlobalOp.get(
                StringAttr(name),
                kind,
                op.value,
                sym_visibility=StringAttr("private"),
                constant=UnitAttr(),
            )
            glob.location = op.location
            Rewriter.insert_op(glob, InsertPoint.at_start(self.module.body.block))
        return builder.insert(memref.GetGlobalOp(name, kind)).results[0]

    def _reshape(self, op: Operation, builder: IndexBuilder) -> None:
        source, sizes = self.buffers[op.operands[0]], self._sizes(op.results[0])
        if isinstance(op, ViewPartsOp):
            self.buffers[op.result] = builder.insert(ViewPartsOp(source)).results[0]
            return
        result = buffer_type(op.results[0].type)
        assert isinstance(result, MemRefType)
        if source.type == result and result.has_static_shape():
            self.buffers[op.results[0]] = source
            return
        self.buffers[op.results[0]] = row_major_view(source, sizes, result, builder)

    def _dispatch(self, op: DispatchOp, builder: IndexBuilder) -> None:
        arguments = [self.buffers.get(a, a) for a in op.arguments]
        tied = tied_indices(op.tied_operands, len(op.res))
        pairs = list(zip(op.res, tied, strict=True))
        new = [self._alloc(r.type, self._sizes(r), builder) for r, at in pairs if at == UNTIED]
        fresh = iter(new)
        outputs = [next(fresh) if at == UNTIED else arguments[at] for _, at in pairs]
        dispatch = CmdDispatchOp(op.entry_point, [*arguments, *new])
        dispatch.location = op.location
        builder.insert(dispatch)
        for result, buffer in zip(op.res, outputs, strict=True):
            self.buffers[result] = buffer

    def _trace(self, op: TensorTraceOp, builder: IndexBuilder) -> None:
        trace = CmdTraceOp(op.key.data, [self.buffers[v] for v in op.values])
        trace.location = op.location
        builder.insert(trace)

    def _dim(self, op: tensor.DimOp, builder: IndexBuilder) -> None:
        dim = memref.DimOp(self.buffers[op.source], op.index)
        builder.insert(dim)
        op.result.replace_all_uses_with(dim.result)
        self.renamed[op.result] = dim.result

    def _extract(self, op: tensor.ExtractOp, builder: IndexBuilder) -> None:
        load = load_inside(self.buffers[op.tensor], op.indices, builder, builder)
        op.result.replace_all_uses_with(load)
        self.renamed[op.result] = load

    def _empty(self, op: tensor.EmptyOp, builder: IndexBuilder) -> None:
        self.buffers[op.tensor] = self._alloc(op.tensor.type, self._sizes(op.tensor), builder)

    def _insert(self, op: tensor.InsertOp, builder: IndexBuilder) -> None:
        """Stores one element on the host, in place if nothing else reads the tensor."""
        buffer = self.buffers[op.dest]
        mine = is_allocation(buffer.owner) and not is_reshape(op.dest.owner)
        if not mine or len(list(op.dest.uses)) > 1 or is_repeated(op, op.dest):
            buffer = self._own_copy(op.dest, builder)
        store_inside(op.scalar, buffer, op.indices, builder)
        self.buffers[op.result] = buffer

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

    def _global_buffer(self, name: str, kind: Attribute, builder: IndexBuilder) -> SSAValue:
        """Returns the buffer of a mutable global, of rank 0 for a scalar."""
        if not isinstance(kind, TensorType | MemRefType):
            return builder.insert(memref.GetGlobalOp(name, MemRefType(kind, []))).results[0]
        return builder.insert(memref.GetGlobalOp(name, buffer_type(kind))).results[0]

    def _load_global(self, op: util.GlobalLoadOp, builder: IndexBuilder) -> None:
        source = self._global_buffer(op.global_.string_value(), op.result.type, builder)
        if not isinstance(op.result.type, TensorType):
            load = builder.insert(memref.LoadOp.get(source, [])).results[0]
            op.result.replace_all_uses_with(load)
            return
        # Copy: a later store to the global must not change the loaded value.
        copy = self._like(source, builder)
        builder.insert(memref.CopyOp(source, copy))
        self.buffers[op.result] = copy

    def _store_global(self, op: util.GlobalStoreOp, builder: IndexBuilder) -> None:
        target = self._global_buffer(op.global_.string_value(), op.value.type, builder)
        if op.value in self.buffers:
            builder.insert(memref.CopyOp(self.buffers[op.value], target))
        else:
            builder.insert(memref.StoreOp.get(op.value, target, []))

    def _return(self, op: func.ReturnOp, builder: IndexBuilder) -> None:
        returned: list[SSAValue] = []
        roots: set[SSAValue] = set()
        updates = updates_of(self.function)
        for number, value in enumerate(op.operands):
            if number in updates:
                continue
            if not isinstance(value.type, TensorType) and value not in self.buffers:
                returned.append(value)
                continue
            buffer = self.buffers[value]
            source = root(buffer)
            if source in roots or not is_allocation(source.owner):
                buffer = source = copied(buffer, builder)
            roots.add(source)
            returned.append(buffer)
        targets = {n: self.function.body.block.args[a] for n, a in updates.items()}
        write_back({n: self.buffers[op.operands[n]] for n in updates}, targets, builder)
        op.operands = returned

    def _call(self, op: func.CallOp, builder: IndexBuilder) -> None:
        refuse_call(op)

    CONVERSIONS: ClassVar[dict[str, Callable[..., None]]] = {
        **dict.fromkeys(RESHAPES, _reshape),
        "arith.constant": _constant,
        "flow.dispatch": _dispatch,
        "flow.tensor.trace": _trace,
        "func.call": _call,
        "func.return": _return,
        "scf.for": ControlFlow._for,
        "scf.if": ControlFlow._if,
        "scf.while": ControlFlow._while,
        "tensor.dim": _dim,
        "tensor.empty": _empty,
        "tensor.extract": _extract,
        "tensor.from_elements": _from_elements,
        "tensor.insert": _insert,
        "util.global.load": _load_global,
        "util.global.store": _store_global,
    }
    """How each op is converted; each method emits the buffer form of an op before it."""


@dataclass(frozen=True)
class ConvertToStreamPass(ModulePass):
    """Bufferizes the host program."""

    name = "irees-convert-to-stream"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for glob in [g for g in op.body.block.ops if isinstance(g, util.GlobalOp)]:
            convert_global(glob)
        constants: dict[Attribute, str] = {}
        for function in [f for f in op.body.block.ops if isinstance(f, func.FuncOp)]:
            if not function.is_declaration:
                HostConversion(op, function, constants).run()
