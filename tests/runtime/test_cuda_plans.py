"""Planned calls on a CUDA device, with stand-ins for CuPy and the driver."""

from __future__ import annotations

import sys
import threading
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from irees.backends.cuda.toolchain import find_nvrtc
from irees.errors import ArgumentError, OutOfMemoryError, RuntimeTrap, ToolchainError
from irees.runtime import cuda_plans, cuda_queue, graphs
from irees.target import GPUS

sys.path.insert(0, str(Path(__file__).parent))
sys.path.insert(0, str(Path(__file__).parents[1] / "backends" / "cuda"))
import kernels
from cuda_stand_in import CHECKED, HALVES, ROWS, TWICE, WEIGHTED, Array, on_device, program_for

torch = pytest.importorskip("torch", reason="extra `torch`")

FUNCTIONS_RUN = {"one result": 25, "two results and temporaries": 37}
"""
Maximum functions of Python and PyTorch that a warm call runs, with one and with two arguments. Each
takes about 0.1 us; a launch takes 2 to 3 us. The general path runs 52 and 91.
"""

SHARED = """
func.func @main(%x: tensor<?xf32>, %y: tensor<?xf32>, %k: f32) -> tensor<?xf32> {
  %c0 = arith.constant 0 : index
  %n = tensor.dim %x, %c0 : tensor<?xf32>
  %e = tensor.empty(%n) : tensor<?xf32>
  %r = linalg.generic {indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>, affine_map<(i) -> (i)>],
      iterator_types = ["parallel"]} ins(%x, %y : tensor<?xf32>, tensor<?xf32>) outs(%e : tensor<?xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %p = arith.mulf %a, %k : f32
    %s = arith.addf %p, %b : f32
    linalg.yield %s : f32
  } -> tensor<?xf32>
  return %r : tensor<?xf32>
}
"""


@pytest.fixture(autouse=True)
def tensors_of_a_device(monkeypatch) -> None:
    try:
        find_nvrtc()
    except ToolchainError as error:
        pytest.skip(f"{error}; extra `test` has it")
    on_device(monkeypatch, torch, stream=70)


def planned_calls(monkeypatch, program) -> list[int]:
    """The statuses of the planned calls from now on."""
    found, call = [], program.device.call_planned

    def note(frame: int, stream: int) -> int:
        found.append(call(frame, stream))
        return found[-1]

    monkeypatch.setattr(program.device, "call_planned", note)
    return found


def functions_run(call) -> int:
    """Functions of irees' runtime, and those that they call in C."""
    found = 0

    def count(frame, event: str, _) -> None:
        nonlocal found
        found += event in ("call", "c_call") and "irees/runtime/" in frame.f_code.co_filename

    sys.setprofile(count)
    try:
        call()
    finally:
        sys.setprofile(None)
    return found


def strided(shape, strides, dtype):
    """What Inductor's function does, for a CPU."""
    return torch.empty_strided(shape, strides, dtype=dtype)


@pytest.mark.parametrize(
    ("text", "shape", "count", "budget"),
    [
        (WEIGHTED, (4,), 1, "one result"),
        (TWICE, (64, 64), 2, "two results and temporaries"),
    ],
)
def test_a_warm_call_runs_few_functions(monkeypatch, text, shape, count, budget):
    program = program_for(monkeypatch, text)
    monkeypatch.setattr(cuda_queue, "_quick_maker", lambda torch: strided)
    tensors = [torch.ones(shape) for _ in range(count)]
    for _ in range(3):
        program(*tensors)
    found = functions_run(lambda: program(*tensors))
    assert found <= FUNCTIONS_RUN[budget]
    # A budget far above what is run would notice nothing.
    assert found >= FUNCTIONS_RUN[budget] - 5


def test_results_are_the_callers(monkeypatch):
    """With several results and temporaries, the results of earlier calls stay as they are."""
    program = program_for(monkeypatch, TWICE)
    statuses, found = planned_calls(monkeypatch, program), []
    for n in range(5):
        x = torch.eye(64) * n
        found.append((x, program(x, x)))
    assert statuses == [0] * 4
    for x, (product, sums) in found:
        assert product.equal(x @ x @ x)
        assert sums.equal((x @ x @ x).sum(1))
        assert product.untyped_storage().nbytes() == product.nbytes


def test_what_a_plan_does_not_take_is_checked(monkeypatch):
    """By the general path, which copies or refuses it."""
    program = program_for(monkeypatch, WEIGHTED)
    x = torch.ones(4)
    program(x)
    statuses = planned_calls(monkeypatch, program)
    taken = [x, torch.ones(8)[4:], torch.nn.Parameter(x), torch.ones(4, 1)[:, 0]]
    for value in taken:
        assert program(value).tolist() == [1, 2, 3, 4]
    assert statuses == [0] * len(taken)
    copied = [torch.ones(5)[1:], torch.ones(4, 2)[:, 1], torch.ones(1).expand(4)]
    copied.append(torch._neg_view(-torch.ones(4)))
    for value in (*copied, x.numpy()):
        assert program(value).tolist() == [1, 2, 3, 4]
    freed = torch.ones(4)
    freed.untyped_storage().resize_(0)
    cut = torch.ones(4)
    cut.untyped_storage().resize_(8)
    refused = [torch.ones(5), torch.ones(4, 1), torch.ones(4, dtype=torch.int32), freed, cut, 1.0]
    for value in (*refused, torch._efficientzerotensor(4)):
        with pytest.raises(ArgumentError):
            program(value)
    with pytest.raises(ArgumentError, match="takes 1 argument, but 2 given"):
        program(x, x)
    monkeypatch.setattr(torch.Tensor, "get_device", lambda self: 1)
    with pytest.raises(ArgumentError, match="the program runs on cuda:0"):
        program(x)
    assert statuses == [0] * len(taken)


def test_there_is_a_plan_for_each_shape(monkeypatch):
    """That comes twice."""
    program = program_for(monkeypatch, SHARED)
    statuses = planned_calls(monkeypatch, program)
    for _ in range(2):
        for n in (3, 5, 1):
            for k in (2, 3.0):
                x, y = torch.arange(float(n)), torch.ones(n)
                assert program(x, y, k).equal(x * k + y)
    assert statuses == [0] * 6
    with pytest.raises(ArgumentError, match="must equal dim 0"):
        program(torch.ones(3), torch.ones(5), 1.0)
    with pytest.raises(ArgumentError, match="must be one f32"):
        program(torch.ones(3), torch.ones(3), "a")
    assert program(torch.ones(0), torch.ones(0), 1.0).shape == (0,)
    monkeypatch.setattr(cuda_plans, "MOST_PLANS", 3)
    planned = program.functions["main"]._planned
    for n in range(11, 19):
        for _ in range(1 + n % 2):
            assert program(torch.ones(n), torch.ones(n), 1.0).tolist() == [2.0] * n
        assert ((n,), (n,)) in planned._seen
        assert (((n,), (n,)) in planned._plans) == (n % 2 == 1)
    assert max(len(planned._plans), len(planned._seen)) <= 3


def test_what_reads_the_device_is_not_planned(monkeypatch):
    program = program_for(monkeypatch, ROWS)
    for _ in range(3):
        assert program(torch.ones(3, 40), 1.0)[1] == 40
    assert program.functions["main"]._planned is None
    program = program_for(monkeypatch, kernels.checked_steps())
    statuses = planned_calls(monkeypatch, program)
    for _ in range(3):
        assert program(torch.tensor([3])).tolist() == [10]
    assert not statuses


def test_a_planned_call_traps(monkeypatch):
    """Each call that must; the next one has a word that is zero."""
    program = program_for(monkeypatch, CHECKED)
    cupy = sys.modules["cupy"]
    statuses = planned_calls(monkeypatch, program)
    rows, table = torch.arange(8) % 5, torch.ones(5, 8)
    for _ in range(3):
        assert program(rows, table)[0].tolist() == [[1.0] * 8] * 8
        with pytest.raises(RuntimeTrap, match="index must be smaller than dim size"):
            program(rows + 5, table)
    assert statuses == [0] * 5
    cupy.fills = 0
    for _ in range(3):
        assert program(rows, table)[0].tolist() == [[1.0] * 8] * 8
    assert cupy.fills == 0


def test_a_call_that_differs_from_its_plan_is_repeated(monkeypatch):
    program = program_for(monkeypatch, TWICE)
    x = torch.eye(64)
    program(x, x)
    planned = program.functions["main"]._planned
    (plan,) = planned._plans.values()
    statuses = planned_calls(monkeypatch, program)
    sizes = plan.memory.sizes
    for wrong in ([size + 1 for size in sizes], sizes):
        plan.memory.sizes = wrong
        plan.frames.clear()
        plan.result_dims[0] += wrong is sizes
        product, sums = program(x, x)
        assert product.equal(x)
        assert sums.equal(torch.ones(64))
    assert len(statuses) == 2
    assert all(statuses)
    for _ in range(4):
        assert program(x, x)[0].equal(x)
    assert len(statuses) == cuda_plans.MOST_FAILURES


def test_memory_that_does_not_suffice(monkeypatch):
    program = program_for(monkeypatch, WEIGHTED)
    program(torch.ones(4))

    def empty(*_, **__):
        raise torch.OutOfMemoryError("CUDA out of memory")

    monkeypatch.setattr(torch, "empty", empty)
    with pytest.raises(OutOfMemoryError, match="not enough memory: CUDA out of memory"):
        program(torch.ones(4))


def test_another_context_is_current(monkeypatch):
    """The kernels' own is current while they are launched."""
    program = program_for(monkeypatch, WEIGHTED)
    driver = sys.modules["cupy"].driver
    program(torch.ones(4))
    statuses, launch, current = planned_calls(monkeypatch, program), driver.launch, []
    driver.current = 5
    do = driver.cupy.device.do
    monkeypatch.setattr(
        driver.cupy.device, "do", lambda *work: current.append(driver.current) or do(*work)
    )
    assert program(torch.ones(4)).tolist() == [1, 2, 3, 4]
    assert launch is not None
    assert (statuses, current) == ([0], [driver.context])
    assert (driver.current, driver.pushed) == (5, [])


def test_a_program_is_loaded_where_its_tensors_are(monkeypatch):
    """Also if another device is current, which stays so."""
    program = program_for(monkeypatch, WEIGHTED)
    runtime, current = sys.modules["cupy"].cuda.runtime, [0]
    monkeypatch.setattr(runtime, "getDevice", lambda: current[-1])
    monkeypatch.setattr(runtime, "setDevice", current.append)
    monkeypatch.setattr(torch.Tensor, "get_device", lambda self: 1)
    for _ in range(2):
        assert program(torch.ones(4)).tolist() == [1, 2, 3, 4]
        assert (program.device.number, current[-1]) == (1, 0)
    monkeypatch.setattr(torch.Tensor, "get_device", lambda self: 0)
    with pytest.raises(ArgumentError, match="the program runs on cuda:1"):
        program(torch.ones(4))


def test_the_stream_is_that_of_the_call(monkeypatch):
    program = program_for(monkeypatch, WEIGHTED)
    device, x = sys.modules["cupy"].device, torch.ones(4)
    for stream in (70, 71, 70):
        monkeypatch.setattr(torch._C, "_cuda_getCurrentRawStream", lambda _, on=stream: on)
        device.work.clear()
        for _ in range(2):
            program(x)
        assert {*device.work} == {stream}
    monkeypatch.delattr(torch._C, "_cuda_getCurrentRawStream")
    current = SimpleNamespace(cuda_stream=72)
    monkeypatch.setattr(torch.cuda, "current_stream", lambda device: current)
    device.work.clear()
    program(x)
    assert {*device.work} == {72}


def test_calls_of_several_threads(monkeypatch):
    program = program_for(monkeypatch, TWICE)
    program(torch.eye(64), torch.eye(64))
    statuses, wrong = planned_calls(monkeypatch, program), []

    def call(n: int) -> None:
        x = torch.eye(64) * n
        found = [program(x, x) for _ in range(20)]
        wrong.extend(n for product, _ in found if not product.equal(x * n * n))

    threads = [threading.Thread(target=call, args=(n,)) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong
    assert statuses == [0] * 80


def test_counters_are_those_of_the_stream(monkeypatch):
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
    cupy, random = sys.modules["cupy"], np.random.default_rng(0)
    x, y = (
        torch.from_numpy(random.integers(-2, 3, shape).astype(np.float32))
        for shape in ((40, 2048), (2048, 64))
    )
    statuses = planned_calls(monkeypatch, program)
    for stream in (70, 71):
        on_device(monkeypatch, torch, stream)
        for _ in range(3):
            assert program(x, y).equal(x @ y)
    # The first call on a stream has no counters yet, and makes them.
    assert statuses == [0] * 4
    assert cupy.fills == 2


def test_tensor_maps_are_kept(monkeypatch):
    program = program_for(monkeypatch, HALVES, arch="sm_90")
    driver = sys.modules["cupy"].driver
    statuses = planned_calls(monkeypatch, program)
    pairs = [(torch.ones(768, 136).half(), torch.ones(136, 768).half() * n) for n in (1, 2)]
    for n, (a, b) in enumerate(pairs):
        for _ in range(3):
            assert program(a, b).equal(a.float() @ b.float())
        assert driver.made == 2 * (n + 1)
    assert statuses == [0] * 5


def test_graphs_are_replayed(monkeypatch):
    """From the second call with the same tensors on; other tensors follow the plan."""
    program = program_for(monkeypatch, TWICE)
    monkeypatch.setattr(graphs, "LEAST_LAUNCHES", 0)
    cupy, x = sys.modules["cupy"], torch.eye(64)
    statuses, found = planned_calls(monkeypatch, program), []
    for _ in range(4):
        found.append(program(x, x))
    assert (cupy.graphs, len(statuses)) == (3, 0)
    x *= 2
    product, sums = program(x, x)
    assert (cupy.graphs, len(statuses)) == (4, 0)
    assert product.equal(torch.eye(64) * 8)
    assert sums.equal(torch.full((64,), 8.0))
    assert all(each.equal(torch.eye(64)) for each, _ in found)
    others = [torch.eye(64) * n for n in range(1, 4)]
    for n, y in enumerate(others, 1):
        assert program(y, y)[0].equal(y * n * n)
    assert (cupy.graphs, statuses) == (4, [0] * 3)
    # A graph is not launched while another device is current.
    monkeypatch.setattr(cupy.cuda.runtime, "getDevice", lambda: 1)
    assert program(x, x)[0].equal(torch.eye(64) * 8)


def test_calls_without_torch(monkeypatch):
    """Programs that never see PyTorch are not planned, and do not need it."""
    program = program_for(monkeypatch, WEIGHTED)
    monkeypatch.delitem(sys.modules, "torch")
    for _ in range(3):
        assert program(Array.of(np.ones(4, np.float32))).get().tolist() == [1, 2, 3, 4]


def test_tensors_are_made_on_their_device(monkeypatch):
    """By the function of Inductor where it does what it should, and where that is current."""
    wanted = ((2, 3), (3, 1), torch.float32)
    guards = torch._C._dynamo.guards
    for quick in (strided, lambda *form: strided(*form).t(), lambda size, stride: None):
        monkeypatch.setattr(guards, "_empty_strided_cuda", quick, raising=False)
        assert (cuda_queue._quick_maker(torch) is quick) == (quick is strided)
        made = cuda_queue.maker(torch, 0)(*wanted)
        assert (made.shape, made.stride(), made.dtype) == wanted
    monkeypatch.setattr(guards, "_empty_strided_cuda", strided, raising=False)
    devices = []
    monkeypatch.setattr(torch, "empty", lambda shape, dtype, device: devices.append(device))
    cuda_queue.maker(torch, 3)(*wanted)
    assert devices == [3]
