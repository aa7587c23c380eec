"""
`torch.compile(model, backend="irees")`: compiles PyTorch's forward and backward graphs.

PyTorch finds this module through the entry point `torch_dynamo_backends`, without an import. AOT
autograd splits each graph that Dynamo captures into forward and backward graphs. Unsupported
operators run in PyTorch, between the compiled parts.

Options are those of `irees.compile`, and

* `fallback` (True): False makes an unsupported operator an error;
* `freeze` (None): in inference, whether weights are constants of the program, packed once. None
  checks in each call whether weights changed, and passes changed weights as arguments until they
  are stable again. True promises that they never change. False always passes them as arguments.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch._dynamo.exc import RestartAnalysis
from torch._functorch.aot_autograd import aot_module_simplified
from torch._functorch.partitioners import min_cut_rematerialization_partition
from torch.fx import GraphModule
from torch.optim.optimizer import register_optimizer_step_post_hook

from irees.collection import rare_collections
from irees.errors import ArgumentError, IreesError
from irees.frontends.torch.decomposing import graph_table
from irees.frontends.torch.exporting import reason as reason_of
from irees.frontends.torch.kernel_checks import refuse_dtypes
from irees.frontends.torch.partitioning import Part, parts_of, refused
from irees.frontends.torch.sharing import keep_memory_apart
from irees.options import Options
from irees.remarks import remark
from irees.target import Target

from .calls import compile_graph

_log = logging.getLogger("irees")
SAMPLED = 16
"""Approximate number of elements of a frozen weight that a call compares with a snapshot."""

CALM = 100
"""
Number of calls without a change after which weights become constants again. A policy, not a
measurement: weights that change in each training step are never packed, those of a model that
serves are packed soon.
"""

_epoch = [0]


def _note_step(*_: Any) -> None:
    """Counts optimizer steps: fused optimizers update parameters without a version bump."""
    _epoch[0] += 1


register_optimizer_step_post_hook(_note_step)


@dataclass(frozen=True)
class BackendOptions:
    """The options in `torch.compile(options=...)`."""

    compiler: Options
    fallback: bool = True
    freeze: bool | None = None

    @staticmethod
    def make(options: dict[str, Any] | None) -> BackendOptions:
        """
        Parses the options. Raises ArgumentError for an unknown name or an invalid value, and
        DeviceError for a GPU as the target on a machine that has none.
        """
        rest = dict(options or {})
        own = {name: rest.pop(name) for name in ("fallback", "freeze") if name in rest}
        for name, value in own.items():
            if not isinstance(value, bool) and not (name == "freeze" and value is None):
                raise ArgumentError(f"option {name!r} is {value!r}, but must be a bool")
        compiler = Options.make(**rest)
        Target.parse(compiler.target)
        return BackendOptions(compiler, **own)


def backend(
    gm: GraphModule,
    example_inputs: Sequence[Any],
    *,
    options: dict[str, Any] | None = None,
    mode: str | None = None,
) -> Callable[..., Any]:
    """
    Compiles a graph captured by Dynamo; this is PyTorch's interface for backends.

    Raises ArgumentError for an unknown option and, if `fallback` is False, UnsupportedError for an
    unsupported operator and PyTorch's error for a graph that it cannot make functional. PyTorch
    wraps all in BackendCompilerFailed. `mode` is ignored.
    """
    chosen = BackendOptions.make(options)

    def compiler(kind: str) -> Callable[..., Any]:
        return lambda graph, inputs: compiled(graph, inputs, kind, chosen)

    try:
        refuse_dtypes(gm, "example_value")
    except IreesError as error:
        if not chosen.fallback:
            raise
        _log.warning("irees: a graph runs in PyTorch, which refuses it: %s", error)
        return untraced(gm)
    # A backward graph is compiled in the first backward pass. That may run in code that Dynamo
    # traces, and Dynamo must not trace the compiler.
    try:
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
    except RestartAnalysis:  # not an error: Dynamo traces again, with a float as a constant
        raise
    except Exception as error:  # PyTorch cannot make the graph functional
        if isinstance(error, IreesError) or not chosen.fallback:
            raise
        why = reason_of(error)
        _log.warning("irees: a graph runs in PyTorch: %s: %s", type(error).__name__, why)
        return untraced(gm)
    return untraced(run)


def untraced(function: Callable[..., Any]) -> Callable[..., Any]:
    """Wraps a function so that Dynamo calls it without tracing."""
    return torch._dynamo.disable(function, reason="irees has compiled it, or compiles")


def partitioned(joint: GraphModule, *args: Any, **kwargs: Any) -> tuple[GraphModule, GraphModule]:
    """Partitions a joint graph into forward and backward, with the fewest saved bytes."""
    # Imported here because it takes seconds and only training needs it.
    from torch._inductor.fx_passes.joint_graph import canonicalize_quant_mapping

    # The partitioner does not support the tuple in `invoke_quant` before this rewrite.
    canonicalize_quant_mapping(joint)
    return min_cut_rematerialization_partition(joint, *args, **kwargs)


@rare_collections()
def compiled(
    graph: GraphModule, inputs: Sequence[Any], kind: str, options: BackendOptions
) -> Callable[[list[Any]], Any]:
    """Compiles one graph of AOT autograd to a boxed function."""
    try:
        refusals = refused(graph)
    except Exception as error:  # unsupported sizes, found before any operator is checked
        if not options.fallback:
            raise
        return in_pytorch(graph, error)
    for node, reason in refusals.reasons.items():
        if not options.fallback:
            raise reason
        remark("missed", "torch.compile", reason.location, f"runs in PyTorch: {reason.message}")
        _log.warning("irees: %s runs in PyTorch: %s", node.target, reason)
    keep_memory_apart(graph)
    if refusals.reasons:
        return boxed(Sequential(graph, parts_of(graph, refusals), options))
    try:
        if kind == "inference" and options.freeze is not False:
            static = _static_inputs(graph, inputs)
            if static:
                return boxed(Frozen(graph, static, options))
        return boxed(compile_graph(graph, options.compiler))
    except Exception as error:  # a compiler bug must not break the model
        if not options.fallback:
            raise
        return in_pytorch(graph, error)


def in_pytorch(graph: GraphModule, error: Exception) -> Callable[[list[Any]], Any]:
    """Returns a function that runs a graph in PyTorch, and logs the reason."""
    _log.warning("irees: a graph runs in PyTorch: %s: %s", type(error).__name__, error)
    return boxed(torch.fx.Interpreter(graph).boxed_run)


def boxed(run: Callable[[list[Any]], Any]) -> Callable[[list[Any]], Any]:
    """Adapts to PyTorch's boxed calls: one list of arguments, cleared so that they die early."""

    def call(args: list[Any]) -> Any:
        values = list(args)
        args.clear()
        return run(values)

    call._boxed_call = True  # type: ignore[attr-defined]
    return call


def _static_inputs(graph: GraphModule, inputs: Sequence[Any]) -> list[int]:
    """Numbers of placeholders that are module parameters or buffers, and are only read."""
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
    """A snapshot of a tensor's identity, to detect changes cheaply; false alarms are harmless."""

    tensor: torch.Tensor
    pointer: int
    version: int
    epoch: int
    sample: torch.Tensor = field(repr=False)

    @staticmethod
    def of(tensor: torch.Tensor) -> Stamp:
        """The stamp of a tensor. It keeps the tensor alive, so its address is not reused."""
        return Stamp(tensor, tensor.data_ptr(), _version(tensor), _epoch[0], sampled(tensor))

    def fits(self, tensor: torch.Tensor) -> bool:
        """Whether address, version and optimizer steps are unchanged."""
        return (
            tensor.data_ptr() == self.pointer
            and _version(tensor) == self.version
            and self.epoch == _epoch[0]
        )


def _version(tensor: torch.Tensor) -> int:
    return -1 if tensor.is_inference() else tensor._version


def sampled(tensor: torch.Tensor) -> torch.Tensor:
    """Evenly spaced elements of a tensor."""
    flat = tensor.detach().reshape(-1) if tensor.is_contiguous() else tensor.detach().flatten()
    return flat[:: max(1, flat.numel() // SAMPLED)].clone()


@dataclass
class Weights:
    """Stamps of the weights, and the program that has them as constants, if any."""

    stamps: list[Stamp]
    run: Callable[[list[Any]], Any] | None = None
    calls: int = 0
    """Number of calls that found the weights unchanged, while they are arguments."""


class Frozen:
    """
    A graph whose weights are constants as long as they do not change.

    Each call compares the addresses, versions and optimizer steps of all weights, and a sample of
    one weight (round-robin). When one has changed, the graph is recompiled with weights as
    arguments. After `CALM` calls without a change, weights become constants again.
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
        """Switches to the program with weights as arguments, and stamps the new weights."""
        with self.lock:
            if self.general is None:
                _log.info("irees: weights have changed: they are arguments until they stay")
                self.general = self._compiled(None)
            self.current = Weights(self._stamps(values))
            return self.current

    def _calm(self, values: list[Any], current: Weights) -> Weights:
        """Makes weights constants again, unless another thread has replaced `current`."""
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
    """A graph in parts: those that irees supports are compiled, the rest runs in PyTorch."""

    def __init__(self, graph: GraphModule, parts: Sequence[Part], options: BackendOptions):
        nodes = list(graph.graph.nodes)
        self.placeholders = [n for n in nodes if n.op == "placeholder"]
        self.attributes = {n: _attribute(graph, n) for n in nodes if n.op == "get_attr"}
        self.output = next(n for n in nodes if n.op == "output").args[0]
        self.steps = [(part, self._compiled(part, options)) for part in parts]
        kept = {n for n in nodes if any(u.op == "output" for u in n.users)}
        self.dying = _last_reads(parts, kept)

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
        """Runs one operator in PyTorch, and the `getitem` nodes of its results."""
        for node in part.nodes:
            args, kwargs = torch.fx.node.map_arg((node.args, node.kwargs), lambda n: env[n])
            env[node] = node.target(*args, **kwargs)  # type: ignore[operator]


def _last_reads(parts: Sequence[Part], kept: set[Any]) -> list[list[Any]]:
    """Returns the nodes, except those in `kept`, that no part after each part reads."""
    last: dict[Any, int] = {}
    for number, part in enumerate(parts):
        last.update(dict.fromkeys(part.inputs, number))
    return [
        [n for n, at in last.items() if at == number and n not in kept]
        for number in range(len(parts))
    ]


def _attribute(module: Any, node: torch.fx.Node) -> Any:
    value = module
    for name in str(node.target).split("."):
        value = getattr(value, name)
    return value
