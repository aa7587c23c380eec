"""Scaled dot-product attention as one op."""

from __future__ import annotations

from xdsl.dialects.builtin import AffineMapAttr, ArrayAttr, UnitAttr
from xdsl.ir import Block, Region

from irees.dialects.iree_linalg_ext import YieldOp
from irees.dialects.iree_linalg_ext.attention import AttentionOp

from .core import Builder, Size, Tensor, projection
from .dtypes import DType


def attention(
    b: Builder,
    spec: str,
    tensors: tuple[Tensor, Tensor, Tensor],
    scale: float,
    mask: Tensor | None = None,
    dtype: DType | None = None,
) -> Tensor:
    """
    softmax(query . key * scale + mask) . value, with letters as in "bmk,bnk,bnv->bmv".

    `spec` has the letters of query, key and value, and of a mask if there is one. The scores sum
    over the letters that only query and key have. Softmax and the second sum reduce the letters of
    key and value that the query lacks. A bool mask hides the scores where it is false; any other
    mask is added. A row whose scores are all -infinity gives 0. Scores, weights and sums are f32,
    or f64 for f64 operands; weights for f16 and bf16 values are rounded to that type. The result
    has `dtype`, by default that of the query.
    """
    ins, out = spec.split("->")
    letters = ins.split(",")
    operands = [*tensors, *([] if mask is None else [mask])]
    order = out + "".join(c for c in dict.fromkeys("".join(letters)) if c not in out)
    sizes: dict[str, Size] = {}
    for own, t in zip(letters, operands, strict=True):
        for letter, size in zip(own, t.shape, strict=True):
            if isinstance(size, int) or letter not in sizes:
                sizes[letter] = size
    wide = tensors[0].dtype.computed
    init = b.empty(dtype or tensors[0].dtype, [sizes[c] for c in out])
    block = Block(arg_types=[wide.element])
    block.add_op(YieldOp(block.args[0]))
    maps = [
        projection(len(order), tuple(order.index(c) for c in own))
        for own in (*letters[:3], "", *letters[3:], out)
    ]
    values = [t.value for t in operands]
    op = AttentionOp.of(
        [*values[:3], b.number(scale, wide), *values[3:]],
        [init.value],
        {
            "indexing_maps": ArrayAttr(AffineMapAttr(m) for m in maps),
            "zero_masked_rows": UnitAttr(),
        },
        Region(block),
    )
    return Tensor(b.insert(op).results[0], init.dtype, init.shape)
