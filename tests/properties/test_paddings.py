"""What a kernel computes in the middle of its padding is what it gave when that was copied there."""

from __future__ import annotations

import numpy as np
from hypothesis import event, given, settings
from hypothesis import strategies as st

import irees
from irees.frontends.mlir import import_mlir
from irees.testing import profiles
from irees.testing.oracles import Case, compiled_agrees, interpret

FACTOR = profiles.load()
SIZE = st.sampled_from([0, 1, 3, 4, 17])
PAD = st.sampled_from([0, 0, 1, 2])


def kind(shape) -> str:
    return "tensor<" + "".join(f"{n}x" for n in shape) + "f32>"


@st.composite
def padded(draw) -> tuple[str, list[np.ndarray], bool]:
    """A program, its inputs, and whether its padding can be a frame."""
    rank = draw(st.integers(1, 3))
    shape = [draw(SIZE) for _ in range(rank)]
    low, high = ([draw(PAD) for _ in shape] for _ in range(2))
    whole = [a + n + b for a, n, b in zip(low, shape, high, strict=True)]
    dims = ", ".join(f"d{d}" for d in range(rank))
    summed = draw(st.booleans())
    loops, reads = (f"{dims}, k", f"{dims}, k") if summed else (dims, dims)
    source = [*shape, 3] if summed else shape
    kinds = ["parallel"] * rank + ["reduction"] * summed
    iterators = ", ".join(f'"{k}"' for k in kinds)
    init = "%zeros" if summed else "%e"
    body = "arith.addf %a, %b" if summed else "math.absf %a"
    value = draw(st.sampled_from(["%c", "%s"]))
    also = draw(st.integers(0, 3)) == 0
    twice = draw(st.integers(0, 3)) == 0
    other = [n + 1 for n in whole]
    results = [kind(whole), *([kind(shape)] if also else []), *([kind(other)] if twice else [])]
    text = f"""
func.func @main(%x: {kind(source)}, %s: f32) -> ({", ".join(results)}) {{
  %c = arith.constant 2.5 : f32
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : {kind(shape)}
  %zeros = linalg.fill ins(%zero : f32) outs(%e : {kind(shape)}) -> {kind(shape)}
  %y = linalg.generic {{indexing_maps = [affine_map<({loops}) -> ({reads})>,
      affine_map<({loops}) -> ({dims})>], iterator_types = [{iterators}]}}
      ins(%x : {kind(source)}) outs({init} : {kind(shape)}) {{
  ^bb0(%a: f32, %b: f32):
    %v = {body} : f32
    linalg.yield %v : f32
  }} -> {kind(shape)}
  %g = tensor.empty() : {kind(whole)}
  %f = linalg.fill ins({value} : f32) outs(%g : {kind(whole)}) -> {kind(whole)}
  %r = tensor.insert_slice %y into %f{low} {shape} {[1] * rank} : {kind(shape)} into {kind(whole)}
"""
    returned = "%r"
    if also:
        returned += ", %y"
    if twice:
        text += f"""
  %h = tensor.empty() : {kind(other)}
  %i = linalg.fill ins(%s : f32) outs(%h : {kind(other)}) -> {kind(other)}
  %n = math.absf %s : f32
  %t = tensor.insert_slice %r into %i{[1] * rank} {whole} {[1] * rank} : {kind(whole)} into {kind(other)}
"""
        returned += ", %t"
    text += f"  return {returned} : {', '.join(results)}\n}}\n"
    numbers = np.random.default_rng(rank).standard_normal(source).astype(np.float32)
    return text, [numbers, np.float32(draw(st.sampled_from([-1.0, 0.0, np.nan])))], not also


@settings(max_examples=60 * FACTOR)
@given(padded())
def test_padding_in_place_gives_the_same_bits(case):
    text, inputs, frame = case
    module = import_mlir(text)
    cases = [Case("main", tuple(inputs))]
    expected = interpret(module, cases)
    assert compiled_agrees(module, cases, expected, isolate=False, fp="strict") == []
    module = irees.compile(module, to="dispatch-creation")
    dispatches = sum(op.name == "flow.executable" for op in module.body.block.ops)
    event(f"frame: {frame}, kernels: {min(dispatches, 3)}")
