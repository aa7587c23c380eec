"""Accesses through chains of views: numpy, the program, and the folded program agree."""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import pairwise
from math import prod

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from irees.dialects import get_context
from irees.frontends.mlir import import_mlir, print_module
from irees.interpreters import Interpreter
from irees.transforms import load_pass

VIEWS = ("memref.subview", "memref.expand_shape", "memref.collapse_shape", "memref.cast")
SCALARS = ("memref.load", "memref.store", "affine.load", "affine.store")
VECTORS = (
    "vector.load", "vector.store", "vector.maskedload", "vector.maskedstore",
    "vector.gather", "vector.scatter", "vector.transfer_read", "vector.transfer_write",
)  # fmt: skip


@dataclass
class Program:
    """A function of memory and indices, and what numpy says that it does."""

    draw: object
    lines: list[str] = field(default_factory=list)
    arguments: list[str] = field(default_factory=list)
    values: list[object] = field(default_factory=list)
    exact: bool = True

    def index(self, number: int) -> str:
        """An index, as a constant or as an argument."""
        if self.draw(st.booleans()):
            name = f"%c{len(self.lines)}"
            self.lines.append(f"{name} = arith.constant {number} : index")
            return name
        return self.argument("index", np.int64(number))

    def size(self, number: int) -> str:
        """A number in a list, static or not."""
        return str(number) if self.draw(st.booleans()) else self.argument("index", number)

    def argument(self, kind: str, value: object) -> str:
        name = f"%a{len(self.arguments)}"
        self.arguments.append(f"{name}: {kind}")
        self.values.append(value)
        return name


def kind_of(view: np.ndarray, sizes, identity: bool) -> str:
    shape = "".join(f"{n}x" for n in sizes)
    if identity:
        return f"memref<{shape}i32>"
    strides = ", ".join(str(s // 4) for s in view.strides)
    return f"memref<{shape}i32, strided<[{strides}], offset: ?>>"


def one_view(p: Program, view: np.ndarray, name: str, kind: str, sizes: list[str], number: int):
    """A view of a view; None where numpy or the type has no such view."""
    draw = p.draw
    what = draw(st.sampled_from(["subview", "subview", "expand", "collapse", "cast"]))
    result = f"%v{number}"
    if what == "subview" and view.ndim:
        offsets, counts, steps = [], [], []
        for n in view.shape:
            step = draw(st.sampled_from([1, 1, 2, 3]))
            offset = draw(st.integers(0, max(0, n - 1)))
            counts.append(draw(st.integers(1, (n - 1 - offset) // step + 1)))
            offsets.append(offset)
            steps.append(step)
        names = [[p.size(v) for v in offsets], [str(v) for v in counts], [str(v) for v in steps]]
        part = view[tuple(slice(o, o + c * s, s) for o, c, s in zip(offsets, counts, steps))]
        ones = [d for d in range(view.ndim) if counts[d] == 1]
        dropped = draw(st.lists(st.sampled_from(ones), unique=True)) if ones else []
        # The type cannot say which of several 1s is dropped where strides are equal too.
        if dropped and draw(st.booleans()):
            dropped = ones
        elif len(ones) > 1:
            dropped = []
        part = part.squeeze(tuple(dropped))
        new_kind = kind_of(part, part.shape, False)
        lists = "] [".join(", ".join(each) for each in names)
        p.lines.append(f"{result} = memref.subview {name}[{lists}] : {kind} to {new_kind}")
        return part, result, new_kind, [str(n) for n in part.shape]
    if what == "expand" and view.ndim:
        groups, shape = [], []
        for n in view.shape:
            divisor = draw(st.sampled_from([d for d in range(1, n + 1) if n % d == 0]))
            split = [n // divisor, divisor] if draw(st.booleans()) else [n]
            groups.append(list(range(len(shape), len(shape) + len(split))))
            shape += split
        part = view.reshape(shape)
        if not np.shares_memory(part, view):
            return None
        new_kind = kind_of(part, shape, "strided" not in kind)
        p.lines.append(
            f"{result} = memref.expand_shape {name} {groups} output_shape {shape} : "
            f"{kind} into {new_kind}"
        )
        return part, result, new_kind, [str(n) for n in shape]
    if what == "collapse" and view.ndim > 1:
        groups, at = [], 0
        while at < view.ndim:
            count = draw(st.integers(1, view.ndim - at))
            groups.append(list(range(at, at + count)))
            at += count
        for group in groups:
            for a, b in pairwise(group):
                if view.strides[a] != view.strides[b] * view.shape[b]:
                    return None
        part = view.reshape([prod(view.shape[i] for i in g) for g in groups])
        new_kind = kind_of(part, part.shape, "strided" not in kind)
        p.lines.append(f"{result} = memref.collapse_shape {name} {groups} : {kind} into {new_kind}")
        return part, result, new_kind, [str(n) for n in part.shape]
    if what == "cast" and view.ndim:
        sizes = ["?" if draw(st.booleans()) else s for s in sizes]
        new_kind = kind_of(view, sizes, "strided" not in kind)
        p.lines.append(f"{result} = memref.cast {name} : {kind} to {new_kind}")
        # Of dynamic dims the strides in the type would be dynamic: go on with static ones.
        p.lines.append(f"{result}s = memref.cast {result} : {new_kind} to {kind}")
        return view, f"{result}s", kind, [str(n) for n in view.shape]
    return None


@st.composite
def programs(draw, op: str):
    p = Program(draw)
    shape = draw(st.lists(st.sampled_from([4, 6, 8, 1, 2, 3, 12]), min_size=1, max_size=3))
    base = np.arange(1, prod(shape) + 1, dtype=np.int32).reshape(shape)
    kind = kind_of(base, shape, True)
    source = p.argument(kind, base)
    p.lines += [f"%m = memref.alloc() : {kind}", f"memref.copy {source}, %m : {kind} to {kind}"]
    memory = base.copy()
    view, name, view_kind, sizes = memory, "%m", kind, [str(n) for n in shape]
    for number in range(draw(st.integers(1, 4))):
        found = one_view(p, view, name, view_kind, sizes, number)
        if found is not None:
            view, name, view_kind, sizes = found
    store = "store" in op or "scatter" in op or "write" in op
    vector = op in VECTORS
    if vector and not view.ndim:
        return None
    rank = draw(st.integers(1, min(2, view.ndim))) if op in ("vector.load", "vector.store") else 1
    lanes = ()
    if vector:
        lanes = tuple(draw(st.integers(1, n)) for n in view.shape[view.ndim - rank :])
        if op in ("vector.gather", "vector.scatter"):
            lanes = (draw(st.integers(1, 4)),)
    spread = (1,) * (view.ndim - len(lanes)) + lanes
    if op in ("vector.gather", "vector.scatter"):
        spread = (1,) * view.ndim
    at = [draw(st.integers(0, n - s)) for n, s in zip(view.shape, spread)]
    if vector and draw(st.booleans()):
        at[-1] -= at[-1] % lanes[-1] if spread[-1] > 1 else 0
    where = ", ".join(p.index(i) for i in at)
    value_kind = f"vector<{'x'.join(str(n) for n in lanes)}xi32>" if vector else "i32"
    value = (
        -np.arange(1, prod(lanes) + 1, dtype=np.int32).reshape(lanes) if vector else np.int32(-7)
    )
    mask = np.array([draw(st.booleans()) for _ in range(prod(lanes))])
    on = [True] * len(mask)
    masked = "masked" in op or op in ("vector.gather", "vector.scatter")
    if masked:
        on = list(mask)
    given_value = p.argument(value_kind, value) if store or masked else ""
    extra, types = "", f"{view_kind}"
    n = lanes[0] if lanes else 0
    step = [i for i in range(n)]
    if masked:
        mask_name = p.argument(f"vector<{n}xi1>", mask)
        extra = f", {mask_name}, {given_value}"
        types += f", vector<{n}xi1>, {value_kind}" + ("" if store else f" into {value_kind}")
    if op in ("vector.gather", "vector.scatter"):
        step = [draw(st.integers(-at[-1], view.shape[-1] - 1 - at[-1])) for _ in range(n)]
        if store:
            step = [s for s in dict.fromkeys(step)]
            step += [step[0]] * (n - len(step))
            on = [o and i < len(dict.fromkeys(step)) for i, o in enumerate(on)]
            p.values[-1] = np.array(on)
        element = draw(st.sampled_from(["index", "i32"]))
        dtype = np.int64 if element == "index" else np.int32
        # A lane that is off may be anywhere.
        far = [s if o else 10**6 for s, o in zip(step, on)]
        steps = p.argument(f"vector<{n}x{element}>", np.array(far, dtype))
        extra = f" [{steps}]{extra}"
        types = types.replace(view_kind, f"{view_kind}, vector<{n}x{element}>", 1)
    if "transfer" in op:
        types += f", {value_kind}"
        p.lines.append("%pad = arith.constant 0 : i32")
        inside = "{in_bounds = [true]}"
        extra = f" {inside}" if store else f", %pad {inside}"
        types = f"{value_kind}, {view_kind}" if store else types
    elif op in ("vector.load", "vector.store"):
        types += f", {value_kind}"
    place = f"{name}[{where}]"
    if op in ("memref.store", "affine.store", "vector.store", "vector.transfer_write"):
        place = f"{given_value}, {place}"
    result = "" if store else "%r = "
    p.lines.append(f"{result}{op} {place}{extra} : {types}")
    expected = None
    if not vector:
        if store:
            view[tuple(at)] = value
        else:
            expected = view[tuple(at)]
    elif rank == 2:
        part = view[(*at[:-2], slice(at[-2], at[-2] + lanes[0]), slice(at[-1], at[-1] + lanes[1]))]
        if store:
            part[...] = value
        else:
            expected = part.copy()
    else:
        row = view[tuple(at[:-1])]
        if not store:
            expected = value.copy()
        for lane in range(n):
            if on[lane]:
                if store:
                    row[at[-1] + step[lane]] = value[lane]
                else:
                    expected[lane] = row[at[-1] + step[lane]]
    out = ([] if store else [("%r", value_kind)]) + [("%m", kind)]
    p.lines.append(f"return {', '.join(n for n, _ in out)} : {', '.join(k for _, k in out)}")
    text = (
        f"func.func @main({', '.join(p.arguments)}) -> ({', '.join(k for _, k in out)}) {{\n  "
        + "\n  ".join(p.lines)
        + "\n}\n"
    )
    return text, p.values, ([] if store else [expected]) + [memory]


def check(text: str, values, expected, name: str = "irees-fold-memref-alias-ops") -> bool:
    """Whether no view is left; asserts that everything agrees."""
    # Kernels may read lanes that are apart, which MLIR refuses of programs.
    module = import_mlir(text, verify=False)
    module.verify()
    changed = module.clone()
    load_pass(name)().apply(get_context(), changed)
    changed.verify()
    for each in (module, changed):
        results = Interpreter(each).call("main", *values)
        for result, wanted in zip(results, expected, strict=True):
            np.testing.assert_array_equal(result, wanted, print_module(each))
    return not any(op.name in VIEWS for op in changed.walk())


@pytest.mark.parametrize("op", [*SCALARS, *VECTORS])
def test_folding_changes_nothing(op):
    gone = []

    # An index vector that is scaled needs a stride, lanes that are on, and the type index at once.
    examples = 150 if op in ("vector.gather", "vector.scatter") else 60

    @settings(max_examples=examples, deadline=None, suppress_health_check=list(HealthCheck))
    @given(programs(op))
    def all_agree(program):
        if program is not None:
            gone.append(check(*program))

    all_agree()
    assert True in gone
    # A scalar goes through every view.
    assert op in VECTORS or False not in gone
