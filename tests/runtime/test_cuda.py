"""
The CUDA runtime without a device: a CuPy whose memory is the host's and whose kernels are emulated.

What needs real hardware is marked `cuda`.
"""

from __future__ import annotations

import ctypes
import sys
import threading
from dataclasses import replace
from pathlib import Path
from types import ModuleType, SimpleNamespace

import ml_dtypes
import numpy as np
import pytest

import irees
from irees.backends.cuda.toolchain import find_nvrtc
from irees.errors import (
    ArgumentError,
    DeviceError,
    OutOfMemoryError,
    RuntimeTrap,
    ToolchainError,
)
from irees.runtime import graphs, tensor_maps
from irees.runtime.tensor_maps import TensorStruct
from irees.target import GPUS, device_arch

sys.path.insert(0, str(Path(__file__).parent))
sys.path.insert(0, str(Path(__file__).parents[1] / "backends" / "cuda"))
import kernels
from cuda_stand_in import (
    CHECKED,
    HALVES,
    ROWS,
    TWICE,
    WEIGHTED,
    Array,
    Memory,
    on_device,
    program_for,
)


@pytest.fixture(autouse=True)
def nvrtc() -> None:
    try:
        find_nvrtc()
    except ToolchainError as error:
        pytest.skip(f"{error}; extra `test` has it")


def test_arrays_go_in_and_out(monkeypatch):
    program = program_for(monkeypatch, ROWS)
    x = np.random.default_rng(0).integers(-3, 4, (5, 40)).astype(np.float32)
    sums, first = program(x, 2.0)
    assert isinstance(sums, np.ndarray)
    np.testing.assert_array_equal(sums, 2 * x.sum(1))
    assert first == sums[0]
    before = Memory.live
    for _ in range(3):
        program(x, 2.0)
    assert Memory.live == before
    there = Array.of(x)
    sums, _ = program(there, 2.0)
    assert isinstance(sums, Array)
    np.testing.assert_array_equal(sums.get(), 2 * x.sum(1))


def test_torch_tensors(monkeypatch):
    torch = pytest.importorskip("torch", reason="extra `torch`")
    program = program_for(monkeypatch, ROWS)
    sums, _ = program(torch.ones(3, 40), 1.0)
    assert isinstance(sums, torch.Tensor)
    assert sums.tolist() == [40.0] * 3


def test_tensors_of_a_device(monkeypatch):
    """Those too whose type CuPy does not know."""
    torch = pytest.importorskip("torch", reason="extra `torch`")

    on_device(monkeypatch, torch, stream=7)
    program = program_for(monkeypatch, WEIGHTED.replace("f32", "bf16"))
    x = torch.ones(4, dtype=torch.bfloat16)
    result = program(x)
    assert result.dtype is torch.bfloat16
    assert result.tolist() == [1, 2, 3, 4]
    apart = torch.tensor([[1, 2], [1, 2], [1, 2], [1, 2]], dtype=torch.bfloat16)[:, 1]
    assert program(apart).tolist() == [2, 4, 6, 8]
    assert program(torch.ones(5, dtype=torch.bfloat16)[1:]).tolist() == [1, 2, 3, 4]
    with pytest.raises(ArgumentError, match=r"has dtype torch.float32, but must have bfloat16"):
        program(torch.ones(4))
    with pytest.raises(ArgumentError, match="dim 0 is 5, but must be 4"):
        program(torch.ones(5, dtype=torch.bfloat16))
    with pytest.raises(ArgumentError, match="a tensor of zeros without storage"):
        program(torch._efficientzerotensor(4, dtype=torch.bfloat16))
    monkeypatch.setattr(torch.Tensor, "get_device", lambda self: 1)
    with pytest.raises(ArgumentError, match=r"but the program runs on cuda:0.*\.to\('cuda:0'\)"):
        program(x)


def test_torch_may_be_imported_later_and_lack_types(monkeypatch):
    torch = pytest.importorskip("torch", reason="extra `torch`")
    program = program_for(monkeypatch, WEIGHTED.replace("f32", "f8E3M4"))
    x = np.ones(4, ml_dtypes.float8_e3m4)
    np.testing.assert_array_equal(program(x).astype(np.float32), [1, 2, 3, 4])
    with monkeypatch.context() as before:
        before.delitem(sys.modules, "torch")
        program = program_for(monkeypatch, WEIGHTED)
    on_device(monkeypatch, torch, stream=7)
    assert program(torch.ones(4)).tolist() == [1, 2, 3, 4]


def test_arrays_of_two_streams(monkeypatch):
    """A call on PyTorch's stream waits for what made arrays of CuPy, and is waited for."""
    torch = pytest.importorskip("torch", reason="extra `torch`")
    program = program_for(monkeypatch, TWICE)
    cupy = sys.modules["cupy"]
    on_device(monkeypatch, torch, stream=70)
    y = Array.of(np.eye(64, dtype=np.float32))
    current, block = cupy.cuda.get_current_stream().ptr, y.data.ptr
    Memory.blocks[block], cupy.device.used[block] = 64 * 64 * 4, current
    assert program(torch.ones(64, 64), y)[1].tolist() == [64.0] * 64
    assert {*cupy.device.work} == {70}
    assert cupy.device.do(lambda: 0, current, (block,)) == 0
    assert not cupy.device.crossed


def test_pinned_memory_is_the_callers_again_after_a_call(monkeypatch):
    torch = pytest.importorskip("torch", reason="extra `torch`")
    program = program_for(monkeypatch, TWICE)
    monkeypatch.setattr(torch, "from_dlpack", lambda array: torch.from_numpy(array.get()))
    device, there = sys.modules["cupy"].device, Array.of(np.eye(64, dtype=np.float32))
    for pinned in (False, True):
        monkeypatch.setattr(torch.Tensor, "is_pinned", lambda self, pinned=pinned: pinned)
        device.waits = 0
        program(torch.ones(64, 64), there)
        assert device.waits == pinned


def test_memory_of_torch_that_does_not_suffice(monkeypatch):
    torch = pytest.importorskip("torch", reason="extra `torch`")
    program = program_for(monkeypatch, WEIGHTED)
    on_device(monkeypatch, torch, stream=7)

    def clone(self, memory_format=None):
        raise torch.OutOfMemoryError("CUDA out of memory")

    monkeypatch.setattr(torch.Tensor, "clone", clone)
    with pytest.raises(OutOfMemoryError, match="not enough memory: CUDA out of memory"):
        program(torch.ones(4, 2)[:, 1])


def test_the_stream_of_torch(monkeypatch, recorded):
    """Work on tensors of torch is done on the stream that torch is on, graphs too."""
    torch = pytest.importorskip("torch", reason="extra `torch`")
    program = program_for(monkeypatch, WEIGHTED)
    device = sys.modules["cupy"].device
    program(Array.of(np.ones(4, np.float32)))
    assert {*device.work} == {sys.modules["cupy"].cuda.get_current_stream().ptr}
    device.wait(device.work[0])
    x = torch.ones(4)
    for stream in (70, 71):
        on_device(monkeypatch, torch, stream)
        for _ in range(4):
            device.work.clear()
            assert program(x).tolist() == [1, 2, 3, 4]
            assert {*device.work} == {stream}
        device.wait(stream)
    assert sys.modules["cupy"].graphs == 6
    assert not device.crossed


def test_calls_at_the_same_time(monkeypatch):
    """The first calls of several threads load the program once, and each has its own stream."""
    program = program_for(monkeypatch, WEIGHTED)
    cupy, found = sys.modules["cupy"], []
    arrays = [Array.of(np.full(4, n, np.float32)) for n in range(4)]

    def call(x) -> None:
        found.append((x.get() * [1, 2, 3, 4], program(x).get()))

    threads = [threading.Thread(target=call, args=(x,)) for x in arrays]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 4
    for expected, result in found:
        np.testing.assert_array_equal(result, expected)
    assert cupy.modules.loaded == 1


def test_a_load_that_failed_leaves_nothing(monkeypatch):
    program = program_for(monkeypatch, TWICE)
    cupy = sys.modules["cupy"]
    get, calls = cupy.modules.get_function, []

    def failing(self, name):
        calls.append(name)
        if len(calls) == 2:
            raise RuntimeError("CUDA_ERROR_NOT_FOUND")
        return get(self, name)

    monkeypatch.setattr(cupy.modules, "get_function", failing)
    x = np.eye(64, dtype=np.float32)
    with pytest.raises(DeviceError, match="CUDA_ERROR_NOT_FOUND"):
        program(x, x)
    for _ in range(2):
        np.testing.assert_array_equal(program(x, x)[0], x)
    assert len(calls) == 2 + len(program.manifest["launches"])


def test_a_call_has_one_trap_word(monkeypatch, recorded):
    """It is waited for once, when all kernels are launched; by graphs too, each call anew."""
    program = program_for(monkeypatch, CHECKED)
    device = sys.modules["cupy"].device
    table = Array.of(np.arange(40, dtype=np.float32).reshape(5, 8))
    rows = Array.of(np.arange(8) % 5)
    wrong = {5: "index must be smaller than dim size", -1: "index must be larger or equal to 0"}
    for _ in range(2):
        for _ in range(3):
            device.waits = 0
            found, _ = program(rows, table)
            assert device.waits == 1
            np.testing.assert_array_equal(found.get(), table.get()[np.arange(8) % 5])
        for number, said in wrong.items():
            bad = np.arange(8) % 5
            bad[3] = number
            ctypes.memmove(rows.data.ptr, bad.ctypes.data, 64)
            with pytest.raises(RuntimeTrap, match=said):
                program(rows, table)
        ctypes.memmove(rows.data.ptr, (np.arange(8) % 5).ctypes.data, 64)
    assert sys.modules["cupy"].graphs == 9
    assert not device.crossed
    # A kernel that trapped may have left the size of what does not fit.
    ctypes.memmove(rows.data.ptr, bad.ctypes.data, 64)
    program = program_for(monkeypatch, CHECKED)
    monkeypatch.setattr(program.services, "invoke", then_out_of_memory(program))
    with pytest.raises(RuntimeTrap, match=said):
        program(rows, table)
    ctypes.memmove(rows.data.ptr, (np.arange(8) % 5).ctypes.data, 64)
    with pytest.raises(OutOfMemoryError, match="more than there is"):
        program(rows, table)


def then_out_of_memory(program):
    """Runs an entry whose last allocation fails."""
    invoke, device = program.services.invoke, program.device

    def run(entry, frame, results):
        assert invoke(entry, frame, results) == 0
        device._call.error = OutOfMemoryError("more than there is")
        return -1

    return run


def test_the_host_reads_nothing_of_a_kernel_that_trapped(monkeypatch):
    """A loop whose end depends on it would have none."""
    program = program_for(monkeypatch, kernels.checked_steps())
    device = sys.modules["cupy"].device
    assert program(np.array([3])) == [10]
    do, device.work = device.do, []

    def few(*work) -> int:
        assert len(device.work) < 50
        return do(*work)

    monkeypatch.setattr(device, "do", few)
    with pytest.raises(RuntimeTrap, match="a step must not be negative"):
        program(np.array([-5]))


def test_which_calls_are_recorded(monkeypatch):
    """Those of several kernels more than results, which are few bytes."""
    x = Array.of(np.eye(64, dtype=np.float32))
    program = program_for(monkeypatch, TWICE)
    program(x, x)
    launches = program.device.launched()
    for least, copied, graphs_launched in (
        (launches - 2, 1 << 20, 3),
        (launches - 1, 1 << 20, 0),
        (launches - 2, 1024, 0),
    ):
        monkeypatch.setattr(graphs, "LEAST_LAUNCHES", least)
        monkeypatch.setattr(graphs, "COPIED_BYTES", copied)
        program = program_for(monkeypatch, TWICE)
        for _ in range(4):
            np.testing.assert_array_equal(program(x, x)[0].get(), np.eye(64))
        assert sys.modules["cupy"].graphs == graphs_launched


def test_a_runtime_that_launches_no_kernels(monkeypatch):
    program = program_for(monkeypatch, WEIGHTED)
    old = SimpleNamespace(library=SimpleNamespace(cdll=SimpleNamespace()))
    with pytest.raises(
        ToolchainError, match=r"does not support GPU kernels.*load the program for a GPU"
    ):
        type(program.services).cuda_launcher(old)


def test_constants_are_put_there_once(monkeypatch):
    program = program_for(monkeypatch, WEIGHTED)
    x = np.ones(4, np.float32)
    for _ in range(3):
        np.testing.assert_array_equal(program(x), [1, 2, 3, 4])
    live = Memory.live
    for _ in range(3):
        program(x)
    assert Memory.live <= live + 1  # a graph keeps its result


def test_arguments_are_checked(monkeypatch):
    program = program_for(monkeypatch, ROWS)
    with pytest.raises(ArgumentError, match="dim 1 is 3, but must be 40"):
        program(np.zeros((2, 3), np.float32), 1.0)
    with pytest.raises(ArgumentError, match="dim 1 is 3, but must be 40"):
        program(Array.of(np.zeros((2, 3), np.float32)), 1.0)
    with pytest.raises(ArgumentError, match="has dtype float64"):
        program(Array.of(np.zeros((2, 40))), 1.0)


def test_types_that_cupy_does_not_know(monkeypatch):
    text = WEIGHTED.replace("f32", "bf16")
    program = program_for(monkeypatch, text)
    x = np.ones(4, ml_dtypes.bfloat16)
    assert program(x).dtype == x.dtype
    np.testing.assert_array_equal(program(x).astype(np.float32), [1, 2, 3, 4])


def test_errors_of_the_device(monkeypatch):
    program = program_for(monkeypatch, WEIGHTED, fail=True)
    with pytest.raises(DeviceError, match="CUDA_ERROR_ILLEGAL_ADDRESS"):
        program(np.ones(4, np.float32))
    program = program_for(monkeypatch, ROWS)
    monkeypatch.setattr(Memory, "limit", 1000)
    with pytest.raises(OutOfMemoryError, match="not enough memory: 80000 bytes"):
        program(np.ones((500, 40), np.float32), 1.0)
    there = Array((500, 40), np.float32, Array.of(np.ones(8, np.float32)).data)
    with pytest.raises(OutOfMemoryError, match="not enough memory: 2000 bytes"):
        program(there, 1.0)


def test_another_device(monkeypatch):
    program = program_for(monkeypatch, WEIGHTED, capability="75")
    with pytest.raises(DeviceError, match="compiled for sm_80, but the device is sm_75"):
        program(np.ones(4, np.float32))
    # A later device of the same generation runs the same machine code.
    program = program_for(monkeypatch, WEIGHTED, capability="86")
    np.testing.assert_array_equal(program(np.ones(4, np.float32)), [1, 2, 3, 4])


def test_the_architecture_of_a_device(monkeypatch):
    """The newest of its generation that is not newer; of another generation none runs there."""
    cupy = ModuleType("cupy")
    monkeypatch.setitem(sys.modules, "cupy", cupy)
    for capability, arch in (("75", "sm_75"), ("87", "sm_86"), ("90", "sm_90"), ("103", "sm_100")):
        device = SimpleNamespace(compute_capability=capability)
        cupy.cuda = SimpleNamespace(Device=lambda number, device=device: device)
        assert device_arch() == arch
    for capability in ("70", "110", "130"):
        device.compute_capability = capability
        with pytest.raises(DeviceError, match=f"the GPU is an sm_{capability}, but irees supports"):
            irees.compile(WEIGHTED, target="cuda")


def test_no_device(monkeypatch):
    program = irees.compile(WEIGHTED, target="cuda:sm_80")
    monkeypatch.setitem(sys.modules, "cupy", None)
    with pytest.raises(DeviceError, match=r"cupy cannot be imported.*cuda-emulated"):
        program(np.ones(4, np.float32))


def test_saved_programs_have_their_machine_code(monkeypatch, tmp_path):
    program = program_for(monkeypatch, WEIGHTED)
    program.save(tmp_path / "p.irees")
    loaded = irees.load(tmp_path / "p.irees")
    assert loaded.cubins == program.cubins
    assert loaded.sources == program.sources
    np.testing.assert_array_equal(loaded(np.ones(4, np.float32)), [1, 2, 3, 4])
    emulated = irees.compile(WEIGHTED, target="cuda-emulated")
    emulated.save(tmp_path / "e.irees")
    loaded = irees.load(tmp_path / "e.irees")
    np.testing.assert_array_equal(loaded(np.ones(4, np.float32)), [1, 2, 3, 4])


@pytest.mark.cuda
def test_on_a_device():
    pytest.importorskip("cupy", reason="extra `cuda12`")
    x = np.random.default_rng(0).integers(-3, 4, (5, 40)).astype(np.float32)
    sums, first = irees.compile(ROWS, target="cuda")(x, 2.0)
    np.testing.assert_array_equal(sums, 2 * x.sum(1))
    assert first == sums[0]


@pytest.fixture
def recorded(monkeypatch) -> None:
    """Calls of few kernels and large results are recorded as graphs too."""
    monkeypatch.setattr(graphs, "LEAST_LAUNCHES", -9)
    monkeypatch.setattr(graphs, "COPIED_BYTES", 1 << 30)


def test_calls_are_recorded(monkeypatch, recorded):
    """The third call with the same arrays launches a graph, whose results are the caller's own."""
    program = program_for(monkeypatch, TWICE)
    cupy = sys.modules["cupy"]
    random = np.random.default_rng(0)
    x, y = (Array.of(random.integers(-2, 3, (64, 64)).astype(np.float32)) for _ in range(2))
    expected = x.get() @ y.get() @ y.get()
    found = [program(x, y) for _ in range(4)]
    assert cupy.graphs == 3
    for product, sums in found:
        np.testing.assert_array_equal(product.get(), expected)
        np.testing.assert_array_equal(sums.get(), expected.sum(1))
    # What lies in the arrays may change, and so may the arrays.
    ctypes.memmove(x.data.ptr, y.data.ptr, 64 * 64 * 4)
    np.testing.assert_array_equal(program(x, y)[0].get(), y.get() @ y.get() @ y.get())
    np.testing.assert_array_equal(found[3][0].get(), expected)
    assert cupy.graphs == 4
    others = [Array.of(y.get()) for _ in range(7)]
    for other in others:
        for _ in range(2):
            np.testing.assert_array_equal(program(other, y)[0].get(), y.get() @ y.get() @ y.get())
    assert cupy.graphs == 11
    live = Memory.live
    for other in others[-4:]:
        program(other, y)
    assert Memory.live == live


def test_a_device_that_cannot_record(monkeypatch, recorded):
    program = program_for(monkeypatch, TWICE, records=False)
    x = Array.of(np.eye(64, dtype=np.float32))
    for _ in range(4):
        np.testing.assert_array_equal(program(x, x)[0].get(), np.eye(64))
    assert sys.modules["cupy"].graphs == 0


def test_counters_are_filled_once(monkeypatch, recorded):
    """Those of a stream, and those of a graph; each launch leaves them as it found them."""
    monkeypatch.setitem(GPUS, "sm_80", replace(GPUS["sm_80"], multiprocessors=4))
    text = """
func.func @main(%x: tensor<40x2048xf32>, %y: tensor<2048x64xf32>) -> tensor<40x64xf32> {
  %z = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<40x64xf32>
  %f = linalg.fill ins(%z : f32) outs(%e : tensor<40x64xf32>) -> tensor<40x64xf32>
  %p = linalg.matmul ins(%x, %y : tensor<40x2048xf32>, tensor<2048x64xf32>) outs(%f : tensor<40x64xf32>) -> tensor<40x64xf32>
  return %p : tensor<40x64xf32>
}"""
    program = program_for(monkeypatch, text, anew=True)
    cupy = sys.modules["cupy"]
    random = np.random.default_rng(0)
    x, y = random.integers(-2, 3, (40, 2048)), random.integers(-2, 3, (2048, 64))
    x, y = (Array.of(each.astype(np.float32)) for each in (x, y))
    for _ in range(4):
        np.testing.assert_array_equal(program(x, y).get(), x.get() @ y.get())
    assert cupy.graphs == 3
    assert cupy.fills == 2
    assert not cupy.device.crossed
    others = [Array.of(y.get()) for _ in range(4)]
    for other in others[:3]:
        np.testing.assert_array_equal(program(x, other).get(), x.get() @ y.get())
    assert cupy.fills == 2
    with cupy.cuda.Stream():
        np.testing.assert_array_equal(program(x, others[3]).get(), x.get() @ y.get())
    assert cupy.fills == 3
    # Earlier work on the stream of PyTorch may still use the memory that it gives.
    torch = pytest.importorskip("torch", reason="extra `torch`")
    on_device(monkeypatch, torch, stream=70)
    cupy.device.work.clear()
    x, y = (torch.from_numpy(each.get()) for each in (x, y))
    for _ in range(3):
        np.testing.assert_array_equal(program(x, y).numpy(), x.numpy() @ y.numpy())
    assert {*cupy.device.work} == {70}
    assert cupy.fills == 5


def test_what_depends_on_data_is_not_recorded(monkeypatch, recorded):
    program = program_for(monkeypatch, ROWS)
    x = Array.of(np.ones((5, 40), np.float32))
    for k in (1.0, 2.0, 3.0):
        sums, first = program(x, k)
        assert first == 40 * k
        np.testing.assert_array_equal(sums.get(), np.full(5, 40 * k, np.float32))
    assert sys.modules["cupy"].graphs == 0


def test_dispatches_of_a_device_are_timed(monkeypatch):
    program = program_for(monkeypatch, TWICE, {"time_dispatches": True})
    x = np.eye(64, dtype=np.float32)
    text = program.explain([x, x])
    assert "main_dispatch_0" in text
    times = program.tracer.measure(lambda: program(x, x))
    assert len(times.dispatches) > 1
    assert all(0 < seconds < times.call for seconds in times.dispatches.values())


def test_dispatches_of_a_device_are_traced(monkeypatch, tmp_path):
    program = program_for(monkeypatch, WEIGHTED, {"trace_dispatch_tensors": True})
    program.trace_to(tmp_path)
    x = np.ones(4, np.float32)
    program(x)
    saved = {path.name: np.load(path) for path in tmp_path.iterdir()}
    assert len(saved) == 3
    np.testing.assert_array_equal(saved["000_main_dispatch_0_outputs_0.npy"], [1, 2, 3, 4])


def halves(count: int) -> list[np.ndarray]:
    random = np.random.default_rng(0)
    shapes = [(768, 136), (136, 768)] * count
    return [random.integers(-2, 3, shape).astype(np.float16) for shape in shapes]


def test_tensor_maps_are_given_by_value(monkeypatch, recorded, tmp_path):
    """Of arrays where they are, and of those that a graph was recorded with; saved programs too."""
    program = program_for(monkeypatch, HALVES, arch="sm_90")
    assert [launch["maps"] for launch in program.manifest["launches"]] == [2]
    cupy = sys.modules["cupy"]
    a, b, c, d = halves(2)
    arrays = [[Array.of(x) for x in pair] for pair in ((a, b), (c, d))]
    for there in arrays:
        expected = there[0].get().astype(np.float32) @ there[1].get().astype(np.float32)
        for _ in range(4):
            np.testing.assert_array_equal(program(*there).get(), expected)
    # Once each: a map is kept while its array is where it was.
    assert cupy.driver.made == 2 * 2
    assert cupy.graphs == 6
    np.testing.assert_array_equal(program(a, b), a.astype(np.float32) @ b.astype(np.float32))
    program.save(tmp_path / "p.irees")
    loaded = irees.load(tmp_path / "p.irees")
    np.testing.assert_array_equal(loaded(c, d), c.astype(np.float32) @ d.astype(np.float32))


@pytest.mark.cuda
@pytest.mark.parametrize("left_out", [(), ("irees-gpu-use-bulk-copies",)])
def test_products_of_warpgroups_on_a_device(left_out):
    cupy = pytest.importorskip("cupy", reason="extra `cuda12`")
    if cupy.cuda.Device().compute_capability != "90":
        pytest.skip("the GPU has no warpgroups")
    program = irees.compile(HALVES, target="cuda", disable_pass=left_out)
    a, b = halves(1)
    for _ in range(3):
        np.testing.assert_array_equal(program(a, b), a.astype(np.float32) @ b.astype(np.float32))


def test_a_driver_that_makes_no_maps(monkeypatch):
    program = program_for(monkeypatch, HALVES, arch="sm_90", status=1)
    with pytest.raises(DeviceError, match="rejects a tensor map of 768 x 136: error 1"):
        program(*halves(1))
    program = program_for(monkeypatch, HALVES, arch="sm_90")
    del sys.modules["cupy"].driver.cuTensorMapEncodeTiled
    with pytest.raises(DeviceError, match=r"does not support tensor maps.*CUDA 12 or later"):
        program(*halves(1))
    monkeypatch.undo()
    monkeypatch.setattr(tensor_maps, "_LIBRARIES", ("libnothing.so.1",))
    tensor_maps.find_driver.cache_clear()
    with pytest.raises(DeviceError, match="driver cannot be loaded: no libnothing"):
        tensor_maps.find_driver()
    options = {"disable_pass": ("irees-gpu-use-bulk-copies",)}
    program = program_for(monkeypatch, HALVES, options, arch="sm_90", status=1)
    a, b = halves(1)
    np.testing.assert_array_equal(program(a, b), a.astype(np.float32) @ b.astype(np.float32))


def limits(**changed) -> TensorStruct:
    """A tensor of 40 x 64 halves and boxes of 8 x 64, but for what is said."""
    values = {"address": 1 << 12, "rank": 2, "element_bytes": 2, "swizzle_bytes": 128} | changed
    tensor = TensorStruct(**{k: v for k, v in values.items() if not isinstance(v, list)})
    for name, default in (("sizes", [64, 40]), ("strides", [2, 128]), ("box", [64, 8])):
        for number, value in enumerate(values.get(name, default)):
            getattr(tensor, name)[number] = value
    return tensor


LIMITS = [
    {"address": 8}, {"rank": 0}, {"rank": 6}, {"swizzle_bytes": 16}, {"swizzle_bytes": 64},
    {"sizes": [64, 1 << 32]}, {"strides": [4, 128]}, {"strides": [2, 120]},
    {"strides": [2, 1 << 40]}, {"box": [128, 8]}, {"box": [4, 8]}, {"box": [64, 257]},
    {"box": [64, 0]},
]  # fmt: skip


def test_the_emulation_has_the_limits_of_a_driver():
    emulated = irees.compile(HALVES, target="cuda-emulated:sm_90")
    encode = emulated.library.cdll.irees_emulated_tensor_map
    room = (ctypes.c_char * 192)()
    place = ctypes.addressof(room) + -ctypes.addressof(room) % 64
    call = lambda tensor, to=place: encode(ctypes.c_void_p(to), ctypes.byref(tensor))  # noqa: E731
    assert call(limits()) == 0
    assert call(limits(sizes=[64, 0])) == 0
    assert call(limits(), place + 32) == -5
    for changed in LIMITS:
        assert call(limits(**changed)) == -5, changed
