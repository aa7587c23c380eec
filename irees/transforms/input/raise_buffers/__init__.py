"""
Raises programs on buffers to tensors: what a function writes into an argument becomes a result.

    func.func @main(%a: memref<4xf32>, %b: memref<4xf32>) {
      linalg.add ins(%a, %a : ...) outs(%b : memref<4xf32>)
      return
    }
  =>
    func.func @main(%a: tensor<4xf32>, %b: tensor<4xf32>) -> (tensor<4xf32> {irees.updates = 1}) {
      %0 = linalg.add ins(%a, %a : ...) outs(%b : tensor<4xf32>) -> tensor<4xf32>
      return %0 : tensor<4xf32>
    }

Each buffer has a current value, which every write replaces: a store becomes `tensor.insert`, a copy
or a linalg op a new tensor. A read of a view (`memref.subview`, `cast`, `expand_shape`,
`collapse_shape`) is a slice or a reshape of the current value of its buffer, and a write to it an
insertion. Loops and branches carry the values of the buffers that they write. As tensors, the
program gets all optimizations and checks, and its arguments are updated in place
(`irees.updates`), so two of them must not share memory. On a GPU, whose arguments are copies, or
without `in-place`, the new values are results.

A loop nest without linalg ops, and ops without a form on tensors, such as vector loads, are kept as
they are: as an `irees.kernel` on the values of their buffers (`kernels.py`). It is bufferized again
with the rest of the program, and updates the arguments in place.

    scf.for %i = ... { vector.store %v, %b[%i] }
  =>
    %b1 = irees.kernel outs(%b0) { ^bb0(%b): scf.for %i = ... { vector.store %v, %b[%i] } }

A constant global (`memref.get_global`, `memref.global`) is a constant; `bufferization.to_buffer` is
the first value of a buffer, and `bufferization.to_tensor` its current one. The pass raises an error
for other ops on buffers. It is the inverse of MLIR's one-shot bufferization.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from xdsl.context import Context
from xdsl.dialects import arith, bufferization, cf, func, memref, scf, tensor
from xdsl.dialects.builtin import (
    DYNAMIC_INDEX,
    ArrayAttr,
    DenseArrayBase,
    DictionaryAttr,
    FunctionType,
    MemRefType,
    ModuleOp,
    StringAttr,
    TensorType,
    UnitAttr,
    i32,
    i64,
)
from xdsl.ir import Attribute, Block, BlockArgument, Operation, Region, SSAValue
from xdsl.passes import ModulePass
from xdsl.rewriter import InsertPoint, Rewriter
from xdsl.traits import SymbolTable
from xdsl.utils.type import have_compatible_shape

from irees.dialects.irees_target import target_of
from irees.dialects.signature import mark_updates
from irees.dialects.storage import is_allocation, is_view, root
from irees.errors import UnsupportedError
from irees.transforms.input.raise_buffers.functions import (
    changed_by,
    check_layouts,
    functions_on_buffers,
    has_buffers,
    tensor_of,
    written,
)
from irees.transforms.input.raise_buffers.kernels import (
    Outliner,
    kernels,
)
from irees.transforms.utils.shapes import dim, dynamic_dims, same_size
from irees.transforms.utils.structured import asserts
from irees.transforms.utils.tensors import TensorBuilder

RAISED = (memref.SubviewOp, memref.CastOp, memref.ExpandShapeOp, memref.CollapseShapeOp)
"""Views with a form on tensors. A kernel may take any view."""
_EMPTY = DictionaryAttr({})


def may_be(source: Attribute, kind: TensorType) -> bool:
    """Whether a memref may have the sizes and the elements of a tensor type."""
    same = isinstance(source, MemRefType) and source.element_type == kind.element_type
    return same and have_compatible_shape(source, kind)


def is_ranked(view: Operation) -> bool:
    """Whether a view and its source both have a known rank."""
    return all(isinstance(v.type, MemRefType) for v in (view.operands[0], view.results[0]))


def constant_of(op: memref.GetGlobalOp) -> arith.ConstantOp:
    """
    get_global of a constant  =>  its value, as a tensor

    Raises UnsupportedError for a global that may be written.
    """
    glob = SymbolTable.lookup_symbol(op, op.name_)
    value = glob.initial_value if isinstance(glob, memref.GlobalOp) else None
    if (
        not isinstance(glob, memref.GlobalOp)
        or glob.constant is None
        or isinstance(value, UnitAttr)
    ):
        hint = "pass the buffer as an argument, or make the global constant"
        raise UnsupportedError("a global that may be written is not supported", op=op, hint=hint)
    return arith.ConstantOp(value, tensor_of(op.memref.type))


def first_value(op: memref.AllocOp | memref.AllocaOp | memref.GetGlobalOp) -> Operation:
    """alloc  =>  tensor.empty ; get_global  =>  arith.constant"""
    if isinstance(op, memref.GetGlobalOp):
        return constant_of(op)
    if op.symbol_operands:
        raise refused(op)
    return tensor.EmptyOp(list(op.dynamic_sizes), tensor_of(op.memref.type))


def is_structured(op: Operation) -> bool:
    """Whether an op writes whole buffers, so that it gains from being an op on tensors."""
    return bool(written(op)) and not isinstance(op, memref.StoreOp)


def refused(op: Operation | Block) -> UnsupportedError:
    """Returns the error for an op without a tensor equivalent, or for a block with a buffer."""
    inner = op.parent_op() if isinstance(op, Block) else op
    name = "it" if inner is None else inner.name
    return UnsupportedError(
        f"{name} on a memref is not supported",
        op=inner,
        hint="write it on tensors, or with linalg, memref and scf.for",
    )


@dataclass
class Raiser:
    """Rewrites a function with a single block."""

    current: dict[SSAValue, SSAValue] = field(default_factory=dict)
    """Buffer => its value. Views are not in it."""

    def read(self, buffer: SSAValue, b: TensorBuilder) -> SSAValue:
        """Returns the value of a buffer or of a view."""
        if buffer in self.current:
            return self.current[buffer]
        view = buffer.owner
        if not isinstance(view, RAISED) or not is_ranked(view):
            raise refused(view)
        source, kind = self.read(view.operands[0], b), tensor_of(buffer.type)
        if isinstance(view, memref.SubviewOp):
            operands = [source, *view.operands[1:]]
            return b.insert(
                tensor.ExtractSliceOp.create(
                    operands=operands, result_types=[kind], properties=dict(view.properties)
                )
            ).results[0]
        if isinstance(view, memref.CastOp):
            if not may_be(view.source.type, kind):
                raise refused(view)
            return b.cast_tensor(source, kind)
        return self._reshaped(view, source, kind, list(view.operands[1:]), b)

    def _reshaped(
        self,
        view: memref.ExpandShapeOp | memref.CollapseShapeOp,
        source: SSAValue,
        kind: TensorType,
        sizes: Sequence[SSAValue],
        b: TensorBuilder,
    ) -> SSAValue:
        """Reshapes a tensor to type `kind` with these dynamic sizes, as a view does or back."""
        assert isinstance(source.type, TensorType)
        if len(kind.get_shape()) < len(source.type.get_shape()):
            op: Operation = tensor.CollapseShapeOp.create(
                operands=[source],
                result_types=[kind],
                properties={"reassociation": view.properties["reassociation"]},
            )
        else:
            op = tensor.ExpandShapeOp.create(
                operands=[source, *sizes],
                result_types=[kind],
                properties={
                    "reassociation": view.properties["reassociation"],
                    "static_output_shape": DenseArrayBase.from_list(i64, kind.get_shape()),
                },
            )
        return b.insert(op).results[0]

    def write(self, buffer: SSAValue, value: SSAValue, b: TensorBuilder) -> None:
        """Replaces the value of a buffer, or the part that a view covers."""
        if buffer in self.current:
            self.current[buffer] = value
            return
        view = buffer.owner
        if not isinstance(view, RAISED) or not is_ranked(view):
            raise refused(view)
        source, kind = view.operands[0], tensor_of(view.operands[0].type)
        if isinstance(view, memref.SubviewOp):
            properties = dict(view.properties)
            counts = [len(view.offsets), len(view.sizes), len(view.strides)]
            properties["operandSegmentSizes"] = DenseArrayBase.from_list(i32, [1, 1, *counts])
            into = self.read(source, b)
            value = b.insert(
                tensor.InsertSliceOp.create(
                    operands=[value, into, *view.operands[1:]],
                    result_types=[kind],
                    properties=properties,
                )
            ).results[0]
        elif isinstance(view, memref.CastOp):
            if not may_be(buffer.type, kind):
                raise refused(view)
            value = b.cast_tensor(value, kind)
        else:
            sizes = dynamic_dims(self.read(source, b), b)
            value = self._reshaped(view, value, kind, sizes, b)
        self.write(source, value, b)

    def block(self, block: Block) -> None:
        """Rewrites all ops of a block."""
        ends = {ops[-1]: ops for ops in kernels(block, is_structured)}
        inner = {op for ops in ends.values() for op in ops}
        for op in list(block.ops):
            if op in ends:
                self._kernel(ends[op])
            if op in inner:
                continue
            self._op(op, TensorBuilder(op))
        for op in reversed(list(block.ops)):
            if is_view(op) and not any(result.uses for result in op.results):
                Rewriter.erase_op(op)

    def _op(self, op: Operation, b: TensorBuilder) -> None:
        match op:
            case memref.AllocOp() | memref.AllocaOp() | memref.GetGlobalOp():
                self.current[op.memref] = b.insert(first_value(op)).results[0]
            case bufferization.ToBufferOp():
                self.current[op.results[0]] = op.operands[0]
            case bufferization.ToTensorOp():
                Rewriter.replace_op(op, [], [self.read(op.operands[0], b)])
            case memref.DeallocOp():
                Rewriter.erase_op(op)
            case memref.LoadOp():
                value = self.read(op.memref, b)
                load = tensor.ExtractOp(value, list(op.indices), op.res.type)
                Rewriter.replace_op(op, load)
            case memref.StoreOp():
                into = self.read(op.memref, b)
                store = b.insert(tensor.InsertOp(op.value, into, list(op.indices)))
                self.write(op.memref, store.results[0], b)
                Rewriter.erase_op(op)
            case memref.CopyOp():
                self._copy(op, b)
            case memref.DimOp():
                value = self.read(op.source, b)
                Rewriter.replace_op(op, tensor.DimOp(value, op.index))
            case scf.ForOp():
                self._for(op)
            case scf.IfOp():
                self._if(op)
            case func.ReturnOp():
                pass
            case _ if written(op):
                self._structured(op, b)
            case _ if is_view(op):
                pass
            case _:
                self._other(op)

    def _copy(self, op: memref.CopyOp, b: TensorBuilder) -> None:
        """copy %a, %b  =>  the value of %a becomes that of %b, whose sizes must be equal"""
        kind = tensor_of(op.destination.type)
        if not may_be(op.source.type, kind):
            raise refused(op)
        source, target = self.read(op.source, b), self.read(op.destination, b)
        for axis, both in enumerate(zip(tensor_of(op.source.type).get_shape(), kind.get_shape())):
            sizes = dim(source, axis, b), dim(target, axis, b)
            if DYNAMIC_INDEX in both and not same_size(*sizes):
                equal = b.compare(*sizes, "eq")
                text = f"dim {axis} of operand 0 must equal dim {axis} of operand 1 of {op.name}"
                b.insert(cf.AssertOp(equal, StringAttr(text)))
        self.write(op.destination, b.cast_tensor(source, kind), b)
        Rewriter.erase_op(op)

    def _kernel(self, ops: Sequence[Operation]) -> None:
        """
        the ops of a kernel  =>  irees.kernel on the values of their buffers

        Ops that write nothing are erased, unless one of them asserts something.
        """
        outliner = Outliner(ops)
        for buffer in outliner.buffers:
            if buffer not in self.current:
                raise refused(buffer.owner)
        after = ops[-1].next_op
        assert after is not None
        if not outliner.written() and not any(map(asserts, ops)):
            outliner.erase()
            return
        b = TensorBuilder(after)
        kernel, outputs = outliner.outline(lambda buffer: self.current[buffer], b)
        Rewriter.insert_op(kernel, InsertPoint.before(after))
        for op in reversed(outliner.copied):
            if not is_view(op) and not any(result.uses for result in op.results):
                Rewriter.erase_op(op)
        for buffer, result in zip(outputs, kernel.res):
            self.current[buffer] = result

    def _other(self, op: Operation) -> None:
        """Refuses an op that has buffers, itself or in its regions."""
        if has_buffers(op):
            raise refused(op)

    def _structured(self, op: Operation, b: TensorBuilder) -> None:
        """linalg.op ins(%a) outs(%b)  =>  the same op on the values of %a and %b"""
        outputs = written(op)
        if op.results:
            raise refused(op)
        operands = [self.read(o, b) if isinstance(o.type, MemRefType) else o for o in op.operands]
        new = type(op).create(
            operands=operands,
            result_types=[tensor_of(o.type) for o in outputs],
            properties=dict(op.properties),
            attributes=dict(op.attributes),
            regions=[op.detach_region(region) for region in list(op.regions)],
        )
        b.insert(new)
        for output, result in zip(outputs, new.results, strict=True):
            self.write(output, result, b)
        Rewriter.erase_op(op)

    def _carried(self, op: Operation) -> list[SSAValue]:
        """Returns the buffers from outside that the regions of an op write."""
        found = dict.fromkeys(root(v) for inner in op.walk() for v in written(inner))
        return [buffer for buffer in found if buffer in self.current]

    def _for(self, op: scf.ForOp) -> None:
        """scf.for that writes %b  =>  scf.for that carries the value of %b"""
        if any(isinstance(v.type, MemRefType) for v in op.iter_args):
            self._other(op)
        carried = self._carried(op)
        inits = [self.current[buffer] for buffer in carried]
        block = op.body.block
        for buffer in carried:
            kind = self.current[buffer].type
            self.current[buffer] = block.insert_arg(kind, len(block.args))
        self.block(block)
        self._extend_yield(block, carried)
        new = scf.ForOp(op.lb, op.ub, op.step, [*op.iter_args, *inits], op.detach_region(op.body))
        self._replace(op, new, carried)

    def _if(self, op: scf.IfOp) -> None:
        """scf.if that writes %b  =>  scf.if that yields the value of %b"""
        carried = self._carried(op)
        before = dict(self.current)
        if not op.false_region.blocks:
            assert not op.results, "an scf.if with results has both regions"
            op.false_region.add_block(Block([scf.YieldOp()]))
        for region in (op.true_region, op.false_region):
            self.current = dict(before)
            self.block(region.block)
            self._extend_yield(region.block, carried)
        self.current = before
        kinds = [*(r.type for r in op.results), *(before[buffer].type for buffer in carried)]
        regions: list[Region] = [op.detach_region(r) for r in (op.true_region, op.false_region)]
        self._replace(op, scf.IfOp(op.cond, kinds, *regions), carried)

    def _extend_yield(self, block: Block, carried: Sequence[SSAValue]) -> None:
        terminator = block.last_op
        assert terminator is not None
        terminator.operands = [*terminator.operands, *(self.current[b] for b in carried)]

    def _replace(self, op: Operation, new: Operation, carried: Sequence[SSAValue]) -> None:
        new.location = op.location
        count = len(op.results)
        Rewriter.insert_op(new, InsertPoint.before(op))
        for old, result in zip(op.results, new.results[:count], strict=True):
            old.replace_all_uses_with(result)
        for buffer, result in zip(carried, new.results[count:], strict=True):
            self.current[buffer] = result
        Rewriter.erase_op(op, safe_erase=False)


def raise_function(function: func.FuncOp, in_place: bool) -> None:
    """
    func @f(%b: memref)  =>  func @f(%b: tensor) -> (tensor {irees.updates})

    Raises UnsupportedError for an op or a layout that has no form on tensors.
    """
    block, terminator = function.body.block, function.body.block.last_op
    assert isinstance(terminator, func.ReturnOp)
    buffers = [argument for argument in block.args if isinstance(argument.type, MemRefType)]
    check_layouts(function, buffers)
    # The tensors stand in for the buffers until all ops are rewritten.
    stand_ins = {a: block.insert_arg(tensor_of(a.type), len(block.args)) for a in buffers}
    raiser = Raiser(dict(stand_ins))
    updated = {root(value) for op in block.walk() for value in changed_by(op)}
    raiser.block(block)
    b = TensorBuilder(terminator)
    values = list(terminator.operands)
    returned = [raiser.read(v, b) if isinstance(v.type, MemRefType) else v for v in values]
    changed = [argument for argument in buffers if argument in updated]
    terminator.operands = [*returned, *(raiser.current[argument] for argument in changed)]
    _erase_unread(block)
    for argument in buffers:
        stand_ins[argument].replace_all_uses_with(_retyped(argument))
        block.erase_arg(stand_ins[argument])
    _retype(function, terminator, len(changed))
    if in_place:
        first = len(returned)
        mark_updates(function, {first + i: argument.index for i, argument in enumerate(changed)})


def _retype(function: func.FuncOp, terminator: func.ReturnOp, added: int) -> None:
    """Updates a function's type to its block and terminator, which has `added` extra operands."""
    function.function_type = FunctionType.from_lists(
        [a.type for a in function.body.block.args], [v.type for v in terminator.operands]
    )
    if function.res_attrs is not None:
        function.res_attrs = ArrayAttr([*function.res_attrs.data, *([_EMPTY] * added)])


def _retyped(argument: BlockArgument) -> SSAValue:
    index, block = argument.index, argument.block
    Rewriter.replace_value_with_new_type(argument, tensor_of(argument.type))
    return block.args[index]


def _erase_unread(block: Block) -> None:
    """Erases views, allocations and copies without uses."""
    for op in reversed(list(block.walk())):
        given = isinstance(op, memref.GetGlobalOp | bufferization.ToBufferOp)
        made = is_view(op) or is_allocation(op) or given
        if made and not any(result.uses for result in op.results):
            Rewriter.erase_op(op)


@dataclass(frozen=True)
class RaiseBuffersPass(ModulePass):
    """Raises functions on memrefs to tensors."""

    name = "irees-raise-buffers"

    in_place: bool = True

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        in_place = self.in_place and target_of(op).gpu is None
        for function in functions_on_buffers(op):
            if len(function.body.blocks) == 1:
                raise_function(function, in_place)
        for glob in [o for o in op.ops if isinstance(o, memref.GlobalOp)]:
            if not any(isinstance(o, memref.GetGlobalOp) for o in op.walk()):
                Rewriter.erase_op(glob)
