"""
Affinity and tied-operand traits of ops, by op name.

`PLACED` lists the ops with an affinity: its attribute, whether an affinity is required, and whether
the op *pins* its operands and results there. A pin overrides every inferred affinity; an op without
its attribute never pins. `TIES` lists the ops with results that alias operands. Before dispatches
are formed, every op that computes on tensors is placed too (`placed`).

IREE: `AffinityOpInterface` and its models in `ExternalInterfaces/StreamExternalModels.cpp` and
`Dialect/Stream/IR/StreamOps.cpp`, `TiedOpInterface`. Views of MLIR's tensor dialect are ties here;
IREE converts them to `flow.tensor.reshape` before its affinity analysis.
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
from irees.interfaces import loops_model_of

AFFINITY = "stream.affinity"
"""Discardable attribute: affinity of an op and the ops nested in it."""

DEFAULT = "stream.affinity.default"
"""Attribute of an ancestor: affinity of ops and values without any other."""


@dataclass(frozen=True)
class Placed:
    """How ops of one name carry their affinity."""

    attribute: str = AFFINITY
    required: bool = True
    pins: bool = False
    only_tensors: bool = False
    """Whether an affinity is required only if the op or global has a tensor type."""


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
    Returns how an op carries its affinity; None if it runs on no particular device.

    Ops of tensor dialects have an optional affinity: in IREE they are inside dispatches before the
    analysis. Views have the affinity of their source. `tensor.dim` has none.
    """
    if (found := PLACED.get(op.name)) is not None:
        return found
    if op.name in _ASKS or op.name in TIES:
        return None
    if op.name.split(".")[0] not in _COMPUTES and loops_model_of(op) is None:
        return None
    return _COMPUTED if any(is_tracked(v.type) for v in (*op.operands, *op.results)) else None


def is_tracked(type: Attribute) -> bool:
    """Whether values of this type are stored on a device."""
    return isinstance(type, TensorType | ResourceType)


def requires_affinity(op: Operation) -> bool:
    """Whether an op or global must have an affinity."""
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
    """Returns the affinity in the attributes of the op itself."""
    how = placed(op)
    if how is None:
        return None
    if not isinstance(op, AsyncTransferOp):
        return _attribute(op, how.attribute)
    if op.execution_affinity is not None:
        return op.execution_affinity
    # External and staged data is fetched by the target device; the source device sends the rest.
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
    """Returns the affinity of an op or of the nearest ancestor with one (IREE: `lookup`)."""
    for each in _ancestors(op):
        if (found := own_affinity(each) or _attribute(each, AFFINITY)) is not None:
            return found
    return None


def default_affinity(op: Operation | None) -> Affinity | None:
    """Returns the default affinity of the nearest ancestor with one."""
    for each in _ancestors(op):
        if (found := _attribute(each, DEFAULT)) is not None:
            return found
    return None


def pins(op: Operation) -> bool:
    """Whether an op pins its operands and results to its affinity."""
    how = placed(op)
    return how is not None and how.pins and own_affinity(op) is not None


def anchors_tied_results(op: Operation) -> bool:
    """Whether a tied result also has the affinity of its op: only if the op states one."""
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
    "irees.view_parts": _first,
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
"""Op name => pairs of the indices of an operand and the result tied to it."""


def tied_operand(result: SSAValue) -> SSAValue | None:
    """Returns the operand that a result is tied to, or None."""
    op = result.owner
    if not isinstance(op, Operation) or op.name not in TIES:
        return None
    for operand, index in TIES[op.name](op):
        if op.results[index] is result:
            return op.operands[operand]
    return None


def tied_results(op: Operation, operand: int) -> list[SSAValue]:
    """Returns the results tied to an operand."""
    if op.name not in TIES:
        return []
    return [op.results[index] for each, index in TIES[op.name](op) if each == operand]
