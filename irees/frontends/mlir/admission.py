"""
Checks that apply to every module, parsed or built in Python: the limits of `irees.limits` on ops,
types and affine maps, sizes beyond the index range, invalid element types, divisions by zero in
maps, and undefined symbols.

The parser checks some of this while it reads. A module built in Python is checked as a whole.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from xdsl.dialects.builtin import (
    AffineMapAttr,
    AnyFloat,
    ArrayAttr,
    ComplexType,
    DictionaryAttr,
    Float32Type,
    Float64Type,
    Float80Type,
    Float128Type,
    FunctionType,
    IndexType,
    IntegerAttr,
    IntegerType,
    MemRefType,
    NoneType,
    StringAttr,
    SymbolRefAttr,
    TensorType,
    TupleType,
    UnrankedTensorType,
    VectorType,
)
from xdsl.ir import Attribute, Data, Operation, ParametrizedAttribute
from xdsl.ir.affine import AffineBinaryOpExpr, AffineBinaryOpKind, AffineConstantExpr, AffineExpr
from xdsl.utils.hints import isa

from irees import limits
from irees.errors import UnsupportedError, VerifyError

_DIVISIONS = {
    AffineBinaryOpKind.FloorDiv: "floordiv",
    AffineBinaryOpKind.CeilDiv: "ceildiv",
    AffineBinaryOpKind.Mod: "mod",
}


def check_index(value: int, **where: Any) -> None:
    """Raises VerifyError for a number that an index cannot have."""
    if not -(1 << 63) <= value < 1 << 63:
        raise VerifyError(
            f"integer constant out of range: {value} needs more than 64 bits", **where
        )


def check_map(results: Sequence[AffineExpr], **where: Any) -> None:
    """
    Raises LimitExceededError for a map with so many operators that it would exhaust the stack, and
    VerifyError for a constant beyond 64 bits and a division by one that is not positive.
    """
    terms, stack = 0, list(results)
    while stack:
        expr = stack.pop()
        if isinstance(expr, AffineConstantExpr):
            check_index(expr.value, **where)
        if not isinstance(expr, AffineBinaryOpExpr):
            continue
        terms += 1
        if terms > limits.limit("map_terms"):
            raise limits.exceeded("map_terms", "an affine map has too many operators", **where)
        word = _DIVISIONS.get(expr.kind)
        if word and isinstance(expr.rhs, AffineConstantExpr) and expr.rhs.value <= 0:
            raise VerifyError(
                f"'{word} {expr.rhs.value}' in an affine map: the divisor must be positive", **where
            )
        stack += (expr.lhs, expr.rhs)


NO_ELEMENTS = (TensorType, UnrankedTensorType, FunctionType, TupleType, NoneType)
"""Builtin types that are invalid as tensor, memref or vector elements."""

Number = IntegerType | IndexType | AnyFloat | ComplexType[AnyFloat | IntegerType]

MAX_ELEMENTS = 1 << 59
"""Maximum number of elements of a type: byte offsets of 16-byte elements fit in 63 bits."""


def check_shaped(kind: TensorType | MemRefType | VectorType, **where: Any) -> None:
    """
    Raises VerifyError for more elements than an index can count or invalid element types, and
    UnsupportedError for a tensor of anything but numbers, or a buffer of vectors.
    """
    shape, element = kind.get_shape(), kind.element_type
    if isinstance(element, NO_ELEMENTS):
        raise VerifyError(f"invalid element type {element}", **where)
    if isinstance(kind, TensorType) and not isa(element, Number):
        raise UnsupportedError(f"tensors of {element} are not supported", **where)
    if isinstance(kind, MemRefType) and isinstance(element, VectorType):
        raise UnsupportedError(f"buffers of {element} are not supported", **where)
    if math.prod(max(size, 1) for size in shape) > MAX_ELEMENTS:
        sizes = "x".join("?" if size < 0 else str(size) for size in shape)
        raise VerifyError(f"a type of {sizes} elements is larger than any memory", **where)


def check_complex(kind: ComplexType, **where: Any) -> None:
    """Raises UnsupportedError for parts that have no complex type in C."""
    if not isinstance(kind.element_type, Float32Type | Float64Type):
        raise UnsupportedError(
            f"numbers of type {kind} are not supported", hint="use complex<f32>", **where
        )


def size_of(root: Attribute) -> int:
    """The number of nested attributes in an attribute; counts a shared one at each use."""
    sizes: dict[int, int] = {}
    stack = [root]
    while stack:
        attribute = stack[-1]
        inner = [each for each in _inside(attribute) if id(each) not in sizes]
        if inner:
            stack += inner
            continue
        sizes[id(attribute)] = 1 + sum(sizes[id(each)] for each in _inside(attribute))
        stack.pop()
    return sizes[id(root)]


def _inside(attribute: Attribute) -> Sequence[Attribute]:
    if isinstance(attribute, ParametrizedAttribute):
        return attribute.parameters
    if isinstance(attribute, DictionaryAttr):
        return tuple(attribute.data.values())
    if isinstance(attribute, ArrayAttr):
        return attribute.data
    return ()


class _Admission:
    """
    Checks attributes; remembers by identity those already checked, and the first error for a valid
    type that irees does not support.
    """

    def __init__(self):
        self.seen: dict[int, Attribute] = {}
        self.unsupported: UnsupportedError | None = None

    def check(self, roots: Iterable[Attribute], op: Operation) -> None:
        stack = [each for each in roots if id(each) not in self.seen]
        while stack:
            attribute = stack.pop()
            if id(attribute) in self.seen:
                continue
            self.seen[id(attribute)] = attribute
            try:
                _check_attribute(attribute, op)
            except UnsupportedError as error:
                self.unsupported = self.unsupported or error
            if not isinstance(attribute, Data) or isinstance(attribute, ArrayAttr | DictionaryAttr):
                stack += _inside(attribute)


def _check_attribute(attribute: Attribute, op: Operation) -> None:
    if isinstance(attribute, AffineMapAttr):
        check_map(attribute.data.results, op=op)
    elif isinstance(attribute, IntegerAttr):
        if isinstance(attribute.type, IndexType):
            check_index(attribute.value.data, op=op)
    elif isinstance(attribute, IntegerType):
        bits = attribute.width.data
        limits.check("integer_bits", bits, f"i{bits} is too wide", op=op)
    elif isinstance(attribute, Float80Type | Float128Type):
        raise UnsupportedError(f"numbers of type {attribute} are not supported", op=op)
    elif isinstance(attribute, ComplexType):
        check_complex(attribute, op=op)
    elif isinstance(attribute, TensorType | MemRefType | VectorType):
        check_shaped(attribute, op=op)


_REFERENCES = {
    "util.call": "function",
    **dict.fromkeys(
        "util.global.load util.global.store util.global.address memref.get_global "
        "ml_program.global_load ml_program.global_load_const ml_program.global_store".split(),
        "global",
    ),
}
"""Ops that refer to a symbol, and the kind of symbol."""


class _Symbols:
    """Symbol names of each symbol table, cached."""

    def __init__(self):
        self._tables: dict[Operation, set[str]] = {}

    def check(self, op: Operation) -> None:
        """Raises VerifyError if an op refers to a symbol that no enclosing table defines."""
        for attribute in op.properties.values():
            if not isinstance(attribute, SymbolRefAttr):
                continue
            name, scope = attribute.root_reference.data, op.parent_op()
            while scope is not None and name not in self._names(scope):
                scope = scope.parent_op()
            if scope is None:
                raise VerifyError(f"the {_REFERENCES[op.name]} @{name} is not defined", op=op)

    def _names(self, scope: Operation) -> set[str]:
        if (found := self._tables.get(scope)) is None:
            inside = (o for region in scope.regions for b in region.blocks for o in b.ops)
            names = (o.properties.get("sym_name", o.attributes.get("sym_name")) for o in inside)
            found = {n.data for n in names if isinstance(n, StringAttr)}
            self._tables[scope] = found
        return found


def admit(module: Operation, verify: Callable[[], None] = lambda: None) -> None:
    """
    Raises LimitExceededError for a module with more ops, wider integers or larger affine maps than
    `irees.limits` allows. Raises VerifyError for a map that divides by zero, a type larger than any
    memory, or an undefined symbol. Then calls `verify`, so that invalid IR is reported first, and
    raises UnsupportedError for a valid type that irees does not support.
    """
    admission, symbols = _Admission(), _Symbols()
    for number, op in enumerate(module.walk()):
        if number >= limits.limit("ops"):
            raise limits.exceeded("ops", "the program has too many ops", op=op)
        if op.name in _REFERENCES:
            symbols.check(op)
        admission.check(op.properties.values(), op)
        admission.check(op.attributes.values(), op)
        admission.check((value.type for value in op.results), op)
        for region in op.regions:
            for block in region.blocks:
                admission.check((value.type for value in block.args), op)
    verify()
    if admission.unsupported is not None:
        raise admission.unsupported
