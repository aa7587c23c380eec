"""
Records a compilation: the changes of each pass, and the source line of each line of C.

The module is printed after every pass, one top-level op at a time; in the code generation a pass
sees one executable alone. Texts are stored once, by a digest of their content, since most passes
change little. Weights are left out. The plan of the arena is read after `irees-plan-arena`.
"""

from __future__ import annotations

import hashlib
import re
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from xdsl.dialects import func
from xdsl.dialects.builtin import DenseResourceAttr, ModuleOp, StringAttr
from xdsl.ir import Operation, OpResult, SSAValue

from irees.analysis.arena import slots_of
from irees.backends.c import backend as c
from irees.backends.common.printer import marking
from irees.backends.common.program_text import print_program
from irees.backends.cuda import backend as cuda
from irees.build import return_updates
from irees.dialects import get_context
from irees.dialects.flow import DispatchOp, ExecutableOp
from irees.dialects.stream import CmdDispatchOp
from irees.errors import describe_location
from irees.frontends.mlir import print_module
from irees.hooks import Hooks
from irees.options import Options
from irees.pipeline import run_phases
from irees.remarks import collect
from irees.target import Target
from irees.testing.faults import watch_rewrites
from irees.transforms.stream.plan_arena import PlanArenaPass

_MARK = re.compile(r"\s*/\*@(.*?)\*/")


@dataclass
class Recorder:
    """Collects steps while a module is compiled."""

    steps: list[dict[str, Any]] = field(default_factory=list)
    texts: dict[str, str] = field(default_factory=dict)
    """Printed top-level ops by digest."""
    graph: dict[str, Any] = field(default_factory=dict)
    latest: dict[str, str] = field(default_factory=dict)
    """Name of a top-level op => the digest of its latest text."""
    rewrites: int = 0
    arenas: list[dict[str, Any]] = field(default_factory=list)

    def listener(self, applied: Sequence[Any]) -> Any:
        """Returns a function that is called after each pass."""

        def hear(name: str, module: ModuleOp, seconds: float) -> None:
            alone = [o.sym_name.data for o in module.ops if isinstance(o, ExecutableOp)]
            on = alone[0] if len(list(module.ops)) == 1 and alone else None
            step = {"pass": name, "ms": round(1000 * seconds, 2), "changed": self._changes(module)}
            step["rewrites"] = len(applied) - self.rewrites
            self.rewrites = len(applied)
            if name == PlanArenaPass.name:
                self.arenas = list(arenas_of(module))
            self.steps.append(step | {"on": on, "phase": None})

        return hear

    def after(self, phase: str, module: ModuleOp, seconds: float) -> None:
        """Called after each phase."""
        for step in self.steps:
            step["phase"] = step["phase"] or phase
        if phase == "dispatch-creation":
            self.graph = graph_of(module)

    def start(self, module: ModuleOp) -> None:
        """Notes the module before the first pass."""
        self._changes(module)

    def _changes(self, module: ModuleOp) -> dict[str, list[str | None]]:
        """Returns the ops whose text differs from the latest one: name => [before, after]."""
        changed: dict[str, list[str | None]] = {}
        for name, text in printed_ops(module):
            digest = hashlib.sha256(text.encode()).hexdigest()[:12]
            before = self.latest.get(name)
            if digest != before:
                self.texts[digest] = text
                changed[name] = [before, digest]
                self.latest[name] = digest
        return changed


def printed_ops(module: ModuleOp) -> Iterator[tuple[str, str]]:
    """Yields the top-level ops by name; those without a name, and globals, as one."""
    rest: list[str] = []
    for op in module.ops:
        name = op.properties.get("sym_name")
        if isinstance(op, func.FuncOp | ExecutableOp) and isinstance(name, StringAttr):
            yield f"@{name.data}", print_module(op)
        elif not any(isinstance(a, DenseResourceAttr) for a in op.properties.values()):
            rest.append(print_module(op))
    if rest:
        yield "globals", "\n".join(rest)


def graph_of(module: ModuleOp) -> dict[str, Any]:
    """Returns the dispatch graph: a node per dispatch, an edge from each producer to its reader."""
    numbers: dict[Operation, int] = {}
    nodes: list[dict[str, Any]] = []
    edges: list[list[int]] = []
    for op in (o for f in module.ops if isinstance(f, func.FuncOp) for o in f.walk()):
        if not isinstance(op, DispatchOp):
            continue
        numbers[op] = len(nodes)
        place = describe_location(op.location)
        kernel = op.entry_point.root_reference.data
        nodes.append({"kernel": kernel, "loc": place, "types": [str(r.type) for r in op.res]})
        sources = {numbers[p] for v in op.arguments for p in _producers(v, set()) if p in numbers}
        edges += [[source, numbers[op]] for source in sorted(sources)]
    return {"nodes": nodes, "edges": edges}


def arenas_of(module: ModuleOp) -> Iterator[dict[str, Any]]:
    """
    Yields the plan of each function that has temporaries: names of its steps, which are the ops
    that access a temporary, and slots as rows of offset, bytes, first and last step, type.
    """
    for function in (f for f in module.ops if isinstance(f, func.FuncOp) and not f.is_declaration):
        ops, slots = list(function.body.block.ops), slots_of(function)
        if slots == []:
            continue
        used = {n for slot in slots or () for n in (slot.first, slot.last)}
        used |= {n for n, op in enumerate(ops) if isinstance(op, CmdDispatchOp)}
        step = {number: index for index, number in enumerate(sorted(used))}
        yield {
            "function": function.sym_name.data,
            "steps": [_step_name(ops[number]) for number in step],
            "slots": slots
            and [[s.offset, s.size, step[s.first], step[s.last], str(s.kind)] for s in slots],
        }


def _step_name(op: Operation) -> str:
    return op.entry_point.root_reference.data if isinstance(op, CmdDispatchOp) else op.name


def _producers(value: SSAValue, seen: set[Operation]) -> Iterator[Operation]:
    """Yields the dispatches that a value depends on, through views and other ops."""
    if not isinstance(value, OpResult) or value.op in seen:
        return
    seen.add(value.op)
    if isinstance(value.op, DispatchOp):
        yield value.op
        return
    for operand in value.op.operands:
        yield from _producers(operand, seen)


def recorded(module: ModuleOp, options: Options) -> dict[str, Any]:
    """
    Compiles a module, in place, up to its texts. Returns the data of the report.

    Raises the errors of a compilation.
    """
    target = Target.parse(options.target)
    return_updates(module, options)
    recorder = Recorder()
    recorder.start(module)
    with collect() as remarks, watch_rewrites() as applied:
        hooks = Hooks(listener=recorder.listener(applied), after=recorder.after)
        run_phases(get_context(), module, options, hooks=hooks)
    begin = time.perf_counter()
    with marking():
        sources = print_program(module, (c if target.gpu is None else cuda).BACKEND)
    printed = 1000 * (time.perf_counter() - begin)
    return {
        "steps": recorder.steps,
        "texts": recorder.texts,
        "graph": recorder.graph,
        "arenas": recorder.arenas,
        "printing_ms": round(printed, 2),
        "remarks": [
            {
                "kind": r.kind,
                "pass": r.pass_name,
                "loc": r.location,
                "text": r.text,
                "on": r.dispatch,
            }
            for r in remarks
        ],
        "code": {name: _unmarked(text) for name, text in sources.texts.items()},
        "kernels": [
            {"name": kernel["name"], "text": kernel["symbol"]}
            for kernel in sources.manifest["kernels"]
        ],
    }


def _unmarked(text: str) -> dict[str, Any]:
    """Splits a text into its lines and their source locations."""
    lines: list[str] = []
    places: list[str | None] = []
    for line in text.splitlines():
        found = _MARK.search(line)
        lines.append(_MARK.sub("", line))
        places.append(found[1] if found else None)
    return {"text": "\n".join(lines), "places": places}
