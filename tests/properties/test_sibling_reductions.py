"""
Sums of groups of channels and what they scale: the same bits, however reshapes and kernels fall.

The programs are group norms in pieces: one or two sums over a tensor, the second perhaps around
what the first gave for this group or for another, scales per channel through a reshape or a
gather, and what is scaled in another shape.
"""

from __future__ import annotations

from itertools import product
from math import prod

import numpy as np
from hypothesis import event, given, settings
from hypothesis import strategies as st

import irees
from irees.frontends.mlir import import_mlir
from irees.testing import profiles
from irees.testing.oracles import Case, compiled_agrees, interpret

FACTOR = profiles.load()


def dense(values) -> str:
    return f"dense<{np.asarray(values).tolist()}> : tensor<{len(values)}xi64>"


@st.composite
def norms(draw) -> tuple[str, tuple[int, ...], tuple[int, int]]:
    """A program, and the shapes of its inputs."""
    groups, per_group = draw(st.sampled_from([1, 3, 16])), draw(st.sampled_from([1, 2, 4]))
    pixels = draw(st.sampled_from([(3,), (2, 5), (1, 64), (16, 4)]))
    channels, count = groups * per_group, prod(pixels)
    x = f"tensor<{channels}x{'x'.join(map(str, pixels))}xf32>"
    g, c = f"tensor<{groups}xf32>", f"tensor<{channels}xf32>"
    gc, gcp = f"tensor<{groups}x{per_group}xf32>", f"tensor<{groups}x{per_group}x{count}xf32>"
    rank = len(pixels)
    flat = [[0], list(range(1, 1 + rank))]
    two = draw(st.booleans())
    centre = draw(st.sampled_from(["%none", "%sum", "%back"]))
    places = list(product(range(groups), range(per_group)))
    if draw(st.integers(0, 3)) == 0:
        places = places[::-1]
    if draw(st.booleans()):
        per_channel = f"""
  %i = arith.constant {dense([p for p, _ in places])}
  %j = arith.constant {dense([q for _, q in places])}
  %ec = tensor.empty() : {c}
  %pc = linalg.generic {{indexing_maps = [#c, #c, #c], iterator_types = ["parallel"]}}
      ins(%i, %j : tensor<{channels}xi64>, tensor<{channels}xi64>) outs(%ec : {c}) {{
  ^bb0(%a: i64, %b: i64, %o: f32):
    %p = arith.index_cast %a : i64 to index
    %q = arith.index_cast %b : i64 to index
    %v = tensor.extract %scale[%p, %q] : {gc}
    linalg.yield %v : f32
  }} -> {c}"""
    else:
        per_channel = f"  %pc = tensor.collapse_shape %scale [[0, 1]] : {gc} into {c}"
    second = "%other" if two else "%sum"
    pixel_dims = ", ".join(f"p{n}" for n in range(rank))
    kinds = ", ".join(['"parallel"'] * (1 + rank))
    also = draw(st.sampled_from(["", "", "%sum", "%back"]))
    text = f"""
#c = affine_map<(c) -> (c)>
#gcp = affine_map<(g, c, p) -> (g, c, p)>
#g3 = affine_map<(g, c, p) -> (g)>
#gc = affine_map<(g, c) -> (g, c)>
#g2 = affine_map<(g, c) -> (g)>
#x = affine_map<(c, {pixel_dims}) -> (c, {pixel_dims})>
#xc = affine_map<(c, {pixel_dims}) -> (c)>
func.func @main(%x: {x}, %w: {gc}) -> ({x}{", " + g if also else ""}) {{
  %zero = arith.constant 0.0 : f32
  %f = tensor.collapse_shape %x {flat} : {x} into tensor<{channels}x{count}xf32>
  %y = tensor.expand_shape %f [[0, 1], [2]] output_shape [{groups}, {per_group}, {count}]
      : tensor<{channels}x{count}xf32> into {gcp}
  %eg = tensor.empty() : {g}
  %none = linalg.fill ins(%zero : f32) outs(%eg : {g}) -> {g}
  %sum = linalg.generic {{indexing_maps = [#gcp, #g3],
      iterator_types = ["parallel", "reduction", "reduction"]}} ins(%y : {gcp}) outs(%none : {g}) {{
  ^bb0(%a: f32, %o: f32):
    %v = arith.addf %o, %a : f32
    linalg.yield %v : f32
  }} -> {g}
  %back = linalg.generic {{indexing_maps = [#c], iterator_types = ["parallel"]}} outs(%eg : {g}) {{
  ^bb0(%o: f32):
    %last = arith.constant {groups - 1} : index
    %n = linalg.index 0 : index
    %m = arith.subi %last, %n : index
    %v = tensor.extract %sum[%m] : {g}
    linalg.yield %v : f32
  }} -> {g}
  %other = linalg.generic {{indexing_maps = [#gcp, #g3, #g3],
      iterator_types = ["parallel", "reduction", "reduction"]}}
      ins(%y, {centre} : {gcp}, {g}) outs(%none : {g}) {{
  ^bb0(%a: f32, %b: f32, %o: f32):
    %d = arith.subf %a, %b : f32
    %m = arith.mulf %d, %d : f32
    %v = arith.addf %o, %m : f32
    linalg.yield %v : f32
  }} -> {g}
  %eq = tensor.empty() : {gc}
  %scale = linalg.generic {{indexing_maps = [#g2, #g2, #gc, #gc],
      iterator_types = ["parallel", "parallel"]}}
      ins(%sum, {second}, %w : {g}, {g}, {gc}) outs(%eq : {gc}) {{
  ^bb0(%a: f32, %b: f32, %s: f32, %o: f32):
    %d = arith.subf %a, %b : f32
    %v = arith.mulf %d, %s : f32
    linalg.yield %v : f32
  }} -> {gc}
{per_channel}
  %ex = tensor.empty() : {x}
  %r = linalg.generic {{indexing_maps = [#x, #xc, #x], iterator_types = [{kinds}]}}
      ins(%x, %pc : {x}, {c}) outs(%ex : {x}) {{
  ^bb0(%a: f32, %b: f32, %o: f32):
    %v = arith.mulf %a, %b : f32
    linalg.yield %v : f32
  }} -> {x}
  return %r{", " + also if also else ""} : {x}{", " + g if also else ""}
}}
"""
    return text, (channels, *pixels), (groups, per_group)


@settings(max_examples=40 * FACTOR)
@given(norms())
def test_norms_in_fewer_kernels_give_the_same_bits(case):
    text, shape, scale = case
    random = np.random.default_rng(0)
    inputs = [random.standard_normal(n).astype(np.float32) for n in (shape, scale)]
    module = import_mlir(text)
    cases = [Case("main", tuple(inputs))]
    expected = interpret(module, cases)
    assert compiled_agrees(module, cases, expected, isolate=False, fp="strict") == []
    module = irees.compile(module, to="dispatch-creation")
    event(f"kernels: {sum(op.name == 'flow.executable' for op in module.body.block.ops)}")
