"""
Stores narrow floats and odd-width integers in 8- to 64-bit integers, and computes in wider types.

    %r = linalg.generic ins(%x : tensor<4xf8E5M2>, ...) {
    ^bb0(%a: f8E5M2, %b: f32, %o: f8E5M2):
      %w = arith.extf %a : f8E5M2 to f32
      %s = arith.addf %w, %b : f32
      %n = arith.truncf %s : f32 to f8E5M2
      linalg.yield %n : f8E5M2 }
  =>
    %r = linalg.generic ins(%x : tensor<4xi8>, ...) {
    ^bb0(%a: i8, %b: f32, %o: i8):
      %w = <widened %a>                 // shifts, and a product with a power of two
      %s = arith.addf %w, %b : f32
      %n = <rounded %s> : i8            // to nearest even
      linalg.yield %n : i8 }

* Floats of at most 8 bits are stored as their bit pattern (code), one byte each, like ml_dtypes.
  `irees/transforms/utils/narrow_floats.py` converts them. Other ops compute in f32 and round.
* Integers of 2 to 63 bits without a C type of that size are sign-extended (`narrow_ints.py`), those
  of arguments once more: what numpy holds above the bits of an int4 is arbitrary.

`irees.element` keeps the types of the program's arguments and results for callers. The pass runs
after all passes that create bodies of structured ops and before all that inspect them: later passes
and the C and CUDA printers do not support narrow types. MLIR: `arith-expand`,
`arith-emulate-unsupported-floats`; IREE: `iree-codegen-convert-unsupported-float-arith`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np
from xdsl.context import Context
from xdsl.dialects import func
from xdsl.dialects.builtin import (
    ArrayAttr,
    DenseIntOrFPElementsAttr,
    DenseResourceAttr,
    DictionaryAttr,
    Float64Type,
    FloatAttr,
    IntegerAttr,
    ModuleOp,
    ShapedType,
    TensorType,
    VectorType,
    f32,
    f64,
)
from xdsl.ir import Attribute, Block, Operation, ParametrizedAttribute, SSAValue, TypeAttribute
from xdsl.ir.affine import AffineMap
from xdsl.passes import ModulePass
from xdsl.rewriter import Rewriter

from irees.dialects.resources import is_splat
from irees.dialects.signature import is_entry, mark_elements
from irees.errors import UnsupportedError
from irees.interpreters.values import constant as value_of
from irees.transforms.global_opt.store_narrow_types.narrow_ints import Narrow, integer_op
from irees.transforms.utils.copies import same_op
from irees.transforms.utils.narrow_floats import narrow_float, rounded, stored, widened
from irees.transforms.utils.shapes import dims
from irees.transforms.utils.tensors import ScalarBuilder, TensorBuilder

COMPUTE = ("arith", "math")
"""Dialects whose ops compute with scalars."""

MOVES = frozenset(("arith.constant", "arith.select"))
"""Ops of COMPUTE that are correct once their types change."""

VECTOR_COMPUTE = frozenset(
    f"vector.{name}"
    for name in "bitcast contract fma multi_reduction outerproduct reduction scan".split()
)
"""Vector ops that compute with the elements, or depend on their width."""

NEAREST_EVEN = "to_nearest_even"


def element(kind: Attribute) -> Attribute:
    """Returns the element type of a shaped type, any other type unchanged."""
    return kind.get_element_type() if isinstance(kind, ShapedType) else kind  # pyright: ignore


@dataclass
class Storage:
    """Maps the types and attributes of a module to their storage (memoized)."""

    known: dict[Attribute, Attribute] = field(default_factory=dict[Attribute, Attribute])

    def type(self, kind: Attribute) -> Attribute:
        """Returns the storage type of a type, `kind` itself if it does not change."""
        found = self.known.get(kind)
        if found is None:
            found = self.known[kind] = self._type(kind)
        return found

    def _type(self, kind: Attribute) -> Attribute:
        if (simple := stored(kind)) is not None:
            return simple
        if isinstance(kind, ArrayAttr):
            return ArrayAttr(self.type(each) for each in kind.data)
        if not isinstance(kind, ParametrizedAttribute) or not kind.parameters:
            return kind
        inner = [self.type(each) for each in kind.parameters]
        if all(new == old for new, old in zip(inner, kind.parameters, strict=True)):
            return kind
        return type(kind).new(inner)

    def attribute(self, attr: Attribute) -> Attribute:
        """Returns the stored form of a constant or type."""
        if isinstance(attr, FloatAttr):
            return _code(attr) if narrow_float(attr.type) is not None else attr
        if isinstance(attr, IntegerAttr):
            kind = self.type(attr.type)
            if kind == attr.type:
                return attr
            return IntegerAttr(int(value_of(attr)), kind)  # type: ignore[arg-type]
        if isinstance(attr, DenseIntOrFPElementsAttr | DenseResourceAttr):
            return self._elements(attr)
        if isinstance(attr, ArrayAttr):
            return ArrayAttr(self.attribute(each) for each in attr.data)
        if isinstance(attr, DictionaryAttr):
            return DictionaryAttr({k: self.attribute(v) for k, v in attr.data.items()})
        return self.type(attr) if isinstance(attr, TypeAttribute) else attr

    def update(self, op: Operation) -> None:
        """Stores the constants and types in the properties and attributes of an op."""
        for attributes in (op.properties, op.attributes):
            for key, value in attributes.items():
                new = self.attribute(value)
                if new != value:
                    attributes[key] = new

    def _elements(self, attr: DenseIntOrFPElementsAttr | DenseResourceAttr) -> Attribute:
        kind = attr.get_type()
        new = self.type(kind)
        if new == kind:
            return attr
        if narrow_float(element(kind)) is not None:
            if isinstance(attr, DenseResourceAttr):
                return DenseResourceAttr(attr.resource_handle, new)  # type: ignore[arg-type]
            return DenseIntOrFPElementsAttr(new, attr.data)  # type: ignore[arg-type]
        array = value_of(attr)
        if not is_splat(attr):
            values = array.reshape(-1).tolist()
            return DenseIntOrFPElementsAttr.from_list(new, values)  # type: ignore
        # `from_list` would write out each element of a splat.
        one = TensorType(element(new), [1])
        value = DenseIntOrFPElementsAttr.from_list(one, [array.flat[0].item()])  # type: ignore
        return DenseIntOrFPElementsAttr(new, value.data)  # type: ignore


def _code(attr: FloatAttr) -> IntegerAttr:
    """Returns a float constant as the integer of its bits."""
    code = np.array(value_of(attr)).view(np.int8)
    return IntegerAttr(int(code), stored(attr.type))  # type: ignore[arg-type]


def narrow_values(module: ModuleOp, storage: Storage) -> dict[SSAValue, Attribute]:
    """Returns the values whose types change, with their original types."""
    found: dict[SSAValue, Attribute] = {}
    for op in module.walk():
        for value in _made_by(op):
            if storage.type(value.type) != value.type:
                found[value] = value.type
    return found


def _made_by(op: Operation) -> Iterator[SSAValue]:
    yield from op.results
    for region in op.regions:
        for block in region.blocks:
            yield from block.args


@dataclass
class Lowering:
    """An op on stored values, with the original element types of its operands and results."""

    op: Operation
    operands: list[Attribute]
    results: list[Attribute]

    @staticmethod
    def of(op: Operation, before: dict[SSAValue, Attribute]) -> Lowering:
        """Captures the types of an op. Call it before any rewrite: rewrites replace operands."""
        sides = (op.operands, op.results)
        return Lowering(op, *([element(before.get(v, v.type)) for v in side] for side in sides))

    def lower(self) -> None:
        """Rewrites the op unless it is correct on stored values."""
        op = self.op
        self._refuse_vectors()
        if op.name in ("arith.bitcast", "tensor.bitcast"):
            self._bitcast()
            return
        if op.dialect_name() not in COMPUTE or op.name in MOVES or len(op.results) != 1:
            return
        s = ScalarBuilder.before(op)
        floats = any(map(narrow_float, (*self.operands, *self.results)))
        value = self._float_op(s) if floats else self._integer_op(op, s)
        if value is not None:
            Rewriter.replace_op(op, [], [value])

    def _refuse_vectors(self) -> None:
        """Raises UnsupportedError for an op that computes with vectors of a narrow type."""
        op, kinds = self.op, [*self.operands, *self.results]
        values = (*op.operands, *op.results)
        if op.name in MOVES or (op.dialect_name() not in COMPUTE and op.name not in VECTOR_COMPUTE):
            return
        for kind, value in zip(kinds, values, strict=True):
            if isinstance(value.type, VectorType) and stored(kind) is not None:
                raise UnsupportedError(
                    f"arithmetic on vectors of {kind}",
                    op=op,
                    hint=f"load elements of {kind} one by one and extend them, or use tensors",
                )

    def _integer_op(self, op: Operation, s: ScalarBuilder) -> SSAValue | None:
        return integer_op(op, s, Narrow.of(self.operands[0]), Narrow.of(self.results[0]))

    def _wide(self, position: int, s: ScalarBuilder) -> SSAValue:
        """Returns an operand, widened to f32 if it is a narrow float."""
        value, name = self.op.operands[position], narrow_float(self.operands[position])
        return value if name is None else widened(s, value, name)

    def _float_op(self, s: ScalarBuilder) -> SSAValue:
        """op(a)  =>  round(op(widen(a)))"""
        op, target = self.op, narrow_float(self.results[0])
        if op.name in ("arith.extf", "arith.truncf"):
            return self._cast(s, target)
        operands = [self._wide(i, s) for i in range(len(self.operands))]
        new = s.insert(same_op(op, operands, [op.results[0].type if target is None else f32]))
        value = new.results[0]
        if Narrow.of(self.operands[0]) or Narrow.of(self.results[0]):
            rewritten = self._integer_op(new, ScalarBuilder.before(new))
            if rewritten is not None:
                Rewriter.replace_op(new, [], [rewritten])
                value = rewritten
        return value if target is None else rounded(s, value, target)

    def _cast(self, s: ScalarBuilder, target: str | None) -> SSAValue:
        """extf, truncf"""
        op = self.op
        mode = op.properties.get("roundingmode")
        if mode is not None and NEAREST_EVEN not in str(mode):
            raise UnsupportedError(
                f"rounding {mode} to {self.results[0]}",
                op=op,
                hint=f"round {NEAREST_EVEN}, the default",
            )
        value = self._wide(0, s)
        if target is None:
            return s.cast(value, op.results[0].type)
        kind = f64 if isinstance(value.type, Float64Type) else f32
        return rounded(s, s.cast(value, kind), target)

    def _bitcast(self) -> None:
        """bitcast  =>  sign or zero extension: stored integers are sign-extended, codes are not."""
        op, value, result = self.op, self.op.operands[0], self.op.results[0]
        if value.type != result.type:
            return
        source, target = Narrow.of(self.operands[0]), Narrow.of(self.results[0])

        def bits(s: ScalarBuilder, x: SSAValue) -> SSAValue:
            if source is not None:
                return source.unsigned(x, s)
            assert target is not None
            return target.wrapped(x, s)

        if source == target:
            found = value
        elif isinstance(value.type, TensorType):
            b = TensorBuilder(op)
            init = b.empty(element(result.type), dims(value, b))
            identity = AffineMap.identity(value.type.get_num_dims())
            (found,) = b.compute([value], [init], [identity] * 2, lambda s, v: [bits(s, v[0])])
        else:
            found = bits(ScalarBuilder.before(op), value)
        Rewriter.replace_op(op, [], [found])


def mark_signature(function: func.FuncOp) -> None:
    """Records the narrow element types of an entry's arguments and results for callers."""
    kinds = function.function_type
    for kind, types in (("arg", kinds.inputs), ("res", kinds.outputs)):
        elements = {i: element(t) for i, t in enumerate(types)}
        mark_elements(function, kind, {i: str(e) for i, e in elements.items() if stored(e)})


def extend_arguments(before: dict[SSAValue, Attribute]) -> None:
    """
    Sign-extends the integers of an entry's arguments: a caller's byte has any bits above those of
    the number. ml_dtypes stores -6 of int4 as 0x0A.
    """
    for argument, kind in before.items():
        block, narrow = argument.owner, Narrow.of(element(kind))
        if narrow is None or not isinstance(block, Block) or block.first_op is None:
            continue
        function = block.parent_op()
        if not isinstance(function, func.FuncOp) or not is_entry(function):
            continue
        b, uses = TensorBuilder(block.first_op), list(argument.uses)
        if isinstance(argument.type, TensorType):
            init = b.empty(narrow.storage, dims(argument, b))
            identity = AffineMap.identity(argument.type.get_num_dims())
            (extended,) = b.compute(
                [argument], [init], [identity] * 2, lambda s, v, n=narrow: [n.wrapped(v[0], s)]
            )
        else:
            extended = narrow.wrapped(argument, b)
        for use in uses:
            use.operation.operands[use.index] = extended


@dataclass(frozen=True)
class StoreNarrowTypesPass(ModulePass):
    """Stores narrow floats and odd-width integers in integers of whole bytes."""

    name = "irees-store-narrow-types"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        storage = Storage()
        before = narrow_values(op, storage)
        for inner in op.walk():
            if isinstance(inner, func.FuncOp) and is_entry(inner):
                if storage.type(inner.function_type) != inner.function_type:
                    mark_signature(inner)
            storage.update(inner)
        if not before:
            return
        before = {
            Rewriter.replace_value_with_new_type(value, storage.type(kind)): kind
            for value, kind in before.items()
        }
        touched = [o for o in op.walk() if any(v in before for v in (*o.operands, *o.results))]
        for lowering in [Lowering.of(o, before) for o in touched if o.operands]:
            lowering.lower()
        extend_arguments(before)
