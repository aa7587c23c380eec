"""
A dialect that irees knows nothing about: one op of each kind that a plug-in can have.

    probe.rows     has loops of its own: the running maximum along dim 1
    probe.pair     has loops of its own, two results and a stencil: sums and products of neighbours
    probe.put      has loops of its own, and replaces every second element of its output
    probe.fused    decomposes into structured ops, and into another op of the dialect
    probe.scalar   is an op of scalars, in bodies and beside them
    probe.view     shows the elements of its operand in another shape
"""

from __future__ import annotations

import numpy as np
from xdsl.dialects import arith
from xdsl.dialects.builtin import AnyFloat, MemRefType, TensorType
from xdsl.ir import Dialect
from xdsl.ir.affine import AffineDimExpr, AffineMap
from xdsl.irdl import (
    AnyOf,
    IRDLOperation,
    irdl_op_definition,
    operand_def,
    result_def,
    traits_def,
    var_result_def,
)
from xdsl.traits import Pure

from irees.building import (
    DestinationStyleEffects,
    Domain,
    buffer_dim,
    collapse,
    constant,
    dims,
    for_loop,
    identity_map,
    if_else,
    load,
    rank_of,
    rows,
    store,
)
from irees.plugins import Plugin

FLOATS = AnyOf([TensorType.constr(AnyFloat), MemRefType.constr(AnyFloat)])


@irdl_op_definition
class RowsOp(IRDLOperation):
    name = "probe.rows"
    x = operand_def(FLOATS)
    init = operand_def(FLOATS)
    result = var_result_def(TensorType)
    traits = traits_def(DestinationStyleEffects())
    assembly_format = (
        "$x `into` $init attr-dict `:` type($x) `,` type($init) (`->` type($result)^)?"
    )
    outputs = property(lambda self: (self.init,))


class Rows:
    @staticmethod
    def domain(op):
        return Domain(("parallel", "reduction"), (identity_map(op.x), identity_map(op.init)))

    @staticmethod
    def to_loops(op, builder):
        def row(ivs, b):
            size = buffer_dim(op.x, 1, b)
            close, c = if_else(b, b.insert(arith.CmpiOp(b.value(0), b.value(size), "slt")).result)
            loop, i, d = for_loop(c, 0, size, 1, [load(op.x, [ivs[0], 0], c)])
            best = arith.MaximumfOp(loop.arguments[0], load(op.x, [ivs[0], i], d))
            store(d.insert(best).result, op.init, [ivs[0], i], d)
            loop([best.result])
            close()

        rows(op.x, [0], builder, row)

    @staticmethod
    def reads(op, number):
        return False

    @staticmethod
    def evaluate(op, x, init):
        return [np.maximum.accumulate(x, 1)]


@irdl_op_definition
class PairOp(IRDLOperation):
    name = "probe.pair"
    x = operand_def(FLOATS)
    first = operand_def(FLOATS)
    second = operand_def(FLOATS)
    res = var_result_def(TensorType)
    traits = traits_def(DestinationStyleEffects())
    assembly_format = (
        "$x `into` $first `,` $second attr-dict `:` "
        "type($x) `,` type($first) `,` type($second) (`->` type($res)^)?"
    )
    outputs = property(lambda self: (self.first, self.second))


class Pair:
    @staticmethod
    def domain(op):
        neighbours = AffineMap(1, 0, (AffineDimExpr(0) + 1,))
        return Domain(("parallel",), (neighbours, identity_map(op.first), identity_map(op.second)))

    @staticmethod
    def to_loops(op, builder):
        def element(ivs, b):
            a, c = (load(op.x, [b.add(ivs[0], offset)], b) for offset in (0, 1))
            store(b.insert(arith.AddfOp(a, c)).result, op.first, [ivs[0]], b)
            store(b.insert(arith.MulfOp(a, c)).result, op.second, [ivs[0]], b)

        rows(op.first, [0], builder, element)

    @staticmethod
    def evaluate(op, x, first, second):
        size = len(first)
        return [x[:size] + x[1 : size + 1], x[:size] * x[1 : size + 1]]


@irdl_op_definition
class PutOp(IRDLOperation):
    name = "probe.put"
    x = operand_def(FLOATS)
    whole = operand_def(FLOATS)
    result = var_result_def(TensorType)
    traits = traits_def(DestinationStyleEffects())
    assembly_format = (
        "$x `into` $whole attr-dict `:` type($x) `,` type($whole) (`->` type($result)^)?"
    )
    outputs = property(lambda self: (self.whole,))


class Put:
    updates = True

    @staticmethod
    def domain(op):
        return Domain(("parallel",), (identity_map(op.x), AffineMap(1, 0, (AffineDimExpr(0) * 2,))))

    @staticmethod
    def to_loops(op, builder):
        def element(ivs, b):
            store(load(op.x, [ivs[0]], b), op.whole, [b.mul(ivs[0], 2)], b)

        rows(op.x, [0], builder, element)

    @staticmethod
    def evaluate(op, x, whole):
        found = whole.copy()
        found[: 2 * len(x) : 2] = x
        return [found]


@irdl_op_definition
class ScalarOp(IRDLOperation):
    name = "probe.scalar"
    x = operand_def(AnyFloat)
    result = result_def(AnyFloat)
    traits = traits_def(Pure())
    assembly_format = "$x attr-dict `:` type($x) `->` type($result)"


class Scalar:
    """2 x + 1"""

    @staticmethod
    def to_structured(op, builder):
        one = builder.insert(constant(1.0, op.x.type)).result
        double = builder.insert(arith.AddfOp(op.x, op.x)).result
        return [builder.insert(arith.AddfOp(double, one)).result]


@irdl_op_definition
class FusedOp(IRDLOperation):
    name = "probe.fused"
    x = operand_def(TensorType.constr(AnyFloat))
    result = result_def(TensorType.constr(AnyFloat))
    traits = traits_def(Pure())
    assembly_format = "$x attr-dict `:` type($x) `->` type($result)"


class Fused:
    """2 x + 1 of each element"""

    @staticmethod
    def to_structured(op, builder):
        kind = op.x.type.element_type

        def body(scalars, values):
            return [
                scalars.insert(ScalarOp.create(operands=[values[0]], result_types=[kind])).result
            ]

        init = builder.empty(kind, dims(op.x, builder))
        return builder.compute([op.x], [init], [identity_map(op.x)] * 2, body)


@irdl_op_definition
class ViewOp(IRDLOperation):
    name = "probe.view"
    x = operand_def(TensorType)
    result = result_def(TensorType)
    traits = traits_def(Pure())
    assembly_format = "$x attr-dict `:` type($x) `->` type($result)"


class View:
    """All elements, in a row."""

    @staticmethod
    def to_structured(op, builder):
        groups = [list(range(rank_of(op.x)))]
        return [collapse(op.x, groups, op.result.type, builder)]


Probe = Dialect("probe", [RowsOp, PairOp, PutOp, ScalarOp, FusedOp, ViewOp])
HERE = "tests.probe_dialect"
PLUGIN = Plugin(
    name="probe",
    version="1",
    dialects={"probe": f"{HERE}:Probe"},
    interfaces={
        f"probe.{name.lower()}": f"{HERE}:{name}"
        for name in ("Rows", "Pair", "Put", "Scalar", "Fused", "View")
    },
)
