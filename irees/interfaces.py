"""
Interfaces of plug-in ops: how they are lowered, and how they are interpreted.

A plug-in maps op names to classes in `Plugin.interfaces`. Such a class has static methods of one of
three kinds. First, `to_structured`, for an op that decomposes into structured ops:

    to_structured(op, builder) -> Sequence[SSAValue]
        Builds ops of linalg, tensor, arith and the like that compute the results of the op; one
        value per result, of the same type. `builder` is an `irees.building.TensorBuilder` before
        the op. An op that decomposes in this way compiles for every target.
    evaluate(op, *operands) -> Sequence[Any]
        Returns the results of the op for numpy arrays and numbers, for `target="reference"`. By
        default the decomposition is interpreted, which cannot reveal errors in the decomposition.

Second, `domain`, `to_loops` and `evaluate`, for an op that builds its own loops. Such an op is in
destination-passing style: its property `outputs` has its last operands, each result has the type of
one of them, and its operands may be memrefs; it then has no results.

    domain(op) -> Domain
        The loops of the op, and how they index its operands. Determines how the op is tiled and
        which sizes must be equal.
    to_loops(op, builder) -> None
        Builds loops, loads and stores that implement the op; its operands are memrefs.
        `builder` is an `irees.building.IndexBuilder` before the op.
    to_threads(op, builder, room) -> str | None
        Like `to_loops`, for all threads of a GPU workgroup with `room` bytes of free shared memory;
        or returns why not. By default one thread runs the loops of `to_loops`.
    flops(op, points) -> int
        The number of arithmetic operations in `points` iterations. By default one each.
    reads(op, number) -> bool
        Whether the op reads output `number` before it writes it. By default it does, so the output
        keeps its old elements; if not, the op must write all of them, since nothing else does.
    updates = True
        The op replaces some elements of its only output, and leaves the others as they are, like a
        scatter: the output is updated in place if nothing else reads it. By default False.
    leads = True
        The op justifies a kernel, like a contraction: it is not fused into kernels of its
        producers, and ops fused into its kernel preserve its parallel loops. By default False.

Third, `to_c`, `places` and `evaluate`, for an instruction of an accelerator
(`irees.accelerators`), which stays in kernels until they are printed:

    to_c(op, printer) -> None
        Prints the op: `printer.line(text)` adds a line, `printer.name(value)` is a scalar,
        `printer.buffer(value)` a memref, `printer.include(text)` puts a text before the kernel.
    places(op, number) -> Sequence[Place]
        The elements of memrefs that the op accesses; irees proves that they are in bounds. `number`
        maps an index value to an expression, to which ints and other expressions can be added.

The iree_linalg_ext ops that build their own loops are rows of the same table (`OWN`). MLIR:
external models of interfaces, such as `AggregatedOpInterface`, `DestinationStyleOpInterface` and
`TilingInterface`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from math import prod
from typing import Any

from xdsl.dialects.builtin import ShapedType, TensorType
from xdsl.ir import Operation, SSAValue
from xdsl.ir.affine import AffineDimExpr, AffineMap
from xdsl.utils.exceptions import VerifyException

from irees.errors import IreesError, PluginError
from irees.plugins import line_of, offered, resolve

DECOMPOSES = ("to_structured",)
LOOPS = ("domain", "to_loops", "evaluate")
CODE = ("to_c", "places", "evaluate")
METHODS = (
    *(*DECOMPOSES, *LOOPS, "to_threads", "flops", "reads", "updates", "leads"),
    *("to_c", "places"),
)

OWN = {
    f"iree_linalg_ext.{name}": f"irees.analysis.linalg_ext_models:{model}"
    for name, model in {
        "attention": "Attention",
        "scan": "Scan",
        "scatter": "Scatter",
        "sort": "Sort",
        "topk_v2": "Topk",
    }.items()
} | {"irees.kernel": "irees.analysis.kernel_model:Kernel"}
"""Interface classes of irees' own ops, by op name."""


@dataclass(frozen=True)
class Domain:
    """
    The loop nest of an op over its operands.

    `kinds` has "parallel" or "reduction" for each loop; the tiles of parallel loops are independent
    of each other. `maps` has one map for each operand, from the loops to the index of an element,
    or None for an operand that is not a tensor. Dims that are indexed by the same loop must be
    equal, except those in `shorter`, pairs of operand and axis, which may be smaller.
    """

    kinds: tuple[str, ...]
    maps: tuple[AffineMap | None, ...]
    shorter: frozenset[tuple[int, int]] = frozenset()

    def sizes(self, op: Operation) -> tuple[int, ...]:
        """Returns the trip count of each loop; -1 if no operand has a static size along it."""
        found = [-1] * len(self.kinds)
        for number, (value, indexing) in enumerate(zip(op.operands, self.maps, strict=True)):
            if indexing is None or not isinstance(value.type, ShapedType):
                continue
            for axis, size in enumerate(value.type.get_shape()):
                expr = indexing.results[axis]
                if isinstance(expr, AffineDimExpr) and (number, axis) not in self.shorter:
                    found[expr.position] = max(found[expr.position], size)
        return tuple(found)


@dataclass(frozen=True)
class Place:
    """
    An access of an instruction to a memref: for each dim the first index and the number of
    elements. Both are ints or expressions of `number`.
    """

    memory: SSAValue
    first: Sequence[Any]
    counts: Sequence[Any]
    writes: bool = False


def model_of(op: Operation, plugins: tuple[str, ...] | None = None) -> Any:
    """
    Returns the interface class of an op in all plug-ins, or in the given ones; None if it has none.

    Raises PluginError.
    """
    return _model(op.name, plugins)


def loops_model_of(op: Operation) -> Any:
    """
    Returns the interface class, of irees or a plug-in, of an op that builds its own loops, or None.

    Raises PluginError.
    """
    return _loops_model(op.name)


def domain_of(op: Operation) -> Domain | None:
    """
    Returns the loops of an op that builds its own loops; None for other ops, or if unknown.

    Raises PluginError if a plug-in's `domain` fails, or does not fit the operands.
    """
    model = loops_model_of(op)
    if model is None or not hasattr(model, "domain"):
        return None
    with blamed(op, "domain"):
        domain = model.domain(op)
    fault = None if domain is None else _misfit(op, domain)
    if fault is not None:
        raise PluginError(f"domain {fault}", op=op)
    return domain


@contextmanager
def blamed(op: Operation, method: str) -> Iterator[None]:
    """Converts an error in a plug-in's method to a PluginError with the op and the source line."""
    try:
        yield
    except IreesError:
        raise
    except Exception as error:
        if op.name in OWN:
            raise
        text = next((f": {line}" for line in str(error).splitlines()), "")
        where = line_of(error)
        place = f" ({where})" if where else ""
        message = f"{method} failed: {type(error).__name__}{text}{place}"
        raise PluginError(message, op=op) from error


@contextmanager
def building(op: Operation, method: str) -> Iterator[None]:
    """As `blamed`, for a method that builds ops in front of `op`. They must be valid."""
    before = op.prev_op
    with blamed(op, method):
        yield
    block = op.parent
    if op.name in OWN or block is None:
        return
    made = block.first_op if before is None else before.next_op
    while made is not None and made is not op:
        for inner in made.walk():
            _verify_built(inner, op, method)
        made = made.next_op


def _verify_built(made: Operation, op: Operation, method: str) -> None:
    try:
        made.verify(verify_nested_ops=False)
    except VerifyException as error:
        text = " ".join(str(error).split())
        raise PluginError(f"{method} builds an invalid {made.name}: {text}", op=op) from error


def values_of(returned: Any, op: Operation, method: str) -> list[Any]:
    """Returns the values that a method returned. Raises PluginError if it is no list or tuple."""
    if not isinstance(returned, list | tuple):
        have = "nothing" if returned is None else f"a {type(returned).__name__}"
        hint = "return a list, also of one value"
        raise PluginError(f"{method} returns {have}, but must return a list", op=op, hint=hint)
    return list(returned)


def flops_in_loops(op: Operation) -> int | None:
    """
    Returns the arithmetic operations of an op that builds its own loops; None if they depend on a
    dynamic size, 0 for other ops.
    """
    domain = domain_of(op)
    if domain is None:
        return 0
    sizes = domain.sizes(op)
    if min(sizes, default=1) < 0:
        return None
    flops = getattr(loops_model_of(op), "flops", None)
    if flops is None:
        return prod(sizes)
    with blamed(op, "flops"):
        found = flops(op, prod(sizes))
    if not isinstance(found, int) or found < 0:
        raise PluginError(f"flops returns {found!r}, but must return an int of at least 0", op=op)
    return found


def reads_output(op: Operation, number: int) -> bool:
    """Whether an op that builds its own loops reads an output before it writes it."""
    reads = getattr(loops_model_of(op), "reads", None)
    if reads is None:
        return True
    with blamed(op, "reads"):
        return bool(reads(op, number))


def outputs_of(op: Operation) -> list[SSAValue]:
    """Returns the output operands of an op that builds its own loops."""
    return list(op.outputs)  # type: ignore[attr-defined]


def _misfit(op: Operation, domain: Any) -> str | None:
    """Returns why a domain is invalid, or None."""
    if not isinstance(domain, Domain):
        return f"returns a {type(domain).__name__}, but must return an irees.interfaces.Domain"
    kinds, maps = domain.kinds, domain.maps
    if not isinstance(kinds, list | tuple) or not isinstance(maps, list | tuple):
        return "must have a tuple of kinds and a tuple of maps"
    if any(kind not in ("parallel", "reduction") for kind in kinds):
        return (
            f"has loops of the kinds {', '.join(map(str, kinds))}, but each must be 'parallel' or "
            "'reduction'"
        )
    if len(maps) != len(op.operands):
        return f"has {len(maps)} maps for {len(op.operands)} operands"
    for number, (value, indexing) in enumerate(zip(op.operands, maps, strict=True)):
        if (reason := _misfit_map(number, value, indexing, len(kinds))) is not None:
            return reason
    places = {(n, axis) for n, m in enumerate(maps) if m for axis in range(len(m.results))}
    if not isinstance(domain.shorter, set | frozenset) or not domain.shorter <= places:
        return "must have pairs of an operand and one of its axes in `shorter`"
    return _endless(domain)


def _misfit_map(number: int, value: SSAValue, indexing: Any, loops: int) -> str | None:
    """Returns why the map of an operand is invalid, or None."""
    rank = value.type.get_num_dims() if isinstance(value.type, ShapedType) else None
    if indexing is not None and not isinstance(indexing, AffineMap):
        return f"has a {type(indexing).__name__} for operand {number}, but must have an AffineMap"
    if (indexing is None) != (rank is None):
        return f"must have a map for operand {number} if it is a tensor, and only then"
    if indexing is None:
        return None
    if indexing.num_dims != loops or indexing.num_symbols:
        return f"has {loops} loops, but map {number} has others"
    if len(indexing.results) != rank:
        return f"must index operand {number} by {rank} expressions"
    if any(dim >= loops for dim in indexing.used_dims()):
        return f"has {loops} loops, but map {number} uses others"
    return None


def _endless(domain: Domain) -> str | None:
    """Returns that an index is computed from a loop that no dim has the length of, or None."""
    plain: set[int] = set()
    used: set[int] = set()
    for number, indexing in enumerate(domain.maps):
        for axis, expr in enumerate(() if indexing is None else indexing.results):
            if isinstance(expr, AffineDimExpr) and (number, axis) not in domain.shorter:
                plain.add(expr.position)
            else:
                used |= expr.used_dims()
    missing = sorted(used - plain)
    return f"has no operand that says how far loop {missing[0]} goes" if missing else None


def why_not_in_loops(op: Operation) -> str | None:
    """Returns why an op that builds its own loops violates destination-passing style, or None."""
    outputs = getattr(op, "outputs", None)
    if outputs is None:
        return "has no property `outputs`, the operands that it writes"
    kinds = [value.type for value in outputs]
    if list(op.operands)[len(op.operands) - len(kinds) :] != list(outputs):
        return "must have its outputs as its last operands"
    if [result.type for result in op.results] != [k for k in kinds if isinstance(k, TensorType)]:
        return "must have one result per output, of the same type"
    return None


def places_of(op: Operation, number: Callable[[SSAValue], Any]) -> Sequence[Place] | None:
    """Returns the accesses of a plug-in's instruction, None for other ops. Raises PluginError."""
    model = model_of(op)
    if model is None or not hasattr(model, "places"):
        return None
    with blamed(op, "places"):
        return list(model.places(op, number))


@cache
def _loops_model(name: str) -> Any:
    if name in OWN:
        return resolve(OWN[name])
    model = _model(name, None)
    return model if model is not None and hasattr(model, "to_loops") else None


@cache
def _model(name: str, plugins: tuple[str, ...] | None) -> Any:
    home = offered("interfaces", plugins).get(name)
    if home is None:
        return None
    model = resolve(home)
    unknown = [each for each in vars(model) if not each.startswith("_") and each not in METHODS]
    if unknown:
        hint = f"an interface has {', '.join(METHODS)}; begin names of helpers with _"
        raise PluginError(f"{home}: {unknown[0]} is no method of an interface", op=name, hint=hint)
    have = [each for each in METHODS if callable(getattr(model, each, None))]
    for wanted in (LOOPS, CODE):
        missing = [each for each in wanted if each not in have]
        first = "to_c" if wanted is CODE else "to_loops"
        if first in have and missing:
            hint = f"implement {' and '.join(missing)}"
            raise PluginError(f"{home} has {first}, but no {missing[0]}", op=name, hint=hint)
    if not {"to_structured", "to_loops", "to_c"} & set(have):
        hint = "implement to_structured(op, builder), to_loops(op, builder) or to_c(op, printer)"
        raise PluginError(f"{home} does not say how the op is lowered", op=name, hint=hint)
    return model


def clear() -> None:
    """Clears the cached interface classes, after the set of plug-ins has changed."""
    _model.cache_clear()
    _loops_model.cache_clear()
