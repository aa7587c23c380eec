"""Verification rules for linalg."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from xdsl.dialects.builtin import (
    DYNAMIC_INDEX,
    AnyFloat,
    ArrayAttr,
    ComplexType,
    IntegerType,
    MemRefType,
    ShapedType,
    TensorType,
)
from xdsl.dialects.linalg import abstract_ops
from xdsl.ir import Attribute, Operation
from xdsl.ir.affine import AffineDimExpr, AffineMap
from xdsl.utils.exceptions import VerifyException

from irees.errors import VerifyError

from ._types import element


def _shape(kind: Attribute) -> tuple[int, ...]:
    assert isinstance(kind, ShapedType)
    return tuple(kind.get_shape())


def _differ(a: int, b: int) -> bool:
    """Whether two sizes cannot be equal."""
    return DYNAMIC_INDEX not in (a, b) and a != b


# --- structured ops ----------------------------------------------------------------------------


VERIFIED_FIRST = frozenset(("linalg.map", "linalg.reduce"))
"""Ops whose block arguments MLIR verifies before it verifies the yield."""


def check_yield(op: Operation) -> None:
    """Checks that a structured op's terminator yields one element per output."""
    if not op.regions or len(op.regions[0].blocks) != 1:
        return
    outputs = getattr(op, "outputs", None)
    last = op.regions[0].block.last_op
    if outputs is None or last is None or last.name != "linalg.yield":
        return
    given = [a.type for a in op.regions[0].block.args]
    if op.name in VERIFIED_FIRST and given != [element(v.type) for v in op.operands]:
        # The block arguments are wrong: the op's own verifier reports that.
        return
    if len(last.operands) != len(outputs):
        raise VerifyError(
            f"expected number of yield values ({len(last.operands)}) to match the number of inits "
            f"/ outs operands of the enclosing LinalgOp ({len(outputs)})",
            op=last,
        )
    for number, (value, output) in enumerate(zip(last.operands, outputs, strict=True), 1):
        if value.type != element(output.type):
            raise VerifyError(
                f"type of yield operand {number} ({value.type}) doesn't match the element type "
                f"of the enclosing linalg op ({element(output.type)})",
                op=last,
            )


def check_results(op: Operation) -> None:
    """Checks that a structured op has one result per tensor output, of its type."""
    if not isinstance(op, abstract_ops.LinalgStructuredOperation):
        return
    tensors = [v for v in op.outputs if isinstance(v.type, TensorType)]
    if len(op.results) != len(tensors):
        raise VerifyException(
            f"expected the number of tensor results ({len(op.results)}) to be equal to the number "
            f"of output tensors ({len(tensors)})"
        )
    for output, result in zip(tensors, op.results, strict=True):
        if output.type != result.type:
            number = list(op.operands).index(output)
            raise VerifyException(
                f"expected type of operand #{number} ({output.type}) to match type of "
                f"corresponding result ({result.type})"
            )


def check_parent_of_yield(op: Operation) -> None:
    """Checks that the parent of a yield is a linalg or tensor op."""
    parent = op.parent_op()
    if parent is None or parent.name.partition(".")[0] not in ("linalg", "tensor"):
        raise VerifyException("expected parent op with LinalgOp interface")


def check_fill(op: Any) -> None:
    """Checks that the fill value has the output's element type."""
    value, output = op.inputs[0].type, element(op.outputs[0].type)
    if element(value) != output:
        raise VerifyException(
            f"expected fill value type ({value}) to match output element type ({output})"
        )


def check_broadcast(op: Any) -> None:
    """Checks that the input dims equal the init dims that are not broadcast."""
    source, init = _shape(op.operands[0].type), _shape(op.operands[1].type)
    new = set(op.dimensions.get_values())
    kept = [i for i in range(len(init)) if i not in new]
    for number, (axis, size) in enumerate(zip(kept, source)):
        if _differ(init[axis], size):
            raise VerifyException(
                f"input dim {number} should match init dim {axis}. input: {size}, "
                f"init: {init[axis]}"
            )


# --- indexing maps of contractions ---------------------------------------------------------------

Allowed = Sequence[frozenset[tuple[int, ...]]]
"""Per operand, the loop lists that its indexing map may have."""


def _orders(batch: tuple[int, ...], pair: tuple[int, int], depth: int) -> frozenset[Any]:
    """Returns the allowed maps: a matrix, batched or shared, transposed or not, or a K vector."""
    a, b = pair
    wholes = {(*batch, a, b), (*batch, b, a), (a, b), (b, a)}
    return frozenset({*wholes, (depth,)})


PRODUCTS: dict[str, Allowed] = {
    "linalg.matmul": (
        _orders((), (0, 2), 2), _orders((), (2, 1), 2), frozenset({(0, 1)}),
    ),
    "linalg.batch_matmul": (
        _orders((0,), (1, 3), 3), _orders((0,), (3, 2), 3), frozenset({(0, 1, 2)}),
    ),
    "linalg.batch_reduce_matmul": (
        _orders((0,), (1, 3), 3), _orders((0,), (3, 2), 3), frozenset({(1, 2)}),
    ),
}  # fmt: skip


def check_product(op: Operation) -> None:
    """Checks that a matmul's indexing maps only transpose or broadcast its operands."""
    maps = op.properties.get("indexing_maps", op.attributes.get("indexing_maps"))
    if not isinstance(maps, ArrayAttr):
        return
    for number, (attr, allowed) in enumerate(zip(maps.data, PRODUCTS[op.name])):
        map_: AffineMap = attr.data  # pyright: ignore
        results = map_.results
        found = tuple(e.position if isinstance(e, AffineDimExpr) else -1 for e in results)
        if found not in allowed:
            raise VerifyException(
                f"unexpected dim expression in map result: {map_} of operand #{number}"
            )


def check_contract(op: Operation) -> None:
    """Checks that the maps of a contraction are projected permutations."""
    for attr in op.properties["indexing_maps"].data:  # pyright: ignore
        results = attr.data.results
        dims = [e.position for e in results if isinstance(e, AffineDimExpr)]
        if len(set(dims)) != len(results):
            raise VerifyException("provided affine_map is not a projected permutation")


def check_unsigned_pooling(op: Any) -> None:
    """Checks that unsigned max and min pooling is of integers wider than i1."""
    kind = element(op.inputs[0].type)
    if not isinstance(kind, IntegerType) or kind.width.data == 1:
        raise VerifyException("unsupported operation: unsigned max or min of non-integers")


def check_elementwise(op: Any) -> None:
    """Checks that the inputs are all floats, all integers or all complex."""
    kinds = {
        next(k for k in (AnyFloat, ComplexType, object) if isinstance(element(v.type), k))
        for v in op.inputs
    }
    if len(kinds) > 1:
        types = " and ".join(str(element(v.type)) for v in op.inputs)
        raise VerifyException(
            f"cannot build binary Linalg operation: expects all complex, floats or integers, got "
            f"{types}"
        )


# --- packs ---------------------------------------------------------------------------------------


def check_pack(op: Any) -> None:
    """Checks that inner tiles match the packed type, and are full if there is no padding."""
    packed = op.dest.type if op.name == "linalg.pack" else op.source.type
    plain = op.source.type if op.name == "linalg.pack" else op.dest.type
    if isinstance(packed, MemRefType):
        return
    static = list(op.static_inner_tiles.get_values())
    inner = _shape(packed)[len(_shape(packed)) - len(static) :]
    for number, (tile, size) in enumerate(zip(static, inner, strict=True)):
        if (tile == DYNAMIC_INDEX) != (size == DYNAMIC_INDEX):
            raise VerifyException(
                f"mismatch in inner tile sizes specified and shaped of tiled dimension in the "
                f"packed type at index {number}: got {size} and {tile}"
            )
    if op.name == "linalg.pack" and op.padding_value is None:
        _check_whole_tiles(op, _shape(plain), _shape(packed), static)


def _check_whole_tiles(
    op: Any, plain: tuple[int, ...], packed: tuple[int, ...], tiles: list[int]
) -> None:
    positions = list(op.inner_dims_pos.get_values())
    order = op.properties.get("outer_dims_perm")
    outer = list(order.get_values()) if order is not None else []
    outer = outer or list(range(len(plain)))
    for dim, tile in zip(positions, tiles, strict=True):
        count = packed[outer.index(dim)]
        if DYNAMIC_INDEX in (plain[dim], count) or count == 0:
            continue
        # A dynamic tile cannot be full if its static count does not divide the dim.
        if tile == DYNAMIC_INDEX and plain[dim] % count:
            raise VerifyException(
                "invalid tile factor or output size provided. Only full tiles are supported when "
                "padding_value is not set"
            )


# --- Winograd ------------------------------------------------------------------------------------


def _check_output(found: Sequence[int], wanted: Sequence[int]) -> None:
    if len(found) != len(wanted) or any(map(_differ, found, wanted)):
        raise VerifyException("the output shape is not expected")


def _tiles(size: int, m: int, r: int) -> int:
    """Returns the number of tiles along an image dim. Raises VerifyException for partial tiles."""
    if size == DYNAMIC_INDEX:
        return DYNAMIC_INDEX
    if (size - r + 1) % m:
        raise VerifyException("the output shape is not expected")
    return (size - r + 1) // m


def check_winograd_filter(op: Any) -> None:
    """F x H x W x C  =>  alpha x alpha x C x F"""
    m, r = op.m_and_r
    f, h, w, c = _shape(op.input.type)
    for size, what in ((h, "height"), (w, "width")):
        if size not in (r, 1, DYNAMIC_INDEX):
            raise VerifyException(f"expect filter {what} either equals to r or 1")
    if h == w == 1:
        raise VerifyException("expect either filter height or width equals to r")
    alpha = m + r - 1
    _check_output(_shape(op.output.type), (alpha if h != 1 else 1, alpha if w != 1 else 1, c, f))


def check_winograd_input(op: Any) -> None:
    """N x H x W x C  =>  alpha x alpha x tiles of H x tiles of W x N x C"""
    m, r = op.m_and_r
    n, h, w, c = _shape(op.input.type)
    output = _shape(op.output.type)
    if len(output) != 6:
        raise VerifyException("the output shape is not expected")
    alpha = m + r - 1
    # An axis whose tile size is 1 is not transformed.
    left, right = output[0] != 1, output[1] != 1
    tall = _tiles(h, m, r) if left else h
    wide = _tiles(w, m, r) if right else w
    wanted = (alpha if left else 1, alpha if right else 1, tall, wide, n, c)
    _check_output(output, wanted)


def check_winograd_output(op: Any) -> None:
    """alpha x alpha x tiles of H x tiles of W x N x F  =>  N x H x W x F"""
    m, r = op.m_and_r
    a, b, h, w, n, f = _shape(op.input.type)
    alpha = m + r - 1
    for size, what in ((a, "height"), (b, "width")):
        if size not in (alpha, 1, DYNAMIC_INDEX):
            raise VerifyException(f"expect input {what} equals to input tile size")

    def rows(tiles: int, transformed: bool) -> int:
        if tiles == DYNAMIC_INDEX:
            return tiles
        return tiles * m if transformed else tiles

    _check_output(_shape(op.output.type), (n, rows(h, a != 1), rows(w, b != 1), f))


BINARY = ("add", "sub", "mul", "div", "max", "min", "powf")
RULES: dict[str, tuple[Callable[[Any], None], ...]] = {
    "*": (check_yield, check_results),
    "linalg.yield": (check_parent_of_yield,),
    "linalg.fill": (check_fill,),
    "linalg.broadcast": (check_broadcast,),
    "linalg.contract": (check_contract,),
    **{name: (check_product,) for name in PRODUCTS},
    **{
        f"linalg.pooling_{layout}_{kind}_unsigned": (check_unsigned_pooling,)
        for layout in ("nhwc", "nwc")
        for kind in ("max", "min")
    },
    **{f"linalg.{name}": (check_elementwise,) for name in BINARY},
    "linalg.pack": (check_pack,),
    "linalg.unpack": (check_pack,),
    "linalg.winograd_filter_transform": (check_winograd_filter,),
    "linalg.winograd_input_transform": (check_winograd_input,),
    "linalg.winograd_output_transform": (check_winograd_output,),
}
