"""Reductions with every combiner, and operands in every layout, over odd sizes, against numpy."""

from __future__ import annotations

from functools import cache

import ml_dtypes
import numpy as np
import pytest

import irees

DTYPES = {
    "i1": np.bool_, "i8": np.int8, "i16": np.int16, "i32": np.int32, "i64": np.int64,
    "f16": np.float16, "bf16": ml_dtypes.bfloat16, "f32": np.float32, "f64": np.float64,
}  # fmt: skip
SIZES = (1, 2, 3, 7, 15, 17, 33, 64, 65, 130, 257)
FLOATS = ("f16", "bf16", "f32", "f64")
INTEGERS = ("i8", "i16", "i32", "i64")

COMBINERS = {
    "arith.addf": np.add, "arith.mulf": np.multiply, "arith.maximumf": np.maximum,
    "arith.minimumf": np.minimum, "arith.maxnumf": np.fmax, "arith.minnumf": np.fmin,
    "arith.addi": np.add, "arith.muli": np.multiply, "arith.maxsi": np.maximum,
    "arith.minsi": np.minimum, "arith.maxui": np.maximum, "arith.minui": np.minimum,
    "arith.andi": np.bitwise_and, "arith.ori": np.bitwise_or, "arith.xori": np.bitwise_xor,
}  # fmt: skip
UNSIGNED = ("arith.maxui", "arith.minui")


def combiners(element: str) -> list[str]:
    """The combiners of an element type; on i1 those whose meaning a bool has too."""
    if element == "i1":
        return ["arith.andi", "arith.ori", "arith.xori"]
    return [name for name in COMBINERS if name.endswith("f") == (element in FLOATS)]


def reduction(name: str, combiner: str, element: str, kind: str) -> str:
    """A reduction of a dynamic row, of each row, or of each column of a matrix."""
    loops, source, target, iterators = {
        "all": ("i", "i", "", '"reduction"'),
        "rows": ("i, j", "i, j", "i", '"parallel", "reduction"'),
        "columns": ("i, j", "j, i", "i", '"parallel", "reduction"'),
    }[kind]
    shape = "?" if kind == "all" else "?x?"
    x, o = f"tensor<{shape}x{element}>", f"tensor<{'?x' if target else ''}{element}>"
    return f"""
func.func @{name}(%x: {x}, %o: {o}) -> {o} {{
  %r = linalg.generic {{indexing_maps = [affine_map<({loops}) -> ({source})>,
      affine_map<({loops}) -> ({target})>], iterator_types = [{iterators}]}}
      ins(%x : {x}) outs(%o : {o}) {{
  ^bb0(%a: {element}, %acc: {element}):
    %c = {combiner} %acc, %a : {element}
    linalg.yield %c : {element}
  }} -> {o}
  return %r : {o}
}}
"""


def values(element: str, shape: tuple[int, ...], seed: int, small: bool) -> np.ndarray:
    random = np.random.default_rng(seed)
    if element == "i1":
        return random.integers(0, 2, shape).astype(np.bool_)
    if element in INTEGERS:
        info = np.iinfo(DTYPES[element])
        return random.integers(info.min, info.max, shape, dtype=DTYPES[element], endpoint=True)
    # Sums and products of these are exact in every order, also in 8 bits of mantissa.
    choices = [-2.0, -1.0, 0.5, 1.0] if small else [-1.0, 0.0, 1.0]
    drawn = random.choice(choices, shape, p=[0.01, 0.3, 0.01, 0.68] if small else None)
    return drawn.astype(DTYPES[element])


def expected(combiner: str, x: np.ndarray, init: np.ndarray, axis: int) -> np.ndarray:
    function = COMBINERS[combiner]
    dtype = init.dtype
    if combiner in UNSIGNED:
        x, init = x.view(f"u{dtype}"), init.view(f"u{dtype}")
    wide = x.astype(np.float64) if dtype.kind in "fV" or dtype == ml_dtypes.bfloat16 else x
    result = function.reduce(wide, axis=axis, dtype=None if wide is not x else x.dtype)
    with np.errstate(all="ignore"):
        result = function(result, init.astype(wide.dtype)).astype(init.dtype)
    return result.view(dtype) if combiner in UNSIGNED else result


@cache
def program(element: str):
    return irees.compile(
        "".join(
            reduction(f"{combiner[6:]}_{kind}", combiner, element, kind)
            for combiner in combiners(element)
            for kind in ("all", "rows", "columns")
        )
    )


@pytest.mark.parametrize("element", DTYPES)
def test_reductions(element):
    wrong = []
    for combiner in combiners(element):
        small = combiner == "arith.mulf"
        for number, size in enumerate(SIZES):
            if element in ("bf16", "f16") and combiner == "arith.addf" and size > 257:
                continue
            other = SIZES[-1 - number] if size < 130 else 3
            for kind, shape, axis in (
                ("all", (size,), 0), ("rows", (other, size), 1), ("columns", (size, other), 0),
            ):  # fmt: skip
                x = values(element, shape, size, small)
                init = values(element, (*shape[:axis], *shape[axis + 1 :]), size + 1, small)
                got = program(element).functions[f"{combiner[6:]}_{kind}"](x, init)
                if not np.array_equal(got, expected(combiner, x, init, axis), equal_nan=True):
                    wrong.append((combiner, kind, shape))
    assert not wrong


LENGTHS = (3, 7, 12, 21, 31, 77)
"""Static lengths of rows: below a vector, between two of them, and with a remainder of several."""


@cache
def rows_of(element: str):
    text = ""
    for combiner in combiners(element):
        for size in LENGTHS:
            one = reduction(f"{combiner[6:]}_{size}", combiner, element, "rows")
            text += one.replace(f"tensor<?x?x{element}>", f"tensor<?x{size}x{element}>")
    return irees.compile(text)


@pytest.mark.parametrize("element", DTYPES)
def test_rows_of_static_length(element):
    """The last vector of a row overlaps with the one before."""
    wrong = []
    for combiner in combiners(element):
        for size in LENGTHS:
            x = values(element, (5, size), size, combiner == "arith.mulf")
            init = values(element, (5,), size + 1, combiner == "arith.mulf")
            got = rows_of(element).functions[f"{combiner[6:]}_{size}"](x, init)
            if not np.array_equal(got, expected(combiner, x, init, 1), equal_nan=True):
                wrong.append((combiner, size))
    assert not wrong


@pytest.mark.parametrize("size", LENGTHS)
@pytest.mark.parametrize("fp", ["default", "strict"])
def test_updates_of_static_length(size, fp):
    """An update in place is done once: its last vector overlaps with none."""
    text = f"""
func.func @main(%x: tensor<3x{size}xf32>, %y: tensor<3x{size}xf32>)
    -> (tensor<3x{size}xf32>, tensor<3xf32>) {{
  %z = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<3xf32>
  %f = linalg.fill ins(%z : f32) outs(%e : tensor<3xf32>) -> tensor<3xf32>
  %u = linalg.generic {{indexing_maps = [affine_map<(i, j) -> (i, j)>,
      affine_map<(i, j) -> (i, j)>], iterator_types = ["parallel", "parallel"]}}
      ins(%x : tensor<3x{size}xf32>) outs(%y : tensor<3x{size}xf32>) {{
  ^bb0(%a: f32, %o: f32):
    %s = arith.addf %a, %o : f32
    linalg.yield %s : f32
  }} -> tensor<3x{size}xf32>
  %n = linalg.generic {{indexing_maps = [affine_map<(i, j) -> (i, j)>,
      affine_map<(i, j) -> (i)>], iterator_types = ["parallel", "reduction"]}}
      ins(%u : tensor<3x{size}xf32>) outs(%f : tensor<3xf32>) {{
  ^bb0(%a: f32, %o: f32):
    %s = arith.addf %a, %o : f32
    linalg.yield %s : f32
  }} -> tensor<3xf32>
  return %u, %n : tensor<3x{size}xf32>, tensor<3xf32>
}}"""
    program = irees.compile(text, fp=fp)
    x, y = (values("f32", (3, size), seed, True) for seed in (1, 2))
    sums, rows = program(x, y.copy())
    np.testing.assert_array_equal(sums, x + y)
    np.testing.assert_array_equal(rows, (x + y).sum(1))


@pytest.mark.parametrize("element", ["f32", "f64"])
def test_reductions_of_special_values(element):
    wrong = []
    for combiner in ("maximumf", "minimumf", "maxnumf", "minnumf"):
        for place in (0, 5, 64, 129):
            x = values(element, (130,), place, False)
            for special in (np.nan, np.inf, -np.inf):
                x[place] = special
                init = np.asarray(-3.0, x.dtype)
                got = program(element).functions[f"{combiner}_all"](x, init)
                want = expected(f"arith.{combiner}", x, init, 0)
                if not np.array_equal(got, want, equal_nan=True):
                    wrong.append((combiner, place, special, float(got), float(want)))
            x[:] = np.nan
            got = program(element).functions[f"{combiner}_all"](x, np.asarray(np.nan, x.dtype))
            assert np.isnan(got)
    assert not wrong


def test_zeros_keep_their_order():
    x = np.full(33, -0.0, np.float32)
    functions = program("f32").functions
    assert np.signbit(functions["addf_all"](x, np.asarray(-0.0, np.float32)))
    x[17] = 0.0
    assert not np.signbit(functions["maximumf_all"](x, np.asarray(-0.0, np.float32)))
    x[:] = 0.0
    x[17] = -0.0
    assert np.signbit(functions["minimumf_all"](x, np.asarray(0.0, np.float32)))


def elementwise(name: str, element: str, source: str, shape: str, loops: str = "i, j") -> str:
    count = len(loops.split(","))
    iterators = ", ".join(['"parallel"'] * count)
    x = f"tensor<{shape}x{element}>"
    o = f"tensor<{'?x' * count}{element}>"
    op = "arith.negf" if element in FLOATS else None
    body = f"%c = {op} %a : {element}" if op else f"%c = arith.addi %a, %a : {element}"
    return f"""
func.func @{name}(%x: {x}, %o: {o}) -> {o} {{
  %r = linalg.generic {{indexing_maps = [affine_map<({loops}) -> ({source})>,
      affine_map<({loops}) -> ({loops})>], iterator_types = [{iterators}]}}
      ins(%x : {x}) outs(%o : {o}) {{
  ^bb0(%a: {element}, %b: {element}):
    {body}
    linalg.yield %c : {element}
  }} -> {o}
  return %r : {o}
}}
"""


def window(x: np.ndarray, m: int, n: int) -> np.ndarray:
    i, j = np.ogrid[:m, :n]
    return x[i + j, j]


# Per layout: the map, the shape of the operand for m x n results, the operand as numpy sees it.
LAYOUTS = {
    "same": ("i, j", lambda m, n: (m, n), lambda x, m, n: x),
    "transposed": ("j, i", lambda m, n: (n, m), lambda x, m, n: x.T),
    "every_other": ("i, j * 2", lambda m, n: (m, 2 * n), lambda x, m, n: x[:, ::2]),
    "every_third_row": ("i * 3, j", lambda m, n: (3 * m, n), lambda x, m, n: x[::3]),
    "shifted": ("i, j + 2", lambda m, n: (m, n + 5), lambda x, m, n: x[:, 2 : n + 2]),
    "window": ("i + j, j", lambda m, n: (m + n, n), window),
    "column": ("i, 0", lambda m, n: (m, 4), lambda x, m, n: np.broadcast_to(x[:, :1], (m, n))),
    "row": ("0, j", lambda m, n: (4, n), lambda x, m, n: np.broadcast_to(x[:1], (m, n))),
}


@pytest.mark.parametrize("element", ["i8", "i32", "i64", "f16", "bf16", "f32", "f64"])
def test_layouts_of_operands(element):
    texts = [elementwise(name, element, source, "?x?") for name, (source, _, _) in LAYOUTS.items()]
    functions = irees.compile("".join(texts)).functions
    wrong = []
    for name, (_, shape, view) in LAYOUTS.items():
        for m, n in ((1, 1), (3, 7), (7, 17), (5, 33), (17, 65), (2, 130)):
            x = values(element, shape(m, n), m, False)
            part = view(x, m, n)
            with np.errstate(all="ignore"):
                want = -part if element in FLOATS else part + part
            got = functions[name](x, np.zeros((m, n), x.dtype))
            if not np.array_equal(got, want):
                wrong.append((name, m, n))
    assert not wrong


def test_indices_and_gathers():
    text = """
func.func @iota(%o: tensor<?x?xi32>) -> tensor<?x?xi32> {
  %r = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>],
      iterator_types = ["parallel", "parallel"]} outs(%o : tensor<?x?xi32>) {
  ^bb0(%a: i32):
    %i = linalg.index 0 : index
    %j = linalg.index 1 : index
    %k = arith.addi %i, %j : index
    %v = arith.index_cast %k : index to i32
    linalg.yield %v : i32
  } -> tensor<?x?xi32>
  return %r : tensor<?x?xi32>
}
func.func @rows(%t: tensor<?x?xf32>, %at: tensor<?xi64>, %o: tensor<?x?xf32>) -> tensor<?x?xf32> {
  %r = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i)>, affine_map<(i, j) -> (i, j)>],
      iterator_types = ["parallel", "parallel"]} ins(%at : tensor<?xi64>) outs(%o : tensor<?x?xf32>) {
  ^bb0(%a: i64, %b: f32):
    %j = linalg.index 1 : index
    %i = arith.index_cast %a : i64 to index
    %v = tensor.extract %t[%i, %j] : tensor<?x?xf32>
    linalg.yield %v : f32
  } -> tensor<?x?xf32>
  return %r : tensor<?x?xf32>
}
"""
    functions = irees.compile(text).functions
    for m, n in ((1, 1), (3, 17), (40, 33), (1, 500)):
        got = functions["iota"](np.zeros((m, n), np.int32))
        assert np.array_equal(got, np.add.outer(np.arange(m), np.arange(n)))
        table = np.arange(7 * n, dtype=np.float32).reshape(7, n)
        at = np.arange(m) % 7
        assert np.array_equal(functions["rows"](table, at, np.zeros((m, n), np.float32)), table[at])


def test_strict_mode_keeps_the_order_of_a_sum():
    text = reduction("main", "arith.addf", "f32", "all")
    x = np.random.default_rng(3).standard_normal(1001).astype(np.float32)
    total = np.float32(0.5)
    for value in x:
        total = np.float32(total + value)
    assert irees.compile(text, fp="strict")(x, np.asarray(0.5, np.float32)) == total


def test_lanes_are_not_counted_in_bits():
    text = """func.func @main(%o: tensor<?x?xi1>) -> tensor<?x?xi1> {
  %r = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>],
      iterator_types = ["parallel", "parallel"]} outs(%o : tensor<?x?xi1>) {
  ^bb0(%a: i1):
    %i = linalg.index 0 : index
    %j = linalg.index 1 : index
    %k = arith.addi %i, %j : index
    %v = arith.index_cast %k : index to i1
    linalg.yield %v : i1
  } -> tensor<?x?xi1>
  return %r : tensor<?x?xi1>
}"""
    got = irees.compile(text)(np.zeros((3, 70), np.bool_))
    np.testing.assert_array_equal(got, np.add.outer(np.arange(3), np.arange(70)) % 2 == 1)


def test_the_order_of_a_window_stays_if_its_body_depends_on_it():
    """r = 3 * r + x, in the order of the taps"""
    program = irees.compile("""
func.func @main(%x: tensor<2x9x40xi32>, %o: tensor<2x7x38xi32>) -> tensor<2x7x38xi32> {
  %k = tensor.empty() : tensor<3x3xi32>
  %three = arith.constant 3 : i32
  %r = linalg.generic {indexing_maps = [affine_map<(c, h, w, y, x) -> (c, h + y, w + x)>,
      affine_map<(c, h, w, y, x) -> (y, x)>, affine_map<(c, h, w, y, x) -> (c, h, w)>],
      iterator_types = ["parallel", "parallel", "parallel", "reduction", "reduction"]}
      ins(%x, %k : tensor<2x9x40xi32>, tensor<3x3xi32>) outs(%o : tensor<2x7x38xi32>) {
  ^bb0(%a: i32, %b: i32, %c: i32):
    %m = arith.muli %c, %three : i32
    %s = arith.addi %m, %a : i32
    linalg.yield %s : i32
  } -> tensor<2x7x38xi32>
  return %r : tensor<2x7x38xi32>
}""")
    x = np.random.default_rng(0).integers(-9, 9, (2, 9, 40)).astype(np.int32)
    expected = np.ones((2, 7, 38), np.int32)
    for y in range(3):
        for z in range(3):
            expected = 3 * expected + x[:, y : y + 7, z : z + 38]
    np.testing.assert_array_equal(program(x, np.ones((2, 7, 38), np.int32)), expected)
