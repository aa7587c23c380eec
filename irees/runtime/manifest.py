"""
The manifest: the JSON description of a program, read into plain records.

It may come from a damaged file, so every field is checked when it is read.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from irees.errors import ArgumentError, ParseError
from irees.runtime.arguments import ScalarSpec, TensorSpec
from irees.target import Target

MAX_RANK = 64
MAX_DIM = (1 << 63) - 1


@dataclass(frozen=True)
class EqualDims:
    """A constraint of an op: dim `a_dim` of argument `a` equals dim `b_dim` of argument `b`."""

    a: int
    a_dim: int
    b: int
    b_dim: int
    op: str
    location: str


@dataclass(frozen=True)
class Trap:
    """The message and origin of one trap of a function."""

    message: str
    location: str | None
    op: str | None


@dataclass(frozen=True)
class FunctionInfo:
    """One public function; its entry point is `irees_entry_<entry>`."""

    name: str
    entry: int
    arguments: tuple[TensorSpec | ScalarSpec, ...]
    results: tuple[TensorSpec | ScalarSpec, ...]
    equal_dims: tuple[EqualDims, ...]
    constants: tuple[str, ...]
    traps: tuple[Trap, ...]
    updates: tuple[tuple[int, int], ...] = ()
    """(result, argument) pairs: results written into arguments instead of returned."""


@dataclass(frozen=True)
class TraceInfo:
    """The key and the tensors of one trace."""

    key: str
    values: tuple[TensorSpec, ...]


@dataclass(frozen=True)
class ProgramInfo:
    """The functions of a program and the machine that it was compiled for."""

    functions: tuple[FunctionInfo, ...]
    target: Target
    traces: tuple[TraceInfo, ...] = ()
    trace_directory: str | None = None
    timed: bool = False
    launches: tuple[Mapping[str, Any], ...] = ()

    @staticmethod
    def read(manifest: Mapping[str, Any]) -> ProgramInfo:
        """Reads a manifest. Raises ParseError when a field is missing or invalid."""
        functions = tuple(_function(item) for item in _list(manifest, "functions"))
        if len({function.name for function in functions}) != len(functions):
            raise _bad("functions", "distinct names")
        return ProgramInfo(
            functions,
            _target(_get(manifest, "target", dict, {})),
            tuple(_trace(item) for item in _list(manifest, "traces")),
            _get(manifest, "trace_directory", str, "") or None,
            manifest.get("time_dispatches") is True,
            tuple(_launch(item) for item in _list(manifest, "launches")),
        )


def target_record(target: Target) -> dict[str, Any]:
    """The manifest record of a target."""
    record = {"arch": target.arch, "machine": target.machine, "features": list(target.features)}
    return record if target.gpu is None else {"kind": target.kind, **record}


def _function(item: Any) -> FunctionInfo:
    if not isinstance(item, dict):
        raise _bad("functions", "a list of objects")
    arguments = tuple(read_spec(i, spec) for i, spec in enumerate(_list(item, "args")))
    return FunctionInfo(
        name=_get(item, "name", str),
        entry=_natural(_get(item, "entry", int), "entry"),
        arguments=arguments,
        results=tuple(read_spec(i, spec) for i, spec in enumerate(_list(item, "results"))),
        equal_dims=tuple(_equal_dims(rule, arguments) for rule in _list(item, "equal_dims")),
        constants=tuple(_text(name, "constants") for name in _list(item, "constants")),
        traps=tuple(_trap(trap) for trap in _list(item, "traps")),
        updates=tuple(_update(pair, arguments) for pair in _list(item, "updates")),
    )


def _update(pair: Any, arguments: tuple[TensorSpec | ScalarSpec, ...]) -> tuple[int, int]:
    if not isinstance(pair, list) or len(pair) != 2:
        raise _bad("updates", "pairs of a result and an argument")
    result, argument = (_natural(number, "updates") for number in pair)
    if argument >= len(arguments) or not arguments[argument].is_tensor:
        raise _bad("updates", "of arguments that are arrays")
    return result, argument


def read_spec(index: int, item: Any) -> TensorSpec | ScalarSpec:
    """Reads one argument or result. Raises ParseError when a field is invalid."""
    if not isinstance(item, dict):
        raise _bad("args", "a list of objects")
    kind, dtype = _get(item, "kind", str), _get(item, "dtype", str)
    name = _get(item, "name", str, "")
    if kind == "scalar":
        return ScalarSpec(index, dtype, name)
    if kind != "tensor":
        raise _bad("kind", "tensor or scalar")
    shape = _list(item, "shape")
    if len(shape) > MAX_RANK:
        raise _bad("shape", f"of rank {MAX_RANK} at most")
    sizes = tuple(None if size is None else _natural(size, "shape") for size in shape)
    return TensorSpec(index, dtype, sizes, name)


def _equal_dims(item: Any, arguments: tuple[TensorSpec | ScalarSpec, ...]) -> EqualDims:
    if not isinstance(item, dict):
        raise _bad("equal_dims", "a list of objects")
    ends: list[int] = []
    for end in ("a", "b"):
        pair = [_natural(number, "equal_dims") for number in _list(item, end)]
        if len(pair) != 2 or pair[0] >= len(arguments) or pair[1] >= len(arguments[pair[0]].shape):
            raise _bad("equal_dims", "an argument and a dim of it")
        ends += pair
    return EqualDims(*ends, op=_get(item, "op", str, ""), location=_get(item, "loc", str, ""))


def _trap(item: Any) -> Trap:
    if not isinstance(item, dict):
        raise _bad("traps", "a list of objects")
    place, op = _get(item, "loc", str, ""), _get(item, "op", str, "")
    return Trap(_get(item, "message", str), place or None, op or None)


def _launch(item: Any) -> Mapping[str, Any]:
    if not isinstance(item, dict):
        raise _bad("launches", "a list of objects")
    record: dict[str, Any] = {name: _get(item, name, str) for name in ("name", "source")}
    record["maps"] = _natural(_get(item, "maps", int, 0), "maps")
    return record | {n: _natural(_get(item, n, int), n) for n in ("threads", "shared_bytes")}


def _trace(item: Any) -> TraceInfo:
    if not isinstance(item, dict):
        raise _bad("traces", "a list of objects")
    specs = tuple(read_spec(i, spec) for i, spec in enumerate(_list(item, "values")))
    values = tuple(spec for spec in specs if isinstance(spec, TensorSpec))
    if len(values) != len(specs):
        raise _bad("traces", "of tensors only")
    return TraceInfo(_get(item, "key", str), values)


def _target(item: dict[str, Any]) -> Target:
    kind = _get(item, "kind", str, "cpu")
    if kind not in ("cpu", "cuda", "cuda-emulated"):
        raise _bad("kind", "cpu, cuda or cuda-emulated")
    try:
        if kind != "cpu":
            return Target(kind, _get(item, "arch", str), _get(item, "machine", str, ""))
    except ArgumentError as error:
        raise ParseError(f"the manifest's 'arch': {error.message}") from None
    return Target(
        arch=_get(item, "arch", str, "generic"),
        machine=_get(item, "machine", str, ""),
        features=tuple(_text(word, "features") for word in _list(item, "features")),
    )


def _get(item: Mapping[str, Any], name: str, kind: type, default: Any = None) -> Any:
    value = item.get(name)
    value = default if value is None else value
    if not isinstance(value, kind) or isinstance(value, bool):
        raise _bad(name, f"a {kind.__name__}")
    return value


def _list(item: Mapping[str, Any], name: str) -> list[Any]:
    return _get(item, name, list, [])


def _text(value: Any, name: str) -> str:
    if not isinstance(value, str):
        raise _bad(name, "a list of strings")
    return value


def _natural(value: Any, name: str) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= MAX_DIM:
        raise _bad(name, "a number from 0 to 2^63 - 1")
    return value


def _bad(name: str, wanted: str) -> ParseError:
    return ParseError(f"the manifest's {name!r} must be {wanted}")
