"""Calls of a program: what is accepted, what is refused and with which words, and what comes back."""

from __future__ import annotations

import gc
import os
import sys
import threading
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).parent))
import native_program
from native_program import CONSTANTS, COPIES, MANIFEST, code, program

from irees.backends.common.toolchain import runtime_library
from irees.errors import (
    ArgumentError,
    OutOfMemoryError,
    ParseError,
    RuntimeTrap,
    ToolchainError,
    UnsupportedError,
)
from irees.runtime.dtypes import numpy_dtype, torch_dtype
from irees.runtime.program import Code, Program
from irees.runtime.services import load_services, num_threads, set_num_threads

ONES = np.ones((4, 8), np.float32)


def add(*arguments):
    return program().functions["add"](*arguments)


@pytest.fixture
def threads():
    before = num_threads()
    yield set_num_threads
    set_num_threads(before)


def misaligned(array):
    room = np.empty(array.nbytes + 1, np.uint8)[1:]
    room[:] = np.frombuffer(array.tobytes(), np.uint8)
    return room.view(array.dtype).reshape(array.shape)


READ_ONLY = np.broadcast_to(np.float32(1), (4, 8))


@pytest.mark.parametrize(
    "array",
    [
        ONES,
        np.asfortranarray(ONES),
        np.ones((8, 16), np.float32)[::2, ::2],
        np.ones((4, 8), np.float32)[::-1, ::-1],
        READ_ONLY,
        ONES.astype(">f4"),
        misaligned(ONES),
        ONES[:0],
        ONES.view(np.matrix),
    ],
    ids="dense fortran strided negative broadcast big-endian misaligned empty subclass".split(),
)
def test_any_layout(array):
    before = array.copy()
    result = add(array, array)
    np.testing.assert_array_equal(result, np.asarray(before) * 2)
    np.testing.assert_array_equal(array, before)
    assert result.flags.carray
    assert type(result) is np.ndarray


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((ONES,), "add takes 2 arguments, but 1 given"),
        ((ONES, ONES, ONES), "add takes 2 arguments, but 3 given"),
        (
            (np.ones((3, 8), np.float32), ONES[:1]),
            "argument 1 dim 0 is 1, but must equal dim 0 of argument 0 = 3 "
            "(from linalg.generic at x.mlir:5:8)",
        ),
        ((ONES, ONES.astype("f8")), "argument 1 has dtype float64, but must have float32"),
        ((ONES, ONES.astype("i4")), "argument 1 has dtype int32, but must have float32"),
        ((ONES, ONES.astype(object)), "argument 1 has dtype object"),
        ((ONES, ONES.T), "argument 1 dim 1 is 4, but must be 8 (tensor<?x8xf32>)"),
        ((ONES, ONES[0]), "argument 1 has rank 1, but must have rank 2"),
        ((ONES, [[1.0] * 8] * 4), "argument 1 is a list, but must be an array"),
        ((ONES, None), "argument 1 is a NoneType"),
        ((ONES, np.ma.masked_array(ONES)), "argument 1 is a masked array"),
        ((ONES, "text"), "argument 1 is a str"),
    ],
)
def test_what_does_not_fit_is_refused(arguments, message):
    with pytest.raises(ArgumentError) as info:
        add(*arguments)
    assert message in str(info.value)
    assert isinstance(info.value, TypeError)
    assert isinstance(info.value, ValueError)


@pytest.mark.parametrize("dtype", COPIES)
def test_every_dtype_in_numpy_and_torch(dtype):
    torch = pytest.importorskip("torch")
    copy = program().functions[f"copy_{dtype}"]
    array = np.arange(12).reshape(2, 2, 3).astype(numpy_dtype(dtype))
    result = copy(array)
    assert result.dtype == array.dtype
    assert result.tobytes() == array.tobytes()
    tensor = torch.arange(12).reshape(2, 2, 3).to(torch_dtype(array.dtype))
    result = copy(tensor)
    assert result.dtype == tensor.dtype
    assert torch.equal(result.float(), tensor.float())


def test_torch_in_every_state():
    torch = pytest.importorskip("torch")
    tensor = torch.ones(4, 8, requires_grad=True)
    result = add(tensor, ONES)
    assert isinstance(result, torch.Tensor)
    assert torch.equal(result, torch.full((4, 8), 2.0))
    assert torch.equal(add(torch.ones(8, 4).t(), tensor), result)
    assert add(torch.ones(0, 8), torch.ones(0, 8)).shape == (0, 8)
    for wrong in (
        torch.ones(4, 8).double(),
        torch.ones(4, 8).to_sparse(),
        torch.ones(4, 8, device="meta"),
    ):
        with pytest.raises(ArgumentError):
            add(tensor, wrong)


def test_saved_bfloat16_and_unsigned_integers():
    copy = program().functions
    array = np.ones((1, 2, 3), ml_dtypes.bfloat16)
    assert copy["copy_bf16"](array.view("V2")).tobytes() == array.tobytes()
    assert copy["copy_i8"](np.full((1, 2, 3), 200, np.uint8)).dtype == np.int8


def test_array_protocols():
    class Foreign:
        def __array__(self, dtype=None, copy=None):
            return ONES

    class Exchanged:
        __dlpack__ = ONES.__dlpack__
        __dlpack_device__ = ONES.__dlpack_device__

    class OnGpu:
        __cuda_array_interface__ = {}

    assert add(Foreign(), Exchanged()).sum() == 64
    with pytest.raises(ArgumentError, match="is on a GPU"):
        add(ONES, OnGpu())


def test_scalars():
    scalars = program().functions["scalars"]
    assert scalars(1.5, 3, True) == (2.5, 6, False)
    assert scalars(np.float32(1.5), np.int64(3), np.bool_(False)) == (2.5, 6, True)
    assert scalars(np.array(1.5), np.array([3]), 0) == (2.5, 6, True)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("1", 3, True), "argument 0 is a str, but must be one f32"),
        ((1.0, 2.5, True), "argument 1 is 2.5, but must be i64"),
        ((1.0, 1 << 63, True), "does not fit in i64"),
        ((1e300, 1, True), "does not fit in f32"),
        ((ONES, 1, True), "argument 0 is a ndarray"),
    ],
)
def test_scalars_that_do_not_fit(arguments, message):
    with pytest.raises(ArgumentError, match=message):
        program().functions["scalars"](*arguments)


def test_trap_has_message_place_and_op():
    with pytest.raises(RuntimeTrap) as info:
        program().functions["stop"](np.zeros(4, np.float32))
    assert str(info.value) == "a.mlir:3:4: error: cf.assert: index 7 is outside 0..4"


def test_out_of_memory_is_an_error_and_not_the_end():
    with pytest.raises(OutOfMemoryError):
        program().functions["too_much"]()
    with pytest.raises(MemoryError):
        program().functions["count"](10, 1 << 60)
    assert add(ONES, ONES).sum() == 64


def test_results_own_their_memory():
    results = [add(ONES * i, ONES) for i in range(200)]
    del results[::2]
    gc.collect()
    more = [add(ONES * 1000, ONES) for _ in range(100)]
    assert all((array == 2 * k + 2).all() for k, array in enumerate(results))
    assert all((array == 1001).all() for array in more)


def test_result_outlives_the_program():
    mine = Program(code(), MANIFEST, CONSTANTS)
    result = mine.functions["add"](ONES, ONES)
    del mine
    gc.collect()
    assert result.sum() == 64


def test_thread_counts_agree(threads):
    count = program().functions["count"]
    for number in (1, 2, 3, 7):
        threads(number)
        assert num_threads() == number
        for size in (0, 1, 2, 3, 100, 1001):
            np.testing.assert_array_equal(count(size, 4096), np.arange(size))


@pytest.mark.parametrize("count", [0, -1, 1025, "2", 1.5, True, None])
def test_bad_thread_counts(count):
    with pytest.raises(ArgumentError):
        set_num_threads(count)


def test_concurrent_calls(threads):
    threads(2)
    wrong = []

    def work(seed):
        mine = np.full((64, 8), seed, np.float32)
        for i in range(300):
            if not (add(mine, mine) == 2 * seed).all():
                wrong.append(seed)
            if not (program().functions["count"](17 + i, 100 * seed)[-1] == 16 + i):
                wrong.append(seed)

    callers = [threading.Thread(target=work, args=(seed,)) for seed in range(8)]
    for caller in callers:
        caller.start()
    for caller in callers:
        caller.join()
    assert not wrong


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_fork_after_use(threads):
    threads(2)
    assert program().functions["count"](1000, 64).sum() == 499500
    child = os.fork()
    if child == 0:
        good = program().functions["count"](1000, 64).sum() == 499500
        os._exit(0 if good and add(ONES, ONES).sum() == 64 else 1)
    assert os.waitpid(child, 0)[1] == 0
    assert program().functions["count"](1000, 64).sum() == 499500


def test_constants_are_aligned():
    assert all(data.ctypes.data % 64 == 0 for data in program().constants.values())


@pytest.mark.parametrize(("size", "alignment"), [(1000, 64), (1 << 13, 4096), (1 << 20, 4096)])
def test_large_results_begin_with_a_page(size, alignment):
    """So that no load of an array beside it waits for stores that are a whole page away."""
    results = [program().functions["count"](size, 64) for _ in range(3)]
    assert [result.ctypes.data % alignment for result in results] == [0, 0, 0]
    assert [len(result) for result in results] == [size] * 3


def test_calling_without_a_main():
    with pytest.raises(ArgumentError, match="no single function"):
        program()()


def test_missing_constant_symbol_and_features():
    with pytest.raises(ArgumentError, match="the constant 'size2' is missing"):
        Program(code(), MANIFEST, {})
    entry = {"functions": [native_program.function("f", 99, [], [])]}
    with pytest.raises(ToolchainError, match="no symbol irees_entry_99"):
        Program(code(), entry, {})
    for target in ({"features": ["avx4096"]}, {"machine": "vax"}):
        with pytest.raises(UnsupportedError, match="compiled for a processor with"):
            Program(code(), {**MANIFEST, "target": target}, CONSTANTS)


@pytest.mark.parametrize("image", [b"", b"\x7fELF", b"x" * 5000])
def test_a_library_that_is_none(image):
    with pytest.raises(ToolchainError):
        Program(Code(image, runtime_library()), MANIFEST, CONSTANTS)


@pytest.mark.parametrize(
    "wrong",
    [
        {"functions": 3},
        {"functions": [3]},
        {"functions": [{}]},
        {"functions": [{"name": "f", "entry": -1}]},
        {"functions": [{"name": "f", "entry": 0, "args": [{"kind": "x", "dtype": "f32"}]}]},
        {"functions": [{"name": "f", "entry": 0, "args": [native_program.tensor("f32", -1)]}]},
        {"functions": [{"name": "f", "entry": 0, "args": [native_program.tensor("f32", 1 << 64)]}]},
        {"functions": [{"name": "f", "entry": 0, "equal_dims": [{"a": [0, 0], "b": [1, 0]}]}]},
        {"functions": [{"name": "f", "entry": 0}] * 2},
        {"functions": [], "target": 1},
    ],
)
def test_bad_manifests(wrong):
    with pytest.raises(ParseError):
        Program(code(), wrong, {})


def test_memory_analysis_and_explain():
    assert program().memory_analysis() == {"constant_bytes": 32, "arena_bytes": 0}
    assert program().explain().splitlines()[-1] == "remarks: none"


def test_kept_blocks_are_given_back():
    services = load_services(runtime_library())
    for _ in range(3):
        program().functions["count"](1 << 20, 0)
    services.trim()
    assert program().functions["count"](1 << 20, 0)[-1] == (1 << 20) - 1
