"""
PyTorch programs in: `torch.export`, then each operator of the graph as linalg on tensors.

    module = import_torch(model.eval(), (x,))
    module = import_torch(torch.export.export(model, (x,)))

The graph is taken as it is exported: composites such as `linear`, attention and norms have
lowerings of their own; an operator without one is decomposed alone. Weights stay PyTorch's memory,
bound by name, and ops know the line of Python that they come from.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp

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
    A module with one function, `function`, that computes what the PyTorch program does.

    `inputs` and `kwargs` are example arguments of an nn.Module or of a function, `dynamic_shapes`
    says which of their dims may vary, as for `torch.export.export`; an ExportedProgram needs none
    of them. Raises an UnsupportedError for a program that PyTorch cannot export, or an operator
    that is not lowered.
    """
    return import_program(program, inputs, dynamic_shapes, kwargs, function).module


def import_program(
    program: Any,
    inputs: Sequence[Any] | None = None,
    dynamic_shapes: Any = None,
    kwargs: dict[str, Any] | None = None,
    function: str = "main",
) -> Imported:
    """The module of `import_torch` with the signature and the state of the program."""
    try:
        import torch
    except ImportError as error:
        raise UnsupportedError(
            f"importing a PyTorch program needs {error.name}", hint="pip install 'irees[torch]'"
        ) from None
    from .exporting import export, parameters_of
    from .program import import_exported

    parameters = None
    if not isinstance(program, torch.export.ExportedProgram):
        parameters = parameters_of(program)
    exported = export(program, inputs, kwargs, dynamic_shapes)
    return import_exported(exported, parameters, function)
