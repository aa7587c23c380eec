"""
The dialects of irees: tables of names, and a context that knows all of them.

Nothing is imported here. A dialect of ours is a module `irees.dialects.<name>` that exports a
`Dialect`; what xDSL's own dialects lack is in `irees.dialects.upstream.<name>`, whose `OPS` and
`ATTRS` are added to xDSL's `Dialect` and whose `patch()` repairs its classes in place the first
time that the dialect is loaded. A class of ours that has the name of an op of xDSL is used only
where the module lists that name in `REPLACES`; everywhere else upstream wins, so that a newer
xDSL may gain the op.
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
    "stream": "stream:Stream",
    "tm_tensor": "tm_tensor:TMTensor",
    "util": "util:Util",
    "x86vector": "x86vector:X86Vector",
}
"""Dialect name => `module:object` below this folder."""

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
"""xDSL's dialects to which `irees.dialects.upstream.<name>` adds."""


def _repair_literals() -> None:
    """Repairs how attributes are read, which may be before an op of builtin is met."""
    import_module("irees.dialects.upstream.builtin").patch()


def own_dialect(name: str) -> DialectFactory:
    """A function that imports one of our own dialects."""

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
    """A function that loads xDSL's dialect, adds what it lacks, and repairs what it has."""

    def factory() -> Dialect:
        return _extend(name, base())

    factory._irees = True  # type: ignore[attr-defined]
    return factory


def extend_factories(factories: dict[str, DialectFactory]) -> None:
    """
    Wrap, in place, the factories of the dialects that we add to. Doing it twice changes
    nothing.
    """
    for name in EXTENDED:
        base = factories.get(name)
        if base is not None and not getattr(base, "_irees", False):
            factories[name] = extended_dialect(name, base)


@dataclass
class Neighbours:
    """What the plug-ins of xDSL offer together, and what is wrong with those that offer nothing."""

    dialects: dict[str, DialectFactory] = field(default_factory=dict)
    passes: dict[str, Callable[[], Any]] = field(default_factory=dict)
    problems: list[str] = field(default_factory=list)


def neighbours() -> Neighbours:
    """
    The dialects and passes of all plug-ins, xDSL's and irees' own among them.

    One that does not import, is no Universe, or has a name that another has costs what it offers
    and no more: xDSL's own `get_multiverse` stops at the first of them, and does not name it.
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
    Every dialect of the multiverse, ours and xDSL's included, as functions that load it.
    A neighbour that cannot be imported, or that clashes, costs only its own dialects.

    Looked for once: to find the neighbours reads a file of each package that is installed.
    """
    from xdsl.universe import XDSL_UNIVERSE

    factories = {**neighbours().dialects, **XDSL_UNIVERSE.all_dialects}
    extend_factories(factories)
    for name in OWN:
        factories.setdefault(name, own_dialect(name))
    return factories


def get_context(*, allow_unregistered: bool = False) -> Context:
    """A context that knows every dialect; each is loaded when the first op of it is met."""
    from xdsl.context import Context

    _repair_literals()
    ctx = Context(allow_unregistered=allow_unregistered)
    for name, factory in all_factories().items():
        ctx.register_dialect(name, factory)
    return ctx


def extend_context(ctx: Context) -> Context:
    """
    Give a context that somebody else made what irees needs: our dialects, and our additions to
    xDSL's dialects, also to those that are loaded already. Returns the same context.
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
    The class that is registered under an op's name, e.g. `get_op("vector.gather")`: ours, or that
    of an xDSL which has gained the op since.
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
