"""`time_dispatches`: what each dispatch took, and no trace of it without the option."""

from __future__ import annotations

import itertools
import threading

import numpy as np
import pytest

import irees
import irees.runtime.services
from irees.errors import ArgumentError, ToolchainError
from irees.runtime import timing
from irees.runtime.services import Services

TEXT = """
#id = affine_map<(i, j) -> (i, j)>
#row = affine_map<(i, j) -> (i)>
func.func @main(%x: tensor<64x256xf32>) -> tensor<64x64xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<64x64xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<64x64xf32>) -> tensor<64x64xf32>
  %t = tensor.empty() : tensor<256x64xf32>
  %y = linalg.transpose ins(%x : tensor<64x256xf32>) outs(%t : tensor<256x64xf32>)
                        permutation = [1, 0]
  %r = linalg.matmul ins(%x, %y : tensor<64x256xf32>, tensor<256x64xf32>)
                     outs(%f : tensor<64x64xf32>) -> tensor<64x64xf32>
  return %r : tensor<64x64xf32>
}
"""
LOOP = """
func.func @main(%x: tensor<8xf32>, %n: index) -> tensor<8xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %r = scf.for %i = %c0 to %n step %c1 iter_args(%a = %x) -> (tensor<8xf32>) {
    %e = tensor.empty() : tensor<8xf32>
    %s = linalg.add ins(%a, %x : tensor<8xf32>, tensor<8xf32>) outs(%e : tensor<8xf32>) -> tensor<8xf32>
    scf.yield %s : tensor<8xf32>
  }
  return %r : tensor<8xf32>
}
"""
X = np.ones((64, 256), np.float32)


def test_every_kernel_has_its_time():
    program = irees.compile(TEXT, time_dispatches=True)
    data = program.explain([X], peaks=(100.0, 10.0), as_data=True)
    assert {each["name"] for each in data["dispatches"]} == {
        kernel["name"] for kernel in program.manifest["kernels"]
    }
    for each in data["dispatches"]:
        assert 0 < each["seconds"] < data["seconds"]
    product = next(each for each in data["dispatches"] if "contract" in each["summary"])
    assert product["flops"] == 2 * 64 * 64 * 256
    assert product["gflops"] == pytest.approx(product["flops"] / product["seconds"] / 1e9)
    assert product["of_peak"] == pytest.approx(product["gflops"] / 100)
    assert product["groups"][0]["strategy"] == "contraction"
    assert sum(each["share"] for each in data["dispatches"]) <= 1.05


def test_the_text_has_a_line_for_each():
    program = irees.compile(TEXT, time_dispatches=True)
    lines = program.explain([X], peaks=(100.0, 10.0)).splitlines()
    head = next(line for line in lines if line.startswith("dispatch "))
    rows = [line for line in lines if line.startswith("main_dispatch_")]
    assert len(rows) == len(program.manifest["kernels"])
    assert all(len(row) <= len(head) for row in rows)
    assert any("peaks: 100 GFLOP/s, copies 10.0 GB/s" in line for line in lines)


def test_results_and_kernels_are_the_same():
    plain, timed = irees.compile(TEXT), irees.compile(TEXT, time_dispatches=True)
    assert np.array_equal(plain(X), timed(X))
    assert {k: v for k, v in plain.sources.items() if k != "host"} == {
        k: v for k, v in timed.sources.items() if k != "host"
    }
    assert "call->trace" not in plain.sources["host"]


def test_dispatches_in_a_loop_add_up_and_more_than_fit_are_noted_next_time(monkeypatch):
    monkeypatch.setattr(timing, "FIRST_EVENTS", 8)
    program = irees.compile(LOOP, time_dispatches=True)
    x = np.ones(8, np.float32)
    assert program(x, 100)[0] == 101
    assert program.tracer.calls == []
    program(x, 100)
    assert [len(found) for found in program.tracer.calls] == [1]


def test_threads_do_not_mix():
    program = irees.compile(TEXT, time_dispatches=True)
    threads = [threading.Thread(target=program, args=(X,)) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    names = {kernel["name"] for kernel in program.manifest["kernels"]}
    assert [set(found) for found in program.tracer.calls] == [names] * 8


def test_a_saved_program_keeps_its_times(tmp_path):
    irees.compile(TEXT, time_dispatches=True).save(tmp_path / "x.irees")
    program = irees.load(tmp_path / "x.irees")
    assert program.explain([X], as_data=True)["seconds"] > 0


def test_what_cannot_be_timed():
    program = irees.compile(TEXT)
    with pytest.raises(ArgumentError, match="does not time its dispatches; compile it with"):
        program.explain([X])
    with pytest.raises(ArgumentError, match="no function 'other' to time"):
        irees.compile(TEXT, time_dispatches=True).explain([X], function="other")
    with pytest.raises(ArgumentError, match="compiled without dispatch traces"):
        irees.compile(TEXT, time_dispatches=True).trace_to(None)


@pytest.mark.parametrize("other", [{"trace_dispatch_tensors": True}, {"target": "reference"}])
def test_options_that_exclude_it(other):
    with pytest.raises(ArgumentError, match=r"time_dispatches and .* exclude each other"):
        irees.compile(TEXT, time_dispatches=True, **other)
    with pytest.raises(ArgumentError, match="must be a bool"):
        irees.compile(TEXT, time_dispatches="yes")


def test_a_runtime_without_times():
    """That of a program that an older version saved, loaded first."""

    class Old(Services):
        def __init__(self):
            self._time = None

    with pytest.raises(ToolchainError, match="does not support timing"):
        Old().timing_address()


def test_the_timeline_has_the_parts_of_all_threads():
    before = irees.runtime.services.num_threads()
    irees.set_num_threads(2)
    try:
        # Milliseconds of work: a thread that sleeps is late for microseconds.
        large = TEXT.replace("64", "640").replace("256", "1024")
        program = irees.compile(large, time_dispatches=True)
        # On a busy machine one thread may do all parts of a run.
        for _ in range(100):
            data = program.explain([np.ones((640, 1024), np.float32)], as_data=True)
            if len({event["device"] for event in data["timeline"]}) == 2:
                break
    finally:
        irees.set_num_threads(before)
    events = data["timeline"]
    assert {event["name"] for event in events} == {row["name"] for row in data["dispatches"]}
    assert {event["device"] for event in events} == {"thread 0", "thread 1"}
    lanes = [[e for e in events if e["device"] == f"thread {n}"] for n in (0, 1)]
    for lane in lanes:
        lane.sort(key=lambda event: event["begin"])
        assert all(event["begin"] <= event["end"] for event in lane)
        assert all(a["end"] <= b["begin"] for a, b in itertools.pairwise(lane))
    assert max(e["end"] for e in events) - min(e["begin"] for e in events) < 10 * data["seconds"]


def test_parts_beyond_the_room_are_dropped(monkeypatch):
    monkeypatch.setattr(timing, "PARTS_PER_EVENT", 0)
    program = irees.compile(TEXT, time_dispatches=True)
    program(X)
    assert {event.device for event in program.tracer.timeline()} == {"thread 0"}


def test_no_timeline_before_a_call():
    assert irees.compile(TEXT, time_dispatches=True).tracer.timeline() == []
