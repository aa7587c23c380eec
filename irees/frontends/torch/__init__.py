"""
Imports PyTorch programs: `torch.export`, then each operator of the graph as linalg on tensors.

    module = import_torch(model.eval(), (x,))
    module = import_torch(torch.export.export(model, (x,)))

The exported graph is lowered without a global decomposition: composites such as `linear`, attention
and norms have their own lowerings, and an operator without one is decomposed individually. Weights
alias PyTorch's memory and are bound by name. Ops keep the location of their Python line.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp

from irees.collection import rare_collections
from irees.errors import UnsupportedError
from irees.fence import fenced

from ..imported import Imported


@fenced
def import_torch(
    program: Any,
    inputs: Sequence[Any] | None = None,
    dynamic_shapes: Any = None,
    *,
    kwargs: dict[str, Any] | None = None,
    function: str = "main",
    ctx: Context | None = None,
) -> ModuleOp:
    """
    Imports a PyTorch program as a module with one function named `function`.

    `inputs` and `kwargs` are example arguments of an nn.Module or of a function. `dynamic_shapes`
    says which of their dims may vary, as in `torch.export.export`. An ExportedProgram needs none of
    them. Raises UnsupportedError if PyTorch cannot export the program or an operator has no
    lowering.
    """
    return import_program(program, inputs, dynamic_shapes, kwargs, function).module


@rare_collections()
def import_program(
    program: Any,
    inputs: Sequence[Any] | None = None,
    dynamic_shapes: Any = None,
    kwargs: dict[str, Any] | None = None,
    function: str = "main",
) -> Imported:
    """Imports a program as `import_torch` does, with its signature and state."""
    try:
        import torch
    except ImportError as error:
        raise UnsupportedError(
            f"importing a PyTorch program needs {error.name}", hint="pip install 'irees[torch]'"
        ) from None
    from .exporting import export, parameters_of
    from .program import import_exported
    from .sizes import ANY_SIZE, unchecked_bound

    parameters, unchecked = None, ANY_SIZE
    if not isinstance(program, torch.export.ExportedProgram):
        parameters, unchecked = parameters_of(program), unchecked_bound(dynamic_shapes)
    exported = export(program, inputs, kwargs, dynamic_shapes)
    return import_exported(exported, parameters, function, unchecked)
