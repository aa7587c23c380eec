"""
A stand-in for CuPy and for the CUDA driver: memory is the host's, and kernels are emulated.

`program_for` compiles a program for a device and puts both in place. The texts are programs.
"""

from __future__ import annotations

import ctypes
import re
import sys
import time
import traceback
import weakref
from types import ModuleType, SimpleNamespace

import numpy as np

import irees
from irees.backends.common.toolchain import runtime_library
from irees.runtime import tensor_maps
from irees.runtime.services import load_services
from irees.runtime.tensor_maps import TensorStruct

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


HALVES = """
func.func @main(%a: tensor<768x136xf16>, %b: tensor<136x768xf16>) -> tensor<768x768xf32> {
  %z = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<768x768xf32>
  %f = linalg.fill ins(%z : f32) outs(%e : tensor<768x768xf32>) -> tensor<768x768xf32>
  %r = linalg.matmul ins(%a, %b : tensor<768x136xf16>, tensor<136x768xf16>) outs(%f : tensor<768x768xf32>) -> tensor<768x768xf32>
  return %r : tensor<768x768xf32>
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

_pointer = ctypes.c_void_p
COPY = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_uint64, ctypes.c_uint64, ctypes.c_size_t, _pointer)
ENCODE = ctypes.CFUNCTYPE(
    ctypes.c_int, _pointer, ctypes.c_int, ctypes.c_uint32, *(_pointer,) * 5, *(ctypes.c_int,) * 4
)
CONTEXT = ctypes.CFUNCTYPE(ctypes.c_int, _pointer)
CURRENT = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.POINTER(_pointer))

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
        self.cuMemcpyDtoDAsync_v2 = COPY(self.copy)
        self.cuTensorMapEncodeTiled = ENCODE(self.encode_tiled)
        self.context = self.current = id(self)
        self.pushed: list[int] = []
        self.cuCtxGetCurrent = CURRENT(self.get_current)
        self.cuCtxPushCurrent_v2 = CONTEXT(self.push)
        self.cuCtxPopCurrent_v2 = CURRENT(self.pop)

    def get_current(self, context):
        context[0] = self.current
        return 0

    def push(self, context):
        self.pushed.append(self.current)
        self.current = context
        return 0

    def pop(self, context):
        self.current = self.pushed.pop()
        return 0

    def copy(self, to, source, size, stream):
        return self.cupy.device.do(
            lambda: ctypes.memmove(to, source, size) and None, stream or 0, (to, source)
        )

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

    def encode_tiled(
        self, to, kind, rank, address, sizes, strides, box, steps, layout, swizzle, promotion, fill
    ):
        def numbers(of, count, at):
            return list((of * count).from_address(at))

        assert [kind, layout, promotion, fill] == [1, 0, 0, 0]
        assert numbers(ctypes.c_uint32, rank, steps) == [1] * rank
        self.made += 1
        tensor = TensorStruct(address, rank, 2, 16 << swizzle)
        tensor.sizes[:rank] = numbers(ctypes.c_uint64, rank, sizes)
        tensor.box[:rank] = numbers(ctypes.c_uint32, rank, box)
        tensor.strides[:rank] = [2, *numbers(ctypes.c_uint64, rank - 1, strides)]
        return self.status or self.encode(to, ctypes.addressof(tensor))


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


def on_device(monkeypatch, torch, stream: int) -> None:
    """Takes all tensors of torch for such of a device, whose current stream this is."""
    empty = torch.empty
    monkeypatch.setattr(torch.Tensor, "is_cuda", property(lambda self: True))
    monkeypatch.setattr(torch.Tensor, "get_device", lambda self: 0)
    monkeypatch.setattr(torch, "empty", lambda shape, dtype, device=0: empty(shape, dtype=dtype))
    monkeypatch.setattr(torch._C, "_cuda_getCurrentRawStream", lambda device: stream, raising=False)
