"""What a loop that computes much asks for: on both sides, and no bit of the result changes."""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np
import pytest

import irees
from irees.target import Target

GELU = """
#id = affine_map<(i, j) -> (i, j)>
func.func @main(%a: tensor<{shape}>) -> tensor<{shape}> {{
  %half = arith.constant 0.5 : f32
  %root = arith.constant 0.70710678 : f32
  %e = tensor.empty() : tensor<{shape}>
  %r = linalg.generic {{indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]}}
      ins(%a : tensor<{shape}>) outs(%e : tensor<{shape}>) {{
  ^bb0(%x: f32, %o: f32):
    %0 = arith.mulf %x, %root : f32
    %1 = math.erf %0 : f32
    %2 = arith.addf %1, %half : f32
    %3 = arith.mulf %x, %2 : f32
    linalg.yield %3 : f32
  }} -> tensor<{shape}>
  return %r : tensor<{shape}>
}}
"""


def hints(program) -> list[str]:
    """Whether each prefetch is for a write, and its locality, as the compiler is told."""
    texts = (t for name, t in program.sources.items() if name.startswith("irees_k"))
    return [h for t in texts for h in re.findall(r"^ +IREES_PREFETCH\(.*, (\S+, \d)\);", t, re.M)]


@pytest.mark.parametrize("rows", [511, 512])
def test_a_large_gelu_asks_ahead_for_what_it_reads_and_writes(rows: int):
    # The L2 cache holds half of the input.
    target = replace(Target.parse("cpu:x86-64-v3"), l2_bytes=1 << 20)
    text = GELU.format(shape=f"{rows}x1024xf32")
    made = irees.compile(text, target=target)
    plain = irees.compile(text, target=target, disable_pass=("irees-prefetch-streams",))
    # A compiler that takes no number but 0 and 1 would refuse the rest.
    assert set(hints(made)) == {"0, 3", "1, 3"}
    assert not hints(plain)
    x = np.random.default_rng(1).standard_normal((rows, 1024), dtype=np.float32)
    assert np.array_equal(made(x), plain(x))


def test_what_a_cache_holds_is_not_asked_for():
    target = replace(Target.parse("cpu:x86-64-v3"), l2_bytes=1 << 20)
    assert not hints(irees.compile(GELU.format(shape="64x64xf32"), target=target))
