"""
Plug-ins: packages that add dialects, passes and lowerings to irees.

A package declares a `Plugin` and names it in its `pyproject.toml`:

    [project.entry-points."irees.plugins"]
    acme = "acme.plugin:PLUGIN"

A plug-in consists of names only, so that importing it imports neither xDSL nor numpy; the named
objects are imported on first use. A plug-in that fails to import is ignored with a warning and
shown by `irees doctor`. Name, version and a digest of the sources of every plug-in in use are part
of every cache key, since they determine the program.
"""

from __future__ import annotations

import hashlib
import traceback
import warnings
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib import import_module
from importlib.metadata import EntryPoint, entry_points
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from irees.errors import PluginError

GROUP = "irees.plugins"
API = 1
"""Version of the plug-in interface. Plug-ins written for another version are ignored."""
SOURCES = (".py", ".c", ".h", ".cpp", ".json")
"""Suffixes of the source files in a package's digest."""


@dataclass(frozen=True)
class Plugin:
    """
    The contributions of a package to irees. All values are names, as in `"acme.dialect:Acme"`.

    `dialects` maps dialect names to `xdsl.ir.Dialect` objects, `passes` pass names to classes of
    `xdsl.passes.ModulePass`. `inserts` maps places of the pipeline to passes that run there in
    every compilation, as in `{"after:structured": "acme-x{n=2}"}`. `interfaces` maps op names to
    the classes that lower and interpret them (see `irees.interfaces`). `leaves` maps names of
    phases to the dialects whose ops may be left after them. `targets` maps names of targets to
    `irees.accelerators.Accelerator` objects, `strategies` names of targets, or `cpu` or `cuda`, to
    classes that choose tile sizes for them (see `irees.strategies`).
    """

    name: str
    version: str = ""
    api: int = API
    dialects: Mapping[str, str] = field(default_factory=dict)
    passes: Mapping[str, str] = field(default_factory=dict)
    inserts: Mapping[str, str] = field(default_factory=dict)
    interfaces: Mapping[str, str] = field(default_factory=dict)
    leaves: Mapping[str, Collection[str]] = field(default_factory=dict)
    targets: Mapping[str, str] = field(default_factory=dict)
    strategies: Mapping[str, Collection[str]] = field(default_factory=dict)


@dataclass(frozen=True)
class Installed:
    """A plug-in that was found, or the reason why it cannot be used."""

    name: str
    home: str
    """The entry point, as `module:object`."""
    plugin: Plugin | None = None
    problem: str | None = None

    @property
    def identity(self) -> str:
        """Name, version and a digest of its sources, for cache keys."""
        version = self.plugin.version if self.plugin else ""
        return f"{self.name} {version} {sources_digest(self.home.partition(':')[0])}"

    @property
    def package(self) -> str:
        """The top-level package."""
        return self.home.partition(":")[0].partition(".")[0]


@cache
def installed() -> tuple[Installed, ...]:
    """
    Returns the plug-ins of this environment by name. If two offer a dialect, a pass or an op's
    lowering of the same name, the second is ignored.

    Warns about each unusable plug-in, once per process.
    """
    found: list[Installed] = []
    taken: dict[str, str] = {}
    for entry in sorted(entry_points(group=GROUP), key=lambda each: each.name):
        one = _loaded(entry, taken)
        if one.problem is not None:
            warnings.warn(f"irees: {one.problem}", RuntimeWarning, stacklevel=2)
        found.append(one)
    return tuple(found)


def active(names: Collection[str] | None = None) -> tuple[Installed, ...]:
    """
    Returns the plug-ins of a compilation: the named ones, or all usable ones.

    Raises PluginError for a named one that is not installed or unusable.
    """
    if names is None:
        return tuple(each for each in installed() if each.plugin is not None)
    by_name = {each.name: each for each in installed()}
    for name in names:
        if name not in by_name:
            have = ", ".join(by_name) or "there are none"
            raise PluginError(f"plug-in {name!r} is not installed", hint=f"installed: {have}")
        if (problem := by_name[name].problem) is not None:
            raise PluginError(problem)
    return tuple(by_name[name] for name in sorted(set(names)))


def offered(table: str, names: Collection[str] | None = None) -> dict[str, str]:
    """Merges a table, such as `dialects`, of all plug-ins or of the named ones."""
    merged: dict[str, str] = {}
    for each in active(names):
        merged |= getattr(each.plugin, table)
    return merged


def resolve(home: str) -> Any:
    """Imports `module:object`. Raises PluginError if it is missing or does not import."""
    module, _, path = home.partition(":")
    try:
        value: Any = import_module(module)
        for part in path.split("."):
            value = getattr(value, part)
    except Exception as error:
        raise PluginError(_import_failure(home, error)) from error
    return value


def offered_lists(table: str, key: str) -> list[str]:
    """Returns the names that all plug-ins list under a key of a table, such as `strategies`."""
    return [name for each in active() for name in getattr(each.plugin, table).get(key, ())]


def line_of(error: BaseException) -> str | None:
    """Returns file and line of the innermost frame of an error outside of irees and xDSL."""
    frames = traceback.extract_tb(error.__traceback__)
    ours = Path(__file__).parent
    foreign = [f for f in frames if ours not in Path(f.filename).parents]
    foreign = [f for f in foreign if not {"xdsl", "importlib"} & set(Path(f.filename).parts)]
    foreign = [f for f in foreign if not f.filename.startswith("<frozen ")]
    if isinstance(error, SyntaxError) and error.filename is not None:
        # No frame is in a file that does not parse.
        return f"{error.filename}:{error.lineno}"
    return f"{foreign[-1].filename}:{foreign[-1].lineno}" if foreign else None


def _import_failure(what: str, error: BaseException) -> str:
    """Returns the message for what does not import, with the line that raised."""
    text = next(iter(str(error).splitlines()), "")
    place = line_of(error)
    at = "" if place is None else f" ({place})"
    return f"{what} does not import: {type(error).__name__}: {text}{at}"


@cache
def sources_digest(module: str) -> str:
    """Returns a digest of the sources of a module's top-level package; empty if it has none."""
    digest, any_file = hashlib.sha256(), False
    for name, path in _sources(module.partition(".")[0]):
        digest.update(name.encode() + b"\0" + path.read_bytes())
        any_file = True
    return digest.hexdigest() if any_file else ""


def _sources(package: str) -> Iterator[tuple[str, Path]]:
    spec = find_spec(package)
    if spec is None:
        return
    for root in spec.submodule_search_locations or ():
        for path in sorted(Path(root).rglob("*")):
            if path.suffix in SOURCES and path.is_file():
                yield path.relative_to(root).as_posix(), path
    if not spec.submodule_search_locations and spec.origin and Path(spec.origin).is_file():
        yield package, Path(spec.origin)


def _loaded(entry: EntryPoint, taken: dict[str, str]) -> Installed:
    label = f"plug-in {entry.name!r} ({entry.value})"
    try:
        plugin = entry.load()
    except (Exception, SystemExit) as error:
        return Installed(entry.name, entry.value, problem=_import_failure(label, error))
    reason = _fault(plugin) or _clash(plugin, taken)
    if reason is not None:
        return Installed(entry.name, entry.value, problem=f"{label} is left out: {reason}")
    for name in _names(plugin):
        taken[name] = entry.name
    return Installed(entry.name, entry.value, plugin)


def _names(plugin: Plugin) -> list[str]:
    tables = {
        "dialect": plugin.dialects,
        "pass": plugin.passes,
        "lowering of": plugin.interfaces,
        "target": plugin.targets,
    }
    return [f"{kind} {name}" for kind, table in tables.items() for name in table]


def _clash(plugin: Plugin, taken: Mapping[str, str]) -> str | None:
    for name in _names(plugin):
        if name in taken:
            return f"plug-in {taken[name]!r} has the {name}, too"
    return None


def are_names(value: Any) -> bool:
    """Whether a value is a sequence or a set of strings, but not a string."""
    return isinstance(value, list | tuple | set | frozenset) and all(
        isinstance(name, str) for name in value
    )


def _fault(plugin: Any) -> str | None:
    """Returns why this version cannot use an object as a plug-in, or None."""
    if not isinstance(plugin, Plugin):
        return f"it is a {type(plugin).__name__}, but must be an irees.plugins.Plugin"
    if plugin.api != API:
        return f"it was made for version {plugin.api} of the interface, and this is {API}"
    for table in ("dialects", "passes", "inserts", "interfaces", "targets"):
        rows = getattr(plugin, table)
        if not isinstance(rows, Mapping) or not all(
            isinstance(text, str) for pair in rows.items() for text in pair
        ):
            return f"{table} must map names to names"
    for table, what in (
        ("leaves", "phases to sequences of dialects"),
        ("strategies", "targets to sequences of names"),
    ):
        rows = getattr(plugin, table)
        if not isinstance(rows, Mapping) or not all(map(are_names, (tuple(rows), *rows.values()))):
            return f"{table} must map {what}"
    if taken := {"cpu", "cuda", "cuda-emulated", "reference"} & set(plugin.targets):
        return f"target {min(taken)} is one of irees"
    if any(name.startswith("irees-") for name in plugin.passes):
        return "names of passes that begin with irees- are those of irees"
    return None
