"""
Per-channel constants in the body of a generic, and chains that scale and shift a value by them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from xdsl.dialects import arith, tensor
from xdsl.dialects.builtin import DenseResourceAttr, Float32Type, Float64Type, TensorType
from xdsl.dialects.linalg import ops as linalg
from xdsl.ir import Attribute, Block, BlockArgument, Operation, Region, SSAValue
from xdsl.ir.affine import AffineExpr, AffineMap

from irees.dialects.resources import dtype_of
from irees.interpreters import evaluate
from irees.transforms.utils.constants import (
    Make,
    array_of,
    constant_of,
    derived_constant,
    is_large_splat,
)
from irees.transforms.utils.structured import element_type, generic, maps
from irees.transforms.utils.tensors import ScalarBuilder

SCALING = frozenset((arith.MulfOp.name, arith.DivfOp.name))
ADDING = frozenset((arith.AddfOp.name, arith.SubfOp.name))
_FLOATS = (Float32Type, Float64Type)


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
        not empty), then `values`. Raises UnsupportedError or RuntimeTrap if the evaluation fails.
        """
        known = [array_of(c) for c in self.constants.values()]
        return evaluate(self.as_op(steps, values), [*known, *self._inits(steps, values)])

    def derived(self, values: Sequence[SSAValue]) -> list[arith.ConstantOp]:
        """
        Returns `values` as constants with one element per channel. They are computed when their
        bytes are needed if no element can make that trap. Raises as `evaluate`.
        """
        sources = list(self.constants.values())
        resources = any(isinstance(c.value, DenseResourceAttr) for c in sources)
        kinds = [TensorType(v.type, [self.size]) for v in values]
        if not resources or not all(isinstance(v.type, _FLOATS) for v in self.known):
            arrays = self.evaluate([], values)
            return [constant_of(array, kind) for array, kind in zip(arrays, kinds, strict=True)]
        op, inits = self.as_op([], values), self._inits([], values)
        # Raise now if the interpreter lacks an op, not when the bytes are needed.
        ones = [np.ones(self.size, dtype_of(element_type(c.result))) for c in sources]
        evaluate(op, [*ones, *inits])

        def maker(number: int) -> Make:
            def make(arrays: Sequence[np.ndarray], out: np.ndarray) -> None:
                np.copyto(out, evaluate(op, [*arrays, *inits])[number])

            return make

        return [
            derived_constant(sources, maker(n), kind, f"channel{n}", f"{n} of {op}")
            for n, kind in enumerate(kinds)
        ]

    @property
    def size(self) -> int:
        """The number of channels."""
        kind = next(iter(self.constants.values())).result.type
        assert isinstance(kind, TensorType)
        return kind.get_shape()[0]

    def _kinds(self, steps: Sequence[Step], values: Sequence[SSAValue]) -> list[Attribute]:
        return [*([steps[0].value.type] * 2 if steps else []), *(v.type for v in values)]

    def _inits(self, steps: Sequence[Step], values: Sequence[SSAValue]) -> list[np.ndarray]:
        return [np.zeros(self.size, dtype_of(kind)) for kind in self._kinds(steps, values)]

    def as_op(self, steps: Sequence[Step], values: Sequence[SSAValue]) -> linalg.GenericOp:
        """The op that computes what `evaluate` returns. It is in no block and uses no constant."""
        kinds = self._kinds(steps, values)
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
        shapes = [*(c.result.type for c in self.constants.values())]
        shapes += [TensorType(kind, [self.size]) for kind in kinds]
        operands = [tensor.EmptyOp([], shape).tensor for shape in shapes]
        indexing = [AffineMap.identity(1)] * len(operands)
        inputs, outputs = operands[: len(self.constants)], operands[len(self.constants) :]
        return generic(inputs, outputs, indexing, ["parallel"], Region(block))


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
