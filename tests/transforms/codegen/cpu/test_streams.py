"""Matrices that are read once: several rows side by side, and ahead of time; every bit by numpy."""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np
import pytest

import irees
from irees.analysis import contraction_tiling as decide
from irees.target import Target
from irees.transforms.codegen.cpu.vectorize_structured_ops import nest as _vector_nest

WIDE = Target(threads=2, vector_bytes=64, vector_registers=32, l2_bytes=1 << 20)


def product(rows: int, columns: int, depth: int, along_k: bool, more: str = "") -> str:
    """out[m, n] = x[m, k] * W[k, n] + o[m, n], or by W[n, k]; `more` is done with the sums."""
    x, out = f"tensor<{rows}x{depth}xf32>", f"tensor<{rows}x{columns}xf32>"
    w = f"tensor<{columns}x{depth}xf32>" if along_k else f"tensor<{depth}x{columns}xf32>"
    place = "n, k" if along_k else "k, n"
    return f"""
func.func @main(%x: {x}, %w: {w}, %o: {out}) -> {out} {{
  %r = linalg.matmul indexing_maps = [affine_map<(m, n, k) -> (m, k)>,
      affine_map<(m, n, k) -> ({place})>, affine_map<(m, n, k) -> (m, n)>]
      ins(%x, %w : {x}, {w}) outs(%o : {out}) -> {out}
  {more.format(out=out)}
  return {"%e" if more else "%r"} : {out}
}}
"""


SQUARE = """
  %e = linalg.generic {{indexing_maps = [affine_map<(m, n) -> (m, n)>,
      affine_map<(m, n) -> (m, n)>], iterator_types = ["parallel", "parallel"]}}
      ins(%r : {out}) outs(%o : {out}) {{
  ^bb0(%a: f32, %b: f32):
    %s = arith.mulf %a, %a : f32
    linalg.yield %s : f32
  }} -> {out}
"""


def arguments(rows: int, columns: int, depth: int, along_k: bool) -> list[np.ndarray]:
    random = np.random.default_rng(rows + columns)
    shapes = (rows, depth), (columns, depth) if along_k else (depth, columns), (rows, columns)
    return [random.integers(-2, 3, shape).astype(np.float32) for shape in shapes]


@pytest.mark.parametrize("along_k", [True, False], ids=["rows", "columns"])
@pytest.mark.parametrize(
    ("rows", "columns", "depth"),
    [(1, 512, 256), (1, 515, 300), (1, 17, 77), (1, 2816, 64), (1, 1000, 33), (1, 528, 3),
     (2, 530, 65), (3, 528, 6), (4, 700, 130), (4, 512, 1024)],
)  # fmt: skip
@pytest.mark.parametrize("more", ["", SQUARE], ids=["plain", "squared"])
def test_every_row_is_summed_once(monkeypatch, rows, columns, depth, along_k, more):
    """Numbers of rows that four divides and that it does not, short tiles, rests of vectors."""
    monkeypatch.setattr(_vector_nest, "CPU", replace(_vector_nest.CPU, streamed_bytes=1))
    monkeypatch.setattr(decide, "CPU", replace(decide.CPU, streamed_bytes=1))
    x, w, o = arguments(rows, columns, depth, along_k)
    sums = x @ (w.T if along_k else w) + o
    got = irees.compile(product(rows, columns, depth, along_k, more))(x, w, o)
    np.testing.assert_array_equal(got, sums * sums if more else sums)


@pytest.mark.parametrize("columns", [2816, 1024])
def test_four_rows_are_read_side_by_side(columns):
    """Tiles of 1408 and 512 rows: their quarters are that far apart, and nothing is left."""
    text = str(irees.compile(product(1, columns, 1024, True), to="codegen", target=WIDE))
    sums = re.findall(r"scf.for .* iter_args\((.*?)\)", text)
    assert [loop.count(" = ") for loop in sums] == [8]
    # Of each row two lines in a step, and the same 4 KiB further.
    assert text.count("memref.prefetch") == 8


def test_small_or_unknown_rows_are_read_one_by_one():
    text = product(1, 64, 64, True)
    assert "memref.prefetch" not in str(irees.compile(text, to="codegen", target=WIDE))
    text = re.sub("tensor<64x64xf32>", "tensor<?x?xf32>", text).replace("1x64", "1x?")
    dynamic = str(irees.compile(text, to="codegen", target=WIDE))
    assert "memref.prefetch" not in dynamic
    loops = re.findall(r"scf.for .* iter_args\((.*?)\)", dynamic)
    assert {loop.count(" = ") for loop in loops} <= {1, 4}


@pytest.mark.parametrize("rows", [1, 4])
def test_few_rows_go_along_the_rows_of_a_matrix(rows):
    """Four rows of B at a time: what lies a slice further is asked for; A is read where it lies."""
    text = str(irees.compile(product(rows, 4096, 1024, False), to="codegen", target=WIDE))
    assert "memref<1024x4096xf32> to memref<1024x2048xf32" in text
    assert len(re.findall(r"memref.prefetch .* locality<2>", text)) == 4
    assert "memref.alloc(" not in text[text.index("scf.forall") : text.index("memref.prefetch")]


@pytest.mark.parametrize("along_k", [True, False], ids=["rows", "columns"])
def test_strict_sums_keep_their_order(monkeypatch, along_k):
    monkeypatch.setattr(_vector_nest, "CPU", replace(_vector_nest.CPU, streamed_bytes=1))
    monkeypatch.setattr(decide, "CPU", replace(decide.CPU, streamed_bytes=1))
    text = product(2, 520, 70, along_k)
    random = np.random.default_rng(3)
    inputs = [random.standard_normal(a.shape, np.float32) for a in arguments(2, 520, 70, along_k)]
    by_the_rules = irees.compile(text, target="reference")(*inputs)
    np.testing.assert_array_equal(irees.compile(text, fp="strict")(*inputs), by_the_rules)


ROW_SUMS = """
func.func @main(%x: tensor<1024x1024xf32>, %o: tensor<1024xf32>) -> tensor<1024xf32> {
  %r = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i)>],
      iterator_types = ["parallel", "reduction"]}
      ins(%x : tensor<1024x1024xf32>) outs(%o : tensor<1024xf32>) {
  ^bb0(%a: f32, %b: f32):
    %s = arith.addf %b, %a : f32
    linalg.yield %s : f32
  } -> tensor<1024xf32>
  return %r : tensor<1024xf32>
}
"""


def test_a_sum_asks_for_the_lines_of_the_next_row():
    text = str(irees.compile(ROW_SUMS, to="codegen", target=WIDE))
    assert text.count("memref.prefetch") == 4
    x = np.random.default_rng(6).integers(-9, 10, (1024, 1024)).astype(np.float32)
    o = np.arange(1024, dtype=np.float32)
    np.testing.assert_array_equal(irees.compile(ROW_SUMS)(x, o), x.sum(1) + o)
