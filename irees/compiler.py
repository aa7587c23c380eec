"""
`compile`: compiles a program in any accepted form to a callable program.

This module reads a cached program without importing xDSL; on a miss it uses `irees.build`.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Unpack

from irees.collection import rare_collections
from irees.errors import ArgumentError
from irees.fence import fenced, let_through
from irees.frontends.mlir import open_source
from irees.frontends.onnx import is_onnx
from irees.hooks import Announcement, Hooks, Listener
from irees.limits import budgeted
from irees.options import Keywords, Options
from irees.program_cache import find, program_key, program_of, store
from irees.runtime.origin import Origin
from irees.runtime.program import Program
from irees.target import Target

if TYPE_CHECKING:
    from xdsl.dialects.builtin import ModuleOp

    from irees.backends.reference.backend import ReferenceProgram
    from irees.build import Source
    from irees.runtime.device_program import DeviceProgram


def compile_text(source: str | Path, options: Options, hooks: Hooks) -> Program:
    """
    Compiles MLIR text, or reads the program from the cache. If it is observed, and may be changed
    by that, it is always compiled and not stored.
    """
    opened = open_source(source)
    if hooks.observe:
        from irees.build import build_opened

        return program_of(build_opened(opened, options, hooks))
    key = program_key(opened, options, Target.parse(options.target))
    if (found := find(key, opened.blobs)) is not None:
        return program_of(found)
    from irees.build import build_opened

    built = build_opened(opened, options)
    store(key, built)
    return program_of(built)


@fenced
@rare_collections()
def compile(
    source: Source,
    inputs: Sequence[Any] | None = None,
    *,
    kwargs: dict[str, Any] | None = None,
    dynamic_shapes: Any = None,
    to: str | None = None,
    start: str | None = None,
    before: Announcement | None = None,
    listener: Listener | None = None,
    after: Listener | None = None,
    **options: Unpack[Keywords],
) -> Program | ReferenceProgram | DeviceProgram | ModuleOp:
    """
    Compiles a program. With `to`, returns the module after that phase instead; for a multi-device
    program it contains the modules of all devices.

    `inputs` and `kwargs` are example arguments, required for a PyTorch module or function.
    `dynamic_shapes` marks their dynamic dims, as for `torch.export.export`. The program is then
    called like the PyTorch module. `start` is the phase after which the source was saved. `before`
    is called before every pass, `listener` after every pass and `after` after every phase; a
    program with one of them is not cached. Other keywords are fields of `irees.options.Options`;
    `target="reference"` interprets the source. Raises an `irees.errors.IreesError`, and the errors
    of the callbacks.
    """
    chosen = Options.make(**options)
    hooks = Hooks(*(f if f is None else let_through(f) for f in (before, listener, after)))
    arguments = {"inputs": inputs, "kwargs": kwargs, "dynamic_shapes": dynamic_shapes}
    with budgeted(chosen.limit_overrides()):
        made = _compiled(source, chosen, to, start, hooks, arguments)
    if isinstance(made, Program) and start is None:
        made.origin = Origin.of(source, arguments, chosen.keywords())
    return made


def _is_mlir(source: Source) -> bool:
    """Whether a source is MLIR text or its path."""
    return isinstance(source, str | Path) and not is_onnx(source)


def _compiled(
    source: Source,
    chosen: Options,
    to: str | None,
    start: str | None,
    hooks: Hooks,
    arguments: dict[str, Any],
) -> Program | ReferenceProgram | DeviceProgram | ModuleOp:
    whole_text = _is_mlir(source) and to is None and start is None
    interpreted = chosen.target == "reference" and not chosen.devices
    if whole_text and not chosen.devices and not interpreted:
        return compile_text(source, chosen, hooks)
    from irees import build

    if whole_text and chosen.devices:
        return build.compile_devices_text(source, chosen, hooks)
    if interpreted and (to or start) is not None:
        raise ArgumentError(
            "target=reference interprets the source and has no phases",
            hint="omit the phase, or use another target",
        )
    imported = build.import_source(source, **arguments)
    module = imported.module
    if interpreted:
        return build.reference_program(module, chosen, imported)
    if to is not None:
        build.lower(module, chosen, start, to, hooks)
        return module
    if chosen.devices:
        return build.compile_devices(module, chosen, start, hooks=hooks)
    return program_of(build.build_imported(imported, chosen, start, hooks))
