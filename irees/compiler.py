"""
`compile`: from a program in any accepted form to something that can be called.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from xdsl.dialects.builtin import ModuleOp

from irees.backends.c.backend import emit_program
from irees.backends.c.toolchain import compile_library, runtime_library
from irees.dialects import get_context
from irees.options import Options
from irees.phase import Listener
from irees.pipeline import run_phases
from irees.runtime.manifest import target_record
from irees.runtime.program import Program
from irees.target import Target

Source = Any
"""A path, MLIR text, an xDSL ModuleOp, a torch ExportedProgram or nn.Module."""


def import_source(source: Source, inputs: Sequence[Any] | None = None) -> ModuleOp:
    """
    The module behind a source. A ModuleOp is cloned, so that the caller's stays as it is.

    Raises ParseError, VerifyError, LimitExceededError or UnsupportedError.
    """
    if isinstance(source, ModuleOp):
        return source.clone()
    if isinstance(source, str | Path):
        from irees.frontends.mlir import import_mlir

        return import_mlir(source)
    from irees.frontends.torch import import_torch

    return import_torch(source, inputs)


def compile(
    source: Source,
    inputs: Sequence[Any] | None = None,
    *,
    to: str | None = None,
    start: str | None = None,
    listener: Listener | None = None,
    after: Listener | None = None,
    **options: Any,
) -> Program | ModuleOp:
    """
    Compiles a program; with `to`, returns the module as it is after that phase.

    `inputs` are example inputs, needed for a torch module. Other keywords are fields of
    `irees.options.Options`. Raises an `irees.errors.IreesError`.
    """
    chosen = Options.make(**options)
    module = import_source(source, inputs)
    run_phases(get_context(), module, chosen, start=start, to=to, listener=listener, after=after)
    if to is not None:
        return module
    target = chosen.target if isinstance(chosen.target, Target) else Target.parse(chosen.target)
    sources = emit_program(module)
    library = compile_library(
        sources.texts, target=target, fp=chosen.fp, opt_level=chosen.opt_level
    )
    sources.manifest["target"] = target_record(target)
    return Program(
        library,
        sources.manifest,
        sources.constants,
        runtime=runtime_library(),
        sources=sources.texts,
    )
