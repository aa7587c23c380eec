"""Reshapes between ops move; what is computed does not change."""

from __future__ import annotations

from math import prod

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from irees.dialects import get_context
from irees.frontends.mlir import import_mlir, print_module
from irees.interpreters import Interpreter
from irees.transforms import load_pass

NAME = "irees-propagate-reshapes-by-expansion"


def kind(shape, dynamic) -> str:
    return "tensor<" + "".join("?x" if d else f"{n}x" for n, d in zip(shape, dynamic)) + "i32>"


def affine(rank: int, dims) -> str:
    loops = ", ".join(f"d{i}" for i in range(rank))
    return f"affine_map<({loops}) -> ({', '.join(f'd{i}' for i in dims)})>"


@st.composite
def chains(draw):
    """Reshapes, sums with an argument, transposes and reductions of a tensor, in any order."""
    arguments, values, lines = [], [], []

    def argument(type_: str, value: object) -> str:
        arguments.append(f"%a{len(arguments)}: {type_}")
        values.append(value)
        return arguments[-1].split(":")[0]

    def fresh(shape) -> np.ndarray:
        return np.array(draw(st.permutations(range(prod(shape)))), np.int32).reshape(shape)

    shape = draw(st.lists(st.sampled_from([2, 3, 1, 4, 6]), min_size=1, max_size=3))
    dynamic = [draw(st.booleans()) for _ in shape]
    name = argument(kind(shape, dynamic), fresh(shape))
    for number in range(draw(st.integers(1, 6))):
        result, before = f"%r{number}", kind(shape, dynamic)
        what = draw(st.sampled_from(["collapse", "expand", "add", "reduce"]))
        if what == "collapse":
            groups, at = [], 0
            while at < len(shape):
                count = draw(st.integers(1, len(shape) - at))
                groups.append(list(range(at, at + count)))
                at += count
            dynamic = [any(dynamic[i] for i in g) for g in groups]
            shape = [prod(shape[i] for i in g) for g in groups]
            after = kind(shape, dynamic)
            lines.append(
                f"{result} = tensor.collapse_shape {name} {groups} : {before} into {after}"
            )
        elif what == "expand" and len(shape) < 5:
            groups, sizes, dims, names = [], [], [], []
            for n, d in zip(shape, dynamic):
                divisor = draw(st.sampled_from([k for k in range(1, n + 1) if n % k == 0]))
                parts = [n // divisor, divisor] if draw(st.booleans()) else [n]
                groups.append(list(range(len(sizes), len(sizes) + len(parts))))
                place = draw(st.integers(0, len(parts) - 1))
                for i, part in enumerate(parts):
                    sizes.append(part)
                    dims.append(d and (i == place or draw(st.booleans())))
                    names.append(argument("index", np.int64(part)) if dims[-1] else str(part))
            shape, dynamic = sizes, dims
            after = kind(shape, dynamic)
            lines.append(
                f"{result} = tensor.expand_shape {name} {groups} "
                f"output_shape [{', '.join(names)}] : {before} into {after}"
            )
        else:
            rank = len(shape)
            drop = draw(st.integers(0, rank - 1)) if what == "reduce" and rank > 1 else None
            keep = draw(st.permutations([d for d in range(rank) if d != drop]))
            other, out = fresh(shape), [shape[d] for d in keep]
            out_dynamic = [dynamic[d] for d in keep]
            start = argument(kind(out, out_dynamic), fresh(out))
            second = argument(before, other)
            maps = [affine(rank, range(rank))] * 2 + [affine(rank, keep)]
            loops = ", ".join('"reduction"' if d == drop else '"parallel"' for d in range(rank))
            after = kind(out, out_dynamic)
            lines.append(
                f"{result} = linalg.generic {{indexing_maps = [{', '.join(maps)}], "
                f"iterator_types = [{loops}]}} ins({name}, {second} : {before}, {before}) "
                f"outs({start} : {after}) {{\n  ^bb0(%x: i32, %y: i32, %z: i32):\n"
                f"    %s{number} = arith.muli %x, %y : i32\n"
                f"    %t{number} = arith.subi %z, %s{number} : i32\n"
                f"    linalg.yield %t{number} : i32\n  }} -> {after}"
            )
            shape, dynamic = out, out_dynamic
        if any(result in line for line in lines[-1:]):
            name = result
    last = kind(shape, dynamic)
    lines.append(f"return {name} : {last}")
    body = "\n  ".join(lines)
    return f"func.func @main({', '.join(arguments)}) -> {last} {{\n  {body}\n}}\n", values


@settings(max_examples=150, deadline=None, suppress_health_check=list(HealthCheck))
@given(chains())
def test_propagation_changes_nothing(program):
    text, values = program
    module = import_mlir(text)
    moved = module.clone()
    load_pass(NAME)().apply(get_context(), moved)
    moved.verify()
    (expected,) = Interpreter(module).call("main", *values)
    (result,) = Interpreter(moved).call("main", *values)
    np.testing.assert_array_equal(result, expected, print_module(moved))


@pytest.mark.parametrize("first", [0, 2, 4])
@pytest.mark.parametrize("step", [16, 8, 10])
def test_tiles_of_workgroups(first, step):
    # Tiles of 8 from every offset that the loop has; only multiples of 4 are rows.
    text = f"""
#layout = #hal.pipeline.layout<bindings = [#hal.pipeline.binding<storage_buffer>]>
func.func @main(%x: tensor<2x4xi32>) {{
  %t = hal.interface.binding.subspan layout(#layout) binding(0)
    : !iree_tensor_ext.dispatch.tensor<writeonly:tensor<64xi32>>
  %z = arith.constant dense<0> : tensor<64xi32>
  %r = scf.forall (%i) = ({first}) to (56) step ({step}) shared_outs(%o = %z) -> (tensor<64xi32>) {{
    %s = tensor.extract_slice %o[%i] [8] [1] : tensor<64xi32> to tensor<8xi32>
    %e = tensor.expand_shape %s [[0, 1]] output_shape [2, 4] : tensor<8xi32> into tensor<2x4xi32>
    %a = arith.addi %e, %x : tensor<2x4xi32>
    %c = tensor.collapse_shape %a [[0, 1]] : tensor<2x4xi32> into tensor<8xi32>
    scf.forall.in_parallel {{
      tensor.parallel_insert_slice %c into %o[%i] [8] [1] : tensor<8xi32> into tensor<64xi32>
    }}
  }} {{mapping = [#iree_codegen.workgroup_mapping<x>]}}
  iree_tensor_ext.dispatch.tensor.store %r, %t, offsets = [0], sizes = [64], strides = [1]
    : tensor<64xi32> -> !iree_tensor_ext.dispatch.tensor<writeonly:tensor<64xi32>>
  return
}}
"""
    module = import_mlir(text)
    moved = module.clone()
    load_pass(NAME)().apply(get_context(), moved)
    moved.verify()
    found = []
    for each in (module, moved):
        binding = np.zeros(64, np.int32)
        interpreter = Interpreter(each)
        interpreter.bind([binding.view(np.uint8)])
        interpreter.call("main", np.arange(1, 9, dtype=np.int32).reshape(2, 4))
        found.append(binding)
    np.testing.assert_array_equal(*found)
    gone = not any(op.name == "tensor.collapse_shape" for op in moved.walk())
    assert gone == (first % 4 == 0 and step % 4 == 0)
