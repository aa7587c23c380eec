"""Explains what `torch.compile(backend="irees")` would do with a model, without compiling it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch._dynamo.exc import RestartAnalysis
from torch._functorch.aot_autograd import aot_module_simplified
from torch.fx import GraphModule, Node

from irees.errors import IreesError, describe_location
from irees.fence import fenced, let_through
from irees.frontends.torch.decomposing import graph_table
from irees.frontends.torch.exporting import reason as reason_of
from irees.frontends.torch.lines import users_line
from irees.frontends.torch.partitioning import refused

from .backend import boxed, untraced


@dataclass(frozen=True)
class Left:
    """An operator that runs in PyTorch: its name, the reason, and its source line."""

    operator: str
    reason: str
    line: str


@dataclass
class Explanation:
    """
    The graphs that Dynamo captured: the number of operators of each, and those that run in
    PyTorch. `str` formats it as a report.
    """

    operators: list[int] = field(default_factory=list)
    left: list[list[Left]] = field(default_factory=list)
    breaks: list[str] = field(default_factory=list)
    """Reasons for Dynamo's graph breaks."""

    def __str__(self) -> str:
        lines: list[str] = []
        for number, (count, left) in enumerate(zip(self.operators, self.left)):
            lines.append(f"graph {number}: {count - len(left)} of {count} operators in irees")
            lines += [
                f"  in PyTorch: {x.line or '(no line)'}: {x.operator}: {x.reason}" for x in left
            ]
        lines += [f"graph break: {reason}" for reason in self.breaks]
        return "\n".join(lines) or "no graph: PyTorch captured no operator"


@fenced
def explain(
    model: Any, args: Sequence[Any] = (), kwargs: Mapping[str, Any] | None = None
) -> Explanation:
    """
    Reports which operators of each graph of a model run in irees, and why others run in PyTorch.
    The model runs once, in PyTorch. As with `torch._dynamo.explain`, functions that were compiled
    before are recompiled at their next call. Raises the errors of the model.
    """
    found = Explanation()

    def compiler(graph: GraphModule, _: Any) -> Callable[..., Any]:
        nodes = [n for n in graph.graph.nodes if n.op == "call_function"]
        found.operators.append(len(nodes))
        try:
            refusals = refused(graph).reasons
            found.left.append([_left(node.target, error) for node, error in refusals.items()])
        except IreesError as error:  # unsupported sizes: the whole graph runs in PyTorch
            found.left.append([_left(node.target, error) for node in nodes])
        return boxed(torch.fx.Interpreter(graph).boxed_run)

    def backend(graph: GraphModule, inputs: Any) -> Callable[..., Any]:
        try:
            return aot_module_simplified(
                graph, inputs, fw_compiler=compiler, decompositions=graph_table(),
                keep_inference_input_mutations=True,
            )  # fmt: skip
        except RestartAnalysis:  # not an error: Dynamo traces again
            raise
        except Exception as error:  # PyTorch cannot make the graph functional: it runs there
            nodes = [n for n in graph.graph.nodes if n.op in ("call_function", "call_method")]
            why = f"{type(error).__name__}: {reason_of(error)}"
            found.operators.append(len(nodes))
            found.left.append([_node_left(node, why) for node in nodes])
            return untraced(graph)

    given = (args,) if isinstance(args, torch.Tensor) else tuple(args)
    torch._dynamo.reset()
    counters = torch._dynamo.utils.counters["graph_break"]
    counters.clear()
    try:
        with torch.no_grad():
            run = let_through(torch.compile(model, backend=backend))
            run(*given, **dict(kwargs or {}))
        found.breaks = [next(iter(str(reason).splitlines()), "") for reason in counters]
    finally:
        torch._dynamo.reset()
    return found


def _node_left(node: Node, reason: str) -> Left:
    name = getattr(node.target, "__name__", str(node.target))
    return Left(name, reason, users_line(node.meta.get("stack_trace")) or "")


def _left(target: Any, error: IreesError) -> Left:
    place = error.location
    line = place if isinstance(place, str) else describe_location(place) or ""
    return Left(str(target), error.message, line)
