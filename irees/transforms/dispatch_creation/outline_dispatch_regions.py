"""
Outlines each dispatch region into an executable.

The function of an executable takes host tensors as `!iree_tensor_ext.dispatch.tensor`, takes
scalars unchanged, and writes its results to writable dispatch tensors. It can then be compiled
independently of the host. Dynamic dims become index arguments. Constants are cloned into the
kernel. A region without results is erased: its ops have no effects, as one that
asserts something has a result.

    %r = flow.dispatch.region -> (tensor<4xf32>) { %x = "use"(%t) ; flow.return %x }
  =>
    flow.executable @main_dispatch_0 { builtin.module {
      func.func @main_dispatch_0(%a: !iree_tensor_ext.dispatch.tensor<readonly:tensor<4xf32>>,
                                 %o: !iree_tensor_ext.dispatch.tensor<writeonly:tensor<4xf32>>)
    } }
    %r = flow.dispatch @main_dispatch_0::@main_dispatch_0(%t) : (tensor<4xf32>) -> tensor<4xf32>

IREE: `OutlineDispatchRegions`.
"""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects import arith, func
from xdsl.dialects.builtin import (
    DYNAMIC_INDEX,
    FunctionType,
    ModuleOp,
    StringAttr,
    SymbolRefAttr,
    TensorType,
)
from xdsl.dialects.linalg import ops as linalg
from xdsl.ir import Block, OpResult, Region, SSAValue
from xdsl.passes import ModulePass
from xdsl.rewriter import InsertPoint, Rewriter

from irees.analysis.contractions import is_contraction
from irees.dialects.flow import DispatchOp, DispatchRegionOp, ExecutableOp
from irees.dialects.iree_tensor_ext import (
    DispatchTensorLoadOp,
    DispatchTensorStoreOp,
    DispatchTensorType,
)
from irees.dialects.resources import is_splat
from irees.dialects.storage import is_undefined
from irees.transforms.utils.shapes import IndexBuilder, dynamic_dims
from irees.transforms.utils.structured import captured_values, is_parallel, static_ranges


def inlinable(value: SSAValue) -> bool:
    """Whether a captured value is a scalar or splat constant, which is cloned into the kernel."""
    if not isinstance(value, OpResult) or not isinstance(value.op, arith.ConstantOp):
        return False
    if not isinstance(value.type, TensorType):
        return True
    data = value.op.value
    return is_splat(data)


@dataclass(frozen=True)
class Captures:
    """The values that a region uses, by how they reach its kernel."""

    constants: list[SSAValue]
    """Values cloned into the kernel."""
    tensors: list[SSAValue]
    """Values passed as dispatch tensors."""
    tensor_dims: list[list[SSAValue]]
    """Dynamic dims of each tensor."""
    scalars: list[SSAValue]
    """Values passed as they are, with the dynamic dims of tensors and results."""

    @staticmethod
    def of(region: DispatchRegionOp) -> Captures:
        """Returns the captures of a region; emits their dynamic dims before the region."""
        at = IndexBuilder(InsertPoint.before(region))
        captured = captured_values(region)
        tensors = [v for v in captured if isinstance(v.type, TensorType) and not inlinable(v)]
        dims = [dynamic_dims(tensor, at) for tensor in tensors]
        rest = [v for v in captured if v not in tensors]
        rest = list(
            dict.fromkeys([*rest, *(d for sizes in dims for d in sizes), *region.result_dims])
        )
        constants = [v for v in rest if inlinable(v)]
        return Captures(constants, tensors, dims, [v for v in rest if v not in constants])


def outline(region: DispatchRegionOp, name: str) -> ExecutableOp:
    """flow.dispatch.region { body }(captures)  =>  flow.dispatch @name::@name(captures)"""
    given = Captures.of(region)
    kernel = _kernel(region, given)
    dispatch = DispatchOp(
        SymbolRefAttr(name, [name]),
        [*given.tensors, *given.scalars],
        list(region.result_dims),
        [r.type for r in region.res],
    )
    dispatch.location = region.location
    Rewriter.insert_op(dispatch, InsertPoint.before(region))
    Rewriter.replace_op(region, [], dispatch.res)
    function = func.FuncOp(name, FunctionType.from_lists(kernel.arg_types, []), Region(kernel))
    executable = ExecutableOp(name, [ModuleOp([function])])
    executable.location = dispatch.location
    return executable


def _kernel(region: DispatchRegionOp, given: Captures) -> Block:
    """Returns a block that loads the captured tensors, runs the region and stores its results."""
    block = Block(
        arg_types=[
            *(_bound("readonly", tensor) for tensor in given.tensors),
            *(scalar.type for scalar in given.scalars),
            *(_bound("writeonly", result) for result in region.res),
        ]
    )
    arguments = iter(block.args)
    bound = [next(arguments) for _ in given.tensors]
    values: dict[SSAValue, SSAValue] = {scalar: next(arguments) for scalar in given.scalars}
    for constant in given.constants:
        assert isinstance(constant, OpResult)
        block.add_op(constant.op.clone(value_mapper=values))
    for tensor, argument, sizes in zip(given.tensors, bound, given.tensor_dims, strict=True):
        load = DispatchTensorLoadOp.whole(argument, [values[s] for s in sizes])
        block.add_op(load)
        values[tensor] = load.result
    *body, end = region.body.block.ops
    for op in body:
        block.add_op(op.clone(value_mapper=values))
    remaining = iter(region.result_dims)
    for returned, target in zip(end.operands, arguments, strict=True):
        value = values.get(returned, returned)
        assert isinstance(value.type, TensorType)
        count = value.type.get_shape().count(DYNAMIC_INDEX)
        sizes = [values[next(remaining)] for _ in range(count)]
        block.add_op(DispatchTensorStoreOp.whole(value, target, sizes))
    block.add_op(func.ReturnOp())
    return block


def _bound(access: str, value: SSAValue) -> DispatchTensorType:
    """Returns the type of a dispatch tensor for a value."""
    assert isinstance(value.type, TensorType)
    return DispatchTensorType(StringAttr(access), value.type)


def summary(region: DispatchRegionOp) -> str:
    """Returns a short description of a kernel: its ops with their loops, and their counts."""
    words: dict[str, int] = {}
    for op in region.body.block.ops:
        if isinstance(op, linalg.GenericOp):
            sizes = "x".join("?" if r < 0 else str(r) for r in static_ranges(op))
            kind = "contract" if is_contraction(op) else "map" if is_parallel(op) else "reduce"
            element = op.res[0].type.get_element_type()
            word = f"{kind} {sizes or 'scalar'} {element}"
        elif op.results and isinstance(op.results[0].type, TensorType) and not is_undefined(op):
            shape = "x".join("?" if s < 0 else str(s) for s in op.results[0].type.get_shape())
            word = f"{op.name.rpartition('.')[2]} {shape}"
        else:
            continue
        words[word] = words.get(word, 0) + 1
    return ", ".join(w if n == 1 else f"{n} {w}" for w, n in words.items())


@dataclass(frozen=True)
class OutlineDispatchRegionsPass(ModulePass):
    """Outlines dispatch regions into executables, and dispatches those."""

    name = "irees-outline-dispatch-regions"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for function in [f for f in op.body.block.ops if isinstance(f, func.FuncOp)]:
            regions = [r for r in function.walk() if isinstance(r, DispatchRegionOp)]
            for region in [r for r in regions if not r.results]:
                Rewriter.erase_op(region)
            for number, region in enumerate(r for r in regions if r.results):
                name = f"{function.sym_name.data}_dispatch_{number}"
                text = summary(region)
                executable = outline(region, name)
                executable.attributes["summary"] = StringAttr(text)
                Rewriter.insert_op(executable, InsertPoint.before(function))
