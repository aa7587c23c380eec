"""
Decomposes ops of plug-ins into structured ops.

    %r = acme.squash %x : tensor<?xf32>
  =>
    %r = linalg.generic ... ins(%x) { x / (1 + |x|) }

The interface that the plug-in implements for the op (`irees.interfaces`) builds the structured ops.
These may contain plug-in ops, which are decomposed in turn. The pass runs at the end of the input
phase, so all later passes see only irees ops, and fuse, check and distribute them as usual.
`plugins` lists the enabled plug-ins (default: all). With `keep-evaluated`, ops that the interpreter
can evaluate stay. MLIR:
`AggregatedOpInterface::decomposeOperation`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation
from xdsl.passes import ModulePass
from xdsl.rewriter import Rewriter

from irees.errors import PluginError
from irees.interfaces import (
    OWN,
    building,
    domain_of,
    loops_model_of,
    model_of,
    values_of,
    why_not_in_loops,
)
from irees.rewrites import Fuel
from irees.transforms.utils.tensors import TensorBuilder


def decompose(op: Operation, model: Any) -> None:
    """
    acme.op(%x)  =>  the ops that its interface builds

    Raises PluginError if the interface fails or returns values of other types than the results.
    """
    method = "to_structured"
    with building(op, method):
        values = values_of(model.to_structured(op, TensorBuilder(op)), op, method)
        found = [value.type for value in values]
    expected = [result.type for result in op.results]
    if found != expected:
        have, want = (", ".join(map(str, kinds)) or "nothing" for kinds in (found, expected))
        raise PluginError(f"to_structured returns {have}, but must return {want}", op=op)
    Rewriter.replace_op(op, [], values)


@dataclass(frozen=True)
class DecomposePluginOpsPass(ModulePass):
    """Decomposes ops of plug-ins into structured ops."""

    name = "irees-decompose-plugin-ops"

    plugins: tuple[str, ...] | None = None
    keep_evaluated: bool = False

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        fuel = Fuel.of(self.name, op)
        while todo := [(o, m) for o in op.walk() if (m := self._model(o)) is not None]:
            for inner, model in todo:
                if fuel.is_spent:
                    raise PluginError("its decomposition contains itself", op=inner)
                fuel.burn(inner.name)
                decompose(inner, model)
        for inner in op.walk():
            if inner.name not in OWN and loops_model_of(inner) is not None:
                self._check(inner)

    def _model(self, op: Operation) -> Any:
        model = model_of(op, self.plugins)
        kept = not hasattr(model, "to_structured") or hasattr(model, "to_loops")
        if kept or (self.keep_evaluated and hasattr(model, "evaluate")):
            return None
        return model

    def _check(self, op: Operation) -> None:
        """Raises PluginError for an op with its own loops that cannot be in a kernel."""
        if model_of(op, self.plugins) is None:
            raise PluginError("the plug-in of this op is not enabled for this compilation", op=op)
        reason = why_not_in_loops(op)
        if reason is not None:
            raise PluginError(f"an op with loops of its own {reason}", op=op)
        if domain_of(op) is None:
            hint = "return its loops: they define which sizes must be equal"
            raise PluginError("domain returns nothing", op=op, hint=hint)
