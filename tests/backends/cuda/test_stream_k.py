"""Contractions whose tiles are shared by workgroups, on the emulated device."""

from __future__ import annotations

import re
import sys
from dataclasses import replace
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest
from hypothesis import event, given, settings
from hypothesis import strategies as st

import irees
from irees.backends.cuda import print_counters
from irees.dialects.upstream.memref import ATOMIC_KINDS
from irees.errors import DeviceError
from irees.remarks import collect
from irees.target import GPUS
from irees.testing.faults import watch_rewrites
from irees.testing.profiles import load
from irees.transforms.codegen.gpu import gpu_select_strategy
from irees.transforms.codegen.gpu.utils import waves
from irees.transforms.codegen.gpu.utils.blocking import WarpgroupBlocking

sys.path.insert(0, str(Path(__file__).parent))
import kernels

FREE = replace(waves.NVIDIA, share_cycles=0)
"""Sharing costs nothing, so that more is shared."""

FACTOR = load()
random = np.random.default_rng(0)
PASS = "irees-gpu-stream-k"


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


SIZES = [(160, 32, 4096), (32, 160, 4096), (96, 32, 8192), (150, 30, 4100)]


@pytest.mark.usefixtures("few_multiprocessors")
@pytest.mark.parametrize(("m", "n", "k"), SIZES)
@pytest.mark.parametrize("element", ["f16", "bf16"])
def test_tiles_of_matrix_instructions(m, n, k, element):
    dtype = {"f16": np.dtype(np.float16), "bf16": np.dtype(ml_dtypes.bfloat16)}[element]
    a, b = whole(m, k).astype(dtype), whole(k, n).astype(dtype)
    expected = a.astype(np.float32) @ b.astype(np.float32)
    program, done = compiled(kernels.widening_matmul(m, n, k, element))
    assert len(done) == 1
    assert len(program.manifest["launches"]) == 1
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
def test_every_call_gives_the_same_bits(monkeypatch):
    """Where several share a tile."""
    monkeypatch.setattr(waves, "NVIDIA", FREE)
    a, b = (random.standard_normal(s).astype(np.float16) for s in ((32, 4096), (4096, 32)))
    program, (done,) = compiled(kernels.widening_matmul(32, 32, 4096, "f16"))
    assert re.match(r"1 of 1 tiles shared by \d+ workgroups", done.text)
    expected = program(a, b)
    order = program.library.cdll.irees_emulation_order
    try:
        for seed in range(1, 7):
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


@pytest.mark.usefixtures("few_multiprocessors")
def test_what_is_not_done_in_registers():
    """A long body is an op of its own, after the contraction in its tile."""
    a, b = whole(40, 4096), whole(4096, 64)
    program, done = compiled(kernels.followed_matmul(40, 64, 4096))
    assert len(done) == 1
    assert len(program.manifest["launches"]) == 1
    x = (a @ b).astype(np.float32)
    expected = x / 2
    for _ in range(7):
        expected = expected / 2 + x
    np.testing.assert_array_equal(program(a, b), expected)


ACCUMULATION = """
func.func @main(%a: tensor<40x4096xf32>, %b: tensor<4096x64xf32>, %c: tensor<40x64xf32>)
    -> tensor<40x64xf32> {
  %r = linalg.matmul ins(%a, %b : tensor<40x4096xf32>, tensor<4096x64xf32>)
      outs(%c : tensor<40x64xf32>) -> tensor<40x64xf32>
  return %r : tensor<40x64xf32>
}"""


@pytest.mark.usefixtures("few_multiprocessors")
def test_what_was_there_is_added_once(monkeypatch):
    a, b, c = whole(40, 4096), whole(4096, 64), whole(40, 64)
    program, done = compiled(ACCUMULATION)
    assert len(done) == 1
    for _ in range(2):
        np.testing.assert_array_equal(program(a, b, c), a @ b + c)
    monkeypatch.setitem(GPUS, "sm_80", replace(GPUS["sm_80"], multiprocessors=5))
    a, b, bias, start = whole(2, 80, 2048), whole(2, 32, 2048), whole(32), whole(2, 80, 32)
    program, done = compiled(kernels.activated_matmul(80, 32, 2048, init=None))
    assert len(done) == 1
    expected = np.maximum(a @ b.transpose(0, 2, 1) + start + bias, 0) / 2
    found = program(a.astype("f2"), b.astype("f2"), bias, start)
    np.testing.assert_array_equal(found, expected.astype("f2"))


@pytest.mark.parametrize(
    ("arch", "shape", "says"),
    [
        ("sm_75", (1024, 768, 4096), "48 of 48 tiles shared by 40 workgroups"),
        ("sm_80", (1408, 1280, 4096), "110 of 110 tiles shared by 108 workgroups"),
        ("sm_80", (1152, 1536, 4096), None),
        ("sm_90", (3072, 1536, 16384), "144 of 144 tiles shared by 132 workgroups"),
        ("sm_90", (2816, 1536, 16384), None),
    ],
)
def test_tiles_for_a_real_gpu(arch, shape, says):
    """Tiles that are a few more than multiprocessors are shared, and those as many are not."""
    text = kernels.narrowed_matmul(*shape, "f16")
    with collect() as remarks:
        irees.compile(irees.import_mlir(text), target=f"cuda:{arch}", to="codegen")
    done = [r.text for r in remarks if r.pass_name == PASS and r.kind == "passed"]
    assert len(done) == (says is not None)
    assert all(says in text for text in done)


@pytest.mark.parametrize("boxes", [True, False])
def test_products_of_warpgroups(monkeypatch, boxes):
    """Parts that arrive in boxes are numbered through all tiles of a workgroup."""
    monkeypatch.setitem(GPUS, "sm_90", replace(GPUS["sm_90"], multiprocessors=4))
    monkeypatch.setattr(waves, "NVIDIA", FREE)
    only, k = (WarpgroupBlocking(64, 64, 64, 4),), 1096
    monkeypatch.setattr(gpu_select_strategy, "WARPGROUP_CANDIDATES", only)
    monkeypatch.setattr(gpu_select_strategy, "matrix_candidates", lambda *_, **__: ())
    text = kernels.widening_matmul(192, 64, k, "f16", "k, m; n, k")
    left_out = () if boxes else ("irees-gpu-use-bulk-copies",)
    program, done = compiled(text, target="cuda-emulated:sm_90", disable_pass=left_out)
    assert len(done) == 1
    assert [launch.get("maps") for launch in program.manifest["launches"]] == [2 if boxes else None]
    a, b = whole(192, k), whole(k, 64)
    found = program(a.T.astype("f2", order="C"), b.T.astype("f2", order="C"))
    np.testing.assert_array_equal(found, a @ b)


def no_order(values, element):
    """Whole numbers that are exact in an element type."""
    dtypes = {"f16": np.float16, "bf16": ml_dtypes.bfloat16, "i8": np.int8, "f32": np.float32}
    return values.astype(dtypes[element])


@settings(max_examples=4 * FACTOR, deadline=None)
@given(
    element=st.sampled_from(["f32", "f16", "bf16", "i8"]),
    order=st.sampled_from(["m, k; k, n", "k, m; n, k"]),
    m=st.integers(1, 200),
    n=st.integers(1, 100),
    k=st.integers(200, 900),
    multiprocessors=st.integers(2, 9),
    seed=st.integers(1, 1 << 20),
)
def test_any_product(element, order, m, n, k, multiprocessors, seed):
    """Whole numbers are exact however tiles are shared, and whoever is last."""
    with pytest.MonkeyPatch.context() as patch:
        facts = replace(GPUS["sm_80"], multiprocessors=multiprocessors)
        patch.setitem(GPUS, "sm_80", facts)
        patch.setattr(waves, "NVIDIA", FREE)
        program, done = compiled(kernels.widening_matmul(m, n, k, element, order))
    event(f"{len(done)} shared")
    a, b = whole(m, k), whole(k, n)
    left, right = order.split("; ")
    inputs = [
        np.ascontiguousarray(no_order(x.T if turned else x, element))
        for x, turned in ((a, left == "k, m"), (b, right == "n, k"))
    ]
    program.library.cdll.irees_emulation_order(seed)
    try:
        np.testing.assert_array_equal(program(*inputs), a @ b)
    finally:
        program.library.cdll.irees_emulation_order(0)


@pytest.mark.usefixtures("few_multiprocessors")
def test_what_is_decided_may_be_left_undone():
    """Without the pass that would do it, or when that may not any more."""
    a, b, c = whole(40, 2048), whole(2048, 64), whole(64)
    text = kernels.matmul(40, 64, 2048)
    with watch_rewrites() as applied:
        program, done = compiled(text)
    assert len(done) == 1
    assert "= atomicAdd(" in "".join(program.sources.values())
    (number,) = [each.number for each in applied if each.pass_name == PASS]
    for options in (
        {"rewrite_limit": number},
        {"disable_pass": ("irees-gpu-lower-contractions",)},
    ):
        program, done = compiled(text, **options)
        assert len(done) == 1
        assert "= atomicAdd(" not in "".join(program.sources.values())
        np.testing.assert_array_equal(program(a, b, c), a @ b + c)


@pytest.mark.usefixtures("few_multiprocessors")
def test_counters_that_are_not_set_back_are_reported(monkeypatch):
    """A device would take them for those of workgroups that have come, the next time."""
    printed = print_counters.ATOMICS["memref.atomic_rmw"]

    def forgets(p, op):
        if ATOMIC_KINDS[op.kind.value.data] != "assign":
            printed(p, op)

    monkeypatch.setitem(print_counters.ATOMICS, "memref.atomic_rmw", forgets)
    program, done = compiled(kernels.matmul(40, 64, 4096))
    assert len(done) == 1
    with pytest.raises(DeviceError, match="does not reset its counters to 0"):
        program(whole(40, 4096), whole(4096, 64), whole(64))
