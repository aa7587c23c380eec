"""
Calls a compiled graph with tensors.

Arguments are passed without a copy in their memory layout; results have the strides that PyTorch
expects. PyTorch's guards have checked dtypes, ranks and strides, so a call only passes pointers and
sizes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch.autograd.graph import increment_version
from torch.fx import GraphModule

from irees.build import build_cached
from irees.frontends.torch.graphs import Count, GraphProgram, Shared, import_graph
from irees.frontends.torch.layouts import inverse
from irees.options import Options
from irees.program_cache import program_of
from irees.runtime.program import Program, to_torch
from irees.runtime.signature import draw_seeds
from irees.runtime.torch_tensors import address_of


def restrided(value: torch.Tensor, offset: int, strides: Sequence[int]) -> torch.Tensor:
    """A copy with these strides, at an offset in its storage."""
    # Elements of an expanded dim alias: write the first one, then expand again.
    first = tuple(slice(0, 1) if s == 0 else slice(None) for s in strides)
    stored = value[first]
    extent = sum((n - 1) * s for n, s in zip(stored.shape, strides)) + 1 if stored.numel() else 0
    memory = torch.empty(offset + extent, dtype=value.dtype)
    memory.as_strided(stored.shape, strides, offset).copy_(stored)
    # A view of `memory` would not do: AOT autograd repeats views with the base that they name.
    result = torch.empty(0, dtype=value.dtype)
    return result.set_(memory.untyped_storage(), offset, value.shape, strides)  # type: ignore


def _numbers(counts: Sequence[Count], found: list[Any]) -> list[int]:
    """Sizes, strides or offsets, which results may have computed."""
    return [n if isinstance(n, int) else int(found[n.result]) for n in counts]


def _view(base: torch.Tensor, shared: Shared, found: list[Any]) -> torch.Tensor:
    """A view of an argument or of another result; that tensor if it is the same."""
    if shared.view is None:
        return base
    if base.is_complex() and not shared.fake.is_complex():
        base = torch.view_as_real(base)
    sizes, strides, (distance,) = (_numbers(counts, found) for counts in shared.view)
    result = base.as_strided(sizes, strides, base.storage_offset() + distance)
    result = result.conj() if shared.fake.is_conj() else result
    return torch._neg_view(result) if shared.fake.is_neg() else result


class Argument:
    """A tensor argument: its number, its placeholder, and the memory order of its dims."""

    __slots__ = ("dynamic", "number", "order", "place")

    def __init__(self, number: int, place: int, order: tuple[int, ...] | None):
        self.number, self.place, self.order = number, place, order
        self.dynamic: list[tuple[int, int]] = []
        """Pairs of an index among the dynamic dims of the call, and a stored dim."""

    def stored(self, tensor: torch.Tensor) -> torch.Tensor:
        """A contiguous copy of a tensor, with its dims in memory order."""
        plain = tensor.detach().resolve_conj().resolve_neg()
        if self.order is not None:
            plain = plain.permute(self.order)
        return plain.clone(memory_format=torch.contiguous_format)

    def logical(self, stored: torch.Tensor) -> torch.Tensor:
        """A view of a stored tensor with PyTorch's order of dims."""
        return stored if self.order is None else stored.permute(inverse(self.order))


class GraphCall:
    """
    Runs a compiled graph on a list of its placeholders' values, which must satisfy PyTorch's
    guards.
    """

    def __init__(self, program: GraphProgram, compiled: Program):
        self.function = compiled.functions["main"]
        self.program = program
        specs = self.function.arguments
        steps = list(enumerate(zip(program.kept, program.orders)))
        self.arrays = [Argument(n, i, o) for n, (i, o) in steps if specs[n].is_tensor]
        self.numbers = [(n, i) for n, (i, _) in steps if not specs[n].is_tensor]
        self.seeds = range(len(steps), len(steps) + program.seeds)
        by_number = {each.number: each for each in self.arrays}
        for k, (n, dim) in enumerate(self.function.dynamic_dims):
            by_number[n].dynamic.append((k, dim))
        self.by_place = {each.place: each for each in self.arrays}
        self.finish = list(zip(program.results, program.result_orders))

    def __call__(self, values: list[Any]) -> list[Any]:
        with self.function.frame() as frame:
            copies = self._bind(values, frame)
            outputs = self.function.launch(frame)
        found = [None if o is None else to_torch(o) for o in outputs]
        for result, place in self.program.updates:
            self._update(values[place], self.by_place[place], found[result], copies.get(place))
        shared = self.program.shared
        count = len(self.finish)
        results = [None if n in shared else self._result(n, found) for n in range(count)]
        for n, each in shared.items():
            base = values[each.base] if each.is_argument else results[each.base]
            results[n] = _view(base, each, found)
        return results[: self.program.outputs]

    def _bind(self, values: list[Any], frame: Any) -> dict[int, torch.Tensor]:
        """Fills the frame; returns the tensors that were copied, by placeholder."""
        pointers, dims, keep = frame.args, frame.dims, frame.pad.keep
        specs = self.function.arguments
        copies: dict[int, torch.Tensor] = {}
        for each in self.arrays:
            tensor, order = values[each.place], each.order
            address = address_of(tensor, specs[each.number].label, dense=order is not None)
            if order is None or tensor.is_conj() or tensor.is_neg():
                tensor = copies[each.place] = each.stored(tensor)
                keep.append(tensor)
                order = None
                address = tensor.data_ptr()
            pointers[each.number] = address
            for k, dim in each.dynamic:
                dims[k] = tensor.shape[dim if order is None else order[dim]]
        for n, i in self.numbers:
            pointers[n] = specs[n].bind(values[i], frame.pad)[0]
        for n, seed in zip(self.seeds, draw_seeds(len(self.seeds))):
            pointers[n] = specs[n].bind(seed, frame.pad)[0]
        return copies

    def _update(
        self,
        target: torch.Tensor,
        argument: Argument,
        result: torch.Tensor | None,
        copy: torch.Tensor | None,
    ) -> None:
        """Writes the new value of an updated argument to its tensor."""
        new = result if result is not None else copy
        if new is not None:
            target.copy_(argument.logical(new))
        elif not target.is_inference():
            # Updated in place: packed weights and saved tensors detect it by the version.
            increment_version(target)

    def _result(self, number: int, found: list[Any]) -> Any:
        """A result with the strides that PyTorch expects."""
        result, order = self.finish[number]
        value = result[1] if isinstance(result, tuple) else found[result]
        if order is not None:
            return value.permute(order)
        counts = self.program.strided.get(number)
        if counts is None:
            return value
        offset, *strides = _numbers(counts, found)
        return restrided(value, offset, strides)


def compile_graph(
    graph_module: GraphModule,
    options: Options,
    constants: dict[int, torch.Tensor] | None = None,
) -> Callable[[list[Any]], list[Any]]:
    """Compiles a graph; `constants` are placeholders to fold. Raises an IreesError."""
    program = import_graph(graph_module, constants)
    return GraphCall(program, program_of(build_cached(program.module, options)))
