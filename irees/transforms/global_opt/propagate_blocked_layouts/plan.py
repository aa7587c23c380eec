"""
Selects the ops that run on blocked tensors, at minimum cost.

Convolutions determine the channel dim of their operands. Producers and consumers of these values
can follow, as far as they support blocks. Each op may run in either form. If two ops with a common
value differ, the value is converted once. Blocked convolutions are faster. The optimal selection is
a minimum cut with these costs, in flops:

    converting one element                                      CPU.layout_copy
    a convolution that is not in blocks                         its flops, or a share of them
    another op that writes channels and is not in blocks        1 for each element

The share is `CPU.blocked_share` for convolutions that are nearly as fast without blocks: those
without a window, by channels, and of few output channels. The last cost only breaks ties, in favour
of late conversions. So an isolated convolution stays unblocked if it does fewer than
`CPU.layout_copy` flops per element to convert.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass, field

from xdsl.dialects.linalg import ops as linalg
from xdsl.ir import Operation, SSAValue

from irees.analysis.blocked_forms import Form, costs_nothing, elements
from irees.analysis.contractions import is_contraction
from irees.analysis.convolutions import Convolution, convolution
from irees.analysis.minimum_cut import NEVER, Network
from irees.dialects.storage import is_dim
from irees.targets.cpu import CPU
from irees.transforms.global_opt.propagate_blocked_layouts.followers import (
    Node,
    convolution_node,
    follow,
)

SOURCE, SINK = "blocks", "as it was"
"""The two sides of the cut."""


@dataclass
class Plan:
    """Ops that may run in blocks, the form of each value, and the ops that cannot follow."""

    vector_bytes: int
    copy_flops: int = CPU.layout_copy
    nodes: dict[Operation, Node] = field(default_factory=dict[Operation, Node])
    forms: dict[SSAValue, Form] = field(default_factory=dict[SSAValue, Form])
    refused: dict[Operation, str] = field(default_factory=dict[Operation, str])
    """Ops next to a value with a form that cannot run in blocks => the reason."""

    @staticmethod
    def of(module: Operation, vector_bytes: int, copy_flops: int = CPU.layout_copy) -> Plan:
        """Collects all ops that convolutions reach."""
        plan = Plan(vector_bytes, copy_flops)
        for op in module.walk():
            if isinstance(op, linalg.GenericOp) and op.res and is_contraction(op):
                plan.begin(op)
        return plan

    def begin(self, op: linalg.GenericOp) -> None:
        """Adds an op and all that it reaches, if it is a convolution that gains from blocks."""
        found = convolution(op)
        if found is None or (isinstance(found, Convolution) and not found.slides):
            return
        if isinstance(found, Convolution):
            found = convolution_node(op, found, self.vector_bytes)
        if isinstance(found, Node) and found.results[0].is_free(op.res[0].type):  # pyright: ignore
            return
        self.take(op, found)

    def take(self, op: Operation, found: Node | str) -> None:
        """Adds an op and all ops that it reaches, breadth first."""
        todo = deque([(op, found)])
        while todo:
            op, found = todo.popleft()
            if op in self.nodes or op in self.refused:
                continue
            if isinstance(found, Node) and self.disagrees(found):
                found = "it needs another blocking than its neighbours"
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
        """Whether a node needs a value in another form than the rest of the plan."""
        wanted = dict[SSAValue, Form]()
        return any(
            self.forms.get(value, form) != form or wanted.setdefault(value, form) != form
            for value, form in node.sides()
            if not costs_nothing(value, form)
        )

    def choose(self) -> set[Operation]:
        """Returns the ops that run in blocks in the cheapest selection."""
        network = Network()
        for op, node in self.nodes.items():
            self.connect_op(op, node, network)
        for value, form in self.forms.items():
            self.connect_value(value, form, network)
        return {op for op in network.source_side(SOURCE, SINK) if isinstance(op, Operation)}

    def connect_op(self, op: Operation, node: Node, network: Network) -> None:
        """Adds what an op gains from blocks, and its own conversions."""
        made = [v for v, f in zip(op.results, node.results, strict=True) if f is not None]
        gain = node.flops or sum(elements(v) for v in made if v in self.forms)
        network.connect(SOURCE, op, gain)
        # Conversions that no other op needs: a filter that is not constant.
        own = [v for v, f in node.sides() if v not in self.forms and not costs_nothing(v, f)]
        network.connect(op, SINK, self.copy_flops * sum(elements(v) for v in own))

    def connect_value(self, value: SSAValue, form: Form, network: Network) -> None:
        """Adds one unpack if the producer is blocked and some user is not; one pack vice versa."""
        cost = self.copy_flops * elements(value)
        maker = value.owner if value.owner in self.nodes else None
        network.connect(("pack", value), maker or SINK, cost)
        if maker is not None:
            network.connect(maker, ("unpack", value), cost)
        for reader in users(value):
            if self.reads_in(reader, value, form):
                network.connect(("unpack", value), reader, NEVER)
                network.connect(reader, ("pack", value), NEVER)
            else:
                network.connect(("unpack", value), SINK, NEVER)

    def reads_in(self, op: Operation, value: SSAValue, form: Form) -> bool:
        """Whether an op can read a value in a form at all operands that use the value."""
        node = self.nodes.get(op)
        return node is not None and all(
            f == form for v, f in zip(op.operands, node.operands, strict=True) if v is value
        )

    def convolutions_left(self, chosen: set[Operation]) -> dict[Operation, str]:
        """Returns the convolutions that do not run in blocks, with the reasons."""
        left = {
            op: why
            for op, why in self.refused.items()
            if isinstance(op, linalg.GenericOp) and convolution(op) is not None
        }
        dear = [op for op, node in self.nodes.items() if node.flops and op not in chosen]
        return left | dict.fromkeys(dear, "packing would cost more than blocks gain")


def users(value: SSAValue) -> list[Operation]:
    """Returns the ops that read the contents of a value, without duplicates."""
    found = {use.operation: None for use in value.uses}
    return [op for op in found if not is_dim(op)]


def neighbours(value: SSAValue) -> Iterable[Operation]:
    """Yields the op that defines a value and the ops that read it."""
    if isinstance(value.owner, Operation):
        yield value.owner
    yield from users(value)
