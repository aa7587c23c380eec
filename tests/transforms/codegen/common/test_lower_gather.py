"""Gathers become loads: numpy, the program, and the lowered program agree."""

from __future__ import annotations

import numpy as np
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from irees.dialects import get_context
from irees.frontends.mlir import import_mlir, print_module
from irees.interpreters import Interpreter
from irees.transforms import load_pass

FAR = 1 << 20


@st.composite
def gathers(draw):
    """A gather, its arguments, and its result. A lane that is off points far outside."""
    rows, size = draw(st.integers(1, 3)), draw(st.integers(1, 24))
    shape = (draw(st.integers(1, 8)),)
    if draw(st.booleans()):
        shape = (draw(st.integers(1, 3)), *shape)
    memory = np.arange(1, rows * size + 1, dtype=np.int32).reshape(rows, size)
    row, first = draw(st.integers(0, rows - 1)), draw(st.integers(0, size - 1))
    element = draw(st.sampled_from(["index", "i32"]))
    dims = "x".join(map(str, shape))
    kind = f"vector<{dims}x{element}>"
    lines: list[str] = []
    form = draw(st.sampled_from(["argument", "constant", "row", "row of sums", "same"]))
    if form in ("argument", "constant") or len(shape) > 1:
        count = int(np.prod(shape))
        steps = [draw(st.integers(-first, size - 1 - first)) for _ in range(count)]
        if form == "row":
            steps = list(range(count))
        index = np.array(steps, np.int64).reshape(shape)
    else:
        index = np.zeros(shape, np.int64) if form == "same" else np.arange(shape[0])
        start = draw(st.integers(-first, size - 1 - first))
        index = index + start
    inside = (index + first >= 0) & (index + first < size)
    mask = inside & np.array(
        [draw(st.integers(0, 3)) > 0 for _ in range(index.size)], bool
    ).reshape(shape)
    if inside.all() and draw(st.booleans()):
        mask[...] = True
    arguments: list[tuple[str, str, object]] = [
        ("%m", f"memref<{rows}x{size}xi32>", memory),
        ("%i", "index", np.int64(row)),
        ("%j", "index", np.int64(first)),
        ("%p", f"vector<{dims}xi32>", -np.arange(1, index.size + 1, dtype=np.int32).reshape(shape)),
    ]
    if form in ("row of sums", "same") and len(shape) == 1:
        arguments.append(
            ("%s", element, np.int64(start) if element == "index" else np.int32(start))
        )
        lines.append(f"%b = vector.broadcast %s : {element} to {kind}")
        name = "%b"
        if form == "row of sums":
            counting = list(range(shape[0]))
            lines.append(f"%c = arith.constant dense<{counting}> : {kind}")
            lines.append(f"%x = arith.addi %c, %b : {kind}")
            name = "%x"
    elif form == "argument" or (len(shape) > 1 and form != "constant"):
        dtype = np.int64 if element == "index" else np.int32
        arguments.append(("%x", kind, np.where(mask, index, FAR).astype(dtype)))
        name = "%x"
    else:
        lines.append(f"%x = arith.constant dense<{index.tolist()}> : {kind}")
        name = "%x"
    if draw(st.booleans()):
        lines.append(f"%k = arith.constant dense<{str(mask.tolist()).lower()}> : vector<{dims}xi1>")
    else:
        arguments.append(("%k", f"vector<{dims}xi1>", mask))
    result = f"vector<{dims}xi32>"
    lines += [
        f"%r = vector.gather %m[%i, %j] [{name}], %k, %p : memref<{rows}x{size}xi32>, {kind}, "
        f"vector<{dims}xi1>, {result} into {result}",
        f"return %r : {result}",
    ]
    head = ", ".join(f"{n}: {k}" for n, k, _ in arguments)
    body = "\n  ".join(lines)
    text = f"func.func @main({head}) -> {result} {{\n  {body}\n}}\n"
    read = memory[row, np.clip(index + first, 0, size - 1)]
    passed = arguments[3][2]
    return text, [v for *_, v in arguments], np.where(mask, read, passed)  # pyright: ignore


@settings(max_examples=200, deadline=None, suppress_health_check=list(HealthCheck))
@given(gathers())
def test_lowering_changes_nothing(program):
    text, values, expected = program
    module = import_mlir(text)
    lowered = module.clone()
    load_pass("irees-lower-gather")().apply(get_context(), lowered)
    lowered.verify()
    assert not any(op.name == "vector.gather" for op in lowered.walk())
    for each in (module, lowered):
        (result,) = Interpreter(each).call("main", *values)
        np.testing.assert_array_equal(result, expected, print_module(each))
