"""
Which ops run on blocked tensors: those of the cheapest of all choices.

Convolutions say along which dim of their operands the channels lie, and what reads or makes these
values follows, as far as there are ops that can. Each of them may run in either form; where two
that share a value differ, the value is copied into its other form, once. A convolution in blocks
saves time. What is cheapest is a minimum cut, in units of one floating-point operation:

    copying one element                                         COPY
    a convolution that is not in blocks                         its flops
    another op that writes channels and is not in blocks        1 for each element

The last only settles ties: a conversion comes as late as it can. So a convolution by itself is
left alone where it does fewer than COPY_FLOPS for each element that would be copied.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass, field

from xdsl.dialects import tensor
from xdsl.dialects.linalg import ops as linalg
from xdsl.ir import Operation, SSAValue

from irees.analysis.contractions import is_contraction
from irees.transforms.global_opt.propagate_blocked_layouts.followers import (
    Convolution,
    Node,
    convolution,
    convolution_node,
    follow,
)
from irees.transforms.global_opt.propagate_blocked_layouts.forms import (
    Form,
    costs_nothing,
    elements,
)
from irees.transforms.global_opt.propagate_blocked_layouts.minimum_cut import NEVER, Network

COPY_FLOPS = 256
"""
Flops in the time that it takes to copy one element into another order.

That is four cycles at 64 flops in each, if blocks save a convolution all of its time; they
save a part of it, and a copy between two ops that could share a kernel costs more than this.
"""


@dataclass
class Plan:
    """What may run in blocks, in what form each value would be, and what cannot follow."""

    vector_bytes: int
    copy_flops: int = COPY_FLOPS
    nodes: dict[Operation, Node] = field(default_factory=dict[Operation, Node])
    forms: dict[SSAValue, Form] = field(default_factory=dict[SSAValue, Form])
    refused: dict[Operation, str] = field(default_factory=dict[Operation, str])
    """Why each op that touches a value with a form has to have it as it was."""

    @staticmethod
    def of(module: Operation, vector_bytes: int, copy_flops: int = COPY_FLOPS) -> Plan:
        """Everything that convolutions reach."""
        plan = Plan(vector_bytes, copy_flops)
        for op in module.walk():
            if isinstance(op, linalg.GenericOp) and op.res and is_contraction(op):
                plan.begin(op)
        return plan

    def begin(self, op: linalg.GenericOp) -> None:
        """Starts from one op, if it is a convolution."""
        found = convolution(op)
        if found is None or (isinstance(found, Convolution) and not found.slides):
            return
        if isinstance(found, Convolution):
            found = convolution_node(op, found, self.vector_bytes)
        if isinstance(found, Node) and found.results[0].is_free(op.res[0].type):  # pyright: ignore
            return
        self.take(op, found)

    def take(self, op: Operation, found: Node | str) -> None:
        """Adds an op, and then all that it reaches."""
        todo = deque([(op, found)])
        while todo:
            op, found = todo.popleft()
            if op in self.nodes or op in self.refused:
                continue
            if isinstance(found, Node) and self.disagrees(found):
                found = "its channels are others than those of its neighbours"
            if isinstance(found, str):
                self.refused[op] = found
                continue
            self.nodes[op] = found
            for value, form in found.sides():
                if value in self.forms or len(form.blocks) > 1 or costs_nothing(value, form):
                    continue
                self.forms[value] = form
                for near in neighbours(value):
                    if near not in self.nodes and near not in self.refused:
                        todo.append((near, follow(near, value, form, self.vector_bytes)))

    def disagrees(self, node: Node) -> bool:
        """Whether a node would have a value in another form than others would."""
        wanted = dict[SSAValue, Form]()
        return any(
            self.forms.get(value, form) != form or wanted.setdefault(value, form) != form
            for value, form in node.sides()
            if not costs_nothing(value, form)
        )

    def choose(self) -> set[Operation]:
        """The ops that run in blocks in the cheapest of all choices."""
        network, source, sink = Network(), "blocks", "as it was"
        for op, node in self.nodes.items():
            made = [v for v, f in zip(op.results, node.results, strict=True) if f is not None]
            gain = node.flops or sum(elements(v) for v in made if v in self.forms)
            network.connect(source, op, gain)
            # What nobody shares: a filter that is no constant.
            own = [v for v, f in node.sides() if v not in self.forms and not costs_nothing(v, f)]
            network.connect(op, sink, self.copy_flops * sum(elements(v) for v in own))
        for value, form in self.forms.items():
            cost = self.copy_flops * elements(value)
            maker = value.owner if value.owner in self.nodes else None
            readers = [o if self.reads_in(o, value, form) else sink for o in users(value)]
            # Unpacked once if it is made in blocks and some reader is not, and the reverse.
            network.connect(("pack", value), maker or sink, cost)
            if maker is not None:
                network.connect(maker, ("unpack", value), cost)
            for reader in readers:
                network.connect(("unpack", value), reader, NEVER)
                if reader is not sink:
                    network.connect(reader, ("pack", value), NEVER)
        return {op for op in network.source_side(source, sink) if isinstance(op, Operation)}

    def reads_in(self, op: Operation, value: SSAValue, form: Form) -> bool:
        """Whether an op can read a value in its form, wherever it reads it."""
        node = self.nodes.get(op)
        return node is not None and all(
            f == form for v, f in zip(op.operands, node.operands, strict=True) if v is value
        )

    def convolutions_left(self, chosen: set[Operation]) -> dict[Operation, str]:
        """Why each convolution that is not in blocks is not."""
        left = {
            op: why
            for op, why in self.refused.items()
            if isinstance(op, linalg.GenericOp) and convolution(op) is not None
        }
        dear = [op for op, node in self.nodes.items() if node.flops and op not in chosen]
        return left | dict.fromkeys(dear, "copies would cost more than blocks gain")


def users(value: SSAValue) -> list[Operation]:
    """The ops that read the contents of a value, once each."""
    found = {use.operation: None for use in value.uses}
    return [op for op in found if not isinstance(op, tensor.DimOp)]


def neighbours(value: SSAValue) -> Iterable[Operation]:
    """The op that makes a value, and those that read it."""
    if isinstance(value.owner, Operation):
        yield value.owner
    yield from users(value)
