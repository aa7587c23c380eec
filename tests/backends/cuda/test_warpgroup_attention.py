"""Attention by `wgmma` on the emulated device, which reads operands by the descriptors of the kernel."""

from __future__ import annotations

import dataclasses
import sys
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest

import irees
from irees.backends.cuda import print_boxes
from irees.errors import DeviceError
from irees.target import GPUS
from irees.transforms.codegen.gpu.gpu_lower_attention import warpgroup_attention

sys.path.insert(0, str(Path(__file__).parent))
import kernels

TARGET = "cuda-emulated:sm_90"
DTYPES = {"f16": np.float16, "bf16": ml_dtypes.bfloat16}
TOLERANCE = {"f16": 2e-3, "bf16": 2e-2}
random = np.random.default_rng(0)


@pytest.fixture(autouse=True)
def small_gpu(monkeypatch):
    """A GPU for which the scores are too many for its cache, and few workgroups are enough."""
    small = dataclasses.replace(GPUS["sm_90"], l2_bytes=256, multiprocessors=2)
    monkeypatch.setitem(GPUS, "sm_90", small)


def floats(*shape: int, element: str) -> np.ndarray:
    return random.standard_normal(shape).astype(DTYPES[element])


def softmax_of_products(q, k, v, mask=None) -> np.ndarray:
    """The answer in f64, NaN in rows all of whose scores are -infinity."""
    q, k, v = (np.asarray(x, np.float64) for x in (q, k, v))
    scores = q @ k.swapaxes(-1, -2) / np.sqrt(q.shape[-1])
    if mask is not None:
        scores += np.where(mask, 0, -np.inf) if mask.dtype == bool else mask
    with np.errstate(invalid="ignore"):
        powers = np.exp(scores - scores.max(-1, keepdims=True))
    return (powers / powers.sum(-1, keepdims=True)) @ v


def compiled(text: str, **options):
    # From a module, so that the cache of programs does not give that of another GPU.
    return irees.compile(irees.import_mlir(text), opt_level=0, **{"target": TARGET} | options)


def text_of(program: irees.Program) -> str:
    return "".join(program.sources.values())


def by_warpgroups(program: irees.Program) -> bool:
    text = text_of(program)
    found = "  irees_warpgroup_mma_registers<" in text
    assert found == ("  irees_copy_box(" in text)
    return found


def check(program: irees.Program, arguments: list[np.ndarray], element: str) -> None:
    found = program(*arguments).astype(np.float64)
    expected = softmax_of_products(*arguments)
    tolerance = TOLERANCE[element]
    np.testing.assert_allclose(found, expected, rtol=tolerance, atol=tolerance)


SIZES = [
    ((2, 128, 128, 64), "bf16", None, 256),
    ((3, 256, 64, 64), "f16", None, 256),
    ((1, 64, 192, 64), "f16", None, 128),
    ((2, 70, 100, 64), "bf16", "i1", 256),
    ((5, 200, 100, 64), "f16", "f32", 256),
    ((1, 100, 72, 128), "f16", "f32", 128),
    ((2, 256, 130, 128), "bf16", None, 256),
    ((1, 3, 1030, 64), "f16", None, 128),
]


@pytest.mark.parametrize(("sizes", "element", "mask", "threads"), SIZES, ids=str)
def test_attention(sizes, element, mask, threads):
    """Rows and keys past the end of a tile; rows of which all or the first scores are masked."""
    batch, m, keys, features = sizes
    program = compiled(kernels.attention(*sizes, element, mask))
    assert by_warpgroups(program)
    assert [x["threads"] for x in program.manifest["launches"]] == [threads]
    arguments = [floats(batch, n, features, element=element) for n in (m, keys, keys)]
    if mask:
        hidden = random.random((batch, m, keys)) < 0.3
        hidden[0, 0], hidden[0, 1, :70] = True, True
        shown = np.where(hidden, -np.inf, random.standard_normal(hidden.shape))
        arguments.append(~hidden if mask == "i1" else shown.astype(np.float32))
    check(program, arguments, element)


def heads(m: int) -> str:
    """Heads are inside of rows, and values have other features than keys."""
    q, k, v, r = (
        f"tensor<2x{x}xf16>" for x in (f"{m}x3x64", "130x3x64", "130x3x128", f"3x{m}x128")
    )
    names = ("b, m, h, d", "b, k, h, d", "b, k, h, n", "", "b, h, m, n")
    maps = ", ".join(f"affine_map<(b, h, m, n, d, k) -> ({x})>" for x in names)
    return f"""
func.func @main(%q: {q}, %k: {k}, %v: {v}) -> {r} {{
  %scale = arith.constant 0.125 : f32
  %e = tensor.empty() : {r}
  %r = iree_linalg_ext.attention {{indexing_maps = [{maps}]}}
      ins(%q, %k, %v, %scale : {q}, {k}, {v}, f32) outs(%e : {r}) {{
  ^bb0(%score: f32):
    iree_linalg_ext.yield %score : f32
  }} -> {r}
  return %r : {r}
}}"""


@pytest.mark.parametrize("m", [64, 150])
def test_heads_beside_features(m):
    """As PyTorch has them; the box of a tile has a dim for its head."""
    program = compiled(heads(m))
    assert by_warpgroups(program)
    q, k, v = (floats(2, n, 3, d, element="f16") for n, d in ((m, 64), (130, 64), (130, 128)))
    expected = softmax_of_products(*(x.swapaxes(1, 2) for x in (q, k, v)))
    found = program(q, k, v).astype(np.float64)
    np.testing.assert_allclose(found, expected, rtol=2e-3, atol=2e-3)


def test_a_negative_scale():
    """The greatest score is that of the least product, for which powers must not overflow."""
    text = kernels.attention(2, 128, 64, 64, "f16").replace("constant 0.125", "constant -8.0")
    assert "constant -8.0" in text
    program = compiled(text)
    assert by_warpgroups(program)
    q, k, v = (floats(2, n, 64, element="f16") for n in (128, 64, 64))
    expected = softmax_of_products(q * np.float64(-64), k, v)
    np.testing.assert_allclose(program(q, k, v), expected, rtol=2e-2, atol=2e-2)


REFUSED = {
    "no wgmma": ((1, 128, 128, 64), "f16", {"target": "cuda-emulated:sm_80"}),
    "no boxes": ((1, 128, 128, 64), "f16", {"disable_pass": ("irees-gpu-use-bulk-copies",)}),
    "no whole rows": ((1, 128, 128, 80), "f16", {}),
    "floats": ((1, 128, 128, 64), "f32", {}),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_warpgroups_cannot_compute(name, monkeypatch):
    """Single warps compute it, and the answer is the same."""
    sizes, element, options = REFUSED[name]
    small = dataclasses.replace(GPUS["sm_80"], l2_bytes=256)
    monkeypatch.setitem(GPUS, "sm_80", small)
    program = compiled(kernels.attention(*sizes, element), **options)
    assert not by_warpgroups(program)
    arguments = [
        random.standard_normal((sizes[0], n, sizes[3])).astype(DTYPES.get(element, np.float32))
        for n in (sizes[1], sizes[2], sizes[2])
    ]
    check(program, arguments, {"f32": "f16"}.get(element, element))


def attention_of_three_tiles() -> tuple[np.ndarray, np.ndarray]:
    program = compiled(kernels.attention(2, 128, 192, 64, "f16"))
    assert by_warpgroups(program)
    q, k, v = (floats(2, n, 64, element="f16") for n in (128, 192, 192))
    return program(q, k, v).astype(np.float64), softmax_of_products(q, k, v)


def nothing(p, op) -> None:
    """Instead of what prints an op."""


@pytest.mark.parametrize("name", ["nvgpu.mbarrier.try_wait.parity", "nvvm.fence.mbarrier.init"])
def test_copies_that_nobody_waits_for(name, monkeypatch):
    monkeypatch.setitem(print_boxes.BOXES, name, nothing)
    with pytest.raises(DeviceError, match="makes an invalid bulk copy, or an invalid wait for one"):
        attention_of_three_tiles()


def test_a_tile_in_the_slot_of_another(monkeypatch):
    """The copy of the next tile overwrites what the products of this one read."""

    def wrong(self, first, slot, at):
        start = [{self.k2: first}]
        here = slot if isinstance(first, int) else at.rem(at.add(slot, 1), 2)
        self._load([(1, self.k1, start), (2, self.n, start)], here, slot, at)

    monkeypatch.setattr(warpgroup_attention.WarpgroupAttention, "_load_tile", wrong)
    found, expected = attention_of_three_tiles()
    assert not np.allclose(found, expected, rtol=2e-3, atol=2e-3)


def test_a_first_product_reads_no_accumulator():
    """Zeros would be 32 more instructions of each thread for each tile."""
    text = text_of(compiled(kernels.attention(2, 128, 192, 64, "f16"), target="cuda:sm_90"))
    assert "irees_warpgroup_mma<irees_f16, 64, 4, 2, 2, false, false, 0, true>(" in text


def test_projections_are_read_where_they_lie():
    """Queries, keys and values of one projection: a kernel without copies of them."""
    torch = pytest.importorskip("torch")

    class Projected(torch.nn.Module):
        def forward(self, x):
            q, k, v = x.reshape(2, 70, 3, 2, 64).permute(2, 0, 3, 1, 4).unbind(0)
            return torch.nn.functional.scaled_dot_product_attention(q, k, v)

    x = torch.randn(2, 70, 384).half()
    program = compiled(str(irees.compile(Projected(), (x,), to="input")))
    assert by_warpgroups(program)
    assert len(program.manifest["launches"]) == 1
    q, k, v = x.double().reshape(2, 70, 3, 2, 64).permute(2, 0, 3, 1, 4).unbind(0)
    expected = torch.nn.functional.scaled_dot_product_attention(q, k, v)
    np.testing.assert_allclose(program(x.numpy()), expected.numpy(), rtol=2e-3, atol=2e-3)
