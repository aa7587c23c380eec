"""Long programs compile in time that grows with their length, and give the same bits."""

from __future__ import annotations

import time

import numpy as np
import pytest
from clock import at_most

import irees
from irees.analysis.body_weight import weight
from irees.frontends.mlir import import_mlir
from irees.targets.common import COMMON

TYPE = "tensor<64xf32>"
A = np.linspace(-1, 1, 64, dtype=np.float32)
B = np.linspace(0.5, 0.9, 64, dtype=np.float32)
OPS = ("addf", "mulf", "subf")


def chain(count: int, kind: str = TYPE, line: str = "") -> str:
    """`count` ops in a row on the result of the one before and an argument."""
    lines = [f"func.func @main(%a: {kind}, %b: {kind}) -> {kind} {{"]
    before = "%a"
    for i in range(count):
        made = line or "%v{i} = arith.{op} {x}, %b : {kind}"
        lines.append(made.format(i=i, op=OPS[i % len(OPS)], x=before, kind=kind))
        before = f"%v{i}"
    return "\n".join([*lines, f"return {before} : {kind}", "}"])


def computed(count: int) -> np.ndarray:
    x = A.copy()
    for i in range(count):
        x = (x + B, x * B, x - B)[i % len(OPS)]
    return x


def seconds(text: str, to: str | None = "dispatch-creation") -> float:
    module = import_mlir(text)
    begin = time.perf_counter()
    irees.compile(module, to=to)
    return time.perf_counter() - begin


def test_ten_thousand_elementwise_ops():
    # It takes 15 s; the square of that is an hour.
    with at_most(60):
        program = irees.compile(chain(10_000), fp="strict")
    np.testing.assert_array_equal(program(A, B), computed(10_000))


EXP = "%w{i} = math.exp %a : {kind}\n%v{i} = arith.addf {x}, %w{i} : {kind}"
SOFTMAX = (
    "%e{i} = tensor.empty() : {kind}\n"
    "%v{i} = linalg.softmax dimension(0) ins({x} : {kind}) outs(%e{i} : {kind}) -> {kind}"
)


@pytest.mark.parametrize(
    ("kind", "line", "count"),
    [
        (TYPE, "", 500),
        ("tensor<?xf32>", "", 250),
        (TYPE, EXP, 250),
        (TYPE, SOFTMAX, 100),
    ],
    ids=["static", "dynamic", "two producers", "reductions"],
)
def test_time_grows_with_the_length(kind, line, count):
    text, longer = chain(count, kind, line), chain(4 * count, kind, line)
    seconds(text)  # passes are loaded
    # 4 where all is linear; 16 were it the square.
    assert seconds(longer) < 9 * seconds(text) + 1


def kernels(text: str) -> list[int]:
    """The weights of the bodies of each kernel of a program."""
    module = irees.compile(import_mlir(text), to="dispatch-creation")
    found = []
    for executable in (op for op in module.walk() if op.name == "flow.executable"):
        generics = (op for op in executable.walk() if op.name == "linalg.generic")
        found.append(sum(map(weight, generics)))
    return found


def test_bodies_of_one_kernel_have_a_limit():
    assert len(kernels(chain(COMMON.most_weight // 2))) == 1
    heavy = kernels(chain(3 * COMMON.most_weight))
    assert len(heavy) > 2
    assert max(heavy) <= COMMON.most_weight
    of_exp = kernels(chain(COMMON.most_weight // 8, line="%v{i} = math.exp {x} : {kind}"))
    assert len(of_exp) > 1
    assert max(of_exp) <= COMMON.most_weight


TWICE = """
#a = affine_map<(d0, d1) -> (d0, d1)>
#b = affine_map<(d0, d1) -> (d1, d0)>
func.func @main(%v0: tensor<8x8xf32>) -> tensor<8x8xf32> {{
  %e = tensor.empty() : tensor<8x8xf32>
  {body}
  return %v{count} : tensor<8x8xf32>
}}
"""
STEP = """
  %v{next} = linalg.generic {{indexing_maps = [#a, #b, #a], iterator_types = ["parallel", "parallel"]}}
    ins(%v{i}, %v{i} : tensor<8x8xf32>, tensor<8x8xf32>) outs(%e : tensor<8x8xf32>) {{
  ^bb0(%x: f32, %y: f32, %z: f32):
    %s = arith.subf %x, %y : f32
    %t = arith.addf %s, %x : f32
    linalg.yield %t : f32
  }} -> tensor<8x8xf32>
"""


def test_what_reads_a_tensor_twice_does_not_double():
    """`x - transpose(x) + x`, forty times: 2^40 ops if each took its producer twice."""
    body = "".join(STEP.format(i=i, next=i + 1) for i in range(40))
    text = TWICE.format(body=body, count=40)
    assert max(kernels(text)) < COMMON.repeated_ops
    with at_most(20):
        program = irees.compile(text, fp="strict")
    x = want = np.random.default_rng(0).standard_normal((8, 8)).astype(np.float32) / 8
    for _ in range(40):
        want = (want - want.T) + want
    np.testing.assert_array_equal(program(x), want)
