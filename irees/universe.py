"""
The `xdsl.universe` entry point, through which `xdsl-opt` and other tools find irees.

Importing this module must be cheap and must not raise, because either would break every tool based
on xDSL. So it only holds tables of names; dialects, passes and targets are imported on demand. Ops
that are missing in xDSL's dialects are added by wrapping the factories in `XDSL_UNIVERSE`, since a
second dialect of the same name would be an error.
"""

from __future__ import annotations

from importlib import import_module
from importlib.metadata import entry_points
from typing import TYPE_CHECKING

from xdsl.universe import XDSL_UNIVERSE, Universe

from irees.dialects import OWN, extend_factories, own_dialect
from irees.transforms import get_all_passes

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any


def fenced_pass(load: Callable[[], Any]) -> Callable[[], Any]:
    """
    Wraps the loader of a pass for `xdsl-opt` and other tools. `apply` only raises IreesError: a
    VerifyError for xDSL's diagnostics, an InternalError for a bug of irees. A pass that runs alone
    has the budget of a compilation.
    """

    def factory() -> Any:
        from xdsl.utils.exceptions import DiagnosticException

        from irees.errors import VerifyError
        from irees.fence import fenced
        from irees.limits import budgeted

        base = load()

        def apply(self: Any, ctx: Any, op: Any) -> None:
            try:
                with budgeted():
                    base.apply(self, ctx, op)
            except DiagnosticException as error:
                raise VerifyError(str(error).splitlines()[0], op=self.name) from error

        members = {"apply": fenced(apply), "__module__": base.__module__, "__doc__": base.__doc__}
        return type(base.__name__, (base,), members)

    return factory


def fenced_target(load: Callable[[], Any]) -> Callable[[], Any]:
    """Wraps the loader of a target, so that `emit` only raises IreesError."""

    def factory() -> Any:
        from irees.fence import fenced

        base = load()
        members = {
            "emit": fenced(base.emit),
            "__module__": base.__module__,
            "__doc__": base.__doc__,
        }
        return type(base.__name__, (base,), members)

    return factory


def _lazy(module: str, name: str) -> Callable[[], Any]:
    return lambda: getattr(import_module(module), name)


class PoliteDict(dict):
    """
    A table that hides the dialects that another plugin also provides: `get_multiverse` rejects
    duplicates, and other plugins may define IREE's dialects. The check runs when the universes are
    merged, after all plugins are imported, so their order does not matter.
    """

    def items(self):
        taken: set[str] = set()
        for entry_point in entry_points(group="xdsl.universe"):
            try:
                other = entry_point.load()
            except Exception:
                continue
            if isinstance(other, Universe) and other is not UNIVERSE:
                taken |= set(dict.keys(other.all_dialects))
        return [(name, factory) for name, factory in dict.items(self) if name not in taken]


def offered_by_plugins(table: str) -> dict[str, Callable[[], Any]]:
    """Returns loaders of the plug-ins' objects, except names that xDSL or irees already has."""
    from irees.plugins import offered, resolve

    try:
        rows = offered(table)
    except Exception:  # every tool based on xDSL imports this module
        return {}
    taken = {*XDSL_UNIVERSE.all_dialects, *OWN} if table == "dialects" else {*get_all_passes()}
    if table == "passes":
        taken |= {*XDSL_UNIVERSE.all_passes}
    return {
        name: lambda home=home: resolve(home) for name, home in rows.items() if name not in taken
    }


extend_factories(XDSL_UNIVERSE.all_dialects)

UNIVERSE = Universe(
    all_dialects=PoliteDict(
        {name: own_dialect(name) for name in OWN} | offered_by_plugins("dialects")
    ),
    all_passes={
        name: fenced_pass(load)
        for name, load in (
            *get_all_passes().items(),
            *offered_by_plugins("passes").items(),
            ("irees-pipeline", _lazy("irees.pipeline", "IreesPipelinePass")),
        )
    },
    all_targets={
        "irees-c": fenced_target(_lazy("irees.backends.c.backend", "IreesCTarget")),
        "irees-cuda": fenced_target(_lazy("irees.backends.cuda.backend", "IreesCudaTarget")),
    },
)
