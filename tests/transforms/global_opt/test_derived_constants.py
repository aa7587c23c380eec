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
