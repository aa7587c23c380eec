"""Where dot products are used, where not, and that their C means the same without the instruction."""

from __future__ import annotations

from dataclasses import replace

import ml_dtypes
import numpy as np
import pytest

import irees
from irees.dialects import get_context
from irees.frontends.mlir import import_mlir
from irees.options import Options
from irees.pipeline import run_phases
from irees.remarks import collect
from irees.target import Target, cpu_target

WIDE = {"i8": "i32", "bf16": "f32"}
BITS = {"i8": np.int8, "bf16": ml_dtypes.bfloat16}


def product(m: int, n: int, k: int, element: str, weight: np.ndarray | None = None) -> str:
    """m x n x k, added up in 32 bits from zero; B is the weight where there is one."""
    wide = WIDE[element]
    zero = "0" if wide == "i32" else "0.0"
    a, b, c = f"tensor<{m}x{k}x{element}>", f"tensor<{k}x{n}x{element}>", f"tensor<{m}x{n}x{wide}>"
    argument = f", %b: {b}" if weight is None else ""
    constant = "" if weight is None else f"%b = arith.constant dense_resource<w> : {b}"
    text = f"""func.func @main(%a: {a}{argument}) -> {c} {{
  {constant}
  %zero = arith.constant {zero} : {wide}
  %e = tensor.empty() : {c}
  %f = linalg.fill ins(%zero : {wide}) outs(%e : {c}) -> {c}
  %r = linalg.matmul ins(%a, %b : {a}, {b}) outs(%f : {c}) -> {c}
  return %r : {c}
}}
"""
    if weight is None:
        return text
    blob = f'w: "0x04000000{weight.tobytes().hex()}"'
    return f"{text}{{-# dialect_resources: {{ builtin: {{ {blob} }} }} #-}}\n"


def kernels(text: str, *words: str, fp: str = "default", vector_bytes: int = 64) -> str:
    """What code generation leaves for a processor with these features."""
    target = Target(features=words, vector_bytes=vector_bytes, vector_registers=32)
    module = import_mlir(text)
    run_phases(get_context(), module, Options(target=target, fp=fp))
    return str(module)


def test_strict_sums_of_floats_keep_their_order():
    text = product(32, 64, 64, "bf16")
    assert "x86vector.avx512.dot" in kernels(text, "avx512_bf16")
    assert "x86vector" not in kernels(text, "avx512_bf16", fp="strict")
    weight = np.ones((64, 64), ml_dtypes.bfloat16)
    packed = product(32, 64, 64, "bf16", weight)
    assert "floordiv" not in kernels(packed, "avx512_bf16", fp="strict")


def test_strict_integers_are_exact_anyway():
    assert "irees.dot" in kernels(product(32, 64, 64, "i8"), "avx512_vnni", fp="strict")


@pytest.mark.parametrize(
    ("element", "word", "vector_bytes"),
    [("i8", "avx512_bf16", 64), ("bf16", "avx512_vnni", 64), ("i8", "avx512_vnni", 32)],
)
def test_another_instruction_is_none(element, word, vector_bytes):
    found = kernels(product(32, 64, 64, element), word, vector_bytes=vector_bytes)
    assert "irees.dot" not in found
    assert "x86vector" not in found


@pytest.mark.parametrize(("element", "word"), [("i8", "avx512_vnni"), ("bf16", "avx512_bf16")])
def test_one_row_of_a_weight_in_groups(element, word):
    weight = np.ones((64, 64), BITS[element])
    found = kernels(product(1, 64, 64, element, weight), word)
    assert "dot %" in found


def test_few_rows_widen_a_matrix_where_it_lies():
    with collect() as remarks:
        kernels(product(2, 64, 64, "bf16"))
    messages = [r.text for r in remarks if r.pass_name == "irees-lower-contractions"]
    assert messages == [
        "not using dot-product instructions: the target has none for these types; "
        "elements are widened"
    ]


def test_tiles_start_from_zero_and_not_from_memory():
    found = kernels(product(1024, 64, 64, "i8"), "avx512_vnni")
    assert "memref.subview" in found
    # Nothing but C is of this type.
    assert not [x for x in found.splitlines() if "vector.load" in x and "vector<16xi32>" in x]


@pytest.mark.parametrize(
    ("element", "word", "vector_bytes"),
    [("i8", "avx512_vnni", 64), ("i8", "avx_vnni", 32), ("bf16", "avx512_bf16", 64)],
)
def test_a_compiler_without_the_instruction(element, word, vector_bytes, monkeypatch):
    monkeypatch.setattr(Target, "missing_features", lambda self: ())
    target = replace(cpu_target("generic"), features=(word,), vector_bytes=vector_bytes)
    program = irees.compile(product(7, 33, 67, element), target=target)
    random = np.random.default_rng(0)
    low, high = (-128, 128) if element == "i8" else (-3, 4)
    a, b = (random.integers(low, high, s).astype(BITS[element]) for s in ((7, 67), (67, 33)))
    wide = np.int32 if element == "i8" else np.float32
    np.testing.assert_array_equal(program(a, b), a.astype(wide) @ b.astype(wide))
    assert "irees_dot_v" in "".join(program.sources.values())
