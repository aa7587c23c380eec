"""
`compile`: from a program in any accepted form to something that can be called.

A program that is in the cache is found here and read, with nothing imported that knows about IR;
all others go on to `irees.build`.
"""

from __future__ import annotations

import gc
import threading
from collections.abc import Generator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from irees.errors import ArgumentError
from irees.fence import fenced, let_through
from irees.frontends.mlir import open_source
from irees.limits import budgeted
from irees.options import Options
from irees.program_cache import find, may_store, program_key, program_of, store
from irees.runtime.program import Program
from irees.target import Target

if TYPE_CHECKING:
    from xdsl.dialects.builtin import ModuleOp

    from irees.backends.reference.backend import ReferenceProgram
    from irees.build import Source
    from irees.phase import Announcement, Listener
    from irees.runtime.device_program import DeviceProgram

YOUNG_OBJECTS = 50_000
"""How many objects are made between two collections of cycles while a program is compiled."""

_compiling = threading.Lock()
_thresholds: list[tuple[int, int, int]] = []


@contextmanager
def rare_collections() -> Generator[None]:
    """
    Collects cycles rarely inside of the block: IR is made of them and is alive to the end.

    With Python's own thresholds a fifth of a compilation is looking for garbage where none is.
    """
    with _compiling:
        _thresholds.append(gc.get_threshold())
        first, *rest = _thresholds[-1]
        if first:  # 0 is the caller's way to have none
            gc.set_threshold(max(YOUNG_OBJECTS, first), *rest)
    try:
        yield
    finally:
        with _compiling:
            # The first compilation to begin found what the caller had chosen.
            chosen = _thresholds[0]
            _thresholds.pop()
            if not _thresholds:
                gc.set_threshold(*chosen)


def compile_text(source: str | Path, options: Options, **listeners: Any) -> Program:
    """
    Compiles MLIR text, or takes the program from the cache if it was compiled before. Listeners see
    the module and may change it, so a program that has any is compiled, and not stored.
    """
    opened = open_source(source)
    if any(listener is not None for listener in listeners.values()):
        from irees.build import build_opened

        return program_of(build_opened(opened, options, **listeners))
    key = program_key(opened, options, Target.parse(options.target))
    if (found := find(key, opened.blobs)) is not None:
        return program_of(found)
    from irees.build import build_opened

    built = build_opened(opened, options)
    if not may_store(built):
        return program_of(built)
    # Weights are written to the cache and copied to where kernels read them, which are two waits.
    with ThreadPoolExecutor(1) as pool:
        stored = pool.submit(store, key, built)
        program = program_of(built)
        stored.result()
    return program


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
    **options: Any,
) -> Program | ReferenceProgram | DeviceProgram | ModuleOp:
    """
    Compiles a program; with `to`, returns the module as it is after that phase, of a program for
    several devices with the modules of all of them.

    `inputs` and `kwargs` are example arguments, needed for a PyTorch module or function, and
    `dynamic_shapes` says which of their dims may vary, as for `torch.export.export`. The program
    is then called as the module is. `start` names the phase after
    which the source was saved. `before` hears of every pass that begins, `listener` of every one
    that has ended and `after` of every phase; a program with one of them is not cached. Other
    keywords are fields of `irees.options.Options`; `target="reference"` interprets the source.
    Raises an `irees.errors.IreesError`, and what the functions given here raise.
    """
    chosen = Options.make(**options)
    given: dict[str, Any] = {"before": before, "listener": listener, "after": after}
    listeners = {name: f if f is None else let_through(f) for name, f in given.items()}
    arguments = {"inputs": inputs, "kwargs": kwargs, "dynamic_shapes": dynamic_shapes}
    with budgeted(chosen.limit_overrides()):
        return _compiled(source, chosen, to, start, listeners, arguments)


def _compiled(
    source: Source,
    chosen: Options,
    to: str | None,
    start: str | None,
    listeners: dict[str, Any],
    arguments: dict[str, Any],
) -> Program | ReferenceProgram | DeviceProgram | ModuleOp:
    whole_text = isinstance(source, str | Path) and to is None and start is None
    if whole_text and not chosen.devices and chosen.target != "reference":
        return compile_text(source, chosen, **listeners)
    from irees import build

    if whole_text and chosen.devices:
        return build.compile_devices_text(source, chosen, **listeners)
    if chosen.target == "reference" and not chosen.devices and (to or start) is not None:
        raise ArgumentError(
            "target=reference interprets the source, and has no phases",
            hint="leave out the phase, or name another target",
        )
    imported = build.import_source(source, **arguments)
    module = imported.module
    if chosen.target == "reference" and not chosen.devices:
        return build.reference_program(module, chosen, imported)
    if to is not None:
        build.lower(module, chosen, start, to, **listeners)
        return module
    if chosen.devices:
        return build.compile_devices(module, chosen, start, **listeners)
    return program_of(build.build_imported(imported, chosen, start=start, **listeners))
