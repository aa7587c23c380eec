"""Scatters by one workgroup and by many, emulated: the bits of a loop over all updates."""

from __future__ import annotations

import sys
from dataclasses import replace
from functools import cache
from math import prod
from pathlib import Path

import numpy as np
import pytest
from hypothesis import event, given, settings
from hypothesis import strategies as st

import irees
from irees.remarks import collect
from irees.testing.profiles import load
from irees.transforms.codegen.gpu.gpu_lower_scatters import wide_scatter as _wide_scatter
from irees.transforms.codegen.gpu.utils import sort_tiles as _sort_tiles

sys.path.insert(0, str(Path(__file__).parent))
import kernels

FACTOR = load()
TARGET = "cuda-emulated:sm_90"
WAYS = {
    "one": lambda op, busy, room: "one is asked for",
    "points": lambda op, busy, room: _wide_scatter.by_points,
    "parts": lambda op, busy, room: _wide_scatter.by_parts,
    "apart": lambda op, busy, room: _wide_scatter.apart,
}
DTYPES = {"f32": np.float32, "f16": np.float16, "i32": np.int32, "i64": np.int64, "i8": np.int8}
FLOATS = ["", "addf %b, %a", "subf %b, %a", "maximumf %a, %b", "addf %b, %one", "mulf %a, %one"]
INTEGERS = ["", "addi %b, %a", "subi %a, %b", "maxsi %a, %b", "addi %b, %one", "addi %a, %one"]


def workgroups(text: str, **options) -> list[int]:
    """How many workgroups each kernel of a program has, 0 where that is known late."""
    module = irees.compile(text, target=TARGET, to="codegen", opt_level=1, **options)
    loops = [
        op
        for op in module.walk()
        if op.name == "scf.forall" and "gpu.block" in str(op.properties.get("mapping"))
    ]
    counts = [loop.properties["staticUpperBound"].get_values() for loop in loops]
    return [0 if min(count) < 0 else prod(count) for count in counts]


@cache
def program(text: str, way: str):
    """Compiled to be done in a way, with parts of few updates."""
    with pytest.MonkeyPatch.context() as patch:
        if way in WAYS:
            patch.setattr(_wide_scatter, "way_for", WAYS[way])
            patch.setattr(_sort_tiles, "row_tile", lambda *_: None)
            small = replace(_sort_tiles.NVIDIA, sort_wide_threads=256, sort_items=(2,))
            patch.setattr(_sort_tiles, "NVIDIA", small)
        target = TARGET if way in WAYS else way
        # From a module, so that the cache of programs does not keep it.
        return irees.compile(irees.import_mlir(text), target=target, fp="strict", opt_level=1)


@st.composite
def scatters(draw):
    """A scatter, the way it is to go, its target, updates and indices."""
    element, index = (
        draw(st.sampled_from(list(DTYPES))),
        draw(st.sampled_from(["i64", "i32", "i8"])),
    )
    depth, slices = draw(st.integers(1, 2)), draw(st.integers(0, 2))
    target = draw(st.lists(st.integers(1, 9), min_size=depth + slices, max_size=depth + slices))
    order, unique = draw(st.permutations(range(depth))), draw(st.booleans())
    extents = [target[d] for d in order]
    lead = [draw(st.integers(0, prod(extents) if unique else 90))]
    if not unique and draw(st.booleans()):
        lead = [draw(st.integers(0, 3)), *lead]
    late = draw(st.booleans())
    text = kernels.scatter_of(
        ["?"] * len(target) if late else target,
        ["?"] * len(lead) if late else lead,
        depth,
        unique=unique,
        element=element,
        body=draw(st.sampled_from(FLOATS if element[0] == "f" else INTEGERS)),
        index=index,
        order=order,
    )
    random = np.random.default_rng(draw(st.integers(0, 99)))
    if unique:
        places = random.permutation(prod(extents))[: lead[0]]
        indices = np.stack(np.unravel_index(places, extents), -1)
        indices[random.random(lead[0]) < 0.1] = -1
    else:
        indices = random.integers(-1, np.array(extents) + 1, (*lead, depth))
    values = random.normal(0, 3, (*lead, *target[depth:])).astype(DTYPES[element])
    whole = random.normal(0, 3, target).astype(DTYPES[element])
    way = draw(st.sampled_from(["one", "apart"] if unique else ["one", "points", "parts"]))
    event(f"{way}, {'late' if late else 'known'}")
    return text, way, whole, values, indices.astype(DTYPES[index])


def agree(text: str, way: str, *inputs: np.ndarray) -> None:
    """In any order of threads, each of which would else come after the one before."""
    expected = program(text, "reference")(*(x.copy() for x in inputs))
    order = program(text, way).library.cdll.irees_emulation_order
    try:
        for seed in (0, 5):
            order(seed)
            found = program(text, way)(*(x.copy() for x in inputs))
            np.testing.assert_array_equal(*(x.view(f"u{x.itemsize}") for x in (found, expected)))
    finally:
        order(0)


@settings(max_examples=20 * FACTOR, deadline=None)
@given(scatters())
def test_any_scatter(case):
    agree(*case)


UNIQUE, MEETING = True, False
CASES = [
    # A thread for each point of each update, 256 in a workgroup.
    ([1000000], [65536], 1, UNIQUE, [256]),
    ([1000, 768], [512], 1, UNIQUE, [1536]),
    (["?", "?"], ["?"], 1, UNIQUE, [0]),
    # 32 points of a slice, and all updates.
    ([4096, 32, 128], [8], 1, MEETING, [128]),
    # Keys, three kernels for the first, the last and the digits between, a thread for each update.
    ([1 << 20], [1 << 20], 1, MEETING, [4096, *[256, 256, 256] * 3, 4096]),
    ([1 << 10], [1 << 16], 1, MEETING, [256, *[128, 256, 128] * 2, 256]),
    ([1000, 1000], [65536], 2, MEETING, [256, *[128, 256, 128] * 3, 256]),
    # One workgroup sorts as many.
    ([50257, 768], [8192], 1, MEETING, [32, 1, 24576]),
    # For few targets of unknown number there is a shorter sort.
    (["?"], ["?"], 1, MEETING, [0, *[0, 256, 0] * 6, 0]),
    (["?", "?"], ["?"], 1, MEETING, [0, *[0, 256, 0] * 6, 0]),
    # Too little for more.
    ([1000], [4], 1, MEETING, [1]),
    ([1000], [500], 1, MEETING, [1]),
]  # fmt: skip


@pytest.mark.parametrize(("target", "lead", "depth", "unique", "expected"), CASES)
def test_how_many_workgroups_there_are(target, lead, depth, unique, expected):
    """The first kernel copies the target, which the caller keeps."""
    counts = workgroups(kernels.scatter_of(target, lead, depth, unique=unique))
    assert counts[1:] == expected


@pytest.mark.parametrize("late", [False, True])
@pytest.mark.parametrize("unique", [False, True])
def test_many_updates(late, unique):
    """As they are chosen to go."""
    random = np.random.default_rng(3)
    places = random.permutation(9000)[:5000] if unique else random.integers(-3, 300, 5000)
    target = random.normal(0, 3, 9000 if unique else 200).astype(np.float32)
    sizes = (["?"], ["?"]) if late else ([len(target)], [5000])
    text = kernels.scatter_of(*sizes, 1, unique=unique, body="subf %b, %a")
    updates = random.normal(0, 3, 5000).astype(np.float32)
    assert 1 not in workgroups(text)[1:2]
    agree(text, TARGET, target, updates, places.astype(np.int32).reshape(-1, 1))


def test_places_that_differ_in_high_bits():
    """The sort of places of unknown number takes all bits that the indices may have."""
    random = np.random.default_rng(4)
    target = random.normal(0, 3, 1 << 18).astype(np.float32)
    places = random.integers(0, 4, 900) * 65536 + random.integers(0, 2, 900)
    text = kernels.scatter_of(["?"], ["?"], 1, body="subf %b, %a")
    updates = random.normal(0, 3, 900).astype(np.float32)
    agree(text, TARGET, target, updates, places.astype(np.int32).reshape(-1, 1))


def test_nothing():
    """No updates, no places, no points."""
    text = kernels.scatter_of(["?", "?"], ["?"], 1, body="subf %b, %a")
    assert 1 not in workgroups(text)[1:2]
    for rows, columns, count in ((3, 2, 0), (0, 2, 5), (3, 0, 5), (0, 0, 0)):
        where = np.array([[0], [1], [0], [-1], [1 << 30]], np.int32)[:count]
        target, updates = (
            np.ones((rows, columns), np.float32),
            np.ones((count, columns), np.float32),
        )
        agree(text, TARGET, target, updates, where)


def test_one_workgroup_says_why():
    with collect() as remarks:
        workgroups(kernels.scatter_of([1000], [500], 1))
    (reason,) = [r.text for r in remarks if r.pass_name == "irees-gpu-lower-scatters"]
    assert reason == "using one workgroup: predicted cost 192, 852 by many"
