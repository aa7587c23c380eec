"""
Shows every tensor that goes into a dispatch or comes out of it.

    %r = flow.dispatch @e::@f(%x, %n) : (tensor<?xf32>, index) -> tensor<4xf32>
  =>
    flow.tensor.trace "e::f inputs" = [%x : tensor<?xf32>{%d}]
    %r = flow.dispatch @e::@f(%x, %n) : (tensor<?xf32>, index) -> tensor<4xf32>
    flow.tensor.trace "e::f outputs" = [%r : tensor<4xf32>]

The pipeline runs it only where `trace_dispatch_tensors` asks for it, after equal executables were
merged, so that the names are those of the kernels that run. Every dispatch gets both traces, also
where one of them is empty: so they can be counted. Scalars are not shown. IREE:
`iree-flow-inject-dispatch-tracing`, which sees only the top level of a function; here dispatches in
loops and branches are traced too.

With `tensors=false` no tensor is shown, only that a dispatch begins and ends: `time_dispatches`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp, TensorType
from xdsl.ir import SSAValue
from xdsl.passes import ModulePass
from xdsl.rewriter import InsertPoint

from irees.dialects.flow import DispatchOp, TensorTraceOp
from irees.transforms.utils.shapes import IndexBuilder, dynamic_dims


def entry_name(op: DispatchOp) -> str:
    """`e::f` of @e::@f."""
    entry = op.entry_point
    return "::".join((entry.root_reference.data, *(n.data for n in entry.nested_references)))


def trace(op: DispatchOp, what: str, values: Sequence[SSAValue], point: InsertPoint) -> None:
    """dispatch  =>  dispatch and a trace of those values that are tensors"""
    builder = IndexBuilder(point)
    tensors = [value for value in values if isinstance(value.type, TensorType)]
    sizes = [size for value in tensors for size in dynamic_dims(value, builder)]
    made = TensorTraceOp(f"{entry_name(op)} {what}", tensors, sizes)
    made.location = op.location
    builder.insert(made)


@dataclass(frozen=True)
class TraceDispatchTensorsPass(ModulePass):
    """Dispatches show their inputs and outputs when they run."""

    name = "irees-trace-dispatch-tensors"

    tensors: bool = True

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for dispatch in [d for d in op.walk() if isinstance(d, DispatchOp)]:
            inputs, outputs = (dispatch.arguments, dispatch.res) if self.tensors else ((), ())
            trace(dispatch, "inputs", inputs, InsertPoint.before(dispatch))
            trace(dispatch, "outputs", outputs, InsertPoint.after(dispatch))
