"""Programs that span devices: what is sent, where it runs, what goes wrong, and what is saved."""

from __future__ import annotations

import contextlib
import importlib.util
import json
import os
import signal
import subprocess
import sys
import threading
import types

import numpy as np
import pytest

import irees
from irees import build
from irees.errors import ArgumentError, DeviceError, ParseError, RuntimeTrap, VerifyError
from irees.frontends.mlir import import_mlir
from irees.runtime.devices import DeviceSpec, Worker, current, share_out
from irees.runtime.events import write_trace
from irees.runtime.schedule import Schedule
from irees.runtime.schedule_model import Link, forecast, pipeline
from irees.tools.main import main

A, B = (f"#hal.device.promise<@dev_{i}>" for i in range(2))
TWO = {"dev_0": "cpu:0", "dev_1": "cpu:1"}
M = "tensor<512x512xf32>"


def two_matmuls(result: str = "", own: str = f" {{stream.affinity = {A}}}") -> str:
    return f"""
func.func @main(%a: {M}, %b: {M}, %c: {M}) -> ({M}{result}) {{
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : {M}
  %f = linalg.fill ins(%zero : f32) outs(%e : {M}) -> {M}
  %0 = linalg.matmul{own} ins(%a, %b : {M}, {M}) outs(%f : {M}) -> {M}
  %1 = flow.tensor.transfer %0 : {M} to {B}
  %2 = linalg.matmul ins(%1, %c : {M}, {M}) outs(%f : {M}) -> {M}
  return %2 : {M}
}}
"""


@pytest.fixture(scope="module")
def matrices():
    random = np.random.default_rng(7)
    return [random.random((512, 512), dtype="f4") for _ in range(3)]


@pytest.mark.parametrize("own", [f" {{stream.affinity = {A}}}", ""])
def test_two_products_send_one_tensor(matrices, own):
    """Where nothing is said of the first product, it is on the first device."""
    program = irees.compile(two_matmuls(own=own), devices=TWO)
    got = program(*matrices)
    assert (program.transfers.count, program.transfers.bytes) == (1, 1 << 20)
    assert program.transfers.links == {("dev_0", "dev_1"): (1, 1 << 20)}
    np.testing.assert_array_equal(got, irees.compile(two_matmuls(own=own))(*matrices))
    placed = irees.compile(two_matmuls(own=own), devices=TWO, to="placement")
    assert f"hal.tensor.export on({B})" in str(placed)


def test_a_result_that_is_wanted_elsewhere_is_sent_back(matrices):
    text = two_matmuls(f" {{iree.abi.affinity = {A}}}")
    program = irees.compile(text, devices=TWO)
    np.testing.assert_array_equal(program(*matrices), irees.compile(text)(*matrices))
    assert (program.transfers.count, program.transfers.bytes) == (2, 2 << 20)
    program.transfers.reset()
    assert program.transfers.count == 0
    assert f"hal.tensor.export on({A})" in str(irees.compile(text, devices=TWO, to="placement"))


def test_two_names_of_one_device_send_nothing(matrices):
    program = irees.compile(two_matmuls(), devices={"dev_0": "cpu:0", "dev_1": "cpu:0"})
    np.testing.assert_array_equal(program(*matrices), irees.compile(two_matmuls())(*matrices))
    assert program.transfers.count == 0


def test_devices_have_threads_and_memory_of_their_own():
    program = irees.compile(two_matmuls(), devices=TWO)
    first, second = (program.devices[name].place for name in TWO)
    assert first.services.table != second.services.table
    assert first.worker is not second.worker
    again = irees.compile(two_matmuls(), devices=TWO)
    assert again.devices["dev_0"].place is first


def test_kinds_of_devices_can_be_mixed(matrices):
    small = two_matmuls().replace("512", "8")
    inputs = [m[:8, :8].copy() for m in matrices]
    want = irees.compile(small, target="reference")(*inputs)
    for second in ("cuda-emulated:0", "reference:0"):
        program = irees.compile(small, devices={"dev_0": "cpu:0", "dev_1": second}, fp="strict")
        np.testing.assert_array_equal(program(*inputs), want)
        assert program.transfers.count == 1


def test_a_gpu_is_made_current_by_its_number(monkeypatch):
    chosen: list[int] = []

    class Device(contextlib.nullcontext):
        def __init__(self, index: int):
            super().__init__()
            chosen.append(index)

    fake = types.SimpleNamespace(cuda=types.SimpleNamespace(Device=Device))
    monkeypatch.setitem(sys.modules, "cupy", fake)
    for text in ("cuda:3", "cpu:1", "cuda:0"):
        with current(DeviceSpec.parse(text)):
            pass
    assert chosen == [3, 0]


def test_a_program_with_a_gpu_is_compiled_without_one(matrices):
    pytest.importorskip(
        "nvidia.cuda_nvrtc", reason="NVRTC is not installed: pip install irees[test]"
    )
    small = two_matmuls().replace("512", "8")
    devices = {"dev_0": "cpu:0", "dev_1": "cuda:0"}
    program = irees.compile(small, devices=devices, target="cuda:sm_80")
    assert program.programs["dev_1"].cubins
    assert not program.programs["dev_0"].cubins
    if importlib.util.find_spec("cupy") is None:
        with pytest.raises(DeviceError, match="cupy cannot be imported"):
            program(*(m[:8, :8].copy() for m in matrices))


def test_devices_work_at_the_same_time(matrices):
    """Each waits for the other to be at work; one after the other would never end."""
    text = f"""
func.func @main(%a: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {{
  %e = tensor.empty() : tensor<4xf32>
  %0 = linalg.exp {{stream.affinity = {A}}} ins(%a : tensor<4xf32>) outs(%e : tensor<4xf32>)
      -> tensor<4xf32>
  %1 = linalg.abs {{stream.affinity = {B}}} ins(%a : tensor<4xf32>) outs(%e : tensor<4xf32>)
      -> tensor<4xf32>
  return %0, %1 : tensor<4xf32>, tensor<4xf32>
}}"""
    program = irees.compile(text, devices=TWO)
    together = threading.Barrier(2, timeout=60)
    for part in program.programs.values():
        ((name, entry),) = part.functions.items()

        def waiting(*values, entry=entry):
            together.wait()
            return entry(*values)

        part.functions[name] = waiting
    x = np.array([-1, 0, 1, 2], "f4")
    first, second = program(x)
    np.testing.assert_allclose(first, np.exp(x), rtol=1e-6)
    np.testing.assert_array_equal(second, abs(x))


STATE = f"""
util.global private mutable @log = dense<0> : tensor<4xi32>
func.func @main(%x: tensor<4xi32>) -> (tensor<4xi32>, tensor<4xi32>) {{
  %e = tensor.empty() : tensor<4xi32>
  %old = util.global.load @log {{stream.affinity = {A}}} : tensor<4xi32>
  %t = flow.tensor.transfer %old : tensor<4xi32> to {B}
  %0 = linalg.add {{stream.affinity = {B}}} ins(%t, %x : tensor<4xi32>, tensor<4xi32>)
      outs(%e : tensor<4xi32>) -> tensor<4xi32>
  %1 = flow.tensor.transfer %0 : tensor<4xi32> to {A}
  util.global.store %1, @log {{stream.affinity = {A}}} : tensor<4xi32>
  %new = util.global.load @log {{stream.affinity = {A}}} : tensor<4xi32>
  return %old, %new : tensor<4xi32>, tensor<4xi32>
}}
"""


def test_state_stays_on_its_device():
    program, x = irees.compile(STATE, devices=TWO), np.arange(4, dtype="i4")
    for call in range(3):
        old, new = program(x)
        np.testing.assert_array_equal(old, call * x)
        np.testing.assert_array_equal(new, (call + 1) * x)


def test_a_load_is_after_the_store_before_it():
    """On one device, where nothing but their order in the program says so."""
    text = f"""
util.global private mutable @g = dense<0> : tensor<4xi32>
func.func @main(%x: tensor<4xi32>, %y: tensor<4xi32>) -> tensor<4xi32> {{
  %e = tensor.empty() : tensor<4xi32>
  %0 = linalg.add {{stream.affinity = {B}}} ins(%x, %y : tensor<4xi32>, tensor<4xi32>)
      outs(%e : tensor<4xi32>) -> tensor<4xi32>
  %1 = flow.tensor.transfer %0 : tensor<4xi32> to {A}
  util.global.store %1, @g {{stream.affinity = {A}}} : tensor<4xi32>
  %2 = util.global.load @g {{stream.affinity = {A}}} : tensor<4xi32>
  return %2 : tensor<4xi32>
}}"""
    x = np.arange(4, dtype="i4")
    np.testing.assert_array_equal(irees.compile(text, devices=TWO)(x, x), x + x)


def test_a_global_of_two_functions_is_on_one_device():
    """In the second nothing names a device, and the loop reads what the first has stored."""
    text = f"""
util.global private mutable @g = dense<0> : tensor<4xi32>
func.func @put(%x: tensor<4xi32>) {{
  util.global.store %x, @g {{stream.affinity = {B}}} : tensor<4xi32>
  return
}}
func.func @sum(%x: tensor<4xi32>, %n: index) -> tensor<4xi32> {{
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %e = tensor.empty() : tensor<4xi32>
  %0 = linalg.add {{stream.affinity = {A}}} ins(%x, %x : tensor<4xi32>, tensor<4xi32>)
      outs(%e : tensor<4xi32>) -> tensor<4xi32>
  %t = flow.tensor.transfer %0 : tensor<4xi32> to {B}
  %r = scf.for %i = %zero to %n step %one iter_args(%a = %t) -> (tensor<4xi32>) {{
    %g = util.global.load @g : tensor<4xi32>
    %s = linalg.add ins(%a, %g : tensor<4xi32>, tensor<4xi32>) outs(%e : tensor<4xi32>)
        -> tensor<4xi32>
    scf.yield %s : tensor<4xi32>
  }}
  return %r : tensor<4xi32>
}}"""
    program, x = irees.compile(text, devices=TWO), np.arange(4, dtype="i4")
    program.functions["put"](x + 1)
    np.testing.assert_array_equal(program.functions["sum"](x, 3), 2 * x + 3 * (x + 1))


def test_a_loop_over_devices_has_tensors_that_grow():
    """Sizes and counters are scalars, which go where they are asked for and are not counted."""
    t = "tensor<?x3xf32>"
    text = f"""
func.func @main(%x: {t}, %n: index) -> ({t}, index, f32) {{
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %r, %c = scf.for %i = %zero to %n step %one iter_args(%a = %x, %k = %zero) -> ({t}, index) {{
    %d = tensor.dim %a, %zero : {t}
    %e = tensor.empty(%d) : {t}
    %0 = linalg.add {{stream.affinity = {A}}} ins(%a, %a : {t}, {t}) outs(%e : {t}) -> {t}
    %t = flow.tensor.transfer %0 : {t}{{%d}} to {B}
    %1 = linalg.mul {{stream.affinity = {B}}} ins(%t, %t : {t}, {t}) outs(%e : {t}) -> {t}
    %p = tensor.pad %1 low[%one, 0] high[0, 0] {{
    ^bb0(%i0: index, %i1: index):
      %f = arith.constant 1.0 : f32
      tensor.yield %f : f32
    }} : {t} to {t}
    %q = tensor.dim %p, %zero : {t}
    %u = flow.tensor.transfer %p : {t}{{%q}} to {A}
    %s = arith.addi %k, %q : index
    scf.yield %u, %s : {t}, index
  }}
  %v = tensor.extract %r[%zero, %one] : {t}
  return %r, %c, %v : {t}, index, f32
}}"""
    program, whole = irees.compile(text, devices=TWO), irees.compile(text)
    x = np.arange(6, dtype="f4").reshape(2, 3)
    for count in (0, 1, 2):
        program.transfers.reset()
        for got, want in zip(program(x, count), whole(x, count)):
            np.testing.assert_array_equal(got, want)
        assert program.transfers.count == 2 * count


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this system")
def test_a_forked_process_has_devices_too(matrices):
    program = irees.compile(two_matmuls().replace("512", "8"), devices=TWO)
    inputs = [m[:8, :8].copy() for m in matrices]
    want = program(*inputs)
    child = os.fork()
    if child == 0:
        signal.alarm(60)
        os._exit(0 if np.array_equal(program(*inputs), want) else 1)
    assert os.waitpid(child, 0)[1] == 0


def test_streams_traces_and_saved_programs(matrices, tmp_path):
    program = irees.compile(two_matmuls(), devices=TWO)
    want = program(*matrices)
    for got in program.stream([tuple(matrices)] * 6, in_flight=3):
        np.testing.assert_array_equal(got, want)
    with program.trace() as events:
        program(*matrices)
    assert [(e.kind, e.device) for e in events] == [
        ("run", "dev_0"), ("send", "dev_1"), ("run", "dev_1"),
    ]  # fmt: skip
    assert events[1].bytes == 1 << 20
    write_trace(events, tmp_path / "trace.json")
    assert len(json.loads((tmp_path / "trace.json").read_text())["traceEvents"]) == 3
    program.save(tmp_path / "two.irees")
    loaded = irees.load(tmp_path / "two.irees")
    np.testing.assert_array_equal(loaded(*matrices), want)
    together = irees.load(tmp_path / "two.irees", devices=dict.fromkeys(TWO, "cpu:0"))
    np.testing.assert_array_equal(together(*matrices), want)
    with pytest.raises(ArgumentError, match="the devices of the program are @dev_0, @dev_1"):
        irees.load(tmp_path / "two.irees", devices={"dev_0": "cpu:0"})
    with pytest.raises(ArgumentError, match="in_flight is 0, but must be 1 or more"):
        program.stream([], in_flight=0)


def test_arguments_are_checked_before_anything_runs(matrices):
    program = irees.compile(two_matmuls(), devices=TWO)
    with pytest.raises(ArgumentError, match="main takes 3 arguments, but 1 given"):
        program(matrices[0])
    with pytest.raises(ArgumentError, match="argument 1 has rank 1, but must have rank 2"):
        program(matrices[0], matrices[0][0], matrices[1])


def test_a_device_that_fails_is_an_error_and_the_next_call_is_fine(matrices):
    program = irees.compile(two_matmuls(), devices=TWO)
    part = program.programs["dev_1"]
    ((name, entry),) = part.functions.items()

    def broken(*values):
        raise OSError("the cable is loose")

    part.functions[name] = broken
    message = r"device @dev_1 \(cpu:1\) failed: OSError: the cable is loose"
    with pytest.raises(DeviceError, match=message):
        program(*matrices)
    part.functions[name] = entry
    assert program(*matrices).shape == (512, 512)


def test_a_trap_without_a_result_is_not_lost():
    text = f"""
func.func @main(%x: tensor<4xi32>, %ok: i1) -> tensor<4xi32> {{
  cf.assert %ok, "not ok"
  %e = tensor.empty() : tensor<4xi32>
  %0 = linalg.add {{stream.affinity = {B}}} ins(%x, %x : tensor<4xi32>, tensor<4xi32>)
      outs(%e : tensor<4xi32>) -> tensor<4xi32>
  return %0 : tensor<4xi32>
}}"""
    program, x = irees.compile(text, devices=TWO), np.arange(4, dtype="i4")
    np.testing.assert_array_equal(program(x, True), 2 * x)
    with pytest.raises(RuntimeTrap, match="not ok"):
        program(x, False)


def test_a_switch_between_devices():
    text = f"""
func.func @main(%i: index, %x: tensor<4xf32>) -> tensor<4xf32> {{
  %e = tensor.empty() : tensor<4xf32>
  %r = scf.index_switch %i -> tensor<4xf32>
  case 1 {{
    %0 = linalg.exp {{stream.affinity = {A}}} ins(%x : tensor<4xf32>) outs(%e : tensor<4xf32>)
        -> tensor<4xf32>
    scf.yield %0 : tensor<4xf32>
  }}
  default {{
    %t = flow.tensor.transfer %x : tensor<4xf32> to {B}
    %0 = linalg.abs {{stream.affinity = {B}}} ins(%t : tensor<4xf32>) outs(%e : tensor<4xf32>)
        -> tensor<4xf32>
    scf.yield %0 : tensor<4xf32>
  }}
  return %r : tensor<4xf32>
}}"""
    program = irees.compile(text, devices={"dev_0": "reference:0", "dev_1": "reference:1"})
    x = np.array([-1, 0, 1, 2], "f4")
    np.testing.assert_array_equal(program(0, x), abs(x))
    there = program.transfers.count
    np.testing.assert_allclose(program(1, x), np.exp(x), rtol=1e-6)
    assert program.transfers.count - there < there


def test_what_is_wrong_with_devices_is_said():
    with pytest.raises(ArgumentError, match=r"names the device @dev_1, but the devices are @dev_0"):
        irees.compile(two_matmuls(), devices={"dev_0": "cpu:0"})
    with pytest.raises(ArgumentError, match="device 'tpu:0' is unknown; use cpu:N, cuda:N"):
        irees.compile(two_matmuls(), devices={"dev_0": "cpu:0", "dev_1": "tpu:0"})
    with pytest.raises(ArgumentError, match="devices must map the names"):
        irees.compile(two_matmuls(), devices=["cpu:0"])
    with pytest.raises(
        ArgumentError, match="cannot mix devices of this machine and of a Ray cluster"
    ):
        irees.compile(two_matmuls(), devices={"dev_0": "cpu:0", "dev_1": "ray://here:1/0"})
    with pytest.raises(ArgumentError, match="pipeline_stages is 3, but there are 2 devices"):
        irees.compile(two_matmuls(), devices=TWO, pipeline_stages=3)
    untransferred = two_matmuls().replace(
        "linalg.matmul ins(%1", f"linalg.matmul {{stream.affinity = {B}}} ins(%0"
    )
    with pytest.raises(VerifyError, match="runs on @dev_1, but operand 0 is on @dev_0; transfer"):
        irees.compile(untransferred, devices=TWO)


def test_stages_are_balanced_and_equal_one_device(matrices):
    text = two_matmuls(own="").replace(f"%1 = flow.tensor.transfer %0 : {M} to {B}", "")
    text = text.replace("ins(%1, %c", "ins(%0, %c")
    for balance in ("flops", "memory"):
        program = irees.compile(text, pipeline_stages=2, pipeline_balance=balance)
        np.testing.assert_array_equal(program(*matrices), irees.compile(text)(*matrices))
    program = irees.compile(text, pipeline_stages=2)
    assert sorted(program.programs) == ["dev_0", "dev_1"]
    program.transfers.reset()
    program(*matrices)
    assert program.transfers.count == 1


def test_the_command_line_has_devices(tmp_path):
    source, trace = tmp_path / "two.mlir", tmp_path / "trace.json"
    source.write_text(two_matmuls().replace("512", "4"))
    flags = ["--device", "dev_0=cpu:0", "--device=dev_1=cpu:1"]
    command = [sys.executable, "-m", "irees.tools.main"]

    def run(*words: str) -> str:
        done = subprocess.run([*command, *words], capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        return done.stdout

    saved = str(tmp_path / "two.irees")
    run("compile", str(source), *flags, "-o", saved)
    inputs = ["--input=4x4xf32=1"] * 3
    expected = "--expected-output=4x4xf32=16"
    assert "SUCCESS" in run("run", saved, *inputs, expected)
    run("run", str(source), *flags, *inputs, expected, f"--trace-devices={trace}")
    assert len(json.loads(trace.read_text())["traceEvents"]) == 3
    text = run(
        "compile", str(source), *flags, "--annotate-input-affinities", "--compile-to=placement"
    )
    assert f"stream.affinities.results = [[{B}]]" in text


def test_the_same_program_is_not_compiled_again(matrices, monkeypatch):
    """The parts come from the cache, for these devices alone."""
    ran: list[object] = []
    real = build.run_phases
    # A patched compiler stores nothing.
    monkeypatch.setattr(build, "is_altered", lambda module, options: False)
    monkeypatch.setattr(build, "run_phases", lambda *a, **k: ran.append(a) or real(*a, **k))

    def compiled(devices: dict[str, str]) -> tuple[np.ndarray, list[object]]:
        ran.clear()
        return irees.compile(two_matmuls(), devices=devices)(*matrices), list(ran)

    want, _ = compiled(TWO)
    for devices, again in ((TWO, False), ({**TWO, "dev_1": "cpu:2"}, True)):
        got, passes = compiled(devices)
        np.testing.assert_array_equal(got, want)
        assert bool(passes) == again


def test_a_program_says_what_it_sends_and_what_its_parts_are(tmp_path, capsys):
    mixed = {"dev_0": "cpu:0", "dev_1": "reference:0"}
    program = irees.compile(two_matmuls(), devices=mixed)
    sent = {"function": "main", "from": "dev_0", "to": "dev_1", "bytes": 1 << 20}
    data = program.explain(as_data=True)
    assert (data["devices"], data["transfers"]) == (mixed, [sent])
    assert [len(part["dispatches"]) for part in data["parts"].values()] == [1]
    assert program.memory_analysis()["dev_0"]["constant_bytes"] == 0
    source = tmp_path / "two.mlir"
    source.write_text(two_matmuls())
    flags = [f"--device={name}={spec}" for name, spec in mixed.items()]
    assert main(["explain", str(source), *flags]) == 0
    text = capsys.readouterr().out
    assert "main: @dev_0 to @dev_1, 1,048,576 bytes" in text
    assert "@dev_0 = cpu:0\nfunctions:" in text
    assert "@dev_1 = reference:0\nnot compiled" in text
    assert main(["explain", str(source), *flags, "--input=512x512xf32=1"]) != 0
    assert "--trace-devices=FILE" in capsys.readouterr().err


def test_the_phases_of_the_parts_can_be_seen():
    """At stream level dispatches are on their devices, and the transfer is between them."""
    mixed = {"dev_0": "cpu:0", "dev_1": "reference:0"}
    module = irees.compile(two_matmuls(), devices=mixed, to="stream")
    functions = [op for op in module.walk() if op.name == "func.func"]
    where = {
        op.sym_name.data: str(op.attributes["stream.affinity"])
        for op in functions
        if any(inner.name == "stream.cmd.dispatch" for inner in op.walk())
    }
    assert where == {"main_0": A, "main_1": B}
    names = [op.name for op in functions[0].body.block.ops]
    assert [name for name in names if "tensor" not in name or "transfer" in name] == [
        "irees.invoke", "flow.tensor.transfer", "irees.invoke", "func.return",
    ]  # fmt: skip
    import_mlir(str(module)).verify()
    with pytest.raises(
        ArgumentError, match=r"no phase 'loops'; use one of input, placement, .*gen"
    ):
        irees.compile(two_matmuls(), devices=mixed, to="loops")


def test_specs_and_cores():
    specs = [DeviceSpec.parse(text) for text in ("cpu:0", "cpu:1", "cuda:0", "reference:2")]
    assert [str(spec) for spec in specs] == ["cpu:0", "cpu:1", "cuda:0", "reference:2"]
    assert DeviceSpec.parse("ray://127.0.0.1:6379/3") == DeviceSpec("ray", 3, "127.0.0.1:6379")
    shares = share_out(specs)
    assert set(shares) == set(specs[:2])
    assert all(shares.values())
    many = share_out([DeviceSpec("cpu", i) for i in range(64)])
    assert all(many.values())
    for wrong in ("", "cpu:", "cpu:x", "cpu:-1", "ray://x", "ray://h:1/", "gpu"):
        with pytest.raises(ArgumentError, match="is unknown"):
            DeviceSpec.parse(wrong)


def test_work_is_done_in_order():
    done: list[int] = []
    worker = Worker("test")
    futures = [worker.submit(lambda i=i: done.append(i)) for i in range(100)]
    futures[-1].result(60)
    assert done == list(range(100))


def test_a_damaged_schedule_is_refused():
    good = irees.compile(two_matmuls(), devices=TWO).record
    Schedule.read(good)
    for path, wrong in (
        (("functions",), 3),
        (("functions", 0, "blocks", 0, "steps", 0, "on"), "nobody"),
        (("functions", 0, "blocks", 0, "steps", 0, "import"), 99),
        (("functions", 0, "blocks", 0, "end"), {"br": [5, []]}),
        (("devices",), None),
    ):
        data = json.loads(json.dumps(good))
        place = data
        for key in path[:-1]:
            place = place[key]
        place[path[-1]] = wrong
        with pytest.raises(ParseError, match="schedule"):
            Schedule.read(data)


def test_a_full_pipeline_idles_by_its_bubble():
    """n requests of S equal stages take n + S - 1 stages where sending takes no time."""
    for stages, requests in ((2, 16), (8, 16), (8, 100)):
        told = forecast(
            pipeline(stages, 1000),
            {f"main_{i}": 0.5 for i in range(stages)},
            Link(0.0, 1e30),
            requests=requests,
            in_flight=requests,
        )
        assert told.seconds == pytest.approx(0.5 * (requests + stages - 1))
        assert told.bubble == pytest.approx((stages - 1) / (requests + stages - 1))
        assert set(told.link_bytes.values()) == {1000}
    one = forecast(
        pipeline(2, 1000), {"main_0": 1.0, "main_1": 1.0}, Link(0.25, 1e3), requests=3, in_flight=1
    )
    assert one.seconds == pytest.approx(3 * (1.0 + 1.25 + 1.0))
