"""
Traces the input and output tensors of every dispatch.

    %r = flow.dispatch @e::@f(%x, %n) : (tensor<?xf32>, index) -> tensor<4xf32>
  =>
    flow.tensor.trace "e::f inputs" = [%x : tensor<?xf32>{%d}]
    %r = flow.dispatch @e::@f(%x, %n) : (tensor<?xf32>, index) -> tensor<4xf32>
    flow.tensor.trace "e::f outputs" = [%r : tensor<4xf32>]

The pipeline runs the pass only with the option `trace_dispatch_tensors`, after equal executables
are merged, so the names are those of the executed kernels. Every dispatch gets both traces, even if
one is empty, so that traces can be counted. Scalars are not traced. IREE:
`iree-flow-inject-dispatch-tracing`, which handles only the top level of a function; this pass also
traces dispatches in loops and branches.

With `tensors=false`, traces have no tensors and only mark the start and end of a dispatch, for
`time_dispatches`.
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
    """Returns `e::f` for @e::@f."""
    entry = op.entry_point
    return "::".join((entry.root_reference.data, *(n.data for n in entry.nested_references)))


def trace(op: DispatchOp, what: str, values: Sequence[SSAValue], point: InsertPoint) -> None:
    """dispatch  =>  dispatch and a trace of the tensors among `values`"""
    builder = IndexBuilder(point)
    tensors = [value for value in values if isinstance(value.type, TensorType)]
    sizes = [size for value in tensors for size in dynamic_dims(value, builder)]
    made = TensorTraceOp(f"{entry_name(op)} {what}", tensors, sizes)
    made.location = op.location
    builder.insert(made)


@dataclass(frozen=True)
class TraceDispatchTensorsPass(ModulePass):
    """Traces the inputs and outputs of dispatches."""

    name = "irees-trace-dispatch-tensors"

    tensors: bool = True

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for dispatch in [d for d in op.walk() if isinstance(d, DispatchOp)]:
            inputs, outputs = (dispatch.arguments, dispatch.res) if self.tensors else ((), ())
            trace(dispatch, "inputs", inputs, InsertPoint.before(dispatch))
            trace(dispatch, "outputs", outputs, InsertPoint.after(dispatch))
