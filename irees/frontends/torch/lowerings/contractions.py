"""Matrix products and einsum."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ...builder import Size, Tensor, contractions, shapes
from ...builder.dtypes import F32, INDEX
from ..calls import Call, NotLowered, lowers, lowers_named
from ..operators import aten


@lowers(aten.mm.default, aten.bmm.default, aten.matmul.default, aten.mv.default, aten.dot.default,
        aten.linalg_matmul.default)  # fmt: skip
def matmul(call: Call, x: Tensor, y: Tensor) -> Tensor:
    """x @ y"""
    if not x.rank or not y.rank:
        raise call.unsupported("a product of matrices without dims")
    call.check_same_dtype(x, y)
    return call.b.cast(contractions.matmul(call.b, x, y), call.dtype())


@lowers(aten.mm.dtype, aten.bmm.dtype)
def matmul_dtype(call: Call, x: Tensor, y: Tensor, _: Any) -> Tensor:
    """x @ y with another result dtype"""
    return call.b.cast(contractions.matmul(call.b, x, y), call.dtype())


@lowers(aten.vdot.default)
def vdot(call: Call, x: Tensor, y: Tensor) -> Tensor:
    """conj(x) . y"""
    if x.dtype.is_complex:
        x = call.b.map(lambda v: v.conj(), x)
    return call.b.cast(contractions.matmul(call.b, x, y), call.dtype())


@lowers(aten.outer.default, aten.ger.default)
def outer(call: Call, x: Tensor, y: Tensor) -> Tensor:
    """x[i] y[j]"""
    return call.elementwise(lambda u, v: u * v, shapes.unsqueeze(call.b, x, 1), y)


@lowers(aten.linear.default)
def linear(call: Call, x: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
    """x @ weight^T + bias"""
    call.check_same_dtype(x, weight)
    return call.b.cast(contractions.linear(call.b, x, weight, bias), call.dtype())


def _weighted(call: Call, base: Tensor, product: Tensor, beta: Any, alpha: Any) -> Tensor:
    """beta * base + alpha * product; `base` is not read if beta is 0."""
    wide = product.dtype
    if beta == 0:
        return call.elementwise(lambda p, a: a * p, product, alpha, wide=wide)
    if beta == 1 and alpha == 1:
        return call.elementwise(lambda s, p: s + p, base, product, wide=wide)
    return call.elementwise(lambda s, p, c, a: c * s + a * p, base, product, beta, alpha, wide=wide)


@lowers(aten.addmm.default, aten.baddbmm.default, aten.addmv.default)
def addmm(call: Call, base: Tensor, x: Tensor, y: Tensor, *, beta: Any, alpha: Any) -> Tensor:
    """beta * base + alpha * x @ y"""
    call.check_same_dtype(base, x, y)
    return _weighted(call, base, contractions.matmul(call.b, x, y), beta, alpha)


@lowers(aten.addbmm.default)
def addbmm(call: Call, base: Tensor, x: Tensor, y: Tensor, *, beta: Any, alpha: Any) -> Tensor:
    """beta * base + alpha * sum over i of x[i] @ y[i]"""
    product = contractions.contract(call.b, "bmk,bkn->mn", x, y)
    return _weighted(call, base, product, beta, alpha)


@lowers(aten.addr.default)
def addr(call: Call, base: Tensor, x: Tensor, y: Tensor, *, beta: Any, alpha: Any) -> Tensor:
    """beta * base + alpha * x[i] y[j]"""
    column = shapes.unsqueeze(call.b, x, 1)
    if beta == 0:
        return call.elementwise(lambda u, v, a: a * u * v, column, y, alpha)
    return call.elementwise(lambda s, u, v, c, a: c * s + a * u * v, base, column, y, beta, alpha)


@lowers(aten.einsum.default)
def einsum(call: Call, equation: str, operands: list[Tensor]) -> Tensor:
    """einsum with explicit output and no repeated letters in an operand"""
    equation = equation.replace(" ", "")
    left, _, out = equation.partition("->")
    letters = left.split(",")
    plain = "." not in equation and "->" in equation and len(letters) > 1
    if not plain or any(len(set(term)) != len(term) for term in letters):
        raise NotLowered
    if any(t.rank != len(term) for t, term in zip(operands, letters, strict=True)):
        raise NotLowered
    sizes: dict[str, Size] = {}
    for term, t in zip(letters, operands):
        for c, size in zip(term, t.shape):
            if isinstance(size, int) and isinstance(sizes.get(c, size), int):
                if sizes.setdefault(c, size) != size:
                    raise NotLowered  # a broadcast dim of size 1
    return call.b.cast(contractions.einsum(call.b, letters, out, operands), call.dtype())


@lowers(aten._trilinear.default)
def trilinear(
    call: Call, x: Tensor, y: Tensor, z: Tensor, expand_x: list[int], expand_y: list[int],
    expand_z: list[int], summed: list[int], unrolled: int = 1,
) -> Tensor:  # fmt: skip
    """The sum over dims of x * y * z, each with dims of size 1 inserted"""
    b, rank = call.b, x.rank + len(expand_x)
    letters = "abcdefghij"[:rank]
    terms = [
        "".join(c for i, c in enumerate(letters) if i not in expanded)
        for expanded in (expand_x, expand_y, expand_z)
    ]
    missing = [i for i, c in enumerate(letters) if c not in "".join(terms)]
    if any(i == unrolled or i not in summed for i in missing):
        # PyTorch gives size 0 to a dim that is inserted into all three operands.
        return b.full(0, call.dtype(), call.shape())
    out = "".join(c for i, c in enumerate(letters) if i not in summed)
    return b.cast(contractions.einsum(b, terms, out, [x, y, z]), call.dtype())


@lowers(aten._scaled_mm.default)
def scaled_mm(
    call: Call, x: Tensor, y: Tensor, scale_x: Tensor, scale_y: Tensor, bias: Tensor | None = None,
    scale: Tensor | None = None, *_: Any,
) -> Tensor:  # fmt: skip
    """x @ y in f32, times a scale per tensor or per row and column, plus the bias"""
    b = call.b
    product = contractions.matmul(b, b.cast(x, F32), b.cast(y, F32))
    factors = [b.cast(t, F32) for t in (scale_x, scale_y)]
    for factor in factors:
        if factor.rank not in (0, 2) and b.product(factor.shape) != 1:
            raise call.unsupported("scales that are neither one number nor of rows and columns")
    factors = [shapes.reshape(b, f, []) if f.rank == 1 else f for f in factors]
    result = b.map(lambda v, n, m: v * n * m, product, *factors)
    if bias is not None:
        result = b.map(lambda v, t: v + t.to(F32), result, bias)
    if scale is not None:
        result = b.map(lambda v, t: v * t, result, b.cast(scale, F32))
    return b.cast(result, call.dtype())


# --- grouped products ---


@dataclass(frozen=True)
class _Group:
    """A group of rows of a grouped product, or of columns or the reduced dim."""

    number: int
    begin: Size
    count: Size


def _group(call: Call, offsets: Tensor, i: int, size: Size) -> _Group:
    """Group i, clamped to `size` rows."""
    b = call.b

    def end(at: int) -> Size:
        if at < 0:
            return 0
        pair = (b.item(offsets, [at]), offsets.dtype)
        return b.compute(lambda v, n: v.to(INDEX).clamp(0, n), pair, (b.value(size), INDEX)).value

    begin = end(i - 1)
    return _Group(i, begin, b.maximum(b.sub(end(i), begin), 0))


@lowers(aten._grouped_mm.default)
def grouped_mm(
    call: Call,
    x: Tensor,
    y: Tensor,
    offsets: Tensor | None,
    bias: Tensor | None = None,
    _: Any = None,
) -> Tensor:
    """
    x[begin:end] @ y[g] for each group g of rows, where group g ends at offsets[g]. If y has no
    group dim, its columns or the reduced dim are split instead.
    """
    b = call.b
    if bias is not None:
        raise call.unsupported("a grouped product with a bias")
    if offsets is None or (x.rank == 3 and y.rank == 3):
        return b.cast(contractions.matmul(b, x, y), call.dtype())
    return _grouped(call, x, y, offsets, b.full(0, call.dtype(), call.shape()))


def _grouped(call: Call, x: Tensor, y: Tensor, offsets: Tensor, result: Tensor) -> Tensor:
    """Inserts the product of each group into the result."""
    (groups,) = call.static(offsets.shape, "list of groups")
    size = x.shape[0] if y.rank == 3 else x.shape[1]
    for g in range(groups):
        group = _group(call, offsets, g, y.shape[-1] if x.rank == 3 else size)
        result = _add_group(call, result, x, y, group)
    return result


def _add_group(call: Call, result: Tensor, x: Tensor, y: Tensor, group: _Group) -> Tensor:
    """Inserts the product of one group into the result."""
    b, g, begin, count = call.b, group.number, group.begin, group.count
    if x.rank == 3:
        left, offsets = shapes.select(b, x, 0, g), [0, begin]
    else:
        left = shapes.slice_axis(b, x, 0 if y.rank == 3 else 1, begin, count)
        offsets = [begin, 0]
    if y.rank == 3:
        right = shapes.select(b, y, 0, g)
    else:
        right = shapes.slice_axis(b, y, 1 if x.rank == 3 else 0, begin, count)
    product = b.cast(contractions.matmul(b, left, right), result.dtype)
    if x.rank == 2 and y.rank == 2:
        product, offsets = shapes.unsqueeze(b, product, 0), [g, 0, 0]
    return shapes.update_slice(b, result, product, offsets)


lowers_named("transformers::grouped_mm_fallback")(grouped_mm)


@lowers_named("transformers::grouped_mm_fallback_backward")
def grouped_mm_backward(
    call: Call, x: Tensor, y: Tensor, offsets: Tensor, gradient: Tensor
) -> tuple[Tensor, Tensor]:
    """gradient[begin:end] @ y[g]^T and x[begin:end]^T @ gradient[begin:end] for each group g"""
    b = call.b
    zeros = [b.full(0, call.dtype(i), call.shape(i)) for i in (0, 1)]
    back = _grouped(call, gradient, shapes.transpose(b, y, [0, 2, 1]), offsets, zeros[0])
    return back, _grouped(call, shapes.transpose(b, x, [1, 0]), gradient, offsets, zeros[1])
