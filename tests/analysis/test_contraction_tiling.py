"""How contractions run, decided from numbers alone: no IR is made here."""

from __future__ import annotations

from dataclasses import replace

import pytest
from xdsl.dialects.builtin import i8

from irees.analysis.contraction_tiling import (
    Decision,
    Problem,
    Unsuitable,
    decide,
    grouped,
    suffix,
)
from irees.analysis.dot_products import DotProduct

M, N, K = range(3)


def matmul(m: int | None, n: int | None, k: int | None, **more: object) -> Problem:
    """C[m, n] += A[m, k] * B[k, n] of f32, all contiguous, on AVX-512."""
    problem = Problem(
        batch=(), m=(M,), n=(N,), k=(K,), sizes=(m, n, k), limits=(m, n, k),
        a=(k, 0, 1), b=(0, 1, n), c=(n, 1, 0), beside=(), element_bytes=4, panel=None,
        columns=None, dot=None, reorder=True, vector_bytes=64, registers=32,
    )  # fmt: skip
    return replace(problem, **more)


def panels(m: int, n: int, k: int, width: int = 64) -> Problem:
    """The same with B in panels of `width` columns."""
    return matmul(m, n, k, panel=width, columns=width, b=(0, 1, width))


@pytest.mark.parametrize(
    ("problem", "mr", "vectors", "kc", "mc", "packs_a", "in_place"),
    [
        (matmul(64, 64, 64), 6, 4, 64, None, False, False),
        (matmul(1024, 1024, 1000), 9, 3, 512, 72, False, False),
        # Rows of 4 KiB map to the same cache set, which holds eight.
        (matmul(1024, 1024, 1024), 8, 3, 512, 64, False, False),
        (matmul(1024, 16, 1024), 8, 1, 512, 64, False, False),
        (matmul(20, 40, 1024), 7, 3, 512, None, False, False),
        (matmul(1024, 40, 512), 9, 3, 512, 72, False, False),
        # Four rows or fewer read B where it is; from 128 KiB on, in streams of four rows of it.
        (matmul(1, 4096, 4096), 1, 4, 4, None, False, True),
        (matmul(1, 64, 64), 1, 4, None, None, False, True),
        (panels(256, 1024, 1024), 7, 4, 512, 70, False, True),
        (panels(256, 1024, 1000), 7, 4, 512, 70, False, True),
        # AVX2: a register holds each broadcast.
        (matmul(64, 64, 64, vector_bytes=32, registers=16), 6, 2, 64, None, False, False),
        # Strides that are not known count as colliding. f64 has half as many steps in a slice.
        (matmul(64, 64, 2048, element_bytes=8), 6, 4, 256, None, False, False),
        (matmul(None, 64, 64), 7, 4, 64, None, False, False),
        (matmul(64, 64, None), 6, 4, 512, None, False, False),
    ],
)
def test_blocks_slices_and_packing(problem, mr, vectors, kc, mc, packs_a, in_place):
    chosen = decide(problem)
    tiling, packing = chosen.tiling, chosen.packing
    assert (tiling.mr, tiling.vectors, tiling.kc, tiling.mc) == (mr, vectors, kc, mc)
    assert (packing.a, packing.in_place) == (packs_a, in_place)


def convolution(image: int, channels: int = 64) -> Problem:
    """C[h, w, f] += A[h, w, c] * B[c, f] of an image in a frame: rows do not join by stride."""
    h, w, f, c = range(4)
    frame = image + 2
    sizes = (image, image, 64, channels)
    return Problem(
        batch=(), m=(h, w), n=(f,), k=(c,), sizes=sizes, limits=sizes,
        a=(frame * channels, channels, 0, 1), b=(0, 0, 1, 64), c=(image * 64, 64, 1, 0),
        beside=(), element_bytes=4, panel=64, columns=64, dot=None, reorder=True,
        vector_bytes=64, registers=32,
    )  # fmt: skip


def candidates(decision: Decision) -> dict[str, str | None]:
    """Why each candidate lost, by its name."""
    return {candidate.name: candidate.rejected for candidate in decision.candidates}


def test_rows_of_a_small_image_are_joined():
    """Eight rows are blocks of six and two; of 64 rows only the last block is small."""
    chosen = decide(convolution(8))
    assert chosen.loops.m == (0, 1)
    assert chosen.loops.outer_m == ()
    assert candidates(chosen) == {"rows of all loops": None, "rows of one loop": "more cycles"}


def test_rows_of_a_large_image_are_not():
    chosen = decide(convolution(48))
    assert chosen.loops.m == (1,)
    assert chosen.loops.outer_m == (0,)
    assert candidates(chosen) == {
        "rows of one loop": None,
        "rows of all loops": "blocks of single loops take as few cycles",
    }


@pytest.mark.parametrize(
    ("problem", "reason"),
    [
        (matmul(64, 64, 64, c=(1, 64, 0)), "the output is not contiguous"),
        (matmul(64, 4, 64), "too few columns for a vector"),
        (matmul(4, 64, 64, b=(0, 64, 1)), "too few rows to pack for"),
        (panels(64, 64, 64, 24), "packed for another vector width"),
    ],
)
def test_what_has_no_kernel_says_why(problem, reason):
    with pytest.raises(Unsuitable, match=reason):
        decide(problem)


def test_panels_of_half_a_vector_are_blocks_of_half_vectors():
    chosen = decide(panels(784, 8, 72, 8))
    assert chosen.loops.lanes == 8
    assert chosen.tiling.vectors == 1
    assert decide(panels(784, 16, 72, 16)).loops.lanes == 16


def test_groups_that_a_dot_product_cannot_read_are_packed():
    """K of A is not contiguous, so A is packed; where M has no bound there is no room for it."""
    dot = DotProduct(element=i8, group=4, biased=False, swapped=False)
    problem = matmul(64, 64, 64, a=(1, 0, 64), dot=dot)
    assert decide(problem).packing.a
    with pytest.raises(Unsuitable, match="rows are not in groups of K"):
        decide(replace(problem, sizes=(None, 64, 64), limits=(None, 64, 64)))


def test_sums_keep_their_order_unless_they_may_change_it():
    """K of two loops whose strides in A fall the other way."""
    m, n, k0, k1 = range(4)
    sizes = (64, 64, 8, 8)
    problem = Problem(
        batch=(), m=(m,), n=(n,), k=(k0, k1), sizes=sizes, limits=sizes, a=(64, 0, 1, 8),
        b=(0, 1, 64, 512), c=(64, 1, 0, 0), beside=(), element_bytes=4, panel=None, columns=None,
        dot=None, reorder=True, vector_bytes=64, registers=32,
    )  # fmt: skip
    assert decide(problem).loops.k == ((k1, k0),)
    kept = decide(replace(problem, reorder=False)).loops
    assert (*kept.outer_k, *kept.k[0]) == (k0, k1)


def test_loops_join_where_one_stride_is_the_size_of_the_next():
    assert suffix((0, 1, 2), ((60, 20, 1),), (3, 3, 20)) == (0, 1, 2)
    assert suffix((0, 1, 2), ((61, 20, 1),), (3, 3, 20)) == (1, 2)
    assert suffix((0, 1), ((None, 1),), (3, 3)) == (1,)
    assert grouped((0, 1, 2), ((61, 20, 1),), (3, 3, 20)) == ((0,), (1, 2))
