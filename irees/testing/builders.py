"""
Op builders for random programs: each function adds one or a few ops to a program.

A builder never rejects a draw. If no existing value fits, it adapts one (a smaller tensor, a clamp,
another element type) or adds a simpler op.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import permutations
from math import prod
from typing import Any

import numpy as np
from hypothesis import strategies as st

from irees.testing.scalars import Body, Scalar, as_element
from irees.testing.strategies import (
    DTYPES,
    EXACT_LIMIT,
    FLOATS,
    INTEGERS,
    Dim,
    Value,
    Writer,
)
from irees.testing.tolerances import EXACT, Tolerance, ulps

Builder = Callable[[Writer], Any]
BUILDERS: dict[str, Builder] = {}


def builder(function: Builder) -> Builder:
    """Registers a builder under its name."""
    BUILDERS[function.__name__] = function
    return function


def affine(loops: int, results: Sequence[str | int]) -> str:
    """Returns affine_map<(d0, ...) -> (...)>; an int result is a loop dim."""
    names = [f"d{r}" if isinstance(r, int) else r for r in results]
    dims = ", ".join(f"d{i}" for i in range(loops))
    return f"affine_map<({dims}) -> ({', '.join(names)})>"


def generic(
    w: Writer,
    inputs: Sequence[Value],
    outputs: Sequence[Value],
    maps: Sequence[str],
    reduced: Sequence[bool],
    body: Body,
) -> list[Value]:
    """Adds a linalg.generic with a finished body, and its results to the values."""
    kinds = ", ".join('"reduction"' if r else '"parallel"' for r in reduced)
    ins = ""
    if inputs:
        ins = f"ins({', '.join(v.name for v in inputs)} : {', '.join(v.type for v in inputs)}) "
    types = ", ".join(v.type for v in outputs)
    names = [w.fresh() for _ in outputs]
    w.line(
        f"{', '.join(names)} = linalg.generic {{indexing_maps = [{', '.join(maps)}], "
        f"iterator_types = [{kinds}]}} {ins}outs({', '.join(v.name for v in outputs)} : {types}) {{"
    )
    arguments = ", ".join(
        f"{name}: {v.element}" for name, v in zip(body.arguments, [*inputs, *outputs], strict=True)
    )
    w.line(f"^bb0({arguments}):")
    for line in body.lines:
        w.line(f"  {line}")
    yielded = ", ".join(s.name for s in body.yields)
    w.line(f"  linalg.yield {yielded} : {', '.join(v.element for v in outputs)}")
    w.line(f"}} -> {f'({types})' if len(outputs) > 1 else types}")
    results = [
        Value(name, v.element, v.dims, s.bound, s.tolerance)
        for name, v, s in zip(names, outputs, body.yields, strict=True)
    ]
    w.values.extend(results)
    return results


def embeddings(value: Value, dims: Sequence[Dim]) -> list[tuple[int, ...]]:
    """Returns the possible indexings of a value by loops of these sizes: one loop per dim."""
    found: list[tuple[int, ...]] = []
    for places in permutations(range(len(dims)), len(value.dims)):
        if all(dims[p] == d for p, d in zip(places, value.dims, strict=True)):
            found.append(places)
    return found


@builder
def elementwise(w: Writer) -> list[Value]:
    """A generic over the dims of one value; other inputs are broadcast or transposed."""
    base = w.pick(w.values[::-1])
    dims = list(base.dims)
    inputs, maps = [base], [affine(len(dims), range(len(dims)))]
    for _ in range(w.draw(st.integers(0, 2))):
        fits = [(v, e) for v in w.values[::-1] for e in embeddings(v, dims)]
        other, places = w.pick(fits)
        inputs.append(other)
        maps.append(affine(len(dims), places))
    body = Body(w, [*(Scalar("", v.element, v.bound, v.tolerance) for v in inputs)])
    for _ in range(w.draw(st.integers(1, 4))):
        body.step(len(dims))
    order = list(range(len(dims)))
    if len(dims) > 1 and w.flag():
        order = w.draw(st.permutations(order))
    outs = 1 + (w.draw(st.integers(0, 3)) == 3)
    outputs: list[Value] = []
    for number in range(outs):
        scalar = body.scalars[-1 - number] if number < len(body.scalars) else body.scalars[-1]
        body.yields.append(scalar)
        outputs.append(w.empty(scalar.element, [dims[i] for i in order]))
        body.arguments.append(w.fresh("o"))
        maps.append(affine(len(dims), order))
    return generic(w, inputs, outputs, maps, [False] * len(dims), body)


REDUCERS = {
    "float": ("add", "maximumf", "minimumf"),
    "integer": ("add", "maxsi", "minsi", "maxui", "minui", "mul", "and", "or", "xor"),
}
START = {
    "add": lambda k: 0, "mul": lambda k: 1, "maximumf": lambda k: float("-inf"),
    "minimumf": lambda k: float("inf"), "and": lambda k: -1, "or": lambda k: 0, "xor": lambda k: 0,
    "maxui": lambda k: 0, "minui": lambda k: -1,
    "maxsi": lambda k: np.iinfo(DTYPES[k]).min if k != "i1" else 1,
    "minsi": lambda k: np.iinfo(DTYPES[k]).max if k != "i1" else 0,
}  # fmt: skip


def suffix(op: str, element: str) -> str:
    """Returns the full name of an arith op for an element type."""
    if op in ("add", "mul", "sub", "and", "or", "xor"):
        return f"arith.{op}{'f' if element in FLOATS else 'i'}"
    return f"arith.{op}"


def draw_reduced(w: Writer, rank: int) -> list[bool]:
    """Draws which dims are reduced: at least one."""
    reduced = [w.flag() for _ in range(rank)]
    if not any(reduced):
        reduced[-1] = True
    return reduced


def draw_reducer(w: Writer, body: Body, terms: int) -> tuple[str, Scalar]:
    """
    Draws the op that reduces a body's last scalar, over that many terms. If a sum of floats would
    not be exact, clamps the scalar, or takes a maximum.
    """
    scalar = body.scalars[-1]
    if scalar.element not in FLOATS:
        return w.pick(REDUCERS["integer"]), scalar
    names = REDUCERS["float"]
    op = w.pick(names[1:] if w.special else names)
    limit = EXACT_LIMIT[scalar.element]
    if op != "add" or scalar.bound * terms <= limit:
        return op, scalar
    if terms > limit:
        return "maximumf", scalar
    return op, body.clamp(scalar, 1.0 if 3.0 * terms > limit else 3.0)


@builder
def reduction(w: Writer) -> list[Value]:
    """A generic that reduces some dims, after an optional elementwise step."""
    source = w.pick([v for v in w.values[::-1] if v.dims] or w.values[:1])
    if not source.dims:
        return elementwise(w)
    rank = len(source.dims)
    reduced = draw_reduced(w, rank)
    terms = prod(d.size for flag, d in zip(reduced, source.dims, strict=True) if flag)
    body = Body(w, [Scalar("", source.element, source.bound, source.tolerance)])
    if w.flag():
        body.step(rank)
    op, scalar = draw_reducer(w, body, max(terms, 1))
    kept = [d for flag, d in zip(reduced, source.dims, strict=True) if not flag]
    start = START[op](scalar.element)
    output = w.filled(scalar.element, kept, start)
    accumulator = w.fresh("o")
    body.arguments.append(accumulator)
    bound = scalar.bound * max(terms, 1) if op == "add" else max(scalar.bound, 1.0)
    operands = [scalar.name, accumulator] if w.flag() else [accumulator, scalar.name]
    result = body.emit(
        f"{suffix(op, scalar.element)} {operands[0]}, {operands[1]} : {scalar.element}",
        scalar.element, bound, scalar.tolerance,
    )  # fmt: skip
    body.yields.append(result)
    maps = [affine(rank, range(rank)), affine(rank, [i for i in range(rank) if not reduced[i]])]
    return generic(w, [source], [output], maps, reduced, body)


@builder
def cast(w: Writer) -> list[Value]:
    """A generic that casts to another element type."""
    source = w.pick(w.values[::-1])
    target = w.pick([e for e in (*FLOATS, *INTEGERS) if e != source.element])
    body = Body(w, [Scalar("", source.element, source.bound, source.tolerance)])
    result = as_element(body, body.scalars[-1], target)
    body.yields.append(result)
    body.arguments.append(w.fresh("o"))
    rank = len(source.dims)
    output = w.empty(result.element, source.dims)
    return generic(w, [source], [output], [affine(rank, range(rank))] * 2, [False] * rank, body)


@builder
def transpose(w: Writer) -> list[Value]:
    """linalg.transpose"""
    source = w.pick([v for v in w.values[::-1] if len(v.dims) > 1] or w.values[:1])
    order = w.draw(st.permutations(range(len(source.dims))))
    output = w.empty(source.element, [source.dims[i] for i in order])
    value = Value(w.fresh(), source.element, output.dims, source.bound, source.tolerance)
    text = (
        f"linalg.transpose ins({source.name} : {source.type}) outs({output.name} : {output.type}) "
        f"permutation = [{', '.join(map(str, order))}]"
    )
    return [w.define(value, text)]


def contractible(values: Sequence[Value]) -> list[tuple[Value, Value, int, int]]:
    """Returns the pairs of matrices of one type that share a dim, each with the dim of both."""
    return [
        (a, b, i, j)
        for a in values
        for b in values
        if a.element == b.element and len(a.dims) == len(b.dims) == 2 and a.element != "i1"
        for i in range(2)
        for j in range(2)
        if a.dims[i] == b.dims[j]
    ]


@builder
def matmul(w: Writer) -> list[Value]:
    """A contraction of two values that share a dim, as linalg.generic or a named op."""
    pairs = contractible(w.values[::-1])
    if not pairs:
        return reduction(w)
    a, b, i, j = w.pick(pairs)
    k = a.dims[i].size
    element = a.element
    if element in FLOATS:
        if w.special or a.bound * b.bound * max(k, 1) > EXACT_LIMIT[element] or not a.exact:
            return elementwise(w)
    m, n = a.dims[1 - i], b.dims[1 - j]
    if m.size * n.size * max(k, 1) > 1 << 17:
        return elementwise(w)
    output = w.filled(element, [m, n], 0)
    bound = a.bound * b.bound * max(k, 1)
    if (i, j) == (1, 0) and w.flag():
        value = Value(w.fresh(), element, (m, n), bound, a.tolerance | b.tolerance)
        text = (
            f"linalg.matmul ins({a.name}, {b.name} : {a.type}, {b.type}) "
            f"outs({output.name} : {output.type}) -> {output.type}"
        )
        return [w.define(value, text)]
    body = Body(w, [Scalar("", v.element, v.bound, v.tolerance) for v in (a, b)])
    x, y = body.scalars
    out = w.fresh("o")
    body.arguments.append(out)
    kind = "f" if element in FLOATS else "i"
    p = body.emit(f"arith.mul{kind} {x.name}, {y.name} : {element}", element, bound, EXACT)
    body.yields.append(
        body.emit(
            f"arith.add{kind} {out}, {p.name} : {element}",
            element, bound, a.tolerance | b.tolerance,
        )
    )  # fmt: skip
    left, right = ([0, 2] if i else [2, 0]), ([1, 2] if j else [2, 1])
    maps = [affine(3, left), affine(3, right), affine(3, [0, 1])]
    return generic(w, [a, b], [output], maps, [False, False, True], body)


@builder
def window(w: Writer) -> list[Value]:
    """A pooling along the last dim, with the map d * stride + k."""
    source = w.pick([v for v in w.values[::-1] if v.dims] or w.values[:1])
    if not source.dims or source.dims[-1].size == 0:
        return elementwise(w)
    last = source.dims[-1]
    size = w.draw(st.integers(1, min(3, last.size)))
    stride = w.draw(st.integers(1, 2))
    count = (last.size - size) // stride + 1

    def compute() -> str:
        less = w.arith("subi", w.index(last), w.index(size))
        return w.arith("addi", w.arith("divui", less, w.index(stride)), w.index(1))

    dims = [*source.dims[:-1], w.sized(count, last, compute)]
    rank = len(dims)
    op = "maximumf" if source.is_float else w.pick(("maxsi", "add"))
    output = w.filled(source.element, dims, START[op](source.element))
    shape = w.empty("f32", [Dim(size)])
    body = Body(w, [Scalar("", v.element, v.bound, v.tolerance) for v in (source, shape)])
    out = w.fresh("o")
    body.arguments.append(out)
    result = body.emit(
        f"{suffix(op, source.element)} {body.scalars[0].name}, {out} : {source.element}",
        source.element, max(source.bound, 1.0), source.tolerance,
    )  # fmt: skip
    body.yields.append(result)
    moving = f"d{rank - 1}" + (f" * {stride}" if stride > 1 else "") + f" + d{rank}"
    maps = [
        affine(rank + 1, [*range(rank - 1), moving]),
        affine(rank + 1, [rank]),
        affine(rank + 1, range(rank)),
    ]
    return generic(w, [source, shape], [output], maps, [False] * rank + [True], body)


@builder
def argmax(w: Writer) -> list[Value]:
    """A generic with two results: the maximum of a row, and its index."""
    source = w.pick([v for v in w.values[::-1] if v.dims and v.element != "i1"] or w.values[:1])
    if not source.dims or source.element == "i1" or not source.exact:
        return elementwise(w)
    rank = len(source.dims)
    kept = source.dims[:-1]
    op = "maximumf" if source.is_float else "maxsi"
    best = w.filled(source.element, kept, START[op](source.element))
    where = w.filled("i64", kept, 0)
    body = Body(w, [Scalar("", source.element, source.bound, source.tolerance)])
    x = body.scalars[0].name
    a, b = w.fresh("o"), w.fresh("o")
    body.arguments += [a, b]
    at = body.emit(f"linalg.index {rank - 1} : index", "index").name
    number = body.emit(f"arith.index_cast {at} : index to i64", "i64")
    greater = f"arith.cmpf ogt, {x}, {a}" if source.is_float else f"arith.cmpi sgt, {x}, {a}"
    beats = body.emit(f"{greater} : {source.element}", "i1").name
    body.yields.append(
        body.emit(
            f"arith.select {beats}, {x}, {a} : {source.element}",
            source.element, max(source.bound, 1.0), source.tolerance,
        )
    )  # fmt: skip
    body.yields.append(body.emit(f"arith.select {beats}, {number.name}, {b} : i64", "i64"))
    maps = [affine(rank, range(rank)), *[affine(rank, range(rank - 1))] * 2]
    return generic(w, [source], [best, where], maps, [False] * (rank - 1) + [True], body)


@builder
def gather(w: Writer) -> list[Value]:
    """A generic whose body reads a tensor at computed indices, possibly out of bounds."""
    sources = [v for v in w.values[::-1] if v.dims]
    numbers = [v for v in w.values[::-1] if v.element in ("i32", "i64", "i8")]
    if not sources or not numbers:
        return elementwise(w)
    source, number = w.pick(sources), w.pick(numbers)
    rank = len(number.dims)
    body = Body(w, [Scalar("", number.element, number.bound, number.tolerance)])
    x = body.scalars[0].name
    index = body.emit(f"arith.index_cast {x} : {number.element} to index", "index").name
    places = [index]
    for _ in source.dims[1:]:
        choice = w.pick(["same", *range(rank)])
        if choice == "same":
            places.append(index)
        else:
            places.append(body.emit(f"linalg.index {choice} : index", "index").name)
    element = body.emit(
        f"tensor.extract {source.name}[{', '.join(places)}] : {source.type}",
        source.element, source.bound, source.tolerance,
    )  # fmt: skip
    body.yields.append(element)
    body.arguments.append(w.fresh("o"))
    output = w.empty(source.element, number.dims)
    return generic(w, [number], [output], [affine(rank, range(rank))] * 2, [False] * rank, body)


def register_views() -> None:
    """Registers the builders of data-movement ops."""
    from irees.testing import views

    for function in views.ALL:
        builder(function)


register_views()

__all__ = ["BUILDERS", "EXACT", "Tolerance", "ulps"]
