"""
The dialects of irees: name tables, and a context that has all of them registered.

Dialects are imported on first use. Our own are modules `irees.dialects.<name>` that export a
`Dialect`. Additions to xDSL's dialects are in `irees.dialects.upstream.<name>`: when the dialect is
first loaded, `OPS` and `ATTRS` are added to xDSL's `Dialect`, and `patch()` fixes its classes in
place. If xDSL already has an op of the same name, xDSL's class is used unless the module lists the
name in `REPLACES`. A newer xDSL may thus gain the op.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib import import_module
from importlib.metadata import entry_points
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from xdsl.context import Context
    from xdsl.ir import Dialect

    DialectFactory = Callable[[], Dialect]

OWN: dict[str, str] = {
    "check": "check:Check",
    "flow": "flow:Flow",
    "hal": "hal:Hal",
    "iree_codegen": "iree_codegen:IreeCodegen",
    "iree_cpu": "iree_cpu:IreeCpu",
    "iree_encoding": "iree_encoding:IreeEncoding",
    "iree_gpu": "iree_gpu:IreeGpu",
    "iree_linalg_ext": "iree_linalg_ext:IreeLinalgExt",
    "iree_tensor_ext": "iree_tensor_ext:IreeTensorExt",
    "irees": "irees:Irees",
    "nvgpu": "nvgpu:Nvgpu",
    "nvvm": "nvvm:Nvvm",
    "panel": "panel:Panel",
    "stream": "stream:Stream",
    "tm_tensor": "tm_tensor:TMTensor",
    "util": "util:Util",
    "x86vector": "x86vector:X86Vector",
}
"""Dialect name => `module:object`, relative to this package."""

EXTENDED: tuple[str, ...] = (
    "affine",
    "arith",
    "builtin",
    "gpu",
    "linalg",
    "math",
    "memref",
    "ml_program",
    "scf",
    "tensor",
    "vector",
)
"""xDSL's dialects that `irees.dialects.upstream.<name>` extends."""


def _repair_literals() -> None:
    """Patches builtin's attribute parsing, which may run before any builtin op is loaded."""
    import_module("irees.dialects.upstream.builtin").patch()


def own_dialect(name: str) -> DialectFactory:
    """Returns a function that imports one of our own dialects."""

    def factory() -> Dialect:
        _repair_literals()
        module, _, attribute = OWN[name].partition(":")
        return getattr(import_module(f"irees.dialects.{module}"), attribute)

    return factory


def _extend(name: str, dialect: Dialect) -> Dialect:
    _repair_literals()
    module = import_module(f"irees.dialects.upstream.{name}")
    replaces: frozenset[str] = getattr(module, "REPLACES", frozenset())
    ops = [op for op in dialect._operations if op.name not in replaces]
    known = {op.name for op in ops}
    ops.extend(op for op in module.OPS if op.name not in known)
    dialect._operations[:] = ops
    attrs = {attr.name for attr in dialect._attributes}
    dialect._attributes.extend(
        attr for attr in getattr(module, "ATTRS", ()) if attr.name not in attrs
    )
    module.patch()
    return dialect


def extended_dialect(name: str, base: DialectFactory) -> DialectFactory:
    """Returns a function that loads xDSL's dialect, then extends and patches it."""

    def factory() -> Dialect:
        return _extend(name, base())

    factory._irees = True  # type: ignore[attr-defined]
    return factory


def extend_factories(factories: dict[str, DialectFactory]) -> None:
    """Wraps, in place, the factories of the dialects that we extend. Idempotent."""
    for name in EXTENDED:
        base = factories.get(name)
        if base is not None and not getattr(base, "_irees", False):
            factories[name] = extended_dialect(name, base)


@dataclass
class Neighbours:
    """Dialects and passes of all xDSL plug-ins, and the problems found while loading them."""

    dialects: dict[str, DialectFactory] = field(default_factory=dict)
    passes: dict[str, Callable[[], Any]] = field(default_factory=dict)
    problems: list[str] = field(default_factory=list)


def neighbours() -> Neighbours:
    """
    Returns the dialects and passes of all plug-ins, including xDSL's and irees' own.

    A plug-in that fails to import or is not a `Universe` is skipped, and of a name that two offer
    the first wins. Each case is a problem. xDSL's `get_multiverse` stops at the first one and does
    not name the plug-in.
    """
    from xdsl.universe import Universe

    found = Neighbours()
    for plug_in in sorted(entry_points(group="xdsl.universe"), key=lambda each: each.name):
        try:
            universe = plug_in.load()
        except (Exception, SystemExit) as error:
            reason = next(iter(str(error).splitlines()), "")
            text = f"plug-in {plug_in.name!r} ({plug_in.value}) does not import"
            found.problems.append(f"{text}: {type(error).__name__}: {reason}")
            continue
        if not isinstance(universe, Universe):
            found.problems.append(f"plug-in {plug_in.name!r} ({plug_in.value}) is no Universe")
            continue
        _take(found.dialects, universe.all_dialects, plug_in.name, found.problems)
        _take(found.passes, universe.all_passes, plug_in.name, found.problems)
    return found


def _take(table: dict[str, Any], offered: Any, name: str, problems: list[str]) -> None:
    offers = dict(offered.items())
    if twice := sorted(offers.keys() & table.keys()):
        problems.append(f"plug-in {name!r} offers what another does: {', '.join(twice)}")
    table |= {key: value for key, value in offers.items() if key not in table}


@cache
def all_factories() -> Mapping[str, DialectFactory]:
    """
    Returns a loader per dialect name: all plug-ins, xDSL and ours.

    A plug-in that fails to import or clashes loses only its own dialects. Cached, because finding
    the plug-ins reads a metadata file of every installed package.
    """
    from xdsl.universe import XDSL_UNIVERSE

    factories = {**neighbours().dialects, **XDSL_UNIVERSE.all_dialects}
    extend_factories(factories)
    for name in OWN:
        factories.setdefault(name, own_dialect(name))
    return factories


def get_context(*, allow_unregistered: bool = False) -> Context:
    """Returns a context with every dialect registered; each is loaded on first use."""
    from xdsl.context import Context

    _repair_literals()
    ctx = Context(allow_unregistered=allow_unregistered)
    for name, factory in all_factories().items():
        ctx.register_dialect(name, factory)
    return ctx


def extend_context(ctx: Context) -> Context:
    """
    Adds our dialects and our extensions of xDSL's dialects to an existing context, including
    dialects that are already loaded. Returns the same context.
    """
    for name, factory in all_factories().items():
        loaded = ctx._loaded_dialects.get(name)
        if loaded is None:
            if name in OWN and name in ctx._registered_dialects:
                continue
            ctx._registered_dialects[name] = factory
        elif name in EXTENDED:
            dialect = _extend(name, loaded)
            for op in dialect.operations:
                ctx._loaded_ops[op.name] = op
            for attr in dialect.attributes:
                if attr.name not in ctx._loaded_attrs and attr.name not in ctx._loaded_types:
                    ctx.load_attr_or_type(attr)
    return ctx


@cache
def get_op(name: str) -> type:
    """
    Returns the class that is registered under an op's name, e.g. `get_op("vector.gather")`: ours,
    or xDSL's if the installed version has the op.
    """
    return get_context().get_op(name)


__all__ = [
    "EXTENDED",
    "OWN",
    "all_factories",
    "extend_context",
    "extend_factories",
    "get_context",
    "get_op",
    "neighbours",
]
