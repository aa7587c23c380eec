"""
Outlines each dispatch region into an executable.

The function of an executable takes host tensors as `!iree_tensor_ext.dispatch.tensor`, takes
scalars unchanged, and writes its results to writable dispatch tensors. It can then be compiled
independently of the host. Dynamic dims become index arguments. Constants are cloned into the
kernel. A region without results is erased: its ops have no effects.

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
from xdsl.ir import Attribute, Block, OpResult, Region, SSAValue
from xdsl.passes import ModulePass
from xdsl.rewriter import InsertPoint, Rewriter

from irees.analysis.contractions import is_contraction
from irees.dialects.flow import DispatchOp, DispatchRegionOp, ExecutableOp, ReturnOp
from irees.dialects.iree_tensor_ext import (
    DispatchTensorLoadOp,
    DispatchTensorStoreOp,
    DispatchTensorType,
)
from irees.dialects.resources import is_splat
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


def outline(region: DispatchRegionOp, name: str) -> ExecutableOp:
    """flow.dispatch.region { body }(captures)  =>  flow.dispatch @name::@name(captures)"""
    host = IndexBuilder(InsertPoint.before(region))
    captured = captured_values(region)
    constants = [v for v in captured if inlinable(v)]
    tensors = [v for v in captured if isinstance(v.type, TensorType) and not inlinable(v)]
    scalars = [v for v in captured if not isinstance(v.type, TensorType) and not inlinable(v)]
    tensor_dims = [dynamic_dims(t, host) for t in tensors]
    result_dims = list(region.result_dims)
    for size in [d for sizes in tensor_dims for d in sizes] + result_dims:
        if size not in scalars and not inlinable(size):
            scalars.append(size)

    def bound(kind: str, value: SSAValue) -> Attribute:
        assert isinstance(value.type, TensorType)
        return DispatchTensorType(StringAttr(kind), value.type)

    types = [
        *(bound("readonly", t) for t in tensors),
        *(s.type for s in scalars),
        *(bound("writeonly", r) for r in region.res),
    ]
    block = Block(arg_types=types)
    mapping: dict[SSAValue, SSAValue] = {}
    for position, scalar in enumerate(scalars):
        mapping[scalar] = block.args[len(tensors) + position]
    sizes_in_use = [s for sizes in tensor_dims for s in sizes] + result_dims
    for constant in [*constants, *(s for s in sizes_in_use if inlinable(s))]:
        if constant in mapping:
            continue
        assert isinstance(constant, OpResult)
        copy = constant.op.clone()
        block.add_op(copy)
        mapping[constant] = copy.results[0]
    for position, (value, sizes) in enumerate(zip(tensors, tensor_dims, strict=True)):
        load = DispatchTensorLoadOp.whole(block.args[position], [mapping[s] for s in sizes])
        block.add_op(load)
        mapping[value] = load.result
    body = region.body.block
    returned: list[SSAValue] = []
    for op in body.ops:
        if isinstance(op, ReturnOp):
            returned = [mapping.get(v, v) for v in op.values]
            break
        copy = op.clone(value_mapper=mapping)
        block.add_op(copy)
    remaining = iter(result_dims)
    for position, value in enumerate(returned):
        assert isinstance(value.type, TensorType)
        count = value.type.get_shape().count(DYNAMIC_INDEX)
        sizes = [mapping[next(remaining)] for _ in range(count)]
        target = block.args[len(tensors) + len(scalars) + position]
        block.add_op(DispatchTensorStoreOp.whole(value, target, sizes))
    block.add_op(func.ReturnOp())
    function = func.FuncOp(name, FunctionType.from_lists(types, []), Region(block))
    entry = SymbolRefAttr(name, [name])
    dispatch = DispatchOp(entry, [*tensors, *scalars], result_dims, [r.type for r in region.res])
    dispatch.location = region.location
    Rewriter.insert_op(dispatch, InsertPoint.before(region))
    Rewriter.replace_op(region, [], dispatch.res)
    executable = ExecutableOp(name, [ModuleOp([function])])
    executable.location = dispatch.location
    return executable


def summary(region: DispatchRegionOp) -> str:
    """Returns a short description of a kernel: its ops with their loops, and their counts."""
    words: dict[str, int] = {}
    for op in region.body.block.ops:
        if isinstance(op, linalg.GenericOp):
            sizes = "x".join("?" if r < 0 else str(r) for r in static_ranges(op))
            kind = "contract" if is_contraction(op) else "map" if is_parallel(op) else "reduce"
            element = op.res[0].type.get_element_type()
            word = f"{kind} {sizes or 'scalar'} {element}"
        elif (
            op.results and isinstance(op.results[0].type, TensorType) and op.name != "tensor.empty"
        ):
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
