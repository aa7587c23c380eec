"""Attention of PyTorch against eager: grouped heads, masks, and sizes that stretch."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch")

import irees  # noqa: E402

sdpa = torch.nn.functional.scaled_dot_product_attention


class Attention(torch.nn.Module):
    """scaled_dot_product_attention with fixed options."""

    def __init__(self, **options):
        super().__init__()
        self.options = options

    def forward(self, q, k, v, mask=None):
        return sdpa(q, k, v, mask, **self.options)


def bits(*shape):
    """A bool mask; its first row hides everything."""
    mask = torch.rand(shape) > 0.3
    mask[..., 0, :] = False
    return mask


def added(*shape):
    """A float mask with -infinity in it; its first row hides everything."""
    return torch.where(bits(*shape), torch.randn(shape), float("-inf"))


CASES = {
    "plain": ((2, 3, 5, 8), (2, 3, 7, 8), (2, 3, 7, 4), None, {}),
    "no batch": ((5, 8), (7, 8), (7, 4), None, {}),
    "three dims": ((2, 5, 8), (2, 7, 8), (2, 7, 8), None, {"scale": 0.3}),
    "causal": ((2, 3, 6, 8), (2, 3, 6, 8), (2, 3, 6, 8), None, {"is_causal": True}),
    "causal, fewer keys": ((1, 2, 6, 8), (1, 2, 4, 8), (1, 2, 4, 8), None, {"is_causal": True}),
    "bits": ((2, 3, 5, 8), (2, 3, 7, 8), (2, 3, 7, 8), bits(5, 7), {}),
    "bits of a batch": ((2, 3, 5, 8), (2, 3, 7, 8), (2, 3, 7, 8), bits(2, 1, 5, 7), {}),
    "bits of keys": ((2, 3, 5, 8), (2, 3, 7, 8), (2, 3, 7, 8), bits(2, 1, 1, 7), {}),
    "added": ((2, 3, 5, 8), (2, 3, 7, 8), (2, 3, 7, 8), added(2, 3, 5, 7), {}),
    "added to heads": ((2, 3, 5, 8), (2, 3, 7, 8), (2, 3, 7, 8), added(3, 5, 7), {}),
    "groups": ((2, 6, 5, 8), (2, 2, 7, 8), (2, 2, 7, 8), None, {"enable_gqa": True}),
    "groups, bits": ((2, 6, 5, 8), (2, 2, 7, 8), (2, 2, 7, 8), bits(2, 1, 5, 7), {"enable_gqa": True}),
    "groups, bits of heads": (
        (2, 6, 5, 8), (2, 2, 7, 8), (2, 2, 7, 8), bits(2, 6, 5, 7), {"enable_gqa": True}
    ),
    "groups, causal": (
        (2, 4, 6, 8), (2, 2, 6, 8), (2, 2, 6, 8), None, {"enable_gqa": True, "is_causal": True}
    ),
    "one head for all": ((2, 4, 6, 8), (2, 1, 7, 8), (2, 1, 7, 8), None, {"enable_gqa": True}),
    "other groups of values": ((1, 4, 6, 8), (1, 2, 7, 8), (1, 4, 7, 8), None, {"enable_gqa": True}),
    "decoding": ((2, 6, 1, 8), (2, 2, 9, 8), (2, 2, 9, 8), added(2, 1, 1, 9), {"enable_gqa": True}),
    "decoding without groups": ((2, 3, 1, 8), (2, 3, 9, 8), (2, 3, 9, 8), None, {}),
    "keys that stretch": ((2, 3, 5, 8), (1, 3, 7, 8), (1, 1, 7, 8), None, {}),
    "queries that stretch": ((1, 3, 5, 8), (2, 3, 7, 8), (2, 3, 7, 8), None, {}),
    "no keys": ((1, 2, 3, 4), (1, 2, 0, 4), (1, 2, 0, 4), None, {}),
    "no features": ((1, 2, 3, 0), (1, 2, 5, 0), (1, 2, 5, 4), None, {}),
    "no queries": ((1, 2, 0, 4), (1, 2, 5, 4), (1, 2, 5, 4), None, {}),
}  # fmt: skip

TOLERANCE = {torch.float32: 2e-6, torch.float64: 1e-14, torch.float16: 2e-3, torch.bfloat16: 2e-2}
"""Some roundings of the type of the result, which is of order 1."""


def check(case: str, dtype, target: str) -> None:
    """Compares with the math of eager in f64, on what the inputs are after their rounding."""
    *shapes, mask, options = CASES[case]
    torch.manual_seed(0)
    operands = [torch.randn(shape).to(dtype) for shape in shapes]
    if mask is not None:
        operands.append(mask if mask.dtype == torch.bool else mask.to(dtype))
    program = irees.compile(Attention(**options), tuple(operands), target=target)
    found = program(*operands)
    wide = [t if t.dtype == torch.bool else t.double() for t in operands]
    expected = sdpa(*wide, **options)
    assert found.dtype == dtype
    torch.testing.assert_close(
        found.double(), expected, rtol=TOLERANCE[dtype], atol=TOLERANCE[dtype]
    )


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("target", ["reference", "cpu"])
def test_attention(case, target):
    check(case, torch.float32, target)


@pytest.mark.parametrize("case", ["plain", "bits", "groups, bits", "decoding"])
@pytest.mark.parametrize("dtype", [torch.float64, torch.float16, torch.bfloat16])
def test_other_floats(case, dtype):
    check(case, dtype, "cpu")


def test_an_attention_is_one_op():
    """No target decides on attention before it sees one."""
    x = [torch.randn(1, 2, 6, 8).half() for _ in range(3)]
    module = irees.compile(Attention(is_causal=True), tuple(x), to="input")
    names = [op.name for op in module.walk()]
    assert names.count("iree_linalg_ext.attention") == 1
    assert "linalg.softmax" not in names


def test_dynamic_sizes():
    """Batch, queries and keys that are known at run time."""
    sizes = [torch.export.Dim(n, max=64) for n in ("b", "m", "n")]
    b, m, n = sizes
    example = torch.randn(2, 3, 5, 8), torch.randn(2, 3, 7, 8), torch.randn(2, 3, 7, 8), bits(5, 7)
    shapes = ({0: b, 2: m}, {0: b, 2: n}, {0: b, 2: n}, {0: m, 1: n})
    program = irees.compile(Attention(), example, dynamic_shapes=shapes)
    for b, m, n in ((2, 5, 7), (1, 3, 4), (4, 9, 33)):
        q, k, v = torch.randn(b, 3, m, 8), torch.randn(b, 3, n, 8), torch.randn(b, 3, n, 8)
        mask = bits(m, n)
        expected = sdpa(*(t.double() for t in (q, k, v)), mask)
        torch.testing.assert_close(program(q, k, v, mask).double(), expected, rtol=2e-6, atol=2e-6)


def test_scores_that_a_backward_pass_needs():
    """In training PyTorch wants the logsumexp of the scores, too."""
    model = torch.compile(Attention(), backend="irees")
    q, k, v = (torch.randn(1, 2, 5, 8, requires_grad=True) for _ in range(3))
    model(q, k, v).sum().backward()
    found = [t.grad.clone() for t in (q, k, v)]
    for t in (q, k, v):
        t.grad = None
    Attention()(q, k, v).sum().backward()
    for mine, t in zip(found, (q, k, v), strict=True):
        torch.testing.assert_close(mine, t.grad, rtol=1e-5, atol=1e-5)


def test_a_mask_has_a_kernel_of_its_own():
    """Of a GPU: in the kernel of the attention, one workgroup would compute all heads."""
    x = [torch.randn(1, 8, 2048, 64).half() for _ in range(3)]
    program = Attention(is_causal=True)
    module = irees.compile(program, tuple(x), target="cuda:sm_90", to="dispatch-creation")
    kernels = [op for op in module.walk() if op.name == "flow.executable"]
    inside = [[op.name for op in kernel.walk()] for kernel in kernels]
    assert [names.count("iree_linalg_ext.attention") for names in inside] == [0, 1]
    assert "linalg.generic" not in inside[1]


def banded(b, h, i, j):
    return (i >= j) & (i - j < 9)


TABLE = torch.linspace(-1, 1, 4)

FLEX = {
    "plain": {},
    "distances": {"score_mod": lambda s, b, h, i, j: s + (i - j) * 0.1},
    "capped": {"score_mod": lambda s, b, h, i, j: torch.tanh(s / 5) * 5, "scale": 0.3},
    "slopes of heads": {"score_mod": lambda s, b, h, i, j: s + TABLE[h] * (j - i)},
    "banded": {"block_mask": banded},
    "groups": {"enable_gqa": True},
}


@pytest.mark.parametrize("name", FLEX)
def test_flex_attention(name):
    from torch.nn.attention.flex_attention import create_block_mask, flex_attention

    torch.manual_seed(0)
    options = dict(FLEX[name])
    if "block_mask" in options:
        mask = options["block_mask"]
        options["block_mask"] = create_block_mask(mask, None, None, 32, 32, device="cpu")
    q = torch.randn(1, 4, 32, 8)
    k, v = (torch.randn(1, 2 if name == "groups" else 4, 32, 8) for _ in range(2))

    def f(q, k, v):
        return flex_attention(q, k, v, **options)

    found = irees.compile(f, (q, k, v), target="reference")(q, k, v)
    torch.testing.assert_close(found, f(q, k, v))


def test_flex_attention_is_compiled_by_torch_compile():
    from torch.nn.attention.flex_attention import flex_attention

    q = torch.randn(1, 2, 16, 8)
    f = torch.compile(
        lambda q: flex_attention(q, q, q, score_mod=lambda s, b, h, i, j: s - (i - j).abs()),
        backend="irees", fullgraph=True, options={"fallback": False},
    )  # fmt: skip
    expected = flex_attention(q, q, q, score_mod=lambda s, b, h, i, j: s - (i - j).abs())
    torch.testing.assert_close(f(q), expected)
