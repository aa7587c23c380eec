"""
What ops say of devices by themselves: tables by op name.

`PLACED` has every op that runs somewhere: in which attribute it says where, whether it must have
an answer, and whether it *pins* its operands and results there. A pin overrides every inference;
an op without its attribute never pins. `TIES` has every op with a result that is the storage of
an operand. Before there are dispatches, any op that computes on tensors is placed (`placed`).

IREE: `AffinityOpInterface` and its models in `ExternalInterfaces/StreamExternalModels.cpp` and
`Dialect/Stream/IR/StreamOps.cpp`, `TiedOpInterface`. Views of MLIR's tensor dialect are ties here;
IREE has turned them into `flow.tensor.reshape` before it asks.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from xdsl.dialects.builtin import TensorType
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.utils.hints import isa

from irees.dialects._shaped import UNTIED, tied_indices
from irees.dialects.flow import DispatchOp
from irees.dialects.hal import Affinity
from irees.dialects.stream import AsyncDispatchOp, AsyncTransferOp, ResourceType

AFFINITY = "stream.affinity"
"""The discardable attribute that places an op and what is in it."""

DEFAULT = "stream.affinity.default"
"""Where whatever nothing else places is, on an ancestor."""


@dataclass(frozen=True)
class Placed:
    """How ops of one name say where they run."""

    attribute: str = AFFINITY
    required: bool = True
    pins: bool = False
    only_tensors: bool = False
    """The answer is required only of an op that is or makes a tensor."""


_BORDER = Placed("affinity", required=False, pins=True)
_STREAM = Placed("affinity")
_STREAM_BORDER = Placed("affinity", pins=True)

PLACED: dict[str, Placed] = {
    "arith.constant": Placed(only_tensors=True),
    "flow.dispatch": Placed(),
    "flow.dispatch.region": Placed(),
    "flow.tensor.barrier": Placed("target", pins=True),
    "flow.tensor.clone": Placed(),
    "flow.tensor.constant": Placed(),
    "flow.tensor.empty": Placed(),
    "flow.tensor.slice": Placed(),
    "flow.tensor.splat": Placed(),
    "flow.tensor.transfer": Placed("target"),
    "flow.tensor.update": Placed(),
    "hal.tensor.alias": _BORDER,
    "hal.tensor.export": _BORDER,
    "hal.tensor.import": _BORDER,
    "hal.tensor.transients": _BORDER,
    "stream.async.alloca": _STREAM,
    "stream.async.barrier": _STREAM,
    "stream.async.clone": _STREAM,
    "stream.async.constant": _STREAM,
    "stream.async.copy": _STREAM,
    "stream.async.dispatch": _STREAM,
    "stream.async.execute": _STREAM,
    "stream.async.fill": _STREAM,
    "stream.async.slice": _STREAM,
    "stream.async.splat": _STREAM,
    "stream.async.transfer": _STREAM,
    "stream.async.update": _STREAM,
    "stream.tensor.clone": _STREAM,
    "stream.tensor.constant": _STREAM,
    "stream.tensor.export": _STREAM_BORDER,
    "stream.tensor.import": _STREAM_BORDER,
    "stream.tensor.sizeof": _STREAM,
    "stream.tensor.splat": _STREAM,
    "util.func": Placed(required=False),
    "util.global": Placed(only_tensors=True),
    "util.initializer": Placed(required=False),
}


_COMPUTES = frozenset("arith iree_linalg_ext linalg math tensor tm_tensor".split())
_ASKS = frozenset({"arith.constant", "arith.select", "tensor.dim"})
_COMPUTED = Placed(required=False)


def placed(op: Operation) -> Placed | None:
    """
    How an op says where it runs; None for one that runs nowhere in particular.

    Ops of the dialects of tensors run somewhere, but need not say where: in IREE they are in
    dispatches before it asks. Views of a tensor are where it is, its size is anywhere.
    """
    if (found := PLACED.get(op.name)) is not None:
        return found
    if op.name.split(".")[0] not in _COMPUTES or op.name in _ASKS or op.name in TIES:
        return None
    return _COMPUTED if any(is_tracked(v.type) for v in (*op.operands, *op.results)) else None


def is_tracked(type: Attribute) -> bool:
    """Whether a value of this type lies on a device."""
    return isinstance(type, TensorType | ResourceType)


def requires_affinity(op: Operation) -> bool:
    """Whether an op must run somewhere, or a global be somewhere."""
    found = placed(op)
    if found is None or not found.required:
        return False
    if not found.only_tensors:
        return True
    made = [op.properties.get("type"), *(result.type for result in op.results)]
    return any(isinstance(type_, TensorType) for type_ in made)


def _attribute(op: Operation, name: str) -> Affinity | None:
    found = op.properties.get(name) or op.attributes.get(name)
    return found if isa(found, Affinity) else None


def own_affinity(op: Operation) -> Affinity | None:
    """Where an op itself says that it runs."""
    how = placed(op)
    if how is None:
        return None
    if not isinstance(op, AsyncTransferOp):
        return _attribute(op, how.attribute)
    if op.execution_affinity is not None:
        return op.execution_affinity
    # What comes from outside is fetched by its consumer; everything else is sent.
    assert isinstance(op.source.type, ResourceType)
    assert isinstance(op.result.type, ResourceType)
    source, result = op.source.type.lifetime.data, op.result.type.lifetime.data
    fetched = source == "external" or (source == "staging" and result != "staging")
    return op.target_affinity if fetched else op.source_affinity


def _ancestors(op: Operation | None) -> Iterator[Operation]:
    while op is not None:
        yield op
        op = op.parent_op()


def explicit_affinity(op: Operation) -> Affinity | None:
    """Where an op or the nearest ancestor that says something is placed (IREE: `lookup`)."""
    for each in _ancestors(op):
        if (found := own_affinity(each) or _attribute(each, AFFINITY)) is not None:
            return found
    return None


def default_affinity(op: Operation | None) -> Affinity | None:
    """Where an op is placed that nothing else places."""
    for each in _ancestors(op):
        if (found := _attribute(each, DEFAULT)) is not None:
            return found
    return None


def pins(op: Operation) -> bool:
    """Whether an op fixes where its operands and results are."""
    how = placed(op)
    return how is not None and how.pins and own_affinity(op) is not None


def anchors_tied_results(op: Operation) -> bool:
    """Whether a tied result is also where the op runs: only where it says so itself."""
    return isinstance(op, AsyncDispatchOp) and op.affinity is not None


def _first(op: Operation) -> list[tuple[int, int]]:
    return [(0, 0)]


def _each(op: Operation) -> list[tuple[int, int]]:
    return [(i, i) for i in range(len(op.results))]


def _listed(op: Operation) -> list[tuple[int, int]]:
    tied = tied_indices(op.properties.get("tied_operands"), len(op.results))
    before = len(op.workload) if isinstance(op, DispatchOp | AsyncDispatchOp) else 0
    return [(before + operand, result) for result, operand in enumerate(tied) if operand != UNTIED]


TIES: dict[str, Callable[[Operation], list[tuple[int, int]]]] = {
    "flow.dispatch": _listed,
    "flow.tensor.barrier": _first,
    "flow.tensor.reshape": _first,
    "flow.tensor.update": _first,
    "hal.tensor.alias": _first,
    "hal.tensor.barrier": _each,
    "hal.tensor.transients": _first,
    "iree_tensor_ext.bitcast": _first,
    "stream.async.barrier": _first,
    "stream.async.copy": _first,
    "stream.async.dispatch": _listed,
    "stream.async.execute": _listed,
    "stream.async.fill": _first,
    "stream.async.update": _first,
    "stream.tensor.export": _first,
    "stream.tensor.import": _first,
    "tensor.bitcast": _first,
    "tensor.cast": _first,
    "tensor.collapse_shape": _first,
    "tensor.expand_shape": _first,
    "tensor.reshape": _first,
    "util.call": _listed,
}
"""Op name => its pairs of an operand and the result that has its storage."""


def tied_operand(result: SSAValue) -> SSAValue | None:
    """The operand whose storage a result has."""
    op = result.owner
    if not isinstance(op, Operation) or op.name not in TIES:
        return None
    for operand, index in TIES[op.name](op):
        if op.results[index] is result:
            return op.operands[operand]
    return None


def tied_results(op: Operation, operand: int) -> list[SSAValue]:
    """The results that have the storage of an operand."""
    if op.name not in TIES:
        return []
    return [op.results[index] for each, index in TIES[op.name](op) if each == operand]
