"""
The numeric functions of the builder against numpy, Python's math and identities: special
functions, Fourier transforms, linear algebra, random numbers, loops.
"""

from __future__ import annotations

import math

import numpy as np
import pytest
from xdsl.dialects import func, tensor
from xdsl.dialects.builtin import DYNAMIC_INDEX, ModuleOp, TensorType
from xdsl.ir import Block, Region

import irees
from irees.errors import RuntimeTrap
from irees.frontends.builder import (
    Builder,
    Tensor,
    bessel,
    eigen,
    fft,
    householder,
    indexing,
    loops,
    polynomials,
    random,
    special,
    tensor_type,
)
from irees.frontends.builder import linear_algebra as la
from irees.frontends.builder.dtypes import (
    BF16,
    BOOL,
    C64,
    C128,
    F32,
    F64,
    I32,
    I64,
    INDEX,
    U32,
    U64,
)  # fmt: skip

DTYPES = {
    "float32": F32, "float64": F64, "complex64": C64, "complex128": C128, "int64": I64,
    "int32": I32, "uint32": U32, "bool": BOOL,
}  # fmt: skip
INF, NAN = math.inf, math.nan


def argument(b, arg, array, dynamic):
    """A tensor for an argument of the function, with dims that are not known if `dynamic`."""
    dtype = DTYPES[array.dtype.name]
    if not dynamic:
        return Tensor(arg, dtype, array.shape)
    dims = [b.insert(tensor.DimOp(arg, b.value(i))).results[0] for i in range(array.ndim)]
    return Tensor(arg, dtype, tuple(dims))


def run(fn, *arrays, target="reference", dynamic=False):
    """What fn(builder, *tensors) computes for these arrays: one array or a list of them."""
    arrays = [np.asarray(a) for a in arrays]
    kinds = [tensor_type(DTYPES[a.dtype.name], a.shape) for a in arrays]
    if dynamic:
        kinds = [TensorType(k.element_type, [DYNAMIC_INDEX] * len(k.get_shape())) for k in kinds]
    block = Block(arg_types=kinds)
    b = Builder(block)
    results = fn(b, *(argument(b, x, a, dynamic) for x, a in zip(block.args, arrays)))
    one = isinstance(results, Tensor)
    results = [results] if one else list(results)
    b.insert(func.ReturnOp(*(r.value for r in results)))
    types = ([x.type for x in block.args], [r.value.type for r in results])
    module = ModuleOp([func.FuncOp("main", types, Region(block))])
    found = irees.compile(module, target=target)(*arrays)
    return np.asarray(found) if one else [np.asarray(f) for f in found]


def of(fn, *arrays, dtype=None, **options):
    """fn of Scalars, over arrays."""
    return run(lambda b, *t: b.map(fn, *t, dtype=dtype), *arrays, **options)


def near(got, want, rtol=1e-12, atol=1e-13):
    np.testing.assert_allclose(got, want, rtol=rtol, atol=atol)


# --- special functions ---

X = np.array([0.1, 0.5, 1.0, 1.5, 2.0, 3.7, 5.0, 9.99, 12.5, 40.0])
ANGLES = np.arange(400) * (2 * math.pi / 400)


def test_gamma():
    x = np.concatenate([X, [-0.5, -1.3, -7.7, 1e5, 1e-10, 170.0]])
    near(of(special.lgamma, x), [math.lgamma(v) for v in x], atol=1e-14 * 40)
    edges = np.array([0.0, -1.0, -2.0, INF, NAN])
    np.testing.assert_array_equal(of(special.lgamma, edges), [INF, INF, INF, INF, NAN])
    euler = 0.57721566490153286061
    near(of(special.digamma, np.array([1.0, 2.0, 0.5])),
         [-euler, 1 - euler, -euler - 2 * math.log(2)])  # fmt: skip
    y = np.array([-0.3, -2.6, 0.7])
    near(of(special.digamma, y + 1), of(special.digamma, y) + 1 / y)
    found = of(special.digamma, np.array([0.0, -0.0, -3.0, INF]))
    np.testing.assert_array_equal(found, [-INF, INF, NAN, INF])


def test_zeta_and_polygamma():
    one = np.ones(3)
    near(of(special.zeta, np.array([2.0, 4.0, 3.0]), one),
         [math.pi**2 / 6, math.pi**4 / 90, 1.2020569031595942])  # fmt: skip
    s, q = np.array([1.0, 0.5, 2.0, 2.0, 2.5, 2.0]), np.array([2.0, 2.0, 0.0, -1.0, -0.5, INF])
    np.testing.assert_array_equal(of(special.zeta, s, q), [INF, NAN, INF, INF, NAN, 0])
    assert np.isnan(of(special.zeta, np.array([2.0]), np.array([-1e7 - 0.5])))
    for n in (1, 2, 3):
        fn = lambda v, n=n: special.polygamma(n, v)  # noqa: E731
        step = (-1) ** n * math.factorial(n) / X ** (n + 1)
        near(of(fn, X + 1), of(fn, X) + step, rtol=1e-9)
    near(of(special.trigamma, np.array([1.0])), math.pi**2 / 6)


@pytest.mark.parametrize("target", ["reference", "cpu"])
def test_incomplete_gamma(target):
    a, x = np.array([1.0, 2.0, 3.0, 5.0, 5.0, 20.0]), np.array([0.1, 2.0, 9.0, 0.01, 30.0, 20.0])
    want = [
        1 - math.exp(-v) * sum(v**k / math.factorial(k) for k in range(int(n)))
        for n, v in zip(a, x)
    ]
    near(of(special.igamma, a, x, target=target), want, atol=1e-14)
    other = lambda u, v: special.igamma(u, v, complement=True)  # noqa: E731
    near(of(other, a, x, target=target), 1 - np.array(want), rtol=1e-9, atol=1e-14)
    a = np.array([0.0, 0.0, 1.0, INF, INF, 1.0, -1.0, NAN])
    x = np.array([0.0, 1.0, 0.0, 1.0, INF, INF, 1.0, 1.0])
    want = [NAN, 1, 0, 0, NAN, 1, NAN, NAN]
    np.testing.assert_array_equal(of(special.igamma, a, x, target=target), want)


def test_error_functions():
    y = np.array([0.0, 1e-20, 0.3, -0.69, 0.71, -0.999999, 1 - 1e-12])
    near([math.erf(v) for v in of(special.erfinv, y)], y, rtol=1e-15)
    edges = np.array([1.0, -1.0, 1.1, NAN])
    np.testing.assert_array_equal(of(special.erfinv, edges), [INF, -INF, NAN, NAN])
    x = np.array([-3.0, -0.2, 0.0, 0.4, 0.5, 3.9, 4.1, 20.0])
    near(of(special.erfcx, x), [math.exp(v * v) * math.erfc(v) for v in x], rtol=1e-13)
    np.testing.assert_array_equal(of(special.erfcx, np.array([INF, -INF])), [0, INF])
    p = np.array([1e-300, 1e-16, 0.01, 0.5, 0.9, 1 - 1e-9])
    z = of(special.ndtri, p)
    near([math.erfc(-v / math.sqrt(2)) / 2 for v in z], p, rtol=1e-11)
    edges = of(special.ndtri, np.array([0.0, 1.0, -0.1, NAN]))
    np.testing.assert_array_equal(edges, [-INF, INF, NAN, NAN])
    x = np.array([-30.0, -3.0, -1.0, 0.0, 2.0, 9.0])
    near(of(special.log_ndtr, x), [math.log(math.erfc(-v / math.sqrt(2)) / 2) if v < 5 else
                                   -math.erfc(v / math.sqrt(2)) / 2 for v in x])  # fmt: skip


def test_bessel_functions():
    """Their integral representations: the trapezoidal rule is exact for periodic functions."""
    for fn, n in ((bessel.j0, 0), (bessel.j1, 1)):
        want = [np.mean(np.cos(n * ANGLES - v * np.sin(ANGLES))) for v in X]
        near(of(fn, X), want, atol=1e-15)
        near(of(fn, -X), np.array(want) * (-1) ** n, atol=1e-15)
    for fn, n in ((bessel.i0e, 0), (bessel.i1e, 1)):
        want = [np.mean(np.exp(v * (np.cos(ANGLES) - 1)) * np.cos(n * ANGLES)) for v in X]
        near(of(fn, X), want)
    t = np.linspace(0, 9, 20001)
    for fn, n in ((bessel.k0, 0), (bessel.k1, 1)):
        want = [np.trapezoid(np.exp(-v * np.cosh(t)) * np.cosh(n * t), t) for v in X]
        near(of(fn, X), want, rtol=1e-9)
        near(of(lambda v, fn=fn: fn(v, scaled=True), X), want * np.exp(X), rtol=1e-9)
    # Wronskian: j1 y0 - j0 y1 = 2 / (pi x)
    j0, j1, y0, y1 = (of(f, X) for f in (bessel.j0, bessel.j1, bessel.y0, bessel.y1))
    near(j1 * y0 - j0 * y1, 2 / (math.pi * X))
    edges = np.array([0.0, -1.0, INF, NAN])
    np.testing.assert_array_equal(of(bessel.y0, edges), [-INF, NAN, 0, NAN])
    np.testing.assert_array_equal(of(bessel.k1, edges), [INF, NAN, 0, NAN])
    np.testing.assert_array_equal(of(bessel.j0, edges[[0, 2, 3]]), [1, 0, NAN])


def test_airy_and_spherical():
    x = np.array([0.0, 1.0, -5.0, 2.0, 3.0, 104.0])
    want = [0.3550280538878172, 0.13529241631288142, 0.3507610090241143, 0.03492413042327438,
            0.006591139357460717, 0]  # fmt: skip
    near(of(bessel.airy_ai, x), want)
    near(of(bessel.spherical_j0, np.array([0.0, 0.3, 2.0, INF])),
         [1, math.sin(0.3) / 0.3, math.sin(2) / 2, 0])  # fmt: skip


@pytest.mark.parametrize("target", ["reference", "cpu"])
def test_orthogonal_polynomials(target):
    x = np.linspace(-1.25, 1.25, 11)
    families = {
        polynomials.chebyshev_t: np.polynomial.Chebyshev,
        polynomials.hermite_h: np.polynomial.Hermite,
        polynomials.hermite_he: np.polynomial.HermiteE,
        polynomials.laguerre_l: np.polynomial.Laguerre,
        polynomials.legendre_p: np.polynomial.Legendre,
    }
    degrees = (0, 1, 2, 7, 13) if target == "reference" else (0, 13)
    for fn, family in families.items():
        for n in degrees:
            degree = np.full(x.shape, n)
            got = of(fn, x, degree, target=target)
            near(got, family.basis(n)(x), rtol=1e-11, atol=1e-11)
        got = of(fn, x, np.full(x.shape, -1), target=target)
        np.testing.assert_array_equal(got, np.zeros(x.shape))
    angle = 0.7
    c, n = np.array([math.cos(angle)]), np.array([12])
    near(of(polynomials.chebyshev_u, c, n), math.sin(13 * angle) / math.sin(angle))
    near(of(polynomials.chebyshev_v, c, n), math.cos(12.5 * angle) / math.cos(angle / 2))
    near(of(polynomials.chebyshev_w, c, n), math.sin(12.5 * angle) / math.sin(angle / 2))
    near(of(polynomials.shifted(polynomials.chebyshev_t), (c + 1) / 2, n), math.cos(12 * angle))


@pytest.mark.parametrize("target", ["reference", "cpu"])
@pytest.mark.parametrize("kind", ["float32", "float64"])
def test_bits_of_floats(kind, target):
    info = np.finfo(kind)
    x = np.array([0, -0.0, 1, -1, 3.7, info.tiny, info.smallest_subnormal, info.max, -info.max,
                  INF, -INF, NAN, 1e-3, -5e-20], kind)  # fmt: skip
    mantissa, exponent = np.frexp(x)
    finite = np.isfinite(x)
    got = [of(lambda v, i=i: special.frexp(v)[i], x, dtype=d, target=target)
           for i, d in ((0, DTYPES[kind]), (1, I32))]  # fmt: skip
    np.testing.assert_array_equal(got[0], mantissa)
    np.testing.assert_array_equal(got[1], np.where(finite, exponent, 0))
    y = np.roll(x, 3)
    np.testing.assert_array_equal(of(special.nextafter, x, y, target=target), np.nextafter(x, y))


def test_bits_of_scalars_without_dims():
    """The interpreter made vectors of scalars when it read their bits."""
    one, two = np.float32(1), np.float32(2)
    assert of(special.nextafter, one, two) == np.nextafter(one, two)


# --- Fourier transforms ---


def complex_numbers(seed, *shape):
    r = np.random.default_rng(seed)
    return r.standard_normal(shape) + 1j * r.standard_normal(shape)


@pytest.mark.parametrize("n", [1, 2, 5, 64, 67, 93, 96, 99, 100, 130])
def test_transforms(n):
    z = complex_numbers(n, 3, n, 2)
    near(run(lambda b, x: fft.transform(b, x, 1, True), z), np.fft.fft(z, axis=1), 0, 1e-12)
    back = run(lambda b, x: fft.transform(b, x, 1, False, scale=1 / n), z)
    near(back, np.fft.ifft(z, axis=1), 0, 1e-12)
    x = z.real.copy()
    got = run(lambda b, x: fft.transform(b, x, 1, True, half=True), x)
    near(got, np.fft.rfft(x, axis=1), 0, 1e-12)
    got = run(lambda b, x: fft.to_real(b, x, 1, n, 1 / n), z[:, : n // 2 + 1].copy())
    near(got, np.fft.irfft(z[:, : n // 2 + 1], n, axis=1), 0, 1e-12)


@pytest.mark.parametrize("n", [521, 1042, 1000, 1024])
def test_large_transforms(n):
    """A large prime is a convolution with a chirp; all else is split into factors."""
    z = complex_numbers(n, 2, n)
    got = run(lambda b, x: fft.transform(b, x, 1, True), z, target="cpu")
    near(got, np.fft.fft(z), 0, 1e-10)


def test_large_transforms_are_products_with_small_matrices():
    block = Block(arg_types=[tensor_type(F32, (8, 4096))])
    fft.transform(Builder(block), Tensor(block.args[0], F32, (8, 4096)), 1, True)
    sizes = [op.results[0].type.get_shape() for op in block.ops if op.name == "arith.constant"
             and isinstance(op.results[0].type, TensorType)]  # fmt: skip
    assert max(math.prod(s) for s in sizes) <= 2 * 4096


def test_transforms_of_nothing_and_of_sizes_that_are_not_known():
    empty = np.zeros((0, 4), np.complex64)
    assert run(lambda b, x: fft.transform(b, x, 1, True), empty).shape == (0, 4)
    z = complex_numbers(0, 2, 9)
    got = run(lambda b, x: fft.transform(b, x, 1, True), z, dynamic=True)
    near(got, np.fft.fft(z), 0, 1e-12)
    got = run(lambda b, x: fft.to_real(b, x, 1, b.value(16)), z)
    near(got, np.fft.irfft(z, 16) * 16, 0, 1e-12)


def test_overlapping_frames():
    frames = np.random.default_rng(0).standard_normal((2, 4, 7))
    want = np.zeros((2, 3 * 3 + 7))
    for f in range(4):
        want[:, 3 * f : 3 * f + 7] += frames[:, f]
    near(run(lambda b, x: fft.overlap_add(b, x, 3), frames), want)


# --- linear algebra ---

KINDS = [np.float64, np.complex128]


def matrices(kind, *shape, seed=0):
    z = complex_numbers(seed, *shape)
    return (z if np.issubdtype(kind, np.complexfloating) else z.real).astype(kind)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("n", [1, 5])
def test_cholesky(kind, n):
    x = matrices(kind, 3, n, n)
    x = x @ x.conj().swapaxes(1, 2) + np.eye(n)
    factor, info = run(la.cholesky, x)
    near(factor, np.linalg.cholesky(x))
    np.testing.assert_array_equal(info, [0, 0, 0])
    x[1, n - 1, n - 1] = -1
    np.testing.assert_array_equal(run(la.cholesky, x)[1], [0, n, 0])


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("shape", [(2, 4, 4), (1, 5, 3), (2, 3, 5), (1, 1, 1)])
def test_lu(kind, shape):
    x = matrices(kind, *shape)

    def program(b, x):
        a, pivots, perm, info = la.lu(b, x)
        again = la.permutation(b, pivots, shape[1])
        return [la.permutation_matrix(b, perm, x.dtype), *la.factors(b, a), perm, again, info]

    p, lower, upper, perm, again, info = run(program, x)
    near(p @ lower @ upper, x)
    assert np.abs(lower).max() <= 1.5
    np.testing.assert_array_equal(perm, again)
    np.testing.assert_array_equal(info, np.zeros(shape[0]))


@pytest.mark.parametrize("target", ["reference", "cpu"])
@pytest.mark.parametrize("kind", KINDS)
def test_systems_and_determinants(kind, target):
    a, x = matrices(kind, 2, 4, 4), matrices(kind, 2, 4, 3, seed=1)

    def program(b, a, x):
        factor, pivots, perm, _ = la.lu(b, a)
        return [la.lu_solve(b, factor, perm, x), la.lu_solve(b, factor, perm, x, adjoint=True),
                la.signed_diagonal(b, factor, pivots)]  # fmt: skip

    y, adjoint, factors = run(program, a, x, target=target)
    near(y, np.linalg.solve(a, x), rtol=1e-10)
    near(adjoint, np.linalg.solve(a.conj().swapaxes(1, 2), x), rtol=1e-10)
    near(factors.prod(1), np.linalg.det(a))


def test_singular_matrices_divide_by_no_zero():
    x = np.zeros((2, 3, 3))
    x[1] = np.diag([2.0, 0.0, 3.0])
    with np.errstate(all="raise"):
        a, _, _, info = run(lambda b, x: la.lu(b, x), x)
    np.testing.assert_array_equal(a, x)
    np.testing.assert_array_equal(info, [1, 2])


def test_triangular_systems():
    a, x = matrices(np.float64, 2, 4, 4) + 3 * np.eye(4), matrices(np.float64, 2, 4, 2, seed=1)
    for upper in (False, True):
        got = run(lambda b, a, x, u=upper: la.solve_triangular(b, a, x, u), a, x)
        near(np.triu(a) @ got if upper else np.tril(a) @ got, x)
    unit = np.tril(a, -1) + np.eye(4)
    near(unit @ run(lambda b, a, x: la.solve_triangular(b, a, x, False, True), a, x), x)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("shape", [(2, 4, 4), (1, 6, 3), (2, 3, 5), (1, 1, 1)])
def test_qr(kind, shape):
    x = matrices(kind, *shape)
    x[0, :, 0] = 0  # a column that needs no reflection

    def program(b, x):
        a, taus = householder.geqrf(b, x)
        q = householder.q_of(b, a, taus, shape[1])
        return [q, a, householder.apply_q(b, a, taus, q, adjoint=True)]

    q, a, one = run(program, x)
    near(q @ np.triu(a), x)
    near(one, np.broadcast_to(np.eye(shape[1]), one.shape))


@pytest.mark.parametrize("scale", [0.01, 1.0, 30.0])
def test_matrix_exponential(scale):
    x = matrices(np.float64, 2, 4, 4) * scale
    x = (x + x.swapaxes(1, 2)) / 2
    values, vectors = np.linalg.eigh(x)
    want = vectors * np.exp(values)[:, None] @ vectors.swapaxes(1, 2)
    got = run(la.matrix_exp, x)
    near(got, want, rtol=0, atol=1e-11 * np.abs(want).max())


@pytest.mark.parametrize("target", ["reference", "cpu"])
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("n", [1, 2, 5, 6])
def test_eigenvalues(kind, n, target):
    x = matrices(kind, 2, n, n)
    for lower in (True, False):
        values, vectors = run(lambda b, x, w=lower: eigen.eigh(b, x, w), x, target=target)
        near(values, np.linalg.eigvalsh(x, "L" if lower else "U"))
        half = np.tril(x, -1) if lower else np.triu(x, 1)
        whole = half + half.conj().swapaxes(1, 2) + np.eye(n) * x.real
        near(whole @ vectors, vectors * values[:, None], atol=1e-12)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("shape", [(2, 4, 4), (1, 6, 3), (2, 3, 5), (1, 1, 1)])
@pytest.mark.parametrize("full", [False, True])
def test_singular_values(kind, shape, full):
    x = matrices(kind, *shape)
    x[0, :, -1] = x[0, :, 0]  # one of them is 0
    u, s, vh = run(lambda b, x: eigen.svd(b, x, full), x)
    near(s, np.linalg.svd(x, compute_uv=False), atol=1e-14 * 50)
    count = min(shape[1:])
    near(u[:, :, :count] * s[:, None] @ vh[:, :count], x)
    for unitary in (u, vh.conj().swapaxes(1, 2)):
        gram = unitary.conj().swapaxes(1, 2) @ unitary
        near(gram, np.broadcast_to(np.eye(gram.shape[-1]), gram.shape))


@pytest.mark.parametrize("hermitian", [False, True])
def test_pseudo_inverses(hermitian):
    x = matrices(np.float64, 2, 4, 4)
    x = x[:, :, :2] @ x[:, :, :2].swapaxes(1, 2)
    bound = lambda s, top, _: top * 1e-10  # noqa: E731
    got = run(lambda b, x: eigen.pseudo_inverse(b, x, bound, hermitian), x)
    near(got, np.linalg.pinv(x, 1e-10), rtol=1e-8, atol=1e-9)


def test_numbers_that_are_not_finite_end_the_sweeps():
    x = np.full((1, 3, 3), NAN)
    assert np.isnan(run(lambda b, x: eigen.eigh(b, x, True), x)[0]).all()
    assert run(lambda b, x: eigen.svd(b, x, False), x)[1].shape == (1, 3)


def test_empty_matrices():
    none = np.zeros((2, 0, 0))
    assert run(la.cholesky, none)[0].shape == (2, 0, 0)
    assert run(lambda b, x: la.lu(b, x), none)[1].shape == (2, 0)
    assert run(lambda b, x: eigen.eigh(b, x, True), none)[0].shape == (2, 0)
    u, s, vh = run(lambda b, x: eigen.svd(b, x, True), np.zeros((2, 3, 0)))
    assert (u.shape, s.shape, vh.shape) == ((2, 3, 3), (2, 0), (2, 0, 0))
    assert run(householder.geqrf, np.zeros((1, 3, 0)))[0].shape == (1, 3, 0)
    assert run(la.matrix_exp, none).shape == (2, 0, 0)


def test_matrices_of_sizes_that_are_not_known():
    a, x = matrices(np.float64, 2, 4, 4), matrices(np.float64, 2, 4, 3, seed=1)

    def program(b, a, x):
        factor, _, perm, _ = la.lu(b, a)
        return la.lu_solve(b, factor, perm, x)

    near(run(program, a, x, dynamic=True), np.linalg.solve(a, x), rtol=1e-10)
    values = run(lambda b, x: eigen.eigh(b, x, True)[0], a, dynamic=True)
    near(values, np.linalg.eigvalsh(a))


# --- random numbers ---


def drawn(fn, *arrays, seed=7, target="reference"):
    return run(lambda b, *t: fn(b, b.number(seed, I64), *t), *arrays, target=target)


def test_philox():
    """The vectors of known answers of Random123 for counters (n, 0, 0, 0)."""
    # philox4x32 10: counter 0, key 0, and both all ones where the upper counter words are 0.
    words = [
        run(lambda b, i=i: b.from_function(
            lambda s, *_: random.philox(s.number(0, U64), s.number(0, U64))[i].to(I64), (), I64))
        for i in range(4)
    ]  # fmt: skip
    assert [int(w) for w in words] == [0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8]


@pytest.mark.parametrize("target", ["reference", "cpu"])
def test_distributions(target):
    shape = (60, 50) if target == "reference" else (300, 200)
    n = math.prod(shape)
    limit = 5 / math.sqrt(n)
    for dtype in (F32, F64):
        u = drawn(lambda b, s, d=dtype: random.uniform(b, s, shape, d), target=target)
        assert u.min() >= 0
        assert u.max() < 1
        assert abs(u.mean() - 0.5) < limit * 0.3
        assert abs(u.var() - 1 / 12) < limit * 0.1
        z = drawn(lambda b, s, d=dtype: random.normal(b, s, shape, d), target=target)
        assert abs(z.mean()) < limit
        assert abs(z.std() - 1) < limit
        assert abs((z[:, 1:] * z[:, :-1]).mean()) < limit
        e = drawn(lambda b, s, d=dtype: random.exponential(b, s, shape, d), target=target)
        assert e.min() > 0
        assert abs(e.mean() - 1) < limit
    z = drawn(lambda b, s: random.normal(b, s, shape, C64), target=target)
    assert abs((abs(z) ** 2).mean() - 1) < limit
    assert abs(z.mean()) < limit
    for rate in (3.0, 200.0):
        rates = np.full(shape, rate, np.float32)
        k = drawn(random.poisson, rates, target=target)
        assert abs(k.mean() - rate) < limit * rate**0.5
        assert (k == np.floor(k)).all()
        assert abs(k.var() / rate - 1) < 2 * limit


@pytest.mark.parametrize("target", ["reference", "cpu"])
def test_gamma_variates_have_mean_and_variance_of_their_shape(target):
    n = 2000 if target == "reference" else 40000
    limit = 6 / math.sqrt(n)
    for kind in (np.float32, np.float64):
        for shape in (0.3, 1.0, 2.5, 1000.0):
            g = drawn(random.gamma, np.full((n,), shape, kind), target=target).astype(np.float64)
            assert g.min() > 0
            assert abs(g.mean() - shape) < limit * shape**0.5
            # The variance's deviation is that of the fourth moment, 2 + 6 / shape.
            assert abs(g.var() / shape - 1) < limit * (2 + 6 / shape) ** 0.5
    assert (drawn(random.gamma, np.array([0.0, 1e-8], np.float32)) == np.float32(2.0**-126)).all()


@pytest.mark.parametrize("target", ["reference", "cpu"])
def test_binomial_numbers_have_mean_and_variance_of_their_trials(target):
    n = 1000 if target == "reference" else 20000
    limit = 6 / math.sqrt(n)
    for count, p in ((1, 0.3), (40, 0.9), (1000, 0.4), (1e6, 1e-5), (1e6, 0.999)):
        counts, ps = np.full((n,), count, np.float32), np.full((n,), p, np.float32)
        k = drawn(random.binomial, counts, ps, target=target).astype(np.float64)
        mean, variance = count * float(ps[0]), count * float(ps[0]) * (1 - float(ps[0]))
        assert (k == np.floor(k)).all()
        assert k.min() >= 0
        assert k.max() <= count
        assert abs(k.mean() - mean) < limit * variance**0.5
        assert abs(k.var() / variance - 1) < 2 * limit
    sure = np.array([0.0, 1.0], np.float32)
    k = drawn(random.binomial, np.array([7, 7], np.float32), sure)
    np.testing.assert_array_equal(k, [0, 7])


def test_halves_stay_below_one():
    u = drawn(lambda b, s: b.cast(b.cast(random.uniform(b, s, (3000,), BF16), BF16), F32))
    assert u.max() < 1
    assert len(np.unique(u)) > 200


def test_integers_and_permutations():
    k = drawn(lambda b, s: random.integers(b, s, (4000,), -3, 7, I64))
    assert set(k) == set(range(-3, 4))
    k = drawn(lambda b, s: random.integers(b, s, (50,), 0, 1 << 40, I64))
    assert k.min() >= 0
    assert (1 << 36) < k.max() < 1 << 40
    order = drawn(lambda b, s: random.permutation(b, s, 40))
    assert sorted(order) == list(range(40))
    assert list(order) != list(range(40))
    assert drawn(lambda b, s: random.uniform(b, s, (0, 3), F32)).shape == (0, 3)


def test_seeds():
    fn = lambda b, s: random.uniform(b, s, (100,), F32)  # noqa: E731
    first, again, other = (drawn(fn, seed=s) for s in (1, 1, 2))
    np.testing.assert_array_equal(first, again)
    assert (first != other).any()
    np.testing.assert_array_equal(first, drawn(fn, seed=1, target="cpu"))


@pytest.mark.parametrize("replacement", [False, True])
def test_multinomial(replacement):
    weights = np.tile(np.array([0.5, 0.0, 0.25, 0.25], np.float32), (1000, 1))
    found = drawn(lambda b, s, w: random.multinomial(b, s, w, 2, replacement), weights)
    assert found.shape == (1000, 2)
    assert 1 not in found
    assert abs((found[:, 0] == 0).mean() - 0.5) < 0.08
    assert (found[:, 0] == found[:, 1]).any() == replacement


# --- loops ---


@pytest.mark.parametrize("target", ["reference", "cpu"])
def test_loops(target):
    x = np.arange(5.0)

    def power(b, x):
        return loops.for_(b, 0, 3, [x], lambda i, x: b.map(lambda v: v * v, x))[0]

    near(run(power, x, target=target), x**8)

    def halve(b, x):
        def above(x):
            top = b.item(x, [b.value(4)])
            return b.compute(lambda v: v > 0.1, (top, F64)).value

        return loops.while_(b, [x], above, lambda x: b.map(lambda v: v * 0.5, x))[0]

    near(run(halve, x, target=target), x / 64)

    def inner(v):
        (total,) = loops.scalar_for(v.body, 0, 4, [v], lambda i, t: t + i.to(INDEX).to(I64).to(F64))
        (small,) = loops.scalar_while(v.body, [total], lambda t: t.abs() > 1, lambda t: t * 0.5)
        return small

    want = [next(v for v in ((k + 6) / 2**e for e in range(9)) if v <= 1) for k in x]
    near(of(inner, x, target=target), want)


@pytest.mark.parametrize("after", [1, 3, 16])
@pytest.mark.parametrize("n", [30, 64, 96, 128, 210, 480, 512, 1000])
def test_transforms_along_any_dim(n, after):
    """The factors of a transform depend on how many columns it has."""
    rng = np.random.default_rng(n)
    x = rng.normal(size=(2, n, after))
    z = x + 1j * rng.normal(size=x.shape)
    assert np.prod(list(factors(n, after))) == n
    near(run(lambda b, t: fft.transform(b, t, 1, True), z), np.fft.fft(z, axis=1), 0, 1e-10)
    got = run(lambda b, t: fft.transform(b, t, 1, True, half=True), x)
    near(got, np.fft.rfft(x, axis=1), 0, 1e-10)
    half = np.fft.rfft(x, axis=1)
    near(run(lambda b, t: fft.to_real(b, t, 1, n, 1 / n), half), x, 0, 1e-10)


def factors(n, after):
    """The factors of a transform of complex numbers, in order."""
    while (first := fft._factor(n, after)) != n:
        yield first
        n //= first
    yield n


def test_vectors_of_columns_are_full():
    assert list(factors(4096, 1)) == [16, 16, 16]
    assert list(factors(64, 1)) == [4, 16]
    assert list(factors(64, 16)) == [8, 8]
    assert list(factors(401, 1)) == [401]


def updated(x, places, values):
    """x with the values at places that exist, in order."""
    x = x.copy()
    for place, value in zip(places, values, strict=True):
        if all(0 <= i < n for i, n in zip(place, x.shape, strict=False)):
            x[place] = value
    return x


@pytest.mark.parametrize("target", ["reference", "cpu"])
@pytest.mark.parametrize("dynamic", [False, True])
def test_updates_out_of_bounds_are_ignored(dynamic, target):
    """The number of a row that does not exist may be that of another row."""
    x = np.zeros((3, 4, 2), np.float32)
    values = np.arange(1, 17, dtype=np.float32).reshape(2, 4, 2)
    rows, columns = np.array([0, 3, -4, 2, 1, -1]), np.array([5, 0, 1, -5, 3, -1])
    places = [(r + 3 * (r < 0), c + 4 * (c < 0)) for r, c in zip(rows, columns, strict=True)]
    got = run(
        lambda b, t, r, c, v: indexing.index_update(b, t, [r, c, None], v, None),
        x, rows, columns, values.reshape(8, 2)[:6], target=target, dynamic=dynamic,
    )  # fmt: skip
    assert np.array_equal(got, updated(x, places, values.reshape(8, 2)[:6]))


@pytest.mark.parametrize("target", ["reference", "cpu"])
@pytest.mark.parametrize("dynamic", [False, True])
@pytest.mark.parametrize("wrong", [None, 4, -1, -5, 11, 1 << 62, -(1 << 63)])
def test_updates_along_a_dim_are_checked(wrong, dynamic, target):
    x = np.zeros((3, 4, 2), np.float32)
    indices = np.array([0, 2, 1, 3, 3, 3, 1, 0], np.int64).reshape(2, 4, 1) * [1, 1]
    values = np.arange(1, 17, dtype=np.float32).reshape(2, 4, 2)
    given = {"target": target, "dynamic": dynamic}

    def put(b, *t):
        return indexing.put_along(b, *t, 1, None)

    if wrong is not None:
        indices[1, 2, 1] = wrong
        with pytest.raises(RuntimeTrap, match="out of bounds"):
            run(put, x, indices, values, **given)
        return
    at = [(i, indices[i, j, k], k) for i, j, k in np.ndindex(indices.shape)]
    assert np.array_equal(run(put, x, indices, values, **given), updated(x, at, values.ravel()))


@pytest.mark.parametrize("dynamic", [False, True])
def test_more_updates_than_rows(dynamic):
    """A row of indices behind the last one of the target is ignored, too."""
    x, values = np.zeros((2, 3), np.float32), np.arange(1, 10, dtype=np.float32).reshape(3, 3)
    indices = np.array([[2, 0, 1], [0, 1, 2], [1, 2, 0]])
    at = [(i, indices[i, j]) for i, j in np.ndindex(3, 3)]
    got = run(
        lambda b, *t: indexing.put_along(b, *t, 1, None), x, indices, values,
        target="cpu", dynamic=dynamic,
    )  # fmt: skip
    assert np.array_equal(got, updated(x, at, values.ravel()))
