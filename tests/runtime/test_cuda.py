"""
The CUDA runtime without a device: a CuPy whose memory is the host's and whose kernels are emulated.

What needs real hardware is marked `cuda`.
"""

from __future__ import annotations

import ctypes
import re
import sys
import threading
import time
import traceback
import weakref
from dataclasses import replace
from pathlib import Path
from types import ModuleType, SimpleNamespace

import ml_dtypes
import numpy as np
import pytest

import irees
from irees.backends.common.toolchain import runtime_library
from irees.backends.cuda.toolchain import find_nvrtc
from irees.errors import (
    ArgumentError,
    DeviceError,
    OutOfMemoryError,
    RuntimeTrap,
    ToolchainError,
)
from irees.runtime import graphs, tensor_maps
from irees.runtime.services import load_services
from irees.runtime.tensor_maps import TensorStruct
from irees.target import GPUS, device_arch

sys.path.insert(0, str(Path(__file__).parents[1] / "backends" / "cuda"))
import kernels

ROWS = """
func.func @main(%x: tensor<?x40xf32>, %k: f32) -> (tensor<?xf32>, f32) {
  %z = arith.constant 0.0 : f32
  %c0 = arith.constant 0 : index
  %w = arith.constant dense<[[1.0], [2.0]]> : tensor<2x1xf32>
  %n = tensor.dim %x, %c0 : tensor<?x40xf32>
  %e = tensor.empty(%n) : tensor<?xf32>
  %f = linalg.fill ins(%z : f32) outs(%e : tensor<?xf32>) -> tensor<?xf32>
  %r = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i)>],
      iterator_types = ["parallel", "reduction"]} ins(%x : tensor<?x40xf32>) outs(%f : tensor<?xf32>) {
  ^bb0(%a: f32, %o: f32):
    %p = arith.mulf %a, %k : f32
    %s = arith.addf %o, %p : f32
    linalg.yield %s : f32
  } -> tensor<?xf32>
  %first = tensor.extract %r[%c0] : tensor<?xf32>
  return %r, %first : tensor<?xf32>, f32
}
"""

WEIGHTED = """
func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
  %w = arith.constant dense<[1.0, 2.0, 3.0, 4.0]> : tensor<4xf32>
  %e = tensor.empty() : tensor<4xf32>
  %r = linalg.mul ins(%x, %w : tensor<4xf32>, tensor<4xf32>) outs(%e : tensor<4xf32>) -> tensor<4xf32>
  return %r : tensor<4xf32>
}
"""


class Memory:
    """What `cupy.cuda.alloc` gives."""

    live = 0
    limit = 1 << 40
    blocks: dict[int, int] = {}

    ptr = 0

    def __init__(self, size: int):
        if size > Memory.limit:
            raise type("OutOfMemoryError", (Exception,), {})(f"{size} bytes")
        self.room = np.full(size + 256, 0xAB, np.uint8)
        self.ptr = self.room.ctypes.data + (-self.room.ctypes.data) % 256
        Memory.blocks[self.ptr] = size
        Memory.live += 1

    def __del__(self):
        Memory.blocks.pop(self.ptr, None)
        Memory.live -= 1

    @staticmethod
    def of(address: int) -> int | None:
        """The block of the runtime that an address is in."""
        return next((p for p, n in Memory.blocks.items() if p <= address < p + n), None)


class Array:
    """A little of `cupy.ndarray`."""

    def __init__(self, shape, dtype, memory):
        self.shape, self.dtype, self.data = tuple(shape), np.dtype(dtype), memory

    @property
    def __cuda_array_interface__(self):
        return {"shape": self.shape, "data": (self.data.ptr, False), "version": 3}

    def get(self):
        count = int(np.prod(self.shape)) * self.dtype.itemsize
        data = (ctypes.c_char * count).from_address(self.data.ptr)
        return np.frombuffer(data, self.dtype).reshape(self.shape).copy()

    @staticmethod
    def of(array):
        memory = Memory(array.nbytes)
        ctypes.memmove(memory.ptr, array.ctypes.data, array.nbytes)
        # Several streams may read it.
        del Memory.blocks[memory.ptr]
        return Array(array.shape, array.dtype, memory)


LAUNCH = ctypes.CFUNCTYPE(
    ctypes.c_int, ctypes.c_void_p, *(ctypes.c_uint,) * 7,
    ctypes.c_void_p, ctypes.POINTER(ctypes.c_void_p), ctypes.c_void_p,
)  # fmt: skip
"""cuLaunchKernel"""

ILLEGAL_ADDRESS, UNKNOWN = 700, 999


class LaunchStruct(ctypes.Structure):
    """`irees_launch` of irees.h."""

    _fields_ = [
        *((name, ctypes.c_int32) for name in ("kernel", "threads", "waits", "count")),
        ("blocks", ctypes.c_int64), ("shared_bytes", ctypes.c_int64), ("arguments", ctypes.c_void_p),
    ]  # fmt: skip


class Device:
    """
    Does work at once, or records it for the graph of a stream, and knows on which stream memory of
    the runtime was used last: `crossed` has what two streams used with no wait between.
    """

    def __init__(self):
        self.recording: dict[int, list] = {}
        self.used: dict[int, int] = {}
        self.crossed: list[tuple[int, int]] = []
        self.work: list[int] = []
        """The stream of each piece of work."""
        self.waits = 0

    def do(self, work, stream: int, addresses=()) -> int:
        if stream in self.recording:
            self.recording[stream].append((work, addresses))
            return 0
        self.work.append(stream)
        for block in filter(None, map(Memory.of, addresses)):
            if self.used.setdefault(block, stream) != stream:
                self.crossed.append((self.used[block], stream))
        return work() or 0

    def follow(self, stream: int, other: int) -> None:
        """A stream waits for what was put on another one."""
        self.used = {b: stream if on == other else on for b, on in self.used.items()}

    def wait(self, stream: int) -> None:
        assert stream not in self.recording
        self.waits += 1
        self.used = {block: on for block, on in self.used.items() if on != stream}


def fake_cupy(emulated, *, capability="80", fail=False, records=True) -> ModuleType:
    """A CuPy whose device is the emulation of a program."""
    device = Device()

    class Graph:
        def __init__(self, work):
            self.work = work
            self.graphExec = id(self)
            made[self.graphExec] = self

    def launch(graph, stream):
        cupy.graphs += 1
        for work, addresses in made[graph].work:
            assert device.do(work, stream, addresses) == 0

    made = weakref.WeakValueDictionary()

    class Stream:
        made = 0

        def __init__(self, non_blocking=False):
            Stream.made += 1
            self.ptr = Stream.made

        def __enter__(self):
            streams.append(self)
            return self

        def __exit__(self, *_):
            assert streams.pop() is self

        def begin_capture(self):
            if not records:
                raise RuntimeError("cudaErrorStreamCaptureUnsupported")
            device.recording[self.ptr] = []

        def end_capture(self):
            return Graph(device.recording.pop(self.ptr))

        def synchronize(self):
            device.wait(self.ptr)

    class Event:
        def __init__(self, disable_timing=False):
            self.ptr = id(self)
            made[self.ptr] = self

        def synchronize(self):
            pass

    def record(event, stream):
        made[event].time, made[event].stream = time.perf_counter(), stream

    def allocate(size):
        memory = Memory(size)
        # What was there before may still be used on the stream that it was freed on.
        device.used[memory.ptr] = streams[-1].ptr
        return memory

    def copy(to, source, n, kind, stream):
        assert device.do(lambda: ctypes.memmove(to, source, n) and None, stream, (to, source)) == 0

    def fill(to, value, n, stream):
        cupy.fills += 1
        device.do(lambda: ctypes.memset(to, value, n) and None, stream, (to,))

    streams = [Stream()]

    class Module:
        loaded = 0

        def load(self, image: bytes) -> None:
            assert image.startswith(b"\x7fELF")
            time.sleep(0.01)
            Module.loaded += 1

        def get_function(self, name: str):
            return SimpleNamespace(ptr=1 + list(cupy.kernels).index(name))

    cupy = ModuleType("cupy")
    cupy.cuda = SimpleNamespace(
        Device=lambda *_: SimpleNamespace(compute_capability=capability),
        alloc=allocate,
        get_current_stream=lambda: streams[-1],
        Stream=Stream,
        Event=Event,
        get_elapsed_time=lambda begin, end: 1e3 * (end.time - begin.time),
        runtime=SimpleNamespace(
            memcpyAsync=copy,
            memsetAsync=fill,
            getDevice=lambda: 0,
            setDevice=lambda number: None,
            streamSynchronize=device.wait,
            graphLaunch=launch,
            eventRecord=record,
            streamWaitEvent=lambda stream, event: device.follow(stream, made[event].stream),
        ),
        function=SimpleNamespace(Module=Module),
        driver=SimpleNamespace(funcSetAttribute=lambda *_: None),
    )
    cupy.asarray = lambda x: x
    cupy.ascontiguousarray = lambda x: x
    cupy.ndarray = Array
    cupy.graphs = cupy.fills = 0
    cupy.device, cupy.fail, cupy.modules = device, fail, Module
    cupy.kernels = {r["name"]: r for r in emulated.manifest["launches"]}
    return cupy


@pytest.fixture(autouse=True)
def nvrtc() -> None:
    try:
        find_nvrtc()
    except ToolchainError as error:
        pytest.skip(f"{error}; extra `test` has it")


class Driver:
    """A CUDA driver whose kernels and tensor maps are those of the emulation of a program."""

    def __init__(self, emulated, cupy, status=0):
        cdll = emulated.library.cdll
        self.encode = cdll.irees_emulated_tensor_map
        self.encode.argtypes = (ctypes.c_void_p, ctypes.c_void_p)
        self.emulate = cdll.irees_emulated_launch
        self.emulate.argtypes = (ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p)
        self.status, self.made = status, 0
        self.emulated, self.cupy = emulated, cupy
        self.table = load_services(runtime_library()).table
        self.counts = {
            name: 1 + max(map(int, re.findall(r"\ba\[(\d+)\]", body)), default=-1)
            for text in emulated.sources.values()
            for name, body in re.findall(
                r"void (\w+)_call\(const int64_t \*a\) \{(.*?)\n\}", text, re.S
            )
        }
        self.cuLaunchKernel = LAUNCH(self.launch)

    def cuGetErrorName(self, status, name):
        name._obj.value = {ILLEGAL_ADDRESS: b"CUDA_ERROR_ILLEGAL_ADDRESS"}.get(status.value)
        return 0

    def launch(self, function, x, y, z, threads, _y, _z, shared, stream, arguments, extra):
        try:
            if self.cupy.fail:
                return ILLEGAL_ADDRESS
            name, record = list(self.cupy.kernels.items())[function - 1]
            assert (y, z, _y, _z, threads) == (1, 1, 1, 1, record["threads"])
            assert shared in (0, record["shared_bytes"])
            # As a device does, what the addresses have when it is launched.
            maps, values = record.get("maps", 0), (ctypes.c_int64 * max(1, self.counts[name]))()
            room = np.empty(128 * maps + 64, np.uint8)
            start = room.ctypes.data + -room.ctypes.data % 64
            for i in range(self.counts[name]):
                if i < maps:
                    values[i] = ctypes.memmove(start + 128 * i, arguments[i], 128)
                else:
                    values[i] = ctypes.c_int64.from_address(arguments[i]).value
            struct = LaunchStruct(
                0, threads, 1, len(values), x, record["shared_bytes"], ctypes.addressof(values)
            )
            address = self.emulated.library.address(f"{name}_call")

            def work(kept=(room, values, struct)):
                return self.emulate(self.table, ctypes.addressof(kept[2]), address)

            return self.cupy.device.do(work, stream, values[maps:])
        except Exception:
            traceback.print_exc()
            return UNKNOWN

    def cuTensorMapEncodeTiled(
        self, to, kind, rank, address, sizes, strides, box, steps, layout, swizzle, promotion, fill
    ):
        assert [kind.value, layout.value, promotion.value, fill.value] == [1, 0, 0, 0]
        assert list(steps) == [1] * rank.value
        self.made += 1
        tensor = TensorStruct(address.value, rank.value, 2, 16 << swizzle.value)
        tensor.sizes[: rank.value], tensor.box[: rank.value] = list(sizes), list(box)
        tensor.strides[: rank.value] = [2, *strides]
        return self.status or self.encode(to.value, ctypes.addressof(tensor))


def program_for(
    monkeypatch, text: str, options=None, arch="sm_80", status=0, *, anew=False, **of_cupy
):
    """A program of the device; `anew` where facts are not those that programs were kept with."""
    options = options or {}

    def source():
        return irees.import_mlir(text) if anew else text

    emulated = irees.compile(source(), target=f"cuda-emulated:{arch}", **options)
    cupy = fake_cupy(emulated, **{"capability": arch.removeprefix("sm_")} | of_cupy)
    cupy.driver = Driver(emulated, cupy, status)
    monkeypatch.setitem(sys.modules, "cupy", cupy)
    monkeypatch.setattr(tensor_maps, "find_driver", lambda: cupy.driver)
    return irees.compile(source(), target=f"cuda:{arch}", **options)


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


def on_device(monkeypatch, torch, stream: int) -> None:
    """Takes all tensors of torch for such of a device, whose current stream this is."""
    empty = torch.empty
    monkeypatch.setattr(torch.Tensor, "is_cuda", property(lambda self: True))
    monkeypatch.setattr(torch.Tensor, "get_device", lambda self: 0)
    monkeypatch.setattr(torch, "empty", lambda shape, dtype, device=0: empty(shape, dtype=dtype))
    monkeypatch.setattr(torch._C, "_cuda_getCurrentRawStream", lambda device: stream, raising=False)


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


CHECKED = """
func.func @main(%i: tensor<8xi64>, %t: tensor<5x8xf32>) -> (tensor<8x8xf32>, tensor<8x5xf32>) {
  %zero = arith.constant 0 : i64
  %size = arith.constant 5 : i64
  %f = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<8x8xf32>
  %r = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i)>, affine_map<(i, j) -> (i, j)>], iterator_types = ["parallel", "parallel"]}
      ins(%i : tensor<8xi64>) outs(%e : tensor<8x8xf32>) {
  ^bb0(%n: i64, %o: f32):
    %less = arith.cmpi slt, %n, %size : i64
    cf.assert %less, "index must be smaller than dim size"
    %more = arith.cmpi sge, %n, %zero : i64
    cf.assert %more, "index must be larger or equal to 0"
    %row = arith.index_cast %n : i64 to index
    %column = linalg.index 1 : index
    %v = tensor.extract %t[%row, %column] : tensor<5x8xf32>
    linalg.yield %v : f32
  } -> tensor<8x8xf32>
  %e1 = tensor.empty() : tensor<8x5xf32>
  %z = linalg.fill ins(%f : f32) outs(%e1 : tensor<8x5xf32>) -> tensor<8x5xf32>
  %tt = tensor.empty() : tensor<8x5xf32>
  %u = linalg.transpose ins(%t : tensor<5x8xf32>) outs(%tt : tensor<8x5xf32>) permutation = [1, 0]
  %p = linalg.matmul ins(%r, %u : tensor<8x8xf32>, tensor<8x5xf32>) outs(%z : tensor<8x5xf32>) -> tensor<8x5xf32>
  return %r, %p : tensor<8x8xf32>, tensor<8x5xf32>
}
"""


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
    """Those of several kernels whose results are few bytes."""
    x = Array.of(np.eye(64, dtype=np.float32))
    program = program_for(monkeypatch, TWICE)
    program(x, x)
    launches = program.device.launched()
    for least, copied, graphs_launched in (
        (launches, 1 << 20, 3),
        (launches + 1, 1 << 20, 0),
        (launches, 1024, 0),
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
    with pytest.raises(ToolchainError, match=r"launches no kernels.*load the program for a GPU"):
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
        with pytest.raises(DeviceError, match=f"the GPU is an sm_{capability}, and irees compiles"):
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


TWICE = """
func.func @main(%x: tensor<64x64xf32>, %y: tensor<64x64xf32>) -> (tensor<64x64xf32>, tensor<64xf32>) {
  %z = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<64x64xf32>
  %f = linalg.fill ins(%z : f32) outs(%e : tensor<64x64xf32>) -> tensor<64x64xf32>
  %p = linalg.matmul ins(%x, %y : tensor<64x64xf32>, tensor<64x64xf32>) outs(%f : tensor<64x64xf32>) -> tensor<64x64xf32>
  %q = linalg.matmul ins(%p, %y : tensor<64x64xf32>, tensor<64x64xf32>) outs(%f : tensor<64x64xf32>) -> tensor<64x64xf32>
  %e1 = tensor.empty() : tensor<64xf32>
  %f1 = linalg.fill ins(%z : f32) outs(%e1 : tensor<64xf32>) -> tensor<64xf32>
  %s = linalg.reduce { arith.addf } ins(%q : tensor<64x64xf32>) outs(%f1 : tensor<64xf32>) dimensions = [1]
  return %q, %s : tensor<64x64xf32>, tensor<64xf32>
}
"""


@pytest.fixture
def recorded(monkeypatch) -> None:
    """Calls of few kernels and large results are recorded as graphs too."""
    monkeypatch.setattr(graphs, "LEAST_LAUNCHES", 1)
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


HALVES = """
func.func @main(%a: tensor<768x136xf16>, %b: tensor<136x768xf16>) -> tensor<768x768xf32> {
  %z = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<768x768xf32>
  %f = linalg.fill ins(%z : f32) outs(%e : tensor<768x768xf32>) -> tensor<768x768xf32>
  %r = linalg.matmul ins(%a, %b : tensor<768x136xf16>, tensor<136x768xf16>) outs(%f : tensor<768x768xf32>) -> tensor<768x768xf32>
  return %r : tensor<768x768xf32>
}
"""


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
    # Twice each, when it was called and when it was recorded.
    assert cupy.driver.made == 2 * 2 * 2
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
    with pytest.raises(DeviceError, match="refuses a tensor map of 768 x 136: error 1"):
        program(*halves(1))
    sys.modules["cupy"].driver = object()
    with pytest.raises(DeviceError, match=r"makes no tensor maps.*CUDA 12 or later"):
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
