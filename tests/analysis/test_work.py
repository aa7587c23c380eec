"""Flops and bytes of functions, against numbers that are known."""

from __future__ import annotations

import numpy as np
import pytest
from xdsl.dialects import func

import irees
from irees.analysis.work import Work, work_of

HEAD = "func.func @main(%a: tensor<{m}x64xf32>, %b: tensor<64x32xf32>) -> tensor<{m}x32xf32> {{"
MATMUL = """
  %z = arith.constant 0.0 : f32
  %e = tensor.empty({dim}) : tensor<{m}x32xf32>
  %f = linalg.fill ins(%z : f32) outs(%e : tensor<{m}x32xf32>) -> tensor<{m}x32xf32>
  %r = linalg.matmul ins(%a, %b : tensor<{m}x64xf32>, tensor<64x32xf32>)
                     outs(%f : tensor<{m}x32xf32>) -> tensor<{m}x32xf32>
  return %r : tensor<{m}x32xf32>
}}
"""
GATHER = """
func.func @main(%table: tensor<1000x64xf32>, %i: tensor<4xi64>) -> tensor<4x64xf32> {
  %e = tensor.empty() : tensor<4x64xf32>
  %r = linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d0)>,
      affine_map<(d0, d1) -> (d0, d1)>], iterator_types = ["parallel", "parallel"]}
      ins(%i : tensor<4xi64>) outs(%e : tensor<4x64xf32>) {
  ^bb0(%n: i64, %o: f32):
    %row = arith.index_cast %n : i64 to index
    %column = linalg.index 1 : index
    %x = tensor.extract %table[%row, %column] : tensor<1000x64xf32>
    linalg.yield %x : f32
  } -> tensor<4x64xf32>
  return %r : tensor<4x64xf32>
}
"""
CONVOLUTION = """
func.func @main(%x: tensor<1x8x10x10xf32>, %w: tensor<16x8x3x3xf32>) -> tensor<1x16x8x8xf32> {
  %z = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<1x16x8x8xf32>
  %f = linalg.fill ins(%z : f32) outs(%e : tensor<1x16x8x8xf32>) -> tensor<1x16x8x8xf32>
  %r = linalg.conv_2d_nchw_fchw ins(%x, %w : tensor<1x8x10x10xf32>, tensor<16x8x3x3xf32>)
                     outs(%f : tensor<1x16x8x8xf32>) -> tensor<1x16x8x8xf32>
  return %r : tensor<1x16x8x8xf32>
}
"""
EXTRACT = """
func.func @main(%x: tensor<1024x8xf32>) -> tensor<2x8xf32> {
  %s = tensor.extract_slice %x[4, 0] [2, 8] [1, 1] : tensor<1024x8xf32> to tensor<2x8xf32>
  %e = tensor.empty() : tensor<2x8xf32>
  %r = linalg.exp ins(%s : tensor<2x8xf32>) outs(%e : tensor<2x8xf32>) -> tensor<2x8xf32>
  return %r : tensor<2x8xf32>
}
"""


def main_of(text: str) -> func.FuncOp:
    module = irees.compile(text, to="global-opt")
    return next(op for op in module.body.block.ops if isinstance(op, func.FuncOp))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            (HEAD + MATMUL).format(m=16, dim=""),
            Work(2 * 16 * 64 * 32, 4 * (16 * 64 + 64 * 32 + 16 * 32)),
        ),
        (CONVOLUTION, Work(2 * 16 * 8 * 8 * 8 * 9, 4 * (800 + 16 * 72 + 1024))),
        (GATHER, Work(0, 4 * 8 + 2 * 4 * 64 * 4)),
        (EXTRACT, Work(16, 2 * 16 * 4)),
    ],
    ids=["matmul", "convolution", "gather", "slice"],
)
def test_counts(text, expected):
    assert work_of(main_of(text)) == expected


def test_dynamic_sizes_are_unknown():
    head = HEAD.format(m="?") + "%0 = arith.constant 0 : index\n"
    dim = "%d = tensor.dim %a, %0 : tensor<?x64xf32>\n"
    assert work_of(main_of(head + dim + MATMUL.format(m="?", dim="%d"))) == Work(None, None)


SCAN = """
func.func @main(%a: tensor<{m}x8xf32>, %e: tensor<{m}x8xf32>, %z: tensor<8xf32>)
    -> tensor<8xf32> {{
  %r:2 = iree_linalg_ext.scan dimension(0) inclusive(true) ins(%a : tensor<{m}x8xf32>)
      outs(%e, %z : tensor<{m}x8xf32>, tensor<8xf32>) {{
  ^bb0(%x: f32, %y: f32):
    %s = arith.addf %x, %y : f32
    iree_linalg_ext.yield %s : f32
  }} -> tensor<{m}x8xf32>, tensor<8xf32>
  return %r#1 : tensor<8xf32>
}}
"""
HUGE = """
func.func @main(%a: tensor<9007199254740992x64xf64>) -> tensor<9007199254740992x64xf64> {
  %e = tensor.empty() : tensor<9007199254740992x64xf64>
  %r = linalg.exp ins(%a : tensor<9007199254740992x64xf64>)
                  outs(%e : tensor<9007199254740992x64xf64>) -> tensor<9007199254740992x64xf64>
  return %r : tensor<9007199254740992x64xf64>
}
"""


def test_scans():
    """Their dynamic sizes are another negative number than those of generics."""
    static, dynamic = work_of(main_of(SCAN.format(m=4))), work_of(main_of(SCAN.format(m="?")))
    assert static is not None
    assert static.flops == 32
    assert dynamic == Work(None, None)


def test_more_than_any_memory_is_not_written_down():
    main = main_of(HUGE)
    assert work_of(main) == Work(1 << 59, 1 << 63)
    module = irees.compile(HUGE, to="dispatch-creation")
    written = [op.attributes["work"].data for op in module.body.block.ops]
    assert [set(work) for work in written] == [{"flops"}, {"flops"}]


def test_a_weight_that_is_packed_counts_the_same():
    weight = "%b = arith.constant dense_resource<w> : tensor<64x32xf32>\n"
    head = "func.func @main(%a: tensor<16x64xf32>) -> tensor<16x32xf32> {\n"
    data = "04000000" + "0000803f" * (64 * 32)
    tail = f'{{-# dialect_resources: {{ builtin: {{ w: "0x{data}" }} }} #-}}'
    work = work_of(main_of(head + weight + MATMUL.format(m=16, dim="") + tail))
    assert work is not None
    assert work.flops == 2 * 16 * 64 * 32
    assert work.bytes is not None
    assert 0 <= work.bytes - 4 * (16 * 64 + 64 * 32 + 16 * 32) <= 4 * 64 * 32


def test_dispatches_have_the_work():
    module = irees.compile(CONVOLUTION, to="dispatch-creation")
    host, kernel = [f for f in module.walk() if isinstance(f, func.FuncOp)][::-1]
    assert work_of(host) is None
    assert work_of(kernel) == Work(2 * 16 * 8 * 8 * 8 * 9, 4 * (800 + 16 * 72 + 1024))


def test_an_empty_constant_is_read_for_nothing():
    text = """
func.func @main(%x: tensor<4xf32>) -> (tensor<4xf32>, tensor<0xf32>) {
  %none = arith.constant dense<> : tensor<0xf32>
  return %x, %none : tensor<4xf32>, tensor<0xf32>
}"""
    x = np.arange(4, dtype=np.float32)
    same, none = irees.compile(text)(x)
    np.testing.assert_array_equal(same, x)
    assert none.shape == (0,)
