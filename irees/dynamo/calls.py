"""
A graph as a compiled program that is called with tensors.

Arguments are taken as the memory that they are; results have the strides that PyTorch expects. What
PyTorch's guards promise is not looked at again: a call is pointers and sizes.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch.autograd.graph import increment_version
from torch.fx import GraphModule

from irees.build import build_cached
from irees.frontends.torch.graphs import GraphProgram, import_graph
from irees.options import Options
from irees.program_cache import program_of
from irees.runtime.program import Program, to_torch
from irees.runtime.signature import draw_seeds


def restrided(value: torch.Tensor, fake: Any) -> torch.Tensor:
    """A copy with the strides that are expected, where those are numbers."""
    strides = fake.stride()
    if not all(isinstance(s, int) for s in strides):
        return value
    # Elements of an expanded dim are one in memory: the first is written, and expanded again.
    first = tuple(slice(0, 1) if s == 0 else slice(None) for s in strides)
    stored = value[first]
    copy = torch.empty_strided(stored.shape, strides, dtype=value.dtype).copy_(stored)
    return copy if 0 not in strides else copy.expand(value.shape)


def callable_of(program: GraphProgram, compiled: Program) -> Callable[[list[Any]], list[Any]]:
    """
    What runs a compiled graph on a list of its placeholders' values. The tensors must be those
    that PyTorch's guards admit: dtypes, ranks and strides are not looked at again.
    """
    function = compiled.functions["main"]
    specs = function.arguments
    steps = list(zip(program.kept, program.orders, specs))
    numbers = [(i, n) for n, (i, _, spec) in enumerate(steps) if not spec.is_tensor]
    arrays = [(n, i, order, len(spec.dynamic) > 0) for n, (i, order, spec) in enumerate(steps)
              if spec.is_tensor]  # fmt: skip
    dynamic = [(n, dim) for n, dim in function.dynamic_dims]
    order_of = {n: order for n, _, order, _ in arrays}
    finish = list(zip(program.results, program.result_orders))
    seeds = range(len(steps), len(steps) + program.seeds)
    strided, updates = program.strided, program.updates

    def call(values: list[Any]) -> list[Any]:
        tensors: dict[int, torch.Tensor] = {}
        with function.frame() as frame:
            pointers, keep = frame.args, frame.pad.keep
            for n, i, order, _ in arrays:
                tensor = values[i]
                if order is None or tensor.is_conj() or tensor.is_neg():
                    tensor = tensor.detach().resolve_conj().resolve_neg()
                    tensor = (tensor if order is None else tensor.permute(order)).contiguous()
                    keep.append(tensor)
                    tensors[n] = tensor
                else:
                    tensors[n] = values[i]
                pointers[n] = tensor.data_ptr()
            for i, n in numbers:
                pointers[n] = specs[n].bind(values[i], frame.pad)[0]
            for n, seed in zip(seeds, draw_seeds(program.seeds)):
                pointers[n] = specs[n].bind(seed, frame.pad)[0]
            for k, (n, dim) in enumerate(dynamic):
                order = order_of[n]
                tensor = tensors[n]
                copied = order is None or tensor is not values[steps[n][0]]
                frame.dims[k] = tensor.shape[dim if copied else order[dim]]
            outputs = function.launch(frame)
        found = [None if o is None else to_torch(o) for o in outputs]
        for result, i in updates:
            if found[result] is not None:
                values[i].copy_(found[result])
            elif not values[i].is_inference():
                # Written in place: packed weights and saved tensors must be able to tell.
                increment_version(values[i])
        returned: list[Any] = []
        for position, (result, order) in enumerate(finish):
            value = result[1] if isinstance(result, tuple) else found[result]
            if order is not None:
                value = value.permute(order)
            elif position in strided:
                value = restrided(value, strided[position])
            returned.append(value)
        return returned

    return call


def compile_graph(
    graph_module: GraphModule,
    options: Options,
    constants: dict[int, torch.Tensor] | None = None,
) -> Callable[[list[Any]], list[Any]]:
    """The compiled graph. Raises an IreesError."""
    program = import_graph(graph_module, constants)
    return callable_of(program, program_of(build_cached(program.module, options)))
