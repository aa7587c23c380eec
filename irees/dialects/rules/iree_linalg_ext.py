"""Verification rules for iree_linalg_ext."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from xdsl.dialects.builtin import DYNAMIC_INDEX, MemRefType, ShapedType
from xdsl.ir import Attribute, SSAValue
from xdsl.ir.affine import AffineDimExpr
from xdsl.utils.exceptions import VerifyException

from irees.dialects.rules._parents import ends_body_of
from irees.errors import VerifyError

LINES = 2
"""Number of axes that a Winograd transform is applied to."""
IMAGE_DIMS = ([1, 2], [2, 3])
KERNEL_DIMS = ([0, 1], [2, 3])


def _shape(value: SSAValue) -> tuple[int, ...]:
    assert isinstance(value.type, ShapedType)
    return tuple(value.type.get_shape())


def _differ(a: int, b: int) -> bool:
    return DYNAMIC_INDEX not in (a, b) and a != b


def check_sort(op: Any) -> None:
    """Checks that operands have the same shape, including which dims are static."""
    shapes = [_shape(v) for v in op.outputs]
    for number, shape in enumerate(shapes):
        if shape != shapes[0]:
            raise VerifyException(f"expected operand {number} to have same shape as other operands")


def check_scatter(op: Any) -> None:
    """Checks that updates and indices have the same batch dims."""
    updates, indices = _shape(op.updates), _shape(op.indices)
    indexed = len(op.dimension_map.get_values())
    batch = len(updates) - (len(_shape(op.original)) - indexed)
    for dim in range(min(batch, len(indices))):
        if updates[dim] != indices[dim]:
            raise VerifyException(f"mismatch in shape of indices and update value at dim#{dim}")


def check_yield(op: Any) -> None:
    """Reports a wrong yield of a scatter or map_load/map_store region at the terminator."""
    try:
        op.verify_()
    except VerifyException as error:
        last = op.body.block.last_op
        if last is not None and "the region to" in str(error) and "to take" not in str(error):
            raise VerifyError(str(error), op=last) from None


def check_projections(op: Any) -> None:
    """Checks that indexing maps are projected permutations."""
    for attr in op.indexing_maps.data:
        dims = [e.position for e in attr.data.results if isinstance(e, AffineDimExpr)]
        if attr.data.num_symbols or len(set(dims)) != len(attr.data.results):
            raise VerifyException("all indexing maps must be projected permutations")


# --- im2col --------------------------------------------------------------------------------------


def check_im2col(op: Any) -> None:
    """Checks that output sizes, permutation and paddings match the m and k positions."""
    shared = len(op.m_pos) + len(op.k_pos)
    permutation = list(op.input_k_perm.get_values())
    if len(permutation) != shared:
        raise VerifyException(
            f"expected input_k_perm size ({len(permutation)}) to match the number of shared "
            f"dimensions (m_pos + k_pos = {shared})"
        )
    if sorted(permutation) != list(range(shared)):
        raise VerifyException(f"expected input_k_perm to be a permutation of [0, {shared})")
    low, high = (list(p.get_values()) for p in (op.static_input_pad_low, op.static_input_pad_high))
    if len(low) != len(high):
        raise VerifyException("expected input_pad_low and input_pad_high to have the same size")
    rank = len(_shape(op.input))
    if low and len(low) != rank:
        raise VerifyException(
            f"expected input_pad_low size ({len(low)}) to match input rank ({rank})"
        )
    _check_groups(op, shared)


def _check_groups(op: Any, shared: int) -> None:
    """Checks that output dims are batch, M, K, and that M and K cover whole input dims."""
    groups = [list(g.get_values()) for g in op.static_output_sizes.data][len(op.batch_pos) :]
    wanted, taken = len(op.m_pos), 0
    while groups and taken < wanted:
        taken += len(groups.pop(0))
    if taken != wanted:
        raise VerifyException(
            "M/K boundary not found: accumulated output_sizes inner dimensions must equal m_pos "
            "size at some output dim boundary"
        )
    rest = sum(map(len, groups))
    if rest != shared:
        raise VerifyException(
            f"expected sum of K output_sizes inner dimensions ({rest}) to equal m_pos.size() + "
            f"k_pos.size() ({shared})"
        )


# --- Winograd ------------------------------------------------------------------------------------


def _check_dims(found: Sequence[int], allowed: Sequence[list[int]], what: str) -> None:
    if list(found) not in allowed:
        either = " or ".join(map(str, allowed))
        raise VerifyException(f"expect {what} dimensions to be either {either}")


def _check_output(found: Sequence[int], wanted: Sequence[int]) -> None:
    if len(found) != len(wanted) or any(map(_differ, found, wanted)):
        raise VerifyException("incompatible output shape")


def _channels_first(shape: Sequence[int], dims: Sequence[int]) -> bool:
    return list(dims) == [LINES, LINES + 1]


def check_winograd_input(op: Any) -> None:
    """N x H x W x C  =>  tile x tile x N x tiles of H x tiles of W x C"""
    source, output, dims = _shape(op.input), _shape(op.output), op.image_dimensions.get_values()
    if len(source) == LINES:
        return
    _check_dims(dims, IMAGE_DIMS, "image")
    if len(output) != len(source) + LINES:
        raise VerifyException("expected output rank to be equal to input rank + 2")
    m, k = op.output_tile_size.value.data, op.kernel_size.value.data
    n, *_ = source
    channel = source[1 if _channels_first(source, dims) else LINES + 1]
    tiles = [
        DYNAMIC_INDEX if source[d] == DYNAMIC_INDEX else -(-(source[d] - k + 1) // m) for d in dims
    ]
    _check_output(output, (m + k - 1, m + k - 1, n, *tiles, channel))


def check_winograd_output(op: Any) -> None:
    """tile x tile x N x tiles of H x tiles of W x C  =>  N x H x W x C"""
    source, output, dims = _shape(op.input), _shape(op.output), op.image_dimensions.get_values()
    if len(source) == LINES:
        return
    _check_dims(dims, IMAGE_DIMS, "image")
    m = op.output_tile_size.value.data
    _, _, n, tall, wide, channel = source
    h, w = (DYNAMIC_INDEX if t == DYNAMIC_INDEX else t * m for t in (tall, wide))
    first = _channels_first(output, dims)
    _check_output(output, (n, channel, h, w) if first else (n, h, w, channel))


def check_winograd_filter(op: Any) -> None:
    """K x K x C x F  =>  tile x tile x C x F"""
    source, output, dims = _shape(op.input), _shape(op.output), op.kernel_dimensions.get_values()
    if len(source) == LINES:
        return
    _check_dims(dims, KERNEL_DIMS, "kernel")
    m, k = op.output_tile_size.value.data, op.kernel_size.value.data
    if any(_differ(source[d], k) for d in dims):
        raise VerifyException("expect all kernel dimensions to have the kernel size")
    first = _channels_first(source, dims)
    channel, filters = (source[1], source[0]) if first else (source[2], source[3])
    _check_output(output, (m + k - 1, m + k - 1, channel, filters))


# --- custom ops and indices ----------------------------------------------------------------------


def check_custom(op: Any) -> None:
    """Checks that operands are tensors or scalars, and that maps fit their rank and symbols."""
    operands = (*op.inputs, *op.outputs)
    symbols = op.indexing_maps.data[0].data.num_symbols if op.indexing_maps.data else 0
    for number, (value, attr) in enumerate(zip(operands, op.indexing_maps.data)):
        kind: Attribute = value.type
        if isinstance(kind, MemRefType):
            raise VerifyException(f"operand #{number} must be a tensor or a number, but is {kind}")
        if attr.data.num_symbols != symbols:
            raise VerifyException(
                f"inconsistent number of symbol dimensions in indexing_map #{number}, expected "
                f"{symbols} instead of {attr.data.num_symbols}"
            )
        rank = len(kind.get_shape()) if isinstance(kind, ShapedType) else 0
        if attr.data.num_dims and len(attr.data.results) != rank:
            raise VerifyException(
                f"expected operand rank({rank}) to match the result rank of indexing map #{number}"
            )
    for number, (value, argument) in enumerate(zip(op.inputs, op.regions[0].block.args)):
        if not isinstance(value.type, ShapedType) and argument.type != value.type:
            raise VerifyException(
                f"for (scalar) operand #{number} expected corresponding basic block argument to "
                "be of the same type"
            )


INDEXED = ("iree_linalg_ext.custom_op", "iree_linalg_ext.attention",
           "iree_linalg_ext.online_attention", "iree_linalg_ext.exp_reduction")  # fmt: skip


ATTENTIONS = ("iree_linalg_ext.attention", "iree_linalg_ext.online_attention")


def _score_loops(op: Any) -> set[int]:
    """Returns the loops of an attention's scores: query and key loops that are not reduced."""
    maps = [*op.indexing_maps.data[:3], op.output_map]
    query, key, value, output = (
        {dim for expr in m.data.results for dim in expr.used_dims()} for m in maps
    )
    return (query | key) - ((query & key) - value - output)


def check_index(op: Any) -> None:
    """Checks that an index names a loop of its parent op; in an attention, of the scores."""
    parent = op.parent_op()
    if parent is None or parent.name not in INDEXED:
        raise VerifyException(f"expected parent op to be one of {', '.join(INDEXED)}")
    if "iterator_types" in parent.properties:
        loops = len(parent.properties["iterator_types"].data)
    elif parent.name in ATTENTIONS:
        loops = len(_score_loops(parent))
    else:
        loops = parent.indexing_maps.data[0].data.num_dims
    if not 0 <= op.dim.value.data < loops:
        raise VerifyException(
            f"expected dim ({op.dim.value.data}) to be lower than the number of loops ({loops}) of "
            "the enclosing operation"
        )


def check_no_index(op: Any) -> None:
    """Checks that the body of an exp_reduction has no linalg.index."""
    if any(inner.name == "linalg.index" for inner in op.body.walk()):
        raise VerifyException("linalg.index is not supported in body")


RULES = {
    **{name: (check_projections,) for name in ATTENTIONS},
    "iree_linalg_ext.sort": (check_sort,),
    "iree_linalg_ext.scatter": (check_scatter, check_yield),
    "iree_linalg_ext.map_load": (check_yield,),
    "iree_linalg_ext.map_store": (check_yield,),
    "iree_linalg_ext.exp_reduction": (check_projections, check_no_index),
    "iree_linalg_ext.im2col": (check_im2col,),
    "iree_linalg_ext.winograd.input_transform": (check_winograd_input,),
    "iree_linalg_ext.winograd.output_transform": (check_winograd_output,),
    "iree_linalg_ext.winograd.filter_transform": (check_winograd_filter,),
    "iree_linalg_ext.custom_op": (check_custom,),
    "iree_linalg_ext.index": (check_index,),
    "iree_linalg_ext.yield": (ends_body_of("iree_linalg_ext."),),
}
