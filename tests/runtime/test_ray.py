"""Programs whose devices are actors of a Ray cluster: answers, order, errors, and actors that die."""

from __future__ import annotations

import os
import random
import signal
import sys
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest

import irees
from irees.errors import DeviceError, RuntimeTrap

sys.path.insert(0, str(Path(__file__).parent))
from ray_cluster import cluster

pytestmark = pytest.mark.skipif(
    find_spec("ray") is None, reason="ray is not installed; `pip install irees[ray]` installs it"
)

STAGES = """
func.func @main(%x: tensor<?xi32>, %d: tensor<?xi32>) -> tensor<?xi32> {
  %zero = arith.constant 0 : index
  %n = tensor.dim %x, %zero : tensor<?xi32>
  %o = tensor.empty(%n) : tensor<?xi32>
  %0 = linalg.mul {stream.affinity = #hal.device.promise<@dev_0>}
      ins(%x, %x : tensor<?xi32>, tensor<?xi32>) outs(%o : tensor<?xi32>) -> tensor<?xi32>
  %1 = flow.tensor.transfer %0 : tensor<?xi32>{%n} to #hal.device.promise<@dev_1>
  %2 = linalg.add ins(%1, %d : tensor<?xi32>, tensor<?xi32>) outs(%o : tensor<?xi32>)
      -> tensor<?xi32>
  return %2 : tensor<?xi32>
}
"""
STATE = """
util.global private mutable @count = dense<0> : tensor<4xi32>
func.func @main(%x: tensor<4xi32>) -> tensor<4xi32> {
  %c = util.global.load @count {stream.affinity = #hal.device.promise<@dev_0>} : tensor<4xi32>
  %o = tensor.empty() : tensor<4xi32>
  %0 = linalg.add {stream.affinity = #hal.device.promise<@dev_0>}
      ins(%c, %x : tensor<4xi32>, tensor<4xi32>) outs(%o : tensor<4xi32>) -> tensor<4xi32>
  util.global.store %0, @count {stream.affinity = #hal.device.promise<@dev_0>} : tensor<4xi32>
  return %0 : tensor<4xi32>
}
"""


@pytest.fixture(scope="module")
def address():
    with cluster(2) as found:
        yield found


def on_cluster(text: str, address: str):
    return irees.compile(
        text, devices={"dev_0": f"ray://{address}/0", "dev_1": f"ray://{address}/1"}
    )


@pytest.fixture(scope="module")
def program(address):
    return on_cluster(STAGES, address)


def request_of(number: int) -> tuple[np.ndarray, np.ndarray]:
    return np.arange(number % 5 + 1, dtype="i4") + number, np.full(number % 5 + 1, 7, "i4")


def answer_to(number: int) -> np.ndarray:
    x, d = request_of(number)
    return x * x + d


def test_answers_are_those_of_one_device(program):
    program.transfers.reset()
    np.testing.assert_array_equal(program(*request_of(3)), answer_to(3))
    assert program.transfers.count == 1
    assert program.devices["dev_0"].process() != program.devices["dev_1"].process()


def test_small_arguments_travel_with_the_call(program):
    import ray

    device = program.devices["dev_0"]
    small, large = np.arange(4), np.zeros(1 << 20)
    assert device.take(small) is small
    assert isinstance(device.take(large), ray.ObjectRef)
    assert device.fetch(device.take(small)) is not small
    x, d = request_of(4)
    begun = program.main().start(x, d)
    x[:] = 0
    np.testing.assert_array_equal(program.main().finish(begun), answer_to(4))


def test_a_stream_is_answered_in_order(program):
    answers = program.stream((request_of(i) for i in range(40)), in_flight=8)
    for number, answer in enumerate(answers):
        np.testing.assert_array_equal(answer, answer_to(number))


def test_no_more_requests_are_asked_for_than_may_be_in_flight(program):
    begun = 0

    def requests():
        nonlocal begun
        for i in range(20):
            begun += 1
            yield request_of(i)

    for done, _ in enumerate(program.stream(requests(), in_flight=4)):
        assert begun <= done + 4


def test_an_error_of_a_device_is_that_of_one_device(program):
    bad = np.arange(3, dtype="i4"), np.arange(2, dtype="i4")
    with pytest.raises((RuntimeTrap, irees.errors.ArgumentError)):
        program(*bad)
    found = list(program.stream([request_of(1), bad, request_of(2)], on_error="yield"))
    assert isinstance(found[1], irees.errors.IreesError)
    np.testing.assert_array_equal(found[2], answer_to(2))


def answered(program, requests: int, kills: int, seed: int) -> tuple[int, int]:
    """How many requests got right answers and typed errors, with actors killed at random."""
    choose = random.Random(seed)
    when = set(choose.sample(range(requests), kills))
    right = errors = 0
    stream = program.stream((request_of(i) for i in range(requests)), on_error="yield")
    for number, answer in enumerate(stream):
        if isinstance(answer, DeviceError):
            errors += 1
        else:
            np.testing.assert_array_equal(answer, answer_to(number))
            right += 1
        if number in when:
            device = program.devices[choose.choice(("dev_0", "dev_1"))]
            os.kill(device.process(), signal.SIGKILL)
    return right, errors


def test_requests_of_an_actor_that_dies_are_run_again(program):
    assert answered(program, requests=40, kills=2, seed=1) == (40, 0)


@pytest.mark.skipif(
    "IREES_SOAK" not in os.environ, reason="takes minutes; IREES_SOAK=1 runs it, here alone"
)
def test_a_thousand_requests_and_ten_deaths(program):
    right, errors = answered(program, requests=1000, kills=10, seed=2)
    assert right + errors == 1000
    print(f"\n{right} right answers, {errors} typed errors")


def test_what_keeps_state_is_lost_with_its_actor(address):
    program = on_cluster(STATE, address)
    ones = np.ones(4, "i4")
    assert [int(program(ones)[0]) for _ in range(3)] == [1, 2, 3]
    os.kill(program.devices["dev_0"].process(), signal.SIGKILL)
    with pytest.raises(DeviceError, match=r"device @dev_0 \(ray://.*\) failed: "):
        list(program.stream([ones] * 3))


def test_a_node_that_there_is_not(address):
    with pytest.raises(DeviceError, match=r"the cluster has only 2 nodes"):
        irees.compile(
            STAGES, devices={"dev_0": f"ray://{address}/0", "dev_1": f"ray://{address}/7"}
        )


def test_another_cluster(program, address):
    with pytest.raises(DeviceError, match=f"connected to the Ray cluster at {address}, not at"):
        on_cluster(STAGES, "127.0.0.1:1")


def test_without_ray(monkeypatch):
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(DeviceError, match=r"ray cannot be imported.*pip install irees\[ray\]"):
        on_cluster(STAGES, "127.0.0.1:1")
