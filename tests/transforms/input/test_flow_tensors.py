"""`flow.tensor` ops of programs give what IREE gives, in every target."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

import irees
from irees.errors import IreesError, VerifyError

TARGETS = ["reference", "cpu", "cuda-emulated"]
BITS = np.random.default_rng(4).integers(0, 256, 64, dtype=np.uint8)


def bitcast(source: str, result: str) -> str:
    """A bitcast of tensors of static shapes."""
    return f"""
func.func @main(%x: {source}) -> {result} {{
  %r = flow.tensor.bitcast %x : {source} -> {result}
  return %r : {result}
}}"""


CASTS = [
    ("tensor<64xi8>", "tensor<16xi32>", np.int8, np.int32),
    ("tensor<4x4xi32>", "tensor<8x8xi8>", np.int32, np.int8),
    ("tensor<16xf32>", "tensor<8xf64>", np.float32, np.float64),
    ("tensor<16xi32>", "tensor<4x4xf32>", np.int32, np.float32),
    ("tensor<64xi8>", "tensor<32xbf16>", np.int8, ml_dtypes.bfloat16),
    ("tensor<64xi8>", "tensor<64xf8E4M3FN>", np.int8, ml_dtypes.float8_e4m3fn),
]


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize(("source", "result", "before", "after"), CASTS)
def test_bits_of_whole_bytes(source, result, before, after, target):
    x = BITS.view(before)
    shape = [int(n) for n in source.split("<")[1].split("x")[:-1]]
    got = irees.compile(bitcast(source, result), target=target)(x.reshape(shape))
    np.testing.assert_array_equal(got.reshape(-1).view(np.uint8), BITS)
    assert got.dtype == after


@pytest.mark.parametrize("target", TARGETS)
def test_bits_below_a_byte(target):
    cut = """
func.func @main(%x: tensor<64xi8>) -> (tensor<128xi8>, tensor<512xi8>) {
  %n = flow.tensor.bitcast %x : tensor<64xi8> -> tensor<128xi4>
  %r = arith.extui %n : tensor<128xi4> to tensor<128xi8>
  %b = flow.tensor.bitcast %x : tensor<64xi8> -> tensor<512xi1, #iree_encoding.packed_storage>
  %s = arith.extui %b : tensor<512xi1, #iree_encoding.packed_storage>
      to tensor<512xi8, #iree_encoding.packed_storage>
  %t = flow.tensor.bitcast %s : tensor<512xi8, #iree_encoding.packed_storage> -> tensor<512xi8>
  return %r, %t : tensor<128xi8>, tensor<512xi8>
}"""
    nibbles, bits = irees.compile(cut, target=target)(BITS.view(np.int8))
    np.testing.assert_array_equal(nibbles, np.stack([BITS & 15, BITS >> 4], 1).reshape(-1))
    np.testing.assert_array_equal(bits, np.unpackbits(BITS, bitorder="little"))
    join = """
func.func @main(%x: tensor<128xi8>) -> tensor<64xi8> {
  %n = arith.trunci %x : tensor<128xi8> to tensor<128xi4>
  %r = flow.tensor.bitcast %n : tensor<128xi4> -> tensor<64xi8>
  return %r : tensor<64xi8>
}"""
    np.testing.assert_array_equal(irees.compile(join, target=target)(nibbles), BITS.view(np.int8))


DYNAMIC = """
func.func @main(%x: tensor<?xi32>, %n: index) -> (tensor<?x2xi32>, tensor<?xi8>) {
  %c0 = arith.constant 0 : index
  %c4 = arith.constant 4 : index
  %d = tensor.dim %x, %c0 : tensor<?xi32>
  %m = arith.muli %d, %c4 : index
  %t = flow.tensor.tie_shape %x : tensor<?xi32>{%d}
  %r = flow.tensor.reshape %t : tensor<?xi32>{%d} -> tensor<?x2xi32>{%n}
  %b = flow.tensor.bitcast %t : tensor<?xi32>{%d} -> tensor<?xi8>{%m}
  return %r, %b : tensor<?x2xi32>, tensor<?xi8>
}"""


@pytest.mark.parametrize("target", TARGETS)
def test_dynamic_shapes(target):
    x, program = BITS.view(np.int32), irees.compile(DYNAMIC, target=target)
    pairs, bytes_ = program(x, 8)
    np.testing.assert_array_equal(pairs, x.reshape(8, 2))
    np.testing.assert_array_equal(bytes_, BITS.view(np.int8))
    if target == "reference":
        with pytest.raises(IreesError):
            program(x, 9)


PARTS = """
func.func @main(%x: tensor<4x3xf32>, %i: index) -> (tensor<4x3xf32>, tensor<?xi32>, f32) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c3 = arith.constant 3 : index
  %v = flow.tensor.load %x[%i, %c1] : tensor<4x3xf32>
  %s = flow.tensor.store %v, %x[%c0, %c0] : tensor<4x3xf32>
  %b = flow.tensor.slice %s[%c0, %c0 for %c2, %c3] : tensor<4x3xf32> -> tensor<2x3xf32>
  %u = flow.tensor.update %b, %s[%c2, %c0] : tensor<2x3xf32> -> %s as tensor<4x3xf32>
  %k = flow.tensor.dynamic_constant dense<[7, 8]> : tensor<2xi32> -> tensor<?xi32>
  return %u, %k, %v : tensor<4x3xf32>, tensor<?xi32>, f32
}"""


@pytest.mark.parametrize("target", TARGETS)
def test_elements_boxes_and_constants(target):
    x = np.arange(12, dtype=np.float32).reshape(4, 3)
    got, constant, element = irees.compile(PARTS, target=target)(x, 3)
    want = x.copy()
    want[0, 0] = x[3, 1]
    want[2:] = want[:2]
    np.testing.assert_array_equal(got, want)
    np.testing.assert_array_equal(constant, [7, 8])
    assert element == x[3, 1]


@pytest.mark.parametrize(
    ("source", "result", "message"),
    [
        ("tensor<64xi8>", "tensor<15xi32>", "cannot cast 512 bits to 480"),
        ("tensor<4xi3>", "tensor<3xi4>", "tensor<4xi3> has no dense form"),
    ],
)
def test_bitcasts_of_other_sizes_are_refused(source, result, message):
    with pytest.raises(VerifyError, match=message):
        irees.compile(bitcast(source, result))


OUTSIDE = """func.func @main(%x: tensor<4x3xf32>) -> (tensor<2x3xf32>, tensor<4x3xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c3 = arith.constant 3 : index
  %b = flow.tensor.slice %x[%c0, COLUMN for %c2, COUNT] : tensor<4x3xf32> -> tensor<2x3xf32>
  %u = flow.tensor.update %b, %x[ROW, %c0] : tensor<2x3xf32> -> %x as tensor<4x3xf32>
  return %b, %u : tensor<2x3xf32>, tensor<4x3xf32>
}"""


@pytest.mark.parametrize(
    ("column", "count", "row", "message"),
    [
        ("%c1", "%c3", "%c0", "6:.*flow.tensor.slice: slice along dimension 1 runs out-of-bounds"),
        ("%c0", "%c2", "%c0", "6:.*flow.tensor.slice: .* cast incompatible"),
        ("%c0", "%c3", "%c3", "7:.*flow.tensor.update: slice along dimension 0 runs out-of-bounds"),
    ],
)
def test_constants_out_of_bounds_are_refused(column, count, row, message):
    text = OUTSIDE.replace("COLUMN", column).replace("COUNT", count).replace("ROW", row)
    with pytest.raises(VerifyError, match=message):
        irees.compile(text)


SCALED = """
func.func @main(%x: tensor<16xi8>, %s: tensor<16xSCALE>) -> (tensor<16xf32>, tensor<16xi8>) {
  %e = tensor.empty() : tensor<16xf32>
  %f = tensor.empty() : tensor<16xi8>
  %r:2 = linalg.generic {indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>,
      affine_map<(i) -> (i)>, affine_map<(i) -> (i)>], iterator_types = ["parallel"]}
      ins(%x, %s : tensor<16xi8>, tensor<16xSCALE>) outs(%e, %f : tensor<16xf32>, tensor<16xi8>) {
  ^bb0(%a: i8, %b: SCALE, %o: f32, %p: i8):
    %0 = arith.trunci %a : i8 to i4
    %1 = arith.bitcast %0 : i4 to f4E2M1FN
    %2 = arith.scaling_extf %1, %b : f4E2M1FN, SCALE to f32
    %3 = arith.scaling_truncf %2, %b : f32, SCALE to f4E2M1FN
    %4 = arith.bitcast %3 : f4E2M1FN to i4
    %5 = arith.extui %4 : i4 to i8
    linalg.yield %2, %5 : f32, i8
  } -> (tensor<16xf32>, tensor<16xi8>)
  return %r#0, %r#1 : tensor<16xf32>, tensor<16xi8>
}"""


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("scale", ["f8E8M0FNU", "f32"])
def test_elements_of_a_block_are_scaled(scale, target):
    codes = np.arange(16, dtype=np.int8)
    scales = np.float32(2.0) ** np.arange(-8, 8, dtype=np.float32)
    given = scales if scale == "f32" else scales.astype(ml_dtypes.float8_e8m0fnu)
    wide, back = irees.compile(SCALED.replace("SCALE", scale), target=target)(codes, given)
    numbers = codes.view(np.uint8).view(ml_dtypes.float4_e2m1fn).astype(np.float32)
    np.testing.assert_array_equal(wide, numbers * scales)
    np.testing.assert_array_equal(back, codes)
