"""Programs on the emulated device against the interpreter, bit for bit where nothing is reordered."""

from __future__ import annotations

import dataclasses
import sys
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest
from hypothesis import Phase, given, settings

import irees
from irees.backends.cuda import print_forall, print_matrices
from irees.errors import ArgumentError, DeviceError, RuntimeTrap
from irees.target import GPUS
from irees.testing.builders import BUILDERS
from irees.testing.oracles import pipeline_agrees, report
from irees.testing.profiles import load
from irees.testing.strategies import modules

sys.path.insert(0, str(Path(__file__).parent))
import kernels

FACTOR = load()
TARGET = "cuda-emulated"
random = np.random.default_rng(0)


def floats(*shape: int) -> np.ndarray:
    return random.standard_normal(shape).astype(np.float32)


def whole(*shape: int) -> np.ndarray:
    """Small whole numbers, whose sums are exact in any order."""
    return random.integers(-3, 4, shape).astype(np.float32)


def results(text: str, inputs: list[np.ndarray], **options) -> tuple[np.ndarray, ...]:
    program = irees.compile(text, opt_level=1, **options)
    found = program(*(x.copy() for x in inputs))
    return found if isinstance(found, tuple) else (found,)


def agree(text: str, *inputs: np.ndarray, **options) -> None:
    expected = results(text, list(inputs), target="reference")
    actual = results(text, list(inputs), target=TARGET, **options)
    for a, e in zip(actual, expected, strict=True):
        np.testing.assert_array_equal(a, e)


@pytest.mark.parametrize("fp", ["default", "strict"])
@pytest.mark.parametrize(("rows", "columns"), [(64, 128), (3, 7), (1, 1), (0, 5), (300, 33)])
def test_elementwise(rows, columns, fp):
    x, y = floats(rows, columns), floats(rows, columns)
    agree(kernels.elementwise(rows, columns), x, y, fp=fp)
    agree(kernels.elementwise("?", columns), x, y, fp=fp)


@pytest.mark.parametrize("element", ["f16", "f64", "i8", "i64"])
def test_elements(element):
    dtype = {"f16": np.float16, "f64": np.float64, "i8": np.int8, "i64": np.int64}[element]
    x, y = (random.integers(-99, 99, (37, 48)).astype(dtype) for _ in range(2))
    agree(kernels.elementwise(37, 48, element), x, y)


@pytest.mark.parametrize(("rows", "columns"), [(4, 1024), (1, 5000), (3, 7), (200, 33), (5, 64)])
def test_reductions(rows, columns):
    agree(kernels.row_sums(rows, columns), whole(rows, columns))
    agree(kernels.row_sums(rows, columns), floats(rows, columns), fp="strict")
    x = random.integers(-(1 << 31), 1 << 31, (rows, columns)).astype(np.int32)
    agree(kernels.row_sums(rows, columns, "i32"), x, fp="strict")
    agree(kernels.row_sums("?", "?"), whole(rows, columns))


def test_long_reductions_run_in_slices():
    x = whole(1, 1 << 18)
    program = irees.compile(kernels.row_sums(1, 1 << 18), target=TARGET, opt_level=1)
    assert len(program.manifest["launches"]) > 1
    np.testing.assert_array_equal(program(x), x.sum(1))
    a, b, c = whole(8, 32768), whole(32768, 16), whole(16)
    text = kernels.matmul(8, 16, 32768)
    np.testing.assert_array_equal(results(text, [a, b, c], target=TARGET)[0], a @ b + c)
    without = results(text, [a, b, c], target=TARGET, disable_pass=("irees-split-reductions",))
    np.testing.assert_array_equal(without[0], a @ b + c)


def test_reductions_of_nothing():
    agree(kernels.row_sums("?", "?"), whole(0, 5))
    agree(kernels.row_sums("?", "?"), whole(5, 0))


SELECTIONS = [
    *((1, 5000, "default"), (3, 300, "strict"), (40, 64, "default"), (7, 33, "default")),
    (2, 0, "strict"),
]


@pytest.mark.parametrize(("rows", "columns", "fp"), SELECTIONS)
def test_selections(rows, columns, fp):
    """Bit for bit, NaN and ties too, by warps and by all of a workgroup."""
    x = whole(rows, columns)
    x[x == 0] = random.choice([0.0, -0.0], int((x == 0).sum()))
    least, where = np.full(rows, -np.inf, np.float32), np.full(rows, 7)
    agree(kernels.argmax(rows, columns), x, least, where, fp=fp)
    agree(kernels.argmax("?", "?"), x, least + 2, where, fp=fp)
    agree(kernels.arg_compare(rows, columns), x, -least, where.astype(np.int32), fp=fp)
    numbers = x.astype(np.int32)
    agree(kernels.argmax(rows, columns, "i32"), numbers, np.full(rows, -(1 << 31), "i4"), where)
    if columns:
        x[0, columns // 2] = np.nan
        agree(kernels.argmax(rows, columns), x, least, where, fp=fp)
        agree(kernels.argmax(rows, columns, "f16"), x.astype("f2"), least.astype("f2"), where)


def test_a_selection_is_shared():
    program = irees.compile(kernels.argmax(4, 5000), target=TARGET, opt_level=1)
    assert "= irees_shuffle_xor(" in "".join(program.sources.values())


@pytest.mark.parametrize("rows", [4096, "?"])
@pytest.mark.parametrize("columns", [64, 100, 7])
def test_column_sums(rows, columns):
    """Warps take rows of columns in turn."""
    x = whole(4096, columns)
    program = irees.compile(kernels.column_sums(rows, columns), target=TARGET, opt_level=1)
    assert all(launch["shared_bytes"] for launch in program.manifest["launches"])
    np.testing.assert_array_equal(program(x), x.sum(0))
    agree(kernels.column_sums(64, columns), floats(64, columns), fp="strict")


@pytest.mark.parametrize("element", ["f32", "f16"])
@pytest.mark.parametrize(("m", "n", "k"), [(1, 256, 512), (256, 1, 512), (1, 7, 4096)])
def test_vectors_times_matrices(m, n, k, element):
    a, b = whole(m, k), whole(k, n)
    if element == "f32":
        agree(kernels.matmul(m, n, k), a, b, np.zeros(n, np.float32))
    else:
        text = kernels.widening_matmul(m, n, k, element)
        agree(text, a.astype(np.float16), b.astype(np.float16))


SIZES = [(64, 64, 64), (1, 1, 1), (37, 41, 19), (130, 70, 33), (8, 256, 64)]


@pytest.mark.parametrize(("m", "n", "k"), SIZES)
def test_contractions(m, n, k):
    a, b, c = floats(m, k), floats(k, n), floats(n)
    agree(kernels.matmul(m, n, k), a, b, c, fp="strict")
    agree(kernels.matmul("?", "?", "?"), a, b, c, fp="strict")
    whole_ones = [random.integers(-99, 99, x.shape).astype(np.int32) for x in (a, b, c)]
    agree(kernels.matmul(m, n, k, "i32"), *whole_ones)


def test_contractions_of_nothing():
    for m, n, k in ((0, 3, 4), (4, 0, 3), (4, 5, 0)):
        agree(kernels.matmul("?", "?", "?"), whole(m, k), whole(k, n), whole(n))


MATRICES = [((37, 41, 19), "f16"), ((130, 70, 33), "bf16"), ((96, 64, 72), "f16")]


@pytest.mark.parametrize(("sizes", "element"), MATRICES)
def test_matrix_instructions(sizes, element):
    """Small whole numbers are exact in any order; strict programs keep the one of the loops."""
    m, n, k = sizes
    dtype = {"f16": np.float16, "bf16": ml_dtypes.bfloat16}[element]
    a, b = whole(m, k).astype(dtype), whole(k, n).astype(dtype)
    expected = a.astype(np.float32) @ b.astype(np.float32)
    for text in (
        kernels.widening_matmul(m, n, k, element),
        kernels.widening_matmul("?", "?", "?", element),
    ):
        program = irees.compile(text, target=TARGET, opt_level=1)
        assert "= irees_mma_" in "".join(program.sources.values())
        np.testing.assert_array_equal(program(a, b), expected)
    text = kernels.widening_matmul(m, n, k, element)
    strict = irees.compile(text, target=TARGET, fp="strict", opt_level=1)
    assert "= irees_mma_" not in "".join(strict.sources.values())
    np.testing.assert_array_equal(strict(a, b), expected)


@pytest.mark.parametrize("element", ["f16", "f32"])
def test_a_product_that_is_narrowed(element):
    """Its sums are rounded in registers: they are never in memory."""
    program = irees.compile(
        kernels.narrowed_matmul(100, 72, 40, element), target=TARGET, opt_level=1
    )
    assert "all_scratch" not in "".join(program.sources.values())
    if element == "f16":
        kernel = irees.compile(
            kernels.narrowed_matmul(100, 72, 40, element), target=TARGET, to="codegen"
        )
        # Nor in shared memory, where the last tile is cut.
        assert "xf32, #gpu.address_space<workgroup>" not in str(kernel)
    dtype = np.float16 if element == "f16" else np.float32
    a, b = whole(100, 40).astype(dtype), whole(40, 72).astype(dtype)
    expected = (a.astype(np.float32) @ b.astype(np.float32)).astype(np.float16)
    np.testing.assert_array_equal(program(a, b), expected)


def test_convolutions():
    agree(kernels.convolution(), floats(2, 5, 9, 9), floats(7, 5, 3, 3), fp="strict")
    agree(kernels.convolution(20, 16, 33), whole(2, 16, 20, 20), whole(33, 16, 3, 3))


PASSES = [
    "irees-gpu-lower-contractions",
    "irees-gpu-lower-linalg-ext",
    "irees-gpu-lower-reductions",
    "irees-gpu-lower-scatters",
    "irees-gpu-stream-k",
]


@pytest.mark.parametrize("name", PASSES)
def test_a_strategy_may_be_left_out(name):
    """The same program with and without each pass that only makes it faster."""
    x = whole(48, 512)
    for text, inputs in (
        (kernels.softmax(48, 512), [x]),
        (kernels.matmul(48, 40, 512), [x, whole(512, 40), whole(40)]),
        (kernels.sort(3, 70), [floats(3, 70), np.zeros((3, 70), np.int64)]),
        (kernels.transpose(40, 70), [floats(40, 70), floats(70, 40)]),
        (
            kernels.scatter_of([20, 3], [50], 1),
            [whole(20, 3), whole(50, 3), random.integers(-1, 21, (50, 1)).astype(np.int32)],
        ),
    ):
        with_it = results(text, inputs, target=TARGET)
        without = results(text, inputs, target=TARGET, disable_pass=(name,))
        for a, b in zip(with_it, without, strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-7)


def test_a_pass_that_every_program_needs_cannot_be_left_out():
    with pytest.raises(ArgumentError, match="unknown or mandatory pass"):
        irees.compile(
            kernels.softmax(2, 8), target=TARGET, disable_pass=("irees-gpu-form-workgroups",)
        )


BLOCKS = [
    [128, 128, 8, 8, 8], [64, 64, 4, 4, 16], [32, 64, 4, 4, 16], [16, 64, 2, 4, 32],
    [8, 64, 1, 4, 32], [128, 128, 8, 8, 8, 4], [64, 64, 4, 4, 16, 3], [8, 64, 1, 4, 32, 2],
]  # fmt: skip


@pytest.mark.parametrize("block", BLOCKS, ids=str)
def test_every_blocking_gives_the_same_bits(block, monkeypatch):
    from irees.transforms.codegen.gpu import gpu_select_strategy
    from irees.transforms.codegen.gpu.utils.blocking import Blocking

    only = (Blocking(*block),)
    monkeypatch.setattr(gpu_select_strategy, "candidates_for", lambda *_, **__: only)
    program = irees.compile(
        irees.import_mlir(kernels.matmul(150, 140, 37)), target=TARGET, opt_level=1
    )
    # Compiled from a module, so that no program of the cache is taken.
    assert program.manifest["launches"][0]["threads"] == Blocking(*block).threads
    # In the last one each thread would have too many copies to keep their addresses.
    staged = len(block) > 5 and block[0] > 8
    assert ("irees_copies_wait<" in "".join(program.sources.values())) is staged
    a, b, c = whole(150, 37), whole(37, 140), whole(140)
    np.testing.assert_array_equal(program(a, b, c), a @ b + c)


@pytest.mark.parametrize("element", ["f32", "i32"])
@pytest.mark.parametrize(("m", "n", "k"), [(128, 256, 16), (256, 256, 48), (128, 512, 32)])
def test_wide_blocks(m, n, k, element, monkeypatch):
    """Fewer steps of the reduction than stages, and more; with a bias."""
    from irees.transforms.codegen.gpu import gpu_select_strategy
    from irees.transforms.codegen.gpu.utils.blocking import WIDE_CANDIDATE

    monkeypatch.setattr(gpu_select_strategy, "candidates_for", lambda *_, **__: (WIDE_CANDIDATE,))
    program = irees.compile(
        irees.import_mlir(kernels.matmul(m, n, k, element)), target=TARGET, opt_level=1
    )
    text = "".join(program.sources.values())
    assert "irees_copies_wait<" in text
    assert "IREES_UNROLL\n" in text
    dtype = {"f32": np.float32, "i32": np.int32}[element]
    a, b, c = (whole(*size).astype(dtype) for size in ((m, k), (k, n), (n,)))
    np.testing.assert_array_equal(program(a, b, c), a @ b + c)


MATRIX_BLOCKS = [
    [256, 128, 64, 64, 32, 3], [128, 128, 64, 32, 32, 3], [128, 128, 64, 32, 32, 1],
    [64, 64, 32, 32, 32, 4], [64, 64, 32, 32, 32, 1], [32, 32, 16, 16, 32, 4],
    [64, 64, 32, 32, 16, 4], [64, 64, 32, 16, 16, 4], [128, 128, 64, 32, 16, 1],
]  # fmt: skip


@pytest.mark.parametrize("block", MATRIX_BLOCKS, ids=str)
def test_every_matrix_blocking_is_right(block, monkeypatch):
    """Both operands in either order, with and without rows and steps past the end."""
    from irees.transforms.codegen.gpu import gpu_select_strategy
    from irees.transforms.codegen.gpu.utils.blocking import MatrixBlocking

    only = (MatrixBlocking(*block),)
    monkeypatch.setattr(gpu_select_strategy, "matrix_candidates", lambda *_, **__: only)
    monkeypatch.setattr(gpu_select_strategy, "WARPGROUP_CANDIDATES", ())
    for (m, n, k), order in (
        ((256, 128, 40), "m, k; k, n"),
        ((256, 128, 200), "k, m; n, k"),
        ((136, 144, 19), "m, k; n, k"),
    ):
        a, b = whole(m, k).astype("f2"), whole(k, n).astype("f2")
        expected = a.astype("f4") @ b.astype("f4")
        left, right = order.split("; ")
        a, b = (a if left == "m, k" else a.T.copy()), (b if right == "k, n" else b.T.copy())
        # Compiled from a module, so that the cache of programs does not give that of another block.
        module = irees.import_mlir(kernels.widening_matmul(m, n, k, "f16", order))
        program = irees.compile(module, target=f"{TARGET}:sm_90", opt_level=1)
        text = "".join(program.sources.values())
        assert ("irees_copies_wait<" in text) is (block[-1] > 1 and k % 8 == 0)
        np.testing.assert_array_equal(program(a, b), expected)


@pytest.mark.parametrize("arch", ["sm_75", "sm_80"])
@pytest.mark.parametrize("order", ["m, k; k, n", "m, k; n, k", "k, m; k, n", "k, m; n, k"])
@pytest.mark.parametrize(
    ("m", "n", "k"), [(37, 41, 19), (96, 64, 144), (130, 70, 64), (17, 132, 200)]
)
def test_matrices_of_bytes(m, n, k, order, arch):
    """Sums of i32 are exact, so that strict programs have them too."""
    a, b = (random.integers(-128, 128, s).astype(np.int8) for s in ((m, k), (k, n)))
    expected = a.astype(np.int32) @ b.astype(np.int32)
    text = kernels.widening_matmul(m, n, k, "i8", order)
    target = f"cuda-emulated:{arch}"
    program = irees.compile(text, target=target, fp="strict", opt_level=1)
    assert "= irees_mma_i8(" in "".join(program.sources.values())
    left = a if order.startswith("m, k") else a.T.copy()
    right = b if order.endswith("k, n") else b.T.copy()
    np.testing.assert_array_equal(program(left, right), expected)


@pytest.mark.parametrize("order", ["m, k; k, n", "m, k; n, k", "k, m; k, n", "k, m; n, k"])
def test_blocks_of_single_bytes(order, monkeypatch):
    """No two bytes are loaded together: the block has less depth, and warps of fewer columns."""
    from irees.transforms.codegen.gpu import gpu_select_strategy
    from irees.transforms.codegen.gpu.utils.blocking import MatrixBlocking

    wide = (MatrixBlocking(64, 64, 32, 32, 64, 4),)
    monkeypatch.setattr(gpu_select_strategy, "matrix_candidates", lambda *_, **__: wide)
    a, b = (random.integers(-128, 128, s).astype(np.int8) for s in ((131, 77), (77, 69)))
    module = irees.import_mlir(kernels.widening_matmul(131, 69, 77, "i8", order))
    program = irees.compile(module, target=f"{TARGET}:sm_80", opt_level=1)
    (launch,) = program.manifest["launches"]
    assert launch["threads"] == MatrixBlocking(64, 64, 32, 16, 32, 4).threads
    left = a if order.startswith("m, k") else a.T.copy()
    right = b if order.endswith("k, n") else b.T.copy()
    expected = a.astype(np.int32) @ b.astype(np.int32)
    np.testing.assert_array_equal(program(left, right), expected)


def test_a_copy_that_nobody_waits_for(monkeypatch):
    """What is on its way has not arrived: tiles are still full of NaN."""
    monkeypatch.setitem(print_matrices.MATRICES, "nvgpu.device_async_wait", lambda p, op: None)
    module = irees.import_mlir(kernels.widening_matmul(64, 64, 128, "f16"))
    program = irees.compile(module, target=TARGET, opt_level=1)
    a, b = whole(64, 128).astype(np.float16), whole(128, 64).astype(np.float16)
    assert np.isnan(program(a, b)).any()


def test_arguments_that_are_not_aligned():
    """They are copied to where a kernel can read them 16 bytes at a time."""
    room = np.zeros(64 * 128 + 1, np.float32)
    x = room[1:].reshape(64, 128)
    assert x.ctypes.data % 16
    x[:] = whole(64, 128)
    agree(kernels.elementwise(), x, x)
    program = irees.compile(kernels.elementwise(), target=TARGET, opt_level=1)
    np.testing.assert_array_equal(program(x, x), 2 * x)


def test_an_access_that_is_not_aligned(monkeypatch):
    """A device would stop at it; here the call does, and the next one is right."""
    from irees.runtime.arguments import TensorSpec

    program = irees.compile(kernels.elementwise(), target=TARGET, opt_level=1)
    room = np.zeros(64 * 128 + 1, np.float32)
    x = room[1:].reshape(64, 128)
    function = program.functions["main"]
    monkeypatch.setattr(function, "_binders", [spec.bind for spec in function.arguments])
    assert all(isinstance(spec, TensorSpec) for spec in function.arguments)
    with pytest.raises(DeviceError, match="misaligned access"):
        program(x, x)
    np.testing.assert_array_equal(program(x.copy(), x.copy()), 2 * x)


def test_a_norm_larger_than_shared_memory():
    """One group of 262144 floats is 1 MiB: what it keeps goes to scratch memory."""
    program = irees.compile(kernels.group_norm(2, 262144), target=TARGET)
    for launch in program.manifest["launches"]:
        assert launch["shared_bytes"] <= 48 << 10
    x = floats(2, 262144)
    centred = x - x.mean(1, keepdims=True, dtype=np.float64)
    expected = centred / np.sqrt((centred**2).mean(1, keepdims=True) + 1e-5)
    np.testing.assert_allclose(program(x), expected, rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize(("rows", "size", "alone"), [(32, 262144, False), (32, 1000, True)])
def test_few_large_rows_are_no_kernel(rows, size, alone):
    """32 workgroups would leave most of a GPU idle, unless there is little to do for each."""
    module = irees.compile(kernels.group_norm(rows, size), target=TARGET, to="dispatch-creation")
    assert (sum(op.name == "flow.dispatch" for op in module.walk()) == 1) is alone


def softmax_of_products(q, k, v, mask=None) -> np.ndarray:
    q, k, v = (x.astype(np.float64) for x in (q, k, v))
    scores = q @ k.swapaxes(1, 2) / np.sqrt(q.shape[-1])
    if mask is not None:
        scores += np.where(mask, 0, -np.inf) if mask.dtype == bool else mask
    with np.errstate(invalid="ignore"):
        powers = np.exp(scores - scores.max(-1, keepdims=True))
    return (powers / powers.sum(-1, keepdims=True)) @ v


ATTENTIONS = [
    ((2, 64, 128, 64), "f32", None), ((2, 70, 100, 16), "f32", "f32"), ((1, 9, 30, 8), "f32", None),
    ((1, 128, 192, 64), "f16", None), ((2, 33, 80, 32), "bf16", "i1"), ((2, 70, 100, 24), "f16", None),
    ((1, 100, 100, 128), "f16", "f32"),
]  # fmt: skip


@pytest.mark.parametrize(("sizes", "element", "mask"), ATTENTIONS, ids=str)
def test_attention_without_scores_in_memory(sizes, element, mask, monkeypatch):
    """One kernel; rows of which all or the first scores are masked are as they should be."""
    monkeypatch.setitem(GPUS, "sm_80", dataclasses.replace(GPUS["sm_80"], l2_bytes=256))
    batch, m, keys, features = sizes
    dtype = {"f32": np.float32, "f16": np.float16, "bf16": ml_dtypes.bfloat16}[element]
    arguments = [floats(batch, n, features).astype(dtype) for n in (m, keys, keys)]
    if mask:
        hidden = random.random((batch, m, keys)) < 0.3
        hidden[0, 0], hidden[0, 1, :70] = True, True
        shown = ~hidden if mask == "i1" else np.where(hidden, -np.inf, floats(*hidden.shape))
        arguments.append(shown if mask == "i1" else shown.astype(np.float32))
    # What is written out in registers takes a C compiler long to improve.
    level = 1 if element == "f32" else 0
    text = kernels.attention(*sizes, element, mask)
    program = irees.compile(text, target=TARGET, opt_level=level)
    assert len(program.manifest["launches"]) == 1
    text = "".join(program.sources.values())
    assert ("= irees_mma_" in text) is (element != "f32")
    # In registers where rows are whole instructions, and copied while others are in use.
    assert ("irees_copies_wait<" in text) is (element != "f32" and features % 16 == 0)
    tolerance = {"f32": 1e-5, "f16": 2e-3, "bf16": 2e-2}[element]
    expected = softmax_of_products(*arguments)
    found = program(*arguments).astype(np.float64)
    np.testing.assert_allclose(found, expected, rtol=tolerance, atol=tolerance)


def test_attention_with_a_negative_scale(monkeypatch):
    """The greatest score is that of the least product, for which powers must not overflow."""
    monkeypatch.setitem(GPUS, "sm_80", dataclasses.replace(GPUS["sm_80"], l2_bytes=256))
    text = kernels.attention(1, 16, 64, 16, "f16").replace("constant 0.25", "constant -8.0")
    assert "constant -8.0" in text
    q, k, v = (floats(1, n, 16).astype(np.float16) for n in (16, 64, 64))
    program = irees.compile(text, target=TARGET, opt_level=0)
    expected = softmax_of_products(q * np.float16(-32), k, v)
    found = program(q, k, v)
    np.testing.assert_allclose(found, expected, rtol=2e-2, atol=2e-2)


def test_small_and_strict_attentions_keep_their_scores():
    q = floats(1, 8, 8)
    for fp in ("default", "strict"):
        text = kernels.attention(1, 8, 8, 8)
        program = irees.compile(text, target=TARGET, fp=fp, opt_level=1)
        assert len(program.manifest["launches"]) > 1
        expected = softmax_of_products(q, q, q)
        np.testing.assert_allclose(program(q, q, q), expected, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize(("rows", "columns"), [(64, 64), (37, 70), (1, 9), (5, 0)])
def test_transposes(rows, columns):
    x, y = floats(rows, columns), floats(columns, rows)
    agree(kernels.transpose(rows, columns), x, y)
    agree(kernels.transpose("?", "?"), x, y)


def test_sorts_and_scatters():
    for size in (0, 1, 2, 33, 100, 1025):
        x = random.choice([-0.0, 0.0, 1.0, np.nan, -np.inf, 7.0], (2, size)).astype(np.float32)
        numbers = np.broadcast_to(np.arange(size), (2, size)).astype(np.int64)
        agree(kernels.sort(2, size), x, numbers)
    where = np.array([[1], [7], [1], [-1], [3], [1000]], np.int32)
    agree(kernels.scatter(8, 6), whole(8, 6), whole(6, 6), where)


@pytest.mark.parametrize(("rows", "columns"), [(1, 1 << 15), (2, 12000), (1, 5000), (1, 4099)])
def test_sorts_of_long_rows(rows, columns):
    """By many workgroups, stable, with NaN last; by one where its registers are enough."""
    x = random.choice([-0.0, 0.0, 1.0, np.nan, -np.inf, 7.0], (rows, columns)).astype(np.float32)
    numbers = np.broadcast_to(np.arange(columns), (rows, columns)).astype(np.int64).copy()
    program = irees.compile(kernels.sort(rows, columns), target=TARGET, opt_level=1)
    values, where = program(x, numbers)
    expected = np.argsort(x, axis=1, kind="stable")
    np.testing.assert_array_equal(where, expected)
    np.testing.assert_array_equal(
        values.view(np.int32), np.take_along_axis(x, expected, 1).view(np.int32)
    )
    assert (len(program.manifest["launches"]) > 1) is (columns > 8192)


@pytest.mark.parametrize(
    ("rows", "columns", "k"), [(2, 65536, 10), (1, 40000, 300), (1, 9000, 5000)]
)
def test_topk_of_long_rows(rows, columns, k):
    x = whole(rows, columns)
    values, where = irees.compile(kernels.topk(rows, columns, k), target=TARGET, opt_level=1)(x)
    expected = np.argsort(-x, axis=1, kind="stable")[:, :k]
    np.testing.assert_array_equal(where, expected)
    np.testing.assert_array_equal(values, np.take_along_axis(x, expected, 1))


@pytest.mark.parametrize(("columns", "k"), [(1000, 1), (1000, 5), (4096, 64), (129, 32), (33, 9)])
def test_topk_of_a_workgroup(columns, k):
    """In the order of the values, NaN first, then of the places; also of rows cut anywhere."""
    x = random.choice([-0.0, 0.0, 1.0, np.nan, -np.inf, 7.0], (3, columns)).astype(np.float32)
    agree(kernels.topk(3, columns, k), x)
    agree(kernels.topk(3, columns, k), floats(3, columns))


def test_any_order_of_threads_gives_the_same(monkeypatch):
    """Blocks and threads take turns in an order that a seed decides: nothing may depend on it."""
    text = kernels.softmax(17, 200)
    program = irees.compile(text, target=TARGET, opt_level=1)
    x = floats(17, 200)
    expected = program(x)
    order = program.library.cdll.irees_emulation_order
    try:
        for seed in (1, 2, 3):
            order(seed)
            np.testing.assert_array_equal(program(x), expected)
    finally:
        order(0)


def test_a_barrier_that_not_all_threads_reach(monkeypatch):
    """It is a typed error, and what was left waiting does not spoil the next call."""
    text, x = kernels.row_sums(1, 3000), whole(1, 3000)
    once = (
        "{ static int missed = 0; if (!missed && !threadIdx.x) missed = 1; else __syncthreads(); }"
    )
    lines = [once]

    def barrier(p, op):
        p.waits = True
        p.line(lines.pop() if lines else "__syncthreads();")

    monkeypatch.setitem(print_forall.KERNEL, "gpu.barrier", barrier)
    # Compiled from a module, so that the cache of programs does not keep it.
    program = irees.compile(irees.import_mlir(text), target=TARGET)
    with pytest.raises(DeviceError, match="different barriers"):
        program(x)
    np.testing.assert_array_equal(program(x), x.sum(1))


# Shrinking would compile for minutes.
@settings(max_examples=5 * FACTOR, phases=(Phase.explicit, Phase.reuse, Phase.generate))
@given(programs=modules(*((1, 6) if FACTOR == 1 else (17, 17)), ops=tuple(BUILDERS)))
def test_random_programs_are_exact(programs):
    found = pipeline_agrees(programs, phases=False, target=TARGET, fp="strict", opt_level=1)
    assert not found, report(programs, found)


@settings(max_examples=3 * FACTOR, phases=(Phase.explicit, Phase.reuse, Phase.generate))
@given(programs=modules(*((1, 6) if FACTOR == 1 else (17, 17)), ops=tuple(BUILDERS)))
def test_random_programs_are_right(programs):
    found = pipeline_agrees(programs, phases=False, target=TARGET, opt_level=1)
    assert not found, report(programs, found)


@settings(max_examples=15 * FACTOR)
@given(programs=modules(min_size=1, max_size=1, ops=tuple(BUILDERS)))
def test_every_phase_keeps_the_meaning(programs):
    """Without the passes after which threads take turns, which only the emulation can run."""
    without = (
        *("irees-gpu-lower-contractions", "irees-gpu-lower-warpgroup-contractions"),
        "irees-gpu-lower-reductions",
        *("irees-gpu-lower-linalg-ext", "irees-gpu-lower-sorts"),
        *("irees-gpu-lower-scans", "irees-gpu-lower-scatters"),
    )
    found = pipeline_agrees(programs, compiled=False, target=TARGET, disable_pass=without)
    assert not found, report(programs, found)


@pytest.mark.parametrize("bad", [5, -1, 1 << 40, -(1 << 60)])
def test_a_call_that_traps_has_no_results(bad):
    """Its memory is given back once, and the next call is right."""
    program = irees.compile(kernels.embedding(8, 5, 8), target="cuda-emulated:sm_80")
    table, rows = np.arange(40, dtype=np.float32).reshape(5, 8), np.arange(8) % 5
    wrong = rows.copy()
    wrong[3] = bad
    for _ in range(3):
        with pytest.raises(RuntimeTrap, match="index must be"):
            program(wrong, table)
        np.testing.assert_array_equal(program(rows, table), table[rows])


def test_the_host_reads_nothing_of_a_kernel_that_trapped():
    """A loop whose end depends on it would have none."""
    program = irees.compile(kernels.checked_steps(), target="cuda-emulated:sm_80")
    for _ in range(2):
        assert program(np.array([3])) == [10]
        with pytest.raises(RuntimeTrap, match="a step must not be negative"):
            program(np.array([-5]))
