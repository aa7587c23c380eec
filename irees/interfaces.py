"""
What a plug-in says about an op of its own: how it is lowered, and what it means.

A plug-in maps op names to classes in `Plugin.interfaces`. Such a class has static methods:

    to_structured(op, builder) -> Sequence[SSAValue]
        Builds ops of linalg, tensor, arith and the like that compute the results of the op; one
        value per result, of the same type. `builder` is an `irees.building.TensorBuilder` in front
        of the op. Required. An op that decomposes in this way compiles for every target.
    evaluate(op, *operands) -> Sequence[Any]
        Returns the results of the op for numpy arrays and numbers, for `target="reference"`. By
        default the decomposition is interpreted, which cannot find a fault of the decomposition.

MLIR: external models of interfaces, such as `AggregatedOpInterface` and `TilingInterface`.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any

from irees.errors import PluginError
from irees.plugins import offered, resolve

if TYPE_CHECKING:
    from xdsl.ir import Operation

METHODS = ("to_structured", "evaluate")


def model_of(op: Operation, plugins: tuple[str, ...] | None = None) -> Any:
    """
    Returns the class that a plug-in names for an op, or None: any plug-in, or the given ones.

    Raises PluginError.
    """
    return _model(op.name, plugins)


@cache
def _model(name: str, plugins: tuple[str, ...] | None) -> Any:
    home = offered("interfaces", plugins).get(name)
    if home is None:
        return None
    model = resolve(home)
    unknown = [each for each in vars(model) if not each.startswith("_") and each not in METHODS]
    if unknown:
        hint = f"an interface has {' and '.join(METHODS)}; begin names of helpers with _"
        raise PluginError(f"{home}: {unknown[0]} is no method of an interface", op=name, hint=hint)
    if not callable(getattr(model, "to_structured", None)):
        hint = "implement to_structured(op, builder)"
        raise PluginError(f"{home} does not say how the op is lowered", op=name, hint=hint)
    return model
