"""Blocks, strips and slices of contractions whose rows run through several loops."""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np
import pytest
from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp

import irees
from irees.analysis import contraction_tiling as decide
from irees.analysis.contraction_tiling import slices_of_panel, strip_of, strip_of_turns
from irees.analysis.register_blocking import Blocking, choose_blocking
from irees.frontends.mlir import import_mlir
from irees.transforms.codegen.cpu.lower_contractions import LowerContractionsPass
from irees.transforms.codegen.cpu.lower_micro_kernels import LowerMicroKernelsPass
from irees.transforms.input.assign_target import AssignTargetPass

MULTIPLY_ADD = """^bb0(%a: f32, %b: f32, %c: f32):
        %p = arith.mulf %a, %b : f32
        %s = arith.addf %c, %p : f32
        linalg.yield %s : f32"""


@pytest.mark.parametrize("rows", [5, 12, 64, 1024])
@pytest.mark.parametrize("columns", [8, 24, 768])
def test_blocks_leave_registers_for_broadcasts_that_are_not_embedded(rows, columns):
    block = choose_blocking(rows, columns, 8, 16, embeds=False)
    assert block.rows * block.vectors + block.vectors + 2 <= 16
    assert choose_blocking(1024, 1024, 8, 16, embeds=False) == Blocking(6, 2)
    # Of AVX-512's 32 none is a broadcast's.
    full = choose_blocking(1024, 1024, 16, 32, embeds=True)
    assert full.rows * full.vectors + full.vectors > 29


@pytest.mark.parametrize(
    ("blocks", "points", "width", "depth"),
    [
        (64, 8, 64, 32),  # 512 points of 16 columns: two slices of 256, which the L1 cache holds
        (32, 8, 64, None),
        (33, 8, 64, 17),
        (64, 16, 256, None),  # 64 columns: no panel of 256 points stays there
        (80, 16, 256, 27),  # more than two slices of 512
    ],
)
def test_panels_are_cut_to_what_the_l1_cache_holds(blocks, points, width, depth):
    assert slices_of_panel([[0], [1]], [blocks, points], width) == depth


def test_strips_divide_the_rows_where_they_can():
    """A shorter last strip has code of its own."""
    assert strip_of(3136, 7) == 56
    assert strip_of(784, 14) == 56
    assert strip_of(196, 7) == 49
    assert strip_of(131, 7) == 49  # a prime: three strips, the last one of 33 rows
    assert strip_of(128, 7) is None


def test_strips_of_turns():
    """About 64 rows in each; none for few rows, or an unknown number."""
    assert strip_of_turns(14, [14]) == 5
    assert strip_of_turns(112, [112]) == 1
    assert strip_of_turns(8, [4, 8]) == 1
    assert strip_of_turns(7, [7]) is None
    assert strip_of_turns(-1, [14]) is None


NARROW, WIDE = (
    f"vector_bytes={size} vector_registers={count}" for size, count in ((32, 16), (64, 32))
)


def lower(module: ModuleOp, facts: str, fp: str = "default") -> None:
    """Lowers the contractions of a module for a target with these facts."""
    AssignTargetPass(facts=facts, fp=fp).apply(Context(), module)
    LowerContractionsPass().apply(Context(), module)
    LowerMicroKernelsPass().apply(Context(), module)


def product(image: tuple[int, int], apart: int, lanes: int) -> str:
    """
    o[1 + h, 1 + w] of a frame = x[apart * h, apart * w] * y, channels in blocks of `lanes`: 4 of
    them that are summed up, 6 of the output.
    """
    h, w = image
    high, wide = h + 2, w + 2
    x = f"memref<4x{apart * h}x{apart * w}x{lanes}xf32>"
    y = f"memref<6x4x{lanes}x{lanes}xf32>"
    frame = f"memref<6x{high}x{wide}x{lanes}xf32>"
    steps = f"[{high * wide * lanes}, {wide * lanes}, {lanes}, 1]"
    inner = f"memref<6x{h}x{w}x{lanes}xf32, strided<{steps}, offset: {(wide + 1) * lanes}>>"
    at = "h, w" if apart == 1 else f"h * {apart}, w * {apart}"
    maps = ", ".join(
        f"affine_map<(o, h, w, i, q, k) -> ({m})>"
        for m in (f"q, {at}, k", "o, q, k, i", "o, h, w, i")
    )
    kinds = ", ".join(['"parallel"'] * 4 + ['"reduction"'] * 2)
    plain = "affine_map<(o, h, w, i) -> (o, h, w, i)>"
    return f"""
    func.func @main(%x: {x}, %y: {y}) -> {frame} {{
      %zero = arith.constant 0.0 : f32
      %z = memref.alloc() : {frame}
      linalg.generic {{indexing_maps = [{plain}], iterator_types = [{", ".join(['"parallel"'] * 4)}]}}
          outs(%z : {frame}) {{
      ^bb0(%c: f32):
        linalg.yield %zero : f32
      }}
      %o = memref.subview %z[0, 1, 1, 0] [6, {h}, {w}, {lanes}] [1, 1, 1, 1] : {frame} to {inner}
      linalg.generic {{indexing_maps = [{maps}], iterator_types = [{kinds}]}}
          ins(%x, %y : {x}, {y}) outs(%o : {inner}) {{
      {MULTIPLY_ADD}
      }}
      return %z : {frame}
    }}
    """


@pytest.mark.parametrize("slices", [False, True])
@pytest.mark.parametrize("apart", [1, 2])
@pytest.mark.parametrize(
    ("image", "joined"),
    [
        ((7, 7), True),
        ((14, 14), True),
        ((5, 7), True),
        ((3, 5), False),
        ((4, 12), False),
        ((12, 6), False),
        ((11, 6), False),  # strips of three rows, and a last one of two
    ],
)
def test_rows_of_an_image_in_a_frame(monkeypatch, image, joined, apart, slices):
    """All rows count as one loop where blocks of them are fewer; whole rows of blocks stay."""
    monkeypatch.setattr(decide, "CPU", replace(decide.CPU, mc=16))
    if slices:
        monkeypatch.setattr(
            decide, "CPU", replace(decide.CPU, near_panel_bytes=64 * 16, least_kc=16)
        )
    module = import_mlir(product(image, apart, 8))
    lower(module, NARROW)
    text = str(module)
    assert "linalg.generic" not in text.partition("memref.subview")[2]
    assert ("arith.remui" in text) == joined
    h, w = image
    rng = np.random.default_rng(7)
    x = rng.integers(-4, 5, (4, apart * h, apart * w, 8)).astype(np.float32)
    y = rng.integers(-4, 5, (6, 4, 8, 8)).astype(np.float32)
    out = np.asarray(irees.compile(module, target="reference")(x, y))
    inside = np.einsum("qhwk,oqki->ohwi", x[:, ::apart, ::apart], y)
    np.testing.assert_array_equal(out, np.pad(inside, ((0, 0), (1, 1), (1, 1), (0, 0))))


def test_rows_whose_addresses_need_many_registers_stay_apart():
    """Blocks of 14 rows of AVX-512: every second row of an image has no one step to the next."""
    module = import_mlir(product((7, 10), 2, 16))
    lower(module, WIDE)
    assert "arith.remui" not in str(module)
    module = import_mlir(product((7, 10), 1, 16))
    lower(module, WIDE)
    sums = {s.count(" = ") - 1 for s in re.findall(r"scf.for .* iter_args\(.*", str(module))}
    assert max(sums) <= 28


def biased_product(blocks: int) -> str:
    """max(x * y + bias, 0) over so many blocks of 8 channels, of 40 rows, 6 blocks of output."""
    x, y = f"memref<{blocks}x40x8xf32>", f"memref<6x{blocks}x8x8xf32>"
    o, bias = "memref<6x40x8xf32>", "memref<6x8xf32>"
    maps = ", ".join(
        f"affine_map<(o, h, i, q, k) -> ({m})>" for m in ("q, h, k", "o, q, k, i", "o, h, i")
    )
    kinds = ", ".join(['"parallel"'] * 3 + ['"reduction"'] * 2)
    whole, each = "affine_map<(o, h, i) -> (o, h, i)>", "affine_map<(o, h, i) -> (o, i)>"
    parallel = ", ".join(['"parallel"'] * 3)
    return f"""
    func.func @main(%x: {x}, %y: {y}, %bias: {bias}) -> {o} {{
      %zero = arith.constant 0.0 : f32
      %z = memref.alloc() : {o}
      %r = memref.alloc() : {o}
      linalg.generic {{indexing_maps = [{whole}], iterator_types = [{parallel}]}} outs(%z : {o}) {{
      ^bb0(%c: f32):
        linalg.yield %zero : f32
      }}
      linalg.generic {{indexing_maps = [{maps}], iterator_types = [{kinds}]}}
          ins(%x, %y : {x}, {y}) outs(%z : {o}) {{
      {MULTIPLY_ADD}
      }}
      linalg.generic {{indexing_maps = [{whole}, {each}, {whole}], iterator_types = [{parallel}]}}
          ins(%z, %bias : {o}, {bias}) outs(%r : {o}) {{
      ^bb0(%a: f32, %b: f32, %c: f32):
        %s = arith.addf %a, %b : f32
        %m = arith.maximumf %s, %zero : f32
        linalg.yield %m : f32
      }}
      return %r : {o}
    }}
    """


@pytest.mark.parametrize("reassociate", [False, True])
@pytest.mark.parametrize(("blocks", "slices"), [(2, 1), (4, 2), (6, 3), (5, 3), (7, 4)])
def test_the_epilogue_comes_with_the_last_slice(monkeypatch, blocks, slices, reassociate):
    """Slices that are all alike are one loop, whose last turn has the epilogue."""
    monkeypatch.setattr(
        decide, "CPU", replace(decide.CPU, near_panel_bytes=64 * 16, least_kc=16, mc=16)
    )
    module = import_mlir(biased_product(blocks))
    lower(module, NARROW, "default" if reassociate else "strict")
    text = str(module)
    assert "linalg.generic" not in text.partition("memref.reinterpret_cast")[2]
    assert "arith.maximumf" in text
    # Two loops of sums in each kernel; where the last slice is shorter, it has kernels of its own.
    kernels = len(re.findall(r"scf.for .* iter_args\(", text)) // 2
    assert kernels == (2 if blocks % slices == 0 else 4)
    rng = np.random.default_rng(7)
    x = rng.integers(-4, 5, (blocks, 40, 8)).astype(np.float32)
    y = rng.integers(-4, 5, (6, blocks, 8, 8)).astype(np.float32)
    bias = rng.integers(-64, 65, (6, 8)).astype(np.float32)
    out = np.asarray(irees.compile(module, target="reference")(x, y, bias))
    expected = np.einsum("qhk,oqki->ohi", x, y) + bias[:, None]
    np.testing.assert_array_equal(out, np.maximum(expected, 0))
