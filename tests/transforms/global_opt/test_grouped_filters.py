"""Filters of groups with fewer channels than a vector has lanes."""

from __future__ import annotations

import numpy as np
import pytest

import irees
from irees.errors import ArgumentError
from irees.target import Target


@pytest.mark.parametrize("target", ["cpu", "cpu:generic", "cpu:x86-64-v3"])
@pytest.mark.parametrize("channels", [2, 3, 4, 7, 8, 9, 12, 16, 24])
@pytest.mark.parametrize("stride", [1, 2])
def test_convolution(channels, stride, target):
    """Every width of a group, in images whose rows are no whole vectors; sums are exact."""
    try:
        if Target.parse(target).missing_features():
            pytest.skip(f"this machine does not run {target}")
    except ArgumentError:
        pytest.skip(f"{target} is of another family of processors")
    groups, depth, size = 3, 5, 9
    reach = (size - 1) * stride + 3
    random = np.random.default_rng(channels)
    w = random.integers(-3, 4, (groups, channels, depth, 3, 3)).astype(np.float32)
    x = random.integers(-3, 4, (groups, depth, reach, reach)).astype(np.float32)
    shapes = [f"tensor<{'x'.join(map(str, t))}xf32>" for t in (x.shape, w.shape)]
    out = f"tensor<{groups}x{channels}x{size}x{size}xf32>"
    text = f"""func.func @main(%x: {shapes[0]}) -> {out} {{
  %zero = arith.constant 0.0 : f32
  %w = arith.constant dense_resource<w> : {shapes[1]}
  %e = tensor.empty() : {out}
  %o = linalg.fill ins(%zero : f32) outs(%e : {out}) -> {out}
  %r = linalg.generic {{indexing_maps = [
      affine_map<(g, f, h, w, c, i, j) -> (g, c, h * {stride} + i, w * {stride} + j)>,
      affine_map<(g, f, h, w, c, i, j) -> (g, f, c, i, j)>,
      affine_map<(g, f, h, w, c, i, j) -> (g, f, h, w)>], iterator_types = ["parallel",
      "parallel", "parallel", "parallel", "reduction", "reduction", "reduction"]}}
      ins(%x, %w : {", ".join(shapes)}) outs(%o : {out}) {{
  ^bb0(%a: f32, %b: f32, %c: f32):
    %p = arith.mulf %a, %b : f32
    %s = arith.addf %c, %p : f32
    linalg.yield %s : f32
  }} -> {out}
  return %r : {out}
}}
{{-# dialect_resources: {{ builtin: {{ w: "0x04000000{w.tobytes().hex()}" }} }} #-}}
"""
    windows = np.lib.stride_tricks.sliding_window_view(x, (3, 3), (2, 3))
    wanted = np.einsum("gchwij,gfcij->gfhw", windows[:, :, ::stride, ::stride], w)
    assert np.array_equal(irees.compile(text, target=target)(x), wanted)
