"""What temporaries take and must take, read off the planned program."""

from __future__ import annotations

import irees
from irees.analysis.arena import ArenaUse, arena_use

CHAIN = """
func.func @main(%x: tensor<{n}x64xf32>, %w: tensor<64x64xf32>) -> tensor<{n}x64xf32> {{
  %zero = arith.constant 0.0 : f32
  {dim}
  %e = tensor.empty({d}) : tensor<{n}x64xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<{n}x64xf32>) -> tensor<{n}x64xf32>
  %a = linalg.matmul ins(%x, %w : tensor<{n}x64xf32>, tensor<64x64xf32>)
                     outs(%f : tensor<{n}x64xf32>) -> tensor<{n}x64xf32>
  %b = linalg.matmul ins(%a, %w : tensor<{n}x64xf32>, tensor<64x64xf32>)
                     outs(%f : tensor<{n}x64xf32>) -> tensor<{n}x64xf32>
  %c = linalg.matmul ins(%b, %w : tensor<{n}x64xf32>, tensor<64x64xf32>)
                     outs(%f : tensor<{n}x64xf32>) -> tensor<{n}x64xf32>
  %r = linalg.matmul ins(%c, %w : tensor<{n}x64xf32>, tensor<64x64xf32>)
                     outs(%f : tensor<{n}x64xf32>) -> tensor<{n}x64xf32>
  return %r : tensor<{n}x64xf32>
}}
"""
STATIC = CHAIN.format(n=32, d="", dim="")
DYNAMIC = CHAIN.format(
    n="?", d="%d", dim="%0 = arith.constant 0 : index\n %d = tensor.dim %x, %0 : tensor<?x64xf32>"
)
BYTES = """
func.func @main(%x: tensor<64xi8>) -> tensor<64xi8> {
  %e = tensor.empty() : tensor<64xi8>
  %r = linalg.add ins(%x, %x : tensor<64xi8>, tensor<64xi8>) outs(%e : tensor<64xi8>) -> tensor<64xi8>
  return %r : tensor<64xi8>
}
"""


def planned(text: str) -> ArenaUse:
    module = irees.compile(text, to="stream")
    return arena_use(module.body.block.last_op)


def test_two_of_a_chain_are_alive_at_once():
    tile = 32 * 64 * 4
    assert planned(STATIC) == ArenaUse(2 * tile, 2 * tile)
    memory = irees.compile(STATIC).memory_analysis()
    assert memory["arena_bytes"] == memory["live_bytes"] == {"main": 2 * tile}


def test_dynamic_sizes_are_unknown():
    assert planned(DYNAMIC) == ArenaUse(None, None)


def test_a_result_of_bytes_is_no_arena():
    assert planned(BYTES) == ArenaUse(0, 0)
