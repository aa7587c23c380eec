"""Builders of data-movement ops: slices, pads, reshapes, concat, sort, topk, scan, scatter."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from hypothesis import strategies as st

from irees.testing.strategies import EXACT_LIMIT, FLOATS, Dim, Value, Writer
from irees.testing.tolerances import EXACT


def _pick(w: Writer, rank: int = 1) -> Value | None:
    found = [v for v in w.values[::-1] if len(v.dims) >= rank]
    return w.pick(found) if found else None


def _copy(w: Writer, source: Value, dims: tuple[Dim, ...]) -> Value:
    return Value(w.fresh(), source.element, dims, source.bound, source.tolerance)


def _plain(w: Writer) -> list[Value]:
    from irees.testing.builders import elementwise

    return elementwise(w)


def _index_text(w: Writer, number: int) -> str:
    """Returns a number as static text, or as the name of an SSA value."""
    return w.index(number) if w.flag() else str(number)


def extract_slice(w: Writer) -> list[Value]:
    """tensor.extract_slice, with sizes that may depend on a dynamic dim."""
    source = _pick(w)
    if source is None:
        return _plain(w)
    offsets, sizes, strides, dims = [], [], [], []
    for dim in source.dims:
        kind = w.pick(["all", "part"])
        if kind == "all":
            offsets.append("0")
            strides.append("1")
            sizes.append(dim.name or str(dim.size))
            dims.append(dim)
            continue
        offset = w.draw(st.integers(0, dim.size))
        stride = w.pick([1, 2, 3])
        most = -(-(dim.size - offset) // stride)
        size = w.draw(st.integers(0, most))
        if w.flag() and dim.name is not None and stride == 1:
            # the rest after the offset, computed from the dynamic size
            size = dim.size - offset
            rest = w.arith("subi", dim.name, w.index(offset))
            new = Dim(size, rest)
        else:
            new = Dim(size)
        offsets.append(_index_text(w, offset) if size else "0")
        strides.append(str(stride))
        sizes.append(new.name or str(size))
        dims.append(new)
    kept = tuple(dims)
    if len(dims) > 1 and dims[0] == Dim(1) and w.flag():
        kept = tuple(dims[1:])
    result = _copy(w, source, kept)
    text = (
        f"tensor.extract_slice {source.name}[{', '.join(offsets)}] [{', '.join(sizes)}] "
        f"[{', '.join(strides)}] : {source.type} to {result.type}"
    )
    return [w.define(result, text)]


def insert_slice(w: Writer) -> list[Value]:
    """tensor.insert_slice of a filled tensor."""
    target = _pick(w)
    if target is None:
        return _plain(w)
    offsets, sizes, strides, dims = [], [], [], []
    for dim in target.dims:
        stride = w.pick([1, 2])
        offset = w.draw(st.integers(0, dim.size))
        most = -(-(dim.size - offset) // stride)
        size = w.draw(st.integers(0, most))
        offsets.append(_index_text(w, offset) if size else "0")
        sizes.append(str(size))
        strides.append(str(stride))
        dims.append(Dim(size))
    part = w.filled(target.element, dims, 1)
    result = Value(w.fresh(), target.element, target.dims, max(target.bound, 1.0), target.tolerance)
    text = (
        f"tensor.insert_slice {part.name} into {target.name}[{', '.join(offsets)}] "
        f"[{', '.join(sizes)}] [{', '.join(strides)}] : {part.type} into {target.type}"
    )
    return [w.define(result, text)]


def pad(w: Writer) -> list[Value]:
    """tensor.pad with a constant."""
    source = _pick(w)
    if source is None:
        return _plain(w)
    low, high, dims = [], [], []
    for dim in source.dims:
        before, after = w.draw(st.integers(0, 2)), w.draw(st.integers(0, 3))
        low.append(_index_text(w, before))
        high.append(_index_text(w, after))
        hidden = low[-1].startswith("%") or high[-1].startswith("%")
        size = dim.size + before + after
        if dim.name is None and not hidden:
            dims.append(Dim(size))
        else:
            dims.append(Dim(size, w.arith("addi", w.index(dim), w.index(before + after))))
    number = w.constant(1, source.element)
    result = Value(w.fresh(), source.element, tuple(dims), max(source.bound, 1.0), source.tolerance)
    arguments = ", ".join(f"%a{w.count}_{i}: index" for i in range(len(dims)))
    w.line(
        f"{result.name} = tensor.pad {source.name} low[{', '.join(low)}] high[{', '.join(high)}] {{"
    )
    w.line(f"^bb0({arguments}):")
    w.line(f"  tensor.yield {number} : {source.element}")
    w.line(f"}} : {source.type} to {result.type}")
    w.values.append(result)
    return [result]


def collapse(w: Writer) -> list[Value]:
    """tensor.collapse_shape of two adjacent dims."""
    source = _pick(w, 2)
    if source is None:
        return expand(w)
    at = w.draw(st.integers(0, len(source.dims) - 2))
    a, b = source.dims[at], source.dims[at + 1]
    if a.name is None and b.name is None:
        merged = Dim(a.size * b.size)
    else:
        merged = Dim(a.size * b.size, w.arith("muli", w.index(a), w.index(b)))
    dims = (*source.dims[:at], merged, *source.dims[at + 2 :])
    groups, axis = [], 0
    for position in range(len(dims)):
        count = 2 if position == at else 1
        groups.append("[" + ", ".join(str(axis + i) for i in range(count)) + "]")
        axis += count
    result = _copy(w, source, dims)
    text = (
        f"tensor.collapse_shape {source.name} [{', '.join(groups)}] : "
        f"{source.type} into {result.type}"
    )
    return [w.define(result, text)]


def expand(w: Writer) -> list[Value]:
    """tensor.expand_shape of one dim into two."""
    source = _pick(w)
    if source is None:
        return _plain(w)
    at = w.draw(st.integers(0, len(source.dims) - 1))
    dim = source.dims[at]
    factor = w.pick([f for f in (1, 2, 3, 4, 5, 8) if dim.size % f == 0])
    rest = dim.size // factor
    outer = (
        Dim(rest) if dim.name is None else Dim(rest, w.arith("divui", dim.name, w.index(factor)))
    )
    pair = (outer, Dim(factor)) if w.flag() else (Dim(factor), outer)
    dims = (*source.dims[:at], *pair, *source.dims[at + 1 :])
    groups, axis = [], 0
    for position in range(len(source.dims)):
        count = 2 if position == at else 1
        groups.append("[" + ", ".join(str(axis + i) for i in range(count)) + "]")
        axis += count
    result = _copy(w, source, dims)
    shape = ", ".join(d.name or str(d.size) for d in dims)
    text = (
        f"tensor.expand_shape {source.name} [{', '.join(groups)}] output_shape [{shape}] : "
        f"{source.type} into {result.type}"
    )
    return [w.define(result, text)]


def concat(w: Writer) -> list[Value]:
    """tensor.concat of two values."""
    a = _pick(w)
    if a is None:
        return _plain(w)
    axis = w.draw(st.integers(0, len(a.dims) - 1))
    fits = [
        v
        for v in w.values[::-1]
        if v.element == a.element
        and len(v.dims) == len(a.dims)
        and all(x == y for i, (x, y) in enumerate(zip(v.dims, a.dims)) if i != axis)
    ]
    b = w.pick(fits)
    x, y = a.dims[axis], b.dims[axis]
    if x.name is None and y.name is None:
        joined = Dim(x.size + y.size)
    else:
        joined = Dim(x.size + y.size, w.arith("addi", w.index(x), w.index(y)))
    dims = (*a.dims[:axis], joined, *a.dims[axis + 1 :])
    result = Value(w.fresh(), a.element, dims, max(a.bound, b.bound), a.tolerance | b.tolerance)
    text = f"tensor.concat dim({axis}) {a.name}, {b.name} : ({a.type}, {b.type}) -> {result.type}"
    return [w.define(result, text)]


def _comparator(w: Writer, value: Value, count: int) -> list[str]:
    """Returns the argument names of a comparator over `count` pairs, its compare and its result."""
    names = [f"%k{w.count}_{i}" for i in range(2 * count)]
    w.count += 1
    if value.is_float:
        op = f"arith.cmpf {w.pick(['olt', 'ogt', 'oge', 'ole'])}"
    else:
        op = f"arith.cmpi {w.pick(['slt', 'sgt', 'sge', 'ult'])}"
    return [*names, f"%r{w.count} = {op}, {names[0]}, {names[1]} : {value.element}", f"%r{w.count}"]


def _region(w: Writer, arguments: Iterable[tuple[str, str]], op: str, yielded: str) -> None:
    """Adds the region of an op: its arguments with their types, one op, and what it yields."""
    w.line(f"^bb0({', '.join(f'{name}: {kind}' for name, kind in arguments)}):")
    w.line(f"  {op}")
    w.line(f"  iree_linalg_ext.yield {yielded}")


def _exact(w: Writer) -> list[Value]:
    """Returns the values of rank 1 or more whose elements are exact."""
    return [v for v in w.values[::-1] if v.dims and v.exact]


def sort(w: Writer) -> list[Value]:
    """iree_linalg_ext.sort of one or two values."""
    values = _exact(w)
    if not values:
        return _plain(w)
    a = w.pick(values)
    operands = [a]
    others = [v for v in values if v.dims == a.dims and v is not a]
    if others and w.flag():
        operands.append(w.pick(others))
    dim = w.draw(st.integers(0, len(a.dims) - 1))
    *names, compare, result = _comparator(w, a, len(operands))
    results = [_copy(w, v, v.dims) for v in operands]
    types = ", ".join(v.type for v in operands)
    w.line(
        f"{', '.join(r.name for r in results)} = iree_linalg_ext.sort dimension({dim}) "
        f"outs({', '.join(v.name for v in operands)} : {types}) {{"
    )
    kinds = [v.element for v in operands for _ in range(2)]
    _region(w, zip(names, kinds, strict=True), compare, f"{result} : i1")
    w.line(f"}} -> {types}")
    w.values.extend(results)
    return results


def topk(w: Writer) -> list[Value]:
    """iree_linalg_ext.topk_v2, with or without indices."""
    values = [v for v in _exact(w) if v.dims[-1].size > 0]
    if not values:
        return _plain(w)
    a = w.pick(values)
    dim = len(a.dims) - 1
    k = w.draw(st.integers(1, min(a.dims[-1].size, 8)))
    dims = (*a.dims[:-1], Dim(k))
    best = w.empty(a.element, dims)
    outs = [best]
    if w.flag():
        outs.append(w.empty("i64", dims))
    *names, compare, result = _comparator(w, a, 1)
    results = [Value(w.fresh(), o.element, dims, a.bound, EXACT) for o in outs]
    types = ", ".join(v.type for v in outs)
    w.line(
        f"{', '.join(r.name for r in results)} = iree_linalg_ext.topk_v2 "
        f"dimension({dim}) is_sorted ins({a.name} : {a.type}) "
        f"outs({', '.join(v.name for v in outs)} : {types}) {{"
    )
    _region(w, [(name, a.element) for name in names], compare, f"{result} : i1")
    w.line(f"}} -> {types}")
    w.values.extend(results)
    return results


def scan(w: Writer) -> list[Value]:
    """iree_linalg_ext.scan: a prefix sum, or a prefix maximum."""
    values = [v for v in _exact(w) if v.element != "i1"]
    if not values:
        return _plain(w)
    a = w.pick(values)
    dim = w.draw(st.integers(0, len(a.dims) - 1))
    op, bound = "addi", a.bound
    if a.element in FLOATS:
        bound = a.bound * max(1, a.dims[dim].size)
        op = "addf"
        if bound > EXACT_LIMIT[a.element] or w.special:
            op, bound = "maximumf", a.bound
    kept = a.dims[:dim] + a.dims[dim + 1 :]
    output = w.empty(a.element, a.dims)
    start = w.filled(a.element, kept, 0)
    inclusive = "true" if w.flag() else "false"
    result, last = (
        Value(w.fresh(), a.element, a.dims, bound),
        Value(w.fresh(), a.element, kept, bound),
    )
    x, y, z = w.fresh("x"), w.fresh("x"), w.fresh("x")
    w.line(
        f"{result.name}, {last.name} = iree_linalg_ext.scan dimension({dim}) "
        f"inclusive({inclusive}) ins({a.name} : {a.type}) "
        f"outs({output.name}, {start.name} : {output.type}, {start.type}) {{"
    )
    combined = f"{z} = arith.{op} {x}, {y} : {a.element}"
    _region(w, [(x, a.element), (y, a.element)], combined, f"{z} : {a.element}")
    w.line(f"}} -> {output.type}, {start.type}")
    w.values.extend([result, last])
    return [result, last]


def scatter(w: Writer) -> list[Value]:
    """iree_linalg_ext.scatter of filled slices; indices may be out of bounds."""
    targets = _exact(w)
    indices = [v for v in w.values[::-1] if v.element in ("i32", "i64") and len(v.dims) == 1]
    if not targets or not indices:
        return _plain(w)
    target, index = w.pick(targets), w.pick(indices)
    updates = w.filled(target.element, [index.dims[0], *target.dims[1:]], 1)
    result = Value(w.fresh(), target.element, target.dims, max(target.bound, 1.0))
    x, y = w.fresh("x"), w.fresh("x")
    w.line(
        f"{result.name} = iree_linalg_ext.scatter dimension_map = [0] unique_indices(false) "
        f"ins({updates.name}, {index.name} : {updates.type}, {index.type}) "
        f"outs({target.name} : {target.type}) {{"
    )
    w.line(f"^bb0({x}: {target.element}, {y}: {target.element}):")
    chosen = w.pick(["new", "max"])
    if chosen == "max":
        z = w.fresh("x")
        op = "maximumf" if target.element in FLOATS else "maxsi"
        w.line(f"  {z} = arith.{op} {x}, {y} : {target.element}")
        x = z
    w.line(f"  iree_linalg_ext.yield {x} : {target.element}")
    w.line(f"}} -> {target.type}")
    w.values.append(result)
    return [result]


ALL: tuple[Any, ...] = (
    extract_slice, insert_slice, pad, collapse, expand, concat, sort, topk, scan, scatter,
)  # fmt: skip
