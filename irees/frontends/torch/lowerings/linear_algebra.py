"""Matrix factorizations, linear systems and matrix functions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ...builder import Body, Scalar, Size, Tensor, eigen, householder, reductions, schur, shapes
from ...builder import linear_algebra as la
from ...builder.dtypes import BOOL, F64, INDEX
from ..calls import Call, Operand, lowers
from ..operators import aten


def _shaped(call: Call, x: Tensor, index: int) -> Tensor:
    """Reshapes a batch of matrices to the shape of a result."""
    return shapes.reshape(call.b, x, call.shape(index))


def _results(call: Call, *found: Tensor) -> tuple[Tensor, ...]:
    return tuple(_shaped(call, x, i) for i, x in enumerate(found))


def _empty(call: Call, index: int) -> Tensor:
    return call.b.empty(call.dtype(index), call.shape(index))


def _stretched(call: Call, x: Tensor, batch: Sequence[Size]) -> Tensor:
    """Broadcasts the leading dims to `batch` and collapses them into one."""
    return la.batched(call.b, shapes.broadcast_to(call.b, x, [*batch, *x.shape[-2:]]))


_SINGULAR = "%s: a matrix is singular or not positive definite"


def _check(call: Call, info: Tensor, message: str) -> None:
    b = call.b
    fine = b.map(lambda v: v == 0, info, dtype=BOOL)
    b.check(b.item(reductions.all_(b, fine, list(range(info.rank)))), message)


@lowers(aten._linalg_check_errors.default)
def check_errors(call: Call, info: Tensor, name: str, *, is_matrix: bool) -> None:
    """Aborts the program if a factorization failed"""
    _check(call, info, _SINGULAR % name)


def _checked(call: Call, info: Tensor, check: bool) -> Tensor:
    if check:
        _check(call, info, _SINGULAR % call.target)
    return info


# --- Cholesky ---


def _cholesky(call: Call, x: Tensor, upper: bool) -> tuple[Tensor, Tensor]:
    b = call.b
    matrices = la.batched(b, x)
    if upper:
        matrices = la.transposed(b, matrices, conjugate=True)
    factor, info = la.cholesky(b, matrices)
    return la.transposed(b, factor, conjugate=True) if upper else factor, info


@lowers(aten.linalg_cholesky_ex.default)
def cholesky_ex(call: Call, x: Tensor, *, upper: bool, check_errors: bool) -> tuple[Tensor, ...]:
    """L with L L^H = x, or its adjoint, and the status per matrix"""
    factor, info = _cholesky(call, x, upper)
    return _results(call, factor, _checked(call, info, check_errors))


@lowers(aten.cholesky.default)
def cholesky(call: Call, x: Tensor, upper: bool) -> Tensor:
    """L with L L^H = x, or its adjoint"""
    factor, info = _cholesky(call, x, upper)
    _checked(call, info, True)
    return _shaped(call, factor, 0)


def _by_cholesky(call: Call, factor: Tensor, x: Tensor, upper: bool) -> Tensor:
    """Solves L L^H y = x, or U^H U y = x, for y."""
    b = call.b
    flipped = la.transposed(b, factor, conjugate=True)
    lower, other = (flipped, factor) if upper else (factor, flipped)
    return la.solve_triangular(b, other, la.solve_triangular(b, lower, x, False), True)


@lowers(aten.cholesky_solve.default)
def cholesky_solve(call: Call, x: Tensor, factor: Tensor, upper: bool) -> Tensor:
    """Solves L L^H y = x for y"""
    batch = call.shape()[:-2]
    factor = _stretched(call, factor, batch)
    return _shaped(call, _by_cholesky(call, factor, _stretched(call, x, batch), upper), 0)


@lowers(aten.cholesky_inverse.default)
def cholesky_inverse(call: Call, factor: Tensor, upper: bool) -> Tensor:
    """The inverse of L L^H"""
    factor = la.batched(call.b, factor)
    zeros = call.b.map(lambda v: v == 0, la.diagonal(call.b, factor), dtype=BOOL)
    _check(call, zeros, _SINGULAR % call.target)
    unit = la.identity(call.b, factor.dtype, factor.shape)
    return _shaped(call, _by_cholesky(call, factor, unit, upper), 0)


# --- triangular systems ---


def _triangular(
    call: Call, a: Tensor, x: Tensor, upper: bool, unit: bool, left: bool = True
) -> Tensor:
    b = call.b
    if left:
        return la.solve_triangular(b, a, x, upper, unit)
    a, x = la.transposed(b, a), la.transposed(b, x)
    return la.transposed(b, la.solve_triangular(b, a, x, not upper, unit))


@lowers(aten.linalg_solve_triangular.default)
def solve_triangular(
    call: Call, a: Tensor, x: Tensor, *, upper: bool, left: bool, unitriangular: bool
) -> Tensor:
    """Solves a y = x, or y a = x, for y"""
    batch = call.shape()[:-2]
    a, x = _stretched(call, a, batch), _stretched(call, x, batch)
    return _shaped(call, _triangular(call, a, x, upper, unitriangular, left), 0)


@lowers(aten.triangular_solve.default)
def triangular_solve(
    call: Call, x: Tensor, a: Tensor, upper: bool, transpose: bool, unit: bool
) -> tuple[Tensor, Tensor]:
    """Solves a y = x, or a^T y = x, for y; also returns a"""
    batch = call.shape()[:-2]
    matrix, values = _stretched(call, a, batch), _stretched(call, x, batch)
    solved = matrix
    if transpose:
        solved, upper = la.transposed(call.b, matrix), not upper
    y = _triangular(call, solved, values, upper, unit)
    return _shaped(call, y, 0), _shaped(call, matrix, 1)


# --- LU ---


@lowers(aten.linalg_lu_factor_ex.default)
def lu_factor_ex(call: Call, x: Tensor, *, pivot: bool, check_errors: bool) -> tuple[Tensor, ...]:
    """L and U packed in one matrix, pivots and status"""
    a, pivots, _, info = la.lu(call.b, la.batched(call.b, x), pivot)
    return _results(call, a, pivots, _checked(call, info, check_errors))


@lowers(aten.linalg_lu.default)
def linalg_lu(call: Call, x: Tensor, *, pivot: bool) -> tuple[Tensor, ...]:
    """P, L and U with P L U = x"""
    b = call.b
    a, _, perm, _ = la.lu(b, la.batched(b, x), pivot)
    lower, upper = la.factors(b, a)
    matrix = la.permutation_matrix(b, perm, x.dtype) if pivot else _empty(call, 0)
    return _results(call, matrix, lower, upper)


def _permutation(call: Call, pivots: Tensor, rows: Size) -> Tensor:
    b = call.b
    flat = shapes.reshape(b, pivots, [b.product(pivots.shape[:-1]), pivots.shape[-1]])
    flat = call.require(
        flat,
        lambda v: (v >= 1) & (v.to(INDEX) <= v.body.as_index(rows)),
        "a pivot must be between 1 and the number of rows",
    )
    return la.permutation(b, flat, rows)


@lowers(aten.lu_unpack.default)
def lu_unpack(
    call: Call, a: Tensor, pivots: Tensor, unpack_data: bool, unpack_pivots: bool
) -> tuple[Tensor, ...]:
    """P, L and U of a packed factorization"""
    b = call.b
    matrix, lower, upper = (_empty(call, i) for i in range(3))
    if unpack_pivots:
        perm = _permutation(call, pivots, a.shape[-2])
        matrix = _shaped(call, la.permutation_matrix(b, perm, a.dtype), 0)
    if unpack_data:
        lower, upper = la.factors(b, la.batched(b, a))
    return _results(call, matrix, lower, upper)


def _solve(call: Call, a: Tensor, perm: Tensor, x: Tensor, left: bool, adjoint: bool) -> Tensor:
    """Solves m y = x or y m = x, or with the adjoint of m, for y; batch sizes must agree."""
    b = call.b
    if left:
        return la.lu_solve(b, a, perm, x, adjoint)
    flipped = la.transposed(b, x, conjugate=True)
    return la.transposed(b, la.lu_solve(b, a, perm, flipped, not adjoint), conjugate=True)


def _stretched_rows(call: Call, x: Tensor, batch: Sequence[Size]) -> Tensor:
    rows = shapes.broadcast_to(call.b, x, [*batch, x.shape[-1]])
    return shapes.reshape(call.b, rows, [call.b.product(batch), x.shape[-1]])


@lowers(aten.linalg_lu_solve.default)
def linalg_lu_solve(
    call: Call, a: Tensor, pivots: Tensor, x: Tensor, *, left: bool, adjoint: bool
) -> Tensor:
    """Solves m y = x for y, with m given by its factorization"""
    batch = call.shape()[:-2]
    pivots = _stretched_rows(call, pivots, batch)
    a, x = _stretched(call, a, batch), _stretched(call, x, batch)
    perm = la.permutation(call.b, pivots, a.shape[-1])
    return _shaped(call, _solve(call, a, perm, x, left, adjoint), 0)


def _is_vector(a: Any, x: Any) -> bool:
    """Whether the right-hand side is one vector per matrix."""
    return x.dim() == 1 or (a.dim() - 1 == x.dim() and tuple(x.shape) == tuple(a.shape[:-1]))


@lowers(aten._linalg_solve_ex.default)
def solve_ex(
    call: Call, a: Tensor, x: Tensor, *, left: bool, check_errors: bool
) -> tuple[Tensor, ...]:
    """Solves a y = x, or y a = x, for y; also returns the factorization of a and the status"""
    b = call.b
    vector = _is_vector(call.raw[0], call.raw[1])
    if vector:
        x = shapes.unsqueeze(b, x, x.rank)
    factor, pivots, perm, info = la.lu(b, la.batched(b, a))
    info = _checked(call, info, check_errors)
    batch = call.shape(0)[: len(call.shape(0)) - (1 if vector else 2)]
    matrices = _stretched(call, shapes.reshape(b, factor, a.shape), batch)
    rows = _stretched_rows(call, shapes.reshape(b, perm, a.shape[:-1]), batch)
    y = _solve(call, matrices, rows, _stretched(call, x, batch), left or vector, False)
    return _results(call, y, factor, pivots, info)


@lowers(aten.linalg_inv_ex.default)
def inv_ex(call: Call, a: Tensor, *, check_errors: bool) -> tuple[Tensor, ...]:
    """The inverse and the status"""
    b = call.b
    factor, _, perm, info = la.lu(b, la.batched(b, a))
    unit = la.identity(b, a.dtype, factor.shape)
    inverse = la.lu_solve(b, factor, perm, unit)
    return _results(call, inverse, _checked(call, info, check_errors))


def _factored(call: Call, a: Tensor) -> tuple[Tensor, Tensor]:
    """
    Packed factors and pivots of a, or of its transpose if a is contiguous and real: that is what
    PyTorch factorizes for a determinant, and its gradients solve with these factors.
    """
    matrices = la.batched(call.b, a)
    if call.raw[0].is_contiguous() and not a.dtype.is_complex:
        matrices = la.transposed(call.b, matrices)
    return la.lu(call.b, matrices)[:2]


@lowers(aten._linalg_det.default)
def det(call: Call, a: Tensor) -> tuple[Tensor, ...]:
    """The determinant and the factorization"""
    b = call.b
    factor, pivots = _factored(call, a)
    result = reductions.prod(b, la.signed_diagonal(b, factor, pivots), [1])
    return _results(call, result, factor, pivots)


@lowers(aten._linalg_slogdet.default)
def slogdet(call: Call, a: Tensor) -> tuple[Tensor, ...]:
    """The sign and the log-magnitude of the determinant, and the factorization"""
    b = call.b
    factor, pivots = _factored(call, a)
    values = la.signed_diagonal(b, factor, pivots)
    sign = reductions.prod(b, b.map(lambda v: v.sign(), values), [1])
    logs = b.map(lambda v: v.abs().log(), values, dtype=values.dtype.part)
    return _results(call, sign, reductions.sum_(b, logs, [1]), factor, pivots)


# --- QR ---


@lowers(aten.geqrf.default)
def geqrf(call: Call, x: Tensor) -> tuple[Tensor, ...]:
    """R with the reflectors below its diagonal, and tau"""
    return _results(call, *householder.geqrf(call.b, la.batched(call.b, x)))


@lowers(aten.linalg_qr.default)
def qr(call: Call, x: Tensor, mode: str) -> tuple[Tensor, Tensor]:
    """Q with orthonormal columns and R with Q R = x"""
    b = call.b
    a, taus = householder.geqrf(b, la.batched(b, x))
    rows, columns = a.shape[1:]
    kept = rows if mode == "complete" else b.minimum(rows, columns)
    upper = shapes.triangle(b, shapes.slice_axis(b, a, 1, 0, kept), 0, True)
    if mode == "r":
        return _empty(call, 0), _shaped(call, upper, 1)
    q = householder.q_of(b, a, taus, kept)
    return _shaped(call, q, 0), _shaped(call, upper, 1)


def _taus(call: Call, taus: Tensor) -> Tensor:
    return shapes.reshape(call.b, taus, [call.b.product(taus.shape[:-1]), taus.shape[-1]])


@lowers(aten.linalg_householder_product.default)
def householder_product(call: Call, a: Tensor, taus: Tensor) -> Tensor:
    """The leading columns of H[0] H[1] ..."""
    a = la.batched(call.b, a)
    return _shaped(call, householder.q_of(call.b, a, _taus(call, taus), a.shape[2]), 0)


@lowers(aten.ormqr.default)
def ormqr(call: Call, a: Tensor, taus: Tensor, x: Tensor, left: bool, transpose: bool) -> Tensor:
    """Q x or x Q, or with the adjoint of Q"""
    b = call.b
    a, taus, x = la.batched(b, a), _taus(call, taus), la.batched(b, x)
    if left:
        return _shaped(call, householder.apply_q(b, a, taus, x, transpose), 0)
    flipped = la.transposed(b, x, conjugate=True)
    result = householder.apply_q(b, a, taus, flipped, not transpose)
    return _shaped(call, la.transposed(b, result, conjugate=True), 0)


@lowers(aten.linalg_matrix_exp.default)
def matrix_exp(call: Call, x: Tensor) -> Tensor:
    """sum over k of x^k / k!"""
    b = call.b
    matrices = la.batched(b, b.cast(x, x.dtype.computed))
    return _shaped(call, b.cast(la.matrix_exp(b, matrices), x.dtype), 0)


# --- eigenvalues and singular values ---


def _convergent(call: Call, x: Tensor, is_lower: bool) -> Tensor:
    """
    x; aborts a run in which a triangle has a NaN, for which PyTorch's iteration does not converge.
    It has a direct solution for up to two rows, which are NaN.
    """
    if isinstance(x.shape[1], int) and x.shape[1] < 3:
        return x

    def checked(s: Body, v: Scalar, _: Scalar) -> Scalar:
        row, column = (s.index(1), s.index(2)) if is_lower else (s.index(2), s.index(1))
        is_small = s.as_index(x.shape[1]) < 3
        s.check((row < column) | ~v.isnan() | is_small, "a matrix with NaN has no eigenvalues")
        return v

    b, maps = call.b, [call.b.broadcast_map(x.shape, x.shape)] * 2
    return b.structured([x], [b.empty(x.dtype, x.shape)], maps, [False] * 3, checked)[0]


@lowers(aten._linalg_eigh.default)
def eigh(call: Call, x: Tensor, triangle: str, compute_v: bool) -> tuple[Tensor, Tensor]:
    """Eigenvalues in ascending order and eigenvectors of Hermitian matrices"""
    is_lower = triangle.upper() == "L"
    matrices = _convergent(call, la.batched(call.b, x), is_lower)
    values, vectors = eigen.eigh(call.b, matrices, is_lower)
    values = _shaped(call, values, 0)
    return values, _shaped(call, vectors, 1) if compute_v else _empty(call, 1)


def _finite(call: Call, x: Tensor) -> Tensor:
    """A batch of complex matrices; aborts a run in which one has an element that is not finite."""
    message = "torch.linalg.eig: input tensor should not contain infs or NaNs"
    x = call.require(x, lambda v: v.isfinite(), message)
    return call.b.cast(la.batched(call.b, x), x.dtype.complex)


@lowers(aten.linalg_eig.default)
def eig(call: Call, x: Tensor) -> tuple[Tensor, Tensor]:
    """Eigenvalues and eigenvectors of general matrices; no order of them is defined"""
    matrices = _finite(call, x)
    if la.is_empty(matrices.shape[1]):
        return _empty(call, 0), _empty(call, 1)
    return _results(call, *schur.eig(call.b, matrices))


@lowers(aten.linalg_eigvals.default, aten._linalg_eigvals.default)
def eigvals(call: Call, x: Tensor) -> Tensor:
    """Eigenvalues of general matrices"""
    matrices = _finite(call, x)
    if la.is_empty(matrices.shape[1]):
        return _empty(call, 0)
    return _shaped(call, schur.schur(call.b, matrices)[0], 0)


def _numbers(call: Call, x: Tensor) -> Tensor:
    """x; aborts a run in which it has a NaN, for which PyTorch's iteration does not converge."""
    message = "the singular values of a matrix with NaN are not defined"
    return call.require(x, lambda v: ~v.isnan(), message)


@lowers(aten._linalg_svd.default)
def svd(call: Call, x: Tensor, full: bool, compute_uv: bool) -> tuple[Tensor, ...]:
    """U, s in descending order and V^H with U diag(s) V^H = x"""
    u, sizes, vh = eigen.svd(call.b, la.batched(call.b, _numbers(call, x)), full and compute_uv)
    if not compute_uv:
        return _empty(call, 0), _shaped(call, sizes, 1), _empty(call, 2)
    return _results(call, u, sizes, vh)


def _per_matrix(call: Call, value: Tensor | None, x: Tensor) -> Tensor | None:
    """Broadcasts a tolerance to one per matrix of the batch, in f64."""
    if value is None:
        return None
    b = call.b
    value = shapes.broadcast_to(b, b.cast(value, F64), x.shape[:-2])
    return shapes.reshape(b, value, [b.product(x.shape[:-2])])


def _epsilon(x: Tensor) -> float:
    """The distance of 1 to the next larger number."""
    return 2.0**-52 if x.dtype.part.bits == 64 else 2.0**-23


@lowers(aten.linalg_pinv.atol_rtol_tensor)
def pinv(
    call: Call, x: Tensor, *, atol: Tensor | None, rtol: Tensor | None, hermitian: bool
) -> Tensor:
    """The pseudo-inverse; singular values up to max(atol, rtol s[0]) count as 0"""
    if any(isinstance(size, int) and size == 0 for size in x.shape):
        return call.b.full(0, call.dtype(), call.shape())
    epsilon = _epsilon(x)
    sizes = [s for s in x.shape[-2:] if isinstance(s, int)]
    default = max(sizes, default=1) * epsilon
    absolute, relative = (_per_matrix(call, v, x) for v in (atol, rtol))

    def bound(s: Any, largest: Scalar, at: Scalar) -> Scalar:
        top = largest.to(F64)
        low = s.number(0.0, F64) if absolute is None else s.extract(absolute, [at])
        if relative is not None:
            factor = s.extract(relative, [at])
        else:
            factor = (low > 0).where(0.0, s.number(default, F64))
        return low.maximum(factor * top).to(largest.dtype)

    matrices = la.batched(call.b, x if hermitian else _numbers(call, x))
    return _shaped(call, eigen.pseudo_inverse(call.b, matrices, bound, hermitian), 0)


# --- least squares ---


def _residuals(call: Call, x: Tensor, y: Tensor, solution: Tensor) -> Tensor:
    """sum over i of |y - x z|^2 for each column of y"""
    b = call.b
    product = la.matmul(b, x, solution)
    squares = b.map(lambda v, w: la.square(v - w), y, product, dtype=x.dtype.part)
    return _shaped(call, reductions.sum_(b, squares, [1]), 1)


@lowers(aten.linalg_lstsq.default)
def lstsq(
    call: Call, x: Tensor, y: Tensor, rcond: Operand | None, *, driver: str | None
) -> tuple[Tensor, ...]:
    """
    The z of least norm that minimizes |x z - y|. Singular values up to rcond s[0] count as 0, for
    `gels` none. PyTorch has no residuals of matrices without full rank, so a run that uses these
    aborts.
    """
    b = call.b
    if la.is_empty(*x.shape, *y.shape):
        return tuple(b.full(0, call.dtype(i), call.shape(i)) for i in range(4))
    if _is_vector(call.raw[0], call.raw[1]):
        y = shapes.unsqueeze(b, y, y.rank)
    columns = x.shape[-1]
    largest = b.value(b.maximum(*x.shape[-2:]))
    x, y = la.batched(b, _numbers(call, x)), la.batched(b, y)

    def bound(s: Body, top: Scalar) -> Scalar:
        if driver == "gels":
            return s.number(0.0, top.dtype)
        if rcond is None:
            factor = s.scalar(largest).to(top.dtype) * _epsilon(x)
        else:
            factor = call.number_in(s, rcond, top.dtype)
        return factor * top

    solution, rank, sizes = eigen.least_squares(b, x, y, bound)
    residuals, shown = _empty(call, 1), _empty(call, 2)
    if call.fake(1).numel() != 0 and 1 not in call.unused:
        if driver != "gels":
            full = b.map(lambda r: r == r.body.as_index(columns).to(r.dtype), rank, dtype=BOOL)
            message = "a matrix without full rank has no residuals"
            b.check(b.item(reductions.all_(b, full, [0])), message)
        residuals = _residuals(call, x, y, solution)
    if driver != "gels":
        shown = _shaped(call, rank, 2)
    values = _shaped(call, sizes, 3) if driver in ("gelsd", "gelss") else _empty(call, 3)
    return _shaped(call, solution, 0), residuals, shown, values
