"""Verification rules for vector."""

from __future__ import annotations

from collections.abc import Callable
from math import prod
from typing import Any

from xdsl.dialects.builtin import MemRefType, VectorType
from xdsl.ir import Attribute, Operation
from xdsl.ir.affine import AffineDimExpr
from xdsl.utils.exceptions import VerifyException

from ._layouts import layout_of
from ._types import check_signless, check_widths, scalable
from .memref import check_alignment

MASKABLE = (
    "vector.transfer_read", "vector.transfer_write", "vector.reduction",
    "vector.multi_reduction", "vector.contract", "vector.outerproduct", "vector.gather",
)  # fmt: skip


def _vector(op: Operation) -> VectorType | None:
    kinds = [v.type for v in (*op.results, *op.operands)]
    return next((k for k in kinds if isinstance(k, VectorType)), None)


def _memory(op: Operation) -> MemRefType | None:
    return next((v.type for v in op.operands if isinstance(v.type, MemRefType)), None)


def check_strides(op: Operation) -> None:
    """Checks that memref strides are non-negative."""
    kind = _memory(op)
    layout = None if kind is None else layout_of(kind)
    if layout is not None and any(s is not None and s < 0 for s in layout.strides):
        raise VerifyException("memref strides must be non-negative")


def check_dense(op: Operation) -> None:
    """Checks that the memref has unit stride innermost and at least the vector's rank."""
    kind, vector = _memory(op), _vector(op)
    if kind is None or vector is None or isinstance(kind.element_type, VectorType):
        return
    if prod(vector.get_shape()) == 1 and not any(scalable(vector)):
        return
    if kind.get_num_dims() < vector.get_num_dims():
        raise VerifyException("the memref has lower rank than the vector")
    layout = layout_of(kind)
    if layout is not None and layout.strides and layout.strides[-1] not in (1, None):
        raise VerifyException("most minor memref dim must have unit stride")


def check_halves(op: Operation) -> None:
    """Checks that both results have the same type, with half the source's last dim."""
    source, (first, second) = op.operands[0].type, (r.type for r in op.results)
    if first != second:
        raise VerifyException("all of {res1, res2} must have the same type")
    if not isinstance(source, VectorType) or not isinstance(first, VectorType):
        return
    whole, half = source.get_shape(), first.get_shape()
    if whole[:-1] != half[:-1] or 2 * half[-1] != whole[-1]:
        raise VerifyException(
            "the trailing dimension of the results must be half the width of the source's"
        )


def check_mask(op: Any) -> None:
    """Checks that a mask encloses one maskable op of its shape and yields that op's results."""
    mask = op.operands[0].type
    if not isinstance(mask, VectorType) or mask.get_num_dims() == 0:
        raise VerifyException(f"operand #0 must be a vector of i1 of non-zero rank, but got {mask}")
    block = op.regions[0].blocks[0]
    inner = [o for o in block.ops if o.name != "vector.yield"]
    if len(inner) != 1:
        return
    if inner[0].name not in MASKABLE:
        raise VerifyException("expects a MaskableOpInterface within the mask region")
    if len(op.results) != len(inner[0].results):
        raise VerifyException("expects number of results to match maskable operation number")
    last = block.last_op
    if last is not None and any(v not in inner[0].results for v in last.operands):
        raise VerifyException(
            "expects all the results from the MaskableOpInterface to match all the values "
            "returned by the terminator"
        )
    if inner[0].name == "vector.reduction":
        shape = inner[0].operands[0].type.get_shape()  # pyright: ignore
        if mask.get_shape() != shape:
            raise VerifyException(f"expects a mask of shape {shape} for the maskable operation")


def check_contract(op: Any) -> None:
    """Checks that each loop indexes the LHS or RHS, and that integers are signless."""
    for value in op.operands:
        check_signless(value.type, "integers of a contraction")
    maps = [attr.data for attr in op.properties["indexing_maps"].data]
    named = {e.position for m in maps[:2] for e in m.results if isinstance(e, AffineDimExpr)}
    if len(named) != maps[0].num_dims:
        raise VerifyException("expected all dimensions to be either a LHS or a RHS dimension")


def check_outer_product(op: Operation) -> None:
    """Checks that the LHS is scalable only if the RHS is."""
    lhs, rhs = (scalable(v.type) for v in op.operands[:2])
    if lhs and rhs and lhs[0] and not rhs[0]:
        raise VerifyException("expected either both or only #2 operand dim to be scalable")


def check_slice(whole: Callable[[Operation], Attribute], part: Callable[[Operation], Attribute]):
    """Returns a rule: a scalable dim is sliced whole and stays scalable."""

    def rule(op: Operation) -> None:
        outer, inner = whole(op), part(op)
        if not isinstance(outer, VectorType) or not isinstance(inner, VectorType):
            return
        skipped = outer.get_num_dims() - inner.get_num_dims()
        dims = zip(
            scalable(outer)[skipped:], scalable(inner), outer.get_shape()[skipped:],
            inner.get_shape(),
        )  # fmt: skip
        for dim, (a, b, whole_size, size) in enumerate(dims):
            if a != b:
                raise VerifyException(f"mismatching scalable flags (at source vector idx={dim})")
            if a and whole_size != size:
                raise VerifyException(
                    f"expected size at idx={dim} to match the corresponding base size from the "
                    f"input vector ({size} vs {whole_size})"
                )

    return rule


FLOATLESS = ("and", "or", "xor", "minui", "minsi", "maxui", "maxsi")


def check_scan(op: Any) -> None:
    """Checks that bitwise and integer combining kinds are not used on floats."""
    kind = str(op.properties["kind"])
    element = op.operands[0].type.element_type
    if any(f"<{name}>" in kind for name in FLOATLESS) and str(element).startswith(("f", "bf")):
        raise VerifyException(f"unsupported reduction type {element} for {kind}")


RULES = {
    "*": (check_widths,),
    "vector.load": (check_alignment, check_strides, check_dense),
    "vector.store": (check_alignment, check_strides, check_dense),
    **{
        f"vector.{name}": (check_alignment, check_strides)
        for name in ("maskedload", "maskedstore", "gather", "scatter")
    },
    "vector.deinterleave": (check_halves,),
    "vector.mask": (check_mask,),
    "vector.contract": (check_contract,),
    "vector.outerproduct": (check_outer_product,),
    "vector.scan": (check_scan,),
    "vector.extract_strided_slice": (
        check_slice(lambda op: op.operands[0].type, lambda op: op.results[0].type),
    ),
    "vector.insert_strided_slice": (
        check_slice(lambda op: op.results[0].type, lambda op: op.operands[0].type),
    ),
}
