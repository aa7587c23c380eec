"""
Contractions of i8 and bf16 as dot products, against the interpreter: on this machine as compiled,
and for processors that it need not be as the kernels that code generation leaves.

Every sum of i8 is exact, the largest included, since i32 wraps. Those of bf16 are of whole
numbers, exact in any order, or of what must not be lost: infinities, NaN, zeros of both signs.
"""

from __future__ import annotations

from dataclasses import dataclass

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.strategies import DataObject

from irees.dialects import get_context
from irees.frontends.mlir import import_mlir
from irees.options import Options
from irees.pipeline import run_phases
from irees.target import Target
from irees.testing import profiles
from irees.testing.oracles import Case, compiled_agrees, differences, interpret

FACTOR = profiles.load()
ROWS = (1, 3, 5, 6, 7, 13, 16, 17, 40)
COLUMNS = (1, 7, 8, 16, 17, 31, 48, 64, 65, 130)
DEPTHS = (0, 1, 2, 3, 4, 5, 8, 31, 64, 67, 130, 2048, 2051)
EXTREMES = {
    "i8": [-128, -128, -127, -1, 0, 1, 127, 127],
    "bf16": [0.0, -0.0, 1.0, -1.0, 2.0, -3.0, float("inf"), float("-inf"), float("nan")],
}
PROCESSORS = {
    "avx512_vnni": Target(features=("avx512_vnni",), vector_bytes=64, vector_registers=32),
    "avx_vnni": Target(features=("avx_vnni",), vector_bytes=32, vector_registers=16),
    "avx512_bf16": Target(features=("avx512_bf16",), vector_bytes=64, vector_registers=32),
}


@dataclass
class Product:
    """A drawn function of one contraction, and its arguments."""

    text: str
    resource: str
    case: Case


def numbers(data: DataObject, shape: tuple[int, ...], element: str, wild: bool) -> np.ndarray:
    random = np.random.default_rng(data.draw(st.integers(0, 99)))
    dtype = {"i8": np.int8, "bf16": ml_dtypes.bfloat16}[element]
    if wild:
        # Few of them, or every sum of bf16 would be NaN.
        common = [1] if element == "bf16" and data.draw(st.booleans()) else EXTREMES[element]
        picked = random.choice(np.array(common, np.float64), shape)
        if element == "bf16" and picked.size:
            picked.flat[random.integers(0, picked.size, 2)] = random.choice(EXTREMES[element], 2)
        return picked.astype(dtype)
    return random.integers(-3, 4, shape).astype(dtype)


def draw_product(data: DataObject, name: str, element: str, *, small: bool) -> Product:
    """C += A * B of any layout, signs, extents known or not, and with B or A known or not."""

    def pick(*choices):
        return data.draw(st.sampled_from(choices))

    limit = 70 if small else 4096
    sizes = {
        "m": pick(*ROWS), "n": pick(*COLUMNS), "k": pick(*(d for d in DEPTHS if d < limit)), "b": 2
    }  # fmt: skip
    batch = pick("", "", "", "b")
    a_dims, b_dims = pick("mk", "mk", "km"), pick("kn", "kn", "nk")
    a_dims, b_dims, c_dims = batch + a_dims, batch + b_dims, batch + pick("mn", "mn", "mn", "nm")
    swapped = pick(False, False, True)
    dynamic = set(pick("", "", "", "m", "k", "n", "mnk"))
    wide = "i32" if element == "i8" else "f32"

    def kind(dims: str, of: str, known: bool = False) -> str:
        extents = ("?" if d in dynamic and not known else str(sizes[d]) for d in dims)
        return f"tensor<{'x'.join([*extents, of])}>"

    def array(dims: str) -> np.ndarray:
        return numbers(data, tuple(sizes[d] for d in dims), element, wild)

    wild = pick(True, True, False)
    reads = [(b_dims, "y"), (a_dims, "x")] if swapped else [(a_dims, "x"), (b_dims, "y")]
    constant = pick(None, None, "y", "y", "x")
    arguments, inputs, lines, resource = [], [], [], ""
    for dims, argument in reads:
        values = array(dims)
        if argument == constant and not dynamic & set(dims) and values.size:
            resource = f'{name}: "0x04000000{values.tobytes().hex()}"'
            lines.append(
                f"%{argument} = arith.constant dense_resource<{name}> : {kind(dims, element)}"
            )
            continue
        arguments.append(f"%{argument}: {kind(dims, element)}")
        inputs.append(values)
    result = kind(c_dims, wide)
    arguments.append(f"%z: {result}")
    start = np.random.default_rng(1).integers(-5, 6, [sizes[d] for d in c_dims])
    inputs.append((start * -0.0 if wide == "f32" and wild else start).astype(
        np.int32 if wide == "i32" else np.float32
    ))  # fmt: skip
    init = "%z"
    if pick(True, False):
        zero = "0" if wide == "i32" else "0.0"
        lines.append(f"%zero = arith.constant {zero} : {wide}")
        lines.append(f"%filled = linalg.fill ins(%zero : {wide}) outs(%z : {result}) -> {result}")
        init = "%filled"
    casts = ["arith.extf"] * 2
    if element == "i8":
        casts = list(pick(("si", "si"), ("si", "si"), ("ui", "si"), ("si", "ui"), ("ui", "ui")))
        casts = [f"arith.ext{c}" for c in casts]
    loops = ["b"] * bool(batch) + ["m", "n", "k"]
    maps = ", ".join(
        f"affine_map<({', '.join(loops)}) -> ({', '.join(dims)})>"
        for dims in (reads[0][0], reads[1][0], c_dims)
    )
    kinds = ", ".join(f'"{"reduction" if x == "k" else "parallel"}"' for x in loops)
    suffix = wide[0]
    operands = ", ".join(f"%{name}" for _, name in reads)
    lines.append(f"""%r = linalg.generic {{indexing_maps = [{maps}], iterator_types = [{kinds}]}}
      ins({operands} : {kind(reads[0][0], element)}, {kind(reads[1][0], element)})
      outs({init} : {result}) {{
  ^bb0(%p: {element}, %q: {element}, %c: {wide}):
    %wp = {casts[0]} %p : {element} to {wide}
    %wq = {casts[1]} %q : {element} to {wide}
    %t = arith.mul{suffix} %wp, %wq : {wide}
    %s = arith.add{suffix} %c, %t : {wide}
    linalg.yield %s : {wide}
  }} -> {result}""")
    final = "%r"
    if pick(True, False, False):
        final = "%e"
        same = f"affine_map<({', '.join(c_dims)}) -> ({', '.join(c_dims)})>"
        parallel = ", ".join(['"parallel"'] * len(c_dims))
        lines.append(f"""%e = linalg.generic {{indexing_maps = [{same}, {same}],
      iterator_types = [{parallel}]}} ins(%r : {result}) outs(%z : {result}) {{
  ^bb0(%p: {wide}, %q: {wide}):
    %s = arith.add{suffix} %p, %q : {wide}
    linalg.yield %s : {wide}
  }} -> {result}""")
    text = "\n".join([*lines, f"return {final} : {result}"])
    head = f"func.func @{name}({', '.join(arguments)}) -> {result} {{\n"
    return Product(f"{head}{text}\n}}\n", resource, Case(name, tuple(inputs)))


def draw_module(data: DataObject, element: str, *, small: bool) -> tuple[str, list[Case]]:
    products = [draw_product(data, f"f{i}", element, small=small) for i in range(3)]
    blobs = ", ".join(p.resource for p in products if p.resource)
    table = f"{{-# dialect_resources: {{ builtin: {{ {blobs} }} }} #-}}\n" if blobs else ""
    return "".join(p.text for p in products) + table, [p.case for p in products]


@pytest.mark.parametrize("element", ["i8", "bf16"])
@settings(max_examples=15 * FACTOR)
@given(data=st.data())
def test_compiled_for_this_machine(element, data):
    text, cases = draw_module(data, element, small=False)
    source = import_mlir(text)
    found = compiled_agrees(source, cases, interpret(source, cases), opt_level=0)
    assert found == [], text if len(text) < 9000 else text[:9000]


@pytest.mark.parametrize("word", PROCESSORS)
@settings(max_examples=6 * FACTOR)
@given(data=st.data())
def test_kernels_for_other_processors(word, data):
    text, cases = draw_module(data, "bf16" if "bf16" in word else "i8", small=True)
    source = import_mlir(text)
    expected = interpret(source, cases)
    kernels = source.clone()
    run_phases(get_context(), kernels, Options(target=PROCESSORS[word]))
    assert differences(interpret(kernels, cases), expected, cases) == [], text
