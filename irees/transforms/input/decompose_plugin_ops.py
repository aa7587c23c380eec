"""
Decomposes ops of plug-ins into structured ops.

    %r = acme.squash %x : tensor<?xf32>
  =>
    %r = linalg.generic ... ins(%x) { x / (1 + |x|) }

The plug-in's interface of the op (`irees.interfaces`) builds the ops. They may contain ops of a
plug-in again, which are decomposed in turn. The pass runs at the end of the input phase, so that
all following passes only see ops of irees: they fuse, check and distribute them as usual. `plugins`
names the plug-ins that take part, by default all. With `keep-evaluated`, ops stay that the
interpreter can evaluate. MLIR:
`AggregatedOpInterface::decomposeOperation`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation, SSAValue
from xdsl.passes import ModulePass
from xdsl.rewriter import Rewriter

from irees.errors import IreesError, PluginError
from irees.interfaces import model_of
from irees.rewrites import Fuel
from irees.transforms.utils.tensors import TensorBuilder


def decompose(op: Operation, model: Any) -> None:
    """
    acme.op(%x)  =>  the ops that its interface builds

    Raises PluginError if the interface fails, or returns other types than those of the results.
    """
    try:
        values: Sequence[SSAValue] = list(model.to_structured(op, TensorBuilder(op)))
        found = [value.type for value in values]
    except IreesError:
        raise
    except Exception as error:
        text = f"to_structured failed: {type(error).__name__}: {error}"
        raise PluginError(text, op=op) from error
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

    def _model(self, op: Operation) -> Any:
        model = model_of(op, self.plugins)
        return None if self.keep_evaluated and hasattr(model, "evaluate") else model
