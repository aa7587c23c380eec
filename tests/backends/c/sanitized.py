"""
The programs that `test_sanitizers.py` runs in a process under AddressSanitizer.

Sizes are odd, so that every vector loop has a rest, and arrays are exactly as large as they
must be, so that one element too far is seen. Run alone: `python sanitized.py <program>...`.
"""

from __future__ import annotations

import contextlib
import ctypes
import sys

import numpy as np

import irees

F32 = np.float32
random = np.random.default_rng(0)


def floats(*shape: int) -> np.ndarray:
    return random.integers(-3, 4, shape).astype(F32)


def fill(shape: str, name: str, sizes: str = "") -> str:
    return f"""
  %e{name} = tensor.empty({sizes}) : tensor<{shape}>
  %f{name} = linalg.fill ins(%zero : f32) outs(%e{name} : tensor<{shape}>) -> tensor<{shape}>"""


MATMUL = f"""
func.func @static(%a: tensor<7x13xf32>, %b: tensor<13x49xf32>) -> tensor<7x49xf32> {{
  %zero = arith.constant 0.0 : f32{fill("7x49xf32", "1")}
  %r = linalg.matmul ins(%a, %b : tensor<7x13xf32>, tensor<13x49xf32>) outs(%f1 : tensor<7x49xf32>) -> tensor<7x49xf32>
  return %r : tensor<7x49xf32>
}}
func.func @dynamic(%a: tensor<?x?xf32>, %b: tensor<?x?xf32>) -> tensor<?x?xf32> {{
  %zero = arith.constant 0.0 : f32
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %m = tensor.dim %a, %c0 : tensor<?x?xf32>
  %n = tensor.dim %b, %c1 : tensor<?x?xf32>{fill("?x?xf32", "1", "%m, %n")}
  %r = linalg.matmul ins(%a, %b : tensor<?x?xf32>, tensor<?x?xf32>) outs(%f1 : tensor<?x?xf32>) -> tensor<?x?xf32>
  return %r : tensor<?x?xf32>
}}
func.func @transposed(%a: tensor<5x300xf32>, %b: tensor<33x300xf32>) -> tensor<5x33xf32> {{
  %zero = arith.constant 0.0 : f32{fill("5x33xf32", "1")}
  %r = linalg.generic {{indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (n, k)>, affine_map<(m, n, k) -> (m, n)>], iterator_types = ["parallel", "parallel", "reduction"]}} ins(%a, %b : tensor<5x300xf32>, tensor<33x300xf32>) outs(%f1 : tensor<5x33xf32>) {{
  ^bb0(%x: f32, %y: f32, %z: f32):
    %p = arith.mulf %x, %y : f32
    %s = arith.addf %z, %p : f32
    linalg.yield %s : f32
  }} -> tensor<5x33xf32>
  return %r : tensor<5x33xf32>
}}
"""


def matmul() -> None:
    functions = irees.compile(MATMUL, opt_level=0).functions
    a, b = floats(7, 13), floats(13, 49)
    assert np.array_equal(functions["static"](a, b), a @ b)
    for m, n, k in (
        (1, 1, 1),
        (3, 17, 5),
        (13, 50, 33),
        (2, 129, 7),
        (0, 3, 4),
        (4, 0, 3),
        (4, 5, 0),
    ):
        a, b = floats(m, k), floats(k, n)
        assert np.array_equal(functions["dynamic"](a, b), a @ b)
    a, b = floats(5, 300), floats(33, 300)
    assert np.array_equal(functions["transposed"](a, b), a @ b.T)


CONVOLUTION = f"""
func.func @main(%x: tensor<1x3x11x9xf32>, %w: tensor<7x3x3x3xf32>) -> tensor<1x7x5x4xf32> {{
  %zero = arith.constant 0.0 : f32{fill("1x7x5x4xf32", "1")}
  %r = linalg.conv_2d_nchw_fchw {{strides = dense<2> : tensor<2xi64>, dilations = dense<1> : tensor<2xi64>}} ins(%x, %w : tensor<1x3x11x9xf32>, tensor<7x3x3x3xf32>) outs(%f1 : tensor<1x7x5x4xf32>) -> tensor<1x7x5x4xf32>
  return %r : tensor<1x7x5x4xf32>
}}
"""


def convolution() -> None:
    x, w = floats(1, 3, 11, 9), floats(7, 3, 3, 3)
    windows = np.lib.stride_tricks.sliding_window_view(x, (3, 3), (2, 3))[:, :, ::2, ::2]
    got = irees.compile(CONVOLUTION, opt_level=0)(x, w)
    assert np.array_equal(got, np.einsum("nchwij,fcij->nfhw", windows, w))


NORMALIZE = f"""
func.func @main(%x: tensor<?x37xf32>) -> (tensor<?x37xf32>, tensor<37xf32>) {{
  %zero = arith.constant 0.0 : f32
  %c0 = arith.constant 0 : index
  %m = tensor.dim %x, %c0 : tensor<?x37xf32>{fill("?xf32", "1", "%m")}{fill("37xf32", "2")}
  %s = linalg.generic {{indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i)>], iterator_types = ["parallel", "reduction"]}} ins(%x : tensor<?x37xf32>) outs(%f1 : tensor<?xf32>) {{
  ^bb0(%a: f32, %b: f32):
    %t = arith.maximumf %a, %b : f32
    linalg.yield %t : f32
  }} -> tensor<?xf32>
  %e = tensor.empty(%m) : tensor<?x37xf32>
  %d = linalg.generic {{indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i)>, affine_map<(i, j) -> (i, j)>], iterator_types = ["parallel", "parallel"]}} ins(%x, %s : tensor<?x37xf32>, tensor<?xf32>) outs(%e : tensor<?x37xf32>) {{
  ^bb0(%a: f32, %b: f32, %o: f32):
    %t = arith.subf %a, %b : f32
    linalg.yield %t : f32
  }} -> tensor<?x37xf32>
  %c = linalg.generic {{indexing_maps = [affine_map<(i, j) -> (j, i)>, affine_map<(i, j) -> (i)>], iterator_types = ["parallel", "reduction"]}} ins(%d : tensor<?x37xf32>) outs(%f2 : tensor<37xf32>) {{
  ^bb0(%a: f32, %b: f32):
    %t = arith.addf %a, %b : f32
    linalg.yield %t : f32
  }} -> tensor<37xf32>
  return %d, %c : tensor<?x37xf32>, tensor<37xf32>
}}
"""


def normalize() -> None:
    program = irees.compile(NORMALIZE, opt_level=0)
    for rows in (0, 1, 3, 1001):
        x = floats(rows, 37)
        want = x - np.maximum(x.max(axis=1, initial=0), 0)[:, None]
        got, columns = program(x)
        assert np.array_equal(got, want)
        assert np.array_equal(columns, want.sum(axis=0))


MOVES = """
func.func @pad(%x: tensor<5x?xf32>) -> tensor<9x?xf32> {
  %zero = arith.constant 9.0 : f32
  %p = tensor.pad %x low[1, 2] high[3, 4] {
  ^bb0(%i: index, %j: index):
    tensor.yield %zero : f32
  } : tensor<5x?xf32> to tensor<9x?xf32>
  return %p : tensor<9x?xf32>
}
func.func @concat(%a: tensor<?x3xf32>, %b: tensor<?x3xf32>) -> tensor<?x3xf32> {
  %c = tensor.concat dim(0) %a, %b : (tensor<?x3xf32>, tensor<?x3xf32>) -> tensor<?x3xf32>
  return %c : tensor<?x3xf32>
}
func.func @slice(%x: tensor<9x17xf32>, %i: index) -> tensor<3x5xf32> {
  %s = tensor.extract_slice %x[%i, 2] [3, 5] [2, 3] : tensor<9x17xf32> to tensor<3x5xf32>
  return %s : tensor<3x5xf32>
}
func.func @transpose(%x: tensor<?x?xf32>) -> tensor<?x?xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %m = tensor.dim %x, %c0 : tensor<?x?xf32>
  %n = tensor.dim %x, %c1 : tensor<?x?xf32>
  %e = tensor.empty(%n, %m) : tensor<?x?xf32>
  %t = linalg.transpose ins(%x : tensor<?x?xf32>) outs(%e : tensor<?x?xf32>) permutation = [1, 0]
  return %t : tensor<?x?xf32>
}
"""


def moves() -> None:
    functions = irees.compile(MOVES, opt_level=0).functions
    for n in (1, 7, 33):
        x = floats(5, n)
        want = np.pad(x, ((1, 3), (2, 4)), constant_values=9)
        assert np.array_equal(functions["pad"](x), want)
        assert np.array_equal(functions["transpose"](x), x.T)
        a, b = floats(n, 3), floats(5, 3)
        assert np.array_equal(functions["concat"](a, b), np.concatenate([a, b]))
    x = floats(9, 17)
    for i in (0, 4):
        assert np.array_equal(functions["slice"](x, i), x[i : i + 5 : 2, 2:15:3])
    for i in (5, -1, 1 << 62):
        try:
            functions["slice"](x, i)
        except irees.errors.RuntimeTrap:
            continue
        raise AssertionError(f"a slice at {i} is outside")


SORTING = """
func.func @sort(%x: tensor<?xf32>) -> tensor<?xf32> {
  %s = iree_linalg_ext.sort dimension(0) outs(%x : tensor<?xf32>) {
  ^bb0(%a: f32, %b: f32):
    %less = arith.cmpf olt, %a, %b : f32
    iree_linalg_ext.yield %less : i1
  } -> tensor<?xf32>
  return %s : tensor<?xf32>
}
func.func @topk(%x: tensor<3x?xf32>, %v: tensor<3x5xf32>, %i: tensor<3x5xi64>) -> (tensor<3x5xf32>, tensor<3x5xi64>) {
  %s:2 = iree_linalg_ext.topk_v2 dimension(1) is_sorted ins(%x : tensor<3x?xf32>) outs(%v, %i : tensor<3x5xf32>, tensor<3x5xi64>) {
  ^bb0(%a: f32, %b: f32):
    %more = arith.cmpf ogt, %a, %b : f32
    iree_linalg_ext.yield %more : i1
  } -> tensor<3x5xf32>, tensor<3x5xi64>
  return %s#0, %s#1 : tensor<3x5xf32>, tensor<3x5xi64>
}
func.func @scatter(%o: tensor<?xf32>, %u: tensor<?xf32>, %i: tensor<?x1xi64>) -> tensor<?xf32> {
  %s = iree_linalg_ext.scatter dimension_map = [0] unique_indices(false) ins(%u, %i : tensor<?xf32>, tensor<?x1xi64>) outs(%o : tensor<?xf32>) {
  ^bb0(%new: f32, %old: f32):
    %t = arith.addf %new, %old : f32
    iree_linalg_ext.yield %t : f32
  } -> tensor<?xf32>
  return %s : tensor<?xf32>
}
"""


def sorting() -> None:
    functions = irees.compile(SORTING, opt_level=0).functions
    for n in (0, 1, 2, 33, 100):
        x = floats(n)
        assert np.array_equal(functions["sort"](x), np.sort(x))
    x = floats(3, 41)
    best, at = functions["topk"](x, floats(3, 5), np.zeros((3, 5), np.int64))
    assert np.array_equal(best, -np.sort(-x)[:, :5])
    assert np.array_equal(np.take_along_axis(x, at, 1), best)
    out = functions["scatter"](
        np.zeros(5, F32), np.ones(6, F32), np.array([[0], [4], [5], [-1], [1 << 40], [4]])
    )
    assert out.tolist() == [1, 0, 0, 0, 2]


REGIONS = """
func.func @until(%x: tensor<?xf32>, %n: index) -> (tensor<?xf32>, tensor<?xf32>) {
  %c0 = arith.constant 0 : index
  %r:2 = scf.while (%a = %x) : (tensor<?xf32>) -> (tensor<?xf32>, tensor<?xf32>) {
    %m = tensor.dim %a, %c0 : tensor<?xf32>
    %go = arith.cmpi slt, %m, %n : index
    %s = tensor.concat dim(0) %a, %x : (tensor<?xf32>, tensor<?xf32>) -> tensor<?xf32>
    scf.condition(%go) %a, %s : tensor<?xf32>, tensor<?xf32>
  } do {
  ^bb0(%p: tensor<?xf32>, %q: tensor<?xf32>):
    scf.yield %q : tensor<?xf32>
  }
  return %r#0, %r#1 : tensor<?xf32>, tensor<?xf32>
}
func.func @swap(%x: tensor<?xf32>, %y: tensor<?xf32>, %n: index, %c: i1) -> (tensor<?xf32>, tensor<?xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %r:2 = scf.for %i = %c0 to %n step %c1 iter_args(%a = %x, %b = %y) -> (tensor<?xf32>, tensor<?xf32>) {
    %d = scf.if %c -> (tensor<?xf32>) {
      %e = tensor.concat dim(0) %a, %b : (tensor<?xf32>, tensor<?xf32>) -> tensor<?xf32>
      scf.yield %e : tensor<?xf32>
    } else {
      scf.yield %a : tensor<?xf32>
    }
    %k = tensor.dim %d, %c0 : tensor<?xf32>
    %few = arith.cmpi slt, %k, %n : index
    cf.assert %few, "too many"
    scf.yield %b, %d : tensor<?xf32>, tensor<?xf32>
  }
  return %r#0, %r#1 : tensor<?xf32>, tensor<?xf32>
}
func.func @gather(%t: tensor<?x4xf32>, %i: index) -> tensor<4xf32> {
  %e = tensor.empty() : tensor<4xf32>
  %r = linalg.generic {indexing_maps = [affine_map<(j) -> (j)>], iterator_types = ["parallel"]} outs(%e : tensor<4xf32>) {
  ^bb0(%o: f32):
    %j = linalg.index 0 : index
    %v = tensor.extract %t[%i, %j] : tensor<?x4xf32>
    linalg.yield %v : f32
  } -> tensor<4xf32>
  return %r : tensor<4xf32>
}
"""


def regions() -> None:
    functions = irees.compile(REGIONS, opt_level=0).functions
    x, y = floats(3), floats(2)
    for n in (0, 3, 20):
        last, more = functions["until"](x, n)
        assert len(more) == len(last) + 3
        assert len(last) >= n
    for choice in (True, False):
        for n in (0, 1, 2, 9):
            # Whether it ends or traps: all memory is freed, once.
            with contextlib.suppress(irees.errors.RuntimeTrap):
                functions["swap"](x, y, n, choice)
    for rows in (0, 1):
        table = floats(rows, 4)
        assert np.array_equal(functions["gather"](table, 7), table.sum(0))


WEIGHTS = floats(19, 8, 3, 3)
PANELS = """
func.func @filter(%x: tensor<1x8x9x9xf32>) -> tensor<1x19x7x7xf32> {
  %zero = arith.constant 0.0 : f32
  %w = arith.constant dense_resource<w> : tensor<19x8x3x3xf32>
  %e = tensor.empty() : tensor<1x19x7x7xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<1x19x7x7xf32>) -> tensor<1x19x7x7xf32>
  %r = linalg.conv_2d_nchw_fchw ins(%x, %w : tensor<1x8x9x9xf32>, tensor<19x8x3x3xf32>) outs(%f : tensor<1x19x7x7xf32>) -> tensor<1x19x7x7xf32>
  return %r : tensor<1x19x7x7xf32>
}
func.func @pool(%x: tensor<1x1x35x35xf32>) -> tensor<1x1x17x17xf32> {
  %low = arith.constant 0xFF800000 : f32
  %w = tensor.empty() : tensor<3x3xf32>
  %e = tensor.empty() : tensor<1x1x17x17xf32>
  %f = linalg.fill ins(%low : f32) outs(%e : tensor<1x1x17x17xf32>) -> tensor<1x1x17x17xf32>
  %r = linalg.pooling_nchw_max {dilations = dense<1> : vector<2xi64>, strides = dense<2> : vector<2xi64>} ins(%x, %w : tensor<1x1x35x35xf32>, tensor<3x3xf32>) outs(%f : tensor<1x1x17x17xf32>) -> tensor<1x1x17x17xf32>
  return %r : tensor<1x1x17x17xf32>
}
func.func @crowded(%a: tensor<23x1024xf32>, %b: tensor<1024x70xf32>) -> tensor<23x70xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<23x70xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<23x70xf32>) -> tensor<23x70xf32>
  %r = linalg.matmul ins(%a, %b : tensor<23x1024xf32>, tensor<1024x70xf32>) outs(%f : tensor<23x70xf32>) -> tensor<23x70xf32>
  return %r : tensor<23x70xf32>
}
{-# dialect_resources: { builtin: { w: "0x04000000WEIGHTS" } } #-}
""".replace("WEIGHTS", WEIGHTS.tobytes().hex())


def panels() -> None:
    """Filters in panels, short steps up to the last element, rows that are packed."""
    functions = irees.compile(PANELS, opt_level=0).functions
    x = floats(1, 8, 9, 9)
    windows = np.lib.stride_tricks.sliding_window_view(x[0], (3, 3), axis=(1, 2))
    assert np.array_equal(functions["filter"](x)[0], np.einsum("chwij,fcij->fhw", windows, WEIGHTS))
    x = floats(1, 1, 35, 35)
    windows = np.lib.stride_tricks.sliding_window_view(x[0, 0], (3, 3))[::2, ::2]
    assert np.array_equal(functions["pool"](x)[0, 0], windows.max((2, 3)))
    a, b = floats(23, 1024), floats(1024, 70)
    assert np.array_equal(functions["crowded"](a, b), a @ b)


def surrounded(name: str, shapes: list[tuple[int, ...]], maps: list[str], loops: str) -> str:
    """A sum of products from 0, and the maximum of it and a row: all of it in registers."""
    parallel, reduced = loops.split("/")
    dims, rank = ", ".join(parallel + reduced), len(shapes[2])
    x, y, z = (f"tensor<{'x'.join(map(str, s))}xf32>" for s in shapes)
    row = f"tensor<{shapes[2][-1]}xf32>"
    kinds = ", ".join(['"parallel"'] * len(parallel) + ['"reduction"'] * len(reduced))
    indexing = ", ".join(f"affine_map<({dims}) -> ({m})>" for m in maps)
    point = ", ".join(f"d{i}" for i in range(rank))
    after = [f"affine_map<({point}) -> ({r})>" for r in (point, f"d{rank - 1}", point)]
    return f"""
func.func @{name}(%x: {x}, %y: {y}, %b: {row}) -> {z} {{
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : {z}
  %f = linalg.fill ins(%zero : f32) outs(%e : {z}) -> {z}
  %r = linalg.generic {{indexing_maps = [{indexing}], iterator_types = [{kinds}]}} ins(%x, %y : {x}, {y}) outs(%f : {z}) {{
  ^bb0(%a: f32, %c: f32, %o: f32):
    %p = arith.mulf %a, %c : f32
    %s = arith.addf %o, %p : f32
    linalg.yield %s : f32
  }} -> {z}
  %m = linalg.generic {{indexing_maps = [{", ".join(after)}], iterator_types = [{", ".join(['"parallel"'] * rank)}]}} ins(%r, %b : {z}, {row}) outs(%e : {z}) {{
  ^bb0(%a: f32, %c: f32, %o: f32):
    %s = arith.maximumf %a, %c : f32
    linalg.yield %s : f32
  }} -> {z}
  return %m : {z}
}}
"""


def surroundings() -> None:
    """Blocks of half a vector and of whole ones, windows several at a time, rows in slices."""
    windows = "k, h + p, w + q, i", "n, k, p, q, i, c", "n, h, w, c"
    cases = {
        "blocks": ([(1, 5, 9, 3), (3, 1, 3, 3, 3, 16), (3, 3, 7, 16)], windows, "nhwc/kipq"),
        "halves": ([(1, 5, 9, 8), (3, 1, 3, 3, 8, 8), (3, 3, 7, 8)], windows, "nhwc/kipq"),
        "depthwise": (
            [(7, 15, 33), (3, 3, 33), (3, 7, 33)],
            ("h * 2 + p, w * 2 + q, c", "p, q, c", "h, w, c"),
            "hwc/pq",
        ),
        "planes": (
            [(3, 7, 35), (3, 3, 3), (3, 3, 17)],
            ("c, h * 2 + p, w * 2 + q", "c, p, q", "c, h, w"),
            "chw/pq",
        ),
        "slices": ([(23, 1030), (1030, 48), (23, 48)], ("m, k", "k, n", "m, n"), "mn/k"),
    }
    sums = {
        "blocks": "khwipq,nkpqic->nhwc", "halves": "khwipq,nkpqic->nhwc",
        "depthwise": "hwcpq,pqc->hwc", "planes": "chwpq,cpq->chw", "slices": "mk,kn->mn",
    }  # fmt: skip
    text = "".join(surrounded(name, *case) for name, case in cases.items())
    functions = irees.compile(text, opt_level=0).functions
    for name, (shapes, maps, _) in cases.items():
        x, y, row = floats(*shapes[0]), floats(*shapes[1]), floats(shapes[2][-1])
        seen = x
        if "+" in maps[0]:
            axes = tuple(i for i, m in enumerate(maps[0].split(", ")) if "+" in m)
            step = slice(None, None, 2 if "* 2" in maps[0] else 1)
            seen = np.lib.stride_tricks.sliding_window_view(x, (3, 3), axes)
            seen = seen[tuple(step if i in axes else slice(None) for i in range(x.ndim))]
        want = np.maximum(np.einsum(sums[name], seen, y), row)
        assert np.array_equal(functions[name](x, y, row), want), name


def fault() -> None:
    """An argument that reaches past the end of its memory: proof that a fault is seen."""
    x = floats(5, 37)
    program = irees.compile(NORMALIZE, opt_level=0)
    beyond = (ctypes.c_char * x.nbytes).from_address(x.ctypes.data + 4)
    program(np.frombuffer(beyond, F32).reshape(5, 37))


PROGRAMS = {
    f.__name__: f
    for f in (matmul, convolution, normalize, moves, sorting, regions, panels, surroundings, fault)
}

if __name__ == "__main__":
    for name in sys.argv[1:]:
        print(f"== {name}", file=sys.stderr, flush=True)
        PROGRAMS[name]()
