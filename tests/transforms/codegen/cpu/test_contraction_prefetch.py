"""What a contraction asks for while it works: the whole of the next panel, and little besides."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import numpy as np
import pytest
from xdsl.context import Context

import irees
from irees.analysis import contraction_tiling as decide
from irees.dialects.upstream.memref import L1, L2
from irees.frontends.mlir import import_mlir
from irees.interpreters.registry import PREPARE
from irees.targets.cpu import CPU
from irees.transforms.codegen.cpu.lower_contractions import LowerContractionsPass, prefetch
from irees.transforms.codegen.cpu.lower_micro_kernels import LowerMicroKernelsPass
from irees.transforms.codegen.cpu.lower_micro_kernels import prefetch as kernel_prefetch

LINE = 16
"""Elements of f32."""


def contraction(dims: str, maps: str, kinds: tuple[str, str, str], view: str = "") -> str:
    """A product of the arguments in a new buffer, or in a `view` of one."""
    a, b, c = (f"memref<{k}>" for k in kinds)
    loops = ", ".join(dims)
    affine = ", ".join(f"affine_map<({loops}) -> ({m})>" for m in maps.split(";"))
    iterators = ", ".join('"reduction"' if x in "kq" else '"parallel"' for x in dims)
    rank = c.count("x") - c.count("strided<")
    identity = f"affine_map<({loops[: 3 * rank - 2]}) -> ({loops[: 3 * rank - 2]})>"
    inner = c
    if view:
        sizes, inner = view.split(" : ")
        look = f"%o = memref.subview %z{sizes} : {c} to {inner}"
    else:
        look = f"%o = memref.cast %z : {c} to {c}"
    size = "%n" if "?" in c else ""
    return f"""
    func.func @main(%x: {a}, %y: {b}) -> {c} {{
      %c0 = arith.constant 0 : index
      %zero = arith.constant 0.0 : f32
      %n = memref.dim %x, %c0 : {a}
      %z = memref.alloc({size}) : {c}
      linalg.generic {{indexing_maps = [{identity}], iterator_types = [{", ".join(['"parallel"'] * rank)}]}} outs(%z : {c}) {{
      ^bb0(%c: f32):
        linalg.yield %zero : f32
      }}
      {look}
      linalg.generic {{indexing_maps = [{affine}], iterator_types = [{iterators}]}}
          ins(%x, %y : {a}, {b}) outs(%o : {inner}) {{
      ^bb0(%a: f32, %b: f32, %c: f32):
        %p = arith.mulf %a, %b : f32
        %s = arith.addf %c, %p : f32
        linalg.yield %s : f32
      }}
      return %z : {c}
    }}
    """


PANELS = "m, k; n floordiv 32, k, n mod 32; m, n"
BLOCKS = "q, h, w, k; o, q, k, i; o, h, w, i"


def lowered(text: str):
    module = import_mlir(text)
    LowerContractionsPass().apply(Context(), module)
    LowerMicroKernelsPass().apply(Context(), module)
    return module


def set_costs(monkeypatch, **costs: int) -> None:
    """Changes the costs of prefetches in the passes that read them."""
    for module in (prefetch, kernel_prefetch):
        monkeypatch.setattr(module, "CPU", replace(module.CPU, **costs))


def erase_hints(module, locality: int) -> None:
    """What is asked for the L1 cache, or the L2 cache, is not."""
    for op in list(module.walk()):
        if op.name == "memref.prefetch" and op.localityHint.value.data == locality:
            op.detach()
            op.erase()


def asked(monkeypatch, module, shapes) -> Counter[int]:
    """Lines of B, by their number, and how often each is asked for; C is what it should be."""
    found: Counter[int] = Counter()

    def prepare(machine, op):
        def record(source, index):
            found[index // LINE] += 1
            return ()

        return record

    monkeypatch.setitem(PREPARE, "memref.prefetch", prepare)
    rng = np.random.default_rng(7)
    x, y = (rng.integers(-4, 5, s).astype(np.float32) for s in shapes)
    out = np.asarray(irees.compile(module, target="reference")(x, y))
    if y.ndim == 2:
        expected = x @ y
    elif y.ndim == 3:
        expected = x @ y.transpose(1, 0, 2).reshape(y.shape[1], -1)
    else:
        expected = np.pad(np.einsum("qhwk,oqki->ohwi", x, y), ((0, 0), (1, 1), (1, 1), (0, 0)))
    assert np.array_equal(out, expected)
    return found


@pytest.mark.parametrize(
    ("rows", "slices"), [(17, False), (28, False), (40, False), (150, False), (29, True)]
)
def test_each_line_of_the_next_panel_is_asked_for(monkeypatch, rows, slices):
    """Whatever the number of blocks that share a panel; the first panel has nobody to ask."""
    set_costs(monkeypatch, prefetched_bytes=0)
    if slices:
        monkeypatch.setattr(decide, "CPU", replace(decide.CPU, large_slice_bytes=0, kc=16))
    shapes = ((rows, 48), (3, 48, 32))
    module = lowered(
        contraction("mnk", PANELS, (f"{rows}x48xf32", "3x48x32xf32", f"{rows}x96xf32"))
    )
    found = asked(monkeypatch, module, shapes)
    panel = 48 * 32 // LINE
    assert all(found[line] for line in range(panel, 3 * panel))
    assert not any(found[line] for line in range(panel))
    # A share is whole elements, so the last blocks may run into the panel behind.
    assert max(found) < 5 * panel


@pytest.mark.parametrize("slices", [False, True])
@pytest.mark.parametrize("image", [(7, 7), (4, 14), (3, 20), (2, 7)])
def test_blocks_of_channels_are_asked_for_by_all_rows_of_an_image(monkeypatch, image, slices):
    """
    Rows of an output with a frame do not flatten: each is a turn of a loop outside. A slice of a
    panel is in several places, which the first blocks of rows ask for.
    """
    set_costs(monkeypatch, prefetched_bytes=0)
    if slices:
        monkeypatch.setattr(decide, "CPU", replace(decide.CPU, kc=16))
    h, w = image
    high, wide = h + 2, w + 2
    strides = f"strided<[{high * wide * 16}, {wide * 16}, 16, 1], offset: {(wide + 1) * 16}>"
    view = f"[0, 1, 1, 0] [8, {h}, {w}, 16] [1, 1, 1, 1] : memref<8x{h}x{w}x16xf32, {strides}>"
    kinds = (f"3x{h}x{w}x16xf32", "8x3x16x16xf32", f"8x{high}x{wide}x16xf32")
    module = lowered(contraction("ohwiqk", BLOCKS, kinds, view))
    found = asked(monkeypatch, module, ((3, h, w, 16), (8, 3, 16, 16)))
    panel = 3 * 16 * 16 * 4 // LINE
    assert all(found[line] for line in range(panel, 2 * panel))
    # Shares are whole elements, so those of the last blocks run over the end.
    assert max(found) < 3.5 * panel


@pytest.mark.parametrize("rows", [129, 150, 300])
def test_strips_of_rows_ask_for_the_next_panel_that_the_first_has_packed(monkeypatch, rows):
    plain = "m, k; k, n; m, n"
    kinds = (f"{rows}x40xf32", "40x144xf32", f"{rows}x144xf32")
    near = lowered(contraction("mnk", plain, kinds))
    assert "memref.prefetch" not in str(near), "such a panel stays in the L1 cache"
    set_costs(monkeypatch, near_bytes=40 * 48 * 4 - 1)
    module = lowered(contraction("mnk", plain, kinds))
    erase_hints(module, L1)
    found = asked(monkeypatch, module, ((rows, 40), (40, 144)))
    panel = 40 * 48 // LINE
    assert all(found[line] for line in range(panel, 3 * panel))
    assert not any(found[line] for line in range(panel))


@pytest.mark.parametrize("case", ["panels", "blocks", "packed"])
def test_each_line_of_a_long_panel_is_asked_for_some_steps_before(monkeypatch, case):
    """Once for each block of rows; the lines of the first steps nobody asks for."""
    set_costs(monkeypatch, near_bytes=0)
    if case == "panels":
        kinds = ("8x48xf32", "3x48x32xf32", "8x96xf32")
        text, shapes = contraction("mnk", PANELS, kinds), ((8, 48), (3, 48, 32))
        steps, wide, blocks = 48, 2, 1
    elif case == "blocks":
        kinds = ("3x7x1x16xf32", "8x3x16x16xf32", "8x9x3x16xf32")
        view = "[0, 1, 1, 0] [8, 7, 1, 16] [1, 1, 1, 1] : memref<8x7x1x16xf32, "
        view += "strided<[432, 48, 16, 1], offset: 64>>"
        text = contraction("ohwiqk", BLOCKS, kinds, view)
        shapes = ((3, 7, 1, 16), (8, 3, 16, 16))
        # Seven rows of one point each are one block.
        steps, wide, blocks = 48, 1, 1
    else:
        kinds = ("130x40xf32", "40x96xf32", "130x96xf32")
        text, shapes = contraction("mnk", "m, k; k, n; m, n", kinds), ((130, 40), (40, 96))
        # Both panels count from 0.
        steps, wide, blocks = 40, 3, 2 * 15
    module = lowered(text)
    erase_hints(module, L2)
    found = asked(monkeypatch, module, shapes)
    assert not any(found[line] for line in range(CPU.l1_prefetch_steps * wide))
    assert {found[line] for line in range(CPU.l1_prefetch_steps * wide, steps * wide)} == {blocks}


def test_two_half_vectors_are_one_line(monkeypatch):
    """bf16 that are widened as they are read."""
    set_costs(monkeypatch, near_bytes=0)
    kinds = ("8x48xf32", "3x48x32xf32", "8x96xf32")
    text = contraction("mnk", PANELS, kinds)
    text = text.replace("memref<3x48x32xf32>", "memref<3x48x32xbf16>").replace(
        "%b: f32", "%narrow: bf16"
    )
    text = text.replace("%p = ", "%b = arith.extf %narrow : bf16 to f32\n%p = ")
    assert str(lowered(contraction("mnk", PANELS, kinds))).count("memref.prefetch") == 2
    assert str(lowered(text)).count("memref.prefetch") == 1


@pytest.mark.parametrize("rows", [3, 100, 150])
def test_an_unknown_number_of_rows_asks_for_what_eight_blocks_would(monkeypatch, rows):
    set_costs(monkeypatch, prefetched_bytes=0)
    module = lowered(contraction("mnk", PANELS, ("?x48xf32", "3x48x32xf32", "?x96xf32")))
    found = asked(monkeypatch, module, ((rows, 48), (3, 48, 32)))
    panel = 48 * 32 // LINE
    asked_for = sum(found[line] > 0 for line in range(panel, 2 * panel))
    assert (asked_for == panel) if rows >= 100 else 0 < asked_for < panel
    assert max(found) < 4 * panel


@pytest.mark.parametrize(("rows", "least"), [("8", 0), ("40", 1 << 20)], ids=["one-block", "small"])
def test_nothing_is_asked_for_where_it_does_not_pay(monkeypatch, rows, least):
    set_costs(monkeypatch, prefetched_bytes=least)
    kinds = (f"{rows}x48xf32", "3x48x32xf32", f"{rows}x96xf32")
    assert "memref.prefetch" not in str(lowered(contraction("mnk", PANELS, kinds)))


def test_an_unknown_number_of_columns_may_be_many():
    """Of a tile at the end of an output that is no multiple of it."""
    text = contraction("mnk", PANELS, ("40x48xf32", "?x48x32xf32", "40x?xf32"))
    text = text.replace("memref.dim %x, %c0 : memref<40x48xf32>", "arith.constant 96 : index")
    assert "memref.prefetch" in str(lowered(text))
