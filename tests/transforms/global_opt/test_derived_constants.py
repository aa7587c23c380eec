"""Weights are computed from others when their bytes are needed, one at a time."""

from __future__ import annotations

import subprocess
import sys
from itertools import permutations
from pathlib import Path

import numpy as np
import pytest

import irees
from irees.blobs import Blob
from irees.build import blobs_of
from irees.transforms.global_opt.pack_constant_operands import Panels

MEBIBYTE = 1 << 20

PRODUCT = """
#in = affine_map<(m, n, k) -> (m, k)>
#weight = affine_map<(m, n, k) -> (n, k)>
#out = affine_map<(m, n, k) -> (m, n)>
func.func @main(%x: tensor<8x{k}xf32>) -> tensor<8x{n}xf32> {{
  %w = arith.constant dense_resource<w> : tensor<{n}x{k}xf32>
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<8x{n}xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<8x{n}xf32>) -> tensor<8x{n}xf32>
  %r = linalg.generic {{indexing_maps = [#in, #weight, #out],
      iterator_types = ["parallel", "parallel", "reduction"]}}
      ins(%x, %w : tensor<8x{k}xf32>, tensor<{n}x{k}xf32>) outs(%f : tensor<8x{n}xf32>) {{
    ^bb0(%a: f32, %b: f32, %c: f32):
      %p = arith.mulf %a, %b : f32
      %s = arith.addf %c, %p : f32
      linalg.yield %s : f32
  }} -> tensor<8x{n}xf32>
  return %r : tensor<8x{n}xf32>
}}
"""


def product_text(n: int, k: int, weight: np.ndarray) -> str:
    digits = "04000000" + weight.astype(np.float32).tobytes().hex()
    section = '{-# dialect_resources: { builtin: { w: "0x' + digits + '" } } #-}\n'
    return PRODUCT.format(n=n, k=k) + section


def reference(array: np.ndarray, panels: Panels) -> np.ndarray:
    """The packed form element by element."""
    found = np.zeros(panels.shape(array.shape), array.dtype)
    for place in np.ndindex(array.shape):
        panel, column = divmod(place[panels.axis], panels.columns)
        others = [place[d] for d in panels.order]
        inner = [column]
        if panels.group > 1:
            others[-1], within = divmod(others[-1], panels.group)
            inner.append(within)
        found[(panel, *others, *inner)] = array[place]
    return found


@pytest.mark.parametrize("columns", [1, 4, 5, 16])
def test_panels_hold_every_element(columns):
    array = np.arange(1, 3 * 5 * 11 + 1, dtype=np.float32).reshape(3, 5, 11)
    for axis, *order in permutations(range(3)):
        panels = Panels(tuple(order), axis, columns)
        packed = np.full(panels.shape(array.shape), np.nan, array.dtype)
        panels.pack(array, packed)
        np.testing.assert_array_equal(packed, reference(array, panels))


def test_panels_of_groups_hold_every_element():
    array = np.arange(1, 7 * 37 + 1).reshape(7, 37).astype(np.int8)
    panels = Panels((0,), 1, 16, 4)
    packed = np.full(panels.shape(array.shape), 99, array.dtype)
    panels.pack(array, packed)
    np.testing.assert_array_equal(packed, reference(array, panels))


def test_passes_pack_weights_without_reading_them():
    weight = np.random.default_rng(0).standard_normal((96, 40)).astype(np.float32)
    module = irees.compile(product_text(96, 40, weight), to="dispatch-creation")
    (blob,) = [b for b in blobs_of(module).values() if b.size == 96 * 40 * 4]
    assert blob.recipe is not None
    assert not blob.was_read
    assert not blob.recipe.sources[0].was_read
    packed = np.frombuffer(blob.bytes(), np.float32)
    assert set(packed) == set(weight.reshape(-1))


def test_a_blob_decodes_in_pieces(monkeypatch):
    monkeypatch.setattr("irees.blobs.PIECE", 6)
    data = bytes(range(32))
    blob = Blob("k", hex_text=memoryview(("04000000" + data.hex()).encode()))
    room = np.zeros(32, np.uint8)
    blob.fill(room)
    assert room.tobytes() == data
    assert blob.bytes() == data


MEASURE = """
import resource, sys
import irees
def peak():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
small, large = sys.argv[1:]
irees.compile(__import__("pathlib").Path(small))
before = peak()
program = irees.compile(__import__("pathlib").Path(large))
print((peak() - before) << 10)
"""


def test_a_compilation_takes_little_more_memory_than_the_weights(tmp_path, monkeypatch):
    """The text is twice as large as the weights; they are packed, and kept once."""
    monkeypatch.setenv("IREES_CACHE_DIR", str(tmp_path / "cache"))
    random = np.random.default_rng(0)
    paths: list[Path] = []
    for n, k in ((64, 32), (4096, 4096)):
        path = tmp_path / f"{n}.mlir"
        path.write_text(product_text(n, k, random.standard_normal((n, k))))
        paths.append(path)
    command = [sys.executable, "-c", MEASURE, *map(str, paths)]
    answer = subprocess.run(command, capture_output=True, text=True, check=True)
    size = 4096 * 4096 * 4
    # A single weight: it is decoded before it is packed, and both are there for a moment.
    assert int(answer.stdout) < 2 * size + 32 * MEBIBYTE


MOVED = """
func.func @main(%x: tensor<OUTxf32>) -> tensor<OUTxf32> {
  %w = arith.constant dense_resource<w> : tensor<5x3x7xf32>
  %e = tensor.empty() : tensor<OUTxf32>
  %m = linalg.generic {indexing_maps = [affine_map<(i, j, k) -> (i, j, k)>], iterator_types = ["parallel", "parallel", "parallel"]} outs(%e : tensor<OUTxf32>) {
  ^bb0(%o: f32):
    %i = linalg.index 0 : index
    %j = linalg.index 1 : index
    %k = linalg.index 2 : index
    %c1 = arith.constant 1 : index
    %c2 = arith.constant 2 : index
    %c4 = arith.constant 4 : index
    %c6 = arith.constant 6 : index
    %p = PLACES
    %v = tensor.extract %w[%a, %b, %c] : tensor<5x3x7xf32>
    linalg.yield %v : f32
  } -> tensor<OUTxf32>
  %r = linalg.add ins(%x, %m : tensor<OUTxf32>, tensor<OUTxf32>) outs(%e : tensor<OUTxf32>) -> tensor<OUTxf32>
  return %r : tensor<OUTxf32>
}
"""
PLACES = {
    "reversed": ("4 - i, j, 6 - k", (5, 3, 7), lambda w: w[::-1, :, ::-1]),
    "turned": ("k, 2 - i, j", (3, 7, 5), lambda w: w[:, ::-1].transpose(1, 2, 0)),
    "steps": ("i * 2 + 0, j * 1 + 1, 6 - k * 2", (3, 2, 4), lambda w: w[::2, 1:, ::-2]),
    "past the end": ("i, j, k + 1", (5, 3, 7), lambda w: w[:, :, [1, 2, 3, 4, 5, 6, 6]]),
    "one loop twice": ("i, i, k", (3, 1, 7), lambda w: w[[0, 1, 2], [0, 1, 2]][:, None]),
}


def places_of(text: str) -> str:
    """`4 - i` as ops of arith"""
    lines: list[str] = []

    def value(words: list[str]) -> str:
        if len(words) == 1:
            return f"%c{words[0]}" if words[0].isdigit() else f"%{words[0]}"
        at = max(n for n, w in enumerate(words) if w in "+-") if {*words} & {*"+-"} else 1
        kind = {"+": "addi", "-": "subi", "*": "muli"}[words[at]]
        lhs, rhs = value(words[:at]), value(words[at + 1 :])
        lines.append(f"%t{len(lines)} = arith.{kind} {lhs}, {rhs} : index")
        return f"%t{len(lines) - 1}"

    names = [value(part.split()) for part in text.split(", ")]
    zero = "arith.constant 0 : index\n    "
    ops = [f"%{n} = arith.addi {v}, %p : index" for n, v in zip("abc", names, strict=True)]
    return zero + "\n    ".join([*lines, *ops])


@pytest.mark.parametrize("name", PLACES)
def test_moved_constants(name):
    places, shape, expected = PLACES[name]
    w = np.arange(105, dtype=np.float32).reshape(5, 3, 7)
    text = MOVED.replace("OUT", "x".join(map(str, shape))).replace("PLACES", places_of(places))
    text = text.replace("%c0", "%p")
    data = "04000000" + w.tobytes().hex()
    text += '{-# dialect_resources: { builtin: { w: "0x' + data + '" } } #-}\n'
    x = np.ones(shape, np.float32)
    np.testing.assert_array_equal(irees.compile(text)(x), expected(w) + 1)
    module = str(irees.compile(text, to="global-opt"))
    assert ("w_strided_" in module) == (name not in ("past the end", "one loop twice"))
