"""Verification rules for memref."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations, pairwise
from math import prod
from typing import Any

from xdsl.dialects import memref
from xdsl.dialects.builtin import (
    DYNAMIC_INDEX,
    AffineMapAttr,
    AnyFloat,
    DenseIntOrFPElementsAttr,
    DenseResourceAttr,
    IndexType,
    IntegerAttr,
    IntegerType,
    MemRefType,
    NoneAttr,
    StringAttr,
    UnitAttr,
    UnrankedMemRefType,
)
from xdsl.ir import Attribute, Operation
from xdsl.ir.affine import AffineMap
from xdsl.traits import SymbolTable
from xdsl.utils.exceptions import VerifyException

from ..upstream.memref import ATOMIC_KINDS
from ._layouts import Known, layout_of, plus, size, times

VISIBILITIES = ("public", "private", "nested")


def check_alignment(op: Operation) -> None:
    """Checks that the alignment is a power of two."""
    attr = op.properties.get("alignment", op.attributes.get("alignment"))
    if isinstance(attr, IntegerAttr):
        number = attr.value.data
        if number <= 0 or number & (number - 1):
            raise VerifyException(f"alignment must be a power of 2, but is {number}")


def _space(kind: Any) -> Attribute:
    space = kind.memory_space
    if isinstance(space, IntegerAttr) and space.value.data == 0:
        return NoneAttr()
    return space


def _check_same(source: Any, result: Any) -> None:
    if source.element_type != result.element_type:
        raise VerifyException(
            f"source element type {source.element_type} does not match result element type "
            f"{result.element_type}"
        )
    if _space(source) != _space(result):
        raise VerifyException("different memory spaces specified for source and result")


def check_map(op: Any) -> None:
    """Checks that an affine layout has the memref's rank and an operand per symbol."""
    kind = op.results[0].type
    if isinstance(kind, MemRefType) and isinstance(kind.layout, AffineMapAttr):
        layout, rank = kind.layout.data, kind.get_num_dims()
        if layout.num_dims != rank:
            raise VerifyException(
                f"memref layout mismatch between rank and affine map: {rank} != {layout.num_dims}"
            )
        identity = layout.results == AffineMap.identity(rank).results
        if layout.num_symbols != len(op.symbol_operands) and not identity:
            raise VerifyException("symbol operand count does not equal memref symbol count")


# --- views ---------------------------------------------------------------------------------------


def _numbers(op: Any, name: str) -> list[Known]:
    return [size(n) for n in op.properties[f"static_{name}"].get_values()]


def check_reinterpret_cast(op: Any) -> None:
    """Checks that the result type has the given offset, sizes and strides."""
    result = op.results[0].type
    _check_same(op.operands[0].type, result)
    offsets, sizes, strides = (_numbers(op, name) for name in ("offsets", "sizes", "strides"))
    if len(offsets) != 1:
        raise VerifyException(f"expected 1 offset values, got {len(offsets)}")
    if len(sizes) != len(strides) or len(sizes) != result.get_num_dims():
        raise VerifyException(
            f"expected mixed sizes rank to match mixed strides rank ({len(sizes)} vs "
            f"{len(strides)}) so the rank of the result type is well-formed"
        )
    found = layout_of(result)
    if found is None:
        raise VerifyException(f"{result} is not strided")
    pairs = [("offset", offsets[0], found.offset, 0)]
    pairs += [("size", a, size(b), i) for i, (a, b) in enumerate(zip(sizes, result.get_shape()))]
    pairs += [("stride", a, b, i) for i, (a, b) in enumerate(zip(strides, found.strides))]
    for what, given, own, dim in pairs:
        if own is not None and given != own:
            raise VerifyException(
                f"expected result type with {what} = {'dynamic' if given is None else given} "
                f"instead of {own} in dim = {dim}"
            )


def check_subview(op: Any) -> None:
    """Checks that the result type is the subview's type, possibly rank-reduced."""
    source, result = op.source.type, op.result.type
    layout = layout_of(source)
    if layout is None:
        raise VerifyException(f"base type {source} is not strided")
    offsets, sizes, strides = (_numbers(op, name) for name in ("offsets", "sizes", "strides"))
    _check_lists(source, offsets, sizes, strides)
    if source.element_type != result.element_type:
        raise VerifyException(
            f"expected result element type to be {source.element_type}, but got {result}"
        )
    if result.get_num_dims() > source.get_num_dims():
        raise VerifyException(
            f"expected result rank to be smaller or equal to the source rank, but got {result}"
        )
    if _space(source) != _space(result):
        raise VerifyException(f"different memory spaces: {source} and {result}")
    _check_bounds(source, offsets, sizes, strides)
    offset = layout.offset
    for at, stride in zip(offsets, layout.strides, strict=True):
        offset = plus(offset, 0 if at == 0 else times(at, stride))
    steps = [times(a, b) for a, b in zip(strides, layout.strides, strict=True)]
    if not _is_part(result, sizes, steps, offset):
        raise VerifyException(
            f"expected result type to have sizes {sizes}, strides {steps} and offset {offset}, or "
            f"a rank-reduced version, but got {result}"
        )


def _check_lists(source: MemRefType, *lists: Sequence[Known]) -> None:
    names = ("offset", "size", "stride")
    counts = [len(each) for each in lists]
    if len(set(counts)) > 1:
        raise VerifyException(
            f"expected mixed offsets rank to match mixed sizes rank and mixed strides rank "
            f"({counts[0]} vs {counts[1]} vs {counts[2]}) so the rank of the result type is "
            "well-formed"
        )
    rank = source.get_num_dims()
    if counts[0] != rank:
        raise VerifyException(f"expected {rank} offset values, got {counts[0]}")
    for name, values in zip(names[:2], lists):
        for number in values:
            if number is not None and number < 0:
                raise VerifyException(f"expected {name}s to be non-negative, but got {number}")


def _check_bounds(
    source: MemRefType, offsets: Sequence[Known], sizes: Sequence[Known], strides: Sequence[Known]
) -> None:
    for dim, extent in enumerate(source.get_shape()):
        at, count, step = offsets[dim], sizes[dim], strides[dim]
        if extent == DYNAMIC_INDEX or at is None:
            continue
        if at >= extent and count != 0:
            raise VerifyException(f"offset {dim} is out-of-bounds: {at} >= {extent}")
        if count is None or step is None or count == 0:
            continue
        last = at + (count - 1) * step
        if last >= extent:
            raise VerifyException(
                f"slice along dimension {dim} runs out-of-bounds: {last} >= {extent}"
            )


def _includes(given: Known, found: Known) -> bool:
    """Whether a number in a type is dynamic or equal to the actual one."""
    return given is None or given == found


def _is_part(
    result: MemRefType, sizes: Sequence[Known], strides: Sequence[Known], offset: Known
) -> bool:
    """Whether a type has these dims, possibly without some unit dims."""
    layout, shape = layout_of(result), [size(n) for n in result.get_shape()]
    if layout is None or not _includes(layout.offset, offset):
        return False
    ones = [i for i, n in enumerate(sizes) if n == 1]
    dropped = len(sizes) - len(shape)
    for chosen in combinations(ones, dropped):
        kept = [i for i in range(len(sizes)) if i not in chosen]
        same = [sizes[i] for i in kept] == shape
        # The stride of a unit dim is irrelevant.
        strides_fit = all(
            _includes(layout.strides[n], strides[i]) for n, i in enumerate(kept) if sizes[i] != 1
        )
        if same and strides_fit:
            return True
    return False


def check_cast(op: Any) -> None:
    """Checks that the types differ only in which numbers are static."""
    source, result = op.operands[0].type, op.results[0].type
    wrong = f"operand type {source} and result type {result} are cast incompatible"
    if source.element_type != result.element_type or _space(source) != _space(result):
        raise VerifyException(wrong)
    if isinstance(source, UnrankedMemRefType) or isinstance(result, UnrankedMemRefType):
        return
    layouts = layout_of(source), layout_of(result)
    if layouts[0] is None or layouts[1] is None:
        return
    pairs = [(layouts[0].offset, layouts[1].offset)]
    pairs += list(zip(layouts[0].strides, layouts[1].strides))
    pairs += [(size(a), size(b)) for a, b in zip(source.get_shape(), result.get_shape())]
    if any(None not in pair and pair[0] != pair[1] for pair in pairs):
        raise VerifyException(wrong)


# --- reshapes ------------------------------------------------------------------------------------


def _groups(op: Any) -> list[list[int]]:
    return [[i.value.data for i in group] for group in op.properties["reassociation"].data]


def _check_groups(wide: MemRefType, narrow: MemRefType, groups: list[list[int]]) -> None:
    """Checks that the product of each group of `wide` dims is a dim of `narrow`."""
    shape = wide.get_shape()
    if narrow.get_num_dims() == 0:
        if any(n != 1 for n in shape):
            raise VerifyException("rank 0 memrefs can only be extended/collapsed with/from ones")
        return
    if len(groups) != narrow.get_num_dims():
        raise VerifyException(
            f"invalid number of reassociation groups: found {len(groups)}, expected "
            f"{narrow.get_num_dims()}"
        )
    for dim, (group, whole) in enumerate(zip(groups, narrow.get_shape(), strict=True)):
        parts = [shape[i] for i in group]
        if (whole == DYNAMIC_INDEX) != (DYNAMIC_INDEX in parts):
            raise VerifyException(
                f"collapsed dim ({dim}) must be dynamic if and only if reassociation group is "
                "dynamic"
            )
        if whole != DYNAMIC_INDEX and prod(parts) != whole:
            raise VerifyException(
                f"collapsed dim size ({whole}) must equal reassociation group size ({prod(parts)})"
            )


def check_expand_shape(op: Any) -> None:
    """Checks that output_shape matches the result, and that its groups match the source dims."""
    source, result = op.operands[0].type, op.results[0].type
    output, shape = list(op.static_output_shape.get_values()), list(result.get_shape())
    if len(output) != len(shape):
        raise VerifyException(
            f"expected number of static shape bounds to be equal to the output rank ({len(shape)}) "
            f"but found {len(output)} inputs instead"
        )
    _check_groups(result, source, _groups(op))
    if output.count(DYNAMIC_INDEX) != shape.count(DYNAMIC_INDEX):
        raise VerifyException(
            f"incorrect number of dynamic sizes, has {output.count(DYNAMIC_INDEX)}, expected "
            f"{shape.count(DYNAMIC_INDEX)}"
        )
    for position, (given, own) in enumerate(zip(output, shape, strict=True)):
        if DYNAMIC_INDEX not in (given, own) and given != own:
            raise VerifyException(f"invalid output shape provided at pos {position}")


def check_collapse_shape(op: Any) -> None:
    """Checks that groups of source dims match the result dims and are contiguous in memory."""
    source, result = op.operands[0].type, op.results[0].type
    groups = _groups(op)
    _check_groups(source, result, groups)
    layout = layout_of(source)
    if layout is None:
        return
    for group in groups:
        # Unit dims may have any stride.
        for outer, inner in pairwise([d for d in group if source.get_shape()[d] != 1]):
            step = times(layout.strides[inner], size(source.get_shape()[inner]))
            own = layout.strides[outer]
            if None not in (step, own) and step != own:
                raise VerifyException("invalid source layout map or collapsing non-contiguous dims")


# --- globals and atomics -------------------------------------------------------------------------


def check_global(op: Any) -> None:
    """Checks a global's visibility, and that its type is static and matches the initial value."""
    kind, value = op.properties["type"], op.properties.get("initial_value")
    if not isinstance(kind, MemRefType) or not kind.has_static_shape():
        raise VerifyException(f"type should be static shaped memref, but got {kind}")
    visibility = op.properties.get("sym_visibility")
    if isinstance(visibility, StringAttr) and visibility.data not in VISIBILITIES:
        raise VerifyException(
            f"visibility expected to be one of {list(VISIBILITIES)}, but got {visibility.data!r}"
        )
    if value is None or isinstance(value, UnitAttr):
        return
    if not isinstance(value, DenseIntOrFPElementsAttr | DenseResourceAttr):
        raise VerifyException("initial value should be a unit or elements attribute")
    own = value.get_type()
    if own.get_element_type() != kind.element_type:
        raise VerifyException(
            f"initial value element expected to be of type {kind.element_type}, but was of type "
            f"{own.get_element_type()}"
        )
    if tuple(own.get_shape()) != tuple(kind.get_shape()):
        raise VerifyException(
            f"initial value shape expected to be {kind.get_shape()} but was {own.get_shape()}"
        )


def check_get_global(op: Any) -> None:
    """Checks that the name refers to a global of the result's type."""
    found = SymbolTable.lookup_symbol(op, op.properties["name"])
    name = op.properties["name"].string_value()
    if not isinstance(found, memref.GlobalOp):
        raise VerifyException(f"{name!r} does not reference a valid global memref")
    if found.properties["type"] != op.results[0].type:
        raise VerifyException(
            f"result type {op.results[0].type} does not match type {found.properties['type']} of "
            f"the global memref @{name}"
        )


def check_atomic(op: Any) -> None:
    """Checks that there is an index per dim, and that the value's type fits the atomic kind."""
    rank = op.memref.type.get_num_dims()
    if len(op.indices) != rank:
        raise VerifyException(
            f"invalid number of indices for accessed memref, expected {rank} but got "
            f"{len(op.indices)}"
        )
    kind = op.kind.value.data
    if not 0 <= kind < len(ATOMIC_KINDS):
        raise VerifyException(f"kind {kind} is not one of 0 to {len(ATOMIC_KINDS) - 1}")
    name = ATOMIC_KINDS[kind]
    if name.endswith("f") and not isinstance(op.value.type, AnyFloat):
        raise VerifyException(f"with kind {name!r} expects a floating-point type")
    if name.endswith(("i", "s", "u")) and not isinstance(op.value.type, IntegerType | IndexType):
        raise VerifyException(f"with kind {name!r} expects an integer type")


def check_dim(op: Any) -> None:
    """Checks that the memref does not have rank 0."""
    kind = op.operands[0].type
    if isinstance(kind, MemRefType) and kind.get_num_dims() == 0:
        raise VerifyException(f"operand #0 must be of non-zero rank, but got {kind}")


def check_distinct(op: Operation) -> None:
    """Checks that there are operands, and that the results have their types."""
    if not op.operands:
        raise VerifyException("expected at least one operand")
    if [v.type for v in op.operands] != [v.type for v in op.results]:
        raise VerifyException("operand types and result types must match")


RULES = {
    **{f"memref.{n}": (check_alignment,) for n in ("load", "store", "assume_alignment")},
    "memref.alloc": (check_alignment, check_map),
    "memref.alloca": (check_alignment, check_map),
    "memref.reinterpret_cast": (check_reinterpret_cast,),
    "memref.subview": (check_subview,),
    "memref.cast": (check_cast,),
    "memref.expand_shape": (check_expand_shape,),
    "memref.collapse_shape": (check_collapse_shape,),
    "memref.global": (check_global,),
    "memref.get_global": (check_get_global,),
    "memref.atomic_rmw": (check_atomic,),
    "memref.dim": (check_dim,),
    "memref.distinct_objects": (check_distinct,),
}
