"""
Replaces test ops by results of the value bounds analysis.

    %r = arith.minsi %a, %c4 : index
    %u = "test.reify_bound"(%r) {type = "UB"} : (index) -> (index)
    "test.compare"(%r, %c5) {cmp = "LT"} : (index, index) -> ()
  =>
    %r = arith.minsi %a, %c4 : index
    %u = arith.constant 5 : index            // the remark: true

For tests of `irees.analysis.value_bounds`; no pipeline runs the pass. `test.reify_bound` of a value
(or of a `dim` of it) becomes an equal value (EQ), a closed lower bound (LB) or an open upper bound
(UB), computed from the operands of the value. With `reify-to-func-args` it is computed from
function arguments; with `constant`, or for `test.reify_constant_bound`, it is a number.
`test.compare` of two values, or of two affine maps of values, gives a remark, true or false, and an
error if neither can be proved.

By default, like MLIR's pass, the analysis assumes that index arithmetic does not overflow. With
`wraps`, it drops bounds that overflow could violate. Other ops are unchanged. MLIR:
`-test-affine-reify-value-bounds`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import cast

from xdsl.context import Context
from xdsl.dialects import affine, arith, func, memref, tensor
from xdsl.dialects.builtin import (
    AffineMapAttr,
    IndexType,
    IntegerAttr,
    MemRefType,
    ModuleOp,
    StringAttr,
    UnregisteredOp,
)
from xdsl.ir import Block, BlockArgument, Operation, SSAValue
from xdsl.ir.affine import AffineExpr, AffineMap
from xdsl.passes import ModulePass
from xdsl.rewriter import InsertPoint, Rewriter

from irees.analysis._linear import Linear, Quotient, Remainder
from irees.analysis.value_bounds import BoundType, ValueBounds, Variable
from irees.dialects.util import FuncOp as UtilFuncOp
from irees.errors import UnsupportedError
from irees.remarks import remark

REIFY, CONSTANT, COMPARE = "test.reify_bound", "test.reify_constant_bound", "test.compare"


class _Emitter:
    """Emits, before an op, the computation of a linear form."""

    def __init__(self, before: Operation, order: dict[object, int], *, use_arith: bool) -> None:
        self.before, self.order, self.use_arith = before, order, use_arith

    def insert(self, op: Operation) -> SSAValue:
        Rewriter.insert_op(op, InsertPoint.before(self.before))
        return op.results[0]

    def number(self, value: int) -> SSAValue:
        return self.insert(arith.ConstantOp(IntegerAttr(value, IndexType())))

    def variable(self, variable: Variable) -> SSAValue:
        value = variable.value
        if variable.dim is not None:
            at = self.number(variable.dim)
            of_buffer = isinstance(value.type, MemRefType)
            return self.insert(memref.DimOp(value, at) if of_buffer else tensor.DimOp(value, at))
        if isinstance(value.type, IndexType):
            return value
        return self.insert(arith.IndexCastOp(value, IndexType()))

    def value(self, form: Linear) -> SSAValue:
        """Returns the value of a form, computed with the fewest ops."""
        if form.is_number:
            return self.number(form.constant)
        if len(form.terms) == 1 and form.terms[0][1] == 1 and not form.constant:
            unknown = form.terms[0][0]
            if isinstance(unknown, Variable):
                return self.variable(unknown)
        found = cast("list[Variable]", list(dict.fromkeys(form.unknowns())))
        found.sort(key=lambda each: self.order.get(each, 0))
        if self.use_arith:
            return self.arithmetic(form, {each: self.variable(each) for each in found})
        symbols = {each: AffineExpr.symbol(i) for i, each in enumerate(found)}
        map_ = AffineMap(0, len(found), (self.affine(form, symbols),))
        operands = [self.variable(each) for each in found]
        return self.insert(affine.ApplyOp(operands, AffineMapAttr(map_)))

    def ordered(self, form: Linear) -> list[tuple[object, int]]:
        return sorted(
            form.terms, key=lambda t: self.order.get(t[0], -1) if isinstance(t[0], Variable) else -1
        )

    def affine(self, form: Linear, symbols: dict[Variable, AffineExpr]) -> AffineExpr:
        total: AffineExpr | None = None
        for unknown, factor in self.ordered(form):
            if isinstance(unknown, Quotient):
                part = self.affine(unknown.dividend, symbols) // unknown.divisor
            elif isinstance(unknown, Remainder):
                part = self.affine(unknown.dividend, symbols) % unknown.divisor
            else:
                part = symbols[cast(Variable, unknown)]
            part = part if factor == 1 else part * factor
            total = part if total is None else total + part
        if total is None:
            return AffineExpr.constant(form.constant)
        return total + form.constant if form.constant else total

    def arithmetic(self, form: Linear, values: dict[Variable, SSAValue]) -> SSAValue:
        total: SSAValue | None = None
        for unknown, factor in self.ordered(form):
            if isinstance(unknown, Quotient | Remainder):
                whole = self.arithmetic(unknown.dividend, values)
                by = self.number(unknown.divisor)
                part = self.insert(arith.FloorDivSIOp(whole, by))
                if isinstance(unknown, Remainder):
                    back = self.insert(arith.MuliOp(part, by))
                    part = self.insert(arith.SubiOp(whole, back))
            else:
                part = values[cast(Variable, unknown)]
            if factor != 1:
                part = self.insert(arith.MuliOp(part, self.number(factor)))
            total = part if total is None else self.insert(arith.AddiOp(total, part))
        if total is None:
            return self.number(form.constant)
        if form.constant:
            return self.insert(arith.AddiOp(total, self.number(form.constant)))
        return total


def _text(op: Operation, name: str, default: str) -> str:
    attribute = op.attributes.get(name)
    return attribute.data if isinstance(attribute, StringAttr) else default


def _is_function_argument(variable: Variable) -> bool:
    if not isinstance(variable.value, BlockArgument):
        return False
    block = variable.value.owner
    assert isinstance(block, Block)
    return isinstance(block.parent_op(), func.FuncOp | UtilFuncOp)


@dataclass(frozen=True)
class TestValueBoundsPass(ModulePass):
    """Replaces test ops by bounds of values, and comparisons by remarks."""

    name = "irees-test-value-bounds"

    reify_to_func_args: bool = False
    use_arith_ops: bool = False
    wraps: bool = False

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        failures: list[UnsupportedError] = []
        for query in list(op.walk()):
            if not isinstance(query, UnregisteredOp):
                continue
            bounds = ValueBounds(wraps=self.wraps)
            try:
                if query.op_name.data in (REIFY, CONSTANT):
                    self._reify(query, bounds)
                elif query.op_name.data == COMPARE:
                    self._compare(query, bounds)
            except UnsupportedError as error:
                failures.append(error)
        if failures:
            raise failures[0]

    def _reify(self, op: UnregisteredOp, bounds: ValueBounds) -> None:
        value = op.operands[0]
        dim = op.attributes.get("dim")
        at = dim.value.data if isinstance(dim, IntegerAttr) else None
        kind = BoundType(_text(op, "type", "EQ"))
        root = Variable(value, at)
        if op.op_name.data == CONSTANT or "constant" in op.attributes:
            form = self._constant(bounds, kind, root)
        else:
            stop = _is_function_argument if self.reify_to_func_args else lambda v: v != root
            form = bounds.bound(kind, value, at, stop)
        if form is None:
            raise UnsupportedError("could not reify bound", location=op.location, op=op)
        order = cast("dict[object, int]", bounds.order)
        emitter = _Emitter(op, order, use_arith=self.use_arith_ops)
        Rewriter.replace_op(op, [], [emitter.value(form)])

    def _constant(self, bounds: ValueBounds, kind: BoundType, root: Variable) -> Linear | None:
        low, high = bounds.constant_bounds(root.value, root.dim)
        if kind is BoundType.LB:
            return None if low is None else Linear.number(low)
        if kind is BoundType.UB:
            return None if high is None else Linear.number(high + 1)
        return Linear.number(low) if low is not None and low == high else None

    def _compare(self, op: UnregisteredOp, bounds: ValueBounds) -> None:
        left, right = op.attributes.get("lhs_map"), op.attributes.get("rhs_map")
        values = list(op.operands)
        count = 1
        if isinstance(left, AffineMapAttr):
            count = left.data.num_dims + left.data.num_symbols
        elif isinstance(right, AffineMapAttr):
            count = len(values) - right.data.num_dims - right.data.num_symbols
        a = self._side(bounds, left, values[:count])
        b = self._side(bounds, right, values[count:])
        relation = _text(op, "cmp", "EQ")
        found = None if a is None or b is None else bounds.compare(a, relation, b)
        if found is None:
            raise UnsupportedError("unknown", location=op.location, op=op)
        composed = "compose" in op.attributes
        words = ("equal", "different") if composed else ("true", "false")
        remark("analysis", self.name, op.location, words[0] if found else words[1])

    def _side(self, bounds: ValueBounds, map_: object, values: Sequence[SSAValue]) -> Linear | None:
        if isinstance(map_, AffineMapAttr):
            return bounds.map_form(map_.data, values)
        return bounds.expression(values[0])
