"""Contractions whose last wave is done in slices, on the emulated device."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest

import irees
from irees.remarks import collect
from irees.target import GPUS
from irees.transforms.codegen.gpu import gpu_select_strategy, gpu_split_last_wave
from irees.transforms.codegen.gpu._blocking import WarpgroupBlocking

sys.path.insert(0, str(Path(__file__).parent))
import kernels

random = np.random.default_rng(0)
PASS = "irees-gpu-split-last-wave"


@pytest.fixture
def few_multiprocessors(monkeypatch):
    """Four of them have waves of small programs."""
    monkeypatch.setitem(GPUS, "sm_80", replace(GPUS["sm_80"], multiprocessors=4))


def whole(*shape: int) -> np.ndarray:
    """Small whole numbers, whose sums are exact in any order."""
    return random.integers(-3, 4, shape).astype(np.float32)


def compiled(text: str, **options):
    """A program, compiled from a module since facts are not those of the target; what was done."""
    with collect() as remarks:
        program = irees.compile(
            irees.import_mlir(text), **{"target": "cuda-emulated", "opt_level": 1} | options
        )
    assert not [r for r in remarks if r.kind == "failed"]
    return program, [r for r in remarks if r.pass_name == PASS and r.kind == "passed"]


SIZES = [(160, 32, 4096, 3), (32, 160, 4096, 3), (96, 32, 8192, 2), (150, 30, 4096, 3)]


@pytest.mark.usefixtures("few_multiprocessors")
@pytest.mark.parametrize(("m", "n", "k", "launches"), SIZES)
@pytest.mark.parametrize("element", ["f16", "bf16"])
def test_tiles_of_matrix_instructions(m, n, k, launches, element):
    dtype = {"f16": np.dtype(np.float16), "bf16": np.dtype(ml_dtypes.bfloat16)}[element]
    a, b = whole(m, k).astype(dtype), whole(k, n).astype(dtype)
    expected = a.astype(np.float32) @ b.astype(np.float32)
    program, done = compiled(kernels.widening_matmul(m, n, k, element))
    assert len(done) == 1
    assert len(program.manifest["launches"]) == launches
    np.testing.assert_array_equal(program(a, b), expected)
    without, done = compiled(kernels.widening_matmul(m, n, k, element), disable_pass=(PASS,))
    assert not done
    np.testing.assert_array_equal(without(a, b), expected)


@pytest.mark.usefixtures("few_multiprocessors")
def test_what_follows_is_done_in_parts_too():
    a, b = whole(160, 4096).astype(np.float16), whole(4096, 32).astype(np.float16)
    program, done = compiled(kernels.narrowed_matmul(160, 32, 4096, "f16"))
    assert len(done) == 1
    expected = (a.astype(np.float32) @ b.astype(np.float32)).astype(np.float16)
    np.testing.assert_array_equal(program(a, b), expected)
    a, b, c = whole(40, 4096), whole(4096, 64), whole(64)
    program, done = compiled(kernels.matmul(40, 64, 4096))
    assert len(done) == 1
    np.testing.assert_array_equal(program(a, b, c), a @ b + c)


@pytest.mark.usefixtures("few_multiprocessors")
def test_a_body_that_asks_where_it_is():
    text = kernels.narrowed_matmul(40, 64, 4096, "f32").replace(
        "%s = arith.truncf %x",
        """%row = linalg.index 0 : index
    %i = arith.index_cast %row : index to i32
    %w = arith.sitofp %i : i32 to f32
    %t = arith.addf %x, %w : f32
    %s = arith.truncf %t""",
    )
    a, b = whole(40, 4096), whole(4096, 64)
    program, done = compiled(text)
    assert len(done) == 1
    expected = (a @ b + np.arange(40, dtype=np.float32)[:, None]).astype(np.float16)
    np.testing.assert_array_equal(program(a, b), expected)


@pytest.mark.usefixtures("few_multiprocessors")
def test_every_call_gives_the_same_bits():
    a, b = (random.standard_normal(s).astype(np.float16) for s in ((160, 4096), (4096, 32)))
    program, _ = compiled(kernels.widening_matmul(160, 32, 4096, "f16"))
    expected = program(a, b)
    order = program.library.cdll.irees_emulation_order
    try:
        for seed in (1, 2):
            order(seed)
            np.testing.assert_array_equal(program(a, b), expected)
    finally:
        order(0)
    exact = a.astype(np.float64) @ b.astype(np.float64)
    scale = np.abs(a.astype(np.float64)) @ np.abs(b.astype(np.float64))
    # 4 sqrt(n) u of the sum of sizes: n terms, rounded to f32.
    assert (np.abs(expected - exact) <= 4 * 64 * 2.0**-24 * scale).all()


@pytest.mark.usefixtures("few_multiprocessors")
def test_strict_sums_keep_their_order_and_exact_ones_have_none():
    program, done = compiled(kernels.matmul(40, 64, 4096), fp="strict")
    assert not done
    assert len(program.manifest["launches"]) == 1
    a, b = (random.integers(-99, 99, s).astype(np.int8) for s in ((160, 16384), (32, 16384)))
    text = kernels.widening_matmul(160, 32, 16384, "i8", "m, k; n, k")
    program, done = compiled(text, fp="strict")
    assert len(done) == 1
    np.testing.assert_array_equal(program(a, b), a.astype(np.int32) @ b.astype(np.int32).T)


@pytest.mark.parametrize(
    ("arch", "shape", "says"),
    [
        ("sm_80", (1408, 1280, 4096), "1280 points whole, the others in 4 slices"),
        ("sm_80", (1152, 1536, 4096), None),
        ("sm_90", (3072, 1536, 16384), "2816 points whole, the others in"),
        ("sm_90", (2816, 1536, 16384), None),
    ],
)
def test_tiles_for_a_real_gpu(arch, shape, says):
    """110 tiles of 108 multiprocessors are cut, and 108 are not; 144 of 132, and not 132."""
    text = kernels.narrowed_matmul(*shape, "f16")
    with collect() as remarks:
        irees.compile(irees.import_mlir(text), target=f"cuda:{arch}", to="codegen")
    done = [r.text for r in remarks if r.pass_name == PASS and r.kind == "passed"]
    assert len(done) == (says is not None)
    assert all(says in text for text in done)


def test_slices_that_are_boxes(monkeypatch):
    """Of what one wave leaves the host has maps of parts of its buffers, in slices."""
    monkeypatch.setitem(GPUS, "sm_90", replace(GPUS["sm_90"], multiprocessors=4))
    monkeypatch.setattr(gpu_split_last_wave, "LAUNCH", 0)
    only = (WarpgroupBlocking(64, 64, 64, 4),)
    monkeypatch.setattr(gpu_select_strategy, "WARPGROUP_CANDIDATES", only)
    monkeypatch.setattr(gpu_select_strategy, "matrix_candidates", lambda *_, **__: ())
    text = kernels.widening_matmul(320, 64, 4160, "f16", "k, m; n, k")
    program, done = compiled(text, target="cuda-emulated:sm_90")
    assert len(done) == 1
    assert [launch.get("maps") for launch in program.manifest["launches"]] == [2, 2, None]
    a, b = whole(320, 4160), whole(4160, 64)
    found = program(a.T.astype("f2", order="C"), b.T.astype("f2", order="C"))
    np.testing.assert_array_equal(found, a @ b)
