"""iree_linalg_ext ops for attention: attention, online_attention, exp_reduction."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from xdsl.dialects.builtin import (
    DYNAMIC_INDEX,
    AffineMapAttr,
    AnyFloat,
    ArrayAttr,
    BoolAttr,
    DenseArrayBase,
    DictionaryAttr,
    ShapedType,
    TensorType,
    UnitAttr,
    i64,
)
from xdsl.ir import SSAValue
from xdsl.ir.affine import AffineDimExpr
from xdsl.irdl import (
    AttrSizedOperandSegments,
    ParsePropInAttrDict,
    irdl_op_definition,
    operand_def,
    opt_operand_def,
    opt_prop_def,
    prop_def,
    region_def,
    traits_def,
    var_operand_def,
)
from xdsl.utils.exceptions import VerifyException

from irees.dialects.canonicalization import STATIC_SHAPES

from ..upstream._effects import DestinationStyleEffects
from .attrs import IteratorTypeAttr
from .base import LinalgExtOperation, check_region, shape_of


def _verify_maps(op, operands: Sequence[tuple[SSAValue, AffineMapAttr]]) -> None:
    loops = operands[0][1].data.num_dims
    sizes: dict[int, int] = {}
    for value, attr in operands:
        map_ = attr.data
        if map_.num_dims != loops:
            raise VerifyException(
                f"mismatched map domain: expected {loops} dims, got {map_.num_dims}"
            )
        shape = shape_of(value) if isinstance(value.type, ShapedType) else ()
        if len(map_.results) != len(shape):
            raise VerifyException(
                f"rank mismatch: the map {map_} is of rank {len(map_.results)}, "
                f"the operand of rank {len(shape)}"
            )
        for expr, size in zip(map_.results, shape):
            if not isinstance(expr, AffineDimExpr):
                raise VerifyException(f"expected the map {map_} to be a projected permutation")
            if size != DYNAMIC_INDEX and sizes.setdefault(expr.position, size) != size:
                raise VerifyException(
                    f"shape mismatch along d{expr.position}: {sizes[expr.position]} and {size}"
                )


def _verify_attention(op: AttentionOp | OnlineAttentionOp) -> None:
    operands = (*op.inputs, *op.outputs)
    if len(op.indexing_maps) != len(operands):
        raise VerifyException("expected an indexing map for each operand")
    _verify_maps(op, list(zip(operands, op.indexing_maps)))
    if not isinstance(op.scale.type, AnyFloat):
        raise VerifyException("expected scale to be of floating point type")
    args = [arg.type for arg in op.body.block.args]
    if len(args) != 1 or not isinstance(args[0], AnyFloat):
        raise VerifyException("expected one block argument of floating point type, the score")
    check_region(op.body, args, args, "iree_linalg_ext.yield")
    op.verify_inits()


NARROW_BITS = 8
"""Largest query element width, in bits, for which IREE scales the scores after the region."""


@dataclass(frozen=True)
class RegionUnits:
    """
    Units of the scores that the region of an attention sees.

    IREE computes exp as a power of two: it multiplies the scale by log2(e), so the region sees
    `query . key * scale * log2(e)` and yields an exponent of two. A soft cap of 2 thus limits the
    exponents to 2, not the scores. For queries of at most 8 bits, the scale is applied after the
    region.
    """

    scaled: bool = True
    """Whether the scale is applied before the region."""
    factor: float = 1.0
    """Factor that multiplies the region's argument and divides its result."""

    @staticmethod
    def of(op: AttentionOp | OnlineAttentionOp) -> RegionUnits:
        """Returns the units of an op; an identity region needs no conversion."""
        block = op.body.block
        if len(block.ops) == 1 and block.ops.first.operands[0] is block.args[0]:  # type: ignore
            return RegionUnits()
        query = op.query.type.get_element_type()  # type: ignore[union-attr]
        if isinstance(query, AnyFloat) and query.bitwidth <= NARROW_BITS:
            return RegionUnits(scaled=False)
        config = op.decomposition_config
        if config is not None and config.data.get("use_exp2") == BoolAttr.from_bool(False):
            return RegionUnits()
        return RegionUnits(factor=math.log2(math.e))


@irdl_op_definition
class AttentionOp(LinalgExtOperation):
    """
    softmax(region(query . key * scale) + mask) . value. Each operand's map gives its dims: batch,
    M, K1 (of query and key), K2 (of key and value) and N (IREE: iree_linalg_ext.attention).
    `RegionUnits` has the units of the region. The weights are rounded to values of 16 bits.

    With `zero_masked_rows`, which IREE lacks, a row whose scores are all -infinity gives 0 instead
    of NaN (PyTorch: scaled_dot_product_attention).
    """

    name = "iree_linalg_ext.attention"
    NUM_INS: ClassVar = (4, 5)
    NUM_OUTS: ClassVar = (1, 1)
    query = operand_def(ShapedType)
    key = operand_def(ShapedType)
    value = operand_def(ShapedType)
    scale = operand_def()
    mask = opt_operand_def(ShapedType)
    output = operand_def(ShapedType)
    indexing_maps = prop_def(ArrayAttr[AffineMapAttr])
    decomposition_config = opt_prop_def(DictionaryAttr)
    zero_masked_rows = opt_prop_def(UnitAttr)
    body = region_def("single_block")
    irdl_options = (ParsePropInAttrDict(),)
    traits = traits_def(DestinationStyleEffects(), STATIC_SHAPES)

    @classmethod
    def arrange(cls, ins, outs):
        return [*ins[:4], ins[4:], outs[0]]

    @property
    def outputs(self):
        return (self.output,)

    @property
    def output_map(self) -> AffineMapAttr:
        """The indexing map of the output."""
        return self.indexing_maps.data[-1]

    def verify_(self) -> None:
        _verify_attention(self)


@irdl_op_definition
class OnlineAttentionOp(LinalgExtOperation):
    """
    Attention that carries the running maximum and sum of the scores with the unnormalized result,
    so that it can be tiled along K2. The users of the results divide by the sum
    (IREE: iree_linalg_ext.online_attention).
    """

    name = "iree_linalg_ext.online_attention"
    NUM_INS: ClassVar = (4, 5)
    NUM_OUTS: ClassVar = (3, 3)
    query = operand_def(ShapedType)
    key = operand_def(ShapedType)
    value = operand_def(ShapedType)
    scale = operand_def()
    mask = opt_operand_def(ShapedType)
    output = operand_def(ShapedType)
    max = operand_def(ShapedType)
    sum = operand_def(ShapedType)
    indexing_maps = prop_def(ArrayAttr[AffineMapAttr])
    decomposition_config = opt_prop_def(DictionaryAttr)
    body = region_def("single_block")
    irdl_options = (ParsePropInAttrDict(),)
    traits = traits_def(DestinationStyleEffects(), STATIC_SHAPES)

    @classmethod
    def arrange(cls, ins, outs):
        return [*ins[:4], ins[4:], *outs]

    @property
    def outputs(self):
        return (self.output, self.max, self.sum)

    @property
    def output_map(self) -> AffineMapAttr:
        """The indexing map of the output."""
        return self.indexing_maps.data[-3]

    def verify_(self) -> None:
        _verify_attention(self)


@irdl_op_definition
class ExpReductionOp(LinalgExtOperation):
    """
    linalg.generic whose first input is a score. The outputs listed in `exp_reduced_operands` are
    rescaled by exp(old maximum - new maximum) when the maximum grows (IREE:
    iree_linalg_ext.exp_reduction).
    """

    name = "iree_linalg_ext.exp_reduction"
    INT_LISTS: ClassVar = ("exp_reduced_operands",)
    ins_ = var_operand_def(TensorType)
    outs_ = var_operand_def(TensorType)
    indexing_maps = prop_def(ArrayAttr[AffineMapAttr])
    iterator_types = prop_def(ArrayAttr[IteratorTypeAttr])
    exp_reduced_operands = prop_def(DenseArrayBase.constr(i64))
    body = region_def("single_block")
    irdl_options = (AttrSizedOperandSegments(as_property=True), ParsePropInAttrDict())
    traits = traits_def(DestinationStyleEffects())

    @property
    def inputs(self):
        return self.ins_

    @property
    def outputs(self):
        return self.outs_

    def verify_(self) -> None:
        operands = (*self.inputs, *self.outputs)
        if len(self.indexing_maps) != len(operands) or not operands:
            raise VerifyException("expected an indexing map for each operand")
        if len(self.iterator_types) != self.indexing_maps.data[0].data.num_dims:
            raise VerifyException("expected one iterator type per loop")
        _verify_maps(self, list(zip(operands, self.indexing_maps)))
        if any(not 0 <= i < len(self.outputs) for i in self.exp_reduced_operands.get_values()):
            raise VerifyException("exp_reduced_operands must name outputs")
        elements = [value.type.element_type for value in operands]  # type: ignore[union-attr]
        check_region(self.body, elements, elements[len(self.inputs) :], "iree_linalg_ext.yield")
        self.verify_inits()
