"""
`torch.compile(model, backend="irees")`: PyTorch's graphs, forward and backward, as programs.

PyTorch finds this module by the entry point `torch_dynamo_backends`, so nothing has to be imported.
Each graph that Dynamo captures is taken apart by AOT autograd; operators that irees does not take
run in PyTorch, between the parts that it does.

Options are those of `irees.compile`, and

* `fallback` (True): False makes an operator that is not lowered an error;
* `freeze` (None): in inference, whether weights are constants of the program, packed once. None
  looks in each call whether one has changed, and takes weights as arguments until they stay as they
  are; True promises that none changes; False takes them as arguments.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch._functorch.aot_autograd import aot_module_simplified
from torch._functorch.partitioners import min_cut_rematerialization_partition
from torch.fx import GraphModule
from torch.optim.optimizer import register_optimizer_step_post_hook

from irees.compiler import rare_collections
from irees.errors import ArgumentError
from irees.frontends.torch.decomposing import graph_table
from irees.frontends.torch.partitioning import Part, parts_of, refused
from irees.options import Options
from irees.remarks import remark

from .calls import compile_graph

_log = logging.getLogger("irees")
SAMPLED = 16
"""Elements of a frozen weight that a call compares with what they were."""

CALM = 100
"""
Calls without a change after which weights are constants again. A policy, not a measurement: weights
that a training loop changes in each step are never packed, those of a model that serves are soon.
"""

_epoch = [0]


def _note_step(*_: Any) -> None:
    """Fused optimizers change parameters without their version counters."""
    _epoch[0] += 1


register_optimizer_step_post_hook(_note_step)


@dataclass(frozen=True)
class BackendOptions:
    """What `torch.compile(options=...)` may hold."""

    compiler: Options
    fallback: bool = True
    freeze: bool | None = None

    @staticmethod
    def make(options: dict[str, Any] | None) -> BackendOptions:
        """Raises ArgumentError for a name or a value that is none."""
        rest = dict(options or {})
        own = {name: rest.pop(name) for name in ("fallback", "freeze") if name in rest}
        for name, value in own.items():
            if not isinstance(value, bool) and not (name == "freeze" and value is None):
                raise ArgumentError(f"option {name!r} is {value!r}, but must be a bool")
        return BackendOptions(Options.make(**rest), **own)


def backend(
    gm: GraphModule,
    example_inputs: Sequence[Any],
    *,
    options: dict[str, Any] | None = None,
    mode: str | None = None,
) -> Callable[..., Any]:
    """
    The function that Dynamo calls for a graph; PyTorch's contract for back ends.

    Raises ArgumentError for an unknown option, and with `fallback` False UnsupportedError for an
    operator that is not lowered; PyTorch wraps both in BackendCompilerFailed. `mode` is ignored.
    """
    chosen = BackendOptions.make(options)

    def compiler(kind: str) -> Callable[..., Any]:
        return lambda graph, inputs: compiled(graph, inputs, kind, chosen)

    # A backward graph is compiled in the first backward pass, which may be in code that Dynamo
    # traces: it would trace the compiler.
    run = aot_module_simplified(
        gm,
        example_inputs,
        fw_compiler=compiler("forward"),
        bw_compiler=untraced(lambda *args: untraced(compiler("backward")(*args))),
        inference_compiler=compiler("inference"),
        partition_fn=partitioned,
        decompositions=graph_table(),
        keep_inference_input_mutations=True,
    )
    return untraced(run)


def untraced(function: Callable[..., Any]) -> Callable[..., Any]:
    """A function that Dynamo calls as it is."""
    return torch._dynamo.disable(function, reason="irees has compiled it, or compiles")


def partitioned(joint: GraphModule, *args: Any, **kwargs: Any) -> tuple[GraphModule, GraphModule]:
    """The forward and the backward graph, cut where the fewest bytes are kept between them."""
    # Importing it takes seconds, and only training needs it.
    from torch._inductor.fx_passes.joint_graph import canonicalize_quant_mapping

    # `invoke_quant` holds a tuple that the cut does not understand until this has rewritten it.
    canonicalize_quant_mapping(joint)
    return min_cut_rematerialization_partition(joint, *args, **kwargs)


@rare_collections()
def compiled(
    graph: GraphModule, inputs: Sequence[Any], kind: str, options: BackendOptions
) -> Callable[[list[Any]], Any]:
    """One graph of AOT autograd, as a function of one list, which it empties."""
    try:
        refusals = refused(graph)
    except Exception as error:  # sizes that are not understood before any operator is
        if not options.fallback:
            raise
        return in_pytorch(graph, error)
    for node, reason in refusals.reasons.items():
        if not options.fallback:
            raise reason
        remark("missed", "torch.compile", reason.location, f"runs in PyTorch: {reason.message}")
        _log.warning("irees: %s runs in PyTorch: %s", node.target, reason)
    if refusals.reasons:
        return boxed(Sequential(graph, parts_of(graph, refusals), options))
    try:
        if kind == "inference" and options.freeze is not False:
            static = _static_inputs(graph, inputs)
            if static:
                return boxed(Frozen(graph, static, options))
        return boxed(compile_graph(graph, options.compiler))
    except Exception as error:  # a defect of the compiler does not take the model away
        if not options.fallback:
            raise
        return in_pytorch(graph, error)


def in_pytorch(graph: GraphModule, error: Exception) -> Callable[[list[Any]], Any]:
    """A graph as PyTorch runs it, and the reason in the log."""
    _log.warning("irees: a graph runs in PyTorch: %s: %s", type(error).__name__, error)
    return boxed(torch.fx.Interpreter(graph).boxed_run)


def boxed(run: Callable[[list[Any]], Any]) -> Callable[[list[Any]], Any]:
    """PyTorch's calling convention: one list of arguments, emptied so that they can die early."""

    def call(args: list[Any]) -> Any:
        values = list(args)
        args.clear()
        return run(values)

    call._boxed_call = True  # type: ignore[attr-defined]
    return call


def _static_inputs(graph: GraphModule, inputs: Sequence[Any]) -> list[int]:
    """Placeholders that are parameters and buffers of modules, and that the graph only reads."""
    context = torch._guards.TracingContext.try_get()
    metadata = None if context is None else context.fw_metadata
    if metadata is None:
        return []
    placeholders = [n for n in graph.graph.nodes if n.op == "placeholder"]
    written = {
        node.args[0] for node in graph.graph.nodes if node.target is torch.ops.aten.copy_.default
    }
    return [
        i
        for i in metadata.static_input_indices
        if i < len(placeholders) and placeholders[i] not in written
        if all(isinstance(s, int) for s in inputs[i].shape)
    ]


@dataclass
class Stamp:
    """What tells whether a tensor is as it was: cheap to compare, and never wrong to distrust."""

    tensor: torch.Tensor
    pointer: int
    version: int
    epoch: int
    sample: torch.Tensor = field(repr=False)

    @staticmethod
    def of(tensor: torch.Tensor) -> Stamp:
        """The stamp of a tensor now. It keeps the tensor, so that its address is not used again."""
        return Stamp(tensor, tensor.data_ptr(), _version(tensor), _epoch[0], sampled(tensor))

    def fits(self, tensor: torch.Tensor) -> bool:
        """Whether address, version and optimizer steps are as they were."""
        return (
            tensor.data_ptr() == self.pointer
            and _version(tensor) == self.version
            and self.epoch == _epoch[0]
        )


def _version(tensor: torch.Tensor) -> int:
    return -1 if tensor.is_inference() else tensor._version


def sampled(tensor: torch.Tensor) -> torch.Tensor:
    """Some elements from all over a tensor."""
    flat = tensor.detach().reshape(-1) if tensor.is_contiguous() else tensor.detach().flatten()
    return flat[:: max(1, flat.numel() // SAMPLED)].clone()


@dataclass
class Weights:
    """Weights as they were found: the program that has them as constants, if there is one."""

    stamps: list[Stamp]
    run: Callable[[list[Any]], Any] | None = None
    calls: int = 0
    """How many calls have found them unchanged, of weights that are arguments."""


class Frozen:
    """
    A graph whose weights are constants, for as long as they do not change.

    Each call compares addresses, versions and optimizer steps of all weights, and a sample of one
    weight in turn. When one has changed, the graph is compiled again with weights as arguments.
    Weights that then stay as they are through `CALM` calls are constants again.
    """

    def __init__(self, graph: GraphModule, static: Sequence[int], options: BackendOptions):
        self.graph, self.static, self.options = graph, list(static), options
        self.lock = threading.Lock()
        self.current: Weights | None = None
        self.general: Callable[[list[Any]], Any] | None = None
        self.probe = 0

    def __call__(self, values: list[Any]) -> Any:
        # Read once: another thread may replace it during this call.
        current = self.current
        if current is None:
            current = self._first(values)
        elif self.options.freeze is not True and not self._unchanged(current.stamps, values):
            current = self._changed(values)
        elif current.run is None:
            current.calls += 1
            if current.calls >= CALM:
                current = self._calm(values, current)
        run = self.general if current.run is None else current.run
        assert run is not None
        return run(values)

    def _first(self, values: list[Any]) -> Weights:
        with self.lock:
            if self.current is None:
                self.current = self._frozen(values)
            return self.current

    def _frozen(self, values: list[Any]) -> Weights:
        """The program with these weights as constants."""
        stamps = self._stamps(values)
        return Weights(stamps, self._compiled({i: values[i].detach() for i in self.static}))

    def _stamps(self, values: list[Any]) -> list[Stamp]:
        return [Stamp.of(values[i]) for i in self.static]

    def _unchanged(self, stamps: list[Stamp], values: list[Any]) -> bool:
        if not all(stamp.fits(values[i]) for stamp, i in zip(stamps, self.static)):
            return False
        probe = self.probe = (self.probe + 1) % len(self.static)
        return torch.equal(sampled(values[self.static[probe]]), stamps[probe].sample)

    def _changed(self, values: list[Any]) -> Weights:
        """The program with weights as arguments, whose values are looked at from now on."""
        with self.lock:
            if self.general is None:
                _log.info("irees: weights have changed: they are arguments until they stay")
                self.general = self._compiled(None)
            self.current = Weights(self._stamps(values))
            return self.current

    def _calm(self, values: list[Any], current: Weights) -> Weights:
        """Constants again. Another thread may have made them, or found another change."""
        with self.lock:
            if self.current is current:
                self.current = self._frozen(values)
            return self.current or current

    def _compiled(self, weights: dict[int, torch.Tensor] | None) -> Callable[[list[Any]], Any]:
        try:
            return compile_graph(self.graph, self.options.compiler, weights)
        except Exception as error:
            if not self.options.fallback:
                raise
            return in_pytorch(self.graph, error)


class Sequential:
    """A graph in parts, those of irees compiled, the other operators PyTorch's."""

    def __init__(self, graph: GraphModule, parts: Sequence[Part], options: BackendOptions):
        nodes = list(graph.graph.nodes)
        self.placeholders = [n for n in nodes if n.op == "placeholder"]
        self.attributes = {n: _attribute(graph, n) for n in nodes if n.op == "get_attr"}
        self.output = next(n for n in nodes if n.op == "output").args[0]
        self.steps = [(part, self._compiled(part, options)) for part in parts]
        last: dict[Any, int] = {}
        for number, part in enumerate(parts):
            last.update(dict.fromkeys(part.inputs, number))
        kept = {n for n in nodes if any(u.op == "output" for u in n.users)}
        self.dying = [
            [n for n, at in last.items() if at == number and n not in kept]
            for number in range(len(parts))
        ]

    def _compiled(self, part: Part, options: BackendOptions) -> Callable[..., Any] | None:
        if part.module is None:
            return None
        try:
            return compile_graph(part.module, options.compiler)
        except Exception as error:
            if not options.fallback:
                raise
            _log.warning("irees: a part of a graph runs in PyTorch: %s", error)
            return torch.fx.Interpreter(part.module).boxed_run

    def __call__(self, values: list[Any]) -> Any:
        env: dict[Any, Any] = {**self.attributes, **dict(zip(self.placeholders, values))}
        values.clear()
        for (part, run), dying in zip(self.steps, self.dying):
            if run is not None:
                results = run([env[n] for n in part.inputs])
                env.update(zip(part.outputs, results))
            else:
                self._eager(part, env)
            for node in dying:
                env.pop(node, None)
        return torch.fx.node.map_arg(self.output, lambda node: env[node])

    def _eager(self, part: Part, env: dict[Any, Any]) -> None:
        """One operator in PyTorch, and the items of its result."""
        for node in part.nodes:
            args, kwargs = torch.fx.node.map_arg((node.args, node.kwargs), lambda n: env[n])
            env[node] = node.target(*args, **kwargs)  # type: ignore[operator]


def _attribute(module: Any, node: torch.fx.Node) -> Any:
    value = module
    for name in str(node.target).split("."):
        value = getattr(value, name)
    return value
