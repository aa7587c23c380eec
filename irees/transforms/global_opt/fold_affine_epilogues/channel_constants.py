"""
Per-channel constants in the body of a generic, and chains that scale and shift a value by them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from xdsl.dialects import arith, tensor
from xdsl.dialects.builtin import TensorType
from xdsl.dialects.linalg import ops as linalg
from xdsl.ir import Block, BlockArgument, Operation, Region, SSAValue
from xdsl.ir.affine import AffineExpr, AffineMap

from irees.dialects.resources import dtype_of
from irees.interpreters import evaluate
from irees.transforms.utils.constants import array_of, is_large_splat
from irees.transforms.utils.structured import element_type, generic, maps
from irees.transforms.utils.tensors import ScalarBuilder

SCALING = frozenset((arith.MulfOp.name, arith.DivfOp.name))
ADDING = frozenset((arith.AddfOp.name, arith.SubfOp.name))


@dataclass(frozen=True)
class Step:
    """One op of a chain: it combines the running `value` with the channel constant `known`."""

    op: Operation
    value: SSAValue
    known: SSAValue


@dataclass
class Channel:
    """A loop of a generic and the 1-d constant operands that it indexes (one value per channel)."""

    op: linalg.GenericOp
    constants: dict[BlockArgument, arith.ConstantOp]
    known: set[SSAValue]
    """Values of the body that depend only on constants."""

    @staticmethod
    def of(op: linalg.GenericOp, loop: int) -> Channel:
        """Collects the constants along a loop, and the values computed from them."""
        found: dict[BlockArgument, arith.ConstantOp] = {}
        for argument, value, indexing in zip(op.body.block.args, op.inputs, maps(op), strict=False):
            owner = value.owner
            if indexing.results == (AffineExpr.dimension(loop),):
                is_tensor = isinstance(value.type, TensorType)
                if isinstance(owner, arith.ConstantOp) and is_tensor and not is_large_splat(owner):
                    found[argument] = owner
        channel = Channel(op, found, set())
        for inner in op.body.block.ops:
            if inner.dialect_name() not in ("arith", "math") or len(inner.results) != 1:
                continue
            if all(channel.is_known(v) for v in inner.operands):
                channel.known.add(inner.results[0])
        return channel

    def is_known(self, value: SSAValue) -> bool:
        """Whether a value of the body depends only on constants."""
        is_constant = isinstance(value.owner, arith.ConstantOp)
        return is_constant or value in self.constants or value in self.known

    def evaluate(self, steps: Sequence[Step], values: Sequence[SSAValue]) -> list[np.ndarray]:
        """
        Returns arrays with one element per channel: s and t of the chain x * s + t (if `steps` is
        not empty), then `values`. Raises UnsupportedError or RuntimeTrap if evaluation fails.
        """
        inputs = list(self.constants.values())
        kinds = [element_type(v) for v in values]
        kinds = [steps[0].value.type] * 2 + kinds if steps else kinds
        size = inputs[0].result.type.get_shape()[0]  # pyright: ignore
        empties = [tensor.EmptyOp([], TensorType(kind, [size])) for kind in kinds]
        block = Block(arg_types=[*(a.type for a in self.constants), *kinds])
        mapping = dict[SSAValue, SSAValue](zip(self.constants, block.args, strict=False))
        b = ScalarBuilder(block)
        for op in self.op.body.block.ops:
            if op.results and op.results[0] in self.known:
                block.add_op(op.clone(value_mapper=mapping))
        results = [mapping.get(v, v) for v in values]
        if steps:
            results = [*coefficients(steps, mapping, b), *results]
        block.add_op(linalg.YieldOp(*results))
        indexing = [AffineMap.identity(1)] * (len(inputs) + len(kinds))
        op = generic(
            [c.result for c in inputs], [e.tensor for e in empties], indexing, ["parallel"],
            Region(block),
        )  # fmt: skip
        try:
            nothing = [np.zeros(size, dtype_of(kind)) for kind in kinds]
            return evaluate(op, [*(array_of(c) for c in inputs), *nothing])
        finally:
            op.erase()


def coefficients(
    steps: Sequence[Step], mapping: dict[SSAValue, SSAValue], b: ScalarBuilder
) -> tuple[SSAValue, SSAValue]:
    """Emits the ops that compute s and t of a chain x * s + t; returns both."""
    kind = steps[0].value.type
    scale, shift = b.number(1.0, kind), b.number(0.0, kind)
    for step in steps:
        known = mapping.get(step.known, step.known)
        if step.op.name in SCALING:
            scale, shift = (b.op(type(step.op), v, known) for v in (scale, shift))
        elif step.op.operands[0] is step.value:
            shift = b.op(type(step.op), shift, known)
        else:
            shift = b.op(type(step.op), known, shift)
            scale = b.op(arith.NegfOp, scale) if step.op.name == arith.SubfOp.name else scale
    return scale, shift


def chain_of(channel: Channel, value: SSAValue) -> list[Step]:
    """Returns the longest chain of scalings and additions from a value; empty without a scaling."""
    steps: list[Step] = []
    while value.has_one_use():
        op = value.get_user_of_unique_use()
        assert op is not None
        if op.name not in SCALING | ADDING or op.parent is not channel.op.body.block:
            break
        known = op.operands[1] if op.operands[0] is value else op.operands[0]
        if not channel.is_known(known):
            break
        if op.name == arith.DivfOp.name and op.operands[0] is not value:
            break
        steps.append(Step(op, value, known))
        value = op.results[0]
    return steps if any(s.op.name in SCALING for s in steps) else []
