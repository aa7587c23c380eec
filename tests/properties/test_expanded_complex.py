"""Ops on complex numbers that are written on pairs of reals give the numbers of the interpreter."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import event, given, settings
from hypothesis import strategies as st

from irees.dialects import get_context
from irees.frontends.mlir import import_mlir
from irees.testing import profiles
from irees.testing.oracles import Case, interpret
from irees.transforms import load_pass

FACTOR = profiles.load()

DTYPES = {"f32": np.complex64, "f64": np.complex128}
ENDS = [0.0, -0.0, np.inf, -np.inf, np.nan, 1e-30, -3e15, 1.0, -2.5]
BINARY = ["complex.add", "complex.sub", "complex.mul", "complex.div"]
UNARY = ["complex.neg", "complex.conj"]


def numbers(random: np.random.Generator, shape: list[int], dtype: type, odd: bool) -> np.ndarray:
    """Random numbers, of which `odd` makes some zeros, infinities and NaN."""
    found = [random.integers(-4, 5, shape).astype(np.float64) for _ in range(2)]
    if odd:
        found = [np.where(random.random(shape) < 0.4, random.choice(ENDS, shape), x) for x in found]
    result = np.empty(shape, dtype)
    result.real, result.imag = found
    return result


@st.composite
def bodies(draw, element: str) -> tuple[list[str], str]:
    """The ops of a body of %a, %b and the real %r; the last one's result and its type."""
    kind = f"complex<{element}>"
    values, lines = ["%a", "%b"], []
    for number in range(draw(st.integers(1, 5))):
        name = f"%v{number}"
        x, y = (draw(st.sampled_from(values)) for _ in range(2))
        match draw(st.integers(0, 4)):
            case 0 | 1:
                lines.append(f"{name} = {draw(st.sampled_from(BINARY))} {x}, {y} : {kind}")
            case 2:
                lines.append(f"{name} = {draw(st.sampled_from(UNARY))} {x} : {kind}")
            case 3:
                lines.append(
                    f"%n{number} = {draw(st.sampled_from(['complex.re', 'complex.im']))} {x} : {kind}"
                )
                lines.append(f"{name} = complex.create %n{number}, %r : {kind}")
            case _:
                equal = draw(st.sampled_from(["complex.eq", "complex.neq"]))
                lines.append(f"%n{number} = {equal} {x}, {y} : {kind}")
                lines.append(f"{name} = arith.select %n{number}, {y}, {x} : {kind}")
        values.append(name)
    if draw(st.booleans()):
        measure = draw(st.sampled_from(["complex.abs", "complex.re", "complex.im"]))
        lines.append(f"%out = {measure} {values[-1]} : {kind}")
        return lines, element
    lines.append(f"%out = complex.conj {values[-1]} : {kind}")
    return lines, kind


@st.composite
def maps_of_numbers(draw) -> tuple[str, Case]:
    """An elementwise op of a matrix, a row of another one, and reals; possibly summed."""
    element = draw(st.sampled_from(sorted(DTYPES)))
    lines, result = draw(bodies(element))
    rows, columns = (draw(st.sampled_from([1, 2, 5, 17])) for _ in range(2))
    summed, dynamic = draw(st.booleans()), draw(st.booleans())

    def tensor(dims: list[int], kind: str) -> str:
        return f"tensor<{''.join(f'{chr(63) if dynamic else n}x' for n in dims)}{kind}>"

    a, b = (tensor(dims, f"complex<{element}>") for dims in ([rows, columns], [columns]))
    r, out = tensor([columns], element), tensor([rows] if summed else [rows, columns], result)
    value = "%out"
    if summed:
        add = "complex.add" if result != element else "arith.addf"
        lines = [*lines, f"%sum = {add} %o, %out : {result}"]
        value = "%sum"
    inner = "reduction" if summed else "parallel"
    body = "\n    ".join(lines)
    text = f"""func.func @main(%x: {a}, %y: {b}, %z: {r}, %e: {out}) -> {out} {{
  %0 = linalg.generic {{indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (j)>, affine_map<(i, j) -> (j)>, affine_map<(i, j) -> ({"i" if summed else "i, j"})>], iterator_types = ["parallel", "{inner}"]}} ins(%x, %y, %z : {a}, {b}, {r}) outs(%e : {out}) {{
  ^bb0(%a: complex<{element}>, %b: complex<{element}>, %r: {element}, %o: {result}):
    {body}
    linalg.yield {value} : {result}
  }} -> {out}
  return %0 : {out}
}}"""
    random = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    odd = draw(st.booleans())
    dtype, real = DTYPES[element], np.float32 if element == "f32" else np.float64
    inputs = [numbers(random, [rows, columns], dtype, odd), numbers(random, [columns], dtype, odd)]
    reals = numbers(random, [columns], dtype, odd).real.astype(real)
    shape = [rows] if summed else [rows, columns]
    init = numbers(random, shape, dtype, odd=False)
    return text, Case(
        "main", (*inputs, reals, init if result != element else init.real.astype(real))
    )


@settings(max_examples=150 * FACTOR, deadline=None)
@given(maps_of_numbers())
def test_a_body_on_pairs_computes_the_same_numbers(found):
    text, case = found
    module = import_mlir(text)
    want = interpret(module, [case])["main"]
    load_pass("irees-expand-complex")().apply(get_context(), module)
    module.verify()
    event("expanded" if "irees.view_parts" in str(module) else "kept")
    assert "irees.view_parts" in str(module)
    (mine,), (wanted,) = interpret(module, [case])["main"], want
    # Sums of infinities and rounded lengths differ in order and in the last bit only.
    np.testing.assert_allclose(mine, wanted, rtol=1e-6 if "f32" in text else 1e-13, equal_nan=True)


@st.composite
def products(draw) -> tuple[str, Case]:
    """A product with any of batch, m, n and k loops, in any order of dims."""
    loops = {"b": 2, "m": 3, "n": 4, "k": 5}
    left = draw(st.sampled_from(["k", "mk", "km", "bmk", "bkm", "mkb", "bk"]))
    right = draw(st.sampled_from(["k", "kn", "nk", "bkn", "nkb", "kbn"]))
    free = sorted((set(left) | set(right)) - {"k"})
    out = "".join(draw(st.permutations(free)))
    dynamic = draw(st.booleans())

    def tensor(dims: str) -> str:
        return (
            f"tensor<{''.join(f'{chr(63) if dynamic else loops[d]}x' for d in dims)}complex<f32>>"
        )

    domain = "".join(draw(st.permutations([*free, "k"])))
    names = ", ".join(domain)
    maps = ", ".join(f"affine_map<({names}) -> ({', '.join(dims)})>" for dims in (left, right, out))
    kinds = ", ".join('"reduction"' if d == "k" else '"parallel"' for d in domain)
    x, y, z = map(tensor, (left, right, out))
    first, second = draw(st.permutations(["%a", "%b"]))
    text = f"""func.func @main(%x: {x}, %y: {y}, %z: {z}) -> {z} {{
  %0 = linalg.generic {{indexing_maps = [{maps}], iterator_types = [{kinds}]}} ins(%x, %y : {x}, {y}) outs(%z : {z}) {{
  ^bb0(%a: complex<f32>, %b: complex<f32>, %o: complex<f32>):
    %1 = complex.mul {first}, {second} : complex<f32>
    %2 = complex.add %o, %1 : complex<f32>
    linalg.yield %2 : complex<f32>
  }} -> {z}
  return %0 : {z}
}}"""
    random = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    shapes = [[loops[d] for d in dims] for dims in (left, right, out)]
    return text, Case("main", tuple(numbers(random, s, np.complex64, odd=False) for s in shapes))


@settings(max_examples=100 * FACTOR, deadline=None)
@given(products())
def test_a_product_of_matrices_on_reals_is_the_same(found):
    text, case = found
    module = import_mlir(text)
    want = interpret(module, [case])["main"]
    load_pass("irees-expand-complex-contractions")().apply(get_context(), module)
    module.verify()
    event("expanded" if "irees.view_parts" in str(module) else "kept")
    assert ("complex.mul" in str(module)) == (case.inputs[2].ndim == 0)
    # Small integers: all sums are exact.
    np.testing.assert_array_equal(interpret(module, [case])["main"][0], want[0])


@pytest.mark.parametrize("op", ["complex.mul", "complex.div", "complex.add", "complex.abs"])
@pytest.mark.parametrize("element", sorted(DTYPES))
def test_zeros_infinities_and_nan_have_the_same_results(op, element):
    """An op of all pairs of numbers whose parts are odd."""
    kind, count = f"complex<{element}>", len(ENDS) ** 2
    out = element if op == "complex.abs" else kind
    values = "%a" if op == "complex.abs" else "%a, %b"
    row = f"tensor<{count}x{kind}>"
    table = f"tensor<{count}x{count}x{out}>"
    text = f"""func.func @main(%x: {row}, %y: {row}) -> {table} {{
  %e = tensor.empty() : {table}
  %0 = linalg.generic {{indexing_maps = [affine_map<(i, j) -> (i)>, affine_map<(i, j) -> (j)>, affine_map<(i, j) -> (i, j)>], iterator_types = ["parallel", "parallel"]}} ins(%x, %y : {row}, {row}) outs(%e : {table}) {{
  ^bb0(%a: {kind}, %b: {kind}, %o: {out}):
    %1 = {op} {values} : {kind}
    linalg.yield %1 : {out}
  }} -> {table}
  return %0 : {table}
}}"""
    numbers = np.empty((len(ENDS), len(ENDS)), DTYPES[element])
    numbers.real, numbers.imag = np.meshgrid(ENDS, ENDS)
    case = Case("main", (numbers.reshape(-1), numbers.reshape(-1)))
    module = import_mlir(text)
    want = interpret(module, [case])["main"][0]
    load_pass("irees-expand-complex")().apply(get_context(), module)
    assert "irees.view_parts" in str(module)
    mine = interpret(module, [case])["main"][0]
    np.testing.assert_allclose(mine, want, rtol=1e-6 if element == "f32" else 1e-14)
