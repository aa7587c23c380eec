"""Hexadecimal floats are bits, whichever op comes first."""

from __future__ import annotations

import subprocess
import sys

TEXT = """
func.func @main() -> tensor<2xf32> {
  %a = util.unfoldable_constant dense<[0x7F800000, 1.0]> : tensor<2xf32>
  return %a : tensor<2xf32>
}"""


def test_a_literal_before_any_op_of_arith_is_read_as_bits():
    # A process of its own: dialects are repaired when the first op of theirs is met.
    program = f"from irees.frontends.mlir import import_mlir; print(import_mlir('''{TEXT}'''))"
    answer = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert "dense<[0x7F800000, 1.000000e+00]>" in answer.stdout
