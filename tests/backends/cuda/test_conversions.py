"""Rounding to halves and functions that a GPU has instructions for, on the emulated device."""

from __future__ import annotations

import sys
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest

import irees
from irees.backends.cuda import toolchain
from irees.backends.cuda.backend import emit_program
from irees.target import GPUS

sys.path.insert(0, str(Path(__file__).parent))
import kernels

MAP = "affine_map<(i) -> (i)>"
NATIVE = [name for name in GPUS["sm_80"].native_math if name.startswith("math.")]
PERIODIC = ("math.sin", "math.cos", "math.tan")
"""With fp=strict, angles of many turns are still CUDA's."""


def call(name: str) -> str:
    """The function of a number, or of a pair of it."""
    return f"{name} %a{', %a' if name == 'math.atan2' else ''} : f32"


def unary(body: str, result: str = "f32") -> str:
    """An op on each of some numbers."""
    x, r = "tensor<?xf32>", f"tensor<?x{result}>"
    return f"""
func.func @main(%x: {x}) -> {r} {{
  %c0 = arith.constant 0 : index
  %n = tensor.dim %x, %c0 : {x}
  %e = tensor.empty(%n) : {r}
  %r = linalg.generic {{indexing_maps = [{MAP}, {MAP}], iterator_types = ["parallel"]}}
      ins(%x : {x}) outs(%e : {r}) {{
  ^bb0(%a: f32, %o: {result}):
    %s = {body}
    linalg.yield %s : {result}
  }} -> {r}
  return %r : {r}
}}"""


def samples() -> np.ndarray:
    """All exponents, both signs; next to halves and half way between them; infinities and NaN."""
    high = np.arange(1 << 16, dtype=np.uint32) << 16
    low = np.array([0, 1, 0x0FFF, 0x1000, 0x1001, 0x7FFF, 0x8000, 0x8001, 0xFFFF], np.uint32)
    return (high[::7, None] | low).ravel().view(np.float32)


@pytest.mark.parametrize(
    ("element", "dtype"), [("bf16", ml_dtypes.bfloat16), ("f16", np.float16)], ids=["bf16", "f16"]
)
def test_halves_are_rounded_to_nearest_even(element, dtype):
    """Bit for bit, zeros with their signs and subnormals too; NaN stays NaN."""
    x = samples()
    program = irees.compile(
        unary(f"arith.truncf %a : f32 to {element}", element), target="cuda-emulated", opt_level=1
    )
    found = program(x)
    with np.errstate(over="ignore", invalid="ignore"):
        expected = x.astype(dtype)
    nan = np.isnan(x)
    np.testing.assert_array_equal(found[~nan].view(np.uint16), expected[~nan].view(np.uint16))
    assert np.isnan(found[nan].astype(np.float32)).all()


def kernel_text(text: str, arch: str, **options) -> str:
    module = irees.compile(text, target=f"cuda:{arch}", to="codegen", **options)
    text = "".join(toolchain.host_and_kernels(emit_program(module).texts)[1].values())
    # Behind the functions that all kernels have.
    return text.partition("irees_k0")[2]


@pytest.mark.parametrize("name", NATIVE)
def test_strict_functions_have_the_bits_of_a_cpu(name):
    x = np.linspace(0.01, 9, 999, dtype=np.float32)
    text = unary(call(name))
    found = irees.compile(text, target="cuda-emulated", fp="strict", opt_level=1)(x)
    np.testing.assert_array_equal(found, irees.compile(text, fp="strict", opt_level=1)(x))


@pytest.mark.parametrize("name", NATIVE)
def test_functions_are_those_of_cuda(name):
    """Special values are those of libm."""
    text = unary(call(name))
    function = "irees_rsqrt_approx(" if name == "math.rsqrt" else f"{name[5:]}f("
    assert f" = {function}" in kernel_text(text, "sm_80")
    strictly = kernel_text(text, "sm_80", fp="strict")
    assert (f" = {function}" in strictly) == (name in PERIODIC)
    x = np.array([np.nan, np.inf, -np.inf, 0.0, -0.0, 1.0, -1e30, 1e30, 1e-40], np.float32)
    found = irees.compile(text, target="cuda-emulated", opt_level=1)(x)
    strict = irees.compile(text, target="cuda-emulated", opt_level=1, fp="strict")(x)
    np.testing.assert_allclose(found, strict, rtol=5e-6, atol=1e-43)


def test_attention_has_instructions_of_the_device():
    text = kernels.attention(64, 2048, 2048, 64, "bf16")
    module = irees.compile(text, target="cuda:sm_80", to="codegen")
    source = "".join(toolchain.host_and_kernels(emit_program(module).texts)[1].values())
    assert "irees_exp2_approx(" in source
    assert "irees_max_any_zero(" in source
    assert "irees_pair_bf16<" in source
    assert "expf(" not in source.partition("__global__")[2]
