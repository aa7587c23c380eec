"""
Kernels that `test_sanitizers.py` runs under a sanitizer, each CUDA thread a thread of the system.

`python sanitized.py <program>...`; `race`, `no_fence`, `early_part`, `early_box` and
`overflow` are wrong on purpose.
"""

from __future__ import annotations

import os
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np

import irees
from irees.backends.cuda import print_counters, print_forall
from irees.dialects.nvgpu import WarpgroupMmaOp
from irees.target import GPUS
from irees.transforms.codegen.common.verify_accesses import VerifyAccessesPass
from irees.transforms.codegen.gpu import gpu_select_strategy
from irees.transforms.codegen.gpu.gpu_lower_scatters import wide_scatter
from irees.transforms.codegen.gpu.utils import blocking, contraction, sort_tiles, waves

sys.path.insert(0, str(Path(__file__).parent))
import kernels

random = np.random.default_rng(0)


def whole(*shape: int) -> np.ndarray:
    return random.integers(-3, 4, shape).astype(np.float32)


def compiled(text: str, target: str = "cuda-emulated", **options):
    return irees.compile(irees.import_mlir(text), target=target, opt_level=0, **options)


def rows() -> None:
    x = whole(5, 200)
    np.testing.assert_array_equal(compiled(kernels.row_sums(5, 200))(x), x.sum(1))
    compiled(kernels.softmax(3, 70))(x[:3, :70].copy())
    norms()
    y = whole(200, 8)
    np.testing.assert_array_equal(compiled(kernels.column_sums(200, 8))(y), y.sum(0))
    best, where = np.full(2, -np.inf, np.float32), np.zeros(2, np.int64)
    z = whole(2, 300)
    _, found = compiled(kernels.argmax(2, 300))(z, best, where)
    np.testing.assert_array_equal(found, z.argmax(1))


def norms() -> None:
    """Scalars of a workgroup that every thread computes, with barriers only where one is needed."""
    for text in (kernels.softmax(2, 1024), kernels.group_norm(2, 1024)):
        program = compiled(text)
        kernel = "".join(program.sources.values()).split('extern "C" __global__')[-1]
        assert "threadIdx.x < 1" not in kernel
        sizes = [x.shape for x in program.functions["main"].arguments]
        program(*(whole(*size) for size in sizes))


def matmul() -> None:
    a, b, c = whole(13, 37), whole(37, 41), whole(41)
    np.testing.assert_array_equal(compiled(kernels.matmul("?", "?", "?"))(a, b, c), a @ b + c)


def accumulation() -> None:
    """Threads past the last column read what the output held, 16 bytes at a time."""
    text = """
func.func @main(%a: tensor<4x6xf32>, %b: tensor<6x8xf32>, %c: tensor<4x8xf32>) -> tensor<4x8xf32> {
  %r = linalg.matmul ins(%a, %b : tensor<4x6xf32>, tensor<6x8xf32>) outs(%c : tensor<4x8xf32>) -> tensor<4x8xf32>
  return %r : tensor<4x8xf32>
}"""
    a, b, c = whole(4, 6), whole(6, 8), whole(4, 8)
    np.testing.assert_array_equal(compiled(text)(a, b, c), a @ b + c)


def matrices() -> None:
    """Copies that arrive while others are multiplied."""
    a, b = (whole(*shape).astype(np.float16) for shape in ((40, 136), (136, 48)))
    expected = a.astype(np.float32) @ b.astype(np.float32)
    found = compiled(kernels.widening_matmul(40, 48, 136, "f16"))(a, b)
    np.testing.assert_array_equal(found, expected)


def warpgroups(*, boxes: bool = False) -> None:
    """Products that are at work while parts of their operands arrive beside them."""
    block = (blocking.WarpgroupBlocking(64, 64, 16, 3),)
    gpu_select_strategy.WARPGROUP_CANDIDATES = block
    gpu_select_strategy.matrix_candidates = lambda *_, **__: ()
    a, b = (whole(*shape).astype(np.float16) for shape in ((40, 72), (72, 64)))
    expected = a.astype(np.float32) @ b.astype(np.float32)
    left_out = () if boxes else ("irees-gpu-use-bulk-copies",)
    text = kernels.widening_matmul(40, 64, 72, "f16")
    program = compiled(text, "cuda-emulated:sm_90", disable_pass=left_out)
    sources = "".join(program.sources.values())
    assert "irees_warpgroup_mma<" in sources
    assert ("  irees_copy_box(" in sources) is boxes
    np.testing.assert_array_equal(program(a, b), expected)


def bulk_copies() -> None:
    """The same, of boxes that one thread copies for all."""
    warpgroups(boxes=True)


def early_part(*, boxes: bool = False) -> None:
    """A part is overwritten while its product may be at work."""
    made = WarpgroupMmaOp.__init__

    def later(self, *operands, wait, turned):
        made(self, *operands, wait=wait + 1, turned=turned)

    WarpgroupMmaOp.__init__ = later
    warpgroups(boxes=boxes)


def early_box() -> None:
    """So is a box."""
    early_part(boxes=True)


def attention() -> None:
    """Steps that follow each other in a loop that all threads go through."""
    GPUS["sm_80"] = replace(GPUS["sm_80"], l2_bytes=256)
    q, k = whole(1, 20, 16), whole(1, 128, 16)
    program = compiled(kernels.attention(1, 20, 128, 16))
    assert len(program.manifest["launches"]) == 1
    assert np.isfinite(program(q, k, k)).all()


def attention_in_registers() -> None:
    """Keys and values that arrive while others are in use, of which the last tile has few."""
    GPUS["sm_80"] = replace(GPUS["sm_80"], l2_bytes=256)
    q, k = (whole(1, n, 16).astype(np.float16) for n in (20, 72))
    program = compiled(kernels.attention(1, 20, 72, 16, "f16"))
    assert "irees_copies_wait<" in "".join(program.sources.values())
    assert np.isfinite(program(q, k, k)).all()


def sorting() -> None:
    x = whole(2, 50)
    numbers = np.broadcast_to(np.arange(50), (2, 50)).astype(np.int64).copy()
    values, _ = compiled(kernels.sort(2, 50))(x, numbers)
    np.testing.assert_array_equal(values, np.sort(x, 1))
    best, _ = compiled(kernels.topk(2, 50, 5))(x)
    np.testing.assert_array_equal(best, -np.sort(-x, 1)[:, :5])


def digits() -> None:
    """Lanes that count for others, and threads that move what others have counted."""
    x = whole(1, 300)
    numbers = np.arange(300, dtype=np.int64).reshape(1, 300)
    program = compiled(kernels.sort(1, 300))
    assert "= irees_match_bits<" in "".join(program.sources.values())
    _, where = program(x, numbers)
    np.testing.assert_array_equal(where, np.argsort(x, 1, kind="stable"))
    wide = whole(1, 600).astype(np.int8)
    values, _ = compiled(kernels.topk(1, 600, 130, "i8", "sge"))(wide)
    np.testing.assert_array_equal(values, -np.sort(-wide, 1)[:, :130])


def small_tiles() -> None:
    """Rows are sorted by many workgroups, of two elements per thread."""
    sort_tiles.row_tile = lambda *_: None
    sort_tiles.NVIDIA = replace(sort_tiles.NVIDIA, sort_wide_threads=256, sort_items=(2,))


def many_workgroups() -> None:
    """Parts of a row."""
    small_tiles()
    x = random.integers(-9, 9, (1, 700)).astype(np.int8)
    numbers = np.arange(700, dtype=np.int64).reshape(1, 700)
    _, where = compiled(kernels.sort(1, 700, "i8", "sle"))(x, numbers)
    np.testing.assert_array_equal(where, np.argsort(x, 1, kind="stable"))


def scatters() -> None:
    """Elements that meet by one workgroup, and each way of many."""
    small_tiles()
    target, updates = np.zeros((20, 3), np.float32), whole(300, 3)
    places = random.integers(-1, 21, (300, 1)).astype(np.int32)
    inside = (places[:, 0] >= 0) & (places[:, 0] < 20)
    expected = np.zeros((20, 3), np.float32)
    np.add.at(expected, places[inside, 0], updates[inside])
    ways = (wide_scatter.by_points, wide_scatter.by_parts, "one is asked for")
    for way in ways:
        wide_scatter.way_for = lambda op, busy, room, way=way: way
        found = compiled(kernels.scatter_of([20, 3], [300], 1))(target.copy(), updates, places)
        np.testing.assert_array_equal(found, expected)
    wide_scatter.way_for = lambda op, busy, room: wide_scatter.apart
    places = random.permutation(400)[:300].astype(np.int32)
    text = kernels.scatter_of([400, 3], [300], 1, unique=True, body="")
    found = compiled(text)(np.zeros((400, 3), np.float32), updates, places.reshape(-1, 1))
    np.testing.assert_array_equal(found[places], updates)


def shared_tiles() -> None:
    """Parts of sums that workgroups leave to one of them."""
    GPUS["sm_80"] = replace(GPUS["sm_80"], multiprocessors=4)
    waves.NVIDIA = replace(waves.NVIDIA, share_cycles=0)
    a, b, c = whole(40, 512), whole(512, 64), whole(64)
    program = compiled(kernels.matmul(40, 64, 512))
    assert "= atomicAdd(" in "".join(program.sources.values())
    # Of integers numpy has no threads, which a sanitizer would see.
    expected = a.astype(int) @ b.astype(int) + c
    np.testing.assert_array_equal(program(a, b, c), expected)


def no_fence() -> None:
    """One of them reads what it may not see yet."""
    print_counters.ATOMICS["nvvm.memory.barrier"] = lambda p, op: None
    shared_tiles()


def lane_race() -> None:
    """A lane counts where others have not read yet."""
    print_forall.KERNEL["nvvm.bar.warp.sync"] = lambda p, op: setattr(p, "waits", True)
    digits()


def race() -> None:
    """Threads read tiles that others may not have written yet."""
    print_forall.KERNEL["gpu.barrier"] = lambda p, op: setattr(p, "waits", True)
    matmul()


def overflow() -> None:
    """Tiles without the last row."""
    tile = contraction.Contraction._tile

    def shorter(self, side, at):
        return tile(self, replace(side, extent=side.extent - 8), at)

    contraction.Contraction._tile = shorter
    # It would put guards around what is not inside.
    VerifyAccessesPass.apply = lambda self, ctx, op: None
    matmul()


if __name__ == "__main__":
    # Each in a process of its own, because some put faults into the compiler; but to import it once
    # under a sanitizer takes as long as most of them.
    for name in sys.argv[1:]:
        if (child := os.fork()) == 0:
            globals()[name]()
            sys.exit()
        status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        print(f"== {name}: {status}", file=sys.stderr, flush=True)
