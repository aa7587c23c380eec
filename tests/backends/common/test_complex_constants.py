"""Complex numbers as constants: of the host, of kernels, in loops and branches."""

from __future__ import annotations

import numpy as np
import pytest

import irees

TARGETS = ("reference", "cpu", "cuda-emulated")
NUMBER = "%z = complex.constant [1.5 : f32, -0.0 : f32] : complex<f32>"
FILLED = f"""
func.func @main(%n: index) -> tensor<?xcomplex<f32>> {{
  {NUMBER}
  %e = tensor.empty(%n) : tensor<?xcomplex<f32>>
  %f = linalg.fill ins(%z : complex<f32>) outs(%e : tensor<?xcomplex<f32>>)
      -> tensor<?xcomplex<f32>>
  return %f : tensor<?xcomplex<f32>>
}}"""
SUMMED = """
func.func @main(%t: tensor<?xcomplex<f64>>) -> complex<f64> {
  %z = complex.constant [0x7FF0000000000000 : f64, 2.0 : f64] : complex<f64>
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %n = tensor.dim %t, %c0 : tensor<?xcomplex<f64>>
  %r = scf.for %i = %c0 to %n step %c1 iter_args(%a = %z) -> (complex<f64>) {
    %x = tensor.extract %t[%i] : tensor<?xcomplex<f64>>
    %s = complex.add %a, %x : complex<f64>
    scf.yield %s : complex<f64>
  }
  return %r : complex<f64>
}"""
CHOSEN = f"""
func.func @main(%p: i1, %a: complex<f32>) -> complex<f32> {{
  %r = scf.if %p -> (complex<f32>) {{
    {NUMBER}
    scf.yield %z : complex<f32>
  }} else {{
    scf.yield %a : complex<f32>
  }}
  return %r : complex<f32>
}}"""
WRITTEN_IN_PARTS = """
func.func @main(%x: tensor<?xcomplex<f32>>, %n: index) -> tensor<4xcomplex<f32>> {
  %e = tensor.empty() : tensor<4xcomplex<f32>>
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %r = scf.for %i = %c0 to %n step %c1 iter_args(%a = %e) -> (tensor<4xcomplex<f32>>) {
    %s = tensor.extract_slice %x[%i] [1] [1] : tensor<?xcomplex<f32>> to tensor<1xcomplex<f32>>
    %b = tensor.insert_slice %s into %a[%i] [1] [1]
        : tensor<1xcomplex<f32>> into tensor<4xcomplex<f32>>
    scf.yield %b : tensor<4xcomplex<f32>>
  }
  return %r : tensor<4xcomplex<f32>>
}"""


@pytest.mark.parametrize("target", TARGETS)
def test_constants(target):
    def call(text, *arguments):
        return np.asarray(irees.compile(text, target=target)(*arguments))

    filled = call(FILLED, 3)
    np.testing.assert_array_equal(filled, [1.5, 1.5, 1.5])
    assert np.signbit(filled.imag).all()
    assert call(SUMMED, np.array([1 + 2j, -3j])) == complex(np.inf, 1)
    assert [call(CHOSEN, p, 2j) for p in (True, False)] == [1.5, 2j]
    some = np.array([1 + 2j, 3j], np.complex64)
    written = call(WRITTEN_IN_PARTS, some, 2)
    np.testing.assert_array_equal(written[:2], some)
    if target != "reference":  # a pass fills with 0 what may be read before it is written
        np.testing.assert_array_equal(written[2:], 0)
