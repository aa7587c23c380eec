"""
Fusion groups: ops around a root, and all groups of a function.

Each op of a group has a map of its loops to the outer parallel loops of the root
(`analysis/loop_mapping.py`), which new ops must be consistent with. IREE: `FusionGroup`,
`FusionTracker`.
"""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.dialects.builtin import TensorType
from xdsl.dialects.linalg import ops as linalg
from xdsl.ir import Block, Operation, OpResult

from irees.analysis.dispatch_roles import is_cloneable
from irees.analysis.loop_mapping import LoopMap, loop_nest, map_into, root_map
from irees.dialects.storage import is_undefined
from irees.targets.common import COMMON
from irees.transforms.utils.dispatch_regions import Order
from irees.transforms.utils.structured import captured_values


@dataclass(frozen=True)
class Rules:
    """The options of the pass that control fusion."""

    aggressive: bool = False
    multi_use_producers: bool = True
    pad_with_consumers: bool = False
    pad_with_producers: bool = False


class FusionGroup:
    """A root and the ops fused with it, each with its map to the loops of the root."""

    def __init__(self, root: Operation):
        self.root = root
        self.maps: dict[Operation, LoopMap] = {root: root_map(root)}

    def refuses(self, op: Operation) -> str | None:
        """Returns why the loops of an op do not map to the group (IREE: FusionGroup::isFusable)."""
        if any(isinstance(v, OpResult) and v.op in self.maps for v in captured_values(op)):
            return "its body captures a value of the group"
        found = map_into(op, self.maps)
        if found is None:
            return "its loops do not map uniquely to those of the group's root"
        nest = loop_nest(op)
        if nest is not None and not nest.is_parallel and found != self.maps[self.root]:
            return "it has a reduction, but lacks the parallel loops of the group's root"
        return None

    def insert(self, op: Operation) -> None:
        """Adds an op; if its loops do not map to the root, it gets the map of a root."""
        self.maps[op] = map_into(op, self.maps) or root_map(op)

    def too_many_operands(self, op: Operation) -> bool:
        """Whether the kernel would bind too many tensors with this op."""
        members = {op, *self.maps}
        outside: set[Operation] = set()
        escaping = 0
        for member in members:
            for value in (*member.operands, *captured_values(member)):
                if isinstance(value, OpResult) and isinstance(value.type, TensorType):
                    if not (isinstance(value.op, linalg.FillOp) or is_undefined(value.op)):
                        outside.add(value.op)
            escaping += sum(
                any(use.operation not in members for use in r.uses) for r in member.results
            )
        return len(outside - members) + escaping > COMMON.kernel_operands


class FusionTracker:
    """All groups of a function."""

    def __init__(self, rules: Rules):
        self.rules = rules
        self.groups: list[FusionGroup] = []
        self.of: dict[Operation, FusionGroup] = {}
        self.orders: dict[Block, Order] = {}

    def order_of(self, group: FusionGroup) -> Order:
        """Returns the ordering constraints of the block of a group."""
        block = group.root.parent_block()
        assert block is not None
        if block not in self.orders:
            self.orders[block] = Order(block)
        return self.orders[block]

    def create(self, root: Operation) -> FusionGroup:
        """Creates a group around a root."""
        group = FusionGroup(root)
        self.groups.append(group)
        self.of[root] = group
        return group

    def append(self, op: Operation, group: FusionGroup) -> None:
        """Adds an op to a group."""
        group.insert(op)
        self.of[op] = group

    def cloneable(self, op: Operation) -> bool:
        """Whether kernels recompute the op."""
        return is_cloneable(op, aggressive=self.rules.aggressive)

    def depends_on_itself(self, group: FusionGroup, op: Operation) -> bool:
        """
        Whether the group with `op` would depend on itself: a dependence path leaves it and returns.
        The path may pass through other groups, whose ops all run together
        (IREE: hasTransitiveDependencyOnFusionGroup, hasExternalUserBlockingProducerFusion).
        """
        members = {op, *group.maps}
        order = self.order_of(group)
        stack = [source for member in members for source in order.sources(member)]
        stack = [source for source in stack if source not in members]
        seen: set[Operation] = set()
        while stack:
            current = stack.pop()
            if current in members:
                return True
            if current in seen:
                continue
            other = self.of.get(current)
            together = [current] if other is None else list(other.maps)
            seen.update(together)
            stack.extend(source for each in together for source in order.sources(each))
        return False
