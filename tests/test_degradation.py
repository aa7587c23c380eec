"""An optional pass may be left out, raise, or break the IR: the program is still right."""

from __future__ import annotations

import numpy as np
import pytest
from xdsl.dialects import func
from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass

import irees
from irees.errors import ArgumentError, InternalError
from irees.frontends.mlir import import_mlir
from irees.pipeline import OPTIONAL, PHASES
from irees.remarks import collect

PROGRAM = """
#rows = affine_map<(d0, d1) -> (d0, d1)>
#sums = affine_map<(d0, d1) -> (d0)>
func.func @main(%x: tensor<6x32xf32>) -> (tensor<6xf32>, tensor<1x6x40xf32>) {
  %zero = arith.constant 0.0 : f32
  %w = arith.constant dense_resource<w> : tensor<32x40xf32>
  %e = tensor.empty() : tensor<6x32xf32>
  %n = linalg.generic {indexing_maps = [#rows, #rows], iterator_types = ["parallel", "parallel"]} ins(%x : tensor<6x32xf32>) outs(%e : tensor<6x32xf32>) {
  ^bb0(%a: f32, %o: f32):
    %b = arith.negf %a : f32
    linalg.yield %b : f32
  } -> tensor<6x32xf32>
  %v = tensor.empty() : tensor<6xf32>
  %s = linalg.fill ins(%zero : f32) outs(%v : tensor<6xf32>) -> tensor<6xf32>
  %r:2 = linalg.generic {indexing_maps = [#rows, #sums, #sums], iterator_types = ["parallel", "reduction"]} ins(%n : tensor<6x32xf32>) outs(%s, %s : tensor<6xf32>, tensor<6xf32>) {
  ^bb0(%a: f32, %p: f32, %q: f32):
    %b = arith.addf %a, %p : f32
    %c = arith.maximumf %a, %q : f32
    linalg.yield %b, %c : f32, f32
  } -> (tensor<6xf32>, tensor<6xf32>)
  %u = tensor.empty() : tensor<6x40xf32>
  %f = linalg.fill ins(%zero : f32) outs(%u : tensor<6x40xf32>) -> tensor<6x40xf32>
  %m = linalg.matmul ins(%n, %w : tensor<6x32xf32>, tensor<32x40xf32>) outs(%f : tensor<6x40xf32>) -> tensor<6x40xf32>
  %h = tensor.expand_shape %m [[0, 1], [2]] output_shape [1, 6, 40] : tensor<6x40xf32> into tensor<1x6x40xf32>
  return %r#0, %h : tensor<6xf32>, tensor<1x6x40xf32>
}
{-# dialect_resources: { builtin: { w: "0x04000000WEIGHT" } } #-}
"""
WEIGHT = np.arange(32 * 40, dtype=np.float32).reshape(32, 40) % 5
TEXT = PROGRAM.replace("WEIGHT", WEIGHT.tobytes().hex())


def is_right(program) -> bool:
    """Whole numbers: right is equal."""
    x = np.arange(6 * 32, dtype=np.float32).reshape(6, 32) % 7
    sums, product = program(x)
    return np.array_equal(sums, -x.sum(1)) and np.array_equal(product, (-x @ WEIGHT)[None])


def compile_anew():
    """A module is compiled each time; text might come from the cache, and meet no fault."""
    return irees.compile(import_mlir(TEXT))


def pass_class(name: str) -> type[ModulePass]:
    return next(type(p) for phase in PHASES for p in phase.passes if p.name == name)


def break_ir(module: ModuleOp) -> None:
    """Takes the results away that a function says it returns."""
    end = next(o for o in module.walk() if isinstance(o, func.ReturnOp) and o.operands)
    end.operands = []


def test_every_optional_pass_is_in_the_pipeline():
    assert {p.name for phase in PHASES for p in phase.passes} >= OPTIONAL


@pytest.mark.parametrize("name", sorted(OPTIONAL))
def test_one_pass_left_out(name):
    heard: list[str] = []
    program = irees.compile(
        import_mlir(TEXT), disable_pass=(name,), listener=lambda n, *_: heard.append(n)
    )
    assert is_right(program)
    assert name not in heard


def test_all_optional_passes_left_out():
    assert is_right(irees.compile(TEXT, disable_pass=tuple(OPTIONAL)))


@pytest.mark.parametrize("name", sorted(OPTIONAL))
@pytest.mark.parametrize("fault", ["raises", "raises half way", "breaks the IR"])
def test_a_pass_that_fails_is_left_out(name, fault, monkeypatch):
    def apply(self, ctx, op):
        if fault != "raises":
            break_ir(op)
        if fault != "breaks the IR":
            raise IndexError("list index out of range")

    monkeypatch.setattr(pass_class(name), "apply", apply)
    with collect() as remarks:
        program = compile_anew()
    assert is_right(program)
    assert [r.pass_name for r in remarks if r.kind == "failed"] == [name]


def test_a_pass_that_is_needed_is_reported(monkeypatch):
    def apply(self, ctx, op):
        raise IndexError("list index out of range")

    monkeypatch.setattr(pass_class("irees-bufferize-dispatch"), "apply", apply)
    with pytest.raises(InternalError, match="irees-bufferize-dispatch failed: IndexError"):
        compile_anew()


def test_a_pass_that_is_needed_cannot_be_disabled():
    with pytest.raises(ArgumentError, match="'irees-bufferize-dispatch' cannot be left out"):
        irees.compile(TEXT, disable_pass=("irees-bufferize-dispatch",))
