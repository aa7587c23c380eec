"""Contractions of all kinds, sizes and element types, bit for bit against numpy on integers."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from math import prod

import ml_dtypes
import numpy as np
import pytest
from xdsl.dialects import memref

import irees
from irees.target import Target

DTYPES = {
    "f32": np.float32, "f64": np.float64, "f16": np.float16, "bf16": ml_dtypes.bfloat16,
    "i8": np.int8, "i16": np.int16, "i32": np.int32, "i64": np.int64, "index": np.int64,
}  # fmt: skip
WIDEN = {"f": "arith.extf", "b": "arith.extf", "i": "arith.extsi"}


@dataclass(frozen=True)
class Case:
    """A multiply-add: maps and sizes of its loops, `r` for the ones that are summed over."""

    name: str
    loops: dict[str, int]
    lhs: tuple[str, ...]
    rhs: tuple[str, ...]
    out: tuple[str, ...]
    types: tuple[str, str] = ("f32", "f32")
    dynamic: bool = False
    reduced: frozenset[str] = field(default=frozenset())

    def __post_init__(self):
        object.__setattr__(self, "reduced", frozenset(self.loops) - set(self.out))

    def extent(self, expr: str) -> int:
        """The size of a dim that is indexed by an expression of loops."""
        return eval(expr, {}, {k: n - 1 for k, n in self.loops.items()}) + 1

    def shape(self, exprs: tuple[str, ...]) -> tuple[int, ...]:
        return tuple(self.extent(e) for e in exprs)

    def kind(self, exprs: tuple[str, ...], element: str) -> str:
        sizes = ("?" if self.dynamic and e in self.loops else str(self.extent(e)) for e in exprs)
        return f"tensor<{''.join(s + 'x' for s in sizes)}{element}>"

    def mlir(self) -> str:
        """func.func @name(lhs, rhs, init) of one generic."""
        narrow, wide = self.types
        kinds = [
            self.kind(e, t) for e, t in zip((self.lhs, self.rhs, self.out), (narrow, narrow, wide))
        ]
        dims = ", ".join(self.loops)
        maps = ", ".join(
            f"affine_map<({dims}) -> ({', '.join(e)})>" for e in (self.lhs, self.rhs, self.out)
        )
        iterators = ", ".join(
            '"reduction"' if loop in self.reduced else '"parallel"' for loop in self.loops
        )
        suffix = "i" if wide.startswith("i") else "f"
        cast = WIDEN[narrow[0]]
        widen = "" if narrow == wide else (
            f"%wa = {cast} %a : {narrow} to {wide}\n    %wb = {cast} %b : {narrow} to {wide}\n"
        )  # fmt: skip
        a, b = ("%wa", "%wb") if widen else ("%a", "%b")
        return f"""
func.func @{self.name}(%x: {kinds[0]}, %y: {kinds[1]}, %z: {kinds[2]}) -> {kinds[2]} {{
  %r = linalg.generic {{indexing_maps = [{maps}], iterator_types = [{iterators}]}}
      ins(%x, %y : {kinds[0]}, {kinds[1]}) outs(%z : {kinds[2]}) {{
  ^bb0(%a: {narrow}, %b: {narrow}, %c: {wide}):
    {widen}
    %p = arith.mul{suffix} {a}, {b} : {wide}
    %s = arith.add{suffix} %c, %p : {wide}
    linalg.yield %s : {wide}
  }} -> {kinds[2]}
  return %r : {kinds[2]}
}}
"""

    def arguments(self) -> list[np.ndarray]:
        """Small whole numbers, whose products and sums every type here holds exactly."""
        random = np.random.default_rng(len(self.name))
        narrow, wide = (DTYPES[t] for t in self.types)
        return [
            random.integers(-2, 3, self.shape(exprs)).astype(dtype)
            for exprs, dtype in ((self.lhs, narrow), (self.rhs, narrow), (self.out, wide))
        ]

    def expected(self, lhs: np.ndarray, rhs: np.ndarray, init: np.ndarray) -> np.ndarray:
        """By einsum over gathered operands: every expression of loops is an index grid."""
        loops = list(self.loops)
        grid = dict(zip(loops, np.ogrid[tuple(slice(n) for n in self.loops.values())]))

        def spread(array: np.ndarray, exprs: tuple[str, ...]) -> np.ndarray:
            return array[tuple(eval(e, {}, grid) for e in exprs)].astype(np.float64)

        total = np.broadcast_to(
            spread(lhs, self.lhs) * spread(rhs, self.rhs), tuple(self.loops.values())
        )
        total = total.sum(axis=tuple(i for i, loop in enumerate(loops) if loop in self.reduced))
        kept = [loop for loop in loops if loop not in self.reduced]
        total = total.transpose([kept.index(loop) for loop in self.out])
        total = init.astype(np.float64) + total
        return (total.astype(np.int64) if init.dtype.kind == "i" else total).astype(init.dtype)


def matmul(name: str, m: int, n: int, k: int, **more) -> Case:
    return Case(name, {"m": m, "n": n, "k": k}, ("m", "k"), ("k", "n"), ("m", "n"), **more)


def sizes() -> list[Case]:
    shapes = [
        (1, 1, 1), (1, 49, 17), (7, 7, 7), (17, 33, 65), (33, 65, 17), (49, 49, 49), (65, 1, 33),
        (2, 64, 33), (4, 17, 300), (64, 96, 513), (5, 129, 1), (3, 8, 2),
    ]  # fmt: skip
    return [matmul(f"matmul_{m}_{n}_{k}", m, n, k) for m, n, k in shapes]


def types() -> list[Case]:
    pairs = [
        ("i32", "i32"), ("f64", "f64"), ("bf16", "f32"), ("f16", "f32"), ("f16", "f16"),
        ("i8", "i32"), ("i16", "i32"), ("i64", "i64"), ("i8", "i8"), ("index", "index"),
    ]  # fmt: skip
    return [
        matmul(f"{a}_{b}_{m}", m, n, 33, types=(a, b))
        for a, b in pairs
        for m, n in ((17, 49), (2, 65))
    ]


def layouts() -> list[Case]:
    mnk = {"m": 17, "n": 49, "k": 33}
    batch = {"b": 3, "m": 7, "n": 33, "k": 17}
    return [
        Case("transpose_b", mnk, ("m", "k"), ("n", "k"), ("m", "n")),
        Case("transpose_a", mnk, ("k", "m"), ("k", "n"), ("m", "n")),
        Case("transpose_both", mnk, ("k", "m"), ("n", "k"), ("m", "n")),
        Case("transpose_out", mnk, ("m", "k"), ("k", "n"), ("n", "m")),
        Case("swapped", mnk, ("k", "n"), ("m", "k"), ("m", "n")),
        Case("k_outside", {"k": 33, "m": 17, "n": 49}, ("m", "k"), ("k", "n"), ("m", "n")),
        Case("two_k", {"m": 9, "n": 20, "k": 5, "l": 7}, ("m", "k", "l"), ("k", "l", "n"), ("m", "n")),
        Case("two_k_crossed", {"m": 9, "n": 20, "k": 5, "l": 7}, ("m", "k", "l"), ("l", "n", "k"), ("m", "n")),
        Case("two_m", {"i": 3, "m": 9, "n": 20, "k": 5}, ("i", "m", "k"), ("k", "n"), ("i", "m", "n")),
        Case("two_n", {"m": 9, "j": 4, "n": 5, "k": 6}, ("m", "k"), ("k", "j", "n"), ("m", "j", "n")),
        Case("two_n_apart", {"m": 9, "j": 4, "n": 5, "k": 6}, ("m", "k"), ("n", "k", "j"), ("m", "j", "n")),
        Case("batch", batch, ("b", "m", "k"), ("b", "k", "n"), ("b", "m", "n")),
        Case("batch_transposed", batch, ("b", "m", "k"), ("b", "n", "k"), ("b", "m", "n")),
        Case("batch_inside", batch, ("m", "b", "k"), ("n", "b", "k"), ("m", "b", "n")),
        Case("batch_last", batch, ("m", "k", "b"), ("k", "n", "b"), ("m", "n", "b")),
        Case("matvec", {"m": 65, "k": 33}, ("m", "k"), ("k",), ("m",)),
        Case("vecmat", {"n": 65, "k": 33}, ("k",), ("k", "n"), ("n",)),
        Case("dot", {"k": 65}, ("k",), ("k",), ()),
        Case("outer", {"m": 17, "n": 33}, ("m",), ("n",), ("m", "n")),
        Case("empty_k", {"m": 5, "n": 20, "k": 0}, ("m", "k"), ("k", "n"), ("m", "n")),
    ]  # fmt: skip


def convolutions() -> list[Case]:
    def nchw(name, n, c, h, w, f, kh, kw, step=1, gap=1, **more):
        loops = {"n": n, "f": f, "h": h, "w": w, "c": c, "i": kh, "j": kw}
        image = ("n", "c", f"h * {step} + i * {gap}", f"w * {step} + j * {gap}")
        return Case(name, loops, image, ("f", "c", "i", "j"), ("n", "f", "h", "w"), **more)

    def nhwc(name, n, c, h, w, f, kh, kw, step=1, gap=1, **more):
        loops = {"n": n, "h": h, "w": w, "f": f, "i": kh, "j": kw, "c": c}
        image = ("n", f"h * {step} + i * {gap}", f"w * {step} + j * {gap}", "c")
        return Case(name, loops, image, ("i", "j", "c", "f"), ("n", "h", "w", "f"), **more)

    grouped = {"n": 2, "g": 3, "f": 5, "h": 7, "w": 9, "c": 4, "i": 3, "j": 3}
    depthwise = {"n": 2, "h": 7, "w": 9, "c": 33, "i": 3, "j": 3}
    planes = {"n": 2, "c": 5, "h": 7, "w": 33, "i": 3, "j": 3}
    return [
        nchw("nchw_1x1", 2, 7, 7, 9, 17, 1, 1),
        nchw("nchw_3x3", 1, 5, 17, 17, 33, 3, 3),
        nchw("nchw_strided", 2, 3, 7, 8, 17, 3, 3, step=2),
        nchw("nchw_dilated", 1, 3, 9, 8, 17, 3, 3, gap=2),
        nchw("nchw_1xn", 1, 3, 1, 33, 7, 1, 7),
        # The lanes past the end are as many as the image has elements between the rows of a window.
        nchw("nchw_gap_16", 1, 1, 3, 4, 5, 3, 3),
        nchw("nchw_gap_8", 1, 1, 2, 3, 5, 3, 3),
        nchw("nchw_gap_4", 1, 1, 2, 1, 5, 3, 3),
        nchw("nchw_i8", 1, 3, 9, 17, 7, 3, 3, types=("i8", "i32")),
        nchw("nchw_bf16", 1, 3, 9, 17, 7, 3, 3, types=("bf16", "f32")),
        nhwc("nhwc_i8", 1, 8, 9, 9, 49, 3, 3, types=("i8", "i32")),
        nhwc("nhwc_bf16", 1, 6, 9, 9, 33, 3, 3, types=("bf16", "f32")),
        nhwc("nhwc_odd_bf16", 1, 5, 9, 9, 33, 3, 3, types=("bf16", "f32")),
        nhwc("nhwc_1x1", 2, 17, 7, 7, 33, 1, 1),
        nhwc("nhwc_3x3", 1, 5, 9, 9, 49, 3, 3),
        nhwc("nhwc_strided", 2, 3, 7, 8, 17, 3, 3, step=2),
        nhwc("nhwc_dilated", 1, 3, 7, 8, 17, 3, 2, gap=3),
        Case("grouped", grouped, ("n", "g", "c", "h + i", "w + j"), ("g", "f", "c", "i", "j"),
             ("n", "g", "f", "h", "w")),
        Case("depthwise_nhwc", depthwise, ("n", "h + i", "w + j", "c"), ("i", "j", "c"),
             ("n", "h", "w", "c")),
        Case("depthwise_nchw", planes, ("n", "c", "h + i", "w + j"), ("c", "i", "j"),
             ("n", "c", "h", "w")),
        Case("conv_1d", {"n": 2, "f": 17, "w": 49, "c": 3, "j": 5}, ("n", "c", "w * 2 + j"),
             ("f", "c", "j"), ("n", "f", "w")),
    ]  # fmt: skip


STATIC = {"sizes": sizes(), "types": types(), "layouts": layouts(), "convolutions": convolutions()}


@pytest.mark.parametrize("group", STATIC)
def test_static(group):
    cases = STATIC[group]
    program = irees.compile("".join(case.mlir() for case in cases))
    wrong = []
    for case in cases:
        arguments = case.arguments()
        got = program.functions[case.name](*arguments)
        if not np.array_equal(got, case.expected(*arguments)):
            wrong.append(case.name)
    assert not wrong


SIZES = (1, 2, 7, 17, 33, 49, 65)


def test_dynamic_compiled_once_for_all_sizes():
    kinds = [
        dict(lhs=("m", "k"), rhs=("k", "n"), out=("m", "n")),
        dict(lhs=("m", "k"), rhs=("n", "k"), out=("m", "n")),
        dict(lhs=("b", "m", "k"), rhs=("b", "k", "n"), out=("b", "m", "n")),
        dict(lhs=("m", "k"), rhs=("k", "n"), out=("m", "n"), types=("bf16", "f32")),
        dict(lhs=("m", "k"), rhs=("k", "n"), out=("m", "n"), types=("i32", "i32")),
    ]
    random = np.random.default_rng(1)

    def case(number: int, kind: dict, sizes: dict[str, int]) -> Case:
        used = {x for exprs in (kind["lhs"], kind["rhs"], kind["out"]) for x in exprs}
        return Case(
            f"f{number}", {k: n for k, n in sizes.items() if k in used}, dynamic=True, **kind
        )

    any_size = {"b": 2, "m": 2, "n": 2, "k": 2}
    program = irees.compile("".join(case(i, kind, any_size).mlir() for i, kind in enumerate(kinds)))
    wrong = []
    for number, kind in enumerate(kinds):
        drawn = [dict(zip("bmnk", random.choice(SIZES, 4).tolist())) for _ in range(12)]
        drawn += [{"b": 1, "m": 300, "n": 500, "k": 270}, {"b": 2, "m": 0, "n": 5, "k": 3}]
        drawn += [{"b": 2, "m": 5, "n": 0, "k": 3}, {"b": 2, "m": 5, "n": 9, "k": 0}]
        for sizes in drawn:
            this = case(number, kind, {k: n if k != "b" else min(n, 3) for k, n in sizes.items()})
            arguments = this.arguments()
            got = program.functions[this.name](*arguments)
            if not np.array_equal(got, this.expected(*arguments)):
                wrong.append((kind, this.loops))
    assert not wrong


def test_packed_weights_give_what_unpacked_ones_do():
    random = np.random.default_rng(2)
    wrong = []
    texts, cases = [], []
    for m, n, k in ((17, 96, 33), (64, 144, 300), (5, 65, 7), (4, 96, 17)):
        weight = random.integers(-2, 3, (k, n)).astype(np.float32)
        bits = "04000000" + weight.tobytes().hex()
        name = f"w{n}_{k}"
        texts.append((name, bits))
        cases.append((f"f{len(cases)}", name, weight, m))
    functions = "".join(
        f"""
func.func @{function}(%x: tensor<{m}x{w.shape[0]}xf32>) -> tensor<{m}x{w.shape[1]}xf32> {{
  %z = arith.constant 0.0 : f32
  %w = arith.constant dense_resource<{name}> : tensor<{w.shape[0]}x{w.shape[1]}xf32>
  %e = tensor.empty() : tensor<{m}x{w.shape[1]}xf32>
  %f = linalg.fill ins(%z : f32) outs(%e : tensor<{m}x{w.shape[1]}xf32>) -> tensor<{m}x{w.shape[1]}xf32>
  %r = linalg.matmul ins(%x, %w : tensor<{m}x{w.shape[0]}xf32>, tensor<{w.shape[0]}x{w.shape[1]}xf32>)
      outs(%f : tensor<{m}x{w.shape[1]}xf32>) -> tensor<{m}x{w.shape[1]}xf32>
  return %r : tensor<{m}x{w.shape[1]}xf32>
}}
"""
        for function, name, w, m in cases
    )
    resources = ",\n".join(f'      {name}: "0x{bits}"' for name, bits in texts)
    program = irees.compile(
        f"{functions}\n{{-#\n  dialect_resources: {{\n    builtin: {{\n{resources}\n    }}\n  }}\n#-}}\n"
    )
    for function, _, weight, m in cases:
        x = random.integers(-2, 3, (m, weight.shape[0])).astype(np.float32)
        if not np.array_equal(program.functions[function](x), x @ weight):
            wrong.append(function)
    assert not wrong


def test_the_cases_are_exact():
    """The largest sum that a case can reach is a whole number that its type holds, or wraps."""
    for case in [c for group in STATIC.values() for c in group]:
        terms = prod(n for loop, n in case.loops.items() if loop in case.reduced)
        assert case.types[1][0] == "i" or 4 * terms + 2 <= {"f16": 2048}.get(case.types[1], 1 << 24)


@pytest.mark.parametrize(("m", "n", "k"), [(0, 0, 2), (0, 5, 2), (5, 0, 2), (5, 5, 0), (0, 40, 0)])
@pytest.mark.parametrize("dynamic", [False, True])
def test_nothing_to_multiply(m, n, k, dynamic):
    def kind(rows, columns):
        return "tensor<?x?xf32>" if dynamic else f"tensor<{rows}x{columns}xf32>"

    program = irees.compile(f"""
func.func @main(%a: {kind(m, k)}, %b: {kind(k, n)}, %o: {kind(m, n)}) -> {kind(m, n)} {{
  %r = linalg.matmul ins(%a, %b : {kind(m, k)}, {kind(k, n)}) outs(%o : {kind(m, n)}) -> {kind(m, n)}
  return %r : {kind(m, n)}
}}""")
    start = np.full((m, n), 7, np.float32)
    result = program(np.ones((m, k), np.float32), np.ones((k, n), np.float32), start)
    # There is no element, or no term: the start comes back.
    np.testing.assert_array_equal(result, start)


@pytest.mark.parametrize("rows", [64, 256])
def test_rows_that_share_a_cache_set_are_read_where_they_are(rows):
    """Copies of them would be read once or twice."""
    weight = np.random.default_rng(3).standard_normal((1024, 64)).astype(np.float32)
    a, out = f"tensor<{rows}x1024xf32>", f"tensor<{rows}x64xf32>"
    text = f"""
func.func @main(%x: {a}) -> {out} {{
  %z = arith.constant 0.0 : f32
  %w = arith.constant dense_resource<w> : tensor<1024x64xf32>
  %e = tensor.empty() : {out}
  %f = linalg.fill ins(%z : f32) outs(%e : {out}) -> {out}
  %r = linalg.matmul ins(%x, %w : {a}, tensor<1024x64xf32>) outs(%f : {out}) -> {out}
  return %r : {out}
}}
{{-# dialect_resources: {{ builtin: {{ w: "0x04000000{weight.tobytes().hex()}" }} }} #-}}
"""
    target = Target(threads=1, vector_bytes=64, vector_registers=32, l2_bytes=1 << 20)
    module = irees.compile(text, to="codegen", target=target)
    buffers = [op for op in module.walk() if isinstance(op, memref.AllocOp)]
    assert [buffer.memref.type.get_shape() for buffer in buffers] == [(rows, 64)]  # the result


@pytest.mark.parametrize("name", ["plain", "apart", "turned", "sums", "columns"])
def test_many_rows_go_through_all_panels_strip_by_strip(name):
    """Slices of K, the last shorter; strips of rows in each, the last shorter."""
    more = 1024 if name == "apart" else 830
    n = 75 if name == "columns" else 96
    a, b, out = f"tensor<600x{more}xf32>", f"tensor<{more}x{n}xf32>", f"tensor<600x{n}xf32>"
    if name == "turned":
        b = f"tensor<{n}x{more}xf32>"
    start, op = "%o" if name == "sums" else "%f", "linalg.matmul"
    if name == "turned":
        op += (
            " indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (n, k)>,"
            " affine_map<(m, n, k) -> (m, n)>]"
        )
    text = f"""
func.func @main(%x: {a}, %w: {b}, %o: {out}) -> {out} {{
  %z = arith.constant 0.0 : f32
  %e = tensor.empty() : {out}
  %f = linalg.fill ins(%z : f32) outs(%e : {out}) -> {out}
  %r = {op} ins(%x, %w : {a}, {b}) outs({start} : {out}) -> {out}
  return %r : {out}
}}
"""
    random = np.random.default_rng(4)
    x, w, o = (
        random.integers(-2, 3, shape).astype(np.float32)
        for shape in ((600, more), (n, more) if name == "turned" else (more, n), (600, n))
    )
    target = Target(threads=1, vector_bytes=64, vector_registers=32, l2_bytes=1 << 20)
    kernel = str(irees.compile(text, to="codegen", target=target))
    # A view of all panels where a strip goes through them, the first of which packs.
    assert len(re.findall(r"memref.subview .*\[1\] : memref<\d+xf32> to", kernel)) >= 2
    # Nothing is filled: the first slice of K is the first to write C.
    stored = re.findall(r"vector.store (%\S+),", kernel)
    zeros = re.findall(r"(%\S+) = vector.broadcast %\S+ : f32", kernel)
    assert name == "columns" or not set(stored) & set(zeros)
    expected = x @ (w.T if name == "turned" else w) + (o if name == "sums" else 0)
    np.testing.assert_array_equal(irees.compile(text)(x, w, o), expected)


@pytest.mark.parametrize(
    ("n", "tile", "rows", "columns", "sums"),
    [
        *((512, 256, 7, 64, {28}), (544, 272, 9, 48, {27, 18})),
        *((576, 288, 9, 48, {27}), (524, 272, 9, 48, {27, 9}), (560, 288, 9, 48, {27, 18})),
    ],
)
def test_what_the_last_tile_leaves_is_known(n, tile, rows, columns, sums):
    """Two threads take as many vectors of columns each, and the last block of a tile is narrow."""
    m, k = 504, 256
    a, b, out = f"tensor<{m}x{k}xf32>", f"tensor<{k}x{n}xf32>", f"tensor<{m}x{n}xf32>"
    text = f"""
func.func @main(%x: {a}, %w: {b}, %o: {out}) -> {out} {{
  %r = linalg.matmul ins(%x, %w : {a}, {b}) outs(%o : {out}) -> {out}
  return %r : {out}
}}
"""
    target = Target(threads=2, vector_bytes=64, vector_registers=32, l2_bytes=1 << 20)
    kernel = str(irees.compile(text, to="codegen", target=target))
    config = (
        f"workgroup = [0 : i64, {tile} : i64, 0 : i64], block = [{rows} : i64, {columns} : i64]"
    )
    assert config in kernel
    # How many vectors of sums a block has: of all its columns, or of those that are left.
    loops = re.findall(r"scf.for .* iter_args\(.*vector<.*", kernel)
    blocks = {loop.count(" = ") - 1 for loop in loops}
    assert blocks == sums
    # Columns are looked up one by one only where the last vector is not whole.
    assert (kernel.count(f"memref<{columns}xindex>") > 1) == (n % 16 != 0)
    random = np.random.default_rng(5)
    x, w, o = (random.integers(-2, 3, s).astype(np.float32) for s in ((m, k), (k, n), (m, n)))
    np.testing.assert_array_equal(irees.compile(text)(x, w, o), x @ w + o)
