"""JAX programs: what jax.numpy, lax and transformations leave, against what JAX answers."""

from __future__ import annotations

import numpy as np
import pytest

import irees
from irees.errors import ArgumentError, IreesError, UnsupportedError

WAY = "needs jax and IREE's importer: pip install 'irees[jax]'"
jax = pytest.importorskip("jax", reason=WAY)
pytest.importorskip("iree.compiler", reason=WAY)

from jax import export, lax  # noqa: E402
from jax import numpy as jnp  # noqa: E402

from irees.frontends.jax import import_jax  # noqa: E402

RANDOM = np.random.default_rng(0)


def f32(*shape: int) -> np.ndarray:
    return RANDOM.standard_normal(shape).astype(np.float32)


def i32(*values: int) -> np.ndarray:
    return np.array(values, np.int32)


def attention(q, k, v):
    scores = jnp.einsum("bhqd,bhkd->bhqk", q, k) / np.float32(4)
    scores = jnp.where(jnp.tril(jnp.ones((12, 12), bool)), scores, -1e9)
    return jnp.einsum("bhqk,bhkd->bhqd", jax.nn.softmax(scores), v)


def convolution(x, w):
    numbers = ("NHWC", "HWIO", "NHWC")
    return jax.nn.relu(lax.conv_general_dilated(x, w, (2, 2), "SAME", dimension_numbers=numbers))


def recurrent(x, h, w, u):
    def step(h, xt):
        h = jnp.tanh(xt @ w + h @ u)
        return h, h

    return lax.scan(step, h, x)


def quantized(x):
    scale = jnp.max(jnp.abs(x)) / 127
    q = jnp.round(x / scale).astype(jnp.int8)
    return {"q": q, "x": q.astype(jnp.float32) * scale}


PROGRAMS = {
    "mlp": (
        lambda x, w, b, v: jax.nn.softmax(jax.nn.gelu(x @ w + b) @ v),
        (f32(8, 32), f32(32, 64), f32(64), f32(64, 10)),
    ),
    "attention": (attention, (f32(2, 4, 12, 16), f32(2, 4, 12, 16), f32(2, 4, 12, 16))),
    "convolution": (convolution, (f32(1, 14, 14, 3), f32(3, 3, 3, 8))),
    "fori": (lambda x: lax.fori_loop(0, 5, lambda i, y: jnp.sin(y) + i, x), (f32(16),)),
    "while": (
        lambda x: lax.while_loop(lambda s: s[0] < 10, lambda s: (s[0] + 1, s[1] * 1.5), (0, x)),
        (f32(4),),
    ),
    "cond": (lambda p, x: lax.cond(p > 0, jnp.exp, jnp.negative, x), (np.int32(1), f32(4))),
    "switch": (
        lambda i, x: lax.switch(i, [jnp.sin, jnp.cos, lambda y: y * 2], x),
        (np.int32(1), f32(4)),
    ),
    "top_k": (lambda x: lax.top_k(x, 5), (f32(3, 50),)),
    "top_k, places only": (lambda x: lax.top_k(x, 5)[1], (f32(3, 50),)),
    "sort": (lambda x: (jnp.sort(x, axis=1), jnp.argsort(x, axis=1)), (f32(3, 50),)),
    "scan": (lambda x: lax.scan(lambda c, y: (c + y, c * y), jnp.zeros(4), x), (f32(6, 4),)),
    "recurrent": (recurrent, (f32(5, 2, 4), f32(2, 8), f32(4, 8), f32(8, 8))),
    "cumulative": (lambda x: (jnp.cumsum(x, axis=1), jnp.cumprod(x, axis=0)), (f32(6, 4),)),
    "gather": (lambda x, i: (x[i], jnp.take(x, i, axis=1)), (f32(6, 8), i32(1, 0, 3))),
    "scatter": (
        lambda x, i, u: (x.at[i].add(u), x.at[i].set(u), x.at[i].max(u)),
        (f32(6, 8), i32(1, 0, 3), f32(3, 8)),
    ),
    "max pool": (
        lambda x: lax.reduce_window(x, -np.inf, lax.max, (1, 2, 2, 1), (1, 2, 2, 1), "VALID"),
        (f32(1, 8, 8, 4),),
    ),
    "random": (lambda x: jax.random.normal(jax.random.key(0), (8,)) + x, (f32(8),)),
    "fft": (lambda x: jnp.abs(jnp.fft.fft(x)), (f32(16),)),
    "reductions": (
        lambda x: (jnp.linalg.norm(x, axis=1), jnp.argmax(x, axis=1), x.sum(), jnp.var(x, axis=1)),
        (f32(6, 8),),
    ),
    "dynamic slices": (
        lambda x, i: (
            lax.dynamic_slice(x, (i, 0), (2, 3)),
            lax.dynamic_update_slice(x, x[:2, :2], (i, 1)),
        ),
        (f32(6, 8), np.int32(3)),
    ),
    "complex": (lambda x: (jnp.exp(1j * x).real, jnp.abs(x + 1j)), (f32(8),)),
    "integers": (
        lambda x, y: (x // y, x % y, x**2, jnp.clip(x, 0, 3), x << 1, lax.population_count(x)),
        (i32(7, -7, 9, -3), i32(2, 3, -4, 5)),
    ),
    "unsigned": (lambda x: (x > 1).astype(jnp.uint8) * np.uint8(200), (i32(7, -7, 9, -3),)),
    "gradient": (
        lambda x, w: jax.grad(lambda w: jnp.sum(jnp.tanh(x @ w) ** 2))(w),
        (f32(8, 16), f32(16, 8)),
    ),
    "quantized": (quantized, (f32(8, 8),)),
    "special functions": (
        lambda x: (lax.erf(x), lax.lgamma(x), jnp.log1p(jnp.abs(x)), jnp.arctan2(x, x + 1)),
        (f32(8),),
    ),
    "vmap of a jitted function": (
        lambda x: jax.vmap(jax.jit(lambda row: row / row.sum()))(x),
        (f32(4, 8),),
    ),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_programs_give_what_jax_gives(name):
    function, inputs = PROGRAMS[name]
    wanted = jax.tree_util.tree_leaves(jax.jit(function)(*inputs))
    found = irees.compile(jax.jit(function), inputs)(*inputs)
    found = jax.tree_util.tree_leaves(found)
    assert len(found) == len(wanted)
    for a, b in zip(wanted, found, strict=True):
        a, b = np.asarray(a), np.asarray(b)
        assert (b.shape, b.dtype) == (a.shape, a.dtype)
        # Sums of at most 64 products of normal numbers, in another order.
        np.testing.assert_allclose(b, a, rtol=64 * np.finfo(np.float32).eps, atol=1e-5)


def test_products_of_bf16_are_summed_in_f32():
    x, w = f32(8, 256).astype(jnp.bfloat16), f32(256, 8).astype(jnp.bfloat16)
    got = np.asarray(irees.compile(jax.jit(jnp.matmul), (x, w))(x, w), np.float32)
    wanted = x.astype(np.float64) @ w.astype(np.float64)
    # One rounding to bf16: half of a unit in the last of eight places, and sums of f32.
    np.testing.assert_allclose(got, wanted, rtol=2**-8, atol=1e-4)


def test_ops_know_their_line_of_python():
    module = import_jax(jax.jit(lambda x: jnp.tanh(x)), (f32(4),))
    tanh = next(op for op in module.walk() if op.name == "math.tanh")
    assert "test_jax.py" in str(tanh.location)


def scaled(x, *, scale, unused=None):
    return {"scaled": x["x"] * scale, "bytes": x["x"].astype(jnp.uint8)}


def test_a_function_takes_keywords():
    x, named = {"x": np.float32([1, 200])}, {"scale": np.float32(3)}
    program = irees.compile(jax.jit(scaled), (x,), kwargs=named)
    got = program(x, scale=np.float32(4))
    np.testing.assert_array_equal(got["scaled"], np.float32([4, 800]))
    assert got["bytes"].dtype == np.uint8
    np.testing.assert_array_equal(got["bytes"], [1, 200])


def test_an_exported_function_keeps_its_signature():
    x, named = {"x": np.float32([1, 200])}, {"scale": np.float32(3)}
    exported = export.export(jax.jit(scaled))(x, **named)
    got = irees.compile(exported)(x, **named)
    np.testing.assert_array_equal(got["scaled"], np.float32([3, 600]))
    np.testing.assert_array_equal(got["bytes"], np.uint8([1, 200]))


def test_an_exported_function_with_symbolic_shapes_takes_all_sizes():
    rows, columns = export.symbolic_shape("rows, columns")
    kinds = [
        jax.ShapeDtypeStruct(shape, jnp.float32) for shape in ((rows, columns), (columns, rows))
    ]
    program = irees.compile(export.export(jax.jit(lambda x, y: jnp.tanh(x @ y).sum(0)))(*kinds))
    for shape in ((1, 1), (3, 5), (40, 17)):
        x, y = f32(*shape), f32(*shape[::-1])
        # Sums of up to 17 products, and of up to 40 values of at most 1.
        np.testing.assert_allclose(program(x, y), np.tanh(x @ y).sum(0), rtol=1e-4, atol=1e-4)
    with pytest.raises(IreesError):
        program(f32(3, 5), f32(4, 3))


def test_dynamic_shapes_are_for_pytorch():
    with pytest.raises(ArgumentError, match="export the function with symbolic shapes"):
        irees.compile(jax.jit(jnp.sin), (f32(3),), dynamic_shapes=({0: None},))


def test_a_function_that_cannot_be_traced_is_refused():
    with pytest.raises(UnsupportedError, match="JAX cannot trace the function"):
        irees.compile(jax.jit(lambda x: x if x > 0 else -x), (np.float32(1),))
