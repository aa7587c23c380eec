"""Programs that read a table at places that depend on data: interpreter, every phase and C agree."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

import irees
from irees.errors import ArgumentError, RuntimeTrap
from irees.frontends.mlir import import_mlir
from irees.remarks import collect
from irees.target import Target
from irees.testing.oracles import Case, compiled_results, differences, interpret, phases_agree
from irees.testing.tolerances import ulps


def skip_unless_it_runs(target: str) -> None:
    """Skips what the processor cannot run."""
    try:
        if Target.parse(target).missing_features():
            pytest.skip(f"this machine does not run {target}")
    except ArgumentError:
        pytest.skip(f"{target} is of another family of processors")


@pytest.mark.parametrize("dynamic", [False, True])
@pytest.mark.parametrize("index", ["i32", "i64"])
@pytest.mark.parametrize("size", [1, 15, 16, 33, 100])
def test_table(size, index, dynamic):
    n, t = ("?", "?") if dynamic else (size, 7)
    text = f"""
func.func @main(%t: tensor<{t}xf32>, %i: tensor<{n}x{index}>, %o: tensor<{n}xf32>)
    -> tensor<{n}xf32> {{
  %r = linalg.generic {{
    indexing_maps = [affine_map<(d0) -> (d0)>, affine_map<(d0) -> (d0)>],
    iterator_types = ["parallel"]
  }} ins(%i : tensor<{n}x{index}>) outs(%o : tensor<{n}xf32>) {{
  ^bb0(%p: {index}, %q: f32):
    %j = arith.index_cast %p : {index} to index
    %v = tensor.extract %t[%j] : tensor<{t}xf32>
    %e = math.exp %v : f32
    linalg.yield %e : f32
  }} -> tensor<{n}xf32>
  return %r : tensor<{n}xf32>
}}
"""
    generator = np.random.default_rng(size)
    table = generator.normal(size=7).astype(np.float32)
    # Places outside of the table are moved inside.
    places = generator.integers(-3, 12, size).astype(f"i{int(index[1:]) // 8}")
    module = import_mlir(text)
    cases = [Case("main", (table, places, np.zeros(size, np.float32)), (ulps(4),))]
    expected = interpret(module, cases)
    np.testing.assert_allclose(expected["main"][0], np.exp(table[np.clip(places, 0, 6)]), rtol=1e-6)
    assert phases_agree(module.clone(), cases, expected) == []
    assert differences(compiled_results(module, cases), expected, cases) == []


def columns(rows: object, extent: object) -> str:
    """out[i, j] = x[i, p[j]], with an assert that each place is in bounds."""
    return f"""
func.func @main(%x: tensor<{rows}x{extent}xf32>, %p: tensor<9xi64>, %o: tensor<{rows}x9xf32>)
    -> tensor<{rows}x9xf32> {{
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %n = tensor.dim %x, %c1 : tensor<{rows}x{extent}xf32>
  %r = linalg.generic {{
    indexing_maps = [affine_map<(i, j) -> (j)>, affine_map<(i, j) -> (i, j)>],
    iterator_types = ["parallel", "parallel"]
  }} ins(%p : tensor<9xi64>) outs(%o : tensor<{rows}x9xf32>) {{
  ^bb0(%k: i64, %q: f32):
    %at = arith.index_cast %k : i64 to index
    %low = arith.cmpi sge, %at, %c0 : index
    %high = arith.cmpi slt, %at, %n : index
    %inside = arith.andi %low, %high : i1
    cf.assert %inside, "a place is out of bounds"
    %i = linalg.index 0 : index
    %v = tensor.extract %x[%i, %at] : tensor<{rows}x{extent}xf32>
    linalg.yield %v : f32
  }} -> tensor<{rows}x9xf32>
  return %r : tensor<{rows}x9xf32>
}}
"""


@pytest.mark.parametrize("dynamic", [False, True])
@pytest.mark.parametrize("rows", [0, 1, 2, 3, 4, 5, 7, 8])
def test_rows_that_share_places(rows, dynamic):
    text = columns(*("?", "?") if dynamic else (rows, 7))
    generator = np.random.default_rng(rows)
    table = generator.normal(size=(rows, 7)).astype(np.float32)
    places = generator.integers(0, 7, 9)
    module = import_mlir(text)
    cases = [Case("main", (table, places, np.zeros((rows, 9), np.float32)), (ulps(0),))]
    expected = interpret(module, cases)
    np.testing.assert_array_equal(expected["main"][0], table[:, places])
    assert phases_agree(module.clone(), cases, expected) == []
    assert differences(compiled_results(module, cases), expected, cases) == []


@pytest.mark.parametrize("dynamic", [False, True])
@pytest.mark.parametrize("place", [-1, 7, 1 << 40])
@pytest.mark.parametrize("rows", [1, 4, 5])
def test_a_shared_place_out_of_bounds_is_an_error(rows, place, dynamic):
    program = irees.compile(columns(*("?", "?") if dynamic else (rows, 7)))
    places = np.arange(9) % 7
    places[8] = place
    out = np.zeros((rows, 9), np.float32)
    with pytest.raises(RuntimeTrap, match="a place is out of bounds"):
        program(np.ones((rows, 7), np.float32), places, out)


def test_a_checked_place_is_not_clamped():
    """The condition of the assert selects the place: comparing it again costs two operations."""
    text = "\n".join(map(str, irees.compile(columns(8, 7)).sources.values()))
    kernel = text[text.index("irees_k0_w0") :]
    assert "< 6 ?" not in kernel
    assert kernel.count("*d->trap = ") == 1


TARGETS = ["cpu", "cpu:generic", "cpu:x86-64-v3"]


def table(place: tuple[object, object], count: object, element: str) -> str:
    """out[i] = x[p[i], q[i]], where an index from the end is allowed and one out of bounds traps."""
    check = """
    %{0} = arith.index_cast %{0}0 : i64 to index
    %{0}1 = arith.addi %{0}, %{0}n : index
    %{0}2 = arith.cmpi slt, %{0}, %c0 : index
    %{0}3 = arith.select %{0}2, %{0}1, %{0} : index
    %{0}4 = arith.cmpi sge, %{0}3, %c0 : index
    %{0}5 = arith.cmpi slt, %{0}3, %{0}n : index
    %{0}6 = arith.andi %{0}4, %{0}5 : i1
    cf.assert %{0}6, "{0} is out of bounds"
"""
    m, n = place
    x = f"tensor<{m}x{n}x{element}>"
    return f"""
func.func @main(%x: {x}, %p: tensor<{count}xi64>, %q: tensor<{count}xi64>,
    %o: tensor<{count}x{element}>) -> tensor<{count}x{element}> {{
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %an = tensor.dim %x, %c0 : {x}
  %bn = tensor.dim %x, %c1 : {x}
  %r = linalg.generic {{
    indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>, affine_map<(i) -> (i)>],
    iterator_types = ["parallel"]
  }} ins(%p, %q : tensor<{count}xi64>, tensor<{count}xi64>) outs(%o : tensor<{count}x{element}>) {{
  ^bb0(%a0: i64, %b0: i64, %old: {element}):
{check.format("a")}{check.format("b")}
    %v = tensor.extract %x[%a3, %b3] : {x}
    linalg.yield %v : {element}
  }} -> tensor<{count}x{element}>
  return %r : tensor<{count}x{element}>
}}
"""


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("dynamic", [False, True])
@pytest.mark.parametrize("element", ["i1", "i8", "f16", "bf16", "f32", "i64", "f64"])
def test_places_in_two_dims(element, dynamic, target):
    skip_unless_it_runs(target)
    count = 53
    generator = np.random.default_rng(5)
    dtype = {"i1": np.bool_, "bf16": ml_dtypes.bfloat16}.get(element)
    dtype = dtype or np.dtype(f"{'f' if element[0] == 'f' else 'i'}{int(element[1:]) // 8}")
    x = generator.integers(0, 2 if element == "i1" else 100, (6, 9)).astype(dtype)
    p, q = generator.integers(-6, 6, count), generator.integers(-9, 9, count)
    text = table(("?", "?") if dynamic else (6, 9), "?" if dynamic else count, element)
    out = np.zeros(count, dtype)
    with collect() as remarks:
        program = irees.compile(text, target=target)
    assert not [r.text for r in remarks if "vector" in r.text]
    np.testing.assert_array_equal(program(x, p, q, out), x[p, q])


@pytest.mark.parametrize("dynamic", [False, True])
@pytest.mark.parametrize("lane", range(17))
def test_each_lane_is_checked(lane, dynamic):
    """Of a vector, of the lanes that overlap with it, and of scalars."""
    text = table(("?", "?") if dynamic else (6, 9), "?" if dynamic else 17, "f32")
    program, x, out = irees.compile(text), np.ones((6, 9), np.float32), np.zeros(17, np.float32)
    good = np.zeros(17, np.int64)
    for bad in (6, -7, 1 << 40, -(1 << 63)):
        p = good.copy()
        p[lane] = bad
        with pytest.raises(RuntimeTrap, match="a is out of bounds"):
            program(x, p, good, out)
    p[lane] = 9
    with pytest.raises(RuntimeTrap, match="b is out of bounds"):
        program(x, good, p, out)


def sample(channels: object, height: object, width: object, count: object) -> str:
    """out[c, i] = x[c, clamp(y[i]), clamp(z[i])] * y[i], for places in f32 that may be NaN."""
    x, y, out = (
        f"tensor<{shape}xf32>"
        for shape in (f"{channels}x{height}x{width}", count, f"{channels}x{count}")
    )
    clamp = """
    %{0}1 = math.floor %{0} : f32
    %{0}2 = arith.index_cast %{0}m : index to i64
    %{0}3 = arith.sitofp %{0}2 : i64 to f32
    %{0}4 = arith.cmpf oge, %{0}1, %zero : f32
    %{0}5 = arith.cmpf ole, %{0}1, %{0}3 : f32
    %{0}6 = arith.andi %{0}4, %{0}5 : i1
    %{0}7 = arith.select %{0}6, %{0}1, %zero : f32
    %{0}8 = arith.fptosi %{0}7 : f32 to i64
    %{0}9 = arith.index_cast %{0}8 : i64 to index
    %{0}10 = arith.maxsi %{0}9, %c0 : index
    %{0}11 = arith.minsi %{0}10, %{0}m : index
"""
    return f"""
func.func @main(%x: {x}, %y: {y}, %z: {y}, %o: {out}) -> {out} {{
  %zero = arith.constant 0.0 : f32
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %hn = tensor.dim %x, %c1 : {x}
  %wn = tensor.dim %x, %c2 : {x}
  %hm = arith.subi %hn, %c1 : index
  %wm = arith.subi %wn, %c1 : index
  %r = linalg.generic {{
    indexing_maps = [affine_map<(c, i) -> (i)>, affine_map<(c, i) -> (i)>,
                     affine_map<(c, i) -> (c, i)>],
    iterator_types = ["parallel", "parallel"]
  }} ins(%y, %z : {y}, {y}) outs(%o : {out}) {{
  ^bb0(%h: f32, %w: f32, %old: f32):
{clamp.format("h")}{clamp.format("w")}
    %c = linalg.index 0 : index
    %v = tensor.extract %x[%c, %h11, %w11] : {x}
    %s = arith.mulf %v, %h7 : f32
    linalg.yield %s : f32
  }} -> {out}
  return %r : {out}
}}
"""


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("dynamic", [False, True])
@pytest.mark.parametrize("shape", [(4, 5, 7, 33), (3, 1, 1, 16), (1, 8, 8, 3), (20, 6, 5, 100)])
def test_channels_share_a_place(shape, dynamic, target):
    """The place is computed once for all channels; each kind of number is one of them."""
    skip_unless_it_runs(target)
    c, h, w, n = shape
    generator = np.random.default_rng(n)
    x = generator.normal(size=(c, h, w)).astype(np.float32)
    y, z = (generator.uniform(-2, m + 2, n).astype(np.float32) for m in (h, w))
    odd = [np.nan, np.inf, -np.inf, -0.0, 3e9, -3e9, 1e30][:n]
    y[: len(odd)] = odd
    z[-len(odd) :] = odd
    text = sample(*("?" * 4 if dynamic else shape))
    args = (x, y, z, np.zeros((c, n), np.float32))
    expected = irees.compile(text, target="reference")(*args)
    np.testing.assert_array_equal(irees.compile(text, target=target)(*args), expected)


@pytest.mark.parametrize("shape", [(8, 3), (4, 1), (1, 4), (5, 2)])
def test_each_jammed_row_has_its_own_index(shape):
    """Values of outer loops are computed before the inner ones, but not those of a jammed row."""
    m, n = shape
    text = f"""
func.func @main(%x: tensor<{m}x{n}x7xf32>, %p: tensor<{n}x9xi64>, %o: tensor<{m}x{n}x9xf32>)
    -> tensor<{m}x{n}x9xf32> {{
  %r = linalg.generic {{
    indexing_maps = [affine_map<(i, j, k) -> (j, k)>, affine_map<(i, j, k) -> (i, j, k)>],
    iterator_types = ["parallel", "parallel", "parallel"]
  }} ins(%p : tensor<{n}x9xi64>) outs(%o : tensor<{m}x{n}x9xf32>) {{
  ^bb0(%k: i64, %q: f32):
    %at = arith.index_cast %k : i64 to index
    %i = linalg.index 0 : index
    %j = linalg.index 1 : index
    %v = tensor.extract %x[%i, %j, %at] : tensor<{m}x{n}x7xf32>
    %w = arith.index_cast %i : index to i32
    %f = arith.sitofp %w : i32 to f32
    %s = arith.addf %v, %f : f32
    linalg.yield %s : f32
  }} -> tensor<{m}x{n}x9xf32>
  return %r : tensor<{m}x{n}x9xf32>
}}
"""
    generator = np.random.default_rng(m)
    table = generator.normal(size=(m, n, 7)).astype(np.float32)
    places = generator.integers(-2, 9, (n, 9))
    module = import_mlir(text)
    cases = [Case("main", (table, places, np.zeros((m, n, 9), np.float32)), (ulps(0),))]
    expected = interpret(module, cases)
    assert differences(compiled_results(module, cases), expected, cases) == []
