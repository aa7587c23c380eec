"""The predicted cycles of contractions beside what an H200 took, and what follows from them."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

import irees
from irees.remarks import collect
from irees.target import GPUS
from irees.transforms.codegen.gpu.utils.blocking import Blocking, WarpgroupBlocking
from irees.transforms.codegen.gpu.utils.waves import Step, Waves, step_of

sys.path.insert(0, str(Path(__file__).parent))
import kernels

H200 = GPUS["sm_90"]
LAUNCH = 3.0
"""Microseconds of a kernel that does nothing, about."""
GIGAHERTZ = 1.8
SMALL, TALL, LARGE = (
    Blocking(*block) for block in ((8, 64, 1, 4, 32), (32, 64, 4, 4, 16), (128, 128, 8, 8, 8))
)
MEASURED = {
    "128 x 768 x 768": (SMALL, 192, 24, (60, 132), 27.5),
    "128 x 768 x 3072": (SMALL, 192, 96, (60, 132), 102.8),
    "128 x 3072 x 768": (TALL, 192, 48, (192, 132), 44.1),
    "4096 cubed": (LARGE, 1024, 512, None, 3407.0),
}
"""Of f32 on 2026-11-28: block, tiles, steps, shared tiles and workgroups, microseconds."""


@pytest.mark.parametrize("name", MEASURED)
def test_measured_products(name):
    """Within a third: tiles that were not shared had a multiprocessor each, or shared one."""
    blocking, tiles, depth, shared, microseconds = MEASURED[name]
    size = 4 * blocking.rows * blocking.columns
    waves = Waves(tiles, depth, size, H200.multiprocessors, step_of(blocking, 4, H200))
    cycles = waves.whole(tiles - (shared[0] if shared else 0))
    if shared:
        cycles += waves.shared(*shared)
    predicted = cycles / GIGAHERTZ / 1000 + LAUNCH
    assert 2 / 3 < predicted / microseconds < 4 / 3


def test_workgroups_hide_latency_until_a_unit_is_busy():
    step = Step(latency=100, work=30, resident=4)
    assert [step.cycles(n) for n in (1, 2, 3, 4)] == [100, 100, 100, 120]
    waves = Waves(1, 10, 4096, 4, step)
    assert waves.whole(4) == waves.whole(12) == 1000
    assert waves.whole(16) == 1200
    assert waves.whole(17) == 2200
    assert waves.whole(0) == 0


def test_sharing_has_limits():
    """Too few steps each, or too many workgroups for a tile."""
    waves = Waves(1, 64, 4096, 132, Step(100, 30, 4))
    assert waves.shared(1, 32) is None
    assert waves.shared(1, 8) is not None
    assert Waves(132, 64, 4096, 132, Step(100, 100, 1)).best() is None


SHAPES = [
    ((128, 4096, 4096), "128, 128, 64, 3"),
    ((2304, 2304, 2304), "128, 256, 64, 4"),
    ((4096, 4096, 4096), "128, 256, 64, 4"),
    ((512, 512, 512), "64, 64, 64, 4"),
]


@pytest.mark.parametrize(("shape", "block"), SHAPES, ids=str)
def test_few_tiles_do_not_lose_warpgroups(shape, block):
    """Fewer tiles than multiprocessors are shared, and a wave more is not one by itself."""
    text = kernels.widening_matmul(*shape, "f16", "m, k; k, n")
    with collect() as remarks:
        module = irees.compile(irees.import_mlir(text), target="cuda:sm_90", to="codegen")
    (configs,) = [op.attributes["configs"] for op in module.walk() if "configs" in op.attributes]
    found = str(configs).replace(" : i64", "")
    assert f"block = [{block}]" in found
    shared = [r for r in remarks if r.pass_name == "irees-gpu-stream-k" and r.kind == "passed"]
    assert len(shared) == (shape[0] in (128, 2304))


def test_a_block_of_warpgroups_takes_its_shared_memory():
    """One workgroup of 128 x 256 fits on a multiprocessor, and three of 64 x 64."""
    fits = [
        step_of(WarpgroupBlocking(*block), 2, H200).resident
        for block in ((128, 256, 64, 4), (64, 64, 64, 4))
    ]
    assert fits == [1, 3]


def cycles_of(text: str) -> list[int | None]:
    """The predicted cycles of each kernel."""
    program = irees.compile(irees.import_mlir(text), target="cuda:sm_90")
    return [each["cycles"] for each in program.explain(as_data=True)["dispatches"]]


def test_predictions_are_explained():
    """Of static products and sorts: cycles of four digits, of all workgroups together."""
    (product,) = cycles_of(kernels.widening_matmul(4096, 4096, 4096, "f16"))
    assert 139 < product / GIGAHERTZ / 1000 < 2 * 139
    (row,) = cycles_of(kernels.sort(132, 4096))
    assert cycles_of(kernels.sort(133, 4096)) == [2 * row]
    (long,) = cycles_of(kernels.sort(1, 1 << 22))
    assert 6 * row < long < 12 * row
    for text in (kernels.elementwise(), kernels.sort("?", "?"), kernels.matmul("?", "?", "?")):
        assert cycles_of(text) == [None]
