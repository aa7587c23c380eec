"""
Inserts passes of callers and plug-ins into the phases.

    passes={"after:structured": "acme-x"}
  =>
    global-opt: ... irees-generalize-linalg-named-ops, acme-x, irees-store-narrow-types ...

A place is `before:X` or `after:X`. X is a phase, a pass (`canonicalize#2` for the second of that
name) or an anchor: a name for a point of the pipeline that every target has and that stays when
passes are renamed. The module is verified after each inserted pass. In the phase `codegen` a pass
runs on one executable after the other, each in a module of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from difflib import get_close_matches
from typing import Any

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass

from irees.accelerators import accelerator
from irees.errors import ArgumentError, IreesError, PluginError
from irees.insertion import Insertion
from irees.options import Options
from irees.pass_specs import parse_passes
from irees.phase import PassError, Phase
from irees.plugins import Installed, active, line_of, offered, resolve
from irees.target import Target
from irees.transforms import get_all_passes
from irees.transforms.utils.upstream_passes import OWN
from irees.verification import InvalidOp, verify


@dataclass(frozen=True)
class Anchor:
    """A point of the pipeline: next to a phase, or to the last of some passes of a target."""

    holds: str
    """Property of the module after this point."""
    of: tuple[str, ...]


ANCHORS = {
    "imported": Anchor("one block per function, tensors, named ops", ("input",)),
    "structured": Anchor(
        "all compute ops are linalg.generic or iree_linalg_ext",
        ("irees-generalize-linalg-named-ops",),
    ),
    "fused": Anchor(
        "elementwise chains are one op, constants are folded", ("irees-fold-constants#2",)
    ),
    "dispatched": Anchor("each kernel is an executable", ("dispatch-creation",)),
    "host": Anchor("the host works on buffers", ("stream",)),
    "buffers": Anchor("kernels work on buffers", ("irees-bufferize-dispatch",)),
    "configured": Anchor(
        "each op has its tile sizes", ("irees-select-strategy", "irees-gpu-select-strategy")
    ),
    "tiled": Anchor(
        "each group of ops is an scf.forall",
        ("irees-tile-and-distribute", "irees-gpu-form-workgroups"),
    ),
    "emit": Anchor("kernels are printed as C or CUDA", ("codegen",)),
}
"""Names for points of the pipeline, in its order."""

PART = "irees.part"
"""Attribute of a module that is one device's part of a multi-device program."""
LAST = frozenset({"after:emit", "after:verification", "before:verification"})
"""Places after the kernels are printed, where a pass would change them too late."""


def is_optional(each: ModulePass) -> bool:
    """Whether a pass declares itself optional: programs are correct without it."""
    return bool(getattr(type(each), "optional", False))


class InsertedPass(ModulePass):
    """
    A pass at a place: runs it and verifies the module.

    Raises PluginError with the pass, the place and the line that raised. A pass with the class
    attribute `optional = True` is skipped instead, like the optional passes of irees.
    """

    def __init__(self, inner: ModulePass, place: str):
        object.__setattr__(self, "inner", inner)
        object.__setattr__(self, "place", place)
        object.__setattr__(self, "name", inner.name)

    inner: ModulePass
    place: str

    def pipeline_pass_spec(self, *, include_default: bool = False) -> Any:
        """Returns the spec of the pass itself."""
        return self.inner.pipeline_pass_spec(include_default=include_default)

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        try:
            self.inner.apply(ctx, op)
            fault = None
        except IreesError:
            raise
        except Exception as error:
            fault = error
        if fault is None:
            try:
                verify(op)
                return
            except InvalidOp as error:
                fault, text = error, f"left invalid IR: {error}"
                where: dict[str, Any] = {"op": error.op}
        else:
            text = f"failed: {type(fault).__name__}: {next(iter(str(fault).splitlines()), '')}"
            where = {"location": line_of(fault)}
        if is_optional(self.inner):
            raise PassError(self.name, fault) from fault
        text = f"{self.name}, inserted at {self.place}, {text}"
        raise PluginError(text, **where) from fault


def with_insertions(
    phases: Sequence[Phase],
    options: Options,
    *,
    earlier: Sequence[Phase] = (),
    later: Sequence[Phase] = (),
) -> tuple[Phase, ...]:
    """
    Returns the phases with the passes that plug-ins and the caller insert, in this order.

    A multi-device program is split by separate phases, then all phases run on each part. Passes at
    places in the `earlier` phases have run already; passes at places that only the `later` phases
    have will run later. Raises ArgumentError for a place in none of the phases, PluginError.
    """
    found = [_leaving(phase, active(options.plugins)) for phase in phases]
    for insertion in insertions(options):
        try:
            if not has_place(earlier, insertion.place):
                _insert(insertion, found, later)
        except ArgumentError as error:
            if insertion.plugin is None:
                raise
            text = f"plug-in {insertion.plugin!r}: {error.message}"
            raise PluginError(text, hint=error.hint) from error
    return tuple(found)


def _insert(insertion: Insertion, found: list[Phase], later: Sequence[Phase]) -> None:
    place = insertion.place
    at = _find(found, place)
    if place in LAST or (at is None and not has_place(later, place)):
        raise _unknown(place, [*found, *later])
    if at is None:
        return
    added = [InsertedPass(each, place) for each in made(insertion)]
    number, position = at
    passes = found[number].passes
    # Several passes at one place run in the order in which they were given.
    while position < len(passes) and _is_at(passes[position], place):
        position += 1
    new = (*passes[:position], *added, *passes[position:])
    found[number] = replace(found[number], passes=new)


def _is_at(each: ModulePass, place: str) -> bool:
    return isinstance(each, InsertedPass) and each.place == place


def insertions(options: Options) -> list[Insertion]:
    """
    Returns the insertions of plug-ins, by their names, of the target, and of the caller.

    Raises PluginError for a target of a plug-in that this compilation does not use.
    """
    plugins = [
        (each.name, each.plugin) for each in active(options.plugins) if each.plugin is not None
    ]
    given = [
        Insertion(place, text, plugin=name)
        for name, plugin in plugins
        for place, text in plugin.inserts.items()
    ]
    given_target = options.target
    name = given_target.accelerator if isinstance(given_target, Target) else given_target
    name = name.partition(":")[0]
    if (found := accelerator(name)) is not None:
        owner = next((owner for owner, plugin in plugins if name in plugin.targets), None)
        if owner is None:
            raise PluginError(f"this compilation does not use the plug-in of target {name!r}")
        given += [Insertion(place, text, plugin=owner) for place, text in found.inserts.items()]
    assert isinstance(options.passes, tuple)
    return [*given, *options.passes]


def inserted_passes(options: Options) -> list[ModulePass]:
    """Returns all passes that are inserted somewhere. Raises ArgumentError or PluginError."""
    return [each for insertion in insertions(options) for each in made(insertion)]


def are_known(options: Options) -> bool:
    """Whether the cache key of a program determines what its inserted passes do."""
    packages = {"irees", "xdsl", *(each.package for each in active(options.plugins))}
    for insertion in insertions(options):
        if not insertion.is_known:
            return False
        homes = {type(each).__module__.partition(".")[0] for each in made(insertion)}
        if insertion.instance is None and not homes <= packages:
            return False
    return True


def made(insertion: Insertion) -> list[ModulePass]:
    """Returns the passes of an insertion. Raises ArgumentError or PluginError."""
    if insertion.instance is not None:
        return [insertion.instance]
    own: dict[str, Callable[[], Any]] = {
        **get_all_passes(),
        **{name: lambda each=each: each for name, each in OWN.items()},
        **{name: lambda home=home: resolve(home) for name, home in offered("passes").items()},
    }
    try:
        return parse_passes(insertion.spec, own)
    except ArgumentError:
        from irees.dialects import neighbours

        # Only now, since this imports every package that extends xDSL.
        return parse_passes(insertion.spec, {**neighbours().passes, **own})


def has_place(phases: Sequence[Phase], place: str) -> bool:
    """Whether a pass can be inserted at a place of these phases."""
    return place not in LAST and _find(phases, place) is not None


def phase_of(phases: Sequence[Phase], place: str) -> str | None:
    """Returns the name of the phase in which a place is; None if these phases lack it."""
    at = None if place in LAST else _find(phases, place)
    return None if at is None else phases[at[0]].name


def _find(phases: Sequence[Phase], place: str) -> tuple[int, int] | None:
    """Returns the number of the phase and the position among its passes, or None."""
    side, _, name = place.partition(":")
    anchor = ANCHORS.get(name)
    if name == "emit":
        # Printing is not a pass: the place before it is the end of its phase.
        side = "after"
    found = None
    for candidate in (name,) if anchor is None else anchor.of:
        found = _next_to(phases, side, candidate) or found
    return found


def _next_to(phases: Sequence[Phase], side: str, name: str) -> tuple[int, int] | None:
    for number, phase in enumerate(phases):
        if phase.name == name:
            return number, len(phase.passes) if side == "after" else 0
    wanted, _, occurrence = name.partition("#")
    places = [
        (number, position)
        for number, phase in enumerate(phases)
        for position, each in enumerate(phase.passes)
        if each.name == wanted and not isinstance(each, InsertedPass)
    ]
    if occurrence and not occurrence.isdecimal():
        return None
    which = int(occurrence or 1) - 1
    if not 0 <= which < len(places):
        return None
    number, position = places[which]
    return number, position + (side == "after")


def _leaving(phase: Phase, plugins: Iterable[Installed]) -> Phase:
    """Adds the dialects that plug-ins leave after a phase."""
    more = [
        dialect
        for each in plugins
        if each.plugin is not None
        for dialect in each.plugin.leaves.get(phase.name, ())
    ]
    return replace(phase, leaves=phase.leaves | frozenset(more)) if more else phase


def _unknown(place: str, phases: Sequence[Phase]) -> ArgumentError:
    if place in LAST:
        return ArgumentError(
            f"no pass can be inserted at {place}: kernels are already printed",
            hint="use before:emit",
        )
    side, _, name = place.partition(":")
    passes = [each.name for phase in phases for each in phase.passes]
    known = [*ANCHORS, *(phase.name for phase in phases)]
    near = get_close_matches(name, [*known, *passes], 3) or list(dict.fromkeys(known))
    places = [each for each in (f"{side}:{one}" for one in near) if each not in LAST]
    return ArgumentError(
        f"there is no {name!r} in this pipeline", hint=f"use {', '.join(places or ['before:emit'])}"
    )
